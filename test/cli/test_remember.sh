#!/bin/sh
# What a run knows of its own past outlives a kill -9: calls that it repeats, warnings,
# that its next reply is the last. Killed in one model call or another it is asked the
# same, to the byte, and ends as the run that was never stopped.
. "${0%/*}/lib.sh"

mkdir "$T/src"
cd "$T/src" || exit 99
printf 'int kettle(void)\n{\n\treturn 1;\n}\n' >kettle.c
reads='"tool_calls":[{"name":"read_file","args":{"path":"kettle.c"}}]'
other='"tool_calls":[{"name":"search_codebase","args":{"pattern":"kettle"}}]'
submit='"tool_calls":[{"name":"submit_result","args":{"output":null,"summary":"done","confidence":1}}]'

# script SLOW REPLY...: the SLOW-th does not come (0: all do).
script()
{
	slow=$1 line=0
	shift
	for reply in "$@"; do
		line=$((line + 1))
		[ $line = "$slow" ] && reply="\"delay_ms\":600000,$reply"
		printf '{%s}\n' "$reply"
	done >"$T/new.jsonl"
	mv "$T/new.jsonl" "$T/script.jsonl"
}
plan()
{
	case $1 in
	repeats) script "$2" "$reads" "$reads" "$reads" "$reads" "$submit" ;;
	limits) script "$2" "$reads" "$other" "$reads" "$other" "$submit" ;;
	esac
}
start()
{
	"$AVA" run 'find kettle' --role code_reviewer --model "offline:$T/script.jsonl" \
		--max-iterations "$1" --yes --background --json </dev/null 2>"$ERR" | jq -r .subagent_id
}
log() { cat "$AVA_DATA_ROOT/logs/subagents/$1.jsonl"; }
calls() { log "$1" | grep -q "\"callId\":\"$2\""; }
# What it was asked, how it ended, what was said.
told()
{
	log "$1" | jq -r 'select(.eventType == "InferStart") | .content |
		"\(.callId | split(".")[0]) \(.prefixHash) \(.notices | sort)"' | uniq
	"$AVA" result "$1" --json </dev/null | jq -c '[.status, .stop_reason, .summary, .iterations]'
	grep '^{"role":' "$AVA_DATA_ROOT/runs/$1/messages.jsonl"
}

start_daemon || { result 1 'avad serves' || finish; }

# as_without NAME ITERATIONS CALL...: killed in each of these calls.
as_without()
{
	name=$1 iterations=$2
	shift 2
	plan "$name" 0
	id=$(start "$iterations")
	"$AVA" wait --timeout 120 "$id" >/dev/null 2>&1
	told "$id" >"$T/want"
	note "$name: $(grep '^\[' "$T/want")"
	for k in "$@"; do
		plan "$name" "$k"
		id=$(start "$iterations")
		check "$name: call $k is under way" wait_for 60 calls "$id" "i$k"
		kill_daemon
		plan "$name" 0
		start_daemon
		"$AVA" wait --timeout 120 "$id" >/dev/null 2>&1
		told "$id" >"$T/got"
		cmp -s "$T/want" "$T/got"
		result $? "$name: killed in call $k it goes on as it was" || note "$(diff "$T/want" "$T/got")"
	done
}
as_without repeats 20 3 5
contains 'it was stopped because it repeats itself' '"error","repeated_calls"' "$T/want"
contains 'and told so first' 'Once more ends the run' "$T/want"
as_without limits 5 5
contains 'it was told that its limit is near' 'The limit is near' "$T/want"
contains 'and that its next reply is the last' 'Your next reply is the last' "$T/want"

# One that waits for a person, killed while it waits: what the same reply read counts.
script 0 "$reads" "${reads%]},{\"name\":\"ask_person\",\"args\":{\"question\":\"Which?\"}}]" \
	"$reads" "$reads" "$submit"
waits() { [ "$("$AVA" status "$1" --json </dev/null | jq -r .status)" = waiting ]; }
for kills in 0 1 2; do
	id=$(start 20)
	check "a run asks ($kills kills)" wait_for 60 waits "$id"
	while [ "$kills" -gt 0 ]; do
		kills=$((kills - 1))
		kill_daemon
		start_daemon
		wait_for 60 waits "$id"
	done
	"$AVA" steer "$id" 'this one' >/dev/null 2>&1 </dev/null
	"$AVA" wait --timeout 120 "$id" >/dev/null 2>&1
	told "$id" >"$T/got"
	[ -s "$T/asked" ] || cp "$T/got" "$T/asked"
	cmp -s "$T/asked" "$T/got"
	result $? 'and goes on as it was' || note "$(diff "$T/asked" "$T/got")"
done
contains 'what it read beside the question was counted' '"error","repeated_calls"' "$T/asked"
all_replay 'every run replays identically'
check 'every line of the logs is as it should be' python3 "$SRCDIR/test/check_events.py" \
	"$AVA_DATA_ROOT"/logs/ava/*.jsonl "$AVA_DATA_ROOT"/logs/subagents/*.jsonl
finish
