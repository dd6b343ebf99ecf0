// The parts of the server's page that need no browser: rows of the tree, bytes, rates.  Exit status 0 when all is well.
import assert from "node:assert/strict";
import { asHex, asJson, fromBase64, fromPairs, isText, survivesEditing, toBase64, toPairs } from "../../web/server/data.js";
import { Rows } from "../../web/server/rows.js";
import { rates } from "../../web/server/stream.js";

const PAGE = 10;

// A tree as a server shows it: children in an order of its own, a page at a time, after a name that must still be there.
class Tree {
  constructor(children) { this.children = children; this.asked = 0; }

  async read(path, after) {
    this.asked++;
    const names = this.children[path] ?? [], from = after === undefined ? 0 : names.indexOf(after) + 1;
    if (after !== undefined && !from) throw Object.assign(new Error("gone"), { code: "Gone" });
    const part = names.slice(from, from + PAGE);
    return { path, total: names.length, more: from + PAGE < names.length, children: part.map((name) => ({ name, children: (this.children[`${path}/${name}`] ?? []).length, bytes: 0 })) };
  }

  rows() { return new Rows((path, after) => this.read(path, after)); }
}

const many = Array.from({ length: 35 }, (_, i) => `n${(i * 8) % 35}`);
const names = (rows) => rows.list.map((row) => (row.more ? "…" : row.name));
const rest = (rows) => rows.list.find((row) => row.more);

async function children_come_in_pages() {
  const rows = new Tree({ "/": ["b", "a"], "/a": many }).rows();
  await rows.open(rows.root);
  assert.deepEqual(names(rows), ["/", "a", "b"]); // all that there are: by name
  await rows.open(rows.list[1]);
  assert.deepEqual(names(rows), ["/", "a", ...many.slice(0, 10), "…", "b"]); // some: as they come
  while (rest(rows)) await rows.next(rows.list[1], rest(rows));
  assert.deepEqual(names(rows), ["/", "a", ...many, "b"]);
  rows.close(rows.list[1]);
  assert.deepEqual(names(rows), ["/", "a", "b"]);
}

async function a_name_that_is_gone() {
  const tree = new Tree({ "/": [...many] }), rows = tree.rows();
  await rows.open(rows.root);
  tree.children["/"] = many.filter((name, i) => i !== 9 && i !== 8);
  await rows.next(rows.root, rest(rows));
  assert.deepEqual(names(rows), ["/", ...many.slice(0, 20), "…"]);
  tree.children["/"] = [];
  await assert.rejects(rows.next(rows.root, rest(rows)), /gone/);
}

async function what_is_far_behind_is_shown_once() {
  const rows = new Tree({ "/": many }).rows(), far = await rows.reveal(`/${many[30]}`);
  assert.deepEqual(names(rows), ["/", ...many.slice(0, 10), many[30], "…"]);
  assert.equal(rows.list[11], far);
  while (rest(rows)) await rows.next(rows.root, rest(rows));
  assert.deepEqual([...names(rows)].sort(), ["/", ...many].sort());
  assert.equal(rows.indexOf(await rows.reveal("/nowhere/else")), -1);
}

async function what_is_closed_while_it_is_read() {
  const tree = new Tree({ "/": ["a"], "/a": many }), rows = tree.rows();
  await rows.open(rows.root);
  const opening = rows.open(rows.list[1]);
  rows.close(rows.list[1]);
  await opening;
  assert.deepEqual(names(rows), ["/", "a"]);
}

async function bytes_in_every_form() {
  const all = Uint8Array.from({ length: 70000 }, (_, i) => i % 256);
  assert.deepEqual(fromBase64(toBase64(all)), all);
  assert.deepEqual(fromPairs(toPairs(all)), all);
  for (const wrong of ["0", "0g", "zz", "0 0 0"]) assert.equal(fromPairs(wrong), null, wrong);
  assert.equal(asHex(all.subarray(64, 67)), `000000  40 41 42${" ".repeat(40)} @AB`);
  assert.ok(isText(new TextEncoder().encode("ç")) && !isText(all));
  const survives = (text) => survivesEditing(new TextEncoder().encode(text));
  assert.ok(survives("") && survives("ç\n\t\n") && !survivesEditing(all));
  for (const text of ["a\r\nb", "a\rb", "\r", "\ufeffa"]) assert.ok(!survives(text), JSON.stringify(text)); // shown as hex
  assert.throws(() => asJson(all));
  const deep = new TextEncoder().encode("[".repeat(3000) + "]".repeat(3000));
  assert.ok(asJson(deep).length <= 1 << 20); // laid out it would be many times that
}

async function rates_of_counters() {
  const state = (seconds, reads) => ({ uptime_ms: 1000 * seconds, requests: { reads, writes: 0 }, bytes_in: 0, bytes_out: 0 });
  assert.equal(rates(state(1, 10), state(3, 30)).reads, 10);
  assert.equal(rates(state(100, 1000), state(1, 5)).reads, null); // another process by now
  assert.equal(rates(state(1, 10), state(1, 10)).reads, null);
}

const tests = [children_come_in_pages, a_name_that_is_gone, what_is_far_behind_is_shown_once, what_is_closed_while_it_is_read, bytes_in_every_form, rates_of_counters];
const words = process.argv.slice(2);
for (const test of tests.filter((test) => words.length === 0 || words.some((word) => test.name.includes(word)))) {
  try { await test(); console.log("ok", test.name.replaceAll("_", " ")); } catch (error) { console.log("FAILED", test.name.replaceAll("_", " "), error); process.exitCode = 1; }
}
