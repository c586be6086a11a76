#!/bin/sh
# kill -9 of the daemon between every two steps of a bot's work: an update, what is said, a quote,
# a press, a spawn, the line of a run, a result. Each time there is one run and one answer, and what
# the service was given before the kill comes at most once more, with the same id in it.
. "${0%/*}/lib.sh"
. "$LIB/telegram.sh"
sed -i 's/edit_ms: 200/edit_ms: 100/' "$XDG_CONFIG_HOME/ava/config.yaml"
put_token

# A command starts the next daemon where a kill ended the last one.
up() { "$AVA" ps >/dev/null 2>&1 </dev/null && DAEMON=$(daemon_pid); }
seen_up() { up && "$@"; }
# A message that changes has its own time, and all may be told before.
kill_came() { [ "$(seen | jq .plans)" = 0 ]; }
# The newest copy of the quote that has its buttons: one that a kill cut off from its record comes again,
# and the press counts there.
press_yes()
{
	number=$(seen | jq --arg p "$P" '[.messages[] | select(.text | contains($p)) | select(.markup.inline_keyboard)] | last | .message_id')
	[ "$number" = null ] || [ "$number" = "$last" ] || bot press "{\"from\":$ME,\"message\":$number,\"button\":\"Yes\"}" >/dev/null
	last=$number
}
started() { run_id=$(cat "$AVA_DATA_ROOT"/logs/ava/*.jsonl | jq -r --arg p "$P" 'select(.eventType == "SubagentSpawn" and .content.proposalId == $p).content.subagentId') && [ -n "$run_id" ]; }
begun() { started || { press_yes && started; }; }
quiet() { jq -e '(.open.telegram // "") == ""' "$AVA_DATA_ROOT/delivery.json" >/dev/null; }

begin || { result 1 'avad serves' || finish; }
pair

n=0 last=
arm() { [ "$step" != "$1" ] || bot plan "{\"method\":\"$method\",\"kill\":$DAEMON,\"when\":\"$when\",\"text\":\"$text\"}" >/dev/null; }
# play NAME METHOD WHEN STEP [TEXT]: a conversation in which the daemon is killed at the next call of METHOD
# (with that text) after STEP.
play()
{
	n=$((n + 1))
	runs=$(events SubagentSpawn)
	method=$2 when=$3 step=$4 text=${5:-}
	up
	wait_for 30 is .state serving
	arm asked
	say $ME "Find where kettle is defined, round $n" >/dev/null
	check "$1: a quote" wait_for 60 seen_up quoted || return
	arm pressed
	check "$1: a run" wait_for 60 seen_up begun || return
	arm started
	check "$1: its result" wait_for 60 seen_up has "From $run_id"
	check "$1: all is told" wait_for 60 seen_up quiet
	check "$1: the kill came" wait_for 30 seen_up kill_came
	equal "$1: one spawn" $((runs + 1)) "$(events SubagentSpawn)"
	equal "$1: said once" 1 "$(heard "Find where kettle is defined, round $n")"
	at_most "$1: one result, or the same again" 2 "$(count "From $run_id")"
}
play 'an update is asked for' getUpdates before asked
play 'an update is handed out' getUpdates after asked
play 'a quote goes out' sendMessage before asked 'Proceed?'
play 'a quote has gone out' sendMessage after asked 'Proceed?'
play 'a press is handed out' getUpdates after pressed
play 'a press is answered' answerCallbackQuery before pressed
play 'a press was answered' answerCallbackQuery after pressed
play 'a line goes out' sendMessage before pressed 'Spawning'
play 'a line has gone out' sendMessage after pressed 'Spawning'
play 'a line is edited' editMessageText after pressed
play 'a result goes out' sendMessage before pressed 'From S-'
play 'a result has gone out' sendMessage after pressed 'From S-'
play 'nothing happens' none before none
equal 'without a kill nothing comes twice' 1 "$(count "From $run_id")"

# --- a text that the client cut, and a kill between its parts

long=$(printf 'Find where kettle is defined. %s' "$(yes 'Mind these notes, all of them.' | head -n 130 | tr '\n' ' ')")
up
wait_for 30 is .state serving
method=getUpdates when=after step=asked text=
arm asked
say $ME "$long" >/dev/null
check 'a part is handed out: the kill came' wait_for 30 kill_came
say $ME 'Only in C files.' >/dev/null
both_heard() { heard_once "$long
Only in C files."; }
check 'both parts are one message' wait_for 60 seen_up both_heard
check 'and one quote' wait_for 60 seen_up quoted
equal 'no part alone' 0 "$(heard "$long")"
wait_for 30 taken
"$AVA" reject "$P" >/dev/null </dev/null
wait_for 30 seen_up quiet

# --- a question, its answer, and a run that is cancelled

stop_daemon
asker '{"tool_calls":[{"name":"ask_person","args":{"question":"Which parser?","choices":["json","yaml"]}}]}'
ava_says "$(proposes 'ask me')" '{"text":"Shall I?"}' '{"text":"It was cancelled."}'
up

asks() { has "$run_id asks: "; }
answers() { jq -s 'map(select(.eventType == "Waiting" and .content.state == "answered")) | length' "$AVA_DATA_ROOT/logs/subagents/$run_id.jsonl"; }
answered() { [ "$(answers)" -ge 1 ] && [ "$(bot messages '{}' | jq .waiting)" = 0 ]; }
cancelled() { "$AVA" status "$run_id" --json </dev/null | jq -e '.status == "cancelled"' >/dev/null; }
# question NAME METHOD WHEN STEP: likewise.
question()
{
	runs=$(events SubagentSpawn) method=$2 when=$3 step=$4 text=
	up
	wait_for 30 is .state serving
	say $ME /new >/dev/null
	say $ME 'ask me something' >/dev/null
	check "$1: a quote" wait_for 60 seen_up quoted || return
	check "$1: a run" wait_for 60 seen_up begun || return
	check "$1: its question" wait_for 60 seen_up asks || return
	arm answered
	reply "$(number "$run_id asks: ")" 2 >/dev/null
	check "$1: has its answer" wait_for 60 seen_up answered
	arm cancelled
	press "$(number "Spawning Asker subagent ($run_id)")" Cancel >/dev/null
	check "$1: is cancelled" wait_for 60 seen_up cancelled
	check "$1: all is told" wait_for 60 seen_up quiet
	check "$1: the kill came" wait_for 30 seen_up kill_came
	equal "$1: one spawn" $((runs + 1)) "$(events SubagentSpawn)"
	equal "$1: one answer" 1 "$(answers)"
	equal "$1: one end" 1 "$(grep -c '"eventType":"SubagentComplete"' "$AVA_DATA_ROOT/logs/subagents/$run_id.jsonl")"
}
question 'an answer is handed out' getUpdates after answered
question 'an answer is thanked for' sendMessage before answered
question 'an answer was thanked for' sendMessage after answered
question 'a cancel is handed out' getUpdates after cancelled
question 'a cancel is answered' answerCallbackQuery before cancelled
question 'a cancel was answered' answerCallbackQuery after cancelled
question 'a cancel is shown' editMessageText before cancelled

# --- a turn of Ava's that fails

stop_daemon
export AVA_AVA_MODEL="offline:$T/none.jsonl"
failed() { [ "$(count 'Ava cannot answer')" -gt "$before" ]; }
# fails NAME METHOD WHEN STEP [TEXT]: likewise.
fails()
{
	n=$((n + 1)) before=$(count 'Ava cannot answer') method=$2 when=$3 step=$4 text=${5:-}
	up
	wait_for 30 is .state serving
	arm said
	say $ME "are you there, round $n" >/dev/null
	check "$1: it is told" wait_for 60 seen_up failed
	check "$1: and that is kept" wait_for 60 seen_up quiet
	check "$1: the kill came" wait_for 30 seen_up kill_came
	equal "$1: said once" 1 "$(heard "are you there, round $n")"
	at_most "$1: told once, or the same again" $((before + 2)) "$(count 'Ava cannot answer')"
}
fails 'a word is handed out' getUpdates after said
fails 'a failure goes out' sendMessage before said 'Ava cannot answer'
fails 'a failure has gone out' sendMessage after said 'Ava cannot answer'
fails 'nothing happens' none before none
equal 'without a kill a failure is told once' $((before + 1)) "$(count 'Ava cannot answer')"
equal 'the service found nothing amiss' '[]' "$(seen | jq -c .wrong)"
check 'and the recoveries neither' test ! -e "$AVA_DATA_ROOT/lost"
finish
