#!/bin/sh
# kill -9 of the daemon and of `ava acp` between every two messages of a turn (acp_crash.py): one spawn, one
# result, shown, and none lost.
. "${0%/*}/lib.sh"

mkdir "$T/tree"
printf 'int parse_header(const char *s)\n{\n\treturn 0;\n}\n' >"$T/tree/parser.c"
start_daemon || { result 1 'avad serves' || finish; }
play "$LIB/acp_crash.py"
check 'and the recoveries lost nothing' test ! -e "$AVA_DATA_ROOT/lost"
finish
