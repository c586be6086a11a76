"""Slow services, and those that are not there: what the person sees meanwhile. The clock goes 16 times as fast."""

import json
import os
import select
import subprocess
import time

import play
from play import Row
from service import call, chunk, submit, text

PATIENCE = 60


def slow(seconds, words="", answer=submit):
    """The head, nothing, words of 6 bytes, nothing, and the rest; each nothing for so many seconds."""
    def script(n, r):
        head, body = answer(n, r).split(b"\r\n\r\n", 1)
        r.conn.sendall(head + b"\r\n\r\n")
        time.sleep(seconds)
        if words:
            r.conn.sendall(chunk({"role": "assistant", "content": words}).encode())
            time.sleep(seconds)
        return body
    return script


def lost(n, r):
    """Two calls that fail, then slowly the result."""
    return call(n, r, "open_file", {"path": "a"}) if n < 3 else slow(3, "hello " * 120)(n, r)


def told(world, row):
    """What `status` says while the model reads, and while it writes."""
    id = world.ava("run", f"Look. [row {row.name}]", "--role", row.role, "--model", row.model(), "--yes", "--background").stdout.split()[0]
    want = [("Waiting for the first word of the model (", "reply 3 of 20, 2 calls failed; the model is reading ("),
            ("Writing (120 words)", "reply 3 of 20, 2 calls failed; the model has written 120 words")]
    seen, end = [], time.monotonic() + PATIENCE
    while want and time.monotonic() < end:
        s = json.loads(world.ava("status", id, "--json").stdout)
        seen.append((s["current_activity"], s.get("progress")))
        if s.get("ended_at"):
            break
        if s["current_activity"].startswith(want[0][0]) and (s.get("progress") or "").startswith(want[0][1]):
            want.pop(0)
        time.sleep(0.05)
    world.ava("cancel", id)
    return [f"never {want[0]}: {seen}"] if want else []


def chat(world, lines, model, limit="600", until=None, last=None):
    """A conversation over a pipe that stays open; what is printed until it has all of `until`, or `last`."""
    env = {**world.env, "AVA_MODEL": model, "AVA_AVA_TIMEOUT": limit}
    p = subprocess.Popen([play.AVA], cwd=world.work, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT)
    out, end = "", time.monotonic() + PATIENCE
    try:
        p.stdin.write(lines.encode())
        p.stdin.flush()
        while not all(w in out for w in until) and not (last and last in out):
            if not select.select([p.stdout], [], [], max(end - time.monotonic(), 0))[0]:
                break
            piece = os.read(p.stdout.fileno(), 65536)
            if not piece:
                break
            out += piece.decode()
    finally:
        p.stdin.close()
        p.terminate()
        p.wait()
        p.stdout.close()
    return [f"never {w!r}: {out}" for w in until if w not in out]


def reads(world, row):
    return chat(world, f"hello [row {row.name}]\n", row.model(),
                until=["Ava is thinking (", "Ava is waiting for the first word of the model (", "All is well."])


def nobody(world, row):
    """The pauses between attempts are random: not every ladder of them has one of the ten seconds
    after which a line tells of silence."""
    said = "for local (network): nothing answers at http://127.0.0.1:9/v1: is your model server running?"
    last = "Ava cannot answer: nothing answers at http://127.0.0.1:9/v1"
    for _ in range(12):
        wrong = chat(world, "hello\n", "local/none", "120", until=["Ava is waiting ", said, last], last=last)
        if not wrong:
            break
    return wrong


def silent(world, row):
    return chat(world, f"hello [row {row.name}]\n", row.model(), "30",
                until=["has reached its limit of 30 s (ava.timeout); say how to go on. Last: Waiting for the first word of the model ("])


ROWS = [
    Row("slow-told", lost, play=told, fast=True),
    Row("slow-chat", slow(3, answer=lambda n, r: text(r, "All is well.")), play=reads, fast=True),
    Row("slow-nobody", submit, play=nobody, fast=True, env={"AVA_LOCAL_BASE_URL": "http://127.0.0.1:9/v1"}),
    Row("slow-silent", slow(20), play=silent, fast=True),
]
