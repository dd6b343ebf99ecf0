/* The last minutes as curves. */
import { h } from "./dom.js";
import { plot } from "./plot.js";
import { t } from "./texts.js";

const CHARTS = [
  { name: "requests", unit: "chart.per-second", curves: ["reads", "writes"] },
  { name: "latency", unit: "chart.microseconds", curves: ["p50", "p99", "p999"], log: true, quiet: true },
  { name: "traffic", unit: "chart.kib", curves: ["in", "out"], per: 1024 },
];

function chart({ name, unit, curves, log, per = 1, quiet }, history, now) {
  const made = curves.map((curve) => ({ name: t("chart." + curve), dots: false,
    points: history.filter((p) => p[curve] !== null && (!log || p[curve] > 0)).map((p) => [Math.min(0, p.at - now), p[curve] / per]) }));
  const drawn = made.filter((c) => c.points.length > 1);
  const from = Math.min(-10, history.length ? history[0].at - now : 0);
  const body = drawn.length
    ? plot({ curves: drawn, yLog: log, xLabel: t("chart.time"), title: t("chart." + name), xRange: [from, 0], yLeast: 1, width: innerWidth > 720 ? 400 : 370, height: 200 })
    : h("p", { class: "hint" }, t(history.length > 5 && quiet ? "chart.quiet" : "chart.wait"));
  return h("div", { class: "card", id: "chart-" + name }, h("h2", {}, t("chart." + name), h("small", {}, t(unit))), body);
}

export function charts(history) {
  const now = history.length ? history.at(-1).at : 0;
  return CHARTS.map((one) => chart(one, history, now));
}
