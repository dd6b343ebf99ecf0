/* The cursor of a run: a number of entries that have happened, and the time.  It steps, and plays along the axis. */
const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16]; /* message times in a second */

export class Player {
  constructor(onMove, onPlay) {
    Object.assign(this, { onMove, onPlay, count: 0, time: 0, speed: 2, playing: false });
  }

  static get speeds() { return SPEEDS; }

  load(trace, count = trace.entries.length) {
    this.stop();
    this.trace = trace;
    this.to(count);
  }

  to(count) {
    if (!this.trace) return;
    const total = this.trace.entries.length;
    this.count = Math.max(0, Math.min(total, count));
    this.time = this.count ? this.trace.timeOf[this.count - 1] : 0;
    this.onMove(this);
  }

  toTime(time) {
    this.time = Math.max(0, Math.min(time, this.trace.end));
    this.count = this.trace.countAt(this.time);
    this.onMove(this);
  }

  step(by) { this.stop(); this.to(this.count + by); }

  toggle() {
    if (!this.trace) return;
    if (this.playing) return this.stop();
    if (this.count >= this.trace.entries.length) this.to(0);
    this.playing = true;
    this.onPlay(true);
    let before = performance.now(), place = this.trace.axis.place(this.time);
    const frame = (now) => {
      if (!this.playing) return;
      place += ((now - before) / 1000) * SPEEDS[this.speed];
      before = now;
      this.toTime(this.trace.axis.time(place));
      if (place >= this.trace.axis.length) return this.stop();
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  stop() {
    if (!this.playing) return;
    this.playing = false;
    this.onPlay(false);
  }
}
