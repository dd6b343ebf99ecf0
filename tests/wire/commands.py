"""The commands on the tree, as programs call them and as people type them, with kazoo as a witness.

    commands.py --list                 the names of the tests
    commands.py HOST:PORT [NAME...]    runs these, or all; a line "ok NAME" for each that passed

$CONCLAVE is the program, $WORK a directory for files.
"""
import base64
import json
import os
import re
import signal
import stat as modes
import subprocess
import sys
import threading

from kazoo.security import make_digest_acl

from kazoo_common import Site
from patience import TIMEOUT_S, Checks, Late, serves
from terminal import Terminal

CONCLAVE = os.environ["CONCLAVE"]


class Place(Site):
    """A node of the server below which one test happens, and a directory for its files."""

    def __init__(self, address, name):
        super().__init__(address, name)
        self.directory = os.path.join(os.environ["WORK"], f"{name}.{address.replace(':', '.')}")
        os.makedirs(self.directory, exist_ok=True)
        self.gave_up = False
        self.environment = {
            key: value for key, value in os.environ.items() if not key.startswith(("CONCLAVE_", "XDG_"))}
        self.environment.update(CONCLAVE_SERVER=f"{address}/{name}", HOME=self.directory, TERM="xterm",
                                LC_ALL="C.UTF-8")

    def start(self, *words, **options):
        environment = dict(self.environment, **options.pop("environment", {}))
        process = subprocess.Popen([CONCLAVE, *words], env=environment, cwd=self.directory,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

        def give_up():
            self.gave_up = process.poll() is None
            process.kill()
        limit = threading.Timer(3 * TIMEOUT_S, give_up)  # whoever reads what it prints waits no longer
        limit.daemon = True
        limit.start()
        return process

    def run(self, *words, data=b"", **options):
        process = self.start(*words, stdin=subprocess.PIPE, **options)
        out, err = process.communicate(data, timeout=TIMEOUT_S)
        return process.returncode, out, err.decode()

    def does(self, *words, **options):
        """What it prints; it must succeed and say nothing else."""
        status, out, err = self.run(*words, **options)
        assert status == 0 and not err, (words, status, out, err)
        return out

    def json(self, *words, **options):
        return json.loads(self.does(*words, "--json", **options))

    def fails(self, wanted, text, *words, **options):
        """One line on stderr that contains the text, and that exit status."""
        status, out, err = self.run(*words, **options)
        assert status == wanted and text in err, (words, status, out, err)
        assert err.startswith("conclave: ") and err.count("\n") == 1, err

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, data, mode=0o600):
        with open(self.path(name), "wb") as file:
            file.write(data)
        os.chmod(self.path(name), mode)
        return self.path(name)


def ends(process, status):
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == status, (process.returncode, out, err)
    return out.decode()


# ---- One node ----

ODD = bytes(range(256)) + b"\n\x1b[31m"


def data(site):
    zk = site.client()
    assert site.does("create", "/a", "hello") == b"/a\n"
    assert site.does("get", "/a") == b"hello"
    site.does("set", "/a", "--file", "-", data=ODD)
    assert zk.get("/a")[0] == ODD == site.does("get", "/a")
    assert base64.b64decode(site.json("get", "/a")["data"]["base64"]) == ODD
    site.does("get", "/a", "-o", "file")
    with open(site.path("file"), "rb") as file:
        assert file.read() == ODD
    site.does("set", "/a", "-f", site.write("text", "Grüße".encode()), "--version", "1")
    answer, seen = site.json("get", "/a"), zk.exists("/a")
    assert answer["data"] == "Grüße" and answer["path"] == "/a"
    assert site.json("stat", "/a")["stat"] == answer["stat"]
    assert answer["stat"]["version"] == seen.version == 2 and answer["stat"]["mzxid"] == seen.mzxid
    assert b"version    2" in site.does("stat", "/a/")
    site.fails(1, "/a: it has another version", "set", "/a", "late", "--version", "1")
    site.fails(1, "/none: there is no such node", "get", "/none")
    site.fails(1, "/none: there is no such node", "set", "/none", "x")
    site.fails(1, "/a: there is such a node already", "create", "/a")


def kinds(site):
    zk = site.client()
    site.fails(1, "/b/c: there is no node above it; -p", "create", "/b/c")
    assert site.does("create", "-p", "/b/c", "x") == b"/b/c\n"
    assert site.does("create", "-s", "/b/n-") == b"/b/n-0000000001\n"
    assert site.does("create", "-s", "/b/") == b"/b/0000000002\n"
    assert site.json("create", "/b/d", "--container")["path"] == "/b/d"
    site.does("create", "/b/t", "--ttl", "1h")
    site.does("create", "/b/acl", "--acl", "world:anyone:r")
    assert zk.get_acls("/b/acl")[0][0].perms == 1
    site.fails(1, "/b/c: it has another version", "rm", "/b/c", "--version", "3")
    site.fails(1, "/b: it has children", "rm", "/b")
    site.does("rm", "/b/c", "--version", "0")
    assert site.json("rm", "-r", "/b") == {"path": "/b", "removed": 6}
    assert not zk.exists("/b")


def ephemeral(site):
    zk = site.client()
    script = "\"$0\" stat --json /e; echo $CONCLAVE_PATH; exit 7"
    status, out, _ = site.run("create", "-e", "/e", "--", "sh", "-c", script, CONCLAVE)
    assert status == 7 and out.startswith(b"/e\n{") and out.endswith(b"}\n/e\n"), out
    assert b'"ephemeral_owner": 0,' not in out and not zk.exists("/e")
    site.fails(127, "no-such-command: there is no such command", "create", "-e", "/e", "--", "no-such-command")
    for number in signal.SIGINT, signal.SIGTERM:  # the node goes at once, not when the session expires
        process = site.start("create", "-e", "/e")
        assert process.stdout.readline() == b"/e\n" and zk.exists("/e").ephemeralOwner
        process.send_signal(number)
        ends(process, 0)
        assert not zk.exists("/e")


def acl(site):
    zk = site.client()
    secret = site.write("secret", b"# of the test\nann:pass\n")
    site.does("create", "/s", "x", "--auth-file", secret, "--acl", "auth::cdrwa")
    assert site.does("acl", "/s", "--auth-file", secret) == b"digest:ann:" + \
        make_digest_acl("ann", "pass", all=True).id.id.split(":")[1].encode() + b":cdrwa\n"
    site.fails(77, "/s: its ACL does not allow this; say who", "get", "/s")
    assert site.does("get", "/s", environment={"CONCLAVE_AUTH": "ann:pass"}) == b"x"
    site.fails(77, "/s: its ACL", "get", "/s", environment={"CONCLAVE_AUTH": "ann:wrong"})
    site.fails(2, "only its owner may be able to read it", "get", "/s",
               "--auth-file", site.write("open", b"ann:pass\n", 0o644))
    site.fails(2, "a line is not user:password", "get", "/s", "--auth-file", site.write("bad", b"ann\n"))
    site.does("acl", "/s", "world:anyone:r,ip:127.0.0.1:cdw", "--auth-file", secret)
    assert zk.get("/s")[0] == b"x"
    assert site.json("acl", "/s") == {"path": "/s", "version": 1, "acl": [
        {"scheme": "world", "id": "anyone", "permissions": "r"},
        {"scheme": "ip", "id": "127.0.0.1", "permissions": "cdw"}]}
    site.fails(1, "does not accept this ACL", "create", "/t", "--acl", "auth::r")
    site.fails(2, "'world:r' is not SCHEME:ID:PERMISSIONS", "create", "/t", "--acl", "world:r")


# ---- Many nodes ----

def fill(zk, paths):
    for begin in range(0, len(paths), 500):
        transaction = zk.transaction()
        for path in paths[begin:begin + 500]:
            transaction.create(path, path.encode())
        results = transaction.commit()
        assert results == paths[begin:begin + 500], results[:3]


def lists(site):
    zk = site.client()
    names = sorted(["b", "a", "ü", "two words", "back\\slash", "left\u202eright"], key=str.encode)
    fill(zk, ["/top"] + [f"/top/{name}" for name in names] + ["/top/a/x", "/top/a/x/y"])
    shown = [name.replace("\\", "\\\\").replace("\u202e", "\\u202e") for name in names]
    assert site.does("ls", "/top").decode().splitlines() == shown
    assert site.json("ls", "/top") == {"path": "/top", "children": names}
    paths = [line for line in site.does("ls", "-R", "/top").decode().splitlines()]
    assert paths[:5] == ["/top", "/top/a", "/top/a/x", "/top/a/x/y", "/top/b"] and len(paths) == 9
    details = site.json("ls", "-l", "/top")["children"]
    assert [node["name"] for node in details] == names and details[0]["stat"]["children"] == 1
    long = site.does("ls", "-l", "/top").decode().splitlines()
    assert re.fullmatch(r" +0 +6 +1 +- +20\d\d-\d\d-\d\d \d\d:\d\d:\d\d  a", long[0]), long[0]
    drawn = site.does("tree", "/top/a").decode()
    assert drawn == "/top/a  6 B\n└── x  8 B\n    └── y  10 B\n\n3 nodes, 0 ephemeral, 24 bytes\n", drawn
    drawn = site.does("tree", "/top", "-L", "1").decode().splitlines()
    assert drawn[1] == "├── a  +1  6 B" and drawn[6].startswith("└── ü"), drawn
    whole = site.json("tree", "/top")
    assert whole["nodes"] == 9 and whole["tree"]["children"][0]["children"][0]["name"] == "x"


def many(site):
    zk = site.client()
    fill(zk, ["/many"] + [f"/many/{i:05}" for i in range(5000)])
    assert site.does("ls", "/many").split() == [b"%05d" % i for i in range(5000)]
    assert len(site.json("ls", "-l", "/many")["children"]) == 5000
    assert site.json("cp", "-r", ":/many", ":/copy") == {"copied": 5001, "left_out": 0}
    assert zk.get("/copy/04999")[0] == b"/many/04999"
    assert site.json("rm", "-r", "/copy")["removed"] == 5001


def protected(site):
    zk = site.client()
    fill(zk, ["/p", "/p/a", "/p/b", "/p/b/c"])
    zk.set_acls("/p/a", [make_digest_acl("ann", "pass", all=True)])
    status, out, err = site.run("ls", "-R", "/p")
    assert status == 77 and out == b"/p\n/p/a\n/p/b\n/p/b/c\n" and err.count("/p/a: its ACL") == 1
    site.fails(77, "/p/a: its ACL", "rm", "-r", "/p")
    assert zk.exists("/p/b/c")  # not half of it
    site.fails(77, "/p/a: its ACL", "cp", "-r", ":/p", "copy")
    site.does("cp", "-r", ":/p", ":/q", environment={"CONCLAVE_AUTH": "ann:pass"})
    zk.add_auth("digest", "ann:pass")
    assert zk.get_acls("/q/a")[0] == zk.get_acls("/p/a")[0]


# ---- Changes ----

def watch(site):
    zk = site.client()
    zk.create("/w")
    process = site.start("watch", "-R", "/w", "-n", "301", "--json")
    assert json.loads(process.stdout.readline()) == {"event": "watching", "path": "/w"}
    wanted = []
    for i in range(100):  # none is missing, from the first on
        zk.create(f"/w/{i}")
        zk.set(f"/w/{i}", b"x")
        zk.delete(f"/w/{i}")
        wanted += [(event, f"/w/{i}") for event in ("created", "changed", "deleted")]
    zk.delete("/w")
    seen = [json.loads(line) for line in ends(process, 0).splitlines()]
    assert [(event["event"], event["path"]) for event in seen] == wanted + [("deleted", "/w")]
    process = site.start("watch", "/w", "-n", "3", "--", "sh", "-c",
                         "echo $CONCLAVE_EVENT $CONCLAVE_PATH; sleep 0.1")
    assert process.stdout.readline() == b"watching /w\n"
    zk.create("/w")
    zk.create("/w/child")
    zk.set("/w", b"x")
    assert ends(process, 0) == "created /w\nchildren /w\nchanged /w\n"
    site.fails(127, "there is no such command", "watch", "/w", "--", "no-such-command")


def follow(site):
    zk = site.client()
    fill(zk, ["/f", "/f/a"])
    get, ls = site.start("get", "-w", "/f"), site.start("ls", "-w", "/f")
    assert get.stdout.readline() == b"/f\n" and ls.stdout.readline() == b"a\n"
    zk.set("/f", b"two\n")
    assert get.stdout.readline() == b"two\n"
    zk.create("/f/b")
    assert ls.stdout.readline() == b"+ b\n"
    zk.delete("/f/a")
    assert ls.stdout.readline() == b"- a\n"
    get.send_signal(signal.SIGINT)
    ends(get, 130)
    zk.delete("/f/b")
    assert ls.stdout.readline() == b"- b\n"
    zk.delete("/f")
    assert ends(ls, 1) == ""


# ---- Copies and transactions ----

def snapshot(zk, path):
    found = {"": zk.get(path)[0]}
    for child in zk.get_children(path):
        found.update({f"/{child}{key}": value for key, value in snapshot(zk, f"{path}/{child}").items()})
    return found


def copies(site):
    zk = site.client()
    fill(zk, ["/c", "/c/a", "/c/a/b%", "/c/a/%data", "/c/ü", "/c/two words", "/c/empty"])
    zk.set("/c/empty", b"")
    zk.set("/c/ü", ODD)
    zk.create("/c/mine", ephemeral=True)
    whole = snapshot(zk, "/c")
    del whole["/mine"]
    status, out, err = site.run("cp", "-r", ":/c", "files")
    assert (status, out) == (0, b"") and "1 ephemeral nodes were left out" in err
    with open(site.path("files/a/%25data"), "rb") as file:
        assert file.read() == b"/c/a/%data"
    assert site.json("cp", "-r", "files", ":/d") == {"copied": 7, "left_out": 0}
    assert snapshot(zk, "/d") == whole
    site.does("cp", "-r", ":/d", f"{site.address}:/{site.name}/e")
    assert snapshot(zk, "/e") == whole
    site.fails(1, "/d: there is such a node already; --force", "cp", "-r", "files", ":/d")
    site.fails(1, "files: it is there already; --force", "cp", "-r", ":/c", "files")
    zk.set("/c/a", b"new")
    site.run("cp", "-r", "--force", ":/c", "files")
    zk.create("/d/more")
    site.does("cp", "-r", "--force", "files", ":/d")
    assert snapshot(zk, "/d") == dict(whole, **{"/a": b"new", "/more": b""})
    site.does("cp", ":/c/ü", "one")
    site.does("cp", "one", ":/one")
    assert zk.get("/one")[0] == ODD
    site.fails(2, "files: it is a directory; -r", "cp", "files", ":/x")
    site.fails(2, "neither is a node", "cp", "files", "./a:/b")
    site.fails(2, "cannot be copied into itself", "cp", "-r", ":/c", ":/c/a/x")
    site.fails(1, "/none: there is no such node", "cp", ":/none", "none")
    site.fails(1, "a % in the name of a file", "cp", "-r", os.path.dirname(site.write("%zz", b"")), ":/x")


def multi(site):
    zk = site.client()
    lines = b"# changes\ncreate /m 'one  two'\n\ncreate -s /m/n- \"a\\tb\\x00\"\nset -v 0 /m new\ncheck -v 1 /m\n"
    assert site.does("multi", "-", data=lines) == b"/m\n/m/n-0000000000\n"
    assert zk.get("/m")[0] == b"new" and zk.get("/m/n-0000000000")[0] == b"a\tb\0"
    file = site.write("changes", b"rm /m/n-0000000000\nset /m x\ncheck -v 7 /m\ncreate /n\n")
    site.fails(1, "nothing was changed: line 3: /m: it has another version", "multi", file)
    assert zk.get("/m")[0] == b"new" and zk.exists("/m/n-0000000000") and not zk.exists("/n")
    results = site.json("multi", "-", data=b"set /m y\nrm /m/n-0000000000\n")["results"]
    assert [(r["line"], r["path"]) for r in results] == [(1, "/m"), (2, "/m/n-0000000000")]
    for line, text in {b"crate /x": "'crate' is neither", b"set /x": "set needs a PATH and DATA",
                       b"create '/x": "a quote that is not closed", b"rm -e /x": "'-e' is no flag of rm",
                       b"check -v /x": "'-v' is no flag of check, or lacks its number",
                       b"create x": "begins with a slash", b"create /x a b": "create needs a PATH"}.items():
        site.fails(2, f"line 2: ", "multi", "-", data=b"\n" + line + b"\n")
        site.fails(2, text, "multi", "-", data=b"\n" + line + b"\n")
    site.fails(2, "no change", "multi", "-", data=b"# nothing\n")


# ---- Recipes ----

def counter(site):
    zk = site.client()
    assert site.does("counter", "/n") == b"0\n" and not zk.exists("/n")
    adders = [site.start("counter", "/n", "--add", str(i)) for i in range(1, 9)]
    values = sorted(int(ends(process, 0)) for process in adders)
    assert values[-1] == 36 and len(set(values)) == 8 and zk.get("/n")[0] == b"36"
    assert site.does("counter", "/n", "--add=-40") == b"-4\n"
    assert site.json("counter", "/n") == {"path": "/n", "value": -4}
    zk.set("/n", b"text")
    site.fails(1, "/n: its data are no number", "counter", "/n", "--add", "1")
    site.fails(2, "'x' is not a whole number", "counter", "/n", "--add", "x")


def queue(site):
    for name in "one", "two":
        site.does("queue", "put", "/q", name)
    site.does("queue", "put", "/q", "--priority", "1", "--file", "-", data=ODD)
    assert site.does("queue", "take", "/q") == ODD
    script = ["queue", "take", "/q", "--", "sh", "-c", "cat; exit $0"]
    assert site.run(*script, "5")[:2] == (5, b"one")  # goes back
    assert site.run(*script, "0")[:2] == (0, b"one")
    assert site.json("queue", "take", "/q") == {"path": "/q", "data": "two"}
    site.fails(75, "/q: the time is over", "queue", "take", "/q", "-w", "10ms")
    taker = site.start("queue", "take", "/q")
    site.does("queue", "put", "/q", "three")
    assert ends(taker, 0) == "three"


def barrier(site):
    zk = site.client()
    site.does("barrier", "wait", "/b")
    site.does("barrier", "close", "/b")
    site.fails(75, "/b: the time is over", "barrier", "wait", "/b", "-w", "10ms")
    waiter = site.start("barrier", "wait", "/b")
    site.does("barrier", "open", "/b")
    ends(waiter, 0)
    script = "echo in >>together; while [ $(wc -l <together) -lt 3 ]; do sleep 0.05; done; exit 4"
    members = [site.start("barrier", "enter", "/d", "3", "--", "sh", "-c", script) for _ in range(3)]
    for member in members:
        ends(member, 4)
    site.fails(75, "the time is over", "barrier", "enter", "/d", "2", "-w", "10ms")
    zk.ensure_path("/d")


# ---- Which server ----

def contexts(site):
    plain = {"CONCLAVE_SERVER": ""}
    chroot = f"{site.address}/{site.name}"
    site.does("create", "/here")
    site.does("context", "add", "prod", "--server", chroot, "--auth-file", site.write("me", b"ann:pass\n"))
    site.does("context", "add", "other", "--server", "127.0.0.1:1", "--tls")
    file = site.path(".config/conclave/contexts")
    assert modes.S_IMODE(os.stat(file).st_mode) == 0o600
    assert site.does("ls", "--context", "prod", environment=plain) == b"here\n"
    assert site.does("ls", "/", environment={"CONCLAVE_SERVER": "", "CONCLAVE_CONTEXT": "prod"}) == b"here\n"
    site.does("context", "use", "prod")
    assert site.does("ls", "/", environment=plain) == b"here\n"
    assert site.does("context", "list").decode().splitlines() == [
        f"* prod  --server={chroot}  --auth-file={site.path('me')}", "  other  --server=127.0.0.1:1  --tls"]
    assert site.json("context", "list")[0]["current"] is True
    # The credentials are for that server alone.
    site.does("create", "/mine", "x", "--acl", "auth::cdrwa", environment=plain)
    site.fails(77, "/mine: its ACL", "get", "/mine", "--server", chroot, environment=plain)
    site.fails(77, "/mine: its ACL", "get", "/mine")  # CONCLAVE_SERVER
    assert site.does("get", "/mine", environment=plain) == b"x"
    site.does("cp", "prod:/mine", "mine")
    site.fails(77, f"/{site.name}/mine: its ACL", "cp", f"{site.address}:/{site.name}/mine", "again",
               environment={"CONCLAVE_AUTH": "ann:pass"})
    site.fails(1, "there is a context 'prod' already", "context", "add", "prod", "--server", "x")
    site.fails(2, "there is no context 'none'", "ls", "/", "--context", "none")
    site.fails(2, "a name has letters", "context", "add", "a:b", "--server", "x")
    site.does("context", "remove", "prod")
    assert site.does("context", "list") == b"  other  --server=127.0.0.1:1  --tls\n"
    with open(file, "a") as open_file:
        open_file.write("nonsense\n")
    site.fails(2, "contexts, line 5: this is neither", "ls", "/", environment=plain)


def errors(site):
    for words in ["ls", "/"], ["create", "-e", "/x"]:
        for time in "100ms", "1s", "10s", "100s":  # longer if the machine is too busy to ask both
            said = site.run(*words, "--server", "127.0.0.1:1,127.0.0.1:2", "--connect-timeout", time)
            assert said[0] == 69, said
            if "no answer yet" not in said[2]:
                break
        assert all(f"127.0.0.1:{port} (connection refused)" in said[2] for port in (1, 2)), said
        assert said[2].startswith("conclave: ") and said[2].count("\n") == 1, said
    site.fails(69, "no-such-host.invalid", "ls", "/", "--server", "no-such-host.invalid:1", "--connect-timeout", "100ms")
    for path, text in {"a": "begins with a slash", "/a//b": "between", "/a/./b": "'.' and '..'",
                       "/a\x1b[2Jb": "characters that no path may have"}.items():
        for words in ["ls"], ["get"], ["set"], ["create"], ["rm"], ["stat"], ["acl"], ["tree"], ["watch"], ["counter"]:
            site.fails(2, text, *words, path)
    assert "\x1b" not in site.run("ls", "/\x1b[2J")[2]
    for words, text in {("get",): "which node", ("ls", "/", "/"): "one node at a time", ("set", "/x"): "give DATA",
                        ("set", "/x", "a", "b"): "data with blanks need quotes", ("rm", "/"): "the root cannot",
                        ("create", "/x", "--", "true"): "a COMMAND is for ephemeral nodes",
                        ("create", "--ttl", "5", "-e", "/x"): "--ttl is for nodes",
                        ("set", "/x", "y", "--version", "z"): "'z' is not the version of a node",
                        ("ls", "/", "--connect-timeout", "x"): "not a time such as",
                        ("queue", "give", "/q"): "put or take", ("barrier", "wait"): "which barrier",
                        ("barrier", "enter", "/b"): "how many participants", ("cp", ":/a"): "give FROM and TO",
                        ("ls", "/", "--sasl-user", "u"): "go together"}.items():
        site.fails(2, text, *words)
    site.fails(3, "no-such-file: No such file", "set", "/x", "-f", "no-such-file")
    assert "queue take /jobs" in site.does("cheat").decode()


# ---- As a person types ----

def terminal(site):
    zk = site.client()
    zk.create("/t", b"\x1b[31mred\x07\nline \xff\xe2\x80\xae")
    with Terminal([CONCLAVE, "get", "/t"], site.environment, site.directory) as typed:
        typed.sees("\\x1b[31mred\\a\r\nline \\xff\\u202e\r\n")
        assert typed.ends() == 0 and "\x1b" not in typed.text
    with Terminal([CONCLAVE, "create", "-e", "/e"], site.environment, site.directory) as typed:
        typed.sees("waits until it is interrupted")
        assert zk.exists("/e")
        typed.types("\x03")
        assert typed.ends() == 0 and not zk.exists("/e")
    with Terminal([CONCLAVE, "queue", "take", "/q"], site.environment, site.directory) as typed:
        typed.sees("waiting for an entry, 0:01")
        typed.types("\x03")
        assert typed.ends() == 130


def shell(site):
    zk = site.client()
    fill(zk, ["/first", "/first/alpha", "/first/alpine", "/first/two words", "/second"])
    with Terminal([CONCLAVE, "shell"], site.environment, site.directory) as typed:
        prompt = f"{site.address}> "
        typed.sees(prompt)
        typed.types("tr\t")  # a command
        typed.sees("ee ")
        typed.types("/f\t")
        typed.sees("irst/")
        typed.types("\r")
        typed.sees("4 nodes, 0 ephemeral")
        typed.sees(prompt)
        typed.types("get /first/a\t")  # up to where they differ
        typed.sees("lp")
        typed.types("\t")
        typed.sees("alpha  alpine")
        typed.types("h\t\r")
        typed.sees("/first/alpha\r\n")
        typed.sees(prompt)
        typed.types("stat /first/t\t")  # a blank in a name
        typed.sees("wo\\ words ")
        typed.types("\r")
        typed.sees("version    0")
        typed.sees(prompt)
        typed.types("create -e /mine\r")
        typed.sees(prompt)
        session = zk.exists("/mine").ephemeralOwner
        assert session
        typed.types("get /none\r")
        typed.sees("conclave: /none: there is no such node")
        typed.sees(prompt)
        typed.types("gte /none\r")
        typed.sees("unknown command 'gte'; did you mean get?")
        typed.sees(prompt)
        typed.types("ls --nonsense /\r")
        typed.sees("unrecognized option")
        typed.sees(prompt)
        typed.types("watch /second\r")
        typed.sees("watching /second")
        zk.set("/second", b"x")
        typed.sees("changed /second")
        typed.types("\x03")  # ends the command, not the shell
        typed.sees(prompt)
        zk.set("/second", b"y")  # nobody is told any more
        typed.types("half a li\x03")  # drops the line
        typed.sees(prompt)
        typed.types(" set /second secret\r")  # not kept
        typed.sees(prompt)
        typed.types("\x10\x10\x10\x10\x10\x10\r")  # back to an earlier line
        typed.sees("version    0")
        typed.sees(prompt)
        assert zk.get("/second")[0] == b"secret" and zk.exists("/mine").ephemeralOwner == session
        assert "^P" not in typed.text  # after the prompt the editor shows what is typed, not the terminal
        typed.types("\x04")
        assert typed.ends() == 0
    assert not zk.exists("/mine")
    with open(site.path(".local/state/conclave/history"), "rb") as file:
        history = file.read()
    assert b"alpha" in history and b"secret" not in history
    assert modes.S_IMODE(os.stat(site.path(".local/state/conclave/history")).st_mode) == 0o600


def script(site):
    status, out, err = site.run("shell", data=b"create /x 'a b'\nget /x\n# comment\nget /y\nls -R /\nls /none\n")
    assert (status, out) == (1, b"/x\na b/\n/x\n"), out
    assert err == "conclave: /y: there is no such node\nconclave: /none: there is no such node\n", err
    status, _, err = site.run("shell", data=b"ls --server x /\n")
    assert status == 2 and "the shell has chosen its server" in err


TESTS = [data, kinds, ephemeral, acl, lists, many, protected, watch, follow, copies, multi, counter, queue, barrier,
         contexts, errors, terminal, shell, script]


def main():
    if sys.argv[1:] == ["--list"]:
        print(*[test.__name__ for test in TESTS])
        return 0
    address, names = sys.argv[1], sys.argv[2:]
    checks = Checks()
    serves(address)
    for test in TESTS:
        if names and test.__name__ not in names:
            continue
        site = Place(address, f"commands-{test.__name__}")
        with checks.judged(test.__name__):
            try:
                top = Site(address, "")
                top.client().ensure_path(site.name)
                top.clear()
                test(site)
            except Exception as error:
                raise Late("a command does not end") if site.gave_up else error
            finally:
                site.clear()
    return checks.status()


sys.exit(main())
