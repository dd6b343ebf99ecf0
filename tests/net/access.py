"""Who may change an ensemble: by the socket in a server's data directory its user and root, over HTTP whoever has the
token, and nobody else on the machine; and that no secret is told to anybody."""
import json
import os
import re
import socket
import subprocess
import traceback

from ensemble import TIMEOUT_S, Ensemble, eventually, main, write_key
from members import Up, command, done, http, status

NOBODY = 65534
TOKEN = "a-token-of-the-administrators"


def as_nobody(call, *arguments):
    """What the call returns in a process of another user."""
    assert os.geteuid() == 0, "this test has to be run by root"
    answer, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            os.write(told, json.dumps(call(*arguments)).encode())
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    os.close(told)
    with os.fdopen(answer) as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text)


def exchange(connection, method, path, *headers):
    """The status of the answer, and the answer."""
    with connection:
        lines = "".join(f"{header}\r\n" for header in headers)
        connection.sendall(f"{method} {path} HTTP/1.0\r\n{lines}\r\n".encode())
        text = b""
        while part := connection.recv(4096):
            text += part
    return int(text.split()[1]), text.decode()


def over_http(member, method, path, *headers):
    host, port = http(member).rsplit(":", 1)
    return exchange(socket.create_connection((host, int(port)), TIMEOUT_S), method, path, *headers)


def by_socket(directory, method, path):
    """The directory is open: its path may be long, and what is above it closed to others."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(f"/proc/self/fd/{directory}/admin.socket")
    except OSError as problem:
        return type(problem).__name__, str(problem)
    return exchange(connection, method, path)


def started(directory, *options):
    ensemble = Ensemble(directory, count=1, options=options)
    (member,) = ensemble.members
    member.options += ["--http", http(member)]
    member.directory = f"{directory}/{'a-long-name-' * 10}"  # too long for the address of a socket
    return ensemble.start(), member


CHANGE = "/ensemble/weight/1=2"


def weight(member):
    return status(member)["members"][0]["weight"]


def by_the_socket(directory):
    ensemble, member = started(directory)
    file = f"{member.directory}/admin.socket"
    here = os.open(member.directory, os.O_PATH)
    assert os.stat(file).st_mode & 0o7777 == 0o600
    assert by_socket(here, "GET", "/ensemble")[0] == 200
    assert as_nobody(by_socket, here, "POST", CHANGE)[0] == "PermissionError"
    os.chmod(member.directory, 0o755)
    assert as_nobody(by_socket, here, "POST", CHANGE)[0] == "PermissionError"
    os.chmod(file, 0o666)  # the mode is not all: the server looks at who has connected
    code, text = as_nobody(by_socket, here, "POST", CHANGE)
    assert code == 403 and "only root and the user" in text, text
    assert weight(member) == 1 and f"user={NOBODY}" in member.log(), member.log()
    assert "has weight 2" in done(member, "weight", "1=2") and weight(member) == 2
    member.kill()  # the socket stays, and is replaced
    assert os.path.exists(file)
    code, _, err = command(member, "weight", "1=1")
    assert code == 3 and "no server runs with this data directory" in err, err
    member.start()
    ensemble.leader()
    assert os.stat(file).st_mode & 0o7777 == 0o600 and done(member, "weight", "1=1")
    member.send(15)
    assert member.end() == 0 and not os.path.exists(file)
    write_key(file, "something else")  # which is not removed
    member.start()
    assert "there is no socket for the administrator" in member.log() and os.path.getsize(file) == 14
    ensemble.stop()


def over_http_nothing_changes(directory):
    """Not even for the right user, unless the server has a token."""
    ensemble, member = started(directory)
    for headers in ([], ["Conclave: 1"], ["Authorization: Bearer "], [f"Authorization: Bearer {TOKEN}"]):
        code, text = over_http(member, "POST", CHANGE, *headers)
        assert code == 403 and f"use --data {member.directory};" in text, text
    run = subprocess.run([os.environ["CONCLAVE"], "ensemble", "weight", "1=2", "--at", http(member)], text=True,
                         capture_output=True, timeout=TIMEOUT_S)
    assert run.returncode == 3 and f"use --data {member.directory};" in run.stderr, run
    assert member.log().count("a command was refused") == 1, "it is logged too often"
    for path in ("/ensemble", "/status", "/metrics", "/commands/srvr"):  # to read is for everybody
        assert as_nobody(over_http, member, "GET", path)[0] == 200
    for name in ("stat_reset", "connection_stat_reset", "set_trace_mask?traceMask=1", "orst"):
        assert over_http(member, "GET", f"/commands/{name}")[0] == 403
    assert weight(member) == 1
    host, port = http(member).rsplit(":", 1)
    crowd = [socket.create_connection((host, int(port)), TIMEOUT_S) for _ in range(40)]  # more than are served
    assert done(member, "weight", "1=2") and weight(member) == 2, "a crowd locks the administrator out"
    for connection in crowd:
        connection.close()
    ensemble.stop()


def one_after_the_other(directory):
    """The leader has not recorded the ids of the members yet when the first change is asked for, and has by the
    second."""
    slow = ("strace", "-D", "-f", "-q", "-o", "/dev/null", "-e", "trace=fdatasync", "-e",
            "inject=fdatasync:delay_enter=200000")  # microseconds
    ensemble = Ensemble(directory, count=1, prefixes=[slow]).start()
    (member,) = ensemble.members
    for wanted in 2, 3:
        assert by_socket(os.open(member.directory, os.O_PATH), "POST", f"/ensemble/weight/1={wanted}")[0] == 200
        eventually(lambda: weight(member) == wanted, "it is in force, but not committed yet")
    ensemble.stop()


def by_token(directory):
    token = write_key(f"{directory}/token", TOKEN + "\n")
    ensemble, member = started(directory, "--admin-token-file", token, "--log-level", "debug")

    def by_command(file):
        run = subprocess.run([os.environ["CONCLAVE"], "ensemble", "weight", "1=3", "--at", http(member),
                              "--admin-token-file", file], text=True, capture_output=True, timeout=TIMEOUT_S)
        return run.returncode, run.stdout + run.stderr
    wrong = [[], ["Conclave: 1"], ["Authorization: Bearer"], [f"Authorization: Bearer {TOKEN[:-1]}"],
             [f"Authorization: Bearer {TOKEN}x"], [f"Authorization: Basic {TOKEN}"], [f"Token: {TOKEN}"]]
    for headers in wrong:
        for user in (as_nobody, lambda call, *arguments: call(*arguments)):
            code, text = user(over_http, member, "POST", CHANGE, *headers)
            assert code == 401 and "WWW-Authenticate: Bearer" in text and TOKEN not in text, text
    other = write_key(f"{directory}/other", TOKEN.replace("a", "b"))
    code, text = by_command(other)
    assert code == 3 and "that takes the secret" in text, text
    assert weight(member) == 1
    assert as_nobody(over_http, member, "POST", CHANGE, f"Authorization: Bearer {TOKEN}")[0] == 200
    eventually(lambda: weight(member) == 2, "who has the token may")
    assert by_command(token)[0] == 0 and weight(member) == 3
    bearer = f"Authorization: Bearer {TOKEN}"
    assert '"tracemask": 7' in over_http(member, "GET", "/commands/set_trace_mask?traceMask=7", bearer)[1]
    assert "requires" in over_http(member, "GET", "/commands/stmk?traceMask=x", bearer)[1]
    assert '"tracemask": 7' in over_http(member, "GET", "/commands/get_trace_mask")[1]
    for name in ("stat_reset", "connection_stat_reset", "observer_connection_stat_reset"):
        assert over_http(member, "GET", f"/commands/{name}", bearer)[0] == 200
        assert over_http(member, "GET", f"/commands/{name}")[0] == 401
    os.chmod(token, 0o644)
    code, text = by_command(token)
    assert code == 3 and "only its owner can read" in text, text
    for path in ("/status", "/ensemble", "/metrics", "/commands/configuration", "/commands/environment"):
        assert TOKEN not in over_http(member, "GET", path)[1]
    told = member.log() + open(f"/proc/{member.process.pid}/cmdline").read()
    assert TOKEN not in told and "the secret of all servers" not in told
    ensemble.stop()
    member.spawn()
    assert member.end() == 3 and re.search("token of the administrators cannot be used.*chmod 600", member.log())


def up_has_a_key(directory):
    """`conclave up` makes a key once, for its servers alone."""
    port = 20000 + os.getpid() % 5000 * 2
    here = f"{directory}/new"
    leads = r"server \d: leads in term \d+"
    ours = Up(port, "--data", here)
    ours.sees(leads)
    file = f"{here}/key"
    with open(file) as key:
        secret = key.read().strip()
    assert os.stat(file).st_mode & 0o7777 == 0o600 and re.fullmatch("[0-9a-f]{64}", secret)
    servers = subprocess.run(["pgrep", "-P", str(ours.process.pid)], text=True, stdout=subprocess.PIPE).stdout.split()
    assert len(servers) == 3
    for server in servers:
        words = open(f"/proc/{server}/cmdline").read().split("\0")
        assert words[words.index("--peer-key") + 1] == file and secret not in "".join(words), words
    told = subprocess.run([os.environ["CONCLAVE"], "ensemble", "status", "--data", f"{here}/server1"], text=True,
                          stdout=subprocess.PIPE, check=True).stdout
    assert told.count(" up ") == 2 and secret not in told + "".join(ours.lines), told
    ours.type("quit")
    assert ours.process.wait(TIMEOUT_S) == 0
    again = Up(port, "--data", here)
    again.sees(leads)
    with open(file) as key:
        assert key.read().strip() == secret
    again.type("quit")
    assert again.process.wait(TIMEOUT_S) == 0
    os.chmod(file, 0o604)  # others have seen it
    late = Up(port, "--data", here)
    assert late.process.wait(TIMEOUT_S) == 3
    late.sees(".*only its owner can read.*")
    plain = Up(port, "--data", f"{directory}/plain", "--", "--insecure")
    plain.sees(leads)
    assert not os.path.exists(f"{directory}/plain/key")
    plain.type("quit")
    assert plain.process.wait(TIMEOUT_S) == 0


if __name__ == "__main__":
    main([by_the_socket, over_http_nothing_changes, one_after_the_other, by_token, up_has_a_key])
