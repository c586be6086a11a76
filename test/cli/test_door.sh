#!/bin/sh
# The door for browsers: who may knock (door.py), and that it is the same one after a restart.
. "${0%/*}/lib.sh"

start_daemon
play "$LIB/door.py"
read -r token port <"$T/session"

equal 'what is kept of a token is for its owner' 600 "$(stat -c %a "$AVA_DATA_ROOT/web.json")"
lacks 'and not the token' "$token" "$AVA_DATA_ROOT/web.json"
kill_daemon
start_daemon
check 'the daemon is back' sh -c '"$AVA" ps >/dev/null' # the socket of the old one is there all the while
equal 'a session outlives the daemon, at the same address' 200 "$(curl -s -o /dev/null -w '%{http_code}' \
	-H "Authorization: Bearer $token" "http://127.0.0.1:$port/api/v1/health")"
stop_daemon
printf '{torn' >"$AVA_DATA_ROOT/web.json"
start_daemon
run "$AVA" dashboard --no-open
exits 'a damaged web.json signs everybody out and is no obstacle' 0
stop_daemon

# A port that somebody else has.
python3 -c 'import socket,sys,time
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); print(s.getsockname()[1], flush=True); time.sleep(600)' >"$T/port" &
other=$!
test_pids="$test_pids $other"
wait_for 10 test -s "$T/port"
start_daemon
run "$AVA" dashboard --json
exits 'without a port of its own it takes one' 0
stop_daemon
AVA_WEB_PORT=$(cat "$T/port")
export AVA_WEB_PORT
start_daemon
run "$AVA" dashboard --no-open
exits 'one that is set and taken is an error' 1
contains 'that names it' "web.port is $AVA_WEB_PORT" "$ERR"
run "$AVA" status
contains 'as status does from then on' "page: web.port is $AVA_WEB_PORT" "$OUT"
kill "$other"
finish
