#!/bin/sh
# ava logs with every option, on files as a daemon leaves them: filters over
# all files, counting, turning around, the cursor file, and the tools of others.
. "${0%/*}/lib.sh"

logs=$AVA_DATA_ROOT/logs
mkdir -p "$logs/ava" "$logs/subagents"
chmod 700 "$AVA_DATA_ROOT"
TZ=UTC0
export TZ

# event FILE LSN TYPE AGENT TIME [CONTENT [METADATA]]
event()
{
	printf '{"timestamp":"%s","lsn":%s,"seq":1,"eventType":"%s","agentId":"%s",' "$5" "$2" "$3" "$4"
	printf '"sessionId":"se-%s","traceId":"","userId":"ben","content":%s,"metadata":%s}\n' \
		"$4" "${6:-{\}}" "${7:-{\}}"
} >>"$logs/$1"

day=ava/2026-11-20.jsonl next=ava/2026-11-21.jsonl run=subagents/S-7f3a2b.jsonl
event $day 1 UserMessage ava 2026-11-20T14:05:22.000Z '{"text":"Research pricing"}'
event $day 2 SubagentSpawn S-7f3a2b 2026-11-20T14:05:29.000Z '{"subagentId":"S-7f3a2b","role":"web_crawler","task":"x"}'
event $run 2 SubagentSpawn S-7f3a2b 2026-11-20T14:05:29.000Z '{"subagentId":"S-7f3a2b","role":"web_crawler","task":"x"}'
event $run 3 ToolCall S-7f3a2b 2026-11-20T14:05:30.000Z '{"name":"web_search","args":{"query":"podcast Pricing"}}'
event $run 4 InferEnd S-7f3a2b 2026-11-20T14:05:31.000Z '{}' '{"inputTokens":1000,"outputTokens":50,"costCents":1.2345,"modelId":"m/a"}'
event $run 5 InferEnd S-7f3a2b 2026-11-20T14:05:32.000Z '{}' '{"inputTokens":10,"outputTokens":5,"costCents":0.5,"modelId":"m/b"}'
event $run 6 Error S-7f3a2b 2026-11-20T23:59:59.999Z '{"class":"timeout","message":"\u001b]52;c;x\u0007 \u202e"}'
event $next 7 Error ava 2026-11-21T00:00:00.000Z '{"class":"late","message":"say \"hi\""}'
printf '%s%s%s\n' '{"row":"spawn","lsn":2,"id":"S-7f3a2b","traceId":"b","sessionId":"s","userId":"u","role":"web_crawler",' \
	'"model":"m","status":"starting","requestId":"","origin":"cli","startedAt":"","endedAt":"",' \
	'"bytes":0,"types":0,"totals":{"inputTokens":0,"outputTokens":0,"tokens":0,"costCents":0.0,"durationMs":0,"calls":0,"uncostedCalls":0,"failedCalls":0}}' >"$AVA_DATA_ROOT/catalog.jsonl"

# asked NAME WANT OPTION...: the lsn that are given
asked()
{
	asked_name=$1 want=$2
	shift 2
	run "$AVA" logs "$@" -o json
	equal "$asked_name" "$want" "$(sed 's/.*"lsn":\([0-9]*\).*/\1/' "$OUT" | tr '\n' ' ' | sed 's/ $//')"
}

asked 'without a filter: her own' '1 2 7'
asked 'a type, in all files' '6 7' --type error
asked 'since, and until, which is not in it' '6' --since '2026-11-20 23:00' -U 2026-11-21
asked 'an agent' '2 3 4 5 6' --agent S-7f3a2b
asked 'a session' '1 7' --session se-ava
asked 'a user who is not there' '' --user eve
asked 'small letters find both' '1 3' --search pricing
asked 'an expression' '4 5' -g 'modelId":"m/[ab]'
asked 'the last of those' '5' -g 'modelId":"m/[ab]' -n 1
asked 'newest first' '7 6' --type error -r
asked 'all of the past hour' '' --since '1 hour ago'
asked 'in a run' '3' S-7f3a2b --search Pricing
run "$AVA" logs --type error --since '1 hour ago'
exits 'the command of the manual' 0

run "$AVA" logs --type error
contains 'the run is named' '[23:59:59] [S-7f3a2b] Error timeout: ' "$OUT"
contains 'Ava is not' '[00:00:00] Error late: say "hi"' "$OUT"
contains 'days are told apart' '2026-11-21 --' "$OUT"

equal 'how many' 7 "$("$AVA" logs --count)"
equal 'of a type' 2 "$("$AVA" logs --count --type error)"
equal 'for each type' 'Error 2 0' "$("$AVA" logs --count --by type | awk '/^Error/ { print $1, $2, $3 }')"
equal 'what models cost' '{"model":"m/a","events":1,"inputTokens":1000,"outputTokens":50,"costCents":1.2345,"uncostedCalls":0}' \
	"$("$AVA" logs --count --by model -o json | grep m/a)"
equal 'for each role' 'web_crawler 5 1010' "$("$AVA" logs --count --by role | awk '/^web/ { print $1, $2, $3 }')"
equal 'for each day' '2026-11-20 6 2026-11-21 1' "$("$AVA" logs --count --by day | awk '/^2/ { printf "%s%s %s", s, $1, $2; s = " " }')"
equal 'for each agent, in JSON' '5 2' "$("$AVA" logs --count --by agent -o json | jq -r .events | tr '\n' ' ' | sed 's/ $//')"

for wrong in '--by type' '-f -r' '-f --count' '--cursor-file x -r' '--since soon' '-g (' '--type x' '--count --by colour' '--until 2026-02-30'; do
	# shellcheck disable=SC2086
	run "$AVA" logs $wrong
	exits "refused: $wrong" 2
done

# --- damage is named whatever is asked

cp "$logs/$run" "$T/good"
printf 'not an event\n{"timestamp":' >>"$logs/$run"
for question in '--type tool' '--search Pricing' '-g [P]ricing' '--count' '--count --by model'; do
	# shellcheck disable=SC2086
	run "$AVA" logs $question
	exits "damage: $question" 1
	contains "named: $question" "$run:$(wc -c <"$T/good" | tr -d ' '): this line (12 bytes) is not an event" "$ERR"
	contains "torn: $question" 'was never finished' "$ERR"
done
cp "$T/good" "$logs/$run"

# --- the cursor file: each once, in files that grow in any order

asked 'the first time' '6 7' --cursor-file "$T/cursor" --type error
find "$logs" -mindepth 1 -exec touch -d '1 hour ago' {} + # they rest, and no daemon says who writes
asked 'nothing new' '' --cursor-file "$T/cursor" --type error
event $run 9 Error S-7f3a2b 2026-11-21T09:00:00.000Z
asked 'what is new' '9' --cursor-file "$T/cursor" --type error
later=$(date -u +%Y-%m-%dT%H:%M:%S.000Z)
event $next 12 Error ava "$later"
asked 'newer' '12' --cursor-file "$T/cursor" --type error
event $run 11 Error S-7f3a2b "$later"
asked 'what came late' '11' --cursor-file "$T/cursor" --type error
asked 'once' '' --cursor-file "$T/cursor" --type error
printf 'something else\n' >"$T/cursor"
run "$AVA" logs --cursor-file "$T/cursor"
exits 'another file' 1
equal 'is left alone' 'something else' "$(cat "$T/cursor")"

# --- the tools that others use on such files, as they are written in the manual

equal 'tail' 1 "$(tail -n 1 "$AVA_DATA_ROOT/logs/ava/2026-11-21.jsonl" | wc -l | tr -d ' ')"
equal 'jq' '7 12' "$(jq 'select(.eventType == "Error")' "$AVA_DATA_ROOT"/logs/ava/*.jsonl | jq -r .lsn | tr '\n' ' ' | sed 's/ $//')"
check 'cat and jq' sh -c "cat '$logs/$run' | jq . >/dev/null"
if command -v rg >/dev/null; then
	equal "rg" 1 "$(rg -c podcast "$logs/$run")"
fi
lines=$(cat "$logs"/*/*.jsonl | wc -l | tr -d ' ')
if command -v lnav >/dev/null; then
	# One at a time: it takes files that begin with the same line for one.
	for file in "$logs"/*/*.jsonl; do
		env TERM=dumb lnav -n "$file"
	done >"$OUT" 2>"$ERR"
	equal 'lnav reads every line' "$lines" "$(grep -c '"eventType":"' "$OUT")"
fi
count="select count(*) from read_json_auto('$logs/*/*.jsonl', union_by_name = true)"
if command -v duckdb >/dev/null; then
	equal 'DuckDB has every event' "$lines" "$(duckdb -csv -noheader -c "$count")"
elif python3 -c 'import duckdb' 2>/dev/null; then
	equal 'DuckDB has every event' "$lines" \
		"$(python3 -c 'import duckdb, sys; print(duckdb.sql(sys.argv[1]).fetchone()[0])' "$count")"
fi

finish
