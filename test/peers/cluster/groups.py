"""A chain of three runs, and three runs side by side, on a machine that is killed
while the second step is at work; then the machine that took them, while the third is. A group goes on as a whole on one
machine, each step begins once, and all is found."""

import re
import sys

sys.dont_write_bytecode = True
import world  # noqa: E402
from postgres import until  # noqa: E402
from world import World  # noqa: E402

STEPS = 3


def post(w, machine, name, **more):
    """(the group's id, its markers)"""
    markers = [f"{name}-{i}" for i in range(1, STEPS + 1)]
    status, answer = machine.api("POST", "/api/v1/groups", {
        "runs": [w.task(marker) for marker in markers], "confirmed": True, "timeout": 600, **more})
    assert status == 201, f"{machine.name} refused a group: {status} {answer}"
    return answer["group_id"], markers


def runs_of(w, group):
    """Its rows of ava_run, in the order in which they were begun."""
    return w.database.rows(f"""select run, node, state, moves from ava_run join ava_spec using (run)
        where grp = '{group}' order by created, run""")


def owner(w, group):
    nodes = {row["node"] for row in runs_of(w, group)}
    assert len(nodes) == 1, f"{group} is on {len(nodes)} machines"
    return next(m for m in w.machines if m.node in nodes)


def step_begins(w, marker):
    until(world.PATIENCE, lambda: w.model.requests()[marker], f"{marker} begins")


def taken(w, group, machine):
    """By one other machine, all of it."""
    def moved():
        nodes = {row["node"] for row in runs_of(w, group)}
        return machine.node not in nodes and nodes

    assert len(until(60, moved, f"others take {group}")) == 1, f"{group} is on two machines"


def ended(w, group):
    machine = owner(w, group)

    def over():
        status, answer = machine.api("GET", f"/api/v1/groups/{group}")
        return status == 200 and answer["status"] == "ended" and answer

    return until(2 * world.PATIENCE, over, f"{group} ends on {machine.name}")


def judge_shared(machine, runs):
    """All that is wrong with what the last step of a chain was told of the group's money and time."""
    last = runs[-1]["subagent_id"]
    cost = float(re.findall(rb'"groupCostCents":([0-9.]+)', machine.log(last))[-1])
    used = int(re.findall(rb'"groupMs":([0-9]+)', machine.log(last))[-1])
    all_cost = sum(run["cost_cents"] for run in runs)
    before = sum(run["elapsed_seconds"] for run in runs[:-1]) * 1000
    wrong = []
    if abs(cost - all_cost) > 0.01:
        wrong.append(f"the chain has cost {cost} cents, and its runs {all_cost}")
    if not 0.9 * before < used < 600000:
        wrong.append(f"the chain has used {used} ms, and its first steps {before}")
    return wrong


def play(w, n):
    first = w.machines[n % len(w.machines)]
    chain, steps = post(w, first, f"chain{n}", chain=True)
    group, others = post(w, first, f"beside{n}")
    for step in steps[1:]:
        step_begins(w, step)
        victim = owner(w, chain)
        victim.kill()
        taken(w, chain, victim)
        victim.start()
    wrong = []
    for each, markers in ((chain, steps), (group, others)):
        answer = ended(w, each)
        ids = [run["subagent_id"] for run in answer["runs"]]
        if answer["succeeded"] != STEPS or len(ids) != STEPS:
            wrong.append(f"{answer['succeeded']} of {len(ids)} runs of {each} succeeded")
        w.accepted.update(zip(ids, markers))
        if [row["run"] for row in runs_of(w, each)] != ids and each == chain:
            wrong.append(f"{each} has the runs {ids}, and the database has others")
        if each == chain:
            wrong += judge_shared(owner(w, each), answer["runs"])
        print(f"# {each}: {answer['mode']}, moved {[row['moves'] for row in runs_of(w, each)]} times", flush=True)
    w.wait_over(list(w.accepted))
    return wrong + w.judge()


def groups():
    with World() as w:
        return [s for n in range(world.rounds()) for s in play(w, n)]


if __name__ == "__main__":
    sys.exit(world.main(groups))
