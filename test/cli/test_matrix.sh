#!/bin/sh
# Ava in a room of Matrix: who is heard, what they see, what the server's faults do.
. "${0%/*}/lib.sh"
. "$LIB/matrix.sh"

# --- the secret and the address

code=0
MATRIX_ACCESS_TOKEN=$TOKEN "$AVA" doctor >"$T/out" 2>&1 </dev/null || code=$?
contains 'a token in the environment is refused' 'stands in the environment' "$T/out"
put_token
printf 'matrix:\n  token: %s\n' "$TOKEN" >"$T/bad.yaml"
cp "$XDG_CONFIG_HOME/ava/config.yaml" "$T/good.yaml"
cp "$T/bad.yaml" "$XDG_CONFIG_HOME/ava/config.yaml"
"$AVA" doctor >"$T/out" 2>&1 </dev/null
contains 'a token in config.yaml is refused' 'MATRIX_ACCESS_TOKEN=' "$T/out"
printf 'web:\n  searxng: http://127.0.0.1:9\n' >"$XDG_CONFIG_HOME/ava/config.yaml"
"$AVA" doctor >"$T/out" 2>&1 </dev/null
contains 'without an address it says so' 'matrix.homeserver' "$T/out"
stop_daemon
cp "$T/good.yaml" "$XDG_CONFIG_HOME/ava/config.yaml"

begin || { result 1 'avad serves' || finish; }
equal 'it knows who it is' @ava:test "$(state .bot)"
"$AVA" doctor >"$T/out" 2>&1 </dev/null
contains 'doctor has a row' 'serving: @ava:test, 0 paired' "$T/out"

# --- who is heard

hs invite '{"from":"eve"}' >/dev/null
check 'pairing' pair
check 'an invite of a stranger is not taken' test "$(seen | jq '.rooms["!eve:test"].in')" = false
equal 'who is paired' @ben:test "$(state '.paired[0].id')"
say 'find where kettle is defined' eve >/dev/null

# --- a quote, yes by a reaction

say 'Find where kettle is defined' >/dev/null
check 'a quote' wait_for 60 quoted
quote=$(event "$P")
contains 'with what can be pressed' "$YES Yes" "$(seen | jq -r --arg e "$quote" '.messages[] | select(.event == $e).text' >"$T/text"; echo "$T/text")"
keys_there() { [ "$(seen | jq --arg e "$quote" '.messages[] | select(.event == $e).keys | length')" = 3 ]; }
check 'and the keys below it' wait_for 20 keys_there
react "$quote" "$YES" eve
say 'no' eve >/dev/null
react "$quote" '👍'
say 'what is that?' eve >/dev/null
equal 'a stranger and other signs press nothing' 0 "$(events SubagentSpawn)"
react "$quote" "$YES"
check 'yes starts it' wait_for 60 has 'From S-'
react "$quote" "$YES"
check 'the quote says so' wait_for 20 has 'Confirmed: S-'
check 'the line of the run ends' wait_for 20 has 'Complete ('
equal 'it is one run' 1 "$(events SubagentSpawn)"
equal 'who said it' matrix:@ben:test "$(jq -r 'select(.eventType == "SubagentSpawn").userId' "$AVA_DATA_ROOT"/logs/ava/*.jsonl | head -n 1)"

# --- a bare yes means what stands above it, by the order of the server

say 'Find where kettle is defined, once more' >/dev/null
check 'another quote' wait_for 60 quoted
say 'yes' >/dev/null
check 'a bare yes below it starts it' wait_for 60 has 'From S-' 2
runs=$(events SubagentSpawn)
say 'Find where kettle is defined, a third time' >/dev/null
check 'a third one' wait_for 60 quoted
quote=$(event "$P")
say '/runs' >/dev/null
check 'a list comes below it' wait_for 20 has 'The newest runs:'
say 'yes' >/dev/null
sleep 3
equal 'a yes below that starts nothing' "$runs" "$(events SubagentSpawn)"
say 'yes' ben "$quote" >/dev/null
check 'a reply to the quote does' wait_for 60 has 'From S-' 3

# --- rooms that are none to speak in

hs invite '{"from":"ben","room":"secret","encrypted":true}' >/dev/null
check 'an encrypted room is refused with a sentence' wait_for 20 has 'is encrypted, which I cannot read'
hs invite '{"from":"ben","room":"party","crowd":1}' >/dev/null
check 'one with others too' wait_for 20 has 'with one person alone'
left() { ! in_room secret && ! in_room party; }
check 'and they are left' wait_for 20 left
sleep 1
equal 'once' 2 "$(seen | jq '.calls.leave')"

# --- words

printf '%s\n' '{"text":"It is **so**, in `code` and <b>."}' >"$T/ava.jsonl"
stop_daemon
unset AVA_MODEL
export AVA_AVA_MODEL="offline:$T/ava.jsonl"
begin
say /new >/dev/null
say 'how is it?' >/dev/null
check 'Ava speaks' wait_for 30 has 'It is **so**'
equal 'simple Markdown is formatted, all else escaped' 'It is <strong>so</strong>, in <code>code</code> and &lt;b&gt;.' "$(seen | jq -r '[.messages[] | select(.text | contains("It is **so**")).html] | last')"

# --- faults of the server

failures() { hs plan "{\"call\":\"send\",\"status\":$1,\"body\":$2,\"times\":${3:-1}}" >/dev/null; }
failures 429 '{"errcode":"M_LIMIT_EXCEEDED","retry_after_ms":1500}'
say '/cost' >/dev/null
check '429: later' wait_for 20 has 'Today'
failures 502 '"proxy"' 2
say '/status' >/dev/null
check '502: again' wait_for 20 has 'slots used'
hs plan '{"call":"sync","status":401,"body":{"errcode":"M_UNKNOWN_TOKEN","error":"x"}}' >/dev/null
say 'anything' >/dev/null
check 'a bad token closes it' wait_for 20 is .state closed
"$AVA" matrix >"$T/out" </dev/null
contains 'and says what to do' 'write a new one into the file env' "$T/out"
equal 'unpairing' 0 "$("$AVA" matrix unpair @ben:test --json </dev/null | jq '.paired | length')"
equal 'the server found nothing amiss' '[]' "$(seen | jq -c .wrong)"
finish
