# The mutation check: slips that a programmer could make are made on purpose, and must be noticed.
#
# A line of tests/mutants/*.list has five columns, parted by tabs:
#   NAME  FILE  FUNCTION  EDIT  HOW
# FILE is the file's own name, with as many of the folders before it as tell it from others; FUNCTION is the one in
# which the edit, a sed expression, is made, or `-` for the whole file.  So a mutant survives that its file is moved, or
# that its function moves in the file.  The copy with the edit is compiled and linked with the other objects.  HOW is
# what `conclave` is then called with; or `unit:NAME`, a unit test to link it with instead; or `client:NAME`, a test of
# tests/wire/kazoo_basic.py to serve; or `commands:NAME`, one of tests/wire/commands.py; or `hostile:NAME`, an attack of
# tests/wire/hostile.py on it; or `net:PROGRAM:NAME`, a test of that program of tests/net to run with it; or
# `world:FIRST-LAST`, seeds of the simulated world, or `world:FIRST-LAST:KINDS`, where each world has these kinds of
# faults and no others; or `fuzz:cost`, the inputs of tests/fuzz/corpus/cost, in which no request may cost too much.
# The program without the slip must succeed and the one with it must fail: by its exit status, or because it breaks an
# invariant, but not because it takes too long.
#
# All of them take their time: `make mutants` tries all, `make test` every hundredth (MUTANTS_EVERY, MUTANTS_FROM).
# make mutants M="part of a name" tries all whose name contains that text, and no others.

if [ -n "${SANITIZED:-}" ]; then
    echo "ok mutants run in the plain build only"
    exit 0
fi

ulimit -c 0
# shellcheck source=tests/mutants/build.bash
. tests/mutants/build.bash

# serve BINARY DIRECTORY HOW: a client's test, with that program as the server, and as the client of `commands:`.
serve() (
    export CONCLAVE=$1 WORK=$2
    . tests/wire/server.bash
    local program=kazoo_basic
    [[ $3 != commands:* ]] || program=commands
    start_server --set tickTime=500 --set extendedTypesEnabled=true
    timeout "$LIMIT" /usr/bin/python3 "tests/wire/$program.py" "$AT" "${3#*:}"
)

# attack BINARY DIRECTORY NAME: as tests/suites/hostile.sh does it.
attack() (
    export CONCLAVE=$1 WORK=$2
    . tests/wire/server.bash
    start_server --http off --set maxClientCnxns=0 --set maxSessionTimeout=600000
    timeout "$LIMIT" /usr/bin/python3 tests/wire/hostile.py "$server_pid" "$AT" "$3"
)

# net BINARY DIRECTORY PROGRAM:NAME: a test that runs that program, as client and as server.
net() (
    export CONCLAVE=$1 WORK=$2 LOCK_BODY=$2/lock_body
    gcc -O1 -w -D_GNU_SOURCE -o "$LOCK_BODY" tests/net/lock_body.c || exit 2
    timeout "$LIMIT" $apart /usr/bin/python3 "tests/net/${3%:*}.py" "${3#*:}"
)

# What a mutant leaves running ends with its test, where processes can be kept apart.
apart='unshare --pid --fork --kill-child --mount-proc'
$apart true 2>/dev/null || apart=
export apart LIMIT=$((LIMIT / 2))

# run_unit BINARY OUTPUT: a unit test, until it notices something; then it may wait for what will not come any more.
run_unit() {
    local pid
    timeout "$LIMIT" "$1" >"$2" 2>&1 &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
        if grep -q '^\[  FAILED  \]' "$2"; then
            kill "$pid"
            wait "$pid"
            return 1
        fi
        sleep 0.05
    done
    wait "$pid"
}

# fuzz BINARY NAME: a fuzz target that counts, over its corpus.
fuzz() {
    timeout "$LIMIT" "$1" "tests/fuzz/corpus/$2"/*
}

# as_it_is INDEX HOW: the program without a slip.
as_it_is() {
    if [[ $2 == unit:* ]]; then
        [ "${MUTANTS_EVERY:-1}" -gt 1 ] || "$B/tests/${2#unit:}" # the gate runs them all, beside this
    elif [[ $2 == world:* ]]; then
        simulate "$B/conclave-simulate" 1-20 # tests/suites/world.sh runs them all
    elif [[ $2 == fuzz:* ]]; then
        fuzz "$B/fuzz_${2#fuzz:}" "${2#fuzz:}"
    elif [[ $2 == client:* || $2 == commands:* ]]; then
        mkdir "$WORK/clean-server.$1" && serve "$CONCLAVE" "$WORK/clean-server.$1" "$2"
    elif [[ $2 == hostile:* ]]; then
        mkdir "$WORK/clean-attack.$1" && attack "$CONCLAVE" "$WORK/clean-attack.$1" "${2#hostile:}"
    elif [[ $2 == net:* ]]; then
        mkdir "$WORK/clean-net.$1" && net "$CONCLAVE" "$WORK/clean-net.$1" "${2#net:}"
    else
        run "$CONCLAVE" "$2"
    fi
}

# run_as_it_is INDEX HOW: it succeeds.  Being late is forgiven once.
run_as_it_is() {
    local status try
    for try in first second; do
        as_it_is "$1.$try" "$2" >"$WORK/clean.$1" 2>&1
        status=$?
        [ "$status" -eq "$LATE" ] || [ "$status" -eq 124 ] || break
    done
    [ "$status" -eq 0 ] || { echo "without the slip: exit status $status: $2"; tail -20 "$WORK/clean.$1"; } >"$WORK/broken.$1"
}

# catch INDEX NAME FILE LINES EDIT HOW
catch() {
    local dir=$WORK/mutant.$1 unit="" world="" fuzz="" status
    mkdir -p "$dir/include"
    [[ $6 == unit:* ]] && unit=${6#unit:}
    [[ $6 == world:* ]] && world=${6#world:}
    [[ $6 == fuzz:* ]] && fuzz=${6#fuzz:}
    mutate "$3" "$4" "$5" && build "$3" || return 1
    if [ -n "$world" ]; then
        simulate "$dir/mutant" "$world"
    elif [ -n "$fuzz" ]; then
        fuzz "$dir/mutant" "$fuzz"
    elif [[ $6 == client:* || $6 == commands:* ]]; then
        PATIENCE=20 serve "$dir/mutant" "$dir" "$6" # what never comes need not be awaited for long
    elif [[ $6 == hostile:* ]]; then
        PATIENCE=20 attack "$dir/mutant" "$dir" "${6#hostile:}"
    elif [[ $6 == net:* ]]; then
        PATIENCE=20 net "$dir/mutant" "$dir" "${6#net:}"
    elif [ -n "$unit" ]; then
        PATIENCE=20 run_unit "$dir/mutant" "$dir/noticed"
    else
        PATIENCE=20 run "$dir/mutant" "$6"
    fi >"$dir/output" 2>&1
    status=$?
    rm -f "$dir/mutant" "$dir"/*.o
    case $status in
    0) echo "nothing noticed it: $6"; return 1 ;;
    124) echo "it took too long: $6"; return 1 ;;
    2 | 3 | 4) [ -n "$unit" ] || { echo "exit status $status: $6"; tail -3 "$dir/output"; return 1; } ;;
    esac
}

catch_and_note() {
    catch "$@" >"$WORK/why.$1" 2>&1 && touch "$WORK/caught.$1"
}
export -f await run_unit fuzz serve attack net as_it_is run_as_it_is catch catch_and_note

# in_parallel CALL COLUMNS: CALL with the columns of each line of the input, over all cores.
in_parallel() {
    local call=$1
    tr '\t\n' '\0\0' | xargs -0 -n "$2" -P "$(nproc)" bash -c "$call \"\$@\"" _
}

nothing_is_broken() { ! cat "$WORK"/broken.* 2>/dev/null; }

was_caught() {
    [ -f "$WORK/caught.$1" ] || { cat "$WORK/why.$1"; return 1; }
}

check "every mutant applies" tests/mutants/resolved --check
[ "$FAILURES" -eq 0 ] || exit "$FAILURES"
# Those that wait for a client come first: they take long, and little of the machine.
slow=$'\t(client|commands):'
[ -z "${M:-}" ] || MUTANTS_EVERY=1
tests/mutants/resolved >"$WORK/resolved"
if [ -n "$WANTED" ]; then
    while IFS= read -r line; do ! is_wanted "${line%%$'\t'*}" || printf '%s\n' "$line"; done <"$WORK/resolved" >"$WORK/wanted_ones"
    mv "$WORK/wanted_ones" "$WORK/resolved"
fi
# Chosen by their names, so that it is the same ones whatever is added.
M=${M:-} awk -F '\t' -v every="${MUTANTS_EVERY:-1}" -v from="${MUTANTS_FROM:-0}" '
    BEGIN { for (i = 32; i < 127; i++) code[sprintf("%c", i)] = i }
    function number_of(name,    i, number) {
        for (i = 1; i <= length(name); i++) number = (number * 31 + code[substr(name, i, 1)]) % 1000003
        return number
    }
    number_of($1) % every == from % every && (ENVIRON["M"] == "" || index($1, ENVIRON["M"]))' "$WORK/resolved" >"$WORK/chosen"
[ -s "$WORK/chosen" ] || { echo "no mutant has '$M' in its name"; exit 1; }
{ grep -E "$slow" "$WORK/chosen"; grep -vE "$slow" "$WORK/chosen"; } |
    nl -ba -w1 -s"$(printf '\t')" >"$WORK/all"
cut -f 6 "$WORK/all" | sort -u | nl -ba -w1 -s"$(printf '\t')" >"$WORK/how"
in_parallel run_as_it_is 2 <"$WORK/how"
check "without a slip all is well" nothing_is_broken
[ "${MUTANTS_EVERY:-1}" -eq 1 ] ||
    check "$(wc -l <"$WORK/all") of $(wc -l <"$WORK/resolved") mutants; make mutants tries all" true
in_parallel catch_and_note 6 <"$WORK/all"
while IFS=$'\t' read -r index name _; do
    check "$name" was_caught "$index"
done <"$WORK/all"
