# What was acknowledged survives kill -9, a torn log and a full disk; damage is told, not passed over.
# KILLS=200 tests/run durability is the soak.
kill9() { timeout $((100 + 5 * ${KILLS:-10})) "$@"; }

tests=$(/usr/bin/python3 tests/wire/kill9.py --list)
check "there are tests" test -n "$tests"
for name in $tests; do
    program=(/usr/bin/python3 tests/wire/kill9.py "$name")
    if [ "$name" = full_disk ]; then # it mounts a small disk, where nobody else sees it
        if ! unshare -m true 2>/dev/null; then
            echo "$name is left out: only root can mount a small disk"
            continue
        fi
        program=(unshare -m "${program[@]}")
    fi
    check "durability: $name" kill9 "${program[@]}"
done
