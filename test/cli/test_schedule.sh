#!/bin/sh
# ava schedule: what a person says to standing orders, and what the daemon then does by the clock,
# through a stop, a kill and a clock that is set forward. doc/ORDERS.md
. "${0%/*}/lib.sh"
own_clock
[ -n "$CLOCK" ] || skip 'hours cannot be moved under a sanitiser'
proj=$T/proj
mkdir -p "$proj" && echo 'the kettle boils' >"$proj/a.txt" && cd "$proj" || exit 1
start_daemon
state() { "$AVA" schedule show "$1" --json | jq -r .state; }

run "$AVA" schedule
exits 'nothing yet is no error' 0
contains 'and says how to add one' 'ava schedule add' "$OUT"
run "$AVA" schedule add 'find kettle'
exits 'a time is needed' 2
run "$AVA" schedule add '61 * * * *' 'find kettle'
exits 'a wrong time is refused' 2
contains 'and named' '61' "$ERR"
run "$AVA" schedule add --every 1h --at 18:00 'find kettle'
exits 'two times are refused' 2
run "$AVA" schedule add @daily 'find kettle' --zone Nowhere/Town
exits 'an unknown zone is refused' 2
run "$AVA" schedule show O-00000000
exits 'there is no such order' 5
run "$AVA" schedule dance O-00000000
exits 'an unknown word is a usage error' 2

echo no >"$T/no"
"$AVA" schedule add --every 1h 'find kettle' <"$T/no" >"$OUT" 2>"$ERR"
CODE=$?
exits 'a no adds nothing' 4
contains 'the quote has all of it' 'Standing order O-' "$OUT"
contains 'with the next times' 'Next: ' "$OUT"
check 'nothing is there' test "$("$AVA" schedule list --json)" = '[]'

run "$AVA" schedule add 'Mon 08:00' 'find kettle' --zone Asia/Tokyo --until 2030-01-01 --yes
run "$AVA" schedule show "$("$AVA" schedule list --json | jq -r '.[0].order_id')"
check 'its times are shown in its zone' grep -q '^Next: Mon [0-9-]* 08:00, Mon' "$OUT"
check 'and its end' grep -qx 'Until: Tue 2030-01-01 00:00' "$OUT"
"$AVA" schedule rm "$("$AVA" schedule list --json | jq -r '.[0].order_id')" >/dev/null
run "$AVA" schedule add --every 1h 'find kettle' --role researcher --yes --json --missed once --tag nightly
exits 'a yes adds it' 0
id=$(jq -r .order_id "$OUT")
check 'it is active' test "$(state "$id")" = active
run "$AVA" schedule list
contains 'the list has it' "$id" "$OUT"
skip_time 3601
check 'its time comes and it fires' wait_for 20 sh -c 'test "$("$0" logs --type OrderFired -n 9 | grep -c OrderFired)" = 1' "$AVA"
run=$("$AVA" schedule show "$id" --json | jq -r .run)
check 'its run ends' "$AVA" wait "$run"
run "$AVA" status "$run" --json
contains 'the run names its order' "$id" "$OUT"

# Killed, and the clock goes on by five hours meanwhile.
kill_daemon
clock_at 22800 22800
start_daemon
check 'missed times are one run' wait_for 20 sh -c 'test "$("$0" logs --type OrderFired -n 9 | grep -c OrderFired)" = 2' "$AVA"
run "$AVA" logs --type OrderChanged -n 9
contains 'and told' '5 times were missed' "$OUT"
check 'an order keeps the daemon up' sh -c 'test -S "$AVA_DATA_ROOT/ava.sock"'

run "$AVA" schedule pause "$id"
exits 'it is paused' 0
check 'and shown so' test "$(state "$id")" = paused
run "$AVA" doctor
contains 'the doctor says so' "$id is paused" "$OUT"
run "$AVA" schedule run "$id"
exits 'a paused one can be run' 0
contains 'and names its run' 'started S-' "$OUT"
run "$AVA" schedule unpause "$id"
check 'it goes on' test "$(state "$id")" = active
run "$AVA" doctor
contains 'the doctor says what a restart of the machine means' 'after a restart of the machine nothing fires' "$OUT"
stop_daemon
run "$AVA" doctor
contains 'and that nothing fires without a daemon' '1 standing order and no daemon' "$OUT"
start_daemon
run "$AVA" schedule rm "$id"
exits 'it is removed' 0
run "$AVA" schedule show "$id"
exits 'and gone' 5
check 'with its file' sh -c '! ls "$AVA_DATA_ROOT"/orders/*.json >/dev/null 2>&1'
check 'every line of the logs is as it should be' python3 "$SRCDIR/test/check_events.py" \
	"$AVA_DATA_ROOT"/logs/ava/*.jsonl "$AVA_DATA_ROOT"/logs/subagents/*.jsonl
finish
