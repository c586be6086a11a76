#!/bin/sh
# What waits for a person: listed, shown whole, answered once, by whoever comes first; through the
# verbs and `ava asks`, `ava answer`.
. "${0%/*}/lib.sh"

mkdir "$T/src"
cd "$T/src" || exit 99
printf 'int kettle(void)\n{\n\treturn boil();\n}\n' >kettle.c

ask() { curl -s --max-time 60 --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/v1$1" ${2:+-d "$2"}; }
code() { curl -s -o "$T/body" -w '%{http_code}' --max-time 60 --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/v1$1" -d "$2"; }
propose() { ask /runs '{"task":"find kettle","cwd":"'"$T/src"'"'"${1:-}"'}' | jq -r .proposal_id; }
nruns() { "$AVA" ps -a --json | jq length; }

start_daemon

# --- a quote

p=$(propose ',"context":"'"$(printf 'x%.0s' $(seq 500))"'","output_schema":{"type":"object","description":"canary"}')
ask "/asks/$p" >"$T/one"
equal 'an Ask has these keys' 'id kind hash session run number text whole choices fields since until state' \
	"$(jq -r 'keys_unsorted | join(" ")' "$T/one")"
equal 'as doc/ASKS.md has them' "$(jq -r 'keys_unsorted | join(" ")' "$T/one")" \
	"$(sed -n '/^```json/,/^```/{/^```/d;p;}' "$SRCDIR/doc/ASKS.md" | jq -r 'keys_unsorted | join(" ")')"
equal 'its kind and state' 'quote open true' "$(jq -r '"\(.kind) \(.state) \(.whole)"' "$T/one")"
equal 'yes and no, and what they do' 'yes starts it as quoted no starts nothing' \
	"$(jq -r '[.choices[] | .id, .effect] | join(" ")' "$T/one")"
contains 'the text has the schema' 'canary' "$T/one"
contains 'and the context, whole' 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' "$T/one"
contains 'the folder' "Folder: $T/src" "$T/one"
contains 'and ends with the question' 'Proceed? [Yes/No]"' "$T/one"
equal 'what may be set' 'max_cost_cents timeout max_tokens max_iterations model role preset extended_thinking without' \
	"$(jq -r '[.fields[].name] | join(" ")' "$T/one")"
run "$AVA" asks
contains 'it is listed' "$p" "$OUT"
run "$AVA" asks "$p"
contains 'and shown whole' 'canary' "$OUT"
contains 'with the words that answer it' "ava answer $p 'yes'" "$OUT"
equal 'a hash that is not shown any more' 409 "$(code "/asks/$p" '{"choice":"yes","hash":"00"}')"
equal 'has the Ask as it is' "$p" "$(jq -r .ask.id "$T/body")"
equal 'a choice and a text are two answers' 400 "$(code "/asks/$p" '{"choice":"yes","text":"no"}')"
equal 'no words that no grammar knows' 400 "$(code "/asks/$p" '{"text":"yes, unless it rains"}')"
equal 'nothing was started' 0 "$(nruns)"
hash=$(jq -r .hash "$T/one")
code "/asks/$p" '{"set":{"max_iterations":30},"hash":"'"$hash"'"}' >/dev/null
q=$(jq -r .id "$T/body")
equal 'a raise is another Ask' open "$(jq -r .state "$T/body")"
equal 'in place of the first' "rejected $q" "$(ask "/asks/$p" | jq -r '"\(.state) \(.replaced_by)"')"
equal 'yes' 200 "$(code "/asks/$q" '{"choice":"yes"}')"
equal 'starts it' confirmed "$(jq -r .state "$T/body")"
r=$(jq -r .run "$T/body")
contains 'as a run' S- "$T/body"
equal 'the same answer hears the same' "200 $r" "$(code "/asks/$q" '{"choice":"yes"}') $(jq -r .run "$T/body")"
equal 'another one is too late' 409 "$(code "/asks/$q" '{"choice":"no"}')"
equal 'one run' 1 "$(nruns)"

# --- the command

run "$AVA" answer "$(propose)" no
exits 'a no is no failure' 0
contains 'and says so' 'is rejected: nothing was started' "$OUT"
run "$AVA" answer "$(propose)" yes, but at most 2 minutes
exits 'a yes in words' 0
contains 'starts it with less' 'at most 2 min' "$OUT"
run "$AVA" answer "$(propose)" --set max_cost_cents=1
exits 'set' 0
run "$AVA" answer P-abcdef yes
exits 'what does not exist' 5
run "$AVA" answer "$q"
exits 'no words' 2

# --- a run that asks

cat >"$T/asks.jsonl" <<-'END'
	{"tool_calls":[{"name":"ask_person","args":{"question":"Which?\u202e","choices":["json","yaml"],"default":"json"}}]}
	{"tool_calls":[{"name":"search_codebase","args":{"pattern":"kettle"}}]}
	{"tool_calls":[{"name":"submit_result","args":{"output":null,"summary":"done","confidence":1}}]}
END
r=$(ask /runs '{"task":"ask","confirmed":true,"cwd":"'"$T/src"'","model":"offline:'"$T"'/asks.jsonl","ask_before":["search_codebase"]}' |
	jq -r .subagent_id)
waits() { ask /asks | jq -e '.asks[] | select(.run == "'"$r"'" and .kind == "'"$1"'")' >"$T/one"; }
check 'a question' wait_for 20 waits question
id=$(jq -r .id "$T/one")
equal 'its id names the call' "$r:c1.1" "$id"
equal 'its choices' 'json yaml' "$(jq -r '[.choices[].id] | join(" ")' "$T/one")"
equal 'what could turn its words is visible, and its answer without one' 'Which?\u{202e} json' "$(jq -r '"\(.text) \(.default)"' "$T/one")"
equal 'nothing to set' 400 "$(code "/asks/$id" '{"set":{"timeout":5}}')"
equal 'an answer' 200 "$(code "/asks/$id" '{"choice":"yaml","request_id":"one","hash":"'"$(jq -r .hash "$T/one")"'"}')"
equal 'the same request hears the same' 200 "$(code "/asks/$id" '{"choice":"yaml","request_id":"one"}')"
equal 'another is too late' 404 "$(code "/asks/$id" '{"choice":"json","request_id":"two"}')"
check 'then a call that needs a yes' wait_for 20 waits approval
equal 'yes or no' 'yes no' "$(jq -r '[.choices[].id] | join(" ")' "$T/one")"
equal 'is nothing for a model' true "$(jq -r .whole "$T/one")"
run "$AVA" answer "$r" perhaps
exits 'nothing but a yes or no' 2
run "$AVA" answer "$r" no: not in this folder
exits 'a no with its reason' 0
contains 'is heard' "$r:c2.1 has its answer." "$OUT"
check 'and it ends' wait_for 20 sh -c '"$0" status "$1" --json | grep -q ended_at' "$AVA" "$r"
equal 'nothing waits any more' '[]' "$("$AVA" asks --json)"
contains 'the answer is in the log' 'not in this folder' "$AVA_DATA_ROOT/logs/subagents/$r.jsonl"
finish
