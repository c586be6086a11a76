#!/bin/sh
# The commands that look at runs and answer proposals: what they print for
# people and for programs, and each exit code.
. "${0%/*}/lib.sh"

mkdir "$T/src"
cd "$T/src" || exit 99
printf 'int kettle(void)\n{\n\treturn 1;\n}\n' >kettle.c
printf '%s\n' '{"text":"","tool_calls":[{"name":"read_file","args":{"path":"kettle.c"}}],"delay_ms":60000}' >"$T/slow.jsonl"
slow="offline:$T/slow.jsonl"

# --- nothing there yet

run "$AVA" ps
exits 'ps starts a daemon' 0
contains 'and says that nothing is live' 'No run is live' "$OUT"
equal 'ps --json is an array' '[]' "$("$AVA" ps --json)"
equal 'proposals --json is one too' '[]' "$("$AVA" proposals --json)"
run "$AVA" status
exits 'status' 0
contains 'shows the slots' '0 of 8 slots used' "$OUT"
contains 'and the model' 'model offline' "$OUT"

# --- ids that are wrong, ids of nothing

for command in status events wait result cancel logs trace; do
	run "$AVA" "$command" 'S-XYZ!'
	exits "$command with a malformed id" 2
	run "$AVA" "$command" S-abcdef
	exits "$command of a run that is not" 5
done
run "$AVA" events -f S-abcdef
exits 'events -f of a run that is not' 5
for command in confirm reject; do
	run "$AVA" "$command" S-abcdef
	exits "$command with a malformed id" 2
	run "$AVA" "$command" P-abcdef
	exits "$command of a proposal that is not" 5
done
for command in events wait result cancel trace confirm reject run; do
	run "$AVA" "$command"
	exits "$command needs an argument" 2
done
run "$AVA" rum
exits 'an unknown command' 2
contains 'the nearest is named' 'did you mean "run"?' "$ERR"
run "$AVA" ps --jsn
contains 'so is the nearest option' 'did you mean --json?' "$ERR"
for command in $("$AVA" help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p'); do
	run "$AVA" help "$command"
	exits "help $command" 0
	cp "$OUT" "$T/help"
	run "$AVA" "$command" --help
	exits "$command --help" 0
	check "is the same for $command" cmp -s "$OUT" "$T/help"
done

# --- proposals

propose() { curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" http://x/api/v1/runs -d "$1"; }
command -v curl >/dev/null || skip 'no curl'
first=$(propose '{"task":"find kettle","cwd":"'"$T/src"'"}' | jq -r .proposal_id)
second=$(propose '{"task":"find nothing"}' | jq -r .proposal_id)
equal 'both wait' 2 "$("$AVA" proposals --json | jq length)"
run "$AVA" proposals
contains 'in the table too' "$first" "$OUT"
run "$AVA" confirm "$first"
exits 'confirm' 0
contains 'tells the run' 'is confirmed and runs as S-' "$OUT"
run_id=$("$AVA" proposals -a --json | jq -r '.[] | select(.proposal_id == "'"$first"'") | .subagent_id')
run "$AVA" confirm --json "$first"
exits 'confirm once more' 0
equal 'is the same run' "$run_id" "$(jq -r .subagent_id "$OUT")"
run "$AVA" reject --reason 'not today' "$second"
exits 'reject' 0
run "$AVA" confirm "$second"
exits 'what was rejected stays so' 4
run "$AVA" status
contains 'the overview counts' ' 1 run in all' "$OUT"
run "$AVA" logs --type SpawnRejected
contains 'the reason is in the log' "SpawnRejected $second by $(id -un): not today" "$OUT"
equal 'none waits' '[]' "$("$AVA" proposals --json)"
equal 'both are remembered' 2 "$("$AVA" proposals -a --json | jq length)"

# --- a run that ended

run "$AVA" wait "$run_id"
exits 'wait for a success' 0
contains 'one line tells it' "$run_id ✅ Subagent [" "$OUT"
run "$AVA" result "$run_id"
exits 'result' 0
contains 'has places' 'kettle.c:1' "$OUT"
"$AVA" result --json "$run_id" >"$T/result"
equal 'result --json is result.json' "$(cat "$AVA_DATA_ROOT/runs/$run_id/result.json")" "$(cat "$T/result")"
cp "$AVA_DATA_ROOT/runs/$run_id/result.json" "$T/whole"
head -c 100 "$T/whole" >"$AVA_DATA_ROOT/runs/$run_id/result.json"
run "$AVA" result "$run_id"
exits 'a result that is cut is no result' 1
contains 'and is named' "runs/$run_id/result.json is cut or damaged" "$ERR"
cp "$T/whole" "$AVA_DATA_ROOT/runs/$run_id/result.json"
run "$AVA" cancel "$run_id"
exits 'cancelling it is no error' 0
contains 'and changes nothing' 'had ended: complete' "$OUT"
equal 'cancel --json is its status' "$run_id success" \
	"$("$AVA" cancel --json "$run_id" | jq -r '"\(.subagent_id) \(.status)"')"
run "$AVA" status "$run_id"
contains 'status tells its task' 'find kettle' "$OUT"
equal 'status --json is an object' success "$("$AVA" status --json "$run_id" | jq -r .status)"
"$AVA" events --json "$run_id" >"$T/events"
check 'events are the bytes of the file' cmp -s "$T/events" "$AVA_DATA_ROOT/logs/subagents/$run_id.jsonl"
"$AVA" events -f --json "$run_id" >"$T/events"
check 'also through the daemon' cmp -s "$T/events" "$AVA_DATA_ROOT/logs/subagents/$run_id.jsonl"

# --- live runs

"$AVA" run --yes --background --model "$slow" 'slow one' >/dev/null 2>&1
"$AVA" run --yes --background --model "$slow" 'slow two' >/dev/null 2>&1
equal 'two are live' 2 "$("$AVA" ps --json | jq length)"
run "$AVA" ps
contains 'ps shows them' 'running' "$OUT"
run "$AVA" status
contains 'so does the overview' '2 of 8 slots used' "$OUT"
contains 'with what today cost' 'today: $0.00' "$OUT"
up() { "$AVA" status | grep -Eq ', up (0\.[1-9]|[1-9])'; }
check 'and how long it has been up' wait_for 10 up
live=$("$AVA" ps --json | jq -r '.[0].subagent_id')
run "$AVA" result "$live"
exits 'no result yet' 1
contains 'and what to do' "ava wait $live" "$ERR"
run "$AVA" wait --timeout 0.2 "$live"
exits 'a wait that ran out' 124
"$AVA" events -f "$live" >"$T/follow" 2>&1 &
follower=$!
keep "$follower"
check 'following shows the start' wait_for 10 grep -q 'SubagentSpawn' "$T/follow"
run "$AVA" cancel --json "$live"
equal 'cancel --json of one that is live' cancelled "$(jq -r .status "$OUT")"
"$AVA" run --yes --background --model "$slow" 'slow three' >/dev/null 2>&1
run "$AVA" cancel --all
exits 'cancel --all' 0
equal 'ends both' 2 "$(grep -c ' cancelled (stopped: a model call; nothing of it is left)$' "$OUT")"
check 'the follower ends by itself' wait_for 10 gone "$follower"
contains 'with the end' 'SubagentComplete' "$T/follow"
run "$AVA" wait "$live" "$run_id"
exits 'wait gives the worst exit code' 1
run "$AVA" cancel --all
contains 'then none is live' 'No run is live' "$OUT"
run "$AVA" cancel --all --json
exits 'none, as JSON' 0
equal 'is no line' '' "$(cat "$OUT")"
run "$AVA" cancel --all "$live"
exits 'ids and --all do not go together' 2

# --- output that cannot be written

run sh -c '"$AVA" ps -a --json >/dev/full'
exits 'a full output is an error' 1
contains 'that is told' 'cannot write the output' "$ERR"

run env AVA_DATA_ROOT=/proc/none "$AVA" run --yes 'find kettle'
exits 'a data root that cannot be made' 1
contains 'and why' 'the data root /proc/none cannot be made' "$ERR"

finish
