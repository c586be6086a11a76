"""Runs are moved between machines that work, all at once, while the machine that has them is killed, or the one
that wants them, or the database for a moment: each is on one machine at a time, and ends once. A round each."""

import concurrent.futures
import http.client
import sys
import time

sys.dont_write_bytecode = True
import world  # noqa: E402
from world import LEASE, World  # noqa: E402

RUNS = 8


def move(machine, run):
    """(status, answer) of its daemon; 0 where that went away."""
    try:
        return machine.api("POST", f"/api/v1/runs/{run}/move", {}, 60)
    except (OSError, ValueError, http.client.HTTPException):
        return 0, {}


def moved(w, runs, to, meanwhile):
    """The answers of moving all of them there; `meanwhile`: what happens then."""
    with concurrent.futures.ThreadPoolExecutor(len(runs)) as pool:
        calls = [pool.submit(move, to, run) for run in runs]
        meanwhile()
        return [call.result() for call in calls]


def quiet(w, n):
    """Nothing goes wrong: each comes."""
    old, new = w.machines[n % 3], w.machines[(n + 1) % 3]
    runs = w.spawn(RUNS, [old])
    w.wait_asked(runs)
    answers = moved(w, runs, new, lambda: None)
    came = sum(status == 200 for status, _ in answers)
    there = len(w.of(new, runs))
    print(f"# {came} of {RUNS} came, {there} go on there", flush=True)
    w.wait_over(runs)
    return [f"{r}: {s} {a}" for r, (s, a) in zip(runs, answers) if s not in (200, 409)] + (
        [] if came >= RUNS / 2 else [f"only {came} of {RUNS} runs came"])


def killed(w, n, who, pause):
    """`who`: 0 the machine that has them, 1 the one that wants them."""
    pair = w.machines[n % 3], w.machines[(n + 1) % 3]
    runs = w.spawn(RUNS, [pair[0]])
    w.wait_asked(runs)

    def kill():
        time.sleep(pause)  # somewhere between the wish and the end of the way
        pair[who].kill()

    moved(w, runs, pair[1], kill)
    if who:
        pair[1].start()
    w.wait_over(runs)
    if not who:
        pair[0].start()
    print(f"# {('its machine', 'who wants it')[who]} was killed after {pause:.2f} s: "
          f"{len([r for r in runs if w.owner(r) == pair[1]])} of {RUNS} ended at the new one", flush=True)
    return []


def stopped(w, n):
    """The database goes in the middle, and comes back."""
    old, new = w.machines[n % 3], w.machines[(n + 1) % 3]
    runs = w.spawn(RUNS, [old])
    w.wait_asked(runs)

    def crash():
        time.sleep(LEASE / 6)
        w.database.kill()
        w.database.start()

    moved(w, runs, new, crash)
    w.wait_over(runs)
    return []


def play(w, n):
    wrong = quiet(w, n)
    for who in range(2):
        wrong += killed(w, n + who, who, LEASE / 3 * (0.4 + 0.2 * ((2 * n + who) % 4)))
    return wrong + stopped(w, n) + w.judge()


def moves():
    with World(words=("latency=1200",)) as w:
        return [s for n in range(world.rounds()) for s in play(w, n)]


if __name__ == "__main__":
    sys.exit(world.main(moves))
