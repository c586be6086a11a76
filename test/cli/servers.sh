# Sourced behind lib.sh: a world with MCP servers in it (mcp_server.py), roles that use them, and
# what the model says. Skips where there can be none.
[ -x /usr/bin/python3 ] || skip 'there is no /usr/bin/python3'
"$AVA" doctor >"$OUT" 2>&1
grep -q '^ok *sandbox' "$OUT" || skip 'this machine has no sandbox'
mkdir "$T/server" && cp "$SRCDIR/test/cli/mcp_server.py" "$T/server" # whose processes are those of this test
SERVER=$T/server/mcp_server.py
CONFIG=$XDG_CONFIG_HOME/ava
mkdir -p "$CONFIG/agents"

# role NAME WISHES: who may use which tools.
role()
{
	printf -- '---\nname: %s\ndescription: tries servers\ntools: %s\n---\nTry the tools.\n' \
		"$1" "$2" >"$CONFIG/agents/$1.md"
}
# stdio NAME ARGUMENTS [MEMBERS OF ava]: an entry that starts the server.
stdio()
{
	jq -nc --arg n "$1" --arg s "$SERVER" --arg a "$2" --argjson more "${3:-{\}}" --arg dir "$T/server" \
		'{($n): {command: "python3", args: ([$s] + ($a | split(" ") - [""])),
		  env: {MCP_TEST_TOKEN: "strict-token-0123456789"}, ava: ({read: [$dir], timeout: 3} + $more)}}'
}
# servers ENTRY...: what mcp.json has.
servers()
{
	printf '%s\n' "$@" | jq -s '{mcpServers: add}' >"$CONFIG/mcp.json"
	chmod 600 "$CONFIG/mcp.json"
}
# script TURN...: what the model says; each a list of calls, "NAME ARGS" with | between.
script()
{
	for turn in "$@"; do
		printf '%s' "$turn" | jq -Rsc '{tool_calls: (split("|") | map(capture("^\\s*(?<name>[^ ]+) *(?<args>.*)$") |
			.args |= (if . == "" then {} else fromjson end)))}'
	done >"$T/script.jsonl"
	for turn in 1 2 3; do # of a run that goes on, too
		echo '{"tool_calls":[{"name":"submit_result","args":{"summary":"tried","confidence":1}}]}'
	done >>"$T/script.jsonl"
}
# try ROLE [OPTION...]: a run of that script; its id in $ID.
try()
{
	try_role=$1
	shift
	run "$AVA" run 'try it' --role "$try_role" --model "offline:$T/script.jsonl" --yes "$@" </dev/null
	ID=$(ls -t "$AVA_DATA_ROOT/logs/subagents" | head -n 1)
	ID=${ID%.jsonl}
}
# told CALL: class and output of a call, on a line.
told()
{
	jq -r --arg c "$1" 'select(.eventType == "ToolResult" and .content.callId == $c).content |
		"\(.errorClass) \(.output)"' "$AVA_DATA_ROOT/logs/subagents/$ID.jsonl" >"$T/told"
}
# tells CALL NAME TEXT: the text stands in it.
tells() { told "$1"; contains "$2" "$3" "$T/told"; }
seen() { grep -c "^$2\$" "$AVA_DATA_ROOT/mcp/$1/seen"; }
