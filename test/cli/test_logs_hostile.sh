#!/bin/sh
# Every control byte, C1, bidi mark and tag, as JSON escapes and raw, in every
# text of every kind of event: nothing that could steer a terminal comes out of
# any command that shows logs, on a pipe or on a terminal, on either stream.
. "${0%/*}/lib.sh"
command -v python3 >/dev/null || skip 'no python3'

logs=$AVA_DATA_ROOT/logs
mkdir -p "$logs/ava" "$logs/subagents"
chmod 700 "$AVA_DATA_ROOT"
TZ=UTC0
export TZ

cat >"$T/make.py" <<'EOF'
import json, sys
root = sys.argv[1]
points = (list(range(1, 0x20)) + list(range(0x7f, 0xa0)) + [0x200e, 0x200f, 0x061c, 0x2028, 0x2029]
          + list(range(0x202a, 0x202f)) + list(range(0x2066, 0x206a)) + [0xfeff, 0xe0001, 0xe0041, 0xe007f])
def escaped(p):
    return "".join(f"\\u{u:04x}" for u in ([p] if p < 0x10000 else
                   [0xd800 + (p - 0x10000 >> 10), 0xdc00 + (p - 0x10000 & 0x3ff)]))
# As JSON escapes; as characters where JSON allows them; cursor and title sequences.
as_escapes = "".join("x" + escaped(p) for p in points)
as_chars = "".join("y" + chr(p) for p in points if p >= 0x7f)
sequences = "\\u001b[2J\\u001b]0;t\\u0007\\u009b2J\\u001b]52;c;QQ==\\u001b\\\\"
evil = as_escapes + as_chars + sequences
short = "e\\u001b[31m\\u009b\\u202e\\u0007" + chr(0x9b) + chr(0x202e)
lsn = 0
def event(kind, content, agent="S-abcdef", file="subagents/S-abcdef", meta=""):
    global lsn
    lsn += 1
    line = (f'{{"timestamp":"2026-11-20T14:05:{lsn % 60:02}.000Z","lsn":{lsn},"seq":{lsn},"eventType":"{kind}",'
            f'"agentId":"{agent}","sessionId":"{short}","traceId":"{short}","userId":"{short}",'
            f'"content":{{{content}}},"metadata":{{{meta}}}}}\n').encode("utf-8", "surrogatepass")
    open(f"{root}/logs/{file}.jsonl", "ab").write(line)
words = ["text", "task", "role", "model", "subagentId", "status", "stopReason", "summary", "callId", "name",
         "errorClass", "output", "thinking", "resource", "outcome", "class", "message", "key", "client",
         "cwd", "by", "reason", "proposalId", "cause", "customType"]
content = ",".join(f'"{w}":"{evil}"' for w in words)
content += f',"args":{{"{short}":["{evil}"]}},"quote":{{"role":"{evil}","{short}":1}},"config":{{"task":"{evil}"}}'
content += f',"warned":["{evil}"],"data":"{evil}","success":false,"{short}":0'
kinds = [k for k in json.load(open(sys.argv[2]))["properties"]["eventType"]["enum"]]
for kind in kinds:
    event(kind, content, meta=f'"inputTokens":1,"outputTokens":1,"costCents":1.0,"modelId":"{short}"')
event("ToolCall", f'"name":"read_file","args":"{evil}"')
event(short.replace('"', ""), content)
event("Error", content, agent=short)
event("Error", content, agent="ava", file="ava/2026-11-20")
# Broken in every way a byte can break it, raw.
with open(f"{root}/logs/ava/2026-11-20.jsonl", "ab") as f:
    for b in range(256):
        if b != 10:
            f.write(b'{"timestamp":"' + bytes([b]) * 3 + b"\x1b[2J" + b'","lsn":1}\n')
            f.write(b'{"timestamp":"2026-11-20T14:05:00.000Z","lsn":%d,"seq":%d,"eventType":"Error","agentId":"ava",'
                    b'"sessionId":"","traceId":"","userId":"","content":{"class":"a%cb","message":"raw"},'
                    b'"metadata":{}}\n' % (100 + b, 100 + b, b))
for folder in ("ava", "subagents"):
    open(f"{root}/logs/{folder}/S-\x1b[2J\x9b\u202e.jsonl", "w").write("no event\n")
    open(f"{root}/logs/{folder}/2026-11-20.jsonl\x1b[2J\x9b\u202e.broken", "w").write("no event\n")
open(root + "/catalog.jsonl", "w").write(
    f'{{"row":"spawn","lsn":1,"id":"S-abcdef","traceId":"{short}","sessionId":"{short}","userId":"u",'
    f'"role":"{evil}",'
    '"model":"m","status":"starting","requestId":"","origin":"cli","startedAt":"","endedAt":"",'
    '"bytes":0,"types":0,"totals":{"inputTokens":0,"outputTokens":0,"tokens":0,"costCents":0.0,"durationMs":0,"calls":0,"uncostedCalls":0,"failedCalls":0}}\n')
EOF
cat >"$T/check.py" <<'EOF'
import sys, unicodedata
bidi = set(map(chr, [0x200e, 0x200f, 0x61c, *range(0x202a, 0x202f), *range(0x2066, 0x206a)]))
for path in sys.argv[1:]:
    text = open(path, "rb").read().replace(b"\r\n", b"\n").decode()  # what is no UTF-8 must not come out
    bad = {f"U+{ord(c):04X}" for c in text if c not in "\n\t" and
           (unicodedata.category(c) in ("Cc", "Cs") or c in bidi or 0xe0000 <= ord(c) <= 0xe007f)}
    if bad:
        print(path, " ".join(sorted(bad)))
EOF
check 'such logs are made' python3 "$T/make.py" "$AVA_DATA_ROOT" "$SRCDIR/doc/events.json"

# shown NAME SOME COMMAND...: on a pipe, then on a terminal, something is shown;
# what it was is looked at in the end, all at once.
mkdir "$T/all"
shown()
{
	shown_name=$1 some=$2
	shift 2
	run "$@"
	contains "$shown_name: something is shown" "$some" "$OUT"
	cp "$OUT" "$T/all/$shown_name, output"
	cp "$ERR" "$T/all/$shown_name, errors"
	python3 "$LIB/terminal.py" 100 "$T/all/$shown_name, on a terminal" -- "$@"
}
shown 'logs of a run' '\x1b' "$AVA" logs S-abcdef
shown 'her own log' 'Error a' "$AVA" logs -n 10000
shown 'all logs' 'Error' "$AVA" logs --search e -n 10000
shown 'newest first' 'Error' "$AVA" logs --type error -r
shown 'a trace' 'Error' "$AVA" trace S-abcdef
shown 'events' 'Error' "$AVA" events S-abcdef
for by in agent model; do
	shown "counted by $by" 'EVENTS' "$AVA" logs --count --by $by
done
shown 'verify' 'is no event' sh -c '"$AVA" logs verify 2>/dev/null'
python3 "$LIB/terminal.py" 100 "$T/all/verify --json" -- sh -c '"$AVA" logs verify --json 2>/dev/null'
# JSON is for programs, which get it as it is stored; a terminal cannot be
# steered by it.
while read -r words; do
	# shellcheck disable=SC2086 # words
	python3 "$LIB/terminal.py" 100 "$T/all/$words" -- "$AVA" $words
	contains "$words: something is shown" '"' "$T/all/$words"
done <<'EOF'
logs S-abcdef -o json
logs S-abcdef -o json-pretty
logs --count --by agent -o json
trace S-abcdef --json
events S-abcdef --json
export S-abcdef
EOF
equal 'nothing of it steers a terminal' '' "$(python3 "$T/check.py" "$T"/all/* 2>&1)"
finish
