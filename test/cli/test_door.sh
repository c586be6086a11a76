#!/bin/sh
# The door for browsers: who may knock (door.py), and whose it is after a restart (door_again.py).
. "${0%/*}/lib.sh"

start_daemon
play "$LIB/door.py"
stop_daemon
start_daemon
play "$LIB/door_again.py"
equal 'what is kept of a key is for its owner' 600 "$(stat -c %a "$AVA_DATA_ROOT/web.json")"
stop_daemon
printf '{torn' >"$AVA_DATA_ROOT/web.json"
start_daemon
run "$AVA" dashboard --no-open
exits 'a damaged web.json signs everybody out and is no obstacle' 0
stop_daemon

# A port that is set, and that somebody else has.
python3 -c 'import socket,sys,time
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); print(s.getsockname()[1], flush=True); time.sleep(600)' >"$T/port" &
other=$!
test_pids="$test_pids $other"
wait_for 10 test -s "$T/port"
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
