#!/bin/sh
# The crate's tests and its example, in lines `ok N - name`. The installed library is found by pkg-config, a
# daemon by $AVA_AVAD; no other crate is needed, so no network is.
set -u
cd "${0%/*}/ava-sys" || exit 2
said=$(mktemp) && folder=$(mktemp -d) || exit 2
trap 'rm -rf "$said" "$folder"' EXIT
cargo test --offline --locked >"$said" 2>&1
code=$?
awk '/^test .* \.\.\. (ok|FAILED)$/ { print ($NF == "ok" ? "ok " : "not ok ") ++n " - rust: " $2 } END { exit n < 4 }' "$said" || code=1
[ $code = 0 ] || sed 's/^/# /' "$said"
printf 'The torn tail is cut.\n' >"$folder/notes.md"
cargo run --offline --locked -q --example spawn_and_wait embedded "$folder/root" 'where is the torn tail cut?' "$folder" >"$said" 2>&1 &&
	grep -q ': success after' "$said" && echo 'ok 9 - rust: example' || { cat "$said"; echo 'not ok 9 - rust: example'; code=1; }
exit $code
