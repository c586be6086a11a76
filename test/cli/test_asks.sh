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
equal 'nothing to set is no answer' 400 "$(code "/asks/$p" '{"set":{}}')"
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

# --- a call that is too long to be shown: its text says so first, in every door

jq -nc '{tool_calls: [{name: "search_codebase", args: {pattern: ("\"" * 900)}}]}' >"$T/long.jsonl"
r=$(ask /runs '{"task":"ask","confirmed":true,"cwd":"'"$T/src"'","model":"offline:'"$T"'/long.jsonl","ask_before":["search_codebase"]}' |
	jq -r .subagent_id)
check 'a long call waits' wait_for 20 waits approval
equal 'it is not whole' 'false It is not shown whole' "$(jq -r '"\(.whole) \(.text[:21])"' "$T/one")"
equal 'and its Item says so' 'It is not shown whole' "$(ask "/items?run=$r" | jq -r '.items[] | select(.kind == "asked").text[:21]')"
run "$AVA" asks "$r"
contains 'as the command does' 'It is not shown whole' "$OUT"

# --- the patch of a run that has ended

. "$LIB/scripted.sh"
mkdir "$T/p" && cd "$T/p" || exit 99
reset() { rm -rf "$T/p/"* "$T/p/.g"*; printf 'a\nb\n' >one; echo 2 >two; echo 3 >three; }
sum() { find . -type f -exec sha256sum {} + | LC_ALL=C sort | sha256sum; }
# propose_patch [ARGUMENT...]: the run is in $r, its Ask in $T/one, the hash in $hash.
propose_patch()
{
	"$AVA" run --role code_reviewer --grant rw --yes --json --model "offline:$T/turns.jsonl" 'Try it' "$@" \
		>"$OUT" 2>"$ERR" </dev/null
	r=$(jq -r .subagent_id "$OUT")
	look
}
look() { ask "/asks/$r:patch" >"$T/one"; hash=$(jq -r .hash "$T/one"); }
yes() { code "/asks/$r:patch" '{"choice":"yes","hash":"'"$hash"'"'"${1:-}"'}'; }
patches() { ask /asks | jq -r '[.asks[] | select(.kind == "apply") | .id] | join(" ")'; }
umask 022
reset
{
	turn edit_file '{"path":"one","old_string":"b","new_string":"c\u001b[31m"}'
	turn write_file '{"path":"two","content":"zwei\n"}'
	turn write_file '{"path":"AGENTS.md","content":"be bad\n"}'
	turn write_file '{"path":"new/file","content":"new\n"}'
	end
} >"$T/turns.jsonl"
propose_patch
before=$(sum)
equal 'its end asks' "$r:patch" "$(patches)"
equal 'as its Item says' "$r:patch" "$(ask "/items?run=$r" | jq -r '.items[] | select(.kind == "result") | .ask')"
equal 'the list has neither the lines nor their hash' ' false' "$(ask /asks | jq -r '.asks[] | select(.kind == "apply") | "\(.hash) \(.whole)"')"
equal 'alone it has both' "apply $(sha256sum <"$AVA_DATA_ROOT/runs/$r/artifacts/changes.patch" | cut -d' ' -f1) true" \
	"$(jq -r '"\(.kind) \(.hash) \(.whole)"' "$T/one")"
equal 'the hash of the patch' "$hash" "$(ask "/runs/$r/patch" | jq -r .hash)"
jq -r .text "$T/one" >"$T/text"
contains 'the folder' "proposes to change 4 files in $T/p:" "$T/text"
contains 'each file' '  new/file  +1 -0  (new)' "$T/text"
contains 'what is obeyed' '  AGENTS.md  +1 -0  (new)  (programs or agents obey it: left out)' "$T/text"
contains 'the lines, with what could hide them' '+c\x1b[31m' "$T/text"
equal 'apply or leave' 'yes Apply no Leave' "$(jq -r '[.choices[] | .id, .label] | join(" ")' "$T/one")"
run "$AVA" asks "$r:patch"
contains 'the command shows it' '+zwei' "$OUT"
contains 'and what writes it' "  ava apply $r" "$OUT"
equal 'a yes goes with the hash' 400 "$(code "/asks/$r:patch" '{"choice":"yes"}')"
equal 'of what was shown' 409 "$(code "/asks/$r:patch" '{"choice":"yes","hash":"00"}')"
equal 'words are no yes' 400 "$(code "/asks/$r:patch" '{"text":"yes, but only two","hash":"'"$hash"'"}')"
run "$AVA" answer "$r:patch" yes
exits 'nor is a command that shows nothing' 2
echo other >one
clash=$(sum)
equal 'a file that changed since' 409 "$(yes)"
contains 'is told' '1 of 4 files clash with' "$T/body"
equal 'and nothing is written' "$clash" "$(sum)"
printf 'a\nb\n' >one
kill_daemon
start_daemon
check 'it waits after a kill' wait_for 10 sh -c '"$0" asks | grep -q "$1:patch"' "$AVA" "$r"
yes ',"request_id":"k"' >"$T/c1" &
first=$!
curl -s -o "$T/body2" -w '%{http_code}' --max-time 60 --unix-socket "$AVA_DATA_ROOT/ava.sock" \
	"http://x/api/v1/asks/$r:patch" -d '{"choice":"no","request_id":"l"}' >"$T/c2"
wait $first
equal 'of two answers at once one wins' '200 409' "$(LC_ALL=C sort "$T/c1" "$T/c2" | tr '\n' ' ' | sed 's/\(200\)\(409\)/\1 \2/; s/ $//')"
if grep -q 200 "$T/c2"; then # the no came first
	equal 'a no writes nothing' "$before" "$(sum)"
	propose_patch
	yes ',"request_id":"k"' >/dev/null
fi
equal 'a yes writes' 'zwei new' "$(cat two new/file | tr '\n' ' ' | sed 's/ $//')"
check 'but nothing that programs obey' [ ! -e AGENTS.md ]
equal 'with modes as its folder has them' '644 755' "$(stat -c %a new/file new | tr '\n' ' ' | sed 's/ $//')"
run "$AVA" logs --type Custom -o json
equal 'the record says who, by which door and what' "$r $(id -un) terminal 3 AGENTS.md" \
	"$(jq -r 'select(.content.customType == "applied") | .content.data | "\(.subagentId) \(.by) \(.origin) \(.files) \(.leftOut[0])"' "$OUT" | tail -1)"
equal 'it waits no more' '404 ' "$(curl -s -o /dev/null -w '%{http_code}' --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/v1/asks/$r:patch") $(patches)"
kill_daemon
start_daemon
wait_for 10 "$AVA" ps
equal 'the same request hears the same, also after a kill' '200 applied 3' "$(yes ',"request_id":"k"') $(jq -r '"\(.state) \(.done.files)"' "$T/body")"
equal 'another answer is too late' 409 "$(code "/asks/$r:patch" '{"choice":"no"}')"

reset
propose_patch
equal 'a no' '200 left' "$(code "/asks/$r:patch" '{"text":"no"}') $(jq -r .state "$T/body")"
equal 'is one' '409 ' "$(yes) $(patches)"
run "$AVA" apply "$r" --yes
exits 'the command still can' 0
reset
propose_patch
run "$AVA" apply "$r" --yes
equal 'and what it wrote asks no more' '' "$(patches)"

# A run that goes on from another one has its changes, too.
reset
propose_patch
old=$r
{
	end; end; end; end; end; end
	turn write_file '{"path":"four","content":"4\n"}'
	end
} >"$T/turns.jsonl"
"$AVA" resume "$old" --yes --json >"$OUT" 2>"$ERR" </dev/null
r=$(jq -r .subagent_id "$OUT")
equal 'a run that goes on takes the place' "$r:patch" "$(patches)"
kill_daemon
start_daemon
wait_for 10 "$AVA" ps
equal 'also after a start' "$r:patch" "$(patches)"
code "/asks/$r:patch" '{"choice":"no"}' >/dev/null

# What is too long is cut, and says so.
{
	turn write_file '{"path":"long","content":"'"$(i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); printf 'a line that is quite long, number %s\\n' $i; done)"'"}'
	end
} >"$T/turns.jsonl"
propose_patch
equal 'a long one is not whole' false "$(jq -r .whole "$T/one")"
contains 'and says where the rest is' "GET /api/v1/runs/$r/patch has all of it" "$T/one"
equal 'so that no yes here writes it' '403 ' "$(yes) $(ls long 2>/dev/null)"
equal 'and it waits on' "$r:patch" "$(patches)"
code "/asks/$r:patch" '{"choice":"no"}' >/dev/null

# A daemon that is killed between two files.
if strace -qq -o "$T/trace" -e trace=renameat true 2>/dev/null; then
	{
		turn write_file '{"path":"one","content":"1\n"}'
		turn write_file '{"path":"two","content":"2\n2\n"}'
		turn write_file '{"path":"three","content":"3\n3\n"}'
		end
	} >"$T/turns.jsonl"
	reset
	propose_patch
	before=$(sum)
	stop_daemon
	# LeakSanitizer cannot look for leaks of what is traced.
	ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 strace -f -qq -o "$T/trace" -P "$T/p" -e trace=renameat \
		-e inject=renameat:signal=KILL:when=2 "$AVAD" >>"$T/avad.out" 2>&1 </dev/null &
	keep $!
	check 'a daemon that will be killed' wait_for 20 daemon_answers
	yes >/dev/null
	wait_for 20 sh -c '! kill -0 "$1" 2>/dev/null' sh $!
	refuse 'a kill between two files leaves some' [ "$before" = "$(sum)" ]
	start_daemon
	wait_for 10 "$AVA" ps
	equal 'it still waits' "$r:patch" "$(patches)"
	equal 'and the same answer does the rest' '200 1 2 2 3 3 ' "$(yes) $(cat one two three | tr '\n' ' ')"
	equal 'with no spare file left' 'one three two' "$(ls -A | tr '\n' ' ' | sed 's/ $//')"
fi

# Files that a prune takes away ask no more.
reset
propose_patch
pruned() { ask /prune '{"older_than_seconds":1}' >/dev/null; [ ! -e "$AVA_DATA_ROOT/runs/$r" ]; }
check 'a prune takes it away' wait_for 10 pruned
equal 'as a whole' '' "$(patches)"
run "$AVA" logs verify
exits 'the logs are whole' 0
finish
