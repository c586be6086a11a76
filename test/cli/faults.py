#!/usr/bin/env python3
"""Every fault of a model service, through the whole of ava: for each the run's
end, the attempts and what they were charged, and what is stored.

    faults.py CASES

CASES is `quick` or `slow` (silence, which takes as long as the timers say).
Expects $AVA, $AVA_DATA_ROOT, a daemon, and $MOCK_URL. Writes lines `CODE NAME`,
for a failed one the reason behind it."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor

AVA, ROOT = os.environ["AVA"], os.environ["AVA_DATA_ROOT"]
PATIENCE = 270  # seconds for all runs together

# A date behind a model's name makes it another model (with a gate of its own) of
# the same price.
MODELS = {
    "A": "anthropic/claude-sonnet-4-5-2025{:04}",
    "N": "anthropic/claude-sonnet-5-5-2026{:04}",  # thinks as it sees fit, takes no prefill
    "O": "openai/gpt-4o-2024{:04}",
    "R": "openrouter/anthropic/claude-sonnet-4.5-2025{:04}",
    "L": "local/qwen3-{}",
}
ALL = "AORL"


class Case:
    """A plan for the mock and what must become of it.

    on        services that it is played on
    retries   classes of the attempts that failed, in order; None stands for any
    paid      does the service bill what failed? then it is charged, estimated; of these services
              alone: a free one brought nothing
    waits     least and most that each wait may take, ms (None: our own backoff)
    tools     calls of read_file that were carried out
    bad       calls that got an error as result
    end       status, stop reason, words of the error, class of the last attempt
    resent    the request may have found a connection that was silent for a while, and was sent once
              more on a new one (net/http_call.c): then no attempt failed"""

    def __init__(self, plan, on=ALL, retries=(), paid=False, waits=None, tools=2, bad=0,
                 end=("success", "submitted"), requests=None, silent=0, resent=False):
        self.plan, self.on, self.retries = plan, on, list(retries)
        self.paid = {True: "ANORL", False: ""}.get(paid, paid)
        self.waits, self.tools, self.bad = waits, tools, bad
        self.end = tuple(end) + (None,) * (4 - len(end))
        self.requests, self.silent, self.resent = requests, silent, resent


def broken(k):
    """Cut early nothing was said yet: then it is a matter of the network."""
    return ("network", "truncated") if k < 700 else ("truncated",)


def failed(words, cls, reason="model_error"):
    return ("error", reason, words, cls)


TOLD = 1100  # ms that may be added to a wait the service asks for, at most
QUICK = [
    Case("", "ANORL"),
    # the connection
    *(Case(f"fault=cut:{k}", "AOR", [broken(k)], paid=True)
      for k in (0, 1, 120, 700, 1300, 1900, 2300)),
    *(Case(f"fault=eof:{k}", "AOR", ["truncated"], paid=True) for k in (150, 1100, 2200)),
    Case("fault=cut:1200@1", "ANORL", retries=["truncated"], paid=True),
    Case("fault=cut:99999"),  # behind the end mark: nothing is lost
    Case("fault=eof:99999"),
    Case("fault=no-end"),  # its reason and the end of the body came
    Case("fault=reset", retries=["network"]),
    Case("fault=close", retries=["network"], resent=True),
    Case("fault=empty200", retries=["truncated"], paid="AOR"),
    Case("fault=comments:50", retries=["truncated"], paid="AOR"),
    # refused for now
    Case("fault=529:ms=40x5", retries=["overloaded"] * 5, waits=(40, 40 + TOLD)),
    Case("fault=529", retries=["overloaded"]),
    Case("fault=503", "AORL", [("server_error", "overloaded")]),
    *(Case(f"fault={n}", "AR", [words]) for n, words in (
        (408, "timeout"), (409, "server_error"), (502, ("server_error", "overloaded")),
        (504, "timeout"))),
    Case("fault=500", retries=["server_error"]),
    Case("fault=500:should-retry=false", end=failed("not to try again", "server_error"), tools=0),
    Case("fault=429:ms=700", retries=["rate_limit"], waits=(700, 700 + TOLD)),
    Case("fault=429:retry-after=2", retries=["rate_limit"], waits=(2000, 2000 + TOLD)),
    Case("fault=429:date=2", retries=["rate_limit"], waits=(2000, 3000 + TOLD)),
    Case("fault=429", retries=["rate_limit"]),
    Case("fault=429:retry-after=0", retries=["rate_limit"]),
    Case("fault=429:retry-after=700", end=failed("limits the rate of requests until", "rate_limit"), tools=0),
    Case("fault=429:retry-after=500", "AOR", end=failed("time ends before the next attempt",
                                                 "rate_limit"), tools=0),
    Case("fault=529:should-retry=false", end=failed("not to try again", "overloaded"), tools=0),
    Case("fault=400:should-retry=true", retries=["bad_request"]),
    # another answer
    Case("fault=html500", retries=["server_error"]),
    Case("fault=html200", retries=["wall"]),
    Case("fault=json200", retries=[("overloaded", "server_error")]),
    Case("fault=error:5", "AOR", [("overloaded", "server_error")], paid=True),
    Case("fault=bad-json:5", "AOR", ["protocol"], paid=True),
    # what stays so
    Case("fault=401x*", end=failed("refused the key", "auth"), tools=0),
    Case("fault=402x*", end=failed("cannot pay", "billing"), tools=0),
    Case("fault=quotax*", end=failed("cannot pay", "billing"), tools=0),
    Case("fault=403x*", "AO", end=failed("refused the key", "auth"), tools=0),
    Case("fault=403x*", "R", end=failed("does not allow", "refused"), tools=0),
    Case("fault=422x*", "AR", end=failed("refused the request", "bad_request"), tools=0),
    Case("fault=404x*", end=failed("choose another model", "not_found"), tools=0),
    Case("fault=413x*", end=failed("too large", "request_too_large"), tools=0),
    Case("fault=overflowx*", end=failed("does not fit", "context_overflow"), tools=0),
    Case("fault=overflow@1"),  # once: with less output
    Case("fault=400x*", end=failed("refused the request", "bad_request"), tools=0),
    # odd replies
    Case("fault=half-tool", tools=1, bad=1),
    Case("fault=refusal", end=("error", "refusal", "refused"), tools=0),
    Case("fault=refusal@1", end=("error", "refusal", "refused"), tools=1),
    Case("fault=pausex5", "AN", tools=0, requests=6),
    Case("fault=pausex10", "AN", end=("error", "model_error", "paused"), tools=0, requests=6),
    Case("fault=emptyx3", requests=6, silent=3),
    Case("fault=emptyx*", end=("error", "empty_replies", "nothing"), tools=0, requests=4,
         silent=4),
    Case("fault=calls:200", tools=201),
    Case("fault=dup-ids", tools=3),
    Case("fault=long-name:10240", tools=1, bad=1),
    Case("fault=bad-name", tools=1, bad=1),
    Case("fault=unknown-tool", tools=1, bad=1),
    Case("fault=bad-args", tools=1, bad=1),
    Case("fault=args-concat", "A", tools=1, bad=1),
    Case("fault=deep:200", tools=1, bad=1),
    *(Case(f"fault={odd}") for odd in ("bad-utf8", "surrogate", "nul")),
    *(Case(f"fault={odd}:1", tools=1, bad=1) for odd in ("bad-utf8", "surrogate", "nul")),
    *(Case('turns=1 args={"path":"' + odd + '"}', tools=0, bad=1)
      for odd in ("a\\u0000b", "\\ud800", "\\udc00a")),
    # at a server of one's own, as all of these but one dialect, it is run: that file is not there
    Case("fault=text-call", "A", tools=1),
    Case("fault=text-call", "ORL", tools=1, bad=1),
    # a text before any call: it is told to look first
    Case("fault=no-submit", "AORL", tools=1, requests=3),
    Case("fault=max-tokens", "ANORL", tools=1, requests=3),
    Case("fault=window", "A", paid=True),
    Case("fault=big:12000000", "AO", ["protocol"], paid=True),  # a line over 8 MB
    # one after the other
    Case("fault=529:ms=40x2 fault=cut:1200 fault=html500", retries=[
        "overloaded", "overloaded", "truncated", "server_error"]),
]
SLOW = [
    Case("fault=stall-head", retries=["timeout"]),
    Case("fault=stall-first", retries=["timeout"], paid="AOR"),
    Case("fault=stall:1300", "AOR", retries=["timeout"], paid=True),
    Case("fault=comments", retries=["timeout"], paid="AOR"),
]


def ava(*arguments):
    return subprocess.run([AVA, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)


def lines(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return [json.loads(line) for line in f]


class Run:
    def __init__(self, number, case, service):
        self.case, self.service = case, service
        self.model = MODELS[service].format(number)
        self.slow = case in SLOW
        self.name = f"{case.plan or 'no fault'} ({self.model.split('/')[0]})"
        self.id, self.wrong = None, []

    def start(self):
        done = ava("run", f"Look at a.txt, {self.model}. [[mock {self.case.plan}]]", "--model",
                   self.model, "--role", "code_reviewer", "--thinking", "--yes", "--background")
        found = re.search(r"S-[0-9a-f]{6,}", done.stdout)
        if found:
            self.id = found.group()
        else:
            self.wrong.append(f"not started: {done.stdout} {done.stderr}")

    def expect(self, what, want, got):
        if want != got:
            self.wrong.append(f"{what}: want {want!r}, got {got!r}")

    # ---- what must hold for every run

    def check(self, asked):
        self.result = json.loads(ava("result", self.id, "--json").stdout)
        self.events = lines(f"logs/subagents/{self.id}.jsonl")
        self.ends = [e["content"] for e in self.of("InferEnd")]
        self.failures = [e for e in self.ends if "errorClass" in e]
        resent = self.case.resent and not self.failures
        self.retries = [] if resent else self.case.retries
        self.check_end()
        self.check_attempts()
        self.check_charges()
        self.check_messages()
        self.check_tools()
        requests = self.case.requests
        if requests is None:
            requests = len(self.ends) + int(resent)
        if not self.slow:
            self.expect("requests that the service saw", requests, asked)

    def of(self, kind):
        return [e for e in self.events if e["eventType"] == kind]

    def check_end(self):
        status, reason, words, cls = self.case.end
        last = self.events[-1]
        self.expect("ends in the log", ["SubagentComplete"],
                    [e["eventType"] for e in self.events if e["eventType"].startswith(
                        "SubagentComplete")])
        self.expect("the last event", "SubagentComplete", last["eventType"])
        self.expect("status", status, self.result["status"])
        self.expect("stop reason", reason, self.result["stop_reason"])
        self.expect("stop reason in the log", reason, last["content"]["stopReason"])
        error = self.result["error"]
        if words is None:
            self.expect("error", None, error)
        elif words not in json.dumps(error, ensure_ascii=False):
            self.wrong.append(f"the error has no {words!r}: {error}")
        if cls is not None:
            self.expect("class of the last attempt", cls, self.failures[-1]["errorClass"])

    def check_attempts(self):
        """Each failed attempt is told with its class; all but a last one go on."""
        starts = [e["content"]["callId"] for e in self.of("InferStart")]
        self.expect("ends of attempts", starts, [e["callId"] for e in self.ends])
        retried = [e for e in self.failures if "retryInMs" in e]
        lowered = [e for e in self.failures if "told" in e]  # asked again with less; the last one is the end
        final = len(self.failures) - len(retried) - len(lowered)
        final += bool(lowered) and self.case.end[3] is not None
        self.expect("failures without another attempt", int(self.case.end[3] is not None), final)
        want, got = self.retries, [e["errorClass"] for e in retried]
        if self.slow and got:  # a slow machine is silent, too
            want = want + ["timeout"] * (len(got) - len(want))
        if len(want) != len(got) or any(
                g not in (w if isinstance(w, tuple) else (w,)) for w, g in zip(want, got)):
            self.wrong.append(f"attempts tried again: want {want}, got {got}")
        for e in retried:
            # A refusal that was no storm delays its own caller shortly.
            busy = e["errorClass"] in ("overloaded", "rate_limit")
            least, most = self.case.waits or (40 if busy else 400, 60000)
            if not least <= e["retryInMs"] <= most:
                self.wrong.append(f"waits {e['retryInMs']} ms, not {least} to {most}")
        self.expect("failed calls in the totals", len(self.failures),
                    self.events[-1]["content"]["totals"]["failedCalls"])

    def check_charges(self):
        """A half stream is charged as an estimate, a refusal not at all."""
        for i, e in enumerate(self.events):
            if e["eventType"] != "InferEnd" or "errorClass" not in e["content"]:
                continue
            after = self.events[i + 1] if i + 1 < len(self.events) else None
            charged = after is not None and after["eventType"] == "CostUpdate"
            used = e["content"]["tokens"]
            self.expect("a failed attempt is estimated", True, e["content"].get("estimated"))
            if self.case.plan.count("fault=") == 1 and not (self.slow and self.failures[1:]):
                paid = self.service in self.case.paid
                self.expect("a failed attempt is charged", paid, charged)
            if not charged:
                self.expect("tokens of what is not charged", 0, used["input"] + used["output"])
                continue
            self.expect("the charge is an estimate", True, after["content"].get("estimated"))
            if used["input"] < 1000:
                self.wrong.append(f"a paid prompt of {used['input']} tokens")
            if not after["content"]["costCents"] and self.service != "L":
                self.wrong.append(f"it costs {after['content']['costCents']}")
        total = sum(e["content"]["tokens"] for e in self.of("CostUpdate"))
        self.expect("tokens in all", total, self.result["tokens_used"])

    def check_messages(self):
        """One line a whole reply, none of a half one; calls and results pair."""
        lines_ = lines(f"runs/{self.id}/messages.jsonl")[1:]
        whole = len(self.ends) - len(self.failures) - self.case.silent
        if self.case.end[1] == "refusal":
            whole -= 1  # what came of it must not be used
        self.expect("replies stored", whole, sum(m["role"] == "assistant" and m["content"] != "(nothing)" for m in lines_))
        made, waiting = 0, []
        for m in lines_:
            calls, results = calls_of(m), results_of(m)
            if results:
                self.expect("results", waiting[:len(results)], results)
                waiting = waiting[len(results):]
            else:
                self.expect("calls without a result", [], waiting)
            self.expect("ids of calls differ", len(calls), len(set(calls)))
            made, waiting = made + len(calls), waiting + calls
        self.expect("calls without a result at the end", [], waiting)
        self.expect("calls stored", len(self.of("ToolCall")), made)
        self.expect("results in the log", made, len(self.of("ToolResult")))

    def check_tools(self):
        results = [e["content"] for e in self.of("ToolResult")]
        good = sum(r["success"] and r["name"] == "read_file" for r in results)
        self.expect("files read", self.case.tools, good)
        self.expect("calls refused", self.case.bad, sum(not r["success"] for r in results))


def calls_of(message):
    if message["role"] != "assistant":
        return []
    calls = [c["id"] for c in message.get("tool_calls", [])]
    content = message["content"]
    if isinstance(content, list):
        calls += [b["id"] for b in content if b["type"] == "tool_use"]
    return calls


def results_of(message):
    if message["role"] == "tool":
        return [message["tool_call_id"]]
    if message["role"] == "user" and isinstance(message["content"], list):
        return [b["tool_use_id"] for b in message["content"] if b["type"] == "tool_result"]
    return []


def mock(path):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(os.environ["MOCK_URL"] + path, timeout=60) as answer:
        return json.load(answer)


def main():
    cases, first = {"quick": (QUICK, 100), "slow": (SLOW, 1000)}[sys.argv[1]]
    runs = [Run(first + i, c, s) for i, (c, s) in enumerate((c, s) for c in cases for s in c.on)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(Run.start, runs))
    ava("wait", "--timeout", str(PATIENCE), *(r.id for r in runs if r.id))
    asked = {}
    for row in mock("/requests"):
        asked[row["model"]] = asked.get(row["model"], 0) + 1
    for run in runs:
        if run.id:
            try:
                run.check(asked.get(run.model.split("/", 1)[1], 0))
            except (ValueError, KeyError, IndexError, OSError) as why:
                run.wrong.append(f"{type(why).__name__}: {why}")
        print(int(bool(run.wrong)), run.name, "- " + "; ".join(run.wrong) if run.wrong else "")


main()
