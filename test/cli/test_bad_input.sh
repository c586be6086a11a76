#!/bin/sh
# What people get wrong: each mistake is one sentence that says what to do,
# with exit code 2, and starts nothing.
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
wrong 'a task of blanks' 'the task is empty' "$AVA" run --yes '
	 '
wrong 'an empty task on stdin' 'the task is empty' "$AVA" run --yes -

for bad in 0 -1 abc 1e9 '' 99999999999999999999; do
	wrong "--timeout '$bad'" '--timeout must be a number of seconds above 0' \
		"$AVA" run --yes --timeout "$bad" x
	wrong "--max-tokens '$bad'" '--max-tokens must be a whole number of at least 1' \
		"$AVA" run --yes --max-tokens "$bad" x
	wrong "--max-iterations '$bad'" '--max-iterations must be a whole number of at least 1' \
		"$AVA" run --yes --max-iterations "$bad" x
done
for bad in -1 abc 1e9 '' 99999999999999999999; do
	wrong "--max-cost-cents '$bad'" '--max-cost-cents must be a number of cents, 0' \
		"$AVA" run --yes --max-cost-cents "$bad" x
done
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
wrong 'two of them are not' 'context and files together are over 1024 KB' \
	"$AVA" run --yes --file "$T/fits" --file "$T/fits" x
wrong 'a file that is not' 'No such file' "$AVA" run --yes --file "$T/nothing" x
wrong 'a file that is a folder' 'not a regular file' "$AVA" run --yes --file "$T" x

bad=$(printf 'caf\351')
wrong 'a task that is not UTF-8' 'not valid UTF-8' "$AVA" run --yes "$bad"
wrong 'a context that is not' 'not valid UTF-8' "$AVA" run --yes --context "$bad" x
printf 'caf\351' >"$T/latin1"
wrong 'a file that is not' 'not valid UTF-8' "$AVA" run --yes --file "$T/latin1" x
run sh -c 'printf "a\0b" | "$AVA" run --yes -'
exits 'NUL bytes' 2
contains 'are told' 'NUL' "$ERR"

mkdir "$T/gone"
run sh -c 'cd "$T/gone" && rmdir "$T/gone" && exec "$AVA" run --yes x </dev/null'
exits 'a folder that is gone' 2
contains 'is told' 'the current folder does not exist any more' "$ERR"

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
