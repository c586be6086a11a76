/* Searching files; see scan.h.
 *
 * Each file is read in pieces into one buffer that the whole search shares
 * (never mapped: a file that shrinks would kill us), looked at for NUL bytes
 * first, then searched. What cannot or should not be searched is counted, and
 * the summary says so. When a bound is reached the search ends as a success
 * that says what it did not do; only a stop of the run ends it as an error. */
#include "tool/scan.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <ava.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/tool.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/utf8.h"
#include "tool/job.h"
#include "tool/root.h"

#define READ_STEP   (64u << 10)
#define BINARY_LOOK (8u << 10) /* a NUL in these first bytes: binary */

/* ---- set-up */

static int init_pattern(struct scan *s, const json_t *args, struct ava_error *err)
{
	const char *pattern, *glob;
	unsigned flags = 0;
	int rv = job_arg_str(args, "pattern", &pattern, err);

	if (rv == 0)
		rv = job_arg_str(args, "glob", &glob, err);
	if (rv != 0)
		return rv;
	if (json_get_bool(args, "regex", false))
		flags |= MATCH_REGEX;
	if (json_get_bool(args, "ignore_case", false))
		flags |= MATCH_IGNORE_CASE;
	rv = match_new(&s->match, pattern != NULL ? pattern : "", flags, &s->gate, err);
	if (rv != 0 || glob == NULL)
		return rv;
	return wild_glob_init(&s->glob, glob, err);
}

int scan_init(struct scan *s, struct tool_call *c, struct ava_error *err)
{
	const char *path;
	int rv;

	*s = (struct scan){
		.root = {c->env->cwd_fd, c->env->cwd, c->env->keep_out},
		.gate = gate_of(c),
		.redact = c->env->redact,
		.files_max = SCAN_FILES_MAX,
		.bytes_max = SCAN_BYTES_MAX,
	};
	rv = job_arg_str(c->args, "path", &path, err);
	if (rv == 0)
		rv = root_path(&s->root, path != NULL ? path : ".", s->start, err);
	if (rv == 0)
		rv = init_pattern(s, c->args, err);
	if (rv != 0) {
		scan_fini(s);
		return rv;
	}
	if (strcmp(s->start, ".") != 0)
		s->start_skip = strlen(s->start) + 1;
	return 0;
}

void scan_fini(struct scan *s)
{
	match_free(s->match);
	wild_glob_fini(&s->glob);
	free(s->data);
	s->match = NULL;
	s->data = NULL;
}

/* ---- files */

int scan_load(struct scan *s, int fd, size_t *len)
{
	struct stat st;
	size_t size;
	int rv;

	*len = 0;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		s->unreadable++;
		return 0;
	}
	if (st.st_size > (off_t)SCAN_FILE_MAX) {
		s->big++;
		return 0;
	}
	size = (size_t)st.st_size;
	rv = ARRAY_ROOM(s->data, s->cap, size) ? 0 : AVA_ENOMEM;
	while (rv == 0 && *len < size) {
		ssize_t n = read(fd, s->data + *len, MIN(size - *len, READ_STEP));

		if (n < 0 && errno != EINTR) {
			s->unreadable++;
			return 0;
		}
		if (n == 0)
			break; /* the file has become shorter */
		if (n < 0)
			continue;
		if (*len < BINARY_LOOK &&
		    memchr(s->data + *len, '\0', MIN((size_t)n, BINARY_LOOK - *len)) != NULL) {
			s->binary++;
			return 0;
		}
		*len += (size_t)n;
		s->bytes += (size_t)n;
		if (*len < size)
			rv = gate_check(&s->gate);
	}
	return rv == 0 ? 1 : rv;
}

/* Report every matching line of the loaded file. 1: the callback wants no more. */
static int search_data(struct scan *s, const char *path, size_t len)
{
	struct scan_hit h = {.path = path, .line = 1};
	size_t from = 0, counted = 0;
	struct match_line line;
	bool first = true;
	int rv;

	if (len == 0)
		return 0; /* data may be NULL */
	if (len >= 3 && memcmp(s->data, "\xef\xbb\xbf", 3) == 0)
		from = counted = 3; /* skip a byte order mark */
	while ((rv = match_next(s->match, s->data, len, &from, &line, s->err)) == 1) {
		line.start = MAX(line.start, counted);
		h.line += jsonl_count(s->data + counted, line.start - counted);
		counted = line.start;
		h.text = s->data + line.start;
		h.len = line.end - line.start;
		h.at = line.at - line.start;
		if (s->hit(s->user, &h) != 0)
			return 1;
		s->matched_files += first;
		first = false;
		/* Every line may match: then this loop is the long work. */
		if (++s->matches % 1024 == 0 && (rv = gate_check(&s->gate)) != 0)
			return rv;
	}
	return rv;
}

/* `fd` is closed. */
static int search_fd(struct scan *s, int fd, const char *path)
{
	size_t len;
	int rv = scan_load(s, fd, &len);

	close(fd);
	if (rv != 1)
		return rv;
	s->files++;
	return search_data(s, path, len);
}

static int file_cb(void *user, int dirfd, const char *name, const char *path)
{
	struct scan *s = user;
	int fd;

	if (!wild_glob_match(&s->glob, path, s->start_skip))
		return 0;
	fd = root_open_entry(dirfd, name, false);
	if (fd < 0) {
		s->unreadable += errno != ENOENT && errno != ELOOP;
		return 0;
	}
	return search_fd(s, fd, path);
}

static int scan_poll_cb(void *user)
{
	struct scan *s = user;

	if (s->files + s->binary + s->big >= s->files_max) {
		snprintf(s->cut, sizeof(s->cut), "%zu files", s->files_max);
		return 1;
	}
	if (s->bytes >= s->bytes_max) {
		snprintf(s->cut, sizeof(s->cut), "%llu MB",
			 (unsigned long long)(s->bytes_max >> 20));
		return 1;
	}
	return gate_check(&s->gate);
}

int scan_run(struct scan *s, struct ava_error *err)
{
	struct walk w = {
		.root = &s->root,
		.start = s->start,
		.file = file_cb,
		.poll = scan_poll_cb,
		.user = s,
	};
	struct stat st;
	int rv, fd = root_open_dir(&s->root, s->start, err);

	s->err = err;
	if (fd >= 0) {
		close(fd);
		rv = walk_run(&w, err);
		s->unreadable += w.unreadable;
		s->odd += w.odd;
		s->deep += w.deep;
		s->crowded += w.crowded;
		s->slow += w.slow;
	} else if (fd == AVA_ENOENT) { /* the start may be a file */
		fd = root_open_file(&s->root, s->start, &st, err);
		rv = fd < 0 ? fd : search_fd(s, fd, s->start);
	} else {
		return fd;
	}
	if (rv == AVA_ETIMEOUT) {
		snprintf(s->cut, sizeof(s->cut), "%d seconds", s->gate.seconds);
		rv = 0;
	}
	return rv == 1 ? 0 : rv;
}

/* ---- results as text */

/* Beginning of the character that holds byte `at`. */
static size_t char_start(const char *s, size_t at)
{
	for (int i = 0; i < 3 && at != 0 && ((unsigned char)s[at] & 0xc0) == 0x80; i++)
		at--;
	return at;
}

int scan_line(struct buf *out, const struct redact *redact, const struct scan_hit *h)
{
	size_t from = 0, len = h->len, at = h->at, to;
	const char *text = h->text;
	struct buf clean;
	bool lost = false;

	buf_init(&clean, 4 * (size_t)SCAN_FILE_MAX);
	if (len > SCAN_TEXT_MAX && redact != NULL) {
		lost = redact_around(redact, &clean, text, len, &at) < 0;
		text = clean.data;
		len = lost ? 0 : clean.len;
	}
	to = len;
	if (len > SCAN_TEXT_MAX) {
		if (at > SCAN_TEXT_MAX * 2 / 3)
			from = char_start(text, at - SCAN_TEXT_MAX / 3);
		if (len - from > SCAN_TEXT_MAX)
			to = char_start(text, from + SCAN_TEXT_MAX);
	}
	buf_addf(out, "%s:%lld:%s", h->path, (long long)h->line, from != 0 ? "…" : "");
	if (!lost)
		utf8_repair(out, text + from, to - from);
	buf_fini(&clean);
	return buf_adds(out, to != len || lost ? "…\n" : "\n");
}

static void scan_count(struct buf *out, size_t n, const char *what)
{
	if (n != 0)
		buf_addf(out, ", %zu %s", n, what);
}

void scan_counts(const struct scan *s, struct buf *out)
{
	buf_addf(out, "%zu file%s searched", s->files, s->files == 1 ? "" : "s");
	scan_count(out, s->binary, "skipped as binary");
	scan_count(out, s->big, "skipped as over 5 MB");
	scan_count(out, s->unreadable, "unreadable");
	scan_count(out, s->odd, "skipped for names that are no text");
	scan_count(out, s->deep, "folders too deep");
	scan_count(out, s->crowded, "folders with too many files");
	scan_count(out, s->slow, "ignore files that are too slow, so that all is searched");
	if (s->cut[0] != '\0')
		buf_addf(out, "; stopped after %s: narrow it with path or glob", s->cut);
}

void scan_none(const struct scan *s, const char *pattern, struct buf *out)
{
	buf_adds(out, "no matches for ");
	job_quote(out, pattern);
	buf_adds(out, " (");
	scan_counts(s, out);
	buf_adds(out, ")");
	if (s->files == 0 && s->glob.count > 0)
		buf_adds(out, "; the glob fits no file");
	buf_addc(out, '\n');
}

#define ACTIVITY_CHARS 40 /* characters of the pattern */

/* Length of a part of an expression without letters to show: an anchor, a group's mark, a
 * quantifier, a class; *gap: it may match text. 0: a letter. */
static size_t scan_unread(const char *s, bool *gap)
{
	size_t n = 0;

	*gap = false;
	if (strncmp(s, "(?", 2) == 0) { /* "(?:", "(?i)", "(?<name>" */
		n = 2 + strcspn(s + 2, ":=!>)");
		return n + (s[n] != '\0');
	}
	if (*s == '\\' && strchr("bBAzZG", s[1]) != NULL)
		return s[1] != '\0' ? 2 : 1;
	if (strchr("^$()", *s) != NULL)
		return 1;
	if (*s == '.')
		n = 1;
	else if (*s == '\\' && isalpha((unsigned char)s[1]))
		n = 2;
	else if (*s == '[' && s[1] != '\0')
		n = 2 + strcspn(s + 2, "]") + (strchr(s + 2, ']') != NULL);
	*gap = n > 0;
	while (strchr("*+?", s[n]) != NULL && s[n] != '\0')
		n++;
	if (s[n] == '{' && isdigit((unsigned char)s[n + 1]))
		n += strcspn(s + n, "}") + (strchr(s + n, '}') != NULL);
	return n;
}

/* Add the words of an expression: "data.{0,5}root|(?:^|\s)at\(" is "data root or at(". */
static void add_sought(struct buf *out, const char *s)
{
	size_t start = out->len;
	bool gap = false, space = false, other = false; /* other: an alternative follows */

	while (*s != '\0') {
		size_t n = scan_unread(s, &gap);

		if (*s == '|') {
			while (out->len > start && out->data[out->len - 1] == ' ')
				out->len--;
			other = out->len > start;
			s++;
			continue;
		}
		space = out->len == start || out->data[out->len - 1] == ' ';
		if (n > 0) {
			buf_adds(out, gap && !space && !other ? " " : "");
			s += n;
			continue;
		}
		buf_adds(out, other ? " or " : "");
		other = false;
		s += *s == '\\' && s[1] != '\0';
		buf_addc(out, (unsigned char)*s < ' ' ? ' ' : *s);
		s++;
	}
	while (out->len > start && out->data[out->len - 1] == ' ')
		out->len--;
}

void scan_activity(const json_t *args, struct buf *out)
{
	const char *pattern = json_get_str(args, "pattern"), *path = json_get_str(args, "path");
	struct buf sought;
	size_t cut;

	pattern = pattern != NULL ? pattern : "";
	buf_init(&sought, 1u << 16);
	if (json_get_bool(args, "regex", false))
		add_sought(&sought, pattern);
	if (sought.len == 0 || buf_check(&sought) != 0) {
		sought.len = 0;
		for (const char *s = pattern; *s != '\0'; s++)
			buf_addc(&sought, (unsigned char)*s < ' ' ? ' ' : *s);
	}
	cut = utf8_prefix(sought.data != NULL ? sought.data : "", sought.len, ACTIVITY_CHARS);
	buf_addf(out, "Searching \"%.*s%s\"", (int)cut, sought.data != NULL ? sought.data : "",
		 cut < sought.len ? "…" : "");
	buf_fini(&sought);
	if (path != NULL && strcmp(path, ".") != 0) {
		buf_adds(out, " in ");
		job_name(out, path);
	}
}

/* ---- Matching lines.
 *
 * Plain text is looked up with memmem. A regular expression is run over blocks
 * of whole lines at once, since one call a line costs more than most lines:
 * a match then names its line. Expressions that could look past the end of
 * their line (found by their text, or by a match that holds a newline) are run
 * line by line instead.
 *
 * Limits: PCRE2 counts its work per start position, so a call is also given a
 * window of start positions (offset limit); the larger the window the smaller
 * the work allowed in it. A window that was too much is tried again in smaller
 * ones, down to a single position with WORK_MAX. Between two calls the
 * gate is asked, so none may take long: about 50 ms at the very worst. */

#define BLOCK         (32u << 10)  /* bytes of lines matched in one go */
#define SCAN_CALL     (256u << 20) /* most start positions times length of one call */
#define WORK_CALL     (8u << 20)   /* backtracking one call may cost */
#define WORK_MAX      1000000u     /* backtracking one start position may cost */
#define DEPTH_MAX     10000u
#define HEAP_MAX_KIB  (16u << 10)
#define JIT_STACK_MAX (1u << 20)
#define SLOW_US       5000 /* a call slower than this makes the window smaller */

struct match {
	char plain[MATCH_PATTERN_MAX + 1]; /* the pattern as text when `code` is NULL */
	size_t plain_len;
	const struct gate *gate;
	pcre2_code *code;
	pcre2_match_data *data;
	pcre2_match_context *ctx;
	pcre2_jit_stack *stack;
	size_t window; /* start positions per call */
	bool by_line, utf;
};

/* ---- compiling */

/* May the expression look past its line, or depend on the edges of the whole text? Yes when in
 * doubt. */
static bool looks_around(const char *p)
{
	for (; *p != '\0'; p++) {
		if (p[0] == '\\' && p[1] != '\0') {
			if (strchr("AzZGKnrRvNXxo0Cc", p[1]) != NULL)
				return true;
			p++;
		} else if (p[0] == '(' && p[1] == '*') {
			return true;
		} else if (p[0] == '(' && p[1] == '?') {
			if (p[2] != ':' && strncmp(p, "(?i)", 4) != 0)
				return true;
		} else if (strchr("+*?}", p[0]) != NULL && p[1] == '+') {
			return true; /* a possessive star gives no newline back */
		}
	}
	return false;
}

static bool scan_is_ascii(const char *s)
{
	for (; *s != '\0'; s++) {
		if ((unsigned char)*s >= 0x80)
			return false;
	}
	return true;
}

static int compile_error(int code, size_t at, struct ava_error *err)
{
	char text[200] = "";

	if (code == PCRE2_ERROR_HEAP_FAILED)
		return err_set(err, AVA_ENOMEM, "out of memory");
	pcre2_get_error_message(code, (PCRE2_UCHAR *)text, sizeof(text));
	return err_set(err, AVA_EINVAL,
		       "the regular expression is not valid at character %zu: %s; leave regex out "
		       "to search for it as plain text",
		       at + 1, text);
}

static int scan_set_up(struct match *m, unsigned flags)
{
	m->data = pcre2_match_data_create(1, NULL);
	m->ctx = pcre2_match_context_create(NULL);
	if (m->data == NULL || m->ctx == NULL)
		return AVA_ENOMEM;
	pcre2_set_depth_limit(m->ctx, DEPTH_MAX);
	pcre2_set_heap_limit(m->ctx, HEAP_MAX_KIB);
	if ((flags & MATCH_NO_JIT) || pcre2_jit_compile(m->code, PCRE2_JIT_COMPLETE) != 0)
		return 0; /* without JIT matching is slower and finds the same */
	m->stack = pcre2_jit_stack_create(32u << 10, JIT_STACK_MAX, NULL);
	if (m->stack == NULL)
		return AVA_ENOMEM;
	pcre2_jit_stack_assign(m->ctx, NULL, m->stack);
	return 0;
}

static int compile(struct match *m, const char *pattern, unsigned flags, struct ava_error *err)
{
	uint32_t opt = PCRE2_USE_OFFSET_LIMIT;
	pcre2_compile_context *cc = pcre2_compile_context_create(NULL);
	size_t at = 0;
	int code = 0;

	if (cc == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	/* $ also matches before the \r\n of other systems. */
	pcre2_set_newline(cc, PCRE2_NEWLINE_ANYCRLF);
	m->utf = !scan_is_ascii(pattern);
	if (m->utf)
		opt |= PCRE2_UTF | PCRE2_MATCH_INVALID_UTF;
	if (flags & MATCH_IGNORE_CASE)
		opt |= PCRE2_CASELESS;
	if (flags & MATCH_REGEX)
		opt |= PCRE2_MULTILINE | PCRE2_ALT_CIRCUMFLEX | PCRE2_NEVER_BACKSLASH_C |
		       (m->utf ? PCRE2_UCP : 0);
	else
		opt |= PCRE2_LITERAL;
	m->code = pcre2_compile((PCRE2_SPTR)pattern, strlen(pattern), opt, &code, &at, cc);
	pcre2_compile_context_free(cc);
	if (m->code == NULL)
		return compile_error(code, at, err);
	m->by_line = (flags & MATCH_REGEX) && looks_around(pattern);
	m->window = 64;
	if (scan_set_up(m, flags) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	return 0;
}

int match_new(struct match **out, const char *pattern, unsigned flags, const struct gate *gate,
	      struct ava_error *err)
{
	size_t len = strlen(pattern);
	struct match *m;
	int rv = 0;

	*out = NULL;
	if (len == 0)
		return err_set(err, AVA_EINVAL, "the pattern is empty: say what to search for");
	if (len > MATCH_PATTERN_MAX)
		return err_set(err, AVA_EINVAL, "the pattern is longer than %d bytes",
			       MATCH_PATTERN_MAX);
	if (strchr(pattern, '\n') != NULL)
		return err_set(err, AVA_EINVAL,
			       "the pattern holds a line break, but lines are searched one by one: "
			       "search for one line of it");
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	m->gate = gate;
	if (flags & (MATCH_REGEX | MATCH_IGNORE_CASE)) {
		rv = compile(m, pattern, flags, err);
	} else {
		memcpy(m->plain, pattern, len + 1);
		m->plain_len = len;
	}
	if (rv != 0) {
		match_free(m);
		return rv;
	}
	*out = m;
	return 0;
}

void match_free(struct match *m)
{
	if (m == NULL)
		return;
	pcre2_jit_stack_free(m->stack);
	pcre2_match_context_free(m->ctx);
	pcre2_match_data_free(m->data);
	pcre2_code_free(m->code);
	free(m);
}

/* ---- one text */

struct scan_match {
	size_t start, end;
};

/* Set the window that begins at `from` in a text of `len` bytes; returns its
 * size. A long text costs more per position, whatever the pattern does. */
static size_t set_window(struct match *m, size_t from, size_t len)
{
	size_t w = m->window, most = SCAN_CALL / MAX(len, (size_t)1);

	w = MAX(MIN(w, most), (size_t)1);
	pcre2_set_offset_limit(m->ctx, from + w - 1);
	pcre2_set_match_limit(m->ctx, w == 1 ? WORK_MAX : MAX(WORK_CALL / (uint32_t)w, 64));
	return w;
}

/* First position from `from` on where a window may begin: not inside a character, and not inside a
 * \r\n, where a line would seem to begin. */
static size_t next_start(const struct match *m, const char *text, size_t len, size_t from)
{
	if (from < len && text[from] == '\n' && text[from - 1] == '\r')
		from++;
	while (m->utf && from < len && ((unsigned char)text[from] & 0xc0) == 0x80)
		from++;
	return from;
}

/* First match in text[from..len). 1, 0 or a code. */
static int scan_on_thread(struct match *m, const char *text, size_t len, size_t from,
			  struct scan_match *hit, struct ava_error *err)
{
	while (from <= len) {
		size_t w = set_window(m, from, len);
		int64_t began = clock_mono_us();
		int rv = pcre2_match(m->code, (PCRE2_SPTR)text, len, from, 0, m->data, m->ctx);

		if (rv >= 0) {
			const PCRE2_SIZE *o = pcre2_get_ovector_pointer(m->data);

			hit->start = o[0];
			hit->end = MAX(o[0], o[1]);
			return 1;
		}
		if (rv == PCRE2_ERROR_NOMATCH) {
			/* Grow the window while calls are fast. */
			if (clock_mono_us() - began > SLOW_US)
				m->window = MAX(m->window / 4, (size_t)1);
			else
				m->window = MIN(m->window * 2, (size_t)BLOCK);
			from = next_start(m, text, len, from + w);
		} else if (rv == PCRE2_ERROR_NOMEMORY) {
			return err_set(err, AVA_ENOMEM, "out of memory");
		} else if (w == 1) {
			return err_set(err, AVA_EINVAL,
				       "the regular expression needs too much work on some line: "
				       "make it more specific (no repetition inside a repetition), "
				       "or search for plain text");
		} else {
			m->window = MAX(w / 16, (size_t)1);
		}
		rv = gate_check(m->gate);
		if (rv != 0)
			return rv;
	}
	return 0;
}

static int run_plain(const struct match *m, const char *text, size_t len, size_t from,
		     struct scan_match *hit)
{
	const char *at = memmem(text + from, len - from, m->plain, m->plain_len);

	if (at == NULL)
		return 0;
	hit->start = (size_t)(at - text);
	hit->end = hit->start + m->plain_len;
	return 1;
}

/* ---- lines */

/* The line of byte `at`; a newline belongs to the line it ends. */
static void line_around(const char *data, size_t len, size_t at, struct match_line *line)
{
	const char *before = memrchr(data, '\n', at);
	const char *after = memchr(data + at, '\n', len - at);

	line->start = before != NULL ? (size_t)(before + 1 - data) : 0;
	line->end = after != NULL ? (size_t)(after - data) : len;
}

static void drop_cr(const char *data, struct match_line *line)
{
	if (line->end > line->start && data[line->end - 1] == '\r')
		line->end--;
}

/* Match the lines from *from on, one call each. */
static int next_by_line(struct match *m, const char *data, size_t len, size_t *from,
			struct match_line *line, struct ava_error *err)
{
	while (*from < len) {
		struct scan_match hit;
		size_t next;
		int rv;

		line_around(data, len, *from, line);
		next = line->end + 1;
		drop_cr(data, line);
		rv = scan_on_thread(m, data + line->start, line->end - line->start, 0, &hit, err);
		if (rv < 0)
			return rv;
		*from = next;
		if (rv == 1) {
			line->at = line->start + MIN(hit.start, line->end - line->start);
			return 1;
		}
		rv = gate_check(m->gate);
		if (rv != 0)
			return rv;
	}
	return 0;
}

/* End of a block of whole lines that begins at `from`, without its last \n. */
static size_t block_end(const char *data, size_t len, size_t from)
{
	const char *nl;

	if (len - from <= BLOCK)
		return len - (data[len - 1] == '\n');
	nl = memrchr(data + from, '\n', BLOCK);
	if (nl == NULL)
		nl = memchr(data + from + BLOCK, '\n', len - from - BLOCK);
	return nl != NULL ? (size_t)(nl - data) : len;
}

static int next_by_block(struct match *m, const char *data, size_t len, size_t *from,
			 struct match_line *line, struct ava_error *err)
{
	while (*from < len) {
		struct match_line block = {.start = *from, .end = block_end(data, len, *from)};
		size_t next = block.end + 1;
		struct scan_match hit;
		int rv;

		drop_cr(data, &block);
		rv = scan_on_thread(m, data + *from, block.end - *from, 0, &hit, err);
		if (rv == AVA_EINVAL) { /* too much work for a block may be little for each line */
			m->by_line = true;
			return 2;
		}
		if (rv < 0)
			return rv;
		if (rv == 0) {
			*from = next;
			continue;
		}
		line->at = *from + hit.start;
		line_around(data, len, line->at, line);
		next = line->end + 1;
		drop_cr(data, line);
		if (*from + hit.end > line->end) { /* the match goes past the end of its line */
			m->by_line = true;
			*from = line->start;
			return 2;
		}
		*from = next;
		return 1;
	}
	return 0;
}

int match_next(struct match *m, const char *data, size_t len, size_t *from, struct match_line *line,
	       struct ava_error *err)
{
	struct scan_match hit;
	int rv = 2; /* 2: go on line by line */

	if (*from >= len)
		return 0;
	if (m->code == NULL) {
		rv = run_plain(m, data, len, *from, &hit);
		if (rv == 0) {
			*from = len;
			return 0;
		}
		line_around(data, len, hit.start, line);
		line->at = hit.start;
		*from = line->end + 1;
		drop_cr(data, line);
		return 1;
	}
	if (!m->by_line)
		rv = next_by_block(m, data, len, from, line, err);
	if (rv == 2)
		rv = next_by_line(m, data, len, from, line, err);
	return rv;
}
