# Three servers on this machine that behave as one: real clients, sessions that move, servers that are killed,
# restarted and lag, and strangers at the port for links between servers.
. tests/net/each.bash
export C_CLIENT=$WORK/c_client C_WORKER=$WORK/c_worker
check "the C client compiles" compile_client tests/wire/c_client.c "$C_CLIENT"
check "the C worker compiles" compile_client tests/net/c_worker.c "$C_WORKER"
each_of clients together failures quorum strangers damage operate
