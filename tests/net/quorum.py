"""A server without a quorum: it refuses writes, and serves reads to clients that asked for read-only mode."""
import json
import socket
import urllib.request

from kazoo import exceptions as error
from kazoo.client import KazooClient, KazooState
from kazoo.protocol.states import KeeperState

from ensemble import TIMEOUT_S, Ensemble, eventually, main, raises


def ask(member, word):
    host, port = member.address.split(":")
    with socket.create_connection((host, int(port)), timeout=TIMEOUT_S) as link:
        link.sendall(word)
        answer = b""
        while more := link.recv(1000):
            answer += more
        return answer


def http(member):
    host, port = member.address.split(":")
    return f"{host}:{int(port) + 20}"


def reports_read_only(member):
    """What it reports over HTTP, where two commands do."""
    answers = set()
    for name in ("isro", "srvr"):
        with urllib.request.urlopen(f"http://{http(member)}/commands/{name}", timeout=TIMEOUT_S) as answer:
            answers.add(json.load(answer)["read_only"])
    (one,) = answers
    return one


def left_alone(ensemble):
    """Kills all but one; returns that one, and the others."""
    last, *others = ensemble.followers() + [ensemble.leader()]
    for member in others:
        member.kill()
    return last, others


def no_quorum_no_writes(directory):
    ensemble = Ensemble(directory, options=["--set", "4lw.commands.whitelist=isro"]).start()
    last = ensemble.followers()[0]
    zk = ensemble.client(last)
    zk.create("/n", b"before")
    states = []
    zk.add_listener(states.append)
    for member in ensemble.members:
        if member is not last:
            member.kill()
    eventually(lambda: ask(last, b"isro") == b"null", "it serves nothing")
    write = zk.set_async("/n", b"alone")
    eventually(lambda: KazooState.SUSPENDED in states, "its clients are disconnected")
    raises(error.ConnectionLoss, write.get, timeout=TIMEOUT_S)
    stranger = KazooClient(last.address, timeout=5, connection_retry={"max_tries": 2, "delay": 0.05})
    # This ends an attempt that would go on for ever; a server that took it would do so at any time.
    raises(stranger.handler.timeout_exception, stranger.start, timeout=2)
    stranger.close()
    next(m for m in ensemble.members if not m.runs()).start()
    eventually(lambda: zk.state == KazooState.CONNECTED, "a quorum is back")
    assert zk.client_id, "the session went on"
    assert KazooState.LOST not in states
    # What was proposed without a quorum may have been committed later, but not twice.
    value, stat = zk.get("/n")
    assert (value, stat.version) in ((b"before", 0), (b"alone", 1))
    zk.set("/n", b"after", version=stat.version)
    ensemble.stop()


def read_only(directory):
    ensemble = Ensemble(directory, options=["--set", "readonlymode.enabled=true"])
    for member in ensemble.members:
        member.options += ["--http", http(member)]
    ensemble.start()
    writer = ensemble.client()
    writer.create("/n", b"value")
    for member in ensemble.members:
        assert ask(member, b"isro") == b"rw" and reports_read_only(member) is False
    writer.sync("/n")
    for member in ensemble.members:
        zk = ensemble.client(member)
        zk.sync("/n")
    last, others = left_alone(ensemble)
    eventually(lambda: ask(last, b"isro") == b"ro", "it notices")
    assert reports_read_only(last) is True
    zk = KazooClient(last.address, timeout=60, read_only=True)
    zk.start(timeout=TIMEOUT_S)
    assert zk.client_state == KeeperState.CONNECTED_RO
    assert zk.get("/n")[0] == b"value"
    assert zk.get_children("/") == ["n", "zookeeper"] or set(zk.get_children("/")) == {"n", "zookeeper"}
    for write in (lambda: zk.set("/n", b"x"), lambda: zk.create("/m"), lambda: zk.delete("/n"), lambda: zk.sync("/n")):
        raises(error.NotReadOnlyCallError, write)
    # A client that did not ask for read-only mode is refused, for as long as it asks.
    other = KazooClient(last.address, timeout=5, connection_retry={"max_tries": 2, "delay": 0.05})
    raises(other.handler.timeout_exception, other.start, timeout=2)
    other.close()
    for member in others:
        member.start()
    eventually(lambda: ask(last, b"isro") == b"rw", "there is a leader again")
    eventually(lambda: zk.client_state == KeeperState.CONNECTED, "the client may write")
    zk.set("/n", b"written", version=0)
    zk.stop()
    zk.close()
    ensemble.stop()


main([no_quorum_no_writes, read_only])
