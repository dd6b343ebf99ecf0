# What servers record of their consensus, replayed and judged.  WRITES=100000 tests/run records for longer runs.
. tests/net/each.bash

# A record of an earlier program.  A core that takes its steps otherwise has to do so on purpose: then REGENERATE=1
# WRITES=20 bash tests/run records makes the record anew.
check "the core takes its steps as it did before" "$CONCLAVE" trace merge tests/golden/server.record
check "what is no record" says "no record" 2 "$CONCLAVE" trace replay tests/golden/central.text
check "a trace of servers that is cut" says "goes with records of peers" 2 \
    "$CONCLAVE" trace merge --trace text --cut tests/golden/server.record
each_of records
check "the trace of a server" same tests/golden/server.text "$CONCLAVE" trace merge --trace text tests/golden/server.record
