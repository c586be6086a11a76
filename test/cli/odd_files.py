#!/usr/bin/env python3
"""Odd files in a data root: in the place of each name that it has, and of those that it may have,
stands a folder, a pipe, a socket, a link, a file that nobody may read, one of a terabyte, half of one, bytes of
nobody's. A run is at work when the daemon is killed; then it starts on that root.

It starts, or says in one sentence which file and what to do, and nothing is changed by that. Where it
starts, the runs that were accepted are known, a new one ends well, the stop is orderly, and it starts
again. The second table puts them there under a daemon at work.

    odd_files.py [NAME [KIND]]        Expects $AVA, $AVAD and $T. AVA_SOAK: every name with every kind

As root it runs ava as an ordinary user. Prints `ok NAME` and `not ok NAME # why`."""

import concurrent.futures
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

AVAD, AVA, T = os.environ["AVAD"], os.environ["AVA"], os.environ["T"]
ODD_USER = 4401
SLOWER = 4 if os.environ.get("AVA_SANITIZER") else 1
PATIENCE = 45 * SLOWER  # what comes passes at once
SOAK = bool(os.environ.get("AVA_SOAK"))
KINDS = ["folder", "full", "pipe", "socket", "nowhere", "elsewhere", "loop", "closed", "huge", "torn",
         "bytes", "empty"]
ALWAYS = {}  # by name: kinds that are tried each time
DONE, WORK = "done.jsonl", "work.jsonl"


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20 * SLOWER)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20 * SLOWER)
        self.sock.connect(self.path)


def until(what, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            found = what()
            if found:
                return found
        except (OSError, http.client.HTTPException, ValueError, KeyError):
            pass  # also where the daemon was faster with that name
        time.sleep(0.01)
    return None


class World:
    """A data root, and at times a daemon on it."""

    def __init__(self, home):
        self.home, self.root, self.daemon = home, os.path.join(home, "data"), None
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")}
        self.env.update(HOME=home, AVA_DATA_ROOT=self.root, AVA_DAEMON_IDLE_EXIT="0", AVA_DISK_FREE_MIN_MB="0",
                        AVA_LIMITS_TIMEOUT="600")
        self.words = os.path.join(home, "words")

    def own(self):
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", f"{ODD_USER}:{ODD_USER}", self.home], check=True)

    @staticmethod
    def as_user(argv):
        if os.geteuid() != 0:
            return argv
        return ["setpriv", f"--reuid={ODD_USER}", f"--regid={ODD_USER}", "--clear-groups", *argv]

    def start(self):
        """True: it serves. Else what it said."""
        with open(self.words, "w", encoding="utf-8") as words:
            self.daemon = subprocess.Popen(self.as_user([AVAD, "--verbose"]), env=self.env, cwd=self.home,
                                           stdin=subprocess.DEVNULL, stdout=words, stderr=words)
        served = until(lambda: self.daemon.poll() is not None or self.get("/health"))
        if self.daemon.poll() is None and served:
            return True
        if self.daemon.poll() is None:
            self.kill()
            return self.said() + " (it neither served nor ended)"
        return self.said()

    def said(self):
        with open(self.words, encoding="utf-8", errors="replace") as words:
            return words.read()

    def ask(self, method, path, body=None):
        c = Unix(os.path.join(self.root, "ava.sock"))
        try:
            c.request(method, "/api/v1" + path, None if body is None else json.dumps(body),
                      {} if body is None else {"Content-Type": "application/json"})
            answer = c.getresponse()
            return answer.status, json.loads(answer.read() or b"{}")
        finally:
            c.close()

    def get(self, path):
        status, answer = self.ask("GET", path)
        return answer if status == 200 else None

    def spawn(self, script):
        status, answer = self.ask("POST", "/runs", {
            "role": "code_reviewer", "task": "look", "model": "offline:" + os.path.join(T, script),
            "cwd": os.path.join(T, "proj"), "confirmed": True})
        if status != 201:
            raise ValueError(f"no run: {status} {answer}")
        return answer["subagent_id"]

    def status(self, run):
        return (self.get("/runs/" + run) or {}).get("status")

    def ended(self, run):
        return self.status(run) not in ("queued", "running", None)

    def kill(self):
        if self.daemon and self.daemon.poll() is None:
            self.daemon.kill()
        if self.daemon:
            self.daemon.wait()

    def stop(self):
        """Its exit code; None: it did not end."""
        self.daemon.send_signal(signal.SIGTERM)
        try:
            return self.daemon.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            return None


def script(name, *turns):
    with open(os.path.join(T, name), "w", encoding="utf-8") as f:
        for turn in turns:
            f.write(json.dumps(turn) + "\n")


def calls(name, **args):
    return {"tool_calls": [{"name": name, "args": args}]}


def prepare():
    """The root that all begin with: an ended run, one at work, a conversation, a memory, a browser."""
    os.makedirs(os.path.join(T, "proj"), exist_ok=True)
    os.chmod(T, 0o755)
    with open(os.path.join(T, "proj", "f.c"), "w", encoding="utf-8") as f:
        f.write("int x;\n")
    end = calls("submit_result", summary="done", confidence=1)
    script(DONE, calls("list_files"), end)
    script(WORK, calls("list_files"), dict(calls("read_file", path="f.c"), delay_ms=700), end)
    w = World(os.path.join(T, "base"))
    os.makedirs(w.root, mode=0o700)
    w.own()
    said = w.start()
    if said is not True:
        raise SystemExit("no daemon: " + said)
    w.done = w.spawn(DONE)
    until(lambda: w.ended(w.done))
    for words in (["memory", "add", "I like short answers"], ["dashboard", "--no-open"], ["mcp", "token"]):
        subprocess.run(w.as_user([AVA, *words]), env=w.env, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    session = w.ask("POST", "/sessions", {"cwd": os.path.join(T, "proj")})[1]["session_id"]
    w.ask("POST", f"/sessions/{session}/messages", {"text": "hello", "request_id": "r1"})
    until(lambda: len((w.get(f"/sessions/{session}/messages") or {}).get("entries", [])) >= 2)
    w.ask("POST", "/proposals", {"role": "code_reviewer", "task": "look"})
    w.work = w.spawn(WORK)
    lines = os.path.join(w.root, "runs", w.work, "messages.jsonl")
    until(lambda: open(lines, "rb").read().count(b"\n") >= 4)
    w.kill()
    return w


def names_of(w):
    """What stands in the root, and what may stand there."""
    found = []
    for folder, subs, files in os.walk(w.root):
        for name in sorted(files) + sorted(subs):
            found.append(os.path.relpath(os.path.join(folder, name), w.root))
    day = next(n for n in found if n.startswith("logs/ava/2"))
    session = next(n for n in found if n.startswith("sessions/--") and n.endswith(".jsonl"))
    w.day = day.replace(".jsonl", ".2.jsonl")
    more = ["telegram.json", "learned.json", "mcp.json", "roles", "roles/trusted.jsonl", "lost", "lost/x", "seals/pruning", "seals/open",
            "seals/last", "delivery.json", "delivery.json.tmp", "web.json", "catalog.2.jsonl", "wal/checkpoint.tmp",
            "wal/00000000000000ff.seg", "wal/not-a-segment", "logs/ava/9999-01-01.jsonl", "logs/ava/foreign", "logs/index",
            "logs/subagents/S-ffffff.jsonl", "runs/foreign", "runs/S-ffffff", "memory.db-journal", "foreign", "sessions/foreign",
            "sessions/--foreign--", os.path.dirname(session) + "/foreign.jsonl", w.day, "FORMAT.tmp", "logs/avad.log.1",
            session.replace(".jsonl", ".artifacts")]
    for run in (w.done, w.work):
        more += [f"runs/{run}/{n}" for n in ("result.json", "result.json.tmp", "messages.2.jsonl", "artifacts", "work", "foreign")]
        more += [f"logs/subagents/{run}.2.jsonl", f"logs/subagents/{run}.jsonl.broken"]
    return sorted(set(found + more))


def table(w):
    """(name, kind, beneath): every name, with two kinds (AVA_SOAK: each); `beneath` a daemon at work."""
    names = names_of(w)
    for i, name in enumerate(names):
        for kind in KINDS if SOAK else {KINDS[i % len(KINDS)], KINDS[(5 * i + 3) % len(KINDS)], *ALWAYS.get(name, [])}:
            yield name, kind, False
    for name in (f"runs/{w.work}/messages.2.jsonl", f"runs/{w.work}/result.json", f"runs/{w.work}/result.json.tmp",
                 f"logs/subagents/{w.work}.2.jsonl", w.day, "catalog.2.jsonl", "delivery.json", "delivery.json.tmp",
                 "wal/checkpoint.tmp", "memory.db-journal", "roles"):
        for kind in ("folder", "pipe", "closed", "loop", "huge") if SOAK else ("folder", "pipe", "closed"):
            yield name, kind, True


def put(root, name, kind):
    """False: there is nothing to be torn."""
    path = os.path.join(root, name)
    data = b""
    if os.path.isfile(path) and not os.path.islink(path):
        with open(path, "rb") as f:
            data = f.read()
    if kind == "torn" and len(data) < 2:
        return False
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    if kind in ("folder", "full"):
        os.mkdir(path, 0o700)
        if kind == "full":
            with open(os.path.join(path, "x"), "wb") as f:
                f.write(b"somebody's\n")
    elif kind == "pipe":
        os.mkfifo(path, 0o600)
    elif kind == "socket":
        s = socket.socket(socket.AF_UNIX)
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
        s.bind(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
        s.close()
        os.close(folder)
    elif kind in ("nowhere", "elsewhere", "loop"):
        os.symlink({"nowhere": "/nowhere/at/all", "elsewhere": os.path.join(T, "other"), "loop": os.path.basename(path)}[kind],
                   path)
    else:
        with open(path, "wb") as f:
            f.write({"closed": data, "torn": data[:len(data) // 2], "bytes": b"\x00\xff{\"a\":\n]]\nnobody's\n" * 3}.get(kind, b""))
            if kind == "huge":
                f.truncate(1 << 40)
        os.chmod(path, 0 if kind == "closed" else 0o600)
    return True


def judge(w, base):
    """What is wrong; "" nothing."""
    if w.get("/runs?all=1&limit=1000") is None:
        return "no list of runs"
    wrong = []
    for run in (base.done, base.work):
        if w.status(run) is None:
            wrong.append(f"{run} ({'done' if run == base.done else 'work'}) is not known")
    new = w.spawn(DONE)
    if not until(lambda: w.ended(new)):
        wrong.append(f"a new run does not end: {w.status(new)}")
    elif w.status(new) != "success":
        wrong.append(f"a new run ends as {w.status(new)}: {json.dumps(w.get('/runs/' + new))[:600]}")
    if w.status(base.work) is not None and not until(lambda: w.ended(base.work)):
        wrong.append(f"the run at work does not end: {w.status(base.work)}")
    return "; ".join(wrong)


def case(base, number, name, kind, beneath):
    w = World(os.path.join(T, f"w{number}"))
    subprocess.run(["cp", "-a", "--sparse=always", base.home, w.home], check=True)
    try:
        if beneath:
            return play(w, base, lambda: until(lambda: put(w.root, name, kind)) and w.own())
        if not put(w.root, name, kind):
            return None
        w.own()
        wrong = play(w, base)
        # What says which format the root has is no guess of ours.
        refused = name == "FORMAT" and "FORMAT" in wrong and "put it back, or use another data root" in wrong
        return "" if refused and not os.path.exists(os.path.join(w.root, "FORMAT.broken")) else wrong
    finally:
        w.kill()
        subprocess.run(["chmod", "-R", "u+rwX", w.home], check=False)
        shutil.rmtree(w.home, ignore_errors=True)


def play(w, base, meanwhile=None):
    told = ""
    for turn in (1, 2):
        said = w.start()
        if said is not True:
            return f"start {turn}: {said.strip() or 'NO WORD'} (code {w.daemon.returncode})"
        if meanwhile and turn == 1:
            meanwhile()
        try:
            wrong = judge(w, base)
        except (OSError, ValueError, http.client.HTTPException) as why:
            wrong = f"{type(why).__name__}: {why}"
        if w.daemon.poll() is not None:
            return f"turn {turn}: it died with {w.daemon.returncode}: {w.said()[-400:]} ({wrong})"
        if wrong:
            return f"turn {turn}: {wrong}"
        code = w.stop()
        if code != 0:
            return f"turn {turn}: its stop: {code} {w.said()[-300:]}"
        told += w.said()
    for name in os.listdir(os.path.join(w.root, "logs/ava")):
        if os.path.isfile(os.path.join(w.root, "logs/ava", name)):
            with open(os.path.join(w.root, "logs/ava", name), encoding="utf-8", errors="replace") as f:
                told += f.read(4 << 20)  # Recovered names what it found
    for folder, subs, files in os.walk(w.root):
        for name in files + subs:
            path = os.path.relpath(os.path.join(folder, name), w.root)
            if ".broken" in name and not path.startswith("logs/subagents/") and path.split("/")[-1] not in told:
                return f"{path} is not named"
    return ""


def main():
    base = prepare()
    shutil.copyfile(__file__, os.path.join(T, "other"))
    ALWAYS.update({f"runs/{base.work}/messages.2.jsonl": ["folder", "pipe", "closed"], f"runs/{base.work}/result.json": ["folder"],
                   f"runs/{base.work}": ["bytes"], "catalog.jsonl": ["closed"], "catalog.2.jsonl": ["pipe"], "wal": ["closed", "bytes"],
                   "ava.lock": ["folder"], "ava.sock": ["bytes"], "roles/trusted.jsonl": ["folder"], "FORMAT": ["folder", "torn"]})
    cases = list(table(base))
    if len(sys.argv) > 1:
        cases = [(n, k, b) for n in names_of(base) if sys.argv[1] in n
                 for k in (sys.argv[2].split(",") if len(sys.argv) > 2 else KINDS) for b in (False, True)]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        jobs = [(*c, pool.submit(case, base, i, *c)) for i, c in enumerate(cases)]
        for name, kind, beneath, job in jobs:
            wrong = job.result()
            if wrong is not None:
                name = name.replace(base.done, "S-done").replace(base.work, "S-work")
                what = f"{name}: {kind}{', while it runs' if beneath else ''}"
                print(f"not ok {what} # {' '.join(wrong.split())}" if wrong else f"ok {what}", flush=True)


main()
