"""A machine stands still for longer than its lease and goes on (SIGSTOP, SIGCONT: a paused VM). Others have
its runs by then. It asks for nothing of them any more, nothing is doubled, and it takes new runs again."""

import signal
import sys
import time

sys.dont_write_bytecode = True
import checks  # noqa: E402
import world  # noqa: E402
from world import World, until  # noqa: E402

RUNS = 12


def play(w, n):
    victim = w.machines[n % len(w.machines)]
    runs = w.spawn(RUNS)
    w.wait_asked(runs)
    had = w.of(victim, runs)
    victim.signal(signal.SIGSTOP)
    stopped = time.monotonic() * 1000
    took = w.wait_taken(victim, had, 60)
    victim.signal(signal.SIGCONT)
    print(f"# {len(had)} runs of {victim.name} were taken {took:.1f} s after it froze", flush=True)
    w.wait_over(runs)
    until(60, victim.answers, f"{victim.name} answers again")
    wrong = [] if had else [f"round {n}: {victim.name} had nothing when it froze"]
    seen = w.model.requests()
    for run in had:
        wrong += checks.stray(run, seen[w.accepted[run]], victim.name, stopped + 50)
    w.wait_over(w.spawn(2, [victim]))
    return wrong + w.judge()


def freeze():
    with World() as w:
        return [s for n in range(world.rounds()) for s in play(w, n)]


if __name__ == "__main__":
    sys.exit(world.main(freeze))
