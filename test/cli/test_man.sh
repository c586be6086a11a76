#!/bin/sh
# The man pages: one for each command of help, without a fault in their form, with the texts that
# the programs and doc/ have.
. "${0%/*}/lib.sh"

run python3 "$SRCDIR/script/make_pages" "$T/man" "$AVA" "$AVAD" "$SRCDIR/doc"
exits 'the pages are made' 0
"$AVA" help | sed -n 's/^  \([a-z]*\) .*/\1/p' >"$T/commands"
check 'help lists commands' test "$(wc -l <"$T/commands")" -gt 30
lacks=
while read -r name; do
	[ -s "$T/man/man1/ava-$name.1" ] || lacks="$lacks $name"
done <"$T/commands"
equal 'each command has its page' '' "$lacks"
check 'so has a subcommand' test -s "$T/man/man1/ava-logs-verify.1"

page() { mandoc -T utf8 "$T/man/$1" | col -bx >"$T/page"; }
if command -v mandoc >/dev/null; then
	# A page of a build says no date: it would be another one tomorrow.
	equal 'they are in good form' '' \
		"$(mandoc -T lint -W warning "$T"/man/man[158]/* 2>&1 | grep -v 'missing date')"
	page man1/ava-run.1
	contains 'a page names options' '-r, --role ROLE' "$T/page"
	contains 'and examples as they stand' 'ava run --parallel tasks.jsonl' "$T/page"
	page man5/ava-config.5
	"$AVAD" --doctor | jq -r '.settings | keys[]' >"$T/settings"
	check 'there are settings' test "$(wc -l <"$T/settings")" -gt 40
	lacks=
	while read -r key; do
		grep -qwF "$key" "$T/page" || lacks="$lacks $key"
	done <"$T/settings"
	equal 'config(5) has each setting' '' "$lacks"
	page man5/ava-roles.5
	contains 'roles(5) has fields' 'disallowedTools' "$T/page"
	contains 'a star stays a star' 'None named, * or All tools' "$T/page"
	page man8/avad.8
	contains 'avad(8) has its options' '--ready-fd N' "$T/page"
else
	note 'mandoc is not installed: the form of the pages is not looked at'
fi

run "$AVA" help --json
check 'the table is JSON' test "$(jq '.commands | length' "$OUT")" -gt 30
run "$AVA" help --json logs verify
equal 'one of a command' 'logs verify' "$(jq -r '.commands[].name' "$OUT")"
run "$AVA" help run over
exits 'a second word is a subcommand' 2
contains 'and says so' 'there is no command "run over"' "$ERR"
for row in 'kill:cancel' 'list:ps' 'S-f4fdfb:status S-f4fdfb' 'stauts:status'; do
	run "$AVA" "${row%%:*}"
	equal "ava ${row%%:*}" "2 ava: there is no command \"${row%%:*}\"; did you mean \"${row#*:}\"?" "$CODE $(cat "$ERR")"
done
run "$AVA" help nope
contains 'half of its letters wrong is not near' 'no command "nope"; `ava help` lists them' "$ERR"
open=
for name in $("$AVA" help --json | jq -r '.commands[].name | select(contains(" ") | not)'); do
	[ -z "$("$AVA" help "$name" | tail -c 1)" ] || open="$open $name"
done
equal 'each explanation ends with its line' '' "$open"
finish
