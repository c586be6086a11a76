# terminal.sh - a person at a terminal (terminal.py). Source it behind lib.sh.
command -v python3 >/dev/null || skip 'no python3'
unset NO_COLOR
export TERM=xterm-256color
mkdir "$T/src"
cd "$T/src" || exit 99
SEEN=$T/seen

# at COLUMNS STEP... -- COMMAND...: what was shown is in $T/raw, and in $SEEN without \r, what
# was written over, and where links lead.
at()
{
	at_columns=$1
	shift
	run python3 "$LIB/terminal.py" "$at_columns" "$T/raw" "$@"
	cr=$(printf '\r')
	esc=$(printf '\033')
	sed "s/$esc]8;[^$esc]*$esc.//g; s/$cr*\$//; s/.*$cr//" "$T/raw" >"$SEEN"
}
# widest FILE: columns of its widest line, escapes apart.
widest()
{
	python3 -c '
import re, sys, unicodedata
def width(line):
    line = re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", line)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else not unicodedata.combining(c)
               for c in line)
print(max(map(width, open(sys.argv[1], encoding="utf-8").read().split("\n"))))' "$1"
}
