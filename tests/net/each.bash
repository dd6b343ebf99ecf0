# Sourced by suites of ensembles.

# each_of PROGRAM...: every test of these programs of tests/net is a check of its own.
each_of() {
    local program name names
    for program in "$@"; do
        names=$(/usr/bin/python3 "tests/net/$program.py" --list) || names=
        check "$program: has tests" test -n "$names"
        for name in $names; do
            check "$program: $name" timeout 100 /usr/bin/python3 "tests/net/$program.py" "$name"
        done
    done
}

# compile_client FROM TO: a program of the C client.
compile_client() {
    gcc -std=gnu17 -Wall -Wextra -Werror -D_GNU_SOURCE -DTHREADED -o "$2" "$1" -lzookeeper_mt -pthread
}
