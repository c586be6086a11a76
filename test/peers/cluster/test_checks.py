"""Each check of checks.py accepts what is right and finds a forged violation."""

import copy
import json
import sys

sys.dont_write_bytecode = True
import checks  # noqa: E402
import world  # noqa: E402


def event(kind, **content):
    return {"eventType": kind, "content": content}


def good():
    """A record: a call that was cut and made again, a tool, and a second call."""
    events = [event("SubagentSpawn"), event("InferStart", callId="i1"),
              event("InferEnd", callId="i1", stopReason="", errorClass="interrupted", error="the machine was lost"),
              event("InferStart", callId="i1.2"), event("InferEnd", callId="i1.2", stopReason="tool_use"),
              event("ToolCall", callId="c1.1"), event("ToolResult", callId="c1.1"), event("InferStart", callId="i2"),
              event("InferEnd", callId="i2", stopReason="tool_use"), event("SubagentComplete")]
    return [e | {"seq": n} for n, e in enumerate(events, 1)]


def data_of(events):
    return "".join(json.dumps(e) + "\n" for e in events).encode()


def requests():
    return [checks.Request("r1", i, m, at, 0) for i, m, at in ((1, "m1", 1000), (1, "m2", 9000), (2, "m2", 9500))]


def told(right, *forged):
    """What is right is accepted, each forgery is not."""
    wrong = [f"refused what is right: {s}" for s in right]
    return wrong + [f"forgery {n} was not found" for n, found in enumerate(forged, 1) if not found]


def forge(change):
    events = copy.deepcopy(good())
    change(events)
    return events


def lines():
    data = data_of(good())
    assert checks.parse("x", data)[0] == good()
    return told(checks.parse("x", data)[1], checks.parse("x", data[:-1])[1], checks.parse("x", b"")[1],
                checks.parse("x", data.replace(b"{", b"\0", 1))[1])


def sequence():
    def renumber(events):
        events[4]["seq"] = 9

    return told(checks.contiguous("x", good()), checks.contiguous("x", forge(lambda e: e.pop(4))),
                checks.contiguous("x", forge(lambda e: e.insert(4, e[4]))), checks.contiguous("x", forge(renumber)))


def ends():
    return told(checks.whole("x", good()), checks.whole("x", good()[:-1]), checks.whole("x", good()[1:]),
                checks.whole("x", good() + good()[-1:]), checks.whole("x", good()[:1] + good()), checks.whole("x", []))


def calls():
    def succeeds(events):
        del events[2]["content"]["error"]
        events[2]["content"]["stopReason"] = "tool_use"

    return told(checks.paired("x", good()),
                checks.paired("x", forge(lambda e: e.insert(7, e[7]))),   # i2 starts twice
                checks.paired("x", forge(lambda e: e.insert(6, e[5]))),   # a tool starts twice
                checks.paired("x", forge(lambda e: e.pop(2))),            # i1.2 without an end of i1
                checks.paired("x", forge(succeeds)),                      # i1.2 behind an i1 that was answered
                checks.paired("x", forge(lambda e: e.pop(6))),            # a tool without its result
                checks.paired("x", forge(lambda e: e.pop(5))))            # a result without its tool


def asked():
    more = requests() + [checks.Request("r1", 2, "m1", 9600, 0)]
    refused = requests()[:-1] + [requests()[-1]._replace(refused=400)]
    return told(checks.doubled("x", good(), requests()), checks.doubled("x", good(), more),
                checks.doubled("x", good(), refused))


def stopped():
    return told(checks.stray("x", requests(), "m1", 5000), checks.stray("x", requests(), "m1", 500),
                checks.stray("x", requests(), "m2", 9000)) + told(checks.stray("x", requests(), "m2", 5000, 8000))


def account():
    return told(checks.accounted({"S-1": "r1"}, {"S-1": 9}) + checks.over({"S-1": "r1"}, {"S-1": 9}),
                checks.accounted({"S-1": "r1", "S-2": "r2"}, {"S-1": 9}), checks.accounted({"S-1": "r1"}, {"S-1": 9, "S-2": 9}),
                checks.over({"S-1": "r1"}, {"S-1": 8}), checks.over({"S-1": "r1"}, {}))


def chunk(head, data, kind=checks.LOG):
    return {"stream": "S-1", "kind": kind, "head": head, "body": "\\x" + data.hex()}


def chunks():
    data = data_of(good()) * 9
    rows = [chunk(20, data[700:1400]), chunk(10, data[:700]), chunk(30, data[1400:]), chunk(10, b"messages", checks.MESSAGES)]
    changed = data[:900] + b"\0" + data[901:]
    return told(checks.once(rows) + checks.same("x", rows, data) + checks.same("x", rows, b"messages", checks.MESSAGES),
                checks.once(rows + rows[1:2]), checks.same("x", rows[:2] + rows[3:], data), checks.same("x", rows, data[:-1]),
                checks.same("x", rows, changed), checks.same("x", rows[1:] + [rows[0] | {"head": 5}], data),
                checks.same("x", rows + [rows[1] | {"head": 11}], data), checks.same("x", rows[:3], b"messages", checks.MESSAGES))


def seals():
    broken = {"ok": False, "broken": 1, "findings": [{"kind": "broken", "path": "a", "what": "line 3 was changed"}]}
    return told(checks.sealed("m1", {"ok": True, "broken": 0, "findings": []}), checks.sealed("m1", broken),
                checks.sealed("m1", broken | {"findings": []}), checks.sealed("m1", None))


def oracle():
    """The model's log, read as requests."""
    first = {"role": "user", "content": [{"type": "text", "text": "See. marker r7"}]}
    row = {"number": 1, "atMs": 77, "from": "127.0.0.12", "path": "/v1/messages", "refused": 0,
           "body": {"messages": [first, {"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}]}}
    found = list(checks.requests_of([json.dumps(row), json.dumps(row | {"body": None})]))
    return told([] if found == [checks.Request("r7", 2, "m2", 77, 0)] else [str(found)])


if __name__ == "__main__":
    sys.exit(world.main(lines, sequence, ends, calls, asked, stopped, account, chunks, seals, oracle))
