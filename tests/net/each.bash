# Sourced by suites of ensembles.

# each_of PROGRAM...: every test of these programs of tests/net is a check of its own.  They wait more than they
# work: AT_ONCE of them run beside each other.
each_of() {
    local program name names reports=$WORK/reports
    mkdir -p "$reports"
    for program in "$@"; do
        names=$(/usr/bin/python3 "tests/net/$program.py" --list) || names=
        check "$program: has tests" test -n "$names"
        for name in $names; do
            while [ "$(jobs -rp | wc -l)" -ge "${AT_ONCE:-2}" ]; do wait -n; done
            check "$program: $name" timeout $((100 + 6 * ${TURNS:-0})) /usr/bin/python3 "tests/net/$program.py" \
                "$name" >"$reports/$program.$name" &
        done
    done
    wait
    cat "$reports"/*
    FAILURES=$((FAILURES + $(cat "$reports"/* | grep -c '^FAILED ')))
}

# compile_client FROM TO: a program of the C client.
compile_client() {
    gcc -std=gnu17 -Wall -Wextra -Werror -D_GNU_SOURCE -DTHREADED -o "$2" "$1" -lzookeeper_mt -pthread
}
