#!/usr/bin/python3
"""The k-th open, read, allocation or thread of the real daemon fails while runs are at work.

For each kind it is counted how many such calls there are while a run reads and searches, a person
speaks with Ava and lists are asked for; then the k-th of them fails, for each k (AVA_SOAK=1), or for some
drawn from a printed seed. The daemon lives, or it ends with a sentence and starts again. Each
run that was accepted has ended, before that start or after it; check_root.py, which shares
no code with ava, reads all that was written.

    faulty.py FAULTY_AVAD AVA [KIND [K]]        with K and a sanitiser: and where it failed"""

import errno
import http.client
import json
import mmap
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_root

SOAK = bool(os.environ.get("AVA_SOAK"))
SEED = int(os.environ.get("AVA_FAULTY_SEED", "29"))
SLOWER = 4 if os.environ.get("AVA_SANITIZER") else 1
# How many k of each are tried unless each is; and the error.
KINDS = [("open", 50, errno.EMFILE), ("read", 40, errno.EIO), ("memory", 110, errno.ENOMEM), ("thread", 10, errno.EAGAIN)]
ENOUGH = 0.5  # seconds that a run may take when the fault has struck


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=4.5 * SLOWER)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def until(what, seconds):
    end = time.monotonic() + seconds * SLOWER
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.004)
    return False


class World:
    def __init__(self, avad, folder):
        self.avad, self.folder, self.root = avad, folder, os.path.join(folder, "data")
        self.cwd, self.words = os.path.join(folder, "proj"), os.path.join(folder, "words")
        os.makedirs(self.root, mode=0o700)
        os.makedirs(self.cwd)
        for name in ("a.c", "b.c"):
            with open(os.path.join(self.cwd, name), "w", encoding="utf-8") as f:
                f.write("int helper(void);\n" * 40)
        turns = [[("list_files", {})], [("read_file", {"path": "a.c"}), ("search_codebase", {"pattern": "helper"})],
                 [("submit_result", {"summary": "done", "confidence": 1})]]
        self.script = os.path.join(folder, "turns.jsonl")
        with open(self.script, "w", encoding="utf-8") as f:
            for calls in turns:
                f.write(json.dumps({"tool_calls": [{"name": n, "args": a} for n, a in calls]}) + "\n")
        with open(os.path.join(folder, "faulty"), "w+b") as f:
            f.truncate(4096)
            self.page = mmap.mmap(f.fileno(), 4096)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("AVA_")}
        self.env.update(HOME=folder, AVA_DATA_ROOT=self.root, AVA_MODEL="offline", AVA_FAULTY=os.path.join(folder, "faulty"),
                        AVA_DAEMON_IDLE_EXIT="0", AVA_DISK_FREE_MIN_MB="0")
        for name in ("CONFIG", "DATA", "STATE", "CACHE"):
            self.env[f"XDG_{name}_HOME"] = os.path.join(folder, name.lower())
        self.daemon, self.runs, self.open = None, [], []
        self.session, self.starts, self.silent = None, 0, []

    # ---- the daemon

    def start(self, armed=False):
        self.starts += 1
        with open(self.words, "w", encoding="utf-8") as words:
            self.daemon = subprocess.Popen([self.avad, "--verbose"], env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL,
                                           stdout=words, stderr=words)
        if not until(lambda: self.daemon.poll() is not None or self.get("/health"), 20) or \
                self.daemon.poll() is not None and not armed:
            self.wrong("it does not start")

    def told(self):
        with open(self.words, encoding="utf-8", errors="replace") as f:
            return f.read()

    def wrong(self, what):
        reports = [open(os.path.join(self.folder, n), encoding="utf-8", errors="replace").read()[:6000]
                   for n in os.listdir(self.folder) if n.startswith("report")]
        print(f"{what}\n{self.told()[-3000:]}\n{''.join(reports)}", flush=True)
        if self.daemon and self.daemon.poll() is None:
            self.daemon.kill()
            self.daemon.wait()
        sys.exit(1)

    def stop(self):
        self.daemon.send_signal(signal.SIGTERM)
        try:
            if self.daemon.wait(30 * SLOWER) < 0:
                self.wrong(f"its stop ended by signal {-self.daemon.returncode}")
        except subprocess.TimeoutExpired:
            self.wrong("it does not stop")

    def ask(self, method, path, body=None):
        """(status, answer); (0, words) when there was none."""
        c, began = Unix(os.path.join(self.root, "ava.sock")), time.monotonic()
        try:
            c.request(method, "/api/v1" + path, None if body is None else json.dumps(body),
                      {} if body is None else {"Content-Type": "application/json"})
            answer = c.getresponse()
            return answer.status, json.loads(answer.read() or b"{}")
        except (OSError, http.client.HTTPException, ValueError) as why:
            return 0, f"{type(why).__name__}: {why}"
        finally:
            c.close()
            if time.monotonic() - began > 4 * SLOWER:
                self.silent.append(f"{method} {path}")

    def get(self, path):
        status, answer = self.ask("GET", path)
        return answer if status == 200 else None

    def ended(self, run):
        return (self.get("/runs/" + run) or {}).get("status") not in ("queued", "running", None)

    def rests(self, run):
        """It has ended, or says that it does at the next start."""
        now = self.get("/runs/" + run) or {}
        return now.get("status") not in ("queued", "running", None) or "Out of memory" in json.dumps(now)

    def talks_no_more(self):
        now = self.get("/sessions/" + self.session) or {}
        return now.get("status") != "busy" or "Out of memory" in json.dumps(now)

    # ---- what is at work

    def work(self, wait=True):
        """A run and a talk; who accepted the run must end it."""
        if self.session is None or "Out of memory" in json.dumps(self.get("/sessions/" + self.session) or "Out of memory"):
            status, answer = self.ask("POST", "/sessions", {"cwd": self.cwd})
            self.session = answer["session_id"] if status == 201 else None
        said = self.ask("POST", f"/sessions/{self.session}/messages", {"text": "hello"})[0]
        status, answer = self.ask("POST", "/runs", {
            "role": "code_reviewer", "task": "Look", "model": "offline:" + self.script, "cwd": self.cwd, "confirmed": True})
        self.ask("GET", "/runs?all=1&limit=5")
        if status == 201:
            run = answer["subagent_id"]
            self.runs.append(run)
            if wait:
                until(lambda: self.daemon.poll() is not None or self.rests(run), ENOUGH)
            if not wait or not self.ended(run):
                self.open.append(run)
        elif status not in (0, 202) and not (isinstance(answer, dict) and answer.get("error", {}).get("message")):
            self.wrong(f"a refusal without a word: {status} {answer}")
        if wait and said == 202:
            until(lambda: self.daemon.poll() is not None or self.talks_no_more(), ENOUGH)

    def arm(self, kind, k, error, always=0):
        self.page[0:16] = struct.pack("iiii", 0, k, error, always)
        self.page[0:4] = struct.pack("i", kind + 1)

    def disarm(self):
        """How many calls of the kind were left before the one that fails; below 0: it failed."""
        self.page[0:4] = struct.pack("i", 0)
        return struct.unpack("i", self.page[4:8])[0]

    def settle(self, what):
        """The daemon lives, or has said why not and starts again; what is open ends."""
        code = self.daemon.poll()
        if code is not None:
            if code < 0 or "Sanitizer" in self.told() or not self.told().strip():
                self.wrong(f"{what}: the daemon ended with {code}")
            self.start()
        elif len(self.open) >= 12:
            self.stop()
            self.start()
        else:
            return
        for run in self.open:
            if not until(lambda: self.ended(run), 20):
                self.wrong(f"{what}: {run} does not end after a start: {self.get('/runs/' + run)}")
        self.open.clear()


    def start_with(self, kind, k, error):
        """A killed daemon with a run at work starts, and the k-th call fails: it serves, or says why not. Was it hit?"""
        self.work(wait=False)
        self.daemon.kill()
        self.daemon.wait()
        self.arm(kind, k, error)
        self.start(armed=True)
        hit = self.disarm() < 0
        if self.daemon.poll() is not None:
            if self.daemon.returncode < 0 or not self.told().strip():
                self.wrong(f"start, {k}: it ended with {self.daemon.returncode}")
            self.start()
        return hit


def numbers(n, some):
    if SOAK or n <= some:
        return range(n)
    return sorted(random.Random(SEED).sample(range(n), some))


def play(w, kind, name, some, error, one):
    w.work()
    w.arm(kind, 1 << 30, error)
    w.work()
    n = (1 << 30) - w.disarm()
    tried, hit = [one] if one is not None else numbers(n, some), 0
    for k in tried:
        w.arm(kind, k, error)
        w.work()
        hit += w.disarm() < 0
        if one is not None:
            print(w.told())
        w.settle(f"{name} {k}")
        if w.silent:
            w.wrong(f"{name} {k}: no answer, and no end of the connection: {w.silent}")
    print(f"{name}: {n} calls in a run and a talk, {len(tried)} tried, {hit} failed, {w.starts} starts", flush=True)
    k = hit = 0
    while one is None and w.start_with(kind, k, error):
        hit += 1
        k += 1 if SOAK or name == "thread" else 1 + k // 12
    print(f"{name}: {hit} failed in a start", flush=True)
    if one is None and not hit:
        w.wrong(f"{name}: none failed")


def main():
    avad, kinds = os.path.abspath(sys.argv[1]), sys.argv[3:4]
    one = int(sys.argv[4]) if len(sys.argv) > 4 else None
    with tempfile.TemporaryDirectory(prefix="ava-faulty-") as folder:
        w = World(avad, folder)
        if os.environ.get("AVA_SANITIZER"):
            w.env["ASAN_OPTIONS"] = f"detect_leaks=0:allocator_may_return_null=1:abort_on_error=1:log_path={folder}/report"
            if one is not None:
                w.env["AVA_FAULTY_WHERE"] = "1"
            w.env["UBSAN_OPTIONS"] = "halt_on_error=1:abort_on_error=1:print_stacktrace=1"
        print(f"seed {SEED}")
        w.start()
        for kind, (name, some, error) in enumerate(KINDS):
            if not kinds or name in kinds:
                play(w, kind, name, some, error, one)
        w.stop()
        w.start()
        for run in w.runs:
            if not until(lambda: w.ended(run), 20):
                w.wrong(f"{run} was accepted and has no end: {w.get('/runs/' + run)}")
        w.stop()
        wrong, _ = check_root.check_root(w.root, w.runs)
        # A run that memory ended for stops where it stood.
        wrong = [line for line in wrong if "at the end were not answered" not in line]
        if wrong:
            w.wrong("\n".join(map(str, wrong)))
        print(f"{len(w.runs)} runs accepted, all ended")


main()
