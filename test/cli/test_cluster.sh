#!/bin/sh
# ava cluster, and what a daemon of a cluster takes and refuses: tables, join, status, a run on a
# member, a database that goes away, reasons not to be let in, and two ways to leave.
. "${0%/*}/lib.sh"
. "$LIB/postgres.sh"
postgres_there || skip 'no PostgreSQL server (Debian: postgresql)'
command -v curl >/dev/null || skip 'no curl'

API=http://x/api/v1
ask() { curl -s --max-time 60 --unix-socket "$AVA_DATA_ROOT/ava.sock" "$@"; }
own() { ask $API/cluster | jq -r ".cluster$1"; }
state() { [ "$(own .state)" = "$1" ]; }
keys=$XDG_CONFIG_HOME/ava/env
mkdir "$T/src"
printf '%s\n' '{"tool_calls":[{"name":"read_file","args":{"path":"x"}}],"delay_ms":600000}' >"$T/slow.jsonl"
# spawn MORE: a run that never ends by itself; its id, or what is said of it.
spawn()
{
	ask $API/runs -d '{"task":"x","role":"researcher","model":"offline:'"$T"'/slow.jsonl","confirmed":true'"${1:-}"'}' |
		jq -r '.subagent_id // .error.message'
}
running() { ask "$API/runs/$1" | jq -e '.status == "running"' >/dev/null; }
node() { jq -r .node "$AVA_DATA_ROOT/cluster.json"; }
other() { AVA_DATA_ROOT=$T/b "$@"; }
export AVA_CLUSTER_LEASE=3

# --- no cluster

run "$AVA" cluster status
exits 'without a URL' 1
contains 'it says what to set' 'AVA_CLUSTER_URL is not set' "$ERR"
run "$AVA" cluster leave
exits 'who is in no cluster cannot leave' 5
run "$AVA" cluster delete
exits 'an unknown word' 2
run "$AVA" cluster status now
exits 'a word too many' 2
run "$AVA" cluster status --print
exits 'an option of another word' 2
run "$AVA" cluster init --print
exits 'the SQL alone' 0
contains 'is SQL' 'create table if not exists ava_run' "$OUT"
"$AVA" ps >/dev/null # a daemon that a command has started
equal 'in no cluster' null "$(own '')"
run ask -w '%{http_code}' $API/cluster/leave -d '{}'
contains 'so that it cannot leave' '404' "$OUT"
pid=$(daemon_pid)

# --- tables, join

check 'a server' postgres || finish
run "$AVA" cluster join "$PG_URL"
exits 'a database without tables' 1
contains 'says how they are made' 'make them with `ava cluster init`' "$ERR"
AVA_CLUSTER_URL=$PG_URL run "$AVA" doctor
exits 'doctor complains of it' 1
contains 'and says the same' 'cluster    the database has no tables of ava yet: make them with `ava cluster init`' "$OUT"
refuse 'and nothing is kept' grep -qs AVA_CLUSTER_URL "$keys"
AVA_CLUSTER_URL=$PG_URL run "$AVA" cluster init --json
exits 'they are made' 0
id=$(jq -r .id "$OUT")
AVA_CLUSTER_URL=$PG_URL run "$AVA" cluster init
exits 'again' 0
contains 'and are the same' "Cluster $id: 0 runs at work" "$OUT"
contains 'nobody is there' 'No machine is in it yet.' "$OUT"
lacks 'the daemon is in no cluster' 'The daemon here' "$OUT"
sql 'update ava_cluster set schema = 99'
run "$AVA" cluster join "$PG_URL"
exits 'tables of another version' 2
contains 'are refused' 'the tables are of version 99 and this ava is made for version' "$ERR"
sql 'update ava_cluster set schema = 1' # SCHEMA_VERSION
sql 'alter system set fsync = off'
sql 'select pg_reload_conf()' >/dev/null
fsync_is() { [ "$(sql 'show fsync')" = "$1" ]; }
check 'a server that syncs nothing' wait_for 10 fsync_is off
printf '%s\n' "$PG_URL" >"$T/url"
run "$AVA" cluster join <"$T/url"
exits 'is refused' 2
contains 'with what to do' 'fsync = off' "$ERR"
printf '%s\n' "$PG_URL" 'user=x' >"$T/lines"
run "$AVA" cluster join <"$T/lines"
exits 'two lines are no URL' 2
contains 'which is said' 'the URL has to be one line of text' "$ERR"
printf '\0x' >"$T/lines"
run "$AVA" cluster join <"$T/lines"
exits 'nor is what is no text' 2
refuse 'and nothing is kept then' grep -qs AVA_CLUSTER_URL "$keys"

# --- a daemon that is not let in asks again

AVA_CLUSTER_URL=$PG_URL AVA_DATA_ROOT=$T/b start_daemon
AVA_DATA_ROOT=$T/b
check 'a daemon there is refused, too' wait_for 10 state refused
contains 'and its log says why' 'fsync = off' "$T/b/logs/avad.log"
equal 'so it takes nothing new' "nothing new is taken here: $(own .problem)" "$(spawn)"
equal 'nobody is in the table' 0 "$(sql 'select count(*) from ava_node')"
sql 'alter system reset fsync'
sql 'select pg_reload_conf()' >/dev/null
check 'it comes in with a later beat' wait_for 10 state member
equal 'with nothing to complain about' '' "$(own .problem)"
stop_daemon
AVA_DATA_ROOT=$T/data

# --- join, a member

run "$AVA" cluster join <"$T/url"
exits 'join' 0
contains 'says where the URL is' "is in $keys, as AVA_CLUSTER_URL" "$OUT"
contains 'and what becomes of the daemon' "(process $pid) stops once no run is started" "$OUT"
equal 'the file is its owner'"'"'s alone' 600 "$(stat -c %a "$keys")"
check 'the daemon stops' wait_for 10 gone "$pid"
start_daemon
equal 'the next one is a member when it serves' member "$(own .state)"
cd "$T/src" && run "$AVA" run 'say something' --yes --json </dev/null
exits 'a run' 0
run "$AVA" cluster status
exits 'status' 0
contains 'lists this machine' '(this one)' "$OUT"
contains 'and the other one' 'away, its lease was given back' "$OUT"
contains 'the run' "Cluster $id: 0 runs at work, 0 held, 1 ended." "$OUT"
contains 'how far the daemon is' 'The daemon here: member; nothing waits for the database' "$OUT"
contains 'what a commit means' 'synchronous_commit = on, standbys none that commits wait for: one server keeps everything' "$OUT"
contains 'tables' 'ava_run ' "$OUT"
run "$AVA" cluster status --json
equal 'as JSON' "$id member true" "$(jq -r '"\(.id) \(.daemon.state) \([.machines[] | select(.this)][0].alive)"' "$OUT")"
run "$AVA" doctor
contains 'doctor knows it' 'this machine is a member; alive are 1 of 2 machines' "$OUT"

# --- a copy of its root

cp -a "$T/data" "$T/b2" && rm -f "$T/b2/ava.lock" "$T/b2/ava.sock"
AVA_DATA_ROOT=$T/b2
start_daemon
check 'a copied data root is refused' wait_for 20 state refused
contains 'since its identity is alive' 'a machine with the identity of this one is alive' "$T/b2/logs/avad.log"
stop_daemon
AVA_DATA_ROOT=$T/data
equal 'the first one goes on' member "$(own .state)"

# --- the database goes away

postgres_stop
check 'without its database it is no member' wait_for 20 state away
run ask -w ' %{http_code}' $API/runs -d '{"task":"x","confirmed":true}'
contains 'a spawn is refused' 'nothing new is taken here: the database of the cluster is not there' "$OUT"
contains 'with 503' ' 503' "$OUT"
run "$AVA" run 'say something' --yes </dev/null
exits 'a command fails' 1
contains 'with the sentence' 'nothing new is taken here: the database of the cluster is not there' "$ERR"
equal 'health says so' degraded "$(ask $API/health | jq -r .status)"
run "$AVA" ps -a
exits 'what is here can be asked for' 0
run "$AVA" cluster status
exits 'status fails' 1
run "$AVA" doctor
exits 'doctor, too' 1
contains 'and says what is away' 'nothing new is taken here' "$OUT"
run "$AVA" cluster leave
exits 'nobody leaves without the database' 1
check 'it stays a member' test -f "$T/data/cluster.json"
check 'the server is back' postgres_start
check 'it is a member again' wait_for 20 state member
run "$AVA" run 'say something' --yes --json </dev/null
exits 'and takes runs' 0

# --- leaving

bound=$(spawn ',"cwd":"'"$T/src"'"')
check 'a run in a folder' wait_for 10 running "$bound"
run "$AVA" cluster leave
exits 'keeps its machine' 1
contains 'and is named' "runs are bound to this machine: $bound; it leaves when they have ended" "$ERR"
equal 'nothing has changed' member "$(own .state)"
sql 'update ava_node set draining = true' # as a leave does whose answer is lost
stays() { [ "$(sql 'select count(*) from ava_node where draining and node = '"'$(node)'")" = 0 ]; }
check 'a machine that has not left does not count as leaving' wait_for 10 stays
"$AVA" cancel "$bound" >/dev/null
free=$(spawn)
check 'one that may go anywhere' wait_for 10 running "$free"
run "$AVA" cluster leave
exits 'has nobody to go to' 1
contains 'which is said' 'nobody else is there to take 1 run of this machine' "$ERR"
first=$(node)
AVA_DATA_ROOT=$T/b
start_daemon
equal 'with another machine' member "$(own .state)"
second=$(node)
AVA_DATA_ROOT=$T/data
run "$AVA" cluster leave
exits 'it leaves' 0
contains 'and says so' 'This machine has left the cluster.' "$OUT"
equal 'its row is gone' 0 "$(sql "select count(*) from ava_node where node = '$first'")"
equal 'the run is the other one'"'"'s' "$second" "$(sql "select node from ava_run where run = '$free'")"
refuse 'its root is no member' test -e "$T/data/cluster.json"
refuse 'the URL is out of the file of keys' grep -qs AVA_CLUSTER_URL "$keys"
AVA_DATA_ROOT=$T/b
check 'the run goes on there' wait_for 20 running "$free"
AVA_DATA_ROOT=$T/data
start_daemon
equal 'the first machine is alone' null "$(own '')"
equal 'where the run has ended' error "$(ask "$API/runs/$free" | jq -r .status)"
equal 'nothing is at work' 0 "$(ask $API/health | jq -r .runs.running)"
run "$AVA" ps -a --json
equal 'and is listed so' error "$(jq -r --arg id "$free" '.. | objects | select(.subagent_id? == $id) | .status' "$OUT")"
run "$AVA" run 'say something' --yes --json </dev/null
exits 'and it takes runs' 0
stop_daemon

# --- a member without its URL

AVA_DATA_ROOT=$T/b
"$AVA" cancel "$free" >/dev/null
stop_daemon
run "$AVAD"
exits 'a member does not start without its URL' 1
contains 'and says why' 'this data root is a member of a cluster' "$ERR"
export AVA_CLUSTER_URL=$PG_URL
run "$AVA" cluster leave
exits 'it leaves, though no daemon was there' 0
contains 'and is told of the environment' 'AVA_CLUSTER_URL is still set in the environment' "$ERR"
equal 'nobody is in the cluster' 0 "$(sql 'select count(*) from ava_node')"
finish
