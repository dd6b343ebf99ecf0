/* What the shown state of a process says of its queue and of the token. */

/* Those that wait at a process, first come first: "queue=[p4, p2]"; a time stamp after a name is left out. */
export function queueOf(note) {
  const list = /\b(?:queue|queued|watchers|nodes)=\[([^\]]*)\]/.exec(note);
  return list && list[1] ? list[1].split(", ").map((name) => name.replace(/:\d+$/, "")) : [];
}

/* In a tree the token is at the process that points to itself. */
export function hasToken(note, name) {
  return /\bhere=token\b/.test(note) || /\btoward=(\S+)/.exec(note)?.[1] === name;
}

/* A name in a small disc: its number, or how it begins. */
export function shortName(name) { return /\d{1,3}$/.exec(name)?.[0] ?? name.slice(0, 2); }
