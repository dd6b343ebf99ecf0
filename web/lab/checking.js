/* "Be sure": every order of events of a small system. */
import { button, check, field, h, put } from "./dom.js";
import { Outdated, cancel, catalogue, command, inLanguage, json } from "./laboratory.js";
import { algorithmSelect } from "./form.js";
import { number, t } from "./texts.js";
import { Walk } from "./walking.js";

const BOUNDS = ["entries", "crashes", "loss", "late", "timeouts", "suspicions"];
const FLAGS = ["amnesia", "fifo", "fencing"];

/* What is printed of each property, in the reader's language: the last lines before the counterexample, in the order of the report. */
function sentences(names, printed) {
  const lines = printed.split("\n\n")[0].split("\n").map((line) => /^ {2}(\S.*?) {2,}(\S.*)$/.exec(line)).filter(Boolean).slice(-names.length);
  return new Map(lines.length === names.length ? lines.map(([, label, text], i) => [names[i], [label, text]]) : []);
}

class CheckView {
  constructor(element, page, list) {
    this.page = page;
    this.list = list;
    this.inputs = {};
    this.algorithm = algorithmSelect(list, "central-lease", () => {}, null, { id: "check-algorithm" });
    const input = (name, value) => (this.inputs[name] = h("input", { type: "number", min: 0, max: 9, value, id: "check-" + name, placeholder: name === "timeouts" || name === "suspicions" ? "–" : "0" }));
    const flag = (name) => (this.inputs[name] = h("input", { type: "checkbox", id: "check-" + name }));
    this.result = h("div", { id: "check-result", "aria-live": "polite" });
    this.go = button(t("check.go"), () => this.run(), { class: "primary", id: "check-go" });
    this.stop = button(t("check.stop"), () => { this.stopped = true; cancel(); }, { class: "quiet", hidden: true });
    put(element, h("header", {}, h("h1", {}, t("check.title")), h("p", { class: "lead" }, t("check.lead"))),
      h("div", { class: "card" }, h("div", { class: "bar" }, field(t("algorithm"), this.algorithm), field(t("processes"), input("processes", "2")),
        BOUNDS.map((name) => field(t("bound." + name), input(name, name === "entries" ? "1" : "")))),
        h("div", { class: "bar" }, FLAGS.map((name) => check(t("bound." + name), flag(name))), h("span", { class: "grow" }), this.stop, this.go)),
      this.result);
    this.inputs.late.value = "1";
  }

  /* From a scenario: its algorithm, its size if that is small, and its faults. */
  show(scenario) {
    if (!scenario) return;
    this.algorithm.value = scenario.algorithm;
    this.inputs.processes.value = String(Math.min(scenario.processes || 3, 3));
    const what = scenario.actions.map((a) => a.what);
    const crashes = what.filter((w) => / crash$/.test(w)).length, amnesia = what.some((w) => /amnesia/.test(w)) || scenario.get("amnesia") !== null;
    this.inputs.crashes.value = crashes || amnesia || scenario.get("crash-rate") ? "1" : "";
    this.inputs.amnesia.checked = amnesia;
    this.inputs.late.value = what.some((w) => / pause/.test(w)) ? "1" : "";
    this.inputs.loss.value = scenario.get("loss") ? "1" : "";
    this.inputs.timeouts.value = crashes || amnesia ? "1" : "";
    this.inputs.fencing.checked = scenario.get("fencing") !== null;
    return this.run();
  }

  words() {
    const words = ["check", this.algorithm.value];
    for (const name of ["processes", ...BOUNDS]) if (this.inputs[name].value !== "") words.push("--" + name, this.inputs[name].value);
    const problem = (this.list.find((a) => a.algorithm === this.algorithm.value) || {}).problem;
    if (problem === "election") { const i = words.indexOf("--entries"); if (i >= 0) words.splice(i, 2); }
    for (const name of FLAGS) if (this.inputs[name].checked) words.push("--" + name);
    return words;
  }

  async run() {
    const words = this.words();
    this.stopped = false;
    this.stop.hidden = false;
    this.go.disabled = true;
    const seen = h("p", { class: "hint" }, t("check.running"));
    put(this.result, h("div", { class: "card" }, seen, h("progress", {})));
    try {
      const onProgress = (line) => { seen.textContent = String(line).trim() || t("check.running"); };
      const report = await json([...words, "--json"], { purpose: "check", onProgress });
      const printed = await command(inLanguage(words), { purpose: "check" });
      this.report(words, report, printed.out);
    } catch (error) {
      if (!(error instanceof Outdated)) put(this.result, h("p", { class: "error" }, this.stopped ? t("check.stopped") : t("refused", { why: error.message })));
    } finally {
      this.stop.hidden = true;
      this.go.disabled = false;
    }
  }

  report(words, report, printed) {
    const names = Object.keys(report.verdicts).filter((name) => typeof report.verdicts[name] === "string"), said = sentences(names, printed);
    const found = report.counterexample, held = report.end === "complete" && !found;
    const figures = [["states", report.states], ["transitions", report.transitions], ["depth", report.depth],
                     ["ms", report.seconds * 1000], ["memory", report.memory / 1048576]];
    const walked = h("div", {}), walk = new Walk(walked, words, (text) => this.page.open(text), (name) => said.get(name)?.[0] ?? name);
    put(this.result, h("div", { class: "card" },
      h("p", { class: "verdict " + (found ? "violated" : "held"), id: "check-verdict" },
        found ? said.get(found.property)?.join(" ") ?? t("check.violated", { property: found.property, steps: found.steps, why: found.why }) : held ? t("check.held") : t("check.undecided")),
      h("div", { class: "figures" }, figures.map(([name, value]) => h("div", {}, h("b", {}, number(value, name === "ms" || name === "memory" ? 3 : 9)), h("span", {}, t("check." + name))))),
      h("dl", { class: "facts verdicts" }, names.map((name) => [h("dt", {}, said.get(name)?.[0] ?? name),
        h("dd", { class: report.verdicts[name] }, h("b", {}, t("verdict." + report.verdicts[name])),
          report.unknown[name] ? h("span", {}, said.get(name)?.[1].replace(/^[^:]*: /, "") ?? report.unknown[name]) : null)])),
      h("div", { class: "row" }, found ? button(t("check.open"), () => this.open(words), { class: "primary", id: "check-open" }) : null,
        button(t("walk.open"), () => walk.go([]), { id: "check-walk" })),
      h("details", {}, h("summary", {}, t("check.printed")), h("pre", { class: "text" }, `$ conclave ${words.join(" ")}\n${printed}`))), walked);
  }

  /* The counterexample as a scenario, which the diagram runs. */
  async open(words) {
    const saved = await command([...words, "--save-scenario", "-"]);
    const end = saved.out.search(/^\S+, \d+ process/m);
    await this.page.open(end < 0 ? saved.out : saved.out.slice(0, end), { violation: true });
  }
}

export async function checkView(element, page) { return new CheckView(element, page, await catalogue()); }
