#!/bin/sh
# Subagents of Claude Code in the daemon (claude.py), also of one that was killed meanwhile.
. "${0%/*}/lib.sh"

export CLAUDE_CONFIG_DIR="$T/claude"
mkdir "$CLAUDE_CONFIG_DIR"

start_daemon
play "$LIB/claude.py"
kill_daemon
echo '{"session_id":"s8","hook_event_name":"SubagentStop","agent_id":"y1","agent_type":"T"}' | "$AVA" hook
play "$LIB/claude.py" away
start_daemon
check 'the daemon is back' sh -c '"$AVA" ps >/dev/null'
play "$LIB/claude.py" again
"$AVA" logs --all --type Custom >"$T/lines"
contains 'its line is for people' 'Claude Code: Explore a1 stopped: xxx' "$T/lines"
finish
