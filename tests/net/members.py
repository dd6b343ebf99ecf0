"""Members are added, removed and weighted while clients work; by command, and by a client's request."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time

from kazoo import exceptions as error
from kazoo.security import make_digest_acl_credential

from ensemble import (TIMEOUT_S, Ensemble, Member, connect, eventually, main, raises, trim,
                      without_election)
from failures import Creator, Steady, verify_made
from patience import Late, joined
from places import free_ports

import raw

RECONFIG, RECONFIG_DISABLED, RECONFIG_IN_PROGRESS, NO_QUORUM = 16, -123, -14, -13
BIG = 900000  # bytes of a node


def http(member):
    host, port = member.address.rsplit(":", 1)
    return f"{host}:{int(port) + 20}"


def command(member, *words, timeout=f"{TIMEOUT_S}s"):
    """conclave ensemble ...: exit status, output, errors."""
    run = subprocess.run([os.environ["CONCLAVE"], "ensemble", *words, "--data", member.directory, "--timeout", timeout],
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=3 * TIMEOUT_S)
    return run.returncode, run.stdout, run.stderr


def done(member, *words):
    """What needs a member that is not heard is refused, on a busy machine for a moment: then it is asked for again."""
    def attempt():
        status, out, err = command(member, *words)
        if status == 2 and re.search(r"server \d+ was (not heard for|never heard)", err):
            return None
        assert status == 0, f"{words}: {status} {out} {err}\n{command(member, 'status')[1]}"
        return [out]
    return eventually(attempt, f"{words} is done")[0]


def status(member):
    return json.loads(done(member, "status", "--json"))


def weights(member):
    return {m["id"]: m["weight"] for m in status(member)["members"]}


def knows(member, wanted):
    """Waits until it has heard of these weights: a change may be complete before all members know."""
    eventually(lambda: wanted.items() <= weights(member).items(), f"{wanted} at server {member.number}")


def knows_all(member, wanted):
    """Of these members, and of no others."""
    eventually(lambda: weights(member) == wanted, f"nothing but {wanted} at server {member.number}")


def reconfigured(zk, *request):
    """A client's request, which is refused like a command, or because an attempt before it is still in progress."""
    def attempt():
        try:
            return zk.reconfig(*request)
        except (error.NewConfigNoQuorumError, error.ReconfigInProcessError):
            return None
    return eventually(attempt, f"{request} is done")


def with_http(ensemble):
    for member in ensemble.members:
        member.options += ["--http", http(member)]
    return ensemble


def started(directory, *options, count=3, first=1):
    return with_http(Ensemble(directory, count=count, options=options, first=first)).start()


def joiner(ensemble, directory, number, *options):
    """A server that is not a member yet."""
    host = ensemble.members[0].peer.rsplit(":", 1)[0]
    member = Member(number, host, directory, ["--join", *options], ())
    member.options += ["--http", http(member)]
    others = ",".join(f"{m.number}={m.peer}" for m in ensemble.members)
    member.ensemble = f"{others},{number}={member.peer}"
    return member


def join(ensemble, member):
    done(ensemble.members[0], "add", f"{member.number}={member.peer}")
    ensemble.members.append(member)


def settled(zk):
    """The configuration when the leader has recorded the ids of all members."""
    def complete():
        lines, version = config(zk)
        named = [sum(line.startswith(key) for line in lines) for key in ("server.", "directory.")]
        return named[0] == named[1] and (lines, version)
    return eventually(complete, "all ids are recorded")


def config(zk):
    """/zookeeper/config: the lines, and the version."""
    lines = zk.get("/zookeeper/config")[0].decode().splitlines()
    assert lines[-1].startswith("version="), lines
    return lines[:-1], int(lines[-1][8:], 16)


def same_config_everywhere(ensemble):
    def one():
        texts = set()
        for member in ensemble.running():
            client = connect(member.address)
            texts.add(client.get("/zookeeper/config")[0])
            client.close_session()
        return len(texts) == 1
    eventually(one, "the same /zookeeper/config everywhere")


# ---- By command ----


def grows_and_shrinks(directory):
    """Two servers are added, then the leader is removed, and a follower; clients of the others
    notice nothing, and no write is lost or done twice."""
    ensemble = started(directory, "--set", "snapCount=10", "--set", "preAllocSize=1024",
                       "--set", "autopurge.snapRetainCount=1")
    leader = ensemble.leader()
    stays, goes = [m for m in ensemble.members if m is not leader]
    filler = ensemble.client(stays)
    for i in range(40):  # more than is kept in memory for members that lag
        filler.create(f"/big-{i}", bytes(BIG))
    trim(ensemble.members, lambda: filler.set("/big-39", bytes(BIG)))
    seen = []
    filler.DataWatch("/zookeeper/config", lambda data, stat: seen.append(data) and None)
    steady = [Steady(ensemble, stays, "stays")]
    creators = [Creator(ensemble, "any", *ensemble.members)]
    new = [joiner(ensemble, directory, number) for number in (4, 5)]
    for member in new:
        member.start()
        assert "waits to be added" in done(member, "status")
        join(ensemble, member)
        knows(stays, {member.number: 1})
    eventually(lambda: "a snapshot of the leader was installed" in new[0].log(), "a snapshot")
    assert connect(new[0].address).get("/big-39")[0] == bytes(BIG)
    same_config_everywhere(ensemble)
    steady.append(Steady(ensemble, new[1], "new"))
    creators.append(Creator(ensemble, "newcomers", *new))
    time.sleep(0.3)
    assert "no longer a member" in done(leader, "remove", str(leader.number))
    assert status(leader)["removed"] and leader.log().count("this server is no longer a member") == 1
    assert "no longer a member" in done(leader, "status")
    done(stays, "remove", str(goes.number))
    assert weights(stays) == {stays.number: 1, 4: 1, 5: 1}
    time.sleep(0.3)
    for work in steady + creators:
        work.finish()
    now = ensemble.leader(among=[stays, *new])
    assert now in (stays, *new)
    verify_made(stays.address, creators)
    eventually(lambda: seen and b"server.5=" in seen[-1] and b"server.%d=" % goes.number not in seen[-1], seen[-1:])
    for member in (leader, goes):  # they are not needed any more
        member.send(signal.SIGTERM)
        assert member.end() == 0
        ensemble.members.remove(member)
    transferred(ensemble, new[0] if now is not new[0] else new[1], stays)
    ensemble.stop()


def removed_and_added_again(directory):
    """A member that was removed is added again, with its data; a voter becomes an observer, and a voter again."""
    ensemble = started(directory)
    leader = ensemble.leader()
    other, back = [m for m in ensemble.members if m is not leader]
    zk = ensemble.client(leader)
    for i in range(10):
        done(leader, "remove", str(back.number))
        zk.create(f"/n-{i}")
        done(other, "add", f"{back.number}={back.peer}")
        assert eventually(lambda: connect(back.address).get(f"/n-{i}"), "what was written meanwhile")
        eventually(lambda: not (now := status(back))["changing"] and not now["removed"], "nothing is left to do")
    done(leader, "weight", f"{back.number}=0")
    knows(other, {back.number: 0})
    assert re.search(rf"^  {back.number} .* observer +0 ", done(other, "status"), re.M), done(other, "status")
    status_, _, err = command(other, "transfer", str(back.number))
    assert status_ == 2 and "has no vote" in err, err
    eventually(lambda: "Mode: observer" in ensemble.client(back).command(b"srvr"), "it observes")
    done(leader, "add", f"{back.number}={back.peer}")
    knows(other, {back.number: 1})
    done(leader, "add", f"{back.number}={back.peer}:observer")
    knows(other, {back.number: 0})
    done(leader, "weight", f"{back.number}=3")
    knows_all(back, {leader.number: 1, other.number: 1, back.number: 3})
    zk.stop()
    for member in (leader, other):  # three of five, alone
        member.kill()
    assert ensemble.leader(among=[back]) is back
    ensemble.client(back).create("/alone")
    ensemble.stop()


def numbered_from_zero(directory):
    """ZooKeeper's ids begin with 0, and everybody is told of server 0 by that number."""
    ensemble = started(directory, "--set", "reconfigEnabled=true", "--set", "skipACL=yes", first=0)
    zero, one, two = ensemble.members
    zk = ensemble.client(one)
    assert all(f"server.{m.number}={m.peer}:" in "".join(settled(zk)[0]) for m in ensemble.members), config(zk)
    transferred(ensemble, zero, one)
    assert "leads in term" in (said := done(two, "status")) and said.startswith("server 0 "), said
    assert re.search(rf"^  0 +{zero.peer} +leader +1  here ", said := done(zero, "status"), re.M), said
    session = ensemble.client(zero)
    assert session.client_id[0] >> 56 == 0 and two.follows()[1] == 0, two.log()
    session.create("/0")
    done(one, "weight", "0=2")
    knows_all(two, {0: 2, 1: 1, 2: 1})
    done(one, "remove", "0")
    knows_all(two, {1: 1, 2: 1})
    assert "server 0 is no longer a member" in eventually(lambda: done(zero, "status"), "it knows")
    reconfigured(zk, line(zero), None, None)
    knows_all(zero, {0: 1, 1: 1, 2: 1})
    zero.kill()
    zero.start()
    ensemble.leader()
    reconfigured(zk, None, "0", None)
    knows_all(two, {1: 1, 2: 1})
    done(one, "add", f"0={zero.peer}")
    two.kill()
    zk.set("/0", b"with the vote of server 0")
    ensemble.stop()


class Gaps(threading.Thread):
    """Writes without a pause, and measures the longest time without an answer."""

    def __init__(self, zk):
        super().__init__(daemon=True)
        self.zk, self.ended, self.longest, self.trouble = zk, False, 0, None
        zk.create("/gaps")
        self.start()

    def run(self):
        last = time.monotonic()
        try:
            while not self.ended:
                self.zk.set("/gaps", b"")
                now = time.monotonic()
                self.longest, last = max(self.longest, now - last), now
        except Exception as problem:
            self.trouble = problem


def transferred(ensemble, to, by, among=None):
    """Leadership is transferred.  On a busy machine that may take too long, or another one may be elected meanwhile."""
    for _ in range(10):
        told, _, err = command(by, "transfer", str(to.number))
        time.sleep(0.1)
        if told == 0 and ensemble.leader(among) is to:
            return
    raise AssertionError(err)


def transfers(directory):
    """Leadership is transferred ten times under load."""
    ensemble = started(directory)
    steady = [Steady(ensemble, member, str(member.number)) for member in ensemble.members]
    gaps = Gaps(ensemble.client(ensemble.members[0]))
    longest = []
    for number in range(10):
        to = ensemble.members[(ensemble.leader().number + number % 2) % 3]
        gaps.longest = 0
        transferred(ensemble, to, ensemble.members[number % 3])
        longest.append(gaps.longest * 1000)
    gaps.ended = True
    joined(gaps)
    for work in steady:
        work.finish()
    if gaps.trouble:
        raise AssertionError(f"{longest} {gaps.trouble!r}") from gaps.trouble
    print("longest wait of a writer, ms: " + " ".join(f"{ms:.0f}" for ms in longest))
    ensemble.stop()


def needed(ensemble, directory, number=4, *options):
    """A server that is not running, and without which the members that are left are no quorum: one is killed."""
    new = joiner(ensemble, directory, number, *options)
    down = ensemble.followers()[0]
    down.kill()
    return new, down


def leader_killed_in_a_change(directory):
    """The next leader completes the change, and the command returns; after a restart of all servers the members
    are the changed ones, whatever --ensemble says."""
    ensemble = started(directory)
    leader = ensemble.leader()
    new, down = needed(ensemble, directory)
    asked = ensemble.followers()[0]
    finish = in_background(asked, "add", f"4={new.peer}")
    eventually(lambda: 4 in weights(asked), "server 4 is known")
    leader.kill()
    down.start()
    eventually(lambda: ensemble.leader() and status(asked)["leader"] not in (None, leader.number), "another leader")
    time.sleep(3)  # longer than a change may wait that has not begun
    eventually(lambda: status(asked)["changing"], "the change goes on")
    new.start()
    finish()
    knows_all(asked, {1: 1, 2: 1, 3: 1, 4: 1})
    ensemble.members.append(new)
    leader.start()
    done(leader, "remove", str(asked.number))
    members = status(leader)["members"]
    for member in ensemble.members:
        member.kill()
    ensemble.members.remove(asked)
    for member in ensemble.members:  # --ensemble still says what it said first
        member.spawn()
    new_leader = ensemble.leader()
    assert [m["id"] for m in status(new_leader)["members"]] == [m["id"] for m in members]
    ensemble.client(new_leader).create("/after")
    asked.start()  # it was removed, and does not know
    without_election(ensemble, lambda: time.sleep(1.2), "it disturbs the others")
    assert not status(asked)["leader"]
    asked.kill()
    ensemble.stop()


def in_background(member, *words, code=0):
    """A command whose results come later."""
    results = []
    asker = threading.Thread(target=lambda: results.append(command(member, *words)), daemon=True)
    asker.start()

    def finish():
        joined(asker)
        assert results and results[0][0] == code, results
        return results[0][2]
    return finish


def change_lost_and_repeated(directory):
    """All are killed in the middle of a change, which is lost with them: the command repeats it."""
    ensemble = started(directory)
    new, down = needed(ensemble, directory)
    running = ensemble.running()
    first = running[0]
    finish = in_background(first, "add", f"4={new.peer}")
    eventually(lambda: all(4 in weights(member) for member in running), "server 4 is known")
    for member in running:
        member.kill()
    for member in running:
        member.spawn()
    ensemble.leader()
    assert weights(first) == {1: 1, 2: 1, 3: 1, 4: 0}
    new.start()
    finish()
    ensemble.members.append(new)
    down.start()
    knows_all(new, {1: 1, 2: 1, 3: 1, 4: 1})
    same_config_everywhere(ensemble)
    ensemble.stop()


def post(member, path):
    """Status and answer of a command that another program sends."""
    run = subprocess.run(["curl", "-s", "-w", "%{http_code}", "-X", "POST", "--unix-socket",
                          f"{member.directory}/admin.socket", f"http://server{path}"],
                         capture_output=True, text=True, timeout=TIMEOUT_S)
    return run.stdout[-3:], run.stdout[:-3]


def impossible_transfers(directory):
    """An attempt would stop all writes for a while: one that cannot succeed is refused, by any server."""
    ensemble = started(directory)
    first, other, dead = ensemble.members
    dead.kill()
    for member in (first, other):
        eventually(lambda: not [m for m in status(member)["members"] if m["id"] == dead.number][0]["linked"], "noticed")

    def attempt():
        for member in (first, other):
            code, _, err = command(member, "transfer", str(dead.number))
            assert code == 2 and "that server cannot be reached: connection refused" in err, f"{code} {err}"
        for typed in (f"{other.number}abc", f"{other.number}=1", f"{other.number},", "", "0", "999999999999"):
            assert post(first, f"/ensemble/transfer/{typed}") == ("409", "there is no such member\n"), typed
    without_election(ensemble, attempt, "an attempt is made")
    leader = ensemble.leader()
    transferred(ensemble, other if leader is first else first, leader)
    ensemble.stop()


def transfers_to_the_silent(directory):
    """A leader refuses to transfer leadership to a server that does not respond: writes would be halted for nothing."""
    ensemble = started(directory)

    def attempt():
        leader, silent = ensemble.leader(), ensemble.followers()[0]
        silent.send(signal.SIGSTOP)
        time.sleep(1.5)  # it counts as one that responds for a second
        before = status(leader)["term"]
        code, _, err = command(leader, "transfer", str(silent.number))
        after = status(leader)["term"]
        silent.send(signal.SIGCONT)
        refused = code == 2 and re.search("that server (does not respond|cannot be reached)", err)
        assert refused or before != after, f"{code} {err}"
    without_election(ensemble, attempt, "it is refused")
    ensemble.stop()


# ---- By a client ----


def line(member, role="participant"):
    host, port = member.peer.rsplit(":", 1)
    client_host, client_port = member.address.rsplit(":", 1)
    return f"server.{member.number}={host}:{port}:{port}:{role};{client_host}:{client_port}"


def reconfig(directory):
    """ZooKeeper's request: joining, leaving, or a whole list; and what is refused."""
    ensemble = started(directory, "--set", "reconfigEnabled=true", "--set", "skipACL=yes", count=3)
    leader = ensemble.leader()
    new = joiner(ensemble, directory, 4, "--set", "reconfigEnabled=true", "--set", "skipACL=yes").start()
    zk = ensemble.client(ensemble.followers()[0])
    version = eventually(lambda: "\nensemble=" in "\n".join((at := config(zk))[0]) and at[1], "the ensemble's id")
    data, stat = reconfigured(zk, line(new), None, None, version)
    assert b"server.4=" in data and b";" in data and stat.version > 0, data
    assert config(zk)[1] >= int(data.rsplit(b"=", 1)[1], 16) > version, data
    knows_all(new, {1: 1, 2: 1, 3: 1, 4: 1})
    ensemble.members.append(new)
    reconfigured(zk, "weight.4=0", None, None)
    knows(leader, {4: 0})
    done(leader, "add", f"4={new.peer}")  # it has a vote again, and keeps its client address
    eventually(lambda: line(new) in config(zk)[0], "the client's server knows it")
    assert weights(leader)[4] == 1, config(zk)
    raises(error.BadVersionError, zk.reconfig, None, "4", None, version)
    raises(error.BadArgumentsError, zk.reconfig, "server.5=nonsense", None, None)
    raises(error.BadArgumentsError, zk.reconfig, "server.5=192.0.2.1:1:2;3,server.6=192.0.2.1:4:1;5", None, None)
    raises(error.MarshallingError, zk.reconfig, "dataDir=/tmp", None, None)  # as ZooKeeper has it
    raises(error.MarshallingError, zk.reconfig, None, "one", None)
    raises(error.NewConfigNoQuorumError, zk.reconfig, None, "1,2,3,4", None)
    assert sum(text.startswith("server.") for text in config(zk)[0]) == 4
    data, _ = reconfigured(zk, None, str(leader.number), None)
    assert b"server.%d=" % leader.number not in data
    rest = [m for m in ensemble.members if m is not leader]
    same_config_everywhere(type("Rest", (), {"running": lambda self: rest})())
    done(new, "weight", "4=2")
    reconfigured(zk, "weight.2=2" if leader.number != 2 else "weight.3=2", None, None)
    data, _ = reconfigured(zk, None, None, ",".join(line(m) for m in ensemble.members if m is not new))
    knows_all(leader, {1: 1, 2: 1, 3: 1})
    assert b"server.4=" not in data, data
    eventually(lambda: status(new)["removed"], "the removed server is told")
    zk.create("/after")
    ensemble.stop()


def change_in_progress(directory):
    """While one change is in progress another one is refused, and does not end it."""
    options = ["--set", "reconfigEnabled=true", "--set", "skipACL=yes"]
    ensemble = started(directory, *options)
    leader = ensemble.leader()
    new, down = needed(ensemble, directory, 4, *options)
    finish = in_background(leader, "add", f"4={new.peer}")
    eventually(lambda: 4 in weights(leader), "server 4 is known")
    client = connect(leader.address)
    nothing = struct.pack(">i", -1)
    for joining, leaving in ((raw.text(line(joiner(ensemble, directory, 5))), nothing), (nothing, raw.text("4")),
                             (nothing, nothing)):
        code = client.call(RECONFIG, joining + leaving + nothing + struct.pack(">q", -1))[0]
        assert code == RECONFIG_IN_PROGRESS, code
    new.start()
    finish()
    knows_all(new, {1: 1, 2: 1, 3: 1, 4: 1})
    down.start()
    ensemble.members.append(new)
    same_config_everywhere(ensemble)
    ensemble.stop()


def absent_voters(directory):
    """A voter that is not running is added where the others are a quorum without it; where they are not, nothing is
    changed, and nothing is left of a change that is given up."""
    ensemble = started(directory, "--set", "reconfigEnabled=true", "--set", "skipACL=yes")
    leader = ensemble.leader()
    zk = ensemble.client(leader)
    new = {number: joiner(ensemble, directory, number) for number in (4, 5, 6)}
    time.sleep(1.1)  # a leader that is new does not know yet who lives
    before, version = settled(zk)
    raises(error.NewConfigNoQuorumError, zk.reconfig, ",".join(map(line, new.values())), None, None)
    assert config(zk) == (before, version) and not status(leader)["changing"]
    data, _ = reconfigured(zk, line(new[4]), None, None, version)
    assert line(new[4]).encode() in data and weights(leader) == {1: 1, 2: 1, 3: 1, 4: 1}
    reconfigured(zk, line(new[5]), None, None)
    raises(error.NewConfigNoQuorumError, zk.reconfig, line(new[6]), None, None)
    done(leader, "remove", "5")
    done(leader, "remove", "4")
    kept = config(zk)
    other, down = [m for m in ensemble.members if m is not leader]
    down.kill()
    eventually(lambda: not [m for m in status(leader)["members"] if m["id"] == down.number][0]["linked"], "noticed")
    raises(error.NewConfigNoQuorumError, zk.reconfig, line(new[4]), None, None)
    finish = in_background(leader, "add", f"4={new[4].peer}", code=2)  # an operator has time to start it
    eventually(lambda: 4 in weights(leader), "server 4 is known")
    done(leader, "remove", "4")
    assert "server 4 was removed again meanwhile" in finish(), "it is asked for again"
    assert weights(leader) == {1: 1, 2: 1, 3: 1} and config(zk)[0] == kept[0]
    ensemble.stop()


def newcomer_refuses(directory):
    """A server of another ensemble at the new member's address is no voter that is down: an operator does not add it,
    but a client does, as in ZooKeeper."""
    options = ["--set", "reconfigEnabled=true", "--set", "skipACL=yes"]
    ensemble = started(directory, *options)
    leader = ensemble.leader()
    zk = ensemble.client(leader)
    before, _ = settled(zk)
    other = joiner(ensemble, directory, 4)
    other.options.remove("--join")
    other.ensemble = f"4={other.peer}"
    other.start()
    eventually(lambda: other.follows()[1] == 4, "it has an ensemble of its own")
    code, _, err = command(leader, "add", f"4={other.peer}")
    assert code == 2 and "no link to server 4: the two servers belong to different ensembles" in err, (code, err)
    assert config(zk)[0] == before, config(zk)
    reconfigured(zk, line(other), None, None)
    assert line(other) in config(zk)[0], config(zk)
    other.kill()
    ensemble.stop()


def second_change(directory):
    """While a change waits for a server, a second one that would have to wait as well is refused, with what is waited
    for; the first goes on, and its server's address can be corrected."""
    ensemble = started(directory)
    leader = ensemble.leader()
    new, down = needed(ensemble, directory)
    (other,) = ensemble.followers()
    time.sleep(1.1)  # a leader that is new does not know yet who lives
    finish = in_background(other, "add", f"4={new.peer}")
    eventually(lambda: 4 in weights(leader), "server 4 is known")
    code, _, err = command(leader, "add", "5=127.0.0.1:1")
    waits = f"comes first, and waits: server {down.number} was not heard for .* server 4 was never heard"
    assert code == 2 and re.search(waits, err), err
    code, _, err = command(other, "add", "5=127.0.0.1:1")  # it learns later what the leader thinks of it
    assert code == 2 and "server 4 was never heard" in err and status(leader)["changing"], err
    time.sleep(3)  # longer than a change may wait that has not begun
    assert status(leader)["changing"], "the first is given up as well"
    new.start()
    finish()
    knows_all(new, {1: 1, 2: 1, 3: 1, 4: 1})
    done(leader, "remove", "4")
    new.kill()
    wrong = in_background(leader, "add", f"4={http(new)}", code=2)
    eventually(lambda: 4 in weights(leader), "server 4 is known")
    new.start()
    eventually(lambda: command(leader, "add", f"4={new.peer}")[0] == 0, "it is found")
    assert "another address meanwhile" in (said := wrong()), said
    knows_all(new, {1: 1, 2: 1, 3: 1, 4: 1})
    new.kill()
    ensemble.stop()


def newcomer_dies(directory):
    """A newcomer that is needed answers no more after it has become a learner: the change is undone, whether or not
    it had introduced itself to the leader."""
    ensemble = started(directory, "--set", "reconfigEnabled=true", "--set", "skipACL=yes")
    leader = ensemble.leader()
    zk = ensemble.client(leader)
    settled(zk)
    new, _ = needed(ensemble, directory)
    new.start()
    for delay_s in 0, 1:
        time.sleep(delay_s)
        new.send(signal.SIGSTOP)
        before = config(zk)[0]
        raises(error.NewConfigNoQuorumError, zk.reconfig, line(new), None, None)
        assert config(zk)[0] == before and not status(leader)["changing"], config(zk)
        zk.create(f"/after-{delay_s}")
        new.send(signal.SIGCONT)
    ensemble.stop()


def own_server_leaves(directory):
    """The server of the client that asks is removed: the client is answered and served on, until the leader goes."""
    ensemble = started(directory, "--set", "reconfigEnabled=true", "--set", "skipACL=yes")
    leader, (own, other) = ensemble.roles()
    client = connect(own.address)
    nothing = struct.pack(">i", -1)

    def answer():  # refused while the other one is not heard
        found = client.call(RECONFIG, nothing + raw.text(str(own.number)) + nothing + struct.pack(">q", -1))
        return found if found[0] != NO_QUORUM else None
    code, body = eventually(answer, "it may leave")
    assert code == 0 and b"server.%d=" % own.number not in raw.read_buffer(body)[0], (code, body)
    assert b"server.%d=" % leader.number in raw.read_buffer(body)[0]
    for number in range(50):
        assert client.create(f"/n-{number}", bytes(1000)) == 0 and client.exists(f"/n-{number}")
    assert status(own)["removed"] and own.log().count("this server is no longer a member") == 1
    zk = ensemble.client(leader)
    zk.create("/elsewhere")
    eventually(lambda: client.exists("/elsewhere"), "what others write arrives")
    knows_all(leader, {leader.number: 1, other.number: 1})
    zk.stop()
    leader.kill()

    def is_dropped():
        try:
            client.exists("/")
            return False
        except raw.Lost:
            return True
    eventually(is_dropped, "without a leader its clients go elsewhere")
    leader.start()
    done(ensemble.leader(among=[leader, other]), "add", f"{own.number}={own.peer}")
    eventually(lambda: not status(own)["removed"], "it knows that it is a member")
    assert connect(own.address).exists("/n-49")
    ensemble.stop()


def own_server_comes_back(directory):
    """The client's own server leaves, and the client adds it again: each time it gets the new configuration."""
    ensemble = started(directory, "--set", "reconfigEnabled=true", "--set", "skipACL=yes")
    own = ensemble.followers()[0]
    settled(ensemble.client(ensemble.leader()))
    client = connect(own.address)
    nothing = struct.pack(">i", -1)

    def answer(joining, leaving):
        found = client.call(RECONFIG, joining + leaving + nothing + struct.pack(">q", -1))
        return found if found[0] not in (NO_QUORUM, RECONFIG_IN_PROGRESS) else None
    for _ in range(3):
        code, body = eventually(lambda: answer(nothing, raw.text(str(own.number))), "it leaves")
        assert code == 0 and line(own).encode() not in raw.read_buffer(body)[0], (code, body)
        code, body = eventually(lambda: answer(raw.text(line(own)), nothing), "it comes back")
        assert code == 0 and line(own).encode() in raw.read_buffer(body)[0], (code, body)
    ensemble.stop()


def reconfig_is_guarded(directory):
    """Only clients that may write the configuration may change it."""
    digest = make_digest_acl_credential("super", "secret")
    ensemble = started(directory, "--set", "reconfigEnabled=true",
                       "--set", f"DigestAuthenticationProvider.superDigest={digest}")
    zk = ensemble.client()
    raises(error.NoAuthError, zk.reconfig, None, "3", None)
    zk.add_auth("digest", "super:secret")
    reconfigured(zk, None, "3", None)
    knows_all(ensemble.members[0], {1: 1, 2: 1})
    ensemble.stop()


def reconfig_is_off(directory):
    ensemble = started(directory, "--set", "skipACL=yes")
    client = connect(ensemble.members[0].address)
    nothing = struct.pack(">i", -1)
    code = client.call(RECONFIG, nothing + raw.text("3") + nothing + struct.pack(">q", -1))[0]
    assert code == RECONFIG_DISABLED, code
    assert sorted(weights(ensemble.members[0])) == [1, 2, 3]
    ensemble.stop()


# ---- conclave up ----


class Up:
    """An ensemble, or a group of peers, that is driven by lines."""

    def __init__(self, port, *options, command=("up",)):
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", os.environ["CONCLAVE"], *command, "--port", str(port), *options],
            text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.lines, self.all_lines = [], []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for text in self.process.stdout:
            self.lines.append(text.rstrip("\n"))
            self.all_lines.append(text.rstrip("\n"))

    def type(self, text):
        self.lines.clear()
        self.process.stdin.write(text + "\n")

    def has(self, *patterns):
        """Whether all of them are in the lines since the last command."""
        return all(any(re.fullmatch(p, text) for text in list(self.lines)) for p in patterns)

    def sees(self, *patterns):
        eventually(lambda: self.has(*patterns), f"{patterns} in {self.lines}")

    def leader(self):
        """Who was elected last, by all that was said so far: on a busy machine that may be another one by now."""
        found = [re.fullmatch(r"server (\d): leads in term (\d+)", text) for text in list(self.all_lines)]
        return max((int(m[2]), int(m[1])) for m in found if m)[1]

    def transfers_to(self, number):
        """A transfer that takes too long is given up, as on a busy machine: then it is asked for again."""
        for _ in range(10):
            self.process.stdin.write(f"transfer {number}\n")
            end = time.monotonic() + TIMEOUT_S / 10
            while time.monotonic() < end:
                if self.leader() == number:
                    return
                time.sleep(0.01)
        raise Late(f"{number} leads, in {self.lines}")

    def last(self, pattern):
        return [m for m in (re.fullmatch(pattern, text) for text in self.lines) if m][-1]


def up(directory):
    """Servers are killed, stopped, restarted and made leaders by lines; data in --data is kept."""
    port = free_ports(3)
    here = f"{directory}/kept"
    ours = Up(port, "--data", here)
    ours.sees(r"server \d: leads in term \d+", r"server 1: (leads|follows \d) .*", r"server 2: (leads|follows \d) .*",
              r"server 3: (leads|follows \d) .*")
    leader = ours.leader()
    client = connect(f"127.0.0.1:{port}")
    assert client.call(raw.CREATE, raw.create_record("/kept"))[0] == 0
    ours.type(f"kill {leader}")
    ours.sees(f"server {leader}: killed")
    eventually(lambda: ours.leader() != leader, "another one leads")
    ours.type(f"kill {leader}")
    ours.sees(f"server {leader} is not running")
    ours.type(f"transfer {leader}")
    ours.sees(f"server {leader} is not running")
    ours.type(f"start {leader}")
    ours.sees(rf"server {leader}: starting, process \d+", rf"server {leader}: (leads|follows \d) in term \d+")
    ours.transfers_to(leader)
    silent = leader % 3 + 1
    ours.type(f"stop {silent}")
    ours.sees(f"server {silent}: stopped")

    def says_why():  # at once, or when it has been waited for, but not nothing
        ours.type(f"transfer {silent}")
        why = "that server does not respond, or has to catch up|that server cannot be reached"
        eventually(lambda: ours.has(f"server {silent} does not lead.*|{why}"), f"an answer in {ours.lines}")
        return ours.has(f"{why}|server {silent} does not lead: it did not take .*")
    eventually(says_why, "the reason")
    ours.type(f"continue {silent}")
    ours.sees(rf"server {silent}: (leads|follows \d) in term \d+")
    ours.transfers_to(leader)
    ours.type(f"stop {leader}")
    ours.sees(f"server {leader}: stopped")
    eventually(lambda: ours.leader() != leader, "another one leads")
    ours.type(f"continue {leader}")
    ours.sees(rf"server {leader}: (leads|follows \d) in term \d+")
    other = leader % 3 + 1
    ours.type(f"restart {other}")
    ours.sees(rf"server {other}: starting, process \d+", rf"server {other}: (leads|follows \d) in term \d+")
    rows = [rf"{i}  +{port + i - 1}  +\d+  +(leader|follower) .*" for i in (1, 2, 3)]

    def table():  # on a busy machine a server may not answer in time, and its row says so
        ours.type("status")
        eventually(lambda: ours.has("server  port .*", *(rf"{i}  +{port + i - 1}  .*" for i in (1, 2, 3))), "a table")
        return ours.has(*rows)
    eventually(table, "a table of three servers that answer")
    at = ours.last(rf"1  +{port}  +(\d+) .*")[1]

    def is_told():  # not while an election goes on
        told = subprocess.run([os.environ["CONCLAVE"], "ensemble", "status", "--at", f"127.0.0.1:{at}"], text=True,
                              capture_output=True).stdout
        return "leads in term" in told and told.count(" up ") == 2
    eventually(is_told, "the status of a server names its leader, and two that are up")
    for nonsense in ("fly 1", "kill", "kill 4"):
        ours.type(nonsense)
        ours.sees(r"'fly' is not .*|kill: which server\?|there is no server 4: 1 to 3")
    children = subprocess.run(["pgrep", "-P", str(ours.process.pid)], text=True, stdout=subprocess.PIPE).stdout.split()
    assert len(children) == 3
    ours.type("stop 1")
    ours.process.send_signal(signal.SIGTERM)  # also ends one that is stopped
    assert ours.process.wait(TIMEOUT_S) == 0
    assert not any(os.path.exists(f"/proc/{child}") for child in children)
    again = Up(port, "--data", here)
    again.sees(r"server \d: leads in term \d+")
    assert connect(f"127.0.0.1:{port + 2}").get("/kept")
    leader = again.leader()
    removed = leader % 3 + 1
    again.lines.clear()
    subprocess.run([os.environ["CONCLAVE"], "ensemble", "remove", str(removed), "--data", f"{here}/server{leader}"],
                   stdout=subprocess.DEVNULL, check=True)
    again.sees(f"server {removed}: is no longer a member")
    taken = subprocess.run([os.environ["CONCLAVE"], "up", "--port", str(port)], text=True, stdin=subprocess.DEVNULL,
                           capture_output=True)
    assert taken.returncode == 3 and f"port {port} is in use" in taken.stderr, taken
    children = subprocess.run(["pgrep", "-P", str(again.process.pid)], text=True, stdout=subprocess.PIPE).stdout.split()
    again.process.kill()  # no process stays
    again.process.wait()
    eventually(lambda: not any(alive(child) for child in children), "the servers ended with it")


class Picture:
    """One that is driven by keys, in a terminal of so many rows."""

    def __init__(self, rows, *words, columns=120):
        self.drawn = ""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm")
            os.execv(os.environ["CONCLAVE"], ["conclave", *words])
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def has(self, pattern):
        if select.select([self.terminal], [], [], 0.1)[0]:
            self.drawn = (self.drawn + os.read(self.terminal, 1 << 16).decode())[-20000:]
        return re.search(pattern, self.drawn.rpartition("\033[H")[2])

    def sees(self, pattern):
        eventually(lambda: self.has(pattern), f"{pattern} in {self.drawn[-3000:]}")

    def type(self, keys):
        os.write(self.terminal, keys)

    def quit(self):
        self.type(b"q")
        raises(OSError, self.sees, "nothing, but the end")
        os.close(self.terminal)
        assert os.waitpid(self.pid, 0)[1] == 0


def up_in_a_terminal(directory):
    """Keys as the last line of the picture names them: "k 2" kills server 2, and so does "k2"."""
    os.environ["TMPDIR"] = directory
    picture = Picture(40, "up", "--port", str(free_ports(3)))
    picture.sees("k N kill")
    picture.sees(r"3 +\d+ +\d+ +(leader|follower) ")
    picture.type(b"k")
    picture.sees("k: which server. 1 to 3")
    picture.type(b" 2")
    picture.sees(r"2 +\d+ +- +killed")
    picture.type(b"r2")
    picture.sees(r"2 +\d+ +\d+ +(leader|follower) ")
    picture.type(b"k 7")
    picture.sees("there is no server 7: 1 to 3")
    picture.quit()


def up_is_judged(directory):
    """With --record each server leaves a record beside its data, and a program is told where that is."""
    here = os.path.join(directory, "kept")
    ours = Up(free_ports(3), "--data", here, "--record")
    ours.sees(f"conclave: 3 servers on 127.0.0.1; data in {here}", r"server \d: leads in term \d+")
    ours.type("quit")
    ours.sees(f".*; 'conclave trace merge {here}/\\*.record' judges what happened")
    assert ours.process.wait(TIMEOUT_S) == 0
    told = subprocess.run([os.environ["CONCLAVE"], "trace", "merge", *(f"{here}/server{i}.record" for i in (1, 2, 3))],
                          text=True, stdout=subprocess.PIPE, check=True).stdout
    assert re.search("servers +3\n", told) and re.search("election safety +holds\n", told), told


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def up_leaves_nothing(directory):
    """Without --data the data is removed at the end."""
    port = free_ports(3)
    os.environ["TMPDIR"] = directory
    ours = Up(port, "--servers", "1", "--", "--set", "tickTime=500")
    ours.sees(r"server 1: leads in term \d+")
    assert any(name.startswith("conclave-up-") for name in os.listdir(directory))
    ours.type("quit")
    assert ours.process.wait(TIMEOUT_S) == 0
    assert not os.listdir(directory), os.listdir(directory)


if __name__ == "__main__":
    main([grows_and_shrinks, removed_and_added_again, numbered_from_zero, transfers, leader_killed_in_a_change,
          change_lost_and_repeated, impossible_transfers, transfers_to_the_silent, reconfig,
          change_in_progress, absent_voters, newcomer_refuses, second_change, newcomer_dies, own_server_leaves,
          own_server_comes_back, reconfig_is_guarded, reconfig_is_off, up, up_in_a_terminal, up_is_judged, up_leaves_nothing])
