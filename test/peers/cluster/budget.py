"""A day's budget of three machines that pays a part of what their runs want, with machines killed and started
again at random. What the model served passes the budget by no more than estimates of calls in flight were wrong,
nearly all of it could be used, and the database's account never says less than was served."""

import random
import sys
import time

sys.dont_write_bytecode = True
import world  # noqa: E402
from postgres import until  # noqa: E402
from world import World  # noqa: E402

RUNS, KILLS, CENTS = 64, 2, 300
OUTPUT, MOST = 1500, 2000  # tokens of a reply, and that a call may cost
MICRO = 10000  # of a cent
WRONG = 0.002  # of the budget, by which estimates of inputs may be wrong
CONFIG = f"""models:
  list:
    - id: anthropic/claude-haiku-4-5
      max_output: {MOST}
"""


def noon():
    """A zone in which no midnight comes near."""
    return f"X{time.gmtime().tm_hour - 12:+d}"


def account(w):
    """(cap, used) of the day, in micro-USD."""
    row = w.database.rows("""select b.cap, b.lent - coalesce((select sum(micro - used) from ava_loan l
        where l.scope = b.scope), 0) as used from ava_budget b""")
    return (row[0]["cap"], row[0]["used"]) if row else (0, 0)


def served(w):
    return w.model.stats()["costMicroUsd"]


def play(w, n, chance):
    runs = []
    for kill in range(KILLS):
        runs += w.spawn(RUNS // KILLS)
        goal = CENTS * MICRO * (kill + chance.random()) / (KILLS + 1)
        until(world.PATIENCE, lambda: served(w) > goal, "some of the budget is used")
        victim = chance.choice(w.machines)
        victim.kill()
        if chance.random() < 0.5:  # else it is back before anybody has ended its lease
            until(60, lambda: not w.of(victim, runs), f"others take the runs of {victim.name}")
        victim.start()
    w.wait_over(runs, 3 * world.PATIENCE)
    spent, (cap, used) = served(w), account(w)
    ends = [w.owner(run).api("GET", f"/api/v1/runs/{run}/result")[1] for run in runs]
    statuses = {status: sum(e["status"] == status for e in ends) for status in {e["status"] for e in ends}}
    print(f"# round {n}: {spent / MICRO:.1f} of {CENTS} cents were served, {used / MICRO:.1f} counted; {statuses}", flush=True)
    wrong = w.judge()
    if cap != CENTS * MICRO:
        wrong.append(f"the cap is {cap}")
    if spent > cap * (1 + WRONG):
        wrong.append(f"{spent} was served, of a budget of {cap}")
    if spent < 0.9 * cap:
        wrong.append(f"only {spent} was served, of a budget of {cap}")
    if used < spent:
        wrong.append(f"{spent} was served, and {used} is counted")
    if set(statuses) - {"success"} != {"cost_exceeded"}:
        wrong.append(f"runs ended as {statuses}")
    wrong += [f"a run ended as cost_exceeded, and says {e['error']}" for e in ends
              if e["status"] == "cost_exceeded" and "cents for all machines" not in e["error"]]
    health = w.machines[0].api("GET", "/api/v1/health")[1]["today"]
    if abs(health["budget_used_cents"] - used / MICRO) > 0.02 * CENTS or health["budget_cents"] != CENTS:
        wrong.append(f"{w.machines[0].name} says {health}")
    return [f"round {n}: {s}" for s in wrong]


def rounds(play):
    """What is wrong after play(world, number of the round, chance), in a world with a day's budget each time."""
    wrong, chance = [], random.Random()
    for n in range(world.rounds()):
        seed = random.randrange(1 << 32)
        print(f"# seed {seed}", flush=True)
        chance.seed(seed)
        with World(settings={"AVA_BUDGET_DAY_CENTS": str(CENTS), "TZ": noon()}, config=CONFIG,
                   words=[f"output={OUTPUT}"]) as w:
            wrong += play(w, n, chance)
    return wrong


def budget():
    return rounds(play)


if __name__ == "__main__":
    sys.exit(world.main(budget))
