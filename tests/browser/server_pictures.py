"""Pictures of the server's page: server_pictures.py CONCLAVE DIRECTORY.  An ensemble that was given something to do, and to wait for."""
import json
import logging
import os
import sys
import tempfile
import threading
import time
import urllib.parse

from kazoo.exceptions import KazooException

from browser import Browser
from looks import shoot
from servers import Held, base, eventually, started, wait_in_vain

SHOWN = "return document.querySelector('#stat') && document.querySelectorAll('.node').length > 6"
SERVICES = {"orders": 3, "payments": 2, "search": 5}


def fill(zk):
    for name, count in SERVICES.items():
        for i in range(count):
            zk.create(f"/services/{name}/instance-{i}", f"10.0.{count}.{i}:8080".encode(), makepath=True, ephemeral=True)
    zk.create("/config/orders", json.dumps({"workers": 8, "queue": {"limit": 1000, "retry": [1, 2, 5]}, "region": "eu-west"}).encode(), makepath=True)
    zk.get("/config/orders", watch=lambda _: None)


class Load:
    """Reads and writes until it ends, more of them in waves."""

    def __init__(self, zk):
        self.zk, self.over = zk, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def run(self):
        self.zk.create("/load", b"")
        turn = 0
        while not self.over.wait(0.1):
            turn += 1
            try:
                for _ in range(20 + 15 * (turn // 20 % 3)):
                    self.zk.get("/load")
                for _ in range(2 + 4 * (turn // 30 % 2)):
                    self.zk.set("/load", b"x" * 100)
            except KazooException:  # its server is being killed
                pass


def contenders(zk, lock):
    return zk.get_children(lock) if zk.exists(lock) else []


def hold(held, ensemble):
    """A queue, an election, and two that wait for each other."""
    for place, label in enumerate(("nightly report", "backup", "vacuum"), 1):
        held.start("lock", "reports", "--label", label)
        eventually(lambda: len(contenders(ensemble.clients[0], "/conclave/locks/reports")) == place, "it is in the queue")
    for label, priority in (("db-a", "5"), ("db-b", "5"), ("db-c", "1")):
        held.start("elect", "primary", "--label", label, "--priority", priority)
    anna, bob = ensemble.client(), ensemble.client()
    assert anna.Lock("/conclave/locks/accounts", "transfer 1").acquire() and bob.Lock("/conclave/locks/audit", "transfer 2").acquire()
    for zk, name, label in ((anna, "audit", "transfer 1"), (bob, "accounts", "transfer 2")):
        threading.Thread(target=wait_in_vain, args=[zk.Lock(f"/conclave/locks/{name}", label)]).start()


def pictures(browser, member, directory):
    def view(name, wait, **parts):
        browser.look(1280, 900, False)
        browser.run("location.hash = arguments[0]", urllib.parse.urlencode(parts))
        browser.wait(wait)
        shoot(browser, directory, "server-" + name)
    browser.open(base(member))
    view("ensemble", "return conclave.stream.history.length > 40")
    view("locks", "return document.querySelector('.deadlock') && document.querySelector('[data-lock=primary] tbody tr + tr')", view="locks")
    browser.look(1280, 900, False)
    view("tree", SHOWN, view="tree", path="/config/orders")
    member.kill()
    view("silent", "return !document.querySelector('#banner').hidden", view="ensemble")
    member.start()


def with_elections(ensemble):
    """The leader, which has seen some others lead before it."""
    survivor = ensemble.followers()[0]
    while (leader := ensemble.leader()) is not survivor:
        time.sleep(5)  # for terms that can be seen
        leader.kill()
        ensemble.leader()
        leader.start()
    return survivor


def main():
    logging.basicConfig(level=logging.CRITICAL)
    os.makedirs(sys.argv[2], exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        ensemble = started(directory, 1, 2, 3)
        try:
            leader = with_elections(ensemble)
            fill(ensemble.client(leader))
            with Browser() as browser, Held(ensemble) as held, Load(ensemble.client(leader)):
                hold(held, ensemble)
                pictures(browser, leader, sys.argv[2])
        finally:
            ensemble.stop()


main()
