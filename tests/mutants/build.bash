# Programs with one deliberate fault: what tests/suites/mutants.sh and scripts/museum share.
#
# Whoever sources this has set B, the build, and LIMIT, seconds; `dir` is a directory of the program to make, and one of
# `unit`, `world` and `fuzz` says what it is, if not `conclave`.

dir='' unit='' world='' fuzz=''

# objects [library]: those of the program, or those that a unit test or the world is linked with.
objects() {
    local object name
    for object in $(find "$B/obj" -name '*.o' | sort); do
        name=${object#"$B"/obj/}
        [[ ${1:-} == library && $name == cli/* ]] && continue
        # one whose source is gone is no part of the program any more
        if [ -f "src/${name%.o}.c" ] || [ -f "${object%.o}.c" ]; then echo "$object"; fi
    done
}

# simulate BINARY SEEDS[:KINDS]: worlds, until one fails.
simulate() {
    local seeds=${2%%:*} kinds=
    [[ $2 != *:* ]] || kinds=${2#*:}
    timeout "$LIMIT" "$1" --stop --seeds "$seeds" ${kinds:+--kinds "$kinds" --always}
}

# run BINARY HOW: with the time limit that only a slip can reach.
run() {
    local binary=$1 words
    eval "words=($2)"
    timeout "$LIMIT" "$binary" "${words[@]}"
}

# compile FROM TO: mutated headers come first.
compile() {
    gcc -std=gnu17 -O1 -w -D_GNU_SOURCE -DCV_BUILT_IN -DCONCLAVE_VERSION='"mutant"' -DCONCLAVE_BUILT='"today"' -pthread \
        ${fuzz:+-fsanitize-coverage=trace-pc} -I"$dir/include" -Isrc -Iinclude -c -o "$2" "$1"
}

# mutate FILE LINES EDIT: the mutated copy, below $dir/include.
mutate() {
    local copy=${1#src/}
    copy=$dir/include/${copy#include/}
    mkdir -p "$(dirname "$copy")"
    sed -e "$2{" -e "$3" -e '}' "$1" >"$copy" || return 1
    ! cmp -s "$1" "$copy" || { echo "the edit changes nothing"; return 1; }
}

# mutated_objects FILE: compiles what the slip is in, and prints the objects that it replaces.
mutated_objects() {
    local source object
    if [[ $1 == *.c ]]; then
        compile "$dir/include/${1#src/}" "$dir/mutant.o" && echo "$B/obj/${1#src/}" | sed 's/c$/o/'
        return
    fi
    grep -rl --include='*.d' -F " $1" "$B/obj" | while read -r object; do
        source=${object#"$B"/obj/}
        source=src/${source%.d}.c
        [ -f "$source" ] || continue
        [[ -n $world && $source == src/cli/* ]] && continue
        compile "$source" "$dir/${source//\//.}.o" || exit 1
        echo "${object%.d}.o"
    done
}

# link OBJECT...: with those that were not replaced.
link() {
    local others
    others=$(objects "${unit:+library}${world:+library}" | grep -v -x -F -f "$dir/replaced")
    if [ -n "$fuzz" ]; then
        others=$(find "$B/cost" -name '*.o' | grep -v -x -F "$(sed "s|^$B/obj/|$B/cost/|" "$dir/replaced")")
        gcc -s -o "$dir/mutant" "$@" $others $COST_LDFLAGS
    elif [ -n "$world" ]; then
        others=$(grep -v '/obj/\(fence\|peer\|lab/peers\)/' <<<"$others") # see the Makefile
        gcc -s -o "$dir/mutant" "$@" $others "$B"/world/*.o $WORLD_LDFLAGS
    else
        gcc -fno-lto -s -o "$dir/mutant" "$@" $others ${unit:+-lcmocka} $LDLIBS
    fi
}

# build FILE: the program, or the unit test, with the slip that is in the copy of FILE.
build() {
    if [[ -n $unit && $1 == *.h ]]; then # the test itself includes it
        echo none >"$dir/replaced"
        compile "tests/unit/$unit.c" "$dir/unit.o" && link "$dir/unit.o"
    else
        mutated_objects "$1" >"$dir/replaced" && link "$dir"/*.o ${unit:+"$B/unit/$unit.o"}
    fi
}

LDLIBS=${LDLIBS:-$(MAKEFLAGS='' make -s libraries)}
WORLD_LDFLAGS=${WORLD_LDFLAGS:-$(MAKEFLAGS='' make -s world-libraries)}
COST_LDFLAGS=${COST_LDFLAGS:-$(MAKEFLAGS='' make -s cost-libraries)}
export LDLIBS WORLD_LDFLAGS COST_LDFLAGS
export -f objects simulate run compile mutate mutated_objects link build
