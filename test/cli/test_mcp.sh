#!/bin/sh
# ava as an MCP server (mcp.py), and ava mcp install.
. "${0%/*}/lib.sh"

mkdir "$T/project"
echo 'int torn_tail(void); /* the torn tail is decided here */' >"$T/project/a.c"
ASKS=$T/asks.jsonl SLOW=$T/slow.jsonl
export ASKS SLOW
mkdir -p "$XDG_CONFIG_HOME/ava" # so that web_search is there, a way out, whoever starts the daemon
printf 'web:\n  allow_private: 127.0.0.1:9\n  searxng: http://127.0.0.1:9\n' >"$XDG_CONFIG_HOME/ava/config.yaml"
cat >"$ASKS" <<'END'
{"tool_calls":[{"name":"ask_person","args":{"question":"Which file?"}}]}
{"tool_calls":[{"name":"submit_result","args":{"summary":"It is a.c.","output":{},"confidence":0.9,"caveats":[]}}]}
END
echo '{"text":"I wait.","delay_ms":600000}' >"$SLOW"

play "$LIB/mcp.py"

# --- install
run "$AVA" mcp --renew
exits 'an option of another form is a usage error' 2
run "$AVA" mcp install cursor --http
run "$AVA" mcp uninstall cursor
exits 'a file that ava made is left without ava' 0
equal 'and no copy of its entry, with the token, stays' '{} mcp.json' "$(jq -c . "$HOME/.cursor/mcp.json") $(ls -A "$HOME/.cursor")"
lacks 'nor is one told of' before-ava "$OUT"
run "$AVA" mcp install emacs
exits 'a program that is not known is a usage error' 2
contains 'and the others are named' 'claude, codex, cursor and zed' "$ERR"
printf '{"numStartups": 3, "mcpServers": {"other": {"command": "x"}}}' >"$HOME/.claude.json"
chmod 644 "$HOME/.claude.json"
PATH=/usr/bin:/bin run "$AVA" mcp install claude
exits 'install claude' 0
contains 'and says that it is not there' 'There is no claude in PATH' "$OUT"
contains 'says where' "$HOME/.claude.json" "$OUT"
equal 'the entry starts this program on this root, beside what was there' "stdio mcp $AVA_DATA_ROOT x 3" "$(python3 -c '
import json, sys
o = json.load(open(sys.argv[1])); e = o["mcpServers"]["ava"]
print(e["type"], *e["args"], e["env"]["AVA_DATA_ROOT"], o["mcpServers"]["other"]["command"], o["numStartups"])' "$HOME/.claude.json")"
contains 'what it was is kept' '"numStartups": 3, "mcpServers"' "$HOME/.claude.json.before-ava"
cp "$HOME/.claude.json.before-ava" "$T/own"
contains 'and named' "$HOME/.claude.json.before-ava: what it was before ava first changed it" "$OUT"
equal 'and the mode' 644 "$(stat -c %a "$HOME/.claude.json")"
printf '#!/bin/sh\n' >"$T/claude"
chmod +x "$T/claude"
PATH=$T:$PATH run "$AVA" mcp install claude
contains 'twice changes nothing' 'Nothing to do' "$OUT"
lacks 'one that is there is not missed' 'in PATH' "$OUT"
run "$AVA" mcp install claude --http
contains 'with an address instead' '"Authorization": "Bearer ' "$HOME/.claude.json"
check 'what is kept is still what it was before the first time' cmp "$T/own" "$HOME/.claude.json.before-ava"
equal 'it is closed to others' 600 "$(stat -c %a "$HOME/.claude.json")"
mkdir "$HOME/elsewhere"
CLAUDE_CONFIG_DIR='~/elsewhere' run "$AVA" mcp install claude
check 'a folder that its variable names from the home folder' grep -q mcpServers "$HOME/elsewhere/.claude.json"
mkdir "$HOME/.codex"
printf 'model = "x"\n[ mcp_servers."ava" ]\ncommand = "old"\n[mcp_servers.ava.env]\nA = "b"\n\n# of mine\n[tui]\ntheme = "dark"\n' >"$HOME/.codex/config.toml"
run "$AVA" mcp install codex
exits 'install codex' 0
lacks 'what we wrote before is gone' old "$HOME/.codex/config.toml"
contains 'the entry is ours' "env.AVA_DATA_ROOT = \"$AVA_DATA_ROOT\"" "$HOME/.codex/config.toml"
equal 'and the rest stays' 'model = "x"
[mcp_servers.ava]
# of mine
[tui]
theme = "dark"' "$(grep -v -e '^command' -e '^args' -e '^env' -e '^$' "$HOME/.codex/config.toml")"
cp "$HOME/.codex/config.toml" "$T/toml"
run "$AVA" mcp install codex
check 'twice changes nothing' cmp -s "$T/toml" "$HOME/.codex/config.toml"
mkdir -p "$XDG_CONFIG_HOME/zed"
echo '{ // mine' >"$XDG_CONFIG_HOME/zed/settings.json"
run "$AVA" mcp install zed
exits 'settings with comments are left as they are' 2
contains 'and the entry is shown' '"context_servers"' "$OUT"
equal 'as they were' '{ // mine' "$(cat "$XDG_CONFIG_HOME/zed/settings.json")"
run "$AVA" mcp install cursor
exits 'install cursor' 0

# --- uninstall
run "$AVA" mcp uninstall claude
exits 'uninstall claude' 0
contains 'says where' "$HOME/.claude.json: ava is no longer" "$OUT"
equal 'what was there before stays' '{"mcpServers": {"other": {"command": "x"}}, "numStartups": 3}' "$(python3 -c '
import json, sys
print(json.dumps(json.load(open(sys.argv[1])), sort_keys=True))' "$HOME/.claude.json")"
check 'so it is when ava is taken out' cmp "$T/own" "$HOME/.claude.json.before-ava"
run "$AVA" mcp uninstall claude
contains 'twice changes nothing' 'Nothing to do' "$OUT"
run "$AVA" mcp uninstall codex
equal 'uninstall codex: the table goes alone' 'model = "x"

# of mine
[tui]
theme = "dark"' "$(cat "$HOME/.codex/config.toml")"
cp "$HOME/.codex/config.toml" "$T/toml"
run "$AVA" mcp install codex
run "$AVA" mcp uninstall codex
check 'in and out again is what was there' cmp "$T/toml" "$HOME/.codex/config.toml"
for odd in 'mcp_servers = { ava = { command = "x" } }' 'mcp_servers.ava.command = "x"' "$(printf '[mcp_servers]\n"ava" = { command = "x" }')" \
	"$(printf '[mcp_servers.ava]\ncommand = "x"\n[tui]\n[mcp_servers.ava.env]\nAVA_DATA_ROOT = "/x"')"; do
	echo "$odd" >"$HOME/.codex/config.toml"
	run "$AVA" mcp install codex
	exits 'ava is not written beside another form of it' 2
	contains 'which says what to do' '[mcp_servers.NAME]' "$ERR"
	equal 'and stays' "$odd" "$(cat "$HOME/.codex/config.toml")"
done
echo 'mcp_servers.avalanche.command = "ava=1"' >"$HOME/.codex/config.toml"
run "$AVA" mcp install codex
exits 'one whose name begins like ours is not ours' 0
contains 'and stays beside it' 'mcp_servers.avalanche.command = "ava=1"' "$HOME/.codex/config.toml"
rm "$HOME/.codex/config.toml"
run "$AVA" mcp uninstall codex
contains 'no file has no ava' 'Nothing to do' "$OUT"
check 'and none is made' test ! -e "$HOME/.codex/config.toml"
run "$AVA" mcp uninstall zed
exits 'what is no JSON is left as it is' 2
run "$AVA" mcp uninstall cursor
equal 'an empty part goes with it' '{}' "$(cat "$HOME/.cursor/mcp.json")"
odd=$T/$(printf 'a\377va')
cp "$AVA" "$odd"
run "$odd" mcp install cursor
exits 'a program whose name no settings can have' 1
contains 'says so' 'UTF-8' "$ERR"
run "$AVA" mcp nonsense
exits 'another word is a usage error' 2
finish
