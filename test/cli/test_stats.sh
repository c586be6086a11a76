#!/bin/sh
# Figures for charts (GET /api/v1/stats) and for Prometheus (GET /metrics).
. "${0%/*}/lib.sh"

ask() { curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://ava$1"; }
start_daemon
equal 'of nothing there is nothing' '[0,0,0,0,{}]' "$(ask /api/v1/stats | jq -c '[(.models,.tools,.rows,.top|length),.runs]')"
mkdir "$T/src"
echo 'int kettle_boil(void);' >"$T/src/kettle.h"
cat >"$T/turns.jsonl" <<'END'
{"tool_calls":[{"name":"read_file","args":{"path":"kettle.h"}},{"name":"read_file","args":{"path":"no.h"}}],"usage":{"input":1000,"output":50}}
{"text":"done","tool_calls":[{"name":"submit_result","args":{"output":null,"summary":"done","confidence":0.5}}],"usage":{"input":2000,"output":70}}
END
cd "$T/src" || exit 99
"$AVA" run 'boil' --role code_reviewer --model "offline:$T/turns.jsonl" --yes >"$T/out" 2>&1
check 'a run ends' [ $? -eq 0 ] || note "$(cat "$T/out")"
ask '/api/v1/stats?parts=7' >"$T/stats"
equal 'its calls are counted with their tokens' '[2,0,3000,120,3120]' \
	"$(jq -c '.models[0] | [.calls,.failed,.input,.output,.tokens]' "$T/stats")"
equal 'in the part in which they were made' '[0,0,0,0,0,0,3120]' "$(jq -c '.rows[0].token_parts' "$T/stats")"
of() { ask "/api/v1/stats?by=$1" | jq -c '.rows[0] | [.name,.runs,.failed,.calls,.tokens]'; }
equal 'its role, and how it ended' '["code_reviewer",1,0,2,3120] 1' "$(of role) $(jq .runs.success "$T/stats")"
equal 'its project' "[\"$T/src\",1,0,2,3120]" "$(of project)"
equal 'and who asked for it' "[\"$(id -un)\",1,0,2,3120]" "$(of user)"
equal 'a key that is none is refused' invalid "$(ask '/api/v1/stats?by=kettle' | jq -r .error.code)"
equal 'a tool that failed is told' '["read_file",2,1]' "$(jq -c '.tools[] | select(.name == "read_file") | [.name,.calls,.failed]' "$T/stats")"
equal 'percentiles do not go down' true "$(jq '.tools[0].ms | .p50 <= .p90 and .p90 <= .p99 and .p99 <= .max' "$T/stats")"
equal 'yesterday there was nothing' '[0,{}]' "$(ask '/api/v1/stats?since=yesterday&until=today' | jq -c '[(.models|length),.runs]')"
equal 'a span that ends before it begins is refused' invalid "$(ask '/api/v1/stats?since=today&until=yesterday' | jq -r .error.code)"
equal 'as is a time that is none' invalid "$(ask '/api/v1/stats?since=soonish' | jq -r .error.code)"
equal 'and a part too many' invalid "$(ask '/api/v1/stats?parts=401' | jq -r .error.code)"
ask /metrics >"$T/metrics"
contains 'metrics: runs' 'ava_runs_spawned_total 1' "$T/metrics"
contains 'metrics: health' 'ava_healthy 1' "$T/metrics"
equal 'metrics: each line is a comment or a figure' 0 "$(grep -cvE '^(# (HELP|TYPE) ava_[a-z_]+ .+|ava_[a-z_]+(\{[^}]*\})? [-+0-9.e]+)$' "$T/metrics")"
equal 'metrics: no name has two types' "$(grep -c '^# TYPE' "$T/metrics")" "$(grep '^# TYPE' "$T/metrics" | cut -d' ' -f3 | sort -u | wc -l)"
finish
