#!/bin/sh
# Answers as `ava run` and `ava confirm` take them: words until there is a yes, keys, a terminal;
# who is asked at all; and kill -9 between the steps. What each answer does: test_proposals.c.
. "${0%/*}/lib.sh"

mkdir "$T/src"
cd "$T/src" || exit 99
printf 'int kettle(void)\n{\n\treturn boil(); /* NOTE: hot */\n}\n' >kettle.c

ask() { curl -s --max-time 60 --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/v1$1" -d "$2"; }
propose() { ask /runs '{"task":"find kettle","cwd":"'"$T/src"'"'"${1:-}"'}' | jq -r .proposal_id; }
of() { "$AVA" proposals "$1" --json | jq -r "$2"; }
nruns() { "$AVA" ps -a --json | jq length; }

# --- ava run

run sh -c 'printf "4 minutes max\nyes but up to \$3\nhm\nsure, max 20 cents\n" | "$AVA" run "find kettle"'
exits 'a change is quoted again until there is a yes' 0
equal 'three quotes were shown' 3 "$(grep -c 'Proceed? ' "$OUT")"
contains 'what the second has otherwise' 'Instead, at most 4 min (P-' "$OUT"
contains 'and the third' 'Instead, up to $3.00 (P-' "$OUT"
contains 'one answer was not understood' 'please answer yes or no, or say what to change' "$OUT"
contains 'the yes says with what' 'Confirmed, up to $0.20.' "$OUT"
equal 'one run was started' 1 "$(nruns)"

run sh -c 'printf "max 20 cents\n" | "$AVA" run "find kettle"'
exits 'the end of input after a change is no' 4
equal 'and no proposal is left' '[]' "$("$AVA" proposals --json)"
run sh -c 'printf "yes\\000 but not now\n" | "$AVA" run "find kettle"'
exits 'a NUL hides nothing' 4
run sh -c 'printf "without bash\nuse no-such-model\n0 minutes\nyes\n" | "$AVA" run "find kettle"'
exits 'three times what cannot be' 4
contains 'is told: the tool' 'there is no tool bash to leave out' "$OUT"
i=0
while [ $i -lt 25 ]; do
	echo "$((i + 1)) minutes max"
	i=$((i + 1))
done >"$T/many"
run sh -c '"$AVA" run "find kettle" <"$T/many"'
exits 'changes have an end' 4
contains 'that is told' 'too many changes' "$ERR"
equal 'and nothing more was started' 1 "$(nruns)"

# --- ava confirm

first=$(propose)
run "$AVA" confirm "$first" --set max_cost_cents=12.5 --set timeout=90 --set without=search_and_read
exits 'confirm --set' 0
equal 'what was set is in the log, and no word that nobody said' \
	'yes, with max_cost_cents=12.5, timeout=90, without=search_and_read' \
	"$("$AVA" logs --type UserMessage -o json | tail -n 1 | jq -r .content.text)"
contains 'says what it changed' \
	'is confirmed, up to $0.1250, at most 1 min 30 s, without search_and_read, and runs as S-' "$OUT"
run "$AVA" confirm "$first" --set timeout=80
exits 'another after it is none' 1
contains 'and says what runs' 'was confirmed already and runs as S-' "$ERR"

second=$(propose)
run "$AVA" confirm "$second" --set max_cost_cents=500
exits 'a raise starts nothing' 4
third=$(of "$second" .replaced_by)
contains 'shows the new quote' 'Proceed? [Yes/No]' "$OUT"
contains 'and its id' "$second was replaced by $third, which waits for its answer" "$ERR"
run "$AVA" reject "$second"
exits 'the old one cannot be rejected' 4
run "$AVA" confirm --json "$third" --answer 'Yes please!'
exits 'the new one can be confirmed, in words' 0
run "$AVA" confirm "$(propose)" --answer 'no, thanks'
exits 'a no in words' 4
contains 'is a rejection' 'is rejected: nothing was started' "$ERR"
fourth=$(propose)
run "$AVA" confirm "$fourth" --answer 'should I say yes?'
exits 'a question is no answer' 2
contains 'and what would be is said' 'please answer yes or no, or say what to change' "$ERR"
for bad in max_cost=5 max_cost_cents max_cost_cents= max_cost_cents=5c max_tokens=1.5 \
	extended_thinking=maybe =5; do
	run "$AVA" confirm "$fourth" --set "$bad"
	exits "--set $bad is a usage error" 2
done
run "$AVA" confirm "$fourth" --set timeout=5 --set timeout=6
exits 'so is one key twice' 2
equal 'it waits on' pending "$(of "$fourth" .state)"
run "$AVA" reject "$fourth"

# --- kill -9: before an answer, while it is written, behind it

# The socket of the killed one is still there: `ava` waits for the next.
again()
{
	kill_daemon
	start_daemon
	"$AVA" ps >/dev/null
}

# killed WORDS: an answer that is asked for while the daemon dies, and once more; what came of it in $OUT.
killed()
{
	id=$(propose)
	again
	ask "/proposals/$id/confirm" "{\"answer\":\"$1\"}" >/dev/null &
	asking=$!
	again
	wait "$asking"
	run ask "/proposals/$id/confirm" "{\"answer\":\"$1\"}"
	again
}

runs_before=$(nruns)
killed 'yes, but max 7 cents'
run_id=$(jq -r .subagent_id "$OUT")
equal 'an answer is confirmed' "confirmed $(of "$id" .confirmed_hash)" "$(jq -r '"\(.state) \(.confirmed_hash)"' "$OUT")"
run ask "/proposals/$id/confirm" '{"answer":"yes, but max 7 cents"}'
equal 'and is the same run after all' "$run_id" "$(jq -r .subagent_id "$OUT")"
equal 'with its trace' "$(head -n 1 "$AVA_DATA_ROOT/logs/subagents/$run_id.jsonl" | jq -r .traceId)" \
	"$(of "$id" .trace_id)"
equal 'of what was confirmed' "$(jq -r .confirmed_hash "$OUT")" \
	"$(head -n 1 "$AVA_DATA_ROOT/runs/$run_id/messages.jsonl" | jq -r .spec.configHash)"
equal 'one run' $((runs_before + 1)) "$(nruns)"
killed 'up to $9'
other=$(jq -r .proposal_id "$OUT")
equal 'a new quote is one, too' "$other" "$(of "$id" .replaced_by)"
equal 'and alone waits' "$other" "$("$AVA" proposals --json | jq -r '.[].proposal_id')"
"$AVA" reject "$other" >/dev/null
check 'every line of the log is as it should be' python3 "$SRCDIR/test/check_events.py" \
	"$AVA_DATA_ROOT"/logs/ava/*.jsonl

# --- who is asked

stop_daemon
AVA_CONFIRM=over_cents:5
export AVA_CONFIRM
run "$AVA" run 'find kettle' </dev/null
exits 'what is free is not asked about' 0
contains 'and that is said' 'Not asked: confirm is set so.' "$OUT"
id=$(propose ',"confirm":"always"')
equal 'a request may want it' pending "$(of "$id" .state)"
run "$AVA" proposals "$id"
contains 'a proposal is shown whole' '• Tools: ' "$OUT"
contains 'with its folder' "• Folder: $T/src" "$OUT"
contains 'and how it stands' "$id: open, " "$OUT"
run "$AVA" proposals P-000000
exits 'one that is none' 5

# --- ava confirm on a terminal: it may have been proposed at another door
python3 "$LIB/terminal.py" 80 "$T/shown" 'see Proceed? [Yes/No]' 'type \n' -- "$AVA" confirm "$id" 2>"$ERR"
equal 'no answer is none' '4 pending' "$? $(of "$id" .state)"
n=$(nruns)
python3 "$LIB/terminal.py" 80 "$T/shown" "see Folder: $T/src" 'see Proceed? [Yes/No]' 'type yes, but max 3 cents\n' -- "$AVA" confirm "$id" 2>"$ERR"
equal 'the quote is shown, and the answer is what is typed' "0 up to \$0.03" "$? $("$AVA" logs --type SpawnConfirmed -n 1 -o json | jq -r .content.changes)"
equal 'and starts it once' $((n + 1)) "$(nruns)"
stop_daemon
unset AVA_MODEL
OPENAI_API_KEY=sk-of-a-test-and-never-sent
export OPENAI_API_KEY
run sh -c 'echo no | "$AVA" run --max-cost-cents 5.01 "find kettle"'
exits 'what may cost more is asked about' 4
stop_daemon
AVA_CONFIRM=sometimes
run "$AVA" ps
exits 'a policy that is none stops the start' 2
contains 'with a sentence' 'AVA_CONFIRM is "sometimes"; it must be always, never or over_cents:N' "$ERR"

finish
