#!/bin/sh
# budget.day_cents of two machines that share it: what one has spent the other does not, whichever
# was killed meanwhile, a call that was in flight counts as the most it can cost, and Ava's turns too.
. "${0%/*}/lib.sh"
. "$LIB/models.sh"
. "$LIB/postgres.sh"
postgres_there || skip 'no PostgreSQL server (Debian: postgresql)'

models turns=3 tool=read_file 'args={"path":"a.txt"}' output=1000 latency=20
spent() { stat .costMicroUsd; }
used() { sql 'select b.lent - coalesce((select sum(micro - used) from ava_loan), 0) from ava_budget b'; }
hour=$(date -u +%H)
export TZ="X$((${hour#0} - 12))" # it is about noon there
export AVA_RUNS_MAX=12 AVA_BUDGET_DAY_CENTS=40 AVA_CLUSTER_LEASE=3 AVA_MODEL=anthropic/claude-haiku-4-5
mkdir "$T/work" && cd "$T/work" && echo one >a.txt
a=$AVA_DATA_ROOT b=$T/b
on() { AVA_DATA_ROOT=$1; shift; "$@"; AVA_DATA_ROOT=$a; }
state() { curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" http://x/api/v1/cluster | jq -e '.cluster.state == "member"' >/dev/null; }
asked() { [ "$(stat .requests)" -gt "$1" ]; }

check 'a server' postgres || finish
export AVA_CLUSTER_URL="$PG_URL"
"$AVA" cluster init >/dev/null
start_daemon
on "$b" start_daemon
check 'a member' wait_for 10 state
check 'another one' on "$b" wait_for 10 state

# run_some ROOT N: so many runs there, to their ends.
run_some()
{
	AVA_DATA_ROOT=$1
	i=0
	: >"$T/ids"
	while [ $i -lt "$2" ]; do
		i=$((i + 1)) n=$((${n:-0} + 1))
		"$AVA" run "Look at a.txt, $n." --model anthropic/claude-sonnet-4-5 --role code_reviewer \
			--yes --background --json 2>/dev/null </dev/null | jq -r .subagent_id >>"$T/ids"
	done
	"$AVA" wait --timeout 120 $(cat "$T/ids") >/dev/null 2>&1
	while read -r id; do "$AVA" result "$id" --json </dev/null; done <"$T/ids" >"$T/results"
	AVA_DATA_ROOT=$a
}
ends() { jq -s "map(select(.status == \"$1\")) | length" "$T/results"; }

run_some "$a" 3
equal 'three runs are paid' 3 "$(ends success)"
first=$(spent)
run_some "$b" 9
check 'on the other machine not all of nine' [ "$(ends cost_exceeded)" -gt 0 ]
check 'which say why' [ "$(jq -s 'map(select(.status == "cost_exceeded" and
	(.error | contains("today'"'"'s budget of 40 cents for all machines") | not))) | length' "$T/results")" = 0 ]
check 'but most of the money was used' [ "$(spent)" -ge 300000 ]
check 'and no more than there is' [ "$(spent)" -le 400000 ]
check 'the database knows what was spent' [ "$(used)" -ge "$(spent)" ]
on "$b" run "$AVA" status
contains 'each machine tells what all have spent' 'budget of the day: $0.3' "$OUT"
run "$AVA" cluster status
contains 'status of the cluster, too' 'of $0.40 used; borrowed by' "$OUT"
equal 'as JSON' "40 2" "$("$AVA" cluster status --json | jq -r '.budgets[0] | "\(.cap_cents) \(.loans | length)"')"

before=$(spent)
stop_daemon
on "$b" kill_daemon
start_daemon
on "$b" start_daemon
run_some "$b" 1
equal 'starts forget nothing' cost_exceeded "$(jq -r .status "$T/results")"
equal 'nothing was asked for' "$before" "$(spent)"

# --- the smallest setting of those that are there; a call in flight at a kill

stop_daemon
on "$b" stop_daemon
sql 'delete from ava_loan' && sql 'delete from ava_budget'
rules '{"play":"latency=600000"}'
AVA_BUDGET_DAY_CENTS=5 on "$b" start_daemon
AVA_BUDGET_DAY_CENTS=60 start_daemon
cap_is() { [ "$(sql 'select cap from ava_budget')" = "$1" ]; }
check 'the smaller budget counts' wait_for 20 cap_is 50000
requests=$(stat .requests)
echo 'hello there' >"$T/hello"
AVA_DATA_ROOT=$b "$AVA" chat <"$T/hello" >"$T/chat" 2>&1 &
keep $!
chat=$!
check 'Ava is asked something' wait_for 20 asked "$requests"
most=$(used)
check 'and the most it may cost is in the database' [ "$most" -gt 10000 ]
kill -9 "$(daemon_pid "$b")" "$chat" # together: a chat that is left starts a daemon
gone_loan() { [ "$(sql 'select count(*) from ava_loan')" = 1 ]; }
check 'the other machine ends what that one had borrowed' wait_for 30 gone_loan
equal 'all that it may have spent is counted' "$most" "$(used)"
check 'and its setting goes with it' wait_for 20 cap_is 600000
equal 'what it had not used may be lent' "$most" "$(sql 'select lent from ava_budget')"
finish
