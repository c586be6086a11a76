#!/usr/bin/python3
"""Agents side by side: N runs of 5 turns (4 calls of a cheap tool, then the result) against
mock-models, 500 ms and 20 chunks a reply, so the ideal wall time is 2.5 s.

    agents.py BUILD_DIR [--runs 1,10,...] [--peers ava,bare,...] [--rounds K] [--write FILE]

Peers: ava (through avad, with its log and journal on), bare (libuv and libcurl, nothing else),
ava-h2 and bare-h2 (the same over TLS with HTTP/2), anthropic (Anthropic's SDK) and
openai-agents (an agent SDK), both on node, from npm. One round is one run of each, in turn; the
figures are medians. ava and bare have K rounds (3; one from 10,000 runs on), the others one.
Each peer gets a mock of its own, whose account shows when the first request came and whether
one was refused. Peers that are not there are named and left out. --write puts the table between
the marks of doc/PERFORMANCE.md. A run that fails makes the exit code 1."""

import argparse
import collections
import fcntl
import glob
import http.client
import json
import os
import resource
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

CHUNKS = 20
# Turns of a run, ms a reply takes, the text that each call reads.
Shape = collections.namedtuple("Shape", "turns latency text")
SHAPE = Shape(5, 500, "one\ntwo\nthree\n")
SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NODE = {"anthropic": "anthropic.mjs", "openai-agents": "openai_agents.mjs"}
ORDER = ["ava", "bare", "ava-h2", "bare-h2", "anthropic", "openai-agents"]
NODE_RUNS = (1, 100, 1000)  # above, the SDKs take minutes
CREATE_US = 40  # of CPU for a file, where nothing is in the way
CREATED = []    # what it took in each folder
FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_TOPDIR_FL = 0x80086601, 0x40086602, 0x20000
MANY = 10000  # runs from which one round is enough
MARKS = ("<!-- agents: begin -->\n", "<!-- agents: end -->\n")
KB = 1024
LOAD = os.getloadavg()[0]


def now_ms():
    return time.clock_gettime(time.CLOCK_MONOTONIC) * 1000


class Unix(http.client.HTTPConnection):
    """A connection to the socket of a daemon."""

    def __init__(self, path):
        super().__init__("ava", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Mock:
    """mock-models for one peer; `more`: words of a plan (doc/MOCK.md) that win over these."""

    def __init__(self, build, folder, tls, shape=SHAPE, *more):
        self.ca = os.path.join(folder, "ca.pem")
        args = [os.path.join(build, "test/mock/mock-models"), "--ca", self.ca,
                f"latency={shape.latency}", f"chunks={CHUNKS}", f"turns={shape.turns - 1}",
                "tool=read_file", 'args={"path":"%t.txt"}',  # a call that is made again would be stopped
                *more]
        if tls:
            args.insert(1, "--tls")
        self.process = subprocess.Popen(args, stdout=subprocess.PIPE, text=True)
        self.url = {}
        for line in self.process.stdout:
            word, _, rest = line.strip().partition(" ")
            if word == "ready":
                break
            self.url[word] = rest

    def stats(self):
        with urllib.request.urlopen(self.url["plain"] + "/stats") as answer:
            return json.load(answer)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


def anon_kb(pid):
    with open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
    return 0


def measured(args, **more):
    """Run to the end: its last line as JSON, usage, peak of anonymous memory, its start."""
    start, peak = now_ms(), 0
    process = subprocess.Popen(args, stdout=subprocess.PIPE, text=True, **more)
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid != 0:
            break
        peak = max(peak, anon_kb(process.pid))
        time.sleep(0.01)
    wall = now_ms() - start
    lines = process.stdout.read().strip().splitlines()
    process.stdout.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    return {"start_ms": start, "wall_ms": wall, "peak_kb": peak,
            "cpu_us": (usage.ru_utime + usage.ru_stime) * 1e6,
            "failed": json.loads(lines[-1])["failed"] if lines else -1}


def bare(build, n, turns, mock, tls=False):
    args = [os.path.join(build, "bench/bench_agents_bare"), mock.url["tls" if tls else "plain"],
            str(n), str(turns)]
    return args + [mock.ca] if tls else args


def run_bare(build, n, mock, tls, shape):
    return measured(bare(build, n, shape.turns, mock, tls))


def run_node(build, name, n, mock, shape):
    folder = os.path.join(build, "agents_sdk")
    return measured(["node", NODE[name], mock.url["plain"], str(n), str(shape.turns)],
                    cwd=folder)


def ava_environment(folder, n, mock, tls):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("AVA_", "ANTHROPIC_", "OPENAI_", "OPENROUTER_"))}
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        env[name] = os.path.join(folder, name.lower())
        os.makedirs(env[name], mode=0o700, exist_ok=True)
    env.update(AVA_DATA_ROOT=os.path.join(folder, "root"), AVA_RUNS_MAX=str(n),
               ANTHROPIC_API_KEY="bench-key-0123456789",
               ANTHROPIC_BASE_URL=mock.url["tls" if tls else "plain"],
               SSL_CERT_FILE=mock.ca, AVA_MODEL="anthropic/claude-haiku-4-5",
               AVA_LIMITS_TOKENS="1000000000", AVA_LIMITS_ITERATIONS="1000",
               AVA_LIMITS_COST_CENTS="1000000", AVA_LIMITS_TIMEOUT="36000")
    return env


def start_avad(build, folder, env, under=()):
    """The daemon of a build, once it listens; `under`: a command that runs it."""
    log = open(os.path.join(folder, "avad.out"), "w")
    process = subprocess.Popen([*under, os.path.join(build, "src/gateway/avad")], env=env,
                               stdout=log, stderr=subprocess.STDOUT, cwd=folder)
    log.close()
    while not listens(os.path.join(env["AVA_DATA_ROOT"], "ava.sock")):
        if process.poll() is not None:
            with open(os.path.join(folder, "avad.out")) as out:
                sys.exit("avad did not start: " + out.read())
        time.sleep(0.005)
    return process


def listens(path):
    """The file of a socket is there before anybody answers."""
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(path) == 0


def unsuccessful(root):
    """Runs that did not end as success, and why the first did not."""
    ends = {}
    with open(os.path.join(root, "catalog.jsonl")) as rows:
        for line in rows:
            row = json.loads(line)
            if row["row"] == "end":
                ends[row["id"]] = row["status"]
    bad = [status for status in ends.values() if status != "success"]
    return len(bad), len(ends)


def make_work(folder, shape):
    """The folder of the runs, with a file for each turn to read."""
    work = os.path.join(folder, "work")
    os.makedirs(work, exist_ok=True)
    for turn in range(shape.turns):
        with open(os.path.join(work, f"{turn}.txt"), "w") as f:
            f.write(shape.text)
    return work


def written(pid):
    """Bytes that it gave to write and its kin, or None: another user's are not told."""
    try:
        with open(f"/proc/{pid}/io") as io:
            return next(int(line.split()[1]) for line in io if line.startswith("wchar:"))
    except OSError:
        return None


def kept(root):
    """Bytes of events and messages that its runs left."""
    runs = glob.glob(os.path.join(root, "runs/*/messages.jsonl"))
    logs = glob.glob(os.path.join(root, "logs/subagents/**/*.jsonl"), recursive=True)
    return sum(os.path.getsize(f) for f in runs + logs)


def run_ava(build, folder, n, mock, tls, shape, daemon):
    env = ava_environment(folder, n, mock, tls)
    work = make_work(folder, shape)
    avad = start_avad(daemon, folder, env)
    before, after = written(avad.pid), None
    try:
        out = subprocess.run(
            [os.path.join(build, "bench/bench_agents_ava"), env["AVA_DATA_ROOT"], str(n),
             env["AVA_MODEL"], work, str(shape.turns * shape.latency)], stdout=subprocess.PIPE, text=True,
            env=env)
        after = written(avad.pid)
    finally:
        avad.send_signal(signal.SIGTERM)
        avad.wait()
    if not out.stdout:
        sys.exit("agents.py: bench_agents_ava gave no figures")
    result = json.loads(out.stdout)
    bad, ended = unsuccessful(env["AVA_DATA_ROOT"])
    result.update(failed=bad + n - ended, kept=kept(env["AVA_DATA_ROOT"]),
                  written=None if after is None else after - before)
    return result


def create_us(folder):
    """CPU to create a file there."""
    inside, start = tempfile.mkdtemp(prefix="files-", dir=folder), time.thread_time()
    for i in range(100):
        os.close(os.open(os.path.join(inside, str(i)), os.O_CREAT | os.O_WRONLY))
    return (time.thread_time() - start) * 1e6 / 100


def make_world():
    """A folder whose subfolders ext4 spreads over the disk, as it does with those of a root."""
    world = tempfile.mkdtemp(prefix="ava-bench-agents-")
    fd = os.open(world, os.O_RDONLY)
    try:
        flags = struct.unpack("l", fcntl.ioctl(fd, FS_IOC_GETFLAGS, bytes(8)))[0]
        fcntl.ioctl(fd, FS_IOC_SETFLAGS, struct.pack("l", flags | FS_TOPDIR_FL))
    except OSError:
        pass  # another file system
    os.close(fd)
    return world


def make_folder(world, name):
    """A folder where files are created fast. For minutes ext4 without a journal looks at every
    inode that was freed nearby, up to a hundred times the cost of the rest of a run."""
    for _ in range(20):
        folder = tempfile.mkdtemp(prefix=name, dir=world)
        took = create_us(folder)
        if took <= CREATE_US:
            break
    CREATED.append(took)
    return folder


def one(build, peer, n, world, shape=SHAPE, daemon=None):
    """One round of a peer; `daemon`: the build of avad, where it is another one."""
    folder = make_folder(world, f"{peer}-{n}-")
    tls = peer.endswith("-h2")
    mock = Mock(build, folder, tls, shape)
    try:
        if peer.startswith("ava"):
            result = run_ava(build, folder, n, mock, tls, shape, daemon or build)
        elif peer.startswith("bare"):
            result = run_bare(build, n, mock, tls, shape)
        else:
            result = run_node(build, peer, n, mock, shape)
        stats = mock.stats()
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    finally:
        mock.stop()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    turns = max(1, stats["done"])
    result["mock_us"] = (after.ru_utime + after.ru_stime - usage.ru_utime - usage.ru_stime) * 1e6
    result.update(first_ms=stats["firstMs"] - result["start_ms"], refused=stats["refused"],
                  requests=stats["requests"], turns=turns)
    return result


def row(peer, n, results, single):
    """`single`: the row of one run, which has all that is paid once; None: it was not measured."""
    def middle(value):
        return statistics.median(value(r) for r in results)

    out = {"peer": peer, "runs": n, "wall_s": middle(lambda r: r["wall_ms"]) / 1000,
           "cpu_us": middle(lambda r: r["cpu_us"]), "turns": middle(lambda r: r["turns"]),
           "peak_mb": middle(lambda r: r["peak_kb"]) / KB,
           "first_ms": middle(lambda r: r["first_ms"]),
           "mock_ms_per_turn": middle(lambda r: r["mock_us"] / r["turns"]) / 1000,
           "failed": max(r["failed"] for r in results),
           "refused": max(r["refused"] for r in results)}
    out["cpu_s_per_1000_turns"] = out["cpu_us"] / out["turns"] / 1000
    out["more_ms"] = out["kb_per_run"] = None
    if single and n > 1:
        out["more_ms"] = (out["cpu_us"] - single["cpu_us"]) / (out["turns"] - single["turns"]) / 1000
        out["kb_per_run"] = (out["peak_mb"] - single["peak_mb"]) * KB / (n - 1)
    return out


def cell(value, form):
    return "" if value is None else format(value, form)


def table(rows):
    out = ["| peer | runs | wall s | CPU s/1,000 turns | CPU ms/turn more | KB/run more | peak MB "
           "| first request ms | failed | refused |", "|---|---|---|---|---|---|---|---|---|---|"]
    for r in rows:
        out.append(f"| {r['peer']} | {r['runs']:,} | {r['wall_s']:.2f} | "
                   f"{r['cpu_s_per_1000_turns']:.3f} | {cell(r['more_ms'], '.3f')} | "
                   f"{cell(r['kb_per_run'], '.1f')} | "
                   f"{r['peak_mb']:.1f} | {r['first_ms']:.1f} | {r['failed']} | {r['refused']} |")
    most = max(rows, key=lambda r: r["runs"])["runs"]
    cpu = max(r["mock_ms_per_turn"] for r in rows if r["runs"] == most)
    out += ["", f"At {most:,} runs the mock took up to {cpu:.2f} ms of CPU a turn on the same "
            "processors."]
    return out


def aims(rows):
    """Each aim of the bench beside its figure; only those that were measured."""
    def of(peer, n, key):
        return next((r[key] for r in rows if r["peer"] == peer and r["runs"] == n), None)

    cpu, bare = (of(p, 1000, "cpu_s_per_1000_turns") for p in ("ava", "bare"))
    found = [("wall time, 1,000 runs", of("ava", 1000, "wall_s"), 2.7, "s"),
             ("CPU s per 1,000 turns, 1,000 runs", cpu, 0.30, ""),
             ("the same, against the bare loop", cpu / bare if cpu and bare else None, 1.5, "x"),
             ("memory a run, 1,000 runs", of("ava", 1000, "kb_per_run"), 32, "KB"),
             ("peak of memory, 10,000 runs", of("ava", 10000, "peak_mb"), 300, "MB"),
             ("failed of 10,000 runs", of("ava", 10000, "failed"), 0, "")]
    out = ["| aim | at most | measured | |", "|---|---|---|---|"]
    for name, figure, most, unit in found:
        if figure is not None:
            out.append(f"| {name} | {most} {unit} | {figure:.3g} {unit} | "
                       f"{'met' if figure <= most else 'missed'} |")
    return out


def file_system():
    """The kind of it that holds temporary folders."""
    with open("/proc/mounts") as mounts:
        found = [l.split()[1:3] for l in mounts]
    where = tempfile.gettempdir().rstrip("/") + "/"
    return max((m for m in found if where.startswith(m[0].rstrip("/") + "/")), key=lambda m: len(m[0]))[1]


def machine():
    with open("/proc/meminfo") as info:
        memory = int(info.readline().split()[1]) / KB / KB
    with open("/proc/cpuinfo") as info:
        cpu = next((l.split(":")[1].strip() for l in info if l.startswith("model name")), "")
    kernel = ".".join(os.uname().release.split(".")[:2])
    return (f"Machine: {os.cpu_count()} cores ({cpu}), {memory:.0f} GiB, Linux {kernel}, "
            f"{file_system()}; creating a file took {max(CREATED):.0f} us of CPU at most; load average at the "
            f"start {LOAD:.1f}.")


def write_into(path, lines, marks=MARKS):
    with open(path) as f:
        text = f.read()
    before, found, rest = text.partition(marks[0])
    after = rest.partition(marks[1])[2]
    if not found:
        sys.exit(f"{path} has no line {marks[0].strip()}")
    with open(path, "w") as f:
        f.write(before + marks[0] + "\n".join(lines) + "\n" + marks[1] + after)


def node_ready(build):
    """Install the SDKs into the build folder; False: there is no node or no registry."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        return False
    folder = os.path.join(build, "agents_sdk")
    os.makedirs(folder, exist_ok=True)
    for name in ["package.json", *NODE.values()]:
        shutil.copy(os.path.join(SOURCE, "bench/agents_sdk", name), folder)
    if os.path.isdir(os.path.join(folder, "node_modules")):
        return True
    return subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent"], cwd=folder,
                          stdout=subprocess.DEVNULL).returncode == 0


def measure(build, counts, peers, rounds_wanted, world):
    rows, single = [], {}
    for n in counts:
        here = [p for p in peers if p not in NODE or n in NODE_RUNS]
        results = {p: [] for p in here}
        for i in range(rounds_wanted if n < MANY else 1):
            for p in here:
                if i == 0 or p in ("ava", "bare"):
                    results[p].append(one(build, p, n, world))
        for p in here:
            rows.append(row(p, n, results[p], single.get(p)))
            single.update({p: rows[-1]} if n == 1 else {})
            print(f"{p} with {n} runs: {rows[-1]['wall_s']:.2f} s", file=sys.stderr, flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--runs", default="1,10,100,1000,10000")
    parser.add_argument("--peers", default=",".join(ORDER))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", help="put machine, aims and table between the marks there")
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    peers = args.peers.split(",")
    if any(p in NODE for p in peers) and not node_ready(build):
        print("no node, or npm could not install: left out:", *NODE)
        peers = [p for p in peers if p not in NODE]
    world = make_world()  # nothing is deleted in it before the end
    try:
        rows = measure(build, [int(n) for n in args.runs.split(",")], peers, args.rounds, world)
    finally:
        shutil.rmtree(world, ignore_errors=True)
    lines = [machine(), "", *aims(rows), "", *table(rows)]
    print("\n".join(lines))
    if args.write:
        write_into(args.write, lines)
    return 1 if any(r["failed"] or r["refused"] for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
