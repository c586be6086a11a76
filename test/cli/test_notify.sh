#!/bin/sh
# Word of what happens, for whoever owns the daemon: notify.url in its three forms, signed, before a
# receiver that fails in every way, over a kill -9; notify.desktop with a notify-send that writes
# down what it gets; both and notify.exec at once, each settled by itself. The recipes of
# doc/DELIVERY.md are played here.
. "${0%/*}/lib.sh"
. "$LIB/scripted.sh"
command -v python3 >/dev/null || skip 'no python3'
command -v jq >/dev/null || skip 'no jq'
command -v curl >/dev/null || skip 'no curl'
own_clock
[ -n "$CLOCK" ] || skip 'minutes are waited for'

mkdir "$T/work" "$T/bin" "$T/in" "$XDG_CONFIG_HOME/ava"
cd "$T/work" || exit 99
{ turn submit_result '{"summary":"The <b>kettle</b> & the cup.","confidence":1}'; } >"$T/one.jsonl"
printf '200\n' >"$T/in/plan"
python3 "$LIB/notify_stand.py" "$T/in" >"$T/in.out" 2>"$T/in.err" &
keep $!
wait_for 20 grep -q port "$T/in.out"
URL=http://127.0.0.1:$(sed -n 's/^port //p' "$T/in.out")
printf 'AVA_NOTIFY_SECRET=correct-horse\n' >"$XDG_CONFIG_HOME/ava/env"
chmod 600 "$XDG_CONFIG_HOME/ava/env"

# serve LINES: a daemon with these lines of notify.
serve()
{
	printf 'notify:\n' >"$XDG_CONFIG_HOME/ava/config.yaml"
	printf '  %s\n' "$@" >>"$XDG_CONFIG_HOME/ava/config.yaml"
	start_daemon || { result 1 'avad serves' || finish; }
}
# plan ANSWER...: how the receiver answers from now on.
plan() { before=$(seen); { i=0; while [ $i -lt "$before" ]; do echo 200; i=$((i + 1)); done; printf '%s\n' "$@"; } >"$T/in/plan"; }
seen() { if [ -e "$T/in/seen" ]; then wc -l <"$T/in/seen" | tr -d ' '; else echo 0; fi; }
# came N: so many requests since the plan was made.
came() { [ $(($(seen) - before)) -ge "$1" ]; }
last() { tail -n "${2:-1}" "$T/in/seen" | head -n 1 | jq -r "$1"; }
# go NAME: a run that nobody is asked about; its end is the one notice.
go()
{
	printf '{"task":"Look, %s.","role":"code_reviewer","model":"offline:%s","cwd":"%s","confirmed":true}' \
		"$1" "$T/one.jsonl" "$T/work" >"$T/body"
	curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" http://x/api/v1/runs -d @"$T/body" >"$T/started"
}
given_up() { "$AVA" logs --type Custom -o json 2>/dev/null | jq -r 'select(.content.customType == "delivery.gave_up") | .content.data | "\(.channel) \(.attempts) \(.reason)"' | tail -n 1; }
gave_up() { case $(given_up) in *"$1"*) ;; *) return 1 ;; esac; }

# --- json, signed ------------------------------------------------------------------------------------
serve "url: $URL/hook"
plan 200
go one
check 'the end of a run is posted' wait_for 30 came 1
equal 'as JSON, with what happened' 'result /hook' "$(last '"\(.body | fromjson | .kind) \(.path)"')"
equal 'its id is the lsn' "$(last '.body | fromjson | .lsn')" "$(last '.headers["x-ava-id"]')"
tail -n 1 "$T/in/seen" | jq -j .body >"$T/body"
equal 'signed over the body' "sha256=$(python3 -c 'import hashlib, hmac, sys
print(hmac.new(b"correct-horse", open(sys.argv[1], "rb").read(), hashlib.sha256).hexdigest())' "$T/body")" \
	"$(last '.headers["x-ava-signature"]')"
refuse 'the secret is in no file of the root' grep -rq correct-horse "$AVA_DATA_ROOT"

# --- a receiver that fails -----------------------------------------------------------------------------
plan 500 drop 429 503 200
go two
check 'after a 500 it is called again' skip_until 60 came 2
check 'after a connection that was dropped, too' skip_until 120 came 3
check 'and after 429 and 503' skip_until 900 came 5
equal 'always with one id' 1 "$(tail -n 5 "$T/in/seen" | jq -r '.headers["x-ava-id"]' | sort -u | wc -l)"
equal 'told which attempt it is' 5 "$(last '.body | fromjson | .attempt')"
plan '429 120' 200
go three
wait_for 30 came 1
skip_time 60
refuse 'not before a Retry-After' came 2
check 'but then' skip_until 90 came 2
plan '404' 200
go four
check 'a 404 gives it up at once' wait_for 30 gave_up 'url 1 it answers 404'
equal 'with one call' 1 "$(($(seen) - before))"
plan "302 $URL/elsewhere" 200
go five
check 'another address is not followed' wait_for 30 gave_up 'it answers 302, another address'
plan silent 200
go six
check 'one that is silent' wait_for 30 came 1
check 'is called again when its time is over' skip_until 60 came 2

# --- kill -9 between the call and what became of it ---------------------------------------------------
plan silent 200
go seven
wait_for 30 came 1
kill_daemon
serve "url: $URL/hook"
check 'killed in a call it makes one more' skip_until 30 came 2
equal 'with the same id' 1 "$(tail -n 2 "$T/in/seen" | jq -r '.headers["x-ava-id"]' | sort -u | wc -l)"
equal 'as the second attempt' 2 "$(last '.body | fromjson | .attempt')"
stop_daemon

# --- the recipes ---------------------------------------------------------------------------------------
serve "url: $URL/my-topic" 'format: ntfy'
plan 200
go eight
check 'ntfy gets it' wait_for 30 came 1
equal 'at its topic' /my-topic "$(last .path)"
equal 'the words as they are' 'The <b>kettle</b> & the cup.' "$(last .body)"
check 'the title in a header' test -n "$(last '.headers.title // empty')"
stop_daemon
serve "url: $URL/services/T/B/x" 'format: slack'
plan 200
go nine
check 'Slack gets it' wait_for 30 came 1
equal 'as a text and nothing else' '["text"]' "$(last '.body | fromjson | keys | tojson')"
equal 'in which nothing is a tag' 'The &lt;b&gt;kettle&lt;/b&gt; &amp; the cup.' \
	"$(last '.body | fromjson | .text' | tail -n 1)"
stop_daemon

# --- the desktop, the command and the address at once ----------------------------------------------------
printf '#!/bin/sh\nfor a; do printf "%%s\\n" "$a"; done >>"%s"\n' "$T/shown" >"$T/bin/notify-send"
printf '#!/bin/sh\ncat >>"%s"\n' "$T/told" >"$T/bin/told"
chmod +x "$T/bin/notify-send" "$T/bin/told"
PATH=$T/bin:$PATH
serve 'desktop: 1' "exec: $T/bin/told" "url: $URL/hook"
contains 'without a bus no desktop is told, and the log says so' 'there is no session bus' "$AVA_DATA_ROOT/logs/avad.log"
"$AVA" doctor >"$T/doctor" 2>&1
contains 'as the doctor does' 'there is no session bus' "$T/doctor"
stop_daemon
export DBUS_SESSION_BUS_ADDRESS="unix:path=$T/bus"
serve 'desktop: 1' "exec: $T/bin/told" "url: $URL/hook"
plan 404 200
go ten
shown() { [ -s "$T/shown" ]; }
told() { [ -s "$T/told" ]; }
check 'the desktop shows it' wait_for 30 shown
contains 'the words without markup' 'The &lt;b&gt;kettle&lt;/b&gt; &amp; the cup.' "$T/shown"
contains 'behind what is an argument' '--app-name=ava' "$T/shown"
check 'the command has it' wait_for 30 told
check 'and where the address gave it up' wait_for 30 gave_up 'url 1 it answers 404'
settled() { jq -e '.open | .desktop == "" and .url == "" and .notify == ""' "$AVA_DATA_ROOT/delivery.json" >/dev/null; }
check 'each is settled by itself' wait_for 30 settled
stop_daemon

# --- what is no setting ------------------------------------------------------------------------------------
printf 'notify:\n  url: http://example.com/hook\n' >"$XDG_CONFIG_HOME/ava/config.yaml"
run "$AVA" doctor
check 'http to elsewhere is refused' grep -q notify.url "$OUT" "$ERR"
printf 'notify:\n  format: xml\n' >"$XDG_CONFIG_HOME/ava/config.yaml"
run "$AVA" doctor
check 'and a form that there is not' grep -q 'must be json, ntfy or slack' "$OUT" "$ERR"
finish
