# The server's page, in a browser: an ensemble of three, its fail-over, its locks, its tree.  CHILDREN=10000 for fewer of a node.
bounded node tests/browser/modules.mjs || FAILURES=$((FAILURES + 1))
bounded /usr/bin/python3 tests/browser/server.py "$CONCLAVE" || FAILURES=$((FAILURES + 1))
