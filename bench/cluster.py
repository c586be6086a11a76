#!/usr/bin/python3
"""The cost of a cluster: the same runs on a machine alone, on one of a cluster, and on four.

    cluster.py BUILD [--runs 100] [--rounds 3] [--machines 4] [--flushes 100] [--seconds 0] [--write FILE]

Machines, database and model are those of test/peers/cluster (world.py): a network namespace a machine, PostgreSQL
of Debian's packages with fsync on, TLS between them. Worlds take turns; figures are medians. All share the
processors of one computer: what is compared is CPU a turn, and a gate with a transaction of pgbench beside it.
--seconds: how long four machines are kept at work before the tables are looked at. Exit code 1: a run failed, or
was flushed much more than once a turn; 77: a program is missing that this needs."""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MARKS = ("<!-- cluster: begin -->\n", "<!-- cluster: end -->\n")
PLAN = ("latency=20", "chunks=1")  # of the model
SETTINGS = {"AVA_WEB_HOST_GAP_MS": "0"}
TICKS = os.sysconf("SC_CLK_TCK")
# A flush of one run, as another program would do it: a row's update, its chunks, in one round trip.
SCRIPT = """\\set n random(1, 1000000000)
with r as (update bench_run set head = head + 1 where run = 'r' returning run)
 insert into bench_chunk select run, :n, decode(repeat('61', {size}), 'hex') from r on conflict do nothing;
"""
TABLES = """select relname as name, n_live_tup as live, n_dead_tup as dead, pg_total_relation_size(relid) as bytes,
  n_tup_upd as updates, n_tup_hot_upd as hot from pg_stat_user_tables where relname like 'ava_%' order by relname"""


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--runs", type=int, default=100, help="a machine has at a time")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--machines", type=int, default=4)
    p.add_argument("--flushes", type=int, default=100, help="runs one after the other, for the time of a gate")
    p.add_argument("--seconds", type=int, default=0)
    p.add_argument("--write", metavar="FILE")
    o = p.parse_args()
    if min(o.runs, o.rounds, o.machines, o.flushes) < 1 or o.seconds < 0:
        p.error("all of them are numbers from 1 on, --seconds from 0")
    return o


def cpu(pid, ended=False):
    """Seconds of a process, with those of its children that have ended."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15 if ended else 13])) / TICKS


def database_cpu(server):
    total = cpu(server.process.pid, ended=True)
    for pid in server.children():
        with contextlib.suppress(FileNotFoundError):
            total += cpu(pid)
    return total


def on_the_wire(machine):
    """Bytes that went in and out by the cable of a machine."""
    if not machine.holder:
        return 0
    done = subprocess.run([*network.enter(machine.holder), "cat", "/proc/net/dev"], capture_output=True, text=True, check=True)
    line = next(s for s in done.stdout.splitlines() if s.strip().startswith(f"c{machine.number}:"))
    fields = line.split(":")[1].split()
    return int(fields[0]) + int(fields[8])


def flushed(w):
    """(flushes, seconds, bytes) of all machines."""
    if not w.url:
        return 0, 0, 0
    all_of = [m.api("GET", "/api/v1/cluster")[1]["cluster"] for m in w.machines]
    return [sum(c[name] for c in all_of) for name in ("flushes", "flush_seconds", "sent_bytes")]


class Look:
    """Counters of a world from one moment to another."""

    def __init__(self, w):
        self.w = w
        self.at = self.now()

    def now(self):
        w = self.w
        return [sum(cpu(m.process.pid) for m in w.machines), database_cpu(w.database) if w.url else 0,
                sum(on_the_wire(m) for m in w.machines) if w.url else 0, *flushed(w)]

    def since(self, turns):
        """A turn's: CPU in ms of machines and of the database, bytes on the wire; flushes, and ms and bytes of one."""
        machines, database, wire, flushes, seconds, sent = (b - a for a, b in zip(self.at, self.now()))
        return {"cpu": machines * 1000 / turns, "database": database * 1000 / turns, "wire": wire / turns,
                "turns_a_flush": turns / flushes if flushes else 0, "flush_ms": seconds * 1000 / flushes if flushes else 0,
                "sent": sent / turns}


def all_over(w, runs):
    """Until each has ended, by the word of its machine; those that did not end well."""
    bad = []
    for machine, run in runs:
        world.until(300, lambda: machine.status(run) not in ("", "running", "queued"), f"{run} ends")
        bad += [] if machine.status(run) == "success" else [f"{run} did not end well"]
    return bad


def load(w, runs, count):
    """That many runs at a time on each machine; what a turn cost."""
    look = Look(w)
    began, made = time.monotonic(), []
    for _ in range(runs):
        for machine in w.machines:
            count["serial"] += 1
            made.append((machine, w.spawn_at(machine, f"b{count['serial']}")))
    count["bad"] += all_over(w, made)
    turns = len(made) * world.TURNS
    return {**look.since(turns), "turns_a_second": turns / (time.monotonic() - began)}


def one_by_one(w, runs, count):
    """Runs one after the other: (ms of a run, what a turn cost)."""
    look, took = Look(w), []
    for _ in range(runs):
        count["serial"] += 1
        began = time.monotonic()
        run = w.spawn_at(w.machines[0], f"b{count['serial']}")
        status, answer = w.machines[0].api("GET", f"/api/v1/runs/{run}/result?wait=25")
        count["bad"] += [] if status == 200 and answer["status"] == "success" else [f"{run} did not end well"]
        took.append((time.monotonic() - began) * 1000)
    return statistics.median(took), look.since(runs * world.TURNS)


def transaction_ms(w, size):
    """The mean time of pgbench's transaction, from the network of a machine, with as many bytes."""
    server = w.database
    server.sql("create table if not exists bench_run (run text primary key, head bigint) with (fillfactor = 50)")
    server.sql("create table if not exists bench_chunk (run text, n bigint, body bytea, primary key (run, n))")
    server.sql("insert into bench_run values ('r', 0) on conflict do nothing")
    script = os.path.join(w.top, "flush.sql")
    with open(script, "w", encoding="ascii") as f:
        f.write(SCRIPT.format(size=int(size)))
    machine = w.machines[0]
    inside = network.enter(machine.holder) if machine.holder else []
    done = subprocess.run([*inside, os.path.join(server.bin, "pgbench"), "-n", "-f", script, "-T", "3", "-M", "extended",
                           postgres.url(server)], capture_output=True, text=True, check=True)
    return float(next(s for s in done.stdout.splitlines() if s.startswith("latency average")).split()[3])


def median(results, name):
    return statistics.median(r[name] for r in results)


def row(*cells):
    return "| " + " | ".join(c if isinstance(c, str) else f"{c:,.2f}" if c < 100 else f"{c:,.0f}" for c in cells) + " |"


def loads(o, worlds, count):
    results = {name: [] for name in worlds}
    for n in range(o.rounds):
        for name, w in worlds.items():
            results[name].append(load(w, o.runs, count))
            print(f"{name}, round {n + 1}: {results[name][-1]['cpu']:.3f} ms a turn", file=sys.stderr, flush=True)
    out = [f"| {o.runs} runs a machine | CPU ms/turn | x alone | database CPU ms/turn | KB/turn on the wire | KB/turn of lines "
           "| turns/flush | ms/flush | turns/s, all on one computer |", "|---|---|---|---|---|---|---|---|---|"]
    for name, r in results.items():
        out.append(row(name, median(r, "cpu"), median(r, "cpu") / median(results["alone"], "cpu"), median(r, "database"),
                       median(r, "wire") / 1024, median(r, "sent") / 1024, median(r, "turns_a_flush"), median(r, "flush_ms"),
                       median(r, "turns_a_second")))
    cluster = list(results)[1:]
    one, many = (median(results[name], "cpu") for name in (cluster[0], cluster[-1]))
    out += ["", f"{cluster[-1]}: a turn costs {many / one:.2f} x that of one machine, so they carry {one / many:.2f} x {o.machines} of "
            f"it (aim 0.9 or more). A CPU second of the database carries {1000 / median(results[cluster[-1]], 'database'):,.0f} turns."]
    return out


def gates(o, worlds, count):
    """The time of a gate, and of one with fifty runs in it."""
    alone, _ = one_by_one(worlds["alone"], o.flushes, count)
    in_cluster, cost = one_by_one(worlds["one machine"], o.flushes, count)
    a_run = world.TURNS / cost["turns_a_flush"]
    if a_run > 1.5 * (world.TURNS + 3):  # each turn, the accept, the result and the end; more where a turn takes half a second
        count["bad"].append(f"a run of {world.TURNS} turns had {a_run:.1f} flushes")
    added = (in_cluster - alone) / a_run
    floor = transaction_ms(worlds["one machine"], cost["sent"] * cost["turns_a_flush"])
    fifty = load(worlds["one machine"], min(o.runs, 50), count)
    runs_a_flush = fifty["turns_a_flush"] / cost["turns_a_flush"]
    return ["| a gate | ms |", "|---|---|",
            row("one transaction of pgbench with as many bytes", floor), row("a flush of one run", cost["flush_ms"]),
            row(f"flushes of a run of {world.TURNS} turns (no ms)", a_run), row("what a run waits longer, a gate", added),
            row(f"a flush of {runs_a_flush:.0f} runs", fifty["flush_ms"]), "",
            f"A gate adds {added / floor:.2f} x one round trip with a flush of the server (aim 1: the local disk is waited for "
            f"as well). {runs_a_flush:.0f} runs cost {fifty['flush_ms'] / cost['flush_ms']:.2f} x one (aim 1.5 with 50)."]


def tables(o, w, count):
    end, turns = time.monotonic() + o.seconds, 0
    while time.monotonic() < end:
        load(w, o.runs, count)
        turns += o.runs * len(w.machines) * world.TURNS
    time.sleep(1)  # until the server has counted
    out = [f"After {o.seconds:,} s of work ({turns:,} turns in it):", "", "| table | rows | dead | updates, of them HOT | MB |",
           "|---|---|---|---|---|"]
    for t in w.database.rows(TABLES):
        out.append(f"| {t['name']} | {t['live']:,} | {t['dead']:,} | {t['updates']:,}, {t['hot']:,} | {t['bytes'] / 1e6:.2f} |")
    return out


def write(path, text):
    with open(path, encoding="utf-8") as f:
        old = f.read()
    before, _, rest = old.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    with open(path, "w", encoding="utf-8") as f:
        f.write(before + MARKS[0] + text + "\n" + MARKS[1] + after)


def main(o):
    count = {"serial": 0, "bad": []}
    with contextlib.ExitStack() as stack:
        def made(machines, **kinds):
            return stack.enter_context(world.World(machines, words=PLAN, settings=SETTINGS, **kinds))

        worlds = {"alone": made(1, database="", member=False), "one machine": made(1)}
        if o.machines > 1:
            worlds[f"{o.machines} machines"] = made(o.machines)
        text = "\n".join([*loads(o, worlds, count), "", *gates(o, worlds, count), "", *tables(o, list(worlds.values())[-1], count)])
    print(text)
    if o.write:
        write(o.write, text)
    for bad in count["bad"]:
        print(bad, file=sys.stderr)
    return 1 if count["bad"] else 0


if __name__ == "__main__":
    options = arguments()
    for name, path in (("AVA", "src/cli/ava"), ("AVAD", "src/gateway/avad"), ("MOCK_MODELS", "test/mock/mock-models")):
        os.environ[name] = os.path.join(os.path.abspath(options.build), path)
    sys.path.insert(0, os.path.join(SOURCE, "test/peers/cluster"))
    import network
    import postgres
    import world
    try:
        sys.exit(main(options))
    except postgres.Missing as why:
        print(why)
        sys.exit(77)
