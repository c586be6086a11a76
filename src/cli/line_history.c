/* The history file; line_history.h.
 *
 * Several terminals append to it, each entry in one write; whoever finds it too
 * long puts a shorter one in its place. What another terminal appends just then
 * is lost from the history, which is a comfort and not a record.
 *
 * What can fail: the folder or the file; the conversation goes on without. */
#include "cli/line_history.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/sys.h"

#define READ_MAX ((size_t)8 << 20) /* of a file that something else let grow */

int line_history_path(char *out, size_t size, struct ava_error *err)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int n;

	if (state && state[0] == '/')
		n = snprintf(out, size, "%s/ava/history", state);
	else if (home && home[0] == '/')
		n = snprintf(out, size, "%s/.local/state/ava/history", home);
	else
		return err_set(err, AVA_ENOENT, "no home folder is known");
	if (n < 0 || (size_t)n >= size)
		return err_set(err, AVA_ETOOBIG, "the path of the history is too long");
	(void)sys_make_folders(out, false);
	return 0;
}

static int escape(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n')
			buf_adds(out, "\\n");
		else if (*text == '\\')
			buf_adds(out, "\\\\");
		else
			buf_addc(out, *text);
	}
	return buf_addc(out, '\n');
}

static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (*s == '\\' && s[1] != '\0')
			*to++ = *++s == 'n' ? '\n' : *s;
		else
			*to++ = *s;
	}
	*to = '\0';
}

/* The end of the file, at most READ_MAX bytes, from the start of a line on. */
static int read_end(const char *path, struct buf *out, struct ava_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), rv = 0;
	char data[16384];
	struct stat st;
	ssize_t n = 0;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, "open %.300s", path);
	if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
		rv = err_set(err, AVA_EINVAL, "%.300s is no file", path);
	else if (st.st_size > (off_t)READ_MAX)
		lseek(fd, st.st_size - (off_t)READ_MAX, SEEK_SET);
	while (rv == 0 && (n = read(fd, data, sizeof(data))) > 0)
		rv = buf_add(out, data, (size_t)n);
	if (rv == 0 && n < 0)
		rv = err_sys(err, "read %.300s", path);
	close(fd);
	if (rv == 0 && st.st_size > (off_t)READ_MAX) {
		const char *nl = memchr(out->data, '\n', out->len);

		buf_drop(out, nl ? (size_t)(nl - out->data) + 1 : out->len);
	}
	return rv;
}

/* Where the newest LINE_HISTORY_ENTRIES lines begin. */
static size_t newest(const struct buf *b)
{
	size_t lines = 0, at = b->len;

	while (at > 0) {
		if (b->data[at - 1] == '\n' && lines++ == LINE_HISTORY_ENTRIES)
			break;
		at--;
	}
	return at;
}

static void rewrite(const char *path, const char *data, size_t len)
{
	char *temporary = NULL;
	int fd;

	if (asprintf(&temporary, "%s.%ld", path, (long)getpid()) < 0)
		return;
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0) {
		bool good = write(fd, data, len) == (ssize_t)len;

		close(fd);
		if (!good || rename(temporary, path) != 0)
			unlink(temporary);
	}
	free(temporary);
}

int line_history_load(const char *path, void (*each)(const char *text, void *user), void *user,
		      struct ava_error *err)
{
	struct buf b;
	char *line, *next;
	size_t from;
	int rv;

	buf_init(&b, READ_MAX + 16384);
	rv = read_end(path, &b, err);
	if (rv != 0 || b.len == 0) {
		buf_fini(&b);
		return rv;
	}
	from = newest(&b);
	if (b.len > LINE_HISTORY_FILE)
		rewrite(path, b.data + from, b.len - from);
	for (line = b.data + from; (next = strchr(line, '\n')) != NULL; line = next + 1) {
		*next = '\0';
		unescape(line);
		if (line[0] != '\0' && strlen(line) <= LINE_HISTORY_ENTRY)
			each(line, user);
	}
	buf_fini(&b);
	return 0;
}

int line_history_add(const char *path, const char *text, struct ava_error *err)
{
	struct buf b;
	int fd, rv;

	if (text[0] == ' ' || text[0] == '\0' || strlen(text) > LINE_HISTORY_ENTRY)
		return 0;
	buf_init(&b, 2 * LINE_HISTORY_ENTRY + 2);
	rv = escape(&b, text);
	fd = rv == 0 ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600)
		     : -1;
	if (rv == 0 && fd < 0)
		rv = err_sys(err, "open %.300s", path);
	if (fd >= 0) {
		if (write(fd, b.data, b.len) != (ssize_t)b.len)
			rv = err_sys(err, "write %.300s", path);
		close(fd);
	}
	buf_fini(&b);
	return rv;
}
