# The consensus core in its laboratory, from outside: what takes longer than a unit test may, and
# that a run can be repeated.
stands_alone

same_run_in_another_process() {
    local a b
    a=$("$B/tests/test_raft_sim" "$1" trace | md5sum)
    b=$("$B/tests/test_raft_sim" "$1" trace | md5sum)
    [ "$a" = "$b" ] || { echo "$a $b"; return 1; }
}
# The laboratory's general tools; leaders change often, so stability does not count.
holds_in_the_catalogue() {
    "$CONCLAVE" sim raft --processes 3 --runs 300 --time-limit 4s --delay uniform:1ms,60ms --reorder --crash-rate 1/s \
        --recover --recover-after 300ms --heartbeat-interval 10ms --proposals 1000 "$@" >"$WORK/runs" 2>&1
    [ "$(grep -cE '^  (uniqueness|log_matching|leader_completeness|state_machine_safety) +held in 300$' "$WORK/runs")" = 4 ] ||
        { cat "$WORK/runs"; return 1; }
}
other_seeds_hold() { "$B/tests/test_raft_sim" 1000001 "$(long && echo 30000 || echo 1500)"; }
# every_order "END STATES" OPTION...: no order of elections violates anything, and there are so many states: another number
# means another core, or other bounds.
every_order() {
    local states=$1 said
    shift
    said=$("$CONCLAVE" check raft --at-once --timeouts 0 --proposals 0 --reduce order --property uniqueness --property log_matching \
        --property leader_completeness --property state_machine_safety --json "$@") || { echo "$said"; return 1; }
    [ "$(jq -r '"\(.end) \(.states)"' <<<"$said")" = "$states" ] || { echo "$said"; return 1; }
}

for seed in 1 2 3; do
    check "seed $seed: the same run in another process" same_run_in_another_process "$seed"
done
check "a change of members in an old term" "$B/tests/test_raft_sim" change-in-an-old-term trace
check "the catalogue's raft among faults" holds_in_the_catalogue
check "the same with disks that take their time" holds_in_the_catalogue --disk-time 15ms
if [ -z "${SANITIZED:-}" ]; then
    check "random faults, other seeds" other_seeds_hold
    # Servers are connected by FIFO channels; Figure 8 begins with the logs 1, 2 and none.
    check "every order of three elections" every_order "complete 606590" --fifo --initiators 3
    check "every order of three elections, from two conflicting logs" every_order "complete 575062" --fifo --initiators 3 --logs 120
    check "every order of two, if any message may overtake any other" every_order "complete 1941574" --initiators 2 --logs 120
    check "every order of the first 12 steps of two elections and a crash" every_order "depth 794813" --initiators 2 --crashes 1 --depth 12
fi
