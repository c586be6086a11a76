#!/bin/sh
# The protocol's own programs against ava's MCP door: the inspector as a client, in both eras, the client of the
# SDK, and the scenarios of conformance that need no tools of a test server. Expects PEER_MODULES, the folder of its
# node_modules.
SRCDIR=${SRCDIR:-$(cd "${0%/*}/../../.." && pwd)}
. "${0%/*}/../../cli/lib.sh"
bin=${PEER_MODULES:-/none}/node_modules
node=$(ls "$bin"/node-linux-*/bin/node 2>/dev/null | head -n 1)
"${node:-/none}" --version >/dev/null 2>&1 || skip 'there is no Node 22 for this machine'

mkdir "$T/tree"
echo 'int torn_tail(void); /* the torn tail is decided here */' >"$T/tree/a.c"
cd "$T/tree" || exit 99
start_daemon || { result 1 'avad serves' || finish; }

# --- the inspector: it gives its servers no environment but what it is told
inspect() # ERA ARGUMENT...
{
	era=$1
	shift
	# shellcheck disable=SC2086
	run timeout 60 "$node" "$bin/.bin/mcp-inspector" --cli --protocol-era "$era" --format json "$@" \
		-e "AVA_DATA_ROOT=$AVA_DATA_ROOT" -e "AVA_AVAD=$AVAD" -- "$AVA" mcp </dev/null
}
for era in legacy modern; do
	inspect "$era" --method tools/list
	exits "$era: tools/list" 0
	equal "$era: the tools of a client without forms" 'ava_propose ava_status ava_wait ava_result ava_steer ava_cancel ava_logs' \
		"$(jq -r '[(.result // .).tools[].name] | join(" ")' "$OUT")"
	inspect "$era" --method tools/list --strict
	exits "$era: their schemas are portable" 0
	inspect "$era" --method tools/call --tool-name ava_propose --tool-arg 'task=where is the torn tail decided?' role=code_reviewer
	exits "$era: ava_propose" 0
	P=$(jq -r '(.result // .).structuredContent.proposal_id' "$OUT")
	run "$AVA" confirm "$P"
	S=$(grep -o 'S-[0-9a-f]*' "$OUT" | head -n 1)
	inspect "$era" --method tools/call --tool-name ava_wait --tool-arg "run=$S"
	equal "$era: ava_wait has the result" success "$(jq -r '(.result // .).structuredContent.status' "$OUT")"
	inspect "$era" --method resources/read --uri "ava://run/$S/result"
	contains "$era: so has the resource" 'torn_tail is defined at a.c:1' "$OUT"
	inspect "$era" --method tools/call --tool-name ava_result --tool-arg run=nonsense
	exits "$era: a bad id is an error of the tool" 5
done

# --- conformance; who asks nobody starts at once, so that a call is a task
stop_daemon
AVA_CONFIRM=never
export AVA_CONFIRM
start_daemon || { result 1 'avad serves' || finish; }
"$AVA" mcp token --json >"$T/door"
"$node" "$SRCDIR/test/peers/mcp/door.mjs" "$(jq -r .url "$T/door")" "$(jq -r .token "$T/door")" "$T/tree" >"$T/port" 2>"$T/door.err" &
keep $!
wait_for 10 test -s "$T/port"
for scenario in caching http-header-validation dns-rebinding-protection tools-list resources-list sep-2164-resource-not-found \
	tasks-lifecycle tasks-wire-fields tasks-capability-negotiation tasks-request-headers tasks-dispatch-and-envelope \
	tasks-request-state-removal tasks-mrtr-input; do
	timeout 100 "$node" "$bin/.bin/conformance" server --url "http://127.0.0.1:$(cat "$T/port")/mcp" --scenario "$scenario" \
		--spec-version 2026-07-28 --force >"$T/conformance" 2>&1 </dev/null
	# A run never ends as an error of the protocol, and asks one question at a time; and ava does not greet.
	grep -q 'Passed: [1-9]' "$T/conformance" && ! grep FAILURE "$T/conformance" |
		grep -qv -e sep-2663-tasks-get-status-failed -e tasks-mrtr-partial-fulfillment \
			-e tasks-headers-tolerate-mcp-method-on-tools-call
	result $? "conformance: $scenario" || note "$(grep -e FAIL -e Error: "$T/conformance" | head -n 30)"
done
finish
