"""Peers give each other locks and leaders, over TCP, with no server: each algorithm of the catalogue as processes."""
import functools
import itertools
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys

from ensemble import TIMEOUT_S, eventually, main, own_host
from members import Picture, Up
from patience import LATE, Late
from places import PORTS_OF_A_HOST, free_ports

CONCLAVE = os.environ["CONCLAVE"]
LONG = bool(os.environ.get("LONG"))
ENTRIES = 200 if LONG else 60  # of each lock

# How many of the processes are servers; and times that a busy machine keeps, instead of the laboratory's.
SERVERS = {"central": 1, "central-lease": 1, "tree-lock": 1, "tree-lock-naive": 1, "tree-lock-queue": 1, "quorum": 3,
           "voting": 3}
SLOW = {"central-lease": ["--lease", "300s"], "quorum": ["--give-up", "10s"], "voting": ["--answer", "10s"],
        "bully": ["--transmission", "1s", "--processing", "1s"],
        "bully-stable": ["--transmission", "1s", "--processing", "1s"],
        "invitation": ["--transmission", "1s", "--processing", "1s", "--period", "2s"],
        "majority-terms": ["--heartbeat-interval", "200ms", "--election-timeout", "2s"],
        "raft": ["--heartbeat-interval", "200ms", "--election-timeout", "2s"],
        "filtered-gossip": ["--round-time", "1s"]}
# What its explanation says: a wake-up may be lost, and then nobody enters again.
STUCK_BY_DESIGN = ["tree-lock-naive"]
# Those in which one that collides with others tries again at random, and may starve, as their explanations say.
UNFAIR = ["quorum", "voting"]
# One that excludes only while messages keep to a time, which a busy machine promises nobody.
IN_TIME_ONLY = ["central-elected"]
# Elections in which a crash leaves nobody elected, as their explanations say.
NO_CRASHES = ["franklin", "hirschberg-sinclair", "peterson", "itai-rodeh",
              "filtered-gossip", "yo-yo"]
NO_IDS = ["ring-anonymous", "itai-rodeh"]
EDGES = {"yo-yo": "edges 1-2 2-3 3-4 4-5 5-1 1-3\n"}


def algorithms(kind):
    """Those of the catalogue, by its own list."""
    out = subprocess.run([CONCLAVE, "list"], capture_output=True, text=True, check=True, timeout=TIMEOUT_S).stdout
    section, found = None, []
    for line in out.splitlines():
        if line and not line.startswith(" "):
            section = line.strip()
        elif line.startswith("  ") and not line.startswith("   "):
            found += [line.split()[0]] if section == kind else []
    assert len(found) > 5, out
    return found


ports = itertools.cycle(PORTS_OF_A_HOST)  # each group has its own


class Group:
    """A list of peers, and processes of it."""

    def __init__(self, directory, algorithm, processes=5, options=(), host=lambda n: own_host(), prefix=lambda n: ()):
        self.directory, self.algorithm = f"{directory}/{os.path.basename(algorithm)}", algorithm
        self.options = [*SLOW.get(algorithm, []), *options]
        self.servers = SERVERS.get(algorithm, 0)
        self.numbers = range(1, processes + self.servers + 1)
        os.makedirs(self.directory, exist_ok=True)
        self.ports = {n: next(ports) for n in self.numbers}
        with open(f"{self.directory}/peers.conf", "w", encoding="utf-8") as file:
            file.writelines(f"{n} {host(n)}:{self.ports[n]}\n" for n in self.numbers)
            file.write(EDGES.get(algorithm, ""))
        self.running, self.prefix = {}, prefix

    def start(self, number, *words, options=(), **more):
        command = [*self.prefix(number), "setpriv", "--pdeathsig", "KILL", CONCLAVE, "peer", "--algorithm", self.algorithm, "--id",
                   str(number), "--peers", "peers.conf", "--record", f"{number}.record", *self.options, *options,
                   *words]
        return self.run(number, *command, **more)

    def run(self, number, *command, stdin=subprocess.DEVNULL, stdout=None, stderr=None):
        with open(f"{self.directory}/out.{number}", "ab") as out, open(f"{self.directory}/err.{number}", "ab") as err:
            self.running[number] = subprocess.Popen(command, cwd=self.directory, stdin=stdin, stdout=stdout or out,
                                                    stderr=stderr or err)
        return self.running[number]

    def said(self, number, where="out"):
        with open(f"{self.directory}/{where}.{number}", encoding="utf-8") as file:
            return file.read()

    def kill(self, number):
        """The front and its keeper, as a power failure would: neither sees the end of the other."""
        front = self.running.pop(number)
        children = subprocess.run(["pgrep", "-P", str(front.pid)], capture_output=True, text=True, check=False).stdout
        both = [*map(int, children.split()), front.pid]
        for what, pid in itertools.product([signal.SIGSTOP, signal.SIGKILL], both):
            try:
                os.kill(pid, what)
            except ProcessLookupError:
                pass
        front.wait(TIMEOUT_S)

    def wait(self):
        for number, process in self.running.items():
            code = process.wait(TIMEOUT_S)
            if code == LATE:
                raise Late(f"{self.algorithm}: peer {number} waits")
            assert code == 0, f"{self.algorithm}: peer {number} ended with {code}: {self.said(number, 'err')}"
        self.running = {}

    def stop(self):
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            process.wait(TIMEOUT_S)
        self.running = {}


def trace(group, *words):
    return subprocess.run([CONCLAVE, "trace", *words], cwd=group.directory, capture_output=True, text=True, check=False,
                          timeout=TIMEOUT_S)


def records(group):
    return [f"{number}.record" for number in group.numbers]


def judged(group):
    """What the laboratory says of the run, after it has repeated each step to the same state."""
    done = trace(group, "merge", "--json", *records(group))
    assert done.returncode in (0, 1), f"{group.algorithm}: {done.stderr}"
    report = json.loads(done.stdout)
    assert report["steps"] and not report["unsent"], report
    return report


BODY = """#!/bin/sh
n=$(cat counter); echo begin $CONCLAVE_PEER $CONCLAVE_TOKEN >>order; echo $((n + 1)) >counter; echo end >>order
"""


def counting(group):
    """A command that reads a number, adds one and writes it back, without any care."""
    with open(f"{group.directory}/counter", "w", encoding="utf-8") as file:
        file.write("0\n")
    with open(f"{group.directory}/body", "w", encoding="utf-8") as file:
        file.write(BODY)
    os.chmod(f"{group.directory}/body", 0o755)


def counted(group):
    with open(f"{group.directory}/counter", encoding="utf-8") as file:
        return int(file.read())


def ended(group):
    """How many have been inside so far."""
    if not os.path.exists(f"{group.directory}/order"):
        return 0
    with open(f"{group.directory}/order", encoding="utf-8") as file:
        return file.read().count("end")


def tokens_of(group):
    """What was written inside, which is begin and end by turns; and the tokens."""
    with open(f"{group.directory}/order", encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert [line.split()[0] for line in lines] == ["begin", "end"] * (len(lines) // 2), lines[:20]
    return [int(line.split()[2]) for line in lines[::2] if len(line.split()) == 3]


def clients_of(group):
    """Those that may want the lock, and how often each of them does."""
    clients = [n for n in group.numbers if n > group.servers]
    # Whoever collides with others in a quorum waits, at random, for longer and longer.
    return clients, ENTRIES // len(clients) // (4 if group.algorithm == "quorum" else 1)


def one_lock(directory, algorithm):
    """It excludes: increments without any care are not lost, and tokens grow."""
    group = Group(directory, algorithm)
    clients, times = clients_of(group)
    counting(group)
    for number in random.sample(list(group.numbers), len(group.numbers)):
        if number <= group.servers:
            group.start(number, "serve")
        else:
            group.start(number, "--times", str(times), "lock", "--", "./body")
    group.wait()
    excluded(group, times * len(clients))


def excluded(group, entries):
    """So many were inside, one after the other."""
    algorithm = group.algorithm
    assert counted(group) == entries, f"{algorithm}: {counted(group)} of {entries}"
    tokens = tokens_of(group)
    assert tokens == sorted(set(tokens)), f"{algorithm}: tokens do not grow: {tokens}"
    errors = "".join(group.said(n, "err") for n in group.numbers)
    assert "refused" not in errors or "connection refused" in errors, errors
    report = judged(group)
    assert report["entries"] == entries and report["verdicts"]["exclusion"] == "held", report
    violated = {name for name, verdict in report["verdicts"].items() if verdict == "violated"}
    assert not violated - ({"starvation", "bounded_wait"} if algorithm in UNFAIR else set()), report
    assert tokens or algorithm not in ("central-lease", "suzuki-kasami"), algorithm


def one_of_each(directory):
    """A lock of each family: a coordinator, permissions, a token."""
    for name in ("central", "ricart-agrawala", "suzuki-kasami"):
        one_lock(directory, name)


def leaders(group):
    """Whom each of those that run follows, or leads as."""
    last = {}
    for number in group.running:
        lines = [line.split() for line in group.said(number).splitlines()]
        last[number] = int(lines[-1][1]) if lines and lines[-1][0] in ("leads", "follows") else None
    return last


def agreed(group):
    found = set(leaders(group).values())
    return len(found) == 1 and None not in found


def until(group, condition, what):
    try:
        eventually(condition, what)
    except AssertionError as failure:
        raise AssertionError(f"{group.algorithm}: {failure}: {leaders(group)}") from failure


def one_election(directory, algorithm):
    """It has one leader, known to all; and another when that one is killed."""
    group = Group(directory, algorithm)
    for number in random.sample(list(group.numbers), len(group.numbers)):
        group.start(number, "elect")
    until(group, lambda: agreed(group), "all follow one")
    first = next(iter(leaders(group).values()))
    if algorithm not in NO_CRASHES:
        group.kill(first)
        until(group, lambda: agreed(group) and first not in leaders(group).values(), f"all follow another than {first}")
    group.stop()
    report = judged(group)
    assert report["verdicts"]["termination"] == "held", report
    assert trace(group, "merge", "--trace", "graph", *records(group)).stdout.startswith("<?xml")
    assert algorithm != "majority-terms" or report["verdicts"]["uniqueness"] == "held", report


def detectors_notice(directory):
    """Those that learn from the heartbeats how long these take notice a leader that is killed, as the fixed one does."""
    for detector in ("adaptive:12", "phi:12"):
        group = Group(f"{directory}/{detector}", "bully", 3, ["--detector", detector, "--heartbeat", "100ms"])
        for number in group.numbers:
            group.start(number, "elect")
        until(group, lambda: leaders(group) == {1: 3, 2: 3, 3: 3}, f"{detector}: all follow the last")
        group.kill(3)
        until(group, lambda: leaders(group) == {1: 2, 2: 2}, f"{detector}: both follow the second")
        group.start(3, "elect")
        until(group, lambda: leaders(group) == {1: 3, 2: 3, 3: 3}, f"{detector}: all follow the last again")
        group.stop()


def elections_without_ids(directory):
    """One process leads, and the others know that there is a leader."""
    for name in ("itai-rodeh",):
        group = Group(directory, name)
        for number in group.numbers:
            group.start(number, "elect")
        eventually(lambda: sum("leads" in group.said(n) for n in group.numbers) == 1, f"{name}: one leads")
        group.stop()


def restarted_with_what_it_kept(directory):
    """A participant of ricart-agrawala is killed and comes back: the others wait for it, and nothing is lost."""
    group = Group(directory, "ricart-agrawala", 3)
    counting(group)
    # The others do not come to their end before, however long it takes.
    body = "until [ $(cat counter) -lt 20 ] || [ -e restarted ]; do sleep 0.02; done; exec ./body"
    for number in (1, 2):
        group.start(number, "--times", "30", "lock", "--", "sh", "-c", body)
    group.start(3, "serve")
    eventually(lambda: ended(group) >= 5, "some entries")
    group.kill(3)
    group.start(3, "--times", "5", "lock", "--", "./body")
    with open(f"{group.directory}/restarted", "w", encoding="utf-8"):
        pass
    group.wait()
    assert counted(group) == 65, counted(group)
    tokens_of(group)
    report = judged(group)
    assert report["restarts"] == 1 and report["verdicts"]["exclusion"] == "held", report


def records_are_replayed(directory):
    """The record of one is enough to repeat it; a damaged one is refused, and so is a list that lacks one."""
    group = Group(directory, "suzuki-kasami")
    for number in group.numbers:
        group.start(number, "--times", "3", "lock", "--", "true")
    group.wait()
    assert "entries              15" in trace(group, "merge", *records(group)).stdout
    for form, begins in (("text", " "), ("mermaid", "# suzuki-kasami"), ("json", "{"), ("svg", "<?xml"),
                         ("graph", "<?xml")):
        done = trace(group, "merge", "--trace", form, *records(group))
        assert done.returncode == 0 and done.stdout.startswith(begins), done
        assert form == "json" and len(json.loads(done.stdout)["entries"]) > 50 or "p5" in done.stdout, done
    assert trace(group, "replay", "3.record").returncode == 0

    def refused(says, *words):
        done = trace(group, *words)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and says in done.stderr, done

    refused("no record of process 5", "merge", *records(group)[:-1])
    refused("the same run", "merge", *records(group), "1.record")
    refused("which records", "merge")
    refused("merge FILE", "emerge", "1.record")
    refused("no record of a peer", "merge", "peers.conf")
    with open(f"{group.directory}/3.record", "r+b") as file:
        file.seek(-20, os.SEEK_END)
        byte = file.read(1)
        file.seek(-20, os.SEEK_END)
        file.write(bytes([byte[0] ^ 1]))
    refused("damaged", "merge", *records(group))
    refused("damaged", "replay", "3.record")


# Goes on when another is inside as well.
TOGETHER = """touch inside.$CONCLAVE_PEER
for i in $(seq $((50 * ${PATIENCE:-120}))); do [ "$(ls inside.* | wc -l)" = 2 ] && exit 0; sleep 0.02; done; exit 75"""


def two_inside_are_seen(directory):
    """A lock that lets two in, which its writer would find only with luck: the records show it, and how."""
    subprocess.run([CONCLAVE, "new", "lock", "mine"], cwd=directory, capture_output=True, check=True, timeout=TIMEOUT_S)
    with open(f"{directory}/mine/mine.c", encoding="utf-8") as file:
        text = file.read()
    broken = text.replace("if (s->holder) return;", "", 1)
    assert broken != text
    with open(f"{directory}/mine/mine.c", "w", encoding="utf-8") as file:
        file.write(broken)
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    include = os.path.abspath("include")
    subprocess.run(["make", "-s", "-C", f"{directory}/mine", f"CFLAGS=-O1 -I{include}"], env=environment, check=True,
                   timeout=TIMEOUT_S)
    group = Group(directory, f"{directory}/mine/mine.so", 3)
    group.start(1, "serve")
    for number in (2, 3):
        group.start(number, "lock", "--", "sh", "-c", TOGETHER)
    group.wait()
    done = trace(group, "merge", "--algorithm", group.algorithm, *records(group)[:3])
    assert done.returncode == 1, done
    assert re.search(r"exclusion +VIOLATED: p\d entered while p\d was inside", done.stdout), done
    assert done.stdout.count("ENTERS") == 2 and "What led here" in done.stdout, done
    done = trace(group, "merge", *records(group)[:3])
    assert done.returncode == 2 and "--algorithm" in done.stderr, done


HOLD = """touch in.$CONCLAVE_PEER
for i in $(seq $((50 * ${PATIENCE:-120}))); do [ -e go.$CONCLAVE_PEER ] && exit 0; sleep 0.02; done; exit 75"""


def killed_after_it_agreed(directory, amnesia):
    """While one is inside, peer 1 agrees that another may be next, is killed, comes back, and asks for itself."""
    group = Group(directory, "ricart-agrawala", 3)

    def is_there(name):
        return os.path.exists(f"{group.directory}/{name}")

    def go(number):
        with open(f"{group.directory}/go.{number}", "w", encoding="utf-8"):
            pass

    def happened(what):
        done = trace(group, "merge", "--trace", "text", *records(group))
        return done.returncode in (0, 1) and what in done.stdout

    group.start(1, "serve")
    for number in (2, 3):
        group.start(number, "lock", "--", "sh", "-c", HOLD)
    eventually(lambda: is_there("in.2") or is_there("in.3"), "one is inside")
    inside, waits = (2, 3) if is_there("in.2") else (3, 2)
    eventually(lambda: happened(f"p{waits} <- p1  OK"), f"1 agrees that {waits} is next")
    group.kill(1)
    group.start(1, *["--amnesia"] * amnesia, "lock", "--", "sh", "-c", HOLD)
    if amnesia:  # it asks as if it had not agreed
        eventually(lambda: happened(f"p1 <- p{waits}  OK"), f"{waits} agrees that 1 is next")
    else:
        eventually(lambda: happened(f"p{waits} <- p1  REQUEST"), f"{waits} hears of it")
    go(inside)
    eventually(lambda: is_there(f"in.{waits}"), "the one that waited is inside")
    if amnesia:
        eventually(lambda: is_there("in.1"), "and 1 with it")
    else:
        assert not is_there("in.1")
    go(waits)
    go(1)
    group.wait()
    report = judged(group)
    assert report["restarts"] == 1 and report["entries"] == 3, report
    return report["verdicts"]["exclusion"]


def restarted_in_between(directory):
    """Its clock is on the disk: what it asks for comes after what it has agreed to."""
    assert killed_after_it_agreed(directory, False) == "held"


def restarted_with_amnesia(directory):
    """The violation that the checker foretells: two are inside, and the records show it."""
    assert killed_after_it_agreed(directory, True) == "violated"


def again_and_again(directory):
    """A group that has ended in order begins anew, with the same files; a command's own status ends nothing."""
    for name in ("lamport", "suzuki-kasami", "raymond", "token-ring", "central"):
        group = Group(directory, name, 3)
        counting(group)
        for turn in (1, 2):
            for number in group.numbers:
                if number <= group.servers:
                    group.start(number, "serve")
                else:
                    group.start(number, "lock", "--", "./body")
            group.wait()
            assert counted(group) == 3 * turn, f"{name}: {counted(group)} after run {turn}"
        excluded(group, 6)
    group = Group(f"{directory}/status", "lamport", 3)
    counting(group)
    codes = {1: 255, 2: 0, 3: 137}
    started = {n: group.start(n, "lock", "--", "sh", "-c", f"./body; exit {code}") for n, code in codes.items()}
    assert {n: process.wait(TIMEOUT_S) for n, process in started.items()} == codes
    assert counted(group) == 3


def data_is_beside_the_list(directory):
    """Wherever a peer is started from, it finds what it has kept."""
    group = Group(directory, "lamport", 2)
    elsewhere = f"{group.directory}/elsewhere"
    os.makedirs(elsewhere)
    with subprocess.Popen([CONCLAVE, "peer", "--algorithm", "lamport", "--id", "1", "--peers", "../peers.conf", "serve"],
                          cwd=elsewhere) as peer:
        try:
            eventually(lambda: os.path.exists(f"{group.directory}/conclave-peer-1/durable"), "it has data")
        finally:
            peer.terminate()
    assert not os.listdir(elsewhere)


def programs(directory):
    """Programs of the library in C and in Python, and a command, are peers of one group."""
    built = os.path.dirname(CONCLAVE)
    os.environ["LIBCONCLAVE"] = f"{built}/libconclave.so"
    python = ["/usr/bin/python3", os.path.abspath("examples/peer.py")]
    for name in ("suzuki-kasami", "central"):
        group = Group(directory, name, 4)
        counting(group)
        for number in group.numbers:
            program = [f"{built}/examples/peer_lock"] if number % 2 else python
            times = "0" if number <= group.servers else "25"
            if number == group.numbers[-1]:
                group.start(number, "--times", times, "lock", "--", "./body")
            else:
                group.run(number, *program, name, "peers.conf", str(number), times, "counter")
        group.wait()
        assert counted(group) == 100, f"{name}: {counted(group)}"
    group = Group(directory, "chang-roberts", 3)
    for number in group.numbers:
        group.run(number, f"{built}/examples/peer_leader", group.algorithm, "peers.conf", str(number), stdin=subprocess.PIPE)
    until(group, lambda: agreed(group), "all follow one")
    for process in group.running.values():
        process.stdin.close()
    group.wait()


def elected_coordinator(directory):
    """A lock whose coordinator is elected: everybody enters, and each step replays.  Whether it excludes is a matter of time,
    which nobody promises here."""
    group = Group(directory, "central-elected", 3, ["--transmission", "500ms", "--processing", "500ms"])
    for number in group.numbers:
        group.start(number, "--times", "10", "lock", "--", "true")
    group.wait()
    assert judged(group)["entries"] == 30


def many(directory):
    """A group of more than a few; PROCESSES=100 by hand."""
    group = Group(directory, "ricart-agrawala", int(os.environ.get("PROCESSES", "16")))
    counting(group)
    for number in group.numbers:
        group.run(number, f"{os.path.dirname(CONCLAVE)}/examples/peer_lock", group.algorithm, "peers.conf", str(number),
                  "1", "counter")
    group.wait()
    assert counted(group) == len(group.numbers), counted(group)


def staying(directory):
    """A coordinator that stays lets the others end, and serves those that come later."""
    group = Group(directory, "central", 2)
    counting(group)
    group.start(1, "--stay", "serve")
    stays = group.running.pop(1)
    for turn in (1, 2):
        for number in (2, 3):
            group.start(number, "lock", "--", "./body")
        group.wait()
        assert counted(group) == 2 * turn
    stays.terminate()
    stays.wait(TIMEOUT_S)


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def killed_inside(directory):
    """The command of a peer that is killed ends with it, and whoever was waiting goes on when the peer is back."""
    group = Group(directory, "central", 2)
    group.start(1, "serve")
    holder = group.start(2, "lock", "--", "sh", "-c", "echo $$ >inside; exec sleep 1000")
    eventually(lambda: os.path.exists(f"{group.directory}/inside") and open(f"{group.directory}/inside").read().strip(),
               "the command runs")
    pid = int(open(f"{group.directory}/inside", encoding="utf-8").read())
    group.kill(2)
    assert holder.returncode is not None
    eventually(lambda: is_gone(pid), "the command is killed with its peer")
    group.start(3, "lock", "--", "touch", "entered")
    group.start(2, "lock", "--", "true")
    group.wait()
    assert os.path.exists(f"{group.directory}/entered")


def up(directory):
    """A whole group that is driven by lines, and judged afterwards."""
    here = f"{directory}/kept"
    group = Up(free_ports(4), "--algorithm", "central", "--processes", "3", "--data", here, command=("peer", "up"))
    group.sees("peer 1: serves", "peer 2: idle", "peer 3: idle", "peer 4: idle")
    group.type("acquire 2")
    group.sees("peer 2: inside, token 1")
    group.type("acquire 3")
    group.sees("peer 3: waits")
    group.type("release 2")
    group.sees("peer 2: idle", "peer 3: inside, token 2")
    group.type("kill 4")
    group.sees("peer 4: killed")
    group.type("start 4")
    group.sees("peer 4: idle")
    group.type("status")
    group.sees("peer +port +state", r"3 +\d+ +inside, token 2")
    for nonsense, says in (("transfer 1", "'transfer' is not .*"), ("acquire 5", "there is no peer 5: 1 to 4"),
                           ("release", "release: which peer."), ("kill 99999999999", "kill: which peer."),
                           ("cut 2 2", "cut: there is no network between peer 2 and itself")):
        group.type(nonsense)
        group.sees(says)
    group.type("release 3")
    group.sees("peer 3: idle")
    group.type("quit")
    assert group.process.wait(TIMEOUT_S) == 0
    group.sees("conclave: 4 peers have ended; .*")
    done = subprocess.run([CONCLAVE, "trace", "merge", "--json", *(f"{here}/{n}.record" for n in (1, 2, 3, 4))],
                          capture_output=True, text=True, check=True, timeout=TIMEOUT_S)
    report = json.loads(done.stdout)
    assert report["entries"] == 2 and report["restarts"] == 1 and report["verdicts"]["exclusion"] == "held", report


def up_ends_at_once(directory):
    """Peers that are told to end before they are there have not crashed."""
    done = subprocess.run([CONCLAVE, "peer", "up", "--algorithm", "lamport", "--processes", "3", "--port", str(free_ports(3))],
                          cwd=directory, input="quit", capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 0 and "crashed" not in done.stdout, done


def up_says_who_could_not_start(directory):
    """One of them has the data of somebody else."""
    here = f"{directory}/kept"
    os.makedirs(f"{here}/peer2")
    with open(f"{here}/peer2/durable", "w", encoding="utf-8") as file:
        file.write("nothing that a peer has written")
    group = Up(free_ports(3), "--algorithm", "lamport", "--processes", "3", "--data", here, command=("peer", "up"))
    group.sees("peer 1: idle", "peer 3: idle", "peer 2: failed, status 71")
    group.type("quit")
    assert group.process.wait(TIMEOUT_S) == 71
    group.sees("conclave: peer 2 could not be started; its log:", ".*damaged.*")


def up_elects(directory):
    """Who leads, and who when that one is gone.  What is not kept is removed."""
    os.environ["TMPDIR"] = directory
    group = Up(free_ports(3), "--algorithm", "bully-stable", "--processes", "3", "--", *SLOW["bully-stable"],
               command=("peer", "up"))
    live = {"1", "2", "3"}
    states = {}

    def leader():
        """Whom all of them follow."""
        for line in list(group.lines):
            number, state = re.fullmatch(r"peer (\d): (.*)", line).groups()
            states[number] = state
        now = {number: states.get(number) for number in live}
        leads = [number for number, state in now.items() if state == "leads"]
        alike = leads and all(state in ("leads", f"follows {leads[0]}") for state in now.values())
        return leads[0] if len(leads) == 1 and alike else None
    group.sees("peer 1: leaderless", "peer 2: leaderless", "peer 3: leaderless")
    group.type("campaign 1")
    seen = []
    eventually(lambda: seen.append(leader()) or seen[-1], "all follow one")
    first = seen[-1]
    live.remove(first)
    group.type(f"kill {first}")
    eventually(leader, "all follow another")
    assert len(os.listdir(directory)) == 1
    group.process.send_signal(signal.SIGTERM)
    assert group.process.wait(TIMEOUT_S) == 0
    assert not os.listdir(directory)


def up_cuts(directory):
    """Who is cut off from another gets no answer of it, also after a restart; what was sent arrives when that is mended."""
    here = f"{directory}/kept"
    group = Up(free_ports(3), "--algorithm", "ricart-agrawala", "--processes", "3", "--data", here, command=("peer", "up"))
    group.sees("peer 1: idle", "peer 2: idle", "peer 3: idle")
    group.type("acquire 1")
    group.sees("peer 1: inside")
    group.type("cut 2")
    group.sees("peer 1: inside; cut off from 2", "peer 2: idle; cut off from all", "peer 3: idle; cut off from 2")
    group.type("acquire 3")
    group.sees("peer 3: waits; cut off from 2")
    group.type("restart 2")
    group.sees("peer 2: idle; cut off from all")
    group.type("release 1")
    group.sees("peer 1: idle; cut off from 2")
    group.type("heal 2 1")
    group.sees("peer 1: idle", "peer 2: idle; cut off from 3")
    group.type("acquire 2")
    group.sees("peer 2: waits; cut off from 3")
    group.type("status")
    group.sees(r"1 +\d+ +idle", r"2 +\d+ +waits; cut off from 3", r"3 +\d+ +waits; cut off from 2")
    group.type("heal")
    group.sees("peer [23]: inside")
    group.type("quit")
    assert group.process.wait(TIMEOUT_S) == 0
    done = subprocess.run([CONCLAVE, "trace", "merge", "--json", *(f"{here}/{n}.record" for n in (1, 2, 3))],
                          capture_output=True, text=True, check=True, timeout=TIMEOUT_S)
    assert json.loads(done.stdout)["verdicts"]["exclusion"] == "held", done.stdout


def up_in_a_terminal(directory):
    """Keys, with numbers of two digits, and more peers than the terminal has lines for."""
    os.environ["TMPDIR"] = directory
    picture = Picture(15, "peer", "up", "--port", str(free_ports(11)), "--algorithm", "lamport", "--processes", "11", "--",
                      "--insecure", columns=80)
    picture.sees("  3 idle .* 11 idle ")
    picture.sees("h N heal  q quit")  # on a second line
    picture.type(b"a11")
    picture.sees("a: which peer. 1 to 11, then Enter: 11")
    picture.type(b"\n")
    picture.sees(" 11 inside ")
    picture.type(b"X 3 11\n")
    picture.sees("  3 idle; cut off from 11 .* 11 inside; cut off from 3 ")
    picture.type(b"a 2\n")
    picture.type(b"l11\n")
    picture.sees("  2 inside ")
    picture.type(b"h 3\n")
    picture.sees("  3 idle  .* 11 idle  ")
    picture.quit()


def strangers(directory):
    """Who does not know the key, is of another group, or is no peer, is refused, and the group goes on."""
    group = Group(directory, "lamport", 3)
    counting(group)
    other = Group(f"{directory}/other", "lamport", 3)
    for number in (1, 2):
        group.start(number, "--log-level", "info", "--times", "20", "lock", "--", "./body")
    eventually(lambda: os.path.exists(f"{group.directory}/peers.conf.key"), "a key is made")
    assert os.stat(f"{group.directory}/peers.conf.key").st_mode & 0o777 == 0o600
    # The third of another list, at the same addresses, with another key and then with the same.
    with open(f"{other.directory}/peers.conf", "w", encoding="utf-8") as file:
        file.writelines(f"{n} {own_host()}:{group.ports[n]} weight={n}\n" for n in group.numbers)
    other.start(3, "serve")
    eventually(lambda: "different keys; give both the same --key" in group.said(1, "err"), "a wrong key is logged")
    other.kill(3)
    with open(f"{group.directory}/peers.conf.key", "rb") as key, open(f"{other.directory}/right.key", "wb") as copy:
        copy.write(key.read())
    os.chmod(f"{other.directory}/right.key", 0o600)
    other.start(3, "serve", options=["--key", "right.key"])
    eventually(lambda: "different groups" in group.said(1, "err"), "another group is logged")
    other.kill(3)
    for port in (group.ports[1], group.ports[2]):  # no TLS at all
        with socket.create_connection((own_host(), port), timeout=TIMEOUT_S) as stranger:
            stranger.sendall(struct.pack("<QQQ", 1, 2, 3) * 1000)
    assert counted(group) == 0
    assert "server" not in group.said(1, "err") and "ensemble" not in group.said(1, "err"), group.said(1, "err")
    group.start(3, "lock", "--", "./body")
    group.wait()
    assert counted(group) == 41, counted(group)


def wrong_use(directory):
    """One line each."""
    group = Group(directory, "lamport", 3)

    def refused(*words, says, code=64):
        done = subprocess.run([CONCLAVE, "peer", *words], cwd=group.directory, capture_output=True, text=True,
                              check=False, timeout=TIMEOUT_S)
        assert done.returncode == code and len(done.stderr.splitlines()) == 1, f"{words}: {done}"
        assert says in done.stderr, f"{words}: {done.stderr}"

    good = ["--algorithm", "lamport", "--id", "1", "--peers", "peers.conf"]
    refused("serve", says="--algorithm")
    refused("nonsense", says="is not run, lock, elect, leader, state, up")
    refused("lock", says="after '--'")
    refused("leader", "--", "true", says="runs no command")
    refused("lock", "--socket", "x" * 200, "--", "true", says="too long", code=69)
    refused(*good, "--socket", "x" * 200, "run", says="at most 107 bytes", code=71)
    refused("--algorithm", "lambort", "lock", says="did you mean")
    refused(*good, "--data", "", "serve", says="data: an empty path")
    refused(*good, "--key", "a.key", "--insecure", "serve", says="either a key or certificates, or none")
    refused(*good, says="run, lock, elect and serve")
    refused("up", says="--algorithm", code=2)
    refused("up", "--algorithm", "quorum", "--processes", "98", says="at most 100", code=2)
    with socket.create_server(("127.0.0.1", free_ports(1))) as taken:
        empty = {**os.environ, "TMPDIR": f"{directory}/empty"}
        os.mkdir(empty["TMPDIR"])
        done = subprocess.run([CONCLAVE, "peer", "up", "--algorithm", "lamport", "--processes", "1", "--port",
                               str(taken.getsockname()[1])], env=empty, capture_output=True, text=True, check=False,
                              timeout=TIMEOUT_S)
        assert done.returncode == 3 and "is in use" in done.stderr and not os.listdir(empty["TMPDIR"]), done
    for option in ["--times", "2"], ["--grace", "1s"], ["--on-follower", "true"]:
        refused(*good, *option, "run", says=f"{option[0][2:]}: it is an option of")
    refused("--socket", "2.socket", "lock", "--", "true", says="'lock' comes before its options")
    refused(*good, "lock", says="after '--'")
    refused(*good, "elect", says="elects nobody")
    refused(*good, "lock", "--", "no-such-command", says="not found", code=127)
    refused(*good[:-1], "none.conf", "serve", says="No such file")
    refused("--algorithm", "lamport", "--id", "9", "--peers", "peers.conf", "serve", says="no peer 9")
    refused(*good, "--detector", "fixed:1s", "serve", says="does not use")
    refused("--algorithm", "central", "--id", "1", "--peers", "peers.conf", "lock", "--", "true", says="coordinator")
    with open(f"{group.directory}/far.conf", "w", encoding="utf-8") as file:
        file.write("1 127.0.0.1:1\n2 192.0.2.1:2\n")
    refused("--algorithm", "lamport", "--id", "1", "--peers", "far.conf", "serve", says="--key")


def tests_of(problem, test, without):
    """The test for each algorithm of the catalogue."""
    for algorithm in algorithms(problem):
        if algorithm not in without:
            one = functools.partial(test, algorithm=algorithm)
            one.__name__ = f"{test.__name__.removeprefix('one_')}_{algorithm.replace('-', '_')}"
            yield one


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    main([*tests_of("Locks", one_lock, STUCK_BY_DESIGN + IN_TIME_ONLY),
          *tests_of("Elections", one_election, NO_IDS),
          one_of_each, detectors_notice, elections_without_ids, restarted_with_what_it_kept, records_are_replayed,
          two_inside_are_seen, restarted_in_between, restarted_with_amnesia, again_and_again, data_is_beside_the_list,
          # Python has not loaded the sanitizer that the library needs.
          *([] if os.environ.get("SANITIZED") else [programs]), elected_coordinator, many, staying,
          killed_inside, up, up_ends_at_once, up_says_who_could_not_start, up_elects, up_cuts, up_in_a_terminal, strangers, wrong_use])
