"""What the tests stand on: a data root, a folder with a file, a runtime of either kind."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import ava

MODE = "embedded"
FOLDER = ""
EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples")
PATIENCE_S = 120
TASK = "where is the torn tail cut?"


def end_daemon(root, signo=signal.SIGTERM):
    """The daemon of a root, by its pid, and until it is gone."""
    try:
        with open(os.path.join(root, "ava.lock"), encoding="utf-8") as f:
            pid = int(f.read().split()[0])
        os.kill(pid, signo)
    except (FileNotFoundError, ProcessLookupError, IndexError, ValueError):
        return
    until(lambda: gone(pid))


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def until(done):
    end = time.monotonic() + PATIENCE_S
    while not done():
        if time.monotonic() > end:
            raise AssertionError("it did not come")
        time.sleep(0.01)


class World(unittest.TestCase):
    def setUp(self):
        os.makedirs(FOLDER, exist_ok=True)
        self.folder = tempfile.mkdtemp(dir=FOLDER)
        self.root = os.path.join(self.folder, "root")
        self.work = os.path.join(self.folder, "work")
        os.mkdir(self.work)
        with open(os.path.join(self.work, "notes.md"), "w", encoding="utf-8") as f:
            f.write("# Notes\n\nThe torn tail is cut at the last whole record.\n")
        self.slow = self.script("slow", '{"text":"late","delay_ms":600000}\n')
        self.opened = []
        self.addCleanup(end_daemon, self.root)

    def tearDown(self):
        for rt in self.opened:
            rt.close()

    def script(self, name, turns):
        """A model that says these turns."""
        path = os.path.join(self.folder, name + ".jsonl")
        with open(path, "w", encoding="utf-8") as f:
            f.write(turns)
        return "offline:" + path

    def open(self, **options):
        rt = ava.embed(self.root, process_env=True, **options) if MODE == "embedded" else ava.open(self.root)
        self.opened.append(rt)
        return rt

    def spawn(self, rt, model=None, **options):
        return rt.spawn(TASK, role="code_reviewer", cwd=self.work, model=model, **options)

    def program(self, text, *args, **options):
        """Another Python; `how` is "embedded" or "connect", and open_() opens this world's runtime."""
        head = ("import ava, os, signal, sys, threading, time\n"
                # One that was begun in the background has no ^C.
                "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
                f"ROOT, WORK, SLOW = {self.root!r}, {self.work!r}, {self.slow!r}\n"
                f"def open_(): return {'ava.embed(ROOT, process_env=True)' if MODE == 'embedded' else 'ava.open(ROOT)'}\n")
        return subprocess.Popen([sys.executable, "-X", "dev", "-c", head + text, *args], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **options)

    def says(self, text, code=0):
        """What such a program printed."""
        child = self.program(text)
        out, err = child.communicate(timeout=PATIENCE_S)
        self.assertEqual(child.returncode, code, err)
        return out, err
