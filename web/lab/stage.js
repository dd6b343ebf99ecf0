/* Where a run is seen: the diagram, the network beside it, the list of events below, and what moves through them. */
import { button, h, put, select } from "./dom.js";
import { Diagram } from "./diagram.js";
import { EventList } from "./events.js";
import { Gestures } from "./gestures.js";
import { Network } from "./network.js";
import { Player } from "./player.js";
import { clock, sentence } from "./sentences.js";
import { t } from "./texts.js";

const LEGEND = {
  lock: ["waits", "inside", "wrong", "down", "paused"],
  election: ["asks", "leads", "follows", "wrong", "down", "paused"],
};

const KINDS = 24; /* of messages, in the legend */

export class Stage {
  /* actions: {menu(process, time, x, y), link(a, b, time, x, y), delay(message, time), moved(player)} */
  constructor(actions) {
    this.actions = actions;
    this.build();
    this.diagram = new Diagram(this.canvas);
    this.network = new Network(this.netCanvas);
    this.player = new Player(() => this.moved(), (playing) => this.playing(playing));
    this.gestures = new Gestures(this.diagram, {
      step: (by) => this.player.step(by), to: (count) => { this.player.stop(); this.player.to(count); },
      toTime: (time) => { this.player.stop(); this.player.toTime(time); }, play: () => this.player.toggle(),
      menu: (p, time, x, y) => this.openMenu(p, time, x, y), delay: (m, time) => actions.delay(m, time),
      tip: (lines, x, y) => this.tip(lines, x, y), lane: (p) => this.say(`${this.trace.names[p]}: ${this.describe(p)}`),
      violation: () => this.toViolation(), why: () => this.why(),
    });
    this.netCanvas.addEventListener("click", (event) => this.clickNetwork(event));
    this.netCanvas.addEventListener("pointermove", (event) => this.pointNetwork(event));
  }

  build() {
    this.canvas = h("canvas", { id: "diagram", tabindex: 0, role: "application", "aria-label": t("diagram.label"),
                                "aria-describedby": "keys now" });
    this.tooltip = h("div", { class: "tip", hidden: true });
    this.now = h("p", { class: "now", id: "now", "aria-live": "polite" });
    this.counter = h("output", { class: "counter", id: "counter" });
    this.playButton = button(t("play"), () => this.player.toggle(), { id: "play", title: t("play.hint"), class: "round" });
    const tool = (sign, name, act, id) => button(sign, act, { "aria-label": t(name), title: t(name), class: "tool", id });
    this.whyButton = button(t("why"), () => this.why(), { id: "why", class: "tool wide", title: t("why.hint") });
    this.violationButton = button(t("violation.to"), () => this.toViolation(), { id: "to-violation", class: "tool wide danger", hidden: true });
    this.tools = h("div", { class: "tools", role: "toolbar", "aria-label": t("tools") },
      tool("|◀", "first", () => this.player.to(0), "first"), tool("◀", "back", () => this.player.step(-1), "back"), this.playButton,
      tool("▶", "forward", () => this.player.step(1), "forward"), tool("▶|", "last", () => this.player.to(Infinity), "last"),
      select(Player.speeds.map((speed, i) => [String(i), `${speed}×`]), "2", (i) => { this.player.speed = Number(i); },
             { "aria-label": t("speed"), title: t("speed") }),
      this.counter, this.violationButton, this.whyButton);
    this.zooms = h("div", { class: "zooms" },
      tool("−", "zoom.out", () => this.diagram.zoom(1 / 1.4)), tool("+", "zoom.in", () => this.diagram.zoom(1.4)),
      tool("⤢", "zoom.fit", () => this.diagram.fit(true), "fit"));
    this.legend = h("div", { class: "legend" });
    this.netCanvas = h("canvas", { id: "network", role: "img", "aria-label": t("network.label") });
    this.states = h("div", { class: "states", id: "states", tabindex: 0, role: "region", "aria-label": t("states.label") });
    this.events = new EventList((count) => { this.player.stop(); this.player.to(count); });
    this.main = h("div", { class: "stage" }, h("div", { class: "frame" }, this.canvas, this.zooms, this.tooltip), this.tools, this.legend, this.now,
      h("p", { class: "unseen", id: "keys" }, t("diagram.keys")));
    this.side = h("div", { class: "card" }, h("h2", {}, t("network")), this.netCanvas, this.states);
  }

  show(trace, { keepView, count, problem, cuts } = {}) {
    this.trace = trace;
    this.diagram.show(trace, keepView);
    this.network.show(trace, cuts);
    this.events.show(trace);
    this.violationButton.hidden = trace.violation() < 0;
    const kinds = new Set(trace.spans.flatMap((list) => list.map((span) => span.kind)));
    if (trace.overlaps.length) kinds.add("wrong");
    if (trace.downs.some((list) => list.length)) kinds.add("down");
    if (trace.pauses.some((list) => list.length)) kinds.add("paused");
    put(this.legend, LEGEND[problem || "lock"].filter((kind) => kinds.has(kind)).map((kind) =>
      h("span", {}, h("i", { class: "key " + kind }), t(`legend.${kind === "wrong" ? problem + ".wrong" : kind}`))),
      trace.kinds.slice(0, KINDS).map((kind, i) => h("span", {}, h("i", { class: `key arrow kind${i % 8}` }), kind)));
    this.loading = count === undefined;
    this.player.load(trace, count ?? trace.entries.length);
    this.loading = false;
  }

  moved() {
    const { count, time } = this.player;
    this.diagram.past = null;
    this.diagram.follow(count, time, this.loading);
    const now = performance.now(), rest = !this.player.playing;
    if (this.trace.names.length <= 200) this.network.follow(count, time);
    if (rest || now - (this.told ?? 0) > (this.trace.names.length > 200 ? 1000 : 200)) { /* lists need not follow each frame */
      this.told = now;
      this.network.follow(count, time);
      this.events.follow(count);
      this.showStates(count);
    }
    this.counter.value = t("counter", { count, total: this.trace.entries.length, time: clock(time) });
    if (rest) this.now.textContent = count ? sentence(this.trace.entries[count - 1]) : t("beginning");
    this.actions.moved(this.player);
  }

  playing(playing) {
    this.diagram.playing = playing;
    this.playButton.textContent = t(playing ? "pause" : "play");
    if (!playing) this.moved();
  }

  describe(p) {
    const state = this.trace.standing(this.player.count)[p];
    const words = [state.down ? t("is.down") : state.paused ? t("is.paused") : state.kind ? t("is." + state.kind) : t("is.idle"), state.note];
    return words.filter(Boolean).join(", ");
  }

  showStates(count) {
    const states = this.trace.standing(count), shown = states.slice(0, 60);
    const wrong = new Set(this.trace.overlaps.filter((o) => o.from <= this.player.time + 1e-9 && this.player.time <= o.to).flatMap((o) => o.processes));
    put(this.states, h("table", {}, h("tbody", {}, shown.map((state, p) => {
      const kind = state.down ? "down" : state.paused ? "paused" : wrong.has(p) ? "wrong" : state.kind;
      return h("tr", { class: kind || "idle" }, h("th", { scope: "row" }, this.trace.names[p]),
        h("td", {}, h("i", { class: "key " + (kind || "idle") }), t("is." + (state.down ? "down" : state.paused ? "paused" : state.kind || "idle"))),
        h("td", { class: "note" }, [state.term && !/\bterm=/.test(state.note) ? `${t("term")} ${state.term}` : "", state.note].filter(Boolean).join("  ")));
    }))), states.length > shown.length ? h("p", { class: "hint" }, t("states.more", { n: states.length - shown.length })) : null);
  }

  say(text) { this.now.textContent = text; }

  tip(lines, x, y) {
    this.tooltip.hidden = !lines;
    if (!lines) return;
    put(this.tooltip, lines.map((line) => h("div", {}, line)));
    const box = this.canvas.getBoundingClientRect();
    this.tooltip.style.left = `${Math.max(4, Math.min(x + 14, box.width - this.tooltip.offsetWidth - 8))}px`;
    this.tooltip.style.top = `${y + 22 + this.tooltip.offsetHeight > box.height ? y - this.tooltip.offsetHeight - 10 : y + 18}px`;
  }

  openMenu(process, time, x, y) {
    const box = this.canvas.getBoundingClientRect();
    this.tip(null);
    this.actions.menu(process, time, box.left + x, box.top + y, this.canvas);
  }

  netPlace(event) {
    const box = this.netCanvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  clickNetwork(event) {
    const [x, y] = this.netPlace(event), p = this.network.processAt(x, y), link = p < 0 ? this.network.linkAt(x, y) : null;
    if (p >= 0) this.actions.menu(p, this.player.time, event.clientX, event.clientY, this.netCanvas);
    else if (link) this.actions.link(link.a, link.b, this.player.time, event.clientX, event.clientY, this.netCanvas);
  }

  pointNetwork(event) {
    const [x, y] = this.netPlace(event), p = this.network.processAt(x, y), link = p < 0 ? this.network.linkAt(x, y) : null;
    this.netCanvas.classList.toggle("on-message", p >= 0 || !!link);
    this.network.focusNode = p;
    this.network.focus = link ? link.pair : -1;
    this.network.redraw();
  }

  toViolation() {
    if (!this.trace) return;
    const i = this.trace.violation();
    if (i < 0) return;
    this.player.stop();
    this.player.to(i + 1);
    this.why();
  }

  /* What led to the entry at the cursor; to both, where two are inside. */
  why() {
    const i = this.player.count - 1;
    if (i < 0) return;
    const overlap = this.trace.overlaps.find((o) => o.entries.includes(i));
    this.diagram.past = this.trace.past(overlap ? overlap.entries : [i]);
    this.diagram.redraw();
    this.say(t("why.said", { n: this.diagram.past.size, what: sentence(this.trace.entries[i]) }));
  }
}
