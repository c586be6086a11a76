#!/bin/sh
# The genuine Prometheus scrapes avad, knows what doc/METRICS.md asks and what the board of
# packaging/grafana shows; a genuine collector of OpenTelemetry takes all three signals.
# $PROMETHEUS: the folder of prometheus and promtool; $OTELCOL: a collector; "": not here.
SRCDIR=${SRCDIR:-$(cd "${0%/*}/../../.." && pwd)}
. "${0%/*}/../../cli/lib.sh"
[ -n "${PROMETHEUS:-}${OTELCOL:-}" ] || skip 'neither PROMETHEUS nor OTELCOL is set'

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
AT=127.0.0.1:$(free_port) WEB=127.0.0.1:$(free_port) OTLP=127.0.0.1:$(free_port)
mkdir -p "$XDG_CONFIG_HOME/ava" "$T/src"
TOKEN=$(openssl rand -hex 32)
(umask 077; echo "$TOKEN" >"$T/token")
cat >"$XDG_CONFIG_HOME/ava/config.yaml" <<END
metrics: {listen: "$AT", token: $T/token}
otel: {endpoint: "http://$OTLP", logs: 1, metrics: 1, retry: 0}
END
cd "$T/src" || exit 99
echo 'int kettle_boil(void);' >kettle.h
one_run() { "$AVA" run 'find kettle' --yes --json </dev/null 2>"$ERR" | jq -r .subagent_id; }

# --- a collector of OpenTelemetry

taken() { grep -q "otelcol.signal\": \"$1\"" "$T/otelcol.log"; }
if [ -n "$OTELCOL" ]; then
	cat >"$T/otelcol.yaml" <<END
receivers: {otlp: {protocols: {http: {endpoint: "$OTLP"}}}}
exporters: {debug: {verbosity: detailed, sampling_initial: 100000}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [debug]}
    metrics: {receivers: [otlp], exporters: [debug]}
    logs: {receivers: [otlp], exporters: [debug]}
END
	"$OTELCOL" --config "$T/otelcol.yaml" >"$T/otelcol.log" 2>&1 &
	keep $!
	check 'a collector begins' wait_for 30 grep -q 'Everything is ready' "$T/otelcol.log" || note "$(tail -n 5 "$T/otelcol.log")"
fi
start_daemon || { result 1 'avad serves' || finish; }
first=$(one_run)
if [ -n "$OTELCOL" ]; then
	for signal in traces logs metrics; do
		check "it takes $signal" wait_for 30 taken $signal
	done
	contains 'spans by their names' 'Name           : chat offline' "$T/otelcol.log"
	contains 'of the run' "-> ava.run.id: Str($first)" "$T/otelcol.log"
	contains 'records by theirs' 'EventName: ava.activity' "$T/otelcol.log"
	contains 'a histogram of calls' '-> Name: gen_ai.client.inference.duration' "$T/otelcol.log"
	contains 'sums that only grow' 'IsMonotonic: true' "$T/otelcol.log"
	contains 'since the process began' 'AggregationTemporality: Cumulative' "$T/otelcol.log"
	equal 'and finds nothing wrong' 0 "$(grep -cE '	(warn|error)	' "$T/otelcol.log")"
	equal 'nor does avad' '0 0' "$("$AVA" status --json </dev/null | jq -r '.health.otel | "\(.given_up) \(.left_out_spans)"')"
fi

# --- Prometheus

[ -n "$PROMETHEUS" ] || finish
scrape() { curl -sf -H "Authorization: Bearer $TOKEN" "http://$AT/metrics" >"$T/scrape"; }
scrape
run "$PROMETHEUS/promtool" check metrics <"$T/scrape"
exits 'promtool reads it' 0
equal 'and finds nothing wrong' '' "$(cat "$OUT" "$ERR")"

cat >"$T/prometheus.yml" <<END
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: ava
    authorization: {credentials_file: $T/token}
    static_configs: [{targets: ["$AT"]}]
  - job_name: stranger
    static_configs: [{targets: ["$AT"]}]
END
"$PROMETHEUS/prometheus" --config.file="$T/prometheus.yml" --storage.tsdb.path="$T/tsdb" --web.listen-address="$WEB" >"$T/prometheus.log" 2>&1 &
keep $!
ask() { curl -s --data-urlencode "query=$1" "http://$WEB/api/v1/query"; }
value() { ask "$1" | jq -r '.data.result[0].value[1] // "none"'; }
is() { [ "$(value "$1")" = "$2" ]; }
check 'Prometheus scrapes it with the token' wait_for 60 is 'up{job="ava"}' 1 || note "$(tail -n 5 "$T/prometheus.log")"
check 'and not without' wait_for 60 is 'up{job="stranger"}' 0
check 'it knows of the run' wait_for 60 is 'sum(ava_runs_ended_total)' 1
calls=$(value 'sum(ava_model_call_seconds_count)')
one_run >"$T/id"
check 'a counter grows' wait_for 60 is 'sum(ava_runs_ended_total)' 2
check 'and that of calls' [ "$(value 'sum(ava_model_call_seconds_count)')" -gt "$calls" ]
equal 'by the names of its labels' success "$(ask ava_runs_ended_total | jq -r '.data.result[0].metric.status')"
grows() { [ "$(value 'increase(ava_runs_ended_total[1m])')" != none ] && [ "$(value 'increase(ava_runs_ended_total[1m])')" != 0 ]; }
check 'what has grown is told' wait_for 60 grows
quantile() { case $(value 'histogram_quantile(0.9, sum by (le, model) (ava_model_call_seconds_bucket))') in [0-9]*) ;; *) return 1 ;; esac; }
check 'its histogram has quantiles' quantile

# Every question of the document and of the board is one for it.
sed -n '/^```promql/,/^```/p' "$SRCDIR/doc/METRICS.md" | grep -v '^```' >"$T/asked"
jq -r '.panels[].targets[].expr' "$SRCDIR/packaging/grafana/ava.json" | sed 's/\$__rate_interval\|\$__range/1m/g; s/"\$[a-z]*"/".*"/g' >>"$T/asked"
while read -r query; do
	ask "$query" | jq -e '.status == "success"' >/dev/null || echo "$query"
done <"$T/asked" >"$T/wrong"
check 'it is asked what the document and the board ask' [ "$(wc -l <"$T/asked")" -ge 15 ]
equal 'and knows all of it' '' "$(cat "$T/wrong")"
sed -n '/^```yaml/,/^```/p' "$SRCDIR/doc/METRICS.md" | grep -v '^```' | sed -n '/^scrape_configs:/,$p' | sed "/^#/d; s|/etc/ava-metrics.token|$T/token|" |
	awk '/job_name: ava/ && n++ { sub("ava", "ava-" n) } { print }' >"$T/document.yml"
run "$PROMETHEUS/promtool" check config "$T/document.yml"
exits 'and takes the settings of the document' 0
finish
