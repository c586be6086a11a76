#!/bin/sh
# Streams whose peers never read hold a bounded part of the daemon's memory.
. "${0%/*}/lib.sh"

mkdir "$T/src" && cd "$T/src" || exit 99
printf 'int kettle(void)\n{\n\treturn 1;\n}\n' >kettle.c
start_daemon
for i in 1 2 3 4 5 6; do
	for j in 1 2 3 4 5; do
		"$AVA" run --yes 'find kettle' >/dev/null 2>&1
	done
done
stop_daemon
start_daemon
cat >"$T/deaf.py" <<'EOF'
import socket, sys, time

def rss():
    with open(f"/proc/{sys.argv[2]}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))

peers = []
for _ in range(200):
    s = socket.socket(socket.AF_UNIX)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(sys.argv[1])
    s.sendall(b"GET /api/v1/events?after=0 HTTP/1.1\r\nHost: ava\r\n\r\n")
    peers.append(s)
for s in peers:
    s.recv(1)
held, was = rss(), 0
while held != was:
    time.sleep(0.5)
    held, was = rss(), held
print(held)
EOF
run timeout 200 python3 "$T/deaf.py" "$AVA_DATA_ROOT/ava.sock" "$DAEMON"
exits '200 streams that are not read begin' 0
held=$(cat "$OUT")
echo "# $held kB with 200 of them"
[ -n "$AVA_SANITIZER" ] || check 'they take less than 80 MB' test "$held" -lt 80000
check 'and others are answered' timeout 60 "$AVA" ps
finish
