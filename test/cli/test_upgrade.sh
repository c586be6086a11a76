#!/bin/sh
# Data roots that earlier versions left open and go on: one run that waited for a
# slot, one whose model call was cut. test/golden/roots holds one for each FORMAT,
# taken from a daemon of that version after kill -9; paths stand in it as @WORK@
# and @SCRIPT@.
. "${0%/*}/lib.sh"

mkdir "$T/tree"
printf 'int kettle(void)\n{\n\treturn boil();\n}\n' >"$T/tree/kettle.c"
printf '%s\n' '{"tool_calls":[{"name":"read_file","args":{"path":"kettle.c"}}]}' \
	'{"tool_calls":[{"name":"submit_result","args":{"summary":"in kettle.c:1","confidence":1}}]}' \
	>"$T/script.jsonl"
lines() { grep '^{"role":' "$1"; }

for golden in "$SRCDIR"/test/golden/roots/format*; do
	name=${golden##*/}
	rm -rf "$AVA_DATA_ROOT"
	cp -r "$golden" "$AVA_DATA_ROOT"
	find "$AVA_DATA_ROOT" -type d -exec chmod 700 {} + -o -type f -exec chmod 600 {} +
	find "$AVA_DATA_ROOT" -type f -exec sed -i "s|@WORK@|$T/tree|g; s|@SCRIPT@|$T/script.jsonl|g" {} +
	cp -r "$AVA_DATA_ROOT" "$T/before"
	runs=$(ls "$golden/runs")
	check "$name: opens" start_daemon
	for run in $runs; do
		run "$AVA" wait "$run" --timeout 120
		exits "$name: $run ends well" 0
		log="$AVA_DATA_ROOT/logs/subagents/$run.jsonl"
		equal "$name: $run has ended once" 1 "$(grep -c '"eventType":"SubagentComplete"' "$log")"
		equal "$name: $run made its two calls with replies" 2 \
			"$(jq -c 'select(.eventType == "InferEnd" and .content.errorClass == null)' "$log" | wc -l)"
		equal "$name: $run began its tool once" 1 \
			"$(jq -c 'select(.eventType == "ToolCall" and .content.name == "read_file")' "$log" | wc -l)"
		lines "$T/before/runs/$run/messages.jsonl" >"$T/old"
		check "$name: $run goes on from its messages as they were" sh -c \
			"grep '^{\"role\":' '$AVA_DATA_ROOT/runs/$run/messages.jsonl' |
				head -n $(wc -l <"$T/old") | cmp -s - '$T/old'"
	done
	equal "$name: the cut call is charged an estimate" 1 "$(cat "$AVA_DATA_ROOT"/logs/subagents/*.jsonl |
		jq -c 'select(.eventType == "InferEnd" and .content.errorClass == "interrupted" and
			.content.estimated)' | wc -l)"
	run "$AVA" logs verify
	exits "$name: what was written verifies" 0
	kill_daemon
	rm -rf "$T/before"
done
check 'there is a root of each format' [ -d "$SRCDIR/test/golden/roots/format$(tr -dc 0-9 <"$AVA_DATA_ROOT/FORMAT")" ]

finish
