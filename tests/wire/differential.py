#!/usr/bin/env python3
"""Two servers of the ZooKeeper protocol get the same random requests, and every answer is compared.

    differential.py HOST:PORT HOST:PORT [--seed N] [--steps N] [--rounds N] [--tamper WHAT]

The first is ZooKeeper.  Both must be fresh: they start from the same tree, and nobody else may
use them meanwhile.  Requests go out one step at a time over all connections.  After each step every connection
is pinged, so that all effects of the step have arrived before the next one.

What no two servers share is mapped: session ids one to one; zxids of changes one to one and in the same order;
the zxids of reply headers by the changes up to them (a failed write may take a zxid or not);
a time must belong to its zxid and be about now.  Everything else must be equal.

Exit status: 0 no difference, 1 a difference (with all that is needed to repeat it), or as in patience.py.
"""

import argparse
import bisect
import collections
import dataclasses
import itertools
import sys
import time

from generator import Generator, resolve
from patience import TIMEOUT_S, Late, eventually, judged
from zkwire import Closed, Connected, Connection, Event, Garbage, Reply, Silence
from zkwire import HeaderZxid, Password, SessionId, Time, Zxid

CLOSING_S = TIMEOUT_S - 1  # for the end of a connection that may be closed; one that stays open costs so much
MEMORY = 20  # steps shown before a difference
NO_WATCHER = -121
WRITES = {"create", "create2", "createContainer", "createTTL", "delete", "setData", "setACL"}


class Difference(Exception):
    pass


def forgive(one, other):
    """Where ZooKeeper, the first server, is known to be wrong, takes over the answer of the second."""
    if one.operation == "checkWatches" and (one.err, other.err) == (0, NO_WATCHER):
        one.err, one.body = other.err, other.body  # it asks whether anybody watches the node, not this client


def settled(acl):
    """The list with neighbours sorted that one `auth` may have become, in whatever order."""
    runs = itertools.groupby(acl, key=lambda entry: (entry["perms"], entry["scheme"]))
    return [entry for _, run in runs for entry in sorted(run, key=lambda entry: entry["id"])]


class Zxids:
    """Which zxid of one server is which of the other: learnt as they appear, in the same order on both."""

    def __init__(self):
        self.pairs = []  # sorted by either side
        self.keys = ([], [])

    def match(self, one, other):
        at, at_other = (bisect.bisect_left(keys, z) for keys, z in zip(self.keys, (one, other)))
        known = at < len(self.pairs) and self.pairs[at][0] == one
        known_other = at_other < len(self.pairs) and self.pairs[at_other][1] == other
        if at != at_other or known != known_other or (one <= 0) != (other <= 0):
            return False
        if not known:
            self.pairs.insert(at, (one, other))
            self.keys[0].insert(at, one)
            self.keys[1].insert(at, other)
        return True

    def match_header(self, one, other):
        if one <= 0 or other <= 0:
            return one == other
        return bisect.bisect_right(self.keys[0], one) == bisect.bisect_right(self.keys[1], other)


class Comparer:
    """Compares the messages of the two servers; remembers which ids correspond."""

    def __init__(self):
        self.zxids = Zxids()
        self.sessions = ({0: 0}, {0: 0})  # from each server's to the other's
        self.passwords = {SessionId(0): (bytes(16), bytes(16))}  # of the first server's sessions
        self.times = ({}, {})  # zxid -> time of the change
        self.started_ms = time.time() * 1000

    def compare(self, one, other, where):
        if type(one) is not type(other):
            raise Difference(f"{where}: {one!r} and {other!r}")
        if isinstance(one, Connected):
            self.compare_passwords(one, other, where)
        if isinstance(one, Reply) and isinstance(other, Reply):
            forgive(one, other)
        if dataclasses.is_dataclass(one):
            self.compare(vars(one), vars(other), f"{where} {type(one).__name__}")
        elif isinstance(one, dict):
            self.compare_fields(one, other, where)
        elif isinstance(one, list):
            self.equal(len(one), len(other), f"{where}: number of elements")
            for at, (left, right) in enumerate(zip(one, other)):
                self.compare(left, right, f"{where}[{at}]")
        elif isinstance(one, Zxid):
            self.equal(True, self.zxids.match(one, other), f"{where}: zxids {one} and {other} in order")
        elif isinstance(one, SessionId):
            self.equal(True, self.match_session(one, other), f"{where}: same session {one:#x} and {other:#x}")
        elif not isinstance(one, (HeaderZxid, Password, Time)):  # these are judged with what is around them
            self.equal(one, other, where)

    @staticmethod
    def equal(one, other, where):
        if one != other:
            raise Difference(f"{where}: {one!r} and {other!r}")

    def compare_fields(self, one, other, where):
        self.equal(list(one), list(other), f"{where}: fields")
        for name in one:
            pair = (one[name], other[name])
            if name == "acl":
                pair = (settled(acl) for acl in pair)
            self.compare(*pair, f"{where}.{name}")
        if "czxid" in one:
            for side, stat in enumerate((one, other)):
                self.check_time(side, stat["czxid"], stat["ctime"], f"{where}.ctime")
                self.check_time(side, stat["mzxid"], stat["mtime"], f"{where}.mtime")

    def check_time(self, side, zxid, moment, where):
        known = self.times[side].setdefault(zxid, moment)
        about_now = self.started_ms - 1000 <= moment <= time.time() * 1000 + 1000 if zxid else moment == 0
        if known != moment or not about_now:
            raise Difference(f"{where}: {moment} of zxid {zxid}, server {side + 1}")

    def match_session(self, one, other):
        there, back = self.sessions
        return there.setdefault(one, other) == other and back.setdefault(other, one) == one

    def compare_passwords(self, one, other, where):
        both = (one.password, other.password)
        self.equal([16, 16], [len(password) for password in both], f"{where}: lengths of passwords")
        self.equal(self.passwords.setdefault(one.session, both), both, f"{where}: the session's passwords")

    def compare_headers(self, one, other, alone, where):
        """A reply's zxid: that of the write it answers when nothing else went on, else any from it on."""
        if alone and one.operation in WRITES and one.err == 0:
            matched = self.zxids.match(one.zxid, other.zxid)
        elif alone or min(one.zxid, other.zxid) <= 0:
            matched = self.zxids.match_header(one.zxid, other.zxid)
        else:
            matched = True
        self.equal(True, matched, f"{where}: header zxids {one.zxid} and {other.zxid} in order")


class Server:
    """One of the two: its connections, by client, and what came on them during a step."""

    def __init__(self, side, address, tamper=None):
        host, _, port = address.rpartition(":")
        self.side, self.host, self.port = side, host, int(port)
        self.connections = {}
        self.heard = {}
        self.highest = {}
        self.tamper = tamper or (lambda message: message)

    def wait(self):
        """Until it gives out sessions, which is later than it listens.  The session is closed again."""
        def gives_sessions():
            try:
                connection = Connection(self.host, self.port)
                connection.send_connect()
                if isinstance(connection.receive(5), Connected):  # what comes before it is ready is not answered
                    connection.send_request(1, "closeSession", b"")
                    connection.receive()
                    return True
            except OSError:
                pass
            return False
        eventually(gives_sessions, f"a server at {self.host}:{self.port}", pause_s=0.05)

    def start(self, step):
        self.heard = collections.defaultdict(list)
        if step.hang_up:
            self.connections.pop(step.client).close()
        if step.connect is not None:
            if step.client in self.connections:
                self.connections[step.client + " before"] = self.connections.pop(step.client)
            self.connections[step.client] = self.dial()
            arguments = {name: resolve(value, self.side) for name, value in step.connect.items()}
            self.connections[step.client].send_connect(**arguments)
            self.highest[step.client] = 0
        for request in step.requests:
            body = request.body(self.side)
            self.connections[step.client].send_request(request.xid, request.operation, body, request.code)
        if step.bytes:
            self.connections[step.client].send_bytes(step.bytes)

    def dial(self):
        try:
            return Connection(self.host, self.port)
        except OSError as error:
            raise Difference(f"server {self.side + 1} is gone: {error}") from error

    def finish(self, step):
        """Waits for the answers to the step."""
        answers = (step.connect is not None) + len(step.requests)
        while answers and step.client in self.connections:
            answers -= not isinstance(self.await_message(step.client), Event)
        for name in step.closing:
            while name in self.connections and not isinstance(self.hear(name, CLOSING_S), Silence):
                pass

    def ping(self):
        for connection in self.connections.values():
            connection.send_request(-2, "ping", b"")

    def settle(self):
        """Waits for the pings, after which no effect of the step can arrive."""
        for name in list(self.connections):
            while name in self.connections:
                if getattr(self.await_message(name), "operation", None) == "ping":
                    break

    def await_message(self, name):
        """A message that must come: two servers that both send nothing would not be compared."""
        try:
            return self.hear(name, TIMEOUT_S)
        except TimeoutError:
            raise Late(f"{name}: server {self.side + 1} does not answer") from None

    def hear(self, name, timeout_s):
        message = self.tamper(self.connections[name].receive(timeout_s))
        if message is not None and not isinstance(message, Silence):
            self.heard[name].append(message)
        if isinstance(message, (Closed, Garbage)):
            self.connections.pop(name).close()
        if isinstance(message, Reply) and message.zxid > 0:
            if message.zxid < self.highest.get(name, 0):
                raise Difference(f"{name}: the zxid goes back to {message.zxid} on server {self.side + 1}")
            self.highest[name] = message.zxid
        return message


class Run:
    def __init__(self, servers, comparer):
        self.servers, self.comparer = servers, comparer
        self.counts = collections.Counter()
        self.errors = collections.Counter()
        self.events = 0
        self.history = collections.deque(maxlen=MEMORY)
        self.steps = 0

    def play(self, generator, steps):
        for step in itertools.chain((generator.next() for _ in range(steps)), generator.epilogue()):
            self.steps += 1
            self.history.append(str(step))
            pairs = self.step(step)
            generator.observe(step, pairs, step.client in self.servers[0].connections)

    def step(self, step):
        for phase in (
            lambda server: server.start(step),
            lambda server: server.finish(step),
            lambda server: server.ping(),
            lambda server: server.settle(),
        ):
            for server in self.servers:
                phase(server)
        one, other = (server.heard for server in self.servers)
        for name in sorted(one.keys() | other.keys()):
            self.compare(step, name, one[name], other[name])
        return self.answers(step, one, other)

    def compare(self, step, name, one, other):
        if step.ends_session:  # its ephemeral nodes go all at once, in no order
            one, other = (sorted(said, key=by_event) for said in (one, other))
        for left, right in itertools.zip_longest(one, other):
            self.comparer.compare(left, right, name)
            if isinstance(left, Reply):
                self.comparer.compare_headers(left, right, len(step.requests) < 2, name)
                self.count(left)
            self.events += isinstance(left, Event)

    def count(self, reply):
        """For the summary; the barrier's own pings, which are as good as all, are left out."""
        if reply.operation == "ping" and reply.err == 0:
            return
        self.counts[reply.operation] += 1
        results = reply.body if isinstance(reply.body, list) else []
        self.errors.update([result["err"] for result in results if not result["done"]] or [reply.err])

    @staticmethod
    def answers(step, one, other):
        """The pairs of answers to the step's own requests, without the ping after them."""
        lists = [[m for m in heard[step.client] if isinstance(m, (Connected, Reply))] for heard in (one, other)]
        return list(zip(*lists))[: (step.connect is not None) + len(step.requests)]

    def report(self, difference):
        print(f"Difference in step {self.steps}: {difference}")
        for number, text in enumerate(self.history, self.steps - len(self.history) + 1):
            print(f"  step {number}  {text}")
        for server in self.servers:
            print(f"Server {server.side + 1} ({server.host}:{server.port}) sent:")
            for name, messages in sorted(server.heard.items()):
                for message in messages:
                    print(f"  to {name}: {message}")

    def summary(self):
        operations = " ".join(f"{name}:{count}" for name, count in sorted(self.counts.items()))
        errors = " ".join(f"{code}:{count}" for code, count in sorted(self.errors.items()))
        print(f"no difference in {self.steps} steps, {self.events} events; {operations}; errors {errors}")


def by_event(message):
    return (0, repr(message)) if isinstance(message, Event) else (1, "")


def tampering(what, after):
    """Spoils one message of the second server, to show that this test can fail."""
    seen = 0

    def tamper(message):
        nonlocal seen, what
        seen += 1
        if seen < after or what is None:
            return message
        spoilt = spoil(what, message)
        what = None if spoilt is not message else what
        return spoilt

    return tamper


def spoil(what, message):
    stat = isinstance(message, Reply) and isinstance(message.body, dict) and message.body.get("stat")
    if what == "event" and isinstance(message, Event):
        return None
    if what == "path" and isinstance(message, Event):
        return dataclasses.replace(message, path=message.path + "x")
    if what == "error" and isinstance(message, Reply) and message.err == -101:
        return dataclasses.replace(message, err=-102)
    if what == "zxid" and stat and message.operation in WRITES:
        return dataclasses.replace(message, zxid=HeaderZxid(message.zxid - 1))
    if what in ("cversion", "pzxid", "ctime", "ephemeralOwner") and stat and stat[what]:
        kind = type(stat[what])
        return dataclasses.replace(message, body=message.body | {"stat": stat | {what: kind(stat[what] + 1)}})
    return message


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs=2, metavar="HOST:PORT")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1500, help="in each round (1500)")
    parser.add_argument("--rounds", type=int, default=4, help="each with its own seed: N, N+1, ... (4)")
    spoilable = "spoil one answer: event, path, error, zxid or a Stat's field"
    parser.add_argument("--tamper", metavar="WHAT", help=spoilable)
    options = parser.parse_args()

    tamper = tampering(options.tamper, 200) if options.tamper else None
    servers = [Server(0, options.servers[0]), Server(1, options.servers[1], tamper)]
    for server in servers:
        server.wait()
    run = Run(servers, Comparer())
    for seed in range(options.seed, options.seed + options.rounds):
        try:
            run.play(Generator(seed, run.comparer.zxids.pairs), options.steps)
        except Difference as difference:
            run.report(difference)
            # A round goes on from where the one before it has left the servers.
            rounds = seed - options.seed + 1
            print(f"To repeat it: --seed {options.seed} --steps {options.steps} --rounds {rounds}")
            return 1
    run.summary()
    return 0


if __name__ == "__main__":
    with judged(None):  # every answer has its own limit
        sys.exit(main())
