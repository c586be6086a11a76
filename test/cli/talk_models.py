#!/usr/bin/env python3
"""A conversation with Ava over each form of model service, against the mock, which
refuses what the services refuse and checks that each request goes on from the one
before: calls side by side, thinking, an overloaded service in the middle, results
of several subagents, a stop of the daemon between two turns.

    talk_models.py first|second|keyless FILE

FILE keeps the ids of the conversations from the one half to the other. Expects
$AVA_DATA_ROOT, a daemon, and $MOCK_URL with the rules of test_talk_models.sh."""

import glob
import http.client
import json
import os
import sys
import threading
import urllib.request

from api import PATIENCE, ROOT, Socket, ask, check, until

MODELS = ["anthropic/claude-sonnet-4-5-20250701", "anthropic/claude-sonnet-5-5-20260702",
          "openai/gpt-4o-20240703", "openrouter/anthropic/claude-sonnet-4.5-20250704",
          "local/qwen3-705"]


class Talk:
    def __init__(self, model, number, session=None):
        self.model, self.number, self.frames, self.wrong = model, number, [], []
        self.id = session or ask("POST", "/sessions", {"cwd": os.getcwd(), "model": model})[
            "session_id"]
        ready = threading.Event()
        threading.Thread(target=self.listen, args=(ready,), daemon=True).start()
        ready.wait(PATIENCE)

    def listen(self, ready):
        """The text of her replies as it comes."""
        c = Socket("x")
        c.request("GET", f"/api/v1/events?session={self.id}")
        stream = c.getresponse()
        ready.set()
        kind = None
        try:
            for line in stream:
                text = line.decode().rstrip("\n")
                if text.startswith("event: "):
                    kind = text[7:]
                elif text.startswith("data: ") and kind in ("text", "thinking"):
                    self.frames.append((kind, text[6:]))
        except (OSError, http.client.HTTPException, AttributeError):
            pass  # the daemon was stopped

    def say(self, text):
        ask("POST", f"/sessions/{self.id}/messages", {"text": text})

    def wait(self, runs=False):
        def idle():
            s = ask("GET", f"/sessions/{self.id}")
            return s["status"] == "idle" and not s["waiting"] and not (runs and s["live_runs"]) and s

        return until(idle) or self.wrong.append("never idle") or {}

    def expect(self, what, good, more=""):
        if not good:
            self.wrong.append(f"{what}: {more}")

    def text(self):
        return "".join(json.loads(d)["text"] for kind, d in self.frames if kind == "text")

    def entries(self):
        return ask("GET", f"/sessions/{self.id}/messages")["entries"]

    # ---- two halves, the daemon stops between them

    def first(self):
        self.say(f"Talk {self.number} about a.txt")
        self.wait()
        quotes = [p["proposal_id"] for p in ask("GET", "/proposals")["proposals"] if p["session_id"] == self.id]
        for quote in quotes[1:]:
            ask("POST", f"/asks/{quote}", {"choice": "yes"})
        self.say(f"yes, {quotes[0]}")
        self.say("how is it going?")
        s = self.wait(runs=True)
        if not self.model.startswith("local/"):
            self.expect("her calls cost", s["cost_cents"] > 0, s)
        self.expect("and have tokens", s["tokens_used"] > 0, s)
        self.check(answers=3)
        self.expect("text comes as frames", until(lambda: self.text().count("Well then") >= 3), self.frames[-20:])
        self.expect("in pieces", len(self.frames) > 10, len(self.frames))

    def second(self):
        self.say("and what was it again?")
        self.wait()
        self.check(answers=4)

    def keyless(self):
        """The key is gone: the person hears which, and the conversation is not lost."""
        if not self.model.startswith("anthropic/"):
            return
        before = len(self.entries())
        self.say("are you still there?")
        self.wait()
        said = self.entries()[before:]
        why = said[-1]["message"].get("errorMessage", "")
        self.expect("the key is named", "ANTHROPIC_API_KEY" in why, said)

    def check(self, answers):
        entries = self.entries()
        kinds = [e.get("eventType") for e in entries]
        self.expect("two runs began", kinds.count("subagent:start") == 2, kinds)
        self.expect("and ended", kinds.count("subagent:complete") == 2, kinds)
        said = [b["text"] for e in entries if e.get("message", {}).get("role") == "assistant"
                for b in e["message"]["content"] if b["type"] == "text"]
        self.expect("she answered each time", len([t for t in said if "Well then" in t]) >= answers, said)
        results = [e["message"]["content"][0]["text"] for e in entries
                   if e.get("message", {}).get("role") == "toolResult"]
        refused = [t for t in results if "the result of call c1.1 is not kept" in t]
        again = [t for t in results if "nchanged since" in t]
        self.expect("context_refs that are not there propose nothing, said each time",
                    (len(refused), len(again)) == (2, 0), results)
        self.check_log()

    def check_log(self):
        events = [json.loads(line) for name in sorted(glob.glob(f"{ROOT}/logs/ava/*.jsonl"))
                  for line in open(name, encoding="utf-8")]
        mine = [e for e in events if e["sessionId"] == self.id and e["agentId"] == "ava"]
        starts = [e["content"]["callId"] for e in mine if e["eventType"] == "InferStart"]
        ends = [e["content"] for e in mine if e["eventType"] == "InferEnd"]
        self.expect("each call has its end", starts == [e["callId"] for e in ends], starts)
        failed = [e["errorClass"] for e in ends if "errorClass" in e]
        self.expect("one was tried again", failed == ["overloaded"], failed)
        thinking = [e for e in mine if e["eventType"] == "ExtendedThinking"]
        if self.model.startswith(("openrouter/", "local/")):
            self.expect("thinking is on record", thinking, [e["eventType"] for e in mine])


def stats():
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(os.environ["MOCK_URL"] + "/stats", timeout=60) as answer:
        return json.load(answer)


def play(t, half):
    try:
        getattr(t, half)()
    except (RuntimeError, ValueError, KeyError, IndexError, OSError) as why:
        t.wrong.append(f"{type(why).__name__}: {why}")
    check(f"{half}, {t.model}", not t.wrong, *t.wrong)


def main():
    half, kept = sys.argv[1:]
    if half == "first":
        talks = [Talk(model, 100 + i) for i, model in enumerate(MODELS)]
        with open(kept, "w", encoding="utf-8") as f:
            json.dump([t.id for t in talks], f)
    else:
        with open(kept, encoding="utf-8") as f:
            talks = [Talk(model, 0, session) for model, session in zip(MODELS, json.load(f))]
    for t in talks:
        play(t, half)
    s = stats()
    check("nothing that a service refuses", s["refused"] == 0, s)
    check("each request goes on from the last", s["prefixBroken"] == 0, s)


main()
