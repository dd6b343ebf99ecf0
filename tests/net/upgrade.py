"""An ensemble is upgraded server by server, and downgraded, under load: servers of this program and of the one
before ($BEFORE), which speaks version 2 of the protocol only, are members of one ensemble.  Nothing that was
acknowledged is lost or done twice, sessions survive, and each term has one leader."""
import os
import re
import signal

from ensemble import Ensemble, Member, connect, eventually, main, trim
from failures import (Creator, Reconnecting, check_reconnecting, expect_no_trouble, expect_same, sync, verify_made,
                      write_big)
from history import Load
from members import command, http

from patience import crashes
import raw

OLD, NEW = "old", "new"
VERSION = {OLD: 2, NEW: 7}  # the newest that they speak
# How each logs that it knows the leader of a term, and that a snapshot was installed.
LEADERS = r"(?:leading|following|was elected leader|follows a leader) leader=(\d+) term=(\d+)"
NO_LEADER = r"no leader term=(\d+)"
SNAPSHOT = {OLD: "a snapshot has come", NEW: "a snapshot of the leader was installed"}


class Upgradable(Member):
    """A server that is of either program, over several lives."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.common = [*self.options, "--insecure", "--http", http(self)]  # as ensembles of one machine were before
        self.become(OLD)

    def become(self, age):
        self.age = age
        self.program = os.environ["CONCLAVE" if age == NEW else "BEFORE"]
        self.options = self.common + (["--log-level", "debug", "--found"] if age == NEW else [])  # the old ones cannot say

    def follows(self):
        found = re.findall(f"{LEADERS}|{NO_LEADER}", self.log())
        leader, term, alone_in = found[-1] if found else (0, 0, 0)
        return int(term or alone_in), int(leader or 0)

    def link_versions(self):
        """By the number of the other server, as this one logged them last; of a new server only."""
        found = re.findall(r"a link to another server is up peer=(\d+) .*version=(\d+)", self.log())
        return {int(peer): int(version) for peer, version in found}

    def replace(self, age):
        """Ends it as an operator does, and starts the other program with its data."""
        self.send(signal.SIGTERM)
        status = self.end()
        assert status == 0, f"server {self.number} ended with {status}: {self.log()[-1500:]}"
        self.become(age)
        self.start()


def prepare(directory, ages, *options):
    ensemble = Ensemble(directory, count=len(ages), options=options, kind=Upgradable)
    for member, age in zip(ensemble.members, ages):
        member.become(age)
    # Where two lead, whoever waits for one that all follow is not only late.
    crashes.append(lambda: next((f"leaders {found} of term {term}" for term, found in leaders(ensemble).items() if len(found) > 1), None))
    return ensemble.start()


def of_age(ensemble, age):
    return [member for member in ensemble.members if member.age == age]


def transfer(ensemble, to):
    """Asked of a follower, if there is one of the new program, so that the question travels."""
    def leads():
        leader = ensemble.leader()
        if leader is to:
            return True
        asked = [m for m in of_age(ensemble, NEW) if m is not leader] or of_age(ensemble, NEW)
        command(asked[0], "transfer", str(to.number))  # it fails if another is elected meanwhile
        return False
    eventually(leads, f"server {to.number} leads")


def expect_versions(ensemble):
    """Each link of a new server has the newest version that both ends speak."""
    for member in of_age(ensemble, NEW):
        want = {m.number: VERSION[m.age] for m in ensemble.members if m is not member}
        eventually(lambda m=member, w=want: m.link_versions() == w,
                   f"versions {want} of the links of server {member.number}; {member.link_versions()}")


def leaders(ensemble):
    """Of each term, by the logs of all."""
    found = {}
    for member in ensemble.members:
        with open(member.errors, errors="replace") as file:
            for leader, term in re.findall(LEADERS, file.read()):
                found.setdefault(term, set()).add(leader)
    return found


def expect_one_leader_per_term(ensemble):
    found = leaders(ensemble)
    assert len(found) > 1, found
    assert all(len(one) == 1 for one in found.values()), found


class Work:
    """Clients of all kinds; what they were told is judged at the end."""

    def __init__(self, ensemble, directory):
        self.ensemble = ensemble
        members = ensemble.members
        self.load = Load(ensemble, directory, registers=3, lockers=1, c_clients=0, linearizable=True)
        self.creators = [Creator(ensemble, f"creator{i}", *members[i:], *members[:i]) for i in range(2)]
        self.patients = [Reconnecting(ensemble, str(m.number), m, *[o for o in members if o is not m]) for m in members]
        for patient in self.patients:
            patient.may_lose = True

    def goes_on(self):
        expect_no_trouble(self.patients)
        before, made = self.load.progress(), [creator.number for creator in self.creators]
        counted = [patient.done for patient in self.patients]
        eventually(lambda: self.load.progress() > before + 20, "the load goes on")
        eventually(lambda: all(c.number > n + 3 for c, n in zip(self.creators, made)), "creators go on")
        eventually(lambda: all(p.done > n + 3 or p.trouble for p, n in zip(self.patients, counted)), "patients go on")

    def finish(self):
        for worker in self.creators + self.patients:
            worker.finish()
        self.load.finish()
        for member in self.ensemble.members:
            client = connect(member.address)
            sync(client)
            client.close_session()
            verify_made(member.address, self.creators)
            check_reconnecting(member, self.patients)


def lead_in_turn(ensemble, work):
    """A server of each program leads, is killed while it does, and comes back."""
    for age in (NEW, OLD):
        leader = of_age(ensemble, age)[0]
        if ensemble.leader() is not leader:
            transfer(ensemble, leader)
        work.goes_on()
        expect_versions(ensemble)
        leader.kill()
        assert ensemble.leader() is not leader
        work.goes_on()
        leader.start()
        ensemble.leader()


def rolling(directory, ages, second, count):
    """From those servers to all `second`, with a look at each mixed stage."""
    first = ages[-1]
    ensemble = prepare(directory, ages, "--reads", "linearizable", "--set", "snapCount=300")
    work = Work(ensemble, directory)
    work.goes_on()
    for replaced in range(1, 1 + count):
        member = sorted(of_age(ensemble, first), key=lambda m: m is ensemble.leader())[0]  # the leader comes last
        member.replace(second)
        ensemble.leader()
        expect_versions(ensemble)
        work.goes_on()
        if replaced < 3:
            lead_in_turn(ensemble, work)
    expect_versions(ensemble)
    work.finish()
    expect_one_leader_per_term(ensemble)
    ensemble.stop()


def upgrade(directory):
    rolling(directory, [OLD] * 3, NEW, 3)


def downgrade(directory):
    """Before the last server is upgraded, the others can go back: their files are the same until then."""
    rolling(directory, [OLD, NEW, NEW], OLD, 1)


# ---- Reads ----


def reads_at_mixed_members(directory):
    """A follower of the one program that is behind asks a leader of the other, and shows no old value."""
    ensemble = prepare(directory, [NEW, OLD, OLD], "--reads", "linearizable")
    new, old, _ = ensemble.members
    for leader, behind in ((new, old), (old, new)):
        transfer(ensemble, leader)
        writer, reader = connect(leader.address), connect(behind.address)
        path = f"/{leader.age}"
        assert writer.create(path, b"") == 0
        for turn in range(4):
            behind.send(signal.SIGSTOP)
            for number in range(20):
                assert writer.set(path, b"%d.%d" % (turn, number) + b"-" * 100000) == 0
            asked = reader.send(raw.GET, raw.path_record(path))
            behind.send(signal.SIGCONT)
            while (answer := reader.receive())[0] != asked:
                pass
            assert answer[1] == 0 and raw.read_buffer(answer[2])[0].startswith(b"%d.19-" % turn), "an old value"
    expect_one_leader_per_term(ensemble)
    ensemble.stop()


# ---- Snapshots ----


def send_snapshot(directory, from_age, to_age):
    """A follower that lags behind the log that the leader keeps gets a snapshot, in several chunks."""
    ensemble = prepare(directory, [NEW, OLD, to_age],
                       "--set", "ensemble.keptBytes=100000", "--set", "snapCount=5",
                       "--set", "preAllocSize=1024", "--set", "autopurge.snapRetainCount=1")
    leader, away = of_age(ensemble, from_age)[0], ensemble.members[2]

    def is_sent():
        """... by that leader: on a busy machine another one may be elected meanwhile."""
        transfer(ensemble, leader)
        write_big(leader.address, 1)
        away.kill()
        old = [name for name in os.listdir(leader.directory) if name.startswith("log.")]
        write_big(leader.address, 12)
        trim([leader], lambda: write_big(leader.address, 1), old)
        view = ensemble.leader().follows()
        away.start()
        expect_same(ensemble)
        assert SNAPSHOT[to_age] in away.log(), away.log()
        return view[1] == leader.number and ensemble.leader().follows() == view
    eventually(is_sent, "a snapshot of that leader")
    client = connect(away.address)  # it takes part
    assert client.set("/big", b"on") == 0
    transfer(ensemble, away)
    write_big(away.address, 1)
    expect_same(ensemble)
    expect_one_leader_per_term(ensemble)
    ensemble.stop()


def snapshot_from_new_to_old(directory):
    send_snapshot(directory, NEW, OLD)


def snapshot_from_old_to_new(directory):
    send_snapshot(directory, OLD, NEW)


if __name__ == "__main__":
    main([upgrade, downgrade, reads_at_mixed_members, snapshot_from_new_to_old, snapshot_from_old_to_new])
