# Side by side with ZooKeeper itself: the same requests, good and bad, to both, and every answer compared.
port=$((20000 + RANDOM % 5000))
servers=()
finish() { [ ${#servers[@]} -eq 0 ] || kill "${servers[@]}" 2>/dev/null; wait; }
trap finish EXIT

tests/wire/reference "$WORK/zookeeper" "$port" >"$WORK/zookeeper.log" 2>&1 &
servers+=($!)
"$CONCLAVE" serve --data "$WORK/conclave" --listen "127.0.0.1:$((port + 1))" --http off \
    --set maxClientCnxns=0 --set tickTime=2000 --set znode.container.checkIntervalMs=86400000 \
    --set DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU= \
    >"$WORK/conclave.log" 2>&1 &
servers+=($!)

answers() { # PORT: within a minute
    for _ in $(seq 300); do
        (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
        sleep 0.2
    done
    return 1
}

compare() {
    /usr/bin/python3 tests/wire/differential.py "127.0.0.1:$port" "127.0.0.1:$((port + 1))" "$@"
}

spoilt() { # KIND: an answer that was changed on the way is noticed
    ! compare --tamper "$1" --rounds 1 --steps 400 >"$WORK/spoilt" && grep -q Difference "$WORK/spoilt"
}

check "ZooKeeper is there to compare with" answers "$port"
check "so is the server" answers "$((port + 1))"
if [ "$FAILURES" -eq 0 ]; then
    check "every reply, error and event is ZooKeeper's" compare ${SEED:+--seed "$SEED"} ${STEPS:+--steps "$STEPS"}
    check "a missing event would be noticed" spoilt event
    check "another error would be noticed" spoilt error
fi
