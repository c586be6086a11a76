#!/bin/sh
# A conversation over the genuine Synapse (play.py): what ours (test/cli/matrix_server.py) and we
# could both have misunderstood. SYNAPSE: the python of an environment that has it.
SRCDIR=${SRCDIR:-$(cd "${0%/*}/../../.." && pwd)}
. "${0%/*}/../../cli/lib.sh"
[ -x "${SYNAPSE:-}" ] || skip 'SYNAPSE is not set'

mkdir -p "$T/src" "$XDG_CONFIG_HOME/ava"
printf 'int kettle_boils(void)\n{\n\treturn 1;\n}\n' >"$T/src/kettle.c"
python3 "$SRCDIR/test/peers/matrix/play.py" "$SYNAPSE"
code=$?
kept=$(cat "$AVA_DATA_ROOT/ava.lock" 2>/dev/null)
[ -z "$kept" ] || keep "$kept"
exit $code
