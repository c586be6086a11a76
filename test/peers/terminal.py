"""A terminal with a program in it, and a person before it: tmux, with a server of its own below T."""

import os
import subprocess
import time


class NotShown(Exception):
    pass


class Terminal:
    def __init__(self, words, folder, env, columns=110, rows=40):
        self.env = env | {"TMUX_TMPDIR": os.environ["T"]}
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", folder, *words)

    def tmux(self, *words):
        return subprocess.run(["tmux", "-L", "ava", "-f", "/dev/null", *words], env=self.env, capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL).stdout

    def text(self):
        return self.tmux("capture-pane", "-p").replace("\u00a0", " ")

    def see(self, *texts, patience=60):
        """Until all of them are on the screen; are they?"""
        end = time.monotonic() + patience
        while not all(t in self.text() for t in texts):
            if time.monotonic() > end:
                return False
            time.sleep(0.1)
        return True

    def want(self, *texts):
        if not self.see(*texts):
            raise NotShown(f"{texts}\n{self.text()}")

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def press(self, key, *texts):
        """A key, again if it was not heard, until the texts are there."""
        for _ in range(12):
            self.tmux("send-keys", key)
            if self.see(*texts, patience=5):
                return
        self.want(*texts)

    def close(self):
        self.tmux("kill-server")
