/* search_codebase: which lines of the project hold a pattern. The result is
 * one line a match, "path:LINE:text" in path order, and a last line that says
 * how much was searched and what was not. It ends early at max_results. */
#include <ava.h>

#include "base/error.h"
#include "codec/json.h"
#include "tool/job.h"
#include "tool/scan.h"
#include "tool/table.h"

#define RESULTS_DEFAULT 50
#define OUTPUT_MAX      (1u << 20) /* bytes of result lines; stop there */

struct search {
	struct scan scan;
	struct buf *out;
	size_t max;
	bool full; /* max reached, and there was one more */
};

static int hit(void *user, const struct scan_hit *h)
{
	struct search *s = user;

	if (s->scan.matches == s->max || s->out->len > OUTPUT_MAX) {
		s->full = true;
		return 1;
	}
	return scan_line(s->out, h);
}

static void summary(const struct search *s)
{
	const struct scan *n = &s->scan;

	buf_addf(s->out, "%zu match%s in %zu file%s (", n->matches, n->matches == 1 ? "" : "es",
		 n->matched_files, n->matched_files == 1 ? "" : "s");
	scan_counts(n, s->out);
	buf_adds(s->out, s->full ? "); there are more: narrow it with path or glob, or raise "
				   "max_results\n"
				 : ")\n");
}

static int run(struct tool_call *c, struct ava_error *err)
{
	struct search s = {.out = &c->out};
	int rv = scan_init(&s.scan, c, err);

	if (rv != 0)
		return rv;
	s.max = (size_t)json_get_int(c->args, "max_results", RESULTS_DEFAULT);
	s.scan.hit = hit;
	s.scan.user = &s;
	rv = scan_run(&s.scan, err);
	if (rv == 0 && s.scan.matches == 0)
		scan_none(&s.scan, json_get_str(c->args, "pattern"), &c->out);
	else if (rv == 0)
		summary(&s);
	scan_fini(&s.scan);
	return rv;
}

static void start(struct tool_call *c)
{
	job_start(c, run);
}

const struct tool tool_search_codebase = {
	.name = "search_codebase",
	.description =
		"Find the lines of the project's files that hold a pattern. Use it to locate code, "
		"names, settings or words before reading; it searches all files at once and "
		"answers "
		"with path:LINE:text, in path order, and counts. The pattern is plain text unless "
		"regex is true. Files that .gitignore names, binary files and files over 5 MB are "
		"left out. To see the code around the matches at once use search_and_read; to read "
		"a file you know use read_file.",
	.schema =
		"{\"type\":\"object\",\"properties\":{"
		"\"pattern\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":1000,"
		"\"description\":\"Text to find within a line, or with regex a Perl-compatible "
		"regular expression.\"},"
		"\"regex\":{\"type\":\"boolean\",\"description\":\"Default false: plain text.\"},"
		"\"ignore_case\":{\"type\":\"boolean\",\"description\":\"Default false.\"},"
		"\"path\":{\"type\":\"string\",\"maxLength\":4096,\"description\":\"Folder or file "
		"to search, relative to the working folder. Default: all of it.\"},"
		"\"glob\":{\"type\":\"string\",\"maxLength\":1000,\"description\":\"Only files "
		"whose "
		"name fits, as *.c or *.{c,h}; with a slash the path, as src/**/*.c.\"},"
		"\"max_results\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":500,"
		"\"description\":\"Default 50.\"}},"
		"\"required\":[\"pattern\"],\"additionalProperties\":false}",
	.flags = TOOL_REPEATABLE | TOOL_FILES | TOOL_PRIVATE,
	.start = start,
	.activity = scan_activity,
};
