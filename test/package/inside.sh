#!/bin/sh
# inside.sh deb|tarball - in a private root, as its root: install ava from /in, use it as a person
# who has nothing special, remove it, and see that nothing is left but what that person's runs kept.
# In /in: the files of a release, and in /in/needs the packages that ava depends on and its
# installer does not bring (play.py). There is no network but the loopback.
set -u

how=$1 n=0 failed=0 MODEL=
person=/home/person

result()
{
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $how: $2"
	else
		failed=1
		echo "not ok $n - $how: $2"
	fi
}

# check NAME COMMAND...: its output is shown where it fails.
check()
{
	name=$1
	shift
	"$@" >/tmp/check.out 2>&1
	code=$?
	[ "$code" -eq 0 ] || sed 's/^/# /' /tmp/check.out
	result "$code" "$name"
}

# as COMMAND...: the person, with an environment of his own.
as()
{
	env -i HOME="$person" USER=person LANG=C.UTF-8 PATH="$person/.local/bin:/usr/local/bin:/usr/bin:/bin" \
		${MODEL:+AVA_MODEL="$MODEL"} setpriv --reuid 1000 --regid 1000 --clear-groups --no-new-privs \
		sh -c 'cd "$HOME/project" && exec "$@"' sh "$@"
}

# Files and links of the root, but for what dpkg keeps about itself, caches and logs.
list()
{
	find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /in -o -path /tmp -o -path /run -o -path /var/lib/dpkg -o \
		-path /var/cache -o -path /var/log -o -path "$person" \) -prune -o -print | sort
}
list_person() { find "$person" -path "$person/project" -prune -o -print | sort; }

turn() { printf '{"tool_calls":[{"name":"%s","args":%s}]}\n' "$1" "$2"; }

# get URL: the answer to one GET, by bash alone.
get()
{
	rest=${1#http://}
	# shellcheck disable=SC2016
	bash -c 'exec 3<>"/dev/tcp/${1%:*}/${1#*:}" && printf "GET %s HTTP/1.0\r\nHost: %s\r\n\r\n" "$2" "$1" >&3 && cat <&3' \
		bash "${rest%%/*}" "/${rest#*/}"
}

page_answers()
{
	url=$(as ava dashboard --no-open | grep -o 'http://[^/ ]*') || return 1
	get "$url/" >/tmp/answer
	LC_ALL=C sed '1,/^\r$/d' /tmp/answer | gunzip >/tmp/page # always packed
	grep -q '<script' /tmp/page && ! grep -q 'without its page' /tmp/page || { head -n 1 /tmp/answer; cat /tmp/page; false; }
}

hook_is_recorded()
{
	printf '{"hook_event_name":"SubagentStart","session_id":"s1","agent_id":"a1","agent_type":"Explore","cwd":"%s"}\n' "$person/project" |
		as ava hook && grep -rq Explore "$person/.claude/agent-activity"
}

mcp_answers()
{
	{
		echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"check","version":"1"}}}'
		echo '{"jsonrpc":"2.0","method":"notifications/initialized"}'
		echo '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
	} | as ava mcp >/tmp/mcp
	grep -q '"serverInfo"' /tmp/mcp && grep -q '"tools":\[{' /tmp/mcp || { cat /tmp/mcp; false; }
}

# A command of a subagent is run in the sandbox: it sees the project, and not the person's home.
sandbox_runs()
{
	{
		turn run_bash '{"command":"echo in the sandbox: $(cat note.txt); ls -a /home/person","cwd":"."}'
		turn submit_result '{"summary":"done","confidence":1}'
	} >"$person/project/turns.jsonl"
	MODEL=offline:$person/project/turns.jsonl
	as ava restart && as ava run 'look at the note' --role code_reviewer --yes || return 1
	MODEL=
	as sh -c 'grep -rh "in the sandbox: a torn page" "$HOME"/.local/share/ava/runs/*/messages.jsonl' >/tmp/said &&
		! grep -q secret.txt /tmp/said || { cat /tmp/said; false; }
}

page_is_read()
{
	as sh -c 'printf "<html><body><main><h1>A page</h1><p>of text</p></main></body></html>" | "$1" --type text/html' sh "$1" >/tmp/read &&
		grep -q '# A page' /tmp/read || { cat /tmp/read; false; }
}

# The pages of the manual, by `man` where that is, or at the places where it looks.
manual_is_found()
{
	for page in 1/ava 1/ava-run 5/ava-config 8/avad; do
		if command -v man >/dev/null; then
			as man -w "${page%/*}" "${page#*/}" || return 1
		else
			zcat -f "$share/man/man$page.${page%/*}"* | grep -q '^\.TH' || { echo "no $page below $share/man"; return 1; }
		fi
	done
}

completes()
{
	# shellcheck disable=SC2016
	as bash -c 'eval "$(ava completion bash)" && complete -p ava' || return 1
	[ -e "$share/bash-completion/completions/ava" ] && as ava completion zsh | grep -q '^#compdef ava' && as ava completion fish | grep -q 'complete -c ava'
}

# The schema that it prints is the file that editors find, in which the first line of the example leads.
schema_is_there()
{
	as ava config schema >/tmp/schema && grep -q '"\$schema"' /tmp/schema || return 1
	file=$(zcat -f "$docs"/config.yaml* | sed -n 's/^# yaml-language-server: \$schema=//p')
	cmp /tmp/schema "$file"
}

# The first settings of doc/METRICS.md, as they stand there.
metrics_are_scraped()
{
	as mkdir -p "$person/.config/ava"
	zcat -f "$docs"/METRICS.md* | awk '/^```yaml/ { on = 1; next } /^```/ && on { exit } on' | as sh -c 'cat >"$HOME/.config/ava/config.yaml"' || return 1
	as ava restart && as ava ps || return 1
	address=$(as sed -n 's/^ *listen: *//p' "$person/.config/ava/config.yaml")
	get "http://$address/metrics" | grep '^ava_healthy 1'
	code=$?
	rm -f "$person/.config/ava/config.yaml"
	return "$code"
}

install_deb()
{
	dpkg -i /in/needs/*.deb >/tmp/needs.out 2>&1 || { cat /tmp/needs.out; return 1; }
	list >/tmp/before
	dpkg -i /in/ava_*.deb /in/libava*.deb
}
remove_deb() { dpkg --purge ava libava-dev libava0; }

install_tarball()
{
	list >/tmp/before
	list_person >/tmp/person.before
	as sh /in/install.sh
}
remove_tarball() { as sh -c 'sh "$HOME"/.local/lib/ava-*/install.sh --uninstall'; }

nothing_left()
{
	list >/tmp/after
	diff /tmp/before /tmp/after
}

# But for the folders that ava keeps data in.
nothing_left_at_home()
{
	list_person | grep -v -e "^$person/.local/share/ava" -e "^$person/.local/share\$" -e "^$person/.local\$" -e "^$person/.config" \
		-e "^$person/.claude" -e "^$person/.cache" -e "^$person/.local/state" >/tmp/person.after
	diff /tmp/person.before /tmp/person.after
}

mkdir -p "$person/project"
echo person:x:1000:1000::$person:/bin/sh >>/etc/passwd
echo 'a torn page' >"$person/project/note.txt"
echo 'not for a subagent' >"$person/secret.txt"
chown -R 1000:1000 "$person"
tools=/usr/libexec/ava share=/usr/share docs=/usr/share/doc/ava
if [ "$how" = tarball ]; then
	tools=$person/.local/lib/ava-$(cat /in/version)/libexec/ava
	share=$person/.local/share
	docs=$person/.local/lib/ava-$(cat /in/version)/share/doc/ava
fi

check 'it is installed' "install_$how"
check 'it starts' as ava version
check 'a run has its result' as ava run 'Where is a torn page?' --yes
if as bwrap --unshare-user --ro-bind / / true; then
	check 'doctor finds the daemon and the sandbox' as ava doctor
	grep -q sandbox /tmp/check.out
	result $? 'doctor has looked at the sandbox'
	check 'a command of a run is in the sandbox' sandbox_runs
else
	result 0 'commands in the sandbox # SKIP this machine gives users no namespaces'
fi
check 'a page is made text' page_is_read "$tools/ava-page"
check 'the page answers' page_answers
check 'a hook is recorded' hook_is_recorded
check 'MCP answers' mcp_answers
check 'its pages of the manual are found' manual_is_found
check 'bash, zsh and fish get completions' completes
check 'it has the schema of its settings' schema_is_there
check 'its metrics are scraped, as METRICS.md says' metrics_are_scraped
check 'it is ended' as ava stop
check 'it is removed' "remove_$how"
check 'nothing is left of it' nothing_left
[ "$how" = deb ] || check 'nor at home, but data' nothing_left_at_home
check 'the data is' test -d "$person/.local/share/ava/runs"
exit "$failed"
