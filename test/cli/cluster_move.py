"""Two machines and a database: runs that wait for a machine that is gone come here by `ava move`, or are ended
here; a run that brought down machines is held, a person hears of it and frees it or ends it; a run whose machine
is alive is given away by it.

    cluster_move.py FOLDER SOURCE

The world is that of cluster_read.py."""

import json
import os
import sys

sys.dont_write_bytecode = True
from cluster_read import World, check, done, until  # noqa: E402


def known(w, *runs):
    """Until the database has something of each."""
    ids = ",".join(f"'{r}'" for r in runs)
    until(lambda: w.server.sql(f"select count(*) from ava_run where run in ({ids}) and head > 0") == str(len(runs)))


def at_work(w, machine, task, **more):
    run = machine.spawn(task, **more)
    until(lambda: machine.status(run)["iteration"] >= 1)
    known(w, run)
    return run


def column(w, run, name):
    return w.server.sql(f"select {name} from ava_run where run = '{run}'")


def name_a(w):
    """Both have the name of this host."""
    w.server.sql("update ava_node set name = 'machine-a' where node = "
                 f"'{json.load(open(os.path.join(w.machines[0].root, 'cluster.json'), encoding='utf-8'))['node']}'")


def gone(w, a, b):
    """The machine is dead: what is bound to it waits, and comes or ends when a person says so."""
    src, far = (os.path.join(a.folder, n) for n in ("src", "far"))
    for folder in (src, far):
        os.mkdir(folder)
    w.model.stands()
    bound, edits, ends, lost = (at_work(w, a, "Bound.", cwd=src), at_work(w, a, "Edits.", cwd=src, grants=["rw"]),
                                at_work(w, a, "Ends.", cwd=src), at_work(w, a, "Lost.", cwd=far))
    a.kill()
    os.rmdir(far)
    says = until(lambda: b.status(bound).get("status") == "queued" and b.status(bound))
    check("a run that is bound to a dead machine waits for it", says and
          says["current_activity"] == "waits for machine machine-a", b.status(bound))
    out = b.ava("ps")
    check("ava ps says so", f"{bound}" in out.stdout and "waits for machine machine-a" in out.stdout, out)
    out = b.ava("status", bound)
    check("ava status, too", "waits for machine machine-a" in out.stdout, out)
    out = b.ava("move", bound)
    check("ava move takes it", out.returncode == 0 and "goes on here" in out.stdout, out)
    check("once", b.ava("move", bound).returncode == 0)
    out = b.ava("move", lost)
    check("without its folder it does not come", out.returncode == 5 and far in out.stderr, out)
    check("and nothing has changed", column(w, lost, "moves") == "0")
    out = b.ava("move", edits)
    check("a copy that stayed behind is told of", out.returncode == 2 and "--without-copy" in out.stderr, out)
    out = b.ava("move", "--without-copy", edits)
    check("and left there where a person says so", out.returncode == 0, out)
    out = b.ava("cancel", ends)
    check("a run whose machine is gone is ended", out.returncode == 0 and "ancelled" in out.stdout, out)
    check("for the database, too", until(lambda: column(w, ends, "state") == "9"))
    status, answer = b.api("POST", f"/api/v1/runs/{lost}/cancel", {})
    check("also by the verb, and without its folder", status == 200 and answer["status"] == "cancelled", status, answer)
    w.model.goes()
    check("what was moved goes on and ends", b.ends(bound) and b.ends(edits), b.status(bound), b.status(edits))
    until(lambda: column(w, bound, "state") == "9")
    out = b.ava("move", bound)
    check("an ended run is not moved", out.returncode == 1 and "has ended" in out.stderr, out)
    check("nobody has it", b.ava("move", "S-00000000000000").returncode == 5)
    a.start()
    name_a(w)
    check("the machine that comes back does not go on with it", until(lambda: "machine" in a.status(bound)) and
          a.status(bound)["status"] == "success", a.status(bound))
    check("of the ended ones, too", [a.status(r)["status"] for r in (ends, lost)] == ["cancelled"] * 2)


def held(w, a, b):
    """A run that brought down machines waits for a person, who hears of it."""
    w.model.stands()
    runs = [at_work(w, a, f"Poison {i}.") for i in range(3)]
    w.server.sql("update ava_run set takes = 3 where state = 0")
    a.kill()
    check("it is held", until(lambda: [column(w, r, "state") for r in runs] == ["8"] * 3))
    said = until(lambda: [i for i in b.api("GET", "/api/v1/items?limit=100")[1]["items"] if "is held" in i["title"]])
    check("a person hears of each, once, with what to do", sorted(i["text"][:i["text"].index(" ")] for i in said) ==
          sorted(runs) and f"`ava move {said[0]['text'][:16]}` runs it here" in said[0]["text"], said)
    said = until(lambda: b.status(runs[0]))
    check("it is listed so", said["status"] == "parked" and "is held" in said["current_activity"], said)
    check("by ava ps", b.ava("ps").stdout.count("is held") == 3, b.ava("ps"))
    out = b.ava("move", runs[0])
    check("ava move frees it", out.returncode == 0 and column(w, runs[0], "takes") == "0" and
          column(w, runs[0], "state") == "0", out)
    out = b.ava("cancel", runs[1])
    check("ava cancel ends it", out.returncode == 0 and until(lambda: column(w, runs[1], "state") == "9"), out)
    a.start()
    name_a(w)
    said = a.status(runs[2])
    check("its own machine holds it, too, and says so", said["status"] == "parked" and "is held" in said["current_activity"], said)
    out = a.ava("move", runs[2])
    check("until a person frees it there", out.returncode == 0 and column(w, runs[2], "state") == "0", out)
    w.model.goes()
    check("both end", b.ends(runs[0]) and a.ends(runs[2]), b.status(runs[0]), a.status(runs[2]))


def given(w, a, b):
    """The machine is alive: it gives the run away."""
    src = os.path.join(a.folder, "src")
    w.model.stands()
    run, free, ends = (at_work(w, a, "Given.", cwd=src), at_work(w, a, "Given, too."), at_work(w, a, "Stays."))
    wait = a.follow("wait", run)
    out = b.ava("move", run)
    check("a machine that is alive gives a run away", out.returncode == 0 and "goes on here" in out.stdout, out)
    check("and has it no more", until(lambda: a.status(run).get("machine")) and
          a.api("GET", "/api/v1/health")[1]["runs"]["running"] == 2, a.status(run))
    check("its wish is no more", until(lambda: w.server.sql("select count(*) from ava_wish") == "0"))
    check("nor has it an end in its log", b'"SubagentComplete"' not in a.log(run))
    check("the other one goes, too", b.ava("move", free).returncode == 0)
    check("and back", a.ava("move", free).returncode == 0 and "machine" not in a.status(free), a.status(free))
    check("nobody moves what is his already", a.ava("move", free).returncode == 0)
    group = a.api("POST", "/api/v1/groups", {"confirmed": True, "runs": [{"role": "researcher", "task": t} for t in ("One.", "Two.")]})[1]
    member = until(lambda: [r["subagent_id"] for r in a.list()["runs"] if r["group_id"]])
    check("two of a group", bool(member), group)
    known(w, *member)
    out = b.ava("move", member[0])
    check("stay with it", out.returncode == 2 and "group" in out.stderr, out)
    w.model.goes()
    check("both end where they are", b.ends(run) and a.ends(free) and a.ends(ends), b.status(run), a.status(free))
    said = wait.communicate(timeout=30)[0]
    check("who waits for it hears of its end", wait.returncode == 0 and run in said, said)
    for r in member:
        a.ends(r)
    for m, r in ((b, run), (a, free)):
        out = m.ava("logs", "verify", "--json")
        check("its log holds", json.loads(out.stdout)["ok"] and m.log(r).count(b'"SubagentSpawn"') == 1, out)


def turns(path, *calls):
    """A model of ava's own that calls these tools, a pair of name and arguments each, and ends."""
    with open(path, "w", encoding="utf-8") as f:
        for name, args, delay in calls:
            f.write(json.dumps({"tool_calls": [{"name": name, "args": args}], "delay_ms": delay}) + "\n")
        f.write('{"tool_calls":[{"name":"submit_result","args":{"summary":"done","confidence":1}}]}\n')
    return {"model": "offline:" + path, "role": "code_reviewer", "grants": ["rw"]}


def asked(machine):
    """Does no call of its runs wait for the database any more? Then the model has read its file."""
    return machine.api("GET", "/api/v1/cluster")[1]["cluster"]["waiting_runs"] == 0


def copied(w, a, b):
    """A run that has changed its copy of the project takes the changes along."""
    src = os.path.join(a.folder, "copied")
    os.mkdir(src)
    with open(os.path.join(src, "old.txt"), "w", encoding="utf-8") as f:
        f.write("one\ntwo\n")
    write = ("write_file", {"path": "new.txt", "content": "written before the move\n"}, 0)
    edit = ("edit_file", {"path": "old.txt", "old_string": "two", "new_string": "three"}, 0)
    look, last = [("read_file", {"path": p}, 0) for p in ("old.txt", "new.txt")]
    path, never = os.path.join(a.folder, "turns.jsonl"), (600000,)
    run = a.spawn("Copied.", cwd=src, **turns(path, write, edit, look[:2] + never, last))
    until(lambda: a.log(run).count(b'"eventType":"ToolResult"') == 2 and a.status(run)["iteration"] == 3 and asked(a))
    copy = os.path.join("copies", run)
    check("a run has a copy", os.path.exists(os.path.join(a.root, copy, "tree/new.txt")))
    turns(path, write, edit, look, last[:2] + never)
    out = b.ava("move", run)
    check("it moves", out.returncode == 0, out, a.said())
    check("its copy is gone there", until(lambda: not os.path.exists(os.path.join(a.root, copy))), os.listdir(os.path.join(a.root, "copies")))
    until(lambda: b.log(run).count(b'"eventType":"ToolResult"') == 3 and b.status(run)["iteration"] == 4 and asked(b))
    turns(path, write, edit, look, last)
    out = a.ava("move", run)
    check("and back", out.returncode == 0, out, b.said())
    check("it ends", a.ends(run), a.status(run))
    read = [json.loads(line)["content"] for line in a.log(run).splitlines() if b'"ToolResult"' in line]
    check("and has read there what it had written", "three" in json.dumps(read[2]) and
          "written before" in json.dumps(read[3]), read[2:])
    with open(os.path.join(a.root, "runs", run, "artifacts/changes.patch"), encoding="utf-8") as f:
        patch = f.read()
    check("its patch has both changes", "+three" in patch and "+written before the move" in patch, patch)
    with open(os.path.join(src, "old.txt"), encoding="utf-8") as f:
        check("the project is as it was", f.read() == "one\ntwo\n")


def refused(w, a, b):
    """Who wants a run is gone before it comes: it stays where it is."""
    w.model.stands()
    run = at_work(w, a, "Wanted.")
    w.server.sql(f"insert into ava_wish (run, node, without_copy) values ('{run}', 'nobody', false)")
    check("the wish of a machine that is gone is no wish", until(lambda: w.server.sql(f"select count(*) from ava_wish where run = '{run}'")
                                                                 == "0") and "machine" not in a.status(run))
    w.server.stop()
    status, answer = b.api("POST", f"/api/v1/runs/{run}/move", {})
    check("without the database nothing moves", status == 503, status, answer)
    w.server.start()
    until(lambda: b.api("GET", "/api/v1/cluster")[1]["cluster"]["state"] == "member")
    check("with it, it does", b.ava("move", run).returncode == 0, b.said())
    w.model.goes()
    check("and ends", b.ends(run), b.status(run))


def calm(w, a):
    """Replies on one machine make up for machines that died."""
    w.model.stands()
    run = at_work(w, a, "Calm.")
    w.server.sql(f"update ava_run set takes = 2 where run = '{run}'")
    w.model.goes()
    a.ends(run)
    check("after three replies deaths count no more", until(lambda: column(w, run, "state || ' ' || takes") == "9 0"),
          column(w, run, "takes"))


def left(w, a, b):
    """Runs that others have do not go on in the data root of a machine that leaves."""
    w.model.stands()
    run, taken = at_work(w, a, "Was given."), at_work(w, a, "Was taken.")
    check("a run is given away", b.ava("move", run).returncode == 0, b.said())
    a.kill()
    check("and one taken", until(lambda: b.status(taken)["status"] == "running" and "machine" not in b.status(taken)), b.status(taken))
    a.start()
    name_a(w)
    out = a.ava("cluster", "leave")
    check("the machine that had them leaves", out.returncode == 0, out)
    a.process.wait()
    for name in ("AVA_CLUSTER_URL", "AVA_CLUSTER_LEASE"):
        del a.env[name]
    a.start()
    check("and does not go on with them", [a.status(r)["status"] for r in (run, taken)] == ["error"] * 2 and
          a.api("GET", "/api/v1/health")[1]["runs"]["running"] == 0, a.status(run), a.status(taken))
    w.model.goes()
    check("who has them does", b.ends(run) and b.ends(taken), b.status(run), b.status(taken))


def main():
    with World() as w:
        a, b = w.machines
        gone(w, a, b)
        held(w, a, b)
        calm(w, a)
        given(w, a, b)
        copied(w, a, b)
        refused(w, a, b)
        left(w, a, b)
    print(f"# {done[0]} checks, {done[1]} failed")
    return 1 if done[1] else 0


if __name__ == "__main__":
    sys.exit(main())
