#!/bin/sh
# The conversation that README.md shows: script/readme_chat plays it on a pseudo terminal and what is
# shown is what README.md has. It waits for the update that comes after 30 seconds.
. "${0%/*}/lib.sh"
command -v python3 >/dev/null || skip 'no python3'
BIN=$(cd "$(dirname -- "$AVA")" && pwd)
[ -x "$BIN/avad" ] || BIN=${BIN%/src/cli}

python3 "$SRCDIR/script/readme_chat" --check "$BIN" >"$T/check" 2>&1
check 'README.md shows what is said' [ $? -eq 0 ] || note "$(cat "$T/check")"
finish
