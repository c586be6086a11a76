#!/usr/bin/env python3
"""A person who talks with Ava on a terminal: test_chat.sh starts this in a world of
its own."""

import fcntl
import http.server
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

import api
from api import AVA, PATIENCE, ROOT as DATA, ask, check, daemon_pid, runs, script, until
from screen import Screen

WORK = os.path.join(os.environ["T"], "work")


def ava(*args):
    return api.ava(*args, cwd=WORK).stdout


def logs_of(run):
    return ava("logs", run, "-n", "20").splitlines()


def session_entries():
    """The entries of the newest conversation."""
    newest, lines = "", []
    for folder, _, names in os.walk(os.path.join(DATA, "sessions")):
        for name in names:
            if name.endswith(".jsonl") and ".messages." not in name:
                newest = max(newest, os.path.join(folder, name), key=os.path.basename)
    with open(newest, encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    return lines


def unseen():
    """Notices of the newest conversation that no terminal acknowledged."""
    return ask("GET", f"/sessions/{session_entries()[0]['id']}/unseen")["items"]


def said():
    """What the person said in it."""
    out = []
    for entry in session_entries():
        message = entry.get("message", {})
        if message.get("role") == "user":
            out.append(message["content"][0]["text"])
    return out


class Stopped(Exception):
    pass


class Terminal:
    def __init__(self, *args, columns=80, rows=50, dir=WORK, **env):
        self.screen = Screen(columns, rows)
        self.raw = b""
        self.open = True
        self.mark = 0
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.chdir(dir)
            for key in ("NO_COLOR", "AVA_PLAIN", "AVA_OSC", "TMUX"):
                os.environ.pop(key, None)
            os.environ.update({"TERM": "xterm-256color"}, **env)
            size(0, columns, rows)
            os.execv(AVA, [AVA, *args])
        if not self.prompt():
            self.stop("a prompt comes")

    def read(self, seconds):
        if self.open and select.select([self.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            self.raw += data
            self.screen.feed(data)
            self.open = bool(data)

    def text(self):
        return "\n".join(self.screen.lines())

    def wait(self, test):
        end = time.monotonic() + PATIENCE
        while not test():
            if not self.open or time.monotonic() > end:
                return test()
            self.read(0.1)
        return True

    def see(self, *texts):
        """Until each is on the screen, in the order of the calls."""
        for text in texts:
            if not self.wait(lambda: self.text().find(text, self.mark) >= 0):
                self.stop(f"shows {text!r}")
            self.mark = self.text().find(text, self.mark) + (0 if text.endswith(" ") else len(text))

    def stop(self, name):
        """Without this the rest of the part makes no sense."""
        check(name, False, self.text())
        os.kill(self.pid, signal.SIGKILL)
        raise Stopped

    def prompt(self, line=""):
        """The last row is the prompt with this text."""
        return self.wait(lambda: (self.screen.lines() or [""])[-1] == ("> " + line).rstrip())

    def send(self, data):
        data = data.encode() if isinstance(data, str) else data
        while data:
            readable, writable, _ = select.select([self.fd], [self.fd], [], 1)
            if readable:
                self.read(0)
            if writable:
                data = data[os.write(self.fd, data[:512]):]

    def say(self, text, *seen):
        self.send(text + "\r")
        self.see(*seen)

    def answer(self, text, *seen):
        time.sleep(1.1)  # a person reads it: what came up within a second takes no answer
        self.say(text, *seen)

    def hint(self):
        """Ctrl-C until Ava listens: then it says how to leave."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.read(0.1)
            before = self.text().count("subagents go on.")
            self.send("\x03")
            self.wait(lambda: self.text().count("subagents go on.") > before)
            if "Ctrl-D or /quit leaves" in self.text():
                return
        self.stop("Ctrl-C says how to leave")

    def resize(self, columns):
        self.screen.resize(columns)
        size(self.fd, columns, self.screen.rows)

    def leave(self, key="\x04"):
        """Leave; the exit code, -1 when it did not end."""
        self.send(key)
        self.wait(lambda: not self.open)
        if self.open:
            os.kill(self.pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return -1 if self.open else code


def size(fd, columns, rows):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def state(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


# --- a whole job


def test_job():
    t = Terminal()
    check("greets and says how to leave", "Ctrl-D leaves" in t.text(), t.text())
    t.say("Find where parse_header is decided")
    t.see("I'll spawn a CodeReviewer subagent to find where parse_header is decided.")
    t.see("• Time: ~3-5 minutes", "• Cost: up to $0.00", "• Tools: ", "Proceed? [Yes/No]")
    check("the quote, then the prompt", t.prompt(), t.text())
    check("nothing runs before the yes", runs() == [], runs())
    t.answer("yes", "🚀 Spawning CodeReviewer subagent (S-", "🔍 [CodeReviewer] Searching ")
    t.see("✅ Subagent [CodeReviewer]: Complete (", "$0.00)", "a.c:1")
    check("updates, the end and the result with its citations", True)
    t.say("list", "No subagent is at work")
    check("the prompt comes back", t.prompt(), t.text())
    check("each text is shown once", t.text().count("From S-") == 1, t.text())
    check("one run was started", len(runs()) == 1, runs())
    run = runs()[0]["subagent_id"]
    t.say("/runs", run)
    t.say("/status " + run, "CodeReviewer complete (")
    t.say("/cost", "Subagents (1): $0.00")
    t.send("/logs S-\t")
    t.see("/logs " + run)
    check("Tab completes an id", True)
    t.send("\r")
    t.see("SubagentComplete")
    t.say("/steer " + run + " mind the tests", "nobody is left to read it")
    t.say("/cancel " + run, run + ": complete")
    t.say("/cancel nothing", "Name a run")
    t.say("/nonsense", "There is no command /nonsense")
    t.say("/help", "/quit")
    t.send("/sta\t")
    check("Tab completes a command", t.prompt("/status"), t.text())
    t.send("\r")
    t.see("No subagent is at work in this conversation.")
    check("Ctrl-D leaves", t.leave() == 0)
    check("in colour", b"\x1b[0;1m" in t.raw or b"\x1b[1m" in t.raw)


def test_continue():
    t = Terminal("-c")
    check("-c goes on with the newest of this folder",
          "You: list" in t.text() and "No subagent is at work" in t.text(), t.text())
    t.send("\x1b[A")
    check("the history has lines of earlier times", t.prompt("/status"), t.text())
    t.send("\x15")
    t.say("hello again", "I propose subagents")
    check("/quit leaves", t.leave("/quit\r") == 0)
    header = session_entries()[0]
    check("all in one conversation", said()[0].startswith("Find where") and
          said()[-1] == "hello again", said())
    t = Terminal("-c", header["id"])
    check("-c ID names one", "You: hello again" in t.text(), t.text())
    t.leave()
    path = os.path.join(os.environ["XDG_STATE_HOME"], "ava", "history")
    check("the history is the person's own", os.stat(path).st_mode & 0o777 == 0o600)
    lines = open(path).read().splitlines()
    check("and begins once", lines.count(lines[0]) == 1 and
          any("hello\\040again" in line for line in lines), lines)
    with open(path, "a") as f:
        f.writelines("%d\\040%s\n" % (i, "x" * 600) for i in range(1500))
    t = Terminal("-c", header["id"])
    t.say(" not to be kept")
    t.leave()
    lines = open(path).read().splitlines()
    check("a long one is cut to the newest thousand", 900 < len(lines) <= 1003 and
          lines[1].startswith("50") and os.stat(path).st_mode & 0o777 == 0o600, len(lines))
    check("a line behind a blank is not kept", not any("kept" in line for line in lines))
    done = subprocess.run([AVA, "-c", "00000000-0000-4000-8000-000000000000"], cwd=WORK,
                          input="x\n", capture_output=True, text=True)
    check("a conversation that does not exist", done.returncode == 5, done)


# --- while a line is typed


GATE = {"model": None}


class Service(http.server.BaseHTTPRequestHandler):
    """A model whose words come when the test says so."""
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            reason = "stop"
            for piece in GATE["model"]:
                if isinstance(piece, dict):  # a call
                    reason = "tool_calls"
                    piece = {"index": 0, "id": "call_1", "type": "function",
                             "function": {**piece, "arguments": json.dumps(piece["arguments"])}}
                    self.chunk({"tool_calls": [piece]}, None)
                else:
                    self.chunk({"content": piece}, None)
            self.chunk({}, reason)
            usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
            self.line(json.dumps({"id": "x", "object": "chat.completion.chunk", "model": "m",
                                  "choices": [], "usage": usage}))
            self.line("[DONE]")
        except OSError:
            pass  # the turn was stopped

    def chunk(self, delta, reason):
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        self.line(json.dumps({"id": "x", "object": "chat.completion.chunk", "model": "m",
                              "choices": [choice]}))

    def line(self, text):
        self.wfile.write(f"data: {text}\n\n".encode())
        self.wfile.flush()

    def log_message(self, *args):
        pass


class Words:
    """Pieces of a text, each held back until the test lets it go."""
    def __init__(self, *pieces):
        self.pieces, self.gates, self.asked = pieces, [threading.Event() for _ in pieces], threading.Event()

    def __iter__(self):
        self.asked.set()
        for piece, gate in zip(self.pieces, self.gates):
            if not gate.wait(PATIENCE):
                return
            yield piece

    def go(self, i):
        self.gates[i].set()


def talk(*pieces, say=None, **more):
    """A terminal whose model says these when it is let, the first at once where something is said."""
    GATE["model"] = words = Words(*pieces)
    t = Terminal("--model", "local/m", **more)
    if say:
        t.say(say)
        words.go(0)
    return t, words


class Turns:
    """A reply for each request."""
    def __init__(self, *replies):
        self.replies = iter(replies)

    def __iter__(self):
        return iter(next(self.replies))


def test_stream():
    t, words = talk("# Plan\n\nFirst **bold** words.\n\n- one\n- two or t", "hree\n\nThe ",
                    "end.", say="tell me")
    t.see("Ava: Plan", "First bold words.", "• one")
    check("text is shown as it comes, in whole blocks", "• two" not in t.text(), t.text())
    # A word that is not whole may be the begin of a secret.
    check("the rest of it too, in whole words", t.wait(lambda: "- two or\n>" in t.text()), t.text())
    t.send("half a li")
    check("a line can be typed meanwhile", t.prompt("half a li"), t.text())
    words.go(1)
    t.see("• two or three")
    check("what comes stands above it", t.prompt("half a li"), t.text())
    t.send("\x02\x02")  # two to the left
    words.go(2)
    t.see("The end.")
    check("and the line stays", t.prompt("half a li"), t.text())
    t.send("X")
    check("with the cursor where it was", t.prompt("half a Xli"), t.text())
    for once in ("Plan", "First bold", "• one", "• two", "The end."):
        check(f"once: {once}", t.text().count(once) == 1, t.text())
    check("styles, not marks", "**" not in t.text() and b";1mbold" in t.raw, t.text())

    GATE["model"] = Words("Never comes")
    t.send("\x15")
    t.say("and now?")
    until(lambda: said()[-1] == "and now?")
    t.send("\x03")
    t.see("Ava's answer is stopped; subagents go on.")
    check("Ctrl-C stops Ava's turn", t.prompt(), t.text())
    t.wait(lambda: b"Ava cannot answer" in t.raw or t.prompt())
    t.send("some words\x03")
    check("Ctrl-C drops a line that was begun", t.prompt(), t.text())
    t.hint()
    check("and is answered with a hint when nothing goes on", t.prompt(), t.text())
    code = t.leave()
    check("leaves", code == 0, code)
    GATE["model"].go(0)


def test_tail():
    t, words = talk("Half of a sen", "tence that goes " + "on and " * 60, "on.\n\nMore wo", "rds.",
                    say="go")
    t.see("Half of a")
    check("a block that is not whole is seen as it grows", t.prompt(), t.text())
    t.say("/status")
    t.wait(lambda: re.search("Ava is (thinking|writing)", t.text().replace("\n", "")))
    check("it goes when a line is taken", t.text().count("Half of") == 0, t.text())
    words.go(1)
    t.wait(lambda: "on and on and" in t.text())
    check("a long one in some rows", t.prompt(), t.text())
    t.send("typing")
    t.resize(60)
    words.go(2)
    t.see("Ava: Half of a sentence")
    words.go(3)
    t.see("More words.")
    check("and gives way to the whole, once", t.prompt("typing") and t.text().count("Half of") == 1 and
          t.text().count("More") == 1 and "".join(t.text().split()).count("onand") == 60, t.text())
    check("leaves", t.leave("\x15\x04") == 0)


def skip_time(seconds):
    """For programs with CLOCK before them."""
    path = os.environ["AVA_TEST_CLOCK"]
    ms = int(os.readlink(path).split()[0]) + 1000 * seconds
    os.symlink(f"{ms} {ms}", path + "-next")
    os.rename(path + "-next", path)


def test_silence():
    """Only the terminal's clock goes on: the daemon knows of no time that passed."""
    more = {"LD_PRELOAD": os.environ["CLOCK"]} if os.environ.get("CLOCK") else {}
    t, words = talk("Half of it. ", "And\n\nthe rest.", **more)
    t.say("hello")
    t.wait(words.asked.is_set)
    if more:
        skip_time(4)
    t.see("Ava is thinking")
    check("what she does stands above the prompt", t.prompt(), t.text())
    t.send("half a li")
    words.go(0)
    t.wait(lambda: "Half of it." in t.text())
    check("her words take its place", t.prompt("half a li") and "Ava is" not in t.text(), t.text())
    t.send("\x15")
    t.prompt()
    t.send("\x03")
    t.see("Ava's answer is stopped; subagents go on.")
    check("a stop is told behind her last words, once",
          t.prompt() and t.text().index("Half of it.") < t.text().index("is stopped") and t.text().count("is stopped") == 1, t.text())
    words.go(1)
    check("leaves", t.leave() == 0)


def test_hostile():
    evil = ("safe \x1b]0;owned\x07 \x1b]9;owned\x07 \x1b]8;;http://example.test/\x1b\\owned \x9d9;owned\x9c \x1b[2J\x1b[1;1H \x9b31m \x1bP1$tx\x1b\\ \u202eevil\r gone\b\b\n\n"
            "[text](http://example.test/\x1b[5n) `\x1b[6n`\n\n    \x1b[31mcode\n\nend of it")
    t, _ = talk(evil, say="speak", NO_COLOR="1")
    t.see("end of it")
    for name, bad in (("title", b"\x1b]0"), ("clear", b"\x1b[2J"), ("home", b"\x1b[1;1H"),
                      ("C1", b"\xc2\x9b"), ("DCS", b"\x1bP"), ("bidi", "\u202e".encode()),
                      ("notice", b"\x1b]9"), ("link", b"\x1b]8"), ("report", b"\x1b[6n"), ("status", b"\x1b[5n"), ("colour", b"\x1b[31m")):
        check(f"hostile text: no {name}", bad not in t.raw)
    check("it is made visible", "\\x1b" in t.text(), t.text())
    check("leaves", t.leave() == 0)


def test_secret():
    key = "sk-" + "ant-api03-Qwertz0815Uiopas4711"
    t, words = talk("The key is " + key[:9], key[9:20], key[20:] + " indeed.\n\nSo ", "it is.",
                    say="what is my key? it was " + key)
    for i in range(1, 4):
        words.go(i)
    t.see("So it is.")
    answer = t.raw[t.raw.index(b"Ava: "):]
    check("a secret is not shown as it comes", b"Qwertz" not in answer and b"4711" not in answer and
          b"The key is [redacted] indeed." in answer, t.text())
    check("leaves", t.leave() == 0)
    found = [f for d, _, names in os.walk(DATA) for f in (os.path.join(d, n) for n in names)
             if "/wal/" not in f and os.path.isfile(f) and b"Qwertz" in open(f, "rb").read()]
    # What goes back to the service is as it came from there.
    check("nor kept in a file for people", not [f for f in found if not f.endswith(".messages.jsonl")], found)


def test_paste():
    t, words = talk("Thank you.")
    words.go(0)
    lines = "\r".join(f"line {i} of the paste" for i in range(10000))
    t.send("Look: \x1b[200~" + lines + "\r\x1b[201~")
    check("a paste of 10,000 lines stands in one", t.prompt("Look: [paste 1: 10000 lines]"), t.text())
    t.say(" please", "Thank you.")
    text = said()[-1]
    check("and is one message, whole", len(said()) == 1 and text.startswith("Look: line 0 of the paste\nline 1") and
          text.endswith("line 9999 of the paste please") and text.count("\n") == 9999, text[:200])
    t.send("\x1b[200~one\tline\x1b[201~")
    check("a short one stands in the line", t.wait(lambda: "> one" in t.text()), t.text())
    check("leaves", t.leave("\x15\x04") == 0)


def test_resize():
    t, words = talk("First.\n\nS", "econd.\n\nThe t", "hird.", say="go", columns=80)
    t.send("a line that is long enough to take more than one row of a narrow window")
    check("a long line", t.wait(lambda: "narrow window" in t.text()), t.text())
    t.resize(40)
    check("in a narrower window it is drawn anew",
          t.wait(lambda: t.text().endswith("> a line that is long enough to take mor\ne than one row of a narrow window")), t.text())
    words.go(1)
    t.see("Second.")
    check("what comes stands above both rows",
          t.wait(lambda: t.text().endswith("Second.\n  The\n> a line that is long enough to take mor\n"
                                           "e than one row of a narrow window")), t.text())
    t.resize(100)
    words.go(2)
    t.see("The third.")
    check("and in a wider one",
          t.prompt("a line that is long enough to take more than one row of a narrow window"), t.text())
    check("the line is there once", t.text().count("narrow window") == 1, t.text())
    t.send("\x1a")
    check("Ctrl-Z suspends", until(lambda: state(t.pid) == "T"))
    os.kill(t.pid, signal.SIGCONT)
    t.send("!")
    check("and comes back with the line",
          t.prompt("a line that is long enough to take more than one row of a narrow window!"), t.text())
    check("leaves", t.leave("\x15\x04") == 0)


def test_two():
    one = Terminal()
    one.say("hello from one", "I propose subagents")
    one.prompt()
    check("what was shown is acknowledged", until(lambda: one.read(0.1) or unseen() == []))
    two = Terminal("-c")
    check("a second terminal sees what was said", "You: hello from one" in two.text(), two.text())
    check("and is not told it anew", "while you were away" not in two.text(), two.text())
    two.say("hello from two")
    two.wait(lambda: two.text().count("I propose subagents") == 2)
    one.see("You, elsewhere: hello from two", "I propose subagents")
    check("both have the answer, and what was typed in one stands there once",
          one.prompt() and two.prompt() and two.text().count("hello from two") == 1, two.text())
    check("both leave", one.leave() == 0 and two.leave() == 0)


# --- terminals that can less


def test_typing():
    """What is being typed when a quote comes up is no answer to it."""
    spawn = Words({"name": "spawn_subagent",
                   "arguments": {"role": "code_reviewer", "task": "find parse_header"}})
    GATE["model"] = Turns(spawn, ["Look at the quote."], ["Do you mean it?"], ["It is at work."])
    t = Terminal("--model", "local/m")
    t.say("find it")
    t.send("ye")
    t.prompt("ye")
    spawn.go(0)
    t.see("Proceed? [Yes/No]")
    t.say("s", "Do you mean it?")
    check("nothing runs", runs() == [] or all(r["status"] != "running" for r in runs()), t.text())
    t.answer("yes", "It is at work.")
    check("nor by a yes behind her question", all(r["status"] != "running" for r in runs()), runs())
    check("leaves", t.leave() == 0)


def test_cancel():
    """One cancel is one line, which blames nobody."""
    t = Terminal("--model", script("cancel", {"text": "Hello."}))
    t.say("hello", "Ava: Hello.")
    slow = script("cancel-run", {"text": "late", "delay_ms": 600000})
    run = ask("POST", "/runs", {"task": "find parse_header", "role": "code_reviewer", "model": slow,
                                "session_id": session_entries()[0]["id"], "cwd": WORK, "confirmed": True})["subagent_id"]
    t.see("Spawning CodeReviewer subagent")
    t.say("/cancel " + run, "Subagent [CodeReviewer]: Cancelled (")
    t.say("/status", "No subagent is at work in this conversation.")
    shown = t.text()
    check("one cancel is one line", shown.count("ancelled") == 1 and "❌" not in shown, shown)
    check("leaves", t.leave() == 0)


def test_held():
    """Ava takes long to speak of her quote: only the terminal's clock goes on."""
    if not os.environ.get("CLOCK"):
        return
    spawn = {"name": "spawn_subagent", "arguments": {"role": "code_reviewer", "task": "Look at a.c", "model": "offline"}}
    late = Words("It is to your liking, I hope.")
    GATE["model"] = Turns([spawn], late, ["It is at work."])
    t = Terminal("--model", "local/m", LD_PRELOAD=os.environ["CLOCK"])
    t.say("have it looked at")
    t.wait(late.asked.is_set)
    end = time.monotonic() + PATIENCE
    while "Proceed?" not in t.text() and time.monotonic() < end:
        skip_time(1)
        t.read(0.1)
    t.see("I'll spawn a CodeReviewer subagent", "Proceed? [Yes/No]")
    late.go(0)
    t.see("I hope.", ": Proceed? [Yes/No]")
    check("a quote that did not wait for her words stands behind them", t.prompt(), t.text())
    skip_time(2)
    t.say("yes", "Spawning CodeReviewer")
    check("and a yes is to it", "Which one" not in t.text(), t.text())
    check("leaves", t.leave() == 0)


def test_margin():
    """Nothing that a model says, whole or still coming, stands where lines of ava begin."""
    ours = "Proceed? [Yes / No / Modify]", "✅ Subagent [S-1]: Complete"
    t, words = talk(f"Well.\n\n```\n{76 * ' '}{ours[0]}\n```\n\n{'w' * 75} {ours[1]}\n\nx{79 * chr(0xa0)}{ours[0]}\n\n"
                    f"| a | b |\n|---|---|\n| {'w' * 72} | {ours[1]} |\n\n{'y' * 76} {ours[0]} {ours[0]} comes ", "to its end.", say="go", columns=80)
    t.see("comes")
    coming = t.text()
    words.go(1)
    t.see("to its end.")
    for name, shown in ("comes", coming), ("is whole", t.text()):
        edge = [row for row in shown.split("\n") if row.startswith(("Proceed", "✅", "w", "y", "x"))]
        check(f"80 columns: no row of a text that {name} stands at the left edge", not edge and shown.count("Proceed?") >= 3, shown)
    check("leaves", t.leave() == 0)


def test_narrow():
    t = Terminal(columns=40, rows=100)
    t.say("Find where parse_header is decided", "Proceed? [Yes/No]")
    t.answer("yes", "Complete", "a.c:1")
    t.say("/help", "not the subagents.")
    t.say("/runs", "complete")
    check("40 columns: lines end between two words",
          re.search(r"\(S-[0-9a-f]+\)\.\.\.", t.text()) and
          "(offline model, no\n  key and no network)" in t.text(), t.text())
    t.say("/logs", "SubagentComplete")
    t.prompt()
    shown = " ".join(t.text().split())
    logged = [line.split() for line in logs_of(runs()[0]["subagent_id"])]
    whole = [words for words in logged if max(map(len, words)) < 28]
    check("40 columns: lines of a log, too", len(whole) > 3 and
          all(" ".join(words) in shown for words in whole), (whole, t.text()))
    check("40 columns: updates take one row each",
          all(len(line) <= 40 for line in t.screen.lines()), t.text())
    check("leaves", t.leave() == 0)


def plain_job(name, **env):
    t = Terminal(**env)
    t.say("Find where parse_header is decided", "Proceed? [Yes/No]")
    t.answer("yes", "Complete (", "a.c:1")
    t.hint()
    check(f"{name}: leaves", t.leave() == 0)
    return t


def test_plain():
    t = plain_job("dumb", TERM="dumb")
    check("dumb: no escapes", b"\x1b" not in t.raw)
    check("dumb: ASCII alone", all(b < 128 for b in t.raw))
    check("dumb: the words stay", "Spawning CodeReviewer subagent (S-" in t.text(), t.text())
    t = plain_job("AVA_PLAIN", AVA_PLAIN="1", NO_COLOR="1")
    check("AVA_PLAIN: the cursor is never moved", b"\x1b" not in t.raw and b"\b" not in t.raw)
    check("AVA_PLAIN: marks stay", "✅ Subagent [CodeReviewer]: Complete (" in t.text(), t.text())


# --- a terminal that is not in front


def behind(t, line):
    """It leaves the front, and has taken that in: a paste is no key of whoever sits there."""
    t.send("\x1b[O\x1b[200~" + line + "\x1b[201~")
    check("the line being typed stays", t.prompt(line), t.text())


def begin(t, **more):
    """A run of the newest conversation, or a quote of one."""
    return ask("POST", "/runs", {"task": "find parse_header", "role": "code_reviewer", "model": "offline",
                                 "session_id": session_entries()[0]["id"], "cwd": WORK, **more})


def test_front():
    t = Terminal()
    check("it is asked whether it is in front", t.screen.watched)
    t.say("Find where parse_header is decided", "Proceed? [Yes/No]")
    t.answer("yes", "Subagent [CodeReviewer]: Complete (", "a.c:1")
    check("who typed sees it anyway: no notice", t.screen.notices == [], t.screen.notices)
    behind(t, "half")
    begin(t, confirmed=True)
    t.see("Subagent [CodeReviewer]: Complete (")
    t.prompt("half")
    check("not in front: the end of a run is told", t.screen.notices == ["ava: Subagent [CodeReviewer]: complete"], t.screen.notices)
    quote = begin(t)["proposal_id"]
    t.see("Proceed? [Yes/No]")
    t.prompt("half")
    check("and what waits for an answer", t.screen.notices[1:] == [f"ava: {quote} waits for your answer"], t.screen.notices)
    t.send("\x1b[I a line")
    t.prompt("half a line")
    begin(t, confirmed=True)
    t.see("Subagent [CodeReviewer]: Complete (")
    t.prompt("half a line")
    check("in front again: nothing more", len(t.screen.notices) == 2 and b"\a" not in t.raw, t.screen.notices)
    t.send("\x1a")
    t.wait(lambda: not t.screen.watched and state(t.pid) == "T")
    check("Ctrl-Z: nothing is asked of it for the next program", state(t.pid) == "T" and not t.screen.watched)
    os.kill(t.pid, signal.SIGCONT)
    check("until it goes on", t.wait(lambda: t.screen.watched) and t.prompt("half a line"), t.text())
    os.kill(t.pid, signal.SIGQUIT)
    check("nor where a signal ends it", t.wait(lambda: not t.open) and not t.screen.watched)
    os.waitpid(t.pid, 0)
    os.close(t.fd)
    t = Terminal("-c")
    check("leaves", t.leave() == 0)
    check("and takes back what it asked", not t.screen.watched and b"\x1b[?1004l" in t.raw)
    t = Terminal("-c", TERM="screen", TMUX="/none")
    behind(t, "half")
    begin(t, confirmed=True)
    t.wait(lambda: b"\x1b]9;" in t.raw)
    check("within tmux it is for the terminal around it", b"\x1bPtmux;\x1b\x1b]9;ava: Subagent [CodeReviewer]: complete\x1b\x1b\\\x1b\\" in t.raw, t.raw)
    t.send("\x15")
    check("leaves", t.leave() == 0)
    for env in {"AVA_OSC": "0"}, {"TERM": "linux"}:
        t = Terminal("-c", **env)
        behind(t, "half")
        begin(t, confirmed=True)
        t.see("Subagent [CodeReviewer]: Complete (")
        t.prompt("half")
        t.send("\x15")
        check(f"{env}: leaves", t.leave() == 0)
        check(f"{env}: asks nothing and tells nothing", b"\x1b]" not in t.raw and b"?1004" not in t.raw, t.raw)


def test_links():
    address = f"file://{os.uname().nodename}{WORK}/"
    os.makedirs("a b%", exist_ok=True)
    open("a b%/c.c", "w").close()
    os.symlink("/etc/passwd", "out.c")
    os.symlink("/etc", "etc.d")
    t, _ = talk(f"At a.c:1, `./a.c:2`, **{WORK}/a.c:3**, none.c:4, /etc/passwd:5, ../x/a.c:6, out.c:7, etc.d/passwd:8, a.c and "
                f"http://example.test/a.c:9 in {'w' * 60}/a.c:10.\n\n{'x' * 74}a.c:11\n\nend of it", say="where?", NO_COLOR="1")
    t.see("end of it")
    t.wait(lambda: len(t.screen.links) == 3) # its end was seen as it came
    check("places of files in the folder are links, and nothing else",
          t.screen.links == [[address + "a.c", text] for text in ("a.c:1", "./a.c:2", f"{WORK}/a.c:3")], t.screen.links)
    check("leaves", t.leave() == 0)
    os.chdir("a b%")
    try:
        t, _ = talk("In c.c:1, end of it", say="where?", dir=os.getcwd())
        t.wait(lambda: t.screen.links)
        check("an address has no character of its own", t.screen.links == [[address + "a%20b%25/c.c", "c.c:1"]], t.screen.links)
        check("leaves", t.leave() == 0)
    finally:
        os.chdir(WORK)


# --- a daemon that goes away


def test_restart():
    t, words = talk("Part one.\n\nPart of", " it.", say="slowly")
    t.see("Part one.")
    t.send("typing")
    t.prompt("typing")
    again = Words("Part one.\n\nPart two.")
    GATE["model"] = again
    os.kill(daemon_pid(), signal.SIGKILL)
    words.go(1)
    t.see("The connection to the daemon is lost", "Connected again.")
    again.go(0)
    t.see("Part two.")
    check("a daemon that was killed: the answer goes on", t.prompt("typing"), t.text())
    check("nothing is shown twice", t.text().count("Part one.") == 1 and
          t.text().count("Part two.") == 1, t.text())
    t.send("\x15")
    os.kill(daemon_pid(), signal.SIGKILL)
    more = Words("Still here.")
    more.go(0)
    GATE["model"] = more
    t.say("are you there?", "Still here.")
    check("a message just then arrives once", said().count("are you there?") == 1, said())
    check("leaves", t.leave() == 0)


TESTS = {name[5:]: f for name, f in list(globals().items()) if name.startswith("test_")}


def main(names):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ["AVA_LOCAL_BASE_URL"] = f"http://127.0.0.1:{server.server_port}/v1"
    for name in names:
        try:
            TESTS[name]()
        except Stopped:
            pass


if __name__ == "__main__":
    main(sys.argv[1:] or TESTS)
