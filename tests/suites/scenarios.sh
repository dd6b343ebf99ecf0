# Every scenario that ships comes out as it says, and one that does not is reported.
stands_alone

wrong_expectation() {
    sed 's/^expect exclusion .*/expect exclusion held/' scenarios/quorum-amnesia.scenario >"$WORK/wrong.scenario"
    exits 1 "$CONCLAVE" sim --scenario "$WORK/wrong.scenario" >"$WORK/out" &&
        grep -q 'wrong.scenario:[0-9]*: exclusion: violated, not held as expected' "$WORK/out"
}
every_property_is_expected_somewhere() {
    local property
    for property in exclusion deadlock starvation bounded_wait; do
        grep -qx "expect $property held" scenarios/*.scenario || { echo "$property held"; return 1; }
    done
    grep -qx 'expect exclusion violated' scenarios/*.scenario &&
        grep -qx 'expect deadlock violated' scenarios/*.scenario
}

for file in scenarios/*.scenario; do
    check "$(basename "$file" .scenario)" "$CONCLAVE" sim --scenario "$file"
done
check "an expectation that is not met is named by file and line, exit 1" wrong_expectation
check "both outcomes are expected" every_property_is_expected_somewhere
check "the algorithm may be named too" "$CONCLAVE" sim quorum --scenario scenarios/quorum-amnesia.scenario
check "another algorithm is refused" says "is a scenario of quorum, not central" 2 \
    "$CONCLAVE" sim central --scenario scenarios/quorum-amnesia.scenario
