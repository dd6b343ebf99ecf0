# Peers as processes: every algorithm of the catalogue over TCP.  ENTRIES=1000 tests/run peers for longer runs.
. tests/net/each.bash
AT_ONCE=4 each_of peers
