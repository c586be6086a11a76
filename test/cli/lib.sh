# lib.sh - what a shell test stands on. Source it first, end with `finish` (an example: doc/HACKING.md).
# Each test has a world of its own below $T (HOME, data root, XDG folders), no
# keys, the offline model, and programs by full path in $AVA and $AVAD. When it
# ends, however it ends, its processes are ended by pid and $T is removed. There
# is no sleep in a test: wait_for waits for what should happen, and what takes long
# by the clock is played by one that is moved (own_clock). A process costs a
# millisecond, jq, curl and python3 more: what every check does is done by the shell itself.
# POSIX sh; -u is set, -e is not: a check that fails is counted, not fatal.
set -u

LIB=$(cd "$(dirname -- "$0")" && pwd)
: "${SRCDIR:=$(cd "$LIB/../.." && pwd)}"
: "${AVA:=$SRCDIR/build/bin/ava}"
: "${AVAD:=$SRCDIR/build/bin/avad}"
: "${AVA_SANITIZER:=}"
T=$(mktemp -d "${TMPDIR:-/tmp}/ava-test.XXXXXX") || exit 99
OUT=$T/out ERR=$T/err CODE= WAITING=0
test_count=0 test_failed=0 test_pids= CLOCK=

unset ANTHROPIC_API_KEY OPENROUTER_API_KEY OPENAI_API_KEY AVA_LOCAL_BASE_URL
unset ANTHROPIC_BASE_URL OPENROUTER_BASE_URL OPENAI_BASE_URL
for variable in $(env | sed -n 's/^\(AVA_[A-Z_]*\)=.*/\1/p'); do
	case $variable in AVA_SANITIZER | AVA_SOAK) ;; *) unset "$variable" ;; esac
done
export AVA AVAD SRCDIR T AVA_SANITIZER
export AVA_DISK_BALLAST_MB=0 # each test would keep as much of the disk
export AVA_AVAD="$AVAD" # in a build folder avad is not beside ava
export HOME="$T/home" AVA_DATA_ROOT="$T/data" AVA_MODEL=offline NO_COLOR=1 LC_ALL=C.UTF-8 TERM=xterm
export XDG_CONFIG_HOME="$T/config" XDG_DATA_HOME="$T/share" XDG_STATE_HOME="$T/state"
export XDG_CACHE_HOME="$T/cache" XDG_RUNTIME_DIR="$T/run"
mkdir -m 700 "$HOME" "$XDG_CONFIG_HOME" "$XDG_DATA_HOME" "$XDG_STATE_HOME" "$XDG_CACHE_HOME" \
	"$XDG_RUNTIME_DIR"
cd "$T" || exit 99

# --- results -----------------------------------------------------------------

# result CODE NAME: print one line of the test's account.
result()
{
	test_count=$((test_count + 1))
	if [ "$1" -eq 0 ]; then
		printf 'ok %d - %s\n' "$test_count" "$2"
		return 0
	fi
	test_failed=$((test_failed + 1))
	printf 'not ok %d - %s\n' "$test_count" "$2"
	return 1
}

# results FILE: what another program has checked, in lines `ok NAME` and `not ok NAME`; others stay.
results()
{
	while IFS= read -r results_line; do
		case $results_line in
		'ok '*) result 0 "${results_line#ok }" ;;
		'not ok '*) result 1 "${results_line#not ok }" ;;
		*) printf '%s\n' "$results_line" ;;
		esac
	done <"$1"
}

# play PROGRAM [ARGUMENT...]: a person or program in Python (api.py); its checks are counted as ours.
play()
{
	python3 -B "$@" >"$T/played" 2>"$T/why" </dev/null
	result $? 'all was tried' || note "$(tail -n 12 "$T/why")"
	results "$T/played"
}

# More about a failure: the text of the arguments, each line marked.
note() { printf '%s\n' "$*" | sed 's/^/# /'; }

# What the last `run` said on stderr, which mostly says why.
note_errors() { [ ! -s "$ERR" ] || note "stderr: $(head -c 2000 "$ERR")"; }

# check NAME COMMAND...: the command succeeds.
check()
{
	check_name=$1
	shift
	"$@"
	result $? "$check_name" || note "failed: $*"
}

# refuse NAME COMMAND...: the command fails.
refuse()
{
	check_name=$1
	shift
	! "$@"
	result $? "$check_name" || note "should have failed: $*"
}

# equal NAME WANT GOT
equal()
{
	[ "$2" = "$3" ]
	result $? "$1" || { note "want: $2"; note "got:  $3"; note_errors; }
}

# file_has TEXT FILE: the fixed text stands in a line of the file, whose beginning is read without a process.
file_has()
{
	stands_left=4000
	case $1 in *"
"*) stands_left=0 ;; esac
	while [ "$stands_left" -gt 0 ]; do
		IFS= read -r lib_line || [ -n "$lib_line" ] || return 1
		case $lib_line in *"$1"*) return 0 ;; esac
		stands_left=$((stands_left - ${#lib_line} - 1))
	done <"$2" && grep -qF -e "$1" "$2"
}

# contains NAME TEXT FILE: the fixed text stands in a line of the file.
contains()
{
	file_has "$2" "$3"
	result $? "$1" || {
		note "no '$2' in:"
		note "$(head -c 4000 "$3")"
		[ "$3" = "$ERR" ] || note_errors
	}
}

# lacks NAME TEXT FILE
lacks()
{
	! file_has "$2" "$3"
	result $? "$1" || { note "'$2' stands in:"; note "$(head -c 4000 "$3")"; }
}

# at_most NAME LIMIT NUMBER
at_most()
{
	[ "$3" -le "$2" ]
	result $? "$1" || note "$3 is over $2"
}

# run COMMAND...: keep its output in $OUT, its errors in $ERR, its code in $CODE.
run()
{
	"$@" >"$OUT" 2>"$ERR"
	CODE=$?
}

# exits NAME CODE: how the last `run` ended.
exits()
{
	[ "$CODE" = "$2" ]
	result $? "$1" || {
		note "want code $2, got $CODE"
		note "stdout: $(head -c 2000 "$OUT")"
		note "stderr: $(head -c 2000 "$ERR")"
	}
}

# skip REASON: leave the whole test, counted as skipped.
skip()
{
	test_count=$((test_count + 1))
	printf 'ok %d - # SKIP %s\n' "$test_count" "$1"
	finish
}

# all_replay NAME: every run of the root executes again from its record, to the byte.
all_replay()
{
	replay_bad=
	for replay_file in "$AVA_DATA_ROOT"/runs/S-*/messages.jsonl; do
		replay_run=${replay_file%/messages.jsonl}
		"$AVA" replay "${replay_run##*/}" >"$T/replayed" 2>&1 </dev/null ||
			replay_bad="$replay_bad $(cat "$T/replayed")"
	done
	equal "$1" '' "$replay_bad"
}

finish()
{
	printf '1..%d\n' "$test_count"
	[ "$test_failed" -eq 0 ] && [ "$test_count" -gt 0 ]
	exit
}

# --- processes ---------------------------------------------------------------

# wait_for SECONDS COMMAND...: until the command succeeds; 1 when it never did. The
# seconds are those of a fast machine: a busy one, or a sanitiser, has four times as many.
# A command may wait by itself, up to a second: $WAITING is 1 at the first call, then 2, elsewhere 0.
wait_for()
{
	wait_left=$(($1 * 4000)) wait_step=10 wait_turn=1
	shift
	until up_for && wait_began=$up_ms && WAITING=$wait_turn "$@" >/dev/null 2>&1; do
		up_for
		# A second that the command has waited counts, what a busy machine takes for it does not.
		[ $((up_ms - wait_began)) -lt 500 ] || wait_left=$((wait_left - 1000))
		wait_left=$((wait_left - wait_step)) wait_turn=2
		[ "$wait_left" -gt 0 ] || return 1
		sleep "0.0$wait_step"
		[ "$wait_step" -ge 80 ] || wait_step=$((wait_step * 2))
	done
}

# How long the machine is up, in $up_ms.
up_for() { read -r up_ms lib_line </proc/uptime && up_ms=${up_ms%.*}${up_ms#*.}0; }

# line_of FILE: its first line in $lib_line, without a process.
line_of() { lib_line= && { IFS= read -r lib_line <"$1" || [ -n "$lib_line" ]; } 2>/dev/null; }

# own_clock: what start_daemon starts from now on, and whatever else has LD_PRELOAD=$CLOCK, goes
# by a clock that skip_time moves (test/unit/moved_clock.c). Under a sanitiser, which must be loaded first,
# $CLOCK stays empty, and time passes by itself.
own_clock()
{
	export CLOCK AVA_TEST_CLOCK="$T/clock"
	clock_at 0 0
	[ -z "$AVA_SANITIZER" ] || return 0
	cc -D_GNU_SOURCE -shared -fPIC -o "$T/clock.so" "$SRCDIR/test/unit/moved_clock.c" &&
		CLOCK=$T/clock.so || skip 'no compiler'
}

# clock_at WALL MONO [stands]: both clocks are so many seconds ahead of the machine's, or of the
# time when their program began, and stand.
clock_at() { clock_ms=$(($2 * 1000)); ln -sfn "$(($1 * 1000)) $clock_ms ${3:+1}" "$AVA_TEST_CLOCK"; }
# skip_time SECONDS [MS]
skip_time()
{
	clock_ms=$((clock_ms + $1 * 1000 + ${2:-0}))
	if [ -n "$CLOCK" ]; then ln -sfn "$clock_ms $clock_ms" "$AVA_TEST_CLOCK"; else sleep "$1.${2:-0}"; fi
}

# skip_until SECONDS COMMAND...: wait_for, but the clock goes a second with each look, so far; in
# skip_slowly a tenth of one, for what is to be seen soon after its time.
skip_until()
{
	skip_left=$1
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$skip_left" -gt 0 ] || { wait_for 20 "$@"; return; }
		skip_left=$((skip_left - 1))
		skip_time 1
	done
}
skip_slowly()
{
	skip_left=$(($1 * 10))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$skip_left" -gt 0 ] || { wait_for 20 "$@"; return; }
		skip_left=$((skip_left - 1))
		skip_time 0 100
	done
}

# Ended, not waited for by its parent. While one of its threads still waits for the
# disk a killed process keeps its files: its socket and its lock. (Of proc_pid_stat: state, threads.)
zombie() { line_of "/proc/$1/stat" && set -- ${lib_line##*) } && [ "$1" = Z ] && [ "${18}" -le 1 ]; }
alive() { kill -0 "$1" 2>/dev/null && ! zombie "$1"; }
gone() { ! alive "$1"; }

# keep PID: it is ours, and is ended with the test.
keep() { test_pids="$test_pids $1"; }

# The daemon of a data root (default: ours), by the lock it holds; nothing when
# there is none. The pid alone is not believed: it must run a program called avad.
daemon_pid()
{
	line_of "${1:-$AVA_DATA_ROOT}/ava.lock" || return 1
	daemon_is=$lib_line
	[ -n "$daemon_is" ] && alive "$daemon_is" || return 1
	# Only root may look at the program itself: avad hides its memory, with its keys.
	line_of "/proc/$daemon_is/comm" && [ "$lib_line" = avad ] || return 1
	printf '%s\n' "$daemon_is"
}

daemon_answers() { [ -S "$AVA_DATA_ROOT/ava.sock" ] && daemon_pid >/dev/null; }

# start_daemon [ARGUMENT...]: run avad in the background and wait until its
# socket is there. Its pid is in $DAEMON, its output in $T/avad.out. One that a command started is
# stopped first: the new one would wait for it, and what follows would talk with the other.
start_daemon()
{
	stop_daemon
	env ${CLOCK:+"LD_PRELOAD=$CLOCK"} "$AVAD" "$@" >>"$T/avad.out" 2>&1 </dev/null &
	DAEMON=$!
	keep "$DAEMON"
	wait_for 10 daemon_answers || {
		note "avad did not start: $(head -c 2000 "$T/avad.out")"
		return 1
	}
}

# stop_pid SIGNAL PID: send it and wait until the process is gone.
stop_pid()
{
	kill "-$1" "$2" 2>/dev/null || return 0
	wait_for 15 gone "$2"
}

stop_daemon() { stop_it=$(daemon_pid) || return 0; stop_pid TERM "$stop_it"; }
restart_daemon() { stop_daemon; start_daemon; }
kill_daemon() { stop_it=$(daemon_pid) || return 0; stop_pid KILL "$stop_it"; }

# end_all PID...: by TERM, else by KILL.
end_all()
{
	for clean_pid in "$@"; do kill -TERM "$clean_pid" 2>/dev/null; done
	for clean_pid in "$@"; do
		wait_for 2 gone "$clean_pid" || kill -KILL "$clean_pid" 2>/dev/null
	done
}

# The daemons behind what talks with them: who follows one that ends starts the next.
clean_up()
{
	clean_code=$?
	trap - EXIT
	clean_daemons= clean_others=
	for clean_it in $test_pids; do
		alive "$clean_it" && line_of "/proc/$clean_it/comm" || continue
		case $lib_line in
		avad) clean_daemons="$clean_daemons $clean_it" ;;
		*) clean_others="$clean_others $clean_it" ;;
		esac
	done
	end_all $clean_others
	end_all $clean_daemons
	for clean_it in "$T"/ava.lock "$T"/*/ava.lock "$T"/*/*/ava.lock "$T"/*/*/*/ava.lock; do
		! daemon_pid "${clean_it%/*}" >/dev/null || end_all "$daemon_is"
	done
	rm -rf "$T" 2>/dev/null || { chmod -R u+rwX "$T"; rm -rf "$T"; }
	exit "$clean_code"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
