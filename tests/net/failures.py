"""Servers are killed, stopped and restarted under load: nothing that was acknowledged is lost, nothing happens
twice, and who is connected elsewhere notices nothing."""
import os
import random
import shutil
import signal
import threading
import time

from kazoo.client import KazooState

from ensemble import PATIENCE, Ensemble, eventually, main
from history import UNANSWERED, Load

import raw

BIG = 900000  # bytes of a node


class Steady(threading.Thread):
    """A client of one server that is not going to fail: it must be told of nothing but success.  Sets
    without a condition count: a version is how many there have been."""

    def __init__(self, ensemble, member, name):
        super().__init__(daemon=True)
        self.path = f"/steady-{name}"
        self.zk = ensemble.client(member)
        self.zk.create(self.path)
        self.states, self.trouble = [], None
        self.zk.add_listener(self.note_state)
        self.done, self.ended = 0, False
        self.start()

    def note_state(self, state):
        self.states.append(state)

    def run(self):
        try:
            while not self.ended:
                stat = self.zk.set(self.path, b"%d" % (self.done + 1))
                self.done += 1
                assert stat.version == self.done, f"{self.done} sets made version {stat.version}"
                assert self.zk.get(self.path)[0] == b"%d" % self.done
        except Exception as problem:
            self.trouble = problem

    def finish(self):
        self.ended = True
        self.join(PATIENCE)
        assert not self.is_alive(), f"{self.path}: no answer"
        assert self.trouble is None and not self.states, f"{self.path}: {self.trouble!r} {self.states}"
        assert self.done > 0


class Creator(threading.Thread):
    """Makes sequential nodes that say who made them and why, through whatever server there is: each that was
    acknowledged must be there once, each that was not at most once."""

    def __init__(self, ensemble, name, *members):
        super().__init__(daemon=True)
        self.name = name
        self.zk = ensemble.client(*members)
        self.zk.ensure_path("/made")
        self.acknowledged, self.unknown = {}, set()
        self.trouble, self.ended, self.number = None, False, 0
        self.start()

    def run(self):
        try:
            while not self.ended:
                self.number += 1
                mark = b"%s %d" % (self.name.encode(), self.number)
                try:
                    self.acknowledged[mark] = self.zk.create("/made/n-", mark, sequence=True)
                except UNANSWERED:
                    self.unknown.add(mark)
        except Exception as problem:
            self.trouble = problem

    def finish(self):
        self.ended = True
        self.join(PATIENCE)
        assert not self.is_alive(), f"{self.name}: no answer"
        assert self.trouble is None, f"{self.name}: {self.trouble!r}"


def verify_made(address, creators):
    """Every mark is where its creator was told, and nowhere else; numbers have no gaps."""
    client = raw.Client(address)
    told = {}
    for creator in creators:
        told.update(creator.acknowledged)
    assert len(told) > 20, "nothing was made"
    allowed = set().union(*(creator.unknown for creator in creators))
    count = client.children_count("/made")
    seen = {}
    for number in range(count):
        path = f"/made/n-{number:010d}"
        found = client.get(path)
        assert found, f"there are {count}, but no {path}"
        mark = found[0]
        assert mark not in seen, f"{mark} was made twice: {seen[mark]} and {path}"
        seen[mark] = path
    missing = [mark for mark, path in told.items() if seen.get(mark) != path]
    assert not missing, f"acknowledged and lost: {missing[:5]}"
    assert set(seen) <= set(told) | allowed, "somebody made what nobody asked for"
    client.close_session()


def sync(client):
    SYNC = 9
    assert client.call(SYNC, raw.text("/"))[0] == 0


def leader_dies(directory):
    """kill -9 of the leader, three times, while all kinds of clients work."""
    ensemble = Ensemble(directory, options=["--set", "snapCount=300"]).start()
    load = Load(ensemble, directory)
    creators = [Creator(ensemble, f"creator{i}", *ensemble.members) for i in range(2)]
    for turn in range(3):
        leader = ensemble.leader()
        steady = [Steady(ensemble, m, f"{turn}-{m.number}") for m in ensemble.members if m is not leader]
        time.sleep(0.4)
        leader.kill()
        ensemble.leader()
        before, done = load.progress(), [client.done for client in steady]
        eventually(lambda: load.progress() > before + 20, "work goes on")
        eventually(lambda: all(s.done > d + 5 for s, d in zip(steady, done)), "others go on")
        leader.start()
        ensemble.leader()
        for client in steady:
            client.finish()
    finish(ensemble, load, creators)


def finish(ensemble, load, creators):
    for creator in creators:
        creator.finish()
    load.finish()
    for member in ensemble.running():
        client = raw.Client(member.address)
        sync(client)
        client.close_session()
        verify_made(member.address, creators)
    ensemble.stop()


def all_die(directory):
    """All three at once, by kill -9, while clients work, and again while they start."""
    chance = random.Random(7)
    ensemble = Ensemble(directory, options=["--set", "snapCount=200", "--set", "preAllocSize=256"]).start()
    keeper = raw.Client(ensemble.members[0].address, timeout=30000)
    assert keeper.create("/kept", flags=raw.EPHEMERAL) == 0
    load = Load(ensemble, directory)
    creators = [Creator(ensemble, f"creator{i}", ensemble.members[i]) for i in range(3)]
    for _ in range(3):
        before = load.progress()
        eventually(lambda: load.progress() > before + 50, "work goes on")
        for again in range(2):
            for member in ensemble.members:
                member.send(signal.SIGKILL)
            for member in ensemble.members:
                member.end()
                member.spawn()
            if not again:
                time.sleep(chance.uniform(0, 0.1))
        for member in ensemble.members:
            assert member.process.stdout.readline(), member.said()
        ensemble.leader()
    keeper = raw.Client(ensemble.members[1].address, 30000, keeper.session, keeper.password, keeper.zxid)
    assert keeper.exists("/kept"), "a session went with the servers"
    finish(ensemble, load, creators)


def stopped_leader(directory):
    """SIGSTOP: nothing tells the others but silence.  SIGCONT: it finds that it leads no more."""
    ensemble = Ensemble(directory).start()
    load = Load(ensemble, directory)
    for turn in range(2):
        leader = ensemble.leader()
        others = [m for m in ensemble.members if m is not leader]
        steady = [Steady(ensemble, m, f"{turn}-{m.number}") for m in others]
        leader.send(signal.SIGSTOP)
        ensemble.leader(others)
        before = load.progress()
        eventually(lambda: load.progress() > before + 20, "work goes on")
        leader.send(signal.SIGCONT)
        ensemble.leader()
        time.sleep(0.5)  # for those who have waited for it
        for client in steady:
            client.finish()
    load.finish()
    ensemble.stop()


def followers_stopped(directory):
    """A leader that nobody answers acknowledges nothing; when they go on, nothing was done twice."""
    ensemble = Ensemble(directory).start()
    client = raw.Client(ensemble.leader().address, timeout=20000)
    assert client.create("/n") == 0
    followers = ensemble.followers()
    for turn in range(1, 4):
        for member in followers:
            member.send(signal.SIGSTOP)
        client.send(raw.SET, raw.set_record("/n", b"%d" % turn))
        client.socket.settimeout(0.2)
        try:
            raise AssertionError(f"acknowledged by the leader alone: {client.receive()}")
        except raw.Lost:
            pass  # no answer
        client.socket.settimeout(PATIENCE)
        for member in followers:
            member.send(signal.SIGCONT)
        assert client.receive()[1] == 0 and client.get("/n") == (b"%d" % turn, turn)
    ensemble.stop()


# ---- Away ----
def write_big(address, count, base="/big"):
    """That many nodes of random bytes: none of it can be packed."""
    client = raw.Client(address)
    if not client.exists(base):
        assert client.create(base) == 0
    first = client.children_count(base)
    for number in range(first, first + count):
        assert client.create(f"{base}/n{number}", random.Random(number).randbytes(BIG)) == 0
    client.close_session()


def all_of(address, base="/big"):
    """What a server has, without asking others; None: it ends connections, for a snapshot has come."""
    try:
        client = raw.Client(address)
        return [client.get(f"{base}/n{number}") for number in range(client.children_count(base))]
    except raw.Lost:
        return None


def expect_same(ensemble):
    want = all_of(ensemble.leader().address)
    for member in ensemble.members:
        eventually(lambda m=member: all_of(m.address) == want, f"server {member.number} has all")


def behind_by_log(directory):
    """Who was away for a moment is given what it missed from the log."""
    ensemble = Ensemble(directory).start()
    away = ensemble.followers()[0]
    write_big(ensemble.leader().address, 2)
    away.kill()
    write_big(ensemble.leader().address, 10)
    away.start()
    expect_same(ensemble)
    assert "a snapshot has come" not in away.said()
    ensemble.stop()


def incoming(member):
    """The size of what has come of a snapshot so far; None: nothing is coming."""
    for name in os.listdir(member.directory):
        if name.startswith("incoming."):
            try:
                return name, os.path.getsize(f"{member.directory}/{name}")
            except FileNotFoundError:
                return None
    return None


def data_lost(directory):
    """A server that comes back without what it had saved is not taken for one that never had it: its word has
    counted.  The leader says so, and others go on."""
    ensemble = Ensemble(directory).start()
    leader = ensemble.leader()
    client = ensemble.client(leader)
    client.create("/before")
    follower = next(member for member in ensemble.members if member is not leader)
    follower.kill()
    shutil.rmtree(follower.directory)
    follower.start()
    eventually(lambda: f"server {follower.number} has lost its data" in leader.said(), "it is noticed")
    client.create("/after")
    ensemble.stop()


def left_behind(directory, *options):
    """An ensemble of which one has been away for so long that the log no longer goes back to it."""
    ensemble = Ensemble(directory, options=["--set", "snapCount=20", *options]).start()
    away = ensemble.followers()[0]
    write_big(ensemble.leader().address, 1)
    away.kill()
    write_big(ensemble.leader().address, 60)
    return ensemble, away


def behind_by_snapshot(directory):
    ensemble, away = left_behind(directory)
    away.start()
    expect_same(ensemble)
    assert "a snapshot has come" in away.said(), away.said()
    client = raw.Client(away.address)  # it takes part
    assert client.set("/big", b"on") == 0
    assert incoming(away) is None
    away.kill()
    away.start()
    expect_same(ensemble)
    ensemble.stop()


def receiver_dies(directory):
    """Whoever receives a snapshot is killed while it comes, and goes on where it was."""
    ensemble, away = left_behind(directory)
    for _ in range(2):
        away.start()
        name, size = eventually(lambda: (found := incoming(away)) and found[1] > 4 << 20 and found, "it comes")
        away.kill()
        name, size = incoming(away)
        assert size >= 4 << 20
    away.spawn()
    deadline = time.monotonic() + PATIENCE
    while "a snapshot has come" not in away.said():  # without a pause: it goes quickly
        found = incoming(away)
        assert not found or (found[0] == name and found[1] >= size), f"{found} after {(name, size)}: it begins anew"
        assert time.monotonic() < deadline, "it does not come"
    assert away.process.stdout.readline()
    expect_same(ensemble)
    assert "a snapshot has come" in away.said(), away.said()
    ensemble.stop()


def sender_dies(directory):
    """Whoever sends a snapshot is killed: the next leader sends one."""
    ensemble, away = left_behind(directory)
    sender = ensemble.leader()
    away.start()
    eventually(lambda: (found := incoming(away)) and found[1] > 4 << 20, "it comes")
    sender.kill()
    ensemble.leader()
    write_big(ensemble.leader().address, 1)
    eventually(lambda: "a snapshot has come" in away.said(), away.said())
    sender.start()
    expect_same(ensemble)
    ensemble.stop()


# ---- Rolling restart ----
class Patient(threading.Thread):
    """A client of one server that is restarted: it may lose its connection while that is so, and asks again
    for what it was not answered, in a way that cannot happen twice.  It fails of anything else."""

    def __init__(self, ensemble, name, *members):
        super().__init__(name=name, daemon=True)
        self.path = f"/patient-{name}"
        self.zk = ensemble.client(*members)
        self.zk.create(self.path, b"0")
        self.zk.create(self.path + "-mine", ephemeral=True)
        self.session = self.zk.client_id
        self.lost = self.done = 0
        self.may_lose, self.ended, self.trouble = False, False, None
        self.zk.add_listener(self.note_state)
        self.start()

    def note_state(self, state):
        if state == KazooState.LOST or (state == KazooState.SUSPENDED and not self.may_lose):
            self.trouble = self.trouble or AssertionError(f"{self.name}: {state}")

    def run(self):
        try:
            while not self.ended and not self.trouble:
                self.count_up()
        except Exception as problem:
            self.trouble = problem

    def count_up(self):
        wanted = self.done + 1
        try:
            version = self.zk.set(self.path, b"%d" % wanted, version=self.done).version
        except UNANSWERED as problem:
            if not self.may_lose:
                raise
            self.lost += 1
            version = self.settle(problem)
        assert version in (self.done, wanted), f"{self.name}: version {version} after {self.done}"
        self.done = version

    def settle(self, problem):
        """What has come of a request that was not answered."""
        assert not isinstance(problem, UNANSWERED[1]), "the session was lost"
        while True:
            try:
                self.zk.sync(self.path)
                data, stat = self.zk.get(self.path)
                assert data == b"%d" % stat.version
                return stat.version
            except UNANSWERED[0]:
                assert self.may_lose

    def finish(self):
        self.ended = True
        self.join(PATIENCE)
        assert not self.is_alive(), f"{self.name}: no answer"
        assert self.trouble is None, f"{self.name}: {self.trouble!r}"
        assert self.zk.client_id == self.session and self.zk.exists(self.path + "-mine"), "another session"


def restart_each(directory, *options):
    ensemble = Ensemble(directory, options=options).start()
    # Two for each server: each knows all servers, and begins at that one.
    clients = {}
    for member in ensemble.members:
        others = [m for m in ensemble.members if m is not member]
        clients[member.number] = [Patient(ensemble, f"{member.number}-{i}", member, *others[::1 - 2 * i])
                                  for i in range(2)]
    everybody = sum(clients.values(), [])
    for _ in range(2):
        for member in sorted(ensemble.members, key=lambda m: m is ensemble.leader()):
            restart(ensemble, member, everybody)
    for client in everybody:
        client.finish()
    for member in ensemble.members:
        check_patient(member, everybody)
    ensemble.stop()


def rolling_restart(directory):
    """SIGTERM to each in turn, the leader among them: clients of the others notice nothing at all, its own
    come back within their session, and no request fails."""
    restart_each(directory)


def rolling_restart_by_threads(directory):
    """The same with a disk that is never waited for, so that there is always something under way."""
    restart_each(directory, "--set", "fsync.waitmicros=0")


def connected_to(client, member):
    connection = client.zk._connection._socket  # kazoo does not say it otherwise
    try:
        return connection is not None and "%s:%d" % connection.getpeername()[:2] == member.address
    except OSError:
        return True  # it is just being lost


def restart(ensemble, member, everybody):
    assert all(client.trouble is None for client in everybody), [client.trouble for client in everybody]
    own = [client for client in everybody if connected_to(client, member)]
    before = [client.done for client in everybody]
    for client in own:
        client.may_lose = True
    led = member is ensemble.leader()
    member.send(signal.SIGTERM)
    status = member.end()
    assert status == 0, f"server {member.number} ended with {status}: {member.said()}"
    assert member.follows()[1] != member.number, "a leader ended without handing over"
    eventually(lambda: all(c.done > b + 20 or c.trouble for c, b in zip(everybody, before)), "all go on")
    print(f"server {member.number}, leader: {led}, clients: {[c.name for c in own]}, lost: {[c.lost for c in own]}")
    for client in own:
        client.may_lose = False
    member.start()
    ensemble.leader()


def check_patient(member, everybody):
    client = raw.Client(member.address)
    sync(client)
    for patient in everybody:
        assert client.get(patient.path) == (b"%d" % patient.done, patient.done), patient.path
    client.close_session()


if __name__ == "__main__":
    main([leader_dies, all_die, stopped_leader, followers_stopped, data_lost, behind_by_log, behind_by_snapshot,
          receiver_dies, sender_dies, rolling_restart, rolling_restart_by_threads])
