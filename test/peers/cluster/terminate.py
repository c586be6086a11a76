"""pg_terminate_backend of every connection of the machines, again and again while runs are under way: at any
moment of a commit, whose outcome is then unknown. Nothing is lost, nothing stands twice."""

import random
import sys
import time

sys.dont_write_bytecode = True
import world  # noqa: E402
from world import World, until  # noqa: E402

RUNS = 20
END = """select count(pg_terminate_backend(pid)) from pg_stat_activity
where backend_type = 'client backend' and datname = 'ava' and pid <> pg_backend_pid()"""


def play(w, seed):
    rng = random.Random(seed)
    runs = w.spawn(RUNS)
    w.wait_asked(runs, 1)
    ended, end = 0, time.monotonic() + 15

    def over():
        nonlocal ended
        ended += int(w.database.sql(END))
        time.sleep(0.3 * rng.random())
        return time.monotonic() > end

    until(60, over, "connections are ended")
    print(f"# {ended} connections ended, seed {seed}", flush=True)
    w.wait_over(runs)
    return ([] if ended > RUNS else [f"only {ended} connections were there to end"]) + w.judge()


def terminate():
    with World() as w:
        return [s for _ in range(world.rounds()) for s in play(w, random.SystemRandom().randrange(1 << 32))]


if __name__ == "__main__":
    sys.exit(world.main(terminate))
