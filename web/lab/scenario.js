/* A scenario as text: settings, actions in the order of time, and what is expected.  The form, the diagram and the files all
 * change this text, and the program runs it. */

const UNITS = { us: 0.001, ms: 1, s: 1000, min: 60000 };

export function milliseconds(text) {
  const parts = /^([\d.]+)(us|ms|s|min)?$/.exec(text);
  return parts ? Number(parts[1]) * UNITS[parts[2] || "ms"] : 0;
}

/* To the microsecond, as the simulator counts. */
export function duration(ms) {
  const us = Math.max(0, Math.round(ms * 1000));
  return us % 1000 ? (us < 1e6 ? `${us / 1000}ms` : `${us}us`) : `${us / 1000}ms`;
}

export class Scenario {
  constructor(text) { this.lines = text.replace(/\s+$/, "").split("\n"); }

  toString() { return this.lines.join("\n") + "\n"; }

  index(word) { return this.lines.findIndex((line) => line.trim() === word || line.trim().startsWith(word + " ")); }

  /* The value of a setting; "" for a flag that is given; null if it is not there. */
  get(word) {
    const i = this.index(word);
    return i < 0 ? null : this.lines[i].trim().slice(word.length).trim();
  }

  get settings() {
    const found = new Map();
    for (const line of this.lines) {
      const word = line.trim().split(/\s+/)[0];
      if (word && !word.startsWith("#") && !["at", "expect", "title", "servers"].includes(word)) found.set(word, this.get(word));
    }
    return found;
  }

  set(word, value) {
    const i = this.index(word);
    const line = value === null ? null : `${word} ${value}`.trim();
    if (i >= 0 && line === null) this.lines.splice(i, 1);
    else if (i >= 0) this.lines[i] = line;
    else if (line !== null) this.lines.splice(this.settingsEnd(), 0, line);
    return this.changed();
  }

  settingsEnd() {
    const i = this.lines.findIndex((line) => /^\s*(at|expect)\s/.test(line));
    return i < 0 ? this.lines.length : i;
  }

  get actions() {
    return this.lines.map((line, i) => ({ line: i, words: line.trim().split(/\s+/) })).filter(({ words }) => words[0] === "at")
      .map(({ line, words }) => ({ line, time: milliseconds(words[1]), text: words.slice(1).join(" "), what: words.slice(2).join(" ") }));
  }

  /* Actions stay in the order of time, a delay before what sends the message; one of the same message replaces it. */
  act(time, what) {
    const delayed = /^delay (\S+ \S+) \S+ once$/.exec(what);
    if (delayed) {
      const same = this.actions.find((a) => Math.abs(a.time - time) < 5e-4 && a.what.startsWith(`delay ${delayed[1]} `));
      if (same) this.lines.splice(same.line, 1);
    }
    const next = this.actions.find((a) => (delayed ? a.time >= time - 5e-4 : a.time > time));
    const end = this.actions.at(-1);
    const expects = this.lines.findIndex((line) => /^\s*expect\s/.test(line));
    const place = next ? next.line : end ? end.line + 1 : expects < 0 ? this.lines.length : expects;
    this.lines.splice(place, 0, `at ${duration(time)} ${what}`);
    return this.changed();
  }

  withoutLine(line) { this.lines.splice(line, 1); return this.changed(); }

  /* What was expected was expected of another run. */
  changed() {
    this.lines = this.lines.filter((line) => !/^\s*expect\s/.test(line));
    return this;
  }

  get processes() {
    const words = (this.get("processes") || "").split(/\s+/).filter(Boolean);
    return words.length === 1 && /^\d+$/.test(words[0]) ? Number(words[0]) : words.length;
  }

  get title() { return this.get("title") || ""; }
  get algorithm() { return this.get("algorithm") || ""; }
}

/* A new experiment with an algorithm: small enough to be read. */
export function beginning(algorithm, problem) {
  const lines = [`algorithm ${algorithm}`, "processes 4", "seed 1"];
  if (problem === "lock") lines.push("entries 6");
  return lines.join("\n") + "\n";
}
