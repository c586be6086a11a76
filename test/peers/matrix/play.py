#!/usr/bin/env python3
"""A conversation with Ava over the genuine Synapse: play.py PYTHON, that of the environment which has it. AVA, T and
XDG_CONFIG_HOME as test_matrix_peer.sh has them. Prints `ok N - NAME` lines."""

import json
import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from person import Person, Synapse  # noqa: E402

AVA, T, CONFIG = (os.environ[name] for name in ("AVA", "T", "XDG_CONFIG_HOME"))
US = "@ava:local.test"
count = failed = 0


def ok(good, name, more=""):
    global count, failed
    count += 1
    failed += not good
    print(("ok" if good else "not ok"), count, "-", name)
    if not good:
        print("".join(f"# {line}\n" for line in str(more)[:2000].split("\n")), end="")


def ava(*words):
    return subprocess.run([AVA, *words], cwd=os.path.join(T, "src"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          check=False).stdout


def wait(what, found, seconds=90):
    """What `found` returns, once that is something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        it = found()
        if it:
            return it
        time.sleep(0.3)
    raise RuntimeError(f"{what} did not come")


def newest(person, room, text, but=()):
    """(event, words) of our newest message with that text."""
    fits = [(e, w) for e, w in person.messages(room, US).items() if text in w and e not in but]
    return fits[-1] if fits else None


def kill():
    with open(os.path.join(os.environ["AVA_DATA_ROOT"], "ava.lock"), encoding="ascii") as f:
        os.kill(int(f.read().split()[0]), signal.SIGKILL)


def pair(person):
    code = json.loads(ava("matrix", "pair", "--json"))["code"]
    room = person.room(US)
    wait("Ava in the room", lambda: any(e["type"] == "m.room.member" and e["state_key"] == US and e["content"]["membership"] == "join"
                                        for e in person.events(room)))
    person.say(room, code)
    return room, wait("a greeting", lambda: newest(person, room, "Paired."))


def converse(ben, eve):
    room, (_, words) = pair(ben)
    ok(True, "a code pairs: " + words.split("\n")[0])
    # --- a quote, yes by a reaction, its run and its result
    ben.say(room, "Review kettle.c: where does the kettle boil?")
    quote, words = wait("a quote", lambda: newest(ben, room, "I'll spawn"))
    ok("1\ufe0f\u20e3 Yes" in words, "a task is a quote that lists its buttons", words)
    keys = wait("keys", lambda: len(ben.keys(room, quote)) == 3 and ben.keys(room, quote))
    ok(all(who == US for who, _ in keys), "which are below it", keys)
    ben.react(room, quote, "1\ufe0f\u20e3")
    _, words = wait("a result", lambda: newest(ben, room, "From S-"))
    ok("kettle.c:1" in words, "pressed yes starts it, and its result comes", words)
    runs = json.loads(ava("ps", "-a", "--json"))
    ok(len(runs) == 1 and runs[0]["status"] == "success", "once", runs)
    ok(wait("the quote's end", lambda: "Confirmed: S-" in ben.messages(room, US)[quote]), "the quote says what became of it")
    line = wait("the line's end", lambda: newest(ben, room, "Complete ("))
    ok("Spawning" in line[1], "and the line of the run how it ended", line)
    # --- a bare yes to what stands above it, and a kill amid it
    ben.say(room, "Find where kettle_boils is defined")
    other, _ = wait("another quote", lambda: newest(ben, room, "I'll spawn", (quote,)))
    wait("its keys", lambda: len(ben.keys(room, other)) == 3)
    ben.say(room, "yes")
    kill()
    ava("ps")
    wait("another result", lambda: [w for w in ben.messages(room, US).values() if "From S-" in w][1:])
    runs = json.loads(ava("ps", "-a", "--json"))
    ok(len(runs) == 2, "a bare yes below a quote starts it, over a kill -9", runs)
    ben.say(room, "/runs")
    wait("the list", lambda: newest(ben, room, "The newest runs:"))
    seen = [(w.split("\n")[0] if "From S-" not in w else w) for w in ben.messages(room, US).values()]
    results = [w for w in seen if "From S-" in w]
    ok(len(results) == len(set(results)) == 2, "and nothing comes twice", seen)
    # --- who is not heard
    theirs = eve.room(US)
    secret = ben.room(US, [{"type": "m.room.encryption", "state_key": "", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}])
    wait("a word about it", lambda: newest(ben, secret, "is encrypted"))
    ok(wait("Ava away", lambda: any(e["type"] == "m.room.member" and e["state_key"] == US and e["content"]["membership"] == "leave"
                                    for e in ben.events(secret))), "an encrypted room is refused with a sentence")
    ok(not any(e["type"] == "m.room.member" and e["state_key"] == US and e["content"]["membership"] != "invite" for e in eve.events(theirs)),
       "an invite of a stranger is not taken")


def main():
    folder = os.path.join(T, "synapse")
    os.mkdir(folder)
    server = Synapse(sys.argv[1], folder)
    try:
        tokens = {name: server.register(name) for name in ("ava", "ben", "eve")}
        with open(os.path.join(CONFIG, "ava/config.yaml"), "w", encoding="utf-8") as f:
            f.write(f"matrix:\n  homeserver: {server.url}\n  pace_ms: 0\n  edit_ms: 1000\n")
        with open(os.open(os.path.join(CONFIG, "ava/env"), os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
            f.write(f"MATRIX_ACCESS_TOKEN={tokens['ava']}\n")
        converse(*(Person(server.url, tokens[name]) for name in ("ben", "eve")))
    except Exception as problem:  # whatever broke it is what is told
        ok(False, "the conversation", repr(problem))
    print(f"1..{count}")
    server.stop()
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
