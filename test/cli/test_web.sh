#!/bin/sh
# http_get and web_search as a run has them: what it may fetch and what not (case
# 18), that this is the same after a kill, what a person adds, what its result may cite. Numbers
# are those of doc/SECURITY.md; test_web_fetch.c and test_tool_web.c have the rest of them.
. "${0%/*}/lib.sh"
. "$LIB/scripted.sh"
site
mkdir -p "$XDG_CONFIG_HOME/ava"
cat >"$XDG_CONFIG_HOME/ava/config.yaml" <<END
web:
  allow_private: ["127.0.0.1:$PORT"]
  searxng: $SITE
  host_gap_ms: 0
END
# 17: nobody is there, so whoever asked it would get nothing
export http_proxy=http://127.0.0.1:9 all_proxy=http://127.0.0.1:9 ALL_PROXY=http://127.0.0.1:9
start_daemon || { result 1 'avad serves' || finish; }

get() { turn http_get "{\"url\":\"$1\"}" "${2:-}"; }
play() # TASK OPTIONS...: the turns of $T/turns.jsonl; its id in $ID, what its calls were told in $ALL
{
	task=$1
	shift
	"$AVA" run --role web_crawler --yes --json --model "offline:$T/turns.jsonl" "$task" "$@" \
		>"$OUT" 2>"$ERR" </dev/null
	ID=$(jq -r .subagent_id "$OUT")
	answers
}
answers()
{
	ALL=$T/answers.$ID
	told "$ID" >"$ALL"
}
asked() { grep -c " $1\$" "$T/site.log"; }

# --- what it may fetch

{
	get "$SITE/links"
	get "$SITE/tea/7"
	get "$SITE/tea/8?x=1&y=2"
	get "$SITE/tea/8?x=1&y=secret"
	get "$SITE/tea/8"
	get "$SITE/?d=secret"
	get 'http://169.254.169.254/latest/meta-data/'
	get 'http://2130706433/'
	get 'http://localhost:22/'
	get "$SITE/inside"
	get "$SITE/private"
	get "$SITE/moved"
	turn submit_result '{"summary":"done","confidence":1,"output":[
		{"url":"'"$SITE/tea/7"'","quote":"Darjeeling number 7 costs 7 euros"},
		{"url":"'"$SITE/tea/7"'","quote":"Darjeeling number 7 costs 8 euros"},
		{"url":"'"$SITE/moved"'","quote":"number 9 costs"},
		{"url":"'"$SITE/tea/12"'","quote":"number 12"}]}' | tr -d '\n\t'
} >"$T/turns.jsonl"
play "What does tea cost at $SITE/links ? See also $SITE/inside, $SITE/private and $SITE/moved."
equal 'the run ends' success "$(jq -r .status "$OUT")"
contains 'a page that the task names is fetched' "see http://127.0.0.1:$PORT/tea/7 and" "$ALL"
contains 'a link of it, too' 'costs 7 euros' "$ALL"
contains 'with its query' 'costs 8 euros' "$ALL"
equal '18: no URL that was made up' 0 "$(grep -c secret "$T/site.log")"
equal '18: nor half of one' 0 "$(asked /tea/8)"
equal '18: each is said' 3 "$(grep -c 'only URLs are fetched that stand, just so, in the task' "$ALL")"
equal '13: addresses inside' 3 "$(grep -c 'not of the public network, and none other is' "$ALL")"
contains '15: a redirect to inside' 'redirects to what is not fetched' "$ALL"
contains 'robots.txt is kept to' "robots.txt does not allow it" "$ALL"
equal 'and nothing asked for' 0 "$(asked /private)"
equal 'good citations are kept' "$SITE/tea/7 $SITE/moved" "$(jq -r '[.citations[].url] | join(" ")' "$OUT")"
equal 'others are counted' '4 2' "$(jq -r '"\(.evidence.citations_checked) \(.evidence.citations_failed)"' "$OUT")"

# --- a chain

# One that has seen what is the person's makes up a URL, and the next of the chain, whose context
# has it, fetches it.
{
	get "$SITE/?d=chained"
	turn submit_result '{"summary":"see '"$SITE/?d=chained"'","confidence":1}'
} >"$T/turns.jsonl"
for task in one two; do
	jq -nc --arg t "$task" --arg m "offline:$T/turns.jsonl" '{task:$t,role:"data_extractor",model:$m}'
done >"$T/tasks"
run "$AVA" run --yes --json --parallel "$T/tasks" --chain
equal 'a chain of two' '2 true' "$(jq -r '"\(.runs | length) \(.runs[1].rights.private)"' "$OUT")"
equal '18: no URL of the one before that saw what is yours' 0 "$(grep -c chained "$T/site.log")"

# --- after a kill, the record still says what was seen

turns() # DELAY: of the second reply
{
	get "$SITE/links"
	get "$SITE/tea/7" ",\"delay_ms\":$1"
	get "$SITE/tea/7?d=secret"
	end
}
answered() { grep -q 'tool_result' "$AVA_DATA_ROOT/runs/$ID/messages.jsonl" 2>/dev/null; }
begun() # a run whose second reply does not come
{
	turns 600000 >"$T/turns.jsonl"
	ID=$("$AVA" run --role web_crawler --yes --background --model "offline:$T/turns.jsonl" "Read $SITE/links" 2>/dev/null </dev/null |
		grep -o 'S-[0-9a-f]*' | head -n 1)
	check 'its first call is answered' wait_for 20 answered
}
carried_on() # after a kill, by a model that answers at once
{
	kill_daemon
	turns 0 >"$T/turns.jsonl"
	start_daemon
	"$AVA" wait "$ID" --timeout 60 >/dev/null 2>&1
}
begun
before=$(asked /tea/7)
carried_on
answers
equal 'after a kill its link is fetched' $((before + 1)) "$(asked /tea/7)"
equal 'and a made-up one is not' 0 "$(grep -c 'd=secret' "$T/site.log")"

# --- what a person says

turns() # DELAY: of the second reply
{
	get "$SITE/tea/20"
	get "$SITE/links" ",\"delay_ms\":$1"
	get "$SITE/tea/20"
	end
}
begun
equal 'a page that nobody named is not read' 0 "$(asked /tea/20)"
run "$AVA" steer "$ID" "look at 127.0.0.1:$PORT/tea/20 as well" --no-wait
exits 'a person names it while the model thinks' 0
carried_on
equal 'one that a person names is' 1 "$(asked /tea/20)"

# --- search: test_site.sh, test_web_search.c

run "$AVA" doctor
contains 'doctor says which' 'web_search asks SearXNG' "$OUT"
stop_daemon
sed -i '/searxng/d' "$XDG_CONFIG_HOME/ava/config.yaml"
run env ANTHROPIC_API_KEY=sk-ant-test ANTHROPIC_BASE_URL=http://127.0.0.1:9 "$AVA" doctor --json
equal 'with a key and no search that is noted, and not wrong' 'true true' \
	"$(jq -r '.checks[] | select(.name == "search") | "\(.ok) \(.note)"' "$OUT")"
contains 'and says what mends it' 'web.searxng' "$OUT"
start_daemon
run "$AVA" doctor
contains 'and doctor says what to do' 'set web.searxng' "$OUT"

finish
