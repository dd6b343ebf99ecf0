"""The port for links between servers: servers with the key, servers with a certificate, and everybody else."""
import os
import random
import signal
import socket
import struct
import subprocess
import time

from ensemble import TIMEOUT_S, Ensemble, eventually, main, own_host, without_election, write_key
from places import free_ports

import raw

HELLO_SIZE = 48
MESSAGE = struct.Struct("<6QI5B7x")  # of the consensus core


def works(ensemble):
    """A write through each, seen through all."""
    running = ensemble.running()
    clients = [ensemble.client(member) for member in running]
    clients[0].ensure_path("/works")
    for writer in clients:
        version = writer.set("/works", os.urandom(8)).version
        for zk in clients:
            zk.sync("/works")
            assert zk.exists("/works").version == version


def kept_out(directory, good, bad, complaint):
    """Two servers with good options work; the third, with bad ones, does not join or disturb them, and logs why;
    with good ones it joins."""
    ensemble = Ensemble(directory, options=good)
    first, second, third = ensemble.members
    third.options = list(bad)
    first.options = second.options = [*good, "--found"]
    third.start()
    first.start()
    second.start()
    begun = time.monotonic()
    zk = ensemble.client(first, second)
    zk.create("/n")

    def work():
        until = time.monotonic() + 1.2
        while time.monotonic() < until:
            zk.set("/n", b"on")
            time.sleep(0.01)
    without_election(ensemble, work, "the third server causes elections", [first, second])

    def logs():
        return third.log() + first.log() + second.log()
    eventually(lambda: complaint in logs(), f"'{complaint}' in {logs()}")
    assert third.follows()[1] is None, third.log()
    assert len(logs().splitlines()) < 60 + 10 * (time.monotonic() - begun), "it is logged too often"
    third.kill()
    third.options = list(good)
    third.start()
    ensemble.leader()
    works(ensemble)
    ensemble.stop()


def shared_key(directory):
    key = write_key(f"{directory}/key", "the secret of all three servers\n")
    ensemble = Ensemble(directory, options=["--peer-key", key]).start()
    works(ensemble)
    ensemble.leader().kill()
    works(ensemble)
    ensemble.stop()


def wrong_key(directory):
    key = write_key(f"{directory}/key", "the secret of all three servers\n")
    other = write_key(f"{directory}/other", "the secret of someone else\n")
    kept_out(directory, ["--peer-key", key], ["--peer-key", other], "TLS refused a link")


def no_key(directory):
    key = write_key(f"{directory}/key", "the secret of all three servers\n")
    kept_out(directory, ["--peer-key", key], ["--insecure"], "no link to another server")


# ---- Certificates ----
def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True)


def authority(path):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
            "-subj", "/CN=authority", "-keyout", f"{path}.key", "-out", f"{path}.pem")


def certificate(path, by):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
            "-subj", "/CN=server", "-keyout", f"{path}.key", "-out", f"{path}.pem", "-CA", f"{by}.pem",
            "-CAkey", f"{by}.key", "-addext", "basicConstraints=critical,CA:FALSE")
    os.chmod(f"{path}.key", 0o600)
    return ["--peer-tls-cert", f"{path}.pem", "--peer-tls-key", f"{path}.key"]


def certificates(directory):
    authority(f"{directory}/ours")
    authority(f"{directory}/theirs")
    trusted = ["--peer-tls-ca", f"{directory}/ours.pem"]
    good = certificate(f"{directory}/good", f"{directory}/ours") + trusted
    bad = certificate(f"{directory}/bad", f"{directory}/theirs") + trusted
    kept_out(directory, good, bad, "TLS refused a link")


# ---- Strangers ----
def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def hello(sender, receiver, version=2, ensemble=0):
    body = b"CVPEER" + struct.pack("<HQQQQI", version, ensemble, sender, receiver, 1, 0)
    return body + struct.pack("<I", crc32c(body))


def frame(kind, body, size=None):
    header = struct.pack("<II", len(body) if size is None else size, kind)
    return header + struct.pack("<I", crc32c(header + body)) + body


def core_message(kind, sender, receiver, term, count=0, index=0):
    return MESSAGE.pack(term, index, term, index, term, 0, count, kind, 0, sender, receiver, 1)


def send_to(member, *parts):
    """Sends something to a server's port for links, and ignores the answer."""
    connection = raw.dial(member.peer, timeout_s=2)
    try:
        for part in parts:
            connection.sendall(part)
            time.sleep(0.005)
        connection.settimeout(0.02)
        connection.recv(4096)
    except OSError:
        pass
    connection.close()


def nonsense(chance, number):
    """Bytes none of which a server would send first."""
    greeting = hello(9, number)
    yield chance.randbytes(10)
    yield chance.randbytes(3000)
    yield greeting[: chance.randrange(1, HELLO_SIZE)]
    yield hello(number, number)
    yield hello(9, 77)
    yield hello(9, number, version=1)
    yield hello(9, number, ensemble=12345)
    yield greeting[:-1] + bytes([greeting[-1] ^ 1])
    yield greeting + greeting
    yield b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + chance.randbytes(200)  # it looks like TLS
    yield raw.buffer(raw.connect_request())  # a client that has mistaken the port
    yield b"srvr"
    yield b"GET / HTTP/1.1\r\n\r\n"
    yield b"\xff" * 100000


def check_undisturbed(ensemble, attack):
    """Checks that they go on during the attack, without another election."""
    zk = ensemble.client()
    zk.ensure_path("/n")

    def attempt():
        for part in attack():
            part()
            zk.set("/n", b"on")
        assert all(member.runs() for member in ensemble.members), "a server crashed"
    without_election(ensemble, attempt, "they have elections")
    works(ensemble)


def talk(ensemble):
    chance = random.Random(1)
    for _ in range(3):
        for member in ensemble.members:
            for words in nonsense(chance, member.number):
                yield lambda member=member, words=words: send_to(member, words)


def nonsense_to_plain(directory):
    ensemble = Ensemble(directory, options=["--insecure"]).start()
    check_undisturbed(ensemble, lambda: talk(ensemble))
    ensemble.stop()


def nonsense_to_secured(directory):
    key = write_key(f"{directory}/key", "the secret of all three servers\n")
    ensemble = Ensemble(directory, options=["--peer-key", key]).start()
    check_undisturbed(ensemble, lambda: talk(ensemble))
    ensemble.stop()


def stranger_as_a_new_server(directory):
    """Without authentication anybody can claim to be server 9: no server follows it, or counts its messages."""
    chance = random.Random(2)
    ensemble = Ensemble(directory, options=["--insecure"]).start()
    term = ensemble.leader().follows()[0]

    def frames(number):
        for kind in range(9):
            yield frame(1, core_message(kind, 9, number, term))
            yield frame(1, core_message(kind, 9, number, term, count=3, index=1 << 60) + chance.randbytes(64))
            yield frame(1, core_message(kind, 1 + number % 3, number, term + 50))  # for another
        for kind in (1, 2, 3, 4, 77):
            yield frame(kind, chance.randbytes(64))
            yield frame(kind, b"")
        yield frame(1, b"", size=0xFFFFFFFF)
        yield frame(1, b"x" * 10, size=16 << 20)
        yield frame(1, b"x" * 10)[:-1] + b"y"

    def attack():
        for member in ensemble.members:
            for text in frames(member.number):
                yield lambda m=member, text=text: send_to(m, hello(9, m.number), text)
            yield lambda m=member: send_to(m, hello(1 << 40, m.number), frame(1, b"x"))
    check_undisturbed(ensemble, attack)
    ensemble.stop()


def impostor(directory):
    """Without authentication anybody can claim to be a member.  That may disturb, but no server crashes."""
    chance = random.Random(3)
    ensemble = Ensemble(directory, options=["--insecure"]).start()
    for number in range(150):
        member = chance.choice(ensemble.members)
        sender = chance.choice([m.number for m in ensemble.members if m is not member])
        small, large = chance.randrange(0, 6), chance.getrandbits(64)
        numbers = [chance.choice([small, large, 0, 1, member.follows()[0]]) for _ in range(6)]
        numbers += [chance.choice([0, 0, 1, small, large & 0xFFFFFFFF])]
        body = MESSAGE.pack(*numbers, chance.choice([2, 4, 5, 6]), chance.randrange(32), sender, member.number,
                            chance.randrange(4))
        body += chance.randbytes(chance.choice([0, 0, 1, 40]))
        send_to(member, hello(sender, member.number), frame(chance.choice([1, 1, 1, 2, 3, 4]), body))
        assert member.runs(), f"message {number}: server {member.number} crashed of {body.hex()}"
    ensemble.leader()
    works(ensemble)
    ensemble.stop()


def crowd(directory):
    """Thousands of idle connections: servers still connect to each other."""
    ensemble = Ensemble(directory).start()
    held = []

    def attack():
        for _ in range(700):
            for member in ensemble.members:
                host, port = member.peer.rsplit(":", 1)
                connection = socket.socket()
                connection.setblocking(False)
                connection.connect_ex((host, int(port)))
                held.append(connection)
            yield lambda: None
    check_undisturbed(ensemble, attack)
    away = ensemble.followers()[0]
    away.kill()
    for _ in range(20):  # some more: the oldest are closed for them
        held.append(raw.dial(ensemble.leader().peer))
    away.start()
    ensemble.leader()
    works(ensemble)
    for connection in held:
        connection.close()
    ensemble.stop()


# ---- Credentials ----
def credentials(directory):
    """Without a key or certificates no server of an ensemble starts, on a loopback address neither, unless --insecure
    is given."""
    port = free_ports(1)
    key = write_key(f"{directory}/key", "the secret of all three servers\n")
    seen = write_key(f"{directory}/seen", "the secret of all three servers\n")
    os.chmod(seen, 0o640)

    def serve(host, *options):
        command = ["setpriv", "--pdeathsig", "KILL", os.environ["CONCLAVE"], "serve", "--id", "1", "--ensemble",
                   f"1={host}:{port},2={own_host()}:{port}", "--listen", "127.0.0.1:0", "--http", "off"]
        command += ["--data", f"{directory}/data", *options]
        return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def refused(status, reason, *arguments):
        server = serve(*arguments)
        _, text = server.communicate(timeout=TIMEOUT_S)
        assert server.returncode == status and reason in text, text
    for host in ("127.0.0.1", "0.0.0.0"):
        refused(2, "make one with 'conclave key FILE'", host)
    refused(2, "but not both", "127.0.0.1", "--insecure", "--peer-key", key)
    refused(3, "only its owner can read (chmod 600)", "127.0.0.1", "--peer-key", seen)
    for options in (["--insecure"], ["--peer-key", key]):
        server = serve("0.0.0.0", *options)
        assert "serving clients" in server.stdout.readline(), server.communicate()[1]
        server.send_signal(signal.SIGTERM)
        assert eventually(lambda: server.poll() is not None, "it ends") and server.returncode == 0
        server.communicate()


if __name__ == "__main__":
    main([shared_key, wrong_key, no_key, certificates, nonsense_to_plain, nonsense_to_secured, stranger_as_a_new_server,
          impostor, crowd, credentials])
