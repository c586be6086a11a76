#!/bin/sh
# ava resume: an ended run goes on as a new one, with its conversation and a new
# budget, against the strict model service. What did not end goes on by itself.
. "${0%/*}/lib.sh"
. "$LIB/models.sh"
models tool=read_file 'args={"path":"a.txt"}'
mkdir "$T/work"
cd "$T/work" || exit 99
printf 'one\ntwo\n' >a.txt

# begun MODEL PLAN OPTION...: run to its end; its result is in $OUT.
begun()
{
	begun_model=$1 begun_plan=$2
	shift 2
	run "$AVA" run "Look at a.txt. [[mock $begun_plan]]" --model "$begun_model" --role code_reviewer \
		--yes --json "$@"
	ONE=$(jq -r .subagent_id "$OUT")
}
lines() { grep -c '^{"role":' "$AVA_DATA_ROOT/runs/$1/messages.jsonl"; }
# The messages of $1 begin those of $2.
extends()
{
	grep '^{"role":' "$AVA_DATA_ROOT/runs/$1/messages.jsonl" >"$T/before"
	grep '^{"role":' "$AVA_DATA_ROOT/runs/$2/messages.jsonl" | head -n "$(lines "$1")" |
		cmp -s - "$T/before"
}

# --- a run that had reached a limit

for model in anthropic/claude-haiku-4-5 openrouter/some/model; do
	begun $model turns=4 --max-iterations 1
	equal "$model: the first one ends at its limit" iterations "$(jq -r .stop_reason "$OUT")"
	run "$AVA" resume "$ONE" --yes --json --max-iterations 10
	exits "$model: resumed" 0
	contains "$model: the quote says what it goes on from" "to go on from $ONE and look at" "$ERR"
	TWO=$(jq -r .subagent_id "$OUT")
	equal "$model: to its end" success "$(jq -r .status "$OUT")"
	check "$model: with an id of its own" [ "$ONE" != "$TWO" ]
	check "$model: its messages begin with those of the first" extends "$ONE" "$TWO"
	equal "$model: it made what was left of the calls" 4 "$(jq -r .iterations "$OUT")"
	equal "$model: where it came from stands in its log" "$ONE" "$("$AVA" logs "$TWO" -o json |
		jq -r 'select(.eventType == "SubagentSpawn").content.resumedFrom')"
	equal "$model: the first one is as it was" iterations \
		"$("$AVA" result "$ONE" --json | jq -r .stop_reason)"
done
none_refused 'no request was refused'
equal 'each extends the last' 0 "$(stat .prefixBroken)"

# --- one that succeeded, with words about what it did: its model reads them, once

words="in a.txt:2 it should be three"
run curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/v1/runs/$TWO/resume" -d '{"confirmed":true,"context":"'"$words"'"}'
THREE=$(jq -r .subagent_id "$OUT")
run "$AVA" result "$THREE" --wait
equal 'another context stands behind the notice that it goes on' 1 \
	"$(grep -c "goes on from here.*$words" "$AVA_DATA_ROOT/runs/$THREE/messages.jsonl")"
run curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/v1/runs/$THREE/resume" -d '{"confirmed":true}'
THREE=$(jq -r .subagent_id "$OUT")
run "$AVA" result "$THREE" --wait
equal 'and is not said again' 1 "$(grep -c "goes on from here.*$words" "$AVA_DATA_ROOT/runs/$THREE/messages.jsonl")"
none_refused 'no such request was refused'

# --- asked first, with the limits that it had

run sh -c "echo no | '$AVA' resume $ONE"
exits 'a no starts nothing' 4
contains 'after a quote' 'Proceed' "$OUT"
run "$AVA" resume S-ffffff --yes
exits 'one that is not known' 5
begun anthropic/claude-haiku-4-5 'turns=1 latency=60000' --background
run "$AVA" resume "$ONE" --yes
exits 'one at work' 1
contains 'goes on by itself' 'has not ended' "$ERR"
"$AVA" cancel "$ONE" >/dev/null 2>&1
run "$AVA" resume "$TWO" --yes --model anthropic/claude-haiku-4-5
exits 'a model of another kind is refused' 2
contains 'in words' 'resume it with a model of the same kind' "$ERR"
rm -r "$AVA_DATA_ROOT/runs/$TWO"
run "$AVA" resume "$TWO" --yes
exits 'one whose messages are gone' 5
contains 'says so' 'are not kept' "$ERR"

finish
