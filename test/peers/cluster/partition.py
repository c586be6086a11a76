"""The cable of one machine is cut, in both directions or, in later rounds, in one. It reaches its model all the
time, and asks it for nothing once its lease is over; others take its runs. With the cable mended it is a member
again."""

import sys
import time

sys.dont_write_bytecode = True
import checks  # noqa: E402
import world  # noqa: E402
from world import LEASE, Missing, World, until  # noqa: E402

RUNS = 12
WAYS = ("none", "in", "out")  # that are left


def cut_off(w, victim, way):
    w.net.cable(victim.number, way != "none")
    w.net.one_way(victim.number, victim.holder, way)


def play(w, n):
    victim = w.machines[n % len(w.machines)]
    runs = w.spawn(RUNS)
    w.wait_asked(runs)
    had = w.of(victim, runs)
    cut_off(w, victim, WAYS[n % len(WAYS)])
    cut = time.monotonic() * 1000
    took = w.wait_taken(victim, had, 60)
    print(f"# {len(had)} runs of {victim.name} were taken {took:.1f} s after the cut, {WAYS[n % len(WAYS)]} left", flush=True)
    w.wait_over(runs)
    cut_off(w, victim, "both")
    wrong = [] if had else [f"round {n}: {victim.name} had nothing when it was cut off"]
    seen = w.model.requests()
    for run in had:
        wrong += checks.stray(run, seen[w.accepted[run]], victim.name, cut + LEASE * 1000)
    until(60, lambda: accepts(w, victim, n), f"{victim.name} takes runs again")
    w.wait_over(list(w.accepted))
    return wrong + w.judge()


def accepts(w, machine, n):
    """It may be starting itself again."""
    try:
        return w.ask(machine, f"back-{n}")[0] in (200, 201)
    except OSError:
        return False


def partition():
    with World() as w:
        if not w.net.hub:
            raise Missing(w.net.why)
        return [s for n in range(world.rounds()) for s in play(w, n)]


if __name__ == "__main__":
    sys.exit(world.main(partition))
