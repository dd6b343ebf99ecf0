"""Random steps for the differential test: requests that clients may send, and some that they should not.

The generator knows of the servers only what their answers contained, so that most requests name a node, a
version or a watch that exists; what it knows may be out of date, which makes for good mistakes.

Left out, because the servers differ on purpose or ZooKeeper does not survive it:
- check outside a multi: ZooKeeper accepts it, and cannot replay its log afterwards;
- createTTL with flags 0 to 4 and a negative ttl: it breaks ZooKeeper for good;
- opcodes 20 and -10, which are ZooKeeper's own, and 102 (SASL), which a server may answer as it likes;
- text in a quota node that is not a quota: ZooKeeper stops;
- a path to watch that is null or has no slash: ZooKeeper takes the first, and can then never close that
  connection; to the second checkWatches says -5, removeWatches -121;
- a path that comes back from sync or setWatches though it is not UTF-8, or has characters beyond U+FFFF:
  ZooKeeper sends other bytes back;
- the number of all children of the empty path: ZooKeeper finds the root, and counts it as its own child;
- watches in a multiRead, which ZooKeeper forgets to set, and null paths, which end all of it there;
- create operations in a multi whose flags belong to another one: there ZooKeeper goes by the flags;
- a null path in a multi: ZooKeeper answers all of it with one error, not the operation.
"""

import random
from dataclasses import dataclass, field

from zkwire import OPERATIONS, Connected, Reply, encode, encode_request

OPEN = [(31, "world", "anyone")]
# The identities of each client; root is the super user, and opens again what the others have locked.
IDENTITIES = {
    "anna": [],
    "ben": [b"alice:secret"],
    "carl": [b"bob:secret", b"bob:secret"],
    "dora": [b"alice:secret", "j\u00fcrgen:secret".encode()],
    "root": [b"super:test"],
}
ALICE = "alice:aYXlLOpEooaV1cRAvUL1fp9Qt7E="  # the digest of alice:secret
GOOD_ACLS = [
    OPEN,
    [(1, "world", "anyone")],
    [(31, "digest", ALICE)],
    [(31, "digest", ALICE), (5, "world", "anyone")],
    [(31, "auth", "")],
    [(7, "auth", None), (16, "digest", ALICE)],
    [(31, "ip", "127.0.0.1"), (1, "digest", ":x")],
    [(31, "ip", "127.0.0.0/8")],
    [(31, "ip", "10.0.0.0/8"), (13, "world", "anyone")],
    [(31, "ip", "0.0.0.0/0"), (31, "ip", "0.0.0.0/0"), (1, "ip", "0.0.0.0/0")],
    [(-1, "world", "anyone")],
    [(0, "world", "anyone"), (32, "world", "anyone"), (16, "world", "anyone")],
]
BAD_ACLS = [
    None,
    [],
    [(31, "world", "someone")],
    [(31, "digest", "alice")],
    [(31, "digest", "a:b:c")],
    [(31, "digest", "alice:")],
    [(31, "ip", "::1")],
    [(31, "ip", "1.2.3")],
    [(31, "ip", "1.2.3.4/")],
    [(31, "ip", "1.2.3.4/33")],
    [(31, "ip", "1.2.3.256")],
    [(31, "ip", "1.2.3.4/8/9")],
    [(31, "ip", "1.2.3.4.5")],
    [(31, "x509", "CN=someone")],
    [(31, "super", "")],
    [(31, "unheard", "of")],
    [(31, None, "x")],
    [(31, "world", "anyone"), (31, "nobody", "")],
]
BUILT_IN = ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"]
NAMES = ["a", "b", "c", "d", "e-", "\u00e4 \u4e2d", "..."]
STRANGE_PATHS = [
    "", "a", "//", "/a/", "/a//b", "/a/./b", "/a/..", "/.", "/a\0", "/a\x01", "/a\x7f", "/a\x85", "/\ue000",
    "/\uf8ff", "/\uf900", "/\ufff5", "/\U0001f600", b"/\xff\xfe", b"/\xc3", "/zookeeper/", "zookeeper",
]  # fmt: skip
QUOTAS = [b"count=3,bytes=10", b"count=-1,bytes=1000", b"count=100,bytes=-1"]
GOOD_AUTHS = [b"alice:secret", b"bob:secret", b"alice:wrong", b"nobody", b"", b"a:b:c"]
BAD_AUTHS = [("unheard", b""), ("digest", None), (None, b""), ("world", b"anyone"), ("super", b"")]
UNKNOWN_CODES = [0, 10, 23, 99, 108, -1, -12, 2**31 - 1]
STRANGE_XIDS = [0, -3, -4, -8, 2**31 - 1, -(2**31)]
TTLS = [3_600_000, 2**40 - 1, 2**40, 0, -1, -(2**63), 2**63 - 1]
# The largest frame a server takes; one byte more and it hangs up.
LARGEST_FRAME = 1048575


class PerServer(tuple):
    """A value each server has its own of."""


def resolve(value, side):
    """The value as this server knows it."""
    if isinstance(value, PerServer):
        return value[side]
    if isinstance(value, (list, tuple)):
        return [resolve(element, side) for element in value]
    return value


@dataclass
class Request:
    operation: str
    values: object
    xid: int
    code: object = None  # when it is not the operation's own
    cut: object = None  # where the body ends early
    tail: bytes = b""  # what follows the body

    def body(self, side):
        return encode_request(self.operation, resolve(self.values, side))[: self.cut] + self.tail

    def __str__(self):
        notes = [f"{name}={value!r}" for name in ("code", "cut", "tail") if (value := getattr(self, name))]
        text = f"{self.operation}{self.values!r} xid={self.xid} {' '.join(notes)}"
        return text if len(text) < 600 else text[:600] + "..."


@dataclass
class Step:
    """What one client does: disconnect, connect, send pipelined requests, send bytes."""

    client: str
    hang_up: bool = False
    connect: object = None  # arguments of the handshake
    requests: list = field(default_factory=list)
    bytes: bytes = b""
    # Connections the server may close on this: they are watched until it does.
    closing: tuple = ()

    @property
    def ends_session(self):
        return any(request.operation == "closeSession" for request in self.requests)

    def __str__(self):
        parts = ["hangs up"] if self.hang_up else []
        parts += [f"connects {self.connect}"] if self.connect is not None else []
        parts += [str(request) for request in self.requests]
        parts += [f"sends {self.bytes!r}"] if self.bytes else []
        return f"{self.client}: " + "; ".join(parts)


@dataclass
class Client:
    session: object = None  # PerServer, once there is one
    password: object = None
    online: bool = False


class Generator:
    def __init__(self, seed, zxids):
        self.random = random.Random(seed)
        self.zxids = zxids  # pairs of zxids that name one change on the two servers
        self.clients = {label: Client() for label in (*IDENTITIES, "guest")}
        self.nodes = {}  # path -> the last Stat seen
        self.children = []  # the last list of children seen
        self.agenda = []
        self.xid = 0

    # ---- What to do next ----
    def next(self):
        if self.agenda:
            return self.agenda.pop(0)
        label = self.random.choice(list(IDENTITIES))
        if not self.clients[label].online:
            return self.come(label)
        return self.weighted(
            (600, self.single), (80, self.burst), (40, self.repair), (12, self.come), (8, self.quota),
            (8, self.visit), (6, self.leave), (6, self.hang_up), (6, self.damaged), (5, self.bad_auth),
            (4, self.unknown), (3, self.bad_frame), (2, self.largest),
        )(label)  # fmt: skip

    def weighted(self, *choices):
        weights, values = zip(*choices)
        return self.random.choices(values, weights)[0]

    def chance(self, probability):
        return self.random.random() < probability

    def request(self, operation, values, plain=False, code=None):
        self.xid += 1
        strange = not plain and self.chance(0.03)
        return Request(operation, values, self.random.choice(STRANGE_XIDS) if strange else self.xid, code)

    def single(self, label):
        return Step(label, requests=[self.request(*self.operation())])

    def burst(self, label):
        count = self.random.randrange(2, 9)
        requests = [self.request(*self.operation(), plain=True) for _ in range(count)]
        # An auth may overtake what was sent before it, so it comes first.  A setACL comes last, and once:
        # ZooKeeper checks a write right after it by the old list or by the new one, as it happens.
        order = {"auth": 0, "setACL": 2}
        requests.sort(key=lambda request: order.get(request.operation, 1))
        changes = sum(request.operation == "setACL" for request in requests)
        return Step(label, requests=requests[: count - max(0, changes - 1)])

    def repair(self, _):
        if not self.clients["root"].online:
            return self.come("root")
        return Step("root", requests=[self.request("setACL", (self.path(0.2), OPEN, -1))])

    def quota(self, label):
        top = "/zookeeper/quota/" + self.random.choice(NAMES[:3])
        values = [(top, b""), (top + "/zookeeper_limits", self.random.choice(QUOTAS))]
        values.append((top + "/zookeeper_stats", b"count=0,bytes=0"))
        return Step(label, requests=[self.request("create", (*v, OPEN, 0), plain=True) for v in values])

    # ---- Sessions ----
    def come(self, label):
        """A new session, or the old one resumed: with a right or wrong password, connected or not."""
        client = self.clients[label]
        arguments = {"timeout": 40000, "read_only": self.random.choice((0, 0, 1, None))}
        if client.session is None:
            arguments["timeout"] = self.random.choice((30000, 40000, 10**9, 2**31 - 1))
            arguments["password"] = self.random.choice((bytes(16), b"", None))
        else:
            arguments |= {"session": client.session, "password": client.password}
            # Not while it is connected: ZooKeeper lets anybody who knows a session's number close its connection.
            if self.chance(0.15) and not client.online:
                wrong = (b"", bytes(16), None, PerServer(p[:-1] + bytes([p[-1] ^ 1]) for p in client.password))
                arguments["password"] = self.random.choice(wrong)
        if self.chance(0.05) and not client.online:
            arguments["zxid"] = 2**62
        elif self.chance(0.3) and self.zxids:
            arguments["zxid"] = PerServer(self.random.choice(self.zxids))
        auths = [self.request("auth", (0, "digest", name), plain=True) for name in IDENTITIES[label]]
        closing = (label + " before",) * client.online + (label,) * (not self.sure(client, arguments))
        return Step(label, connect=arguments, requests=auths, closing=closing)

    @staticmethod
    def sure(client, arguments):
        """Whether this handshake must succeed."""
        right = client.session is None or arguments["password"] == client.password
        return right and arguments.get("zxid") != 2**62

    def visit(self, _):
        """A guest with an odd handshake that sends all at once, or that claims a session that never existed."""
        choose = self.random.choice
        arguments = {"timeout": choose((1, 0, -5, 4001)), "protocol": choose((0, 7, -1))}
        if self.chance(0.3):
            return Step("guest", connect=arguments | {"session": 0x1234567}, closing=("guest",))
        wishes = [("create", (self.below("/"), b"", OPEN, 3)), ("getEphemerals", ("/",)), ("closeSession", ())]
        requests = [self.request(*wish, plain=True) for wish in wishes]
        return Step("guest", connect=arguments, requests=requests, closing=("guest",))

    def text_path(self):
        """A path that is text: ZooKeeper takes other bytes for U+FFFD before it compares."""
        path = self.path()
        return path if isinstance(path, str) else "/"

    def leave(self, label):
        return Step(label, requests=[self.request("closeSession", ())], closing=(label,))

    def hang_up(self, label):
        return Step(label, hang_up=True)

    def epilogue(self):
        """All clients close their sessions; then the whole tree is read, and cleared for the next round."""
        for label, client in self.clients.items():
            if client.session and not client.online:
                yield Step(label, connect={"session": client.session, "password": client.password})
            if client.session:
                yield self.leave(label)
        self.clients["warden"] = Client()
        auth = self.request("auth", (0, "digest", b"super:test"), plain=True)
        yield Step("warden", connect={}, requests=[auth])
        paths = ["/"]
        for path in paths:
            looks = (("getData", (path, 0)), ("getACL", (path,)), ("getChildren2", (path, 0)))
            yield Step("warden", requests=[self.request(*look, plain=True) for look in looks])
            paths += [path.rstrip("/") + "/" + name for name in self.children]
        doomed = [path for path in reversed(paths) if path not in BUILT_IN]
        yield Step("warden", requests=[self.request("delete", (path, -1), plain=True) for path in doomed])
        yield self.leave("warden")
        del self.clients["warden"]

    # ---- Mistakes ----
    def bad_auth(self, label):
        scheme, data = self.random.choice(BAD_AUTHS)
        return Step(label, requests=[self.request("auth", (0, scheme, data))], closing=(label,))

    def unknown(self, label):
        code = self.random.choice(UNKNOWN_CODES)
        return Step(label, requests=[self.request("sync", ("/a",), code=code)], closing=(label,))

    def bad_frame(self, label):
        length = self.random.choice((-1, -(2**31), LARGEST_FRAME + 1, 2**31 - 1))
        data = self.random.choice((encode("int", length), encode("int", 5) + b"short"))
        return Step(label, bytes=data, closing=(label,))

    def damaged(self, label):
        operation, values = self.operation()
        request = self.request(operation, values)
        size = len(request.body(0))
        if operation != "auth" and size and self.chance(0.6):
            request.cut = self.random.randrange(size)
        elif operation not in ("auth", "multi", "multiRead") and size and self.chance(0.5):
            request.cut = 0
            request.tail = encode("int", self.random.choice((-2, 2**31 - 1, 3_000_000, 7))) + b"/a"
        else:
            request.tail = b"more"
        return Step(label, requests=[request])

    def largest(self, label):
        """A write that fills the largest frame to the last byte, or that is one too long."""
        path = self.below("/")
        data = bytes(LARGEST_FRAME - 8 - len(encode("SetData", (path, b"", -1))))
        if self.chance(0.3):
            return Step(label, bytes=encode("int", LARGEST_FRAME + 1) + b"\0\0\0\1\0\0\0\5", closing=(label,))
        self.agenda.append(Step(label, requests=[self.request("setData", (path, b"small again", -1))]))
        return Step(label, requests=[self.request("setData", (path, data, -1))])

    # ---- Operations ----
    def operation(self):
        return self.weighted(
            (22, self.create), (11, self.delete), (9, self.set_data), (5, self.set_acl), (8, self.multi),
            (3, self.multi_read), (24, self.read), (9, self.watch), (4, self.set_watches), (6, self.other),
        )()  # fmt: skip

    def path(self, strangeness=0.06):
        kind = self.random.random()
        if kind < strangeness:
            return self.random.choice(STRANGE_PATHS + [None])
        if kind < strangeness + 0.05:
            return self.random.choice(BUILT_IN)
        known = [path for path in self.nodes if path not in BUILT_IN] or BUILT_IN
        path = self.random.choice(known)
        return self.below(path) if self.chance(0.2) else path

    def below(self, path):
        """A child of the node, or of the root when that would be deep."""
        if path is None or isinstance(path, bytes) or path.count("/") > 3 or self.chance(0.3):
            path = "/"
        return path.rstrip("/") + "/" + self.random.choice(NAMES)

    def version(self, path, key="version"):
        known = self.nodes.get(path)
        odd = self.random.choice((0, 1, 2, -2, 2**31 - 1))
        return self.weighted((5, -1), (4, known[key] if known else 0), (1, odd))

    def data(self, path):
        if isinstance(path, str) and path.startswith("/zookeeper/quota"):
            return self.random.choice(QUOTAS)
        return self.random.choice((None, b"", b"x", b"\0\xff", b"text" * self.random.randrange(1, 30)))

    def acl(self):
        return self.weighted((12, OPEN), (3, self.random.choice(GOOD_ACLS)), (1, self.random.choice(BAD_ACLS)))

    def create(self):
        path = self.path() if self.chance(0.15) else self.below(self.path())
        operation = self.weighted((4, "create"), (4, "create2"), (2, "createContainer"), (2, "createTTL"))
        odd = self.random.choice((4, 5, 6, 7, -1, 2**31 - 1))
        flags = self.weighted((6, 0), (4, 1), (3, 2), (3, 3), (1, odd))
        values = (path, self.data(path), self.acl(), flags)
        if operation == "createContainer" and self.chance(0.8):
            values = values[:3] + (4,)
        if operation == "createTTL":
            flags, ttl = self.random.choice((5, 5, 6)), self.random.choice(TTLS[:1] * 4 + TTLS)
            if self.chance(0.1):
                flags, ttl = self.random.choice((-1, 0, 1, 4, 7)), abs(ttl) % 2**63
            values = values[:3] + (flags, ttl)
        return operation, values

    def delete(self):
        path = self.path()
        leaves = [node for node in self.nodes if not any(other.startswith(node + "/") for other in self.nodes)]
        if leaves and self.chance(0.3 if len(self.nodes) < 40 else 0.9):
            path = self.random.choice(leaves)
        return "delete", (path, self.version(path))

    def set_data(self):
        path = self.path()
        if path == "/zookeeper/config":  # which ZooKeeper lets the super user write
            path = "/zookeeper"
        return "setData", (path, self.data(path), self.version(path))

    def set_acl(self):
        path = self.path()
        return "setACL", (path, self.acl(), self.version(path, "aversion"))

    def check(self):
        path = self.path()
        return "check", (path, self.version(path))

    def multi(self):
        makers = (self.create, self.create, self.delete, self.set_data, self.check)
        operations = [self.random.choice(makers)() for _ in range(self.random.choice((0, 1, 1, 2, 2, 3, 4, 5)))]
        if operations and self.chance(0.5):  # a later operation on what an earlier one made
            path = self.below("/")
            operations = [("create", (path, b"", OPEN, 0)), *operations, ("setData", (path, b"new", 0))]
            operations += [("create2", (path + "/child-", b"", OPEN, 2))] * self.random.randrange(3)
        operations = [o for o in operations if self.flags_fit(o) and o[1][0] is not None]
        if self.chance(0.04):
            operations.append(self.random.choice((("getData", ("/a", 0)), ("sync", ("/a",)), ("ping", ()))))
        return "multi", operations

    @staticmethod
    def flags_fit(operation):
        name, values = operation
        own = {"createContainer": (4,), "createTTL": (5, 6)}.get(name, (0, 1, 2, 3, 7, -1))
        return not name.startswith("create") or values[3] in own

    def multi_read(self):
        count = self.random.randrange(6)
        operations = [self.weighted((9, "getData"), (9, "getChildren"), (1, "exists")) for _ in range(count)]
        return "multiRead", [(operation, (self.plain_path(), 0)) for operation in operations]

    def flag(self):
        return self.random.choice((0, 0, 1, 1, 255))

    def read(self):
        operation = self.random.choice((
            "exists", "exists", "getData", "getData", "getChildren", "getChildren2", "getACL",
            "getAllChildrenNumber",
        ))  # fmt: skip
        path = self.path()
        if operation == "getAllChildrenNumber" and path == "":
            path = "/"
        return operation, (path, self.flag()) if OPERATIONS[operation][1] == "PathWatch" else (path,)

    def watch(self):
        operation = self.weighted((3, "addWatch"), (2, "removeWatches"), (2, "checkWatches"))
        modes = (0, 1, 0, 1, 0, 1, 2, -1) if operation == "addWatch" else (1, 2, 3, 1, 2, 3, 0, 4, -1)
        return operation, (self.plain_path(), self.random.choice(modes))

    def plain_path(self):
        """One that can be watched, and that a server can send back."""
        path = self.path(0.04)
        return path if isinstance(path, str) and path.startswith("/") and max(path) <= "\uffff" else "/a"

    def set_watches(self):
        operation = self.random.choice(("setWatches", "setWatches2"))
        zxid = PerServer(self.random.choice(self.zxids)) if self.zxids and self.chance(0.6) else 0
        lists = [[self.plain_path() for _ in range(self.random.choice((0, 1, 3)))] for _ in range(5)]
        return operation, (zxid, *lists[: 3 if operation == "setWatches" else 5])

    def other(self):
        return self.random.choice((
            ("sync", (self.plain_path(),)),
            ("ping", ()),
            ("whoAmI", ()),
            ("getEphemerals", (self.random.choice((None, "", "/", self.text_path())),)),
            ("reconfig", ("server.5=h:1:2;3", None, None, -1)),
            ("auth", (self.random.choice((0, 7)), "digest", self.random.choice(GOOD_AUTHS))),
            ("auth", (0, "ip", b"")),
        ))  # fmt: skip

    # ---- What the answers contain ----
    def observe(self, step, pairs, online):
        """Takes note of the answers: pairs of them, one from each server, in order."""
        client = self.clients[step.client]
        client.online = online
        requests = iter(step.requests)
        for one, other in pairs:
            if isinstance(one, Connected) and one.session:
                client.session = PerServer((one.session, other.session))
                client.password = PerServer((one.password, other.password))
            elif isinstance(one, Reply):
                self.observe_reply(client, next(requests), one)

    def observe_reply(self, client, request, reply):
        if request.operation == "closeSession":
            client.session = None
        elif request.operation == "multi" and reply.body:
            for (operation, values), result in zip(request.values, reply.body):
                if result["type"] >= 0:
                    self.observe_node(operation, values[0], result["result"])
        elif reply.err == 0 and isinstance(reply.body, dict) and request.values:
            self.observe_node(request.operation, request.values[0], reply.body)
        elif reply.err == -101 and request.values:
            self.nodes.pop(request.values[0], None)

    def observe_node(self, operation, path, body):
        if operation == "delete":
            self.nodes.pop(path, None)
        elif operation.startswith("create"):
            self.nodes[body["path"]] = body.get("stat") or {"version": 0, "aversion": 0}
        elif "stat" in body:
            self.nodes[path] = body["stat"]
            self.children = body.get("names", [])

