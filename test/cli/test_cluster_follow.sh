#!/bin/sh
# The logs of all machines in one stream (cluster_follow.py).
. "${0%/*}/lib.sh"
command -v python3 >/dev/null || skip 'no python3'
. "${0%/*}/models.sh"
export MOCK PYTHONDONTWRITEBYTECODE=1
python3 "${0%/*}/cluster_follow.py" "$T/world" "$SRCDIR"
code=$?
[ $code = 77 ] && skip 'PostgreSQL is not installed (Debian: postgresql)'
exit $code
