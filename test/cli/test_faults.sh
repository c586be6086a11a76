#!/bin/sh
# Each fault that a model service can have, on each service: how the run ends, how
# often it was tried again and after which waits, what was charged, and that no half
# reply is stored (faults.py has the table). The mock refuses what the real services
# refuse, so a request that was not right shows.
. "${0%/*}/lib.sh"
. "$LIB/models.sh"
models turns=2 tool=read_file 'args={"path":"a.txt"}'

export AVA_RUNS_MAX=400 AVA_MODELS_ON_QUOTA=fail AVA_LIMITS_TOKENS=10000000 AVA_NET_CONNECT_TIMEOUT=60
mkdir "$T/work"
cd "$T/work" || exit 99
printf 'one\ntwo\n' >a.txt

# play CASES: a result for each of them.
play()
{
	start_daemon || { result 1 'avad serves' || finish; }
	python3 "$SRCDIR/test/cli/faults.py" "$1" >"$T/$1.out" 2>"$T/$1.err"
	check "$1: every case was played" [ $? -eq 0 ] || note "$(tail -n 5 "$T/$1.err")"
	while read -r code name; do
		result "$code" "$name"
	done <"$T/$1.out"
	check "$1: every line of the logs is an event" \
		"$SRCDIR/test/check_events.py" "$AVA_DATA_ROOT"/logs/subagents/*.jsonl
	stop_daemon
}

play quick
# Silence, with timers that are short enough for a test. A slow machine may make
# them run out where nothing is wrong, so nothing else is played with them. Comments
# are signs of life: the time for a whole reply ends a service that sends nothing else.
export AVA_DATA_ROOT="$T/slow" AVA_NET_FIRST_EVENT_TIMEOUT=2 AVA_NET_IDLE_TIMEOUT=2
export AVA_NET_TURN_TIMEOUT=6
play slow
none_refused 'no request was one that a service refuses'
finish
