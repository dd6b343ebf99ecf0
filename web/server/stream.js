/* What the server says each second, kept for some minutes so that rates can be seen.  When it falls silent the page says so, and
   tries again and again. */
import { ask } from "./api.js";

const KEPT = 300, SILENCE_MS = 6000, LONGEST_PAUSE_MS = 8000, HIDDEN_MS = 120000;

/* Counters, and what is shown of their differences. */
const COUNTERS = { reads: (s) => s.requests?.reads, writes: (s) => s.requests?.writes, in: (s) => s.bytes_in, out: (s) => s.bytes_out };

export function finite(value) { return typeof value === "number" && Number.isFinite(value) ? value : null; }

/* What happened between two states, each second; null where it cannot be known. */
export function rates(before, now) {
  const seconds = (now.uptime_ms - before.uptime_ms) / 1000, made = {};
  for (const [name, of] of Object.entries(COUNTERS)) {
    const more = finite(of(now)) - finite(of(before));
    made[name] = seconds > 0 && more >= 0 ? more / seconds : null;
  }
  return made;
}

/* Calls onState with each state, and onStatus when the stream begins, ends, or when an attempt fails. */
export class Stream {
  constructor(address, onState, onStatus) {
    Object.assign(this, { address, onState, onStatus, history: [], state: null, live: false, failures: 0 });
    document.addEventListener("visibilitychange", () => this.seen(!document.hidden));
    this.open();
  }

  open() {
    this.close();
    const source = new EventSource(this.address);
    this.source = source;
    this.expect();
    source.addEventListener("state", (event) => { if (source === this.source) this.take(event.data); });
    source.addEventListener("error", () => { if (source === this.source) this.fail(source.readyState === EventSource.CLOSED); });
  }

  close() {
    clearTimeout(this.watchdog);
    clearTimeout(this.again);
    this.source?.close();
    this.source = null;
  }

  /* A connection may be dead without an end, and a process may stand still. */
  expect() {
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(() => this.fail(), SILENCE_MS);
  }

  take(text) {
    let state;
    try { state = JSON.parse(text); } catch { return this.fail(); }
    if (state === null || typeof state !== "object") return this.fail();
    this.expect();
    this.failures = 0;
    this.full = false;
    this.accept(state);
    if (!this.live) { this.live = true; this.onStatus(); }
    return undefined;
  }

  accept(state) {
    if (this.state) this.keep(this.state, state);
    this.state = state;
    this.heard = Date.now();
    this.onState(state);
  }

  keep(before, state) {
    const latency = state.latency_us ?? {};
    this.history.push({ at: this.heard / 1000, ...rates(before, state), p50: finite(latency.p50), p99: finite(latency.p99), p999: finite(latency.p999) });
    if (this.history.length > KEPT) this.history.shift();
  }

  /* refused: the server did answer, but with no stream; it has places for few, and may still say how it is. */
  fail(refused = false) {
    this.close();
    this.live = this.full = false;
    this.failures++;
    this.again = setTimeout(() => this.open(), Math.min(LONGEST_PAUSE_MS, 500 * 2 ** this.failures));
    if (refused) ask("state").then((state) => { this.full = true; this.accept(state); this.onStatus(); }).catch(() => {});
    this.onStatus();
  }

  /* Nobody looks: the server has places for few readers. */
  seen(visible) {
    clearTimeout(this.leaving);
    if (visible && !this.source) { this.failures = 0; this.open(); }
    if (!visible) this.leaving = setTimeout(() => this.close(), HIDDEN_MS);
  }
}
