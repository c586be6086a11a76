#!/bin/sh
# Models on the wire, through the whole of ava: every service, what a reply has that must go back
# in the next request (test_faults.sh has the faults, test_stream_golden.c odd streams), caches
# shared by runs, TLS. The mock refuses what the real services refuse, so a request that was not right shows.
. "${0%/*}/lib.sh"
. "$LIB/models.sh"
models --tls --ca "$T/ca.pem" --tls-bad self \
	turns=2 tool=read_file 'args={"path":"a.txt"}'

export AVA_RUNS_MAX=200 AVA_LIMITS_TOKENS=10000000
mkdir "$T/work"
cd "$T/work" || exit 99
printf 'one\ntwo\n' >a.txt

# A daemon, or the end of this test.
serve()
{
	start_daemon || { result 1 'avad serves' || finish; }
}

# start NAME MODEL PLAN: begin a run; its id stands in $T/id.NAME. Each has a model of
# its own.
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

A=anthropic/claude-sonnet-4-5 O=openai/gpt-4o R=openrouter/some/model L=local/qwen
for quirk in redacted sealed omitted; do
	start "quirk-$quirk" $A "quirk=$quirk"
done
for model in $O $R $L; do
	name=${model%%/*}
	start "$name-plain" $model turns=2
	for quirk in index0 no-index no-ids args-object; do
		start "$name-calls-$quirk" $model "calls=3 quirk=$quirk"
	done
done
start reasoning-details $R thinking=1
start reasoning-content $L 'thinking=1 quirk=reasoning-content'
start no-submit $A fault=no-submit

# --- quirks: what came goes back so that the service takes it ---------------------------
for quirk in redacted sealed omitted; do
	succeeds "quirk-$quirk" 2 'is no fault'
done
for name in openai openrouter local; do
	succeeds "$name-plain" 2 'answers'
	for quirk in index0 no-index no-ids args-object; do
		succeeds "$name-calls-$quirk" 6 'three calls stay three'
	done
done
succeeds reasoning-details 2 'goes back unmodified'
succeeds reasoning-content 2 'is taken'
equal 'a final text is nudged once' submitted "$(of no-submit .stop_reason)"
check 'the cost that OpenRouter names is taken' \
	[ "$(of openrouter-plain '.cost_cents > 0')" = true ]

# --- what the mock thinks of it --------------------------------------------------------
none_refused 'no request was one that a service refuses'
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
export SSL_CERT_FILE="$T/ca.pem" ANTHROPIC_BASE_URL="$(models_address tls)"
serve
start tls $A turns=2
start tls-cut $A fault=cut:900
succeeds tls 2 'over TLS'
succeeds tls-cut 2 'a stream that is reset is tried again'
stop_daemon
ANTHROPIC_BASE_URL=$(models_address self)
serve
start tls-self $A turns=2
fails tls-self model_error certificate 'a certificate that is not good is not taken'
stop_daemon
finish
