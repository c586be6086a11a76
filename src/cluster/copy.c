/* The files of copies, read and written by threads of the pool. They lie below cluster/ as below a
 * data root. New lines are hashed behind those that are there, and written only when the head of
 * the run comes out. */
#include "cluster/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/sys.h"
#include "base/util.h"
#include "cluster/member.h"
#include "codec/jscan.h"

#define MACHINE_FILE "machine"

/* Makes the folders above a path. */
static void store_folders(int dir, const char *path)
{
	char folder[LOGBOOK_PATH];

	for (const char *at = path; (at = strchr(at, '/')); at++) {
		snprintf(folder, sizeof(folder), "%.*s", (int)(at - path), path);
		(void)sys->mkdirat(dir, folder, 0700);
	}
}

static int copy_open(int dir, const char *path, int flags)
{
	int fd = sys->openat(dir, path, flags | O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	store_folders(dir, path);
	return sys->openat(dir, path, flags | O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static int store_failed(struct ava_error *err, const char *path)
{
	return err_sys(err, READER_ROOT "/%s", path);
}

static int store_whole(int dir, const char *path, const void *data, size_t len,
		       struct ava_error *err)
{
	char part[LOGBOOK_PATH + 8];
	int fd, rv;

	snprintf(part, sizeof(part), "%s.part", path);
	fd = copy_open(dir, part, O_TRUNC);
	if (fd < 0)
		return store_failed(err, part);
	rv = sys_write_all(fd, data, len, 0);
	if (sys->close(fd) != 0 || rv != 0 || sys->renameat(dir, part, dir, path) != 0)
		return store_failed(err, path);
	return 0;
}

/* Adds bytes at the end of a file that has `at` of them. AVA_ECORRUPT: it has others. */
static int store_more(int dir, const char *path, int64_t at, const struct buf *more,
		      struct ava_error *err)
{
	struct stat st;
	int fd, rv;

	if (more->len == 0)
		return 0;
	if (at == 0)
		return store_whole(dir, path, more->data, more->len, err);
	fd = copy_open(dir, path, 0);
	if (fd < 0 || sys->fstat(fd, &st) != 0)
		rv = store_failed(err, path);
	else if (st.st_size != at)
		rv = err_set(err, AVA_ECORRUPT, "%s has changed", path);
	else
		rv = sys_write_all(fd, more->data, more->len, at) == 0 ? 0
								       : store_failed(err, path);
	if (fd >= 0)
		sys->close(fd);
	return rv;
}

/* Adds the lines of a log. AVA_ECORRUPT: these are none, or none of ava's. */
static int copy_chain(struct run_log *log, const char *data, size_t len)
{
	const char *line;
	size_t at = 0, n;

	while (jsonl_next(data, len, &at, &line, &n) == 1) {
		struct event_view v;

		if (event_view(line, n, &v) != 0)
			return AVA_ECORRUPT;
		run_log_add(log, v.seq, line, n + 1);
	}
	return at == len ? 0 : AVA_ECORRUPT;
}

/* The copy of an earlier daemon; something wrong with it is as nothing. */
void copy_load(struct os_work *w)
{
	struct reader_copy *c = w->priv;
	int dir = c->dir_fd;
	char path[LOGBOOK_PATH], *data = NULL;
	struct stat st;
	size_t len;

	logbook_run_path(c->id, path);
	if (sys_read_file(dir, path, COPY_BYTES, &data, &len, NULL) == 0 &&
	    copy_chain(&c->at, data, len) != 0)
		c->at = (struct run_log){0};
	free(data);
	logbook_messages_path(c->id, path);
	if (c->at.bytes > 0 && sys->fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
		c->messages_at = st.st_size;
	snprintf(path, sizeof(path), "runs/%s/" MACHINE_FILE, c->id);
	c->run.bytes = c->at.bytes;
	if (c->at.bytes > 0 && sys_read_file(dir, path, 64, &data, &len, NULL) == 0) {
		snprintf(c->run.machine, sizeof(c->run.machine), "%s", data);
		c->whole = c->run.ended = true;
		free(data);
	}
}

/* Does the run's last line name another result than the one that came? */
static bool copy_result_differs(const struct reader_copy *c)
{
	char path[LOGBOOK_PATH], wanted[HASH_HEX_LEN + 1], hash[HASH_HEX_LEN + 1];
	bool differs = false;

	if (!c->run.ended || !run_result_hash((struct slice){c->log.data, c->log.len}, wanted))
		return false;
	logbook_result_path(c->id, path);
	LIST_EACH (&c->files, n, tmp) {
		const struct reader_file *f = LIST_ENTRY(n, struct reader_file, node);

		if (strcmp(f->path, path) != 0)
			continue;
		hash_sha256_hex(f->body, f->len, hash);
		differs = strcmp(hash, wanted) != 0;
	}
	return differs;
}

static int copy_write(struct reader_copy *c)
{
	struct run_log log = c->at;
	int dir = c->dir_fd, rv = copy_chain(&log, c->log.data, c->log.len);
	char path[LOGBOOK_PATH];

	if (rv != 0 || log.bytes != c->head || memcmp(log.head, c->hash, sizeof(c->hash)) != 0 ||
	    copy_result_differs(c))
		return err_set(&c->err, AVA_ECORRUPT,
			       "the record of run %s in the database of the cluster is not what "
			       "its owner wrote: its lines do not give the head that it has there",
			       c->id);
	LIST_EACH (&c->files, n, tmp) {
		const struct reader_file *f = LIST_ENTRY(n, struct reader_file, node);

		rv = rv == 0 ? store_whole(dir, f->path, f->body, f->len, &c->err) : rv;
	}
	logbook_messages_path(c->id, path);
	if (rv == 0)
		rv = store_more(dir, path, c->messages_at, &c->messages, &c->err);
	logbook_run_path(c->id, path);
	if (rv == 0)
		rv = store_more(dir, path, c->at.bytes, &c->log, &c->err);
	if (rv == 0 && c->run.ended) {
		snprintf(path, sizeof(path), "runs/%s/" MACHINE_FILE, c->id);
		rv = store_whole(dir, path, c->run.machine, strlen(c->run.machine), &c->err);
	}
	if (rv == 0) {
		c->at = log;
		c->run.bytes = log.bytes;
		c->messages_at += (int64_t)c->messages.len;
	}
	return rv;
}

void copy_store(struct os_work *w)
{
	struct reader_copy *c = w->priv;

	c->rv = copy_write(c);
}
