/* The cursor of ava logs; logcursor.h.
 *
 * One number would lose events: files are read while a daemon writes them,
 * and an event may reach its file a moment after a later one has reached
 * another. So the cursor is a number up to which everything is done, and the
 * events above it that were given. An event that was older than a minute when
 * the files were looked at moves the number up to itself: a healthy disk
 * delays lines for less. The time of giving does not count: the reader of our
 * output may be slow, and a file that was looked at before has got more since.
 *
 * The file is replaced as a whole, and synced; it is written after the events
 * have left, so that a crash between the two repeats them rather than losing
 * them. What can fail: a file that is something else, the disk. */
#include "cli/logcursor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/sys.h"

#define HEAD       "ava cursor 1\nafter "
#define FILE_MAX   ((size_t)128 << 10)
#define SETTLED_MS 60000

static bool logcursor_parse(struct logcursor *c, const char *text)
{
	char *end;

	if (strncmp(text, HEAD, sizeof(HEAD) - 1) != 0)
		return false;
	text += sizeof(HEAD) - 1;
	if (*text < '0' || *text > '9')
		return false;
	c->after = strtoull(text, &end, 10);
	if (strncmp(end, "\ngiven", 6) != 0)
		return false;
	for (text = end + 6; *text == ' '; text = end) {
		if (c->n == LOGCURSOR_GIVEN || text[1] < '0' || text[1] > '9')
			return false;
		c->given[c->n] = strtoull(text + 1, &end, 10);
		if (c->given[c->n] <= (c->n > 0 ? c->given[c->n - 1] : c->after))
			return false;
		c->n++;
	}
	return strcmp(text, "\n") == 0;
}

int logcursor_load(struct logcursor *c, const char *path, struct ava_error *err)
{
	char *text = NULL;
	size_t len;
	int rv;

	*c = (struct logcursor){.path = path};
	rv = sys_read_file(AT_FDCWD, path, FILE_MAX, &text, &len, err);
	if (rv == AVA_ENOENT)
		return 0;
	if (rv != 0)
		return rv;
	c->known = logcursor_parse(c, text);
	free(text);
	return c->known ? 0 : err_set(err, AVA_ECORRUPT, "%s is not a cursor of ava logs", path);
}

bool logcursor_has(const struct logcursor *c, uint64_t lsn)
{
	size_t lo = 0, hi = c->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (c->given[mid] == lsn)
			return true;
		if (c->given[mid] < lsn)
			lo = mid + 1;
		else
			hi = mid;
	}
	return c->known && lsn <= c->after;
}

/* Everything up to given[k - 1] is done. */
static void logcursor_settle(struct logcursor *c, size_t k)
{
	if (k == 0)
		return;
	c->after = c->given[k - 1];
	c->n -= k;
	memmove(c->given, c->given + k, c->n * sizeof(*c->given));
}

void logcursor_look(struct logcursor *c, int64_t now_ms)
{
	c->looked_ms = now_ms;
}

void logcursor_add(struct logcursor *c, uint64_t lsn, int64_t time_ms)
{
	size_t at = c->n;

	if (!c->known) { /* nobody asked for events before the first one */
		c->known = true;
		c->after = lsn - 1;
	}
	if (c->n == LOGCURSOR_GIVEN) {
		logcursor_settle(c, LOGCURSOR_GIVEN / 4);
		at = c->n;
	}
	if (lsn <= c->after || logcursor_has(c, lsn))
		return;
	for (; at > 0 && c->given[at - 1] > lsn; at--)
		c->given[at] = c->given[at - 1];
	c->given[at] = lsn;
	c->n++;
	if (time_ms < c->looked_ms - SETTLED_MS)
		logcursor_settle(c, at + 1);
}

int logcursor_save(const struct logcursor *c, struct ava_error *err)
{
	char path[4096];
	struct buf b;
	int fd = -1, rv = 0;

	if (!c->known)
		return 0;
	if (snprintf(path, sizeof(path), "%s.new", c->path) >= (int)sizeof(path))
		return err_set(err, AVA_EINVAL, "%s: the path is too long", c->path);
	buf_init(&b, FILE_MAX);
	buf_addf(&b, HEAD "%" PRIu64 "\ngiven", c->after);
	for (size_t i = 0; i < c->n; i++)
		buf_addf(&b, " %" PRIu64, c->given[i]);
	rv = buf_adds(&b, "\n");
	if (rv != 0) {
		err_set(err, rv, "no memory to write %s", c->path);
		goto out;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || sys_write_all(fd, b.data, b.len, 0) != 0 || fdatasync(fd) != 0 ||
	    rename(path, c->path) != 0)
		rv = err_sys(err, "write %s", c->path);
out:
	if (fd >= 0)
		close(fd);
	buf_fini(&b);
	return rv;
}
