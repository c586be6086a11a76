#!/bin/sh
# ava-page itself: what it prints, its codes and sentences, and that pages made to hurt end
# within its limits of time and memory.
. "${0%/*}/lib.sh"
PAGE=${AVAD%/*}/ava-page

page() # input as an expression of Python; more arguments are ava-page's
{
	input=$1
	shift
	python3 -c "import sys; sys.stdout.buffer.write(($input).encode('latin-1'))" >"$T/in"
	run sh -c 'exec "$0" "$@" <"$T/in"' "$PAGE" "$@"
}

page "'<title>T\"x</title><p>a <a href=b>c</a>'" --base https://h.example/d/e --type text/html
exits 'a page is read' 0
equal 'a line of JSON, then Markdown' '{"title":"T\"x","date":"","lang":"","charset":"utf-8","links":1,"words":2,"truncated":false}
a [c](https://h.example/d/b)' "$(cat "$OUT")"
page "'\\x82\\xa0'" --type text/plain --charset Shift_JIS
equal 'the charset that the server says, by a module of iconv' 'あ' "$(tail -n +2 "$OUT")"
page "'<meta charset=koi8-r><p class=a>\\xd1'" --type text/html --as source
equal 'the source of a page is as it came, but for its charset' '<meta charset=koi8-r><p class=a>я' "$(tail -n +2 "$OUT")"
page "'<p>a'" --as text
exits 'there are two forms' 2
page "'<p>' + 'word ' * 1000" --max-bytes 100
contains 'what is longer than told is cut, and said so' '"truncated":true' "$OUT"
check 'and what is written is no longer' test "$(tail -n +2 "$OUT" | wc -c)" -le 100

page "'%PDF-1.7'" --type application/pdf
exits 'what is no text is not understood' 3
equal 'with a sentence' 'ava-page: application/pdf is nothing that can be read as text' "$(cat "$ERR")"
equal 'and nothing else' '' "$(cat "$OUT")"
page "''" --type text/html
exits 'nor is an empty page' 3
for bad in '--base' '--max-bytes 0' '--max-bytes x' '--max-bytes 99999999999' '--unknown x' 'file.html'; do
	# shellcheck disable=SC2086
	page "'x'" $bad
	exits "usage: $bad" 2
done

# --- pages made to hurt; about 400 MB of addresses are libraries and what it may take.
hurt() # name, input, code
{
	page "$2" --type text/html
	exits "$1" "$3"
	[ "$3" -eq 0 ] || equal "$1: one sentence" 1 "$(grep -c '^ava-page: ' "$ERR")"
}
[ -n "$AVA_SANITIZER" ] || ulimit -v 400000
hurt '20,000 elements in each other' "'<div>' * 20000 + 'x'" 3
hurt 'a million attributes' "'<div ' + ' '.join('a%d' % i for i in range(1000000)) + '>x'" 3
hurt 'ten million brackets' "'<p>x' + '[' * 10000000" 0
hurt 'entities that a page defines' "'<!DOCTYPE x [' + ''.join('<!ENTITY a%d \"%s\">' % (i, '&a%d;' % (i - 1) * 10) for i in range(1, 30)) + ']><p>x &a29;'" 0
contains 'are not expanded' '&a29;' "$OUT"
hurt 'two million entities' "'<p>x' + '&amp;' * 2000000" 0
hurt 'links without an end' "'<a href=/x>y<p>' * 500000" 0
hurt 'tables in tables' "'<table><tr><td rowspan=60000 colspan=60000>x' * 300000" 0
hurt 'zeros' "'\\0' * 10000000" 3
finish
