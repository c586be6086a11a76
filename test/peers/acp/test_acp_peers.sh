#!/bin/sh
# Other programs' clients of the Agent Client Protocol talk with Ava: acpx, and one made of the
# protocol's SDK; every line of all cases of test_acp.sh fits the protocol's schema. Expects
# PEER_MODULES, the folder of the node_modules that `./dev check acp` installs.
SRCDIR=${SRCDIR:-$(cd "${0%/*}/../../.." && pwd)}
. "${0%/*}/../../cli/lib.sh"
here=$SRCDIR/test/peers/acp
[ -d "${PEER_MODULES:-}" ] || skip 'PEER_MODULES is not set'
node=$(ls "$PEER_MODULES"/node_modules/node-linux-*/bin/node 2>/dev/null | head -n 1)
"${node:-/none}" --version >/dev/null 2>&1 || skip 'there is no node for acpx on this machine'
export PATH="${node%/node}:$PATH"

mkdir "$T/tree"
printf 'int parse_header(const char *s)\n{\n\treturn 0;\n}\n' >"$T/tree/parser.c"
start_daemon || { result 1 'avad serves' || finish; }

# --- acpx: one turn, and a session over several of its processes
acpx()
{
	timeout 100 "$node" "$PEER_MODULES/node_modules/acpx/dist/cli.js" --agent "$AVA acp --wait" \
		--cwd "$T/tree" --format json "$@" </dev/null 2>>"$T/acpx.err"
}
run acpx --approve-all exec 'Find where parse_header is defined'
exits 'acpx ends' 0
contains 'with the finding' 'parse_header is defined at parser.c:1' "$OUT"
equal 'and no word after the answer' '{"stopReason":"end_turn"}' "$(tail -n 1 "$OUT" | jq -c .result)"
run acpx --deny-all exec 'Find where parse_header is defined'
contains 'what it denies is not started' 'nothing was started' "$OUT"
run acpx sessions new
exits 'it has sessions' 0
run acpx --approve-all prompt 'hello'
contains 'a prompt is answered' '"stopReason":"end_turn"' "$OUT"
run acpx sessions close
exits 'and closes them' 0

# --- the SDK
run timeout 100 "$node" "$here/client.mjs" "$T/tree" parse_header
exits 'a client of the SDK goes through a session' 0
equal 'which ends, asked once, and is listed' '[1,"end_turn",[["yes","no"]],true]' \
	"$(jq -c '[.version, .stop, .asked, .sessions >= 1]' "$OUT")"
contains 'with the finding' 'parse_header is defined at parser.c:1' "$OUT"
equal 'a load brings the conversation' true "$(jq '.replayed | test("Find where parse_header")' "$OUT")"

# --- the schema
ACP_LINES=$T/lines timeout 250 python3 "$SRCDIR/test/cli/acp.py" >"$T/acp.out" 2>&1
equal 'all cases go through' 0 "$(grep -c '^not ok' "$T/acp.out")"
run "$node" "$here/schema.mjs" "$T/lines"
exits 'every line fits the schema' 0
note "$(cat "$OUT")"
for kind in agent_message_chunk user_message_chunk tool_call tool_call_update plan usage_update \
	session_info_update available_commands_update config_option_update notice RequestPermissionRequest \
	CreateElicitationRequest CancelRequestNotification Error; do
	contains "among them $kind" "\"$kind\":" "$OUT"
done
finish
