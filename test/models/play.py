#!/usr/bin/env python3
"""What model services really send, through the whole of ava: bytes in, the run's end, the requests and
the tokens booked out.

    play.py [-v] [PATTERN...]     rows whose name a pattern fits (shell patterns); -v: what each run printed, and its requests

Rows stand in rows_*.py beside this file. All of them share one daemon and one service, side by side, but those
that need a world of their own. A daemon's clock (test/unit/moved_clock.c) goes FASTER times as fast as the machine's: waits between
attempts take no time here. Under a sanitiser, which must be loaded first, it goes as the machine's does. Prints `ok N - NAME` lines as the other suites do."""

import argparse
import fnmatch
import glob
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from service import Service  # noqa: E402

AT_ONCE = 12
FASTER = 16
TICK = 0.01  # seconds
PATIENCE = 200  # seconds for one run
BUILDS = [os.path.join(HERE, "../..", build) for build in ("build-check/gcc/src", "build/src")]
AVA = os.environ.get("AVA") or next((b + "/cli/ava" for b in BUILDS if os.path.exists(b + "/cli/ava")), "ava")
AVAD = os.environ.get("AVAD") or os.path.join(os.path.dirname(AVA), "../gateway/avad")


class Row:
    """One input and its right value.

    script    function of the number of the request and the request (service.py)
    on        service and model; without a "/" the model is the row's name
    args      more of `ava run`'s arguments
    end       "STATUS/STOP_REASON" of the result
    requests  how many the service saw; a number, or (least, most)
    tokens    booked, cents: charged; the same
    summary, error, says   words that the summary, the error, or all that was printed holds; says_not: does not
    result    function of the result (the JSON of `ava run --json`): what is wrong with it; None: nothing
    sent      function of the requests: the same
    own       a world of its own (daemon, service, settings `env`, `gets` of Service)
    timed     the machine's clock, where the service's answers take their time; implies own
    play      function of the world and the row, in place of one `ava run`: lists what is wrong; implies own"""

    def __init__(self, name, script, on="local", args=(), end="success/submitted", requests=None, tokens=None, cents=None,
                 summary=None, error=None, says=None, says_not=None, result=None, sent=None, role="code_reviewer",
                 own=False, env=None, gets=None, play=None, timed=False, fast=False):
        self.name, self.script, self.on, self.args, self.end = name, script, on, list(args), end
        self.requests, self.tokens, self.cents = requests, tokens, cents
        self.summary, self.error, self.says, self.says_not = summary, error, says, says_not
        self.result, self.sent, self.role = result, sent, role
        self.own, self.env, self.gets, self.play = own or play or env or gets or timed, env or {}, gets, play
        self.timed, self.fast = timed, fast  # played by the machine's clock; only by the one that is moved

    def model(self):
        return self.on if "/" in self.on else f"{self.on}/{self.name}"


def clock():
    """The library with the moved clock; None: it cannot be had."""
    if os.environ.get("AVA_SANITIZER"):
        return None
    source, out = os.path.join(HERE, "../unit/moved_clock.c"), os.path.join(tempfile.mkdtemp(prefix="ava-clock-"), "clock.so")
    done = subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", out, source], check=False)
    return out if done.returncode == 0 else None


class World:
    """A data root with its daemon, and a service that every provider is found at."""

    def __init__(self, rows, env=(), gets=None, timed=False):
        self.root = tempfile.mkdtemp(prefix="ava-rows-")
        self.service = Service(rows, gets)
        url, t = self.service.url, self.root
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("AVA", "ANTHROPIC_", "OPENAI_", "OPENROUTER_"))}
        self.env.update({
            "HOME": t + "/home", "AVA_DATA_ROOT": t + "/data", "XDG_CONFIG_HOME": t + "/config",
            "XDG_DATA_HOME": t + "/share", "XDG_STATE_HOME": t + "/state", "XDG_CACHE_HOME": t + "/cache",
            "AVA_AVAD": os.path.abspath(AVAD), "AVA_RUNS_MAX": "400", "LC_ALL": "C.UTF-8", "NO_COLOR": "1",
            "AVA_LOCAL_BASE_URL": url + "/v1", "OPENAI_BASE_URL": url + "/v1", "ANTHROPIC_BASE_URL": url,
            "OPENROUTER_BASE_URL": url + "/api/v1", "OPENAI_API_KEY": "sk-case0000000000000000001",
            "ANTHROPIC_API_KEY": "sk-ant-case000000000000001", "OPENROUTER_API_KEY": "sk-or-case0000000000000000001"})
        self.env.update({k: v.replace("URL", url) for k, v in dict(env).items()})
        for name in ("home", "config", "share", "state", "cache", "work"):
            os.mkdir(f"{t}/{name}", 0o700)
        self.work, self.hands = t + "/work", t + "/clock"
        if CLOCK and not timed:
            self.env.update({"LD_PRELOAD": CLOCK, "AVA_TEST_CLOCK": self.hands})
            self.began = time.monotonic()
            self.move_clock()
            threading.Thread(target=self.keep_moving, daemon=True).start()
        for name in ("a.txt", "b.txt"):
            self.file(name, "hello\nworld\n" * 20)
        for i in range(8):
            self.file(f"big{i}.txt", "".join(f"line {j} of file {i}, some words that fill it\n" for j in range(800)))

    def move_clock(self):
        ahead = int((time.monotonic() - self.began) * (FASTER - 1) * 1000)
        os.symlink(f"{ahead} {ahead}", self.hands + "-next")
        os.rename(self.hands + "-next", self.hands)

    def keep_moving(self):
        try:
            while True:
                time.sleep(TICK)
                self.move_clock()
        except OSError:
            pass  # the world is gone

    def file(self, name, words):
        with open(f"{self.work}/{name}", "w", encoding="utf-8") as f:
            f.write(words)

    def ava(self, *words, **more):
        return subprocess.run([AVA, *words], cwd=self.work, env=self.env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=PATIENCE, **more)

    def run(self, row, *more, task="Look at the folder."):
        """A run of the row: what was printed and its result ({}: none)."""
        r = self.ava("run", f"{task} [row {row.name}]", "--role", row.role, "--model", row.model(), "--yes", "--json",
                     *row.args, *more)
        try:
            return r, json.loads(r.stdout)
        except ValueError:
            return r, {}

    def seen(self, row):
        return self.service.seen.get(row.name, [])

    def end_daemon(self, how=signal.SIGTERM):
        """The next command starts another. One that has ended and that nobody reaps has ended."""
        try:
            with open(self.root + "/data/ava.lock", encoding="ascii") as f:
                pid = int(f.read())
            os.kill(pid, how)
            end = time.monotonic() + 20
            while time.monotonic() < end:
                with open(f"/proc/{pid}/stat", encoding="ascii") as f:
                    if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                        break
                time.sleep(0.02)
        except (OSError, ValueError):
            pass

    def close(self):
        """The daemon ends before its folder goes."""
        self.end_daemon()
        shutil.rmtree(self.root, ignore_errors=True)


CLOCK = clock()


def holds(value, want):
    """A number is the value, or in (least, most)."""
    return want is None or (want[0] <= value <= want[1] if isinstance(want, tuple) else value == want)


def has(words, text):
    return all(w in (text or "") for w in ([words] if isinstance(words, str) else words or ()))


def judge(row, printed, result, seen):
    wrong = []
    end = f"{result.get('status')}/{result.get('stop_reason')}"
    if not fnmatch.fnmatch(end, row.end):
        wrong.append(f"ended {end}, not {row.end}")
    for what, value, want in (("requests", len(seen), row.requests), ("tokens", result.get("tokens_used", -1), row.tokens),
                              ("cents", result.get("cost_cents", -1), row.cents)):
        if not holds(value, want):
            wrong.append(f"{what}: {value}, not {want}")
    for what, value, want in (("summary", result.get("summary"), row.summary), ("error", result.get("error"), row.error),
                              ("printed", printed.stdout + printed.stderr, row.says)):
        if not has(want, value):
            wrong.append(f"{what} has not {want!r}: {value!r}")
    for word in [row.says_not] if isinstance(row.says_not, str) else row.says_not or ():
        if word in printed.stdout + printed.stderr:
            wrong.append(f"printed has {word!r}")
    for judge_more, value in ((row.result, result), (row.sent, seen)):
        more = judge_more(value) if judge_more else None
        if more:
            wrong.append(str(more))
    return wrong


def play_row(row, shared, verbose):
    if row.fast and not CLOCK:
        return None
    world = World([row], row.env, row.gets, row.timed) if row.own else shared
    try:
        if row.play:
            return row.play(world, row)
        printed, result = world.run(row)
        wrong = judge(row, printed, result, world.seen(row))
        if verbose or (wrong and not result):
            wrong.append(printed.stdout + printed.stderr)
        if verbose:
            wrong += [r.raw.decode("utf-8", "replace")[-1500:] for r in world.seen(row)]
        return wrong
    except Exception as e:  # a row that cannot be played is told as one that failed
        return [f"{type(e).__name__}: {e}"]
    finally:
        if row.own:
            world.close()


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("patterns", nargs="*")
    p.add_argument("-v", action="store_true")
    a = p.parse_args()
    rows = []
    for path in sorted(glob.glob(HERE + "/rows_*.py")):
        rows += importlib.import_module(os.path.basename(path)[:-3]).ROWS
    names = [row.name for row in rows]
    assert len(set(names)) == len(names), [n for n in names if names.count(n) > 1]
    assert all(re.fullmatch(r"[\w.-]+", n) for n in names), names
    if a.patterns:
        rows = [r for r in rows if any(fnmatch.fnmatch(r.name, p) for p in a.patterns)]
    world, failed = World(rows), 0
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for n, (row, wrong) in enumerate(zip(rows, pool.map(lambda r: play_row(r, world, a.v), rows)), 1):
                bad = [w for w in wrong or () if w] if not a.v else wrong
                failed += bool(bad)
                print("not ok" if bad else "ok", n, "-", row.name, "# SKIP no moved clock" if wrong is None else "", flush=True)
                for line in bad or ():
                    print("# " + line.replace("\n", "\n# ")[:6000], flush=True)
    finally:
        world.close()
        if CLOCK:
            shutil.rmtree(os.path.dirname(CLOCK))
    print(f"1..{len(rows)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
