"""Participants of groups of peers stay, and commands ask them through a socket."""
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys

from ensemble import TIMEOUT_S, eventually, main
from peers import (CONCLAVE, IN_TIME_ONLY, LONG, NO_CRASHES, NO_IDS, STUCK_BY_DESIGN, Group, clients_of, counted, counting, excluded,
                   is_gone, judged, own_host, tests_of, tokens_of)


class Staying(Group):
    """Each number has a participant, and commands ask it."""

    def __init__(self, directory, algorithm, processes=3, start=None):
        super().__init__(directory, algorithm, processes)
        for number in self.numbers if start is None else start:
            self.stay(number)

    def stay(self, number, before=()):
        readies = self.readies(number)
        self.prefix = lambda _: before
        self.start(number, "run", options=["--socket", f"{number}.socket"])
        eventually(lambda: self.readies(number) > readies, f"participant {number} is ready")

    def readies(self, number):
        return self.said(number).count("ready id=") if os.path.exists(f"{self.directory}/out.{number}") else 0

    def start_asking(self, number, what, *words, begin=subprocess.Popen, **more):
        return begin([CONCLAVE, "peer", what, "--socket", f"{number}.socket", *words], cwd=self.directory, text=True,
                     **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more})

    def ask(self, number, what, *words):
        asked = self.start_asking(number, what, *words, begin=subprocess.run, timeout=TIMEOUT_S)
        return asked.returncode, asked.stdout, asked.stderr

    def end(self, number):
        """In order."""
        self.running[number].terminate()
        assert self.running.pop(number).wait(TIMEOUT_S) == 0, self.said(number, "err")

    def await_inside(self):
        """The number of the process that writes it."""
        eventually(lambda: os.path.exists(f"{self.directory}/inside") and read_number(f"{self.directory}/inside"), "one is inside")
        number = read_number(f"{self.directory}/inside")
        os.unlink(f"{self.directory}/inside")
        return number


INSIDE = ["sh", "-c", "echo $$ >inside; exec sleep 1000"]


def read_number(path):
    with open(path, encoding="utf-8") as file:
        return int(file.read().strip() or 0)


def commands_come_and_go(directory):
    """Commands of several machines, and several of one, exclude each other."""
    group = Staying(directory, "ricart-agrawala")
    counting(group)
    asking = [group.start_asking(number, "lock", "--times", "5", "--", "./body") for number in group.numbers for _ in range(2)]
    for one in asking:
        _, errors = one.communicate(timeout=TIMEOUT_S)
        assert one.returncode == 0, errors
    assert counted(group) == 30 and not tokens_of(group)
    assert group.ask(1, "lock", "--", "sh", "-c", "echo $CONCLAVE_PEER; exit 5")[:2] == (5, "1\n")
    holder = group.start_asking(1, "lock", "--", *INSIDE)
    group.await_inside()
    for number, code in (1, 75), (2, 9):  # beside it, and elsewhere
        words = ["-w", "100ms"] + (["-E", str(code)] if code != 75 else [])
        assert group.ask(number, "lock", *words, "--", "true")[0] == code
    holder.terminate()
    assert holder.wait(TIMEOUT_S) == 128 + signal.SIGTERM
    assert group.ask(2, "lock", "--", "true")[0] == 0
    done = group.ask(1, "leader")
    assert done[0] == 64 and "gives no leader" in done[2], done
    group.start(9, "run", options=["--socket", "1.socket", "--data", "other"])
    assert group.running.pop(9).wait(TIMEOUT_S) == 64  # there is no such number
    group.stop()
    assert not [name for name in os.listdir(group.directory) if name.endswith(".socket")]
    done = group.ask(1, "lock", "--", "true")
    assert done[0] == 69 and "conclave peer run" in done[2], done
    report = judged(group)
    # Who gave up may have been let in later, for nothing.
    assert report["verdicts"]["exclusion"] == "held" and report["entries"] in (33, 34), report


def one_lock_asked_for(directory, algorithm):
    """The same by participants that stay, each with two commands at a time."""
    group = Staying(directory, algorithm, 5)
    clients, times = clients_of(group)
    counting(group)
    asking = [group.start_asking(number, "lock", "--times", str(times // 2), "--", "./body") for number in clients * 2]
    for one in asking:
        _, errors = one.communicate(timeout=TIMEOUT_S)
        assert one.returncode == 0, errors
    group.stop()
    excluded(group, times // 2 * 2 * len(clients))


def one_election_asked_for(directory, algorithm):
    """Participants that stay know one leader; and another when that one is killed."""
    group = Staying(directory, algorithm, 5)

    def leader():
        known = {group.ask(number, "leader")[1].strip() for number in group.running}
        return len(known) == 1 and known.pop()
    eventually(leader, f"{algorithm}: all know one")
    first = leader()
    if algorithm not in NO_CRASHES:
        group.kill(int(first))
        eventually(lambda: leader() not in (False, "", first), f"{algorithm}: all know another")
    group.stop()
    assert judged(group)["verdicts"]["termination"] == "held"


def nobody_enters_beside_what_is_left(directory):
    """If all who watch over a command are killed, others wait until what it has started is gone."""
    group = Staying(directory, "ricart-agrawala")
    front = group.start_asking(1, "lock", "--", "sh", "-c", "setsid sh -c 'echo $$ >inside; exec sleep 1000' & wait")
    left = group.await_inside()
    (keeper,) = subprocess.run(["pgrep", "-P", str(front.pid)], capture_output=True, text=True, check=True).stdout.split()
    # The end of the front would wake the keeper.
    for what, pid in itertools.product([signal.SIGSTOP, signal.SIGKILL], [int(keeper), front.pid]):
        os.kill(pid, what)
    done = group.ask(2, "lock", "-w", "1s", "--", "true")
    assert done[0] == 75 and not is_gone(left), (done, is_gone(left))
    # Not even if another participant is started in the place of the one that let it in.
    group.kill(1)
    group.start(1, "run", options=["--socket", "1.socket"])
    eventually(lambda: "waits until nothing is left" in group.said(1, "err"), "the participant waits")
    refused_beside(group, 1)
    done = group.ask(2, "lock", "-w", "1s", "--", "true")
    assert done[0] == 75 and group.readies(1) == 1, done
    os.kill(left, signal.SIGKILL)
    assert group.ask(2, "lock", "--", "true")[0] == 0 and group.readies(1) == 2
    front.wait(TIMEOUT_S)
    # Nor beside what is left of a command that had a participant of its own.
    group.kill(1)
    group.start(1, "lock", "--", "sh", "-c", "setsid sh -c 'echo $$ >inside; exec sleep 1000' & wait")
    left = group.await_inside()
    group.kill(1)
    group.start(1, "lock", "--", "true")
    eventually(lambda: group.said(1, "err").count("waits until nothing is left") == 2, "the participant waits")
    refused_beside(group, 1)
    os.kill(left, signal.SIGKILL)
    assert group.ask(2, "lock", "--", "true")[0] == 0
    group.stop()


def refused_beside(group, number):
    """Another participant with the data of one that runs, or waits until it may."""
    running = group.running[number]
    for words in ["run"], ["interactive"], ["lock", "--", "true"]:
        before = len(group.said(number, "err"))
        code = group.start(number, *words).wait(TIMEOUT_S)
        said = group.said(number, "err")[before:]
        assert code == 71 and "another process uses it" in said, (words, code, said)
    group.running[number] = running


def participants_end(directory):
    """One that is killed takes its command with it; one that is asked waits for it."""
    group = Staying(directory, "ricart-agrawala")
    holder = group.start_asking(1, "lock", "--", *INSIDE)
    inside = group.await_inside()
    group.kill(1)
    assert holder.wait(TIMEOUT_S) == 76 and is_gone(inside), holder.stderr.read()
    group.stay(1)
    assert group.ask(2, "lock", "--", "true")[0] == 0
    holder = group.start_asking(2, "lock", "--", "sh", "-c", "trap 'exit 4' TERM; echo $$ >inside; sleep 1000 & wait")
    group.await_inside()
    waits = group.start_asking(2, "lock", "--", "true")
    eventually(lambda: "2 of this machine" in group.ask(2, "state")[1], "another one waits")
    # It does not get the lock any more, even if it is too slow to hear so.
    (keeper,) = subprocess.run(["pgrep", "-P", str(waits.pid)], capture_output=True, text=True, check=True).stdout.split()
    os.kill(int(keeper), signal.SIGSTOP)
    group.running[2].terminate()
    assert holder.wait(TIMEOUT_S) == 4, holder.stderr.read()
    assert group.running.pop(2).wait(TIMEOUT_S) == 0
    os.kill(int(keeper), signal.SIGCONT)
    assert waits.wait(TIMEOUT_S) == 69, waits.stderr.read()
    # Nor does one wait for peers that do not answer, when nobody is inside.
    waits = group.start_asking(1, "lock", "--", "true")
    eventually(lambda: " waits" in group.ask(1, "state")[1], "it waits for the one that has ended")
    group.running[1].terminate()
    assert waits.wait(TIMEOUT_S) == 69 and group.running.pop(1).wait(TIMEOUT_S) == 0
    group.stop()


def what_is_held_is_handed_on(directory):
    """The token is where it was used last; if that participant ends in order, the others get it."""
    for algorithm in ("suzuki-kasami", "raymond"):
        group = Staying(directory, algorithm)
        for number in (3, 2, 3):
            assert group.ask(number, "lock", "--", "true")[0] == 0
        group.end(3)
        for number in (2, 1, 2):
            done = group.ask(number, "lock", "-w", f"{TIMEOUT_S // 2}s", "--", "true")
            assert done[0] == 0, done
        group.stop()
        report = judged(group)
        assert report["entries"] == 6 and report["verdicts"]["exclusion"] == "held", report


def groups_go_on(directory):
    """A group whose participants have all ended in order goes on where it was, also with what it still wanted."""
    for algorithm in ("suzuki-kasami", "raymond", "token-ring", "roucairol-carvalho"):
        group = Staying(directory, algorithm)
        for number in (3, 2):
            assert group.ask(number, "lock", "--", "true")[0] == 0
        for order in ([1, 2, 3], [3, 1, 2]):
            for number in order:
                group.end(number)
            for number in order:
                group.stay(number)
            for number in group.numbers:
                done = group.ask(number, "lock", "-w", f"{TIMEOUT_S // 2}s", "--", "true")
                assert done[0] == 0, (algorithm, order, number, done)
        # One that waits when it ends has nobody any more to let in.
        group.end(2)
        asked = group.said(1).count("waits")
        waits = group.start_asking(1, "lock", "--", "true")
        eventually(lambda: group.said(1).count("waits") > asked, "it asks")
        group.end(1)
        waited = waits.wait(TIMEOUT_S)
        for number in (1, 2):
            group.stay(number)
        for number in group.numbers:
            done = group.ask(number, "lock", "-w", f"{TIMEOUT_S // 2}s", "--", "true")
            assert done[0] == 0, (algorithm, waited, number, done)
        # From here on what it had written down is old.
        group.kill(3)
        group.stay(3)
        group.stop()
        report = judged(group)
        assert report["verdicts"]["exclusion"] == "held" and report["entries"] >= 11 and report["restarts"] == 1, report


def nothing_is_lost_in_order(directory):
    """Not by a start that fails, nor with the queue of a coordinator."""
    group = Staying(directory, "raymond")

    def all_enter(numbers):
        for number in numbers:
            done = group.ask(number, "lock", "-w", f"{TIMEOUT_S // 2}s", "--", "true")
            assert done[0] == 0, (number, done)
    all_enter(group.numbers)
    group.end(1)
    with socket.create_server((own_host(), group.ports[1])):
        group.start(1, "run", options=["--socket", "1.socket"])
        assert group.running.pop(1).wait(TIMEOUT_S) == 71 and "in use" in group.said(1, "err"), group.said(1, "err")
    group.stay(1)
    all_enter(group.numbers)
    group.stop()
    group = Staying(directory, "central")
    holder = group.start_asking(2, "lock", "--", *INSIDE)
    group.await_inside()
    waits = group.start_asking(3, "lock", "--", "true")
    eventually(lambda: "queue=[p3]" in group.ask(1, "state")[1], "the coordinator knows that it waits")
    group.end(1)
    group.stay(1)
    holder.terminate()
    assert waits.wait(TIMEOUT_S) == 0
    group.stop()


def one_that_is_back_is_not_done(directory):
    """Who had said that it needs nothing any more, ends in order and comes back: the others stay for it again."""
    group = Staying(directory, "ricart-agrawala", start=[])
    group.start(1, "serve", options=["--stay"])
    group.start(2, "serve")
    group.start(3, "lock", "--", "sh", "-c", "touch inside; while [ -e inside ]; do sleep 0.02; done")
    eventually(lambda: os.path.exists(f"{group.directory}/inside"), "the third is inside")
    group.running[1].terminate()
    group.running.pop(1).wait(TIMEOUT_S)
    group.stay(1)
    eventually(lambda: "connected with 2 3" in group.ask(1, "state")[1], "it is back")
    os.unlink(f"{group.directory}/inside")
    for _ in range(20):
        done = group.ask(1, "lock", "-w", f"{TIMEOUT_S // 2}s", "--", "true")
        assert done[0] == 0, done
    group.stop()


def one_that_is_done_may_be_ended(directory):
    """A command that has done its work, and serves the others, ends in order: nothing that it has is lost."""
    for algorithm in ("suzuki-kasami", "raymond", "token-ring", "roucairol-carvalho"):
        group = Staying(directory, algorithm, start=[2, 3])
        group.start(1, "lock", "--", "true", options=["-v"])
        eventually(lambda: "serves the others" in group.said(1, "err"), "it is done")
        eventually(lambda: "connected with 1 " in group.ask(2, "state")[1], "it can hand on what it has")
        group.running[1].terminate()
        assert group.running.pop(1).wait(TIMEOUT_S) == 128 + signal.SIGTERM
        for number in (3, 2, 1, 3, 2) if algorithm == "suzuki-kasami" else (1, 3, 2):
            if number == 1:
                group.start(1, "serve")
                continue
            done = group.ask(number, "lock", "-w", f"{TIMEOUT_S // 2}s", "--", "true")
            assert done[0] == 0, (algorithm, number, done)
        group.stop()
        report = judged(group)
        assert report["verdicts"]["exclusion"] == "held" and report["entries"] in (3, 5) and not report["restarts"], report


def one_that_ends_where_another_stays_comes_back(directory):
    """All are done, and somebody stays: the others end, and go on where they were."""
    for algorithm in ("suzuki-kasami", "raymond", "token-ring", "lamport"):
        group = Group(directory, algorithm, 3)
        group.start(1, "serve", options=["--stay"])
        for _ in range(2):
            ending = [group.start(number, "lock", "--", "true") for number in (2, 3)]
            assert [process.wait(TIMEOUT_S) for process in ending] == [0, 0], algorithm
        group.stop()
        report = judged(group)
        assert report["verdicts"]["exclusion"] == "held" and report["entries"] == 4 and not report["restarts"], report


def one_that_was_killed_is_waited_for(directory):
    """Whoever is started in its place does not fail because it has not quite gone."""
    group = Group(directory, "ricart-agrawala", 2)
    for _ in range(5):
        group.start(1, "serve", options=["--stay"])
        eventually(lambda: os.path.exists(f"{group.directory}/conclave-peer-1/durable"), "it has data")
        group.running.pop(1).kill()
    group.start(1, "lock", "--", "true")
    group.start(2, "lock", "--", "true")
    group.wait()


def old_data_is_noticed(directory):
    """Data that was put back from a copy would promise again what was used since."""
    group = Staying(directory, "ricart-agrawala")
    data, copy = f"{group.directory}/conclave-peer-1", f"{group.directory}/copy"
    for number in group.numbers:
        assert group.ask(number, "lock", "--", "true")[0] == 0
    group.end(1)
    shutil.copytree(data, copy)
    group.stay(1)
    assert group.ask(1, "lock", "--", "true")[0] == 0
    group.end(1)
    shutil.rmtree(data)
    os.rename(copy, data)
    group.stay(1)
    asks = group.start_asking(2, "lock", "--", "true")
    assert group.running.pop(1).wait(TIMEOUT_S) == 71 and "put back from a copy" in group.said(1, "err"), group.said(1, "err")
    # The record that it found was longer than the one that it knew.
    assert "in no record" in group.said(1, "err"), group.said(1, "err")
    # As one that has crashed it goes on.
    group.stay(1)
    assert asks.wait(TIMEOUT_S) == 0
    group.stop()


def states_are_shown(directory):
    """What a participant does, what the algorithm shows of itself, and whom it reaches."""
    group = Staying(directory, "ricart-agrawala")
    watching = group.start_asking(1, "state", "--watch", "--json")

    def await_state(**wanted):
        """Those that come until one is as wanted."""
        while line := watching.stdout.readline():
            told = json.loads(line)
            if all(told[key] == value for key, value in wanted.items()):
                return told
        raise AssertionError(f"no state was {wanted}: {watching.stderr.read()}")
    told = await_state(state="idle", queue=0, connected=[2, 3], suspected=[])
    assert (told["id"], told["algorithm"], told["processes"]) == (1, "ricart-agrawala", 3), told
    holder = group.start_asking(1, "lock", "--", *INSIDE)
    group.await_inside()
    assert "token" not in await_state(state="inside", queue=1)
    waiter = group.start_asking(2, "lock", "--", "true")
    eventually(lambda: "waits" in group.ask(2, "state")[1], "the other participant says that it waits")
    while "p2" not in await_state(state="inside")["fields"]:
        pass
    code, said, _ = group.ask(1, "state")
    assert code == 0 and said.startswith("peer 1 inside; 1 of this machine; ") and "connected with 2 3; suspects none" in said, said
    holder.terminate()
    assert holder.wait(TIMEOUT_S) == 128 + signal.SIGTERM and waiter.wait(TIMEOUT_S) == 0
    await_state(state="idle", queue=0)
    group.kill(3)
    await_state(connected=[2])
    group.running.pop(1).terminate()
    assert watching.wait(TIMEOUT_S) == 69
    group.stop()


def leaders_are_asked_for(directory):
    """Each participant says who leads; commands run on changes, and while it leads."""
    group = Staying(directory, "bully")
    eventually(lambda: all(group.ask(number, "leader")[:2] == (0, "3\n") for number in group.numbers), "all say that 3 leads")
    watching = group.start_asking(1, "leader", "--watch")
    assert watching.stdout.readline() == "3\n"
    electing = group.start_asking(2, "elect", "--", *INSIDE)
    assert electing.stdout.readline().startswith("follows 3 ")
    group.kill(3)
    inside = group.await_inside()
    while (line := watching.stdout.readline()) != "2\n":
        assert line == "\n", line
    group.stay(3)
    eventually(lambda: is_gone(inside), "it does not lead any more, and its command is gone")
    while (line := watching.stdout.readline()) != "3\n":
        assert line == "\n", line
    for process in watching, electing:
        process.terminate()
        process.wait(TIMEOUT_S)
    done = group.ask(1, "lock", "--", "true")
    assert done[0] == 64 and "gives no lock" in done[2], done
    group.stop()


class Stuck:
    """The writing end of a pipe that is full, and that nobody reads."""

    open = staticmethod(os.pipe)

    def __enter__(self):
        self.ends = self.open()
        os.set_blocking(self.ends[1], False)
        try:
            while os.write(self.ends[1], b"x" * 4096):
                pass
        except BlockingIOError:
            pass
        os.set_blocking(self.ends[1], True)
        return self.ends[1]

    def __exit__(self, *failure):
        for end in self.ends:
            os.close(end)


class StuckTerminal(Stuck):
    """The same of a terminal."""
    open = staticmethod(os.openpty)


def nobody_waits_for_who_reads(directory):
    """A participant and a command that leads print what changes; neither depends on somebody who reads it."""
    group = Staying(directory, "ricart-agrawala")
    group.kill(1)
    for stuck, streams in (Stuck, ["stdout"]), (Stuck, ["stderr"]), (StuckTerminal, ["stdout", "stderr"]):
        with stuck() as full:
            group.start(1, "run", options=["--socket", "1.socket", "--log-level", "debug"], **{stream: full for stream in streams})
            eventually(lambda: group.ask(1, "state")[0] == 0, "it is ready")
            assert all(group.ask(number, "lock", "--times", "100", "--", "true")[0] == 0 for number in (1, 2, 1))
            group.kill(2)  # which is logged
            group.stay(2)
            assert group.ask(1, "lock", "--", "true")[0] == 0
            group.end(1)
    group.stop()
    group = Staying(directory, "bully")
    with Stuck() as full:
        leading = group.start_asking(3, "elect", "--", *INSIDE, stdout=full)
        inside = group.await_inside()
        group.kill(3)
        assert leading.wait(TIMEOUT_S) == 76 and is_gone(inside), leading.stderr.read()
    group.stop()


def hooks_of(group):
    """A function that says what has been run on changes."""
    hooks = f"{group.directory}/hooks"

    def ran():
        if not os.path.exists(hooks):
            return []
        with open(hooks, encoding="utf-8") as file:
            return file.read().split()
    return ran


def hooks_take_turns(directory):
    """What is run on changes is run one after the other, and the last is for how it is now."""
    group = Staying(directory, "bully")
    ran = hooks_of(group)
    eventually(lambda: group.ask(2, "leader")[1] == "3\n", "3 leads")
    slow = "echo begin >>hooks; until [ -e go ]; do sleep 0.02; done; echo end >>hooks"
    electing = group.start_asking(2, "elect", "--on-leader", slow, "--on-follower", "echo $CONCLAVE_STATE >>hooks")
    eventually(lambda: ran()[-1:] == ["following"], "it follows 3")
    group.kill(3)
    eventually(lambda: ran()[-1:] == ["begin"], ran)
    group.stay(3)
    eventually(lambda: group.ask(2, "leader")[1] == "3\n", "3 leads again")
    with open(f"{group.directory}/go", "w", encoding="utf-8"):
        pass
    eventually(lambda: ran()[-3:] == ["begin", "end", "following"], ran)
    leading = group.start_asking(3, "elect", "--on-follower", "echo $CONCLAVE_STATE >>hooks")
    assert leading.stdout.readline().startswith("leads 3 ")
    group.kill(3)  # whoever was promoted is demoted
    assert leading.wait(TIMEOUT_S) == 69
    assert "leaderless" in ran(), ran()
    electing.terminate()
    electing.wait(TIMEOUT_S)
    group.stop()


def whoever_was_promoted_is_demoted(directory):
    """Also if the promotion hangs, and if the participant ends with the command."""
    group = Staying(directory, "bully")
    ran, demote = hooks_of(group), ["--on-follower", "echo $CONCLAVE_STATE >>hooks"]
    leading = group.start_asking(3, "elect", "--grace", "500ms", "--on-leader", "echo led >>hooks; exec sleep 1000", *demote)
    eventually(lambda: ran()[-1:] == ["led"], "3 leads")
    group.kill(3)
    assert leading.wait(TIMEOUT_S) == 69
    assert ran() == ["led", "leaderless"] and "did not end within --grace" in leading.stderr.read(), ran()
    leading = group.start(3, "elect", options=["--on-leader", "echo led >>hooks", *demote])
    eventually(lambda: ran()[-1:] == ["led"], "3 leads again")
    leading.terminate()
    assert group.running.pop(3).wait(TIMEOUT_S) == 128 + signal.SIGTERM
    assert ran()[-1] == "leaderless", ran()
    group.stop()


def what_runs_has_its_grace(directory):
    """Before a participant that is told to end ends, however long it is."""
    group = Staying(directory, "bully")
    seconds = 12 if LONG else 1
    leading = group.start_asking(3, "elect", "--grace", "1h", "--", "sh", "-c",
                                 f"trap 'sleep {seconds}; exit 4' TERM; echo $$ >inside; sleep 1000 & wait")
    group.await_inside()
    group.end(3)
    assert leading.wait(TIMEOUT_S) == 4, leading.stderr.read()
    group.stop()


def what_waits_for_a_peer_reaches_it(directory):
    """Also if it is much more than a connection takes at once, and nothing is sent after it."""
    flood = f"{directory}/built/flood.so"
    os.mkdir(f"{directory}/built")
    subprocess.run(["gcc", "-O1", "-Iinclude", "-shared", "-fPIC", "-o", flood, "tests/net/flood.c"], check=True, timeout=TIMEOUT_S)
    group = Staying(directory, flood, 2, start=[1])
    eventually(lambda: "sent=250000" in group.ask(1, "state")[1], "everything is sent")
    group.stay(2)
    eventually(lambda: "received=250000" in group.ask(2, "state")[1], lambda: group.ask(2, "state")[1])
    group.stop()


def wrong_requests(directory):
    """Those that cannot be meant, or cannot be served, are refused in one line, and run nothing."""
    group = Staying(directory, "central")

    def refused(number, *words, says, code=64, **environment):
        with group.start_asking(number, *words, env={**os.environ, **environment}) as asking:
            said, errors = asking.communicate(timeout=TIMEOUT_S)
        assert asking.returncode == code and not said and says in errors and errors.count("\n") == 1, (words, asking, said, errors)

    refused(2, "lock", "-w", "1,5s", "--", "echo", "ran", says="wait: '1,5s'")
    refused(2, "lock", "-w", "0", "--", "echo", "ran", says="some time to answer")
    refused(2, "lock", "--grace", "x", "--", "echo", "ran", says="grace: 'x'")
    refused(1, "lock", "--", "echo", "ran", says="gives no lock")
    refused(1, "elect", "--on-leader", "echo ran", "--", "echo", "ran", says="not both")
    refused(1, "leader", says="gives no leader")
    refused(1, "state", "--socket", "", says="socket: an empty path")
    again = [CONCLAVE, "peer", "lock", "--socket", f"{group.directory}/2.socket", "--", "echo", "ran"]
    refused(2, "lock", "--", *again, says="would wait for itself")
    # Its words are its own, and no token of a lock around it is.
    with group.start_asking(2, "lock", "--", "sh", "-c", "echo $CONCLAVE_TOKEN $0 $1", "--algorithm", "adam",
                            env={**os.environ, "CONCLAVE_TOKEN": "990"}) as asking:
        assert asking.communicate(timeout=TIMEOUT_S)[0].split() == ["2", "--algorithm", "adam"]
    group.running[2].send_signal(signal.SIGSTOP)
    refused(2, "lock", "-w", "200ms", "--", "echo", "ran", says="it does not answer", code=69)
    group.running[2].send_signal(signal.SIGCONT)
    group.stop()
    group = Staying(directory, "ricart-agrawala")
    with group.start_asking(2, "lock", "--", "sh", "-c", "echo $CONCLAVE_TOKEN", env={**os.environ, "CONCLAVE_TOKEN": "990"}) as asking:
        assert asking.communicate(timeout=TIMEOUT_S)[0] == "\n"
    group.stop()


def sockets_of_others_stay(directory):
    """A participant takes the place of one that was killed, and of nobody else; nohup keeps it from hanging up."""
    group = Staying(directory, "ricart-agrawala")
    group.kill(1)
    assert os.path.exists(f"{group.directory}/1.socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(f"{group.directory}/other.socket")
        group.start(1, "run", options=["--socket", "other.socket"])
        assert group.running.pop(1).wait(TIMEOUT_S) == 71 and "of somebody else" in group.said(1, "err"), group.said(1, "err")
        assert os.path.exists(f"{group.directory}/other.socket")
    group.stay(1, before=["nohup"])
    group.running[1].send_signal(signal.SIGHUP)
    assert group.ask(1, "lock", "--", "true")[0] == 0
    os.rename(f"{group.directory}/2.socket", f"{group.directory}/1.socket")
    group.end(1)
    assert group.ask(1, "state")[1].startswith("peer 2 "), "the socket that is there now stays"
    group.stop()


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    main([*(tests_of("Locks", one_lock_asked_for, STUCK_BY_DESIGN + IN_TIME_ONLY) if LONG else ()),
          *(tests_of("Elections", one_election_asked_for, NO_IDS) if LONG else ()),
          commands_come_and_go, nobody_enters_beside_what_is_left, participants_end, what_is_held_is_handed_on,
          groups_go_on, nothing_is_lost_in_order, one_that_is_back_is_not_done, one_that_is_done_may_be_ended,
          one_that_ends_where_another_stays_comes_back, one_that_was_killed_is_waited_for, old_data_is_noticed,
          states_are_shown, leaders_are_asked_for, nobody_waits_for_who_reads, hooks_take_turns,
          whoever_was_promoted_is_demoted, what_runs_has_its_grace, what_waits_for_a_peer_reaches_it, wrong_requests,
          sockets_of_others_stay])
