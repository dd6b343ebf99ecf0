# The commands on the tree, alone and in the shell, against this server and against ZooKeeper.
with_processes
export ADDRESS
read -r ADDRESS port < <(/usr/bin/python3 tests/wire/places.py 2)
servers=()
finish() { [ ${#servers[@]} -eq 0 ] || kill "${servers[@]}" 2>/dev/null; wait; }
trap finish EXIT

tests/wire/reference "$WORK/zookeeper" "$port" >"$WORK/zookeeper.log" 2>&1 &
servers+=($!)
"$CONCLAVE" serve --data "$WORK/conclave" --listen "$ADDRESS:$((port + 1))" --http off \
    --set extendedTypesEnabled=true >"$WORK/conclave.log" 2>&1 &
servers+=($!)

# of SERVER PORT: each test is a check of its own; one process runs them all.
of() {
    local name names=()
    for name in $(/usr/bin/python3 tests/wire/commands.py --list); do ! is_wanted "$1: $name" || names+=("$name"); done
    check_first "$1 answers" await listens "$2"
    [ ${#names[@]} -gt 0 ] || return
    bounded /usr/bin/python3 tests/wire/commands.py "$ADDRESS:$2" "${names[@]}" >"$WORK/results.$2" 2>&1
    for name in "${names[@]}"; do
        check "$1: $name" passed "$name" "$WORK/results.$2"
    done
}

passed() { # NAME RESULTS
    ! grep -qx "ok $1" "$2" || return 0
    sed -n "/^\(FAILED\|LATE\) $1\$/,/^\(ok\|FAILED\|LATE\) /p" "$2"
    ! grep -qx "LATE $1" "$2" || return "$LATE"
    return 1
}

of Conclave "$((port + 1))"
of ZooKeeper "$port"
