# Sourced by suites of ensembles.
with_processes

# is_whole: nothing is left out.  With TESTS_EVERY=6 every sixth test of each program is tried, and another one with the
# next TESTS_FROM.
is_whole() { [ "${TESTS_EVERY:-1}" -eq 1 ]; }

# part NAME...: those that are tried.
part() { printf '%s\n' "$@" | awk -v every="${TESTS_EVERY:-1}" -v from="${TESTS_FROM:-0}" 'NR % every == from % every'; }

# each_of PROGRAM...: every test of these programs of tests/net is a check of its own.  They wait more than they
# work, so AT_ONCE of them run at the same time.
each_of() {
    local program name names
    for program in "$@"; do
        names=$(/usr/bin/python3 "tests/net/$program.py" --list) || names=
        check "$program: has tests" test -n "$names"
        for name in $(part $names); do
            check_beside "$program: $name" timeout $((LIMIT + 20 * ${FAULTS:-0})) /usr/bin/python3 "tests/net/$program.py" "$name"
        done
    done
    gather
}

# compile_client FROM TO: a program of the C client.
compile_client() {
    gcc -std=gnu17 -Wall -Wextra -Werror -D_GNU_SOURCE -DTHREADED -o "$2" "$1" -lzookeeper_mt -pthread
}
