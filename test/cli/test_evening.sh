#!/bin/sh
# A person's first evening with a key: a service that is not there, a key that is wrong, right, and
# changed, and a pipe that hears at once. `ava` starts the daemon itself, as for a person.
. "${0%/*}/lib.sh"
. "$LIB/models.sh"
models turns=1 --log "$T/log"
mkdir -p "$XDG_CONFIG_HOME/ava"
echo 'models: {list: [{id: openai/tea-1, alias: tea, context: 64000, prices: {input: 1, output: 2}}]}' >"$XDG_CONFIG_HOME/ava/config.yaml"
mkdir "$T/work"
cd "$T/work" || exit 99
echo text >a.txt

# talk NAME: a conversation over a pipe that stays open; what it says in $T/NAME.out.
talk()
{
	rm -f "$T/said"
	mkfifo "$T/said"
	LD_PRELOAD=${CLOCK:-} "$AVA" <"$T/said" >"$T/$1.out" 2>&1 &
	TALK=$!
	keep $TALK
	exec 7>"$T/said"
}
says() { grep -q -- "$1" "$T/$talk_name.out"; }
say() { echo "$1" >&7; }
leave() { exec 7>&-; wait "$TALK"; }
talking() { talk_name=$1 && talk "$1"; }

# --- no key, the first one, another one -------------------------------------------------
good=$ANTHROPIC_API_KEY
unset ANTHROPIC_API_KEY OPENAI_API_KEY OPENROUTER_API_KEY AVA_LOCAL_BASE_URL
echo hello | "$AVA" >"$OUT" 2>&1
check 'without a key there is an answer' [ -s "$OUT" ]
first=$("$AVA" doctor --json | jq .avad_pid)
export ANTHROPIC_API_KEY=bad-key-0123456789
echo hello | "$AVA" >"$OUT" 2>&1
contains 'a wrong key is taken, and refused' 'anthropic refused the key (401)' "$OUT"
contains 'with what to do' 'set a valid ANTHROPIC_API_KEY, then `ava restart`, and say it again' "$OUT"
lacks 'and no word of processes' 'kill' "$OUT"
export ANTHROPIC_API_KEY=$good OPENAI_API_KEY=$good
echo hello | "$AVA" >"$OUT" 2>&1
lacks 'the right one too, without a command' 'refused the key' "$OUT"
contains 'and Ava answers' 'Ava: ' "$OUT"
second=$("$AVA" doctor --json | jq .avad_pid)
check 'by another daemon' [ "$first" != "$second" ]
contains 'who knows the models of the person' '; tea ' "$T/log"
run "$AVA" run --role custom --yes 'x'
exits 'a role that there is not' 2
contains 'and how to make one' "one of your own is a file: $XDG_CONFIG_HOME/ava/agents/<name>.md (doc/ROLES.md)" "$ERR"

# --- at work it keeps its key, and says so ----------------------------------------------
rules '{"first":"look_long","play":"first=60000"}'
"$AVA" run 'look_long at a.txt' --role code_reviewer --yes --background >"$T/id" 2>&1
run_id=$(grep -o 'S-[0-9a-f]*' "$T/id" | head -n 1)
ANTHROPIC_API_KEY=other-key-0123456789 "$AVA" sessions >"$OUT" 2>"$ERR"
contains 'a busy one is left alone' 'is at work; `ava restart` starts one with yours' "$ERR"
equal 'and goes on' "$second" "$("$AVA" doctor --json | jq .avad_pid)"
run "$AVA" restart --now --json
exits 'restart, at once' 0
check 'is another process' [ "$(jq .pid "$OUT")" != "$second" ]
check 'and the run goes on' wait_for 20 sh -c "\"$AVA\" ps -a --json | grep -q $run_id"
run "$AVA" cancel all --yes
exits 'cancel all, as in a conversation' 0
run "$AVA" stop
exits 'stop' 0
contains 'says so' 'has stopped' "$OUT"
run "$AVA" stop --json
exits 'none is no failure' 0
equal 'and told' '{"stopped":false,"pid":0}' "$(cat "$OUT")"
run "$AVA" stop now
exits 'a word too many' 2

# --- a pipe hears at once, and whose line it is -------------------------------------------
rules '{"first":"go","play":"turns=1 tool=spawn_parallel args={\"runs\":[{\"role\":\"code_reviewer\",\"task\":\"read_slowly_1\"},{\"role\":\"code_reviewer\",\"task\":\"read_slowly_2\"}]}"},
	{"first":"read_slowly","play":"turns=20 latency=2000 tool=read_file args={\"path\":\"a.txt\"}"}'
talking pipe
say go
check 'a quote' wait_for 20 says 'Proceed?'
say yes
check 'what a run does comes while nothing is said' wait_for 30 says 'CodeReviewer S-[0-9a-f]*\] Reading a.txt'
equal 'two of a role have their ids' 2 "$(grep -o 'CodeReviewer S-[0-9a-f]*\] Starting' "$T/pipe.out" | sort -u | wc -l)"
say '/cancel all'
check 'at their ends too' wait_for 30 says 'Subagent \[CodeReviewer S-[0-9a-f]*\]'
leave
"$AVA" stop >/dev/null 2>&1

# --- a service that cannot be reached -----------------------------------------------------
export ANTHROPIC_BASE_URL=http://127.0.0.1:9
own_clock
start_daemon || { result 1 'avad serves' || finish; }
talking dead
say hello
check 'what she waits for is told at once' wait_for 10 says 'nothing answers at http://127.0.0.1:9, trying again (Ctrl-C stops)'
check 'she gives up after a minute' skip_until 100 says 'Ava cannot answer: nothing answers at'
leave
at_most 'and not later' 90 $((clock_ms / 1000))
export AVA_MODELS_FALLBACK=openai/gpt-5-mini
stop_daemon
start_daemon || { result 1 'avad serves' || finish; }
talking other
say 'hello there'
check 'another service takes its place' skip_until 30 says 'does not answer: going on with openai/gpt-5-mini'
check 'and answers' skip_until 30 says '^Ava: '
leave

finish
