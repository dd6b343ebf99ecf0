/* The algorithm's rules beside the source that implements them; the lines that handle an event light up. */
import { h, put } from "./dom.js";
import { inLanguage, knowledge } from "./laboratory.js";
import { sources } from "./library.js";
import { t } from "./texts.js";

/* What the source calls the events that are not messages, and the effects. */
const EVENTS = { ask: "CV_ACQUIRE", done: "CV_RELEASE", campaign: "CV_CAMPAIGN", timer: "CV_TIMEOUT", recover: "CV_RESTART", start: "CV_START",
                 suspect: "CV_DOWN", trust: "CV_UP", choice: "CV_CHOICE" };
const EFFECTS = { enter: "CV_ENTERED", leave: "CV_LEFT", elected: "CV_ELECTED", follows: "CV_FOLLOWS", leaderless: "CV_LEADERLESS" };

function symbol(message) { return message.replace(/-/g, "_"); }

/* A source: its lines, and where each of its functions is. */
class Source {
  constructor(text) {
    this.lines = text.replace(/^\n+|\n+$/g, "").split("\n");
    this.functions = new Map();
    let name = null, start = 0;
    this.lines.forEach((line, i) => {
      const head = /^(?!#|enum|CV_|typedef)[a-z][\w *]*?\b(\w+)\(/.exec(line);
      if (head && !line.endsWith(";")) { name = head[1]; start = i; }
      if (name && (line === "}" || (i === start && line.endsWith("}")))) { this.functions.set(name, [start, i]); name = null; }
    });
  }

  within(i) { return [...this.functions.values()].some(([from, to]) => from <= i && i <= to); }

  /* The lines that ask for this event, and the functions that they call. */
  handling(entry) {
    const lit = new Set();
    const kind = entry.message ? symbol(entry.message) : null;
    const pattern = entry.type === "receive" && kind ? new RegExp(`(kind == |case )${kind}\\b`)
      : EVENTS[entry.type] ? new RegExp(`\\b${EVENTS[entry.type]}\\b`) : null;
    if (!pattern) return lit;
    this.lines.forEach((line, i) => {
      if (!pattern.test(line) || !this.within(i)) return;
      for (let k = i; k < this.lines.length && k <= i + 3; k++) {
        if (k > i && /^\s*(\} else|\}|case |if |default)/.test(this.lines[k])) break;
        lit.add(k);
        this.light(this.lines[k], lit);
        if (k === i && /;\s*(\/\*.*)?$/.test(line)) break;
      }
    });
    return lit;
  }

  light(line, lit) {
    for (const [, name] of line.matchAll(/\b([a-z]\w*)\(/g)) {
      const range = this.functions.get(name);
      if (range && name !== "step") for (let i = range[0]; i <= range[1]; i++) lit.add(i);
    }
  }

  /* Of the lines that handle the cause, those that have this effect. */
  effects(entry, lit) {
    const word = entry.type === "send" && entry.message ? new RegExp(`cv_send.*\\b${symbol(entry.message)}\\b`)
      : EFFECTS[entry.type] ? new RegExp(`\\b${EFFECTS[entry.type]}\\b`) : null;
    return new Set(word ? this.lines.flatMap((line, i) => (word.test(line) && (lit.has(i) || this.within(i)) ? [i] : [])) : []);
  }
}

export class SourceView {
  constructor() {
    this.rules = h("pre", { class: "text rules" });
    this.code = h("div", { class: "code", tabindex: 0, role: "region", "aria-label": t("source.label") });
    this.file = h("code", {});
    this.element = h("details", { class: "card", id: "source", ontoggle: () => this.follow(this.trace, this.count) },
      h("summary", {}, t("source")), this.file, h("div", { class: "halves" }, this.rules, this.code));
  }

  async show(algorithm) {
    if (this.algorithm === algorithm) return;
    this.algorithm = algorithm;
    const found = Object.entries(sources).find(([, text]) => text.includes(`.name = "${algorithm}"`));
    this.element.hidden = !found;
    if (!found) return;
    this.source = new Source(found[1]);
    this.file.textContent = found[0];
    put(this.code, this.source.lines.map((line) => h("div", {}, line || " ")));
    const text = await knowledge(inLanguage(["explain", algorithm]), (out) => out);
    if (this.algorithm === algorithm) this.rules.textContent = text;
  }

  follow(trace, count) {
    Object.assign(this, { trace, count });
    if (!this.element.open || !this.source || !trace || !count) return;
    const entry = trace.entries[count - 1];
    const own = this.source.handling(entry), cause = entry.cause ? trace.at(entry.cause) : -1;
    const lit = own.size || cause < 0 || entry.type === "receive" ? own : this.source.handling(trace.entries[cause]);
    const strong = this.source.effects(entry, lit);
    [...this.code.children].forEach((line, i) => { line.className = strong.has(i) ? "lit strong" : lit.has(i) ? "lit" : ""; });
    const first = Math.min(...(strong.size ? strong : lit));
    if (Number.isFinite(first)) this.code.scrollTop = this.code.children[first].offsetTop - this.code.offsetTop - 60;
  }
}
