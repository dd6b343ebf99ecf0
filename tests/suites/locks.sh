# conclave locks and unlock, on this server and on ZooKeeper.  LOCKS=100000 for more locks.
with_processes
export ADDRESS
read -r ADDRESS port < <(/usr/bin/python3 tests/wire/places.py 2)
servers=()
finish() { [ ${#servers[@]} -eq 0 ] || kill "${servers[@]}" 2>/dev/null; wait; }
trap finish EXIT

tests/wire/reference "$WORK/zookeeper" "$port" >"$WORK/zookeeper.log" 2>&1 &
servers+=($!)
"$CONCLAVE" serve --data "$WORK/conclave" --listen "$ADDRESS:$((port + 1))" --http off --set maxClientCnxns=0 \
    >"$WORK/conclave.log" 2>&1 &
servers+=($!)

check_first "ZooKeeper answers" await listens "$port"
check_first "the server answers" await listens "$((port + 1))"
for test in $(/usr/bin/python3 tests/wire/locks.py --list); do
    check_alone "locks: $test" bounded /usr/bin/python3 tests/wire/locks.py "$ADDRESS:$((port + 1))" "$test"
    check_alone "locks, ZooKeeper: $test" bounded /usr/bin/python3 tests/wire/locks.py "$ADDRESS:$port" "$test"
done
check "a fence that asks ZooKeeper" bounded /usr/bin/python3 tests/wire/fence.py "$ADDRESS:$port" paused_holder
