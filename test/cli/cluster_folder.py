"""Three machines and a database: a run in one of cluster.folders goes on by itself where the same folder has the
same tree of git, and nowhere else.

    cluster_folder.py FOLDER SOURCE

The world is that of cluster_read.py. All machines are on this one, so that a path is the same folder for each: what
another machine has there is what stands there when it looks."""

import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
from cluster_read import TOP, World, check, done, until  # noqa: E402

SITE, OTHER, BESIDE = (os.path.join(TOP, name) for name in ("site", "other", "beside"))


def git(*words, folder=SITE):
    out = subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", *words],
                         cwd=folder, check=True, capture_output=True, text=True,
                         env={**os.environ, "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"})
    return out.stdout.strip()


def put(name, text, folder=SITE):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        f.write(text)


def project():
    os.makedirs(os.path.join(SITE, "sub"))
    os.mkdir(BESIDE)
    git("init", "-q")
    os.symlink("../../beside", os.path.join(SITE, "sub/link"))
    os.mkdir(os.path.join(SITE, "own.o"))
    git("init", "-q", folder=os.path.join(SITE, "own.o"))
    put("a.txt", "one\n")
    put("sub/b.txt", "two\n")
    put(".gitignore", "*.o\n")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    git("clone", "-q", SITE, OTHER, folder=TOP)
    git("tag", "first")


def place(w, run):
    return w.server.sql(f"select place || '|' || tree from ava_spec where run = '{run}'")


def folder(machine):
    return machine.api("GET", "/api/v1/cluster")[1]["cluster"]["folders"][0]


def at_work(machine, task, **more):
    run = machine.spawn(task, **more)
    until(lambda: machine.status(run)["iteration"] >= 1)
    return run


def script(name, *calls):
    """A model of ava's own that calls these tools, and then stands."""
    path = os.path.join(TOP, name)
    with open(path, "w", encoding="utf-8") as f:
        for tool, args in calls:
            f.write(json.dumps({"tool_calls": [{"name": tool, "args": args}]}) + "\n")
        f.write('{"delay_ms":600000,"tool_calls":[{"name":"list_files","args":{}}]}\n')
    return {"model": "offline:" + path, "role": "code_reviewer"}


def places(w, a):
    """A run has the place where it may go on; what is bound to the machine has none but that."""
    tree = git("rev-parse", "HEAD^{tree}")
    want = f"folder site|{tree} {SITE}"
    runs = {"in": at_work(a, "In it.", cwd=SITE), "below": at_work(a, "Below.", cwd=SITE + "/sub")}
    for name, run in runs.items():
        check(f"a run {name} the folder has its place and tree", until(lambda r=run: place(w, r) == want), place(w, run))
    check("and says so", until(lambda: a.status(runs["in"]).get("place") == "folder site") and
          [r["place"] for r in a.list()["runs"]] == ["folder site"] * 2, a.list())
    bound = {"beside it": at_work(a, "Beside.", cwd=BESIDE), "with a copy": at_work(a, "Copy.", cwd=SITE, grants=["rw"]),
             "behind a link": at_work(a, "Link.", cwd=SITE + "/sub/link"),
             "in a repository of its own": at_work(a, "Own.", cwd=SITE + "/own.o")}
    for name, run in bound.items():
        until(lambda r=run: a.status(r)["place"] == "here")
        check(f"one {name} has not", place(w, run) == "here|" and a.status(run)["place"] == "here", place(w, run))
    group = a.api("POST", "/api/v1/groups", {"confirmed": True, "runs": [{"role": "researcher", "task": t, "cwd": SITE}
                                                                         for t in ("One.", "Two.")]})[1]
    member = until(lambda: [r["subagent_id"] for r in a.list()["runs"] if r["group_id"]])
    until(lambda: len(member) == 2 and a.status(member[1])["iteration"] >= 1)
    check("nor one of a group", [place(w, m) for m in member] == ["here|"] * 2, group)
    free = at_work(a, "Free.")
    check("one without a folder is as it was", a.status(free)["place"] == "anywhere" and place(w, free) == "anywhere|")
    put("new.txt", "new\n")
    dirty = at_work(a, "Dirty.", cwd=SITE)
    check("a folder with something new has no tree", until(lambda: "not committed" in folder(a)["problem"]) and
          place(w, dirty) == "here|", folder(a))
    os.remove(os.path.join(SITE, "new.txt"))
    out = a.ava("cluster", "status")
    check("ava cluster status has the names", out.stdout.count("; folders site") == 3, out)
    for run in [*bound.values(), *member, free, dirty]:
        a.ava("cancel", run)
    return list(runs.values())


def taken(w, a, b, c, runs):
    """The machine dies; the other one takes the runs when it has the tree, and not before."""
    shell = at_work(a, "Shell.", cwd=SITE, **script("shell.jsonl", ("run_bash", {"command": "echo x >kept"})))
    until(lambda: b'"ToolResult"' in a.log(shell) and a.status(shell)["iteration"] == 2)
    reads = at_work(a, "Reads.", cwd=SITE, **script("reads.jsonl", ("read_file", {"path": "a.txt"})))
    until(lambda: b'"ToolResult"' in a.log(reads) and a.status(reads)["iteration"] == 2)
    for run in (shell, reads):
        until(lambda r=run: place(w, r).startswith("folder site|"))
    runs = [*runs, at_work(a, "One more.", cwd=SITE), reads]
    until(lambda: all(place(w, r).startswith("folder site|") for r in runs))
    a.kill()
    put("a.txt", "changed\n")
    check("a machine with a change there looks", until(lambda: "not committed" in folder(b)["problem"]), folder(b))
    said = b.status(runs[0])
    check("the run waits", said["status"] == "queued" and said["place"] == "folder site", said)
    check("and says for what", said["current_activity"] ==
          "waits for machine machine-a, or for one with the same tree of folder site", said)
    git("commit", "-q", "-a", "-m", "second")
    other = git("rev-parse", "HEAD^{tree}")
    check("a machine with another commit looks", until(lambda: folder(b)["tree"] == other), folder(b))
    check("as does one with the same tree at another path",
          until(lambda: folder(c)["tree"] == git("rev-parse", "first^{tree}")), folder(c))
    check("none of them takes it", w.server.sql("select max(moves) from ava_run") == "0")
    put("ignored.o", "nobody looks at this\n")
    git("checkout", "-q", "first")
    check("once its commit is there they are taken", until(lambda: all(b.status(r).get("status") == "running" and
                                                                       "machine" not in b.status(r) for r in runs)),
          [b.status(r) for r in runs])
    check("but for the one that started a command", "machine" in b.status(shell) and w.server.sql(
        f"select moves from ava_run where run = '{shell}'") == "0", b.status(shell))
    until(lambda: b.status(reads)["iteration"] == 2)
    b.ava("cancel", reads)
    w.model.goes()
    check("and end with success", all(b.ends(r) for r in runs[:-1]), [b.status(r) for r in runs])
    check("the other path took none", not any(c.status(r).get("status") == "running" for r in runs))


def again(w, a, b):
    """What the folder is counts anew wherever the run goes to work."""
    a.start()
    w.model.stands()
    run = at_work(b, "Moved.", cwd=SITE)
    first = until(lambda: place(w, run).startswith("folder site|") and place(w, run))
    git("checkout", "-q", "main")
    out = a.ava("move", run)
    check("a person moves it to another commit", out.returncode == 0, out)
    check("and it has that one's tree", until(lambda: place(w, run).startswith("folder site|") and place(w, run) != first),
          place(w, run), first)
    put("new.txt", "new\n")
    a.stop()
    check("a stop with a change there leaves it waiting", until(lambda: "not committed" in folder(b)["problem"]) and
          b.status(run)["status"] == "queued", b.status(run))
    a.start()
    check("its machine goes on with it, and it is bound there", until(lambda: place(w, run) == "here|") and
          until(lambda: a.status(run)["status"] == "running"), place(w, run), a.status(run))
    w.model.goes()
    check("to its end", a.ends(run), a.status(run))


def main():
    world = World("abc", AVA_CLUSTER_FOLDERS=f"site={SITE}", AVA_RUNS_MAX="20")
    os.makedirs(TOP)
    project()
    with world as w:
        a, b, c = w.machines
        c.stop()
        c.env["AVA_CLUSTER_FOLDERS"] = f"site={OTHER}"
        c.start()
        w.model.stands()
        taken(w, a, b, c, places(w, a))
        again(w, a, b)
    print(f"# {done[0]} checks, {done[1]} failed")
    return 1 if done[1] else 0


if __name__ == "__main__":
    sys.exit(main())
