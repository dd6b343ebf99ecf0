"""A client of bare frames, for what a proper library would not do: stop pinging, pipeline without end, resume
a session with a wrong password, send nonsense."""
import socket
import struct

from patience import TIMEOUT_S

CREATE, DELETE, EXISTS, GET, SET, PING, MULTI, MULTI_READ, CLOSE = 1, 2, 3, 4, 5, 11, 14, 22, -11
EPHEMERAL = 1
SESSION_MS = 600000  # nobody pings here; a server gives the longest that it allows
NO_NODE = -101
NOTIFICATION = -1
STAT = struct.Struct(">qqqqiiiqiiq")
VERSION, CHILDREN_COUNT = 4, 9  # indexes of these fields in STAT


class Lost(Exception):
    """The connection is gone: what was asked and not answered may have happened or not."""


class Refused(Exception):
    """The session is refused."""


def buffer(data):
    return struct.pack(">i", len(data)) + data


def text(string):
    return buffer(string.encode())


OPEN_ACL = struct.pack(">ii", 1, 31) + text("world") + text("anyone")


def create_record(path, data=b"", flags=0):
    return text(path) + buffer(data) + OPEN_ACL + struct.pack(">i", flags)


def set_record(path, data, version=-1):
    return text(path) + buffer(data) + struct.pack(">i", version)


def path_record(path, watch=False):
    return text(path) + struct.pack(">?", watch)


def read_buffer(body, at=0):
    """The buffer that starts there, and where it ends."""
    (length,) = struct.unpack_from(">i", body, at)
    at += 4
    return body[at : at + max(length, 0)], at + max(length, 0)


def connect_request(timeout=SESSION_MS, session=0, password=bytes(16), zxid=0):
    return struct.pack(">iqiq", 0, zxid, timeout, session) + buffer(password) + b"\0"


def dial(address, timeout_s=TIMEOUT_S):
    host, port = address.rsplit(":", 1)
    connection = socket.create_connection((host, int(port)), timeout=timeout_s)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def send_what_is_taken(connection, data):
    """The server may close before it has read everything."""
    try:
        connection.sendall(data)
    except ConnectionError:
        pass


class Client:
    def __init__(self, address, timeout=SESSION_MS, session=0, password=bytes(16), zxid=0, opening_s=TIMEOUT_S):
        self.xid = 0
        self.events = 0
        self.zxid = zxid
        self.answered = b""
        try:
            self.socket = dial(address, opening_s)
            self.send_frame(connect_request(timeout, session, password, zxid))
            reply = self.receive_frame()
            self.socket.settimeout(TIMEOUT_S)
        except OSError as error:
            raise Lost(str(error)) from error
        _, self.timeout, self.session = struct.unpack_from(">iiq", reply)
        self.password, _ = read_buffer(reply, 16)
        if self.timeout <= 0:
            raise Refused(f"session {session:#x}")

    def send_frame(self, frame):
        try:
            self.socket.sendall(buffer(frame))
        except OSError as error:
            raise Lost(str(error)) from error

    def receive_frame(self):
        while len(self.answered) < 4 or len(self.answered) < 4 + self.length():
            try:
                more = self.socket.recv(1 << 16)
            except OSError as error:
                raise Lost(str(error)) from error
            if not more:
                raise Lost("closed by the server")
            self.answered += more
        end = 4 + self.length()
        frame, self.answered = self.answered[4:end], self.answered[end:]
        return frame

    def length(self):
        return struct.unpack_from(">i", self.answered)[0]

    def send(self, opcode, record=b""):
        self.xid += 1
        xid = -2 if opcode == PING else self.xid
        self.send_frame(struct.pack(">ii", xid, opcode) + record)
        return xid

    def receive(self):
        """The next answer: xid, error and record.  Notifications are only counted."""
        while True:
            frame = self.receive_frame()
            xid, zxid, error = struct.unpack_from(">iqi", frame)
            if xid != NOTIFICATION:
                assert error or zxid >= self.zxid, f"zxid {zxid:#x} after {self.zxid:#x}"
                self.zxid = max(self.zxid, zxid)
                return xid, error, frame[16:]
            self.events += 1

    def call(self, opcode, record=b""):
        asked = self.send(opcode, record)
        xid, error, body = self.receive()
        assert xid == asked, f"the answer to {xid}, not to {asked}"
        return error, body

    def create(self, path, data=b"", flags=0):
        return self.call(CREATE, create_record(path, data, flags))[0]

    def set(self, path, data, version=-1):
        return self.call(SET, set_record(path, data, version))[0]

    def get(self, path):
        """Data and version, or None when there is no such node."""
        error, body = self.call(GET, path_record(path))
        if error == NO_NODE:
            return None
        assert error == 0, error
        data, end = read_buffer(body)
        return data, STAT.unpack_from(body, end)[VERSION]

    def exists(self, path):
        error, _ = self.call(EXISTS, path_record(path))
        assert error in (0, NO_NODE), error
        return error == 0

    def children_count(self, path):
        error, body = self.call(EXISTS, path_record(path))
        assert error == 0, error
        return STAT.unpack(body)[CHILDREN_COUNT]

    def close_session(self):
        error, _ = self.call(CLOSE)
        self.drop()
        return error

    def drop(self):
        """Ends the connection, not the session."""
        self.socket.close()


def multi_record(operations):
    header = struct.Struct(">i?i")
    body = b"".join(header.pack(opcode, False, -1) + record for opcode, record in operations)
    return body + header.pack(-1, True, -1)
