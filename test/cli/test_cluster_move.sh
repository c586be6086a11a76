#!/bin/sh
# Runs that wait for a machine, or are held, and how they move (cluster_move.py).
. "${0%/*}/lib.sh"
command -v python3 >/dev/null || skip 'no python3'
. "${0%/*}/models.sh"
export MOCK PYTHONDONTWRITEBYTECODE=1
python3 "${0%/*}/cluster_move.py" "$T/world" "$SRCDIR"
code=$?
[ $code = 77 ] && skip 'PostgreSQL is not installed (Debian: postgresql)'
exit $code
