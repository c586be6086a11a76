#!/bin/sh
# One conversation as a person sees it in each door (conversation.py): terminal, Telegram, Matrix, editor and MCP read
# the same. `test_conversation.sh anew` writes the golden files anew; the page's is test/peers/page's.
. "${0%/*}/lib.sh"
. "$LIB/conversation.sh"

env PYTHONDONTWRITEBYTECODE=1 python3 "$LIB/telegram_bot.py" 4711:AAkettle-canary_0123456789abcdefghi >"$T/bot.out" 2>&1 &
keep $!
env PYTHONDONTWRITEBYTECODE=1 python3 "$LIB/matrix_server.py" syt_kettle_canary_0123456789 >"$T/hs.out" 2>&1 &
keep $!
wait_for 20 grep -q port "$T/bot.out"
wait_for 20 grep -q port "$T/hs.out"
BOT=http://127.0.0.1:$(sed -n 's/^port //p' "$T/bot.out")
HS=http://127.0.0.1:$(sed -n 's/^port //p' "$T/hs.out")
export BOT HS
printf 'telegram:\n  url: %s\n  pace_ms: 0\n  edit_ms: 100\nmatrix:\n  homeserver: %s\n  pace_ms: 0\n  edit_ms: 100\n' "$BOT" "$HS" >"$XDG_CONFIG_HOME/ava/config.yaml"
(umask 077; printf 'TELEGRAM_BOT_TOKEN=4711:AAkettle-canary_0123456789abcdefghi\nMATRIX_ACCESS_TOKEN=syt_kettle_canary_0123456789\n' >"$XDG_CONFIG_HOME/ava/env")

to() { curl -s --max-time 20 "$1/test/$2" -d "$3"; }
serves() { "$AVA" "$1" --json 2>/dev/null </dev/null | jq -e '.state == "serving"' >/dev/null; }
paired() { "$AVA" "$1" --json </dev/null | jq -e '.paired | length == 1' >/dev/null; }
code_of() { "$AVA" "$1" pair </dev/null | sed -n 's/^    //p'; }
joined() { to "$HS" messages '{}' | jq -e '.rooms["!ben:test"].in' >/dev/null; }
start_daemon
wait_for 20 serves telegram
wait_for 20 serves matrix
to "$BOT" say "{\"from\":77,\"text\":\"$(code_of telegram)\"}" >/dev/null
code=$(code_of matrix)
to "$HS" invite '{"from":"ben"}' >/dev/null
wait_for 20 joined
to "$HS" say "{\"from\":\"ben\",\"text\":\"$code\",\"reply\":\"\"}" >/dev/null
check 'a bot of Telegram' wait_for 20 paired telegram
check 'a room of Matrix' wait_for 20 paired matrix
play "$LIB/conversation.py" "$@"
finish
