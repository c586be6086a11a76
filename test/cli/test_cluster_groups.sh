#!/bin/sh
# Whether a group may go on on another machine: only when no run of it, or later step, has a folder.
. "${0%/*}/lib.sh"
. "$LIB/postgres.sh"
postgres_there || skip 'no PostgreSQL server (Debian: postgresql)'
command -v curl >/dev/null || skip 'no curl'

ask() { curl -s --max-time 60 --unix-socket "$AVA_DATA_ROOT/ava.sock" "$@"; }
mkdir "$T/src"
printf '%s\n' '{"tool_calls":[{"name":"read_file","args":{"path":"x"}}],"delay_ms":600000}' >"$T/slow.jsonl"
free='{"task":"x","role":"researcher","model":"offline:'"$T"'/slow.jsonl"}'
bound='{"task":"x","role":"researcher","cwd":"'"$T"'/src","model":"offline:'"$T"'/slow.jsonl"}'
# group RUNS [MORE]: its id
group() { ask http://x/api/v1/groups -d '{"runs":['"$1"'],"confirmed":true'"${2:-}"'}' | jq -r .group_id; }
# places ID: of its runs, in the order of the words
places() { sql "select string_agg(place, ' ' order by place) from ava_spec where grp = '$1'"; }
placed() { [ "$(places "$1")" = "$2" ]; }

check 'a server' postgres || finish
export AVA_CLUSTER_URL="$PG_URL"
"$AVA" cluster init >/dev/null
start_daemon
one=$(group "$free,$free")
two=$(group "$free,$bound")
three=$(group "$free,$free" ',"chain":true')
four=$(group "$free,$bound" ',"chain":true')
check 'a group without a folder goes on anywhere' wait_for 10 placed "$one" 'anywhere anywhere'
check 'one with a folder says so' wait_for 10 placed "$two" 'anywhere here'
check 'a chain without a folder goes on anywhere' wait_for 10 placed "$three" 'anywhere anywhere'
check 'one whose later step has a folder says so' wait_for 10 placed "$four" 'anywhere here'
# place: of the run $id
place() { place=$(sql "select place from ava_spec where run = '$id'") && [ -n "$place" ]; }
for words in '' --no-files; do
	# shellcheck disable=SC2086 # one word or none
	"$AVA" run -b --yes --role researcher --model "offline:$T/slow.jsonl" $words x >"$T/said" 2>&1
	id=$(grep -o 'S-[0-9a-f]*' "$T/said" | head -n 1)
	wait_for 10 place
	printf '%s ' "$place" >>"$T/where"
	"$AVA" cancel "$id" >/dev/null
done
equal 'a command gives its folder, unless it says --no-files' 'here anywhere ' "$(cat "$T/where")"
run "$AVA" cluster leave
exits 'a machine with bound groups does not leave' 1
bound_runs=$(sql "select count(*) from ava_spec where grp in ('$two', '$four')")
equal 'and names all runs of both' "$bound_runs" "$(grep -o 'S-[0-9a-f]*' "$ERR" | sort -u | wc -l)"
finish
