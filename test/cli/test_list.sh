#!/bin/sh
# The list of runs by what they are, and tags, from `ava run` to the figures.
. "${0%/*}/lib.sh"
command -v curl >/dev/null || skip 'no curl'

ask() { curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://ava/api/v1$1"; }
ids() { ask "$1" | jq -r '[.runs[].subagent_id] | join(" ")'; }
start_daemon || { result 1 'avad serves' || finish; }
mkdir "$T/work" && cd "$T/work" && echo 'int kettle_boil(void);' >kettle.h
submit='{"text":"done","tool_calls":[{"name":"submit_result","args":{"output":null,"summary":"done","confidence":0.5}}],"usage":{"input":2000,"output":70}}'
echo "$submit" >"$T/good.jsonl"
echo '{"error":"no"}' >"$T/bad.jsonl"

run "$AVA" run 'Boil the kettle' --role code_reviewer --model "offline:$T/good.jsonl" --tag nightly --tag ops/x --tag nightly --tag client=acme --yes
exits 'a run with tags ends' 0
one=$(ids '/runs?all=1')
equal 'its status has them' '["nightly","ops/x","client=acme"]' "$(ask "/runs/$one" | jq -c .tags)"
equal 'as the list does' '["nightly","ops/x","client=acme"]' "$(ask '/runs?all=1' | jq -c '.runs[0].tags')"
run "$AVA" resume "$one" --yes
two=$(ids '/runs?all=1&limit=1')
refuse 'it is resumed by another run' [ "$one" = "$two" ]
equal 'which keeps the tags' "$two $one" "$(ids '/runs?all=1&tag=ops/x')"
equal 'and is found by a key with its value' "$two $one" "$(ids '/runs?all=1&tag=client%3Dacme')"
run "$AVA" run 'x' --tag 'two words' --yes
exits 'two words are no tag' 2
contains 'and it says what is' 'the tag "two words" must be a name or KEY=VALUE, each of 1 to 40 letters' "$ERR"

cat >tasks.jsonl <<END
{"task":"Fill the kettle","role":"code_reviewer","model":"offline:$T/good.jsonl","tags":["weekly"]}
{"task":"Empty the kettle","role":"code_reviewer","model":"offline:$T/good.jsonl","tags":["weekly"]}
END
run "$AVA" run --parallel tasks.jsonl --yes
exits 'a group with tags ends' 0
G=$(ask '/runs?all=1&tag=weekly' | jq -r '.runs[0].group_id')
equal 'its runs have their numbers' '[["Empty the kettle",2],["Fill the kettle",1]]' \
	"$(ask "/runs?all=1&group=$G" | jq -c '[.runs[] | [.task,.group_index]] | sort')"
equal 'a run alone has none' '["",0]' "$(ask "/runs/$one" | jq -c '[.group_id,.group_index]')"

# --- ava ps
run "$AVA" ps -a --tag weekly -q 'KETTLE fill' --json
equal 'ava ps takes what must hold' '["Fill the kettle"]' "$(jq -c '[.[].task]' "$OUT")"
run "$AVA" ps --status success --sort tokens --since 1h --role code_reviewer --json
equal 'and a status without -a' 3 "$(jq length "$OUT")"
run "$AVA" ps --status done
exits 'a status that is none is refused' 2
contains 'with those that are' 'status is "done"; it must be of live, ended, failed, starting' "$ERR"
run "$AVA" ps --status failed --json
equal 'what failed' "$two" "$(jq -r '.[].subagent_id' "$OUT")"
run "$AVA" ps --status parked
contains 'none is parked' 'There are no runs.' "$OUT"

# --- a page after the other, over a crash
next=$(ask '/runs?all=1&limit=3&counts=1' | jq -r .next)
kill_daemon
start_daemon
wait_for 10 "$AVA" ps
equal 'the next page goes on where the last one ended' "$one" "$(ids "/runs?all=1&limit=3&before=$next")"
equal 'and is the last' '' "$(ask "/runs?all=1&limit=3&before=$next" | jq -r .next)"
equal 'all are counted' '{"total":4,"by_status":{"success":3,"error":1},"cost_cents":0}' "$(ask '/runs?all=1&limit=1&counts=1' | jq -c .counts)"

# --- figures
equal 'figures by tag' '[["client=acme",2],["nightly",2],["ops/x",2],["weekly",2]]' "$(ask '/stats?by=tag' | jq -c '[.rows[] | [.name,.runs]] | sort')"
equal 'by the values of a key' '[["",2],["acme",2]]' "$(ask '/stats?by=tag:client' | jq -c '[.rows[] | [.name,.runs]] | sort')"
equal 'by folder' "[\"$T/work\",4,1]" "$(ask '/stats?by=project' | jq -c '.rows[0] | [.name,.runs,.failed]')"
equal 'by person' "[\"$(id -un)\",4]" "$(ask '/stats?by=user' | jq -c '.rows[0] | [.name,.runs]')"
equal 'what cost nothing is no expensive run' '[]' "$(ask /stats | jq -c .top)"
finish
