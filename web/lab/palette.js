/* The colours of the pictures, from the style sheet: it has them for light and for dark. */
const NAMES = ["paper", "ink", "soft", "faint", "grid", "waits", "inside", "asks", "leads", "follows", "wrong", "split", "accent"];

/* Messages, by kind: as in the pictures that the program draws. */
const KINDS = 8;

export function palette() {
  const style = getComputedStyle(document.documentElement);
  const colours = {};
  for (const name of NAMES) colours[name] = style.getPropertyValue("--" + name).trim();
  colours.kinds = [];
  for (let i = 0; i < KINDS; i++) colours.kinds.push(style.getPropertyValue("--kind" + i).trim());
  return colours;
}
