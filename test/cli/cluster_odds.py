"""Two machines and a database: rows that nobody has use for stand in the way of nothing, and are cleared away.

    cluster_odds.py FOLDER SOURCE

The world is that of cluster_read.py."""

import json
import os
import sys

sys.dont_write_bytecode = True
from cluster_move import at_work, column  # noqa: E402
from cluster_read import Machine, World, check, done, until  # noqa: E402


def node(machine):
    with open(os.path.join(machine.root, "cluster.json"), encoding="utf-8") as f:
        return json.load(f)["node"]


def count(w, table, where="true"):
    return int(w.server.sql(f"select count(*) from {table} where {where}"))


def starved(w, a, b):
    """What is said to runs that are held waits for a person; what is said to others does not wait behind it."""
    w.model.stands()
    run = at_work(w, a, "Can be told.")
    w.server.sql("insert into ava_run (run, node, epoch, head, head_hash, state) select 'S-0000000000000' || i, "
                 f"node, epoch, 0, '', 8 from ava_node, generate_series(1, 3) i where node = '{node(a)}'")
    w.server.sql("insert into ava_inbox (id, run, node, name, verb, body, door, at) select 'odd-' || i, "
                 "'S-0000000000000' || 1 + i % 3, 'x', 'S-0000000000000' || 1 + i % 3, 'POST /api/v1/runs/{id}/steer', "
                 "'{}', 'x', clock_timestamp() - interval '1 hour' from generate_series(1, 250) i")
    status, answer = b.api("POST", f"/api/v1/runs/{run}/steer", {"text": "Hear me."})
    check("what is said is not kept from a run by what others cannot hear", status == 200, status, answer)
    status, answer = b.api("POST", f"/api/v1/runs/{run}/steer", {"text": "And me."})
    check("nor is what is said next", status == 200, status, answer)
    check("which waits", count(w, "ava_inbox", "status is null") == 250)
    w.server.sql("delete from ava_inbox; delete from ava_run where state = 8")
    w.model.goes()
    check("the run ends", a.ends(run), a.status(run))
    return run


def heavy(w, a):
    """Files that do not go at once go before the lines that count with them."""
    w.model.stands()
    run = at_work(w, a, "Has much.")
    a.kill()
    artifacts = os.path.join(a.root, "runs", run, "artifacts")
    os.makedirs(artifacts, exist_ok=True)
    for i in range(10):
        with open(os.path.join(artifacts, f"heavy.{i}"), "wb") as f:
            f.write(os.urandom(4 << 20))
    w.server.sql("create table early (head bigint); create function look() returns trigger language plpgsql as $$ begin "
                 f"if new.run = '{run}' and new.head > old.head and (select count(*) from ava_file where run = new.run and "
                 "path like '%heavy%') < 10 then insert into early values (new.head); end if; return new; end $$; "
                 "create trigger look after update on ava_run for each row execute function look()")
    a.start()
    w.model.goes()
    check("a run with much to send ends", a.ends(run), a.status(run))
    check("all of it is there", until(lambda: column(w, run, "state") == "9") and
          count(w, "ava_file", f"run = '{run}' and path like '%heavy%' and length(body) = {4 << 20}") == 10)
    check("no line came before it", count(w, "early") == 0, w.server.sql("select * from early"))
    w.server.sql("drop trigger look on ava_run")


def claimed(w, a, b):
    """Who has a run answers for the request that began it."""
    w.model.stands()
    body = {"role": "researcher", "task": "Begun once.", "confirmed": True, "request_id": "begun-1"}
    run = a.api("POST", "/api/v1/runs", body)[1]["subagent_id"]
    until(lambda: column(w, run, "head > 0") == "t")
    c = Machine("c", w.server.url, w.model)
    w.machines.append(c)
    c.start()
    a.kill()
    status, answer = b.api("POST", "/api/v1/runs", body)
    check("while its machine is silent nobody does", status == 503 and "which has this request, has not answered" in
          answer["error"]["message"] or answer.get("subagent_id") == run, status, answer)
    owner = until(lambda: [m for m in (b, c) if "machine" not in m.status(run) and m.status(run).get("status") == "running"])
    check("the run goes on elsewhere", bool(owner), b.status(run), c.status(run))
    answers = [m.api("POST", "/api/v1/runs", body) for m in (b, c)]
    check("where it goes on it is known, and asked from any other machine", [(s, x.get("subagent_id")) for s, x in answers] ==
          [(200, run)] * 2, answers)
    a.start()
    check("and known to who comes back", a.api("POST", "/api/v1/runs", body)[1].get("subagent_id") == run)
    w.model.goes()
    check("it ends", owner[0].ends(run), owner[0].status(run))
    check("and nothing else was begun", count(w, "ava_spec", "convert_from(line, 'UTF8') like '%begun-1%'") == 1)


def wished(w, b, ended):
    """A wish for a run that ended, or was never there, is nobody's."""
    until(lambda: column(w, ended, "state") == "9")
    w.server.sql("insert into ava_wish (run, node, without_copy, why) values "
                 f"('{ended}', 'nobody', false, ''), ('S-00000000000000', 'nobody', false, 'no')")
    b.stop()
    b.start()  # looks for old rows first
    check("a wish that nothing can come of is cleared away", until(lambda: count(w, "ava_wish") == 0))
    out = b.ava("move", ended)
    check("the next one is refused, and not kept", out.returncode == 1 and "has ended" in out.stderr and
          until(lambda: count(w, "ava_wish") == 0), out)


def main():
    with World() as w:
        a, b = w.machines
        wished(w, b, starved(w, a, b))
        heavy(w, a)
        claimed(w, a, b)
    print(f"# {done[0]} checks, {done[1]} failed")
    return 1 if done[1] else 0


if __name__ == "__main__":
    sys.exit(main())
