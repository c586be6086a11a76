#!/bin/sh
# The real Codex with ava as its MCP server, as `ava mcp install codex` makes it (codex.py). No account: its
# model is ours. Expects PEER_MODULES.
SRCDIR=${SRCDIR:-$(cd "${0%/*}/../../.." && pwd)}
. "${0%/*}/../../cli/lib.sh"
CODEX=$(ls "${PEER_MODULES:-/none}"/node_modules/@openai/codex-linux-*/vendor/*/bin/codex 2>/dev/null | head -n 1)
"${CODEX:-/none}" --version >/dev/null 2>&1 || skip 'there is no Codex for this machine'
CODEX_HOME=$T/codex
export CODEX CODEX_HOME

mkdir "$CODEX_HOME" "$T/tree"
echo 'int torn_tail(void); /* the torn tail is decided here */' >"$T/tree/a.c"
printf '[projects."%s"]\ntrust_level = "trusted"\n' "$T/tree" >"$CODEX_HOME/config.toml"
start_daemon || { result 1 'avad serves' || finish; } # with our keys, not those of Codex
run "$AVA" mcp install codex
exits 'install' 0
play "$SRCDIR/test/peers/codex/codex.py"
finish
