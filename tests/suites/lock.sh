# `conclave lock`, `once` and `elect`, against this server and ZooKeeper.  CYCLES=200 HANDOFFS=100000 tests/run =lock is
# the soak, on 32 locks (LOCKS) at once, a hundred hand-offs or more in a second; SEED=7 repeats its faults.
. tests/net/each.bash
export LOCK_BODY=$WORK/lock_body NETWORK
NETWORK=lock$(od -An -N6 -tx8 /dev/urandom | tr -d ' ') # nobody's, also if a run that was killed has left some
[ -z "${HANDOFFS:-}" ] || export FAULTS=$((HANDOFFS / 10)) # which says how long that may take

remove_networks() {
    local space
    for space in $(ip netns list 2>/dev/null | awk '{print $1}' | grep "^$NETWORK-"); do ip netns del "$space"; done
}

# Whether this machine allows all that is needed.
try_networks() {
    ip netns add "$NETWORK-try" && ip -n "$NETWORK-try" link add one type veth peer name two &&
        ip -n "$NETWORK-try" rule add from 10.77.1.0/24 to 10.77.2.0/24 blackhole
}

compile_body() { gcc -std=gnu17 -O1 -Wall -Wextra -Werror -D_GNU_SOURCE -o "$LOCK_BODY" tests/net/lock_body.c; }

against() { # SERVER PROGRAM...
    local WORK=$WORK/$1
    mkdir -p "$WORK"
    shift
    each_of "$@"
}

trap remove_networks EXIT
check "the body compiles" compile_body
: >"$WORK/with_zookeeper"
if [ -z "${SANITIZED:-}" ]; then # ZooKeeper is slow enough
    SERVER=zookeeper AT_ONCE=2 against zookeeper lock lock_chaos elect >"$WORK/with_zookeeper" &
fi
# These wait more than they work.
AT_ONCE=4 against conclave lock lock_chaos elect lock_terminal
wait
cat "$WORK/with_zookeeper"
FAILURES=$((FAILURES + $(grep -c '^FAILED ' "$WORK/with_zookeeper")))
if why=$(try_networks 2>&1); then
    AT_ONCE=1 against networks lock_partition
    [ -z "${HANDOFFS:-}" ] || SERVER=zookeeper AT_ONCE=1 against networks_of_zookeeper lock_partition
else
    skip "locks in partitions: there are no network namespaces here (${why##*$'\n'})"
fi
