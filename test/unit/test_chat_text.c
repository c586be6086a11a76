/* What a conversation shows: Markdown as lines, Ava's words once however they
 * come, and when "still working" is due. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/util.h"
#include "cli/face.h"
#include "cli/markdown.h"

static char *text;
static size_t text_len;

static FILE *begin(void)
{
	FILE *f;

	free(text);
	f = open_memstream(&text, &text_len);
	assert_non_null(f);
	return f;
}

static void is(FILE *f, const char *want)
{
	fclose(f);
	assert_string_equal(text, want);
}

static void shown(const char *in, const char *want)
{
	FILE *f = begin();

	markdown_show(f, in, strlen(in), 0);
	is(f, want);
}

/* ---- Markdown; not a terminal: no styles */

TEST(markdown)
{
	shown("Plain words.", "  Plain words.\n");
	shown("# Head\n\nTwo **bold** *words*\nin lines.",
	      "  Head\n\n  Two bold words\n  in lines.\n");
	shown("List:\n- one\n- two\n  - in\n- three\n\nAfter.",
	      "  List:\n  \xe2\x80\xa2 one\n  \xe2\x80\xa2 two\n    \xe2\x80\xa2 in\n  "
	      "\xe2\x80\xa2 three\n\n"
	      "  After.\n");
	shown("3. three\n4. four\n", "  3. three\n  4. four\n");
	shown("> said\n> so\n", "  \xe2\x94\x82 said\n  \xe2\x94\x82 so\n");
	shown("```c\nint a;\n\n\tb;\n```\n", "      int a;\n\n          b;\n");
	shown("| a | b |\n|---|---|\n| 1 | 2 |\n", "  a | b\n  1 | 2\n");
	shown("[here](http://x.test/a) <b>x</b> &amp; http://y.test/",
	      "  here (http://x.test/a) <b>x</b> & http://y.test/\n");
	shown("one\n\n---\n\ntwo", "  one\n\n  ----\n\n  two\n");
	shown("", "");
}

TEST(markdown_hostile)
{
	char deep[4096];
	FILE *f;

	shown("a\033[2Jb\a", "  a\\x1b[2Jb\\x07\n");
	shown("[x](http://e.test/\033[5n)", "  [x](http://e.test/\\x1b[5n)\n");
	shown("`\xc2\x9b"
	      "31m`",
	      "  \\u{009b}31m\n");
	for (size_t i = 0; i < sizeof(deep) - 1; i += 2)
		memcpy(deep + i, "> ", MIN(sizeof(deep) - 1 - i, (size_t)2));
	deep[sizeof(deep) - 1] = '\0';
	f = begin();
	markdown_show(f, deep, sizeof(deep) - 1, 0); /* ends, and stays in bounds */
	fclose(f);
}

/* What a terminal of so many columns is sent, with plain line ends. */
static void shown_at(unsigned short columns, const char *in, size_t column, const char *want)
{
	struct winsize size = {.ws_row = 24, .ws_col = columns};
	int pty = posix_openpt(O_RDWR | O_NOCTTY), tty;
	char got[2000];
	size_t len = 0;
	ssize_t n;
	FILE *f;

	assert_true(pty >= 0 && grantpt(pty) == 0 && unlockpt(pty) == 0);
	tty = open(ptsname(pty), O_RDWR | O_NOCTTY);
	assert_true(tty >= 0 && ioctl(tty, TIOCSWINSZ, &size) == 0);
	f = fdopen(tty, "w");
	assert_non_null(f);
	markdown_show(f, in, strlen(in), column);
	fclose(f); /* the last: then the other side ends */
	while (len < sizeof(got) - 1 && (n = read(pty, got + len, sizeof(got) - 1 - len)) > 0)
		len += (size_t)n;
	got[len] = '\0';
	for (char *cr = strchr(got, '\r'); cr; cr = strchr(cr, '\r'))
		memmove(cr, cr + 1, strlen(cr));
	close(pty);
	assert_string_equal(got, want);
}

TEST(lines_end_between_words)
{
	setenv("NO_COLOR", "1", 1);
	shown_at(22, "one two three four five six", 0, "  one two three four\n  five six\n");
	shown_at(22, "one two three four five six", 5, "one two three\n  four five six\n");
	shown_at(23, "one two three **four**, five", 0, "  one two three four,\n  five\n");
	shown_at(23, "- one two three four five", 0, "  • one two three four\n    five\n");
	shown_at(23, "10. one two three four", 0, "  10. one two three\n     four\n");
	shown_at(23, "> one two three four five", 0, "  │ one two three four\n  │ five\n");
	shown_at(20, "\u6f22\u5b57 \u6f22\u5b57 \u6f22\u5b57 \u6f22\u5b57 a", 0,
		 "  \u6f22\u5b57 \u6f22\u5b57 \u6f22\u5b57\n  \u6f22\u5b57 a\n");
	/* What has no end that fits is broken, code and tables too. */
	shown_at(20, "```\none two three four five six\n```", 0,
		 "      one two three\n      four five six\n");
	shown_at(20, "see a/very/long/path/that/has/no/room and on", 0,
		 "  see\n  a/very/long/path/\n  that/has/no/room\n  and on\n");
	unsetenv("NO_COLOR");
}

/* Lines of the runtime's stand at the left edge, and no row of a model's does: not by words, not by
 * blanks of whatever kind, and not where the terminal would break a line. */
TEST(margin)
{
	static const struct {
		const char *in, *want;
	} rows[] = {
		{"So:\n\n✅ Subagent [X]: Complete", "  So:\n\n  ✅ Subagent [X]: Complete\n"},
		{"**🚀** Spawning", "  🚀 Spawning\n"},
		{"So:  \n   Proceed? [Yes/No]", "  So:\n  Proceed? [Yes/No]\n"},
		{"` Proceed?`", "   Proceed?\n"},
		{"- ❌ not", "  • ❌ not\n"},
		{"    ✅ code", "      ✅ code\n"},
		{"a\tb", "  a    b\n"},
		{"a\u00a0\u00a0b", "  a\u00a0\u00a0b\n"},
		{"a\u00a0\u00a0\u00a0\u00a0\u00a0\u2800\u2800\u2800\u3000b", "  a b\n"},
		{"a&nbsp;&nbsp;&nbsp;&nbsp;&nbsp;&nbsp;&nbsp;&nbsp;&nbsp;b", "  a b\n"},
		{"a\u2003\u200d\u2003\u200d\u2003\u200d\u2003\u200d\u2003b", "  a b\n"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		shown(rows[i].in, rows[i].want);
	setenv("NO_COLOR", "1", 1);
	shown_at(20, "✅ behind her name ✅ again", 5, "✅ behind her\n  name ✅ again\n");
	shown_at(20, "[a]: http://x.test/", 5, "\n"); /* nothing is shown of it */
	shown_at(20, "```\n                 Proceed?\n\t\t\t\t\tProceed?\n```", 0,
		 "                   \n  Proceed?\n                   \n  Proceed?\n");
	shown_at(20, "| a | Proceed? |\n|---|---|\n| wwwwwwwwwwwwww | Proceed? |", 0,
		 "  a | Proceed?\n  wwwwwwwwwwwwww |\n  Proceed?\n");
	/* Characters of which terminals make one column or two. */
	shown_at(
		20, "```\n✔️✔️✔️✔️✔️✔️✔️✔️Proceed?\n```", 0,
		"      ✔️✔️✔️✔️\n      ✔️✔️✔️✔️P\n      roceed?\n");
	unsetenv("NO_COLOR");
}

TEST(whole)
{
	static const struct {
		const char *text;
		size_t whole;
	} rows[] = {
		{"one", 0},
		{"one\ntwo", 0}, /* the same paragraph */
		{"one\n\ntwo", 5},
		{"one\n\n", 0},
		{"one\n- ", 0}, /* too little to tell */
		{"one\n- two", 4},
		{"- a\n  - b", 0}, /* belongs to the first */
		{"- a\n\n  more", 0},
		{"1. a\n2. b", 5},
		{"```\na\n\nb", 0}, /* a fence is one block */
		{"```\na\n```\n\nb", 11},
		{"a\n# head", 2},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(markdown_whole(rows[i].text, strlen(rows[i].text), 0),
				 rows[i].whole);
}

/* ---- Ava's words */

/* In pieces of every size, shown as soon as it can be, then the durable text. */
TEST(speech_pieces)
{
	static const char said[] = "One.\n\nTwo\nlines.\n\n- a\n- b\n\nEnd.";

	for (size_t step = 1; step < sizeof(said); step++) {
		FILE *f = begin();
		struct speech s;

		speech_init(&s);
		for (size_t at = 0; at < sizeof(said) - 1; at += step) {
			speech_piece(&s, said + at, MIN(step, sizeof(said) - 1 - at));
			if (speech_ready(&s))
				speech_show(&s, f);
		}
		speech_whole(&s, f, said, sizeof(said) - 1);
		speech_fini(&s);
		is(f,
		   "Ava: One.\n\n  Two\n  lines.\n  \xe2\x80\xa2 a\n  \xe2\x80\xa2 b\n\n  End.\n");
	}
}

static void piece(struct speech *s, FILE *f, const char *t)
{
	speech_piece(s, t, strlen(t));
	speech_show(s, f);
}

TEST(speech_orders)
{
	struct speech s;
	FILE *f = begin();

	speech_init(&s);
	/* Frames run ahead of the durable text of the reply before. */
	piece(&s, f, "First.");
	piece(&s, f, "Second.\n\nMore");
	speech_whole(&s, f, "First.", 6);
	speech_whole(&s, f, "Second.\n\nMore.", 14);
	/* No frames at all. */
	speech_whole(&s, f, "Third.", 6);
	speech_fini(&s);
	assert_int_equal(s.text.len, 0);
	fclose(f);
	assert_non_null(strstr(text, "More."));
	assert_non_null(strstr(text, "Ava: Third.\n"));
}

TEST(speech_cut)
{
	struct speech s;
	FILE *f = begin();

	speech_init(&s);
	piece(&s, f, "One.\n\nTw");
	speech_cut(&s);
	speech_close(&s);
	fputs("--\n", f);
	piece(&s, f, "On");
	piece(&s, f, "e.\n\nTwo.\n\nThr");
	speech_whole(&s, f, "One.\n\nTwo.\n\nThree.", 18);
	is(f, "Ava: One.\n--\nAva: Two.\n\n  Three.\n");

	/* The text never comes again: the durable one has its rest. */
	f = begin();
	piece(&s, f, "One.\n\nTw");
	speech_cut(&s);
	speech_close(&s);
	speech_whole(&s, f, "One.\n\nTwo.", 10);
	is(f, "Ava: One.\nAva: Two.\n");

	/* Another one comes: it is shown whole. */
	f = begin();
	piece(&s, f, "One.\n\nTw");
	speech_cut(&s);
	speech_close(&s);
	speech_whole(&s, f, "Other.", 6);
	is(f, "Ava: One.\nAva: Other.\n");
	speech_fini(&s);
}

/* ---- runs */

TEST(runs)
{
	static struct chat_runs r;
	char id[24];

	assert_int_equal(chat_runs_next(&r), -1);
	assert_string_equal(chat_runs_begin(&r, "S-000001", "web_crawler", 1000)->shown.role,
			    "WebCrawler");
	assert_null(chat_runs_due(&r, 1000 + PROGRESS_FIRST_MS - 1));
	assert_int_equal(chat_runs_next(&r), 1000 + PROGRESS_FIRST_MS);
	assert_non_null(chat_runs_due(&r, 1000 + PROGRESS_FIRST_MS));
	assert_null(chat_runs_due(&r, 1000 + PROGRESS_FIRST_MS));
	assert_int_equal(chat_runs_next(&r), 1000 + PROGRESS_FIRST_MS + PROGRESS_NEXT_MS);
	chat_runs_find(&r, "S-000001")->live = false;
	assert_int_equal(chat_runs_next(&r), -1);
	for (int i = 0; i < CHAT_RUNS_MAX; i++) { /* the ended one makes room */
		snprintf(id, sizeof(id), "S-1%05x", i);
		assert_non_null(chat_runs_begin(&r, id, "researcher", 0));
	}
	assert_null(chat_runs_find(&r, "S-000001"));
	assert_null(chat_runs_begin(&r, "S-fffff0", "researcher", 0));
	assert_non_null(chat_runs_begin(&r, id, "researcher", 0)); /* the same one again */
}

static int first(void **state)
{
	setenv("LC_ALL", "C.UTF-8", 1);
	setenv("TERM", "xterm", 1);
	return 0;
}

static int last(void **state)
{
	free(text);
	return 0;
}

UNIT_GROUP(.first = first, .last = last);
