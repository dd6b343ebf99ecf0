# What a trace looks like: pinned, and well-formed in each format.  REGENERATE=1 writes the pins anew.
stands_alone
golden() { # SCENARIO FORMAT [cut]
    same "tests/golden/$1${3:+.cut}.$2" "$CONCLAVE" sim --scenario "scenarios/$1.scenario" --trace "$2" ${3:+--cut}
}
well_formed_svg() { "$CONCLAVE" sim "$@" --trace svg 2>/dev/null >"$WORK/x.svg"; xmllint --noout "$WORK/x.svg"; }
well_formed_json() { "$CONCLAVE" sim "$@" --trace json 2>/dev/null | jq -e '.entries | length > 3' >/dev/null; }

for scenario in central lease-slow-holder quorum-amnesia token-ring-repair; do
    check "$scenario as text" golden "$scenario" text
    check "$scenario as mermaid" golden "$scenario" mermaid
done
check "what led to the violation, cut out" golden lease-slow-holder text cut
for file in scenarios/*.scenario; do
    check "$(basename "$file" .scenario): SVG" well_formed_svg --scenario "$file"
    check "$(basename "$file" .scenario): JSON" well_formed_json --scenario "$file"
done
in_svg() { # SCENARIO TEXT: in the picture, beside a line or in a tooltip
    "$CONCLAVE" sim --scenario "scenarios/$1.scenario" --trace svg 2>/dev/null | grep -F "$2" >/dev/null
}
check "Lamport's queue is beside the line" in_svg lamport '>phase=idle queued=[P2:1, P3:1]</text>'
check "Ricart and Agrawala's deferred processes are" in_svg ricart-agrawala 'deferred=[P2]'
check "Maekawa's votes are" in_svg maekawa '>holder=P5 queue=[P3]</text>'
check "the coordinator's queue is" in_svg central '>holder=Part2 queue=[Part3]</text>'
check "a token is" in_svg token-ring '>here=token</text>'
check "a tooltip has the state of a process" in_svg chang-roberts '<title>P24: leader=28 participant=no</title>'
every_peer() { "$CONCLAVE" sim --scenario scenarios/raymond.scenario --trace text 2>/dev/null | grep -c 'toward=' | awk '{exit $1 <= 5}'; }
check "the state of every peer is in the text" every_peer
check "SVG of a long run" well_formed_svg central --entries 2000
check "SVG with every fault" well_formed_svg quorum --crash-rate 2/s --recover --pause-rate 2/s \
    --partition-rate 2/s --loss 0.1 --entries 50
check "cutting out nothing" says "nothing was violated" 2 "$CONCLAVE" sim central --trace text --cut
