/* Elements that are shown again each second: only what has changed is changed, so that what has the focus keeps it, what is
   opened stays open, and what is selected stays selected.  Elements with another data-key are others. */
function alike(old, wanted) {
  return old.nodeType === wanted.nodeType && old.nodeName === wanted.nodeName && (old.nodeType !== Node.ELEMENT_NODE || old.dataset.key === wanted.dataset.key);
}

function resemble(old, wanted) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== wanted.data) old.data = wanted.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (name !== "open" && !wanted.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of wanted.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  become(old, ...wanted.childNodes);
}

export function become(parent, ...children) {
  const wanted = children.flat(3).filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(child)));
  const later = new Map();
  for (const old of parent.children) if (old.dataset.key !== undefined) later.set(old.dataset.key, old);
  wanted.forEach((child, i) => {
    const here = parent.childNodes[i], keyed = child.dataset?.key === undefined ? undefined : later.get(child.dataset.key);
    const old = keyed && alike(keyed, child) ? keyed : here;
    if (!old || !alike(old, child)) return parent.insertBefore(child, here ?? null);
    if (old !== here) parent.insertBefore(old, here);
    resemble(old, child);
  });
  while (parent.childNodes.length > wanted.length) parent.lastChild.remove();
}
