#!/bin/sh
# kill -9 of daemon, bridge and client between every two steps of the door for MCP clients (mcp_crash.py):
# one spawn, one result, none lost; ids of proposals and tasks are good afterwards.
. "${0%/*}/lib.sh"

mkdir "$T/project"
echo 'int torn_tail(void); /* the torn tail is decided here */' >"$T/project/a.c"
PYTHONDONTWRITEBYTECODE=1 python3 "$SRCDIR/test/cli/mcp_crash.py" >"$T/played" 2>"$T/why"
result $? 'all was tried' || note "$(tail -n 5 "$T/why")"
while read -r code name; do
	result "$code" "$name" || note "$(grep -F "# $name" "$T/why" | head -c 2000)"
done <"$T/played"
finish
