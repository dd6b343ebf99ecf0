/* The guided tour: a lock, a broken lock, an election, split-brain, Raft. */
import { readAddress, writeAddress } from "./address.js";
import { button, byId, h, put } from "./dom.js";
import { scenarios } from "./library.js";
import { beginning } from "./scenario.js";
import { t } from "./texts.js";

const STEPS = [
  { name: "lock", act: (page) => page.open(beginning("central", "lock")) },
  { name: "dead", act: (page) => page.open(scenarios["central-dead-coordinator"], { violation: true }) },
  { name: "forgets", act: (page) => page.open(scenarios["quorum-amnesia"], { violation: true }) },
  { name: "equals", act: (page) => page.open(scenarios["ricart-agrawala"]) },
  { name: "election", act: (page) => page.open(scenarios["bully-004"]) },
  { name: "split", act: (page) => page.open(scenarios["bully-partition"], { violation: true }) },
  { name: "raft", act: (page) => page.open(scenarios["raft-partition"]) },
  { name: "odds", act: (page) => page.show("odds") },
  { name: "sure", act: (page) => page.show("check") },
  { name: "yours", act: (page) => page.open(beginning("ricart-agrawala", "lock")) },
];

export function beginTour(page) {
  const panel = h("section", { class: "tour", role: "region", "aria-label": t("tour") });
  put(byId("tour"), panel);
  const close = () => { put(byId("tour")); writeAddress({ tour: "" }); byId("to-tour").focus(); };
  const show = async (i) => {
    const step = STEPS[i];
    writeAddress({ tour: i + 1 });
    const next = button(i + 1 < STEPS.length ? t("tour.next") : t("tour.end"), () => (i + 1 < STEPS.length ? show(i + 1) : close()), { class: "primary", id: "tour-next" });
    put(panel, h("p", { class: "hint" }, t("tour.step", { i: i + 1, n: STEPS.length })), h("h3", {}, t(`tour.${step.name}`)), h("p", {}, t(`tour.${step.name}.text`)),
      h("div", { class: "row" }, button(t("tour.close"), close, { class: "quiet" }), h("span", { class: "row" },
        button(t("tour.back"), () => show(i - 1), { class: "quiet", disabled: i === 0 }), next)));
    await step.act(page);
    next.focus({ preventScroll: true });
  };
  return show(Math.max(0, Math.min(STEPS.length, parseInt(readAddress("tour"), 10) || 1) - 1));
}
