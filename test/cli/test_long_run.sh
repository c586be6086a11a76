#!/bin/sh
# A long run: what a turn writes is the same at turn 5 and at turn 200, a kill late in it takes nothing
# away, and it replays from positions that have mostly what changed.
. "${0%/*}/lib.sh"

mkdir "$T/src"
cd "$T/src" || exit 99
seq 1 400 >numbers
submit='{"tool_calls":[{"name":"submit_result","args":{"output":null,"summary":"done","confidence":1}}]}'
asks='{"tool_calls":[{"name":"ask_person","args":{"question":"Which?"}}]}'

# script NAME CALLS LINE...: one call of a tool each turn, of which every tenth is the one five turns before
script()
{
	name=$1
	seq 1 $(($2 - 1)) | awk '{ n = $1 % 10 ? $1 : $1 - 5
		printf "{\"tool_calls\":[{\"name\":\"read_file\",\"args\":{\"path\":\"numbers\",\"first_line\":%d,\"last_line\":%d}}]}\n", n, n + 9
	}' >"$T/$name.jsonl"
	shift 2
	printf '%s\n' "$@" >>"$T/$name.jsonl"
}
start() # NAME: its id
{
	"$AVA" run 'read the numbers' --model "offline:$T/$1.jsonl" --yes --background --json \
		--max-iterations 1000 --max-tokens 1000000000 --timeout 3000 </dev/null 2>"$ERR" |
		jq -r .subagent_id
}
log() { printf '%s\n' "$AVA_DATA_ROOT/logs/subagents/$1.jsonl"; }
bytes_of() { grep "\"eventType\":\"$2\"" "$(log "$1")" | wc -c; }
status_is() { [ "$("$AVA" status "$1" --json </dev/null | jq -r .status)" = "$2" ]; }

script short 5 "$submit"
script middle 50 "$submit"
script long 200 "$submit"
script killed 60 "$asks" "$submit"
start_daemon || { result 1 'avad serves' || finish; }
short=$(start short) middle=$(start middle) long=$(start long) killed=$(start killed)
"$AVA" wait --timeout 600 "$short" "$middle" "$long" >/dev/null 2>&1
check 'the run of 200 turns ends' status_is "$long" success
check 'another one asks at its 60th' wait_for 120 status_is "$killed" waiting

# --- what a turn writes, of the positions and of the log

of_short=$(($(bytes_of "$short" StateWrite) / 5))
of_middle=$(($(bytes_of "$middle" StateWrite) / 50))
of_long=$(($(bytes_of "$long" StateWrite) / 200))
log_of_short=$(($(wc -c <"$(log "$short")") / 5))
log_of_long=$(($(wc -c <"$(log "$long")") / 200))
echo "# bytes a turn: positions $of_short $of_middle $of_long, log $log_of_short $log_of_long"
check 'positions of 50 turns' [ "$of_middle" -le $((of_short * 3 / 2)) ]
check 'positions of 200 turns' [ "$of_long" -le $((of_short * 3 / 2)) ]
check 'the log of 200 turns' [ "$log_of_long" -le "$log_of_short" ]
# A restart reads a bounded part, too: no whole position is followed by more than 100 others.
check 'whole positions come again' [ "$(jq -r 'select(.eventType == "StateWrite").content.value.delta // 0' \
	"$(log "$long")" | sort -n | tail -1)" -le 100 ]

# --- from positions that have what changed

for id in "$short" "$middle" "$long"; do
	run "$AVA" replay "$id"
	contains "$id" 'replays identically' "$OUT"
done
kill_daemon
check 'it has positions with what changed' grep -q '"value":{"delta":9,' "$(log "$killed")"
start_daemon
check 'it asks again' wait_for 60 status_is "$killed" waiting
run "$AVA" steer "$killed" 'the first'
"$AVA" wait --timeout 120 "$killed" >/dev/null 2>&1
check 'a killed one goes on to its end' status_is "$killed" success
run "$AVA" replay "$killed"
contains 'and replays' 'replays identically: 61 model calls' "$OUT"
equal 'its calls are counted as if nothing had been' 61 \
	"$(jq -r 'select(.eventType == "SubagentComplete").content.totals.toolCalls' "$(log "$killed")")"
finish
