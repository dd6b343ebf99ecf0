/* How the part of a trace that a diagram shows is drawn. */
import { t } from "./texts.js";

const MANY = 5000, MOVING = 900; /* messages of one picture, at rest and in motion; of more, one in several is drawn */
const WORDS = 90; /* messages that get a label each */
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

export function draw(d) {
  const c = d.context, { trace, colours } = d, box = d.body;
  c.setTransform(d.ratio, 0, 0, d.ratio, 0, 0);
  c.fillStyle = colours.paper;
  c.fillRect(0, 0, d.width, d.height);
  const lanes = visibleLanes(d);
  c.save();
  c.beginPath();
  c.rect(box.left - 10, 0, box.right - box.left + 10, box.bottom);
  c.clip();
  grid(d, c, box);
  partitions(d, c, box);
  overlapShades(d, c, box);
  lines(d, c, box, lanes);
  spans(d, c, lanes);
  messages(d, c);
  marks(d, c, lanes);
  cursor(d, c, box);
  c.restore();
  names(d, c, box, lanes);
  axis(d, c, box);
}

function visibleLanes(d) {
  const box = d.body;
  const first = Math.max(0, Math.floor(d.top / d.lane));
  const end = Math.min(d.trace.names.length, Math.ceil((d.top + box.bottom - box.top) / d.lane) + 1);
  return { first, end, step: Math.max(1, Math.ceil(3 / d.lane)) };
}

/* A pleasant distance between the numbers of the axis. */
function tick(d) {
  const wish = (70 / d.scale) * d.trace.axis.unit;
  const power = 10 ** Math.floor(Math.log10(wish));
  return [1, 2, 5, 10].map((k) => k * power).find((step) => step >= wish) || power * 10;
}

function ticks(d) {
  const step = tick(d), out = [], axis = d.trace.axis;
  const from = Math.max(0, d.timeAt(d.left)), to = Math.min(d.timeAt(d.width), d.trace.end * 1.2 + step);
  let last = -Infinity;
  for (let time = Math.ceil(from / step) * step, n = 0; time <= to && n < 100000; time += step, n++) {
    const x = d.x(time);
    if (x - last < 46 || inCut(axis, time)) continue;
    out.push([x, time]);
    last = x;
  }
  return out;
}

function inCut(axis, time) {
  let low = 0, high = axis.cuts.length;
  while (low < high) {
    const half = (low + high) >> 1;
    if (axis.times[axis.cuts[half]] <= time) low = half + 1;
    else high = half;
  }
  if (low >= axis.cuts.length) return false;
  const i = axis.cuts[low];
  return time > axis.times[i - 1] && time < axis.times[i];
}

function visibleCuts(d) {
  const { cuts, times } = d.trace.axis;
  if (cuts.length * 12 > d.trace.axis.length * d.scale) return []; /* they would be one beside the other */
  const from = d.timeAt(d.left), to = d.timeAt(d.width);
  return cuts.filter((i) => times[i] >= from && times[i - 1] <= to);
}

function grid(d, c, box) {
  c.strokeStyle = d.colours.grid;
  c.lineWidth = 1;
  c.beginPath();
  for (const [x] of ticks(d)) { c.moveTo(Math.round(x) + 0.5, box.top); c.lineTo(Math.round(x) + 0.5, box.bottom); }
  c.stroke();
}

function partitions(d, c, box) {
  for (const span of d.trace.partitions) {
    const x1 = d.x(span.from), x2 = d.x(span.to);
    if (x2 < box.left || x1 > box.right) continue;
    c.globalAlpha = 0.1;
    c.fillStyle = d.colours.split;
    c.fillRect(x1, box.top, x2 - x1, box.bottom - box.top);
    c.globalAlpha = 1;
    c.strokeStyle = d.colours.split;
    c.setLineDash([5, 4]);
    c.strokeRect(x1, box.top + 0.5, x2 - x1, box.bottom - box.top);
    c.setLineDash([]);
    label(d, c, t("diagram.split"), Math.max(x1, box.left) + 2, 13, d.colours.split);
  }
}

function overlapShades(d, c, box) {
  c.fillStyle = d.colours.wrong;
  for (const { from, to } of d.trace.overlaps.slice(0, 2000)) {
    const x1 = d.x(from), x2 = Math.max(d.x(to), x1 + 2);
    if (x2 < box.left || x1 > box.right) continue;
    c.globalAlpha = 0.13;
    c.fillRect(x1, box.top, x2 - x1, box.bottom - box.top);
  }
  c.globalAlpha = 1;
}

function lines(d, c, box, lanes) {
  c.strokeStyle = d.colours.soft;
  c.lineWidth = d.lane > 12 ? 1.5 : 1;
  c.globalAlpha = d.lane < 6 ? 0.35 : 1;
  const from = d.x(0), to = Math.min(box.right, d.x(d.trace.end) + 14);
  c.beginPath();
  for (let p = lanes.first; p < lanes.end; p += lanes.step) { c.moveTo(Math.max(from - 14, box.left - 10), d.y(p)); c.lineTo(to, d.y(p)); }
  c.stroke();
  c.globalAlpha = 1;
  for (let p = lanes.first; p < lanes.end; p++) {
    for (const { from: a, to: b } of d.trace.downs[p]) {
      const x1 = d.x(a), x2 = d.x(b), y = d.y(p);
      if (x2 < box.left - 10 || x1 > box.right) continue;
      c.strokeStyle = d.colours.paper;
      c.lineWidth = 4;
      stroke(c, x1, y, x2, y);
      c.strokeStyle = d.colours.faint;
      c.lineWidth = Math.min(2, d.lane / 2);
      c.setLineDash([5, 5]);
      stroke(c, x1, y, x2, y);
      c.setLineDash([]);
    }
  }
}

function stroke(c, x1, y1, x2, y2) { c.beginPath(); c.moveTo(x1, y1); c.lineTo(x2, y2); c.stroke(); }

/* The height of a bar: waiting is thinner than being inside. */
function thickness(d, kind) {
  const most = Math.min(14, d.lane * 0.55);
  return Math.max(1, kind === "waits" ? most * 0.45 : kind === "inside" ? most : most * 0.7);
}

function spans(d, c, lanes) {
  const wrong = new Map();
  for (const { from, to, processes } of d.trace.overlaps)
    for (const p of processes) { if (!wrong.has(p)) wrong.set(p, []); wrong.get(p).push([from, to]); }
  for (let p = lanes.first; p < lanes.end; p++) {
    const y = d.y(p);
    let drawn = -Infinity;
    for (const span of d.trace.spans[p]) {
      const x1 = d.x(span.from);
      if (x1 > d.width) break;
      const x2 = d.x(span.to);
      if (x2 < d.left - 10 || (x2 - drawn < 0.7 && d.lane < 4)) continue;
      drawn = x2;
      const h = thickness(d, span.kind), future = span.first >= d.cursor;
      c.globalAlpha = future ? 0.3 : 1;
      c.fillStyle = d.colours[span.kind];
      c.fillRect(x1, y - h / 2, Math.max(x2 - x1, 1), h);
      if (span.kind === "leads" && span.term && d.lane > 16 && x2 - x1 > 60) {
        c.fillStyle = d.colours.ink;
        c.font = "10px " + FONT;
        c.fillText(t("diagram.term", { term: span.term }), Math.max(x1 + 14, d.left + 4), y - h / 2 - 5);
      }
    }
    c.fillStyle = d.colours.wrong;
    for (const [from, to] of wrong.get(p) || []) {
      c.globalAlpha = d.time + 1e-9 < from && d.cursor < d.trace.entries.length ? 0.3 : 1;
      const h = thickness(d, "inside");
      c.fillRect(d.x(from), y - h / 2, Math.max(d.x(to) - d.x(from), 2), h);
    }
    c.globalAlpha = 1;
    for (const { from, to } of d.trace.pauses[p]) hatch(d, c, d.x(from), d.x(to), y);
  }
  c.globalAlpha = 1;
}

function hatch(d, c, x1, x2, y) {
  if (x2 < d.left || x1 > d.width) return;
  const h = Math.max(4, Math.min(18, d.lane * 0.6));
  c.save();
  c.beginPath();
  c.rect(x1, y - h / 2, x2 - x1, h);
  c.fillStyle = d.colours.paper;
  c.globalAlpha = 0.55;
  c.fill();
  c.globalAlpha = 1;
  c.clip();
  c.strokeStyle = d.colours.soft;
  c.lineWidth = 1.5;
  c.beginPath();
  for (let x = Math.max(x1, d.left - 20) - h; x < Math.min(x2, d.width); x += 7) { c.moveTo(x, y + h / 2); c.lineTo(x + h, y - h / 2); }
  c.stroke();
  c.restore();
}

function messages(d, c) {
  const { trace } = d;
  const [first, end] = d.visibleMessages();
  const count = end - first, stride = Math.max(1, Math.ceil(count / (d.moving ? MOVING : MANY)));
  const fine = count < 1500, words = count <= WORDS && d.lane > 18;
  d.sampled = stride;
  c.lineWidth = fine ? 1.4 : 1;
  d.placed = []; /* labels, as points along them */
  const batches = new Map(); /* one path for each look: thousands of arrows are then a few strokes */
  for (let m = first; m < end; m += stride) {
    const y1 = d.y(trace.fromOf[m]), [x2, y2] = d.endOf(m);
    if (x2 < d.left - 10 || (y1 < -50 && y2 < -50) || (y1 > d.height + 50 && y2 > d.height + 50)) continue;
    const look = d.past ? (d.past.has(trace.sendOf[m]) ? 2 : 0) : trace.sendOf[m] < d.cursor ? 1 : 0;
    const key = trace.lost[m] * 1000 + look * 100 + (trace.receiveOf[m] < 0 ? 50 : 0) + (trace.kindOf[m] % d.colours.kinds.length);
    if (!batches.has(key)) batches.set(key, []);
    batches.get(key).push(m);
  }
  for (const [key, list] of batches) {
    const look = Math.floor(key / 100) % 10, lost = key >= 1000, open = key % 100 >= 50;
    const colour = lost ? d.colours.wrong : d.colours.kinds[key % 50];
    c.strokeStyle = c.fillStyle = colour;
    c.globalAlpha = (look === 0 ? 0.16 : lost ? 0.75 : 1) * (fine ? 1 : stride > 1 ? 0.25 : 0.45);
    c.lineWidth = look === 2 ? 2.4 : fine ? 1.4 : 1;
    c.setLineDash(lost && fine ? [5, 3] : open && fine ? [1.5, 3.5] : []);
    c.beginPath();
    for (const m of list) { const [x2, y2] = d.endOf(m); c.moveTo(d.x(trace.sentAt[m]), d.y(trace.fromOf[m])); c.lineTo(x2, y2); }
    c.stroke();
    c.setLineDash([]);
    if (fine) for (const m of list) arrowEnd(d, c, m, lost, open);
    if (words) for (const m of list) messageWords(d, c, m, colour, look);
  }
  c.globalAlpha = 1;
  if (d.hover >= 0) emphasis(d, c, d.hover);
  if (d.drag && d.drag.message >= 0) dragged(d, c);
}

function arrowEnd(d, c, m, lost, open) {
  const { trace } = d;
  const x1 = d.x(trace.sentAt[m]), y1 = d.y(trace.fromOf[m]), [x2, y2] = d.endOf(m);
  if (lost) {
    c.lineWidth = 2;
    stroke(c, x2 - 4, y2 - 4, x2 + 4, y2 + 4);
    stroke(c, x2 - 4, y2 + 4, x2 + 4, y2 - 4);
    return;
  }
  if (open || d.lane < 8) return;
  arrowHead(c, x1, y1, x2, y2, 8);
}

function arrowHead(c, x1, y1, x2, y2, size) {
  const angle = Math.atan2(y2 - y1, x2 - x1);
  c.beginPath();
  c.moveTo(x2, y2);
  c.lineTo(x2 - size * Math.cos(angle - 0.36), y2 - size * Math.sin(angle - 0.36));
  c.lineTo(x2 - size * Math.cos(angle + 0.36), y2 - size * Math.sin(angle + 0.36));
  c.fill();
}

/* The message and what a reader wants to see of it: NAME a=1 b=2. */
export function messageText(entry) {
  const fields = Object.entries(entry.fields || {}).map(([k, v]) => `${k}=${Array.isArray(v) ? "[" + v.join(" ") + "]" : v}`);
  return [entry.message, ...fields].join(" ");
}

function messageWords(d, c, m, colour, look) {
  const { trace } = d, entry = trace.entries[trace.sendOf[m]];
  const x1 = d.x(trace.sentAt[m]), y1 = d.y(trace.fromOf[m]), [x2, y2] = d.endOf(m);
  const length = Math.hypot(x2 - x1, y2 - y1);
  c.font = "11px " + FONT;
  const angle = Math.atan2(y2 - y1, x2 - x1), flip = Math.abs(angle) > Math.PI / 2;
  const found = freePlace(d, c, [messageText(entry), entry.message], x1, y1, x2, y2, length);
  if (!found) return;
  const { text, k } = found;
  c.save();
  c.translate(x1 + (x2 - x1) * k, y1 + (y2 - y1) * k);
  c.rotate(flip ? angle + Math.PI : angle);
  c.textAlign = "center";
  c.lineJoin = "round";
  c.lineWidth = 3;
  c.strokeStyle = d.colours.paper;
  c.globalAlpha = look === 0 ? 0.2 : 1;
  c.strokeText(text, 0, -3);
  c.fillStyle = colour;
  c.fillText(text, 0, -3);
  c.restore();
  c.textAlign = "left";
}

/* The first text, and the place along the arrow, that no other label covers. */
function freePlace(d, c, texts, x1, y1, x2, y2, length) {
  for (const text of texts) {
    const width = c.measureText(text).width;
    if (width > length - 24) continue;
    for (const k of [0.4, 0.55, 0.3, 0.68]) {
      const half = width / 2 / length;
      if (k - half < 0.02 || k + half > 0.98) continue;
      const points = [];
      for (let at = k - half; at <= k + half + 1e-6; at += 10 / length) points.push([x1 + (x2 - x1) * at, y1 + (y2 - y1) * at]);
      if (points.some(([x, y]) => d.placed.some(([a, b]) => Math.abs(a - x) < 11 && Math.abs(b - y) < 11))) continue;
      d.placed.push(...points);
      return { text, k };
    }
  }
  return null;
}

function emphasis(d, c, m) {
  const { trace } = d;
  const x1 = d.x(trace.sentAt[m]), y1 = d.y(trace.fromOf[m]), [x2, y2] = d.endOf(m);
  c.strokeStyle = c.fillStyle = trace.lost[m] ? d.colours.wrong : d.colours.kinds[trace.kindOf[m] % d.colours.kinds.length];
  c.lineWidth = 3;
  stroke(c, x1, y1, x2, y2);
  if (!trace.lost[m]) arrowHead(c, x1, y1, x2, y2, 11);
}

function dragged(d, c) {
  const { trace } = d, m = d.drag.message;
  const x1 = d.x(trace.sentAt[m]), y1 = d.y(trace.fromOf[m]), x2 = Math.max(d.drag.x, x1), y2 = d.y(trace.toOf[m]);
  c.strokeStyle = c.fillStyle = d.colours.accent;
  c.lineWidth = 2.5;
  c.setLineDash([6, 4]);
  stroke(c, x1, y1, x2, y2);
  c.setLineDash([]);
  arrowHead(c, x1, y1, x2, y2, 11);
  label(d, c, `+${(d.timeAt(x2) - trace.sentAt[m]).toFixed(2)} ms`, x2 + 6, y2 - 6, d.colours.accent);
}

/* A text on a halo of paper. */
function label(d, c, text, x, y, colour) {
  c.font = "12px " + FONT;
  c.lineJoin = "round";
  c.lineWidth = 3;
  c.strokeStyle = d.colours.paper;
  c.strokeText(text, x, y);
  c.fillStyle = colour;
  c.fillText(text, x, y);
}

const SHAPES = {
  crash(d, c, r) { c.strokeStyle = d.colours.ink; c.lineWidth = 3; stroke(c, -r, -r, r, r); stroke(c, -r, r, r, -r); },
  recover(d, c, r, entry) { disc(d, c, r * 0.8, entry.arg ? d.colours.paper : d.colours.ink, d.colours.ink); },
  elected(d, c, r) {
    c.fillStyle = "#fbbf24"; c.strokeStyle = "#92400e"; c.lineWidth = 1.2;
    c.beginPath(); c.moveTo(-r, r * 0.7); c.lineTo(-r * 1.1, -r * 0.6); c.lineTo(-r * 0.4, 0); c.lineTo(0, -r);
    c.lineTo(r * 0.4, 0); c.lineTo(r * 1.1, -r * 0.6); c.lineTo(r, r * 0.7); c.closePath(); c.fill(); c.stroke();
  },
  follows(d, c, r) { disc(d, c, r * 0.45, d.colours.leads, d.colours.leads); },
  leaderless(d, c, r) { disc(d, c, r * 0.45, d.colours.paper, d.colours.leads); },
  timer(d, c, r) {
    disc(d, c, r * 0.85, d.colours.paper, "#c2410c");
    c.beginPath(); c.moveTo(0, -r * 0.6); c.lineTo(0, 0); c.lineTo(r * 0.4, r * 0.3); c.stroke();
  },
  choice(d, c, r) {
    c.fillStyle = d.colours.paper; c.strokeStyle = "#0e7490"; c.lineWidth = 1.6;
    c.beginPath(); c.moveTo(0, -r * 0.7); c.lineTo(r * 0.7, 0); c.lineTo(0, r * 0.7); c.lineTo(-r * 0.7, 0); c.closePath(); c.fill(); c.stroke();
  },
  suspect(d, c, r) { question(d, c, r, "?", d.colours.wrong); },
  trust(d, c, r) { question(d, c, r, "✓", d.colours.inside); },
  write(d, c, r) { disc(d, c, r * 0.4, d.colours.paper, d.colours.inside); },
  refused(d, c, r) { disc(d, c, r * 0.75, d.colours.paper, d.colours.wrong); stroke(c, -r * 0.5, r * 0.5, r * 0.5, -r * 0.5); },
  campaign(d, c, r) { c.fillStyle = d.colours.asks; c.strokeStyle = d.colours.ink; c.lineWidth = 1; c.beginPath(); c.moveTo(0, r); c.lineTo(0, -r); c.lineTo(r, -r * 0.5); c.lineTo(0, 0); c.fill(); c.stroke(); },
};

function disc(d, c, r, fill, line) {
  c.fillStyle = fill; c.strokeStyle = line; c.lineWidth = 1.8;
  c.beginPath(); c.arc(0, 0, r, 0, 2 * Math.PI); c.fill(); c.stroke();
}

function question(d, c, r, sign, colour) {
  disc(d, c, r * 0.8, d.colours.paper, colour);
  c.fillStyle = colour; c.font = `bold ${Math.round(r * 1.3)}px ${FONT}`; c.textAlign = "center";
  c.fillText(sign, 0, r * 0.45);
  c.textAlign = "left";
}

function marks(d, c, lanes) {
  const { trace } = d;
  const r = Math.min(7, d.lane * 0.3);
  if (r < 1.2) return;
  for (let p = lanes.first; p < lanes.end; p++) {
    const y = d.y(p);
    let last = -Infinity, notes = -Infinity;
    for (const i of trace.marks[p]) {
      const x = d.x(trace.timeOf[i]);
      if (x < d.left - 10 || x > d.width + 10) continue;
      const entry = trace.entries[i], shape = SHAPES[entry.type];
      if (shape && (x - last >= 3 || entry.type === "crash")) {
        last = x;
        c.globalAlpha = i >= d.cursor ? 0.3 : d.past && !d.past.has(i) ? 0.35 : 1;
        c.save();
        c.translate(x, y);
        shape(d, c, r, entry);
        c.restore();
      }
    }
    if (d.lane >= 44) stateNotes(d, c, p, y, notes);
  }
  c.globalAlpha = 1;
  if (d.cursor > 0 && d.cursor <= trace.entries.length) ringAround(d, c, d.cursor - 1);
}

/* What a process notes of itself, where there is room above its line. */
function stateNotes(d, c, p, y) {
  const { trace } = d;
  if (!d.notesOf || d.notesOf.trace !== trace) {
    d.notesOf = { trace, lists: trace.names.map(() => []) };
    trace.entries.forEach((e, i) => { if (e.state) d.notesOf.lists[trace.processOf[i]].push(i); });
  }
  c.font = "10px " + FONT;
  let busy = -Infinity, before = "";
  for (const i of d.notesOf.lists[p]) {
    const note = trace.entries[i].state, x = d.x(trace.timeOf[i]);
    if (x > d.width) break;
    if (note === before) continue;
    before = note;
    const width = c.measureText(note).width;
    if (x < busy || x + width < d.left) continue;
    c.globalAlpha = i >= d.cursor ? 0.25 : 0.9;
    c.lineWidth = 3;
    c.strokeStyle = d.colours.paper;
    c.strokeText(note, x + 4, y - 12);
    c.fillStyle = d.colours.soft;
    c.fillText(note, x + 4, y - 12);
    busy = x + width + 14;
  }
  c.globalAlpha = 1;
}

function ringAround(d, c, i) {
  const p = d.trace.processOf[i];
  if (p < 0 || d.cursor >= d.trace.entries.length) return;
  c.strokeStyle = d.colours.accent;
  c.lineWidth = 2.5;
  c.beginPath();
  c.arc(d.x(d.trace.timeOf[i]), d.y(p), Math.max(5, Math.min(11, d.lane * 0.3)), 0, 2 * Math.PI);
  c.stroke();
}

function cursor(d, c, box) {
  const x = Math.round(d.x(d.time)) + 0.5;
  c.strokeStyle = d.colours.accent;
  c.lineWidth = 1.5;
  stroke(c, x, box.top - 6, x, box.bottom);
  c.fillStyle = d.colours.accent;
  c.beginPath();
  c.moveTo(x - 6, box.top - 14); c.lineTo(x + 6, box.top - 14); c.lineTo(x, box.top - 5); c.fill();
}

function names(d, c, box, lanes) {
  const shown = Math.max(1, Math.ceil(13 / d.lane));
  c.font = `${d.lane >= 18 ? 13 : 10}px ${FONT}`;
  c.textAlign = "right";
  c.textBaseline = "middle";
  for (let p = Math.ceil(lanes.first / shown) * shown; p < lanes.end; p += shown) {
    const y = d.y(p);
    if (y < box.top - 2 || y > box.bottom + 2) continue;
    c.fillStyle = p === d.focusLane ? d.colours.accent : p < d.trace.servers ? d.colours.soft : d.colours.ink;
    c.fillText(d.trace.names[p], box.left - 16, y, box.left - 20);
  }
  c.textAlign = "left";
  c.textBaseline = "alphabetic";
}

function axis(d, c, box) {
  const y = box.bottom + 0.5;
  c.strokeStyle = d.colours.faint;
  c.lineWidth = 1;
  stroke(c, box.left - 10, y, d.width, y);
  c.font = "11px " + FONT;
  c.fillStyle = d.colours.soft;
  c.textAlign = "center";
  for (const [x, time] of ticks(d)) {
    if (x < box.left - 8 || x > d.width - 36) continue;
    stroke(c, Math.round(x) + 0.5, y, Math.round(x) + 0.5, y + 4);
    c.fillText(String(+time.toFixed(3)), x, y + 17);
  }
  for (const i of visibleCuts(d)) {
    const x = (d.x(d.trace.axis.times[i - 1]) + d.x(d.trace.axis.times[i])) / 2;
    if (x < box.left + 8 || x > d.width) continue;
    stroke(c, x - 5, y + 5, x - 1, y - 5);
    stroke(c, x - 1, y + 5, x + 3, y - 5);
    if (d.scale > 20) c.fillText(`${+(d.trace.axis.times[i] - d.trace.axis.times[i - 1]).toPrecision(3)} ms`, x, y - 8);
  }
  c.textAlign = "right";
  c.fillText("ms", d.width - 6, y + 17);
  if (d.sampled > 1) c.fillText(t("diagram.sampled", { n: d.sampled }), d.width - 8, 13);
  c.textAlign = "left";
}
