"""Network partitions: every server and the clients are in network namespaces of their own, and a router between
them drops packets.  Needs root.  $NETWORK is the prefix of the namespaces' names; FAULTS is the number of faults
of `random_faults`, SEED chooses them."""
import ctypes
import json
import os
import random
import re
import select
import signal
import subprocess
import threading
import time

from damage import files, flip
from ensemble import (TIMEOUT_S, Ensemble, Traveller, connect, eventually, longer_and_longer, main, trim, without_election,
                      write_key)
from history import Load
from patience import Late

import raw

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
        """Moves this process, and the threads that it starts, into the namespace of the clients."""
        with open(f"/run/netns/{self.space(CLIENTS)}") as file:
            libc = ctypes.CDLL(None, use_errno=True)
            assert libc.setns(file.fileno(), 0) == 0, os.strerror(ctypes.get_errno())

    def remove(self):
        for line in ip("netns", "list").splitlines():
            if line.split()[0].startswith(f"{self.name}-"):
                ip("netns", "del", line.split()[0])

    def slow_down(self, rate, servers=None):
        """Limits what each of these servers sends and gets; clients included, as on the line of a small office."""
        for number in servers or self.servers:
            for space, side in ((self.space(number), "eth0"), (f"{self.name}-router", f"to{number}")):
                ip("netns", "exec", space, "tc", "qdisc", "add", "dev", side, "root", "tbf", "rate", rate,
                   "burst", "32kb", "latency", "400ms")

    # ---- Faults ----
    def cut(self, sender, receiver, port=None):
        """Drops what the sender sends to the receiver, or to that port of it."""
        rule = ["from", f"10.77.{sender}.0/24", "to", f"10.77.{receiver}.0/24"]
        rule += ["ipproto", "tcp", "dport", str(port)] * (port is not None) + ["blackhole"]
        ip("-n", f"{self.name}-router", "rule", "add", *rule)
        self.rules.append(rule)

    def partition(self, one, other):
        for first in one:
            for second in other:
                self.cut(first, second)
                self.cut(second, first)

    def heal(self):
        for rule in self.rules:
            ip("-n", f"{self.name}-router", "rule", "del", *rule)
        self.rules = []


class Site:
    """The network, the ensemble on it, and clients at work, which reach all servers unless they are cut off."""

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
    """Waits until it notices by itself: nobody can tell it."""
    eventually(lambda: member.follows()[1] != member.number, f"server {member.number} leads no more")


def numbers_of(members):
    return [member.number for member in members]


def cannot_write(client, path):
    """Checks that a server without a quorum does not acknowledge a write."""
    client.socket.settimeout(1.5)
    client.send(raw.SET, raw.set_record(path, b"by the minority"))
    try:
        assert client.receive()[1] != 0, "a minority acknowledged a write"
    except raw.Lost:
        pass


def leader_cut_off(directory):
    """The minority cannot write; the majority elects a leader; in the end there is one history."""
    site = Site(directory)
    old = site.leader()
    client = connect(old.address)
    assert client.create("/minority") == 0
    site.network.partition([old.number], numbers_of(site.others(old)))
    cannot_write(client, "/minority")
    new = site.leader(site.others(old))
    assert new is not old
    steps_down(old)
    writer = connect(new.address)
    assert writer.set("/minority", b"by the majority") == 0
    site.work_goes_on()
    site.heal()
    assert writer.set("/minority", b"after") == 0
    readers = [connect(member.address, zxid=writer.zxid) for member in site.members]

    def one_content():
        contents = {reader.get("/minority") for reader in readers}
        for _, version in contents:
            assert version in (2, 3), contents  # without the write of the minority, or with it
        return len(contents) == 1

    # Nobody was told how the minority's write ended, so it may still be committed while the servers are read.
    eventually(one_content, "all servers have the same content")
    site.finish()


def one_way(directory, cut):
    """A leader that is not heard, or does not hear, steps down: it can commit nothing."""
    site = Site(directory)
    old = site.leader()
    for other in site.others(old):
        cut(site.network, old.number, other.number)
    site.leader(site.others(old))
    steps_down(old)
    site.work_goes_on()
    site.heal()
    site.finish()


def leader_receives_nothing(directory):
    one_way(directory, lambda network, leader, other: network.cut(other, leader))


def leader_sends_nothing(directory):
    one_way(directory, lambda network, leader, other: network.cut(leader, other))


def follower_cut_off(directory):
    """In both directions, then in one, then in the other: the leader stays, also when the follower is back."""
    site = Site(directory)

    def both_ways(follower, leader, other):
        site.network.partition([follower], [leader, other])

    def one_way_in(follower, leader, other):
        for number in (leader, other):
            site.network.cut(number, follower)

    def one_way_out(follower, leader, other):
        for number in (leader, other):
            site.network.cut(follower, number)

    def from_the_other(follower, leader, other):  # two followers need no link
        site.network.partition([follower], [other])

    def attempt(cut, seconds):
        leader = site.leader()
        follower, other = site.others(leader)
        cut(follower.number, leader.number, other.number)
        time.sleep(seconds)
        site.work_goes_on()
        site.heal()
    for cut, seconds in ((both_ways, 2), (one_way_in, 1.5), (one_way_out, 1.5), (from_the_other, 1)):
        without_election(site.ensemble, lambda cut=cut, seconds=seconds: attempt(cut, seconds),
                         f"a follower that is cut off causes an election: {cut.__name__}")
    site.finish()


def leader_out_of_reach(directory):
    """A server that hears the leader, but cannot reach it, can do nothing for its clients: it disconnects them
    instead of letting them wait."""
    site = Site(directory)

    def attempt():
        leader = site.leader()
        follower = site.others(leader)[0]
        view = leader.follows()

        def disconnected(connection, what):  # unless there was an election, and it follows another one
            eventually(lambda: select.select([connection], [], [], 0)[0] or leader.follows() != view, what)
            assert leader.follows() != view or connection.recv(1) == b"", what
        client = connect(follower.address)
        site.network.cut(follower.number, leader.number, port=leader.peer.rsplit(":", 1)[1])
        disconnected(client.socket, "the client is disconnected")
        late = raw.dial(follower.address)
        late.sendall(raw.buffer(raw.connect_request()))
        disconnected(late, "a new client is disconnected")
        site.network.heal()
    without_election(site.ensemble, attempt, "the leader is not heard")
    site.heal()
    site.finish()


def session_of_a_server_that_is_cut_off(directory):
    """A server that does not reach its leader lets its clients go, before sessions expire that they believe to keep
    alive: in both directions, then only what it sends is lost."""
    site = Site(directory)

    def both_ways(follower, others):
        site.network.partition([follower], others)

    def out(follower, others):
        for other in others:
            site.network.cut(follower, other)

    def kept(cut, timeout):
        leader = site.leader()
        follower = site.others(leader)[0]
        traveller, path = Traveller([follower, *site.others(follower)], timeout), f"/kept-{cut.__name__}-{timeout}"
        try:
            assert traveller.client.create(path, flags=raw.EPHEMERAL) == 0
        except raw.Lost:
            return False  # on a busy machine its server may miss the leader that it reaches
        cut(follower.number, numbers_of(site.others(follower)))
        begun = time.monotonic()
        try:
            while time.monotonic() - begun < 3 * timeout / 1000:
                traveller.rest_and_ping()
            assert traveller.client.exists(path)
            assert traveller.client.close_session() == 0
            return True
        except (raw.Refused, raw.Lost):
            assert traveller.was_late(), "a session expired although its pings were answered"
            return False
        finally:
            site.heal()
    for cut in (both_ways, out):
        longer_and_longer(lambda timeout, cut=cut: kept(cut, 2 * timeout))
    site.finish()


def server_that_is_back(directory):
    """A server that reaches its leader again keeps who comes to it then, however long it was cut off."""
    site = Site(directory)

    def kept(timeout):
        follower = site.others(site.leader())[0]
        site.network.partition([follower.number], numbers_of(site.others(follower)))
        time.sleep(timeout / 1000 + 1)  # longer than a server bears it with clients of that timeout
        site.network.heal()
        client = connect(follower.address, timeout)
        try:
            for _ in range(50):
                client.call(raw.PING)
                time.sleep(0.01)
            return True
        except raw.Lost:
            return False  # on a busy machine it may miss the leader once more
        finally:
            site.heal()
    longer_and_longer(kept)
    site.finish()


def five_servers(directory):
    """The leader and one more are a minority; then the next leader is the only one that reaches both sides."""
    site = Site(directory, servers=5)
    leader = site.leader()
    minority = [leader, site.others(leader)[0]]
    site.network.partition(numbers_of(minority), numbers_of(site.others(*minority)))
    middle = site.leader(site.others(*minority))
    site.work_goes_on()
    site.heal()
    left, right = site.others(middle)[:2], site.others(middle)[2:]
    site.network.partition(numbers_of(left), numbers_of(right))
    time.sleep(1.5)
    site.work_goes_on()
    site.heal()
    site.finish()


def no_majority(directory):
    """Each server is alone: none can write, and sessions survive."""
    site = Site(directory)
    clients = [connect(member.address) for member in site.members]
    for client, member in zip(clients, site.members):
        assert client.create(f"/alone{member.number}") == 0
    for member in site.members:
        site.network.partition([member.number], numbers_of(m for m in site.members if m.number > member.number))
    time.sleep(1)
    for client, member in zip(clients, site.members):
        cannot_write(client, f"/alone{member.number}")
    site.heal()
    site.finish()


def clients_cut_off(directory):
    """Clients that cannot reach their server any more resume their session at another."""
    site = Site(directory)
    for member in site.members:
        site.network.partition([CLIENTS], [member.number])
        time.sleep(1)
        site.work_goes_on()
        site.network.heal()
    site.heal()
    site.finish()


def linearizable_reads(directory):
    """With --reads linearizable plain reads show all that was acknowledged, also those at a former leader that does
    not know of the new one."""
    site = Site(directory, options=["--reads", "linearizable"], linearizable=True)
    for _ in range(2):
        old = site.leader()
        site.network.partition([old.number], numbers_of(site.others(old)))
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


# ---- Links that carry little, or nothing for a while ----
def bare_ensemble(directory, *options):
    """Without clients at work."""
    network = Network(3)
    key = write_key(f"{directory}/key", "the secret of all of these servers\n")
    ensemble = Ensemble(
        directory, 3, options=["--peer-key", key, *options], hosts=[f"10.77.{n}.1" for n in network.servers],
        prefixes=[["ip", "netns", "exec", network.space(n)] for n in network.servers])
    return network, ensemble.start()


def write_large(member, count, failures):
    """Large values, each of which takes longer on its way than an election timeout.  A machine that is busy may lose
    a leader now and then, and with it this client."""
    done, lost = 0, []
    while done < count:
        try:
            client = raw.Client(member.address, timeout=30000)
            client.socket.settimeout(TIMEOUT_S)
            client.create(f"/large{member.number}")
            while done < count:
                assert client.set(f"/large{member.number}", bytes([done]) * 900000) == 0
                done += 1
        except (raw.Lost, raw.Refused, AssertionError) as problem:
            lost.append(f"client of server {member.number}: {problem!r}")
            if len(lost) > 4:
                failures += lost
                return
            time.sleep(0.5)


def slow_links(directory):
    """At 10 Mbit/s a large value is on its way for longer than an election timeout, and is no silence: all are
    written.  (When large frames kept heartbeats waiting, hardly any was, and the term grew every second.)"""
    network, ensemble = bare_ensemble(directory)
    network.slow_down("10mbit")
    failures = []
    threads = [threading.Thread(target=write_large, args=(member, 2, failures)) for member in ensemble.members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    ensemble.stop()
    network.remove()


def silent_links(directory):
    """A link on which nothing was acknowledged for an election timeout is dialed anew beside the old one, which TCP
    would have kept and tried ever more rarely."""
    network, ensemble = bare_ensemble(directory, "--set", "log.level=debug")
    leader = ensemble.leader()
    network.partition([leader.number], [m.number for m in ensemble.members if m is not leader])
    beside = "another one is dialed beside it"
    for member in ensemble.members:
        eventually(lambda m=member: beside in m.log(), f"server {member.number} dials anew")
    network.heal()
    client = connect(ensemble.leader().address)
    assert client.create("/after") == 0
    ensemble.stop()
    network.remove()


def received(network, member):
    """Bytes, by the network."""
    (link,) = json.loads(ip("-n", network.space(member.number), "-s", "-j", "link", "show", "eth0"))
    return link["stats64"]["rx"]["bytes"]


def interrupted_transfer(directory):
    """A snapshot is on its way to a member when its links are cut, and again when it is killed: what has arrived is not
    sent again, although there is a newer one meanwhile."""
    VALUES = 24
    network, ensemble = bare_ensemble(directory, "--set", "snapCount=10", "--set", "preAllocSize=1024",
                                      "--set", "autopurge.snapRetainCount=1")
    leader, (behind, other) = ensemble.roles()
    view = leader.follows()
    behind.kill()
    client = connect(leader.address)

    def files_of(member, kind):
        return {name for name in os.listdir(member.directory) if name.startswith(kind)}

    def write():
        for number in range(VALUES):
            assert client.set(f"/n-{number}", os.urandom(900000)) == 0
    for number in range(VALUES):
        assert client.create(f"/n-{number}") == 0
    write()
    trim([leader, other], write, files_of(leader, "log."))
    network.slow_down("20mbit", [behind.number])
    size, before = VALUES * 900000, received(network, behind)

    def arrives(thirds):
        eventually(lambda: received(network, behind) - before > thirds * size / 3, f"{thirds} thirds have arrived")
    behind.start()
    arrives(1)
    network.partition([behind.number], [leader.number, other.number])
    time.sleep(3)
    network.heal()
    arrives(2)
    behind.kill()
    killed = time.monotonic()
    (incoming,) = files_of(behind, "incoming.")
    newest = max(files_of(leader, "snapshot."))
    eventually(lambda: write() or max(files_of(leader, "snapshot.")) > newest, "a newer snapshot")
    behind.start()
    found = eventually(lambda: re.search(r"a snapshot of the leader was installed snapshot_index=(\d+)", behind.log()),
                       "it is installed")
    if leader.follows() != view or time.monotonic() - killed > 50:
        raise Late("another leader begins anew, and so does one to which the member was lost for a minute")
    assert int(found[1]) == int(incoming.split(".")[1], 16), f"{incoming} {found[0]}"
    assert received(network, behind) - before < 1.5 * size, f"{received(network, behind) - before} for {size}"
    ensemble.stop()
    network.remove()


def mended_over_a_slow_line(directory):
    """What a damaged member asks the others for is on its way for longer than an answer is awaited of which nothing
    has come.  (When such answers counted as lost, it asked for ever.)"""
    network, ensemble = bare_ensemble(directory, "--set", "snapCount=4", "--set", "preAllocSize=512")
    leader, (damaged, other) = ensemble.roles()
    client = connect(leader.address)
    values = {f"/n-{number}": os.urandom(300000) for number in range(3)}

    def write():
        for path, value in values.items():
            assert client.set(path, value) == 0
    for path in values:
        assert client.create(path) == 0
    trim([damaged], write)
    damaged.kill()
    for snapshot in files(damaged, "snapshot"):
        flip(snapshot, os.path.getsize(snapshot) // 2)
    trim([leader, other], write, [os.path.basename(log) for log in files(damaged, "log")])
    network.slow_down("2mbit", [damaged.number])
    damaged.spawn()
    eventually(lambda: "the damaged files are mended" in damaged.log(), "the damaged member is mended")
    for path, value in values.items():
        assert connect(damaged.address).get(path)[0] == value
    ensemble.stop()
    network.remove()


# ---- Random faults ----
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
        assert member.process.stdout.readline(), member.log()


def cut_some(site, chance):
    """Cuts each direction of each link with a probability of a third."""
    for sender in site.members:
        for receiver in site.members:
            if sender is not receiver and chance.random() < 0.33:
                site.network.cut(sender.number, receiver.number)
    time.sleep(chance.uniform(0.5, 2))


def cut_clients(site, chance):
    site.network.partition([CLIENTS], [chance.choice(site.members).number])
    time.sleep(chance.uniform(0.2, 1))


def random_faults(directory):
    seed = int(os.environ.get("SEED", time.time_ns() % 1000000))
    faults = int(os.environ.get("FAULTS", "8"))
    print(f"SEED={seed} FAULTS={faults}")
    chance = random.Random(seed)
    site = Site(directory, options=["--set", "snapCount=100"])
    for _ in range(faults):
        fault = chance.choice([stop_one, kill_one, kill_leader, kill_all, cut_some, cut_clients])
        print(fault.__name__)
        fault(site, chance)
        if chance.random() < 0.7:  # otherwise the next comes on top of it
            site.heal()
    site.heal()
    site.finish()


if __name__ == "__main__":
    main([leader_cut_off, leader_receives_nothing, leader_sends_nothing, follower_cut_off, leader_out_of_reach,
          session_of_a_server_that_is_cut_off, server_that_is_back, five_servers, no_majority, clients_cut_off,
          linearizable_reads, slow_links, silent_links, interrupted_transfer, mended_over_a_slow_line, random_faults])
