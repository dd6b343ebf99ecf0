/* The tree: rows that are seen are elements, the others are not, however many there are. */
import { readAddress, writeAddress } from "./address.js";
import { ask as read } from "./api.js";
import { button, field, h, put } from "./dom.js";
import { NodeView } from "./node.js";
import { explain } from "./operator.js";
import { Rows, parentPath } from "./rows.js";
import { t } from "./texts.js";
import { bytes, whole } from "./units.js";

const ROW = 26, AROUND = 10, PAGE = 1000, REOPENED = 50, REST_MS = 80;
const TALLEST = 8e6; /* pixels: browsers give up somewhere above */

export class TreeView {
  constructor(element, page) {
    this.page = page;
    this.space = h("div", { class: "space", role: "none" });
    this.box = h("div", { class: "rows", id: "rows", role: "tree", tabindex: 0, "aria-label": t("tree.label"),
                          onkeydown: (event) => this.key(event), onclick: (event) => this.click(event) }, this.space);
    this.box.addEventListener("scroll", () => this.render());
    new ResizeObserver(() => this.render()).observe(this.box);
    this.path = h("input", { type: "text", id: "path", spellcheck: "false", autocomplete: "off" });
    this.says = h("p", { class: "error", role: "alert", id: "tree-error", hidden: true });
    this.note = h("p", { class: "hint", id: "tree-note" });
    this.node = new NodeView(page, (path, gone) => this.changed(path, gone));
    put(element, h("header", {}, h("h1", {}, t("view.tree")), h("p", { class: "lead" }, t("tree.lead"))),
      h("div", { class: "two" },
        h("div", { class: "card" }, h("form", { class: "bar", onsubmit: (event) => { event.preventDefault(); this.go(this.path.value); } },
            field(t("tree.path"), this.path), h("button", { type: "submit", id: "go" }, t("tree.go")), button(t("refresh"), () => this.again(), { id: "refresh" })),
          this.says, this.box, this.note),
        this.node.element));
    this.start();
  }

  start() {
    this.rows = new Rows((path, after) => read("tree", after === undefined ? { path, limit: PAGE } : { path, after, limit: PAGE }));
    this.cursor = 0;
  }

  open() {
    const path = readAddress("path", "/");
    if (this.opened !== path) this.go(path);
  }

  show(state) { this.node.rights(state); }

  /* All of it anew; what was open is open, and the same node is chosen. */
  async again(path = this.opened ?? "/") {
    const open = this.rows.list.filter((one) => one.open).map((one) => one.path).slice(0, REOPENED);
    this.start();
    for (const one of open) await this.rows.reveal(one).then((row) => this.rows.open(row)).catch(() => {}); /* it may be gone */
    return this.go(path);
  }

  async try(act) {
    this.says.hidden = true;
    this.box.setAttribute("aria-busy", "true");
    try { return await act(); } catch (error) {
      this.says.hidden = false;
      put(this.says, explain(error));
      return undefined;
    } finally {
      this.box.removeAttribute("aria-busy");
      this.render();
    }
  }

  async go(path) {
    path = "/" + path.split("/").filter(Boolean).join("/");
    this.opened = path;
    await this.try(async () => {
      await this.rows.open(this.rows.root);
      const row = await this.rows.reveal(path);
      if (this.opened !== path) return;
      await this.put(Math.max(0, this.rows.indexOf(row)), path);
    });
  }

  /* The cursor is there, and its node is seen: at once if the path was asked for, else when the cursor rests. */
  put(index, path) {
    this.cursor = Math.max(0, Math.min(this.rows.list.length - 1, index));
    const row = this.rows.list[this.cursor];
    this.follow();
    this.render();
    clearTimeout(this.resting);
    if (path !== undefined) return this.see(path);
    if (!row.more) this.resting = setTimeout(() => this.see(row.path), REST_MS);
    return undefined;
  }

  see(path) {
    this.opened = path;
    this.path.value = path;
    writeAddress({ path: path === "/" ? "" : path });
    return this.node.show(path);
  }

  /* A node was changed by this page. */
  async changed(path, gone) {
    await this.again(gone ? parentPath(path) : path);
    if (document.activeElement === document.body) this.box.focus(); /* the button that was pressed is another now */
  }

  /* ---- What is seen ---- */

  /* Rows above the first that is seen: as many as were scrolled over, unless the list is too tall to have a pixel for each. */
  scale() {
    const view = this.box.clientHeight, height = this.rows.list.length * ROW, tall = Math.min(height, TALLEST);
    return { view, height, tall, factor: tall > view ? (height - view) / (tall - view) : 1 };
  }

  follow() {
    const { view, factor } = this.scale(), top = this.cursor * ROW, at = this.box.scrollTop * factor;
    if (top < at) this.box.scrollTop = top / factor;
    else if (top + ROW > at + view) this.box.scrollTop = (top + ROW - view) / factor;
  }

  render() {
    const { view, tall, factor } = this.scale(), { list } = this.rows, scrolled = this.box.scrollTop, top = scrolled * factor;
    if (!view) return;
    this.space.style.height = `${tall}px`;
    const first = Math.max(0, Math.floor(top / ROW) - AROUND), end = Math.min(list.length, Math.ceil((top + view) / ROW) + AROUND);
    const made = [];
    for (let i = first; i < end; i++) made.push(this.row(list[i], i, scrolled + i * ROW - top));
    put(this.space, made);
    if (this.cursor >= first && this.cursor < end) this.box.setAttribute("aria-activedescendant", `row${this.cursor}`);
    else this.box.removeAttribute("aria-activedescendant");
    this.summary();
    const rest = list.slice(first, end).find((one) => one.more && !one.stuck && !one.parent.loading);
    if (rest) this.more(rest);
  }

  summary() {
    const one = this.rows.list[this.cursor], of = one && (one.more || !one.open) && one.parent ? one.parent : one;
    const says = !of?.open ? "" : of.refused ? t("tree.no-read") : of.read < of.children ? t("tree.more", { shown: whole(of.read), total: whole(of.children) }) : "";
    if (this.note.textContent !== says) put(this.note, says);
  }

  row(one, i, top) {
    const current = i === this.cursor;
    const element = one.more
      ? h("div", { class: "node rest", role: "treeitem" }, t(one.stuck ? "tree.more-stuck" : "tree.more-loading"))
      : h("div", { class: "node", role: "treeitem", "aria-expanded": one.open ? "true" : one.children ? "false" : null, "data-path": one.path },
          h("i", { class: "twist", "aria-hidden": "true" }, one.open ? "▾" : one.children ? "▸" : ""), h("span", { class: "name" }, one.name),
          one.ephemeral ? h("span", { class: "tag" }, t("tree.ephemeral")) : null,
          h("span", { class: "count" }, one.children ? t(one.children === 1 ? "tree.child" : "tree.children", { count: whole(one.children) }) : one.bytes ? bytes(one.bytes) : ""));
    element.id = `row${i}`;
    element.dataset.index = i;
    element.setAttribute("aria-level", one.depth + 1);
    element.setAttribute("aria-selected", String(current));
    element.classList.toggle("current", current);
    element.style.top = `${top}px`;
    element.style.paddingLeft = `${8 + Math.min(one.depth, 20) * 16}px`;
    return element;
  }

  /* What failed is not asked for again until somebody wants it. */
  more(rest) {
    rest.stuck = false;
    return this.try(() => this.rows.next(rest.parent, rest).catch((error) => { rest.stuck = true; throw error; }));
  }

  /* ---- What is done ---- */

  click(event) {
    const element = event.target.closest("[data-index]");
    if (!element) return;
    const index = Number(element.dataset.index);
    this.put(index);
    if (event.target.closest(".twist, .rest")) this.toggle(this.rows.list[index]);
  }

  toggle(one) {
    if (one.more) return this.more(one);
    if (!one.open) return this.try(() => this.rows.open(one));
    this.rows.close(one);
    this.cursor = Math.max(0, this.rows.indexOf(one));
    return this.render();
  }

  key(event) {
    const one = this.rows.list[this.cursor], last = this.rows.list.length - 1, page = Math.max(1, Math.floor(this.box.clientHeight / ROW) - 1);
    const to = { ArrowDown: this.cursor + 1, ArrowUp: this.cursor - 1, PageDown: this.cursor + page, PageUp: this.cursor - page, Home: 0, End: last }[event.key];
    if (to !== undefined) this.put(to);
    else if (event.key === "ArrowRight" && !one.open) this.toggle(one);
    else if (event.key === "ArrowRight") this.put(this.cursor + 1);
    else if (event.key === "ArrowLeft" && one.open) this.toggle(one);
    else if (event.key === "ArrowLeft" && one.parent) this.put(this.rows.indexOf(one.parent));
    else if (event.key === "Enter" || event.key === " ") this.toggle(one);
    else return;
    event.preventDefault();
  }
}
