/* What the program says of algorithms, their options and scenarios, in the reader's language: its JSON and its help are English. */
import { inPortuguese } from "./library.js";
import { language } from "./texts.js";

export function named(text) {
  return language() === "pt" && Object.hasOwn(inPortuguese, text) ? inPortuguese[text] : text;
}
