/* The commands of the laboratory: words in, reports out.  One runs at a time; who asks again for the same purpose takes the
 * place of the one that waits. */
import { createEngine } from "./engine.js";
import { language } from "./texts.js";

const engine = createEngine();
let last = Promise.resolve();
const newest = new Map();
const remembered = new Map();

export class Outdated extends Error {}
export class Refused extends Error {}

function once(words, files, options) {
  const turn = last.then(() => engine.run(words, files, options || {}));
  last = turn.catch(() => {});
  return turn;
}

/* Runs a command; `purpose` lets a later call take its place.  Status 0 and 1 are answers, others are errors. */
export async function command(words, { files = {}, purpose, onProgress, all } = {}) {
  const ticket = {};
  if (purpose) newest.set(purpose, ticket);
  await last;
  if (purpose && newest.get(purpose) !== ticket) throw new Outdated();
  const result = await once(words, files, { onProgress });
  if (purpose && newest.get(purpose) !== ticket) throw new Outdated();
  if (result.status > 1 && !all) throw new Refused(complaint(result));
  return result;
}

function complaint(result) {
  const line = (result.err || result.out || "").trim().split("\n")[0] || `status ${result.status}`;
  return line.replace(/^conclave: /, "").replace(/^run\.scenario:(\d+): /, "$1: ");
}

export function cancel() { engine.cancel(); }

export async function json(words, options) { return JSON.parse((await command(words, options)).out); }

/* What never changes is asked for once. */
export async function knowledge(words, parse = JSON.parse) {
  const key = words.join(" ");
  if (!remembered.has(key)) remembered.set(key, command(words).then((result) => parse(result.out)));
  try {
    return await remembered.get(key);
  } catch (error) {
    remembered.delete(key);
    throw error;
  }
}

export function inLanguage(words) { return language() === "en" ? words : [...words, "--lang", language()]; }

export function catalogue() { return knowledge(["list", "--json"]); }

/* The settings that fit an algorithm: name -> {value, text, group}, from its help. */
export function settings(algorithm) {
  return knowledge(["sim", algorithm, "--help"], (text) => {
    const found = new Map();
    let group = "", at = null;
    for (const line of text.split("\n")) {
      const heading = /^ (\S.*):$/.exec(line), option = /^ {2,6}(?:-\w, +)?--([a-z-]+)(?:=(\S+))?\s*(.*)$/.exec(line);
      if (heading) { group = heading[1]; at = null; }
      else if (option) { at = { value: option[2], text: option[3].trim(), group }; found.set(option[1], at); }
      else if (at && /^ {20}/.test(line)) at.text += (at.text ? " " : "") + line.trim();
    }
    for (const setting of found.values()) {
      const given = /^(.*) \(([^()]*)\)$/.exec(setting.text);
      if (given) { setting.text = given[1]; setting.otherwise = given[2]; }
    }
    return found;
  });
}

/* A run of a scenario: its trace, its report, and the report as it is printed. */
export async function simulate(text, purpose = "simulate") {
  const files = { "run.scenario": text };
  const words = ["sim", "--scenario", "run.scenario"];
  const traced = await command([...words, "--trace", "json"], { files, purpose });
  const report = await json([...words, "--json"], { files, purpose });
  const printed = language() === "en" ? traced.err : (await command(inLanguage(words), { files, purpose })).out;
  return { trace: JSON.parse(traced.out), report, lines: reportLines(printed, report.trace_hash), verdicts: verdictLines(printed, report) };
}

/* `  name    value`, as printed: values begin in one column, which the hash shows, unless a name is longer. */
function reportLines(text, hash) {
  const lines = text.split("\n").filter((line) => /^ {2}\S/.test(line));
  const column = lines.map((line) => line.indexOf(hash)).find((at) => at > 0) || 23;
  return lines.map((line) => {
    const at = line[column - 1] === " " ? column : line.indexOf(" ", column) + 1 || line.length;
    return [line.slice(2, at).trim(), line.slice(at).trim()];
  });
}

/* The judges' lines end before the one with the trace's hash; they come in the order of the report. */
function verdictLines(text, report) {
  const lines = reportLines(text, report.trace_hash);
  const names = Object.keys(report.verdicts).filter((name) => typeof report.verdicts[name] === "string");
  const end = lines.findIndex(([, value]) => value.startsWith(report.trace_hash));
  const fits = end >= names.length;
  return names.map((name, i) => {
    const line = fits ? lines[end - names.length + i] : null;
    const said = line ? line[1].replace(/^[^:]*?: /, "") : "";
    return { name, value: report.verdicts[name], at: report.verdicts.at[name], label: line ? line[0] : name,
             sentence: line && line[1].includes(": ") ? said : report.verdicts.why[name] || "" };
  });
}
