# The mutation check: slips that a programmer could make are made on purpose, and must be noticed.
#
# A line of tests/mutants/*.list has four columns, parted by tabs:
#   NAME  FILE  SED-EXPRESSION  ARGUMENTS
# The expression is applied to a copy of the file, which is compiled and linked with the other
# objects.  ARGUMENTS is what `conclave` is then called with; or `unit:NAME`, a unit test to link it
# with instead; or `client:NAME`, a test of tests/wire/kazoo_basic.py to serve; or `world:FIRST-LAST`,
# seeds of the simulated world.  The program without
# the slip must succeed and the one with it must fail: by its
# exit status, or because it breaks an invariant, but not because it takes too long.
#
# All of them take their time: `make mutants` tries all, `make test` every fourth of each list.

if [ -n "${SANITIZED:-}" ]; then
    echo "ok mutants run in the plain build only"
    exit 0
fi

ulimit -c 0

# objects [library]: those of the program, or those that a unit test or the world is linked with.
objects() {
    local object name
    for object in "$B"/obj/*/*.o; do
        name=${object#"$B"/obj/}
        [[ ${1:-} == library && $name == cli/* ]] && continue
        # one whose source is gone is no part of the program any more
        if [ -f "src/${name%.o}.c" ] || [ -f "${object%.o}.c" ]; then echo "$object"; fi
    done
}

# simulate BINARY SEEDS: worlds, until one fails.
simulate() {
    timeout 300 "$1" --stop --seeds "$2"
}

# run BINARY ARGUMENTS: with the time limit that only a slip can reach.
run() {
    local binary=$1 words
    eval "words=($2)"
    timeout 60 "$binary" "${words[@]}"
}

# serve BINARY DIRECTORY NAME: a client's test, with that program as the server.
serve() (
    export CONCLAVE=$1 WORK=$2
    . tests/wire/server.bash
    start_server --set tickTime=500
    timeout 90 /usr/bin/python3 tests/wire/kazoo_basic.py "$AT" "$3"
)

# run_as_it_is INDEX ARGUMENTS: the program without a slip succeeds.  A unit test is compiled, too,
# for those mutants that it only has to be linked with.
run_as_it_is() {
    local status dir=$WORK unit=${2#unit:}
    if [[ $2 == unit:* ]]; then
        compile "tests/unit/$unit.c" "$WORK/$unit.o" && "$B/tests/$unit"
    elif [[ $2 == world:* ]]; then
        simulate "$B/conclave-simulate" 1-20 # tests/suites/world.sh runs them all
    elif [[ $2 == client:* ]]; then
        mkdir "$WORK/clean-server.$1" && serve "$CONCLAVE" "$WORK/clean-server.$1" "${2#client:}"
    else
        run "$CONCLAVE" "$2"
    fi >"$WORK/clean.$1" 2>&1
    status=$?
    [ "$status" -eq 0 ] || echo "without the slip: exit status $status: $2" >"$WORK/broken.$1"
}

# compile FROM TO: mutated headers come first.
compile() {
    gcc -std=gnu17 -O1 -w -D_GNU_SOURCE -DCONCLAVE_VERSION='"mutant"' -pthread \
        -I"$dir/include" -Isrc -c -o "$2" "$1"
}

# mutate FILE EXPRESSION: the mutated copy, below $dir/include.
mutate() {
    local copy=$dir/include/${1#src/}
    mkdir -p "$(dirname "$copy")"
    sed -e "$2" "$1" >"$copy" || return 1
    ! cmp -s "$1" "$copy" || { echo "the expression changes nothing"; return 1; }
}

# mutated_objects FILE: compiles what the slip is in, and prints the objects that it replaces.
mutated_objects() {
    local source object
    if [[ $1 == *.c ]]; then
        compile "$dir/include/${1#src/}" "$dir/mutant.o" && echo "$B/obj/${1#src/}" | sed 's/c$/o/'
        return
    fi
    grep -l -F " $1" "$B"/obj/*/*.d | while read -r object; do
        source=${object#"$B"/obj/}
        source=src/${source%.d}.c
        [ -f "$source" ] || continue
        compile "$source" "$dir/${source//\//.}.o" || exit 1
        echo "${object%.d}.o"
    done
}

# link OBJECT...: with those that were not replaced.
link() {
    local others=$(objects "${unit:+library}${world:+library}" | grep -v -x -F -f "$dir/replaced")
    if [ -n "$world" ]; then
        gcc -o "$dir/mutant" "$@" $others "$B"/world/*.o $WORLD_LDFLAGS
    else
        gcc -fno-lto -o "$dir/mutant" "$@" $others ${unit:+-lcmocka} $LDLIBS
    fi
}

# build FILE: the program, or the unit test, with the slip that is in the copy of FILE.
build() {
    if [[ -n $unit && $1 == *.h ]]; then # the test itself includes it
        echo none >"$dir/replaced"
        compile "tests/unit/$unit.c" "$dir/unit.o" && link "$dir/unit.o"
    else
        mutated_objects "$1" >"$dir/replaced" && link "$dir"/*.o ${unit:+"$WORK/$unit.o"}
    fi
}

# catch INDEX NAME FILE EXPRESSION ARGUMENTS
catch() {
    local dir=$WORK/mutant.$1 unit="" world="" status
    mkdir -p "$dir/include"
    [[ $5 == unit:* ]] && unit=${5#unit:}
    [[ $5 == world:* ]] && world=${5#world:}
    mutate "$3" "$4" && build "$3" || return 1
    if [ -n "$world" ]; then
        simulate "$dir/mutant" "$world"
    elif [[ $5 == client:* ]]; then
        serve "$dir/mutant" "$dir" "${5#client:}"
    else
        run "$dir/mutant" "$([ -n "$unit" ] || echo "$5")"
    fi >"$dir/output" 2>&1
    status=$?
    rm -f "$dir/mutant" "$dir"/*.o
    case $status in
    0) echo "nothing noticed it: $5"; return 1 ;;
    124) echo "it took too long: $5"; return 1 ;;
    2 | 3 | 4) [ -n "$unit" ] || { echo "exit status $status: $5"; tail -3 "$dir/output"; return 1; } ;;
    esac
}

catch_and_note() {
    catch "$@" >"$WORK/why.$1" 2>&1 && touch "$WORK/caught.$1"
}
export WORLD_LDFLAGS=$(MAKEFLAGS= make -s world-libraries)
export -f objects simulate run serve run_as_it_is compile mutate mutated_objects link build catch catch_and_note

# in_parallel CALL COLUMNS: CALL with the columns of each line of the input, over all cores.
in_parallel() {
    local call=$1
    tr '\t\n' '\0\0' | xargs -0 -n "$2" -P "$(nproc)" bash -c "$call \"\$@\"" _
}

well_formed() {
    local bad
    bad=$(awk -F '\t' 'NF != 4 || !$1 || !$2 || !$3 || !$4 {print FILENAME ":" FNR}' tests/mutants/*.list)
    [ -z "$bad" ] || { echo "$bad: not four columns"; return 1; }
}

nothing_is_broken() { ! cat "$WORK"/broken.* 2>/dev/null; }

was_caught() {
    [ -f "$WORK/caught.$1" ] || { cat "$WORK/why.$1"; return 1; }
}

check "the lists of mutants are well-formed" well_formed
[ "$FAILURES" -eq 0 ] || exit "$FAILURES"
# Those that wait for a client come first: they take long, and little of the machine.
slow=$'\tclient:'
for list in tests/mutants/*.list; do
    awk -v every="${MUTANTS_EVERY:-1}" 'FNR % every == 0' "$list"
done >"$WORK/chosen"
{ grep "$slow" "$WORK/chosen"; grep -v "$slow" "$WORK/chosen"; } |
    nl -ba -w1 -s"$(printf '\t')" >"$WORK/all"
cut -f 5 "$WORK/all" | sort -u | nl -ba -w1 -s"$(printf '\t')" >"$WORK/arguments"
in_parallel run_as_it_is 2 <"$WORK/arguments"
check "without a slip all is well" nothing_is_broken
[ "${MUTANTS_EVERY:-1}" -eq 1 ] ||
    check "$(wc -l <"$WORK/all") of $(cat tests/mutants/*.list | wc -l) mutants; make mutants tries all" true
in_parallel catch_and_note 5 <"$WORK/all"
while IFS=$'\t' read -r index name _; do
    check "$name" was_caught "$index"
done <"$WORK/all"
