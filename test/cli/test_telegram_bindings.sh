#!/bin/sh
# Who and what a bot of Telegram takes for a yes: each thing that binds a button, by itself, while all
# else is right; and bots, which are nobody.
. "${0%/*}/lib.sh"
. "$LIB/telegram.sh"
put_token
begin || { result 1 'avad serves' || finish; }

code=$("$AVA" telegram pair </dev/null | sed -n 's/^    //p')
bot say "{\"from\":79,\"text\":\"$code\",\"more\":{\"from\":{\"id\":79,\"is_bot\":true}}}" >/dev/null
say 79 nothing >/dev/null
wait_for 20 taken
check 'a bot is not paired' is '.paired | length' 0
say $ME "$code" >/dev/null
check 'a person is, by the same code' wait_for 20 has 'Paired.'
code=$("$AVA" telegram pair </dev/null | sed -n 's/^    //p')
name=A😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀
bot say "{\"from\":78,\"text\":\"$code\",\"more\":{\"from\":{\"id\":78,\"first_name\":\"$name\"}}}" >/dev/null
check 'and another' wait_for 20 is '.paired | length' 2

# --- a quote

say $ME 'Find where kettle is defined' >/dev/null
check 'a quote comes' wait_for 30 quoted
quote=$(number "$P")
yes=$(yes_of "$quote")
bot say "{\"from\":$ME,\"text\":\"yes\",\"more\":{\"from\":{\"id\":$ME,\"is_bot\":true}}}" >/dev/null
wait_for 20 taken
equal 'what a bot says is not heard' 0 "$(heard yes)"

# refused NAME MORE: a press with all that is right, but for MORE, has no effect and is answered.
refused()
{
	query=$(bot press "$(jq -nc --argjson me $ME --argjson n "$button_of" --arg data "$button" "{from: \$me, message: \$n, data: \$data} + $2")" | jq -r .query)
	check "$1: is answered" wait_for 20 pressed "$query"
	wait_for 20 taken
	equal "$1: with a no" 'This button is not good any more.' "$(seen | jq -r --arg q "$query" '.presses[$q].answers[0]')"
}
# kept FILTER: what the door remembers, changed by jq.
kept()
{
	stop_daemon
	jq -c "$1" "$AVA_DATA_ROOT/telegram.json" >"$T/kept" && cat "$T/kept" >"$AVA_DATA_ROOT/telegram.json"
	begin
}
button_of=$quote button=$yes
refused 'another person who is paired' '{from: 78}'
refused 'another message' '{as_message: 99999}'
refused 'a button that it has not' "{data: \"${yes%0}7\"}"
refused 'a letter' "{data: \"${yes%0}y\"}"
refused 'no button' "{data: \"${yes%:0}\"}"
nonce=${yes#v1:}
refused 'another number' "{data: \"v1:0000${nonce#????}\"}"
until=$(jq '.cards[] | select(.id[:2] == "P-").until' "$AVA_DATA_ROOT/telegram.json")
kept '(.cards[] | select(.id[:2] == "P-")).until = 1'
check 'who has a long name is paired after a restart too' is '.paired | length' 2
check 'by that name' is '.paired[1].name' "$name"
refused 'after its time' '{}'
hash=$(jq -r '.cards[] | select(.id[:2] == "P-").hash' "$AVA_DATA_ROOT/telegram.json")
kept "(.cards[] | select(.id[:2] == \"P-\")) |= (.until = $until | .hash = \"$(printf '%064d' 0)\")"
query=$(press "$quote" Yes | jq -r .query)
check 'another hash: is answered' wait_for 20 pressed "$query"
contains 'another hash: with what to do' 'is no longer what was shown' "$(seen | jq -r --arg q "$query" '.presses[$q].answers[0]' >"$T/answer"; echo "$T/answer")"
equal 'and nothing has started' 0 "$(events SubagentSpawn)"
kept "(.cards[] | select(.id[:2] == \"P-\")).hash = \"$hash\""
press "$quote" Yes >/dev/null
check 'with all of it right the same button starts it' wait_for 60 has 'From S-'
equal 'once' 1 "$(events SubagentSpawn)"

# --- Cancel of a run

stop_daemon
asker
ava_says "$(proposes wait)" '{"text":"Shall I?"}' '{"text":"So."}'
begin
say $ME /new >/dev/null
say $ME 'wait, please' >/dev/null
wait_for 30 quoted
press "$(number "$P")" Yes >/dev/null
check 'a run has a button' wait_for 30 has 'Spawning Asker subagent'
RUN=$("$AVA" ps --json </dev/null | jq -r '.[0].subagent_id')
button_of=$(number "Spawning Asker subagent ($RUN)")
button=$(yes_of "$button_of")
lives() { "$AVA" status "$RUN" --json </dev/null | jq -e '.ended_at == ""' >/dev/null; }
refused 'Cancel of another person' '{from: 78}'
kept '(.cards[] | select(.id | test("^S-[0-9a-f]*$"))).until = 1'
refused 'Cancel after its time' '{}'
check 'the run lives' lives
"$AVA" cancel "$RUN" >/dev/null </dev/null
kept '.chats[].session = ""'
say $ME 'after it' >/dev/null
check 'who has no conversation begins one' wait_for 20 heard_once 'after it'
wait_for 20 taken
equal 'which is kept' 36 "$(jq -r '.chats[0].session | length' "$AVA_DATA_ROOT/telegram.json")"
equal 'the service found nothing amiss' '[]' "$(seen | jq -c .wrong)"
finish
