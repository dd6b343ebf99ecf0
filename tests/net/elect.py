"""`conclave once` and `conclave elect`: exactly one, whoever dies.  SERVER=zookeeper is against ZooKeeper."""
import json
import os
import random
import signal
import socket
import threading
import time

from ensemble import eventually, main
from locking import CALM, FOREVER_MS, KIND, REST_S, TTL, Site, keeper_of, kill, together


# ---- once ----
def once(site, *words, **more):
    return site.start("once", "job", *words, **more)


def fifty_competitors(directory):
    """Exactly one runs it; the others exit with 0 and say who did."""
    with Site(directory) as site:
        competitors = [once(site, "--slot", "1", "--label", f"machine {number}", *site.body(300)) for number in range(50)]
        said = [competitor.communicate()[0] for competitor in competitors]
        assert all(competitor.returncode == 0 for competitor in competitors)
        assert site.check() == 1
        runner = [number for number, text in enumerate(said) if not text]
        assert len(runner) == 1, said
        assert all(f"by machine {runner[0]} on " in text for text in said if text), said
        last = site.expect(0, "once", "job", "--slot", "1", "--", "true")
        assert "was run by" in last and "exit status 0" in last, last
        report = json.loads(site.expect(0, "once", "job", "--slot", "1", "--json", "--", "true"))
        assert report["status"] == 0 and report["slot"] == "1" and report["ended"] >= report["since"], report


def again_after_death(directory):
    """With --retry, and then only one at a time; without, never again."""
    chance = random.Random(int(os.environ.get("SEED", "1")))
    with Site(directory) as site:
        words = ["--slot", "1", "--retry", "--ttl", TTL]
        for number in range(4):
            front = once(site, *words, *site.body(FOREVER_MS, "deaf"))
            keeper = keeper_of(front)
            site.await_body(number + 1)
            others = [once(site, *words, "--", "false") for _ in range(3)]
            assert all("is being run" in other.communicate()[0] for other in others)
            victims = chance.choice([[front.pid], [keeper], [keeper, front.pid]])
            for victim in victims:
                kill(victim)
            front.wait()
            kill(keeper)
            # the next one may run it when the session is over
            eventually(lambda: site.is_gone("/conclave/once/job/1/runner"), "its session is over")
        survivors = [once(site, *words, *site.body(100)) for _ in range(10)]
        assert [survivor.wait() for survivor in survivors] == [0] * 10
        assert site.check() == 5
        assert "was run by" in site.expect(0, "once", "job", *words, "--", "false")
        # without --retry
        front = once(site, "--slot", "2", "--ttl", TTL, *site.body(FOREVER_MS))
        site.await_body(6)
        kill(front.pid)
        front.wait()
        eventually(lambda: site.is_gone("/conclave/once/job/2/runner"), "it is gone")
        said = site.expect(0, "once", "job", "--slot", "2", "--retry", "--", "false")
        assert "not run again" in said or "exit status" in said, said


def slots(directory):
    """Codes are passed on and noted; old slots are forgotten."""
    with Site(directory) as site:
        site.expect(3, "once", "job", "--slot", "0", "--", "sh", "-c", "exit 3")
        assert "exit status 3" in site.expect(0, "once", "job", "--slot", "0", "--", "true")
        for number in range(1, 7):
            site.expect(0, "once", "job", "--slot", str(number), "--keep", "3", "--", "true")
        left = json.loads(site.expect(0, "ls", "--json", "/conclave/once/job"))["children"]
        assert sorted(left) == ["4", "5", "6"], left
        front = once(site, "--slot", "8", "--retry", "--", "sh", "-c", "trap 'echo again' HUP; echo ready; read line; read line; exit 0",
                     stdin=-1)
        assert front.stdout.readline() == "ready\n"
        front.send_signal(signal.SIGHUP)
        assert front.stdout.readline() == "again\n"
        front.stdin.write("\n\n")
        front.stdin.flush()
        front.stdin.close()
        assert front.wait() == 0, front.stderr.read()
        assert "exit status 0" in site.expect(0, "once", "job", "--slot", "8", "--retry", "--", "false")
        site.expect(64, "once", "job", "--", "true", says="--slot")
        site.expect(64, "once", "a/job", "--slot", "0", "--", "true", says="no slashes")


def server_away_while_it_runs(directory):
    """Without --retry nobody else may run it: it goes on, and is noted when the server is back."""
    with Site(directory) as site:
        front = once(site, "--slot", "1", "--ttl", TTL, "--", "sh", "-c", "echo ready; read line; exit 4", stdin=-1)
        assert front.stdout.readline() == "ready\n"
        site.server.kill()
        time.sleep(0.3)
        site.server.start()
        front.communicate("\n")
        assert front.returncode == 4
        assert "exit status 4" in site.expect(0, "once", "job", "--slot", "1", "--", "true")


# ---- elect ----
def elect(site, *words, ttl=TTL, **more):
    return site.start("elect", "e", "--ttl", ttl, *words, **more)


def leads(site, label=None):
    def found():
        time.sleep(REST_S)
        done = site.run("leader", "e", "--json")
        leader = json.loads(done.stdout) if done.stdout else {}
        return leader if leader.get("label") == label else None
    return eventually(found, f"{label} leads")


def leaders_die(directory):
    """One leader at a time, tokens grow, and somebody always leads again."""
    chance = random.Random(int(os.environ.get("SEED", "1")))
    with Site(directory) as site:
        fronts = [elect(site, *site.body(FOREVER_MS, "deaf")) for _ in range(4)]

        def leading():
            """Nobody does for a moment when a busy machine has taken the lead from one."""
            time.sleep(REST_S)
            done = site.run("leader", "e", "--json")
            pid = json.loads(done.stdout)["pid"] if done.returncode == 0 else None
            return next((front for front in fronts if pid in (front.pid, keeper_of(front))), None)
        for round_ in range(4):
            site.await_body(round_ + 1)
            leader = eventually(leading, "somebody leads")
            keeper = keeper_of(leader)
            for victim in chance.choice([[leader.pid], [keeper], [keeper, leader.pid]]):
                kill(victim)
            leader.wait()
            fronts.remove(leader)
            fronts.append(elect(site, *site.body(FOREVER_MS, "deaf")))
        site.await_body(5)
        for front in fronts:
            front.terminate()
        site.check()
        for front in fronts:
            kill(front.pid)
            front.wait()


def priority_and_resignation(directory):
    """The preferred candidate gets the lead after the former leader's command has ended, unless that one is stable."""
    with Site(directory) as site:
        small = elect(site, "--label", "small", *site.body(FOREVER_MS), ttl=CALM)
        leads(site, "small")
        large = elect(site, "--label", "large", "--priority", "5", *site.body(FOREVER_MS), ttl=CALM)
        leads(site, "large")
        site.await_body(2)
        same = elect(site, "--label", "same", "--priority", "5", *site.body(FOREVER_MS), ttl=CALM)
        eventually(lambda: len(site.contenders("e", "leaders")) >= 4, "it stands")
        site.expect(0, "resign", "e")
        leads(site, "same")
        for front in (small, large, same):
            front.terminate()
        for front in (small, large, same):
            front.wait()
        site.check()
        site.expect(1, "resign", "e", says="nobody leads")
        site.expect(1, "leader", "e")
        site.expect(1, "candidates", "e", says="nobody stands")
        site.expect(5, "elect", "team/e", "--", "sh", "-c", "exit 5")
        site.expect(64, "elect", "team/leader", "--", "true", says="the node of who leads")
        count = site.begun()
        stable = elect(site, "--stable", "--label", "stable", *site.body(FOREVER_MS), ttl=CALM)
        site.await_body(count + 1)
        other = elect(site, "--priority", "9", "--label", "other", *site.body(FOREVER_MS), ttl=CALM)
        eventually(lambda: len(site.contenders("e", "leaders")) >= 3, "it stands")
        found = json.loads(site.expect(0, "candidates", "e", "--json"))["candidates"]
        assert [(one["label"], one["leads"], one["priority"]) for one in found] == [("stable", True, 0), ("other", False, 9)], found
        rows = site.expect(0, "candidates", "e").splitlines()[1:]
        assert [row.split()[0] for row in rows] == ["stable", "other"] and " leads " in rows[0] and " stands " in rows[1], rows
        leads(site, "stable")
        stable.terminate()
        leads(site, "other")
        other.terminate()
        other.wait()
        site.check()


def health(directory):
    """Hands over when the check fails, and stands again when it succeeds; hooks are told."""
    with Site(directory) as site:
        words = ["--healthy", f"test -e {directory}/well", "--healthy-every", "500ms",
                 "--on-change", f"echo $CONCLAVE_STATE >>{directory}/states"]

        def states():
            with open(f"{directory}/states") as file:
                return file.read().split()
        sick = elect(site, "--label", "sick", "--priority", "1", *words, *site.body(FOREVER_MS), ttl=CALM)
        eventually(lambda: os.path.exists(f"{directory}/states") and states() == ["unhealthy"], "it is unhealthy")
        other = elect(site, "--label", "other", *site.body(FOREVER_MS), ttl=CALM)
        leads(site, "other")
        open(f"{directory}/well", "w").close()
        leads(site, "sick")
        os.unlink(f"{directory}/well")
        leads(site, "other")
        # A check that a busy machine cuts off counts as failed, so there may be others in between.
        wanted = ["unhealthy", "standing", "leading", "unhealthy"]

        def told():
            seen = iter(states())
            return all(state in seen for state in wanted)
        eventually(told, "all was told")
        for front in (sick, other):
            front.terminate()
            front.wait()
        site.check()


def keep_running(directory):
    """Losing the lead is a signal."""
    trap = 'trap "cat $CONCLAVE_TOKEN_FILE; echo lost" USR1; trap "echo leads; cat $CONCLAVE_TOKEN_FILE; echo" USR2; ' \
        'echo ready; while :; do sleep 0.05; done'
    with Site(directory) as site:
        first = elect(site, "--keep-running", "--label", "first", "--", "sh", "-c", trap, ttl="12s")  # it is waited for
        assert first.stdout.readline() == "ready\n"
        token = leads(site, "first")["token"]
        other = elect(site, "--priority", "1", "--label", "other", *site.body(FOREVER_MS), ttl=CALM)
        assert first.stdout.readline() == "lost\n"
        leads(site, "other")
        other.terminate()
        assert first.stdout.readline() == "leads\n"
        assert int(first.stdout.readline()) > token
        site.server.pause()
        assert first.stdout.readline() == "lost\n"
        site.server.go_on()
        assert first.stdout.readline() == "leads\n"
        first.terminate()
        first.wait()
        other.wait()


def lead_lost(directory):
    with Site(directory) as site:
        front = elect(site, "--once", *site.body(FOREVER_MS, "deaf", "family"))
        site.await_body(1)
        site.server.pause()
        assert front.wait() == 76
        assert site.is_free()
        site.server.go_on()
        site.expect(5, "elect", "e", "--", "sh", "-c", "exit 5")


class Late:
    """Stands before a server; the answer to the first claim of the lead is late, so that the lease is nearly over."""

    def __init__(self, server):
        self.server, self.claimed = server, threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection((self.server.host, self.server.port))
            threading.Thread(target=self.ask, args=(client, server), daemon=True).start()
            threading.Thread(target=self.answer, args=(server, client), daemon=True).start()

    def ask(self, client, server):
        while data := client.recv(65536):
            if b"/conclave/leaders/e/leader" in data and b'"node"' in data:
                self.claimed.set()
            server.sendall(data)
        server.shutdown(socket.SHUT_WR)

    def answer(self, server, client):
        late = False
        while data := server.recv(65536):
            if late or not self.claimed.is_set():
                client.sendall(data)
                continue
            late = True
            time.sleep(1.15)
            client.sendall(data)
            time.sleep(0.05)  # only then those that renew it
        client.close()


def stands_again(directory):
    """Whose node is deleted, or whose answer is late; but not who may not."""
    with Site(directory) as site:
        first = elect(site, "--label", "first", *site.body(FOREVER_MS), ttl=CALM)
        leads(site, "first")
        second = elect(site, "--label", "second", *site.body(FOREVER_MS), ttl=CALM)
        eventually(lambda: len(site.contenders("e", "leaders")) == 3, "it stands")
        node = max((name for name in site.contenders("e", "leaders") if "__" in name), key=lambda name: name[-10:])
        site.expect(0, "rm", f"/conclave/leaders/e/{node}")
        first.terminate()
        leads(site, "second")
        second.terminate()
        first.wait()
        second.wait()
        site.check()
        late = Late(site.server)
        said = site.expect(0, "elect", "e", "--server", late.address, "--ttl", TTL, "--grace", "900ms", "--", "echo", "led")
        assert late.claimed.is_set() and said == "led\n", said
        site.expect(0, "create", "/conclave/leaders/closed", "--acl", "world:anyone:r")
        site.expect(77, "elect", "closed", "--", "true", says="ACL")


def watching(directory):
    with Site(directory) as site:
        watcher = site.start("leader", "e", "--watch")
        assert watcher.stdout.readline() == "nobody leads\n"
        first = elect(site, "--label", "first", *site.body(FOREVER_MS), ttl=CALM)
        assert watcher.stdout.readline().startswith("first on ")
        first.terminate()
        assert watcher.stdout.readline() == "nobody leads\n"
        watcher.send_signal(signal.SIGTERM)
        watcher.wait()
        first.wait()


if __name__ == "__main__":
    everywhere = [fifty_competitors, again_after_death, leaders_die, priority_and_resignation]
    here = [slots, server_away_while_it_runs, health, keep_running, lead_lost, stands_again, watching]
    main([together(*everywhere)] if KIND == "zookeeper" else everywhere + here)
