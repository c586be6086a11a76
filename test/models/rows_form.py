"""Arguments in another form than their schema's, and results that must not be lost for theirs."""

import json

from play import Row, judge
from service import CHUNKED, RESULT, acall, asubmit, call, chunk, error, piece, submit, text

WORDS = "The answer is forty-two."
WHOLE = {"summary": WORDS, "output": {"n": 42}, "confidence": 0.9, "caveats": []}


def without(*names, **more):
    return {**{k: v for k, v in WHOLE.items() if k not in names}, **more}


def first(name, args, n=1):
    """`name` with these arguments (a text goes as it is) in the first `n` replies, then the result."""
    return lambda k, r: call(k, r, name, args) if k <= n else submit(k, r)


def always(name, args):
    return lambda k, r: call(k, r, name, args)


def member(name, want):
    return lambda d: None if d.get(name) == want else f"{name} is {d.get(name)!r}, not {want!r}"


def caveats(want):
    """The model's own, behind what the runtime says first of a run that called no tool."""
    return member("caveats", ["no tool was called: nothing of this was looked up", *want])


def ran(*words, n=2):
    """The first call was run: its result, in request `n`, holds the words and no refusal."""
    def sent(seen):
        told = json.dumps(seen[n - 1].messages()[1:])
        if "bad arguments" in told:
            return told[-600:]
        return next((f"not told: {w!r}: {told[-600:]}" for w in words if w not in told), None)
    return sent


def told(*words, at=2):
    """Request `at` holds the words."""
    return lambda seen: next((f"not told: {w!r}" for w in words if w not in seen[at - 1].raw.decode()), None)


def once(word):
    return lambda seen: None if seen[-1].raw.decode().count(word) == 1 else "told {} times".format(
        seen[-1].raw.decode().count(word))


def schema(world, row):
    """An output of that form is asked for."""
    world.file("schema.json", '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],'
                              '"additionalProperties":false}')
    printed, result = world.run(row, "--schema", "schema.json")
    return judge(row, printed, result, world.seen(row))


def submitted(name, args, requests=1, **more):
    return Row(name, always("submit_result", args), requests=requests, **{"summary": WORDS, **more})


def formed(n, r, result=RESULT):
    """A model that says what it has in words, and in the form of a result where it is held to that."""
    return text(r, json.dumps(result) if "response_format" in r.body else "The answer is in a.txt.")


def held(*names, required=("summary", "confidence")):
    """Requests for a result, those two but the first, with the same tools; `names`: the members that force it."""
    def sent(seen):
        head, body = seen[0].body, seen[-1].body
        form = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
        for m in ("response_format", "tool_choice"):
            if (m in body) != (m in names) or m in head:
                return f"{m}: {body.get(m)}, {head.get(m)}"
        if "response_format" in names and form["required"] != list(required):
            return f"required: {form['required']}"
        last = seen[-1].messages()[-1]["content"]
        return (None if body["tools"] == head["tools"] and head["temperature"] == 0.2 and
                last.endswith("[ava] Your task was: Look at the folder. [row " + seen[0].body["model"] + "]") else last[-300:])
    return sent


SAID_OF_IT = "The answer in words, with its sources."  # what submit_result's schema says of the summary
LIMIT = "The limit is near: 7 of 8 replies are used. Finish now: call submit_result with what you have."


def parroted(result):
    """In the form of a result, with what is said about one."""
    return lambda n, r: call(n, r, "list_files", {}) if n == 1 else formed(n, r, result)


def refuses(member, answer):
    return lambda n, r: error(400, f"unknown field '{member}'") if member in r.body else answer(n, r)


def looped(r):
    """It never ends, and nothing says so."""
    return CHUNKED + b"".join(piece(chunk({"content": "The task is done, and you can return to work.\n"})) for _ in range(400))


def warmer(seen):
    """The first time is kept, and asked for anew; then it is told to look first, and to submit."""
    said = seen[1].messages("assistant")[-1]["content"]
    if said.count("The task is done") != 1 or "the same again and again" not in seen[1].messages()[-1]["content"]:
        return said[-300:]
    return None if [r.body["temperature"] for r in seen] == [0.2] + [0.6] * (len(seen) - 1) else "no warmer"


def listed(name, args, *words):
    return Row(name, first("list_files", args), requests=2, summary="ok done", sent=ran("a.txt", *words))


ROWS = [
    # ---- results
    submitted("form_sub_null", without(caveats=None), result=member("output", {"n": 42})),
    submitted("form_sub_str", without(confidence="0.9"), result=member("confidence", 0.9)),
    submitted("form_sub_noconf", without("confidence"), result=member("confidence", 0)),
    submitted("form_sub_extra", without(status="done"), result=member("output", {"n": 42})),
    submitted("form_sub_word", without(confidence="high")),
    submitted("form_sub_90", without(confidence=90), result=member("confidence", 0.9)),
    submitted("form_sub_percent", without(confidence="90%"), result=member("confidence", 0.9)),
    submitted("form_sub_cavnone", without(caveats="none"), result=caveats([])),
    submitted("form_sub_cavstr", without(caveats="only a guess"), result=caveats(["only a guess"])),
    submitted("form_sub_cavobj", without(caveats=[{"text": "x"}, "y"]), result=caveats(["x", "y"])),
    submitted("form_sub_cavtext", without(caveats='["x", "y"]'), result=caveats(["x", "y"])),
    submitted("form_sub_allnull", {"summary": WORDS, "output": None, "confidence": None, "caveats": None}),
    submitted("form_sub_outtext", without(output="forty-two"), result=member("output", "forty-two")),
    submitted("form_sub_answer", {"answer": WORDS}),
    submitted("form_sub_result", {"result": WORDS, "confidence": "0.7"}, result=member("confidence", 0.7)),
    submitted("form_sub_inside", {"result": WHOLE}, result=member("output", {"n": 42})),
    submitted("form_sub_others", {"summary": WORDS, "n": 42, "unit": "m"}, result=member("output", {"n": 42, "unit": "m"})),
    submitted("form_sub_string", json.dumps(json.dumps(WHOLE)), result=member("output", {"n": 42})),
    submitted("form_sub_fence", "```json\n" + json.dumps(WHOLE) + "\n```"),
    submitted("form_sub_newline", '{"summary":"The answer\nis forty-two.","confidence":0.9}', summary="The answer\nis"),
    Row("form_sub_messages", lambda n, r: acall(n, r, "submit_result", without(caveats=None, confidence="0.9")),
        on="anthropic", requests=1, summary=WORDS),
    # Nothing in words: told once with a call that would do, then taken as it is.
    submitted("form_sub_nosummary", {"output": {"n": 42}}, requests=2, summary=None, result=member("output", {"n": 42}),
              sent=told("A call that fits", 'summary')),
    submitted("form_sub_nosummary_says", {"output": {"n": 42}}, requests=2, summary=None, says="taken as it is"),
    # What cannot be read is refused once, and taken as it is.
    submitted("form_sub_bare", WORDS, requests=2, says="taken as it is"),
    submitted("form_sub_cut", json.dumps(WHOLE)[:-9], requests=2, says="taken as it is"),
    submitted("form_sub_prose", "It is this: " + json.dumps(WHOLE) + " as you see.", requests=2, says="taken as it is"),
    submitted("form_sub_content", {"content": WORDS}, requests=2, says="taken as it is"),
    submitted("form_sub_names", {"Summary": WORDS, "Output": {"n": 42}}, result=member("output", {"n": 42})),
    submitted("form_sub_nan", '{"summary":"The answer is forty-two.","confidence":NaN}'),
    submitted("form_sub_long", {"summary": "x" * 20001}, requests=2, summary="xxx", says="taken as it is"),
    submitted("form_sub_empty", {}, requests=5, end="error/repeated_calls", summary=None,
              error="the model called submit_result with the same arguments, which do not fit, 4 times"),
    # ---- arguments
    listed("form_args_nulls", {"path": ".", "glob": None, "max_results": None}),
    listed("form_args_types", {"path": ".", "max_results": "5"}),
    listed("form_args_real", {"path": ".", "max_results": 5.0}),
    listed("form_args_more", {"path": ".", "reason": "to look"}, "list_files takes no argument reason"),
    listed("form_args_inside", {"arguments": {"path": "."}}),
    listed("form_args_listed", [{"path": "."}]),
    listed("form_args_strnull", "null"),
    listed("form_args_none", "None"),
    listed("form_args_arr", "[]"),
    listed("form_args_dbl", json.dumps('{"path":"."}')),
    listed("form_args_trail", '{"path":"."}\n```'),
    listed("form_args_fence", '```json\n{"path":"."}\n```'),
    listed("form_args_tag", '{"path":"."}</tool_call>'),
    listed("form_args_extra", '{"path":"."}}'),
    listed("form_args_braces", '{{"path":"."}}'),
    listed("form_args_single", "{'path':'.', 'glob': None}"),
    listed("form_args_comment", '{"path":".", /* all */ "glob":null, // of it\n # here\n "max_results":5}'),
    listed("form_args_bare_keys", '{path:".", max_results: 5}'),
    listed("form_args_nan", '{"path":".","max_results":NaN,"glob":undefined}'),
    listed("form_args_behind_none", '{}{"path":"."}'),
    listed("form_args_again", '{"path":"."}{"path":"."}'),
    listed("form_args_bom", '\ufeff{"path":"."}'),
    listed("form_args_names", {"Path": ".", "maxResults": "5", "GLOB": "*"}),
    listed("form_args_named", {"name": "list_files", "arguments": {"path": "."}}),
    listed("form_args_named_text", {"tool": "list_files", "args": '{"path":"."}'}),
    listed("form_args_comma", '{"path":".",}'),
    Row("form_args_nl", first("list_files", '{"path":".\n"}'), requests=2, sent=told("list_files")),
    Row("form_args_bool", first("search_codebase", {"pattern": "hel.o", "regex": "True", "max_results": "3"}), requests=2,
        sent=ran("a.txt:1:hello")),
    *(Row(f"form_args_bool_{i}", first("search_codebase", {"pattern": "hel.o", "regex": v}), requests=2,
          sent=ran("a.txt:1:hello")) for i, v in enumerate(("yes", "on", "TRUE", 1, "1"))),
    Row("form_args_enum", first("memory_search", {"query": "x", "kind": "Project"}), requests=2, sent=ran("memory_search")),
    Row("form_args_unreadable", first("read_file", '{"path":"a.txt'), requests=2,
        sent=told(r'): {\"path\":\"a.txt. A call that fits: {\"path\":')),
    Row("form_args_text", first("search_codebase", {"pattern": ["hello"], "path": None, "regex": "false"}), requests=2,
        sent=ran("a.txt:1:hello")),
    Row("form_args_escape", first("search_codebase", r'{"pattern":"w\w+d$","regex":true}'), requests=2,
        sent=ran("a.txt:2:world")),
    Row("form_args_twice", lambda n, r: call(n, r, "list_files", {"path": ".", "reason": str(n)}) if n < 4 else submit(n, r),
        requests=4, sent=once("takes no argument")),
    Row("form_args_line", first("list_files", {"path": ".", "max_results": "5", "why": 1}), requests=2,
        sent=told(r'{\"path\": \".\", \"max_results\": \"5\", \"why\": 1}')),
    Row("form_args_misfit", first("read_file", {"first_line": "TAX"}), requests=2,
        sent=told(r'path is required. A call that fits: {\"path\":')),
    Row("form_args_schema", always("submit_result", {"summary": WORDS, "output": json.dumps({"n": "42", "why": ""})}),
        play=schema, requests=1, result=member("output", {"n": 42})),
    Row("form_args_flat", always("submit_result", {"n": "42"}), play=schema, requests=2, result=member("output", {"n": 42})),
    Row("form_args_misfits", always("submit_result", {"summary": WORDS, "output": "forty-two"}), play=schema, requests=3,
        end="error/output_schema", summary=WORDS),
    # ---- results as text: at local servers the nudge, a repair and the last reply are held to the form of one
    Row("form_text_held", lambda n, r: call(n, r, "list_files", {"path": "."}) if n == 1 else formed(n, r), requests=3,
        end="success/final_text", summary="ok done",
        result=lambda d: None if d["output"] == {"a": 1} and not d["unverified"] else str(d),
        sent=held("response_format", "tool_choice")),
    # Held to the form of a result it says something, also where it has looked at nothing.
    Row("form_text_unseen", formed, requests=3, end="success/final_text", summary="ok done",
        result=lambda d: None if d["unverified"] and d["caveats"][0].startswith("no tool was called") else str(d)),
    Row("form_text_refused", refuses("response_format", lambda n, r: submit(n, r) if "tool_choice" in r.body else formed(n, r)),
        requests=4, summary="ok done", sent=held("tool_choice")),
    Row("form_text_cold", refuses("temperature", submit), requests=2, summary="ok done"),
    Row("form_text_schema", lambda n, r: formed(n, r, {**WHOLE, "output": {"n": "many"} if n < 3 else {"n": 42}}), play=schema,
        requests=3, end="success/final_text", summary=WORDS, result=member("output", {"n": 42}),
        sent=held("response_format", "tool_choice", required=("summary", "output", "confidence"))),
    Row("form_text_last", lambda n, r: call(n, r, "open_file", {}) if n < 5 else formed(n, r), requests=5,
        end="error/repeated_calls", summary="ok done", sent=held("response_format", "tool_choice")),
    # What is ours word for word is no result of the model's, and no caveat.
    Row("form_echo_summary", parroted({"summary": SAID_OF_IT, "output": {"name": "submit_result"}, "confidence": 0.9}),
        requests=3, end="no_result/final_text", summary="The answer is in a.txt."),
    Row("form_echo_within", parroted({"summary": SAID_OF_IT, "output": {"summary": "The result as data: an object, array, string "
        "or null, in the form the task asks for.", "confidence": 0, "caveats": ["no pattern"]}, "confidence": 0}),
        requests=3, end="no_result/final_text", summary="The answer is in a.txt.", result=member("output", None)),
    Row("form_echo_blank", parroted({"summary": " ", "confidence": 1}), requests=3, end="no_result/final_text",
        summary="The answer is in a.txt."),
    Row("form_echo_task", parroted({"summary": "[ava] Your task was: Look at the folder.", "output": {}, "confidence": 1}),
        requests=3, end="success/final_text", result=member("output", {})),
    Row("form_echo_caveats", parroted({**WHOLE, "caveats": [LIMIT, "not all was read", "[ava] Your task was: x"]}), requests=3,
        end="success/final_text", summary=WORDS, result=member("caveats", ["not all was read"])),
    Row("form_echo_beside", parroted({**WHOLE, "summary": SAID_OF_IT}), requests=3, end="success/final_text",
        result=member("output", {"n": 42})),
    submitted("form_echo_call", {**WHOLE, "summary": SAID_OF_IT, "output": None}, requests=5, end="error/repeated_calls",
              summary=None, sent=told("in your own words")),
    # About us, in words of its own beside it: that is an answer.
    submitted("form_echo_about", {**WHOLE, "output": {"description": SAID_OF_IT}}, result=member("output", {"description": SAID_OF_IT})),
    submitted("form_echo_quoted", {"summary": f"{WORDS}\\n- {SAID_OF_IT}"}, result=member("summary", f"{WORDS}\\n- {SAID_OF_IT}")),
    submitted("form_echo_lines", {"summary": f"{WORDS}\n[ava] {LIMIT}"}, summary=None, result=member("summary", WORDS)),
    submitted("form_sub_outjson", without(output='{"rate": 19}'), result=member("output", {"rate": 19})),
    # ---- again and again
    Row("form_again_unknown", lambda n, r: call(n, r, "open_file", {"path": f"{n}.txt"}), requests=5,
        end="error/repeated_calls", error="the model called open_file, which does not exist, 4 times"),
    Row("form_again_bad", always("read_file", {"first_line": "TAX"}), requests=5, end="error/repeated_calls",
        error="the model called read_file with the same arguments, which do not fit, 4 times"),
    # What failed says again what is wrong: small models do not look back.
    Row("form_again_failed", lambda n, r: call(n, r, "read_file", {"path": "none.txt"}) if n < 4 else submit(n, r), requests=4,
        summary="ok done", sent=lambda seen: None if all("no file none.txt" in m["content"] for m in seen[-1].messages("tool"))
        else str(seen[-1].messages("tool"))),
    Row("form_again_json", always("read_file", '{"path":"a.txt"'), requests=5, end="error/repeated_calls"),
    # A text that says the same without end is cut, and asked for once more, a little warmer; then it is what there is.
    Row("form_again_words", lambda n, r: looped(r) if n == 1 else submit(n, r), requests=2, summary="ok done", sent=warmer),
    Row("form_again_words_twice", lambda n, r: looped(r) if n < 3 else formed(n, r), requests=4, end="success/final_text",
        summary="ok done", sent=warmer),
    Row("form_again_turns", lambda n, r: call(n, r, *(("open_file", {"n": n}) if n % 2 else ("read_file", {"line": n}))), requests=5,
        end="error/repeated_calls", error="none of the calls in 4 replies in a row could run, the last one of read_file: "
        "bad arguments: path is required", sent=lambda seen: None if "Your task was: Look at the folder." in
        seen[-1].messages()[-1]["content"] else "no word of the task"),
    Row("form_again_submit", lambda n, r: call(n, r, "open_file", {}) if n < 5 else submit(n, r), requests=5,
        end="error/repeated_calls", summary="ok done"),
]
