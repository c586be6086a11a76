#!/usr/bin/env python3
"""What people say to Ava, and what must happen (said.tsv says how it is written):
each line in a conversation of its own that was brought to its situation by words and
runs, against a daemon and the offline model. That an answer is the runtime's to hear,
whatever her model says, stands in test_talk_answer.c.

    corpus.py FOLDER CORPUS...     FOLDER holds the source tree `src` of the corpus

Expects $AVA_DATA_ROOT and a daemon with AVA_RUNS_MAX=8."""

import json
import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from api import PATIENCE, ROOT, ask, check, script, until

HOW = "explain how the kettle works and which code uses it"
REVIEW = "review src/teapot.c for memory bugs"
KINDS = ("proposes", "starts", "rejects", "changes", "cancels", "allows", "denies", "asks",
         "says", "said")


def wait(what, see, patience=PATIENCE):
    if not until(see, patience):
        raise RuntimeError(f"never: {what}")


class Talk:
    def __init__(self, folder):
        self.folder = folder
        self.id = ask("POST", "/sessions", {"cwd": os.path.join(folder, "src")})["session_id"]
        self.quotes = {}

    def say(self, text):
        """As a door does, which has shown the newest Ask last."""
        asks = sorted(ask("GET", f"/asks?session={self.id}")["asks"], key=lambda a: a["since"])
        shown = asks[-1]["id"] if asks else ""
        ask("POST", f"/sessions/{self.id}/messages", {"text": text, "shown": shown})
        self.idle()

    def idle(self, runs=False, patience=PATIENCE):
        def see():
            s = ask("GET", f"/sessions/{self.id}")
            return s["status"] == "idle" and not s["waiting"] and not (runs and s["live_runs"])

        wait("idle", see, patience)

    def entries(self):
        return ask("GET", f"/sessions/{self.id}/messages")["entries"]

    def look(self):
        """Proposals by their number, runs in their order, entries."""
        for p in ask("GET", "/proposals")["proposals"]:
            if p["session_id"] == self.id:
                self.quotes[p["proposal_id"]] = p
        for name in self.quotes:
            self.quotes[name] = ask("GET", f"/proposals/{name}")
        runs = [r for r in ask("GET", "/runs?all=true&limit=2000")["runs"]
                if r["session_id"] == self.id]
        runs.sort(key=lambda r: r["started_at"])
        return json.loads(json.dumps(self.quotes)), runs, self.entries()


SLOW = script("slow", {"text": "late", "delay_ms": 600000})
TWO = (("researcher", HOW), ("code_reviewer", REVIEW))
SEARCH = {"tool_calls": [{"name": "search_codebase", "args": {"pattern": "kettle"}}]}
DONE = {"tool_calls": [{"name": "submit_result", "args": {
    "output": None, "summary": "done", "confidence": 1}}]}
ASKS = script("asks", {**SEARCH, "delay_ms": 700}, DONE)  # when Ava has said her sentence
FAILED = script("failed", *(SEARCH,) * 20)


def at_work(talk, tasks, model, **more):
    """Each quoted, and said yes to."""
    for role, task in tasks:
        name = ask("POST", "/runs", {"role": role, "task": task, "session_id": talk.id,
                                     "cwd": os.path.join(talk.folder, "src"), "model": model,
                                     "confirm": "always", **more})["proposal_id"]
        wait("a quote", lambda name=name: ask("GET", f"/proposals/{name}")["state"] == "pending")
        talk.say("yes")


def begin(state, folder):
    """A conversation in that situation."""
    talk = Talk(folder)
    if state in ("quote", "quotes"):
        talk.say(HOW)
        if state == "quotes":
            talk.say(REVIEW)
    elif state == "group":
        ask("POST", "/groups", {"runs": [{"role": role, "task": task} for role, task in TWO],
                                "session_id": talk.id, "cwd": os.path.join(folder, "src"),
                                "confirm": "always"})
        talk.say("hello")  # she speaks, and has asked nothing else
    elif state == "running":
        at_work(talk, TWO[:1], SLOW)
    elif state == "running2":
        at_work(talk, TWO, SLOW)
    elif state == "asks":
        at_work(talk, TWO[:1], ASKS, ask_before=["search_codebase"])
        wait("a question", lambda: any(r["status"] == "waiting" for r in talk.look()[1]))
        talk.idle()
    elif state == "ended":
        talk.say("research where kettle_boil is used")
        talk.say("yes")
        talk.idle(runs=True)
    elif state == "failed":
        at_work(talk, TWO[:1], FAILED, max_iterations=2)
        talk.idle(runs=True)
    return talk


# ---- what must happen


def options(words):
    """`has=a,b cents=5` as a dictionary; words without = under None."""
    got = {None: []}
    for word in words.split():
        key, eq, value = word.partition("=")
        if eq:
            got[key] = value
        else:
            got[None].append(word)
    return got


def alternatives(expect):
    found = []
    for part in re.split(r" or (?=(?:%s)\b)" % "|".join(KINDS), expect):
        kind, _, rest = part.strip().partition(" ")
        regex = None
        if kind == "says" and rest:
            if not (rest[0] == rest[-1] == "/" and len(rest) > 2):
                raise ValueError(f"no expression: {part}")
            regex, rest = re.compile(rest[1:-1], re.I | re.S), ""
        if kind not in KINDS:
            raise ValueError(f"unknown: {part}")
        found.append((kind, options(rest), regex))
    return found


def limits(config, o, wrong):
    spec = config.get("members", [config])[0]
    have = {**spec.get("limits", {}), **{k: v for k, v in config.get("group", {}).items() if v}}
    for key, name in (("cents", "costCents"), ("seconds", "seconds"), ("tokens", "tokens"),
                      ("iterations", "iterations")):
        if key in o and have.get(name) != float(o[key]):
            wrong.append(f"{key} is {have.get(name)}")
    if "role" in o and spec.get("role") != o["role"]:
        wrong.append(f"the role is {spec.get('role')}")
    if "preset" in o and spec.get("preset") != o["preset"]:
        wrong.append(f"the preset is {spec.get('preset')}")
    if "thinking" in o and bool(spec.get("thinking")) != (o["thinking"] == "on"):
        wrong.append(f"thinking is {spec.get('thinking')}")
    if "without" in o and o["without"] in spec.get("tools", []):
        wrong.append("it has the tool still")
    if "model" in o and o["model"] not in spec.get("model", ""):
        wrong.append(f"the model is {spec.get('model')}")
    text = json.dumps(config).lower()
    for word in filter(None, o.get("has", "").split(",") + o.get("task", "").split(",")):
        if word.lower() not in text:
            wrong.append(f"not in the task: {word}")
    task = " ".join(r.get("task", "") for r in config.get("members", [config])).lower()
    for word in filter(None, o.get("lacks", "").split(",")):
        if word.lower() in task:
            wrong.append(f"in the task: {word}")


class Seen:
    def __init__(self, talk, before, after):
        self.talk = talk
        quotes, runs, entries = before
        self.quotes, self.runs, all_entries = after
        self.entries = all_entries[len(entries):]
        self.was = quotes
        self.new = [p for n, p in self.quotes.items() if n not in quotes]
        self.moved = {p["number"]: self.quotes[n] for n, p in quotes.items()
                      if self.quotes[n]["state"] != p["state"]}
        known = {r["subagent_id"]: r for r in runs}
        self.begun = [r for r in self.runs if r["subagent_id"] not in known]
        self.order = [r["subagent_id"] for r in runs]
        self.stopped = [i + 1 for i, r in enumerate(runs) if r["status"] != "cancelled" and any(
            n["subagent_id"] == r["subagent_id"] and n["status"] == "cancelled" for n in self.runs)]
        messages = [e["message"] for e in self.entries if "message" in e]
        self.said = "\n".join(b["text"] for m in messages if m["role"] == "assistant"
                              for b in m["content"] if b["type"] == "text")
        self.calls = [b for m in messages if m["role"] == "assistant"
                      for b in m["content"] if b["type"] == "toolCall"]

    def nothing(self):
        return [f"quoted {p['config'].get('task', 'a group')!r}" for p in self.new] + self.still()

    def still(self):
        return ([f"quote {n} is {p['state']}" for n, p in self.moved.items()] +
                [f"{r['subagent_id']} began" for r in self.begun] +
                [f"run {n} was cancelled" for n in self.stopped])

    def which(self, o, there):
        word = (o[None] or ["1"])[0]
        return sorted(there) if word == "all" else [int(n) for n in word.split(",")]

    def check(self, kind, o, regex):
        wrong = []
        if kind == "said":
            wrong += self.still()
        elif kind in ("asks", "says"):
            wrong += self.nothing()
            if kind == "asks":
                names = [f"{p['number']}" for p in self.was.values() if p["state"] == "pending"]
                names = names if len(names) > 1 else []
                wrong += [f"she does not name {n}" for n in names if n not in self.said]
                if "?" not in self.said and "Name it" not in self.said:
                    wrong.append("she asks nothing")
            if regex and not regex.search(self.said):
                wrong.append("not said")
            if not self.said.strip():
                wrong.append("she said nothing")
        elif kind == "proposes":
            if len(self.new) != 1 or self.begun:
                wrong += self.nothing() or ["nothing was quoted"]
            else:
                config = self.new[0]["config"]
                count = len(config.get("members", [config]))
                if count != int(o.get("runs", 1)):
                    wrong.append(f"{count} runs")
                limits(config, o, wrong)
        elif kind in ("starts", "rejects"):
            open_now = [p["number"] for p in self.was.values() if p["state"] == "pending"]
            want = self.which(o, open_now)
            state = "confirmed" if kind == "starts" else "rejected"
            have = sorted(n for n, p in self.moved.items() if p["state"] == state)
            if have != want or len(self.moved) != len(want) or self.new:
                wrong += self.nothing() or ["nothing happened"]
            elif kind == "starts":
                for p in self.moved.values():
                    if "group_id" in p and "cents" in o and (
                            f"${int(o['cents']) / 100:.2f} in all" not in p["changes"]):
                        wrong.append(f"changed: {p['changes']}")
                for r in [] if "group_id" in p else self.begun:
                    limits({"limits": {"costCents": r["limits"]["max_cost_cents"],
                                       "seconds": r["limits"]["timeout"]}}, o, wrong)
        elif kind == "changes":
            want = self.which(o, [1])
            new = [p for p in self.new if p["replaces"] in self.was]
            if len(new) != 1 or self.begun or [self.was[new[0]["replaces"]]["number"]] != want:
                wrong += self.nothing() or ["nothing happened"]
            else:
                limits(new[0]["config"], o, wrong)
        elif kind == "cancels":
            if self.stopped != self.which(o, range(1, len(self.order) + 1)):
                wrong += self.nothing() or ["nothing was cancelled"]
        elif kind in ("allows", "denies"):
            name = os.path.join(ROOT, "logs/subagents", self.order[-1] + ".jsonl")
            with open(name, encoding="utf-8") as f:
                log = [json.loads(line) for line in f]
            asked = [e["content"] for e in log if e["eventType"] == "ToolResult"]
            good = bool(asked) and asked[0].get("success", True)
            if not asked or good != (kind == "allows"):
                wrong.append("it waits still" if not asked else "it was the other")
        return wrong


def play(folder, state, line, expect):
    wanted = alternatives(expect)
    talk = begin(state, folder)
    before = talk.look()
    talk.say(line)
    kinds = {kind for kind, _, _ in wanted}
    surely = 20 if len(kinds) == 1 else 2
    if kinds & {"allows", "denies"} or (kinds & {"starts"} and state not in ("running", "running2")):
        try:
            talk.idle(runs=True, patience=surely)  # it may have begun none
        except RuntimeError:
            pass
    if "cancels" in kinds:
        enough = all if any(kind == "cancels" and o[None] == ["all"] for kind, o, _ in wanted) else any
        called = any(c["name"] == "cancel_subagent" for c in Seen(talk, before, talk.look()).calls)
        until(lambda: enough(r["status"] == "cancelled" for r in talk.look()[1]), 20 if called else surely)
    seen = Seen(talk, before, talk.look())
    wrong = [seen.check(*w) for w in wanted]
    for r in seen.runs:
        if r["status"] in ("running", "queued", "waiting", "starting"):
            ask("POST", f"/runs/{r['subagent_id']}/cancel", {})
    if any(not w for w in wrong):
        return []
    return [f"{'; '.join(w[0] if len(w) == 1 else ', '.join(w) for w in wrong)}; she said: {seen.said!r}"]


def main():
    folder, rows = sys.argv[1], []
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                if line.strip() and not line.startswith("#"):
                    fields = line.rstrip("\n").split("\t")
                    if len(fields) != 3:
                        raise SystemExit(f"{path}:{number}: {len(fields)} fields")
                    rows.append(fields)
    # As many as keep at work must not hold up the others.
    only = os.environ.get("CORPUS_ONLY")
    jobs = [row for row in rows if not only or only in "\t".join(row)]

    def one(job):
        state, line, expect = job
        name = f"{state}: {line} -> {expect}"
        try:
            wrong = play(folder, state, line, expect)
        except (RuntimeError, ValueError, KeyError, IndexError, OSError) as why:
            wrong = [f"{type(why).__name__}: {why}"]
        return name, wrong

    with ThreadPoolExecutor(4) as pool:
        for name, wrong in pool.map(one, jobs):
            check(name, not wrong, *wrong)


main()
