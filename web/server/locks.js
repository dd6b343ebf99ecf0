/* Locks and elections: who holds, who waits, for how long, and who waits for whom. */
import { ask as read } from "./api.js";
import { become } from "./become.js";
import { list, where, who } from "./contender.js";
import { button, field, h, put } from "./dom.js";
import { explain } from "./operator.js";
import { table } from "./plot.js";
import { has, t } from "./texts.js";
import { duration, whole } from "./units.js";
import { circles, drawing } from "./waits.js";

const PAGE = 100, QUEUE = 50, WAITED_FOR = 3, FRESH_MS = 10000;

export class LocksView {
  constructor(element) {
    this.filter = h("input", { type: "text", id: "filter", spellcheck: "false", oninput: () => this.draw() });
    this.says = h("p", { class: "error", role: "alert", hidden: true });
    this.graph = h("div", { class: "card", id: "waits" });
    this.all = h("div", { class: "parts", id: "locks" });
    this.end = h("div", { class: "row" });
    put(element, h("header", {}, h("h1", {}, t("view.locks")), h("p", { class: "lead" }, t("locks.lead"))), this.says,
      this.graph, h("div", { class: "bar" }, field(t("locks.filter"), this.filter)), this.all, this.end);
    this.pages = 1;
  }

  now() { return Date.now() + this.ahead; }

  open() { this.seen = null; }

  again() { this.seen = null; }

  /* Asked for again when something was written since, or a session has come or gone.  Times go on by themselves, but estimates age. */
  show(state) {
    this.ahead = Number(state.time_ms) - Date.now();
    const stamp = JSON.stringify([state.ensemble?.applied, state.requests?.writes, state.sessions, state.nodes, state.ephemerals]);
    if (!this.asking && (this.seen !== stamp || Date.now() - this.asked > FRESH_MS)) { this.seen = stamp; this.ask(); }
    else if (this.answer) this.draw();
  }

  async ask() {
    this.asking = true;
    this.asked = Date.now();
    try {
      const answer = { locks: [], waits: [], deadlocks: [], more: false };
      for (let page = 0; page < this.pages && (page === 0 || answer.more); page++) {
        const part = await read("locks", page ? { after: answer.cursor, limit: PAGE } : { limit: PAGE });
        answer.locks.push(...list(part.locks));
        answer.waits.push(...list(part.waits));
        answer.deadlocks.push(...list(part.deadlocks));
        answer.more = part.more === true;
        answer.cursor = String(part.cursor ?? part.locks?.at(-1)?.name ?? "");
      }
      answer.locks.sort((a, b) => (String(a.name) < String(b.name) ? -1 : 1));
      this.answer = answer;
      this.says.hidden = true;
      this.draw();
    } catch (error) {
      this.seen = null;
      this.says.hidden = false;
      put(this.says, explain(error));
    } finally { this.asking = false; }
  }

  draw() {
    if (!this.answer) return;
    const { locks, more } = this.answer, wanted = this.filter.value.toLowerCase();
    const found = locks.filter((lock) => String(lock.name).toLowerCase().includes(wanted));
    const wrong = new Set(list(this.answer.deadlocks).flatMap(list).map(String));
    become(this.graph, h("h2", {}, t("waits")), circles(this.answer), drawing(this.answer));
    become(this.all, found.length ? found.map((lock) => this.lock(lock, wrong)) : h("p", {}, t(locks.length ? "locks.no-match" : "locks.none")));
    become(this.end, more ? [button(t("locks.more"), () => { this.pages++; this.ask(); }, { id: "more-locks" }),
      h("span", { class: "hint" }, t("locks.shown", { count: whole(locks.length) }))] : null);
  }

  lock(lock, wrong) {
    const holders = list(lock.holders), queue = list(lock.queue), election = lock.kind === "election";
    const kind = has("kind." + lock.kind) ? t("kind." + lock.kind) : String(lock.kind ?? "");
    return h("article", { class: "card lock", "data-key": `${lock.kind} ${lock.name}`, "data-lock": lock.name },
      h("header", { class: "row" }, h("h3", {}, String(lock.name)), h("span", { class: "tag" }, kind),
        lock.slots > 0 ? h("span", { class: "tag" }, t("lock.slots", { count: whole(lock.slots) })) : null),
      holders.length ? h("ul", { class: "holders" }, holders.map((one) => this.holder(one, election, wrong))) : h("p", { class: "hint" }, this.nobody(lock)),
      queue.length ? this.queue(queue, holders, election, wrong) : null);
  }

  /* Why no holder is shown. */
  nobody(lock) {
    if (lock.refused) return t("lock.refused");
    return lock.crowded ? t("lock.crowded", { count: whole(lock.contenders) }) : t(lock.kind === "election" ? "lock.no-leader" : "lock.free");
  }

  holder(one, election, wrong) {
    const held = Number(one.since_ms) > 0 ? t("lock.held", { time: duration(this.now() - one.since_ms) }) : "";
    const facts = [where(one), one.token !== undefined && one.token !== null ? t("lock.token", { token: String(one.token) }) : "",
      one.priority !== undefined ? `${t("lock.priority")} ${one.priority}` : "", held, one.session ? t("lock.session", { session: String(one.session) }) : ""];
    return h("li", { class: wrong.has(String(one.session)) ? "wrong" : null }, h("i", { class: `key ${election ? "leads" : "inside"}` }),
      h("span", { class: "unseen" }, t(election ? "lock.leader" : "lock.holder"), ": "), h("b", {}, who(one)), h("span", { class: "hint" }, facts.filter(Boolean).join(" · ")));
  }

  estimate(one) {
    const [low, high] = list(one.estimate_ms);
    if (typeof low !== "number") return h("span", { class: "hint" }, t("lock.unknown"));
    return typeof high === "number" ? t("lock.between", { low: duration(low), high: duration(high) }) : t("lock.at-least", { low: duration(low) });
  }

  queue(queue, holders, election, wrong) {
    const columns = election ? ["position", "who", "where", "priority"] : ["position", "who", "where", "waits-for", "estimate"];
    const named = new Map([...holders, ...queue].map((one) => [one.node, who(one)]));
    const before = (one) => list(one.waits_for).slice(0, WAITED_FOR).map((node) => named.get(node) ?? String(node)).join(", ") + (list(one.waits_for).length > WAITED_FOR ? " …" : "");
    const rows = queue.slice(0, QUEUE).map((one, i) => [String(i + 1), wrong.has(String(one.session)) ? h("b", { class: "wrong-name" }, who(one)) : who(one), where(one),
      ...(election ? [whole(one.priority)] : [before(one), this.estimate(one)])]);
    return [h("h4", {}, t(election ? "lock.candidates" : "lock.queue")), table(columns.map((name) => t("lock." + name)), rows),
      queue.length > QUEUE ? h("p", { class: "hint" }, t("lock.more-waiting", { count: whole(queue.length - QUEUE) })) : null];
  }
}
