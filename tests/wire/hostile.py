"""Hostile clients beside an ordinary one, which must not notice them.

    hostile.py --list               the names of the attacks
    hostile.py PID HOST:PORT NAME   carries one out against the server of that process; exit status 0
                                    when it went on serving

During an attack an ordinary client writes and reads: every answer must be right, and come before the server
has worked for longer than only one that leaves this client waiting would.  That is measured by the processor
time of the server, because the machine may be busy with something else.  The memory of the server is bounded, too."""
import collections
import multiprocessing
import os
import queue
import random
import resource
import select
import socket
import struct
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import raw
from patience import TIMEOUT_S, Late, crashes, is_late, joined, judged

SET_ACL, CHECK, AUTH, SET_WATCHES2, ADD_WATCH = 7, 13, 100, 105, 106
BOUND = 2  # seconds of the server's work for one request of the ordinary client, ...
BOUNDS = {"watches_restored": 0.5, "entries_without_end": 0.3}  # ... and where it takes that long only if all is done in one go
ROUNDS_MIN = 10
FRAME_MAX = 1048575
TOLD_MAX = 40 << 20  # bytes, for one entry; without a bound it would be ten times that
UNREAD_MAX = 64 << 20  # bytes of requests, of one who takes no answers
GROWTH_MAX = 400 << 20  # bytes of memory; what the attacks ask for is a multiple of it


class Measured(raw.Client):
    """Notes for how many seconds the server has worked while there was no answer, for each kind of request.  It looks
    often, so that little of what the server does while this process stands still is counted."""

    def __init__(self, pid, address):
        self.pid, self.waits = pid, collections.defaultdict(list)
        self.opcode = None
        super().__init__(address)

    def send(self, opcode, record=b""):
        self.opcode = opcode
        return super().send(opcode, record)

    def receive(self):
        start = now = work_of(self.pid)
        while not select.select([self.socket], [], [], 0.005)[0]:
            now = work_of(self.pid)
            assert now - start < 5 * BOUND, f"the server worked for {now - start:.1f} s, and there is no answer"
        self.waits[self.opcode].append(now - start)
        return super().receive()


class Ordinary:
    """Works until it is told to stop, in a process of its own: the time that an attack costs the attacker must
    not count as the server's delay."""

    def __init__(self, pid, address):
        self.pid, self.parent = pid, os.getpid()
        self.stopping = multiprocessing.Event()
        self.outcome = multiprocessing.Queue()
        self.process = multiprocessing.Process(target=self.run, args=(address,), daemon=True)
        self.process.start()

    def run(self, address):
        try:
            self.outcome.put((None, self.go_on(Measured(self.pid, address), f"/ordinary-{os.getpid()}")))
        except Exception as error:
            self.outcome.put((Late if is_late(error) else AssertionError, repr(error)))

    def go_on(self, client, path):
        """Returns the longest wait for an answer to a read, in seconds that the server has worked, and to a write: that
        may have been for the disk, while the server did what others had asked for."""
        rounds = 0
        assert client.create(path, b"0") == 0
        while rounds < ROUNDS_MIN or not self.stopping.is_set():
            assert os.getppid() == self.parent, "the attack has failed"
            rounds += 1
            value = b"%d" % rounds
            assert client.set(path, value, rounds - 1) == 0
            for _ in range(5):
                assert client.get(path) == (value, rounds)
                time.sleep(0.002)
        return max(client.waits[raw.GET]), max(client.waits[raw.SET])

    def finish(self, bound):
        self.stopping.set()
        try:
            problem, outcome = self.outcome.get(timeout=TIMEOUT_S)
        except queue.Empty:
            raise Late("the ordinary client does not come to its end") from None
        if problem:
            raise problem(outcome)
        for what, seconds, most in zip(("read", "write"), outcome, (bound, BOUND)):
            assert seconds < most, f"the server worked for {seconds:.1f} s before it answered a {what}"
        joined(self.process)


def is_closed(connection):
    """The server closes the connection; whatever it still sends is read and ignored."""
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        raise Late("still open") from None
    connection.close()


def closed_for_it(address, data):
    """The server closes a connection for what was sent, and not because it has waited long enough: one that is older,
    and on which nothing was sent, is still open.  A machine that is very busy may need several attempts."""
    for _ in range(10):
        silent, connection = raw.dial(address), raw.dial(address)
        raw.send_what_is_taken(connection, data)
        is_closed(connection)
        still_open = not select.select([silent], [], [], 0)[0]
        silent.close()
        if still_open:
            return
    raise AssertionError("it is closed no sooner than one that is silent")


def byte_by_byte(address):
    """A request in single bytes, with pauses: it is answered when it is complete."""
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
    """Asks for far more than fits into buffers, and reads nothing."""
    writer = raw.Client(address)
    path = f"/large-{os.getpid()}"
    assert writer.create(path, b"x" * 500000) == 0
    greedy = []
    request = raw.buffer(struct.pack(">ii", 1, raw.GET) + raw.path_record(path)) * 100
    for _ in range(10):
        client = raw.Client(address)
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
    """Invalid lengths: the connection is closed without an answer, before and after the handshake."""
    for length in (2**31 - 1, FRAME_MAX + 1, -1, -(2**31)):
        for body in (b"", b"x" * 100, b"x" * FRAME_MAX):
            closed_for_it(address, struct.pack(">i", length) + body)
            after = raw.Client(address)
            raw.send_what_is_taken(after.socket, struct.pack(">i", length) + body)
            is_closed(after.socket)  # long before its session expires


def large_handshake(address):
    """Who has no session yet keeps nothing large here: its first frame has room for a handshake and little more."""
    for size in (1025, 2000, FRAME_MAX):
        stranger = raw.dial(address)
        raw.send_what_is_taken(stranger, raw.buffer(raw.connect_request().ljust(size, b"\0")))
        try:
            assert not stranger.recv(1), f"a handshake of {size} bytes was answered"
        except ConnectionError:
            pass
        stranger.close()


def lengths_inside(address):
    """Lengths within a request that reach beyond it, or are negative: refused, and the connection stays."""
    client = raw.Client(address)
    for length in (2**31 - 1, FRAME_MAX, 50, -2, -(2**31)):
        error, _ = client.call(raw.CREATE, struct.pack(">i", length) + b"/a")
        assert error == -5, error
        error, _ = client.call(raw.CREATE, raw.text("/a") + struct.pack(">i", length) + b"data")
        assert error == -5, error
        acls = struct.pack(">i", length)  # how many entries follow
        error, _ = client.call(raw.CREATE, raw.text("/a") + raw.buffer(b"") + acls)
        assert error in (-5, -114), error
    assert client.exists("/")


def short_frames(address):
    """Frames that are too short to be a request end the connection without an answer."""
    for size in (0, 1, 4, 7):
        client = raw.Client(address)
        client.socket.sendall(raw.buffer(bytes(size)))
        try:
            assert not client.socket.recv(1), f"a frame of {size} bytes was answered"
        except ConnectionError:
            pass


def long_paths(address):
    client = raw.Client(address)
    deep = "/d" * (FRAME_MAX // 2 - 50)
    assert client.create(deep) == raw.NO_NODE
    assert not client.exists(deep)
    name = f"/{os.getpid()}" + "n" * (FRAME_MAX - 100)
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
        raw.send_what_is_taken(connection, chance.randbytes(chance.randrange(1, 200)))
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
        is_closed(client.socket)
    for connection in kept:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()  # with a reset


def flood(address):
    """Connects and disconnects, with and without a handshake, gracefully and not."""
    end = time.monotonic() + 2
    count = 0
    while time.monotonic() < end or count <= 100:
        count += 1
        connection = raw.dial(address)
        if count % 2:
            connection.sendall(raw.buffer(raw.connect_request()))
        if count % 3 == 0:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()


def idle_crowd(address):
    """Thousands of sessions that do nothing; and one watch each, that one change fires."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 10000 if limit >= 10200 else 2000
    assert limit > wanted + 100, f"only {limit} open files are allowed"
    path = f"/watched-{os.getpid()}"
    writer = raw.Client(address)
    assert writer.create(path) == 0
    with ThreadPoolExecutor(32) as many:  # so that new sessions can share a write to the disk
        crowd = list(many.map(lambda _: raw.Client(address), range(wanted)))
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


def acl(*entries):
    return struct.pack(">i", len(entries)) + b"".join(
        struct.pack(">i", permissions) + raw.text(scheme) + raw.text(id_) for permissions, scheme, id_ in entries)


def create_record(path, list_):
    return raw.text(path) + raw.buffer(b"") + list_ + struct.pack(">i", 0)


def identify(client, count):
    """False: one was refused, and with it the connection."""
    for number in range(count):
        secret = raw.buffer(f"u{number}:p".encode())
        if client.call(AUTH, struct.pack(">i", 0) + raw.text("digest") + secret)[0]:
            return False
    return True


def somebody(address):
    """A client with about as many identities as one gets."""
    count = 1024
    assert not identify(raw.Client(address), count), "it has as many identities as it likes"
    while not identify(client := raw.Client(address), count):
        count //= 2
    return client


def identities_multiplied(address):
    """Each entry of a list stands for all identities of the client."""
    client = somebody(address)
    path = f"/multiplied-{os.getpid()}"
    for count in (100, 1000, 8000):
        grows = acl(*((i, "auth", "") for i in range(count)))
        assert client.call(raw.CREATE, create_record(path, grows))[0] == -114
        assert client.call(raw.MULTI, raw.multi_record([(raw.CREATE, create_record(path, grows))]))[0] == -114
        assert client.call(SET_ACL, raw.text("/") + grows + struct.pack(">i", -1))[0] == -114
    assert client.call(raw.CREATE, create_record(path, acl((31, "auth", ""))))[0] == 0


def checked_again_and_again(address):
    """A long list, and transactions of which each operation is checked against it."""
    client = somebody(address)
    path = f"/checked-{os.getpid()}"
    entries = [(1, "digest", f"{i}:x") for i in range(20000)]
    entries += [(1, "ip", f"10.{i % 256}.{i // 256}.1") for i in range(20000)]
    assert client.call(raw.CREATE, create_record(path, acl(*entries, (31, "auth", ""))))[0] == 0
    checks = raw.multi_record([(CHECK, raw.text(path) + struct.pack(">i", -1))] * 2000)
    for _ in range(5):
        assert client.call(raw.MULTI, checks)[0] == 0


def counted_again_and_again(address):
    """The statistics of a quota are about a large subtree, and made anew by each of many small operations."""
    client = raw.Client(address)
    base = f"/counted{os.getpid()}"
    assert client.create(base) == 0
    for part in range(40):
        nodes = [(raw.CREATE, create_record(f"{base}/{part}-{i}", raw.OPEN_ACL)) for i in range(5000)]
        assert client.call(raw.MULTI, raw.multi_record(nodes))[0] == 0
    quota = f"/zookeeper/quota{base}"
    assert client.create(quota) == 0
    again = [(raw.CREATE, create_record(f"{quota}/zookeeper_stats", raw.OPEN_ACL)),
             (raw.DELETE, raw.text(f"{quota}/zookeeper_stats") + struct.pack(">i", -1))]
    assert client.call(raw.MULTI, raw.multi_record(again * 4000))[0] == 0
    assert client.create(f"{quota}/zookeeper_stats") == 0
    assert client.get(f"{quota}/zookeeper_stats")[0] == b"count=200001,bytes=0"


def lists_without_end(address):
    """Somebody asks for a long list over and over; others write meanwhile."""
    client = raw.Client(address)
    base = f"/listed{os.getpid()}"
    assert client.create(base) == 0
    for part in range(4):
        nodes = [(raw.CREATE, create_record(f"{base}/{part}-{i}", raw.OPEN_ACL)) for i in range(5000)]
        assert client.call(raw.MULTI, raw.multi_record(nodes))[0] == 0
    over = threading.Event()
    hog = threading.Thread(target=list_until, args=(address, base, over))
    hog.start()
    try:
        for _ in range(10):
            assert client.set(base, b"") == 0
    finally:
        over.set()
        hog.join()


def pings_of_the_deaf(address):
    """Who takes no answers is read from no longer, also when they are to reads that it has sent after a write."""
    client = raw.Client(address)
    path = f"/deaf{os.getpid()}"
    assert client.create(path, b"x" * 1000000) == 0
    client.send(raw.SET, raw.set_record("/", b""))
    for _ in range(15):
        client.send(raw.GET, raw.path_record(path))
    pings = raw.buffer(struct.pack(">ii", -2, raw.PING)) * 5000
    sent = 0
    client.socket.setblocking(False)
    while select.select([], [client.socket], [], 0.5)[1]:
        sent += client.socket.send(pings)
        assert sent < UNREAD_MAX, f"the server has read {sent} bytes"
    client.drop()


def entries_without_end(address):
    """Transactions of very many operations, one after the other, all of which fail at their end."""
    path = f"/entries{os.getpid()}"
    checks = [(CHECK, raw.text("/") + struct.pack(">i", -1))] * 30000
    record = raw.multi_record(checks + [(CHECK, raw.text(path) + struct.pack(">i", -1))])
    frames = raw.buffer(struct.pack(">ii", 1, raw.MULTI) + record) * 150
    clients = [raw.Client(address) for _ in range(2)]
    senders = [threading.Thread(target=client.socket.sendall, args=(frames,), daemon=True) for client in clients]
    for sender in senders:
        sender.start()
    for client in clients:
        for _ in range(150):
            assert client.receive()[:2] == (1, 0)  # the record has the error
    for sender in senders:
        joined(sender)


def lists_between_writes(address):
    """Somebody asks for a long list again and again, between writes of its own."""
    client, victim = raw.Client(address), raw.Client(address)
    path = f"/between{os.getpid()}"
    assert client.create(path) == 0
    for part in range(2):
        nodes = [(raw.CREATE, create_record(f"{path}/{part}-{i}", raw.OPEN_ACL)) for i in range(6000)]
        assert client.call(raw.MULTI, raw.multi_record(nodes))[0] == 0
    one = (raw.buffer(struct.pack(">ii", 1, raw.SET) + raw.set_record("/", b"")) +
           raw.buffer(struct.pack(">ii", 2, GET_CHILDREN) + raw.path_record(path)) * 15)
    client.socket.sendall(one * 800)
    victim.send(raw.SET, raw.set_record(path, b""))
    while victim.socket not in (readable := select.select([client.socket, victim.socket], [], [], TIMEOUT_S)[0]):
        if not readable:
            raise Late("the lists end, and nothing else comes")
        assert client.socket.recv(1 << 20), "who asks for lists is disconnected"
    assert victim.receive()[1] == 0
    client.drop()


def reads_in_the_middle(address):
    """Reads after a write are answered while somebody's transaction is applied in several iterations; it fails."""
    client, other = raw.Client(address), raw.Client(address)
    path = f"/middle{os.getpid()}"
    reads = 20000
    assert client.create(path, b"good") == 0
    changes = [(raw.SET, raw.set_record(path, b"evil"))] * 15000
    fails = raw.multi_record(changes + [(CHECK, raw.text(path + "-") + struct.pack(">i", -1))])
    burst = (raw.buffer(struct.pack(">ii", 1, raw.SET) + raw.set_record("/", b"")) +
             raw.buffer(struct.pack(">ii", 2, raw.GET) + raw.path_record(path)) * reads)
    for _ in range(10):
        client.socket.sendall(burst)
        other.send(raw.MULTI, fails)
        left = reads
        while left:
            client.send(raw.PING)  # so that it is looked at again
            for xid, _, record in [client.receive() for _ in range(20)]:
                left -= xid == 2
                assert xid != 2 or record[4:8] == b"good", record


def reads_of_what_was_written(address):
    """Reads between writes of their client: what they read is not there when they arrive, or is short, or null."""
    crowd = [raw.Client(address) for _ in range(600)]  # so that little is read between two writes
    client, other = raw.Client(address), raw.Client(address)
    path = f"/written{os.getpid()}"
    delays = raw.multi_record([(CHECK, raw.text("/") + struct.pack(">i", -1))] * 15000)
    for data in (None, b"", b"x" * 1000000):
        buffer = struct.pack(">i", -1) if data is None else raw.buffer(data)
        create = raw.text(path) + buffer + raw.OPEN_ACL + struct.pack(">i", 0)
        change = raw.text(path) + buffer + struct.pack(">i", -1)
        for _ in range(3):
            other.send(raw.MULTI, delays)
        client.socket.sendall(b"".join(
            raw.buffer(struct.pack(">ii", number, opcode) + record) for number, (opcode, record) in
            enumerate([(raw.CREATE, create), (raw.GET, raw.path_record(path)), (raw.SET, change),
                       (raw.GET, raw.path_record(path)), (raw.DELETE, raw.text(path) + struct.pack(">i", -1))])))
        for number in range(5):
            xid, error, record = client.receive()
            assert (xid, error) == (number, 0), (xid, error)
            if number in (1, 3):
                assert record[:len(buffer)] == buffer, record[:10]
    for one in crowd:
        one.drop()


GET_CHILDREN = 8


def list_until(address, path, over):
    """Has 50 requests in the pipe until it is over, and is closed then."""
    client = raw.Client(address)
    todo = frames = raw.buffer(struct.pack(">ii", 1, GET_CHILDREN) + raw.path_record(path)) * 50
    client.socket.setblocking(False)
    while not over.is_set():
        readable, writable, _ = select.select([client.socket], [client.socket], [], 0.1)
        if readable:
            assert client.socket.recv(1 << 20), "the connection is closed"
        if writable:
            try:
                todo = todo[client.socket.send(todo):] or frames
            except BlockingIOError:
                pass
    client.socket.close()


def deaf_watchers(address):
    """Watchers of a subtree that read nothing, while nodes with long paths come and go."""
    client = raw.Client(address)
    base = f"/deaf{os.getpid()}-" + "n" * 50000
    assert client.create(base) == 0
    watchers = [raw.Client(address) for _ in range(40)]
    for watcher in watchers:
        assert watcher.call(ADD_WATCH, raw.text(base) + struct.pack(">i", 1))[0] == 0
    for _ in range(300):
        assert client.create(f"{base}/e", flags=raw.EPHEMERAL | 2) == 0
    client.close_session()
    after = raw.Client(address)
    assert after.children_count(base) == 0
    for watcher in watchers:
        watcher.drop()


def texts(*paths):
    return struct.pack(">i", len(paths)) + b"".join(raw.text(path) for path in paths)


def watches_restored(address):
    """Many clients come back at once, each with as many watches as fit into a request.  What one has asked before is
    answered before it, and what it asks afterwards, after it."""
    path = f"/restored{os.getpid()}"
    clients = [raw.Client(address) for _ in range(30)]
    paths = [f"/r{number:x}" for number in range(FRAME_MAX // 11)]
    record = struct.pack(">q", clients[0].zxid) + texts() + texts(*paths) + texts() + texts(path) + texts()
    assert clients[0].create(path) == 0
    for client in clients:
        client.send(raw.SET, raw.set_record("/", b""))
        client.send(SET_WATCHES2, record)
        client.send(raw.SET, raw.set_record("/", b""))
        client.send(raw.EXISTS, raw.path_record(path))
    for client in clients[:-1]:
        answers = [client.receive()[:2] for _ in range(4)]
        assert answers == [(client.xid - i, 0) for i in (3, 2, 1, 0)], answers
    clients.pop().drop()  # perhaps in the middle
    assert clients[0].set(path, b"x") == 0
    for client in clients:
        assert client.exists(path)
        assert client.events == 1, client.events
        client.drop()


def watches_between_writes(address):
    """What follows a setWatches that takes several iterations is answered after it, though all has come at once and the
    write before it is not durable yet."""
    paths = [f"/{number:x}" for number in range(5000)]
    for _ in range(10):
        client = raw.Client(address)
        requests = ((raw.SET, raw.set_record("/", b"")),
                    (SET_WATCHES2, struct.pack(">q", client.zxid) + texts() + texts(*paths) + texts() * 3),
                    (raw.SET, raw.set_record("/", b"")), (raw.EXISTS, raw.path_record("/")))
        client.socket.sendall(b"".join(raw.buffer(struct.pack(">ii", xid, opcode) + record)
                                       for xid, (opcode, record) in enumerate(requests)))
        answers = [client.receive()[:2] for _ in requests]
        assert answers == [(xid, 0) for xid in range(4)], answers
        client.drop()


def missed_and_not_read(address):
    """A client has missed very many changes, and does not read of them."""
    base = f"/missed{os.getpid()}"
    paths = [f"{base}-{number}" for number in range(FRAME_MAX // 25)]
    record = struct.pack(">q", 0) + texts(*paths) + texts() + texts() + texts() + texts()
    for _ in range(10):
        client = raw.Client(address)
        client.send(SET_WATCHES2, record)
        client.send(raw.EXISTS, raw.path_record("/"))
    assert [client.receive()[:2] for _ in range(2)] == [(1, 0), (2, 0)]
    assert client.events == len(paths), client.events


def told_of_much(address):
    """One transaction has very many changes to tell very many watchers of: those that it would tell of too many are
    disconnected instead, and look for themselves when they are back."""
    client = raw.Client(address)
    path = f"/told{os.getpid()}"
    watchers, innocent = [raw.Client(address) for _ in range(300)], raw.Client(address)
    assert client.create(path) == 0
    assert innocent.call(raw.EXISTS, raw.path_record(f"{path}-", watch=True))[0] == raw.NO_NODE
    for watcher in watchers:
        assert watcher.call(ADD_WATCH, raw.text(path) + struct.pack(">i", 1))[0] == 0
    changes = [(raw.SET, raw.set_record(path, b""))] * 30000
    client.send(raw.MULTI, raw.multi_record(changes + [(raw.CREATE, create_record(f"{path}-", raw.OPEN_ACL))]))
    told = 0
    left = [watcher.socket for watcher in watchers]
    while left:
        readable, _, _ = select.select(left, [], [], TIMEOUT_S)
        if not readable:
            raise Late(f"{len(left)} watchers are still connected")
        for connection in readable:
            received = received_now(connection)
            told += len(received)
            assert told < TOLD_MAX, f"watchers are told {told} bytes"
            if not received:
                left.remove(connection)
    assert client.receive()[1] == 0
    assert innocent.get(path)[1] == len(changes)
    assert innocent.events == 1, "who is told of little is disconnected"


def received_now(connection):
    """Empty: it is closed."""
    try:
        return connection.recv(1 << 20)
    except ConnectionError:
        return b""


def work_of(pid):
    """Seconds of processor time."""
    with open(f"/proc/{pid}/stat") as stat:
        user, system = stat.read().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def memory_of(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1]) * 1024


ATTACKS = [byte_by_byte, never_reads, asks_for_much, too_long, large_handshake, lengths_inside, short_frames, long_paths,
           garbage, half_open, flood, idle_crowd, identities_multiplied, checked_again_and_again,
           counted_again_and_again, lists_without_end, pings_of_the_deaf, entries_without_end,
           lists_between_writes, reads_in_the_middle, reads_of_what_was_written, deaf_watchers, watches_restored,
           watches_between_writes, missed_and_not_read, told_of_much]


def main():
    names = {attack.__name__: attack for attack in ATTACKS}
    if sys.argv[1:] == ["--list"]:
        print("\n".join(names))
        return
    pid, address, name = sys.argv[1:]
    crashes.append(lambda: None if os.path.exists(f"/proc/{pid}/exe") else "the server has ended")
    with judged():
        ordinary = Ordinary(pid, address)
        before = memory_of(pid)
        names[name](address)
        growth = memory_of(pid) - before
        assert growth < GROWTH_MAX, f"the server grew by {growth >> 20} MiB"
        ordinary.finish(BOUNDS.get(name, BOUND))


main()
