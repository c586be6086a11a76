#!/bin/sh
# The daemon's answers have the members that doc/api.yaml names, and no others (shapes.py).
. "${0%/*}/lib.sh"
. "$LIB/postgres.sh"
python3 -c 'import yaml, jsonschema' 2>/dev/null || skip 'no python3-yaml and python3-jsonschema'

env PYTHONDONTWRITEBYTECODE=1 python3 "$LIB/telegram_bot.py" 4711:AAkettle-canary_0123456789abcdefghi >"$T/bot.out" 2>&1 &
keep $!
wait_for 20 grep -q port "$T/bot.out"
BOT=http://127.0.0.1:$(sed -n 's/^port //p' "$T/bot.out")
export BOT
mkdir -p "$XDG_CONFIG_HOME/ava/agents"
printf 'telegram:\n  url: %s\n  pace_ms: 0\nbudget:\n  day_cents: 900\notel:\n  endpoint: %s\n' "$BOT" "$BOT" >"$XDG_CONFIG_HOME/ava/config.yaml"
(umask 077; echo TELEGRAM_BOT_TOKEN=4711:AAkettle-canary_0123456789abcdefghi >"$XDG_CONFIG_HOME/ava/env")
printf -- '---\nname: boiler\ndescription: works in the kitchen\noutput_schema: {type: object}\ncolour: red\n---\nWork.\n' >"$XDG_CONFIG_HOME/ava/agents/boiler.md"
echo 'no role' >"$XDG_CONFIG_HOME/ava/agents/broken.md"
mkdir -p "$XDG_CONFIG_HOME/ava/skills/kettle" "$XDG_CONFIG_HOME/ava/skills/odd"
printf -- '---\nname: kettle\ndescription: how to boil\ncolour: red\n---\nBoil.\n' >"$XDG_CONFIG_HOME/ava/skills/kettle/SKILL.md"
echo 'no skill' >"$XDG_CONFIG_HOME/ava/skills/odd/SKILL.md"
export CLAUDE_CONFIG_DIR="$T/claude"
mkdir "$CLAUDE_CONFIG_DIR"
if postgres_there && postgres; then # another daemon that is a member of a cluster
	MEMBER=$T/member
	export MEMBER
	AVA_CLUSTER_URL="$PG_URL" "$AVAD" --cluster init >/dev/null
	# Without the token: a second one who polls takes the messenger away from the first.
	AVA_CLUSTER_URL="$PG_URL" AVA_DATA_ROOT="$MEMBER" XDG_CONFIG_HOME="$T/none" start_daemon
fi
start_daemon
play "$LIB/shapes.py"
finish
