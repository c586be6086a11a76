#!/bin/sh
# The conversation that README.md shows: script/readme_chat plays it on a pseudo
# terminal and what is shown is what README.md has; with mock-models in the place of a
# service it goes the same way. Both wait for the update that comes after 30 seconds.
. "${0%/*}/lib.sh"
command -v python3 >/dev/null || skip 'no python3'
: "${MOCK:=${AVAD%/src/gateway/avad}/test/mock/mock-models}"
[ -x "$MOCK" ] || MOCK=$(dirname -- "$AVA")/../../test/mock/mock-models
BIN=$(cd "$(dirname -- "$AVA")" && pwd)
[ -x "$BIN/avad" ] || BIN=${BIN%/src/cli}

python3 "$SRCDIR/script/readme_chat" --check "$BIN" >"$T/check" 2>&1 &
check_pid=$!
keep $check_pid
if [ -x "$MOCK" ]; then
	python3 "$SRCDIR/script/readme_chat" --mock "$MOCK" "$BIN" >"$T/mock" 2>&1 &
	mock_pid=$!
	keep $mock_pid
fi
wait $check_pid
check 'README.md shows what is said' [ $? -eq 0 ] || note "$(cat "$T/check")"
if [ -x "$MOCK" ]; then
	wait $mock_pid
	check 'the same with a service: it was played to its end' [ $? -eq 0 ] || note "$(tail -n 40 "$T/mock")"
	for part in 'Proceed? [Yes/No]' '🚀 Spawning Researcher subagent (S-' 'It is running' \
		'⏳ Subagent still working: ' '✅ Subagent [Researcher]: Complete (' \
		'• src/os/lock.c:' '$ ava logs S-' 'InferEnd i1 ('; do
		contains "and has: $part" "$part" "$T/mock"
	done
fi
finish
