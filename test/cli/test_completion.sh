#!/bin/sh
# Completions: what may stand in a place, with a daemon, without one, and beside one that hangs;
# then the shells themselves.
. "${0%/*}/lib.sh"

words() { run "$AVA" completion words -- "$@"; }
# offers NAME WANT WORD...: the candidates, with a blank between two.
offers()
{
	offers_name=$1 offers_want=$2
	shift 2
	words "$@"
	equal "$offers_name" "$offers_want" "$(cut -f1 "$OUT" | tr '\n' ' ' | sed 's/ $//')"
}

offers 'commands' 'roles' ro
contains 'say what they are' 'roles	list roles' "$OUT"
offers 'subcommands' 'verify head reindex' logs ''
offers 'options' '--role' run --ro
offers 'both forms of a switch' '--no-thinking' run --no-t
offers 'values that are known' 'json json-pretty' logs -o j
offers 'in one word, too' '--output=json --output=json-pretty' logs --output=j
offers 'words of a form' 'install uninstall status' hooks ''
offers 'the second of them' 'claude codex cursor' mcp install c
offers 'none where none is left' '' mcp install claude ''
offers 'a word that an option takes is no place' 'list show check trust' roles --json ''
offers 'none for a file' '' run --file ''
offers 'none of what there is not' '' nonsense --x ''
refuse 'no daemon was started' daemon_pid
check 'and no data root made' test ! -e "$AVA_DATA_ROOT"

start_daemon
"$AVA" run 'find the torn tail' --role code_reviewer --yes --background >"$T/id" 2>&1
id=$(sed -n 's/^\(S-[0-9a-f]*\) runs.*/\1/p' "$T/id")
offers 'runs' "$id" cancel S-
contains 'with their task' 'find the torn tail' "$OUT"
offers 'again where several may stand' "$id" wait "$id" S-
offers 'roles' 'code_reviewer' run -r cod
offers 'models' 'offline' run --model off
echo 'what runs?' | "$AVA" chat >/dev/null 2>&1
words chat -c ''
equal 'conversations' 1 "$(grep -c '^[0-9a-f-]*	' "$OUT")"
proposal=$(curl -s --unix-socket "$AVA_DATA_ROOT/ava.sock" http://x/api/v1/runs -d '{"task":"look for a lock"}' | jq -r .proposal_id)
offers 'quotes' "$proposal" confirm P-

kill -STOP "$DAEMON"
offers 'runs beside a daemon that hangs' "$id" result S-
kill -CONT "$DAEMON"
stop_daemon
offers 'runs without one' "$id" result S-
refuse 'which is not started' daemon_pid

# The shells, with ava in the way that they look for it.
mkdir -p "$T/bin" "$T/here" && ln -s "$AVA" "$T/bin/ava" && : >"$T/here/notes.txt" && cd "$T/here" || exit 1
PATH=$T/bin:$PATH
cat >"$T/try.bash" <<'END'
source <(ava completion bash)
try()
{
	COMP_LINE=$1 COMP_POINT=${#1}
	shift
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
	_ava
	echo "${COMPREPLY[*]}"
}
try 'ava rol' ava rol
try 'ava hooks in' ava hooks in
try 'ava  logs --output=j' ava logs --output = j
try 'ava logs --output=' ava logs --output =
(ava() { printf 'a b;$(c)\tsay\n'; } && try 'ava run -r ' ava run -r '')
complete -p ava
END
run bash --norc "$T/try.bash"
equal 'bash' 'roles
install
json json-pretty
text json json-pretty
a\ b\;\$\(c\)
complete -o bashdefault -o default -F _ava ava' "$(cat "$OUT")"
if command -v fish >/dev/null; then
	run fish -N -c 'ava completion fish | source; complete -C "ava hooks in"; complete -C "ava logs --output=json-"; complete -C "ava run --file no"'
	equal 'fish' 'install
--output=json-pretty
notes.txt' "$(cat "$OUT")"
else
	note 'fish is not installed: its completion is not tried'
fi
if command -v zsh >/dev/null; then
	cat >"$T/try.zsh" <<'END'
zmodload zsh/zpty
zpty tried env TERM=dumb zsh -f -i
zpty -w tried 'PS1=now:; autoload -Uz compinit; compinit -u -D; source <(ava completion zsh); echo REA""DY'
# Behind the prompt: a tab that is typed ahead of it is a tab.
zpty -r tried out '*READY*now:*'
zpty -w -n tried $'ava hooks uni\t'
zpty -r tried out '*uninstall*' || exit
zpty -w -n tried $'; ava run --file no\t'
zpty -r tried out '*notes.txt*' || exit
print done
zpty -d tried
END
	run timeout 60 zsh -f "$T/try.zsh"
	equal 'zsh' 'done' "$(cat "$OUT")"
else
	note 'zsh is not installed: its completion is not tried'
fi
run "$AVA" completion tcsh
exits 'no other shell' 2
contains 'which is said' 'bash, zsh and fish have one' "$ERR"
finish
