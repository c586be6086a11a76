"""What services say of usage, and how their replies end: no limit is passed by more than one call, whatever is said; whole
is what ended whole; a stream whose end has come is done; a service on this machine may take its time."""

import json
import os
import time

from play import Row
from service import (CHUNKED, DONE, acall, aend, aev, astart, asubmit, atool, call, chunk, chunked, ev, honest, piece, resp, sse,
                     submit, then_submit, tool_call)

# ---- services x limits (doc/RELIABILITY.md has the table)

IN, OUT = 3, 15  # dollars a million tokens of the priced model
PRICED = "openrouter/anthropic/claude-sonnet-4.5"
WORDS = "Now I read on, and then I shall know. " * 20


def count(prompt, completion, **more):
    return [ev({"id": "c", "object": "chat.completion.chunk", "choices": [],
                "usage": {"prompt_tokens": prompt, "completion_tokens": completion, **more}})]


def named(name_in, name_out, place=None):
    """The true figures, under other names and elsewhere."""
    def told(n, r, out):
        u = {name_in: r.tokens(), name_out: out}
        return [ev({"id": "c", "choices": [], **({place: u} if place != "x_groq" else {place: {"usage": u}})})]
    return told


TOLD = {
    "true": lambda n, r, out: count(r.tokens(), out),
    "none": lambda n, r, out: [],
    "null": lambda n, r, out: count(None, None),
    "whole-null": lambda n, r, out: [ev({"id": "c", "choices": [], "usage": None})],
    "zeros": lambda n, r, out: count(0, 0, cost=0),
    "no-output": lambda n, r, out: count(r.tokens(), 0),
    "no-input": lambda n, r, out: count(0, out),
    "ones": lambda n, r, out: count(1, 1, total_tokens=2),
    "negative": lambda n, r, out: count(-5, -9),
    "huge": lambda n, r, out: count(10**18, 10**18),
    "same-each-time": lambda n, r, out: count(3000, 60),
    "window-of-4096": lambda n, r, out: count(min(r.tokens(), 4096), out),
    "strings": lambda n, r, out: count(str(r.tokens()), str(out)),
    "input_tokens": named("input_tokens", "output_tokens", "usage"),
    "promptTokenCount": named("promptTokenCount", "candidatesTokenCount", "usageMetadata"),
    "x_groq": named("prompt_tokens", "completion_tokens", "x_groq"),
    "cost-0": lambda n, r, out: count(r.tokens(), out, cost=0),
    "cost-tiny": lambda n, r, out: count(r.tokens(), out, cost=1e-6),
    "cost-negative": lambda n, r, out: count(r.tokens(), out, cost=-3),
    "then-zeros": lambda n, r, out: count(r.tokens(), out) + count(0, 0),
    "thought-beside": lambda n, r, out: count(r.tokens(), out // 4, total_tokens=r.tokens() + out),
}


# Of these a run's own limits are enough.
MORE = {
    "floats": lambda n, r, out: count(float(r.tokens()), str(float(out))),
    "million": lambda n, r, out: count(r.tokens(), 10**6),
    "million-thought": lambda n, r, out: count(r.tokens(), out, completion_tokens_details={"reasoning_tokens": 10**8}),
    "million-in-all": lambda n, r, out: count(r.tokens(), out, total_tokens=10**8),
    "cache-larger": lambda n, r, out: count(r.tokens(), out, prompt_tokens_details={"cached_tokens": 10**8}),
    "no-object": lambda n, r, out: [ev({"id": "c", "choices": [], "usage": [{"prompt_tokens": 1}]})],
    "eval_count": lambda n, r, out: [ev({"id": "c", "choices": [], "prompt_eval_count": r.tokens(), "eval_count": out})],
    "cost-text": lambda n, r, out: count(r.tokens(), out, cost="0.0"),
    "cost-object": lambda n, r, out: count(r.tokens(), out, cost={"total_cost": 0}),
}


def reader(told):
    """A reply that reads on, the same id each time."""
    def script(n, r):
        args = json.dumps({"path": f"big{n % 8}.txt", "first_line": n, "last_line": n + 60})
        out = (len(WORDS) + len(args)) // 4
        return sse(chunk({"role": "assistant", "content": WORDS}), chunk({"tool_calls": [tool_call(n, "read_file", args)]}),
                   chunk({}, "tool_calls"), *told(n, r, out), DONE)
    return script


def spent(seen):
    """Tokens as they were, cents, and the same of the dearest call with what it might have written."""
    out = len(WORDS) // 4 + 20
    tokens = sum(r.tokens() + out for r in seen)
    cents = sum(r.tokens() * IN + out * OUT for r in seen) / 1e4
    worst = max((r.tokens() for r in seen), default=0)
    most = max((r.most_output() for r in seen), default=0)
    return tokens, cents, worst + out, (worst * IN + max(out, most) * OUT) / 1e4


def within(what, limit, worst, real, booked, least):
    wrong = []
    if real > limit + worst:
        wrong.append(f"{what}: {real:.1f} of {limit} were spent")
    if booked is not None and booked < real * least:
        wrong.append(f"{what}: {booked} booked of {real:.1f}")
    return wrong


def by_run(name, told, limit, what, args, on):
    """In the world that all share: the row keeps its requests itself."""
    seen, read_on = [], reader(told)

    def script(n, r):
        seen.append(r)
        return read_on(n, r)

    def judge(result):
        tokens, cents, worst, worst_cents = spent(seen)
        if len(seen) < 2:
            return "it read nothing"
        if what == "tokens":
            return within(what, limit, worst, tokens, result["tokens_used"], 0.85)
        return within(what, limit, worst_cents, cents, result["cost_cents"], 0.85)
    return Row(name, script, on=on, args=args, end="*_exceeded/*", result=judge)


def by_group(world, row):
    world.file("tasks", "".join(json.dumps({"task": f"Look at {i}. [row {row.name}]", "role": row.role, "model": PRICED,
                                            "max_tokens": 10000000}) + "\n" for i in range(3)))
    printed = world.ava("run", "--parallel", "tasks", "--yes", "--json", "--max-cost-cents", "12")
    _, cents, _, worst = spent(world.seen(row))
    return within("cents", 12, worst, cents, None, 0) if len(world.seen(row)) > 2 else [printed.stdout + printed.stderr]


def by_day(world, row):
    booked = sum(world.run(row, "--max-tokens", "10000000")[1].get("cost_cents", 0) for _ in range(3))
    _, cents, _, worst = spent(world.seen(row))
    return within("cents", 12, worst, cents, booked, 0.85) if len(world.seen(row)) > 2 else ["it read nothing"]


TABLE = []
for NAME, SAYS in TOLD.items():
    TABLE += [
        by_run(f"limit-tokens-{NAME}", SAYS, 30000, "tokens", ["--max-tokens", "30000", "--max-cost-cents", "1000"], PRICED),
        by_run(f"limit-cost-{NAME}", SAYS, 10, "cost", ["--max-cost-cents", "10", "--max-tokens", "10000000"], PRICED),
        Row(f"limit-group-{NAME}", reader(SAYS), play=by_group),
        Row(f"limit-day-{NAME}", reader(SAYS), on=PRICED, play=by_day, env={"AVA_BUDGET_DAY_CENTS": "12"}),
    ]
for NAME, SAYS in MORE.items():
    TABLE += [by_run(f"limit-tokens-{NAME}", SAYS, 30000, "tokens", ["--max-tokens", "30000", "--max-cost-cents", "1000"], PRICED),
              by_run(f"limit-cost-{NAME}", SAYS, 10, "cost", ["--max-cost-cents", "10", "--max-tokens", "10000000"], PRICED)]


def by_day_free(world, row):
    """A model whose price is 0, and that costs 5 cents a reply all the same."""
    os.makedirs(world.root + "/config/ava", exist_ok=True)
    with open(world.root + "/config/ava/config.yaml", "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o600)) as f:
        f.write(FREE)
    for _ in range(4):
        world.run(row)
    n = len(world.seen(row))
    return [] if n <= 4 else [f"{n} requests of 5 cents, of 12 a day"]


def costs(*said):
    def script(n, r):
        return sse(chunk({"role": "assistant", "content": None}), chunk({"tool_calls": [
            tool_call(n, "read_file", {"path": f"big{n % 8}.txt"})]}), chunk({}, "tool_calls"),
            *(count(r.tokens(), 60, cost=cost)[0] for cost in said), DONE)
    return script


FREE = """models:
  list:
    - id: openrouter/some/free
      prices: {input: 0, output: 0}
      context: 100000
      max_output: 8000
"""


def flood(delta):
    """It writes on, whatever was asked, until nobody listens."""
    def script(n, r):
        r.conn.sendall(CHUNKED + piece(chunk({"role": "assistant", "content": ""})))
        for _ in range(20000):
            r.conn.sendall(piece(chunk(delta)))
        return None
    return script


# It does not repeat itself, else it were stopped for that.
NOISE = "".join(map(str, range(1300)))[:4000]
# Of 10 cents: the input, and the output that was asked for, half as much again, and a little.
FLOODS = [Row("flood-" + name, flood(delta), on=PRICED, args=["--max-cost-cents", "10"], end="error/model_error", requests=1, own=True,
              cents=(10, 17), error="beyond the most it was asked to write") for name, delta in (
    ("text", {"content": NOISE}), ("thinking", {"reasoning_content": NOISE}), ("arguments", {"tool_calls": [
        {"index": 0, "id": "c", "type": "function", "function": {"name": "list_files", "arguments": NOISE}}]}))]

# ---- how it is shown


def shown(world, row):
    """Estimated: with a ~ while the daemon lives and after it was there anew, in the result and as JSON."""
    _, result = world.run(row)
    wrong, mark = [], "" if row.name == "shown-true" else "~"
    if result.get("estimated", False) != bool(mark):
        wrong.append(f"the result says estimated: {result.get('estimated')}")
    for again in (False, True):
        if again:
            world.end_daemon()
        listed = world.ava("ps", "--all").stdout
        run = json.loads(world.ava("ps", "--all", "--json").stdout)[0]
        said = world.ava("result", result["subagent_id"]).stdout
        if run.get("estimated", False) != bool(mark):
            wrong.append(f"ps --json: {run}")
        for words in (listed, said):
            if ("~" in words) != bool(mark):
                wrong.append(words)
    return wrong


# ---- how a reply ends

CALL = {"role": "assistant", "content": None, "tool_calls": [tool_call(1, "list_files", {"path": "."})]}
MESSAGE = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "call_1", "type": "function", "function": {"name": "list_files", "arguments": '{"path":"."}'}}]}


def whole(message, **members):
    return {"id": "x", "object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 4000, "completion_tokens": 20, "total_tokens": 4020}, **members}


LATE = {"type": "api_error", "message": "Internal server error"}
AWHOLE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use", "content": [
    {"type": "tool_use", "id": "toolu_1", "name": "list_files", "input": {"path": "."}}],
    "usage": {"input_tokens": 4000, "output_tokens": 20}}


def held(events, wait=6.0, comments=0):
    """A chunked stream that does not end: comments, if any, or silence; 96 s of the clock that is moved."""
    def script(n, r):
        r.conn.sendall(CHUNKED + piece(*events(r)))
        for _ in range(comments or 1):
            time.sleep(wait / (comments or 1))
            r.conn.sendall(piece(": still here\n\n"))
        return None
    return script


def quick(result):
    return None if result["duration_seconds"] < 60 else f"took {result['duration_seconds']} s"


def without_blank(answer):
    """Events that follow each other without a blank line."""
    head, body = answer.split(b"\r\n\r\n", 1)
    return head + b"\r\n\r\n" + body.replace(b"\n\n", b"\n")


def cut(answer, mark):
    return answer[:answer.index(mark)]


def late(wait, *before):
    """The head of a stream, perhaps something, and all of it after a while."""
    def script(n, r):
        head, body = submit(n, r).split(b"\r\n\r\n", 1)
        r.conn.sendall(head + b"\r\n\r\n" + "".join(before).encode())
        time.sleep(wait)
        return body
    return script


def alive(seconds, word):
    """The head of a stream and a word each fifth of a second, then all of it."""
    def script(n, r):
        head, body = submit(n, r).split(b"\r\n\r\n", 1)
        r.conn.sendall(head + b"\r\n\r\n")
        for _ in range(seconds * 5):
            time.sleep(0.2)
            r.conn.sendall(word.encode())
        return body
    return script


def called(seen):
    """The second request has the result of the first reply's call: that reply was not asked for again."""
    return None if b"tool_call_id" in seen[1].raw or b"tool_result" in seen[1].raw else "the reply was asked for again"


def once(answer, **how):
    """That answer, then a result: two requests, none repeated."""
    return dict(script=lambda n, r: answer(n, r) if n == 1 else (asubmit if how.get("on") == "anthropic" else submit)(n, r),
                requests=2, summary="ok done", sent=called, **how)


def anthropic(answer, **how):
    return once(answer, on="anthropic", **how)


ENDS = {
    # whole without its mark: by its reason and the end of the body
    "end-no-done": once(lambda n, r: cut(call(n, r, "list_files", {"path": "."}), b"data: [DONE]")),
    "end-no-done-chunked": once(lambda n, r: chunked(chunk(CALL), chunk({}, "tool_calls"), honest(r))),
    "end-no-done-no-usage": once(lambda n, r: sse(chunk(CALL), chunk({}, "tool_calls"))),
    "end-no-reason": once(lambda n, r: sse(chunk(CALL), honest(r))),
    "end-no-reason-chunked": once(lambda n, r: chunked(chunk(CALL))),
    "end-half-mark": once(lambda n, r: sse(chunk(CALL), chunk({}, "tool_calls"), "data: [DO")),
    "end-no-last-blank": once(lambda n, r: sse(chunk(CALL), chunk({}, "tool_calls").rstrip("\n"))),
    "end-no-stop": anthropic(lambda n, r: cut(acall(n, r, "list_files", {"path": "."}), b"event: message_stop")),
    "end-done-of-the-other": anthropic(
        lambda n, r: cut(acall(n, r, "list_files", {"path": "."}), b"event: message_stop") + DONE.encode()),
    # JSON for a stream
    "end-json": once(lambda n, r: resp(200, whole(MESSAGE))),
    "end-json-lines": once(lambda n, r: resp(200, json.dumps(whole(MESSAGE), indent=2))),
    "end-json-as-stream": once(lambda n, r: resp(200, whole(MESSAGE), kind="text/event-stream")),
    "end-json-of-messages": anthropic(lambda n, r: resp(200, AWHOLE)),
    "end-json-in-an-event": once(lambda n, r: sse(ev(whole(MESSAGE)), DONE)),
    "end-ndjson": once(lambda n, r: sse((chunk(CALL) + chunk({}, "tool_calls")).replace("data: ", "").replace("\n\n", "\n"))),
    "end-no-blank-lines": once(lambda n, r: without_blank(call(n, r, "list_files", {"path": "."}))),
    "end-no-blank-lines-of-messages": anthropic(lambda n, r: without_blank(acall(n, r, "list_files", {"path": "."}))),
    "end-json-behind-blanks": once(lambda n, r: resp(200, "\r\n\n  \n" + json.dumps(whole(MESSAGE)))),
    "end-json-behind-comments": once(lambda n, r: resp(200, ": PROCESSING\n\n" * 40 + json.dumps(whole(MESSAGE)), "text/event-stream")),
    "end-json-behind-bom": once(lambda n, r: resp(200, "\ufeff" + json.dumps(whole(MESSAGE)))),
    "end-json-twice": once(lambda n, r: resp(200, json.dumps(whole(MESSAGE)) * 2)),
    "end-json-listed": once(lambda n, r: resp(200, [whole(MESSAGE)])),
    "end-json-of-messages-behind-blanks": anthropic(lambda n, r: resp(200, "\n" + json.dumps(AWHOLE))),
    # what comes behind a reason takes nothing back; an event of nothing is none
    "end-then-error": once(lambda n, r: sse(chunk(CALL), chunk({}, "tool_calls"), honest(r), "event: error\n" + ev({"error": LATE}))),
    "end-then-error-of-messages": anthropic(lambda n, r: sse(
        astart(r), atool(0, 1, "list_files", {"path": "."}), aend().split("event: message_stop")[0], aev("error", error=LATE))),
    "end-mark-as-text": once(lambda n, r: sse(chunk(CALL), chunk({}, "tool_calls"), 'data: "[DONE]"\n\n')),
    "end-mark-in-small": once(lambda n, r: sse(chunk(CALL), chunk({}, "tool_calls"), "data: [done]\n\n")),
    "end-empty-events": once(lambda n, r: sse("data:\n\n", chunk(CALL), "data: \n\ndata: null\n\n", chunk({}, "tool_calls"), DONE)),
    # a mark, and a connection that stays
    "end-held-no-blank": once(held(lambda r: [chunk(CALL), chunk({}, "tool_calls"), DONE[:-1]], wait=9), result=quick),
    "end-held": once(held(lambda r: [chunk(CALL), chunk({}, "tool_calls"), DONE]), result=quick),
    "end-held-comments": once(held(lambda r: [chunk(CALL), chunk({}, "tool_calls"), DONE], comments=40), result=quick),
    "end-held-messages": anthropic(held(lambda r: [astart(r), atool(0, 1, "list_files", {"path": "."}), aend()]), result=quick),
    "end-held-no-mark": once(held(lambda r: [chunk(CALL), chunk({}, "tool_calls"), honest(r)], wait=12)),
    # broken: asked again
    "end-cut": dict(script=then_submit(lambda n, r: sse(chunk(CALL)[:-40])), requests=2, summary="ok done"),
    "end-half-a-sentence": dict(
        script=lambda n, r: sse(chunk({"role": "assistant", "content": "The answer is forty-"}), DONE) if n == 1 else submit(n, r),
        requests=2, summary="ok done"),
    "end-cut-length": dict(
        script=then_submit(lambda n, r: resp(200, chunk(CALL) + chunk({}, "tool_calls")).replace(b"content-length: ", b"content-length: 9")),
        requests=2, summary="ok done"),
    "end-reason-first": dict(  # of what had not come yet
        script=lambda n, r: asubmit(n, r) if n > 1 else sse(aev("message_start", message={
            "id": "m", "type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"}),
            aev("content_block_start", index=0, content_block={"type": "text", "text": "The answer is forty-"})),
        on="anthropic", requests=2, summary="ok done", sent=lambda seen: "it was taken" if b"forty-" in seen[1].raw else None),
    "end-error-first": dict(
        script=then_submit(lambda n, r: sse(chunk({"role": "assistant", "content": "I l"}), ev({"error": LATE}), DONE)),
        requests=2, summary="ok done"),
    "end-text-no-mark": dict(
        script=then_submit(lambda n, r: chunked(chunk({"role": "assistant", "content": "The answer is 42, and"}))),
        requests=2, summary="ok done"),
}

ROWS = TABLE + FLOODS + [
    *(Row("limit-day-free" + name, costs(*said), on="openrouter/some/free", play=by_day_free, env={"AVA_BUDGET_DAY_CENTS": "12"})
      for name, said in {"": [0.05], "-text": ["0.05"], "-object": [{"total_cost": 0.05}], "-then-0": [0.05, 0]}.items()),
    *(Row(name, **how) for name, how in ENDS.items()),
    # a service on this machine takes its time for the first text; a time that is set holds, and is never tried twice
    Row("late-role", late(3, chunk({"role": "assistant", "content": ""})), requests=1, env={"AVA_NET_IDLE_TIMEOUT": "1"}, timed=True),
    Row("late-comments", late(3, ": working\n\n", chunk({})), requests=1, env={"AVA_NET_IDLE_TIMEOUT": "1"}, timed=True),
    Row("late-twice", lambda n, r: late(2.5)(n, r), requests=3, env={"AVA_NET_FIRST_EVENT_TIMEOUT": "1"}, timed=True),
    # a comment keeps the first wait alive anywhere; one that was too short is not tried at that length again
    Row("late-alive", alive(2, ": working\n\n"), requests=1,
        env={"AVA_NET_FIRST_EVENT_TIMEOUT": "20"}, own=True),
    Row("late-idle", late(1.2, chunk({"role": "assistant", "content": "I look. "})), requests=3,
        env={"AVA_NET_IDLE_TIMEOUT": "8", "AVA_NET_FIRST_EVENT_TIMEOUT": "60"}, own=True, fast=True),
    Row("late-always", late(6), args=["--timeout", "12"], end="*", env={"AVA_NET_FIRST_EVENT_TIMEOUT": "1"},
        requests=(2, 4), timed=True),
    # what this machine has read before costs nothing: 20 replies, of which only what is new counts
    Row("limit-new", reader(TOLD["true"]), args=["--max-tokens", "30000"], end="iterations_exceeded/*", tokens=(60000, 400000)),
    Row("shown-none", then_submit(reader(TOLD["none"])), play=shown),
    Row("shown-true", then_submit(reader(TOLD["true"])), play=shown),
]
