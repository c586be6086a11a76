#!/bin/sh
# Proof before success (--check): a command decides whether a result counts. What a person sees of it
# before and after, what goes back to the model and how often, what ends as unproven, and that
# neither a kill nor a cancel nor an edited script makes a success of what is none.
. "${0%/*}/lib.sh"
command -v bwrap >/dev/null || skip 'no bwrap'
[ -x "${AVAD%/*}/ava-sandbox" ] || skip 'ava-sandbox is not built'
export ANTHROPIC_API_KEY=

. "$LIB/scripted.sh"
repo=$T/repo
mkdir -p "$repo"
printf 'sum() { echo $(($1 - $2)); }\n' >"$repo/sum.sh"
printf '. ./sum.sh\n[ "$(sum 2 3)" = 5 ] && echo PASSED || { echo "FAILED: $(sum 2 3) is not 5"; exit 1; }\n' >"$repo/test.sh"

submit() { turn submit_result "{\"summary\":\"$1\",\"confidence\":1}"; }
mend() { turn edit_file '{"path":"sum.sh","old_string":"$1 - $2","new_string":"$1 + $2"}'; }
# play [OPTION…]: a run over the turns of $T/turns.jsonl, its result in $OUT and its id in $run_id.
play()
{
	"$AVA" run --role code_reviewer --grant rw --yes --json --model "offline:$T/turns.jsonl" \
		'Mend the sum' "$@" >"$OUT" 2>"$ERR" </dev/null
	CODE=$?
	run_id=$(jq -r .subagent_id "$OUT")
}
of() { jq -r "$1" "$OUT"; }
log() { jq -r "$2" "$AVA_DATA_ROOT/logs/subagents/$1.jsonl"; }
cd "$repo" || exit 99

# --- it is quoted, and refused where it could not run

"$AVA" run --role code_reviewer --grant rw --check './test.sh && make x' --check-rounds 3 --model offline 'Mend' \
	>"$OUT" 2>"$ERR" </dev/null
contains 'the quote has the command' '• Check: ./test.sh && make x; a success only when that ends with exit 0' "$OUT"
contains 'where it runs and how often' 'in the sandbox on its copy; else it may mend that 3 times' "$OUT"
contains 'and which file of it the run may change' 'it may change what that runs (test.sh), which its result tells' "$OUT"
run "$AVA" run --role researcher --check true --yes --model offline Mend
contains 'a role without commands has none' 'a check is a command, and role researcher may run none here' "$ERR"
run "$AVA" run --role code_reviewer --check true --check-rounds 11 --yes --model offline Mend
contains 'rounds have a bound' 'check_rounds must be 0 to 10' "$ERR"
run "$AVA" run --role code_reviewer --check "$(printf 'a\nb')" --yes --model offline Mend
contains 'it is one line' 'the check must be one line' "$ERR"
run "$AVA" run --role code_reviewer --check 'curl -H sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' --yes --model offline Mend
contains 'with no key in it' 'the check holds what looks like a key' "$ERR"

# --- a check that passes at its second round

{ submit first; mend; submit second; } >"$T/turns.jsonl"
play --check 'sh test.sh'
equal 'the run is a success' 'success submitted 0' "$(of .status) $(of .stop_reason) $CODE"
equal 'its result has the check' 'sh test.sh 0 2 PASSED true' \
	"$(of '.check | "\(.command) \(.exit) \(.rounds) \(.tail | rtrimstr("\n")) \(.passed)"')"
check 'with a time that is not 0' expr "$(of .check.how)" : 'exit 0, \([1-9][0-9]* ms\|[1-9][0-9]*\.[0-9] s\)$'
equal 'and the summary of what passed' second "$(of .summary)"
contains 'the model read what it said' 'the check of the result did not pass (1 of 3): sh test.sh' "$AVA_DATA_ROOT/runs/$run_id/messages.jsonl"
contains 'with its last lines' 'FAILED: -1 is not 5' "$AVA_DATA_ROOT/runs/$run_id/messages.jsonl"
equal 'each check is two events' 'begun ended begun ended' \
	"$(log "$run_id" 'select(.eventType == "Check").content.state' | tr '\n' ' ' | sed 's/ $//')"
equal 'the project is unchanged' 1 "$(grep -c -- '- \$2' "$repo/sum.sh")"
run "$AVA" replay "$run_id"
exits 'it replays' 0

# --- one that never passes

{ submit first; submit second; submit third; } >"$T/turns.jsonl"
play --check 'sh test.sh'
equal 'the third failure ends it' 'unproven check 1' "$(of .status) $(of .stop_reason) $CODE"
contains 'with the reason' 'its check did not pass: exit 1' "$OUT"
equal 'its result is kept' 'third false' "$(of .summary) $(of .partial)"
run "$AVA" result "$run_id"
contains 'ava result says so' 'Check did not pass: `sh test.sh`, exit 1' "$OUT"
refuse 'once' grep -q '^Error' "$OUT"
contains 'with its last lines' '  | FAILED: -1 is not 5' "$OUT"
run "$AVA" ps -a
contains 'and the list' unproven "$OUT"
contains 'its log has a line of it' 'Check ended failed, exit 1' "$("$AVA" logs "$run_id" >"$T/log" 2>&1; echo "$T/log")"
unproven=$run_id

# --- and goes on with its check

{ submit 1; submit 2; submit 3; submit 4; mend; submit mended; } >"$T/turns.jsonl"
"$AVA" resume "$unproven" --yes --json --model "offline:$T/turns.jsonl" >"$OUT" 2>"$ERR" </dev/null
equal 'a resumed run has the same check' 'success sh test.sh true' "$(of '"\(.status) \(.check.command) \(.check.passed)"')"

# --- edited, read-only, and what a command writes

{ turn write_file '{"path":"test.sh","content":"exit 0\n"}'; submit done; } >"$T/turns.jsonl"
play --check './test.sh || sh ./test.sh'
equal 'a script that it edited is named' 'success test.sh' "$(of '"\(.status) \(.check.edited[])"')"
contains 'in a caveat too' 'test.sh changed in its copy, and the check runs it' "$OUT"

submit done >"$T/turns.jsonl"
"$AVA" run --role code_reviewer --yes --json --model "offline:$T/turns.jsonl" --check 'touch x || { printf "\033[31mred\033[0m\n"; seq 4000; echo "token sk-ant-api03"-$(seq -s B 60 | tr -d 0-9); echo end; exit 3; }' \
	--check-rounds 0 Look >"$OUT" 2>"$ERR" </dev/null
equal 'without rw the folder is read-only' 'unproven 3 1' "$(of '"\(.status) \(.check.exit) \(.check.rounds)"')"
equal 'its last lines are the last' end "$(of '.check.tail | rtrimstr("\n")' | tail -1)"
lacks 'and have a bound' '2000' "$OUT"
run_id=$(of .subagent_id)
cat "$OUT" "$AVA_DATA_ROOT/logs/subagents/$run_id.jsonl" "$AVA_DATA_ROOT/runs/$run_id/messages.jsonl" >"$T/all"
contains 'what it said is in its record' 'token ' "$T/all"
lacks 'without escapes for a terminal' 'u001b' "$T/all"
jq 'select(.eventType == "Check").content.output' "$AVA_DATA_ROOT/logs/subagents/$run_id.jsonl" >"$T/said"
contains 'and without secrets' '[redacted]' "$T/said"
check 'nothing was written there' test ! -e "$repo/x"

{ submit a; submit b; } >"$T/turns.jsonl"
play --check 'no-such-program --all' --check-rounds 1
equal 'a command that is missing is no success' 'unproven 127 2' "$(of '"\(.status) \(.check.exit) \(.check.rounds)"')"
contains 'and is told as that' 'there is no such command' "$OUT"

# --- what the project's code leaves in HOME at one check is not there at the next

{ submit a; submit b; } >"$T/turns.jsonl"
play --check 'test -e ~/left || { touch ~/left; false; }' --check-rounds 1
equal 'each check has an empty HOME' 'unproven 1 2' "$(of '"\(.status) \(.check.exit) \(.check.rounds)"')"

# --- a role has one, a limit comes behind it

mkdir -p "$XDG_CONFIG_HOME/ava/agents"
printf -- '---\nname: prover\ndescription: proves\ntools: [read_file, run_bash, edit_file]\ncheck: sh test.sh\n---\nProve it.\n' \
	>"$XDG_CONFIG_HOME/ava/agents/prover.md"
{ mend; submit done; } >"$T/turns.jsonl"
"$AVA" run --role prover --grant rw --yes --json --model "offline:$T/turns.jsonl" 'Mend it' >"$OUT" 2>"$ERR" </dev/null
equal 'the check of a role' 'success sh test.sh' "$(of '"\(.status) \(.check.command)"')"
{ submit done; submit again; } >"$T/turns.jsonl"
play --check 'sh test.sh' --max-iterations 1
equal 'a limit behind it has its own status' 'iterations_exceeded done false' "$(of '"\(.status) \(.summary) \(.check.passed)"')"
contains 'and says what the check said' 'its check did not pass: exit 1' "$OUT"

# --- a person raises the limit

start_daemon
begin() { "$AVA" run --role code_reviewer --grant rw --yes --background --model "offline:$T/turns.jsonl" 'Mend the sum' "$@" >"$OUT" 2>"$ERR" </dev/null
	run_id=$(grep -o 'S-[0-9a-f]*' "$OUT" | head -1); }
status_is() { "$AVA" status "$run_id" --json | jq -e --arg s "$1" '.status == $s' >/dev/null; }
result_of() { cat "$AVA_DATA_ROOT/runs/$run_id/result.json" >"$OUT"; }
{ submit done; mend; submit mended; } >"$T/turns.jsonl"
begin --check 'sh test.sh' --max-iterations 1 --on-limit ask
check 'a failed check at a limit asks' wait_for 20 status_is waiting
run "$AVA" steer "$run_id" yes
check 'and again' wait_for 20 status_is waiting
run "$AVA" steer "$run_id" yes
check 'until it passes' wait_for 20 status_is success

# --- kill -9 while it runs, a cancel, and time

gate='touch $HOME/at; until [ -e $HOME/go ]; do sleep 0.1; done; sh test.sh'
{ mend; submit mended; } >"$T/turns.jsonl"
begin --check "$gate"
go() { ls "$AVA_DATA_ROOT/runs/$run_id"/check/*/at >/dev/null 2>&1; }
begun() { [ "$(log "$run_id" 'select(.eventType == "Check").content.state' | grep -c begun)" -ge "$1" ]; }
check 'the check waits at a gate' wait_for 20 go
kill_daemon
start_daemon
check 'after kill -9 it is run again' wait_for 20 begun 2
for home in "$AVA_DATA_ROOT/runs/$run_id"/check/*; do : >"$home/go"; done
check 'and decides as ever' wait_for 20 status_is success
equal 'the record has both' 'begun begun ended' "$(log "$run_id" 'select(.eventType == "Check").content.state' | tr '\n' ' ' | sed 's/ $//')"
run "$AVA" replay "$run_id"
exits 'and replays' 0

begin --check ": marker-$$; $gate"
check 'another one waits' wait_for 20 go
run "$AVA" cancel "$run_id"
check 'a cancel ends it' wait_for 20 status_is cancelled
none() { ! pgrep -f "marker-$$; touc[h]" >/dev/null; }
check 'and its processes' wait_for 20 none
result_of
equal 'with what it had handed in' mended "$(of .summary)"
equal 'and what became of the check' 'cancelled true' "$(of '.check | "\(.how) \(.seconds > 0)"')"
stop_daemon

own_clock
start_daemon
begin --check "$gate" --timeout 600
check 'a third one waits' wait_for 20 go
skip_time 599
skip_until 60 status_is timeout
check 'its time is the run'"'"'s' status_is timeout
result_of
contains 'which says so' "its check did not finish: ended by the run's time limit" "$OUT"
equal 'and how long it had' true "$(of '.check | .seconds > 500 and .exit == null and .rounds == 1')"
run "$AVA" replay "$run_id"
exits 'and such a run replays' 0
stop_daemon
check 'every line of the logs is as it should be' python3 "$SRCDIR/test/check_events.py" \
	"$AVA_DATA_ROOT"/logs/ava/*.jsonl "$AVA_DATA_ROOT"/logs/subagents/*.jsonl
finish
