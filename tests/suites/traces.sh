# What a trace looks like: pinned, and well-formed in each format.  REGENERATE=1 writes the pins anew.
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
check "SVG of a long run" well_formed_svg central --entries 2000
check "SVG with every fault" well_formed_svg quorum --crash-rate 2/s --recover --pause-rate 2/s \
    --partition-rate 2/s --loss 0.1 --entries 50
check "cutting out nothing" says "nothing was violated" 2 "$CONCLAVE" sim central --trace text --cut
