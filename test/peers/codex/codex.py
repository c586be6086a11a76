"""Codex with ava as its MCP server, headless and at its terminal; played by test_codex.sh. Model is the
service that its model is asked at (the Responses API of OpenAI): it says what it is told to, and takes
no request that the real one would refuse."""

import http.server
import json
import os
import re
import subprocess
import sys
import threading

sys.path[:0] = [os.path.join(os.environ["SRCDIR"], folder) for folder in ("test/peers", "test/cli")]
from api import ava, check, runs
from terminal import NotShown, Terminal

TREE = os.path.join(os.environ["T"], "tree")
KEY = "sk-none-0123456789"
ASKED = {"task": "where is the torn tail decided?", "role": "code_reviewer"}


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    turns, given, wrong, calls = [], [], [], set()

    def log_message(self, *_):
        pass

    def refuse(self, status, why):
        Model.wrong.append(why)
        self.answer(status, "application/json", json.dumps({"error": {"message": why}}).encode())

    def answer(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(404, "application/json", b"{}")

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        outputs = {i["call_id"]: i["output"] for i in asked["input"] if i["type"] == "function_call_output"}
        if self.path != "/v1/responses" or self.headers["Authorization"] != "Bearer " + KEY:
            self.refuse(401, "no key, or another path: " + self.path)
        elif not set(outputs) <= {i["call_id"] for i in asked["input"] if i["type"] == "function_call"}:
            self.refuse(400, "the output of a call that was not made")
        elif not any(t.get("name") == "mcp__ava" for t in asked["tools"]):
            self.say("A title", asked)  # of the thread, for lists of them
        elif not Model.turns:
            self.refuse(500, "one request too many")
        else:
            Model.given += [outputs[id] for id in outputs if id not in Model.calls]
            Model.calls |= set(outputs)
            self.say(Model.turns.pop(0), asked)

    def say(self, turn, asked):
        n = len(Model.calls)
        if isinstance(turn, str):
            item = {"type": "message", "role": "assistant", "id": f"msg_{n}",
                    "content": [{"type": "output_text", "text": turn, "annotations": []}]}
        else:
            offered = [t["name"] for space in asked["tools"] if space.get("name") == "mcp__ava" for t in space["tools"]]
            if turn[0] not in offered:
                Model.wrong.append(f"{turn[0]} is not among {offered}")
            item = {"type": "function_call", "id": f"fc_{n}", "call_id": f"call_{os.urandom(4).hex()}", "name": turn[0],
                    "namespace": "mcp__ava", "arguments": json.dumps(turn[1])}
        usage = {"input_tokens": 10, "input_tokens_details": None, "output_tokens": 5, "output_tokens_details": None, "total_tokens": 15}
        events = [{"type": "response.created", "response": {"id": f"resp_{n}"}},
                  {"type": "response.output_item.done", "output_index": 0, "item": item},
                  {"type": "response.completed", "response": {"id": f"resp_{n}", "usage": usage}}]
        self.answer(200, "text/event-stream", "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode())


class Codex:
    def __init__(self, service):
        url = f"http://127.0.0.1:{service.server_port}/v1"
        self.settings = [w for s in ('model="gpt-5"', 'model_provider="mock"', "check_for_update_on_startup=false",
                                     f'model_providers.mock={{name="mock",base_url="{url}",wire_api="responses",env_key="MOCK_KEY"}}')
                         for w in ("-c", s)]
        self.env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "CODEX_HOME": os.environ["CODEX_HOME"],
                    "MOCK_KEY": KEY, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}

    def exec(self, *turns):
        """One turn of `codex exec`; what its tools gave."""
        Model.turns, Model.given = list(turns), []
        done = subprocess.run([os.environ["CODEX"], "exec", "--skip-git-repo-check", *self.settings, "go"], cwd=TREE, env=self.env,
                              capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            print("#", done.stderr[-1500:], file=sys.stderr)
        return "\n".join(str(g) for g in Model.given)


def headless(codex):
    given = codex.exec(("ava_propose", ASKED), "It waits for you.")
    waits = re.search(r"P-[0-9a-f]+", given)
    check("headless, nobody is asked: the proposal waits, and the person is told how", waits and f"ava confirm {waits[0]}" in given, given)
    check("and nothing runs", not runs())
    id = re.search(r"S-[0-9a-f]+", ava("confirm", waits[0] if waits else "P-000000").stdout)
    given = codex.exec(("ava_status", {"run": waits[0]}), ("ava_wait", {"run": id[0]}), "There it is.")
    check("another session learns which run it became", f'"subagent_id":"{id[0]}"' in given.replace("\\", ""), given)
    check("and has its result", "torn_tail is defined at a.c:1" in given, given)


def terminal(codex):
    Model.turns, Model.given = [("ava_propose", ASKED), "It works."], []
    t, n = Terminal([os.environ["CODEX"], *codex.settings], TREE, codex.env), len(runs())
    try:
        check("Codex starts at a terminal", t.see("Ask Codex to do anything"), t.text())
        t.type("go")
        t.press("Enter", "Estimated:")
        check("at its terminal the quote is a form", t.see("Field 1/2", "Time:", "Folder:") and
              f"Folder:{TREE}" in re.sub(r"\s", "", t.text()), t.text())
        check("that starts nothing yet", len(runs()) == n)
        for field in ("Field 2/2", "It works."):  # in an order of its own
            if "Such as: max 20" in t.text():
                t.type("max 20 cents")
                t.see("› max 20 cents")
            else:
                t.see("Start it", "› 1. True")
            t.press("Enter", field)
    except NotShown as e:
        check("Codex shows what it should", False, e)
    finally:
        t.close()
    check("and its yes starts the run, on the person's terms", len(runs()) == n + 1 and
          any(r["limits"]["max_cost_cents"] == 20 and r["origin"] == "mcp" for r in runs()), runs())
    check("which the model is told", any("S-" in str(g) for g in Model.given), Model.given)


def main():
    service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    codex = Codex(service)
    headless(codex)
    terminal(codex)
    check("Codex's requests were as they must be", not Model.wrong, Model.wrong)


main()
