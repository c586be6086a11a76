#!/bin/sh
# `ava apply --branch`, `--commit` and `--pr` with the real git: what a person's repository has
# before and after, where the branch begins, what is told before anything changes, what a kill
# leaves, and which commands reach the network (a stand-in for gh and glab writes them down).
. "${0%/*}/lib.sh"
command -v git >/dev/null || skip 'no git'
command -v bwrap >/dev/null || skip 'no bwrap'
[ -x "${AVAD%/*}/ava-sandbox" ] || skip 'ava-sandbox is not built'
export ANTHROPIC_API_KEY=
export GIT_CONFIG_GLOBAL=$T/gitconfig GIT_CONFIG_SYSTEM=/dev/null
printf '[user]\n\tname = Pat\n\temail = pat@localhost\n[init]\n\tdefaultBranch = main\n' >"$T/gitconfig"
. "$LIB/scripted.sh"

g() { git -C "$repo" "$@" 2>&1; }
q() { git -C "$repo" "$@" >/dev/null 2>&1; }
new_repo() { repo=$T/$1; mkdir "$repo"; q init -q; seq 12 >"$repo/a.txt"
	printf 'echo hello\n' >"$repo/run me"; echo gone >"$repo/gone.txt"; q add -A; q commit -qm one; }
# play FOLDER: a run that changes a.txt, the mode of `run me`, gone.txt and new.txt below it.
{
	turn edit_file '{"path":"a.txt","old_string":"3\n","new_string":"three\n"}'
	turn write_file '{"path":"new/file.txt","content":"new\n"}'
	turn run_bash '{"command":"rm gone.txt; chmod +x \"run me\"; head -c 9 /dev/zero >bin; ln -s a.txt l; printf x >\"a\nb\"","cwd":"."}'
	turn submit_result '{"summary":"Say thr\u202eee\u001b[1m where\u2028it said 3\n\nAnd more.","confidence":1}'
} >"$T/turns.jsonl"
play() { (cd "$1" && "$AVA" run --role code_reviewer --grant rw --yes --json --check "test -e new/file.txt" \
	--model "offline:$T/turns.jsonl" 'Say three') >"$OUT" 2>"$ERR" </dev/null; id=$(jq -r .subagent_id "$OUT"); }
# state: all that a person's repository has: refs, index, files, worktrees.
state() { (cd "$repo" && git for-each-ref; git -C "$repo" symbolic-ref -q HEAD; git -C "$repo" status --porcelain
	git -C "$repo" ls-files -s; cat "$repo"/a.txt; git -C "$repo" worktree list | sed 1d) 2>&1; }
left() { ls -A "$AVA_DATA_ROOT/branches" 2>/dev/null; }

# --- a clean repository

new_repo clean
play "$repo"
equal 'the result names the commit that was copied' "$(g rev-parse HEAD)" "$(jq -r .patch.head "$OUT")"
before=$(state)
run "$AVA" apply "$id" --branch mend --check
exits 'it fits' 0
contains 'HEAD, it says' "It fits commit $(g rev-parse HEAD | cut -c 1-10)" "$OUT"
printf 'no\n' | "$AVA" apply "$id" --branch mend >"$OUT" 2>"$ERR"
equal 'a no is one' 4 $?
contains 'after the branch' "Branch  mend, from $(g rev-parse HEAD | cut -c 1-10), HEAD of main" "$OUT"
equal 'the author, on a line' 1 "$(grep -cx 'Author  Pat <pat@localhost>' "$OUT")"
contains 'the message' '    Say three[1m where it said 3' "$OUT"
contains 'and the files are shown' ' a.txt        | 2 +-' "$OUT"
equal 'nothing of the repository has changed' "$before" "$(state)"
run "$AVA" apply "$id" --branch mend
exits 'no answer is no yes' 4
equal 'nor has it then' "$before" "$(state)"
equal 'no worktree is left' '' "$(left)"
printf 'yes\n' | "$AVA" apply "$id" --branch mend >"$OUT" 2>"$ERR"
equal 'a yes makes it' 0 $?
equal 'the branch has one commit more' 1 "$(g rev-list --count main..mend)"
equal 'by the person' 'Pat <pat@localhost> Pat <pat@localhost>' "$(g log -1 --format='%an <%ae> %cn <%ce>' mend)"
equal 'with what the run said as its subject' 'Say three[1m where it said 3' "$(g log -1 --format=%s mend)"
equal 'and the run, its trace, cost and check' \
	"Run: $id Trace: $(jq -r .trace_id "$AVA_DATA_ROOT/runs/$id/result.json") Cost: \$0.00 Check: passed: test -e new/file.txt" \
	"$(g log -1 --format=%b mend | xargs)"
equal 'its files are those of the patch' 'M a.txt D gone.txt A new/file.txt M run me' \
	"$(g diff --name-status main mend | tr '\t\n' '  ' | sed 's/ $//')"
equal 'with their modes' 100755 "$(g ls-tree mend 'run me' | cut -d ' ' -f 1)"
equal 'all else is as it was' "$before" "$(state | grep -v refs/heads/mend)"
run "$AVA" logs --type Custom -o json
equal 'the log has the branch and the commit' "mend $(g rev-parse mend)" \
	"$(jq -r 'select(.content.customType == "applied").content.data | "\(.branch) \(.commit)"' "$OUT")"
run "$AVA" apply "$id" --branch mend --yes
exits 'a branch that is there is refused' 1
contains 'by its name and place' "there is a branch mend already (at $(g rev-parse mend | cut -c 1-10))" "$ERR"
run "$AVA" apply "$id" --branch mend/more --yes
exits 'so is one below another' 1
contains 'before a question' 'there is a branch mend already' "$ERR"
for name in '-x' 'a..b' '@{-1}' '' 'a b' @ refs/heads/x; do
	run "$AVA" apply "$id" "--branch=$name" --yes
	refuse "and what is no name: $name" [ "$CODE" = 0 ]
done
equal 'nothing came of these' "$before" "$(state | grep -v refs/heads/mend)"
run "$AVA" apply "$id" --branch json -m 'My words' --yes --json
equal 'as JSON' "applied json $(g rev-parse json) $(g rev-parse main)" "$(jq -r '"\(.state) \(.branch) \(.commit) \(.base)"' "$OUT")"
equal 'with a message of the person' 'My words' "$(g log -1 --format=%B json | tr -d '\n')"
cd "$repo" && git checkout -q mend && cd "$T" || exit 99
run "$AVA" apply "$id" --branch again --yes
exits 'what is there already needs no branch' 0
contains 'and it says so' 'already' "$OUT"
refuse 'so there is none' q rev-parse --verify again
q checkout -q main

# --- --commit: the current branch goes forward

run "$AVA" apply "$id" --commit --yes
exits 'the current branch takes it' 0
equal 'with its files' "$(g rev-parse 'mend^{tree}') three" "$(g rev-parse 'main^{tree}') $(sed -n 3p "$repo/a.txt")"
equal 'and nothing is left to commit' '' "$(g status --porcelain)"
q reset -q --hard HEAD~1
echo mine >>"$repo/a.txt"
before=$(state)
run "$AVA" apply "$id" --commit --yes
exits 'not over work that is not committed' 1
contains 'which is named' "has changes that are not committed (M a.txt)" "$ERR"
equal 'and stays' "$before" "$(state)"

q checkout -q -- a.txt
q checkout -q -b side main && q commit -q --allow-empty -m side && q checkout -q main && q merge -q --no-ff --no-commit side
run "$AVA" apply "$id" --commit --yes
exits 'not in the middle of a merge' 1
contains 'which is said at once' 'is in the middle of a merge: end it (git merge --continue' "$ERR"
q merge --abort; q branch -D side
echo mine >>"$repo/a.txt"
before=$(state)

# --- HEAD has moved; conflicts

run "$AVA" apply "$id" --branch beside --yes
exits 'a branch is made beside it' 0
equal 'without that work' 0 "$(g show beside:a.txt | grep -c mine)"
equal 'and that work stays' mine "$(tail -1 "$repo/a.txt")"
q checkout -q -- a.txt
sed -i 12s/12/twelve/ "$repo/a.txt" && q commit -qam two
run "$AVA" apply "$id" --branch moved --yes
exits 'a HEAD that moved takes what fits' 0
contains 'and is said to have moved' 'HEAD now; it was another one when the run copied the folder' "$OUT"
equal 'with both changes' 'three twelve' "$(g show moved:a.txt | sed -n '3p;12p' | xargs)"
sed -i 3s/3/drei/ "$repo/a.txt" && q commit -qam three
before=$(state)
run "$AVA" apply "$id" --branch clash --yes
exits 'a conflict is told' 1
contains 'by file and line' 'a.txt, hunk 1 (at line 1): its lines are not there any more' "$OUT"
contains 'with what helps' '--from copied' "$ERR"
equal 'before anything changed' "$before" "$(state)"
run "$AVA" apply "$id" --branch then --from copied --yes
exits 'from what was copied it begins there' 0
equal 'at the commit of then' "$(g rev-parse main~2)" "$(g rev-parse then~1)"

# --- what was copied was not committed

new_repo dirty
echo more >>"$repo/a.txt"
echo untracked >"$repo/u.txt"
play "$repo"
before=$(state)
run "$AVA" apply "$id" --branch mend --yes
exits 'uncommitted work: the branch begins with it' 0
contains 'which is said' 'a commit with what 1 file had uncommitted when the run copied them' "$OUT"
equal 'in a commit of its own' 'Uncommitted work, as run '"$id"' found it' "$(g log -1 --format=%s mend~1)"
equal 'of the files that the run changed' a.txt "$(g diff --name-only main mend~1)"
equal 'behind which the patch is exact' 1 "$(g diff --numstat mend~1 mend -- a.txt | cut -f 1)"
equal 'and the work itself stays' "$before" "$(state | grep -v refs/heads/mend)"
run "$AVA" apply "$id" --branch head --from head --yes
exits 'it fits HEAD, too, where the lines are the same' 0
equal 'without that work' 12 "$(g show head:a.txt | wc -l)"
echo still >>"$repo/a.txt"
run "$AVA" apply "$id" --branch late --yes
exits 'work that changed since cannot be put there' 1
contains 'and is named' 'a.txt was not committed when it was copied, and has changed since' "$ERR"
run "$AVA" apply "$id" --commit --yes
exits 'nor does the current branch go over it' 1

# --- forms of repositories

new_repo plain
mkdir -p "$repo/deep/er" && cp "$repo"/*.txt "$repo/run me" "$repo/deep/er/" && q add -A && q commit -qm deep
q pack-refs --all
play "$repo/deep/er"
equal 'a commit in packed-refs is known' "$(g rev-parse HEAD)" "$(jq -r .patch.head "$OUT")"
run "$AVA" apply "$id" --branch deep --yes
exits 'a folder of a repository' 0
equal 'changes below it' deep/er/a.txt "$(g diff --name-only main refs/heads/deep | head -1)"
q checkout -q --detach
run "$AVA" apply "$id" --branch detached --yes
exits 'a detached HEAD has branches, too' 0
run "$AVA" apply "$id" --commit --yes
exits 'but none to go forward' 1
contains 'which is said' 'is detached' "$ERR"
q checkout -q main
q worktree add -q "$T/linked" -b linked
play "$T/linked"
equal 'the commit of a linked worktree is known' "$(git -C "$T/linked" rev-parse HEAD)" "$(jq -r .patch.head "$OUT")"
run "$AVA" apply "$id" --branch of-linked --yes
exits 'and takes a branch' 0
main=$repo
new_repo super
q -c protocol.file.allow=always submodule add -q "$main" sub
q commit -qm sub
play "$repo/sub"
equal 'so is that of a submodule' "$(git -C "$repo/sub" rev-parse HEAD)" "$(jq -r .patch.head "$OUT")"
run "$AVA" apply "$id" --branch in-sub --yes
exits 'which has the branch' 0
equal 'itself' 1 "$(git -C "$repo/sub" rev-list --count HEAD..in-sub)"
refuse 'not the one around it' q rev-parse -q --verify in-sub
new_repo nest
mkdir "$repo/new" && git -C "$repo/new" init -q
play "$repo"
run "$AVA" apply "$id" --branch x --yes
exits 'no file of a repository within it is committed' 1
contains 'which is said' 'new/file.txt is in a repository of its own (new)' "$ERR"
new_repo sparse
q sparse-checkout set deep
play "$repo"
run "$AVA" apply "$id" --branch mend --yes
exits 'a sparse checkout takes a file outside of its part' 0
contains 'and a change of mode has a word' 'run me  +0 -0  (executable)' "$OUT"
mkdir "$T/none" && cp "$repo"/*.txt "$repo/run me" "$T/none"
play "$T/none"
run "$AVA" apply "$id" --branch x --yes
exits 'no repository' 1
contains 'is said to be none' "$T/none is no work tree of git" "$ERR"
git -C "$T/none" init -q
run "$AVA" apply "$id" --branch x --yes
exits 'nor is there a place in an empty one' 1
contains 'which is said' 'has no commit yet' "$ERR"
equal 'no worktree is left of all these' '' "$(left)"

# --- filters, hooks, obeyed files, identities

new_repo filtered
printf '[filter "up"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n\trequired\n' >>"$repo/.git/config"
printf 'a.txt filter=up\n' >"$repo/.gitattributes"
printf 'one\n2\n3\n' >"$repo/a.txt"; q add -A; q commit -qm filter
equal 'git keeps another form' ONE "$(g show HEAD:a.txt | head -1)"
play "$repo"
run "$AVA" apply "$id" --branch mend --yes
exits 'filters run as in the repository' 0
equal 'both ways' 'ONE 2 THREE' "$(g show mend:a.txt | xargs)"
equal 'without a commit for what only looks different' 1 "$(g rev-list --count main..mend)"
printf '#!/bin/sh\n[ -e a.txt ] && ! [ -e gone.txt ] && echo "$GIT_SSL_CAINFO" >%s/hooked\ngrep -q NO "$1" /dev/null && exit 1\nexit 0\n' "$T" >"$repo/.git/hooks/pre-commit"
printf '#!/bin/sh\ngrep -q "[F]orbidden" "$1" && { echo the hook says no >&2; exit 1; }\nexit 0\n' >"$repo/.git/hooks/commit-msg"
printf '#!/bin/sh\ntouch %s/early\n' "$T" >"$repo/.git/hooks/post-checkout"
chmod +x "$repo"/.git/hooks/pre-commit "$repo"/.git/hooks/commit-msg "$repo"/.git/hooks/post-checkout
run "$AVA" apply "$id" --branch unasked
refuse 'no hook runs before a yes' [ -e "$T/early" ] || [ -e "$T/hooked" ]
run env GIT_DIR=/nowhere GIT_INDEX_FILE=/nowhere/index GIT_SSL_CAINFO=/mine GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=user.name \
	GIT_CONFIG_VALUE_0=Variable "$AVA" apply "$id" --branch hooked --yes
exits 'hooks run' 0
equal 'with the settings of the person, and no variable that leads elsewhere' '/mine Variable' "$(cat "$T/hooked") $(g log -1 --format=%an hooked)"
check 'over the whole tree' [ -e "$T/hooked" ]
before=$(state)
run "$AVA" apply "$id" --branch no -m Forbidden --yes
exits 'a hook may say no' 1
contains 'in its own words' 'the hook says no' "$ERR"
contains 'and it is said what that means' 'there is no branch, and nothing changed: git commit' "$ERR"
equal 'and nothing came of it' "$before" "$(state)"
cp "$T/gitconfig" "$T/gitconfig.was"
printf '[user]\n\tuseConfigOnly = true\n' >"$T/gitconfig"
run "$AVA" apply "$id" --branch who --yes
exits 'without a name there is no author' 1
contains 'and what to do is said' 'git config --global user.name' "$ERR"
cp "$T/gitconfig.was" "$T/gitconfig"
printf '[gpg]\n\tprogram = false\n[commit]\n\tgpgSign = true\n' >>"$T/gitconfig"
run "$AVA" apply "$id" --branch signed --yes
exits 'a signature is what git says it is: here it fails' 1
refuse 'so there is no branch' q rev-parse --verify signed
cp "$T/gitconfig.was" "$T/gitconfig"
cp "$T/turns.jsonl" "$T/turns.was"
{ turn write_file '{"path":".gitattributes","content":"* filter=evil\n"}'; cat "$T/turns.was"; } >"$T/turns.jsonl"
new_repo obeyed
printf '[filter "evil"]\n\tclean = sh -c "touch %s/pwned; cat"\n' "$T" >>"$repo/.git/config"
play "$repo"
run "$AVA" apply "$id" --branch mend --yes
exits 'attributes are obeyed' 0
contains 'so they are left out' 'Not written: .gitattributes' "$OUT"
equal 'and in no commit' '' "$(g ls-tree --name-only mend .gitattributes)"
refuse 'nor do they choose a filter' [ -e "$T/pwned" ]
mkfifo "$T/answers"
"$AVA" apply "$id" --branch stopped <"$T/answers" >"$OUT" 2>"$ERR" &
stopped=$!
keep $stopped
exec 9>"$T/answers"
wait_for 30 file_has 'Write .gitattributes?' "$ERR"
kill -INT $stopped
wait $stopped
contains 'Ctrl-C there ends it' 'stopped: there is no branch, and nothing changed' "$ERR"
exec 9>&-
refuse 'with no branch' q rev-parse --verify stopped
equal 'and no worktree' '' "$(left)"
run "$AVA" apply "$id" --branch named --also .gitattributes --yes
exits 'named they are in it' 0
equal 'indeed' .gitattributes "$(g ls-tree --name-only named .gitattributes)"
# What the repository's configuration has git run, and the run has changed.
{
	turn run_bash "$(jq -cn --arg c "mkdir -p tools/hooks; printf '#!/bin/sh\\ntouch $T/pwned; cat\\n' >tools/strip.sh; cp tools/strip.sh tools/hooks/post-index-change; cp tools/strip.sh tools/hooks/pre-commit; chmod +x tools/hooks/*" '{command:$c,cwd:"."}')"
	cat "$T/turns.was"
} >"$T/turns.jsonl"
new_repo configured
mkdir "$repo/tools"; printf 'cat\n' >"$repo/tools/strip.sh"; printf 'a.txt filter=strip\n' >"$repo/.gitattributes"
printf '[core]\n\thooksPath = tools/hooks\n[filter "strip"]\n\tclean = sh tools/strip.sh\n' >>"$repo/.git/config"
q add -A; q commit -qm strip
play "$repo"
run "$AVA" apply "$id" --branch unasked
run "$AVA" apply "$id" --branch mend --yes
exits 'a configured filter and hooks are obeyed, too' 0
refuse 'no changed one of them runs' [ -e "$T/pwned" ]
equal 'they are in no commit' tools/strip.sh "$(g ls-tree -r --name-only mend tools)"
{
	turn run_bash '{"command":"tr -d \"\\r\" <a.txt >b && mv b a.txt","cwd":"."}'
	turn submit_result '{"summary":"Mend the line ends","confidence":1}'
} >"$T/turns.jsonl"
new_repo ends
printf '* text=auto\n' >"$repo/.gitattributes"; printf 'a\r\nb\r\n' >"$repo/a.txt"; q add -A; q commit -qm ends
(cd "$repo" && "$AVA" run --role code_reviewer --grant rw --yes --json --model "offline:$T/turns.jsonl" 'Mend') >"$OUT" 2>"$ERR" </dev/null
run "$AVA" apply "$(jq -r .subagent_id "$OUT")" --branch same --yes
exits 'what is the same to git is no commit' 4
contains 'which is said' 'to git nothing differs' "$ERR"
cp "$T/turns.was" "$T/turns.jsonl"

# --- a kill at every git, and Ctrl-C

new_repo killed
play "$repo"
before=$(state)
mkdir "$T/bin"
cat >"$T/bin/git" <<EOF
#!/bin/sh
n=\$((\$(cat "$T/count") - 1)); echo \$n >"$T/count"
[ \$n -gt 0 ] || [ "\$(cat "$T/after")" = 1 ] || { kill -\$(cat "$T/signal") \$PPID; exit 1; }
$(command -v git) "\$@"; rv=\$?
[ \$n -gt 0 ] || kill -\$(cat "$T/signal") \$PPID
exit \$rv
EOF
chmod +x "$T/bin/git"
echo 1000 >"$T/count"; echo KILL >"$T/signal"; echo 0 >"$T/after"
run env PATH="$T/bin:$PATH" "$AVA" apply "$id" --branch whole --yes
steps=$((1000 - $(cat "$T/count")))
q branch -D whole
amiss=
# whole NUMBER HOW BRANCH OPTION...: killed at that git, and done again.
whole()
{
	at=$1/$2 branch=$3
	echo "$1" >"$T/count"; echo "${2% *}" >"$T/signal"; echo "${2#* }" >"$T/after"
	shift 3
	env PATH="$T/bin:$PATH" "$AVA" apply "$id" "$@" --yes >"$OUT" 2>"$ERR" </dev/null
	now=$(state | grep -v "$AVA_DATA_ROOT/branches")
	[ "$now" = "$before" ] || [ "$(g log -1 --format=%s $branch)$(g status --porcelain)" = 'Say three[1m where it said 3' ] || amiss="$amiss $at"
	case $at in *INT*) [ -z "$(left)" ] || amiss="$amiss left:$at" ;; esac
	again=0
	[ "$now" != "$before" ] && [ $branch = whole ] && again=1 # it is there
	"$AVA" apply "$id" "$@" --yes >"$OUT" 2>"$ERR" </dev/null
	[ $? = $again ] || amiss="$amiss again:$at"
	[ "$(g log -1 --format=%s $branch)$(g status --porcelain)" = 'Say three[1m where it said 3' ] || amiss="$amiss not-whole:$at"
	q branch -D whole
	q reset -q --hard "$first"
	rm -rf "$repo/new"
}
first=$(g rev-parse HEAD) n=0
while [ $n -lt $steps ]; do
	n=$((n + 1))
	whole $n 'KILL 0' whole --branch whole
	whole $n 'INT 1' whole --branch whole
	whole $n 'KILL 1' main --commit
done
[ -z "$(left)" ] || amiss="$amiss left"
check "git is called $steps times" [ $steps -gt 8 ]
equal 'killed or stopped before and behind each, it is whole or nothing, and goes the next time' '' "$amiss"
echo $((steps / 2 + 2)) >"$T/count"; echo KILL >"$T/signal"; echo 1 >"$T/after"
env PATH="$T/bin:$PATH" "$AVA" apply "$id" --branch whole --yes >"$OUT" 2>"$ERR" </dev/null
check 'what one kill leaves' [ -n "$(left)" ]
was=$id
play "$repo"
run "$AVA" apply "$id" --branch other --yes
equal 'the apply of another run clears' "0 " "$CODE $(left)"
equal 'in the repository, too' 1 "$(g worktree list | wc -l)"

# --- a request

new_repo pushed
git init -q --bare "$T/remote.git"
q remote add origin "$T/remote.git"
play "$repo"
run "$AVA" apply "$id" --branch one --pr --yes
exits 'without gh and glab nothing is pushed' 4
contains 'but how is shown' "git push origin refs/heads/one:refs/heads/one" "$ERR"
contains 'with the request' "gh pr create --head one --title 'Say three[1m where it said 3' --body 'Run: $id" "$ERR"
equal 'the branch is made' 1 "$(g rev-list --count main..one)"
equal 'and is nowhere else' '' "$(git -C "$T/remote.git" for-each-ref)"
mkdir "$T/gh"
printf '#!/bin/sh\nfor a in "$@"; do printf "%%s\\0" "$a"; done >%s/said\n' "$T" >"$T/gh/gh"
chmod +x "$T/gh/gh"
cp "$T/gh/gh" "$T/gh.glab"
PATH=$T/gh:$PATH
run "$AVA" apply "$id" --branch two --pr --yes
exits 'no yes to the push is none' 4
equal 'nothing is pushed' '' "$(git -C "$T/remote.git" for-each-ref)"
refuse 'nor asked for' [ -e "$T/said" ]
printf 'no\n' | "$AVA" apply "$id" --branch three --pr --yes >"$OUT" 2>"$ERR"
equal 'nor is a no' 4 $?
printf 'yes\nyes\n' | "$AVA" apply "$id" --branch four --pr --draft --base main >"$OUT" 2>"$ERR"
equal 'two yes do both' 0 $?
equal 'the branch is pushed' "$(g rev-parse four) commit	refs/heads/four" "$(git -C "$T/remote.git" for-each-ref)"
equal 'and gh is called, without a shell' "pr create --head four --title Say three[1m where it said 3 --body" \
	"$(tr '\0' ' ' <"$T/said" | head -1 | sed 's/ Run:.*//')"
equal 'with base and draft' '--base main --draft' "$(tr '\0' '\n' <"$T/said" | tail -3 | xargs)"
git init -q --bare "$T/push.git"
q remote set-url --push origin "$T/push.git"
printf 'yes\nno\n' | "$AVA" apply "$id" --branch elsewhere --pr >"$OUT" 2>"$ERR"
contains 'the question names where the push goes' "origin ($T/push.git)" "$ERR"
q config --unset remote.origin.pushurl
q remote set-url origin "$T/gitlab.example"
git init -q --bare "$T/gitlab.example"
mv "$T/gh.glab" "$T/gh/glab"
run "$AVA" apply "$id" --branch five --pr --push --yes -m 'It'"'"'s mine; $(touch x)'
exits '--push asks nothing' 0
equal 'glab is that of gitlab' 'mr create --source-branch five --title It'"'"'s mine; $(touch x) --description  --yes ' "$(tr '\0' ' ' <"$T/said")"
q remote rename origin a; q remote add b "$T/remote.git"
run "$AVA" apply "$id" --branch six --pr --push --yes
exits 'of several remotes none is guessed' 1
contains 'which is said' 'several remotes and none is origin' "$ERR"

for words in '--pr' '--branch x --draft' '--from head' '-m x' '--commit --from copied'; do
	run "$AVA" apply "$id" $words --yes
	exits "does not go together: $words" 2
done
finish
