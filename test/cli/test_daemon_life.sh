#!/bin/sh
# avad itself: options, the ready line, what it makes of its process, how it
# stops, what it does when its data root goes away under it.
. "${0%/*}/lib.sh"
command -v curl >/dev/null || skip 'no curl'

API=http://x/api/v1
LOG=$AVA_DATA_ROOT/logs/avad.log
ask() { curl -s --max-time 60 --unix-socket "${SOCKET:-$AVA_DATA_ROOT/ava.sock}" "$@"; }
health() { ask $API/health | jq -r "$1"; }
is() { [ "$(health "$1")" = "$2" ]; }
slow='{"text":"","tool_calls":[{"name":"read_file","args":{"path":"x"}}],"delay_ms":600000}'
printf '%s\n' "$slow" >"$T/slow.jsonl"
spawn() { ask $API/runs -d '{"task":"x","model":"offline:'"$T"'/slow.jsonl","confirmed":true}'; }
# watch: everything that happens, in a process of its own in $watcher. (A
# function in the background is a shell with curl below it.)
watch()
{
	: >"$T/watch"
	curl -svN --unix-socket "${SOCKET:-$AVA_DATA_ROOT/ava.sock}" $API/events >/dev/null 2>"$T/watch" &
	watcher=$!
	keep "$watcher"
}
spawned() { spawn | jq -r .subagent_id; }
watching() { grep -q '^< HTTP/1.1 200' "$T/watch"; }
running() { ask "$API/runs/$1" | jq -e '.status == "running"' >/dev/null; }

# --- options

# wrong NAME ARGUMENT...
wrong()
{
	wrong_name=$1
	shift
	run "$AVAD" "$@"
	exits "$wrong_name: a usage error" 2
	contains "$wrong_name: with the usage" 'usage: avad' "$ERR"
}
wrong 'an unknown option' --listen
wrong 'a word' serve
wrong '--ready-fd without a number' --ready-fd
for fd in x '' 3x -1 0 2 99 99999999999999999999 ' 3'; do
	wrong "--ready-fd '$fd'" --ready-fd "$fd" 3>"$T/ready"
done
run "$AVAD" --help
exits '--help' 0
check 'no root was made' test ! -e "$AVA_DATA_ROOT"
run "$AVAD" --recover
exits 'a recovery of nothing' 1
check 'makes nothing' test ! -e "$AVA_DATA_ROOT"

# --- started with nothing: no descriptor, another umask and folder, few files

(umask 000; ulimit -Sn 256; cd "$T" && exec "$AVAD" --ready-fd 3 3>"$T/ready" <&- >&- 2>&-) &
keep $!
check 'the ready line comes' wait_for 10 test -s "$T/ready"
equal 'and is ok' ok "$(cat "$T/ready")"
pid=$(daemon_pid)
equal 'the lock names it' "$(health .pid)" "$pid"
if [ "$(id -u)" -eq 0 ]; then # nobody else may look
	for fd in 0 1 2; do
		equal "descriptor $fd" /dev/null "$(readlink "/proc/$pid/fd/$fd")"
	done
	equal 'it keeps no folder busy' / "$(readlink "/proc/$pid/cwd")"
fi
equal 'it may open all the files it can' \
	"$(awk '/Max open files/ { print $5 }' "/proc/$pid/limits")" \
	"$(awk '/Max open files/ { print $4 }' "/proc/$pid/limits")"
equal 'files and folders are its owner'"'"'s alone' '' \
	"$(find "$AVA_DATA_ROOT" -perm /077 ! -type l | head -3)"
equal 'memory with keys is no one else'"'"'s' 0 "$(stat -c %u "/proc/$pid/environ")"

# --- a second one

run "$AVAD" --ready-fd 3 3>"$T/ready2"
exits 'a second daemon' 1
contains 'says who is first' "in use by process $pid" "$ERR"
contains 'and where' "$AVA_DATA_ROOT" "$ERR"
contains 'to its starter too' "busy: " "$T/ready2"
equal 'the first one serves on' "$pid" "$(health .pid)"

# --- stopped by signals, with a run at work

for signal in TERM INT HUP; do
	run_id=$(spawned)
	check "SIG$signal: a run is at work" wait_for 10 running "$run_id"
	kill "-$signal" "$pid"
	check "SIG$signal ends it" wait_for 10 gone "$pid"
	contains "SIG$signal: is in the log" "stopping (SIG$signal)" "$LOG"
	check "SIG$signal: the socket is gone" test ! -e "$AVA_DATA_ROOT/ava.sock"
	start_daemon
	pid=$DAEMON
	equal "SIG$signal: nothing had to be recovered" true "$(health .recovery.clean)"
	check "SIG$signal: the run is carried on" wait_for 10 running "$run_id"
	check "SIG$signal: under its id" wait_for 10 \
		grep -q '"carried_on"' "$AVA_DATA_ROOT/logs/subagents/$run_id.jsonl"
done

# A request that never comes whole holds the stop up for a second, and with it
# what the daemon does every second.
mkfifo "$T/half"
exec 9<>"$T/half"
ask -v -T - -X POST -H 'Expect:' $API/runs <"$T/half" 9>&- >/dev/null 2>"$T/half.sent" &
keep $!
printf '{"task":' >&9
check 'half a request is sent' wait_for 10 grep -q '^> Transfer-Encoding' "$T/half.sent"
equal 'by then' ok "$(health .status)"
kill -TERM "$pid"
wait "$pid"
equal 'it does not keep the daemon from an orderly end' 0 $?
lacks 'which takes its own socket away for no problem' 'was removed from' "$LOG"
exec 9>&-
start_daemon
pid=$DAEMON

"$AVA" cancel --all >/dev/null 2>&1 # they go on, whatever stops the daemon

# --- asked to stop

run_id=$(spawned)
wait_for 10 running "$run_id"
equal 'shutdown idle' idle "$(ask -X POST $API/shutdown | jq -r .when)"
equal 'does not stop a run at work' running "$(ask "$API/runs/$run_id" | jq -r .status)"
ask -X POST "$API/runs/$run_id/cancel" >/dev/null
check 'but comes when it has ended' wait_for 10 gone "$pid"
start_daemon
equal 'shutdown now is answered' now "$(ask $API/shutdown -d '{"when":"now"}' | jq -r .when)"
check 'and is at once' wait_for 5 gone "$DAEMON"

# --- idle

own_clock
# idler ROOT [ARGUMENT]: a daemon that is idle; its pid is in $idle.
idler()
{
	AVA_DATA_ROOT=$1 AVA_DAEMON_IDLE_EXIT=20 env ${CLOCK:+"LD_PRELOAD=$CLOCK"} "$AVAD" ${2:+"$2"} >/dev/null 2>&1 &
	idle=$!
	keep "$idle"
	wait_for 10 test -S "$1/ava.sock"
}
idler "$AVA_DATA_ROOT" --service
service=$idle
idler "$T/nobody"
nobody=$idle
idler "$T/other"
SOCKET=$T/other/ava.sock watch
check 'idle: it serves' wait_for 10 watching
check 'with nobody it leaves after a while' skip_until 60 gone "$nobody"
contains 'and says why' 'stopping (idle)' "$T/nobody/logs/avad.log"
check 'a service does not' alive "$service"
check 'nor one with a client' alive "$idle"
kill "$watcher"
check 'until the client has gone' skip_until 60 gone "$idle"
stop_pid TERM "$service"

# --- roots that will not do

# no_start NAME TEXT; test_daemon.sh has what the command line says of others
no_start()
{
	run "$AVAD" --ready-fd 3 3>"$T/ready"
	exits "$1: refused" 1
	contains "$1: with a sentence" "$2" "$ERR"
	contains "$1: to its starter too" "$2" "$T/ready"
	equal "$1: one line" 1 "$(wc -l <"$ERR" | tr -d ' ')"
}
good=$AVA_DATA_ROOT
AVA_DATA_ROOT=data no_start 'a relative path' 'absolute'
AVA_RUNS_MAX=0 no_start 'a bad setting' 'AVA_RUNS_MAX'

# --- long paths

# serves_in NAME PATH: through the client, since curl has no address for it.
serves_in()
{
	AVA_DATA_ROOT=$2
	start_daemon
	run "$AVA" ps --json
	exits "$1" 0
	equal "$1: that is its root" "$2" "$("$AVA" doctor --json | jq -r .root)"
	stop_pid TERM "$DAEMON"
	check "$1: it leaves in order" test ! -e "$2/ava.sock"
	AVA_DATA_ROOT=$good
}
serves_in 'a root of 120 bytes' "$T/$(printf '%0120d' 0)"
path=$T
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do path=$path/$(printf '%0200d' "$i"); done
serves_in 'a root of 3,000 bytes' "$path"
AVA_DATA_ROOT=$path/$path no_start 'a path over 4,096 bytes' 'too long'

# --- fifty at once

i=0 started=
while [ $i -lt 50 ]; do
	"$AVAD" --service >"$T/many.$i" 2>&1 &
	started="$started $!"
	keep $!
	i=$((i + 1))
done
only_one() { [ "$(for p in $started; do alive "$p" && echo "$p"; done | wc -l)" -eq 1 ]; }
check 'of fifty one stays' wait_for 30 only_one
stayed=$(for p in $started; do alive "$p" && echo "$p"; done)
check 'and serves' wait_for 30 is .pid "$stayed" # the others may have left before it does
equal 'the others say who' 49 "$(grep -l 'is in use by' "$T"/many.* | wc -l | tr -d ' ')"
stop_daemon

# --- roots of others, and sockets

mkdir -m 755 "$T/open"
run env AVA_DATA_ROOT="$T/open" "$AVA" run 'hello'
equal 'a root that others may read is closed to them' 700 "$(stat -c %a "$T/open")"
AVA_DATA_ROOT=$T/open stop_daemon
chmod 777 "$T/open"
for does in "$AVA run hello" "$AVA ps" "$AVAD"; do
	run env AVA_DATA_ROOT="$T/open" $does
	check "one that others may write to is refused: ${does##*/}" test "$CODE" -ne 0
	contains 'with what to do' 'look at it, then chmod 700 it' "$ERR"
done
if [ "$(id -u)" -eq 0 ]; then
	chmod 700 "$T/open"
	chown -R 65534 "$T/open"
	find "$T/open" -printf '%P %s %T@\n' | sort >"$T/before"
	for does in "$AVA run hello" "$AVAD"; do
		run env AVA_DATA_ROOT="$T/open" $does
		contains "that of another is refused: ${does##*/}" 'belongs to another user' "$ERR"
	done
	run env AVA_DATA_ROOT="$T/open" "$AVA" logs --type Error
	find "$T/open" -printf '%P %s %T@\n' | sort >"$T/after"
	equal 'and is as it was' '' "$(diff "$T/before" "$T/after")"
	# Another uid serves a root that was open before.
	mkdir -m 777 "$T/fake"
	python3 -c '
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
os.setuid(65534) # who listens is who answers
s.listen()
print("listening", flush=True)
while True:
    c = s.accept()[0]
    print("asked:", c.recv(4096), flush=True)
' "$T/fake/ava.sock" >"$T/asked" 2>&1 &
	keep $!
	wait_for 30 grep -q listening "$T/asked" # bound alone, it is a socket that nobody serves
	chmod 700 "$T/fake"
	run env AVA_DATA_ROOT="$T/fake" "$AVA" run 'a task that is nobody else'"'"'s'
	contains 'the socket of another is not talked to' "another user's process answers" "$ERR"
	equal 'not a word' '' "$(grep asked "$T/asked" | grep -v "b''")"
fi

# --- the root goes away under it

"$AVAD" >"$T/lost" 2>&1 &
pid=$!
keep "$pid"
wait_for 10 daemon_answers
"$AVA" cancel --all >/dev/null 2>&1
watch
check 'somebody watches' wait_for 10 watching
mv "$good" "$T/moved"
SOCKET=$T/moved/ava.sock
check 'a root that was moved: degraded' wait_for 10 is .status degraded
equal 'the sentence names it' 1 "$(health .problem | grep -c "^the data root $good was moved")"
equal 'nothing new is begun' io "$(spawn | jq -r .error.code)"
mv "$T/moved" "$good"
SOCKET=
check 'back again: well' wait_for 10 is .status ok
check 'and takes work' running "$(run_id=$(spawned) && wait_for 10 running "$run_id"; echo "$run_id")"
rm "$good/ava.lock"
run "$AVAD"
check 'its lock file was removed: no other gets in' test "$CODE" -ne 0
contains 'which is told why' 'the data root is in use by another process' "$ERR"
equal 'and it is well' 'ok 1' "$(health '"\(.status) \(.slots.used)"')"
kill "$watcher"
"$AVA" cancel --all >/dev/null 2>&1
kill "$pid"
wait "$pid"
equal 'until it ends in order' 0 $?

start_daemon
rm "$AVA_DATA_ROOT/ava.sock"
check 'its socket was removed: it makes room' wait_for 10 gone "$DAEMON"
run "$AVA" ps
exits 'for the next one' 0
stop_daemon

start_daemon
mv "$AVA_DATA_ROOT" "$T/away"
mkdir -m 700 "$AVA_DATA_ROOT"
check 'another folder in its place: it leaves' wait_for 10 gone "$DAEMON"
check 'and leaves nothing there' test -z "$(ls "$AVA_DATA_ROOT")"
run "$AVA" ps --json
equal 'the new root is a new one' '[]' "$(cat "$OUT")"
stop_daemon

finish
