/* Algorithms beside each other: two on the same load, and what they cost as the number of processes grows. */
import { button, field, h, put } from "./dom.js";
import { Outdated, Refused, catalogue, json, simulate } from "./laboratory.js";
import { Diagram } from "./diagram.js";
import { algorithmSelect } from "./form.js";
import { plot, table } from "./plot.js";
import { number, t } from "./texts.js";
import { Trace } from "./trace.js";

const SETTINGS = [["processes", "5"], ["entries", "8"], ["seed", "1"], ["delay", "1ms"], ["crash-rate", ""], ["loss", ""]];

class CompareView {
  constructor(element, page, list) {
    Object.assign(this, { page, list });
    this.sides = ["ricart-agrawala", "token-ring"].map((name, i) => this.side(name, i));
    this.inputs = new Map(SETTINGS.map(([name, value]) => [name, h("input", { type: "text", id: "compare-" + name, value, placeholder: t("none"), onchange: () => this.both() })]));
    this.measures = h("div", {});
    this.cost = h("div", { id: "compare-cost" });
    const problem = (name) => button(t("compare.cost." + name), () => this.measure(name), { id: "compare-" + name, class: "quiet" });
    put(element, h("header", {}, h("h1", {}, t("compare.title")), h("p", { class: "lead" }, t("compare.lead"))),
      h("div", { class: "card" }, h("div", { class: "bar" }, [...this.inputs].map(([name, input]) => field(t(["processes", "seed"].includes(name) ? name : "setting." + name), input)))),
      h("div", { class: "halves" }, this.sides.map((side) => side.element)), h("div", { class: "card" }, this.measures),
      h("div", { class: "card" }, h("h2", {}, t("compare.growth")), h("p", { class: "hint" }, t("compare.growth.hint")), h("div", { class: "row" }, problem("lock"), problem("election")), this.cost));
    this.both();
  }

  side(name, i) {
    const canvas = h("canvas", { class: "diagram", role: "img" });
    const choose = algorithmSelect(this.list, name, () => this.both(), null, { id: "compare-algorithm" + i });
    const verdict = h("p", { class: "verdict" });
    return { choose, canvas, verdict, diagram: new Diagram(canvas), element: h("div", { class: "card" }, field(t("algorithm"), choose), verdict, canvas) };
  }

  scenario(algorithm) {
    const problem = (this.list.find((a) => a.algorithm === algorithm) || {}).problem;
    const lines = [`algorithm ${algorithm}`];
    for (const [name, input] of this.inputs) if (input.value && !(name === "entries" && problem !== "lock")) lines.push(`${name} ${input.value}`);
    return lines.join("\n") + "\n";
  }

  async both() {
    const reports = [];
    for (const [i, side] of this.sides.entries()) {
      try {
        const result = await simulate(this.scenario(side.choose.value), "compare" + i);
        const wrong = result.verdicts.find((v) => v.value === "violated");
        side.verdict.className = "verdict " + (wrong ? "violated" : "held");
        side.verdict.textContent = wrong ? `${wrong.label} ${t("violated")}: ${wrong.sentence}` : t("all.held");
        const trace = new Trace(result.trace, result.report);
        side.canvas.setAttribute("aria-label", `${side.choose.value}: ${side.verdict.textContent}`);
        side.diagram.show(trace);
        side.diagram.follow(trace.entries.length, trace.end, true);
        reports.push(result.report);
      } catch (error) {
        if (error instanceof Outdated) return;
        side.verdict.className = "verdict violated";
        side.verdict.textContent = error.message;
        reports.push({});
      }
    }
    const rows = ["messages", "entries", "messages_per_entry", "delay_hops_mean", "wait_ms_mean", "fairness", "lost", "crashes", "time_ms"]
      .filter((key) => reports.some((r) => r[key] !== undefined)).map((key) => [t("measure." + key), ...reports.map((r) => number(r[key]))]);
    put(this.measures, table(["", ...this.sides.map((side) => side.choose.value)], rows, [1, 2]));
  }

  /* One algorithm at a time, so that the page can do other things in between. */
  async costs({ algorithm, problem, cost }) {
    if (problem === "lock") {
      const rows = await json(["compare", algorithm, "--processes", "3,8,32,128", "--json"], { purpose: "cost" });
      return rows.filter((row) => row.load === "heavy").map((row) => ({ ...row, value: row.messages_per_entry, formula: row.messages_formula }));
    }
    const rows = [];
    for (const processes of [4, 16, 64, 256]) {
      try {
        const report = await json(["sim", algorithm, "--processes", String(processes), "--json"], { purpose: "cost" });
        rows.push({ algorithm, processes, value: report.messages, formula: cost });
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        break; /* some are for few processes */
      }
    }
    return rows;
  }

  async measure(problem) {
    const rows = [], progress = h("progress", {}), drawn = h("div", {});
    put(this.cost, progress, drawn);
    const chosen = this.list.filter((a) => a.problem === problem);
    progress.max = chosen.length;
    try {
      for (const [i, known] of chosen.entries()) {
        rows.push(...await this.costs(known));
        progress.value = i + 1;
        this.drawCosts(drawn, problem, rows);
      }
      progress.remove();
    } catch (error) { if (!(error instanceof Outdated)) put(this.cost, h("p", { class: "error" }, error.message)); }
  }

  drawCosts(element, problem, rows) {
    const names = [...new Set(rows.map((row) => row.algorithm))];
    const curves = names.map((name) => ({ name, points: rows.filter((row) => row.algorithm === name && row.value > 0).map((row) => [row.processes, row.value]) }));
    put(element, plot({ curves: curves.filter((c) => c.points.length), xLog: true, yLog: true, xLabel: t("processes"),
                        yLabel: t(problem === "lock" ? "measure.messages_per_entry" : "measure.messages"), title: t("compare.growth") }),
      table([t("algorithm"), t("processes"), t(problem === "lock" ? "measure.messages_per_entry" : "measure.messages"), t("compare.formula")],
        rows.map((row) => [row.algorithm, number(row.processes, 9), number(row.value), row.formula]), [1, 2]));
  }
}

export async function compareView(element, page) { return new CompareView(element, page, await catalogue()); }
