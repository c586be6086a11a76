#!/bin/sh
# Deliveries to triggers: who may, what is counted once, and what the run is told (triggers.py).
. "${0%/*}/lib.sh"
start_daemon
play "$LIB/triggers.py"
check 'every line of the logs is as it should be' python3 "$SRCDIR/test/check_events.py" \
	"$AVA_DATA_ROOT"/logs/ava/*.jsonl "$AVA_DATA_ROOT"/logs/subagents/*.jsonl
finish
