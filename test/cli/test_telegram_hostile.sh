#!/bin/sh
# A bot of Telegram in a bad world: answers that cannot be read, a clock that jumps, a disk that is
# full or read-only while people speak.
if [ -z "${HOSTILE_NS:-}" ] && unshare -m sh -c 'mount -t tmpfs none /mnt' 2>/dev/null; then
	HOSTILE_NS=1 exec unshare -m sh "$0" "$@"
fi
. "${0%/*}/lib.sh"
. "$LIB/telegram.sh"

[ -z "${HOSTILE_NS:-}" ] || {
	mkdir -m 700 "$AVA_DATA_ROOT"
	mount -t tmpfs -o size=192m,mode=700 none "$AVA_DATA_ROOT" || HOSTILE_NS=
	trap 'disk_code=$?; umount -l "$AVA_DATA_ROOT"; (exit "$disk_code"); clean_up' EXIT
}
export AVA_DISK_FREE_MIN_MB=0
put_token
begin || { result 1 'avad serves' || finish; }
check 'somebody is paired' pair
wait_for 20 taken

# --- answers that cannot be read

bot plan '{"method":"getUpdates","status":200,"times":4,"body":"<html>sign in to the hotel</html>"}' >/dev/null
check 'a page in place of an answer is said' wait_for 20 sh -c '"$AVA" status </dev/null | grep -q "Telegram answers 200, and not in JSON"'
say $ME '/cost' >/dev/null
check 'and asked again until it is one' wait_for 30 has 'Today: '
check 'which is well again' is .problem ''
bot plan '{"method":"getUpdates","status":403,"body":"Forbidden"}' >/dev/null
bot plan '{"method":"sendMessage","status":404,"body":"nothing here"}' >/dev/null
say $ME '/runs' >/dev/null
check 'a proxy that refuses closes nothing' wait_for 30 has 'Nothing has run yet.'
equal 'nobody has blocked anything' false "$(state '.paired[0].blocked')"

say $ME 'before it' >/dev/null
bot update '{"message":{"message_id":5001,"from":{"id":78},"text":"\"update_id\":4 a\u0000b"}}' >/dev/null
say $ME 'behind it' >/dev/null
check 'an update that cannot be read holds up no other' wait_for 40 heard_once 'behind it'
check 'nor what came before it' heard_once 'before it'
calls() { seen | jq '[.calls[] | select(.method == "getUpdates")] | length'; }
asked=$(calls)
for id in -1 0.5 9223372036854775807 '"7"' null; do
	body="{\"ok\":true,\"result\":[{\"update_id\":$id,\"message\":{\"message_id\":1,\"from\":{\"id\":$ME},\"chat\":{\"id\":$ME,\"type\":\"private\"},\"text\":\"numberless\"}}]}"
	jq -nc --arg body "$body" '{method: "getUpdates", status: 200, body: $body}' >"$T/plan"
	bot plan @"$T/plan" >/dev/null
done
say $ME '/cancel' >/dev/null
check 'updates without a number that is one are passed over' wait_for 20 has 'Name the run: /cancel'
equal 'and have no effect' 0 "$(heard numberless)"
at_most 'nor are they asked for without end' $((asked + 8)) "$(calls)"
# --- a disk that is full

# What the daemon gives back meanwhile is filled, too.
fill() { dd if=/dev/zero of="$AVA_DATA_ROOT/fill" bs=4k oflag=append conv=notrunc 2>/dev/null; }
unwell() { [ -n "$("$AVA" status --json </dev/null | jq -r '.health.problem // empty')" ]; }
full_and_unwell() { fill; unwell; }
unconfirmed() { [ "$(seen | jq .waiting)" -ge 1 ]; }
[ -z "${HOSTILE_NS:-}" ] || {
	fill
	say $ME 'said to a full disk' >/dev/null
	check 'a full disk shows' wait_for 20 full_and_unwell
	check 'what cannot be kept is not confirmed' unconfirmed
	kill_daemon
	check 'nor after a kill' unconfirmed
	rm "$AVA_DATA_ROOT/fill"
	start_daemon
	check 'with room it is heard' wait_for 30 heard_once 'said to a full disk'
	check 'and confirmed' wait_for 20 taken
}
[ -z "$AVA_SANITIZER" ] || finish # it must be loaded first
cc -shared -fPIC -o "$T/world.so" "$LIB/telegram_world.c" || finish

own_clock
CLOCK=$CLOCK:$T/world.so
export AVA_TEST_DISK="$T/disk"
disk() { echo "$1" >"$T/disk.new" && mv "$T/disk.new" "$T/disk"; }
disk 0
stop_daemon
"$AVA" telegram unpair $ME >/dev/null </dev/null
stop_daemon
clock_at 0 0
begin

# --- a clock that jumps, by a day and more

code() { "$AVA" telegram pair </dev/null | sed -n 's/^    //p'; }
late=$(code)
clock_at 0 601
say $ME "$late" >/dev/null
wait_for 20 taken
check 'a code is good for ten minutes' is '.paired | length' 0
stop_daemon
clock_at 0 0
begin
good=$(code)
clock_at 86400 0
say $ME "$good" >/dev/null
check 'whatever the clock on the wall says' wait_for 20 is '.paired | length' 1
say $ME 'Find where kettle is defined' >/dev/null
check 'a quote comes' wait_for 30 quoted
quote=$(number "$P")
yes=$(yes_of "$quote")
clock_at 172800 0
late=$(bot press "{\"from\":$ME,\"message\":$quote,\"data\":\"$yes\"}" | jq -r .query)
check 'a button of yesterday is answered' wait_for 20 pressed "$late"
equal 'it is not good any more' 'This button is not good any more.' "$(seen | jq -r --arg q "$late" '.presses[$q].answers[0]')"
equal 'and starts nothing' 0 "$(events SubagentSpawn)"
say $ME 'Find where kettle is defined' >/dev/null
check 'another quote comes' wait_for 30 quoted
clock_at 86400 0
press "$(number "$P")" Yes >/dev/null
check 'a clock that jumps back takes nothing away' wait_for 60 has 'From S-'
equal 'one run' 1 "$(events SubagentSpawn)"
RUN=$("$AVA" ps -a --json </dev/null | jq -r '.[0].subagent_id')
mv "$AVA_DATA_ROOT/logs/subagents/$RUN.jsonl" "$T/kept"
mkdir "$AVA_DATA_ROOT/logs/subagents/$RUN.jsonl"
say $ME "/logs $RUN" >/dev/null
say $ME /runs >/dev/null
check 'a file that cannot be read holds up nobody' wait_for 20 has 'The newest runs:'
check 'and that is said' wait_for 20 has 'not a regular file'
rmdir "$AVA_DATA_ROOT/logs/subagents/$RUN.jsonl"
mv "$T/kept" "$AVA_DATA_ROOT/logs/subagents/$RUN.jsonl"
id=$(say $ME 'said before a week' | jq .update_id)
check 'an update is heard' wait_for 20 heard_once 'said before a week'
wait_for 20 taken
clock_at 1000000 0
bot again "{\"update_id\":$id,\"message\":{\"message_id\":9999,\"from\":{\"id\":$ME},\"chat\":{\"id\":$ME,\"type\":\"private\"},\"text\":\"said before a week\"}}" >/dev/null
say $ME 'said after a week' >/dev/null
check 'what comes after a week is heard' wait_for 20 heard_once 'said after a week'
wait_for 20 taken
equal 'and nothing twice' 1 "$(heard 'said before a week')"
clock_at 2000000 0
bot jump '{"to":50}' >/dev/null
say $ME 'said with a number that began anew' >/dev/null
check 'so are numbers that begin anew' wait_for 20 heard_once 'said with a number that began anew'

# --- a disk that fails: EROFS, EIO

say 78 "$(code)" >/dev/null
check 'another one is paired' wait_for 20 is '.paired | length' 2
before=$(count 'Proceed? [Yes/No]')
quoted_again() { [ "$(count 'Proceed? [Yes/No]')" -gt "$before" ]; }
settled() { jq -e '.open | all(. == "")' "$AVA_DATA_ROOT/delivery.json" >/dev/null; }
say $ME 'Find where kettle is defined' >/dev/null
wait_for 30 quoted_again
again=$(number 'Proceed? [Yes/No]')
wait_for 20 settled
for errno in 30 5; do
	wait_for 20 taken
	disk $errno
	[ $errno = 5 ] || {
		query=$(press "$again" No | jq -r .query)
		check 'a press that cannot be kept is answered all the same' wait_for 20 pressed "$query"
	}
	say $ME "said to a disk with errno $errno" >/dev/null
	press "$quote" Yes >/dev/null
	check "errno $errno: a disk that fails shows" wait_for 20 unwell
	check "errno $errno: and not confirmed" unconfirmed
	equal "errno $errno: nor done" 0 "$(heard "said to a disk with errno $errno")"
	[ $errno = 5 ] || for once in first again; do
		run "$AVA" telegram unpair 78
		exits "who is unpaired meanwhile is told that this is not sure, $once" 1
		contains 'and what to do' 'it could not be saved' "$ERR"
	done
	disk 0
	check "errno $errno: it is done when it can be" wait_for 40 heard_once "said to a disk with errno $errno"
	check "errno $errno: and confirmed" wait_for 20 taken
	check "errno $errno: and what was pressed is done" wait_for 20 says "$again" 'is rejected: nothing was started'
	check "errno $errno: and who is unpaired is" wait_for 20 is '.paired | length' 1
done
equal 'one run' 1 "$(events SubagentSpawn)"
equal 'the service found nothing amiss' '[]' "$(seen | jq -c .wrong)"
finish
