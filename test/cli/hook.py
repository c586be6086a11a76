"""Events of Claude Code given to `ava hook`, and the cards that come of it; played by test_hook.sh."""

import itertools
import json
import os
import subprocess
import time

from api import AVA, check

CLAUDE = os.environ["CLAUDE_CONFIG_DIR"]
SRCDIR = os.environ["SRCDIR"]
CARDS = os.path.join(CLAUDE, "agent-activity")
session = 0
os.environ.pop("CLAUDE_PID", None)  # of whoever runs the tests


def start_hook(text):
    p = subprocess.Popen([AVA, "hook"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdin.write(text if isinstance(text, bytes) else json.dumps(text).encode())
    p.stdin.close()
    p.stdin = None
    return p


def ended(p):
    out, err = p.communicate(timeout=100)
    return p.returncode == 0 and out == b"" and err == b""


def hook(text):
    return ended(start_hook(text))


def new_session():
    global session
    session += 1
    return f"5e55-{session}"


def event(kind, s, agent="a7ad29c273a8378e0", agent_type="Explore", **more):
    e = {"session_id": s, "transcript_path": f"{CLAUDE}/projects/p/{s}.jsonl", "cwd": "/p", "hook_event_name": kind}
    if agent is not None:
        e |= {"agent_id": agent, "agent_type": agent_type}
    return e | more


def card(s, agent="a7ad29c273a8378e0"):
    with open(os.path.join(CARDS, s, agent + ".json")) as f:
        return json.load(f)


def cards(s):
    folder = os.path.join(CARDS, s)
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def one_agent():
    s = new_session()
    check("a start says nothing", hook(event("SubagentStart", s)))
    c = card(s)
    check("an agent that starts is active", (c["status"], c["type"], c["agentId"]) ==
          ("active", "Explore", "a7ad29c273a8378e0") and c["startedAt"] == c["updatedAt"], c)
    check("what keeps it alive is on its card", c["process"]["pid"] == os.getpid() and c["transcript"] ==
          f"{CLAUDE}/projects/p/{s}/subagents/agent-a7ad29c273a8378e0.jsonl", c)
    hook(event("SubagentStop", s, agent_type="", last_assistant_message="Done: 3 files."))
    d = card(s)
    check("its stop keeps start and type, and what it said", d["status"] == "stopped" and d["type"] == "Explore" and
          d["startedAt"] == c["startedAt"] and d["lastMessage"] == "Done: 3 files." and d["stoppedAt"] == d["updatedAt"], d)
    hook(event("SubagentStop", s, last_assistant_message="Done again."))
    d = card(s)
    check("a second stop keeps the start", d["startedAt"] == c["startedAt"] and d["lastMessage"] == "Done again.", d)
    hook(event("SubagentStart", s))
    d = card(s)
    check("one that is resumed is active and began when it did",
          d["status"] == "active" and d["startedAt"] == c["startedAt"] and "stoppedAt" not in d, d)
    hook(event("SubagentStart", s, agent="b1", agent_type=""))
    check("Claude Code's own agents have no type and no card", cards(s) == ["a7ad29c273a8378e0.json"], cards(s))


def orders():
    """Each event as often as wanted, in each order: the last one says how the agent is."""
    kinds = {"SubagentStart": "active", "SubagentStop": "stopped", "TeammateIdle": "idle"}
    wrong = []
    for n in (2, 3):
        for order in itertools.product(kinds, repeat=n):
            s = new_session()
            for kind in order:
                more = {"last_assistant_message": "said"} if kind == "SubagentStop" else {}
                if kind == "TeammateIdle":
                    more = {"teammate_name": "Explore"}
                hook(event(kind, s, agent=None if kind == "TeammateIdle" and "SubagentStart" == order[0] else
                           "a7ad29c273a8378e0", **more))
                time.sleep(0.002)  # what happens in one millisecond has no order
            c = card(s)
            if (c["status"] != kinds[order[-1]] or c["type"] != "Explore" or len(cards(s)) != 1 or
                    c.get("lastMessage") != ("said" if "SubagentStop" in order else None)):
                wrong.append((order, c))
    check("of 36 orders each ends as its last event says", not wrong, wrong[:3])


def at_once():
    s = new_session()
    ps = []
    for i in range(32):
        ps.append(start_hook(event("SubagentStart", s, agent=f"a{i}", agent_type=f"t{i % 4}")))
        ps.append(start_hook(event("SubagentStop", s, agent=f"a{i}", agent_type=f"t{i % 4}",
                                   last_assistant_message=f"said {i}")))
    good = [ended(p) for p in ps]
    wrong = [c for c in (card(s, f"a{i}") for i in range(32)) if c.get("lastMessage") != "said " + c["agentId"][1:] or
             c["type"] != "t%d" % (int(c["agentId"][1:]) % 4) or c["startedAt"] > c["updatedAt"] or
             (c["status"] == "stopped") != ("stoppedAt" in c)]
    check("64 at once: each card has what its two events said", all(good) and not wrong, wrong[:2])
    check("and nothing else is left in the folder", cards(s) == sorted(f"a{i}.json" for i in range(32)), cards(s))
    s = new_session()
    ps = [start_hook(event("SubagentStop", s, last_assistant_message=str(i) * 50000)) for i in range(64)]
    good = [ended(p) for p in ps]
    said = card(s)["lastMessage"]
    check("64 for one agent: one whole card", all(good) and len(said) >= 50000 and len(set(said)) <= 2 and
          len(cards(s)) == 1, said[:20])


def clock_back():
    s = new_session()
    hook(event("SubagentStart", s))
    later = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() + 3600))
    write(os.path.join(CARDS, s, "a7ad29c273a8378e0.json"), card(s) | {"updatedAt": later, "startedAt": later})
    hook(event("SubagentStop", s))
    c = card(s)
    check("a clock that was set back stops no agent from stopping", c["status"] == "stopped" and c["startedAt"] <= c["stoppedAt"], c)


def write(path, *lines):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.writelines(json.dumps(line) + "\n" for line in lines)


def reply(i, usage, model="claude-haiku-4-5", block="text"):
    return {"type": "assistant", "isSidechain": True, "timestamp": "2026-11-23T10:00:0%d.000Z" % min(i, 9),
            "message": {"role": "assistant", "id": f"msg_{i}", "model": model, "content": [{"type": block}], "usage": usage}}


def transcripts():
    s = new_session()
    base = f"{CLAUDE}/projects/p/{s}/subagents/agent-c1"
    used = {"input_tokens": 10, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 3000, "output_tokens": 5}
    write(base + ".jsonl", {"type": "user", "timestamp": "2026-11-23T09:59:59.500Z", "message": {"role": "user"}},
          reply(1, used | {"output_tokens": 1}, block="thinking"), reply(1, used), {"type": "user"},
          reply(1, used | {"output_tokens": 7}), reply(2, used), reply(3, {"input_tokens": 0, "output_tokens": 0}, "<synthetic>"))
    with open(base + ".jsonl", "a") as f:
        f.write('{"message":{"id":"torn","usage":{"input_tok')
    write(base + ".meta.json", {"agentType": "Explore", "description": "Look for \u2028 it", "parentAgentId": "c0",
                                "spawnDepth": 2, "model": "haiku"})
    hook(event("SubagentStop", s, agent="c1", agent_transcript_path=base + ".jsonl", last_assistant_message="ok"))
    c = card(s, "c1")
    check("a reply counts once, with its last figures",
          c["usage"] == {"input": 20, "output": 12, "cacheRead": 6000, "cacheWrite": 400}, c)
    check("model, description, parent and depth are on the card", (c["model"], c["description"], c["parentAgentId"],
          c["depth"]) == ("claude-haiku-4-5", "Look for \u2028 it", "c0", 2), c)
    check("without a start it began with its transcript", c["startedAt"] == "2026-11-23T09:59:59.500Z", c)
    whole = [json.dumps(reply(i, used)) for i in range(8)]
    with open(base + "x.jsonl", "wb") as f:  # two writers at once, a crash, a copy
        f.write(b'{"type":"summary","summary":"no time"}\n' + (whole[1] + whole[2] + "\n").encode())
        f.write((whole[3][:30] + whole[4] + "\n" + whole[5][:-1] + whole[6] + "\n").encode() + bytes(5000) + whole[7].encode() + b"\n")
        f.truncate(300 << 20)
        f.seek(0, 2)
        f.write(b"\n" + json.dumps(reply(9, used)).encode() + b"\n")
    hook(event("SubagentStop", s, agent="c9", agent_transcript_path=base + "x.jsonl"))
    c = card(s, "c9")
    check("each reply that can be found counts, also behind 256 MB", c["usage"]["output"] == 7 * 5, c)
    check("and it began at the first time that is told", c["startedAt"] == "2026-11-23T10:00:01.000Z", c)
    deep, many = json.loads('{"a":' * 99 + "1" + "}" * 99), [{"k": {"z": i}} for i in range(99)]
    whole = [json.dumps(reply(i, used, block=block)) for i, block in enumerate(["text"] * 99 + [many, deep])]
    write(base + "y.jsonl", reply(200, used | {"output_tokens": 5.0}))
    with open(base + "y.jsonl", "a") as f:
        f.write("".join(whole[:99]) + "\n" + whole[99][:-150] + whole[98].replace("98", "201") + "\n" + whole[100])
    hook(event("SubagentStop", s, agent="c8", agent_transcript_path=base + "y.jsonl"))
    c = card(s, "c8")
    check("many in a line, one behind a broken one, one of reals, a deep one, the last one without its end", c["usage"]["output"] == 102 * 5, c)
    hook(event("SubagentStart", s, agent="c2"))
    write(f"{CLAUDE}/projects/p/{s}/subagents/agent-c2.jsonl", reply(1, used))
    write(f"{CLAUDE}/projects/p/{s}/subagents/agent-c2.meta.json", {"description": "x", "parentAgentId": "c1", "spawnDepth": 3})
    hook(event("SubagentStop", s, agent="c2", last_assistant_message="ok"))
    with open(os.path.join(SRCDIR, "test/golden/claude/card.json")) as f:
        golden = f.read()
    with open(os.path.join(SRCDIR, "doc/CLAUDE-CODE.md")) as f:
        check("the golden card stands in the documentation", golden in f.read())
    golden = json.loads(golden)
    check("a card has the members of the golden one", {k: type(v) for k, v in card(s, "c2").items()} ==
          {k: type(v) for k, v in golden.items()} and card(s, "c2")["usage"].keys() == golden["usage"].keys(), card(s, "c2"))


def clock_at(seconds):
    """The clock of hooks that start_late started stands so long after their start."""
    os.symlink(f"{seconds}000 {seconds}000 1", os.environ["AVA_TEST_CLOCK"] + ".new")
    os.replace(os.environ["AVA_TEST_CLOCK"] + ".new", os.environ["AVA_TEST_CLOCK"])


def start_late(text, transcript):
    """A hook that has found its transcript without the last line."""
    clock_at(0)
    os.environ["LD_PRELOAD"] = os.environ["CLOCK"]
    p = start_hook(text)
    del os.environ["LD_PRELOAD"]
    while p.poll() is None:
        try:
            if transcript in [os.readlink(f"/proc/{p.pid}/fd/{n}") for n in os.listdir(f"/proc/{p.pid}/fd")]:
                break
        except OSError:
            pass
    return p


def late():
    """What Claude Code writes a moment after it told: the last reply, what the agent is for."""
    s = new_session()
    base = f"{CLAUDE}/projects/p/{s}/subagents/agent-c1"
    used = {"input_tokens": 10, "output_tokens": 5}
    for said, blocks in (("It is done.", ["It is done.\n"]), ("first\n\n\u00e9nd", ["first", "\u00e9nd"])):
        write(base + ".jsonl", reply(1, used), {"type": "user"})
        p = start_late(event("SubagentStop", s, agent="c1", last_assistant_message=said), base + ".jsonl")
        with open(base + ".jsonl", "a") as f:
            for text in blocks:
                line = reply(2, used)
                line["message"]["content"] = [{"type": "text", "text": text}]
                f.write(json.dumps(line) + "\n")
        check("a reply that is written after its stop was told counts", ended(p) and card(s, "c1")["usage"]["output"] == 10, card(s, "c1"))
    ps = []
    for i in range(16):
        transcript = f"{CLAUDE}/projects/p/{s}/subagents/agent-n{i}.jsonl"
        write(transcript, reply(1, used))
        ps.append(start_late(event("SubagentStop", s, agent=f"n{i}", last_assistant_message="never written"), transcript))
    check("one that is not written is waited for, by all at once", all(p.poll() is None for p in ps))
    clock_at(1)
    check("a second at the most", all([ended(p) for p in ps]) and card(s, "n15")["usage"]["output"] == 5, card(s, "n15"))


def found_later():
    s = new_session()
    hook(event("SubagentStart", s, agent="m1"))
    write(f"{CLAUDE}/projects/p/{s}/subagents/agent-m1.meta.json", {"description": "x", "parentAgentId": "c1", "spawnDepth": 2})
    hook(event("PreToolUse", s, agent="m1", tool_name="Read"))
    c = card(s, "m1")
    check("a tool's call finds what was not there at the start", (c.get("parentAgentId"), c.get("depth")) == ("c1", 2), c)


def process():
    """Claude Code calls a hook through a shell, and tells its own pid."""
    s = new_session()
    shell = ["sh", "-c", '"$AVA" hook; exit 0']
    subprocess.run(shell, input=json.dumps(event("SubagentStart", s)).encode(), check=True,
                   env=os.environ | {"CLAUDE_PID": str(os.getpid())})
    ticks = int(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19])
    c = card(s)
    check("the process is Claude Code's, not that of a shell between", c["process"] == {"pid": os.getpid(), "startTicks": ticks}, c)
    hook(event("SubagentStop", s))
    subprocess.run(shell, input=json.dumps(event("SubagentStart", s, agent="b2")).encode(), check=True,
                   env=os.environ | {"CLAUDE_PID": "claude"})
    check("a pid that is none is not taken", card(s, "b2")["process"]["pid"] > 1, card(s, "b2"))


def forks():
    """Claude Code forks a context for a suggestion or a summary: an id of its own, no start, no type."""
    s = new_session()
    hook(event("SubagentStart", s, agent="d1", agent_type="Plan"))
    before = card(s, "d1")
    write(f"{CLAUDE}/t/x.jsonl", {"timestamp": before["startedAt"]})
    running = [{"id": "d1", "type": "subagent", "status": "running", "description": "x"}]
    for more in ({}, {"agent_transcript_path": f"{CLAUDE}/t/x.jsonl"}, {"agent_transcript_path": f"{CLAUDE}/t/never.jsonl"},
                 {"background_tasks": running}):
        ps = [start_hook(event("SubagentStop", s, agent=f"e{i}", agent_type="", last_assistant_message="now run the tests", **more))
              for i in range(2)]
        if not all([ended(p) for p in ps]) or cards(s) != ["d1.json"] or card(s, "d1") != before:
            check("a stop of an id that no start had is nobody's", False, (more, cards(s)))
    hook(event("SubagentStop", s, agent="e9", agent_type="Plan", agent_transcript_path=f"{CLAUDE}/t/never.jsonl"))
    check("a stop of an id that no start had is nobody's", card(s, "d1") == before and cards(s) == ["d1.json"], cards(s))
    hook(event("SubagentStop", s, agent="d1", agent_type="", background_tasks=running))
    check("one that says it is at work at its own stop has stopped", card(s, "d1")["status"] == "stopped", card(s, "d1"))
    hook(event("SubagentStop", s, agent="d2", agent_type="Plan"))
    check("a stop with a type is an agent's, also where its start was not told", card(s, "d2")["status"] == "stopped", cards(s))


def mates():
    """TeammateIdle has a name and a team; the agent's id is name@team where it is in the same process."""
    s = new_session()
    for agent, agent_type in (("rev@blue", "general-purpose"), ("rev@red", "rev"), ("b7", "rev")):
        hook(event("SubagentStart", s, agent=agent, agent_type=agent_type))
        time.sleep(0.002)

    def idle(name, team=""):
        hook(event("TeammateIdle", s, agent=None, teammate_name=name, **({"team_name": team} if team else {})))
        return sorted((c["agentId"], c["status"]) for c in (card(s, f[:-5]) for f in cards(s)) if c["status"] == "idle")
    check("a teammate is the one of its name and team", idle("rev", "blue") == [("rev@blue", "idle")] and card(s, "rev@blue")["name"] == "rev", cards(s))
    check("of a team of its own", idle("rev", "red") == [("rev@blue", "idle"), ("rev@red", "idle")])
    check("not an agent whose type is that word", card(s, "b7")["status"] == "active" and len(cards(s)) == 3, cards(s))
    got = idle("tester", "blue")
    c = card(s, "tester@blue")
    check("one that no start told of has a card", ("tester@blue", "idle") in got and (c["type"], c["name"], c["team"]) == ("tester", "tester", "blue"), c)
    hook(event("SubagentStart", s, agent="tester@blue", agent_type="Plan"))
    check("which is that of its start, when that comes", card(s, "tester@blue")["status"] == "active" and len(cards(s)) == 4, cards(s))
    check("without a team the newest of the name", ("rev@red", "idle") in idle("rev") and card(s, "b7")["status"] == "active")
    s = new_session()
    hook(event("SubagentStart", s, agent="c9", agent_type="rev"))
    check("an agent of that type is meant where no other is there", idle("rev", "blue") == [("c9", "idle")])
    check("and then is that team's", idle("rev", "red") == [("c9", "idle"), ("rev@red", "idle")], cards(s))


def ids():
    """An id is any text: its file has a name of its own, and leads nowhere else."""
    s = new_session()
    odd = ["研究员@team", "code reviewer", "rev:1@t", "../../x", "a/b", "a%2Fb", ".hidden", "..", "x" * 300, "x" * 301, "X" * 300,
           "a1", "A1", "😀" * 60, "%", "a\nb", "a\x7f"]
    for agent in odd:
        hook(event("SubagentStart", s, agent=agent))
        hook(event("SubagentStop", s, agent=agent, agent_type="", last_assistant_message="said " + agent))
    hook(json.dumps(event("SubagentStart", s, agent="nul")).replace("nul", "a\\u0000b").encode())
    got = [json.load(open(os.path.join(CARDS, s, f))) for f in cards(s)]
    check("each id has a card", sorted(c["agentId"] for c in got) == sorted([*odd, "a\ufffdb"]), [c["agentId"] for c in got])
    check("of its own", all(c.get("lastMessage") == "said " + c["agentId"] for c in got if c["agentId"] in odd), got[:2])
    check("below its session", not os.path.exists(os.path.join(CLAUDE, "x.json")) and not os.path.exists(os.path.join(CARDS, s, "a")))


def moved():
    """A session that goes to the background goes on under another id, and so do its agents."""
    s, t = new_session(), new_session()
    hook(event("SubagentStart", s, agent="m1"))
    hook(event("SubagentStart", s, agent="m2"))
    began = card(s, "m1")["startedAt"]
    path = card(s, "m1")["transcript"]
    os.environ["CLAUDE_PID"] = str(os.getppid())  # another process: the transcript is the same
    hook(event("SubagentStop", t, agent="m2", agent_type=""))
    check("who is of neither the same process nor transcript is another", cards(t) == [] and card(s, "m2")["status"] == "active", cards(t))
    hook(event("SubagentStop", t, agent="m1", agent_type="", agent_transcript_path=path, last_assistant_message="done"))
    del os.environ["CLAUDE_PID"]
    c = card(t, "m1")
    check("an agent goes with its session", (c["status"], c["startedAt"], c["lastMessage"]) == ("stopped", began, "done") and
          cards(s) == ["m2.json"], (c, cards(s)))
    hook(event("SubagentStart", s, agent="mate@blue"))
    hook(event("TeammateIdle", t, agent=None, teammate_name="mate", team_name="blue"))
    check("a teammate that idles, too", card(t, "mate@blue")["status"] == "idle" and cards(s) == ["m2.json"], cards(s))
    hook(event("SubagentStop", t, agent="m2", agent_type=""))
    check("by its process, too, with its transcript", card(t, "m2")["status"] == "stopped" and cards(s) == [] and
          f"/{s}/" in card(t, "m2")["transcript"], card(t, "m2"))
    hook(event("SubagentStart", s, agent="m1"))
    hook(event("SubagentStop", t, agent="m1"))
    check("one id in two sessions is two agents", card(s, "m1")["status"] == "active" and card(t, "m1")["status"] == "stopped")


def activity():
    s = new_session()
    hook(event("SubagentStart", s))
    hook(event("PreToolUse", s, tool_name="Read", tool_input={"file_path": "/p/a\n.c", "limit": 5}))
    check("what an agent does stands on its card", card(s)["activity"] == "Read /p/a", card(s))
    hook(event("PreToolUse", s, agent=None, tool_name="Bash", tool_input={"command": "ls"}))
    hook(event("PreToolUse", s, agent="unknown", tool_name="Bash", tool_input={"command": "ls"}))
    check("what others do does not", len(cards(s)) == 1 and card(s)["activity"] == "Read /p/a")
    hook(event("SubagentStop", s))
    check("and it ends with the agent", "activity" not in card(s), card(s))


def broken():
    s = new_session()
    with open(os.path.join(CARDS, "hook.log"), "a") as f:
        f.write("x" * (1 << 20) + "\n")
    inputs = [b"", b"{", b"[]", b"null", b'"x"', b"\0\0", b"\xff\xfe", b"{" * 100, b'{"a":' * 100 + b"1" + b"}" * 100,
              b'{"hook_event_name":5,"session_id":"s"}', b'{"hook_event_name":"SubagentStart"}',
              b'{"hook_event_name":"SubagentStart","session_id":"s"}', event("SubagentStart", "../up"),
              event("SubagentStart", ""), event("SubagentStart", ".hidden"), event("Stop", s),
              event("PreCompact", s, agent=None), event("TeammateIdle", s, agent=None), b"x" * (17 << 20)]
    failed = [i for i in inputs if not hook(i)]
    check("whatever comes in, a hook ends well and says nothing", not failed, failed[:2])
    check("and makes no card of it", cards(s) == [], cards(s))
    with open(os.path.join(CARDS, "hook.log")) as f:
        log = f.read()
    check("its log says why, a line each, and does not grow for ever", "no JSON object" in log and
          len(log.splitlines()) >= 13 and os.path.exists(os.path.join(CARDS, "hook.log.1")), log[:300])
    for bad in (b"", b"{torn", b"[1]"):
        os.makedirs(os.path.join(CARDS, s), exist_ok=True)
        with open(os.path.join(CARDS, s, "a1.json"), "wb") as f:
            f.write(bad)
        hook(event("SubagentStart", s, agent="a1"))
        if card(s, "a1")["type"] != "Explore":
            check("a card that is no card is made anew", False, bad)
    check("a card that is no card is made anew", True)
    hook(b'{"session_id":"%s","hook_event_name":"SubagentStop","agent_id":"a2","agent_type":"T",'
         b'"last_assistant_message":"cut \\ud83d"}' % s.encode())
    hook(b"\xef\xbb\xbf" + json.dumps(event("SubagentStop", s, agent="a4", last_assistant_message="x")).encode())
    check("a BOM before an event is passed over", card(s, "a4")["lastMessage"] == "x")
    check("a message that was cut within a character is kept", card(s, "a2")["lastMessage"] == "cut \ufffd")
    hook(event("SubagentStop", s, agent="a3", last_assistant_message="\u00e9" * 400000))
    check("a giant one is cut between characters", 120000 < len(card(s, "a3")["lastMessage"]) <= 131072)


one_agent()
orders()
at_once()
clock_back()
transcripts()
if os.environ["CLOCK"]:
    late()
found_later()
process()
forks()
mates()
ids()
moved()
activity()
broken()
