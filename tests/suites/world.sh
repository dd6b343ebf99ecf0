# The whole server in simulated worlds with faults: conclave-simulate.

simulate=$B/conclave-simulate
last=${SEEDS:-400}
[ -z "${SANITIZED:-}" ] || last=${SEEDS:-40}

hashes() { "$simulate" --seeds "$1" --hash --jobs "$2" | grep '^seed ' | sort; }

# All that happens follows from the seed, whatever else runs.
same_again() {
    hashes 1-20 1 >"$WORK/first" && hashes 1-20 2 >"$WORK/second" && [ -s "$WORK/first" ] &&
        diff "$WORK/first" "$WORK/second"
}

# happens NAME: what is counted only in worlds of that kind happens, unless the kind is off by default.
happens() {
    awk -v kind="$1" '$1 == kind && $0 ~ /by default/ {found = 1} END {exit !found}' "$WORK/kinds" && shift && echo "$@"
}

# A run that tests nothing would pass: each of these happens, and in more than a few worlds.
much_happens() {
    local name count
    "$simulate" --list >"$WORK/kinds" || return 1
    for name in operations unknown events moves expirations elections snapshots installs kills crashes \
        lost_changes torn_changes failed_syncs rolling pauses suspends partitions breaks slow_disks full_disks \
        redials slow_links catch_ups unfinished \
        $(happens members orders joins removals leader_removals changes) \
        $(happens weights weighings groups) \
        $(happens rot rots mended_votes snapshot_rots last_rots) \
        $(happens reads read_errors) \
        $(happens wipes wipes log_losses) \
        $(happens damage damages damaged_logs damaged_headers damaged_images damaged_votes damaged_bits \
            damaged_ranges removed_files survived mendings mended_logs mended_snapshots) \
        $(happens partial partials) \
        $(happens flips flips) \
        $(happens stalls disk_stalls) \
        $(happens drift drifts) \
        $(happens terms transfers) \
        $(happens chunks chunks) \
        $(happens multi multis failed_multis) \
        $(happens guard trespasses) \
        $(happens lasting lasting_events) \
        $(happens ttl ttls containers); do
        count=$(awk -v name=$name '$1 == name {print $2}' "$WORK/coverage")
        [ "${count:-0}" -ge $((last / 50)) ] || { echo "$name: ${count:-not printed}"; return 1; }
    done
}

all_hold() {
    "$simulate" --seeds "1-$last" --jobs "$(nproc)" --coverage >"$WORK/coverage" ||
        { grep -A 2 FAILED "$WORK/coverage" | head -20; return 1; }
}

# No files stay: not at its end, not when nobody reads its output, and not when it is killed.
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

check "$last seeds: histories of clients and trees of servers" all_hold
[ -n "${SANITIZED:-}" ] || check "... with every kind of fault and event" much_happens # in more than a few seeds
check "the same seed is the same run" same_again
check "three servers" "$simulate" --servers 3 --seeds 1-10
check "five servers" "$simulate" --servers 5 --seeds 1-10
check "bad seeds" exits 2 "$simulate" --seeds 5
check "bad kinds" exits 2 "$simulate" --kinds nonsense
check "bad servers" exits 2 "$simulate" --servers 4
check "a trace" sh -c "'$simulate' --seed 1 --trace | grep -q 'elected leader leader='"
check "no files are left" leaves_nothing
