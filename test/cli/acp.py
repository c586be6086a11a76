"""An editor that speaks ACP with `ava acp`, for test_acp.sh and test/peers/acp. Each line that the
program writes goes to $ACP_LINES too, where it is set, with the method that it answers."""

import hashlib
import json
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time

import api
from api import check, daemon_pid, script, until

LIMIT = int(os.environ.get("LIMIT", "60")) * (4 if os.environ.get("AVA_SANITIZER") else 1)
T = os.environ["T"]
CWD = T + "/tree"
FIND = "Find where parse_header is defined"


def daemon(path, body=None):
    """The answer of the daemon itself."""
    return api.answer("GET" if body is None else "POST", path, body)[1]


def ava(*args, **more):
    return api.ava(*args, cwd=CWD, **more).stdout


def spawns(**args):
    return {"tool_calls": [{"name": "spawn_subagent",
                            "args": {"role": "code_reviewer", "task": "find parse_header", **args}}]}


def start_run(session, model=None):
    """A subagent of that conversation that works until it is cancelled, or as the script says."""
    return daemon("/runs", {"task": "find it", "role": "code_reviewer", "session_id": session, "cwd": CWD,
                            "model": model or script("hold", {"text": "late", "delay_ms": 600000}),
                            "confirmed": True})["subagent_id"]


DONE = {"tool_calls": [{"name": "submit_result", "args": {"output": None, "summary": "It is in parser.c.", "confidence": 1}}]}


def tell_run(session):
    """A subagent of that conversation that has ended when Ava tells of it; its id."""
    p = daemon("/runs", {"task": "find it", "role": "code_reviewer", "session_id": session, "cwd": CWD, "model": script("done", DONE)})
    return daemon(f"/proposals/{p['proposal_id']}/confirm", {})["subagent_id"]


def asks_person(**args):
    return script("asks-person", {"tool_calls": [{"name": "ask_person", "args": {"question": "Which parser?", **args}}]}, DONE)


class Editor:
    """One `ava acp`; `answer(request)` says what the person does with a request of its. It is closed with its case."""
    opened = []

    def __init__(self, *options, capabilities=None, answer=None, start=True, stderr=None, **env):
        Editor.opened.append(self)
        self.program = subprocess.Popen([os.environ["AVA"], "acp", *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=stderr, env={**os.environ, **env})
        self.lines = queue.Queue()
        self.updates, self.asked, self.sent, self.next = [], [], {}, 0
        self.taken_back = []
        self.answer = answer or (lambda request: "yes")
        threading.Thread(target=self._read, daemon=True).start()
        if start:
            self.initialized = self.call("initialize", protocolVersion=1,
                                         clientCapabilities=capabilities or {})

    def _read(self):
        for line in self.program.stdout:
            m = json.loads(line)
            if os.environ.get("ACP_LINES"):
                with open(os.environ["ACP_LINES"], "a", encoding="utf-8") as f:
                    f.write(json.dumps({"answers": self.sent.get(m.get("id")), "line": m}) + "\n")
            self.lines.put(m)
        self.lines.put(None)

    def write(self, data):
        self.program.stdin.write(data if isinstance(data, bytes) else data.encode())
        self.program.stdin.flush()

    def put(self, **members):
        self.write(json.dumps({"jsonrpc": "2.0", **members}) + "\n")

    def send(self, method, **params):
        self.next += 1
        self.sent[self.next] = method
        self.put(id=self.next, method=method, params=params)
        return self.next

    def notify(self, method, **params):
        self.put(method=method, params=params)

    def take(self, limit=LIMIT):
        """The next message that is no update and no request; those are kept, and answered."""
        end = time.monotonic() + limit
        while True:
            m = self.lines.get(timeout=max(end - time.monotonic(), 0.01))
            if m is None:
                raise EOFError("ava acp has ended")
            if "id" in m and "method" not in m:
                return m
            if "id" in m:
                self.asked.append(m)
                choice = self.answer(m)
                if choice is not None:
                    self.reply(m, choice)
            elif m["method"] == "session/update":
                self.updates.append(m["params"])
            elif m["method"] == "$/cancel_request":
                self.taken_back.append(m["params"]["requestId"])

    def reply(self, request, choice):
        if request["method"] == "elicitation/create" or isinstance(choice, dict):
            result = choice
        elif choice == "cancelled":
            result = {"outcome": {"outcome": "cancelled"}}
        else:
            result = {"outcome": {"outcome": "selected", "optionId": choice}}
        self.put(id=request["id"], result=result)

    def until(self, number):
        m = self.take()
        assert m["id"] == number, (number, m)
        return m

    def call(self, method, **params):
        m = self.until(self.send(method, **params))
        assert "result" in m, m
        return m["result"]

    def refused(self, method, **params):
        m = self.until(self.send(method, **params))
        assert "error" in m, m
        return m["error"]

    def new(self, **more):
        return self.call("session/new", cwd=CWD, mcpServers=[], **more)["sessionId"]

    def prompt(self, session, text):
        return self.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    def start_prompt(self, session, text):
        return self.send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    def kinds(self, kind):
        return [u["update"] for u in self.updates if u["update"]["sessionUpdate"] == kind]

    def said(self, kind="agent_message_chunk"):
        return "".join(u["content"]["text"] for u in self.kinds(kind))

    def poll(self):
        """What has come meanwhile; no answer may be among it."""
        try:
            raise AssertionError(self.take(0.1))
        except queue.Empty:
            return True

    def close(self):
        self.program.stdin.close()
        return self.program.wait(LIMIT)

    def end(self):
        try:
            self.close()
        except (subprocess.TimeoutExpired, OSError):
            self.program.kill()


def begin(*options, say=None, **more):
    """An editor and a session of its, in which that was said."""
    e = Editor(*options, **more)
    s = e.new()
    if say:
        e.prompt(s, say)
    return e, s


def asks(e, session, text, n=1):
    """A prompt, until so many requests have come; its id."""
    number = e.start_prompt(session, text)
    until(lambda: e.poll() and len(e.asked) == n)
    return number


def play(case, *args):
    try:
        case(*args)
        return True
    except (subprocess.TimeoutExpired, LookupError, AssertionError, EOFError, queue.Empty, OSError) as wrong:
        return check(f"{case.__name__}{args} goes through", False, repr(wrong)[:3000])
    finally:
        while Editor.opened:
            Editor.opened.pop().end()


def test_turn():
    """From nothing to a result: quote, permission, run, what Ava says of it."""
    e = Editor("--wait")
    check("version 1 is spoken, with load, list, resume and close",
          e.initialized["protocolVersion"] == 1 and e.initialized["agentCapabilities"]["loadSession"]
          and set(e.initialized["agentCapabilities"]["sessionCapabilities"]) == {"list", "resume", "close"},
          e.initialized)
    s = e.new()
    check("the prompt ends", e.prompt(s, FIND)["stopReason"] == "end_turn")
    check("every update came before the answer", e.lines.empty())
    ask = e.asked[0]["params"]
    check("whose title has all of it, since there are editors that show nothing else", "\n" not in ask["toolCall"]["title"]
          and all(x in ask["toolCall"]["title"] for x in ("find where parse_header", "Time: ", "Cost: ", "Tools: ")), ask)
    begun = next(u for u in e.kinds("tool_call") if u["toolCallId"].startswith("P-"))
    check("that of its call is cut, and says so", begun["title"].endswith("…") and ask["toolCall"]["title"].startswith(begun["title"][:-1]), begun)
    check("a quote is a permission, with its text, whose lines are lines in Markdown too, and its choices",
          len(e.asked) == 1 and e.asked[0]["method"] == "session/request_permission"
          and "  \nProceed? [Yes/No]" in ask["toolCall"]["content"][0]["content"]["text"]
          and [o["name"] for o in ask["options"]] == ["Yes", "No"], e.asked)
    calls = [(u["toolCallId"][0], u["status"]) for u in e.kinds("tool_call") + e.kinds("tool_call_update")]
    check("quote and run are tool calls that complete",
          ("P", "pending") in calls and ("P", "completed") in calls and ("S", "in_progress") in calls
          and ("S", "completed") in calls, e.updates)
    check("the plan has the subagent, pending, at work, done",
          [u["entries"][0]["status"] for u in e.kinds("plan")] == ["pending", "in_progress", "completed"],
          e.kinds("plan"))
    check("the words of every channel, and the finding",
          "Spawning CodeReviewer subagent (S-" in e.said() and "[CodeReviewer]: Complete (" in e.said()
          and "parse_header is defined at parser.c:1" in e.said(), e.said())
    check("usage, cost and title are told", e.kinds("usage_update")[0]["size"] > 0
          and e.kinds("usage_update")[0]["cost"]["currency"] == "USD"
          and e.kinds("session_info_update")[0]["title"] == FIND, e.updates)
    check("what the person said comes back only in a session that is loaded",
          e.kinds("user_message_chunk") == [], e.updates)
    check("the end of the input ends it in order", e.close() == 0)
    e = Editor()
    e.call("session/load", sessionId=s, cwd=CWD, mcpServers=[])
    check("a load shows it all: what was said, the spawn, its end and the finding, in order", e.said("user_message_chunk").startswith(FIND), e.updates)
    said = e.said()
    check("each once", said.count("Spawning CodeReviewer subagent (S-") == said.count("]: Complete (") == said.count("parser.c:1.") == 1
          and said.find("Spawning") < said.find("]: Complete (") < said.find("parser.c:1."), said)
    check("each a paragraph of its own", ")...\n\n" in said and "\n\nFrom S-" in said, said)
    plan = e.kinds("plan")[-1]["entries"][0]
    check("and the plan as it is, where runs of one role can be told apart", plan["status"] == "completed" and plan["content"].startswith("CodeReviewer: S-"), plan)


def test_strange_answers():
    """What a person never chose starts nothing, and what was chosen starts once."""
    e, s = begin(answer=lambda r: "maybe later, who knows", say=FIND)
    check("words that are no answer start nothing, and say so", "Spawning" not in e.said()
          and len(e.kinds("agent_message_chunk")) > 1 and daemon("/proposals")["proposals"] != [], e.updates)
    ava("reject", daemon("/proposals")["proposals"][0]["proposal_id"])
    f = Editor(capabilities={"elicitation": {"form": {}}})
    for editor, name, answer in (
            (e, "a cancelled one that names an option is no answer to a permission", {"outcome": {"outcome": "cancelled", "optionId": "yes"}}),
            (e, "a form's is no answer to a permission", {"action": "accept"}),
            (f, "an option is no answer to a form", {"outcome": {"outcome": "selected", "optionId": "yes"}}),
            (f, "a condition that is no text is no answer to a form", {"action": "accept", "content": {"terms": 5}})):
        editor.answer, editor.updates = lambda r, answer=answer: answer, []
        editor.prompt(editor.new(), FIND)
        check(name, "Spawning" not in editor.said() and "waits for your answer" in editor.said(), editor.said())
        ava("reject", daemon("/proposals")["proposals"][0]["proposal_id"])
    f.close()
    e.answer, e.asked = lambda r: None, e.asked[:1]
    n = asks(e, e.new(), FIND, 2)
    for _ in range(3):
        e.reply(e.asked[1], "yes")
    e.put(id=e.asked[1]["id"] + 1, result={})
    check("an answer that comes three times is one", e.until(n)["result"]["stopReason"] == "end_turn"
          and e.said().count("Spawning") == 1, e.said())
    e.updates = []
    e.answer = lambda r: None
    n = asks(e, e.new(), FIND, 3)
    e.put(id=e.asked[2]["id"], error={"code": -32601, "message": "no"})
    check("an editor that cannot ask leaves the quote waiting",
          e.until(n)["result"]["stopReason"] == "end_turn" and "waits for your answer" in e.said(), e.said())


def test_starts_a_daemon():
    """An editor that is opened while none runs."""
    e = Editor()
    os.kill(daemon_pid(), signal.SIGKILL)
    s = e.new()
    check("a conversation that starts the daemon is answered once", e.poll() and s)
    os.kill(daemon_pid(), signal.SIGKILL)
    check("so is the next, over a connection that broke", e.new() and e.poll())


def test_torn_answer():
    """A yes in which a character is none is no yes, and nobody waits for it."""
    e = Editor(answer=lambda r: None)
    n = asks(e, e.new(), FIND)
    e.write('{"jsonrpc":"2.0","id":%d,"result":{"outcome":{"outcome":"selected","optionId":"yes\\ud83d"}}}\n' % e.asked[0]["id"])
    check("an answer that is torn ends the turn", e.until(n)["result"]["stopReason"] == "end_turn"
          and "please answer yes or no" in e.said() and "Spawning" not in e.said(), e.said())
    ava("reject", daemon("/proposals")["proposals"][0]["proposal_id"])
    e = Editor(answer=lambda r: None)
    n = asks(e, e.new(), FIND)
    e.write('{"jsonrpc":"2.0","id":"%d","result":{"x":"%s"}}\n' % (e.asked[0]["id"], "y" * (5 << 20)))
    check("so does one that is too long, also under its id as a text", e.until(n)["result"]["stopReason"] == "end_turn", e.said())
    ava("reject", daemon("/proposals")["proposals"][0]["proposal_id"])


def test_rights():
    """A run with all three rights has a yes of its own, in an editor with forms, too."""
    e, s = begin("--model", script("rights", {"text": "Well."}, {"text": "Well."}),
                 capabilities={"elicitation": {"form": {}}}, say="hello")
    p = daemon("/runs", {"task": "find it", "role": "researcher", "session_id": s, "cwd": CWD,
                         "grants": ["fetch_any"], "model": script("hold", {
                             "text": "late", "delay_ms": 600000})})
    check("it asks for all three", p.get("quote", {}).get("allThree"), p)
    e.answer = lambda r: r["params"]["options"][0]["optionId"]
    e.prompt(s, "go on")
    check("by a button that says so", len(e.asked) == 1
          and e.asked[0]["params"]["options"][0]["name"] == "Yes, all three", e.asked)
    check("which starts it", "Spawning Researcher" in e.said(), e.said())
    check("and is not shown as said elsewhere", e.kinds("user_message_chunk") == [], e.updates)
    ava("cancel", "--all")


def test_no_daemon():
    e = Editor(AVA_AVAD="/bin/false", AVA_DATA_ROOT=T + "/nobody")
    error = e.refused("session/new", cwd=CWD, mcpServers=[])
    check("a daemon that does not start is a sentence", error["code"] == -32603 and error["message"], error)
    check("and the program goes on", e.refused("session/list")["code"] == -32603)
    check("until its input ends", e.close() == 0)
    with open(T + "/stuck-avad", "w", encoding="utf-8") as f:
        f.write('#!/bin/sh\necho $$ >"$T/stuck.pid"\nexec sleep 600\n')
    os.chmod(T + "/stuck-avad", 0o755)
    with open(T + "/stuck.err", "w+", encoding="utf-8") as told:
        e = Editor(AVA_AVAD=T + "/stuck-avad", AVA_DATA_ROOT=T + "/stuck", stderr=told)
        e.send("session/new", cwd=CWD, mcpServers=[])
        check("what is waited for is said", until(lambda: "waiting for the daemon to start" in open(told.name).read()))
        e.program.send_signal(signal.SIGTERM)
        check("a signal ends the wait", e.program.wait(20) == 0)
    os.kill(int(open(T + "/stuck.pid").read()), signal.SIGKILL)


def test_form():
    """Who can show forms has other terms with the yes."""
    fields = {"terms": "max 20 cents, at most 2 minutes"}
    e, s = begin("--wait", capabilities={"elicitation": {"form": {}}},
                 answer=lambda r: {"action": "accept", "content": fields}, say=FIND)
    schema = e.asked[0]["params"]["requestedSchema"]["properties"]
    check("a quote is a form", e.asked[0]["method"] == "elicitation/create"
          and list(schema) == ["terms"] and schema["terms"]["type"] == "string", e.asked)
    check("and what was filled in is not said elsewhere", "max 20 cents" not in e.said("user_message_chunk"), e.updates)
    run = daemon("/runs?all=1&limit=1")["runs"][0]
    check("the run has those of the person", run["limits"]["max_cost_cents"] == 20
          and run["limits"]["timeout"] == 120, run)
    said = [json.loads(ava("logs", "--type", t, "-o", "json", "--last", "1"))["content"] for t in ("UserMessage", "SpawnConfirmed")]
    check("what was said and the yes name the door", [x["origin"] for x in said] == ["acp", "acp"], said)
    raised = iter([{"action": "accept", "content": {"terms": "max $3"}},
                   {"action": "decline"}])
    e.answer, e.asked = lambda r: next(raised), []
    e.prompt(e.new(), FIND)
    check("a raise is quoted again, and can be declined", len(e.asked) == 2
          and "$3.00" in e.asked[1]["params"]["message"], e.asked)


def test_background():
    """A turn does not wait for a subagent; what happened since comes first in the next one."""
    e, s = begin("--model", script("talk", spawns(), {"text": "Shall it?"}, {"text": "It found it."},
                                   {"text": "Good."}))
    e.answer = lambda r: "No"
    e.prompt(s, "find it")
    run = start_run(s)
    e.updates = []
    check("the turn ends while it works", e.prompt(s, "and?")["stopReason"] == "end_turn", e.updates)
    check("and tells that it began", f"Spawning CodeReviewer subagent ({run})" in e.said(), e.said())
    e.updates = []
    ava("cancel", run)
    check("nothing comes between two turns", e.lines.empty())
    e.prompt(s, "now?")
    first = e.updates[0]["update"].get("content", {}).get("text", "")
    check("its end comes first in the next one", "[CodeReviewer]: Cancelled" in first, e.updates)


def test_order():
    """Who hears that a turn has ended has all of it, also where what was before is still read from files: a
    prompt that ended by it left its text for the next one."""
    s = daemon("/sessions", {"cwd": CWD, "model": script("many", *({"text": f"It is {i}."} for i in range(12)))})["session_id"]
    for _ in range(300):
        daemon("/audit", {"type": "filler", "session_id": s, "data": {"text": "x" * 8000}})
    wrong = []
    for i in range(12):
        with socket.socket(socket.AF_UNIX) as stream:
            stream.connect(os.environ["AVA_DATA_ROOT"] + "/ava.sock")
            stream.sendall(f"GET /api/v1/events?session={s}&after=1 HTTP/1.1\r\nHost: ava\r\n\r\n".encode())
            stream.settimeout(LIMIT)
            seen = stream.recv(100)
            daemon(f"/sessions/{s}/messages", {"text": f"and {i}?"})
            while b'"state":"idle"' not in seen:
                seen += stream.recv(65536)
            if f'"text":"It is {i}."' not in seen.partition(b'"state":"idle"')[0].decode():
                wrong.append(i)
    check("a turn ends behind its events", not wrong, wrong)


def test_cancel():
    e, s = begin(answer=lambda r: None)
    n = e.start_prompt(s, FIND)
    check("a permission is asked", until(lambda: e.poll() and e.asked), e.updates)
    e.notify("session/cancel", sessionId=s)
    e.reply(e.asked[0], "cancelled")
    check("a cancel while it is asked ends the turn",
          e.until(n)["result"]["stopReason"] == "cancelled", e.updates)
    check("and starts nothing", daemon("/sessions/" + s)["live_runs"] == 0)


def test_group():
    """Several subagents are one quote, and a plan of several."""
    spawn = {"name": "spawn_parallel", "args": {"runs": [
        {"role": "code_reviewer", "task": "find parse_header"}, {"role": "code_reviewer", "task": "find return"}]}}
    e = Editor("--wait", "--model", script("group", {"tool_calls": [spawn]}, {"text": "Shall they?"},
                                           *[{"text": "Done."}] * 3),
               capabilities={"elicitation": {"form": {}}},
               answer=lambda r: {"action": "accept", "content": {"terms": "at most 2 minutes"}})
    e.prompt(e.new(), "find both")
    check("a group is asked for once", len(e.asked) == 1
          and e.asked[0]["params"]["message"].startswith("I'll spawn 2 subagents"), e.asked, e.updates)
    said = json.loads(ava("logs", "--type", "SpawnConfirmed", "-o", "json", "--last", "1"))["content"]
    check("and has the terms of the person", said["changes"] == "at most 2 min in all", said)
    check("and both are in the plan, and done",
          [x["status"] for x in e.kinds("plan")[-1]["entries"]] == ["completed"] * 2, e.kinds("plan"))


def test_elsewhere():
    """A quote that is answered in a terminal while the editor shows it."""
    e, s = begin(answer=lambda r: None)
    n = asks(e, s, FIND)
    ava("reject", e.asked[0]["params"]["toolCall"]["toolCallId"])
    check("the turn ends", e.until(n)["result"]["stopReason"] == "end_turn", e.updates)
    check("the permission is taken back", e.taken_back == [e.asked[0]["id"]], e.taken_back)
    check("and the quote failed", e.kinds("tool_call_update")[-1]["status"] == "failed", e.updates)
    e.reply(e.asked[0], "yes")
    check("a late answer starts nothing", e.prompt(s, "hello")["stopReason"] == "end_turn"
          and daemon("/sessions/" + s)["live_runs"] == 0)


def test_two():
    """Sessions beside each other have turns of their own."""
    e = Editor("--model", script("two", {"text": "Never.", "delay_ms": 600000}, {"text": "Here."}))
    s, other = e.new(), e.new()
    for session in (s, other):
        n = e.start_prompt(session, "go on")
        until(lambda session=session: daemon("/sessions/" + session)["status"] == "busy")
    e.notify("session/cancel", sessionId=other)
    check("a turn that is cancelled says so", e.until(n)["result"]["stopReason"] == "cancelled")
    check("and is not the other one", daemon("/sessions/" + s)["status"] == "busy")
    check("it goes on", e.prompt(other, "second")["stopReason"] == "end_turn" and "Here." in e.said(), e.updates)
    check("none of it in the other session", all(u["sessionId"] != s or "content" not in u["update"] for u in e.updates), e.updates)


def test_mid_turn():
    """Whatever comes in mid-turn, each prompt has one answer, and the session goes on."""
    slow = {"text": "Never.", "delay_ms": 600000}
    for what, more in (("session/load", {"cwd": CWD, "mcpServers": []}), ("session/resume", {"cwd": CWD}), ("session/close", {})):
        e, s = begin("--model", script("mid", {"text": "First."}, slow, {"text": "Third."}), say="one")
        n = e.start_prompt(s, "two")
        until(lambda: daemon("/sessions/" + s)["status"] == "busy")
        other = e.send(what, sessionId=s, **more)
        check(f"{what} in mid-turn ends the turn", e.until(n)["result"]["stopReason"] == "cancelled")
        check("and is answered", "result" in e.until(other))
        if what == "session/close":
            e.call("session/load", sessionId=s, cwd=CWD, mcpServers=[])
        for _ in range(3):
            e.notify("session/cancel", sessionId=s)
        check("cancels without a turn do nothing", e.prompt(s, "three")["stopReason"] == "end_turn" and "Third." in e.said(), e.updates)
        check("each was said once", [x["message"]["content"][0]["text"] for x in daemon(f"/sessions/{s}/messages")["entries"]
                                     if x.get("message", {}).get("role") == "user"] == ["one", "two", "three"])
        e.close()
    e, s = begin("--model", script("many", slow, slow, slow, {"text": "Last."}))
    sent = [e.start_prompt(s, f"prompt {i}") for i in range(4)]
    answers = {m["id"]: m["result"]["stopReason"] for m in (e.take() for _ in sent)}
    check("prompts in a row: the last one is answered, the others are cancelled, in order", list(answers) == sent
          and list(answers.values()) == ["cancelled"] * 3 + ["end_turn"], answers)


def test_bad():
    e = Editor(start=False)
    check("initialize comes first", e.refused("session/new", cwd=CWD, mcpServers=[])["code"] == -32600)
    check("whatever version is asked for, ours is the answer",
          [e.call("initialize", **x)["protocolVersion"] for x in ({}, {"protocolVersion": 7}, {"protocolVersion": "1"})] == [1] * 3)
    for name, line, code in (("no JSON", b"{\n", -32700), ("no UTF-8", b'{"a":"\xff"}\n', -32600),
                             ("no object", b"[]\n", -32600), ("no version", b'{"id":1,"method":"x"}\n', -32600),
                             ("an id that is none", b'{"jsonrpc":"2.0","id":{},"method":"x"}\n', -32600)):
        e.write(line)
        check(f"a line with {name} is {code}", e.take()["error"]["code"] == code)
    e.write(b'{"jsonrpc":"2.0","id":2,"result":{},"error":{"code":1,"message":"x"}}\n')
    m = e.take()
    check("an answer that is broken is not taken for a request of that id", m["error"]["code"] == -32600 and m["id"] is None, m)
    e.write(b"\n" + b"x" * (5 << 20) + b"\n")
    check("a line that is too long is refused once", e.take()["error"]["code"] == -32600)
    e.write(b'{"jsonrpc":"2.0","id":99,"result":{}}\n{"jsonrpc":"2.0","method":"$/nobody"}\n')
    s = e.new()
    text = [{"type": "text", "text": "x"}]
    for method, params, code in (
            ("session/fork", {}, -32601), ("session/new", {}, -32602),
            ("session/new", {"cwd": "here", "mcpServers": []}, -32602),
            ("session/new", {"cwd": T + "/nowhere", "mcpServers": []}, -32002),
            ("session/prompt", {"sessionId": "nope", "prompt": text}, -32002),
            ("session/prompt", {"sessionId": s}, -32602),
            ("session/prompt", {"sessionId": s, "prompt": []}, -32602),
            ("session/prompt", {"sessionId": s, "prompt": ["x"]}, -32602),
            ("session/prompt", {"sessionId": s, "prompt": [{"type": "text", "text": "y" * (2 << 20)}]}, -32602),
            ("session/load", {"sessionId": "../../etc", "cwd": CWD, "mcpServers": []}, -32002),
            ("session/load", {"sessionId": "00000000-0000-4000-8000-000000000000", "cwd": CWD,
                              "mcpServers": []}, -32002),
            ("session/close", {"sessionId": 3}, -32002),
            ("session/list", {"cursor": "x"}, -32602),
            ("session/set_config_option", {"sessionId": s, "configId": "model", "value": "nope/none"}, -32602),
            ("session/set_config_option", {"sessionId": s, "configId": "speed", "value": "1"}, -32602)):
        error = e.refused(method, **params)
        check(f"{method} {list(params)} is {code}", error["code"] == code and error["message"], error)
    check("and after all that it works", e.prompt(s, "hello")["stopReason"] == "end_turn")
    many = [e.send("session/new", cwd=CWD, mcpServers=[]) for _ in range(260)]
    answers = [e.take() for _ in many]
    check("there is a bound to sessions, which leaves room for an editor that closes none",
          sum("result" in m for m in answers) == 255, answers[-2:])


def test_killed():
    """The daemon is killed while the editor asks, and where nothing was said; in mid-turn: acp_crash.py."""
    with open(T + "/slow-avad", "w", encoding="utf-8") as f:
        f.write('#!/bin/sh\nsleep 2.5\nexec "$AVAD" "$@"\n')
    os.chmod(T + "/slow-avad", 0o755)
    e = Editor(answer=lambda r: None, AVA_AVAD=T + "/slow-avad")
    n = asks(e, e.new(), FIND)
    os.kill(daemon_pid(), signal.SIGKILL)
    e.reply(e.asked[0], "yes")
    check("a yes that comes after the daemon was killed starts what was quoted, once, however long the next one takes to start",
          e.until(n)["result"]["stopReason"] == "end_turn" and e.said().count("Spawning") == 1, e.updates)
    e.close()
    e = Editor()
    quiet = e.new()
    os.kill(daemon_pid(), signal.SIGKILL)
    check("one in which nothing was said is begun again under its id",
          e.prompt(quiet, "go")["stopReason"] == "end_turn", e.updates)


def test_failed():
    """A turn in which Ava cannot answer is an error with the reason; the next one is none."""
    e, s = begin("--model", script("fail", {"text": "Hello."}), say="hello")
    error = e.until(e.start_prompt(s, "again")).get("error", {})
    check("it is", error.get("code") == -32603 and "the script has ended" in error["message"], error)
    tell_run(s)
    check("Ava could not tell of a run meanwhile", until(lambda: ava("logs", "--type", "Error", "--session", s, "--count").strip() == "2"),
          ava("logs", "--type", "Error", "--session", s, "--count"))
    script("fail", {}, {}, {}, *[{"text": "Here again."}] * 5)
    e.updates = []
    check("an old failure is none of the next turn", e.prompt(s, "and now?")["stopReason"] == "end_turn"
          and "Here again." in e.said(), e.updates)
    check("and is told", "the script has ended" in e.said(), e.said())


def test_gone():
    """An editor that disappears ends its turn and no subagent."""
    e, s = begin("--model", script("gone", {"text": "Hello."}, {"text": "Never.", "delay_ms": 600000}), say="hello")
    run = start_run(s)
    e.start_prompt(s, "go on")
    until(lambda: daemon("/sessions/" + s)["status"] == "busy")
    check("it ends", e.close() == 0)
    now = daemon("/sessions/" + s)
    check("the turn with it", until(lambda: daemon("/sessions/" + s)["status"] == "idle"), now)
    check("not the subagent", daemon("/runs/" + run)["status"] == "running")
    ava("cancel", run)
    e, s = begin("--model", script("term", {"text": "Never.", "delay_ms": 600000}))
    e.start_prompt(s, "go on")
    until(lambda: daemon("/sessions/" + s)["status"] == "busy")
    e.program.send_signal(signal.SIGTERM)
    check("a signal does the same", e.program.wait(LIMIT) == 0
          and until(lambda: daemon("/sessions/" + s)["status"] == "idle"))
    read, write = os.pipe()
    with subprocess.Popen([os.environ["AVA"], "acp"], stdin=subprocess.PIPE, stdout=write) as p:
        os.close(write)
        os.close(read)
        p.stdin.write(b"[]\n" * 2)
        p.stdin.flush()
        check("who reads no more ends it", p.wait(LIMIT) == 0)


def test_no_folder():
    """A conversation whose folder is gone goes on in the client's."""
    gone = T + "/gone"
    os.makedirs(gone)
    e = Editor("--model", script("moved", {"text": "Hello."}, {"tool_calls": [{"name": "read_file", "args": {"path": "parser.c"}}]},
                                 {"text": "It is read."}, {"text": "From the terminal."}))
    s = e.call("session/new", cwd=gone, mcpServers=[])["sessionId"]
    e.prompt(s, "one")
    e.close()
    os.rmdir(gone)
    e = Editor()
    e.call("session/load", sessionId=s, cwd=CWD, mcpServers=[])
    e.updates = []
    check("in an editor", e.prompt(s, "two")["stopReason"] == "end_turn" and "It is read." in e.said(), e.updates)
    check("with its files", any("parse_header" in json.dumps(u) for u in e.kinds("tool_call_update")), e.updates)
    check("and it is told", daemon("/sessions/" + s)["cwd"] == CWD)
    e.close()
    out = ava("chat", "-c", s, input="three\n")
    check("in a terminal", "From the terminal." in out, out)


def test_sessions():
    """A conversation goes on in the terminal, and back."""
    e, s = begin("--model", script("both", {"tool_calls": [{"name": "read_file", "args": {"path": "parser.c"}}]},
                                   {"text": "From the editor."}, {"text": "From the terminal."},
                                   {"text": "Back."}), say="one")
    call, done = e.kinds("tool_call")[0], e.kinds("tool_call_update")[0]
    check("a call of Ava's is a tool call with its file and what came of it",
          call["title"] == "read_file: parser.c" and call["kind"] == "read" and call["rawInput"]["path"] == "parser.c"
          and done["status"] == "completed" and "parse_header" in json.dumps(done), e.updates)
    out = ava("chat", "-c", s, input="two\n")
    check("the terminal goes on with it", "From the terminal." in out, out)
    e.updates = []
    e.prompt(s, "three")
    texts = [u["update"]["content"]["text"] for u in e.updates if "text" in str(u["update"].get("content"))]
    check("what was said there comes first", [t for t in texts if t.strip()] [:3] ==
          ["two", "From the terminal.", "\n\nBack."] or (texts[0] == "two" and "From the terminal." in texts[1]), texts)
    e.close()
    e = Editor()
    listed = [x for x in e.call("session/list", cwd=CWD)["sessions"] if x["sessionId"] == s]
    check("it is listed", listed and listed[0]["title"] == "one" and listed[0]["cwd"] == CWD, listed)
    check("not for another folder", e.call("session/list", cwd="/")["sessions"] == [])
    e.call("session/load", sessionId=s, cwd=CWD, mcpServers=[])
    check("a load brings all of it before its answer", e.said("user_message_chunk") == "onetwothree"
          and "From the editor." in e.said() and "Back." in e.said() and e.kinds("tool_call"), e.updates)
    e.updates = []
    e.call("session/resume", sessionId=s, cwd=CWD)
    check("a resume nothing", e.said() == "" and e.said("user_message_chunk") == "", e.updates)
    options = e.call("session/set_config_option", sessionId=s, configId="subagents", value="wait")
    check("subagents can be waited for",
          options["configOptions"][1]["currentValue"] == "wait", options)
    e.call("session/close", sessionId=s)
    check("a session that is closed is gone here", e.refused("session/close", sessionId=s)["code"] == -32002)
    check("and stands in the daemon", daemon("/sessions/" + s)["title"] == "one")
    new = e.call("session/new", cwd=CWD, mcpServers=[{"name": "x", "command": "/bin/x", "args": [], "env": []}])
    other = script("other", {"text": "Of the other model."})
    e.call("session/set_config_option", sessionId=new["sessionId"], configId="model", value=other)
    e.updates = []
    e.prompt(new["sessionId"], "hello")
    check("a new one takes another model, under its id", "Of the other model." in e.said()
          and daemon("/sessions/" + new["sessionId"])["model"] == other, e.updates)
    check("and says that the editor's MCP servers are not used", "MCP servers" in e.said(), e.said())


def test_pi():
    """What pi has written into the file of a conversation is shown as well: its ids are no numbers of the journal, and a text stands alone."""
    e, s = begin("--model", script("pi", {"text": "Hello."}), say="one")
    e.close()
    path = next(os.path.join(d, x) for d, _, names in os.walk(os.environ["AVA_DATA_ROOT"] + "/sessions") for x in names if x.endswith(s + ".jsonl"))
    with open(path, "a", encoding="utf-8") as f:
        for i, (role, content) in enumerate((("user", "Said in pi."), ("assistant", [{"type": "text", "text": "Answered in pi."}]))):
            f.write(json.dumps({"type": "message", "id": f"fbcdef1{i}", "parentId": None, "timestamp": "2026-11-21T08:00:00.123Z",
                                "message": {"role": role, "content": content, "timestamp": 1795820059706}}, separators=(",", ":")) + "\n")
    e = Editor()
    e.call("session/load", sessionId=s, cwd=CWD, mcpServers=[])
    check("an editor has it", e.said("user_message_chunk").endswith("Said in pi.") and e.said().endswith("Answered in pi."), e.updates)
    e.close()
    out = ava("chat", "-c", s, input="/quit\n")
    check("and a terminal", "You: Said in pi.\n" in out and "Ava: Answered in pi.\n" in out, out)


def first_bytes(messages, n):
    """What the request that follows the n-th message begins with, by the file of the conversation."""
    lines = open(messages, encoding="utf-8").read().splitlines()
    head = [json.loads(x)["spec"]["head"] for x in lines if x.startswith('{"spec"') and "head" in json.loads(x)["spec"]]
    head = open(os.environ["AVA_DATA_ROOT"] + "/heads/" + head[-1], encoding="utf-8").read()
    said = [x for x in lines if x.startswith('{"role"')]
    return hashlib.sha256((head + ",".join(said[:n])).encode()).hexdigest()


def test_model():
    """Another model in mid-conversation: the next turn asks it, whatever dies meanwhile."""
    plays = [script(f"of-{x}", *[{"text": f"Turn {i} of {x}."} for i in range(6)]) for x in "abc"]
    e, s = begin("--model", plays[0])

    def choose(value):
        answer = e.call("session/set_config_option", sessionId=s, configId="model", value=value)
        return answer["configOptions"][0]["currentValue"] == value

    def asked():
        return [json.loads(x)["content"] for x in ava("logs", "--session", s, "--type", "InferStart", "-o", "json").splitlines()]

    e.prompt(s, "one")
    check("another model is chosen in mid-conversation", choose(plays[1]) and daemon("/sessions/" + s)["model"] == plays[1])
    os.kill(daemon_pid(), signal.SIGKILL)
    e.prompt(s, "two")
    check("which a kill does not undo", "Turn 1 of b." in e.said(), e.said())
    check("and chosen again", choose(plays[2]) and e.prompt(s, "three") and "Turn 2 of c." in e.said(), e.said())
    path = next(os.path.join(d, x) for d, _, names in os.walk(os.environ["AVA_DATA_ROOT"] + "/sessions") for x in names if x.endswith(s + ".messages.jsonl"))
    check("its request begins with what stands on the disk", asked()[-1]["prefixHash"] == first_bytes(path, 5), asked()[-1])
    check("each turn asked its own", [x["model"] for x in asked()] == plays, asked())
    entries = [x["modelId"] for x in daemon(f"/sessions/{s}/messages")["entries"] if x["type"] == "model_change"]
    check("the changes are entries of the conversation", entries == plays[1:], entries)
    check("the same one again is none", choose(plays[2]) and len(daemon(f"/sessions/{s}/messages")["entries"]) == 9)
    os.kill(daemon_pid(), signal.SIGKILL)
    with open(path.replace(".messages.jsonl", ".jsonl"), "a", encoding="utf-8") as f:
        f.write('{"type":"model_change","id":"abcdef12","parentId":null,"timestamp":"2026-11-21T08:00:00.123Z","provider":"x","modelId":"of-another-program"}\n')
    ava("ps")
    check("who lists conversations sees the last one", [x["model"] for x in daemon("/sessions")["sessions"] if x["session_id"] == s] == [plays[2]])
    e.updates = []
    ava("chat", "-c", s, "-m", plays[0], input="/quit\n")
    e.prompt(s, "four")
    told = e.kinds("config_option_update")
    check("what was chosen in a terminal is told", told and told[-1]["configOptions"][0]["currentValue"] == plays[0], e.updates)
    check("and an unknown one changes nothing", e.refused("session/set_config_option", sessionId=s, configId="model", value="nope/none")
          ["code"] == -32602 and daemon("/sessions/" + s)["model"] == plays[0])


def test_origin():
    """The door stands in the conversation and its runs, also after a restart, in a resumed run, and of other doors."""
    e, s = begin(say=FIND)
    run = daemon("/runs?all=1&limit=1")["runs"][0]
    check("a run that an editor's conversation began says so", run["session_id"] == s and run["origin"] == "acp", run)
    e.close()
    until(lambda: daemon("/sessions/" + s)["live_runs"] == 0 and daemon("/sessions/" + s)["status"] == "idle")
    os.kill(daemon_pid(), signal.SIGKILL)
    ava("ps")
    check("the conversation says so after a restart", daemon("/sessions/" + s)["origin"] == "acp", daemon("/sessions/" + s))
    starts = [json.loads(x) for x in ava("logs", "--session", s, "--type", "SessionStart,SubagentSpawn", "-o", "json").splitlines()]
    check("and the events", [x["content"].get("client", x["content"].get("origin")) for x in starts] == ["acp", "acp"], starts)
    e = Editor()
    e.call("session/resume", sessionId=s, cwd=CWD)
    e.prompt(s, FIND)
    check("what is proposed after a restart, too", daemon("/runs?all=1&limit=1")["runs"][0]["origin"] == "acp"
          and daemon("/runs?all=1&limit=1")["runs"][0]["subagent_id"] != run["subagent_id"], daemon("/runs?all=1&limit=1"))
    e.close()
    check("a request that names no door has that by which it came", daemon("/sessions", {"cwd": CWD})["origin"] == "terminal")
    asked = daemon("/runs", {"task": "find it", "role": "code_reviewer", "cwd": CWD, "confirmed": True,
                             "model": script("brief", {"text": "late", "delay_ms": 600000})})["subagent_id"]
    check("a run as well", daemon("/runs/" + asked)["origin"] == "terminal", daemon("/runs/" + asked))
    ava("cancel", asked)
    again = daemon(f"/runs/{asked}/resume", {"confirmed": True, "origin": "acp"})["subagent_id"]
    check("and one that is resumed that by which it is", daemon("/runs/" + again)["origin"] == "acp", daemon("/runs/" + again))
    ava("cancel", again)


def test_daemon():
    """What `ava acp` asks of the daemon beside what every client does."""
    models = daemon("/models")["models"]
    check("models are those that can be called, with their windows",
          [m["id"] for m in models] == ["offline"] and models[0]["context"] > 0, models)
    wanted = "0b5e0000-0000-4000-8000-00000000abcd"
    one = daemon("/sessions", {"cwd": CWD, "session_id": wanted})
    check("a conversation has the id that was asked for", one["session_id"] == wanted, one)
    two = daemon("/sessions", {"cwd": "/", "session_id": wanted})
    check("and is begun anew while nothing was said", two["cwd"] == "/", two)
    daemon(f"/sessions/{wanted}/messages", {"text": "hello"})
    check("never after that", daemon("/sessions", {"session_id": wanted})["error"]["code"] == "exists")
    for bad in ("x", "../../../../../../../../../../etc/passwd1", wanted.upper()):
        check(f"{bad} is no such id", "error" in daemon("/sessions", {"session_id": bad}))


def test_questions():
    """ask_before is a permission, a question with choices too."""
    e, s = begin("--wait", "--model", script("asks", spawns(ask_before=["search_codebase"]), {"text": "Shall it?"},
                                             {"text": "Done."}, {"text": "Done."}), say="find it")
    check("a call that needs a yes is put to the person",
          len(e.asked) == 2 and "search_codebase" in json.dumps(e.asked[1]["params"]["toolCall"]), e.asked)
    run = daemon("/runs?all=1&limit=1")["runs"][0]
    log = open(f"{os.environ['AVA_DATA_ROOT']}/logs/subagents/{run['subagent_id']}.jsonl", encoding="utf-8").read()
    check("and has it", '"state":"answered"' in log and '"answer":"yes"' in log, run)
    run = start_run(s, asks_person(choices=["json", "yaml"]))
    until(lambda: daemon("/runs/" + run)["status"] == "waiting")
    e.asked, e.answer = [], lambda r: "yaml"
    e.prompt(s, "go on")
    check("choices are options", [o["name"] for o in e.asked[0]["params"]["options"]] == ["json", "yaml"], e.asked)
    log = open(f"{os.environ['AVA_DATA_ROOT']}/logs/subagents/{run}.jsonl", encoding="utf-8").read()
    check("and the one that was picked is the answer", '"answer":"yaml"' in log, log[-2000:])


def test_patch():
    """The patch of a run that has ended is a permission, with its lines; one that is not shown whole is for the command."""
    e, s = begin("--model", script("patches", *[{"text": "Well."}] * 4), say="hello")
    for content, whole in (("of the patch\n", True), ("a line\n" * 20000, False)):
        write = {"tool_calls": [{"name": "write_file", "args": {"path": "patched.txt", "content": content}}]}
        run = daemon("/runs", {"task": "mend it", "role": "code_reviewer", "session_id": s, "cwd": CWD, "grants": ["rw"],
                               "model": script("patch", write, DONE), "confirmed": True})["subagent_id"]
        until(lambda: daemon("/runs/" + run)["status"] == "success")
        e.asked, e.updates = [], []
        check("the turn ends", e.prompt(s, "go on")["stopReason"] == "end_turn")
        if whole:
            ask = e.asked[0]["params"]
            check("a patch is a permission", "+of the patch" in ask["toolCall"]["content"][0]["content"]["text"]
                  and [o["name"] for o in ask["options"]] == ["Apply", "Leave"], e.asked)
            check("and its yes writes it", open(f"{CWD}/patched.txt", encoding="utf-8").read() == content)
            os.remove(f"{CWD}/patched.txt")
            check("its call completes", any(u["toolCallId"] == run + ":patch" and u["status"] == "completed"
                                            for u in e.kinds("tool_call_update")), e.updates)
        else:
            check("one that is too long is not", e.asked == [] and f"`ava apply {run}`" in e.said(), e.said())


def test_form_question():
    """A question for words: a form that is sent away, or is empty, is no answer to it, and the next session asks again."""
    s = daemon("/sessions", {"cwd": CWD, "model": script("form", *[{"text": "Well."}] * 9)})["session_id"]
    daemon(f"/sessions/{s}/messages", {"text": "hello"})
    run = start_run(s, asks_person())
    until(lambda: daemon("/runs/" + run)["status"] == "waiting")
    for name, answer in (("declined", {"action": "decline"}), ("empty", {"action": "accept", "content": {}}),
                         ("cancelled", {"action": "cancel"}), ("of another shape", {"action": "accept", "content": {"answer": 7}}),
                         ("filled in", {"action": "accept", "content": {"answer": "the second"}})):
        e = Editor(capabilities={"elicitation": {"form": {}}}, answer=lambda r, answer=answer: answer)
        e.call("session/load", sessionId=s, cwd=CWD, mcpServers=[])
        check(f"a form that is {name} ends the turn", e.prompt(s, "go on")["stopReason"] == "end_turn" and len(e.asked) == 1, e.asked)
        if name != "filled in":
            check("and its question waits", daemon("/runs/" + run)["status"] == "waiting" and "waits for your answer" in e.said(), e.said())
        e.close()
    check("and answers it", until(lambda: daemon("/runs/" + run)["status"] != "waiting"), daemon("/runs/" + run))
    ava("cancel", run)


def test_cancelled_question():
    """A run that ends while the editor shows its question."""
    e, s = begin("--wait", "--model", script("ended", *[{"text": "Well."}] * 3), answer=lambda r: None, say="hello")
    run = start_run(s, asks_person(choices=["json", "yaml"]))
    n = asks(e, s, "go on")
    ava("cancel", run)
    check("the turn ends when the run does", e.until(n)["result"]["stopReason"] == "end_turn", e.updates)
    check("and the question is taken back", e.taken_back == [e.asked[0]["id"]], e.taken_back)
    e.reply(e.asked[0], "json")
    check("a late answer to it does nothing", e.prompt(s, "now?")["stopReason"] == "end_turn")


def test_several_asks():
    """Quotes of one turn are put one by one, a prompt in mid-turn takes the open one back, and none is put twice."""
    two = {"tool_calls": [{"name": "spawn_subagent", "args": {"role": "code_reviewer", "task": t}} for t in ("find a", "find b")]}
    e, s = begin("--model", script("several", two, *[{"text": "Well."}] * 6), answer=lambda r: None)
    n = asks(e, s, "find both")
    check("one at a time", len(e.asked) == 1, e.asked)
    e.reply(e.asked[0], "No")
    until(lambda: e.poll() and len(e.asked) == 2)
    check("the older one first", ["find a" in e.asked[0]["params"]["toolCall"]["title"], "find b" in e.asked[1]["params"]["toolCall"]["title"]]
          == [True, True], e.asked)
    second = e.start_prompt(s, "something else")
    check("a prompt meanwhile ends the turn", e.until(n)["result"]["stopReason"] == "cancelled")
    check("and takes back what is open", e.taken_back == [e.asked[1]["id"]], e.taken_back)
    check("which is not put again", e.until(second)["result"]["stopReason"] == "end_turn" and len(e.asked) == 2, e.asked)
    left = [p["proposal_id"] for p in daemon("/proposals")["proposals"] if p["session_id"] == s]
    check("and waits", left == [e.asked[1]["params"]["toolCall"]["toolCallId"]], left)
    ava("reject", left[0])


def test_notices():
    """What happens between two turns is a notice where the editor shows them; the next turn tells it all the same."""
    texts = {"text": "Hello."}, {"text": "It found it."}, {"text": "Well."}
    e, s = begin("--model", script("notices", *texts), capabilities={"session": {"notices": {}}}, say="hello")
    e.updates = []
    tell_run(s)
    check("its end and what Ava says are notices", until(lambda: e.poll() and len(e.kinds("notice")) == 2), e.updates)
    check("with what every channel says", "[CodeReviewer]: Complete" in e.kinds("notice")[0]["title"]
          and e.kinds("notice")[0]["description"] == "It is in parser.c."
          and e.kinds("notice")[1]["title"] == "It found it.", e.updates)
    check("and nothing else comes", len(e.updates) == 2, e.updates)
    e.updates = []
    e.prompt(s, "and?")
    check("the next turn has it first, once", e.said().find("Complete (") < e.said().find("It found it.") < e.said().find("Well.")
          and e.said().count("It found it.") == 1 and e.kinds("notice") == [], e.updates)
    e.close()
    e, s = begin("--model", script("quiet", *texts), say="hello")
    e.updates = []
    tell_run(s)
    until(lambda: len(daemon(f"/sessions/{s}/unseen")["items"]) >= 2)
    check("who does not show notices has none", e.poll() and e.updates == [], e.updates)


def test_wordless():
    """A run that ends in a conversation in which nothing was said: Ava's first turn tells of it, as the person's would."""
    said = script("wordless", {"text": "It found it."}, *[{"text": "Well."}] * 3)
    e, s = begin("--model", said)
    tell_run(s)
    check("she tells of it", until(lambda: len(daemon(f"/sessions/{s}/unseen")["items"]) >= 2), daemon(f"/sessions/{s}/messages"))
    e.prompt(s, "hello")
    check("and goes on", "It found it." in e.said() and "Well." in e.said(), e.said())
    os.kill(daemon_pid(), signal.SIGKILL)
    e.updates = []
    e.prompt(s, "again")
    check("also after a kill", "Well." in e.said(), e.said())
    check("with the person's first words as its title", daemon("/sessions/" + s)["title"] == "hello", daemon("/sessions/" + s))
    e.close()
    other = script("other", *[{"text": "Of the other."}] * 3)
    e, s = begin("--model", script("slow", {"text": "Never.", "delay_ms": 600000}))
    tell_run(s)
    until(lambda: daemon("/sessions/" + s)["status"] == "busy")
    choice = {"sessionId": s, "configId": "model", "value": other}
    check("another model is refused while she is at it", "is at work" in e.refused("session/set_config_option", **choice)["message"])
    e.notify("session/cancel", sessionId=s)
    daemon(f"/sessions/{s}/stop", {})
    until(lambda: daemon("/sessions/" + s)["status"] == "idle")
    check("and can be chosen then", e.call("session/set_config_option", **choice)["configOptions"][0]["currentValue"] == other)
    e.prompt(s, "hello")
    check("which answers", "Of the other." in e.said(), e.said())
    s = e.new()
    run = start_run(s)
    e.call("session/set_config_option", **{**choice, "sessionId": s})
    ava("cancel", run)
    check("a choice before the first words loses no subagent", until(lambda: "Of the other." in json.dumps(daemon(f"/sessions/{s}/unseen"))),
          daemon(f"/sessions/{s}/unseen"))


def test_hung():
    """A daemon that answers nothing keeps no signal from ending the program."""
    e = Editor("--model", script("hung", {"text": "Never.", "delay_ms": 600000}), stderr=subprocess.PIPE)
    s, pid = e.new(), daemon_pid()
    e.start_prompt(s, "go on")
    until(lambda: daemon("/sessions/" + s)["status"] == "busy")
    os.kill(pid, signal.SIGSTOP)
    check("it waits, and says so", until(lambda: select.select([e.program.stderr], [], [], 0.1)[0]))
    e.program.send_signal(signal.SIGTERM)
    try:
        check("it ends", e.program.wait(LIMIT / 2) == 0)
    except subprocess.TimeoutExpired:
        e.program.kill()
        check("it ends", False)
    os.kill(pid, signal.SIGCONT)
    daemon(f"/sessions/{s}/stop", {})
    e.program.stderr.close()


def test_unread():
    """What an editor did not read any more is not counted as seen: whoever comes next is told."""
    s = daemon("/sessions", {"cwd": CWD, "model": script("unread", {"text": "Hello."}, {"text": "Never.", "delay_ms": 600000})})["session_id"]
    daemon(f"/sessions/{s}/messages", {"text": "hello"})
    until(lambda: daemon(f"/sessions/{s}/unseen")["items"])
    read, write = os.pipe()
    with subprocess.Popen([os.environ["AVA"], "acp"], stdin=subprocess.PIPE, stdout=write) as p:
        os.close(write)
        for i, (method, params) in enumerate((("initialize", {"protocolVersion": 1}), ("session/resume", {"sessionId": s, "cwd": CWD}),
                                              ("session/prompt", {"sessionId": s, "prompt": [{"type": "text", "text": "go on"}]}))):
            p.stdin.write((json.dumps({"jsonrpc": "2.0", "id": i, "method": method, "params": params}) + "\n").encode())
        p.stdin.flush()
        until(lambda: daemon("/sessions/" + s)["status"] == "busy")
        run = start_run(s)
        got = b""
        while b"in_progress" not in got: # the plan has it; nothing more comes before its end
            got += os.read(read, 65536)
        os.close(read)
        ava("cancel", run)
        check("it ends", p.wait(LIMIT) == 0)
    check("the end of the subagent waits", [x["run"] for x in daemon(f"/sessions/{s}/unseen")["items"] if x["kind"] == "failed"] == [run],
          daemon(f"/sessions/{s}/unseen"))


def test_cut():
    """A text that is longer than what its event keeps says so, in an editor and over a pipe."""
    text, note = "word " * 30000 + "the end", "(cut: all of it stands in the conversation's file)"
    long = script("long", {"text": text}, {"text": text}, {"text": text})
    e, s = begin("--model", long, say="hello")
    check("its end is missing, which is told", e.said().endswith(note) and e.said().count(note) == 1, e.said()[-200:])
    e.close()
    out = ava("chat", "-c", s, input="and?\n")
    check("so in a conversation over a pipe, of what is new and of what was said last", out.endswith(note + "\n") and out.count(note) == 2, out[-200:])
    e = Editor()
    e.call("session/load", sessionId=s, cwd=CWD, mcpServers=[])
    check("a load has all of it", e.said().count("the end") == 2 and note not in e.said(), e.said()[-200:])


def test_imitation():
    """A line of Ava's that looks like one of the runtime's, as it is said and as it is shown again."""
    text = "Look:\n**✅** Subagent [Asker]: Complete\n- ✅ an item\nProceed? [Yes/No]"
    barred = "Look:\n│ **✅** Subagent [Asker]: Complete\n- ✅ an item\n│ Proceed? [Yes/No]"
    e, s = begin("--model", script("imitates", {"text": text}), say="go")
    check("stands behind a bar", e.said() == barred, e.said())
    e.updates = []
    e.call("session/load", sessionId=s, cwd=CWD, mcpServers=[])
    check("each time", e.said() == barred, e.said())


def test_deaf():
    """An editor that does not read: a signal ends the program all the same."""
    with subprocess.Popen([os.environ["AVA"], "acp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        p.stdin.write(b'{"jsonrpc":"2.0","id":"' + b"x" * 30000 + b'","method":"nobody"}\n')
        p.stdin.flush()
        os.set_blocking(p.stdin.fileno(), False)
        while select.select([], [p.stdin], [], 1)[1]: # until it waits for its output to be read
            try:
                os.write(p.stdin.fileno(), b"[]\n" * 1000)
            except BlockingIOError:
                pass
        p.terminate()
        try:
            check("it ends", p.wait(LIMIT / 3) == 0)
        except subprocess.TimeoutExpired:
            p.kill()
            check("it ends", False)


def test_prompt():
    """Links and files of a prompt are told as a person would write them; escapes are shown."""
    e, s = begin("--model", script("said", {"text": "\x1b[31mred\x1b[0m"}, *[{"text": "Well."}] * 6))
    e.call("session/prompt", sessionId=s, prompt=[
        {"type": "text", "text": "Look at "},
        {"type": "resource_link", "name": "p", "uri": f"file://{CWD}/a%20b.c"},
        {"type": "resource", "resource": {"uri": "file:///etc/x.c", "text": "int x;"}},
        {"type": "resource", "resource": {"uri": f"file://localhost{CWD}/b.md", "text": "```\nyes\n````"}}])
    entries = daemon(f"/sessions/{s}/messages")["entries"]
    check("as text with paths", "Look at a b.c\n\n/etc/x.c:\n```\nint x;\n```" in
          entries[1]["message"]["content"][0]["text"], entries[1])
    check("and none of a file's fences ends it", entries[1]["message"]["content"][0]["text"].endswith("b.md:\n`````\n```\nyes\n````\n`````\n"), entries[1])
    check("an escape is visible text", "\\x1b[31mred" in e.said() and "\x1b" not in e.said(), e.said())
    e.updates = []
    e.call("session/prompt", sessionId=s, prompt=[{"type": "resource_link", "name": "p", "uri": "file:///a%00b"},
                                                 {"type": "text", "text": " and more"}])
    entries = daemon(f"/sessions/{s}/messages")["entries"]
    check("a NUL in a link cuts nothing off", any("/a%00b and more" in json.dumps(x) for x in entries), entries)
    link = {"type": "resource_link", "name": "p", "uri": f"file://{CWD}/b.md"}
    e.call("session/prompt", sessionId=s, prompt=[{"type": "text", "text": "compare"}, link, link, {"type": "text", "text": "übrigens"}])
    e.call("session/prompt", sessionId=s, prompt=[{"type": "text", "text": "in ("}, link, {"type": "text", "text": "), please"}])
    entries = daemon(f"/sessions/{s}/messages")["entries"]
    check("a link beside words is parted from them", "compare b.md b.md übrigens" in json.dumps(entries, ensure_ascii=False), entries)
    check("and one in a sentence stands as it was put", "in (b.md), please" in json.dumps(entries), entries)
    e.call("session/prompt", sessionId=s, prompt=[
        {"type": "text", "text": "see"},
        {"type": "resource", "resource": {"uri": "file:///x/y.pdf", "mimeType": "application/pdf", "blob": "JVBERi0="}},
        {"type": "image", "mimeType": "image/png", "data": "iVBORw=="}, {"type": "hologram"}])
    entries = json.dumps(daemon(f"/sessions/{s}/messages")["entries"])
    check("what is no text is named", all(x in entries for x in (
        "/x/y.pdf\\n[application/pdf, 5 bytes: Ava cannot read it]", "[image/png, 4 bytes: Ava cannot", "[hologram, 0 bytes: Ava cannot")), entries)
    e.prompt(s, "my key is sk-ant-api03-" + "abcdefghij" * 9 + "AA, ok")
    check("what is changed for the log is not shown as said elsewhere", e.kinds("user_message_chunk") == [], e.updates)
    e.prompt(s, "/status")
    entries = daemon(f"/sessions/{s}/messages")["entries"]
    check("a command is said in words", any(x.get("message", {}).get("content", [{}])[0].get("text") == "status"
                                            for x in entries), entries)


def streamed():
    """Not of the offline model: text that comes in pieces, and is cut in the middle and made anew."""
    e = Editor("--wait", "--model", "anthropic/claude-sonnet-4-5-20250701")
    for word in ("Talk", "Broken"):
        e.updates, e.asked = [], []
        s = e.new()
        if not check(f"{word}: the turn ends", e.prompt(s, word + " to me")["stopReason"] == "end_turn", e.updates):
            continue
        texts = [u["content"]["text"] for u in e.kinds("agent_message_chunk")]
        check(f"{word}: its text stands there once", e.said().count("Well then, here it is") == 1, texts)
        if word == "Broken":
            check("Broken: of the second attempt only what was missing", 1 < len(texts) < 9, texts)
        else:
            check("Talk: it came in pieces of one message", len(texts) > 3 and
                  len({u["messageId"] for u in e.kinds("agent_message_chunk")}) == 1, e.kinds("agent_message_chunk"))
            check("Talk: and her thoughts", e.said("agent_thought_chunk") != "", e.updates)
    options = e.call("session/set_config_option", sessionId=s, configId="model", value="anthropic/claude-opus-4-1")["configOptions"]
    check("another model of the service is chosen, and others are not offered", options[0]["currentValue"] == "anthropic/claude-opus-4-1"
          and len(options[0]["options"]) > 2 and all(x["value"].startswith("anthropic/") for x in options[0]["options"]), options)
    error = e.refused("session/set_config_option", sessionId=s, configId="model", value="offline")
    check("one that is spoken to otherwise is refused in words", error["code"] == -32602 and "begin a new conversation" in error["message"], error)
    e.updates = []
    check("and it answers", e.prompt(s, "Talk again")["stopReason"] == "end_turn" and "Well then" in e.said(), e.updates)


if __name__ == "__main__":
    names = [n for n in list(globals()) if n.startswith("test_")]
    if sys.argv[1:] == ["but"] + sys.argv[2:]:
        names = [n for n in names if n not in sys.argv[2:]]
    else:
        names = sys.argv[1:] or names
    for name in names:
        play(globals()[name])
