/* The page in the reader's language: one table for each. */
import { english } from "./texts.en.js";
import { portuguese } from "./texts.pt.js";

const tables = { en: english, pt: portuguese };
let table = english;
let current = "en";

export function setLanguage(name) {
  current = Object.hasOwn(tables, name) ? name : "en";
  table = tables[current];
  document.documentElement.lang = current;
}

export function language() { return current; }

/* What the browser asks for. */
export function preferred() { return (navigator.language || "en").startsWith("pt") ? "pt" : "en"; }

/* The text of a key, with {name} replaced. */
export function t(key, values) {
  const text = table[key] ?? english[key] ?? key;
  return values ? text.replace(/\{(\w+)\}/g, (whole, name) => (Object.hasOwn(values, name) ? String(values[name]) : whole)) : text;
}

export function has(key) { return Object.hasOwn(table, key); }

/* Numbers as people write them. */
export function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e9)) {
    const power = Math.floor(Math.log10(size));
    return `${new Intl.NumberFormat(current, { maximumFractionDigits: 2 }).format(value / 10 ** power)} × 10${superscript(power)}`;
  }
  return new Intl.NumberFormat(current, { maximumSignificantDigits: Math.max(digits, Math.ceil(Math.log10(size + 1))) }).format(value);
}

function superscript(power) { return String(power).replace(/./g, (d) => ({ "-": "⁻" })[d] || "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]); }
