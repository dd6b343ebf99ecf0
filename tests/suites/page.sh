# The laboratory's page, in a browser.  One browser and one server serve all checks.
with_processes
reporting /usr/bin/python3 tests/browser/page.py "$CONCLAVE"
