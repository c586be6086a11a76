#!/bin/sh
# avad as a service: what it tells the manager of services, and sockets that are held for it; then
# the units themselves.
. "${0%/*}/lib.sh"

mkdir -m 700 "$AVA_DATA_ROOT"
play "$SRCDIR/test/cli/service.py"

if command -v systemd-analyze >/dev/null; then
	mkdir "$T/units"
	for unit in ava.service ava@.service ava.socket; do
		# The manual is that of an installation.
		sed "s#@bindir@/ava#$AVA#;/^Documentation=/d" "$SRCDIR/packaging/$unit" >"$T/units/$unit"
	done
	mkdir -p -m 700 "$XDG_RUNTIME_DIR"
	run systemd-analyze --user verify "$T/units/ava.service" "$T/units/ava.socket"
	equal "a user's units are in order" '0 ' "$CODE $(cat "$ERR")"
	cp "$T/units/ava@.service" "$T/units/ava@root.service"
	run systemd-analyze verify "$T/units/ava@root.service"
	equal "so is the system's" '0 ' "$CODE $(cat "$ERR")"
else
	note 'systemd is not installed: its units are not looked at'
fi
finish
