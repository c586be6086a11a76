#!/bin/sh
# The daemon as the command line meets it: started on demand, by hand, twice;
# data roots that cannot be used; doctor.
. "${0%/*}/lib.sh"

doctor() { "$AVA" doctor --json | jq -r "$1"; }

# --- none runs

run "$AVA" doctor
exits 'doctor without a daemon' 0
contains 'says so' 'none runs' "$OUT"
contains 'and that the root will be made' '(will be made)' "$OUT"
check 'nothing was made' test ! -e "$AVA_DATA_ROOT"
equal 'no pid in JSON' null "$(doctor .avad_pid)"
run "$AVA" version
equal 'version' "ava $(sed -n "s/^  version: '\(.*\)',/\1/p" "$SRCDIR/meson.build")" "$(cat "$OUT")"
equal 'version --json' "$(cut -d' ' -f2 "$OUT")" "$("$AVA" version --json | jq -r .version)"

# --- on demand

run "$AVA" serve --background
exits 'serve --background' 0
pid=$(daemon_pid)
equal 'doctor has its pid' "$pid" "$(doctor .avad_pid)"
contains 'so has serve' "process $pid" "$OUT"
equal 'all is well' true "$(doctor .ok)"
run "$AVA" doctor
contains 'the model is named' 'offline' "$OUT"
run "$AVA" serve --background
exits 'once more' 0
equal 'is the same daemon' "$pid" "$(daemon_pid)"

run "$AVAD" --recover
exits 'no recovery under a daemon' 3
equal 'the first goes on' "$pid" "$(doctor .avad_pid)"
stop_daemon

# --- in the foreground

"$AVA" serve >"$T/serve" 2>&1 &
server=$!
keep "$server"
check 'serve becomes the daemon' wait_for 10 daemon_answers
equal 'the same process' "$server" "$(daemon_pid)"
kill -TERM "$server"
wait "$server"
equal 'SIGTERM ends it in order' 0 $?

# --- one that does not answer

start_daemon
"$AVA" ps >/dev/null # one that is still starting is waited for in other words
kill -STOP "$DAEMON"
"$AVA" ps --json >"$T/ps" 2>"$T/ps.err" &
asker=$!
check 'who waits is told after a while' wait_for 30 grep -q \
	'ava: ps: waiting for the daemon, which answers nothing' "$T/ps.err"
kill -CONT "$DAEMON"
wait "$asker"
equal 'and has the answer when it comes' 0 $?
equal 'told once' 1 "$(wc -l <"$T/ps.err" | tr -d ' ')"
stop_daemon

# --- an older one makes room, unless it is at work

version=$("$AVA" version --json | jq -r .version)
older=$(printf '%s\n' "$version" | tr 1-9 0)
mkdir "$T/old" # the same program under an older number of the same length
LC_ALL=C sed "s/$version/$older/g" "$AVAD" >"$T/old/avad"
chmod 755 "$T/old/avad"
daemon_version() { curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" http://x/api/v1/health | jq -r .version; }
printf '%s\n' '{"text":"","tool_calls":[{"name":"read_file","args":{"path":"x"}}],"delay_ms":600000}' >"$T/slow.jsonl"
if command -v curl >/dev/null; then
	"$T/old/avad" >/dev/null 2>&1 &
	old_pid=$!
	keep "$old_pid"
	check 'an older daemon serves' wait_for 10 daemon_answers
	equal 'it says so' "$older" "$(daemon_version)"
	equal 'doctor minds' false "$(doctor .ok)"
	run "$AVA" ps
	exits 'the first command' 0
	equal 'has it replaced' "$version" "$(daemon_version)"
	check 'the older one is gone' wait_for 10 gone "$old_pid"
	stop_daemon

	"$T/old/avad" >/dev/null 2>&1 &
	keep $!
	check 'an older one serves again' wait_for 10 daemon_answers
	proposal=$(curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" http://x/api/v1/runs -d \
		'{"task":"x","model":"offline:'"$T"'/slow.jsonl","confirmed":true}' | jq -r .subagent_id)
	run "$AVA" ps
	contains 'at work it stays, and that is told' "older than this ava ($version)" "$ERR"
	equal 'it is the older one' "$older" "$(daemon_version)"
	"$AVA" cancel "$proposal" >/dev/null 2>&1
	run "$AVA" ps
	equal 'afterwards it is replaced' "$version" "$(daemon_version)"
	stop_daemon
fi

# --- a daemon that was killed listens for a moment longer

stop_daemon
cat >"$T/dying.py" <<'PY'
import os, socket, sys
os.chdir(sys.argv[1])
try:
    os.unlink("ava.sock")
except FileNotFoundError:
    pass
s = socket.socket(socket.AF_UNIX)
s.bind("ava.sock")
s.listen(8)
open(sys.argv[2], "w").write("listens\n")
for _ in range(2):
    peer, _ = s.accept()
    peer.recv(4096)
    peer.close()
PY
python3 "$T/dying.py" "$AVA_DATA_ROOT" "$T/dying" &
keep $!
wait_for 10 test -s "$T/dying"
run "$AVA" ps
exits 'a command whose daemon hangs up asks the next one' 0
check 'which runs' daemon_pid
stop_daemon

# --- roots that cannot be used

# no_root NAME TEXT: a command fails with a sentence; doctor sees it.
no_root()
{
	run "$AVA" ps
	refuse "$1: no command" test "$CODE" -eq 0
	contains "$1: which says why" "$2" "$ERR"
	equal "$1: in one line" 1 "$(wc -l <"$ERR" | tr -d ' ')"
	equal "$1: doctor sees it" false "$(doctor .ok)"
}
good=$AVA_DATA_ROOT
printf 'ava 3\n' >"$good/FORMAT"
no_root 'a newer FORMAT' 'the one that wrote it'
run "$AVA" logs
contains 'a newer FORMAT: logs too' 'the one that wrote it' "$ERR"
printf 'ava 2\n' >"$good/FORMAT"

: >"$T/file"
AVA_DATA_ROOT=$T/file
no_root 'a file in the place of the root' "$T/file"
AVA_DATA_ROOT=$T/file/data
no_root 'a root below a file' "$T/file"
AVA_DATA_ROOT=relative/path
no_root 'a relative root' 'AVA_DATA_ROOT'
if [ "$(id -u)" -ne 0 ]; then
	mkdir -m 500 "$T/readonly"
	AVA_DATA_ROOT=$T/readonly/data
	no_root 'a root that cannot be written' "$T/readonly"
else
	result 0 'a root that cannot be written # SKIP root may write everywhere'
fi

finish
