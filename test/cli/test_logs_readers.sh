#!/bin/sh
# 64 readers and one writer: `ava logs -f` in all forms, and `ava logs
# --cursor-file` over and over, while runs write. No line is torn, lost or
# given twice, whoever reads.
. "${0%/*}/lib.sh"
command -v python3 >/dev/null || skip 'no python3'

FOLLOWERS=48 CURSORS=16 RUNS=4
[ -z "$AVA_SANITIZER" ] || { FOLLOWERS=12 CURSORS=4; } # each ten times as slow
export AVA_SEALS_EVERY=1
mkdir "$T/src" "$T/read"
cd "$T/src" || exit 99
printf 'int kettle(void)\n{\n\treturn 1;\n}\n' >kettle.c
# A large result, which no single write of a pipe or a page holds.
awk 'BEGIN { for (i = 0; i < 3000; i++) printf "kettle %d of the kitchen, which is \303\274ber all\n", i }' >big.txt
cat >"$T/turns.jsonl" <<'EOF'
{"tool_calls":[{"name":"search_codebase","args":{"pattern":"kettle"}},{"name":"read_file","args":{"path":"big.txt"}}]}
{"tool_calls":[{"name":"read_file","args":{"path":"kettle.c"}}]}
{"tool_calls":[{"name":"submit_result","args":{"summary":"there","confidence":0.5}}]}
EOF
spawn() { "$AVA" run --yes --background --json --model "offline:$T/turns.jsonl" "$1" 2>/dev/null |
	jq -r '.subagent_id // .id'; }
start_daemon --service

readers=
i=0
while [ $i -lt $FOLLOWERS ]; do
	"$AVA" logs -f -n 1000000 -o json >"$T/read/follow$i" 2>"$T/read/follow$i.err" &
	readers="$readers $!"
	keep $!
	i=$((i + 1))
done
# again FILE: what is new, until the writer is done, and once more after it.
again()
{
	while :; do
		over=
		[ -e "$T/over" ] && over=1
		"$AVA" logs --cursor-file "$1.cursor" --since 2000-01-01 -o json >>"$1" 2>>"$1.err"
		[ -z "$over" ] || return 0
		sleep 0.3
	done
}
i=0
while [ $i -lt $CURSORS ]; do
	again "$T/read/cursor$i" &
	cursors="${cursors:-} $!"
	keep $!
	i=$((i + 1))
done

ids=
i=0
while [ $i -lt $RUNS ]; do
	ids="$ids $(spawn "find the kettle $i")"
	i=$((i + 1))
done
# shellcheck disable=SC2086 # words
run "$AVA" wait $ids --timeout 200
exits 'the runs end' 0
stop_daemon
: >"$T/over"

# What stands in the files, by a reader that shares nothing with ava.
cat >"$T/check.py" <<'EOF'
import glob, json, os, sys
root, reads = sys.argv[1:3]
truth = {}
for path in glob.glob(root + "/logs/ava/*.jsonl") + glob.glob(root + "/logs/subagents/*.jsonl"):
    for line in open(path, "rb"):
        truth.setdefault(json.loads(line)["lsn"], set()).add(line)
def wrong(path):
    """What is amiss with the lines of a reader; "" nothing."""
    seen = set()
    for line in open(path, "rb"):
        try:
            lsn = json.loads(line)["lsn"]
        except ValueError:
            return f"torn: {line[:80]!r}"
        if lsn in seen:
            return f"lsn {lsn} twice"
        if line not in truth.get(lsn, ()):
            return f"lsn {lsn} is not what stands in the files"
        seen.add(lsn)
    return "" if seen == set(truth) else f"{len(set(truth) - seen)} of {len(truth)} are missing"
names = sorted(n for n in os.listdir(reads) if n[-1].isdigit())
found = {n: w for n in names if (w := wrong(os.path.join(reads, n)))}
for n, w in found.items():
    print(n, w)
print(len(names), "readers,", len(truth), "events")
sys.exit(1 if found else 0)
EOF
all_read() { python3 "$T/check.py" "$AVA_DATA_ROOT" "$T/read" >"$T/said"; }
gone_all() { for pid in $cursors; do alive "$pid" && return 1; done; return 0; }
check 'those with a cursor come to an end' wait_for 120 gone_all
check 'everybody has each line once, whole' wait_for 120 all_read
[ "$test_failed" -eq 0 ] || note "$(cat "$T/said")"
contains 'all of them' "$((FOLLOWERS + CURSORS)) readers" "$T/said"
for pid in $readers; do kill -TERM "$pid" 2>/dev/null; done
equal 'nobody complained' '' "$(cat "$T"/read/*.err)"
finish
