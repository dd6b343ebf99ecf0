"""`conclave lock` in a terminal, as a person types it: reading, Ctrl-C, Ctrl-Z, fg and bg, pipelines, the waiting line."""
import os
import pty
import select
import signal
import time

from ensemble import eventually, main
from locking import CONCLAVE, TTL, Site, children, kill, parent_of


class Terminal:
    """A shell in a terminal."""

    def __init__(self, site):
        self.screen = ""
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            environment = {**site.environment, "PS1": "% ", "TERM": "dumb", "LOCK": f"{CONCLAVE} lock x"}
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"], environment)
        self.shows("% ")

    def type(self, text):
        self.screen = ""
        os.write(self.file, text.encode())

    def shows(self, text):
        """Waits until it does, after what was typed last."""
        def is_shown():
            if select.select([self.file], [], [], 1)[0]:
                self.screen += os.read(self.file, 4096).decode().replace("\r\n", "\n")
            return text in self.screen
        if text not in self.screen:
            eventually(is_shown, lambda: f"{text!r}; but {self.screen!r}")

    def line(self, text, shows):
        self.type(text + "\n")
        self.shows(shows)

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.file)


def typed(directory):
    with Site(directory) as site:
        terminal = Terminal(site)
        # a command that reads
        terminal.line("$LOCK -- sh -c 'echo ready; exec cat'", "ready\n")
        terminal.line("hello", "hello\nhello\n")
        # stopped, and the lock is still held
        terminal.type("\x1a")
        terminal.shows("Stopped")
        terminal.line("$LOCK -n -- true; echo code $?", "code 75\n")
        terminal.line("fg", "$LOCK")
        terminal.line("again", "again\nagain\n")
        terminal.type("\x04")
        terminal.shows("% ")
        terminal.line("echo code $?", "code 0\n")
        # Ctrl-C ends the command, and a loop around it
        terminal.line("for i in 1 2 3; do $LOCK -- sh -c 'echo ready; exec sleep 3600'; done", "ready\n")
        terminal.type("\x03")
        terminal.shows("% ")
        terminal.line("echo code $?", "code 130\n")
        # in the background it stops when it wants to read
        terminal.line("$LOCK -- cat &", "[1]")
        terminal.line("while ! jobs | grep Stopped; do sleep 0.1; done; echo seen", "\nseen\n")
        terminal.line("fg", "$LOCK")
        terminal.line("word", "word\nword\n")
        terminal.type("\x04")
        terminal.shows("% ")
        # a shell inside
        terminal.line("$LOCK -- bash --norc --noediting -i", "% ")
        terminal.line("sleep 3600; echo slept $?", "\n")
        time.sleep(0.2)
        terminal.type("\x03")
        terminal.shows("% ")
        terminal.line("exit 5", "exit\n% ")
        terminal.line("echo code $?", "code 5\n")
        # what the command has left behind reads
        terminal.line("$LOCK -- sh -c '(sleep 0.3; read word; echo got $word) </dev/tty & exit 0'", "\n")
        time.sleep(0.2)
        terminal.line("late", "got late\n")
        terminal.line("echo code $?", "code 0\n")
        # a pager behind it has the terminal
        terminal.line("$LOCK -- echo out | (read word </dev/tty; cat; echo got $word)", "\n")
        terminal.line("key", "out\ngot key\n")
        terminal.close()


def waiting_line(directory):
    with Site(directory) as site:
        holder = site.start("lock", "x", "--", "sh", "-c", "echo ready; read line", stdin=-1)
        assert holder.stdout.readline() == "ready\n"
        terminal = Terminal(site)
        terminal.line("$LOCK -- echo done it", "conclave: waiting for x, 1 before us, ")
        terminal.type("\x03")
        terminal.shows("% ")
        terminal.line("echo code $?", "code 130\n")
        terminal.line("$LOCK -- echo done it", "before us, ")
        holder.communicate("\n")
        terminal.shows("\033[Kdone it\n")
        terminal.close()


def nobody_is_left(directory):
    """Who reads the terminal is gone with front or keeper.  If both are killed at once, what the command has started
    gets no more than the read in which it waits: its group is an orphan, which the terminal refuses."""
    script = 'echo "rea""ders" $PPID read; (read word; echo got $word; while read word; do echo sto""le $word; done); echo over'
    with Site(directory) as site:
        terminal = Terminal(site)
        for which in ("front", "keeper", "both"):
            terminal.line(f"$LOCK --ttl {TTL} -- sh -c '{script}'", " read\n")
            keeper = int(terminal.screen.rsplit("readers ", 1)[1].split()[0])
            terminal.line("before", "got before\n")  # it has the terminal
            front, (command,) = parent_of(keeper), children(keeper)
            (reader,) = children(command)
            terminal.screen = seen = ""
            if which == "both":
                kill(front, signal.SIGSTOP)  # so that it does not see the other's end
                eventually(lambda f=front: is_stopped(f), "it has stopped")
            if which != "front":
                kill(keeper)
            if which != "keeper":
                kill(front)
            terminal.shows("% ")
            if which == "both":
                terminal.type("\n")  # for the reader or the shell, who knows
            eventually(lambda r=reader: not parent_of(r), "the reader has ended")
            for number in range(3):
                seen += terminal.screen
                terminal.line(f"echo all $(({number} + 40))", f"all {number + 40}\n")
            assert (seen + terminal.screen).count("stole") <= (which == "both"), seen
        terminal.line("$LOCK -- echo mi''ne", "mine\n")
        terminal.close()


def is_stopped(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "T"


if __name__ == "__main__":
    main([typed, waiting_line, nobody_is_left])
