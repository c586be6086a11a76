#!/bin/sh
# Seals through the real programs: what a daemon wrote is sealed, a kill -9 is
# a normal state, an edit is named, a seal kept elsewhere shows a root that was
# put back.
. "${0%/*}/lib.sh"
export AVA_SEALS_EVERY=1

mkdir "$T/work" && cd "$T/work" || exit 99
printf 'the parser is here\nint parse_header(void);\n' >parser.c

start_daemon
run "$AVA" run 'where is the parser?' --yes
exits 'a run ends' 0
sealed() { cat "$AVA_DATA_ROOT"/logs/ava/*.jsonl | jq -r 'select(.eventType == "Seal") | .content.files[].path' | sed 's,/.*,,' | sort -u | tr '\n' ' '; }
# Seals follow one another: the first may have less.
all_sealed() { case $(sealed) in *catalog.jsonl*logs*runs*) ;; *) return 1 ;; esac; }
check 'seals follow' wait_for 60 all_sealed
run "$AVA" logs verify
exits 'nothing is amiss while the daemon runs' 0
contains 'and it says so' 'as it was sealed' "$OUT"
equal 'only what is ever added to is sealed' 'catalog.jsonl logs runs ' "$(sealed)"
key=$(stat -c %a "$AVA_DATA_ROOT/seals/key")
equal 'the key is for its owner alone' 600 "$key"

run "$AVA" run 'find the header' --yes
kill_daemon
run "$AVA" logs verify
exits 'a kill leaves an unsealed tail, which is no damage' 0
equal 'which is told in one line' 1 "$(wc -l <"$OUT" | tr -d ' ')"
contains 'with what names them' 'files are not sealed yet (-v names them)' "$OUT"
run "$AVA" logs verify -v
contains '-v names them' 'unsealed logs/subagents/S-' "$OUT"
run "$AVA" logs head
exits 'the newest seal is printed' 0
cp "$OUT" "$T/kept"
cp -r "$AVA_DATA_ROOT" "$T/older"

start_daemon
run "$AVA" run 'where is the parser?' --yes
stop_daemon
run "$AVA" logs verify --json
exits 'nothing is amiss after an orderly end' 0
equal 'and nothing is left unsealed' 0 "$(jq .unsealedBytes "$OUT")"
equal 'nor found' 0 "$(jq '.findings | length' "$OUT")"
run "$AVA" logs verify --head "$T/kept"
exits 'the logs go on from the seal that was kept' 0
"$AVA" logs head >"$T/kept"

id=$(ls "$AVA_DATA_ROOT"/logs/subagents | head -n 1)
id=${id%.jsonl}
run "$AVA" export "$id"
exits 'a run is exported' 0
equal 'with what its log has' "$(jq -sc . "$AVA_DATA_ROOT/logs/subagents/$id.jsonl")" \
	"$(jq -c .events "$OUT")"
equal 'and its result' "$(jq -c .summary "$AVA_DATA_ROOT/runs/$id/result.json")" \
	"$(jq -c .result.summary "$OUT")"
equal 'and what its requests begin with' "$(jq -r '.messages[0].spec.head' "$OUT")" \
	"$(jq -j '.heads[]' "$OUT" | sha256sum | cut -d ' ' -f 1)"
jq -c '.events[]' "$OUT" >"$T/events"
head=heads/$(jq -r '.messages[0].spec.head' "$OUT")
mv "$AVA_DATA_ROOT/$head" "$T/away"
run "$AVA" logs verify
exits 'what its requests begin with is missed' 1
contains 'by name' "its $head is missing" "$OUT"
run "$AVA" export "$id"
exits 'and the run is exported without it' 0
equal 'with all else' "$(wc -l <"$T/events") {}" "$(jq -c '(.events | length), .heads' "$OUT" | xargs)"
contains 'which is said' "$head is left out" "$ERR"
mv "$T/away" "$AVA_DATA_ROOT/$head"
equal 'and its events are a log' "$(jq '.events | length' "$OUT")" "$("$AVA" logs --file "$T/events" --count)"
cp "$AVA_DATA_ROOT/logs/subagents/$id.jsonl" "$T/log-elsewhere"
run "$AVA" logs --file "$T/log-elsewhere" -o json
exits 'a log from elsewhere is asked' 0
check 'and has the bytes of the log' cmp -s "$OUT" "$AVA_DATA_ROOT/logs/subagents/$id.jsonl"
equal 'with every filter' 'SubagentComplete' \
	"$("$AVA" logs --file "$T/log-elsewhere" --type subagent -n 1 -o json | jq -r .eventType)"
equal 'and counts' "$(wc -l <"$AVA_DATA_ROOT/logs/subagents/$id.jsonl")" \
	"$("$AVA" logs --file "$T/log-elsewhere" --count)"
mkdir "$T/tmp"
run env TMPDIR="$T/tmp" "$AVA" logs --file "$T/log-elsewhere" --user nobody -o json
exits 'also for what it does not hold' 0
equal 'and nothing of it stays behind' '' "$(ls "$T/tmp")"
run "$AVA" logs --file "$T/kept"
exits 'a line that is no event is told' 1
run "$AVA" logs --file "$T/none"
exits 'so is a file that is not there' 5
run "$AVA" logs --file "$T/log-elsewhere" -f
exits 'nothing follows in it' 2
run "$AVA" export S-aaaaaaaaaaaa
exits 'a run that never was is told' 5

log=$(ls "$AVA_DATA_ROOT"/logs/subagents/*.jsonl | head -n 1)
name=logs/subagents/${log##*/}
id=${log##*/}
id=${id%.jsonl}
cp "$log" "$T/log"
sed -i '3s/"lsn"/"lsm"/' "$log"
run "$AVA" logs verify
exits 'an edit is found' 1
contains 'and named' "$name:3 " "$OUT"
contains 'as what it is' 'this line was changed' "$OUT"
run "$AVA" logs verify --json "$id"
exits 'also when only this run is asked for' 1
equal 'with its line' 3 "$(jq '.findings[0].line' "$OUT")"
run "$AVA" logs verify catalog.jsonl
exits 'another file is well' 0
cp "$T/log" "$log"
result=$AVA_DATA_ROOT/runs/$id/result.json
cp "$result" "$T/result"
sed -i 's/"summary":"/"summary":"not /' "$result"
run "$AVA" logs verify
exits 'an edited result is found' 1
contains 'and named' "$name: its runs/$id/result.json is not as it was handed in" "$OUT"
rm "$result"
run "$AVA" logs verify
exits 'so is one that is gone' 1
contains 'and named' "$name: its runs/$id/result.json is missing" "$OUT"
cp "$T/result" "$result"
run "$AVA" logs verify
exits 'and as it was all is well' 0

mv "$AVA_DATA_ROOT" "$T/newer" && mv "$T/older" "$AVA_DATA_ROOT"
run "$AVA" logs verify --head "$T/kept"
exits 'an older copy of everything shows against a seal that was kept' 1
contains 'and it says so' 'that was kept is missing' "$OUT"
run "$AVA" logs verify logs/none.jsonl
exits 'a log that is not there is told' 5
echo '{}' >"$T/empty"
run "$AVA" logs verify --head "$T/empty"
exits 'so is a file that holds no seal' 2
finish
