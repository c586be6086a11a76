#!/usr/bin/python3
"""An independent reader of a data root: what must hold after any crash.

It shares no code with ava. Used as a module by kill9.py and by hand:
    check_root.py ROOT        exit 1 and a line for each thing that is wrong"""

import glob
import hashlib
import json
import os
import sys

TERMINAL = {"success", "timeout", "cost_exceeded", "tokens_exceeded",
            "iterations_exceeded", "cancelled", "error", "no_result", "unproven"}


def lines(path, wrong):
    """The events of a file; a line that is none is wrong."""
    with open(path, "rb") as f:
        data = f.read()
    if data and not data.endswith(b"\n"):
        wrong.append(f"{path}: does not end in a newline")
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            yield number, json.loads(line.decode("utf-8"))
        except ValueError as e:
            wrong.append(f"{path}:{number}: unreadable: {e}")


def parts(path):
    """The file and those that follow it, where somebody changed it: x.2.jsonl …"""
    more = glob.glob(f"{path[:-len('.jsonl')]}.[0-9]*.jsonl")
    return [p for p in [path] if os.path.exists(p)] + sorted(
        more, key=lambda p: int(p.split(".")[-2]))


def check_intents(path, events, wrong):
    """Each InferStart and ToolCall has exactly one result, after it."""
    pairs = {"InferStart": "InferEnd", "ToolCall": "ToolResult"}
    for start, end in pairs.items():
        open_calls, seen = set(), set()
        for number, e in events:
            call = e["content"].get("callId")
            if e["eventType"] == start:
                if call in seen:
                    wrong.append(f"{path}:{number}: {start} {call} twice")
                seen.add(call)
                open_calls.add(call)
            elif e["eventType"] == end:
                if call not in open_calls:
                    wrong.append(f"{path}:{number}: {end} {call} without its {start}")
                open_calls.discard(call)
        if open_calls:
            wrong.append(f"{path}: no {end} for {sorted(open_calls)}")


def check_run(root, run, wrong, must_end=True):
    events = []
    for path in parts(f"{root}/logs/subagents/{run}.jsonl"):
        events += list(lines(path, wrong))
    path = f"logs/subagents/{run}.jsonl"
    if not events:
        wrong.append(f"{path}: no events of an acknowledged run")
        return None
    last_lsn = last_seq = 0
    for number, e in events:
        if e["lsn"] <= last_lsn or e["seq"] <= last_seq:
            wrong.append(f"{path}:{number}: lsn or seq does not grow")
        last_lsn, last_seq = e["lsn"], e["seq"]
        if e["agentId"] != run:
            wrong.append(f"{path}:{number}: an event of {e['agentId']}")
    if events[0][1]["eventType"] != "SubagentSpawn":
        wrong.append(f"{path}: the first event is no SubagentSpawn")
    ends = [e for _, e in events if e["eventType"] == "SubagentComplete"]
    if not ends:
        if must_end:
            wrong.append(f"{path}: never ended")
        return None
    if len(ends) > 1 or events[-1][1] is not ends[0]:
        wrong.append(f"{path}: SubagentComplete is not once and last")
    status = ends[0]["content"]["status"]
    if status not in TERMINAL:
        wrong.append(f"{path}: ended as {status}")
    check_intents(path, events, wrong)
    check_messages(root, run, wrong)
    try:
        with open(f"{root}/runs/{run}/result.json", encoding="utf-8") as f:
            result = json.load(f)
        if result["status"] != status or result["subagent_id"] != run:
            wrong.append(f"runs/{run}/result.json: disagrees with the log")
    except (OSError, ValueError) as e:
        wrong.append(f"runs/{run}/result.json: {e}")
    return ends[0]["content"]


def check_head(root, name, where, wrong):
    """A head that is referred to is on the disk, whole."""
    try:
        with open(f"{root}/heads/{name}", "rb") as f:
            if hashlib.sha256(f.read()).hexdigest() != name:
                wrong.append(f"{where}: its head {name} is damaged")
    except OSError as e:
        wrong.append(f"{where}: its head: {e}")


def check_messages(root, run, wrong):
    """Every call is answered in the next message, and nothing else is."""
    path = f"{root}/runs/{run}/messages.jsonl"
    if not os.path.exists(path):
        wrong.append(f"{path}: missing")
        return
    pending = []
    for number, line in lines(path, wrong):
        head = (line.get("spec") or line.get("cut") or {}).get("head")
        if head or number == 1:
            check_head(root, head, f"{path}:{number}", wrong)
        if "role" not in line:
            continue
        blocks = line["content"]
        if line["role"] == "assistant":
            if pending:
                wrong.append(f"{path}:{number}: calls {pending} were not answered")
            pending = [b["id"] for b in blocks if b["type"] == "tool_use"]
        else:
            results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
            if results != pending:
                wrong.append(f"{path}:{number}: results {results} for calls {pending}")
            pending = []
    if pending:
        wrong.append(f"{path}: calls {pending} at the end were not answered")


def check_root(root, acknowledged=(), must_end=True):
    """All that is wrong, as sentences; and the ends by run."""
    wrong, ends = [], {}
    spawned, ended = [], []
    for catalog in parts(os.path.join(root, "catalog.jsonl")):
        for number, row in lines(catalog, wrong):
            (spawned if row["row"] == "spawn" else ended).append(row["id"])
    for name, rows in (("spawn", spawned), ("end", ended)):
        for run in {r for r in rows if rows.count(r) > 1} if len(rows) < 5000 else ():
            wrong.append(f"catalog.jsonl: two {name} rows of {run}")
    for run in acknowledged:
        if run not in spawned:
            wrong.append(f"catalog.jsonl: acknowledged run {run} is not there")
    for run in spawned:
        ends[run] = check_run(root, run, wrong, must_end)
        if ends[run] and run not in ended:
            wrong.append(f"catalog.jsonl: no end row of {run}")
    last = 0
    for path in sorted(glob.glob(f"{root}/logs/ava/*.jsonl")):
        for number, e in lines(path, wrong):
            if e["lsn"] <= last:
                wrong.append(f"{path}:{number}: lsn does not grow")
            last = e["lsn"]
    return wrong, ends


def main():
    wrong, ends = check_root(sys.argv[1])
    for sentence in wrong:
        print(sentence)
    print(f"{len(ends)} runs, {len(wrong)} things wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
