#!/bin/sh
# otel.endpoint: traces of ended runs go to a collector, each, through a collector that
# is away, slow or full and a daemon that is killed; what it refuses is given up, and
# said so. The collector takes only what a real one takes (otel_collector.py).
. "${0%/*}/lib.sh"
command -v python3 >/dev/null || skip 'no python3'

mkdir "$T/collector" "$T/src"
cd "$T/src" || exit 99
printf 'int kettle(void)\n{\n\treturn 1;\n}\n' >kettle.c
plan() { printf '%s\n' "$@" >"$T/collector/plan"; }
PORT=0
collect() # begins it; the same port as before
{
	: >"$T/collector/seen"
	: >"$T/collector.out"
	python3 "$SRCDIR/test/cli/otel_collector.py" "$T/collector" "$PORT" >"$T/collector.out" 2>"$T/collector.err" &
	COLLECTOR=$!
	keep "$COLLECTOR"
	wait_for 20 grep -q port "$T/collector.out"
	PORT=$(sed -n 's/^port //p' "$T/collector.out")
}
seen() { wc -l <"$T/collector/seen"; }
one_run() { "$AVA" run 'find kettle' --yes --json </dev/null 2>/dev/null | jq -r .subagent_id; }
health() { "$AVA" status --json </dev/null | jq -r ".health.otel.$1"; }
is() { [ "$(health "$1")" = "$2" ]; }
roots() { grep -c ' invoke_agent ' "$T/collector/spans"; }
ids() { "$AVA" trace "$1" --export otlp | jq -r '.. | objects | select(has("spanId")) | .spanId'; }
has_all() { for id in $(ids "$1"); do grep -q "^$id " "$T/collector/spans" || return 1; done; }
told() { grep -h "delivery.$1" "$AVA_DATA_ROOT"/logs/ava/*.jsonl | jq -r '.content.data | "\(.channel) \(.subagentId) \(.rejectedSpans) \(.reason)"'; }

# --- off by default

start_daemon || { result 1 'avad serves' || finish; }
before=$(one_run)
equal 'without an endpoint nothing is said of it' null "$(health endpoint)"
run "$AVA" trace "$before" --push
exits 'and nothing can be pushed' 2
contains 'which says what to do' 'set otel.endpoint in config.yaml' "$ERR"
stop_daemon

# --- taken

plan ok
collect
mkdir -p "$XDG_CONFIG_HOME/ava"
printf 'otel:\n  endpoint: http://127.0.0.1:%s\n  retry: 0\n  give_up: 600\n  timeout: 60\n' "$PORT" >"$XDG_CONFIG_HOME/ava/config.yaml"
(umask 077; echo 'OTEL_EXPORTER_OTLP_HEADERS="x-api-key=sesame%20open, x-more=1"' >"$XDG_CONFIG_HOME/ava/env")
start_daemon || { result 1 'avad serves with an endpoint' || finish; }
one=$(one_run)
check 'the trace of an ended run is pushed' wait_for 60 is pushed 1
equal 'in one request, which is taken, with the key' "ok 200 $(ids "$one" | wc -l) key " "$(cat "$T/collector/seen")"
check 'all of it' has_all "$one"
equal 'and nothing of runs before' 1 "$(roots)"
run "$AVA" status
contains 'status says so' "traces to http://127.0.0.1:$PORT: 1 pushed" "$OUT"
run "$AVA" doctor
contains 'doctor asks it' "traces of ended runs are pushed to http://127.0.0.1:$PORT, with 2 headers (file), which answers" "$OUT"
equal 'with no span' 'ok 200 0 key ' "$(tail -n 1 "$T/collector/seen")"
plan 401
run "$AVA" doctor
exits 'doctor finds a key that is refused' 1
contains 'and says so' '(file): it answers 401' "$OUT"
plan ok
restart_daemon
equal 'a restart pushes nothing again' 3 "$(seen)"
run "$AVA" trace "$before" --push
exits 'an older run is pushed when asked' 0
check 'at once' wait_for 60 has_all "$before"
equal 'and is no part of the queue' 2 "$(roots)"
run "$AVA" trace S-000000 --push
exits 'not one that is none' 5

# --- partial, later

plan 'partial 3'
two=$(one_run)
check 'what it leaves out is told' wait_for 60 is left_out_spans 3
equal 'with its words' 'it left out 3 spans: too old' "$(health problem)"
left_out() { [ "$(told left_out)" = "otel $two 3 it left out 3 spans: too old" ]; }
check 'with an event' wait_for 20 left_out
equal 'and is not sent again' 5 "$(seen)"
plan ok ok ok ok ok '429 1' 503 502 504 drop ok
three=$(one_run)
check 'full, away, broken: it comes in the end' wait_for 60 is pushed 3
equal 'after six attempts' '429 503 502 504 200 200' "$(tail -n 6 "$T/collector/seen" | awk '{print $(NF-2)}' | tr '\n' ' ' | sed 's/ $//')"
equal 'and no other problem is left' '' "$(health problem)"
check 'all of it again' has_all "$three"

# --- more spans than go at once; the second part is tried again alone

calls() { jq -nc --argjson n "$1" '{tool_calls: [range(200) | {name: "read_file", args: {path: "f\($n + .)"}}]}'; }
submit='{"tool_calls":[{"name":"submit_result","args":{"output":null,"summary":"done","confidence":1}}]}'
{ calls 0; calls 200; calls 400; echo "$submit"; } >"$T/many.jsonl"
at=$(seen)
i=0
while [ $i -lt "$at" ]; do echo ok; i=$((i + 1)); done >"$T/collector/plan"
printf '%s\n' ok 503 ok >>"$T/collector/plan"
many=$("$AVA" run 'read much' --model "offline:$T/many.jsonl" --yes --json </dev/null 2>/dev/null | jq -r .subagent_id)
check 'a long trace goes in parts' wait_for 60 is pushed 4
equal 'each sent until it is taken' '200 512,503 94,200 94' \
	"$(tail -n 3 "$T/collector/seen" | awk '{print $(NF-2), $(NF-1)}' | paste -sd, -)"
check 'all of it' has_all "$many"

# --- refused: not tried again

at=$(seen)
plan 400
four=$(one_run)
check 'what it refuses is given up' wait_for 60 is given_up 1
equal 'at once' $((at + 1)) "$(seen)"
logged() { told gave_up | grep -q "^otel $1 "; }
wait_for 20 logged "$four" # the count is there before the event
equal 'with an event that says so, without the key' "otel $four null it answers 400: as planned, said to [redacted]" "$(told gave_up)"
run "$AVA" status
contains 'status counts it' '1 given up' "$OUT"

# --- slow, away, and a daemon that is killed

plan 'slow 300'
five=$(one_run)
check 'a run ends while the collector sleeps' test -n "$five"
check 'the daemon answers meanwhile' wait_for 10 is at_work_on "$five"
kill_daemon
stop_pid KILL "$COLLECTOR"
start_daemon
check 'it is tried again after a kill' wait_for 60 is at_work_on "$five"
six=$(one_run)
: >"$T/collector/spans"
plan ok
collect
check 'the collector is there again' wait_for 120 is pushed 2
check 'with what was under way' has_all "$five"
check 'and what came meanwhile' has_all "$six"
equal 'each once' 2 "$(roots)"


# --- records of a log, behind the spans of their run; a part that is refused for now is sent again alone

settings() { printf 'otel:\n  endpoint: http://127.0.0.1:%s\n  retry: 0\n  give_up: 600\n' "$PORT"; printf '  %s\n' "$@"; }
stop_daemon
settings 'logs: 1' >"$XDG_CONFIG_HOME/ava/config.yaml"
plan ok
stop_pid KILL "$COLLECTOR"
collect
start_daemon || { result 1 'avad serves with logs' || finish; }
plan ok 503 ok
logged=$(one_run)
check 'a run with its records is pushed' wait_for 60 is pushed 1
equal 'the spans once, the records again' '200 /v1/traces,503 /v1/logs,200 /v1/logs' \
	"$(sed -E 's/^[^ ]+ ([0-9]+) [0-9]+ key ?(.*)$/\1 \2/; s/ $/ \/v1\/traces/' "$T/collector/seen" | paste -sd,)"
equal 'with the ids of its span' "$("$AVA" trace "$logged" --export otlp | jq -r '.resourceSpans[0].scopeSpans[0].spans[0] | "\(.traceId) \(.spanId)"')" \
	"$(cut -d' ' -f2- "$T/collector/logs" | sort -u)"
equal 'one for each event of the span' "$("$AVA" trace "$logged" --export otlp | jq -r '.resourceSpans[0].scopeSpans[0].spans[0].events[].name')" \
	"$(cut -d' ' -f1 "$T/collector/logs")"

plan nologs
"$AVA" run 'no logs' --model offline --yes </dev/null >/dev/null 2>&1
check 'where only logs are refused the trace is taken' wait_for 60 is pushed 2
one_run >"$T/id"
check 'each of them' wait_for 60 is pushed 3
equal 'none is given up' 0 "$(health given_up)"
equal 'and it is told once' 1 "$(grep -c 'takes no logs: it answers 404' "$AVA_DATA_ROOT/logs/avad.log")"

# --- metrics: sums since the process began

stop_daemon
settings 'metrics: 1' >"$XDG_CONFIG_HOME/ava/config.yaml"
plan ok
start_daemon || { result 1 'avad serves with metrics' || finish; }
one_run >"$T/id"
point() { grep "^$1 " "$T/collector/metrics" | tail -n 1 | sed 's/.* //'; }
ended() { [ "$(point ava.runs.ended)" = "$1" ]; }
check 'counters are pushed' wait_for 60 ended 1
calls=$(jq -s '[.[] | select(.eventType == "InferEnd")] | length' "$AVA_DATA_ROOT/logs/subagents/$(cat "$T/id")".jsonl)
equal 'its calls by model' "$calls" "$(point gen_ai.client.inference.duration)"
contains 'by the names of the conventions' 'gen_ai.operation.name=chat,gen_ai.provider.name=ava.offline,gen_ai.request.model=offline' "$T/collector/metrics"
input=$(jq -s '[.[] | select(.eventType == "InferEnd") | .content.tokens.input] | add' "$AVA_DATA_ROOT/logs/subagents/$(cat "$T/id")".jsonl)
equal 'tokens as its log has them' "$input" "$(point gen_ai.client.inference.usage.input_tokens)"
plan 503
refused() { grep -q 'metrics are not taken' "$AVA_DATA_ROOT/logs/avad.log"; }
check 'a push that is not taken is told' wait_for 60 refused
one_run >"$T/id"
plan ok
check 'and the next one has all of it' wait_for 60 ended 2
equal 'all of one process' 1 "$(sed -n 's/^push //p' "$T/collector/metrics" | sort -u | wc -l)"

# --- headers that are none

stop_daemon
(umask 077; echo 'OTEL_EXPORTER_OTLP_HEADERS=nonsense' >"$XDG_CONFIG_HOME/ava/env")
run "$AVA" ps
check 'headers that are none' [ "$CODE" -ne 0 ]
contains 'are named' 'OTEL_EXPORTER_OTLP_HEADERS: entry 1 is no header' "$ERR"
equal 'every line is an event' 0 "$("$SRCDIR/test/check_events.py" "$AVA_DATA_ROOT"/logs/ava/*.jsonl 2>&1 | grep -vc ' 0 bad')"

finish
