#!/bin/sh
# The real Claude Code with ava as its MCP server, as `ava mcp install claude` makes it: it finds it, a
# proposal that nobody can be asked about waits for the person, and what they started elsewhere is the
# model's to read. No account: mock-models plays what the model says. Expects PEER_MODULES.
SRCDIR=${SRCDIR:-$(cd "${0%/*}/../../.." && pwd)}
. "${0%/*}/../../cli/lib.sh"
: "${MOCK:=${AVAD%/src/gateway/avad}/test/mock/mock-models}"
[ -x "$MOCK" ] || skip "mock-models is not built: $MOCK"
claude=$(ls "${PEER_MODULES:-/none}"/node_modules/@anthropic-ai/claude-code-linux-*/claude 2>/dev/null | head -n 1)
"${claude:-/none}" --version >/dev/null 2>&1 || skip 'there is no Claude Code for this machine'

export CLAUDE_CONFIG_DIR="$T/claude"
mkdir "$CLAUDE_CONFIG_DIR" "$T/tree"
echo 'int torn_tail(void); /* the torn tail is decided here */' >"$T/tree/a.c"
"$MOCK" --quiet text=ok >"$T/mock.out" 2>&1 &
mock=$!
keep "$mock"
wait_for 10 grep -q ready "$T/mock.out"

plays() # what the model says from now on, from stdin
{
	cat >"$T/turns.jsonl"
	end_all "$mock"
	: >"$T/mock.out" # the old one's words are gone before we look
	"$MOCK" --quiet "script=$T/turns.jsonl" >"$T/mock.out" 2>&1 &
	mock=$!
	keep "$mock"
	wait_for 10 grep -q ready "$T/mock.out"
}
claude() # nothing of the caller's environment, nothing from the network
{
	env -i HOME="$HOME" PATH="$PATH" TMPDIR="$T" CLAUDE_CONFIG_DIR="$CLAUDE_CONFIG_DIR" AVA_AVAD="$AVAD" \
		ANTHROPIC_BASE_URL="$(sed -n 's/^plain //p' "$T/mock.out")" ANTHROPIC_API_KEY=sk-none AVA_MODEL=offline \
		DISABLE_AUTOUPDATER=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 ENABLE_TOOL_SEARCH=false \
		timeout 120 "$claude" "$@" </dev/null
}
asks() # one turn of Claude Code; what its tools gave to $T/given
{
	(cd "$T/tree" && claude -p go --allowedTools mcp__ava --output-format stream-json --verbose >"$T/said" 2>"$T/claude.err")
	jq -rs 'map(select(.type == "user").message.content[]? | select(.type == "tool_result").content |
		if type == "array" then .[].text else . end) | .[]' "$T/said" >"$T/given"
}

start_daemon || { result 1 'avad serves' || finish; } # with our keys, not those of Claude Code
run "$AVA" mcp install claude
exits 'install' 0
(cd "$T/tree" && claude mcp list >"$T/list" 2>&1)
contains 'Claude Code finds it, and it answers' 'Connected' "$T/list"

plays <<END
{"text":"I ask.","tool_calls":[{"name":"mcp__ava__ava_propose","args":{"task":"where is the torn tail decided?","role":"code_reviewer"}}]}
{"text":"It waits for you."}
END
asks
contains 'a proposal that nobody could be asked about waits' '"state":"pending"' "$T/given" || note "$(head -c 1500 "$T/said")"
equal 'and nothing runs' '[]' "$("$AVA" ps -a --json | jq -c .)"
P=$(grep -o 'P-[0-9a-f]*' "$T/given" | head -n 1)
contains 'the model is told how the person confirms it' "ava confirm $P" "$T/given"
run "$AVA" confirm "$P"
exits 'which they do' 0
S=$(grep -o 'S-[0-9a-f]*' "$OUT" | head -n 1)
plays <<END
{"text":"I look.","tool_calls":[{"name":"mcp__ava__ava_status","args":{"run":"$P"}}]}
{"text":"I wait.","tool_calls":[{"name":"mcp__ava__ava_wait","args":{"run":"$S"}}]}
{"text":"There it is."}
END
asks
contains 'another session learns which run it became' "\"subagent_id\":\"$S\"" "$T/given"
contains 'and has its result' 'torn_tail is defined at a.c:1' "$T/given"

# --- at its terminal
command -v tmux >/dev/null || { note 'no tmux: nothing at a terminal' && finish; }
echo '{"text":"I look.","tool_calls":[{"name":"read_file","args":{"path":"a.c"}}]}
{"tool_calls":[{"name":"submit_result","args":{"summary":"It is in a.c.","output":{},"confidence":0.9,"caveats":[]}}],"delay_ms":600000}' >"$T/run.jsonl"
key=sk-none-0123456789-0123456789
jq --arg dir "$T/tree" --arg key $key '. + {hasCompletedOnboarding: true, theme: "dark", projects: {($dir): {hasTrustDialogAccepted: true}},
	customApiKeyResponses: {approved: [$key[-20:]], rejected: []}}' "$CLAUDE_CONFIG_DIR/.claude.json" >"$T/config.json"
mv "$T/config.json" "$CLAUDE_CONFIG_DIR/.claude.json"
plays <<END
{"text":"I ask.","tool_calls":[{"name":"mcp__ava__ava_propose","args":{"task":"where is the torn tail decided?","role":"code_reviewer","model":"offline:$T/run.jsonl"}}]}
{"text":"It works in the background."}
{"text":"The subagent has found it."}
END
ANTHROPIC_BASE_URL="$(sed -n 's/^plain //p' "$T/mock.out")" ANTHROPIC_API_KEY=$key DISABLE_AUTOUPDATER=1 TMPDIR=$T \
	CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 ENABLE_TOOL_SEARCH=false \
	play "$SRCDIR/test/peers/claude/life.py" "$claude" "$T/tree"
"$SRCDIR/script/readme_claude" --check "${AVAD%/src/gateway/avad}" "$PEER_MODULES" >"$T/readme" 2>&1
result $? 'at a terminal: the form, the task, the result, as doc/TOUR.md shows' || note "$(tail -c 1500 "$T/readme")"
finish
