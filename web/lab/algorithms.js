/* The page of each algorithm: what it is, its rules, its cost, what breaks it, and a button that shows it. */
import { readAddress, writeAddress } from "./address.js";
import { button, h, put } from "./dom.js";
import { catalogue, inLanguage, knowledge } from "./laboratory.js";
import { scenarios } from "./library.js";
import { named } from "./naming.js";
import { Scenario, beginning } from "./scenario.js";
import { t } from "./texts.js";

class AlgorithmsView {
  constructor(element, page, list) {
    Object.assign(this, { page, list });
    this.index = h("div", { class: "index", role: "navigation", "aria-label": t("view.algorithms") });
    this.article = h("article", { class: "card", id: "algorithm-page", tabindex: -1 });
    put(element, h("div", { class: "split" }, this.index, this.article));
    put(this.index, ["lock", "election"].map((problem) => [h("h3", {}, t("problem." + problem)),
      list.filter((a) => a.problem === problem).map((a) => button(a.algorithm, () => this.open(a.algorithm), { "data-name": a.algorithm }))]));
    this.open(readAddress("algorithm") || "ricart-agrawala");
  }

  async open(name) {
    const known = this.list.find((a) => a.algorithm === name) || this.list[0];
    name = known.algorithm;
    writeAddress({ algorithm: name });
    for (const b of this.index.querySelectorAll("button")) b.toggleAttribute("aria-current", b.dataset.name === name);
    const [facts, text] = await Promise.all([knowledge(["explain", name, "--json"]), knowledge(inLanguage(["explain", name]), (out) => out)]);
    const own = Object.keys(scenarios).filter((id) => new Scenario(scenarios[id]).algorithm === name);
    put(this.article, h("h1", {}, name),
      h("div", { class: "row" }, button(t("algorithm.run"), () => this.page.open(beginning(name, known.problem)), { class: "primary", id: "algorithm-run" }),
        button(t("check.this"), () => this.page.show("check", new Scenario(beginning(name, known.problem))), { class: "quiet" })),
      h("dl", { class: "facts" }, ["cost", "delay", "topology", "tolerates", "paper"].map((key) => [h("dt", {}, t("fact." + key)), h("dd", {}, key === "topology" ? t("topology." + known[key]) : named(known[key]))]),
        h("dt", {}, t("fact.messages")), h("dd", {}, Object.entries(facts.messages).map(([kind, fields]) => h("div", {}, h("code", {}, [kind, ...fields].join(" ")))))),
      h("h2", {}, t("algorithm.rules")), h("pre", { class: "text" }, text),
      own.length ? [h("h2", {}, t("algorithm.shows")), h("div", { class: "shows" }, own.map((id) => this.example(id)))] : null);
  }

  example(id) {
    const scenario = new Scenario(scenarios[id]), breaks = /^expect \S+ violated/m.test(scenarios[id]);
    const comment = scenario.lines.filter((l) => l.startsWith("#")).map((l) => l.slice(1).trim()).join(" ");
    return h("div", { class: "show" }, h("div", {}, h("b", { class: breaks ? "wrong-answer" : null }, named(scenario.title || id)), h("p", { class: "hint" }, comment)),
      button(t(breaks ? "algorithm.breaks" : "algorithm.see"), () => this.page.open(scenarios[id], { violation: breaks }), { class: breaks ? "danger" : null, "data-scenario": id }));
  }
}

export async function algorithmsView(element, page) { return new AlgorithmsView(element, page, await catalogue()); }
