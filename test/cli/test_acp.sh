#!/bin/sh
# ava acp: what an editor is told and asked over a turn, in which order, and what it is refused;
# cancel, two prompts, a daemon that is killed, an editor that disappears (acp.py is the editor).
. "${0%/*}/lib.sh"

mkdir "$T/tree"
printf 'int parse_header(const char *s)\n{\n\treturn 0;\n}\n' >"$T/tree/parser.c"
start_daemon || { result 1 'avad serves' || finish; }
if [ $# -eq 0 ]; then # beside the others, in a root of their own: what waits for a daemon that does not answer
	AVA_DATA_ROOT="$T/alone" python3 -B "$LIB/acp.py" test_no_daemon test_hung >"$T/alone.out" 2>&1 &
	alone=$!
	play "$LIB/acp.py" but test_no_daemon test_hung
	wait "$alone"
	result $? 'those that wait have ended'
	results "$T/alone.out"
else
	play "$LIB/acp.py" "$@"
fi

# Text that comes in pieces is a service's.
: "${MOCK:=${AVAD%/src/gateway/avad}/test/mock/mock-models}"
if [ -x "$MOCK" ] && [ $# -eq 0 ]; then
	stop_daemon
	cat >"$T/rules" <<'END'
{"rules":[{"first":"Talk","play":"turns=0 chunks=30 text=\"Well then, here it is, in many small pieces.\" thinking=1"},
 {"first":"Broken","play":"turns=0 chunks=30 text=\"Well then, here it is, in many small pieces.\" fault=cut:3200@0"}]}
END
	"$MOCK" --quiet --rules "$T/rules" >"$T/mock.out" 2>&1 &
	keep $!
	check 'mock-models serves' wait_for 10 grep -q ready "$T/mock.out"
	unset AVA_MODEL
	export ANTHROPIC_API_KEY=test-key-0123456789
	ANTHROPIC_BASE_URL=$(sed -n 's/^plain //p' "$T/mock.out")
	export ANTHROPIC_BASE_URL
	start_daemon || result 1 'avad serves'
	play "$LIB/acp.py" streamed
fi
finish
