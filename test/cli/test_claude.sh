#!/bin/sh
# Subagents of Claude Code in the daemon (claude.py), also of one that was killed meanwhile.
. "${0%/*}/lib.sh"

export CLAUDE_CONFIG_DIR="$T/claude"
mkdir "$CLAUDE_CONFIG_DIR"
play()
{
	python3 "$SRCDIR/test/cli/claude.py" "$@" >"$T/played" 2>"$T/why"
	check 'all was played' [ $? -eq 0 ] || note "$(tail -n 5 "$T/why")"
	while read -r code name; do
		result "$code" "$name" || note "$(head -c 2000 "$T/why")"
	done <"$T/played"
}

start_daemon
play
kill_daemon
echo '{"session_id":"s8","hook_event_name":"SubagentStop","agent_id":"y1","agent_type":"T"}' | "$AVA" hook
play away
start_daemon
check 'the daemon is back' sh -c '"$AVA" ps >/dev/null'
play again
"$AVA" logs --all --type Custom >"$T/lines"
contains 'its line is for people' 'Claude Code: Explore a1 stopped: xxx' "$T/lines"
finish
