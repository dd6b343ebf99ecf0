"""A server with little memory refuses writes and watches that need more, and serves everything else.

    memory.py PID HOST:PORT HTTP MIB   exit status 0 when it did; the server of that process may use so much; HTTP is
                                       its address for that"""
import struct
import sys
import time
import urllib.error
import urllib.request

from kazoo.client import KazooClient
from kazoo.exceptions import SystemZookeeperError

import raw
from patience import TIMEOUT_S, eventually, judged, serves

SYSTEM_ERROR = -1
GET_CHILDREN, SET_WATCHES2, ADD_WATCH = 8, 105, 106
BATCH = 200


def create_record(path, data):
    return raw.text(path) + raw.buffer(data) + raw.OPEN_ACL + struct.pack(">i", 0)


def delete_record(path):
    return raw.text(path) + struct.pack(">i", -1)


def resident(pid, name="VmRSS"):
    with open(f"/proc/{pid}/status") as status:
        return int(next(line for line in status if line.startswith(name)).split()[1]) * 1024


class Full:
    """A server that has as many nodes as fit."""

    def __init__(self, client):
        self.client = client
        self.batches = 0
        assert client.create("/full") == 0

    def fill(self):
        """Creates nodes in batches until one is refused."""
        for batch in range(self.batches, 1000):
            nodes = [(raw.CREATE, create_record(f"/full/{batch}-{i}", b"x" * 1000)) for i in range(BATCH)]
            error, _ = self.client.call(raw.MULTI, raw.multi_record(nodes))
            if error:
                assert error == SYSTEM_ERROR, error
                return
            self.batches += 1
        raise AssertionError("it takes everything")

    def refuses(self, request):
        """What is free is counted now and then, so one request may find room where another found none: it is filled
        too, until this one is refused.  request(N) is whether the Nth of them is, which names nothing of an earlier
        one's."""
        for number in range(100):
            self.fill()
            if request(number):
                return
        raise AssertionError("it is full for others only")


def add_watch(client, path):
    return client.call(ADD_WATCH, raw.text(path) + struct.pack(">i", 0))[0]


def fill_with_watches(address, prefix):
    """Restores ever more watches, until the connection is refused; returns how many are watched."""
    client = raw.Client(address)
    empty = struct.pack(">i", 0)
    for batch in range(200):
        paths = [raw.text(f"{prefix}{batch}-{i}") for i in range(20000)]
        some = struct.pack(">i", len(paths)) + b"".join(paths)
        try:
            error, _ = client.call(SET_WATCHES2, struct.pack(">q", 0) + 3 * empty + some + empty)
        except raw.Lost:
            return batch * len(paths)
        assert error == 0, error
    raise AssertionError("it watches everything")


def too_many_watches(pid, address, limit):
    """They do not keep others from writing, nor from watching when they are gone."""
    others = raw.Client(address)
    kept = raw.Client(address)
    for number in range(200000):
        if error := add_watch(kept, f"/watched-{number}-" + 4000 * "x"):
            break
    assert error == SYSTEM_ERROR, error
    assert number > 1000, number
    assert add_watch(kept, "/watched-0-" + 4000 * "x") == 0  # this one it has
    assert kept.call(raw.EXISTS, raw.path_record("/", watch=True))[0] == SYSTEM_ERROR
    assert kept.exists("/")
    assert fill_with_watches(address, "/x") == 0
    assert others.create("/watched", b"x" * 100000) == 0
    assert resident(pid) < limit, resident(pid)
    kept.drop()
    for _ in range(100 * TIMEOUT_S):
        if not add_watch(others, "/watched"):
            break
    assert fill_with_watches(address, "/y") > 0
    assert resident(pid) < limit, resident(pid)


def too_many_parts(pid, address, limit):
    """Requests of which much is sent, and never all: the oldest of them give way to those that are sent as a whole."""
    data = b"x" * 900000
    slow = []
    for number in range(2 * (limit >> 20)):
        slow.append(raw.Client(address))
        raw.send_what_is_taken(slow[-1].socket, struct.pack(">i", 1000000) + data)
        assert resident(pid) < limit, resident(pid)
    client = raw.Client(address)
    assert client.create("/whole", data) == 0
    assert client.get("/whole") == (data, 0)
    assert client.call(raw.DELETE, delete_record("/whole"))[0] == 0
    try:
        assert not slow[0].socket.recv(1), "it is answered"
    except ConnectionError:
        pass
    for connection in slow:
        connection.socket.close()


def many_parts(pid, address, limit):
    """Each sends little of a request, and there are many of them; others are heard."""
    client = raw.Client(address)
    part = struct.pack(">i", 1000000) + b"x" * 62000
    slow = [raw.Client(address) for _ in range(600)]
    for one in slow:
        one.socket.setblocking(False)
        try:
            one.socket.send(part)
        except OSError:
            pass  # it has given way already, or there is no room for it
    for _ in range(100):
        assert client.set("/", b"x") == 0
        assert resident(pid) < limit, resident(pid)
    for one in slow:
        one.socket.close()


def receive_slowly(client):
    """An answer that is long, in small pieces; returns its xid and length."""
    time.sleep(0.3)
    piece = client.socket.recv(4096)
    length, xid = struct.unpack_from(">ii", piece)
    left = length + 4 - len(piece)
    while left:
        piece = client.socket.recv(min(left, 1 << 16))
        assert piece, "the connection is closed"
        left -= len(piece)
    return xid, length


def long_answers(pid, address, limit):
    """Who takes a long answer gets it, however slowly; those that ask for many and take none do not take the memory."""
    client = raw.Client(address)
    assert client.create("/long") == 0
    names = [f"/long/{number}" + 900000 * "x" for number in range(limit // 10000000)]
    for name in names:
        assert client.create(name) == 0
    client.send(GET_CHILDREN, raw.path_record("/long"))
    assert receive_slowly(client) == (client.xid, 20 + sum(len(name) - 2 for name in names))
    client.send(raw.SET, raw.set_record("/long", b""))
    client.send(GET_CHILDREN, raw.path_record("/long"))
    assert client.receive()[:2] == (client.xid - 1, 0)
    deaf = [raw.Client(address) for _ in range(30)]
    for one in deaf:
        one.send(GET_CHILDREN, raw.path_record("/long"))
        assert raw.Client(address).exists("/long")
        assert resident(pid) < limit, resident(pid)
    client = raw.Client(address)
    client.send(GET_CHILDREN, raw.path_record("/long"))
    assert receive_slowly(client)[0] == client.xid
    for one in deaf:
        one.socket.close()
    at_once = [raw.Client(address) for _ in range(50)]
    with open(f"/proc/{pid}/clear_refs", "w") as file:
        file.write("5")  # the peak is counted anew
    for one in at_once:
        one.send(GET_CHILDREN, raw.path_record("/long"))
    client = raw.Client(address)
    assert client.exists("/long")
    assert resident(pid, "VmHWM") < limit, resident(pid, "VmHWM")
    for one in at_once:
        one.socket.close()
    for name in names:
        assert client.call(raw.DELETE, delete_record(name))[0] == 0


def kazoo_goes_on(address, full):
    """Some clients end for an error that they do not know."""
    client = KazooClient(address, timeout=TIMEOUT_S)
    client.start(timeout=TIMEOUT_S)

    def commit(number):
        transaction = client.transaction()
        transaction.create(f"/kazoo-in-transaction-{number}")
        return transaction.commit()

    for request in (lambda number: client.create(f"/kazoo-{number}"), lambda _: client.set("/full", b"x"), commit,
                    lambda number: client.get(f"/full/1-{number}", watch=print)):
        def is_refused(number, request=request):
            try:
                answer = request(number)
            except SystemZookeeperError:
                return True
            return any(isinstance(part, SystemZookeeperError) for part in answer)
        full.refuses(is_refused)
    assert client.get("/full/0-0")[0] == b"x" * 1000
    client.delete("/full/0-0")
    client.stop()
    client.close()


def others_come(address):
    """What was freed is counted now and then."""
    def come():
        try:
            client = raw.Client(address)
            return client.exists("/full/0-1") and client
        except raw.Lost:
            return None
    return eventually(come, "another client is accepted, and finds a node", pause_s=0.1)


def last_of_it(pid, address, limit):
    """What nodes have left strangers do not take: they come with watches, parts of requests, and ask for what they do not take."""
    # Pages of files the system takes back before it ends a process.
    strangers = [raw.Client(address) for _ in range(40)]
    fill_with_watches(address, "/z")
    assert resident(pid, "RssAnon") < limit, resident(pid, "RssAnon")
    for one in strangers:
        raw.send_what_is_taken(one.socket, struct.pack(">i", 1000000) + b"x" * 900000)
        assert resident(pid, "RssAnon") < limit, resident(pid, "RssAnon")
    deaf = [others_come(address) for _ in range(20)]
    for one in deaf:
        frame = raw.buffer(struct.pack(">ii", 1, GET_CHILDREN) + raw.path_record("/full"))
        raw.send_what_is_taken(one.socket, 40 * frame)
        assert resident(pid, "RssAnon") < limit, resident(pid, "RssAnon")
    others_come(address)
    for one in strangers + deaf:
        one.socket.close()


def long_listings(pid, address, http, limit):
    """A path is kept once, and listed for each that watches it, in six letters for one."""
    watchers = [raw.Client(address) for _ in range(limit >> 21)]
    for one in watchers:
        assert add_watch(one, "/" + 900000 * "\1") == 0
    try:
        with urllib.request.urlopen(f"http://{http}/commands/watches", timeout=TIMEOUT_S) as answer:
            raise AssertionError(f"{len(answer.read())} bytes")
    except urllib.error.HTTPError as error:
        assert error.code == 503, error
    with raw.dial(address) as operator:
        operator.sendall(b"wchc")
        with operator.makefile("rb") as answer:
            said = answer.read()
    assert len(said) > 800000 * len(watchers) or b"does not fit" in said, said[:100]
    assert resident(pid, "VmHWM") < limit, resident(pid, "VmHWM")
    for one in watchers:
        one.drop()


def tiny_nodes(pid, address, limit):
    """Where some of many small nodes were deleted, others like them fit."""
    client = raw.Client(address)
    assert client.create("/tiny") == 0

    def batches(opcode, record, first, step):
        for number in range(first, 1000, step):
            some = [(opcode, record(f"/tiny/{number}-{i}")) for i in range(1000)]
            if error := client.call(raw.MULTI, raw.multi_record(some))[0]:
                assert error == SYSTEM_ERROR, error
                return number
        return number

    made = batches(raw.CREATE, lambda path: create_record(path, b""), 0, 1)
    assert limit >> 20 < made < 1000, made
    assert resident(pid) < limit, resident(pid)
    deleted = [(raw.DELETE, delete_record(f"/tiny/{number}-{i}")) for number in range(made) for i in range(0, 1000, 3)]
    for at in range(0, len(deleted), 1000):
        assert client.call(raw.MULTI, raw.multi_record(deleted[at:at + 1000]))[0] == 0
    for name in range(300):
        eventually(lambda: client.create(f"/tiny/{name}") == 0, "there is room where a third was deleted", pause_s=0.1)
    assert resident(pid) < limit, resident(pid)
    client.drop()


def main():
    pid, address, http, mib = sys.argv[1:]
    client = raw.Client(address)
    client.socket.settimeout(TIMEOUT_S)
    long_listings(pid, address, http, int(mib) << 20)
    too_many_watches(pid, address, int(mib) << 20)
    too_many_parts(pid, address, int(mib) << 20)
    many_parts(pid, address, int(mib) << 20)
    long_answers(pid, address, int(mib) << 20)
    full = Full(client)
    full.fill()
    assert full.batches > 10, full.batches
    assert resident(pid) < int(mib) << 20, resident(pid)
    full.refuses(lambda number: client.create(f"/more-{number}", b"x") == SYSTEM_ERROR)
    full.refuses(lambda _: client.set("/full", b"x") == SYSTEM_ERROR)
    full.refuses(lambda number: add_watch(client, f"/unwatched-{number}") == SYSTEM_ERROR)
    assert client.get("/full/0-0") == (b"x" * 1000, 0)
    kazoo_goes_on(address, full)
    assert raw.Client(address).exists("/full/0-1")  # others may come
    full.refuses(lambda number: client.create(f"/yet-more-{number}") == SYSTEM_ERROR)
    assert resident(pid) < int(mib) << 20, resident(pid)
    last_of_it(pid, address, int(mib) << 20)
    for batch in range(full.batches):
        nodes = [(raw.DELETE, delete_record(f"/full/{batch}-{i}")) for i in range(not batch, BATCH)]
        assert client.call(raw.MULTI, raw.multi_record(nodes))[0] == 0

    def is_created():
        error = client.create("/again", b"x")
        assert error in (0, SYSTEM_ERROR), error
        return not error
    eventually(is_created, "there is room again")  # it measures now and then
    assert client.get("/again") == (b"x", 0)
    tiny_nodes(pid, address, int(mib) << 20)


serves(sys.argv[2])
with judged():
    main()
