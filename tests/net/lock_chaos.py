"""Locks that many take again and again while everything around them is killed, stopped or cut off: never two at once.
HANDOFFS is how often they are taken, LOCKS how many there are, SEED chooses the faults; SERVER=zookeeper is against
ZooKeeper.  lock_partition.py has the same with a network that fails as well."""
import collections
import os
import random
import signal
import subprocess
import threading
import time

from ensemble import eventually, main
from locking import CONCLAVE, REST_S, TTL, Process, Site, in_threads
from partitions import CLIENTS

HANDOFFS = int(os.environ.get("HANDOFFS", "80"))
LOCKS = int(os.environ.get("LOCKS", "1" if HANDOFFS < 1000 else "32"))
WORKERS = 8 if LOCKS == 1 else 4
LONG_S = 4  # beyond TTL


class Lock(Site):
    """One of the site's locks, with a folder of its own for its bodies."""

    def __init__(self, site, number):
        self.name, self.directory = f"lock{number}", f"{site.directory}/{number}"
        self.server, self.environment = site.server, site.environment
        os.mkdir(self.directory)
        self.lines, self.read = [], 0

    def records(self):
        """Only what is new is read: there may be many."""
        try:
            with open(f"{self.directory}/records") as file:
                file.seek(self.read)
                whole = file.read().rpartition("\n")[0]
        except FileNotFoundError:
            whole = ""
        if whole:
            self.read += len(whole) + 1
            self.lines += [line.split() for line in whole.split("\n")]
        return self.lines

    def work(self, number):
        """A shell that takes the lock until it is told that all is over, and writes how each attempt has ended."""
        loop = 'while kill -0 $PPID && test ! -e "$0/over"; do "$@" 2>>"$0/errors"; echo $? >>"$0/ends"; done'
        how = ["deaf"] * (number % 2)
        body = self.body([0, 2, 50, 0][number % 4], *how)
        return Process(["sh", "-c", loop, self.directory, CONCLAVE, "lock", self.name, "--ttl", TTL, "--grace", "200ms", *body],
                       env=self.environment, stderr=subprocess.DEVNULL)

    def ends(self):
        with open(f"{self.directory}/ends") as file:
            return collections.Counter(file.read().split())

    def around_body(self):
        """Front and keeper of the body that runs now, held so that no process that gets their number is hit."""
        found = self.holder()[:2]
        try:
            held = [os.pidfd_open(pid) for pid in found]
        except ProcessLookupError:
            return []
        if held and found == self.holder()[:2] and all(self.is_ours(pid) for pid in found):
            return held
        for file in held:
            os.close(file)
        return []

    def is_ours(self, pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return self.directory.encode() in file.read()
        except OSError:
            return False


def send(file, number):
    try:
        signal.pidfd_send_signal(file, number)
    except ProcessLookupError:
        pass


class Chaos:
    def __init__(self, site, network=None):
        self.chance = random.Random(int(os.environ.get("SEED", "1")))
        self.site, self.network, self.one_at_a_time = site, network, threading.Lock()
        self.locks = [Lock(site, number) for number in range(LOCKS)]
        self.done = collections.Counter()

    # ---- Faults ----
    def hit_processes(self, lock, what):
        held = lock.around_body()
        if not held:
            return
        front, keeper = held
        if what in ("kill the front", "kill both"):
            send(front, signal.SIGKILL)
        if what in ("kill the keeper", "kill both"):
            send(keeper, signal.SIGKILL)
        stopped = {"stop the front": front, "stop the keeper": keeper}.get(what)
        if stopped:
            send(stopped, signal.SIGSTOP)
            time.sleep(LONG_S)
            send(stopped, signal.SIGCONT)
        for file in held:
            os.close(file)
        self.done[what] += 1

    def hit_server(self, what):
        server, network = self.site.server, self.network
        if what == "kill the server":
            server.kill()
            server.start()
            return
        if what == "stop the server":
            begin, end = server.pause, server.go_on
        else:
            cuts = [lambda: network.partition([1], [CLIENTS]), lambda: network.cut(1, CLIENTS), lambda: network.cut(CLIENTS, 1)]
            begin, end = self.chance.choice(cuts), network.heal
        begin()
        time.sleep(self.chance.choice([0.2, 1.5, LONG_S]))
        end()

    def fault(self, lock):
        of_processes = ["kill the front", "kill the keeper", "kill both", "stop the keeper", "stop the front"]
        of_server = ["kill the server", "stop the server"] + ["cut"] * (self.network is not None)
        weights = [1] * len(of_processes) + [1.5 / len(self.locks)] * len(of_server)
        (what,) = self.chance.choices(of_processes + of_server, weights)
        if what in of_processes:
            self.hit_processes(lock, what)
            return
        with self.one_at_a_time:
            self.hit_server(what)
            self.done[what] += 1

    # ---- The test ----
    def trouble(self, number):
        lock, share = self.locks[number], -(-HANDOFFS // len(self.locks))

        def goes_on(count):
            time.sleep(REST_S)
            return lock.begun() >= count
        eventually(lambda: goes_on(1), "it begins")
        while lock.begun() < share:
            self.fault(lock)
            more = lock.begun() + self.chance.choice([3, 10, 30])
            eventually(lambda m=more: goes_on(m), "work goes on")

    def run(self):
        workers = [lock.work(number) for lock in self.locks for number in range(WORKERS)]
        try:
            in_threads(len(self.locks), self.trouble)
        finally:
            for lock in self.locks:
                with open(f"{lock.directory}/over", "w"):
                    pass
            for worker in workers:
                worker.wait()
        total = sum(lock.check() for lock in self.locks)
        ends = sum((lock.ends() for lock in self.locks), collections.Counter())
        print(f"{total} hand-offs of {len(self.locks)} locks; faults: {dict(self.done)}; exit statuses: {dict(ends)}")
        assert total >= HANDOFFS


def chaos(directory):
    with Site(directory) as site:
        Chaos(site).run()


if __name__ == "__main__":
    main([chaos])
