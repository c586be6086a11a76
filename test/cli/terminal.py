#!/usr/bin/env python3
"""A person at a terminal: run a command on a pseudo terminal, type what the
steps say, and leave everything that was shown in a file.

    terminal.py COLUMNS FILE STEP... -- COMMAND...

A step is `see TEXT` (wait until it has been shown, behind what was seen
before), `wait SECONDS`, `type TEXT` (\\n is Return, ^C and ^D the keys) or `resize COLUMNS`.
Exits as the command did, 128 + n when signal n ended it; 99 when a text was
not shown within a minute, which is told on stderr."""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

PATIENCE = 60.0  # seconds for one step
ROWS = 24


class Screen:
    def __init__(self, fd):
        self.fd, self.shown, self.seen, self.open = fd, b"", 0, True

    def read(self, seconds):
        """Take in what comes; False when nothing more will."""
        if self.open and select.select([self.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:  # the other side is closed
                data = b""
            self.shown += data
            self.open = bool(data)
        return self.open

    def rest(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.read(max(end - time.monotonic(), 0)):
            pass

    def see(self, text):
        end = time.monotonic() + PATIENCE
        while True:
            at = self.shown.find(text, self.seen)
            if at >= 0:
                self.seen = at + len(text)
                return True
            left = end - time.monotonic()
            if left <= 0 or not self.read(left):
                return text in self.shown[self.seen:]


def resize(fd, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))


def keys(text):
    return text.replace("\\n", "\r").replace("^C", "\x03").replace("^D", "\x04").encode()


def play(screen, steps):
    for step in steps:
        verb, _, text = step.partition(" ")
        if verb == "see" and not screen.see(text.encode()):
            print(f"not shown: {text}\n{screen.shown.decode(errors='replace')}", file=sys.stderr)
            return False
        if verb == "type":
            os.write(screen.fd, keys(text))
        if verb == "wait":
            screen.rest(float(text))
        if verb == "resize":
            resize(screen.fd, int(text))
    return True


def finish(pid, screen):
    """The command's end; it is killed when it does not come."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and screen.read(max(end - time.monotonic(), 0)):
        pass
    late = screen.open
    if late:
        os.kill(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return 99 if late else status if status >= 0 else 128 - status


def main(args):
    columns, path = int(args[0]), args[1]
    at = args.index("--")
    pid, fd = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell ignores it for `&`
        resize(0, columns)
        os.execvp(args[at + 1], args[at + 1:])
    screen = Screen(fd)
    good = play(screen, args[2:at])
    if not good:
        os.kill(pid, signal.SIGKILL)
    code = finish(pid, screen)
    with open(path, "wb") as f:
        f.write(screen.shown)
    return code if good else 99


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
