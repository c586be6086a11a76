#!/bin/sh
# README.md and doc/TOUR.md say what is so: their examples, figures and transcripts, and the moving picture,
# which script/readme_chat, readme_cast and readme_evening play on pseudo terminals. The conversation waits for
# the update that comes after 30 seconds; the others are played meanwhile.
. "${0%/*}/lib.sh"
command -v python3 >/dev/null || skip 'no python3'
BIN=$(cd "$(dirname -- "$AVA")" && pwd)
[ -x "$BIN/avad" ] || BIN=${BIN%/src/cli}

python3 "$SRCDIR/script/readme_chat" --check "$BIN" >"$T/check" 2>&1 &
chat=$!
keep $chat
# played SCRIPT WHAT: it plays WHAT again, and finds the same.
played()
{
	python3 "$SRCDIR/script/$1" --check "$BIN" >"$T/$1" 2>&1
	case $? in
	0) check "$2 shows what is printed" true ;;
	77) note "$(cat "$T/$1")" ;;
	*) check "$2 shows what is printed" false || note "$(cat "$T/$1")" ;;
	esac
}
if [ -x "$BIN/test/mock/mock-models" ]; then
	played readme_cast doc/images/kill.svg
	[ -n "$AVA_SANITIZER" ] || played readme_evening 'the night in doc/TOUR.md'
fi
play "$SRCDIR/test/cli/readme.py"
wait $chat
check 'doc/TOUR.md shows what is said' [ $? -eq 0 ] || note "$(cat "$T/check")"
finish
