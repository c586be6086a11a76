#!/bin/sh
# A bot of Telegram over its API (telegram_bot.py, as strict as the service): pairing, a quote
# with buttons, a line that is edited, results; strangers, and a service that refuses. What binds a
# button: test_telegram_bindings.sh; a service that fails: test_telegram_lines.sh, _hostile and _crash.
. "${0%/*}/lib.sh"
own_clock # the bot's as well
. "$LIB/telegram.sh"

# --- without a token, with one where it does not belong

start_daemon || { result 1 'avad serves' || finish; }
run "$AVA" telegram
exits 'without a token there is no bot' 2
contains 'which says what to do' 'write TELEGRAM_BOT_TOKEN=... into the file env' "$ERR"
equal 'and status says nothing of it' null "$("$AVA" status --json </dev/null | jq .health.telegram)"
stop_daemon
TELEGRAM_BOT_TOKEN=$TOKEN start_daemon
check 'a token of the environment is not taken' is .state closed
check 'and that is said' sh -c '"$AVA" status | grep -q "stands in the environment"'
check 'by doctor too' sh -c 'TELEGRAM_BOT_TOKEN=4711:AAkettle-canary_0123456789abcdefghi "$AVA" doctor | grep -q "stands in the environment"'
stop_daemon

cp "$XDG_CONFIG_HOME/ava/config.yaml" "$T/good.yaml"
printf 'telegram:\n  token: %s\n' "$TOKEN" >"$XDG_CONFIG_HOME/ava/config.yaml"
run "$AVA" ps
contains 'nor one of config.yaml' 'config.yaml:2: the token does not stand in this file' "$ERR"
lacks 'which does not show it' "${TOKEN#*:}" "$ERR"
printf 'telegram:\n  url: http://192.0.2.1\n' >"$XDG_CONFIG_HOME/ava/config.yaml"
run "$AVA" ps
contains 'a token goes to nobody in the clear' 'telegram.url' "$ERR"

# --- a service that is not there

printf 'telegram:\n  url: http://127.0.0.1:9\n' >"$XDG_CONFIG_HOME/ava/config.yaml"
put_token
start_daemon
has_problem() { [ -n "$(state .problem)" ]; }
check 'a service that is not there is said' wait_for 20 has_problem
{ "$AVA" status; "$AVA" telegram; "$AVA" doctor; "$AVA" telegram pair; cat "$AVA_DATA_ROOT/logs/avad.log" "$T/avad.out"; } >"$T/told" 2>&1 </dev/null
contains 'where one looks' 'starting' "$T/told"
lacks 'without the address, which has the token' "${TOKEN#*:}" "$T/told"
check 'everything else goes on' sh -c '"$AVA" run "find kettle" --yes >/dev/null 2>&1 </dev/null'
stop_daemon
rm -r "$AVA_DATA_ROOT"
cp "$T/good.yaml" "$XDG_CONFIG_HOME/ava/config.yaml"

# --- pairing

put_token
run "$AVA" telegram pair
exits 'a daemon that pair starts has a code at once' 0
check 'the door is open' is .state serving
say $ME hello >/dev/null
check 'who is not paired is heard' wait_for 10 taken
equal 'and gets no answer' 0 "$(seen | jq '.messages | length')"
run "$AVA" doctor
contains 'doctor says how it is' 'serving: @kettle_bot, 0 paired' "$OUT"
tried=$("$AVA" telegram pair </dev/null | sed -n 's/^    //p')
for wrong in 0 1 2 3 4; do say 80 "$(printf '%08d' $(((${tried#"${tried%%[!0]*}"}0 / 10 + wrong + 1) % 100000000)))" >/dev/null; done
say 80 "$tried" >/dev/null
wait_for 10 taken
check 'five wrong codes end it' is '.paired | length' 0
run "$AVA" telegram pair
exits 'a code is printed' 0
code=$(sed -n 's/^    //p' "$OUT")
contains 'with a link' "https://t.me/kettle_bot?start=$code" "$OUT"
bot say "{\"from\":78,\"text\":\"$code\",\"chat\":{\"id\":-5,\"type\":\"group\"}}" >/dev/null
bot say "{\"from\":79,\"text\":\"$code\",\"more\":{\"forward_origin\":{\"type\":\"user\"}}}" >/dev/null
wait_for 10 taken
check 'nobody is paired in a group, or by a forward' is '.paired | length' 0
say $ME "/start $code" >/dev/null
check 'the code pairs' wait_for 10 has 'Paired. I look for files in'
equal 'one person' $ME "$(state '.paired[].id')"
say 78 "$code" >/dev/null
wait_for 10 taken
check 'once' is '.paired | length' 1

# --- a quote, yes twice, a line that is edited, a result

say $ME 'Find where kettle is defined' >/dev/null
check 'a quote comes' wait_for 30 has 'Proceed? [Yes/No]'
quote=$(number 'Proceed? [Yes/No]')
equal 'with buttons' 'Yes No Change' "$(buttons "$quote")"
one=$(press "$quote" Yes | jq -r .query)
two=$(press "$quote" Yes | jq -r .query)
check 'both presses are answered' wait_for 20 pressed "$two"
check 'both' wait_for 20 pressed "$one"
check 'the result comes' wait_for 60 has 'From S-'
idle() { "$AVA" sessions --json </dev/null | jq -e 'all(.[]; .status == "idle")' >/dev/null; }
# All that was said is told, and that is on disk.
quiet() { jq -e --argjson lsn "$(cat "$AVA_DATA_ROOT"/logs/ava/*.jsonl | jq -s 'map(select(.eventType == "AssistantMessage").lsn) | max // 0')" \
	'.lsn >= $lsn and (.open.telegram // "") == ""' "$AVA_DATA_ROOT/delivery.json" >/dev/null; }
wait_for 20 idle
check 'and all is told' wait_for 20 quiet
equal 'once' 1 "$(count 'kettle is defined at kettle.c:1')"
equal 'one run' 1 "$(events SubagentSpawn)"
check 'its line was edited to the end' wait_for 20 has 'Subagent [CodeReviewer]: Complete'
equal 'one message' 1 "$(count 'Spawning CodeReviewer subagent')"
check 'the quote says what became of it' wait_for 20 has 'Confirmed: S-'
equal 'and has no buttons' '' "$(buttons "$quote")"

# --- said instead of pressed; answered elsewhere

ask_for() { say $ME "$1" >/dev/null; wait_for 30 quoted; wait_for 20 idle; wait_for 20 quiet; }
spawned() { [ "$(events SubagentSpawn)" = "$1" ]; }
ask_for 'Review the code of kettle'
quote=$(number "$P")
press "$quote" Change >/dev/null
check 'Change asks what' wait_for 20 has "What of $P shall be otherwise?"
reply "$(number "What of $P shall")" 'only 2 minutes' >/dev/null
check 'which is quoted again' wait_for 20 has '• Changed:'
check 'the first quote says so' wait_for 20 says "$quote" 'is replaced by P-'
again=$(number '• Changed:')
P=$(pending)
reply "$again" 'yes perhaps tomorrow' >/dev/null
check 'what is not understood is asked again' wait_for 20 has 'answer yes or no'
equal 'and starts nothing' 1 "$(events SubagentSpawn)"
"$AVA" reject "$P" >/dev/null </dev/null
check 'what is answered on a terminal shows here' wait_for 20 says "$again" 'is rejected: nothing was started'
equal 'without buttons' '' "$(buttons "$again")"

# --- who is not meant

ask_for 'Review the code of kettle'
quote=$(number "$P")
yes=$(yes_of "$quote")
before=$(seen | jq '.messages | length')
bot press "{\"from\":$ME,\"message\":$quote,\"data\":\"$yes\",\"chat\":{\"id\":-5,\"type\":\"group\"}}" >/dev/null
say 78 yes >/dev/null
for more in '"via_bot":{"id":1}' '"forward_date":1' '"sender_chat":{"id":-1}'; do
	bot say "{\"from\":$ME,\"text\":\"yes\",\"more\":{$more}}" >/dev/null
done
bot say "{\"from\":$ME,\"text\":\"yes\",\"as\":\"edited_message\"}" >/dev/null
bot say "{\"from\":$ME,\"text\":\"yes\",\"chat\":{\"id\":-5,\"type\":\"group\"}}" >/dev/null
wait_for 20 taken
equal 'a stranger, a group, a forward, an edit: no run' 1 "$(events SubagentSpawn)"
equal 'and no answer' "$before" "$(seen | jq '.messages | length')"
"$AVA" reject "$P" >/dev/null </dev/null

# --- commands

twice() { has "$1" 2 && [ "$(count "$1")" = 2 ]; }
for command in /runs '/status' /cost; do say $ME "$command" >/dev/null; done
check '/runs' wait_for 20 has 'The newest runs:'
check '/status' wait_for 20 has 'slots used'
check '/cost' wait_for 20 has 'Today: '
say $ME /orders >/dev/null
check '/orders' wait_for 20 has 'There are no standing orders.'
say $ME '/pause O-' >/dev/null
check 'an order has to be named' wait_for 20 has 'Name the order: /pause O-5d09c41e'
RUN=$("$AVA" ps -a --json </dev/null | jq -r '.[0].subagent_id')
say $ME "/logs $RUN" >/dev/null
check '/logs' wait_for 20 has 'SubagentComplete'
say $ME "/result $RUN" >/dev/null
check '/result' wait_for 20 has "$RUN: Complete"
says_all() { says "$(number "$RUN: Complete")" '│       "path": "kettle.c"'; }
check 'which is all of it' says_all
check 'a key that the run has read does not leave' has '[redacted]'
say $ME "/cancel" >/dev/null
check '/cancel wants a name' wait_for 20 has 'Name the run: /cancel'
say $ME "/c" >/dev/null
check 'half a word is no command' wait_for 20 twice '/new - begin a new conversation'
say $ME '/runs@kettle_bot' >/dev/null
check 'a command with the name of the bot' wait_for 20 twice 'The newest runs:'
say $ME "/start $code" >/dev/null
thrice() { has "$1" 3 && [ "$(count "$1")" = 3 ]; }
check '/start again is a greeting' wait_for 20 thrice '/new - begin a new conversation'
bot say "{\"from\":$ME,\"more\":{\"sticker\":{\"file_id\":\"x\"}},\"reply\":$quote}" >/dev/null
check 'pictures are not read' wait_for 20 has 'I read text only.'
bot say "{\"from\":$ME,\"more\":{\"photo\":[{\"file_id\":\"x\"}],\"caption\":\"hello\"}}" >/dev/null
check 'what stands below one is, and Ava knows of it' wait_for 20 heard_once 'hello
[with a picture or file that Ava cannot read]'
wait_for 20 idle
wait_for 20 quiet
bot say "{\"from\":$ME,\"chat\":{\"id\":-5,\"type\":\"group\"},\"more\":{\"migrate_to_chat_id\":-1005}}" >/dev/null
bot say "{\"from\":$ME,\"chat\":{\"id\":-1005,\"type\":\"supergroup\"},\"more\":{\"migrate_from_chat_id\":-5}}" >/dev/null
say $ME "/status S-ffffff" >/dev/null
check 'a run that is none is said' wait_for 20 has 'there is no run S-ffffff'

# --- a text that the client cut

long=$(printf 'Find where kettle is defined. %s' "$(yes 'Mind these notes, all of them.' | head -n 130 | tr '\n' ' ')")
say $ME "$long" >/dev/null
bot say '{"from":79,"text":"a stranger between"}' >/dev/null
say $ME 'Only in C files, and at most 10 cents.' >/dev/null
check 'is one message' wait_for 30 heard_once "$long
Only in C files, and at most 10 cents."
check 'and one quote' wait_for 30 quoted
check 'with what its end says' sh -c '"$AVA" proposals --json </dev/null | jq -r ".[0].config.task" | grep -q "at most 10 cents"'
wait_for 20 taken
"$AVA" reject "$P" >/dev/null </dev/null
wait_for 20 idle
wait_for 20 quiet
say $ME "$long" >/dev/null
check 'one that nothing follows is heard, too' wait_for 30 heard_once "$long"
check 'and quoted' wait_for 30 quoted
"$AVA" reject "$P" >/dev/null </dev/null
wait_for 20 idle
wait_for 20 quiet

# --- the service refuses

bot plan '{"method":"sendMessage","status":429,"retry_after":1}' >/dev/null
say $ME /cost >/dev/null
check '429 waits and goes on' wait_for 20 twice 'Today: '
bot plan '{"method":"sendMessage","status":400,"text":"Proceed?"}' >/dev/null
say $ME 'Find where kettle is defined' >/dev/null
gave_up() { cat "$AVA_DATA_ROOT"/logs/ava/*.jsonl | jq -se 'any(.[]; .content.customType == "delivery.gave_up" and .content.data.channel == "telegram" and (.content.data.reason | contains("refuses")))' >/dev/null; }
check 'a notice that is refused is given up' wait_for 30 gave_up
"$AVA" reject "$(pending)" >/dev/null </dev/null
wait_for 20 idle
wait_for 20 quiet
bot plan '{"method":"sendMessage","status":403,"text":"Proceed?"}' >/dev/null
say $ME 'Find where kettle is defined' >/dev/null
check 'who blocks the bot is known' wait_for 20 is '.paired[0].blocked' true
lines=$(seen | jq '[.calls[] | select(.method != "getUpdates")] | length')
equal 'and gets nothing' "$lines" "$(seen | jq '[.calls[] | select(.method != "getUpdates")] | length')"
P=$(pending)
say $ME /help >/dev/null
check 'until they write' wait_for 20 has "$P"
"$AVA" reject "$P" >/dev/null </dev/null
bot plan '{"method":"getUpdates","status":409}' >/dev/null
check 'another reader is not fought' wait_for 20 is .state 'not listening'
"$AVA" telegram listen >/dev/null </dev/null
check 'and it goes on when told' is .state serving

# --- a question, a long result

stop_daemon
python3 - >"$T/long.jsonl" <<'X'
import json
text = "".join("👩‍👧 line %d\n" % n for n in range(9000))
print(json.dumps({"tool_calls": [{"name": "submit_result", "args": {"output": text, "summary": "long: " + "x" * 600, "confidence": 1}}]}))
X
asker '{"tool_calls":[{"name":"ask_person","args":{"question":"Which parser? \u202enosj","choices":["json","yaml"]}}]'"${CLOCK:+,\"delay_ms\":35000}"'}' "$(cat "$T/long.jsonl")"
ava_says "$(proposes 'ask me')" '{"text":"Shall I?"}' '{"text":"There it is."}'
sed -i 's/pace_ms: 0/pace_ms: 3000/' "$XDG_CONFIG_HOME/ava/config.yaml"
paced=$(seen | jq '.calls | length')
begin
say $ME /new >/dev/null
ask_for 'ask me something'
check 'a quote stands behind what Ava says of it' [ "$(number 'Shall I?')" -lt "$(number "$P")" ]
press "$(number "$P")" Yes >/dev/null
check 'a question comes' skip_until 120 has 'asks: Which parser?'
check 'the line of the run says that it waits' skip_until 60 has '🔍 [Asker] Waiting for an answer: Which parser?'
equal 'what would turn a line around is visible' 0 "$(count "$(printf '\342\200\256')")"
reply "$(number 'asks: Which parser?')" '2' >/dev/null
check 'a reply is its answer' skip_until 60 has 'has its answer'
check 'a long result is a document' skip_until 60 sh -c "curl -s http://127.0.0.1:$PORT/test/messages -d '{}' | jq -e 'any(.messages[]; .document // \"\" | contains(\"line 8999\"))' >/dev/null"
check 'messages keep their distance' sh -c "curl -s http://127.0.0.1:$PORT/test/messages -d '{}' |
	jq -e '[.calls[$paced:][] | select(.chat).at] | length > 5 and ([.[1:], .[:-1]] | transpose | all(.[0] - .[1] > 2.9))' >/dev/null"
check 'the answer was the second' grep -q '"output":"yaml' "$AVA_DATA_ROOT"/logs/subagents/*.jsonl
stop_daemon
sed -i 's/pace_ms: 3000/pace_ms: 0/' "$XDG_CONFIG_HOME/ava/config.yaml"
start_daemon
wait_for 20 is .state serving

# --- a call that needs a yes, words to a run, Cancel, a plain yes

asker '{"tool_calls":[{"name":"read_file","args":{"path":"kettle.c"}}]}'
ava_says "$(proposes 'read it' 'ask_before: ["read_file"]')" '{"text":"Shall I?"}' '{"text":"So."}' '{"text":"It was cancelled.\n✅ Subagent [Asker]: Complete"}'
say $ME /new >/dev/null
ask_for 'read it, please'
spawned=$(events SubagentSpawn)
say $ME yes >/dev/null
check 'a plain yes is one as well' wait_for 20 spawned $((spawned + 1))
RUN=$("$AVA" ps --json </dev/null | jq -r '.[0].subagent_id')
check 'a call that needs a yes is asked about' wait_for 20 has "$RUN asks: "
asks=$(number "$RUN asks: ")
equal 'with buttons' 'Yes No' "$(buttons "$asks")"
press "$asks" Yes >/dev/null
bare() { [ -z "$(form buttons "n=$1" is=)" ]; }
check 'which answers it, and then has none' wait_for 20 bare "$asks"
line=$(number "Spawning Asker subagent ($RUN)")
reply "$line" 'be quick' >/dev/null
check 'a reply to its line is said to the run' wait_for 20 has "$RUN reads that after"
equal 'which has a button' Cancel "$(buttons "$line")"
press "$line" Cancel >/dev/null
check 'Cancel cancels' wait_for 20 says "$line" Cancelled
equal 'for good' cancelled "$("$AVA" status "$RUN" --json </dev/null | jq -r .status)"
equal 'by whom, and where' "telegram:$ME telegram" "$(jq -r 'select(.eventType == "SubagentComplete").content |
	"\(.by) \(.origin)"' "$AVA_DATA_ROOT/logs/subagents/$RUN.jsonl")"
check 'and Ava tells of it' wait_for 20 has 'It was cancelled.'
check 'no line of hers is one of the runtime' has '│ ✅ Subagent [Asker]: Complete'

# --- changes that a run proposes

stop_daemon
asker '{"tool_calls":[{"name":"write_file","args":{"path":"two","content":"zwei\\n            drei\\n"}}]}' \
	'{"tool_calls":[{"name":"submit_result","args":{"output":"two","summary":"Two is written.","confidence":1}}]}'
sed -i 's/^tools: .*/tools: read_file, write_file/' "$XDG_CONFIG_HOME/ava/agents/asker.md"
ava_says "$(proposes 'write two' 'grants: ["rw"]')" '{"text":"Shall I?"}' '{"text":"So."}' '{"text":"Two is proposed."}'
begin
say $ME /new >/dev/null
ask_for 'write two'
say $ME yes >/dev/null
check 'its changes are a message' wait_for 20 has 'proposes to change 1 file'
patch=$(number 'proposes to change 1 file')
check 'its lines are as they stand' has '            drei'
equal 'with buttons' 'Apply Leave' "$(buttons "$patch")"
press "$patch" Apply >/dev/null
check 'Apply writes them' wait_for 20 grep -q zwei "$T/src/two"
check 'and takes the buttons away' wait_for 20 bare "$patch"
equal 'the record says by whom, and where' "telegram:$ME telegram" "$(grep -h '"customType":"applied"' "$AVA_DATA_ROOT"/logs/ava/*.jsonl | jq -r '.content.data | "\(.by) \(.origin)"')"

# --- a yes behind a quote that was answered is for none above it

ava_says "$(printf '%s\n' "$(proposes 'read the first')" "$(proposes 'read the second')" | jq -sc '{tool_calls: map(.tool_calls[])}')" '{"text":"Which?"}' '{"text":"Neither was started."}'
say $ME /new >/dev/null
say $ME 'read both' >/dev/null
check 'two quotes stand one behind the other' wait_for 20 has 'read the second'
spawned=$(events SubagentSpawn)
quote=$(number 'read the second')
check 'the first above' test "$(number 'read the first')" -lt "$quote"
press "$quote" No >/dev/null
check 'the last is answered' wait_for 20 says "$quote" 'is rejected: nothing was started'
say $ME yes >/dev/null
check 'a plain yes is said to Ava' wait_for 20 has 'Neither was started.'
equal 'and starts nothing' "$spawned" "$(events SubagentSpawn)"
quote=$(number 'read the first')
press "$quote" No >/dev/null
check 'each has its own no' wait_for 20 says "$quote" 'is rejected: nothing was started'

# --- long texts, and what looks like markup

python3 - >"$T/ava.jsonl" <<'X'
import json
print(json.dumps({"text": "begin _ *x [y `z\n" + "😀" * 4096 + "end"}))
print(json.dumps({"text": "".join("row %05d\n" % n for n in range(10000)).strip()}))
X
# Those behind the message with this number, as one.
behind() { seen | jq -r --argjson n "$1" '[.messages[] | select(.message_id > $n) | .document // .text] | join("")'; }
last() { seen | jq '.messages[-1].message_id'; }
news=$(count 'What you say next')
renewed() { [ "$(count 'What you say next')" -gt "$news" ]; }
say $ME /new >/dev/null
check 'a new conversation begins' wait_for 20 renewed
from=$(last)
say $ME 'many signs' >/dev/null
signs() { behind "$from" | grep -q 'end$'; }
check 'a text of many signs comes' wait_for 20 signs
python3 -c 'print("begin _ *x [y `z\n" + "😀" * 4096 + "end")' >"$T/signs"
behind "$from" >"$T/came"
check 'whole, in order' cmp -s "$T/signs" "$T/came"
wait_for 20 idle
wait_for 20 quiet
from=$(last)
say $ME 'many rows' >/dev/null
rows() { behind "$from" | grep -q 'row 09999'; }
check 'one of 100 KB is a document' wait_for 20 rows
equal 'with all of it' 10000 "$(behind "$from" | grep -c '^row ')"

# --- a quote that is longer than a message: its buttons stand below its end

long=$(printf 'x%.0s' $(seq 190))
jq -nc --arg long "$long" '{tool_calls: [{name: "spawn_parallel", args: {runs: [range(20) | {role: "asker", task: "\(.) \($long)"}]}}]}' >"$T/ava.jsonl"
printf '%s\n' '{"text":"Shall I?"}' '{"text":"So."}' >>"$T/ava.jsonl"
say $ME /new >/dev/null
ask_for 'twenty things'
check 'a quote of twenty runs comes' wait_for 30 has '• Cost: up to'
quote=$(number 'Proceed? [Yes/No]')
equal 'its buttons stand below its end' 'Yes No Change' "$(buttons "$quote")"
begins=$(number "$P")
equal 'behind its begin' $((quote - 1)) "$begins"
equal 'and it is whole' 20 "$(behind $((begins - 1)) | grep -o ' xxxxx*' | awk 'length == 191' | wc -l)"
press "$quote" No >/dev/null
check 'No shows at its end' wait_for 20 says "$quote" 'is rejected: nothing was started'
equal 'which has no buttons' '' "$(buttons "$quote")"
check 'and is its end as before' says "$quote" 'Proceed? [Yes/No]'

# --- a quote that no three messages can hold

word=$(printf 'word %.0s' $(seq 4000))
printf '%s\n' "$(proposes "look at $word")" '{"text":"Shall I?"}' >"$T/ava.jsonl"
say $ME /new >/dev/null
ask_for 'a long thing'
check 'it says how much of it stands in a file' wait_for 20 has "characters of it stand in the file above, and in \`ava asks $P\`."
words() { seen | jq -r --arg p "$P" '[.messages[] | select(.document // "" | contains($p)).document] | last' | grep -o word | wc -l; }
begins() { seen | jq -e --arg p "$P" 'any(.messages[]; .document == null and (.text | startswith($p + "\n") and contains("• Rights: ")))' >/dev/null; }
check 'behind its beginning, with cost and rights' begins
check 'which has it whole' test "$(words)" -ge 4000
quote=$(number 'Proceed? [Yes/No]')
equal 'its buttons stand below its end' 'Yes No Change' "$(buttons "$quote")"
press "$quote" No >/dev/null
check 'where its end is shown too' wait_for 20 says "$quote" "$P is rejected: nothing was started"

# --- all three rights want more than a press

printf -- '---\nname: spy\ndescription: reads and sends\nmodel: offline:%s\ntools: read_file, read_webpages, web_search\n---\nLook.\n' "$T/spy.jsonl" >"$XDG_CONFIG_HOME/ava/agents/spy.md"
echo '{"text":"nothing"}' >"$T/spy.jsonl"
printf '%s\n' '{"tool_calls":[{"name":"spawn_subagent","args":{"role":"spy","task":"look around","grants":[]}}]}' '{"text":"Shall I?"}' '{"text":"So."}' >"$T/ava.jsonl"
say $ME /new >/dev/null
spawned=$(events SubagentSpawn)
ask_for 'look around'
quote=$(number "$P")
equal 'no button says Yes alone' 'Yes, without web_search Yes, all three No Change' "$(buttons "$quote")"
reply "$quote" yes >/dev/null
check 'which is not enough' wait_for 20 has "$P is not started: this "
equal 'and starts nothing' "$spawned" "$(events SubagentSpawn)"
press "$quote" 'Yes, all three' >/dev/null
check 'all three are' wait_for 20 says "$quote" 'Confirmed: S-'

# --- a quota that is used up, and a run without a result

stop_daemon
. "$LIB/models.sh"
models turns=1 tool=read_file 'args={"path":"kettle.c"}'
sed -i 's|^model: .*|model: anthropic/claude-sonnet-4-5|' "$XDG_CONFIG_HOME/ava/agents/asker.md"
ava_says "$(proposes 'look at the kettle [[mock fault=429:retry-after=7200x1]]')" '{"text":"Shall I?"}' '{"text":"So."}' '{"text":"It was stopped."}'
begin
say $ME /new >/dev/null
ask_for 'look at it later'
press "$(number "$P")" Yes >/dev/null
check 'a run whose quota is used up is asked about' wait_for 20 has 'asks: The limit of anthropic is used up until '
asks=$(number 'asks: The limit of anthropic')
check 'its line says until when, and for what' wait_for 20 has 'parked until '
equal 'its buttons are its choices' 'wait stop' "$(buttons "$asks")"
line=$(number 'parked until ')
reply "$asks" 1 >/dev/null # "wait"
check 'a reply is its answer' wait_for 20 has 'has its answer'
check 'and it waits on' says "$line" 'parked until '
reply "$line" stop >/dev/null
check 'with "stop" it has ended' wait_for 20 says "$line" 'Failed, '
stop_daemon
printf '{"text":"The task is done."}\n%.0s' 1 2 3 >"$T/asks.jsonl"
sed -i "s|^model: .*|model: offline:$T/asks.jsonl|" "$XDG_CONFIG_HOME/ava/agents/asker.md"
ava_says "$(proposes 'say it')" '{"text":"Shall I?"}' '{"text":"So."}' '{"text":"It found nothing."}'
begin
say $ME /new >/dev/null
ask_for 'just say it'
press "$(number "$P")" Yes >/dev/null
check 'a run that handed in nothing has ended without a result' wait_for 20 has '⚠️ Subagent [Asker]: Ended without a result'

# --- a full disk

stop_daemon
AVA_DISK_FREE_MIN_MB=1000000 begin
say $ME 'said to a full disk' >/dev/null
check 'what cannot be kept is told' wait_for 20 has 'I try it again by myself'
stop_daemon
start_daemon
check 'and heard, once, when it can' wait_for 30 heard_once 'said to a full disk'

# --- what stays

equal 'the service found nothing amiss' '[]' "$(seen | jq -c .wrong)"
equal 'the token is in no file but its own' '' "$(grep -rlF "${TOKEN#*:}" "$AVA_DATA_ROOT" "$HOME")"
equal 'runs say where they were asked for' telegram "$("$AVA" status "$RUN" --json </dev/null | jq -r .origin)"
check 'and what was said, and each yes, by which door' sh -c 'cat "$AVA_DATA_ROOT"/logs/ava/*.jsonl | jq -se "[.[] | select(.eventType == \"UserMessage\" or .eventType == \"SpawnConfirmed\") | select(.content.text != \"no\").content.origin] | unique == [\"telegram\"]" >/dev/null'
check 'every event of it says who' sh -c 'cat "$AVA_DATA_ROOT"/logs/ava/*.jsonl | jq -se "[.[] | select(.eventType == \"UserMessage\" or .eventType == \"SubagentSpawn\").userId] | unique == [\"telegram:77\"]" >/dev/null'
run "$AVA" sessions
contains 'conversations are those of ava sessions' 'ask me something' "$OUT"
"$AVA" telegram unpair $ME >/dev/null </dev/null
kill_daemon
wait_for 15 flock -n "$AVA_DATA_ROOT" true
begin
before=$(seen | jq '.messages | length')
say $ME hello >/dev/null
wait_for 20 taken
equal 'who is unpaired is a stranger' "$before" "$(seen | jq '.messages | length')"
bot plan '{"method":"getUpdates","status":401}' >/dev/null
check 'a token that is revoked closes the door' wait_for 20 is .state closed
check 'and nothing else' sh -c '"$AVA" ps >/dev/null'
finish
