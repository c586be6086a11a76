"""What a local server tells of itself, and what becomes of a run at it: the model that is the default, calls at a
time, a template without tools, the name that the server answers with. What is asked of it has a second: the clock is the
machine's."""

import json
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import play
from play import Row
from service import DONE, call, chunk, error, resp, sse, submit, text, usage

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


def slots(busy, one):
    def played(world, row):
        with ThreadPoolExecutor(3) as pool:
            ends = list(pool.map(lambda _: world.run(row)[1].get("status"), range(3)))
        return [] if ends == ["success"] * 3 and (busy.most == 1) == one else [f"{ends}, {busy.most} at a time"]
    return played


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
    """By the server: with the first answer of a chat, and in the quote."""
    chat = subprocess.run([play.AVA, "chat"], cwd=world.work, env=world.env, input=f"Hello [row {row.name}]\n", text=True,
                          capture_output=True, timeout=60, check=False).stdout
    printed, _ = world.run(row)
    return [w for words, w in (("local/told_before is served with a template that has no tools", chat),
                               ("NO TOOLS REACH local/told_before", printed.stdout + printed.stderr)) if words not in w]


def choices(world, row):
    """Where all aliases are one model there is none to choose, and without a search nobody who goes by it."""
    subprocess.run([play.AVA, "chat"], cwd=world.work, env=world.env, input=f"Hello [row {row.name}]\n", text=True,
                   capture_output=True, timeout=60, check=False)
    tools = {t["function"]["name"]: t["function"]["parameters"]["properties"] for t in world.seen(row)[0].body["tools"]}
    spawn = tools["spawn_subagent"]
    wrong = ["a model to choose"] if "model" in spawn else []
    return wrong + (["web_crawler"] if "web_crawler" in spawn["role"]["enum"] or "researcher" not in spawn["role"]["enum"] else [])


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
    def played(world, row):
        out = world.ava("doctor").stdout
        return [] if words in out else [out]
    return Row("half_" + next(iter(env)).lower(), submit, env={**ALONE, "AVA_LOCAL_BASE_URL": "", "OPENAI_BASE_URL": "",
               "ANTHROPIC_BASE_URL": "", "OPENROUTER_BASE_URL": "", **env}, play=played, timed=True)


def tries(name, answer, words, ok, env=None, doctor=(), posts=1, **props):
    """`ava doctor` calls the model once, says what it saw in these words, and is content or not."""
    seen = []

    def completions(r):
        seen.append(r)
        return answer(r)

    def played(world, row):
        done = world.ava("doctor", *doctor)
        line = next((x for x in done.stdout.splitlines() if " try " in x), "no line")
        wrong = [f"{w!r} is not in {line}" for w in words if w not in line]
        if (line.startswith("ok"), len(seen)) != (ok, posts):
            wrong.append(f"{len(seen)} calls, {line}")
        if any(r.most_output() > 30 or len(r.body["tools"]) != 1 for r in seen):
            wrong.append(seen[0].raw.decode())
        checks = json.loads(world.ava("doctor", "--json", *doctor).stdout)["checks"]
        if [c["ok"] for c in checks if c["name"] == "try"] != [ok]:
            wrong.append(f"--json: {checks}")
        return wrong
    gets = {"/v1/chat/completions": completions, "/:11434/v1/chat/completions": completions, "/props": resp(200, props),
            "/:11434/api/show": resp(200, {"model_info": {"x.context_length": 40960}, "capabilities": ["tools"]})}
    return Row("try_" + name, submit, env={"AVA_MODEL": "local/m", **(env or {})}, gets=gets, play=played, timed=True)


def keep(r):
    return call(1, r, "keep", {"n": 7})


BUSY = [Busy(), Busy()]
ROWS = [
    Row("one_model", submit, env=ALONE, gets=models("nomic-embed-text:latest", "qwen3:8b"), play=one_model, timed=True),
    Row("several_models", submit, env=ALONE, gets=models("llama3.1", "qwen3:8b"), play=several_models, timed=True),
    Row("slots_one", BUSY[0].script, gets={"/props": resp(200, {"total_slots": 1})}, play=slots(BUSY[0], True), timed=True),
    Row("slots_unknown", BUSY[1].script, play=slots(BUSY[1], False), timed=True),
    Row("undercount", deaf, play=undercount, timed=True),
    Row("told_before", lambda n, r: text(r, "Hello, I am here."), env={"AVA_MODEL": "local/told_before"}, gets={"/props": resp(200, {"chat_template_caps": {"supports_tools": False}})},
        play=told_before, timed=True),
    Row("choices", lambda n, r: text(r, "Hello, I am here."), env={**ALONE, "AVA_LOCAL_MODEL": "m"}, play=choices, timed=True),
    Row("served", submit, play=served, timed=True),
    Row("quoted", submit, play=quoted, timed=True),
    half_there({"AVA_LOCAL_MODEL": "qwen3:8b"}, "AVA_LOCAL_MODEL is set without AVA_LOCAL_BASE_URL: set it to where"),
    half_there({"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, "OPENAI_BASE_URL is set without OPENAI_API_KEY"),
    tries("calls", keep, ["local/m calls tools (its template has tools); window 32768; reads", "Ava's first word in about"], True,
          n_ctx=32768, total_slots=1, chat_template_caps={"supports_tools": True}),
    tries("in_text", lambda r: text(r, '{"name":"keep","arguments":{"n":7}}'), ["local/m writes its calls as text"], True),
    tries("talks", lambda r: text(r, "I keep it."), ["local/m does not call tools (its template has none)",
                                                     "a model whose template has tools"], False,
          n_ctx=32768, chat_template_caps={"supports_tools": False}),
    tries("small", keep, ["window 8192", "`llama-server -c 32768 ...`"], True, n_ctx=8192, total_slots=1),
    tries("tiny", keep, ["window 2048", "a window of 32768 in the server's settings"], False, n_ctx=2048),
    tries("ollama", keep, ["window 4096", "`OLLAMA_CONTEXT_LENGTH=32768 ollama serve`"], True,
          env={"AVA_LOCAL_BASE_URL": "URL/:11434/v1", "AVA_MODEL": "local/ollama"}),
    tries("jinja", lambda r: error(500, "tools param requires --jinja flag"), ["could not be tried", "`llama-server --jinja"], False),
    tries("no_tools", lambda r: error(400, "registry.ollama.ai/library/m does not support tools"),
          ["does not support tools", "a model whose template has tools"], False),
    tries("paid", keep, ["openai/m was not tried", "`ava doctor --try` makes one, of 30 tokens"], True, posts=0,
          env={"AVA_MODEL": "openai/m"}),
    tries("paid_asked", keep, ["openai/m calls tools"], True, doctor=["--try"], env={"AVA_MODEL": "openai/m"}),
]
