# The whole server in simulated worlds with faults: conclave-simulate.

simulate=$B/conclave-simulate
last=${SEEDS:-2000}
[ -z "${SANITIZED:-}" ] || last=${SEEDS:-40}

hashes() { "$simulate" --seeds "$1" --hash --jobs "$2" | grep '^seed ' | sort; }

# All that happens follows from the seed, whoever else runs.
same_again() {
    hashes 1-20 1 >"$WORK/first" && hashes 1-20 2 >"$WORK/second" && [ -s "$WORK/first" ] &&
        diff "$WORK/first" "$WORK/second"
}

# A run that tests nothing would pass: each of these happens, and often.
much_happens() {
    local name count
    for name in operations unknown events moves expirations elections snapshots installs kills crashes \
        lost_changes torn_changes rolling pauses partitions breaks slow_disks full_disks; do
        count=$(awk -v name=$name '$1 == name {print $2}' "$WORK/coverage")
        [ "${count:-0}" -ge $((last / 40)) ] || { echo "$name: ${count:-not said}"; return 1; }
    done
}

all_hold() {
    "$simulate" --seeds "1-$last" --jobs "$(nproc)" --coverage >"$WORK/coverage" ||
        { grep -A 2 FAILED "$WORK/coverage" | head -20; return 1; }
}

# Neither when it ends, nor when nobody reads what it says, nor when it is told to end.
leaves_nothing() {
    local worlds process
    worlds=$(mktemp -d) || return 1
    "$simulate" --directory "$worlds" --seeds 1-2 || return 1
    "$simulate" --directory "$worlds" --seed 1 --trace | head -1
    "$simulate" --directory "$worlds" --seeds 1-1000 >/dev/null &
    process=$!
    sleep 0.5
    kill "$process"
    wait "$process"
    rmdir "$worlds"
}

check "$last seeds: what clients saw, and what servers have" all_hold
check "... and much has happened" much_happens
check "the same seed is the same run" same_again
check "three servers" "$simulate" --servers 3 --seeds 1-10
check "five servers" "$simulate" --servers 5 --seeds 1-10
check "bad seeds" exits 2 "$simulate" --seeds 5
check "bad servers" exits 2 "$simulate" --servers 4
check "a trace" sh -c "'$simulate' --seed 1 --trace | grep -q 'leading leader='"
check "no files are left" leaves_nothing
