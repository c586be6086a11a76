# Notices that nobody acknowledged, and what they cost a start (notices.py).
. "${0%/*}/lib.sh"
if [ -n "$AVA_SANITIZER" ] || ! command -v valgrind >/dev/null; then
	echo '# skipped: valgrind counts instructions, and is not here or beside a sanitiser'
	result 0 'a start is counted where there is valgrind'
else
	python3 "$LIB/notices.py" >"$T/said" 2>&1
	check 'the counting ends well' [ $? -eq 0 ]
	results "$T/said"
fi
finish
