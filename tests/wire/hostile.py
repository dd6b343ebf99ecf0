"""Clients that no library would make, beside an ordinary one that must not notice them.

    hostile.py --list               the names of the attacks
    hostile.py PID HOST:PORT NAME   carries one out; exit status 0 when the server, which is that
                                    process, took it well

All through an attack an ordinary client writes and reads: every answer must be right, and come within a
bound that only a server that stands still would break.  Nor may the server grow without bound."""
import faulthandler
import multiprocessing
import os
import random
import resource
import select
import socket
import struct
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import raw

BOUND = 2  # seconds for one request of the ordinary client
ROUNDS_LEAST = 10
FRAME_MOST = 1048575
GROWTH_MOST = 400 << 20  # bytes of memory; what the attacks ask for is a multiple of it


class Ordinary:
    """Goes on until it is told to stop.  A process of its own: what an attack costs the attacker must not
    count as the server's delay."""

    def __init__(self, address):
        self.stopping = multiprocessing.Event()
        self.outcome = multiprocessing.Queue()
        self.process = multiprocessing.Process(target=self.run, args=(address,), daemon=True)
        self.process.start()

    def run(self, address):
        try:
            self.outcome.put((True, self.go_on(raw.Client(address), f"/ordinary-{os.getpid()}")))
        except Exception as error:
            self.outcome.put((False, repr(error)))

    def go_on(self, client, path):
        """Returns the longest wait for an answer."""
        waits, rounds = [], 0

        def timed(call, *arguments):
            start = time.monotonic()
            result = call(*arguments)
            waits.append(time.monotonic() - start)
            return result

        assert timed(client.create, path, b"0") == 0
        while rounds < ROUNDS_LEAST or not self.stopping.is_set():
            rounds += 1
            value = b"%d" % rounds
            assert timed(client.set, path, value, rounds - 1) == 0
            assert timed(client.get, path) == (value, rounds)
            time.sleep(0.005)
        return max(waits)

    def finish(self):
        self.stopping.set()
        well, outcome = self.outcome.get(timeout=10 * BOUND)
        assert well, outcome
        assert outcome < BOUND, f"waited {outcome:.1f} s for an answer"
        self.process.join()


def closed_soon(connection, seconds=BOUND):
    """The server closes the connection; whatever it still says is read and forgotten."""
    deadline = time.monotonic() + seconds
    connection.settimeout(seconds)
    try:
        while connection.recv(1 << 16):
            assert time.monotonic() < deadline, "still open"
    except ConnectionError:
        pass
    except TimeoutError:
        raise AssertionError("still open") from None
    connection.close()


def send_what_is_taken(connection, data):
    """The server may close before it has read everything."""
    try:
        connection.sendall(data)
    except ConnectionError:
        pass


def byte_by_byte(address):
    """A request in single bytes, with pauses: it is answered once it is whole."""
    slow = raw.Client(address)
    frame = raw.buffer(struct.pack(">ii", 7, raw.EXISTS) + raw.path_record("/"))
    for i, byte in enumerate(frame):
        slow.socket.sendall(bytes([byte]))
        time.sleep(1 if i == 2 else 0.03)
    assert slow.receive()[:2] == (7, 0)
    handshake = raw.dial(address)
    for byte in raw.buffer(raw.connect_request()):
        handshake.sendall(bytes([byte]))
        time.sleep(0.01)
    assert len(handshake.recv(100)) == 4 + 37


def never_reads(address):
    """Asks for far more than fits on the way, and reads nothing."""
    writer = raw.Client(address)
    path = f"/large-{os.getpid()}"
    assert writer.create(path, b"x" * 500000) == 0
    greedy = []
    request = raw.buffer(struct.pack(">ii", 1, raw.GET) + raw.path_record(path)) * 100
    for _ in range(10):
        client = raw.Client(address, timeout=40000)
        client.socket.setblocking(False)
        greedy.append(client)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        _, ready, _ = select.select([], [c.socket for c in greedy], [], 0.05)
        for connection in ready:
            try:
                connection.send(request)
            except (BlockingIOError, ConnectionError):
                pass
        time.sleep(0.01)
    for client in greedy:
        client.drop()


def asks_for_much(address):
    """A few bytes that ask for hundreds of megabytes at once are refused; what a client may want is not."""
    client = raw.Client(address)
    path = f"/much-{os.getpid()}"
    assert client.create(path, b"x" * 1000000) == 0
    for count, wanted in ((4, 0), (500, -1), (2, 0)):
        reads = raw.multi_record([(raw.GET, raw.path_record(path))] * count)
        error, body = client.call(raw.MULTI_READ, reads)
        assert error == wanted, (count, error)
        assert len(body) < 5000000 and (error or len(body) > count * 1000000)


def too_long(address):
    """Lengths that are no lengths: closed without a word, before and after the handshake."""
    for length in (2**31 - 1, FRAME_MOST + 1, -1, -(2**31)):
        for body in (b"", b"x" * 100, b"x" * FRAME_MOST):
            before = raw.dial(address)
            send_what_is_taken(before, struct.pack(">i", length) + body)
            closed_soon(before)
            after = raw.Client(address)
            send_what_is_taken(after.socket, struct.pack(">i", length) + body)
            closed_soon(after.socket)


def lengths_inside(address):
    """Lengths within a request that reach beyond it, or below nothing: refused, and it goes on."""
    client = raw.Client(address)
    for length in (2**31 - 1, FRAME_MOST, 50, -2, -(2**31)):
        error, _ = client.call(raw.CREATE, struct.pack(">i", length) + b"/a")
        assert error == -5, error
        error, _ = client.call(raw.CREATE, raw.text("/a") + struct.pack(">i", length) + b"data")
        assert error == -5, error
        acls = struct.pack(">i", length)  # how many entries follow
        error, _ = client.call(raw.CREATE, raw.text("/a") + raw.buffer(b"") + acls)
        assert error in (-5, -114), error
    assert client.exists("/")


def long_paths(address):
    client = raw.Client(address)
    deep = "/d" * (FRAME_MOST // 2 - 50)
    assert client.create(deep) == raw.NO_NODE
    assert not client.exists(deep)
    name = f"/{os.getpid()}" + "n" * (FRAME_MOST - 100)
    assert client.create(name, b"x") == 0
    assert client.get(name) == (b"x", 0)
    assert client.call(raw.DELETE, raw.text(name) + struct.pack(">i", -1))[0] == 0
    assert client.create("/" + "\0" * 1000) == -8
    assert client.call(raw.CREATE, raw.text("/" + "//" * 1000) + raw.buffer(b"") + raw.OPEN_ACL +
                       struct.pack(">i", 0))[0] in (raw.NO_NODE, -8)


def garbage(address):
    """Random bytes, as a first frame, as requests, as bodies of known requests."""
    chance = random.Random(1)
    for i in range(150):
        connection = raw.dial(address)
        send_what_is_taken(connection, chance.randbytes(chance.randrange(1, 200)))
        connection.close()
    for i in range(150):
        client = raw.Client(address)
        opcode = chance.choice([*range(-12, 25), *range(99, 109), chance.randrange(-(2**31), 2**31)])
        body = chance.randbytes(chance.randrange(0, 80))
        try:
            client.send(opcode, body)
            client.receive()
            client.drop()
        except raw.Lost as lost:
            assert "timed out" not in str(lost), f"no answer to opcode {opcode} with {body.hex()}"


def half_open(address):
    """Connections of which one side is closed, or that stop in the middle of a frame."""
    kept = []
    for _ in range(50):
        silent = raw.dial(address)
        silent.sendall(raw.buffer(raw.connect_request())[:20])
        kept.append(silent)
        client = raw.Client(address)
        client.socket.sendall(raw.buffer(struct.pack(">ii", 1, raw.EXISTS) + raw.path_record("/"))[:9])
        kept.append(client.socket)
    for _ in range(50):
        client = raw.Client(address)
        client.send(raw.EXISTS, raw.path_record("/"))
        client.socket.shutdown(socket.SHUT_WR)
        closed_soon(client.socket)
    for connection in kept:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()  # with a reset


def flood(address):
    """Comes and goes, with and without a handshake, gracefully and not."""
    end = time.monotonic() + 2
    turns = 0
    while time.monotonic() < end:
        turns += 1
        connection = raw.dial(address)
        if turns % 2:
            connection.sendall(raw.buffer(raw.connect_request()))
        if turns % 3 == 0:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    assert turns > 100, turns


def idle_crowd(address):
    """Thousands of sessions that do nothing; and one watch each, that one change fires."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 10000 if limit >= 10200 else 2000
    assert limit > wanted + 100, f"only {limit} open files are allowed"
    path = f"/watched-{os.getpid()}"
    writer = raw.Client(address, timeout=40000)
    assert writer.create(path) == 0
    with ThreadPoolExecutor(32) as many:  # so that new sessions can share a write to the disk
        crowd = list(many.map(lambda _: raw.Client(address, timeout=40000), range(wanted)))
    for client in crowd:
        client.send(raw.EXISTS, raw.path_record(path, watch=True))
    for client in crowd:
        assert client.receive()[1] == 0
    assert writer.set(path, b"now") == 0
    for client in crowd:
        client.send(raw.EXISTS, raw.path_record(path))
    for client in crowd:
        assert client.receive()[1] == 0
        assert client.events == 1, client.events
    for client in crowd:
        client.drop()


def memory_of(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1]) * 1024


ATTACKS = [byte_by_byte, never_reads, asks_for_much, too_long, lengths_inside, long_paths, garbage, half_open, flood,
           idle_crowd]


def main():
    names = {attack.__name__: attack for attack in ATTACKS}
    if sys.argv[1:] == ["--list"]:
        print("\n".join(names))
        return
    pid, address, name = sys.argv[1:]
    faulthandler.dump_traceback_later(80, exit=True)
    ordinary = Ordinary(address)
    before = memory_of(pid)
    names[name](address)
    growth = memory_of(pid) - before
    assert growth < GROWTH_MOST, f"the server grew by {growth >> 20} MiB"
    ordinary.finish()


main()
