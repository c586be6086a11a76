"""What others wrote is read as JavaScript and Python read it: 10,000 changed files of this tree, of which each that both take
has to be taken with the same value, but for what ava's reader makes of what is no text or no number of its own (codec/json.h).

    json_peers.py JSON_ECHO [COUNT [SEED]]
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DEPTH = 56
LARGEST = sys.float_info.max
BAD = re.compile("[\ud800-\udfff\0\ufffd]+")
SAMPLES = [
    b'{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":"cut \\ud83d"},"uuid":"a1","n":18446744073709551615}',
    b'{"id":"1","subject":"s","description":"d","activeForm":"\\u0000","status":"pending","blocks":[],"blockedBy":["2"],"metadata":{"cost":1e400,"a":{"b":[0.1,-0,-1.5e-7]}}}',
    b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{"path":"C:\\\\a\\/b","q":"\\u00e9\\ud83d\\ude00"}}}',
    b'{"mcpServers":{"x":{"command":"y","args":["-p","1"],"env":{"A":"1"}}},"numStartups":12345678901234567890}',
]
STRINGS = [b'""', b'"\\ud83d"', b'"\\ude00\\ud83d"', b'"\\ud83d\\ude00"', b'"a\\u0000b"', b'"\xff"', b'"\xe2\x82"', b'"\xed\xa0\xbd"', b'"\\u001b[0m"', b'"\x7f\xc2\x80"',
           b'"\\\\\\"\\/\\b\\f\\n\\r\\t"', b'"__proto__"', b'"\xe2\x80\xa8"', b'"\\x41"', b'"\t"', b"'a'", b'"a']
NUMBERS = [b"0", b"-0", b"-0.0", b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809", b"18446744073709551615", b"1" + b"0" * 400, b"1e308", b"1e309",
           b"-1e999", b"1e-400", b"4.9e-324", b"0.1", b"123456789012345.6", b"1234567890123456.7", b"1E+2", b"2.5e-3", b"01", b"1.", b".5", b"+1", b"0x10", b"NaN",
           b"-Infinity", b"1e", b"--1"]
OTHERS = [b"null", b"true", b"false", b"[]", b"{}", b"[" * 70 + b"1" + b"]" * 70, b'{"a":' * 60 + b"{}" + b"}" * 60, b'{"a":1,"b":2,"a":3}', b"nul", b"True", b"[1,]", b"[,1]",
          b'{"a":1,}', b'{"a" 1}', b"undefined"]
STRING, NUMBER = re.compile(rb'"(?:[^"\\]|\\.)*"'), re.compile(rb"(?<![\w.\"])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w\"])")
BYTES = [b"\xff", b"\0", b"\x01", b"\\", b'"', b",", b":", b"{", b"}", b"[", b"]", b" ", b"\t", b"\r\n", b"\\u", b"\xef\xbb\xbf", b"\x0b", b"\xc2\xa0", b"//"]


def texts():
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "*.json", "*.jsonl"], capture_output=True, check=False).stdout.split(b"\0")
    names = [os.path.join(os.fsencode(ROOT), n) for n in names if n] or [
        os.path.join(folder, f) for folder, _, files in os.walk(os.fsencode(ROOT) + b"/test/golden") for f in files if f.endswith((b".json", b".jsonl"))]
    out = list(SAMPLES)
    for name in sorted(names):
        if os.path.isfile(name) and os.path.getsize(name) < 1 << 20:
            with open(name, "rb") as f:
                data = f.read()
            out += [t for t in (data.splitlines() if name.endswith(b"l") else [data]) if 1 < len(t) < 16384]
    return out


def change(r, text, all_of_them):
    for _ in range(r.choice((1, 1, 1, 2, 3))):
        how = r.random()
        found = list((NUMBER if how < 0.35 else STRING).finditer(text)) if how < 0.75 else []
        if found:
            m = r.choice(found)
            with_ = r.choice(NUMBERS if how < 0.3 else OTHERS if how < 0.35 else STRINGS if how < 0.65 else NUMBERS + OTHERS)
            text = text[:m.start()] + with_ + text[m.end():]
        elif how < 0.9:
            at = r.randrange(len(text) + 1)
            text = text[:at] + r.choice(BYTES) + text[at + r.choice((0, 0, 1)):]
        elif how < 0.95:
            at = r.randrange(len(text) + 1)
            text = text[:at] + text[at + r.randrange(20):]
        else:
            other = r.choice(all_of_them)
            text = text[:r.randrange(len(text) + 1)] + other[r.randrange(len(other)):]
    return text


def plain(v, depth=DEPTH):
    """As ava may have it: all numbers as doubles, what is no text as one U+FFFD, nothing too deep."""
    if isinstance(v, str):
        return BAD.sub("\ufffd", v)
    if isinstance(v, bool) or v is None:
        return v
    if isinstance(v, (int, float)):
        try:
            return max(-LARGEST, min(LARGEST, float(v)))
        except OverflowError:
            return LARGEST if v > 0 else -LARGEST
    if depth == 0:
        return None
    if isinstance(v, list):
        return [plain(x, depth - 1) for x in v]
    return {plain(k): plain(x, depth - 1) for k, x in v.items()}


def no_number(name):
    raise ValueError(name)


def of_python(text):
    try:
        return [plain(json.loads(text.decode("utf-8", "replace"), parse_constant=no_number))]
    except (ValueError, RecursionError):
        return None


def of_lines(words, given, count):
    lines = subprocess.run(words, input=given, capture_output=True, check=True).stdout.split(b"\n")[:-1]
    if len(lines) != count:
        raise SystemExit(f"{words[0]} gave {len(lines)} of {count} answers")
    return [None if line == b"!" else [plain(json.loads(line))] for line in lines]


def main():
    echo, count, seed = sys.argv[1], *map(int, (sys.argv[2:] + ["10000", "29"][len(sys.argv) - 2:])[:2])
    sys.set_int_max_str_digits(0)
    r, all_of_them = random.Random(seed), texts()
    given = [change(r, r.choice(all_of_them), all_of_them) for _ in range(count)]
    stream = b"".join(b"%d\n%s" % (len(t), t) for t in given)
    ours, python = of_lines([echo], stream, count), [of_python(t) for t in given]
    node = shutil.which("node")
    theirs = of_lines([node, os.path.join(HERE, "json_peers.mjs")], stream, count) if node else python
    both = wrong = 0
    for text, own, a, b in zip(given, ours, python, theirs):
        if a is None or b is None:
            continue
        both += 1
        if own is None or own != a or own != b:
            wrong += 1
            print("#", text[:300], "\n# ava", str(own)[:200], "\n# python", str(a)[:200], "\n# node", str(b)[:200])
    taken = sum(own is not None for own in ours)
    print(f"# {count} of {len(all_of_them)} texts changed (seed {seed}): {both} are taken by {'both' if node else 'Python (there is no node here)'}, {taken} by ava")
    print("1..1\nok 1 - what others take is taken, with their value" if not wrong and both > count / 4 else f"1..1\nnot ok 1 - {wrong} of {both} differ")
    sys.exit(bool(wrong or both <= count / 4))


if __name__ == "__main__":
    main()
