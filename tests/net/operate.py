"""What operators see of an ensemble, and change in it while it runs."""
import json
import os
import re
import signal
import time
import urllib.request

from ensemble import TIMEOUT_S, Ensemble, eventually, main, of_the_leader, without_election

import raw

ALL_WORDS = ["--set", "4lw.commands.whitelist=*"]


def word(member, name):
    with raw.dial(member.address) as connection:
        connection.sendall(name)
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


def figures(member):
    return dict(line.removeprefix("zk_").split("\t", 1) for line in word(member, b"mntr").splitlines())


def http(member):
    host, port = member.address.split(":")
    return f"{host}:{int(port) + 20}"


def metrics(member):
    with urllib.request.urlopen(f"http://{http(member)}/metrics", timeout=TIMEOUT_S) as answer:
        lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def command(member, name):
    with urllib.request.urlopen(f"http://{http(member)}/commands/{name}", timeout=TIMEOUT_S) as answer:
        return json.load(answer)


def commands_of_members(ensemble, zk, leader):
    """As ZooKeeper's AdminServer answers them."""
    others = [member for member in ensemble.members if member is not leader]
    session = zk.client_id[0]
    for member in ensemble.members:
        found = command(member, "leader")
        assert found == {"is_leader": member is leader, "leader_id": leader.number, "leader_ip": leader.peer.split(":")[0],
                         "command": "leader", "error": None}, found
        view = command(member, "voting_view")["current_config"]
        assert sorted(view) == ["1", "2", "3"] and view["1"]["learner_type"] == "participant", view
        assert view[str(member.number)]["server_addresses"] == [member.peer], view
        found = command(member, "zabstate")
        assert (found["myid"], found["is_leader"], found["voting"]) == (member.number, member is leader, True), found
        assert (found["zabstate"], found["quorum_address"]["one"]) == ("broadcast", member.peer), found
        assert int(found["last_zxid"], 16) == found["zab_epoch"] << 32 | found["zab_counter"], found
        assert command(member, "observers")["synced_observers"] == 0
    found = command(leader, "dump")["expiry_time_to_session_ids"]
    assert session in sum(found.values(), []) and "Session Sets" in word(leader, b"dump")
    for member in others:  # they do not know when sessions expire
        assert command(member, "dump")["expiry_time_to_session_ids"] == {}
        eventually(lambda: f"{session}" in command(member, "dump")["session_id_to_ephemeral_paths"], "it has the node")
        lines = word(member, b"dump").splitlines()
        assert lines[0] == "SessionTracker dump:" and re.fullmatch(r"Global Sessions\(\d+\):", lines[1]), lines
        assert re.search(rf"^{session:#x}\t\d+ms$", "\n".join(lines), re.M), lines


def all_synced(leader):
    found = figures(leader)
    return found if found.get("synced_followers") == "2" and found.get("learners") == "2" else None


def figures_of_leader(ensemble, zk, leader):
    """Returns its metrics."""
    for i in range(20):
        zk.set(f"/n{i}", b"x" * 100)  # by this leader
    found = eventually(lambda: leader is not ensemble.leader() or all_synced(leader), "the leader has two synced followers")
    assert found is not True, "it leads no more"
    assert (found["server_state"], found["peer_state"]) == ("leader", "leading - broadcast"), found
    wanted = {"quorum_size": 3, "synced_observers": 0, "synced_non_voting_followers": 0, "pending_syncs": 0}
    assert {name: int(found[name]) for name in wanted} == wanted, found
    assert 0 < int(found["min_proposal_size"]) <= int(found["last_proposal_size"]) <= int(found["max_proposal_size"])
    assert int(found["max_proposal_size"]) > 100 and int(found["leader_uptime"]) >= 0
    sizes = re.search(r"^Proposal sizes last/min/max: (\d+)/(\d+)/(\d+)$", word(leader, b"srvr"), re.M)
    assert sizes and int(sizes[3]) > 100, sizes
    found = dict(line.split("=", 1) for line in word(leader, b"conf").splitlines() if "=" in line)
    ports = {"quorumPort": leader.peer.split(":")[1], "serverId": str(leader.number)}
    wanted = {"initLimit": "10", "syncLimit": "5", "electionAlg": "3", "peerType": "0", **ports}
    assert {name: found[name] for name in wanted} == wanted and "electionPort" in found and "version" in found, found
    assert "\nmembership: \nserver.1=" in word(leader, b"conf")
    for member in (member for member in ensemble.members if member is not leader):
        found = figures(member)
        assert found["peer_state"] == "following - broadcast" and found["quorum_size"] == "3", found
        assert "synced_followers" not in found and "Proposal" not in word(member, b"srvr")
    of_leader = metrics(leader)
    assert of_leader["commit_seconds_count"] >= 20 and of_leader["raft_elections_won"] >= 1, of_leader
    assert of_leader['server_state{state="leader"}'] == 1
    away = next(member for member in ensemble.members if member is not leader)
    lag = f'raft_member_lag_entries{{member="{away.number}"}}'
    eventually(lambda: metrics(leader)[lag] == 0, "all have all")
    commands_of_members(ensemble, zk, leader)
    return of_leader


def figures_of_replication(directory):
    ensemble = Ensemble(directory, options=ALL_WORDS)
    for member in ensemble.members:
        member.options += ["--http", http(member)]
    ensemble.start()
    zk = ensemble.client()
    for i in range(20):
        zk.create(f"/n{i}", b"x" * 100)
    zk.create("/owned", ephemeral=True)
    of_leader = of_the_leader(ensemble, lambda leader: figures_of_leader(ensemble, zk, leader))
    of_the_leader(ensemble, lambda leader: lag_is_counted(ensemble, leader))
    # A transfer of leadership is counted by whom it leaves.
    leader = ensemble.leader()
    leader.send(signal.SIGTERM)
    leader.end()
    new = eventually(lambda: next((m for m in ensemble.running() if figures(m).get("leader_uptime")), None), "a new leader")
    assert metrics(new)["raft_term"] > of_leader["raft_term"]
    ensemble.stop()


def lag_is_counted(ensemble, leader):
    # A member that stands still lags: its entries and bytes are counted, and it is not synced.
    zk, away = ensemble.client(leader), next(member for member in ensemble.members if member is not leader)
    away.send(signal.SIGSTOP)

    def of_away(figure):
        """Of a leader: others have none."""
        found = metrics(leader).get(f'raft_member_{figure}{{member="{away.number}"}}')
        assert found is not None, "it leads no more"
        return found
    try:
        for _ in range(5):
            zk.set("/n1", b"y" * 1000)
        eventually(lambda: of_away("synced") == 0, "the leader misses it")
        assert of_away("lag_entries") >= 5 and of_away("lag_bytes") > 5000, metrics(leader)
        eventually(lambda: metrics(leader)["synced_followers"] == 1, "the other one is synced")  # heard a moment ago
    finally:
        away.send(signal.SIGCONT)
    eventually(lambda: leader is not ensemble.leader() or all_synced(leader), "it is back")


def other_timeouts(directory):
    """A leader that stands still for longer than the default timeout, and shorter than the one that is set, goes on
    leading; one that is gone is replaced."""
    set_to = {"ensemble.electionTimeoutMs": 3000, "ensemble.heartbeatMs": 500, "minSessionTimeout": 6000}
    options = [word for key, value in set_to.items() for word in ("--set", f"{key}={value}")]
    ensemble = Ensemble(directory, options=[*ALL_WORDS, *options, "--reads", "linearizable"]).start()

    def stand_still():
        leader = ensemble.leader()
        leader.send(signal.SIGSTOP)
        time.sleep(1)
        leader.send(signal.SIGCONT)

    without_election(ensemble, stand_still, "a leader was replaced too early")
    zk, leader = ensemble.client(ensemble.followers()[0]), ensemble.leader()
    zk.create("/n", b"x")
    leader.kill()
    eventually(lambda: any(figures(m).get("server_state") == "leader" for m in ensemble.running()), "a new leader")
    eventually(lambda: zk.retry(zk.get, "/n")[0] == b"x", "it is read")
    ensemble.stop()


def replaced_key(directory):
    """All servers get another key while they run: their links stay, and a server that starts later needs the new one."""
    ensemble = Ensemble(directory, options=ALL_WORDS).start()
    zk = ensemble.client()
    zk.create("/n", b"before")
    late = ensemble.followers()[0]
    late.kill()
    with open(os.open(f"{directory}/new-key", os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write("another secret of all servers here\n")
    os.rename(f"{directory}/new-key", late.key)
    for member in ensemble.running():
        member.send(signal.SIGHUP)
    for member in ensemble.running():
        eventually(lambda m=member: int(figures(m)["reloads"]) >= 1, "it reads the key again")
    late.start()
    eventually(lambda: figures(ensemble.leader()).get("synced_followers") == "2", "it joins with the new key")
    for member in ensemble.running():
        assert "so those before them stay in use" not in member.log(), member.log()
    assert zk.retry(zk.get, "/n")[0] == b"before"
    ensemble.stop()


def the_same_leader(directory):
    """A follower that stood still has lost its leader and found it again: that is no other leader."""
    ensemble = Ensemble(directory, options=ALL_WORDS).start()

    def stand_still():
        follower = ensemble.followers()[0]
        view, before = follower.follows(), figures(follower)["raft_leader_changes"]
        follower.send(signal.SIGSTOP)
        time.sleep(2)
        follower.send(signal.SIGCONT)
        eventually(lambda: figures(follower)["raft_leader"] != "-1" and follower.follows()[1], "it follows")
        assert view != follower.follows() or before == figures(follower)["raft_leader_changes"]

    without_election(ensemble, stand_still, "a leader was replaced")
    ensemble.stop()


def held_without_leader(directory):
    """A client that comes while there is no leader is held for a moment; that it had to go is counted."""
    ensemble = Ensemble(directory, options=ALL_WORDS).start()
    last, *others = ensemble.followers() + [ensemble.leader()]
    for member in others:
        member.kill()
    eventually(lambda: word(last, b"isro") == "null", "it serves nothing")
    before = int(figures(last)["refused_leaderless"])
    try:
        raise AssertionError(raw.Client(last.address))
    except raw.Lost:
        pass
    assert int(figures(last)["refused_leaderless"]) == before + 1
    ensemble.stop()


main([figures_of_replication, other_timeouts, replaced_key, the_same_leader, held_without_leader])
