/* Who led when: a time line, and the same as a table. */
import { become } from "./become.js";
import { h, s } from "./dom.js";
import { table } from "./plot.js";
import { t } from "./texts.js";
import { duration, moment, whole } from "./units.js";

const HEIGHT = 54, NARROWEST = 3, LETTER = 7, LAST = 5;

/* Terms as parts of a line, each as wide as it was long, but wide enough to be seen. */
function line(terms, from, to) {
  const width = innerWidth > 720 ? 1080 : 370, scale = (width - NARROWEST * terms.length) / Math.max(1, to - from);
  let x = 0;
  const parts = terms.map(({ at, end, term, leader }) => {
    const wide = NARROWEST + Math.max(0, end - at) * scale, left = x, text = leader === null ? "" : `${leader}`, said = t("election.term") + " " + term;
    x += wide;
    return [s("rect", { class: leader === null ? "nobody" : `k${leader % 8}`, x: left, y: 4, width: Math.max(1, wide - 1), height: 24, rx: 2 },
              s("title", {}, `${said}: ${leader ?? t("election.nobody")}, ${moment(at)}`)),
      text.length * LETTER + 6 < wide ? s("text", { class: "inside", x: left + wide / 2, y: 20, "text-anchor": "middle" }, text) : null,
      said.length * LETTER < wide ? s("text", { x: left + wide / 2, y: 42, "text-anchor": "middle" }, said) : null];
  });
  return s("svg", { class: "plot line", viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": t("elections.label", { from: moment(from), count: terms.length }) }, parts);
}

export function elections(element, state) {
  const list = (Array.isArray(state.elections) ? state.elections : []).filter((e) => typeof e?.at_ms === "number");
  const terms = list.map((e, i) => ({ at: e.at_ms, end: list[i + 1]?.at_ms ?? Math.max(state.time_ms, e.at_ms), term: e.term, leader: typeof e.leader === "number" ? e.leader : null }));
  if (!terms.length) return become(element, h("h2", {}, t("elections")), h("p", {}, t("elections.none")));
  const rows = terms.map(({ at, end, term, leader }) => [whole(term), leader === null ? t("election.nobody") : String(leader), moment(at), duration(end - at)]).reverse();
  const head = ["term", "leader", "at", "lasted"].map((name) => t("election." + name));
  become(element, h("h2", {}, t("elections")), line(terms, terms[0].at, state.time_ms), table(head, rows.slice(0, LAST), [3]),
    rows.length > LAST ? h("details", {}, h("summary", {}, t("election.all", { count: rows.length })), table(head, rows, [3])) : null);
}
