#!/bin/sh
# The page in a browser (page.mjs). PEER_MODULES: the folder that npm installed into; CHROMIUM: the
# browser; SHOTS: a folder for pictures, which nobody compares.
. "$(dirname -- "$0")/../../cli/lib.sh"

export CLAUDE_CONFIG_DIR="$T/claude"
mkdir -p "$CLAUDE_CONFIG_DIR/agent-activity"
start_daemon
node "$(dirname -- "$0")/page.mjs"
code=$?
for pid in $(cat "$T/pids" 2>/dev/null); do keep "$pid"; done
exit $code
