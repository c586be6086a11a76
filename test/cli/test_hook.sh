#!/bin/sh
# The hooks of Claude Code: what `ava hook` makes of events (hook.py plays them), and what
# `ava hooks` does to settings.json.
. "${0%/*}/lib.sh"

own_clock
export CLAUDE_CONFIG_DIR="$T/claude"
play "$LIB/hook.py"
unset CLAUDE_CONFIG_DIR

echo '{"session_id":"s","hook_event_name":"SubagentStart","agent_id":"a","agent_type":"T"}' >"$T/event"
"$AVA" hook <"$T/event"
check 'without CLAUDE_CONFIG_DIR cards are below ~/.claude' [ -f "$HOME/.claude/agent-activity/s/a.json" ]
equal 'and closed to others' 600 "$(stat -c %a "$HOME/.claude/agent-activity/s/a.json")"
echo 'a file' >"$T/file"
run env HOME="$T/file" "$AVA" hook <"$T/event"
exits 'where no card can be written a hook ends well' 0
run env -u HOME "$AVA" hook <"$T/event"
exits 'and where there is no home' 0
run "$AVA" hook --event SubagentStop <"$T/event"
exits 'and with an option that it does not have' 0
run "$AVA" hook SubagentStop <"$T/event"
exits 'and with words' 0
run sh -c 'ulimit -f 0; "$AVA" hook <"$T/event"'
exits 'and where no file may grow' 0

settings=$HOME/.claude/settings.json
run "$AVA" hooks status
exits 'status of nothing is a failure' 1
contains 'that says so' 'not all installed' "$OUT"
run "$AVA" hooks install
exits 'install makes the file' 0
run "$AVA" hooks
exits 'and status knows' 0
equal 'each event calls ava' 3 "$(jq '[.hooks[][].hooks[] | select(.command == $c)] | length' --arg c "$AVA hook" "$settings")"
run "$AVA" hooks uninstall
equal 'uninstall leaves nothing of it' '{}' "$(jq -c . "$settings")"
mkdir "$T/links" "$T/others"
ln -s "$AVA" "$T/links/ava"
cp "$AVA" "$T/others/ava"
run env PATH="$T/others:$T/links:$PATH" "$AVA" hooks install
equal 'a link in PATH is what an upgrade keeps' 3 "$(jq '[.hooks[][].hooks[] | select(.command == $c)] | length' --arg c "$T/links/ava hook" "$settings")"
run "$AVA" hooks uninstall

mkdir "$T/dot"
cat >"$T/dot/settings.json" <<'END'
{
  "zebra": 1.10, "model": "opus", "big": 9007199254740993,
  "permissions": { "allow": ["Bash(ls *)"], "deny": [] },
  "hooks": {
    "SubagentStop": [
      { "matcher": "Explore", "hooks": [ { "type": "command", "command": "~/.claude/hooks/agent-spy.sh" } ] },
      { "hooks": [ { "type": "command", "command": "/old/place/ava hook" }, { "type": "command", "command": "say \u00fc/" } ] }
    ],
    "Stop": [ { "hooks": [] } ]
  },
  "env": { "A": "b" }
}
END
chmod 640 "$T/dot/settings.json"
cp "$T/dot/settings.json" "$T/was"
ln -sf "$T/dot/settings.json" "$settings"
run "$AVA" hooks install --activity
exits 'install into a file that is somebody’s' 0
contains 'tells of agent-spy.sh' 'agent-spy.sh stands there as well' "$OUT"
check 'a link stays a link' [ -L "$settings" ]
equal 'and its file keeps its mode' 640 "$(stat -c %a "$T/dot/settings.json")"
check 'what it was is kept beside it' cmp -s "$T/was" "$T/dot/settings.json.before-ava"
equal 'members stay in their order' 'zebra,model,big,permissions,hooks,env' "$(jq -r 'keys_unsorted | join(",")' "$settings")"
contains 'numbers stay as they are' '9007199254740993' "$settings"
echo '{"a":0.30000000000000004,"b":1.1}' >"$T/reals.json"
"$AVA" hooks install --settings "$T/reals.json" >/dev/null
contains 'to their last digit' '"a": 0.30000000000000004' "$T/reals.json"
equal 'all else stays' "$(jq -c 'del(.hooks)' "$T/was")" "$(jq -c 'del(.hooks)' "$settings")"
equal 'others’ hooks stay' '["~/.claude/hooks/agent-spy.sh","say ü/"]' \
	"$(jq -c '[.hooks[][].hooks[].command | select(endswith("ava hook") | not)]' "$settings")"
equal 'an old place of ava gives way' 4 "$(jq '[.hooks[][].hooks[].command | select(endswith("ava hook"))] | length' "$settings")"
cp "$settings" "$T/once"
run "$AVA" hooks install --activity
contains 'a second install does nothing' 'Nothing to do' "$OUT"
check 'to not one byte' cmp -s "$settings" "$T/once"
run "$AVA" hooks install
equal 'without --activity that hook goes' null "$(jq -c '.hooks.PreToolUse' "$settings")"
run "$AVA" hooks uninstall
exits 'uninstall' 0
equal 'gives back what there was, less an old place of ava' \
	"$(jq -c 'del(.hooks.SubagentStop[1].hooks[0])' "$T/was")" "$(jq -c . "$settings")"
jq '.disableAllHooks = true' "$T/was" >"$T/dot/settings.json"
"$AVA" hooks install >/dev/null
run "$AVA" hooks
contains 'status tells when hooks are off' 'disableAllHooks' "$OUT"
run "$AVA" hooks --json
equal 'also to programs' '[true,true,true]' "$(jq -c '[.installed,.disabled,.agentSpy]' "$OUT")"

for bad in '{"a":1,}' '[]' '{"hooks":[]}' '// a comment'; do
	printf '%s' "$bad" >"$T/dot/settings.json"
	run "$AVA" hooks install
	exits "what is no settings is refused: $bad" 2
	equal 'and stays as it is' "$bad" "$(cat "$T/dot/settings.json")"
done
run "$AVA" hooks frobnicate
exits 'an unknown action is a usage error' 2
mkdir -p "$T/a b"
cp "$AVA" "$T/a b/ava"
"$T/a b/ava" hooks install --settings "$T/new.json" >/dev/null
sh -c "$(jq -r '.hooks.SubagentStart[0].hooks[0].command' "$T/new.json")" <"$T/event"
check 'a path with blanks is a command that runs' [ $? -eq 0 ]
rm "$T/a b/ava"
run "$AVA" hooks --settings "$T/new.json"
exits 'a program that is gone is no installed hook' 1
contains 'and is told' 'its program is gone' "$OUT"
finish
