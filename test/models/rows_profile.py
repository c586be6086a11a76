"""The order of roles, extra members and contents that families of services want, and what their refusals say of it.
A server here keeps its rule from the first request on; a row counts the requests, so a repair shows as one more."""

import json
import re
import threading

from play import Row
from service import (aend, aerror, astart, asubmit, athink, atool, call, chunk, DONE, error, honest, resp, sse, submit, text,
                     tool_call)


def keeps(*rules, then=None, calls=1, args=None):
    """A server that calls read_file `calls` times, each time for other lines, and then submits; what a rule says of a
    request is its answer."""
    def script(n, request):
        for rule in rules:
            refusal = rule(request)
            if refusal:
                return refusal
        made = len(request.messages("tool"))
        if made >= calls:
            return submit(n, request)
        return (then or read)(made + 1, request)
    return script


def read(n, request, **members):
    return call(n, request, "read_file", {"path": "a.txt", "first_line": n, "last_line": n + 3}, **members)


def mistral(message, kind, code):
    return resp(400, {"object": "error", "message": message, "type": kind, "param": None, "code": code})


def pairs(request):
    lines = request.messages()
    return list(zip(lines, lines[1:]))


def no_user_behind_tool(request):
    for a, b in pairs(request):
        if (a["role"], b["role"]) == ("tool", "user"):
            return mistral("Unexpected role 'user' after role 'tool'", "invalid_request_message_order", "3230")
    return None


def alternates(status, words):
    def rule(request):
        lines = [m for m in request.messages() if m["role"] != "system"]
        for a, b in zip(lines, lines[1:]):
            if b["role"] == "user" and a["role"] in ("user", "tool"):
                return error(status, words, code=status, type="server_error")
        return None
    return rule


JINJA = ("\n------------\nWhile executing CallExpression at line 47, column 32 in source:\n...first user message "
         "#}\n        {{- raise_exception('After the optional system message, conversation roles ...\n"
         "                                           ^\nError: Jinja Exception: After the optional system message, "
         "conversation roles must alternate user and assistant roles except for tool calls and results.")


def empty_first(rule):
    def script(n, request):
        return rule(request) or (text(request, "") if n == 1 else submit(n, request))
    return script


def told(request):
    return any("[ava]" in str(m.get("content")) for m in request.messages()[2:])


def until_told(rule, again=False):
    """Calls and calls, as models do, until the runtime says something."""
    def script(n, request):
        return rule(request) or (submit(n, request) if told(request) else read(1 if again else n, request))
    return script


def extends(seen):
    """Each request says what the one before said, byte for byte."""
    for a, b in zip(seen, seen[1:]):
        one, two = (json.dumps(r.body["messages"])[:-1] for r in (a, b))
        if not two.startswith(one):
            return f"a request does not extend the last one: {one[-300:]} / {two[len(one) - 300:len(one) + 100]}"
    return None


def steered(world, row):
    """A person speaks while the reply is under way, so that it stands behind the results."""
    r = world.ava("run", f"Look. [row {row.name}]", "--role", "code_reviewer", "--model", row.model(), "--yes",
                  "--background")
    run = re.search(r"S-[0-9a-f]{6,}", r.stdout + r.stderr).group()
    STEERING.wait(60)
    steer = threading.Thread(target=world.ava, args=("steer", run, "look at b.txt too"))  # waits until it is read
    steer.start()
    while steer.is_alive() and "queued" not in world.ava("logs", run, "--type", "Steering", "-o", "json").stdout:
        pass
    STEERED.set()
    steer.join()
    world.ava("wait", run)
    result = json.loads(world.ava("result", run, "--json").stdout)
    seen = world.seen(row)
    return [] if result.get("status") == "success" and any(b"look at b.txt too" in s.raw for s in seen) else \
        [json.dumps(result), *(s.raw.decode()[-600:] for s in seen)]


def replayed(world, row):
    """The record of a run whose requests were made of another form, and of one that was repaired, is played again."""
    printed, result = world.run(row)
    again = world.ava("replay", result.get("id") or result.get("subagent_id") or str(result))
    return [] if again.returncode == 0 and result.get("status") == "success" else \
        [printed.stdout + printed.stderr + again.stdout + again.stderr]


STEERING, STEERED = threading.Event(), threading.Event()


def while_steered(n, request):
    refusal = no_user_behind_tool(request)
    if refusal or n > 1:
        return refusal or submit(n, request)
    STEERING.set()
    STEERED.wait(60)
    return read(1, request)


# ---- contents, ids, members

def no_system(words, **members):
    return lambda r: error(400, words, **members) if r.messages()[0]["role"] == "system" else None


def no_null(r):
    for i, m in enumerate(r.messages()):
        if m.get("content", "") is None:
            return error(400, f"messages[{i}]: content must be a string", type="invalid_request_error")
    return None


def no_blank(r):
    for m in r.messages():
        if not m.get("content"):
            return error(400, "content must not be null or empty", type="invalid_request_error")
    return None


def ids(pattern, words):
    def rule(r):
        for i, m in enumerate(r.messages()):
            for k, c in enumerate(m.get("tool_calls") or []):
                if not re.fullmatch(pattern, c["id"]):
                    return error(400, words.format(i, k, c["id"]), type="invalid_function_call")
        asked = [c["id"] for m in r.messages("assistant") for c in m.get("tool_calls") or []]
        given = [m["tool_call_id"] for m in r.messages("tool")]
        return None if asked == given else error(400, f"{asked} are not {given}")
    return rule


def no_keyword(keyword, words):
    def rule(r):
        found = any(keyword in p for t in r.body["tools"] for p in [t["function"]["parameters"]] +
                    list(t["function"]["parameters"]["properties"].values()))
        return resp(400, words) if found else None
    return rule


SIGNATURE = {"google": {"thought_signature": "EqQBCqEB+/SIGNATURE=="}}
UNSIGNED = ("Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
            "correctly. Additional data, function call `default_api:read_file`, position 2.")


def signed(good):
    def rule(r):
        for m in r.messages("assistant"):
            if m.get("tool_calls") and not good(m["tool_calls"][0]):
                return resp(400, [{"error": {"code": 400, "message": UNSIGNED, "status": "INVALID_ARGUMENT"}}])
        return None
    return rule


def function_member(n, request):
    piece = tool_call(n, "read_file", {"path": "a.txt"}, vendor={"k": [1, 2.5, "é"]})
    piece["function"]["sealed"] = "x/y+z=="
    return sse(chunk({"role": "assistant", "content": None}), chunk({"tool_calls": [piece]}), chunk({}, "tool_calls"),
               honest(request), DONE)


def signed_late(n, request):
    """The signature comes in a chunk of its own."""
    return sse(chunk({"role": "assistant", "content": None}),
               chunk({"tool_calls": [tool_call(n, "read_file", '{"path":')]}),
               chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"a.txt"}'}, "extra_content": SIGNATURE}]}),
               chunk({}, "tool_calls"), honest(request), DONE)


def signed_message(n, request):
    return sse(chunk({"role": "assistant", "content": "Looking.", "extra_content": SIGNATURE}),
               chunk({"tool_calls": [tool_call(n, "read_file", {"path": "a.txt"})]}), chunk({}, "tool_calls"), honest(request),
               DONE)


def message_signed(r):
    good = all(m.get("extra_content") == SIGNATURE for m in r.messages("assistant"))
    return None if good else error(400, "the message has no signature")


def no_members(r):
    for m in r.messages("assistant"):
        for c in m.get("tool_calls") or []:
            if "extra_content" in c:
                return error(400, "'messages.2.tool_calls.0' : property 'extra_content' is unsupported",
                             type="invalid_request_error")
    return None


LONG = "call_abc__thought__" + "A" * 3000


def thinks(words):
    def rule(r):
        for i, m in enumerate(r.messages()):
            if m.get("tool_calls") and "reasoning_content" not in m:
                return error(400, words.format(i), type="invalid_request_error", param=None)
        return None
    return rule


KIMI = "thinking is enabled but reasoning_content is missing in assistant tool call message at index {}"
DEEPSEEK = ("Missing `reasoning_content` field in the assistant message at message index {}. For more information, please "
            "refer to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls")
DEEPSEEK2 = "The `reasoning_content` in the thinking mode must be passed back to the API. (messages[{}])"


def first_thinks(member, words):
    """A reply with that reasoning, later ones with none."""
    def then(n, request):
        return sse(chunk({"role": "assistant", "content": None}), chunk({member: words}) if n == 1 else b"",
                   chunk({"tool_calls": [tool_call(n, "read_file", {"path": "a.txt", "first_line": n})]}),
                   chunk({}, "tool_calls"), honest(request), DONE)
    return then


def given_back(words):
    def sent(seen):
        said = [m.get("reasoning_content") for m in seen[-1].messages("assistant")]
        return None if said == words else f"reasoning_content {said}"
    return sent


def no_reasoning(r):
    for i, m in enumerate(r.messages()):
        if "reasoning_content" in m:
            return error(400, f"'messages.{i}' : for 'role:assistant' the following must be satisfied[('messages.{i}' : "
                              "property 'reasoning_content' is unsupported)]", type="invalid_request_error")
    return None


# ---- parameters

def no_parameters(*names):
    def rule(r):
        for name in names:
            if name in r.body:
                return resp(422, {"object": "error", "type": "invalid_request_error", "message": {"detail": [
                    {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted", "input": 1}]}})
        return None
    return rule


# ---- thinking of the Messages form

def unsigned(words, good=lambda r: not any(b["type"] == "thinking" for m in r.messages() for b in m["content"])):
    def script(n, request):
        if n == 1:
            return sse(astart(request), athink(0, "let me see", "SIG1"), atool(1, 1, "read_file", {"path": "a.txt"}), aend())
        return asubmit(n, request) if good(request) else aerror(400, "invalid_request_error", words)
    return script


GOOGLE = {"error": {"code": 400, "message": "Invalid JSON payload received. Unknown name \"additionalProperties\" at "
                    "'tools[0].function_declarations[0].parameters': Cannot find field.", "status": "INVALID_ARGUMENT"}}
MISTRAL_ID = "Tool call id was {2} but must be a-z, A-Z, 0-9, with a length of 9."
OPENAI_ID = ("Invalid 'messages[{0}].tool_calls[{1}].id': string too long. Expected a string with maximum length 40, but got a "
             "string with length 3000 instead.")

ROWS = [
    # A notice of repeats, of limits, of a person: all behind the last result, from the first request on.
    Row("mistral_order", until_told(no_user_behind_tool, again=True), requests=(3, 5), sent=extends),
    Row("mistral_limit_fresh", until_told(no_user_behind_tool), args=["--max-tokens", "30000"], sent=extends),
    Row("mistral_iter", until_told(no_user_behind_tool), args=["--max-iterations", "6"], requests=(3, 6), sent=extends),
    Row("order_other_name", until_told(no_user_behind_tool), on="local/some-model", args=["--max-iterations", "6"],
        requests=(3, 6)),
    Row("mistral_steer", while_steered, play=steered),
    # An empty reply: the nudge does not stand beside the task.
    Row("alt_empty", empty_first(alternates(500, JINJA)), requests=2, sent=extends),
    Row("alt_empty400", empty_first(alternates(400, JINJA)), requests=2),
    Row("alt_behind_tool", lambda n, r: alternates(400, JINJA)(r) or
        (read(1, r) if n == 1 else text(r, "") if n == 2 else submit(n, r)), requests=3, sent=extends),
    Row("alt_gemini", empty_first(alternates(400, "Please ensure that multiturn requests alternate between user and model.")),
        requests=2),
    Row("alt_replay", lambda n, r: alternates(400, JINJA)(r) or
        (read(1, r) if n == 1 else text(r, "") if n == 2 else submit(n, r)), play=replayed),
    Row("form_replay", keeps(no_null, no_system("System role not supported"), no_parameters("stream_options")), play=replayed),
    # No system role.
    Row("nosystem", keeps(no_system("System role not supported None", type="BadRequestError", code=400)), requests=3),
    Row("nosystem_google", keeps(no_system("Developer instruction is not enabled for models/gemma-3-27b-it")), requests=3,
        sent=lambda seen: None if "submit_result" in seen[-1].messages()[0]["content"] else "the system text is gone"),
    Row("nosystem_openai", keeps(no_system("Unsupported value: 'messages[0].role' does not support 'system' with this model.",
                                           param="messages[0].role", code="unsupported_value")), requests=3),
    Row("nosystem_500", keeps(lambda r: error(500, "Jinja Exception: System role not supported") if
                              r.messages()[0]["role"] == "system" else None), requests=3),
    *(Row(f"nosystem_words_{i}", keeps(no_system(words)), requests=3) for i, words in enumerate((
        "This model does not support the 'system' role", 'messages: Unexpected role "system".', "role 'system' is invalid",
        "Value error, system message is not allowed"))),
    # Contents.
    *(Row(f"nullcontent_words_{i}", keeps(lambda r, words=words: no_null(r) and error(400, words)), requests=3)
      for i, words in enumerate(("content field is a required field", "invalid message content type: <nil>"))),
    Row("nullcontent", keeps(no_null), requests=3),
    Row("nullcontent_named", keeps(no_blank), requests=4),
    # Ids.
    Row("id9", keeps(ids("[a-zA-Z0-9]{9}", MISTRAL_ID)), requests=3),
    Row("id9_named", keeps(ids("[a-zA-Z0-9]{9}", MISTRAL_ID), calls=3), on="local/mistral-small-latest", requests=4, sent=extends),
    Row("id9_path", keeps(ids("[a-zA-Z0-9]{9}", MISTRAL_ID)), on="openrouter/mistralai/devstral-small", requests=2),
    Row("id40", keeps(ids(".{1,40}", OPENAI_ID), then=lambda n, r: read(n, r, id=LONG)), requests=3),
    Row("longid_16k", keeps(ids("call_B{16000}", "{2}"), then=lambda n, r: read(n, r, id="call_" + "B" * 16000)), requests=2),
    Row("longid", keeps(ids(re.escape(LONG), "{2}"), then=lambda n, r: read(n, r, id=LONG)), requests=2),
    # Schemas.
    Row("schema_addprops", keeps(no_keyword("additionalProperties", [GOOGLE])), requests=3),
    Row("schema_object", keeps(no_keyword("additionalProperties", GOOGLE)), requests=3),
    Row("schema_bare", keeps(no_keyword("additionalProperties", {"error": {"message":
        "tools.0.function.parameters.additionalProperties: Extra inputs are not permitted"}})), requests=3),
    Row("schema_500", keeps(lambda r: no_keyword("additionalProperties", "")(r) and
                            error(500, "Unrecognized schema key: additionalProperties")), requests=3),
    Row("schema_lengths", keeps(no_keyword("maxLength", {"error": {"message": "Unsupported JSON schema keyword 'maxLength' in "
                                                                  "tools[0]", "type": "invalid_request_error"}})), requests=3),
    # Members of calls.
    Row("gemini", keeps(signed(lambda c: c.get("extra_content") == SIGNATURE),
                        then=lambda n, r: read(n, r, extra_content=SIGNATURE)), requests=2),
    Row("gemini_member", keeps(signed(lambda c: c.get("vendor") == {"k": [1, 2.5, "é"]} and
                                      c["function"].get("sealed") == "x/y+z=="), then=function_member), requests=2),
    Row("gemini_late", keeps(signed(lambda c: c.get("extra_content") == SIGNATURE), then=signed_late), requests=2),
    Row("gemini_message", keeps(message_signed, then=signed_message), requests=2),
    Row("gemini_unsigned", keeps(signed(lambda c: c.get("extra_content")), calls=2), requests=4),
    Row("members_refused", keeps(no_members, then=lambda n, r: read(n, r, extra_content=SIGNATURE)), requests=3),
    # Reasoning.
    Row("kimi_none", keeps(thinks(KIMI)), requests=3, sent=given_back([" "])),
    Row("kimi_empty", keeps(thinks(KIMI), then=first_thinks("reasoning_content", "")), requests=3),
    Row("kimi_reasoning", keeps(thinks(KIMI), then=first_thinks("reasoning", "let me see")), requests=3,
        sent=given_back(["let me see"])),
    Row("deepseek_missing", keeps(thinks(DEEPSEEK), then=first_thinks("reasoning_content", "first look"), calls=2), requests=4,
        sent=given_back(["first look", " "])),
    Row("deepseek_back", keeps(thinks(DEEPSEEK2), calls=2), requests=4),
    Row("reasoning_refused", keeps(no_reasoning, then=first_thinks("reasoning_content", "first look"), calls=2), requests=4),
    Row("asig", unsigned("messages.1.content.0: Invalid `signature` in `thinking` block"), on="anthropic", requests=(3, 4)),
    Row("asig2", unsigned("messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message "
                          "cannot be modified. These blocks must remain as they were in the original response."),
        on="anthropic", requests=3),
    Row("asig3", unsigned("messages.1.content.0.thinking.signature: Field required"), on="anthropic", requests=(3, 4)),
    # Several repairs a call, each of another thing.
    Row("p_two", keeps(no_parameters("stream_options", "max_tokens", "max_completion_tokens"), calls=0), requests=4),
    Row("p_form", keeps(no_parameters("stream_options"), no_system("System role not supported"), no_null,
                        ids("[a-zA-Z0-9]{9}", MISTRAL_ID)), requests=6),
    Row("p_forever", lambda n, r: error(400, "System role not supported. stream_options is not permitted."),
        end="error/model_error", requests=2),
]
