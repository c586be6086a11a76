#!/usr/bin/python3
"""The cost of a turn: ava of this tree, ava of an older commit, and the floor, side by side.

    turns.py BUILD [--runs 1000] [--turns 5] [--rounds 5] [--load K] [--lengths 5,10,50,200] [--write FILE]
             [--quick]

Peers are those of agents.py: `bare` is the floor. `reference` is avad of the commit that the line "Reference:
commit HASH" of doc/PERFORMANCE.md names, built once in BUILD/reference/HASH as BUILD is; where the history has no
such commit it is left out with a word. Peers take turns, so that only their ratio is worth something on a busy
machine; --load makes it busy. What is counted (turns_gate.py) is the same on any. --write puts the tables between
the marks of FILE. Exit code 1: a run failed."""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import agents
import turns_gate as gate

MARKS = ("<!-- turns: begin -->\n", "<!-- turns: end -->\n")
PAGE = os.path.join(agents.SOURCE, "doc/PERFORMANCE.md")
KB = 1024
LONG_LATENCY_MS = 20
LONG_TEXT = "A line of what a run reads.\n" * 74  # 2 KB
LONG_TURNS = 1000  # of all runs of a length together
COUNTS = ("instructions", "allocations", "calls")


def reference(build):
    """(the commit of the page, the build of its daemon), the latter None where it cannot be had."""
    with open(PAGE) as page:
        named = re.search(r"^Reference: commit ([0-9a-f]{7,40})$", page.read(), re.M)
    if not named:
        return None, None
    commit = named.group(1)
    folder = os.path.join(build, "reference", commit)
    there = os.path.join(folder, "build")
    if os.path.exists(os.path.join(there, "src/gateway/avad")):
        return commit, there
    archive = subprocess.run(["git", "-C", agents.SOURCE, "archive", commit], capture_output=True)
    if archive.returncode != 0:
        return commit, None
    shutil.rmtree(folder, ignore_errors=True)
    tree = os.path.join(folder, "tree")
    os.makedirs(tree)
    subprocess.run(["tar", "-x", "-C", tree], input=archive.stdout, check=True)
    alike = [f"-D{o['name']}={o['value']}" for o in json.loads(subprocess.run(
        ["meson", "introspect", "--buildoptions", build], capture_output=True, text=True, check=True).stdout)
        if o["name"] in ("buildtype", "optimization", "debug", "b_ndebug")]
    print(f"building the reference {commit}", file=sys.stderr, flush=True)
    for argv in (["meson", "setup", there, tree, "-Dtests=false", *alike], ["ninja", "-C", there, "src/gateway/avad"]):
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return commit, there


def bare_counts(build, turns):
    """Counts a turn of the floor, whose runs are all in flight at once."""
    found, runs = {}, 10
    for under in gate.COUNTERS.values():
        lives = []
        for n in (1, 1 + runs):
            with tempfile.TemporaryDirectory(prefix="ava-turns-") as folder:
                mock = agents.Mock(build, folder, False, agents.Shape(turns, 0, ""), "chunks=1")
                try:
                    subprocess.run([*under, *agents.bare(build, n, turns, mock)], cwd=folder, check=True,
                                   stdout=subprocess.DEVNULL, env={**os.environ, **gate.STEADY})
                finally:
                    mock.stop()
                lives.append(gate.counted(folder))
        lives[1].subtract(lives[0])
        found.update({name: value / turns / runs for name, value in lives[1].items()})
    return found


def ava_counts(build, daemon, turns):
    runs = {turns: 10}
    return gate.a_turn([gate.live(build, daemon, runs)], runs)[turns]


def middle(results, value):
    """The median, or None where it is not known."""
    values = [value(r) for r in results]
    return None if None in values else statistics.median(values)


def cpu_ms(r):
    return r["cpu_us"] / r["turns"] / 1000


def a_turn(r, name):
    """KB a turn of what is written or kept; the floor writes nothing."""
    return None if r.get(name) is None else r[name] / r["turns"] / KB


def measure(o, build, daemons, world):
    """Rounds of each peer in turn, and one of a single run, for what is paid once."""
    shape = agents.SHAPE._replace(turns=o.turns)
    single = {p: agents.one(build, p, 1, world, shape, d) for p, d in daemons.items()}
    results = {p: [] for p in daemons}
    for i in range(o.rounds):
        for p, daemon in daemons.items():
            results[p].append(agents.one(build, p, o.runs, world, shape, daemon))
            print(f"{p}, round {i + 1}: {cpu_ms(results[p][-1]):.3f}", file=sys.stderr, flush=True)
    return single, results


def cells(*values):
    return "| " + " | ".join(v if isinstance(v, str) else agents.cell(*v) for v in values) + " |"


def table(names, n, single, results, counts):
    out = [f"| {n:,} runs | CPU s/1,000 turns | x bare | KB/run more | written KB/turn | kept KB/turn | x | calls/turn "
           "| allocations/turn | instructions/turn |", "|---|---|---|---|---|---|---|---|---|---|"]
    floor = middle(results["bare"], cpu_ms)
    for p, found in results.items():
        cpus = sorted(map(cpu_ms, found))
        memory = (middle(found, lambda r: r["peak_kb"]) - single[p]["peak_kb"]) / max(1, n - 1)
        wrote, kept = (middle(found, lambda r, k=k: a_turn(r, k)) for k in ("written", "kept"))
        c = counts.get(p, {})
        out.append(cells(names[p], f"{middle(found, cpu_ms):.3f} ({cpus[0]:.3f} to {cpus[-1]:.3f})",
                         (middle(found, cpu_ms) / floor, ".2f"), (memory, ".1f"), (wrote, ".1f"), (kept, ".1f"),
                         (wrote / kept if wrote and kept else None, ".2f"), (c.get("calls"), ".1f"),
                         (c.get("allocations"), ",.0f"), (c.get("instructions"), ",.0f")))
    return out


def counted_lengths(build, runs):
    return gate.a_turn([gate.live(build, runs=runs, text=LONG_TEXT)], runs)


def lengths(build, world, wanted, counted):
    """A turn of runs of so many turns, 2 KB read in each."""
    out = ["", "| turns of a run | runs | CPU ms/turn | written KB/turn | kept KB/turn | instructions/turn "
           "| allocations/turn | calls/turn |", "|---|---|---|---|---|---|---|---|"]
    counts = counted_lengths(build, {t: max(1, 50 // t) for t in wanted}) if counted else {}
    for turns in wanted:
        shape, n = agents.Shape(turns, LONG_LATENCY_MS, LONG_TEXT), max(1, LONG_TURNS // turns)
        r = agents.one(build, "ava", n, world, shape)
        c = counts.get(turns, {})
        out.append(cells(str(turns), f"{n:,}", (cpu_ms(r), ".3f"), (a_turn(r, "written"), ".1f"),
                         (a_turn(r, "kept"), ".1f"), (c.get("instructions"), ",.0f"), (c.get("allocations"), ",.0f"),
                         (c.get("calls"), ".1f")))
    return out


def whole(text):
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"\"{text}\" is no whole number from 1 on")
    return int(text)


def whole_list(text):
    return [whole(t) for t in text.split(",") if t]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=gate.built)
    parser.add_argument("--runs", type=whole, default=1000)
    parser.add_argument("--turns", type=whole, default=5)
    parser.add_argument("--rounds", type=whole, default=5)
    parser.add_argument("--load", type=int, default=0, help="busy loops beside it")
    parser.add_argument("--lengths", type=whole_list, default="5,10,50,200", help="turns of a run; empty: left out")
    parser.add_argument("--quick", action="store_true", help="neither counts nor a reference")
    parser.add_argument("--write", help="put the tables between the marks there")
    o = parser.parse_args()
    build, notes = o.build, []
    commit, old = (None, None) if o.quick else reference(build)
    daemons, names = {"bare": None, "ava": build}, {"bare": "bare", "ava": "ava", "ava-reference": f"ava at {commit}"}
    if old:
        daemons["ava-reference"] = old
    elif not o.quick:
        notes.append(f"No reference: the history of this tree has no commit {commit}." if commit else
                     "No reference: doc/PERFORMANCE.md names none.")
    why = "it was to be quick" if o.quick else gate.unusable()
    if why:
        notes.append(f"Nothing is counted: {why}.")
    world = agents.make_world()  # nothing is deleted in it before the end
    try:
        with gate.busy(o.load):
            single, results = measure(o, build, daemons, world)
            counts = {} if why else {p: ava_counts(build, d, o.turns) if d else bare_counts(build, o.turns)
                                     for p, d in daemons.items()}
            more = lengths(build, world, o.lengths, not why) if o.lengths else []
    finally:
        shutil.rmtree(world, ignore_errors=True)
    busy = f" Busy loops beside it: {o.load}." if o.load else ""
    lines = [*([f"Reference: commit {commit}", ""] if commit else []), agents.machine() + busy, *notes, "",
             *table(names, o.runs, single, results, counts), *more]
    print("\n".join(lines))
    if o.write:
        agents.write_into(o.write, lines, MARKS)
    return 1 if any(r["failed"] or r["refused"] for found in results.values() for r in found) else 0


if __name__ == "__main__":
    sys.exit(main())
