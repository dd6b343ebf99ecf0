/* A trace as the diagram needs it: numbers in typed arrays, and spans of time for each process.  Processes are numbered
 * from 0 here, and entries as in the trace, from 1. */

/* What a process is, in the order in which one hides another. */
export const STANDINGS = ["waits", "inside", "asks", "leads", "follows"];

/* For each type of entry: the standing that begins with it ("" ends it). */
const BEGINS = {
  ask: "waits", enter: "inside", leave: "", campaign: "asks", elected: "leads", follows: "follows", leaderless: "", crash: "",
};

/* A step whose state has nothing to show comes without one. */
const STEPS = new Set(["start", "ask", "done", "campaign", "receive", "timer", "recover", "suspect", "trust"]);

function lanes(count) {
  return Array.from({ length: count }, () => []);
}

function middle(values) {
  if (!values.length) return 0;
  return values.slice().sort((a, b) => a - b)[values.length >> 1];
}

/* Long times in which nothing happens are cut short: `place` is where a time is, in units of about one message. */
class Axis {
  constructor(times) {
    const distinct = [];
    for (const t of times) if (!distinct.length || t > distinct[distinct.length - 1]) distinct.push(t);
    const gaps = [];
    for (let i = 1; i < distinct.length; i++) gaps.push(distinct[i] - distinct[i - 1]);
    this.times = Float64Array.from(distinct.length ? distinct : [0]);
    this.places = new Float64Array(this.times.length);
    this.cuts = [];
    this.gap = middle(gaps);
  }

  measure(delays) {
    const unit = middle(delays) || this.gap || 1;
    this.unit = unit;
    for (let i = 1; i < this.times.length; i++) {
      const gap = (this.times[i] - this.times[i - 1]) / unit;
      const shown = gap > 5 ? 2 : gap;
      if (shown < gap) this.cuts.push(i);
      this.places[i] = this.places[i - 1] + shown;
    }
    this.length = this.places[this.places.length - 1];
    return this;
  }

  static search(array, value) {
    let low = 0, high = array.length;
    while (low < high) {
      const half = (low + high) >> 1;
      if (array[half] <= value) low = half + 1;
      else high = half;
    }
    return low;
  }

  /* Piecewise linear, from one array to the other; beyond the ends at the usual scale. */
  map(from, to, value, scale) {
    const last = from.length - 1;
    if (value <= from[0]) return to[0] + (value - from[0]) * scale;
    if (value >= from[last]) return to[last] + (value - from[last]) * scale;
    const i = Axis.search(from, value);
    return to[i - 1] + ((value - from[i - 1]) * (to[i] - to[i - 1])) / (from[i] - from[i - 1]);
  }

  place(time) { return this.map(this.times, this.places, time, 1 / this.unit); }
  time(place) { return this.map(this.places, this.times, place, this.unit); }
}

export class Trace {
  constructor(json, report) {
    this.algorithm = json.algorithm;
    this.title = json.title;
    this.names = json.processes;
    this.servers = json.servers;
    this.truncated = json.truncated;
    this.entries = json.entries;
    this.report = report;
    this.number = new Map(this.names.map((name, i) => [name, i]));
    const n = this.entries.length;
    this.base = n ? this.entries[0].index : 1;
    this.timeOf = Float64Array.from(this.entries, (e) => e.time_ms);
    this.processOf = Int32Array.from(this.entries, (e) => this.number.get(e.process) ?? -1);
    this.end = n ? this.timeOf[n - 1] : 0;
    if (report) this.end = Math.max(this.end, Math.min(report.time_ms || 0, this.end * 1.05 + 2));
    this.collectMessages();
    this.collectSpans();
    this.findOverlaps();
  }

  /* The place of an entry in `entries` by its number in the trace, or -1. */
  at(index) {
    const i = index - this.base;
    return i >= 0 && i < this.entries.length ? i : -1;
  }

  collectMessages() {
    const sends = this.entries.filter((e) => e.type === "send");
    const kinds = new Map();
    this.messages = sends.length;
    this.sendOf = new Int32Array(sends.length);
    this.receiveOf = new Int32Array(sends.length).fill(-1);
    this.fromOf = new Int32Array(sends.length);
    this.toOf = new Int32Array(sends.length);
    this.sentAt = new Float64Array(sends.length);
    this.arrivesAt = new Float64Array(sends.length);
    this.kindOf = new Uint8Array(sends.length);
    this.lost = new Uint8Array(sends.length);
    this.messageOf = new Map();
    this.pairs = new Set();
    const delays = [];
    sends.forEach((send, m) => {
      const end = send.match ? this.at(send.match) : -1;
      if (!kinds.has(send.message)) kinds.set(send.message, kinds.size);
      this.sendOf[m] = this.at(send.index);
      this.receiveOf[m] = end;
      this.fromOf[m] = this.number.get(send.process);
      this.toOf[m] = this.number.get(send.peer);
      this.sentAt[m] = send.time_ms;
      this.arrivesAt[m] = end >= 0 ? this.timeOf[end] : Infinity;
      this.kindOf[m] = kinds.get(send.message);
      this.lost[m] = end >= 0 && this.entries[end].type === "lost" ? 1 : 0;
      this.messageOf.set(this.sendOf[m], m);
      if (end >= 0) {
        this.messageOf.set(end, m);
        if (!this.lost[m] && delays.length < 10000) delays.push(this.timeOf[end] - send.time_ms);
      }
      const [a, b] = [this.fromOf[m], this.toOf[m]].sort((x, y) => x - y);
      this.pairs.add(a * this.names.length + b);
    });
    this.kinds = [...kinds.keys()];
    this.axis = new Axis([...this.timeOf, ...(this.end > (this.timeOf.at(-1) ?? 0) ? [this.end] : [])])
      .measure(delays.filter((d) => d > 0));
    this.longest = 0;
    for (let m = 0; m < this.messages; m++)
      if (this.receiveOf[m] >= 0) this.longest = Math.max(this.longest, this.arrivesAt[m] - this.sentAt[m]);
  }

  /* Spans are {from, to, kind, first: entry} in the order of time, for each process; partitions are of all. */
  collectSpans() {
    const count = this.names.length;
    this.spans = lanes(count);
    this.downs = lanes(count);
    this.pauses = lanes(count);
    this.partitions = [];
    this.marks = lanes(count);
    const open = new Array(count).fill(null), down = new Array(count).fill(null), paused = new Array(count).fill(null);
    let split = null;
    const close = (list, span, time) => { if (span) { span.to = time; list.push(span); } };
    this.entries.forEach((entry, i) => {
      const p = this.processOf[i], time = this.timeOf[i];
      if (entry.type === "partition") { close(this.partitions, split, time); split = { from: time, first: i }; }
      if (entry.type === "heal") { close(this.partitions, split, time); split = null; }
      if (p < 0) return;
      if (entry.type in BEGINS && !(entry.type === "leaderless" && open[p]?.kind === "asks")) {
        close(this.spans[p], open[p], time);
        open[p] = BEGINS[entry.type] ? { from: time, kind: BEGINS[entry.type], first: i, term: entry.term } : null;
      }
      if (entry.type === "crash") { close(this.downs[p], down[p], time); down[p] = { from: time, first: i }; }
      if (entry.type === "recover" || entry.type === "start") { close(this.downs[p], down[p], time); down[p] = null; }
      if (entry.type === "pause") paused[p] = paused[p] || { from: time, first: i };
      if (entry.type === "resume" || entry.type === "crash") { close(this.pauses[p], paused[p], time); paused[p] = null; }
      if (!["send", "receive", "lost"].includes(entry.type)) this.marks[p].push(i);
    });
    for (let p = 0; p < count; p++) {
      close(this.spans[p], open[p], this.end);
      close(this.downs[p], down[p], this.end);
      close(this.pauses[p], paused[p], this.end);
    }
    close(this.partitions, split, this.end);
  }

  /* Where two are inside, or lead in one term, if the judge has seen that. */
  findOverlaps() {
    this.overlaps = [];
    const verdicts = this.report ? this.report.verdicts : {};
    const kind = verdicts.exclusion === "violated" ? "inside" : verdicts.uniqueness === "violated" ? "leads" : null;
    if (!kind) return;
    const all = [];
    this.spans.forEach((list, p) => list.forEach((s) => { if (s.kind === kind) all.push({ ...s, p }); }));
    all.sort((a, b) => a.from - b.from);
    const groups = new Map(); /* by term: two leaders of different terms are no violation */
    for (const span of all) {
      const others = (groups.get(span.term ?? 0) || []).filter((s) => s.to > span.from);
      for (const other of others)
        this.overlaps.push({ from: span.from, to: Math.min(span.to, other.to), processes: [other.p, span.p],
                             entries: [other.first, span.first] });
      groups.set(span.term ?? 0, [...others, span]);
    }
  }

  /* The number of entries that have happened at this time. */
  countAt(time) { return Axis.search(this.timeOf, time); }

  /* What is known of each process after the first `count` entries. */
  standing(count) {
    if (!this.known || this.known.count > count)
      this.known = { count: 0, states: this.names.map(() => ({ note: "", kind: "", down: false, paused: false, term: 0 })) };
    const states = this.known.states;
    for (let i = this.known.count; i < count && i < this.entries.length; i++) {
      const p = this.processOf[i];
      if (p < 0) continue;
      const entry = this.entries[i], state = states[p];
      if (entry.state !== undefined || STEPS.has(entry.type)) state.note = entry.state ?? "";
      if (entry.term) state.term = entry.term;
      if (entry.type in BEGINS && !(entry.type === "leaderless" && state.kind === "asks")) state.kind = BEGINS[entry.type];
      if (entry.type === "crash") { state.down = true; state.paused = false; state.note = ""; }
      if (entry.type === "recover" || entry.type === "start") state.down = false;
      if (entry.type === "pause") state.paused = true;
      if (entry.type === "resume") state.paused = false;
    }
    this.known.count = count;
    return states;
  }

  /* The entries that led to these. */
  past(from) {
    const seen = new Set(), open = from.filter((i) => i >= 0);
    while (open.length) {
      const i = open.pop();
      if (seen.has(i)) continue;
      seen.add(i);
      const entry = this.entries[i];
      const before = entry.cause ? this.at(entry.cause) : -1;
      if (before >= 0) open.push(before);
      if (entry.type === "receive" && entry.match) { const send = this.at(entry.match); if (send >= 0) open.push(send); }
    }
    this.addFaults(seen);
    return seen;
  }

  /* The faults of those that took part, before the end. */
  addFaults(seen) {
    const last = [...seen].reduce((a, b) => Math.max(a, b), -1), processes = new Set([...seen].map((i) => this.processOf[i]));
    for (let i = 0; i < last; i++)
      if (["crash", "recover", "pause", "resume", "partition", "heal", "timer", "suspect", "trust"].includes(this.entries[i].type) &&
          (this.processOf[i] < 0 || processes.has(this.processOf[i]))) seen.add(i);
    for (let m = 0; m < this.messages && this.sendOf[m] < last; m++) /* and what was lost on the way */
      if (this.lost[m] && seen.has(this.at(this.entries[this.sendOf[m]].cause ?? 0))) {
        seen.add(this.sendOf[m]);
        seen.add(this.receiveOf[m]);
      }
  }

  /* Where the judge first objects: an entry, or -1. */
  violation() {
    const at = this.report ? Object.values(this.report.verdicts.at || {}) : [];
    if (!at.length) return -1;
    const time = Math.min(...at);
    const overlap = this.overlaps.find((o) => Math.abs(o.from - time) < 1e-6);
    if (overlap) return overlap.entries[1];
    return Math.max(0, this.countAt(time) - 1);
  }
}
