"""What the tests in Python stand on: checks, which `play` of lib.sh counts, ava as a command, and requests
to the daemon of $AVA_DATA_ROOT."""

import http.client
import json
import os
import signal
import socket
import subprocess
import time

AVA = os.environ["AVA"]
ROOT = os.environ["AVA_DATA_ROOT"]
PATIENCE = 120  # seconds for anything


def check(name, good, *more):
    print("ok" if good else "not ok", name, flush=True)
    if not good:
        print("# " + "\n".join(map(str, more))[:3000].replace("\n", "\n# "), flush=True)
    return good


def ava(*words, **more):
    return subprocess.run([AVA, *words], capture_output=True, text=True, timeout=PATIENCE,
                          stdin=None if "input" in more else subprocess.DEVNULL, **more)


def script(name, *turns):
    """The offline model that says these."""
    path = f"{os.environ['T']}/{name}.jsonl"
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(json.dumps(turn) + "\n" for turn in turns)
    return "offline:" + path


def runs():
    return json.loads(ava("ps", "-a", "--json").stdout)


def until(condition, patience=PATIENCE):
    """What the condition is when it is something; None: it never was."""
    end, pause = time.monotonic() + patience, 0.01
    while time.monotonic() < end:
        got = condition()
        if got:
            return got
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
    return None


def daemon_pid():
    with open(os.path.join(ROOT, "ava.lock"), encoding="ascii") as f:
        return int(f.read())


def ended(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def kill_daemon():
    pid = daemon_pid()
    os.kill(pid, signal.SIGKILL)
    until(lambda: ended(pid))


class Socket(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(os.path.join(ROOT, "ava.sock"))


def answer(method, path, body=None):
    """Its status and what it says."""
    c = Socket("x")
    c.request(method, "/api/v1" + path, json.dumps(body) if body is not None else None,
              {"Content-Type": "application/json"})
    got = c.getresponse()
    data = json.loads(got.read())
    c.close()
    return got.status, data


def ask(method, path, body=None):
    status, data = answer(method, path, body)
    if status >= 300:
        raise RuntimeError(f"{method} {path}: {status} {data}")
    return data
