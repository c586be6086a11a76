#!/bin/sh
# Groups: one quote and one answer for several runs, one budget, Fork and Join, what
# failed beside what did not; chains; results that are shared; crashes in between.
. "${0%/*}/lib.sh"
command -v curl >/dev/null || skip 'no curl'

mkdir "$T/work" && cd "$T/work" && printf 'one\ntwo\n' >a.txt
day() { cat "$AVA_DATA_ROOT"/logs/ava/*.jsonl; }
events() { day | jq -c "select($1)"; }
count() { events "$1" | wc -l; }

start_daemon || { result 1 'avad serves' || finish; }

# --- side by side, with the offline model ---------------------------------------------
cat >tasks.jsonl <<'END'
{"task":"Find where two is said.","role":"code_reviewer"}

{"task":"Find where one is said.","role":"researcher"}
END
echo no | "$AVA" run --parallel tasks.jsonl >"$OUT" 2>"$ERR"
equal 'a no starts nothing' 4 $?
contains 'one question lists all' '2. Researcher to find where one is said.' "$OUT"
equal 'nothing forked' 0 "$(count '.eventType == "Fork"')"

echo yes | "$AVA" run --parallel tasks.jsonl --max-cost-cents 0 --timeout 300 >"$OUT" 2>"$ERR"
equal 'a yes runs both' 0 $?
contains 'what came of them' '2 of 2 succeeded' "$OUT"
run "$AVA" logs --type join
contains 'the log says it in words' ' complete, S-' "$OUT"
equal 'one confirmation' 1 "$(count '.eventType == "SpawnConfirmed"')"
equal 'Fork names both' 2 "$(events '.eventType == "Fork"' | jq '.content.branchIds | length')"
equal 'Join has their ends' '["success","success"]' \
	"$(events '.eventType == "Join"' | jq -c '[.content.branchIds[].status]')"
G=$(events '.eventType == "Join"' | jq -r .content.groupId)
equal 'Join is of the group that forked' "$G" \
	"$(events '.eventType == "Fork"' | jq -r .content.groupId)"
group() { curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/v1/groups/$1"; }
equal 'the API tells of it' 'ended 2 2 parallel' \
	"$(group "$G" | jq -r '"\(.status) \(.size) \(.succeeded) \(.mode)"')"
equal 'with the limits of all' '0 300' "$(group "$G" | jq -r '"\(.max_cost_cents) \(.timeout)"')"
equal 'an unknown group is none' not_found "$(group G-000000 | jq -r .error.code)"

"$AVA" run --parallel tasks.jsonl --yes --json >"$OUT" 2>"$ERR" </dev/null
equal 'as JSON: each with its result' 2 "$(jq '[.runs[].result.summary] | length' "$OUT")"

echo no | "$AVA" run --parallel tasks.jsonl >/dev/null 2>&1
run "$AVA" proposals -a
contains 'a proposal of several says so' '2 runs: Find where two is said.' "$OUT"

echo '{"task":"x","modle":"y"}' >bad.jsonl
run "$AVA" run --parallel bad.jsonl --yes
exits 'a bad line is named' 2
contains 'with its number' 'run 1' "$ERR"
echo '{"task":"x","confirmed":true}' >bad.jsonl
run "$AVA" run --parallel bad.jsonl --yes
exits 'what belongs to the group is refused in a run' 2
echo '{"task":"x","resume":"S-123456"}' >bad.jsonl
run "$AVA" run --parallel bad.jsonl --yes
exits 'and a resume, too' 2
echo 'nothing' >bad.jsonl
run "$AVA" run --parallel bad.jsonl --yes
exits 'what is no JSON is refused' 2
contains 'with its line, once' 'bad.jsonl: line 1: ' "$ERR"
printf '\357\273\277\n[\n  {"task": "Find where one is said.",\n   "role": "code_reviewer"}, 5\n]\n' >list.json
run "$AVA" run --parallel list.json --yes
contains 'of a list each is looked at' 'run 2' "$ERR"
sed -i 's/, 5//' list.json
run "$AVA" run --parallel list.json --yes
exits 'a list is as good as lines' 0
run "$AVA" run --parallel tasks.jsonl --role researcher x
exits 'a task and a file are one too many' 2

# --- a chain ----------------------------------------------------------------------------
"$AVA" run --parallel tasks.jsonl --chain --yes --json >"$OUT" 2>"$ERR" </dev/null
equal 'a chain ends' '["success","success"]' "$(jq -c '[.runs[].status]' "$OUT")"
first=$(jq -r '.runs[0].subagent_id' "$OUT") second=$(jq -r '.runs[1].subagent_id' "$OUT")
sed -n 2p "$AVA_DATA_ROOT/runs/$second/messages.jsonl" | jq -r .spec.context >"$T/context"
equal 'and is told as one' 'ended 2 chain' "$(group "$(events '.eventType == "Join"' | tail -n 1 |
	jq -r .content.groupId)" | jq -r '"\(.status) \(.size) \(.mode)"')"
contains 'the second knows what the first found' "The run before ($first, success)" "$T/context"
lsn() { jq "select(.eventType == \"$2\").lsn" "$AVA_DATA_ROOT/logs/subagents/$1.jsonl" | head -n 1; }
equal 'the second began behind the end of the first' 0 \
	"$([ "$(lsn "$second" InferStart)" -gt "$(lsn "$first" SubagentComplete)" ]; echo $?)"

# --- shared results -----------------------------------------------------------------------
cat >"$T/finds.jsonl" <<'END'
{"tool_calls":[{"name":"submit_result","args":{"output":{"answer":42},"summary":"it is 42","confidence":1}}]}
END
cat >"$T/reads.jsonl" <<'END'
{"tool_calls":[{"name":"read_result","args":{"call_id":"sibling:1"}},{"name":"read_result","args":{"call_id":"sibling:3"}}]}
{"tool_calls":[{"name":"submit_result","args":{"output":null,"summary":"read it","confidence":1}}]}
END
stop_daemon
AVA_RUNS_MAX=1 # the second has its slot when the first has ended
export AVA_RUNS_MAX
start_daemon
for model in finds reads; do
	echo "{\"task\":\"Do your part, $model.\",\"role\":\"researcher\",\"model\":\"offline:$T/$model.jsonl\"}"
done >share.jsonl
outputs() { jq -r 'select(.eventType == "ToolResult" and .content.name == "read_result") |
	.content.output' "$AVA_DATA_ROOT/logs/subagents/$1.jsonl"; }
"$AVA" run --parallel share.jsonl --share --yes --json >"$OUT" 2>"$ERR" </dev/null
outputs "$(jq -r '.runs[1].subagent_id' "$OUT")" >"$T/read"
contains 'a run reads what another one found' 'it is 42' "$T/read"
contains 'and hears that there is no third' 'has no sibling:3' "$T/read"
"$AVA" run --parallel share.jsonl --yes --json >"$OUT" 2>"$ERR" </dev/null
outputs "$(jq -r '.runs[1].subagent_id' "$OUT")" >"$T/read"
contains 'not unless they share' 'may not read what others have found' "$T/read"

# --- one deadline, for those that wait for a slot too -------------------------------------
echo '{"text":"never said","delay_ms":600000}' >"$T/slow.jsonl"
for i in 1 2 3; do
	echo "{\"task\":\"Take long, $i.\",\"role\":\"researcher\",\"model\":\"offline:$T/slow.jsonl\"}"
done >slow.jsonl
"$AVA" run --parallel slow.jsonl --timeout 1 --yes --json >"$OUT" 2>"$ERR" </dev/null
equal 'all end at the deadline of their group' '3 ["timeout"]' \
	"$? $(jq -c '[.runs[].status] | unique' "$OUT")"

# --- Ctrl-C cancels all of them -----------------------------------------------------------
"$AVA" run --parallel slow.jsonl --yes --json >"$OUT" 2>"$T/talk" </dev/null &
ava=$!
keep $ava
at_work() { [ "$("$AVA" ps --json | jq 'map(select(.status == "running")) | length')" = 1 ]; }
check 'one has the slot' wait_for 60 at_work
kill -INT $ava
wait $ava
equal 'an interrupt cancels those that work and those that wait' '1 ["cancelled"]' \
	"$? $(jq -c '[.runs[].status] | unique' "$OUT")"
contains 'and says so' 'Cancelling G-' "$T/talk"

G=$("$AVA" run --parallel slow.jsonl --yes --background --json 2>/dev/null </dev/null |
	jq -r .group_id)
run "$AVA" cancel "$G" --json
exits 'ava cancel takes a group' 0
equal 'and stops all of it' '3 ["cancelled"]' \
	"$(jq -s length "$OUT") $(jq -sc '[.[].status] | unique' "$OUT")"
run "$AVA" cancel G-000000
exits 'a group that is none' 5

# --- a chain whose next run begins while it is cancelled ------------------------------------
echo '{"delay_ms":1500,"tool_calls":[{"name":"submit_result","args":{"output":null,"summary":"first part","confidence":1}}]}' \
	>"$T/late.jsonl"
for model in late slow; do
	echo "{\"task\":\"Do your part, $model.\",\"role\":\"researcher\",\"model\":\"offline:$T/$model.jsonl\"}"
done >chain.jsonl
mkdir -m 700 "$T/front" && cp "$AVA_DATA_ROOT/FORMAT" "$T/front"
"$SRCDIR/test/cli/cut_proxy.py" "$T/front/ava.sock" "$AVA_DATA_ROOT/ava.sock" /runs/cancel 1 "$T/go" \
	>"$T/proxy.out" 2>"$T/proxy.err" &
keep $!
wait_for 10 grep -q ready "$T/proxy.out"
C=$("$AVA" run --parallel chain.jsonl --chain --yes --background --json 2>/dev/null </dev/null |
	jq -r .group_id)
env AVA_DATA_ROOT="$T/front" "$AVA" cancel "$C" >"$OUT" 2>"$ERR" &
ava=$!
keep $ava
check 'it knows which runs there are' wait_for 60 grep -q held "$T/proxy.out"
second() { [ "$(group "$C" | jq -r '.runs[1].status')" = running ]; }
check 'the next one begins' wait_for 60 second
: >"$T/go"
wait $ava
equal 'and is cancelled, too' 'success cancelled' \
	"$(group "$C" | jq -r '[.runs[].status] | join(" ")')"

all_replay 'every run replays identically'

check 'every line of the logs is as it should be' python3 "$SRCDIR/test/check_events.py" \
	"$AVA_DATA_ROOT"/logs/ava/*.jsonl "$AVA_DATA_ROOT"/logs/subagents/*.jsonl
# --- each run's requests begin otherwise: more heads than memory keeps

i=0
while [ $i -lt 100 ]; do
	echo '{"text":"Done."}' >"$T/other-$i.jsonl"
	printf '{"task":"one of a hundred","role":"code_reviewer","model":"offline:%s"}\n' "$T/other-$i.jsonl"
	i=$((i + 1))
done >"$T/hundred.jsonl"
before=$(ls "$AVA_DATA_ROOT/heads" | wc -l)
equal 'a group with a hundred heads begins' 201 "$(jq -s --arg cwd "$T" \
	'{confirmed: true, cwd: $cwd, runs: .}' "$T/hundred.jsonl" |
	curl -s -o "$OUT" -w '%{http_code}' --unix-socket "$AVA_DATA_ROOT/ava.sock" \
		-H 'Content-Type: application/json' -d @- http://x/api/v1/groups)"
equal 'and all are kept' $((before + 100)) "$(ls "$AVA_DATA_ROOT/heads" | wc -l)"

# --- what stands in the way of several is said of all of them

unset AVA_MODEL
# WHOSE MODEL...: a run for each, and who is told to need the key.
needs()
{
	needs_whose=$1
	shift
	for model in "$@"; do
		printf '{"task":"find kettle","model":"%s"}\n' "$model"
	done >"$T/keys.jsonl"
	run "$AVA" run --parallel "$T/keys.jsonl" --yes
	exits "a group without a key is refused ($*)" 2
	contains "and told whose ($*)" "$needs_whose of the group: openai/gpt-4o needs OPENAI_API_KEY" "$ERR"
}
needs 'each run' openai/gpt-4o openai/gpt-4o
needs 'runs 1, 3' openai/gpt-4o offline openai/gpt-4o
needs 'run 2' offline openai/gpt-4o
finish
