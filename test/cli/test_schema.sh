#!/bin/sh
# --schema and output_schema: what is refused before anything starts, what is sent
# back to the model, and what becomes the result.
. "${0%/*}/lib.sh"

mkdir "$T/work"
cd "$T/work" || exit 99
submit() { printf '{"tool_calls":[{"name":"submit_result","args":{%s"summary":"done","confidence":1}}]}\n' "$1"; }
{ submit '"output":{"n":"x"},'; submit '"output":{"n":7},'; } >repaired.jsonl
{ submit '"output":{"n":"x"},'; submit ''; submit '"output":[],'; submit '"output":{"n":1},'; } >never.jsonl
echo '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}' >n.json
echo '{"type":"object","properties":{"n":{"type":"string","pattern":"^a"}}}' >pattern.json
echo '{"type":' >broken.json
start_daemon || { result 1 'avad serves' || finish; }

run() { "$AVA" run "Count. ($1)" --model "offline:$PWD/$1.jsonl" --schema "$2" --yes --json >"$T/out" 2>"$T/err" </dev/null; }

run repaired n.json
equal 'an output that does not fit is sent back, and the next one is taken' 'success {"n":7} false' \
	"$(jq -r '"\(.status) \(.output | tojson) \(.partial)"' "$T/out")"
id=$(jq -r .subagent_id "$T/out")
equal 'what was wrong stands in the log' 1 \
	"$("$AVA" logs "$id" -o json | jq -c 'select(.eventType == "ToolResult" and .content.errorClass == "bad_output")' | wc -l)"
contains 'the schema is a part of what was confirmed' '"outputSchema":{"type":"object"' \
	"$AVA_DATA_ROOT/runs/$id/messages.jsonl"
contains 'and the model reads it' 'Output Schema' "$AVA_DATA_ROOT/runs/$id/messages.jsonl"

run never n.json
equal 'a failure is its exit code' 1 $?
equal 'after two tries it ends without an output' 'error output_schema null true' \
	"$(jq -r '"\(.status) \(.stop_reason) \(.output) \(.partial)"' "$T/out")"
equal 'with what is wrong' 'output must be of type object, not array' "$(jq -r .error "$T/out")"

run repaired pattern.json
equal 'a keyword that is not known is refused' 2 $?
contains 'by its name and place' '$.properties.n.pattern is a keyword that is not known here' "$T/err"
run repaired broken.json
equal 'a schema that is no JSON is refused' 2 $?
run repaired missing.json
equal 'a file that is not there is refused' 2 $?
equal 'nothing was started for these' 2 "$("$AVA" ps -a --json | jq length)"

post() { curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" http://x/api/v1/runs -d "$1" >"$T/answer"; }
if command -v curl >/dev/null; then
	post '{"task":"x","confirmed":true,"output_schema":{"minimun":1}}'
	contains 'the API refuses it too' '$.minimun is a keyword that is not known here' "$T/answer"
	post '{"task":"x","confirmed":true,"output_schema":"no"}'
	contains 'and what is no object' 'output_schema must be an object' "$T/answer"
fi
finish
