#!/bin/sh
# Records to hand over (doc/SEALS.md): what is in them, what leaves the machine, and that whoever
# changes one is found, by ava and by the verifier of examples/ (sealed.py). A golden record, made
# once, must hold for ever.
. "${0%/*}/lib.sh"
export AVA_SEALS_EVERY=1
mkdir "$T/work" && cd "$T/work" || exit 99
printf 'the parser is here\nint parse_header(void);\n' >parser.c

run "$AVA" export --sealed S-aaaaaaaaaaaa
exits 'without a root there is nothing' 5
# root: three runs, each with an end of the daemon, which seals.
root()
{
	AVA_DATA_ROOT=$T/$1
	for what in parser header int; do
		"$AVA" run "where is the $what?" --yes >/dev/null 2>&1
		"$AVA" stop >/dev/null 2>&1
	done
	id=$(ls "$AVA_DATA_ROOT/logs/subagents" | head -n 1)
	id=${id%.jsonl}
}
root other
run "$AVA" export --sealed --since '1 day ago' --out "$T/other.sealed"
exits 'all of a day is exported' 0
root data
run "$AVA" export --sealed "$id" --out "$T/bare.sealed"
exits 'a run is, too' 0
key=$(sed -n 's/^ed25519 \([0-9a-f]*\).*/\1/p' "$AVA_DATA_ROOT/seals/public")
contains 'the key is told' "$key" "$OUT"
equal 'for its owner alone' 600 "$(stat -c %a "$T/bare.sealed")"
equal 'its log and result are in it' "logs/subagents/$id.jsonl runs/$id/result.json" "$(head -1 "$T/bare.sealed" | jq -r '.files | join(" ")')"
check 'the log byte for byte' grep -qxF "$(sed -n 3p "$AVA_DATA_ROOT/logs/subagents/$id.jsonl")" "$T/bare.sealed"
lacks 'what the model was asked is not' '"role":"user"' "$T/bare.sealed"
run "$AVA" export --sealed "$id"
check 'the same again, on standard output' cmp -s "$OUT" "$T/bare.sealed"
run "$AVA" export --sealed "$id" --with messages --out "$T/one.sealed"
exits 'with messages' 0
contains 'they are' '"role":"user"' "$T/one.sealed"
equal 'with the head of their requests' 1 "$(head -1 "$T/one.sealed" | grep -c '"heads/[0-9a-f]\{64\}"')"
run "$AVA" export --sealed --since '1 day ago' --with messages --out "$T/all.sealed"
contains 'what no seal covers is left out, and said' 'not sealed yet' "$ERR"
equal 'of a day there are all runs' 3 "$(head -1 "$T/all.sealed" | jq '[.files[] | select(startswith("logs/subagents"))] | length')"
mv "$AVA_DATA_ROOT/logs/subagents/$id.jsonl" "$T/away"
run "$AVA" export --sealed --since '1 day ago' --out "$T/less.sealed"
exits 'what was pruned does not keep the rest from it' 0
contains 'and is said' '1 file that seals name was pruned' "$ERR"
mv "$T/away" "$AVA_DATA_ROOT/logs/subagents/$id.jsonl"
run "$AVA" export --sealed --since tomorrow
exits 'nothing of tomorrow' 5
for words in '' "$id --since today" '--since nonsense'; do
	run "$AVA" export --sealed $words
	exits "a usage error: $words" 2
done
run "$AVA" export "$id" --out "$T/x"
exits 'and of the other form' 2
run "$AVA" export --sealed "$id" --out /nowhere/x
exits 'no folder' 5
mkfifo "$T/fifo"
run "$AVA" export --sealed "$id" --out "$T/fifo"
equal 'what is no file is not replaced by one' "2 fifo" "$CODE $(stat -c %F "$T/fifo")"

# A run that has just ended: no seal has it, and the daemon makes one.
last=$id
AVA_SEALS_EVERY=3600 "$AVA" run 'where is the end?' --yes >/dev/null 2>&1
fresh=$(basename "$(ls -t "$AVA_DATA_ROOT"/logs/subagents/*.jsonl | head -n 1)" .jsonl)
run "$AVA" export --sealed "$fresh" --out "$T/fresh.sealed"
exits 'a run that has just ended is exported at once' 0
lacks 'whole' 'not sealed yet' "$ERR"
contains 'with its result' "{\"file\":\"runs/$fresh/result.json\"" "$T/fresh.sealed"
run "$AVA" logs verify "$T/fresh.sealed"
exits 'and that holds' 0
"$AVA" stop >/dev/null 2>&1
id=$last

# Elsewhere: no root, no daemon, no home.
mkdir "$T/elsewhere"
elsewhere() { run env -i HOME="$T/elsewhere" PATH="$PATH" "$@"; }
elsewhere "$AVA" logs verify "$T/one.sealed" --key "$key"
exits 'it holds without a data root' 0
contains 'which is said' 'all is as it was sealed' "$OUT"
elsewhere "$AVA" logs verify "$T/one.sealed" --key "$(echo "$key" | tr a-f A-F)"
exits 'nor does the case of a key matter' 0
elsewhere "$AVA" logs verify "$T/one.sealed" --json
equal 'as JSON' "true $key" "$(jq -r '"\(.ok) \(.newest.key)"' "$OUT")"
elsewhere "$AVA" logs verify "$T/one.sealed" --key "$AVA_DATA_ROOT/seals/public"
exits 'by a copy of the keys, too' 0
elsewhere "$AVA" logs verify "$T/one.sealed" --key "$T/other/seals/public"
exits 'and not by another' 1
elsewhere "$AVA" logs verify "$T/one.sealed" --key abc
contains 'what is no key is said to be none' '--key abc is no key (64 digits), and no file of them' "$ERR"
elsewhere "$AVA" logs verify "$T/none"
exits 'no such file' 5
equal 'nothing was made there' '' "$(ls -A "$T/elsewhere")"

golden=$(head -1 "$SRCDIR/test/golden/sealed/1.sealed" | jq -r '.keys[0]')
run "$AVA" logs verify "$SRCDIR/test/golden/sealed/1.sealed" --key "$golden"
exits 'the golden record holds' 0
run python3 -B "$SRCDIR/examples/verify_sealed.py" "$SRCDIR/test/golden/sealed/1.sealed" "$(echo "$golden" | tr a-f A-F)"
exits 'for both' 0
run python3 -B "$SRCDIR/examples/verify_sealed.py" "$T/none"
exits 'a file that is not there is a sentence' 2
equal 'of one line' 1 "$(wc -l <"$ERR")"
run python3 -B "$SRCDIR/examples/verify_sealed.py"
exits 'so is no file at all' 2
printf '{"record":1,"keys":[],"files":5}\n{"seal":{}}\n' >"$T/odd.sealed"
run python3 -B "$SRCDIR/examples/verify_sealed.py" "$T/odd.sealed"
equal 'and what is no record' '1 1' "$CODE $(wc -l <"$ERR")"
sed -e '1s/"files":\[.*\]/"files":[]/' -e '/^{"file":/,$d' "$T/one.sealed" >"$T/none.sealed"
grep -a '^{"end"' "$T/one.sealed" | sed 's/"files":[0-9]*/"files":0/' >>"$T/none.sealed"
run "$AVA" logs verify "$T/none.sealed"
equal 'a record of nothing is none' 1 $CODE
run python3 -B "$SRCDIR/examples/verify_sealed.py" "$T/none.sealed"
equal 'for both' 1 $CODE
check 'the verifier is one page' [ "$(wc -l <"$SRCDIR/examples/verify_sealed.py")" -le 60 ]

play "$LIB/sealed.py" "$T"

# An edit in the root does not become a record.
log=$AVA_DATA_ROOT/logs/subagents/$id.jsonl
sed -i '3s/"lsn"/"lsm"/' "$log"
run "$AVA" export --sealed "$id" --out "$T/edited.sealed"
exits 'a log that was edited is not handed over' 1
contains 'with the line' "line 3 of logs/subagents/$id.jsonl is not what seal" "$ERR"
refuse 'nor is a file left' [ -e "$T/edited.sealed" ] || [ -e "$T/edited.sealed.part" ]
finish
