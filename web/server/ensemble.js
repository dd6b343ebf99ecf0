/* The ensemble: who is in it and how far each is, who led when, and what the server does each second. */
import { become } from "./become.js";
import { h, put } from "./dom.js";
import { table } from "./plot.js";
import { charts } from "./charts.js";
import { elections } from "./elections.js";
import { has, t } from "./texts.js";
import { bytes, duration, whole, yesNo } from "./units.js";

const FIGURES = ["connections", "sessions", "watches", "nodes", "ephemerals", "outstanding"];
const INDEXES = ["term", "commit", "applied", "durable"];

export function modeName(mode) { return has("mode." + mode) ? t("mode." + mode) : String(mode ?? ""); }

/* Where a member's page would be: nobody knows its port, but all members are mostly started alike. */
export function pageOf(address) {
  const host = /^(\[[0-9a-fA-F:.]+\]|[\w.-]+):\d+/.exec(String(address ?? ""))?.[1];
  if (!host) return null;
  const place = `${location.protocol}//${host}${location.port ? ":" + location.port : ""}/`;
  return place === `${location.origin}/` ? null : place;
}

export class EnsembleView {
  constructor(element) {
    this.title = h("h1", { id: "title" });
    this.role = h("span", { class: "role", id: "role" });
    this.about = h("p", { class: "lead", id: "about" });
    this.figures = h("div", { class: "card figures", id: "figures" });
    this.members = h("div", { class: "card", id: "members" });
    this.elections = h("div", { class: "card", id: "elections" });
    this.charts = h("div", { class: "charts" });
    put(element, h("header", {}, h("div", { class: "row" }, this.title, this.role), this.about), this.figures, this.members, this.charts, this.elections);
  }

  show(state, stream) {
    const ensemble = state.ensemble ?? null;
    become(this.title, typeof state.server === "number" ? t("title.server", { id: state.server }) : t("title.alone"));
    become(this.role, modeName(state.mode));
    this.role.className = `role ${ensemble && state.mode === "leader" ? "leads" : ""}`;
    become(this.about, t("about", { version: state.version, uptime: duration(state.uptime_ms) }));
    const shown = [...(ensemble ? INDEXES.map((name) => [name, whole(ensemble[name])]) : []),
      ...FIGURES.map((name) => [name, whole(state[name])]), ["bytes", bytes(state.bytes)]];
    become(this.figures, shown.map(([name, value]) => h("div", { "data-figure": name }, h("b", {}, value), h("span", {}, t("figure." + name)))));
    become(this.members, h("h2", {}, t("members")), this.table(state, ensemble));
    this.elections.hidden = !ensemble;
    elections(this.elections, state);
    become(this.charts, charts(stream.history));
  }

  table(state, ensemble) {
    if (!ensemble) return h("p", {}, t("members.none"));
    const leads = state.server === ensemble.leader, list = Array.isArray(ensemble.members) ? ensemble.members : [];
    const head = ["id", "role", "address", "connected", "lag", "heard", "match", "weight"].map((name) => t("member." + name));
    const rows = list.map((member) => {
      const here = member.id === state.server, page = here ? null : pageOf(member.address), leader = member.id === ensemble.leader;
      return [h("b", {}, String(member.id)),
        h("span", { class: "with-key", "data-member": member.id, "data-role": leader ? "leader" : member.role },
          h("i", { class: `key ${leader ? "leads" : member.connected === false ? "wrong" : "follows"}` }), modeName(leader ? "leader" : member.role)),
        [String(member.address ?? ""), here ? h("small", { class: "hint" }, " ", t("member.this")) : null,
         page ? h("small", { class: "hint" }, " ", h("a", { href: page + location.hash }, t("member.page"))) : null],
        here ? "–" : yesNo(member.connected), whole(member.lag), typeof member.heard_ms === "number" ? t("member.ago", { time: duration(member.heard_ms) }) : "–",
        whole(member.match), whole(member.weight)];
    });
    return [table(head, rows, [4, 5, 6, 7]),
      !leads && typeof ensemble.leader === "number" ? h("p", { class: "hint" }, t("members.leader", { id: ensemble.leader })) : null];
  }
}
