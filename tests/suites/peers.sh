# Peers as processes: every algorithm of the catalogue over TCP.
. tests/net/each.bash
AT_ONCE=4 each_of peers participants
