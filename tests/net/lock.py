"""`conclave lock`: one holder at a time, whatever dies or stops, and each end with its exit code.
SERVER=zookeeper is against ZooKeeper; CYCLES is how often each of 32 processes takes the lock in `counting`."""
import json
import os
import re
import signal
import socket
import subprocess

from kazoo.client import KazooClient
from kazoo.security import make_acl

from ensemble import TIMEOUT_S, eventually, main
from locking import (CALM, CONCLAVE, FOREVER_MS, KIND, TTL, Frozen, Process, Site, children, in_threads, keeper_of, kill, parent_of,
                     state_of, together, unhurried)


def exit_codes(directory):
    with Site(directory) as site:
        site.expect(0, "lock", "x", "--", "true")
        site.expect(7, "lock", "x", "--", "sh", "-c", "exit 7")
        site.expect(128 + 9, "lock", "x", "--", "sh", "-c", "kill -9 $$")
        site.expect(127, "lock", "x", "--", "no-such-command", says="command not found")
        site.expect(126, "lock", "x", "--", "/etc/passwd", says="cannot be executed")
        site.expect(64, "lock", "a//b", "--", "true", says="between or after its slashes")
        site.expect(64, "lock", "a/b-lock-0000000001", "--", "true", says="looks like the node of one who waits")
        site.expect(0, "lock", "x/y", "--", CONCLAVE, "lock", "-n", "x", "--", "true")
        site.expect(75, "lock", "x/y", "--", CONCLAVE, "lock", "-n", "/conclave/locks/x/y", "--", "true")
        site.expect(64, "lock", "x", says="after '--'")
        site.expect(64, "lock", "x", "x", "--", "true", says="named twice")
        site.expect(64, "lock", "x", "--ttl", "3s", "--grace", "2s", "--", "true", says="at most a third")
        site.expect(64, "lock", "x", "--fd", "77", says="not open")
        assert site.run("lock", "--no-such-option", "x", "--", "true").returncode == 64
        says_why(site, 69, "127.0.0.1:1 (connection refused)", "lock", "--server", "127.0.0.1:1", "--connect-timeout")
        holder = site.start("lock", "x", *site.body(FOREVER_MS))
        site.await_body(1)
        site.expect(75, "lock", "-n", "x", "--", "true")
        site.expect(9, "lock", "-n", "-E", "9", "x", "--", "true")
        says_why(site, 75, "somebody else holds it", "lock", "-w")
        site.expect(75, "lock", "-n", "a", "x", "--", "true")
        site.expect(0, "lock", "-n", "a", "--", "true")  # not kept by the attempt before
        holder.send_signal(signal.SIGTERM)
        assert holder.wait() == 128 + 15
        site.expect(0, "lock", "-n", "x", "--", "true")


def says_why(site, code, why, *words):
    """The last of the words takes a time: on a busy machine it may be longer until one knows why."""
    for time in ("100ms", "3s", f"{TIMEOUT_S}s"):
        done = site.run(*words, time, "x", "--", "true")
        assert done.returncode == code and done.stderr.count("\n") == 1, done
        if why in done.stderr:
            return
    raise AssertionError(done.stderr)


def not_allowed(directory):
    with Site(directory) as site:
        site.expect(0, "create", "/conclave")
        site.expect(0, "create", "/conclave/locks", "--acl", "digest:nobody:x:cdrwa")
        site.expect(77, "lock", "x", "--", "true", says="ACL")


def surroundings(directory):
    """Environment, standard input, descriptors, shared locks and semaphores, several at once."""
    with Site(directory) as site:
        show = 'echo "$CONCLAVE_LOCK $CONCLAVE_TOKEN $CONCLAVE_SERVER"; ls /proc/self/fd | wc -l; cat'
        name, token, server, files, words = site.expect(0, "lock", "x", "--", "sh", "-c", show, input="from stdin").split(
            maxsplit=4)
        assert (name, server, words) == ("x", site.server.address, "from stdin"), (name, server, words)
        assert int(files) <= 4, f"the command inherits {files} descriptors"
        again = site.expect(0, "lock", "x", "--", "sh", "-c", "echo $CONCLAVE_TOKEN")
        assert int(again) > int(token)
        tokens = site.expect(0, "lock", "b", "a", "--", "sh", "-c", "echo $CONCLAVE_LOCK $CONCLAVE_TOKEN $CONCLAVE_TOKENS")
        first, token, *rest = tokens.split()
        both = dict(word.split("=") for word in rest)
        assert first == "b" and both["b"] == token and set(both) == {"a", "b"}, tokens
        site.expect(0, "lock", "-s", "r", "--", CONCLAVE, "lock", "-s", "-n", "r", "--", "true")
        site.expect(75, "lock", "-s", "r", "--", CONCLAVE, "lock", "-n", "r", "--", "true")
        two = ["--slots", "2", "s", "--", CONCLAVE, "lock", "-n", "--slots", "2", "s", "--"]
        site.expect(0, "lock", *two, "true")
        site.expect(75, "lock", *two, CONCLAVE, "lock", "-n", "--slots", "2", "s", "--", "true")
        site.environment["CONCLAVE_CONTEXT"] = "another"  # a server that is named alone has nothing of it
        show = "echo $CONCLAVE_SERVER ${CONCLAVE_CONTEXT-none}"
        for words in ("lock x", "once x --slot 1", "elect x"):
            said = site.expect(0, *words.split(), "--server", site.server.address, "--", "sh", "-c", show)
            assert said == f"{site.server.address} none\n", (words, said)


def within_itself(directory):
    """A wrapper whose command wants the same lock is a deadlock, which others can see."""
    with Site(directory) as site:
        show = [CONCLAVE, "lock", "--ttl", CALM, "y", "--", "printenv", "CONCLAVE_SESSIONS"]
        outer, inner = site.expect(0, "lock", "--ttl", CALM, "x", "--", *show).split()
        assert outer.startswith("0x") and inner.startswith("0x") and outer != inner, (outer, inner)
        site.environment["CONCLAVE_SESSIONS"] = "rubbish"  # is not handed on
        waiter = site.start("lock", "--ttl", CALM, "x", "--", CONCLAVE, "lock", "--ttl", CALM, "x", "--", "true")
        site.await_contenders("x", 2)
        said = site.expect(1, "locks", "--deadlocks")
        assert said.startswith("2 sessions wait for each other"), said
        waiter.send_signal(signal.SIGTERM)
        assert waiter.wait() == 128 + 15


def signals(directory):
    """Forwarded to the command; what it has left behind ends with it when it is asked to."""
    with Site(directory) as site:
        trap = 'trap "echo usr1" USR1; trap "echo hup; exit 5" HUP; echo ready; while :; do sleep 0.05; done'
        holder = site.start("lock", "x", "--", "sh", "-c", trap)
        assert holder.stdout.readline() == "ready\n"
        holder.send_signal(signal.SIGUSR1)
        assert holder.stdout.readline() == "usr1\n"
        holder.send_signal(signal.SIGHUP)
        assert holder.stdout.readline() == "hup\n" and holder.wait() == 5
        holder = site.start("lock", "x", "--grace", "200ms", *site.body(FOREVER_MS, "family"))
        site.await_body(1)
        holder.send_signal(signal.SIGINT)
        assert holder.wait() == -signal.SIGINT  # as a shell wants it
        assert site.is_free()
        waiter = site.start("lock", "y", "--", CONCLAVE, "lock", "y", "--", "true")  # waits for itself
        site.await_contenders("y", 2)
        waiter.send_signal(signal.SIGTERM)
        assert waiter.wait() == 128 + 15


def no_answer(directory):
    """With -n too somebody who waits for a server that has fallen silent can press Ctrl-C."""
    with Site(directory) as site, socket.create_server(("127.0.0.1", 0)) as listener:
        site.expect(0, "lock", "x", "--", "true")
        waiter = site.start("lock", "-n", "--ttl", CALM, "--server", f"127.0.0.1:{listener.getsockname()[1]}", "x", "--", "true")
        client = listener.accept()[0]
        with client, socket.create_connection((site.server.host, site.server.port)) as server:
            server.sendall(client.recv(4096))  # the session is opened, and nothing is answered from then on
            client.sendall(server.recv(4096))
            assert client.recv(4096)
            waiter.send_signal(signal.SIGINT)
            assert waiter.wait() == -signal.SIGINT


def counting(directory):
    """32 processes that count in a file without any care."""
    cycles = int(os.environ.get("CYCLES", "8" if KIND == "zookeeper" else "48"))
    with Site(directory) as site:
        loop = f'for i in $(seq {cycles}); do "$@" || exit; done'
        workers = [subprocess.Popen(["sh", "-c", loop, "-", CONCLAVE, *unhurried(["lock", "counter", *site.body(0)])],
                                    env=site.environment) for _ in range(32)]
        assert [worker.wait() for worker in workers] == [0] * 32
        assert site.check() == 32 * cycles
        with open(f"{directory}/count") as file:
            assert int(file.read()) == 32 * cycles
        ends = [what for what, *_ in site.records()]
        assert ends == ["begin", "end"] * (32 * cycles)


def first_in_first_out(directory):
    with Site(directory) as site:
        holder = site.start("lock", "x", *site.body(FOREVER_MS))
        site.await_body(1)
        waiters = []
        for number in range(5):
            waiters.append(site.start("lock", "x", "--", "sh", "-c", f"echo {number} >>{directory}/order"))
            site.await_contenders("x", number + 2)
        holder.terminate()
        assert [waiter.wait() for waiter in waiters] == [0] * 5
        with open(f"{directory}/order") as file:
            assert file.read().split() == list("01234")


def nothing_is_left(directory):
    """Of the command and what it has started, after each end of the processes around it."""
    with Site(directory) as site:
        def ends(how, code):
            """With a longer session if it was lost before that, as on a busy machine."""
            for ttl in (TTL, "9s", "27s"):
                count = site.begun()
                front = site.start("lock", "x", "--ttl", ttl, "--grace", "300ms", *site.body(FOREVER_MS, "deaf", "family"))
                keeper = keeper_of(front)
                site.await_body(count + 1)
                waiter = site.start("lock", "x", *site.body(0))
                how(front.pid, keeper)
                assert front.wait() in (code, 76), (how, front.returncode, front.stderr.read())
                assert waiter.wait() == 0
                assert site.is_free()
                site.check()
                if front.returncode == code:
                    return
            raise AssertionError((how, front.returncode, front.stderr.read()))
        ends(lambda front, keeper: kill(front), -9)
        ends(lambda front, keeper: kill(keeper), 76)
        ends(lambda front, keeper: kill(keeper, signal.SIGSTOP), 76)
        ends(lambda front, keeper: (kill(keeper, signal.SIGSTOP), kill(front)), -9)


def what_is_left_behind(directory):
    """By the command, which has ended: it still counts."""
    with Site(directory) as site:
        first = site.start("lock", "x", *site.body(0, "leaves"))
        site.await_body(1)
        site.expect(0, "lock", "x", *site.body(0))
        assert first.wait() == 0
        assert [what for what, *_ in site.records()] == ["begin", "end", "left", "begin", "end"]
        # what the calling shell has started before is not the command's
        script = 'sleep 3600 & echo $!; exec "$@"'
        for words, end in ((["true"], None), (["sh", "-c", "echo runs; sleep 3600"], kill)):
            front = Process(["bash", "-c", script, "-", CONCLAVE, "lock", "x", "--", *words], env=site.environment,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            before = int(front.stdout.readline())
            if end:
                assert front.stdout.readline() == "runs\n"
                end(next(pid for pid in children(front.pid) if pid != before))
            assert front.wait() == (76 if end else 0)
            assert parent_of(before), "it was killed as well"
            kill(before)


def reused_number(directory):
    """A process of the command that has the number of one that the calling shell had started goes with the command."""
    last = "/proc/sys/kernel/ns_last_pid"
    space = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*space, "sh", "-c", f"echo 100 >{last}"], capture_output=True, check=False).returncode != 0:
        return  # not allowed here
    # The shell's child has a child of its own, whose number is free when it has ended.
    before = f"""sh -c '(until test -e {directory}/started; do sleep 0.01; done) & echo $! >{directory}/number.new; wait
        mv {directory}/number.new {directory}/number; sleep 3600' &"""
    body = f"""touch {directory}/started
        while test ! -e {directory}/number; do sleep 0.01; done
        number=$(cat {directory}/number)
        until sleep 3600 & test $! -eq $number; do kill $!; wait $!; echo $((number - 1)) >{last}; done
        echo same; wait"""
    with Site(directory) as site:
        script = f"({before} exec {CONCLAVE} lock x --ttl {TTL} -- bash -c '{body}'); echo code $?; sleep 3600"
        shell = Process([*space, "bash", "-c", script], env=site.environment, stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL, text=True)
        assert shell.stdout.readline() == "same\n"
        with open(f"{directory}/number") as file:
            number = int(file.read())
        ((inner,),) = [children(pid) for pid in children(shell.pid)]
        keeper = next(pid for pid in children(inner) if is_keeper(pid))
        (command,) = children(keeper)
        (reused,) = [pid for pid in children(command) if number_inside(pid) == number]
        kill(keeper)  # the front sees to what is left
        assert shell.stdout.readline() == "code 76\n"
        assert not parent_of(reused), "it lives"
        shell.kill()
        shell.wait()


def number_inside(pid):
    """Of its own namespace."""
    with open(f"/proc/{pid}/status") as file:
        return int(next(line for line in file if line.startswith("NSpid")).split()[-1])


def shared_with_others(directory):
    """A name that begins with a slash is a path, on which kazoo's lock and ours exclude each other, by one recipe."""
    with Site(directory) as site:
        zk = KazooClient(hosts=site.server.address, timeout=60)
        zk.start(TIMEOUT_S)
        with zk.Lock("/app/lock", "kazoo"):
            site.expect(65, "lock", "/app/lock", "--", "true", says="by another recipe")
            site.expect(75, "lock", "-n", "/app/lock", "--recipe", "kazoo", "--", "true")
            waiter = site.start("lock", "/app/lock", "--recipe", "kazoo", "--", "sh", "-c", "echo $CONCLAVE_LOCK")
            eventually(lambda: len(zk.get_children("/app/lock")) == 2, "it waits")
            assert site.run("locks", "/app/lock").stdout.startswith("/app/lock: held by")
        assert waiter.wait() == 0 and waiter.stdout.read() == "/app/lock\n"
        zk.stop()
        site.expect(64, "lock", "x", "/conclave/locks/x", "--", "true", says="named twice")
        site.expect(0, "lock", "x", "/app/lock", "--", CONCLAVE, "lock", "-n", "-E", "0",
                    "/conclave/locks/x", "--", "false")


def in_any_order(directory):
    """Whoever names several locks does not wait in a circle."""
    with Site(directory) as site:
        def work(number):
            names = ["a", "b", "c"] if number % 2 else ["c", "b", "a"]
            for _ in range(5):
                site.expect(0, "lock", *names, *site.body(5))
        in_threads(4, work)
        assert len(site.records()) == 2 * 4 * 5


def both_are_killed(directory):
    """The kernel kills the command itself."""
    with Site(directory) as site:
        front = site.start("lock", "x", "--ttl", TTL, *site.body(FOREVER_MS, "deaf"))
        keeper = keeper_of(front)
        site.await_body(1)
        kill(front.pid, signal.SIGSTOP)  # so that it cannot see the other's end
        kill(keeper)
        eventually(site.is_free, "nothing is left")
        kill(front.pid)
        site.expect(0, "lock", "x", *site.body(0))
        site.check()


def nobody_answers(directory):
    """The server is stopped: the command is told, then killed, and gone while the session still lives."""
    with Site(directory) as site:
        front = site.start("lock", "x", "--ttl", TTL, "--grace", "500ms", *site.body(FOREVER_MS, "deaf", "family"))
        site.await_body(1)
        waiter = site.start("lock", "x", *site.body(0))
        # For longer, because a busy machine may need long to tell it and to hear of it.
        polite = site.start("lock", "y", "--ttl", "12s", "--grace", "4s", "--", "sh", "-c",
                            "trap 'echo told; exit 0' TERM; echo ready; while :; do sleep 0.05; done")
        assert polite.stdout.readline() == "ready\n"
        site.server.pause()
        assert front.wait() == 76 and "x was lost (no server has answered in time)" in front.stderr.read()
        assert site.is_free()
        assert polite.wait() == 76 and polite.stdout.read() == "told\n"
        site.server.go_on()
        assert waiter.wait() == 0
        site.check()


def all_are_stopped(directory):
    """Front, keeper and command sleep past the session: they are killed when they wake, before anything else."""
    with Site(directory) as site:
        front = site.start("lock", "x", "--ttl", TTL, *site.body(FOREVER_MS, "deaf"))
        keeper = keeper_of(front)
        site.await_body(1)
        command = eventually(lambda: children(keeper), "it runs")[0]
        for pid in (front.pid, keeper, command):
            kill(pid, signal.SIGSTOP)
        site.expect(0, "lock", "x", "--", "true")  # when the session is over
        for pid in (front.pid, keeper):
            kill(pid, signal.SIGCONT)
        assert front.wait() == 76
        assert site.is_free()  # without having been continued


def not_released(directory):
    """No server can be told that the command has ended: its exit status stands, and one line warns."""
    with Site(directory) as site:
        for ttl in (TTL, "9s", "27s"):  # longer if it was lost before the command has ended, as on a busy machine
            front = site.start("lock", "x", "--ttl", ttl, "--", "sh", "-c", "echo ready; read line; exit 5",
                               stdin=subprocess.PIPE)
            assert front.stdout.readline() == "ready\n"
            site.server.kill()
            _, errors = front.communicate("go\n")
            site.server.start()
            if front.returncode != 76:
                break
        assert front.returncode == 5 and "no server could be told" in errors, (front.returncode, errors)


def lost_before_the_end(directory):
    """The command ends by itself while nobody could tell it that the lock was taken away."""
    with Site(directory) as site:
        front = site.start("lock", "x", "--", "sh", "-c", "echo $$; read line; exit 5", stdin=subprocess.PIPE)
        command = int(front.stdout.readline())
        keeper = keeper_of(front)
        kill(keeper, signal.SIGSTOP)
        site.expect(0, "rm", f"/conclave/locks/x/{site.contenders('x')[0]}")
        front.stdin.write("go\n")
        front.stdin.flush()
        eventually(lambda: state_of(command) == "Z", "the command has ended")
        kill(keeper, signal.SIGCONT)
        errors = front.communicate()[1]
        assert front.returncode == 72 and "before the command ended, with exit status 5" in errors, (front.returncode, errors)


def forced(directory):
    """Somebody deletes one of the holder's nodes: the command is killed at once, and its last word says which and why."""
    with Site(directory) as site:
        front = site.start("lock", "z", "x", *site.body(FOREVER_MS, "deaf"))
        site.await_body(1)
        (node,) = site.contenders("x")
        site.expect(0, "rm", f"/conclave/locks/x/{node}")
        said = front.communicate()[1]
        assert front.returncode == 76 and "x was lost (somebody has taken it away)" in said, said
        assert site.is_free()


def resumed(directory):
    """A wrapper that is started again has its lock, with the same token."""
    with Site(directory) as site:
        words = ["lock", "x", "--ttl", CALM, "--session", f"{directory}/session"]
        front = site.start(*words, *site.body(FOREVER_MS))
        site.await_body(1)
        assert os.stat(f"{directory}/session").st_mode & 0o777 == 0o600
        site.expect(75, *words, "--", "true", says="still uses it")
        waiter = site.start("lock", "x", "--", "sh", "-c", "echo $CONCLAVE_TOKEN")
        site.await_contenders("x", 2)
        front.terminate()
        assert front.wait() == 128 + 15
        token, *files = site.expect(0, *words, "--", "sh", "-c", "echo $CONCLAVE_TOKEN; readlink /proc/self/fd/*; true").split()
        assert token == site.records()[0][1], "another token"
        assert f"{directory}/session.lock" in files and f"{directory}/session" not in files, files
        assert waiter.wait() == 0 and int(waiter.stdout.read()) > int(token)
        assert os.stat(f"{directory}/session").st_size == 0
        inner = ["--ttl", CALM, "--session", f"{directory}/session"]
        for _ in range(2):
            front = site.start("lock", "a/b", *inner, "--", "sh", "-c", "echo runs; sleep 3600")
            assert front.stdout.readline() == "runs\n"
            front.terminate()
            assert front.wait() == 128 + 15
        # what is kept of a/b is not taken for that of a
        names = site.expect(0, "lock", "-n", "--recipe", "kazoo", "a", *inner, "--", CONCLAVE, "ls", "/conclave/locks/a")
        assert "__lock__" in names, names
        front = site.start("lock", "a/b", *inner, "--", "sh", "-c", "echo runs; sleep 3600")
        assert front.stdout.readline() == "runs\n"
        front.terminate()
        front.wait()
        with open(f"{directory}/session", "r+", encoding="ascii") as file:
            kept = json.load(file)
            kept["session"] += 1  # of which no server knows
            file.seek(0)
            json.dump(kept, file)
            file.truncate()
        site.expect(0, "lock", "-n", "c", *inner, "--", "true")


def descriptor(directory):
    """As it is typed in scripts, in bash and dash; and who had it open is killed when the lock is lost."""
    script = f"""exec 9>/dev/null
        {CONCLAVE} lock x --fd 9 || exit 9
        {CONCLAVE} lock -n x -- true && exit 8
        exec 9>&-
        {CONCLAVE} lock x -- true || exit 7
        exec 9>/dev/null
        {CONCLAVE} lock x --fd 9 --print-token || exit 6
        (sleep 0.2; exit) & exit 5"""
    two = f"""exec 9>/dev/null 8>/dev/null
        {CONCLAVE} lock x --fd 9 || exit 9
        token=$({CONCLAVE} lock y --fd 8 --print-token 2>&1) || exit 8
        exec 9>&-
        {CONCLAVE} lock x -- {CONCLAVE} lock -n y -- true
        test $? = 75 || exit 7
        exec 8>&-
        {CONCLAVE} lock y -- echo $token"""
    with Site(directory) as site:
        for shell in ("bash", "dash"):
            done = subprocess.run([shell, "-c", script], env=site.environment, capture_output=True, text=True, check=False)
            assert done.returncode == 5 and int(done.stdout) > 0, done
            site.expect(0, "lock", "x", "--", "true")
        done = subprocess.run(["bash", "-c", two], env=site.environment, capture_output=True, text=True, check=False,
                              timeout=TIMEOUT_S)
        assert done.returncode == 0 and int(done.stdout) > 0, done
        name = os.path.basename(directory)  # one that no other test on this machine has
        words = f"lock\0{name}\0--fd"
        for pause in (lambda keeper: site.server.pause(), kill, lambda keeper: kill(keeper, signal.SIGSTOP)):
            hold = f"exec 9>/dev/null; {CONCLAVE} lock {name} --fd 9 --ttl {TTL} --grace 200ms; trap '' TERM; " \
                "echo held; sleep 3600; echo alive"
            shell = subprocess.Popen(["sh", "-c", hold], env=site.environment, text=True, stdout=subprocess.PIPE)
            assert shell.stdout.readline() == "held\n"
            pause(next(pid for pid in processes_with(words) if is_keeper(pid)))
            assert shell.wait() == -9 and shell.stdout.read() == ""
            site.server.go_on()
            site.expect(0, "lock", name, "--", "true")
            eventually(lambda: not processes_with(words), "who kept the lock, and who watched, have ended")


def odd_callers(directory):
    """Standard descriptors that are closed, and ends of children that are ignored, change nothing."""
    script = f"""exec 9>{directory}/file
        {CONCLAVE} lock x --fd 9 --ttl {CALM} $0 || exit 9
        {CONCLAVE} lock -n x -- true"""
    with Site(directory) as site:
        for closed in ("<&-", "<&- >&-", "<&- >&- 2>&-"):
            done = subprocess.run(["bash", "-c", script.replace("$0", closed)], env=site.environment, check=False,
                                  capture_output=True, timeout=TIMEOUT_S)
            assert done.returncode == 75, (closed, done)
            site.expect(0, "lock", "x", "--", "true")
        site.expect(64, "lock", "x", "--fd", "0", says="not open", preexec_fn=lambda: os.close(0))
        ignoring = {"preexec_fn": lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)}
        site.expect(7, "lock", "x", "--", "sh", "-c", "exit 7", **ignoring)
        site.expect(5, "lock", "x", "--", CONCLAVE, "lock", "-n", "-E", "5", "x", "--", "true", **ignoring)


def in_vain(directory):
    """What will not be better is said at once, with its own exit code."""
    with Site(directory) as site:
        zk = KazooClient(site.server.address.split("/")[0])
        zk.start(timeout=TIMEOUT_S)
        zk.create("/ephemeral", ephemeral=True)
        zk.create("/locked", acl=[make_acl("world", "anyone", read=True)])
        site.expect(65, "lock", "-n", "/ephemeral/x", "--", "true", says="ephemeral")
        for command in (["lock", "x"], ["elect", "x"], ["once", "x", "--slot", "1"]):
            elsewhere = f"{site.server.address}/nowhere"
            site.expect(65, *command, "--server", elsewhere, "--", "true", says="there is no node /nowhere")
            site.expect(64, *command, "--server", "foo:", "--", "true", says="'foo:' is not HOST:PORT")
        site.expect(77, "lock", "/locked/team/x", "--", "true", says="ACL")
        site.expect(77, "elect", "/locked/team/x", "--", "true", says="ACL")
        site.expect(64, "lock", "\U0001f600", "--", "true", says="no path may have")
        zk.stop()


def talks(directory):
    """--hold, as it is typed in bash: it says what it holds, until its input ends or the lock is lost."""
    script = f"""coproc L {{ {CONCLAVE} lock --hold --ttl {CALM} x; }}
        read -r word token <&${{L[0]}}
        {CONCLAVE} lock -n x -- true; echo "$word $? $token"
        pid=$L_PID; exec {{L[1]}}>&-; wait $pid; echo $?"""
    with Site(directory) as site:
        done = subprocess.run(["bash", "-c", script], env=site.environment, capture_output=True, text=True, check=False,
                              timeout=TIMEOUT_S)
        (word, busy, token), (code,) = (line.split() for line in done.stdout.splitlines())
        assert (word, busy, code) == ("held", "75", "0"), done
        tokens = json.loads(site.expect(0, "lock", "--json", "--hold", "y", "x", input=""))["tokens"]
        assert set(tokens) == {"x", "y"} and tokens["x"] > int(token), (tokens, token)
        assert site.expect(0, "lock", "--hold", "y", "x", input="").split()[0] == "held"
        front = site.start("lock", "--hold", "x", stdin=subprocess.PIPE)
        assert front.stdout.readline().startswith("held ")
        site.expect(0, "rm", f"/conclave/locks/x/{site.contenders('x')[0]}")
        said, errors = front.stdout.read(), front.stderr.read()
        assert (front.wait(), said, errors) == (76, "lost\n", "conclave: x was lost (somebody has taken it away)\n")
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([CONCLAVE, "lock", "--hold", "x"], env=site.environment, stdin=subprocess.PIPE,
                                  stdout=full, check=False, timeout=TIMEOUT_S)
            assert done.returncode == 71, done
        site.expect(0, "lock", "--hold", "x", preexec_fn=lambda: os.close(0))
        front = site.start("lock", "--hold", "--ttl", TTL, "x", stdin=subprocess.PIPE)
        assert front.stdout.readline().startswith("held ")
        kill(keeper_of(front), signal.SIGSTOP)
        assert front.stdout.read() == "lost\n" and front.wait() == 76
        site.expect(64, "lock", "x", "--hold", "--", "true", says="either --fd, --hold or a command")
        site.expect(64, "lock", "x", "--json", "--", "true", says="--hold and --fd")


def killed_as_it_is_granted(directory):
    """Who has started it dies at the moment at which it gets the lock: nothing of it is left."""
    with Site(directory) as site:
        holder = site.start("lock", "--hold", "x", stdin=subprocess.PIPE)
        assert holder.stdout.readline().startswith("held ")
        front = site.start("lock", "x", *site.body(FOREVER_MS))
        site.await_contenders("x", 2)
        keeper = keeper_of(front)
        with Frozen(keeper):  # its first thread, and not the one of the session
            holder.stdin.close()
            eventually(lambda: is_woken(keeper), "the session's thread has told it")
            front.kill()
            front.wait()
        site.await_contenders("x", 0)
        assert holder.wait() == 0
        eventually(lambda: not processes_with(f"{directory}\0"), "keeper and body are gone")


def is_woken(keeper):
    """Of those that a thread can wake it by, the keeper's was opened first."""
    wakes = [int(entry) for entry in os.listdir(f"/proc/{keeper}/fd")
             if os.readlink(f"/proc/{keeper}/fd/{entry}") == "anon_inode:[eventfd]"]
    with open(f"/proc/{keeper}/fdinfo/{min(wakes)}", encoding="ascii") as file:
        return re.search(r"eventfd-count:\s*(\w+)", file.read()).group(1) != "0"


def watched_across_a_cut(directory):
    """`locks --watch` shows what came while it had no connection, and what comes later."""
    with Site(directory) as site:
        watching = site.start("locks", "--watch", "--json")

        def await_change(event, lock):
            while line := watching.stdout.readline():
                told = json.loads(line)
                if (told["event"], told["lock"]) == (event, lock):
                    return
            raise AssertionError(f"it ended, and {lock} was not {event}: {watching.stderr.read()}")
        old = site.start("lock", "--hold", "old", stdin=subprocess.PIPE)
        await_change("granted", "old")
        watching.send_signal(signal.SIGSTOP)
        site.server.kill()
        site.server.start()
        new = site.start("lock", "--hold", "folder/new", stdin=subprocess.PIPE)
        assert new.stdout.readline().startswith("held ")
        watching.send_signal(signal.SIGCONT)
        await_change("granted", "folder/new")
        for front, name in (new, "folder/new"), (old, "old"):
            front.stdin.close()
            await_change("released", name)
            assert front.wait() == 0
        watching.terminate()
        assert watching.wait() == 0


def processes_with(words):
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                if words.encode() in file.read():
                    found.append(int(entry))
        except (OSError, ValueError):
            pass
    return found


def is_keeper(pid):
    """It has a thread for the session."""
    return len(os.listdir(f"/proc/{pid}/task")) > 1


if __name__ == "__main__":
    calm, rough = [exit_codes, surroundings, counting, nothing_is_left, resumed], [nobody_answers, watched_across_a_cut]
    here = [not_allowed, no_answer, signals, what_is_left_behind, reused_number, shared_with_others, in_any_order,
            first_in_first_out, both_are_killed, killed_as_it_is_granted, all_are_stopped, not_released,
            lost_before_the_end, forced, descriptor, odd_callers, in_vain, talks, within_itself]
    main([together(*calm), *rough] if KIND == "zookeeper" else calm + rough + here)
