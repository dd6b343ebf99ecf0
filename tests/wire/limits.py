"""What runs out: files that may be open, a disk that is slow, clients' patience.

    limits.py --list        the names of the tests
    limits.py NAME          runs one below $WORK, with $CONCLAVE as the server
"""
import faulthandler
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

import raw

PATIENCE = 20


class Server:
    def __init__(self, directory, *options, files=None):
        self.errors = f"{directory}/errors"
        command = ["prlimit", f"--nofile=32:{files}"] if files else []
        command += ["setpriv", "--pdeathsig", "KILL"]  # whatever ends this test ends its server
        command += [os.environ["CONCLAVE"], "serve", "--data", f"{directory}/data", "--listen", "127.0.0.1:0"]
        environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}  # which a tracer would not let it do
        self.process = subprocess.Popen(
            [*command, "--http", "off", *options], text=True, env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=open(self.errors, "w"))
        line = self.process.stdout.readline()
        serving = re.match(r"conclave: serving clients on ([0-9.:]+)", line)
        assert serving, self.said()
        self.address = serving[1]

    def said(self):
        with open(self.errors) as file:
            return file.read()

    def end(self):
        """Asks it to end, and waits."""
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0, self.said()
        self.process.stdout.close()

    def slow_disk(self, seconds, which):
        """Those syncs of the disk take that long, until the tracer ends."""
        tracer = subprocess.Popen(
            ["strace", "-f", "-q", "-o", "/dev/null", "-e", "trace=fdatasync", "-e",
             f"inject=fdatasync:delay_enter={int(seconds * 1e6)}:when={which}", "-p", str(self.process.pid)])
        with open(f"/proc/{self.process.pid}/status") as status:
            deadline = time.monotonic() + PATIENCE
            while "TracerPid:\t0" in status.read():
                assert time.monotonic() < deadline and tracer.poll() is None, "strace cannot attach itself"
                time.sleep(0.02)
                status.seek(0)
        time.sleep(0.2)  # the other threads
        return tracer


def files_run_out(directory):
    """Clients may use up what is theirs, and not what the server needs for itself."""
    most = 200
    server = Server(directory, "--set", "maxClientCnxns=0", "--set", "preAllocSize=1", files=most)
    ordinary = raw.Client(server.address, timeout=40000)
    assert ordinary.create("/n") == 0
    crowd = []
    for _ in range(2 * most):
        crowd.append(raw.dial(server.address))
    for version in range(100):  # every other write needs a new file
        assert ordinary.set("/n", b"x" * 700, version) == 0
    for connection in crowd:
        connection.close()
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            other = raw.Client(server.address)
            break
        except raw.Lost:
            assert time.monotonic() < deadline, "nobody is let in any more"
            time.sleep(0.05)
    assert other.get("/n")[1] == 100
    assert server.said().count("connections are refused") == 1, server.said()
    server.end()


def stands_still(directory, *options):
    """A server that waits for its disk has not heard of anybody, and holds that against nobody."""
    server = Server(directory, "--set", "tickTime=500", "--set", "fsync.waitmicros=99000000", *options)
    client = raw.Client(server.address, timeout=3000)
    writer = raw.Client(server.address, timeout=3000)
    silent = raw.Client(server.address, timeout=1000)
    stopping = threading.Event()

    def ping():
        while not stopping.wait(0.15):
            client.send(raw.PING)

    pinging = threading.Thread(target=ping)
    pinging.start()
    tracer = server.slow_disk(7, 1)
    writer.send(raw.CREATE, raw.create_record("/n"))  # and waits, as the C client does: it does not ping
    assert writer.receive()[1] == 0
    tracer.terminate()
    tracer.wait(PATIENCE)
    for _ in range(20):
        assert writer.exists("/n")
        time.sleep(0.15)
    stopping.set()
    pinging.join()
    assert "session expired" in server.said(), "nobody ever expires"  # who was silent all the time
    client.send(raw.EXISTS, raw.path_record("/n"))
    while client.receive()[0] < 0:  # pings
        pass
    assert f"session=0x{client.session:x}" not in server.said(), server.said()
    assert f"session=0x{silent.session:x}" in server.said(), server.said()
    server.process.kill()
    server.process.wait()


def stands_still_as_a_member(directory):
    pid = os.getpid()
    host = f"127.{64 + (pid >> 16 & 63)}.{pid >> 8 & 255}.{pid & 255}"
    stands_still(directory, "--id", "1", "--ensemble", f"1={host}:26001")


def ends_with_a_slow_disk(directory):
    """What has been asked for before the server is told to end is answered, however slow the disk is."""
    server = Server(directory, "--set", "fsync.waitmicros=0")
    client = raw.Client(server.address, timeout=40000)
    assert client.create("/n") == 0
    tracer = server.slow_disk(1, "1+")
    for i in range(3):
        client.send(raw.CREATE, raw.create_record(f"/n/{i}"))
        time.sleep(0.2)
    server.process.terminate()
    for i in range(3):
        assert client.receive()[1] == 0, i
    assert server.process.wait(PATIENCE) == 0, server.said()
    tracer.wait(PATIENCE)


def snapshot_fails(directory):
    """One that cannot be written is tried again, without more to write than there was."""
    server = Server(directory, "--set", "snapCount=10")
    client = raw.Client(server.address, timeout=40000)
    obstacle = f"{directory}/data/new.snapshot"
    os.mkdir(obstacle)
    for i in range(12):
        assert client.create(f"/{i}") == 0
    deadline = time.monotonic() + PATIENCE
    while "the snapshot was not written" not in server.said():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.rmdir(obstacle)
    while not any(name.startswith("snapshot.") for name in os.listdir(f"{directory}/data")):
        assert client.set("/0", b"") == 0  # it looks when it has something to do
        assert time.monotonic() < deadline, "there is none"
        time.sleep(4)  # fewer than ten of them
    server.end()
    assert server.said().count("the snapshot was not written") == 1, server.said()


def takes_no_last_answer(directory):
    """A connection that is to end when all is sent does not stay because its client reads nothing."""
    server = Server(directory, "--set", "4lw.commands.whitelist=*", "--set", "tickTime=500")
    watcher = raw.Client(server.address, timeout=10000)
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

    time.sleep(0.5)
    assert connections() == 2
    deadline = time.monotonic() + 19
    while connections() > 1:
        assert watcher.exists("/")
        assert time.monotonic() < deadline, "it is still there"
        time.sleep(0.5)
    server.end()


TESTS = [files_run_out, stands_still, stands_still_as_a_member, ends_with_a_slow_disk, snapshot_fails,
         takes_no_last_answer]


def main():
    names = {test.__name__: test for test in TESTS}
    if sys.argv[1:] == ["--list"]:
        print("\n".join(names))
        return
    (name,) = sys.argv[1:]
    faulthandler.dump_traceback_later(60, exit=True)
    with tempfile.TemporaryDirectory(dir=os.environ["WORK"], prefix=name) as directory:
        names[name](directory)


main()
