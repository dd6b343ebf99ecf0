/* The first view: an experiment, its run, and what was done to it. */
import { readAddress, writeAddress } from "./address.js";
import { button, byId, field, h, openFile, put, select } from "./dom.js";
import { changesList, closeMenu, cutLinks, linkItems, processItems, showMenu } from "./breaking.js";
import { Form } from "./form.js";
import { Outdated, catalogue, simulate } from "./laboratory.js";
import { scenarios } from "./library.js";
import { named } from "./naming.js";
import { readRecorded } from "./recorded.js";
import { Scenario, beginning } from "./scenario.js";
import { clock } from "./sentences.js";
import { formats } from "./sharing.js";
import { SourceView } from "./source.js";
import { Stage } from "./stage.js";
import { number, t } from "./texts.js";
import { Trace } from "./trace.js";

const FIRST = "quorum-amnesia";
const FILE_MAX = 64 << 20, SCENARIO_MAX = 1 << 20; /* bytes */
const RECORDED = ["png", "json"]; /* what can be had of a run that nobody computes */

export class RunView {
  constructor(element) {
    this.element = element;
    this.scenario = new Scenario(readAddress("scenario") || scenarios[FIRST] || beginning("central", "lock"));
    this.undone = [];
    this.recorded = null; /* a run that has happened, instead of one of the scenario */
    this.stage = new Stage({
      menu: (p, time, x, y, back) => this.menu(p, time, x, y, back),
      link: (a, b, time, x, y, back) => this.linkMenu(a, b, time, x, y, back),
      delay: (message, time) => this.delay(message, time),
      moved: (player) => this.moved(player),
    });
    this.source = new SourceView();
    this.build();
    this.form = new Form(this.formElement, (change) => this.edited(change));
  }

  build() {
    this.formElement = h("form", { id: "settings", "aria-label": t("settings"), onsubmit: (event) => event.preventDefault() });
    this.title = h("h1", { id: "title" });
    this.verdict = h("p", { id: "verdict", class: "verdict", role: "status" });
    this.verdicts = h("div", { class: "card", id: "verdicts" });
    this.cost = h("div", { class: "card", id: "cost" });
    this.changes = h("div", { id: "changes" });
    this.text = h("textarea", { id: "scenario-text", rows: 12, spellcheck: "false", "aria-label": t("scenario.text"),
                                onchange: () => this.load(this.text.value) });
    this.message = h("p", { class: "error", id: "error", role: "alert", hidden: true });
    put(this.element,
      h("aside", { class: "panel" }, this.opener(), this.formElement),
      h("div", { class: "middle" }, h("header", { class: "heading" }, h("div", {}, this.title, this.verdict), this.exporter()), this.message,
        this.stage.main, this.source.element,
        h("section", { class: "card list", "aria-labelledby": "events-title" }, h("h2", { id: "events-title" }, t("events")), this.stage.events.element)),
      h("aside", { class: "right" }, this.stage.side, this.verdicts, this.cost,
        this.breaking = h("div", { class: "card" }, h("h2", {}, t("changes")), h("p", { class: "hint" }, t("changes.hint")), this.changes,
          h("details", {}, h("summary", {}, t("scenario.text")), this.text))));
  }

  opener() {
    const names = Object.keys(scenarios), families = new Map();
    for (const name of names) {
      const algorithm = new Scenario(scenarios[name]).algorithm;
      if (!families.has(algorithm)) families.set(algorithm, []);
      families.get(algorithm).push([name, named(new Scenario(scenarios[name]).title || name)]);
    }
    const choose = select([["", t("scenario.choose")], ...families], "", (name) => { if (name) this.load(scenarios[name], true); choose.value = ""; },
                          { id: "open-scenario" });
    return h("div", { class: "opener" }, field(t("scenario.open"), choose),
      h("div", { class: "row" },
        button(t("file.open"), () => openFile(".scenario,.json,text/plain", (file) => this.openFile(file)), { class: "quiet", id: "open-file" }),
        button(t("file.save"), () => this.share(this.recorded ? "json" : "scenario"), { class: "quiet", id: "save" })));
  }

  exporter() {
    const open = button(t("share"), () => {
      const box = open.getBoundingClientRect();
      showMenu(t("share"), (this.recorded ? RECORDED : Object.keys(formats)).map((kind) => [t("share." + kind), () => this.share(kind)]), box.left, box.bottom + 4, open);
    }, { id: "share", class: "quiet", "aria-haspopup": "menu" });
    return h("div", { class: "row" },
      this.undoButton = button(t("undo"), () => this.undo(), { id: "undo", class: "quiet", disabled: true }), open,
      button(t("check.this"), () => this.onCheck(this.recorded ? new Scenario(beginning(this.recorded.algorithm, this.problem)) : this.scenario), { id: "check-this", class: "primary" }));
  }

  async share(kind) {
    try {
      await formats[kind](this.scenario, this.stage.canvas, this.recorded);
      if (kind === "address") this.stage.say(t("share.copied"));
    } catch (error) { this.fail(error); }
  }

  /* Another experiment, from the form: an algorithm's name, or the scenario that it has changed. */
  async edited(change) {
    if (typeof change === "string") {
      const list = await catalogue();
      return this.load(beginning(change, (list.find((a) => a.algorithm === change) || {}).problem), true);
    }
    this.remember();
    this.scenario = change;
    return this.run({ fresh: true });
  }

  /* A scenario, or the trace of a recorded run. */
  async openFile(file) {
    try {
      if (file.size > FILE_MAX) throw new Error(t("file.large", { name: file.name }));
      const text = await file.text();
      if (text.trimStart().startsWith("{")) await this.showRecorded(readRecorded(text));
      else if (text.length > SCENARIO_MAX) throw new Error(t("file.large", { name: file.name }));
      else await this.load(text, true);
    } catch (error) { this.fail(error); }
  }

  async showRecorded(json) {
    const known = (await catalogue()).find((a) => a.algorithm === json.algorithm);
    this.problem = known ? known.problem : "lock";
    this.trace = new Trace(json, null);
    this.remember();
    this.recorded = json;
    this.message.hidden = true;
    this.title.textContent = json.title || json.algorithm;
    this.verdict.textContent = t("recorded");
    this.verdict.className = "verdict unknown";
    this.showCards(false);
    this.source.show(this.trace.algorithm);
    this.stage.show(this.trace, { problem: this.problem });
  }

  load(text, fresh = true) {
    this.remember();
    this.scenario = new Scenario(text);
    return this.run({ fresh });
  }

  remember() {
    this.undone.push(this.ran || this.scenario.toString());
    this.undoButton.disabled = false;
  }

  undo() {
    if (!this.undone.length) return;
    this.scenario = new Scenario(this.undone.pop());
    this.undoButton.disabled = !this.undone.length;
    this.run({ keepView: true });
  }

  async run({ fresh, keepView, count } = {}) {
    closeMenu();
    const scenario = this.scenario;
    this.form.show(scenario);
    this.text.value = scenario.toString();
    this.element.setAttribute("aria-busy", "true");
    try {
      const result = await simulate(scenario.toString());
      const list = await catalogue();
      const known = list.find((a) => a.algorithm === result.trace.algorithm);
      this.problem = known ? known.problem : "lock";
      this.ran = scenario.toString();
      this.trace = new Trace(result.trace, result.report);
      this.recorded = null;
      this.showCards(true);
      this.message.hidden = true;
      this.showReport(result);
      this.source.show(this.trace.algorithm);
      this.stage.show(this.trace, { keepView: keepView && !fresh, count, problem: this.problem, cuts: cutLinks(scenario, this.trace.names) });
      changesList(this.changes, scenario, (line) => { this.remember(); this.scenario = scenario.withoutLine(line); this.run({ keepView: true }); });
      writeAddress({ scenario: scenario.toString() }, false);
    } catch (error) {
      if (!(error instanceof Outdated)) this.fail(error);
    } finally {
      this.element.removeAttribute("aria-busy");
    }
  }

  /* A run that has happened has no report here, and nothing can be done to it. */
  showCards(shown) { for (const card of [this.verdicts, this.cost, this.breaking]) card.hidden = !shown; }

  fail(error) {
    this.message.textContent = t("refused", { why: error.message });
    this.message.hidden = false;
  }

  showReport({ verdicts, lines, report }) {
    const wrong = verdicts.find((v) => v.value === "violated");
    this.title.textContent = named(this.scenario.title || this.scenario.algorithm);
    this.verdict.textContent = wrong ? `${wrong.label} ${t("violated")}: ${wrong.sentence}` : t("all.held");
    this.verdict.className = "verdict " + (wrong ? "violated" : "held");
    put(this.verdicts, h("h2", {}, t("verdicts")), h("dl", { class: "facts verdicts" }, verdicts.map((v) => [
      h("dt", {}, v.label), h("dd", { class: v.value }, h("b", {}, t("verdict." + v.value)), v.at !== undefined ? ` ${clock(v.at)}` : "",
        v.sentence ? h("span", {}, v.sentence) : null)])));
    const hash = lines.findIndex(([, value]) => value.startsWith(report.trace_hash));
    const shown = lines.slice(0, Math.max(0, hash - verdicts.length));
    put(this.cost, h("h2", {}, t("cost")), h("dl", { class: "facts" }, shown.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
      h("dt", {}, t("hash")), h("dd", {}, h("code", {}, report.trace_hash)), h("dt", {}, t("events")), h("dd", {}, number(report.events, 9))));
  }

  moved(player) {
    this.source.follow(this.trace, player.count);
    if (player.playing || this.recorded) return;
    clearTimeout(this.noting);
    this.noting = setTimeout(() => writeAddress({ step: player.count === this.trace.entries.length ? "" : player.count }), 250);
  }

  act(time, ...what) {
    this.remember();
    for (const one of what) this.scenario.act(time, one);
    this.scenario.changed();
    return this.run({ keepView: true });
  }

  menu(p, time, x, y, back) {
    if (this.recorded) return this.stage.say(t("recorded.fixed"));
    const state = this.trace.standing(this.trace.countAt(time))[p];
    const { title, items } = processItems(this.trace, this.problem, p, time, state, (...args) => this.act(...args));
    return showMenu(title, items, x, y, back);
  }

  linkMenu(a, b, time, x, y, back) {
    if (this.recorded) return;
    const { title, items } = linkItems(this.trace, a, b, time, (...args) => this.act(...args));
    showMenu(title, items, x, y, back);
  }

  /* A message that is dragged comes then; not before it was sent. */
  delay(message, time) {
    if (this.recorded) return this.stage.say(t("recorded.fixed"));
    const { trace } = this, sent = trace.sentAt[message];
    const late = Math.max(0.001, time - sent);
    return this.act(sent, `delay ${trace.names[trace.fromOf[message]]} ${trace.names[trace.toOf[message]]} ${Math.round(late * 1000)}us once`);
  }

  start() {
    const step = readAddress("step");
    return this.run({ fresh: true, count: /^\d+$/.test(step) ? Number(step) : undefined });
  }
}

export function runView() { return new RunView(byId("view-run")); }
