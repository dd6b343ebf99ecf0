/* Bytes as text, as JSON, as hex, and back. */
const LINE = 16, LINES = 4096, LONGEST = 256 << 10;

export function fromBase64(text) { return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)); }

export function toBase64(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(text);
}

export function isText(bytes) {
  try { new TextDecoder("utf-8", { fatal: true }).decode(bytes); return true; } catch { return false; }
}

export function asText(bytes) { return new TextDecoder("utf-8").decode(bytes); }

/* Whether they are the same after they were text in a field of a form, which has its own ends of lines, and no mark of the byte order. */
export function survivesEditing(bytes) {
  if (!isText(bytes)) return false;
  const again = new TextEncoder().encode(asText(bytes).replace(/\r\n?/g, "\n"));
  return again.length === bytes.length && again.every((byte, i) => byte === bytes[i]);
}

/* Laid out; throws if it is none.  What is nested deeply grows by that, so it is bounded again. */
export function asJson(bytes) { return JSON.stringify(JSON.parse(asText(bytes)), null, 2).slice(0, 2 * LONGEST); }

export function asHex(bytes) {
  const lines = [], hex = (value, digits) => value.toString(16).padStart(digits, "0");
  for (let at = 0; at < bytes.length && lines.length < LINES; at += LINE) {
    const part = [...bytes.subarray(at, at + LINE)];
    const letters = part.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "·")).join("");
    lines.push(`${hex(at, 6)}  ${part.map((byte) => hex(byte, 2)).join(" ").padEnd(3 * LINE)} ${letters}`);
  }
  return lines.join("\n");
}

export function toPairs(bytes) { return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(" "); }

/* The bytes of pairs of digits; null if they are none. */
export function fromPairs(text) {
  const digits = text.replace(/\s+/g, "");
  if (!/^([0-9a-f]{2})*$/i.test(digits)) return null;
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/* As much as a page can show at once. */
export function shown(bytes, as) { return as === "hex" ? bytes.subarray(0, LINE * LINES) : bytes.subarray(0, LONGEST); }
