#!/bin/sh
# ava costs, and ava logs --count, in all forms: the sum by any key is the total, whatever ran, Ava's
# own turns among it, and the page's figures are the same; names that a spreadsheet would run.
. "${0%/*}/lib.sh"
. "$LIB/models.sh"

models turns=2 tool=read_file 'args={"path":"a.txt"}' output=300 latency=5
ask() { curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/v1$1"; }
mkdir -p "$T/site/.git" "$T/site/web/deep" "$T/other"
mkdir "$T/odd, \"one\""
for folder in site/web/deep site other 'odd, "one"'; do echo one >"$T/$folder/a.txt"; done
run_in() # FOLDER OPTIONS...
{
	folder=$1
	shift
	(cd "$T/$folder" && "$AVA" run 'Look at a.txt.' --model anthropic/claude-sonnet-4-5 \
		--role code_reviewer --yes --json "$@" 2>"$ERR" </dev/null) >"$OUT"
}

run "$AVA" costs --csv --json
exits 'two forms at once are refused' 2
run "$AVA" costs --by kettle
exits 'as is a key that is none' 2
contains 'with those there are' '"kettle" is nothing to count by: there are type, agent, model' "$ERR"
run "$AVA" logs --count --by tagged
exits 'so by ava logs' 2
start_daemon
run "$AVA" costs
exits 'where nothing ran' 0
contains 'it is said' 'No run began or ended in this time, and no model was called' "$OUT"

run_in site/web/deep --tag client=acme --tag nightly
run_in site --tag client=acme --tag=-1
run_in other --tag client=other
run_in other
(cd "$T/site" && echo hello | "$AVA" chat >"$T/chat" 2>&1)
run "$AVA" run 'x' --model "offline:$T/none.jsonl" --yes
run_in 'odd, "one"'

"$AVA" costs --json >"$T/model"
all=$(jq -c .all "$T/model")
equal 'six runs' '[6,true]' "$(jq -c '[.all.runs, .all.calls > 10]' "$T/model")"
for by in model role agent day week month project user order tag:client type; do
	sums=$("$AVA" costs --by $by --json | jq -c '.rows as $r | .all | with_entries(.key as $k | .value = ([$r[][$k]] | add | . * 10000 | round / 10000))')
	equal "the sum by $by is the total" "$(echo "$all" | jq -cS .)" "$(echo "$sums" | jq -cS .)"
	page=$(ask "/stats?since=30d&by=$by" | jq -c '[.rows[] | [.name,.runs,.failed,.calls,.input,.cached,.output,.cost_cents]] | sort')
	mine=$("$AVA" costs --by $by --json | jq -c '[.rows[] | [.name,.runs,.failed,.calls,.input_tokens,.cached_tokens,.output_tokens,.cost_cents]] | sort')
	equal "and the page has the same by $by" "$mine" "$page"
done
equal 'by the calls one by one it is as much' "$(jq .all.cost_cents "$T/model")" \
	"$(ask '/stats?since=30d' | jq '[.models[].cost_cents] | add | . * 10000 | round / 10000')"
equal 'what the service billed, each call rounded up' true \
	"$(jq --argjson paid "$(stat .costMicroUsd)" '.all.cost_cents * 10000 | . >= $paid and . <= $paid + 100' "$T/model")"
equal 'input that a cache had is a part of it' true "$(jq '.all.cached_tokens > 0 and .all.cached_tokens < .all.input_tokens' "$T/model")"
runs() { "$AVA" costs --by "$1" --json | jq -c '[.rows[] | [.name,.runs]] | sort'; }
equal 'by tag a run counts for each' '[["",3],["-1",1],["client=acme",2],["client=other",1],["nightly",1]]' "$(runs tag)"
equal 'by a key for its value' '[["",3],["acme",2],["other",1]]' "$(runs tag:client)"
equal 'a project is the repository of the folder' 2 "$("$AVA" costs --by project --json | jq --arg p "$T/site" '.rows[] | select(.name == $p) | .runs')"
equal "Ava's own turns are hers" true "$("$AVA" costs --by role --json | jq '.rows[] | select(.name == "ava") | .calls > 0 and .runs == 0')"
equal 'and of no project' true "$("$AVA" costs --by project --json | jq '[.rows[] | select(.name == "") | .calls] | add > 0')"
equal 'with runs that failed' 1 "$(jq .all.failed "$T/model")"

run "$AVA" costs --by tag:client
contains 'a table has its titles' 'TAG:client  RUNS  FAILED  CALLS' "$OUT"
contains 'and all in its last line' "all         6     1" "$OUT"
run "$AVA" costs --until 2020-01-01 --since 2019-01-01
contains 'nothing is a sentence' 'give an earlier --since' "$OUT"
"$AVA" costs --by project --csv >"$T/project.csv"
"$AVA" costs --by tag --csv >"$T/tag.csv"
"$AVA" costs --csv --since 2019-01-01 --until 2020-01-01 >"$T/none.csv"
cat >"$T/checked.py" <<'END'
import csv, sys
def ok(good, name, more=""): print(("ok " if good else "not ok ") + name + ("" if good else f"\n# {more}"))
raw = open("project.csv", "rb").read()
rows = list(csv.DictReader(open("project.csv", newline="")))
ok(raw.count(b"\r\n") == len(rows) + 1 and raw.count(b"\n") == raw.count(b"\r\n"), "lines end as RFC 4180 has it", raw)
ok(list(rows[0]) == ["project", "runs", "failed", "calls", "input_tokens", "cached_tokens", "output_tokens", "cost_cents", "uncosted_calls"], "the first has the titles", rows)
ok(any(r["project"].endswith('/odd, "one"') for r in rows), "a comma and quotes are kept", rows)
ok(sum(int(r["runs"]) for r in rows) == 6 and all(float(r["cost_cents"]) >= 0 for r in rows), "numbers are numbers", rows)
tags = [r["tag"] for r in csv.DictReader(open("tag.csv", newline=""))]
ok("'-1" in tags and "client=acme" in tags, "a name begins no formula", tags)
ok(open("none.csv").read().count("\n") == 1, "of nothing there are titles alone")
END
(cd "$T" && python3 checked.py) >"$T/checked"
results "$T/checked"

run "$AVA" logs --count --by tag:client -o json
equal 'ava logs counts by the same' '["","acme","other"]' "$(jq -sc '[.[]["tag:client"]] | sort' "$OUT")"
run "$AVA" logs --count --by project
contains 'in a table' "$T/site " "$OUT"
# A run of a standing order, with the order's tags.
(cd "$T/other" && "$AVA" schedule add @yearly 'Look at a.txt.' --model anthropic/claude-sonnet-4-5 \
	--role code_reviewer --tag client=late --yes --json </dev/null) >"$T/order" 2>"$ERR"
order=$(jq -r .order_id "$T/order")
"$AVA" schedule run "$order" >"$T/fired" 2>&1 </dev/null
late() { [ "$("$AVA" costs --by tag:client --json | jq '[.rows[] | select(.name == "late") | .calls] | add')" -ge 3 ]; }
wait_for 20 late
equal 'by order its runs are its own' "[1,0]" "$("$AVA" costs --by order --json | jq -c --arg o "$order" '.rows[] | select(.name == $o) | [.runs,.failed]')"
"$AVA" wait $("$AVA" ps --json | jq -r '.[].subagent_id') >/dev/null 2>&1
all=$("$AVA" costs --json | jq -c .all)

kill_daemon
equal 'after a kill, without a daemon, all is as it was' "$all" "$("$AVA" costs --json | jq -c .all)"
finish
