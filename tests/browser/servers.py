"""Ensembles whose pages a browser looks at, and processes that hold locks in them.  The program that imports this is called with
that of the server as its first argument."""
import os
import subprocess
import sys

CONCLAVE = os.environ["CONCLAVE"] = os.path.abspath(sys.argv[1])
sys.path.insert(1, os.path.join(os.path.dirname(__file__), "..", "net"))

from kazoo.exceptions import KazooException  # noqa: E402

from ensemble import TIMEOUT_S, Ensemble, eventually, of_the_leader, own_host, raw, write_key  # noqa: E402, F401

TOKEN = "the-secret-of-the-operators-of-this-test"
PORT = 26080  # of each one's page: members have an address each
WRITE = ["--web-write"]


def started(directory, *quarters):
    """Each member has an address in another quarter of those of loopback.  The third, if there is one, takes no changes from its page."""
    first, rest = own_host().split(".", 2)[1:]
    ensemble = Ensemble(directory, count=len(quarters), hosts=[f"127.{int(first) % 64 + 64 * quarter}.{rest}" for quarter in quarters])
    token = write_key(f"{directory}/token", TOKEN + "\n")
    for member in ensemble.members:
        member.options += ["--http", f"{host_of(member)}:{PORT}", "--admin-token-file", token]
        if member.number < 3:
            member.options += WRITE
    return ensemble.start()


def host_of(member):
    return member.address.split(":")[0]


def base(member):
    return f"http://{host_of(member)}:{PORT}/"


class Held:
    """Processes of `conclave lock` and the like, which end with this."""

    def __init__(self, ensemble):
        self.servers, self.running = ",".join(member.address for member in ensemble.members), []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.running:
            process.terminate()
        for process in self.running:
            process.wait(TIMEOUT_S)

    def start(self, *words):
        self.running.append(subprocess.Popen(["setpriv", "--pdeathsig", "TERM", CONCLAVE, words[0], "--server", self.servers, "--ttl", "60s", *words[1:],
                                              "--", "sleep", "100000"], stdin=subprocess.DEVNULL))
        return self.running[-1]


def wait_in_vain(lock):
    """For a thread: until it is called off, or its client is closed."""
    try:
        lock.acquire()
    except KazooException:
        pass
