"""How long a test waits for what has to come, and what a program of tests says of one that waited in vain.

A program ends with status 0 when its test passed, LATE when something did not come in time, and 1 when something was
wrong: an answer, a refusal, a server that crashed.
"""
import contextlib
import faulthandler
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import traceback

# Seconds.  Far more than anything needs: a test may take long on a machine that is busy with something else, but
# does not fail there.  What must not come needs another way to show it than a wait.
TIMEOUT_S = int(os.environ.get("PATIENCE", "120"))
# A whole test, which may wait for many things one after the other.  A suite ends it after $LIMIT, and says less then.
HANG_S = 0.9 * int(os.environ.get("LIMIT", 8 * TIMEOUT_S))
LATE = 75

crashes = []  # calls that return which server has ended by itself, or nothing


class Late(AssertionError):
    """What had to come has not come in time."""


def eventually(condition, what, timeout_s=TIMEOUT_S, pause_s=0.005):
    """Waits until the condition holds, and returns its value."""
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise Late(f"not within {timeout_s} s: {what() if callable(what) else what}")
        time.sleep(pause_s)
    return found


def joined(thread, timeout_s=TIMEOUT_S):
    """Waits for the end of a thread, or of a process of multiprocessing."""
    thread.join(timeout_s)
    if thread.is_alive():
        raise Late(f"not within {timeout_s} s: the end of {thread.name}")


def serves(address):
    """A server that somebody else has started: when nothing listens there any more, it has crashed."""
    host, port = address.rsplit(":", 1)

    def is_gone():
        try:
            socket.create_connection((host, int(port)), timeout=TIMEOUT_S).close()
        except ConnectionRefusedError:
            return f"nothing listens at {address} any more"
        except OSError:
            pass
        return None
    crashes.append(is_gone)


def is_late(error):
    """Whether a time-out ended the test, also one that was given another name on its way."""
    kinds = [Late, TimeoutError, subprocess.TimeoutExpired]
    if kazoo := sys.modules.get("kazoo.handlers.threading"):
        kinds += [kazoo.KazooTimeoutError, sys.modules["kazoo.exceptions"].LockTimeout]
    while error is not None:
        if isinstance(error, tuple(kinds)) or isinstance(getattr(error, "reason", None), TimeoutError):
            return True
        error = error.__cause__
    return False


def status_of(error):
    """The exit status for a test that ended so.  What is late because a server has crashed is wrong."""
    if not is_late(error):
        return 1
    crashed = [why for crash in crashes if (why := crash())]
    print(*crashed, sep="\n", end="\n" if crashed else "", file=sys.stderr)
    return 1 if crashed else LATE


def end(status):
    """Ends the program, whatever its threads wait for."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def watch(limit_s):
    """A test that hangs is late.  Returns what calls that off."""
    over = threading.Event()

    def wait():
        if not over.wait(limit_s):
            print(f"it hangs: {limit_s} s", file=sys.stderr, flush=True)
            faulthandler.dump_traceback(all_threads=True)
            end(status_of(Late()))
    threading.Thread(target=wait, daemon=True).start()
    return over.set


@contextlib.contextmanager
def judged(limit_s=HANG_S):
    """Around the only test of a program: ends the program when it fails."""
    watch(limit_s)
    try:
        yield
    except SystemExit:
        raise
    except BaseException as error:
        traceback.print_exc()
        end(status_of(error))


@contextlib.contextmanager
def kept_directory(name):
    """One for the files of a test, below $WORK.  What a failed test leaves there is kept."""
    path = tempfile.mkdtemp(dir=os.environ.get("WORK"), prefix=f"{name}-")
    yield path
    shutil.rmtree(path)


class Checks:
    """For a program of several tests, each of which prints a line; after what failed it goes on."""

    def __init__(self):
        self.statuses = set()

    @contextlib.contextmanager
    def judged(self, name, limit_s=HANG_S):
        call_off = watch(limit_s)
        try:
            yield
            print("ok", name, flush=True)
        except Exception as error:
            status = status_of(error)
            self.statuses.add(status)
            print("LATE" if status == LATE else "FAILED", name, flush=True)
            print(textwrap.indent(traceback.format_exc(), "    "), end="", flush=True)  # tests/run finds it by that
        finally:
            call_off()

    def status(self):
        """Late if that is the worst of them."""
        return min(self.statuses, default=0)
