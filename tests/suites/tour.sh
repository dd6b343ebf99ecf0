# `make tour`, and `conclave sim --step`: what a reader is led through, on a terminal and on a pipe.

step() { printf '%b' "$1" | bounded "$CONCLAVE" sim "${@:2}" --step; }
# part N: of the output of --step, the N-th step that was shown.
part() { awk -v wanted="$1" '/^Step / {n++} n == wanted {print}' | sed '/^$/,$d'; }

# ---- Event by event ----

central=(central --processes 2 --entries 2)
forward_and_back() {
    step '\n\nb\n\n' "${central[@]}" >"$WORK/walk"
    [ "$(grep -c '^Step ' "$WORK/walk")" -eq 5 ] && diff <(part 2 <"$WORK/walk") <(part 4 <"$WORK/walk") &&
        diff <(part 3 <"$WORK/walk") <(part 5 <"$WORK/walk") && ! diff <(part 2 <"$WORK/walk") <(part 3 <"$WORK/walk") >/dev/null
}
jumps() { # to where walking leads as well
    diff <(step '7\n' "${central[@]}" | part 2) <(step '\n\n\n\n\n\n' "${central[@]}" | part 7)
}
ends_at_the_end() {
    local steps
    steps=$(step '' "${central[@]}" | sed -nE 's/^Step 1 of ([0-9]+):$/\1/p') && [ "$steps" -gt 5 ] &&
        step "$steps\n\n\n\n" "${central[@]}" | tail -n +2 >"$WORK/end" && [ "$(grep -c '^Step ' "$WORK/end")" -eq 1 ] &&
        grep -q '^Nothing is on the way' "$WORK/end" && grep -q '  exclusion            held' "$WORK/end"
}
# Every step is the trace's, and what is on the way is what was sent and has not arrived.
whole_trace() {
    local all
    all=$(yes '' | head -200 | bounded "$CONCLAVE" sim lamport --processes 3 --entries 4 --step)
    diff <(grep -E '^ +[0-9.]+ ms  ' <<<"$all") <("$CONCLAVE" sim lamport --processes 3 --entries 4 --trace text 2>/dev/null)
}
shows_states() {
    step '\n\n\n' "${central[@]}" >"$WORK/states"
    grep -qE '^ \* coordinator .*holder=p[12] .*queue=\[' "$WORK/states" && grep -qE '^   p[12] +waits .*phase=1' "$WORK/states" &&
        grep -qE '^   coordinator -> p[12]  GRANT number=1 fence=1$' "$WORK/states"
}
shows_faults() {
    local all
    all=$(yes '' | head -200 | bounded "$CONCLAVE" sim --scenario scenarios/lease-slow-holder.scenario --step)
    grep -qE 'PAUSED' <<<"$all" && grep -qE '; timer at [0-9.]+ ms' <<<"$all" && [ "$(grep -cE '^ [ *] Part[23] +INSIDE' <<<"$all")" -gt 2 ]
}
many() { # a few of a million are shown
    step '40\n' chang-roberts --processes 100000 --initiators 3 | grep '^   and 9997[0-9] more$' >/dev/null
}
nonsense() { [ "$(step 'x\n0\n99999\n-1\nq\n' "${central[@]}" | grep -c 'is no step from 1 to')" -eq 4 ]; }

check "steps go forward and back" forward_and_back
check "a number jumps" jumps
check "after the last comes the report" ends_at_the_end
check "the steps are the trace" whole_trace
check "states and messages are shown" shows_states
check "faults and timers, too" shows_faults
check "an election" step '\n\n5\nb\nq\n' yo-yo --edges 1-2,2-3,3-1,3-4
check "a large one" many
check "what is no step" nonsense
arrows() { ! step '\033[C\n\033[2J\nq\n' "${central[@]}" | grep $'\033' >/dev/null; }
check "an arrow key is no text for the terminal" arrows
check "the status is that of the run" exits 1 step 'q\n' central --processes 3 --at '0ms coordinator crash'
check "not with --runs" says "leave out --runs" 2 step '' central --runs 3
check "not with --json" says "leave out --json" 2 step '' central --json

# ---- On a terminal ----

# on_terminal TYPED COMMAND...: what it shows on a terminal on which this is typed, a part (they are parted by commas)
# whenever it has asked.
on_terminal() {
    bounded /usr/bin/python3 - "$@" <<'END'
import os, pty, sys
typed, command = sys.argv[1].encode().decode("unicode_escape").split(","), sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    os.execvp(command[0], command)
shown, asked = b"", 0
while True:
    try:
        more = os.read(terminal, 65536)
    except OSError: # the other side is closed
        break
    if not more:
        break
    shown += more
    while typed and shown.count(b" > ") + shown.count(b"q: enough") > asked:
        os.write(terminal, typed[0].encode())
        typed = typed[1:]
        asked += 1
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
sys.stdout.buffer.write(shown)
sys.exit(status if not typed else 99)
END
}
prompts() { on_terminal '\n,\n,q\n' "$CONCLAVE" sim "${central[@]}" --step >"$WORK/terminal" && grep -q 'Enter: next' "$WORK/terminal" && grep -q 'Step 3 of' "$WORK/terminal"; }
silent() { ! step '\n' "${central[@]}" | grep 'Enter: next' >/dev/null; }
check "a terminal is asked" prompts
check "a pipe is not" silent

# ---- The tour ----

# It leaves its pictures beside the program, whose header is above.
mkdir -p "$WORK/build" && cp "$CONCLAVE" "$WORK/build/conclave" && cp -r include "$WORK/include"
tour() { bounded scripts/tour "$WORK/build/conclave"; }
told() {
    tour </dev/null >"$WORK/tour" 2>&1 || { tail -5 "$WORK/tour"; return 1; }
    [ "$(grep -cE '^[1-7] of 7\. ' "$WORK/tour")" -eq 7 ] && ! grep -q 'any key' "$WORK/tour"
}
has() { grep -qE "$1" "$WORK/tour"; }
waits() { on_terminal x,x,x,x,x,x scripts/tour "$WORK/build/conclave" >"$WORK/tour2" && grep -q '7 of 7' "$WORK/tour2"; }
ends() { on_terminal x,q scripts/tour "$WORK/build/conclave" >"$WORK/tour3" && grep -q '2 of 7' "$WORK/tour3" && ! grep -q '3 of 7' "$WORK/tour3"; }
check "the tour has seven steps, and waits for nobody on a pipe" told
check "an election" has 'leader +p4'
check "a check" has 'everything within these bounds was explored'
check "a counterexample" has 'A counterexample to exclusion'
check "a picture" xmllint --noout "$WORK/build/tour/quorum-amnesia.svg"
in_portuguese() {
    bounded scripts/tour "$WORK/build/conclave" pt </dev/null >"$WORK/tour" 2>&1 || { tail -5 "$WORK/tour"; return 1; }
    [ "$(grep -cE '^[1-7] de 7\. ' "$WORK/tour")" -eq 7 ] && ! grep -wE 'the|of|is|and' "$WORK/tour" | grep -v 'without this line'
}
check "it is told in Portuguese, too" in_portuguese
check "on a terminal it waits for a key" waits
check "and ends when it is told to" ends
