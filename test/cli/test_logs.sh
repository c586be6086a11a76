#!/bin/sh
# ava logs and ava trace: from the files alone, byte for byte, after a crash and
# around damage.
. "${0%/*}/lib.sh"

mkdir "$T/src"
cd "$T/src" || exit 99
printf 'int kettle(void)\n{\n\treturn 1;\n}\n' >kettle.c

run "$AVA" logs
exits 'no log yet' 5
for asked in 'logs' 'logs --count' 'logs verify' 'trace brave-otter' 'export S-7f3a2b'; do
	# shellcheck disable=SC2086 # words of a command line
	AVA_DATA_ROOT=$T/nowhere run "$AVA" $asked
	exits "no data root: ava $asked" 5
	contains "which is said: ava $asked" "nothing has been logged yet: there is no data root $T/nowhere" "$ERR"
done
AVA_DATA_ROOT=$T/nowhere run "$AVA" logs --type nonsense
exits 'a wrong question is told first' 2
contains 'and why' 'there is no event type "nonsense"' "$ERR"
check 'asking makes no data root' test ! -e "$T/nowhere"
"$AVA" run --yes --json 'find kettle' >"$T/result" 2>/dev/null
id=$(jq -r .subagent_id "$T/result") name=$(jq -r .trace_id "$T/result")
log=$AVA_DATA_ROOT/logs/subagents/$id.jsonl

same_logs()
{
	"$AVA" logs "$id" -o json >"$T/logs"
	check "-o json is the file ($1)" cmp -s "$T/logs" "$log"
	run "$AVA" logs "$id" --all
	exits "logs ($1)" 0
	equal "a line for each event ($1)" "$(wc -l <"$log")" "$(wc -l <"$OUT")"
	contains "calls as people write them ($1)" '] ToolCall search_codebase {"pattern": "' "$OUT"
	run "$AVA" trace "$id"
	exits "trace ($1)" 0
	contains "tells turns ($1)" '  turn 1' "$OUT"
	contains "and totals ($1)" 'complete (submitted): ' "$OUT"
	cp "$OUT" "$T/trace"
	run "$AVA" trace "$name"
	check "the name is the id ($1)" cmp -s "$OUT" "$T/trace"
	equal "trace --json ($1)" "$name ava true $(wc -l <"$log")" "$("$AVA" trace "$id" --json |
		jq -r '"\(.traceId) \(.parentId) \(.startTime < .endTime) \(.events | length)"')"
}
same_logs 'daemon up'
stop_daemon
same_logs 'daemon stopped'
refuse 'no daemon was started for it' daemon_pid
"$AVA" ps >/dev/null
kill_daemon
same_logs 'daemon killed'
refuse 'nor to recover' daemon_pid

# --- how much, which

equal '-n 2' 2 "$("$AVA" logs "$id" -n 2 | wc -l | tr -d ' ')"
equal '--last 1 is the newest' SubagentComplete "$("$AVA" logs "$id" --last 1 -o json | jq -r .eventType)"
run "$AVA" logs "$id"
equal 'what the runtime notes for itself is left out' \
	"$(grep -cv '"eventType":"\(StateWrite\|Seal\|LogOpen\)"' "$log")" "$(wc -l <"$OUT")"
lacks 'as where a run stands' 'StateWrite' "$OUT"
run "$AVA" logs -n 1
equal '-n counts what is shown' 1 "$(wc -l <"$OUT" | tr -d ' ')"
run "$AVA" logs --all
contains '--all has the seals, in words' '] Seal 1 of ' "$OUT"
lacks 'and not as they are stored' '"sig"' "$OUT"
run "$AVA" logs --type statewrite --agent "$id"
contains '--type asks for it' 'StateWrite position' "$OUT"
run "$AVA" logs -n 0
exits '-n 0' 2
run "$AVA" logs -o xml
exits 'no such form' 2
equal '-o json-pretty is JSON' "$(wc -l <"$log")" "$("$AVA" logs "$id" -o json-pretty | jq -s length)"
contains "Ava's own log names the run" "SubagentSpawn $id" "$(
	"$AVA" logs >"$T/own"
	echo "$T/own"
)"
run "$AVA" trace no-such-name
exits 'no such trace' 5
run "$AVA" trace 'No such'
exits 'not a name' 2

# --- damage: named, passed by, exit 1

stop_daemon
cp "$log" "$T/good"
{
	sed -n 1p "$T/good"
	printf 'not an event \033]52;c;x\007\n'
	sed -n '2,$p' "$T/good"
	printf '{"timestamp":"2026'
} >"$log"
run "$AVA" logs "$id" -o json
exits 'a damaged log' 1
check 'everything else is printed' cmp -s "$OUT" "$T/good"
contains 'the place is named' "logs/subagents/$id.jsonl:$(sed -n 1p "$T/good" | wc -c | tr -d ' '): this line" "$ERR"
contains 'so is the torn end' 'was never finished' "$ERR"
run "$AVA" trace "$id"
exits 'its trace too' 1
contains 'is still shown' 'turn 1' "$OUT"

# --- the first file was removed, a recovery began a second one

cp "$T/good" "${log%.jsonl}.2.jsonl"
rm "$log"
for command in logs events trace; do
	run "$AVA" "$command" "$id"
	exits "$command without the first file" 1
	contains "$command says that it is missing" "$id.jsonl is missing" "$ERR"
done
run "$AVA" logs "$id" -o json
check 'what is there is printed' cmp -s "$OUT" "$T/good"
rm "${log%.jsonl}.2.jsonl"

# --- no avad to recover with: a word, and reading goes on

opens() { cat "$AVA_DATA_ROOT"/logs/ava/*.jsonl | grep -c '"LogOpen"'; }
before=$(opens)
opened() { [ "$(opens)" -gt "$before" ]; }

cp "$T/good" "$log"
"$AVA" ps >/dev/null 2>&1
# An answer may come before the first commit is durable; without one there is
# nothing to recover.
check 'the daemon has begun to write' wait_for 60 opened
kill_daemon
run env AVA_AVAD=/nonexistent "$AVA" logs "$id" -o json
exits 'without avad' 0
check 'what is there is read' cmp -s "$OUT" "$T/good"
contains 'and it is told' 'reading without recovery' "$ERR"

finish
