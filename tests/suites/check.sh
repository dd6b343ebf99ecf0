# The model checker from outside: exact counts, verdicts, reductions, counterexamples, limits.
c() { "$CONCLAVE" "$@"; }

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
ring-list
ring-coordinator
ring-coordinator --crashes 1 --suspicions 0 --fifo --processes 2
chang-roberts
chang-roberts --ids descending --processes 4
chang-roberts --loss 1
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
holds() { json ".verdicts.$1 == \"held\" and .end == \"complete\"" c check "${@:2}" --property "$1" --json; }
violated() { json ".verdicts.$1 == \"violated\" and .counterexample.property == \"$1\"" \
    c check "${@:2}" --property "$1" --json; }
for arguments in "central --entries 2" "central --processes 4 --entries 2" "lamport --fifo" \
    "lamport --processes 2 --entries 3 --fifo" "lamport --entries 2 --fifo --reduce order" "ricart-agrawala --entries 2" "maekawa --entries 2" \
    "suzuki-kasami --entries 2" "suzuki-kasami --processes 4" "raymond --entries 2" \
    "raymond --processes 4 --entries 2" "roucairol-carvalho --entries 2" "token-ring --entries 2" \
    "quorum --timeouts 1 --reduce all" "quorum --processes 2 --entries 2 --timeouts 1 --reduce all" \
    "quorum --processes 2 --crashes 1 --timeouts 1 --reduce all" "voting --processes 2 --timeouts 2 --entries 2" \
    "ricart-agrawala-majority --processes 2 --entries 2" "tree-lock --entries 2" \
    "tree-lock-queue --entries 2" "central-lease --entries 2 --late 1 --fencing"; do
    check "exclusion holds: $arguments" holds exclusion $arguments
done
check "exclusion is violated: lamport without order" violated exclusion lamport --processes 3
check "maekawa without its deadlock messages deadlocks" violated deadlock maekawa --plain
check "... and with them it does not" holds deadlock maekawa --entries 2
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
check "itai-rodeh does not, whatever is drawn" json '.verdicts.uniqueness == "held"' \
    c check itai-rodeh --processes 3 --fifo --depth 24 --property uniqueness --json
check "bully with one wrong suspicion elects two" violated uniqueness bully --suspicions 1
check "bully with right timers does not" holds uniqueness bully
check "token-ring repairs itself: never two inside, nobody blocked, nobody starved" json '
    ([.verdicts[]] | unique) == ["held"] and .end == "complete"' \
    c check token-ring --repair --crashes 1 --suspicions 0 --fifo --json
check "... but not with a wrong suspicion" violated exclusion token-ring --repair --suspicions 1
check "... unless the resource checks tokens" holds exclusion token-ring --repair --suspicions 1 --fencing --fifo
check "ring-coordinator of two keeps one leader through a crash" holds uniqueness \
    ring-coordinator --processes 2 --crashes 1 --suspicions 0 --fifo
check "... but of three not, when one is back before the lists are" violated uniqueness \
    ring-coordinator --crashes 1 --suspicions 0 --fifo
for arguments in "--timeouts 2 --crashes 1" "--timeouts 1 --crashes 1 --loss 1" "--timeouts 2 --late 1 --loss 1 --fifo" \
    "--timeouts 1 --late 1 --crashes 1 --fifo"; do
    check "majority-terms never elects two in a term: $arguments" \
        holds uniqueness majority-terms --initiators 1 $arguments --reduce order
done
check "... but does with amnesia" violated uniqueness majority-terms --initiators 2 --timeouts 1 \
    --crashes 1 --amnesia --fifo --reduce order

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
        jq -e '.end == "complete" and ([.verdicts[]] | unique) == ["held"]' >/dev/null || echo "$1"
}
export -f right_on
every_graph() {
    local wrong
    [ "$(graphs | wc -l)" -eq 771 ] || { echo "$(graphs | wc -l) graphs, not 771"; return 1; }
    wrong=$(graphs | ${1:-cat} | xargs -P "$(nproc)" -I{} bash -c 'right_on {}')
    [ -z "$wrong" ] || { echo "not the minimum, and it alone, on: $wrong"; return 1; }
}
if [ -n "${SANITIZED:-}" ]; then # it takes too long with sanitizers
    small() { awk 'split($0, e, ",") <= 5'; }
    check "yo-yo elects the minimum on every small graph with few edges" every_graph small
else
    check "yo-yo elects the minimum on every connected graph of up to 5 vertices" every_graph
fi

# ---- Counterexamples ----
replays() {
    local file=$WORK/replay.scenario
    exits 1 c check "$@" --scenario "$file" >/dev/null 2>&1 &&
        exits 0 c sim --scenario "$file" >/dev/null || { cat "$file"; return 1; }
    grep -q '^expect' "$file"
}
for arguments in "quorum --processes 2 --crashes 1 --amnesia --property exclusion --timeouts 1" "tree-lock-naive --processes 2" \
    "central-lease --processes 2 --late 1" "maekawa --plain" "lamport" "ring-anonymous --property uniqueness" \
    "bully --suspicions 1 --property uniqueness" "peterson --property agreement" "chang-roberts --loss 1 --property liveness" \
    "peterson --property uniqueness --reduce order" "suzuki-kasami --loss 1 --property deadlock --reduce order" \
    "ring-anonymous --property uniqueness --reduce symmetry" "tree-lock-naive --depth-first" \
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
check "the documented keys" json 'has("states") and has("transitions") and has("depth") and
    has("seconds") and has("verdicts") and has("counterexample")' c check central --json
check "the memory limit is obeyed" json '.end == "memory" and .verdicts.exclusion == "unknown" and
    .memory < 25000000' c check ricart-agrawala --processes 4 --memory 20M --json
check "... with a status of its own" exits 4 c check ricart-agrawala --processes 4 --memory 20M
check "... and a warning" says "states are to be expected" 4 c check ricart-agrawala --processes 4 --memory 20M --json
check "the states at the depth asked for are judged" json '.verdicts.deadlock == "violated"' \
    c check tree-lock-naive --processes 2 --depth 9 --property deadlock --json
check "where timers are cut off no end is known" json '.timers_left and .verdicts.liveness == "unknown" and
    .verdicts.uniqueness == "held"' c check bully-stable --processes 2 --timeouts 0 --json
check "a wrong suspicion loses nothing" holds deadlock tree-lock --processes 2 --suspicions 1 --fifo
check "a depth depth first" says "goes with breadth first" 2 c check central --depth 3 --depth-first
check "unbounded timers need a bound" says "with --timeouts K" 2 c check majority-terms
check "tokens without end need a bound" says "with --depth D" 2 c check token-ring --repair --fencing --suspicions 1
check "unbounded rounds need a bound" says "with --depth D" 2 c check itai-rodeh
check "no entries" says "entries: '0' is not a whole number from 1" 2 c check central --entries 0
check "entries of an election" says "not for bully" 2 c check bully --entries 2
check "initiators of a lock" says "not for central" 2 c check central --initiators 2
check "amnesia without crashes" says "amnesia: goes with --crashes" 2 c check central --amnesia
check "a detector that nobody listens to" says "does not listen" 2 c check central --suspicions 1
check "late without timers" says "it has no timers" 2 c check lamport --late 1
check "too many processes" says "at most 31" 2 c check central --processes 40
check "an unknown reduction" says "reduce: 'x' is not" 2 c check central --reduce x
check "an unknown property" says "property: 'x' is not one of exclusion" 2 c check central --property x
check "an amount of memory" says "memory: '8Q' is not" 2 c check central --memory 8Q
check "an unknown algorithm" says "did you mean central" 2 c check centrla
check "nothing violated, nothing to write" says "no counterexample" 0 c check central --processes 2 --trace svg --json --output "$WORK/x"
