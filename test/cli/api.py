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


def check(name, good, more=""):
    print("ok" if good else "not ok", name, flush=True)
    if not good:
        print("# " + str(more)[:3000].replace("\n", "\n# "), flush=True)


def ava(*words, **more):
    return subprocess.run([AVA, *words], capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, **more)


def runs():
    return json.loads(ava("ps", "-a", "--json").stdout)


def until(condition, patience=PATIENCE):
    """What the condition is when it is something; None: it never was."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        got = condition()
        if got:
            return got
        time.sleep(0.05)
    return None


def kill_daemon():
    with open(os.path.join(ROOT, "ava.lock"), encoding="ascii") as f:
        pid = int(f.read())
    os.kill(pid, signal.SIGKILL)
    until(lambda: not os.path.exists(f"/proc/{pid}") or "Z" in open(f"/proc/{pid}/stat").read().split()[2])


class Socket(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(os.path.join(ROOT, "ava.sock"))


def ask(method, path, body=None):
    c = Socket("x")
    c.request(method, "/api/v1" + path, json.dumps(body) if body is not None else None,
              {"Content-Type": "application/json"})
    answer = c.getresponse()
    data = json.loads(answer.read())
    c.close()
    if answer.status >= 300:
        raise RuntimeError(f"{method} {path}: {answer.status} {data}")
    return data
