/* "Break it": what can be done to a process at a time, or to a link, as a menu; each choice is an action of the scenario. */
import { button, h, put } from "./dom.js";
import { duration } from "./scenario.js";
import { clock } from "./sentences.js";
import { t } from "./texts.js";

const FOREVER = 1000000;

let open = null;

export function closeMenu() {
  if (!open) return;
  const { menu, back } = open;
  open = null;
  menu.remove();
  if (back) back.focus({ preventScroll: true });
}

addEventListener("pointerdown", (event) => { if (open && !open.menu.contains(event.target)) closeMenu(); }, true);

/* Items are [text, act, danger]; arrows move, Escape closes. */
export function showMenu(title, items, x, y, back) {
  closeMenu();
  const menu = h("div", { class: "menu", role: "menu", "aria-label": title }, h("p", { class: "title" }, title),
    items.map(([text, act, danger]) => button(text, () => { closeMenu(); act(); }, { role: "menuitem", class: danger ? "danger" : null })));
  menu.addEventListener("keydown", (event) => {
    const entries = [...menu.querySelectorAll("button")], i = entries.indexOf(document.activeElement);
    const to = { ArrowDown: i + 1, ArrowUp: i - 1 + entries.length, Home: 0, End: entries.length - 1 }[event.key];
    if (to !== undefined) { event.preventDefault(); entries[to % entries.length].focus(); }
    if (event.key === "Escape" || event.key === "Tab") { event.preventDefault(); closeMenu(); }
  });
  document.body.append(menu);
  const width = menu.offsetWidth, height = menu.offsetHeight;
  menu.style.left = `${Math.max(8, Math.min(x, innerWidth - width - 8))}px`;
  menu.style.top = `${Math.max(8, Math.min(y, innerHeight - height - 8))}px`;
  open = { menu, back };
  menu.querySelector("button").focus();
}

export function processItems(trace, problem, p, time, state, act) {
  const name = trace.names[p], others = trace.names.filter((other) => other !== name).join(" ");
  const items = [];
  const add = (key, what, danger) => items.push([t(key), () => act(time, what), danger]);
  if (state.down) {
    add("break.recover", `${name} recover`);
    add("break.amnesia", `${name} recover amnesia`, true);
  } else {
    add("break.crash", `${name} crash`, true);
    if (state.paused) add("break.resume", `${name} resume`);
    else add("break.pause", `${name} pause ${duration(Math.max(20 * trace.axis.unit, 5))}`, true);
    if (problem === "lock" && p >= trace.servers && state.kind !== "waits" && state.kind !== "inside") add("break.acquire", `${name} acquire`);
    if (problem === "election") add("break.campaign", `${name} campaign`);
  }
  if (trace.names.length > 2 && trace.names.length <= 200) add("break.isolate", `partition ${name} | ${others}`, true);
  if (trace.partitions.some((s) => s.from <= time && time <= s.to)) add("break.heal", "heal");
  return { title: `${name}, ${clock(time)}`, items };
}

export function linkItems(trace, a, b, time, act) {
  const [x, y] = [trace.names[a], trace.names[b]];
  return { title: `${x} – ${y}, ${clock(time)}`, items: [
    [t("break.cut"), () => act(time, `lose ${x} ${y} ${FOREVER}`, `lose ${y} ${x} ${FOREVER}`), true],
    [t("break.cut.one", { from: x, to: y }), () => act(time, `lose ${x} ${y} 1`), true],
    [t("break.cut.one", { from: y, to: x }), () => act(time, `lose ${y} ${x} 1`), true],
    [t("break.mend"), () => act(time, `lose ${x} ${y} 0`, `lose ${y} ${x} 0`)],
  ] };
}

/* Whether a link is cut at a time, by the actions of the scenario. */
export function cutLinks(scenario, names) {
  const losses = scenario.actions.map((a) => [a.time, /^lose (\S+) (\S+) (\d+)$/.exec(a.what)]).filter(([, m]) => m)
    .map(([time, m]) => ({ time, a: m[1], b: m[2], many: Number(m[3]) }));
  return (a, b, now) => {
    const last = losses.filter((l) => l.time <= now && ((l.a === names[a] && l.b === names[b]) || (l.a === names[b] && l.b === names[a]))).at(-1);
    return !!last && last.many >= FOREVER;
  };
}

/* What was done, as a list from which each can be taken back. */
export function changesList(element, scenario, remove) {
  const actions = scenario.actions;
  put(element, actions.length
    ? h("ol", { class: "changes" }, actions.slice(0, 200).map((action) => h("li", {}, h("code", {}, action.text),
        button("×", () => remove(action.line), { class: "tool", "aria-label": t("change.remove", { what: action.text }), title: t("remove") }))))
    : h("p", { class: "hint" }, t("changes.none")));
}
