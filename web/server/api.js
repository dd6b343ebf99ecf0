/* What is asked of the server, and told to it.  The operator's token is in this variable and nowhere else: it is gone with the page. */

const PATIENCE_MS = 60000;

let token = "";

export function setToken(text) { token = text.trim(); }
export function isOperator() { return token !== ""; }

/* An answer that is no success, in the server's words. */
export class Refusal extends Error {
  constructor(status, code, words) {
    super(words);
    Object.assign(this, { status, code });
  }
}

async function call(name, options = {}) {
  const headers = { Accept: "application/json", ...options.headers };
  if (token) headers.Authorization = "Bearer " + token;
  let answer, body;
  try {
    answer = await fetch("page/" + name, { ...options, headers, cache: "no-store", credentials: "omit", redirect: "error", signal: AbortSignal.timeout(PATIENCE_MS) });
    body = await answer.text();
  } catch (error) {
    throw new Refusal(0, "Unreachable", error.message);
  }
  let value = null;
  try { value = JSON.parse(body); } catch { /* words */ }
  if (!answer.ok) throw new Refusal(answer.status, String(value?.code ?? ""), String(value?.error ?? body.slice(0, 500)));
  if (value === null || typeof value !== "object") throw new Refusal(answer.status, "", body.slice(0, 500));
  return value;
}

export function ask(name, values) { return call(`${name}?${new URLSearchParams(values)}`); }

export function tell(change) {
  return call("node", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(change) });
}
