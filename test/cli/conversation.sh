# conversation.sh - the world of the golden conversation (test/golden/conversation): Ava and two roles say what stands
# there, and we are in $T/src. Source it behind lib.sh.
command -v curl >/dev/null && command -v python3 >/dev/null && command -v jq >/dev/null ||
	skip 'no curl, python3 or jq'

GOLDEN=$SRCDIR/test/golden/conversation
mkdir -p "$T/src" "$XDG_CONFIG_HOME/ava/agents"
cd "$T/src" || exit 99
echo 'int kettle(void);' >kettle.c
for role in counter boiler; do
	printf -- '---\nname: %s\ndescription: works in the kitchen\nmodel: offline:%s/%s.jsonl\ntools: read_file, ask_person\n---\nWork.\n' $role "$T" $role >"$XDG_CONFIG_HOME/ava/agents/$role.md"
done
cp "$GOLDEN"/*.jsonl "$T/"
unset AVA_MODEL
export AVA_AVA_MODEL="offline:$T/ava.jsonl"
