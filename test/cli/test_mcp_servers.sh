#!/bin/sh
# MCP servers as tools: of both eras, over pipes and HTTP, well behaved and not. The server of these
# tests (mcp_server.py) writes down what it is asked, and whatever a client may not do.
. "${0%/*}/lib.sh"
. "$LIB/servers.sh"
processes() { ps -eo args | grep "[p]ython3 $SERVER" | grep -vce --http; }
none_left() { [ "$(processes)" = 0 ]; }

servers "$(stdio modern '--era modern')" "$(stdio legacy '--era legacy' '{"network":true,"private":false}')" \
	"$(stdio broken '--at-start exit')" "{\"unseen\":{\"command\":\"$T/elsewhere/bin/server\"}}" \
	"{\"half\":{\"command\":\"$T/server/half\",\"ava\":{\"read\":[\"$T/server\"]}}}"
mkdir -p "$T/elsewhere/bin"
printf '#!%s/elsewhere/bin/sh\n' "$T" >"$T/server/half"
cp /bin/sh "$T/elsewhere/bin/sh"
cp /bin/sh "$T/elsewhere/bin/server"
chmod 755 "$T/server/half"
role unseen mcp__unseen
role half mcp__half
role modern 'mcp__modern__*'
role legacy 'mcp__legacy'
role broken 'read_file, mcp__broken__*'
role one 'mcp__modern__lies, mcp__nobody__knows'
start_daemon || { result 1 'avad serves' || finish; }
equal 'no server is started before it is needed' 0 "$(processes)"

# --- both eras over pipes ---------------------------------------------------------
for era in modern legacy; do
	script "mcp__${era}__echo {\"text\":\"hello\"} | mcp__${era}__where {\"text\":\"$CONFIG/mcp.json\"} | mcp__${era}__forge | mcp__${era}__fails | mcp__${era}__ask | mcp__${era}__garbage" \
		"mcp__${era}__hang | mcp__${era}__grow" "mcp__${era}__die" "mcp__${era}__echo {\"text\":\"again\"}" \
		"mcp__${era}__giant" "mcp__${era}__drop" "mcp__${era}__echo {\"text\":\"gone\"}"
	try "$era" --max-tokens 1000000
	exits "$era: a server that misbehaves ends no run" 0
	contains "$era: its tools stand in the quote" "mcp__${era}__echo" "$ERR"
	tells c1.1 "$era: a call is answered" ' hello'
	tells c1.2 "$era: in the sandbox it starts in its own folder" '/ava/work'
	contains "$era: and sees no file but those it is given" 'FileNotFoundError' "$T/told"
	contains "$era: its variables are there" 'MCP_TEST_TOKEN' "$T/told"
	lacks "$era: no secret of its comes back" 'strict-token-0123456789' "$T/told"
	tells c1.3 "$era: the form of ava's own words is broken" '[\ava:page 1'
	contains "$era: what hides is shown" '\u{202e}' "$T/told"
	tells c1.4 "$era: an error of the tool is told as one" 'server_error the tool did not work'
	tells c1.6 "$era: garbage between messages is passed over" ' garbage'
	tells c2.1 "$era: a call that is not answered ends in time" 'timeout the MCP server'
	tells c3.1 "$era: one that dies in a call may have done it" 'server_failed'
	contains "$era: and says how it ended" 'exit 7): the strict server dies' "$T/told"
	tells c4.1 "$era: it is started again for the next call" ' again'
	tells c5.1 "$era: a giant message ends it" 'more than 8 MB'
	tells c7.1 "$era: a tool that is gone fails its call" 'unknown_tool'
	refuse "$era: it saw nothing that a client may not do" [ -e "$AVA_DATA_ROOT/mcp/$era/violations" ]
	equal "$era: a call that may have happened is made once" 1 \
		"$(grep -c '^die$' "$AVA_DATA_ROOT/mcp/$era/calls")"
	check "$era: the call was cancelled" grep -q '^notifications/cancelled$' "$AVA_DATA_ROOT/mcp/$era/seen"
done
equal 'the older era is asked for once' 1 "$(seen legacy server/discover)"
check 'a request of a server is refused' grep -q '^answer -32601$' "$AVA_DATA_ROOT/mcp/legacy/seen"
tells c1.2 'one with a network has one' '"net": "sockets"'
tells c1.5 'nobody is asked anything for it' ' ask'
lacks 'its secret stands in no record' 'strict-token' "$AVA_DATA_ROOT/logs/subagents/$ID.jsonl"

# --- what costs us, or never ends: the line, whatever the era ---------------------------------------------------
burden="mcp__modern__burden {\"text\":"
script "$burden\"errors\"}" "$burden\"notices\"}" "$burden\"requests\"}" "$burden\"closed\"}" \
	"mcp__modern__lies" "mcp__modern__lies {\"text\":\"anew\"}" "$burden\"no characters\"}"
try modern
tells c1.1 'what it writes to where errors go holds up nothing' ' errors'
tells c2.1 'one that writes notices without an end is ended' 'server_failed the MCP server'
contains 'and why' 'what nobody asked for' "$T/told"
tells c3.1 'or requests' 'what nobody asked for'
tells c4.1 'a call that it cannot answer ends in time' 'timeout'
tells c5.1 'when it does not say a word to the next one either, it is ended' 'does not answer any more'
tells c6.1 'and started again' ' anew'
told c7.1
equal 'characters that are none are shown as that' ' a�b�' "$(cat "$T/told")"

# --- rights and roles -------------------------------------------------------------
propose()
{
	curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" http://x/api/v1/runs \
		-d "{\"task\":\"try\",\"role\":\"$1\",\"model\":\"offline:$T/script.jsonl\"}"
}
rights() { propose "$1" | jq -c .quote.rights; }
equal 'folders are the person'"'"'s, without a network there is no way out' \
	'{"private":true,"untrusted":true,"out":false}' "$(rights modern)"
equal 'what the entry says counts, annotations do not' \
	'{"private":false,"untrusted":true,"out":true}' "$(rights legacy)"
run "$AVA" run 'try' --role broken --yes </dev/null
exits 'a server that does not start: no run' 1
contains 'and says which, and why' 'the MCP server broken cannot be had: it ended (exit 3): Error: no database here' "$ERR"
refuse 'what it wrote moves no terminal' grep -q "$(printf '\033')" "$ERR"
contains 'and tells no secret' 'for [redacted]' "$ERR"
for name in "unseen $T/elsewhere/bin/server" "half $T/server/half"; do
	run "$AVA" run 'try' --role "${name% *}" --yes </dev/null
	contains "what the sandbox does not show is to be named: ${name% *}" "does not show it ${name#* }, or" "$ERR"
done
"$AVA" doctor >"$OUT" 2>&1 </dev/null
contains 'the doctor says so, too' 'mcp broken it ended (exit 3): Error: no database here' "$OUT"
refuse 'and moves none' grep -q "$(printf '\033')" "$OUT"
contains 'and tells none' 'for [redacted]' "$OUT"
script 'mcp__modern__lies {"text":"one"}' 'mcp__modern__where'
try one
tells c1.1 'a role has the tools it names' ' one'
tells c2.1 'and no others' 'unknown_tool'

# --- a change of the list ---------------------------------------------------------
changed() { propose "$1" | jq -e --arg t "mcp__$1__late" '.quote.tools | index($t)' >"$OUT"; }
for era in modern legacy; do
	refuse "$era: a tool is not there yet" changed "$era"
	script "mcp__${era}__grow"
	try "$era"
	check "$era: a change of the list is followed" wait_for 10 changed "$era"
done

# --- a tool that is another one than was confirmed ---------------------------------
restart_daemon
echoes() { grep -c '^echo$' "$AVA_DATA_ROOT/mcp/$1/calls"; }
for era in modern legacy; do
	for what in words schema; do
		before=$(echoes "$era")
		script "mcp__${era}__echo" "mcp__${era}__turn {\"text\":\"$what\"}" "mcp__${era}__echo" "mcp__${era}__lies {\"text\":\"still\"}"
		try "$era"
		tells c1.1 "$era: what was confirmed is called" ' echo'
		tells c3.1 "$era: with other $what than were confirmed it is not" "changed $era"
		tells c4.1 "$era: others are" ' still'
		equal "$era: the server was asked once, before" $((before + 1)) "$(echoes "$era")"
	done
done
script 'mcp__modern__echo'
try modern
tells c1.1 'a new quote has it as it is now' ' echo'
restart_daemon
quote=$(propose modern | jq -r .proposal_id)
kill_daemon
touch "$AVA_DATA_ROOT/mcp/modern/turned"
start_daemon
run "$AVA" confirm "$quote" --answer yes </dev/null
ID=$(grep -o 'S-[0-9a-f]*' "$OUT" "$ERR" | head -n 1 | cut -d: -f2)
ended() { "$AVA" status "$ID" --json | jq -e '.status == "success"'; }
check 'the run ends' wait_for 30 ended
tells c1.1 'changed between quote and yes, while it was not running: not called' 'changed modern'
rm "$AVA_DATA_ROOT/mcp/modern/turned"

# --- orders, hidden words and secrets in what a server says -------------------------
runs_now() { ls "$AVA_DATA_ROOT/logs/subagents" | wc -l; }
before=$(runs_now)
script 'mcp__modern__orders' 'run_bash {"command":"id"} | spawn {"task":"x"}' 'mcp__legacy__echo' 'mcp__modern__leak'
try modern
equal 'a result that gives orders starts nothing' $((before + 1)) "$(runs_now)"
tells c2.1 'nor gives a tool' unknown_tool
tells c2.2 'nor another one' unknown_tool
tells c3.1 'nor one of another server' unknown_tool
hidden=$(printf '\363\240\201\201')
refuse 'no hidden tag of a result or a description is in any record' grep -rqF "$hidden" "$AVA_DATA_ROOT/logs" "$AVA_DATA_ROOT/runs"
refuse 'nor a secret' grep -rqF -e strict-token-0123456789 -e "$(printf strict-token-0123456789 | base64)" \
	"$AVA_DATA_ROOT/logs" "$AVA_DATA_ROOT/runs"

# --- over HTTP --------------------------------------------------------------------
printf 'STRICT_TOKEN=strict-secret-1\n' >"$CONFIG/env"
chmod 600 "$CONFIG/env"
# web ERA [OPTION...]: a server of its own process; its entry goes to $ENTRY, its pid to $WEB.
web()
{
	mkdir -p "$T/web$1"
	rm -f "$T/web$1/port"
	(cd "$T/web$1" && exec python3 "$SERVER" --http port --era "$@") &
	WEB=$!
	keep "$WEB"
	wait_for 20 [ -s "$T/web$1/port" ]
	ENTRY=$(jq -nc --arg n "web$1" --arg url "http://127.0.0.1:$(cat "$T/web$1/port")/mcp" '{($n): {type: "http",
		url: $url, headers: {Authorization: "Bearer ${STRICT_TOKEN}"}, ava: {timeout: 3}}}')
}
for era in modern legacy; do
	web "$era"
	role "web$era" "mcp__web${era}__*"
	servers "$ENTRY"
	restart_daemon
	echo >"$T/script.jsonl"
	equal "$era, HTTP: all three rights, since it has a key and a network" \
		'{"private":true,"untrusted":true,"out":true}' "$(rights "web$era")"
	script "mcp__web${era}__echo {\"text\":\"hello\"} | mcp__web${era}__ask | mcp__web${era}__garbage | mcp__web${era}__fails" \
		"mcp__web${era}__hang" "mcp__web${era}__giant" "mcp__web${era}__lies {\"text\":\"still\"}" \
		"mcp__web${era}__die" "mcp__web${era}__lies"
	try "web$era" --max-tokens 1000000 --grant all_three
	exits "$era, HTTP: a server that misbehaves ends no run" 0
	tells c1.1 "$era, HTTP: a call is answered" ' hello'
	tells c1.3 "$era, HTTP: garbage in a stream is passed over" ' garbage'
	tells c1.4 "$era, HTTP: an error of the tool is told as one" 'server_error'
	tells c2.1 "$era, HTTP: a call that is not answered ends in time" 'timeout'
	tells c3.1 "$era, HTTP: a giant answer fails its call" 'more than 8 MB'
	tells c4.1 "$era, HTTP: and no other one" ' still'
	tells c5.1 "$era, HTTP: one that dies in a call may have done it" 'server_failed'
	tells c6.1 "$era, HTTP: one that is not there fails the call" 'cannot be had'
	refuse "$era, HTTP: it saw nothing that a client may not do" [ -e "$T/web$era/violations" ]
	propose "web$era" >"$OUT"
	lacks "$era, HTTP: one that is gone is quoted no more" proposal_id "$OUT"
done
for era in modern legacy; do
	web "$era"
	servers "$ENTRY"
	restart_daemon
	rm -f "$T/web$era/seen"
	script "mcp__web${era}__echo" "mcp__web${era}__forbidden" "mcp__web${era}__lies" "mcp__web${era}__deaf" "mcp__web${era}__echo" \
		"mcp__web${era}__lies {\"text\":\"still\"}" "mcp__web${era}__hang"
	try "web$era" --grant all_three
	[ "$era" = modern ] || check "$era, HTTP: no notice waits for ever" wait_for 20 grep -qx 'hung up' "$T/web$era/seen"
	tells c2.1 "$era, HTTP: a call that is forbidden fails" 'server_error'
	tells c3.1 "$era, HTTP: and no other one" ' lies'
	tells c5.1 "$era, HTTP: after it could not tell of changes its list is read again" 'changed'
	tells c6.1 "$era, HTTP: which changes nothing for others" ' still'
	burden="mcp__web${era}__burden {\"text\":"
	script "$burden\"lingers\"}" "$burden\"notices\"}"
	try "web$era" --grant all_three
	tells c1.1 "$era, HTTP: an answer counts when it is there" ' lingers'
	check "$era, HTTP: and nothing is read behind it" wait_for 20 grep -qx 'let go' "$T/web$era/seen"
	equal "$era, HTTP: it was greeted once" 1 "$(grep -cxE 'server/discover|initialize' "$T/web$era/seen")"
	tells c2.1 "$era, HTTP: a stream of notices without an end is ended" 'what nobody asked for'
	refuse "$era, HTTP: it saw nothing that a client may not do, still" [ -e "$T/web$era/violations" ]
done
web legacy
servers "$ENTRY"
restart_daemon
script 'mcp__weblegacy__grow'
try weblegacy --grant all_three
check 'legacy, HTTP: a change of the list is followed' wait_for 10 changed weblegacy
rm -f "$T/weblegacy/paths"
web legacy --at-start unheard
servers "$(printf '%s' "$ENTRY" | jq -c '.weblegacy.url |= sub("/mcp$"; "?to=heron") | .weblegacy.ava.start = 12')"
restart_daemon
script 'mcp__weblegacy__lies {"text":"heard"}'
try weblegacy --grant all_three
tells c1.1 'legacy, HTTP: that what it never answered breaks off ends no call' ' heard'
equal 'an address without a path keeps what is asked of it' '/?to=heron' "$(sort -u "$T/weblegacy/paths")"
web legacy --at-start lost
LOST=$ENTRY
web modern --at-start redirect
servers "$ENTRY" "$LOST" '{"meta":{"url":"http://169.254.169.254/mcp"}}' '{"private":{"url":"http://10.0.0.1/mcp"}}'
role meta mcp__meta
role private mcp__private
restart_daemon
run "$AVA" run 'try' --role webmodern --yes </dev/null
contains 'a redirect is no answer' 'status 307' "$ERR"
refuse 'and is not followed' [ -e "$T/webmodern/violations" ]
run "$AVA" run 'try' --role weblegacy --yes </dev/null
contains 'where nothing is the address is named' 'no server at its url knows ava (status 404)' "$ERR"
for name in meta private; do
	run "$AVA" run 'try' --role "$name" --yes </dev/null
	exits "an address of the network without TLS, $name: no run" 1
	contains "and why, $name" "the MCP server $name cannot be had: " "$ERR"
	contains "in words, $name" 'http' "$ERR"
done

# a server that is started anew has forgotten the session, and did nothing of what it was asked
web legacy
servers "$(printf '%s' "$ENTRY" | jq -c '.weblegacy.ava.timeout = 60')"
restart_daemon
rm -f "$T/weblegacy/seen" "$T/weblegacy/texts"
lies="mcp__weblegacy__lies {\"text\":"
script "$lies\"forgets\"}" "$lies\"one\"} | $lies\"two\"} | $lies\"three\"}" "$lies\"forgets\"}" "$lies\"four\"} | $lies\"late\"}" \
	"$lies\"forgets always\"}" "$lies\"never\"}"
try weblegacy --grant all_three
for call in 'c2.1 one' 'c2.2 two' 'c2.3 three' 'c4.1 four' 'c4.2 late'; do
	told "${call% *}"
	equal "a call into a forgotten session is made in another: ${call#* }" " ${call#* }" "$(cat "$T/told")"
done
equal 'each once' 'forgets,forgets,forgets always,four,late,one,three,two' \
	"$(sed -n 's/^lies //p' "$T/weblegacy/texts" | LC_ALL=C sort | paste -sd,)"
tells c6.1 'where that is forgotten at once the call fails' 'Session not found'
equal 'and it was greeted for that once more' 4 "$(grep -cx initialize "$T/weblegacy/seen")"
refuse 'it saw nothing that a client may not do' [ -e "$T/weblegacy/violations" ]

web legacy
servers "$ENTRY"
printf 'STRICT_TOKEN=another-secret-2\n' >"$CONFIG/env"
restart_daemon
run "$AVA" run 'try' --role weblegacy --yes </dev/null
exits 'a wrong key: no run' 1
contains 'and what to look at' 'does not let ava in (status 401)' "$ERR"
run "$AVA" doctor </dev/null
contains 'the doctor says so, too' 'mcp weblegacy' "$OUT"
lacks 'no key is shown' 'another-secret' "$OUT"
check 'no key stands below the data root' sh -c '! grep -rqF -e strict-secret -e another-secret "$AVA_DATA_ROOT"'

# --- cancel, a quote over kill -9, replay (calls: test_mcp_kill.sh) ------------------------------------------------------
servers "$(stdio modern '--era modern' '{"timeout":600}')"
stop_daemon
check 'no server outlives the daemon' wait_for 10 none_left
start_daemon
script 'mcp__modern__hang' 'mcp__modern__echo {"text":"after"}'
hangs() { grep -q '^hang$' "$AVA_DATA_ROOT/mcp/modern/calls" 2>/dev/null; }
rm -f "$AVA_DATA_ROOT/mcp/modern/calls"
ID=$("$AVA" run 'try it' --role modern --model "offline:$T/script.jsonl" --yes --background </dev/null 2>/dev/null | grep -o 'S-[0-9a-f]*' | head -n 1)
check 'a call is at work' wait_for 20 hangs
"$AVA" cancel "$ID" >"$OUT" 2>&1
cancelled() { "$AVA" status "$ID" --json | jq -e '.status == "cancelled"'; }
check 'cancel ends it at once' wait_for 5 cancelled
check 'and the server that was at work on it' wait_for 10 none_left
script 'mcp__modern__burden {"text":"stuck"}'
ID=$("$AVA" run 'try it' --role modern --model "offline:$T/script.jsonl" --yes --background </dev/null 2>/dev/null | grep -o 'S-[0-9a-f]*' | head -n 1)
stuck() { grep -q '^is stuck$' "$AVA_DATA_ROOT/mcp/modern/calls"; }
check 'a call is at work, and a new list is waited for' wait_for 20 stuck
pids() { ps -eo pid,args | awk -v s="python3 $SERVER" 'index($0, s) && !/awk|--http/ { print $1 }'; }
at_work=$(pids)
refuse 'in a process' [ -z "$at_work" ]
none_of_them() { ! ps -o pid= -p "$(echo $at_work | tr ' ' ,)" >/dev/null; }
"$AVA" cancel "$ID" >"$OUT" 2>&1
check 'cancel ends the server then, too' wait_for 5 none_of_them
script 'mcp__modern__echo {"text":"confirmed"}'
quote=$(propose modern | jq -r .proposal_id)
kill_daemon
start_daemon
run "$AVA" confirm "$quote" --answer 'yes, without mcp__modern__hang' </dev/null
exits 'a quote outlives a kill -9, with its tools' 0
ID=$(grep -o 'S-[0-9a-f]*' "$OUT" "$ERR" | head -n 1 | cut -d: -f2)
check 'what was confirmed runs' wait_for 30 ended
tells c1.1 'with the tools that were quoted' ' confirmed'
tools() { jq -c 'select(.eventType == "SubagentSpawn").content.tools' "$AVA_DATA_ROOT/logs/subagents/$ID.jsonl" >"$T/tools"; }
tools
contains 'but for the one that was left out: others stay' 'mcp__modern__echo' "$T/tools"
lacks 'but for the one that was left out' 'mcp__modern__hang' "$T/tools"
rm "$CONFIG/mcp.json"
restart_daemon
all_replay 'every run replays without any server'
run "$AVA" resume "$ID" --yes </dev/null
exits 'a run goes on without a server that is not configured any more' 0
stop_daemon

# --- servers that end at what they do not know; what is given is what was named ------
mkdir "$T/given"
servers "$(stdio modern '--era modern' "{\"write\":[\"$T/given\"]}")" "$(stdio legacy '--era legacy --at-start strict')" \
	"$(stdio mute '--era legacy --at-start mute' '{"start":12}')" "$(stdio slow '--at-start slow' '{"start":12}')"
role mute mcp__mute
role slow mcp__slow
start_daemon
script 'mcp__legacy__lies {"text":"old"}'
try legacy
tells c1.1 'one that ends at the newer era is started again, for the older' ' old'
script 'mcp__mute__die' 'mcp__mute__lies {"text":"once more"}'
try mute
tells c1.1 'one that passes the newer era over is greeted, and dies in a call' 'exit 7): the strict server dies'
tells c2.1 'and is started again, too' ' once more'
script 'mcp__slow__lies {"text":"late"}'
try slow
tells c1.1 'one of the newer era that answers after it was greeted, which it refuses, is heard' ' late'
script 'mcp__modern__where'
try modern
exits 'a folder that is given' 0
restart_daemon
rmdir "$T/given"
ln -s "$CONFIG" "$T/given"
run "$AVA" run 'try' --role modern --yes </dev/null
exits 'a link in its place is not' 1
contains 'and why' 'reached through a link by now' "$ERR"
stop_daemon

# --- a server that says nothing, and one that nobody uses ----------------------------
servers "$(stdio silent '--at-start silent' '{"start":1}')" "$(stdio modern '--era modern' '{"idle":1}')" \
	"$(stdio restless '--era legacy --at-start restless')" "$(stdio held '--hold probing' '{"timeout":2}')"
role silent 'mcp__silent__*'
role held 'mcp__held__*'
role restless 'mcp__restless__*'
start_daemon
run "$AVA" run 'try' --role silent --yes </dev/null
exits 'a start has a limit' 1
contains 'and says so' 'the MCP server silent cannot be had: it did not answer within 1 s' "$ERR"
check 'what did not start is ended' wait_for 10 none_left
run "$AVA" run 'try' --role restless --yes </dev/null
exits 'a list that changes whenever it is read is none' 1
contains 'and says so, at once' 'its list of tools changes whenever it is read' "$ERR"
script 'mcp__held__die' 'mcp__held__echo'
try held
tells c2.1 'a call that waits for a start too long says that it was not made' 'cannot be had: it takes longer to start'
restart_daemon
script 'mcp__modern__hang' 'mcp__modern__echo {"text":"idle"}'
try modern
tells c1.1 'one with a call at work is not idle' 'timeout'
tells c2.1 'and goes on' ' idle'
check 'without use it ends' wait_for 10 none_left
script 'mcp__modern__echo {"text":"woken"}'
try modern
tells c1.1 'the next use starts it again' ' woken'
check 'and ends once more' wait_for 10 none_left
stop_daemon
servers "$(stdio silent '--at-start silent')"
start_daemon
curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" http://x/api/v1/runs -d '{"task":"try","role":"silent"}' >"$T/waits" &
WAITS=$!
keep "$WAITS"
started() { [ "$(processes)" -gt 0 ]; }
check 'a quote starts its server' wait_for 20 started
stop_daemon
wait "$WAITS"
contains 'a stop tells who waits for it' 'ava stops' "$T/waits"
check 'and leaves nothing' wait_for 10 none_left

servers "$(stdio silent '--at-start silent' '{"start":4}')" "$(stdio traceback '--at-start traceback')" "$(stdio modern '--era modern' '{"idle":1}')"
"$AVA" doctor >"$OUT" 2>&1 </dev/null
check 'the doctor does not hold it against a server that it has ended by then' grep -q '^ok *mcp modern' "$OUT"
contains 'while another one was waited for' 'mcp silent it did not answer within 4 s' "$OUT"
contains 'a secret is taken out before a long line is cut' 'xxx[redacted]' "$OUT"
lacks 'nor is a part of it left' 'xstrict-token' "$OUT"

# --- mcp.json ---------------------------------------------------------------------
bad()
{
	printf '%s' "$2" >"$CONFIG/mcp.json"
	run "$AVA" doctor </dev/null
	contains "refused, with a reason: $1" "$3" "$OUT"
}
bad 'no JSON' '{' 'mcp.json: '
bad 'no servers' '{"servers":{}}' 'the member mcpServers'
bad 'neither command nor url' '{"mcpServers":{"a":{}}}' 'either command or url'
bad 'a name with __' '{"mcpServers":{"a__b":{"command":"sh"}}}' 'single _'
bad 'an unknown right' '{"mcpServers":{"a":{"command":"sh","ava":{"reads":[]}}}}' 'unknown member reads'
bad 'no seconds' '{"mcpServers":{"a":{"command":"sh","ava":{"idle":0}}}}' 'ava.idle must be whole seconds'
bad 'all files' '{"mcpServers":{"a":{"command":"sh","ava":{"read":["/"]}}}}' 'whole file system'
bad 'no such program' '{"mcpServers":{"a":{"command":"no-such-program-here"}}}' 'no program no-such-program-here'
bad 'an unset variable' '{"mcpServers":{"a":{"url":"https://e.example/","headers":{"A":"${NO_SUCH_VALUE}"}}}}' 'NO_SUCH_VALUE'
bad 'an older transport' '{"mcpServers":{"a":{"type":"sse","url":"https://e.example/"}}}' 'there are stdio'
printf '{"mcpServers":{}}' >"$CONFIG/mcp.json"
chmod 666 "$CONFIG/mcp.json"
restart_daemon
run "$AVA" run 'try' --role modern --yes </dev/null
exits 'a file that others may write is not read, and the daemon works without' 1
contains 'with what to do, for who wants one of its servers' 'chmod go-w' "$ERR"
run "$AVA" run 'where is the torn tail?' --role researcher --yes </dev/null
exits 'who wants none is held up by nothing' 0
chmod 600 "$CONFIG/mcp.json"
chmod 777 "$CONFIG"
run "$AVA" doctor </dev/null
contains 'nor is one in a folder where others may put another' "$CONFIG can be written by others" "$OUT"
chmod 700 "$CONFIG"
ln -sf "$T/nowhere" "$CONFIG/mcp.json"
run "$AVA" doctor </dev/null
contains 'a link that leads nowhere is not the same as no file' 'mcp.json is a link to a file that is not there' "$OUT"
rm "$CONFIG/mcp.json"
servers '{"gone":{"command":"no-such-program-here"}}' '{"off":{"command":"no-such-program-here","disabled":true}}' \
	"$(stdio modern '--era modern')"
role gone 'mcp__gone__*'
restart_daemon
run "$AVA" run 'try' --role gone --yes </dev/null
exits 'a server whose entry is wrong cannot be had' 1
contains 'with the reason' 'the MCP server gone cannot be had: there is no program no-such-program-here' "$ERR"
script 'mcp__modern__echo {"text":"hello"}'
try modern
tells c1.1 'the others can' ' hello'
equal 'what the run does names server and tool' 'Using mcp__modern__echo {"text":"hello"}' \
	"$(jq -r 'select(.eventType == "Activity").content.text | select(startswith("Using"))' "$AVA_DATA_ROOT/logs/subagents/$ID.jsonl")"
run "$AVA" doctor </dev/null
contains 'the doctor says so of that one' 'mcp gone' "$OUT"
lacks 'and nothing of one that is switched off' 'mcp off' "$OUT"
stop_daemon

mkdir "$T/project"
servers
printf '{"mcpServers":{"evil":{"command":"touch","args":["%s"]}}}' "$T/evil" >"$T/project/.mcp.json"
cp "$T/project/.mcp.json" "$T/project/mcp.json"
cd "$T/project" || exit 99
run "$AVA" doctor </dev/null
lacks 'a working folder has no say' evil "$OUT"
refuse 'and starts nothing' [ -e "$T/evil" ]
finish
