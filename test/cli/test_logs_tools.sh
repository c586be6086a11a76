#!/bin/sh
# The lines for people who look into the logs, as they are written down, beside
# a daemon at work; and the tools that others use on such files, where they are
# there: jq, ripgrep, lnav, DuckDB, awk.
. "${0%/*}/lib.sh"
command -v jq >/dev/null || skip 'no jq'

mkdir "$T/src"
cd "$T/src" || exit 99
printf 'int kettle(void)\n{\n\treturn 1;\n}\n' >kettle.c
printf '{"error":{"class":"invalid_request","message":"no such kettle"}}\n' >"$T/wrong.jsonl"
PATH=$(dirname "$AVA"):$PATH
start_daemon --service
"$AVA" run --yes --json 'find kettle' >"$T/result" 2>/dev/null
id=$(jq -r .subagent_id "$T/result")
"$AVA" run --yes --json --model "offline:$T/wrong.jsonl" 'find kettle' >"$T/failed" 2>/dev/null
failed=$(jq -r .subagent_id "$T/failed")

# as_written NAME LINE: run the very words of a manual.
as_written() { run sh -c "$2" && exits "$1" 0; }

as_written 'ava logs --last 100' 'ava logs --last 100'
contains 'has her log' "SubagentSpawn $id" "$OUT"
as_written 'ava logs S-id' "ava logs $id"
contains 'has the trace' 'ToolCall search_codebase' "$OUT"
as_written 'errors of the past hour' 'ava logs --type error --since "1 hour ago"'
contains 'are there' 'no such kettle' "$OUT"
contains 'with the run' "$failed" "$OUT"
as_written 'jq over her logs' "jq 'select(.eventType == \"Error\")' \$AVA_DATA_ROOT/logs/ava/*.jsonl"
equal 'finds what ava finds there' \
	"$("$AVA" logs --agent ava --type error -o json | jq -c .lsn | tr '\n' ' ')" \
	"$(jq -c .lsn "$OUT" | tr '\n' ' ')"
as_written 'jq over those of runs' "jq 'select(.eventType == \"Error\")' \$AVA_DATA_ROOT/logs/subagents/*.jsonl"
equal 'finds the error' 'no such kettle' "$(jq -r .content.message "$OUT" | grep -o 'no such kettle' | head -n 1)"
as_written 'cat and jq' "cat \$AVA_DATA_ROOT/logs/subagents/$id.jsonl | jq ."
equal 'every event' "$(wc -l <"$AVA_DATA_ROOT/logs/subagents/$id.jsonl")" "$(jq -s length "$OUT")"

# --- following

sh -c 'exec tail -f $AVA_DATA_ROOT/logs/ava/$(date +%Y-%m-%d).jsonl' >"$T/tail" 2>/dev/null &
tail=$!
keep "$tail"
"$AVA" logs -f >"$T/follow" 2>/dev/null &
follow=$!
keep "$follow"
check 'tail -f shows what is there' wait_for 60 grep -q "$failed" "$T/tail"
"$AVA" run --yes --json 'find kettle again' >"$T/result" 2>/dev/null
new=$(jq -r .subagent_id "$T/result")
today=$AVA_DATA_ROOT/logs/ava/$(date +%Y-%m-%d).jsonl
# Around midnight the day of the line above may be over.
if grep -q "$new" "$today" 2>/dev/null; then
	ended() { grep "\"eventType\":\"SubagentComplete\"" "$1" | grep -q "\"agentId\":\"$new\""; }
	[ -s "$T/tail" ] && check 'and what comes' wait_for 60 ended "$T/tail"
fi
check 'ava logs -f too' wait_for 60 grep -q "SubagentComplete $new" "$T/follow"
stop_pid TERM "$tail"
stop_pid TERM "$follow"
stop_daemon

# --- others

files="$AVA_DATA_ROOT/logs/ava/*.jsonl $AVA_DATA_ROOT/logs/subagents/*.jsonl"
# shellcheck disable=SC2086 # words
lines=$(cat $files | wc -l | tr -d ' ')
# shellcheck disable=SC2086 # words
equal 'awk has a line for each event' "$lines" "$(cat $files | awk -F'"eventType":"' '{ split($2, a, "\""); n += a[1] != "" } END { print n }')"
if command -v rg >/dev/null; then
	equal 'rg finds what is there' "$(cat $files | grep -c '"eventType":"Error"')" \
		"$(rg -I --no-messages -c '"eventType":"Error"' "$AVA_DATA_ROOT/logs" | awk '{ n += $1 } END { print n }')"
fi
if command -v lnav >/dev/null; then
	# One at a time: it takes files that begin with the same line for one.
	for file in $files; do
		env TERM=dumb lnav -n "$file"
	done >"$OUT" 2>"$ERR"
	equal 'lnav reads every line' "$lines" "$(grep -c '"eventType":"' "$OUT")"
fi
duck() { # a query, its answer as CSV
	if command -v duckdb >/dev/null; then
		duckdb -csv -noheader -c "$1"
	else
		python3 -c 'import duckdb, sys; print(duckdb.sql(sys.argv[1]).fetchone()[0])' "$1"
	fi
}
if command -v duckdb >/dev/null || python3 -c 'import duckdb' 2>/dev/null; then
	glob=$AVA_DATA_ROOT/logs/*/*.jsonl
	equal 'DuckDB has every event' "$lines" \
		"$(duck "select count(*) from read_json_auto('$glob', union_by_name = true)")"
	equal 'and can tell them apart' "$(cat $files | grep -c '"eventType":"ToolCall"')" \
		"$(duck "select count(*) from read_json_auto('$glob', union_by_name = true) where eventType = 'ToolCall'")"
fi
finish
