#!/usr/bin/env python3
"""conclave locks and unlock, with real holders and waiters.

usage: locks.py SERVER NAME    (--list prints the names; CONCLAVE is in the environment)
"""
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

sys.path.insert(0, os.path.dirname(__file__))
from patience import TIMEOUT_S, eventually, judged, serves  # noqa: E402

CONCLAVE = os.environ["CONCLAVE"]
CALM = "40s"  # of wrappers that are not to lose their locks: the longest that servers allow
server = None
clients, started = [], []


def client():
    clients.append(KazooClient(server, timeout=40))
    clients[-1].start(timeout=TIMEOUT_S)
    return clients[-1]


def conclave(*words, status=0):
    done = subprocess.run([CONCLAVE, *words, "--server", server], capture_output=True, text=True, timeout=TIMEOUT_S,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == status, (words, done)
    return done.stdout if status == 0 else done.stdout + done.stderr


def documents(*words, status=0):
    return [json.loads(line) for line in conclave(*words, "--json", status=status).splitlines()]


def wait_in_background(lock):
    threading.Thread(target=lock.acquire, daemon=True).start()


def queue_of(name):
    return documents("locks", name)[0]["queue"]


def test_list():
    """Holder, label, token and queue; pages."""
    holder, waiter = client(), client()
    for name in ("b-one", "b-two", "b-three"):
        assert holder.Lock(f"/conclave/locks/{name}", f"label of {name}").acquire()
    wait_in_background(waiter.Lock("/conclave/locks/b-two", "wants it"))
    eventually(lambda: queue_of("b-two"), "somebody waits")
    (one,) = documents("locks", "b-two")
    (held,), (queued,) = one["holders"], one["queue"]
    stat = holder.exists(f"/conclave/locks/b-two/{held['node']}")
    assert held["token"] == stat.czxid and held["label"] == "label of b-two", held
    assert int(held["session"], 16) == holder.client_id[0]
    assert queued["label"] == "wants it" and queued["token"] > held["token"] and queued["wait"] is None
    every = {entry["lock"]: entry for entry in documents("locks")}
    assert every["b-two"]["waiting"] == 1 and every["b-one"]["waiting"] == 0
    assert every["b-two"]["holders"][0]["token"] == held["token"]
    assert [entry["lock"] for entry in documents("locks", "--after", "b-", "--limit", "2")] == ["b-one", "b-three"]
    assert documents("locks", "--after", "b-three", "--limit", "1")[0]["lock"] == "b-two"
    assert documents("locks", "--after", "zzz") == []
    text = conclave("locks", "b-two")
    assert "held by label of b-two" in text and "1. wants it waits" in text and "no estimate" in text, text
    assert "--after b-one" in conclave("locks", "--after", "b-", "--limit", "1")
    assert "there is no lock" in conclave("locks", "no-such", status=1)
    assert "looks like the node of one who waits" in conclave("locks", "a/x-lock-0000000007", status=2)


def test_folders():
    """A lock may be in a folder, which may be a lock itself; a folder alone is none."""
    names = ["f", "f/prod", "f/prod/eu", "f-2", "g/a", "g/b/c"]
    holder, waiter = client(), client()
    for name in names:
        started.append(subprocess.Popen([CONCLAVE, "lock", name, "--ttl", CALM, "--label", name, "--server", server,
                                         "--", "sleep", "1000"]))

    def listed(*more):
        return [entry for entry in documents("locks", *more) if entry["lock"][0] in "fg"]
    eventually(lambda: [one["holders"][0]["label"] for one in listed() if one["holders"]] == names, "all hold theirs")
    for count in (1, 2, 3):
        pages = []
        while page := documents("locks", "--limit", str(count), "--after", pages[-1] if pages else "e"):
            pages += [entry["lock"] for entry in page]
            assert len(page) <= count, page
        assert [name for name in pages if name[0] in "fg"] == names, (count, pages)
    assert "held by f/prod/eu" in conclave("locks", "f/prod/eu")
    assert "--after f/prod\n" in conclave("locks", "--after", "f", "--limit", "1")
    watching = subprocess.Popen([CONCLAVE, "locks", "--watch", "--json", "--server", server], stdout=subprocess.PIPE,
                                text=True)
    started.append(watching)
    known = set()
    while not known.issuperset(names):
        known.add(json.loads(watching.stdout.readline())["lock"])
    assert "g" not in known and "g/b" not in known, known
    assert holder.Lock("/conclave/locks/g/b/new", "later").acquire()
    while json.loads(watching.stdout.readline())["lock"] != "g/b/new":
        pass
    first, second = (client.Lock(f"/conclave/locks/g/{name}", name) for client, name in ((holder, "x"), (waiter, "y")))
    assert first.acquire() and second.acquire()
    wait_in_background(holder.Lock("/conclave/locks/g/y", "x"))
    wait_in_background(waiter.Lock("/conclave/locks/g/x", "y"))
    eventually(lambda: queue_of("g/x") and queue_of("g/y"), "both wait")
    (circle,) = documents("locks", "--deadlocks", status=1)
    assert {wait["lock"] for wait in circle["circle"]} == {"g/x", "g/y"}, circle
    holder.create("/conclave/locks/g/secret", acl=[make_digest_acl("user", "secret", all=True)])
    (secret,) = [entry for entry in documents("locks") if entry["lock"] == "g/secret"]
    assert secret["refused"] and "(not allowed to look)" in conclave("locks"), secret
    conclave("unlock", "--force", "--yes", "f/prod/eu")
    eventually(lambda: not documents("locks", "f/prod/eu")[0]["holders"], "it was taken away")


def test_kinds():
    """Shared locks and labels that a terminal would obey."""
    first, second, third = client(), client(), client()
    assert first.ReadLock("/conclave/locks/k", "\x1b[2J one").acquire()
    assert second.ReadLock("/conclave/locks/k", "two").acquire()
    wait_in_background(third.WriteLock("/conclave/locks/k", "three"))
    eventually(lambda: queue_of("k"), "the writer waits")
    (one,) = documents("locks", "k")
    assert [entry["shared"] for entry in one["holders"]] == [True, True]
    assert len(one["queue"]) == 1 and not one["queue"][0]["shared"]
    assert "\x1b" not in conclave("locks", "k") + conclave("locks")
    (row,) = [entry for entry in documents("locks") if entry["lock"] == "k"]
    assert len(row["holders"]) == 2 and row["waiting"] == 1


def test_many():
    """More locks than a page has, of which some go while they are listed."""
    holder = client()
    holder.ensure_path("/conclave/locks")
    names = [f"m{i:05}" for i in range(int(os.environ.get("LOCKS", 2500)))]
    for start in range(0, len(names), 500):
        transaction = holder.transaction()
        for name in names[start:start + 500]:
            transaction.create(f"/conclave/locks/{name}")
            transaction.create(f"/conclave/locks/{name}/{'0' * 32}__lock__0000000000", ephemeral=True)
        transaction.commit()
    listed = [entry for entry in documents("locks") if entry["lock"].startswith("m")]
    assert [entry["lock"] for entry in listed] == names
    assert all(len(entry["holders"]) == 1 for entry in listed)
    assert len(documents("locks", "--after", "m01000", "--limit", "1200")) == 1200


def test_deadlocks():
    """Two that wait for each other are named; a queue is no circle."""
    anna, bob, carl = client(), client(), client()
    assert anna.Lock("/conclave/locks/d-x", "anna").acquire() and bob.Lock("/conclave/locks/d-y", "bob").acquire()
    wait_in_background(carl.Lock("/conclave/locks/d-x", "carl"))
    eventually(lambda: len(queue_of("d-x")) == 1, "carl waits")
    assert "nobody waits in a circle" in conclave("locks", "--deadlocks")
    wait_in_background(anna.Lock("/conclave/locks/d-y", "anna"))
    wait_in_background(bob.Lock("/conclave/locks/d-x", "bob"))
    eventually(lambda: len(queue_of("d-x")) == 2 and queue_of("d-y"), "all wait")
    (circle,) = documents("locks", "--deadlocks", status=1)
    waits = {wait["waiter"]["label"]: (wait["lock"], wait["waits_for"]["label"]) for wait in circle["circle"]}
    # bob waits for carl, who came before it, and carl for anna.
    assert waits == {"anna": ("d-y", "bob"), "bob": ("d-x", "carl"), "carl": ("d-x", "anna")}, waits


def test_deadlocks_of_wrappers():
    """A wrapper waits for what its command waits for, however deep that is."""
    with tempfile.TemporaryDirectory() as place:
        def nested(label, *names):
            """Wrappers within each other; the innermost begins when there is a file of that label."""
            command = ["sleep", "1000"]
            for depth, name in reversed(list(enumerate(names))):
                command = [CONCLAVE, "lock", name, "--label", f"{label} {depth}", "--ttl", CALM, "--", *command]
                if depth == len(names) - 1:
                    command = ["sh", "-c", 'until [ -e "$0" ]; do sleep 0.05; done; exec "$@"', f"{place}/{label}", *command]
            started.append(subprocess.Popen(command, env={**os.environ, "CONCLAVE_SERVER": server}))

        def is_held(name, label):
            return any([one["label"] for one in lock["holders"]] == [label] for lock in documents("locks")
                       if lock["lock"] == name)

        def begin(label, at):
            with open(f"{place}/{label}", "w", encoding="ascii"):
                pass
            eventually(lambda: any(one["label"].startswith(label) for one in queue_of(at)), f"{label} waits at {at}")

        nested("eva", "n-1", "n-alone", "n-2")
        eventually(lambda: is_held("n-alone", "eva 1"), "eva has two")
        nested("fred", "n-2", "n-1")
        eventually(lambda: is_held("n-2", "fred 0"), "fred has one")
        begin("eva", "n-2")
        assert "nobody waits in a circle" in conclave("locks", "--deadlocks")
        begin("fred", "n-1")
        (circle,) = documents("locks", "--deadlocks", status=1)
        waits = {wait["waiter"]["label"]: (wait["lock"], wait["waits_for"]["label"]) for wait in circle["circle"]}
        assert waits == {"eva 0": (None, "eva 2"), "eva 2": ("n-2", "fred 0"), "fred 0": (None, "fred 1"),
                         "fred 1": ("n-1", "eva 0")}, waits
        text = conclave("locks", "--deadlocks", status=1)
        assert "4 sessions wait for each other" in text and text.count("which its command has started") == 2, text


def test_watch():
    """Every change; holds that were seen make estimates."""
    worker = client()
    watching = subprocess.Popen([CONCLAVE, "locks", "w", "--watch", "--json", "--server", server],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    started.append(watching)
    lock = worker.Lock("/conclave/locks/w", "worker")
    lock.acquire()
    assert json.loads(watching.stdout.readline())["event"] == "granted"
    lock.release()
    released = json.loads(watching.stdout.readline())
    assert released["event"] == "released" and released["label"] == "worker" and released["held_ms"] >= 0
    for _ in range(6):
        with worker.Lock("/conclave/locks/w", "worker"):
            granted = json.loads(watching.stdout.readline())
            assert granted["event"] == "granted" and granted["lock"] == "w"
        assert json.loads(watching.stdout.readline())["event"] == "released"
    watching.terminate()
    assert watching.wait(TIMEOUT_S) == 0


def test_granted_since():
    """Who was seen to wait holds it since it was granted, not since it began to wait."""
    holder = client()
    lock = holder.Lock("/conclave/locks/g", "holder")
    assert lock.acquire()
    watching = subprocess.Popen([CONCLAVE, "locks", "g", "--watch", "--json", "--server", server],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    started.append(watching)

    def next_of(label, event):
        while True:
            told = json.loads(watching.stdout.readline())
            if (told["label"], told["event"]) == (label, event):
                return told
    next_of("holder", "granted")
    other = client().Lock("/conclave/locks/g", "other")  # says nothing of since when it holds it
    wait_in_background(other)
    assert "held_since_ms" not in next_of("other", "waits")
    time.sleep(0.1)
    for label, release in ("other", lock.release), ("wrapper", other.release):
        if label == "wrapper":
            started.append(subprocess.Popen([CONCLAVE, "lock", "g", "--label", label, "--ttl", CALM, "--server", server,
                                             "--recipe", "kazoo", "--", "sleep", "1000"]))
            next_of(label, "waits")
            time.sleep(0.1)
        released = int(time.time() * 1000)
        release()
        granted = next_of(label, "granted")
        assert granted["since_ms"] < released <= granted["held_since_ms"], (released, granted)
    watching.terminate()
    assert watching.wait(TIMEOUT_S) == 0


def test_picture():
    """On a terminal: who waits, with an estimate, once enough holds were seen."""
    holder, waiter = client(), client()
    primary, secondary = pty.openpty()
    watching = subprocess.Popen([CONCLAVE, "locks", "--watch", "p", "--server", server], stdout=secondary,
                                stderr=secondary, stdin=secondary)
    started.append(watching)
    os.close(secondary)
    seen = []

    def read():
        try:
            while more := os.read(primary, 65536):
                seen.append(more.decode(errors="replace"))
        except OSError:
            pass
    threading.Thread(target=read, daemon=True).start()
    picture = lambda: "".join(seen).rsplit("\x1b[H\x1b[J", 1)[-1]  # noqa: E731
    eventually(lambda: "nobody holds it" in picture(), "the first picture")
    for number in range(6):
        with holder.Lock("/conclave/locks/p", f"holder {number}"):
            eventually(lambda: f"held by holder {number}" in picture(), "a holder is seen")
    assert holder.Lock("/conclave/locks/p", "holder").acquire()
    wait_in_background(waiter.Lock("/conclave/locks/p", "waiter"))
    eventually(lambda: re.search(r"1\. waiter waits.*(more|ever before)", picture()), "an estimate")
    eventually(lambda: "estimated from 6 holds" in picture(), "what it is made of")
    watching.send_signal(signal.SIGINT)
    assert watching.wait(TIMEOUT_S) == 0


def test_unlock():
    """It asks, and takes the lock from the holder alone."""
    holder, waiter = client(), client()
    assert holder.Lock("/conclave/locks/u", "stuck").acquire()
    follower = waiter.Lock("/conclave/locks/u", "next")
    wait_in_background(follower)
    eventually(lambda: queue_of("u"), "somebody waits")
    assert "--force takes it away" in conclave("unlock", "u", status=2)
    assert "no terminal" in conclave("unlock", "--force", "u", status=2)
    assert "nobody holds" in conclave("unlock", "--force", "--yes", "no-such", status=1)
    for answer, status in (b"\n", 1), (b"y\n", 0):
        primary, secondary = pty.openpty()
        asking = subprocess.Popen([CONCLAVE, "unlock", "--force", "u", "--server", server], stdin=secondary,
                                  stdout=secondary, stderr=secondary)
        started.append(asking)
        os.close(secondary)
        shown = ""
        while "[y/N]" not in shown:
            shown += os.read(primary, 65536).decode()
        assert "held by stuck" in shown and "1. next waits" in shown, shown
        os.write(primary, answer)
        assert asking.wait(TIMEOUT_S) == status
        os.close(primary)
        assert (documents("locks", "u")[0]["holders"][0]["label"] == "stuck") == bool(status)
    eventually(lambda: follower.is_acquired, "the next one has it")
    (done,) = documents("unlock", "--force", "--yes", "u")
    assert done["removed"][0]["label"] == "next"


TESTS = {name[5:]: test for name, test in globals().items() if name.startswith("test_")}


def main():
    global server
    if sys.argv[1:] == ["--list"]:
        print("\n".join(TESTS))
        return 0
    server = sys.argv[1]
    serves(server)
    with judged():
        try:
            TESTS[sys.argv[2]]()
        finally:
            for process in started:
                process.kill()
                process.wait()
            for each in clients:
                each.stop()
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)
