# Histories from outside: files, verdicts, explanations, what is wrong with a line.
c() { "$CONCLAVE" "$@"; }
golden() { echo "tests/golden/history-$1.jsonl"; }

# judged FILE LINEARIZABLE SEQUENTIAL: the exit statuses.
judged() {
    exits "$2" c history "$1" && exits "$3" c history --sequential "$1"
}

check "a stale read" judged "$(golden stale-read)" 1 0
check "a read that goes back" judged "$(golden goes-back)" 1 1
check "a lost update" judged "$(golden lost-update)" 1 1
check "an effect that comes late" judged "$(golden late-effect)" 0 0
check "two holders" judged "$(golden two-holders)" 1 1

for name in stale-read lost-update two-holders; do
    check "$name: what could not be" same "tests/golden/history-$name.text" c history "$(golden "$name")"
done
standard_input() { "$CONCLAVE" history - <"$(golden stale-read)"; }
check "standard input" same tests/golden/history-stale-read.text standard_input

check "json: held" json '.verdicts.linearizability == "held" and .operations == 10 and .clients == 3 and .keys == 1 and
    .unanswered == 2 and .key == null and .counterexample == null' c history --json "$(golden late-effect)"
check "json: violated" json '.verdicts.linearizability == "violated" and .key == "/x" and .operations == 6 and
    .counterexample.at == 12 and .counterexample.order == [1, 2, 3] and .counterexample.stuck[0].line == 4 and
    (.why | startswith("cid reads \"one\""))' c history --json "$(golden stale-read)"
check "json: sequential" json '.verdicts.sequential_consistency == "held"' c history --json --sequential "$(golden stale-read)"
check "json: initial values are no operations" json '.operations == 3 and .clients == 2' c history --json "$(golden goes-back)"

# Writes beside each other, then reads that contradict them: every order would have to be tried.
hard() {
    local i
    for i in $(seq 24); do echo '{"client":'"$i"',"key":"k","op":"write","value":'"$i"',"start":1,"end":2}'; done
    for i in $(seq 24); do echo '{"client":'"$i"',"key":"k","op":"read","value":'"$i"',"start":3,"end":4}'; done
    echo '{"op":"initial","key":"k","value":0}'
}
hard >"$WORK/hard"
check "too much work" exits 4 c history --work 100000 "$WORK/hard"
check "too much work is said" json '.verdicts.linearizability == "unknown" and .key == "k"' c history --json --work 100000 "$WORK/hard"
{ cat "$WORK/hard" "$(golden stale-read)"; } >"$WORK/both"
check "a violation counts for more" exits 1 c history --work 100000 "$WORK/both"

# Ten thousand operations of ten clients on ten keys, by one copy that answers in between.
many() {
    awk 'BEGIN {
        srand(1)
        for (k = 0; k < 10; k++) print "{\"op\":\"initial\",\"key\":" k ",\"value\":0}"
        for (t = 0; t < 10000; t++) {
            k = int(rand() * 10); line = "{\"client\":" t % 10 ",\"key\":" k ",\"start\":" 10 * t - int(rand() * 49)
            stop = 10 * t + int(rand() * 49)
            if (rand() < 0.5) { op = "read"; value = now[k] + 0 } else { op = "write"; value = now[k] = t + 1; version[k]++ }
            if (rand() < 0.5) line = line ",\"version\":" version[k] + 0
            print line ",\"end\":" stop ",\"op\":\"" op "\",\"value\":" value "}"
        }
    }'
}
many >"$WORK/many"
check "ten thousand operations" judged "$WORK/many" 0 0
# ... of which one write made a version that it cannot have made.
awk '!lost && NR > 5000 && /"op":"write"/ {lost = sub(/"version":[0-9]+/, "\"version\":1")} {print}' "$WORK/many" >"$WORK/lost"
check "one wrong answer among them" judged "$WORK/lost" 1 1

# ---- What is wrong with a line ----
line() { # what it must say, contents
    printf '%b' "$2" >"$WORK/line"
    says "$1" 2 c history "$WORK/line"
}
begin='{"client":1,"key":"k","start":1,"end":2,'
check "nothing at all" says "/dev/null: no operations" 2 c history /dev/null
check "no file" says "which file?" 2 c history
check "two files" says "one history at a time" 2 c history a b
check "a file that is not there" says "/nonexistent: No such file" 2 c history /nonexistent
check "a directory" says "Is a directory" 2 c history "$WORK"
check "no work" says "work: '0' is not a whole number above 0" 2 c history --work 0 "$WORK/many"
check "not JSON" line "line:2: " '\n{"client":1,\n'
check "not an object" line "line:1: not a JSON object" '[1]\n'
check "bytes that are no text" line "line:1: " '{"client":"\xff\xfe"}\n'
check "a number that is too big" line "line:1: too big integer" '{"client":1,"key":"k","op":"read","start":99999999999999999999}'
check "a field twice" line "line:1: duplicate object key" "$begin"'"op":"read","op":"read"}'
check "no operation" line "line:1: there is no \"op\"" "$begin"'"value":1}'
check "an unknown operation" line '"op" is not initial, read' "$begin"'"op":"reed"}'
check "no client" line "line:1: there is no \"client\"" '{"key":"k","op":"read","start":1}'
check "no key" line "there is no \"key\"" '{"client":"k","op":"read","start":1}'
check "a client that is a list" line '"client" is neither a text nor a whole number' '{"client":[],"key":"k","op":"read","start":1}'
check "no start" line '"start" is not a whole number' '{"client":1,"key":"k","op":"read"}'
check "a start that is no whole number" line '"start" is not a whole number' '{"client":1,"key":"k","op":"read","start":1.5}'
check "an end before the start" line "line:1: it ends before it starts" '{"client":1,"key":"k","op":"read","start":3,"end":2}'
check "a result without an end" line 'there is a "result", but no "end"' '{"client":1,"key":"k","op":"read","start":3,"result":"ok"}'
check "an unknown result" line '"result" is not ok, no_node' "$begin"'"op":"read","result":"fine"}'
check "a result of another operation" line "this operation cannot have this outcome" "$begin"'"op":"read","result":"exists"}'
check "a misspelt field" line '"verson" does not go with write' "$begin"'"op":"write","value":1,"verson":3}'
check "a field of another operation" line '"token" does not go with read' "$begin"'"op":"read","token":3}'
check "an initial value has no time" line '"start" does not go with initial' '{"op":"initial","key":"k","value":1,"start":1}'
check "a write of nothing" line "it needs a value" "$begin"'"op":"write"}'
check "a cas of nothing" line 'cas needs "expected"' "$begin"'"op":"cas","value":1}'
check "a cas of too much" line "there are both" "$begin"'"op":"cas","value":1,"expected":1,"expected_value":1}'
check "a version below any" line "not below 0" "$begin"'"op":"read","value":1,"version":-2}'
check "a token without end" line "below 2^62" "$begin"'"op":"acquire","token":9223372036854775807}'
check "a version of what is unknown" line "unknown outcome has no version" '{"client":1,"key":"k","op":"write","value":1,"version":3,"start":1}'
check "nothing strange is printed" line "does not go with read" "$begin"'"op":"read","\\u001b[2J":3}'
