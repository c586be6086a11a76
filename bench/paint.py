#!/usr/bin/python3
"""The page over a root with many runs: when Chromium has painted and shows the first cards, what the
daemon's loop has of it, how the list scrolls, and how busy the page is while runs are at work.

    paint.py BUILD_DIR [--runs 10000] [--rounds 15] [--seconds 10] [--without-browser]

The runs are real ones (bench_agents_ava starts them, the offline model plays a script), and the daemon is
started anew over them. Then the requests of the page's start are asked one by one, and the page is loaded
again and again (paint.mjs). playwright-core comes from npm into BUILD_DIR/bench/paint; without node, npm or
chromium that part is left out with a word. Exit code 0 also when an aim is missed."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import agents

AIM_MS = 300
WORKING, CALLS, DELAY_MS = 75, 10, 1400  # runs at work, calls of a turn, time of a turn: some 1,250 events a second
LONG_CALLS, LONG_DELAY_MS = 20, 1000  # of the one run that is looked at: 60 events a second
SOURCE = os.path.dirname(os.path.abspath(__file__))
TURN = {"tool_calls": [{"name": "submit_result", "args": {"output": None, "summary": "It is done.", "confidence": 0.5}}],
        "usage": {"input": 1000, "output": 40}}
START = ["/api/v1/health", "/api/v1/runs?limit=1000", "/api/v1/runs?all=1&limit=100", "/api/v1/sessions", "/api/v1/asks",
         "/api/v1/claude/sessions"]


def ask(path, what, body=None):
    c, began = agents.Unix(path), time.perf_counter()
    c.request("POST" if body else "GET", what, body and json.dumps(body), {"Content-Type": "application/json"} if body else {})
    answer = c.getresponse()
    body = answer.read()
    c.close()
    if answer.status not in (200, 201):
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


def script(t, name, turns, calls, delay):
    """The model of a run that reads a file line by line."""
    with open(f"{t}/{name}.txt", "w") as f:
        f.writelines(f"line {i}\n" for i in range(turns * calls))
    with open(f"{t}/{name}.jsonl", "w") as f:
        for turn in range(turns):
            lines = range(turn * calls + 1, (turn + 1) * calls + 1)
            read = [{"name": "read_file", "args": {"path": name + ".txt", "first_line": n, "last_line": n}} for n in lines]
            f.write(json.dumps({"text": "On.", "tool_calls": read, "delay_ms": delay, "usage": {"input": 1000, "output": 40}}) + "\n")
    return f"offline:{t}/{name}.jsonl"


def work(sock, t, task, model):
    body = {"task": task, "role": "code_reviewer", "cwd": t, "model": model, "confirmed": True, "timeout": 3600,
            "max_tokens": 1000000000, "max_iterations": 100000}
    return json.loads(ask(sock, "/api/v1/runs", body)[0])["subagent_id"]


def lsn(sock):
    return json.loads(ask(sock, "/api/v1/health")[0])["journal"]["lsn"]


def look(build, env, more, what, place, seconds):
    url = subprocess.run([build + "/src/cli/ava", "dashboard", "--no-open"], env=env, capture_output=True, text=True, check=True)
    out = subprocess.run(["node", SOURCE + "/paint_busy.mjs", url.stdout.strip(), what, place, str(seconds)], env=env | more,
                         capture_output=True, text=True, check=True)
    return json.loads(out.stdout)


def busy(build, t, env, more, sock, o):
    """The list, then the page while WORKING runs are at work, then one of them with LONG_CALLS."""
    r = look(build, env, more, "list", "#/runs", o.seconds)
    print(f"| the list of all runs, scrolled for {o.seconds} s | {r['fps']:.0f} frames a second, the longest task {r['longest']:.0f} ms |")
    long = work(sock, t, "one with many events", script(t, "long", 2000, LONG_CALLS, LONG_DELAY_MS))
    model = script(t, "busy", 2000, CALLS, DELAY_MS)
    for i in range(WORKING):
        work(sock, t, f"at work {i}", model)
    for name, place in (("inbox", "#/"), ("board", "#/runs?as=board"), ("list", "#/runs")):
        began, before = time.time(), lsn(sock)
        r = look(build, env, more, "board", place, o.seconds)
        rate = (lsn(sock) - before) / (time.time() - began)
        print(f"| {name}, {rate:,.0f} events a second: the main thread's time (<= 50 %) | {100 * r['busy']:.0f} % |")
        print(f"| {name}: key to frame, middle and slowest (<= 100 ms) | {r['key']:.0f}, {r['slowest_key']:.0f} ms |")
    ask(sock, "/api/v1/runs/cancel", {"ids": [r["subagent_id"] for r in json.loads(ask(sock, "/api/v1/runs?limit=1000")[0])["runs"]
                                              if r["subagent_id"] != long]})
    while turns(sock, long) < 5000 / (3 * LONG_CALLS):
        time.sleep(1)
    r = look(build, env, more, "run", f"#/run/{long}", 8)
    print(f"| a run of 5,000 events at work: blocked of 8 s (<= 0.5 s) | {r['blocked']:.2f} s, the longest task {r['longest']:.0f} ms |")


def turns(sock, run):
    return json.loads(ask(sock, f"/api/v1/runs/{run}")[0])["iteration"]


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
            busy(build, t, env, more, sock, o)
        elif not o.without_browser:
            print("\nno node, npm or chromium: the page itself was not loaded")
    finally:
        stop(p)


def main():
    o = argparse.ArgumentParser()
    o.add_argument("build")
    o.add_argument("--runs", type=int, default=10000)
    o.add_argument("--rounds", type=int, default=15)
    o.add_argument("--seconds", type=int, default=10, help="how long each thing is looked at")
    o.add_argument("--without-browser", action="store_true")
    o = o.parse_args()
    t = tempfile.mkdtemp(prefix="ava-bench-paint-")
    try:
        measure(o, os.path.abspath(o.build), t)
    finally:
        shutil.rmtree(t, ignore_errors=True)


main()
