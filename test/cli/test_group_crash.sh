#!/bin/sh
# Fifty runs in one group of 100 cents, a service that bills hard and often fails, and
# ten kill -9 on the way: what is billed stays within the limit and the calls that the
# kills cut, each run ends once, and the log has one Join.
. "${0%/*}/lib.sh"
. "$LIB/models.sh"
models turns=6 tool=read_file 'args={"path":"a%t.txt"}' output=900 latency=100
export AVA_RUNS_MAX=50
mkdir "$T/work" && cd "$T/work"
for i in 0 1 2 3 4 5 6 7 8 9; do echo "number $i" >"a$i.txt"; done
day() { cat "$AVA_DATA_ROOT"/logs/ava/*.jsonl; }
socket() { curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" "$@"; }

start_daemon || { result 1 'avad serves' || finish; }
i=0
while [ $i -lt 50 ]; do
	i=$((i + 1))
	case $((i % 5)) in
	0) fault='[[mock fault=529x2@1]]' ;;
	1) fault='[[mock fault=cut:400@2]]' ;;
	*) fault= ;;
	esac
	echo "{\"task\":\"Look at the numbers, $i. $fault\",\"role\":\"code_reviewer\",\
\"model\":\"anthropic/claude-sonnet-4-5\"}"
done >tasks.jsonl
G=$("$AVA" run --parallel tasks.jsonl --max-cost-cents 100 --yes --background --json \
	2>"$ERR" </dev/null | jq -r .group_id)
contains 'the group runs' 'side by side' "$ERR"
group() { socket "http://x/api/v1/groups/$G"; }
more() { [ "$(stat .requests)" -gt "$1" ] || [ "$(group | jq -r .status)" = ended ]; }

kills=0
while [ $kills -lt 10 ] && [ "$(group | jq -r .status)" != ended ]; do
	wait_for 60 more $(($(stat .requests) + 5))
	kill_daemon
	kills=$((kills + 1))
	start_daemon
done
note "$kills kills"
ended() { [ "$(group | jq -r .status)" = ended ]; }
check 'the group ends' wait_for 200 ended
group >"$T/group"
billed=$(stat .costMicroUsd)
cut=$(cat "$AVA_DATA_ROOT"/logs/subagents/*.jsonl | jq -r 'select(.eventType == "InferEnd" and
	.content.estimated and .content.tokens.input > 0) | .content.callId' | wc -l)
note "billed $billed, charged $(jq '.cost_cents * 10000 | round' "$T/group"), $cut calls charged as estimates, \
$(jq -c '[.runs[].status] | group_by(.) | map({(.[0]): length}) | add' "$T/group")"
# A call that a kill or the service cut is charged an estimate; it may have cost this much more.
check 'what is billed stays within the limit and the calls that were cut' \
	[ "$billed" -le $((1000000 + cut * 15000)) ]
check 'what is charged stays within the limit' \
	[ "$(jq '.cost_cents * 10000 | round' "$T/group")" -le 1000000 ]
equal 'each run ended once' 50 "$(day | jq -r 'select(.eventType == "SubagentComplete") |
	.content.subagentId' | sort | uniq | wc -l)"
equal 'and is told of once' 50 "$(day | jq -r 'select(.eventType == "SubagentComplete") |
	.content.subagentId' | wc -l)"
equal 'one Join, with all of them' '[50]' \
	"$(day | jq -c 'select(.eventType == "Join") | .content.branchCount' | jq -sc .)"

# Each run is told once that the money of all is nearly used up, and makes its last call
# with submit_result when what is left pays no other one.
told() { cat "$AVA_DATA_ROOT"/logs/subagents/*.jsonl | jq -r "select(.eventType == \"Limit\" and $1) | .agentId"; }
told '(.content.shared // [] | map(.limit) | index("group_cost"))' | sort >"$T/near"
told '.content.last' | sort -u >"$T/last"
note "told that it is near: $(wc -l <"$T/near"), that it is the last call: $(wc -l <"$T/last")"
check 'runs were told of it' [ -s "$T/near" ]
equal 'once each' '' "$(uniq -d "$T/near")"
status_of() { jq -r --arg id "$1" '.runs[] | select(.subagent_id == $id).status' "$T/group"; }
equal 'who could make a last call ended with a result' '' "$(while read -r id; do
	grep -h '"eventType":"InferEnd"' "$AVA_DATA_ROOT/logs/subagents/$id.jsonl" | tail -n 1 >"$T/call"
	grep -q '"force_submit"' "$AVA_DATA_ROOT/logs/subagents/$id.jsonl" || continue
	grep -q '"errorClass"' "$T/call" || [ "$(status_of "$id")" = success ] || echo "$id"
done <"$T/last")"

all_replay 'every run replays identically'

check 'every line of the logs is as it should be' python3 "$SRCDIR/test/check_events.py" \
	"$AVA_DATA_ROOT"/logs/ava/*.jsonl "$AVA_DATA_ROOT"/logs/subagents/*.jsonl
finish
