#!/bin/sh
# The text of a run's model as it comes: frames of its event stream, for whoever asks for them.
. "${0%/*}/lib.sh"
. "$LIB/models.sh"
models turns=1 tool=ask_person 'args={"question":"Which kettle?"}' 'text="The blue one stands on the shelf."'
command -v jq >/dev/null || skip 'no jq'
start_daemon || { result 1 'avad serves' || finish; }
TEXT='The blue one stands on the shelf.'

begin() { "$AVA" run "$1" --model anthropic/claude-haiku-4-5 --role researcher --yes --background --json 2>/dev/null </dev/null |
	jq -r .subagent_id; }
# watch NAME RUN QUERY: its stream, in $T/NAME.
watch()
{
	curl -sN --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/v1/runs/$2/events?$3" >"$T/$1" &
	keep $!
}
# texts NAME: what the frames say, "|" where it begins anew.
texts() { sed -n '/^event: text/{n;s/^data: //p;}' "$T/$1" | jq -rj 'if .text == "" then "|" else .text end'; }
# doing RUN JQ: its status passes.
doing() { "$AVA" status "$1" --json | jq -e "$2" >/dev/null; }

# --- each attempt begins anew; only who asked for the text gets it
one=$(begin 'Ask me. [[mock fault=cut:900@1]]')
check 'a run asks' wait_for 20 doing "$one" '.status == "waiting"'
watch with "$one" text=1
watch without "$one" text=0
check 'its stream is there' wait_for 10 grep -q '"state":"asked"' "$T/with"
check 'and the other' wait_for 10 grep -q '"state":"asked"' "$T/without"
equal 'what was said before is not told again' '' "$(texts with)"
run "$AVA" steer "$one" blue
check 'it ends, and so does its stream' wait_for 20 grep -q '^event: SubagentComplete' "$T/with"
equal 'two attempts, two beginnings' 2 "$(texts with | tr -dc '|' | wc -c)"
equal 'and the text of the one that counts' "$TEXT" "$(texts with | sed 's/.*|//')"
contains 'they name the run' "data: {\"runId\":\"$one\",\"text\":\"" "$T/with"
check 'the other ends, too' wait_for 20 grep -q '^event: SubagentComplete' "$T/without"
lacks 'and has no such frames' '^event: text' "$T/without"
refuse 'none is stored' grep -q '"event: text' "$AVA_DATA_ROOT/logs/subagents/$one.jsonl"

# --- who comes late gets what was said so far, and so does the next one
two=$(begin 'Say it and fall silent. [[mock fault=stall:1500x*]]')
check 'a reply is under way' wait_for 20 doing "$two" '.progress | test("has written")'
watch late "$two" text=1
# so_far NAME TIMES: it has the thinking and the first words, and began so often.
so_far()
{
	so_far=$(texts "$1")
	[ "$(printf %s "$so_far" | tr -dc '|' | wc -c)" = "$2" ] && [ -n "${so_far##*|}" ] &&
		grep -q '^event: thinking' "$T/$1" && [ "$TEXT" != "${TEXT#"${so_far##*|}"}" ]
}
check 'who comes late gets all of it' wait_for 10 so_far late 1
watch later "$two" text=1
check 'the next one, too' wait_for 10 so_far later 1
check 'and for the first it begins anew' wait_for 10 so_far late 2
"$AVA" cancel "$two" >/dev/null 2>&1
check 'their streams end' wait_for 20 grep -q '^event: SubagentComplete' "$T/later"
finish
