#!/bin/sh
# kill -9 of the daemon, of an MCP server and of both, in each state that a call of its tools goes
# through: each call has one result, which says what was, none is made twice, no process is left,
# and the run ends.
. "${0%/*}/lib.sh"
. "$LIB/servers.sh"
role held 'mcp__held__*'
# All processes of servers of this test, with their sandboxes; and the server itself.
processes() { ps -eo args | grep -c "[-]-world $T"; }
none_left() { [ "$(processes)" = 0 ]; }
server_pid() { ps -eo pid=,args= | awk -v w="--world $T" 'index($0, w) && $2 ~ /python3$/ { print $1 }'; }
held() { [ -e "$AVA_DATA_ROOT/mcp/held/held" ]; }
over() { "$AVA" status "$ID" --json 2>/dev/null | jq -e '.status == "success"'; }
results()
{
	jq -r 'select(.eventType == "ToolResult").content | .callId' "$AVA_DATA_ROOT/logs/subagents/$ID.jsonl" |
		grep -v '^c[5-9]' | tr '\n' ' '
}
# Both at once: what one of them does when the other has gone is another test.
killed()
{
	killed_server=$(server_pid)
	killed_daemon=$(daemon_pid)
	case $1 in
	daemon) kill -KILL "$killed_daemon" ;;
	server) kill -KILL "$killed_server" ;;
	both) kill -KILL "$killed_daemon" "$killed_server" ;;
	esac
	[ "$1" = server ] || wait_for 15 gone "$killed_daemon"
}

script 'mcp__held__die' 'mcp__held__echo {"text":"cut"}' 'mcp__held__echo {"text":"next"}' 'mcp__held__echo {"text":"after"}'
for state in probing listing call half answered stopping; do
	at=$state
	[ "$state" != stopping ] || at=call
	servers "$(stdio held "--hold $at --world $T" '{"timeout":600}')"
	for victim in daemon server both; do
		rm -rf "$AVA_DATA_ROOT/mcp/held"
		start_daemon
		ID=$("$AVA" run 'try it' --role held --model "offline:$T/script.jsonl" --yes --background </dev/null 2>"$ERR" |
			grep -o 'S-[0-9a-f]*' | head -n 1)
		check "$state, $victim: it is there" wait_for 30 held
		[ "$state" != stopping ] || kill -TERM "$(daemon_pid)"
		killed "$victim"
		if [ "$state" = stopping ] || [ "$victim" != server ]; then
			stop_daemon
			check "$state, $victim: no process is left" wait_for 10 none_left
			start_daemon
		fi
		check "$state, $victim: the run ends" wait_for 30 over
		equal "$state, $victim: each call has one result" 'c1.1 c2.1 c3.1 c4.1 ' "$(results)"
		told c2.1
		case $(cat "$T/told") in
		server_failed* | interrupted* | stopped*) class=named ;;
		' cut') class=answered ;;
		*) class=$(head -c 300 "$T/told") ;;
		esac
		[ "$state $class" != 'answered answered' ] || class=named
		equal "$state, $victim: which says that it was cut, or is the whole answer" named "$class"
		tells c4.1 "$state, $victim: a later call finds the server" ' after'
		equal "$state, $victim: no call is made twice" '' "$(sort "$AVA_DATA_ROOT/mcp/held/texts" | uniq -d)"
		stop_daemon
		check "$state, $victim: no process is left in the end" wait_for 10 none_left
	done
done
check 'the logs are whole' "$AVA" logs verify
finish
