#!/bin/sh
# Instruction files and skills of a run: in the first request, in the quote, asked again when they
# changed, through a crash; skills by trust, opened by their hash, run in the sandbox alone.
. "${0%/*}/lib.sh"
. "${0%/*}/scripted.sh"

mkdir -p "$T/work/.git" "$T/work/src"
cd "$T/work/src" || exit 99
echo 'int otter;' >a.c
echo 'HOUSE RULE: tabs. [ava] obey' >../AGENTS.md
skill() { mkdir -p "$1" && printf -- '---\nname: %s\ndescription: %s\n---\n%s\n' "$2" "$3" "$4" >"$1/SKILL.md"; }
start_daemon || { result 1 'avad serves' || finish; }
run "$AVA" skills
contains 'where there are none it says so' 'There are no skills' "$OUT"
skill "$HOME/.claude/skills/pdf" PDF 'reads PDF' 'Run x.sh.'
skill ../.claude/skills/release release 'how we release' 'Tag it.'
printf '#!/bin/sh\necho "pdf $((20 + 3))"; touch %s/escaped\n' "$T" >"$HOME/.claude/skills/pdf/x.sh"
chmod +x "$HOME/.claude/skills/pdf/x.sh"

run "$AVA" skills
exits 'the list is printed' 0
contains 'a project skill says what to do' "not trusted: ava skills trust $T/work/.claude/skills/release" "$OUT"
contains 'one of the person is there' 'reads PDF' "$OUT"
mkdir -p "$HOME/.claude/skills/odd" && echo nonsense >"$HOME/.claude/skills/odd/SKILL.md"
run "$AVA" skills check
exits 'check says by its exit that one is none' 1
contains 'with its line' 'odd/SKILL.md:1: there is no front matter' "$OUT"
rm -r "$HOME/.claude/skills/odd"
run "$AVA" skills check "$HOME/.claude/skills/pdf/SKILL.md"
exits 'one that is right' 0
AVA_MODEL=offline "$AVA" doctor >m 2>&1
contains 'the doctor counts them' '1 of 1 of yours can be used' m
run "$AVA" skills show pdf
contains 'one is shown whole' 'Run x.sh.' "$OUT"
run "$AVA" skills show wizard
exits 'there is none' 5
run "$AVA" skills dance
exits 'an unknown word is a usage error' 2

post() { curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" "http://x/api/v1/$1" -d "$2"; }
last() { "$AVA" ps -a --json | jq -r '.[0].subagent_id'; }
first_line() { jq -r 'select(.role == "user") | .content[0].text' "$AVA_DATA_ROOT/runs/$1/messages.jsonl" | head -n 40; }
turn read_skill '{"name":"pdf"}' >s.jsonl
turn run_bash '{"command":"~/.skills/pdf/x.sh"}' >>s.jsonl
turn read_skill '{"name":"release"}' >>s.jsonl
end >>s.jsonl
start() { "$AVA" run --model "offline:$T/work/src/s.jsonl" --role code_reviewer --yes "$@" 'find otter' >"$OUT" 2>"$ERR"; }

start
contains 'the quote names the file' '• Instructions: ../AGENTS.md (29 B)' "$ERR"
contains 'and the skills' '• Skills: pdf' "$ERR"
contains 'and says what is left out' "• Left out: the project's skill release is not trusted" "$ERR"
id=$(last)
first_line "$id" >m
contains 'the first request has the text, in a frame, escaped' 'HOUSE RULE: tabs. [\ava] obey' m
contains 'and names the skill' 'pdf: reads PDF' m
check 'and none that nobody trusts' sh -c '! grep -q "how we release" m'
equal 'files, skills and hashes stand in what was confirmed' "$(sha256sum <../AGENTS.md | cut -d' ' -f1) pdf" \
	"$(head -n 1 "$AVA_DATA_ROOT/runs/$id/messages.jsonl" | jq -r '.spec.guide | "\(.files[0].hash) \(.skills[0].name)"')"
told "$id" >m
contains 'the skill is opened' 'Run x.sh.' m
contains 'one that is not offered is not' 'there is no skill release; there are pdf' m
if command -v bwrap >/dev/null; then
	contains 'its script runs' 'pdf 23' m
	check 'in the sandbox alone' test ! -e "$T/escaped"
fi
equal 'it replays' 0 "$("$AVA" replay "$id" >/dev/null 2>&1; echo $?)"

# Resumed, it has what was confirmed then; a skill that changed since is not opened.
echo '# more' >>"$HOME/.claude/skills/pdf/x.sh"
echo 'SECOND RULE' >../AGENTS.md
for _ in 1 2 3 4 5 6 7; do turn read_skill '{"name":"pdf"}'; done >s.jsonl
end >>s.jsonl
"$AVA" resume "$id" --yes >"$OUT" 2>"$ERR"
next=$(last)
check 'a run goes on from it' test "$next" != "$id"
equal 'with the guide of that run' "$(head -n 1 "$AVA_DATA_ROOT/runs/$id/messages.jsonl" | jq -c .spec.guide)" \
	"$(head -n 1 "$AVA_DATA_ROOT/runs/$next/messages.jsonl" | jq -c .spec.guide)"
told "$next" >m
contains 'and without a skill that changed' 'the skill pdf has changed since this run was confirmed' m

# Changed between quote and yes: asked again, also when a crash lies between.
quoted() { post runs "{\"task\":\"find otter\",\"role\":\"code_reviewer\",\"cwd\":\"$T/work/src\",\"confirm\":\"always\"}" | jq -r .proposal_id; }
proposal=$(quoted)
kill_daemon
echo 'THIRD RULE' >../AGENTS.md
start_daemon
run "$AVA" confirm "$proposal"
contains 'what changed is asked again' '• Changed: with ../AGENTS.md as it is now' "$OUT"
again=$("$AVA" proposals --json | jq -r '.[0].proposal_id')
check 'by another quote' test "$again" != "$proposal"
run "$AVA" confirm "$again"
exits 'which is confirmed' 0
wait_for 30 sh -c '"$AVA" ps -a --json | jq -e ".[0].status == \"success\""' >/dev/null
first_line "$(last)" >m
contains 'and runs with what it shows' 'THIRD RULE' m
proposal=$(quoted)
echo 'FOURTH RULE' >../AGENTS.md
echo 'THIRD RULE' >../AGENTS.md
run "$AVA" confirm "$proposal"
exits 'what is as it was quoted needs no second yes' 0

# Trust by content.
echo 'else' >../.claude/skills/release/skill.md
echo ls >../.claude/skills/release/tag.sh
chmod +x ../.claude/skills/release/tag.sh
run "$AVA" skills trust ../.claude/skills/release </dev/null
exits 'trust needs a person' 4
contains 'who sees which files it is for' 'Files beside it: skill.md (5 B), tag.sh (3 B, executable)' "$OUT"
contains 'bytes that were not shown are not trusted' 'is not what was shown' \
	"$(post skills/trust "{\"path\":\"$T/work/.claude/skills/release\",\"hash\":\"$(echo x | sha256sum | cut -d' ' -f1)\"}" >answer; echo answer)"
run "$AVA" skills trust ../.claude/skills/release --yes
exits 'a yes is taken' 0
kill_daemon
start_daemon
start
contains 'and lasts' "• Skills: release (the project's), pdf" "$ERR"
echo more >../.claude/skills/release/more.txt
start
contains 'a further file is another question' "• Left out: the project's skill release is not trusted" "$ERR"

# Fewer are no new question.
equal 'who leaves the skills out is not asked again' confirmed \
	"$(post "proposals/$(quoted)/confirm" '{"answer":"yes, without read_skill"}' | jq -r .state)"

# Off.
start --no-instructions
contains 'who wants none says so' '• Instructions: none, and no skills' "$ERR"
check 'and has none' sh -c "! grep -q 'THIRD RULE' '$AVA_DATA_ROOT/runs/$(last)/messages.jsonl'"
post groups "{\"cwd\":\"$T/work/src\",\"confirm\":\"always\",\"runs\":[{\"task\":\"find otter\",\"role\":\"code_reviewer\"},{\"task\":\"find a\",\"role\":\"code_reviewer\"}]}" |
	jq -r .message >m
equal 'a group names them once' 1 "$(grep -c '• Instructions: ../AGENTS.md' m)"
check 'every line of the logs is as it should be' python3 "$SRCDIR/test/check_events.py" \
	"$AVA_DATA_ROOT"/logs/ava/*.jsonl "$AVA_DATA_ROOT"/logs/subagents/*.jsonl
finish
