#!/bin/sh
# One odd file in the data root, in the place of each name that it has or may have: the daemon starts, runs go
# on, nothing is lost (odd_files.py has the table).
. "${0%/*}/lib.sh"
[ -z "$AVA_SANITIZER" ] || skip 'a table of starts, which would take an hour'
if [ "$(id -u)" = 0 ]; then
	command -v setpriv >/dev/null || skip 'as root it needs setpriv, to be somebody else'
	# The programs stand where an ordinary user may not look, maybe.
	mkdir -m 755 "$T/bin"
	cp "$AVA" "$AVAD" "$T/bin" && cp "$(dirname "$AVAD")"/ava-* "$T/bin" 2>/dev/null
	AVA=$T/bin/ava AVAD=$T/bin/avad AVA_AVAD=$T/bin/avad
fi
play "$SRCDIR/test/cli/odd_files.py"
finish
