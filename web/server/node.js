/* One node: its data, its stat, who may do what to it, and, for an operator, what can be done to it. */
import { readAddress, writeAddress } from "./address.js";
import { ask as read, isOperator } from "./api.js";
import { asHex, asJson, asText, fromBase64, isText, shown } from "./data.js";
import { button, h, put } from "./dom.js";
import { createChild, deleteNode, editData } from "./edit.js";
import { explain } from "./operator.js";
import { table } from "./plot.js";
import { t } from "./texts.js";
import { bytes, moment, whole } from "./units.js";

const FORMS = ["text", "json", "hex"];

/* JSON is shown as such only if it is some; a number or a word is as good as text. */
function bestForm(data) {
  if (!isText(data)) return "hex";
  if (!/^\s*[[{]/.test(asText(data.subarray(0, 64)))) return "text";
  try { asJson(data); return "json"; } catch { return "text"; }
}

export class NodeView {
  /* changed(path, gone): something was done to a node. */
  constructor(page, changed) {
    this.page = page;
    this.changed = changed;
    this.title = h("h1", { id: "node-path" });
    this.body = h("div", { class: "parts" });
    this.actions = h("div", { class: "row", id: "actions" });
    this.said = h("p", { class: "hint", role: "status", id: "said" });
    this.element = h("article", { class: "card", id: "node" }, this.title, this.actions, this.said, this.body);
    put(this.body, h("p", { class: "hint" }, t("node.choose")));
  }

  async show(path) {
    if (!this.fresh) put(this.said); /* what was said is about another node */
    this.fresh = false;
    this.path = path;
    put(this.title, path);
    try {
      const node = await read("node", { path });
      if (this.path !== path) return; /* another was chosen meanwhile */
      this.node = node;
      this.data = fromBase64(typeof node.data === "string" ? node.data : "");
      this.draw();
    } catch (error) {
      if (this.path !== path) return;
      this.node = null;
      put(this.body, h("p", { class: "error", role: "alert" }, explain(error)));
    }
    this.drawActions();
  }

  /* Whether nodes can be changed is the server's to say. */
  rights(state) {
    if (this.write === state.write && this.was === isOperator()) return;
    this.write = state.write === true;
    this.was = isOperator();
    this.drawActions();
  }

  drawActions() {
    const may = this.write && isOperator();
    if (!may) return put(this.actions, h("p", { class: "hint", id: "rights" }, t(this.write ? "write.token" : "write.off")));
    const { node, path } = this, done = (words, at, gone) => { put(this.said, words); this.fresh = true; this.changed(at, gone); };
    return put(this.actions, node ? [button(t("edit"), () => editData(path, this.data, node.stat, this.form, done), { id: "edit", disabled: node.refused === true || node.truncated === true }),
      button(t("create"), () => createChild(path, done), { id: "create" }),
      path === "/" ? null : button(t("delete"), () => deleteNode(path, node.stat, done), { id: "delete", class: "danger" })] : []);
  }

  draw() {
    const { node } = this, stat = node.stat ?? {};
    put(this.body, h("h2", {}, t("node.data")), this.content(), h("h2", {}, t("node.stat")), this.stat(stat),
      h("h2", {}, t("node.acl")), this.acl(Array.isArray(node.acl) ? node.acl : []));
  }

  content() {
    if (this.node.refused === true) return h("p", { class: "hint", id: "data-refused" }, t("node.refused"));
    if (!this.data.length) return h("p", { class: "hint" }, t("node.empty"));
    const asked = readAddress("as");
    this.form = FORMS.includes(asked) ? asked : bestForm(this.data);
    const output = h("pre", { class: "text data", id: "data", tabindex: 0, "aria-label": t("node.data") }), note = h("p", { class: "hint", id: "data-note" });
    const draw = () => {
      const { text, note: says } = this.words();
      put(output, text);
      put(note, says);
    };
    const choice = (form) => h("label", {}, h("input", { type: "radio", name: "form", value: form, checked: form === this.form,
      onchange: () => { this.form = form; writeAddress({ as: form }); draw(); } }), h("span", {}, t("node." + form)));
    draw();
    return [h("div", { class: "segments", role: "radiogroup", "aria-label": t("node.as") }, FORMS.map(choice)), output, note];
  }

  /* The data in the chosen form, and what is to be said about it. */
  words() {
    const part = shown(this.data, this.form), cut = this.node.truncated === true || part.length < this.data.length;
    const text = this.form === "hex" ? asHex(part) : asText(part);
    if (this.form === "json") try { return { text: asJson(this.data), note: "" }; } catch (error) { return { text, note: t("node.no-json", { why: error.message }) }; }
    return { text, note: cut ? t("node.cut", { size: bytes(part.length) }) : this.form === "text" && !isText(part) ? t("node.no-text") : "" };
  }

  stat(stat) {
    const facts = Object.entries(stat).map(([name, value]) => {
      const time = name === "ctime" || name === "mtime", hex = /zxid$/.test(name) && typeof value === "number";
      return [h("dt", {}, name), h("dd", {}, time ? `${moment(value)} (${value})` : hex ? "0x" + value.toString(16) : String(value))];
    });
    return h("dl", { class: "facts", id: "stat" }, facts, h("dt", {}, t("node.watches")), h("dd", {}, whole(this.node.watches)));
  }

  acl(list) {
    const words = (perms) => [...String(perms)].map((letter) => (/[cdrwa]/.test(letter) ? t("perm." + letter) : letter)).join(", ");
    return table(["scheme", "identity", "permissions"].map((name) => t("node." + name)), list.map((one) => [String(one.scheme), String(one.id), words(one.perms)]));
  }
}
