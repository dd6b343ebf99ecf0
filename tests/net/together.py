"""Three servers behave as one: what is written through one is seen through the others."""
import signal
import struct
import threading
import time

from kazoo import exceptions as error
from kazoo.client import KazooState
from kazoo.security import make_digest_acl

from ensemble import Ensemble, eventually, main, raises

import raw


SYNC, AUTH, AUTH_XID = 9, 100, -4  # operations' numbers
AUTH_FAILED = -115


def started(directory, *options):
    return Ensemble(directory, options=options).start()


def one_client_each(ensemble):
    return [ensemble.client(member) for member in ensemble.members]


def after_sync(zk, path):
    zk.sync(path)
    return zk.get(path)


def roles(directory):
    """Each says what it is, and it is the same that it says of itself in its log."""
    ensemble = started(directory)
    leader = ensemble.leader()
    for member in ensemble.members:
        words = ensemble.client(member).command(b"srvr")
        assert f"Mode: {'leader' if member is leader else 'follower'}\n" in words, words
    ensemble.stop()


def seen_everywhere(directory):
    """Own writes at once, others' after a sync, and in the end without."""
    ensemble = started(directory)
    clients = one_client_each(ensemble)
    clients[0].create("/n", b"")
    for turn in range(60):
        writer = clients[turn % 3]
        value = b"%d" % turn
        stat = writer.set("/n", value) if turn else writer.set("/n", value, version=-1)
        assert writer.get("/n") == (value, stat), "a client does not see its own write"
        for zk in clients:
            assert after_sync(zk, "/n") == (value, stat), "a sync was not enough"
    for turn, zk in enumerate(clients):
        zk.create(f"/of{turn}")
    for zk in clients:
        eventually(lambda zk=zk: {"of0", "of1", "of2"} <= set(zk.get_children("/")), "others' nodes")
    clients[1].delete("/n")
    for zk in clients:
        zk.sync("/n")
        assert zk.exists("/n") is None
    ensemble.stop()


def read_from_behind(directory, options, before_read):
    """How many reads through a follower, of those that began after a write had been acknowledged, did not
    show it.  The follower is stopped until then, so that it is far behind when it is asked."""
    ensemble = started(directory, *options)
    behind = ensemble.followers()[0]
    writer, reader = raw.Client(ensemble.leader().address), raw.Client(behind.address)
    assert writer.create("/n", b"") == 0
    stale = 0
    for _ in range(8):
        behind.send(signal.SIGSTOP)
        for number in range(20):
            assert writer.set("/n", b"%d" % number + b"-" * 100000) == 0
        before_read(reader)
        asked = reader.send(raw.GET, raw.path_record("/n"))
        behind.send(signal.SIGCONT)
        while (answer := reader.receive())[0] != asked:
            pass
        # One that has not heard of the node yet is behind, too.
        stale += answer[1] != 0 or not raw.read_buffer(answer[2])[0].startswith(b"19-")
    ensemble.stop()
    return stale


def send_sync(client):
    client.send(SYNC, raw.text("/n"))


def send_nothing(_):
    pass


def sync_waits(directory):
    """A read behind a sync shows all that was acknowledged before it began."""
    assert read_from_behind(directory, (), send_sync) == 0


def linearizable_reads(directory):
    """With --reads linearizable every read does."""
    assert read_from_behind(directory, ("--reads", "linearizable"), send_nothing) == 0


def sequential_reads(directory):
    """Without either some do not: or else the two tests above show nothing."""
    assert read_from_behind(directory, (), send_nothing) > 0


def reads_of_a_former_leader(directory):
    """It was stopped, and is asked before it hears that there is another: it does not answer from memory."""
    ensemble = started(directory, "--reads", "linearizable")
    for turn in range(1, 4):
        old = ensemble.leader()
        others = [m for m in ensemble.members if m is not old]
        reader = raw.Client(old.address, timeout=20000)
        writer = raw.Client(others[0].address, timeout=20000)
        assert turn > 1 or writer.create("/n") == 0
        assert reader.exists("/n")
        old.send(signal.SIGSTOP)
        ensemble.leader(others)
        assert writer.set("/n", b"%d" % turn) == 0
        reader.send(raw.GET, raw.path_record("/n"))
        old.send(signal.SIGCONT)
        try:
            assert raw.read_buffer(reader.receive()[2])[0] == b"%d" % turn, "an old value"
        except raw.Lost:
            pass
        ensemble.leader()
    ensemble.stop()


def watches(directory):
    """They fire on the server that one is connected to, and the change is there then."""
    ensemble = started(directory)
    clients = one_client_each(ensemble)
    clients[0].create("/w", b"before")
    events = []

    def watcher(zk, place):
        def fired(event):  # on the client's thread of events: a read there has to be asked for elsewhere
            events.append((place, event.type, event.path))
        return fired
    for place, zk in enumerate(clients):
        zk.sync("/w")
        zk.get("/w", watch=watcher(zk, place))
        zk.get_children("/w", watch=watcher(zk, place))
        zk.exists("/new", watch=watcher(zk, place))
    clients[2].set("/w", b"after")
    clients[0].create("/w/child")
    clients[1].create("/new")
    expected = sorted((place, kind, path) for place in range(3) for kind, path in
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
    """Behind a watch, no read shows the change before the event has come; on a follower, too."""
    ensemble = started(directory)
    writer = raw.Client(ensemble.leader().address)
    readers = [raw.Client(member.address) for member in ensemble.members]
    assert writer.create("/w", b"0") == 0
    for turn in range(1, 100):
        for reader in readers:
            eventually(lambda reader=reader: reader.get("/w") == (b"%d" % (turn - 1), turn - 1), "the last value")
            reader.events = 0
            assert reader.call(raw.GET, raw.path_record("/w", watch=True))[0] == 0
        asked = writer.send(raw.SET, raw.set_record("/w", b"%d" % turn))
        for reader in readers:
            while reader.get("/w")[0] != b"%d" % turn:
                pass
            assert reader.events == 1, "a change was seen before its event"
        assert writer.receive()[:2] == (asked, 0)
    ensemble.stop()


def sequence(directory):
    """Numbers of sequential nodes are unique and without gaps, whoever makes them."""
    ensemble = started(directory)
    clients = one_client_each(ensemble)
    clients[0].create("/q")
    made = [[], [], []]

    def make(place):
        for _ in range(100):
            made[place].append(clients[place].create("/q/n-", sequence=True))
    threads = [threading.Thread(target=make, args=(place,)) for place in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = sum(made, [])
    assert sorted(names) == [f"/q/n-{number:010d}" for number in range(300)]
    assert all(own == sorted(own) for own in made)
    ensemble.stop()


def identities(directory):
    """Who is asking goes with the request, whichever server it comes to."""
    ensemble = started(directory)
    for place, member in enumerate(ensemble.members):
        others = [m for m in ensemble.members if m is not member]
        owner = ensemble.client(member, auth_data=[("digest", "ann:secret")])
        path = f"/private{place}"
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


def much_at_once(directory):
    """The largest request of a client that is as many as it can be still gets from server to server."""
    most = 15 << 20
    ensemble = started(directory, "--set", f"jute.maxbuffer={most}")
    for place, member in enumerate(ensemble.members):
        client = raw.Client(member.address)
        for i in range(4):
            assert prove(client, f"{i}" + "n" * 16000) == 0
        assert client.create(f"/n{place}", b"x" * (most - 200)) == 0
        assert prove(client, "3" + "n" * 16000) == 0  # which it is already
        assert prove(client, "n" * 16000) == AUTH_FAILED
        greedy = raw.Client(member.address)
        assert prove(greedy, "n" * 1000000) == AUTH_FAILED
    for member in ensemble.members:
        zk = ensemble.client(member)
        zk.sync("/")
        assert [zk.exists(f"/n{place}").dataLength for place in range(3)] == [most - 200] * 3
    ensemble.stop()


def transactions(directory):
    """All or nothing, through any server, beside each other."""
    ensemble = started(directory)
    clients = one_client_each(ensemble)
    clients[0].create("/left", b"0")
    clients[0].create("/right", b"0")
    done = [0, 0, 0]

    def count_up(place):
        zk = clients[place]
        while done[place] < 30:
            version = after_sync(zk, "/left")[1].version
            multi = zk.transaction()
            multi.check("/left", version)
            multi.set_data("/left", b"%d" % (version + 1), version=version)
            multi.set_data("/right", b"%d" % (version + 1), version=version)
            results = multi.commit()
            if not isinstance(results[0], Exception):
                done[place] += 1
    threads = [threading.Thread(target=count_up, args=(place,)) for place in range(3)]
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


def in_the_pipeline(directory):
    """Writes and reads without waiting: answers come in order, and each read shows the write before it."""
    ensemble = started(directory)
    for member in ensemble.members:
        client = raw.Client(member.address)
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


def resumed(client, member, timeout=10000):
    """The session of that client, through that server."""
    again = raw.Client(member.address, timeout, client.session, client.password, client.zxid)
    assert again.session == client.session and again.password == client.password
    return again


def sync(client):
    assert client.call(SYNC, raw.text("/"))[0] == 0


def session_moves(directory):
    """Its server is killed, the leader too: the session goes on at another, with its nodes; then it closes."""
    ensemble = started(directory)
    for victim in (ensemble.followers()[0], ensemble.leader()):
        client = raw.Client(victim.address)
        assert client.create("/mine", flags=raw.EPHEMERAL) == 0
        victim.kill()
        others = ensemble.running()
        for other in others + others:
            client = resumed(client, other)
            assert client.exists("/mine"), "an ephemeral node went before its session"
        looker = raw.Client(others[0].address)
        assert client.close_session() == 0
        sync(looker)
        assert not looker.exists("/mine"), "an ephemeral node outlives its session"
        for other in others:
            assert refused(other.address, client.session, client.password), "a closed session is taken up again"
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


def session_expires(directory):
    """Of silence, not before its time, on all servers, and for good."""
    ensemble = started(directory)
    lookers = [raw.Client(member.address) for member in ensemble.members]
    for member in ensemble.members:
        silent = raw.Client(member.address, timeout=700)
        assert silent.timeout == 700
        begun = time.monotonic()
        assert silent.create("/mine", flags=raw.EPHEMERAL) == 0
        silent.drop()
        sync(lookers[0])
        while lookers[0].exists("/mine"):
            assert time.monotonic() - begun < 10, "it stays"
            time.sleep(0.02)
        assert time.monotonic() - begun >= 0.7, "it was taken for dead before its time"
        for looker, other in zip(lookers, ensemble.members):
            sync(looker)
            assert not looker.exists("/mine")
            assert refused(other.address, silent.session, silent.password)
    ensemble.stop()


def session_lives(directory):
    """One that speaks to any server does not expire, also when leaders change."""
    ensemble = started(directory)
    member = ensemble.followers()[0]
    client = raw.Client(member.address, timeout=1000)
    assert client.create("/mine", flags=raw.EPHEMERAL) == 0
    begun = time.monotonic()
    while time.monotonic() - begun < 4:
        assert client.call(raw.PING)[0] == 0
        time.sleep(0.3)
        if time.monotonic() - begun > 1.8 and len(ensemble.running()) == 3:
            next(m for m in ensemble.members if m.number == member.follows()[1]).kill()
    assert client.create("/mine/none") != 0  # ephemeral nodes have no children; it is still there
    assert client.exists("/mine")
    ensemble.stop()


def wrong_password(directory):
    """Elsewhere, too, and whoever has the session keeps it."""
    ensemble = started(directory)
    owner = raw.Client(ensemble.members[0].address)
    assert owner.create("/mine", flags=raw.EPHEMERAL) == 0
    for member in ensemble.members:
        assert refused(member.address, owner.session, b"?" * 16)
        assert refused(member.address, owner.session, b"")
        assert refused(member.address, owner.session + 1, owner.password)
    assert owner.set("/mine", b"still") == 0
    ensemble.stop()


def session_taken_along(directory):
    """Who comes to another server with the session has it, and the old connection ends."""
    ensemble = started(directory)
    client = raw.Client(ensemble.members[0].address)
    assert client.create("/n") == 0
    for member in ensemble.members[1:] + ensemble.members:
        again = resumed(client, member)
        assert again.set("/n", b"%d" % member.number) == 0
        raises(raw.Lost, client.receive)
        client = again
    ensemble.stop()


def stale_connection(directory):
    """What a client said to a server before it went to another one is not done after what it said there."""
    SESSION_MOVED = -118
    ensemble = started(directory)
    for stopped in (ensemble.followers()[0], ensemble.leader()):
        others = [m for m in ensemble.members if m is not stopped]
        path = f"/n{stopped.number}"
        old = raw.Client(stopped.address, timeout=20000)
        assert old.create(path) == 0
        stopped.send(signal.SIGSTOP)
        for number in range(20):
            old.send(raw.SET, raw.set_record(path, b"old %d" % number))
        ensemble.leader(others)
        new = resumed(old, others[0], timeout=20000)
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


main([roles, seen_everywhere, sync_waits, linearizable_reads, sequential_reads, reads_of_a_former_leader, watches,
      events_come_first, sequence, identities, much_at_once, transactions, in_the_pipeline, session_moves, kazoo_moves,
      session_expires, session_lives, wrong_password, session_taken_along, stale_connection])
