#!/bin/sh
# What other programs write, as they write it (others.py).
. "${0%/*}/lib.sh"

export CLAUDE_CONFIG_DIR="$T/claude"
mkdir "$T/project" "$CLAUDE_CONFIG_DIR"
echo 'int kettle(void) { return 1; }' >"$T/project/kettle.c"
start_daemon
play "$LIB/others.py"
finish
