"""OpenAI's Responses API: a third form, chosen by config.yaml or by a refusal that names it."""

import json
import os
import re
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

from play import AVA, Row
from service import RESULT, call, error, sse, submit


MOCK = os.path.join(os.path.dirname(AVA), "../../test/mock/mock-models")


def rev(kind, **members):
    return f"event: {kind}\ndata: " + json.dumps({"type": kind, "sequence_number": 0, **members}) + "\n\n"


def counted(request, output=30, **members):
    return {"input_tokens": request.tokens(), "input_tokens_details": {"cached_tokens": 0}, "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": request.tokens() + output, **members}


def response(n, status="in_progress", **members):
    return {"id": f"resp_{n}", "object": "response", "status": status, "error": None, "incomplete_details": None,
            "model": "m", "output": [], "usage": None, **members}


def items(n, request, *output, status="completed", used=None, **members):
    """A whole stream of these items, each with its pieces."""
    out = [rev("response.created", response=response(n)), rev("response.in_progress", response=response(n))]
    for i, item in enumerate(output):
        begun = {k: v for k, v in item.items() if k not in ("arguments", "content", "encrypted_content")}
        out.append(rev("response.output_item.added", output_index=i, item={**begun, "status": "in_progress"}))
        if item["type"] == "message":
            for part in item["content"]:
                out.append(rev("response.output_text.delta", output_index=i, item_id=item["id"], content_index=0,
                               delta=part["text"]))
        if item["type"] == "function_call":
            for piece in (item["arguments"][:5], item["arguments"][5:]):
                out.append(rev("response.function_call_arguments.delta", output_index=i, item_id=item["id"], delta=piece))
            out.append(rev("response.function_call_arguments.done", output_index=i, item_id=item["id"],
                           arguments=item["arguments"]))
        out.append(rev("response.output_item.done", output_index=i, item=item))
    out.append(rev(f"response.{status}", response=response(n, status, output=list(output),
                                                           usage=used or counted(request), **members)))
    return sse(*out)


def thought(n):
    return {"id": f"rs_{n}", "type": "reasoning", "encrypted_content": f"gAAAA{n}==",
            "summary": [{"type": "summary_text", "text": "I look."}]}


def called(n, name, args):
    return {"id": f"fc_{n}", "type": "function_call", "status": "completed", "call_id": f"call_{n}", "name": name,
            "arguments": args if isinstance(args, str) else json.dumps(args)}


def words(n, text):
    return {"id": f"msg_{n}", "type": "message", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": []}]}


def submitted(n, request, *before, **more):
    return items(n, request, *before, called(n, "submit_result", RESULT), **more)


ONLY = "This model is only supported in v1/responses and not in v1/chat/completions."
CHAT = "This model is not supported with the Responses API. Please use the /v1/chat/completions endpoint."


def only_here(answer):
    """Of a model that is served at /responses alone."""
    def script(n, request):
        if not request.path.endswith("/responses"):
            return error(404, ONLY, type="invalid_request_error", param="model", code=None)
        return answer(n - 1, request)
    return script


def looks(n, request):
    if n == 1:
        return items(n, request, thought(n), words(n, "I look."), called(n, "list_files", {"path": "."}))
    return submitted(n, request, thought(n))


def sent_well(seen):
    """The first request was refused; the others are whole, extend each other, and hold what came as it came."""
    paths = [r.path for r in seen]
    if paths != ["/v1/chat/completions", "/v1/responses", "/v1/responses"]:
        return f"paths {paths}"
    one, two = (r.body for r in seen[1:])
    if two["store"] is not False or two["include"] != ["reasoning.encrypted_content"] or "previous_response_id" in two:
        return f"store, include: {two.get('store')}, {two.get('include')}"
    if not two["instructions"] or any(t["strict"] or "function" in t for t in two["tools"]):
        return "instructions or tools"
    head = seen[1].raw[:seen[1].raw.index(b'],"stream"')]
    if not seen[2].raw.startswith(head):
        return "the request does not extend the one before"
    lines = two["input"]
    if [x.get("type", x.get("role")) for x in lines] != ["user", "reasoning", "message", "function_call",
                                                         "function_call_output"] or one["input"] != lines[:1]:
        return f"items {lines}"
    if {k: lines[1][k] for k in thought(1)} != thought(1) or lines[3]["call_id"] != lines[4]["call_id"]:
        return f"what came is not what went back: {lines}"
    return None


def learned(world, row):
    """The second run asks there at once; its replay is the same; after a restart of the daemon, too."""
    wrong = []
    first, result = world.run(row)
    again, result2 = world.run(row)
    paths = [r.path for r in world.seen(row)]
    if [r.get("stop_reason") for r in (result, result2)] != ["submitted"] * 2:
        return [f"ended {result} {result2} {first.stderr} {again.stderr}"]
    if paths != ["/v1/chat/completions"] + ["/v1/responses"] * 4:
        wrong.append(f"paths {paths}")
    for r in (result, result2):
        replay = world.ava("replay", r["subagent_id"])
        if replay.returncode != 0:
            wrong.append(f"replay: {replay.stdout}{replay.stderr}")
    world.end_daemon()
    resumed = world.ava("resume", result["subagent_id"], "--yes", "--json")
    if resumed.returncode != 0 or world.seen(row)[-1].path != "/v1/responses" or \
            world.seen(row)[-1].body["input"][:4] != world.seen(row)[2].body["input"][:4]:
        wrong.append(f"resume: {resumed.stdout[-300:]}{resumed.stderr[-600:]}")
    return wrong


def together(world, row):
    """Several runs are refused before one of them has learned it."""
    with ThreadPoolExecutor(4) as pool:
        ends = [r.get("stop_reason") for _, r in pool.map(lambda _: world.run(row), range(4))]
    paths = [r.path for r in world.seen(row)]
    return [f"{ends} {paths}"] if ends != ["submitted"] * 4 or paths[:4] != ["/v1/chat/completions"] * 4 else []


def configured(world, row):
    folder = world.root + "/config/ava"
    os.makedirs(folder, 0o700, exist_ok=True)
    wrong = []
    for word in ("chat", "responses"):
        with open(folder + "/config.yaml", "w", encoding="ascii") as f:
            f.write(f"models:\n  list:\n    - id: {row.model()}\n      dialect: {word}\n")
        printed, result = world.run(row)
        if word == "chat" and "is no dialect of this service" not in printed.stdout + printed.stderr:
            wrong.append(f"{printed.stdout}{printed.stderr}")
    paths = [r.path for r in world.seen(row)]
    return wrong + ([f"{result} {paths}"] if paths != ["/v1/responses"] * 2 else [])


BARRIER = threading.Barrier(4)


def all_refused(n, request):
    if not request.path.endswith("/responses"):
        BARRIER.wait(30)
        return error(404, ONLY, type="invalid_request_error", param="model", code=None)
    return submitted(n, request)


ASKED, KILLED = threading.Event(), threading.Event()


def held(n, request):
    """The reply behind the first one waits until nobody does."""
    if n == 2 and not ASKED.is_set():
        ASKED.set()
        KILLED.wait(30)
    return looks(min(n, 2), request)


def killed(world, row):
    """A daemon that is killed amid a reply goes on with the conversation as it stands."""
    r = world.ava("run", f"Look at the folder. [row {row.name}]", "--role", row.role, "--model", row.model(), "--yes",
                  "--background")
    run = re.search(r"S-[0-9a-f]{6,}", r.stdout).group()
    ASKED.wait(30)
    world.end_daemon(signal.SIGKILL)
    KILLED.set()
    world.ava("wait", run)
    result = json.loads(world.ava("result", run, "--json").stdout)
    replay = world.ava("replay", run)
    seen = world.seen(row)
    wrong = [] if result.get("stop_reason") == "submitted" else [f"ended {result}"]
    if [x.path for x in seen[1:]] != ["/v1/responses"] * 3 or seen[2].raw != seen[3].raw:
        wrong.append(f"requests {[x.raw[-900:] for x in seen]}")
    return wrong + ([f"replay: {replay.stdout}{replay.stderr}"] if replay.returncode != 0 else [])


# What mock-models (doc/MOCK.md), which refuses all that the service refuses, must be answered well, and how the run ends.
STRICT = {
    "": "submitted", "thinking=1": "submitted", "thinking=1 calls=3": "submitted", "calls=2 chunks=80": "submitted",
    "fault=529@1": "submitted", "fault=cut:900@1": "submitted", "fault=eof:900@1": "submitted",
    "fault=no-end@1": "submitted", "thinking=1 fault=error:5@1": "submitted", "fault=half-tool@1": "submitted",
    "fault=bad-utf8:1@1": "submitted", "fault=dup-ids@1": "submitted", "fault=empty@1": "submitted",
    "fault=no-submit@1": "submitted", "fault=max-tokens@1": "submitted", "fault=refusal@1": "refusal",
    "fault=bad-args@1": "submitted", "fault=deep:200@1": "submitted", "fault=html200@1": "submitted",
}


def strict(world, row):
    mock = subprocess.Popen([MOCK, "--with-parent", "--quiet", "tool=read_file", "turns=2", 'args={"path":"a.txt"}'],
                            stdout=subprocess.PIPE, text=True)
    for line in mock.stdout:
        if line.startswith("plain "):
            world.env["OPENAI_BASE_URL"] = line.split()[1] + "/v1"
        if line.startswith("ready"):
            break

    def one(numbered):
        i, (plan, end) = numbered
        r = world.ava("run", f"Look at a.txt, {i}. [[mock {plan}]]", "--role", "code_reviewer", "--yes", "--json",
                      "--model", f"openai/gpt-5-pro-{i}")
        result = json.loads(r.stdout) if r.stdout else {}
        if result.get("stop_reason") != end:
            return f"{plan}: {result.get('stop_reason')} {result.get('error')} {r.stderr[-300:]}"
        if end != "submitted":
            return None
        replay = world.ava("replay", result["subagent_id"])
        return f"{plan}: {replay.stdout}{replay.stderr}" if replay.returncode != 0 else None
    try:
        with ThreadPoolExecutor(4) as pool:
            return [w for w in pool.map(one, enumerate(STRICT.items())) if w]
    finally:
        mock.terminate()
        mock.wait()


def at_once(n, request):
    if n == 1:
        return items(n, request, called(n, "list_files", {"path": "."}))
    return submitted(n, request)


def thinks(n, request):
    """In the text, as models behind local servers do."""
    if n == 1:
        return items(n, request, words(n, "<think>WRONG DRAFT</think>I look."), called(n, "list_files", {"path": "."}))
    return submitted(n, request)


def no_draft(seen):
    said = [x for x in seen[-1].body["input"] if x.get("type") == "message"]
    return None if [x["content"][0]["text"] for x in said] == ["I look."] else f"sent back {said}"


def failed(n, request):
    if n == 1:
        return sse(rev("response.created", response=response(n)),
                   rev("response.failed", response=response(n, "failed", error={
                       "code": "server_error", "message": "The model failed."})))
    return submitted(n, request)


def cut(n, request):
    if n == 1:
        return items(n, request, called(n, "list_files", '{"pa'), status="incomplete",
                     incomplete_details={"reason": "max_output_tokens"})
    return submitted(n, request)


def switched(rows):
    return [Row(name, only_here(script), on="openai", **more) for name, script, more in rows]


def back(n, request):
    if request.path.endswith("/responses"):
        return error(400, CHAT, type="invalid_request_error")
    return call(n, request, "list_files", {"path": "."}) if n == 2 else submit(n, request)


def never(n, request):
    if request.path.endswith("/responses"):
        return error(400, CHAT, type="invalid_request_error")
    return error(404, ONLY, type="invalid_request_error")


def late(n, request):
    """It changes its mind in the middle."""
    if n == 1:
        return call(n, request, "list_files", {"path": "."})
    return error(404, ONLY, type="invalid_request_error")


def no_encryption(n, request):
    if "include" in request.body:
        return error(400, "Encrypted content is not supported with this model.", type="invalid_request_error",
                     param="include", code=None)
    return at_once(n - 1, request)


def stale(n, request):
    if n == 1:
        return items(n, request, thought(n), called(n, "list_files", {"path": "."}))
    if any(x.get("type") == "reasoning" for x in request.body["input"]):
        return error(400, "The encrypted content gAAAA1== could not be verified. Reason: Encrypted content could not be "
                     "decrypted or parsed.", type="invalid_request_error", code="invalid_encrypted_content", param=None)
    return submitted(n, request)


def quiet(n, request):
    """No event of its items, as some servers have it."""
    item = called(n, "list_files", {"path": "."}) if n == 1 else called(n, "submit_result", RESULT)
    return sse(rev("response.created", response=response(n)),
               rev("response.completed", response=response(n, "completed", output=[item], usage=counted(request))))


def index_zero(n, request):
    """Two calls, all at the same place."""
    if n > 1:
        return submitted(n, request)
    out = [rev("response.created", response=response(n))]
    for k in (1, 2):
        item = called(k, "read_file", {"path": "ab"[k - 1] + ".txt"})
        out.append(rev("response.output_item.added", output_index=0, item={**item, "arguments": ""}))
        out.append(rev("response.function_call_arguments.delta", output_index=0, item_id=item["id"], delta=item["arguments"]))
        out.append(rev("response.output_item.done", output_index=0, item=item))
    return sse(*out, rev("response.completed", response=response(n, "completed", usage=counted(request))))


def two_results(seen):
    outputs = [x for x in seen[-1].body["input"] if x.get("type") == "function_call_output"]
    return None if len(outputs) == 2 and all("hello" in x["output"] for x in outputs) else f"results {outputs}"


def refused(n, request):
    return items(n, request, {"id": "msg_1", "type": "message", "role": "assistant", "content": []}, status="incomplete",
                 incomplete_details={"reason": "content_filter"})


def limited(n, request):
    if n == 1:
        return sse(rev("response.created", response=response(n)),
                   rev("error", code="rate_limit_exceeded", message="Rate limit reached", param=None))
    return submitted(n, request)


def untyped(n, request):
    """Only the lines `event:` say what the events are."""
    if n > 1:
        return submitted(n, request)
    item = called(n, "list_files", {"path": "."})
    events = {"response.created": {"response": response(n)}, "response.output_item.done": {"output_index": 0, "item": item},
              "response.completed": {"response": response(n, "completed", usage=counted(request))}}
    return sse(*(f"event: {kind}\ndata: {json.dumps(members)}\n\n" for kind, members in events.items()))


def unplaced(status, words):
    """What was thought is refused as it comes back."""
    def script(n, request):
        if n == 1:
            return items(n, request, thought(n), called(n, "list_files", {"path": "."}))
        if any(x.get("type") == "reasoning" for x in request.body["input"]):
            return error(status, words, type="invalid_request_error", param="input", code=None)
        return submitted(n, request)
    return script


def asked_once(seen):
    return None if any(x.get("type") == "function_call_output" for x in seen[2].body["input"]) else "the reply was asked for again"


ROWS = [
    Row("resp_switch", only_here(looks), on="openai", requests=3, summary="ok done", sent=sent_well),
    Row("resp_learned", only_here(lambda n, r: looks(1 if len(r.body["input"]) == 1 else 2, r)), on="openai", play=learned),
    Row("resp_config", looks, on="openai", play=configured),
    Row("resp_together", all_refused, on="openai", play=together),
    Row("resp_killed", only_here(held), on="openai", play=killed),
    Row("resp_strict", None, on="openai", play=strict),
    Row("resp_tools", only_here(at_once), on="local", requests=3, summary="ok done"),
    Row("resp_openrouter", only_here(at_once), on="openrouter", requests=3),
    Row("resp_usage", only_here(lambda n, r: submitted(n, r, used=counted(r, 4000))), on="openai", requests=2,
        tokens=(4000, 12000)),
    Row("resp_text", only_here(lambda n, r: items(n, r, words(n, json.dumps(RESULT)))), on="openai",
        end="success/*", summary="ok done"),
    Row("resp_think", only_here(thinks), on="local", requests=3, sent=no_draft),
    Row("resp_incomplete", only_here(cut), on="openai", requests=3, summary="ok done"),
    Row("resp_failed", only_here(failed), on="openai", requests=3, summary="ok done"),
    Row("resp_error", only_here(limited), on="openai", requests=3, summary="ok done"),
    Row("resp_filter", only_here(refused), on="openai", end="error/*"),
    Row("resp_quiet", only_here(quiet), on="openai", requests=3, summary="ok done"),
    Row("resp_index_zero", only_here(index_zero), on="openai", requests=3, sent=two_results),
    Row("resp_no_encryption", only_here(no_encryption), on="openai", requests=4, summary="ok done"),
    Row("resp_stale", only_here(stale), on="openai", requests=4, summary="ok done"),
    Row("resp_untyped", only_here(untyped), on="openai", requests=3, sent=asked_once),
    Row("resp_unplaced", only_here(unplaced(400, "Item 'rs_1' of type 'reasoning' was provided without its required following "
                                            "item.")), on="openai", requests=4, summary="ok done"),
    Row("resp_not_kept", only_here(unplaced(404, "Item with id 'rs_1' not found. Items are not persisted when `store` is set to "
                                            "false.")), on="openai", requests=4, summary="ok done"),
    Row("resp_never", never, on="openai", requests=2, end="error/*", says="dialect: openai"),
    Row("resp_late", late, on="openai", requests=2, end="error/*", says="dialect: responses"),
]
