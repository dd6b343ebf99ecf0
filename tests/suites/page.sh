# The laboratory's page, in a browser.  One browser and one server serve all checks.
bounded /usr/bin/python3 tests/browser/page.py "$CONCLAVE" || FAILURES=$((FAILURES + 1))
