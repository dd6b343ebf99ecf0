"""A tree that holds one of everything, and trees compared node by node.

    await AT          waits until the server opens sessions
    fill AT FILE DIR  fills a server, until DIR has several snapshots of it, writes its tree to FILE, and exits without
                      closing its sessions
    dump AT FILE      writes to FILE what is in a server
    same A B          both files hold the same, with every field of every Stat
    alike A B [TOP]   the same nodes, data and ACLs; ephemeral ones, /zookeeper and TOP aside
    attach AT FILE    the sessions in FILE are resumed on another server, and ended
    spoil AT          changes a filled tree in all ways, with ephemeral nodes that stay
    count AT N [DIR]  writes the numbers up to N, one by one; and on, until DIR has two snapshots and no first log;
                      prints the last one
    number AT A B     the last one is from A to B
    pairs AT FILE     writes pairs that always agree until it is killed; FILE has its progress
    agree AT FILE     they agree, and are not older than FILE
"""
import base64
import json
import os
import sys

import zkwire
from patience import TIMEOUT_S, eventually, judged

OPEN = [(31, "world", "anyone")]
LASTING_MS = 110_000  # of sessions that nobody keeps alive: a busy machine takes long to fill and to read a tree
SUPER = b"super:test"
SNAPSHOTS = 12


class Client:
    """One request at a time, and many at once where that is asked for."""

    def __init__(self, at, secret=SUPER, patience_s=TIMEOUT_S, **connect):
        host, port = at.rsplit(":", 1)
        self.connection = zkwire.Connection(host, int(port))
        self.connection.send_connect(**connect)
        self.session = self.connection.receive(patience_s)
        self.xid = 0
        self.zxid = 0
        if secret and isinstance(self.session, zkwire.Connected) and self.session.session:
            self.call("auth", (0, "digest", secret))

    def send(self, operation, values):
        self.xid += 1
        self.connection.send_request(self.xid, operation, zkwire.encode_request(operation, values))

    def receive(self):
        reply = self.connection.receive()
        assert isinstance(reply, zkwire.Reply), reply
        self.zxid = max(self.zxid, reply.zxid)
        return reply

    def try_call(self, operation, values):
        self.send(operation, values)
        return self.receive()

    def call(self, operation, values):
        reply = self.try_call(operation, values)
        assert reply.err == 0, (operation, values, reply)
        return reply.body

    def call_all(self, requests, at_once=500):
        """The replies, whatever they say."""
        replies = []
        for i in range(0, len(requests), at_once):
            for request in requests[i : i + at_once]:
                self.send(*request)
            replies += [self.receive() for _ in requests[i : i + at_once]]
        return replies


def create(path, data=b"", acl=OPEN, flags=0):
    return "create", (path, data, acl, flags)


def until_open(at):
    def is_open():
        try:
            c = Client(at, patience_s=5)  # what comes before it is ready is not answered
            if isinstance(c.session, zkwire.Connected):
                c.call("closeSession", ())
                return True
        except OSError:
            pass
        return False
    eventually(is_open, f"{at} serves", pause_s=0.1)


# ---- Reading ----
def dump(client):
    """{path: [data, acl, stat]}, level by level."""
    nodes, level = {}, ["/"]
    while level:
        requests = []
        for path in level:
            requests += [("getData", (path, 0)), ("getACL", (path,)), ("getChildren", (path, 0))]
        replies = client.call_all(requests)
        below = []
        for i, path in enumerate(level):
            data, acl, names = replies[3 * i : 3 * i + 3]
            assert data.err == acl.err == names.err == 0, (path, data, acl, names)
            raw = data.body["data"]
            nodes[path] = [
                None if raw is None else base64.b64encode(raw).decode(),
                [list(entry.values()) for entry in acl.body["acl"]],
                data.body["stat"],
            ]
            below += [path.rstrip("/") + "/" + name for name in names.body["names"]]
        level = below
    return nodes


def write(path, value):
    with open(path + ".new", "w") as file:
        json.dump(value, file)
    os.rename(path + ".new", path)


def read(path):
    with open(path) as file:
        return json.load(file)


# ---- Filling ----
def fill_plain(c):
    for name, data in (("text", b"text"), ("empty", b""), ("null", None), ("binary", bytes(range(256)))):
        c.call(*create(f"/{name}", data))
    c.call(*create("/large", os.urandom(900_000)))
    c.call(*create("/gr\u00fc\u00dfe", "h\u00f6flich".encode()))
    c.call(*create("/gr\u00fc\u00dfe/\u65e5\u672c"))
    c.call("setData", ("/null", b"no more", -1))
    c.call("setData", ("/text", None, 0))
    c.call("setData", ("/", b"the root has data, too", -1))


def fill_many(c, directory):
    """Several snapshots, each taken while these go on.  While one is written no other begins, so how many writes
    that takes depends on the disk."""
    c.call(*create("/many"))
    for part in range(10):
        c.call(*create(f"/many/{part}"))
    c.call_all([create(f"/many/{i % 10}/n{i}", b"x" * (i % 50)) for i in range(3000)])
    c.call_all([("setData", (f"/many/{i % 10}/n{i}", b"y%d" % i, -1)) for i in range(0, 3000, 3)])
    c.call_all([("delete", (f"/many/{i % 10}/n{i}", -1)) for i in range(0, 3000, 7)])
    c.call_all([create(f"/many/{i % 10}/n{i}", b"again") for i in range(0, 3000, 14)])

    def are_enough():
        c.call_all([("setData", (f"/many/{i % 10}/n{i}", b"y%d" % i, -1)) for i in range(3, 3000, 21)])
        return sum(name.startswith("snapshot.") for name in os.listdir(directory)) >= SNAPSHOTS
    eventually(are_enough, f"{SNAPSHOTS} snapshots", pause_s=0)


def fill_children(c):
    """The counts of a parent."""
    c.call(*create("/queue"))
    for _ in range(5):
        c.call(*create("/queue/item-", flags=2))
    for i in (1, 3):
        c.call("delete", (f"/queue/item-{i:010}", -1))
    for _ in range(3):  # a node that is created again starts from zero
        c.call(*create("/again"))
        c.call(*create("/again/child"))
        c.call("delete", ("/again/child", -1))
        c.call("delete", ("/again", -1))
    c.call(*create("/again"))


def fill_acls(c):
    digest = "user1:+owfoSBn/am19roBPzR1/MfCblE="
    c.call(*create("/closed", b"secret", [(31, "digest", digest)]))
    c.call(*create("/closed/below", b"deeper", [(1, "digest", digest), (16, "ip", "10.0.0.0/8")]))
    c.call(*create("/readable", b"", [(1, "world", "anyone"), (31, "auth", "")]))
    c.call(*create("/changed"))
    c.call("setACL", ("/changed", [(3, "world", "anyone"), (28, "digest", digest)], 0))
    c.call("setACL", ("/changed", [(7, "world", "anyone"), (24, "digest", digest)], 1))


def fill_kinds(c):
    c.call("createContainer", ("/container", b"c", OPEN, 4))
    c.call(*create("/container/child"))
    c.call("createContainer", ("/unused", b"", OPEN, 4))
    c.call("createTTL", ("/ttl", b"t", OPEN, 5, 86_400_000))
    c.call("createTTL", ("/ttl-", b"t", OPEN, 6, 86_400_000))


def fill_quota(c):
    c.call(*create("/limited"))
    c.call(*create("/limited/before", b"12345"))
    c.call(*create("/zookeeper/quota/limited"))
    c.call(*create("/zookeeper/quota/limited/zookeeper_limits", b"count=10,bytes=1000"))
    c.call(*create("/zookeeper/quota/limited/zookeeper_stats", b"count=0,bytes=0"))
    c.call(*create("/limited/after", b"123"))
    c.call("setData", ("/limited/before", b"1234567", -1))
    c.call(*create("/limited/gone", b"1"))
    c.call("delete", ("/limited/gone", -1))


def fill_multi(c):
    c.call("multi", [create("/m", b"1"), create("/m/a"), ("setData", ("/m", b"2", 0)), ("delete", ("/m/a", 0)),
                     create("/m/b-", flags=2), ("check", ("/m", 1)),
                     ("createContainer", ("/m/c", b"", OPEN, 4)), ("createTTL", ("/m/t", b"", OPEN, 5, 10**9))])
    c.call("multi", [create("/m/never"), ("delete", ("/nowhere", -1))])  # fails as a whole
    assert c.try_call(*create("/m")).err == -110
    assert c.try_call("delete", ("/nowhere", -1)).err == -101


def fill_sessions(c, at):
    """Three that are alive at the end, one without a node; and one that has ended."""
    c.call(*create("/here"))
    c.call(*create("/here/filler", b"e", flags=1))
    c.call(*create("/here/seq-", b"e", flags=3))
    other = Client(at, timeout=LASTING_MS - 10_000)
    other.call(*create("/here/other", None, flags=1))
    idle = Client(at, timeout=LASTING_MS)
    ended = Client(at)
    ended.call(*create("/here/ended", b"e", flags=1))
    ended.call("closeSession", ())
    return [c, other, idle]


def fill(at, file, directory):
    c = Client(at, timeout=LASTING_MS + 10_000)
    fill_plain(c)
    fill_acls(c)
    fill_kinds(c)
    fill_quota(c)
    alive = fill_sessions(c, at)
    fill_many(c, directory)
    fill_children(c)
    fill_multi(c)
    nodes = dump(c)
    sessions = [[s.session.session, s.session.password.hex(), s.session.timeout] for s in alive]
    write(file, {"nodes": nodes, "sessions": sessions, "zxid": c.zxid})
    os._exit(0)


# ---- Comparing ----
def differences(a, b):
    for path in sorted(a.keys() | b.keys()):
        if path not in a or path not in b:
            yield f"{path}: only in {'the second' if path in b else 'the first'}"
        elif a[path] != b[path]:
            yield f"{path}:\n  {a[path]}\n  {b[path]}"[:1000]


def report(found):
    found = list(found)
    print("\n".join(found[:10]))
    assert not found, f"{len(found)} differences"


def same(a, b):
    a, b = read(a)["nodes"], read(b)["nodes"]
    assert len(a) > 1, "nothing to compare"
    report(differences(a, b))


def lasting(nodes, aside):
    return {
        path: [data, acl]
        for path, (data, acl, stat) in nodes.items()
        if not stat["ephemeralOwner"] and not any(f"{path}/".startswith(f"{top}/") for top in aside)
    }


def alike(a, b, *aside):
    aside = ("/zookeeper", *aside)
    report(differences(lasting(read(a)["nodes"], aside), lasting(read(b)["nodes"], aside)))


def spoil(at):
    c = Client(at, timeout=LASTING_MS)
    c.call("setData", ("/text", b"other", -1))
    c.call("setACL", ("/closed", OPEN, -1))
    c.call("delete", ("/closed/below", -1))
    c.call("delete", ("/empty", -1))
    for path in ("/surplus", "/surplus/deep", "/surplus/deep/er", "/surplus/held", "/many/0/more"):
        c.call(*create(path))
    c.call(*create("/text/mine", flags=1))
    c.call(*create("/surplus/held/mine", flags=1))
    os._exit(0)


# ---- Counting ----
def has_snapshots(directory):
    names = os.listdir(directory)
    return sum(name.startswith("snapshot.") for name in names) >= 2 and "log.0000000000000001" not in names


def count(at, end, directory=None):
    c = Client(at)
    c.call(*create("/number"))
    number = 0

    def write():
        nonlocal number
        number += 1
        c.call("setData", ("/number", b"%d" % number, -1))
        return directory and has_snapshots(directory)
    while number < int(end):
        write()
    if directory:
        eventually(write, "two snapshots, and no first log", pause_s=0)
    c.call("closeSession", ())
    print(number)


def number(at, first, last):
    c = Client(at)
    found = int(c.call("getData", ("/number", 0))["data"])
    c.call("closeSession", ())
    assert int(first) <= found <= int(last), found


# ---- Sessions ----
def attach(at, file):
    old = read(file)
    for session, password, timeout in old["sessions"]:
        known = {"session": session, "password": bytes.fromhex(password), "timeout": timeout}
        wrong = Client(at, None, **{**known, "password": bytes(16)})
        assert wrong.session.session == 0, f"resumed with a wrong password: {wrong.session}"
        ahead = Client(at, None, zxid=old["zxid"] + 2**40, **known)
        assert isinstance(ahead.session, zkwire.Closed), f"the server has less, but answers {ahead.session}"
        c = Client(at, None, zxid=old["zxid"], **known)
        assert c.session.session == session and c.session.timeout == timeout, c.session
        own = {path for path, (_, _, stat) in old["nodes"].items() if stat["ephemeralOwner"] == session}
        assert set(c.call("getEphemerals", ("/",))["names"]) == own
        c.call("closeSession", ())
        c = Client(at)
        for path in own:
            assert c.try_call("exists", (path, 0)).err == -101, f"{path} outlives its session"
        c.call("closeSession", ())


# ---- Load ----
def pairs(at, file):
    """Two nodes with one number, a list that grows and shrinks with it, all by multis."""
    c = Client(at)
    for path in ("/pair", "/pair/a", "/pair/b", "/pair/list"):
        c.call(*create(path, b"0"))
    number = 0
    while True:
        number += 1
        text = b"%d " % number + b"." * 200
        operations = [("setData", ("/pair/a", text, -1)), create(f"/pair/list/{number}")]
        if number > 10:
            operations.append(("delete", (f"/pair/list/{number - 10}", -1)))
        operations.append(("setData", ("/pair/b", text, -1)))
        c.call("multi", operations)
        if number % 50 == 0:
            write(file, number)


def agree(at, file):
    c = Client(at)
    a, b = (c.call("getData", (f"/pair/{name}", 0))["data"] for name in "ab")
    assert a == b, (a, b)
    number = int(a.split()[0])
    assert number >= read(file), f"{number} is older than {read(file)}"
    names = {int(name) for name in c.call("getChildren", ("/pair/list", 0))["names"]}
    assert names == set(range(max(1, number - 9), number + 1)), (number, names)
    c.call("closeSession", ())


def main():
    name, *arguments = sys.argv[1:]
    if name == "dump":
        c = Client(arguments[0])
        write(arguments[1], {"nodes": dump(c), "zxid": c.zxid})
        c.call("closeSession", ())
        return
    commands = {"await": until_open, "fill": fill, "same": same, "alike": alike, "attach": attach,
                "spoil": spoil, "count": count, "number": number, "pairs": pairs, "agree": agree}
    commands[name](*arguments)


with judged():
    main()
