"""The ZooKeeper client protocol of 3.8 as bytes: every request, every reply, and one connection.

It is made for tests, so it can send wrong requests as easily as right ones, and it reports all that a server
sends, down to bytes that do not belong to a reply.  Fields whose values no two servers share (zxids, times,
session ids, passwords) have types of their own.
"""

import socket
import struct
import time
from dataclasses import dataclass

from patience import TIMEOUT_S


class Zxid(int):
    """The zxid of a change, as it is kept in a node."""


class HeaderZxid(int):
    """The last zxid a server had applied when it answered."""


class Time(int):
    """Milliseconds since 1970, by the server's clock."""


class SessionId(int):
    """A session's id; 0 for none."""


class Password(bytes):
    """What a session is resumed with."""


class Malformed(Exception):
    """A reply that is not what the protocol says it is."""


NUMBERS = {
    "bool": ("B", int),  # not ?: a server that sends 2 for true has to be noticed
    "int": ("i", int),
    "long": ("q", int),
    "zxid": ("q", Zxid),
    "time": ("q", Time),
    "session": ("q", SessionId),
}

# A record is its fields in wire order, each `name:kind`.  `kind*` is a vector, `kind%` one without an
# order.
RECORDS = {
    "": "",
    "ACL": "perms:int scheme:string id:string",
    "Stat": "czxid:zxid mzxid:zxid ctime:time mtime:time version:int cversion:int aversion:int"
    " ephemeralOwner:session dataLength:int numChildren:int pzxid:zxid",
    "Path": "path:string",
    "PathWatch": "path:string watch:bool",
    "PathVersion": "path:string version:int",
    "PathNumber": "path:string number:int",
    "PathStat": "path:string stat:Stat",
    "Create": "path:string data:buffer acl:ACL* flags:int",
    "CreateTTL": "path:string data:buffer acl:ACL* flags:int ttl:long",
    "SetData": "path:string data:buffer version:int",
    "SetACL": "path:string acl:ACL* version:int",
    "StatOnly": "stat:Stat",
    "DataStat": "data:buffer stat:Stat",
    "AclStat": "acl:ACL* stat:Stat",
    "Names": "names:string%",
    "NamesStat": "names:string% stat:Stat",
    "Number": "number:int",
    "Error": "err:int",
    "Reconfig": "joining:string leaving:string members:string version:long",
    "SetWatches": "zxid:zxid data:string* exist:string* child:string*",
    "SetWatches2": "zxid:zxid data:string* exist:string* child:string* persistent:string* recursive:string*",
    "ClientInfo": "scheme:string user:string",
    "Clients": "clients:ClientInfo%",
    "Auth": "type:int scheme:string auth:buffer",
    "Token": "token:buffer",
    "MultiHeader": "type:int done:bool err:int",
    "Event": "type:int state:int path:string",
    "ConnectRequest": "protocol:int zxid:zxid timeout:int session:session password:buffer",
    "ConnectReply": "protocol:int timeout:int session:session password:buffer",
    "ReplyHeader": "xid:int zxid:zxid err:int",
}
RECORDS = {
    name: [field.split(":") for field in fields.split()] for name, fields in RECORDS.items()
}

# name: (opcode, request record, reply record); the body of multi is a list of operations.
OPERATIONS = {
    "create": (1, "Create", "Path"),
    "delete": (2, "PathVersion", ""),
    "exists": (3, "PathWatch", "StatOnly"),
    "getData": (4, "PathWatch", "DataStat"),
    "setData": (5, "SetData", "StatOnly"),
    "getACL": (6, "Path", "AclStat"),
    "setACL": (7, "SetACL", "StatOnly"),
    "getChildren": (8, "PathWatch", "Names"),
    "sync": (9, "Path", "Path"),
    "ping": (11, "", ""),
    "getChildren2": (12, "PathWatch", "NamesStat"),
    "check": (13, "PathVersion", ""),
    "multi": (14, None, None),
    "create2": (15, "Create", "PathStat"),
    "reconfig": (16, "Reconfig", "DataStat"),
    "checkWatches": (17, "PathNumber", ""),
    "removeWatches": (18, "PathNumber", ""),
    "createContainer": (19, "Create", "PathStat"),
    "createTTL": (21, "CreateTTL", "PathStat"),
    "multiRead": (22, None, None),
    "auth": (100, "Auth", ""),
    "setWatches": (101, "SetWatches", ""),
    "sasl": (102, "Token", "Token"),
    "getEphemerals": (103, "Path", "Names"),
    "getAllChildrenNumber": (104, "Path", "Number"),
    "setWatches2": (105, "SetWatches2", ""),
    "addWatch": (106, "PathNumber", "Error"),
    "whoAmI": (107, "", "Clients"),
    "closeSession": (-11, "", ""),
}

# The record of each type of result in the reply to a multi or a multiRead.
RESULTS = {-1: "Error", 1: "Path", 2: "", 4: "DataStat", 5: "StatOnly", 8: "Names", 13: "", 15: "PathStat"}

XID_EVENT = -1
XID_PING = -2


# ---- Values to bytes and back ----
def encode(kind, value):
    """The bytes of a value; records are sequences of their fields' values."""
    if kind in NUMBERS:
        return struct.pack(">" + NUMBERS[kind][0], value)
    if kind in ("string", "buffer"):
        return encode_buffer(value.encode() if isinstance(value, str) else value)
    if kind[-1:] == "*":
        count = encode("int", -1 if value is None else len(value))
        return count + b"".join(encode(kind[:-1], element) for element in value or ())
    return b"".join(encode(field, v) for (_, field), v in zip(RECORDS[kind], value, strict=True))


def encode_buffer(value):
    return encode("int", -1) if value is None else encode("int", len(value)) + value


def encode_multi(operations):
    """The body of a multi: [(name, values)], with the closing header."""
    parts = []
    for operation, values in operations:
        code, record, _ = OPERATIONS[operation]
        parts.append(encode("MultiHeader", (code, 0, -1)) + encode(record, values))
    return b"".join(parts) + encode("MultiHeader", (-1, 1, -1))


def encode_request(operation, values):
    record = OPERATIONS[operation][1]
    return encode_multi(values) if record is None else encode(record, values)


class Cursor:
    """What is still to be read of a frame."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if count < 0 or self.at + count > len(self.data):
            raise Malformed(f"{count} bytes wanted at {self.at} of {self.data.hex()}")
        self.at += count
        return self.data[self.at - count : self.at]

    def rest(self):
        return self.take(len(self.data) - self.at)


def decode(kind, cursor):
    """A value; records become dictionaries, vectors without an order are sorted."""
    if kind in NUMBERS:
        code, make = NUMBERS[kind]
        return make(struct.unpack(">" + code, cursor.take(struct.calcsize(">" + code)))[0])
    if kind in ("string", "buffer"):
        length = decode("int", cursor)
        value = None if length == -1 else bytes(cursor.take(length))
        return value.decode(errors="backslashreplace") if value is not None and kind == "string" else value
    if kind[-1:] in ("*", "%"):
        count = decode("int", cursor)
        elements = None if count == -1 else [decode(kind[:-1], cursor) for _ in range(count)]
        return sorted(elements, key=repr) if elements and kind[-1] == "%" else elements
    return {name: decode(field, cursor) for name, field in RECORDS[kind]}


def decode_multi(cursor):
    results = []
    while True:
        result = decode("MultiHeader", cursor)
        results.append(result)
        if result["done"]:
            return results
        if result["type"] not in RESULTS:
            raise Malformed(f"a result of type {result['type']}")
        result["result"] = decode(RESULTS[result["type"]], cursor)


# ---- What a server sends ----
@dataclass
class Connected:
    protocol: int
    timeout: int
    session: SessionId
    password: Password
    read_only: object  # None when the server left it off
    rest: bytes


@dataclass
class Reply:
    operation: str
    xid: int
    zxid: HeaderZxid
    err: int
    body: object
    rest: bytes  # what follows the record: nothing, from a good server


@dataclass
class Event:
    zxid: int
    err: int
    type: int
    state: int
    path: str
    rest: bytes


@dataclass
class Closed:
    """The server has closed the connection."""


@dataclass
class Silence:
    """Nothing came in time."""


@dataclass
class Garbage:
    """A frame that is not of the protocol."""

    why: str


class Connection:
    """One TCP connection, and which replies are due on it."""

    def __init__(self, host, port):
        self.socket = socket.create_connection((host, port), timeout=TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()
        self.due = []  # (xid, operation), oldest first
        self.connected = False

    def send_bytes(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            pass  # what the server sent before it closed is still to be read

    def send_frame(self, payload):
        self.send_bytes(encode_buffer(payload))

    def send_connect(self, timeout=40000, session=0, password=bytes(16), zxid=0, protocol=0, read_only=0):
        """read_only None leaves the byte off, as old clients do."""
        body = encode("ConnectRequest", (protocol, zxid, timeout, session, password))
        self.send_frame(body if read_only is None else body + encode("bool", read_only))

    def send_request(self, xid, operation, body, code=None):
        self.due.append((XID_PING if operation == "ping" else xid, operation))
        code = OPERATIONS[operation][0] if code is None else code
        self.send_frame(encode("int", xid) + encode("int", code) + body)

    def receive(self, timeout_s=TIMEOUT_S):
        """The next message of the server; Silence only where the caller has less patience than tests have."""
        try:
            return self.interpret(self.receive_frame(time.monotonic() + timeout_s))
        except EOFError:
            return Closed()
        except TimeoutError:
            if timeout_s >= TIMEOUT_S:
                raise
            return Silence()
        except Malformed as error:
            return Garbage(str(error))

    def receive_frame(self, deadline):
        self.fill(4, deadline)
        length = struct.unpack(">i", self.buffer[:4])[0]
        if length < 0:
            raise Malformed(f"a frame of {length} bytes")
        self.fill(4 + length, deadline)
        frame = bytes(self.buffer[4 : 4 + length])
        del self.buffer[: 4 + length]
        return frame

    def fill(self, count, deadline):
        while len(self.buffer) < count:
            self.socket.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionError:
                data = b""
            if not data:
                raise EOFError
            self.buffer += data

    def interpret(self, frame):
        cursor = Cursor(frame)
        if not self.connected:
            self.connected = True
            return self.interpret_connected(cursor)
        xid, zxid, err = decode("ReplyHeader", cursor).values()
        if xid == XID_EVENT:
            return Event(int(zxid), err, *decode("Event", cursor).values(), cursor.rest())
        operation = next((op for due, op in self.due if due == xid), None)
        if operation is None:
            raise Malformed(f"a reply to xid {xid}, which is not due: {frame.hex()}")
        self.due.remove((xid, operation))
        body = None
        if err == 0:
            record = OPERATIONS[operation][2]
            body = decode_multi(cursor) if record is None else decode(record, cursor)
        return Reply(operation, xid, HeaderZxid(zxid), err, body, cursor.rest())

    @staticmethod
    def interpret_connected(cursor):
        protocol, timeout, session, password = decode("ConnectReply", cursor).values()
        rest = cursor.rest()
        return Connected(protocol, timeout, session, Password(password), rest[0] if rest else None, rest[1:])

    def close(self):
        self.socket.close()
