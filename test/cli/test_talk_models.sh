#!/bin/sh
# Ava against the mock of the model services, over each of their forms
# (talk_models.py). The mock refuses what they refuse and compares each request with
# the one before.
. "${0%/*}/lib.sh"
: "${MOCK:=${AVAD%/src/gateway/avad}/test/mock/mock-models}"
[ -x "$MOCK" ] || MOCK=$(dirname -- "$AVA")/../../test/mock/mock-models
[ -x "$MOCK" ] || skip "mock-models is not built: $MOCK"

cat >"$T/rules" <<'END'
{"rules":[{"first":"Talk","play":"turns=2 calls=2 chunks=30 tool=spawn_subagent args={\"role\":\"code_reviewer\",\"task\":\"Read_a.txt_part_%t\",\"context_refs\":[\"c1.%t\"]} text=\"Well then, here it is.\" thinking=1 fault=529:ms=40@1"},
 {"first":"Read_a.txt","play":"turns=1 tool=read_file args={\"path\":\"a.txt\"} submit={\"summary\":\"It_says_one.\",\"output\":{},\"confidence\":0.9,\"caveats\":[]}"}]}
END
"$MOCK" --quiet --rules "$T/rules" >"$T/mock.out" 2>&1 &
keep $!
wait_for 10 grep -q ready "$T/mock.out"
MOCK_URL=$(sed -n 's/^plain //p' "$T/mock.out")
mock() { curl -s --noproxy '*' "$MOCK_URL$1"; }

unset AVA_MODEL
export MOCK_URL
export ANTHROPIC_API_KEY=test-key-0123456789 ANTHROPIC_BASE_URL="$MOCK_URL"
export OPENAI_API_KEY=test-key-0123456789 OPENAI_BASE_URL="$MOCK_URL/v1"
export OPENROUTER_API_KEY=test-key-0123456789 OPENROUTER_BASE_URL="$MOCK_URL/api/v1"
export AVA_LOCAL_BASE_URL="$MOCK_URL/local/v1"
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
[ "$(mock /stats | jq .refused)" = 0 ] ||
	note "$(mock /requests | jq -c '.[] | select(.error != "" and .fault == "")' | head -n 5)"
check 'every line of the logs is an event' \
	"$SRCDIR/test/check_events.py" "$AVA_DATA_ROOT"/logs/ava/*.jsonl
finish
