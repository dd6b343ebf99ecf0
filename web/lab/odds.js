/* How likely restarts break a quorum, as one drags n, m and p. */
import { field, h, put } from "./dom.js";
import { Outdated, command, inLanguage, json } from "./laboratory.js";
import { plot } from "./plot.js";
import { number, t } from "./texts.js";

class OddsView {
  constructor(element) {
    this.figure = h("p", { class: "figure", id: "odds-figure" });
    this.says = h("p", { class: "lead" });
    this.terms = h("div", {});
    this.table = h("pre", { class: "text" });
    const slider = (id, min, max, value) => h("input", { type: "range", id, min, max, value, step: id === "odds-p" ? 0.05 : 1, oninput: () => this.ask() });
    this.n = slider("odds-n", 1, 32, 8);
    this.m = slider("odds-m", 1, 32, 5);
    this.p = slider("odds-p", -6, -0.05, -3.1);
    this.labels = { n: h("b", {}), m: h("b", {}), p: h("b", {}) };
    const row = (name) => { const made = field(t("odds." + name), this[name]); made.append(this.labels[name]); return made; };
    put(element, h("header", {}, h("h1", {}, t("odds.title")), h("p", { class: "lead" }, t("odds.lead"))),
      h("div", { class: "split" }, h("div", { class: "card" }, row("n"), row("m"), row("p")),
        h("div", { class: "card" }, this.figure, this.says, this.terms)),
      h("div", { class: "card" }, h("h2", {}, t("odds.table")), this.table));
    command(inLanguage(["odds", "--table"])).then((result) => { this.table.textContent = result.out; }, (e) => { this.table.textContent = e.message; });
    this.ask();
  }

  async ask() {
    const n = Number(this.n.value), least = Math.floor(n / 2) + 1, p = 10 ** Number(this.p.value);
    this.m.min = least;
    this.m.max = n;
    const m = Math.min(n, Math.max(least, Number(this.m.value)));
    this.labels.n.textContent = n;
    this.labels.m.textContent = m;
    this.labels.p.textContent = number(p, 3);
    try {
      const found = await json(["odds", "--n", String(n), "--m", String(m), "--p", p.toPrecision(6), "--json"], { purpose: "odds" });
      this.figure.textContent = found.violation > 0 ? number(found.violation, 4) : `10^${found.log10.toFixed(1)}`;
      this.says.textContent = t("odds.says", { n, m, least: Math.max(0, 2 * m - n) });
      const points = found.terms.map((term) => [term.k, Math.max(term.probability, 1e-300)]);
      put(this.terms, plot({ curves: [{ name: "", points }], yLog: true, xWhole: true, xLabel: t("odds.k"), yLabel: t("odds.probability") }));
    } catch (error) { if (!(error instanceof Outdated)) this.says.textContent = error.message; }
  }
}

export function oddsView(element) { return new OddsView(element); }
