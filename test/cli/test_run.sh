#!/bin/sh
# ava run: the quote and its answer, what goes where, exit codes, cancelling.
. "${0%/*}/lib.sh"

mkdir "$T/src"
cd "$T/src" || exit 99
printf 'int kettle(void)\n{\n\treturn boil(); /* NOTE: hot */\n}\n' >kettle.c
printf '%s\n' '{"text":"","tool_calls":[{"name":"read_file","args":{"path":"kettle.c"}}],"delay_ms":60000}' >"$T/slow.jsonl"
slow="offline:$T/slow.jsonl"

# --- yes, no, end of input

run sh -c 'echo yes | "$AVA" run "find where kettle is defined"'
exits 'yes runs it' 0
contains 'the quote is shown' 'Proceed? [Yes/No]' "$OUT"
contains 'and its cost' 'Cost: up to $0.00' "$OUT"
equal 'and the folder, before the question' "• Folder: $T/src|Proceed? [Yes/No]" \
	"$(grep -B1 '^Proceed' "$OUT" | tr '\n' '|' | sed 's/|$//')"
contains 'the start is told' '🚀 Spawning ' "$OUT"
equal 'and that it has its slot, once' 1 "$(grep -c '\] Starting\.\.\.$' "$OUT")"
contains 'so is what it does' '🔍 [' "$OUT"
contains 'and the end' '✅ Subagent [' "$OUT"
contains 'findings have path and line' 'kettle.c:1' "$OUT"
contains 'the log is named' 'Log: ava logs S-' "$OUT"
lacks 'nothing is wrong' 'ava:' "$ERR"
id=$(sed -n 's/^Log: ava logs \(S-[0-9a-f]*\),.*/\1/p' "$OUT")
run "$AVA" result "$id"
equal 'its result is had again, below how it ended' "$id: Complete|" "$(head -n 2 "$OUT" | tr '\n' '|' | sed 's/|$//')"

run sh -c 'cd / && echo no | "$AVA" run "find kettle"'
contains 'all of the machine is a warning' 'That is all of this machine' "$OUT"
run sh -c 'cd && echo no | "$AVA" run "find kettle"'
contains 'all of the home folder, too' 'That is all of your home' "$OUT"
printf '{"task":"find kettle"}\n{"task":"find pots"}\n' >"$T/two"
run sh -c 'echo no | "$AVA" run --parallel "$1"' sh "$T/two"
equal 'a group has its folder once' "• Folder: $T/src" "$(grep Folder "$OUT")"
for how in '' --yes; do
	run "$AVA" run --model claude-haiku $how 'find kettle'
	exits "a model that cannot be had is refused $how" 2
	contains 'and says why' 'no service has a key, so claude-haiku would be the offline model' "$ERR"
done

run sh -c 'echo no | "$AVA" run "find where kettle is defined"'
exits 'no starts nothing' 4
contains 'and says so' 'is rejected: nothing was started' "$ERR"
lacks 'nothing is spawned' 'Spawning' "$OUT"

run sh -c '"$AVA" run "find kettle" </dev/null'
exits 'the end of input is no' 4
contains 'and --yes is named' '--yes' "$ERR"

run sh -c 'printf "perhaps\n\nyes\n" | "$AVA" run "find kettle"'
exits 'what is neither is asked again' 0
equal 'twice here' 2 "$(grep -c '^please answer yes or no' "$OUT")"

run sh -c 'printf "a\nb\nc\nyes\n" | "$AVA" run "find kettle"'
exits 'three times at most' 4

equal 'each no is in the log' 6 "$("$AVA" logs --type SpawnRejected -o json | wc -l | tr -d ' ')"
equal 'two runs were started' 2 "$("$AVA" ps -a --json | jq length)"

# --- --yes, --json, --background, "-"

run "$AVA" run --yes 'find kettle'
exits '--yes needs no answer' 0
contains 'the quote is on stderr' 'Estimated:' "$ERR"
lacks 'nobody is asked' 'Proceed?' "$ERR"
lacks 'and not on stdout' 'Estimated:' "$OUT"

run "$AVA" run --yes --role researcher 'find kettle'
lacks 'nor is thinking told of a model that does not' "thinking" "$ERR"
run "$AVA" run --yes --role researcher --no-thinking 'find kettle'
contains 'unless it is told not to' "• Model: offline" "$ERR"
lacks 'then it does not' "thinking" "$ERR"
run "$AVA" run --yes --json 'find kettle'
exits '--json' 0
equal 'one object is on stdout' 1 "$(jq -s length "$OUT")"
equal 'it is the result' success "$(jq -r .status "$OUT")"
equal 'with real places' kettle.c:1 "$(jq -r '[.citations[] | "\(.path):\(.line)"] | sort | .[0]' "$OUT")"
contains 'all else is on stderr' 'Spawning' "$ERR"

run sh -c 'echo no | "$AVA" run --json "find kettle"'
exits 'a rejection in JSON' 4
equal 'is one object' rejected "$(jq -r .state "$OUT")"

run sh -c 'echo "find kettle" | "$AVA" run --yes --json -'
exits 'the task from stdin' 0
equal 'is the task' 'find kettle' "$("$AVA" ps -a -n 1 --json | jq -r '.[0].task' | head -n 1)"

printf 'the kettle is in the kitchen\n' >"$T/note"
run "$AVA" run --yes --json --context 'mind the steam' --file "$T/note" 'find kettle'
exits 'context and a file' 0
spec=$AVA_DATA_ROOT/runs/$(jq -r .subagent_id "$OUT")/messages.jsonl
contains 'the file is in the conversation' 'the kettle is in the kitchen' "$spec"
contains 'under its name' "--- file $T/note ---" "$spec"
contains 'and the context too' 'mind the steam' "$spec"

run "$AVA" run --yes --background --json --model "$slow" 'a slow one'
exits '--background returns' 0
slow_run=$(jq -r .subagent_id "$OUT")
equal 'while it runs' 1 "$("$AVA" ps --json | jq length)"
run "$AVA" cancel "$slow_run"
exits 'and it can be cancelled' 0

# --- exit codes of runs that end otherwise

run "$AVA" run --yes --json --timeout 0.5 --model "$slow" 'a slow one'
exits 'the time limit' 3
equal 'is the status' timeout "$(jq -r .status "$OUT")"
contains 'and is told' '⚠️ Subagent [Researcher]: Stopped at its limit of ' "$ERR"

printf '%s\n' '{"text":"","tool_calls":[{"name":"read_file","args":{"path":"kettle.c"}}]}' \
	'{"text":"","tool_calls":[{"name":"read_file","args":{"path":"kettle.c"}}]}' >"$T/two.jsonl"
run "$AVA" run --yes --json --max-iterations 1 --model "offline:$T/two.jsonl" 'read twice'
exits 'the limit of iterations' 3
equal 'is the status too' iterations_exceeded "$(jq -r .status "$OUT")"
id=$(jq -r .subagent_id "$OUT")
contains 'is told with what goes on' \
	"Stopped at its limit of 1 reply (" "$ERR"
contains 'which is a command' "; \`ava resume $id --max-iterations 2\` goes on" "$ERR"
run "$AVA" result "$id"
contains 'its result says it too' "$id: Stopped at its limit of 1 reply; \`ava resume $id" "$OUT"
run "$AVA" status "$id"
contains 'and its status' 'status     Stopped at its limit of 1 reply' "$OUT"

printf '%s\n' '{"text":"","tool_calls":[{"name":"submit_result","args":{"summary":"It is at kettle.c:9.",
"output":{},"confidence":0.8,"caveats":[]}}]}' | tr -d '\n' >"$T/false.jsonl"
run "$AVA" run --yes --model "offline:$T/false.jsonl" 'cite what was not read'
exits 'a run that read nothing' 0
contains 'what it cites is marked' 'It is at kettle.c:9 (not found where it was said to be).' "$OUT"
contains 'and counted' '1 of 1 citation was not found where it was said to be' "$OUT"
contains 'also beside its end' '1 of 1 citation was not found where it was said to be' "$ERR"

# --- Ctrl-C

"$AVA" run --yes --model "$slow" 'a slow one' >"$OUT" 2>"$ERR" &
runner=$!
keep "$runner"
one_runs() { [ "$("$AVA" ps --json | jq '[.[] | select(.status == "running")] | length')" = 1 ]; }
check 'it runs' wait_for 10 one_runs
kill -INT "$runner"
wait "$runner"
equal 'Ctrl-C cancels it' 1 $?
equal 'for good' cancelled "$("$AVA" ps -a -n 1 --json | jq -r '.[0].status')"

mkfifo "$T/answer"
"$AVA" run 'find kettle' <"$T/answer" >"$OUT" 2>"$ERR" &
runner=$!
keep "$runner"
exec 9>"$T/answer"
check 'the quote is there' wait_for 10 grep -q 'Proceed' "$OUT"
kill -INT "$runner"
wait "$runner"
equal 'Ctrl-C at the question rejects' 4 $?
exec 9>&-
equal 'and no proposal is left' '[]' "$("$AVA" proposals --json)"

# --- the daemon dies under a run; the command finds its successor

"$AVA" run --yes --json --model "$slow" 'a slow one' >"$OUT" 2>"$ERR" &
runner=$!
keep "$runner"
check 'it runs again' wait_for 10 one_runs
printf '%s\n' '{"tool_calls":[{"name":"submit_result","args":{"summary":"carried on","confidence":1}}]}' \
	>"$T/slow.jsonl"
kill_daemon
wait "$runner"
equal 'a run cut off is carried on' 0 $?
equal 'to its end' 'success carried on' "$(jq -r '"\(.status) \(.summary)"' "$OUT")"

# --- words without UTF-8

run env LC_ALL=C "$AVA" run --yes 'find kettle'
exits 'without UTF-8' 0
equal 'all is ASCII' '' "$(cat "$OUT" "$ERR" | LC_ALL=C tr -d '\000-\177')"
contains 'the words stay' 'Spawning Researcher subagent (S-' "$ERR"
run env LC_ALL=C.UTF-8 TERM=dumb "$AVA" run --yes 'find kettle'
lacks 'so on a dumb terminal' '🚀' "$ERR"

# --- half a service is set

stop_daemon
unset AVA_MODEL
export OPENAI_BASE_URL=http://127.0.0.1:9/v1
half='The offline model is used: OPENAI_BASE_URL is set without OPENAI_API_KEY: set it'
run "$AVA" run --yes 'find kettle'
equal 'why it is offline is said once' 1 "$(grep -c "^$half" "$ERR")"
run sh -c 'echo hello | "$AVA" chat'
equal 'in a chat, too' 1 "$(grep -c "^$half" "$ERR")"
run "$AVA" run --yes --model offline 'find kettle'
lacks 'who asks for it is not told' "$half" "$ERR"

all_replay 'every run replays identically'

finish
