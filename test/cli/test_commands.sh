#!/bin/sh
# run_bash and python_exec as a run has them: what a command answers, what stays, what it
# cannot reach, and that a stop, a cut or a killed daemon leaves nothing of it. Numbers are those of
# doc/SECURITY.md; test_escapes.sh and test_sandbox.c have the rest of them.
. "${0%/*}/lib.sh"
command -v bwrap >/dev/null || skip 'no bwrap'
[ -x "${AVAD%/*}/ava-sandbox" ] || skip 'ava-sandbox is not built'
CANARY=canary-4711-secret
NAP=66231.$$ NAP2=66232.$$ # seconds that no other test sleeps

mkdir -p "$T/project/sub" "$HOME/.ssh"
echo "$CANARY" >"$HOME/.ssh/id_rsa"
echo 'int main(void) { return 0; }' >"$T/project/sub/a.c"
cd "$T/project" || exit 99
export ANTHROPIC_API_KEY=
KEY=$(printf 'Zq7%.0s' $(seq 40)) # of the daemon, longer than what is shown of a line
export OPENAI_API_KEY=$KEY
printf 'some words, so that the key is cut where a line is: key %s\n' "$KEY" >"$T/project/key"
start_daemon || { result 1 'avad serves' || finish; }

# turn TOOL ARGS...: one line of a script, a call each.
turn() { printf '{"tool_calls":[{"name":"%s","args":%s}]}\n' "$1" "$2"; }
end() { turn submit_result '{"summary":"done","confidence":1}'; }
# answer N: what the N-th call was told.
answer() { jq -r 'select(.role == "user") | .content[]? | select(.type == "tool_result") | .content' \
	"$AVA_DATA_ROOT/runs/$1/messages.jsonl" >"$T/answers.$1"; }
id_of() { jq -r .subagent_id "$OUT"; }
play() { "$AVA" run --role code_reviewer --yes --json --model "offline:$T/turns.jsonl" 'Try it' "$@" \
	>"$OUT" 2>"$ERR" </dev/null; }

{
	turn run_bash '{"command":"pwd; echo one >kept; echo up >&2; exit 3"}'
	turn run_bash '{"command":"cat kept; cp a.c /ava/work/b.c; echo no >a.c; touch .envrc","cwd":"sub"}'
	turn run_bash '{"command":"pwd","cwd":"nowhere"}'
	turn run_bash '{"command":"setsid sleep '$NAP' & sleep '$NAP'","timeout":1}'
	turn python_exec '{"code":"print(6*7)"}'
	end
} >"$T/turns.jsonl"
play
equal 'the run ends' success "$(jq -r .status "$OUT")"
run_id=$(id_of)
answer "$run_id"
all=$T/answers.$run_id
contains 'its folder, its end, both outputs' 'exit 3' "$all"
contains 'it starts in its own folder' '/ava/work' "$all"
contains 'what it left is named with its size' 'in /ava/work: kept (4 bytes)' "$all"
contains 'what it left is there in the next call' 'b.c (29 bytes)' "$all"
contains 'the project is read-only' 'a.c: Read-only file system' "$all"
check '2: nothing new in the project' [ ! -e sub/.envrc ]
equal '2: and nothing changed' 'int main(void) { return 0; }' "$(cat sub/a.c)"
contains 'a folder that is not there is said' 'nowhere: No such file or directory' "$all"
contains '6: time that is up is said' 'it was not done after 1 s' "$all"
check '6: nothing of it is left' [ -z "$(pgrep -xf "sleep $NAP")" ]
contains 'a tool of another role is none' 'there is no tool "python_exec"' "$all"

# What it left can be had, as what it is: bytes, in a file with a plain name (25).
{
	turn run_bash '{"command":"printf \"<b>\\\\001\" >\"$(printf \"x\\\\r\\\\nSet-Cookie: a=b.html\")\"; ln -s '"$T"'/project/sub/a.c link; echo 12 >gone; echo 13 >swapped"}'
	end
} >"$T/turns.jsonl"
play
leaves=$(id_of)
have() { curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" -D "$T/head" -o "$T/body" -G "http://ava/api/v1/runs/$leaves/artifact" "$@"; }
jq -j '.artifacts[].path | select(test("Cookie"))' "$AVA_DATA_ROOT/runs/$leaves/result.json" >"$T/evil"
have --data-urlencode "path@$T/evil"
contains '25: a file that a run leaves is handed out' 'HTTP/1.1 200' "$T/head"
equal '25: byte for byte' "$(printf '<b>\001' | sha256sum)" "$(sha256sum <"$T/body")"
contains '25: to be saved under a plain name' 'Content-Disposition: attachment; filename="x__Set-Cookie__a_b.html"' "$T/head"
contains '25: as nothing that is shown' 'application/octet-stream' "$T/head"
equal '25: and sets no field of its own' 0 "$(grep -ci '^set-cookie' "$T/head")"
for path in "runs/$leaves/work/link" "runs/$leaves/../../ava.lock" /etc/passwd "runs/$leaves/messages.jsonl" ''; do
	have --data-urlencode "path=$path"
	contains "only what its result names is handed out: $path" 'HTTP/1.1 40' "$T/head"
done
rm "$AVA_DATA_ROOT/runs/$leaves/work/gone" "$AVA_DATA_ROOT/runs/$leaves/work/swapped"
ln -s "$HOME/.ssh/id_rsa" "$AVA_DATA_ROOT/runs/$leaves/work/swapped"
for path in gone swapped; do
	have --data-urlencode "path=runs/$leaves/work/$path"
	contains "what is no longer that file is refused: $path" 'HTTP/1.1 40' "$T/head"
	lacks 'and nothing else is given' "$CANARY" "$T/body"
done
run "$AVA" logs verify
exits 'the logs are whole' 0

# What a terminal would show: no progress, no colours, no bytes that are no text.
{
	turn run_bash '{"command":"for i in 1 2 3; do printf \"\\\\r%d of 3\" $i; done; printf \"\\n\\\\033[31mred\\\\033[0m \\\\033]0;title\\\\007end\\n\"; head -c 50000 /dev/zero | tr '"'"'\\\\0'"'"' '"'"'\\\\377'"'"'; printf \"\\nbehind\\n\"; exit 4"}'
	end
} >"$T/turns.jsonl"
play
run_id=$(id_of)
answer "$run_id"
head -5 "$T/answers.$run_id" >"$T/told"
equal 'of a progress line its last state, no colours, how much is binary, and the exit code' \
	"$(printf '%s\n' '3 of 3' 'red end' '(binary, 50001 bytes)' behind)" "$(sed 1d "$T/told")"
contains 'and the exit code' 'exit 4' "$T/told"

# Git in a part of a repository, in worktrees, in a submodule, with a folder elsewhere.
export GIT_CONFIG_GLOBAL="$T/gitconfig"
git config --global user.name ava
git config --global user.email ava@example.org
git config --global protocol.file.allow always
git init -q "$T/repo"
cd "$T/repo" || exit 99
mkdir sub && echo one >sub/a.c && echo "$CANARY" >other.c && git add . && git commit -qm 'the first one'
git worktree add -q "$T/tree"
git clone -q --bare "$T/repo" "$T/bare.git"
git -C "$T/bare.git" worktree add -q "$T/bare-tree"
git clone -q --separate-git-dir="$T/elsewhere.git" "$T/repo" "$T/apart"
git submodule -q add "$T/bare.git" module && git commit -qm module
for folder in sub ../tree/sub ../tree ../bare-tree ../apart ../apart/sub module; do
	cd "$T/repo/$folder" || exit 99
	file=$PWD/a.c
	[ -f "$file" ] || file=$PWD/sub/a.c
	echo two >>"$file"
	mkdir -p deep && echo deep >deep/new
	{
		turn run_bash '{"command":"cd '"$PWD"' && git log --oneline && git blame '"$file"' && git diff && git status --short . && ls -A '"${PWD%/*}"'; touch .git/x '"$T"'/repo/.git/x"}'
		end
	} >"$T/turns.jsonl"
	for grant in fetch_any rw; do
		play --grant $grant
		run_id=$(id_of)
		answer "$run_id"
		all=$T/answers.$run_id
		contains "$folder, $grant: git log" 'the first one' "$all"
		contains "$folder, $grant: git blame" 'Not Committed Yet' "$all"
		contains "$folder, $grant: git diff" '+two' "$all"
		contains "$folder, $grant: git status" 'a.c' "$all"
		lacks "$folder, $grant: nothing else of it" "$CANARY" "$all"
		refuse "$folder, $grant: nothing is written" [ -e "$T/repo/.git/x" ]
		equal "$folder, $grant: nor left in a copy" null "$(jq -c .patch "$AVA_DATA_ROOT/runs/$run_id/result.json")"
	done
done
cd "$T/repo/sub" || exit 99
run "$AVA" run --role code_reviewer --model "offline:$T/turns.jsonl" 'Try it'
contains 'git'"'"'s folder is named in the quote' "Git: its commands can read $T/repo/.git" "$OUT"
check 'and in that of programs' grep -qF "\"git\":\"$T/repo/.git\"" "$AVA_DATA_ROOT"/logs/ava/*.jsonl

cd "$T/project" || exit 99
# Live output; then a stop, and a daemon that is killed.
{
	turn run_bash '{"command":"yes x | head -c 24500; cat key; yes y | head -c 100000","cwd":"."}'
	turn run_bash '{"command":"for i in 1 2 3 4 5 6; do echo step $i `cat key`; sleep 1; done; setsid sleep '$NAP2' & sleep '$NAP2'","cwd":"."}'
	end
} >"$T/turns.jsonl"
at_work() { pgrep -xf "sleep $NAP2" >/dev/null; }
play --background
run_id=$(id_of)
wait_for 30 at_work
check 'it works' at_work
run "$AVA" logs "$run_id"
contains 'what it writes is seen meanwhile' 'Activity: step' "$OUT"
lacks 'and no half of a key' Zq7 "$OUT"
lacks 'nor in what is left of a long output' Zq7 "$AVA_DATA_ROOT/runs/$run_id/messages.jsonl"
run "$AVA" cancel "$run_id"
at_rest() { ! at_work; }
check '6: a cancelled run leaves nothing for more than a moment' wait_for 1 at_rest
play --background
run_id=$(id_of)
wait_for 30 at_work
kill -9 "$(daemon_pid)"
check '6: nor does a daemon that is killed' wait_for 1 at_rest

# Two were at work, and there is room for one now: the other is cancelled before it goes on.
{
	turn run_bash '{"command":"sleep '$NAP2'"}'
	printf '{"text":"","delay_ms":20000}\n'
	end
} >"$T/turns.jsonl"
start_daemon
first=$run_id
play --background
second=$(id_of)
two_at_work() { [ "$(pgrep -xf "sleep $NAP2" | wc -l)" -ge 1 ] && "$AVA" logs "$second" | grep -q Running; }
wait_for 10 two_at_work
play --background
third=$(id_of)
three() { [ "$(pgrep -xf "sleep $NAP2" | wc -l)" -ge 2 ]; }
wait_for 10 three
kill_daemon
AVA_RUNS_MAX=1
export AVA_RUNS_MAX
start_daemon
for run_id in "$third" "$second" "$first"; do
	run "$AVA" cancel "$run_id"
	ended() { [ -f "$AVA_DATA_ROOT/runs/$run_id/result.json" ]; }
	wait_for 10 ended
done
run "$AVA" logs "$third"
contains 'cancelled before it goes on: what was at work may have had effects' 'it may have had effects' "$OUT"
all_replay 'every run replays identically'
finish
