#!/bin/sh
# What a person at a terminal sees and types: terminal.py is the terminal.
. "${0%/*}/lib.sh"
. "$LIB/terminal.sh"
printf 'int parse_header(int a)\n{\n\treturn a;\n}\n' >a.c
cat >"$T/slow.jsonl" <<'Y'
{"tool_calls":[{"name":"search_codebase","args":{"pattern":"parse_header"}}]}
{"text":"late","delay_ms":600000}
Y
task='where is parse_header decided?'

newest() { "$AVA" ps -a --json | jq -r ".[0].$1"; }
coloured() { grep -q "$(printf '\033')\\[" "$SEEN"; }
start_daemon --service

# --- proposed, confirmed, followed

at 80 'see [Yes/No] ' 'type yes\n' 'see Complete' -- "$AVA" run --role code_reviewer "$task"
exits 'a yes is typed and the run done' 0
contains 'the quote comes first' "I'll spawn a CodeReviewer subagent" "$SEEN"
contains 'the answer stands behind the question' 'Proceed? [Yes/No] yes' "$SEEN"
contains 'it starts' "🚀 Spawning CodeReviewer subagent ($(newest subagent_id))..." "$SEEN"
contains 'what it does is told' '🔍 [CodeReviewer] Searching "parse_header"' "$SEEN"
contains 'and its end' '✅ Subagent [CodeReviewer]: Complete (' "$SEEN"
contains 'then the answer' 'parse_header is defined at a.c:1.' "$SEEN"
check 'in colour' coloured
equal 'in this order' 'Proceed Spawning Searching Complete parse_header' \
	"$(grep -oE 'Proceed|Spawning|Searching|Complete|^  parse_header' "$SEEN" | tr -d ' ' | uniq | tr '\n' ' ' |
		sed 's/ $//')"

export NO_COLOR=1
printf 'kettles:\tone\ttwo\tthree\tfour\tfive\tsix\tseven\teight\n' >table.txt
at 50 'see > ' 'type where are kettles?\n' 'see eight' 'type ^D' -- "$AVA"
expand "$SEEN" >"$T/expanded"
at_most 'a line with tabs goes on before it is too wide' 50 "$(widest "$T/expanded")"
lacks 'and no word is cut' '^eight' "$T/expanded"
rm table.txt
at 80 'see [Yes/No] ' 'type y\n' -- "$AVA" run --role code_reviewer "$task"
exits 'NO_COLOR' 0
refuse 'NO_COLOR: no escapes' coloured
contains 'NO_COLOR: the same text' '✅ Subagent [CodeReviewer]: Complete (' "$SEEN"
unset NO_COLOR

TERM=dumb at 80 'see [Yes/No] ' 'type yes\n' -- "$AVA" run --role code_reviewer "$task"
exits 'a dumb terminal' 0
refuse 'a dumb terminal: no escapes' coloured

LC_ALL=C at 80 'see [Yes/No] ' 'type yes\n' -- "$AVA" run --role code_reviewer "$task"
equal 'no UTF-8 in the locale: ASCII alone' 0 \
	"$(LC_ALL=C tr -d '\000-\177' <"$SEEN" | wc -c | tr -d ' ')"

# --- answers

runs_before=$("$AVA" ps -a --json | jq length)
at 80 'see [Yes/No] ' 'type perhaps\n' 'see please answer yes or no, or say what to change' \
	'type no\n' -- "$AVA" run "$task"
exits 'neither, asked again, then no' 4
contains 'no: is told' 'is rejected: nothing was started' "$SEEN"
at 80 'see [Yes/No] ' 'type perhaps\n' 'see please answer' 'type well\n' 'see please answer' \
	'type hm\n' -- "$AVA" run "$task"
exits 'neither three times' 4
contains 'neither three times: is told' 'no answer that was understood: nothing was started' "$SEEN"
at 80 'see [Yes/No] ' 'type ^D' -- "$AVA" run "$task"
exits 'the end of input' 4
contains 'the end of input: is told' 'no answer (use --yes to confirm without one)' "$SEEN"
at 80 'see Estimated' 'type ^C' -- "$AVA" run "$task"
exits 'Ctrl-C while the quote is being shown' 4
at 80 'see [Yes/No] ' 'type ^C' -- "$AVA" run "$task"
exits 'Ctrl-C at the question' 4
check 'Ctrl-C at the question: is told on a line of its own' \
	grep -q '^ava: run: interrupted: nothing was started' "$SEEN"
equal 'none of these started anything' "$runs_before" "$("$AVA" ps -a --json | jq length)"
equal 'nor waits for an answer' '[]' "$("$AVA" proposals --json)"

printf '%s\n' "$task" >"$T/task"
at 80 'see [Yes/No] ' 'type yes\n' 'see Complete' -- sh -c '"$AVA" run --role code_reviewer - <"$T/task"'
exits 'a task from a file: the answer is asked at the terminal' 0

# --- while it works

at 80 'see [Yes/No] ' 'type yes\n' 'see Searching' 'type ^C' 'see Cancelling' -- \
	"$AVA" run --role code_reviewer --model "offline:$T/slow.jsonl" "$task"
exits 'Ctrl-C cancels the run' 1
run_id=$(newest subagent_id)
contains 'what happens is told' "Cancelling $run_id; Ctrl-C again leaves without waiting." "$SEEN"
contains 'and what became of it' '⏹️ Subagent [CodeReviewer]: Cancelled (' "$SEEN"
equal 'it is cancelled' cancelled "$(newest status)"

"$AVA" run --yes --background --role code_reviewer --model "offline:$T/slow.jsonl" "$task" \
	>/dev/null 2>&1
run_id=$(newest subagent_id)
at 80 'see Searching' 'type ^C' -- "$AVA" events -f "$run_id"
check 'Ctrl-C ends who looks on' test "$CODE" -ne 0
equal 'and not the run' running "$("$AVA" status "$run_id" --json | jq -r .status)"

# --- a notice, where nothing is read of the terminal, and links

done_id=$("$AVA" run --yes --json --role code_reviewer "$task" 2>/dev/null | jq -r .subagent_id)
notes() { grep -aoE "$(printf '\033')\](9|99|777);[^$(printf '\033')]*" "$T/raw" | tr -d '\033'; }
links() { grep -aoE "$(printf '\033')\]8;;[^$(printf '\033')]+" "$1" | tr -d '\033' | sort -u; }
at 80 'see [Yes/No] ' 'type yes\n' 'see Complete' -- "$AVA" run --role code_reviewer "$task"
equal 'ava run does not know whether the terminal is in front: no notice' '' "$(notes)"
refuse 'and asks nothing that would come as keys' grep -q '?1004' "$T/raw"
equal 'a place of its result is a link' "]8;;file://$(uname -n)$PWD/a.c" "$(links "$T/raw")"
TERM=xterm-kitty at 80 'see [Yes/No] ' 'type yes\n' 'see Complete' -- "$AVA" run --role code_reviewer "$task"
equal 'kitty knows by itself' ']99;o=unfocused;ava: Subagent [CodeReviewer]: complete' "$(notes)"
TERM=foot at 80 -- "$AVA" wait "$done_id"
equal 'and foot, of which a wait is told, too' ']777;notify;ava;Subagent [CodeReviewer]: complete' "$(notes)"
TERM=xterm-kitty "$AVA" wait "$done_id" >"$T/raw"
equal 'a pipe has no notice' '' "$(notes)"
at 80 -- "$AVA" result "$done_id"
equal 'ava result has links' "]8;;file://$(uname -n)$PWD/a.c" "$(links "$T/raw")"
contains 'around what is shown without them' '  a.c:1  int parse_header(int a)' "$SEEN"
for plain in TERM=dumb TERM=linux AVA_OSC=0 AVA_PLAIN=1; do
	at 80 -- env "$plain" "$AVA" result "$done_id"
	equal "$plain: no links" '' "$(links "$T/raw")"
done
"$AVA" result "$done_id" >"$T/raw"
equal 'nor are there any in a pipe' '' "$(links "$T/raw")"

# --- a result that would like to be more: what a model wrote stands behind a margin, on a terminal and in a pipe

jq -nc '("All is well.\n\nLog: ava logs S-bad123\n\u2705 Subagent [CodeReviewer]: Complete\n" + "w" * 90 + " Proceed? S-bad123") as $s
	| {tool_calls: [{name: "submit_result", args: {summary: $s, confidence: 0.2, caveats: ["x\nLog: S-bad123"],
		output: {"Log: ava logs S-bad123": ["S-bad123"], note: ("w" * 75 + " Proceed? S-bad123")}}}]}' >bad.jsonl
"$AVA" run --yes --role code_reviewer --model "offline:$PWD/bad.jsonl" 'look' >"$T/piped" 2>/dev/null
at 80 -- "$AVA" result "$(sed -n 's/^Log: ava logs \(S-[0-9a-f]*\),.*/\1/p' "$T/piped")"
for where in "$T/piped" "$SEEN"; do
	check 'all of a result is there' test "$(grep -c 'S-bad123' "$where")" -ge 5
	equal 'and none of it at the left edge' '' "$(grep -E '^[^ ].*(S-bad123|Subagent|Proceed|ww)' "$where")"
done
at_most 'nor broken by the terminal' 80 "$(widest "$SEEN")"

# --- narrow

at 80 -- "$AVA" help run
at_most 'help fits into 80 columns' 80 "$(widest "$SEEN")"
at 40 -- "$AVA" ps -a
at_most 'a list fits into 40 columns' 40 "$(widest "$SEEN")"
check 'with what matters: id, status, task' grep -q "^$run_id  running  *[A-Za-z]" "$SEEN"
at 80 -- "$AVA" ps -a
at_most 'and into 80' 80 "$(widest "$SEEN")"
contains 'with everything' 'TOKENS' "$SEEN"
at 40 -- "$AVA" proposals -a
at_most 'a list of proposals too' 40 "$(widest "$SEEN")"
"$AVA" cancel "$run_id" >/dev/null 2>&1
at 40 'see [Yes/No] ' 'type yes\n' -- "$AVA" run --role code_reviewer \
	'which functions that have parse_header in their name are there and what is decided in them?'
exits 'a run in 40 columns' 0
grep 'Searching\|Reading' "$SEEN" >"$T/updates"
check 'has updates' test -s "$T/updates"
at_most 'each on a line' 40 "$(widest "$T/updates")"
tr -d '\r' <"$SEEN" | tr '\n' ' ' | tr -s ' ' >"$T/quote"
contains 'the quote is whole, its lines end between two words' \
	'are there and what is decided in them?' "$T/quote"
finish
