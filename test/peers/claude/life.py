"""Claude Code at a terminal, with ava as its MCP server: the form, a task in the background, a daemon that is
killed in between, /exit and --continue; played by test_claude_mcp.sh, which says what its model says.

    life.py CLAUDE FOLDER"""

import json
import os
import sys
import time

sys.path[:0] = [os.path.join(os.environ["SRCDIR"], folder) for folder in ("test/peers", "test/cli")]
from api import ava, check, kill_daemon, runs
from terminal import NotShown, Terminal

CLAUDE, FOLDER = sys.argv[1:]
KEYS = {k: os.environ.pop(k) for k in list(os.environ) if k.startswith("ANTHROPIC_")}  # of Claude Code, not of ava


def asked():
    doors = json.loads(ava("status", "--json").stdout)["health"]["doors"]
    return sum(d["asked"] for d in doors if d["door"] == "mcp")


def ready(t):
    """It has our tools: one that comes later is another conversation to its model's service."""
    t.want("? for shortcuts")
    n, since = asked(), time.monotonic()
    while n < 2 or time.monotonic() - since < 2:
        time.sleep(0.2)
        n, since = (n, since) if asked() == n else (asked(), time.monotonic())


def begin(t, before):
    ready(t)
    t.type("Have ava look")
    t.press("Enter", "Do you want to proceed?")
    t.press("Enter", "requests your input", "Accept")
    check("at a terminal the quote is a form that starts nothing yet", t.see("Start it", "On other terms", "Time:") and len(runs()) == before, t.text())
    t.press("Space", "Start it: ☒")
    t.press("Down", "❯   On other terms")
    t.type("max 20 cents")
    t.press("Down", "❯ Accept")
    t.press("Enter", "It works in the background.", "1 MCP task")
    started = [r for r in runs() if r["limits"]["max_cost_cents"] == 20]
    check("its yes starts one run, on the person's terms", len(runs()) == before + 1 and len(started) == 1 and started[0]["status"] == "running", runs())
    return started[0]["subagent_id"]


def let_go():
    """What its model thinks about is there: the next daemon asks it again."""
    path = os.path.join(os.environ["T"], "run.jsonl")
    with open(path, encoding="utf-8") as f:
        turns = [json.loads(line) for line in f]
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.writelines(json.dumps({k: v for k, v in turn.items() if k != "delay_ms"}) + "\n" for turn in turns)
    os.rename(path + ".new", path)
    kill_daemon()
    ava("ps")


def leave(t):
    t.type("/exit")
    t.want("/exit")
    t.press("Enter", "[exited]")


def at_work(run):
    return [r["status"] for r in runs() if r["subagent_id"] == run] == ["running"]


def main():
    env, before = os.environ | KEYS, len(runs())
    t = Terminal(["sh", "-c", '"$0" --permission-mode default; echo "[exited]"; read wait', CLAUDE], FOLDER, env, 112, 50)
    try:
        run = begin(t, before)
        kill_daemon()
        ava("ps")
        check("the daemon is killed: the task goes on", t.see("1 MCP task") and at_work(run), t.text())
        leave(t)
        t.close()
        check("so it does when Claude Code ends", at_work(run), runs())
        t = Terminal([CLAUDE, "--permission-mode", "default", "--continue"], FOLDER, env, 112, 50)
        t.want("1 MCP task")
        let_go()
        check("continued, it has the result when that is there", t.see("completed.", "The subagent has found it."), t.text())
    except NotShown as e:
        check("Claude Code shows what it should", False, e)
    finally:
        t.close()
    check("and there was one run", len(runs()) == before + 1, runs())


main()
