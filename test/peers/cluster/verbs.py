"""Messages and cancels for runs of a machine that dies: before it has heard of them, and after it has done them
but cannot say so. The machine that takes the runs does what is left, each once."""

import json
import signal
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
import world  # noqa: E402
from world import World, until  # noqa: E402

RUNS = 6


class Lock:
    """Nobody writes to ava_inbox, and everybody reads it."""

    def __init__(self, database):
        self.process = subprocess.Popen(database.client("ava"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.process.stdin.write("begin; lock table ava_inbox in share mode; select 'locked';\n")
        self.process.stdin.flush()
        until(30, lambda: self.process.stdout.readline().strip() == "locked", "the inbox is locked")

    def release(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Asked:
    """Requests to a machine, each on a connection of its own."""

    def __init__(self, machine):
        self.machine, self.threads, self.answers = machine, [], {}

    def post(self, path, body):
        def ask():
            self.answers[path] = self.machine.api("POST", path, body, seconds=60)

        self.threads.append(threading.Thread(target=ask))
        self.threads[-1].start()

    def wait(self):
        for thread in self.threads:
            thread.join()


def events(machine, run, kind):
    return [e for e in map(json.loads, machine.log(run).splitlines()) if e["eventType"] == kind]


def queued(machine, run):
    return [e for e in events(machine, run, "Steering") if e["content"].get("outcome") == "queued"]


def play(w, victim, door, heard):
    """`heard`: it does them before it dies, and its answers do not get out."""
    runs = w.spawn(RUNS, [victim])
    w.wait_asked(runs)
    steered, stopped = runs[:RUNS // 2], runs[RUNS // 2:]
    asked, wrong = Asked(door), []
    victim.signal(signal.SIGSTOP)
    for run in steered:
        request = {} if run == steered[0] else {"request_id": f"to-{run}"}
        asked.post(f"/api/v1/runs/{run}/steer", {"text": f"Mind {run}.", **request})
    for run in stopped:
        asked.post(f"/api/v1/runs/{run}/cancel", {})
    until(30, lambda: len(w.database.rows("select id from ava_inbox where status is null")) == RUNS, "all are sent")
    if heard:
        lock = Lock(w.database)
        victim.signal(signal.SIGCONT)
        until(30, lambda: all(queued(victim, r) for r in steered) and
              all(events(victim, r, "SubagentComplete") for r in stopped), f"{victim.name} does them")
    victim.kill()
    if heard:
        lock.release()
    w.wait_taken(victim, runs, 60)
    victim.start()
    w.wait_over(runs)
    asked.wait()
    for path, (status, answer) in sorted(asked.answers.items()):
        if status == 503 and "kept" not in answer["error"]["message"] or status not in (200, 503):
            wrong.append(f"{path}: {status} {answer}")
    until(30, lambda: not w.database.rows("select id from ava_inbox where status is null"), "all are answered")
    for run in runs:
        if w.owner(run) is victim and not heard:
            wrong.append(f"{run} was not taken")
    for run in steered:
        told = queued(w.owner(run), run)
        if [e["content"].get("text") for e in told] != [f"Mind {run}."]:
            wrong.append(f"{run} was told {told}")
        for machine in (door, w.owner(run)) if run != steered[0] else ():
            status, answer = machine.api("POST", f"/api/v1/runs/{run}/steer", {"text": "again", "request_id": f"to-{run}"})
            if status != 200 or not told or answer["steer_id"] != told[0]["content"]["steerId"]:
                wrong.append(f"{run}: the same request at {machine.name} hears {status} {answer}")
    for run in stopped:
        ends = events(w.owner(run), run, "SubagentComplete")
        if [e["content"]["status"] for e in ends] != ["cancelled"]:
            wrong.append(f"{run} ended as {[e['content']['status'] for e in ends]}")
    return wrong + w.judge()


def verbs():
    with World() as w:
        wrong = []
        for n in range(world.rounds()):
            for heard in (False, True):
                victim, door = w.machines[n % 3], w.machines[(n + 1) % 3]
                wrong += [f"round {n}, {'heard' if heard else 'not heard'}: {s}" for s in play(w, victim, door, heard)]
        return wrong


if __name__ == "__main__":
    sys.exit(world.main(verbs))
