#!/bin/sh
# Notices over the real daemon: what a client has not seen, across kill -9, and
# notify.exec from config.yaml.
. "${0%/*}/lib.sh"
command -v curl >/dev/null || skip 'no curl'

API=http://x/api/v1
ask() { curl -s --max-time 120 --unix-socket "$AVA_DATA_ROOT/ava.sock" "$@"; }
unseen() { ask "$API/sessions/$1/unseen"; }
ack() { ask "$API/sessions/$1/ack" -d "{\"channel\":\"terminal\",\"lsn\":$2}"; }
# (jq -e takes nothing at all for true.)
healthy() { [ "$(ask $API/health | jq -r .status)" = ok ]; }
# The lock goes with the last thread of who was killed, which may take a moment.
start_again() { wait_for 15 flock -n "$AVA_DATA_ROOT" true; start_daemon; wait_for 60 healthy; }
idle() { [ "$(ask "$API/sessions/$1" | jq '.status == "idle" and .waiting == 0 and .live_runs == 0')" = true ]; }
say() { ask "$API/sessions/$1/messages" -d "$(jq -n --arg t "$2" '{text: $t}')" >/dev/null; wait_for 60 idle "$1"; }
lasting='.type == "AssistantMessage" or .type == "SubagentComplete"'
notices() { cat "$AVA_DATA_ROOT"/logs/ava/*.jsonl | jq -s "map(.type = .eventType | select($lasting)) | length"; }
# The command has taken all there is, and that is on disk.
all_taken()
{
	[ "$(jq -s "map(select($lasting)) | unique_by(.lsn) | length" "$T/took" 2>/dev/null)" = "$(notices)" ] &&
		jq -e 'any(.open[].channels[]; . == "notify") | not' "$AVA_DATA_ROOT/delivery.json" >/dev/null
}

mkdir -p "$T/src" "$XDG_CONFIG_HOME/ava"
printf 'int parse_header(const char *s)\n{\n\treturn 0;\n}\n' >"$T/src/parser.c"
cat >"$T/notify" <<'END'
#!/bin/sh
env >"$1/env"
cat >>"$1/took"
END
chmod 700 "$T/notify"
printf 'notify:\n  exec: [%s, %s]\n  retry: 0\n  timeout: 300\n' "$T/notify" "$T" >"$XDG_CONFIG_HOME/ava/config.yaml"
ANTHROPIC_API_KEY=sk-ant-0123456789 start_daemon

id=$(ask $API/sessions -d "{\"cwd\":\"$T/src\"}" | jq -r .session_id)
for round in 1 2; do
	say "$id" 'Find where parse_header is defined'
	say "$id" yes
done
equal 'what happened is told' '2 runs finished' "$(unseen "$id" | jq -r .summary | cut -d, -f1)"
check 'the command has all of it' wait_for 120 all_taken
equal 'both results' 2 "$(jq -s 'map(select(.type == "SubagentComplete")) | length' "$T/took")"
equal 'each thing once' "$(jq -s 'map(.lsn) | unique | length' "$T/took")" "$(jq -s length "$T/took")"
taken=$(jq -s length "$T/took")
lacks 'and no key' sk-ant "$T/env"
before=$(unseen "$id" | jq -c .items)

kill_daemon
start_again
equal 'after kill -9 the same is told' "$before" "$(unseen "$id" | jq -c .items)"
lsn=$(unseen "$id" | jq .lsn)
equal 'it is acknowledged' 0 "$(ack "$id" "$lsn" | jq .unseen)"
kill_daemon
start_again
equal 'and not told again' '""' "$(unseen "$id" | jq .summary)"
equal 'nor to the command' "$taken" "$(jq -s length "$T/took")"
check 'the recoveries found nothing amiss' test ! -e "$AVA_DATA_ROOT/lost"

printf 'notify:\n  exec: notify-send\n' >"$XDG_CONFIG_HOME/ava/config.yaml"
stop_daemon
run "$AVA" ps
contains 'a command that is no path is refused' \
	'config.yaml:2: notify.exec is "notify-send"; it must be the absolute path of a program' "$ERR"
rm "$XDG_CONFIG_HOME/ava/config.yaml"
finish
