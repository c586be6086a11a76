#!/bin/sh
# A conversation with Ava on a terminal (test_chat.py is the person and the
# terminal) and over a pipe.
. "${0%/*}/lib.sh"
command -v python3 >/dev/null || skip 'no python3'
command -v jq >/dev/null || skip 'no jq'

mkdir "$T/work"
cd "$T/work" || exit 99
printf 'int parse_header(int a)\n{\n\treturn a;\n}\n' >a.c

# --- over a pipe

ask() { printf '%b' "$1" >"$T/in"; shift; run "$AVA" "$@" <"$T/in"; }

run "$AVA" </dev/null
exits 'no terminal and no input' 2
contains 'is told' 'ava: chat: nothing was said' "$ERR"
ask 'Find where parse_header is decided\nyes\nlist\n'
exits 'each line of a pipe is a message' 0
contains 'the quote' "I'll spawn a CodeReviewer subagent to find where parse_header is decided." "$OUT"
contains 'the start' '🔍 [CodeReviewer] Starting...' "$OUT"
contains 'the spawn' '🚀 Spawning CodeReviewer subagent (S-' "$OUT"
check 'what her own calls cost is in the log as theirs is' \
	sh -c 'for who in ava S-; do "$AVA" logs --type costs -n 99 -o json | grep -q "\"agentId\":\"$who" || exit 1; done'
contains 'the end of it' '✅ Subagent [CodeReviewer]: Complete (' "$OUT"
contains 'and the result, waited for' 'a.c:1' "$OUT"
equal 'no escapes' 0 "$(grep -c "$(printf '\033')" "$OUT")"
equal 'in this order' 'Proceed Spawning Complete From S-' \
	"$(grep -oE 'Proceed|Spawning|Complete|From S-' "$OUT" | uniq |
		tr '\n' ' ' | sed 's/ $//')"
ask 'hello\n/status\n/quit\nnever said\n' -c
exits 'a conversation goes on over a pipe' 0
contains 'with what was said last' 'You: list' "$OUT"
ask 'my key is sk-ant-api03-abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijAA, ok\n' -c
lacks 'what the log does not keep of a message does not come back as said elsewhere' 'elsewhere' "$OUT"
ask 'hello\n/status\n/quit\nnever said\n' -c
contains 'commands work' 'No subagent is at work in this conversation.' "$OUT"
ask 'hello\nquit\nnever said\n' -c
exits 'quit leaves without a slash' 0
printf '{"text":"Well."}\n' >"$T/well.jsonl"
ask "/model nope/none\n/model offline:$T/well.jsonl\n/model\n/quit\n" -c
contains 'a model that is none is told' 'nope/none' "$OUT"
contains 'another one can be chosen' "Ava goes on with offline:$T/well.jsonl." "$OUT"
check 'and /model lists those that can be' grep -qx offline "$OUT"
ask '/quit\n' -c --model offline
exits 'or when it is gone on with' 0
stop_daemon
ask '/status\n/cost\n/quit\n' -c
contains 'a conversation taken up again still has its model' ', model offline.' "$OUT"
check 'and what Ava has cost before' grep -qE '^Ava: \$0.00, [0-9.]+k tokens\.$' "$OUT"
ask 'review a.c for leaks\nresearch the headers\n/status\nno to all\n/quit\n' -c
check '/status names the quotes that wait' grep -qE '^Quote 1 \(P-[0-9a-f]+\): I.ll spawn a CodeReviewer subagent to review a.c for leaks' "$OUT"
check 'each with its number' grep -qE '^Quote 2 \(P-[0-9a-f]+\): I.ll spawn a Researcher subagent to research the headers' "$OUT"
ask '/logs\n/quit\n' -c
contains '/logs without an id is the newest run' '] SubagentComplete S-' "$OUT"
ask '/logs\n/quit\n'
contains 'where none has run that is told' 'No subagent has run in this conversation.' "$OUT"
ask 'How are you?\nstop S-aaaaaaaa\n' -c
contains 'conversation needs a model' 'For conversation set a key or a local server' "$OUT"
contains 'a run that never was is told' 'That did not work' "$OUT"
equal 'what stands behind /quit is not said' 0 "$(grep -rc 'never said' "$AVA_DATA_ROOT/sessions" |
	awk -F: '{n += $2} END {print n}')"
ask 'Find where parse_header is decided, again\n/quit\n'
exits 'somebody leaves before the answer' 0
check 'which is given elsewhere' "$AVA" confirm "$("$AVA" proposals --json | jq -r '.[0].proposal_id')"
check 'the run ends' wait_for 60 sh -c '"$AVA" ps --json | grep -qx "\[\]"'
told() { grep -rhc 'From S-' "$AVA_DATA_ROOT/sessions" | awk '{n += $1} END {exit n < 4}'; }
check 'and Ava tells it to nobody' wait_for 60 told
ask '/quit\n' -c
contains 'whoever comes next is told' '1 run finished, 1 message while you were away' "$OUT"
contains 'and reads what she said' 'From S-' "$OUT"
ask '/quit\n' -c
lacks 'once' 'while you were away' "$OUT"
contains 'after that it is what was said last' 'From S-' "$OUT"
ask 'x\n' -c 00000000-0000-4000-8000-000000000000
exits 'there is no such conversation' 5
ask 'x\n' -c nonsense
exits 'that is no id' 2
mkdir "$T/other"
cd "$T/other" || exit 99
ask 'x\n' -c
exits 'a folder without a conversation' 5
cd "$T/work" || exit 99
ask 'x\n' chat --bad
exits 'a wrong option' 2
kill_daemon
rm -rf "$AVA_DATA_ROOT"

# --- on a terminal

own_clock # for a terminal that is preloaded with it
play "$LIB/test_chat.py"
finish
