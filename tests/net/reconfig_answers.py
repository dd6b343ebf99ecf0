"""The same reconfig requests to three servers of ZooKeeper and to three of Conclave: error codes, results and the
configuration afterwards are compared.

    reconfig_answers.py DIRECTORY       with $CONCLAVE as the server; exit status 0 when both answer the same

The two ensembles run one after the other, at the same addresses and with the same files.  ZooKeeper does not always
come up, so it may be asked everything again, from the start.  Conclave has one try, and must say all of it.
"""
import os
import re
import struct
import subprocess
import sys
import time
import traceback

from ensemble import TIMEOUT_S, eventually, own_host, write_key
from patience import HANG_S, Late, judged

import raw

RECONFIG, AUTH = 16, 100
SUPER = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="  # the password is "test"
CONFIG = "/zookeeper/config"
JARS = "/usr/share/java"
JAVA = ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xms32m", "-Xmx128m",
        "-Dzookeeper.jmx.log4j.disable=true", f"-Dzookeeper.DigestAuthenticationProvider.superDigest={SUPER}"]


def text(string):
    return struct.pack(">i", -1) if string is None else raw.text(string)


class Servers:
    """Three servers, of either kind, as zoo.cfg describes them."""

    def __init__(self, kind, directory, host):
        self.kind, self.directory, self.host = kind, f"{directory}/{kind}", host
        self.processes, self.started = {}, {}
        os.makedirs(self.directory)
        self.key = write_key(f"{self.directory}/key", "the secret of all servers here\n")
        for number in (1, 2, 3):
            self.start(number)

    def line(self, number, role="participant"):
        first = 26000 + 10 * number
        return f"server.{number}={self.host}:{first}:{first + 1}:{role};{self.host}:{first + 2}"

    def address(self, number):
        return f"{self.host}:{26000 + 10 * number + 2}"

    def start(self, number, alone=False):
        self.is_alone = alone
        home = f"{self.directory}/{'alone' if alone else number}"
        os.makedirs(home, exist_ok=True)
        with open(f"{home}/myid", "w") as file:
            file.write(f"{number}\n")
        with open(f"{home}/zoo.cfg", "w") as file:
            file.write(f"dataDir={home}\ntickTime=500\ninitLimit=20\nsyncLimit=10\nmaxClientCnxns=0\n"
                       "maxSessionTimeout=600000\nreconfigEnabled=true\nadmin.enableServer=false\npreAllocSize=64\n")
            if alone:
                file.write(f"clientPort={self.address(number).rsplit(':', 1)[1]}\nclientPortAddress={self.host}\n")
            else:
                file.write("".join(self.line(n) + "\n" for n in (1, 2, 3)))
        command = ["setpriv", "--pdeathsig", "KILL"]
        if self.kind == "zookeeper":
            command += [*JAVA, "-cp", f"{JARS}/slf4j-nop.jar:{JARS}/zookeeper.jar",
                        "org.apache.zookeeper.server.quorum.QuorumPeerMain", f"{home}/zoo.cfg"]
        else:
            command += [os.environ["CONCLAVE"], "serve", "--config", f"{home}/zoo.cfg", "--http", "off",
                        "--set", f"DigestAuthenticationProvider.superDigest={SUPER}"]
            if not alone:
                command += ["--peer-key", self.key]
        self.started[number] = time.monotonic()
        with open(f"{home}/log", "w") as log:
            self.processes[number] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def stop(self):
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait(TIMEOUT_S)
        self.processes = {}

    def connect(self, number, superuser=True):
        def attempt():
            try:
                return raw.Client(self.address(number), opening_s=TIMEOUT_S / 12)
            except (raw.Lost, raw.Refused):
                # ZooKeeper does not always come up at an address that was just in use: it ends, or takes
                # connections and answers nobody.
                if self.kind == "zookeeper" and (self.processes[number].poll() is not None
                                                 or time.monotonic() - self.started[number] > TIMEOUT_S / 6):
                    self.processes[number].kill()
                    self.processes[number].wait(TIMEOUT_S)
                    self.start(number, self.is_alone)
                time.sleep(0.05)
                return None
        client = eventually(attempt, f"{self.kind} {number} takes a client")
        if self.kind == "zookeeper":
            client.socket.settimeout(TIMEOUT_S / 4)
        if superuser:
            client.send_frame(struct.pack(">iiii", -4, AUTH, 0, 6) + b"digest" + raw.buffer(b"super:test"))
            client.receive()
        return client

    def role(self, number):
        with raw.dial(self.address(number)) as link:
            link.sendall(b"srvr")
            answer = b""
            while more := link.recv(4096):
                answer += more
        found = re.search(rb"Mode: (\w+)", answer)
        return found[1].decode() if found else ""

    def describe(self):
        """What one has to know of servers that do not answer."""
        for number in sorted(self.processes):
            try:
                yield f"{self.kind} {number} is '{self.role(number)}'"
            except OSError as error:
                yield f"{self.kind} {number}: {error}"
            with open(f"{self.directory}/{'alone' if self.is_alone else number}/log") as log:
                yield from log.readlines()[-20:]


def lines_of(data):
    """The servers that a configuration names, and its version."""
    lines = data.decode().splitlines()
    version = [line[8:] for line in lines if line.startswith("version=")]
    return sorted(line for line in lines if line.startswith("server.")), int(version[0], 16) if version else None


def config(client):
    return lines_of(client.get(CONFIG)[0])


def reconfig(client, joining=None, leaving=None, members=None, version=-1):
    """The error, and the servers of the answer."""
    try:
        error, body = client.call(RECONFIG, text(joining) + text(leaving) + text(members) + struct.pack(">q", version))
    except raw.Lost as lost:
        if isinstance(lost.__cause__, TimeoutError):
            raise  # it is late, not refused
        return f"lost: {lost}", []
    return error, lines_of(raw.read_buffer(body)[0])[0] if not error else []


class Comparison:
    """What one ensemble says to everything that it is asked."""

    def __init__(self, servers):
        self.servers, self.said, self.names, self.asked = servers, [], {}, "nothing"

    def note(self, what, *answer):
        self.said.append((what, *answer))

    def named(self, lines):
        """Who leads is chance."""
        return sorted(self.names.get(line, line) for line in lines)

    def ask(self, what, client, **request):
        self.asked = what
        error, servers = reconfig(client, **request)
        self.note(what, error, self.named(servers), self.named(config(self.watcher)[0]) if error == 0 else [])

    def run(self):
        s = self.servers
        self.watcher = s.connect(1, superuser=False)
        eventually(lambda: sorted(s.role(n) for n in (1, 2, 3)) == ["follower", "follower", "leader"], "three")
        eventually(lambda: self.watcher.get(CONFIG)[0], "a configuration")
        servers, version = config(self.watcher)
        # How many elections it took is chance: the version's epoch is not compared.
        self.note("the first configuration", servers, version >> 32 > 0, version & 0xffffffff)
        leader = next(n for n in (1, 2, 3) if s.role(n) == "leader")
        follower, other = (n for n in (1, 2, 3) if n != leader)
        self.names = {s.line(leader): "the leader", s.line(follower): "the follower", s.line(other): "the other"}
        self.watcher = s.connect(leader, superuser=False)
        anyone, root = s.connect(leader, superuser=False), s.connect(leader)
        self.at_once(root, s.connect(leader))
        time.sleep(1.5)  # before that, a leader of Conclave does not know who lives
        self.arguments(anyone, root, leader)
        self.spellings(root)
        self.absent(anyone, root, leader, follower)
        self.removed(leader, follower, other)
        s.stop()
        self.alone()

    def at_once(self, *clients):
        """By a leader that was just elected, one after the other without a wait: no change is begun, to be given up."""
        absent = ",".join(self.servers.line(n) for n in (4, 5, 6))
        for client in clients:
            client.send(RECONFIG, text(absent) + text(None) + text(None) + struct.pack(">q", -1))
        for client in clients:
            self.note("three that are absent, right after an election", client.receive()[1])

    def arguments(self, anyone, root, leader):
        line, host = self.servers.line, self.servers.host
        for who, client in (("anyone", anyone), ("the super user", root)):
            for what, request in {
                "nothing is asked for": {},
                "empty texts": {"joining": "", "leaving": ""},
                "an empty list": {"members": ""},
                "another version": {"leaving": "2", "version": 77},
                "another version and nonsense": {"joining": "nonsense", "version": 77},
                "no server string": {"joining": "nonsense"},
                "a server without ports": {"joining": f"server.4={host}"},
                "a server with one port": {"joining": f"server.4={host}:26040"},
                "a server without an address for clients": {"joining": f"server.4={host}:26040:26041"},
                "a server without a number": {"joining": f"server.x={host}:26040:26041;26042"},
                "a strange role": {"joining": f"server.4={host}:26040:26041:king;26042"},
                "another key": {"joining": "dataDir=/tmp"},
                "a list with nonsense": {"members": "nonsense"},
                "a list of one": {"members": line(leader)},
                "nobody that is known": {"leaving": "77"},
                "no number leaves": {"leaving": "x"},
                "a server string leaves": {"leaving": line(2)},
                "all leave": {"leaving": "1,2,3"},
                "two leave": {"leaving": ",".join(str(n) for n in (1, 2, 3) if n != leader)},
                "another's address": {"joining": line(1).replace("server.1", "server.4")},
                "a number below all leaves": {"leaving": "-5"},
                "a number above all leaves": {"leaving": "300, 1000000000000"},
                "one leaves and joins": {"joining": line(2), "leaving": "2"},
                "nonsense leaves and joins": {"joining": "nonsense", "leaving": "x"},
                "a list, and one leaves": {"members": ",".join(line(n) for n in (1, 2, 3)), "leaving": "2"},
                "a list without voters": {"members": ",".join(line(n, "observer") for n in (1, 2, 3))},
                "two leave, and it stays": {"leaving": ",".join(str(n) for n in (1, 2, 3) if n != leader)},
                "all leave, and it stays": {"leaving": "1,2,3"},
                "the rest": {"members": ",".join(line(n) for n in (1, 2, 3))},
                "three that are absent": {"joining": ",".join(line(n) for n in (4, 5, 6))},
            }.items():
                self.ask(f"{what}, by {who}", client, **request)

    def spellings(self, root):
        """How a request may be written: blanks, signs, empty parts, names before the last dot.

        Not asked, for on purpose Conclave takes less: addresses that nobody can use, with blanks in them, a port of 0
        or no host; and numbers of servers below 0 and above 254.  It takes more where one port is for everything, and
        where a weight joins."""
        line, host = self.servers.line, self.servers.host
        all_three = [line(n) for n in (1, 2, 3)]
        self.ask("an observer to play with", root, joining=line(4, "observer"))
        key, value = line(4, "observer").split("=")
        bare = value.replace(":observer", "")
        for joining in (f"  {key}={value}\n", f"{key} = {value}", f"{key}={value} , ", f",,{key}={value},", f"{key}=={value}",
                        f"={key}={value}", f"{key}={value}=", f"{key}={value}=x", f"4={value}", f"a.b.4={value}",
                        f"server4={value}", f"server.+4={value}", f"server.04={value}", f"server.4x={value}",
                        f"server. 4={value}", f"server.={value}", f"server.99999999999999999999={value}",
                        f"{line(4, 'observer')}\n{line(5, 'observer')}", f"{line(4, 'observer')},\n{line(5, 'observer')}",
                        f"{key}={value.replace(':observer', ': Observer ')}", f"{key}={value.replace('observer', '')}",
                        f"{key}={value.replace('observer', 'OBSERVER')}", f"{key}={value.replace(':observer', ': ')}",
                        f"{key}={value};", f"{key}={value};;", f"{key}={value};1",
                        f"{key}={value.replace(':26041', ':+26041')}",
                        f"{key}={value.replace(':26041', ': 26041')}", f"{key}={value.replace(':26041', ':x')}",
                        f"{key}={value.replace(':26041', ':70000')}", f"{key}={value.replace(':26041', ':-1')}",
                        f"{key}={value.replace(':26041', ':99999999999')}", f"{key}={value}0000", f"{key}={value}:",
                        f"{key}={value.replace(':observer', ':observer:1')}", f"{key}={value.rsplit(':', 1)[0]}",
                        f"{key}={value.split(';')[0]};26042", f"{key}={value.split(';')[0]};", f"{key}=",
                        f"{key}={host}:x:26041;70000", f"{key}={host}:70000:26041;x", f"{key}=;",
                        f"{key}={bare.split(';')[0]},server.x={bare}", f"{key}={bare.split(';')[0]},{key}={bare}",
                        f"{key}={value.replace(';', chr(9) + ';')}", f"{key}={value}|{value}", f"{key}={value},{key}={value}",
                        f"{key}={value},server.5={value}", f"{key}={bare.split(';')[0]};:26042",
                        *(f"server.4={one},server.5={another}" for one, another in (
                            ("192.0.2.1:1:2;3", "192.0.2.1:1:4;5"), ("192.0.2.1:1:2;3", "192.0.2.1:2:4;5"),
                            ("192.0.2.1:1:2;3", "192.0.2.1:3:4;5"), ("192.0.2.1:1:2;3", "192.0.2.1:6:4;3"))),
                        " ", ",", " , ,", "=", ";", ":"):
            self.ask(f"'{joining.replace(host, 'HOST')}' joins", root, joining=joining)
        self.ask("it leaves again", root, leaving="4,5")
        for leaving in ("7 8", "7,8", "+7", " 7 , 8 ", "7,,8,", ",", " ", "07", "7;8", "7\n8", "7,x", "0x7", "--7", "+", "-",
                        "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809"):
            self.ask(f"'{leaving}' leaves", root, leaving=leaving)
        self.ask("ports out of range leave as well", root, leaving="x", joining=f"{key}={bare}0000")
        for what, members in {
            "commas and blanks": " , ".join(all_three),
            "newlines and blanks": " \n\n  ".join(all_three) + "\n",
            "newlines of another kind": "\r\n".join(all_three),
            "blanks around the equals signs": ",".join(all_three).replace("=", " = "),
            "colons for equals signs": ",".join(all_three).replace("=", ":"),
            "blanks for equals signs": ",".join(all_three).replace("=", " "),
            "a comment": "# a comment\n! another\n" + "\n".join(all_three),
            "a version": ",".join([*all_three, "version=5"]),
            "a version that is none": ",".join([*all_three, "version=xyz"]),
            "a version without a number": ",".join([*all_three, "version="]),
            "a version and a blank": ",".join([*all_three, "version=5 "]),
            "a version alone": "version=5",
            "one voter and observers": ",".join([line(1), line(2, "observer"), line(3, "observer")]),
            "another key": ",".join([*all_three, "dataDir=/tmp"]),
            "a word": ",".join([*all_three, "nonsense"]),
            "no number": ",".join([*all_three, f"server.x={bare}"]),
            "an empty number": ",".join([*all_three, f"server.={bare}"]),
            "a number with a sign": ",".join([*all_three, f"server.+4={value}"]),
            "a name between": ",".join([*all_three, f"server.a.4={value}"]),
            "no name": ",".join([*all_three, f"4={value}"]),
            "nobody's address for clients": ",".join(one.split(";")[0] for one in all_three),
            "no server string": ",".join([*all_three, "server.4="]),
            "a port out of range": ",".join([*all_three, f"{key}={bare}0000"]),
            "one twice": ",".join([*all_three, all_three[0]]),
            "nothing but a blank": " ",
            "nothing but a comma": ",",
            "an escape": ",".join(all_three).replace("server", "ser\\ver").replace(":participant", "\\:\\u0070articipant"),
            "an escape that is none": ",".join([*all_three, "dataDir=\\u00g0"]),
            "continued lines": ",".join(all_three).replace("=", "=\\\n  ").replace(";", "\\,\t;"),
            "a comment that ends in a backslash": "# all\\\n" + "\n".join(all_three),
            "a backslash at the end": "\n".join(all_three) + "\\",
            "an escaped blank": ",".join(all_three).replace("=", "\\ =", 1),
            "a version in capitals": ",".join([*all_three, "VERSION=5"]),
            "another key and no number": ",".join([f"server.x={bare}", *all_three, "dataDir=/tmp"]),
            "a weight that is none": ",".join([*all_three, "weight.1=x"]),
            "a weight of nobody": ",".join([*all_three, "weight.x=1"]),
            "a group that is none": ",".join([*all_three, "group.x=1:2:3"]),
            "a group of no numbers": ",".join([*all_three, "group.1=1:x"]),
            "one in two groups": ",".join([*all_three, "group.1=1:2:3", "group.2=3"]),
            "a list as it was": ",".join(all_three),
        }.items():
            self.ask(f"a list with {what}", root, members=members)

    def absent(self, anyone, root, leader, follower):
        line = self.servers.line
        self.ask("a voter that is absent, by anyone", anyone, joining=line(4))
        self.ask("a voter that is absent, by its version", root, joining=line(4), version=config(root)[1])
        self.ask("another one", root, joining=line(5))
        self.ask("one too many", root, joining=line(6))
        self.ask("it does not stay", root, leaving="6")
        self.ask("both leave", root, leaving="4,5")
        self.ask("an observer", root, joining=line(4, "observer"))
        self.ask("it becomes a voter", root, joining=line(4))
        self.ask("it becomes an observer", root, joining=line(4, "observer"))
        self.ask("it leaves and another one joins", root, joining=line(5, "observer"), leaving="4")
        self.ask("a list with observers", root,
                 members=",".join([*(line(n) for n in (1, 2, 3)), line(4, "observer"), line(5, "observer")]))
        self.ask("a list without them", root, members="\n".join(line(n) for n in (1, 2, 3)))

    def removed(self, leader, follower, other):
        s = self.servers
        client, root = s.connect(follower), s.connect(leader)
        self.ask("the client's own server leaves", client, leaving=str(follower))
        for number in range(3):
            time.sleep(0.5)
            try:
                self.note("it serves on", number, client.create(f"/n-{number}"), client.exists(f"/n-{number}"),
                          self.named(config(client)[0]))
            except raw.Lost as lost:
                self.note("it serves on", str(lost))
                break
        self.ask("it comes back", root, joining=s.line(follower))
        eventually(lambda: s.role(follower) == "follower", "it follows")
        watcher = s.connect(follower)
        self.note("and serves", eventually(lambda: watcher.exists("/n-2"), "what was written"))

    def alone(self):
        s = self.servers
        s.start(1, alone=True)
        client = s.connect(1)
        self.note("alone", reconfig(client, leaving="1"))
        self.note("alone, nothing", reconfig(client))
        s.stop()


def answers(kind, directory, host):
    comparison = Comparison(Servers(kind, directory, host))
    try:
        comparison.run()
    except (Late, raw.Lost) as error:
        error.add_note(f"{kind} was asked last: {comparison.asked}")
        for line in comparison.servers.describe():
            error.add_note(line.rstrip())
        raise
    finally:
        comparison.servers.stop()
    return comparison.said


def answers_of_zookeeper(directory, host):
    for attempt in range(2):
        try:
            return answers("zookeeper", f"{directory}/{attempt}", host)
        except (Late, raw.Lost):
            traceback.print_exc()
    return answers("zookeeper", f"{directory}/last", host)


def main(directory):
    host = own_host()
    theirs, ours = answers_of_zookeeper(directory, host), answers("conclave", directory, host)
    differences = [pair for pair in zip(theirs, ours) if pair[0] != pair[1]]
    for one, another in differences:
        print(f"Difference: {one[0]}\n  ZooKeeper {one[1:]}\n  Conclave  {another[1:]}")
    print(f"{len(ours)} answers compared")
    return 1 if differences or len(theirs) != len(ours) else 0


if __name__ == "__main__":
    with judged(3 * HANG_S):
        sys.exit(main(sys.argv[1]))
