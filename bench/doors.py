#!/usr/bin/python3
"""The MCP door: what it takes to begin, what a call takes, what tasks cost that are polled.

    doors.py BUILD_DIR [--times N] [--tasks N] [--seconds S] [--sdk FOLDER]

begin    a client starts `ava mcp` (the daemon is there), asks server/discover and has the answer;
         with the most memory that the process had
call     tools/call of ava_status about one run, through a running `ava mcp`; beside it the verb
         itself, GET /runs/{id}, on the daemon's socket
poll     N runs that are open as tasks, each asked by tasks/get once a second over the loopback port:
         the processor time of the daemon, in percent of one core; beside it the verb, GET /runs/{id},
         as often, on a connection to the socket that stays

--sdk names a folder whose node_modules have @modelcontextprotocol/server: a server made with it that has
one tool with a constant answer begins and is called in the same way, by turns. Medians."""

import argparse
import hashlib
import hmac
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "script"))
import csource

META = "io.modelcontextprotocol/"
WHO = {"_meta": {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {"extensions": {META + "tasks": {}}}}}
SDK = """
import { McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
serveStdio(() => {
  const server = new McpServer({ name: 'constant', version: '1' })
  server.registerTool('ava_status', { description: 'constant' }, async () => ({ content: [{ type: 'text', text: '{"status":"running"}' }] }))
  return server
})
"""


def message(method, params=None, id=1):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": (params or {}) | WHO}


def ms():
    return time.clock_gettime(time.CLOCK_MONOTONIC) * 1000


class Server:
    def __init__(self, command, folder):
        self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)

    def ask(self, m):
        self.process.stdin.write(json.dumps(m).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def peak_kb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.terminate()
        self.process.wait()


def begin(command, folder):
    t = ms()
    s = Server(command, folder)
    answer = s.ask(message("server/discover"))
    took, peak = ms() - t, s.peak_kb()
    assert "result" in answer, answer
    s.end()
    return took, peak


def call(server, run):
    m = message("tools/call", {"name": "ava_status", "arguments": {"run": run}})
    t = ms()
    answer = server.ask(m)
    took = ms() - t
    assert "result" in answer and not answer["result"].get("isError"), answer
    return took


def get(root, path):
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.path.join(root, "ava.sock"))
    s.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    got = b""
    while part := s.recv(65536):
        got += part
    s.close()
    assert b" 200 " in got[:16], got
    return got


def post(root, path, body):
    c = http.client.HTTPConnection("x")
    c.sock = socket.socket(socket.AF_UNIX)
    c.sock.connect(os.path.join(root, "ava.sock"))
    c.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = json.loads(c.getresponse().read())
    c.close()
    return answer


def processor_ms(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        f = f.read().rsplit(")", 1)[1].split()
    return (int(f[11]) + int(f[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def sealed(root, run):
    """What the runs wrote when they began is sealed behind that by another thread: that is no poll."""
    folder = os.path.join(root, "logs/ava")
    for _ in range(400):
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                if any('"Seal"' in line and run in line for line in f):
                    return
        time.sleep(0.1)


def poll(root, script, tasks, seconds):
    """Percent of a core by polls, by the verb, and without either; polls a second."""
    pid = int(open(os.path.join(root, "ava.lock"), encoding="ascii").read())
    runs = [post(root, "/api/v1/runs", {"task": "wait", "role": "code_reviewer", "model": f"offline:{script}", "cwd": root,
                                        "confirmed": True})["subagent_id"] for _ in range(tasks)]
    door = post(root, "/api/v1/mcp-token", {})
    ids = []
    c = http.client.HTTPConnection("127.0.0.1", int(door["url"].split(":")[2].split("/")[0]))

    def ask(id):
        """Head and body in one piece, as programs send them that are no http.client."""
        body = json.dumps(message("tasks/get", {"taskId": id}))
        if not c.sock:
            c.connect()
        c.sock.sendall((f"POST /mcp HTTP/1.1\r\nHost: {door['url'].split('/')[2]}\r\nContent-Type: application/json\r\n"
                        f"Authorization: Bearer {door['token']}\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tasks/get\r\n"
                        f"Mcp-Name: {id}\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode())
        r = http.client.HTTPResponse(c.sock)
        r.begin()
        return json.loads(r.read())

    def paced(ask, runs):
        used, t, n = processor_ms(pid), ms(), 0
        while ms() - t < seconds * 1000:
            ask(runs[n % tasks])
            n += 1
            ahead = n * 1000 / tasks - (ms() - t)
            if ahead > 5:
                time.sleep(ahead / 1000)
        return (processor_ms(pid) - used) / (ms() - t) * 100, n / seconds

    key = bytes.fromhex(json.load(open(os.path.join(root, "mcp.json"), encoding="ascii"))["key"])
    for run in runs:
        ids.append(run + "-" + hmac.new(key, f"task {run}".encode(), hashlib.sha256).hexdigest()[:32])
    answer = ask(ids[0])
    assert answer["result"]["status"] == "working", answer
    sealed(root, runs[-1])
    c.close()  # it may have waited for too long
    idle, t = processor_ms(pid), ms()
    time.sleep(min(seconds / 2, 5))
    idle = (processor_ms(pid) - idle) / (ms() - t) * 100
    used, rate = paced(ask, ids)
    plain = http.client.HTTPConnection("x")
    plain.sock = socket.socket(socket.AF_UNIX)
    plain.sock.connect(os.path.join(root, "ava.sock"))

    def look(run):
        plain.request("GET", f"/api/v1/runs/{run}")
        plain.getresponse().read()

    return used, paced(look, runs)[0], idle, rate


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--times", type=int, default=50)
    p.add_argument("--tasks", type=int, default=1000)
    p.add_argument("--seconds", type=float, default=10)
    p.add_argument("--sdk")
    a = p.parse_args()
    a.build = os.path.abspath(a.build)
    with tempfile.TemporaryDirectory(prefix="ava-bench-") as folder:
        root, script = os.path.join(folder, "data"), os.path.join(folder, "slow.jsonl")
        for name in [n for n in os.environ if n.startswith("AVA_")]:
            del os.environ[name]
        os.environ |= {"HOME": folder, "AVA_DATA_ROOT": root, "AVA_MODEL": "offline", "AVA_SEALS_EVERY": "1", "XDG_CONFIG_HOME": folder,
                       "AVA_AVAD": os.path.join(a.build, "src/gateway/avad")}
        with open(script, "w", encoding="ascii") as f:
            f.write('{"text":"I wait.","delay_ms":3600000}\n')
        subprocess.run([os.path.join(a.build, "src/cli/ava"), "ps"], stdout=subprocess.DEVNULL, check=True)
        try:
            run = post(root, "/api/v1/runs", {"task": "wait", "role": "code_reviewer", "model": f"offline:{script}",
                                              "cwd": folder, "confirmed": True})["subagent_id"]
            peers = {"ava mcp": ([os.path.join(a.build, "src/cli/ava"), "mcp"], folder)}
            if a.sdk:
                with open(os.path.join(a.sdk, "constant.mjs"), "w", encoding="ascii") as f:
                    f.write(SDK)
                peers["SDK"] = (["node", "constant.mjs"], a.sdk)
            begins = {name: [] for name in peers}
            for _ in range(a.times):
                for name, (command, where) in peers.items():
                    begins[name].append(begin(command, where))
            for name, got in begins.items():
                print(f"begin  {name:8} {statistics.median(t for t, _ in got):8.2f} ms {max(k for _, k in got):8} KB", flush=True)
            servers = {name: Server(*peer) for name, peer in peers.items()}
            calls = {name: [] for name in [*peers, "verb"]}
            for _ in range(a.times * 10):
                for name, s in servers.items():
                    calls[name].append(call(s, run))
                t = ms()
                get(root, f"/api/v1/runs/{run}")
                calls["verb"].append(ms() - t)
            for name, got in calls.items():
                print(f"call   {name:8} {statistics.median(got):8.3f} ms, 99 % within {sorted(got)[len(got) * 99 // 100]:.3f}", flush=True)
            for s in servers.values():
                s.end()
            used, verb, idle, rate = poll(root, script, a.tasks, a.seconds)
            print(f"poll   {a.tasks} tasks, {rate:.0f} polls a second: {used:.1f} % of a core; by the verb {verb:.1f} %, without {idle:.1f} %")
        finally:
            daemon = int(open(os.path.join(root, "ava.lock"), encoding="ascii").read())
            post(root, "/api/v1/shutdown", {"when": "now"})
            while not csource.ended(daemon):
                time.sleep(0.05)
    return 0


if __name__ == "__main__":
    sys.exit(main())
