# The simulator from outside: determinism, formulas, faults, and the JSON that others rely on.

same_run_twice() {
    local a b other
    a=$("$CONCLAVE" sim "$@" --json | jq -r .trace_hash)
    b=$("$CONCLAVE" sim "$@" --json | jq -r .trace_hash)
    other=$("$CONCLAVE" sim "$@" --seed 2 --json | jq -r .trace_hash)
    [ -n "$a" ] && [ "$a" = "$b" ] && [ "$a" != "$other" ] || { echo "$a $b $other"; return 1; }
}
tracing_changes_nothing() {
    local a b
    a=$("$CONCLAVE" sim "$1" --json | jq -r .trace_hash)
    b=$("$CONCLAVE" sim "$1" --json --trace text --output "$WORK/trace" --force | jq -r .trace_hash)
    [ "$a" = "$b" ]
}
# The same run in a batch, after others in the same memory, has the same hash.
batch_is_the_same() {
    local one batch
    one=$("$CONCLAVE" sim "$1" --seed 5 --json | jq -r .trace_hash)
    batch=$("$CONCLAVE" sim "$1" --runs 6 --jobs 1 --json | jq -r '.results[4] | last')
    [ "$one" = "$batch" ] || { echo "$one $batch"; return 1; }
}
faults="--delay lognormal:2ms,0.8 --loss 0.01 --duplicate 0.01 --crash-rate 0.2/s --recover --amnesia
    --pause-rate 0.2/s --partition-rate 0.2/s --drift 0.1 --time-limit 20s"

for algorithm in $("$CONCLAVE" list --json | jq -r '.[] | select(.problem == "lock") | .algorithm'); do
    check "$algorithm: same seed, same run" same_run_twice "$algorithm"
    # shellcheck disable=SC2086
    check "$algorithm: same seed, same run, with every fault" same_run_twice "$algorithm" $faults
    check "$algorithm: looking changes nothing" tracing_changes_nothing "$algorithm"
    check "$algorithm: a batch runs the same runs" batch_is_the_same "$algorithm"
done

check "the documented keys" json '
    has("algorithm") and has("processes") and has("seed") and has("events") and has("messages") and
    has("entries") and has("messages_per_entry") and has("delay_hops_mean") and has("trace_hash") and
    (.verdicts | .exclusion == "held" and .deadlock == "held" and .starvation == "held" and
        .bounded_wait == "held" and has("at") and has("why"))' \
    "$CONCLAVE" sim central --processes 5 --entries 100 --seed 7 --json
check "central: 3 messages, 2 message times" json '
    .entries == 100 and .messages_per_entry == 3 and .delay_hops_mean == 2 and .processes == 5' \
    "$CONCLAVE" sim central --processes 5 --entries 100 --json
check "central that answers RELEASE: 4" json '.messages_per_entry == 4' \
    "$CONCLAVE" sim central --reply --json
check "quorum alone: 3n messages" json '.messages_per_entry == 21 and .delay_hops_mean == 2' \
    "$CONCLAVE" sim quorum --processes 1 --n 7 --json
check "voting alone: 3n messages" json '.messages_per_entry == 21' \
    "$CONCLAVE" sim voting --processes 1 --n 7 --json
check "token ring, everyone wants in: 1 message" json '.messages_per_entry < 1.01' \
    "$CONCLAVE" sim token-ring --processes 10 --think 0 --entries 2000 --json
check "token ring of one" json '.entries == 100 and .messages == 0' \
    "$CONCLAVE" sim token-ring --processes 1 --json
check "a million processes" json '.entries == 1000 and .verdicts.exclusion == "held"' \
    "$CONCLAVE" sim token-ring --processes 1000000 --entries 1000 --json

violated() { exits 1 "$CONCLAVE" "$@" --json >"$WORK/json" && jq -e ".verdicts.$property == \"violated\"
    and .verdicts.at.$property >= 0 and (.verdicts.why.$property | length > 10)" "$WORK/json"; }
property=exclusion
check "a lease breaks under pauses" violated sim central-lease --pause-rate 2/s --entries 1000
check "a quorum breaks under amnesia" violated sim quorum --crash-rate 1/s --recover --amnesia \
    --hold 20ms --entries 1000
property=bounded_wait
check "a bound that is too low is broken" violated sim central --wait-bound 1
property=starvation
check "voting starves" violated sim voting --processes 8 --think 0 --starved-after 100 --entries 2000
property=deadlock
check "a crash blocks central" violated sim central --crash-rate 1/s --entries 1000

# What must hold, in many runs.
check "durable quorums survive crashes" "$CONCLAVE" sim quorum --crash-rate 1/s --recover --runs 2000
check "durable votes survive crashes" exits 0 "$CONCLAVE" sim voting --crash-rate 1/s --recover \
    --runs 1000 --starved-after 100000
check "a vote that was lost in a crash is given again" exits 0 "$CONCLAVE" sim maekawa --processes 5 --think 0 \
    --crash-rate 2/s --recover --recover-after exponential:5ms --delay exponential:2ms --runs 1000
check "the ring repairs itself after crashes" "$CONCLAVE" sim token-ring --repair --detector 20ms \
    --crash-rate 2/s --recover --recover-after 10ms --delay uniform:0.2ms,6ms --runs 3000
check "fencing contains a wrong suspicion" "$CONCLAVE" sim token-ring --repair --detector 20ms \
    --pause-rate 1/s --fencing --runs 1000
check "fencing contains leaders elected at once" "$CONCLAVE" sim central-elected --fencing --detector fixed:10ms \
    --heartbeat 2ms --delay exponential:1ms --pause-rate 20/s --pause-for 50ms --runs 2000
check "fencing contains leaders on both sides of a partition" "$CONCLAVE" sim central-elected --fencing \
    --detector fixed:10ms --heartbeat 2ms --delay exponential:1ms --partition-rate 2/s --crash-rate 2/s --recover --runs 2000
check "fencing contains a lease that ended" "$CONCLAVE" sim central-lease --pause-rate 1/s --fencing \
    --runs 1000
check "duplicates and disorder do not fool central" "$CONCLAVE" sim central --duplicate 0.3 --reorder \
    --delay uniform:0.5ms,5ms --runs 1000
check "nor quorum" "$CONCLAVE" sim quorum --duplicate 0.3 --reorder --delay uniform:0.5ms,5ms --runs 1000
check "Poisson arrivals are all served" json '.entries == 500 and .verdicts.starvation == "held"' \
    "$CONCLAVE" sim central --arrivals 20/s --processes 8 --entries 500 --json

whole_equals_shares() {
    "$CONCLAVE" sim quorum --runs 40 --loss 0.02 --json >"$WORK/whole.json"
    for i in 1 2 3; do
        "$CONCLAVE" sim quorum --runs 40 --loss 0.02 --share $i/3 --jobs $i --json >"$WORK/$i.json"
    done
    "$CONCLAVE" merge "$WORK/3.json" "$WORK/1.json" "$WORK/2.json" --json >"$WORK/merged.json"
    cmp "$WORK/whole.json" "$WORK/merged.json"
}
damaged_share() {
    sed 's/"held"/"hel"/' "$WORK/1.json" >"$WORK/damaged.json"
    says "damaged.json: row" 2 "$CONCLAVE" merge "$WORK/damaged.json"
}
check "shares merge into the whole, byte for byte" whole_equals_shares
check "the same share twice is refused" says "is in the results twice" 2 "$CONCLAVE" merge "$WORK/1.json" "$WORK/1.json"
check "a damaged share is refused" damaged_share
half_a_result() { jq 'del(.algorithm)' "$WORK/1.json" >"$WORK/half.json" && says "not a result" 2 "$CONCLAVE" merge "$WORK/half.json"; }
check "half a result is refused" half_a_result
check "a file that is no result is refused" says "Makefile:1:" 2 "$CONCLAVE" merge Makefile
first_failing_seed_replays() {
    local command
    "$CONCLAVE" sim central-lease --pause-rate 1/s --runs 50 >"$WORK/out"
    [ $? -eq 1 ] || return 1
    command=$(sed -n 's/^Replay: conclave //p' "$WORK/out")
    # shellcheck disable=SC2086
    exits 1 "$CONCLAVE" $command >"$WORK/replayed" && grep -q 'What led here' "$WORK/replayed"
}
check "the first failing seed is ready to be replayed" first_failing_seed_replays

# Faults and schedules, in the corners where they meet.
line_of() { grep -n -m1 "$1" "$WORK/trace" | cut -d: -f1; }
traced() { "$CONCLAVE" sim "$@" --trace text --output "$WORK/trace" --force >"$WORK/out"; }
crash_is_progress() {
    exits 0 "$CONCLAVE" sim central-lease --processes 2 --lease 110s --patience 60s \
        --at '0ms p1 acquire hold 150s' --at '1s p2 acquire' --at '100s p1 crash'
}
order_after_a_pause() {
    traced central --processes 1 --at '0ms p1 acquire hold 50ms' --at '0.5ms coordinator pause 3.5ms' \
        --at '1ms p1 crash' --at '1.5ms p1 recover' --at '3ms p1 acquire hold 1ms'
    [ "$(line_of 'coordinator <- p1  REQUEST number=1')" -lt "$(line_of 'coordinator <- p1  REQUEST number=2')" ]
}
paused_applications_wait() {
    traced central --processes 1 --at '1ms p1 pause 10ms' --at '2ms p1 acquire'
    grep -q '11.000 ms  p1 wants the lock' "$WORK/trace"
}
an_old_comeback_is_forgotten() {
    traced central --processes 1 --at '1ms p1 pause 10ms' --at '2ms p1 resume' --at '3ms p1 pause 50ms' \
        --at '4ms p1 acquire'
    grep -q '53.000 ms  p1 runs on' "$WORK/trace" && ! grep -q ' 11.000 ms  p1 runs on' "$WORK/trace"
}
holds_are_kept() {
    traced central --processes 1 --at '0ms p1 acquire hold 5ms' --at '1ms p1 acquire hold 20ms'
    grep -q ' 9.000 ms    p1 ENTERS' "$WORK/trace" && grep -q '29.000 ms    p1 LEAVES' "$WORK/trace"
}
check "a crash of the holder is progress" crash_is_progress
check "a pause keeps the order of messages" order_after_a_pause
check "a paused application asks when it runs on" paused_applications_wait
check "a pause that was ended does not end the next" an_old_comeback_is_forgotten
check "a queued request keeps its hold" holds_are_kept
check "requests of the dead are made by the living" json '.entries == 2' "$CONCLAVE" sim central --processes 2 \
    --entries 2 --think 0 --at '0ms lose p2 coordinator 1' --at '20ms p2 crash' --json
check "delays of centuries" json '.entries == 40' "$CONCLAVE" sim central --entries 40 --delay 1000000000s --json
check "delays without bound" exits 0 "$CONCLAVE" sim central --delay lognormal:1d,10 --entries 40
check "arrivals that hardly come" exits 0 "$CONCLAVE" sim central --arrivals 1e-20/s --entries 2

# The measured table of the locks.
check "every lock, measured beside its formula" json '
    (map(.algorithm) | unique | length) == 16 and
    all(.[] | select(.algorithm == "central" or .algorithm == "lamport" or .algorithm == "ricart-agrawala");
        .messages_per_entry == .messages_formula_value) and
    all(.[] | select(.algorithm == "quorum" and .load == "light");
        .messages_per_entry == .messages_formula_value and .delay_hops_mean == 2)' \
    "$CONCLAVE" compare --processes 3,5 --json

loaded() { # the coordinator gets two of three messages
    json '.load.busiest == "coordinator" and .load.processes.coordinator.messages == 1000 and .load.busy > .load.busy_others_mean' \
        "$CONCLAVE" sim central --processes 8 --entries 500 --service-time 1ms --json
}
check "messages that cost time: the load" loaded
prints() { local text=$1; shift; "$@" | grep -e "$text" >/dev/null; } # PATTERN COMMAND...: on standard output
check "in the report" prints 'coordinator .*% busy with 1000 messages' "$CONCLAVE" sim central --processes 8 --entries 500 --service-time 1ms
check "and no load where they cost none" json '.load == null' "$CONCLAVE" sim central --json
saturates() {
    prints '^central: .* entries/s; coordinator is .*% busy' "$CONCLAVE" compare --load central tree-lock --processes 4,64,128,256 --plot "$WORK/load.svg" &&
        xmllint --noout "$WORK/load.svg"
}
check "where locks saturate" saturates
# Little's law: who competes either thinks, for 100 ms on average, or waits.
littles_law() {
    json 'all(.[]; .entries_per_second * (100 + .wait_ms_mean) / 1000 / .processes | . > 0.95 and . < 1.05)' \
        "$CONCLAVE" compare --load central suzuki-kasami token-ring --processes 8,32,128 --json
}
check "as many wait and think as there are" littles_law
check "as JSON" json 'length == 4 and all(.[]; .entries_per_second > 0)' "$CONCLAVE" compare --load central raymond --processes 2,8 --json
check "the load of elections" says "load: it is of locks" 2 "$CONCLAVE" compare --load --elections
check "a service time without load" says "service-time: goes with --load" 2 "$CONCLAVE" compare --service-time 1ms
check "a lock that is none says so" prints 'these are no figures of a lock: two were inside at once' "$CONCLAVE" compare --load central-elected --processes 16,64
check "more processes than an algorithm takes" says "central-elected does not run with 1001" 2 "$CONCLAVE" compare central-elected --processes 1001
check "no time to serve" says "is not a time above 0" 2 "$CONCLAVE" compare --load --service-time 0
check "a plot of messages" says "plot: goes with --elections or --load" 2 "$CONCLAVE" compare --plot "$WORK/none.svg"

# ---- Faults that end, and those that led to a violation ----

locks() { "$CONCLAVE" list --json | jq -r '.[] | select(.problem == "lock") | .algorithm'; }
verdicts_of() { "$CONCLAVE" sim "$@" --json | jq -c ".verdicts | del(.at, .why)"; } # whatever the exit status
# Who is only away for long comes back: however long that is, nobody waits for ever because of it.
away_for_long() {
    local name first
    for name in $(locks); do
        first=$(verdicts_of "$name" --processes 3 --entries 12 --at '7ms p2 pause 100s')
        [ -n "$first" ] && [ "$first" = "$(verdicts_of "$name" --processes 3 --entries 12 --at '7ms p2 pause 100s' --patience 1000s)" ] ||
            { echo "$name: $first"; return 1; }
    done
}
# caused WORD FAULT: whatever is violated because of the fault is shown with it.
caused() {
    local name seed count=0
    for name in $(locks); do
        for seed in 1 2 3 4; do
            "$CONCLAVE" sim "$name" --processes 3 --entries 6 --event-limit 20000 --seed "$seed" >/dev/null || continue
            "$CONCLAVE" sim "$name" --processes 3 --entries 6 --event-limit 20000 --seed "$seed" --at "$2" >"$WORK/caused" && continue
            count=$((count + 1))
            sed -n '/^What led here/,$p' "$WORK/caused" | grep "$1" >/dev/null || { echo "$name --seed $seed --at '$2'"; return 1; }
            [ "$(wc -l <"$WORK/caused")" -lt 500 ] || { echo "$name --seed $seed: too long"; return 1; }
        done
    done
    [ "$count" -gt 10 ] || { echo "violated $count times"; return 1; }
}
check "a long pause is no deadlock" away_for_long
check "nor is a long partition" json '.verdicts.deadlock == "held" and .entries == 12' "$CONCLAVE" sim quorum --processes 3 --entries 12 --at '20ms partition p1 p2 p3 | c1 c2 c3' --at '120s heal' --json
check "a crash that led to a violation is shown" caused 'CRASHES' '4ms p2 crash'
check "... a split, however long before" caused 'the network SPLITS' '0.5ms partition p1 | p2 p3'
check "... a pause that does not end" caused 'PAUSES' '4ms p2 pause'
its_own_wait() {
    "$CONCLAVE" sim tree-lock-naive --processes 3 --seed 198 --entries 40 --wait-bound 1 >"$WORK/wait"
    [ "$(sed -n '/^What led here/{n;p}' "$WORK/wait" | awk '{print ($1 < 15.408)}')" = 1 ]
}
check "the wait that is reported is the one that is shown" its_own_wait
lost_grant() {
    "$CONCLAVE" sim central --processes 3 --entries 40 --think 1ms --wait-bound 1 --at '40ms lose coordinator p1 1' >"$WORK/lost"
    sed -n '/^What led here/,$p' "$WORK/lost" | grep 'GRANT .* is LOST' >/dev/null
}
check "a deadlock is explained also where somebody was overtaken before" lost_grant
