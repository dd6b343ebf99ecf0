/* The operator's token, and dialogs that ask. */
import { Refusal, ask as read, isOperator, setToken } from "./api.js";
import { button, byId, field, h, put } from "./dom.js";
import { has, t } from "./texts.js";

/* A dialog with a form; `act` may refuse by throwing, and what it throws is shown there. */
export function ask(title, parts, { go, danger, id, act }) {
  const dialog = byId("dialog"), wrong = h("p", { class: "error", role: "alert", hidden: true });
  const submit = async (event) => {
    event.preventDefault();
    accept.disabled = true;
    try { await act(); dialog.close(); } catch (error) { wrong.hidden = false; put(wrong, explain(error)); }
    accept.disabled = false;
  };
  const accept = h("button", { type: "submit", id, class: danger ? "danger" : "primary" }, go);
  put(dialog, h("form", { method: "dialog", onsubmit: submit }, h("h1", { id: "dialog-title" }, title), parts, wrong,
    h("div", { class: "row ends" }, button(t("cancel"), () => dialog.close(), { id: "cancel" }), accept)));
  dialog.setAttribute("aria-labelledby", "dialog-title");
  dialog.showModal();
  /* What deletes is not what a hasty Enter presses. */
  if (danger) byId("cancel").focus();
  return dialog;
}

/* What went wrong, for people. */
export function explain(error) {
  if (!(error instanceof Refusal)) return error.message;
  if (error.code === "Unreachable") return t("unreachable");
  if (error.status === 401) return t("unauthorized");
  if (has("error." + error.code)) return t("error." + error.code);
  return t("refused", { why: error.message });
}

export function askToken(done) {
  const input = h("input", { type: "password", id: "token", autocomplete: "off", spellcheck: "false" });
  ask(t("operator.title"), [h("p", {}, t("operator.lead")), field(t("operator.token"), input),
    isOperator() ? button(t("operator.forget"), () => { setToken(""); byId("dialog").close(); done(); }, { id: "forget" }) : null],
    { go: t("operator.use"), id: "use-token", act: async () => {
      setToken(input.value);
      try { await read("node", { path: "/" }); } catch (error) { setToken(""); done(); throw error; }
      input.value = "";
      done();
    } });
  input.focus();
}
