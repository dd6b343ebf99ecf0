# Elections from outside: who is elected, at what cost, on which networks, with which detectors.
c() { "$CONCLAVE" "$@"; }
right='.verdicts | .safety == "held" and .liveness == "held" and .termination == "held" and
    .uniqueness == "held" and .agreement == "held"'

check "the documented keys" json '
    has("leader") and has("rounds") and has("bytes") and has("time") and has("trace_hash") and
    (.verdicts | has("safety") and has("liveness") and has("termination") and has("uniqueness") and
        has("agreement") and has("stability"))' c sim chang-roberts --processes 8 --json

# Every election elects, for awkward sizes too.
for election in $("$CONCLAVE" list --json | jq -r '.[] | select(.problem == "election") | .algorithm'); do
    [ "$election" = ring-anonymous ] && continue # it is there to fail
    for n in 1 2 3 7 16; do
        check "$election of $n" json "$right" c sim "$election" --processes $n --json
    done
done

# The formulas.
for n in 1 2 5 64; do
    check "chang-roberts, worst case of $n" json ".messages == $((n == 1 ? 0 : n * (n + 1) / 2 + n)) and
        .leader == $n" c sim chang-roberts --processes $n --ids descending --json
done
check "chang-roberts, one initiator" json '.messages <= 3 * 100 - 1' \
    c sim chang-roberts --processes 100 --initiators 1 --json
check "chang-roberts, mean of 2000 runs within 2%" json '
    (256 * ([range(1; 257)] | map(1 / .) | add) + 256) as $formula |
    .summary.messages.mean / $formula | . > 0.98 and . < 1.02' \
    c sim chang-roberts --processes 256 --runs 2000 --json
check "franklin, never above log2(N) + 1 rounds" json '.summary.rounds.max <= 8 and
    .verdicts.uniqueness.held == 2000 and .verdicts.safety.held == 2000' \
    c sim franklin --processes 200 --runs 2000 --start uniform:0,50ms --delay exponential:2ms --json
check "yo-yo, the minimum on 1,000 random networks" json '.verdicts.safety.held == 1000 and
    .verdicts.uniqueness.held == 1000 and ([.results[][17]] | unique) == [1]' \
    c sim yo-yo --processes 12 --topology random:0.25 --runs 1000 --json
check "hirschberg-sinclair within its bound" json '.summary.messages.max <= 8 * 64 * 7 + 64' \
    c sim hirschberg-sinclair --processes 64 --runs 300 --json

# Networks.
for shape in ring line star grid complete random:0.5; do
    check "yo-yo on $shape" json "$right and true" c sim yo-yo --processes 9 --topology $shape --json
done
edge_list() {
    printf '# a triangle with a tail\n10 2\n2 7\n7 10\n7 5\n' >"$WORK/list"
    json '.leader == 2 and .processes == 4' c sim yo-yo --graph "$WORK/list" --json
}
graphviz() {
    printf 'graph G {\n  node [shape=circle];\n  "a b" -- c -- d; d -- "a b" [weight=3]\n}\n' >"$WORK/dot"
    json '.processes == 3 and .verdicts.uniqueness == "held"' c sim yo-yo --graph "$WORK/dot" --json
}
directed() {
    printf 'digraph { a -> b }\n' >"$WORK/digraph"
    says "digraph:1: a directed graph" 2 c sim yo-yo --graph "$WORK/digraph"
}
check "a network from an edge list, its names the ids" edge_list
check "a network from Graphviz" graphviz
check "a directed one is refused" directed
check "a ring, edge by edge" json '.leader == 9 and .messages == 16' \
    c sim chang-roberts --edges 5-9,9-2,2-7,7-4,4-5 --json
check "one that is no ring" says "needs a ring" 2 c sim chang-roberts --edges 5-9,9-2,2-7
check "nor two rings" says "needs a ring" 2 c sim franklin --edges 1-2,2-3,3-1,4-5,5-6,6-4
check "a ring of two" json '.leader == 8' c sim franklin --edges 8-3 --json
third_column() { printf '1 2 0.5\n' >"$WORK/third" && says "third:1: more than two names" 2 c sim yo-yo --graph "$WORK/third"; }
check "weights are not taken for processes" third_column
check "sets in braces" says "not understood" 2 c sim yo-yo --edges 'a -- {b c}'
check "a network in two parts: split-brain, by its name" json '.split_brain and .leader == null and
    .verdicts.uniqueness == "violated" and .uniqueness_within_parts == "held" and
    (.verdicts.why.uniqueness | startswith("split-brain"))' c sim yo-yo --edges 1-2,3-4 --json

# Ids and attributes.
check "ids from a list" json '.leader == 99' c sim chang-roberts --processes 3 --ids 7,99,12 --json
check "the attribute comes before the id" json '.leader_name == "p2"' \
    c sim bully --processes 3 --attribute memory=4,64,8 --json
check "ties are broken by the id" json '.leader_name == "p3"' \
    c sim bully --processes 3 --attribute memory=8,4,8 --json
check "an id twice" says "there only once" 2 c sim chang-roberts --processes 3 --ids 7,7,12
check "an id of 0" says "above 0" 2 c sim chang-roberts --processes 2 --ids 0,1
check "too few ids" says "fewer numbers than processes" 2 c sim chang-roberts --processes 3 --ids 7,12
check "too many ids" says "more numbers than processes" 2 c sim chang-roberts --processes 2 --ids 7,12,3
check "a ring that is a star" says "needs a ring" 2 c sim chang-roberts --topology star
check "an unknown shape" says "not complete, ring, line" 2 c sim yo-yo --topology torus
check "an edge to itself" says "joined to itself" 2 c sim yo-yo --edges 1-1
check "a lock's setting" says "not for bully, which is an election" 2 c sim bully --hold 3ms
check "an election's setting" says "not for central, which is a lock" 2 c sim central --ids random

# Detectors.
for detector in fixed:60ms adaptive:6 phi:10; do
    check "$detector notices crashes" json '.detector.noticed > 5 and .detector.detection_ms_mean > 5 and
        .detector.detection_ms_mean < 200' c sim bully --detector $detector --judge detector \
        --crash-rate 0.2/s --recover --recover-after 1s --time-limit 20s --settle 20s --json
    check "$detector suspects a slow process wrongly" json '.detector.mistakes > 0' \
        c sim bully --detector $detector --pause-rate 1/s --pause-for 2s --time-limit 20s --json
done
short_against_long() {
    local short long
    short=$(c sim bully --detector fixed:25ms --delay exponential:5ms --time-limit 60s --settle 60s --json)
    long=$(c sim bully --detector fixed:200ms --delay exponential:5ms --time-limit 60s --settle 60s --json)
    [ "$(jq .detector.mistakes <<<"$short")" -gt 0 ] && [ "$(jq .detector.mistakes <<<"$long")" -eq 0 ]
}
check "a short timeout makes mistakes, a long one does not" short_against_long
check "a detector that is none" says "is not a time such as 20ms, fixed:TIME" 2 c sim bully --detector psi:3
check "a judge without a detector" says "wants a detector" 2 c sim bully --judge detector
gaps() {
    c sim bully --detector phi:8 --delay exponential:3ms --gaps "$WORK/gaps" >/dev/null
    json '.best.timeout_ms > 5' c timeout --wait-cost 1 --mistake-cost 100 --delays "$WORK/gaps" --json
}
check "a run's gaps are delays for conclave timeout" gaps

# Never two in a term.
check "majority-terms under everything" json '.verdicts.uniqueness.violated == 0' \
    c sim majority-terms --runs 300 --crash-rate 0.5/s --recover --recover-after 300ms \
    --partition-rate 0.3/s --loss 0.05 --duplicate 0.05 --drift 0.1 --pause-rate 0.2/s \
    --delay exponential:3ms --time-limit 10s --json

# The catalogue explains itself.
explained() {
    local name
    for name in $("$CONCLAVE" list --json | jq -r '.[].algorithm'); do
        [ "$(c explain "$name" --json | jq -r '.text | length')" -gt 200 ] || { echo "$name"; return 1; }
        c explain "$name" --json | jq -e '.text | test("breaks")' >/dev/null || { echo "$name"; return 1; }
    done
}
check "every algorithm is explained, with what breaks it" explained
listed() { json 'all(.[]; .summary and .topology and .cost and .tolerates and .paper)' c list --json; }
check "the list is complete" listed

# The measured table: exact where the formula is exact, below it where it is a bound.
compared() {
    c compare --elections --json --plot "$WORK/plot.svg" >"$WORK/compared.json" && xmllint --noout "$WORK/plot.svg" &&
        jq -e '
            (map(select(.algorithm == "ring-list" or .algorithm == "bully")) | length > 8 and
                all(.[]; .messages == .formula_value)) and
            (map(select(.algorithm == "franklin" or .algorithm == "hirschberg-sinclair" or
                .algorithm == "peterson")) | length == 24 and all(.[]; .messages_max <= .formula_value)) and
            (map(select(.algorithm == "chang-roberts" and .runs == 200)) | length == 5 and
                all(.[]; .interval_95[0] <= 1.02 * .formula_value and .interval_95[1] >= 0.98 * .formula_value)) and
            all(.[]; .violated == 0 or .algorithm == "ring-anonymous")' "$WORK/compared.json" >/dev/null
}
check "every election, measured beside its formula" compared
