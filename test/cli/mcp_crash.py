"""kill -9 of the daemon, of `ava mcp` and of the client between every two steps of a proposal: each message
asked, handed on, answered, in both eras; played by test_mcp_crash.sh.

Between the bridge and the daemon stands a wire of ours, a socket in a data root of its own, that knows each
message and kills whom it is told to: before it hands the message on, when it has, or when the answer is there,
which is dropped then. A daemon that was killed is started by the next message. Who is killed on the side of
the client comes again with a new bridge and what it had kept: its call, the state of its form, its ids."""

import json
import os
import socket
import threading
import time

from api import PATIENCE, ROOT, ava, check, kill_daemon, until
from mcp import FORMS, TASKS, Bridge, fill, told

WIRE = os.environ["T"] + "/wire"
HANDS = {"handles": FORMS, "tasks": FORMS | TASKS, "legacy": None}


def events(type, **content):
    found = []
    for name in os.listdir(f"{ROOT}/logs/ava"):
        with open(f"{ROOT}/logs/ava/{name}", encoding="utf-8") as f:
            found += [e for e in map(json.loads, f) if e["eventType"] == type]
    return [e for e in found if all(e["content"].get(k) == v for k, v in content.items())]


def point_of(m):
    if "method" not in m:
        return "answer"
    params = m.get("params", {})
    if m["method"] != "tools/call":
        return m["method"]
    return "yes" if "inputResponses" in params else params["name"]


class Wire:
    def __init__(self):
        os.mkdir(WIRE, 0o700)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(WIRE + "/ava.sock")
        self.listener.listen(64)
        self.armed, self.lock = None, threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            threading.Thread(target=self.serve, args=[self.listener.accept()[0]], daemon=True).start()

    def reached(self, point, when):
        """Kills who is to be killed here, once; whether it was the daemon."""
        with self.lock:
            if not self.armed or self.armed[:2] != (point, when):
                return False
            kill, self.armed = self.armed[2], None
            return kill()

    def daemon(self):
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(f"{ROOT}/ava.sock")
        except OSError:
            s.close()
            ava("ps")
            s = socket.socket(socket.AF_UNIX)
            s.connect(f"{ROOT}/ava.sock")
        return s

    def serve(self, bridge):
        got = b""
        while b"\r\n\r\n" not in got:
            part = bridge.recv(65536)
            if not part:
                return bridge.close()
            got += part
        head, _, body = got.partition(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += bridge.recv(65536)
        point = point_of(json.loads(body))
        try:
            if not self.reached(point, "asked"):
                self.relay(point, bridge, head + b"\r\n\r\n" + body)
        except OSError:
            pass
        bridge.close()

    def relay(self, point, bridge, request):
        daemon = self.daemon()
        daemon.sendall(request)
        self.reached(point, "handed on")
        all, streams, form = b"", False, False
        while part := daemon.recv(65536):
            all += part
            streams = streams or b"text/event-stream" in all.partition(b"\r\n\r\n")[0]
            if not streams:
                continue
            if not form and b"elicitation/create" in all:
                form = True
                if self.reached(point, "form"):
                    return
            if b'"result"' in part and self.reached(point, "answered"):
                return
            bridge.sendall(part)
        if not streams and all and not self.reached(point, "answered"):
            bridge.sendall(all)


class Client:
    """One that comes again when it, or its bridge, was killed."""

    def __init__(self, hands):
        Client.now, self.hands, self.can = self, hands, HANDS[hands]
        self.begin()

    def begin(self):
        self.dead = True
        while self.dead:
            self.bridge, self.dead = Bridge(os.environ["T"] + "/project", os.environ | {"AVA_DATA_ROOT": WIRE}), False
            if self.hands == "legacy":
                self.hear(lambda b: b.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}},
                                          modern=False, wait=False))

    def kill_bridge(self):
        self.bridge.process.kill()
        self.dead = True

    def kill_client(self):
        """Its ends of the pipes are gone; the bridge is to end by itself."""
        nothing = os.open(os.devnull, os.O_RDWR)
        for pipe in (self.bridge.process.stdin, self.bridge.process.stdout):
            os.dup2(nothing, pipe.fileno())
        os.close(nothing)
        self.dead = True

    def hear(self, say):
        """The answer to what is said; a form of before is answered yes each time that it is shown. None: somebody died."""
        bridge, end = self.bridge, time.monotonic() + PATIENCE
        try:
            id = say(bridge)
            while not self.dead and time.monotonic() < end:
                m = bridge.read(lambda m: m.get("id") == id or m.get("method") == "elicitation/create", 0.1)
                if m and "method" not in m:
                    return m
                if m:
                    bridge.write({"jsonrpc": "2.0", "id": m["id"], "result": {"action": "accept", "content": {"start": True}}})
        except OSError:
            pass
        bridge.process.wait(PATIENCE)
        return None

    def ask(self, name, more=None, **arguments):
        """A call, until somebody lives to hear its answer."""
        while True:
            if isinstance(name, str):
                answer = self.hear(lambda b: b.tool(name, self.can, self.can is not None, False, more, **arguments))
            else:
                answer = self.hear(lambda b: b.ask(*name, self.can, wait=False))
            if answer:
                return answer
            self.begin()
            if self.hands == "legacy" and name == "ava_propose":
                return None  # its form went with it: the person confirms elsewhere


def proposal_of(task):
    for e in events("SpawnProposed"):
        if e["content"]["config"]["task"] == task:
            return e["content"]["proposalId"]
    return None


def start(client, given):
    """The run, and the id of its task."""
    a = client.ask("ava_propose", **given)
    if client.hands != "legacy":
        form = fill(a, start=True)
        a = client.ask("ava_propose", form, **given)
    if a and client.hands == "tasks":
        return a["result"]["taskId"].rsplit("-", 1)[0], a["result"]["taskId"]
    if a and "subagent_id" in told(a):
        return told(a)["subagent_id"], None
    p = until(lambda: proposal_of(given["task"])) if client.hands == "legacy" else None
    if not p:
        a = client.ask("ava_propose", **given)
        return told(a)["subagent_id"], None
    ava("confirm", p)
    return told(client.ask("ava_status", run=p))["subagent_id"], None


def result_of(client, run, task):
    if not task:
        return told(client.ask("ava_wait", run=run, seconds=20))
    return until(lambda: (lambda r: r["result"]["structuredContent"] if r["status"] == "completed" else None)(
        client.ask(("tasks/get", {"taskId": task}))["result"]))


def play(wire, n, hands, point, when, whom):
    name = f"{hands}: {whom} killed, {point} {when}"
    given = {"task": f"where is the torn tail decided? ({n})", "role": "code_reviewer"}
    kill = {"daemon": lambda: kill_daemon() or True, "bridge": lambda: Client.now.kill_bridge(),
            "client": lambda: Client.now.kill_client()}[whom]
    wire.armed = (point, when, kill)
    client = Client(hands)
    try:
        run, task = start(client, given)
        result = result_of(client, run, task)
        again = result_of(Client(hands), run, task)  # another program, with the ids of the first
        spawned = events("SubagentSpawn", task=given["task"])
        ended = events("SubagentComplete", subagentId=run)
        check(name, not wire.armed and len(spawned) == 1 and spawned[0]["content"]["subagentId"] == run and len(ended) == 1 and
              result["status"] == "success" and result == again, [wire.armed, spawned, ended, result, again])
    except Exception as e:
        check(name, False, repr(e) + f" line {e.__traceback__.tb_lineno}")
    Client.now.bridge.end()
    client.bridge.end()


def main():
    wire, n = Wire(), 0
    ava("ps")
    asked = ["asked", "handed on", "answered"]
    steps = {"handles": [(p, w) for p in ("ava_propose", "yes", "ava_wait") for w in asked],
             "tasks": [(p, w) for p in ("ava_propose", "yes", "tasks/get") for w in asked],
             "legacy": [("initialize", w) for w in asked] +
                       [(p, w) for p in ("ava_propose", "answer", "ava_wait") for w in asked] + [("ava_propose", "form")]}
    for hands, points in steps.items():
        for point, when in points:
            for whom in ("daemon", "bridge", "client"):
                n += 1
                play(wire, n, hands, point, when, whom)
    check("and the recoveries lost nothing", not os.path.exists(f"{ROOT}/lost"))


main()
