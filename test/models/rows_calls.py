"""Calls that come in other pieces than they should, and under other names."""

import re
import signal
import subprocess
import time

import play
from play import Row
from service import DONE, chunk, call, ev, honest, sse, submit, text, tool_call

ROLE = {"role": "assistant", "content": None}
A, B = '{"path":"a.txt"}', '{"path":"."}'


def piece(**members):
    return chunk({"tool_calls": [members]})


def fn(name=None, args=None):
    return {k: v for k, v in (("name", name), ("arguments", args)) if v is not None}


def first(*events, finish="tool_calls"):
    """The first answer in these chunks, then a result."""
    return lambda n, r: sse(chunk(ROLE), *events, chunk({}, finish), honest(r), DONE) if n == 1 else submit(n, r)


def ran(*names):
    """These calls, in this order, all of them with a result that is none of an error."""
    def judge(seen):
        lines = seen[-1].body["messages"]
        calls = [c["function"] for m in lines for c in m.get("tool_calls") or ()]
        got = [c["name"] for c in calls]
        bad = [m["content"] for m in lines if m["role"] == "tool" and m["content"].startswith(("Error", "[error"))]
        return f"called {calls}" if got != list(names) else f"answered {bad}" if bad else None
    return judge


def row(name, script, names=("read_file",), **more):
    return Row(name, script, requests=more.pop("requests", 2), summary="ok done", sent=ran(*names), **more)


def one(members, finish="tool_calls"):
    return first(ev({"id": "u", "choices": [{"index": 0, **members}]}), finish=finish)


MESSAGE = {"role": "assistant", "content": "", "tool_calls": [
    {"id": "call_1", "type": "function", "function": fn("read_file", A)},
    {"id": "call_2", "type": "function", "function": fn("list_files", B)}]}


def chat(world, row):
    """A call written as text by Ava is made, and nobody sees it; what she says twice without end is seen once."""
    said = subprocess.run([play.AVA, "chat", "--model", row.model()], input=f"hello [row {row.name}]\n", cwd=world.work,
                          env={**world.env, **row.env}, capture_output=True, text=True, timeout=120, check=False)
    seen, printed = world.seen(row), said.stdout + said.stderr
    called = [c["function"]["name"] for m in seen[-1].messages() for c in m.get("tool_calls") or ()]
    wrong = [] if "arguments" not in printed and "tool_call" not in printed else [f"shown: {printed}"]
    wrong += [] if "I look it up." in printed and printed.count("None is at work.") == 1 else [f"not said: {printed}"]
    return wrong + ([] if called == ["list_subagents"] and len(seen) == 2 else [f"called {called}, {len(seen)} requests"])


def explained(*words, requests=1):
    """What a person is told about calls is shown, once, and nothing of it is run."""
    def played(world, row):
        said = subprocess.run([play.AVA, "chat", "--model", row.model()], input=f"hello [row {row.name}]\n", cwd=world.work,
                              env={**world.env, **row.env}, capture_output=True, text=True, timeout=120, check=False)
        printed, seen = said.stdout + said.stderr, world.seen(row)
        wrong = [f"{w!r} {printed.count(w)} times: {printed}" for w in words if printed.count(w) != 1]
        made = [m for r in seen for m in r.messages() if m.get("tool_calls")]
        return wrong + ([] if len(seen) == requests and not made else [f"{len(seen)} requests, made {made}"])
    return played


def asked(world, row):
    """A person's yes is needed as for any call, also behind a kill; her no is the call's result."""
    run = re.search(r"S-[0-9a-f]{6,}", world.ava("run", f"Look. [row {row.name}]", "--role", row.role, "--model", row.model(), "--yes",
                                                 "--background", "--ask-before", "read_file").stdout).group()
    wrong = []
    for again in (True, False):
        end = time.monotonic() + 30
        while not ("May it call read_file" in world.ava("status", run).stdout
                   and " Waiting " in world.ava("logs", run).stdout) and time.monotonic() < end:
            time.sleep(0.05)  # shown a moment before it is on disk
        if again:
            wrong += [m for r in world.seen(row) for m in r.messages("tool")]
            world.end_daemon(signal.SIGKILL)
    world.ava("steer", run, "no: not that one")
    world.ava("wait", run)
    told = [m["content"] for m in world.seen(row)[-1].messages("tool")]
    replay = world.ava("replay", run)
    wrong += [] if len(told) == 1 and "not that one" in told[0] and "hello" not in told[0] else [str(told)]
    return wrong + ([replay.stdout + replay.stderr] if replay.returncode else [])


def example(name):
    return "You write:\n\n```json\n{\"name\": \"%s\", \"arguments\": {\"a\": 1}}\n```\n" % name


def named(*names):
    """A reply with one call for each name, then a result."""
    return lambda n, r: call(n, r, names[n - 1], {"path": "a.txt", "first_line": n}) if n <= len(names) else submit(n, r)


ROWS = [
    row("calls_idxtail", first(piece(index=0, id="call_a", function=fn("list_files", B)),
                               piece(index=0, id="call_b", function=fn("read_file", "")),
                               piece(index=1, function=fn(args='{"path":')), piece(index=1, function=fn(args='"a.txt"}'))),
        ("list_files", "read_file")),
    row("calls_interl", first(piece(id="a", function=fn("read_file", "")), piece(id="b", function=fn("list_files", "")),
                              piece(id="a", function=fn(args=A)), piece(id="b", function=fn(args=B))),
        ("read_file", "list_files")),
    row("calls_dupfinal", first(chunk({"tool_calls": [tool_call(1, "read_file", A)]}),
                                chunk({"tool_calls": [tool_call(1, "read_file", A)]}))),
    row("calls_cumul", first(*(chunk({"tool_calls": [tool_call(1, "read_file", x)]}) for x in ('{"pa', '{"path":"a.', A)))),
    row("calls_cumul_bare", first(chunk({"tool_calls": [tool_call(1, "read_file", '{"pa')]}),
                                  piece(index=0, function=fn(args='{"path":"a.')), piece(index=0, function=fn(args=A)))),
    row("calls_message", one({"message": MESSAGE, "finish_reason": "tool_calls"}), ("read_file", "list_files")),
    row("calls_message_too", first(piece(index=0, id="call_1", function=fn("read_file", A)),
                                   piece(index=1, id="call_2", function=fn("list_files", B)),
                                   ev({"id": "u", "choices": [{"index": 0, "delta": {}, "message": MESSAGE}]})),
        ("read_file", "list_files")),
    row("calls_function_call", first(chunk({"function_call": fn("read_file", A)}), finish="function_call")),
    row("calls_function_call_pieces", first(chunk({"function_call": fn("read_file", "")}),
                                            *(chunk({"function_call": fn(args=x)}) for x in (A[:7], A[7:])),
                                            finish="function_call")),
    row("calls_object", first(chunk({"tool_calls": tool_call(1, "read_file", A)}))),
    row("calls_list", first(piece(index=0, id="a", function={"name": "read_file", "arguments": [{"path": "a.txt"}]}))),
    row("calls_input", first(piece(index=0, id="a", function={"name": "read_file", "input": {"path": "a.txt"}}))),
    row("calls_custom", first(piece(index=0, id="a", type="custom", custom={"name": "read_file", "input": A}))),
    row("calls_name_pieces", first(piece(index=0, id="a", function=fn("read")), piece(index=0, function=fn("_")),
                                   piece(index=0, function=fn("file")), piece(index=0, function=fn(args=A)))),
    row("calls_name_more", first(piece(index=0, id="a", function=fn("read_")), piece(index=0, function=fn("read_file")),
                                 piece(index=0, function=fn(args=A)))),
    row("calls_flat", first(chunk({"tool_calls": [{"index": 0, "id": "call_1", "name": "read_file", "arguments": A}]}))),
    # The line that is sent back has the tool's own name where no list of tools is needed to know it.
    row("calls_names", named("functions.read_file", "default_api:read_file", " read_file ", "read_file<|channel|>commentary",
                             "functions.read_file:0", "read_file("), ("read_file",) * 6, requests=7),
    Row("calls_near_names", named("Read_File", "call_read_file", "fs/read_file", "ReadFile"), requests=5, summary="ok done",
        sent=lambda seen: next((m["content"] for m in seen[-1].messages("tool") if "hello" not in m["content"]), None)),
    Row("calls_unknown_name", named("raed_file"), requests=2, summary="ok done",
        sent=lambda seen: None if "Did you mean read_file?" in seen[-1].messages("tool")[-1]["content"] else "no word of it"),
    # Calls written as text: at a server of one's own they are run, and stored as calls.
    *(row(f"calls_text_{name}", lambda n, r, words=words: text(r, words) if n == 1 else submit(n, r)) for name, words in (
        ("deepseek", '<｜tool▁calls▁begin｜>function<｜tool▁sep｜>read_file\n```json\n{"path":"a.txt"}\n```<｜tool▁calls▁end｜>'),
        ("kimi", '<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>'
                 '{"path":"a.txt"}<|tool_call_end|><|tool_calls_section_end|>'),
        ("mistral", '[TOOL_CALLS][{"name":"read_file","arguments":{"path":"a.txt"}}]'),
        ("harmony", '<|channel|>analysis<|message|>I look.<|end|><|start|>assistant<|channel|>commentary '
                    'to=functions.read_file <|constrain|>json<|message|>{"path":"a.txt"}<|call|>'),
        ("bare", '{"name": "read_file", "arguments": {"path": "a.txt"}}'),
        ("fenced", 'I will read it.\n\n```json\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n```'),
        ("coder", '<tool_call>\n<function=read_file>\n<parameter=path>\na.txt\n</parameter>\n</function>\n</tool_call>'))),
    row("calls_text_two", lambda n, r: text(r, f'<tool_call>{{"name":"read_file","arguments":{A}}}</tool_call>\n'
        f'<tool_call>{{"name":"list_files","arguments":{B}}}</tool_call>') if n == 1 else submit(n, r), ("read_file", "list_files")),
    # All tools written down, one behind the other: no result that was made up before the first call is one.
    row("calls_text_all", lambda n, r: text(r, '{"name":"read_file","arguments":{"path":"a.txt"}}\n'
        '{"name":"submit_result","arguments":{"summary":"The answer in words."}}') if n == 1 else submit(n, r)),
    # Cut off amid the last one: those before it are whole. One by its tool's name alone is a call, too.
    row("calls_text_cut", lambda n, r: text(r, '{"name":"read_file","arguments":{"path":"a.txt"}}\n{"name":"list_files","arguments":{}}\n'
        '{"name": "submit_result", "arguments": {"output": {"') if n == 1 else submit(n, r), ("read_file", "list_files")),
    row("calls_text_round", lambda n, r: text(r, '({"name": "read_file", "arguments": {"path": "a.txt"}}') if n == 1 else submit(n, r)),
    row("calls_text_beside", lambda n, r: text(r, '{"name":"read_file","arguments":{"path":"a.txt"}}\n{"name":"submit_result",'
        '"output":{"summary":"made up"},"confidence":1}') if n == 1 else submit(n, r)),
    row("calls_text_name", lambda n, r: text(r, '{"name": "list_files"}') if n == 1 else submit(n, r), ("list_files",)),
    row("calls_text_submit", lambda n, r: text(r, '{"name":"submit_result","arguments":{"summary":"ok done"}}'), (), requests=1),
    Row("calls_text_chat", lambda n, r: text(r, "I look it up.\n\n```json\n{\"name\": \"list_subagents\", \"arguments\": {}}\n```"
        if n == 1 else "None is at work."), play=chat),
    Row("calls_text_asked", lambda n, r: text(r, f'I read it.\n{{"name":"read_file","arguments":{A}}}') if n == 1 else submit(n, r),
        play=asked),
    # An example is none: of a tool that there is not at once, of another one when it is said again.
    Row("calls_text_example", lambda n, r: text(r, example("get_weather")), play=explained("You write", "get_weather", '"a": 1')),
    Row("calls_text_example_own", lambda n, r: text(r, example("list_subagents") + "\nand get a list."),
        play=explained('"list_subagents"', "and get a list", requests=2)),
    # A tool that there is not is told as every such call is; where words follow that are about it, it is asked again.
    Row("calls_text_unknown", lambda n, r: text(r, '```json\n{"name":"tax_rate","arguments":{"shop":"shop.py"}}\n```')
        if n == 1 else submit(n, r), requests=2, summary="ok done",
        sent=lambda seen: None if "there is no tool" in seen[-1].messages("tool")[-1]["content"] else "no word of it"),
    row("calls_text_about", lambda n, r: text(r, '{"name": "read_file", "arguments": {"path": "a.txt"}}\nThis is how to read it.')
        if n == 1 else submit(n, r), ()),
]
