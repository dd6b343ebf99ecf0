# Peers as processes: every algorithm of the catalogue over TCP.  ENTRIES=1000 tests/run peers for longer runs.
. tests/net/each.bash
each_of peers
