#!/bin/sh
# What is said to a run is kept once, however often it is asked for: over a connection
# that is lost when the request was taken, after a kill -9, and after the run's end.
. "${0%/*}/lib.sh"
command -v curl >/dev/null || skip 'no curl'

export AVA_RUNS_MAX=2
printf '%s\n' '{"text":"never said","delay_ms":600000}' >"$T/slow.jsonl"
printf '%s\n' '{"tool_calls":[{"name":"ask_person","args":{"question":"Which parser?"}}]}' \
	'{"text":"late","delay_ms":600000}' >"$T/asks.jsonl"
start() # FILE
{
	"$AVA" run 'do it' --model "offline:$T/$1.jsonl" --yes --background --json </dev/null \
		2>"$ERR" | jq -r .subagent_id
}
status_is() { [ "$("$AVA" status "$1" --json </dev/null | jq -r .status)" = "$2" ]; }
# steer S-ID BODY
steer()
{
	curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" -H 'Content-Type: application/json' \
		-d "$2" "http://x/api/v1/runs/$1/steer"
}
said() { jq -r "select(.eventType == \"Steering\" and .content.outcome == \"$2\") | .content.text" \
	"$AVA_DATA_ROOT/logs/subagents/$1.jsonl"; }

start_daemon || { result 1 'avad serves' || finish; }
slow=$(start slow) asks=$(start asks)
wait_for 30 status_is "$slow" running
wait_for 30 status_is "$asks" waiting

# --- over HTTP

one=$(steer "$slow" '{"text":"only the parser","request_id":"r-1"}')
equal 'a message is queued' queued "$(echo "$one" | jq -r .outcome)"
equal 'the same again is the same' "$one" \
	"$(steer "$slow" '{"text":"only the parser","request_id":"r-1"}')"
equal 'an answer is one' answered "$(steer "$asks" '{"text":"json","request_id":"r-1"}' |
	jq -r .outcome)"
equal 'and no message when it comes again' answered \
	"$(steer "$asks" '{"text":"json","request_id":"r-1"}' | jq -r .outcome)"
equal 'nothing was queued of it' '' "$(said "$asks" queued)"
pids=
for i in 1 2 3 4 5 6; do
	steer "$slow" '{"text":"all at once","request_id":"r-5"}' >"$T/same$i" &
	pids="$pids $!"
done
# shellcheck disable=SC2086 # pids
wait $pids
equal 'six at once are one' "$(jq -r .steer_id "$T/same1") 1" \
	"$(cat "$T"/same? | jq -r .steer_id | sort -u) $(said "$slow" queued | grep -c once)"

# --- over connections that are lost when it was taken

mkdir -m 700 "$T/front"
"$SRCDIR/test/cli/cut_proxy.py" "$T/front/ava.sock" "$AVA_DATA_ROOT/ava.sock" /steer 2 \
	>"$T/proxy.out" 2>"$T/proxy.err" &
keep $!
wait_for 10 grep -q ready "$T/proxy.out"
cp "$AVA_DATA_ROOT/FORMAT" "$T/front"
run env AVA_DATA_ROOT="$T/front" "$AVA" steer "$slow" 'mind the gap' --no-wait
exits 'ava steer asks again' 0
equal 'two answers were lost' 2 "$(grep -c cut "$T/proxy.out")"
equal 'and it was said once' 'mind the gap' "$(said "$slow" queued | grep gap)"

# --- another process carries the run on

kill_daemon
start_daemon
wait_for 30 status_is "$slow" running
equal 'the same after a kill' "$one" \
	"$(steer "$slow" '{"text":"only the parser","request_id":"r-1"}')"
equal 'an answer too' c1.1 "$(steer "$asks" '{"text":"json","request_id":"r-1"}' | jq -r .call_id)"
equal 'what is new is said' m4 "$(steer "$slow" '{"text":"new","request_id":"r-3"}' |
	jq -r .steer_id)"

# --- the run has ended

"$AVA" cancel "$slow" "$asks" >/dev/null 2>&1 </dev/null
"$AVA" wait --timeout 60 "$slow" "$asks" >/dev/null 2>&1
equal 'the same after its end' "$one" \
	"$(steer "$slow" '{"text":"only the parser","request_id":"r-1"}')"
equal 'of an answer too' c1.1 "$(steer "$asks" '{"text":"json","request_id":"r-1"}' |
	jq -r .call_id)"
equal 'what is new finds nobody' exists "$(steer "$slow" '{"text":"x","request_id":"r-4"}' |
	jq -r .error.code)"
check 'the logs are made of events' "$SRCDIR/test/check_events.py" \
	"$AVA_DATA_ROOT/logs/subagents/$slow.jsonl" "$AVA_DATA_ROOT/logs/subagents/$asks.jsonl"

finish
