#!/bin/sh
# --on-limit ask: at its limit a run waits for a person, over a kill -9 too; a yes
# gives it as much again, for good; a no ends it with what it has.
. "${0%/*}/lib.sh"
command -v curl >/dev/null || skip 'no curl'

mkdir "$T/work" && cd "$T/work" && echo one >a.txt
look='{"tool_calls":[{"name":"read_file","args":{"path":"a.txt"}}]}'
{
	echo "$look"
	echo "$look"
	echo "$look"
	echo '{"tool_calls":[{"name":"submit_result","args":{"output":null,"summary":"done","confidence":1}}]}'
} >"$T/four.jsonl"
start()
{
	"$AVA" run "Look, $1." --role code_reviewer --model "offline:$T/four.jsonl" --yes \
		--background --json --max-iterations 2 --on-limit ask </dev/null 2>"$ERR" |
		jq -r .subagent_id
}
is_status() { [ "$("$AVA" status "$1" --json </dev/null | jq -r .status)" = "$2" ]; }
steer()
{
	curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/v1/runs/$1/steer" \
		-H 'Content-Type: application/json' -d "{\"text\":\"$2\"}"
}
events() { jq -c "select($2)" "$AVA_DATA_ROOT/logs/subagents/$1.jsonl"; }

start_daemon || { result 1 'avad serves' || finish; }
a=$(start once)
check 'at its limit it waits' wait_for 60 is_status "$a" waiting
check 'for an answer about the limit' wait_for 10 grep -q 'has used its 2 replies' \
	"$AVA_DATA_ROOT/logs/subagents/$a.jsonl"
kill_daemon
start_daemon
check 'after a kill it waits again' wait_for 60 is_status "$a" waiting
refuse 'what is neither yes nor no is asked again' \
	[ "$(steer "$a" 'a bit' | jq -r '.outcome // empty')" ]
equal 'a yes is its answer' answered "$(steer "$a" yes | jq -r .outcome)"
"$AVA" wait --timeout 60 "$a" >/dev/null 2>&1
equal 'and it comes to its end' 'success 4' \
	"$("$AVA" result "$a" --json </dev/null | jq -r '"\(.status) \(.iterations)"')"
equal 'its limit was raised once' '[2,4]' \
	"$(events "$a" '.eventType == "Limit"' | jq -sc '[.[].content.budget.iterations] | unique')"
contains 'where the next start finds it' '"limits"' "$AVA_DATA_ROOT/runs/$a/messages.jsonl"

b=$(start twice)
check 'another one waits' wait_for 60 is_status "$b" waiting
equal 'a no is an answer' answered "$(steer "$b" no | jq -r .outcome)"
"$AVA" wait --timeout 60 "$b" >/dev/null 2>&1
equal 'it ends with what it has' 'iterations_exceeded true' \
	"$("$AVA" result "$b" --json </dev/null | jq -r '"\(.status) \(.partial)"')"

run "$AVA" run "x" --on-limit maybe --yes
exits 'another word is refused' 2

all_replay 'every run replays identically'

check 'every line of the logs is as it should be' python3 "$SRCDIR/test/check_events.py" \
	"$AVA_DATA_ROOT"/logs/ava/*.jsonl "$AVA_DATA_ROOT"/logs/subagents/*.jsonl
finish
