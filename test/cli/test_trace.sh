#!/bin/sh
# ava trace: as bars, exported and imported again, on a root of another machine
# too; broken lines by their number.
. "${0%/*}/lib.sh"

mkdir "$T/src"
cd "$T/src" || exit 99
printf 'int kettle(void)\n{\n\treturn 1;\n}\n' >kettle.c
"$AVA" run --yes --json 'find kettle' >"$T/result" 2>/dev/null
id=$(jq -r .subagent_id "$T/result") name=$(jq -r .trace_id "$T/result")
log=$AVA_DATA_ROOT/logs/subagents/$id.jsonl
calls=$(grep -c '"eventType":"InferStart"\|"eventType":"ToolCall"' "$log")

run "$AVA" trace "$id" --waterfall
exits 'waterfall' 0
equal 'a bar for each call' "$calls" "$(grep -c '│.*│' "$OUT")"
contains 'and totals' " model calls, " "$OUT"
echo '{"tool_calls":[{"name":"submit_result","args":{"summary":"done","confidence":1}}]}' >"$T/one.jsonl"
one=$("$AVA" run --yes --json --model "offline:$T/one.jsonl" 'find kettle' 2>/dev/null | jq -r .subagent_id)
run "$AVA" trace "$one"
contains 'one call is one' ' 1 model call, 1 tool call (' "$OUT"
run "$AVA" replay "$one"
contains 'in a replay, too' 'replays identically: 1 model call, ' "$OUT"
run "$AVA" trace "$name" --export otlp
exits 'otlp' 0
equal 'a span for the run and for each call' $((calls + 1)) \
	"$(jq '.resourceSpans[0].scopeSpans[0].spans | length' "$OUT")"
equal 'all of one trace, below one span' '1 1' "$(jq -r '.resourceSpans[0].scopeSpans[0].spans |
	"\(map(.traceId) | unique | length) \(map(.parentSpanId // empty) | unique | length)"' "$OUT")"
run "$AVA" trace "$id" --json --export otlp
exits 'one form at a time' 2

# --- there and back

"$AVA" trace "$id" --export jsonl >"$T/trace.jsonl"
check 'jsonl is the log' cmp -s "$T/trace.jsonl" "$log"
"$AVA" trace "$id" --json >"$T/trace.json"
"$AVA" trace "$id" >"$T/tree"
run "$AVA" trace import "$T/trace.jsonl"
exits 'a run of this root hides what is imported under its name' 2
contains 'so that is refused' "$name is the trace of $id" "$ERR"
stop_daemon
export AVA_DATA_ROOT="$T/other"
mkdir -m 700 "$AVA_DATA_ROOT"
for file in trace.jsonl trace.json; do
	run "$AVA" trace import "$T/$file"
	exits "import $file" 0
	run "$AVA" trace "$name" --json
	check "as it was ($file)" cmp -s "$OUT" "$T/trace.json"
	run "$AVA" trace "$name"
	check "the tree too ($file)" cmp -s "$OUT" "$T/tree"
	rm -r "$AVA_DATA_ROOT/imports"
done
sed -i '3s/^{/{{/' "$T/trace.jsonl"
run "$AVA" trace import "$T/trace.jsonl"
exits 'a broken line' 1
contains 'by its number' 'line 3: ' "$ERR"
equal 'the rest is there' "$(($(wc -l <"$log") - 1))" \
	"$("$AVA" trace "$name" --export jsonl | wc -l | tr -d ' ')"
run "$AVA" trace import "$T/none"
exits 'no such file' 5
printf '{"eventType":"Custom","traceId":"../../x"}\n' >"$T/evil"
run "$AVA" trace import "$T/evil"
exits 'a name that is none' 2
sed "s/$id/S-zz/g" "$T/trace.json" >"$T/evil"
run "$AVA" trace import "$T/evil"
exits 'an agent that is no run' 2
contains 'is named' 'the agentId "S-zz" is not the id of a run' "$ERR"
sed "2,\$s/$id/S-111111/g" "$log" >"$T/evil"
run "$AVA" trace import "$T/evil"
exits 'events of two runs' 2
contains 'are named' "has events of $id ($name) and of S-111111 ($name)" "$ERR"
run "$AVA" trace import
exits 'no file' 2

finish
