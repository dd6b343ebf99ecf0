"""An ensemble of real processes, for tests, and the choice of a test by its name.

    PROGRAM --list      the names of its tests
    PROGRAM NAME        runs one below $WORK, with $CONCLAVE as the server; exit status 0 when it passed, or as in
                        patience.py

Every test has an ensemble of its own, at a loopback address of its own.
"""
import datetime
import functools
import itertools
import logging
import os
import re
import signal
import subprocess
import sys
import time

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss
from kazoo.retry import KazooRetry

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../wire"))

import raw  # noqa: E402
from places import free_host  # noqa: E402
from patience import HANG_S, TIMEOUT_S, Late, crashes, eventually, judged, kept_directory  # noqa: E402

# A server that has no leader for two seconds ends the connections of its clients.  It logs that it has none a little
# later than it has.
LEADERLESS_S = 1.4
# Sessions may be short or very long; everything else has its default.
SETTINGS = ["--set", "tickTime=200", "--set", "maxSessionTimeout=600000"]


def trim(members, write, names=("log.0000000000000001",)):
    """Writes until those members have removed these files of their logs.  They do so after their second snapshot, and
    on a busy machine one snapshot may be made for as many writes as make several on an idle one."""
    def is_trimmed():
        write()
        return not any(set(names) & set(os.listdir(member.directory)) for member in members)
    eventually(is_trimmed, "the log is trimmed")


def connect(address, *arguments, **options):
    """A client of a server that serves, or will soon: on a busy machine it may be without a leader for a moment."""
    def attempt():
        try:
            return raw.Client(address, *arguments, **options)
        except raw.Lost:
            return None
    return eventually(attempt, f"{address} takes a client")


def without_election(ensemble, attempt, what, among=None):
    """Whether the attempt causes an election.  A machine that is too busy may cause one as well, so one attempt of
    several without any is enough."""
    for _ in range(10):
        view = ensemble.leader(among).follows()
        attempt()
        if ensemble.leader(among).follows() == view:
            return
    raise AssertionError(what)


def of_the_leader(ensemble, attempt):
    """Calls it with the leader, and again if it failed and there was an election meanwhile, as there may be on a busy
    machine."""
    for _ in range(10):
        leader = ensemble.leader()
        view = leader.follows()
        try:
            return attempt(leader)
        except (AssertionError, LookupError):  # some figures are a leader's only
            if ensemble.leader().follows() == view:
                raise
    raise Late("nobody leads for long")


def longer_and_longer(test):
    """Calls it with longer and longer timeouts of sessions, in ms, until it returns whether it could keep its session
    alive: on a busy machine it may come to its pings too late."""
    for timeout in (1000, 2000, 4000, 8000, 16000, 32000):
        if test(timeout):
            return
    raise Late("too late for every timeout")


class Traveller:
    """A client that pings, and goes to another server when its own does not answer or disconnects it, for as long as
    its session lasts (raw.Refused)."""

    def __init__(self, servers, timeout):
        self.servers, self.timeout = servers, timeout
        self.latest = time.monotonic()  # the session begins before its client hears of it
        self.client = connect(servers[0].address, timeout)
        self.late = 0

    def was_late(self):
        """It came to a ping, or to another server, so late that this may have cost its session."""
        return self.late > self.timeout / 8000

    def note(self, allowed):
        now = time.monotonic()
        self.late = max(self.late, now - self.latest - allowed)
        self.latest = now

    def rest_and_ping(self):
        third = self.timeout / 3000
        time.sleep(third)
        self.note(third)
        try:
            self.client.socket.settimeout(third)
            self.client.call(raw.PING)
            self.latest = time.monotonic()
        except raw.Lost:
            self.latest = time.monotonic()
            self.move()
            self.note(0)
        self.client.socket.settimeout(TIMEOUT_S)

    def move(self):
        old, turns = self.client, itertools.cycle([*self.servers[1:], self.servers[0]])

        def is_taken():
            try:
                self.client = raw.Client(next(turns).address, self.timeout, old.session, old.password, old.zxid)
            except raw.Lost:
                return False
            old.drop()
            return True
        eventually(is_taken, "a server takes it", pause_s=0.02)


def raises(error, call, *arguments, **options):
    try:
        result = call(*arguments, **options)
    except error:
        return
    raise AssertionError(f"no {error.__name__}, but {result!r}")


@functools.cache
def own_host():
    """A loopback address that no other test uses at the same time."""
    return free_host()


def write_key(path, secret):
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(secret)
    return path


class Member:
    """One server: its data and its addresses, over several incarnations.  The servers of a test share a key, unless
    their options say otherwise."""

    def __init__(self, number, host, directory, options, prefix):
        self.number = number
        self.address = f"{host}:{26010 + number}"
        self.peer = f"{host}:{26000 + number}"
        self.directory = f"{directory}/data{number}"
        self.errors = f"{directory}/errors{number}"
        self.options = list(options)
        self.key = write_key(f"{directory}/shared-key", "the secret of all servers here\n")
        self.prefix = prefix
        self.program = os.environ["CONCLAVE"]
        self.ensemble = ""
        self.log_start = 0  # where the log of this incarnation begins
        self.process = None

    def spawn(self):
        self.log_start = os.path.getsize(self.errors) if os.path.exists(self.errors) else 0
        command = [*self.prefix, "setpriv", "--pdeathsig", "KILL"]  # it ends with this test
        command += [self.program, "serve", "--id", str(self.number), "--ensemble", self.ensemble]
        command += ["--listen", self.address, "--http", "off", "--data", self.directory]
        if not any(option == "--insecure" or option.startswith("--peer-") for option in self.options):
            command += ["--peer-key", self.key]
        self.process = subprocess.Popen(
            [*command, *SETTINGS, *self.options], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=open(self.errors, "a"))

    def start(self):
        self.spawn()
        line = self.process.stdout.readline()
        assert line.startswith("conclave: serving clients"), f"server {self.number}: {self.log()}"
        return self

    def send(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.send(signal.SIGKILL)
        self.end()

    def end(self):
        """Waits for its end: the exit status."""
        self.process.wait(TIMEOUT_S)
        self.process.stdout.close()
        status, self.process = self.process.returncode, None
        return status

    def runs(self):
        return self.process is not None and self.process.poll() is None

    def log(self):
        with open(self.errors, errors="replace") as file:
            file.seek(self.log_start)
            return file.read()

    def follows(self):
        """Its term and the leader of that term, or None, by its log."""
        found = re.findall(r"(has no leader|(?:was elected|follows a) leader leader=(\d+)) term=(\d+)", self.log())
        if not found:
            return 0, None
        leader, term = found[-1][1:]
        return int(term), int(leader) if leader else None

    def leaderless_s(self):
        """The longest time without a leader, by its log."""
        found = re.findall(r"^(\S+)Z info this server (has no leader|was elected|follows)", self.log(), re.M)
        longest, since = 0, None
        for when, what in [*found, (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()), "is asked")]:
            now = datetime.datetime.fromisoformat(when)
            longest = max(longest, (now - since).total_seconds()) if since else longest
            since = (since or now) if what == "has no leader" else None
        return longest


ensembles = []  # of this test


class Ensemble:
    def __init__(self, directory, count=3, options=(), hosts=None, prefixes=None, kind=Member, first=1):
        host = own_host()
        hosts = hosts or [host] * count
        prefixes = prefixes or [()] * count
        self.members = [kind(first + i, hosts[i], directory, options, prefixes[i]) for i in range(count)]
        for member in self.members:
            member.ensemble = ",".join(f"{m.number}={m.peer}" for m in self.members)
        self.clients = []
        ensembles.append(self)
        crashes.append(self.crashed)

    def start(self):
        for member in self.members:
            member.spawn()
        for member in self.members:
            line = member.process.stdout.readline()
            assert line.startswith("conclave: serving clients"), f"server {member.number}: {member.log()}"
        self.leader()
        return self

    def running(self):
        return [member for member in self.members if member.runs()]

    def leader(self, among=None):
        """The leader, when all servers that run (or the given ones) agree on it."""
        among = among or self.running()

        def agreed():
            views = {member.follows() for member in among}
            return [m for m in among if views == {(m.follows()[0], m.number)}]
        return eventually(agreed, f"a leader of {[m.number for m in among]}")[0]

    def roles(self):
        """The leader and the others, of one moment."""
        leader = self.leader()
        return leader, [member for member in self.running() if member is not leader]

    def followers(self):
        return self.roles()[1]

    def client(self, *members, timeout=60, **options):
        """A kazoo client that tries these servers in this order.  It takes a third of the timeout without an answer
        for a connection that is lost."""
        hosts = ",".join(member.address for member in members or self.members)
        retry = KazooRetry(max_tries=-1, delay=0.02, backoff=2, max_delay=0.3)
        zk = KazooClient(hosts, timeout=timeout, randomize_hosts=False, connection_retry=retry, **options)
        self.clients.append(zk)
        zk.start(timeout=TIMEOUT_S)
        return zk

    def crashed(self):
        """Which servers have ended by themselves, and what they said."""
        ended = [m for m in self.members if m.process is not None and not m.runs()]
        return "\n".join(f"server {m.number} crashed: {m.log()[-1500:]}" for m in ended)

    def stop(self):
        """Ends everything; a server that has ended by itself fails the test."""
        for zk in self.clients:
            zk.stop()
            zk.close()
        crashed = self.crashed()
        for member in self.running():
            member.send(signal.SIGCONT)
            member.kill()
        assert not crashed, crashed


def main(tests):
    """Each test is called with a directory of its own."""
    names = {test.__name__: test for test in tests}
    if sys.argv[1:] == ["--list"]:
        print("\n".join(names))
        return
    (name,) = sys.argv[1:]
    faults = int(os.environ.get("FAULTS", "0"))
    logging.basicConfig(level=logging.CRITICAL)
    with judged(HANG_S + 20 * faults), kept_directory(name) as path:
        try:
            names[name](path)
        except BaseException as error:
            show(path)
            if is_connection_lost(error) and any(member.leaderless_s() > LEADERLESS_S for member in running()):
                raise Late("a server was without a leader for so long that it let its clients go") from error
            raise


def running():
    return [member for ensemble in ensembles for member in ensemble.running()]


def is_connection_lost(error):
    while error is not None and not isinstance(error, (raw.Lost, ConnectionLoss)):
        error = error.__cause__
    return error is not None


def show(directory):
    """The end of each server's log, for a test that failed."""
    for entry in sorted(os.listdir(directory)):
        if entry.startswith("errors"):
            with open(f"{directory}/{entry}", errors="replace") as file:
                print(f"---- {entry}", *file.read().splitlines()[-10:], sep="\n", file=sys.stderr)
