#!/usr/bin/env python3
"""The fence in front of a real Redis and a real HTTP server, with real holders of real locks.

usage: fence.py SERVER NAME    (--list prints the names; WORK and CONCLAVE are in the environment)
"""
import http.client
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(__file__))
from patience import TIMEOUT_S, crashes, eventually, joined, judged, serves  # noqa: E402
from places import free_ports  # noqa: E402

CONCLAVE, WORK = os.environ["CONCLAVE"], os.environ["WORK"]
server = None  # host:port
started = []


def start(*command, **options):
    process = subprocess.Popen(command, **options)
    started.append(process)
    return process


class Fence:
    def __init__(self, to, *options, locks=("job",), servers=True):
        self.command = [CONCLAVE, "fence", "--listen", "127.0.0.1:0", "--to", to, "--state",
                        f"{WORK}/{sys.argv[2]}-{len(started)}.state", *options]
        for lock in locks:
            self.command += ["--lock", lock]
        self.command += ["--server", server] if servers else ["--offline"]
        self.run()

    def run(self):
        self.process = start(*self.command, stdout=subprocess.PIPE, stderr=open(f"{WORK}/fence.err", "a"))
        line = self.process.stdout.readline().decode()
        assert "fencing" in line, line
        process = self.process
        asked = (None, 0, -signal.SIGKILL, -signal.SIGTERM)
        crashes.append(lambda: f"a fence ended with {process.returncode}" if process.poll() not in asked else None)
        self.port = int(line.rsplit(":", 1)[1])

    def restart(self, how):
        self.process.send_signal(how)
        self.process.wait()
        self.run()


class Refused(Exception):
    pass


class Redis:
    """A connection that says what it wants and hears what comes, and nothing else."""

    def __init__(self, port, *auth):
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self.file = self.socket.makefile("rb")
        if auth:
            self("AUTH", *auth)

    def send(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))

    def hear(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the connection was closed")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise Refused(rest.decode())
        if kind in b"*~>":
            return [self.hear() for _ in range(int(rest))] if rest != b"-1" else None
        if kind == b"%":
            return [(self.hear(), self.hear()) for _ in range(int(rest))]
        if kind == b"$" and rest != b"-1":
            text = self.file.read(int(rest) + 2)
            assert text.endswith(b"\r\n"), "a value was cut"
            return text[:-2]
        return {b"+": lambda: rest.decode(), b":": lambda: int(rest)}.get(kind, lambda: None)()

    def __call__(self, *words):
        self.send(*words)
        return self.hear()

    def close(self):
        self.file.close()
        self.socket.close()


def start_redis(*options):
    port = free_ports(1)
    start("redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
          "--dir", WORK, *options, stdout=subprocess.DEVNULL)

    def answers():
        try:
            Redis(port).close()
            return True
        except OSError:
            return False
    eventually(answers, "Redis answers")
    return port


def refused(code, action):
    try:
        result = action()
    except Refused as error:
        assert str(error).startswith(code), f"{error} instead of {code}"
        return str(error)
    raise AssertionError(f"{result!r} instead of {code}")


def cut_off(action):
    try:
        result = action()
    except (ConnectionError, BrokenPipeError):
        return
    raise AssertionError(f"{result!r}, although the connection should be closed")


# ---- Holders: kazoo's lock in a process of its own, so that it can be stopped ----

PAUSED_S = 6  # of a session that is to end
HOLDER = """
import sys
from kazoo.client import KazooClient
client = KazooClient(sys.argv[1], timeout=float(sys.argv[3]))
client.start(timeout=%d)
lock = client.Lock("/conclave/locks/" + sys.argv[2])
lock.acquire()
stat = client.exists("/conclave/locks/" + sys.argv[2] + "/" + lock.node)
print(stat.czxid, flush=True)
sys.stdin.readline()
lock.release()
client.stop()
print("released", flush=True)
""" % TIMEOUT_S


class Holder:
    def __init__(self, session_s=40):
        self.process = start("/usr/bin/python3", "-c", HOLDER, server, "job", str(session_s), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def token(self):
        return int(self.process.stdout.readline())

    def release(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == b"released\n"

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)


# ---- Tests ----

def test_paused_holder():
    """It is stopped beyond its session, and writes when it wakes up: also before the next one has shown up here."""
    redis = start_redis()
    fence = Fence(f"redis://127.0.0.1:{redis}")
    paused, following = Holder(PAUSED_S), None
    token = paused.token()
    connection = Redis(fence.port, "job", token)
    assert connection("SET", "by", "paused") == "OK"
    following = Holder()
    paused.stop()
    newer = following.token()
    assert newer > token
    # Nobody has connected with the newer token.
    eventually(lambda: not is_open(connection), "the paused holder is cut off")
    refused("FENCED", lambda: Redis(fence.port, "job", token))
    connection = Redis(fence.port, "job", newer)
    assert connection("SET", "by", "following") == "OK"
    refused("FENCED token", lambda: Redis(fence.port, "job", token))
    refused("FENCED", lambda: Redis(fence.port, "job", newer + 1000))  # nobody's
    assert Redis(redis)("GET", "by") == b"following"
    following.release()
    eventually(lambda: not is_open(connection), "who has released the lock is cut off")
    refused("FENCED nobody holds", lambda: Redis(fence.port, "job", newer))


def is_open(connection):
    try:
        return connection("PING") == "PONG"
    except ConnectionError:
        return False


def test_restart():
    """An older token stays refused after a crash of the fence, also when no server can be asked."""
    redis = start_redis()
    fence = Fence(f"redis://127.0.0.1:{redis}", servers=False)
    assert Redis(fence.port, "job", 17)("SET", "a", 1) == "OK"
    fence.restart(signal.SIGKILL)
    refused("FENCED", lambda: Redis(fence.port, "job", 16))
    assert Redis(fence.port, "job", 17)("SET", "a", 2) == "OK"
    assert Redis(fence.port, "job", 18)("SET", "a", 3) == "OK"
    fence.restart(signal.SIGTERM)
    refused("FENCED", lambda: Redis(fence.port, "job", 17))


def test_unreachable():
    """Without a server the newest token so far decides; with --strict nobody writes."""
    global server
    redis = start_redis()
    there, server = server, f"127.0.0.1:{free_ports(1)}"
    fence = Fence(f"redis://127.0.0.1:{redis}")
    strict = Fence(f"redis://127.0.0.1:{redis}", "--strict")
    server = there
    assert Redis(fence.port, "job", 17)("SET", "a", 1) == "OK"
    refused("FENCED", lambda: Redis(fence.port, "job", 16))
    refused("TRYAGAIN", lambda: Redis(strict.port, "job", 17))


def test_order():
    """Each holder writes as fast as it can and does not stop when the next one comes: what Redis got is in order."""
    redis = start_redis()
    fence = Fence(f"redis://127.0.0.1:{redis}", servers=False)
    rounds, writers = 12, 3

    def write(token):
        try:
            connection = Redis(fence.port, "job", token)
            while True:
                connection.socket.sendall(command(token) * 50)
                for _ in range(50):
                    connection.hear()
        except (ConnectionError, Refused):
            pass

    def command(token):
        return b"*3\r\n$5\r\nRPUSH\r\n$3\r\nlog\r\n$%d\r\n%d\r\n" % (len(str(token)), token)

    threads = []
    direct = Redis(redis)
    for token in range(1, rounds + 1):
        for _ in range(writers):
            threads.append(threading.Thread(target=write, args=(token,)))
            threads[-1].start()
        eventually(lambda: (direct("LINDEX", "log", -1) or b"") == b"%d" % token, f"token {token} has written")
    last = Redis(fence.port, "job", rounds + 1)
    last("RPUSH", "log", rounds + 1)
    for thread in threads:
        joined(thread)
    log = [int(entry) for entry in direct("LRANGE", "log", 0, -1)]
    assert log == sorted(log), "an older token wrote after a newer one"
    assert sorted(set(log)) == list(range(1, rounds + 2))
    print(f"{len(log)} writes under {rounds + 1} tokens, in order")


def test_redis():
    """What Redis can do goes through: transactions, scripts, large values, pipelines, blocking, messages, RESP3."""
    redis = start_redis("--requirepass", "secret")
    fence = Fence(f"redis://127.0.0.1:{redis}", servers=False, locks=("job", "a:b"))
    refused("WRONGPASS", lambda: Redis(fence.port, "nobody", "5"))  # Redis's own answer
    connection = Redis(fence.port, "job", "5:secret")
    value = os.urandom(5 << 20)
    assert connection("SET", "large", value) == "OK"
    assert connection("GET", "large") == value
    for _ in range(5000):
        connection.send("INCR", "count")
    assert [connection.hear() for _ in range(5000)][-1] == 5000
    assert connection("MULTI") == "OK"
    assert connection("INCR", "count") == "QUEUED"
    assert connection("EXEC") == [5001]
    assert connection("EVAL", "return redis.call('incr', KEYS[1])", 1, "count") == 5002
    reader = Redis(fence.port, "secret")
    assert reader("GET", "count") == b"5002"
    refused("NOTOKEN", lambda: reader("SET", "count", 1))
    refused("NOTOKEN", lambda: reader("EVAL", "return 1", 0))
    reader.send("SET", "count", value)
    reader.send("GET", "count")
    refused("NOTOKEN", reader.hear)
    assert reader.hear() == b"5002"  # in order, and nothing of the large value was taken for a command
    third = Redis(fence.port)
    third.send("HELLO", 3, "AUTH", "job", "5:secret", "SETNAME", "me")
    assert dict((k, v) for k, v in third.hear())[b"proto"] == 3
    assert third("CLIENT", "GETNAME") == b"me"
    assert reader("SUBSCRIBE", "news") == [b"subscribe", b"news", 1]
    assert connection("PUBLISH", "news", "x") == 1
    assert reader.hear() == [b"message", b"news", b"x"]
    other = Redis(fence.port, "a:b:1:secret")  # another lock does not mind
    assert other("SET", "other", 1) == "OK"
    third.send("BLPOP", "never", 0)
    newer = Redis(fence.port, "job", "6:secret")
    assert newer("SET", "by", "newer") == "OK"
    cut_off(third.hear)
    cut_off(lambda: connection("SET", "by", "older"))
    assert newer("GET", "by") == b"newer"
    assert other("GET", "other") == b"1"
    said = subprocess.run(["redis-cli", "-u", f"redis://job:5:secret@127.0.0.1:{fence.port}", "set", "by", "older"],
                          capture_output=True, text=True)
    assert "FENCED" in said.stdout + said.stderr, said
    said = subprocess.run(["redis-cli", "-u", f"redis://job:6%3Asecret@127.0.0.1:{fence.port}", "set", "by", "cli"],
                          capture_output=True, text=True)
    assert "OK" in said.stdout, said


def test_many():
    """A thousand connections at once, all cut off when the lock passes on."""
    redis = start_redis()
    fence = Fence(f"redis://127.0.0.1:{redis}", "--readers", "refuse", servers=False)
    connections = [Redis(fence.port) for _ in range(1000)]
    for connection in connections:
        connection.send("AUTH", "job", 5)
        connection.send("INCR", "count")
    for connection in connections:
        assert connection.hear() == "OK"
    assert max(connection.hear() for connection in connections) == 1000
    newer = Redis(fence.port, "job", 6)
    assert newer("INCR", "count") == 1001
    for connection in connections:
        cut_off(lambda: connection("INCR", "count"))
    refused("NOAUTH", lambda: Redis(fence.port)("GET", "count"))
    assert newer("GET", "count") == b"1001"


class Store(http.server.BaseHTTPRequestHandler):
    """PUT keeps a body, GET gives it back; each request is noted."""
    protocol_version = "HTTP/1.1"
    values, seen = {}, []

    def log_message(self, *_):
        pass

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))  # or it would be the next request
        self.seen.append(("GET", self.path))
        self.answer(200, self.values.get(self.path, b""))

    def do_PUT(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.seen.append(("PUT", self.path))
        self.values[self.path] = body
        self.answer(200, b"kept")


def start_store():
    store = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
    store.daemon_threads = True
    threading.Thread(target=store.serve_forever, daemon=True).start()
    return store.server_address[1]


def request(port, method, path, body=None, token=None, connection=None, **headers):
    connection = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    if token is not None:
        headers["Conclave-Token"] = str(token)
    connection.request(method, path, body=body, headers=headers)
    response = connection.getresponse()
    return response.status, response.read()


def test_http():
    store = start_store()
    fence = Fence(f"http://127.0.0.1:{store}")
    holder = Holder(PAUSED_S)
    token = holder.token()
    status, body = request(fence.port, "PUT", "/a", b"1")
    assert status == 412 and json.loads(body)["error"] == "no_token", body
    assert request(fence.port, "PUT", "/a", b"1", "x")[0] == 400
    assert request(fence.port, "PUT", "/a", b"1", token) == (200, b"kept")
    kept = http.client.HTTPConnection("127.0.0.1", fence.port, timeout=TIMEOUT_S)
    large = os.urandom(3 << 20)
    assert request(0, "PUT", "/b", large, token, kept) == (200, b"kept")
    assert request(0, "GET", "/b", connection=kept) == (200, large)
    pieces = [large[at:at + 70000] for at in range(0, len(large), 70000)]
    assert request(0, "PUT", "/c", iter(pieces), token, kept) == (200, b"kept")
    assert request(fence.port, "GET", "/c") == (200, large)
    curl = subprocess.run(["curl", "-sS", "-T", "-", "-H", "Expect: 100-continue", "-H", f"Conclave-Token: {token}",
                           f"http://127.0.0.1:{fence.port}/d"], input=b"streamed", capture_output=True)
    assert curl.stdout == b"kept" and Store.values["/d"] == b"streamed", curl
    following = Holder()
    holder.stop()
    newer = following.token()

    def is_refused():
        try:
            return request(fence.port, "PUT", "/a", b"late", token)[0] == 412
        except (http.client.RemoteDisconnected, ConnectionResetError):
            return False  # what was under way when the newer token came is cut off
    eventually(is_refused, "the paused holder is refused")
    assert request(fence.port, "PUT", "/a", b"2", newer) == (200, b"kept")
    status, body = request(fence.port, "GET", "/a", token=token)
    assert status == 412 and json.loads(body)["error"] == "stale_token", body
    assert request(fence.port, "GET", "/a") == (200, b"2")


def raw(port, text):
    """Everything that comes after these bytes, until the end."""
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection:
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while more := connection.recv(65536):
            answer += more
    return answer


def test_smuggling():
    """A request inside of another never gets through, whatever the fence and the server think of its end."""
    store = start_store()
    fence = Fence(f"http://127.0.0.1:{store}", servers=False)
    hidden = b"PUT /hidden HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"
    chunks = b"0\r\n\r\n" + hidden
    head = b"PUT /x HTTP/1.1\r\nHost: a\r\nConclave-Token: 5\r\n"
    both = b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % len(chunks)
    attempts = [
        head + both + chunks,
        head + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + chunks,
        head + b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(hidden) + hidden,
        head + b"Content-Length: 0, %d\r\n\r\n" % len(hidden) + hidden,
        head + b"Content-Length : %d\r\n\r\n" % len(hidden) + hidden,
        head + b"X: y\nContent-Length: %d\r\n\r\n" % len(hidden) + hidden,
        head + b"X: y\r\n Content-Length: 1\r\n\r\n" + hidden,
        head + b"Transfer-Encoding: xchunked\r\n\r\n" + chunks,
        head + b"Transfer-Encoding:\x0bchunked\r\n\r\n" + chunks,
        head + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + chunks,
        b"GET /x HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n" + hidden,
        b"GET /x HTTP/1.0\r\nHost: a\r\n\r\n" + hidden,
    ]
    for attempt in attempts:
        answer = raw(fence.port, attempt)
        assert answer.split(b" ")[1] in (b"400", b"501", b"505") and answer.count(b"HTTP/1.1 ") == 1, (attempt, answer)
    assert not Store.seen, Store.seen
    # A chunk that is not what it says: its head has passed, and its end never comes.
    raw(fence.port, head + b"Transfer-Encoding: chunked\r\n\r\n1;x\r\na\r\n" + chunks)
    # A body that looks like a request is one to nobody.
    answer = raw(fence.port, b"GET /x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(hidden) + hidden)
    assert ("PUT", "/hidden") not in Store.seen
    # The second request has a token of its own to show.
    answer = raw(fence.port, head + b"Content-Length: 0\r\n\r\n" + hidden)
    assert b"no_token" in answer or ("PUT", "/hidden") not in Store.seen, answer


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
    return 0


if __name__ == "__main__":
    sys.stdout.flush()
    os._exit(main())
