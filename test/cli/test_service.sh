#!/bin/sh
# avad as a service: what it tells the manager of services, and sockets that are held for it; then
# the units themselves.
. "${0%/*}/lib.sh"

mkdir -m 700 "$AVA_DATA_ROOT"
play "$SRCDIR/test/cli/service.py"

# What is said of other units of this machine is no fault of ours.
faults() { systemd-analyze "$@" 2>&1 | grep 'ava'; }
mkdir "$T/units"
for unit in ava.service ava@.service ava.socket; do
	# The manual is that of an installation.
	sed "s#@bindir@/ava#$AVA#;/^Documentation=/d" "$SRCDIR/packaging/$unit" >"$T/units/$unit"
done
cp "$T/units/ava@.service" "$T/units/ava@root.service"
sed 's/^WatchdogSec=.*/WatchdogSec=bark/' "$T/units/ava.service" >"$T/units/ava-wrong.service"
rm -rf "$XDG_RUNTIME_DIR" && mkdir -m 700 "$XDG_RUNTIME_DIR"
if command -v systemd-analyze >/dev/null && [ -n "$(faults --user verify "$T/units/ava-wrong.service")" ]; then
	equal "a user's units are in order" '' "$(faults --user verify "$T/units/ava.service" "$T/units/ava.socket")"
	equal "so is the system's" '' "$(faults verify "$T/units/ava@root.service")"
else
	note 'systemd-analyze is not here, or finds no fault in a wrong unit: ours are not looked at'
fi
finish
