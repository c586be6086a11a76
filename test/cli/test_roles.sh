#!/bin/sh
# Roles of a person's own: from three folders, with trust, edits, crashes and bad files.
. "${0%/*}/lib.sh"

mkdir -p "$T/work/.claude/agents" "$T/work/src" "$T/work/.git" "$XDG_CONFIG_HOME/ava/agents" "$HOME/.claude/agents"
cd "$T/work" || exit 99
echo 'CREATE TABLE otter (id int);' >src/a.sql
role() { printf -- '---\nname: %s\ndescription: Looks after %s\ntools: Read, Grep\n%s---\n%s\n' "$2" "$2" "$3" "$4" >"$1"; }
role .claude/agents/db.md db-admin 'maxTurns: 500
max_cost_cents: 900
hooks:
  Stop: [{hooks: [{type: command, command: "touch ran"}]}]
mcpServers: {x: {command: touch ran}}
' 'FIRST TEXT.'
role "$XDG_CONFIG_HOME/ava/agents/w.md" writer 'timeout: 90
' 'Write short.'
role "$HOME/.claude/agents/c.md" crab '' 'Walk sideways.'
echo nonsense >"$HOME/.claude/agents/README.md"
start_daemon || { result 1 'avad serves' || finish; }

role_of() { "$AVA" roles --json | jq -r --arg n "$1" '.roles[] | select(.name == $n) | "\(.source) \(.trusted) \(.usable) \(.max_iterations) \(.max_cost_cents) \(.timeout)"'; }
equal 'a project role is seen, untrusted, with no more than holds anyway' 'project false false 20 50 600' "$(role_of db_admin)"
equal 'one of the person is used as it says' 'user true true 20 50 90' "$(role_of writer)"
equal 'and one from Claude Code' 'claude true true 20 50 600' "$(role_of crab)"
run "$AVA" roles
exits 'the list is printed' 0
contains 'what is untrusted says what to do' "not trusted: ava roles trust $T/work/.claude/agents/db.md" "$OUT"
contains 'a file that is none is named with its line' 'README.md:1: there is no front matter' "$ERR"
run "$AVA" roles check
exits 'check says so by its exit' 1
contains 'what does not count is named with its line' 'db.md:7: hooks: hooks of a role file are never run' "$OUT"
run "$AVA" roles check .claude/agents
exits 'a folder that is right' 0
run "$AVA" roles show crab
contains 'a role is shown whole' 'Walk sideways.' "$OUT"
run "$AVA" roles show wizard
exits 'there is none' 5
run "$AVA" roles show '../x'
exits 'nor one by a path' 5
name=$(printf 'deep%.0s' $(seq 50))
deep=$T/work/$name/$name/$name
mkdir -p "$deep/.claude/agents"
role "$deep/.claude/agents/d.md" diver '' 'Dive.'
equal 'nor is one lost by a long path' 'project' "$(cd "$deep" && role_of diver | cut -d' ' -f1)"
rm -r "$T/work/$name"
run "$AVA" roles dance
exits 'an unknown word is a usage error' 2

run "$AVA" run --role db-admin 'find otter' --yes
exits 'untrusted, it does not run' 1
contains 'and why' 'not trusted: read it, then: ava roles trust' "$ERR"
run "$AVA" run --role wizard 'find otter' --yes
contains 'an unknown role names those there are' 'there are web_crawler, code_reviewer, data_extractor, researcher, writer and crab' "$ERR"
run "$AVA" roles trust .claude/agents/db.md </dev/null
exits 'trust needs a person' 4
hash=$(sha256sum <.claude/agents/db.md | cut -d' ' -f1)
post() { curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/v1/$1" -d "$2"; }
contains 'bytes that were not shown are not trusted' 'is not what was shown' \
	"$(post roles/trust "{\"path\":\"$T/work/.claude/agents/db.md\",\"hash\":\"$(echo x | sha256sum | cut -d' ' -f1)\"}" >answer; echo answer)"
run "$AVA" roles trust .claude/agents/db.md --yes
exits 'a yes is taken' 0
contains 'after it was shown, text and all' 'FIRST TEXT.' "$OUT"
contains 'it is kept by hash' "$hash" "$AVA_DATA_ROOT/roles/trusted.jsonl"
equal 'and told in the log' "$hash" "$("$AVA" logs --agent ava -o json | jq -r 'select(.content.key? == "roles/trusted") | .content.value.hash')"

"$AVA" run --role db-admin 'find otter' --yes >"$OUT" 2>"$ERR"
cat "$ERR" >>"$OUT"
contains 'then it runs, and the quote says whose words it works by' 'Role: db_admin, from' "$OUT"
id=$("$AVA" ps -a --json | jq -r '.[0].subagent_id')
all_of() { cat "$1" "$AVA_DATA_ROOT/heads/$(head -n 1 "$1" | jq -r .spec.head)"; }
messages() { all_of "$AVA_DATA_ROOT/runs/$1/messages.jsonl"; }
messages "$id" >m
contains 'the model reads its text' '## Your Role\nFIRST TEXT.' m
contains 'which is part of what was confirmed' "\"hash\":\"$hash\"" m
check 'no hook and no server of it ran' test ! -e ran

kill_daemon
start_daemon
equal 'trust survives a kill' 'project true true 20 50 600' "$(role_of db_admin)"

# What was quoted is what runs, whatever becomes of the file, and through a crash.
proposal=$(post runs "{\"task\":\"find otter\",\"role\":\"db_admin\",\"cwd\":\"$T/work\"}" | jq -r .proposal_id)
role .claude/agents/db.md db-admin '' 'SECOND TEXT.'
equal 'an edit is another question' 'project false false 20 50 600' "$(role_of db_admin)"
kill_daemon
start_daemon
run "$AVA" confirm "$proposal"
exits 'what was quoted is confirmed' 0
wait_for 30 sh -c '"$AVA" ps -a --json | jq -e ".[0].status == \"success\""' >/dev/null
messages "$("$AVA" ps -a --json | jq -r '.[0].subagent_id')" >m
contains 'and runs with the text it was quoted with' 'FIRST TEXT.' m
check 'not with another' sh -c '! grep -q "SECOND TEXT" m'

equal 'a replay of what ran does without the file' 0 "$("$AVA" replay "$id" >/dev/null 2>&1; echo $?)"

# Ava may propose it: the roles that there are stand in her tool.
printf 'Find where otter is created\n' | "$AVA" >/dev/null 2>&1
session=$(find "$AVA_DATA_ROOT/sessions" -name '*.messages.jsonl' | head -1)
all_of "$session" >m
contains 'Ava knows a role of the person' '"crab"' m
check 'and none that nobody trusts' sh -c '! grep -q db_admin m'

# A role without a model of its own has that of the conversation.
printf '%s\n' '{"tool_calls":[{"name":"spawn_subagent","args":{"role":"crab","task":"find otter"}}]}' '{"text":"asked"}' >ava.jsonl
session=$(post sessions "{\"cwd\":\"$T/work\",\"model\":\"offline:$T/work/ava.jsonl\"}" | jq -r .session_id)
post "sessions/$session/messages" '{"text":"find otter"}' >/dev/null
check 'Ava proposes it' wait_for 30 sh -c '"$AVA" proposals --json | jq -e ".[0].config.role == \"crab\""' >/dev/null
equal 'and it inherits her model' "crab offline:$T/work/ava.jsonl" \
	"$("$AVA" proposals --json | jq -r '.[0].config | "\(.role) \(.model)"')"
check 'every line of the logs is as it should be' python3 "$SRCDIR/test/check_events.py" \
	"$AVA_DATA_ROOT"/logs/ava/*.jsonl "$AVA_DATA_ROOT"/logs/subagents/*.jsonl
finish
