#!/bin/sh
# Runs that wait for a quota which comes back in hours: parked, told once, over kill -9 and a
# restart, and on by themselves with the same bytes; many of one service one after the other;
# what a person says of it; models.park_max and on_quota. How times are read is in test_retry.c,
# the machine in test_ask.c, kills at any point in test_sim_lives.c.
. "${0%/*}/lib.sh"
. "$LIB/models.sh"
models turns=1 tool=read_file 'args={"path":"a.txt"}'
own_clock
[ -n "$CLOCK" ] || skip 'two hours are waited for'

export AVA_RUNS_MAX=8 AVA_LIMITS_TOKENS=10000000
A=anthropic/claude-sonnet-4-5
mkdir "$T/work"
cd "$T/work" || exit 99
printf 'one\ntwo\n' >a.txt
serve() { start_daemon || { result 1 'avad serves' || finish; }; }

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
events() { log_of "$1" | jq -c "select($2)" | wc -l; }
status_is() { [ "$("$AVA" status "$(id "$1")" --json | jq -r .status)" = "$2" ]; }
status_of() { "$AVA" status "$(id "$1")" --json | jq -r "$2"; }
of() { "$AVA" result "$(id "$1")" --json 2>&1 </dev/null | jq -r "$2"; }
ENDED_AS='"\(.status) \(.stop_reason)"'
many_are() { [ "$("$AVA" ps -a --json | jq "map(select(.status == \"$2\")) | length")" = "$1" ]; }

# shows NAME TEXT: what `ava ps` prints.
shows() { "$AVA" ps >"$T/ps" 2>&1; contains "$1" "$2" "$T/ps"; }
# say NAME WORDS: to a run, by its person.
say() { "$AVA" steer "$(id "$1")" "$2" >"$T/said" 2>&1 </dev/null; }
QUOTA='.eventType == "Waiting" and .content.kind == "quota"'

# --- one, over a kill and a restart -------------------------------------------------------
serve
start one $A-one 'fault=429:retry-after=7200x1'
check 'a run whose quota comes back in two hours is parked' wait_for 20 status_is one parked
shows 'until when, and for what, is shown' 'parked until'
shows 'and of whom' 'limit of anthropic'
equal 'it is asked once' 1 "$(events one "$QUOTA and .content.state == \"asked\"")"
equal 'with what a person can say' 'wait,stop' "$(status_of one '.waiting_for.choices | join(",")')"
kill_daemon
serve
check 'killed, it is parked still' wait_for 20 status_is one parked
stop_daemon
serve
check 'and after a restart' wait_for 20 status_is one parked
skip_time 7000
check 'before its time it waits on' status_is one parked
equal 'and nothing was sent' 1 "$(stat .requests)"
skip_time 260
check 'then it goes on by itself' skip_until 60 status_is one success
equal 'told once in all' 1 "$(events one "$QUOTA and .content.state == \"asked\"")"
equal 'the same bytes were sent again' 1 "$(log_of one |
	jq -r 'select(.eventType == "InferStart" and .metadata.iteration == 1) | .content.requestHash' | sort -u | wc -l)"
equal 'in a second attempt' 2 "$(events one '.eventType == "InferStart" and .metadata.iteration == 1')"
at_most 'its clock stood still' 60 "$(of one '.duration_seconds | floor')"

# --- what a person says ---------------------------------------------------------------------
start now $A-a 'fault=429:retry-after=7200x1'
start stop $A-b 'fault=429:retry-after=7200x1'
start other $A-c 'fault=429:retry-after=7200x1'
start gone $A-d 'fault=429:retry-after=7200x1'
for name in now stop other gone; do wait_for 20 status_is $name parked; done
say now 'take also b.txt'
contains 'what is no answer is kept for later, and nobody waits for it' 'It is parked' "$T/said"
say now 'Now.'
check '"now" asks once more at once' wait_for 20 status_is now success
say stop 'Stop, please!'
check '"stop" ends it' wait_for 20 status_is stop error
contains 'and names the time' 'is used up until' "$AVA_DATA_ROOT/runs/$(id stop)/result.json"
say other 'go on with openai/gpt-5'
contains 'a model of another form is refused' 'speaks as' "$T/said"
say other "go on with $A-e"
check 'with another model it goes on' wait_for 20 status_is other success
equal 'which the result names' $A-e "$(of other .model)"
"$AVA" cancel "$(id gone)" >/dev/null 2>&1
check 'one that is parked can be cancelled' wait_for 20 status_is gone cancelled

start again $A-n 'fault=429:retry-after=7200x2'
wait_for 20 status_is again parked
say again now
told_twice() { [ "$(events again "$QUOTA and .content.state == \"asked\"")" = 2 ]; }
check 'who says "now" and is refused once more is told the new time' wait_for 20 told_twice
"$AVA" cancel "$(id again)" >/dev/null 2>&1

start first $A-m 'fault=429:retry-after=7200x1'
wait_for 20 status_is first parked
start second $A-m turns=1
check 'what the service told one run parks the next that calls the model' wait_for 20 status_is second parked
equal 'without a call' 0 "$(events second '.eventType == "InferStart"')"
say first now
check 'and when it answers before its time both go on' wait_for 40 status_is second success

# --- many of one service (who goes first: test/models/rows_park.py) ----------------------------
N=20
rules '{"model":"*opus*","play":"fault=429:retry-after=7200x1"}'
mock '/stats?clear' >/dev/null
i=0
while [ $i -lt $N ]; do
	i=$((i + 1))
	start many$i anthropic/claude-opus-4-5 turns=1
done
all_parked() { [ "$("$AVA" ps --json | jq 'map(select(.status == "parked")) | length')" = $N ]; }
check 'twenty runs of one service are parked' wait_for 60 all_parked
at_most 'of which no more than had a slot have asked' 8 "$(stat .requests)"
rules '{"model":"*opus*","play":"turns=1"}'
mock '/stats?clear' >/dev/null
skip_time 7203
asks() { [ "$(stat .requests)" -ge 1 ]; }
check 'when it is back' skip_until 60 asks
none_left() { [ "$("$AVA" ps --json | jq length)" = 0 ]; }
check 'and then all end' skip_until 120 none_left
equal 'well' $N "$("$AVA" ps -a --json | jq '[.[] | select(.model | test("opus")) | select(.status == "success")] | length')"
rules ''

# --- a group --------------------------------------------------------------------------------------
printf '{"runs":[%s,%s],"timeout":600,"cwd":"%s","confirmed":true}' \
	'{"task":"Look at a.txt, A. [[mock fault=429:retry-after=7200x1]]","role":"code_reviewer","model":"'$A'-k"}' \
	'{"task":"Look at a.txt, B. [[mock fault=429:retry-after=7200x1]]","role":"code_reviewer","model":"'$A'-l"}' \
	"$T/work" >"$T/group.json"
curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" http://x/api/v1/groups -d @"$T/group.json" >"$T/group"
two_parked() { [ "$("$AVA" ps --json | jq 'map(select(.status == "parked")) | length')" = 2 ]; }
check 'two runs of a group with ten minutes are parked' wait_for 20 two_parked
skip_time 3600
kill_daemon
serve
check 'an hour later too, and after a kill' wait_for 20 two_parked
skip_time 3660
check 'and then go on: their clock stood still' skip_until 60 none_left
equal 'to a good end' 2 "$("$AVA" ps -a --json | jq '[.[] | select(.model | test("-[kl]$")) | select(.status == "success")] | length')"

# --- Ava herself ------------------------------------------------------------------------------------
rules '{"model":"*","play":"fault=429:retry-after=7200x1"}'
echo hello | "$AVA" chat >"$T/chat" 2>&1
contains 'Ava says at once until when' 'say it again then' "$T/chat"
rules ''

# --- what is configured --------------------------------------------------------------------------
start fails $A-f 'fault=429:retry-after=7200x1' --on-quota fail
check 'on_quota: fail' wait_for 20 status_is fails error
start asks $A-g 'fault=429:retry-after=7200x1' --on-quota ask
check 'on_quota: ask waits for the person' wait_for 20 status_is asks waiting
skip_time 9000
check 'also when the time has come' status_is asks waiting
kill_daemon
serve
check 'and after a kill' wait_for 20 status_is asks waiting
say asks yes
check 'until they say so' skip_until 60 status_is asks success
stop_daemon
AVA_MODELS_PARK_MAX=3600 serve
start often $A-o 'fault=429:retry-after=2000x9'
wait_for 20 status_is often parked
kill_daemon
AVA_MODELS_PARK_MAX=3600 serve
wait_for 20 status_is often parked
skip_time 2010
check 'a call that would wait for longer in all ends, also over a kill' skip_until 30 status_is often error
start long $A-h 'fault=429:retry-after=7200x1'
check 'longer than models.park_max it fails' wait_for 20 status_is long error
contains 'and says so' 'models.park_max' "$AVA_DATA_ROOT/runs/$(id long)/result.json"
stop_daemon

all_replay 'every run replays identically'
check 'every line of the log is an event' \
	"$SRCDIR/test/check_events.py" "$AVA_DATA_ROOT"/logs/subagents/*.jsonl
check 'and what was written is whole' "$AVA" logs verify
finish
