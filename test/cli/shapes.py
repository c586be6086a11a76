"""Whether the daemon's answers fit the shapes of doc/api.yaml: all that is required is there, and nothing that it
does not name. The world has a run of each kind of end, one that waits, quotes, a patch, a group, a conversation, a
memory, and agents of Claude Code; played by test_shapes.sh."""

import json
import os
import subprocess
import urllib.request

import jsonschema
import yaml

import api
from api import AVA, check, script, until

T, CLAUDE = os.environ["T"], os.environ["CLAUDE_CONFIG_DIR"]
SRC = T + "/src"
with open(os.environ["SRCDIR"] + "/doc/api.yaml", encoding="utf-8") as f:
    DOC = yaml.safe_load(f)
NAMED = "#/components/schemas/"


def whole(part):
    """A part of an allOf, by its name or as it stands; one that has parts itself as one object."""
    if "$ref" in part:
        return whole(DOC["components"]["schemas"][part["$ref"].removeprefix(NAMED)])
    return closed(part) if "allOf" in part else part


def closed(shape):
    """The same without room for other members; the parts of `allOf` become one object."""
    if isinstance(shape, list):
        return [closed(s) for s in shape]
    if not isinstance(shape, dict):
        return shape
    if "allOf" in shape:
        parts = [whole(part) for part in shape["allOf"]]
        shape = {"type": "object", "required": [name for p in parts for name in p["required"]],
                 "properties": {name: s for p in parts for name, s in p["properties"].items()}}
    return ({"additionalProperties": False} if "properties" in shape else {}) | {k: closed(v) for k, v in shape.items()}


SHAPES = closed(DOC["components"])


def shape_of(method, path, status):
    response = DOC["paths"][path].get(method, {"responses": {}})["responses"].get(str(status), {})
    return response.get("content", {}).get("application/json", {}).get("schema")


# What does not fit, of each method, path and status that was answered, and the members that were there.
misfits = {}
had = set()
# Members that no answer has here: they need a service that is away or does not tell its usage, a page of the web, damage, another machine.
LACKING = {"Agent.ghost", "Citation.url", "Health.matrix", "Health.model_lacks", "MessagePage.unreadable", "MessagePage.unreadable_first", "Patch.changed.exec", "Patch.left_out.path", "Patch.left_out.why",
           "Result.artifacts.more", "Result.artifacts.path", "Result.copy_kept", "Result.estimated", "Result.needs", "Run.estimated", "Run.machine", "Run.place", "RunList.others",
           "Cluster.folders.name", "Cluster.folders.path", "Cluster.folders.problem", "Cluster.folders.tree", "Ask.machine", "Messenger.machine", "AskList.others", "AskList.shared",
           "Order.ask", "Order.machine", "OrderList.unreadable", "OrderList.unreadable.file", "OrderList.unreadable.problem", "Session.trouble", "Stats.top.cost_cents", "Stats.top.id", "Stats.top.model", "Stats.top.role", "Stats.top.started_at", "Stats.top.status",
           "Stats.top.task", "Verified.findings.kind", "Verified.findings.line", "Verified.findings.path", "Verified.findings.what"}


if "MEMBER" not in os.environ: # no PostgreSQL is installed
    LACKING |= {f"Cluster.{name}" for name in DOC["components"]["schemas"]["Cluster"]["properties"]}


def look_at_members(fits, members, data, shape):
    had.update((id(members), name) for name in members if isinstance(data, dict) and name in data)
    return jsonschema.Draft202012Validator.VALIDATORS["properties"](fits, members, data, shape)


Fits = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"properties": look_at_members})


def never_had(shape, name=""):
    """The members of the shape that no answer had."""
    for key, one in shape.items() if isinstance(shape, dict) else enumerate(shape) if isinstance(shape, list) else ():
        if key == "properties":
            yield from (f"{name}.{member}" for member in one if (id(one), member) not in had)
        where = name if key in ("properties", "items", "anyOf") or isinstance(key, int) else f"{name}.{key}".lstrip(".")
        yield from never_had(one, where)


def told(method, path, body=None, id=""):
    """The answer, once it is compared with the shape that it should have."""
    where, _, query = path.partition("?")
    c = api.Socket("x")
    c.request(method.upper(), where.replace("{id}", id) + "?" * bool(query) + query,
              None if body is None else json.dumps(body), {"Content-Type": "application/json"})
    got = c.getresponse()
    data = json.loads(got.read())
    c.close()
    if got.status >= 300:
        raise RuntimeError(f"{method} {path}: {got.status} {data}")
    shape = shape_of(method, where, got.status)
    if shape:
        fits = Fits({"components": SHAPES} | closed(shape))
        misfits.setdefault((method, where, got.status), []).extend(
            f"{'.'.join(map(str, e.absolute_path))}: {e.message[:300]}" for e in fits.iter_errors(data))
    return data


def get(path, id=""):
    return told("get", path, id=id)


def post(path, body=None, id=""):
    return told("post", path, body or {}, id)


RUNS, GROUPS, ASKS, SESSIONS, MEMORIES = (f"/api/v1/{name}" for name in ("runs", "groups", "asks", "sessions", "memories"))
LISTS = [RUNS + "?all=1", ASKS, SESSIONS, MEMORIES, "/api/v1/orders", "/api/v1/triggers", "/api/v1/proposals", "/api/v1/models", "/api/v1/roles", "/api/v1/skills", "/api/v1/items?limit=1000", "/api/v1/logs?limit=1000",
         "/api/v1/claude/sessions"]
FIGURES = ["/api/v1/health", "/api/v1/verify", "/api/v1/stats", "/api/v1/cluster"]


def call(tool, delay_ms=0, **args):
    return {"tool_calls": [{"name": tool, "args": args}], "delay_ms": delay_ms}


END = call("submit_result", output={"path": "kettle.c", "line": 1}, summary="done", confidence=0.5)


def begin(name, *turns, **more):
    """A run whose model says these."""
    return post(RUNS, {"task": "look at the kettle", "cwd": SRC, "confirmed": True, "role": "code_reviewer",
                       "model": script(name, *turns)} | more)["subagent_id"]


def result(run):
    """Of a run that ends by itself; what becomes of it is of a shape, too."""
    get(RUNS + "/{id}", run)
    until(lambda: "summary" in get(RUNS + "/{id}/result?wait=10", run))
    get(RUNS + "/{id}/messages", run)
    return get(RUNS + "/{id}/result", run)


def ask_of(run):
    return until(lambda: next((a for a in get(ASKS)["asks"] if a["run"] == run), None))


def runs_that_end():
    cited = result(begin("cited", call("read_file", path="kettle.c"), END))
    check("a run that cites", cited["citations"] and cited["evidence"]["citations_checked"], cited)
    check("one that fails", result(begin("fails", {"error": {"class": "invalid_request", "message": "no"}}))["error"])
    check("one that hands in nothing", result(begin("silent", *[{"text": "Well."}] * 9))["status"] == "no_result")
    check("one at its limit", result(begin("long", *[call("read_file", path="kettle.c")] * 3, max_iterations=1))["partial"])
    run = begin("slow", call("read_file", path="kettle.c"), call("read_file", 86400000, path="kettle.c"))
    check("one at work", until(lambda: get(RUNS + "/{id}", run).get("progress") and get(RUNS + "/{id}", run)["last_tool_call"]))
    post(RUNS + "/{id}/pause", {"until": "2h"}, run)
    check("which shall pause", get(RUNS + "/{id}", run)["paused_until"])
    check("has no result yet", "summary" not in get(RUNS + "/{id}/result", run))
    check("and is stopped", post(RUNS + "/{id}/cancel", id=run)["status"] == "cancelled")
    check("one that keeps what was cut", result(begin("cut", call("search_codebase", pattern="int", max_results=500), END))["artifacts"])
    os.mkdir(SRC + "/.git")
    with open(SRC + "/.git/HEAD", "w") as head:
        head.write("1" * 40 + "\n")
    patch = begin("patch", call("write_file", path="tea.c", content="1\n"), END, grants=["rw"])
    check("one that proposes a patch", result(patch)["patch"]["changed"])
    get(RUNS + "/{id}/patch", patch)
    a = get(ASKS + "/{id}", patch + ":patch")
    check("which is applied", post(ASKS + "/{id}", {"choice": "yes", "hash": a["hash"]}, a["id"])["done"]["files"] == 1)
    check("and one that changes nothing", result(begin("same", END, grants=["rw"]))["copy_unchanged"])
    checked = result(begin("checked", call("write_file", path="check.sh", content="true\n"), END, grants=["rw"], check="sh check.sh"))["check"]
    check("one with a check that it wrote", checked["passed"] and checked["edited"] == ["check.sh"], checked)
    group = post(GROUPS, {"runs": [{"task": "look", "model": script("one", END)}] * 2, "confirmed": True})["group_id"]
    check("a group", until(lambda: get(GROUPS + "/{id}", group)["status"] == "ended"))
    fails = script("first", {"error": {"class": "invalid_request", "message": "no"}})
    group = post(GROUPS, {"runs": [{"task": "look", "id": "a", "model": fails}, {"task": "look", "id": "b", "after": ["a"]}], "confirmed": True})["group_id"]
    first, last = until(lambda: (g := get(GROUPS + "/{id}", group))["status"] == "ended" and g["runs"])
    check("a run after one that failed", last["group_name"] == "b" and result(last["subagent_id"])["after"] == [first["subagent_id"]], last)


def what_waits():
    run = begin("asks", call("ask_person", question="Which?", choices=["tea", "coffee"], default="tea"), call("read_file", path="kettle.c"), END,
                ask_before=["read_file"])
    a = ask_of(run)
    check("a question", a["kind"] == "question" and get(RUNS + "/{id}", run)["waiting_for"]["choices"], a)
    check("is answered", post(ASKS + "/{id}", {"choice": "tea"}, a["id"])["state"] == "answered")
    check("a call that needs a yes", until(lambda: ask_of(run)["kind"] == "approval"))
    post(GROUPS, {"runs": [{"task": "look"}, {"task": "look again"}]})
    quote = post(RUNS, {"task": "look at the kettle", "cwd": SRC})["proposal_id"]
    check("a quote", get(ASKS + "/{id}", quote)["fields"])
    other = post(ASKS + "/{id}", {"set": {"max_iterations": 90}}, quote)
    check("and the one in its place", get(ASKS + "/{id}", quote)["replaced_by"] == other["id"], other)


def conversation():
    s = post(SESSIONS, {"cwd": SRC, "model": script("talk", {"text": "It boils."}, {"text": "Yes.", "delay_ms": 86400000})})["session_id"]
    post(SESSIONS + "/{id}/messages", {"text": "What does it do?"}, s)
    check("a conversation", until(lambda: get("/api/v1/items?session=" + s)["items"][-1]["text"] == "It boils."))
    post(SESSIONS + "/{id}/messages", {"text": "Really? " + "x" * 100000}, s)
    check("in which Ava is at work", until(lambda: get(SESSIONS + "/{id}", s).get("doing")))
    check("and is stopped", until(lambda: post(SESSIONS + "/{id}/stop", id=s)["status"] == "idle"))
    post(SESSIONS + "/{id}/model", {"model": script("other", {"text": "No."})}, s)


def memories():
    kept = [post(MEMORIES, {"text": f"I like {what}", "tags": ["drinks"]}) for what in ("green tea", "tea", "tea")]
    check("a memory", [k["outcome"] for k in kept] == ["added", "added", "known"] and kept[1]["similar"], kept)
    post(MEMORIES + "/{id}", {"pinned": True}, kept[0]["memory"]["id"])
    get(MEMORIES + "/{id}", kept[0]["memory"]["id"])
    post(MEMORIES + "/remove", {"ids": [kept[1]["memory"]["id"]]})


def claude():
    others = {"name": "me", "team": "we", "activity": "Reads", "taskList": "s1", "reason": "why"}
    with open(os.environ["SRCDIR"] + "/test/golden/claude/card.json", encoding="utf-8") as file:
        card = json.load(file) | others
    os.makedirs(CLAUDE + "/agent-activity/s1")
    with open(f"{CLAUDE}/agent-activity/s1/{card['agentId']}.json", "w", encoding="utf-8") as file:
        json.dump(card, file)
    for what in ("SubagentStart", "SubagentStop"):
        event = {"hook_event_name": what, "session_id": "s1", "agent_id": "a1", "agent_type": "Explore", "cwd": SRC, "last_assistant_message": "done"}
        subprocess.run([AVA, "hook"], input=json.dumps(event).encode(), check=True)
    os.makedirs(CLAUDE + "/tasks/s1")
    with open(CLAUDE + "/tasks/s1/1.json", "w", encoding="utf-8") as file:
        json.dump({"id": "1", "subject": "boil", "description": "it", "activeForm": "boiling", "owner": "me", "status": "pending", "blockedBy": []}, file)
    with open(CLAUDE + "/tasks/s1/2.json", "w", encoding="utf-8") as file:
        file.write("{torn")
    check("agents of Claude Code", len(get("/api/sessions/{id}/agents", "s1")) == 2)
    check("tasks", len(get("/api/sessions/{id}/tasks", "s1")) == 2)


def orders():
    plan = {"when": "@daily", "zone": "UTC", "until": "2225-01-01T00:00:00.000Z", "count": 3, "day_cents": 100}
    id = post("/api/v1/orders", {"task": "look at the kettle", "cwd": SRC, "confirm": "never", "order": plan})["order_id"]
    run = post("/api/v1/orders/{id}/run", {}, id)["subagent_id"]
    result(run)
    check("an order", get("/api/v1/orders/{id}", id)["fired"] == 1 and get(RUNS + "/{id}", run)["order"] == id)
    t = post("/api/v1/triggers", {"name": "up", "order_id": id, "signed": "plain"})
    check("a trigger of it, with a secret", t["secret"] and get("/api/v1/triggers")["triggers"][0]["order_id"] == id)
    bare = post("/api/v1/triggers", {"name": "bare", "order_id": id})["token"]
    result(post("/api/v1/triggers/{id}?token=" + bare, {}, "bare")["subagent_id"])
    check("and its end", post("/api/v1/triggers/{id}/rm", {}, "bare")["name"] == "bare")
    check("is paused, and goes on", [post(f"/api/v1/orders/{{id}}/{verb}", {}, id)["state"] for verb in ("pause", "unpause")] == ["paused", "active"])


def everything():
    for path in FIGURES:
        get(path)
    get(RUNS + "?all=1&counts=1")
    return [next(v for v in get(path).values() if isinstance(v, list)) for path in LISTS]


def main():
    os.makedirs(SRC)
    with open(SRC + "/kettle.c", "w", encoding="utf-8") as file:
        file.writelines(f"int kettle_{i}(void); /* {'boils ' * 20}*/\n" for i in range(2000))
    everything() # of what is not there yet
    for part in (runs_that_end, what_waits, conversation, memories, claude, orders):
        part()
    check("a role", get("/api/v1/roles/{id}", "boiler")["output_schema"] and get("/api/v1/roles")["broken"])
    check("a skill", get("/api/v1/skills/{id}", "kettle")["text"] and get("/api/v1/skills")["broken"])
    code = post("/api/v1/doors/{id}", {"pair": True}, "telegram")["code"]
    urllib.request.urlopen(os.environ["BOT"] + "/test/say", json.dumps({"from": 77, "text": code}).encode()).close()
    check("a messenger", until(lambda: get("/api/v1/health")["telegram"]["paired"]))
    check("no list is empty", all(everything()))
    if "MEMBER" in os.environ:
        api.ROOT = os.environ["MEMBER"]
        check("a member of a cluster", get("/api/v1/cluster")["cluster"]["state"] == "member")
    for (method, path, status), found in misfits.items():
        check(f"{method} {path}: {status} has its shape", not found, *dict.fromkeys(found))
    lacking = [p for p, methods in DOC["paths"].items() if shape_of("get", p, 200) and ("get", p, 200) not in misfits]
    check("each shape of a GET is looked at", not lacking, lacking)
    odd = set(never_had(SHAPES["schemas"])) ^ LACKING
    check("each member was there, but those that cannot", not odd, *odd)


main()
