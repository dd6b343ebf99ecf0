/* Exercises, graded by the simulator and the checker. */
import { button, field, h, put } from "./dom.js";
import { command, inLanguage, knowledge } from "./laboratory.js";
import { language, t } from "./texts.js";

const KINDS = ["number", "text", "scenario", "lock", "election"];

/* The printed list: topics, and indented lines of a name, a kind and a title. */
function parseList(text) {
  const topics = [];
  for (const line of text.split("\n")) {
    const entry = /^ {2}(\S+) +(\S+) +(\S.*)$/.exec(line);
    if (entry) topics.at(-1).exercises.push({ name: entry[1], kind: entry[2], title: entry[3] });
    else if (/^\S/.test(line) && !line.startsWith("'")) topics.push({ topic: line.trim(), exercises: [] });
  }
  return topics.filter((topic) => topic.exercises.length);
}

class ExercisesView {
  constructor(element, page, topics, english) {
    Object.assign(this, { page });
    const kinds = new Map(english.flatMap((topic) => topic.exercises).map((e) => [e.name, e.kind]));
    this.index = h("div", { class: "index", role: "navigation", "aria-label": t("view.exercises") });
    this.article = h("article", { class: "card", id: "exercise" });
    put(element, h("header", {}, h("h1", {}, t("exercises.title")), h("p", { class: "lead" }, t("exercises.lead"))), h("div", { class: "split" }, this.index, this.article));
    put(this.index, topics.map((topic) => [h("h3", {}, topic.topic),
      topic.exercises.map((e) => button(e.title, () => this.open(e, kinds.get(e.name)), { "data-name": e.name }))]));
    const first = topics.flatMap((topic) => topic.exercises).find((e) => ["number", "text"].includes(kinds.get(e.name)));
    this.open(first, kinds.get(first.name));
  }

  async open(exercise, kind) {
    for (const b of this.index.querySelectorAll("button")) b.toggleAttribute("aria-current", b.dataset.name === exercise.name);
    const text = await knowledge(inLanguage(["exercise", exercise.name]), (out) => out);
    const question = text.split("\n").filter((line) => !/conclave exercise /.test(line)).join("\n").trim();
    const title = question.split("\n")[0];
    this.answerBox = h("div", { "aria-live": "polite", id: "exercise-result" });
    put(this.article, h("h1", {}, title), h("p", { class: "prose" }, question.slice(title.length).trim().replace(/(\S)\n(?=\S)/g, "$1 ")),
      this.form(exercise, KINDS.includes(kind) ? kind : "text"), this.answerBox);
    this.hints = 0;
  }

  form(exercise, kind) {
    const more = h("div", { class: "row" }, button(t("exercise.hint"), () => this.say(["exercise", exercise.name, `--hint=${++this.hints}`]), { class: "quiet" }),
      button(t("exercise.solution"), () => this.say(["exercise", exercise.name, "--solution"]), { class: "quiet" }));
    if (kind === "lock" || kind === "election")
      return [h("p", { class: "lead" }, t("exercise.code")), h("pre", { class: "text" }, `conclave exercise ${exercise.name} --start mine`), more];
    const scenario = kind === "scenario";
    const input = scenario ? h("textarea", { rows: 12, spellcheck: "false", id: "exercise-answer" }) : h("input", { type: "text", id: "exercise-answer", autocomplete: "off" });
    if (scenario) this.begin(exercise, input);
    const form = h("form", { onsubmit: (event) => { event.preventDefault(); this.grade(exercise, input.value.trim(), scenario); } },
      field(t(scenario ? "exercise.scenario" : "exercise.answer"), input),
      h("div", { class: "row" }, h("button", { type: "submit", class: "primary", id: "exercise-grade" }, t("exercise.grade")),
        scenario ? button(t("exercise.show"), () => this.page.open(input.value), { class: "quiet" }) : null));
    return [form, more];
  }

  /* What the exercise gives to begin with, or else what is in the diagram. */
  async begin(exercise, input) {
    const result = await command(["exercise", exercise.name, "--start", "mine"], { all: true });
    const [given] = Object.entries(result.files || {}).filter(([name]) => name.endsWith(".scenario")).map(([, text]) => text);
    if (!input.value) input.value = given ?? this.page.run.scenario.toString();
  }

  async grade(exercise, answer, scenario) {
    if (!answer) return;
    const files = scenario ? { "answer.scenario": answer + "\n" } : {};
    await this.say(["exercise", exercise.name, "--answer", scenario ? "answer.scenario" : answer], files, true);
  }

  async say(words, files = {}, graded) {
    const result = await command(inLanguage(words), { files, all: true });
    const text = (result.out + (result.status > 1 ? result.err : "")).trim();
    put(this.answerBox, h("pre", { class: "text " + (graded ? (result.status === 0 ? "right-answer" : "wrong-answer") : "") }, text));
  }
}

export async function exercisesView(element, page) {
  const english = await knowledge(["exercise"], parseList);
  return new ExercisesView(element, page, language() === "en" ? english : await knowledge(inLanguage(["exercise"]), parseList), english);
}
