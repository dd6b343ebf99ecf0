"""No command leaves an ensemble that cannot go on; and when a majority is lost, there is a way out."""
import glob
import os
import re
import shutil
import signal
import subprocess
import time

from kazoo import exceptions as error

from ensemble import TIMEOUT_S, connect, eventually, main, raises
from members import command, done, joiner, knows_all, needed, started, status, weights

import raw


def recover(*options):
    run = subprocess.run([os.environ["CONCLAVE"], "recover", *options], stdin=subprocess.DEVNULL, capture_output=True,
                         text=True, timeout=TIMEOUT_S)
    return run.returncode, run.stdout, run.stderr


def refused(member, *words):
    code, out, err = command(member, *words)
    assert code == 2, f"{words}: {code} {out} {err}"
    return err


def commands_that_would_wedge(directory):
    """With one of three down, what needs it is refused, by leader and follower, with the reason; to remove it works."""
    ensemble = started(directory, "--set", "reconfigEnabled=true", "--set", "skipACL=yes")
    leader, (other, down) = ensemble.roles()
    zk = ensemble.client(other)
    zk.create("/before")
    down.kill()
    before = weights(leader)
    silence = f"server {down.number} was (not heard for|never heard)"  # never by one that leads since then
    eventually(lambda: re.search(silence, command(leader, "weight", f"{down.number}=2")[2]), "its silence is noticed")
    for asked, *words in ((leader, "remove", str(other.number)), (leader, "remove", str(leader.number)),
                          (leader, "add", f"{other.number}=127.0.0.1:1"),  # where nobody is
                          (other, "remove", str(other.number))):
        said = refused(asked, *words)
        assert re.search(silence, said) and "the new configuration {" in said, said
        assert weights(asked) == before and not status(asked)["changing"]
    raises(error.NewConfigNoQuorumError, zk.reconfig, None, str(other.number), None)
    raises(error.NewConfigNoQuorumError, zk.reconfig, f"weight.{down.number}=2", None, None)
    said = refused(leader, "add", f"9={other.peer}")
    assert f"server {other.number} and server 9 would have the same address" in said, said
    zk.create("/between")  # nothing is stuck
    done(other, "remove", str(down.number))
    assert weights(leader) == {leader.number: 1, other.number: 1}
    zk.create("/after")
    down.start()  # it was removed, and does not know; but whoever it asks for a vote does
    eventually(lambda: status(down)["removed"], "the removed server is told")
    assert down.log().count("this server is no longer a member") == 1
    done(leader, "add", f"{down.number}={down.peer}")
    knows_all(down, before)
    assert not status(down)["removed"]
    assert connect(down.address).get("/after")
    ensemble.stop()


def told_without_a_vote(directory):
    """A server that was down when it was removed is told so also if it has no vote, and asks nobody for one."""
    ensemble = started(directory)
    leader = ensemble.leader()
    observer = joiner(ensemble, directory, 4).start()
    for name in "before", "after":
        done(leader, "add", f"4={observer.peer}:observer")
        knows_all(observer, {1: 1, 2: 1, 3: 1, 4: 0})
        assert not status(observer)["removed"]
        connect(observer.address).create(f"/{name}")
        observer.send(signal.SIGTERM)  # its log is durable
        assert observer.end() == 0, observer.log()
        done(leader, "remove", "4")
        observer.start()
        eventually(lambda: status(observer)["removed"], "the removed server is told")
    observer.kill()
    ensemble.stop()


def change_goes_on_after_a_restart(directory):
    """All are killed in the middle of a change; whoever leads then goes on with it, without being asked again."""
    ensemble = started(directory, "--set", "snapCount=200")
    new, down = needed(ensemble, directory)
    running = ensemble.running()
    first = running[0]

    def is_given_up():  # refused while a member is not heard
        code, _, err = command(first, "add", f"4={new.peer}", timeout="5s")
        assert code == 3 or code == 2 and "was not heard for" in err, f"{code} {err}"
        return "has not caught up" in err
    eventually(is_given_up, "it waits for server 4")
    zk = ensemble.client(*running)
    for i in range(250):  # the snapshot has the target too
        zk.create(f"/n-{i}")
    eventually(lambda: all(glob.glob(f"{m.directory}/snapshot.*") for m in running), "snapshots")
    zk.stop()
    for member in running:
        member.kill()
    for member in running:
        member.spawn()
    ensemble.leader()
    time.sleep(3)  # longer than a change may wait that has not begun
    eventually(lambda: all(status(member)["changing"] for member in running), "the change is known")
    new.start()
    eventually(lambda: weights(first) == {1: 1, 2: 1, 3: 1, 4: 1}, "the change is complete")
    ensemble.members.append(new)
    down.start()
    eventually(lambda: not any(status(member)["changing"] for member in running), "nothing is left to do")
    ensemble.stop()


def late_command(directory):
    """A command at a server that is cut off is given up; when that is back, what was decided since stands."""
    ensemble = started(directory, count=4)
    leader, (cut, third, fourth) = ensemble.roles()
    others = [leader, third, fourth]
    for member in others:
        member.send(signal.SIGSTOP)
    eventually(lambda: status(cut)["leader"] is None, "it has no leader")
    code, _, err = command(cut, "remove", str(fourth.number), timeout="2s")
    assert code == 3 and "not done in 2" in err, f"{code} {err}"
    cut.send(signal.SIGSTOP)
    for member in others:
        member.send(signal.SIGCONT)
    ensemble.leader(others)  # on a busy machine the fourth, which cannot be asked once it is removed
    done(third, "remove", str(fourth.number))
    done(third, "add", f"{fourth.number}={fourth.peer}")
    cut.send(signal.SIGCONT)
    ensemble.client(cut).create("/after")  # what it has kept is forwarded before
    knows_all(cut, {member.number: 1 for member in ensemble.members})
    refusal = "that another server asks for is refused: they have changed meanwhile"
    assert any(refusal in member.log() for member in others), "nothing was forwarded late"
    assert not status(cut)["changing"]
    ensemble.stop()


def majority_lost(directory):
    """Two of three are lost for good: the third becomes an ensemble of one, and two new ones join it.  One of them was
    started in place of a lost one before that, and goes on."""
    ensemble = started(directory)
    zk = ensemble.client(*ensemble.members)
    for i in range(20):
        zk.create(f"/n-{i}", b"kept")
    last = ensemble.members[0]
    eventually(lambda: raw.Client(last.address).get("/n-19")[0] == b"kept", "server 1 has it all")
    zk.stop()
    code, _, err = recover("--data", last.directory, "--new-ensemble")
    assert code == 3 and "stop the server first" in err, f"{code} {err}"
    for member in ensemble.members[1:]:
        member.kill()
        shutil.rmtree(member.directory)
    blank = ensemble.members[1]
    blank.spawn()
    eventually(lambda: "another data directory than the one" in blank.log(), "it is refused")
    last.send(signal.SIGTERM)  # what it has from a quorum of the others is durable here a little later
    assert last.end() == 0, last.log()
    files = sorted(os.listdir(last.directory))
    for wrong in ("1", "2=127.0.0.1:1"):
        code, _, err = recover("--data", last.directory, "--new-ensemble", "--accept-loss", "--member", wrong)
        assert code == 2 and "--member: " in err, f"{code} {err}"
    code, out, err = recover("--data", last.directory, "--new-ensemble")
    assert code == 0 and "nothing was changed" in out and "lost: whatever" in out, f"{code} {out} {err}"
    assert sorted(os.listdir(last.directory)) == files
    code, out, err = recover("--data", last.directory, "--new-ensemble", "--accept-loss")
    assert code == 0 and "is an ensemble of one" in out, f"{code} {out} {err}"
    (kept,) = glob.glob(f"{last.directory}/old-ensemble.*")
    assert "vote" in os.listdir(kept) and any(name.startswith("log.") for name in os.listdir(kept)), os.listdir(kept)
    last.ensemble = f"1={last.peer}"
    last.start()
    ensemble.leader(among=[last])
    assert weights(last) == {1: 1}
    ensemble.members = [last]
    new = [blank, joiner(ensemble, directory, 5).start()]
    for member in new:
        done(last, "add", f"{member.number}={member.peer}")
    ensemble.members += new
    knows_all(new[1], {1: 1, 2: 1, 5: 1})
    last.kill()
    leader = ensemble.leader(among=new)
    zk = ensemble.client(leader)
    assert all(zk.get(f"/n-{i}")[0] == b"kept" for i in range(20))
    zk.create("/after")
    ensemble.stop()


if __name__ == "__main__":
    main([commands_that_would_wedge, told_without_a_vote, change_goes_on_after_a_restart, late_command, majority_lost])
