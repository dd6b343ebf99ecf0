"""Members come, go and change their weight while clients work; by command, and by a client's request."""
import json
import os
import re
import signal
import struct
import subprocess
import threading
import time

from kazoo import exceptions as error
from kazoo.security import make_digest_acl_credential

from ensemble import PATIENCE, Ensemble, Member, eventually, main, raises
from failures import Creator, Steady, verify_made

import raw

RECONFIG, RECONFIG_DISABLED = 16, -123
BIG = 900000  # bytes of a node


def http(member):
    host, port = member.address.rsplit(":", 1)
    return f"{host}:{int(port) + 20}"


def command(member, *words, timeout="20s"):
    """conclave ensemble ...: exit status, output, errors."""
    run = subprocess.run([os.environ["CONCLAVE"], "ensemble", *words, "--at", http(member), "--timeout", timeout],
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=3 * PATIENCE)
    return run.returncode, run.stdout, run.stderr


def done(member, *words):
    status, out, err = command(member, *words)
    assert status == 0, f"{words}: {status} {out} {err}\n{command(member, 'status')[1]}"
    return out


def status(member):
    return json.loads(done(member, "status", "--json"))


def weights(member):
    return {m["id"]: m["weight"] for m in status(member)["members"]}


def with_http(ensemble):
    for member in ensemble.members:
        member.options += ["--http", http(member)]
    return ensemble


def started(directory, *options, count=3):
    return with_http(Ensemble(directory, count=count, options=options)).start()


def joiner(ensemble, directory, number, *options):
    """A server that is no member yet."""
    host = ensemble.members[0].peer.rsplit(":", 1)[0]
    member = Member(number, host, directory, ["--join", *options], ())
    member.options += ["--http", http(member)]
    others = ",".join(f"{m.number}={m.peer}" for m in ensemble.members)
    member.ensemble = f"{others},{number}={member.peer}"
    return member


def join(ensemble, member):
    done(ensemble.members[0], "add", f"{member.number}={member.peer}")
    ensemble.members.append(member)


def config(zk):
    """/zookeeper/config: the lines, and the version."""
    lines = zk.get("/zookeeper/config")[0].decode().splitlines()
    assert lines[-1].startswith("version="), lines
    return lines[:-1], int(lines[-1][8:], 16)


def same_config_everywhere(ensemble):
    def one():
        texts = set()
        for member in ensemble.running():
            client = raw.Client(member.address)
            texts.add(client.get("/zookeeper/config")[0])
            client.close_session()
        return len(texts) == 1
    eventually(one, "the same /zookeeper/config everywhere")


# ---- By command ----


def grows_and_shrinks(directory):
    """Two servers come, one by a snapshot, then the leader goes, and a follower; clients of the others notice
    nothing, and no write is lost or done twice."""
    ensemble = started(directory, "--set", "snapCount=200")
    leader = ensemble.leader()
    stays, goes = [m for m in ensemble.members if m is not leader]
    filler = ensemble.client(stays)
    for i in range(40):  # more than is kept for members that are behind
        filler.create(f"/big-{i}", bytes(BIG))
    seen = []
    filler.DataWatch("/zookeeper/config", lambda data, stat: seen.append(data) and None)
    steady = [Steady(ensemble, stays, "stays")]
    creators = [Creator(ensemble, "any", *ensemble.members)]
    new = [joiner(ensemble, directory, number) for number in (4, 5)]
    for member in new:
        member.start()
        assert "waits to be added" in done(member, "status")
        join(ensemble, member)
        assert weights(stays)[member.number] == 1
    assert "a snapshot has come" in new[0].said()
    assert raw.Client(new[0].address).get("/big-39")[0] == bytes(BIG)
    same_config_everywhere(ensemble)
    steady.append(Steady(ensemble, new[1], "new"))
    creators.append(Creator(ensemble, "newcomers", *new))
    time.sleep(0.3)
    assert "no longer a member" in done(leader, "remove", str(leader.number))
    assert status(leader)["dismissed"] and leader.said().count("this server is no longer a member") == 1
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
    for member in (leader, goes):  # harmless, and nobody misses them
        member.send(signal.SIGTERM)
        assert member.end() == 0
        ensemble.members.remove(member)
    done(stays, "transfer", "4" if now.number != 4 else "5")
    ensemble.stop()


def comes_back(directory):
    """One that was removed is added again, with what it has; an observer becomes a voter, and no voter."""
    ensemble = started(directory)
    leader = ensemble.leader()
    other, back = [m for m in ensemble.members if m is not leader]
    zk = ensemble.client(leader)
    for i in range(10):
        done(leader, "remove", str(back.number))
        zk.create(f"/n-{i}")
        done(other, "add", f"{back.number}={back.peer}")
        assert eventually(lambda: raw.Client(back.address).get(f"/n-{i}"), "what was written meanwhile")
        eventually(lambda: not status(back)["changing"], "nothing is left to do")
        assert not status(back)["dismissed"]
    done(leader, "weight", f"{back.number}=0")
    assert weights(other)[back.number] == 0
    assert re.search(rf"^  {back.number} .* observer +0 ", done(other, "status"), re.M), done(other, "status")
    status_, _, err = command(other, "transfer", str(back.number))
    assert status_ == 2 and "has no vote" in err, err
    assert "Mode: observer" in ensemble.client(back).command(b"srvr")
    done(leader, "add", f"{back.number}={back.peer}")
    assert weights(other)[back.number] == 1
    done(leader, "add", f"{back.number}={back.peer}:observer")
    assert weights(other)[back.number] == 0
    done(leader, "weight", f"{back.number}=3")
    assert weights(back) == {leader.number: 1, other.number: 1, back.number: 3}
    zk.stop()
    for member in (leader, other):  # three of five, alone
        member.kill()
    assert ensemble.leader(among=[back]) is back
    ensemble.client(back).create("/alone")
    ensemble.stop()


class Gaps(threading.Thread):
    """Writes without a pause; the longest time without an answer is what a client would notice."""

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


def transfers(directory):
    """Leadership goes round ten times under load."""
    ensemble = started(directory)
    steady = [Steady(ensemble, member, str(member.number)) for member in ensemble.members]
    gaps = Gaps(ensemble.client(ensemble.members[0]))
    longest = []
    for turn in range(10):
        to = ensemble.members[(ensemble.leader().number + turn % 2) % 3]
        if to is ensemble.leader():
            continue
        gaps.longest = 0
        done(ensemble.members[turn % 3], "transfer", str(to.number))
        time.sleep(0.1)
        longest.append(gaps.longest * 1000)
        assert ensemble.leader() is to
    gaps.ended = True
    gaps.join(PATIENCE)
    for work in steady:
        work.finish()
    assert len(longest) >= 8 and not gaps.trouble, f"{longest} {gaps.trouble!r}"
    print("longest wait of a writer, ms: " + " ".join(f"{ms:.0f}" for ms in longest))
    ensemble.stop()


def leader_dies_in_a_change(directory):
    """The next one goes on; who asked sees it through; and after a restart of all the members are as they were
    changed to, whatever --ensemble says."""
    ensemble = started(directory)
    leader = ensemble.leader()
    asked = ensemble.followers()[0]
    new = joiner(ensemble, directory, 4)
    finish = in_background(asked, "add", f"4={new.peer}")
    eventually(lambda: 4 in weights(asked), "server 4 is known")
    leader.kill()
    eventually(lambda: ensemble.leader() and status(asked)["leader"] not in (0, leader.number), "another leader")
    eventually(lambda: status(asked)["changing"], "it is still aimed at")
    new.start()
    finish()
    assert weights(asked) == {1: 1, 2: 1, 3: 1, 4: 1}
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
    asked.start()  # not wanted any more, and does not know
    time.sleep(1.2)
    assert not status(asked)["leader"] and ensemble.leader() is new_leader
    asked.kill()
    ensemble.stop()


def in_background(member, *words):
    """A command whose results come later."""
    results = []
    asker = threading.Thread(target=lambda: results.append(command(member, *words)), daemon=True)
    asker.start()

    def finish():
        asker.join(PATIENCE)
        assert results and results[0][0] == 0, results
    return finish


def forgotten_and_asked_again(directory):
    """All are killed in the middle of a change, and it is forgotten: who asked asks once more."""
    ensemble = started(directory)
    first = ensemble.members[0]
    new = joiner(ensemble, directory, 4)
    finish = in_background(first, "add", f"4={new.peer}")
    eventually(lambda: all(4 in weights(member) for member in ensemble.members), "server 4 is known")
    for member in ensemble.members:
        member.kill()
    for member in ensemble.members:
        member.spawn()
    ensemble.leader()
    assert weights(first) == {1: 1, 2: 1, 3: 1, 4: 0}
    new.start()
    finish()
    ensemble.members.append(new)
    assert weights(new) == {1: 1, 2: 1, 3: 1, 4: 1}
    code, _, err = command(first, "add", "5=127.0.0.1:1", timeout="500ms")
    assert code == 3 and "has not caught up" in err, f"{code} {err}"
    for member in ensemble.members:
        assert re.search(r"^  5 +127.0.0.1:1 +learner +0 ", done(member, "status"), re.M), done(member, "status")
    done(first, "remove", "5")  # which takes back what was under way
    assert not status(first)["changing"] and 5 not in weights(first)
    same_config_everywhere(ensemble)
    lines, _ = config(ensemble.client(first))
    assert not any(line.startswith("server.5") for line in lines), lines
    ensemble.stop()


def post(member, path, *headers):
    """Status and answer of a command as a program other than ours would send it."""
    words = [word for header in ("Conclave: 1", *headers) for word in ("-H", header)]
    run = subprocess.run(["curl", "-s", "-w", "%{http_code}", "-X", "POST", *words, f"http://{http(member)}{path}"],
                         capture_output=True, text=True, timeout=PATIENCE)
    return run.stdout[-3:], run.stdout[:-3]


def transfer_to_nobody(directory):
    """Each try would stop all writes for a while: one that cannot succeed is refused, whoever is asked."""
    ensemble = started(directory)
    leader = ensemble.leader()
    other, dead = ensemble.followers()
    term = status(leader)["term"]
    dead.kill()
    for member in (leader, other):
        eventually(lambda: not [m for m in status(member)["members"] if m["id"] == dead.number][0]["linked"], "noticed")
        code, _, err = command(member, "transfer", str(dead.number))
        assert code == 2 and "that server cannot be reached" in err, f"{code} {err}"
    for typed in (f"{other.number}abc", f"{other.number}=1", f"{other.number},", "", "0", "999999999999"):
        assert post(leader, f"/ensemble/transfer/{typed}") == ("409", "there is no such member\n"), typed
    assert status(leader)["leader"] == leader.number and status(leader)["term"] == term
    done(leader, "transfer", str(other.number))
    ensemble.stop()


def names_of_pages(directory):
    """A page that has given its own name our address may not command, though it is of one origin with us."""
    ensemble = started(directory, count=1)
    member = ensemble.members[0]
    assert not re.search(r"\b1 entries", done(member, "status")), done(member, "status")
    path = "/ensemble/weight/1=1"
    for name in ("evil.example", "evil.example:8080", "127.0.0.1.evil.example", "10.0.0.1", "[fe80::1]:1", "a" * 300, ""):
        assert post(member, path, f"Host: {name}" if name else "Host;")[0] == "403", name
    for name in ("localhost", "LOCALHOST:1", "127.0.0.1", "127.3.2.1:8080", "[::1]", "[::1]:8080"):
        assert post(member, path, f"Host: {name}")[0] == "200", name
    done(member, "weight", "1=1")  # which names nobody
    ensemble.stop()


def unusable_addresses(directory):
    """Where plain links may not go nobody is added; and who is there already keeps no server from starting."""
    options = ["--set", "reconfigEnabled=true", "--set", "skipACL=yes"]
    ensemble = started(directory, *options)
    leader = ensemble.leader()
    for member in ensemble.members:
        code, _, err = command(member, "add", "4=0.0.0.0:9:observer")
        assert code == 2 and "server 4 at 0.0.0.0: links to other machines need" in err and "--peer-key" in err, err
        first = ensemble.members[0].number
        code, _, err = command(member, "add", f"{first}=0.0.0.0:9")  # nor does one move there
        assert code == 2 and "links to other machines need" in err, err
    raises(error.NewConfigNoQuorumError, ensemble.client().reconfig, "server.4=0.0.0.0:9:9:observer;1", None, None)
    assert leader.said().count("the members do not change: server 4 at 0.0.0.0: ") == 1, leader.said()
    assert weights(leader) == {1: 1, 2: 1, 3: 1} and not status(leader)["changing"]
    for insecure in (True, False):
        for member in ensemble.members:
            member.kill()
            member.options = [o for o in member.options if o != "--insecure"] + ["--insecure"] * insecure
        for member in ensemble.members:
            member.start()
        leader = ensemble.leader()
        if insecure:
            done(leader, "add", "4=0.0.0.0:9:observer")
    assert all("warning server 4 at 0.0.0.0: links to" in member.said() for member in ensemble.members)
    ensemble.client().create("/after")
    done(leader, "add", f"5={leader.peer.rsplit(':', 1)[0]}:9:observer")
    done(leader, "remove", "4")
    assert weights(leader) == {1: 1, 2: 1, 3: 1, 5: 0}
    ensemble.stop()


# ---- By a client ----


def line(member, role="participant"):
    host, port = member.peer.rsplit(":", 1)
    client_host, client_port = member.address.rsplit(":", 1)
    return f"server.{member.number}={host}:{port}:{port}:{role};{client_host}:{client_port}"


def reconfig(directory):
    """As a client of ZooKeeper would: joining, leaving, or all of them; and what is refused."""
    ensemble = started(directory, "--set", "reconfigEnabled=true", "--set", "skipACL=yes", count=3)
    leader = ensemble.leader()
    new = joiner(ensemble, directory, 4, "--set", "reconfigEnabled=true", "--set", "skipACL=yes").start()
    zk = ensemble.client(ensemble.followers()[0])
    _, version = config(zk)
    data, stat = zk.reconfig(joining=line(new), leaving=None, new_members=None, from_config=version)
    assert b"server.4=" in data and b";" in data and stat.version > 0, data
    assert config(zk)[1] > version and data.endswith(b"version=%x" % config(zk)[1])
    assert weights(new) == {1: 1, 2: 1, 3: 1, 4: 1}
    ensemble.members.append(new)
    zk.reconfig("weight.4=0", None, None)
    assert weights(leader)[4] == 0
    done(leader, "add", f"4={new.peer}")  # that gives it a vote again, and says nothing of its clients
    assert line(new) in config(zk)[0] and weights(leader)[4] == 1, config(zk)
    raises(error.BadVersionError, zk.reconfig, None, "4", None, version)
    raises(error.BadArgumentsError, zk.reconfig, "server.5=nonsense", None, None)
    raises(error.BadArgumentsError, zk.reconfig, "dataDir=/tmp", None, None)
    raises(error.BadArgumentsError, zk.reconfig, None, "one", None)
    raises(error.NewConfigNoQuorumError, zk.reconfig, None, "1,2,3,4", None)
    assert config(zk)[1] == version or len(config(zk)[0]) == 4
    data, _ = zk.reconfig(None, str(leader.number), None)
    assert b"server.%d=" % leader.number not in data
    rest = [m for m in ensemble.members if m is not leader]
    same_config_everywhere(type("Rest", (), {"running": lambda self: rest})())
    done(new, "weight", "4=2")
    zk.reconfig("weight.2=2" if leader.number != 2 else "weight.3=2", None, None)
    data, _ = zk.reconfig(None, None, ",".join(line(m) for m in ensemble.members if m is not new))
    assert weights(leader) == {1: 1, 2: 1, 3: 1} and b"server.4=" not in data
    eventually(lambda: status(new)["dismissed"], "the one that went is told")
    zk.create("/after")
    ensemble.stop()


def together(directory):
    """Two changes that are asked for at once are both made."""
    options = ["--set", "reconfigEnabled=true", "--set", "skipACL=yes"]
    ensemble = started(directory, *options)
    new = [joiner(ensemble, directory, number, *options) for number in (4, 5)]
    clients = [ensemble.client(member) for member in ensemble.members[:2]]
    first = clients[0].reconfig_async(line(new[0]), None, None, -1)
    eventually(lambda: 4 in weights(ensemble.members[2]), "server 4 is known")
    second = clients[1].reconfig_async(line(new[1]), None, None, -1)
    for member in new:
        member.start()
    assert b"server.4=" in first.get(timeout=PATIENCE)[0]
    assert b"server.5=" in second.get(timeout=PATIENCE)[0]
    assert weights(new[1]) == {1: 1, 2: 1, 3: 1, 4: 1, 5: 1}
    ensemble.members += new
    same_config_everywhere(ensemble)
    ensemble.stop()


def reconfig_is_guarded(directory):
    """Not everybody may, and by default nobody."""
    digest = make_digest_acl_credential("super", "secret")
    ensemble = started(directory, "--set", "reconfigEnabled=true",
                       "--set", f"DigestAuthenticationProvider.superDigest={digest}")
    zk = ensemble.client()
    raises(error.NoAuthError, zk.reconfig, None, "3", None)
    zk.add_auth("digest", "super:secret")
    zk.reconfig(None, "3", None)
    assert sorted(weights(ensemble.members[0])) == [1, 2]
    ensemble.stop()


def reconfig_is_off(directory):
    ensemble = started(directory, "--set", "skipACL=yes")
    client = raw.Client(ensemble.members[0].address)
    nothing = struct.pack(">i", -1)
    code = client.call(RECONFIG, nothing + raw.text("3") + nothing + struct.pack(">q", -1))[0]
    assert code == RECONFIG_DISABLED, code
    assert sorted(weights(ensemble.members[0])) == [1, 2, 3]
    ensemble.stop()


# ---- conclave up ----


class Up:
    """An ensemble that is driven by lines."""

    def __init__(self, port, *options):
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", os.environ["CONCLAVE"], "up", "--port", str(port), *options], text=True,
            bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.lines = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for text in self.process.stdout:
            self.lines.append(text.rstrip("\n"))

    def say(self, text):
        self.lines.clear()
        self.process.stdin.write(text + "\n")

    def sees(self, *patterns):
        """All of them, in the lines since the last command."""
        def found():
            return all(any(re.fullmatch(p, text) for text in list(self.lines)) for p in patterns)
        eventually(found, f"{patterns} in {self.lines}")

    def last(self, pattern):
        return [m for m in (re.fullmatch(pattern, text) for text in self.lines) if m][-1]


def up(directory):
    """A local ensemble: killed, stopped, restarted and handed over by lines; its data is kept when it is named."""
    port = 20000 + os.getpid() % 5000 * 2
    here = f"{directory}/kept"
    ours = Up(port, "--data", here)
    ours.sees(r"server \d: leads in term 1", r"server 1: (leads|follows \d) .*", r"server 2: (leads|follows \d) .*",
              r"server 3: (leads|follows \d) .*")
    leader = int(ours.last(r"server (\d): leads in term 1")[1])
    client = raw.Client(f"127.0.0.1:{port}")
    assert client.call(raw.CREATE, raw.create_record("/kept"))[0] == 0
    ours.say(f"kill {leader}")
    ours.sees(f"server {leader}: killed", r"server \d: leads in term \d+")
    ours.say(f"kill {leader}")
    ours.sees(f"server {leader} is not running")
    ours.say(f"transfer {leader}")
    ours.sees(f"server {leader} is not running")
    ours.say(f"start {leader}")
    ours.sees(rf"server {leader}: starting, process \d+", rf"server {leader}: follows \d in term \d+")
    ours.say(f"transfer {leader}")
    ours.sees(rf"server {leader}: leads in term \d+")
    ours.say(f"stop {leader}")
    ours.sees(f"server {leader}: stopped", r"server \d: leads in term \d+")
    ours.say(f"continue {leader}")
    ours.sees(rf"server {leader}: follows \d in term \d+")
    other = leader % 3 + 1
    ours.say(f"restart {other}")
    ours.sees(rf"server {other}: starting, process \d+", rf"server {other}: (leads|follows \d) in term \d+")
    ours.say("status")
    ours.sees(r"server  port .*", *(rf"{i}  +{port + i - 1}  +\d+  +(leader|follower) .*" for i in (1, 2, 3)))
    at = ours.last(rf"1  +{port}  +(\d+) .*")[1]
    told = subprocess.run([os.environ["CONCLAVE"], "ensemble", "status", "--at", f"127.0.0.1:{at}"], text=True,
                          stdout=subprocess.PIPE, check=True).stdout
    assert "leads in term" in told and told.count(" up ") == 2, told
    for nonsense in ("fly 1", "kill", "kill 4"):
        ours.say(nonsense)
        ours.sees(r"'fly' is not .*|kill: which server\?|there is no server 4: 1 to 3")
    children = subprocess.run(["pgrep", "-P", str(ours.process.pid)], text=True, stdout=subprocess.PIPE).stdout.split()
    assert len(children) == 3
    ours.say("stop 1")
    ours.process.send_signal(signal.SIGTERM)  # also ends one that is stopped
    assert ours.process.wait(PATIENCE) == 0
    assert not any(os.path.exists(f"/proc/{child}") for child in children)
    again = Up(port, "--data", here)
    again.sees(r"server \d: leads in term \d+")
    assert raw.Client(f"127.0.0.1:{port + 2}").get("/kept")
    taken = subprocess.run([os.environ["CONCLAVE"], "up", "--port", str(port)], text=True, stdin=subprocess.DEVNULL,
                           capture_output=True)
    assert taken.returncode == 3 and f"port {port} is taken" in taken.stderr, taken
    children = subprocess.run(["pgrep", "-P", str(again.process.pid)], text=True, stdout=subprocess.PIPE).stdout.split()
    again.process.kill()  # nothing is left behind
    again.process.wait()
    eventually(lambda: not any(alive(child) for child in children), "the servers ended with it")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def up_leaves_nothing(directory):
    """Data that was not named is gone at the end."""
    port = 20000 + os.getpid() % 5000 * 2
    os.environ["TMPDIR"] = directory
    ours = Up(port, "--servers", "1", "--", "--set", "tickTime=500")
    ours.sees(r"server 1: leads in term 1")
    assert any(name.startswith("conclave-up-") for name in os.listdir(directory))
    ours.say("quit")
    assert ours.process.wait(PATIENCE) == 0
    assert not os.listdir(directory), os.listdir(directory)


if __name__ == "__main__":
    main([grows_and_shrinks, comes_back, transfers, leader_dies_in_a_change, forgotten_and_asked_again,
          transfer_to_nobody, names_of_pages, unusable_addresses, reconfig, together, reconfig_is_guarded, reconfig_is_off, up, up_leaves_nothing])
