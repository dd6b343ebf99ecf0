"""What servers record of their consensus ('conclave serve --record'), replayed and judged.

WRITES=100000 tests/run records for longer runs.  REGENERATE=1 WRITES=20 keeps the record of a leader that was killed
and came back, for a core whose steps or state have changed on purpose."""
import json
import os
import shutil
import signal
import struct
import subprocess

from ensemble import TIMEOUT_S, Ensemble, eventually, main, trim

WRITES = int(os.environ.get("WRITES", "200"))
GOLDEN = "tests/golden/server.record"


def recording(directory, count=3, options=()):
    ensemble = Ensemble(directory, count, options)
    for member in ensemble.members:
        member.record = f"{directory}/record{member.number}"
        member.options += ["--record", member.record]
    return ensemble.start()


def trace(what, *records):
    return subprocess.run([os.environ["CONCLAVE"], "trace", what, "--json", *records], text=True,
                          capture_output=True, timeout=TIMEOUT_S + WRITES / 1000)


def judged(*records):
    """The report on records in which nothing is violated."""
    done = trace("merge", *records)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    verdicts = report["verdicts"]
    assert verdicts.pop("why") == {} and len(verdicts) == 5 and set(verdicts.values()) == {"holds"}, verdicts
    replayed = json.loads(trace("replay", *records).stdout)
    assert replayed["steps"] >= report["steps"] and "verdicts" not in replayed  # the server may go on
    return report


def refused(reason, *records):
    done = trace("merge", *records)
    assert done.returncode == 2 and reason in done.stderr, (done.returncode, done.stdout, done.stderr)


def drawn(killed, *records):
    """The entries of the trace, in which every message was sent before it arrived, and as it arrived.  The last steps of a
    server that was killed may be in no record; that happens to each at the end, and to one of them before."""
    command = [os.environ["CONCLAVE"], "trace", "merge", "--trace"]
    for form in "text", "mermaid", "svg", "graph":
        done = subprocess.run([*command, form, *records], text=True, capture_output=True, timeout=TIMEOUT_S + WRITES / 1000)
        assert done.returncode == 0 and "server3" in done.stdout and "one vote" in done.stderr, (form, done.stderr)
    done = subprocess.run([*command, "json", *records], text=True, capture_output=True, timeout=TIMEOUT_S + WRITES / 1000)
    entries = {entry["index"]: entry for entry in json.loads(done.stdout)["entries"]}
    arrivals = [entry for entry in entries.values() if entry["type"] == "receive"]
    for channel in {(arrival["peer"], arrival["process"]) for arrival in arrivals if arrival["peer"] != f"server{killed}"}:
        sent = ["match" in arrival for arrival in arrivals if (arrival["peer"], arrival["process"]) == channel]
        assert sent == sorted(sent, reverse=True), (channel, sent)
    arrivals = [arrival for arrival in arrivals if "match" in arrival]
    for arrival in arrivals:
        sending = entries[arrival["match"]]
        assert sending["type"] == "send" and sending["index"] < arrival["index"], (sending, arrival)
        assert (sending["process"], sending["peer"]) == (arrival["peer"], arrival["process"]), (sending, arrival)
        assert (sending["message"], sending["fields"]) == (arrival["message"], arrival["fields"]), (sending, arrival)
    assert len({arrival["match"] for arrival in arrivals}) == len(arrivals) > WRITES / 50
    return list(entries.values())


def write(zk, path, count=WRITES):
    done = [zk.set_async(path, b"%d" % number) for number in range(count)]
    for one in done:
        one.get(timeout=TIMEOUT_S)


def leader_killed(directory):
    ensemble = recording(directory)
    zk = ensemble.client()
    zk.create("/n")
    write(zk, "/n")
    first = ensemble.leader()
    term = first.follows()[0]
    first.kill()
    eventually(lambda: ensemble.leader().follows()[0] > term, "another leader")
    write(zk, "/n")
    first.start()
    ensemble.leader()
    write(zk, "/n")
    zk.sync("/n")
    eventually(lambda: judged(*(m.record for m in ensemble.members))["steps"] > 2 * WRITES, "all is recorded")
    ensemble.stop()
    if "REGENERATE" in os.environ:
        shutil.copyfile(first.record, GOLDEN)
    report = judged(*(member.record for member in ensemble.members))
    assert report["servers"] == 3 and report["starts"] == 4 and report["gaps"] == 0, report
    shown = [entry["type"] for entry in drawn(first.number, *(member.record for member in ensemble.members))]
    assert shown.count("start") == 3 and shown.count("crash") == shown.count("recover") == 1, shown
    assert shown.index("crash") < shown.index("recover") and "elected" in shown[:shown.index("recover")], shown


def follower_killed(directory):
    """What was sent to a server that did not get it stays without an arrival, and those that follow find their own."""
    ensemble = recording(directory)
    leader, (away, _) = ensemble.roles()
    zk = ensemble.client(leader)
    zk.create("/n")
    away.send(signal.SIGSTOP)
    for one in [zk.set_async("/n", b"%d" % number) for number in range(WRITES)]:
        one.wait(timeout=TIMEOUT_S)  # if the leader is another one meanwhile, some fail
    away.kill()
    away.start()
    ensemble.leader()
    away.send(signal.SIGTERM)  # so that its record is whole
    assert away.end() == 0, away.log()
    ensemble.stop()
    shown = drawn(away.number, *(member.record for member in ensemble.members))
    lost = [entry for entry in shown if entry["type"] == "send" and entry["peer"] == f"server{away.number}" and "match" not in entry]
    assert lost, "nothing was lost"


def changes(directory):
    """Leadership that is handed over, and a server that was away for so long that it gets a snapshot."""
    ensemble = recording(directory, options=[
        "--set", "snapCount=20", "--set", "preAllocSize=256", "--set", "autopurge.snapRetainCount=1",
        "--set", "ensemble.keptBytes=65536"])
    zk = ensemble.client()
    zk.create("/n")
    write(zk, "/n")
    leader = ensemble.leader()
    leader.send(signal.SIGTERM)
    assert leader.end() == 0, leader.log()
    ensemble.leader()
    write(zk, "/n")
    leader.start()
    away = ensemble.followers()[0]
    away.kill()
    old = {name for m in ensemble.running() for name in os.listdir(m.directory) if name.startswith("log.")}
    trim(ensemble.running(), lambda: zk.retry(zk.set, "/n", bytes(100000)), old)
    away.start()
    eventually(lambda: "a snapshot of the leader was installed" in away.log(), "a snapshot")
    write(zk, "/n")
    ensemble.stop()
    report = judged(*(member.record for member in ensemble.members))
    assert report["servers"] == 3 and report["starts"] == 5, report


def full_disk(directory):
    """A record whose disk is full ends with a line in the log; the server goes on.  The small disk is mounted where
    only that server sees it, which root can do."""
    small = f"{directory}/small"
    os.mkdir(small)
    mount = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=16k none {small} && exec "$@"', "sh"]
    if subprocess.run([*mount, "true"], capture_output=True).returncode != 0:
        print("left out: only root can mount a small disk")
        return
    ensemble = Ensemble(directory, 1, ["--record", f"{small}/record"], prefixes=[mount]).start()
    member = ensemble.members[0]
    zk = ensemble.client()
    zk.create("/n")

    def has_ended():
        write(zk, "/n", 200)
        return member.log().count("the record cannot be written any more")
    eventually(has_ended, "the disk is full")
    write(zk, "/n", 1000)
    assert has_ended() == 1 and "No space left" in member.log(), member.log()
    with open(f"/proc/{member.process.pid}/root{small}/record", "rb") as file, open(f"{directory}/copy", "wb") as copy:
        copy.write(file.read())
    assert judged(f"{directory}/copy")["steps"]
    ensemble.stop()


def blocks(data):
    at = 0
    while at < len(data):
        size, = struct.unpack_from("<I", data, at)
        yield data[at + 8:at + 8 + size]
        at += 8 + size


def damaged_and_foreign(directory):
    ensemble = recording(directory, 1)
    zk = ensemble.client()
    zk.create("/n")
    write(zk, "/n", 50)
    ensemble.stop()
    record = ensemble.members[0].record
    whole = judged(record)
    with open(record, "rb") as file:
        data = file.read()
    other = f"{directory}/other"

    def with_bytes(changed):
        with open(other, "wb") as file:
            file.write(changed)
        return other

    torn = judged(with_bytes(data[:-3]))
    assert torn["torn"] == 1 and torn["steps"] < whole["steps"]
    first, *_ = list(blocks(data))
    flipped = bytearray(data)
    flipped[8 + len(first) // 2] ^= 1
    refused("checksum", with_bytes(flipped + data))
    refused("not one whole step", with_bytes(data[:20]))
    # A server goes on after what a crash has torn, and leaves alone what is no record.
    shutil.copy(with_bytes(data[:-3]), record)
    ensemble.members[0].start()
    eventually(lambda: ensemble.members[0].follows()[1], "it leads")
    eventually(lambda: judged(record)["starts"] == 2, "its second start is in the record")
    assert judged(record)["torn"] == 0
    ensemble.members[0].kill()
    with open(record, "wb") as file:  # as a power failure may leave it
        file.write(bytes(len(data)))
    ensemble.members[0].start()
    eventually(lambda: os.path.getsize(record) not in (0, len(data)) and judged(record)["starts"] == 1, "a new record")
    ensemble.members[0].kill()
    for path, reason in ((record, "this is no record of a server, and is left as it is"),
                         (f"{record}.1", "this is no record of a server, and the record would replace it")):
        with open(path, "w") as file:
            file.write("precious text of somebody else\n")
        ensemble.members[0].spawn()
        assert ensemble.members[0].end() != 0
        assert reason in ensemble.members[0].log(), ensemble.members[0].log()
        with open(path) as file:
            assert file.read() == "precious text of somebody else\n"


main([leader_killed, follower_killed, changes, full_disk, damaged_and_foreign])
