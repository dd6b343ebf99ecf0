"""Clients at work while servers fail, and the histories of their requests, for `conclave history` to judge.

Registers are nodes that are read, written and changed by version.  Reads after a sync have to be
linearizable, plain ones sequentially consistent: the former and all writes go into the strong history,
everything goes into another.  Locks are kazoo's recipe.  A request without an answer has no end."""
import json
import os
import random
import subprocess
import threading
import time

from kazoo import exceptions as error

from ensemble import TIMEOUT_S, eventually
from patience import LATE, Late, joined

UNANSWERED = (error.ConnectionLoss, error.SessionExpiredError, error.ConnectionClosedError,
              error.OperationTimeoutError)
KEYS = ["/r0", "/r1", "/r2"]
LOCK = "/lock"


class History:
    """Lines of one file."""

    def __init__(self, path):
        self.path = path
        self.mutex = threading.Lock()
        self.file = open(path, "w")
        self.known = 0

    def add(self, **fields):
        with self.mutex:
            self.known += "end" in fields
            print(json.dumps(fields), file=self.file)

    def judge(self, *options):
        self.file.flush()
        command = [os.environ["CONCLAVE"], "history", *options, self.path]
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * TIMEOUT_S)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
        return done.stdout


class Worker(threading.Thread):
    """A client that works until it is told to stop.  An answer that must not come makes it fail."""

    def __init__(self, load, name, zk):
        super().__init__(name=name, daemon=True)
        self.load, self.zk = load, zk
        self.chance = random.Random(name)
        self.trouble = None

    def run(self):
        try:
            while not self.load.ended:
                self.step()
                time.sleep(self.chance.uniform(0, 0.008))
        except Exception as problem:
            self.trouble = problem


class Registers(Worker):
    def step(self):
        key = self.chance.choice(KEYS)
        kind = self.chance.choice(["read", "plain", "cas", "cas", "write"])
        client = f"{self.name} {self.zk.client_id[0]:x}" if self.zk.client_id else self.name
        noted = {"client": client, "key": key, "start": time.monotonic_ns()}
        if kind in ("read", "plain"):
            self.read(noted, kind == "plain")
        else:
            self.write(noted, kind)

    def read(self, noted, plain):
        try:
            if not plain:
                self.zk.sync(noted["key"])
            data, stat = self.zk.get(noted["key"])
        except UNANSWERED:
            return
        noted.update(op="read", value=data.decode(), version=stat.version, end=time.monotonic_ns())
        self.load.all.add(**noted)
        if not plain or self.load.linearizable:
            self.load.strong.add(**noted)

    def write(self, noted, kind):
        value = f"{self.name}.{self.load.next_number()}"
        noted.update(op=kind, value=value)
        version = -1
        try:
            if kind == "cas":
                version = self.zk.get(noted["key"])[1].version
                noted.update(expected=version, start=time.monotonic_ns())
            stat = self.zk.set(noted["key"], value.encode(), version=version)
            noted.update(version=stat.version, end=time.monotonic_ns())
        except error.BadVersionError:
            noted.update(result="bad_version", end=time.monotonic_ns())
        except UNANSWERED:
            if kind == "cas" and version < 0:
                return  # nothing was sent
        self.load.all.add(**noted)
        self.load.strong.add(**noted)


class Locker(Worker):
    """Acquires the lock, holds it for a moment, releases it; each time as another client of the history."""

    def step(self):
        client = f"{self.name}.{self.load.next_number()}"
        began = time.monotonic_ns()
        noted = {"client": client, "key": LOCK, "start": began}
        session = self.zk.client_id
        lock = self.zk.Lock(LOCK, client)
        try:
            taken = lock.acquire(timeout=TIMEOUT_S)
            token = int(lock.node[-10:])
            ended = time.monotonic_ns()
        except (*UNANSWERED, error.LockTimeout):
            taken = False
        if not taken or session != self.zk.client_id:
            self.load.locks.add(**noted, op="acquire")
            self.load.locks.add(**noted, op="release")
            self.zk.retry(self.release_late, lock)
            return
        self.load.locks.add(**noted, op="acquire", token=token, end=ended)
        time.sleep(self.chance.uniform(0, 0.004))
        noted["start"] = time.monotonic_ns()
        try:
            lock.release()
            if session == self.zk.client_id:
                noted["end"] = time.monotonic_ns()
        except UNANSWERED:
            pass
        if "end" not in noted:  # the session may have ended at any time since
            noted["start"] = began
        self.load.locks.add(**noted, op="release")

    @staticmethod
    def release_late(lock):
        lock.is_acquired = lock.is_acquired or bool(lock.node)
        lock.release()


class Load:
    """Kazoo's clients, and those of the C library, which are a program of their own ($C_WORKER)."""

    def __init__(self, ensemble, directory, registers=3, lockers=2, c_clients=1, timeout=30,
                 linearizable=False):
        self.ensemble, self.timeout = ensemble, timeout
        self.linearizable = linearizable  # plain reads have to be linearizable, too
        self.all = History(f"{directory}/all.jsonl")
        self.strong = History(f"{directory}/strong.jsonl")
        self.locks = History(f"{directory}/locks.jsonl")
        self.mutex = threading.Lock()
        self.number = 0
        self.ended = False
        self.directory = directory
        self.prepare()
        self.workers = [Registers(self, f"kazoo{i}", self.client(i)) for i in range(registers)]
        self.workers += [Locker(self, f"locker{i}", self.client(i)) for i in range(lockers)]
        self.c_clients = [self.start_c_client(i) for i in range(c_clients)]
        for worker in self.workers:
            worker.start()

    def prepare(self):
        zk = self.ensemble.client()
        zk.create(LOCK)
        for key in KEYS:
            zk.create(key, b"first")
            self.all.add(op="initial", key=key, value="first", version=0)
            self.strong.add(op="initial", key=key, value="first", version=0)

    def client(self, index):
        members = self.ensemble.members
        index %= len(members)
        return self.ensemble.client(*members[index:], *members[:index], timeout=self.timeout)

    def start_c_client(self, index):
        hosts = ",".join(member.address for member in self.ensemble.members)
        command = ["setpriv", "--pdeathsig", "KILL", os.environ["C_WORKER"]]
        command += [hosts, f"c{index}", str(int(self.timeout * 1000)), *KEYS]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=open(self.c_lines(index), "w"))

    def c_lines(self, index):
        return f"{self.directory}/c{index}.jsonl"

    def next_number(self):
        with self.mutex:
            self.number += 1
            return self.number

    def progress(self):
        """The number of answers so far."""
        return self.strong.known + self.locks.known

    def finish(self):
        """Ends the work, when each client has had answers, and judges it."""
        for index in range(len(self.c_clients)):
            eventually(lambda index=index: self.c_answers(index) > 20, "the C client gets answers")
        eventually(lambda: self.strong.known > 60 and self.locks.known > 10, "there is something to judge")
        self.ended = True
        for worker in self.workers:
            joined(worker, 2 * TIMEOUT_S)
            assert worker.trouble is None, f"{worker.name}: {worker.trouble!r}"
        for index, process in enumerate(self.c_clients):
            process.communicate(timeout=2 * TIMEOUT_S)
            if process.returncode == LATE:
                raise Late("a C client waits for an answer")
            assert process.returncode == 0, f"a C client ended with {process.returncode}"
            self.take_c_lines(index)
        print(self.strong.judge(), self.all.judge("--sequential"), self.locks.judge())

    def c_answers(self, index):
        with open(self.c_lines(index)) as file:
            return sum('"end"' in line for line in file)

    def take_c_lines(self, index):
        with open(self.c_lines(index)) as file:
            lines = [json.loads(line) for line in file]
        assert sum("end" in line for line in lines) > 20, "a C client did nothing"
        for line in lines:
            self.all.add(**line)
            self.strong.add(**line)
