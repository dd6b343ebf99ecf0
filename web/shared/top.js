/* The head of a page: its name, its views, its language. */
import { byId, h, put, select } from "./dom.js";
import { language, t } from "./texts.js";

/* subtitle: what the page is of; views: their names; skipTo: acts for whoever wants to pass over the head; show: opens a view;
   speak: changes the language; more: what else belongs here.  Returns the links, by name. */
export function top({ subtitle, views, skipTo, show, speak, more = [] }) {
  const link = (name) => h("a", { href: "#", id: "to-" + name, onclick: (event) => { event.preventDefault(); show(name); } }, t("view." + name));
  const links = new Map(views.map((name) => [name, link(name)]));
  put(byId("top"), h("a", { class: "skip", href: "#views", onclick: (event) => { event.preventDefault(); skipTo(); } }, t("skip")),
    h("div", { class: "brand" }, h("i", { class: "mark", "aria-hidden": "true" }), h("strong", {}, "Conclave"), h("span", {}, subtitle)),
    h("nav", { "aria-label": t("views") }, [...links.values()]),
    h("div", { class: "row" }, more, select([["en", "English"], ["pt", "Português"]], language(), speak, { id: "language", "aria-label": t("language") })));
  document.title = `Conclave: ${subtitle}`;
  return links;
}

/* One of them is seen, in the element that has its name; the others are hidden. */
export function turnTo(links, name) {
  for (const [other, a] of links) {
    byId("view-" + other).hidden = other !== name;
    if (other === name) { a.setAttribute("aria-current", "page"); a.scrollIntoView({ block: "nearest", inline: "nearest" }); }
    else a.removeAttribute("aria-current");
  }
}
