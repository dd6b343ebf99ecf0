# Elections from outside: who is elected, at what cost, on which networks, with which detectors.
stands_alone
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
check "ring-list, (k + 1) N" json '.messages == 65 * 64' c sim ring-list --processes 64 --json
check "ring-coordinator, 2N for each initiator" json '.messages == 64 * 128' c sim ring-coordinator --processes 64 --json
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
cut_off() { printf 'graph {\n a -- b\n' >"$WORK/cut" && says "cut:3: '}' is missing" 2 c sim yo-yo --graph "$WORK/cut"; }
check "... and one that is cut off" cut_off
more() { printf 'graph { a -- b } # one\nx y\n' >"$WORK/more" && says "more:2: there is more" 2 c sim yo-yo --graph "$WORK/more"; }
check "... and one with more after it" more
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
for election in $("$CONCLAVE" list --json | jq -r '.[] | select(.problem == "election") | .algorithm'); do
    [[ $election == ring-anonymous || $election == itai-rodeh ]] && continue # these have no weights
    check "$election: a weight of 0 does not lead" json '.verdicts.safety.held == 20 and .verdicts.liveness.held == 20 and
        ([.results[][17]] | unique | . == [2] or . == [2, 3] or . == [3])' \
        c sim "$election" --processes 4 --ids 1,2,3,4 --attribute w=0,3,3,0 --initiators 1 --runs 20 --json
done
check "a weight of 0 does not lead where nobody else is" json '.leader == null and .verdicts.liveness == "violated"' \
    c sim chang-roberts --processes 3 --attribute w=0,5,0 --detector 5ms --at '0ms p1 campaign' --at '30ms p2 crash' --json
check "no weight above 0" says "one must be above 0" 2 c sim bully --processes 2 --attribute w=0,0
check "an id twice" says "must be unique" 2 c sim chang-roberts --processes 3 --ids 7,7,12
check "ids from 0, as a list" json '.leader == 2 and .leader_name == "p3"' c sim chang-roberts --processes 3 --ids 0,1,2 --json
for how in ascending descending random; do
    check "names and ids from 0, $how" json '.leader == 0' c sim ring-list --processes 4 --first 0 --ids $how --json
done
check "a network whose names are ids from 0" json '.leader == 0 and .leader_name == "0"' c sim yo-yo --edges 0-1,1-2 --json
check "an action on p0" json '.leader_name == "p2" and .leader == 2' \
    c sim bully --first 0 --processes 4 --at '0ms p3 crash' --at '1ms p0 campaign' --json
check "... which may come before it" json '.crashes == 1 and .leader_name == "p3"' \
    c sim bully --processes 4 --at '0ms p0 crash' --at '1ms p1 campaign' --first 0 --json
arrows() { c sim --scenario "scenarios/$1.scenario" --trace mermaid 2>/dev/null | sed -nE 's/^ *([A-Za-z0-9]+)-(>>|x)([A-Za-z0-9]+): ([A-Z]+).*/\1 \3 \4/p' | tr '\n' ';'; }
drawn() { # SCENARIO ARROWS: as the lecture draws it
    local is
    is=$(arrows "$1")
    [ "$is" = "$2" ] || { echo "$is"; return 1; }
}
P=Part C=Coordinator
check "the lecture's diagram of a coordinator, arrow by arrow" drawn central \
    "${P}1 $C REQUEST;$C ${P}1 GRANT;${P}2 $C REQUEST;${P}1 $C RELEASE;$C ${P}1 RELEASED;${P}3 $C REQUEST;$C ${P}2 GRANT;${P}2 $C RELEASE;$C ${P}2 RELEASED;$C ${P}3 GRANT;${P}3 $C RELEASE;$C ${P}3 RELEASED;"
check "the lecture's ring with a token" drawn token-ring \
    "${P}1 ${P}2 TOKEN;${P}2 ${P}3 TOKEN;${P}3 ${P}4 TOKEN;${P}4 ${P}1 TOKEN;${P}1 ${P}2 TOKEN;${P}2 ${P}3 TOKEN;${P}3 ${P}4 TOKEN;${P}4 ${P}1 TOKEN;"
check "... and with a holder that is dead" drawn lease-dead-holder \
    "${P}1 $C REQUEST;$C ${P}1 GRANT;${P}2 $C REQUEST;${P}1 $C RELEASE;$C ${P}1 RELEASED;${P}3 $C REQUEST;$C ${P}2 GRANT;$C $C T;$C ${P}3 GRANT;${P}3 $C RELEASE;$C ${P}3 RELEASED;"
check "... or only slow" drawn lease-slow-holder \
    "${P}1 $C REQUEST;$C ${P}1 GRANT;${P}2 $C REQUEST;${P}1 $C RELEASE;$C ${P}1 RELEASED;${P}3 $C REQUEST;$C ${P}2 GRANT;$C $C T;$C ${P}3 GRANT;${P}2 $C RELEASE;${P}3 $C RELEASE;$C ${P}3 RELEASED;"
in_the_picture() {
    c sim --scenario scenarios/ring-003.scenario --trace svg 2>/dev/null >"$WORK/ring.svg"
    grep -q '>\[6,0,1,2,3,4,5\]<' "$WORK/ring.svg" && grep -q '>\[3,4,5,6\]<' "$WORK/ring.svg"
}
check "the lists of the lecture's ring are in the picture" in_the_picture
lists() {
    c sim --scenario scenarios/ring-003.scenario --trace json 2>/dev/null |
        jq -e '[.entries[] | select(.type == "send" and .message == "ELECTION") | .fields.process] |
            .[0] == ["P6"] and .[1] == ["P3"] and (map(select(.[0] == "P6")) | last) == ["P6","P0","P1","P2","P3","P4","P5"] and
            (map(select(.[0] == "P3")) | last) == ["P3","P4","P5","P6","P0","P1","P2"]' >/dev/null
}
check "the lists of the lecture's ring begin with their initiators" lists
check "too few ids" says "fewer numbers than processes" 2 c sim chang-roberts --processes 3 --ids 7,12
check "too many ids" says "more numbers than processes" 2 c sim chang-roberts --processes 2 --ids 7,12,3
check "a ring that is a star" says "needs a ring" 2 c sim chang-roberts --topology star
check "an unknown shape" says "not complete, ring, line" 2 c sim yo-yo --topology torus
check "edges without an edge" says "there is no edge in it" 2 c sim yo-yo --edges 1,2,3
check "... nor in a word" says "there is no edge in it" 2 c sim yo-yo --edges foo
nothing_joined() { echo 'graph {a b}' >"$WORK/apart.dot" && says "there is no edge in it" 2 c sim yo-yo --graph "$WORK/apart.dot"; }
check "... nor in two names of Graphviz" nothing_joined
check "an edge to itself" says "joined to itself" 2 c sim yo-yo --edges 1-1
check "a lock's setting" says "not for bully, which is an election" 2 c sim bully --hold 3ms
check "an election's setting" says "not for central, which is a lock" 2 c sim central --ids random

# A side of a partition may be empty.
for election in bully invitation majority-terms raft; do
    check "$election is alone on the second side" json '.verdicts.uniqueness == "held"' \
        c sim "$election" --processes 1 --at '0ms partition | p1' --json
done
check "two on the second and the third side" json '.verdicts.uniqueness == "violated" and .verdicts.agreement == "held"' \
    c sim bully --processes 2 --at '0ms partition | p1 | p2' --json

# Wrong suspicions may keep an election from ending, with no fault at all.
check "a run that suspicions keep from ending ends" json '.verdicts.uniqueness == "violated" and
    .verdicts.safety == "unknown"' c sim bully --processes 3 --detector fixed:12ms --delay exponential:3ms --json
check "... but not before what is scheduled" json '.verdicts.liveness == "held" and .leader == 2' c sim bully --processes 3 \
    --detector 20ms --at '200s p3 crash' --json

# Rings skip the dead when they have a detector.
for election in ring-anonymous ring-list ring-coordinator chang-roberts; do
    check "$election elects again when processes of the ring die" json '.verdicts | .safety.held == 100 and
        .liveness.held == 100 and .agreement.held == 100' c sim "$election" --processes 7 --runs 100 --detector 3ms \
        --delay exponential:2ms --at '0ms p4 campaign' --at '1ms p7 crash' --at '2ms p3 crash' --at '30ms p7 recover' \
        --at '35ms p1 crash' --at '36ms p2 crash' --at '90ms p1 recover' --json
    check "$election of one that is left" json '.leader_name == "p2" and .verdicts.liveness == "held"' c sim "$election" \
        --processes 3 --detector 3ms --at '0ms p1 campaign' --at '20ms p1 crash' --at '20ms p3 crash' --json
done
check "a ring of a million skips one" json '.leader_name == "p999999" and .verdicts.liveness == "held"' \
    c sim chang-roberts --processes 1000000 --ids ascending --initiators 1 --detector 5ms \
    --at '0ms p999999 campaign' --at '500us p1000000 crash' --json

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
differ() {
    local one other
    one=$(c sim --scenario scenarios/detector-adaptive.scenario --json)
    other=$(c sim --scenario scenarios/detector-phi.scenario --json)
    [ "$(jq .detector.mistakes <<<"$one")" -gt 0 ] && [ "$(jq .detector.mistakes <<<"$other")" -eq 0 ] &&
        [ "$(jq '.detector.detection_ms_mean * 10 | floor' <<<"$one")" -lt "$(jq '.detector.detection_ms_mean * 10 | floor' <<<"$other")" ]
}
check "the adaptive detector is faster, phi makes fewer mistakes" differ
check "a detector that is none" says "is not a time such as 20ms, fixed:TIME" 2 c sim bully --detector psi:3
check "a judge without a detector" says "needs a heartbeat detector" 2 c sim bully --judge detector
gaps() {
    c sim bully --detector phi:8 --delay exponential:3ms --gaps "$WORK/gaps" >/dev/null
    json '.best.timeout_ms > 5 and .least_total.total_cost <= .best.total_cost' c timeout --wait-cost 1 --mistake-cost 100 --delays "$WORK/gaps" --json
}
check "a run's gaps are delays for conclave timeout" gaps
two_answers() { c timeout -w 1 -m 10 --delay exponential:20ms | grep -q "Use the least total"; }
check "why the two answers differ, and which to use" two_answers
one_answer() { ! c timeout -w 1 -m 1 --delay 5ms | grep -q differ; }
check "... only where they do" one_answer

# A leader that was only slow: all come to follow one again, whoever suspected it first.
for algorithm in bully bully-stable; do
    for pause in 'p4 pause 150ms' 'p4 pause 60ms' 'p3 pause 150ms'; do
        check "all follow one leader after a pause: $algorithm, $pause" json '.verdicts | .agreement.held == 1000 and
            .safety.held == 1000 and .liveness.held == 1000' c sim $algorithm --processes 4 --detector fixed:50ms --heartbeat 5ms \
            --delay exponential:1ms --at "200ms $pause" --settle 1s --time-limit 20s --runs 1000 --json
    done
done

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
columns() {
    local name
    for name in $("$CONCLAVE" list --json | jq -r '.[].algorithm'); do
        c explain "$name" | awk '/^Messages:/ {on = 1; next} /^$/ {on = 0} on && !/^  [A-Z_-]+  +[a-z]/ {print; bad = 1} END {exit bad}' ||
            { echo "$name"; return 1; }
    done
}
check "the fields of a message stand apart from its name" columns
listed() { json 'all(.[]; .summary and .topology and .cost and .tolerates and .paper)' c list --json; }
check "the list is complete" listed

# The measured table: exact where the formula is exact, below it where it is a bound.  Those that send long lists, or many, take
# most of the time, and are left to LONG=1.
quick_ones() {
    c list --json | jq -r '.[] | select(.problem == "election").algorithm' | grep -vxE 'ring-list|ring-coordinator|ring-anonymous|filtered-gossip|yo-yo'
}
compared() {
    local chosen=()
    long || mapfile -t chosen < <(quick_ones)
    c compare --elections "${chosen[@]}" --json --plot "$WORK/plot.svg" >"$WORK/compared.json" && xmllint --noout "$WORK/plot.svg" &&
        jq -e '
            (map(select(.algorithm == "ring-list" or .algorithm == "bully")) | length >= 5 and
                all(.[]; .messages == .formula_value)) and
            (map(select(.algorithm == "franklin" or .algorithm == "hirschberg-sinclair" or
                .algorithm == "peterson")) | length == 24 and all(.[]; .messages_max <= .formula_value)) and
            (map(select(.algorithm == "chang-roberts" and .runs == 200)) | length == 5 and
                all(.[]; .interval_95[0] <= 1.02 * .formula_value and .interval_95[1] >= 0.98 * .formula_value)) and
            all(.[]; .violated == 0 or .algorithm == "ring-anonymous")' "$WORK/compared.json" >/dev/null
}
check "elections, measured beside their formulas" compared

# ---- What a run does not show ----
check "a run that ended before anybody led shows nothing, whatever may fail" \
    json '.verdicts.uniqueness == "unknown"' c sim ring-anonymous --processes 4 --time-limit 500us --partition-rate 0.001/s --json
check "one that would never end says how long it lasted" json '.verdicts | .safety == "held" and .why.safety == "not violated within 5 s"' \
    c sim bully --detector 20ms --crash-rate 1/s --recover --time-limit 5s --json
for algorithm in raft majority-terms; do
    check "$algorithm: with amnesia a term has a second leader, after the first has crashed" \
        json '.verdicts | .uniqueness == "violated" and (.why.uniqueness | contains("had led"))' \
        c sim $algorithm --processes 3 --seed 1 --crash-rate 10/s --recover --amnesia --time-limit 60s --json
    check "... and without it none" json '.verdicts.uniqueness == "held"' \
        c sim $algorithm --processes 3 --seed 1 --crash-rate 10/s --recover --time-limit 60s --json
done
check "who leads another part of the network takes the lead from nobody" json '.verdicts.stability == "held"' \
    c sim bully --processes 3 --start 5ms --at '1ms partition p1 p2 | p3' --json
check "a leader whom some do not know" grep -q 'leader .*p3 (id 3); 2 of 3 live processes have no leader' \
    <(c sim majority-terms --processes 3 --attribute weight=1,1,4 --time-limit 2s --at '0ms partition p3 | p1 p2')
