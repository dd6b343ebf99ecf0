# The laboratory in a page: the module prints what the program prints, what is served is small and safe.
with_processes

if [ -n "${SANITIZED:-}" ]; then
    echo "ok the module is the same whatever the program's flags are"
    exit 0
fi

module=$B/lab/lab.wasm
same() { bounded node tests/module/same.mjs "$CONCLAVE" "$module"; }
# Every third scenario, or with SCENARIOS=1 every one.
scenarios() {
    printf 'sim --scenario %s --trace json\n' scenarios/*.scenario | awk -v every="${SCENARIOS:-3}" 'NR % every == 0' | same
}
algorithms() { "$CONCLAVE" list --json | jq -r '.[] | "sim \(.algorithm) --entries 30 --seed 3 --json"' | same; }

# Nothing is asked of a system but what the page can give.
imports() {
    node --input-type=module - "$module" <<'END'
import { readFileSync } from "node:fs";
const known = /^(args_|clock_time_get|fd_|path_|poll_oneoff|proc_exit|environ_|random_get)|^(run|output)$/;
const imports = WebAssembly.Module.imports(new WebAssembly.Module(readFileSync(process.argv[2])));
const strange = imports.filter(({ name }) => !known.test(name));
if (strange.length) console.log(strange);
process.exitCode = strange.length ? 1 : 0;
END
}

# Under a megabyte: the page's files as they are served, and the one file of `make site`.
sizes() {
    local files=(web/lab/*.html web/lab/*.css web/lab/*.js web/shared/* "$B/lab/library.js" "$B/lab/lab.wasm.gz") served
    served=$(cat "${files[@]}" | wc -c)
    scripts/site web/lab/index.html "${files[@]}" >"$WORK/site.html" || return 1
    echo "$served bytes are served, $(wc -c <"$WORK/site.html") are the site"
    [ "$served" -lt 1000000 ] && [ "$(wc -c <"$WORK/site.html")" -lt 1000000 ]
}

# A check that is too large for a page says so, and is undecided.
bounded_check() {
    bounded node --input-type=module - "$module" <<'END'
import { readFileSync } from "node:fs";
import { runCommand } from "./web/lab/host.js";
const module = new WebAssembly.Module(readFileSync(process.argv[2]));
const { status, out, err } = runCommand(module, ["check", "lamport", "--processes", "4", "--memory", "2M"]);
console.log(status, out, err);
process.exitCode = status === 4 && /the memory limit was reached/.test(out) ? 0 : 1;
END
}

check "commands print the same" same <tests/module/commands
check "every algorithm runs the same" algorithms
check "scenarios have the same trace" scenarios
check "what the module imports" imports
check "a check has a limit" bounded_check
check "its size" sizes

for name in page module policy host paths hostile taken ends; do
    check "served: $name" bounded /usr/bin/python3 tests/net/lab.py "$name"
done
check "no address" says "is not an address" 2 bounded "$CONCLAVE" lab --listen nowhere
check "no port" says "is not a number" 2 bounded "$CONCLAVE" lab --port 70000
