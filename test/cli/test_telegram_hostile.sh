#!/bin/sh
# A bot of Telegram in a bad world: answers that cannot be read, a clock that jumps, a disk that is
# full or read-only while people speak.
if [ -z "${HOSTILE_NS:-}" ] && unshare -m sh -c 'mount -t tmpfs none /mnt' 2>/dev/null; then
	HOSTILE_NS=1 exec unshare -m sh "$0" "$@"
fi
. "${0%/*}/lib.sh"
. "$LIB/telegram.sh"

put_token
start_daemon || { result 1 'avad serves' || finish; }
wait_for 20 is .state serving
check 'somebody is paired' pair
wait_for 20 taken

# --- answers that cannot be read

log() { grep -qF "$1" "$AVA_DATA_ROOT/logs/avad.log" "$T/avad.out"; }
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
poison=$(bot update '{"message":{"message_id":5001,"from":{"id":78},"text":"\"update_id\":4 a\u0000b"}}' | jq .update_id)
say $ME 'behind it' >/dev/null
check 'an update that cannot be read holds up no other' wait_for 40 heard_once 'behind it'
check 'nor what came before it' heard_once 'before it'
check 'it is logged' log "update $poison could not be read and was passed over"
"$AVA" doctor >"$T/doctor" 2>&1 </dev/null
contains 'and doctor tells' "serving: @kettle_bot, 1 paired; update $poison could not be read" "$T/doctor"
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
finish
