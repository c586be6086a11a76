#!/bin/sh
# config.yaml, keys and `ava doctor`: what a person sees of them.
. "${0%/*}/lib.sh"
unset AVA_MODEL
CONF=$XDG_CONFIG_HOME/ava
mkdir -m 700 "$CONF"
export OLLAMA_HOST=127.0.0.1:1 # nobody listens there

# --- a service of our own: lists of models, a date, one good key ---------------
cat >"$T/service.py" <<'PY'
import http.server, json, sys, time, email.utils
class H(http.server.BaseHTTPRequestHandler):
    def date_time_string(self, timestamp=None):
        return email.utils.formatdate(time.time() + (3600 if "/late/" in self.path else 0), usegmt=True)
    def log_message(self, *a): pass
    def do_GET(self):
        key = self.headers.get("x-api-key") or (self.headers.get("authorization") or "")[7:]
        body, status = json.dumps({"data": [{"id": "claude-sonnet-5-5"}, {"id": "tiny:1b"}]}), 200
        if "/local/" not in self.path and key != "sk-ant-good-key-1": status = 401
        if "/odd/" in self.path: body = "<html>"
        self.send_response(status); self.send_header("content-length", str(len(body)))
        self.end_headers(); self.wfile.write(body.encode())
    def do_POST(self):
        if "/local/" not in self.path: time.sleep(300) # a model that thinks for long
        call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "keep", "arguments": '{"n": 7}'}}
        body = json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]})
        self.send_response(200); self.send_header("content-type", "text/event-stream"); self.end_headers()
        self.wfile.write(f"data: {body}\n\ndata: [DONE]\n\n".encode()); self.close_connection = True
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), H)
open(sys.argv[1], "w").write(str(s.server_address[1]) + "\n")
s.serve_forever()
PY
python3 "$T/service.py" "$T/port" &
keep $!
wait_for 10 test -s "$T/port"
PORT=$(cat "$T/port")
URL=http://127.0.0.1:$PORT

# --- without anything -----------------------------------------------------------
run "$AVA" doctor
exits 'doctor finds nothing wrong with nothing' 0
contains 'and says that no key is set' 'none is set: the offline model is used' "$OUT"
contains 'and which model is the default' 'offline: no provider key is set' "$OUT"
contains 'and where it looked for a local server' 'no local server at http://127.0.0.1:1/v1 (Ollama)' "$OUT"
contains 'and where a key is written' "$CONF/env" "$OUT"
run env AVA_RUN_MAX=3 "$AVA" doctor
exits 'a variable that nobody asks for is wrong' 1
contains 'with the one that is meant' 'AVA_RUN_MAX in the environment: did you mean AVA_RUNS_MAX?' "$OUT"

# --- a broken file ---------------------------------------------------------------
printf 'runs:\n  maxx: 3\n' >"$CONF/config.yaml"
run "$AVA" ps
exits 'a daemon with a broken config.yaml does not start' 2
contains 'and the command says why' "config.yaml:2: unknown key runs.maxx: did you mean runs.max?" "$ERR"
run "$AVA" doctor
exits 'doctor fails' 1
contains 'with the same sentence' "config.yaml:2: unknown key runs.maxx: did you mean runs.max?" "$OUT"

# --- somebody else's file: notify.exec in it would run as us -----------------------
printf 'notify:\n  exec: touch "%s"\n' "$T/was-run" >"$CONF/config.yaml"
for place in config.yaml .; do
	chmod o+w "$CONF/$place"
	run "$AVA" run 'find main'
	check "nothing runs with $place open to others" test "$CODE" -ne 0
	contains 'which is said with what to do' 'can be written by others, who would decide' "$ERR"
	chmod o-w "$CONF/$place"
done
if [ "$(id -u)" -eq 0 ]; then
	chown 65534 "$CONF/config.yaml"
	run "$AVA" run 'find main'
	contains 'nor with the file of another' "config.yaml belongs to somebody else" "$ERR"
	chown 0 "$CONF/config.yaml"
fi
check 'what stands in it was not run' test ! -e "$T/was-run"

printf 'runs:\n  max: 3\n' >"$CONF/config.yaml"
run "$AVA" doctor --json
exits 'mended, doctor is content' 0
equal 'and shows the setting' 3 "$(jq '.settings["runs.max"]' "$OUT")"
run env AVA_RUNS_MAX=5 "$AVA" doctor --json
equal 'the environment wins' 5 "$(jq '.settings["runs.max"]' "$OUT")"

# --- keys --------------------------------------------------------------------------
printf 'ANTHROPIC_API_KEY=sk-ant-good-key-1\nANTHROPIC_BASE_URL=%s\n' "$URL" >"$CONF/env"
chmod 644 "$CONF/env"
run "$AVA" doctor
exits 'a file of keys that others may read is refused' 1
contains 'with what to do' "chmod 600 $CONF/env" "$OUT"
run "$AVA" ps
exits 'by the daemon too' 1
contains 'with the same words' "chmod 600 $CONF/env" "$ERR"
chmod 600 "$CONF/env"
run "$AVA" doctor
exits 'closed, it is taken' 0
equal 'a search is missing, and nothing else' 'note   search' "$(grep -v '^ok\|^note   page' "$OUT" | cut -c 1-13)"
contains 'the models of roles are told' 'a role with a model of its own takes that' "$OUT"
contains 'the service answers' "$URL answers in" "$OUT"
contains 'the alias stands for its model' 'anthropic/claude-sonnet-5-5' "$OUT"
contains 'the clock is compared' 'as that of anthropic' "$OUT"
lacks 'no key is shown' 'good-key' "$OUT"
lacks 'nowhere' 'good-key' "$ERR"

keys() { printf 'ANTHROPIC_API_KEY=%s\nANTHROPIC_BASE_URL=%s\n' "$1" "$URL$2" >"$CONF/env"; }
minds() # NAME TEXT: doctor does, in these words
{
	run "$AVA" doctor
	exits "$1 is wrong" 1
	contains "$1: in words" "$2" "$OUT"
}
run env AVA_MODEL=anthropic/claude-opus-9 "$AVA" doctor
exits 'a model that the service does not have is wrong' 1
contains 'and named' 'anthropic has no model claude-opus-9 (the default)' "$OUT"
run env AVA_MODEL=local/mistral-small AVA_LOCAL_BASE_URL="$URL/v1" "$AVA" doctor
contains 'what a family does not take is told' 'local/mistral-small does not take ids of calls that are' "$OUT"
keys sk-ant-wrong-key ''
minds 'a refused key' 'it refuses the key (401)'
lacks 'and not shown' 'wrong-key' "$OUT"
keys sk-ant-good-key-1 /late
minds 'a clock that is an hour off' 's behind that of anthropic: set it'
keys sk-ant-good-key-1 /odd
minds 'an answer that is no list' 'its answer is no list of models'
printf 'OPENAI_API_KEY=sk-key-that-is-new\nANTHROPIC_APIKEY=sk-ant-x\nOPENAI_BASE_URL=http://127.0.0.1:1\n' >"$CONF/env"
minds 'a name that nobody asks for' 'did you mean ANTHROPIC_API_KEY?'
contains 'a service that is not there is wrong' 'nothing answers at http://127.0.0.1:1: is your model server running?' "$OUT"
rm "$CONF/env"

# --- a command whose keys are not the daemon's ------------------------------------
start_daemon
touch -d '1 hour ago' "$CONF/config.yaml"
run "$AVA" doctor
lacks 'a config.yaml that the daemon has read: no word' 'was written after' "$OUT"
touch -d '1 minute' "$CONF/config.yaml"
minds 'one that was written since' "$CONF/config.yaml was written after the daemon had started"
contains 'and what to do' 'stood there then: `ava restart`' "$OUT"
touch -d '1 hour ago' "$CONF/config.yaml"
run "$AVA" status
lacks 'the same keys: no word' "the daemon has" "$ERR"
run env OPENAI_API_KEY=sk-key-of-the-command "$AVA" proposals
exits 'a command with a key of its own is served' 0
contains 'and told' 'the daemon has no OPENAI_API_KEY' "$ERR"
run env AVA_LIMITS_TOKENS=5000 AVA_MODEL=offline:x AVA_CONFIRM=never AVA_IDLE= "$AVA" ps
exits 'what the daemon does not use is no error' 0
equal 'but told, in one sentence' 1 "$(grep -c 'the daemon does not use your AVA_LIMITS_TOKENS, AVA_CONFIRM, AVA_MODEL: ' "$ERR")"
run env AVA_RUNS_MAX=3 "$AVA" ps
lacks 'what it has anyway is not told' 'does not use' "$ERR"
run env AVA_RUNS_MAX=zzz "$AVA" ps
exits 'nor is a wrong one an error' 0
contains 'and is told' 'AVA_RUNS_MAX is "zzz"' "$ERR"
lacks 'the key is not shown' 'of-the-command' "$ERR"
stop_daemon

# --- where a key must not be -------------------------------------------------------
keys sk-ant-good-key-1 ''
chmod 600 "$CONF/env"
ulimit -c unlimited 2>/dev/null
start_daemon
run env OPENAI_API_KEY=sk-CANARY-of-env "$AVA" run --yes --background 'find sk-ant-good-key-1' --model claude-haiku
exits 'a run with a key' 0
EARLIER=$(grep -o 'S-[0-9a-f]*' "$OUT" | head -1)
check 'which calls' wait_for 10 grep -qs InferStart "$AVA_DATA_ROOT/logs/subagents/$EARLIER.jsonl"
check 'the daemon runs' alive "$DAEMON"
refuse 'no command line has it' grep -aqF good-key "/proc/$DAEMON/cmdline"
refuse 'and no environment, when it stands in the file' grep -aqF good-key "/proc/$DAEMON/environ"
stop_pid ABRT "$DAEMON" # what would leave a core file
equal 'no file has it, no core either' '' \
	"$(grep -lF good-key /core* "$T"/core* 2>/dev/null; grep -rlF good-key "$AVA_DATA_ROOT" "$T/avad.out")"
rm "$CONF/env"

# --- runs whose key is gone after a restart ------------------------------------------
KEY="AVA_RUNS_MAX=1 ANTHROPIC_API_KEY=sk-ant-good-key-1 ANTHROPIC_BASE_URL=$URL"
begin() { run env $KEY "$AVA" run --yes --background 'find the lock' --model claude-haiku; }
id_of() { grep -o 'S-[0-9a-f]*' "$OUT" | head -1; }
begin
exits 'a run with a key starts' 0
ONE=$(id_of)
env $KEY "$AVA" cancel "$EARLIER" >/dev/null 2>&1 # which has the slot
check 'and calls' wait_for 10 grep -qs InferStart "$AVA_DATA_ROOT/logs/subagents/$ONE.jsonl"
begin
exits 'the next one waits for it' 0
TWO=$(id_of)
kill_daemon
run "$AVA" wait "$TWO" --timeout 60
exits 'without the key it ends' 1
contains 'and is told as ended' "$TWO" "$OUT"
run "$AVA" result "$TWO" --json
contains 'and says what it lacks' 'anthropic/claude-haiku-5-5 needs ANTHROPIC_API_KEY' "$OUT"
run "$AVA" result "$ONE" --json
contains 'so does the one that was calling' 'anthropic/claude-haiku-5-5 needs ANTHROPIC_API_KEY' "$OUT"
stop_daemon

# --- a local server ---------------------------------------------------------------
run env OLLAMA_HOST=127.0.0.1:$PORT/local "$AVA" doctor --json
equal 'a local server is found' 'tiny:1b' "$(jq -r '.local_servers[0].models[1]' "$OUT")"
run env OLLAMA_HOST=0.0.0.0:$PORT/local/ "$AVA" doctor --json # listens on all interfaces
equal 'also one that listens everywhere' "$URL/local/v1" "$(jq -r '.local_servers[0].base_url' "$OUT")"
for place in 127.0.0.9 [::] 0.0.0.0 :11434; do
	run env "OLLAMA_HOST=$place" "$AVA" doctor
	case $place in 127*) at=127.0.0.9 ;; *) at=127.0.0.1 ;; esac
	contains "OLLAMA_HOST=$place" "http://$at:11434/v1" "$OUT"
done
printf '# mine\nruns: {max: 3}\n' >"$CONF/config.yaml"
run env OLLAMA_HOST=127.0.0.1:$PORT/local "$AVA" doctor </dev/null
exits 'without a terminal nothing is asked' 0
equal 'and nothing is written' '# mine runs: {max: 3}' "$(tr '\n' ' ' <"$CONF/config.yaml" | sed 's/ $//')"

printf '# my keys\n%s\n' "$(cat "$CONF/env")" >"$CONF/env.new" && chmod 600 "$CONF/env.new" && mv "$CONF/env.new" "$CONF/env"

on_tty() # STEP…: doctor on a terminal
{
	run env OLLAMA_HOST="127.0.0.1:$PORT/local" python3 "$LIB/terminal.py" 200 "$T/tty" "$@" -- "$AVA" doctor
}
on_tty 'see [y/N] ' 'type n\n'
contains 'on a terminal it asks' 'Write it into the file env, with the model' "$T/tty"
lacks 'no is no' 'AVA_LOCAL' "$CONF/env"
on_tty 'see [y/N] ' 'type y\n'
contains 'yes writes it' 'stored' "$T/tty"
contains 'the address' "AVA_LOCAL_BASE_URL=\"$URL/local/v1\"" "$CONF/env"
contains 'and keeps the rest' '# my keys' "$CONF/env"
run "$AVA" doctor
exits 'and it is used from then on' 0
contains 'as the default' 'claude-sonnet stands for local/' "$OUT"
contains 'and tried' 'local/claude-sonnet-5-5 calls tools; window' "$OUT"
on_tty
lacks 'and not asked for again' "y/N" "$T/tty"

finish
