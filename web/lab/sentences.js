/* Entries of a trace as sentences. */
import { messageText } from "./drawing.js";
import { has, t } from "./texts.js";

export function sentence(entry) {
  const values = { process: entry.process, peer: entry.peer, message: entry.message ? messageText(entry) : "", arg: entry.arg ?? "",
                   term: entry.term ?? "" };
  let key = "event." + entry.type;
  if (entry.type === "recover" && entry.arg) key = "event.recover.amnesia";
  if (entry.type === "enter" && entry.arg) key = "event.enter.token";
  if (entry.type === "elected" && entry.term) key = "event.elected.term";
  if (entry.type === "lost") [values.process, values.peer] = [entry.peer, entry.process];
  return has(key) ? t(key, values) : entry.type;
}

export function clock(ms) { return `${ms.toFixed(3)} ms`; }

/* A sentence with its time and the state after it. */
export function record(entry) {
  const state = entry.state ? `   [${entry.state}]` : "";
  return `${clock(entry.time_ms)}  ${sentence(entry)}${state}`;
}
