"""What was acknowledged survives: kill -9 under load, torn and damaged logs, a full disk.

    kill9.py --list        the names of the tests
    kill9.py NAME          runs one below $WORK, with $CONCLAVE as the server; KILLS is how often
                           kill_loop kills the server, SEED chooses the moments
"""
import os
import random
import re
import struct
import subprocess
import sys
import threading
import time

import raw
from patience import TIMEOUT_S, HANG_S, Late, crashes, eventually, joined, judged, kept_directory

# Segments and snapshots change often, sessions are short or very long.
SMALL = ["--set", "snapCount=300", "--set", "preAllocSize=256", "--set", "minSessionTimeout=1000",
         "--set", "maxSessionTimeout=600000"]


class Server:
    """One data directory and one port, over several incarnations."""

    def __init__(self, directory, *options):
        self.directory = directory
        self.options = options
        self.address = "127.0.0.1:0"
        self.errors = f"{directory}.err"
        self.process = None
        self.is_ending = True
        crashes.append(self.crashed)

    def crashed(self):
        ended = not self.is_ending and self.process.poll() is not None
        return f"the server ended with {self.process.returncode}: {self.complaint()}" if ended else None

    def spawn(self):
        self.is_ending = False
        command = ["setpriv", "--pdeathsig", "KILL"]  # it ends with this test
        command += [os.environ["CONCLAVE"], "serve", "--data", self.directory, "--listen", self.address]
        self.process = subprocess.Popen(
            command + [*self.options], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=open(self.errors, "w"))

    def start(self):
        self.spawn()
        serving = re.match(r"conclave: serving clients on ([0-9.:]+)", self.process.stdout.readline())
        assert serving, f"does not start: {self.complaint()}"
        self.address = serving[1]
        return self

    def kill(self):
        self.is_ending = True
        self.process.kill()
        self.end()

    def end(self):
        self.is_ending = True
        self.process.wait(TIMEOUT_S)
        self.process.stdout.close()
        return self.process.returncode

    def complaint(self):
        with open(self.errors) as file:
            return file.read()[-2000:]

    def refuses_to_start(self):
        """Its exit status and its log."""
        self.spawn()
        self.process.stdout.read()
        return self.end(), self.complaint()


class Tally:
    """How many writes of one kind were acknowledged, and sent."""

    def __init__(self):
        self.acknowledged = 0
        self.sent = 0

    def allows(self, there):
        return self.acknowledged <= there <= self.sent

    def settle(self, there):
        self.acknowledged = self.sent = there


class Writer:
    """Writes rounds: a new node, the next value, and a multi of two nodes that change together.  Requests
    of one connection happen in order, so that what is there after a crash is a prefix of what was sent."""

    KINDS = ("create", "set", "multi")

    def __init__(self, index, depth):
        self.root = f"/writer{index}"
        self.depth = depth  # rounds under way at once
        self.tallies = {kind: Tally() for kind in self.KINDS}
        self.finished = []  # directories of earlier incarnations, and how many nodes each must have
        self.directory = None
        self.zxid = 0
        self.trouble = None

    def prepare(self, address):
        client = raw.Client(address)
        for path in ("", "/value", "/left", "/right"):
            assert client.create(self.root + path, b"0") == 0
        client.close_session()

    def write_until_lost(self, address, incarnation):
        """Writes until the server is killed."""
        try:
            client = raw.Client(address, zxid=self.zxid)
            self.directory = f"{self.root}/incarnation{incarnation}"
            assert client.create(self.directory) == 0
            self.finished.append((self.directory, 0))
            self.tallies["create"].settle(0)
            while True:
                self.send_rounds(client)
                self.zxid = client.zxid
        except raw.Lost:
            pass
        except Exception as error:
            self.trouble = repr(error)

    def send_rounds(self, client):
        for _ in range(self.depth):
            for kind in self.KINDS:
                self.tallies[kind].sent += 1
                client.send(*self.request(kind, self.tallies[kind].sent))
        for _ in range(self.depth):
            for kind in self.KINDS:
                _, error, body = client.receive()
                assert error == 0, f"{kind}: {error}"
                assert kind != "multi" or struct.unpack_from(">i", body)[0] == raw.SET
                self.tallies[kind].acknowledged += 1

    def request(self, kind, number):
        value = b"%d" % number
        if kind == "create":
            return raw.CREATE, raw.create_record(f"{self.directory}/n{number}", value)
        if kind == "set":
            return raw.SET, raw.set_record(f"{self.root}/value", value, number - 1)
        sides = [raw.set_record(f"{self.root}/{side}", value, number - 1) for side in ("left", "right")]
        return raw.MULTI, raw.multi_record([(raw.SET, record) for record in sides])

    def verify(self, address):
        assert self.trouble is None, self.trouble
        client = raw.Client(address, zxid=self.zxid)  # refused by a server that has less
        there = {"set": self.number_at(client, "value"), "multi": self.number_at(client, "left")}
        assert there["multi"] == self.number_at(client, "right"), "half a multi"
        there["create"] = self.count_created(client)
        for kind, count in there.items():
            tally = self.tallies[kind]
            assert tally.allows(count), f"{kind}: {count} are there of {vars(tally)}"
        begun = {kind: there[kind] - self.tallies[kind].acknowledged for kind in self.KINDS}
        for kind, count in there.items():
            self.tallies[kind].settle(count)
        client.close_session()
        return sum(begun.values())

    def number_at(self, client, name):
        data, version = client.get(f"{self.root}/{name}")
        assert int(data) == version, f"{name}: value {data} has version {version}"
        return version

    def count_created(self, client):
        """The number of nodes that were created last; earlier directories must be complete."""
        for directory, count in self.finished[:-1]:
            assert client.children_count(directory) == count, f"{directory} lost some of {count}"
        if not self.finished:
            return 0
        directory, _ = self.finished[-1]
        if not client.exists(directory):
            assert self.tallies["create"].acknowledged == 0
            self.finished.pop()
            return 0
        count = client.children_count(directory)
        for number in {min(1, count), count // 2, count} - {0}:
            found = client.get(f"{directory}/n{number}")
            assert found == (b"%d" % number, 0), f"{directory}/n{number} of {count} is {found}"
        assert not client.exists(f"{directory}/n{count + 1}"), "a gap"
        self.finished[-1] = (directory, count)
        return count


def kill_under_load(server, writers, incarnation, chance):
    """All write; the server is killed at some moment."""
    arguments = (server.address, incarnation)
    threads = [threading.Thread(target=w.write_until_lost, args=arguments, daemon=True) for w in writers]
    for thread in threads:
        thread.start()
    time.sleep(chance.uniform(0.02, 0.4))
    if incarnation == 0:  # each writes something, however slow the machine is
        eventually(lambda: all(writer.zxid > 0 or writer.trouble for writer in writers), "each writes")
    server.kill()
    for thread in threads:
        joined(thread)


class Sessions:
    """One session that is resumed after every crash, and some that are abandoned."""

    def __init__(self, address):
        self.kept = raw.Client(address, timeout=raw.SESSION_MS)
        assert self.kept.create("/kept", flags=raw.EPHEMERAL) == 0
        self.orphans = []

    def abandon_one(self, address):
        path = f"/orphan{len(self.orphans)}"

        def attempt():  # the session is short, and may be over on a busy machine
            orphan = raw.Client(address, timeout=1)
            try:
                assert orphan.create(path, flags=raw.EPHEMERAL) == 0
            except raw.Lost:
                return None
            return orphan
        self.orphans.append((eventually(attempt, "a session that lasts for one request"), path))

    def verify(self, address):
        kept = self.kept
        again = raw.Client(address, raw.SESSION_MS, kept.session, kept.password, kept.zxid)
        assert again.session == kept.session and again.password == kept.password
        assert again.exists("/kept")
        try:
            raw.Client(address, session=kept.session, password=b"?" * 16)
            raise AssertionError("a wrong password is accepted")
        except raw.Refused:
            pass
        self.kept = raw.Client(address, raw.SESSION_MS, kept.session, kept.password, again.zxid)

    def verify_restart(self, server):
        """A restart gives every session its full timeout again.  Whether the machine is quick enough to see that is
        known afterwards."""
        for _ in range(20):
            self.abandon_one(server.address)
            orphan, path = self.orphans[-1]
            time.sleep(orphan.timeout / 2000)
            server.kill()
            begun = time.monotonic()
            server.start()
            client = raw.Client(server.address)
            time.sleep(max(0, 0.8 * orphan.timeout / 1000 - (time.monotonic() - begun)))
            if client.exists(path):
                return
            assert time.monotonic() - begun > orphan.timeout / 1000, "an orphan expired before its timeout"
        raise Late("too slow every time")

    def verify_the_end(self, address):
        """In the end the orphans are gone."""
        client = raw.Client(address)
        orphan, _ = self.orphans[-1]

        def are_gone():
            assert self.kept.call(raw.PING)[0] == 0
            return not any(client.exists(name) for _, name in self.orphans)
        eventually(are_gone, "the nodes of orphans go", pause_s=0.2)
        try:
            raw.Client(address, session=orphan.session, password=orphan.password)
            raise AssertionError("an expired session is resumed")
        except raw.Refused:
            assert self.kept.exists("/kept")


def kill_loop(directory):
    kills = int(os.environ.get("KILLS", "10"))
    seed = int(os.environ.get("SEED", time.time_ns() % 1000000))
    print(f"SEED={seed} KILLS={kills}")
    chance = random.Random(seed)
    server = Server(directory, *SMALL).start()
    writers = [Writer(index, depth) for index, depth in enumerate((1, 1, 8, 40))]
    for writer in writers:
        writer.prepare(server.address)
    sessions = Sessions(server.address)
    for incarnation in range(kills):
        sessions.abandon_one(server.address)
        kill_under_load(server, writers, incarnation, chance)
        if chance.random() < 0.3:  # again, while it replays its log
            server.spawn()
            time.sleep(chance.uniform(0, 0.05))
            server.kill()
        server.start()
        begun = sum(writer.verify(server.address) for writer in writers)
        sessions.verify(server.address)
        print(f"incarnation {incarnation}: {begun} writes were committed though not acknowledged")
    sessions.verify_restart(server)
    sessions.verify(server.address)
    sessions.verify_the_end(server.address)
    assert all(writer.zxid > 0 and writer.tallies["multi"].acknowledged > 0 for writer in writers)
    server.kill()


def write_one_by_one(address, path, count):
    """Each value in a write of its own, so that the last of them is the last entry of the log."""
    client = raw.Client(address)
    assert client.create(path, b"0") == 0
    for number in range(1, count + 1):
        assert client.set(path, b"%d" % number) == 0
    client.drop()


def newest_log(directory):
    """The newest segment, and where its entries end: the rest is preallocated zeros."""
    names = sorted(n for n in os.listdir(directory) if re.fullmatch(r"log\.[0-9a-f]{16}", n))
    path = f"{directory}/{names[-1]}"
    with open(path, "rb") as file:
        return path, len(file.read().rstrip(b"\0"))


def overwrite(path, offset, data):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def content(path):
    with open(path, "rb") as file:
        return file.read()


def torn_tail(directory):
    """What a power failure leaves of the last write is cut off, and nothing else."""
    server = Server(directory).start()
    for number, cut in enumerate((1, 9, 20, 60)):
        path = f"/n{number}"
        write_one_by_one(server.address, path, 10)
        mark = content(f"{directory}/mark")
        write_one_by_one(server.address, f"{path}x", 10)
        server.kill()
        segment, end = newest_log(directory)
        overwrite(segment, end - cut, bytes(cut))
        overwrite(f"{directory}/mark", 0, mark)  # it was not synced either
        server.start()
        client = raw.Client(server.address)
        data, version = client.get(f"{path}x")
        assert version in (9, 10) and int(data) == version, (data, version)
        assert client.set(path, b"on") == 0
        client.drop()
    server.kill()
    server.start()
    assert raw.Client(server.address).get(path)[0] == b"on", "what came after the tear is lost"
    server.kill()


def damaged_end(directory):
    """An end that was acknowledged and is gone is not taken for torn: a server alone does not start before it is told to."""
    server = Server(directory).start()
    for number in range(5):
        path = f"/n{number}"
        write_one_by_one(server.address, path, 40)
        server.kill()
        segment, end = newest_log(directory)
        size = os.path.getsize(segment)
        if number == 0:
            overwrite(segment, end - 30, bytes([content(segment)[end - 30] ^ 4]))
        if number == 1:
            overwrite(segment, end - 500, bytes(500))
        if number == 2:
            overwrite(segment, end - 500, b"garbage " * 70)
        if number == 3:
            os.truncate(segment, end - 500)
        if number == 4:
            os.truncate(segment, size - 1)
        status, log = server.refuses_to_start()
        assert status == 3 and os.path.basename(segment) in log and "recover --cut" in log, log
        recover = [os.environ["CONCLAVE"], "recover", "--data", directory]
        found = subprocess.run(recover, capture_output=True, text=True)
        assert found.returncode == 1 and "may have been acknowledged" in found.stdout, found
        found = subprocess.run([*recover, "--cut"], capture_output=True, text=True)
        assert found.returncode == 0 and "what is left" in found.stdout, found
        server.start()
        client = raw.Client(server.address)
        assert 0 < client.get(path)[1] <= 40
        client.drop()
    server.kill()


def directory_removed(directory):
    """Nothing is acknowledged that is written to files which nobody will find again."""
    server = Server(directory).start()
    write_one_by_one(server.address, "/n", 5)
    client = raw.Client(server.address)
    os.rename(directory, f"{directory}.moved")
    try:
        answer = client.set("/n", b"lost")
    except raw.Lost:
        answer = None
    assert answer != 0, "it was acknowledged"
    assert server.end() == 3 and "was removed, moved or replaced" in server.complaint()
    os.rename(f"{directory}.moved", directory)
    server.start()
    assert raw.Client(server.address).get("/n")[1] in (5, 6)
    server.kill()


def flipped_byte(directory):
    """Damage that no crash explains is not ignored: the server logs where it is, and does not start."""
    server = Server(directory).start()
    write_one_by_one(server.address, "/n", 200)
    server.kill()
    path, end = newest_log(directory)
    for part in (0.3, 0.5, 0.9):
        offset = int(end * part)
        with open(path, "rb") as file:
            file.seek(offset)
            (was,) = file.read(1)
        overwrite(path, offset, bytes([was ^ 0x10]))
        status, log = server.refuses_to_start()
        assert status == 3, f"status {status}: {log}"
        assert os.path.basename(path) in log and "conclave recover" in log, log
        _, rest = log.split(os.path.basename(path), 1)
        numbers = [int(n, 0) for n in re.findall(r"\b(?:0x[0-9a-f]+|\d+)\b", rest)]
        assert any(0 <= offset - n < 4096 for n in numbers), f"no offset near {offset} in: {log}"
        overwrite(path, offset, bytes([was]))
    server.start()
    assert raw.Client(server.address).get("/n") == (b"200", 200)
    server.kill()


def full_disk(directory):
    """The server logs that and ends; with room again, everything acknowledged is there.  Mounts a disk, so it
    needs a mount namespace of its own."""
    os.mkdir(directory)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", directory], check=True)
    try:
        fill_and_free(directory)
    finally:
        subprocess.run(["umount", "--lazy", directory], check=True)


def fill_and_free(disk):
    with open(f"{disk}/filler", "wb") as file:
        file.write(bytes(8 << 20))
    server = Server(f"{disk}/data", "--set", "preAllocSize=1024")
    server.errors = f"{disk}.err"  # not on the disk that fills up
    server.start()
    acknowledged = create_until_lost(raw.Client(server.address))
    assert acknowledged > 10, acknowledged
    status = server.end()
    assert status > 0, f"it ended with status {status}"
    assert "No space left" in server.complaint(), server.complaint()
    os.unlink(f"{disk}/filler")
    server.start()
    client = raw.Client(server.address)
    for number in range(acknowledged):
        data, version = client.get(f"/n{number}")
        assert len(data) == 100000 and version == 0
    assert client.create("/more", b"x") == 0
    server.kill()


def create_until_lost(client):
    """How many creates of 100 KB were acknowledged until the server was gone."""
    for acknowledged in range(1000):
        try:
            assert client.create(f"/n{acknowledged}", os.urandom(100000)) == 0
        except raw.Lost:
            return acknowledged
    raise AssertionError("100 MB fitted into 24")


TESTS = [kill_loop, torn_tail, flipped_byte, damaged_end, directory_removed, full_disk]


def main():
    names = {test.__name__: test for test in TESTS}
    if sys.argv[1:] == ["--list"]:
        print("\n".join(names))
        return
    with judged(HANG_S + 10 * int(os.environ.get("KILLS", "10"))), kept_directory(sys.argv[1]) as work:
        names[sys.argv[1]](f"{work}/data")


main()
