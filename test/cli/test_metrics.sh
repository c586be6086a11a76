#!/bin/sh
# /metrics for Prometheus: at an address of its own (metrics.listen), at the port of the page, with
# the token of a file; what it counts, how names are written, and settings that would show it to
# strangers. The genuine Prometheus reads it in test/peers/metrics.
. "${0%/*}/lib.sh"
command -v python3 >/dev/null || skip 'no python3'

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
AT=127.0.0.1:$(free_port) PAGE=$(free_port)
mkdir -p "$XDG_CONFIG_HOME/ava" "$T/src"
set_to() { printf '%s\n' "$@" >"$XDG_CONFIG_HOME/ava/config.yaml"; }
status_of() { curl -s -o "$T/answer" -w '%{http_code}' "$@"; }
# sample NAME: its value in the last scrape
sample() { sed -n "s/^$1 //p" "$T/scrape"; }
scrape() { curl -sf "http://$AT/metrics" >"$T/scrape"; }

# --- an address of its own, and nobody else's name for it

set_to 'metrics:' "  listen: $AT"
start_daemon || { result 1 'avad serves' || finish; }
check 'it is scraped without a token' scrape
equal 'in the form that Prometheus knows' 'text/plain; version=0.0.4; charset=utf-8' \
	"$(curl -s -o "$T/answer" -w '%{content_type}' "http://$AT/metrics")"
equal 'not under a name that leads here from a page' 421 "$(status_of -H 'Host: evil.example' "http://$AT/metrics")"
equal 'nothing else is there' 404 "$(status_of "http://$AT/api/v1/runs")"
equal 'and nothing is changed there' 405 "$(status_of -X POST "http://$AT/metrics")"
equal 'before the first run no model is named' 0 "$(grep -c 'model=' "$T/scrape")"

# --- what is counted

cd "$T/src" || exit 99
echo 'int kettle_boil(void);' >kettle.h
cat >"$T/turns.jsonl" <<'END'
{"tool_calls":[{"name":"read_file","args":{"path":"kettle.h"}},{"name":"read_file","args":{"path":"no.h"}},{"name":"rm","args":{}}],"usage":{"input":1000,"output":50,"cache_read":600}}
{"text":"done","tool_calls":[{"name":"submit_result","args":{"output":null,"summary":"done","confidence":0.5}}],"usage":{"input":2000,"output":70}}
END
cp "$T/turns.jsonl" "$T/odd\"\\name.jsonl"
MODEL=offline:$T/turns.jsonl
boil() { "$AVA" run 'boil' --role code_reviewer --model "$1" --yes --json </dev/null >"$OUT" 2>"$ERR"; }
boil "$MODEL"
equal 'a run ends' success "$(jq -r .status "$OUT")"
scrape
names="role=\"code_reviewer\",model=\"$(printf '%.63s' "$MODEL")\""
equal 'its end is counted by role, model and status' 1 "$(grep -F "ava_runs_ended_total{$names,status=\"success\"} " "$T/scrape" | cut -d' ' -f2)"
total() { grep -F "$1" "$T/scrape" | grep -F "$2" | cut -d' ' -f2; }
equal 'tokens that were read, each of one kind' '2400 600 0 120' \
	"$(for kind in input cache_read cache_write output; do total ava_tokens_total "kind=\"$kind\""; done | paste -sd' ')"
equal 'calls of its model, in each bound' '2 2' "$(total _bucket '+Inf') $(total ava_model_call_seconds_count '')"
equal 'tools, by what came of them' '1 1' "$(sample 'ava_tool_calls_total{tool="read_file",success="true"}') $(sample 'ava_tool_calls_total{tool="read_file",success="false"}')"
equal 'a name that is no tool has no row of its own' '1 0' "$(sample 'ava_tool_calls_total{tool="unknown",success="false"}') $(grep -c '"rm"' "$T/scrape")"
equal 'no run is at work' 0 "$(sample 'ava_runs{state="running"}')"
equal 'each line is a comment or a figure' 0 "$(grep -cvE '^(# (HELP|TYPE) ava_[a-z_]+ .+|ava_[a-z_]+(\{.*\})? [-+0-9.e]+)$' "$T/scrape")"
equal 'no name has two types' "$(grep -c '^# TYPE' "$T/scrape")" "$(grep '^# TYPE' "$T/scrape" | cut -d' ' -f3 | sort -u | wc -l)"
equal 'what only grows is called so, and nothing else' "$(grep -c '_total counter$' "$T/scrape")" \
	"$(grep -cE '^# TYPE .*( counter|_total .*)$' "$T/scrape")"
boil "$MODEL"
scrape
equal 'a second run adds to it' 2 "$(grep -F "ava_runs_ended_total{$names,status=\"success\"} " "$T/scrape" | cut -d' ' -f2)"
boil "offline:$T/odd\"\\name.jsonl"
scrape
case "offline:$T/odd" in
	????????????????????????????????????????????????????*) ;; # the name is cut before
	*) contains 'a quote and a backslash are escaped' 'odd\"\\name.jsonl"' "$T/scrape" ;;
esac
printf '%s\n' '{"error":{"status":400,"message":"no"}}' >"$T/bad.jsonl"
boil "offline:$T/bad.jsonl"
scrape
check 'a call that fails is counted by its class' grep -qE '^ava_model_errors_total\{class="[a-z_]+",model="[^"]+"\} [1-9]' "$T/scrape" || note "$(cat "$OUT" "$ERR")"
board=$SRCDIR/packaging/grafana/ava.json
jq -r '.panels[].targets[].expr, .templating.list[].query.query?' "$board" | grep -o 'ava_[a-z_]*' | sed 's/_\(bucket\|count\|sum\)$//' | sort -u >"$T/named"
check 'the board of Grafana asks for figures' [ "$(wc -l <"$T/named")" -ge 10 ]
equal 'and each is there' '' "$(while read -r name; do grep -q "^# TYPE $name " "$T/scrape" || echo "$name"; done <"$T/named")"
sed -n 's/^| \(`ava_.*\) |.*/\1/p' "$SRCDIR/doc/METRICS.md" | cut -d'|' -f1 | grep -o 'ava_[a-z_]*' | sort -u >"$T/told"
equal 'doc/METRICS.md has each, and no other' "$(sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' "$T/scrape" | sort -u)" "$(cat "$T/told")"

# --- somebody waits

echo '{"tool_calls":[{"name":"ask_person","args":{"question":"which?"}}]}' >"$T/ask.jsonl"
"$AVA" run 'ask' --model "offline:$T/ask.jsonl" --yes --background </dev/null >"$OUT" 2>"$ERR"
waits() { scrape && [ "$(sample 'ava_runs{state="waiting"}')" = 1 ]; }
check 'a run that asks is one that waits' wait_for 20 waits
long() { scrape && [ "$(sample 'ava_oldest_wait_seconds{reason="person"}')" != 0 ]; }
check 'and how long is told' wait_for 20 long
"$AVA" cancel "$(jq -r .subagent_id "$OUT" 2>/dev/null || sed -n 's/.*\(S-[0-9a-f]*\).*/\1/p' "$OUT" | head -n 1)" >"$OUT" 2>&1 </dev/null
restart_daemon
scrape
equal 'a new process counts from nothing' 0 "$(grep -c '^ava_runs_ended_total{' "$T/scrape")"
check 'but the runs of the root are all there' [ "$(sample ava_runs_spawned_total)" -ge 4 ]
stop_daemon

# --- the token

TOKEN=0123456789abcdef0123456789abcdef
(umask 027; echo $TOKEN >"$T/token")
set_to 'web:' "  port: $PAGE" 'metrics:' "  listen: 0.0.0.0:${AT#*:}" "  token: $T/token"
start_daemon || { result 1 'avad serves others with a token' || finish; }
equal 'with a token nobody asks without it' 401 "$(status_of "http://$AT/metrics")"
equal 'nor with another one' 401 "$(status_of -H "Authorization: Bearer ${TOKEN}0" "http://$AT/metrics")"
equal 'nor with a beginning of it' 401 "$(status_of -H 'Authorization: Bearer 0' "http://$AT/metrics")"
equal 'with it the figures are there' 200 "$(status_of -H "Authorization: Bearer $TOKEN" "http://$AT/metrics")"
equal 'by any name' 200 "$(status_of -H "Authorization: Bearer $TOKEN" -H 'Host: build.example' "http://$AT/metrics")"
equal 'at the port of the page, too' 200 "$(status_of -H "Authorization: Bearer $TOKEN" "http://127.0.0.1:$PAGE/metrics")"
equal 'which asks for it' 401 "$(status_of "http://127.0.0.1:$PAGE/metrics")"
equal 'and gives it nothing else' 401 "$(status_of -H "Authorization: Bearer $TOKEN" "http://127.0.0.1:$PAGE/api/v1/runs")"
stop_daemon

# --- an address that is taken

python3 -c "
import socket, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('127.0.0.1', ${AT#*:})); s.listen(); print('taken', flush=True); time.sleep(3600)" >"$T/taken" &
keep $!
wait_for 10 grep -q taken "$T/taken"
set_to 'metrics:' "  listen: $AT"
start_daemon
run "$AVA" ps -a
exits 'one that is taken keeps nobody from work' 0
contains 'and the log says so' 'nobody is served there' "$AVA_DATA_ROOT/logs/avad.log"
stop_daemon

# --- settings that are none

refused() # NAME SENTENCE LINES...
{
	name=$1 sentence=$2
	shift 2
	set_to "$@"
	run "$AVA" ps
	check "$name" [ "$CODE" -ne 0 ]
	contains "$name: says what to do" "$sentence" "$ERR"
}
refused 'no port' 'write address and port, as 127.0.0.1:9464' 'metrics:' '  listen: 127.0.0.1'
refused 'a name' 'write address and port' 'metrics:' '  listen: localhost:9464'
refused 'a port that is none' 'write address and port' 'metrics:' '  listen: 127.0.0.1:99999'
refused 'everybody without a token' 'which others can reach: name the file of a token' 'metrics:' "  listen: 0.0.0.0:${AT#*:}"
refused 'an address of IPv6' 'write address and port' 'metrics:' "  listen: '[::1]:${AT#*:}'"
refused 'no file' 'there is no file' 'metrics:' "  token: $T/none"
refused 'a path from nowhere' 'write the path of a file from / on' 'metrics:' '  token: token'
echo short >"$T/short"
refused 'a short token' 'metrics.token' 'metrics:' "  token: $T/short"
refused 'another key' 'unknown key metrics.lisen: did you mean metrics.listen?' 'metrics:' '  lisen: x'
cp "$T/token" "$T/open" && chmod 666 "$T/open"
refused 'a token that others may change' 'metrics.token' 'metrics:' "  token: $T/open"
finish
