"""Limits: file descriptors that run out, a disk that stalls, clients that do not read.

    limits.py --list        the names of the tests
    limits.py NAME          runs one below $WORK, with $CONCLAVE as the server
"""
import os
import re
import socket
import subprocess
import sys
import threading
import time

import raw
from patience import TIMEOUT_S, Late, crashes, eventually, judged, kept_directory
from places import free_host


class Server:
    def __init__(self, directory, *options, files=None):
        self.errors = f"{directory}/errors"
        command = ["prlimit", f"--nofile=32:{files}"] if files else []
        command += ["setpriv", "--pdeathsig", "KILL"]  # it ends with this test
        command += [os.environ["CONCLAVE"], "serve", "--data", f"{directory}/data", "--listen", "127.0.0.1:0"]
        environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}  # a traced process cannot check for leaks
        self.process = subprocess.Popen(
            [*command, "--http", "off", *options], text=True, env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=open(self.errors, "w"))
        line = self.process.stdout.readline()
        serving = re.match(r"conclave: serving clients on ([0-9.:]+)", line)
        assert serving, self.log()
        self.address = serving[1]
        self.is_ending = False
        crashes.append(self.crashed)

    def crashed(self):
        ended = not self.is_ending and self.process.poll() is not None
        return f"the server ended with {self.process.returncode}: {self.log()[-1500:]}" if ended else None

    def log(self):
        with open(self.errors) as file:
            return file.read()

    def end(self):
        """Asks it to end, and waits."""
        self.is_ending = True
        self.process.terminate()
        assert self.process.wait(TIMEOUT_S) == 0, self.log()
        self.process.stdout.close()

    def slow_disk(self, seconds, which):
        """Those syncs take that long, until the tracer ends."""
        tracer = subprocess.Popen(
            ["strace", "-f", "-q", "-o", "/dev/null", "-e", "trace=fdatasync", "-e",
             f"inject=fdatasync:delay_enter={int(seconds * 1e6)}:when={which}", "-p", str(self.process.pid)])

        def is_attached():
            assert tracer.poll() is None, "strace cannot attach itself"
            return self.is_traced()
        eventually(is_attached, "strace attaches itself", pause_s=0.02)
        return tracer

    def is_traced(self):
        """All of its threads."""
        tasks = f"/proc/{self.process.pid}/task"
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/status") as status:
                if "TracerPid:\t0\n" in status.read():
                    return False
        return True


def descriptors_run_out(directory):
    """Clients may use up their share of descriptors, and not what the server needs for itself."""
    files = 200
    server = Server(directory, "--set", "maxClientCnxns=0", "--set", "preAllocSize=1", files=files)
    ordinary = raw.Client(server.address)
    assert ordinary.create("/n") == 0
    crowd = []
    for _ in range(2 * files):
        crowd.append(raw.dial(server.address))
    for version in range(100):  # every other write needs a new file
        assert ordinary.set("/n", b"x" * 700, version) == 0
    for connection in crowd:
        connection.close()

    def accepted():
        try:
            return raw.Client(server.address)
        except raw.Lost:
            return None
    other = eventually(accepted, "a client is accepted again", pause_s=0.05)
    assert other.get("/n")[1] == 100
    assert server.log().count("connections are refused") == 1, server.log()
    server.end()


def disk_stalls(directory, *options):
    """While a server waits for its disk it hears from no client: no session expires for that."""
    server = Server(directory, "--set", "tickTime=500", "--set", "maxSessionTimeout=600000",
                    "--set", "fsync.waitmicros=99000000", *options)
    # A client that comes to its pings too late, because the machine is busy, tries again with a longer session.
    for attempt, timeout in enumerate((3000, 6000, 12000, 24000)):
        if sessions_survive(server, f"/{attempt}", timeout):
            break
    else:
        raise Late("too late for every session")
    server.process.kill()
    server.process.wait()


def sessions_survive(server, path, timeout):
    """Whether this process was quick enough for a session with that timeout."""
    gaps, last = [], time.monotonic()  # sessions begin before their clients hear of it
    heard = last  # from the writer
    client = raw.Client(server.address, timeout=timeout)
    writer = raw.Client(server.address, timeout=timeout)
    silent = raw.Client(server.address, timeout=1000)
    stopping = threading.Event()

    def note():
        nonlocal last
        now = time.monotonic()
        gaps.append(now - last)
        last = now

    def ping():
        try:
            while not stopping.wait(0.15):
                client.send(raw.PING)
                note()
        except raw.Lost:
            pass

    def expired(whose):
        return f"session=0x{whose.session:x}" in server.log()
    pinging = threading.Thread(target=ping)
    pinging.start()
    tracer = server.slow_disk(2 * timeout / 1000 + 1, 1)
    gaps.append(time.monotonic() - heard)
    try:
        writer.send(raw.CREATE, raw.create_record(path))  # and waits without a ping, as the C client does
        assert writer.receive()[1] == 0
        resumed = last = heard = time.monotonic()  # the writer is late as well if the tracer ends late
        tracer.terminate()
        tracer.wait(TIMEOUT_S)
        while not expired(silent) or time.monotonic() - resumed < timeout / 1000:
            gaps.append(time.monotonic() - heard)
            heard = time.monotonic()
            assert writer.exists(path)
            if time.monotonic() - resumed > TIMEOUT_S:
                raise Late("no session ever expires")  # that of the silent client has to
            time.sleep(0.15)
        gaps.append(time.monotonic() - heard)
        stopping.set()
        pinging.join()
        client.send(raw.EXISTS, raw.path_record(path))
        while client.receive()[0] < 0:  # pings
            pass
        assert not expired(client) and not expired(writer), server.log()
        return True
    except Late:
        raise
    except (AssertionError, raw.Lost):
        note()
        assert max(gaps) > timeout / 3000, server.log()
        return False
    finally:
        stopping.set()
        pinging.join()
        tracer.terminate()
        tracer.wait(TIMEOUT_S)


def disk_stalls_at_a_member(directory):
    disk_stalls(directory, "--id", "1", "--ensemble", f"1={free_host()}:26001", "--insecure")


def ends_with_a_slow_disk(directory):
    """Requests that arrived before the server is told to end are answered, however slow the disk is."""
    server = Server(directory, "--set", "fsync.waitmicros=0")
    client = raw.Client(server.address)
    assert client.create("/n") == 0
    tracer = server.slow_disk(1, "1+")
    for i in range(3):
        client.send(raw.CREATE, raw.create_record(f"/n/{i}"))
        time.sleep(0.2)
    server.is_ending = True
    server.process.terminate()
    for i in range(3):
        assert client.receive()[1] == 0, i
    assert server.process.wait(TIMEOUT_S) == 0, server.log()
    tracer.wait(TIMEOUT_S)


def snapshot_fails(directory):
    """A snapshot that cannot be written is tried again, without further writes."""
    server = Server(directory, "--set", "snapCount=10")
    client = raw.Client(server.address)
    obstacle = f"{directory}/data/new.snapshot"
    os.mkdir(obstacle)
    for i in range(12):
        assert client.create(f"/{i}") == 0
    eventually(lambda: "the snapshot was not written" in server.log(), "it says so", pause_s=0.02)
    os.rmdir(obstacle)

    def is_there():
        assert client.exists("/0")  # the server checks when it has something to do
        return any(name.startswith("snapshot.") for name in os.listdir(f"{directory}/data"))
    eventually(is_there, "a snapshot", pause_s=0.5)
    server.end()
    assert server.log().count("the snapshot was not written") == 1, server.log()


def last_answer_is_not_read(directory):
    """A connection that ends when all is sent does not stay because its client reads nothing."""
    server = Server(directory, "--set", "4lw.commands.whitelist=*", "--set", "tickTime=500", "--set", "maxSessionTimeout=600000")
    watcher = raw.Client(server.address)
    for i in range(40):  # more than sockets hold on the way
        watcher.call(raw.EXISTS, raw.path_record(f"/{i}" + "x" * 500000, watch=True))
    lazy = socket.socket()
    lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    host, port = server.address.split(":")
    lazy.connect((host, int(port)))
    lazy.sendall(b"wchp")

    def connections():
        with raw.dial(server.address) as asking:
            asking.sendall(b"cons")
            return sum(bool(re.match(rb" /127", line)) for line in asking.makefile("rb")) - 1

    eventually(lambda: connections() >= 2, "it is accepted")
    eventually(lambda: watcher.exists("/") and connections() <= 1, "it is gone", pause_s=0.5)
    server.end()


TESTS = [descriptors_run_out, disk_stalls, disk_stalls_at_a_member, ends_with_a_slow_disk, snapshot_fails,
         last_answer_is_not_read]


def main():
    names = {test.__name__: test for test in TESTS}
    if sys.argv[1:] == ["--list"]:
        print("\n".join(names))
        return
    (name,) = sys.argv[1:]
    with judged(), kept_directory(name) as path:
        names[name](path)


main()
