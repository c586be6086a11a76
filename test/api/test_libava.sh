# The examples, run embedded and connected, under valgrind: no error, nothing lost; what is installed,
# used as a program would; the symbols that are seen.
. "${0%/*}/../cli/lib.sh"

EXAMPLES=$BUILD/examples
VALGRIND= # where there is one, and no sanitiser that looks as well
[ -n "$AVA_SANITIZER" ] || ! command -v valgrind >/dev/null || VALGRIND="valgrind --quiet --leak-check=full
	--error-exitcode=99 --errors-for-leak-kinds=definite,indirect --log-file=$T/report"
mkdir "$T/tree"
printf 'The torn tail is cut at the last whole record.\n' >"$T/tree/notes.md"
printf 'where is the torn tail cut?\nwhat is a whole record?\n' >"$T/tasks"

# example NAME WORD…: it ends well, and valgrind has nothing to say.
example()
{
	name=$1
	shift
	: >"$T/report"
	# shellcheck disable=SC2086 # words
	run $VALGRIND "$EXAMPLES/$name" "$@" <"$T/tasks"
	exits "$1: $name ends well" 0
	# Lines of -- tell of calls that it does not know.
	equal "$1: $name, without a report" '' "$(grep '^==' "$T/report" | head -n 40)"
}

examples() # HOW ROOT
{
	example spawn_and_wait "$1" "$2" 'where is the torn tail cut?' "$T/tree"
	contains "$1: and has the result" ': success after' "$OUT"
	contains "$1: with what was found" 'notes.md' "$OUT"

	example progress "$1" "$2" 'where is the torn tail cut?' "$T/tree"
	contains "$1: it saw the tools" 'calls search_codebase' "$OUT"
	contains "$1: and what was done" 'Reading notes.md' "$OUT"
	contains "$1: and drew the whole bar" '[##############################]' "$OUT"

	example own_loop "$1" "$2" "$T/tree"
	equal "$1: both tasks have ended" 2 "$(grep -c ' success: ' "$OUT")"

	example go_on "$1" "$2" 'where is the torn tail cut?' "$T/tree"
	contains "$1: it reached its limit" ': iterations_exceeded after 1 calls' "$OUT"
	contains "$1: its record was checked" 'replays identically' "$OUT"
	contains "$1: it was quoted" 'Proceed?' "$OUT"
	contains "$1: and went on to its end" ': success after' "$OUT"

	example thousand "$1" "$2" 20 "$T/tree"
	contains "$1: all of them" '20 started, 20 ended, 20 with success' "$OUT"
}

examples embedded "$T/embedded"
start_daemon
examples connect "$AVA_DATA_ROOT"
stop_daemon

VALGRIND= # which takes minutes for as many as the name says
RUNS=1000
[ -z "$AVA_SANITIZER" ] || RUNS=60
example thousand embedded "$T/thousand" "$RUNS" "$T/tree"
contains 'a thousand as well' "$RUNS started, $RUNS ended, $RUNS with success" "$OUT"

run "$EXAMPLES/spawn_and_wait" connect "$T/nowhere/at/all" task "$T/tree"
exits 'connect starts a daemon when none serves' 0
run "$EXAMPLES/spawn_and_wait" embedded "$T/nowhere/at/all" task "$T/tree"
exits 'a root that a daemon has is refused' 1
contains 'with a sentence' 'is in use by process' "$ERR"

# --- what is installed

# names FILE...: what the library shows.
so_names() { nm -D --defined-only "$1" | awk 'NF == 3 && $3 !~ /^LIBAVA/ { sub(/@.*/, "", $3); print $3 }' | sort; }
a_names() { nm -g --defined-only "$1" | awk 'NF == 3 { print $3 }' | sort; }
header_names() { grep -oE '\bava_[a-z_]+\(' "$1" | tr -d '(' | sort -u; }

wanted=$(header_names "$SRCDIR/include/ava.h")
if [ -z "$AVA_SANITIZER" ]; then
	equal 'libava.so shows the calls of ava.h and nothing else' "$wanted" \
		"$(so_names "$BUILD/src/api/libava.so")"
	equal 'libava.a too' "$wanted" "$(a_names "$BUILD/src/api/libava.a")"
	contains 'its soname is versioned' 'libava.so.0' "$BUILD/src/api/libava.so"

	DESTDIR="$T/installed" meson install --no-rebuild -C "$BUILD" >"$OUT" 2>&1
	result $? 'it is installed' || note "$(tail -5 "$OUT")"
	pc=$(find "$T/installed" -name ava.pc)
	prefix=$T/installed$(sed -n 's/^prefix=//p' "$pc")
	export PKG_CONFIG_PATH="${pc%/*}${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
	needs=$(sed -n 's/^Requires.private: //p' "$pc")
	cflags=$(pkg-config "--define-variable=prefix=$prefix" --cflags ava)
	for kind in shared static; do
		libs=$(pkg-config "--define-variable=prefix=$prefix" --libs ava)
		# The archive of ours, and the libraries of others as they are.
		# shellcheck disable=SC2086 # words
		[ "$kind" = shared ] || libs=$(printf '%s' "$libs" | sed 's/-lava$/-l:libava.a/
			s/-lava /-l:libava.a /')" $(pkg-config --libs $needs) -pthread -lm"
		# shellcheck disable=SC2086 # words
		run ${CC:-cc} $cflags -o "$T/program_$kind" "$SRCDIR/examples/spawn_and_wait.c" $libs
		exits "pkg-config compiles an example ($kind)" 0
		run env LD_LIBRARY_PATH="$(dirname "${pc%/*}")" "$T/program_$kind" embedded \
			"$T/root_$kind" 'where is the torn tail cut?' "$T/tree"
		exits 'which runs' 0
	done
	man=$(find "$T/installed" -name ava.3)
	missing=
	for name in $wanted; do
		grep -q "$name(" "$man" || missing="$missing $name"
	done
	equal 'the man page has every call' '' "$missing"
	lacks 'and no macro of ours' AVA_API "$man"
fi

# --- other languages' compilers

for std in c99 c11 gnu17; do
	printf '#include <ava.h>\nint main(void) { return ava_status_ended(AVA_SUCCESS) - 1; }\n' \
		>"$T/one.c"
	run cc -std=$std -Wall -Wextra -Werror -pedantic -fsyntax-only -I"$SRCDIR/include" "$T/one.c"
	exits "the header is $std" 0
done
cat >"$T/one.cc" <<'EOF'
#include <ava.h>
int main()
{
	ava_options options = ava_options();
	ava_runtime *rt = nullptr;
	ava_error err;
	options.root = "/nonexistent";
	return ava_runtime_new(&rt, &options, &err);
}
EOF
cxx='c++'
command -v c++ >"$OUT" || cxx='clang -x c++'
run $cxx -std=c++11 -Wall -Wextra -Werror -pedantic -fsyntax-only -I"$SRCDIR/include" "$T/one.cc"
exits 'and C++' 0
finish
