#!/bin/sh
# Ava against the mock of the model services, over each of their forms
# (talk_models.py). The mock refuses what they refuse and compares each request with
# the one before.
. "${0%/*}/lib.sh"
. "$LIB/models.sh"

cat >"$T/rules" <<'END'
{"rules":[{"first":"Talk","play":"turns=2 calls=2 chunks=30 tool=spawn_subagent args={\"role\":\"code_reviewer\",\"task\":\"Read_a.txt_part_%t\",\"context_refs\":[\"c1.%t\"]} text=\"Well then, here it is.\" thinking=1 fault=529:ms=40@1"},
 {"first":"Read_a.txt","play":"turns=1 tool=read_file args={\"path\":\"a.txt\"} submit={\"summary\":\"It_says_one.\",\"output\":{},\"confidence\":0.9,\"caveats\":[]}"}]}
END
models --rules "$T/rules"
export AVA_NET_CONNECT_TIMEOUT=60
mkdir "$T/work"
cd "$T/work" || exit 99
printf 'one\ntwo\n' >a.txt

# half NAME: with a daemon of its own.
half()
{
	start_daemon || { result 1 'avad serves' || finish; }
	play "$LIB/talk_models.py" "$1" "$T/ids"
	stop_daemon
}

half first
half second
unset ANTHROPIC_API_KEY
half keyless
none_refused 'nothing that a service refuses'
check 'every line of the logs is an event' \
	"$SRCDIR/test/check_events.py" "$AVA_DATA_ROOT"/logs/ava/*.jsonl
finish
