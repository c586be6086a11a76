"""The walsender stands still, so that the standby does not have what the primary acknowledged; then the
primary is lost and the standby promoted. Every machine lives: each sends again what the new primary lacks,
and nothing is lost. A world a round: what is lost is lost for good."""

import sys

sys.dont_write_bytecode = True
import world  # noqa: E402
from world import World, until  # noqa: E402

RUNS = 12


def heads(server):
    return {r["run"]: r["head"] for r in server.rows("select run, head from ava_run")}


def replayed(server):
    return server.sql("select pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn()") == "t"


def play():
    with World(database="standby") as w:
        runs = w.spawn(RUNS)
        w.wait_asked(runs)
        w.stop_walsender()
        runs += w.spawn(3)  # of which the standby knows nothing
        w.wait_asked(runs, 4)
        before = heads(w.database)
        w.database.lose()
        until(20, lambda: replayed(w.standby), "the standby has replayed what it has")
        after = heads(w.standby)  # nobody can write to it yet
        w.failover()
        behind = [r for r in runs if after.get(r, -1) < before[r]]
        print(f"# {len(behind)} of {len(runs)} heads went back, {len(runs) - len(after)} runs were not there", flush=True)
        w.wait_over(runs)
        w.wait_over(w.spawn(3))
        return ([] if behind else ["no head went back: nothing was played"]) + w.judge()


def failover():
    return [s for _ in range(world.rounds()) for s in play()]


if __name__ == "__main__":
    sys.exit(world.main(failover))
