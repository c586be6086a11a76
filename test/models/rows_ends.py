"""Ends without a result: never a success, nothing invented passes for one, nothing that was said is lost."""

import json
import re
import signal
import subprocess
import threading

import play
from play import Row
from service import aend, astart, atext, call, sse, submit, text

DONE_NOTHING = "The task is done, and you can return to work."
ANSWER = "The tax rate is 0.19, as TAX = 0.19 in shop.py line 5 says."
LONG = "\n".join(f"Line {n} of {n * 7}." for n in range(1000))
UNLOOKED = "no tool was called: nothing of this was looked up"
LOOK, NUDGE = "You have looked at nothing yet", "Your text alone does not end the run"


def says(*replies):
    """One after the other, the last one again and again; a text, or what makes a reply."""
    def script(n, r):
        reply = replies[min(n, len(replies)) - 1]
        return text(r, reply) if isinstance(reply, str) else reply(n, r)
    return script


def read(n, r):
    return call(n, r, "read_file", {"path": "a.txt"})


def none(**want):
    """No result: unverified, not partial, without an output."""
    def look(d):
        want_all = {"output": None, "unverified": True, "partial": False, "error": None, **want}
        return next((f"{k} is {d.get(k)!r}, not {v!r}" for k, v in want_all.items() if d.get(k) != v), None)
    return look


def taken(**want):
    """The JSON of a text: a success that says how it came."""
    return lambda d: none(**{"output": d.get("output"), **want})(d) or \
        (None if any("it is the JSON in the last text" in c for c in d["caveats"]) else f"caveats {d['caveats']}")


def told(*which):
    """What the requests behind the first one say last."""
    def look(seen):
        last = [str(r.messages()[-1].get("content")) for r in seen[1:]]
        return None if len(last) == len(which) and all(w in t for w, t in zip(which, last)) else f"told {last}"
    return look


def shown(world, row):
    """What a person sees, and what a script gets; played again it is the same."""
    r = world.ava("run", f"Look at the folder. [row {row.name}]", "--role", row.role, "--model", row.model(), "--yes")
    out = r.stdout + r.stderr
    run = re.search(r"S-[0-9a-f]{6,}", out).group()
    codes = {c: world.ava(*c.split(), run).returncode for c in ("wait", "result", "replay")}
    wrong = [] if r.returncode == 1 and codes == {"wait": 1, "result": 1, "replay": 0} else [f"exit {r.returncode} {codes}"]
    wrong += [f"{w!r} is not shown" for w in ("⚠️", "Ended without a result", f"`ava resume {run}` goes on", ANSWER, UNLOOKED,
                                              "this is what it said, unverified") if w not in out]
    wrong += [f"{w!r} is shown" for w in ("✅", "Complete", "partial", "confidence") if w in out]
    if "no result" not in world.ava("ps", "-a").stdout:
        wrong.append(world.ava("ps", "-a").stdout)
    return wrong + [out] if wrong else []


def killed_at_nudge(name, answer, summary):
    """The answer to the nudge waits until nobody does; then there is none. What was said before it stands in the record."""
    asked, killed = threading.Event(), threading.Event()

    def script(n, r):
        if n == 3 and not asked.is_set():
            asked.set()
            killed.wait(30)
        return says(read, answer, DONE_NOTHING)(n, r)

    def played(world, row):
        r = world.ava("run", f"Look at the folder. [row {row.name}]", "--role", row.role, "--model", row.model(), "--yes",
                      "--background")
        run = re.search(r"S-[0-9a-f]{6,}", r.stdout).group()
        asked.wait(30)
        world.end_daemon(signal.SIGKILL)
        killed.set()
        world.ava("wait", run)
        result = json.loads(world.ava("result", run, "--json").stdout)
        wrong = [none(status="no_result", summary=summary)(result)]
        if world.seen(row)[2].raw != world.seen(row)[3].raw:
            wrong.append("the request of the call that was cut is another one")
        replay = world.ava("replay", run)
        return [w for w in wrong if w] + ([replay.stdout + replay.stderr] if replay.returncode else [])
    return Row(name, script, play=played)


def chain(world, row):
    """It does not go on, and the group counts it as one that failed."""
    world.file("chain.jsonl", "".join(json.dumps({"task": f"Step {n}. [row {row.name}]", "role": row.role, "model": row.model()})
                                      + "\n" for n in (1, 2)))
    r = world.ava("run", "--parallel", "chain.jsonl", "--chain", "--yes", "--json")
    runs = json.loads(r.stdout)["runs"]
    return [] if r.returncode == 1 and [x["status"] for x in runs] == ["no_result", "not_started"] else [f"{r.returncode} {r.stdout}{r.stderr}"]


def chat(world, row):
    """In a conversation it is no tick either, and Ava calls it what it is."""
    r = subprocess.run([play.AVA, "chat"], input=f"Review a.txt for mistakes [row {row.name}]\nyes\n", cwd=world.work, env=world.env,
                       capture_output=True, text=True, timeout=play.PATIENCE)
    out = r.stdout + r.stderr
    wrong = [f"{w!r} is not shown" for w in ("⚠️ Subagent [", "Ended without a result", "without a result") if w not in out]
    wrong += [f"{w!r} is shown" for w in ("✅", "partial") if w in out]
    return wrong + [out] if wrong else []


ROWS = [
    # Invented, as a call of a tool that there is not: no result, whatever stands in it.
    Row("ends_invented", says('```json\n{"name":"tax_rate","arguments":{"shop":"shop.py","notes":"Shop.py uses a tax rate of '
                              '10% ..."}}\n```'), end="error/repeated_calls", requests=5,
        error="the model called tax_rate, which does not exist, 4 times", result=lambda d: None if d["output"] is None and "✅" not in str(d) else str(d)),
    Row("ends_text", says(DONE_NOTHING), end="no_result/final_text", requests=3, summary=DONE_NOTHING,
        result=none(caveats=[UNLOOKED]), sent=told(LOOK, NUDGE)),
    # At a server of one's own, where calls cost nothing, with a call as it is made; elsewhere without.
    Row("ends_example", says(DONE_NOTHING), end="no_result/final_text", requests=3,
        sent=told('submit_result now. A call is made so: {"name":"list_files","arguments":{}}\n', NUDGE)),
    Row("ends_example_role", says(DONE_NOTHING), role="web_crawler", end="no_result/final_text", requests=3,
        sent=told('A call is made so: {"name":"read_webpages","arguments":{"urls":["…"]}}\n', NUDGE)),
    Row("ends_kept", says(read, ANSWER, DONE_NOTHING), end="no_result/final_text", requests=3,
        result=none(summary=f"{ANSWER}\n\n{DONE_NOTHING}", caveats=[])),
    Row("ends_silent", says(read, ANSWER, ""), end="no_result/final_text", requests=6, result=none(summary=ANSWER)),
    Row("ends_looked", says("I think that it is seven.", read, ANSWER, DONE_NOTHING), end="no_result/final_text", requests=4,
        result=none(summary=f"{ANSWER}\n\n{DONE_NOTHING}", caveats=[]), sent=told(LOOK, "", NUDGE)),
    Row("ends_submitted", says("I think that it is seven.", read, submit), requests=3,
        result=lambda d: None if d["caveats"] == [] and not d["unverified"] else str(d)),
    Row("ends_unlooked", says(submit), requests=1,
        result=lambda d: None if d["caveats"][0] == UNLOOKED and not d["unverified"] else str(d)),
    Row("ends_failed_calls", says(lambda n, r: call(n, r, "read_file", {"path": "none.txt"}), submit), requests=2,
        result=lambda d: None if d["caveats"] == ["no call of a tool succeeded: nothing of this was looked up"] else str(d)),
    Row("ends_object", says('{"answer":"19 percent"}'), end="success/final_text", requests=2,
        result=lambda d: taken()(d) or (None if d["output"] == {"answer": "19 percent"} and d["caveats"][0] == UNLOOKED else str(d))),
    Row("ends_person", says(read, '{"name":"Ada","arguments":"none that hold"}'), end="success/final_text", requests=2,
        result=taken(output={"name": "Ada", "arguments": "none that hold"})),
    Row("ends_shown", says(ANSWER), play=shown),
    Row("ends_chat", lambda n, r: sse(astart(r), atext(0, ANSWER), aend("end_turn")), on="anthropic", play=chat,
        env={"AVA_AVA_MODEL": "offline"}),
    killed_at_nudge("ends_killed", ANSWER, f"{ANSWER}\n\n{DONE_NOTHING}"),
    killed_at_nudge("ends_killed_long", LONG, LONG),
    Row("ends_chain", says(DONE_NOTHING), play=chain),
]
