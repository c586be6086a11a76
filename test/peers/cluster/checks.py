"""The invariants of a cluster, each a function of plain data that lists what is wrong, in sentences.

They share no code with ava. test_checks.py shows each a forged violation."""

import collections
import json
import re

ENDED = 9  # ava_run.state of a run that is over, and above
LOG, MESSAGES = 0, 1  # ava_chunk.kind

# A request as the model saw it: the run by its marker, the iteration by the replies in it.
Request = collections.namedtuple("Request", "marker iteration machine at_ms refused")


def parse(where, data):
    """(events, what is wrong) of a log's bytes."""
    wrong, events = [], []
    if not data.endswith(b"\n"):
        wrong.append(f"{where}: it is empty, or does not end in a newline")
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            events.append(json.loads(line.decode("utf-8")))
        except ValueError as e:
            wrong.append(f"{where}:{number}: unreadable: {e}")
    return events, wrong


def contiguous(where, events):
    """seq is 1, 2, 3, …: no line is lost, and none stands twice."""
    for number, event in enumerate(events, 1):
        if event["seq"] != number:
            return [f"{where}:{number}: seq {event['seq']}"]
    return []


def whole(where, events):
    """It begins with its spawn and ends with its one end."""
    kinds = [e["eventType"] for e in events]
    wrong = []
    if kinds[:1] != ["SubagentSpawn"] or kinds.count("SubagentSpawn") != 1:
        wrong.append(f"{where}: SubagentSpawn is not once and first")
    if kinds[-1:] != ["SubagentComplete"] or kinds.count("SubagentComplete") != 1:
        wrong.append(f"{where}: SubagentComplete is not once and last")
    return wrong


def attempt(call):
    """(iteration, number of the attempt) of i3 or i3.2"""
    iteration, _, number = call[1:].partition(".")
    return int(iteration), int(number or 1)


def paired(where, events):
    """Each call starts once and ends once; a model call is attempted again only when the record says how the
    attempt before it failed, and a tool's call never is."""
    wrong, ends, open_calls, seen = [], {}, set(), set()
    for number, event in enumerate(events, 1):
        kind, content = event["eventType"], event["content"]
        if kind in ("InferStart", "ToolCall"):
            call = content["callId"]
            if call in seen:
                wrong.append(f"{where}:{number}: {kind} {call} twice")
            seen.add(call)
            open_calls.add(call)
            if kind == "InferStart" and attempt(call)[1] > 1 and not ends.get((attempt(call)[0], attempt(call)[1] - 1)):
                wrong.append(f"{where}:{number}: {call} starts, and nothing says that the attempt before it failed")
        elif kind in ("InferEnd", "ToolResult"):
            call = content["callId"]
            if call not in open_calls:
                wrong.append(f"{where}:{number}: {kind} {call} without its start")
            open_calls.discard(call)
            if kind == "InferEnd":
                ends[attempt(call)] = "error" in content or content["stopReason"] == "interrupted"
    wrong += [f"{where}: {call} has no end" for call in sorted(open_calls)]
    return wrong


def doubled(where, events, requests):
    """The model saw no request that the record does not have a start of."""
    starts = collections.Counter(attempt(e["content"]["callId"])[0] for e in events if e["eventType"] == "InferStart")
    seen = collections.Counter(r.iteration for r in requests)
    wrong = [f"{where}: the model was asked {n} times for iteration {i}, and the record has {starts[i]} starts"
             for i, n in sorted(seen.items()) if n > starts[i]]
    wrong += [f"{where}: the request of iteration {r.iteration} was refused" for r in requests if r.refused]
    return wrong


def stray(where, requests, machine, after_ms, until_ms=float("inf")):
    """A machine that others have taken runs from starts nothing for them."""
    return [f"{where}: {machine} asked for iteration {r.iteration} {(r.at_ms - after_ms) / 1000:.1f} s after it should have stopped"
            for r in requests if r.machine == machine and after_ms < r.at_ms < until_ms]


def accounted(accepted, states):
    """Every accepted run is there, ended or live; `states`: run to ava_run.state. No other run is."""
    wrong = [f"{run}: it was accepted, and ava_run does not have it" for run in accepted if run not in states]
    return wrong + [f"{run}: ava_run has it, and nobody was told so" for run in states if run not in accepted]


def over(accepted, states):
    return [f"{run}: it has not ended" for run in accepted if states.get(run, 0) < ENDED]


def once(rows):
    """No (stream, kind, head) twice."""
    seen = collections.Counter((r["stream"], r["kind"], r["head"]) for r in rows)
    return [f"{stream}: kind {kind}, head {head} stands {n} times" for (stream, kind, head), n in seen.items() if n > 1]


def same(where, rows, data, kind=LOG):
    """A run's chunks of that kind, in order, are the bytes of its owner's file. Bodies are hex, as psql gives it."""
    mine = sorted((r for r in rows if r["kind"] == kind), key=lambda r: r["head"])
    chunks = b"".join(bytes.fromhex(r["body"].removeprefix("\\x")) for r in mine)
    if chunks == data:
        return []
    at = next((i for i, (a, b) in enumerate(zip(chunks, data)) if a != b), min(len(chunks), len(data)))
    return [f"{where}: {len(chunks)} bytes of chunks, {len(data)} of the owner's file; they part at byte {at}, line "
            f"{data.count(10, 0, at) + 1}"]


def sealed(where, report):
    """`report`: what `ava logs verify --json` says, and None when it said nothing."""
    if not report:
        return [f"{where}: ava logs verify said nothing"]
    if report["ok"] and not report["broken"]:
        return []
    return [f"{where}: {f.get('path')}: {f.get('what')}" for f in report["findings"] if f["kind"] == "broken"] or [
        f"{where}: ava logs verify is not content"]


def requests_of(lines):
    """Lines of the log of mock-models, as Requests; not those that are no run's."""
    for line in lines:
        row = json.loads(line)
        messages = (row["body"] or {}).get("messages") or [{}]
        marker = re.search(r"marker ([a-z0-9-]+)", json.dumps(messages[0]))
        if marker:
            replies = sum(m.get("role") == "assistant" for m in messages)
            machine = "m" + str(int(row["from"].split(".")[3]) - 10)
            yield Request(marker.group(1), replies + 1, machine, row["atMs"], row["refused"])
