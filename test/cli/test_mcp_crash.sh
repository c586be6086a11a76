#!/bin/sh
# kill -9 of daemon, bridge and client between every two steps of the door for MCP clients (mcp_crash.py):
# one spawn, one result, none lost; ids of proposals and tasks are good afterwards.
. "${0%/*}/lib.sh"

mkdir "$T/project"
echo 'int torn_tail(void); /* the torn tail is decided here */' >"$T/project/a.c"
play "$LIB/mcp_crash.py"
finish
