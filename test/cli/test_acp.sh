#!/bin/sh
# ava acp: what an editor is told and asked over a turn, in which order, and what it is refused;
# cancel, two prompts, a daemon that is killed, an editor that disappears (acp.py is the editor).
. "${0%/*}/lib.sh"

mkdir "$T/tree"
printf 'int parse_header(const char *s)\n{\n\treturn 0;\n}\n' >"$T/tree/parser.c"
start_daemon || { result 1 'avad serves' || finish; }
python3 "$LIB/acp.py" "$@" >"$T/acp.out" 2>&1
while IFS= read -r line; do
	case $line in
	'ok '*) result 0 "${line#ok }" ;;
	'not ok '*) result 1 "${line#not ok }" ;;
	*) printf '%s\n' "$line" ;;
	esac
done <"$T/acp.out"
finish
