# The consensus core in its laboratory, from outside: what takes longer than a unit test may, and
# that a run can be repeated.

same_run_in_another_process() {
    local a b
    a=$("$B/tests/test_raft_sim" "$1" trace | md5sum)
    b=$("$B/tests/test_raft_sim" "$1" trace | md5sum)
    [ "$a" = "$b" ] || { echo "$a $b"; return 1; }
}
other_seeds_hold() { "$B/tests/test_raft_sim" 1000001 3000; }
every_order_of_two_terms_and_two_entries() {
    local said
    said=$("$B/tests/test_raft_check" 2 2 0 plain) || { echo "$said"; return 1; }
    [[ $said == "5403169 states, 42627276 transitions, up to 2 decided"* ]] || { echo "$said"; return 1; }
}

for seed in 1 2 3; do
    check "seed $seed: the same run in another process" same_run_in_another_process "$seed"
done
for schedule in figure-8 full-disk slow-disk stale-term malformed-append; do
    check "$schedule" "$B/tests/test_raft_sim" "$schedule" trace
done
if [ -z "${SANITIZED:-}" ]; then
    check "random faults, other seeds" other_seeds_hold
    check "every order of events of 3 nodes, 2 terms, 2 entries" every_order_of_two_terms_and_two_entries
fi
