"""Files as ZooKeeper servers of several releases leave them, made byte by byte.

    data_files.py NAME DIR      the files NAME in DIR/version-2
    data_files.py corpus DIR    beginnings for tests/fuzz/fuzz_import.c
"""
import gzip
import os
import struct
import sys
import zlib

from zkwire import encode, encode_buffer

OPEN = [(31, "world", "anyone")]
CONTAINER = -(1 << 63)
SESSION = 0x1000000000000AB


# ---- Pieces ----
def text(value):
    return encode_buffer(value if value is None else value.encode())


def session(id, timeout):
    return struct.pack(">qi", id, timeout)


def acl_list(number, acl):
    return struct.pack(">q", number) + encode("ACL*", acl)


def node(path, data=b"", acl=-1, zxid=0, mzxid=None, version=0, creates=0, owner=0, pzxid=None):
    stat = struct.pack(">qqqqiiiqq", zxid, zxid if mzxid is None else mzxid, 1000 + zxid, 2000 + zxid, version,
                       creates, 0, owner, zxid if pzxid is None else pzxid)
    return text(path) + encode_buffer(data) + struct.pack(">q", acl) + stat


def seal(content):
    return content + struct.pack(">q", zlib.adler32(content)) + text("/")


def body(sessions, acls, nodes):
    parts = [b"ZKSN" + struct.pack(">iq", 2, -1), struct.pack(">i", len(sessions)), *sessions,
             struct.pack(">i", len(acls)), *acls, *nodes, text("/")]
    return b"".join(parts)


def snapshot(sessions=(), acls=(), nodes=()):
    return seal(body(sessions, acls, nodes))


def root(creates=0, **options):
    return node("", creates=creates, **options)


BUILT_IN = [node("/zookeeper"), node("/zookeeper/quota")]  # 3.4 has no more


def transaction(zxid, kind, content=b"", who=SESSION):
    return struct.pack(">qiqqi", who, 1, zxid, 1000 + zxid, kind) + content


def record(content):
    return struct.pack(">q", zlib.adler32(content)) + encode_buffer(content) + b"B"


def log(*transactions, padding=4096):
    return b"ZKLG" + struct.pack(">iq", 2, 0) + b"".join(map(record, transactions)) + bytes(padding)


def create(path, data=b"", acl=OPEN, ephemeral=0, creates=1):
    return text(path) + encode_buffer(data) + encode("ACL*", acl) + struct.pack(">Bi", ephemeral, creates)


def set_data(path, data, version):
    return text(path) + encode_buffer(data) + struct.pack(">i", version)


def set_acl(path, acl, version):
    return text(path) + encode("ACL*", acl) + struct.pack(">i", version)


def multi(*parts):
    return struct.pack(">i", len(parts)) + b"".join(struct.pack(">i", k) + encode_buffer(c) for k, c in parts)


CREATE, DELETE, SET_DATA, SET_ACL, CHECK, MULTI, CREATE2, CONTAINER_OP = 1, 2, 5, 7, 13, 14, 15, 19
OPEN_SESSION, CLOSE_SESSION, ERROR = -10, -11, -1
DIGEST = struct.pack(">iq", 2, 0x1234567890)  # 3.6 has one after each transaction


# ---- Files: {name: bytes} ----
def old():
    """3.4: no digest, no /zookeeper/config, sessions that end without saying which nodes go."""
    nodes = [root(creates=1, pzxid=2), *BUILT_IN, node("/a", b"1", acl=1, zxid=2, creates=1, pzxid=3),
             node("/a/e", None, acl=1, zxid=3, owner=SESSION)]
    return {
        "snapshot.3": snapshot([session(SESSION, 30000)], [acl_list(1, OPEN)], nodes),
        "log.1": log(transaction(1, OPEN_SESSION, struct.pack(">i", 30000)), transaction(2, CREATE, create("/a", b"1")),
                     transaction(3, CREATE, create("/a/e", None, ephemeral=1)),
                     transaction(4, CREATE, create("/b")[:-4]),  # the first releases did not count
                     transaction(5, CLOSE_SESSION), transaction(6, SET_DATA, set_data("/a", b"2", 1))),
    }


def ahead():
    """A snapshot of zxid 3 that holds some of what came after it, and not all; its tree in the end:
    /a anew with /a/new, /late with its ACL, nothing of the sessions."""
    other = SESSION + 1
    nodes = [root(creates=2, pzxid=12), *BUILT_IN,
             node("/a", b"second", zxid=8, creates=1, pzxid=9), node("/a/new", b"n", zxid=9),
             node("/late", b"l", acl=77, zxid=12),
             node("/unopened", b"u", zxid=3, owner=other + 5)]
    return {
        "snapshot.3": snapshot([session(SESSION, 30000)], [], nodes),
        "log.4": log(
            transaction(4, CREATE2, create("/a/child", creates=1) + DIGEST),
            transaction(5, SET_DATA, set_data("/gone", b"", 3) + DIGEST),
            transaction(6, MULTI, multi((DELETE, text("/a/child")), (CHECK, set_data("/a", b"", 0))) + DIGEST),
            transaction(7, DELETE, text("/a") + DIGEST),
            transaction(8, CREATE, create("/a", b"second", creates=2) + DIGEST),
            transaction(9, CREATE, create("/a/new", b"n", creates=1) + DIGEST),
            transaction(10, OPEN_SESSION, struct.pack(">i", 9000) + DIGEST, other),
            transaction(11, CLOSE_SESSION, encode("string*", ["/e"]) + DIGEST),
            transaction(12, CREATE, create("/late", b"l", [(1, "world", "anyone")], creates=3) + DIGEST),
            transaction(13, MULTI, multi((CREATE, create("/never")), (ERROR, struct.pack(">i", -101))) + DIGEST),
            transaction(14, ERROR, struct.pack(">i", -110) + DIGEST),
            transaction(15, CLOSE_SESSION, encode("string*", []) + DIGEST, other)),
    }


def short():
    """A snapshot that is ahead of its name, and of its log as well: what it knows better stays."""
    nodes = [root(creates=1, pzxid=1), *BUILT_IN, node("/p", zxid=1, creates=3, pzxid=9), node("/p/z", zxid=9)]
    return {
        "snapshot.3": snapshot([], [], nodes),
        "log.4": log(transaction(4, CREATE, create("/p/x", creates=1)), transaction(5, DELETE, text("/p/x"))),
    }


def plain():
    return {"snapshot.1": snapshot(nodes=[root(), *BUILT_IN]), "log.1": log(transaction(2, CREATE, create("/a"))),
            "log.3": log(transaction(3, CREATE, create("/b", creates=2)), transaction(4, CREATE, create("/c", creates=3)))}


def changed(**files):
    return {name: content for name, content in {**plain(), **files}.items() if content is not None}


def flip(content, at):
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def torn():
    files = plain()
    return changed(**{"log.3": files["log.3"][:-4096 - 9] + bytes(4096)})


def torn_before():
    """A crash in the middle of a record, and a server that went on in the next file."""
    content = plain()["log.1"].rstrip(b"\0")
    return changed(**{"log.1": content + record(transaction(3, CREATE, create("/lost")))[:30] + bytes(500)})


def damaged_log():
    return changed(**{"log.3": flip(plain()["log.3"], 40)})


def missing_log():
    return changed(**{"log.1": None, "snapshot.0": snapshot(nodes=[root(), *BUILT_IN]), "snapshot.1": None})


def damaged_snapshot():
    """The newest is damaged; the one before it leads to the same."""
    return changed(**{"snapshot.3": flip(snapshot(nodes=[root(), *BUILT_IN, node("/wrong")]), 60)})


def only_damaged():
    return changed(**{"snapshot.1": flip(plain()["snapshot.1"], 90)})


def zipped():
    return changed(**{"snapshot.1": None, "snapshot.1.gz": gzip.compress(plain()["snapshot.1"])})


def snappy():
    return changed(**{"snapshot.1": None, "snapshot.1.snappy": b"\x82SNAPPY\0"})


def newer():
    return changed(**{"log.3": log(transaction(3, 77))})


def empty_log():
    return changed(**{"log.5": b""})


def no_logs():
    return {"snapshot.9": snapshot(nodes=[root(), *BUILT_IN])}


def no_snapshot():
    return changed(**{"snapshot.1": None})


FILES = (old, ahead, short, plain, torn, torn_before, damaged_log, missing_log, damaged_snapshot, only_damaged, zipped, snappy,
         newer, empty_log, no_logs, no_snapshot)


def corpus(directory):
    """The first byte says what follows: a snapshot, one without seals, a log, bare transactions."""
    inputs = {}
    for files in (old(), ahead()):
        for name, content in files.items():
            content = content.rstrip(b"\0")
            inputs[f"{len(inputs)}-{name}"] = bytes([0 if name.startswith("snapshot") else 2]) + content
            if name.startswith("snapshot"):
                inputs[f"{len(inputs)}-body"] = b"\1" + content[:-13]
    steps = [(OPEN_SESSION, struct.pack(">i", 9)), (CREATE, create("/a")), (CREATE, create("/a/e", ephemeral=1)),
             (SET_ACL, set_acl("/a", [(1, "ip", "1.2.3.4")], 1)), (MULTI, multi((DELETE, text("/a/e")))),
             (CONTAINER_OP, text("/a/c") + encode_buffer(b"") + encode("ACL*", OPEN) + struct.pack(">i", 4)),
             (CREATE, create("/zookeeper/quota/a")), (CREATE, create("/zookeeper/quota/a/zookeeper_limits")),
             (CREATE, create("/zookeeper/quota/a/zookeeper_stats")), (CLOSE_SESSION, encode("string*", ["/a/c"]))]
    transactions = [transaction(i + 1, kind, content) for i, (kind, content) in enumerate(steps)]
    inputs["transactions"] = b"\3" + b"".join(bytes([len(t)]) + t for t in transactions)
    return inputs


def main():
    name, directory = sys.argv[1:]
    files = corpus(directory) if name == "corpus" else {f.__name__: f for f in FILES}[name]()
    where = directory if name == "corpus" else os.path.join(directory, "version-2")
    os.makedirs(where)
    for file, content in files.items():
        with open(os.path.join(where, file), "wb") as out:
            out.write(content)


main()
