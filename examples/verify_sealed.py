#!/usr/bin/env python3
"""verify_sealed.py FILE [KEY]: checks a sealed record of ava as doc/SEALS.md says, with nothing but Python."""
import functools, hashlib, json, sys
try: file = open(sys.argv[1], "rb")
except (IndexError, OSError) as why: print(f"verify_sealed.py: {why}" if sys.argv[1:] else __doc__, file=sys.stderr); sys.exit(2)
P, ORDER, ZERO, at, KEYS = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493, (0, 1, 1, 0), 0, [key.lower() for key in sys.argv[2:]]
D, ROOT, sha = -121665 * pow(121666, -1, P) % P, pow(2, (P - 1) // 4, P), lambda data: hashlib.sha256(data).hexdigest()
def stop(why, line=0): sys.exit(f"{sys.argv[1]}:{line or at}: {why}")
sys.excepthook = lambda kind, why, trace: print(f"{sys.argv[1]}:{at}: this is no record ({kind.__name__}: {why})", file=sys.stderr)  # exit 1
def add(a, b):  # points of Ed25519 as X, Y, Z, XY/Z
    m, n, o, p = (a[1] - a[0]) * (b[1] - b[0]), (a[1] + a[0]) * (b[1] + b[0]), 2 * D * a[3] * b[3], 2 * a[2] * b[2]
    return (n - m) * (p - o) % P, (p + o) * (n + m) % P, (p - o) * (p + o) % P, (n - m) * (n + m) % P
def times(n, a): return ZERO if n == 0 else add(times(n >> 1, add(a, a)), a if n & 1 else ZERO)
def point(raw):
    y, odd = int.from_bytes(raw, "little") % 2**255, raw[31] >> 7
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = next(r for k in (1, ROOT, P - 1, P - ROOT) for r in [pow(square, (P + 3) // 8, P) * k % P] if (r * r - square) % P == 0 and r % 2 == odd)
    return x, y, 1, x * y % P
def signed(key, sig, text):
    s, h = int.from_bytes(sig[32:], "little"), int.from_bytes(hashlib.sha512(sig[:32] + key + text).digest(), "little")
    a, b = times(s, point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))), add(point(sig[:32]), times(h % ORDER, point(key)))
    return s < ORDER and (a[0] * b[2] - b[0] * a[2]) % P == 0 and (a[1] * b[2] - b[1] * a[2]) % P == 0
def crc8(crc, byte): return functools.reduce(lambda c, _: c >> 1 ^ (0x82f63b78 if c & 1 else 0), range(8), crc ^ byte)
def crc32c(text): return (functools.reduce(crc8, text, 0xffffffff) ^ 0xffffffff).to_bytes(4, "little")
def read():
    global at; at, raw = at + 1, file.readline()
    if not raw.endswith(b"\n"): stop("the record was cut here")
    try: return raw, dict(json.loads(raw))
    except (ValueError, TypeError): return raw, {}
def check_lines(path, data):  # by the Seals that name the file; the first line that differs by its mark
    for n, item in covers.get(path, []):
        if len(data) >= item["size"] and sha(data[:item["size"]]) == item["head"]: continue
        part, marks, each = data[item["from"]:item["size"]].splitlines(True), item["lines"], item.get("each", 1)
        have = [crc32c(b"".join(map(crc32c, part[i:i + each])))[2::-1].hex() for i in range(0, len(part), each)]
        k = next((i for i in range(len(marks) // 6) if have[i:i + 1] != [marks[6 * i:6 * i + 6]]), 0) * each + data[:item["from"]].count(b"\n") + 1
        stop(f"line {k} of {path} is not what seal {n} covers", at + k)
    if path not in covers or covers[path][-1][1]["size"] != len(data): stop(f"no seal covers all of {path}")
covers, results, seals, head = {}, {}, [], read()[1]
if head.get("record") != 1 or not {"keys", "files"} <= head.keys() or not head["files"]: stop("this is no sealed record of version 1")
while (line := read())[0].startswith(b'{"seal":') or not seals:
    text, seal, sig = line[0][8:-2], line[1].get("seal"), line[0][8:-2][-130:-2].decode("latin-1")
    try: good = signed(bytes.fromhex(seal["key"]), bytes.fromhex(sig), text[:-138]) and text == text[:-138] + f',"sig":"{sig.lower()}"}}'.encode()
    except (ValueError, TypeError, KeyError, StopIteration): good = False
    good or stop("this is no seal that its key signed"); {seal["key"]} <= set(head["keys"]) & set(KEYS or head["keys"]) or stop(f"seal {seal['n']} is of another key")
    if seals and seal["n"] != seals[-1][0] + 1: stop(f"seal {seal['n']} stands where seal {seals[-1][0] + 1} belongs")
    not seals or seal["prev"] == seals[-1][1] or stop(f"seal {seal['n']} does not follow the one before it"); seals.append((seal["n"], sha(text), seal["at"]))
    for item in seal["files"] + seal.get("pruned", {}).get("files", []):
        covers.setdefault(item["path"], []).append((seal["n"], item)) if "from" in item else covers.pop(item["path"], 0)  # it goes
for path in head["files"]:
    if not line[0].startswith(b'{"file":') or line[1].get("file") != path or type(line[1].get("size")) is not int: stop(f"here belongs {path}")
    data, name = file.read(line[1]["size"]), path.split("/")
    if name[0] == "logs" or name[2:] and name[2].startswith("messages."): check_lines(path, data)
    elif name[2:] == ["result.json"]: results.get(name[1]) == sha(data) or stop(f"{path} is not what the log says")
    elif name[0] == "heads": name[1] == sha(data) or stop(f"{path} is not what its name says")
    else: stop(f"nothing here proves {path}")
    if name[1] == "subagents": results[name[2].split(".")[0]] = json.loads(data.splitlines()[-1])["content"].get("resultHash")
    at += data.count(b"\n") + (data[-1:] not in (b"", b"\n") and len(file.read(1))); line = read()
line[0].startswith(b'{"end":') or stop("here belongs the end")
(line[1].get("seals"), line[1].get("files")) == (len(seals), len(head["files"])) or stop("the end counts otherwise"); file.read(1) and stop("something follows the end", at + 1)
print(f"all holds: {len(head['files'])} files, {len(seals)} seals, the newest {seals[-1][0]} of {seals[-1][2]}, of key {', '.join(head['keys'])}")
