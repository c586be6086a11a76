#!/usr/bin/python3
"""Check that every line of JSONL files is an event as doc/events.json says.

usage: check_events.py FILE...

Each bad line is named as file:line: and what is wrong; the exit code is 1 when
there was one, 2 when nothing could be checked. Beyond the schema: keys once,
top-level keys in order, canonical bytes up to the content, a newline at the
end of the last line."""

import json
import os
import re
import sys

import jsonschema

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "doc", "events.json")

STRING = r'"(?:[^"\\\x00-\x1f]|\\.)*"'
PREFIX = re.compile(
    r'\{"timestamp":"[^"]{24}","lsn":[0-9]+,"seq":[0-9]+,"eventType":"[A-Za-z]+",'
    rf'"agentId":{STRING},"sessionId":{STRING},"traceId":{STRING},"userId":{STRING},"content":\{{')
METADATA = ["iteration", "inputTokens", "outputTokens", "costCents", "modelId", "parentAgentId",
            "duration"]


def unique(pairs):
    """An object whose keys must differ: json would silently keep the last."""
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [k for k, _ in pairs]
        raise ValueError(f"key {next(k for k in keys if keys.count(k) > 1)!r} twice")
    return found


class Checker:
    def __init__(self, schema):
        # oneOf says the same to every reader of the schema; going straight to
        # the kind's own shape is 30 times faster and names what is wrong.
        head = {k: v for k, v in schema.items() if k != "oneOf"}
        self.head = jsonschema.Draft202012Validator(head)
        self.order = schema["required"]
        self.content = {}
        for branch in schema["oneOf"]:
            kind = branch["properties"]["eventType"]["const"]
            shape = {"$defs": schema["$defs"], "$ref": branch["properties"]["content"]["$ref"]}
            self.content[kind] = jsonschema.Draft202012Validator(shape)

    def problem(self, text):
        """What is wrong with a line (without its newline), or None."""
        try:
            event = json.loads(text, object_pairs_hook=unique)
        except ValueError as why:
            return f"no JSON: {why}"
        error = jsonschema.exceptions.best_match(self.head.iter_errors(event))
        if error:
            return self.say("", error)
        if list(event) != self.order:
            return "top-level keys are not in order"
        if list(event["metadata"]) != [k for k in METADATA if k in event["metadata"]]:
            return "metadata's keys are not in order"
        if not PREFIX.match(text):
            return "not in canonical form (spaces, escapes)"
        error = jsonschema.exceptions.best_match(
            self.content[event["eventType"]].iter_errors(event["content"]))
        return self.say(f"{event['eventType']}.content", error) if error else None

    @staticmethod
    def say(where, error):
        path = "".join(f".{p}" if isinstance(p, str) else f"[{p}]" for p in error.absolute_path)
        message = error.message if len(error.message) < 300 else error.message[:300] + "…"
        return f"{(where + path).lstrip('.') or 'event'}: {message}"


def lines_of(path):
    """(number, text or None when it is not UTF-8 or has no newline, why)."""
    with open(path, "rb") as f:
        for n, raw in enumerate(f, 1):
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError as why:
                yield n, None, f"no UTF-8: {why.reason} at byte {why.start}"
                continue
            if not text.endswith("\n"):
                yield n, None, "the last line has no newline"
            else:
                yield n, text[:-1], None


def main():
    if len(sys.argv) < 2:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    with open(SCHEMA, encoding="utf-8") as f:
        checker = Checker(json.load(f))
    count = bad = 0
    for path in sys.argv[1:]:
        for n, text, why in lines_of(path):
            count += 1
            why = why or checker.problem(text)
            if why:
                bad += 1
                print(f"{path}:{n}: {why}")
    print(f"{count} events, {bad} bad", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as why:
        print(f"check_events.py: {why}", file=sys.stderr)
        sys.exit(2)
