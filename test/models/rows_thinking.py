"""Thinking, however it comes: never the result, never searched for calls, never sent back as text."""

import subprocess

import play
from play import Row
from service import DONE, aend, astart, atext, athink, chunk, honest, sse, submit, text, tool_call

DRAFT = '<think>\nMaybe I could say {"summary":"WRONG DRAFT","output":{"x":0},"confidence":0.1} but no.\n</think>\n\n'
CALL = '<think>\nI could call <tool_call>{"name":"list_files","arguments":{}}</tool_call> but I know it.\n</think>\n\n'
FINAL = "The final answer is forty-two."
ONLY = "the model answered only in its thinking"


def clean(result):
    return "thinking in the summary" if any(w in result.get("summary", "") for w in ("DRAFT", "think", "I could")) else None


def not_sent(*words):
    return lambda seen: next((f"{w!r} was sent back" for r in seen for w in words for m in r.messages("assistant")
                              if w in str(m)), None)


def words(text_of, cut=0, **members):
    """The same text in each reply; `cut`: in pieces of so many letters."""
    def script(n, r):
        pieces = [text_of[i:i + cut] for i in range(0, len(text_of), cut)] if cut else [text_of]
        return sse(*(chunk({"content": p, **members}) for p in pieces), chunk({}, "stop"), honest(r), DONE)
    return script


def result(name, script, **more):
    """Three texts: it is told to look first, then to submit."""
    more = {"end": "no_result/final_text", "requests": 3, "summary": "forty-two", "result": clean,
            "sent": not_sent("I could", "DRAFT"), **more}
    return Row(name, script, **more)


def field(name, value="I could say it."):
    return lambda n, r: sse(chunk({"role": "assistant", "content": None, name: value}), chunk({"content": FINAL}),
                            chunk({}, "stop"), honest(r), DONE)


def only(name, value="The answer is forty-two, found in a.txt."):
    return lambda n, r: sse(chunk({"role": "assistant", "content": None, name: value}), chunk({}, "stop"), honest(r), DONE)


def thought_only(name, script, asked=4, **more):
    return Row(name, script, end="no_result/final_text", requests=asked, summary="forty-two",
               result=lambda d: None if d["unverified"] and ONLY in d["caveats"] else f"not marked: {d}", **more)


def chat(world, row):
    """A person says hello: what stands on the terminal, and in the page's view of the conversation."""
    env = {**world.env, "AVA_CHAT_MODEL": row.model(), "AVA_MODEL": row.model()}
    said = subprocess.run([play.AVA, "chat", "--model", row.model()], input=f"hello [row {row.name}]\n", cwd=world.work,
                          env=env, capture_output=True, text=True, timeout=play.PATIENCE)
    shown = said.stdout + said.stderr
    wrong = [f"{w!r} is not shown: {shown}" for w in [row.says] if w not in shown]
    return wrong + [f"{w!r} is shown: {shown}" for w in row.says_not if w in shown]


def replayed(world, row):
    """The record of a run whose answer is thinking alone is played again."""
    _, result = world.run(row)
    again = world.ava("replay", result.get("subagent_id") or str(result))
    return [] if again.returncode == 0 and result.get("status") == "no_result" else [again.stdout + again.stderr]


ROWS = [
    result("think_draft", words(DRAFT + FINAL)),
    result("think_draft_cut", words(DRAFT + FINAL, cut=3)),
    result("think_draft_object", words(DRAFT + '{"answer": 42}'), end="success/final_text", requests=2, summary=None, result=lambda d: clean(d)
           or (None if d["output"] == {"answer": 42} else f"output is {d['output']}")),
    result("think_draft_bare", words(DRAFT[8:] + FINAL)),
    result("think_draft_bare_cut", words(DRAFT[8:] + FINAL, cut=5)),
    result("think_call", words(CALL + FINAL)),
    result("think_thinking", words(DRAFT.replace("think>", "thinking>") + FINAL)),
    result("think_harmony", words("<|channel|>analysis<|message|>I could say so.<|end|><|start|>assistant<|channel|>final"
                                  "<|message|>" + FINAL, cut=4)),
    result("think_harmony_bare", words("analysisI could say so.assistantfinal" + FINAL)),
    result("think_field_reasoning", field("reasoning"), sent=None),
    result("think_field_thinking", field("thinking")),
    result("think_field_text", field("reasoning_text")),
    result("think_field_object", field("reasoning", {"content": "I could say it."})),
    result("think_blocks", lambda n, r: sse(chunk({"content": [{"type": "thinking", "thinking": "I could say it."},
                                                               {"type": "text", "text": FINAL}]}),
                                            chunk({}, "stop"), honest(r), DONE)),
    result("think_messages", lambda n, r: sse(astart(r), atext(0, DRAFT + FINAL), aend("end_turn")), on="anthropic"),
    result("think_both", lambda n, r: sse(chunk({"reasoning_content": "I could say it."}),
                                          *(chunk({"content": p}) for p in ("<think>or I could not</th", "ink>\n\n", FINAL)),
                                          chunk({}, "stop"), honest(r), DONE), sent=not_sent("not")),
    result("think_stray_end", lambda n, r: sse(chunk({"reasoning": "I could."}), chunk({"content": "</think>\n\n" + FINAL}),
                                               chunk({}, "stop"), honest(r), DONE), on="openrouter", sent=not_sent("think>")),
    Row("think_then_call", lambda n, r: sse(chunk({"content": "I could look.\n</think>\n\n"}),
                                            chunk({"tool_calls": [tool_call(n, "read_file", {"path": "a.txt"})]}),
                                            chunk({}, "tool_calls"), honest(r), DONE) if n == 1 else submit(n, r),
        requests=2, summary="ok done", sent=not_sent("I could")),
    # What speaks of the marks is a text as every other.
    result("think_about", words("The final answer is forty-two; `<think>` begins it, and </think> is its end."),
           summary="begins it, and </think> is its end.", result=None),
    thought_only("think_only_field", only("reasoning_content")),
    thought_only("think_only_thinking", only("thinking")),
    thought_only("think_only_text", words("<think>The answer is forty-two.</think>")),
    thought_only("think_only_open", words("<think>The answer is forty-two.")),
    thought_only("think_only_messages", lambda n, r: sse(astart(r), athink(0, "It is forty-two."), aend("end_turn")),
                 on="anthropic"),
    thought_only("think_only_limit", only("reasoning_content"), args=["--max-iterations", "2"], asked=2),
    Row("think_only_replay", only("reasoning_content"), play=replayed),
    Row("think_only_once", lambda n, r: only("reasoning_content")(n, r) if n == 1 else submit(n, r), requests=2,
        summary="ok done"),
    Row("think_chat", words("<think>\nI must not tell them the plan.\n</think>\n\nHello, what can I do?", cut=7), play=chat,
        says="Hello, what can I do?", says_not=["think>", "the plan"]),
    Row("think_chat_only", only("reasoning_content", "Hello, what can I do?"), play=chat, says="Hello, what can I do?",
        says_not=["empty_replies"]),
    Row("think_chat_call", lambda n, r: text(r, '<tool_call>\n{"name": "spawn_subagent", "arguments": {"task": "count files", '
                                             '"role": "code_reviewer"}}\n</tool_call>'), play=chat,
        says="Proceed?", says_not=["tool_call", "arguments"]),
]
