/* The state graph of a small system, one state at a time: what can happen next is a list of buttons. */
import { button, h, put } from "./dom.js";
import { Outdated, command, json } from "./laboratory.js";
import { messageText } from "./drawing.js";
import { sentence } from "./sentences.js";
import { t } from "./texts.js";

function said({ entry, choices, violates }, name) {
  const drawn = choices.length ? ` (${t("walk.draws", { choices: choices.join(", ") })})` : "";
  return [sentence(entry), drawn, violates.map((property) => h("span", { class: "wrong" }, " ", t("walk.violates", { property: name(property) })))];
}

function section(title, content, props) { return h("section", props, h("h3", {}, title), content); }

export class Walk {
  /* `words`: the command that was checked; `open` shows a scenario; `name` is a property in the reader's language. */
  constructor(element, words, open, name) {
    Object.assign(this, { element, words, open, name });
  }

  command(path) { return [...this.words, "--walk", path.join(",") || "0"]; }

  /* Takes these steps from the beginning; `focus`: by keyboard one goes on from where one was. */
  async go(path, focus = true) {
    try {
      const walk = await json([...this.command(path), "--json"], { purpose: "walk" });
      this.show(path, walk);
      if (focus) (this.element.querySelector("#walk-steps button") ?? this.element.querySelector("#walk-back")).focus();
    } catch (error) {
      if (!(error instanceof Outdated)) put(this.element, h("p", { class: "error" }, t("refused", { why: error.message })));
    }
  }

  show(path, walk) {
    const name = this.name, step = (shown, to) => h("li", {}, button(said(shown, name), () => this.go(to), { class: "quiet" }));
    const wrong = walk.violates.length > 0;
    put(this.element, h("div", { class: "card walk" },
      h("h2", {}, t("walk.title")),
      h("div", { class: "row" }, h("p", { id: "walk-now", "aria-live": "polite" }, t("walk.taken", { steps: path.length })), h("span", { class: "grow" }),
        button(t("walk.first"), () => this.go([]), { class: "quiet", id: "walk-first", disabled: !path.length }),
        button(t("walk.back"), () => this.go(path.slice(0, -1)), { id: "walk-back", disabled: !path.length }),
        button(t("walk.show"), () => this.draw(path), { id: "walk-show", disabled: !path.length })),
      h("div", { class: "columns" },
        section(t("walk.walked"), h("ol", { id: "walk-walked" }, walk.walked.map((shown, i) => step(shown, path.slice(0, i + 1))))),
        section(t("walk.state"), [
          h("dl", { class: "facts", id: "walk-processes" }, walk.processes.map(({ entry, standing }) => [h("dt", {}, entry.process),
            h("dd", {}, standing ? h("b", {}, t("is." + standing), " ") : null, entry.state ?? (standing ? "" : t("is.idle")))])),
          walk.flights.length ? h("p", { class: "hint", "aria-hidden": "true" }, t("walk.flights")) : null,
          h("ul", { id: "walk-flights", "aria-label": t("walk.flights") }, walk.flights.map(({ entry }) => h("li", {}, `${entry.process} → ${entry.peer}  ${messageText(entry)}`)))]),
        section(t("walk.steps"), [
          h("ol", { id: "walk-steps" }, walk.steps.map((shown, i) => step(shown, [...path, i + 1]))),
          walk.final ? h("p", { class: wrong ? "error" : "hint", id: "walk-end" }, t(walk.steps.length ? "walk.final" : "walk.end"),
            walk.violates.map((property) => " " + t("walk.violates", { property: name(property) }))) : null]))));
  }

  /* The steps as a scenario, which the diagram runs. */
  async draw(path) { await this.open((await command([...this.command(path), "--save-scenario", "-"])).out); }
}
