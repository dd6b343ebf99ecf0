"""Three servers behave as one: what is written through one is seen through the others."""
import signal
import struct
import threading
import time

from kazoo import exceptions as error
from kazoo.client import KazooState
from kazoo.security import make_digest_acl

from ensemble import Ensemble, Traveller, connect, eventually, longer_and_longer, main, raises, without_election

import raw


SYNC, AUTH, AUTH_XID = 9, 100, -4  # opcodes and a reserved xid
AUTH_FAILED = -115


def started(directory, *options):
    return Ensemble(directory, options=options).start()


def one_client_each(ensemble):
    return [ensemble.client(member) for member in ensemble.members]


def after_sync(zk, path):
    zk.sync(path)
    return zk.get(path)


def roles(directory):
    """Each reports its role, and its log says the same."""
    ensemble = started(directory)
    clients = one_client_each(ensemble)

    def ask():
        leader = ensemble.leader()
        modes.clear()
        for member, zk in zip(ensemble.members, clients):
            modes.append(f"Mode: {'leader' if member is leader else 'follower'}\n" in zk.command(b"srvr"))
    modes = []
    without_election(ensemble, ask, "there is always an election")
    assert all(modes), modes
    ensemble.stop()


def writes_are_seen_everywhere(directory):
    """A client sees its own writes at once, others' after a sync, and in the end without one."""
    ensemble = started(directory)
    clients = one_client_each(ensemble)
    clients[0].create("/n", b"")
    for number in range(60):
        writer = clients[number % 3]
        value = b"%d" % number
        stat = writer.set("/n", value) if number else writer.set("/n", value, version=-1)
        assert writer.get("/n") == (value, stat), "a client does not see its own write"
        for zk in clients:
            assert after_sync(zk, "/n") == (value, stat), "a sync was not enough"
    for number, zk in enumerate(clients):
        zk.create(f"/of{number}")
    for zk in clients:
        eventually(lambda zk=zk: {"of0", "of1", "of2"} <= set(zk.get_children("/")), "others' nodes")
    clients[1].delete("/n")
    for zk in clients:
        zk.sync("/n")
        assert zk.exists("/n") is None
    ensemble.stop()


def stale_reads(directory, options, before_read):
    """The number of reads through a follower that began after a write was acknowledged, and did not show it.
    The follower is stopped until then, so that it lags when it is asked."""
    ensemble = started(directory, *options)
    lagging = ensemble.followers()[0]
    writer, reader = connect(ensemble.leader().address), connect(lagging.address)
    assert writer.create("/n", b"") == 0
    stale = 0
    for _ in range(8):
        lagging.send(signal.SIGSTOP)
        for number in range(20):
            assert writer.set("/n", b"%d" % number + b"-" * 100000) == 0
        before_read(reader)
        asked = reader.send(raw.GET, raw.path_record("/n"))
        lagging.send(signal.SIGCONT)
        while (answer := reader.receive())[0] != asked:
            pass
        # No node is as stale as an old value.
        stale += answer[1] != 0 or not raw.read_buffer(answer[2])[0].startswith(b"19-")
    ensemble.stop()
    return stale


def send_sync(client):
    client.send(SYNC, raw.text("/n"))


def send_nothing(_):
    pass


def sync_waits(directory):
    """A read after a sync shows all that was acknowledged before it began."""
    assert stale_reads(directory, (), send_sync) == 0


def linearizable_reads(directory):
    """With --reads linearizable every read does."""
    assert stale_reads(directory, ("--reads", "linearizable"), send_nothing) == 0


def sequential_reads(directory):
    """Without either some do not; otherwise the two tests above would prove nothing."""
    assert stale_reads(directory, (), send_nothing) > 0


def reads_of_a_former_leader(directory):
    """It was stopped, and is asked before it knows of the new leader: it does not answer from its own tree."""
    ensemble = started(directory, "--reads", "linearizable")
    for number in range(1, 4):
        old = ensemble.leader()
        others = [m for m in ensemble.members if m is not old]
        reader = connect(old.address)
        writer = connect(others[0].address)
        assert number > 1 or writer.create("/n") == 0
        assert reader.exists("/n")
        old.send(signal.SIGSTOP)
        ensemble.leader(others)
        assert writer.set("/n", b"%d" % number) == 0
        reader.send(raw.GET, raw.path_record("/n"))
        old.send(signal.SIGCONT)
        try:
            assert raw.read_buffer(reader.receive()[2])[0] == b"%d" % number, "an old value"
        except raw.Lost:
            pass
        ensemble.leader()
    ensemble.stop()


def watches(directory):
    """They fire at the server that the client is connected to, which then shows the change."""
    ensemble = started(directory)
    clients = one_client_each(ensemble)
    clients[0].create("/w", b"before")
    events = []

    def watcher(zk, index):
        def fired(event):  # on kazoo's thread for events, where no request can be made
            events.append((index, event.type, event.path))
        return fired
    for index, zk in enumerate(clients):
        zk.sync("/w")
        zk.get("/w", watch=watcher(zk, index))
        zk.get_children("/w", watch=watcher(zk, index))
        zk.exists("/new", watch=watcher(zk, index))
    clients[2].set("/w", b"after")
    clients[0].create("/w/child")
    clients[1].create("/new")
    expected = sorted((index, kind, path) for index in range(3) for kind, path in
                      (("CHANGED", "/w"), ("CHILD", "/w"), ("CREATED", "/new")))
    eventually(lambda: len(events) >= len(expected), "all watches fire")
    for zk in clients:
        assert zk.get("/w")[0] == b"after" and zk.exists("/w/child") and zk.exists("/new")
    clients[0].set("/w", b"unseen")
    clients[0].delete("/new")
    time.sleep(0.1)
    assert sorted(events) == expected, events
    ensemble.stop()


def events_come_first(directory):
    """No read shows a watched change before its event has come, on a follower as well."""
    ensemble = started(directory)
    writer = connect(ensemble.leader().address)
    readers = [connect(member.address) for member in ensemble.members]
    assert writer.create("/w", b"0") == 0
    for number in range(1, 100):
        for reader in readers:
            eventually(lambda reader=reader: reader.get("/w") == (b"%d" % (number - 1), number - 1), "the last value")
            reader.events = 0
            assert reader.call(raw.GET, raw.path_record("/w", watch=True))[0] == 0
        asked = writer.send(raw.SET, raw.set_record("/w", b"%d" % number))
        for reader in readers:
            while reader.get("/w")[0] != b"%d" % number:
                pass
            assert reader.events == 1, "a change was seen before its event"
        assert writer.receive()[:2] == (asked, 0)
    ensemble.stop()


def sequence(directory):
    """Numbers of sequential nodes are unique and without gaps, through any server."""
    ensemble = started(directory)
    clients = one_client_each(ensemble)
    clients[0].create("/q")
    made = [[], [], []]

    def make(index):
        for _ in range(100):
            made[index].append(clients[index].create("/q/n-", sequence=True))
    threads = [threading.Thread(target=make, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = sum(made, [])
    assert sorted(names) == [f"/q/n-{number:010d}" for number in range(300)]
    assert all(own == sorted(own) for own in made)
    ensemble.stop()


def identities(directory):
    """The identities of a client go with its request, through any server."""
    ensemble = started(directory)
    for index, member in enumerate(ensemble.members):
        others = [m for m in ensemble.members if m is not member]
        owner = ensemble.client(member, auth_data=[("digest", "ann:secret")])
        path = f"/private{index}"
        owner.create(path, b"mine", acl=[make_digest_acl("ann", "secret", all=True)])
        for other in others:
            stranger = ensemble.client(other, auth_data=[("digest", "ann:guess")])
            stranger.sync(path)
            raises(error.NoAuthError, stranger.get, path)
            raises(error.NoAuthError, stranger.set, path, b"taken")
            raises(error.NoAuthError, stranger.delete, path + "/none")
            friend = ensemble.client(other, auth_data=[("digest", "ann:secret")])
            friend.set(path, b"shared")
            friend.create(f"{path}/by-{other.number}", acl=[make_digest_acl("ann", "secret", all=True)])
            assert friend.get(path)[0] == b"shared"
        owner.sync(path)
        assert len(owner.get_children(path)) == 2
    ensemble.stop()


def prove(client, user):
    record = struct.pack(">i", 0) + raw.text("digest") + raw.text(user + ":secret")
    client.send_frame(struct.pack(">ii", AUTH_XID, AUTH) + record)
    return struct.unpack_from(">iqi", client.receive_frame())[2]


def largest_request(directory):
    """The largest request of a client with as many identities as possible still fits into a frame between servers."""
    frame_max = 15 << 20
    ensemble = started(directory, "--set", f"jute.maxbuffer={frame_max}")
    for index, member in enumerate(ensemble.members):
        client = connect(member.address)
        for i in range(2):
            assert prove(client, f"{i}" + "n" * 450) == 0
        assert client.create(f"/n{index}", b"x" * (frame_max - 200)) == 0
        assert prove(client, "1" + "n" * 450) == 0  # which it is already
        assert prove(client, "n" * 450) == AUTH_FAILED
        greedy = connect(member.address)
        assert prove(greedy, "n" * 1000000) == AUTH_FAILED
    for member in ensemble.members:
        zk = ensemble.client(member)
        zk.sync("/")
        assert [zk.exists(f"/n{index}").dataLength for index in range(3)] == [frame_max - 200] * 3
    ensemble.stop()


def transactions(directory):
    """All or nothing, through any server, concurrently."""
    ensemble = started(directory)
    clients = one_client_each(ensemble)
    clients[0].create("/left", b"0")
    clients[0].create("/right", b"0")
    done = [0, 0, 0]

    def count_up(index):
        zk = clients[index]
        while done[index] < 30:
            version = after_sync(zk, "/left")[1].version
            multi = zk.transaction()
            multi.check("/left", version)
            multi.set_data("/left", b"%d" % (version + 1), version=version)
            multi.set_data("/right", b"%d" % (version + 1), version=version)
            results = multi.commit()
            if not isinstance(results[0], Exception):
                done[index] += 1
    threads = [threading.Thread(target=count_up, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for zk in clients:
        for path in ("/left", "/right"):
            data, stat = after_sync(zk, path)
            assert (data, stat.version) == (b"90", 90), (path, data, stat.version)
        multi = zk.transaction()
        multi.create("/half")
        multi.delete("/none")
        assert isinstance(multi.commit()[1], error.NoNodeError)
        assert zk.exists("/half") is None, "half a transaction"
    ensemble.stop()


def pipelining(directory):
    """Writes and reads without waiting: answers come in order, and each read shows the write before it."""
    ensemble = started(directory)
    for member in ensemble.members:
        client = connect(member.address)
        path = f"/p{member.number}"
        assert client.create(path) == 0
        asked = []
        for number in range(1, 301):
            asked.append((client.send(raw.SET, raw.set_record(path, b"%d" % number)), None))
            asked.append((client.send(raw.GET, raw.path_record(path)), number))
        for xid, number in asked:
            came, err, body = client.receive()
            assert (came, err) == (xid, 0), (came, err, xid)
            assert number is None or raw.read_buffer(body)[0] == b"%d" % number
    ensemble.stop()


# ---- Sessions ----
def refused(address, session, password):
    try:
        raw.Client(address, session=session, password=password).drop()
    except raw.Refused:
        return True
    return False


def resumed(client, member, timeout=raw.SESSION_MS):
    """The session of that client, through that server."""
    again = connect(member.address, timeout, client.session, client.password, client.zxid)
    assert again.session == client.session and again.password == client.password
    return again


def sync(client):
    assert client.call(SYNC, raw.text("/"))[0] == 0


def session_moves(directory):
    """Its server is killed, a follower or the leader: the session goes on at another, with its nodes."""
    ensemble = started(directory)
    for victim in (ensemble.followers()[0], ensemble.leader()):
        client = connect(victim.address)
        assert client.create("/mine", flags=raw.EPHEMERAL) == 0
        victim.kill()
        others = ensemble.running()
        for other in others + others:
            client = resumed(client, other)
            assert client.exists("/mine"), "an ephemeral node was deleted before its session"
        looker = connect(others[0].address)
        assert client.close_session() == 0
        sync(looker)
        assert not looker.exists("/mine"), "an ephemeral node outlives its session"
        for other in others:
            assert refused(other.address, client.session, client.password), "a closed session is resumed"
        victim.start()
        ensemble.leader()
    ensemble.stop()


def kazoo_moves(directory):
    """The same as kazoo sees it: a lost connection, and nothing else."""
    ensemble = started(directory)
    first, second = ensemble.followers()
    zk = ensemble.client(first, second)
    states = []
    zk.add_listener(states.append)
    zk.create("/mine", ephemeral=True)
    before = zk.client_id
    events = []
    zk.get("/mine", watch=events.append)
    first.kill()
    eventually(lambda: states[:2] == [KazooState.SUSPENDED, KazooState.CONNECTED], f"it comes back: {states}")
    assert zk.client_id == before and zk.exists("/mine").ephemeralOwner == before[0]
    ensemble.client(ensemble.leader()).set("/mine", b"changed")
    eventually(lambda: events, "the watch that it took along")
    assert len(states) == 2, states
    ensemble.stop()


def silent_client(member):
    """A client with a session of 0.7 s and a node, and when it was heard from; None: this was too slow."""
    asked = time.monotonic()  # the session begins before its client hears of it
    client = connect(member.address, timeout=700)
    assert client.timeout == 700
    begun = time.monotonic()
    try:
        assert client.create("/mine", flags=raw.EPHEMERAL) == 0
        return client, begun
    except (AssertionError, raw.Lost):
        assert time.monotonic() - asked >= 0.3, "a new session is of no use"
        return None


def session_expires(directory):
    """When its client is not heard from; not before its timeout, on all servers, and for good."""
    ensemble = started(directory)
    lookers = [connect(member.address) for member in ensemble.members]
    for member in ensemble.members:
        silent, begun = eventually(lambda m=member: silent_client(m), "a session that lasts for one request")
        silent.drop()
        sync(lookers[0])
        eventually(lambda: not lookers[0].exists("/mine"), "it expires")
        assert time.monotonic() - begun >= 0.7, "it expired before its timeout"
        for looker, other in zip(lookers, ensemble.members):
            sync(looker)
            assert not looker.exists("/mine")
            assert refused(other.address, silent.session, silent.password)
    ensemble.stop()


def session_is_kept_alive(directory):
    """One whose client pings any server does not expire, also when the leader changes."""
    ensemble = started(directory)

    def kept(timeout):
        for dead in ensemble.members:
            if not dead.runs():
                dead.start()
        leader, followers = ensemble.roles()
        traveller = Traveller(followers, timeout)
        path, begun = f"/mine-{timeout}", time.monotonic()
        try:
            assert traveller.client.create(path, flags=raw.EPHEMERAL) == 0
            while time.monotonic() - begun < 4 * timeout / 1000:
                traveller.rest_and_ping()
                if time.monotonic() - begun > 1.8 * timeout / 1000 and leader.runs():
                    leader.kill()
            assert traveller.client.exists(path)
            return True
        except (raw.Refused, raw.Lost):
            # The servers may be late as well, but not for as long as that.
            assert traveller.was_late() or timeout < 16000, "a session that was kept alive is gone"
            return False
    longer_and_longer(kept)
    ensemble.stop()


def wrong_password(directory):
    """It is refused by every server, and the owner keeps the session."""
    ensemble = started(directory)
    owner = connect(ensemble.members[0].address)
    assert owner.create("/mine", flags=raw.EPHEMERAL) == 0
    for member in ensemble.members:
        assert refused(member.address, owner.session, b"?" * 16)
        assert refused(member.address, owner.session, b"")
        assert refused(member.address, owner.session + 1, owner.password)
    assert owner.set("/mine", b"still") == 0
    ensemble.stop()


def session_resumed_elsewhere(directory):
    """A client that resumes its session at another server has it, and the old connection ends."""
    ensemble = started(directory)
    client = connect(ensemble.members[0].address)
    assert client.create("/n") == 0
    for member in ensemble.members[1:] + ensemble.members:
        again = resumed(client, member)
        assert again.set("/n", b"%d" % member.number) == 0
        raises(raw.Lost, client.receive)
        client = again
    ensemble.stop()


def stale_connection(directory):
    """What a client asked of one server is not done after what it asked of another one later."""
    SESSION_MOVED = -118
    ensemble = started(directory)
    for stopped in (ensemble.followers()[0], ensemble.leader()):
        others = [m for m in ensemble.members if m is not stopped]
        path = f"/n{stopped.number}"
        old = connect(stopped.address)
        assert old.create(path) == 0
        stopped.send(signal.SIGSTOP)
        for number in range(20):
            old.send(raw.SET, raw.set_record(path, b"old %d" % number))
        ensemble.leader(others)
        new = resumed(old, others[0])
        assert new.set(path, b"new") == 0
        stopped.send(signal.SIGCONT)
        ensemble.leader()
        answers = []
        try:
            while len(answers) < 20:
                answers.append(old.receive()[1])
        except raw.Lost:
            pass
        assert set(answers) <= {SESSION_MOVED}, answers
        time.sleep(0.3)
        sync(new)
        assert new.get(path) == (b"new", 1), new.get(path)
        assert new.close_session() == 0
    ensemble.stop()


main([roles, writes_are_seen_everywhere, sync_waits, linearizable_reads, sequential_reads, reads_of_a_former_leader,
      watches, events_come_first, sequence, identities, largest_request, transactions, pipelining, session_moves,
      kazoo_moves, session_expires, session_is_kept_alive, wrong_password, session_resumed_elsewhere, stale_connection])
