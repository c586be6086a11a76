#!/usr/bin/python3
"""The page over a root with many runs: when Chromium has painted and shows the first cards, and what the
daemon's loop has of it.

    paint.py BUILD_DIR [--runs 10000] [--rounds 15] [--without-browser]

The runs are real ones (bench_agents_ava starts them, the offline model plays a script), and the daemon is
started anew over them. Then the requests of the page's start are asked one by one, and the page is loaded
again and again (paint.mjs). playwright-core comes from npm into BUILD_DIR/bench/paint; without node, npm or
chromium that part is left out with a word. Exit code 0 also when an aim is missed."""

import argparse
import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

AIM_MS = 300
SOURCE = os.path.dirname(os.path.abspath(__file__))
TURN = {"tool_calls": [{"name": "submit_result", "args": {"output": None, "summary": "It is done.", "confidence": 0.5}}],
        "usage": {"input": 1000, "output": 40}}
START = ["/api/v1/health", "/api/v1/runs?all=1&limit=100", "/api/v1/runs?all=1&limit=500", "/api/v1/sessions",
         "/api/v1/proposals", "/api/v1/claude/sessions", "/api/v1/verify"]


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("ava", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def ask(path, what):
    c, began = Unix(path), time.perf_counter()
    c.request("GET", what)
    answer = c.getresponse()
    body = answer.read()
    c.close()
    if answer.status != 200:
        raise SystemExit(f"paint.py: {what} answered {answer.status}")
    return body, (time.perf_counter() - began) * 1000


def gaps(sock):
    lines = ask(sock, "/metrics")[0].decode().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("ava_loop_gaps_total "))


def start(build, t, env):
    with open(t + "/avad.out", "w") as log:
        p = subprocess.Popen([build + "/src/gateway/avad"], env=env, stdout=log, stderr=log)
    while p.poll() is None:
        try:
            ask(t + "/root/ava.sock", "/api/v1/health")
            return p
        except OSError:
            time.sleep(0.01)
    raise SystemExit("paint.py: avad did not start")


def stop(p):
    p.terminate()
    p.wait()


def browser(build):
    """The folder with playwright-core and the program, or None."""
    folder, program = build + "/bench/paint", shutil.which("chromium")
    if not program or not shutil.which("node") or not shutil.which("npm"):
        return None
    os.makedirs(folder, exist_ok=True)
    shutil.copy(SOURCE + "/../test/peers/page/package.json", folder)
    if not os.path.isdir(folder + "/node_modules/playwright-core"):
        done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", "--ignore-scripts"], cwd=folder,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        if done.returncode != 0:
            return None
    return {"PEER_MODULES": folder, "CHROMIUM": program}


def measure(o, build, t):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("AVA_", "ANTHROPIC_", "OPENAI_", "OPENROUTER_", "XDG_"))}
    model = f"offline:{t}/turns.jsonl"
    env.update(HOME=t, AVA_DATA_ROOT=t + "/root", CLAUDE_CONFIG_DIR=t + "/claude", AVA_MODEL=model, AVA_RUNS_MAX="10000")
    with open(t + "/turns.jsonl", "w") as f:
        f.write(json.dumps(TURN) + "\n")
    sock, p = t + "/root/ava.sock", start(build, t, env)
    try:
        subprocess.run([build + "/bench/bench_agents_ava", t + "/root", str(o.runs), model, t, "100"], check=True,
                       stdout=subprocess.DEVNULL, env=env)
        stop(p)
        p = start(build, t, env)
        total = json.loads(ask(sock, "/api/v1/health")[0])["runs"]["total"]
        if total != o.runs:
            raise SystemExit(f"paint.py: {total} of {o.runs} runs are there")
        before = gaps(sock)
        print(f"{o.runs:,} runs, load {os.getloadavg()[0]:.1f}\n\n| | |\n|---|---|")
        for what in START:
            took = sorted(ask(sock, what)[1] for _ in range(3))[1]
            print(f"| `{what}` | {took:.1f} ms |")
        print(f"| turns of the loop over 20 ms meanwhile | {gaps(sock) - before} |")
        more = None if o.without_browser else browser(build)
        if more:
            url = subprocess.run([build + "/src/cli/ava", "dashboard", "--no-open"], env=env, capture_output=True, text=True, check=True)
            before = gaps(sock)
            out = subprocess.run(["node", SOURCE + "/paint.mjs", url.stdout.strip(), str(o.rounds)], env=env | more,
                                 capture_output=True, text=True, check=True)
            r = json.loads(out.stdout)
            print(f"| first paint (<= {AIM_MS} ms) | {r['paint']:.0f} ms {'met' if r['paint'] < AIM_MS else 'missed'} |")
            print(f"| the first {r['cards']} cards | {r['card']:.0f} ms |")
            print(f"| turns of the loop over 20 ms in {o.rounds} loads (0) | {gaps(sock) - before} |")
        elif not o.without_browser:
            print("\nno node, npm or chromium: the page itself was not loaded")
    finally:
        stop(p)


def main():
    o = argparse.ArgumentParser()
    o.add_argument("build")
    o.add_argument("--runs", type=int, default=10000)
    o.add_argument("--rounds", type=int, default=15)
    o.add_argument("--without-browser", action="store_true")
    o = o.parse_args()
    t = tempfile.mkdtemp(prefix="ava-bench-paint-")
    try:
        measure(o, os.path.abspath(o.build), t)
    finally:
        shutil.rmtree(t, ignore_errors=True)


main()
