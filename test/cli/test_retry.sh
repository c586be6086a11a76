#!/bin/sh
# What is done about a service that refuses: many runs that do not stampede, waits that are
# parked and outlive a kill, what it all costs. Other models, refused keys and cancels are in
# test_infer.c, single faults in test_faults.sh.
. "${0%/*}/lib.sh"
. "$LIB/models.sh"
models turns=1 tool=read_file 'args={"path":"a.txt"}'
stat_is() { [ "$(stat "$1")" -ge "$2" ]; }
answered() { [ "$(stat '.requests > 0 and .active == 0')" = true ]; }

export AVA_RUNS_MAX=2000 AVA_RUNS_QUEUE_MAX=5000 AVA_LIMITS_TOKENS=10000000
A=anthropic/claude-sonnet-4-5
mkdir "$T/work"
cd "$T/work" || exit 99
printf 'one\ntwo\n' >a.txt

serve()
{
	start_daemon || { result 1 'avad serves' || finish; }
}

# start NAME MODEL PLAN [OPTION...]: begin a run; its id stands in $T/id.NAME.
start()
{
	start_name=$1 start_model=$2 start_plan=$3
	shift 3
	"$AVA" run "Look at a.txt, $start_name. [[mock $start_plan]]" --model "$start_model" \
		--role code_reviewer --yes --background "$@" >"$T/started" 2>&1 </dev/null
	grep -o 'S-[0-9a-f]\{6,\}' "$T/started" | head -n 1 >"$T/id.$start_name"
	[ -s "$T/id.$start_name" ] || note "$start_name: $(cat "$T/started")"
}

id() { cat "$T/id.$1"; }
log_of() { "$AVA" logs "$(id "$1")" -o json 2>/dev/null; }
# events NAME FILTER: how many of its events pass the filter.
events() { log_of "$1" | jq -c "select($2)" | wc -l; }
has() { [ "$(events "$1" "$2")" -gt 0 ]; }

# of NAME JQ-FILTER: from its result, when it has ended.
of()
{
	"$AVA" wait --timeout 120 "$(id "$1")" >/dev/null 2>&1
	"$AVA" result "$(id "$1")" --json 2>&1 </dev/null | jq -r "$2"
}

ENDED_AS='"\(.status) \(.stop_reason)"'

# --- many runs, and a service that says no ------------------------------------------
# Whoever asks first while the rule stands is told to wait.
N=40
[ -z "${AVA_SOAK:-}" ] || N=1000
serve
rules '{"model":"*opus*","play":"fault=429:ms=300"}'
i=0
while [ $i -lt $N ]; do
	i=$((i + 1))
	[ $i = 1 ] || echo next
	printf 'unix-socket = "%s"\nurl = "http://x/api/v1/runs"\noutput = "%s"\n' \
		"$AVA_DATA_ROOT/ava.sock" "$T/spawned"
	printf 'data = "{\\"task\\":\\"Look at a.txt, %d.\\",\\"model\\":\\"%s\\",' $i \
		anthropic/claude-opus-4-5
	printf '\\"role\\":\\"code_reviewer\\",\\"cwd\\":\\"%s\\",\\"confirmed\\":true}"\n' "$T/work"
done >"$T/spawn.curl"
curl -s -K "$T/spawn.curl"
running() { [ "$("$AVA" ps --json | jq 'map(select(.status == "running")) | length')" = $N ]; }
check 'all of them are at work' wait_for 150 running
check 'nobody asks twice at once' wait_for 150 answered
first=$(stat .requests)
note "asked while the first answer was on its way: $first of $N"
at_most 'each asks at most once before it is told to wait' $N "$first"
mock '/stats?clear' >/dev/null
check 'then one at a time asks whether it may' wait_for 150 stat_is .requests 4
at_most 'and nobody beside it' 1 "$(stat .activeMax)"
equal 'no run has ended' $N "$("$AVA" ps --json | jq length)"
mock '/stats?clear' >/dev/null
rules '{"model":"*opus*","play":"latency=300"}'
none_left() { [ "$("$AVA" ps --json | jq length)" = 0 ]; }
check 'when the service is well again all end' wait_for 200 none_left
equal 'with success' $N "$("$AVA" ps -a --json | jq 'map(select(.status == "success")) | length')"
check 'and more than one at a time was let through' stat_is .activeMax 2
rules ''
note "under way at most: $(stat .activeMax); requests: $(stat .requests)"
at_most 'with no request too many' $((2 * N + 50)) "$(stat .requests)"
none_refused 'and no request that the service refuses'

# --- waits -----------------------------------------------------------------------------
start parked $A-parked 'fault=429:retry-after=100' --timeout 3600
check 'a wait with its slot' wait_for 20 has parked '.eventType == "Activity"'
equal 'how long stands in the log' 1 \
	"$(events parked '.eventType == "InferEnd" and .content.retryInMs >= 100000 and
		.content.errorClass == "rate_limit"')"
equal 'and is shown' true "$("$AVA" status "$(id parked)" --json |
	jq '.current_activity | test("^Waiting [0-9]+ s for anthropic")')"
start queued $A-parked turns=1 --timeout 3600
kill_daemon
serve
check 'killed while it waited: it is carried on' wait_for 20 has parked '.eventType == "Custom"'
"$AVA" cancel "$(id parked)" >/dev/null 2>&1
equal 'until it is cancelled' 'cancelled cancelled' "$(of parked "$ENDED_AS")"
equal 'nothing is charged for what was refused' 0 "$(of parked .tokens_used)"
equal 'each attempt has its end' 1 "$(events parked '.eventType == "InferEnd"')"
equal 'what never asked goes on' 'success submitted' "$(of queued "$ENDED_AS")"

# --- costs -----------------------------------------------------------------------------
# The service counts with the same prices: not a millionth less, and a millionth more
# for each call at most (we round up).
mock '/stats?clear' >/dev/null
start cost $A turns=3
mine=$(of cost '.cost_cents * 10000 | round')
bill=$(stat .costMicroUsd)
note "billed $bill, counted $mine micro-USD"
check 'a run costs what the service bills' [ "$mine" -ge "$bill" ]
at_most 'and nothing more' $((bill + 5)) "$mine"
check 'reading from the cache is counted apart' \
	has cost '.eventType == "InferEnd" and .content.tokens.cacheRead > 0'
check 'so is writing to it' \
	has cost '.eventType == "InferEnd" and .content.tokens.cacheWrite > 0'
equal 'of a run that has ended the last tool is shown' read_file \
	"$("$AVA" status "$(id cost)" --json | jq -r 'select(.last_tool_call.at > "2").last_tool_call.name')"
check 'every line of the log is an event' \
	"$SRCDIR/test/check_events.py" "$AVA_DATA_ROOT"/logs/subagents/*.jsonl

all_replay 'every run replays identically'

# --- a person is told what to do about it
# next_of NAME: what its Item says to do.
next_of() { curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/v1/items?run=$(id "$1")" |
	jq -r '[.items[] | select(.kind == "failed")][0].detail.next'; }
start refused_key "$A" 'fault=401'
equal 'a refused key ends it' 'error model_error' "$(of refused_key "$ENDED_AS")"
equal 'which says so' "set a valid key (\`ava doctor\` says which), then \`ava resume $(id refused_key)\` goes on" \
	"$(next_of refused_key)"
start no_model anthropic/no-such-model 'turns=1'
equal 'a model that there is not, too' 'error model_error' "$(of no_model "$ENDED_AS")"
equal 'and says to name another' \
	"name a model that its service has: \`ava resume $(id no_model) --model MODEL\` goes on" "$(next_of no_model)"
finish
