# telegram.sh - a bot of Telegram over its API (telegram_bot.py) beside what lib.sh has; source it behind
# that. The bot serves at $PORT, its token is $TOKEN, the person is $ME, and we are in $T/src.
command -v curl >/dev/null && command -v python3 >/dev/null && command -v jq >/dev/null ||
	skip 'no curl, python3 or jq'

TOKEN=4711:AAkettle-canary_0123456789abcdefghi
ME=77
mkdir -p "$T/src" "$XDG_CONFIG_HOME/ava"
cd "$T/src" || exit 99
printf 'int kettle(void) /* %s */\n{\n\treturn 1;\n}\n' "$TOKEN" >kettle.c
env PYTHONDONTWRITEBYTECODE=1 ${CLOCK:+"LD_PRELOAD=$CLOCK"} python3 "$SRCDIR/test/cli/telegram_bot.py" "$TOKEN" >"$T/bot.out" 2>"$T/bot.err" &
keep $!
wait_for 20 grep -q port "$T/bot.out"
PORT=$(sed -n 's/^port //p' "$T/bot.out")
printf 'telegram:\n  url: http://127.0.0.1:%s\n  pace_ms: 0\n  edit_ms: 200\nweb:\n  searxng: http://127.0.0.1:9\n' "$PORT" >"$XDG_CONFIG_HOME/ava/config.yaml"

put_token() { (umask 077; echo "TELEGRAM_BOT_TOKEN=$TOKEN" >"$XDG_CONFIG_HOME/ava/env"); }

bot() { curl -s --max-time 20 "http://127.0.0.1:$PORT/test/$1" -d "$2"; }
seen() { bot messages "{\"wait\":$WAITING}"; }
# form WHAT FIELD=TEXT...: the same with fields. In wait_for the service waits until the answer `is` a text, or
# is at `least` a number, and `seen` until there is something new.
form()
{
	form_what=$1
	shift
	for form_field in "$@"; do
		set -- "$@" --data-urlencode "$form_field"
		shift
	done
	curl -s --max-time 20 "http://127.0.0.1:$PORT/test/$form_what" -d "wait=$WAITING" "$@"
}
say() { form say "from=$1" "text=$2"; }
reply() { form say "from=$ME" "reply=$1" "text=$2"; }
press() { bot press "{\"from\":${3:-$ME},\"message\":$1,\"button\":\"$2\"}"; }
# count TEXT [LEAST]: messages with this text.
count() { form count "text=$1" "least=${2:-0}"; }
has() { [ "$(count "$1" "${2:-1}")" -ge "${2:-1}" ]; }
# The newest message with this text.
number() { form number "text=$1"; }
text_of() { form text "n=$1"; }
says() { [ "$(form count "n=$1" "text=$2" least=1)" -ge 1 ]; }
buttons() { form buttons "n=$1"; }
pressed() { [ "$(form pressed "query=$1" least=1)" -ge 1 ]; }
taken() { [ "$(form waiting is=0)" = 0 ]; }
state() { "$AVA" telegram --json 2>/dev/null </dev/null | jq -r "$1"; }
is() { [ "$(state "$1")" = "$2" ]; }
# events TYPE: how many the daily logs have.
events() { cat "$AVA_DATA_ROOT"/logs/ava/*.jsonl | grep -c "\"eventType\":\"$1\""; }
heard() { jq -s --arg t "$1" 'map(select(.eventType == "UserMessage" and .content.text == $t)) | length' "$AVA_DATA_ROOT"/logs/ava/*.jsonl; }
heard_once() { [ "$(heard "$1")" = 1 ]; }
pending() { "$AVA" proposals --json </dev/null 2>/dev/null | jq -r '.[0].proposal_id // empty'; }
quoted() { P=$(pending) && [ -n "$P" ] && has "$P"; }
pair() { say $ME "$("$AVA" telegram pair </dev/null | sed -n 's/^    //p')" >/dev/null && wait_for 20 has 'Paired.'; }
# yes_of N: what the first button of that message carries.
yes_of() { seen | jq -r --argjson n "$1" '.messages[] | select(.message_id == $n).markup.inline_keyboard[0][0].callback_data'; }
# asker LINE...: a role that says these, and waits for ten minutes; in $T/asks.jsonl.
asker()
{
	mkdir -p "$XDG_CONFIG_HOME/ava/agents"
	printf -- '---\nname: asker\ndescription: asks\nmodel: offline:%s\ntools: read_file\n---\nAsk.\n' "$T/asks.jsonl" >"$XDG_CONFIG_HOME/ava/agents/asker.md"
	printf '%s\n' "$@" '{"text":"never said","delay_ms":600000}' >"$T/asks.jsonl"
}
# ava_says LINE...: what Ava does from now on, for the next daemon too; `proposes TASK [MORE]` is such a line.
ava_says()
{
	printf '%s\n' "$@" >"$T/ava.jsonl"
	unset AVA_MODEL
	export AVA_AVA_MODEL="offline:$T/ava.jsonl"
}
proposes() { jq -nc --arg task "$1" "{tool_calls: [{name: \"spawn_subagent\", args: {role: \"asker\", task: \$task${2:+, $2}}}]}"; }
# begin: the daemon, with its door open.
begin() { start_daemon && wait_for 20 is .state serving; }
