#!/bin/sh
# README.md and doc/TOUR.md say what is so: their examples, figures and transcripts, and the moving picture,
# which script/readme_chat and script/readme_cast play on pseudo terminals. The conversation waits for the
# update that comes after 30 seconds; the picture is played meanwhile.
. "${0%/*}/lib.sh"
command -v python3 >/dev/null || skip 'no python3'
BIN=$(cd "$(dirname -- "$AVA")" && pwd)
[ -x "$BIN/avad" ] || BIN=${BIN%/src/cli}

python3 "$SRCDIR/script/readme_chat" --check "$BIN" >"$T/check" 2>&1 &
chat=$!
keep $chat
if [ -x "$BIN/test/mock/mock-models" ]; then
	python3 "$SRCDIR/script/readme_cast" --check "$BIN" >"$T/cast" 2>&1
	code=$?
	if [ $code -eq 77 ]; then
		note "$(cat "$T/cast")"
	else
		check 'doc/images/kill.svg shows what is printed' [ $code -eq 0 ] || note "$(cat "$T/cast")"
	fi
fi
play "$SRCDIR/test/cli/readme.py"
wait $chat
check 'doc/TOUR.md shows what is said' [ $? -eq 0 ] || note "$(cat "$T/check")"
finish
