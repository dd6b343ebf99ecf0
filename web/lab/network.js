/* The network at the cursor's time: who is what, who waits where, who has the token, and the messages that are under way. */
import { hasToken, queueOf, shortName } from "./holdings.js";
import { palette } from "./palette.js";

const CHIP = 7, CHIPS = 5; /* the radius of one that waits, and how many are drawn */
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

export class Network {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.colours = palette();
    this.focus = -1;
    new ResizeObserver(() => this.resize()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.colours = palette(); this.redraw(); });
  }

  resize() {
    const { width, height } = this.canvas.getBoundingClientRect();
    if (!width || !height) return;
    this.ratio = Math.min(window.devicePixelRatio || 1, 2);
    Object.assign(this, { width, height });
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    this.place();
    this.redraw();
  }

  show(trace, cuts) {
    this.trace = trace;
    this.cuts = cuts;
    this.place();
  }

  /* Those that compete on a circle, those that serve inside it. */
  place() {
    if (!this.trace || !this.width) return;
    const { names, servers } = this.trace, peers = names.length - servers;
    const x = this.width / 2, y = this.height / 2, r = Math.min(x, y) - 26;
    this.radius = Math.max(1.5, Math.min(17, (Math.PI * r) / Math.max(peers, 4) / 1.6));
    this.places = names.map((name, p) => {
      const inner = p < servers, k = inner ? p : p - servers, of = inner ? servers : peers;
      const far = inner ? (servers === 1 ? 0 : r * 0.42) : r;
      const angle = (2 * Math.PI * k) / of - Math.PI / 2;
      return [x + far * Math.cos(angle), y + far * Math.sin(angle)];
    });
  }

  follow(count, time) { this.count = count; this.time = time; this.redraw(); }

  redraw() {
    if (this.pending || !this.places) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.draw(); });
  }

  draw() {
    const c = this.context, { trace, colours } = this;
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, this.width, this.height);
    this.edges(c);
    this.underWay(c);
    const states = trace.standing(this.count);
    const wrong = new Set(trace.overlaps.filter((o) => o.from <= this.time + 1e-9 && this.time <= o.to).flatMap((o) => o.processes));
    this.places.forEach(([x, y], p) => this.node(c, p, x, y, states[p], wrong.has(p), colours));
    this.chips = [];
    this.tokens = [];
    if (this.radius < 8) return;
    this.places.forEach(([x, y], p) => {
      if (states[p].down) return;
      this.queue(c, p, x, y, queueOf(states[p].note));
      if (hasToken(states[p].note, trace.names[p])) this.token(c, p, x, y);
    });
  }

  edges(c) {
    const n = this.trace.names.length;
    if (this.trace.pairs.size > 3000) return;
    const split = this.trace.partitions.some((s) => s.from <= this.time && this.time < s.to);
    c.lineWidth = 1.2;
    c.globalAlpha = this.trace.pairs.size > 200 ? 0.25 : 0.8;
    for (const pair of this.trace.pairs) {
      const a = Math.floor(pair / n), b = pair % n;
      const cut = this.cuts && this.cuts(a, b, this.time);
      c.strokeStyle = cut ? this.colours.wrong : split ? this.colours.split : this.colours.faint;
      if (this.focus === pair) c.strokeStyle = this.colours.accent;
      c.setLineDash(cut ? [3, 4] : split ? [5, 4] : []);
      c.beginPath();
      c.moveTo(...this.places[a]);
      c.lineTo(...this.places[b]);
      c.stroke();
    }
    c.setLineDash([]);
    c.globalAlpha = 1;
  }

  underWay(c) {
    const { trace, time } = this;
    let m = 0, high = trace.messages;
    const from = time - trace.longest - 1e-9;
    while (m < high) { const half = (m + high) >> 1; if (trace.sentAt[half] < from) m = half + 1; else high = half; }
    for (let shown = 0; m < trace.messages && shown < 400 && trace.sentAt[m] <= time; m++) {
      if (trace.lost[m] || trace.sendOf[m] >= this.count || !(trace.arrivesAt[m] > time)) continue;
      shown++;
      const k = Number.isFinite(trace.arrivesAt[m]) ? (time - trace.sentAt[m]) / (trace.arrivesAt[m] - trace.sentAt[m]) : 0.5;
      const [x1, y1] = this.places[trace.fromOf[m]], [x2, y2] = this.places[trace.toOf[m]];
      const gap = (this.radius + 6) / (Math.hypot(x2 - x1, y2 - y1) || 1), at = gap + (1 - 2 * gap) * k;
      const x = x1 + (x2 - x1) * at, y = y1 + (y2 - y1) * at, angle = Math.atan2(y2 - y1, x2 - x1);
      c.fillStyle = this.colours.kinds[trace.kindOf[m] % this.colours.kinds.length];
      c.beginPath();
      c.moveTo(x + 6 * Math.cos(angle), y + 6 * Math.sin(angle));
      c.lineTo(x + 5 * Math.cos(angle + 2.4), y + 5 * Math.sin(angle + 2.4));
      c.lineTo(x + 5 * Math.cos(angle - 2.4), y + 5 * Math.sin(angle - 2.4));
      c.fill();
    }
  }

  node(c, p, x, y, state, wrong, colours) {
    const server = p < this.trace.servers, r = this.radius;
    c.fillStyle = wrong ? colours.wrong : state.down ? colours.paper : state.kind ? colours[state.kind] : colours.paper;
    c.strokeStyle = this.focusNode === p ? colours.accent : state.down ? colours.faint : colours.soft;
    c.lineWidth = this.focusNode === p ? 3 : r > 6 ? 1.6 : 1;
    c.setLineDash(state.down || state.paused ? [3, 3] : []);
    c.beginPath();
    if (server) c.roundRect(x - r, y - r, 2 * r, 2 * r, 3);
    else c.arc(x, y, r, 0, 2 * Math.PI);
    c.fill();
    c.stroke();
    c.setLineDash([]);
    if (r < 8) return;
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.font = `${r > 12 ? 11 : 9}px ${FONT}`;
    const name = this.trace.names[p], strong = wrong || state.kind === "inside" || state.kind === "leads";
    c.fillStyle = state.down ? colours.faint : strong ? "#fff" : state.kind === "waits" ? "#0f172a" : colours.ink;
    if (c.measureText(name).width < 2 * r - 2) c.fillText(name, x, y);
    else { c.fillStyle = colours.ink; c.fillText(name, x, y + r + 9); }
    if (state.paused) { c.fillStyle = colours.ink; c.fillText("❚❚", x, y - r - 8); }
    if (state.down) { c.strokeStyle = colours.ink; c.lineWidth = 2.5; c.beginPath(); c.moveTo(x - r * 0.7, y - r * 0.7); c.lineTo(x + r * 0.7, y + r * 0.7); c.moveTo(x - r * 0.7, y + r * 0.7); c.lineTo(x + r * 0.7, y - r * 0.7); c.stroke(); }
    c.textAlign = "left";
    c.textBaseline = "alphabetic";
  }

  /* Toward the middle, where there is room. */
  queue(c, p, x, y, names) {
    const way = x > this.width / 2 + 1 ? -1 : 1, shown = names.slice(0, CHIPS);
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.font = `9px ${FONT}`;
    shown.forEach((name, i) => {
      const at = [x + way * (this.radius + 3 + CHIP + i * (2 * CHIP + 2)), y];
      this.chips.push({ at: p, name, x: at[0], y: at[1] });
      c.fillStyle = this.colours.waits;
      c.strokeStyle = this.colours.soft;
      c.lineWidth = 1;
      c.beginPath();
      c.arc(...at, CHIP, 0, 2 * Math.PI);
      c.fill();
      c.stroke();
      c.fillStyle = "#0f172a";
      c.fillText(shortName(name), ...at);
    });
    c.fillStyle = this.colours.ink;
    if (names.length > CHIPS) c.fillText(`+${names.length - CHIPS}`, x + way * (this.radius + 3 + CHIP + CHIPS * (2 * CHIP + 2)), y);
    c.textAlign = "left";
    c.textBaseline = "alphabetic";
  }

  /* A diamond at the process's shoulder. */
  token(c, p, x, y) {
    const r = 6, [a, b] = [x + this.radius * 0.8, y - this.radius * 0.8];
    this.tokens.push({ at: p, x: a, y: b });
    c.fillStyle = this.colours.accent;
    c.strokeStyle = this.colours.paper;
    c.lineWidth = 1.5;
    c.beginPath();
    c.moveTo(a, b - r), c.lineTo(a + r, b), c.lineTo(a, b + r), c.lineTo(a - r, b);
    c.closePath();
    c.fill();
    c.stroke();
  }

  processAt(x, y) {
    return this.places ? this.places.findIndex(([a, b]) => Math.hypot(a - x, b - y) <= Math.max(this.radius, 8) + 2) : -1;
  }

  linkAt(x, y) {
    if (!this.places || this.trace.pairs.size > 3000) return null;
    const n = this.trace.names.length;
    let best = null, least = 7;
    for (const pair of this.trace.pairs) {
      const a = Math.floor(pair / n), b = pair % n, [x1, y1] = this.places[a], [x2, y2] = this.places[b];
      const dx = x2 - x1, dy = y2 - y1, length = dx * dx + dy * dy || 1;
      const k = Math.max(0, Math.min(1, ((x - x1) * dx + (y - y1) * dy) / length));
      const far = Math.hypot(x1 + k * dx - x, y1 + k * dy - y);
      if (far < least) { least = far; best = { a, b, pair }; }
    }
    return best;
  }
}
