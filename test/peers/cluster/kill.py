"""kill -9 of one machine of three with 20 runs under way: the others take what it had in time, every run
ends, and the machine comes back. A round each, a machine in turn."""

import os
import sys

sys.dont_write_bytecode = True
import world  # noqa: E402
from world import GRACE, LEASE, POLL, World  # noqa: E402

RUNS = 20


def play(w, rounds):
    wrong = []
    for n in range(rounds):
        victim = w.machines[n % len(w.machines)]
        runs = w.spawn(RUNS)
        w.wait_asked(runs)
        had = w.of(victim, runs)
        victim.kill()
        if not had:
            wrong.append(f"round {n}: {victim.name} had nothing when it was killed")
        took = w.wait_taken(victim, had, 60)
        print(f"# {len(had)} runs of {victim.name} were taken {took:.1f} s after its kill", flush=True)
        if took > LEASE + GRACE + POLL + 2 + os.getloadavg()[0]:  # programs wait for a processor that is busy
            wrong.append(f"round {n}: the others took {took:.1f} s")
        w.wait_over(runs)
        victim.start()
        wrong += w.judge()
    return wrong


def kill():
    with World() as w:
        return play(w, world.rounds())


if __name__ == "__main__":
    sys.exit(world.main(kill))
