#!/bin/sh
# budget.day_cents: runs that would spend more together wait for each other, are
# made shorter and at last end with that reason; a restart forgets nothing.
. "${0%/*}/lib.sh"
. "$LIB/models.sh"

models turns=3 tool=read_file 'args={"path":"a.txt"}' output=1000 latency=20
spent() { stat .costMicroUsd; }
export AVA_RUNS_MAX=12 AVA_BUDGET_DAY_CENTS=40
mkdir "$T/work" && cd "$T/work" && echo one >a.txt

run_one()
{
	"$AVA" run "Look at a.txt, $1." --model anthropic/claude-sonnet-4-5 --role code_reviewer \
		--yes --background --json 2>/dev/null </dev/null | jq -r .subagent_id
}
start_daemon || { result 1 'avad serves' || finish; }
i=0
while [ $i -lt 12 ]; do
	i=$((i + 1))
	run_one $i >>"$T/ids"
done
check 'twelve runs began' [ "$(grep -c '^S-' "$T/ids")" = 12 ]
"$AVA" wait --timeout 120 $(cat "$T/ids") >/dev/null 2>&1
while read -r id; do "$AVA" result "$id" --json </dev/null; done <"$T/ids" >"$T/results"
check 'all of them ended' [ "$(jq -s length "$T/results")" = 12 ]
check 'some could finish' [ "$(jq -s 'map(select(.status == "success")) | length' "$T/results")" -gt 0 ]
check 'some could not pay' [ "$(jq -s 'map(select(.status == "cost_exceeded")) | length' "$T/results")" -gt 0 ]
check 'they say which budget it was' [ "$(jq -s 'map(select(.status == "cost_exceeded" and
	(.error | contains("budget.day_cents") | not))) | length' "$T/results")" = 0 ]
check 'no more was spent than the day allows' [ "$(spent)" -le 400000 ]
said=$(jq -s 'map(.cost_cents * 10000) | add | round' "$T/results")
check 'what they say they cost is what was billed, each call rounded up' \
	[ "$said" -ge "$(spent)" -a "$said" -le $(($(spent) + 100)) ]
check 'most of it was used' [ "$(spent)" -ge 300000 ]

run "$AVA" status
contains 'the overview shows it' 'budget of the day: $0.3' "$OUT"

# The next start knows what today has cost.
stop_daemon
before=$(spent)
start_daemon
id=$(run_one 13)
"$AVA" wait --timeout 60 "$id" >/dev/null 2>&1
equal 'after a restart nothing is left either' cost_exceeded \
	"$("$AVA" result "$id" --json </dev/null | jq -r .status)"
equal 'and nothing was asked for' "$before" "$(spent)"

# Ava's own turns draw on it too, and are remembered.
stop_daemon
export AVA_DATA_ROOT="$T/other" AVA_BUDGET_DAY_CENTS=3
start_daemon
before=$(spent)
echo 'hello there' | "$AVA" chat >"$T/chat1" 2>&1
asked() { [ "$(spent)" -gt "$before" ]; }
check 'Ava speaks' asked
before=$(spent)
kill_daemon
start_daemon
echo 'hello again' | "$AVA" chat >"$T/chat2" 2>&1
contains 'until the day has no more' "today's budget of 3 cents" "$T/chat2"
equal 'which a kill does not forget' "$before" "$(spent)"

# What a service reports counts, whether the list knows a price or says that it is free.
for model in sonnet haiku; do # of each its own: what is cached costs less
	[ $model = sonnet ] && prices=unknown || prices='{input: 0, output: 0}'
	stop_daemon
	export AVA_DATA_ROOT="$T/reported" AVA_BUDGET_DAY_CENTS=1
	rm -rf "$AVA_DATA_ROOT"
	mkdir -p "$XDG_CONFIG_HOME/ava"
	printf 'models:\n  list:\n    - id: openrouter/anthropic/claude-%s-4.5\n      prices: %s\n' \
		$model "$prices" >"$XDG_CONFIG_HOME/ava/config.yaml"
	run "$AVA" run 'Look at a.txt.' --model openrouter/anthropic/claude-$model-4.5 \
		--role code_reviewer --yes --json
	equal "prices $prices: it is not asked when all is spent" cost_exceeded "$(jq -r .status "$OUT")"
	check 'behind the call that spent it' [ "$(jq .cost_cents "$OUT" | cut -d. -f1)" -ge 1 ]
done
finish
