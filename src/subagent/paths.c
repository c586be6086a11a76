/* Names are made from checked ids and fit their buffers. A file that somebody
 * changed is followed by x.2.jsonl and so on (doc/JOURNAL.md): of each part
 * the whole lines count, in the order of the parts. */
#include "subagent/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"
#include "journal/files.h"

void logbook_run_path(const char *run, char out[LOGBOOK_PATH])
{
	snprintf(out, LOGBOOK_PATH, "logs/subagents/%s.jsonl", run);
}

void logbook_messages_path(const char *run, char out[LOGBOOK_PATH])
{
	snprintf(out, LOGBOOK_PATH, "runs/%s/messages.jsonl", run);
}

void logbook_result_path(const char *run, char out[LOGBOOK_PATH])
{
	snprintf(out, LOGBOOK_PATH, "runs/%s/result.json", run);
}

/* The whole lines of `from` behind those of *data; `from` is freed. */
static int join(char **data, size_t *len, size_t max, char *from, size_t n, struct ava_error *err)
{
	const char *nl = *len > 0 ? memrchr(*data, '\n', *len) : NULL;
	size_t keep = nl ? (size_t)(nl - *data) + 1 : 0;
	char *both = n <= max - keep ? realloc(*data, keep + n + 1) : NULL;

	if (!both) {
		free(from);
		return err_set(err, AVA_ETOOBIG, "too big to be read as a whole");
	}
	memcpy(both + keep, from, n + 1);
	free(from);
	*data = both;
	*len = keep + n;
	return 0;
}

int logbook_read(int root_fd, const char *path, size_t max, char **data, size_t *len,
		 struct ava_error *err)
{
	char name[FILES_BUF], *more;
	unsigned part;
	size_t n;
	int first = sys_read_file(root_fd, path, max, data, len, err), rv = first;

	if (first == AVA_ENOENT) {
		*data = NULL;
		*len = 0;
	} else if (first != 0) {
		return first;
	}
	for (part = 2;; part++) {
		files_part_name(path, part, name);
		rv = sys_read_file(root_fd, name, max, &more, &n, NULL);
		if (rv == AVA_ENOENT)
			break;
		if (rv == 0)
			rv = join(data, len, max, more, n, err);
		else
			err_set(err, rv, "%s: %s", name, ava_strerror(rv));
		if (rv != 0) {
			free(*data);
			return rv;
		}
	}
	return part == 2 ? first : 0;
}

/* 0: *data is what stands there. */
static int read_tail(int root_fd, const char *path, size_t from, size_t max, char **data,
		     size_t *len)
{
	static const char cut[] = "{\"cut\":";
	char name[FILES_BUF], *bytes = NULL;
	struct stat st;
	size_t n = 0;
	int fd, rv = AVA_ENOENT;

	files_part_name(path, 2, name);
	if (sys->fstatat(root_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
		return AVA_EEXIST;
	fd = sys->openat(root_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
	if (fd < 0)
		return AVA_ENOENT;
	if (sys->fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size > from)
		n = (size_t)st.st_size - from;
	if (n > sizeof(cut) && n <= max)
		bytes = malloc(n + 1);
	if (bytes && sys_read_all(fd, bytes, n, (off_t)from) == 0 &&
	    memcmp(bytes, cut, sizeof(cut) - 1) == 0) {
		bytes[n] = 0;
		*data = bytes;
		*len = n;
		bytes = NULL;
		rv = 0;
	}
	free(bytes);
	sys->close(fd);
	return rv;
}

int logbook_read_from(int root_fd, const char *path, size_t *from, size_t max, char **data,
		      size_t *len, struct ava_error *err)
{
	if (*from > 0 && read_tail(root_fd, path, *from, max, data, len) == 0)
		return 0;
	*from = 0;
	return logbook_read(root_fd, path, max, data, len, err);
}

ssize_t logbook_read_cached(int root_fd, const char *path, char *out, size_t size)
{
	struct iovec room = {out, size};
	char name[FILES_BUF];
	struct stat st;
	ssize_t n = -1;
	int fd;

	files_part_name(path, 2, name);
	if (sys->fstatat(root_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
		return -1;
	fd = sys->openat(root_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (sys->fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
	    (uint64_t)st.st_size <= size)
		n = preadv2(fd, &room, 1, 0, RWF_NOWAIT);
	sys->close(fd);
	return n == st.st_size ? n : -1;
}
