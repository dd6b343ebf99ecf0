"""Pages of a running server over HTTP.  See words_common.py for how to run it."""
import re
import socket
import time

from patience import TIMEOUT_S
from words_common import EPHEMERAL, OPEN, SESSION_MS, VERSION, hexadecimal, main, matches, same

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABELS = r'\{[a-zA-Z_][a-zA-Z0-9_]*="[^"\\\n]*"(?:,[a-zA-Z_][a-zA-Z0-9_]*="[^"\\\n]*")*\}'
NUMBER = r"[+-]?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|Inf)|NaN"


def metrics_of(text):
    """Parses all lines; samples belong to the family whose help and type come before."""
    samples, families, family, kind = {}, set(), None, None
    assert text.endswith("\n")
    for line in text.splitlines():
        if found := re.fullmatch(rf"# HELP ({NAME}) [^\n]+", line):
            family, kind = found[1], None
            assert family not in families, family
            families.add(family)
        elif found := re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge|summary|histogram)", line):
            assert found[1] == family and kind is None, line
            kind = found[2]
        else:
            found = re.fullmatch(rf"({NAME})({LABELS})? ({NUMBER})", line)
            assert found and kind, line
            ends = {"summary": ("", "_sum", "_count"), "histogram": ("_bucket", "_sum", "_count")}.get(kind, ("",))
            assert found[1] in [family + end for end in ends], line
            if kind in ("summary", "histogram"):
                label = {"summary": "quantile=", "histogram": "le="}[kind]
                assert (label in (found[2] or "")) == (found[1] in (family, family + "_bucket")), line
            key = found[1] + (found[2] or "")
            assert key not in samples, line
            samples[key] = float(found[3])
    return samples


def metrics(site):
    site.word("srst")
    empty = metrics_of(site.get("/metrics"))
    assert empty['readlatency{quantile="0.5"}'] != empty['readlatency{quantile="0.5"}'], "not NaN of nothing"
    client = site.client()
    client.create("/words-metrics", flags=EPHEMERAL)
    for _ in range(200):
        client.ask("getData", "/words-metrics", False)
    samples = metrics_of(site.get("/metrics"))
    figures = site.figures()
    for name in ("znode_count", "watch_count", "ephemerals_count", "approximate_data_size", "num_alive_connections",
                 "global_sessions", "connection_request_count"):
        wanted = int(figures[name]) - (name == "num_alive_connections")  # the word has one itself
        same((name, samples[name]), (name, wanted))
    same(samples["readlatency_count"], 200)
    same(samples["updatelatency_count"], 1)
    same(samples["fsynctime_count"], 2)
    low, *_, high = [samples[f'readlatency{{quantile="{share}"}}'] for share in (0.5, 0.95, 0.99, 0.999)]
    assert 0 <= low <= high, (low, high)
    for name, count in (("read_seconds", 200), ("write_seconds", 1), ("fsync_seconds", 2), ("commit_seconds", 2)):
        buckets = [value for key, value in samples.items() if key.startswith(name + "_bucket")]
        assert buckets == sorted(buckets) and len(buckets) == 20, buckets
        same((name, buckets[-1], samples[name + "_count"]), (name, count, count))
    for work in ("requests", "disk"):
        buckets = [value for key, value in samples.items()
                   if key.startswith("loop_work_seconds_bucket") and f'work="{work}"' in key]
        assert buckets == sorted(buckets) and len(buckets) == 20, buckets
        count = samples[f'loop_work_seconds_count{{work="{work}"}}']
        assert 0 < buckets[-1] == count <= samples["loop_seconds_count"], (work, buckets, count)
    assert abs(samples["read_seconds_sum"] * 1000 - samples["readlatency_sum"]) < 0.01
    same([samples[f'server_state{{state="{state}"}}'] for state in ("standalone", "leader")], [1, 0])
    assert samples["raft_applied_index"] == samples["raft_commit_index"] >= 2
    average = samples["readlatency_sum"] / 200
    assert low / 10 < average < high + 0.1, (low, average, high)
    assert samples["process_resident_memory_bytes"] > 1e6 and samples["process_cpu_seconds_total"] > 0
    assert abs(samples["process_start_time_seconds"] - time.time()) < 3600


def status(site):
    client = site.client()
    reply = client.ask("create", "/words-status", b"", OPEN, EPHEMERAL)
    found = site.json("/status")
    same((found["mode"], found["zxid"], found["zookeeper"]), ("standalone", hexadecimal(int(reply.zxid)), "3.8.0"))
    same((found["connections"], found["sessions"], found["ephemerals"]), (1, 1, 1))
    same(found["log"]["last_index"], found["log"]["applied_index"])
    assert found["log"]["bytes"] > 0 and found["uptime_ms"] > 0 and found["resident_bytes"] > 1e6
    assert found["log"]["sync"]["p50_ms"] <= found["log"]["sync"]["p99_ms"] and found["requests"]["writes"]["count"] > 0


def commands(site):
    client = site.client()
    client.create("/words-commands", flags=EPHEMERAL)
    for path in re.findall(r'href="(/commands/\w+)"', site.get("/commands")):
        found = site.json(path)
        error = "server is not initialized" if path.endswith("/leader") else None
        same((found["command"], found["error"]), (path.rsplit("/", 1)[1], error))
    [one] = site.json("/commands/cons")["connections"]
    same((one["remote_socket_address"], one["session_id"]), (client.address, client.session))
    same([one[name] for name in ("last_operation", "last_cxid", "session_timeout", "packets_sent", "interest_ops")],
         ["CREA", 1, SESSION_MS, 2, 1])
    stats = site.json("/commands/stats")
    matches(VERSION, stats["version"])
    same((stats["server_stats"]["server_state"], stats["server_stats"]["num_alive_client_connections"]), ("standalone", 1))
    same(stats["node_count"], int(site.figures()["znode_count"]))
    same(list(stats["connections"][0]), ["remote_socket_address", "interest_ops", "outstanding_requests",
                                         "packets_received", "packets_sent"])
    monitor = set(site.json("/commands/monitor")) - {"command", "error"}
    same(monitor, set(site.figures()))
    same(site.json("/commands/configuration")["client_port"], site.at[1])


def strangers(site):
    """Whatever is sent to the port, other requests are answered, and clients do not notice."""
    host, port = site.http.rsplit(":", 1)
    client = site.client()

    def says(data):
        with socket.create_connection((host, int(port)), timeout=TIMEOUT_S) as connection:
            answer = b""
            try:
                connection.sendall(data)
                while more := connection.recv(1 << 16):
                    answer += more
            except ConnectionError:
                pass
            return answer

    for data in (b"\0" * 100, b"\xff" * 5000 + b"\r\n\r\n", b"GET", b"ruok", b"GET /metrics HTTP/9.9\r\n\r\n",
                 b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nA: " + b"x" * 100000 + b"\r\n\r\n",
                 b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20000 + b"\r\n",
                 b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n123456789",
                 b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999999\r\n\r\n" + b"x" * 100000):
        answer = says(data)
        assert not answer.startswith(b"HTTP/1.1 200") and b"xxx" not in answer, (data[:40], answer[:200])
        client.ask("exists", "/", False)
    idle = [socket.create_connection((host, int(port)), timeout=TIMEOUT_S) for _ in range(100)]
    for connection in idle[50:]:
        try:
            connection.sendall(b"GET / HTTP/1.1\r\nA")
        except ConnectionError:
            pass  # it had to make room
    site.json("/status")
    client.ask("exists", "/", False)
    for connection in idle:
        connection.close()
    site.json("/status")
    client.ask("exists", "/", False)


main(globals())
