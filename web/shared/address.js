/* The whole experiment is in the address, behind the #: which view, which scenario, which step, which language. */

const LONGEST = 1 << 20;

let current = new URLSearchParams(location.hash.slice(1));

export function readAddress(name, otherwise = "") { return current.get(name) ?? otherwise; }

export function writeAddress(values, push = false) {
  for (const [name, value] of Object.entries(values)) {
    if (value === "" || value === null || value === undefined) current.delete(name);
    else current.set(name, value);
  }
  const address = "#" + current.toString();
  if (address === location.hash) return;
  if (address.length > LONGEST) return; /* a browser would keep a part of it, or none */
  if (push) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}

/* Somebody has changed it by hand, or gone back. */
export function onAddress(act) {
  const again = () => {
    if (location.hash.slice(1) === current.toString()) return;
    current = new URLSearchParams(location.hash.slice(1));
    act();
  };
  addEventListener("popstate", again);
  addEventListener("hashchange", again);
}
