"""Things that happen at once: the database restarts amid verbs, moves, loans and a takeover; a machine is fenced
while its runs move and their budget is short; a run moves in the moment of its end; who asked goes away while a verb
travels. Each run ends once, is told each thing once, and the day costs what it may."""

import json
import random
import signal
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True
import world  # noqa: E402
from budget import MICRO, WRONG, account, rounds, served  # noqa: E402
from move import move, moved  # noqa: E402
from verbs import queued  # noqa: E402
from world import GRACE, LEASE, until  # noqa: E402

RUNS = 6


def restart(w, chance, most):
    """At some time within so many seconds; an orderly stop, or a crash."""
    time.sleep(chance.random() * most)
    if chance.random() < 0.5:
        w.database.kill()
    else:
        w.database.stop()
    time.sleep(chance.random())
    w.database.start()


def members(w):
    until(60, lambda: all(m.api("GET", "/api/v1/cluster")[1]["cluster"]["state"] == "member" for m in w.machines),
          "all are members")


def told(w, run, chance):
    """Tells a run something until it is heard, at any machine, always as the same request."""
    body, end = {"text": f"Mind {run}.", "request_id": f"mind-{run}"}, time.monotonic() + 60
    while time.monotonic() < end:
        status, answer = chance.choice(w.machines).api("POST", f"/api/v1/runs/{run}/steer", body, 60)
        if status == 200:
            return []
        if status != 503:
            return [f"{run} was told, and the answer is {status} {answer}"]
        time.sleep(0.2)
    return [f"{run} could not be told: {answer}"]


def amid_verbs(w, chance, old, _):
    runs = w.spawn(RUNS, [old])
    w.wait_asked(runs)
    wrong, threads = [], []
    for run in runs:
        threads.append(threading.Thread(target=lambda r=run: wrong.extend(told(w, r, random.Random(r)))))
        threads[-1].start()
    restart(w, chance, 0.5)
    for thread in threads:
        thread.join()
    w.wait_over(runs)
    for run in runs:
        texts = [e["content"].get("text") for e in queued(w.owner(run), run)]
        if texts != [f"Mind {run}."]:
            wrong.append(f"{run} was told {texts}")
    return wrong


def amid_moves(w, chance, old, new):
    runs = w.spawn(RUNS, [old])
    w.wait_asked(runs)
    moved(w, runs, new, lambda: restart(w, chance, LEASE / 2))
    w.wait_over(runs)
    return []


def amid_takes(w, chance, old, _):
    runs = w.spawn(RUNS, [old])
    w.wait_asked(runs)
    old.kill()
    time.sleep(max(LEASE + GRACE - 1.5, 0))
    restart(w, chance, 3)
    w.wait_over(runs)
    old.start()
    return []


def fenced(w, _, old, new):
    """It stands still while its runs are wanted elsewhere, until others have ended its lease."""
    runs = w.spawn(RUNS, [old])
    w.wait_asked(runs)
    moved(w, runs[:RUNS // 2], new, lambda: old.signal(signal.SIGSTOP))
    until(60, lambda: not w.of(old, runs), "others have all")
    old.signal(signal.SIGCONT)
    w.wait_over(runs)
    return []


def at_its_end(w, chance, old, new):
    """A run is wanted in the moment of its end."""
    runs, wrong = w.spawn(RUNS, [old]), []
    w.wait_asked(runs, world.TURNS)

    def ask(run):
        time.sleep(chance.random() * 1.5)
        status, answer = move(new, run)
        if status not in (200, 400, 409):
            wrong.append(f"{run}: {status} {answer}")

    threads = [threading.Thread(target=ask, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
    w.wait_over(runs)
    for thread in threads:
        thread.join()
    if w.database.rows("select * from ava_wish"):
        time.sleep(LEASE)
    return wrong + [f"a wish is left: {row}" for row in w.database.rows("select * from ava_wish")]


def gone(w, _, old, new):
    """Who asks goes away while the verb travels: it is done, once."""
    runs, wrong = w.spawn(2, [old]), []
    w.wait_asked(runs)
    old.signal(signal.SIGSTOP)
    for run in runs:
        text = f'{{"text":"Mind {run}.","request_id":"gone-{run}"}}'
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(f"{new.root}/ava.sock")
            s.sendall(f"POST /api/v1/runs/{run}/steer HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                      f"Content-Length: {len(text)}\r\n\r\n{text}".encode())
            until(10, lambda r=run: w.database.rows(f"select id from ava_inbox where run = '{r}'"), "it travels")
    old.signal(signal.SIGCONT)
    until(10, lambda: all(queued(old, r) for r in runs), "both are told")
    for run in runs:
        status, answer = new.api("POST", f"/api/v1/runs/{run}/steer", {"text": f"Mind {run}.", "request_id": f"gone-{run}"})
        if status != 200 or len(queued(old, run)) != 1:
            wrong.append(f"{run}: {status} {answer}, {len(queued(old, run))} times")
    w.wait_over(runs)
    return wrong


def recorded(w):
    """What all calls cost by the records, in micro-USD. The model serves more: it writes on for who has hung up."""
    lines = [json.loads(line) for run in w.accepted for line in w.owner(run).log(run).splitlines()]
    return sum(MICRO * e["metadata"].get("costCents", 0) for e in lines if e["eventType"] == "InferEnd")


def play(w, n, chance):
    wrong = []
    for i, act in enumerate((gone, amid_verbs, amid_moves, amid_takes, fenced, at_its_end)):
        members(w)
        old, new = w.machines[(n + i) % 3], w.machines[(n + i + 1) % 3]
        wrong += [f"{act.__name__}: {s}" for s in act(w, chance, old, new)]
        print(f"# {act.__name__}: {served(w) / MICRO:.1f} cents so far", flush=True)
    spent, says = served(w), recorded(w)
    until(10, lambda: account(w)[1] >= says - MICRO / 10, "all that records say is counted")
    cap, used = account(w)
    print(f"# round {n}: {spent / MICRO:.1f} of {cap / MICRO:.1f} cents were served, {used / MICRO:.1f} counted, "
          f"{says / MICRO:.1f} recorded", flush=True)
    if spent > cap * (1 + WRONG):
        wrong.append(f"{spent} was served, of a budget of {cap}")
    return [f"round {n}: {s}" for s in wrong + w.judge()]


def mixed():
    return rounds(play)


if __name__ == "__main__":
    sys.exit(world.main(mixed))
