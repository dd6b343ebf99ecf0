# Bad input: one clear line, exit 2, nothing silently clamped.
with_processes
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
check "unknown setting: the nearest" says "ticTime: is not known here and has no effect; did you mean tickTime" 2 c serve --set ticTime=1
check "unknown setting: nothing near" says "foo: is not known here" 2 c serve --set foo=1
check "no such backup" says "conclave: /nonexistent: cannot be read" 3 c restore /nonexistent --data "$WORK/new"
id_alone() { # it serves, and has said one thing
    local pid
    "$CONCLAVE" serve --id 3 --listen 127.0.0.1:0 --http off --data "$WORK/alone" --log-level warning >"$WORK/alone.out" 2>"$WORK/alone.err" &
    pid=$!
    serves_or_ended() { [ -s "$WORK/alone.out" ] || ! kill -0 "$pid" 2>/dev/null; }
    await serves_or_ended
    # On a busy machine it may also warn that it was busy for long.
    kill "$pid" && wait "$pid" && [ "$(grep -vc "was busy for long" "$WORK/alone.err")" -eq 1 ] &&
        grep -q "an id but no ensemble" "$WORK/alone.err" || { cat "$WORK/alone.err"; return 1; }
}
check "an id without an ensemble" id_alone
check "no algorithm" says "which algorithm" 2 c sim
check "options without an algorithm" says "which algorithm" 2 c sim --processes 3
check "options first" exits 0 c sim --processes 3 central
check "two algorithms" says "one algorithm at a time" 2 c sim central quorum
check "two to explain" says "one algorithm at a time" 2 c explain central quorum
check "no processes" says "processes: 0 is below the minimum, 1" 2 c sim central --processes 0
check "too many processes" says "above the maximum" 2 c sim central --processes 99999999
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
check "m = 0" says "below the minimum" 2 c sim voting --m 0
check "fencing without tokens" says "fencing:" 2 c sim quorum --fencing
check "a detector nobody hears" says "detector:" 2 c sim central --detector 5ms
check "amnesia of the dead" says "amnesia:" 2 c sim quorum --crash-rate 1/s --amnesia
check "a trace of many runs" says "trace:" 2 c sim central --runs 3 --trace svg
check "an unknown format" says "is not text, mermaid, json, svg or graph" 2 c sim central --trace pdf
check "a share of nothing" says "share:" 2 c sim central --share 1/2
check "share 3/2" says "share:" 2 c sim central --runs 3 --share 3/2
check "an event of nobody" says "there is no process 'p9'" 2 c sim central --at '5ms p9 crash'
check "an event in the past" says "in the past" 2 c sim central --at '5ms p1 crash' --at '4ms p2 crash'
check "a server that competes" says "does not compete" 2 c sim central --at '5ms coordinator acquire'
# Every option of the laboratory that names a file to write: what is there stays there, unless --force is given.
keeps() { # FILE-OPTION... COMMAND...: the option comes first
    local option=$1 file=$WORK/precious
    shift
    echo mine >"$file"
    says "$file exists; --force overwrites it" 2 c "$@" "$option" "$file" || return 1
    [ "$(cat "$file")" = mine ] || { echo "$option has overwritten it"; return 1; }
    c "$@" "$option" "$file" --force >/dev/null 2>&1
    [ -s "$file" ] && [ "$(cat "$file")" != mine ] || { echo "$option --force has not"; return 1; }
}
while read -r option command; do
    check "a file that is there: $option of $command" keeps "$option" $command
done <<'END'
--output sim central --entries 2 --trace text
--gaps sim bully --detector phi:8
--save-scenario sim central --entries 2
--output check lamport --trace text
--save-scenario check lamport
--plot timeout --wait-cost 1 --mistake-cost 10 --delay exponential:20ms
END
known_files() { # the options above are all that there are, but for one that takes long
    for command in sim check compare timeout odds merge history; do
        c $command --help | grep -oE -- '--[a-z-]+=FILE' | sed "s/^/$command /"
    done | grep -vE ' --(scenario|graph|delays)=' | sort | tr '\n' ' '
}
all_files_are_known() {
    [ "$(known_files)" = "check --output=FILE check --save-scenario=FILE compare --plot=FILE sim --gaps=FILE sim \
--output=FILE sim --save-scenario=FILE timeout --plot=FILE " ] || { known_files; return 1; }
}
check "no option that writes a file is left out" all_files_are_known
check "a plot that is there" says "exists; --force" 2 c compare --elections --plot "$WORK/precious"
check "one file for two results" says "--output writes to $WORK/both as well" 2 c sim central --entries 2 --trace text \
    --output "$WORK/both" --save-scenario "$WORK/both"
check "... of the checker" says "--output writes to $WORK/both as well" 2 c check lamport --trace text \
    --output "$WORK/both" --save-scenario "$WORK/both"
check "a place that is no file" exits 0 c sim central --entries 2 --trace text --output /dev/null
check "a scenario that check does not read" says "--save-scenario FILE keeps the counterexample" 2 \
    c check lamport --scenario "$WORK/precious"
saved_runs_alike() {
    local a b
    a=$(c sim quorum --seed 7 --entries 9 --loss 0.1 --at '5ms p1 crash' --save-scenario "$WORK/saved" --force --json | jq .trace_hash)
    b=$(c sim --scenario "$WORK/saved" --json | jq .trace_hash)
    [ -n "$a" ] && [ "$a" = "$b" ] || { echo "$a, but $b when it is read again"; cat "$WORK/saved"; return 1; }
}
check "a run that is written down is the same again" saved_runs_alike
check "a place that cannot be written" says "/nonexistent/x: " 3 c sim central --trace svg --output /nonexistent/x

check "a full disk" says "could not be written" 3 bash -c '"$CONCLAVE" list >/dev/full'
check "more processes than were named" says "names and actions were given for 4 with 1 servers" 2 \
    c sim --scenario scenarios/central.scenario --processes 9
check "fewer" says "not for 2 with 1" 2 c sim --scenario scenarios/central.scenario --processes 1
check "a network of another size" says "edges: has 3 processes, not 7" 2 c sim yo-yo --processes 7 --edges 1-2,2-3
check "a network, then another size" says "names and actions were given for 3" 2 c sim yo-yo --edges 1-2,2-3 --processes 7
check "too many runs" says "runs: at most" 2 c sim central --runs 18446744073709551615
check "seeds that run out" says "seeds below" 2 c sim central --seed 9223372036854775807 --runs 3
check "too many jobs" says "jobs: at most" 2 c sim central --runs 3 --jobs 100000
check "rates without end" exits 0 bounded "$CONCLAVE" sim central --partition-rate 1e15/s --time-limit 10ms --entries 3
check "a lock does not campaign" says "campaign: is for elections" 2 c sim central --at '1ms p1 campaign'
check "an election does not acquire" says "acquire: is for locks" 2 c sim bully --at '1ms p1 acquire'
check "twice in a partition" says "is there twice" 2 c sim central --at '1ms partition p1 | p1'
check "a timer that is not there" says "'3' is not a timer of quorum: 0 to 0" 2 c sim quorum --at '1ms p1 timeout 3'
check "no timer at all" says "lamport has no timer" 2 c sim lamport --at '1ms p1 timeout'
check "a choice that is none" says "chooses: 'heads' is not a choice" 2 c sim itai-rodeh --at '1ms p1 chooses heads'
check "an answer without a choice" says "chooses: wrong number of words" 2 c sim itai-rodeh --at '1ms p1 chooses'
check "a delay for twice" says "only 'once' may follow" 2 c sim central --at '1ms delay p1 p2 3ms twice'
check "once too often" says "delay: expected FROM TO TIME or 'usual', and perhaps 'once'" 2 c sim central --at '1ms delay p1 p2 3ms once once'
check "a loss once" says "lose: expected FROM TO HOW-MANY" 2 c sim central --at '1ms lose p1 p2 1 once'
check "a script without heartbeats" says "scripted: heartbeats need" 2 c sim bully --scripted --detector phi:8
check "words behind heal" says "nothing may follow" 2 c sim central --at '1ms heal now'
check "many runs of a scenario" says "are for one run" 2 c sim --scenario scenarios/central.scenario --runs 3
check "two documents on one output" says "standard output" 2 c sim central --json --trace json --output -
check "too many initiators" says "initiators:" 2 c sim bully --processes 3 --initiators 4
[ -n "${SANITIZED:-}" ] || check "few addresses" bash -c 'ulimit -v 1000000; "$CONCLAVE" sim central >/dev/null &&
    "$CONCLAVE" check maekawa --entries 2 --jobs 2 >/dev/null'

from_a_pipe() { cat scenarios/quorum-amnesia.scenario | "$CONCLAVE" sim --scenario /dev/stdin | grep -q 'all 3 expectations'; }
check "scenario: from a pipe" from_a_pipe
many() { printf 'algorithm central\nservers Boss\nprocesses 200000\nentries 1\n' >"$WORK/many.scenario"; bounded "$CONCLAVE" sim --scenario "$WORK/many.scenario"; }
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
check "scenario: same name twice" scenario twice "is given twice" 'algorithm central\nprocesses A B A\n'
check "scenario: too few names" scenario few "names: 1, but processes of that kind: 3" 'algorithm quorum\nservers A\n'
check "scenario: cannot expect" scenario expect ".scenario:2: cannot expect 'luck'" 'algorithm central\nexpect luck held\n'
check "scenario: long line" scenario long "too long" "algorithm central\n# $(printf 'x%.0s' {1..70000})\n"
check "scenario: binary" exits 2 c sim --scenario "$CONCLAVE"
check "scenario: a folder" exits 2 c sim --scenario /
check "a coordinator that nobody elects" says "is not elected:bully" 2 c sim central --coordinator elected:lots
check "a lock without a coordinator" says "only that of central" 2 c sim lamport --coordinator elected:bully
check "one that is elected" json '.algorithm == "central-elected"' c sim central --coordinator elected:bully --json

# What was typed is shown, but no terminal obeys it.
is_harmless() { # COMMAND...
    "$@" >"$WORK/harmless" 2>&1
    [ $? -eq 2 ] && [ -s "$WORK/harmless" ] && ! LC_ALL=C grep -q "[^[:print:]]" "$WORK/harmless" || { cat -v "$WORK/harmless"; return 1; }
}
obeyed=$(printf '\033[31m\a')
check "control characters in a command" is_harmless c "s$obeyed"
check "control characters in an option" is_harmless c get "--$obeyed" /
check "control characters in a setting" is_harmless c serve --set "$obeyed=1"
check "control characters in a value" is_harmless c serve --set "tickTime=$obeyed"
check "control characters in an algorithm" is_harmless c sim "$obeyed"
check "control characters in the name of a file" is_harmless c serve --config "$WORK/$obeyed"
check "control characters in a member" is_harmless c serve --ensemble "1=$obeyed:1"
