#!/usr/bin/python3
"""doc/events.json against the golden lines, and against the same lines broken.

Prints `ok N - name` or `not ok N - name` a test; exit code 1 when one failed."""

import copy
import json
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import jsonschema

import check_events

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
GOLDEN = os.path.join(ROOT, "test", "golden", "events", "lines.jsonl")
OPEN = {"LogOpen", "Recovered", "Seal"}  # shapes that may grow


def text_of(event):
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))


def load():
    with open(check_events.SCHEMA, encoding="utf-8") as f:
        schema = json.load(f)
    with open(GOLDEN, encoding="utf-8") as f:
        lines = f.read().splitlines()
    return schema, lines


SCHEMA, LINES = load()
CHECKER = check_events.Checker(SCHEMA)
EVENTS = [json.loads(line) for line in LINES]


def test_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_golden_lines_pass():
    whole = jsonschema.Draft202012Validator(SCHEMA)
    for line, event in zip(LINES, EVENTS):
        assert CHECKER.problem(line) is None, CHECKER.problem(line)
        assert whole.is_valid(event), event["eventType"]


def test_kinds_are_those_of_event_h():
    with open(os.path.join(ROOT, "src", "event", "event.h"), encoding="utf-8") as f:
        kinds = re.findall(r"X\((\w+), \d+\)", f.read())
    assert kinds == SCHEMA["properties"]["eventType"]["enum"], kinds
    assert kinds == list(dict.fromkeys(e["eventType"] for e in EVENTS))
    assert kinds == [b["properties"]["eventType"]["const"] for b in SCHEMA["oneOf"]]


def test_items():
    """The golden Items, each of its kind, fit doc/items.json; with one key more they do not."""
    with open(os.path.join(ROOT, "doc", "items.json"), encoding="utf-8") as f:
        items = jsonschema.Draft202012Validator(json.load(f))
    with open(os.path.join(ROOT, "test", "golden", "items", "items.jsonl"), encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    assert {i["kind"] for i in lines} == set(items.schema["properties"]["kind"]["enum"])
    for item in lines:
        errors = [e.message for e in items.iter_errors(item)]
        assert not errors, (item, errors)
        assert not items.is_valid({**item, "surprise": 1})
        assert not items.is_valid({**item, "detail": {**item["detail"], "surprise": 1}})


def broken(event):
    """Every copy of the event with one thing wrong."""
    kind = event["eventType"]
    shape = SCHEMA["$defs"][kind]
    for key in shape.get("required", []):
        bad = copy.deepcopy(event)
        del bad["content"][key]
        yield f"{kind} without {key}", bad
    for key, value in shape["properties"].items():
        if key in event["content"] and value != {}:
            bad = copy.deepcopy(event)
            bad["content"][key] = [[0]]
            yield f"{kind} with another {key}", bad
    if kind not in OPEN:
        bad = copy.deepcopy(event)
        bad["content"]["surprise"] = 1
        yield f"{kind} with one key more", bad
    for key in event:
        bad = {k: v for k, v in event.items() if k != key}
        yield f"{kind} without top-level {key}", bad
    bad = copy.deepcopy(event)
    bad["metadata"]["extra"] = 1
    yield f"{kind} with more metadata", bad


def test_broken_lines_fail():
    count = 0
    for event in EVENTS:
        for name, bad in broken(event):
            assert CHECKER.problem(text_of(bad)), name
            count += 1
    assert count > 500, count


def test_every_key_is_in_a_golden_line():
    """But the few that only some events of a kind have."""
    seldom = {"cut", "resumedFrom", "origin", "cwd", "configHash", "error", "errorClass",
              "retryInMs", "clockMs", "value", "ran", "shared", "last", "groupId", "resumedCall",
              "allThree", "by", "told", "window", "served", "ask", "limit", "needs", "files",
              "citations", "notFound", "tags", "groupIndex", "orderId"}
    for kind in {event["eventType"] for event in EVENTS}:
        known = set(SCHEMA["$defs"][kind]["properties"])
        missing = known.difference(*(e["content"] for e in EVENTS if e["eventType"] == kind))
        assert missing <= seldom, (kind, missing)


def test_canonical_form():
    line = LINES[12]
    swapped = line.replace('"lsn":90429,"seq":13', '"seq":13,"lsn":90429')
    for bad in [swapped, line.replace(":", ": ", 1), " " + line, line[:-1], line + " x",
                line.replace('"seq":13', '"seq":13,"seq":13'),
                line.replace('"content":{', '"content":{"callId":"c1.1",'), "", "[]",
                line.replace('"ToolCall"', '"Tool"')]:
        assert bad != line and CHECKER.problem(bad), bad


def test_special_cases():
    call = copy.deepcopy(EVENTS[12])
    call["content"]["cut"] = True
    assert CHECKER.problem(text_of(call))  # an object is never cut
    call["content"]["args"] = '{"a":'
    assert CHECKER.problem(text_of(call)) is None
    cost = copy.deepcopy(EVENTS[15])
    cost["content"]["costCents"] = None
    assert CHECKER.problem(text_of(cost)) is None
    cost["content"]["costCents"] = -1
    assert CHECKER.problem(text_of(cost))


def run(data):
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as f:
        f.write(data)
        f.flush()
        script = os.path.join(ROOT, "test", "check_events.py")
        return f.name, subprocess.run([sys.executable, script, GOLDEN, f.name],
                                      capture_output=True, text=True, check=False)


def test_command():
    good = LINES[0].encode() + b"\n"
    name, done = run(good)
    assert done.returncode == 0 and done.stdout == "", done
    name, done = run(good + b'{"a":1}\n' + good + b"\xff\n" + good[:-1])
    where = [line.split(": ")[0] for line in done.stdout.splitlines()]
    assert done.returncode == 1 and where == [f"{name}:{n}" for n in (2, 4, 5)], done
    script = os.path.join(ROOT, "test", "check_events.py")
    done = subprocess.run([sys.executable, script, "/none"], capture_output=True, check=False)
    assert done.returncode == 2


def main():
    tests = [(n, f) for n, f in sorted(globals().items()) if n.startswith("test_")]
    failed = 0
    for number, (name, function) in enumerate(tests, 1):
        try:
            function()
            print(f"ok {number} - {name}")
        except AssertionError as why:
            failed += 1
            print(f"not ok {number} - {name}: {why}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
