"""The server's page: what its parts answer a browser, who may read and write by it, and that nobody who reads it
slowly, or much of it, costs the server more than a bounded amount."""
import base64
import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import types

from kazoo.security import make_acl, make_digest_acl

from ensemble import TIMEOUT_S, eventually, main, of_the_leader, own_host, raw, write_key
from members import http as http_of
from members import started

TOKEN = "a-token-of-the-administrators-1234567890"
STREAMS_MAX = 16


def ask(member, path, method="GET", body=None, **headers):
    """The status, the headers and the answer."""
    connection = http.client.HTTPConnection(http_of(member), timeout=TIMEOUT_S)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def read(member, path, wanted=200, **headers):
    status, given, body = ask(member, path, **headers)
    assert status == wanted, (path, status, body)
    assert given["Content-Type"] == "application/json", given
    return json.loads(body)


def operator(token=TOKEN):
    return {"Authorization": f"Bearer {token}"}


def alone(directory, *options):
    """An ensemble of one."""
    token = write_key(f"{directory}/token", TOKEN + "\n")
    ensemble = started(directory, "--admin-token-file", token, *options, count=1)
    return ensemble, ensemble.members[0]


class Stream:
    """The events of one connection; `buffer` is how much the system keeps of what it does not read."""

    def __init__(self, member, buffer=None):
        host, port = http_of(member).rsplit(":", 1)
        self.socket = socket.socket()
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(TIMEOUT_S)
        self.socket.connect((host, int(port)))
        self.socket.sendall(f"GET /page/events HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
        self.file = self.socket.makefile("rb")

    def status(self):
        status = int(self.file.readline().split()[1])
        while self.file.readline().strip():
            pass
        return status

    def event(self):
        while not (line := self.file.readline()).startswith(b"data: "):
            assert line, "the stream has ended"
        return json.loads(line[len(b"data: "):])

    def close(self):
        self.file.close()
        self.socket.close()


# ---- The state ----


def a_browser_gets_the_page(directory):
    ensemble, member = alone(directory)
    status, headers, body = ask(member, "/", Accept="text/html,*/*")
    assert status == 200 and headers["Content-Type"].startswith("text/html"), headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy, policy
    names = re.findall(rb'(?:src|href)="(page/[^"]+)"', body)
    assert names, body
    for name in names:
        status, headers, _ = ask(member, "/" + name.decode())
        assert status == 200 and headers["X-Content-Type-Options"] == "nosniff", (name, status)
        assert "Content-Security-Policy" in headers and headers["Referrer-Policy"] == "no-referrer", headers
    assert b"/commands/monitor" in ask(member, "/", Accept="*/*")[2]
    assert read(member, "/page/nothing", 404)["code"] == "NotFound"
    assert ask(member, "/page/state", Host="rebound.example")[0] == 421
    assert ask(member, "/page/events", Host="rebound.example")[0] == 421
    ensemble.stop()


def the_state_of_three(directory):
    ensemble = started(directory)
    zk = ensemble.client()
    for i in range(10):
        zk.create(f"/{i}", b"data")
    of_the_leader(ensemble, lambda leader: states_agree(ensemble, leader))
    state = read(eventually(lambda: [m for m in ensemble.members if read(m, "/page/state")["connections"]],
                            "somebody has the client")[0], "/page/state")
    assert state["sessions"] == 1 and state["requests"]["writes"] >= 10 and state["latency_us"]["p50"] > 0, state
    assert state["bytes_in"] > 0 and state["bytes_out"] > 0, state
    ensemble.stop()


def states_agree(ensemble, leader):
    """Of all members, about all members."""
    for member in ensemble.members:
        state = eventually(lambda: (s := read(member, "/page/state"))["nodes"] == 14 and s, "it has all nodes")
        assert state["server"] == member.number and state["write"] is False, state
        assert state["mode"] == ("leader" if member is leader else "follower"), state["mode"]
        assert state["ensemble"]["leader"] == leader.number == state["elections"][-1]["leader"], state
        assert state["ensemble"]["term"] == state["elections"][-1]["term"] > 0, state
        assert [m["id"] for m in state["ensemble"]["members"]] == [1, 2, 3], state
        for m in state["ensemble"]["members"]:
            assert m["role"] == ("leader" if m["id"] == leader.number else "follower"), m
            assert m["weight"] == 1 and m["address"] == ensemble.members[m["id"] - 1].peer, m
            assert (m["match"] is None) == (member is not leader), m

    def caught_up():
        assert ensemble.leader() is leader, "it leads no more"
        return all(m["connected"] and m["lag"] == 0 and (m["id"] == leader.number or m["heard_ms"] is not None)
                   for m in read(leader, "/page/state")["ensemble"]["members"])
    eventually(caught_up, "the leader knows that all have everything")


def events_follow_a_failover(directory):
    ensemble = started(directory)

    def streams_of_others(leader):
        streams = [Stream(member) for member in ensemble.members if member is not leader]
        for stream in streams:
            assert stream.status() == 200
            assert stream.event()["ensemble"]["leader"] == leader.number
            before = stream.event()["time_ms"]
            assert stream.event()["time_ms"] > before
        return leader, streams
    leader, streams = of_the_leader(ensemble, streams_of_others)
    leader.kill()
    for stream in streams:
        state = eventually(lambda: (s := stream.event())["ensemble"]["leader"] not in (None, leader.number) and s,
                           "another one leads")
        assert state["elections"][-1]["leader"] == state["ensemble"]["leader"], state
        assert state["elections"][-1]["term"] > state["elections"][0]["term"], state
        stream.close()
    ensemble.stop()


def streams_are_bounded(directory):
    """... and whoever has closed one makes room for another."""
    ensemble, member = alone(directory)
    streams = [Stream(member) for _ in range(STREAMS_MAX)]
    assert all(stream.status() == 200 and stream.event() for stream in streams)
    assert read(member, "/page/events", 503)["code"] == "Busy"
    assert read(member, "/page/state")["mode"] == "leader"
    streams.pop().close()

    def again():
        stream = Stream(member)
        if stream.status() == 200:
            return stream
        stream.close()
        return None
    streams.append(eventually(again, "there is room again"))
    assert streams[-1].event()["server"] == 1 and streams[0].event()["server"] == 1
    member.send(signal.SIGTERM)
    assert member.end() == 0  # streams do not keep it
    ensemble.stop()


def a_reader_that_takes_nothing(directory):
    """... is cut off, and the others are not."""
    ensemble, member = alone(directory)
    slow, quick = Stream(member, 1024), Stream(member)
    assert quick.status() == 200

    def is_cut_off():
        quick.event()
        try:
            slow.socket.send(b"x")
        except OSError:
            return True
        return False
    eventually(is_cut_off, "it is cut off")
    assert quick.event()["server"] == 1
    ensemble.stop()


# ---- The tree ----


def pages_of(member, path, limit, **headers):
    """All children of a node, page by page, and the sizes of the pages."""
    names, sizes, more, after = [], [], True, ""
    while more:
        page = read(member, f"/page/tree?path={path}&limit={limit}{after}", **headers)
        assert page["path"] == path and page["refused"] is False, page
        names += [child["name"] for child in page["children"]]
        sizes.append(len(page["children"]))
        more, after = page["more"], f"&after={names[-1]}" if names else ""
    assert page["total"] == len(names) == len(set(names)), (page["total"], len(names))
    return names, sizes


def the_tree(directory):
    ensemble, member = alone(directory)
    zk = ensemble.client()
    zk.create("/a", "ç".encode())
    zk.create("/a/ephemeral", b"123", ephemeral=True)
    zk.create("/a/b")
    zk.create("/a/b/c")
    page = read(member, "/page/tree?path=/a")
    children = {child["name"]: child for child in page["children"]}
    assert children["ephemeral"] == {"name": "ephemeral", "children": 0, "bytes": 3, "ephemeral": True}, children
    assert children["b"]["children"] == 1 and not page["more"] and page["total"] == 2, page
    assert {child["name"] for child in read(member, "/page/tree")["children"]} == {"a", "zookeeper"}
    for i in range(25):
        zk.create(f"/a/b/{i}")
    names, sizes = pages_of(member, "/a/b", 10)
    assert set(names) == {"c"} | {str(i) for i in range(25)} and sizes == [10, 10, 6], sizes
    zk.delete(f"/a/b/{names[3]}")
    assert read(member, f"/page/tree?path=/a/b&after={names[3]}", 410)["code"] == "Gone"
    assert read(member, "/page/tree?path=/none", 404)["code"] == "NoNode"
    for path in ("a", "/a/", "//", "/a%00b", "%ff", ""):
        assert read(member, f"/page/tree?path={path}", 400)["code"] == "BadArguments", path
        assert read(member, f"/page/node?path={path}", 400)["code"] == "BadArguments", path
    zk.get("/a", watch=lambda event: None)
    zk.get_children("/a", watch=lambda event: None)
    node = read(member, "/page/node?path=/a")
    stat = zk.exists("/a")
    assert base64.b64decode(node["data"]) == "ç".encode() and node["watches"] == 2, node
    assert node["stat"]["czxid"] == stat.czxid and node["stat"]["numChildren"] == 2, node
    assert node["acl"] == [{"scheme": "world", "id": "anyone", "perms": "rwcda"}], node
    node = read(member, "/page/node?path=/a/ephemeral")
    assert node["stat"]["ephemeralOwner"] == hex(zk.client_id[0]), node
    ensemble.stop()


HOSTILE = ["<img src=x onerror=alert(1)>", "\"'&<script>", "a\\u0000", "\u00e7\u65e5 {}", "..."]


def hostile_names_and_data(directory):
    """... are JSON, and nothing in it ends a script or a string."""
    ensemble, member = alone(directory)
    zk = ensemble.client()
    zk.create("/hostile")
    data = bytes(range(256)) + b"</script>\xff\xfe\xc3"
    acl = [make_acl("digest", "a:<b>\u2028", all=True), make_acl("world", "anyone", read=True)]
    for name in HOSTILE:
        zk.create(f"/hostile/{name}", data, acl=acl)
    status, _, body = ask(member, "/page/tree?path=/hostile")
    assert status == 200 and not re.search(rb"[<>&']|[\0-\x09\x0b-\x1f]", body), body
    assert {child["name"] for child in json.loads(body)["children"]} == set(HOSTILE)
    for name in HOSTILE:
        path = "".join(f"%{byte:02x}" for byte in f"/hostile/{name}".encode())
        status, _, body = ask(member, f"/page/node?path={path}")
        assert status == 200 and not re.search(rb"[<>&']", body), body
        node = json.loads(body)
        assert node["path"] == f"/hostile/{name}" and base64.b64decode(node["data"]) == data, node
    ensemble.stop()


def what_nobody_may_read(directory):
    """... is shown to administrators only."""
    ensemble, member = alone(directory)
    zk = ensemble.client(auth_data=[("digest", "user:secret")])
    secret = [make_digest_acl("user", "secret", all=True)]
    zk.create("/mine", b"my data", acl=secret)
    zk.create("/mine/child", b"hers", acl=secret)
    node = read(member, "/page/node?path=/mine")
    assert node["refused"] and node["data"] is None and node["acl"] is None, node
    page = read(member, "/page/tree?path=/mine")
    assert page["refused"] and page["children"] == [] and not page["more"], page
    assert read(member, "/page/tree?path=/mine&after=child")["children"] == []
    for token in ("wrong", "", TOKEN + "x", TOKEN[:-1]):
        assert read(member, "/page/node?path=/mine", 401, **operator(token))["code"] == "NoAuth", token
    node = read(member, "/page/node?path=/mine", **operator())
    assert base64.b64decode(node["data"]) == b"my data" and node["acl"][0]["scheme"] == "digest", node
    assert [c["name"] for c in read(member, "/page/tree?path=/mine", **operator())["children"]] == ["child"]
    zk.create("/shown", b"", acl=[make_acl("world", "anyone", read=True), *secret])
    ids = [entry["id"] for entry in read(member, "/page/node?path=/shown")["acl"]]
    assert ids == ["anyone", "user:x"], ids  # the secret half of a digest is not shown
    ensemble.stop()


def where_clients_need_certificates(directory):
    """... whoever has none reads nothing of the tree here either."""
    host = own_host()
    pem = [f"{directory}/{name}.pem" for name in ("certificate", "key")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-subj", "/CN=here", "-out", pem[0], "-keyout", pem[1]], check=True, capture_output=True)
    token = write_key(f"{directory}/token", TOKEN + "\n")
    server = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", os.environ["CONCLAVE"], "serve", "--tls-listen", f"{host}:26011",
         "--tls-cert", pem[0], "--tls-key", pem[1], "--tls-ca", pem[0], "--http", f"{host}:26031",
         "--data", f"{directory}/data", "--admin-token-file", token],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=open(f"{directory}/errors", "w"), text=True)
    assert server.stdout.readline().startswith("conclave: serving clients")
    here = types.SimpleNamespace(address=f"{host}:26011")
    for part in ("tree", "node", "locks"):
        assert read(here, f"/page/{part}", 401)["code"] == "NoAuth"
        read(here, f"/page/{part}", **operator())
    assert read(here, "/page/state")["mode"] == "standalone"
    server.kill()
    server.wait()


def a_million_children(directory):
    """... are shown a page at a time, however many are asked for."""
    count, batch = 1000000, 10000
    ensemble, member = alone(directory)
    client = raw.Client(member.address)
    client.create("/many")
    for first in range(0, count, batch):
        operations = [(raw.CREATE, raw.create_record(f"/many/{i}")) for i in range(first, first + batch)]
        client.call(raw.MULTI, raw.multi_record(operations))
    names, sizes = pages_of(member, "/many", 100000)
    assert len(names) == count and max(sizes) == 1000 and len(sizes) == count // 1000, sizes
    figures = ask(member, "/metrics")[2].decode()
    print(re.search(r"^\S*loop_max_us_reports \S+", figures, re.M).group())
    ensemble.stop()


def large_pages_at_once(directory):
    """... take turns: a client is served in between."""
    ensemble, member = alone(directory)
    client = raw.Client(member.address)
    client.create("/many")
    children = [(raw.CREATE, raw.create_record(f"/many/{i}{'<' * 500}")) for i in range(1000)]
    client.call(raw.MULTI, raw.multi_record(children))
    host, port = http_of(member).rsplit(":", 1)

    def comes_between():
        """The server finds all requests at once.  This process may be late to look, so one attempt of several counts."""
        readers = [socket.create_connection((host, int(port)), TIMEOUT_S) for _ in range(30)]
        read(member, "/page/state")
        member.send(signal.SIGSTOP)
        for reader in readers:
            reader.sendall(f"GET /page/tree?path=/many&limit=1000 HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
        member.send(signal.SIGCONT)
        for _ in range(8):  # the first may be served before all of them
            client.exists("/many")
        answered, _, _ = select.select(readers, [], [], 0)
        for reader in readers:
            with reader, reader.makefile("rb") as file:
                assert file.readline().split()[1] == b"200"
        return len(answered) < len(readers)
    eventually(comes_between, "a client is served before all readers are")
    ensemble.stop()


# ---- Locks ----


def joins(zk, path, kind="__lock__", **note):
    """A contender, as its client makes it; the name of its node."""
    data = json.dumps(note).encode()
    return zk.create(f"{path}/owner{kind}", data, ephemeral=True, sequence=True, makepath=True).rsplit("/", 1)[1]


def locks_within_locks(directory):
    """Those under whose locks a contender says that it runs wait for it."""
    ensemble, member = alone(directory)
    zk = [ensemble.client() for _ in range(6)]
    outer, inner, other, inside, quiet, _ = ids = [hex(each.client_id[0]) for each in zk]
    joins(zk[0], "/conclave/locks/a")
    joins(zk[2], "/conclave/locks/b")
    joins(zk[1], "/conclave/locks/b", outer=f"0x1 {outer}")
    joins(zk[1], "/conclave/locks/alone", outer=outer)  # who holds it makes nobody wait
    page = read(member, "/page/locks")
    told = {(wait["from"], wait["to"], wait["lock"]) for wait in page["waits"]}
    assert told == {(inner, other, "b"), ("0x1", inner, None), (outer, inner, None)}, page
    # Each would be a circle if it were read.
    bad = [quiet[2:], f"{quiet} ", f" {quiet}", f"{quiet},{quiet}", f"{quiet} 0x0", f"{quiet} 0x1{'0' * 16}", f"{quiet} 0x",
           quiet + "x" * 200, quiet.replace("0x", "0X"), " ".join([quiet] * 14)]
    for number, text in enumerate(bad):
        joins(zk[4], f"/conclave/locks/bad{number}")
        joins(zk[5], f"/conclave/locks/bad{number}", outer=text)
    assert read(member, "/page/locks")["deadlocks"] == []
    joins(zk[3], "/conclave/locks/a", outer=other)
    (circle,) = read(member, "/page/locks")["deadlocks"]
    assert sorted(circle) == sorted(ids[:4]), (ids, circle)
    ensemble.stop()


def locks_and_who_waits(directory):
    ensemble, member = alone(directory)
    one, other, third = ensemble.client(), ensemble.client(), ensemble.client()
    ids = [hex(zk.client_id[0]) for zk in (one, other, third)]
    assert read(member, "/page/locks") == {"locks": [], "waits": [], "deadlocks": [], "more": False, "cursor": None}
    held = joins(one, "/conclave/locks/a", label="<b>nightly</b>", host="db1", pid=4711)
    waits = joins(other, "/conclave/locks/a", label="x", host="db2")
    last = joins(third, "/conclave/locks/a")
    joins(other, "/conclave/locks/b")
    page = read(member, "/page/locks")
    locks = {lock["name"]: lock for lock in page["locks"]}
    (holder,) = locks["a"]["holders"]
    assert locks["a"]["kind"] == "lock" and locks["a"]["contenders"] == 3, locks
    assert (holder["node"], holder["label"]) == (held, "<b>nightly</b>"), holder
    assert (holder["host"], holder["pid"]) == ("db1", 4711), holder
    assert holder["token"] == one.exists(f"/conclave/locks/a/{held}").czxid and holder["session"] == ids[0], holder
    assert [(w["node"], w["waits_for"]) for w in locks["a"]["queue"]] == [(waits, [held]), (last, [waits])], locks
    told = [(wait["from"], wait["to"], wait["lock"]) for wait in page["waits"]]
    assert told == [(ids[1], ids[0], "a"), (ids[2], ids[1], "a")], page
    assert page["deadlocks"] == []
    joins(one, "/conclave/locks/b")
    page = read(member, "/page/locks")
    assert [sorted(circle) for circle in page["deadlocks"]] == [sorted(ids[:2])], page
    joins(one, "/conclave/locks/shared", "__rlock__")
    joins(other, "/conclave/locks/shared", "__rlock__")
    joins(third, "/conclave/locks/shared")
    for zk in (one, other, third):
        joins(zk, "/conclave/locks/slots", "__slot__lock__", slots=2)
    first = joins(one, "/conclave/leaders/e", "__candidate1__", label="first")
    better = joins(other, "/conclave/leaders/e", "__candidate5__", label="better")
    one.create("/conclave/leaders/e/leader", json.dumps({"node": first}).encode(), ephemeral=True)
    locks = {lock["name"]: lock for lock in read(member, "/page/locks")["locks"]}
    assert locks["shared"]["kind"] == "shared" and len(locks["shared"]["holders"]) == 2, locks["shared"]
    assert len(locks["shared"]["queue"][0]["waits_for"]) == 2, locks["shared"]
    assert (locks["slots"]["kind"], locks["slots"]["slots"]) == ("semaphore", 2), locks["slots"]
    assert len(locks["slots"]["holders"]) == 2 and len(locks["slots"]["queue"]) == 1, locks["slots"]
    assert locks["e"]["kind"] == "election" and [h["node"] for h in locks["e"]["holders"]] == [first], locks["e"]
    assert [(w["node"], w["priority"]) for w in locks["e"]["queue"]] == [(better, 5)], locks["e"]
    joins(one, "/conclave/locks/a/inner")
    joins(third, "/conclave/locks/folder/one")
    joins(third, "/conclave/locks/folder/two/three", label="deep")
    joins(third, "/conclave/leaders/of/e", "__candidate1__")
    for limit in (1, 2, 100):
        names, more, after = [], True, ""
        while more:
            page = read(member, f"/page/locks?limit={limit}{after}")
            assert len(page["locks"]) <= limit, page
            names += [lock["name"] for lock in page["locks"]]
            more, after = page["more"], f"&after={page['cursor']}"
        assert sorted(names) == ["a", "a/inner", "b", "e", "folder/one", "folder/two/three", "of/e", "shared", "slots"], names
    locks = {lock["name"]: lock for lock in read(member, "/page/locks")["locks"]}
    assert locks["a"]["contenders"] == 3 and locks["folder/two/three"]["holders"][0]["label"] == "deep", locks
    assert read(member, "/page/locks?after=conclave/locks/none", 410)["code"] == "Gone"
    ensemble.stop()


def folders_end_a_page(directory):
    """One looks at so many nodes that are no locks, and the next page goes on from there."""
    chains, depth = 42, 250
    ensemble, member = alone(directory)
    client = raw.Client(member.address)
    for path in ("/conclave", "/conclave/locks"):
        client.create(path)
    for chain in range(chains):
        paths = [f"/conclave/locks/{chain}" + "/d" * below for below in range(depth)]
        client.call(raw.MULTI, raw.multi_record([(raw.CREATE, raw.create_record(path)) for path in paths]))
    page = read(member, "/page/locks?limit=1000")
    assert page["more"] and 0 < len(page["locks"]) < chains, page
    rest = read(member, f"/page/locks?limit=1000&after={page['cursor']}")
    names = [lock["name"] for lock in page["locks"] + rest["locks"]]
    assert not rest["more"] and sorted(names) == sorted(str(chain) + "/d" * (depth - 1) for chain in range(chains)), names
    ensemble.stop()


def waits_are_estimated(directory):
    """... when the server has seen for how long a lock is held."""
    ensemble, member = alone(directory)
    one, other = ensemble.client(), ensemble.client()

    def queue():
        return read(member, "/page/locks")["locks"][0]["queue"]
    held = joins(one, "/conclave/locks/a")
    for i in range(6):
        waits = joins(other, "/conclave/locks/a")
        assert queue()[0]["estimate_ms"] is None, i  # the first hold was not seen to begin, and five are too few
        one.delete(f"/conclave/locks/a/{held}")
        held = waits
        one, other = other, one
    joins(other, "/conclave/locks/a")
    low, high = queue()[0]["estimate_ms"]
    assert low >= 0 and (high is None or high >= low), (low, high)
    one.delete(f"/conclave/locks/a/{held}")
    joins(one, "/conclave/locks/a", "__rlock__")
    assert queue()[0]["estimate_ms"] is None  # for a shared one there is none
    ensemble.stop()


def crowded_and_hidden_locks(directory):
    """... are named, and no more is looked at than so much."""
    ensemble, member = alone(directory)
    zk = ensemble.client(auth_data=[("digest", "user:secret")])
    secret = [make_digest_acl("user", "secret", all=True)]
    zk.ensure_path("/conclave/locks")
    zk.create("/conclave/locks/mine", acl=secret)
    joins(zk, "/conclave/locks/mine", label="hers")
    joins(zk, "/conclave/locks/mine/inside", label="hers")
    joins(zk, "/conclave/locks/label", label="shown")
    zk.create("/conclave/locks/label/x__lock__", b'{"label":"hers"}', acl=secret, ephemeral=True, sequence=True)
    client = raw.Client(member.address)
    for name, count in (("crowded", 5000), ("long", 600), ("longer", 600)):
        client.create(f"/conclave/locks/{name}")
        client.call(raw.MULTI, raw.multi_record(
            [(raw.CREATE, raw.create_record(f"/conclave/locks/{name}/{i}__rlock__", flags=2)) for i in range(count)]))
    status, _, body = ask(member, "/page/locks")
    assert status == 200 and b"hers" not in body, body[:1000]
    first = json.loads(body)
    assert first["more"], [lock["name"] for lock in first["locks"]]  # two long ones are too much for one page
    second = read(member, f"/page/locks?after={first['cursor']}")
    locks = {lock["name"]: lock for lock in first["locks"] + second["locks"]}
    assert len(locks) == len(first["locks"] + second["locks"]) == 5 and not second["more"], locks.keys()
    assert locks["crowded"]["crowded"] and locks["crowded"]["contenders"] == 5000, locks["crowded"]
    assert len(locks["long"]["holders"]) == len(locks["longer"]["holders"]) == 600
    assert locks["mine"]["refused"] and not locks["mine"]["holders"], locks["mine"]
    assert [w["label"] for w in locks["label"]["holders"] + locks["label"]["queue"]] == ["shown", ""], locks["label"]
    assert b"hers" in ask(member, "/page/locks", **operator())[2] + ask(
        member, f"/page/locks?after={first['cursor']}", **operator())[2]
    ensemble.stop()


def names_that_are_long(directory):
    """... make no answer long, however often it would repeat them."""
    ensemble, member = alone(directory)
    client = raw.Client(member.address)
    for path in ("/conclave", "/conclave/locks", "/conclave/locks/a", "/conclave/locks/b", "/tree"):
        client.create(path)
    joins = [raw.create_record(f"/conclave/locks/a/{'<' * 100000}__lock__", flags=3)]
    joins += [raw.create_record("/conclave/locks/a/x__rlock__", flags=3)] * 100  # each waits for the first
    client.call(raw.MULTI, raw.multi_record([(raw.CREATE, join) for join in joins]))
    for i in range(20):
        client.create(f"/conclave/locks/{i}{'<' * 100000}")
        client.create(f"/tree/{i}{'<' * 100000}")
    status, _, body = ask(member, "/page/locks")
    locks = {lock["name"]: lock for lock in json.loads(body)["locks"]}
    assert status == 200 and len(body) < 1000 and set(locks) == {"a", "b"}, (status, len(body), set(locks))
    assert locks["a"]["crowded"] and locks["a"]["contenders"] == 101, locks["a"]
    status, _, body = ask(member, "/page/tree?path=/tree")
    page = json.loads(body)
    assert status == 200 and len(body) < 2 << 20 and page["more"] and page["total"] == 20, (status, len(body))
    ensemble.stop()


def circles_without_end(directory):
    """... are told up to a bound: of few sessions there may be very many."""
    ensemble, member = alone(directory)

    def join(client, path, note=b"{}"):
        """The same session again: a server has few connections for one address."""
        again = raw.Client(member.address, raw.SESSION_MS, client.session, client.password)
        assert again.create(path, note, flags=3) == 0
        again.drop()
    clients = [raw.Client(member.address)]
    for path in ("/conclave", "/conclave/locks", "/conclave/locks/line", "/conclave/locks/across"):
        clients[0].create(path)
    while len(clients) < 200:
        clients[-1].drop()
        clients.append(raw.Client(member.address))
    for client in clients[:50]:
        join(client, "/conclave/locks/across/x__rlock__")
    for client in clients[-50:]:  # each waits for those fifty
        join(client, "/conclave/locks/across/x__slot__lock__", b'{"slots":2}')
    for client in reversed(clients):  # each waits for the next one
        join(client, "/conclave/locks/line/x__lock__")
    status, _, body = ask(member, "/page/locks")
    page = json.loads(body)
    assert status == 200 and len(page["waits"]) == 199 + 50 * 50, (status, len(page["waits"]))
    assert page["deadlocks"] and len(body) < 1 << 20, (len(page["deadlocks"]), len(body))
    ensemble.stop()


# ---- Writing ----

JSON = {"Content-Type": "application/json"}


def write(member, wanted=200, headers=None, **order):
    """What the server answers to a write of an administrator."""
    if isinstance(order.get("data"), bytes):
        order["data"] = base64.b64encode(order["data"]).decode()
    headers = {**operator(), **JSON, **(headers or {})}
    status, given, body = ask(member, "/page/node", "POST", json.dumps(order), **headers)
    assert status == wanted, (order, status, body)
    assert given["Content-Type"] == "application/json", given
    return json.loads(body)


def administrators_write(directory):
    ensemble, member = alone(directory, "--web-write")
    zk = ensemble.client()
    assert read(member, "/page/state")["write"] is True
    data = bytes(range(256))
    created = write(member, op="create", path="/a", data=data)
    assert created["path"] == "/a" and created["stat"]["dataLength"] == 256, created
    assert zk.get("/a")[0] == data and zk.get_acls("/a")[0][0].perms == 31
    assert write(member, op="set", path="/a", data=b"x", version=0)["stat"]["version"] == 1
    assert write(member, 409, op="set", path="/a", data=b"y", version=0)["code"] == "BadVersion"
    assert zk.get("/a")[0] == b"x"
    assert write(member, 409, op="create", path="/a")["code"] == "NodeExists"
    assert write(member, 404, op="create", path="/none/b")["code"] == "NoNode"
    assert write(member, op="create", path="/a/s", mode="sequential")["path"] == "/a/s0000000000"
    assert write(member, op="create", path="/a/c", mode="container")["path"] == "/a/c"
    assert read(member, "/page/node?path=/a/c")["stat"]["container"] is True
    assert write(member, 409, op="delete", path="/a")["code"] == "NotEmpty"
    assert write(member, op="delete", path="/a/s0000000000") == {"path": "/a/s0000000000", "stat": None}
    assert write(member, 404, op="delete", path="/a/s0000000000")["code"] == "NoNode"
    zk.add_auth("digest", "user:secret")
    zk.create("/mine", acl=[make_digest_acl("user", "secret", all=True)])
    assert write(member, op="set", path="/mine", data=b"")["stat"]["version"] == 1  # an operator is the super user
    assert write(member, 400, op="set", path="/zookeeper/config", data=b"")["code"] == "BadArguments"
    for order in ({"op": "set"}, {"path": "/a"}, {"op": "sing", "path": "/a"}, {"op": "set", "path": "a"},
                  {"op": "set", "path": "/a", "data": "?"}, {"op": "set", "path": "/a", "data": 7},
                  {"op": "set", "path": "/a"}, {"op": "set", "path": "/a", "data": None},
                  {"op": "set", "path": "/a", "data": "", "version": "1"},
                  {"op": "set", "path": "/a", "data": "", "version": 2**40},
                  *({"op": "set", "path": "/a", "data": data}
                    for data in ("====", "A===", "AA=A", "AAA=AAAA", "AAA=\n\n\n\n", " AAA", "AAA")),
                  {"op": "create", "path": "/e", "mode": "ephemeral"}, {"op": "create", "path": "/e", "mode": 1}):
        assert write(member, 400, **order)["code"] == "BadArguments", order
    for body in (b"", b"[]", b"{", b"\xff", b"[" * 5000, b'{"op":"set","op":"set","path":"/a"}'):
        assert ask(member, "/page/node", "POST", body, **operator(), **JSON)[0] == 400, body
    assert ask(member, "/page/node", "POST", **operator(), **JSON, Content_Length="2000000")[0] == 413
    assert write(member, 413, op="set", path="/a", data=bytes((1 << 20) + 1))["code"] == "BadArguments"
    assert zk.get("/a")[0] == b"x" and not zk.exists("/e")
    eventually(lambda: read(member, "/page/state")["sessions"] == 1, "its sessions are over")
    ensemble.stop()


def nobody_else_writes(directory):
    """... neither without the secret, nor a page of a stranger in the browser of somebody who has it."""
    ensemble, member = alone(directory, "--web-write")
    zk = ensemble.client()
    order = json.dumps({"op": "create", "path": "/stranger"})

    def refused(status, **headers):
        assert ask(member, "/page/node", "POST", order, **headers)[0] == status, headers
        assert not zk.exists("/stranger"), headers
    refused(401, **JSON)
    refused(401, **JSON, Authorization="Bearer wrong")
    refused(401, **JSON, Authorization=f"Basic {TOKEN}")
    refused(401, **JSON, Cookie=f"token={TOKEN}")
    refused(415, **operator())
    refused(415, **operator(), Content_Type="text/plain")  # as a form can send it
    refused(415, **operator(), Content_Type="application/json-seq")
    for origin in ("http://stranger.example", "null", f"http://{http_of(member)}.example", "http://"):
        refused(403, **operator(), **JSON, Origin=origin)
    refused(403, **operator(), **JSON, Sec_Fetch_Site="cross-site")
    refused(421, **operator(), **JSON, Host="rebound.example", Origin="http://rebound.example")
    for method in ("PUT", "PATCH", "OPTIONS", "DELETE"):  # a browser asks with OPTIONS first, and gets no leave
        body = order if method != "OPTIONS" else None
        status, headers, _ = ask(member, "/page/node", method, body, **operator(), **JSON)
        assert status == 405 and not [name for name in headers if name.startswith("Access-Control")], (method, headers)
    assert not zk.exists("/stranger")
    assert write(member, op="create", path="/own", headers={"Origin": f"http://{http_of(member)}"})["path"] == "/own"
    ensemble.stop()


def a_body_that_never_ends(directory):
    """... keeps nobody out, and is cut off."""
    ensemble, member = alone(directory, "--web-write")
    host, port = http_of(member).rsplit(":", 1)
    slow = []
    for _ in range(40):  # more than there are connections
        one = socket.create_connection((host, int(port)), TIMEOUT_S)
        one.sendall(f"POST /page/node HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n"
                    "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{".encode())
        slow.append(one)
    assert write(member, op="create", path="/quick")["path"] == "/quick"
    for one in slow:
        try:
            while one.recv(4096):
                pass
        except ConnectionError:
            pass
        one.close()
    assert write(member, op="delete", path="/quick")["path"] == "/quick"
    ensemble.stop()


def without_the_option_nobody_writes(directory):
    ensemble, member = alone(directory)
    assert write(member, 403, op="create", path="/a")["code"] == "ReadOnly"
    assert not ensemble.client().exists("/a")
    ensemble.stop()


def writes_are_replicated(directory):
    """... from any server; without a leader they are refused, and a follower's write is everywhere."""
    token = write_key(f"{directory}/token", TOKEN + "\n")
    ensemble = started(directory, "--admin-token-file", token, "--web-write")
    leader = ensemble.leader()
    for member in ensemble.members:
        write(member, op="create", path=f"/{member.number}", data=b"by the page")
    for member in ensemble.members:
        zk = ensemble.client(member)
        zk.sync("/")
        assert sorted(zk.get_children("/")) == ["1", "2", "3", "zookeeper"]
    others = [member for member in ensemble.members if member is not leader]
    for member in ensemble.members:
        if member is not others[0]:
            member.kill()

    def is_refused():
        status, _, body = ask(others[0], "/page/node", "POST", json.dumps({"op": "create", "path": "/late"}),
                              **operator(), **JSON)
        assert status in (503, 504), (status, body)
        return json.loads(body)["code"] == "NotReadOnly"
    eventually(is_refused, "it has noticed that there is no leader")
    ensemble.stop()


if __name__ == "__main__":
    main([a_browser_gets_the_page, the_state_of_three, events_follow_a_failover, streams_are_bounded,
          a_reader_that_takes_nothing, the_tree, hostile_names_and_data, what_nobody_may_read,
          where_clients_need_certificates, a_million_children, large_pages_at_once, locks_and_who_waits, folders_end_a_page,
          locks_within_locks, waits_are_estimated, crowded_and_hidden_locks, names_that_are_long, circles_without_end,
          administrators_write, nobody_else_writes, a_body_that_never_ends, without_the_option_nobody_writes,
          writes_are_replicated])
