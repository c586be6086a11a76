#!/bin/sh
# What people get wrong: each mistake is one sentence that says what to do,
# with exit code 2, and starts nothing. (Each value, size and encoding: unit/test_cli_opts.c, test_cli_task.c.)
. "${0%/*}/lib.sh"

"$AVA" ps >/dev/null || exit 99

# wrong NAME TEXT COMMAND...: exit 2 and one line on stderr that has TEXT.
wrong()
{
	wrong_name=$1 wrong_text=$2
	shift 2
	run "$@" </dev/null
	exits "$wrong_name" 2
	contains "$wrong_name: the sentence" "$wrong_text" "$ERR"
	equal "$wrong_name: one line" 1 "$(grep -c '^ava: run: ' "$ERR")"
	equal "$wrong_name: nothing else" 1 "$(wc -l <"$ERR" | tr -d ' ')"
}

wrong 'an unknown role' 'unknown role barista' "$AVA" run --role barista --yes x
wrong 'an unknown preset' 'unknown preset huge: there are quick, standard and deep' "$AVA" run --preset huge --yes x
wrong 'an unknown model' 'unknown model' "$AVA" run --model nobody/knows --yes x
wrong 'an unknown grant' 'unknown grant' "$AVA" run --grant everything --yes x
wrong 'an empty task' 'the task is empty' "$AVA" run --yes ''
wrong 'an empty task on stdin' 'the task is empty' "$AVA" run --yes -

wrong '--timeout 0' '--timeout must be a number of seconds above 0' "$AVA" run --yes --timeout 0 x
run "$AVA" run --yes --max-cost-cents 0 'find x'
exits 'cost 0: free models only, and this one is' 0

# A text of a megabyte, by both ways.
head -c 1048576 /dev/zero | tr '\0' x >"$T/big"
run sh -c '"$AVA" run --yes - <"$T/big"'
exits 'a task of 1 MB' 2
contains 'the limit and the way out are named' 'the task is over 256 KB: keep it short and hand the material over with --file' "$ERR"
head -c 131000 "$T/big" >"$T/arg" # the most that one argument of a command can be
run "$AVA" run --yes --json "find $(cat "$T/arg")"
exits 'the longest argument is still a task' 0
head -c 1000000 "$T/big" >"$T/fits"
run "$AVA" run --yes --json --file "$T/fits" 'find x'
exits 'a file of 1 MB is taken, and more than its tokens allow' 3

equal 'only those three were started' 3 "$("$AVA" ps -a --json | jq length)"
equal 'nor waits for an answer' '[]' "$("$AVA" proposals --json)"

wrong_usage()
{
	run "$@" </dev/null
	exits "$*" 2
}
wrong_usage "$AVA" run --yes a b
wrong_usage "$AVA" run --no-such-option x
wrong_usage "$AVA" run --yes=1 x
wrong_usage "$AVA" run x --timeout
wrong_usage "$AVA" ps extra
wrong_usage "$AVA" trace
equal 'the form is said once' 1 "$(grep -o checkpoint "$ERR" | wc -l)"
wrong_usage "$AVA" ''
wrong_usage "$AVA"

finish
