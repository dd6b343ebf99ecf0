"""An ensemble of real processes, for tests, and the choice of a test by its name.

    PROGRAM --list      the names of its tests
    PROGRAM NAME        runs one below $WORK, with $CONCLAVE as the server; exit status 0 when it passed

Every test has an ensemble of its own, at a loopback address of its own.
"""
import faulthandler
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from kazoo.client import KazooClient
from kazoo.retry import KazooRetry

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../wire"))

PATIENCE = 20  # seconds that nothing here may need; only what is broken waits so long
# Sessions may be short; the rest is as it comes.
SETTINGS = ["--set", "tickTime=200", "--set", "maxSessionTimeout=60000"]


def eventually(condition, what, patience=PATIENCE):
    """Waits until it holds, and returns what it returned."""
    deadline = time.monotonic() + patience
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {patience} s: {what}"
        time.sleep(0.005)
    return found


def raises(error, call, *arguments, **options):
    try:
        result = call(*arguments, **options)
    except error:
        return
    raise AssertionError(f"no {error.__name__}, but {result!r}")


def own_host():
    """A loopback address that no other test uses at the same time."""
    pid = os.getpid()
    return f"127.{64 + (pid >> 16 & 63)}.{pid >> 8 & 255}.{pid & 255}"


class Member:
    """One server: its data and its addresses, over several lives."""

    def __init__(self, number, host, directory, options, prefix):
        self.number = number
        self.address = f"{host}:{26010 + number}"
        self.peer = f"{host}:{26000 + number}"
        self.directory = f"{directory}/data{number}"
        self.errors = f"{directory}/errors{number}"
        self.options = list(options)
        self.prefix = prefix
        self.ensemble = ""
        self.life_at = 0  # where what it said in this life begins
        self.process = None

    def spawn(self):
        self.life_at = os.path.getsize(self.errors) if os.path.exists(self.errors) else 0
        command = [*self.prefix, "setpriv", "--pdeathsig", "KILL"]  # whatever ends this test ends it
        command += [os.environ["CONCLAVE"], "serve", "--id", str(self.number), "--ensemble", self.ensemble]
        command += ["--listen", self.address, "--http", "off", "--data", self.directory]
        self.process = subprocess.Popen(
            [*command, *SETTINGS, *self.options], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=open(self.errors, "a"))

    def start(self):
        self.spawn()
        line = self.process.stdout.readline()
        assert line.startswith("conclave: serving clients"), f"server {self.number}: {self.said()}"
        return self

    def send(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.send(signal.SIGKILL)
        self.end()

    def end(self):
        """Waits for its end: the exit status."""
        self.process.wait(PATIENCE)
        self.process.stdout.close()
        status, self.process = self.process.returncode, None
        return status

    def runs(self):
        return self.process is not None and self.process.poll() is None

    def said(self):
        with open(self.errors, errors="replace") as file:
            file.seek(self.life_at)
            return file.read()

    def follows(self):
        """The term it is in and who leads it, 0 for nobody, by what it said last."""
        found = re.findall(r"(no leader|(?:leading|following) leader=(\d+)) term=(\d+)", self.said())
        return (int(found[-1][2]), int(found[-1][1] or 0)) if found else (0, 0)


class Ensemble:
    def __init__(self, directory, count=3, options=(), hosts=None, prefixes=None):
        host = own_host()
        hosts = hosts or [host] * count
        prefixes = prefixes or [()] * count
        self.members = [Member(i + 1, hosts[i], directory, options, prefixes[i]) for i in range(count)]
        for member in self.members:
            member.ensemble = ",".join(f"{m.number}={m.peer}" for m in self.members)
        self.clients = []

    def start(self):
        for member in self.members:
            member.spawn()
        for member in self.members:
            line = member.process.stdout.readline()
            assert line.startswith("conclave: serving clients"), f"server {member.number}: {member.said()}"
        self.leader()
        return self

    def running(self):
        return [member for member in self.members if member.runs()]

    def leader(self, among=None):
        """Who leads all of them, when all that run (or those that are given) agree."""
        among = among or self.running()

        def agreed():
            views = {member.follows() for member in among}
            return [m for m in among if views == {(m.follows()[0], m.number)}]
        return eventually(agreed, f"a leader of {[m.number for m in among]}")[0]

    def followers(self):
        leader = self.leader()
        return [member for member in self.running() if member is not leader]

    def client(self, *members, timeout=20, **options):
        """A kazoo client that knows these servers and tries them in this order."""
        hosts = ",".join(member.address for member in members or self.members)
        retry = KazooRetry(max_tries=-1, delay=0.02, backoff=2, max_delay=0.3)
        zk = KazooClient(hosts, timeout=timeout, randomize_hosts=False, connection_retry=retry, **options)
        self.clients.append(zk)
        zk.start(timeout=PATIENCE)
        return zk

    def stop(self):
        """All that is left; a server that fell by itself is a failure of the test."""
        for zk in self.clients:
            zk.stop()
            zk.close()
        fallen = [m for m in self.members if m.process is not None and not m.runs()]
        for member in self.running():
            member.send(signal.SIGCONT)
            member.kill()
        assert not fallen, "\n".join(f"server {m.number} fell: {m.said()[-1500:]}" for m in fallen)


def main(tests):
    """Each test is called with a directory of its own."""
    names = {test.__name__: test for test in tests}
    if sys.argv[1:] == ["--list"]:
        print("\n".join(names))
        return
    (name,) = sys.argv[1:]
    turns = int(os.environ.get("TURNS", "0"))
    faulthandler.dump_traceback_later(4 * PATIENCE + 6 * turns, exit=True)
    logging.basicConfig(level=logging.CRITICAL)
    with tempfile.TemporaryDirectory(dir=os.environ["WORK"], prefix=name) as directory:
        try:
            names[name](directory)
        except BaseException:
            show(directory)
            raise


def show(directory):
    """What the servers said, for whoever looks at a failed test."""
    for entry in sorted(os.listdir(directory)):
        if entry.startswith("errors"):
            with open(f"{directory}/{entry}", errors="replace") as file:
                print(f"---- {entry}", *file.read().splitlines()[-25:], sep="\n", file=sys.stderr)
