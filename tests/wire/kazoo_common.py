"""What the kazoo programs share: clients below a node of the test's own, a crowd of processes, and
the choice of a test by its name.

    PROGRAM --list              the names of its tests
    PROGRAM HOST:PORT NAME      runs one; exit status 0 when it passed, or as in patience.py
"""
import logging
import multiprocessing
import os
import queue
import sys
import traceback

from kazoo.client import KazooClient

from patience import TIMEOUT_S, Late, eventually, is_late, joined, judged, serves  # noqa: F401

SESSION_S = 40  # kazoo takes a third of it without an answer for a connection that is gone


class Site:
    """The server, and the node below which one test happens."""

    def __init__(self, address, name):
        self.address = address
        self.name = name
        self.clients = []

    def client(self, **options):
        options.setdefault("timeout", SESSION_S)
        zk = KazooClient(hosts=f"{self.address}/{self.name}", **options)
        self.clients.append(zk)
        zk.start(timeout=TIMEOUT_S)
        return zk

    def clear(self):
        for zk in self.clients:
            zk.stop()
            zk.close()


def raises(error, call, *arguments, **options):
    try:
        result = call(*arguments, **options)
    except error:
        return
    raise AssertionError(f"no {error.__name__}, but {result!r}")


def crowd(site, count, work):
    """Runs work(site, index) in so many processes, each with clients of its own; returns their results by
    index."""
    results = multiprocessing.Queue()

    def member(index):
        own = Site(site.address, site.name)
        try:
            results.put((index, None, work(own, index)))
        except BaseException as error:
            results.put((index, Late if is_late(error) else AssertionError, traceback.format_exc()))
        finally:
            own.clear()

    members = [multiprocessing.Process(target=member, args=(i,), daemon=True) for i in range(count)]
    for process in members:
        process.start()
    returned = {}
    for _ in members:
        try:
            index, problem, result = results.get(timeout=2 * TIMEOUT_S)
        except queue.Empty:
            raise Late("members that do not come to their end") from None
        if problem:
            raise problem(f"member {index}:\n{result}")
        returned[index] = result
    for process in members:
        joined(process)
    return [returned[i] for i in range(count)]


def main(tests):
    names = {test.__name__: test for test in tests}
    if sys.argv[1:] == ["--list"]:
        print("\n".join(names))
        return
    address, name = sys.argv[1:]
    logging.basicConfig(level=logging.CRITICAL)
    serves(address)
    with judged():
        run(names[name], address, name)


def run(test, address, name):
    root = KazooClient(hosts=address, timeout=SESSION_S)
    root.start(timeout=TIMEOUT_S)
    base = f"{name}-{os.getpid()}"
    root.create(f"/{base}")
    root.stop()
    root.close()
    site = Site(address, base)
    try:
        test(site)
    finally:
        site.clear()
