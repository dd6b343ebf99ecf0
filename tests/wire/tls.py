"""Clients with TLS, good ones and bad ones.

    tls.py --list                           the names of its tests
    tls.py PLAIN TLS BOTH CERTIFICATES PID NAME
                                            runs one; exit status 0 when it passed

PLAIN, TLS and BOTH are where a server takes clients: without TLS, with a certificate only, and either way with a
certificate or without.  CERTIFICATES is a folder of NAME.pem and NAME.key.  PID is the process at PLAIN and TLS.
"""
import os
import signal
import socket
import ssl
import struct
import sys
import time

from kazoo.client import KazooClient
from kazoo.security import make_acl

import zkwire
from patience import TIMEOUT_S, judged, serves
from raw import dial

NO_AUTH = -102
ALICE = "CN=alice,O=Acme\\, Inc.,C=CH"
ALL = 31
OPEN = [(ALL, "world", "anyone")]


class Site:
    def __init__(self, plain, tls, both, certificates, process):
        self.plain, self.tls, self.both, self.certificates, self.process = plain, tls, both, certificates, int(process)

    def context(self, who=None):
        """The TLS context of a client with that certificate, or none."""
        context = ssl.create_default_context(cafile=f"{self.certificates}/ca.pem")
        if who:
            context.load_cert_chain(f"{self.certificates}/{who}.pem", f"{self.certificates}/{who}.key")
        return context

    def connect(self, address, who=None, context=None):
        context = context or self.context(who)
        return Client(context.wrap_socket(dial(address, TIMEOUT_S), server_hostname="localhost"))


class Client(zkwire.Connection):
    """A session over a socket that is there already."""

    def __init__(self, connected):
        self.socket, self.buffer, self.due, self.connected, self.xid = connected, bytearray(), [], False, 0
        self.send_connect()
        self.is_in = isinstance(self.receive(TIMEOUT_S), zkwire.Connected)

    def ask(self, operation, *values):
        self.xid += 1
        record = zkwire.OPERATIONS[operation][1]
        self.send_request(self.xid, operation, zkwire.encode(record, values))

    def call(self, operation, *values):
        self.ask(operation, *values)
        return self.receive(TIMEOUT_S)

    def names(self):
        return {(who["scheme"], who["user"]) for who in self.call("whoAmI").body["clients"]}


class Records:
    """TLS whose records can be changed before they are sent."""

    def __init__(self, address, context):
        self.socket = dial(address, TIMEOUT_S)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")

    def shake_hands(self):
        self.until_done(self.tls.do_handshake)

    def until_done(self, step, *arguments):
        while True:
            try:
                result = step(*arguments)
                self.send(self.outgoing.read())
                return result
            except ssl.SSLWantReadError:
                self.send(self.outgoing.read())
                came = self.socket.recv(1 << 16)
                if not came:
                    raise EOFError from None
                self.incoming.write(came)

    def send(self, data):
        self.socket.sendall(data)

    # What a zkwire.Connection asks of its socket.
    def sendall(self, data):
        self.until_done(self.tls.write, data)

    def recv(self, size):
        return self.until_done(self.tls.read, size)

    def settimeout(self, seconds):
        self.socket.settimeout(seconds)


class SingleBytes(Records):
    def send(self, data):
        for i in range(len(data)):
            self.socket.sendall(data[i : i + 1])


def is_closed(connection):
    """Whether the server sends nothing but an alert, and closes."""
    received = b""
    try:
        while more := connection.recv(1 << 12):
            received += more
    except ConnectionResetError:
        pass
    assert len(received) < 100, received
    return True


def refused(site, address, context):
    """A client may believe, with TLS 1.3, that all is well before the server has seen its certificate."""
    try:
        return not site.connect(address, context=context).is_in
    except (ssl.SSLError, ConnectionError):
        return True


# ---- The tests ----
def who_it_is(site):
    assert site.connect(site.tls, "alice").names() == {("ip", "127.0.0.1"), ("x509", ALICE)}
    assert site.connect(site.both, "alice").names() == {("ip", "127.0.0.1"), ("x509", ALICE)}
    assert site.connect(site.both).names() == {("ip", "127.0.0.1")}


def names_as_java_writes_them(site):
    with open(f"{site.certificates}/names", encoding="utf-8") as names:
        expected = names.read().splitlines()
    assert len(expected) >= 5
    for number, name in enumerate(expected):
        assert ("x509", name) in site.connect(site.tls, f"name{number}").names(), name


def acl_by_certificate(site):
    alice, bob = site.connect(site.tls, "alice"), site.connect(site.tls, "bob")
    assert alice.call("create", "/alice", b"hers", [(ALL, "x509", ALICE)], 0).err == 0
    assert alice.call("create", "/auth", b"hers", [(ALL, "auth", "")], 0).err == 0
    for node in "/alice", "/auth":
        acl = alice.call("getACL", node).body["acl"]
        assert acl == [{"perms": ALL, "scheme": "x509", "id": ALICE}], acl
        assert alice.call("getData", node, False).body["data"] == b"hers"
        for other in bob, Client(dial(site.plain)):
            assert other.call("getData", node, False).err == NO_AUTH
            assert other.call("setData", node, b"mine", -1).err == NO_AUTH


def large_values(site):
    client = site.connect(site.tls, "alice")
    value = os.urandom(900_000)
    assert client.call("create", "/large", value, OPEN, 0).err == 0
    assert client.call("getData", "/large", False).body["data"] == value
    for _ in range(40):  # far more than the system takes for someone who does not read
        client.ask("getData", "/large", False)
    time.sleep(0.5)
    for _ in range(40):
        assert client.receive(TIMEOUT_S).body["data"] == value


def pipelining(site):
    client = site.connect(site.tls, "alice")
    assert client.call("create", "/pipe", b"", OPEN, 0).err == 0
    for i in range(1000):
        client.ask("setData", "/pipe", b"%d" % i, -1)
        client.ask("getData", "/pipe", False)
    for i in range(1000):
        assert client.receive(TIMEOUT_S).err == 0
        assert client.receive(TIMEOUT_S).body["data"] == b"%d" % i


def events(site):
    watcher, other = site.connect(site.tls, "alice"), Client(dial(site.plain))
    watcher.call("exists", "/event", True)
    other.call("create", "/event", b"", OPEN, 0)
    assert watcher.receive(TIMEOUT_S).path == "/event"


def single_bytes(site):
    for address in site.tls, site.both:
        records = SingleBytes(address, site.context("alice"))
        records.shake_hands()
        assert ("x509", ALICE) in Client(records).names()


def without_certificate(site):
    assert refused(site, site.tls, site.context())


def certificate_of_strangers(site):
    for address in site.tls, site.both:
        assert refused(site, address, site.context("stranger"))


def certificate_for_servers(site):
    for address in site.tls, site.both:
        assert refused(site, address, site.context("localhost"))


def certificate_out_of_date(site):
    for address in site.tls, site.both:
        assert refused(site, address, site.context("late"))


def each_proves_anew(site):
    context = site.context("alice")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    first = site.connect(site.tls, context=context)
    with context.wrap_socket(dial(site.tls), server_hostname="localhost", session=first.socket.session) as again:
        assert not again.session_reused


def old_versions(site):
    for version in ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1:
        context = site.context("alice")
        context.minimum_version = context.maximum_version = version
        context.set_ciphers("ALL:@SECLEVEL=0")
        assert refused(site, site.tls, context)


def plain_to_tls(site):
    for _ in range(100):  # so many that the log would show it
        connection = dial(site.tls)
        connection.sendall(zkwire.encode_buffer(bytes(45)))
        assert is_closed(connection)


def tls_to_plain(site):
    assert refused(site, site.plain, site.context("alice"))


def either_on_one_port(site):
    assert Client(dial(site.both)).call("exists", "/", False).err == 0
    assert site.connect(site.both).call("exists", "/", False).err == 0


def garbage(site):
    record = struct.pack(">BHH", 23, 0x303, 100) + os.urandom(100)
    for nonsense in record, os.urandom(500), b"\0" * 500, zkwire.encode_buffer(bytes(45)):
        for late in True, False:
            records = Records(site.tls, site.context("alice"))
            if late:
                records.shake_hands()
            records.send(nonsense)
            assert is_closed(records.socket)


def a_frame_too_large(site):
    client = site.connect(site.tls, "alice")
    client.send_bytes(struct.pack(">i", 100_000_000) + bytes(1000))
    assert client.receive(TIMEOUT_S) == zkwire.Closed()


def gone_in_the_middle(site):
    """A handshake that ends after any number of bytes."""
    for size in range(0, 400, 7):
        records = Records(site.tls, site.context("alice"))
        try:
            records.tls.do_handshake()
        except ssl.SSLWantReadError:
            records.socket.sendall(records.outgoing.read()[:size])
        records.socket.close()


def end_of_session(site):
    """The last answer, then an orderly end."""
    context = site.context("alice")
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    client = site.connect(site.tls, context=context)
    assert client.call("closeSession").err == 0
    client.socket.suppress_ragged_eofs = False
    assert client.socket.recv(100) == b""


def silence(site):
    """A client that never ends its handshake is disconnected."""
    began = time.monotonic()
    quiet = [dial(site.tls, TIMEOUT_S), dial(site.both, TIMEOUT_S), Records(site.tls, site.context("alice")).socket]
    quiet[1].sendall(b"\x16")
    quiet[2].sendall(b"\x16\x03\x01")
    for connection in quiet:
        connection.settimeout(TIMEOUT_S)
        assert is_closed(connection)
    assert time.monotonic() - began > 5


def kazoo(site):
    files = {"ca": "ca.pem", "certfile": "alice.pem", "keyfile": "alice.key"}
    options = {option: f"{site.certificates}/{name}" for option, name in files.items()}
    zk = KazooClient(hosts=site.tls.replace("127.0.0.1", "localhost"), use_ssl=True, verify_certs=True,
                     timeout=40, **options)
    zk.start(timeout=TIMEOUT_S)
    zk.create("/kazoo", b"x" * 900_000, acl=[make_acl("x509", ALICE, all=True)])
    assert zk.get("/kazoo")[0] == b"x" * 900_000
    with zk.Lock("/kazoo lock"):
        pass
    zk.stop()


def full_iterations(address):
    """How often the server's loop has left work to its next iteration."""
    connection = dial(address, TIMEOUT_S)
    connection.sendall(b"mntr")
    figures = b""
    while more := connection.recv(1 << 16):
        figures += more
    return int(figures.split(b"zk_loop_full_iterations", 1)[1].split()[0])


def many_hellos(site):
    """Handshakes take turns: of many that begin at once, few are in one iteration of the loop."""
    many, in_one = 40, 8
    context = site.context("alice")
    clients = [Records(site.tls, context) for _ in range(many)]
    before = full_iterations(site.plain)
    os.kill(site.process, signal.SIGSTOP)  # so that all have come when it looks
    try:
        for client in clients:
            try:
                client.tls.do_handshake()
            except ssl.SSLWantReadError:
                client.send(client.outgoing.read())
    finally:
        os.kill(site.process, signal.SIGCONT)
    for client in clients:
        client.shake_hands()
    after = full_iterations(site.plain)
    assert after - before >= many // in_one - 2, (before, after)


TESTS = [
    who_it_is, names_as_java_writes_them, acl_by_certificate, large_values, pipelining, events, single_bytes,
    without_certificate, certificate_of_strangers, certificate_for_servers, certificate_out_of_date, each_proves_anew,
    old_versions, plain_to_tls, tls_to_plain, either_on_one_port, garbage, a_frame_too_large, gone_in_the_middle,
    end_of_session, kazoo, many_hellos, silence,
]  # fmt: skip

if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print("\n".join(test.__name__ for test in TESTS))
    else:
        serves(sys.argv[1])
        with judged():
            next(test for test in TESTS if test.__name__ == sys.argv[6])(Site(*sys.argv[1:6]))
