# telegram.sh - a bot of Telegram over its API (telegram_bot.py) beside what lib.sh has; source it behind
# that. The bot serves at $PORT, its token is $TOKEN, the person is $ME, and we are in $T/src.
command -v curl >/dev/null && command -v python3 >/dev/null && command -v jq >/dev/null ||
	skip 'no curl, python3 or jq'

TOKEN=4711:AAkettle-canary_0123456789abcdefghi
ME=77
mkdir -p "$T/src" "$XDG_CONFIG_HOME/ava"
cd "$T/src" || exit 99
printf 'int kettle(void) /* %s */\n{\n\treturn 1;\n}\n' "$TOKEN" >kettle.c
PYTHONDONTWRITEBYTECODE=1 python3 "$SRCDIR/test/cli/telegram_bot.py" "$TOKEN" >"$T/bot.out" 2>"$T/bot.err" &
keep $!
wait_for 20 grep -q port "$T/bot.out"
PORT=$(sed -n 's/^port //p' "$T/bot.out")
printf 'telegram:\n  url: http://127.0.0.1:%s\n  pace_ms: 0\n  edit_ms: 200\nweb:\n  searxng: http://127.0.0.1:9\n' "$PORT" >"$XDG_CONFIG_HOME/ava/config.yaml"

put_token() { (umask 077; echo "TELEGRAM_BOT_TOKEN=$TOKEN" >"$XDG_CONFIG_HOME/ava/env"); }

bot() { curl -s --max-time 20 "http://127.0.0.1:$PORT/test/$1" -d "$2"; }
seen() { bot messages '{}'; }
say() { bot say "$(jq -nc --argjson from "$1" --arg text "$2" '{from: $from, text: $text}')"; }
reply() { bot say "$(jq -nc --argjson from $ME --argjson to "$1" --arg text "$2" '{from: $from, text: $text, reply: $to}')"; }
press() { bot press "{\"from\":${3:-$ME},\"message\":$1,\"button\":\"$2\"}"; }
count() { seen | jq --arg text "$1" '[.messages[] | select(.text | contains($text))] | length'; }
has() { [ "$(count "$1")" -ge 1 ]; }
# The newest message with this text.
number() { seen | jq --arg text "$1" '[.messages[] | select(.text | contains($text))] | last | .message_id'; }
text_of() { seen | jq -r --argjson n "$1" '.messages[] | select(.message_id == $n).text'; }
says() { text_of "$1" | grep -qF "$2"; }
buttons() { seen | jq -r --argjson n "$1" '[.messages[] | select(.message_id == $n).markup.inline_keyboard[]?[].text] | join(" ")'; }
pressed() { [ "$(seen | jq -r --arg q "$1" '.presses[$q].answers | length')" -ge 1 ]; }
taken() { [ "$(seen | jq .waiting)" = 0 ]; }
state() { "$AVA" telegram --json 2>/dev/null </dev/null | jq -r "$1"; }
is() { [ "$(state "$1")" = "$2" ]; }
# events TYPE: how many the daily logs have.
events() { cat "$AVA_DATA_ROOT"/logs/ava/*.jsonl | jq -s --arg t "$1" 'map(select(.eventType == $t)) | length'; }
heard() { cat "$AVA_DATA_ROOT"/logs/ava/*.jsonl | jq -s --arg t "$1" 'map(select(.eventType == "UserMessage" and .content.text == $t)) | length'; }
heard_once() { [ "$(heard "$1")" = 1 ]; }
pending() { "$AVA" proposals --json </dev/null 2>/dev/null | jq -r '.[0].proposal_id // empty'; }
quoted() { P=$(pending) && [ -n "$P" ] && has "$P"; }
pair() { say $ME "$("$AVA" telegram pair </dev/null | sed -n 's/^    //p')" >/dev/null && wait_for 20 has 'Paired.'; }
