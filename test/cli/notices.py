#!/usr/bin/python3
"""Starts of a daemon over roots with so many open notices, in instructions: they grow as the notices do.
Prints `ok NAME` and `not ok NAME`."""
import datetime
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import uuid

T = os.environ["T"]
IDS = [str(uuid.uuid4()) for _ in range(40)]


def life(root, wrapper=()):
    """Starts the daemon, waits for its first answer, and ends it."""
    env = {**os.environ, "AVA_DATA_ROOT": root}
    with open(f"{T}/avad.out", "wb") as out:
        avad = subprocess.Popen([*wrapper, os.environ["AVAD"]], env=env, stdout=out, stderr=out)
    answer = b""
    while not answer and avad.poll() is None:
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(f"{root}/ava.sock")
                s.sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                answer = s.recv(12)
        except OSError:
            pass
        try:
            avad.wait(0.05)
        except subprocess.TimeoutExpired:
            pass
    avad.send_signal(signal.SIGTERM)
    if avad.wait() != 0 or answer != b"HTTP/1.1 200":
        sys.exit(f"not ok avad starts and ends ({avad.returncode}, {answer}): {open(f'{T}/avad.out').read()}")


def fill(root, n):
    """What Ava said in 40 conversations that take turns, acknowledged by nobody."""
    now = datetime.datetime.now(datetime.timezone.utc)
    for i in IDS:
        os.makedirs(f"{root}/sessions/--work", exist_ok=True)
        with open(f"{root}/sessions/--work/2026-11-21T08-00-00-123Z_{i}.jsonl", "w") as f:
            f.write('{"type":"session"}\n')
    with open(f"{root}/logs/ava/{now - datetime.timedelta(2):%F}.jsonl", "w") as f:
        for k in range(n):
            event = {"timestamp": f"{now:%FT%T}.000Z", "lsn": 1002 + 2 * k, "seq": k + 1, "eventType": "AssistantMessage", "agentId": "ava",
                     "sessionId": IDS[k % 40], "traceId": "", "userId": "", "content": {"text": "old"}, "metadata": {}}
            f.write(json.dumps(event, separators=(",", ":")) + "\n")
    with open(f"{root}/delivery.json", "w") as f:
        f.write('{"version":2,"lsn":1000,"open":{},"late":""}\n')


def instructions(n):
    root = f"{T}/with-{n}"
    os.mkdir(root, 0o700)
    life(root)
    shutil.rmtree(f"{root}/wal")
    fill(root, n)
    life(root)
    state = json.load(open(f"{root}/delivery.json"))
    if state["open"] != {"terminal": f"1002-{1000 + 2 * n}"}:
        print(f"not ok all {n} are open: {state}")
    life(root, ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={T}/calls.%p.{n}"])
    parts = [open(f"{T}/{f}").read() for f in os.listdir(T) if re.fullmatch(rf"calls\.\d+\.{n}", f)]
    return sum(int(re.search(r"^(?:summary|totals): (\d+)", p, re.M).group(1)) for p in parts)


some, more, most = (instructions(n) for n in (100, 1000, 5000))
print(f"# a start with 100, 1,000, 5,000 open notices: {some:,}, {more:,}, {most:,} instructions")
each, late = (more - some) / 900, (most - more) / 4000
print("ok" if late < 1.25 * each else "not ok", "the notice after a thousand others costs a start what the first ones do")
