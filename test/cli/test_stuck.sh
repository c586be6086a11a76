#!/bin/sh
# Files on a disk that does not answer: what reads them waits, all else goes on, and a stop
# leaves them behind.
. "${0%/*}/lib.sh"
[ -z "$AVA_SANITIZER" ] || skip 'a sanitiser must be loaded first'
command -v jq >/dev/null || skip 'no jq'
cc -shared -fPIC -o "$T/stuck.so" "$LIB/stuck.c" || skip 'no compiler'

mkdir "$T/work"
cd "$T/work" || exit 99
echo 'one line' >stuck.txt
printf '%s\n' '{"tool_calls":[{"name":"read_file","args":{"path":"stuck.txt"}}]}' \
	'{"text":"done"}' >"$T/reads.jsonl"
printf '%s\n' '{"tool_calls":[{"name":"submit_result","args":{"output":1,"summary":"well","confidence":1,"caveats":[]}}]}' \
	>"$T/thinks.jsonl"
start() { "$AVA" run 'read it' --role code_reviewer --model "offline:$T/$1.jsonl" --yes --background; }

export LD_PRELOAD="$T/stuck.so" AVA_RUNS_MAX=20
start_daemon
unset LD_PRELOAD
for i in 1 2 3 4 5 6; do
	check "run $i reads what does not answer" start reads >/dev/null
done
reading() { [ "$("$AVA" ps --json | jq '[.[] | select(.current_activity | test("Reading"))] | length')" = 6 ]; }
check 'all of them wait for it' wait_for 30 reading
run "$AVA" run 'think' --role code_reviewer --model "offline:$T/thinks.jsonl" --yes
exits 'another run comes to its end' 0
contains 'with its result' 'well' "$OUT"
run "$AVA" logs --type SubagentComplete -o json
exits 'the logs answer' 0
check 'a run that waits is cancelled' "$AVA" cancel --all
pid=$(daemon_pid)
kill -TERM "$pid"
check 'a stop does not wait for it' wait_for 60 gone "$pid"
contains 'and says why' 'a file or folder does not answer' "$AVA_DATA_ROOT/logs/avad.log"
run "$AVA" ps -a --json
equal 'nothing is lost' 7 "$(jq length "$OUT")"
finish
