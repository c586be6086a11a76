#!/usr/bin/env python3
"""ava with the genuine server of llama.cpp and two small models: what they say is not looked at, how ava takes it is.

    play.py [-v] FOLDER [LANE...]     FOLDER: what get.py fetched; lanes: plain tools window; -v: what was printed

Two lanes go side by side, a thread of the processor each: a model whose template has no tools (chat, cancel, kill -9, a
group), and one whose template has (roles and tasks, windows of 4k, 8k and 16k). A proxy keeps every request: each goes on
from the last one of its conversation byte for byte, and the server reads only what is new. Prints `ok N - NAME` lines;
lines of figures begin with `#`."""

import argparse
import json
import os
import re
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from world import OPEN, Server, World, until  # noqa: E402

PATIENCE = 600  # seconds for one command beside other checks
BOUND = 1500  # seconds for all, beside other checks
EVALUATED = 64  # tokens of a template around what is new, which has a token a byte at the most
REPEATS = 4  # of the same reply, then a run ends
EXITS = {"success": 0, "no_result": 1, "unproven": 1, "error": 1, "cancelled": 1, "timeout": 3, "cost_exceeded": 3,
         "tokens_exceeded": 3, "iterations_exceeded": 3}

SHOP = "import sys\nTAX = 0.19\n\n\ndef price(net):\n    return net * (1 + TAX)\n"
NOTES = "Monday: nothing.\nTuesday: an otter was seen at the weir.\nWednesday: rain.\n"

# What a person might ask the four roles for: the name, the role, the task, and more of the arguments.
TASKS = [
    ("tax", "code_reviewer", "Which TAX rate does shop.py use, and in which line is it set?", ()),
    ("files", "code_reviewer", "Which files are in this folder?", ()),
    ("otter", "researcher", "On which day was the otter seen? It stands in notes.txt.", ()),
    ("invoice", "data_extractor", "What is the total of the invoice in the context?", ("--context", "Invoice 7: 3 chairs at 20, total 60 EUR.")),
    ("page", "web_crawler", "Read the page URL/page and say its title.", ()),
]


class Account:
    """The lines of all lanes."""

    def __init__(self, verbose):
        self.verbose, self.lock, self.count, self.failed = verbose, threading.Lock(), 0, 0
        self.began = time.monotonic()

    def check(self, name, wrong):
        """`wrong`: what is, a text or a list; nothing: good."""
        wrong = [wrong] if isinstance(wrong, str) else [w for w in wrong or [] if w]
        with self.lock:
            self.count += 1
            self.failed += bool(wrong)
            print("not ok" if wrong else "ok", self.count, "-", name, flush=True)
            for line in wrong:
                print("#   " + str(line).replace("\n", "\n#   ")[:3000], flush=True)

    def say(self, text):
        with self.lock:
            print(f"# {time.monotonic() - self.began:4.0f} s  {text}", flush=True)

    def show(self, done):
        if self.verbose:
            self.say(f"ava {' '.join(done.args)}: {done.returncode}\n{done.stdout}{done.stderr}".replace("\n", "\n#     "))


def conversations(calls):
    """The calls by conversation, which the first words of the person tell apart."""
    found = {}
    for call in calls:
        found.setdefault(call.task(), []).append(call)
    return found


def goes_on(a, b):
    """Request b has all the bytes of request a to the end of its messages: its tools and system text, too."""
    return b.raw.startswith(a.prefix())


def extended(world, calls):
    """Each request of a conversation goes on from the last one, but where its record has an amendment."""
    wrong = []
    for task, mine in conversations(calls).items():
        breaks = [n for n, (a, b) in enumerate(zip(mine, mine[1:]), 2) if not goes_on(a, b)]
        amendments = world.amendments(task)
        if len(breaks) > amendments:
            wrong.append(f"requests {breaks} of {len(mine)} do not go on from the one before ({amendments} amendments): {task[:200]}")
    return wrong


def alone(calls, a, b):
    """No other conversation had a slot between the two: it may have taken theirs, with what it knew."""
    return all(c.task() == a.task() or c.ended <= a.began or c.began >= b.ended for c in calls)


def evaluated(account, server, calls):
    """What the server read again of a request that goes on from the last one: what is new and a few tokens of the template."""
    wrong = []
    for task, mine in conversations(calls).items():
        figures = []
        for a, b in zip([None] + mine, mine):
            t = b.timings()
            if not t:
                continue
            new = len(b.prefix()) - (len(a.prefix()) if a else 0)
            figures.append(f"{t['prompt_n']}/{t['cache_n']} (+{new} B)")
            if a and goes_on(a, b) and alone(calls, a, b) and a.timings() and t["prompt_n"] > EVALUATED + new:
                wrong.append(f"{t['prompt_n']} tokens for {new} new bytes, {t['cache_n']} were there: {task[:100]}")
        if figures:
            account.say(f"{server.model}: tokens evaluated/cached by request: {', '.join(figures)}")
    return wrong


def bounded(server, context, calls):
    """No result of a tool is more than a quarter of the window."""
    texts = {m["content"] for call in calls for m in call.body["messages"] if m.get("role") == "tool" and isinstance(m.get("content"), str)}
    sizes = [server.tokens(text) for text in texts if len(text) > context // 4]
    return [f"a result of {size} tokens in a window of {context}" for size in sizes if size > context // 4 * 1.05]


def sensible(done, result, calls):
    """What is wrong with how a run ended: its word, its mark, its code and its sentence say the same, and it made no loop."""
    if not result:
        return [f"no result (code {done.returncode}): {done.stdout}{done.stderr}"]
    wrong = []
    status, why = result["status"], result.get("stop_reason")
    ran = {k: v for k, v in result["evidence"]["tools"].items() if k != "submit_result"}
    if status not in EXITS:
        wrong.append(f"{status} is no end")
    elif done.returncode != EXITS[status]:
        wrong.append(f"{status} with code {done.returncode}")
    good = "✅" in done.stderr
    if good != (status == "success"):
        wrong.append(f"{status}, and the mark says otherwise")
    if good and why != "submitted" and not result["unverified"]:
        wrong.append("a text was taken for a result that was looked at")
    if good and isinstance(result["output"], dict) and isinstance(result["output"].get("arguments"), dict):
        wrong.append("a call that was written as text is the result")
    if status in ("success", "no_result") and not ran and "looked up" not in "".join(result["caveats"][:1]):
        wrong.append("nothing says first that no tool was called")
    if good and calls and len(result["summary"]) > 12 and result["summary"] in json.dumps(calls[0].body.get("tools"), ensure_ascii=False):
        wrong.append("the summary is what ava's own schema says of it")
    if status == "error" and not result["error"]:
        wrong.append("an error without a sentence")
    if status in ("success", "no_result") and result["partial"]:
        wrong.append("partial, and nothing stopped it")
    replies = [json.dumps(c.said()) for c in calls if c.ended and c.status() == 200 and not c.left]
    most = max((replies.count(r) for r in set(replies)), default=0)
    if most > REPEATS + 1:
        wrong.append(f"the same reply {most} times")
    return wrong + [f"{json.dumps(result, ensure_ascii=False)[:700]}\n{done.stderr[-200:]}"] if wrong else []


def told_of_no_tools(text):
    return None if re.search(r"(no|not call|cannot call) tools|template has none", text) else f"nothing says that the model has no tools: {text[-300:]}"


def config(server):
    """No reply is longer, that all of it ends in time; the window is what the server says."""
    return f"models:\n  list:\n    - id: {server.model}\n      max_output: 200\n"


def of_all(account, name, world, server, context):
    """What holds for every conversation that a server had."""
    calls = [c for c in server.proxy.calls if c.ended]
    account.say(f"{name}: {server.seconds():.0f} s of the processor for {len(calls)} requests")
    account.check(f"{name}: each of {len(calls)} requests goes on from the last one of its conversation", extended(world, calls))
    account.check(f"{name}: the server evaluates what is new", evaluated(account, server, calls))
    account.check(f"{name}: results of tools keep to a quarter of the window", bounded(server, context, calls))
    account.check(f"{name}: every line of the records is an event", world.events_wrong())


# ---- a model without tools

def kill_and_cancel(account, server, world):
    task = "Write a long story about an otter, a hundred sentences."
    process = world.start("run", task, "--yes", "--json", "--role", "code_reviewer", "--timeout", "1200")
    mine = lambda: server.proxy.of("about an otter")  # noqa: E731
    until(PATIENCE, lambda: mine() and mine()[0].first)
    pid = world.kill_daemon()
    until(PATIENCE, lambda: len(mine()) > 1 and mine()[1].first)
    slots = [s for s in server.get("/slots") if s.get("is_processing")]
    read = sum(s.get("n_prompt_tokens_processed", 0) for s in slots)
    account.say(f"kill -9 of avad ({pid}) in mid-reply: {len(mine()[0].raw)} bytes sent again, {read} tokens evaluated")
    account.check("kill -9 in mid-reply: the same bytes go out again",
                  None if len(mine()) > 1 and mine()[0].raw == mine()[1].raw else f"{len(mine())} requests")
    account.check("kill -9 in mid-reply: few tokens are evaluated again", None if slots and read <= EVALUATED else f"{read} of {slots}")
    began = time.monotonic()
    done = world.ava("cancel", *world.runs())
    took = time.monotonic() - began
    free = until(5, lambda: not server.busy())
    account.say(f"cancel in mid-generation: {took * 1000:.0f} ms, the server is free after {time.monotonic() - began:.2f} s")
    account.check("cancel in mid-generation: it is cancelled", None if done.returncode == 0 else done.stderr)
    account.check("cancel in mid-generation: the server is freed", None if free else "it still writes five seconds later")
    out, err = process.communicate(timeout=60)
    status = json.loads(out)["status"] if out else err
    account.check("the command that waits hears of both", None if status == "cancelled" and process.returncode == 1 else f"{status}, {process.returncode}")


def talk(account, server, world, *lines):
    """Ava answers each line, and what is no call is not taken for one."""
    before = len(server.proxy.calls)
    done = world.ava("chat", said="".join(line + "\n" for line in lines), patience=PATIENCE)
    account.show(done)
    calls = server.proxy.calls[before:]
    said = done.stdout + done.stderr
    wrong = [f"code {done.returncode}: {said}"] if done.returncode not in (0, 1) else []
    if done.stdout.count("Ava: ") < len(lines) and "cannot answer" not in said:
        wrong.append(f"{len(lines)} lines, and these answers: {said}")
    wrong += [f"a call is shown as Ava's words: {line}" for line in done.stdout.split("\n") if re.match(r'Ava: (```\w*\s*)?\{\s*"name"', line)]
    return done, calls, wrong


def lane_plain(account, folder, python):
    """Two slots of a model whose template has no tools."""
    context = 8192
    server = Server(python, os.path.join(folder, "smollm2.gguf"), context, slots=2)
    world = World(server.proxy.url, config=config(server))
    try:
        world.file("shop.py", SHOP)
        doctor = world.ava("doctor")
        account.show(doctor)
        account.check("doctor says that the model has no tools", told_of_no_tools(doctor.stdout + doctor.stderr))
        default = "local/default" not in doctor.stdout and "local/smollm2" in doctor.stdout
        account.check("the one model of the server is the default", None if default else doctor.stdout[:500])
        if not default:
            world.env["AVA_LOCAL_MODEL"] = "smollm2"  # the rest is played all the same
        done, calls, wrong = talk(account, server, world, "hello", "What can you do?", "Thank you.")
        account.check("chat: each line is answered", wrong)
        account.check("chat: it is told that the model has no tools", told_of_no_tools(done.stdout + done.stderr))
        kill_and_cancel(account, server, world)
        tasks = "".join(json.dumps({"task": f"What is in shop.py? Part {n}.", "role": "code_reviewer"}) + "\n" for n in (1, 2, 3))
        world.file("tasks.jsonl", tasks)
        before = len(server.proxy.calls)
        done = world.ava("run", "--parallel", "tasks.jsonl", "--yes", "--json", "--timeout", "1200", patience=PATIENCE)
        account.show(done)
        calls = server.proxy.calls[before:]
        ends = [r.get("status") for r in world.results("What is in shop.py? Part")]
        account.say(f"a group of three: {ends}, {len(calls)} requests, {at_once(calls)} at once, code {done.returncode}")
        account.check("parallel: each of three ends by itself", None if len(ends) == 3 and all(e in EXITS and e != "cancelled" for e in ends) else f"{ends}: {done.stderr}")
        account.check("parallel: as many requests at once as the server has slots", None if at_once(calls) <= 2 else f"{at_once(calls)} at once")
        of_all(account, "smollm2", world, server, context)
    finally:
        world.close()
        server.close()


def at_once(calls):
    """The most that were under way at a time."""
    edges = sorted([(c.began, 1) for c in calls] + [(c.ended, -1) for c in calls if c.ended])
    now = most = 0
    for _, step in edges:
        now += step
        most = max(most, now)
    return most


# ---- a model with tools

def one_run(account, server, world, name, role, task, more):
    before, pid = len(server.proxy.calls), world.daemon()
    task = task.replace("URL", server.proxy.url)
    began = time.monotonic()
    done, result = world.run(task, "--role", role, "--timeout", "1200", "--max-iterations", "6", *more, patience=PATIENCE)
    calls = server.proxy.calls[before:]
    account.show(done)
    account.say(f"{name}, {role}: {result.get('status')}/{result.get('stop_reason')}, code {done.returncode}, {len(calls)} replies, "
                f"tools {result.get('evidence', {}).get('tools')}, {time.monotonic() - began:.0f} s: {(result.get('error') or result.get('summary') or '')[:160]!r}")
    wrong = sensible(done, result, calls)
    if pid and world.daemon() != pid:
        wrong.append("the daemon is another one")
    account.check(f"{name}, {role}: a sensible end", wrong)
    return calls


def first_size(account, server, name, calls, most):
    """The first request of a run or of Ava, in tokens as the server counts them."""
    if not calls:
        account.check(f"{name}: a first request of at most {most} tokens", "there was none")
        return
    size = server.prompt_tokens(calls[0].body)
    account.say(f"{name}: {size} tokens in the first request, {len(calls[0].body.get('tools') or [])} tools")
    account.check(f"{name}: a first request of at most {most} tokens", None if size <= most else f"{size} tokens")


def lane_tools(account, folder, python):
    """Five small tasks for the four roles in a window of 8k, then chat."""
    context = 8192
    server = Server(python, os.path.join(folder, "qwen0.5b.gguf"), context)
    world = World(server.proxy.url, {"AVA_LOCAL_MODEL": "qwen0.5b"}, config(server))
    try:
        world.file("shop.py", SHOP)
        world.file("notes.txt", NOTES)
        for n, (name, role, task, more) in enumerate(TASKS):
            calls = one_run(account, server, world, name, role, task, more)
            if n == 0:
                first_size(account, server, "8k, code_reviewer", calls, 1500)
        _, calls, wrong = talk(account, server, world, "Please have a subagent find out which tax rate shop.py uses.")
        account.check("8k: Ava answers", wrong)
        first_size(account, server, "8k, Ava", calls, 2000)
        of_all(account, "8k", world, server, context)
    finally:
        world.close()
        server.close()


def lane_window(account, folder, python):
    """A window of 4k, where little fits, and one of 16k; ava hears of both from the server alone."""
    for context, most, chat in ((4096, 1500, 2000), (16384, 16384 // 4, None)):
        name = f"{context // 1024}k"
        server = Server(python, os.path.join(folder, "qwen0.5b.gguf"), context)
        world = World(server.proxy.url, {"AVA_LOCAL_MODEL": "qwen0.5b"}, config(server))
        try:
            world.file("log.txt", "".join(f"line {n}: nothing happened at the weir\n" for n in range(1500)))
            calls = one_run(account, server, world, f"{name}, a file larger than the window", "code_reviewer",
                            "Read log.txt and say what happened at the weir.", ())
            first_size(account, server, f"{name}, code_reviewer", calls, most)
            if chat:
                _, calls, wrong = talk(account, server, world, "hello")
                account.check(f"{name}: Ava answers", wrong)
                first_size(account, server, f"{name}, Ava", calls, chat)
            of_all(account, name, world, server, context)
        finally:
            world.close()
            server.close()


LANES = {"plain": lane_plain, "tools": lane_tools, "window": lane_window}
SIDE_BY_SIDE = [["tools"], ["plain", "window"]]


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("folder")
    p.add_argument("lanes", nargs="*")
    p.add_argument("-v", action="store_true")
    a = p.parse_args()
    account = Account(a.v)
    python = os.path.join(a.folder, "venv/bin/python3")

    def go(lanes):
        for name in lanes:
            if a.lanes and name not in a.lanes:
                continue
            try:
                LANES[name](account, a.folder, python)
            except Exception as e:  # a lane that cannot be played is told as one that failed
                account.check(f"{name} is played to its end", f"{type(e).__name__}: {e}")

    threads = [threading.Thread(target=go, args=(lanes,), daemon=True) for lanes in SIDE_BY_SIDE]
    for t in threads:
        t.start()
    try:
        for t in threads:
            t.join(max(account.began + BOUND - time.monotonic(), 0))
        if any(t.is_alive() for t in threads):
            account.check(f"all is played within {BOUND} s", "it is not")
    finally:
        for it in list(OPEN):
            it.close()
    print(f"1..{account.count}", flush=True)
    return 1 if account.failed or not account.count else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    code = main()
    os._exit(code)  # lanes that have not ended do not hold it
