#!/usr/bin/python3
"""kill -9 of the real daemon under load, again and again, on one data root
(a fresh one after 100 kills: a start reads the catalog, and clients fill it).

Clients post confirmed runs all the time; at a moment drawn from a printed seed
the daemon is killed, or each fifth time stopped in order; the next one is started. A run counts as acknowledged
when its 201 arrived. At the end every acknowledged run must be there and have
ended in one terminal status, every line must be readable, every intent must
have one result (check_root.py, which shares no code with ava).

    kill9.py AVAD [KILLS [SEED]]        AVA_SOAK=1: 1,000 kills"""

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_root

CLIENTS = 4
ROUND = 100


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(20)
        self.sock.connect(self.path)


class Load:
    """Clients that post runs until they are told to stop."""

    def __init__(self, root, cwd, scripts):
        self.sock = os.path.join(root, "ava.sock")
        self.cwd, self.scripts = cwd, scripts
        self.lock = threading.Lock()
        self.acknowledged, self.repeated, self.posted = [], 0, 0
        self.stop = False
        self.threads = [threading.Thread(target=self.client, args=(i,)) for i in range(CLIENTS)]
        for t in self.threads:
            t.start()

    def post(self, body):
        conn = Unix(self.sock)
        try:
            conn.request("POST", "/api/v1/runs", json.dumps(body),
                         {"Content-Type": "application/json"})
            reply = conn.getresponse()
            return reply.status, json.loads(reply.read())
        finally:
            conn.close()

    def client(self, number):
        n = 0
        while not self.stop:
            n += 1
            body = {"task": f"where is helper_{n % 7} defined and who calls it?",
                    "role": "code_reviewer", "cwd": self.cwd, "confirmed": True,
                    "request_id": f"client-{number}-{n}"}
            if n % 3:
                body["model"] = "offline:" + self.scripts[n % len(self.scripts)]
            self.until_answered(body)
            time.sleep(0.002)

    def until_answered(self, body):
        tries = 0
        while not self.stop:
            try:
                status, reply = self.post(body)
            except (OSError, http.client.HTTPException, ValueError):
                tries += 1
                time.sleep(0.005)
                continue
            with self.lock:
                self.posted += 1
                if status == 201:
                    self.acknowledged.append(reply["subagent_id"])
                    self.repeated += tries > 0
            return

    def wait_for_more(self, seconds):
        """Until a run is acknowledged."""
        before, end = len(self.acknowledged), time.monotonic() + seconds
        while len(self.acknowledged) == before and time.monotonic() < end:
            time.sleep(0.001)

    def end(self):
        self.stop = True
        for t in self.threads:
            t.join()


def start(avad, env):
    read, write = os.pipe()
    p = subprocess.Popen([avad, "--service", "--ready-fd", str(write)], env=env,
                         pass_fds=[write], stdin=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(read) as f:
        line = f.readline().strip()
    if line != "ok":
        p.wait()
        raise SystemExit(f"avad did not start: {line}")
    return p


def write_scripts(folder):
    """Turns that take a while, so that kills find calls, tools and ends open."""
    turns = {
        "slow.jsonl": [
            {"tool_calls": [{"name": "search_codebase", "args": {"pattern": "helper"}},
                            {"name": "read_file", "args": {"path": "a.c"}}], "delay_ms": 30},
            {"tool_calls": [{"name": "nonsense", "args": {}}], "delay_ms": 20},
            {"tool_calls": [{"name": "submit_result",
                             "args": {"summary": "done", "confidence": 0.5}}], "delay_ms": 40}],
        "text.jsonl": [{"text": "I think it is in a.c.", "delay_ms": 10},
                       {"text": "It is in a.c:1.", "delay_ms": 10}, {"text": "I have said it.", "delay_ms": 10}],
        "fail.jsonl": [{"error": {"class": "overloaded", "message": "Overloaded"},
                        "delay_ms": 15}],
    }
    paths = []
    for name, script in turns.items():
        paths.append(os.path.join(folder, name))
        with open(paths[-1], "w", encoding="utf-8") as f:
            f.writelines(json.dumps(t) + "\n" for t in script)
    return paths


def wait_until_quiet(sock, seconds):
    """All runs have ended, as the daemon itself says."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        conn = Unix(sock)
        conn.request("GET", "/api/v1/health")
        if json.loads(conn.getresponse().read())["runs"]["running"] == 0:
            conn.close()
            return True
        conn.close()
        time.sleep(0.05)
    return False


def play_round(avad, kills, seed):
    """Kills on one root; what was seen, as (good, sentence)."""
    rng = random.Random(seed)
    print(f"# {kills} kills, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="ava-kill9.") as top:
        root, cwd = os.path.join(top, "data"), os.path.join(top, "src")
        os.makedirs(cwd)
        with open(os.path.join(cwd, "a.c"), "w", encoding="utf-8") as f:
            f.writelines(f"int helper_{i % 7}(void) {{ return {i}; }}\n" for i in range(200))
        env = {"HOME": top, "PATH": os.environ["PATH"], "AVA_DATA_ROOT": root,
               "AVA_MODEL": "offline", "AVA_DISK_FREE_MIN_MB": "0",
               "AVA_RUNS_QUEUE_MAX": "100000", "AVA_RUNS_MAX": "32"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
            if name in os.environ:
                env[name] = os.environ[name]
        p = start(avad, env)
        load = Load(root, cwd, write_scripts(top))
        for n in range(kills):
            if n % 2:  # where a start takes longer than the pause, nothing would be killed
                load.wait_for_more(20)
            time.sleep(rng.choice([0.005, 0.02, 0.05, 0.1, 0.2]) * rng.random())
            p.send_signal(signal.SIGTERM if n % 5 == 4 else signal.SIGKILL)
            p.wait()
            p = start(avad, env)
        load.end()
        quiet = wait_until_quiet(load.sock, 120)
        p.terminate()
        clean = p.wait(timeout=120) == 0
        wrong, ends = check_root.check_root(root, load.acknowledged)
        statuses = {}
        for end in ends.values():
            word = end["status"] + "/" + end["stopReason"] if end else "not ended"
            statuses[word] = statuses.get(word, 0) + 1
        print(f"# {len(load.acknowledged)} acknowledged ({load.repeated} after a kill), "
              f"{len(ends)} in the catalog: {statuses}")
        for sentence in wrong[:20]:
            print(f"# {sentence}")
        lost = [r for r in load.acknowledged if r not in ends]
        results = [(len(load.acknowledged) >= kills // 2, "enough runs were acknowledged to mean it"),
                   (not lost, "no acknowledged run was lost"),
                   (quiet, "every run ended after the last start"),
                   (not wrong, "every line, intent and end is in order"),
                   (clean, "the last daemon stopped cleanly on SIGTERM")]
        return results


def main():
    avad = sys.argv[1]
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else (1000 if os.environ.get("AVA_SOAK") else 50)
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.SystemRandom().randrange(1 << 32)
    all_good, number = True, 0
    for at in range(0, kills, ROUND):
        for good, name in play_round(avad, min(ROUND, kills - at), seed + at):
            number += 1
            all_good = all_good and good
            print(f"{'ok' if good else 'not ok'} {number} - {name}", flush=True)
    return 0 if all_good else 1


if __name__ == "__main__":
    sys.exit(main())
