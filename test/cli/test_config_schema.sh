#!/bin/sh
# The JSON Schema of config.yaml: it has the keys that ava reads, takes what ava takes, and refuses
# what is mistyped. An editor completes by it.
. "${0%/*}/lib.sh"

run "$AVA" config schema
exits 'it is printed' 0
cp "$OUT" "$T/schema.json"
play "$SRCDIR/test/cli/config_schema.py" "$T/schema.json"
run "$AVA" config
equal 'where the file stands' "$XDG_CONFIG_HOME/ava/config.yaml" "$(cat "$OUT")"
run "$AVA" config nonsense
exits 'another word is refused' 2
finish
