/* Who waits for whom, as a graph: those who wait on the left, whom they wait for on the right.  A circle is red. */
import { list, where, who } from "./contender.js";
import { h, s } from "./dom.js";
import { t } from "./texts.js";

const MOST = 40, WIDE = 168, HIGH = 40, ACROSS = 90, DOWN = 22, BELOW = 34, LETTERS = 20, SENTENCES = 200;

/* Names of all who hold or wait, by their session. */
function people(locks) {
  const found = new Map();
  for (const lock of locks) for (const one of [...list(lock.holders), ...list(lock.queue)]) if (one.session) found.set(String(one.session), one);
  return found;
}

function cut(text, most = LETTERS) { return text.length > most ? text.slice(0, most - 1) + "…" : text; }

/* Each pair once: whoever waits at a lock waits for many there.  Without a lock one waits for what its command has
 * started, if it is there at all. */
function edgesOf(answer, named) {
  const wrong = list(answer.deadlocks).map((circle) => list(circle).map(String)), seen = new Map();
  for (const wait of answer.waits) {
    const from = String(wait?.from), to = String(wait?.to), key = JSON.stringify([from, to]);
    if (wait.lock === null && !named.has(from)) continue;
    if (!seen.has(key)) seen.set(key, { from, to, locks: new Set(), wrong: wrong.some((circle) => circle.includes(from) && circle.includes(to)) });
    if (wait.lock !== null) seen.get(key).locks.add(String(wait.lock));
  }
  return [...seen.values()].sort((a, b) => b.wrong - a.wrong);
}

/* How far each is from the right: one more than whomever it waits for; a circle is broken where it was entered last. */
function columns(names, edges) {
  const next = new Map(names.map((name) => [name, []])), column = new Map(), open = new Set();
  for (const { from, to } of edges) next.get(from).push(to);
  const visit = (name) => {
    if (column.has(name)) return column.get(name);
    if (open.has(name)) return -1;
    open.add(name);
    const far = Math.max(-1, ...next.get(name).map(visit)) + 1;
    open.delete(name);
    column.set(name, far);
    return far;
  };
  names.forEach(visit);
  return column;
}

function arrow(edge, places) {
  const a = places.get(edge.from), b = places.get(edge.to), back = b[0] <= a[0];
  const [x1, y1] = [a[0] + WIDE, a[1] + HIGH / 2], [x2, y2] = [b[0], b[1] + HIGH / 2];
  /* What goes back goes below both, so that it is not taken for the other way. */
  const low = Math.max(a[1], b[1]) + HIGH + BELOW, label = cut([...edge.locks].join(", ") || t("waits.command"));
  const d = back ? `M${a[0] + WIDE / 2} ${a[1] + HIGH}C${a[0] + WIDE / 2} ${low} ${b[0] + WIDE / 2} ${low} ${b[0] + WIDE / 2} ${b[1] + HIGH + 3}`
                 : `M${x1} ${y1}C${x1 + ACROSS / 2} ${y1} ${x2 - ACROSS / 2} ${y2} ${x2 - 3} ${y2}`;
  const [x, y] = back ? [(a[0] + b[0] + WIDE) / 2, low - 12] : [(x1 + x2) / 2, (y1 + y2) / 2 - 5];
  return [s("path", { class: `wait${edge.wrong ? " wrong" : ""}`, d, "marker-end": edge.wrong ? "url(#head-wrong)" : "url(#head)" }),
    s("text", { class: edge.wrong ? "wrong" : null, x, y, "text-anchor": "middle" }, label)];
}

function head(id) {
  return s("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto-start-reverse" }, s("path", { d: "M0 0L8 4L0 8z" }));
}

/* Deadlocks in a sentence each: nobody has to find them in a picture. */
export function circles(answer) {
  const named = people(answer.locks);
  return list(answer.deadlocks).map((circle) => h("p", { class: "error deadlock" }, t("deadlock"), " ",
    h("b", {}, list(circle).map((id) => (named.has(String(id)) ? who(named.get(String(id))) : String(id))).join(" → "))));
}

/* Those who have to do with each other, one such group below the other; circles first, since edges with them are. */
function groups(names, edges) {
  const group = new Map(names.map((name) => [name, new Set([name])]));
  for (const { from, to } of edges) {
    const a = group.get(from), b = group.get(to);
    if (a !== b) for (const name of b) { a.add(name); group.set(name, a); }
  }
  return [...new Set(group.values())].map((members) => names.filter((name) => members.has(name)));
}

/* Where each is drawn, and how much room that takes. */
function place(names, edges) {
  const places = new Map();
  let top = 2, width = 0;
  for (const members of groups(names, edges)) {
    const inside = edges.filter((e) => members.includes(e.from)), column = columns(members, inside), furthest = Math.max(...column.values()), filled = [];
    for (const id of members) {
      const at = furthest - column.get(id);
      filled[at] = (filled[at] ?? 0) + 1;
      places.set(id, [2 + at * (WIDE + ACROSS), top + (filled[at] - 1) * (HIGH + DOWN)]);
    }
    const back = inside.some((e) => column.get(e.from) <= column.get(e.to));
    width = Math.max(width, 4 + (furthest + 1) * WIDE + furthest * ACROSS);
    top += Math.max(...filled) * (HIGH + DOWN) + (back ? BELOW - DOWN + 12 : 0);
  }
  return { places, width, height: top - DOWN + 6 };
}

export function drawing(answer) {
  const named = people(answer.locks), edges = edgesOf(answer, named), all = [...new Set(edges.flatMap((e) => [e.from, e.to]))];
  if (!edges.length) return h("p", { class: "hint" }, t("waits.none"));
  const name = (id) => (named.has(id) ? who(named.get(id)) : id), names = all.slice(0, MOST), drawn = edges.filter((e) => names.includes(e.from) && names.includes(e.to));
  const { places, width, height } = place(names, drawn), stuck = new Set(drawn.filter((e) => e.wrong).flatMap((e) => [e.from, e.to]));
  const box = (id) => {
    const [x, y] = places.get(id), one = named.get(id);
    return s("g", { class: stuck.has(id) ? "wrong" : null, "data-contender": id }, s("title", {}, `${name(id)} ${one ? where(one) : ""}`),
      s("rect", { x, y, width: WIDE, height: HIGH, rx: 6 }), s("text", { class: "who", x: x + 10, y: y + 17 }, cut(name(id))),
      s("text", { x: x + 10, y: y + 32 }, cut(one ? where(one) : "", LETTERS + 6)));
  };
  const label = t("waits.label", { count: new Set(edges.map((e) => e.from)).size, circles: list(answer.deadlocks).length });
  const svg = s("svg", { class: "plot graph", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label },
    s("defs", {}, head("head"), head("head-wrong")), drawn.map((edge) => arrow(edge, places)), names.map(box));
  const sentence = (e) => h("li", {}, t(e.locks.size ? "waits.sentence" : "waits.for-command", { from: name(e.from), to: name(e.to), lock: [...e.locks].join(", ") }));
  return [h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t("waits") }, svg),
    all.length > names.length ? h("p", { class: "hint" }, t("waits.left-out", { count: all.length - names.length })) : null,
    h("details", {}, h("summary", {}, t("waits.words")), h("ul", {}, edges.slice(0, SENTENCES).map(sentence)))];
}
