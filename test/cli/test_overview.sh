#!/bin/sh
# What runs, at a glance: the overview and looking on, waiting for several,
# cancelling all, the status line of a run. terminal.py is the terminal.
. "${0%/*}/lib.sh"
. "$LIB/terminal.sh"
printf 'int kettle(void)\n{\n\treturn 0;\n}\n' >kettle.c
cat >"$T/slow.jsonl" <<'Y'
{"tool_calls":[{"name":"read_file","args":{"path":"kettle.c"}}]}
{"text":"late","delay_ms":600000}
Y
slow="offline:$T/slow.jsonl"
start_daemon --service

begin() { "$AVA" run --yes --background --json --model "$slow" "$1" 2>/dev/null | jq -r .subagent_id; }
read_it() { [ "$("$AVA" status --json "$1" | jq -r .iteration)" = 2 ]; }
# --- the overview

run "$AVA" status
contains 'nothing has been spent' 'Today: $0.00, 0 tokens, 0 runs' "$OUT"
lacks 'nobody but us has asked' 'asked by' "$OUT"
lacks 'and there is no page' 'page:' "$OUT"
printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}' \
	'{"jsonrpc":"2.0","id":2,"method":"session/list","params":{}}' | "$AVA" acp >"$T/acp"
echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}' | "$AVA" mcp >"$T/mcp"
"$AVA" dashboard --no-open >"$T/page"
run "$AVA" status
check 'each door that was used is told' grep -Eq '^asked by acp [0-9.]+s ago, mcp [0-9.]+s ago$' "$OUT" || note "$(cat "$OUT")"
contains 'and where the page is' "page: $(sed 's,/#.*,,' "$T/page")" "$OUT"
run "$AVA" doctor
contains 'also by doctor' "$(sed 's,/#.*,,' "$T/page")" "$OUT"
"$AVA" run --yes 'find kettle' >/dev/null 2>&1
one=$(begin 'the first slow one')
two=$(begin 'the second slow one')
check 'both are at work' wait_for 30 read_it "$one"
check 'so is the other' wait_for 30 read_it "$two"
curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" http://x/api/v1/runs \
	-d '{"task":"one that waits","cwd":"/"}' >"$T/proposed"
run "$AVA" status
exits 'status' 0
contains 'slots' '2 of 8 slots used, 0 queued, 3 runs in all' "$OUT"
check 'a live run is one line' grep -Eq "^$one  Researcher running \(.*s, .* tokens, \\\$0.00\)" "$OUT"
contains 'what waits for an answer' "$(jq -r .proposal_id "$T/proposed")  Researcher, up to \$0.00, 10 min left: one that waits" "$OUT"
equal 'as JSON: all of it' 'health proposals runs sessions 2 1 3' "$("$AVA" status --json |
	jq -r '"\(keys | join(" ")) \(.runs | length) \(.proposals | length) \(.health.today.runs)"')"
run "$AVA" status "$one"
check 'its times are local' grep -Eq '^started +[0-9-]{10} [0-9:]{8}$' "$OUT"
check 'its rights are said in words' grep -Eq "^rights +reads your data, reads the web, can't send data out$" "$OUT"
run "$AVA" sessions
exits 'sessions' 0
contains 'there is none' 'There is no conversation yet' "$OUT"
printf 'hello\n' | "$AVA" >/dev/null 2>&1
equal 'a conversation is listed' hello "$("$AVA" sessions --json | jq -r '.[0].title')"
run "$AVA" sessions
contains 'in the table too' 'hello' "$OUT"

at 40 "see $two" -- "$AVA" status
exits 'at a terminal' 0
at_most 'it fits into 40 columns' 40 "$(widest "$T/raw")"
run "$AVA" status --watch
exits 'it is not followed: watch does that' 2

# --- waiting for several

run "$AVA" wait --timeout 0.2 "$one" "$two"
exits 'the wait ran out' 124
contains 'it is told which go on' "$one has not ended yet; it goes on" "$ERR"
contains 'all of them' "$two has not ended yet; it goes on" "$ERR"
"$AVA" wait "$one" "$two" "$one" >"$T/wait" 2>&1 &
waiter=$!
keep "$waiter"
run "$AVA" cancel "$two"
exits 'cancel' 0
contains 'with proof' "$two cancelled (stopped: a model call; nothing of it is left)" "$OUT"
check 'whoever ends first is told first' wait_for 30 grep -q "^$two ⏹" "$T/wait"
refuse 'the other one goes on' grep -q "^$one" "$T/wait"

# --- cancelling all

at 80 'see [Yes/No] ' 'type no\n' -- "$AVA" cancel --all
exits 'a no cancels nothing' 4
contains 'what would be cancelled is shown' "$one Researcher running" "$T/raw"
equal 'it is at work' 1 "$("$AVA" ps --json | jq length)"
at 80 'see [Yes/No] ' 'type yes\n' -- "$AVA" cancel --all
exits 'a yes cancels all' 0
equal 'none is live' 0 "$("$AVA" ps --json | jq length)"
wait "$waiter"
equal 'the wait ends with the worst code' 1 $?
equal 'each is told once' 1 "$(grep -c "^$one" "$T/wait")"
run "$AVA" cancel S-000000 "$one"
exits 'one that is not known' 5
contains 'the other is told of' "$one had ended: cancelled" "$OUT"

# --- a run's status line

at 110 'see (1' 'see tokens)... reply 2 of ' 'type ^C' -- "$AVA" run --yes --model "$slow" 'slow again'
exits 'a run at a terminal' 1
check 'its status is written over' grep -q "$(printf '\r')🔍 Researcher running (.*s, .* tokens)\.\.\." "$T/raw"
refuse 'without an escape' grep -q "$(printf '\033')\[K" "$T/raw"
run "$AVA" run --yes --json --timeout 0.3 --model "$slow" 'slow once more'
exits 'elsewhere' 3
refuse 'there is none' grep -q 'running (' "$ERR"
equal 'and one object' 1 "$(jq -s length "$OUT")"
run "$AVA" run --json --yes --role no_such_role 'anything'
check 'an error is an object too' jq -e '.error.message' "$OUT"

# --- material

printf 'from a pipe\n' >"$T/note"
run sh -c '"$AVA" run --yes --json --file - --file "$T/src/kettle.c" "find kettle" <"$T/note"'
exits 'a file from standard input' 0
spec=$AVA_DATA_ROOT/runs/$(jq -r .subagent_id "$OUT")/messages.jsonl
contains 'is in the conversation' 'from a pipe' "$spec"
contains 'under a name' '--- file standard input ---' "$spec"
run sh -c 'echo x | "$AVA" run --yes --file - -'
exits 'not for the task and a file' 2
finish
