#!/bin/sh
# Commands that fill the disk, or use up its files, lose what they wrote, and runs end; beside
# another program that fills it a person reads, cancels, prunes and starts the daemon, for the
# journal has room of its own. On a small ext4, where a loop device can be had, and on tmpfs.
if [ -z "${FULL_NS:-}" ] && unshare -m sh -c 'mount -t tmpfs none /mnt' 2>/dev/null; then
	FULL_NS=1 exec unshare -m sh "$0" "$@"
fi
. "${0%/*}/lib.sh"
[ -n "${FULL_NS:-}" ] || skip 'mounting a file system is not permitted here'
command -v curl >/dev/null || skip 'no curl'
command -v bwrap >/dev/null && [ -x "${AVAD%/*}/ava-sandbox" ] || skip 'no sandbox'

export AVA_DISK_FREE_MIN_MB=40 AVA_DISK_BALLAST_MB=64 AVA_JOURNAL_CHECKPOINT_S=1
mkdir "$T/src"
cd "$T/src" || exit 99
echo 'int helper(void);' >a.c
echo kept >b.c

# script NAME TOOL ARGS...: a run that makes these calls.
script()
{
	script_name=$1
	shift
	printf '{"tool_calls":[{"name":"%s","args":%s}]}\n' "$@" \
		submit_result '{"summary":"done","confidence":0.5}' >"$T/$script_name.jsonl"
}
# answers RUN: what its tools said.
answers()
{
	jq -r 'select(.role == "user") | .content[]? | select(.type == "tool_result") | .content' \
		"$AVA_DATA_ROOT/runs/$1/messages.jsonl" >"$T/answers"
}
status_is() { [ "$("$AVA" ps -a --json | jq -r --arg id "$1" \
	'.[] | select((.subagent_id // .id) == $id) | .status')" = "$2" ]; }
spawn() { "$AVA" run --yes --background --json --role code_reviewer --model "offline:$T/$1.jsonl" "$1" 2>/dev/null | jq -r .subagent_id; }
free_mb() { df -m "$AVA_DATA_ROOT" | awk 'END { print $4 }'; }
roomy() { [ "$(free_mb)" -ge 40 ]; }
few() { [ "$(df -i "$AVA_DATA_ROOT" | awk 'END { print $4 }')" -lt 16 ]; }
pieces() { ls "$AVA_DATA_ROOT/wal" | grep -c ballast; }
has_room_of_its_own() { [ "$(pieces)" -gt 4 ]; }
fewer_pieces() { [ "$(pieces)" -lt "$1" ]; }
fill()
{
	case $1 in
	bytes) dd if=/dev/zero of="$AVA_DATA_ROOT/fill" bs=4k conv=notrunc oflag=append 2>/dev/null ;;
	files) mkdir -p "$AVA_DATA_ROOT/fills"
		python3 -c 'import os, sys
try:
    while True: open("%s/%s" % (sys.argv[1], os.urandom(8).hex()), "w").close()
except OSError: pass' "$AVA_DATA_ROOT/fills" ;;
	esac
}
takes_work() { new=$(spawn end) && [ -n "$new" ]; }
make_room() { rm -rf "$AVA_DATA_ROOT/fill" "$AVA_DATA_ROOT/fills"; }
prunes() { curl -sS -m 20 --unix-socket "$AVA_DATA_ROOT/ava.sock" http://x/api/v1/prune \
	-d '{"older_than_seconds":1,"dry_run":false}' >"$OUT" 2>&1; jq -e --arg id "$1" '.runs | index($id) != null' "$OUT" >/dev/null; }

matches() { check "$1" grep -q -- "$2" "$3"; }

# commands: what one does in the sandbox, and what it is told.
commands()
{
	script early run_bash '{"command":"echo mine >early; echo data >>a.c"}' \
		run_bash '{"command":"echo small >small; truncate -s 9G sparse; n=$(df -m --output=avail . | tail -1); for i in 1 2; do fallocate -l $(((n - 20) / 2))M f$i; done"}' \
		run_bash '{"command":"cat early; ls; df -m . | tail -1 | wc -l"}'
	run "$AVA" run --yes --json --role code_reviewer --model "offline:$T/early.jsonl" 'fill at once'
	exits "$1: a command fills the disk between two looks: its run goes on" 0
	answers "$(jq -r .subagent_id "$OUT")"
	contains "$1: what is removed is said" 'Removed of what it wrote' "$T/answers"
	matches "$1: with its place and size" '/f[12] ([0-9]* MB)' "$T/answers"
	matches "$1: what was there before stays" '^mine$' "$T/answers"
	matches "$1: so does what is small" '^small$' "$T/answers"
	matches "$1: and what takes no room" '^sparse$' "$T/answers"

	script twice run_bash '{"command":"while head -c 1000000 /dev/zero >>big; do :; done; sleep 1"}'
	first=$(spawn twice)
	second=$(spawn twice)
	check "$1: of two that fill at once the first ends" wait_for 30 status_is "$first" success
	check "$1: and the second" wait_for 30 status_is "$second" success

	script hidden run_bash '{"command":"mkdir shut; exec 3>gone; rm gone; head -c 150000000 /dev/zero >&3; cd shut; for i in 1 2 3 4; do fallocate -l 50M f$i; done; chmod 0 ../shut; sleep 1"}'
	check "$1: what is in a folder that is closed goes, and what has no name" \
		wait_for 30 status_is "$(spawn hidden)" success

	script files run_bash '{"command":"i=0; while mkdir d$i; do j=0; while [ $j -lt 200 ]; do : >d$i/$j || exit 1; j=$((j+1)); done; i=$((i+1)); done"}'
	files=$(spawn files)
	check "$1: a command uses up all files: its run ends" wait_for 60 status_is "$files" success
	answers "$files"
	matches "$1: files are said" '/ava/work/d[0-9]*/[0-9]* .*and [0-9]* more' "$T/answers"
	run "$AVA" run --yes 'find helper'
	exits "$1: and new work is taken" 0

	script changes run_bash '{"command":"echo more >>b.c; head -c 300000000 /dev/zero >>a.c; sleep 1","cwd":"."}' \
		run_bash '{"command":"cat a.c b.c","cwd":"."}'
	run "$AVA" run --yes --json --role code_reviewer --grant rw --model "offline:$T/changes.jsonl" 'fill a file of the copy'
	exits "$1: a file of the copy fills the disk: its run goes on" 0
	answers "$(jq -r .subagent_id "$OUT")"
	matches "$1: it is as it was" '^int helper(void);$' "$T/answers"
	matches "$1: which is said" 'a.c ([0-9]* MB) (as it was)' "$T/answers"
	matches "$1: and what is small stays changed" '^more$' "$T/answers"
}

# serves FS: an MCP server fills it; what it had before stays.
serves()
{
	script serves mcp__fills__echo '{"text":"hello"}' mcp__fills__burden '{"text":"disk"}' \
		mcp__fills__echo '{"text":"again"}'
	run "$AVA" run --yes --json --role fills --model "offline:$T/serves.jsonl" 'fill by a server'
	exits "$1: a server fills the disk: the run goes on" 0
	answers "$(jq -r .subagent_id "$OUT")"
	matches "$1: it is ended, or ends by itself, and why is said" \
		'it filled the disk: what it wrote was removed\|No space left' "$T/answers"
	matches "$1: it is started again" 'again' "$T/answers"
	check "$1: there is room again, whatever it wrote until it had ended" wait_for 20 roomy
	rm -f "$AVA_DATA_ROOT"/mcp/fills/fill*
	check "$1: what it had stays" [ -s "$AVA_DATA_ROOT/mcp/fills/store" ]
}

# beside FS KIND: another program has it all.
beside()
{
	make_room
	check "$1, $2: there is room of its own" wait_for 40 has_room_of_its_own
	for turn in 1 2 3 4 5 6 7 8 9 10 11 12; do
		printf '{"tool_calls":[{"name":"search_codebase","args":{"pattern":"x%s"}}],"delay_ms":300}\n' $turn
	done >"$T/long.jsonl"
	script end read_file '{"path":"a.c"}'
	cat "$T/end.jsonl" >>"$T/long.jsonl"
	old=$(spawn end)
	check "$1, $2: a run ends" wait_for 20 status_is "$old" success
	going=$(spawn long)
	cancelled=$(spawn long)
	before=$(pieces)
	fill "$2"
	run "$AVA" cancel "$cancelled"
	exits "$1, $2: with the disk full a run is cancelled" 0
	fill "$2"
	run "$AVA" ps
	exits "$1, $2: runs are listed" 0
	contains "$1, $2: with the problem" 'the daemon has a problem: only' "$ERR"
	run "$AVA" logs "$old"
	exits "$1, $2: a log is read" 0
	run "$AVA" result "$old"
	exits "$1, $2: so is a result" 0
	run "$AVA" run --yes 'find helper'
	exits "$1, $2: new work is refused" 1
	fill "$2"
	check "$1, $2: what is at work ends" wait_for 40 status_is "$going" success
	check "$1, $2: the journal gave up of its own" fewer_pieces "$before"
	fill "$2"
	check "$1, $2: a run is pruned" prunes "$old"
	stop_daemon
	fill "$2"
	start_daemon --service
	check "$1, $2: the daemon starts on it" status_is "$cancelled" cancelled
	stop_daemon
	if [ "$2" = bytes ]; then
		rm -f "$AVA_DATA_ROOT"/wal/ballast-*
		fill bytes
	fi
	start_daemon --service
	check "$1, $2: and once more" status_is "$cancelled" cancelled
	make_room
	check "$1, $2: with room new work is taken" wait_for 20 takes_work
}

play()
{
	mkdir -p "$AVA_DATA_ROOT/mcp/fills"
	echo mine >"$AVA_DATA_ROOT/mcp/fills/store"
	start_daemon --service
	check "$1: there is room of its own" wait_for 20 has_room_of_its_own
	commands "$1"
	serves "$1"
	beside "$1" bytes
	beside "$1" files
	wait_for 20 "$AVA" wait "$new"
	stop_daemon
	check "$1: the logs are as they were sealed" "$AVA" logs verify
	umount -l "$AVA_DATA_ROOT"
}

mkdir -m 700 "$AVA_DATA_ROOT"
mkdir -p "$T/server" "$XDG_CONFIG_HOME/ava/agents"
cp "$SRCDIR/test/cli/mcp_server.py" "$T/server"
jq -n --arg dir "$T/server" '{mcpServers: {fills: {command: "python3", args: ["\($dir)/mcp_server.py"],
	ava: {read: [$dir], timeout: 20}}}}' >"$XDG_CONFIG_HOME/ava/mcp.json"
chmod 600 "$XDG_CONFIG_HOME/ava/mcp.json"
printf -- '---\nname: fills\ndescription: fills\ntools: mcp__fills__*\n---\nFill.\n' >"$XDG_CONFIG_HOME/ava/agents/fills.md"
trap 'full_code=$?; umount -l "$AVA_DATA_ROOT" 2>/dev/null; (exit "$full_code"); clean_up' EXIT
mount -t tmpfs -o size=290m,nr_inodes=3000,mode=700 none "$AVA_DATA_ROOT" ||
	skip 'mounting a file system is not permitted here'
play tmpfs
truncate -s 300M "$T/disk"
if PATH=$PATH:/usr/sbin:/sbin mkfs.ext4 -q -m 0 -N 3000 "$T/disk" 2>/dev/null &&
	mount -o loop "$T/disk" "$AVA_DATA_ROOT" 2>/dev/null; then
	chmod 700 "$AVA_DATA_ROOT"
	play ext4
else
	echo '# no loop device or no mkfs.ext4: ext4 is not played'
fi
finish
