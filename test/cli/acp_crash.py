"""kill -9 of the daemon, or of `ava acp`, between every two messages of a turn: a prompt, a quote, its answer, a spawn, a
result and what is told of it; and of the daemon before and behind every request that `ava acp` makes of it. Each time there is one spawn and one result, and the editor has been shown all of it once:
by the turn that goes on, or by session/load and the next turn. The points are found by a turn in which nothing happens."""

import contextlib
import re
import tempfile

from acp import *
from api import kill_daemon

RESULT = "parse_header is defined at parser.c:1"


class Point(Exception):
    """The program was killed where it was to be."""


class Watched(Editor):
    """Counts the messages of either side from the prompt on; `at` is reached behind that one."""

    def __init__(self, *args, **more):
        self.count, self.at, self.kill, self.names = 0, None, None, []
        super().__init__(*args, **more)

    def step(self, name):
        self.names.append(name)
        self.count += 1
        if self.at == self.count:
            self.kill()

    def take(self, limit=LIMIT):
        # One message at a time, so that none is taken between the point and the kill.
        end = time.monotonic() + limit
        while True:
            m = self.lines.get(timeout=max(end - time.monotonic(), 0.01))
            if m is None:
                raise EOFError("ava acp has ended")
            if "method" not in m:
                self.step("its answer")
                return m
            name = m["params"].get("update", {}).get("sessionUpdate", m["method"])
            if "id" in m:
                self.asked.append(m)
                self.step(name)
                self.reply(m, "yes")
                self.step("the answer to " + name)
            elif m["method"] == "session/update":
                self.updates.append(m["params"])
                self.step(name)

    def turn(self, session, kill=None, at=None):
        self.count, self.kill, self.at, self.names = 0, kill, at, []
        n = self.start_prompt(session, FIND)
        self.step("the prompt")
        return self.until(n)


def events(session, kind):
    return [json.loads(x) for x in ava("logs", "--session", session, "--type", kind, "-o", "json").splitlines()]


def settled(session):
    now = daemon("/sessions/" + session)
    return now.get("status") == "idle" and now["live_runs"] == now["waiting"] == 0


def once(name, session, said):
    """One of everything, on disk and on the screen."""
    check(f"{name}: all is done", until(lambda: ava("ps") is not None and settled(session)), daemon("/sessions/" + session))
    counts = [len(events(session, k)) for k in ("SpawnConfirmed", "SubagentSpawn", "SubagentComplete")]
    check(f"{name}: one yes, one spawn, one result", counts == [1, 1, 1], counts)
    prompts = [x["content"]["text"] for x in events(session, "UserMessage")]
    check(f"{name}: said once", prompts.count(FIND) == 1, prompts)
    told = [x["content"]["text"] for x in events(session, "AssistantMessage")]
    check(f"{name}: told once", sum(RESULT in x for x in told) == 1, told)
    check(f"{name}: and shown", said.count(RESULT) >= 1, said)
    check(f"{name}: nothing is left unseen", until(lambda: daemon(f"/sessions/{session}/unseen")["items"] == []))


def ended(name, e, session, answer):
    check(f"{name}: the turn goes on to its end", answer.get("result") == {"stopReason": "end_turn"}, answer, e.updates)
    once(name, session, e.said())
    check(f"{name}: the spawn and the result are shown once",
          e.said().count("Spawning") == e.said().count("]: Complete (") == e.said().count(RESULT) == 1, e.said())


def play_daemon(name, at):
    e = Watched("--wait")
    s = e.new()
    ended(name, e, s, e.turn(s, kill_daemon, at))


def said(*options, say=None):
    """A conversation that has been begun, and its editor closed."""
    e, s = begin(*options, say=say)
    e.close()
    return s


def message(stream):
    """A request or an answer of HTTP, whole; empty at the end."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline()
        if not line:
            return b""
        head += line
    length = [x.split(b":")[1] for x in head.lower().split(b"\r\n") if x.startswith(b"content-length:")]
    return head + stream.read(int(length[0]) if length else 0)


class Between:
    """Stands between `ava acp` and the daemon, and counts what is asked; at `at` the daemon is killed, before it hears of it
    or (`behind`) before its answer is heard. `root` is the data root for who is to be watched; from the kill on it is
    the daemon's own."""

    def __init__(self, at=None, behind=False, slow=None, lsn=None, refuses=None):
        self.at, self.behind, self.slow, self.names, self.on = at, behind, slow, [], False
        self.lsn = lsn # what it tells as the newest
        self.refuses = refuses # each stream, with this sentence
        self.root, folder = tempfile.mktemp(dir=T), tempfile.mkdtemp(dir=T)
        os.symlink(folder, self.root)
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(folder + "/ava.sock")
        self.server.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=[self.server.accept()[0]], daemon=True).start()

    def _kill(self):
        os.unlink(self.root)
        os.symlink(os.environ["AVA_DATA_ROOT"], self.root)
        self.server.shutdown(socket.SHUT_RDWR) # who waits to be let in hears of it, too
        self.server.close()
        kill_daemon()

    def _serve(self, client):
        with client, socket.socket(socket.AF_UNIX) as real, contextlib.suppress(OSError):
            real.connect(os.environ["AVA_DATA_ROOT"] + "/ava.sock")
            asked, answers = client.makefile("rb"), real.makefile("rb")
            while request := message(asked):
                if self.on:
                    self.names.append(" ".join(request.decode().split(" ")[:2]).replace("/api/v1", ""))
                if self.refuses and b"/events" in request.split(b"\r\n")[0]:
                    body = json.dumps({"error": {"code": "invalid", "message": self.refuses}}).encode()
                    client.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                    continue
                here = self.on and len(self.names) == self.at
                if here and not self.behind:
                    self._kill()
                    return
                real.sendall(request)
                if b"/events" in request.split(b"\r\n")[0]:
                    client.sendall(message(answers)) # its head
                    while data := answers.read1(65536):
                        if here:
                            self._kill()
                            return
                        if self.on and self.slow:
                            until(self.slow)
                        client.sendall(data)
                    return
                answer = message(answers)
                if b"/messages" in request.split(b"\r\n")[0]:
                    self.lsn = None
                if self.lsn and b"/health" in request.split(b"\r\n")[0]:
                    answer = re.sub(rb'("lsn":)(\d+)', lambda m: m[1] + str(self.lsn).encode().rjust(len(m[2])), answer)
                if here:
                    self._kill()
                if here or not answer: # killed by way of another connection
                    return
                client.sendall(answer)


def play_request(name, at, behind):
    s = said()
    between = Between(at, behind)
    e = Watched("--wait", AVA_DATA_ROOT=between.root)
    e.call("session/load", sessionId=s, cwd=CWD, mcpServers=[])
    between.on = True
    answer = e.turn(s)
    e.refused("nobody") # behind what it does when a turn is over
    ended(name, e, s, answer)
    e.close()
    return between.names


def play_slow(name):
    """A feed that is far behind: the daemon says that all is over before anything of it has come."""
    s = said(say="hello")
    ava("ps")
    between = Between(slow=lambda: between.names.count(f"GET /sessions/{s}") > 3)
    e = Editor(AVA_DATA_ROOT=between.root)
    e.call("session/resume", sessionId=s, cwd=CWD)
    between.on = True
    e.prompt(s, "hello again")
    check(f"{name}: the answer comes behind what Ava says", "For conversation" in e.said() and e.lines.empty(), e.updates)
    check(f"{name}: and once", e.said().count("(offline model)") == 1, e.updates)


def play_refused(name):
    """A daemon that lets nobody follow a conversation says why."""
    s = said(say="hello")
    e = Editor(AVA_DATA_ROOT=Between(refuses="no more streams today").root)
    e.call("session/resume", sessionId=s, cwd=CWD)
    error = e.refused("session/prompt", sessionId=s, prompt=[{"type": "text", "text": "and?"}])
    check(f"{name}: the prompt fails with the reason", error["code"] == -32603 and "no more streams today" in error["message"], error)


def play_model(name, behind):
    """Another model is chosen: it counts once, whether the daemon dies before it hears of it or before it is heard."""
    first, other = (script(x, *[{"text": f"Of {x}."}] * 3) for x in ("one", "other"))
    s = said("--model", first, say="hello")
    between = Between(1, behind)
    e = Editor(AVA_DATA_ROOT=between.root)
    e.call("session/load", sessionId=s, cwd=CWD, mcpServers=[])
    between.on = True
    answer = e.call("session/set_config_option", sessionId=s, configId="model", value=other)["configOptions"][0]["currentValue"]
    check(f"{name}: it is chosen", between.names[:1] == [f"POST /sessions/{s}/model"] and answer == other, between.names, answer)
    changes = [x["modelId"] for x in daemon(f"/sessions/{s}/messages")["entries"] if x["type"] == "model_change"]
    check(f"{name}: once", changes == [other], changes)
    e.prompt(s, "and now?")
    check(f"{name}: and asked", "Of other." in e.said(), e.said())


def play_between(name):
    """Events that become known between two requests of session/load, of which one has them already."""
    s = said("--wait", say=FIND)
    for kind in ("start", "complete"):
        entry = next(x["id"] for x in daemon(f"/sessions/{s}/messages")["entries"] if x.get("eventType") == "subagent:" + kind)
        e = Editor(AVA_DATA_ROOT=Between(lsn=int(entry, 16)).root)
        e.call("session/load", sessionId=s, cwd=CWD, mcpServers=[])
        e.prompt(s, "hello")
        check(f"{name}: a subagent's {kind} is shown once", e.said().count("Spawning") == e.said().count("]: Complete (") == 1, e.said())
        e.close()


def play_editor(name, at):
    e = Watched("--wait")
    s = e.new()

    def kill():
        e.program.kill()
        e.program.wait()
        raise Point

    try:
        e.turn(s, kill, at)
    except Point:
        pass
    before = e.said()
    e = Editor("--wait")
    known = "result" in e.until(e.send("session/load", sessionId=s, cwd=CWD, mcpServers=[]))
    s = s if known else e.new()
    e.prompt(s, "hello" if events(s, "UserMessage") else FIND) # what was not taken was not done, and is said again
    once(name, s, e.said())
    check(f"{name}: who loads it is shown the spawn and the result's line once",
          e.said().count("Spawning") == e.said().count("]: Complete (") == 1, e.said())
    check(f"{name}: what was said stands there once", (before + e.said("user_message_chunk")).count(FIND) <= 1, e.updates)


if __name__ == "__main__":
    clean = Watched("--wait")
    session = clean.new()
    check("a turn in which nothing happens ends", clean.turn(session)["result"]["stopReason"] == "end_turn")
    once("nothing", session, clean.said())
    points = list(enumerate(clean.names, 1))
    clean.close()
    check("points are found", len(points) > 12, points)
    plays = [(f"{victim} dies behind {number}, {what}", dies, (number,)) for number, what in points
             for victim, dies in (("the daemon", play_daemon), ("ava acp", play_editor))]
    plays += [(f"the daemon dies {'behind' if behind else 'before'} {number}, {what}", play_request, (number, behind))
              for number, what in enumerate(play_request("nothing, between", None, False), 1) for behind in (False, True)]
    plays += [(f"the daemon dies {'behind' if behind else 'before'} the choice of a model", play_model, (behind,)) for behind in (False, True)]
    plays += [("a slow feed", play_slow, ()), ("a stream that is refused", play_refused, ()), ("between two requests", play_between, ())]
    for name, case, where in plays:
        play(case, name, *where)
