# The server's page, in a browser: an ensemble of three, its fail-over, its locks, its tree.  CHILDREN is how many one node has.
with_processes
reporting node tests/browser/modules.mjs
reporting /usr/bin/python3 tests/browser/server.py "$CONCLAVE"
