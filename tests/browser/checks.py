"""Runs checks that share a browser: each prints a line."""
import sys
import traceback


def run(names, page, browser):
    """Calls the functions test_... of a program with the page, those that words of the command line name, or all.  Whether one failed."""
    failed = False
    for name, test in list(names.items()):
        if not name.startswith("test_") or not any(word in name for word in sys.argv[2:] or [""]):
            continue
        try:
            test(page)
            print("ok", name[5:].replace("_", " "), flush=True)
        except Exception:
            failed = True
            print("FAILED", name[5:].replace("_", " "), flush=True)
            traceback.print_exc()
            print("    ", browser.complaints(), flush=True)
    return failed
