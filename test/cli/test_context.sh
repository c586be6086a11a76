#!/bin/sh
# Conversations that outgrow the window, against a service that counts: room made
# before it is full, a window smaller than the table says, a result read back.
. "${0%/*}/lib.sh"
. "$LIB/models.sh"

# What was taken out is missing in later requests: that is the point here.
models prefix=0 tool=read_file 'args={"path":"f%t.txt"}'

export AVA_LIMITS_TOKENS=10000000 AVA_LIMITS_ITERATIONS=100
mkdir -p "$T/work" "$XDG_CONFIG_HOME/ava"
cd "$T/work" || exit 99
i=0
while [ $i -lt 30 ]; do
	i=$((i + 1))
	seq -f "f$i line %g of no use to anybody" 1 160 >f$i.txt
done
cat >"$XDG_CONFIG_HOME/ava/config.yaml" <<END
models:
  list:
    - id: anthropic/small-window
      context: 40000
      max_output: 2000
    - id: openrouter/some/small-window
      context: 40000
      max_output: 2000
    - id: anthropic/claims-much
      context: 400000
      max_output: 1024
END

start_daemon || { result 1 'avad serves' || finish; }

# run NAME MODEL PLAN: to its end.
run()
{
	"$AVA" run "Read them all, $1. [[mock $3]]" --model "$2" --role code_reviewer --yes \
		--timeout 300 --json >"$T/out.$1" 2>"$T/err.$1" </dev/null
	jq -r .subagent_id "$T/out.$1" >"$T/id.$1"
}
id() { cat "$T/id.$1"; }
log_of() { "$AVA" logs "$(id "$1")" -o json 2>/dev/null; }
events() { log_of "$1" | jq -c "select($2)" | wc -l; }

for model in anthropic/small-window openrouter/some/small-window; do
	name=${model%%/*}
	run "$name" "$model" 'turns=24 window=40000'
	equal "$name: it ends as it should" success "$(jq -r .status "$T/out.$name")"
	edits=$(events "$name" '.eventType == "ContextEdit"')
	[ "$edits" -ge 1 ]
	result $? "$name: room was made" || note_errors
	equal "$name: nothing was refused" 0 \
		"$(events "$name" '.eventType == "InferEnd" and .content.errorClass != null')"
	equal "$name: down to half of the window at the most" 0 \
		"$(events "$name" '.eventType == "ContextEdit" and .content.tokensAfter > 20000')"
	note "$name: $edits edits in $(events "$name" '.eventType == "InferStart"') calls"
	removed=$(log_of "$name" | jq -r 'select(.eventType == "ContextEdit").content.removed[0]' |
		head -n 1)
	[ "$removed" = c1.1 ]
	result $? "$name: the oldest result went first" || note "$removed"
	contains "$name: a marker stands in its place" "taken out to make room" \
		"$AVA_DATA_ROOT/runs/$(id "$name")/messages.jsonl"
done
none_refused 'the service found every request valid'

# The table says 200,000, the service takes 30,000.
mock '/stats?clear' >/dev/null
halved='turns=28 window=30000 latency=60'
run over anthropic/claims-much "$halved"
equal 'a smaller window than told: it ends as it should' success "$(jq -r .status "$T/out.over")"
equal 'after one refusal' 1 \
	"$(events over '.eventType == "InferEnd" and .content.errorClass == "context_overflow"')"
equal 'the cause stands in the log' 1 \
	"$(events over '.eventType == "ContextEdit" and .content.cause == "overflow"')"
contains 'what was learned is written down' '{"spec":{"window":' "$AVA_DATA_ROOT/runs/$(id over)/messages.jsonl"

mock '/stats?clear' >/dev/null

equal 'and kept for the next run' 30000 "$(jq '.models[].window' "$AVA_DATA_ROOT/learned.json")"
kill_daemon
rm "$AVA_DATA_ROOT/learned.json"
start_daemon || { result 1 'avad serves without what was learned' || finish; }

# Decided once: the same run as above, killed when room was made after the refusal; what it
# does then, and when it makes room again, is what it would have done.
edits_of() { log_of "$1" | jq -c 'select(.eventType == "ContextEdit").content |
	[.cause, .removed, .summaryLines, .refetched]'; }
calls_of() { log_of "$1" | jq -r 'select(.eventType == "InferStart").content.callId |
	split(".")[0]' | uniq; }
"$AVA" run "Read them all, over. [[mock $halved]]" --model anthropic/claims-much \
	--role code_reviewer --yes --timeout 300 --background >"$T/started" 2>&1 </dev/null
grep -o 'S-[0-9a-f]\{6,\}' "$T/started" | head -n 1 >"$T/id.again"
halved() { [ "$(events again '.eventType == "ContextEdit"')" -ge 1 ]; }
check 'a request is too large in a run that will be cut off' wait_for 120 halved
kill_daemon
start_daemon || { result 1 'avad serves once more' || finish; }
"$AVA" wait --timeout 200 "$(id again)" >/dev/null 2>&1
equal 'cut off after that it makes room as without' "$(edits_of over)" "$(edits_of again)"
equal 'and as many calls' "$(calls_of over)" "$(calls_of again)"
equal 'and is refused once' 1 \
	"$(events again '.eventType == "InferEnd" and .content.errorClass == "context_overflow"')"

# Nothing is small enough.
run never anthropic/claims-much 'turns=24 window=200'
equal 'where nothing can go it ends by name' 'error model_error' \
	"$(jq -r '"\(.status) \(.stop_reason)"' "$T/out.never")"
[ "$(events never '.eventType == "InferStart"')" -le 4 ]
result $? 'after four attempts at the most' || note_errors

all_replay 'every run replays identically'

finish
