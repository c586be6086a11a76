#!/bin/sh
# Runs that a person pauses: at the turn's end, over kill -9 before and behind it, without a slot
# and a clock; until a time by the wall's clock, moved both ways; those that wait for a person, a
# quota or a slot; groups; what is said to them meanwhile; what is no pause. The machine is in
# test_agent_pause.c, kills at any point in test_sim_lives.c.
. "${0%/*}/lib.sh"
. "$LIB/scripted.sh"
own_clock
[ -n "$CLOCK" ] || skip 'hours are waited for'
command -v jq >/dev/null || skip 'no jq'

export AVA_RUNS_MAX=1 AVA_LIMITS_TOKENS=10000000
mkdir "$T/work"
cd "$T/work" || exit 99
printf 'one\ntwo\n' >a.txt
printf 'three\n' >b.txt
serve() { start_daemon || { result 1 'avad serves' || finish; }; }
turn read_file '{"path":"a.txt"}' ',"delay_ms":60000' >"$T/slow.jsonl"
turn read_file '{"path":"b.txt"}' >>"$T/slow.jsonl"
end >>"$T/slow.jsonl"
{ turn read_file '{"path":"a.txt"}'; end; } >"$T/quick.jsonl"
{ turn ask_person '{"question":"Which of them?"}'; turn read_file '{"path":"a.txt"}'; end; } >"$T/asks.jsonl"
printf '{"tool_calls":[{"name":"submit_result","args":{"summary":"done","confidence":1}}],"delay_ms":60000}\n' >"$T/last.jsonl"

# start NAME SCRIPT [OPTION...]: begin a run; its id stands in $T/id.NAME.
start()
{
	start_name=$1 start_model=offline:$T/$2.jsonl
	shift 2
	"$AVA" run "Look at a.txt, $start_name." --model "$start_model" --role code_reviewer \
		--yes --background "$@" >"$T/started" 2>&1 </dev/null
	grep -o 'S-[0-9a-f]\{6,\}' "$T/started" | head -n 1 >"$T/id.$start_name"
	[ -s "$T/id.$start_name" ] || note "$start_name: $(cat "$T/started")"
}
id() { cat "$T/id.$1"; }
events() { "$AVA" logs "$(id "$1")" -o json 2>/dev/null | jq -c "select($2)" | wc -l; }
status_of() { "$AVA" status "$(id "$1")" --json | jq -r "$2"; }
status_is() { [ "$(status_of "$1" .status)" = "$2" ]; }
states() { "$AVA" logs "$(id "$1")" -o json 2>/dev/null | jq -r "select($PAUSE) | .content.state" | tr '\n' ' '; }
calls() { events "$1" '.eventType == "InferStart"'; }
calling() { [ "$(calls "$1")" -ge 1 ]; }
PAUSE='.eventType == "Waiting" and .content.kind == "pause"'

# --- at the turn's end ----------------------------------------------------------------------------
serve
start one slow
check 'a run calls its model' wait_for 20 calling one
run "$AVA" pause "$(id one)" --no-wait
exits 'a pause is asked for' 0
contains 'and said to come' 'pausing at the end of its turn' "$OUT"
equal 'it is at work still' 'running true' "$(status_of one '"\(.status) \(.pause)"')"
run "$AVA" pause "$(id one)" --no-wait
exits 'once more is none too many' 0
start two quick
check 'another one waits for its slot' status_is two queued
"$AVA" pause "$(id one)" >"$T/waits" 2>&1 </dev/null &
waits=$!
keep $waits
skip_time 61
check 'the call ends and it is paused' wait_for 20 status_is one paused
check 'whoever waits for that is told' wait_for 20 gone $waits
contains 'so' ': paused' "$T/waits"
equal 'with one call made, and its tool' '1 1' "$(calls one) $(events one '.eventType == "ToolResult"')"
equal 'asked for once' 'asked paused ' "$(states one)"
check 'the next one has its slot, and ends' wait_for 20 status_is two success
"$AVA" ps >"$T/ps"
contains 'ava ps says it' 'paused' "$T/ps"
check 'the gauge counts it' sh -c 'curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" http://x/metrics | grep -q "ava_runs{state=\"paused\"} 1"'
kill_daemon
serve
check 'killed, it is paused still' wait_for 20 status_is one paused
"$AVA" steer "$(id one)" 'look at b.txt too' >"$T/said" 2>&1 </dev/null
contains 'what is said to it is kept, and nobody waits for it' 'It is paused' "$T/said"
skip_time 100000
equal 'a day later nothing was called' 1 "$(calls one)"
run "$AVA" unpause "$(id one)"
exits 'it is let go on' 0
check 'and ends well' wait_for 20 status_is one success
equal 'has heard it' 1 "$(events one '.eventType == "Steering" and .content.outcome == "delivered"')"
equal 'no call was made twice' 3 "$(calls one)"
at_most 'its clock stood still' 70 "$("$AVA" result "$(id one)" --json | jq '.duration_seconds | floor')"
run "$AVA" unpause "$(id one)"
exits 'one that has ended' 1
contains 'is named so' 'has ended' "$ERR"
run "$AVA" pause S-fffff0
exits 'one that is none' 5

# --- kill -9 between the request and the turn's end -------------------------------------------------
start cut slow
wait_for 20 calling cut
"$AVA" pause "$(id cut)" --no-wait >/dev/null
kill_daemon
serve
check 'killed in its call it is paused' wait_for 20 status_is cut paused
skip_time 100
equal 'and calls nothing' 1 "$(calls cut)"
stop_daemon
serve
check 'after a restart too' wait_for 20 status_is cut paused
"$AVA" unpause "$(id cut)" >/dev/null
again() { [ "$(calls cut)" = 2 ]; }
check 'let go on the call is made again' wait_for 20 again
skip_time 61
check 'to a good end' wait_for 20 status_is cut success
equal 'with the same bytes' 1 "$("$AVA" logs "$(id cut)" -o json |
	jq -r 'select(.eventType == "InferStart" and .metadata.iteration == 1) | .content.requestHash' | sort -u | wc -l)"

# --- until a time, by the clock on the wall ---------------------------------------------------------
run "$AVA" pause "$(id cut)" --until 2020-01-01
exits 'a run that ended cannot be paused' 1
start timed slow
wait_for 20 calling timed
for bad in 2020-01-01 yesterday soon; do
	run "$AVA" pause "$(id timed)" --until $bad
	exits "until $bad is refused" 2
done
contains 'what is no time is said to be none' '"soon" is no time: write 2h' "$ERR"
"$AVA" pause "$(id timed)" --until 2h --no-wait >"$T/until"
contains 'until when is said' 'until ' "$T/until"
run "$AVA" pause "$(id timed)" --until 3h --no-wait
exits 'another time is refused' 1
contains 'with what it is' 'is pausing at the end of its turn until' "$ERR"
skip_time 61
check 'it is paused' wait_for 20 status_is timed paused
clock_at $((clock_ms / 1000 - 90000)) $((clock_ms / 1000))
skip_time_mono() { clock_ms=$((clock_ms + $1 * 1000)); ln -sfn "$((clock_ms - 90000000)) $clock_ms" "$AVA_TEST_CLOCK"; }
skip_time_mono 3600
check 'the clock put back by a day: half of it is left' status_is timed paused
kill_daemon
serve
check 'and killed' wait_for 20 status_is timed paused
skip_time_mono 3600
check 'it is paused no longer than it was to be' wait_for 20 status_is timed paused
skip_until_mono() { n=0; until "$@" >/dev/null 2>&1; do n=$((n + 1)); [ $n -lt 80 ] || return 1; skip_time_mono 60; done; }
check 'then it goes on by itself' skip_until_mono status_is timed success
equal 'as its time told' 'asked paused expired ' "$(states timed)"
kill_daemon
clock_at $((clock_ms / 1000)) $((clock_ms / 1000))
serve
start ahead slow
wait_for 20 calling ahead
"$AVA" pause "$(id ahead)" --until 20h --no-wait >/dev/null
skip_time 61
wait_for 20 status_is ahead paused
clock_at $((clock_ms / 1000 + 73000)) $((clock_ms / 1000))
skip_ahead() { n=0; until "$@" >/dev/null 2>&1; do n=$((n + 1)); [ $n -lt 80 ] || return 1
	clock_ms=$((clock_ms + 2000)); ln -sfn "$((clock_ms + 73000000)) $clock_ms" "$AVA_TEST_CLOCK"; done; }
check 'the clock put forward, it is over within a minute' skip_ahead status_is ahead success
kill_daemon
clock_at $((clock_ms / 1000)) $((clock_ms / 1000))
serve

# --- what waits for something else -------------------------------------------------------------------
start asks asks
check 'a run asks a person' wait_for 20 status_is asks waiting
"$AVA" pause "$(id asks)" >"$T/asks"
equal 'it is paused at once' paused "$(status_of asks .status)"
equal 'its question stays' 'Which of them?' "$(status_of asks .waiting_for.question)"
kill_daemon
serve
question() { [ "$(status_of asks .waiting_for.question)" = 'Which of them?' ]; }
check 'also after a kill' wait_for 20 question
equal 'and paused' paused "$(status_of asks .status)"
"$AVA" steer "$(id asks)" 'a.txt' >/dev/null 2>&1
equal 'it can be answered' 'paused null' "$(status_of asks '"\(.status) \(.waiting_for)"')"
equal 'and nothing is called for it' 1 "$(calls asks)"
"$AVA" unpause "$(id asks)" >/dev/null
check 'let go on it has its answer' wait_for 20 status_is asks success
start busy slow
wait_for 20 calling busy
start queued quick
"$AVA" pause "$(id queued)" >/dev/null
equal 'one that waits for a slot is paused at once' paused "$(status_of queued .status)"
"$AVA" cancel "$(id busy)" >/dev/null 2>&1
start next quick
check 'and takes none: the next one has it' wait_for 20 status_is next success
equal 'it stands' paused "$(status_of queued .status)"
"$AVA" cancel "$(id queued)" >/dev/null 2>&1
equal 'one that is paused can be cancelled' cancelled "$(status_of queued .status)"
equal 'which ends the pause' 'asked stopped ' "$(states queued)"
start spoken slow
wait_for 20 calling spoken
printf 'pause %s\n' "$(id spoken)" | "$AVA" chat >"$T/chat" 2>&1
pausing() { [ "$(status_of "$1" .pause)" = true ]; }
not_pausing() { [ "$(status_of "$1" .pause)" = null ]; }
check 'Ava pauses one when she is told to' wait_for 20 pausing spoken
printf 'continue %s\n' "$(id spoken)" | "$AVA" chat >>"$T/chat" 2>&1
check 'and lets it go on' wait_for 20 not_pausing spoken
"$AVA" cancel "$(id spoken)" >/dev/null 2>&1
start ends last
wait_for 20 calling ends
"$AVA" pause "$(id ends)" >"$T/ends" 2>&1 </dev/null &
waits=$!
keep $waits
wait_for 20 file_has pausing "$T/ends"
skip_time 61
check 'a run that ends in that turn' wait_for 20 gone $waits
contains 'is said to have ended' 'ended in that turn: complete' "$T/ends"
run "$AVA" pause all
exits 'none is live' 0
contains 'which is said' 'No such run is live' "$OUT"

# --- a group: its clock stands while all that are left are paused ------------------------------------
printf '{"runs":[%s,%s],"timeout":600,"cwd":"%s","confirmed":true}' \
	'{"task":"Look, A.","role":"code_reviewer","model":"offline:'"$T"'/slow.jsonl"}' \
	'{"task":"Look, B.","role":"code_reviewer","model":"offline:'"$T"'/slow.jsonl"}' \
	"$T/work" >"$T/group.json"
curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" http://x/api/v1/groups -d @"$T/group.json" >"$T/group"
group=$(jq -r '.group_id // .id' "$T/group")
two() { [ "$("$AVA" ps --json | jq 'map(select(.status == "'"$1"'")) | length')" = "$2" ]; }
wait_for 20 two running 1
"$AVA" pause "$group" --no-wait >"$T/paused"
skip_time 61
check 'two runs of a group are paused' wait_for 20 two paused 2
skip_time 3600
kill_daemon
serve
check 'an hour later too, and after a kill' wait_for 20 two paused 2
skip_time 3600
"$AVA" unpause all >/dev/null
none_left() { skip_time 61; [ "$("$AVA" ps --json | jq length)" = 0 ]; }
check 'and then go on: their clock stood still' wait_for 40 none_left
equal 'to a good end' 2 "$("$AVA" ps -a --json | jq '[.[] | select(.task | test("Look, [AB]")) | select(.status == "success")] | length')"
stop_daemon

all_replay 'every run replays identically'
check 'every line of the log is an event' \
	"$SRCDIR/test/check_events.py" "$AVA_DATA_ROOT"/logs/subagents/*.jsonl
check 'and what was written is whole' "$AVA" logs verify
finish
