/* The server's page: which view is seen, in which language, and whether the server is heard. */
import { onAddress, readAddress, writeAddress } from "./address.js";
import { isOperator } from "./api.js";
import { button, byId, h, put } from "./dom.js";
import { EnsembleView, pageOf } from "./ensemble.js";
import { LocksView } from "./locks.js";
import { askToken } from "./operator.js";
import { Stream } from "./stream.js";
import { preferred, setLanguage, t } from "./texts.js";
import { top, turnTo } from "./top.js";
import { TreeView } from "./tree.js";
import { duration } from "./units.js";

const VIEWS = { ensemble: EnsembleView, locks: LocksView, tree: TreeView };

class Page {
  constructor() {
    this.stream = new Stream("page/events", (state) => this.tick(state), () => this.status());
    this.build();
    setInterval(() => { if (!this.stream.live) this.status(); }, 1000);
  }

  /* Everything that has words in it; the numbers that were heard stay. */
  build() {
    setLanguage(readAddress("lang") || preferred());
    this.pulse = h("span", { class: "pulse", id: "pulse", role: "status" });
    this.operator = button("", () => askToken(() => this.authorized()), { id: "operator", class: "quiet" });
    this.links = top({ subtitle: t("server"), views: Object.keys(VIEWS), show: (name) => this.turn(name), more: [this.pulse, this.operator],
                       skipTo: () => byId("view-" + this.name).focus(), speak: (name) => { writeAddress({ lang: name }); this.build(); } });
    this.views = {};
    for (const [name, View] of Object.entries(VIEWS)) this.views[name] = new View(byId("view-" + name), this);
    this.mark();
    this.status();
    this.show(readAddress("view", "ensemble"));
  }

  turn(name) {
    writeAddress({ view: name === "ensemble" ? "" : name }, true);
    this.show(name);
  }

  show(name) {
    this.name = Object.hasOwn(VIEWS, name) ? name : "ensemble";
    turnTo(this.links, this.name);
    this.view = this.views[this.name];
    this.view.open?.();
    if (this.stream.state) this.view.show(this.stream.state, this.stream);
  }

  tick(state) {
    document.title = `Conclave: ${typeof state.server === "number" ? t("title.server", { id: state.server }) : t("server")}`;
    this.view?.show(state, this.stream);
    document.documentElement.dataset.ready = "yes";
  }

  /* What it is now to be operator, or not to be. */
  authorized() {
    this.mark();
    this.view.again?.();
    if (this.stream.state) this.view.show(this.stream.state, this.stream);
  }

  mark() {
    put(this.operator, t(isOperator() ? "operator.is" : "operator"));
    this.operator.setAttribute("aria-pressed", String(isOperator()));
  }

  status() {
    const { live, heard, state, failures, full } = this.stream, banner = byId("banner"), broken = !live && failures > 0;
    put(this.pulse, live ? t("live") : failures ? t("silent") : "");
    this.pulse.className = `pulse ${live ? "live" : ""}`;
    document.body.classList.toggle("stale", broken && !full && Boolean(state));
    if (!broken) { banner.hidden = true; return; }
    /* The words of an alert are read out when they change: those that count are apart. */
    if (banner.hidden) {
      this.since = h("span", { "aria-live": "off" });
      put(banner, h("p", {}, this.since), this.others(state));
      banner.hidden = false;
    }
    put(this.since, full ? t("full") : heard ? t("broken", { time: duration(Date.now() - heard) }) : t("broken.first"));
  }

  others(state) {
    const places = (state?.ensemble?.members ?? []).filter((m) => m.id !== state.server).map((m) => [m.id, pageOf(m.address), String(m.address ?? "")]);
    return places.length ? h("p", { id: "others" }, t("broken.others"), places.map(([id, page, address], i) => [i ? ", " : " ",
      page ? h("a", { href: page + location.hash }, `${id} (${address})`) : h("span", {}, `${id} (${address})`)])) : null;
  }
}

const page = new Page();
window.conclave = page; /* for the tests, and for the curious */
onAddress(() => page.build());
