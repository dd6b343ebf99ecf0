/* Times and sizes as people write them. */
import { language, number, t } from "./texts.js";

export function duration(ms) {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "–";
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${number(Math.round(seconds * 10) / 10)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]], first = parts.findIndex(([size]) => seconds >= size);
  const [size, unit] = parts[first], [smaller, smallUnit] = parts[first + 1];
  return `${Math.floor(seconds / size)} ${unit} ${Math.floor((seconds % size) / smaller)} ${smallUnit}`;
}

export function microseconds(us) { return us === null || us === undefined ? "–" : us < 1000 ? `${number(us)} µs` : duration(us / 1000); }

export function bytes(count) {
  if (count === null || count === undefined || !Number.isFinite(count)) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let power = 0;
  while (count >= 1024 && power < units.length - 1) { count /= 1024; power++; }
  return `${number(Math.round(count * 10) / 10)} ${units[power]}`;
}

export function whole(count) {
  return typeof count === "number" && Number.isFinite(count) ? new Intl.NumberFormat(language()).format(count) : "–";
}

export function moment(ms) {
  const date = new Date(ms);
  if (!ms || Number.isNaN(date.getTime())) return "–";
  return new Intl.DateTimeFormat(language(), { dateStyle: "medium", timeStyle: "medium" }).format(date);
}

export function yesNo(value) { return t(value ? "yes" : "no"); }
