#!/bin/sh
# The reference servers of MCP as tools of a run: everything (over pipes and HTTP), filesystem and memory, and
# one of the newer era made with the SDK (modern.mjs, both ways), in the sandbox with what their entries give; and killed in the middle of a call (`./dev check
# mcp-servers` installs them). Expects PEER_MODULES, the folder of their node_modules.
SRCDIR=${SRCDIR:-$(cd "${0%/*}/../../.." && pwd)}
. "${0%/*}/../../cli/lib.sh"
[ -d "${PEER_MODULES:-}" ] || skip 'PEER_MODULES is not set'
[ -x /usr/bin/node ] || skip 'there is no /usr/bin/node, which the sandbox could show'
"$AVA" doctor >"$OUT" 2>&1
grep -q '^ok *sandbox' "$OUT" || skip 'this machine has no sandbox'
MODULES=$(cd "$PEER_MODULES" && pwd -P)
[ -d "$MODULES/@modelcontextprotocol" ] || MODULES=$MODULES/node_modules
THEIRS=$MODULES/@modelcontextprotocol
CONFIG=$XDG_CONFIG_HOME/ava
mkdir -p "$CONFIG/agents" "$T/notes" "$T/other"
echo 'the heron fishes at dawn' >"$T/notes/birds.txt"
echo 'not to be seen' >"$T/other/secret.txt"
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
PORT=$(free_port)
MODERN=$(free_port)
HERE=$SRCDIR/test/peers/mcp-servers

role()
{
	printf -- '---\nname: %s\ndescription: tries servers\ntools: mcp__%s__*\n---\nTry the tools.\n' \
		"$1" "$1" >"$CONFIG/agents/$1.md"
}
# turn NAME ARGS [NAME ARGS]...: one reply of the model, with these calls.
turn()
{
	jq -nc '{tool_calls: [$ARGS.positional | _nwise(2) | {name: .[0], args: (.[1] | fromjson)}]}' \
		--args -- "$@" >>"$T/script.jsonl"
}
try()
{
	echo '{"tool_calls":[{"name":"submit_result","args":{"summary":"tried","confidence":1}}]}' >>"$T/script.jsonl"
	run "$AVA" run 'try it' --role "$1" --model "offline:$T/script.jsonl" --yes --grant all_three </dev/null
	ID=$(ls -t "$AVA_DATA_ROOT/logs/subagents" | head -n 1)
	ID=${ID%.jsonl}
	: >"$T/script.jsonl"
}
told()
{
	jq -r --arg c "$1" 'select(.eventType == "ToolResult" and .content.callId == $c).content |
		"\(.errorClass) \(.output)"' "$AVA_DATA_ROOT/logs/subagents/$ID.jsonl" >"$T/told"
}

jq -n --arg m "$MODULES" --arg p "$THEIRS" --arg n "$T/notes" --arg port "$PORT" \
	--arg here "$HERE" --arg modern "$MODERN" '{mcpServers: {
	everything: {command: "node", args: [$p + "/server-everything/dist/index.js"], ava: {read: [$m]}},
	filesystem: {command: "node", args: [$p + "/server-filesystem/dist/index.js", $n], ava: {read: [$m], write: [$n]}},
	memory: {command: "node", args: [$p + "/server-memory/dist/index.js"], env: {MEMORY_FILE_PATH: "/ava/work/graph.jsonl"},
		ava: {read: [$m]}},
	web: {type: "http", url: ("http://127.0.0.1:" + $port + "/mcp")},
	modern: {command: "node", args: [$here + "/modern.mjs", $m], ava: {read: [$m, $here]}},
	modernweb: {type: "http", url: ("http://127.0.0.1:" + $modern + "/mcp")}}}' >"$CONFIG/mcp.json"
chmod 600 "$CONFIG/mcp.json"
for name in everything filesystem memory web modern modernweb; do role "$name"; done
: >"$T/script.jsonl"
(cd "$T" && PORT=$PORT exec node "$THEIRS/server-everything/dist/index.js" streamableHttp >"$T/web.out" 2>&1) &
WEB=$!
keep "$WEB"
node "$HERE/modern.mjs" "$MODULES" "$MODERN" >"$T/modern.out" 2>&1 &
keep $!
wait_for 20 curl -s -o "$T/hello" "http://127.0.0.1:$PORT/mcp"
wait_for 20 curl -s -o "$T/hello" "http://127.0.0.1:$MODERN/mcp"
"$AVA" doctor >"$OUT" 2>&1 </dev/null
contains 'everything lists its tools' 'mcp everything' "$OUT"
equal 'all six can be had' 6 "$(grep -c '^ok *mcp [a-z]* *[1-9][0-9]* tools' "$OUT")"
equal 'two speak the newer era' 2 "$(grep -c 'mcp modern.*MCP 2026-07-28' "$OUT")"
grep ' mcp ' "$OUT" | sed 's/^/# /'
start_daemon || { result 1 'avad serves' || finish; }

turn mcp__everything__echo '{"message":"heron"}' mcp__everything__get-sum '{"a":2,"b":40}' mcp__everything__get-env '{}' \
	mcp__everything__get-tiny-image '{}' mcp__everything__get-structured-content '{"location":"Chicago"}'
turn mcp__everything__get-sum '{"a":"two"}'
try everything
exits 'everything: the run ends well' 0
told c1.1
contains 'everything: echo' 'heron' "$T/told"
told c1.2
contains 'everything: a sum' '42' "$T/told"
told c1.3
contains 'everything: it has the variables of the sandbox' '/ava/work' "$T/told"
lacks 'everything: and none of ava' 'AVA_DATA_ROOT' "$T/told"
told c1.4
contains 'everything: a picture is named' 'image of type image/png' "$T/told"
told c1.5
contains 'everything: what is data is told' 'temperature' "$T/told"
told c2.1
contains 'everything: it says what is wrong with arguments' 'server_error' "$T/told"

turn mcp__filesystem__read_text_file "{\"path\":\"$T/notes/birds.txt\"}" \
	mcp__filesystem__read_text_file "{\"path\":\"$T/other/secret.txt\"}" \
	mcp__filesystem__write_file "{\"path\":\"$T/notes/new.txt\",\"content\":\"otter\\n\"}"
try filesystem
told c1.1
contains 'filesystem: a note is read' 'the heron fishes at dawn' "$T/told"
told c1.2
lacks 'filesystem: no other file is' 'not to be seen' "$T/told"
equal 'filesystem: a note is written' otter "$(cat "$T/notes/new.txt")"

turn mcp__memory__create_entities '{"entities":[{"name":"heron","entityType":"bird","observations":["fishes at dawn"]}]}'
try memory
turn mcp__memory__read_graph '{}'
try memory
told c1.1
contains 'memory: what one run notes, the next one reads' 'fishes at dawn' "$T/told"
check 'memory: in a folder of its own' grep -q heron "$AVA_DATA_ROOT/mcp/memory/graph.jsonl"

turn mcp__web__echo '{"message":"heron"}'
try web
told c1.1
contains 'everything, HTTP: echo' 'heron' "$T/told"

for name in modern modernweb; do
	turn "mcp__${name}__add" '{"a":40,"b":2}'
	turn "mcp__${name}__add" '{"a":"two"}'
	try "$name"
	told c1.1
	contains "$name: a sum" 'sum 42' "$T/told"
	told c2.1
	contains "$name: it says what is wrong with arguments" 'server_error' "$T/told"
done
late()
{
	curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" http://x/api/v1/runs -d '{"task":"try","role":"modern","model":"offline:/x"}' |
		jq -e '.quote.tools | index("mcp__modern__late")' >"$OUT"
}
refuse 'modern: a tool is not there yet' late
turn mcp__modern__grow '{}'
try modern
check 'modern: a change of its list is followed' wait_for 10 late

# --- killed in the middle of a call -------------------------------------------------
server_pid() { ps -eo pid,args | awk -v s="$THEIRS/server-everything/dist/index.js" '$2 ~ /node$/ && index($0, s) && !/streamableHttp/ { print $1 }' | head -n 1; }
status_is() { "$AVA" status "$ID" --json | jq -e --arg s "$1" '.status == $s'; }
# What it has read so far; a call is over a hundred bytes.
bytes_read() { awk '/^rchar/ { print $2 }' "/proc/$1/io"; }
has_the_call() { [ "$(bytes_read "$PID")" -gt $((read_before + 100)) ]; }
# begin ROLE PID: a run whose call that process works on.
begin()
{
	PID=$2
	read_before=$(bytes_read "$PID")
	echo '{"tool_calls":[{"name":"submit_result","args":{"summary":"tried","confidence":1}}]}' >>"$T/script.jsonl"
	ID=$("$AVA" run 'try it' --role "$1" --model "offline:$T/script.jsonl" --yes --grant all_three --background \
		</dev/null 2>/dev/null | grep -o 'S-[0-9a-f]*' | head -n 1)
	check "$1: a server works on a call" wait_for 20 has_the_call
}
turn mcp__everything__trigger-long-running-operation '{"duration":50,"steps":5}'
turn mcp__everything__echo '{"message":"again"}'
begin everything "$(server_pid)"
kill -9 "$PID"
check 'killed in mid-call: the run goes on to its end' wait_for 30 status_is success
told c1.1
contains 'killed in mid-call: the call may have happened' 'it may have happened' "$T/told"
told c2.1
contains 'killed in mid-call: the next call finds it again' 'again' "$T/told"

: >"$T/script.jsonl"
turn mcp__web__trigger-long-running-operation '{"duration":50,"steps":5}'
begin web "$WEB"
kill -9 "$WEB"
check 'HTTP, killed in mid-call: the run goes on to its end' wait_for 30 status_is success
told c1.1
contains 'HTTP, killed in mid-call: the call may have happened' 'it may have happened' "$T/told"
stop_daemon
all_gone() { [ -z "$(server_pid)" ]; }
check 'no server outlives the daemon' wait_for 10 all_gone
start_daemon
all_replay 'every run replays'
finish
