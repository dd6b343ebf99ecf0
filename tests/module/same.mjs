// The module prints what the program prints, byte for byte: node tests/module/same.mjs PROGRAM MODULE <COMMANDS
// A command is a line of words, of which those in single quotes may contain spaces.  What took how long is left out, and
// of long numbers the digits that depend on how many bits a processor computes with.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { runCommand } from "../../web/lab/host.js";

const [program, path] = process.argv.slice(2);
const module = new WebAssembly.Module(readFileSync(path));

function comparable(text) {
  return text.replace(/^( {2}(?:time|tempo) {2,}).*$/gm, "$1").replace(/("seconds": )[^,\n]*/g, "$1")
    .replace(/-?\d+\.\d{10,}(e-?\d+)?/g, (number) => Number(number).toPrecision(10));
}

function different(words) {
  const files = {};
  for (const word of words) if (word.endsWith(".scenario") && existsSync(word)) files[word] = readFileSync(word, "utf8");
  const native = spawnSync(program, words, { encoding: "utf8", maxBuffer: 1 << 28, env: { LC_ALL: "C" } });
  const ours = runCommand(module, words, files);
  if (native.status !== ours.status) return `exit status ${native.status} and ${ours.status}: ${ours.err}`;
  for (const [what, a, b] of [["output", native.stdout, ours.out], ["errors", native.stderr, ours.err]]) {
    const lines = comparable(a).split("\n"), others = comparable(b).split("\n");
    const at = lines.findIndex((line, i) => line !== others[i]);
    if (at >= 0 || lines.length !== others.length) return `${what}, line ${at + 1}:\n    ${lines[at]}\n    ${others[at]}`;
  }
  return null;
}

let count = 0, failed = 0;
for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map((word) => word[1] ?? word[2]);
  const why = different(words);
  count++;
  if (why) failed++, console.log(`conclave ${line}: ${why}`);
}
console.log(`${count} commands, ${failed} of them different`);
process.exitCode = failed || !count ? 1 : 0;
