/* The trace as a list: what the diagram shows, for those who read or listen.  Only the rows around the cursor are elements. */
import { h, put } from "./dom.js";
import { clock, sentence } from "./sentences.js";
import { t } from "./texts.js";

const ROW = 26, AROUND = 12;

export class EventList {
  constructor(onSelect) {
    this.onSelect = onSelect;
    this.space = h("div", { class: "space" });
    this.element = h("div", { class: "events", role: "listbox", tabindex: 0, "aria-label": t("events.label"), id: "events",
                              onkeydown: (event) => this.key(event), onclick: (event) => this.click(event) }, this.space);
    this.top = this.height = 0; /* asking the element would have it laid out */
    this.element.addEventListener("scroll", () => { this.top = this.element.scrollTop; this.render(); });
    new ResizeObserver(() => { this.height = this.element.clientHeight; this.render(); }).observe(this.element);
    this.cursor = 0;
  }

  show(trace) {
    this.trace = trace;
    this.wrong = new Set(trace.overlaps.flatMap((o) => o.entries));
    const first = trace.violation();
    if (first >= 0) this.wrong.add(first);
    this.space.style.height = `${trace.entries.length * ROW}px`;
    this.render();
  }

  follow(count) {
    this.cursor = count;
    const top = (count - 1) * ROW;
    if (top < this.top || top + ROW > this.top + this.height) {
      this.top = Math.max(0, top - this.height / 2);
      this.element.scrollTop = this.top;
    }
    this.render();
  }

  render() {
    if (!this.trace) return;
    const box = this.element, total = this.trace.entries.length;
    const first = Math.max(0, Math.floor(this.top / ROW) - AROUND);
    const end = Math.min(total, Math.ceil((this.top + this.height) / ROW) + AROUND);
    const rows = [];
    for (let i = first; i < end; i++) rows.push(this.row(i, total));
    put(this.space, rows);
    const current = this.cursor - 1;
    if (current >= first && current < end) box.setAttribute("aria-activedescendant", `event${current}`);
    else box.removeAttribute("aria-activedescendant");
  }

  row(i, total) {
    const entry = this.trace.entries[i], current = i === this.cursor - 1;
    const classes = ["event", current && "current", i >= this.cursor && "future", this.wrong.has(i) && "wrong"].filter(Boolean);
    const row = h("div", { class: classes.join(" "), role: "option", id: `event${i}`, "aria-selected": String(current),
                           "aria-setsize": total, "aria-posinset": i + 1, "data-index": i },
      h("span", { class: "when" }, clock(entry.time_ms)), h("span", { class: "what" }, sentence(entry)),
      entry.state ? h("span", { class: "state" }, entry.state) : null);
    row.style.top = `${i * ROW}px`;
    return row;
  }

  click(event) {
    const row = event.target.closest("[data-index]");
    if (row) this.onSelect(Number(row.dataset.index) + 1);
  }

  key(event) {
    const total = this.trace ? this.trace.entries.length : 0;
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 1);
    const to = { ArrowDown: this.cursor + 1, ArrowUp: this.cursor - 1, PageDown: this.cursor + page, PageUp: this.cursor - page,
                 Home: 1, End: total }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.onSelect(Math.max(1, Math.min(total, to)));
  }
}
