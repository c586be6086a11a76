# scripted.sh - runs of the offline model whose turns a suite writes down, and the site that they
# read (site.py). Source it behind lib.sh.

# turn TOOL ARGS [MORE]: a line of a script; MORE is `,"delay_ms":100` or the like.
turn() { printf '{"tool_calls":[{"name":"%s","args":%s}]%s}\n' "$1" "$2" "${3:-}"; }
end() { turn submit_result '{"summary":"done","confidence":1}'; }

# told S-ID: what its calls were told.
told()
{
	jq -r 'select(.role == "user") | .content[]? | select(.type == "tool_result") | .content' \
		"$AVA_DATA_ROOT/runs/$1/messages.jsonl"
}

# The site: its address in $SITE and $PORT, what it was asked in $T/site.log.
site()
{
	command -v python3 >/dev/null || skip 'no python3'
	command -v bwrap >/dev/null || skip 'no bwrap'
	python3 "$SRCDIR/test/cli/site.py" "$T/site.log" >"$T/site.out" 2>"$T/site.err" &
	keep $!
	wait_for 20 grep -q port "$T/site.out" || { note "$(cat "$T/site.err")"; result 1 'the site serves'; finish; }
	PORT=$(sed -n 's/^port //p' "$T/site.out")
	SITE=http://127.0.0.1:$PORT
}
