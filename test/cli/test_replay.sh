#!/bin/sh
# ava replay: runs execute again from their record (of every kind in other suites: all_replay), after a crash
# too, with neither network nor script; what was changed is named with its event
# and byte. (test/unit/test_replay.c changes one thing after the other.)
. "${0%/*}/lib.sh"

export AVA_RUNS_MAX=8
mkdir "$T/src"
cd "$T/src" || exit 99
printf 'int kettle(void)\n{\n\treturn 1;\n}\n' >kettle.c
submit='{"tool_calls":[{"name":"submit_result","args":{"output":null,"summary":"done","confidence":1}}]}'
reads='{"tool_calls":[{"name":"read_file","args":{"path":"kettle.c"}},{"name":"none","args":{}}]}'

script() { printf '%s\n' "$2" "$3" >"$T/$1.jsonl"; }
script works "$reads" "$submit"
script odd '{"text":""}' '{"text":"It is there."}'
script slow "$reads" '{"text":"never said","delay_ms":600000}'
script asks '{"tool_calls":[{"name":"ask_person","args":{"question":"Which?"}}]}' "$submit"

start() # SCRIPT [OPTION...]
{
	name=$1
	shift
	"$AVA" run 'find kettle' --model "offline:$T/$name.jsonl" --yes "$@" --background --json \
		</dev/null 2>"$ERR" | jq -r .subagent_id
}
status_is() { [ "$("$AVA" status "$1" --json </dev/null | jq -r .status)" = "$2" ]; }
logged() { grep -q "$2" "$AVA_DATA_ROOT/logs/subagents/$1.jsonl"; }

# replays NAME S-ID WORDS: identically, and says so.
replays()
{
	run "$AVA" replay "$2"
	exits "$1" 0
	contains "$1: what it says" "$3" "$OUT"
}

start_daemon || { result 1 'avad serves' || finish; }
"$AVA" run --yes --json 'find kettle' >"$T/result" 2>/dev/null </dev/null
offline=$(jq -r .subagent_id "$T/result")
works=$(start works) odd=$(start odd)
slow=$(start slow) kept=$(start slow) asks=$(start asks)
"$AVA" wait --timeout 240 "$works" "$odd" >/dev/null 2>&1
check 'one works' wait_for 60 logged "$slow" '"callId":"i2"'
check 'one waits for a person' wait_for 60 status_is "$asks" waiting
"$AVA" cancel "$slow" >/dev/null 2>&1

replays 'the offline model' "$offline" 'replays identically'
replays 'a script' "$works" 'replays identically: 2 model calls'
replays 'empty replies and nudges' "$odd" 'replays identically'
replays 'a cancelled run' "$slow" 'replays identically'
replays 'one that has not ended' "$kept" 'so far: '
replays 'one that waits' "$asks" 'so far: '
run "$AVA" replay "$works" --json
equal 'as JSON' 'true true 0' "$(jq -r '"\(.identical) \(.complete) \(.differences | length)"' "$OUT")"

# --- after a crash, and without what was asked then

kill_daemon
rm "$T/works.jsonl"
"$AVA" ps >/dev/null 2>&1
check 'the question is there again' wait_for 60 status_is "$asks" waiting
"$AVA" steer "$asks" 'this one' >/dev/null 2>&1 </dev/null
"$AVA" wait --timeout 240 "$asks" >/dev/null 2>&1
replays 'answered after a crash' "$asks" 'replays identically: 2 model calls'
check 'the other goes on too' wait_for 60 logged "$kept" carried_on
replays 'carried on after a crash' "$kept" 'so far: '
replays 'the script is not asked' "$works" 'replays identically'
"$AVA" cancel "$kept" >/dev/null 2>&1
replays 'and cancelled then' "$kept" 'replays identically'

# --- forks

script other '{"text":"said in calls 1 and 2"}' "$submit"
printf '%s\n' "$submit" >>"$T/other.jsonl"
run "$AVA" replay "$offline" --from 2 --yes --json
exits 'a fork before the second call' 0
fork=$(jq -r .subagent_id "$OUT")
differs() { [ "$1" != "$2" ]; }
check 'is a run of its own' differs "$fork" "$offline"
equal 'that says where it comes from' "$offline 2" "$(jq -r 'select(.eventType == "SubagentSpawn")
	.content | "\(.resumedFrom) \(.resumedCall)"' "$AVA_DATA_ROOT/logs/subagents/$fork.jsonl")"
head -n 4 "$AVA_DATA_ROOT/runs/$offline/messages.jsonl" | tail -n 3 >"$T/was"
check 'and begins with what the second call was sent' sh -c \
	'grep "^{\"role\":" "$1" | head -n 3 | cmp -s - "$2"' sh \
	"$AVA_DATA_ROOT/runs/$fork/messages.jsonl" "$T/was"
replays 'it replays too' "$fork" 'replays identically'
check 'its log is made of events' "$SRCDIR/test/check_events.py" \
	"$AVA_DATA_ROOT/logs/subagents/$fork.jsonl"
run "$AVA" replay "$offline" --from 2 --model "offline:$T/other.jsonl" --yes --json
exits 'with another model' 0
equal 'which is called' "offline:$T/other.jsonl" "$(jq -r .model "$OUT")"
run "$AVA" replay "$offline" --from 99 --yes
exits 'no such call' 5
run sh -c "echo no | '$AVA' replay $offline --from 1"
exits 'a no starts nothing' 4
run "$AVA" replay "$offline" --model offline
exits '--model alone' 2

# --- what was changed

stop_daemon
sed -i '4s/return 1/return 2/' "$AVA_DATA_ROOT/runs/$works/messages.jsonl"
run "$AVA" replay "$works"
exits 'a changed result' 1
contains 'its event' '(ToolResult c1.1, lsn ' "$OUT"
contains 'and its byte' 'the output of read_file differs at byte 5' "$OUT"
run "$AVA" replay "$works" --from 2 --yes
exits 'nothing goes on from it' 1
run "$AVA" replay "$works" --lenient --json
equal 'lenient goes on' true "$(jq '.differences_found > 1' "$OUT")"
run "$AVA" replay S-000000
exits 'no such run' 5
contains 'which is said' 'there is no run S-000000, or its log is gone' "$ERR"
run "$AVA" replay nonsense
exits 'no id' 2

finish
