/* Who holds or waits, in words. */
import { t } from "./texts.js";

/* What should be a list, and may be anything. */
export function list(value) { return Array.isArray(value) ? value : []; }

/* Whoever it is, in few words. */
export function who(one) { return one.label ? String(one.label) : one.node ? String(one.node) : t("lock.nameless"); }
export function where(one) {
  return [one.host ? String(one.host) : "", Number(one.pid) > 0 ? t("lock.pid", { pid: one.pid }) : ""].filter(Boolean).join(", ");
}
