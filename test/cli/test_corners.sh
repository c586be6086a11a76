#!/bin/sh
# Corners of a run that are far from the main road, with the real programs: an
# output that is cut, a folder that goes away, a secret in what a person says.
. "${0%/*}/lib.sh"
command -v curl >/dev/null || skip 'no curl'

ask() { curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/v1$1" -d "$2"; }
field() { "$AVA" status "$1" --json | jq -r ".$2"; }
is() { [ "$(field "$1" "$2")" = "$3" ]; }
# The calls of one turn end in any order: a result is found by its call.
result_of() { jq -r "select(.callId == \"$1\") | .$2"; }
events() { "$AVA" logs "$1" -o json | jq -c "select(.eventType == \"$2\") | .content"; }
mkdir "$T/src"
cd "$T/src" || exit 99
export AVA_RUNS_MAX=1 AVA_DISK_FREE_MIN_MB=0
start_daemon --service

# --- an output over 64 KB: cut for the model, kept whole, read again

secret=sk-ant-api03-AAAAbbbbCCCCddddEEEEffffGGGGhhhhIIIIjjjjKKKK
awk -v secret="$secret" 'BEGIN { for (i = 1; i <= 480; i++)
	printf "needle %04d %0200d %s\n", i, i, i == 450 ? secret : "" }' >big.txt
cat >"$T/cut.jsonl" <<'Y'
{"tool_calls":[{"name":"search_codebase","args":{"pattern":"needle","max_results":500}}]}
{"tool_calls":[{"name":"read_result","args":{"call_id":"c1.1","search":"needle 0470"}},{"name":"read_result","args":{"call_id":"c1.1","first_line":448,"last_line":452}},{"name":"read_result","args":{"call_id":"c7.1"}}]}
{"tool_calls":[{"name":"submit_result","args":{"summary":"It stands in big.txt:470.","output":{"findings":[{"path":"big.txt","line":470,"quote":"needle 0470"},{"path":"big.txt","line":479,"quote":"needle 0479"}]},"confidence":0.9}}]}
Y
run "$AVA" run --yes --json --role code_reviewer --model "offline:$T/cut.jsonl" 'find the needle'
exits 'a run with a cut output' 0
run_id=$(jq -r .subagent_id "$OUT")
artifact=$AVA_DATA_ROOT/runs/$run_id/artifacts/c1.1.txt
equal 'the result names the artifact' "runs/$run_id/artifacts/c1.1.txt" "$(jq -r '.artifacts[0].path' "$OUT")"
equal 'which holds every line' 480 "$(grep -c '^big.txt:[0-9]*:.*needle' "$artifact")"
events "$run_id" ToolResult >"$T/results"
equal 'the event names it too' "runs/$run_id/artifacts/c1.1.txt" "$(result_of c1.1 artifact <"$T/results")"
equal 'with its size' "$(wc -c <"$artifact" | tr -d ' ')" "$(result_of c1.1 bytes <"$T/results")"
messages=$AVA_DATA_ROOT/runs/$run_id/messages.jsonl
contains 'the model is told that it was cut, and what to do' \
	'read_result with call_id c1.1 shows the rest)' "$messages"
contains 'it finds the line behind the cut' 'result of c1.1: 1 of 48' "$messages"
contains 'and reads a range there' 'result of c1.1 (lines 448-452 of 48' "$messages"
equal 'another call has no result' not_found "$(result_of c2.3 errorClass <"$T/results")"
equal 'what it has read may be cited, what it has not may not' 470 \
	"$(jq -r '[.citations[].line] | join(" ")' "$OUT")"
refuse 'a key in it was taken out everywhere' grep -rqF "$secret" "$AVA_DATA_ROOT"
equal 'but the line is there' 1 "$(grep -c 'needle 0450' "$artifact")"

# --- the folder is removed while a run waits for its slot

cat >"$T/slow.jsonl" <<'Y'
{"tool_calls":[{"name":"read_file","args":{"path":"a.c"}}]}
{"text":"late","delay_ms":600000}
Y
cat >"$T/look.jsonl" <<'Y'
{"tool_calls":[{"name":"read_file","args":{"path":"a.c"}},{"name":"search_codebase","args":{"pattern":"x"}}]}
{"tool_calls":[{"name":"submit_result","args":{"summary":"looked","confidence":0.1}}]}
Y
mkdir "$T/gone" "$T/emptied"
echo 'int x;' | tee "$T/gone/a.c" >"$T/emptied/a.c"
spawn() { ask /runs '{"task":"x","role":"code_reviewer","confirmed":true,"model":"offline:'"$1"'","cwd":"'"$2"'"}' |
	jq -r .subagent_id; }
first=$(spawn "$T/slow.jsonl" "$T/src")
check 'the slot is taken' wait_for 10 is "$first" status running
gone=$(spawn "$T/look.jsonl" "$T/gone")
emptied=$(spawn "$T/look.jsonl" "$T/emptied")
equal 'others are queued' 'queued queued' "$(field "$gone" status) $(field "$emptied" status)"
rm -r "$T/gone" "$T/emptied/a.c"
"$AVA" cancel "$first" >/dev/null 2>&1
check 'one without its folder ends' wait_for 20 is "$gone" status error
run "$AVA" result "$gone" --json
contains 'and says why' "the working folder $T/gone cannot be opened" "$OUT"
equal 'which is no fault of a model' folder_gone "$(jq -r .stop_reason <"$OUT")"
equal 'it used no tool' '' "$(events "$gone" ToolCall)"
check 'one with an empty folder goes on' wait_for 20 is "$emptied" status success
equal 'and is told what is not there' not_found "$(events "$emptied" ToolResult | result_of c1.1 errorClass)"
run "$AVA" run --yes 'x'
exits 'the slot is free again' 0

stop_daemon

# --- a secret in what a person says

known=this-is-the-known-secret-0123456789
ANTHROPIC_API_KEY=$known start_daemon --service
propose() { ask /runs '{"task":"x","model":"offline"}' | jq -r .proposal_id; }
for text in "$secret" "$known"; do
	run "$AVA" reject "$(propose)" --reason "because $text leaked"
	exits 'a reason with a secret' 0
	run ask "/proposals/$(propose)/reject" '{"reason":"r","by":"'"$text"'"}'
	contains 'a name that is one' '"rejected"' "$OUT"
	run ask "/proposals/$(propose)/confirm" '{"answer":"yes","by":"'"$text"'"}'
	contains 'also of who confirms' '"confirmed"' "$OUT"
	run "$AVA" run --yes --json "look for $text"
	exits 'a task with a secret' 0
done
equal 'the reason is kept' 2 \
	"$(grep -h '"eventType":"SpawnRejected"' "$AVA_DATA_ROOT"/logs/ava/*.jsonl | grep -c 'because .* leaked')"
stop_daemon
for text in "$secret" "$known"; do
	refuse 'without the secret, which is nowhere' grep -rqF "$text" "$AVA_DATA_ROOT"
done
finish
