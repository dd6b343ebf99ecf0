/* The diagram under mouse, finger and keyboard: moving it, pointing at messages, dragging them, choosing a process at a time. */
import { record } from "./sentences.js";

const STEADY = 4; /* pixels that a click may move */

export class Gestures {
  /* actions: {step, to, home, end, play, menu, delay, say} */
  constructor(diagram, actions) {
    this.diagram = diagram;
    this.actions = actions;
    this.down = null;
    this.lane = 0;
    const canvas = diagram.canvas;
    canvas.addEventListener("pointerdown", (e) => this.press(e));
    canvas.addEventListener("pointermove", (e) => this.move(e));
    canvas.addEventListener("pointerup", (e) => this.release(e));
    canvas.addEventListener("pointercancel", () => this.forget());
    canvas.addEventListener("pointerleave", () => { if (!this.down) this.point(-1); });
    canvas.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    canvas.addEventListener("keydown", (e) => this.key(e));
    canvas.addEventListener("contextmenu", (e) => { e.preventDefault(); this.menuAt(e); });
    canvas.addEventListener("blur", () => { diagram.focusLane = -1; diagram.redraw(); });
    canvas.addEventListener("focus", () => { if (canvas.matches(":focus-visible")) { diagram.focusLane = this.lane; diagram.redraw(); } });
  }

  place(event) {
    const box = this.diagram.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  press(event) {
    if (!this.diagram.trace || event.button) return;
    const [x, y] = this.place(event);
    const d = this.diagram, onAxis = y > d.body.bottom || y < d.body.top;
    const message = onAxis ? -1 : d.messageAt(x, y);
    this.down = { x, y, lastX: x, lastY: y, message, onAxis, moved: false };
    d.canvas.setPointerCapture(event.pointerId);
    if (onAxis) this.actions.toTime(d.timeAt(x));
  }

  move(event) {
    const d = this.diagram;
    if (!d.trace) return;
    const [x, y] = this.place(event), down = this.down;
    if (!down) {
      this.point(d.messageAt(x, y), x, y);
      return;
    }
    if (Math.hypot(x - down.x, y - down.y) > STEADY) down.moved = true;
    if (!down.moved) return;
    if (down.onAxis) this.actions.toTime(d.timeAt(x));
    else if (down.message >= 0) { d.drag = { message: down.message, x, y }; d.redraw(); }
    else d.pan(x - down.lastX, y - down.lastY);
    [down.lastX, down.lastY] = [x, y];
  }

  release(event) {
    const d = this.diagram, down = this.down;
    if (!down) return;
    const [x] = this.place(event);
    this.forget();
    this.point(-1);
    if (down.onAxis) return;
    if (down.moved && down.message >= 0) this.actions.delay(down.message, d.timeAt(x));
    else if (!down.moved && down.message >= 0) this.actions.to(d.trace.sendOf[down.message] + 1);
    else if (!down.moved) this.menuAt(event);
  }

  forget() {
    this.down = null;
    if (this.diagram.drag) { this.diagram.drag = null; this.diagram.redraw(); }
  }

  point(message, x, y) {
    const d = this.diagram;
    if (message !== d.hover) { d.hover = message; d.redraw(); }
    d.canvas.classList.toggle("on-message", message >= 0);
    if (message < 0) return this.actions.tip(null);
    const { entries, sendOf, receiveOf } = d.trace;
    const lines = [record(entries[sendOf[message]])];
    if (receiveOf[message] >= 0) lines.push(record(entries[receiveOf[message]]));
    this.actions.tip(lines, x, y);
  }

  menuAt(event) {
    const d = this.diagram, [x, y] = this.place(event), process = d.processAt(y);
    if (process < 0 || x < 0) return;
    const time = x < d.left ? d.time : Math.max(0, d.timeAt(x));
    this.actions.menu(process, time, x, y);
  }

  wheel(event) {
    const d = this.diagram;
    if (!d.trace) return;
    const [x, y] = this.place(event);
    if (event.ctrlKey || event.metaKey) { event.preventDefault(); d.zoom(Math.exp(-event.deltaY * 0.004), x); }
    else if (event.altKey) { event.preventDefault(); d.zoomLanes(Math.exp(-event.deltaY * 0.004), y); }
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) { event.preventDefault(); d.pan(-(event.deltaX || event.deltaY), 0); }
    else if (d.trace.names.length * d.lane > d.body.bottom - d.body.top + 1) { event.preventDefault(); d.pan(0, -event.deltaY); }
  }

  key(event) {
    const d = this.diagram, a = this.actions;
    if (!d.trace || event.altKey || event.ctrlKey || event.metaKey) return;
    const acts = {
      ArrowRight: () => (event.shiftKey ? d.pan(-80, 0) : a.step(1)), ArrowLeft: () => (event.shiftKey ? d.pan(80, 0) : a.step(-1)),
      ArrowUp: () => this.toLane(-1), ArrowDown: () => this.toLane(1), Home: () => a.to(0), End: () => a.to(d.trace.entries.length),
      " ": () => a.play(), "+": () => d.zoom(1.3, d.x(d.time)), "=": () => d.zoom(1.3, d.x(d.time)), "-": () => d.zoom(1 / 1.3, d.x(d.time)),
      "0": () => d.fit(true), PageDown: () => d.pan(-(d.width - d.left) * 0.8, 0), PageUp: () => d.pan((d.width - d.left) * 0.8, 0),
      Enter: () => a.menu(this.lane, d.time, d.x(d.time), d.y(this.lane)), v: () => a.violation(), w: () => a.why(),
    };
    if (!(event.key in acts)) return;
    event.preventDefault();
    acts[event.key]();
  }

  toLane(by) {
    const d = this.diagram;
    this.lane = Math.max(0, Math.min(d.trace.names.length - 1, this.lane + by));
    d.focusLane = this.lane;
    this.actions.lane(this.lane);
    d.redraw();
  }
}
