/* Elements without markup: whatever comes from data is text, and stays text. */

const SVG = "http://www.w3.org/2000/svg";

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "hidden") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function h(tag, props, ...children) { return fill(document.createElement(tag), props, children); }
export function s(tag, props, ...children) { return fill(document.createElementNS(SVG, tag), props, children); }

export function put(parent, ...children) {
  parent.replaceChildren(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
}

export function byId(id) { return document.getElementById(id); }

let fields = 0;

/* A labelled control; the hint is read with it. */
export function field(text, control, hint) {
  const id = control.id || `field${++fields}`;
  control.id = id;
  const note = hint ? h("small", { id: id + "-hint", class: "hint" }, hint) : null;
  if (note) control.setAttribute("aria-describedby", note.id);
  return h("div", { class: "field" }, h("label", { for: id }, text), control, note);
}

export function check(text, control, hint) {
  const id = control.id || `field${++fields}`;
  control.id = id;
  return h("div", { class: "field check" }, control, h("label", { for: id, title: hint }, text));
}

/* Options as [value, text], or [text, [options]] for a group. */
export function select(options, value, onchange, props) {
  const option = ([v, text]) => h("option", { value: v }, text);
  const element = h("select", { onchange: () => onchange(element.value), ...props },
    options.map(([v, text]) => (Array.isArray(text) ? h("optgroup", { label: v }, text.map(option)) : option([v, text]))));
  element.value = value;
  return element;
}

export function button(text, onclick, props) { return h("button", { type: "button", onclick, ...props }, text); }

/* What a program hands to the user as a file. */
export function download(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

export function openFile(accept, act) {
  const input = h("input", { type: "file", accept, onchange: () => { if (input.files[0]) act(input.files[0]); } });
  input.click();
}
