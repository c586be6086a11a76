/* write_file and edit_file: changes of the run's own copy of the project (tool/copy.h), never of
 * the project itself.
 *
 * The file is read whole, changed in memory, written beside itself and put in its place by a
 * rename, so that it is never half there. Its mode stays. What is no text, is reached through a
 * link or is protected is refused with a sentence; so is an old_string that is not there exactly
 * once, with the place that is nearest to it. Models write lines that end in LF: what a file has
 * of CR LF is no difference to old_string, and what is written has the file's. A run's calls come
 * one after the other (subagent/copying.c). */
#include <ava.h>
#include <stdlib.h>
#include <string.h>

#include "base/below.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/patch.h"
#include "codec/utf8.h"
#include "tool/job.h"
#include "tool/root.h"

#define LINES_NAMED 10  /* most places of old_string that are named */
#define HINT_CHARS  120 /* characters shown of the nearest line */

struct write_change {
	char path[PATH_MAX];
	char *data; /* bytes of the file; owned; NULL: there is no file */
	size_t len;
	char *flat; /* the bytes with LF for each CR LF; owned */
	size_t flat_len;
	bool crlf; /* most lines of the file end in CR LF */
	struct stat st;
};

static void change_close(struct write_change *m)
{
	free(m->data);
	free(m->flat);
}

/* ---- line ends */

static char *flatten(const char *s, size_t len, size_t *flat_len)
{
	char *out = malloc(len + 1);
	size_t n = 0;

	for (size_t i = 0; out && i < len; i++)
		if (s[i] != '\r' || i + 1 == len || s[i + 1] != '\n')
			out[n++] = s[i];
	if (out)
		out[n] = '\0';
	*flat_len = n;
	return out;
}

static void write_add_lines(struct buf *out, const char *s, bool crlf)
{
	for (size_t n; crlf && s[n = strcspn(s, "\n")]; s += n + 1) {
		buf_add(out, s, n);
		buf_adds(out, "\r\n");
	}
	buf_adds(out, s);
}

/* The place in the original text that is `flat` bytes of flat text behind `at`. */
static const char *write_go_on(const char *at, const char *end, size_t flat)
{
	for (; flat > 0; flat--)
		at += at + 1 < end && at[0] == '\r' && at[1] == '\n' ? 2 : 1;
	return at;
}

static size_t write_count_lines(const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += s[i] == '\n' || i + 1 == len;
	return n;
}

static size_t write_line_of(const char *data, const char *at)
{
	size_t n = 1;

	for (const char *p = data; p < at; p++)
		n += *p == '\n';
	return n;
}

/* Find and read the file of a call. */
static int change_open(struct write_change *m, const struct tool_call *c, struct ava_error *err)
{
	const struct tool_env *env = c->env;
	struct root root = {env->cwd_fd, env->cwd, env->keep_out};
	const char *arg, *why;
	int rv = job_arg_str(c->args, "path", &arg, err);

	m->data = m->flat = NULL;
	if (!env->copy)
		return err_set(err, AVA_EDENIED,
			       "this run may not change files: a person grants it with rw");
	if (rv == 0)
		rv = root_path(&root, arg ? arg : "", m->path, err);
	if (rv != 0)
		return rv;
	why = patch_protected(m->path);
	if (why)
		return err_set(
			err, AVA_EDENIED,
			"%.300s is protected (%s): such files decide what programs do in this "
			"folder, and no run changes them; tell the person what to change",
			m->path, why);
	if (!patch_path_ok(m->path))
		return err_set(err, AVA_EINVAL, "%.300s cannot be the name of a file here",
			       m->path);
	rv = below_read(env->cwd_fd, m->path, PATCH_FILE_MAX, &m->data, &m->len, &m->st, err);
	if (rv == AVA_ENOENT)
		return 0;
	if (rv == 0 && patch_unfit(m->data, m->len))
		rv = err_set(err, AVA_EDENIED, "%.300s is %s: only text is changed", m->path,
			     patch_unfit(m->data, m->len));
	if (rv == 0) {
		m->flat = flatten(m->data, m->len, &m->flat_len);
		m->crlf = 2 * (m->len - m->flat_len) >= write_line_of(m->data, m->data + m->len);
		rv = m->flat ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
	}
	return rv;
}

static int change_save(const struct write_change *m, const struct tool_call *c, const char *data,
		       size_t len, struct ava_error *err)
{
	int fd = c->env->cwd_fd, rv;

	if (patch_unfit(data, len))
		return err_set(err, AVA_ETOOBIG,
			       "%.300s would be too large (%u MB or %d lines at the most)", m->path,
			       PATCH_FILE_MAX >> 20, PATCH_LINES_MAX);
	rv = below_write(fd, m->path, BELOW_SPARE, data, len, m->data ? m->st.st_mode & 0777 : 0644,
			 err);
	return rv == 0 ? below_rename(fd, m->path, BELOW_SPARE, err) : rv;
}

/* ---- write_file */

static int write_run(struct tool_call *c, struct ava_error *err)
{
	const char *content;
	struct write_change m;
	struct buf lines;
	int rv = job_arg_str(c->args, "content", &content, err);

	if (rv != 0)
		return rv;
	buf_init(&lines, 2 * PATCH_FILE_MAX);
	rv = change_open(&m, c, err);
	if (rv == 0) {
		write_add_lines(&lines, content, m.data && m.crlf && !strchr(content, '\r'));
		rv = change_save(&m, c, lines.data ? lines.data : "", lines.len, err);
	}
	if (rv == 0) {
		utf8_repair(&c->out, m.path, strlen(m.path));
		buf_addf(&c->out, ": %s, %zu line%s", m.data ? "rewritten" : "new",
			 write_count_lines(lines.data, lines.len),
			 write_count_lines(lines.data, lines.len) == 1 ? "" : "s");
		if (m.data)
			buf_addf(&c->out, " (it had %zu)", write_count_lines(m.data, m.len));
		buf_addc(&c->out, '\n');
	}
	buf_fini(&lines);
	change_close(&m);
	return rv;
}

static void write_start(struct tool_call *c)
{
	job_start(c, write_run);
}

/* ---- edit_file */

struct edit {
	char *old, *new; /* both owned, with LF for each CR LF */
	bool all;
};

static void write_trim(const char **s, size_t *len)
{
	while (*len > 0 && strchr(" \t\r\n", **s)) {
		++*s;
		--*len;
	}
	while (*len > 0 && strchr(" \t\r\n", (*s)[*len - 1]))
		--*len;
}

/* The line nearest to the first line of `old` that is not blank. 0: none. */
static size_t nearest(const struct write_change *m, const char *old, const char **text,
		      size_t *text_len)
{
	size_t len = strcspn(old + strspn(old, " \t\r\n"), "\n"), best = 0, line = 0, n = 1;
	const char *want = old + strspn(old, " \t\r\n"), *end = m->flat + m->flat_len;

	write_trim(&want, &len);
	len = MIN(len, HINT_CHARS);
	for (const char *at = m->flat; at < end; n++) {
		const char *nl = memchr(at, '\n', (size_t)(end - at)), *s = at;
		size_t one = (size_t)((nl ? nl : end) - at), score;

		write_trim(&s, &one);
		score = 0; /* pairs of characters of `want` that the line holds */
		for (size_t i = 0; i + 1 < len; i++)
			score += memmem(s, one, want + i, 2) != NULL;
		if (score > best && 2 * score >= len) {
			best = score;
			line = n;
			*text = s;
			*text_len = one;
		}
		at = nl ? nl + 1 : end;
	}
	return line;
}

static int not_there(const struct write_change *m, const struct edit *e, struct ava_error *err)
{
	const char *text = "";
	size_t len = 0, line = nearest(m, e->old, &text, &len);

	if (line == 0)
		return err_set(err, AVA_EINVAL,
			       "old_string is not in %.300s, nor anything near it: read the file "
			       "again",
			       m->path);
	return err_set(err, AVA_EINVAL,
		       "old_string is not in %.300s; line %zu is nearest to its beginning: %.*s\n"
		       "Give the text exactly as it stands, with its blanks and without the line "
		       "numbers of read_file",
		       m->path, line, (int)utf8_prefix(text, len, HINT_CHARS), text);
}

static int several(const struct write_change *m, const struct edit *e, size_t n,
		   struct ava_error *err)
{
	char lines[LINES_NAMED * 12] = "";
	const char *at = m->flat;
	size_t len = 0;

	for (size_t i = 0; i < MIN(n, LINES_NAMED); i++) {
		at = memmem(at, (size_t)(m->flat + m->flat_len - at), e->old, strlen(e->old));
		len += (size_t)snprintf(lines + len, sizeof(lines) - len, "%s%zu", i ? ", " : "",
					write_line_of(m->flat, at));
		at += strlen(e->old);
	}
	return err_set(
		err, AVA_EINVAL,
		"old_string stands at %zu places of %.300s (lines %s%s): give more of the text "
		"around the one you mean, or replace_all",
		n, m->path, lines, n > LINES_NAMED ? ", …" : "");
}

/* Write the text with old replaced by new, in the line ends of the replaced place, else of the
 * file; returns how often. */
static size_t write_replace(const struct write_change *m, const struct edit *e, struct buf *out)
{
	size_t n = 0, old = strlen(e->old);
	const char *from = m->flat, *flat_end = m->flat + m->flat_len, *found;
	const char *at = m->data, *end = m->data + m->len, *next, *nl;

	while ((found = memmem(from, (size_t)(flat_end - from), e->old, old)) != NULL) {
		next = write_go_on(at, end, (size_t)(found - from));
		buf_add(out, at, (size_t)(next - at));
		at = write_go_on(next, end, old);
		nl = memchr(next, '\n', (size_t)(at - next));
		write_add_lines(out, e->new, nl ? nl > next && nl[-1] == '\r' : m->crlf);
		from = found + old;
		n++;
	}
	buf_add(out, at, (size_t)(end - at));
	return n;
}

static int edit_file(const struct write_change *m, struct tool_call *c, const struct edit *e,
		     struct ava_error *err)
{
	struct buf out, *say = &c->out;
	size_t n;
	int rv;

	if (!m->data)
		return err_set(err, AVA_ENOENT,
			       "there is no file %.300s: write_file makes a new one", m->path);
	buf_init(&out, 2 * PATCH_FILE_MAX);
	n = write_replace(m, e, &out);
	if (n == 0)
		rv = not_there(m, e, err);
	else if (n > 1 && !e->all)
		rv = several(m, e, n, err);
	else if (buf_check(&out) != 0)
		rv = err_set(err, buf_check(&out), "%.300s would be too large", m->path);
	else
		rv = change_save(m, c, out.data ? out.data : "", out.len, err);
	if (rv == 0) {
		utf8_repair(say, m->path, strlen(m->path));
		if (n == 1)
			buf_addf(say, ": changed at line %zu\n",
				 write_line_of(m->flat, memmem(m->flat, m->flat_len, e->old,
							       strlen(e->old))));
		else
			buf_addf(say, ": changed at %zu places\n", n);
	}
	buf_fini(&out);
	return rv;
}

static int edit_run(struct tool_call *c, struct ava_error *err)
{
	struct edit e = {.all = json_get_bool(c->args, "replace_all", false)};
	const char *old, *new = "";
	struct write_change m = {.data = NULL};
	size_t len;
	int rv = job_arg_str(c->args, "old_string", &old, err);

	if (rv == 0)
		rv = job_arg_str(c->args, "new_string", &new, err);
	if (rv != 0)
		return rv;
	e.old = flatten(old, strlen(old), &len);
	e.new = flatten(new, strlen(new), &len);
	if (!e.old || !e.new)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	else if (!e.old[0] || strcmp(e.old, e.new) == 0)
		rv = err_set(err, AVA_EINVAL,
			     e.old[0] ? "old_string and new_string are the same"
				      : "old_string is empty: write_file writes a whole file");
	rv = rv ? rv : change_open(&m, c, err);
	rv = rv ? rv : edit_file(&m, c, &e, err);
	free(e.old);
	free(e.new);
	change_close(&m);
	return rv;
}

static void edit_start(struct tool_call *c)
{
	job_start(c, edit_run);
}

/* ---- rows */

static void say_path(const json_t *args, const char *doing, struct buf *out)
{
	const char *path = json_get_str(args, "path");

	buf_adds(out, doing);
	job_name(out, path ? path : "");
}

static void write_activity(const json_t *args, struct buf *out)
{
	say_path(args, "Writing ", out);
}

static void edit_activity(const json_t *args, struct buf *out)
{
	say_path(args, "Editing ", out);
}

#define COPY                                                                                       \
	" You change a private copy of the project, which your other tools see too; when you "     \
	"have ended, the person gets the changes as a patch and decides. "
#define PATH                                                                                       \
	"\"path\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":4096,\"description\":"        \
	"\"The file, relative to the working folder.\"},"

const struct tool tool_write_file = {
	.name = "write_file",
	.description = "Write a whole text file: a new one, with the folders it is in, or in place "
		       "of what it was." COPY "To change a part of a file use edit_file.",
	.schema = "{\"type\":\"object\",\"properties\":{" PATH
		  "\"content\":{\"type\":\"string\",\"maxLength\":5000000,\"description\":"
		  "\"All of it, with a newline at its end.\"}},"
		  "\"required\":[\"path\",\"content\"],\"additionalProperties\":false}",
	.flags = TOOL_FILES | TOOL_PRIVATE | TOOL_WRITES,
	.start = write_start,
	.activity = write_activity,
};

const struct tool tool_edit_file = {
	.name = "edit_file",
	.description =
		"Replace a text in a file by another one. old_string must stand there exactly "
		"once, to the blank: give as many lines around it as make it so, as read_file "
		"shows them but without line numbers." COPY,
	.schema = "{\"type\":\"object\",\"properties\":{" PATH
		  "\"old_string\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":1000000,"
		  "\"description\":\"What stands there.\"},"
		  "\"new_string\":{\"type\":\"string\",\"maxLength\":1000000,"
		  "\"description\":\"What shall stand there; empty: nothing.\"},"
		  "\"replace_all\":{\"type\":\"boolean\",\"description\":\"Wherever it stands; "
		  "default false.\"}},"
		  "\"required\":[\"path\",\"old_string\",\"new_string\"],"
		  "\"additionalProperties\":false}",
	.flags = TOOL_FILES | TOOL_PRIVATE | TOOL_WRITES,
	.start = edit_start,
	.activity = edit_activity,
};
