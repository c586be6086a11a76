#!/bin/sh
# Case 14 of doc/SECURITY.md with a real name server: names that change where they lead, or lead to
# good and bad places at once. All of it in a network namespace of its own, in which a second one
# plays the public network; whoever is connected inside writes it down.
if [ "${1:-}" != inside ]; then
	# shellcheck source=/dev/null
	. "${0%/*}/lib.sh"
	for program in unshare ip nsenter python3 bwrap; do
		command -v "$program" >/dev/null || skip "no $program"
	done
	unshare -Urnm sh -c 'ip link set lo up && ip link add v0 type veth peer name v1' 2>/dev/null ||
		skip 'no network namespaces here'
	cd / && rm -rf "$T"
	exec unshare -Urnm sh "$LIB/test_web_dns.sh" inside
fi
. "${0%/*}/lib.sh"
. "$LIB/scripted.sh"

PUBLIC=93.184.216.34 US=93.184.216.35
ip link set lo up
unshare -n sleep 1000 &
NET=$!
keep "$NET"
ip link add v0 type veth peer name v1
apart() { [ "$(readlink "/proc/$NET/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
check 'a public network' wait_for 10 apart
ip link set v1 netns "$NET"
ip addr add "$US/24" dev v0 && ip link set v0 up
nsenter -t "$NET" -n sh -c "ip link set lo up; ip addr add $PUBLIC/24 dev v1; ip link set v1 up"
echo 'nameserver 127.0.0.1' >"$T/resolv.conf"
echo '127.0.0.1 localhost' >"$T/hosts"
mount --bind "$T/resolv.conf" /etc/resolv.conf && mount --bind "$T/hosts" /etc/hosts ||
	{ result 1 'a name server of its own'; finish; }
lead() { printf '%s %s\n' "$@" >"$T/names"; }
lead flip.test "$PUBLIC" mixed.test "127.0.0.1,10.0.0.1,$PUBLIC,::1" inside.test 127.0.0.1,::1 \
	own.test "$US" wrapped.test ::ffff:127.0.0.1,64:ff9b::7f00:1
python3 "$SRCDIR/test/cli/name_server.py" "$T/names" >"$T/dns.out" 2>"$T/dns.err" &
keep $!
nsenter -t "$NET" -n python3 "$SRCDIR/test/cli/site.py" "$T/public.log" 80 "$PUBLIC" >"$T/public.out" 2>&1 &
keep $!
python3 "$SRCDIR/test/cli/site.py" "$T/inside.log" 80 0.0.0.0 >"$T/inside.out" 2>&1 &
keep $!
check 'all serve' wait_for 30 sh -c \
	'grep -q ready "$T/dns.out" && grep -q port "$T/public.out" && grep -q port "$T/inside.out"'
export AVA_WEB_HOST_GAP_MS=0

# got NAME: what http_get of its page says.
got()
{
	{
		turn http_get "{\"url\":\"http://$1/tea/7\"}"
		end
	} >"$T/turns.jsonl"
	id=$("$AVA" run --role web_crawler --yes --json --model "offline:$T/turns.jsonl" \
		"Read http://$1/tea/7" </dev/null 2>/dev/null | jq -r .subagent_id)
	told "$id" >"$T/got"
}
blocked() { contains "$1" 'not of the public network' "$T/got"; }

start_daemon || { result 1 'avad serves' || finish; }
got flip.test
contains 'a name that leads outside is read' 'number 7 costs 7 euros' "$T/got"
got mixed.test
contains 'one that leads to both is read outside' 'number 7 costs 7 euros' "$T/got"
got inside.test
blocked 'one that leads inside is not'
got wrapped.test
blocked 'nor by an address in another'
got own.test
blocked 'nor to a public address of this machine'
got nowhere.test
contains 'a name that is none' 'the host is not there' "$T/got"
# The address changes under a URL that was read: a daemon that remembers no names meets it.
stop_daemon
lead flip.test 127.0.0.1
start_daemon
got flip.test
blocked 'a name that now leads inside is not'
equal 'and nobody was connected inside' '' "$(cat "$T/inside.log")"
finish
