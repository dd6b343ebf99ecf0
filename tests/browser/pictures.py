"""Pictures of the laboratory's page: pictures.py CONCLAVE DIRECTORY.  Each view at two widths, light and dark."""
import os
import re
import subprocess
import sys
import urllib.parse

from browser import Browser
from looks import shoot

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
QUIET = "return document.documentElement.dataset.ready && !document.querySelector('[aria-busy]')"


def scenario(name):
    with open(os.path.join(ROOT, "scenarios", name + ".scenario"), encoding="utf-8") as file:
        return file.read()


# Name, address, what to do then, what to wait for.
VIEWS = [
    ("run", {"scenario": scenario("quorum-amnesia")}, "conclave.run.stage.toViolation()", "return document.querySelector('.event.current')"),
    ("election", {"scenario": scenario("bully-partition")}, "conclave.run.stage.toViolation()", "return document.querySelector('.event.current')"),
    ("check", {"view": "check"}, "document.querySelector('#check-go').click()", "return document.querySelector('#check-open')"),
    ("compare", {"view": "compare"}, "", "return document.querySelector('#view-compare .table')"),
    ("odds", {"view": "odds"}, "", "return document.querySelector('#odds-figure')?.textContent && document.querySelector('#view-odds pre').textContent"),
    ("timeout", {"view": "timeout"}, "", "return document.querySelector('#timeout-least')"),
    ("algorithm", {"view": "algorithms", "algorithm": "central-lease"}, "", "return document.querySelector('#algorithm-run')"),
    ("exercises", {"view": "exercises"}, "", "return document.querySelector('#exercise-grade')"),
    ("museum", {"view": "museum"}, "", "return document.querySelector('#exhibit h1')"),
]


def main():
    conclave, directory = sys.argv[1:3]
    os.makedirs(directory, exist_ok=True)
    lab = subprocess.Popen([conclave, "lab", "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://\S+/", lab.stdout.readline()).group(0)
        with Browser() as browser:
            for name, parts, act, ready in VIEWS:
                browser.look(1280, 900, False)
                browser.open("about:blank")
                browser.open(address + "#" + urllib.parse.urlencode(parts))
                browser.wait(QUIET)
                if act:
                    browser.run(act)
                browser.wait(ready)
                shoot(browser, directory, name)
    finally:
        lab.terminate()
        lab.wait()
        lab.stdout.close()


main()
