/* How long to wait: what waiting costs, what giving up too early costs, and their sum. */
import { field, h, put, select } from "./dom.js";
import { Outdated, json } from "./laboratory.js";
import { plot } from "./plot.js";
import { number, t } from "./texts.js";

const DELAYS = ["exponential:20ms", "uniform:1ms,50ms", "lognormal:20ms,0.8"];

class TimeoutView {
  constructor(element) {
    const slider = (id, value) => h("input", { type: "range", id, min: -1, max: 3, step: 0.05, value, oninput: () => this.ask() });
    this.wait = slider("timeout-wait", 0);
    this.mistake = slider("timeout-mistake", 1);
    this.delay = select(DELAYS.map((d) => [d, d]), DELAYS[0], () => this.ask(), { id: "timeout-delay" });
    this.labels = { wait: h("b", {}), mistake: h("b", {}) };
    this.result = h("div", { class: "card" });
    const row = (name) => { const made = field(t("timeout." + name), this[name]); made.append(this.labels[name]); return made; };
    put(element, h("header", {}, h("h1", {}, t("timeout.title")), h("p", { class: "lead" }, t("timeout.lead"))),
      h("div", { class: "split" }, h("div", { class: "card" }, field(t("setting.delay"), this.delay), row("wait"), row("mistake")), this.result));
    this.ask();
  }

  async ask() {
    const wait = 10 ** Number(this.wait.value), mistake = 10 ** Number(this.mistake.value);
    this.labels.wait.textContent = number(wait, 3);
    this.labels.mistake.textContent = number(mistake, 3);
    try {
      const found = await json(["timeout", "--wait-cost", wait.toPrecision(4), "--mistake-cost", mistake.toPrecision(4), "--delay", this.delay.value, "--json"],
        { purpose: "timeout" });
      const curve = (name, key) => ({ name, dots: false, points: found.curve.map((at) => [at.timeout_ms, key(at)]) });
      const least = found.least_total, even = found.best;
      put(this.result, h("div", { class: "figures" },
        h("div", {}, h("b", { id: "timeout-least" }, `${number(least.timeout_ms, 4)} ms`), h("span", {}, t("timeout.least"))),
        h("div", {}, h("b", {}, `${number(even.timeout_ms, 4)} ms`), h("span", {}, t("timeout.even"))),
        h("div", {}, h("b", {}, number(least.total_cost, 3)), h("span", {}, t("timeout.cost")))),
        plot({ curves: [curve(t("timeout.curve.mistake"), (at) => at.expected_mistake_cost), curve(t("timeout.curve.wait"), (at) => at.waiting_cost),
                        curve(t("timeout.curve.sum"), (at) => at.expected_mistake_cost + at.waiting_cost)],
               xLabel: t("timeout.x"), yLabel: t("timeout.y"), yMax: Math.max(least.total_cost * 4, found.curve.at(-1).waiting_cost * 1.3),
               sticks: [[least.timeout_ms, t("timeout.least")], [even.timeout_ms, t("timeout.even")]] }));
    } catch (error) { if (!(error instanceof Outdated)) put(this.result, h("p", { class: "error" }, error.message)); }
  }
}

export function timeoutView(element) { return new TimeoutView(element); }
