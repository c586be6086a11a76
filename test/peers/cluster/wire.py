"""A database that is far away, over a bad line: 200 ms there and back, answers that come seconds later, and
connections that are reset in the middle of a commit or of its answer. Nothing is lost, nothing stands twice."""

import sys

sys.dont_write_bytecode = True
import world  # noqa: E402
from world import World  # noqa: E402

RUNS = 12
LEAST = 5  # resets of a round, else nothing was played


def play(w):
    before, runs = w.wire.resets, []
    while w.wire.resets - before < LEAST:
        more = [r for r in (w.ask(m, f"w{len(w.accepted)}-{i}") for m in w.machines for i in range(RUNS // 3)) if r[0] == 201]
        runs += [answer["subagent_id"] for _, answer in more]
        w.wait_over(runs)
    print(f"# {w.wire.resets - before} resets, {len(runs)} runs", flush=True)
    return w.judge()


def wire():
    with World(database="wire") as w:
        return [s for _ in range(world.rounds()) for s in play(w)]


if __name__ == "__main__":
    sys.exit(world.main(wire))
