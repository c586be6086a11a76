#!/bin/sh
# ava memory, and a conversation that remembers: what is noted is there after kill -9 and known
# in the next conversation, what is removed is gone from the file, subagents read and never
# write, a run that read replays, and a damaged file stands in nobody's way.
. "${0%/*}/lib.sh"

mkdir "$T/src"
cd "$T/src" || exit 99
# ava_says REPLY...: what the model of the next conversation says. say WORDS...: a conversation.
ava_says() { printf '%s\n' "$@" >"$T/ava.jsonl"; }
say() { printf '%s\n' "$@" | run "$AVA" --model "offline:$T/ava.jsonl"; }
call() { printf '{"tool_calls":[{"name":"%s","args":{"%s":"%s"}}]}' "$1" "$2" "$3"; }
ids() { "$AVA" memory list --json "$@" | jq -r '.[].id'; }
in_file() { cat "$AVA_DATA_ROOT"/memory.db* | grep -aqiF "$1"; }

run "$AVA" help memory
contains 'help says how to remove' 'rm M-id' "$OUT"
run "$AVA" memory
exits 'nothing is remembered, which is no error' 0
contains 'and says what to do' 'remember that' "$OUT"
refuse 'looking makes no file' test -e "$AVA_DATA_ROOT/memory.db"

# --- by command
run "$AVA" memory add I prefer tea over coffee --tag drinks
exits 'something is added' 0
contains 'and shown' '): I prefer tea over coffee' "$OUT"
equal 'its file is mine alone' 600 "$(stat -c %a "$AVA_DATA_ROOT/memory.db")"
run "$AVA" memory add 'i prefer TEA, over coffee'
contains 'the same again is the same' 'Changed (M-' "$OUT"
"$AVA" memory add --here 'the API talks JSON' >/dev/null
equal 'two rows, one about this folder' "project $T/src,person " \
	"$("$AVA" memory list --json | jq -r '[.[] | "\(.kind) \(.cwd)"] | join(",")')"
equal 'elsewhere that one is not found' 1 "$(cd / && ids --here | wc -l)"
run "$AVA" memory search "'; DROP TABLE memory; tea" --json
equal 'words are words' 1 "$(jq length "$OUT")"
long=$(printf 'cup%.0s' $(seq 100))
equal 'no word of a long text is lost' 1 "$("$AVA" memory search "$long tea" --json | jq length)"
run "$AVA" memory search "$(printf 'a&b%.0s' $(seq 3000))"
exits 'more than the daemon takes is a usage error' 2
contains 'which says what to do' 'too long for the daemon: ask with fewer words' "$ERR"
run "$AVA" memory search rabbits
exits 'nothing found is no error' 0
contains 'and is said' 'Nothing that is remembered has these words' "$OUT"
tea=$("$AVA" memory search tea --json | jq -r '.[0].id')
run "$AVA" memory edit "$tea" I prefer green tea --pin
contains 'edited' "Changed ($tea): I prefer green tea" "$OUT"
run "$AVA" memory export
equal 'the export is a line of JSON a row' 'true edited' \
	"$(jq -r 'select(.id == "'"$tea"'") | "\(.pinned) \(.source.how)"' "$OUT")"
run "$AVA" memory add 'my key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH'
exits 'a key is refused' 1
contains 'and why is said' 'key or password' "$ERR"
run "$AVA" memory rm M-000000
exits 'no such memory' 5
run "$AVA" memory rm
exits 'rm wants an id' 2
run "$AVA" memory rm --all </dev/null
exits 'all only with a yes' 4
run "$AVA" memory add --kind rumour x
exits 'an unknown kind is a usage error' 2

# --- in a conversation
well='{"text":"Well."}'
ava_says "$(call memory_write text 'my cat is called Minka')" "$well"
say 'Please remember that my cat is called Minka.'
contains 'what is noted is shown' 'Noted: my cat is called Minka (M-' "$OUT"
cat=$("$AVA" memory search minka --json | jq -r '.[0].id')
check 'it is killed' kill_daemon
ava_says "$(call memory_search query cat)" "$well"
say 'what do you know about my cat?'
check 'the next conversation is told it, after a kill -9' sh -c \
	'grep -h "told you in earlier" "$AVA_DATA_ROOT"/sessions/*/*.messages.jsonl | grep -q Minka'
day=$(cat "$AVA_DATA_ROOT"/logs/ava/*.jsonl)
equal 'its events name it once' 1 "$(printf '%s\n' "$day" | grep '"StateWrite"' | grep -c "$cat")"
check 'and that it was read' sh -c 'grep -h StateRead "$1"/logs/ava/*.jsonl | grep -q "$2"' - \
	"$AVA_DATA_ROOT" "$cat"
equal 'without the words' 0 "$(printf '%s\n' "$day" | grep -c '"State.*Minka')"
in_file minka
result $? 'the words stand in the file'
ava_says "$(call memory_write forget "$cat")" "$well" "$well"
say 'forget what I told you about my cat
yes'
contains 'forgotten is said' "Forgotten ($cat)" "$OUT"
refuse 'and gone from the file, index and all' in_file minka
run "$AVA" memory search minka --json
equal 'and from the list' '[]' "$(cat "$OUT")"

# --- a subagent
printf '%s\n' '{"tool_calls":[{"name":"memory_search","args":{"query":"tea"}}]}' \
	'{"tool_calls":[{"name":"memory_write","args":{"text":"I like spam"}}]}' \
	'{"tool_calls":[{"name":"submit_result","args":{"output":null,"summary":"done","confidence":1}}]}' \
	>"$T/agent.jsonl"
agent=$("$AVA" run 'which drink' --model "offline:$T/agent.jsonl" --yes --json </dev/null 2>"$ERR" |
	jq -r .subagent_id)
log=$AVA_DATA_ROOT/logs/subagents/$agent.jsonl
contains 'a subagent finds it' 'I prefer green tea' "$log"
contains 'which is an event of its own' "\"StateRead\",\"agentId\":\"$agent\"" "$log"
equal 'it cannot write' '[]' "$("$AVA" memory search spam --json)"
all_replay 'its run replays without the memory'

# --- a damaged file
stop_daemon
printf 'rubbish, rubbish' | dd of="$AVA_DATA_ROOT/memory.db" conv=notrunc 2>/dev/null
run "$AVA" memory
exits 'a damaged file is an error' 1
contains 'that says what to do' 'ava memory reset' "$ERR"
ava_says "$well"
say 'what can you do?'
contains 'the conversation goes on' 'Well.' "$OUT"
run "$AVA" memory reset
exits 'it is set aside' 0
check 'and kept' test -s "$AVA_DATA_ROOT/memory.db.broken"
run "$AVA" memory add anew
exits 'a new one is begun' 0
run "$AVA" memory rm --all --yes
equal 'all is removed' '' "$(ids)"
finish
