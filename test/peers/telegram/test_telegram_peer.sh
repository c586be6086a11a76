#!/bin/sh
# A conversation over somebody else's idea of the Bot API (telegram.mjs; npm's telegram-test-api):
# what ours (test/cli/telegram_bot.py) and we could both have misunderstood. PEER_MODULES: where npm
# installed it.
SRCDIR=${SRCDIR:-$(cd "${0%/*}/../../.." && pwd)}
. "${0%/*}/../../cli/lib.sh"
[ -d "${PEER_MODULES:-}" ] || skip 'PEER_MODULES is not set'

mkdir -p "$T/src" "$XDG_CONFIG_HOME/ava"
printf 'int kettle_boils(void)\n{\n\treturn 1;\n}\n' >"$T/src/kettle.c"
node "$SRCDIR/test/peers/telegram/telegram.mjs"
code=$?
kept=$(cat "$AVA_DATA_ROOT/ava.lock" 2>/dev/null)
[ -z "$kept" ] || keep "$kept"
exit $code
