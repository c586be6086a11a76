#!/bin/sh
# The examples under valgrind, embedded and connected: no error, nothing lost. (The
# sanitisers' builds run them in test_libava.sh.)
. "${0%/*}/../cli/lib.sh"
[ -z "${AVA_SANITIZER:-}" ] || skip 'this build has a sanitiser'
command -v valgrind >/dev/null || skip 'no valgrind'

EXAMPLES=$BUILD/examples
mkdir "$T/tree"
printf 'The torn tail is cut at the last whole record.\n' >"$T/tree/notes.md"
printf 'where is the torn tail cut?\nwhat is a whole record?\n' >"$T/tasks"

# under NAME WORDS…: the example ends well, and valgrind has nothing to say.
under()
{
	name=$1
	shift
	run valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect \
		--log-file="$T/$name.valgrind" "$EXAMPLES/$name" "$@" <"$T/tasks"
	exits "$1: $name" 0
	# Lines of -- tell of calls that it does not know.
	equal "$1: $name, without a report" '' "$(grep '^==' "$T/$name.valgrind" | head -n 40)"
}

examples() # HOW ROOT
{
	under spawn_and_wait "$1" "$2" 'where is the torn tail cut?' "$T/tree"
	under go_on "$1" "$2" 'where is the torn tail cut?' "$T/tree"
	under progress "$1" "$2" 'where is the torn tail cut?' "$T/tree"
	under own_loop "$1" "$2" "$T/tree"
	under thousand "$1" "$2" 20 "$T/tree"
}

examples embedded "$T/embedded"
start_daemon
examples connect "$AVA_DATA_ROOT"
stop_daemon
finish
