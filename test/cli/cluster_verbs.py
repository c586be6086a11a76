"""Two machines and a database: what is said on one to a run or a quote of the other is done there, once, and
answered as for a run of its own.

    cluster_verbs.py FOLDER SOURCE

AVA, AVAD and MOCK are the programs. The model stands still while a run has to be at work."""

import contextlib
import json
import sys
import threading
import time
import urllib.request

import cluster_read
from cluster_read import World, check, done, until


def steering(machine, run, text):
    """How often a run was told that."""
    events = [json.loads(line) for line in machine.log(run).splitlines()]
    return len([e for e in events if e["eventType"] == "Steering" and e["content"].get("outcome") == "queued"
                and e["content"].get("text") == text])


def working(w, machine, task, **more):
    """A run at work whose model stands; the database knows it."""
    w.model.goes()
    run = machine.spawn(task, **more)
    until(lambda: machine.status(run)["tokens_used"] > 0)
    w.model.stands()
    until(lambda: w.server.sql(f"select count(*) from ava_run where run = '{run}' and head > 0") == "1")
    return run


def told(w, a, b):
    """A run of another machine is told something, and stopped."""
    run = working(w, a, "To be told.")
    out = b.ava("steer", run, "Only the parser.", "--no-wait")
    local = a.ava("steer", run, "And the lexer.", "--no-wait")
    check("ava steer tells it", out.returncode == 0 and steering(a, run, "Only the parser.") == 1, out)
    check("and says what it says of a run of its own", (out.stdout, out.stderr) == (local.stdout, local.stderr) and out.stdout, out, local)
    status, answer = b.api("POST", f"/api/v1/runs/{run}/steer", {"text": "Use cluster-key-0123456789."})
    check("a key is not in the database", status == 200 and w.server.sql(
        "select count(*) from ava_inbox where convert_from(body, 'UTF8') like '%cluster-key%'") == "0" and
        steering(a, run, "Use [redacted].") == 1, status, answer)
    waits = b.follow("steer", run, "To be read.")
    until(lambda: steering(a, run, "To be read.") == 1)
    took = []
    for i in range(8):
        began = time.monotonic()
        status, answer = b.api("POST", f"/api/v1/runs/{run}/steer", {"text": f"Number {i}."})
        took.append(time.monotonic() - began)
        assert status == 200, answer
    print(f"# a message was answered after {sorted(took)[4] * 1000:.0f} ms, {max(took) * 1000:.0f} ms at the most", flush=True)
    said = {"text": "Once.", "request_id": "once-1"}
    answers = [m.api("POST", f"/api/v1/runs/{run}/steer", said) for m in (b, a, b)]
    check("the same request at both doors has one answer", answers[0][0] == 200 and answers[0] == answers[1] == answers[2], answers)
    check("and one effect", steering(a, run, "Once.") == 1)
    said = {"text": "Twice.", "request_id": "once-2"}
    answers = []
    threads = [threading.Thread(target=lambda m=m: answers.append(m.api("POST", f"/api/v1/runs/{run}/steer", said)))
               for m in (a, b, b, b)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check("also when it comes at both at once", len(answers) == 4 and all(x == answers[0] for x in answers) and
          steering(a, run, "Twice.") == 1, answers)
    status, answer = b.api("POST", f"/api/v1/runs/{run}/steer", {"text": "", "request_id": "once-3"})
    check("an error is the owner's", status == 400 and a.api("POST", f"/api/v1/runs/{run}/steer", {"text": ""}) ==
          (status, answer), status, answer)
    status, answer = b.api("POST", f"/api/v1/runs/{run}/steer", {"text": "Now.", "request_id": "once-3"})
    check("and not kept for the request", status == 200, status, answer)
    status, answer = b.api("POST", f"/api/v1/runs/{run}/checkpoint", {"name": "here"})
    check("it has a checkpoint", status == 201 and answer["subagent_id"] == run, status, answer)
    w.model.goes()
    out = waits.communicate(timeout=cluster_read.PATIENCE)[0]
    check("ava steer waits until it is read", waits.returncode == 0 and out == f"{run} has read it.\n", out)
    run = working(w, a, "To be stopped.")
    out = b.ava("cancel", run)
    check("ava cancel stops it", out.returncode == 0 and out.stdout.startswith(f"{run} ") and "a model call" in out.stdout and
          a.status(run)["status"] == "cancelled", out)
    until(lambda: w.server.sql(f"select count(*) from ava_run where run = '{run}' and state = 9") == "1")
    out = b.ava("cancel", run)
    check("a second time it had ended", out.returncode == 0 and "had ended: " in out.stdout, out)
    mine, other = b.spawn("Mine.", cwd=b.folder), working(w, a, "Another.")
    out = b.ava("cancel", other, mine, "S-00000000000000")
    check("one here, one there and one nowhere", out.returncode == 5 and f"{mine} " in out.stdout and f"{other} " in out.stdout
          and "S-00000000000000" in out.stderr, out)
    status, answer = b.api("POST", f"/api/v1/runs/{run}/steer", {"text": "Too late."})
    check("who has ended reads nothing", status == 409 and "has ended" in answer["error"]["message"], status, answer)
    w.model.goes()


def quoted(w, a, b):
    """What waits for a person is listed and answered on any machine."""
    status, quote = a.api("POST", "/api/v1/runs", {"role": "researcher", "task": "To be quoted."})
    ask = quote["proposal_id"]

    def listed(machine):
        return [x for x in machine.api("GET", "/api/v1/asks")[1]["asks"] if x["id"] == ask]

    seen = until(lambda: listed(b))
    mine = listed(a)[0]
    check("a quote is listed on the other machine, with the name of its own", bool(seen) and seen[0].pop("machine") == "machine-a"
          and "machine" not in mine and seen[0] == mine, seen, mine)
    check("and shown whole", b.api("GET", f"/api/v1/asks/{ask}") == a.api("GET", f"/api/v1/asks/{ask}") and
          b.api("GET", f"/api/v1/proposals/{ask}") == a.api("GET", f"/api/v1/proposals/{ask}"))
    out = b.ava("asks")
    check("ava asks has it", out.returncode == 0 and ask in out.stdout and "on machine-a: " in out.stdout, out)
    answers = []
    threads = [threading.Thread(target=lambda m=m, yes=yes: answers.append(
        (yes, m.api("POST", f"/api/v1/asks/{ask}", {"choice": yes})))) for m, yes in ((a, "yes"), (b, "no"))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    won = [x for x in answers if x[1][0] == 200]
    check("of two answers at two doors one wins", len(won) == 1 and {s for _, (s, _) in answers} == {200, 409}, answers)
    again = b.api("POST", f"/api/v1/asks/{ask}", {"choice": won[0][0]})
    check("the same answer hears the same", again == won[0][1], again)
    check("and it is open nowhere", until(lambda: not listed(b) and not listed(a)))
    status, quote = a.api("POST", "/api/v1/runs", {"role": "researcher", "task": "To be confirmed."})
    until(lambda: quote["proposal_id"] in b.ava("asks").stdout)
    out = b.ava("confirm", quote["proposal_id"], "--json")
    run = json.loads(out.stdout or "{}").get("subagent_id", "")
    check("ava confirm starts it", out.returncode == 0 and a.ends(run), out)
    out = b.ava("reject", quote["proposal_id"])
    check("and it cannot be rejected then", out.returncode == 1 and "confirmed" in out.stderr, out)
    status, quote = b.api("POST", f"/api/v1/runs/{run}/resume", {"request_id": "resume-1"})
    check("an ended run is resumed where its record is", status == 201 and bool(quote.get("proposal_id")) and
          a.api("GET", f"/api/v1/proposals/{quote['proposal_id']}")[0] == 200, status, quote)
    status, again = b.api("POST", "/api/v1/runs", {"resume": run, "request_id": "resume-1"})
    check("in both ways to say it", again.get("proposal_id") == quote["proposal_id"], status, again)
    out = b.ava("answer", quote["proposal_id"], "no")
    check("ava answer says no", out.returncode == 0, out)


def begun(w, a, b):
    """The same request to begin something, at both machines."""
    def at_once(*asks):
        answers = []
        threads = [threading.Thread(target=lambda x=x: answers.append(x[0].api("POST", *x[1:]))) for x in asks]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return answers

    wrong = []
    for i in range(10):
        body = {"role": "researcher", "task": f"Begun {i}.", "confirmed": True, "request_id": f"begin-{i}"}
        answers = at_once(*[(m, "/api/v1/runs", body) for m in ((a, b, b), (b, a, a))[i % 2]])
        if len({x["subagent_id"] for _, x in answers}) != 1 or sorted(s for s, _ in answers) != [200, 200, 201]:
            wrong.append(answers)
    check("at both at once one run begins", not wrong, *wrong)
    for m in (a, b):
        until(lambda m=m: not [r for r in m.list()["runs"] if r["task"].startswith("Begun")])
    tasks = [r["task"] for r in b.list("?all=1&q=Begun")["runs"]]
    check("and no other one", sorted(tasks) == sorted(f"Begun {i}." for i in range(10)), tasks)
    body = {"role": "researcher", "task": "Quoted once.", "request_id": "quote-1"}
    answers = at_once((a, "/api/v1/runs", body), (b, "/api/v1/runs", body)) + [b.api("POST", "/api/v1/runs", body)]
    check("nor a second quote", len({x["proposal_id"] for _, x in answers}) == 1, answers)
    body = {"runs": [{"role": "researcher", "task": "One."}, {"role": "researcher", "task": "Two."}], "request_id": "group-1"}
    answers = [a.api("POST", "/api/v1/groups", body), b.api("POST", "/api/v1/groups", body)]
    check("or group", [s for s, _ in answers] == [201, 200] and answers[0][1] == answers[1][1], answers)
    status, answer = b.api("POST", "/api/v1/runs", {"role": "nobody", "task": "x", "confirmed": True, "request_id": "bad-1"})
    again = a.api("POST", "/api/v1/runs", {"role": "researcher", "task": "Begun at last.", "confirmed": True, "request_id": "bad-1"})
    check("what was refused may be asked for again", status == 400 and again[0] == 201, status, answer, again)


def asking(w, a, b):
    """A run asks; the answer comes from another machine."""
    rule = {"first": "ask_which", "play": 'turns=1 tool=ask_person args={"question":"Which kettle?"}'}
    urllib.request.urlopen(w.model.url + "/plan", json.dumps({"rules": [rule]}).encode()).close()
    run = a.spawn("ask_which")
    ask = until(lambda: [x for x in b.api("GET", "/api/v1/asks")[1]["asks"] if x["run"] == run])
    check("the question of a run is listed", bool(ask) and ask[0]["kind"] == "question" and ask[0]["machine"] == "machine-a",
          ask)
    out = b.ava("answer", run, "The", "blue", "one.")
    check("ava answer answers it", out.returncode == 0 and ask[0]["id"] in out.stdout and
          b"The blue one." in a.log(run), out)
    check("the run goes on with it", a.ends(run), a.status(run))
    out = b.ava("answer", ask[0]["id"], "The", "red", "one.")
    check("a second answer is refused as it is there", out.returncode == 1 and
          a.ava("answer", ask[0]["id"], "The", "red", "one.").stderr == out.stderr, out)


def silent(w, a, b):
    """The owner is away, and then the database."""
    run = working(w, a, "Stays here.", cwd=a.folder)
    a.kill()
    began = time.monotonic()
    status, answer = b.api("POST", f"/api/v1/runs/{run}/steer", {"text": "Go on.", "request_id": "kept-1"})
    check("without its machine it is kept, and that is said", status == 503 and "kept" in answer["error"]["message"] and
          "machine-a" in answer["error"]["message"] and time.monotonic() - began < 15, status, answer)
    a.start()
    check("and done when it is back", until(lambda: steering(a, run, "Go on.") == 1), a.log(run)[-500:])
    w.model.goes()
    until(lambda: w.server.sql("select count(*) from ava_inbox where status is null") == "0")
    other = working(w, a, "To be out of reach.")
    check("it is known here", other in b.ava("ps").stdout and b.api("GET", "/api/v1/asks")[1]["shared"] is True)
    w.server.stop()
    status, answer = b.api("POST", f"/api/v1/runs/{other}/cancel", {})
    check("without the database nothing is done, and that is said", status == 503 and "database" in answer["error"]["message"],
          status, answer)
    own = b.api("GET", "/api/v1/asks")
    check("what waits here is listed, with a sentence about the others", own[0] == 200 and all("machine" not in x for x in own[1]["asks"]) and
          "database" in own[1]["others"], own)
    w.server.start()
    check("and it is stopped when that is back", until(lambda: b.ava("cancel", other).returncode == 0), b.ava("cancel", other))
    w.model.goes()


def main():
    with World() as w:
        a, b = w.machines
        with contextlib.ExitStack() as stack:
            stack.callback(w.model.goes)
            told(w, a, b)
            quoted(w, a, b)
            begun(w, a, b)
            asking(w, a, b)
            silent(w, a, b)
    print(f"# {done[0]} checks, {done[1]} failed")
    return 1 if done[1] else 0


if __name__ == "__main__":
    assert cluster_read.TOP
    sys.exit(main())
