"""ava as an MCP server, spoken to as clients do: over `ava mcp` in both eras, and over HTTP; played by
test_mcp.sh."""

import base64
import json
import os
import re
import selectors
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

from api import AVA, PATIENCE, ROOT, ava, check, kill_daemon, runs, until

META = "io.modelcontextprotocol/"
FORMS, TASKS = {"elicitation": {"form": {}}}, {"extensions": {META + "tasks": {}}}
TASK = {"task": "where is the torn tail decided?", "role": "code_reviewer"}


def meta(can=None, version="2026-07-28"):
    return {META + "protocolVersion": version, META + "clientCapabilities": can or {}}


def interruptible():
    """What a shell starts in the background ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Bridge:
    """ava mcp, and a client before it."""

    def __init__(self, folder=None, env=None):
        self.process = subprocess.Popen([AVA, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, env=env, preexec_fn=interruptible)
        self.chosen = selectors.DefaultSelector()
        self.chosen.register(self.process.stdout, selectors.EVENT_READ)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.lines, self.rest, self.id = [], b"", 0

    def write(self, message):
        text = message if isinstance(message, str) else json.dumps(message)
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def read(self, wanted, patience=PATIENCE):
        """The first message that is wanted; None: it did not come. The others stay."""
        end = time.monotonic() + patience
        while True:
            for i, m in enumerate(self.lines):
                if wanted(m):
                    return self.lines.pop(i)
            if time.monotonic() > end or not self.chosen.select(max(0, end - time.monotonic())):
                return None
            part = self.process.stdout.read()
            if not part:
                return None
            *whole, self.rest = (self.rest + part).split(b"\n")
            self.lines += [json.loads(line) for line in whole]

    def ask(self, method, params=None, can=None, modern=True, wait=True):
        self.id += 1
        params = dict(params or {})
        if modern:
            params["_meta"] = meta(can)
        self.write({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})
        id = self.id
        return self.read(lambda m: m.get("id") == id and "method" not in m) if wait else id

    def tool(self, name, can=None, modern=True, wait=True, more=None, **arguments):
        return self.ask("tools/call", {"name": name, "arguments": arguments} | (more or {}), can, modern, wait)

    def end(self):
        self.process.stdin.close()
        return self.process.wait(PATIENCE)


def told(answer):
    return answer["result"].get("structuredContent", {})


def text(answer):
    return answer["result"]["content"][0]["text"]


def form_of(answer):
    (key, request), = answer["result"]["inputRequests"].items()
    return key, request["params"], answer["result"]["requestState"]


def fill(answer, action="accept", **content):
    key, _, state = form_of(answer)
    return {"requestState": state, "inputResponses": {key: {"action": action, "content": content}}}


# ---- stdio, 2026-07-28

def hellos(b):
    r = b.ask("server/discover")["result"]
    check("server/discover: the version, tasks, who it is, how long it holds",
          r["supportedVersions"] == ["2026-07-28"] and META + "tasks" in r["capabilities"]["extensions"] and
          r["_meta"][META + "serverInfo"]["name"] == "ava" and r["ttlMs"] >= 0 and r["cacheScope"] == "private", r)
    names = [t["name"] for t in b.ask("tools/list")["result"]["tools"]]
    check("a client without forms is not offered ava_confirm", names and "ava_confirm" not in names, names)
    check("and cannot call it", b.tool("ava_confirm", proposal="P-19c0de")["error"]["code"] == -32602)
    names = [t["name"] for t in b.ask("tools/list", can=FORMS)["result"]["tools"]]
    check("one with forms is", "ava_confirm" in names, names)
    check("an unknown method", b.ask("tasks/list")["error"]["code"] == -32601)
    check("a cursor that was not given out", b.ask("tools/list", {"cursor": "2"})["error"]["code"] == -32602 and
          b.ask("resources/list", {"cursor": "2"})["error"]["code"] == -32602 and "result" in b.ask("tools/list", {"cursor": None}))
    check("there are no prompts, for who asks all the same", b.ask("prompts/list")["result"]["prompts"] == [])
    check("methods of before are gone", b.ask("ping")["error"]["code"] == -32601)
    b.write({"jsonrpc": "2.0", "id": "v", "method": "tools/list", "params": {"_meta": meta(version="2031-01-01")}})
    e = b.read(lambda m: m.get("id") == "v")["error"]
    check("another version is named, with those that are spoken",
          e["code"] == -32022 and e["data"] == {"supported": ["2026-07-28"], "requested": "2031-01-01"}, e)
    b.write({"jsonrpc": "2.0", "id": "c", "method": "tools/list", "params": {"_meta": {META + "protocolVersion": "2026-07-28"}}})
    check("without capabilities", b.read(lambda m: m.get("id") == "c")["error"]["code"] == -32602)
    b.write("{torn")
    check("what is no JSON", b.read(lambda m: m.get("id", 0) is None)["error"]["code"] == -32700)
    b.write('[{"jsonrpc":"2.0","id":1,"method":"ping"}]')
    check("a batch", b.read(lambda m: m.get("id", 0) is None)["error"]["code"] == -32600)
    b.write("x" * (3 << 20))
    check("a line of 3 MB is refused, and the next one heard",
          b.read(lambda m: m.get("id", 0) is None)["error"]["code"] == -32600 and "result" in b.ask("tools/list"))


def bad_arguments(b):
    a = b.tool("ava_propose", FORMS, task="x", confirmed=True, confirm="never")
    check("what a tool does not name is refused: nothing confirms itself", a["result"]["isError"] and not runs(), a)
    for name, arguments in [("ava_propose", {"task": 5}), ("ava_result", {"run": "S-000000"}), ("ava_propose", TASK | {"cwd": "relative"})]:
        a = b.tool(name, **arguments)
        check(f"{name} {json.dumps(arguments)[:50]}: a sentence, no crash", a["result"]["isError"] and text(a), a)


def no_forms(b):
    a = b.tool("ava_propose", **TASK)
    p = told(a)
    check("without forms: a quote, and how a person confirms", p["state"] == "pending" and
          f"ava confirm {p['proposal_id']}" in p["next"] and "Time:" in p["message"] and json.loads(text(a)) == p, a)
    check("and nothing runs", not runs())
    a = b.tool("ava_propose", more={"requestState": p["proposal_id"],
                                    "inputResponses": {p["proposal_id"]: {"action": "accept", "content": {"start": True}}}}, **TASK)
    check("a state that nobody gave out is refused", a["error"]["code"] == -32602 and not runs(), a)
    ava("confirm", p["proposal_id"])
    s = told(b.tool("ava_status", run=p["proposal_id"]))
    check("confirmed elsewhere, the proposal names its run", s["state"] == "confirmed" and s["subagent_id"].startswith("S-"), s)
    r = told(b.tool("ava_wait", run=s["subagent_id"], seconds=20))
    check("ava_wait has the result", r["status"] == "success" and "torn_tail" in r["summary"], r)
    check("so has ava_result", told(b.tool("ava_result", run=s["subagent_id"])) == r)
    e = told(b.tool("ava_logs", run=s["subagent_id"], type="ToolCall"))
    check("ava_logs has its calls", e["events"] and all(v["eventType"] == "ToolCall" for v in e["events"]), e)
    return s["subagent_id"]


def forms(b):
    a = b.tool("ava_propose", FORMS, **TASK)
    key, form, state = form_of(a)
    check("with forms: a form that says what will run, and where", a["result"]["resultType"] == "input_required" and
          "Time:" in form["message"] and f"Folder: {os.environ['T']}/project" in form["message"] and
          form["requestedSchema"]["required"] == ["start"] and form["mode"] == "form", a)
    long = form_of(b.tool("ava_propose", FORMS, task="look at it; " * 200 + "END OF TASK", context="so far; " * 200 + "END OF CONTEXT"))[1]["message"]
    check("it holds all that is confirmed, behind what must be known", "END OF TASK" in long and "END OF CONTEXT" in long and
          long.index("Rights:") < long.index("END OF TASK"), long)
    n = len(runs())
    other = b.tool("ava_propose", FORMS, more=fill(a, start=True), **(TASK | {"task": "delete everything"}))
    check("the answer of one call is no answer of another", other["error"]["code"] == -32602, other)
    forged = fill(a, start=True)
    forged["requestState"] = state[:-1] + ("0" if state[-1] != "0" else "1")
    check("a forged state", b.tool("ava_propose", FORMS, more=forged, **TASK)["error"]["code"] == -32602)
    no = b.tool("ava_propose", FORMS, more=fill(a, "cancel"), **TASK)
    check("cancel starts nothing and says how to confirm", "ava confirm" in told(no)["next"], no)
    again = b.tool("ava_propose", FORMS, more=fill(a, start=True), **TASK)
    check("a form that came back is not good again", told(again)["state"] == "pending" and len(runs()) == n, again)
    a = b.tool("ava_confirm", FORMS, proposal=key)
    check("ava_confirm shows it again", form_of(a)[0] == key, a)
    no = b.tool("ava_confirm", FORMS, more=fill(a, start=False), proposal=key)
    check("no in the form rejects", told(no)["state"] == "rejected", no)
    check("and nothing has run by all that", len(runs()) == n)
    a = b.tool("ava_propose", FORMS, **TASK)
    a = b.tool("ava_propose", FORMS, more=fill(a, start=True, terms="max $5"), **TASK)
    check("a raised limit is shown again", a["result"]["resultType"] == "input_required" and "$5.00" in form_of(a)[1]["message"], a)
    odd = b.tool("ava_confirm", FORMS, more=fill(b.tool("ava_confirm", FORMS, proposal=form_of(a)[0]), start=True, terms="or no"),
                 proposal=form_of(a)[0])
    check("a change that is not understood starts nothing and says what is", odd["result"]["isError"] and "max 20 cents" in text(odd) and
          len(runs()) == n, odd)
    a = b.tool("ava_propose", FORMS, more=fill(a, start=True, terms="at most 1 minute"), **TASK)
    check("a lowered one starts", told(a)["state"] == "confirmed" and len(runs()) == n + 1, a)
    s = told(b.tool("ava_status", run=told(a)["subagent_id"]))
    check("with it", s["limits"]["timeout"] == 60 and s["limits"]["max_cost_cents"] == 500 and s["origin"] == "mcp", s)
    yes = json.loads(ava("logs", "--type", "SpawnConfirmed", "-o", "json", "--last", "1").stdout)["content"]
    check("the yes names its door", yes["origin"] == "mcp" and yes["by"], yes)


def elsewhere(b):
    """The person answers on another door while the form is open here: what is told is what is so."""
    a = b.tool("ava_propose", FORMS, **TASK)
    ava("confirm", form_of(a)[0])
    r = told(b.tool("ava_propose", FORMS, more=fill(a, "cancel"), **TASK))
    check("a closed form of what was confirmed elsewhere names the run", r["state"] == "confirmed" and r["subagent_id"], r)
    a = b.tool("ava_propose", FORMS, **TASK)
    ava("reject", form_of(a)[0])
    r = b.tool("ava_propose", FORMS, more=fill(a, start=True), **TASK)
    check("a yes to what was rejected elsewhere starts nothing", r["result"]["isError"] and "rejected" in text(r), r)
    for seconds in (5, 20, 80):  # a busy machine may confirm it too late: then that says nothing
        kill_daemon()
        os.environ["AVA_PROPOSALS_EXPIRY"] = str(seconds)
        ava("ps")
        del os.environ["AVA_PROPOSALS_EXPIRY"]
        old = shakes_hands({"elicitation": {}})
        calls, forms = opens(old, 2)
        pending = [p["proposal_id"] for p in json.loads(ava("proposals", "--json").stdout)]
        in_time = len(pending) == 2 and ava("confirm", pending[0]).returncode == 0
        answers = [told(answer_of(old, c)) for c in calls]
        old.end()
        if in_time:
            break
    by_id = {r["proposal_id"]: r["state"] for r in answers}
    check("of a form that nobody answered the same", in_time and forms[1] and by_id[pending[0]] == "confirmed" and
          by_id[pending[1]] != "confirmed", answers)
    kill_daemon()


def wants_all_three(b):
    given = TASK | {"role": "researcher", "model": f"offline:{os.environ['SLOW']}"}
    a = b.tool("ava_propose", FORMS, **given)
    check("all three rights are asked about apart", "all_three" in form_of(a)[1]["requestedSchema"]["properties"], a)
    no = b.tool("ava_propose", FORMS, more=fill(a, start=True), **given)
    check("and a plain yes does not give them", no["result"]["isError"] and "all three" in text(no), no)
    a = b.tool("ava_propose", FORMS, **given)
    yes = b.tool("ava_propose", FORMS, more=fill(a, start=True, all_three=True), **given)
    check("one that says so does", told(yes)["state"] == "confirmed", yes)
    b.tool("ava_cancel", run=told(yes)["subagent_id"])


def slow(b, can, script, **more):
    """A run that goes by a script, started by the form."""
    given = TASK | {"model": f"offline:{script}"} | more
    a = b.tool("ava_propose", can, **given)
    return b.tool("ava_propose", can, more=fill(a, start=True), **given)


def tasks(b):
    can = FORMS | TASKS
    t = slow(b, can, os.environ["ASKS"])["result"]
    check("a client with tasks gets one", t["resultType"] == "task" and t["status"] == "working" and t["ttlMs"] is None and
          re.fullmatch(r"S-[0-9a-f]+-[0-9a-f]{32}", t["taskId"]), t)
    id = {"taskId": t["taskId"]}
    when = t["createdAt"]
    asks = lambda: (lambda r: r if r["status"] == "input_required" else None)(b.ask("tasks/get", id, can)["result"])
    q = until(asks)
    check("it began when it began", q and q["createdAt"] == when, [q, when])
    check("its question is a form", q and list(q["inputRequests"].values())[0]["params"]["message"] == "Which file?", q)
    key = list(q["inputRequests"])[0]
    b.ask("tasks/update", id | {"inputResponses": {"c9.9": {"action": "accept", "content": {"answer": "no"}}}}, can)
    check("an answer to what is not asked changes nothing", b.ask("tasks/get", id, can)["result"]["status"] == "input_required")
    kill_daemon()
    check("the task outlives a kill of the daemon", until(asks)) # a question that no disk has yet is asked again
    u = b.ask("tasks/update", id | {"inputResponses": {key: {"action": "accept", "content": {"answer": "a.c"}}}}, can)
    check("the answer is taken", u["result"] == {"resultType": "complete", "_meta": u["result"]["_meta"]}, u)
    d = until(lambda: (lambda r: r if r["status"] == "completed" else None)(b.ask("tasks/get", id, can)["result"]))
    check("and the result is the task's", d and d["result"]["structuredContent"]["summary"] == "It is a.c." and not d["result"]["isError"], d)
    check("a client that has no tasks", b.ask("tasks/get", id)["error"]["code"] == -32021)
    check("an id of nobody", b.ask("tasks/get", {"taskId": t["taskId"][:-1] + "x"}, can)["error"]["code"] == -32602)
    check("a run's bare id is no task", b.ask("tasks/get", {"taskId": t["taskId"][:8]}, can)["error"]["code"] == -32602)
    given = TASK | {"model": f"offline:{os.environ['SLOW']}"}
    form = fill(b.tool("ava_propose", can, **given), start=True)
    n = len(runs())
    first = [b.tool("ava_propose", can, wait=False, more=form, **given) for _ in range(2)]
    t, twin = [b.read(lambda m: m.get("id") == i)["result"] for i in first]
    check("two at once are one as well", twin.get("taskId") == t["taskId"] and len(runs()) == n + 1, [t, twin])
    ids = [b.tool("ava_propose", can, wait=False, more=form, **given) for _ in range(5)]
    again = [b.read(lambda m: m.get("id") == i) for i in ids]
    check("a yes that comes again is the same run", all(a["result"].get("taskId") == t["taskId"] for a in again) and len(runs()) == n + 1, again)
    id = {"taskId": t["taskId"]}
    b.ask("tasks/cancel", id, can)
    check("cancel cancels", b.ask("tasks/get", id, can)["result"]["status"] == "cancelled")
    check("twice", b.ask("tasks/cancel", id, can)["result"]["resultType"] == "complete")


def steering(b):
    run = told(slow(b, FORMS, os.environ["SLOW"], grants=["rw"]))["subagent_id"]
    w = told(b.tool("ava_wait", run=run, seconds=1))
    check("ava_wait of one that goes on says how it is", w["status"] in ("running", "waiting", "queued"), w)
    a = b.tool("ava_steer", run=run, text="look into a.c as well")
    check("ava_steer is heard", told(a).get("outcome") in ("queued", "answered"), a)
    check("ava_result of one that goes on says how it is", until(lambda: told(b.tool("ava_result", run=run))["status"] == "running"))
    a = told(b.tool("ava_cancel", run=run))
    check("ava_cancel stops it", a["status"] == "cancelled", a)
    end = json.loads(ava("logs", run, "--type", "SubagentComplete", "-o", "json", "--last", "1").stdout)["content"]
    check("its end says that a model did it, by this door", (end["by"], end["origin"]) == ("ava", "mcp"), end)


def resources(b, run):
    templates = [t["uriTemplate"] for t in b.ask("resources/templates/list")["result"]["resourceTemplates"]]
    check("resources have templates", templates == ["ava://run/{id}", "ava://run/{id}/log", "ava://run/{id}/result"], templates)
    uris = [r["uri"] for r in b.ask("resources/list")["result"]["resources"]]
    check("runs, logs and results are resources", {"ava://runs", f"ava://run/{run}", f"ava://run/{run}/log",
                                                  f"ava://run/{run}/result"} <= set(uris), uris)
    for uri in uris[:4]:
        c = b.ask("resources/read", {"uri": uri})["result"]["contents"][0]
        check(f"{re.sub('S-[0-9a-f]+', 'S-…', uri)} can be read", c["uri"] == uri and json.loads(c["text"]), c)
    for uri in ["ava://run/S-000000", "file:///etc/passwd"]:
        e = b.ask("resources/read", {"uri": uri})["error"]
        check(f"there is no {uri}", e["code"] == -32602 and e["data"]["uri"] == uri, e)
    log = f"ava://run/{run}/log"
    ids = [b.ask("resources/read", {"uri": log}, wait=False) for _ in range(30)]
    many = [b.read(lambda m: m.get("id") == i) for i in ids]
    wrong = [m for m in many if not m or m.get("error", {"code": -32603})["code"] != -32603]
    check("one that cannot be read now is not told to be none", not wrong, wrong)
    talker = os.environ["T"] + "/talker.jsonl"
    with open(talker, "w", encoding="utf-8") as f:
        for i in range(14):
            call = {"name": "read_file", "args": {"path": "a.c", "first_line": i + 1}}
            f.write(json.dumps({"text": "x" * 3000, "tool_calls": [call]}) + "\n")
    run = told(slow(b, FORMS, talker))["subagent_id"]
    ended = until(lambda: (lambda r: r.get("stop_reason"))(told(b.tool("ava_wait", run=run, seconds=20))))
    log = b.ask("resources/read", {"uri": f"ava://run/{run}/log"})["result"]["contents"][0]["text"]
    check("a long log is cut to its newest events, as that of the tool", ended and len(log) < 60000 and json.loads(log)["left_out"] > 0 and
          json.loads(log) == told(b.tool("ava_logs", run=run)), [ended, len(log), log[-200:]])
    silent = os.environ["T"] + "/silent.jsonl"
    with open(silent, "w", encoding="utf-8") as f:
        f.write('{"text": "The task is done."}\n' * 3)
    run = told(slow(b, FORMS, silent))["subagent_id"]
    a = b.tool("ava_wait", run=run, seconds=20)
    check("ava_wait of one that ended without a result is an error, with what it said", a["result"]["isError"] and
          told(a)["status"] == "no_result" and "The task is done." in told(a)["summary"], a)


# ---- stdio, before

def opens(b, n=1):
    """Proposals of before: their calls, and the forms that come of them."""
    calls = [b.tool("ava_propose", modern=False, wait=False, **TASK) for _ in range(n)]
    return calls, [b.read(lambda m: m.get("method") == "elicitation/create") for _ in calls]


def answer_of(b, call):
    return b.read(lambda m: m.get("id") == call and "result" in m)


def legacy():
    b = shakes_hands({"elicitation": {}})
    r = b.hello
    check("a handshake of before", r["protocolVersion"] == "2025-06-18" and r["serverInfo"]["name"] == "ava" and "resultType" not in r, r)
    b.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
    check("ping", b.ask("ping", modern=False)["result"] == {})
    (call,), (q,) = opens(b)
    check("the form is a request of ours", q and q["params"]["requestedSchema"]["required"] == ["start"], q)
    n = len(runs())
    check("other calls are answered meanwhile", "runs" in told(b.tool("ava_status", modern=False)))
    b.write({"jsonrpc": "2.0", "id": q["id"] + 1, "result": {"action": "accept", "content": {"start": True}}})
    b.ask("ping", modern=False)
    check("a response to nothing starts nothing", len(runs()) == n)
    b.write({"jsonrpc": "2.0", "id": q["id"], "result": {"action": "accept", "content": {"start": True}}})
    a = answer_of(b, call)
    check("the answer starts the run, and the call is answered", told(a)["state"] == "confirmed", a)
    check("it is asked once", len(runs()) == n + 1)
    (call,), (q,) = opens(b)
    b.write('{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"start":true,"terms":"\\ud83d"}}}' % json.dumps(q["id"]))
    a = answer_of(b, call)
    check("a form in which a character is none starts nothing, and its call is answered", a and len(runs()) == n + 1, a)
    (call,), (q,) = opens(b)
    kill_daemon()
    q2 = b.read(lambda m: m.get("method") == "elicitation/create")
    check("a form that was open is shown again by the next daemon", q2 and q2["params"] == q["params"], q2)
    b.write({"jsonrpc": "2.0", "id": q2["id"], "error": {"code": -1, "message": "no"}})
    a = answer_of(b, call)
    check("an error for an answer starts nothing", told(a)["state"] == "pending", a)
    check("an unknown resource", b.ask("resources/read", {"uri": "x:y"}, modern=False)["error"]["code"] == -32002)
    run = told(b.tool("ava_status", modern=False))
    opens(b)
    check("the end of input ends it, though a form is open", b.end() == 0, run)


def shakes_hands(can=None):
    b = Bridge(os.environ["T"] + "/project")
    b.hello = b.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": can or {}}, modern=False)["result"]
    return b


def many_forms():
    """As many forms as one client may have: they can still be answered."""
    b, other = shakes_hands({"elicitation": {}}), shakes_hands({"elicitation": {}})
    calls, forms = opens(b, 16)
    check("16 forms are open", all(forms))
    a = told(answer_of(b, b.tool("ava_propose", modern=False, wait=False, **TASK)))
    check("one more is not shown, and the model is told why and how", a["state"] == "pending" and "at most 16" in a["next"] and
          f"ava confirm {a['proposal_id']}" in a["next"], a)
    check("another client still shows its own", opens(other)[1][0])
    n = len(runs())
    b.write({"jsonrpc": "2.0", "id": forms[0]["id"], "result": {"action": "accept", "content": {"start": False}}})
    a = b.read(lambda m: m.get("id") in calls and "result" in m)
    check("those that are open are answered", a and told(a)["state"] == "rejected" and len(runs()) == n, a)
    check("and one may be asked again", opens(b)[1][0])
    other.end()
    b.end()


def many_requests():
    """As many requests as may be under way."""
    b = Bridge(os.environ["T"] + "/project")
    run = told(slow(b, FORMS, os.environ["SLOW"]))["subagent_id"]
    calls = [b.tool("ava_wait", wait=False, run=run, seconds=50) for _ in range(64)]
    e = b.ask("server/discover")
    check("with 64 requests under way no more is asked", e["error"]["code"] == -32603, e)
    long = "x" * 100000
    b.write({"jsonrpc": "2.0", "id": long, "method": "server/discover"})
    check("and is told so by its id, however long that is", b.read(lambda m: m.get("id") == long))
    b.write({"jsonrpc": "2.0", "id": "odd", "method": "notifications/cancelled", "params": {"requestId": calls[0]}})
    check("what has an id is a request, and answered", "error" in (b.read(lambda m: m.get("id") == "odd") or {}))
    b.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": calls[0]}})
    check("one that is cancelled makes room", "result" in b.ask("server/discover"))
    Bridge().tool("ava_cancel", run=run)
    rest = [b.read(lambda m: m.get("id") == i) for i in calls[1:]]
    check("and the others are answered", all(told(a)["status"] == "cancelled" for a in rest))
    check("the one that was cancelled is not", not [m for m in b.lines if m.get("id") == calls[0]], b.lines)
    b.end()


def cut_behind_an_answer():
    """The daemon is killed between the answer on a stream and the end of that stream."""
    root, asked = os.environ["T"] + "/cut", []
    os.mkdir(root, 0o700)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(root + "/ava.sock")
    listener.listen()

    def daemon():
        while True:
            s = listener.accept()[0]
            asked.append(s.recv(1 << 20))
            event = b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" +
                      b"%x\r\n%s\r\n" % (len(event), event))
            s.close()

    threading.Thread(target=daemon, daemon=True).start()
    b = Bridge(env=os.environ | {"AVA_DATA_ROOT": root})
    check("a call is answered on its stream", b.tool("ava_propose", modern=False, **TASK))
    check("once, though the stream has no end", not b.read(lambda m: m.get("id") == 1, 1.5) and len(asked) == 1, asked)
    b.end()


def nonblocking():
    """A client that gave its server a pipe which does not wait."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    p = subprocess.Popen([AVA, "mcp"], stdin=subprocess.PIPE, stdout=theirs)
    theirs.close()
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta()}}
    p.stdin.write(json.dumps(message).encode() + b"\n")
    for i in range(20):
        p.stdin.write(json.dumps(message | {"id": i + 2}).encode() + b"\n")
    p.stdin.close()
    got = b""
    ours.settimeout(PATIENCE)
    while part := ours.recv(65536):
        got += part
    ids = sorted(json.loads(line)["id"] for line in got.splitlines())
    check("a pipe that does not wait loses nothing", ids == list(range(1, 22)) and p.wait(PATIENCE) == 0, ids)


def bridge_life():
    b = Bridge(os.environ["T"] + "/project")
    run = told(slow(b, FORMS, os.environ["SLOW"]))["subagent_id"]
    b.process.send_signal(signal.SIGINT)
    b.process.wait(PATIENCE)
    check("a signal ends the bridge and no run", json.loads(ava("status", run, "--json").stdout)["status"] in ("running", "queued"))
    b = Bridge()
    b.tool("ava_status")
    b.tool("ava_wait", wait=False, run=run, seconds=2)
    b.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"_meta": meta()}}).encode())
    b.process.stdin.close()
    check("what was asked is answered behind the end of input", b.read(lambda m: m.get("id") == 2))
    check("a last line without an end as well", b.read(lambda m: m.get("id") == 3))
    ava("cancel", run)


# ---- HTTP

def environment():
    """A daemon serves every door: what a client's environment holds neither answers for the person nor
    says where their words are sent."""
    n = len(runs())
    kill_daemon()
    b = Bridge(env=dict(os.environ, AVA_CONFIRM="never", AVA_MODEL="anthropic/claude-opus-4-5", ANTHROPIC_API_KEY="sk-ant-canary-of-a-client",
                        ANTHROPIC_BASE_URL="http://127.0.0.1:9"))
    a = b.tool("ava_propose", **TASK)
    check("a client's environment confirms nothing", told(a)["state"] != "confirmed" and len(runs()) == n, a)
    check("and chooses no model and no address", "offline" in told(a)["quote"]["model"], a)
    with open(ROOT + "/ava.lock", encoding="ascii") as f, open(f"/proc/{f.read().split()[0]}/environ", "rb") as e:
        check("and its keys are not the daemon's", b"canary-of-a-client" not in e.read())
    b.end()


def http():
    card = json.loads(ava("mcp", "token", "--json").stdout)
    url, host = card["url"], card["url"].split("/")[2]
    check("the secret is for its owner", os.stat(f"{ROOT}/mcp.json").st_mode & 0o777 == 0o600)

    def post(method="server/discover", params=None, can=None, data=None, **fields):
        body = data or json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": (params or {}) | {"_meta": meta(can)}})
        head = {"Content-Type": "application/json", "Authorization": f"Bearer {card['token']}",
                "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
        if params:
            head["Mcp-Name"] = params.get("name") or params.get("uri") or params.get("taskId")
        head |= {k.replace("_", "-"): v for k, v in fields.items()}
        try:
            with urllib.request.urlopen(urllib.request.Request(url, body.encode(), {k: v for k, v in head.items() if v}),
                                        timeout=PATIENCE) as r:
                return r.status, r.headers, json.loads(r.read() or b"null")
        except urllib.error.HTTPError as e:
            return e.code, e.headers, json.loads(e.read() or b"null")

    check("with the token", post()[0] == 200)
    check("without", post(Authorization=None)[0] == 401 and post(Authorization="Bearer " + "0" * 64)[0] == 401)
    check("by another name", post(Host="evil.example")[0] == 421)
    check("from another page", post(Origin="http://evil.example")[0] == 403 and post(Origin="null")[0] == 403)
    check("as a form of a page", post(Content_Type="text/plain")[0] == 415)
    check("a field that says otherwise", post(Mcp_Method="tools/list")[2]["error"]["code"] == -32020)
    check("one that is missing", post("tools/list", Mcp_Method=None)[2]["error"]["code"] == -32020)
    name = {"name": "ava_status"}
    check("the name of the tool", post("tools/call", name)[0] == 200 and
          post("tools/call", name, Mcp_Name="ava_cancel")[2]["error"]["code"] == -32020)
    coded = "=?base64?" + base64.b64encode(b"ava_status").decode() + "?="
    check("in base64, too", post("tools/call", name, Mcp_Name=coded)[0] == 200)
    check("an unknown method is 404", post("foo/bar")[0] == 404)
    before = lambda can: post(MCP_Protocol_Version=None, Mcp_Method=None, data=json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": can}}))
    s, head, r = before({})
    check("a handshake of before has a session", s == 200 and head["Mcp-Session-Id"] and r["result"]["protocolVersion"] == "2025-11-25", r)
    session = {"MCP_Protocol_Version": "2025-11-25", "Mcp_Session_Id": head["Mcp-Session-Id"]}
    def proposes():
        params = {"name": "ava_propose", "arguments": TASK | {"cwd": os.environ["T"]}}
        events = urllib.request.urlopen(urllib.request.Request(url, json.dumps(
            {"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": params}).encode(),
            {k.replace("_", "-"): v for k, v in session.items()} | {"Content-Type": "application/json", "Authorization": f"Bearer {card['token']}"}),
            timeout=PATIENCE)
        return events, (json.loads(line[6:]) for line in events if line.startswith(b"data: "))

    def ends(events, quietly=False):
        end = time.monotonic() + PATIENCE
        for line in events:  # a comment each 15 s
            if time.monotonic() > end or (quietly and line.startswith(b"data: ")):
                return False
        return True

    session = session | {"Mcp_Session_Id": before(FORMS)[1]["Mcp-Session-Id"]}
    events, data = proposes()
    asked = next(data)
    cancels = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 6}}
    check("a call with a form is cancelled by a notice", asked["method"] == "elicitation/create" and
          post(data=json.dumps(cancels), **session)[0] == 202 and ends(events, quietly=True))
    for what, address, method, code in (("GET is not taken", url, "GET", "405"), ("DELETE is not taken", url, "DELETE", "405"),
                                        ("the page's own paths do not take that token", f"http://{host}/api/v1/runs", "GET", "401")):
        got = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", method, "-H",
                              f"Authorization: Bearer {card['token']}", address], capture_output=True, text=True).stdout
        check(what, got == code, got)
    kill_daemon()
    ava("ps")
    check("address and token hold after a kill", until(lambda: post()[0] == 200))
    events, data = proposes()
    next(data)
    new = json.loads(ava("mcp", "token", "--renew", "--json").stdout)
    check("a new token ends the old one", post()[0] == 401 and new["url"] == url)
    check("and breaks off its streams", ends(events))
    card = new
    check("and is good", post()[0] == 200)


def main():
    b = Bridge(os.environ["T"] + "/project")
    hellos(b)
    bad_arguments(b)
    run = no_forms(b)
    forms(b)
    elsewhere(b)
    wants_all_three(b)
    tasks(b)
    steering(b)
    resources(b, run)
    check("the end of input ends it", b.end() == 0)
    legacy()
    many_forms()
    many_requests()
    cut_behind_an_answer()
    nonblocking()
    bridge_life()
    environment()
    http()


if __name__ == "__main__":
    main()
