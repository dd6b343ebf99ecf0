"""The plain calls of kazoo, and what must be refused."""
import socket
import threading
import time

from kazoo import exceptions as error
from kazoo.client import KazooState
from kazoo.protocol.states import EventType
from kazoo.security import (OPEN_ACL_UNSAFE, Permissions, make_acl, make_digest_acl,
                            make_digest_acl_credential)

import raw
from kazoo_common import TIMEOUT_S, Late, eventually, main, raises

FRAME_MAX = 1048575  # bytes of a request


def create_plain(site):
    zk = site.client()
    assert zk.create("/a", b"x") == "/a"
    data, stat = zk.get("/a")
    assert data == b"x"
    assert (stat.version, stat.cversion, stat.aversion) == (0, 0, 0)
    assert stat.czxid == stat.mzxid == stat.pzxid > 0
    assert stat.ephemeralOwner == 0 and stat.dataLength == 1 and stat.numChildren == 0
    assert stat.ctime == stat.mtime > 1600000000000
    raises(error.NodeExistsError, zk.create, "/a")
    raises(error.NoNodeError, zk.create, "/missing/a")


def create_makepath(site):
    zk = site.client()
    assert zk.create("/a/b/c", b"deep", makepath=True) == "/a/b/c"
    assert zk.get_children("/a") == ["b"] and zk.get("/a")[0] == b""
    zk.ensure_path("/a/b/c/d/e")
    zk.ensure_path("/a/b/c/d/e")
    assert zk.exists("/a/b/c/d/e")


def create_with_stat(site):
    zk = site.client()
    path, stat = zk.create("/a", b"12345", include_data=True)
    assert path == "/a" and stat == zk.exists("/a") and stat.dataLength == 5
    path, stat = zk.create("/s-", b"", sequence=True, ephemeral=True, include_data=True)
    assert path == "/s-0000000001" and stat.ephemeralOwner == zk.client_id[0]


def create_sequence(site):
    zk = site.client()
    zk.create("/q")
    zk.create("/q/plain")
    names = [zk.create("/q/n-", sequence=True) for _ in range(3)]
    assert names == [f"/q/n-{i:010d}" for i in (1, 2, 3)], names
    zk.delete(names[-1])
    raises(error.NodeExistsError, zk.create, "/q/plain")
    assert zk.create("/q/m-", sequence=True) == "/q/m-0000000004"  # numbers are never used again
    assert zk.create("/q/", sequence=True) == "/q/0000000005"


def create_ephemeral(site):
    owner, other = site.client(), site.client()
    owner.create("/e", b"mine", ephemeral=True)
    assert other.exists("/e").ephemeralOwner == owner.client_id[0]
    raises(error.NoChildrenForEphemeralsError, other.create, "/e/child")
    owner.create("/kept")
    owner.stop()
    assert other.exists("/e") is None and other.exists("/kept")  # gone when the close is answered
    names = [other.create("/s-", ephemeral=True, sequence=True) for _ in range(2)]
    other.stop()
    third = site.client()
    assert not set(n[1:] for n in names) & set(third.get_children("/"))


def versions(site):
    zk = site.client()
    zk.create("/v", b"0")
    created = zk.exists("/v")
    stats = [zk.set("/v", b"%d" % i, version=i) for i in range(5)]
    assert [s.version for s in stats] == [1, 2, 3, 4, 5]
    assert all(a.mzxid < b.mzxid for a, b in zip(stats, stats[1:]))
    assert all((s.czxid, s.ctime, s.pzxid) == (created.czxid, created.ctime, created.pzxid)
               for s in stats)
    raises(error.BadVersionError, zk.set, "/v", b"late", version=4)
    assert zk.get("/v") == (b"4", stats[-1])
    assert zk.set("/v", b"4").version == 6  # equal data counts too
    raises(error.BadVersionError, zk.delete, "/v", version=5)
    zk.delete("/v", version=6)
    raises(error.NoNodeError, zk.set, "/v", b"")
    raises(error.NoNodeError, zk.get, "/v")


def delete_rules(site):
    zk = site.client()
    zk.create("/a/b/c", makepath=True)
    zk.create("/a/d")
    raises(error.NotEmptyError, zk.delete, "/a")
    before = zk.exists("/a")
    zk.delete("/a/d")
    after = zk.exists("/a")
    assert (after.cversion, after.numChildren) == (before.cversion + 1, before.numChildren - 1)
    assert after.pzxid > before.pzxid and after.mzxid == before.mzxid
    zk.delete("/a", recursive=True)
    assert zk.exists("/a") is None
    raises(error.NoNodeError, zk.delete, "/a")


def children(site):
    zk = site.client()
    zk.create("/p")
    assert zk.get_children("/p") == []
    names = [f"n{i}" for i in range(300)]
    for call in [zk.create_async(f"/p/{n}") for n in names]:
        call.get(timeout=TIMEOUT_S)
    listed, stat = zk.get_children("/p", include_data=True)
    assert sorted(listed) == sorted(names) and stat.numChildren == 300 and stat.cversion == 300
    raises(error.NoNodeError, zk.get_children, "/none")


def odd_names(site):
    zk = site.client()
    for name in ("ü", "日本語", "a b", "...", "a.b", "x" * 5000):
        assert zk.create(f"/{name}", name.encode()) == f"/{name}"
        assert zk.get(f"/{name}")[0] == name.encode()
        assert name in zk.get_children("/")


def data_kinds(site):
    zk = site.client()
    every = bytes(range(256)) * 3
    zk.create("/empty", b"")
    assert zk.get("/empty")[0] == b""
    zk.set("/empty", every)
    assert zk.get("/empty")[0] == every
    zk.set("/empty", None)
    assert zk.get("/empty")[0] is None  # null is not the empty buffer
    assert zk.exists("/empty").dataLength == 0


def large_data(site):
    zk = site.client(timeout=30)
    zk.create("/big")
    # xid, opcode, length and path, length of the data, version
    overhead = 4 + 4 + 4 + len(f"/{site.name}/big") + 4 + 4
    largest = b"m" * (FRAME_MAX - overhead)
    assert zk.set("/big", largest).dataLength == len(largest)
    assert zk.get("/big")[0] == largest
    raises(error.ConnectionLoss, zk.set, "/big", largest + b"1")
    eventually(lambda: zk.connected, "connected again after a request that was too long")
    assert zk.retry(zk.exists, "/big").version == 1


def acl_digest(site):
    zk = site.client()
    owner = site.client(auth_data=[("digest", "ann:secret")])
    acl = [make_digest_acl("ann", "secret", all=True)]
    zk.create("/hers", b"private", acl=acl)
    for call in (zk.get, zk.get_children, zk.get_acls):
        raises(error.NoAuthError, call, "/hers")
    raises(error.NoAuthError, zk.set, "/hers", b"")
    raises(error.NoAuthError, zk.create, "/hers/x")
    raises(error.NoAuthError, zk.set_acls, "/hers", OPEN_ACL_UNSAFE)
    assert zk.exists("/hers")  # no permission is needed for this
    assert owner.get("/hers")[0] == b"private"
    owner.create("/hers/x")
    raises(error.NoAuthError, zk.delete, "/hers/x")
    zk.add_auth("digest", "ann:secret")
    assert zk.get("/hers")[0] == b"private"
    zk.delete("/hers/x")
    wrong = site.client(auth_data=[("digest", "ann:guess")])
    raises(error.NoAuthError, wrong.get, "/hers")


def acl_change(site):
    zk = site.client(auth_data=[("digest", "bob:b")])
    zk.create("/n", acl=[make_acl("auth", "", all=True)])
    acls, stat = zk.get_acls("/n")
    assert [(a.id.scheme, a.id.id) for a in acls] == [
        ("digest", make_digest_acl_credential("bob", "b"))], acls
    changed = zk.set_acls("/n", [make_acl("world", "anyone", read=True),
                                 make_digest_acl("bob", "b", all=True)], version=0)
    assert (changed.aversion, changed.version) == (1, 0) and changed.mzxid == stat.mzxid
    raises(error.BadVersionError, zk.set_acls, "/n", OPEN_ACL_UNSAFE, version=0)
    anyone = site.client()
    anyone.get("/n")
    raises(error.NoAuthError, anyone.set, "/n", b"")
    hidden, _ = anyone.get_acls("/n")
    assert [a.id.id for a in hidden] == ["anyone", "bob:x"], hidden
    assert [a.perms for a in hidden] == [Permissions.READ, Permissions.ALL]


def acl_invalid(site):
    zk = site.client()
    for bad in ([make_acl("nosuch", "x", all=True)], [make_acl("auth", "", all=True)],
                [make_acl("world", "somebody", all=True)], [make_acl("ip", "1.2.3", all=True)],
                [make_acl("digest", "no-colon", all=True)]):
        raises(error.InvalidACLError, zk.create, "/n", b"", acl=bad)
    zk.create("/local", acl=[make_acl("ip", "127.0.0.0/8", all=True)])
    zk.get("/local")
    zk.create("/far", acl=[make_acl("ip", "10.0.0.0/8", all=True)])
    raises(error.NoAuthError, zk.get, "/far")


def auth_unknown_scheme(site):
    zk = site.client()
    raises(error.AuthFailedError, zk.add_auth, "nosuch", "x:y")


def transaction(site):
    zk = site.client()
    zk.create("/old", b"1")
    do = zk.transaction()
    do.create("/parent", b"p")
    do.create("/parent/child-", b"c", sequence=True)
    do.create("/e", ephemeral=True)
    do.set_data("/old", b"2", version=0)
    do.check("/old", version=1)
    do.set_data("/parent", b"p2", version=0)
    do.delete("/old", version=1)
    results = do.commit()
    assert results[:3] == ["/parent", "/parent/child-0000000000", "/e"], results
    assert results[3].version == 1 and results[4] is True and results[6] is True, results
    assert zk.exists("/old") is None and zk.get("/parent")[0] == b"p2"
    zxids = {zk.exists(p).czxid for p in ("/parent", "/parent/child-0000000000", "/e")}
    assert len(zxids) == 1
    zk.transaction().commit()


def transaction_fails(site):
    zk = site.client()
    zk.create("/n", b"1")
    before = zk.exists("/n"), zk.exists("/")
    do = zk.transaction()
    do.set_data("/n", b"2")
    do.create("/new")
    do.check("/n", version=7)
    do.create("/never")
    results = do.commit()
    kinds = [type(r) for r in results]
    assert kinds == [error.RolledBackError, error.RolledBackError, error.BadVersionError,
                     error.RuntimeInconsistency], kinds
    assert (zk.exists("/n"), zk.exists("/")) == before and zk.get("/n")[0] == b"1"
    do = zk.transaction()
    do.delete("/none")
    do.create("/never")
    assert isinstance(do.commit()[0], error.NoNodeError)
    assert zk.exists("/never") is None


def transaction_acl(site):
    zk = site.client()
    zk.create("/locked", b"1", acl=[make_digest_acl("ann", "secret", all=True)])
    do = zk.transaction()
    do.create("/beside")
    do.set_data("/locked", b"2")
    assert isinstance(do.commit()[1], error.NoAuthError)
    assert zk.exists("/beside") is None


class Events:
    """A watcher that remembers."""

    def __init__(self):
        self.seen = []

    def __call__(self, event):
        if event.type != EventType.NONE:  # the state of the connection changed
            self.seen.append((event.type, event.path))

    def wait(self, expected):
        eventually(lambda: len(self.seen) >= len(expected), f"{expected}, only {self.seen}")
        assert self.seen == expected, self.seen


def watches_once(site):
    zk, writer, seen = site.client(), site.client(), Events()
    zk.exists("/n", watch=seen)
    writer.create("/n")
    seen.wait([(EventType.CREATED, "/n")])
    writer.set("/n", b"unseen")
    zk.get("/n", watch=seen)
    writer.set("/n", b"seen")
    writer.set("/n", b"unseen")
    zk.get_children("/n", watch=seen)
    writer.create("/n/c")
    writer.create("/n/d")
    zk.get("/n/c", watch=seen)
    writer.delete("/n/c")
    zk.sync("/")
    seen.wait([(EventType.CREATED, "/n"), (EventType.CHANGED, "/n"), (EventType.CHILD, "/n"),
               (EventType.DELETED, "/n/c")])


def watch_ephemeral_end(site):
    zk, owner, seen = site.client(), site.client(), Events()
    owner.create("/e", ephemeral=True)
    zk.exists("/e", watch=seen)
    zk.get_children("/", watch=seen)
    owner.stop()
    eventually(lambda: len(seen.seen) == 2, "two events")
    assert sorted(seen.seen) == sorted([(EventType.DELETED, "/e"), (EventType.CHILD, "/")])


def data_watch(site):
    zk, writer, values = site.client(), site.client(), []

    @zk.DataWatch("/n")
    def note(data, stat, event):
        values.append(data)

    eventually(lambda: values == [None], "the first call")
    for change in (lambda: writer.create("/n", b"1"), lambda: writer.set("/n", b"2"),
                   lambda: writer.delete("/n"), lambda: writer.create("/n", b"3")):
        heard = len(values)
        change()
        eventually(lambda: len(values) > heard, "a call for every change that waits for it")
    assert values == [None, b"1", b"2", None, b"3"], values


def children_watch(site):
    zk, writer, lists = site.client(), site.client(), []
    zk.create("/p")

    @zk.ChildrenWatch("/p")
    def note(names):
        lists.append(sorted(names))

    for i in range(20):
        writer.create(f"/p/{i:02d}")
    eventually(lambda: lists[-1] == [f"{i:02d}" for i in range(20)], "all 20 in the last list")
    assert all(set(a) <= set(b) for a, b in zip(lists, lists[1:])), lists
    writer.delete("/p", recursive=True)
    eventually(lambda: lists[-1] == [] or len(lists[-1]) < 20, "the deletion")


def watches_after_reconnect(site):
    """kazoo reads again what it watches when its connection was broken."""
    zk, writer, values, lists = site.client(), site.client(), [], []
    writer.create("/n", b"before")
    zk.DataWatch("/n", lambda data, stat: values.append(data))
    zk.ChildrenWatch("/n", lambda names: lists.append(sorted(names)))
    session = zk.client_id
    zk._connection._socket.shutdown(socket.SHUT_RDWR)
    writer.set("/n", b"meanwhile")
    writer.create("/n/child")
    eventually(lambda: values[-1] == b"meanwhile" and lists[-1] == ["child"], "what was missed")
    assert zk.client_id == session
    writer.set("/n", b"after")
    eventually(lambda: values[-1] == b"after", "a change after the new connection")


def session_reattached(site):
    first = site.client(timeout=30)
    first.create("/e", ephemeral=True)
    session = first.client_id
    second = site.client(client_id=session, timeout=30)
    assert second.client_id == session
    assert second.exists("/e").ephemeralOwner == session[0]
    second.set("/e", b"still mine")


def session_wrong_password(site):
    zk = site.client()
    session, _ = zk.client_id
    zk.create("/e", ephemeral=True)
    thief = site.client(client_id=(session, b"\1" * 16))
    eventually(lambda: thief.client_id and thief.client_id[0] != session, "another session")
    assert zk.retry(zk.exists, "/e").ephemeralOwner == session


def session_closed_elsewhere(site):
    victim, lost = site.client(), threading.Event()
    victim.create("/e", ephemeral=True)
    victim.add_listener(lambda state: lost.set() if state == KazooState.LOST else None)
    old = victim.client_id
    other = site.client(client_id=old)
    other.stop()
    eventually(lost.is_set, "it is told")
    eventually(lambda: victim.connected and victim.client_id != old, "a new session")
    assert victim.retry(victim.exists, "/e") is None


def session_expires(site):
    """A client that stops pinging loses its session after the timeout, and not before; one that
    pings keeps it."""
    for timeout in (1, 8000, 16000, 32000):  # longer if the machine is too busy for its pings
        if expires(site, site.client(), timeout):
            return
    raise Late("too late for every timeout")


def expires(site, watcher, timeout):
    """Whether this process was quick enough."""
    silent, pinging = (raw.Client(site.address, timeout=timeout) for _ in range(2))
    gone, gaps = threading.Event(), [0]
    start = last = time.monotonic()  # the server hears from the silent one later than that
    try:
        for client, name in ((silent, "silent"), (pinging, "pinging")):
            assert client.create(f"/{site.name}/{name}-{timeout}", flags=raw.EPHEMERAL) == 0
        if not watcher.exists(f"/silent-{timeout}", watch=lambda event: gone.set()):
            gone.set()  # while this process stood still
        while not gone.wait(silent.timeout / 4000):
            gaps.append(time.monotonic() - last)
            last = time.monotonic()
            assert pinging.call(raw.PING)[0] == 0
            if time.monotonic() > start + TIMEOUT_S:
                raise Late("never expired")
        assert pinging.call(raw.PING)[0] == 0
    except raw.Lost:
        assert max(*gaps, time.monotonic() - last) > silent.timeout / 2000, "a session that was kept alive is gone"
        return False
    assert time.monotonic() - start > 0.8 * silent.timeout / 1000, "expired early"
    assert watcher.get_children("/") == [f"pinging-{timeout}"]
    raises(raw.Lost, silent.receive_frame)  # the server has closed the connection
    raises(raw.Refused, raw.Client, site.address, session=silent.session,
           password=silent.password)
    return True


def timeout_negotiated(site):
    def given(asked):
        client = raw.Client(site.address, timeout=asked)
        assert client.close_session() == 0
        return client.timeout

    shortest, longest = given(1), given(10**9)
    assert 0 < shortest < longest < 10**9, (shortest, longest)
    assert given(shortest + 1) == shortest + 1 and given(longest - 1) == longest - 1


def sync(site):
    zk, writer = site.client(), site.client()
    for i in range(20):
        writer.create(f"/{i}")
        assert zk.sync("/") in ("/", f"/{site.name}")
        assert zk.exists(f"/{i}")


def pipeline(site):
    zk, calls = site.client(), []
    for i in range(200):
        calls.append(zk.create_async(f"/{i}", b"%d" % i))
        calls.append(zk.get_async(f"/{i}"))
        calls.append(zk.delete_async(f"/{i}") if i % 2 else zk.exists_async(f"/{i}"))
    values = [c.get(timeout=TIMEOUT_S) for c in calls]
    assert [v[0] for v in values[1::3]] == [b"%d" % i for i in range(200)]  # reads see own writes
    assert len(zk.get_children("/")) == 100


def server_words(site):
    zk = site.client()
    assert zk.command(b"ruok") == "imok"
    assert zk.server_version() >= (3, 4)
    assert "Mode: standalone" in zk.command(b"srvr")


main([create_plain, create_makepath, create_with_stat, create_sequence, create_ephemeral, versions,
      delete_rules, children, odd_names, data_kinds, large_data, acl_digest, acl_change,
      acl_invalid, auth_unknown_scheme, transaction, transaction_fails, transaction_acl,
      watches_once, watch_ephemeral_end, data_watch, children_watch,
      watches_after_reconnect, session_reattached, session_wrong_password,
      session_closed_elsewhere, session_expires, timeout_negotiated, sync,
      pipeline, server_words])
