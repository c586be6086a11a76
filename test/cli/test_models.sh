#!/bin/sh
# Models on the wire, through the whole of ava: every service, every quirk and
# every fault that mock-models plays has the outcome that it must have. The mock
# refuses what the real services refuse, so a request that was not right shows.
. "${0%/*}/lib.sh"
: "${MOCK:=${AVAD%/src/gateway/avad}/test/mock/mock-models}"
[ -x "$MOCK" ] || MOCK=$(dirname -- "$AVA")/../../test/mock/mock-models
[ -x "$MOCK" ] || skip "mock-models is not built: $MOCK"

"$MOCK" --quiet --tls --ca "$T/ca.pem" --tls-bad expired --tls-bad name --tls-bad self \
	turns=2 tool=read_file 'args={"path":"a.txt"}' >"$T/mock.out" 2>"$T/mock.err" &
keep $!
wait_for 10 grep -q ready "$T/mock.out"
address() { sed -n "s/^$1 //p" "$T/mock.out"; }
MOCK_URL=$(address plain)
mock() { curl -s --noproxy '*' "$MOCK_URL$1"; }

unset AVA_MODEL
export ANTHROPIC_API_KEY=test-key-0123456789 ANTHROPIC_BASE_URL="$MOCK_URL"
export OPENAI_API_KEY=test-key-0123456789 OPENAI_BASE_URL="$MOCK_URL/v1"
export OPENROUTER_API_KEY=test-key-0123456789 OPENROUTER_BASE_URL="$MOCK_URL/api/v1"
export AVA_LOCAL_BASE_URL="$MOCK_URL/local/v1"
export AVA_RUNS_MAX=200 AVA_LIMITS_TOKENS=10000000
export AVA_NET_FIRST_EVENT_TIMEOUT=3 AVA_NET_IDLE_TIMEOUT=3
mkdir "$T/work"
cd "$T/work" || exit 99
printf 'one\ntwo\n' >a.txt

# A daemon, or the end of this test.
serve()
{
	start_daemon || { result 1 'avad serves' || finish; }
}

# start NAME MODEL PLAN: begin a run; its id stands in $T/id.NAME. Each has a model of
# its own, so that none waits at the gate that another one's fault has closed.
start()
{
	"$AVA" run "Look at a.txt, $1. [[mock $3]]" --model "$2-$1" --role code_reviewer --yes \
		--background >"$T/started" 2>&1 </dev/null
	grep -o 'S-[0-9a-f]\{6,\}' "$T/started" | head -n 1 >"$T/id.$1"
	[ -s "$T/id.$1" ] || note "$1: $(cat "$T/started")"
}

# of NAME JQ-FILTER: from its result, when it has ended.
of()
{
	"$AVA" wait --timeout 120 "$(cat "$T/id.$1")" >/dev/null 2>&1
	"$AVA" result "$(cat "$T/id.$1")" --json 2>&1 </dev/null | jq -r "$2"
}

# succeeds NAME CALLS WHY: it submitted, after so many calls of the tool: none that the
# model made was lost, none was carried out twice.
succeeds()
{
	equal "$1: $3" "success submitted $2" \
		"$(of "$1" '"\(.status) \(.stop_reason) \(.evidence.tools.read_file // 0)"')"
}

# fails NAME STOP-REASON WORDS WHY
fails()
{
	of "$1" '"\(.status) \(.stop_reason) \(.error)"' >"$T/why"
	contains "$1: $4" "error $2" "$T/why"
	contains "$1: and the words say so" "$3" "$T/why"
}

serve

# Those that wait longest go first.
A=anthropic/claude-sonnet-4-5
for fault in stall-head stall-first stall:900 comments cut:900 cut:1900@1 error:6 eof:700 529x2 \
	429:retry-after=1 429:date=2 429:ms=300 503 500 html500 html200 json200 empty200 reset \
	close 529:should-retry=true; do
	start "again-$(printf '%s' "$fault" | tr -c 'a-z0-9' -)" $A "fault=$fault"
done
for quirk in crlf cr bom spaces ping unknown redacted sealed omitted multi-data no-event split \
	usage-twice comments; do
	start "quirk-$quirk" $A "quirk=$quirk"
done
for fault in unknown-tool bad-name long-name bad-args args-concat deep:200 half-tool pause \
	text-call; do
	start "odd-${fault%:*}" $A "fault=$fault"
done
for fault in bad-utf8 surrogate nul; do
	start "text-$fault" $A "fault=$fault"
done
start calls $A fault=calls:200
start dup-ids $A fault=dup-ids
start empty $A fault=emptyx3
start no-submit $A fault=no-submit
start empty-always $A 'fault=emptyx*'
start pause-always $A fault=pausex10
start refusal $A fault=refusal
start told-not $A 'fault=529:should-retry=false'
start overflow $A 'fault=overflowx*'
start auth $A 'fault=401x*'
start billing $A 'fault=402x*'
start missing $A 'fault=404x*'
start too-large $A 'fault=413x*'

O=openai/gpt-4o R=openrouter/some/model L=local/qwen
for model in $O $R $L; do
	name=${model%%/*}
	start "$name-plain" $model turns=2
	start "$name-again" $model 'fault=cut:700 fault=503@1'
	for quirk in index0 no-index no-ids args-object args-whole name-twice; do
		start "$name-calls-$quirk" $model "calls=3 quirk=$quirk"
	done
	for quirk in finish-stop finish-last no-usage split; do
		start "$name-quirk-$quirk" $model "quirk=$quirk"
	done
done
start reasoning-details $R thinking=1
start reasoning-content $L 'thinking=1 quirk=reasoning-content quirk=timings'
start in-band $R fault=error:4
start moderation $R fault=403
start quota $O 'fault=quotax*'
start o-overflow $L 'fault=overflowx*'

# --- faults that pass --------------------------------------------------------------
for name in "$T"/id.again-*; do
	succeeds "${name##*/id.}" 2 'tried again, nothing lost, nothing twice'
done
for name in "$T"/id.quirk-*; do
	succeeds "${name##*/id.}" 2 'is no fault'
done
for name in unknown-tool bad-name long-name bad-args args-concat deep half-tool pause; do
	succeeds "odd-$name" 1 'the model is told and goes on'
done
for name in "$T"/id.text-*; do
	succeeds "${name##*/id.}" 2 'odd text is mended'
done
succeeds odd-text-call 1 'a call written as text is asked for again'
succeeds empty 2 'three empty replies are asked again'
succeeds calls 201 'each of 200 calls has its result'
succeeds dup-ids 3 'calls of one id have a result each'
equal 'no-submit: a final text is nudged once' submitted "$(of no-submit .stop_reason)"

# --- faults that end a run ----------------------------------------------------------
fails empty-always empty_replies 'nothing' 'empty replies without end'
fails pause-always model_error paused 'pauses without end'
fails refusal refusal refused 'a refusal'
fails told-not model_error 'not to try again' 'x-should-retry: false'
fails overflow model_error 'does not fit' 'more than the context'
fails auth model_error ANTHROPIC_API_KEY 'a bad key'
fails billing model_error 'cannot pay' 'no credit'
fails missing model_error 'another model' 'no such model'
fails too-large model_error 'too large' 'a request that is too large'
fails moderation model_error 'does not allow' 'moderation'
fails quota model_error 'cannot pay' 'a 429 that is about money'
fails o-overflow model_error 'does not fit' 'more than the context of a local model'

# --- chat completions ----------------------------------------------------------------
for name in openai openrouter local; do
	succeeds "$name-plain" 2 'answers'
	succeeds "$name-again" 2 'is tried again'
	for quirk in index0 no-index no-ids args-object args-whole name-twice; do
		succeeds "$name-calls-$quirk" 6 'three calls stay three'
	done
	for quirk in finish-stop finish-last no-usage split; do
		succeeds "$name-quirk-$quirk" 2 'is no fault'
	done
done
succeeds reasoning-details 2 'goes back unmodified'
succeeds reasoning-content 2 'is taken'
succeeds in-band 2 'an error inside the stream is tried again'
check 'the cost that OpenRouter names is taken' \
	[ "$(of openrouter-plain '.cost_cents > 0')" = true ]

# --- what the mock thinks of it --------------------------------------------------------
equal 'no request was one that a service refuses' 0 "$(mock /stats | jq .refused)"
[ "$(mock /stats | jq .refused)" = 0 ] ||
	note "$(mock /requests | jq -c '.[] | select(.error != "" and .fault == "")' | head -n 5)"
check 'every line of the log is an event' \
	"$SRCDIR/test/check_events.py" "$AVA_DATA_ROOT"/logs/subagents/*.jsonl

# --- a fan-out -------------------------------------------------------------------------
# Four runs that begin alike: one writes the service's prompt cache, the others wait for
# its first bytes and read it.
for i in 1 2 3 4; do
	"$AVA" run 'The same task.' --model anthropic/claude-sonnet-4-5 --role code_reviewer --yes \
		--background 2>&1 </dev/null | grep -o 'S-[0-9a-f]\{6,\}' | head -n 1
done >"$T/fan"
# shellcheck disable=SC2046
run "$AVA" wait --timeout 60 $(cat "$T/fan")
mock /requests | jq -r '.[] | select(.model == "claude-sonnet-4-5" and .turn == 0) |
	if .cacheReadTokens > 0 then "read" else "write" end' | sort | uniq -c | tr -d ' \n' >"$T/fan.cache"
equal 'the second and later runs hit the cache of the first' 3read1write "$(cat "$T/fan.cache")"

# --- TLS -------------------------------------------------------------------------------
stop_daemon
export SSL_CERT_FILE="$T/ca.pem" ANTHROPIC_BASE_URL="$(address tls)"
serve
start tls $A turns=2
start tls-cut $A fault=cut:900
succeeds tls 2 'over TLS'
succeeds tls-cut 2 'a stream that is reset is tried again'
stop_daemon
for bad in expired name self; do
	ANTHROPIC_BASE_URL=$(address $bad)
	serve
	start "tls-$bad" $A turns=2
	fails "tls-$bad" model_error certificate 'a certificate that is not good is not taken'
	stop_daemon
done
finish
