"""The four-letter words of a running server: each field is compared with what was done to the server, and with
JSON.  See words_common.py for how to run it."""
import re
import socket
import time

from patience import eventually
from words_common import EPHEMERAL, OPEN, SESSION_MS, VERSION, Client, hexadecimal, main, matches, same
from zkwire import Connected, Connection, Reply, encode_request

# ---- Requests ----


def plain_or_with_a_newline(site):
    same(site.word("ruok"), "imok")
    same(site.word("ruok\n"), "imok")
    same(site.word("ruok\r\n"), "imok")
    same(site.word("isro"), "rw")


def half_closed(site):
    for _ in range(50):
        same(site.word("ruok", half_close=True), "imok")
        same(site.word("ruok\n", half_close=True), "imok")


def in_single_bytes(site):
    same(site.word("r", "u", "o", "k", pause=0.05), "imok")


def unknown_words(site):
    same(site.word("zzzz"), "")  # the length of a frame, and far too long
    same(site.word("RUOK"), "")


def long_answers(site):
    client = site.client()
    for i in range(3000):
        client.ask("exists", f"/words-long/{'x' * 1000}{i}", True)
    answer = site.word("wchp", half_close=True)
    same(answer.count("/words-long/"), 3000)
    same(answer[-2:], "\n\n")


# ---- Answers ----

STATE = (
    r"Latency min/avg/max: (\d+)/(\d+\.\d+)/(\d+)\nReceived: (\d+)\nSent: (\d+)\nConnections: (\d+)\n"
    r"Outstanding: (\d+)\nZxid: (0x[0-9a-f]+)\nMode: standalone\nNode count: (\d+)\n"
)


def srvr(site):
    pattern = rf"Zookeeper version: {VERSION}\n{STATE}"
    before = matches(pattern, site.word("srvr"))
    client = site.client()
    reply = client.ask("create", "/words-srvr", b"", OPEN, EPHEMERAL)
    after = matches(pattern, site.word("srvr"))
    same(int(after[3]) - int(before[3]), 3)  # the session, the create, this word
    same(int(after[4]) - int(before[4]), 2)
    same(int(after[5]), int(before[5]) + 1)
    same(after[6], "0")
    same(after[7], hexadecimal(int(reply.zxid)))
    same(int(after[8]), int(before[8]) + 1)
    assert float(after[0]) <= float(after[1]) and float(after[1]) <= float(after[2]), after


def stat(site):
    client = site.client()
    client.create("/words-stat", flags=EPHEMERAL)
    line = r" /(\d+\.\d+\.\d+\.\d+:\d+)\[([01])\]\(queued=(\d+),recved=(\d+),sent=(\d+)\)\n"
    lines = matches(rf"Zookeeper version: {VERSION}\nClients:\n((?:{line})+)\n{STATE}", site.word("stat"))[0]
    found = {address: rest for address, *rest in re.findall(line, lines)}
    same(found.pop(client.address), ["1", "0", "2", "2"])
    same(list(found.values()), [["0", "0", "1", "0"]])  # the connection of this word


def cons(site):
    client = site.client()
    before = time.time() * 1000
    client.create("/words-cons", flags=EPHEMERAL)
    reply = client.ask("getData", "/words-cons", False)
    line = (
        rf" /(\S+)\[1\]\(queued=0,recved=3,sent=3,sid=(0x[0-9a-f]+),lop=GETD,est=(\d+),to={SESSION_MS},lcxid=0x2,lzxid=(0x[0-9a-f]+)"
        r",lresp=\d+,llat=\d+,minlat=(\d+),avglat=(\d+),maxlat=(\d+)\)\n"
    )
    asker = r" /\S+\[0\]\(queued=0,recved=1,sent=0\)\n"
    answer = site.word("cons")
    found = matches(rf"(?:{asker})?{line}(?:{asker})?\n", answer)
    same(found[0], client.address)
    same(found[1], hexadecimal(client.session))
    assert abs(int(found[2]) - before) < 60000, found[2]
    same(found[3], hexadecimal(int(reply.zxid)))
    assert int(found[4]) <= int(found[5]) <= int(found[6])


def crst(site):
    client = site.client()
    client.create("/words-crst", flags=EPHEMERAL)
    assert "lcxid=0x1" in site.word("cons")
    same(site.word("crst"), "Connection stats reset.\n")
    answer = site.word("cons")
    assert (
        f"/{client.address}[1](queued=0,recved=0,sent=0,sid={hexadecimal(client.session)},lop=NA," in answer
        and ",lzxid=0xffffffffffffffff,lresp=0,llat=0,minlat=0,avglat=0,maxlat=0)" in answer
        and "lcxid" not in answer
    ), answer


def srst(site):
    site.client().create("/words-srst", flags=EPHEMERAL)
    assert int(site.figures()["cnt_updatelatency"]) > 0
    same(site.word("srst"), "Server stats reset.\n")
    figures = site.figures()
    same(figures["packets_received"], "1")  # this word
    for name in ("packets_sent", "cnt_updatelatency", "p99_updatelatency", "max_latency", "commit_count"):
        same(figures[name], "0")
    same(figures["min_client_response_size"], "-1")
    same(figures["ephemerals_count"], "1")  # a gauge, not a counter


def mntr(site):
    site.word("srst")
    before = site.figures()
    client, other = site.client(), site.client()
    client.create("/words-mntr", b"x" * 100, EPHEMERAL)
    client.ask("getData", "/words-mntr", True)
    other.ask("getChildren", "/", True)
    other.ask("exists", "/words-none", True)
    other.ask("setData", "/words-mntr", b"", -1)
    for name, value in site.figures().items():
        if name == "version":
            matches(VERSION, value)
        elif name == "server_state":
            same(value, "standalone")
        elif name.startswith("avg_") or name in ("connection_drop_probability", "raft_leaderless_seconds"):
            matches(r"\d+\.\d+", value)
        else:
            matches(r"-?\d+", value)
    after = site.figures()
    grown = {name: int(after[name]) - int(before[name]) for name in after if re.fullmatch(r"-?\d+", after[name])}
    wanted = {
        "znode_count": 1,
        "ephemerals_count": 1,
        "watch_count": 2,  # one has fired
        "global_sessions": 2,
        "local_sessions": 0,
        "num_alive_connections": 2,
        "open_file_descriptor_count": 2,
        "max_file_descriptor_count": 0,
        "connection_request_count": 2,
        "outstanding_requests": 0,
        "packets_received": 2 + 5 + 2,  # of them two words
        "packets_sent": 2 + 5 + 1,
        "cnt_readlatency": 3,
        "cnt_updatelatency": 2,
        "cnt_fsynctime": 4,
        "proposal_count": 4,
        "commit_count": 4,
        "auth_failed_count": 0,
        "connection_rejected": 0,
        "stale_sessions_expired": 0,
    }
    same({name: grown[name] for name in wanted}, wanted)
    same(after["min_client_response_size"], "16")  # exists, of no node: a header
    same(after["max_client_response_size"], str(16 + 4 + 100 + 68))
    for name in ("approximate_data_size", "bytes_received_count", "response_bytes", "watch_bytes", "log_bytes_written"):
        assert grown[name] > 0, name
    assert int(after["uptime"]) > int(before["uptime"])
    sums = float(after["avg_readlatency"]) * 3 + float(after["avg_updatelatency"]) * 2
    assert abs(float(after["avg_latency"]) - sums / 5) < 0.002, after


def dropped_and_refused(site):
    before = site.figures()

    def grown(name):
        return int(site.figures()[name]) - int(before[name])
    for attempt, timeout_ms in enumerate((1000, 5000, 25000), 1):
        Client(site.at, timeout_ms).connection.close()
        eventually(lambda: grown("stale_sessions_expired") >= attempt, "the session expires", pause_s=0.5)
        if grown("connection_drop_count"):
            break  # otherwise its end may have come first, on a busy machine, and then the server closed the connection
    same(grown("connection_drop_count"), 1)
    refused = Connection(*site.at)
    refused.send_connect(timeout=1000)
    refused.send_request(-4, "auth", encode_request("auth", (0, "nonsense", b"x")))  # while the session lasts
    assert isinstance(refused.receive(), Connected) and isinstance(refused.receive(), Reply)
    eventually(lambda: grown("stale_sessions_expired") >= attempt + 1, "the session expires", pause_s=0.5)
    same([grown(name) for name in ("auth_failed_count", "connection_drop_count", "global_sessions")], [1, 1, 0])


def dump(site):
    client, other = site.client(), site.client()
    client.create("/words-dump-1", flags=EPHEMERAL)
    client.create("/words-dump-2", flags=EPHEMERAL)
    answer = site.word("dump")
    when = r"\w{3} \w{3} \d\d \d\d:\d\d:\d\d UTC \d{4}"
    ids = rf"(?:\d+ expire at {when}:\n(?:\t0x[0-9a-f]+\n)+)"
    ends = rf"(?:\d+ expire at {when}:\n(?:\tip: /\S+:\d+ sessionId: 0x[0-9a-f]+\n)+)"
    sets, sessions, first, owned, sets2, connections, second = matches(
        rf"SessionTracker dump:\nSession Sets \((\d+)\)/\((\d+)\):\n({ids}+)ephemeral nodes dump:\n"
        rf"Sessions with Ephemerals \(1\):\n(.*)Connections dump:\nConnections Sets \((\d+)\)/\((\d+)\):\n({ends}+)",
        answer,
    )
    same((sessions, first.count("\t"), first.count(" expire at ")), ("2", 2, int(sets)))
    same((connections, second.count("\t"), second.count(" expire at ")), ("3", 3, int(sets2)))
    for one in (client, other):
        assert f"\t{hexadecimal(one.session)}\n" in first
        assert f"\tip: /{one.address} sessionId: {hexadecimal(one.session)}\n" in second
    assert second.count("sessionId: 0x0\n") == 1
    id, *paths = owned.split()
    same((id, sorted(paths)), (hexadecimal(client.session) + ":", ["/words-dump-1", "/words-dump-2"]))
    expiries = re.findall(rf"\d+ expire at ({when})", first)
    for text in expiries:
        end = time.mktime(time.strptime(text, "%a %b %d %H:%M:%S UTC %Y")) - time.timezone
        assert -1 < end - time.time() < SESSION_MS / 1000 + 2 + 1, text
    found = site.json("/commands/dump")
    same(sorted(sum(found["expiry_time_to_session_ids"].values(), [])), sorted([client.session, other.session]))
    owned = found["session_id_to_ephemeral_paths"]
    same(sorted(owned.pop(str(client.session))), ["/words-dump-1", "/words-dump-2"])
    same(owned, {})


def watches(site):
    same(site.word("wchs"), "0 connections watching 0 paths\nTotal watches:0\n")
    same(site.word("wchc"), "\n")
    same(site.word("wchp"), "\n")
    client, other = site.client(), site.client()
    for path in ("/words-a", "/words-b"):
        client.ask("exists", path, True)
    other.ask("exists", "/words-b", True)
    other.ask("getChildren", "/", True)  # not for data: not shown
    one, two = hexadecimal(client.session), hexadecimal(other.session)
    same(site.word("wchs"), "2 connections watching 2 paths\nTotal watches:3\n")
    blocks = re.findall(r"(\S+)\n((?:\t\S+\n)+)", site.word("wchc"))
    same({id: sorted(paths.split()) for id, paths in blocks}, {one: ["/words-a", "/words-b"], two: ["/words-b"]})
    blocks = re.findall(r"(\S+)\n((?:\t\S+\n)+)", site.word("wchp"))
    same({path: sorted(ids.split()) for path, ids in blocks}, {"/words-a": [one], "/words-b": sorted([one, two])})
    found = site.json("/commands/watches")["session_id_to_watched_paths"]
    same(sorted(found.pop(str(client.session))), ["/words-a", "/words-b"])
    same(found, {str(other.session): ["/words-b"]})
    found = site.json("/commands/watches_by_path")["path_to_session_ids"]
    same({path: sorted(ids) for path, ids in found.items()}, {
        "/words-a": [client.session], "/words-b": sorted([client.session, other.session])})
    summary = site.json("/commands/watch_summary")
    same([summary[f"num_{name}"] for name in ("connections", "paths", "total_watches")], [2, 2, 3])


def envi(site):
    same(site.word("envi").splitlines()[0], "Environment:")
    pairs = site.table("envi", "=")
    matches(VERSION, pairs["zookeeper.version"])
    same(pairs["host.name"], socket.gethostname())
    same(pairs["os.name"], "Linux")
    for name in ("java.version", "java.vendor", "java.home", "java.class.path", "java.library.path", "java.compiler"):
        same(pairs[name], "<NA>")
    for name in ("os.arch", "os.version", "user.name", "user.home", "user.dir", "java.io.tmpdir"):
        assert pairs[name], name
    for name in ("free", "max", "total"):
        matches(r"\d+MB", pairs[f"os.memory.{name}"])
    same({**site.json("/commands/environment"), **{"os.memory.free": ""}},
         {**pairs, "os.memory.free": "", "command": "environment", "error": None})


def conf(site):
    pairs = site.table("conf", "=")
    same(pairs["clientPort"], str(site.at[1]))
    assert pairs["dataDir"] == pairs["dataLogDir"] and int(pairs["dataDirSize"]) > 0
    same({name: value for name, value in pairs.items() if not name.startswith("data")}, {
        "clientPort": str(site.at[1]), "secureClientPort": "-1", "tickTime": "500", "maxClientCnxns": "60",
        "minSessionTimeout": "1000", "maxSessionTimeout": str(SESSION_MS), "clientPortListenBacklog": "-1", "serverId": "0"})
    sizes = site.table("dirs", ": ")
    same(sizes, {"datadir_size": pairs["dataDirSize"], "logdir_size": pairs["dataLogSize"]})


def trace_mask(site):
    same(site.word("gtmk"), "306")
    same(site.word(b"stmk" + (70).to_bytes(8, "big")), "70")
    same(site.word(b"stmk", (306).to_bytes(8, "big"), pause=0.05), "306")
    same(site.word(b"stmk", half_close=True), "")  # without its mask
    same(site.word("gtmk"), "306")
    same(site.word("hash"), "")


main(globals())
