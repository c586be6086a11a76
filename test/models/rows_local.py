"""What a local server tells of itself, and what becomes of a run at it: the model that is the default, calls at a
time, a template without tools, the name that the server answers with."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from play import Row
from service import DONE, chunk, error, resp, sse, submit, text, usage

ALONE = {"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": "", "OPENROUTER_API_KEY": ""}
NO_TOOLS = "counted 771 tokens of a request of about"


def models(*names):
    return {"/v1/models": resp(200, {"data": [{"id": n} for n in names]})}


def default_run(world, row):
    printed = world.ava("run", f"Look at the folder. [row {row.name}]", "--role", "code_reviewer", "--yes", "--json")
    return printed, json.loads(printed.stdout or "{}")


def one_model(world, row):
    """Its address alone is enough, where it has one model that talks."""
    printed, result = default_run(world, row)
    sent = [r.body.get("model") for r in world.seen(row)]
    return [] if (result.get("model"), sent) == ("local/qwen3:8b", ["qwen3:8b"]) else [f"{result} {sent} {printed.stderr}"]


def several_models(world, row):
    printed, _ = default_run(world, row)
    words = "has 2 models (llama3.1, qwen3:8b): set AVA_LOCAL_MODEL to one of them"
    wrong = [] if words in printed.stderr else [printed.stderr]
    # The next question finds what the server has by then.
    world.service.gets.update(models("qwen3:8b"))
    end = time.monotonic() + 20
    while time.monotonic() < end and not world.seen(row):
        default_run(world, row)
        time.sleep(0.2)
    return wrong + ([] if world.seen(row) else ["the server's new list was not read"])


class Busy:
    """How many calls are there at a time."""

    def __init__(self):
        self.now, self.most, self.lock = 0, 0, threading.Lock()

    def script(self, n, r):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.3)
        with self.lock:
            self.now -= 1
        return submit(n, r)


def slots(busy, most):
    def play(world, row):
        with ThreadPoolExecutor(3) as pool:
            ends = list(pool.map(lambda _: world.run(row)[1].get("status"), range(3)))
        return [] if ends == ["success"] * 3 and busy.most == most else [f"{ends}, {busy.most} at a time"]
    return play


def deaf(n, r):
    """A reply of a model whose template drops the tools."""
    return sse(chunk({"role": "assistant", "content": "The task is done, and you can go on."}), chunk({}, "stop"),
               usage(771, 12), DONE)


def undercount(world, row):
    """Told in the run, in its result and in the next quote; told in one run only; and its record replays."""
    shown, result = world.run(row)
    wrong = [] if any(NO_TOOLS in c for c in result.get("caveats", [])) else [f"no caveat: {result} {shown.stderr}"]
    log = world.ava("logs", result.get("subagent_id", "-"), "-o", "json").stdout
    if log.count(NO_TOOLS) < 1:
        wrong.append("not told while it ran")
    replay = world.ava("replay", result.get("subagent_id", "-"))
    if replay.returncode != 0:
        wrong.append(replay.stdout + replay.stderr)
    again, result = world.run(row)
    if any(NO_TOOLS in c for c in result.get("caveats", [])):
        wrong.append("told a second time")
    if "NO TOOLS REACH local/undercount" not in again.stdout + again.stderr:
        wrong.append("not in the quote: " + again.stderr)
    return wrong


def told_before(world, row):
    printed, _ = world.run(row)
    return [] if "NO TOOLS REACH local/told_before" in printed.stdout + printed.stderr else [printed.stderr]


def served(world, row):
    _, result = world.run(row)
    log = world.ava("logs", result.get("subagent_id", "-"), "-o", "json").stdout
    return [] if '"served":"m"' in log else [log]


def quoted(world, row):
    """Four times the role's five minutes, no thinking that nobody asks for; a time that was said stays."""
    words = world.ava("run", f"Look. [row {row.name}]", "--role", "code_reviewer", "--model", row.model(), "--thinking")
    mine = world.ava("run", f"Look. [row {row.name}]", "--role", "code_reviewer", "--model", row.model(), "--timeout", "60")
    cloud = world.ava("run", f"Look. [row {row.name}]", "--role", "researcher", "--model", "anthropic/claude-haiku-5-5")
    if "Model: anthropic/claude-haiku-5-5, thinking" not in cloud.stdout + cloud.stderr:
        return [cloud.stdout + cloud.stderr]
    wrong = [] if "stops at 20 min" in words.stdout + words.stderr else [words.stdout + words.stderr]
    if "thinking" in words.stdout + words.stderr:
        wrong.append("thinking")
    return wrong + ([] if "stops at 1 min" in mine.stdout + mine.stderr else [mine.stdout + mine.stderr])


def half_there(env, words):
    """Half of what a service needs is set: said by the run that is offline for it, and by doctor."""
    def play(world, row):
        out = world.ava("doctor").stdout
        return [] if words in out else [out]
    return Row("half_" + next(iter(env)).lower(), submit, env={**ALONE, "AVA_LOCAL_BASE_URL": "", "OPENAI_BASE_URL": "",
               "ANTHROPIC_BASE_URL": "", "OPENROUTER_BASE_URL": "", **env}, play=play)


BUSY = [Busy(), Busy()]
ROWS = [
    Row("one_model", submit, env=ALONE, gets=models("nomic-embed-text:latest", "qwen3:8b"), play=one_model),
    Row("several_models", submit, env=ALONE, gets=models("llama3.1", "qwen3:8b"), play=several_models),
    Row("slots_one", BUSY[0].script, gets={"/props": resp(200, {"total_slots": 1})}, play=slots(BUSY[0], 1)),
    Row("slots_unknown", BUSY[1].script, play=slots(BUSY[1], 3)),
    Row("undercount", deaf, play=undercount),
    Row("told_before", submit, gets={"/props": resp(200, {"chat_template_caps": {"supports_tools": False}})},
        play=told_before),
    Row("served", submit, play=served),
    Row("quoted", submit, play=quoted),
    half_there({"AVA_LOCAL_MODEL": "qwen3:8b"}, "AVA_LOCAL_MODEL is set without AVA_LOCAL_BASE_URL: set it to where"),
    half_there({"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, "OPENAI_BASE_URL is set without OPENAI_API_KEY"),
]
