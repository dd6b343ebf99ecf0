"""Networks that fail: every server and the clients in a network namespace of their own, and a router in between
that forgets packets, from one to another, as it is told.  Root only.  $NETWORK begins the namespaces' names;
TURNS says how many faults `anything` has, SEED which."""
import ctypes
import os
import random
import signal
import subprocess
import time

from ensemble import PATIENCE, Ensemble, eventually, main
from history import Load

import raw
from strangers import write_key

CLIENTS = 99  # the number of the clients' network, among those of the servers


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"
    return done.stdout


class Network:
    def __init__(self, servers):
        self.name = os.environ["NETWORK"]
        self.servers = list(range(1, servers + 1))
        self.rules = []
        self.remove()
        ip("netns", "add", f"{self.name}-router")
        for number in [*self.servers, CLIENTS]:
            self.add(number)
        ip("netns", "exec", f"{self.name}-router", "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
        self.enter()

    def space(self, number):
        return f"{self.name}-{number}"

    def add(self, number):
        space, router, side = self.space(number), f"{self.name}-router", f"to{number}"
        ip("netns", "add", space)
        ip("link", "add", side, "netns", router, "type", "veth", "peer", "name", "eth0", "netns", space)
        ip("-n", router, "addr", "add", f"10.77.{number}.254/24", "dev", side)
        ip("-n", router, "link", "set", side, "up")
        ip("-n", space, "addr", "add", f"10.77.{number}.1/24", "dev", "eth0")
        ip("-n", space, "link", "set", "eth0", "up")
        ip("-n", space, "link", "set", "lo", "up")
        ip("-n", space, "route", "add", "default", "via", f"10.77.{number}.254")

    def enter(self):
        """This process is among the clients from now on, and so are the threads that it starts."""
        with open(f"/run/netns/{self.space(CLIENTS)}") as file:
            libc = ctypes.CDLL(None, use_errno=True)
            assert libc.setns(file.fileno(), 0) == 0, os.strerror(ctypes.get_errno())

    def remove(self):
        for line in ip("netns", "list").splitlines():
            if line.split()[0].startswith(f"{self.name}-"):
                ip("netns", "del", line.split()[0])

    # ---- Faults ----
    def cut(self, sender, receiver, port=None):
        """What the one sends to the other, or to that port of it, does not arrive any more."""
        rule = ["from", f"10.77.{sender}.0/24", "to", f"10.77.{receiver}.0/24"]
        rule += ["ipproto", "tcp", "dport", str(port)] * (port is not None) + ["blackhole"]
        ip("-n", f"{self.name}-router", "rule", "add", *rule)
        self.rules.append(rule)

    def part(self, one, other):
        for first in one:
            for second in other:
                self.cut(first, second)
                self.cut(second, first)

    def heal(self):
        for rule in self.rules:
            ip("-n", f"{self.name}-router", "rule", "del", *rule)
        self.rules = []


class Site:
    """The network, the ensemble on it, and clients at work, who reach all servers unless they are cut off."""

    def __init__(self, directory, servers=3, options=(), **load):
        self.network = Network(servers)
        key = write_key(f"{directory}/key", "the secret of all of these servers\n")
        numbers = self.network.servers
        self.ensemble = Ensemble(
            directory, servers, options=["--peer-key", key, *options], hosts=[f"10.77.{n}.1" for n in numbers],
            prefixes=[["ip", "netns", "exec", self.network.space(n)] for n in numbers])
        self.members = self.ensemble.members
        self.ensemble.start()
        self.load = Load(self.ensemble, directory, timeout=4, **load)
        self.work_goes_on()

    def leader(self, among=None):
        return self.ensemble.leader(among)

    def others(self, *some):
        return [member for member in self.members if member not in some]

    def work_goes_on(self):
        before = self.load.progress()
        eventually(lambda: self.load.progress() > before + 40, "work goes on")

    def heal(self):
        self.network.heal()
        self.leader()
        self.work_goes_on()

    def finish(self):
        self.load.finish()
        self.ensemble.stop()
        self.network.remove()


def steps_down(member):
    """Without being told by anybody, for nobody can."""
    eventually(lambda: member.follows()[1] != member.number, f"server {member.number} leads no more", 5)


def numbers_of(members):
    return [member.number for member in members]


def cannot_write(client, path):
    """Asks that server to write, which cannot: no answer says that it did."""
    client.socket.settimeout(1.5)
    client.send(raw.SET, raw.set_record(path, b"by the few"))
    try:
        assert client.receive()[1] != 0, "a minority acknowledged a write"
    except raw.Lost:
        pass


def leader_cut_off(directory):
    """The few cannot write; the others elect a leader; in the end there is one history."""
    site = Site(directory)
    old = site.leader()
    client = raw.Client(old.address, timeout=20000)
    assert client.create("/few") == 0
    site.network.part([old.number], numbers_of(site.others(old)))
    cannot_write(client, "/few")
    new = site.leader(site.others(old))
    assert new is not old
    steps_down(old)
    writer = raw.Client(new.address, timeout=20000)
    assert writer.set("/few", b"by the many") == 0
    site.work_goes_on()
    site.heal()
    assert writer.set("/few", b"after") == 0
    contents = set()
    for member in site.members:
        reader = raw.Client(member.address, zxid=writer.zxid)
        contents.add(reader.get("/few"))
    assert len(contents) == 1 and contents.pop()[1] in (2, 3)  # with the write of the few, or without
    site.finish()


def one_way(directory, cut):
    """Whether it is not heard or does not hear, a leader must not lead on: nothing can be decided."""
    site = Site(directory)
    old = site.leader()
    for other in site.others(old):
        cut(site.network, old.number, other.number)
    site.leader(site.others(old))
    steps_down(old)
    site.work_goes_on()
    site.heal()
    site.finish()


def leader_is_deaf(directory):
    one_way(directory, lambda network, leader, other: network.cut(other, leader))


def leader_is_mute(directory):
    one_way(directory, lambda network, leader, other: network.cut(leader, other))


def follower_cut_off(directory):
    """In whole, then one way, then the other: the leader leads on, and does so when it comes back."""
    site = Site(directory)
    leader = site.leader()
    follower, other = site.others(leader)
    view = leader.follows()
    site.network.part([follower.number], [leader.number, other.number])
    time.sleep(2)
    site.work_goes_on()
    site.heal()
    for number in (leader.number, other.number):
        site.network.cut(number, follower.number)
    time.sleep(1.5)
    site.work_goes_on()
    site.heal()
    for number in (leader.number, other.number):
        site.network.cut(follower.number, number)
    time.sleep(1.5)
    site.work_goes_on()
    site.heal()
    site.network.part([follower.number], [other.number])  # they have nothing to say to each other
    time.sleep(1)
    site.work_goes_on()
    site.heal()
    assert leader.follows() == view, "a follower that was away made them elect again"
    site.finish()


def leader_out_of_reach(directory):
    """A server that hears the leader, but has no way to it, can do nothing for its clients: it sends them away
    instead of letting them wait."""
    site = Site(directory)
    leader = site.leader()
    follower = site.others(leader)[0]
    view = leader.follows()
    client = raw.Client(follower.address, timeout=30000)
    site.network.cut(follower.number, leader.number, port=leader.peer.rsplit(":", 1)[1])
    client.socket.settimeout(PATIENCE)
    assert client.socket.recv(1) == b"", "the client is not sent away"
    late = raw.dial(follower.address)
    late.sendall(raw.buffer(raw.connect_request()))
    assert late.recv(1) == b"", "a client that comes is not sent away"
    assert follower.follows() == view and leader.follows() == view, "the leader is not heard"
    site.heal()
    site.finish()


def five_servers(directory):
    """The leader and one more on the smaller side; then the next leader in the middle, the only one that sees
    both sides."""
    site = Site(directory, servers=5)
    leader = site.leader()
    few = [leader, site.others(leader)[0]]
    site.network.part(numbers_of(few), numbers_of(site.others(*few)))
    middle = site.leader(site.others(*few))
    site.work_goes_on()
    site.heal()
    left, right = site.others(middle)[:2], site.others(middle)[2:]
    site.network.part(numbers_of(left), numbers_of(right))
    time.sleep(1.5)
    site.work_goes_on()
    site.heal()
    site.finish()


def no_majority(directory):
    """Everybody alone: nobody writes, sessions wait; then all is as it was."""
    site = Site(directory)
    clients = [raw.Client(member.address, timeout=20000) for member in site.members]
    for client, member in zip(clients, site.members):
        assert client.create(f"/alone{member.number}") == 0
    for member in site.members:
        site.network.part([member.number], numbers_of(m for m in site.members if m.number > member.number))
    time.sleep(1)
    for client, member in zip(clients, site.members):
        cannot_write(client, f"/alone{member.number}")
    site.heal()
    site.finish()


def clients_cut_off(directory):
    """Clients that cannot reach their server any more take their session to another."""
    site = Site(directory)
    for member in site.members:
        site.network.part([CLIENTS], [member.number])
        time.sleep(1)
        site.work_goes_on()
        site.network.heal()
    site.heal()
    site.finish()


def linearizable_reads(directory):
    """With --reads linearizable plain reads show all that was acknowledged, also those of a leader that does not
    know yet that it leads no more."""
    site = Site(directory, options=["--reads", "linearizable"], linearizable=True)
    for _ in range(2):
        old = site.leader()
        site.network.part([old.number], numbers_of(site.others(old)))
        site.leader(site.others(old))
        site.work_goes_on()
        site.heal()
        old = site.leader()
        old.send(signal.SIGSTOP)
        site.leader(site.others(old))
        site.work_goes_on()
        old.send(signal.SIGCONT)
        site.heal()
    site.finish()


# ---- Anything ----
def stop_one(site, chance):
    member = chance.choice(site.members)
    member.send(signal.SIGSTOP)
    time.sleep(chance.uniform(0.2, 2))
    member.send(signal.SIGCONT)


def kill_one(site, chance):
    member = chance.choice(site.members)
    member.kill()
    time.sleep(chance.uniform(0, 1))
    member.start()


def kill_leader(site, _):
    site.network.heal()  # or the others could not elect one
    leader = site.leader()
    leader.kill()
    site.leader()
    site.work_goes_on()
    leader.start()


def kill_all(site, chance):
    for member in site.members:
        member.kill()
    for member in chance.sample(site.members, len(site.members)):
        member.spawn()
    for member in site.members:
        assert member.process.stdout.readline(), member.said()


def part_somehow(site, chance):
    """Each direction of each link is lost with a chance of a third."""
    for sender in site.members:
        for receiver in site.members:
            if sender is not receiver and chance.random() < 0.33:
                site.network.cut(sender.number, receiver.number)
    time.sleep(chance.uniform(0.5, 2))


def part_clients(site, chance):
    site.network.part([CLIENTS], [chance.choice(site.members).number])
    time.sleep(chance.uniform(0.2, 1))


def anything(directory):
    seed = int(os.environ.get("SEED", time.time_ns() % 1000000))
    turns = int(os.environ.get("TURNS", "8"))
    print(f"SEED={seed} TURNS={turns}")
    chance = random.Random(seed)
    site = Site(directory, options=["--set", "snapCount=100"])
    for _ in range(turns):
        fault = chance.choice([stop_one, kill_one, kill_leader, kill_all, part_somehow, part_clients])
        print(fault.__name__)
        fault(site, chance)
        if chance.random() < 0.7:  # otherwise the next comes on top of it
            site.heal()
    site.heal()
    site.finish()


if __name__ == "__main__":
    main([leader_cut_off, leader_is_deaf, leader_is_mute, follower_cut_off, leader_out_of_reach, five_servers,
          no_majority, clients_cut_off, linearizable_reads, anything])
