"""Files, lines and messages of other programs, damaged and odd as those write them; played by
test_others.sh."""

import glob
import json
import os
import subprocess

import api
from api import AVA, ROOT, ava, check, until

T, CLAUDE = os.environ["T"], os.environ["CLAUDE_CONFIG_DIR"]
S = "0b5e11d0-1111-4222-8333-444455556666"
HALF = "\\ud83d"  # of an emoji, as JavaScript writes what it cut


def request(method, path, body=None):
    c = api.Socket("x")
    c.request(method, path, body, {"Content-Type": "application/json"} if body else {})
    answer = c.getresponse()
    data = answer.read()
    c.close()
    return answer.status, data


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    return path


# --- sessions


def talk():
    """A conversation of its own: its file, its id, what stands in it, the id of its last entry."""
    before = set(files())
    ava("chat", input="list\n", cwd=T + "/project")
    path, = set(files()) - before
    with open(path, "rb") as f:
        data = f.read()
    return path, path.rsplit("_", 1)[1][:-6], data, json.loads(data.splitlines()[-1])["id"]


def files():
    return [f for f in glob.glob(ROOT + "/sessions/*/*.jsonl") if not f.endswith(".messages.jsonl")]


def entry(parent, text="after", more="", content=None):
    content = content or '[{"type":"text","text":"%s"}]' % text
    return ('{"type":"message","id":"9f1c2ab4","parentId":"%s","timestamp":"2026-11-28T13:00:00.000Z","message":{"role":"assistant",'
            '"content":%s,"stopReason":"stop","timestamp":1795869600000%s}}\n' % (parent, content, more)).encode()


def torn(data, last):
    lines = data.splitlines(keepends=True)
    return b"".join(lines[:3]) + lines[3][:50] + b"\n" + b"".join(lines[4:])


ODD = {  # what becomes of the file; lines that cannot be read; the parent of what is said next is the last entry of the file
    "a torn line": (torn, 1),
    "a blank line": (lambda d, last: d + b"\n \r\n" + entry(last), 0),
    "half an emoji": (lambda d, last: d + entry(last, "cut " + HALF), 0),
    "a number over 64 bits": (lambda d, last: d + entry(last, more=',"n":18446744073709551616,"r":1e999'), 0),
    "a byte that is none": (lambda d, last: d + entry(last).replace(b"after", b"\xff"), 0),
    "a doubled key": (lambda d, last: d + entry(last, more=',"a":1,"a":2'), 0),
    "a value nested too deep": (lambda d, last: d + entry(last, more=',"deep":' + "[" * 200 + "]" * 200), 0),
    "a header that was cut": (lambda d, last: d[:40] + b"\n" + b"".join(d.splitlines(keepends=True)[1:]), 1),
    "a header of NULs": (lambda d, last: b"\0" * 80 + b"\n" + b"".join(d.splitlines(keepends=True)[1:]), 1),
    "no header": (lambda d, last: b"".join(d.splitlines(keepends=True)[1:]), 0),
    "words, a list, a number": (lambda d, last: d.replace(b"\n", b"\nsome words\n[1]\n7\n", 1), 3),
    "a last line without its end": (lambda d, last: d + entry(last)[:-1], 0),
    "an entry of 20 MB": (lambda d, last: d + entry(last, content="[%s]" % ",".join(
        ['{"type":"image","mimeType":"image/png","data":"%s"}' % ("A" * (5 << 20))] * 4)), 0),
}


def sessions():
    for name, (change, unreadable) in ODD.items():
        path, sid, data, last = talk()
        was = change(data, last)
        write(path, was)
        parent = [o["id"] for o in map(load, was.splitlines()) if isinstance(o, dict) and o.get("type") != "session"][-1]
        status, file = request("GET", f"/api/v1/sessions/{sid}/messages")
        file = json.loads(file)
        lines = [x for x in was.splitlines() if x.strip()]
        check(f"{name}: the entries are JSON, and the rest is counted",
              (status, len(file["entries"]), file.get("unreadable", 0)) == (200, len(lines) - unreadable, unreadable),
              status, file.get("unreadable"), len(file["entries"]))
        p = ava("chat", "-c", sid, input="hello\n", cwd=T + "/project")
        check(f"{name}: the conversation goes on", p.returncode == 0, p.stdout[-600:], p.stderr)
        said = f"{unreadable} line{'s' * (unreadable > 1)} of this conversation's file cannot be read"
        check(f"{name}: chat says what cannot be read, and where",
              (said in p.stdout + p.stderr) == (unreadable > 0) and (not unreadable or os.path.basename(path) + ", line " in p.stdout + p.stderr),
              p.stdout, p.stderr)
        with open(path, "rb") as f:
            now = f.read()
        new = now[len(was):].lstrip(b"\n").splitlines()
        check(f"{name}: nothing of it is written over, and pi finds what comes before",
              now.startswith(was) and json.loads(new[0])["parentId"] == parent, parent, new[0][:200])


    path, sid, data, last = talk()
    write(path, b"")
    p = ava("chat", "-c", sid, input="hello\n", cwd=T + "/project")
    check("nothing is acknowledged that an emptied file would not get", p.returncode != 0 and "was emptied: begin a new" in p.stderr, p.stdout, p.stderr)
    with open(write(path, data), "ab") as f:
        for _ in range(7):
            f.write(entry(last, "x" * (10 << 20)))
    p = ava("chat", "-c", sid, input="hello\n", cwd=T + "/project")
    check("a conversation too long to be shown goes on", p.returncode == 0 and "is not shown: the daemon's answer is over" in p.stdout + p.stderr
          and last_entry(path)["message"]["role"] == "assistant", p.stdout[-600:], p.stderr)


def last_entry(path):
    with open(path, "rb") as f:
        f.seek(-20000, 2)
        return json.loads(f.read().splitlines()[-1])


def load(line):
    """As JavaScript reads a line."""
    try:
        return json.loads(line.decode("utf-8", "replace"))
    except ValueError:
        return None


# --- messages


class Lines:
    """`ava acp` or `ava mcp`, a line a message."""

    def __init__(self, program):
        self.p = subprocess.Popen([AVA, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=T + "/project")

    def ask(self, line, ident):
        self.p.stdin.write(line if isinstance(line, bytes) else line.encode())
        self.p.stdin.flush()
        for got in self.p.stdout:
            m = json.loads(got)
            if "method" not in m:
                return m if m.get("id") == ident else None
        return None

    def end(self):
        self.p.stdin.close()
        self.p.wait()


HELLO = {"mcp": '"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}',
         "acp": '"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}'}
CALL = {"mcp": '"method":"tools/call","params":{"name":"ava_status","arguments":{%s}}',
        "acp": '"method":"session/list","params":{"_meta":{%s}}'}


def messages():
    for program in ("mcp", "acp"):
        b = Lines(program)
        m = b.ask(b"\xef\xbb\xbf" + ('{"jsonrpc":"2.0","id":1,%s}\n' % HELLO[program]).encode(), 1)
        check(f"{program}: a first message with a BOM is answered", m and "result" in m, m)
        for name, members in (("half an emoji", f'"x":"{HALF}"'), ("a number over 64 bits", '"x":18446744073709551616'), ("a NUL", '"x":"\\u0000"'),
                              ("a doubled key", '"x":1,"x":2'), ("a value nested too deep", '"x":' + "[" * 99 + "]" * 99)):
            m = b.ask('{"jsonrpc":"2.0","id":77,%s}\n' % (CALL[program] % members), 77)
            check(f"{program}: {name} is read", m and m.get("error", {}).get("code") != -32700, m)
        for name, line in (("cut off", '{"jsonrpc":"2.0","id":78,%s' % (CALL[program] % '"x":"y"')),
                           ("with its id behind", '{%s,"jsonrpc":"2.0","id":78}' % (CALL[program] % '"x":tru'))):
            m = b.ask(line + "\n", 78)
            check(f"{program}: one that is no JSON, {name}, is refused under its id", m and m["error"]["code"] == -32700, m)
        long = '"x":["' + "y" * 99 + '","' * 2 + "z" * (5 << 20) + '"]'
        for name, line in (("its id before", '{"jsonrpc":"2.0","id":79,%s}' % (CALL[program] % long)),
                           ("its id behind", '{%s,"jsonrpc":"2.0","id":79}' % (CALL[program] % long))):
            m = b.ask(line + "\n", 79)
            check(f"{program}: one that is too long, {name}, is refused under its id", m and m["error"]["code"] == -32600, m)
        m = b.ask('{"jsonrpc":"2.0","id":80,%s}\n' % (CALL[program] % ""), 80)
        check(f"{program}: and the next is answered", m and "result" in m, m)
        m = b.ask(' \t\n{"jsonrpc":"2.0","id":81,"method":5}\n', 81)
        check(f"{program}: one whose method is no text is refused under its id, a blank line is none", m and m["error"]["code"] == -32600, m)
        b.end()


# --- files of Claude Code


def claude():
    odd = {1: '{"id":"1","subject":"s","status":"pending"}', 2: '{"id":"2","subject":"cut %s","status":"pending"}' % HALF,
           3: b'\xef\xbb\xbf{"id":"3","subject":"s","status":"pending"}', 4: b'{"id":"4","subject":"\xff","status":"pending"}',
           5: '{"id":"5","subject":"a\\u0000b","status":"pending"}', 6: '{"id":"6","status":"pending","metadata":{"n":12345678901234567890}}',
           7: '{"id":"7","subject":"old","subject":"new","status":"pending"}',
           8: '{"id":"8","status":"pending","metadata":' + "[" * 90 + "]" * 90 + "}"}
    for n, text in odd.items():
        write(f"{CLAUDE}/tasks/{S}/{n}.json", text)
    got = json.loads(request("GET", f"/api/sessions/{S}/tasks")[1])
    check("tasks are shown as JavaScript reads them", sorted(t["id"] for t in got) == [str(n) for n in odd], got)
    check("of a doubled key the last counts", [t["subject"] for t in got if t["id"] == "7"] == ["new"], got)
    base = f"{CLAUDE}/projects/p/{S}/subagents/agent-a1"
    write(base + ".meta.json", '\ufeff{"agentType":"Explore","description":"Look for the %s","parentAgentId":"c0","spawnDepth":2}' % HALF)
    write(base + ".jsonl", "{}\n")
    event = {"session_id": S, "cwd": "/src", "hook_event_name": "SubagentStart", "agent_id": "a1", "agent_type": "Explore",
             "transcript_path": f"{CLAUDE}/projects/p/{S}.jsonl"}
    subprocess.run([AVA, "hook"], input=b"\xef\xbb\xbf" + json.dumps(event).encode(), check=True)
    write(base + ".meta.json", '{"descr')
    subprocess.run([AVA, "hook"], input=json.dumps(event | {"hook_event_name": "SubagentStop"}).encode(), check=True)
    with open(CLAUDE + "/agent-activity/hook.log") as f:
        check("what is no JSON beside a transcript is told at the stop", "a1: its .meta.json: line 1" in f.read())
    cards = until(lambda: json.loads(request("GET", f"/api/sessions/{S}/agents")[1]))
    check("an event with a BOM makes a card, which has what stands in half an emoji's file",
          cards and (cards[0].get("parentAgentId"), cards[0].get("depth")) == ("c0", 2), cards)


# --- logs, settings, servers


def logs():
    ava("run", "find kettle", "--yes", cwd=T + "/project")
    with open(sorted(glob.glob(ROOT + "/logs/subagents/*.jsonl"))[0], "rb") as f:
        data = f.read()
    events = [json.loads(line) for line in data.splitlines()]

    def shown(path, **more):
        p = ava("logs", "--all", "--file", path, "-o", "json", **more)
        return [json.loads(line) for line in p.stdout.splitlines()], p

    got, p = shown(write(T + "/crlf.jsonl", b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n")))
    check("a log with a BOM and ends of lines of Windows has its events", got == events and p.returncode == 0, len(got), p.stderr)
    anew = []
    for i, e in enumerate(events):
        at = e["timestamp"][:-1]
        at = (at + "+00:00", at.replace("T", " "), at + "000Z", at + "Z", at.replace(",", ".") + "+0000")[i % 5]
        anew.append(json.dumps(e | {"timestamp": at}, sort_keys=True))
    got, p = shown(write(T + "/anew.jsonl", "\n".join(anew)))
    check("so has one that another tool wrote anew, whose last line has no end", got == events and p.returncode == 0, got[:1], events[:1], p.stderr)
    got, p = shown(write(T + "/zone.jsonl", json.dumps(events[0] | {"timestamp": "2026-11-28T13:00:00.5+02:00"})))
    check("a time of a zone is that time", got[0]["timestamp"] == "2026-11-28T11:00:00.500Z", got)
    got, p = shown(write(T + "/mine.jsonl", data.replace(b"\n", b"\noops\n", 1)))
    check("what is no event is told, by the name that was given and its line", got == events and p.returncode == 1
          and T + "/mine.jsonl, line 2: " in p.stderr and "0000" not in p.stderr, p.stderr)
    got, p = shown(write(T + "/many.jsonl", b"oops\n" * 5000 + data))
    check("of many the first are told, and how many more", got == events and p.returncode == 1 and len(p.stderr.splitlines()) == 11
          and "4990 more lines are no events" in p.stderr, p.stderr[:800])
    got, p = shown(os.environ["AVA"])
    check("a file that is no log is told in one sentence", got == [] and p.returncode == 1 and len(p.stderr.splitlines()) == 1
          and "is no log of ava's" in p.stderr, p.stderr[:800])
    os.makedirs(T + "/tmp", exist_ok=True)
    got, p = shown(write(T + "/large.jsonl", data * (1 + (8 << 20) // len(data))), env={**os.environ, "TMPDIR": T + "/tmp"})
    check("nothing of it is left", p.returncode == 0 and os.listdir(T + "/tmp") == [], os.listdir(T + "/tmp"))
    for name in ("-", "/dev/stdin"):
        got, p = shown(name, input=data.decode())
        check(f"{name} is what comes", got == events, p.stderr)
    pipe = subprocess.run(["bash", "-c", '"$0" logs --all -o json --file <(cat)', AVA], input=data, capture_output=True, check=False)
    check("so is a pipe", pipe.stdout == data, pipe.stderr)


def settings():
    os.makedirs(T + "/dot")
    for name, to in (("absolute", T + "/dot/absolute.json"), ("relative", "dot/relative.json"), ("chain", "relative2"), ("relative2", "dot/new/chain.json")):
        os.symlink(to, f"{T}/{name}")
    for name, to in (("absolute", "absolute.json"), ("relative", "relative.json"), ("chain", "new/chain.json")):
        p = ava("hooks", "install", "--settings", f"{T}/{name}")
        check(f"settings that a link leads to which are not there yet are made there: {name}",
              p.returncode == 0 and os.path.islink(f"{T}/{name}") and "hooks" in json.load(open(f"{T}/dot/{to}", encoding="utf-8")), p.stderr)
    path = write(T + "/bom.json", b'\xef\xbb\xbf{\r\n  "model": "x"\r\n}\r\n')
    p = ava("hooks", "install", "--settings", path)
    with open(path, "rb") as f:
        now = f.read()
    check("settings with a BOM keep it, and what stands in them", p.returncode == 0 and now.startswith(b"\xef\xbb\xbf{")
          and json.loads(now[3:])["model"] == "x" and "hooks" in json.loads(now[3:]), p.stderr, now)


    odd = '{"n": 12345678901234567890,\n\t"half": "%s", "r": 1e999, "n": 18446744073709551616%s}\n' % (HALF, "%s")
    for name, text in (("without hooks", odd % ""), ("with others", odd % ', "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}')):
        path = write(f"{T}/odd.json", text)
        p = ava("hooks", "install", "--settings", path)
        with open(path, encoding="utf-8") as f:
            now = f.read()
        head, tail = text.split(', "hooks"')[0].rstrip("}\n"), json.loads(now)["hooks"]
        check(f"settings that only others can write stay byte for byte beside the hooks: {name}",
              p.returncode == 0 and head[1:] in now and "SubagentStop" in tail and ("mine" in json.dumps(tail)) == ("mine" in text), p.stderr, now)
        p = ava("hooks", "uninstall", "--settings", path)
        with open(path, encoding="utf-8") as f:
            now = f.read()
        check(f"also when ours go: {name}", p.returncode == 0 and head[1:] in now and "SubagentStop" not in now
              and ("mine" in now) == ("mine" in text), p.stderr, now)
    text = odd % (', "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "%s"}]}]}' % HALF)
    p = ava("hooks", "install", "--settings", write(f"{T}/odd.json", text))
    with open(path, encoding="utf-8") as f:
        check("where that stands in the hooks themselves they are left as they are", p.returncode != 0 and f.read() == text, p.stderr)


SERVER = r"""
import json, sys
odd = sys.argv[1]
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    r = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}},
         "tools/list": {"nextCursor": "", "tools": [{"name": "echo", "description": "d", "inputSchema": {"type": "object", "properties": {
             "n": {"type": "integer", "minimum": 0, "maximum": 18446744073709551615}}}}]}}.get(m["method"])
    out = {"jsonrpc": "2.0", "id": m["id"], **({"result": r} if r else {"error": {"code": -32601, "message": "no"}})}
    if odd == "real":
        out["id"] = float(m["id"])
    if odd == "text":
        out["id"] = str(m["id"])
    text = json.dumps(out)
    if odd == "torn":
        text = text[:-9]
    if odd == "words":
        text = "Traceback: it is broken"
    print({"bom": "\ufeff", "title": "\x1b]0;a server\x07", "nul": "\0"}.get(odd, "") + text, flush=True)
"""


def servers():
    names = ("plain", "bom", "title", "nul", "real", "text", "torn", "words")
    write(T + "/srv/s.py", SERVER)
    config = os.environ["XDG_CONFIG_HOME"] + "/ava"
    os.makedirs(config, mode=0o700, exist_ok=True)
    write(config + "/mcp.json", "\ufeff" + json.dumps({"mcpServers": {n: {"command": "/usr/bin/python3", "args": [T + "/srv/s.py", n], "ava": {
        "read": [T + "/srv"], "start": 4}} for n in names}}))
    os.chmod(config, 0o700)
    os.chmod(config + "/mcp.json", 0o600)
    told = {line.split()[2]: line for line in ava("doctor").stdout.splitlines() if " mcp " in line and len(line.split()) > 2}
    for name in names[:6]:
        check(f"a server whose schema has 64 bits is there: {name}", told.get(name, "").startswith("ok"), told.get(name), told)
    for name, wrote in (("torn", '"jsonrpc"'), ("words", "Traceback: it is broken")):
        check(f"of a server that wrote what is no JSON that is said: {name}",
              "it wrote what could not be read: " in told.get(name, "") and wrote in told[name], told.get(name))


if __name__ == "__main__":
    sessions()
    messages()
    claude()
    logs()
    settings()
    servers()
