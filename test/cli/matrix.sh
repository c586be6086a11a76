# matrix.sh - a server of Matrix (matrix_server.py) beside what lib.sh has; source it behind that. It serves
# at $PORT, and we are in $T/src.
command -v curl >/dev/null && command -v python3 >/dev/null && command -v jq >/dev/null ||
	skip 'no curl, python3 or jq'

TOKEN=syt_kettle_canary_0123456789
YES=$(printf '1\357\270\217\342\203\243')
mkdir -p "$T/src" "$XDG_CONFIG_HOME/ava"
cd "$T/src" || exit 99
printf 'int kettle(void)\n{\n\treturn 1;\n}\n' >kettle.c
PYTHONDONTWRITEBYTECODE=1 python3 "$SRCDIR/test/cli/matrix_server.py" "$TOKEN" >"$T/hs.out" 2>"$T/hs.err" &
keep $!
wait_for 20 grep -q port "$T/hs.out"
PORT=$(sed -n 's/^port //p' "$T/hs.out")
printf 'matrix:\n  homeserver: http://127.0.0.1:%s\n  pace_ms: 0\n  edit_ms: 100\nweb:\n  searxng: http://127.0.0.1:9\n' "$PORT" >"$XDG_CONFIG_HOME/ava/config.yaml"

put_token() { (umask 077; echo "MATRIX_ACCESS_TOKEN=$TOKEN" >"$XDG_CONFIG_HOME/ava/env"); }
hs() { curl -s --max-time 20 "http://127.0.0.1:$PORT/test/$1" -d "${2:-{\}}"; }
seen() { hs messages; }
say() { hs say "$(jq -nc --arg t "$1" --arg f "${2:-ben}" --arg r "${3:-}" '{from: $f, text: $t, reply: $r}')" | jq -r .event; }
react() { hs react "$(jq -nc --arg e "$1" --arg k "$2" --arg f "${3:-ben}" '{from: $f, event: $e, key: $k}')" >/dev/null; }
# count TEXT: messages with this text; event TEXT: the newest of them.
count() { seen | jq --arg t "$1" '[.messages[] | select(.text | contains($t))] | length'; }
has() { [ "$(count "$1")" -ge "${2:-1}" ]; }
event() { seen | jq -r --arg t "$1" '[.messages[] | select(.text | contains($t)).event] | last'; }
state() { "$AVA" matrix --json 2>/dev/null </dev/null | jq -r "$1"; }
is() { [ "$(state "$1")" = "$2" ]; }
events() { cat "$AVA_DATA_ROOT"/logs/ava/*.jsonl | grep -c "\"eventType\":\"$1\""; }
heard() { jq -s --arg t "$1" 'map(select(.eventType == "UserMessage" and .content.text == $t)) | length' "$AVA_DATA_ROOT"/logs/ava/*.jsonl; }
pending() { "$AVA" proposals --json </dev/null 2>/dev/null | jq -r '.[0].proposal_id // empty'; }
quoted() { P=$(pending) && [ -n "$P" ] && has "$P"; }
in_room() { seen | jq -e --arg r "!$1:test" '.rooms[$r].in' >/dev/null; }
code() { "$AVA" matrix pair </dev/null | sed -n 's/^    //p'; }
pair()
{
	pair_code=$(code)
	hs invite '{"from":"ben"}' >/dev/null
	wait_for 20 in_room ben
	say "$pair_code" >/dev/null
	wait_for 20 has 'Paired.'
}
begin() { start_daemon && wait_for 20 is .state serving; }
