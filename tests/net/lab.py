"""The web server of `conclave lab`: python3 tests/net/lab.py [NAME...]; CONCLAVE is the program."""
import gzip
import os
import re
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "wire"))
from patience import TIMEOUT_S, Checks, crashes  # noqa: E402


class Lab:
    def __init__(self, *words):
        self.process = subprocess.Popen([os.environ["CONCLAVE"], "lab", "--port", "0", *words], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.fullmatch(r"The laboratory is at http://\[?([0-9a-f.:]+?)\]?:(\d+)/ \(Ctrl-C ends it\)\n", line)
        assert found, line
        self.status = None  # with which it ended, before it was asked to
        crashes.append(lambda: f"it ended with {self.status}" if self.status else None)
        self.host, self.port = found.group(1), int(found.group(2))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.status = self.process.poll()
        if self.status is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def send(self, request):
        """All that comes until the server closes the connection."""
        with socket.create_connection((self.host, self.port), timeout=TIMEOUT_S) as connection:
            connection.sendall(request)
            answer = b""
            while part := connection.recv(1 << 16):
                answer += part
        return answer

    def ask(self, target="/", method="GET", host=None, more=""):
        head = f"{method} {target} HTTP/1.1\r\n" + (f"Host: {host or self.host}\r\n" if host != "" else "") + more + "\r\n"
        answer, _, body = self.send(head.encode()).partition(b"\r\n\r\n")
        lines = answer.decode().split("\r\n")
        fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
        return int(lines[0].split()[1]), fields, body


def page(lab):
    status, fields, body = lab.ask("/?language=pt")
    assert status == 200 and fields["content-type"] == "text/html; charset=utf-8" and b"<!doctype html>" in body, (status, fields)
    assert int(fields["content-length"]) == len(body) and fields["connection"] == "close"
    assert lab.ask("/index.html")[2] == lab.ask("/")[2]
    for name, kind in (("engine.js", "text/javascript"), ("worker.js", "text/javascript"), ("style.css", "text/css")):
        status, fields, body = lab.ask("/" + name)
        assert status == 200 and fields["content-type"].startswith(kind), (name, status, fields)
        with open("web/lab/" + name, "rb") as file:
            assert body == file.read(), name


def module(lab):
    status, fields, body = lab.ask("/lab.wasm")
    assert status == 200 and fields["content-type"] == "application/wasm" and fields["content-encoding"] == "gzip", (status, fields)
    assert gzip.decompress(body).startswith(b"\0asm\1\0\0\0")


def policy(lab):
    """On every answer: only what is served here may run, and nobody else may frame or embed it."""
    for target in ("/", "/lab.wasm", "/nowhere"):
        fields = lab.ask(target)[1]
        rules = dict(rule.split(" ", 1) for rule in fields["content-security-policy"].split("; "))
        assert rules["default-src"] == "'none'" and rules["script-src"] == "'self' 'wasm-unsafe-eval'" and rules["connect-src"] == "'self'", rules
        assert rules["frame-ancestors"] == "'none'" and rules["form-action"] == "'none'" and rules["base-uri"] == "'none'", rules
        assert "unsafe-inline" not in fields["content-security-policy"] and fields["x-content-type-options"] == "nosniff", fields


def host(lab):
    """A stranger's name that points here gets nothing."""
    for known in ("127.0.0.1", "localhost", "LOCALHOST:80", "localhost.", "lab.localhost", "[::1]:8017", "127.0.0.1:1"):
        assert lab.ask(host=known)[0] == 200, known
    for stranger in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "[::1].evil.example", "", ":80", "[", "a" * 300):
        status, _, body = lab.ask(host=stranger)
        assert status == 421 and b"<" not in body, (stranger, status)
    assert lab.ask(host="127.0.0.1", more="Host: evil.example\r\n")[0] == 421
    assert lab.ask(host="evil.example", more="Host: 127.0.0.1\r\n")[0] == 421


def paths(lab):
    """There are no names but those of the table."""
    for target in ("/../../etc/passwd", "/..%2f..%2fetc/passwd", "/web/lab/index.html", "//index.html", "/index.html/", "/INDEX.HTML", "/lab", "/lab.wasm.gz",
                   "/%69ndex.html", "/index.html%00"):
        assert lab.ask(target)[0] == 404, target
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert lab.ask(method=method)[0] == 405, method
    status, fields, body = lab.ask(method="HEAD")
    assert status == 200 and not body and int(fields["content-length"]) > 0


def hostile(lab):
    """What is no request is refused, and others are served meanwhile."""
    crowd = [socket.create_connection((lab.host, lab.port), timeout=TIMEOUT_S) for _ in range(200)]
    for connection in crowd[-40:]:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: ")
    assert lab.ask()[0] == 200
    for nonsense in (b"\0" * 100 + b"\r\n\r\n", b"GET /\r\n\r\n", b"G" * 20000, b"GET / HTTP/1.1\r\nHost 127.0.0.1\r\n\r\n"):
        try:
            answer = lab.send(nonsense)
        except ConnectionResetError:  # it was closed before all was read
            answer = b""
        assert b" 200 " not in answer.split(b"\r\n")[0], (nonsense[:40], answer[:80])
    for connection in crowd:
        connection.close()
    assert lab.ask()[0] == 200


def ends(lab):
    lab.process.send_signal(signal.SIGTERM)
    assert lab.process.wait(TIMEOUT_S) == 0


def taken(lab):
    """A port that is in use."""
    other = subprocess.run([os.environ["CONCLAVE"], "lab", "--port", str(lab.port)], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert other.returncode == 3 and "address already in use" in other.stderr, (other.returncode, other.stderr)


TESTS = [page, module, policy, host, paths, hostile, taken, ends]
chosen = sys.argv[1:]
checks = Checks()
for test in TESTS:
    if chosen and test.__name__ not in chosen:
        continue
    with checks.judged(test.__name__), Lab() as started:
        test(started)
sys.exit(checks.status())
