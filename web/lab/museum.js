/* The museum of faults: what happened, the edit, and where it can be seen. */
import { button, h, put } from "./dom.js";
import { command, knowledge } from "./laboratory.js";
import { scenarios } from "./library.js";
import { t } from "./texts.js";

class MuseumView {
  constructor(element, page, exhibits) {
    this.page = page;
    this.index = h("div", { class: "index", role: "navigation", "aria-label": t("view.museum") });
    this.article = h("article", { class: "card", id: "exhibit" });
    put(element, h("header", {}, h("h1", {}, t("museum.title")), h("p", { class: "lead" }, t("museum.lead"))), h("div", { class: "split" }, this.index, this.article));
    const rooms = [...new Set(exhibits.map((e) => e.room))];
    put(this.index, rooms.map((room) => [h("h3", {}, room), exhibits.filter((e) => e.room === room).map((e) => button(e.title, () => this.open(e), { "data-name": e.name }))]));
    this.open(exhibits.find((e) => e.name === "bully-split-brain") || exhibits[0]);
  }

  open(exhibit) {
    for (const b of this.index.querySelectorAll("button")) b.toggleAttribute("aria-current", b.dataset.name === exhibit.name);
    put(this.article, h("h1", {}, exhibit.title), h("p", { class: "prose" }, exhibit.story.replace(/\n/g, " ")), h("p", { class: "hint" }, exhibit.reference),
      exhibit.edit ? [h("h2", {}, t("museum.edit")), h("pre", { class: "text" }, `${exhibit.file}\n${exhibit.edit}`)] : null,
      h("h2", {}, t("museum.finds")), h("pre", { class: "text" }, `$ ${exhibit.run}\n  … ${exhibit.says} …`),
      h("div", { class: "row" }, this.example(exhibit.run, t("museum.see"), !exhibit.edit, true), this.example(exhibit.sound, t("museum.sound"), !exhibit.edit, false)),
      h("h2", {}, t("museum.mended")), h("p", { class: "prose" }, exhibit.mended.replace(/\n/g, " ")), h("pre", { class: "text" }, `$ ${exhibit.sound}`));
  }

  /* A fault of the catalogue itself can be seen here; one that is an edit needs a program that was built with it. */
  example(line, text, here, violation) {
    const scenario = /--scenario scenarios\/(\S+)\.scenario/.exec(line || "");
    if (!here || !line) return line && violation ? h("p", { class: "hint" }, t("museum.built")) : null;
    if (scenario && scenarios[scenario[1]]) return button(text, () => this.page.open(scenarios[scenario[1]], { violation }), { class: violation ? "primary" : "quiet" });
    const words = line.split(" ").slice(1);
    if (words[0] !== "check" || !violation) return null;
    return button(text, async () => {
      const saved = await command([...words, "--save-scenario", "-"]), end = saved.out.search(/^\S+, \d+ process/m);
      await this.page.open(end < 0 ? saved.out : saved.out.slice(0, end), { violation });
    }, { class: "primary" });
  }
}

export async function museumView(element, page) { return new MuseumView(element, page, await knowledge(["museum", "--json"])); }
