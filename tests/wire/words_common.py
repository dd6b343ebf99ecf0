"""What the tests of words and of HTTP share: sessions, requests, and the choice of a test.
All words must be allowed on the server, and no other client may use it.

    PROGRAM --list                   the names of its tests
    PROGRAM HOST:PORT HTTP NAME      runs one; exit status 0 when it passed
"""
import json
import re
import socket
import sys
import time
import urllib.request

from patience import TIMEOUT_S, judged, serves
from zkwire import Connection, Event, encode_request

OPEN = [(31, "world", "anyone")]
VERSION = r"3\.8\.0-conclave-\d+\.\d+\.\d+, built on \d\d/\d\d/\d{4} \d\d:\d\d UTC"
EPHEMERAL = 1
SESSION_MS = 30000  # nobody pings here


class Client:
    """A session, and requests that must succeed."""

    def __init__(self, at, timeout_ms=SESSION_MS):
        self.connection = Connection(*at)
        self.connection.send_connect(timeout=timeout_ms)
        self.session = int(self.connection.receive().session)
        self.address = "%s:%d" % self.connection.socket.getsockname()
        self.xid = 0

    def ask(self, operation, *values):
        self.xid += 1
        self.connection.send_request(self.xid, operation, encode_request(operation, values))
        while isinstance(reply := self.connection.receive(), Event):
            pass
        assert reply.xid == self.xid and reply.err in (0, -101), reply
        return reply

    def create(self, path, data=b"", flags=0):
        self.ask("create", path, data, OPEN, flags)

    def close(self):
        self.ask("closeSession")
        self.connection.close()


class Site:
    """The server, and the clients of a test."""

    def __init__(self, at, http):
        host, port = at.rsplit(":", 1)
        self.at = (host, int(port))
        self.http = http
        self.clients = []

    def client(self):
        self.clients.append(Client(self.at))
        return self.clients[-1]

    def word(self, *pieces, half_close=False, pause=0.0):
        """What is answered until the server closes, which it must do by itself."""
        with socket.create_connection(self.at, timeout=TIMEOUT_S) as connection:
            for piece in pieces:
                connection.sendall(piece if isinstance(piece, bytes) else piece.encode())
                time.sleep(pause)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            answer = b""
            while data := connection.recv(1 << 16):
                answer += data
        return answer.decode()

    def table(self, word, separator):
        """Lines of a name and a value; no name may come twice."""
        lines = [line for line in self.word(word).splitlines() if separator in line]
        pairs = dict(line.split(separator, 1) for line in lines)
        assert len(pairs) == len(lines), "a name comes twice"
        return pairs

    def figures(self):
        return {name.removeprefix("zk_"): value for name, value in self.table("mntr", "\t").items()}

    def get(self, path):
        with urllib.request.urlopen(f"http://{self.http}{path}", timeout=TIMEOUT_S) as answer:
            return answer.read().decode()

    def json(self, path):
        return json.loads(self.get(path))

    def clear(self):
        for client in self.clients:
            client.close()


def same(found, wanted):
    assert found == wanted, f"found {found!r}, not {wanted!r}"


def matches(pattern, text):
    found = re.fullmatch(pattern, text, re.DOTALL)
    assert found, f"{text!r} is not {pattern}"
    return found.groups()


def hexadecimal(number):
    return f"0x{number:x}"


def main(names):
    tests = {name: test for name, test in names.items()
             if getattr(test, "__code__", None) and test.__code__.co_varnames[:1] == ("site",)}
    if sys.argv[1:] == ["--list"]:
        print("\n".join(tests))
        return
    site = Site(*sys.argv[1:3])
    serves(sys.argv[1])
    with judged():
        try:
            tests[sys.argv[3]](site)
        finally:
            site.clear()  # the next test counts sessions
