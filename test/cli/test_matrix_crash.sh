#!/bin/sh
# kill -9 of the daemon between every two steps of its work in a room of Matrix: an invite, what is said, a
# quote, its keys, a press, a spawn, the line of a run, a result. Each time there is one run, and since the
# server makes one event of all calls of a name, nothing comes twice.
. "${0%/*}/lib.sh"
. "$LIB/matrix.sh"
put_token

up() { "$AVA" ps >/dev/null 2>&1 </dev/null && DAEMON=$(daemon_pid); }
seen_up() { up && "$@"; }
kill_came() { [ "$(seen | jq '.plans | length')" = 0 ]; }
press_yes() { react "$(event "$P")" "$YES"; }
started() { run_id=$(cat "$AVA_DATA_ROOT"/logs/ava/*.jsonl | jq -r --arg p "$P" 'select(.eventType == "SubagentSpawn" and .content.proposalId == $p).content.subagentId') && [ -n "$run_id" ]; }
quiet() { jq -e '(.open.matrix // "") == ""' "$AVA_DATA_ROOT/delivery.json" >/dev/null; }
ended() { seen | jq -e --arg r "($run_id)" 'any(.messages[]; (.text | contains($r)) and (.text | contains("Complete (")))' >/dev/null; }

begin || { result 1 'avad serves' || finish; }
DAEMON=$(daemon_pid)

n=0
arm() { [ "$step" != "$1" ] || hs plan "{\"call\":\"$call\",\"kill\":$DAEMON,\"when\":\"$when\",\"text\":\"$text\"}" >/dev/null; }
# play NAME CALL WHEN STEP [TEXT]: a conversation in which the daemon is killed at the next call of that kind (with
# that text) after STEP.
play()
{
	n=$((n + 1))
	runs=$(events SubagentSpawn)
	call=$2 when=$3 step=$4 text=${5:-}
	up
	wait_for 30 is .state serving
	arm asked
	say "Find where kettle is defined, round $n" >/dev/null
	check "$1: a quote" wait_for 60 seen_up quoted || return
	arm pressed
	press_yes
	check "$1: a run" wait_for 60 seen_up started || return
	check "$1: its result" wait_for 60 seen_up has "From $run_id"
	check "$1: its line ends" wait_for 60 seen_up ended
	check "$1: all is told" wait_for 60 seen_up quiet
	check "$1: the kill came" wait_for 30 seen_up kill_came
	equal "$1: one spawn" $((runs + 1)) "$(events SubagentSpawn)"
	equal "$1: said once" 1 "$(heard "Find where kettle is defined, round $n")"
	equal "$1: one result" 1 "$(count "From $run_id")"
	equal "$1: one quote" 1 "$(count "$P")"
}
check 'pairing' pair
play 'what is said is asked for' sync before asked
play 'what is said is handed out' sync after asked 'round'
play 'a quote goes out' send before asked 'Proceed?'
play 'a quote has gone out' send after asked 'Proceed?'
play 'a key goes out' key before asked
play 'a key has gone out' key after asked
play 'a press is handed out' sync after pressed 'm.reaction'
play 'a line goes out' send before pressed 'Spawning'
play 'a line has gone out' send after pressed 'Spawning'
play 'a line is edited' edit after pressed
play 'a result goes out' send before pressed 'From S-'
play 'a result has gone out' send after pressed 'From S-'
play 'nothing happens' sync after none

# --- a press on a quote whose record a crash cut off, before the quote can be told again

up
wait_for 30 is .state serving
runs=$(events SubagentSpawn) call=send when=after step=asked text='Proceed?'
arm asked
say 'Find where kettle is defined, early' >/dev/null
check 'a quote is cut off: the kill came' wait_for 30 kill_came
react "$(event 'Proceed?')" "$YES"
hs plan '{"call":"send","status":503,"text":"Proceed?","times":2}' >/dev/null
one_more() { [ "$(events SubagentSpawn)" = $((runs + 1)) ]; }
check 'an early press: a run' wait_for 60 seen_up one_more
equal 'an early press: nothing is refused' 0 "$(count 'This button is not good any more.')"
check 'an early press: all is told' wait_for 60 seen_up quiet

equal 'the server found nothing amiss' '[]' "$(seen | jq -c .wrong)"
finish
