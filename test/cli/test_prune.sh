#!/bin/sh
# ava prune beside the work: the daemon does it, with a conversation open and a run at
# work; what is not over stays, what stays verifies, also behind a crash.
. "${0%/*}/lib.sh"

mkdir "$T/src"
cd "$T/src" || exit 99
printf 'int kettle(void)\n{\n\treturn 0;\n}\n' >kettle.c
printf '{"text":"late","delay_ms":600000}\n' >"$T/slow.jsonl"
start_daemon

mkfifo "$T/said"
"$AVA" <"$T/said" >"$T/chat" 2>&1 &
chat=$!
keep "$chat"
exec 3>"$T/said"
echo hello >&3
check 'a conversation is open' wait_for 20 grep -q . "$T/chat"
slow=$("$AVA" run 'wait a while' --model "offline:$T/slow.jsonl" --yes --background --json 2>/dev/null |
	jq -r .subagent_id)
old=$("$AVA" run 'find kettle' --yes --json 2>/dev/null | jq -r .subagent_id)

run "$AVA" prune
exits 'it must be told what is old' 2
contains 'and how' 'say what is old: --older-than 90d' "$ERR"
run "$AVA" prune --older-than soon
exits 'in a form that is understood' 2
for how in '' --dry-run; do
	# shellcheck disable=SC2086 # one word or none
	run "$AVA" prune --older-than 90d $how
	exits "nothing is that old ($how)" 0
	contains "which is said ($how)" '0 runs and 0 daily logs' "$OUT"
done
check 'it is the same daemon' kill -0 "$DAEMON"

at_work() { [ "$("$AVA" status "$slow" --json | jq -r .status)" = running ]; }
# What ended longer ago than a second: shorter than ava asks for.
pruned()
{
	curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" http://x/api/v1/prune \
		-d "{\"older_than_seconds\":1,\"dry_run\":$1}" >"$T/pruned"
	jq -r '.runs[]?' "$T/pruned" | grep -q "$old"
}
check 'what would go is told' wait_for 20 pruned true
check 'and does not go' test -e "$AVA_DATA_ROOT/logs/subagents/$old.jsonl"
check 'it goes' pruned false
equal 'alone' "[\"$old\"] false" "$(jq -r '"\(.runs) \(.dryRun)"' "$T/pruned")"
refuse 'its log' test -e "$AVA_DATA_ROOT/logs/subagents/$old.jsonl"
refuse 'and its folder' test -e "$AVA_DATA_ROOT/runs/$old"
check 'the run at work keeps its own' test -e "$AVA_DATA_ROOT/logs/subagents/$slow.jsonl"
check 'and is at work' wait_for 20 at_work
check 'the daemon too' kill -0 "$DAEMON"
run "$AVA" logs verify
exits 'what stays is as it was sealed' 0
before=$(wc -l <"$T/chat")
echo 'hello again' >&3
answered() { [ "$(wc -l <"$T/chat")" -gt "$before" ]; }
check 'the conversation goes on' wait_for 20 answered
run "$AVA" run 'find kettle' --yes
exits 'so do new runs' 0

kill_daemon
start_daemon 3>&- # or what is said has no end
check 'a crash later: what was at work still is' wait_for 20 at_work
refuse 'what was pruned does not come back' test -e "$AVA_DATA_ROOT/logs/subagents/$old.jsonl"
refuse 'nor its folder' test -e "$AVA_DATA_ROOT/runs/$old"
run "$AVA" logs verify
exits 'and the chain holds' 0
"$AVA" cancel "$slow" >/dev/null
exec 3>&-
check 'the conversation ends' wait_for 20 gone "$chat" # before the daemon, which it would start again
stop_daemon
run "$AVA" prune --older-than 90d
exits 'without a daemon' 0
finish
