#!/bin/sh
# The real Claude Code with our hooks: its settings.json stays its own, and of three agents, each
# spawned by the one before, the cards, the log and the page say what Claude Code's own transcripts
# say. No account: mock-models plays what each says. Expects PEER_MODULES, the folder of its
# node_modules; CHROMIUM for the page (tree.mjs).
SRCDIR=${SRCDIR:-$(cd "${0%/*}/../../.." && pwd)}
. "${0%/*}/../../cli/lib.sh"
: "${MOCK:=${AVAD%/src/gateway/avad}/test/mock/mock-models}"
[ -x "$MOCK" ] || skip "mock-models is not built: $MOCK"
claude=$(ls "${PEER_MODULES:-/none}"/node_modules/@anthropic-ai/claude-code-linux-*/claude 2>/dev/null | head -n 1)
"${claude:-/none}" --version >/dev/null 2>&1 || skip 'there is no Claude Code for this machine'

export CLAUDE_CONFIG_DIR="$T/claude"
settings=$CLAUDE_CONFIG_DIR/settings.json
session=5e550000-0000-4000-8000-000000000001
cards=$CLAUDE_CONFIG_DIR/agent-activity/$session
mkdir "$CLAUDE_CONFIG_DIR" "$T/tree"
echo 'int kettle_boil(void);' >"$T/tree/kettle.h"

# What each of the four says: three spawn one and tell what came of it, the last one waits until it
# may end.
spawns() # FILE DESCRIPTION PROMPT TYPE
{
	jq -nc --arg d "$2" --arg p "$3" --arg t "$4" '{text: "I send one.",
		tool_calls: [{name: "Agent", args: {description: $d, prompt: $p, subagent_type: $t}}]}' >"$T/$1.jsonl"
}
says() { jq -nc --arg text "$2" '{text: $text}' >>"$T/$1.jsonl"; }
spawns zero 'Survey the kettle' 'DEPTH-ONE: survey the kettle' general-purpose
says zero 'It is on its way.'
says zero 'The kettle boils.'
spawns one 'Look at the lid' 'DEPTH-TWO: look at the lid' general-purpose
says one 'The lid is on.'
spawns two 'Find the handle' 'DEPTH-THREE: find the handle' Explore
says two 'The handle is there.'
jq -nc --arg c "until [ -e $T/go ]; do sleep 0.1; done; cat kettle.h" \
	'{text: "I look.", tool_calls: [{name: "Bash", args: {command: $c}}]}' >"$T/three.jsonl"
says three 'It is **black**: kettle.h:1'
jq -nc --arg t "$T" '{rules: [["ZERO", "zero"], ["ONE", "one"], ["TWO", "two"], ["THREE", "three"] |
	{first: "DEPTH-\(.[0])", play: "script=\($t)/\(.[1]).jsonl"}]}' >"$T/rules.json"
"$MOCK" --quiet --rules "$T/rules.json" text=ok >"$T/mock.out" 2>&1 &
keep $!
wait_for 10 grep -q ready "$T/mock.out"

claude() # nothing of the caller's environment, nothing from the network
{
	env -i HOME="$HOME" PATH="$PATH" TMPDIR="$T" CLAUDE_CONFIG_DIR="$CLAUDE_CONFIG_DIR" \
		ANTHROPIC_BASE_URL="$(sed -n 's/^plain //p' "$T/mock.out")" ANTHROPIC_API_KEY=sk-none \
		DISABLE_AUTOUPDATER=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 ENABLE_TOOL_SEARCH=false \
		timeout 120 "$claude" "$@" </dev/null
}
ours() { jq '[.hooks[]?[].hooks[] | select(.command == $c)] | length' --arg c "$AVA hook" "$settings"; }

# --- a settings.json that both write -------------------------------------------
claude plugin disable cc-plugin-agents-md@builtin >"$T/plugin" 2>&1
contains 'Claude Code writes its settings' cc-plugin-agents-md@builtin "$settings"
cp "$settings" "$T/was"
run "$AVA" hooks install
exits 'our hooks go into them' 0
claude plugin enable cc-plugin-agents-md@builtin >>"$T/plugin" 2>&1
equal 'Claude Code writes them again' true "$(jq '.enabledPlugins["cc-plugin-agents-md@builtin"]' "$settings")"
equal 'and keeps our hooks' 3 "$(ours)"
run "$AVA" hooks
exits 'which ava finds there' 0
run "$AVA" hooks install --activity
equal 'one more is one more' 4 "$(ours)"
claude plugin disable cc-plugin-agents-md@builtin >>"$T/plugin" 2>&1

# --- three agents deep -----------------------------------------------------------
start_daemon || { result 1 'avad serves' || finish; }
(cd "$T/tree" && claude -p 'DEPTH-ZERO: look at the kettle' --session-id "$session" --allowedTools Agent,Bash \
	--output-format stream-json --verbose >"$T/said" 2>"$T/claude.err") &
at_work=$!
keep "$at_work"
agents() { curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/sessions/$session/agents"; }
# From the one at the top to the one at the bottom, as their parents say.
line='. as $all | [limit(9; null | recurse(. as $p | $all[] | select(.parentAgentId == $p).agentId))][1:] |
	map(. as $id | $all[] | select(.agentId == $id))'
three_deep() { [ "$(agents | jq -c "$line | map(.depth)")" = '[1,2,3]' ]; }
wait_for 60 three_deep
agents >"$T/live"
equal 'three agents work, each spawned by the one before' '[["general-purpose","active",1,"Survey the kettle"],["general-purpose","active",2,"Look at the lid"],["Explore","active",3,"Find the handle"]]' \
	"$(jq -c "$line | map([.type, .status, .depth, .description])" "$T/live")"
doing() { agents | jq -e 'any(.[]; .activity // "" | startswith("Bash until"))'; }
check 'what the last one does is known' wait_for 30 doing
pids=$(jq -r 'map(.process.pid) | unique | join(" ")' "$T/live")
equal 'their process is Claude Code' claude "$(cat "/proc/$pids/comm")"
equal 'the session is listed' '{"active":3,"idle":0,"stopped":0}' "$(curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" \
	http://x/api/v1/claude/sessions | jq -c --arg s "$session" '.sessions[] | select(.sessionId == $s) | .agents')"

if [ -n "${CHROMIUM:-}" ]; then
	node "$SRCDIR/test/peers/claude/tree.mjs" "$session" "$T/live" "$T/go" >"$T/seen" 2>"$T/seen.err"
	check 'the page was looked at' [ $? -eq 0 ] || note "$(head -c 2000 "$T/seen.err")"
	results "$T/seen"
else
	result 0 'the page # SKIP chromium or the page is not here'
fi
touch "$T/go"
check 'Claude Code ends' wait_for 60 gone "$at_work"
[ ! -s "$T/claude.err" ] || note "Claude Code: $(head -c 2000 "$T/claude.err")"
equal 'and the last word is of the one that was asked' 'The kettle boils.' \
	"$(jq -rs 'map(select(.type == "result")) | last.result' "$T/said")"

# --- what stays ------------------------------------------------------------------
agents >"$T/ended"
equal 'all have stopped, with what they said' '[["stopped","The lid is on."],["stopped","The handle is there."],["stopped","It is **black**: kettle.h:1"]]' \
	"$(jq -c "$line | map([.status, .lastMessage])" "$T/ended")"
equal 'the daemon gives the cards as they are' "$(jq -sS 'sort_by(.agentId)' "$cards"/*.json)" \
	"$(jq -S 'sort_by(.agentId)' "$T/ended")"
# By hand from the transcripts: the last line of each reply has what it used.
for id in $(jq -r '.[].agentId' "$T/ended"); do
	want=$(jq -sc 'map(select(.message.usage) | .message) | group_by(.id) | map(last) | {model: last.model,
		usage: {input: map(.usage.input_tokens) | add, output: map(.usage.output_tokens) | add,
			cacheRead: map(.usage.cache_read_input_tokens) | add, cacheWrite: map(.usage.cache_creation_input_tokens) | add}}' \
		"$CLAUDE_CONFIG_DIR"/projects/*/"$session"/subagents/agent-"$id".jsonl)
	equal "usage and model of $(jq -r '.description' "$cards/$id.json") are those of its transcript" "$want" \
		"$(jq -c '{model, usage}' "$cards/$id.json")"
done
equal 'each of them has two replies in it' '[2,2,2]' "$(for id in $(jq -r '.[].agentId' "$T/ended"); do
	jq -s 'map(select(.message.usage) | .message.id) | unique | length' "$CLAUDE_CONFIG_DIR"/projects/*/"$session"/subagents/agent-"$id".jsonl
done | jq -sc .)"
in_log() { [ "$("$AVA" logs --type Custom -o json | grep -c '"status":"stopped"')" -ge 3 ]; }
wait_for 30 in_log
"$AVA" logs --type Custom -o json | jq -sc --arg s "$session" \
	'map(select(.content.customType == "claude.agent" and .sessionId == $s) | .content.data)' >"$T/log"
equal 'the log has each start and each end once' '[["active",3],["stopped",3]]' \
	"$(jq -c 'group_by(.status) | map([.[0].status, length])' "$T/log")"
equal 'and who spawned whom' '[1,2,3]' "$(jq -c "map(select(.status == \"stopped\")) | $line | map(.depth)" "$T/log")"
refuse 'the hooks had nothing to complain of' [ -s "$CLAUDE_CONFIG_DIR/agent-activity/hook.log" ]
run "$AVA" hooks uninstall
equal 'without the hooks the settings are what they were' "$(jq -Sc . "$T/was")" "$(jq -Sc . "$settings")"
finish
