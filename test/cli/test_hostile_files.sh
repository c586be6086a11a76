#!/bin/sh
# What a person does to the files between a stop and the next start: nothing is
# overwritten, no run is lost, and what was wrong is told in a Recovered event. (Tails of others, a
# conversation that is gone, a damaged checkpoint: crash/test_recover_people.c, unit/test_restart.c.)
. "${0%/*}/lib.sh"

export AVA_RUNS_MAX=1 AVA_DISK_FREE_MIN_MB=0
mkdir "$T/src"
cd "$T/src" || exit 99
echo 'int helper(void);' >a.c
cat >"$T/slow.jsonl" <<'X'
{"tool_calls":[{"name":"search_codebase","args":{"pattern":"helper"}}]}
{"text":"late","delay_ms":600000}
X
spawn() { "$AVA" run --yes --background --json "$@" 2>/dev/null | jq -r '.subagent_id // .id'; }
status() { "$AVA" ps -a --json | jq -r --arg id "$1" \
	'.[] | select((.subagent_id // .id) == $id) | .status'; }
is() { [ "$(status "$1")" = "$2" ]; }
recovered() { grep -h '"eventType":"Recovered"' "$AVA_DATA_ROOT"/logs/ava/*.jsonl >"$OUT"; }

start_daemon --service
done_run=$(spawn 'find helper')
wait_for 10 is "$done_run" success
started=$(spawn --model "offline:$T/slow.jsonl" 'find helper for long')
wait_for 10 sh -c '[ "$(wc -l <"$AVA_DATA_ROOT/runs/$1/messages.jsonl")" -ge 4 ]' sh "$started"
queued=$(spawn 'find helper later')
check 'an orderly stop' stop_daemon
cp -a "$AVA_DATA_ROOT" "$T/was"
run_log=logs/subagents/$started.jsonl

# again WHAT: the root as it was, changed by the command, and a daemon on it.
again()
{
	stop_daemon
	rm -rf "$AVA_DATA_ROOT"
	cp -a "$T/was" "$AVA_DATA_ROOT"
	what=$1
	shift
	(cd "$AVA_DATA_ROOT" && "$@")
	check "$what: the daemon starts" start_daemon --service
	check "$what: the ended run is there" is "$done_run" success
}
# The started run is carried on, and holds the only slot until it is cancelled.
goes_on()
{
	check "$what: the started one goes on" wait_for 20 is "$started" running
	check "$what: until it is cancelled" sh -c '"$AVA" cancel "$1" >/dev/null' sh "$started"
	check "$what: the queued one goes on" wait_for 20 is "$queued" success
}
# Its record cannot be read.
ends()
{
	check "$what: the started one ends" wait_for 20 is "$started" error
	check "$what: the queued one goes on" wait_for 20 is "$queued" success
}
is_told() { check "$what: it is told" recovered && contains "$what: by name" "$1" "$OUT"; }

again 'nothing changed' true
goes_on
refuse 'nothing changed: nothing is told' recovered

again 'no catalog' rm catalog.jsonl
goes_on
is_told catalog.jsonl
equal 'no catalog: each run has one row of each kind' 3 \
	"$(grep -c '"row":"end"' "$AVA_DATA_ROOT/catalog.jsonl")"

again 'a shortened catalog' truncate -s -30 catalog.jsonl
goes_on
is_told catalog.jsonl
stop_daemon
check 'a shortened catalog: a second start' start_daemon --service
check 'a shortened catalog: knows the ends in its second part' is "$queued" success
check 'a shortened catalog: and the one it began with' is "$done_run" success

again 'no log of the started run' rm "$run_log"
ends
is_told "$run_log"

again 'a log of another run in its place' cp "logs/subagents/$done_run.jsonl" "$run_log"
ends
is_told "$run_log"
check 'a log of another run in its place: those lines stay' sh -c \
	'[ "$(grep -c "$1" "$2")" -gt 3 ]' sh "$done_run" "$AVA_DATA_ROOT/$run_log"

again 'no journal' rm -r wal
goes_on
is_told '"wal"'
stop_daemon
check 'no journal: numbers still grow' python3 "$SRCDIR/test/crash/check_root.py" "$AVA_DATA_ROOT"

again 'pipes in place of logs' sh -c 'for f in logs/avad.log logs/ava/*.jsonl logs/subagents/*.jsonl; do
	rm -f "$f" && mkfifo "$f"; done'
check 'pipes in place of logs: it answers' timeout 60 "$AVA" ps -a
run timeout 60 "$AVA" run --yes 'find helper'
exits 'pipes in place of logs: a new run ends' 0
run timeout 60 "$AVA" logs "$started"
check 'pipes in place of logs: a question ends' test "$CODE" -ne 124
run timeout 60 "$AVA" logs --type SubagentComplete -o json
check 'pipes in place of logs: one to all gives what can be read' test "$(wc -l <"$OUT")" -ge 1
contains 'pipes in place of logs: and names what cannot' "logs/subagents/$started.jsonl is left out" "$ERR"
run timeout 60 "$AVA" logs --count --by type
contains 'pipes in place of logs: a count, too' SubagentComplete "$OUT"
curl -sN --unix-socket "$AVA_DATA_ROOT/ava.sock" 'http://ava/api/v1/events?after=0' >"$T/events" &
stream=$!
keep "$stream"
check 'pipes in place of logs: a stream catches up with the others' wait_for 20 grep -q SubagentComplete "$T/events"
stop_pid TERM "$stream"
check 'pipes in place of logs: it ends when asked' stop_daemon
again 'a pipe while it runs' true
goes_on
newest=$(spawn --model "offline:$T/slow.jsonl" 'find helper for long')
wait_for 10 is "$newest" running
for f in "$AVA_DATA_ROOT"/logs/avad.log "$AVA_DATA_ROOT"/logs/ava/*.jsonl \
	"$AVA_DATA_ROOT/logs/subagents/$newest.jsonl"; do
	rm -f "$f" && mkfifo "$f"
done
check 'a pipe while it runs: it answers' timeout 60 "$AVA" ps
check 'a pipe while it runs: the run is cancelled' timeout 60 "$AVA" cancel "$newest"
again 'a pipe while it runs, and a kill' true
"$AVA" cancel --all >/dev/null 2>&1
newest=$(spawn --model "offline:$T/slow.jsonl" 'find helper for long')
wait_for 10 is "$newest" running
for f in "$AVA_DATA_ROOT"/logs/ava/*.jsonl "$AVA_DATA_ROOT/logs/subagents/$newest.jsonl"; do
	rm -f "$f" && mkfifo "$f"
done
kill_daemon
check 'a pipe while it runs, and a kill: the daemon starts' start_daemon --service
"$AVA" cancel --all >/dev/null 2>&1
run timeout 60 "$AVA" run --yes 'find helper'
exits 'a pipe while it runs, and a kill: a new run ends' 0
check 'a pipe while it runs: it ends when asked' stop_daemon

again 'a folder in place of a daily log' true
"$AVA" ps >/dev/null 2>&1
stop_daemon
day=$(ls "$AVA_DATA_ROOT"/logs/ava/*.jsonl | head -n 1)
rm -rf "$day" && mkdir "$day"
run "$AVA" logs --type SubagentComplete
contains 'a folder in place of a daily log: it is named, with what to do' \
	"logs/ava/${day##*/} is left out: it is not a regular file, move what stands there away" "$ERR"

again 'a result that is cut' sh -c 'printf %s "$(head -c 100 "$1")" >"$1"' sh "runs/$done_run/result.json"
run "$AVA" result "$done_run"
exits 'a result that is cut: it is none' 1
contains 'a result that is cut: it is named' "runs/$done_run/result.json is cut or damaged" "$ERR"
check 'a result that is cut: the daemon lives' alive "$DAEMON"

again 'a link in place of the catalog, while it runs' true
spawn 'find helper' >/dev/null # which waits for the slot
"$AVA" cancel --all >/dev/null 2>&1
rm "$AVA_DATA_ROOT"/catalog*.jsonl && ln -s "$T/nothing" "$AVA_DATA_ROOT/catalog.jsonl"
run "$AVA" ps -a
exits 'a link in place of the catalog: there is no list' 1
contains 'a link in place of the catalog: it is named' 'catalog.jsonl is not a regular file: move' "$ERR"
run "$AVA" trace brave-otter
contains 'a link in place of the catalog: no name is looked up' 'catalog.jsonl is not a regular file' "$ERR"
stop_daemon
run "$AVA" ps -a
exits 'a link in place of the catalog: a start makes the rows again' 0
contains 'a link in place of the catalog: of every run' "$started" "$OUT"
is_told '"catalog.jsonl","problem":"it is not a regular file'
rm "$AVA_DATA_ROOT/catalog.jsonl"

check 'the events are as the schema says' sh -c \
	'python3 "$SRCDIR/test/check_events.py" "$AVA_DATA_ROOT"/logs/ava/*.jsonl "$AVA_DATA_ROOT"/logs/subagents/*.jsonl'
finish
