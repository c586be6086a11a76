#!/bin/sh
# The reference servers of MCP as tools of a run: everything (over pipes and HTTP), filesystem and memory, and
# one of the newer era made with the SDK (modern.mjs, both ways), in the sandbox with what their entries give
# (`./dev check mcp-servers` installs them). Expects PEER_MODULES, the folder of their node_modules.
SRCDIR=${SRCDIR:-$(cd "${0%/*}/../../.." && pwd)}
. "${0%/*}/../../cli/lib.sh"
. "$SRCDIR/test/cli/servers.sh"
[ -d "${PEER_MODULES:-}" ] || skip 'PEER_MODULES is not set'
[ -x /usr/bin/node ] || skip 'there is no /usr/bin/node, which the sandbox could show'
MODULES=$(cd "$PEER_MODULES" && pwd -P)
[ -d "$MODULES/@modelcontextprotocol" ] || MODULES=$MODULES/node_modules
THEIRS=$MODULES/@modelcontextprotocol
mkdir "$T/notes" "$T/other"
echo 'the heron fishes at dawn' >"$T/notes/birds.txt"
echo 'not to be seen' >"$T/other/secret.txt"
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
PORT=$(free_port)
MODERN=$(free_port)
HERE=$SRCDIR/test/peers/mcp-servers

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
for name in everything filesystem memory web modern modernweb; do role "$name" "mcp__${name}__*"; done
(cd "$T" && PORT=$PORT exec node "$THEIRS/server-everything/dist/index.js" streamableHttp >"$T/web.out" 2>&1) &
keep $!
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

script 'mcp__everything__echo {"message":"heron"} | mcp__everything__get-sum {"a":2,"b":40} | mcp__everything__get-env |
	mcp__everything__get-tiny-image | mcp__everything__get-structured-content {"location":"Chicago"}' \
	'mcp__everything__get-sum {"a":"two"}'
try everything --grant all_three
exits 'everything: the run ends well' 0
tells c1.1 'everything: echo' 'heron'
tells c1.2 'everything: a sum' '42'
tells c1.3 'everything: it has the variables of the sandbox' '/ava/work'
lacks 'everything: and none of ava' 'AVA_DATA_ROOT' "$T/told"
tells c1.4 'everything: a picture is named' 'image of type image/png'
tells c1.5 'everything: what is data is told' 'temperature'
tells c2.1 'everything: it says what is wrong with arguments' 'server_error'

script "mcp__filesystem__read_text_file {\"path\":\"$T/notes/birds.txt\"} |
	mcp__filesystem__read_text_file {\"path\":\"$T/other/secret.txt\"} |
	mcp__filesystem__write_file {\"path\":\"$T/notes/new.txt\",\"content\":\"otter\\n\"}"
try filesystem --grant all_three
tells c1.1 'filesystem: a note is read' 'the heron fishes at dawn'
told c1.2
lacks 'filesystem: no other file is' 'not to be seen' "$T/told"
equal 'filesystem: a note is written' otter "$(cat "$T/notes/new.txt")"

script 'mcp__memory__create_entities {"entities":[{"name":"heron","entityType":"bird","observations":["fishes at dawn"]}]}'
try memory --grant all_three
script mcp__memory__read_graph
try memory --grant all_three
tells c1.1 'memory: what one run notes, the next one reads' 'fishes at dawn'
check 'memory: in a folder of its own' grep -q heron "$AVA_DATA_ROOT/mcp/memory/graph.jsonl"

script 'mcp__web__echo {"message":"heron"}'
try web --grant all_three
tells c1.1 'everything, HTTP: echo' 'heron'

for name in modern modernweb; do
	script "mcp__${name}__add {\"a\":40,\"b\":2}" "mcp__${name}__add {\"a\":\"two\"}"
	try "$name" --grant all_three
	tells c1.1 "$name: a sum" 'sum 42'
	tells c2.1 "$name: it says what is wrong with arguments" 'server_error'
done
late()
{
	curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" http://x/api/v1/runs -d '{"task":"try","role":"modern","model":"offline:/x"}' |
		jq -e '.quote.tools | index("mcp__modern__late")' >"$OUT"
}
refuse 'modern: a tool is not there yet' late
script mcp__modern__grow
try modern --grant all_three
check 'modern: a change of its list is followed' wait_for 10 late

stop_daemon
all_gone() { ! ps -eo args | grep -q "[n]ode $THEIRS/server-everything/dist/index.js\$"; }
check 'no server outlives the daemon' wait_for 10 all_gone
start_daemon
all_replay 'every run replays'
finish
