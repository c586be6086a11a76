#!/bin/sh
# What a run's model was asked and what it said: by the API and by `ava messages`, of runs that are
# live, ended, resumed and pruned.
. "${0%/*}/lib.sh"
command -v curl >/dev/null && command -v jq >/dev/null || skip 'no curl or jq'
mkdir "$T/work"
cd "$T/work" || exit 99
printf 'one\ntwo\n' >a.txt
{
	printf '{"text":"I look.","tool_calls":[{"name":"read_file","args":{"path":"a.txt"}}]}\n'
	printf '{"tool_calls":[{"name":"read_file","args":{"path":"b.txt"}}]}\n'
	printf '{"text":"not reached: a line for each call, and the first run stops before"}\n'
	printf '{"tool_calls":[{"name":"submit_result","args":{"summary":"two lines"}}]}\n'
} >"$T/turns.jsonl"
start_daemon || { result 1 'avad serves' || finish; }

# ask PATH: the answer is in $T/answer, its status in $CODE.
ask() { CODE=$(curl -s -o "$T/answer" -w '%{http_code}' --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/v1/$1"); }
# of JQ: from the answer.
of() { jq -rc "$1" "$T/answer"; }
# start FILE OPTION...: the id of a run that plays it.
start()
{
	start_file=$1
	shift
	"$AVA" run 'How many lines has a.txt?' --model "offline:$start_file" --role code_reviewer --yes --json "$@" \
		2>/dev/null </dev/null | jq -r .subagent_id
}

one=$(start "$T/turns.jsonl" --max-iterations 2)
ask "runs/$one/messages"
equal 'an ended run answers' 200 "$CODE"
equal 'who speaks, and for which call' '[[1,"system"],[1,"user"],[1,"assistant"],[2,"tool"],[2,"assistant"],[3,"tool"]]' \
	"$(of '[.messages[] | select(.role != "note") | [.turn, .role]]')"
equal 'the task' true "$(of '.messages[1].parts[0].text | contains("How many lines has a.txt?")')"
equal 'a reply has text and calls' '["text","I look."] ["call","read_file","c1.1","a.txt"]' \
	"$(of '.messages[2].parts | "\([.[0].kind, .[0].text]) \([.[1].kind, .[1].name, .[1].call_id, .[1].args.path])"')"
equal 'a result names its call' '["result","c1.1",null]' "$(of '.messages[3].parts[0] | [.kind, .call_id, .failed]')"
contains 'and has what the tool said' 'one\n2' "$T/answer"
equal 'a failed one says so' '["c2.1",true]' "$(of '.messages[] | select(.turn == 3).parts[0] | [.call_id, .failed]')"
equal 'that was all' '[6,false,null]' "$(of '[.next, .more, .unreadable]')"

ask "runs/$one/messages?turn=2"
equal 'one call: what was new, and the reply' '[[4,"tool"],[5,"assistant"]]' "$(of '[.messages[] | [.n, .role]]')"
ask "runs/$one/messages?after=1&limit=2"
equal 'a page' '[[2,3],3,true]' "$(of '[[.messages[].n], .next, .more]')"
ask "runs/$one/messages?after=6"
equal 'nothing behind the end' '[[],6,false]' "$(of '[.messages, .next, .more]')"
ask "runs/$one/messages?limit=1001"
equal 'a limit is a limit' 400 "$CODE"
ask "runs/S-ffffff/messages"
equal 'an unknown run' '404 there is no run S-ffffff (ava ps -a lists them)' "$CODE $(of .error.message)"

run "$AVA" messages "$one" --turn 2
exits 'by the command line' 0
contains 'with the result' '2 tool: result c1.1' "$OUT"
contains 'and the call' '2 assistant: call c2.1 read_file' "$OUT"
contains 'and its arguments' 'b.txt' "$OUT"
lacks 'and nothing else' 'I look.' "$OUT"
run "$AVA" messages "$one" --json
equal 'or as JSON' 6 "$(jq '.messages | length' "$OUT")"

# --- a run that goes on from it: its own calls are counted from 1
two=$("$AVA" resume "$one" --yes --json --max-iterations 10 2>/dev/null </dev/null | jq -r .subagent_id)
ask "runs/$two/messages?turn=0"
equal 'the lines of the first one are of call 0' '["c0.1","c0.2"]' \
	"$(of '[.messages[].parts[] | select(.kind == "call").call_id]')"
ask "runs/$two/messages?turn=1"
equal 'then comes that it goes on, and its reply' '["user","assistant"]' "$(of '[.messages[].role]')"
contains 'which is said' 'This run goes on from here' "$T/answer"

# --- a run at work
printf '{"text":"late","delay_ms":600000}\n' >"$T/slow.jsonl"
slow=$(start "$T/slow.jsonl" --background)
asked() { ask "runs/$slow/messages" && [ "$(of '[.messages[].role]')" = '["system","user"]' ]; }
check 'a run at work shows what it was asked' wait_for 10 asked
"$AVA" cancel "$slow" >/dev/null 2>&1

# --- lines that cannot be read, and files that are gone
printf 'not a line\n{"role":"user","content":[{"type":"text","text":"more"}]}\ntorn' >>"$AVA_DATA_ROOT/runs/$one/messages.jsonl"
ask "runs/$one/messages?after=6"
equal 'an unreadable line is named, those behind it are shown' \
	"[[8],1,\"runs/$one/messages.jsonl, line 7\"]" "$(of '[[.messages[].n], .unreadable, .unreadable_first]')"
rm "$AVA_DATA_ROOT/runs/$one/messages.jsonl"
ask "runs/$one/messages"
equal 'what is gone is said' "404 run $one has no messages: they were pruned, or it has only just begun" \
	"$CODE $(of .error.message)"
finish
