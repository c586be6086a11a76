#!/bin/sh
# Runs in a folder that several machines have (cluster_folder.py).
. "${0%/*}/lib.sh"
command -v python3 >/dev/null || skip 'no python3'
. "${0%/*}/models.sh"
command -v git >/dev/null || skip 'no git'
export MOCK PYTHONDONTWRITEBYTECODE=1
python3 "${0%/*}/cluster_folder.py" "$T/world" "$SRCDIR"
code=$?
[ $code = 77 ] && skip 'PostgreSQL is not installed (Debian: postgresql)'
exit $code
