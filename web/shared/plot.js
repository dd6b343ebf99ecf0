/* Plots as SVG: curves over linear or logarithmic axes. */
import { h, s } from "./dom.js";
import { number } from "./texts.js";

const WIDE = 760, NARROW = 440, TALL = 380, LEFT = 64, TOP = 16, BOTTOM = 44; /* what is scaled down cannot be read */
const LETTER = 6.4; /* the width of one, about */

function ticks(low, high, log, whole) {
  if (log) {
    const out = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) out.push(10 ** power);
    return out.length > 9 ? out.filter((_, i) => i % Math.ceil(out.length / 8) === 0) : out;
  }
  const raw = Math.max((high - low) / 6 || 1, whole ? 1 : 0), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= raw);
  const out = [];
  for (let v = Math.ceil(low / step) * step; v <= high + 1e-12; v += step) out.push(v);
  return out;
}

function scale(low, high, from, to, log) {
  const f = log ? Math.log10 : (v) => v;
  const a = f(low), b = f(high) || 1;
  return (v) => from + ((f(v) - a) / (b - a || 1)) * (to - from);
}

/* curves: [{name, points: [[x, y]], thin, dots}]; sticks: [[x, text]] are vertical lines; xRange, width and height, if
   not the usual ones; yLeast is how high the axis is when all is low. */
export function plot({ curves, xLog, yLog, xLabel, yLabel, sticks = [], title, yMax, yLeast = 1e-12, xWhole, xRange, width, height: HEIGHT = TALL }) {
  const points = curves.flatMap((c) => c.points).filter(([x, y]) => (!xLog || x > 0) && (!yLog || y > 0));
  const xs = points.map((p) => p[0]), ys = points.map((p) => p[1]);
  const [x0, x1] = xRange ?? [Math.min(...xs), Math.max(...xs)], y0 = yLog ? Math.min(...ys) : 0, y1 = Math.min(yMax ?? Infinity, Math.max(...ys, yLog ? 0 : yLeast));
  const WIDTH = width ?? (innerWidth > 720 ? WIDE : NARROW), RIGHT = 20 + LETTER * Math.max(...curves.map((c) => c.name.length));
  const X = scale(x0, x1, LEFT, WIDTH - RIGHT, xLog), Y = scale(y0, y1, HEIGHT - BOTTOM, TOP, yLog);
  const inside = (v, a, b) => v >= a * (1 - 1e-9) - 1e-12 && v <= b * (1 + 1e-9);
  const grid = [
    ticks(x0, x1, xLog, xWhole).filter((v) => inside(v, x0, x1)).map((v) => [s("line", { class: "grid", x1: X(v), x2: X(v), y1: TOP, y2: HEIGHT - BOTTOM }),
      s("text", { x: X(v), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, number(v))]),
    ticks(y0, y1, yLog).filter((v) => inside(v, y0, y1)).map((v) => [s("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: Y(v), y2: Y(v) }),
      s("text", { x: LEFT - 8, y: Y(v) + 4, "text-anchor": "end" }, number(v))]),
  ];
  const labels = curves.map((c, i) => ({ i, name: c.name, y: Y(Math.min(c.points.at(-1)[1], y1)) })).filter((l) => l.name).sort((a, b) => a.y - b.y);
  for (let i = 1; i < labels.length; i++) labels[i].y = Math.max(labels[i].y, labels[i - 1].y + 13);
  const over = labels.length ? labels.at(-1).y - (HEIGHT - BOTTOM + 4) : 0;
  if (over > 0) for (const l of labels) l.y -= over;
  return s("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title || yLabel },
    grid, s("path", { class: "axis", fill: "none", d: `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}` }),
    curves.map((c, i) => {
      const at = c.points.filter(([x, y]) => (!xLog || x > 0) && (!yLog || y > 0) && y <= y1 * 1.0001).map(([x, y]) => [X(x), Y(y)]);
      return [s("path", { class: `curve s${i % 8}${c.thin ? " thin" : ""}`, d: at.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("") }),
        c.dots === false ? null : at.map(([x, y]) => s("circle", { class: `d${i % 8}`, cx: x.toFixed(1), cy: y.toFixed(1), r: 2.6 }))];
    }),
    labels.map((l) => s("text", { class: `d${l.i % 8}`, x: WIDTH - RIGHT + 8, y: l.y + 4 }, l.name)),
    sticks.map(([x, text], i) => [s("line", { class: "stick", x1: X(x), x2: X(x), y1: TOP, y2: HEIGHT - BOTTOM }),
      s("text", { x: X(x) + 5, y: TOP + 12 + 14 * i }, text)]),
    s("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, xLabel), yLabel ? s("text", { x: 4, y: 12 }, yLabel) : null);
}

/* The same numbers as a table, for those who read them. */
export function table(head, rows, numeric = []) {
  return h("div", { class: "scroll" }, h("table", { class: "table" },
    h("thead", {}, h("tr", {}, head.map((text, i) => h("th", { scope: "col", class: numeric.includes(i) ? "number" : null }, text)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, i) => h("td", { class: numeric.includes(i) ? "number" : null }, cell)))))));
}
