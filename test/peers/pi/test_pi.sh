#!/bin/sh
# pi opens our session files: after each kind of entry it sees the whole
# conversation, and what it appends beside ours loses nothing (`./dev check pi`
# installs it). Expects PEER_MODULES, the folder of its node_modules.
SRCDIR=${SRCDIR:-$(cd "${0%/*}/../../.." && pwd)}
. "${0%/*}/../../cli/lib.sh"
[ -d "${PEER_MODULES:-}" ] || skip 'PEER_MODULES is not set'
say() { curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/v1/sessions/$id/messages" \
	-d "$(jq -nc --arg text "$1" '{text:$text}')" >/dev/null; }
state() { curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/v1/sessions/$id"; }
idle() { [ "$(state | jq -r '"\(.status) \(.waiting) \(.live_runs)"')" = 'idle 0 0' ]; }
told() { say "$1" && wait_for 60 idle; }
pi() { node "$SRCDIR/test/peers/pi/pi.mjs" "$@" 2>>"$T/pi.err"; }

# begin MODEL: a new conversation in $id.
begin()
{
	id=$(curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" http://x/api/v1/sessions \
		-d "$(jq -nc --arg cwd "$T/tree" --arg model "$1" '{cwd:$cwd,model:$model}')" |
		jq -r .session_id)
}
file_of() { ls "$AVA_DATA_ROOT"/sessions/*/*_"$id".jsonl; }

# What stands in the file, in the form that `pi show` has; torn lines left out.
stands()
{
	jq -Rsc 'split("\n") | map(fromjson? | select(type == "object" and .type != "session")) |
		{roles: [.[] | .message // empty | .role],
		 texts: [.[] | .message // empty | [.content[] | select(.type == "text").text] | join("")],
		 entries: length}' "$1"
}
# sees NAME FILE: the conversation that pi has is the whole file, in its order.
sees() { equal "$1" "$(stands "$2")" "$(pi show "$2" | jq -c .)"; }

mkdir "$T/tree"
printf 'int parse_header(const char *s)\n{\n\treturn 0;\n}\n' >"$T/tree/parser.c"
export ANTHROPIC_API_KEY=test-key-0123456789 ANTHROPIC_BASE_URL=http://127.0.0.1:9
start_daemon || { result 1 'avad serves' || finish; }

# --- after each kind of entry -------------------------------------------------
begin offline
told 'Good morning!'
file=$(file_of)
sees 'a greeting and its answer' "$file"
told 'Find where parse_header is defined'
sees 'a call, its result, a proposal' "$file"
told "$(grep -o 'P-[0-9a-f]*' "$file" | tail -n 1) yes please"
sees 'a run that began and ended, and what it found' "$file"
pi show "$file" | jq -r '.texts[-1]' >"$OUT"
contains 'with its place' 'parser.c:1' "$OUT"
equal 'both entries of the run stand there' 'subagent:start subagent:complete' \
	"$(jq -r 'select(.type == "agent_event").eventType' "$file" | tr '\n' ' ' | sed 's/ $//')"

printf '{"text":"Never.","delay_ms":3600000}\n{"text":"Said."}\n' >"$T/slow.jsonl"
begin "offline:$T/slow.jsonl"
say 'first'
busy() { [ "$(state | jq -r .status)" = busy ]; }
wait_for 60 busy
stop=$(curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/v1/sessions/$id/stop" -d '{}')
wait_for 60 idle
slow=$(file_of)
sees 'a turn that was stopped' "$slow"
equal 'is one that was aborted' aborted "$(jq -r '.message.stopReason // empty' "$slow")"
told 'second'
sees 'and goes on behind it' "$slow"

begin anthropic/claude-sonnet-4-5
say 'hello'
wait_for 60 busy
curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/v1/sessions/$id/stop" -d '{}' >/dev/null
wait_for 60 idle
equal 'pi goes on with the model' anthropic/claude-sonnet-4-5 "$(pi model "$(file_of)")"

# --- beside each other --------------------------------------------------------
begin offline
told 'Good morning!'
file=$(file_of)
pi append "$file" 'from pi' 3
sees 'what pi appends' "$file"
told 'hello again'
sees 'what Ava appends behind it' "$file"
pi append "$file" 'pi again' 1
stop_daemon
start_daemon
told 'and again'
sees 'both, behind a stop of the daemon' "$file"
equal 'words that were said to pi are not answered' 3 \
	"$(jq -s '[.[] | select(.message.role == "assistant")] | length' "$file")"

pi busy "$file" 'at once' 60 &
writer=$!
keep "$writer"
for n in 1 2 3 4 5 6 7 8; do told "beside $n"; done
wait "$writer"
lines=$(wc -l <"$file")
equal 'at the same time: each line is whole' "$lines" "$(jq -c . "$file" | wc -l)"
equal 'no id twice' "$lines" "$(jq -r .id "$file" | sort -u | wc -l)"
equal 'every word of pi stands there once' 60 "$(grep -c '"text":"at once ' "$file")"
equal 'and every one of ours' 8 "$(grep -c '"text":"beside ' "$file")"
equal 'pi has every entry' "$((lines - 1))" "$(pi show "$file" | jq .entries)"
told 'once more'
equal 'and its view ends with ours' 'once more' "$(pi show "$file" | jq -r '.texts[-2]')"

# --- a file that was cut --------------------------------------------------------
begin offline
told 'Good morning!'
file=$(file_of)
printf '{"type":"message","id":"torn0001","par' >>"$file"
sees 'a torn last line' "$file"
told 'hello again'
sees 'what Ava appends behind it hides nothing' "$file"
pi append "$file" 'from pi' 1
sees 'nor what pi does' "$file"

# --- every kind of line at once -------------------------------------------------
jq -c --slurp 'reduce .[] as $e ([]; . + [if $e.type == "session" then $e
	else $e + {parentId: (if length > 1 then .[-1].id else null end)} end]) | .[]' \
	"$SRCDIR/test/golden/sessions/session.jsonl" >"$T/golden.jsonl"
sees 'the golden file' "$T/golden.jsonl"
[ ! -s "$T/pi.err" ] || note "pi: $(head -c 2000 "$T/pi.err")"
finish
