"""Who is a member, and who only has a member's number: lost and mixed-up data, other ensembles, old configurations."""
import os
import shutil
import socket
import struct
import subprocess
import time

from kazoo import exceptions as error

from ensemble import TIMEOUT_S, Ensemble, Member, connect, eventually, main, raises, without_election
from members import (BIG, command, config, done, join, joiner, knows_all, same_config_everywhere, started, status,
                     transferred)
from strangers import frame, hello


def ids(zk):
    """The directory.N and ensemble lines of /zookeeper/config."""
    return dict(line.split("=", 1) for line in config(zk)[0] if line.startswith(("directory.", "ensemble")))


def recorded(ensemble, *numbers):
    """Waits until all servers that run know a configuration with the ids of these members' directories."""
    zk = ensemble.client(ensemble.leader())
    wanted = {"ensemble", *(f"directory.{n}" for n in numbers)}
    found = eventually(lambda: (found := ids(zk)).keys() == wanted and found, f"the ids of {numbers}")
    same_config_everywhere(ensemble)
    return found


def wiped_member(directory):
    """A member that has lost its data is refused, both sides say so, and it has no vote; removed and added again it
    is a member as before."""
    ensemble = started(directory)
    before = recorded(ensemble, 1, 2, 3)
    leader, (wiped, other) = ensemble.roles()
    client = ensemble.client(leader, other)
    client.create("/before", b"kept")
    wiped.kill()
    shutil.rmtree(wiped.directory)
    wiped.start()
    said = "another data directory than the one it became a member with"
    for member in wiped, leader, other:
        eventually(lambda m=member: said in m.log(), f"server {member.number} says so")
    eventually(lambda: said in command(leader, "status")[1], "so does the status")
    client.create("/after")
    leader.kill()
    eventually(lambda: other.follows()[1] is None, "it notices")
    time.sleep(2)  # several election timeouts
    assert other.follows()[1] is None, "a server that has lost its data elected another"
    leader.start()
    leader = ensemble.leader([leader, other])
    done(leader, "remove", str(wiped.number))
    wiped.kill()
    shutil.rmtree(wiped.directory)
    wiped.options.append("--join")
    wiped.start()
    done(leader, "add", f"{wiped.number}={wiped.peer}")
    after = recorded(ensemble, 1, 2, 3)
    changed = {key for key in before if before[key] != after[key]}
    assert changed == {f"directory.{wiped.number}"}, (before, after)
    zk = ensemble.client(wiped)
    zk.sync("/before")
    assert zk.get("/before")[0] == b"kept"
    ensemble.stop()


def refuses(member, complaint):
    member.spawn()
    assert member.end() == 3, member.log()
    assert complaint in member.log(), member.log()


def mixed_up_data(directory):
    """The data of another server, and data without its vote."""
    ensemble = started(directory)
    recorded(ensemble, 1, 2, 3)
    first, second, third = ensemble.members
    for member in ensemble.members:
        member.kill()
    os.rename(second.directory, f"{directory}/away")
    os.rename(third.directory, second.directory)
    refuses(second, "the data is another server's")
    os.rename(second.directory, third.directory)
    os.rename(f"{directory}/away", second.directory)
    os.rename(f"{first.directory}/vote", f"{directory}/vote")
    refuses(first, "the file 'vote' is missing")
    os.rename(f"{directory}/vote", f"{first.directory}/vote")
    for member in ensemble.members:
        member.start()
    ensemble.leader()
    ensemble.stop()


def founding(directory):
    """Servers with empty directories wait for each other, unless they are told that all are empty."""
    ensemble = Ensemble(directory)
    first, second, third = ensemble.members
    first.start()
    second.start()
    time.sleep(2)  # several election timeouts
    assert first.follows()[1] is second.follows()[1] is None, "two of three founded the ensemble"
    third.start()
    ensemble.leader()
    ensemble.stop()
    told = Ensemble(directory)
    for member in told.members:
        shutil.rmtree(member.directory)
    for member in told.members[:2]:
        member.start()
    for member in told.members[:2]:  # nothing has come of it so far
        member.kill()
        member.options.append("--found")
        member.start()
    told.leader(told.members[:2])
    told.members[2].start()
    told.leader()
    told.stop()


def log_lost(directory):
    """A member that has its vote, and has lost its log, does not vote before it has caught up."""
    ensemble = started(directory)
    recorded(ensemble, 1, 2, 3)
    leader, (lost, behind) = ensemble.roles()
    behind.kill()
    ensemble.client(leader, lost).create("/written")
    lost.kill()
    for name in os.listdir(lost.directory):
        if name.startswith(("log.", "snapshot.", "mark")):
            os.remove(f"{lost.directory}/{name}")
    leader.kill()
    lost.options.append("--found")
    lost.start()
    behind.start()
    time.sleep(2)  # several election timeouts
    assert [member.follows()[1] for member in (lost, behind)] == [None, None], "elected without the write"
    assert "the log of this server is gone, and only the file 'vote' is left" in lost.log()
    leader.start()
    ensemble.leader()
    zk = ensemble.client(lost)
    eventually(lambda: zk.exists("/written"), "it catches up")
    eventually(lambda: "this server has caught up with the leader, and votes again" in lost.log(), "it votes again")
    ensemble.stop()


def found_beside_data(directory):
    """Two of three have lost their data: no operator founds another ensemble beside the third."""
    ensemble = started(directory)
    recorded(ensemble, 1, 2, 3)
    ensemble.client(*ensemble.members).create("/kept")
    wiped = ensemble.members[:2]
    for member in wiped:
        member.kill()
        shutil.rmtree(member.directory)
        member.options.append("--found")
    for member in wiped:
        member.spawn()
    eventually(lambda: "server 3 has: this one has lost its own" in command(wiped[0], "status")[1], "it says so")
    time.sleep(2)  # several election timeouts
    assert [member.follows()[1] for member in wiped] == [None, None], "a second ensemble was founded"
    ensemble.stop()


def founding_after_another(directory):
    """Three of four have lost their data, and are to found an ensemble without the fourth.  Where they have heard of it
    they do not, because it has data; when it has ended it does not matter any more."""
    ensemble = started(directory, count=4)
    recorded(ensemble, 1, 2, 3, 4)
    *wiped, fourth = ensemble.members
    for member in wiped:
        member.kill()
        shutil.rmtree(member.directory)
        member.ensemble = member.ensemble.rsplit(",", 1)[0]
    for member in wiped[:2]:
        member.spawn()
        eventually(lambda m=member: "server 4, which is no member, has" in command(m, "status")[1], "it says so")
    wiped[2].spawn()
    time.sleep(2)  # several election timeouts
    assert [member.follows()[1] for member in wiped] == [None] * 3, "another ensemble was founded beside it"
    fourth.kill()
    ensemble.leader(wiped)
    ensemble.stop()


def former_directory(directory):
    """A member was removed, and added again with another directory.  With the former one it is not believed: it lacks
    what was acknowledged since."""
    ensemble = started(directory)
    recorded(ensemble, 1, 2, 3)
    leader, (behind, anew) = ensemble.roles()
    former = f"{directory}/former"
    anew.kill()
    done(leader, "remove", str(anew.number))
    shutil.move(anew.directory, former)
    anew.options.append("--join")
    anew.start()
    done(leader, "add", f"{anew.number}={anew.peer}")
    recorded(ensemble, 1, 2, 3)
    behind.kill()
    ensemble.client(leader, anew).create("/written")
    anew.kill()
    shutil.rmtree(anew.directory)
    shutil.move(former, anew.directory)
    anew.options.remove("--join")
    leader.kill()
    anew.start()
    behind.start()
    eventually(lambda: "the data directory that the member had before it was removed" in behind.log(), "it is refused")
    eventually(lambda: "another data directory than the one it became a member with" in anew.log(), "it says so, too")
    time.sleep(2)  # several election timeouts
    assert behind.follows()[1] is None, "elected without the write"
    leader.start()
    ensemble.leader([leader, behind])
    assert ensemble.client(behind).exists("/written")
    ensemble.stop()


def older_copy(directory):
    """A member comes back with an older copy of its own data: the leader, which has its acknowledgements, says so."""
    ensemble = started(directory)
    leader, (member, _) = ensemble.roles()
    zk = ensemble.client(leader)
    zk.create("/before")
    member.kill()
    shutil.copytree(member.directory, f"{directory}/copy", ignore=shutil.ignore_patterns("*.socket"))
    member.start()
    leader = ensemble.leader()
    for i in range(10):
        zk.create(f"/n-{i}")
    theirs = ensemble.client(member)
    eventually(lambda: theirs.exists("/n-9"), "it has all of them")
    ensemble.clients.remove(theirs)
    theirs.stop()
    time.sleep(0.5)  # acknowledged, too
    member.kill()
    member.start()
    eventually(lambda: connect(member.address).get("/n-9"), "it serves")
    assert "lost entries" not in leader.log()
    member.kill()
    shutil.rmtree(member.directory)
    shutil.move(f"{directory}/copy", member.directory)
    member.start()
    if ensemble.leader() is leader:
        eventually(lambda: "a member has lost entries that it had acknowledged" in leader.log(), "it says so")
    ensemble.stop()


def moved(ensemble, member):
    """It is to be found at another port from its next start on."""
    member.peer = at_other_port(member.peer, 500)
    for other in ensemble.members:
        other.ensemble = ",".join(f"{m.number}={m.peer}" for m in ensemble.members)


def at_other_port(address, places):
    host, port = address.rsplit(":", 1)
    return f"{host}:{int(port) - places}"


def copied_directory(directory):
    """A copy of a member's directory is started at another address, while just a majority lives: the member stays one,
    all say so, and the copy can take its place when it has ended."""
    ensemble = started(directory)
    recorded(ensemble, 1, 2, 3)
    leader, (member, other) = ensemble.roles()
    member.kill()
    shutil.copytree(member.directory, f"{directory}/copy/data{member.number}",
                    ignore=shutil.ignore_patterns("*.socket"))
    copy = Member(member.number, member.peer.rsplit(":", 1)[0], f"{directory}/copy", [], ())
    copy.address, copy.peer = at_other_port(copy.address, 400), at_other_port(copy.peer, 400)
    copy.ensemble = member.ensemble.replace(member.peer, copy.peer)
    member.start()
    other.kill()
    zk = ensemble.client(ensemble.leader([leader, member]))
    copy.spawn()
    said = "two processes run as that server"
    eventually(lambda: said in copy.log() and said in leader.log(), "both sides say so")
    eventually(lambda: said in command(leader, "status")[1], "so does the status")
    without_election(ensemble, lambda: zk.create("/beside", sequence=True) and time.sleep(1), "the copy disturbs them",
                     [leader, member])
    member.kill()
    leader, names = ensemble.leader([leader, copy]), zk.get_children("/")
    last = max(name for name in names if name.startswith("beside"))
    zk = ensemble.client(copy)
    eventually(lambda: zk.exists(f"/{last}"), "the copy catches up")
    copy.kill()
    ensemble.stop()


def others_moved_meanwhile(directory):
    """While a member is down all others move to other addresses: they find it, and it answers where they say they are,
    also if the operator gives it the list that it had."""
    ensemble = started(directory, count=4)
    recorded(ensemble, 1, 2, 3, 4)
    leader, (away, *others) = ensemble.roles()
    done(leader, "weight", f"{away.number}=0")
    knows_all(leader, {m.number: int(m is not away) for m in ensemble.members})
    away.kill()
    old_list = away.ensemble
    for member in leader, *others:
        asked = others[0] if member is leader else leader
        moved(ensemble, member)
        done(asked, "add", f"{member.number}={member.peer}")
        member.kill()
        member.start()
        ensemble.leader([leader, *others])
    ensemble.client(leader, *others).create("/news")
    away.ensemble = old_list
    away.start()
    zk = ensemble.client(away)
    eventually(lambda: zk.exists("/news"), "it catches up")
    ensemble.stop()


def all_moved(directory):
    """All servers are started at other addresses: what the operator says then is tried, too."""
    ensemble = started(directory)
    recorded(ensemble, 1, 2, 3)
    for member in ensemble.members:
        member.kill()
    for member in ensemble.members:
        moved(ensemble, member)
    for member in ensemble.members:
        member.spawn()
    leader = ensemble.leader()
    ensemble.client(leader).create("/after")
    for member in ensemble.members:
        done(leader, "add", f"{member.number}={member.peer}")
    ports = {m.number: int(m.peer.rsplit(":", 1)[1]) for m in ensemble.members}
    assert {m["id"]: m["port"] for m in status(leader)["members"]} == ports
    ensemble.stop()


def other_ensemble(directory):
    """Two ensembles that name each other's addresses do not talk."""
    os.mkdir(f"{directory}/a")
    os.mkdir(f"{directory}/b")
    one = started(f"{directory}/a")
    recorded(one, 1, 2, 3)
    client = one.client()
    client.create("/one")
    one.clients.remove(client)
    client.stop()
    for member in one.members:
        member.kill()
    two = started(f"{directory}/b")
    recorded(two, 1, 2, 3)
    stray = two.followers()[0]
    stray.kill()
    lost = one.members[stray.number - 1]
    lost.start()  # at the address of the other ensemble's member, and dials all of its members
    eventually(lambda: "belong to different ensembles" in lost.log(), "it says so")
    without_election(two, lambda: time.sleep(1), "it disturbs the others", [m for m in two.members if m is not stray])
    assert lost.follows()[1] is None
    lost.kill()
    stray.start()
    two.leader()
    assert two.client(stray).exists("/one") is None
    two.stop()


def new_leader_brings_another(directory):
    """A member that the first configuration does not name leads, and brings another one: that one has to answer it
    while it replays the configurations without it."""
    ensemble = started(directory)
    fourth = joiner(ensemble, directory, 4).start()
    join(ensemble, fourth)
    eventually(lambda: {m["id"]: m["weight"] for m in status(fourth)["members"]}.get(4) == 1, "4 has a vote")
    transferred(ensemble, fourth, fourth)
    eventually(lambda: status(fourth)["leader"] == 4, "4 leads")
    fifth = joiner(ensemble, directory, 5).start()
    done(fourth, "add", f"5={fifth.peer}")
    ensemble.members.append(fifth)
    eventually(lambda: {m["id"]: m["weight"] for m in status(fifth)["members"]}.get(5) == 1, "5 has a vote")
    ensemble.leader()
    for member in fourth, fifth:
        assert "no longer a member" not in member.log(), "a configuration from before it was added is taken for news"
    ensemble.stop()


def comes_back_among_others(directory):
    """While a member is down all others are replaced; it catches up from servers that it has never heard of, and they
    elect a leader together."""
    ensemble = started(directory)
    first, second, third = ensemble.members
    recorded(ensemble, 1, 2, 3)
    third.kill()
    fourth, fifth = joiner(ensemble, directory, 4).start(), None
    join(ensemble, fourth)
    fifth = joiner(ensemble, directory, 5).start()
    join(ensemble, fifth)
    for member in first, second:
        stays = fourth if member is not fourth else fifth
        done(stays, "remove", str(member.number))
        member.kill()
    eventually(lambda: {m["id"] for m in status(fourth)["members"]} == {3, 4, 5}, "only 3, 4 and 5 are left")
    ensemble.client(fourth).create("/news")
    third.start()
    zk = ensemble.client(third)
    eventually(lambda: zk.exists("/news"), "it catches up")
    fifth.kill()
    ensemble.leader([third, fourth])
    ensemble.client(third).create("/together")
    ensemble.stop()


def added_again_meanwhile(directory):
    """A member that is down is removed, and added again: when it catches up it passes the configuration without it.  An
    observer that catches up has no vote."""
    ensemble = started(directory)
    leader, (_, away) = ensemble.roles()
    away.kill()
    done(leader, "remove", str(away.number))
    zk = ensemble.client(leader)
    for number in range(4):  # more than comes in one message
        zk.create(f"/meanwhile-{number}", bytes(BIG))
    said = done(leader, "add", f"{away.number}={away.peer}")
    assert "there is no link to it yet: connection refused" in said, said
    zk.create("/later")
    away.start()
    eventually(lambda: connect(away.address).exists("/later"), "it catches up")
    assert "no longer a member" not in away.log(), away.log()
    observer = joiner(ensemble, directory, 4).start()
    done(leader, "add", f"4={observer.peer}:observer")
    eventually(lambda: "this server has caught up with the leader" in observer.log(), "it catches up")
    assert "votes again" not in observer.log(), observer.log()
    observer.kill()
    ensemble.stop()


def added_anew_meanwhile(directory):
    """While a member is away another one is removed, and added again with a new directory: it knows only the old one."""
    ensemble = started(directory, count=4)
    recorded(ensemble, 1, 2, 3, 4)
    leader, (away, anew, other) = ensemble.roles()
    done(leader, "remove", str(anew.number))
    anew.kill()
    shutil.rmtree(anew.directory)
    anew.options.append("--join")
    away.kill()
    anew.start()
    done(leader, "add", f"{anew.number}={anew.peer}")
    recorded(ensemble, 1, 2, 3, 4)
    away.start()
    leader.kill()
    ensemble.leader([away, anew, other])
    ensemble.stop()


def data_of_its_own(directory):
    """A server with data of its own does not join: it would keep entries that no other member has."""
    ensemble = started(directory)
    own = joiner(ensemble, directory, 4)
    serve = [own.program, "serve", "--data", own.directory, "--listen", own.address, "--http", "off"]
    alone = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert alone.stdout.readline().startswith("conclave: serving")
    zk = ensemble.client(own)
    zk.create("/own")  # before that there may be nothing that is not given up
    zk.stop()
    alone.kill()
    alone.wait()
    alone.stdout.close()
    refuses(own, "the data was written by a server alone, so this server does not join")
    backup = f"{directory}/backup"
    words = [own.program, "backup", "--data", ensemble.members[0].directory, backup]
    eventually(lambda: subprocess.run(words, check=False, capture_output=True).returncode == 0, "a member has data")
    shutil.rmtree(own.directory)
    said = subprocess.run([own.program, "restore", backup, "--data", own.directory], check=True, capture_output=True,
                          text=True).stdout
    assert "is that of a server alone now" in said, said
    refuses(own, "the data was written by a server alone, so this server does not join")
    own.options.remove("--join")
    own.ensemble = f"4={own.peer}"
    own.start()
    eventually(lambda: own.follows()[1] == 4, "it leads, alone")
    fifth = joiner(ensemble, directory, 5)  # what it needs is in a snapshot of the server alone, which names nobody
    fifth.ensemble = f"4={own.peer},5={fifth.peer}"
    fifth.start()
    done(own, "add", f"5={fifth.peer}")
    knows_all(fifth, {4: 1, 5: 1})
    fifth.kill()
    own.kill()
    ensemble.stop()


def ids_are_not_for_clients(directory):
    options = ["--set", "reconfigEnabled=true", "--set", "skipACL=yes"]
    ensemble = started(directory, *options)
    recorded(ensemble, 1, 2, 3)
    zk = ensemble.client(ensemble.leader())
    text = zk.get("/zookeeper/config")[0].decode()
    for forged in text.replace("ensemble=", "ensemble=f"), text.replace("directory.1=", "directory.1=f"):
        lines = [line if "=f" not in line else line[:-1] for line in forged.splitlines()]
        raises(error.BadArgumentsError, zk.reconfig, None, None, ",".join(lines))
    zk.reconfig(None, None, ",".join(text.splitlines()))  # as it was read
    ensemble.stop()


def stranger(directory):
    """A process that says it is server 9, or sends an absurd term, changes nothing."""
    ensemble = started(directory, "--insecure")
    recorded(ensemble, 1, 2, 3)
    leader = ensemble.leader()
    term = leader.follows()[0]
    for sender, claimed in (9, term + 5), (9, 2**31 - 1), (2 if leader.number != 2 else 3, 2**31 - 1):
        for member in ensemble.members:
            if member.number == sender:
                continue
            host, port = member.peer.rsplit(":", 1)
            with socket.create_connection((host, int(port)), TIMEOUT_S) as link:
                link.sendall(hello(sender, member.number, version=4))
                link.settimeout(TIMEOUT_S)
                link.recv(48)
                append = struct.pack(">BQ", 3, claimed) + struct.pack(">QQQQQQIBBBQ", 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0)
                try:
                    link.sendall(frame(8, struct.pack(">IB", 1, 0) + b"127.0.0.1") + frame(1, append))
                    link.shutdown(socket.SHUT_WR)
                    link.recv(1)
                except OSError:
                    pass  # refused
    client = ensemble.client()
    client.create("/still")
    leader = ensemble.leader()
    assert leader.follows()[0] < term + 5, leader.log()
    assert 9 not in {m.follows()[1] for m in ensemble.members}
    ensemble.stop()


if __name__ == "__main__":
    main([wiped_member, mixed_up_data, founding, log_lost, found_beside_data, founding_after_another,
          former_directory, older_copy,
          copied_directory, others_moved_meanwhile, all_moved, other_ensemble, new_leader_brings_another,
          comes_back_among_others, added_again_meanwhile,
          added_anew_meanwhile, data_of_its_own, ids_are_not_for_clients, stranger])
