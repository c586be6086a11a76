#!/bin/sh
# ava trace checkpoint: a name for where a run is, by command, HTTP and Ava's tool.
# It is in the run's log and its trace, survives a kill -9, and a fork from it
# begins with what the model call under way was sent.
. "${0%/*}/lib.sh"
command -v curl >/dev/null || skip 'no curl'

export AVA_RUNS_MAX=4
mkdir "$T/src"
cd "$T/src" || exit 99
printf 'int kettle(void)\n{\n\treturn 1;\n}\n' >kettle.c
submit='{"tool_calls":[{"name":"submit_result","args":{"output":null,"summary":"done","confidence":1}}]}'
reads='{"tool_calls":[{"name":"read_file","args":{"path":"kettle.c"}}]}'
asks='{"tool_calls":[{"name":"read_file","args":{"path":"kettle.c"}},{"name":"ask_person","args":{"question":"Which?"}}]}'
printf '%s\n' "$reads" "$asks" "$submit" >"$T/asks.jsonl"
printf '%s\n' '{"text":"never said","delay_ms":600000}' >"$T/slow.jsonl"

start() # SCRIPT
{
	"$AVA" run 'find kettle' --model "offline:$T/$1.jsonl" --yes --background --json \
		</dev/null 2>"$ERR" | jq -r .subagent_id
}
status_is() { [ "$("$AVA" status "$1" --json </dev/null | jq -r .status)" = "$2" ]; }
log_of() { echo "$AVA_DATA_ROOT/logs/subagents/$1.jsonl"; }
logged() { grep -q "$2" "$(log_of "$1")"; }
points() { jq -r 'select(.eventType == "Checkpoint").content | "\(.name) \(.callId)"' "$(log_of "$1")"; }
post() { curl -s -o "$OUT" -w '%{http_code}' --unix-socket "$AVA_DATA_ROOT/ava.sock" -H 'Content-Type: application/json' \
	-d "$2" "http://localhost/api/v1/runs/$1/checkpoint"; }

start_daemon || { result 1 'avad serves' || finish; }
one=$(start asks) slow=$(start slow)
check 'a run waits in its second turn' wait_for 60 status_is "$one" waiting
check 'another is in its first call' wait_for 60 logged "$slow" '"callId":"i1"'

# --- names

run "$AVA" trace checkpoint "$one" before-answer
exits 'the run that waits gets a name' 0
contains 'which says where' 'before its model call 2' "$OUT"
run "$AVA" trace checkpoint "$one" before-answer
exits 'the same again is no other one' 0
run "$AVA" trace checkpoint "$slow" begin
exits 'so does a run in its call' 0
equal 'one event each' 'before-answer i2begin i1' "$(points "$one")$(points "$slow")"
equal 'over HTTP' 201 "$(post "$one" '{"name":"again","by":"ben"}')"
equal 'what it answers' "$one again i2 2" "$(jq -r '"\(.subagent_id) \(.name) \(.call_id) \(.from)"' "$OUT")"
equal 'who asked is kept' ben "$(jq -r 'select(.content.name == "again").content.by' "$(log_of "$one")")"
equal 'a request that repeats it' 200 "$(post "$one" '{"name":"again"}')"
lines=$(wc -l <"$AVA_DATA_ROOT/runs/$one/messages.jsonl")
equal 'it counts the lines of the messages' "$lines" \
	"$(jq -r 'select(.content.name == "before-answer").content.messages' "$(log_of "$one")")"
run "$AVA" trace checkpoint "$one" -- 2nd
check 'that is no name' [ "$CODE" -ne 0 ]
equal 'no name at all' 400 "$(post "$one" '{}')"
equal 'no such run' 404 "$(post S-000000 '{"name":"x"}')"
run "$AVA" trace checkpoint "$one"
exits 'a name is needed' 2
run "$AVA" trace checkpoint nonsense x
exits 'an id is needed' 2
equal 'nothing was written by all that' 'before-answer i2
again i2' "$(points "$one")"

# --- a fork from a run at work is refused; names survive a crash

run "$AVA" replay "$one" --from before-answer --yes
exits 'it has not ended' 1
kill_daemon
"$AVA" ps >/dev/null 2>&1
check 'the run waits again' wait_for 60 status_is "$one" waiting
run "$AVA" trace checkpoint "$one" again
exits 'its names are known' 0
equal 'and no other event is written' 2 "$(points "$one" | wc -l)"
run "$AVA" trace checkpoint "$one" after-crash
exits 'a new one' 0
equal 'counts the lines after the crash too' \
	"$(wc -l <"$AVA_DATA_ROOT/runs/$one/messages.jsonl")" \
	"$(jq -r 'select(.content.name == "after-crash").content.messages' "$(log_of "$one")")"
"$AVA" steer "$one" 'this one' >/dev/null 2>&1 </dev/null
"$AVA" wait --timeout 240 "$one" >/dev/null 2>&1
"$AVA" cancel "$slow" >/dev/null 2>&1
run "$AVA" trace checkpoint "$one" late
exits 'an ended run gets none' 1
contains 'and why' 'has ended, its log is closed' "$ERR"
check 'its log is made of events' "$SRCDIR/test/check_events.py" "$(log_of "$one")"
run "$AVA" replay "$one"
exits 'it replays' 0
contains 'identically' 'replays identically: 3 model calls' "$OUT"

# --- what is shown

run "$AVA" trace "$one"
contains 'the tree shows it' 'Checkpoint before-answer (before model call 2)' "$OUT"
run "$AVA" trace "$one" --waterfall
contains 'the waterfall too' 'checkpoint before-answer' "$OUT"
equal 'OTLP has it as an event' before-answer "$("$AVA" trace "$one" --export otlp |
	jq -r '[.. | objects | select(.name? == "ava.checkpoint") | .attributes[] |
		select(.key == "ava.checkpoint.name").value.stringValue][0]')"

# --- as a value

run "$AVA" trace "$one" --checkpoint before-answer
exits 'exported' 0
equal 'it ends with its event' "before-answer Checkpoint null" \
	"$(jq -r '"\(.name) \(.trace.events[-1].eventType) \(.trace.endTime)"' "$OUT")"
jq -j .state "$OUT" >"$T/had"
head -n "$lines" "$AVA_DATA_ROOT/runs/$one/messages.jsonl" >"$T/first-lines"
check 'and has the messages there were, byte for byte' cmp -s "$T/first-lines" "$T/had"
run "$AVA" trace "$one" --checkpoint again --waterfall
exits 'one form at a time' 2

# --- forks

run "$AVA" replay "$one" --from before-answer --yes --json
exits 'a fork from a name' 0
fork=$(jq -r .subagent_id "$OUT")
equal 'begins before that call' "$one 2" "$(jq -r 'select(.eventType == "SubagentSpawn")
	.content | "\(.resumedFrom) \(.resumedCall)"' "$(log_of "$fork")")"
equal 'and has not heard what was said later' 0 \
	"$(grep -c 'this one' "$AVA_DATA_ROOT/runs/$fork/messages.jsonl")"
run "$AVA" resume "$one" --from nothing --yes
exits 'an unknown name' 5
contains 'the names that there are' "has no checkpoint nothing: it has before-answer, again, after-crash" "$ERR"
run "$AVA" replay "$one" --from 0 --yes
exits 'call 0' 2
run "$AVA" replay "$one" --from 2x --yes
exits 'half a number' 2

# --- between two calls: a person is asked about a limit, all results are written

printf '%s\n' "$reads" "$submit" >"$T/limit.jsonl"
over=$("$AVA" run 'find kettle' --model "offline:$T/limit.jsonl" --max-iterations 1 --on-limit ask --yes \
	--background --json </dev/null 2>"$ERR" | jq -r .subagent_id)
check 'a run waits at its limit' wait_for 60 status_is "$over" waiting
run "$AVA" trace checkpoint "$over" at-limit
contains 'its results are in the checkpoint' 'before its model call 2' "$OUT"
kill_daemon
"$AVA" ps >/dev/null 2>&1
check 'it waits after a crash too' wait_for 60 status_is "$over" waiting
run "$AVA" trace checkpoint "$over" at-limit
exits 'at the same place' 0
equal 'as one event' 'at-limit i2' "$(points "$over")"
"$AVA" steer "$over" yes >/dev/null 2>&1 </dev/null
"$AVA" wait --timeout 60 "$over" >/dev/null 2>&1
run "$AVA" replay "$over" --from at-limit --model "offline:$T/asks.jsonl" --yes --json
exits 'a fork from it' 0
equal 'has them' 1 "$(grep -c 'return 1' "$AVA_DATA_ROOT/runs/$(jq -r .subagent_id "$OUT")/messages.jsonl")"

# --- Ava's tool

slow=$(start slow)
wait_for 60 logged "$slow" '"callId":"i1"'
cat >"$T/ava.jsonl" <<X
{"tool_calls":[{"name":"checkpoint_subagent","args":{"subagent_id":"$slow","name":"by-ava"}}]}
{"text":"It has a name."}
X
stop_daemon
export AVA_MODEL="offline:$T/ava.jsonl"
printf 'name the place\n' | "$AVA" chat >"$OUT" 2>"$ERR" &
CHAT=$!
keep "$CHAT"
check 'Ava names it' wait_for 60 logged "$slow" '"name":"by-ava","lsn":[0-9]*,"messages":[0-9]*,"hash":"[0-9a-f]*","callId":"i1","by":"ava"'
"$AVA" cancel "$slow" >/dev/null 2>&1
stop_pid TERM "$CHAT" # before the daemon, which it would start again

finish
