#!/bin/sh
# ava doctor: a line that is wrong says what mends it, and --fix mends what is safe, shown first.
. "${0%/*}/lib.sh"

conf=$XDG_CONFIG_HOME/ava
mkdir -p "$conf" "$HOME/.claude" "$T/bin"
mend() { jq -r --arg name "$1" '[.checks[] | select(.name == $name) | .mend // ""][0] // "no such line"' "$OUT"; }
mode() { stat -c %a "$1"; }

# All is well, and nothing to mend.
run "$AVA" doctor --fix --json
exits 'a new world is in order' 0
equal 'it has no fixes' '[]' "$(jq -c .fixes "$OUT")"
equal 'and no line with one' '[]' "$(jq -c '[.checks[] | select(.mend)]' "$OUT")"
run "$AVA" doctor --fix
contains 'which is said' 'Nothing here can be mended' "$OUT"
contains 'a missing search is noted' 'note   search ' "$OUT"
run env -u AVA_DATA_ROOT -u XDG_DATA_HOME HOME=/proc "$AVA" doctor
exits 'a home in which nothing can be made' 1
contains 'is no place for a data root' 'wrong  data root  /proc: ' "$OUT"

# A daemon that was killed, folders that are open, hooks whose program is gone, a service without lingering.
start_daemon
kill_daemon
check 'the socket was left' test -S "$AVA_DATA_ROOT/ava.sock"
echo '# no key' >"$conf/env"
chmod 644 "$conf/env"
chmod 777 "$AVA_DATA_ROOT"
hook() { printf '"%s":[{"hooks":[{"type":"command","command":"%s hook"}]}]' "$1" "$2"; }
gone_hooks() { printf '{"model":"x","hooks":{%s,%s}}' "$(hook SubagentStart /gone/ava)" "$(hook PreToolUse /gone/ava)" >"$HOME/.claude/settings.json"; }
gone_hooks
mkdir -p "$XDG_CONFIG_HOME/systemd/user/default.target.wants"
ln -s /nowhere "$XDG_CONFIG_HOME/systemd/user/default.target.wants/ava.service"
cat >"$T/bin/loginctl" <<END
#!/bin/sh
echo "\$*" | tee -a "$T/lingers"
END
chmod +x "$T/bin/loginctl"
PATH=$T/bin:$PATH
run "$AVA" doctor --json
exits 'it is not in order' 1
equal 'each wrong line has a command' '[]' "$(jq -c '[.checks[] | select(.ok | not) | select((.mend // "") == "")]' "$OUT")"
equal 'the root' "chmod 700 $AVA_DATA_ROOT" "$(mend 'data root')"
equal 'the keys' "chmod go= $conf/env" "$(mend access)"
equal 'the socket' "rm $AVA_DATA_ROOT/ava.sock" "$(mend socket)"
equal 'the hooks' 'ava hooks install' "$(mend hooks)"
equal 'lingering' "loginctl enable-linger $(id -un)" "$(mend linger)"

run "$AVA" doctor --fix
contains 'it shows what it would do' "  chmod 700 $AVA_DATA_ROOT" "$OUT"
contains 'and does nothing without a yes' 'nothing is done without a yes' "$ERR"
exits 'so it stays wrong' 1
equal 'nothing was done' '777 644' "$(mode "$AVA_DATA_ROOT") $(mode "$conf/env")"
run sh -c 'printf "no\n" | "$AVA" doctor --fix'
equal 'nor by a word in a pipe' 777 "$(mode "$AVA_DATA_ROOT")"

# What others could write is closed when somebody has looked at it, and no sooner.
run "$AVA" doctor --fix --yes --json
exits '--yes is not enough where others could write' 1
equal 'the other fixes are done' "chmod 700 $AVA_DATA_ROOT" "$(jq -r '.fixes[] | select(.done | not).command' "$OUT")"
equal 'that one is not' '777 600' "$(mode "$AVA_DATA_ROOT") $(mode "$conf/env")"
contains 'which is said' 'look at it first' "$ERR"
printf 'y\n' | python3 -c 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))' \
	"$AVA" doctor --fix --yes >"$OUT" 2>&1
contains 'at a terminal it is asked' 'Close what others could write, too?' "$OUT"
equal 'and done by a yes' 700 "$(mode "$AVA_DATA_ROOT")"
start_daemon
kill_daemon
chmod 644 "$conf/env"
gone_hooks
rm "$T/lingers"
run "$AVA" doctor --fix --yes --json
exits 'after it all is in order' 0
equal 'it says what was done' 'true 4' "$(jq -r '([.fixes[].done] | all | tostring) + " " + (.fixes | length | tostring)' "$OUT")"
equal 'the lines are those of now' true "$(jq .ok "$OUT")"
equal 'modes' '700 600' "$(mode "$AVA_DATA_ROOT") $(mode "$conf/env")"
refuse 'the socket is gone' test -e "$AVA_DATA_ROOT/ava.sock"
equal 'lingering was asked for' "enable-linger $(id -un)" "$(cat "$T/lingers")"
equal 'the hooks are ours, with what they had' "$AVA hook $AVA hook x" \
	"$(jq -r '[.hooks.SubagentStart[0].hooks[0].command, .hooks.PreToolUse[0].hooks[0].command, .model] | join(" ")' "$HOME/.claude/settings.json")"
rm -r "$XDG_CONFIG_HOME/systemd"
run "$AVA" doctor --fix --yes --json
equal 'once more there is nothing to do' '0 []' "$CODE $(jq -c .fixes "$OUT")"

# The socket of a daemon at work is not touched.
start_daemon
run "$AVA" doctor --fix --yes --json
equal 'a daemon at work keeps its socket' '0 []' "$CODE $(jq -c .fixes "$OUT")"
check 'which answers' "$AVA" ps

chmod 644 "$conf/env"
run "$AVA" doctor
contains 'an open file of keys leaves the limits as they are' 'new work needs 256' "$OUT"
chmod 600 "$conf/env"

# What --fix does not do has its command, too.
echo 'runs: {maxx: 3}' >"$conf/config.yaml"
run "$AVA" doctor --json
equal 'a mistyped setting' "\${EDITOR:-vi} $conf/config.yaml" "$(mend config)"
rm "$conf/config.yaml"
run env AVA_RUNS_MAXX=3 "$AVA" doctor
contains 'a mistyped variable' 'mend it: env | grep ^AVA_' "$OUT"
green=$(printf '\033[32m')
run env -u NO_COLOR "$AVA" doctor
lacks 'no colours in a file' "$green" "$OUT"
run env -u NO_COLOR FORCE_COLOR=1 "$AVA" doctor
contains 'but where they are asked for' "$green" "$OUT"
run env FORCE_COLOR=1 "$AVA" doctor
lacks 'and not refused' "$green" "$OUT"
run "$AVA" doctor --yes
exits '--yes alone is an error' 2
finish
