"""The world of the cluster's tests is what it says: what is killed is killed, what is cut is cut, what
an asynchronous standby loses is lost. Without it the scenarios would prove nothing."""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
import network  # noqa: E402
import postgres  # noqa: E402
import world  # noqa: E402
from postgres import Missing  # noqa: E402
from world import World  # noqa: E402


def count(server):
    return int(server.sql("select count(*) from kept"))


def database():
    """What was committed outlives kill -9 of the postmaster."""
    with World(machines=0, member=False) as w:
        server = w.database
        server.sql("create table kept (n int)")
        server.sql("insert into kept select generate_series(1, 100)")
        settings = [server.sql(f"show {name}") for name in ("fsync", "synchronous_commit", "full_page_writes")]
        server.kill()
        down = server.psql("select 1").returncode != 0
        server.start()
        return ([f"settings {settings}"] if settings != ["on"] * 3 else []) + (
            [] if down else ["it answers while it is down"]) + ([] if count(server) == 100 else ["rows are lost"])


def standby():
    """A commit behind a stopped walsender is acknowledged, and lost by a failover; one before it is not."""
    with World(machines=0, database="standby", member=False) as w:
        old, new = w.database, w.standby
        old.sql("create table kept (n int); insert into kept values (1)")
        postgres.until(20, lambda: new.psql("select * from kept").stdout == "1\n", "the row arrives")
        w.stop_walsender()
        old.sql("insert into kept values (2)")
        acknowledged = count(old)
        old.lose()
        w.failover()
        timeline = w.database.sql("select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)")
        w.database.sql("insert into kept values (3)")
        got = w.database.sql("select n from kept order by n").split()
        return [f"{acknowledged} rows, then {got}, timeline {timeline}"] if (acknowledged, got, timeline) != (
            2, ["1", "3"], "00000002") else []


def bouncer():
    """It is in transaction mode: two clients that are connected have one server between them."""
    with World(machines=0, database="bouncer", member=False) as w:
        b = w.bouncer
        pids = [b.psql("select pg_backend_pid()").stdout for _ in range(2)]
        idle = subprocess.Popen([*w.database.inside, "psql", "-XAtq", postgres.url(b)], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True)
        idle.stdin.write("prepare p as select 1; select 'there';\n")
        idle.stdin.flush()
        idle.stdout.readline()
        other = b.psql("prepare p as select 1")
        idle.communicate("\n")
        whole = b.psql("begin", "create table kept (n int)", "insert into kept values (1)", "commit")
        version = b.psql("show version", database="pgbouncer").stdout.split()
        print(f"# {' '.join(version)}")
        return ([] if len(set(pids)) == 1 else [f"backends {pids}"]) + (
            [] if "already exists" in other.stderr else [f"sessions are apart: {other.stderr}"]) + (
            [] if whole.returncode == 0 and count(w.database) == 1 else [f"a transaction: {whole.stderr}"])


def reaches(w, machine):
    """Does it reach the database, from its own network?"""
    return machine.run("psql", "-XAtqc", "select 1", postgres.url(w.database) + " connect_timeout=2").stdout == "1\n"


def asks(w, machine):
    """Does it reach the model?"""
    done = machine.run("curl", "-s", "-m", "2", machine.env["ANTHROPIC_BASE_URL"] + "/local/health")
    return done.returncode == 0


def partition():
    """A machine that is cut off reaches no database, and its model; the others do; and back."""
    with World(machines=2, member=False) as w:
        if not w.net.hub:
            raise Missing(w.net.why)
        one, two = w.machines
        seen = [(reaches(w, one), reaches(w, two))]
        w.net.cable(1, False)
        seen += [(reaches(w, one), reaches(w, two)), (asks(w, one), asks(w, two))]
        w.net.cable(1, True)
        postgres.until(20, lambda: reaches(w, one), "the cable is mended")
        names = [m.run("hostname").stdout.strip() for m in w.machines]
        alone = network.alone_in(one.holder)
        return [] if seen == [(True, True), (False, True), (True, True)] and names == ["m1", "m2"] and alone else [
            f"{seen} {names} {alone}"]


def machines():
    """Three plain daemons: runs end on each, through a kill and a freeze, and all that can be checked without
    a cluster holds; the model knows which machine asked."""
    with World(database="", member=False) as w:
        runs = w.spawn(6)
        w.wait_asked(runs)
        one, two, _ = w.machines
        one.kill()
        one.start()
        two.signal(world.signal.SIGSTOP)
        marker = w.accepted[runs[1]]
        before = len(w.model.requests()[marker])
        w.wait_asked(runs[:1], world.TURNS)
        frozen = len(w.model.requests()[marker]) == before
        two.signal(world.signal.SIGCONT)
        wrong = [] if frozen else ["a frozen machine asked the model"]
        for i, run in enumerate(runs):
            home = w.machines[i % 3]
            postgres.until(world.PATIENCE, lambda: home.status(run) not in ("", "running", "queued"), f"{run} ends")
            seen = w.model.requests()[w.accepted[run]]
            wrong += world.judge_log(run, home.log(run), seen)
            fetched = home.log(run).count(b'"name":"http_get","success":true')
            wrong += [] if fetched == world.TURNS else [f"{run}: {fetched} pages were fetched"]
            wrong += [f"{run}: {home.status(run)}"] if home.status(run) != "success" else []
            wrong += [f"{run}: asked by {q.machine}, not {home.name}" for q in seen if q.machine != home.name]
        twice = sum(len(w.model.requests()[w.accepted[r]]) > world.TURNS + 1 for r in runs[::3])
        codes = [m.stop() for m in w.machines]
        print(f"# {twice} of 2 runs of the killed machine had a call in flight")
        wrong += [f"exit codes {codes}"] if codes != [0] * 3 else []
        wrong += [s for m in w.machines for s in world.checks.sealed(m.name, m.verify())]
        with open(os.path.join(one.root, "logs", "subagents", runs[0] + ".jsonl"), "r+b") as f:
            f.seek(300)
            f.write(b"#")
        return wrong + w.judge_model() + (
            [] if world.checks.sealed(one.name, one.verify()) else ["a changed line is not found by logs verify"])


PRETEND = """
create table ava_node (node text primary key);
create table ava_run (run text primary key, node text, epoch bigint, head bigint, takes int, state smallint);
create table ava_chunk (stream text, kind smallint, head bigint, body bytea);
insert into ava_node values ('n1'), ('n2')"""


def pretend(w):
    """What a cluster would have in its tables, made of the files of plain daemons."""
    w.database.sql(PRETEND)
    for machine, node in zip(w.machines, ("n1", "n2")):
        machine.node = node
    for i, run in enumerate(w.accepted):
        home = w.machines[i % 2]
        data, messages = home.log(run), home.bytes(f"runs/{run}/messages.jsonl")
        half = data.index(b"\n", len(data) // 2) + 1
        w.database.sql(f"insert into ava_run values ('{run}', '{home.node}', 1, {len(data)}, 0, 9)")
        for kind, head, body in ((0, half, data[:half]), (0, len(data), data[half:]), (1, len(messages), messages)):
            w.database.sql(f"insert into ava_chunk values ('{run}', {kind}, {head}, '\\x{body.hex()}')")


FORGERIES = (
    "update ava_run set state = 0 where run = '{run}'",
    "update ava_run set node = 'n2' where run = '{run}'",
    "delete from ava_run where run = '{run}'",
    "insert into ava_run values ('S-000000', 'n1', 1, 0, 0, 9)",
    "delete from ava_chunk where stream = '{run}' and kind = 0 and head < {size}",
    "delete from ava_chunk where stream = '{run}' and kind = 1",
    "insert into ava_chunk select * from ava_chunk where stream = '{run}' and kind = 1",
    "update ava_chunk set body = set_byte(body, 9, 1) where stream = '{run}' and kind = 0",
)


def judged():
    """The judge accepts tables that are right, and finds each forgery in them."""
    with World(machines=2, member=False) as w:
        runs = w.spawn(4)
        for i, run in enumerate(runs):
            home = w.machines[i % 2]
            postgres.until(world.PATIENCE, lambda: home.status(run) == "success", f"{run} ends")
        pretend(w)
        wrong = w.judge()
        if [w.owner(r).name for r in runs] != ["m1", "m2"] * 2 or w.of(w.machines[0], runs):
            wrong.append("the owners are others")
        for table in ("ava_run", "ava_chunk"):
            w.database.sql(f"create table kept_{table} as select * from {table}")
        for forgery in FORGERIES:
            w.database.sql(forgery.format(run=runs[0], size=len(w.machines[0].log(runs[0]))))
            wrong += [] if w.judge() else [f"not found: {forgery}"]
            for table in ("ava_run", "ava_chunk"):
                w.database.sql(f"delete from {table}; insert into {table} select * from kept_{table}")
        return wrong + w.judge()


if __name__ == "__main__":
    sys.exit(world.main(database, standby, bouncer, partition, machines, judged))
