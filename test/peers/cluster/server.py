"""A server in trouble: its disk is full, it takes no more connections, and somebody looks at an old state of its
tables for as long as runs are under way. Runs wait and go on; nothing is lost."""

import os
import sys
import time

sys.dont_write_bytecode = True
import world  # noqa: E402
from world import LEASE, World, until  # noqa: E402

RUNS = 12
PATIENCE = 60  # seconds until runs at work have written something
END = "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'ava'"
SMALL = 2 << 20  # bytes of a table that has a row a machine or a run


def complains(w, at):
    """Has the server said behind that place of its log that there is no room?"""
    with open(w.database.log, "rb") as f:
        f.seek(at)
        return b"No space left" in f.read()


def full(w, n):
    runs = w.spawn(RUNS)
    w.wait_asked(runs)
    at, end = os.path.getsize(w.database.log), time.monotonic() + PATIENCE
    w.database.fill(True)
    while not (complained := complains(w, at)) and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep((1, LEASE + 3)[n % 2])  # what is played is that it is full so long
    w.database.fill(False)
    if w.database.process.poll() is not None:
        w.database.start()
    w.wait_over(runs)
    return ([] if complained else ["the server never missed room"]) + w.judge()


def crowded(w, n):
    runs = w.spawn(RUNS)
    w.wait_asked(runs)
    held, ended = [w.database.session()], 0
    end = time.monotonic() + (1, LEASE + 3)[n % 2]
    while time.monotonic() < end:
        ended += int(ask(held[0], END))
        while more := w.database.session():
            held.append(more)
    for one in held:
        one.stdin.close()
        one.wait()
    print(f"# {len(held)} connections of others, {ended} of machines were ended", flush=True)
    w.wait_over(runs)
    return ([] if ended >= len(w.machines) else ["the machines were not kept out"]) + w.judge()


def ask(session, text):
    """One answer of an open connection."""
    session.stdin.write(f"{text};\n")
    session.stdin.flush()
    return session.stdout.readline()


def snapshot(w, _):
    look = w.database.session("begin isolation level repeatable read", "select 1 from ava_run where false")
    runs = w.spawn(3 * RUNS)
    w.wait_over(runs)
    sizes = {r["name"]: r["bytes"] for r in w.database.rows(
        "select relname as name, pg_total_relation_size(relid) as bytes from pg_stat_user_tables")}
    look.stdin.close()
    look.wait()
    wrong = [f"{name} has {sizes[name]} bytes" for name in ("ava_run", "ava_node") if sizes[name] > SMALL]
    return wrong + w.judge()


def played(play, database="plain"):
    with World(database=database) as w:
        wrong = []
        for n in range(world.rounds()):
            until(30, lambda: all(m.api("GET", "/api/v1/cluster")[1]["cluster"]["lease_seconds"] for m in w.machines),
                  "all machines are members")
            wrong += play(w, n)
        return wrong


def disk_is_full():
    return played(full, "small")


def connections_are_used_up():
    return played(crowded)


def snapshot_is_held():
    return played(snapshot)


if __name__ == "__main__":
    sys.exit(world.main(disk_is_full, connections_are_used_up, snapshot_is_held))
