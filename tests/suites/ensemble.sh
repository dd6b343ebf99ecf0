# Three servers on this machine that behave as one: real clients, sessions that move, servers that are killed,
# restarted and far behind, and whoever else comes to the port where they hear each other.
. tests/net/each.bash
export C_CLIENT=$WORK/c_client C_WORKER=$WORK/c_worker
check "the C client compiles" compile_client tests/wire/c_client.c "$C_CLIENT"
check "the C client that fails over compiles" compile_client tests/net/c_worker.c "$C_WORKER"
each_of clients together failures quorum strangers
