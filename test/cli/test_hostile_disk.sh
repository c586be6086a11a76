#!/bin/sh
# A full disk, with the real daemon on a small file system of its own: new work
# is refused with one sentence, runs at work wait, kill -9 loses nothing that
# was acknowledged, and everything goes on when there is room again.
if [ -z "${HOSTILE_NS:-}" ] && unshare -m sh -c 'mount -t tmpfs none /mnt' 2>/dev/null; then
	HOSTILE_NS=1 exec unshare -m sh "$0" "$@"
fi
. "${0%/*}/lib.sh"
[ -n "${HOSTILE_NS:-}" ] || skip 'mounting a file system is not permitted here'
command -v curl >/dev/null || skip 'no curl'

mkdir -m 700 "$AVA_DATA_ROOT"
mount -t tmpfs -o size=96m,mode=700 none "$AVA_DATA_ROOT" ||
	skip 'mounting a file system is not permitted here'
trap 'disk_code=$?; umount -l "$AVA_DATA_ROOT"; (exit "$disk_code"); clean_up' EXIT

mkdir "$T/src"
cd "$T/src" || exit 99
echo 'int helper(void);' >a.c
# script NAME DELAY: a run of three turns.
script()
{
	cat >"$T/$1.jsonl" <<-X
	{"tool_calls":[{"name":"search_codebase","args":{"pattern":"helper"}}],"delay_ms":$2}
	{"tool_calls":[{"name":"read_file","args":{"path":"a.c"}}],"delay_ms":$2}
	{"tool_calls":[{"name":"submit_result","args":{"summary":"done","confidence":0.5}}],"delay_ms":$2}
	X
}

fill() { dd if=/dev/zero of="$AVA_DATA_ROOT/fill.$1" bs=4k 2>/dev/null; }
make_room() { rm -f "$AVA_DATA_ROOT"/fill.*; }
spawn() { "$AVA" run --yes --background --json "$@" 2>/dev/null | jq -r '.subagent_id // .id'; }
refused() { ! "$AVA" run --yes --background 'find helper' >"$OUT" 2>"$ERR"; }
takes_work() { "$AVA" run --yes --background 'find helper' >/dev/null 2>&1; }
ended() { "$AVA" ps -a --json | jq -e --arg id "$1" \
	'[.[] | select((.subagent_id // .id) == $id and .status == "'"$2"'")] | length > 0'; }

over() { ended "$1" error || ended "$1" success; }
quiet() { [ "$("$AVA" ps --json | jq length)" = 0 ]; }
unwell() { "$AVA" ps 2>&1 >/dev/null | grep -q 'cannot be written'; }
unwell_or_over() { unwell || quiet; }

# caught DELAY...: the disk fills up while $first and $second are at work, who
# must not have ended by then: on a slow machine each turn has to take longer.
caught()
{
	for delay; do
		script "work$delay" "$delay"
		first=$(spawn --model "offline:$T/work$delay.jsonl" 'find helper one')
		second=$(spawn --model "offline:$T/work$delay.jsonl" 'find helper two')
		fill work
		wait_for 20 unwell_or_over
		! unwell || return 0
		make_room
		wait_for 20 takes_work
		wait_for 20 quiet
	done
	return 1
}

AVA_DISK_FREE_MIN_MB=100000 start_daemon --service
run "$AVA" run --yes 'find helper'
exits 'less room than new work needs: refused' 1
contains 'with the way out' 'AVA_DISK_FREE_MIN_MB' "$ERR"
equal 'in one sentence' 1 "$(wc -l <"$ERR")"
stop_daemon

# A command that fills the disk is stopped before it is full; its run goes on, and all else.
if command -v bwrap >/dev/null && [ -x "${AVAD%/*}/ava-sandbox" ]; then
	printf '{"tool_calls":[{"name":"%s","args":%s}]}\n' \
		run_bash '{"command":"while [ $(df -m . | awk \"END { print \\$4 }\") -gt 45 ]; do head -c 1000000 /dev/zero >>big; done; while head -c 1000000 /dev/zero >>big; do sleep 0.2; done; echo full"}' \
		run_bash '{"command":"rm big; df -m . | tail -1 | wc -l; echo gone"}' \
		submit_result '{"summary":"done","confidence":0.5}' >"$T/fills.jsonl"
	AVA_DISK_FREE_MIN_MB=40 start_daemon --service
	run "$AVA" run --yes --json --role code_reviewer --model "offline:$T/fills.jsonl" 'fill the disk'
	exits 'a command fills the disk: its run goes on' 0
	jq -r 'select(.role == "user") | .content[]? | select(.type == "tool_result") | .content' \
		"$AVA_DATA_ROOT/runs/$(jq -r .subagent_id "$OUT")/messages.jsonl" >"$T/answers"
	contains 'it was stopped' 'less than 40 MB of the disk are free' "$T/answers"
	lacks 'before the disk was full' 'full' "$T/answers"
	contains 'and what it left can be removed' 'gone' "$T/answers"
	stop_daemon
fi

export AVA_DISK_FREE_MIN_MB=0
start_daemon --service
proposal=$(curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" http://x/api/v1/runs \
	-d '{"task":"find helper while there is no room"}' | jq -r .proposal_id)
fill held
run "$AVA" confirm "$proposal"
exits 'what nobody acknowledged failed' 1
contains 'what is waited for is told meanwhile' \
	'ava: confirm: waiting for the daemon, which has a problem: ' "$ERR"
contains 'with the reason' 'No space left on device' "$ERR"
contains 'and that the outcome is unknown' 'it may or may not be done' "$ERR"
check 'a full disk refuses new work' refused
contains 'and says that there is no space' 'No space left on device' "$ERR"
equal 'once' 1 "$(wc -l <"$ERR")"
make_room
check 'with room the daemon is well again' wait_for 20 takes_work
equal 'and what was unknown is there once' 1 \
	"$("$AVA" ps -a --json | jq '[.[] | select(.task == "find helper while there is no room")] | length')"

check 'runs at work notice a full disk' caught 300 2000 10000
check 'runs at work are still shown' sh -c '"$AVA" ps -a --json | grep -q "$1"' sh "$first"
make_room
check 'with room new work is taken' wait_for 20 takes_work
check 'the first run goes on and ends' wait_for 30 ended "$first" success
check 'so does the second' wait_for 30 ended "$second" success

check 'runs at work notice it once more' caught 300 2000 10000
kill_daemon
run "$AVA" ps
check 'a start on the full disk works, or says in one sentence what to do' sh -c \
	'[ "$1" = 0 ] || { [ "$(wc -l <"$2")" = 1 ] && grep -q "make room and start again" "$2"; }' \
	sh "$CODE" "$ERR"
kill_daemon
make_room
start_daemon --service
check 'killed on a full disk, a run is not lost' wait_for 30 over "$first"
check 'nor the other' wait_for 30 over "$second"
check 'and work is taken' wait_for 20 takes_work
wait_for 30 quiet
check 'a stop is orderly' stop_daemon
check 'the logs are in order' python3 "$SRCDIR/test/crash/check_root.py" "$AVA_DATA_ROOT"
check 'and as the schema says' sh -c \
	'python3 "$SRCDIR/test/check_events.py" "$AVA_DATA_ROOT"/logs/ava/*.jsonl "$AVA_DATA_ROOT"/logs/subagents/*.jsonl'
finish
