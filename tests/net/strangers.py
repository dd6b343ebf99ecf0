"""The port where servers hear each other: who knows the key, who has a certificate, and everybody else."""
import os
import random
import signal
import socket
import struct
import subprocess
import time

from ensemble import Ensemble, eventually, main, own_host

import raw

HELLO_SIZE = 48
MESSAGE = struct.Struct("<6QI5B7x")  # of the consensus core


def write_key(path, secret):
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(secret)
    return path


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
    """Two servers with good options work; the third, with bad ones, neither gets in nor disturbs, and says so;
    with good ones it is in."""
    ensemble = Ensemble(directory, options=good)
    first, second, third = ensemble.members
    third.options = list(bad)
    third.start()
    first.start()
    second.start()
    leader = ensemble.leader([first, second])
    term = leader.follows()[0]
    zk = ensemble.client(first, second)
    zk.create("/n")
    until = time.monotonic() + 1.2
    while time.monotonic() < until:
        zk.set("/n", b"on")
        time.sleep(0.01)
    assert third.follows()[1] == 0, third.said()
    assert leader.follows() == (term, leader.number), "who was kept out made them elect again"
    said = third.said() + first.said() + second.said()
    assert complaint in said, said
    assert len(said.splitlines()) < 60, "it says so too often"
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
    kept_out(directory, ["--peer-key", key], [], "no link to server")


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


def say_to(member, *parts):
    """Says something to a server's port for others, and does not care what comes of it."""
    connection = raw.dial(member.peer, patience=2)
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
    """Things to say: none of them is what a server says before it knows who is there."""
    greeting = hello(9, number)
    yield chance.randbytes(10)
    yield chance.randbytes(3000)
    yield greeting[: chance.randrange(1, HELLO_SIZE)]
    yield hello(number, number)
    yield hello(9, 77)
    yield hello(9, number, version=7)
    yield hello(9, number, ensemble=12345)
    yield greeting[:-1] + bytes([greeting[-1] ^ 1])
    yield greeting + greeting
    yield b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + chance.randbytes(200)  # TLS, or so it seems
    yield raw.buffer(raw.connect_request())  # a client that has mistaken the port
    yield b"srvr"
    yield b"GET / HTTP/1.1\r\n\r\n"
    yield b"\xff" * 100000


def disturbed(ensemble, attack):
    """Whether they work on while that happens, without another election."""
    leader = ensemble.leader()
    view = leader.follows()
    zk = ensemble.client()
    zk.ensure_path("/n")
    for part in attack:
        part()
        zk.set("/n", b"on")
    assert all(member.runs() for member in ensemble.members), "a server fell"
    assert ensemble.leader().follows() == view, "they were made to elect again"
    works(ensemble)


def talk(ensemble):
    chance = random.Random(1)
    for _ in range(3):
        for member in ensemble.members:
            for words in nonsense(chance, member.number):
                yield lambda member=member, words=words: say_to(member, words)


def nonsense_to_plain(directory):
    ensemble = Ensemble(directory).start()
    disturbed(ensemble, talk(ensemble))
    ensemble.stop()


def nonsense_to_secured(directory):
    key = write_key(f"{directory}/key", "the secret of all three servers\n")
    ensemble = Ensemble(directory, options=["--peer-key", key]).start()
    disturbed(ensemble, talk(ensemble))
    ensemble.stop()


def uninvited(directory):
    """Where nothing is proven one can say that one is server 9: nobody follows it, or lets it take part."""
    chance = random.Random(2)
    ensemble = Ensemble(directory).start()
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
            for said in frames(member.number):
                yield lambda m=member, said=said: say_to(m, hello(9, m.number), said)
            yield lambda m=member: say_to(m, hello(1 << 40, m.number), frame(1, b"x"))
    disturbed(ensemble, attack())
    ensemble.stop()


def impostor(directory):
    """There one can even say that one is another server.  That may disturb, but nobody falls."""
    chance = random.Random(3)
    ensemble = Ensemble(directory).start()
    for turn in range(150):
        member = chance.choice(ensemble.members)
        sender = chance.choice([m.number for m in ensemble.members if m is not member])
        small, large = chance.randrange(0, 6), chance.getrandbits(64)
        numbers = [chance.choice([small, large, 0, 1, member.follows()[0]]) for _ in range(6)]
        numbers += [chance.choice([0, 0, 1, small, large & 0xFFFFFFFF])]
        body = MESSAGE.pack(*numbers, chance.choice([2, 4, 5, 6]), chance.randrange(32), sender, member.number,
                            chance.randrange(4))
        body += chance.randbytes(chance.choice([0, 0, 1, 40]))
        say_to(member, hello(sender, member.number), frame(chance.choice([1, 1, 1, 2, 3, 4]), body))
        assert member.runs(), f"turn {turn}: server {member.number} fell of {body.hex()}"
    ensemble.leader()
    works(ensemble)
    ensemble.stop()


def crowd(directory):
    """Thousands of connections that say nothing: servers still find each other."""
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
    disturbed(ensemble, attack())
    away = ensemble.followers()[0]
    away.kill()
    for _ in range(20):  # some more, of which the newest crowd the others out
        held.append(raw.dial(ensemble.leader().peer))
    away.start()
    ensemble.leader()
    works(ensemble)
    for connection in held:
        connection.close()
    ensemble.stop()


# ---- Other machines ----
def other_machines(directory):
    """Without a key servers are heard and called on this machine only, unless somebody insists."""
    port = 26100 + os.getpid() % 800
    key = write_key(f"{directory}/key", "the secret of all three servers\n")

    def serve(*options):
        command = ["setpriv", "--pdeathsig", "KILL", os.environ["CONCLAVE"], "serve", "--id", "1", "--ensemble",
                   f"1=0.0.0.0:{port},2={own_host()}:{port}", "--listen", "127.0.0.1:0", "--http", "off"]
        command += ["--data", f"{directory}/data", *options]
        return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    refused = serve()
    _, said = refused.communicate(timeout=20)
    assert refused.returncode == 3 and "links to other machines need certificates or a shared key" in said, said
    for options in (["--insecure"], ["--peer-key", key]):
        server = serve(*options)
        assert "serving clients" in server.stdout.readline(), server.communicate()[1]
        server.send_signal(signal.SIGTERM)
        assert eventually(lambda: server.poll() is not None, "it ends") and server.returncode == 0
        server.communicate()


if __name__ == "__main__":
    main([shared_key, wrong_key, no_key, certificates, nonsense_to_plain, nonsense_to_secured, uninvited, impostor,
          crowd, other_machines])
