#!/usr/bin/python3
"""Events to browsers: from what happened to 1, 100 and 1,000 event streams, beside a server of node with
chokidar and express, and a session of Claude Code with 1,000 agents.

    sse.py BUILD_DIR [--clients 1,100,1000] [--rounds N] [--agents N] [--without-peer]

`card`: a card of an agent is replaced, and each client hears of its session; what the peer does, too.
`event`: an event is posted, journaled and in each stream. Clients are one process (bench_sse), on Unix
sockets. The peer is installed from npm into BUILD_DIR/bench/sse; without node or npm it is left out with
a word. Exit code 0 also when an aim is missed; bench/README.md says how to read it."""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import agents

AIMS = {1: 1.0, 1000: 15.0}  # ms until the last client has it
AIM_KB = 10.0
PEER = {"dependencies": {"chokidar": "5.0.0", "express": "5.1.0"}}
SERVER = r"""
import { readFileSync } from 'node:fs';
import chokidar from 'chokidar';
import express from 'express';
const [folder, path] = process.argv.slice(2), clients = new Set();
const app = express();
app.get('/events', (q, a) => {
  a.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
  a.write(': hello\n\n');
  clients.add(a);
  q.on('close', () => clients.delete(a));
});
const tell = (file) => {
  if (!file.endsWith('.json')) return;
  JSON.parse(readFileSync(file, 'utf8'));
  const frame = `data: ${JSON.stringify({ type: 'agent-update', sessionId: file.split('/').at(-2) })}\n\n`;
  for (const a of clients) a.write(frame);
};
chokidar.watch(folder, { depth: 2, ignoreInitial: true }).on('add', tell).on('change', tell)
  .on('ready', () => app.listen(path, () => console.log('ready')));
"""


def ask(path, what):
    c = agents.Unix(path)
    c.request("GET", what)
    body = c.getresponse().read()
    c.close()
    return body


def gaps(path):
    lines = ask(path, "/metrics").decode().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("ava_loop_gaps_total "))


def start_ava(build, t):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("AVA_", "ANTHROPIC_", "OPENAI_", "OPENROUTER_", "XDG_"))}
    env.update(HOME=t, AVA_DATA_ROOT=t + "/root", CLAUDE_CONFIG_DIR=t + "/claude", AVA_MODEL="offline", AVA_CLAUDE_AGENT_FILE_CAP="10000")
    with open(t + "/avad.out", "w") as log:
        p = subprocess.Popen([build + "/src/gateway/avad"], env=env, stdout=log, stderr=log)
    return p, wait_for(p, t + "/root/ava.sock", t + "/avad.out")


def wait_for(p, path, log):
    until = time.monotonic() + 30
    while time.monotonic() < until and p.poll() is None:
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(path)
            return path
        except OSError:
            time.sleep(0.01)
    with open(log) as f:
        sys.exit(f"sse.py: a server did not start: {f.read()}")


def start_peer(build, t):
    folder = build + "/bench/sse"
    if not shutil.which("node") or not shutil.which("npm"):
        return None
    os.makedirs(folder, exist_ok=True)
    with open(folder + "/package.json", "w") as f:
        json.dump(PEER | {"private": True, "type": "module"}, f)
    with open(folder + "/server.mjs", "w") as f:
        f.write(SERVER)
    if not os.path.isdir(folder + "/node_modules/express"):
        done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", "--ignore-scripts"], cwd=folder,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        if done.returncode != 0:
            return None
    if os.path.exists(t + "/peer.sock"):
        os.unlink(t + "/peer.sock")
    with open(t + "/peer.out", "w") as log:
        p = subprocess.Popen(["node", folder + "/server.mjs", t + "/cards", t + "/peer.sock"], stdout=log, stderr=log)
    return p, wait_for(p, t + "/peer.sock", t + "/peer.out")


def clients(build, server, path, n, rounds, file):
    p, sock = server
    out = subprocess.run([build + "/bench/bench_sse", sock, path, str(n), str(rounds), file, str(p.pid)],
                         capture_output=True, text=True)
    if out.returncode != 0:
        sys.exit(f"sse.py: {out.stderr}")
    return json.loads(out.stdout)


def row(name, n, r, aims):
    aim = ""
    if aims:
        last = AIMS.get(n)
        aim = "" if last is None else f"<= {last:g} ms {'met' if r['last'] / 1000 <= last else 'missed'}"
        if n == 1000:
            aim += f", <= {AIM_KB:g} KB {'met' if r['kb'] <= AIM_KB else 'missed'}"
    kb = f"{r['kb']:.1f}" if n >= 100 else ""
    print(f"| {name} | {n:,} | {r['first'] / 1000:.2f} | {r['middle'] / 1000:.2f} | {r['last'] / 1000:.2f} | {kb} | {aim} |")


def card(session, i, status):
    return {"agentId": f"a{i}", "type": "Explore", "status": status, "startedAt": "2026-11-24T07:00:00.000Z",
            "updatedAt": f"2026-11-24T07:{'30' if status == 'stopped' else '00'}:00.000Z"}


def many_agents(sock, folder, n):
    """A session whose agents all begin and then all end at once."""
    os.makedirs(folder)
    time.sleep(0.2)  # the watch of the new folder
    before = gaps(sock)
    for status in ("active", "stopped"):
        began = time.perf_counter()
        for i in range(n):
            with open(f"{folder}/a{i}.json.next", "w") as f:
                json.dump(card("many", i, status), f)
            os.rename(f"{folder}/a{i}.json.next", f"{folder}/a{i}.json")
        written = time.perf_counter() - began
        while True:
            agents = json.loads(ask(sock, "/api/sessions/many/agents"))
            if len(agents) == n and all(a["updatedAt"] == card("many", 0, status)["updatedAt"] for a in agents):
                break
            if time.perf_counter() - began > 60:
                sys.exit(f"sse.py: of {n} agents {len(agents)} are there")
        logged = 0
        while logged < min(n, 1000):  # no more is given at once
            answer = json.loads(ask(sock, "/api/v1/logs?session=many&limit=1000"))
            logged = sum(e["content"]["data"]["status"] == status for e in answer["events"])
            if time.perf_counter() - began > 60:
                sys.exit(f"sse.py: of {n} agents {logged} are in the log")
        print(f"| {n:,} agents {status} | written in {written * 1000:.0f} ms | in the log after {(time.perf_counter() - began) * 1000:.0f} ms |")
    took = []
    for _ in range(9):
        began = time.perf_counter()
        ask(sock, "/api/sessions/many/agents")
        took.append(time.perf_counter() - began)
    print(f"| all {n:,} asked for | {sorted(took)[4] * 1000:.1f} ms | turns of the loop over 20 ms: {gaps(sock) - before} |")


def main():
    o = argparse.ArgumentParser()
    o.add_argument("build")
    o.add_argument("--clients", default="1,100,1000")
    o.add_argument("--rounds", type=int, default=50)
    o.add_argument("--agents", type=int, default=1000)
    o.add_argument("--without-peer", action="store_true")
    o = o.parse_args()
    build, t = os.path.abspath(o.build), tempfile.mkdtemp(prefix="ava-bench-sse-")
    ava_cards, peer_cards = t + "/claude/agent-activity/5e55", t + "/cards/5e55"
    os.makedirs(ava_cards)
    os.makedirs(peer_cards)
    servers = []
    try:
        print(f"load {os.getloadavg()[0]:.1f}\n\n| | clients | first, ms | middle | last | KB a client | aim |\n|---|---|---|---|---|---|---|")
        for n in map(int, o.clients.split(",")):
            ava = start_ava(build, t)  # each number has a server that has seen no other
            servers.append(ava[0])
            row("ava, card", n, clients(build, ava, "/api/v1/events?agents=true", n, o.rounds, ava_cards + "/a1.json"), True)
            end(servers)
            ava = start_ava(build, t)
            servers.append(ava[0])
            row("ava, event", n, clients(build, ava, "/api/v1/events", n, o.rounds, ""), True)
            end(servers)
            peer = None if o.without_peer else start_peer(build, t)
            if peer:
                servers.append(peer[0])
                row("chokidar and express, card", n, clients(build, peer, "/events", n, o.rounds, peer_cards + "/a1.json"), False)
                end(servers)
        if not o.without_peer and not peer:
            print("no node, or npm could not install: the peer is left out")
        print("\n| | | |\n|---|---|---|")
        ava = start_ava(build, t)
        servers.append(ava[0])
        many_agents(ava[1], t + "/claude/agent-activity/many", o.agents)
    finally:
        end(servers)
        shutil.rmtree(t, ignore_errors=True)


def end(servers):
    while servers:
        p = servers.pop()
        p.terminate()
        p.wait()


main()
