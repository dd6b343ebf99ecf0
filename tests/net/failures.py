"""Servers are killed, stopped and restarted under load: nothing that was acknowledged is lost, nothing happens
twice, and clients of other servers notice nothing."""
import os
import random
import re
import signal
import struct
import threading
import time

from kazoo.client import KazooState
from kazoo.exceptions import ConnectionLoss

from ensemble import TIMEOUT_S, Ensemble, connect, eventually, main, trim
from patience import joined
from history import UNANSWERED, Load

import raw

BIG = 900000  # bytes of a node
EPHEMERAL, MULTI = 1, 14
SYSTEM_ERROR = -1


class Steady(threading.Thread):
    """A client of one server that is not going to fail: all its requests must succeed.  Sets without a
    condition are counted by the version."""

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
        joined(self)
        if self.trouble or self.states:
            cause = None if KazooState.LOST in self.states else self.trouble or ConnectionLoss()
            raise AssertionError(f"{self.path}: {self.trouble!r} {self.states}") from cause
        assert self.done > 0


class Creator(threading.Thread):
    """Creates sequential nodes, each with data of its own, through any server: each that was acknowledged must
    exist once, each that was not at most once."""

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
        joined(self)
        assert self.trouble is None, f"{self.name}: {self.trouble!r}"


def verify_made(address, creators):
    """Every mark is at the path that was acknowledged, and nowhere else; numbers have no gaps."""
    client = connect(address)
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
    assert set(seen) <= set(told) | allowed, "a node that no creator asked for"
    client.close_session()


def sync(client):
    SYNC = 9
    assert client.call(SYNC, raw.text("/"))[0] == 0


def leader_killed(directory):
    """kill -9 of the leader, three times, while all kinds of clients work."""
    ensemble = Ensemble(directory, options=["--set", "snapCount=300"]).start()
    load = Load(ensemble, directory)
    creators = [Creator(ensemble, f"creator{i}", *ensemble.members) for i in range(2)]
    for number in range(3):
        leader = ensemble.leader()
        steady = [Steady(ensemble, m, f"{number}-{m.number}") for m in ensemble.members if m is not leader]
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
        client = connect(member.address)
        sync(client)
        client.close_session()
        verify_made(member.address, creators)
    ensemble.stop()


def all_killed(directory):
    """All three at once, by kill -9, while clients work, and again while they start."""
    chance = random.Random(7)
    ensemble = Ensemble(directory, options=["--set", "snapCount=200", "--set", "preAllocSize=256"]).start()
    keeper = connect(ensemble.members[0].address)
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
            assert member.process.stdout.readline(), member.log()
        ensemble.leader()
    keeper = connect(ensemble.members[1].address, raw.SESSION_MS, keeper.session, keeper.password, keeper.zxid)
    assert keeper.exists("/kept"), "a session was lost with the servers"
    finish(ensemble, load, creators)


def stopped_leader(directory):
    """SIGSTOP: only the election timeout tells the others.  SIGCONT: it notices that it leads no more."""
    ensemble = Ensemble(directory).start()
    load = Load(ensemble, directory)
    for number in range(2):
        leader = ensemble.leader()
        others = [m for m in ensemble.members if m is not leader]
        steady = [Steady(ensemble, m, f"{number}-{m.number}") for m in others]
        leader.send(signal.SIGSTOP)
        ensemble.leader(others)
        before = load.progress()
        eventually(lambda: load.progress() > before + 20, "work goes on")
        leader.send(signal.SIGCONT)
        ensemble.leader()
        time.sleep(0.5)  # for requests that have waited for it
        for client in steady:
            client.finish()
    load.finish()
    ensemble.stop()


def followers_stopped(directory):
    """A leader without answers from followers acknowledges nothing; when they go on, nothing is done twice."""
    ensemble = Ensemble(directory).start()
    leader = ensemble.leader()
    client = connect(leader.address)
    assert client.create("/n") == 0
    followers = [m for m in ensemble.members if m is not leader]
    for number in range(1, 4):
        for member in followers:
            member.send(signal.SIGSTOP)
        client.send(raw.SET, raw.set_record("/n", b"%d" % number))
        client.socket.settimeout(0.2)
        try:
            raise AssertionError(f"acknowledged by the leader alone: {client.receive()}")
        except raw.Lost:
            pass  # no answer
        client.socket.settimeout(TIMEOUT_S)
        for member in followers:
            member.send(signal.SIGCONT)
        try:
            assert client.receive()[1] == 0
        except raw.Lost:  # for two seconds it had no leader; what it was asked for may have been done
            client = eventually(lambda: again(leader.address, client), "it takes the client back")
            if client.get("/n") != (b"%d" % number, number):
                assert client.set("/n", b"%d" % number, number - 1) == 0
        assert client.get("/n") == (b"%d" % number, number)
    ensemble.stop()


def again(address, client):
    """The session of that client on another connection; None: not yet."""
    try:
        return raw.Client(address, session=client.session, password=client.password, zxid=client.zxid)
    except raw.Lost:
        return None


# ---- Members that lag ----
def write_big(address, count, base="/big"):
    """That many nodes of random bytes, which cannot be compressed."""
    client = connect(address)
    if not client.exists(base):
        assert client.create(base) == 0
    first = client.children_count(base)
    for number in range(first, first + count):
        assert client.create(f"{base}/n{number}", random.Random(number).randbytes(BIG)) == 0
    client.close_session()


def all_of(address, base="/big"):
    """What a server has, without a sync; None: it ended the connection, because it installed a snapshot."""
    try:
        client = raw.Client(address)
        return [client.get(f"{base}/n{number}") for number in range(client.children_count(base))]
    except raw.Lost:
        return None


def expect_same(ensemble, base="/big"):
    want = all_of(ensemble.leader().address, base)
    for member in ensemble.members:
        eventually(lambda m=member: all_of(m.address, base) == want, f"server {member.number} has all")


def catches_up_by_log(directory):
    """A server that was away for a moment gets what it missed from the log."""
    ensemble = Ensemble(directory).start()
    away = ensemble.followers()[0]
    write_big(ensemble.leader().address, 2)
    away.kill()
    write_big(ensemble.leader().address, 10)
    away.start()
    expect_same(ensemble)
    assert "a snapshot of the leader was installed" not in away.log()
    ensemble.stop()


def catches_up_by_log_on_disk(directory):
    """So does one that was away for longer than entries are kept in memory."""
    ensemble = Ensemble(directory, options=["--set", "ensemble.keptBytes=100000"]).start()
    away = ensemble.followers()[0]
    write_big(ensemble.leader().address, 1)
    away.kill()
    write_big(ensemble.leader().address, 6)
    away.start()
    expect_same(ensemble)
    assert "a snapshot of the leader was installed" not in away.log()
    ensemble.stop()


def incoming(member):
    """Name and size of a snapshot that is being received; None: there is none."""
    for name in os.listdir(member.directory):
        if name.startswith("incoming."):
            try:
                return name, os.path.getsize(f"{member.directory}/{name}")
            except FileNotFoundError:
                return None
    return None


def with_lagging_member(directory, *options):
    """An ensemble one of whose members was away for so long that it needs a snapshot."""
    settings = ["--set", "snapCount=20", "--set", "preAllocSize=1024", "--set", "autopurge.snapRetainCount=1"]
    ensemble = Ensemble(directory, options=[*settings, *options]).start()
    away = ensemble.followers()[0]
    write_big(ensemble.leader().address, 1)
    away.kill()
    write_big(ensemble.leader().address, 60)
    trim(ensemble.running(), lambda: write_big(ensemble.leader().address, 1))
    return ensemble, away


def catches_up_by_snapshot(directory):
    ensemble, away = with_lagging_member(directory)
    away.start()
    expect_same(ensemble)
    assert "a snapshot of the leader was installed" in away.log(), away.log()
    client = connect(away.address)  # it takes part
    assert client.set("/big", b"on") == 0
    assert incoming(away) is None
    away.kill()
    away.start()
    expect_same(ensemble)
    ensemble.stop()


def no_memory_for_two_trees(directory):
    """A snapshot is loaded in place of the tree that is there, where the memory limit allows no other."""
    ensemble, away = with_lagging_member(directory)
    unlimited = away.options
    away.options = [*unlimited, "--set", "memory.maxMiB=8"]  # less than it has: it takes no clients
    away.spawn()
    eventually(lambda: "a snapshot of the leader was installed" in away.log(), away.log)
    assert "there is no memory for two trees" in away.log(), away.log()
    away.kill()
    away.options = unlimited
    away.start()
    expect_same(ensemble)
    ensemble.stop()


def memory_of_one_is_short(directory):
    """What is written through one member all have to keep, so nobody takes more than the one with the least memory."""
    def fill(first):
        for number in range(first, 200):
            err = client.create(f"/full/{number}", b"x" * 500000)
            if err:
                assert err == SYSTEM_ERROR, err
                return number
        raise AssertionError("it takes everything")

    ensemble = Ensemble(directory)
    small = ensemble.members[0]
    small.options = [*small.options, "--set", "memory.maxMiB=48"]
    ensemble.start()
    other = next(member for member in ensemble.roles()[1] if member is not small)
    client = connect(other.address)
    assert client.create("/full") == 0
    made = fill(0)
    assert made > 10, made
    assert f"another server is short, so requests that need more are refused here, too server={small.number}" \
        in other.log(), other.log()
    assert connect(small.address).get("/full/0") == (b"x" * 500000, 0)
    for number in range(made):
        assert client.call(raw.DELETE, raw.text(f"/full/{number}") + struct.pack(">i", -1))[0] == 0
    eventually(lambda: client.create("/full/n0", b"x" * 500000) == 0, "there is room again", pause_s=0.1)
    expect_same(ensemble, "/full")
    ensemble.stop()


def much_at_a_time(directory):
    """A snapshot of many nodes is installed, and a session with many ephemeral nodes ends, in many small slices."""
    nodes, ephemerals, steps = 100000, 6000, 100
    ensemble = Ensemble(directory, options=[
        "--set", "snapCount=20", "--set", "ensemble.keptBytes=65536", "--set", f"loop.steps={steps}",
        "--set", "preAllocSize=256", "--set", "autopurge.snapRetainCount=1",
        "--set", "4lw.commands.whitelist=*"]).start()
    leader, (away, _) = ensemble.roles()
    client = connect(leader.address)
    assert client.create("/many") == 0
    away.kill()
    for first in range(0, nodes, 2000):
        create_many(client, [f"/many/{number}" for number in range(first, first + 2000)], 0)
    create_many(client, [f"/e{number}" for number in range(ephemerals)], EPHEMERAL)
    trim([leader], lambda: client.set("/many", b""))
    away.start()
    eventually(lambda: "a snapshot of the leader was installed" in away.log(), away.log())
    full = figure(leader, "loop_full_iterations")
    client.close_session()
    for member in ensemble.members:
        eventually(lambda m=member: figure(m, "ephemerals_count") == 0 and children(m, "/many") == nodes,
                   f"server {member.number} has all")
    assert figure(leader, "loop_full_iterations") - full >= ephemerals // steps
    ensemble.stop()


def create_many(client, paths, flags):
    err, _ = client.call(MULTI, raw.multi_record([(1, raw.create_record(path, b"", flags)) for path in paths]))
    assert err == 0, err


def children(member, path):
    try:
        return raw.Client(member.address).children_count(path)
    except raw.Lost:
        return None


def figure(member, name):
    with raw.dial(member.address) as connection:
        connection.sendall(b"mntr")
        text = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    return int(re.search(rf"^zk_{name}\t(\d+)$", text, re.M)[1])


def newest_snapshot(member):
    names = [name for name in os.listdir(member.directory) if name.startswith("snapshot.")]
    return f"{member.directory}/{max(names)}"


def snapshot_damaged(directory):
    """The newest snapshot of whoever leads is damaged: it is set aside, that is said once, and a new one is sent."""
    ensemble, away = with_lagging_member(directory, "--set", "ensemble.keptBytes=48000000")  # more than after it
    for member in ensemble.running():
        eventually(lambda m=member: "new.snapshot" not in os.listdir(m.directory), "no other one is being written")
        with open(newest_snapshot(member), "r+b") as file:
            file.seek(os.path.getsize(file.name) // 2)
            file.write(b"damage")
    away.start()
    expect_same(ensemble)
    said = [m for m in ensemble.members if "a snapshot is damaged; it was renamed" in m.log()]
    assert said, "nobody says it"
    for member in said:
        assert member.log().count("a snapshot is damaged") == 1, member.log()
        assert any(name.startswith("damaged.snapshot.") for name in os.listdir(member.directory))
    ensemble.stop()


def snapshots_removed(directory):
    """Somebody has removed the snapshots of the leader, which knows of no entry after the newest; and a member needs
    one while nobody writes."""
    ensemble, away = with_lagging_member(directory)
    leader = ensemble.leader()
    client = connect(leader.address)
    before = newest_snapshot(leader)

    def newest_has_all():
        assert client.set("/big", os.urandom(900000)) == 0
        time.sleep(0.2)
        return newest_snapshot(leader) != before
    eventually(newest_has_all, "a snapshot after the last write")
    for name in os.listdir(leader.directory):
        if name.startswith("snapshot."):
            os.remove(f"{leader.directory}/{name}")
    away.start()
    eventually(lambda: "a snapshot of the leader was installed" in away.log(), "the member has a snapshot")
    expect_same(ensemble)
    ensemble.stop()


def receiver_killed(directory):
    """The receiver of a snapshot is killed meanwhile, and goes on where it was."""
    ensemble, away = with_lagging_member(directory)
    for _ in range(2):
        away.start()
        name, size = eventually(lambda: (found := incoming(away)) and found[1] > 4 << 20 and found, "it comes")
        away.kill()
        name, size = incoming(away)
        assert size >= 4 << 20
    away.spawn()

    def is_installed():
        found = incoming(away)
        assert not found or (found[0] == name and found[1] >= size), f"{found} after {(name, size)}: it begins anew"
        return "a snapshot of the leader was installed" in away.log()
    eventually(is_installed, "it comes", pause_s=0)  # it goes quickly
    assert away.process.stdout.readline()
    expect_same(ensemble)
    assert "a snapshot of the leader was installed" in away.log(), away.log()
    ensemble.stop()


def sender_killed(directory):
    """The sender of a snapshot is killed: the next leader sends one."""
    ensemble, away = with_lagging_member(directory)
    sender = ensemble.leader()
    away.start()
    eventually(lambda: (found := incoming(away)) and found[1] > 4 << 20, "it comes")
    sender.kill()
    ensemble.leader()
    write_big(ensemble.leader().address, 1)
    eventually(lambda: "a snapshot of the leader was installed" in away.log(), away.log())
    sender.start()
    expect_same(ensemble)
    ensemble.stop()


# ---- Rolling restart ----
class Reconnecting(threading.Thread):
    """A client of one server that is restarted: it may lose its connection meanwhile, and repeats requests that
    were not answered in a way that cannot take effect twice.  Anything else is a failure."""

    def __init__(self, ensemble, name, *members):
        super().__init__(name=name, daemon=True)
        self.path = f"/reconnecting-{name}"
        self.zk = ensemble.client(*members)
        self.zk.create(self.path, b"0")
        self.zk.create(self.path + "-mine", ephemeral=True)
        self.session = self.zk.client_id
        self.lost = self.done = 0
        self.may_lose, self.ended, self.trouble = False, False, None
        self.zk.add_listener(self.note_state)
        self.start()

    def note_state(self, state):
        if state == KazooState.LOST:
            self.trouble = self.trouble or AssertionError(f"{self.name}: {state}")
        if state == KazooState.SUSPENDED and not self.may_lose:
            self.trouble = self.trouble or ConnectionLoss(f"{self.name}: {state}")

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
        """What became of a request that was not answered."""
        assert not isinstance(problem, UNANSWERED[1]), "the session was lost"
        while True:
            try:
                self.zk.sync(self.path)
                data, stat = self.zk.get(self.path)
                assert data == b"%d" % stat.version
                return stat.version
            except UNANSWERED[0]:
                if not self.may_lose:
                    raise

    def finish(self):
        self.ended = True
        joined(self)
        expect_no_trouble([self])
        assert self.zk.client_id == self.session and self.zk.exists(self.path + "-mine"), "another session"


def expect_no_trouble(clients):
    for client in clients:
        if client.trouble:
            raise AssertionError(f"{client.name}: {client.trouble!r}") from client.trouble


def restart_each(directory, *options):
    ensemble = Ensemble(directory, options=options).start()
    # Two for each server: each knows all servers, and begins at that one.
    clients = {}
    for member in ensemble.members:
        others = [m for m in ensemble.members if m is not member]
        clients[member.number] = [Reconnecting(ensemble, f"{member.number}-{i}", member, *others[::1 - 2 * i])
                                  for i in range(2)]
    everybody = sum(clients.values(), [])
    transfers = 0
    for turn in range(10):
        for member in sorted(ensemble.members, key=lambda m: m is ensemble.leader()):
            transfers += restart(ensemble, member, everybody)
        if turn > 0 and transfers >= 2:
            break
    assert transfers >= 2, "leaders end without a transfer"
    for client in everybody:
        client.finish()
    for member in ensemble.members:
        check_reconnecting(member, everybody)
    ensemble.stop()


def rolling_restart(directory):
    """SIGTERM to each in turn, the leader among them: clients of the others notice nothing at all, its own
    come back within their session, and no request fails."""
    restart_each(directory)


def rolling_restart_by_threads(directory):
    """The same with all writes by a thread, so that there is always one under way."""
    restart_each(directory, "--set", "fsync.waitmicros=0")


def connected_to(client, member):
    connection = client.zk._connection._socket  # kazoo has no other way to ask
    try:
        return connection is not None and "%s:%d" % connection.getpeername()[:2] == member.address
    except OSError:
        return True  # it is just being lost


def restart(ensemble, member, everybody):
    expect_no_trouble(everybody)
    own = [client for client in everybody if connected_to(client, member)]
    before = [client.done for client in everybody]
    for client in own:
        client.may_lose = True
    led = ensemble.leader() is member
    member.send(signal.SIGTERM)
    status = member.end()
    assert status == 0, f"server {member.number} ended with {status}: {member.log()}"
    transferred = led and member.follows()[1] != member.number  # it does not wait for that for long
    eventually(lambda: all(c.done > b + 20 or c.trouble for c, b in zip(everybody, before)), "all go on")
    print(f"server {member.number}, leader: {led}, clients: {[c.name for c in own]}, lost: {[c.lost for c in own]}")
    for client in own:
        client.may_lose = False
    member.start()
    ensemble.leader()
    return transferred


def check_reconnecting(member, everybody):
    client = connect(member.address)
    sync(client)
    for client_ in everybody:
        assert client.get(client_.path) == (b"%d" % client_.done, client_.done), client_.path
    client.close_session()


if __name__ == "__main__":
    main([leader_killed, all_killed, stopped_leader, followers_stopped, catches_up_by_log, catches_up_by_log_on_disk,
          catches_up_by_snapshot, no_memory_for_two_trees, memory_of_one_is_short, much_at_a_time, snapshot_damaged,
          snapshots_removed, receiver_killed, sender_killed, rolling_restart, rolling_restart_by_threads])
