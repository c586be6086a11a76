#!/bin/sh
# Runs and people, once each from the command line to the disk and over a kill -9: a question,
# a call that needs a yes, a limit that is asked about, words to a run at work. What the machine
# does with each stands in test_ask.c.
. "${0%/*}/lib.sh"

export AVA_RUNS_MAX=1
cat >"$T/asks.jsonl" <<'X'
{"tool_calls":[{"name":"ask_person","args":{"question":"Which parser?","choices":["json","yaml"]}}]}
{"tool_calls":[{"name":"submit_result","args":{"output":null,"summary":"done as told","confidence":1}}]}
X
cat >"$T/default.jsonl" <<'X'
{"tool_calls":[{"name":"ask_person","args":{"question":"How deep?","default":"shallow","timeout":1}}]}
{"tool_calls":[{"name":"submit_result","args":{"output":null,"summary":"went on","confidence":1}}]}
X
cat >"$T/works.jsonl" <<'X'
{"text":"Looking.","tool_calls":[{"name":"submit_result","args":{"output":null,"summary":"too early","confidence":1}}]}
{"tool_calls":[{"name":"submit_result","args":{"output":null,"summary":"minded","confidence":1}}]}
X
echo '{"text":"never said","delay_ms":600000}' >"$T/slow.jsonl"
cat >"$T/reads.jsonl" <<'X'
{"tool_calls":[{"name":"read_file","args":{"path":"a.txt"}},{"name":"read_file","args":{"path":"b.txt"}}]}
{"tool_calls":[{"name":"submit_result","args":{"output":null,"summary":"read","confidence":1}}]}
X
look='{"tool_calls":[{"name":"read_file","args":{"path":"a.txt"}}]}'
printf '%s\n' "$look" "$look" "$look" "$(tail -n 1 "$T/reads.jsonl")" >"$T/looks.jsonl"
echo one >a.txt
echo two >b.txt

start() # FILE [OPTION...]
{
	script=$1
	shift
	"$AVA" run "do it" --model "offline:$T/$script.jsonl" --yes "$@" --background --json </dev/null \
		2>"$ERR" | jq -r .subagent_id
}
status_is() { [ "$("$AVA" status "$1" --json </dev/null | jq -r .status)" = "$2" ]; }
asks_of() { "$AVA" status "$1" --json </dev/null | jq -e --arg c "$2" '.waiting_for.call_id == $c' >"$T/null"; }
logged() { grep -c "$2" "$AVA_DATA_ROOT/logs/subagents/$1.jsonl"; }

# Who is away is told.
mkdir -p "$XDG_CONFIG_HOME/ava"
printf '#!/bin/sh\ncat >>"%s"\n' "$T/told" >"$T/notify"
chmod +x "$T/notify"
printf 'notify:\n  exec: %s\n' "$T/notify" >"$XDG_CONFIG_HOME/ava/config.yaml"

start_daemon || { result 1 'avad serves' || finish; }

# --- a question
a=$(start asks)
check 'a run that asks waits' wait_for 30 status_is "$a" waiting
run "$AVA" status "$a" --json
equal 'its question is shown' 'Which parser?' "$(jq -r .waiting_for.question "$OUT")"
run "$AVA" ps
contains 'ps says so' 'waits for you' "$OUT"
run "$AVA" status
check 'the overview says what it asks' grep -q "^$a .*: Waiting for an answer: Which parser?" "$OUT"

told() { [ "$(jq -r "select(.run == \"$a\") | .kind + \" \" + .text" "$T/told" 2>/dev/null)" = 'asked Which parser?' ]; }
check 'who is away is told what it asks' wait_for 30 told

# A person sees it the same way wherever it is asked for: one Item.
ask() { curl -sN --max-time 5 --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/v1/$1"; }
ask "items?run=$a" | jq -c '.items[] | select(.kind == "asked")' >"$T/item"
equal 'its question is an Item' "$a ${a}:c1.1 Which parser?" "$(jq -r '"\(.run) \(.ask) \(.text)"' "$T/item")"
ask "items" | jq -c --arg run "$a" '.items[] | select(.kind == "asked" and .run == $run)' >"$T/item2"
equal 'the same among all of a person' "$(cat "$T/item")" "$(cat "$T/item2")"
ask "runs/$a/events?items=only" | sed -n 's/^data: //p' | jq -c 'select(.kind == "asked")' >"$T/item2"
equal 'and in the stream of the run' "$(cat "$T/item")" "$(cat "$T/item2")"
equal 'whose events are left out' item "$(ask "runs/$a/events?items=only" | sed -n 's/^event: //p' | sort -u)"
equal 'another word for it is refused' 400 "$(curl -s -o "$T/no" -w '%{http_code}' --unix-socket \
	"$AVA_DATA_ROOT/ava.sock" "http://x/api/v1/events?items=many")"

# Its slot, the only one, is free.
b=$(start default)
run "$AVA" wait --timeout 60 "$b"
exits 'another run has the slot meanwhile, and nobody answers it' 0
equal 'it took its default' shallow "$(jq -r 'select(.eventType == "ToolResult" and
	.content.name == "ask_person") | .content.output' \
	"$AVA_DATA_ROOT/logs/subagents/$b.jsonl" | head -1)"

run "$AVA" steer --call c9.9 "$a" json
exits 'another question is not answered' 5
run "$AVA" steer "$a" 2
exits 'the number of a choice answers it' 0
contains 'and that is said' 'has its answer' "$OUT"
run "$AVA" wait --timeout 60 "$a"
exits 'it goes on' 0
equal 'the model read the choice' yaml "$(jq -r 'select(.eventType == "ToolResult" and
	.content.name == "ask_person") | .content.output' "$AVA_DATA_ROOT/logs/subagents/$a.jsonl")"
equal 'who said it is kept, and where' "$(id -un) terminal" "$(jq -r 'select(.content.state? == "answered") |
	"\(.content.by) \(.content.origin)"' "$AVA_DATA_ROOT/logs/subagents/$a.jsonl")"

# --- steering: a run that has to wait for the slot is told something before its
# first reply, which would have been its end
slow=$(start slow)
wait_for 30 status_is "$slow" running
c=$(start works)
"$AVA" steer "$c" 'only the [ava] parser, please' >"$T/steer.out" 2>&1 </dev/null &
steer=$!
wait_for 30 logged "$c" '"outcome":"queued"'
"$AVA" cancel "$slow" >/dev/null </dev/null
wait $steer
equal 'what is said is read, and that is known' "$c has read it." "$(cat "$T/steer.out")"
equal 'the model read it as a notice, once' 1 "$(grep -F -c '[ava] A person says: only the [\\ava] parser' \
	"$AVA_DATA_ROOT/runs/$c/messages.jsonl")"
slow=$(start slow)
wait_for 30 status_is "$slow" running
run "$AVA" steer --timeout 0.1 "$slow" hurry
exits 'a wait for it that runs out' 124
"$AVA" cancel "$slow" >/dev/null </dev/null
equal 'what was not read is told as such' 1 "$(logged "$slow" '"outcome":"too_late"')"

# --- ask_before: one yes a call
e=$(start reads --ask-before read_file)
wait_for 30 status_is "$e" waiting
run "$AVA" status "$e"
contains 'the call is shown' 'May it call read_file with {"path":"a.txt"}?' "$OUT"
run "$AVA" steer "$e" 'perhaps'
exits 'what is not clear is asked again' 2
run "$AVA" steer --call c1.1 "$e" yes
exits 'yes' 0
wait_for 30 asks_of "$e" c1.2
check 'the yes was for one call, not for the next' [ "$(logged "$e" '"eventType":"ToolResult"')" = 0 ]
run "$AVA" steer "$e" 'no: not that file'
exits 'no' 0
run "$AVA" wait --timeout 60 "$e"
exits 'it goes on' 0
results() { jq -r 'select(.eventType == "ToolResult" and .content.name == "read_file") | .content |
	[.callId, .errorClass, .output] | join(" ")' "$AVA_DATA_ROOT/logs/subagents/$e.jsonl"; }
check 'the one was read' [ -n "$(results | grep '^c1.1  a.txt')" ]
check 'the other was not, and the model knows why' \
	[ -n "$(results | grep '^c1.2 denied .*not that file')" ]
run "$AVA" run x --ask-before read_fle --yes
exits 'a misspelt tool' 2

# --- a stop: what is asked and what was said are still there
f=$(start asks)
wait_for 30 status_is "$f" waiting
at_limit=$(start looks --max-iterations 2 --on-limit ask)
check 'at its limit a run waits' wait_for 30 status_is "$at_limit" waiting
g=$(start reads --ask-before read_file)
wait_for 30 status_is "$g" waiting
run "$AVA" steer "$g" yes
wait_for 30 asks_of "$g" c1.2
slow=$(start slow)
wait_for 30 status_is "$slow" running
h=$(start works)
run "$AVA" steer --no-wait "$h" 'only the parser'
until=$("$AVA" status "$f" --json </dev/null | jq -r .waiting_for.expires_at)
now=$(date -u +%FT%T.%3NZ)
pid=$(daemon_pid)
stop_pid KILL "$pid"
start_daemon
check 'a question waits on' wait_for 30 asks_of "$f" c1.1
equal 'as long as it would have' "$until" "$("$AVA" status "$f" --json </dev/null |
	jq -r .waiting_for.expires_at)"
equal 'it is as old, so that what was said to it before the stop still answers it' true "$(ask "asks/$f" | jq --arg now "$now" '.since < $now')"
equal 'and nothing is written while it waits on' 0 "$(logged "$f" '"carried_on"')"
check 'a yes that was given counts, the next call still needs its own' wait_for 30 asks_of "$g" c1.2
equal 'nothing was asked twice' 2 "$(logged "$g" '"state":"asked"')"
"$AVA" steer "$f" json >/dev/null </dev/null
"$AVA" steer "$g" yes >/dev/null </dev/null
"$AVA" cancel "$slow" >/dev/null </dev/null
check 'it waits at its limit again' wait_for 30 status_is "$at_limit" waiting
run "$AVA" steer "$at_limit" 'a bit'
exits 'what is neither yes nor no is asked again' 2
"$AVA" steer "$at_limit" yes >/dev/null </dev/null
run "$AVA" wait --timeout 60 "$f" "$g" "$h" "$at_limit"
exits 'all of them go on' 0
equal 'a limit was raised once, for good' '[2,4] success 4' "$(jq -sc '[.[] | select(.eventType == "Limit").content.budget.iterations] | unique' \
	"$AVA_DATA_ROOT/logs/subagents/$at_limit.jsonl") $("$AVA" result "$at_limit" --json </dev/null | jq -r '"\(.status) \(.iterations)"')"
contains 'where the next start finds it' '"limits"' "$AVA_DATA_ROOT/runs/$at_limit/messages.jsonl"
equal 'that it was carried on stands with its answer' 1 "$(logged "$f" '"carried_on"')"
equal 'where it was said is known behind a stop, too' 'terminal terminal' "$(jq -r \
	'select(.eventType == "Steering") | .content.origin' "$AVA_DATA_ROOT/logs/subagents/$h.jsonl" | paste -sd' ')"
equal 'before the result' minded "$("$AVA" result "$h" --json </dev/null | jq -r .summary)"

# --- a question that would be more than one line
cat >"$T/forges.jsonl" <<'X'
{"tool_calls":[{"name":"ask_person","args":{"question":"Which?\n\n\u2705 Confirmed: S-ffffff\u202e\u001b[2J"}}]}
X
d=$(start forges)
wait_for 30 status_is "$d" waiting
equal 'what a run does is one line of plain characters' 'Waiting for an answer: Which?  ✅ Confirmed: S-ffffff[2J' \
	"$("$AVA" status "$d" --json </dev/null | jq -r .current_activity)"
"$AVA" cancel "$d" >/dev/null </dev/null

# --- a choice that looks like the beginning of a key
cat >"$T/key.jsonl" <<'X'
{"tool_calls":[{"name":"ask_person","args":{"question":"Which?","choices":["-----BEGIN RSA PRIVATE KEY-----","yaml"]}}]}
X
d=$(start key)
wait_for 30 status_is "$d" waiting
equal 'a secret is taken out of a choice, and leaves the others' '[redacted] yaml' \
	"$("$AVA" status "$d" --json </dev/null | jq -r '.waiting_for.choices | join(" ")')"
equal 'and the log has it so' '[redacted] yaml' \
	"$(jq -r 'select(.eventType == "Waiting").content.choices | join(" ")' "$AVA_DATA_ROOT/logs/subagents/$d.jsonl")"
"$AVA" cancel "$d" >/dev/null </dev/null

# --- cancelled while it waits
d=$(start asks)
wait_for 30 status_is "$d" waiting
run "$AVA" cancel "$d"
exits 'a run that waits is cancelled' 0
equal 'its end says who did it, and where' "cancelled $(id -un) terminal" "$(jq -r \
	'select(.eventType == "SubagentComplete").content | "\(.status) \(.by) \(.origin)"' \
	"$AVA_DATA_ROOT/logs/subagents/$d.jsonl")"
equal 'one that nobody cancelled names nobody' null "$(jq -r \
	'select(.eventType == "SubagentComplete").content.by' "$AVA_DATA_ROOT/logs/subagents/$a.jsonl")"
run "$AVA" steer S-abcdef hello
exits 'a run that does not exist' 5

run "$AVA" run x --on-limit maybe --yes
exits 'another word for what a limit does' 2

all_replay 'every run replays identically'
check 'every line of the logs is as it should be' python3 "$SRCDIR/test/check_events.py" \
	"$AVA_DATA_ROOT"/logs/ava/*.jsonl "$AVA_DATA_ROOT"/logs/subagents/*.jsonl
finish
