#!/bin/sh
# The page in a browser (page.mjs). PEER_MODULES: the folder that npm installed into; CHROMIUM: the
# browser; SHOTS: a folder for pictures, which nobody compares.
SRCDIR=${SRCDIR:-$(cd "${0%/*}/../../.." && pwd)}
. "${0%/*}/../../cli/lib.sh"
. "$SRCDIR/test/cli/models.sh"
models turns=1 tool=read_file 'args={"path":"kettle.h"}'

export CLAUDE_CONFIG_DIR="$T/claude"
mkdir -p "$CLAUDE_CONFIG_DIR/agent-activity"
AVA_MODEL="offline:$T/slow.jsonl" start_daemon # page.mjs writes it before it asks for anything
node "$SRCDIR/test/peers/page/page.mjs"
code=$?
for pid in $(cat "$T/pids" 2>/dev/null); do keep "$pid"; done
exit $code
