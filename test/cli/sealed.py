"""Sealed records before both who check them: ava, and examples/verify_sealed.py. Each record is changed in one place, and
both must say of the same line the same thing. sealed.py FOLDER; it has one.sealed (of a run, with messages), all.sealed and
other.sealed (of two roots, with several seals)."""
import os
import random
import re
import subprocess
import sys

AVA, PYTHON = os.environ["AVA"], os.environ["SRCDIR"] + "/examples/verify_sealed.py"
T = sys.argv[1]
ONE, ALL, OTHER = (open(f"{T}/{name}.sealed", "rb").read().splitlines(keepends=True) for name in ("one", "all", "other"))
FILE = T + "/changed.sealed"


def check(name, good, *more):
    print("ok" if good else "not ok", name, flush=True)
    for line in more if not good else ():
        print("#", line)


def both(lines, *key):
    """What is said of the record: the line and the reason, "" when all holds; None when they differ."""
    with open(FILE, "wb") as f:
        f.write(b"".join(lines))
    ava = subprocess.run([AVA, "logs", "verify", FILE, *sum((["--key", k] for k in key), [])], capture_output=True, text=True, errors="replace")
    python = subprocess.run([sys.executable, PYTHON, FILE, *key], capture_output=True, text=True, errors="replace")
    if (ava.returncode, python.returncode) == (0, 0):
        return ""
    said = ava.stdout.strip()
    if (ava.returncode, python.returncode) != (1, 1) or said != python.stderr.strip() or not said.startswith(FILE + ":"):
        return f"they differ: {ava.returncode} {said} {ava.stderr} | {python.returncode} {python.stderr[-300:]}"
    return said[len(FILE) + 1:].replace(": ", ":", 1)


def wrong(name, lines, want, *key):
    said = both(lines, *key)
    check(name, re.fullmatch(want, said), f"want: {want}", f"got:  {said}")


def flip(lines, i, at=None):
    """The lines with one byte of line i (from 0) changed, in its middle."""
    at = len(lines[i]) // 2 if at is None else at
    return lines[:i] + [lines[i][:at] + bytes([lines[i][at] ^ 1]) + lines[i][at + 1:]] + lines[i + 1:]


SEALS = [i for i, line in enumerate(ALL) if line.startswith(b'{"seal":')]
LOG, HEAD, MESSAGES, RESULT = (next(i for i, line in enumerate(ONE) if line.startswith(b'{"file":') and name in line)
                               for name in (b"logs/sub", b"heads/", b"messages", b"result"))
KEY = re.search(rb'"keys":\["([0-9a-f]{64})"\]', ONE[0])[1].decode()
OTHER_KEY = re.search(rb'"keys":\["([0-9a-f]{64})"\]', OTHER[0])[1].decode()
N = int(re.match(rb'{"seal":{"n":(\d+)', ALL[SEALS[0]])[1])

for name, lines in ("a run", ONE), ("all since", ALL), ("another root", OTHER):
    check(f"intact: {name}", both(lines) == "", both(lines))
EMPTY = b"heads/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
empty = [ONE[0].replace(b"]}", b',"' + EMPTY + b'"]}')] + ONE[1:-1] + [b'{"file":"%s","size":0}\n' % EMPTY, ONE[-1].replace(b'"files":4', b'"files":5')]
check("a file without a byte", both(empty) == "", both(empty))
check("with its key", both(ONE, KEY) == "", both(ONE, KEY))
wrong("another key is wanted", ONE, r"2:seal \d+ is of another key", OTHER_KEY)
check("several seals", len(SEALS) >= 3, len(SEALS))

# A byte in each kind of part.
wrong("a byte of the version", [ONE[0].replace(b'"record":1', b'"record":2')] + ONE[1:], "1:this is no sealed record of version 1")
wrong("of the key", flip(ONE, 0, ONE[0].index(KEY.encode()) + 9), r"2:seal \d+ is of another key")
wrong("of the list of files", [ONE[0].replace(b"logs/subagents", b"logs/sabagents")] + ONE[1:], rf"{LOG + 1}:here belongs logs/sabagents/.*")
wrong("of a seal", flip(ALL, SEALS[1]), rf"{SEALS[1] + 1}:this is no seal that its key signed")
wrong("of its signature", flip(ALL, SEALS[1], len(ALL[SEALS[1]]) - 20), rf"{SEALS[1] + 1}:this is no seal that its key signed")
wrong("of the signature's case", ALL[:SEALS[0]] + [ALL[SEALS[0]][:-140] + ALL[SEALS[0]][-140:].upper().replace(b'"SIG"', b'"sig"')] + ALL[SEALS[0] + 1:],
      rf"{SEALS[0] + 1}:this is no seal that its key signed")
wrong("of a line of the log", flip(ONE, LOG + 3), rf"{LOG + 4}:line 3 of logs/subagents/S-\w+\.jsonl is not what seal \d+ covers")
wrong("of the result", flip(ONE, RESULT + 1), rf"{RESULT + 1}:runs/S-\w+/result.json is not what the log says")
wrong("of a message", flip(ONE, MESSAGES + 2), rf"{MESSAGES + 3}:line 2 of runs/S-\w+/messages\.jsonl is not what seal \d+ covers")
wrong("of a head", flip(ONE, HEAD + 1), rf"{HEAD + 1}:heads/\w+ is not what its name says")
wrong("of a name", [line.replace(b'{"file":"logs', b'{"file":"lags') for line in ONE], rf"{LOG + 1}:here belongs logs/.*")
wrong("of a size", [re.sub(rb'^({"file":"logs/sub.*"size":\d*)\d}', rb"\1x}", line) for line in ONE], rf"{LOG + 1}:here belongs logs/.*")
wrong("of the end", ONE[:-1] + [re.sub(rb"\d+}$", b"7}", ONE[-1])], rf"{len(ONE)}:the end counts otherwise")

# Lines.
wrong("a line of the log removed", ONE[:LOG + 3] + ONE[LOG + 4:], rf"{LOG + 4}:line 3 of logs/subagents/.*")
wrong("its last line", ONE[:HEAD - 1] + ONE[HEAD:], r"\d+:line \d+ of logs/subagents/.*")
wrong("two swapped", ONE[:LOG + 3] + [ONE[LOG + 4], ONE[LOG + 3]] + ONE[LOG + 5:], rf"{LOG + 4}:line 3 of logs/subagents/.*")
wrong("one put in", ONE[:LOG + 3] + [ONE[LOG + 3]] + ONE[LOG + 3:], rf"{LOG + 5}:line 4 of logs/subagents/.*")
wrong("no seal at all", [ALL[0]] + ALL[SEALS[-1] + 1:], "2:this is no seal that its key signed")
wrong("a seal removed", ALL[:SEALS[1]] + ALL[SEALS[1] + 1:], rf"{SEALS[1] + 1}:seal {N + 2} stands where seal {N + 1} belongs")
wrong("seals swapped", ALL[:SEALS[0]] + [ALL[SEALS[1]], ALL[SEALS[0]]] + ALL[SEALS[2]:], rf"{SEALS[1] + 1}:seal {N} stands where seal {N + 2} belongs")
wrong("the last seal removed", ALL[:SEALS[-1]] + ALL[SEALS[-1] + 1:], r"\d+:(no seal covers all of|line \d+ of) logs/.*")
wrong("a file removed", ONE[:RESULT] + ONE[RESULT + 2:], r"\d+:here belongs runs/S-\w+/result.json")
wrong("cut at a line", ONE[:LOG + 3], rf"{LOG + 4}:line 3 of logs/subagents/.*")
wrong("cut before the end", ONE[:-1], rf"{len(ONE)}:the record was cut here")
wrong("cut within it", ONE[:-1] + [ONE[-1][:-1]], rf"{len(ONE)}:the record was cut here")
wrong("something behind it", ONE + [b"\n"], rf"{len(ONE) + 1}:something follows the end")
wrong("nothing at all", [], "1:the record was cut here")

# Parts of two records.
wrong("the seals of another root", [ALL[0]] + [line for line in OTHER if line.startswith(b'{"seal":')] + ALL[SEALS[-1] + 1:], r"2:seal \d+ is of another key")
mixed = [ALL[0].replace(b'"keys":[', b'"keys":["' + OTHER_KEY.encode() + b'",')] + ALL[1:]
seal = next(line for line in OTHER if line.startswith(b'{"seal":{"n":%d,' % (N + 1)))
wrong("one seal of another root", mixed[:SEALS[1]] + [seal] + mixed[SEALS[1] + 1:], rf"{SEALS[1] + 1}:seal {N + 1} does not follow the one before it")
mine, theirs = (next(i for i, line in enumerate(lines) if line.startswith(b'{"file":"logs/ava')) for lines in (ALL, OTHER))
wrong("a log of another root", ALL[:mine + 1] + OTHER[theirs + 1:theirs + 3] + ALL[mine + 3:], rf"{mine + 2}:line 1 of logs/ava/.*")

random.seed(os.environ.get("SEED", "1"))
odd = []
for _ in range(int(os.environ.get("ROUNDS", "60"))):
    lines, (i, k) = list(ALL), random.choices(range(len(ALL)), k=2)
    how = random.randrange(4)
    if how == 0:
        lines = flip(lines, i, random.randrange(len(lines[i])))
    elif how == 1:
        del lines[i]
    elif how == 2:
        lines[i], lines[k] = lines[k], lines[i]
    else:
        lines[i:] = [lines[i][:random.randrange(len(lines[i]))]]
    said = both(lines) if lines != ALL else "1:"
    if not re.match(r"\d+:", said):
        odd.append((how, i, k, said))
check("any change is found, and both say the same of it", not odd, *odd[:5])
