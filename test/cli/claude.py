"""Subagents of Claude Code as the daemon sees them: hooks write cards, the daemon reads, tells and
keeps; played by test_claude.sh."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

import api
from api import AVA, PATIENCE, check, until

CLAUDE = os.environ["CLAUDE_CONFIG_DIR"]
CARDS = os.path.join(CLAUDE, "agent-activity")


def get(path):
    c = api.Socket("x")
    c.request("GET", path)
    answer = c.getresponse()
    data = json.loads(answer.read())
    c.close()
    return data if answer.status == 200 else answer.status


def hook(kind, session, agent, agent_type="Explore", **more):
    event = {"session_id": session, "cwd": "/src/app", "hook_event_name": kind, "agent_type": agent_type,
             "transcript_path": f"{CLAUDE}/projects/p/{session}.jsonl"} | more
    if agent:
        event["agent_id"] = agent
    subprocess.run([AVA, "hook"], input=json.dumps(event).encode(), check=True)


def logged(n, session=None):
    """The lines of the log about agents, when there are n of them."""
    end = time.monotonic() + PATIENCE
    while True:
        got = subprocess.run([AVA, "logs", "--type", "Custom", "-o", "json"], capture_output=True, text=True)
        lines = [e for e in map(json.loads, got.stdout.splitlines()) if e["content"]["customType"] == "claude.agent" and
                 session in (None, e["sessionId"])]
        if len(lines) >= n or time.monotonic() > end:
            return lines
        time.sleep(0.05)


def write(path, what):
    with open(path, "w") as f:
        json.dump(what, f)


def write_card(session, agent, **more):
    """As somebody else's hook writes one."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    os.makedirs(f"{CARDS}/{session}", exist_ok=True)
    write(f"{CARDS}/{session}/.next", {"agentId": agent, "type": "T", "status": "active", "startedAt": at, "updatedAt": at} | more)
    os.rename(f"{CARDS}/{session}/.next", f"{CARDS}/{session}/{agent}.json")


class Stream(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.frames, self.changed = [], threading.Condition()
        self.c = api.Socket("x")
        self.c.request("GET", "/api/v1/events?agents=1")
        self.answer = self.c.getresponse()
        self.start()

    def run(self):
        while line := self.answer.readline():
            if line.startswith(b"data: ") and b"agent-update" in line:
                with self.changed:
                    self.frames.append(json.loads(line[6:]))
                    self.changed.notify_all()

    def hears(self, session):
        with self.changed:
            return self.changed.wait_for(lambda: {"type": "agent-update", "sessionId": session} in self.frames, PATIENCE)


def odd(stream):
    """Files that are no cards, and cards with members of another kind."""
    os.makedirs(f"{CARDS}/s5")
    write(f"{CLAUDE}/secret.json", {"agentId": "link", "type": "T", "status": "active", "startedAt": "2026-11-24T07:00:00Z",
                                    "updatedAt": "2026-11-24T07:00:00Z"})
    os.symlink(f"{CLAUDE}/secret.json", f"{CARDS}/s5/link.json")
    os.mkfifo(f"{CARDS}/s5/fifo.json")
    os.makedirs(f"{CARDS}/s5/folder.json")
    os.symlink(f"{CARDS}/s1", f"{CARDS}/elsewhere")
    for agent, more in {"other": {"agentId": "a1"}, "typeless": {"type": 5}, "timeless": {"updatedAt": "today"},
                        "waiting": {"status": "waiting for someone"}}.items():
        write_card("s5", agent, **more)
    write_card("s5", "odd", startedAt=5, stoppedAt="x", lastMessage=["x"], name={}, usage={"input": 1}, depth="2", process=1,
               updatedAt="2026-11-24T07:00:00Z")
    write_card("s5", "last")
    logged(2, "s5")
    for _ in range(3):
        stream.frames.clear()
        write_card("s5", "last")
        stream.hears("s5")
    agents = get("/api/sessions/s5/agents")
    check("what is no card is none, whatever it is", sorted(a["agentId"] for a in agents) == ["last", "odd"], agents)
    a = [a for a in agents if a["agentId"] == "odd"][0]
    check("and members of another kind are left out", {k: v for k, v in a.items() if k not in ("reason", "status", "stoppedAt")} ==
          {"agentId": "odd", "type": "T", "startedAt": "2026-11-24T07:00:00Z", "updatedAt": "2026-11-24T07:00:00Z"}, a)
    lines = logged(2, "s5")
    check("none of it is in the log, again and again", sorted(e["content"]["data"]["agentId"] for e in lines) == ["last", "odd"], lines)
    write_card("s11", "back", updatedAt=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600)))
    logged(1, "s11")
    write_card("s11", "back", status="stopped")
    lines = logged(2, "s11")
    check("a clock that was set back hides nothing from the log", [e["content"]["data"]["status"] for e in lines] == ["active", "stopped"], lines)
    for i in range(60):
        write_card("s12", f"g{i:02}", lastMessage="x" * (2000000))
    check("60 giant cards are 20 before long, each in the log", until(lambda: len(os.listdir(f"{CARDS}/s12")) == 20) and
          sorted(e["content"]["data"]["agentId"] for e in logged(60, "s12")) == [f"g{i:02}" for i in range(60)])
    check("a link to a session is no session", get("/api/sessions/elsewhere/agents") == [] and
          "elsewhere" not in [s["sessionId"] for s in get("/api/v1/claude/sessions")["sessions"]])


def slow():
    """A client that does not read: what it missed of agents is one message when it does."""
    c = socket.socket(socket.AF_UNIX)
    c.settimeout(PATIENCE)
    c.connect(os.path.join(os.environ["AVA_DATA_ROOT"], "ava.sock"))
    c.sendall(b"GET /api/v1/events?agents=1 HTTP/1.1\r\nHost: x\r\n\r\n")
    got = c.recv(100)
    for i in range(60):
        for k in range(15):
            write_card(f"u{i:02}", f"f{k}", lastMessage="x" * 2000)
    until(lambda: len([e for e in logged(900) if e["sessionId"][0] == "u"]) >= 900)

    def events():  # in lines that have come whole
        return sum(b"claude.agent" in line and b'"sessionId":"u' in line for line in got.split(b"\n")[:-1])
    while b'"sessionId":"*"' not in got or events() < 900:  # the one may come before the last of the others
        try:
            more = c.recv(65536)
        except socket.timeout:
            break
        if not more:
            break
        got += more
    ids = [int(i) for i in re.findall(rb"^id: (\d+)$", got, re.M)]
    check("who was too slow hears that any may have changed", b'"sessionId":"*"' in got, got[-300:])
    check("and has every event once", events() == 900 and ids == sorted(set(ids)), (events(), len(ids)))
    c.close()


def main():
    if sys.argv[1:] == ["away"]:
        for i in range(1100):
            write_card(f"t{i:04}", "f1")
        return
    stream = Stream()
    if sys.argv[1:] == ["again"]:
        again(stream)
        return
    hook("SubagentStart", "s1", "a1")
    check("a card that comes is told of", stream.hears("s1"), stream.frames)
    lines = logged(1)
    check("and is in the log", len(lines) == 1 and lines[0]["content"]["data"]["status"] == "active" and
          lines[0]["sessionId"] == "s1", lines)
    hook("SubagentStop", "s1", "a1", last_assistant_message="x" * 5000 + " sk-ant-api03-" + "a" * 93 + "AA")
    lines = logged(2)
    data = lines[-1]["content"]["data"]
    check("its end as well, cut and without secrets", data["status"] == "stopped" and len(data["lastMessage"]) == 2000 and
          data["cut"] and "sk-ant" not in json.dumps(lines), data)
    agents = get("/api/sessions/s1/agents")
    check("whoever asks gets the whole card", [a["agentId"] for a in agents] == ["a1"] and len(agents[0]["lastMessage"]) > 5000, agents)
    check("of a session that is not there: none", get("/api/sessions/unknown/agents") == [])
    check("of what is no name: an error", get("/api/sessions/..%2f..%2fetc/agents") in (400, 404) and
          get("/api/sessions/.hidden/agents") == 404)

    # Many at once, while some go: none goes before it is in the log.
    for i in range(1200):
        write_card("s7", f"e{i:04}")
    lines = logged(1200, "s7")
    check("of 1200 at once each is in the log, once", sorted(e["content"]["data"]["agentId"] for e in lines) ==
          [f"e{i:04}" for i in range(1200)], len(lines))
    check("and 20 cards are left", until(lambda: len(os.listdir(f"{CARDS}/s7")) == 20), len(os.listdir(f"{CARDS}/s7")))
    for i in range(3):
        hook("SubagentStart", "s7", f"b{i}")
    logged(1203, "s7")
    check("the newest", until(lambda: len(os.listdir(f"{CARDS}/s7")) == 20) and {f"b{i}.json" for i in range(3)} <= set(os.listdir(f"{CARDS}/s7")))
    odd(stream)
    slow()

    # One that is written all the time, at shorter intervals than a burst is: it is told of meanwhile.
    os.makedirs(f"{CARDS}/s4")
    check("a new session is heard of", get("/api/sessions/s4/agents") == [])
    stop = threading.Event()

    def write_on():
        n = 0
        while not stop.wait(0.01):
            n += 1
            write_card("s4", "d1", startedAt="2026-11-24T07:00:00.000Z",
                       updatedAt=f"2026-11-24T07:00:{n // 1000 % 60:02}.{n % 1000:03}Z")

    writer = threading.Thread(target=write_on)
    writer.start()
    heard = stream.hears("s4")
    with stream.changed:
        stream.frames.clear()
        heard = heard and stream.changed.wait_for(lambda: len(stream.frames) >= 3, PATIENCE)
    stop.set()
    writer.join()
    check("a card that changes all the time is told of again and again", heard, len(stream.frames))

    # Teams.
    os.makedirs(f"{CLAUDE}/teams/builders")
    write(f"{CLAUDE}/teams/builders/config.json", {"name": "builders", "leadSessionId": "s1", "members": []})
    check("a team's agents are its leader's", get("/api/sessions/builders/agents") == get("/api/sessions/s1/agents") != [])
    os.makedirs(f"{CLAUDE}/tasks/builders")
    for i, status in ((1, "completed"), (2, "in_progress"), (3, "pending")):
        write(f"{CLAUDE}/tasks/builders/{i}.json", {"id": str(i), "subject": f"task {i}", "status": status})
    tasks = get("/api/sessions/s1/tasks")
    check("and so are its tasks", sorted(t["status"] for t in tasks) == ["completed", "in_progress", "pending"], tasks)
    check("that there are tasks is told", stream.hears("builders") and stream.hears("s1"), stream.frames)
    for what in ("changed", "removed"):
        time.sleep(0.2)
        stream.frames.clear()
        if what == "removed":
            os.remove(f"{CLAUDE}/tasks/builders/2.json")
        else:
            write(f"{CLAUDE}/tasks/builders/2.json", {"id": "2", "subject": "task 2", "status": "completed"})
        check(f"and that one was {what}", stream.hears("s1") and stream.hears("builders"), stream.frames)
    hook("SubagentStart", "s1", "a2")
    stream.frames.clear()
    hook("TeammateIdle", "s1", None, teammate_name="Explore")
    check("of a team both names are told", stream.hears("s1") and stream.hears("builders"), stream.frames)

    sessions = get("/api/v1/claude/sessions")
    s1 = [s for s in sessions["sessions"] if s["sessionId"] == "s1"][0]
    check("sessions are listed, with the names of the settings", sessions["settings"]["AGENT_FILE_CAP"] == 20 and
          sessions["settings"]["AGENT_STALE_MS"] == 300000 and sessions["settings"]["AGENT_LOG_MAX"] == 8 and
          s1["team"] == "builders" and s1["cwd"] == "/src/app" and s1["agents"]["idle"] == 1, sessions)

    # Who spawned it: told by Claude Code a moment after the start, by no event.
    def depth():
        return {a["agentId"]: (a.get("parentAgentId"), a.get("depth")) for a in get("/api/sessions/s6/agents")}
    hook("SubagentStart", "s6", "c1")
    heard = stream.hears("s6")
    check("at its start nobody knows who spawned an agent", heard and depth() == {"c1": (None, None)}, depth())
    stream.frames.clear()
    os.makedirs(f"{CLAUDE}/projects/p/s6/subagents")
    write(f"{CLAUDE}/projects/p/s6/subagents/agent-c1.meta.json", {"description": "x", "parentAgentId": "c0", "spawnDepth": 2})
    check("when it is known that is told", stream.hears("s6") and depth() == {"c1": ("c0", 2)}, depth())

    # Signs of life.
    old = time.time() - 400
    iso = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(old))
    dead = subprocess.Popen(["true"])
    dead.wait()
    ticks = int(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19])
    grows = f"{CLAUDE}/grows.jsonl"
    open(grows, "w").close()
    cards = {"gone": {"process": {"pid": dead.pid, "startTicks": 1}}, "other": {"process": {"pid": os.getpid(), "startTicks": ticks + 1}},
             "lives": {"process": {"pid": os.getpid(), "startTicks": ticks}}, "grows": {"transcript": grows}, "bare": {}}
    for agent, more in cards.items():
        write_card("s3", agent, startedAt=iso, updatedAt=iso, **more)
    with open(f"{CARDS}/s3/torn.json", "w") as f:
        f.write('{"agentId":')
    status = {a["agentId"]: (a["status"], a.get("reason")) for a in get("/api/sessions/s3/agents")}
    lost = ("stopped", "unknown")
    check("without a sign of life an agent is stopped, nobody knows why", status ==
          {"gone": lost, "other": lost, "bare": lost, "lives": ("active", None), "grows": ("active", None)}, status)
    write_card("s14", "gone", status="idle", process={"pid": dead.pid, "startTicks": 1})
    status = [(a["status"], a.get("reason")) for a in get("/api/sessions/s14/agents")]
    check("one whose process has ended has ended with it", status == [lost], status)
    check("s3 was heard of, torn card and all", stream.hears("s3"))
    boards(stream)
    ghosts()


def boards(stream):
    """Tasks as others write them, of sessions that have no agents, and of a list that two share."""
    ok = {"subject": "s", "status": "pending"}
    files = {"1": json.dumps({"id": "1"} | ok).encode(), "2": b'{"id":"2","subject":"cut \\ud83d","status":"pending"}',
             "3": b'{"id":"3","subject":"\xff","status":"pending"}', "4": b'{"id":"4","subject":"a\\u0000b","status":"pending"}',
             "5": b'{"id":"5","subject":"' + b"x" * (3 << 20) + b'","status":"pending"}', "6": b'{"id":"6","sub', "7": b"[]",
             "10": b'\xef\xbb\xbf{"id":"10","status":"pending"}', "11": b'{"id":"1","id":"11","status":"pending","n":18446744073709551616}',
             "12": b'{"id":"12","status":"pending","m":' + b"[" * 70 + b"]" * 70 + b"}"}
    os.makedirs(f"{CLAUDE}/tasks/s15")
    os.makedirs(f"{CLAUDE}/tasks/s16")
    for name, text in (files | {"\u7814": b'{"subject":"8","status":"pending"}'}).items():
        with open(f"{CLAUDE}/tasks/s15/{name}.json", "wb") as f:
            f.write(text)
    open(f"{CLAUDE}/tasks/s16/.lock", "w").close()
    os.symlink(f"{CLAUDE}/secret.json", f"{CLAUDE}/tasks/s15/9.json")
    tasks = {t["id"]: t for t in get("/api/sessions/s15/tasks")}
    check("each file of tasks is on the board", tasks.keys() == {*files, "\u7814", "9"}, list(tasks))
    check("one that cannot be read by its name, and with the reason", {i: t["subject"] for i, t in tasks.items() if "unreadable" in t} ==
          {"6": "6.json", "7": "7.json", "9": "9.json"} and "no JSON object" in tasks["7"]["unreadable"] and
          tasks["6"]["status"] == "pending" and "line 1" in tasks["6"]["unreadable"], tasks["6"])
    listed = [x["sessionId"] for x in get("/api/v1/claude/sessions")["sessions"]]
    check("a session with tasks and no agents is listed, one with neither is not", "s15" in listed and "s16" not in listed, listed[:5])
    check("and told of", stream.hears("s15"))
    os.environ["CLAUDE_CODE_TASK_LIST_ID"] = "our list"
    hook("SubagentStart", "s17", "a1")
    del os.environ["CLAUDE_CODE_TASK_LIST_ID"]
    os.makedirs(f"{CLAUDE}/tasks/our-list")
    write(f"{CLAUDE}/tasks/our-list/1.json", {"id": "1"} | ok)
    check("a session leads to the list that it shares", [t["id"] for t in get("/api/sessions/s17/tasks")] == ["1"])


def ghosts():
    """What the shutdown of a teammate makes goes before its worker, and is counted by nobody."""
    def iso(off):
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + off))
    write_card("s18", "worker", status="stopped", startedAt=iso(-90), stoppedAt=iso(-80), updatedAt=iso(-80))
    write_card("s18", "recap", status="stopped", startedAt=iso(-70), stoppedAt=iso(-69), updatedAt=iso(-69))
    write_card("s18", "approval", startedAt=iso(-60), updatedAt=iso(-60))
    agents = {a["agentId"]: a.get("ghost") for a in get("/api/sessions/s18/agents")}
    check("ghosts are named", agents == {"worker": None, "recap": True, "approval": True}, agents)
    s18 = [x for x in get("/api/v1/claude/sessions")["sessions"] if x["sessionId"] == "s18"][0]
    check("and not counted", s18["agents"] == {"active": 0, "idle": 0, "stopped": 1}, s18)
    for i in range(19):
        write_card("s18", f"other{i}", type=f"T{i}")
    check("they go first", until(lambda: len(os.listdir(f"{CARDS}/s18")) == 20) and
          {a["agentId"] for a in get("/api/sessions/s18/agents")} == {"worker", *(f"other{i}" for i in range(19))})


def again(stream):
    """After a kill: what changed meanwhile is written, what was written is not written again."""
    hook("SubagentStart", "s9", "z9")
    lines = logged(1, "s9")
    have = until(lambda: len(logged(1100)) >= 1100 and {e["sessionId"] for e in logged(1100)} >= {f"t{i:04}" for i in range(1100)})
    check("of many sessions each one is", have)
    count = {}
    for e in logged(1):
        key = (e["sessionId"], e["content"]["data"]["agentId"], e["content"]["data"]["status"], e["content"]["data"]["updatedAt"])
        count[key] = count.get(key, 0) + 1
    check("nothing is in the log twice after a restart", max(count.values()) == 1, [k for k, n in count.items() if n > 1])
    check("what came while no daemon was there is", ("s8", "y1", "stopped") in {k[:3] for k in count}, sorted(count)[-3:])
    # The folder comes while the daemon looks whether it is there, which that of the tasks makes it do.
    shutil.rmtree(f"{CLAUDE}/tasks")
    for n in range(20):
        shutil.rmtree(CARDS)
        time.sleep(0.06)
        os.makedirs(f"{CLAUDE}/tasks")
        time.sleep(n * 0.00003)
        os.makedirs(CARDS)
        time.sleep(0.06)
        write_card(f"v{n:02}", "h1")
        came = len(logged(1, f"v{n:02}")) == 1
        if not came:
            break
        shutil.rmtree(f"{CLAUDE}/tasks")
    check("a folder that comes at any moment is seen", came, n)
    check("and what comes now", len(lines) == 1 and stream.hears("s9"), lines)


main()
