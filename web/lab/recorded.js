/* The trace of a run that has happened, as `conclave trace merge --trace json` writes it.  It comes from a file, which may hold anything. */
import { has, t } from "./texts.js";

const PROCESSES = 10000, ENTRIES = 1000000, LATEST = 1e12; /* ms */

const isText = (value) => typeof value === "string" && value.length < 10000;
const isIndex = (value) => Number.isSafeInteger(value) && value > 0;
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const unless = (test) => (value) => value === undefined || test(value);
const isPlain = (value) => ["string", "number", "boolean"].includes(typeof value);

/* What an entry has: the name of each part, and what it may be. */
const PARTS = {
  index: isIndex, type: (value) => isText(value) && has("event." + value), time_ms: (value) => Number.isFinite(value) && value >= 0 && value < LATEST,
  process: unless(isText), peer: unless(isText), message: unless(isText), state: unless(isText), arg: unless(isPlain), term: unless(isPlain),
  cause: unless(isIndex), match: unless(isIndex),
  fields: unless((value) => isObject(value) && Object.values(value).every((v) => isPlain(v) || (Array.isArray(v) && v.every(isPlain)))),
};

function refuse(what) { throw new Error(t("recorded.wrong", { what })); }

function checkEntry(entry, i, first, known) {
  if (!isObject(entry)) refuse(`entries[${i}]`);
  for (const [name, test] of Object.entries(PARTS)) if (!test(entry[name])) refuse(`entries[${i}].${name}`);
  if (entry.index !== first + i) refuse(`entries[${i}].index`);
  const peers = ["send", "receive", "lost"].includes(entry.type);
  for (const name of ["process", "peer"]) if (entry[name] === undefined ? peers : !known.has(entry[name])) refuse(`entries[${i}].${name}`);
}

/* Its order is the one of its messages; the clocks of two machines may differ, and what comes later is not drawn before. */
function inOrder(entries) {
  let now = 0;
  return entries.map((entry) => ({ ...entry, time_ms: (now = Math.max(now, entry.time_ms)) }));
}

export function readRecorded(text) {
  let json;
  try { json = JSON.parse(text); } catch (error) { refuse(error.message); }
  const { algorithm, title = "", processes, servers = 0, entries } = json;
  if (!isText(algorithm)) refuse("algorithm");
  if (!isText(title)) refuse("title");
  if (!Array.isArray(processes) || !processes.length || processes.length > PROCESSES || !processes.every(isText) ||
      new Set(processes).size < processes.length) refuse("processes");
  if (!Number.isSafeInteger(servers) || servers < 0 || servers > processes.length) refuse("servers");
  if (!Array.isArray(entries) || entries.length > ENTRIES) refuse("entries");
  const known = new Set(processes);
  entries.forEach((entry, i) => checkEntry(entry, i, entries[0].index, known));
  return { algorithm, title, processes, servers, truncated: Boolean(json.truncated), entries: inOrder(entries) };
}
