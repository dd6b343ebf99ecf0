"""Files of members are damaged while they are down: nothing that was acknowledged is lost, and they mend each other."""
import os
import re
import signal
import struct
import subprocess
import time

from ensemble import Ensemble, eventually, main


def newest(member, kind):
    names = [n for n in os.listdir(member.directory) if re.fullmatch(kind + r"\.[0-9a-f]{16}", n)]
    return f"{member.directory}/{max(names)}"


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        (byte,) = file.read(1)
        file.seek(offset)
        file.write(bytes([byte ^ 4]))


def end_of(path):
    """Where what was written ends: the rest is preallocated zeros."""
    with open(path, "rb") as file:
        return len(file.read().rstrip(b"\0"))


def batches(path):
    """Of a segment of the log: the offset, the first entry and the number of entries of each batch."""
    with open(path, "rb") as file:
        log = file.read()
    if not log.startswith(b"conclave log 3"):
        return
    magic = 0x68637462 ^ struct.unpack_from("<I", log, 16)[0]
    offset = 80
    while offset + 56 <= len(log):
        found, size, first, _, _, count = struct.unpack_from("<IIQQQI", log, offset)
        if found != magic:
            return
        yield offset, first, count
        offset += ((56 + size + 7) & ~7) + 8


def flip_an_entry(log):
    """In the batch in the middle; what is between batches is not looked at."""
    all_of_them = list(batches(log))
    flip(log, all_of_them[len(all_of_them) // 2][0] + 58)


def files(member, kind):
    return [f"{member.directory}/{name}" for name in sorted(os.listdir(member.directory))
            if re.fullmatch(kind + r"\.[0-9a-f]{16}", name)]


def conclave(member, *arguments):
    return subprocess.run([member.program, *arguments, "--data", member.directory], capture_output=True, text=True)


def value(ensemble, *members):
    client = ensemble.client(*members)
    client.sync("/n")
    return client.get("/n")[0]


def flipped_bit_in_the_last_batch(directory):
    """Two of three have acknowledged a write, and one of them loses it: the other two elect nobody without it, and with
    the third it is mended."""
    ensemble = Ensemble(directory).start()
    leader, (damaged, behind) = ensemble.roles()
    client = ensemble.client(leader)
    client.create("/n", b"old")
    client.sync("/n")
    behind.kill()
    client.set("/n", b"new")
    for member in (leader, damaged):
        member.kill()
    log = newest(damaged, "log")
    flip(log, end_of(log) - 30)
    for member in (damaged, behind):
        member.start()
    assert "this server asks the others for what it has lost" in damaged.log(), damaged.log()
    time.sleep(2)  # several election timeouts
    assert [m.follows()[1] for m in (damaged, behind)] == [None, None], "elected without the write"
    status = conclave(damaged, "ensemble", "status")
    assert "takes no part until its files are mended" in status.stdout and "1 are lacking" in status.stdout, status
    leader.start()
    eventually(lambda: "the damaged files are mended" in damaged.log(), "the damaged member has its write again")
    ensemble.leader()
    leader.kill()
    ensemble.leader([damaged, behind])
    assert value(ensemble, damaged, behind) == b"new"
    ensemble.stop()


def unknown_end(directory):
    """The end of a log is gone, and nobody can say what it held: the member has no vote until it has caught up."""
    ensemble = Ensemble(directory).start()
    damaged = ensemble.followers()[0]
    client = ensemble.client(damaged)
    client.create("/n")
    for number in range(20):
        client.set("/n", b"%d" % number)
    damaged.kill()
    os.remove(newest(damaged, "log"))
    damaged.start()
    assert "it does not vote until the leader has sent it again" in damaged.log(), damaged.log()
    ensemble.leader()
    eventually(lambda: "votes again" in damaged.log(), "the damaged member has caught up")
    assert value(ensemble, damaged) == b"19"
    ensemble.stop()


def first_snapshot(directory):
    """The only snapshot is damaged: the log still has everything."""
    ensemble = Ensemble(directory, options=["--set", "snapCount=100"]).start()
    damaged = ensemble.followers()[0]
    client = ensemble.client(damaged)
    client.create("/n")
    for number in range(130):
        client.set("/n", b"%d" % number)
    eventually(lambda: any(n.startswith("snapshot.") for n in os.listdir(damaged.directory)), "a snapshot")
    damaged.kill()
    flip(newest(damaged, "snapshot"), 60)
    damaged.start()
    assert "a damaged snapshot was renamed to damaged.*" in damaged.log(), damaged.log()
    assert "does not vote" not in damaged.log(), damaged.log()
    ensemble.leader()
    assert value(ensemble, damaged) == b"129"
    ensemble.stop()


def in_the_middle(directory):
    """A batch in the middle of a log, while the others serve."""
    ensemble = Ensemble(directory).start()
    damaged = ensemble.followers()[0]
    client = ensemble.client(damaged)
    client.create("/n")
    for number in range(60):
        client.set("/n", b"%d" % number)
    damaged.kill()
    log = newest(damaged, "log")
    flip_an_entry(log)
    damaged.start()
    eventually(lambda: "the damaged files are mended" in damaged.log(), "the damaged member is mended")
    ensemble.leader()
    assert "does not vote" not in damaged.log(), damaged.log()
    assert value(ensemble, damaged) == b"59"
    damaged.kill()
    said = conclave(damaged, "recover")
    assert said.returncode == 0 and "all is good" in said.stdout, said
    ensemble.stop()


def cut_by_hand(directory):
    """What `conclave recover --cut` has shortened does not vote before it has caught up."""
    ensemble = Ensemble(directory).start()
    damaged = ensemble.followers()[0]
    client = ensemble.client(damaged)
    client.create("/n")
    for number in range(60):
        client.set("/n", b"%d" % number)
    damaged.kill()
    log = newest(damaged, "log")
    flip_an_entry(log)
    said = conclave(damaged, "recover", "--cut")
    assert said.returncode == 0 and "vote: withheld" in said.stdout, said
    (usable,) = re.findall(r"the log can be used up to entry (\d+)", said.stdout)
    assert f"what is left: entries up to {usable} " in said.stdout, said
    damaged.start()
    ensemble.leader()
    eventually(lambda: "votes again" in damaged.log(), "the damaged member has caught up")
    assert value(ensemble, damaged) == b"59"
    ensemble.stop()


def on_each(directory):
    """Every server has lost two thirds of its log, each others, and all but one have lost their snapshots."""
    ensemble = Ensemble(directory, options=["--set", "snapCount=100"]).start()
    client = ensemble.client()
    client.create("/n")
    written = [client.create("/n/", b"%d" % number, sequence=True) for number in range(250)]
    client.stop()  # it would go to another server
    leader = ensemble.leader()
    eventually(lambda: "behind" not in conclave(leader, "ensemble", "status").stdout, "all have all of it")
    for member in ensemble.members:
        eventually(lambda: files(member, "snapshot"), "a snapshot")
    for member in ensemble.members:
        member.send(signal.SIGSTOP)
    for member in ensemble.members:
        member.kill()
    damages = 0
    for place, member in enumerate(ensemble.members):
        for log in files(member, "log"):
            for offset, first, count in list(batches(log)):
                if any(index % 3 == place for index in range(first, first + count)):
                    continue  # of each entry this is the last copy
                flip(log, offset + (12 if first % 2 else 58))  # in the header, or in the entries
                damages += 1
        for snapshot in files(member, "snapshot") if place else ():
            flip(snapshot, 60)
    assert damages > 300, damages
    ensemble.start()
    for member in ensemble.members:
        assert "the damaged files are mended" in member.log(), member.log()
        assert "does not vote" not in member.log(), member.log()
        client = ensemble.client(member)
        client.sync("/n")
        assert sorted(client.get_children("/n")) == [path[3:] for path in written]
    for member in ensemble.members:
        member.kill()
        said = conclave(member, "recover")
        assert said.returncode == 0 and "all is good" in said.stdout, said
    ensemble.stop()


def votes(directory):
    """Each member has lost one of two copies of its vote, and all vote; one that has lost both does not start."""
    ensemble = Ensemble(directory).start()
    ensemble.client(*ensemble.members).create("/n", b"kept")
    vote = {member: f"{member.directory}/vote" for member in ensemble.members}
    eventually(lambda: all(os.path.getsize(path) > 4096 for path in vote.values()), "all know their ensemble")
    for place, member in enumerate(ensemble.members):
        member.kill()
        flip(vote[member], (20, 4096 + 30, 63)[place])
    ensemble.start()
    ensemble.leader()
    assert value(ensemble, *ensemble.members) == b"kept"
    for member in ensemble.members:
        assert "a copy of the vote was damaged" in member.log(), member.log()
    lost = ensemble.followers()[0]
    lost.kill()
    for offset in (20, 4096 + 30):
        flip(vote[lost], offset)
    lost.spawn()
    assert lost.end() == 3, lost.log()
    assert "has to be removed ('conclave ensemble remove')" in lost.log(), lost.log()
    ensemble.stop()


if __name__ == "__main__":
    main([flipped_bit_in_the_last_batch, unknown_end, first_snapshot, in_the_middle, cut_by_hand, on_each, votes])
