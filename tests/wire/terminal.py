"""A program on a terminal of its own, for tests that type."""
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

from patience import TIMEOUT_S, Late


class Terminal:
    def __init__(self, words, environment, directory):
        self.text, self.read = "", 0  # all that was shown, and how much of it was looked at
        self.status = None
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            os.execve(words[0], words, environment)
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.file)

    def types(self, text):
        os.write(self.file, text.encode())

    def more(self, deadline):
        """Whether anything more was shown; not when the program has ended."""
        ready, _, _ = select.select([self.file], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            raise Late(f"not within {TIMEOUT_S} s; shown is {self.text[-500:]!r}")
        try:
            data = os.read(self.file, 65536)
        except OSError:  # that is how a terminal says it
            data = b""
        self.text += data.decode(errors="replace")
        return bool(data)

    def sees(self, text):
        """Waits until this is shown, after what was seen last."""
        deadline = time.monotonic() + TIMEOUT_S
        while (at := self.text.find(text, self.read)) < 0:
            assert self.more(deadline), f"it ended without {text!r}: {self.text[self.read:]!r}"
        self.read = at + len(text)

    def ends(self):
        """Its exit status, or minus the signal that ended it."""
        deadline = time.monotonic() + TIMEOUT_S
        while self.more(deadline):
            pass
        _, status = os.waitpid(self.pid, 0)
        self.status = os.waitstatus_to_exitcode(status)
        return self.status
