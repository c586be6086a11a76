#!/usr/bin/python3
"""The cost of a turn in counts, which nothing else on the machine changes, beside those of bench/turns.json.

    turns_gate.py BUILD [--write] [--load K] [--times N] [--profile FOLDER]

A daemon plays one run at a time, of 5, 50 or 200 turns. Its life with them less its life without them is what they
cost: instructions in user space and allocations by callgrind, system calls by strace. 5 % more or less than the
figure fails, when it is so in three rounds; --write makes the figure of it. --times prints how far apart rounds lie, --load
beside so many busy loops. --profile keeps what callgrind wrote there, for callgrind_annotate. Exit code 77: there is nothing to compare with here, and a word says why."""

import argparse
import collections
import concurrent.futures
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import agents

RUNS = {5: 10, 50: 1, 200: 1}  # turns of a run: runs of that length
FIRST = [5]
ROOM = 0.05
LIVES = 3  # rounds at the most
ASSERTED = ("instructions", "allocations", "calls")
NEEDED = ["src/gateway/avad", "test/mock/mock-models"]
SKIPPED = 77
FIGURES = os.path.join(agents.SOURCE, "bench/turns.json")
COUNTERS = {"callgrind": ["valgrind", "-q", "--tool=callgrind", "--callgrind-out-file=callgrind.%p"],
            "strace": ["strace", "-f", "-qq", "-y", "-s", "0", "-e", "signal=none", "-o", "strace"]}

# Nettle hashes by instructions that valgrind does not know, so callgrind would count its long way.
NOT_OURS = re.compile(r"/libnettle\.")
ALLOCATIONS = {"malloc", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign"}

# System calls whose number is a matter of time, by name and by their line; all others are compared.
TIMED = {
    **dict.fromkeys(["epoll_wait", "epoll_pwait"], "a turn of the loop takes what has come until then"),
    **dict.fromkeys(["futex", "sched_yield"], "a thread waits where it meets another"),
    **dict.fromkeys(["fdatasync", "fsync", "syncfs"], "a flush takes the commits that wait, and the disk's time"),
    **dict.fromkeys(["sync_file_range", "clock_nanosleep"], "segments are filled ahead, with pauses"),
    **dict.fromkeys(["restart_syscall", "rt_sigreturn"], "a signal came meanwhile"),
}
TIMED_LINES = {
    r"/wal/": "a flush takes the commits that wait, and segments are filled ahead",
    r'newfstatat\((AT_FDCWD[^"]*"[^"]*/root"|\d+<[^>]*/root>, "(ava\.sock)?")': "each second: is it still our root?",
}

# Any x86-64 counts the same: libc has no string functions for its own CPU, and no symbol is looked up late.
STEADY = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-BMI2,-ERMS,-FSRM", "LD_BIND_NOW": "1",
          "MALLOC_PERTURB_": "0"}  # meson sets it


def play(env, work, lengths, avad):
    """One run behind the other. The daemon is not asked how far it is: that would count."""
    root = env["AVA_DATA_ROOT"]
    for n, turns in enumerate(lengths):
        c = agents.Unix(os.path.join(root, "ava.sock"))
        task = f"Task {n}. [[mock turns={turns - 1}]]"
        c.request("POST", "/api/v1/runs", json.dumps(
            {"role": "code_reviewer", "task": task, "model": env["AVA_MODEL"], "cwd": work, "confirmed": True}),
            {"Content-Type": "application/json"})
        answer = c.getresponse()
        said = answer.read().decode()
        c.close()
        if answer.status not in (200, 201):
            sys.exit(f"turns_gate.py: a run was answered {answer.status}: {said}")
        while ended(root) <= n:
            if avad.poll() is not None:
                sys.exit("turns_gate.py: avad has ended")
            time.sleep(0.005)


def ended(root):
    with open(os.path.join(root, "catalog.jsonl"), "rb") as rows:
        return rows.read().count(b'"row":"end"')


def life(build, daemon, under, lengths, shape, profile):
    """A daemon plays these runs and stops; what was counted of it, which `profile` keeps too."""
    with tempfile.TemporaryDirectory(prefix="ava-turns-") as folder:
        # A reply in one piece: how many pieces are read at once is a matter of time.
        mock = agents.Mock(build, folder, False, shape, "latency=0", "chunks=1")
        try:
            env = {**agents.ava_environment(folder, 4, mock, False), **STEADY}
            work = agents.make_work(folder, shape)
            avad = agents.start_avad(daemon, folder, env, under)
            try:
                play(env, work, lengths, avad)
            finally:
                if avad.poll() is None:
                    with open(os.path.join(env["AVA_DATA_ROOT"], "ava.lock")) as lock:
                        os.kill(int(lock.read()), signal.SIGTERM)
                avad.wait()
            bad, n = agents.unsuccessful(env["AVA_DATA_ROOT"])
            played = mock.stats()["done"]
            if bad or n != len(lengths) or played != sum(lengths):
                sys.exit(f"turns_gate.py: of {len(lengths)} runs {n} have ended, {bad} without success, "
                         f"with {played} turns of {sum(lengths)}")
        finally:
            mock.stop()
        for kept in glob.glob(os.path.join(folder, "callgrind.*")) if profile else []:
            shutil.copy(kept, os.path.join(profile, f"callgrind.{lengths[-1]}"))
        return counted(folder)


def counted(folder):
    """What the counters left in a folder."""
    counts = collections.Counter()
    for name in os.listdir(folder):
        if name.startswith("callgrind."):
            read_callgrind(os.path.join(folder, name), counts)
        elif name == "strace":
            read_strace(os.path.join(folder, name), counts)
    return counts


def read_callgrind(path, counts):
    """Own cost of each object that is ours, and calls of what allocates."""
    names, ours, callee, inclusive = {}, True, "", False
    with open(path, errors="replace") as f:
        for line in f:
            key, equals, value = line.rstrip("\n").partition("=")
            if equals and key in ("ob", "cob", "fn", "cfn"):
                number, _, name = value.partition(" ")
                name = names.setdefault(key[-2:] + number, name)  # it is written once
                if key == "ob":
                    ours = not NOT_OURS.search(name)
                elif key == "cfn":
                    callee = name
            elif equals and key == "calls":
                inclusive = True  # the next line has what the callee cost
                counts["allocations"] += int(value.split()[0]) if callee in ALLOCATIONS else 0
            elif line[0] in "+-*0123456789":
                counts["instructions"] += int(line.split()[1]) if ours and not inclusive else 0
                inclusive = False


def read_strace(path, counts):
    timed = re.compile("|".join(TIMED_LINES))
    with open(path, errors="replace") as f:
        for line in f:
            call = re.match(r"\d+ +(\w+)\(", line)  # the second half of one that was interrupted has none
            if call and call.group(1) not in TIMED and not timed.search(line):
                counts["calls " + call.group(1)] += 1
                counts["calls"] += 1


def plans(runs):
    """The runs of each life. The first run pays what is paid once."""
    return {0: FIRST, **{turns: FIRST + n * [turns] for turns, n in runs.items()}}


def live(build, daemon=None, runs=RUNS, text=agents.SHAPE.text, profile=None):
    """A life of each plan under each counter."""
    shape = agents.Shape(max(runs), 0, text)
    jobs = [(under, lengths) for under in COUNTERS.values() for lengths in plans(runs).values()]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda job: life(build, daemon or build, *job, shape, profile), jobs))
    half = len(done) // 2
    return [a + b for a, b in zip(done[:half], done[half:])]


def a_turn(rounds, runs=RUNS):
    """Counts a turn for each length of a run, of the least of each life: what comes between only adds."""
    least = [collections.Counter({name: min(life[name] for life in same) for name in same[0]}) for same in zip(*rounds)]
    return {turns: {name: round((more[name] - least[0][name]) / turns / runs[turns], 2) for name in more}
            for turns, more in zip(runs, least[1:])}


def versions(build):
    """What the counts depend on, beside our code."""
    comment = subprocess.run(["readelf", "-p", ".comment", os.path.join(build, "src/gateway/avad")],
                             capture_output=True, text=True, check=True).stdout
    needs = subprocess.run(["readelf", "-d", os.path.join(build, "src/gateway/avad")],
                           capture_output=True, text=True, check=True).stdout
    options = {o["name"]: o["value"] for o in json.loads(subprocess.run(
        ["meson", "introspect", "--buildoptions", build], capture_output=True, text=True, check=True).stdout)}
    found = {"machine": os.uname().machine, "file system": agents.file_system(),
             "compiler": " ".join(sorted(set(re.findall(r"\]\s+(\S.*)", comment)))),
             "glibc": os.confstr("CS_GNU_LIBC_VERSION").split()[-1],
             "mimalloc": "".join(re.findall(r"\[libmimalloc\.so\.(\S+)\]", needs))}
    for name in ("optimization", "b_ndebug", "b_lto", "b_sanitize", "c_args"):
        found[name] = str(options.get(name))
    for name in ("libcurl", "libuv", "libmicrohttpd", "jansson", "nettle"):
        found[name] = subprocess.run(["pkg-config", "--modversion", name], capture_output=True, text=True,
                                     check=True).stdout.strip()
    return found


def unusable():
    """Why nothing can be counted or compared here, or None."""
    for argv in (["valgrind", "-q", "--tool=none", "true"], ["strace", "-o", os.devnull, "true"]):
        try:
            works = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0
        except OSError:
            works = False
        if not works:
            return f"{argv[0]} is not here, or may not work"
    return None


def other(build, figures):
    """What differs from where the figures were taken, or None."""
    here = versions(build)
    differ = [f"{name} {figures['versions'].get(name)!r}, here {here[name]!r}"
              for name in here if here[name] != figures["versions"].get(name)]
    return "; ".join(differ) or None


def off(now, then):
    return [name for name in ASSERTED if abs(now[name] / then[name] - 1) > ROOM]


def tell(found, figures):
    """A line for each figure; how many are off."""
    n = bad = 0
    for turns, now in found.items():
        then = figures[str(turns)]
        for name in ASSERTED:
            good, n = name not in off(now, then), n + 1
            bad += not good
            print(f"{'ok' if good else 'not ok'} {n} - {name} a turn, runs of {turns}: {now[name]:,.1f}, "
                  f"figure {then[name]:,.1f} ({100 * now[name] / then[name] - 100:+.1f} %)")
            for call in sorted({*now, *then}) if not good and name == "calls" else []:
                before, after = then.get(call, 0), now.get(call, 0)
                if call.startswith("calls ") and abs(after - before) > 0.2:
                    print(f"#   {call[6:]} {before:.2f} -> {after:.2f}")
    return bad


@contextlib.contextmanager
def busy(n):
    """So many loops at work meanwhile."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def spread(rounds):
    """How far apart what is found lies: of one round, and of three."""
    print("| runs of | count | least | most | apart | of three rounds |\n|---|---|---|---|---|---|")
    for turns in RUNS:
        for name in ASSERTED:
            one, three = ([a_turn(rounds[i:i + n])[turns][name] for i in range(max(1, len(rounds) - n + 1))] for n in (1, LIVES))
            print(f"| {turns} | {name} | {min(one):,.1f} | {max(one):,.1f} | {100 * (max(one) / min(one) - 1):.2f} % "
                  f"| {100 * (max(three) / min(three) - 1):.2f} % |", flush=True)


def built(folder):
    """An argument: a build with the daemon and the mock in it."""
    if not all(os.access(os.path.join(folder, p), os.X_OK) for p in ("src/gateway/avad", "test/mock/mock-models")):
        raise argparse.ArgumentTypeError(f"{folder} is no build with avad and mock-models: `./dev bench turns` makes one")
    return os.path.abspath(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=built)
    parser.add_argument("--write", action="store_true", help="make the figures of what is counted now")
    parser.add_argument("--load", type=int, default=0, help="busy loops beside it")
    parser.add_argument("--times", type=int, default=0, help="how far apart so many rounds lie")
    parser.add_argument("--profile", help="a folder for what callgrind wrote")
    args = parser.parse_args()
    build = args.build
    with open(FIGURES) as f:
        figures = json.load(f)
    compared = not args.write and args.times == 0
    why = unusable() or (compared and other(build, figures))
    if why:
        print(f"skipped: {why}")
        return SKIPPED
    with busy(args.load):
        rounds = [live(build, profile=args.profile) for _ in range(args.times or (LIVES if args.write else 1))]
        while compared and len(rounds) < LIVES and any(
                off(now, figures["turns"][str(turns)]) for turns, now in a_turn(rounds).items()):
            rounds.append(live(build))
    if args.times:
        spread(rounds)
    if args.write:
        with open(FIGURES, "w") as f:
            turns = {t: {name: v for name, v in now.items() if v} for t, now in a_turn(rounds).items()}
            json.dump({"versions": versions(build), "turns": turns}, f, indent=1)
            f.write("\n")
    bad = tell(a_turn(rounds), figures["turns"]) if compared else 0
    if bad:
        print(f"# {bad} are off. A gain, or a price that is meant, makes new figures in the same commit:\n"
              f"#   ninja -C {build} {' '.join(NEEDED)} && bench/turns_gate.py {build} --write")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
