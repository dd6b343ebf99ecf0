"""Runs checks that share a browser: each prints a line."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "wire"))
from patience import Checks  # noqa: E402


def run(names, page, browser):
    """Calls the functions test_... of a program with the page, those that words of the command line name, or all.  The exit status."""
    checks = Checks()
    for name, test in list(names.items()):
        if not name.startswith("test_") or not any(word in name for word in sys.argv[2:] or [""]):
            continue
        with checks.judged(name[5:].replace("_", " ")):
            try:
                test(page)
            except Exception as error:
                error.add_note(str(browser.complaints()))
                raise
    return checks.status()
