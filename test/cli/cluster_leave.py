"""Two machines and a database: one leaves while a person is asked something, joins again with the same data root,
and takes back the run that it gave away.

    cluster_leave.py FOLDER SOURCE

The world is that of cluster_read.py."""

import json
import sys
import urllib.request

sys.dont_write_bytecode = True
from cluster_move import at_work, known  # noqa: E402
from cluster_odds import node  # noqa: E402
from cluster_read import LEASE, World, check, done, until  # noqa: E402


def asks(machine):
    return {x["id"]: x for x in machine.api("GET", "/api/v1/asks")[1]["asks"]}


def leave(w, machine):
    """Its daemon is then alone, and asks no database."""
    out = machine.ava("cluster", "leave")
    machine.process.wait()
    for name in ("AVA_CLUSTER_URL", "AVA_CLUSTER_LEASE"):
        machine.env.pop(name)
    machine.start()
    return out


def join(w, machine):
    machine.stop()
    machine.env.update(AVA_CLUSTER_URL=w.server.url, AVA_CLUSTER_LEASE=str(LEASE))
    machine.start()
    return until(lambda: machine.api("GET", "/api/v1/cluster")[1]["cluster"]["state"] == "member")


def asked(w, a, b):
    """What a run asks goes on with it; a quote stays where it was made."""
    rule = {"first": "ask_which", "play": 'turns=1 tool=ask_person args={"question":"Which kettle?"}'}
    urllib.request.urlopen(w.model.url + "/plan", json.dumps({"rules": [rule]}).encode()).close()
    run = a.spawn("ask_which")
    known(w, run)
    quote = a.api("POST", "/api/v1/runs", {"role": "researcher", "task": "To be quoted."})[1]["proposal_id"]
    check("both wait for a person", until(lambda: any(x["run"] == run for x in asks(b).values()) and quote in asks(b)), asks(b))
    ask = next(i for i, x in asks(b).items() if x["run"] == run)
    was = node(a)
    out = leave(w, a)
    check("the machine leaves", out.returncode == 0, out, a.said())
    mine = until(lambda: ask in asks(b) and "machine" not in asks(b)[ask] and asks(b))
    check("the run asks where it went on", bool(mine), asks(b))
    check("the quote is not listed there any more", until(lambda: quote not in asks(b)), asks(b))
    out = b.ava("answer", ask, "The red one")
    check("the question is answered there", out.returncode == 0 and b.ends(run), out, b.status(run))
    out = b.ava("confirm", quote)
    check("the quote is nobody's there", out.returncode == 5 and quote in out.stderr, out)
    check("here it waits", quote in asks(a), asks(a))
    out = a.ava("confirm", quote, "--json")
    check("and is confirmed", out.returncode == 0 and a.ends(json.loads(out.stdout)["subagent_id"]), out)
    return was, run


def again(w, a, b, was, ended):
    """It comes back as another machine, and shows what others have as theirs."""
    check("the same data root joins again", join(w, a), a.said())
    check("as another machine", node(a) != was and w.server.sql(f"select count(*) from ava_node where node = '{was}'") == "0")
    check("a run that it gave away is the other one's", a.status(ended).get("machine") and a.status(ended)["status"] == "success",
          a.status(ended))
    w.model.stands()
    run = at_work(w, a, "Comes back.")
    out = leave(w, a)
    check("it leaves once more", out.returncode == 0, out)
    check("with a run that is the other one's now", until(lambda: b.status(run)["status"] == "running" and "machine" not in b.status(run)),
          b.status(run))
    check("and ended here", a.status(run)["status"] == "error", a.status(run))
    check("it joins once more", join(w, a), a.said())
    check("and shows it at work", until(lambda: a.status(run)["status"] == "running" and a.status(run).get("machine")), a.status(run))
    b.kill()
    check("it takes the run back", until(lambda: a.status(run)["status"] == "running" and "machine" not in a.status(run)), a.status(run),
          a.said())
    w.model.goes()
    check("which ends", a.ends(run), a.status(run))
    b.start()
    a.stop()
    a.start()
    check("also for the next daemon", a.status(run)["status"] == "success", a.status(run))
    out = a.ava("logs", "verify", "--json")
    check("the logs hold", json.loads(out.stdout)["ok"], out)


def main():
    with World() as w:
        a, b = w.machines
        again(w, a, b, *asked(w, a, b))
    print(f"# {done[0]} checks, {done[1]} failed")
    return 1 if done[1] else 0


if __name__ == "__main__":
    sys.exit(main())
