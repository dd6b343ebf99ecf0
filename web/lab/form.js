/* The settings of an experiment as a form.  It shows what fits the algorithm, and writes into the scenario. */
import { button, check, field, h, put, select } from "./dom.js";
import { catalogue, settings } from "./laboratory.js";
import { named } from "./naming.js";
import { t } from "./texts.js";

const DELAYS = ["1ms", "uniform:1ms,5ms", "exponential:2ms", "lognormal:2ms,0.8"];
const SHAPES = ["complete", "ring", "line", "star", "grid", "random:0.5"];
const DETECTORS = ["20ms", "fixed:50ms", "adaptive:4", "phi:8"];

/* Groups of settings: [word, kind, choices]. */
const GROUPS = [
  ["network", [["topology", "choice", SHAPES], ["delay", "choice", DELAYS], ["loss", "text"], ["duplicate", "text"], ["reorder", "flag"]]],
  ["load", [["hold", "text"], ["think", "text"], ["entries", "number"], ["initiators", "number"], ["ids", "text"], ["time-limit", "text"]]],
  ["faults", [["crash-rate", "text"], ["recover", "flag"], ["amnesia", "flag"], ["pause-rate", "text"], ["partition-rate", "text"],
              ["detector", "choice", DETECTORS], ["fencing", "flag"]]],
];

export function algorithmSelect(list, value, onchange, problem, props) {
  const group = (name) => [t("problem." + name), list.filter((a) => a.problem === name).map((a) => [a.algorithm, a.algorithm])];
  return select(problem ? group(problem)[1] : [group("lock"), group("election")], value, onchange, props);
}

export class Form {
  constructor(element, onChange) {
    this.element = element;
    this.onChange = onChange; /* (scenario, restart) */
    this.opened = new Set(["load"]);
  }

  async show(scenario) {
    this.scenario = scenario;
    const [list, fits] = await Promise.all([catalogue(), settings(scenario.algorithm).catch(() => new Map())]);
    const known = list.find((a) => a.algorithm === scenario.algorithm);
    this.problem = known ? known.problem : "lock";
    if (this.element.contains(document.activeElement)) this.focused = document.activeElement.id;
    put(this.element, this.choice(list), known ? h("p", { class: "summary" }, named(known.summary)) : null,
      this.basics(), GROUPS.map(([name, fields]) => this.group(name, fields, fits)), this.own(fits));
    if (this.focused) { document.getElementById(this.focused)?.focus(); this.focused = null; }
  }

  choice(list) {
    const problem = h("div", { class: "segments", role: "radiogroup", "aria-label": t("problem") },
      ["lock", "election"].map((name) => h("label", {},
        h("input", { type: "radio", name: "problem", value: name, checked: name === this.problem, id: "problem-" + name,
                     onchange: () => this.onChange(list.find((a) => a.problem === name).algorithm) }), h("span", {}, t("problem." + name)))));
    const algorithm = algorithmSelect(list, this.scenario.algorithm, (name) => this.onChange(name), this.problem, { id: "algorithm" });
    return [problem, field(t("algorithm"), algorithm)];
  }

  basics() {
    const seed = h("input", { type: "number", min: 0, id: "seed", value: this.scenario.get("seed") ?? "1",
                              onchange: () => this.change("seed", seed.value || "1") });
    const dice = button("⚄", () => this.change("seed", String(1 + Math.floor(Math.random() * 99999))),
                        { class: "tool", "aria-label": t("seed.another"), title: t("seed.another") });
    return h("div", { class: "pair" },
      field(t("processes"), this.number("processes", this.scenario.processes)),
      field(t("seed"), h("div", { class: "joined" }, seed, dice)));
  }

  number(word, value, otherwise) {
    const input = h("input", { type: "number", min: 0, id: word, value: value ?? "", placeholder: otherwise,
                               onchange: () => this.change(word, input.value || null) });
    return input;
  }

  group(name, fields, fits) {
    const fitting = fields.filter(([word]) => !fits.size || fits.has(word));
    if (!fitting.length) return null;
    const given = fitting.filter(([word]) => this.scenario.get(word) !== null).length;
    const details = h("details", { open: this.opened.has(name), ontoggle: () => this.opened[details.open ? "add" : "delete"](name) },
      h("summary", {}, t("group." + name), given ? h("span", { class: "badge" }, given) : null),
      h("div", { class: "fields" }, fitting.map(([word, kind, choices]) => this.control(word, kind, choices, fits.get(word)))));
    return details;
  }

  control(word, kind, choices, fit) {
    const value = this.scenario.get(word), otherwise = fit && fit.otherwise ? fit.otherwise : t("none");
    if (kind === "flag") {
      const box = h("input", { type: "checkbox", id: word, checked: value !== null, onchange: () => this.change(word, box.checked ? "" : null) });
      return check(t("setting." + word), box);
    }
    if (kind === "number") return field(t("setting." + word), this.number(word, value, otherwise));
    const list = choices ? h("datalist", { id: word + "-choices" }, choices.map((c) => h("option", { value: c }))) : null;
    const input = h("input", { type: "text", id: word, value: value ?? "", placeholder: otherwise, list: choices ? word + "-choices" : null,
                               spellcheck: "false", autocomplete: "off", onchange: () => this.change(word, input.value.trim() || null) });
    const made = field(t("setting." + word), input);
    if (list) made.append(list);
    return made;
  }

  /* The algorithm's own options, with the words that the program has for them. */
  own(fits) {
    const options = [...fits].filter(([, fit]) => fit.group.startsWith("Options of"));
    if (!options.length) return null;
    const details = h("details", { open: this.opened.has("own"), ontoggle: () => this.opened[details.open ? "add" : "delete"]("own") },
      h("summary", {}, t("group.own")),
      h("div", { class: "fields" }, options.map(([word, fit]) => {
        const control = this.control(word, fit.value ? "text" : "flag", null, fit);
        control.querySelector("label").textContent = word;
        control.title = named(fit.text);
        return control;
      })));
    return details;
  }

  change(word, value) { this.onChange(this.scenario.set(word, value)); }
}
