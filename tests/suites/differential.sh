# ZooKeeper and this server get the same requests, good and bad, and every answer is compared.
with_processes
export ADDRESS
read -r ADDRESS port < <(/usr/bin/python3 tests/wire/places.py 2)
servers=()
finish() { [ ${#servers[@]} -eq 0 ] || kill "${servers[@]}" 2>/dev/null; wait; }
trap finish EXIT

tests/wire/reference "$WORK/zookeeper" "$port" >"$WORK/zookeeper.log" 2>&1 &
servers+=($!)
"$CONCLAVE" serve --data "$WORK/conclave" --listen "$ADDRESS:$((port + 1))" --http off \
    --set maxClientCnxns=0 --set tickTime=2000 --set znode.container.checkIntervalMs=86400000 \
    --set DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU= \
    >"$WORK/conclave.log" 2>&1 &
servers+=($!)

compare() {
    /usr/bin/python3 tests/wire/differential.py "$ADDRESS:$port" "$ADDRESS:$((port + 1))" "$@"
}

spoilt() { # KIND: an answer that was changed on the way is noticed
    ! compare --tamper "$1" --rounds 1 --steps 400 >"$WORK/spoilt" && grep -q Difference "$WORK/spoilt"
}

check_first "ZooKeeper answers" await listens "$port"
check_first "the server answers" await listens "$((port + 1))"
check "every reply, error and event is ZooKeeper's" compare ${SEED:+--seed "$SEED"} ${STEPS:+--steps "$STEPS"}
check "a missing event would be noticed" spoilt event
check "another error would be noticed" spoilt error
