# The model checker from outside: exact counts, verdicts, reductions, counterexamples, limits.
# LONG=1 adds the few bounds that take a minute each.
stands_alone
c() { "$CONCLAVE" "$@"; }
holds() { json ".verdicts.$1 == \"held\" and .end == \"complete\"" c check "${@:2}" --property "$1" --json; }

# What a bound has cut short is not known to hold; it was not violated as far as the bound goes.
unbroken() { json ".verdicts.$1 == \"unknown\" and .end == \"complete\" and .timers_left and
    (.unknown.$1 | startswith(\"not violated within\"))" c check "${@:2}" --property "$1" --json; }

# Yo-Yo on every connected graph of up to 5 vertices; all labelled graphs are all orders of ids.
graphs() {
    awk 'BEGIN {for (n = 2; n <= 5; n++) {
        m = 0; for (i = 1; i < n; i++) for (j = i + 1; j <= n; j++) edge[m++] = i "-" j
        for (set = 0; set < 2 ^ m; set++) {
            for (i = 1; i <= n; i++) part[i] = i
            list = ""
            for (k = 0; k < m; k++) if (int(set / 2 ^ k) % 2) {
                list = list (list == "" ? "" : ",") edge[k]; split(edge[k], e, "-")
                a = part[e[1]]; b = part[e[2]]
                for (i = 1; i <= n; i++) if (part[i] == b) part[i] = a
            }
            whole = 1; for (i = 2; i <= n; i++) if (part[i] != part[1]) whole = 0
            if (whole) print list
        }}}'
}
right_on() {
    "$CONCLAVE" check yo-yo --edges "$1" --reduce order --jobs 1 --json 2>/dev/null |
        jq -es '.[0].end == "complete" and ([.[0].verdicts[]] | unique) == ["held"]' >/dev/null || echo "$1"
}
export -f right_on
every_graph() {
    local wrong
    [ "$(graphs | wc -l)" -eq 771 ] || { echo "$(graphs | wc -l) graphs, not 771"; return 1; }
    wrong=$(graphs | "$@" | xargs -P "$(nproc)" -I{} bash -c 'right_on {}')
    [ -z "$wrong" ] || { echo "not the minimum, and it alone, on: $wrong"; return 1; }
}
# The same algorithms are checked below within smaller bounds.  These add a second entry of each of three processes, while
# messages of all the first ones may still be under way; and a second entry of each of two that vote.
# On dense graphs Yo-Yo prunes more in a round, and takes most of the time.
if long; then
    check "yo-yo elects the minimum on every connected graph of up to 5 vertices" every_graph cat
    check "exclusion holds: lamport, twice each" holds exclusion lamport --entries 2 --fifo --reduce order
    check "exclusion holds: quorum, twice each" holds exclusion quorum --processes 2 --entries 2 --timeouts 1 --reduce all
    check "exclusion is not violated within two timeouts: voting" \
        unbroken exclusion voting --processes 2 --timeouts 2 --entries 2
fi

# counted ARGUMENTS...: states, transitions, depth and verdicts, on one line.
counted() {
    c check "$@" --json 2>/dev/null | jq -r '[.states, .transitions, .depth, .end,
        (.verdicts | to_entries | map(.key + "=" + .value) | join(" "))] | map(tostring) | join(" ")'
}
verdicts() { counted "$@" --keep-going | cut -d' ' -f4-; }

# ---- Counts: a pure function of the algorithm and the bounds ----
# The first of these were counted by two other programs as well, one of them SPIN.
independent() {
    while IFS='|' read -r arguments wanted; do
        read -r states transitions depth _ < <(counted $arguments)
        [ "$states $transitions $depth" = "$wanted" ] ||
            { echo "$arguments: $states $transitions $depth, not $wanted"; return 1; }
    done <<'END'
ricart-agrawala --processes 2|35 46 8
ricart-agrawala --processes 2 --entries 2|207 295 16
ricart-agrawala|4187 12571 18
ricart-agrawala --entries 2|160982 498997 36
ricart-agrawala --entries 2 --fifo|106535 276800 36
ricart-agrawala --fifo|2848 7197 18
central --entries 2|3012 8238 30
central --entries 2 --fifo|1280 2826 30
lamport --processes 2 --fifo|59 72 10
lamport --processes 2 --entries 2 --fifo|674 1021 20
lamport --fifo|45407 123546 24
END
}
check "counts that other programs have found too" independent

# Every algorithm, with faults and without: bounds under which it takes a moment.
all_bounds() {
    cat <<'END'
central --entries 2
central --processes 2 --crashes 1
central --processes 2 --loss 1 --entries 2
central-lease --entries 2
central-lease --processes 2 --entries 2 --late 1
central-lease --processes 2 --crashes 1 --late 1 --fencing
central-elected --processes 2 --entries 2
central-elected --processes 2 --crashes 1 --suspicions 0
central-elected --processes 2 --suspicions 1
central-elected --processes 2 --suspicions 1 --fencing
token-ring --entries 2
token-ring --repair --crashes 1 --suspicions 0 --fifo
quorum --processes 2 --timeouts 1
quorum --processes 2 --crashes 1 --amnesia --timeouts 1
voting --processes 2 --timeouts 2
lamport --fifo
lamport --processes 2 --entries 2
ricart-agrawala
ricart-agrawala --processes 2 --crashes 1
ricart-agrawala --processes 2 --crashes 1 --amnesia --entries 2
ricart-agrawala-majority --processes 2 --entries 2
roucairol-carvalho --entries 2
maekawa
maekawa --plain
maekawa --processes 2 --entries 2
maekawa --processes 2 --crashes 1 --recover
suzuki-kasami
suzuki-kasami --loss 1
raymond --processes 4
tree-lock-naive --processes 2
tree-lock --processes 2 --entries 2
tree-lock --processes 2 --crashes 1 --suspicions 0
tree-lock --processes 2 --crashes 1 --suspicions 0 --fifo
tree-lock-queue
tree-lock-queue --processes 2 --entries 2 --suspicions 1
ring-anonymous
ring-anonymous --initiators 1 --crashes 1 --suspicions 0 --fifo
ring-list
ring-list --processes 2 --crashes 1 --suspicions 0 --fifo
ring-coordinator
ring-coordinator --crashes 1 --suspicions 0 --fifo --processes 2
chang-roberts
chang-roberts --ids descending --processes 4
chang-roberts --loss 1
chang-roberts --initiators 1 --crashes 1 --suspicions 0 --fifo
franklin
hirschberg-sinclair
peterson --fifo
peterson
itai-rodeh --processes 2 --fifo --depth 30
bully
bully --suspicions 1
bully --late 1 --initiators 1
bully --crashes 1 --suspicions 0 --initiators 1 --processes 2
bully-stable --timeouts 2
majority-terms --initiators 1 --timeouts 2
majority-terms --initiators 1 --timeouts 1 --late 1 --processes 2
raft --initiators 1 --timeouts 1
raft --initiators 1 --timeouts 1 --late 1 --crashes 1 --processes 2
raft --initiators 1 --timeouts 2 --late 1 --crashes 1 --processes 2 --disk-time 5ms
invitation --timeouts 2
filtered-gossip --processes 2
yo-yo
yo-yo --edges 1-2,2-3,3-4,4-1
END
}
table() { # of the counts, with and without reduction
    local arguments
    while read -r arguments; do
        echo "$arguments"
        for reduction in "" "--reduce order" "--reduce symmetry"; do
            [[ $reduction == *symmetry ]] && ! is_symmetric "${arguments%% *}" && continue
            printf '  %-18s %s\n' "$reduction" "$(counted $arguments $reduction --keep-going)"
        done
    done < <(all_bounds)
}
is_symmetric() {
    case $1 in
    central-elected) return 1 ;;
    central* | quorum | voting | tree-lock* | ring-anonymous | itai-rodeh) ;;
    *) return 1 ;;
    esac
}
check "pinned counts and verdicts of every algorithm" same tests/golden/check-counts.text table

every_algorithm_is_there() {
    local algorithm
    for algorithm in $(c list --json | jq -r '.[].algorithm'); do
        all_bounds | grep -q "^$algorithm\b" || { echo "$algorithm is not checked"; return 1; }
    done
}
check "no algorithm is left out" every_algorithm_is_there

# A reduction changes no verdict: in the pinned table, all lines of an entry end alike.
same_verdicts() {
    awk '/^[^ ]/ {name = $0; wanted = ""; next}
        {match($0, /[a-z]+=.*/); v = substr($0, RSTART)
         if (/symmetry/) gsub(/(starvation|liveness)=unknown/, "&?", v)
         if (wanted == "") wanted = v
         else if (v ~ /\?/) {} # cycles are not judged under symmetry
         else if (v != wanted) {print name ": " v " is not " wanted; bad = 1}}
        END {exit bad}' tests/golden/check-counts.text
}
check "the same verdicts with and without reduction" same_verdicts

alike() { # ARGUMENTS: the same counts whichever way they are explored
    local one order
    one=$(counted "$@" --keep-going --jobs 1)
    for order in "--jobs 2" "--jobs 5" "--depth-first" "--compact"; do
        other=$(counted "$@" --keep-going $order)
        [ "$order" = --compact ] && other=${other/starvation=unknown/starvation=held}
        [[ $order == -[-]depth* || $order == --compact ]] && other=$(sed -E 's/^([0-9]+ [0-9]+) [0-9]+/\1/' <<<"$other") &&
            wanted=$(sed -E 's/^([0-9]+ [0-9]+) [0-9]+/\1/' <<<"$one") || wanted=$one
        [ "$other" = "$wanted" ] || { echo "$order: $other, not $wanted"; return 1; }
    done
}
for arguments in "ricart-agrawala --entries 2" "maekawa --entries 2" "central-lease --entries 2 --late 1" \
    "ricart-agrawala --processes 3 --entries 2 --reduce order" "suzuki-kasami --processes 4" "raymond --processes 6"; do
    check "the same counts on several threads, depth first and compact: $arguments" alike $arguments
done
check "the probability of an omission is told" json '.omission > 0 and .omission < 0.001' \
    c check ricart-agrawala --entries 2 --compact --json

# ---- What it must show ----
violated() { json ".verdicts.$1 == \"violated\" and .counterexample.property == \"$1\"" \
    c check "${@:2}" --property "$1" --json; }
for arguments in "central --entries 2" "central --processes 4 --entries 2" "lamport --fifo" \
    "lamport --processes 2 --entries 3 --fifo" "ricart-agrawala --entries 2" "maekawa --entries 2" \
    "suzuki-kasami --entries 2" "suzuki-kasami --processes 4" "raymond --entries 2" \
    "raymond --processes 4 --entries 2" "roucairol-carvalho --entries 2" "token-ring --entries 2" \
    "voting --processes 2 --timeouts 2" \
    "ricart-agrawala-majority --processes 2 --entries 2" "tree-lock --entries 2" \
    "tree-lock-queue --entries 2" "central-lease --entries 2 --late 1 --fencing"; do
    check "exclusion holds: $arguments" holds exclusion $arguments
done
for arguments in "--timeouts 1" "--processes 2 --crashes 1 --timeouts 1"; do
    check "exclusion is not violated: quorum $arguments" unbroken exclusion quorum $arguments --reduce all
done
check "exclusion is violated: lamport without order" violated exclusion lamport --processes 3
check "maekawa without its deadlock messages deadlocks" violated deadlock maekawa --plain
check "... and with them it does not" holds deadlock maekawa --entries 2
# A crash may lose what the process has sent and what has not arrived, such as an answer that it has saved.
for arguments in "maekawa --processes 2 --entries 2" "maekawa --fifo --reduce order" "ricart-agrawala-majority --processes 2" \
    "ricart-agrawala --processes 2 --entries 2" "central-elected --processes 2 --suspicions 0" \
    "tree-lock --processes 2 --fifo" "tree-lock-queue --processes 2 --fifo"; do
    check "a crash that is over blocks nobody: $arguments" holds deadlock $arguments --crashes 1 --recover
done
check "... but one that is not does" violated deadlock maekawa --processes 2 --crashes 1
check "... and central loses what it was asked" violated deadlock central --processes 2 --crashes 1 --recover --fifo
check "quorum with amnesia, violated in the shortest way" json '
    .verdicts.exclusion == "violated" and .counterexample.steps == 12' \
    c check quorum --processes 2 --crashes 1 --amnesia --timeouts 1 --property exclusion --json
check "central-lease with one late message is violated" json '
    .verdicts.exclusion == "violated" and .counterexample.steps == 7' \
    c check central-lease --processes 2 --late 1 --json
check "... and without is not" holds exclusion central-lease --entries 2
check "tree-lock-naive loses a wake-up" violated deadlock tree-lock-naive --processes 2
check "tree-lock does not" holds deadlock tree-lock --entries 2
check "ring-anonymous elects two" violated uniqueness ring-anonymous
check "itai-rodeh does not, whatever is drawn" json '.verdicts.uniqueness == "unknown" and
    .unknown.uniqueness == "not violated within 24 steps"' \
    c check itai-rodeh --processes 3 --fifo --depth 24 --property uniqueness --json
check "... and ends with probability 1, not in every run" json '
    .with_probability_1 == ["liveness", "termination"] and .verdicts.termination == "unknown" and
    (.unknown.termination | contains("some draws lead to an end"))' \
    c check itai-rodeh --processes 2 --fifo --depth 30 --json
check "... which is not said where no end is in sight" json '.with_probability_1 == []' \
    c check itai-rodeh --processes 2 --fifo --depth 6 --json
check "an election that was not explored to its end" json '.verdicts.termination == "unknown"' \
    c check chang-roberts --processes 3 --initiators 1 --loss 1 --depth 1 --json
check "... and that was" json '.verdicts.termination == "violated"' \
    c check chang-roberts --processes 3 --initiators 1 --loss 1 --property termination --json
check "bully with one wrong suspicion elects two" violated uniqueness bully --suspicions 1
check "bully with right timers does not" holds uniqueness bully
for arguments in "--suspicions 2 --initiators 1 --fifo" "--suspicions 2" "--crashes 1 --suspicions 0"; do
    check "... and all follow one in the end: $arguments" holds agreement bully $arguments
    check "... the right one: $arguments" holds safety bully $arguments
    check "... and nobody is left without: $arguments" holds liveness bully $arguments
done
check "token-ring repairs itself: never two inside, nobody blocked, nobody starved" json '
    ([.verdicts[]] | unique) == ["held"] and .end == "complete"' \
    c check token-ring --repair --crashes 1 --suspicions 0 --fifo --json
check "... but not with a wrong suspicion" violated exclusion token-ring --repair --suspicions 1
check "... unless the resource checks tokens" holds exclusion token-ring --repair --suspicions 1 --fencing --fifo
check "ring-coordinator of two keeps one leader through a crash" holds uniqueness \
    ring-coordinator --processes 2 --crashes 1 --suspicions 0 --fifo
check "... but of three not, when one is back before the lists are" violated uniqueness \
    ring-coordinator --crashes 1 --suspicions 0 --fifo
check "... and all follow the same one in the end" holds agreement \
    ring-coordinator --processes 2 --crashes 1 --suspicions 0 --fifo
! long || check "... and of three, too" holds liveness ring-coordinator --initiators 2 --crashes 1 --suspicions 0 --fifo
check "chang-roberts elects through a crash, and all follow one" holds agreement \
    chang-roberts --initiators 1 --crashes 1 --suspicions 0 --fifo
! long || check "... and so does ring-list" holds liveness ring-list --initiators 2 --crashes 1 --suspicions 0 --fifo --reduce order
check "... unless only one wants it, and dies before anybody hears of it" json '.verdicts.liveness == "violated" and
    .counterexample.steps == 5' c check ring-list --initiators 1 --crashes 1 --suspicions 0 --fifo --property liveness --json
for arguments in "--timeouts 2 --crashes 1" "--timeouts 1 --crashes 1 --loss 1" "--timeouts 2 --late 1 --loss 1 --fifo" \
    "--timeouts 1 --late 1 --crashes 1 --fifo"; do
    check "majority-terms never elects two in a term: $arguments" \
        unbroken uniqueness majority-terms --initiators 1 $arguments --reduce order
done
check "... but does with amnesia" violated uniqueness majority-terms --initiators 2 --timeouts 1 \
    --crashes 1 --amnesia --fifo --reduce order

# Bounded wait: how often others can enter once a request has arrived.  A queue serves in order; who has to come back and
# try again may find the lock taken each time, as often as others have entries left.
bounded() { json ".verdicts.bounded_wait == \"held\" and .overtakes == $1" c check "${@:2}" --property bounded_wait --json; }
while read -r times arguments; do
    check "others enter at most $times during one wait: $arguments" bounded $times $arguments
done <<'END'
1 central --processes 2 --entries 3
2 central --entries 2
1 ricart-agrawala --processes 2 --entries 3
1 lamport --processes 2 --entries 3 --fifo
1 tree-lock-queue --processes 2 --entries 3
2 token-ring --entries 2
3 raymond --entries 2
END
check "barging has no bound" json '.verdicts.bounded_wait == "unknown" and .overtakes == 3 and
    (.unknown.bounded_wait | startswith("others can use up all of their entries"))' \
    c check tree-lock --processes 2 --entries 3 --property bounded_wait --json
check "... and is starvation within one" json '.verdicts.starvation == "violated" and
    .counterexample.why == "others entered 3 times while p1 waited"' \
    c check tree-lock --processes 2 --entries 3 --starved-after 3 --json
check "... which a queue is not" json '([.verdicts[]] | unique) == ["held"]' \
    c check tree-lock-queue --processes 2 --entries 3 --starved-after 3 --json
check "a bound that is kept" json '.verdicts.bounded_wait == "held"' c check central --entries 2 --wait-bound 2 --json
check "... and one that is not" json '.verdicts.bounded_wait == "violated"' \
    c check central --entries 2 --wait-bound 1 --json
check "who waits for ever waits beyond every bound" json '.verdicts.bounded_wait == "violated"' \
    c check maekawa --plain --property bounded_wait --json
check "who waits is not told by a reduced search" json '.verdicts.bounded_wait == "unknown"' \
    c check central --entries 2 --reduce all --property bounded_wait --json

# ... and Yo-Yo on every graph with few edges; see above.
few() { awk -v most="$1" 'split($0, e, ",") <= most'; }
long || check "yo-yo elects the minimum on every small graph with up to 3 edges" every_graph few 3

# ---- Counterexamples ----
replays() {
    local file=$WORK/replay.scenario
    exits 1 c check "$@" --save-scenario "$file" --force >/dev/null 2>&1 &&
        exits 0 c sim --scenario "$file" >/dev/null || { cat "$file"; return 1; }
    grep -q '^expect' "$file"
}
for arguments in "quorum --processes 2 --crashes 1 --amnesia --property exclusion --timeouts 1" "tree-lock-naive --processes 2" \
    "central-lease --processes 2 --late 1" "maekawa --plain" "lamport" "ring-anonymous --property uniqueness" \
    "bully --suspicions 1 --property uniqueness" "peterson --property agreement" "chang-roberts --loss 1 --property liveness" \
    "peterson --property uniqueness --reduce order" "suzuki-kasami --loss 1 --property deadlock --reduce order" \
    "ring-anonymous --property uniqueness --reduce symmetry" "tree-lock-naive --depth-first" \
    "tree-lock --processes 2 --entries 3 --starved-after 2" "central --entries 2 --wait-bound 1" \
    "central-lease --late 1 --compact" "filtered-gossip --property uniqueness" \
    "ricart-agrawala --processes 2 --crashes 1 --amnesia --entries 2 --property exclusion"; do
    check "a counterexample replays: $arguments" replays $arguments
done
check "a counterexample as JSON" json '.counterexample.trace | type == "object" or type == "array"' \
    c check central-lease --processes 2 --late 1 --json
for format in text mermaid json svg; do
    check "a counterexample as $format" same "tests/golden/check-lease.$format" \
        c check central-lease --processes 2 --late 1 --trace $format
done
the_same_twice() {
    [ "$(c check "$@" --json | jq -c 'del(.seconds, .memory, .memory_visited)' | sha256sum)" = \
        "$(c check "$@" --json --jobs 1 | jq -c 'del(.seconds, .memory, .memory_visited)' | sha256sum)" ]
}
check "on several threads the same counterexample" the_same_twice quorum --processes 2 --crashes 1 --amnesia --timeouts 1

# ---- Limits and bad input ----
check "waits that nobody asks about" says "leaves out the waits" 2 c check central --property exclusion --wait-bound 1
left_out() { c check central-lease --processes 2 | grep -q 'without  *crashes, losses, late timers$'; }
check "what the model leaves out is said" left_out
check "the documented keys" json 'has("states") and has("transitions") and has("depth") and
    has("seconds") and has("verdicts") and has("counterexample")' c check central --json
# Each thread may finish the state that it is expanding.
limited() { json '.end == "memory" and .verdicts.exclusion == "unknown" and .memory < 1.02 * 20 * 1024 * 1024' \
    c check ricart-agrawala --processes 4 --memory 20M --json --jobs "$1"; }
check "the memory limit is obeyed" limited 1
check "... by threads" limited 4
check "... by many" limited 64
check "... with a status of its own" exits 4 c check ricart-agrawala --processes 4 --memory 20M
check "... and a warning" says "states or more are expected" 4 c check ricart-agrawala --processes 4 --memory 20M --json
check "the states at the depth asked for are judged" json '.verdicts.deadlock == "violated"' \
    c check tree-lock-naive --processes 2 --depth 9 --property deadlock --json
check "where timers are cut off nothing is known" json '.timers_left and .verdicts.liveness == "unknown" and
    .verdicts.uniqueness == "unknown"' c check bully-stable --processes 2 --timeouts 0 --json
check "... nor where one would have been late" json '.timers_left and .verdicts.exclusion == "unknown"' \
    c check central-lease --processes 2 --late 1 --timeouts 0 --json
tells() { "${@:2}" | grep -qF -- "$1"; }
check "what holds, holds for so many entries" tells "held for 2 entries of each process" \
    c check central --processes 2 --entries 2
check "a wrong suspicion loses nothing" holds deadlock tree-lock --processes 2 --suspicions 1 --fifo
# The state graph, walked: all states are reached by steps that are offered, and no others.
walked() {
    local states=$1
    shift
    [ "$(c check "$@" --json | jq .states)" = "$states" ] || return 1
    /usr/bin/python3 - "$CONCLAVE" "$states" "$@" <<'END'
import json, subprocess, sys
conclave, states, words = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
def at(path):
    steps = ",".join(map(str, path)) or "0"
    told = subprocess.run([conclave, "check", *words, "--json", "--walk", steps], capture_output=True, check=True)
    walk = json.loads(told.stdout)
    assert len(walk["walked"]) == len(path)
    for shown in walk["processes"] + walk["flights"] + walk["steps"]:
        del shown["entry"]["index"]
    del walk["walked"]
    for name in ("flights", "steps"):  # they come in the order in which they were met first
        walk[name].sort(key=json.dumps)
    return json.dumps(walk), len(walk["steps"])
seen, open_paths = set(), [[]]
while open_paths:
    path = open_paths.pop()
    state, steps = at(path)
    if state in seen: continue
    seen.add(state)
    open_paths += [path + [i + 1] for i in range(steps)]
print(len(seen), "states")
sys.exit(len(seen) != states)
END
}
LEASE=(central-lease --processes 2 --late 1)
# The seventh step of this walk is the one that violates exclusion, and the simulator agrees.
to_the_violation() {
    json '(.walked[:6] | all(.violates == [])) and .walked[6].violates == ["exclusion"] and .walked[6].entry.message == "GRANT" and
        ([.processes[].standing] == ["", "inside", "inside"])' c check "${LEASE[@]}" --walk 1,1,1,1,2,1,2 --json || return 1
    c check "${LEASE[@]}" --walk 1,1,1,1,2,1,2 --save-scenario - >"$WORK/walk.scenario" || return 1
    json '.verdicts.exclusion == "violated"' c sim --scenario "$WORK/walk.scenario" --json
}
check "every state is reached by walking: a lock" walked 33 central --processes 2
check "every state is reached by walking: an election" walked 40 chang-roberts --processes 2
check "a walk to a violation" to_the_violation
check "a walk in words" tells "   2  p2 wants the lock" c check "${LEASE[@]}" --walk 1,1,1,1
check "a step that is none" says "there are 2 steps from the state where number 5 of yours" 2 c check "${LEASE[@]}" --walk 1,1,1,1,3
check "a walk is no word" says "'x' is not the number of a step" 2 c check central --walk 1,x
check "a walk needs no other bound" tells "   1  p1 wants an election" c check raft --walk 0
check "a walk goes step by step" says "not with --reduce" 2 c check central --walk 0 --reduce order
check "a depth depth first" says "needs breadth-first search" 2 c check central --depth 3 --depth-first
check "unbounded timers need a bound" says "--timeouts K" 2 c check majority-terms
check "tokens without end need a bound" says "with --depth D" 2 c check token-ring --repair --fencing --suspicions 1
check "unbounded rounds need a bound" says "with --depth D" 2 c check itai-rodeh
check "who does not crash does not recover" says "recover: goes with --crashes" 2 c check central --recover
check "no entries" says "entries: '0' is not a whole number from 1" 2 c check central --entries 0
check "entries of an election" says "not for bully" 2 c check bully --entries 2
check "initiators of a lock" says "not for central" 2 c check central --initiators 2
check "amnesia without crashes" says "amnesia: goes with --crashes" 2 c check central --amnesia
check "a detector that nobody listens to" says "does not use a failure detector" 2 c check central --suspicions 1
check "late without timers" says "it has no timers" 2 c check lamport --late 1
check "too many processes" says "at most 31" 2 c check central --processes 40
check "an unknown reduction" says "reduce: 'x' is not" 2 c check central --reduce x
check "an unknown property" says "property: 'x' is not one of exclusion" 2 c check central --property x
check "an amount of memory" says "memory: '8Q' is not" 2 c check central --memory 8Q
check "an unknown algorithm" says "did you mean central" 2 c check centrla
check "nothing violated, nothing to write" says "no counterexample" 0 c check central --processes 2 --trace svg --json --output "$WORK/x"
