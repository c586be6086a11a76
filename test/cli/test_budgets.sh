#!/bin/sh
# Budgets of a month, of a folder and of a tag: a run draws on each that it is of, the refusal says
# whose it was, a kill forgets nothing, and a limit that is raised lets others go on.
. "${0%/*}/lib.sh"
. "$LIB/models.sh"

models turns=3 tool=read_file 'args={"path":"a.txt"}' output=1000 latency=20
spent() { stat .costMicroUsd; }
mkdir -p "$T/site/web" "$T/other" "$XDG_CONFIG_HOME/ava"
echo one >"$T/other/a.txt"
cp "$T/other/a.txt" "$T/site/a.txt"
cp "$T/other/a.txt" "$T/site/web/a.txt"
ln -s site/web "$T/link"
write_budgets() # CENTS of the folder's month
{
	cat >"$XDG_CONFIG_HOME/ava/config.yaml" <<END
notify:
  exec: $T/bin/notify
budget:
  month_cents: 100
  folders: {$T/site: {month_cents: $1}}
  tags: {client=acme: {week_cents: 8}, nightly: {day_cents: 1000}}
END
}
write_budgets 15
mkdir "$T/bin"
printf '#!/bin/sh\nread -r line\necho "$line" >>%s\n' "$T/notices" >"$T/bin/notify"
chmod +x "$T/bin/notify"
alerts() { jq -r 'select(.kind == "noted") | .title' "$T/notices"; } # as notify.exec was told
logged() { "$AVA" logs --type Custom --search budget.alert -o json -n 100 | jq -c '.content.data | [.of,.period,.percent]'; }

run_in() # FOLDER OPTIONS...
{
	folder=$1
	shift
	(cd "$folder" && "$AVA" run 'Look at a.txt.' --model anthropic/claude-sonnet-4-5 \
		--role code_reviewer --yes --json "$@" 2>"$ERR" </dev/null) >"$OUT"
}
ask() { curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/v1$1"; }
used() { ask /health | jq -r --arg of "$1" --arg p "$2" '.budgets[] | select(.of == $of and .period == $p) | .used_cents'; }
start_daemon || { result 1 'avad serves' || finish; }

equal 'health has them' "[[\"\",\"month\",100],[\"$T/site\",\"month\",15],[\"client=acme\",\"week\",8],[\"nightly\",\"day\",1000]]" \
	"$(ask /health | jq -c '[.budgets[] | [.of,.period,.cents]]')"
run_in "$T/site"
equal 'a run of the folder' success "$(jq -r .status "$OUT")"
first=$(jq .cost_cents "$OUT")
equal 'counts in the month' "$first" "$(used '' month)"
equal 'and in the folder' "$first" "$(used "$T/site" month)"
equal 'and in no other' 0 "$(used client=acme week)"
run_in "$T/other"
equal 'one of another folder' success "$(jq -r .status "$OUT")"
equal 'counts there no more' "$first" "$(used "$T/site" month)"
i=0
while [ $i -lt 6 ]; do
	i=$((i + 1))
	run_in "$T/link"
	[ "$(jq -r .status "$OUT")" = success ] || break
done
equal 'below the folder, by way of a link, there is no more at last' cost_exceeded "$(jq -r .status "$OUT")"
contains 'and it says whose' "the budget of $T/site this month of 15 cents" "$OUT"
contains 'and what to do' 'raise its month_cents in budget.folders of config.yaml or go on next month' "$OUT"
check 'no more was spent there' [ "$(used "$T/site" month | cut -d. -f1)" -le 15 ]
run_in "$T/other" --tag client=acme --tag nightly
equal 'elsewhere runs go on' success "$(jq -r .status "$OUT")"
run_in "$T/other" --tag client=acme --tag nightly
equal 'until their tag has no more' cost_exceeded "$(jq -r .status "$OUT")"
contains 'which is said' 'the budget of client=acme this week of 8 cents' "$OUT"

run "$AVA" status
contains 'the overview shows them' 'budget of client=acme this week: $0.0' "$OUT"
contains 'all of them' 'budget of the month: $0.' "$OUT"

# Each mark is told once: in the log, and by notify.
told_all() { [ "$(alerts | wc -l)" = "$(logged | wc -l)" ]; }
wait_for 10 told_all
equal 'what was passed was told' "$(printf '%s\n' "[\"$T/site\",\"month\",50]" "[\"$T/site\",\"month\",80]" | sort)" \
	"$(logged | grep /site | sort)"
contains 'in words' "The budget of $T/site this month is used to 80 %: \$0.1" "$T/notices"
equal 'each once' "" "$(logged | sort | uniq -d)"
told=$(logged)

all() { ask /health | jq -c .budgets; }
before=$(all) paid=$(spent)
kill_daemon
start_daemon
"$AVA" status >"$T/status" # the socket of the killed one is still there before
equal 'after a kill all count as before' "$before" "$(all)"
equal 'and no alert comes again' "$told" "$(logged)"
stop_daemon
start_daemon
equal 'and after a restart, from the sums that are kept' "$before" "$(all)"
run_in "$T/site/web"
equal 'the folder has no more' cost_exceeded "$(jq -r .status "$OUT")"
run_in "$T/other" --tag client=acme
equal 'nor has the tag' cost_exceeded "$(jq -r .status "$OUT")"
equal 'and nothing was asked for' "$paid" "$(spent)"

stop_daemon
write_budgets 60
start_daemon
equal 'another limit changes no sum' "$(echo "$before" | jq -c 'map(.used_cents)')" "$(all | jq -c 'map(.used_cents)')"
run_in "$T/site"
equal 'and lets the runs go on' success "$(jq -r .status "$OUT")"

new=$(logged | grep -c "$T/site.*month" || true)
stop_daemon
start_daemon
"$AVA" status >"$T/status"
equal 'of another limit the marks are told anew, and after a restart no more' "$new" \
	"$(logged | grep -c "$T/site.*month")"

# Ava's own turns are of no folder: they count in the month, and are remembered.
site=$(used "$T/site" month) month=$(used '' month)
(cd "$T/site" && echo 'hello there' | "$AVA" chat >"$T/chat" 2>&1)
equal "Ava's turn is none of the folder" "$site" "$(used "$T/site" month)"
refuse 'but of the month' [ "$month" = "$(used '' month)" ]
month=$(used '' month)
kill_daemon
start_daemon
"$AVA" status >"$T/status" # the socket of the killed one is still there before
equal 'also after a kill' "$month" "$(used '' month)"

printf 'budget:\n  folders: {site: {day_cents: 5}}\n' >"$XDG_CONFIG_HOME/ava/config.yaml"
stop_daemon
run "$AVA" ps
contains 'a mistake is told with its line' 'config.yaml:2: budget.folders has "site"; it must be an absolute path' "$ERR"
check 'every line of the logs is as it should be' python3 "$SRCDIR/test/check_events.py" \
	"$AVA_DATA_ROOT"/logs/ava/*.jsonl "$AVA_DATA_ROOT"/logs/subagents/*.jsonl
finish
