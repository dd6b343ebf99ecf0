# Network partitions between servers in network namespaces of their own; the histories of clients are judged by
# `conclave history`.  FAULTS=200 tests/run partitions is the soak, SEED=7 repeats its faults.
. tests/net/each.bash
export NETWORK C_WORKER=$WORK/c_worker
NETWORK=conclave$(od -An -N6 -tx8 /dev/urandom | tr -d ' ') # nobody's, also if a run that was killed has left some

remove_networks() {
    local space
    for space in $(ip netns list 2>/dev/null | awk '{print $1}' | grep "^$NETWORK-"); do ip netns del "$space"; done
}

# Whether this machine allows all that is needed.
try_networks() {
    ip netns add "$NETWORK-try" && ip -n "$NETWORK-try" link add one type veth peer name two &&
        ip -n "$NETWORK-try" rule add from 10.77.1.0/24 to 10.77.2.0/24 blackhole
}

trap remove_networks EXIT
if ! why=$(try_networks 2>&1); then
    echo "ok partitions were not tried: there are no network namespaces here (${why##*$'\n'})"
    exit 0
fi
check "the C client compiles" compile_client tests/net/c_worker.c "$C_WORKER"
AT_ONCE=1 each_of partitions peer_partitions
