#!/bin/sh
# A machine that leaves, and one that comes back (cluster_leave.py).
. "${0%/*}/lib.sh"
command -v python3 >/dev/null || skip 'no python3'
. "${0%/*}/models.sh"
export MOCK PYTHONDONTWRITEBYTECODE=1
python3 "${0%/*}/cluster_leave.py" "$T/world" "$SRCDIR"
code=$?
[ $code = 77 ] && skip 'PostgreSQL is not installed (Debian: postgresql)'
exit $code
