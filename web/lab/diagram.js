/* The space-time diagram: which part of a trace is seen, and at which scale.  It draws only that (drawing.js). */
import { draw } from "./drawing.js";
import { palette } from "./palette.js";

const HEAD = 22, FOOT = 28, RIGHT = 28;
const LANE_MAX = 86, LANE_LEAST = 1;

export class Diagram {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.trace = null;
    this.cursor = 0; /* number of entries that have happened */
    this.time = 0; /* of the cursor */
    this.hover = -1;
    this.past = null;
    this.drag = null;
    this.colours = palette();
    this.frames = 0; /* for the bench: how many, and how long they took */
    this.worked = 0;
    new ResizeObserver(() => this.resize()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
  }

  recolour() { this.colours = palette(); this.redraw(); }

  resize() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const { width, height } = this.canvas.getBoundingClientRect();
    if (!width || !height) return;
    const before = this.width;
    this.width = width;
    this.height = height;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.ratio = ratio;
    if (this.trace && (!before || !this.moved)) this.fit();
    this.redraw();
  }

  show(trace, keepView) {
    const same = keepView && this.trace && this.trace.names.length === trace.names.length;
    this.trace = trace;
    this.hover = -1;
    this.past = null;
    const context = this.context;
    context.font = "13px system-ui, sans-serif";
    const sample = trace.names.slice(0, 400);
    this.left = Math.min(130, Math.max(...sample.map((n) => context.measureText(n).width)) + 24);
    if (!same) { this.moved = false; this.fit(); }
    this.redraw();
  }

  /* All of a short run; of a long one its beginning, at a scale that can be read. */
  fit(all = false) {
    if (!this.trace || !this.width) return;
    const axis = this.trace.axis, room = this.width - this.left - RIGHT;
    const whole = room / Math.max(axis.length, 1);
    this.scale = all ? whole : Math.min(150, Math.max(whole, 24));
    this.from = -6 / this.scale;
    const lanes = this.trace.names.length, tall = this.height - HEAD - FOOT;
    this.lane = Math.max(LANE_LEAST, Math.min(LANE_MAX, tall / lanes));
    if (!all && lanes <= 40) this.lane = Math.max(this.lane, 22);
    this.top = 0;
    if (all) this.moved = true;
    this.redraw();
  }

  x(time) { return this.left + (this.trace.axis.place(time) - this.from) * this.scale; }
  y(process) { return HEAD + (process + 0.5) * this.lane - this.top; }
  timeAt(x) { return this.trace.axis.time((x - this.left) / this.scale + this.from); }
  processAt(y) {
    const p = Math.floor((y - HEAD + this.top) / this.lane);
    return p >= 0 && p < this.trace.names.length ? p : -1;
  }

  get body() { return { left: this.left, top: HEAD, right: this.width, bottom: this.height - FOOT }; }

  clamp() {
    const room = (this.width - this.left - RIGHT) / this.scale, length = this.trace.axis.length;
    this.from = Math.max(-6 / this.scale, Math.min(this.from, Math.max(length - room, 0)));
    const tall = this.trace.names.length * this.lane;
    this.top = Math.max(0, Math.min(this.top, tall - (this.height - HEAD - FOOT)));
    if (tall <= this.height - HEAD - FOOT) this.top = 0;
  }

  zoom(factor, x = (this.left + this.width) / 2) {
    const anchor = (x - this.left) / this.scale + this.from;
    const least = (this.width - this.left - RIGHT) / Math.max(this.trace.axis.length, 1);
    this.scale = Math.max(Math.min(least, 24), Math.min(600, this.scale * factor));
    this.from = anchor - (x - this.left) / this.scale;
    this.moved = true;
    this.clamp();
    this.redraw();
  }

  zoomLanes(factor, y = this.height / 2) {
    const anchor = (y - HEAD + this.top) / this.lane;
    const least = Math.min((this.height - HEAD - FOOT) / this.trace.names.length, LANE_MAX);
    this.lane = Math.max(Math.max(least, 0.4), Math.min(140, this.lane * factor));
    this.top = anchor * this.lane - (y - HEAD);
    this.moved = true;
    this.clamp();
    this.redraw();
  }

  pan(dx, dy) {
    this.from -= dx / this.scale;
    this.top -= dy;
    this.moved = true;
    this.clamp();
    this.redraw();
  }

  /* The cursor, and the view with it when it would leave. */
  follow(count, time, still) {
    this.cursor = count;
    this.time = time;
    if (still || !this.width) return this.redraw();
    const x = this.x(time), right = this.width - RIGHT;
    if (x > right - 40 || x < this.left) {
      this.from = this.trace.axis.place(time) - ((right - this.left) * (x < this.left ? 0.2 : 0.55)) / this.scale;
      this.clamp();
    }
    const p = count > 0 ? this.trace.processOf[count - 1] : -1;
    if (p >= 0) {
      const y = this.y(p);
      if (y < HEAD || y > this.height - FOOT) { this.top += y - this.height / 2; this.clamp(); }
    }
    this.redraw();
  }

  redraw() {
    if (this.pending || !this.trace || !this.width) return;
    this.pending = true;
    requestAnimationFrame((now) => {
      this.pending = false;
      this.frames++;
      this.moving = this.playing || now - (this.drawn ?? -Infinity) < 300;
      this.drawn = now;
      const begin = performance.now();
      draw(this);
      this.worked += performance.now() - begin;
      clearTimeout(this.settling); /* then once more, with all that it has */
      if (this.moving && this.sampled > 1) this.settling = setTimeout(() => this.redraw(), 400);
    });
  }

  /* The messages that may be seen: those sent before the right edge, and not long before the left one. */
  visibleMessages() {
    const { trace } = this;
    const from = this.timeAt(this.left) - trace.longest, to = this.timeAt(this.width);
    return [lower(trace.sentAt, from), lower(trace.sentAt, to + 1e-9)];
  }

  /* The message nearest to a point, within a few pixels; -1 if there is none. */
  messageAt(x, y, reach = 7) {
    const { trace } = this;
    const [first, end] = this.visibleMessages();
    let best = -1, least = reach * reach;
    for (let m = first; m < end; m++) {
      const x1 = this.x(trace.sentAt[m]), y1 = this.y(trace.fromOf[m]);
      const [x2, y2] = this.endOf(m);
      if (x < Math.min(x1, x2) - reach || x > Math.max(x1, x2) + reach) continue;
      const dx = x2 - x1, dy = y2 - y1, length = dx * dx + dy * dy || 1;
      const k = Math.max(0, Math.min(1, ((x - x1) * dx + (y - y1) * dy) / length));
      const ex = x1 + k * dx - x, ey = y1 + k * dy - y, d = ex * ex + ey * ey;
      if (d < least) { least = d; best = m; }
    }
    return best;
  }

  /* Where the arrow of a message ends: one that is lost comes half of the way; one under way leaves the picture. */
  endOf(m) {
    const { trace } = this;
    const x1 = this.x(trace.sentAt[m]), y1 = this.y(trace.fromOf[m]), y2 = this.y(trace.toOf[m]);
    if (trace.lost[m]) return [Math.max(this.x(trace.arrivesAt[m]) - 0, x1 + 0.5 * Math.min(this.scale, 90)), (y1 + y2) / 2];
    if (trace.receiveOf[m] < 0) return [x1 + 0.7 * Math.min(this.scale, 90), y1 + (y2 - y1) * 0.7];
    return [this.x(trace.arrivesAt[m]), y2];
  }
}

function lower(array, value) {
  let low = 0, high = array.length;
  while (low < high) {
    const half = (low + high) >> 1;
    if (array[half] < value) low = half + 1;
    else high = half;
  }
  return low;
}
