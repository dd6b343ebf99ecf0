/* What an operator does to nodes.  Each change names the version that was seen, so that nobody undoes what another has done. */
import { tell } from "./api.js";
import { asText, fromPairs, survivesEditing, toBase64, toPairs } from "./data.js";
import { field, h, select } from "./dom.js";
import { ask } from "./operator.js";
import { childPath } from "./rows.js";
import { t } from "./texts.js";
import { whole } from "./units.js";

function area(value) { return h("textarea", { id: "new-data", rows: 12, spellcheck: "false", value }); }

export function editData(path, data, stat, form, done) {
  const hex = form === "hex" || !survivesEditing(data), input = area(hex ? toPairs(data) : asText(data));
  ask(path, field(t(hex ? "edit.as-hex" : "edit.as-text"), input), { go: t("edit.save"), id: "save", act: async () => {
    const bytes = hex ? fromPairs(input.value) : new TextEncoder().encode(input.value);
    if (!bytes) throw new Error(t("edit.not-hex"));
    await tell({ op: "set", path, data: toBase64(bytes), version: stat.version });
    done(t("edit.done", { path }), path, false);
  } });
  input.focus();
}

export function createChild(path, done) {
  const name = h("input", { type: "text", id: "new-name", spellcheck: "false", autocomplete: "off" }), input = area("");
  const modes = ["persistent", "sequential", "container"], mode = select(modes.map((one) => [one, t("create." + one)]), "persistent", () => {}, { id: "new-mode" });
  ask(t("create"), [h("p", { class: "hint" }, path), field(t("create.name"), name), field(t("create.mode"), mode), field(t("edit.as-text"), input)],
    { go: t("create.go"), id: "save", act: async () => {
      const child = childPath(path, name.value);
      const made = await tell({ op: "create", path: child, data: toBase64(new TextEncoder().encode(input.value)), mode: mode.value, version: -1 });
      const at = typeof made.path === "string" ? made.path : child;
      done(t("create.done", { path: at }), at, false);
    } });
  name.focus();
}

export function deleteNode(path, stat, done) {
  ask(t("delete.title"), [h("p", {}, t("delete.sure", { path })), stat.numChildren ? h("p", {}, t("delete.children", { count: whole(stat.numChildren) })) : null],
    { go: t("delete.go"), id: "delete-sure", danger: true, act: async () => {
      await tell({ op: "delete", path, version: stat.version });
      done(t("delete.done", { path }), path, true);
    } });
}
