#!/bin/sh
# A line of calls for each person: what the service fails at, or does not answer, holds up its own line
# and no other; an outage drops nothing and keeps the order; many runs do not keep a word back.
. "${0%/*}/lib.sh"
own_clock # the bot's as well: what it writes down of calls is when the daemon made them
. "$LIB/telegram.sh"
sed -i 's/pace_ms: 0/pace_ms: 100/; /edit_ms/d' "$XDG_CONFIG_HOME/ava/config.yaml"
put_token
asker
ava_says "$(jq -nc '{tool_calls: [{name: "spawn_parallel", args: {runs: [range(8) | {role: "asker", task: "wait \(.)"}]}}]}')" '{"text":"Shall I?"}' '{"text":"So."}'
begin || { result 1 'avad serves' || finish; }
for who in $ME 78 79; do
	say $who "$("$AVA" telegram pair </dev/null | sed -n 's/^    //p')" >/dev/null
	wait_for 20 taken
done
check 'three are paired' is '.paired | length' 3
# What a chat was told behind its greeting, message by message, by their first words.
told() { seen | jq -r --argjson chat "$1" '[.messages[] | select(.chat == $chat).text[0:12]][1:] | join("|")'; }
tells() { told "$1" | grep -qF "$2"; }
asked() { seen | jq --argjson chat "$1" --arg text "$2" '[.calls[] | select(.chat == $chat and (.text // "" | contains($text)))] | length'; }
asked_for() { [ "$(asked "$1" "$2")" -ge "$3" ]; }

# --- a call that is not answered

bot plan '{"method":"sendMessage","status":500,"chat":78,"held":true}' >/dev/null
say 78 /cancel >/dev/null
check 'a call is under way' wait_for 20 asked_for 78 'Name the run' 1
say 79 /cancel >/dev/null
check 'one that is not answered holds up nobody else' wait_for 20 tells 79 'Name the run'
equal 'but its own line' '' "$(told 78)"
bot release '{}' >/dev/null
check 'which then goes on' wait_for 20 tells 78 'Name the run'

# --- a message that the service fails at, and a service that fails at all

bot plan '{"method":"sendMessage","status":500,"chat":79,"text":"Nothing has","times":99}' >/dev/null
bot plan '{"method":"sendMessage","status":502,"chat":78,"times":6}' >/dev/null
for word in /runs /cost /status; do say 79 $word >/dev/null; say 78 $word >/dev/null; done
check 'the service fails' skip_until 20 asked_for 79 'Nothing has' 2
say $ME /cost >/dev/null
check 'somebody else is told all the same' skip_until 20 tells $ME 'Today: '
equal 'who waits is not, out of turn' 'Name the run' "$(told 79)"

# --- many runs, and a word between

say $ME 'wait for eight things' >/dev/null
check 'a quote of eight runs' wait_for 30 has 'Proceed? [Yes/No]'
wait_for 20 quoted
press "$(number 'Proceed? [Yes/No]')" Yes >/dev/null
# The calls that changed messages of runs; LINES: how often each of them was.
edits() { seen | jq '[.calls[] | select(.method == "editMessageText" and (.text | startswith("🚀")))]'; }
turns() { [ "$(edits | jq 'group_by(.message) | map(select(length >= 2)) | length')" = 8 ]; }
check 'the lines of eight runs take turns' skip_slowly 60 turns
word=$(say $ME /help | jq .update_id)
check 'a word is told' skip_until 20 tells $ME 'Say what you'
# Of what went out behind the call that confirms the word: a line that was made before it, if any.
at_most 'before the lines of runs' 1 "$(seen | jq --argjson word "$word" --argjson me $ME '.calls | .[map((.offset // 0) > $word) | index(true):] |
	map(select(.chat == $me) | .text[0:12]) | index("Say what you") // 0')"
RUN=$("$AVA" ps --json </dev/null | jq -r '.[0].subagent_id')
line=$(number "($RUN)")
edited() { [ "$(edits | jq --argjson n "$line" 'map(select(.message == $n)) | length')" -gt "$before" ]; }
before=$(edits | jq --argjson n "$line" 'map(select(.message == $n)) | length')
check 'a line changes' skip_slowly 30 edited
press "$line" Cancel >/dev/null
check 'Cancel shows' skip_until 30 says "$line" Cancelled
paced() { seen | jq -e '[.calls[] | select(.method == "editMessageText" or .method == "editMessageReplyMarkup")] | group_by(.message) | length >= 8 and
	all(.[]; map(.at) | [.[1:], .[:-1]] | transpose | all(.[0] - .[1] > 2.9))' >/dev/null; }
check 'between two changes of a message lie three seconds' paced

# --- what became of those who waited

check 'who waited behind one message is told that it failed, and all behind it' skip_until 120 tells 79 'For a while |Today: $0.00|ava '
lacks 'but never what fails' 'Nothing has' "$(told 79 >"$T/told"; echo "$T/told")"
equal 'which was tried so often' 8 "$(asked 79 'Nothing has')"
check 'and is logged' grep -q 'telegram: sendMessage: Telegram answers 500' "$AVA_DATA_ROOT/logs/avad.log" "$T/avad.out"
check 'an outage drops nothing' skip_until 120 tells 78 'ava '
contains 'and keeps the order' 'Name the run|For a while |' "$(told 78 >"$T/told"; echo "$T/told")"
contains 'of all that was said' '|Today: ' "$T/told"
check 'and says so' sh -c "grep -q '^Name the run|For a while |\\(Nothing has \\|The newest r\\)|Today: [^|]*|ava [^|]*\$' '$T/told'"

# --- a restart in between

line=$(jq '[.cards[] | select(.id[:2] == "S-").message] | min' "$AVA_DATA_ROOT/telegram.json")
before=$(edits | jq --argjson n "$line" 'map(select(.message == $n)) | length')
check 'the line of another run changes' skip_slowly 40 edited
kill_daemon
start_daemon
before=$(edits | jq --argjson n "$line" 'map(select(.message == $n)) | length')
check 'and after a restart' skip_slowly 40 edited
check 'three seconds lie between these too' paced

# --- Ava's own service is away

stop_daemon
unset AVA_AVA_MODEL
export ANTHROPIC_API_KEY=test-key-0123456789 ANTHROPIC_BASE_URL=http://127.0.0.1:9
start_daemon
say 79 'are you there?' >/dev/null
check 'what keeps Ava from an answer is a message' skip_until 20 tells 79 'nothing answ'
equal 'the service found nothing amiss' '[]' "$(seen | jq -c .wrong)"
finish
