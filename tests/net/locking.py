"""What the tests of `conclave lock` and its relatives share: a server, commands, and bodies that notice others."""
import ctypes
import fcntl
import json
import os
import signal
import subprocess
import threading
import time

from ensemble import TIMEOUT_S, crashes, eventually, own_host

CONCLAVE = os.environ["CONCLAVE"]
BODY = os.environ.get("LOCK_BODY", "")
KIND = os.environ.get("SERVER", "conclave")  # or zookeeper
REST_S = 0.05  # between programs that ask whether something has happened
CALM = "60s"  # of those that nobody is to lose
TTL = "3s"  # of sessions that are to be lost: as short as a busy machine can keep
FOREVER_MS = 3600000  # far longer than any test


def unhurried(words):
    """A session that nobody is to lose lasts, and a server is awaited: where nothing is said, both are short for a busy
    machine."""
    name, *rest = words
    own = rest[:rest.index("--")] if "--" in rest else rest
    lasting = "--ttl" if name in ("lock", "once", "elect") else "--session-timeout"
    options = [] if {lasting, "--session"} & set(own) else [lasting, CALM]
    options += [] if "--connect-timeout" in own else ["--connect-timeout", f"{TIMEOUT_S}s"]
    return [name, *options, *rest]


class Server:
    """One server, this one or ZooKeeper, which can be killed and started again with its data."""

    def __init__(self, directory, prefix=(), host=None):
        self.directory, self.prefix, self.host, self.port = directory, list(prefix), host or own_host(), 26011
        self.address = f"{self.host}:{self.port}"
        crashes.append(self.crashed)
        self.start()

    def crashed(self):
        asked = (None, 0, -signal.SIGKILL, -signal.SIGTERM)
        status = self.process.poll()
        return None if status in asked else f"the server ended with {status}; errors.server says why"

    def command(self):
        if KIND == "zookeeper":
            return ["tests/wire/reference", f"{self.directory}/zookeeper", str(self.port)]
        # It does not wait for the disk, which takes longer than the shortest sessions when others use it.
        return [CONCLAVE, "serve", "--data", f"{self.directory}/data", "--listen", self.address, "--http", "off",
                "--set", "tickTime=200", "--set", "maxClientCnxns=0", "--set", "maxSessionTimeout=60000",
                "--set", "forceSync=no"]

    def start(self):
        with open(f"{self.directory}/errors.server", "ab") as errors:
            self.process = subprocess.Popen([*self.prefix, *self.command()], stdout=subprocess.DEVNULL, stderr=errors,
                                            env={**os.environ, "TICK_TIME": "200", "MAX_SESSION_MS": "60000",
                                                 "ADDRESS": self.host})
        eventually(self.serves, "the server answers")

    def serves(self):
        done = subprocess.run([*self.prefix, CONCLAVE, "stat", "/", "--server", self.address, "--connect-timeout", "1s"],
                              capture_output=True, check=False)  # which is asked again
        return done.returncode == 0

    def kill(self):
        self.process.kill()
        self.process.wait()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.wait(TIMEOUT_S)


class Process(subprocess.Popen):
    def wait(self, timeout=TIMEOUT_S):
        return super().wait(timeout)


class Site:
    """A server, and a directory for bodies."""
    shared = None  # a server that outlives the site, which has a folder of it

    def __init__(self, directory):
        self.directory = directory
        self.server = self.shared or Server(directory)
        self.environment = self.surroundings()

    def surroundings(self):
        # Memory that nobody has written is not empty by chance.
        return {**os.environ, "CONCLAVE_SERVER": self.server.address, "MALLOC_PERTURB_": "165"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.shared:
            self.server.stop()

    def start(self, *words, **more):
        return Process([CONCLAVE, *unhurried(words)], env=self.environment, text=True, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, **more)

    def run(self, *words, **more):
        return subprocess.run([CONCLAVE, *unhurried(words)], env=self.environment, text=True, capture_output=True,
                              timeout=TIMEOUT_S, check=False, **more)

    def expect(self, code, *words, says=None, **more):
        done = self.run(*words, **more)
        assert done.returncode == code, f"{words}: exit status {done.returncode}, not {code}: {done.stderr}"
        if says is not None:
            assert says in done.stderr and done.stderr.count("\n") == 1, f"{words}: {done.stderr!r}"
        return done.stdout

    def body(self, ms, *how):
        return ["--", BODY, self.directory, str(ms), *how]

    def records(self):
        try:
            with open(f"{self.directory}/records") as file:
                return [line.split() for line in file]
        except FileNotFoundError:
            return []

    def begun(self):
        return sum(what in ("begin", "OVERLAP") for what, *_ in self.records())

    def await_body(self, count):
        eventually(lambda: self.begun() >= count, f"body {count} runs")

    def contenders(self, name, kind="locks"):
        time.sleep(REST_S)
        done = self.run("ls", "--json", f"/conclave/{kind}/{name}")
        return json.loads(done.stdout)["children"] if done.returncode == 0 else []

    def await_contenders(self, name, count):
        eventually(lambda: len(self.contenders(name)) == count, f"{count} want {name}")

    def check(self):
        """Never two at once, tokens strictly growing.  Returns how many there were."""
        begun = [record for record in self.records() if record[0] in ("begin", "OVERLAP")]
        assert all(what == "begin" for what, *_ in begun), f"two at once: {begun}"
        tokens = [int(token) for _, token, *_ in begun]
        assert all(one < other for one, other in zip(tokens, tokens[1:])), f"tokens do not grow: {tokens}"
        return len(begun)

    def holder(self):
        """The processes around the body that runs now: front, keeper, body; or nothing."""
        records = self.records()
        body = int(records[-1][2]) if records and records[-1][0] != "end" else 0
        keeper = parent_of(body)
        front = parent_of(keeper)
        return [front, keeper, body] if front else []

    def is_free(self):
        """Nothing of a body lives."""
        with open(f"{self.directory}/arena") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                return False

    def is_gone(self, path):
        time.sleep(REST_S)
        done = self.run("stat", path)
        assert done.returncode in (0, 1), done.stderr  # there is none, and not: nobody could be asked
        return done.returncode == 1


def together(*tests):
    """One test of several that leave their server alone: ZooKeeper takes long to start."""
    def undisturbed(directory):
        server = Site.shared = Server(directory)
        everything = server.address
        try:
            for test in tests:
                folder = f"{directory}/{test.__name__}"
                os.mkdir(folder)
                subprocess.run([CONCLAVE, "create", f"/{test.__name__}", "--server", everything], check=True,
                               stdout=subprocess.DEVNULL)
                server.address = f"{everything}/{test.__name__}"
                test(folder)
        finally:
            Site.shared = None
            server.stop()
    return undisturbed


def keeper_of(front):
    """The process that has the session: the only child of the front."""
    def find():
        found = children(front.pid)
        return found[0] if found else None
    return eventually(find, "there is a keeper")


def status_of(pid):
    """State, parent and so on; nothing if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def state_of(pid):
    return "".join(status_of(pid)[:1])


def parent_of(pid):
    """0 if there is no such process."""
    return int("".join(status_of(pid)[1:2]) or 0)


def children(parent):
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and parent_of(entry) == parent]


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


class Frozen:
    """One thread of a process, which waits for something, stands still meanwhile, as one does that gets no processor."""
    SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000  # of ptrace and wait

    def __init__(self, thread):
        self.thread = thread

    def ask(self, what):
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(what, self.thread, None, None) != 0:
            raise OSError(ctypes.get_errno(), f"ptrace {what:#x} of {self.thread}")

    def sleeps(self):
        with open(f"/proc/{self.thread}/wchan", encoding="ascii") as file:
            return "poll" in file.read()

    def __enter__(self):
        eventually(self.sleeps, f"{self.thread} waits")
        self.ask(self.SEIZE)
        self.ask(self.INTERRUPT)
        os.waitpid(self.thread, self.WALL)

    def __exit__(self, *_):
        self.ask(self.DETACH)


def in_threads(count, work):
    errors = []

    def run(number):
        try:
            work(number)
        except BaseException as error:  # pylint: disable=broad-except
            errors.append(error)
    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
