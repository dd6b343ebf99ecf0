# Bad input: one clear line, exit 2, nothing silently clamped.
file() { printf '%b' "$2" >"$WORK/$1.scenario"; echo "$WORK/$1.scenario"; }
scenario() { # NAME, what it must say, contents
    local path
    path=$(file "$1" "$3")
    says "$2" 2 "$CONCLAVE" sim --scenario "$path"
}
c() { "$CONCLAVE" "$@"; }

check "unknown command" says "did you mean sim?" 2 c sin
check "unknown algorithm: the nearest" says "did you mean central" 2 c sim centrl
check "unknown algorithm: nothing near" says "conclave list" 2 c sim zzzzzzzz
check "no algorithm" says "which algorithm" 2 c sim
check "options without an algorithm" says "which algorithm" 2 c sim --processes 3
check "options first" exits 0 c sim --processes 3 central
check "two algorithms" says "one algorithm at a time" 2 c sim central quorum
check "two to explain" says "one algorithm at a time" 2 c explain central quorum
check "no processes" says "processes: 0 is below the least, 1" 2 c sim central --processes 0
check "too many processes" says "above the most" 2 c sim central --processes 99999999
check "negative" says "is not a whole number" 2 c sim central --processes -3
check "not a number" says "'ten' is not a whole number" 2 c sim central --entries ten
check "loss above 1" says "is not a number from 0 to 1" 2 c sim central --loss 1.5
check "loss below 0" says "is not a number from 0 to 1" 2 c sim central --loss=-0.1
check "loss not a number" says "is not a number from 0 to 1" 2 c sim central --loss nan
check "a delay without a unit" says "delay: '5' is not" 2 c sim central --delay 5
check "a delay that runs backwards" says "delay:" 2 c sim central --delay uniform:5ms,1ms
check "a rate without a unit" says "crash-rate:" 2 c sim central --crash-rate 3
check "m = n/2" says "m must be more than n/2" 2 c sim quorum --n 4 --m 2
check "m > n" says "m cannot be more than n" 2 c sim quorum --n 3 --m 4
check "m = 0" says "below the least" 2 c sim voting --m 0
check "fencing without tokens" says "fencing:" 2 c sim quorum --fencing
check "a detector nobody hears" says "detector:" 2 c sim central --detector 5ms
check "amnesia of the dead" says "amnesia:" 2 c sim quorum --crash-rate 1/s --amnesia
check "a trace of many runs" says "trace:" 2 c sim central --runs 3 --trace svg
check "an unknown format" says "is not text, mermaid, json or svg" 2 c sim central --trace pdf
check "a share of nothing" says "share:" 2 c sim central --share 1/2
check "share 3/2" says "share:" 2 c sim central --runs 3 --share 3/2
check "an event of nobody" says "there is no process 'p9'" 2 c sim central --at '5ms p9 crash'
check "an event in the past" says "in the past" 2 c sim central --at '5ms p1 crash' --at '4ms p2 crash'
check "a server that competes" says "does not compete" 2 c sim central --at '5ms coordinator acquire'
check "a place that cannot be written" says "/nonexistent/x: " 3 c sim central --trace svg --output /nonexistent/x

check "a full disk" says "could not be written" 3 bash -c '"$CONCLAVE" list >/dev/full'
check "more processes than were named" says "names and events were given for 4, of which 1 serve" 2 \
    c sim --scenario scenarios/central.scenario --processes 9
check "fewer" says "not for 2 and 1" 2 c sim --scenario scenarios/central.scenario --processes 1
check "a network of another size" says "edges: has 3 processes, not 7" 2 c sim yo-yo --processes 7 --edges 1-2,2-3
check "a network, then another size" says "names and events were given for 3" 2 c sim yo-yo --edges 1-2,2-3 --processes 7
check "too many runs" says "runs: at most" 2 c sim central --runs 18446744073709551615
check "seeds that run out" says "seeds below" 2 c sim central --seed 9223372036854775807 --runs 3
check "too many jobs" says "jobs: at most" 2 c sim central --runs 3 --jobs 100000
check "rates without end" exits 0 timeout 20 "$CONCLAVE" sim central --partition-rate 1e15/s --time-limit 10ms --entries 3
check "a lock does not campaign" says "campaign: is for elections" 2 c sim central --at '1ms p1 campaign'
check "an election does not acquire" says "acquire: is for locks" 2 c sim bully --at '1ms p1 acquire'
check "twice in a partition" says "is there twice" 2 c sim central --at '1ms partition p1 | p1'
check "a timer that is not there" says "'3' is not a timer of quorum: 0 to 0" 2 c sim quorum --at '1ms p1 timeout 3'
check "no timer at all" says "lamport has no timer" 2 c sim lamport --at '1ms p1 timeout'
check "a choice that is none" says "chooses: 'heads' is not a choice" 2 c sim itai-rodeh --at '1ms p1 chooses heads'
check "an answer without a choice" says "chooses: wrong number of words" 2 c sim itai-rodeh --at '1ms p1 chooses'
check "a delay for twice" says "only 'once' may follow" 2 c sim central --at '1ms delay p1 p2 3ms twice'
check "once too often" says "delay: wants FROM TO TIME or 'usual', and maybe 'once'" 2 c sim central --at '1ms delay p1 p2 3ms once once'
check "a loss once" says "lose: wants FROM TO HOW-MANY" 2 c sim central --at '1ms lose p1 p2 1 once'
check "a script without heartbeats" says "scripted: heartbeats need" 2 c sim bully --scripted --detector phi:8
check "words behind heal" says "nothing may follow" 2 c sim central --at '1ms heal now'
check "many runs of a scenario" says "what must come out of one run" 2 c sim --scenario scenarios/central.scenario --runs 3
check "two documents on one output" says "standard output" 2 c sim central --json --trace json --output -
check "too many initiators" says "initiators:" 2 c sim bully --processes 3 --initiators 4
[ -n "${SANITIZED:-}" ] || check "few addresses" bash -c 'ulimit -v 4000000; "$CONCLAVE" sim central >/dev/null'

from_a_pipe() { cat scenarios/quorum-amnesia.scenario | "$CONCLAVE" sim --scenario /dev/stdin | grep -q 'all 3 expectations'; }
check "scenario: from a pipe" from_a_pipe
many() { printf 'algorithm central\nservers Boss\nprocesses 200000\nentries 1\n' >"$WORK/many.scenario"; timeout 20 "$CONCLAVE" sim --scenario "$WORK/many.scenario"; }
check "scenario: many processes, one name" many
check "scenario: no such file" says "No such file" 2 c sim --scenario "$WORK/none"
check "scenario: unknown word" scenario word ".scenario:2: unknown word 'prcesses'" 'algorithm central\nprcesses 3\n'
check "scenario: unknown algorithm" scenario algorithm ".scenario:1: unknown algorithm 'centrl'; did you mean central" 'algorithm centrl\n'
check "scenario: no algorithm" scenario none "names no algorithm" '# empty\n'
check "scenario: unknown process" scenario process ".scenario:2: there is no process 'p7'" 'algorithm central\nat 1ms p7 crash\n'
check "scenario: event in the past" scenario past ".scenario:3: 1ms is in the past" 'algorithm central\nat 2ms p1 crash\nat 1ms p2 crash\n'
check "scenario: unknown event" scenario event ".scenario:2: unknown 'explode'" 'algorithm central\nat 2ms p1 explode\n'
check "scenario: no time" scenario time ".scenario:2: 'soon' is not a time" 'algorithm central\nat soon p1 crash\n'
check "scenario: m too small" scenario m "m must be more than n/2" 'algorithm quorum\nn 4\nm 2\n'
check "scenario: same name twice" scenario twice "is there twice" 'algorithm central\nprocesses A B A\n'
check "scenario: too few names" scenario few "names: 1, but processes of that kind: 3" 'algorithm quorum\nservers A\n'
check "scenario: cannot expect" scenario expect ".scenario:2: cannot expect 'luck'" 'algorithm central\nexpect luck held\n'
check "scenario: long line" scenario long "too long" "algorithm central\n# $(printf 'x%.0s' {1..70000})\n"
check "scenario: binary" exits 2 c sim --scenario "$CONCLAVE"
check "scenario: a folder" exits 2 c sim --scenario /
