/* Log lines that the index lacks: which files to look at, and their lines into rows; index.h.
 *
 * Happy path: folders whose time of change is the known one are not listed, and only logs that
 * may have grown are looked at: those of runs without an end, and the days. When the root's last
 * daemon ended in order and the index has seen that end, logs that rested are not looked at
 * either. New lines are read one by one.
 *
 * What can fail: memory, reading a log. A log that is shorter than its rows, or another file,
 * makes the whole index anew; a feed that follows reports it instead. */
#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/wal.h"
#include "journal/files.h"
#include "journal/index.h"
#include "journal/query.h"
#include "journal/read_root.h"

#define ROWS_MAX    ((size_t)1 << 20)   /* rows in memory before they become chunks */
#define STORE_BYTES ((uint64_t)1 << 20) /* new bytes that make storing worthwhile */
#define STORE_FILES 64
#define DAY_MS      86400000
#define TAIL_BYTES  4096u
#define SETTLED_MS  2000 /* for so long a further change may leave the times as they are */

/* ---- files */

struct index_look_listing {
	struct log_index *feed;
	const char *dir;
	unsigned flags;
	bool *seen; /* which files of the index are still there */
	size_t known;
	bool failed;
};

static void index_look_list_name(const char *name, void *user)
{
	struct index_look_listing *l = user;
	char path[FILES_BUF];
	size_t len = strlen(name);
	long file;

	if (l->failed || len < 7 || len > FILES_NAME_MAX || strcmp(name + len - 6, ".jsonl") != 0)
		return;
	snprintf(path, sizeof(path), "%s/%s", l->dir, name);
	file = index_file_add(l->feed, path, l->flags);
	l->failed = file < 0;
	if (file >= 0 && (size_t)file < l->known)
		l->seen[file] = true;
}

static int list_dir(struct log_index *f, unsigned which, struct ava_error *err)
{
	struct index_look_listing l = {.feed = f,
				       .dir = which == 0 ? INDEX_DAYS : INDEX_RUNS,
				       .flags = which == 0 ? INDEX_IS_DAY : 0,
				       .known = f->nfiles};
	int64_t changed = 0, now = clock_wall_ms();
	struct stat st;

	if (sys->fstatat(f->rootfd, l.dir, &st, 0) == 0)
		changed = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	if (changed != 0 && changed == f->dir_ns[which])
		return 0;
	l.seen = calloc(l.known + 1, sizeof(*l.seen));
	l.failed = l.seen == NULL;
	if (!l.failed && sys->list(f->rootfd, l.dir, index_look_list_name, &l) != 0 &&
	    errno != ENOENT) {
		free(l.seen);
		return err_sys(err, "list %s", l.dir);
	}
	for (size_t i = 0; i < l.known && !l.failed; i++) {
		if ((f->files[i].flags & INDEX_IS_DAY) != l.flags)
			continue;
		if (!l.seen[i])
			f->files[i].flags |= INDEX_GONE;
		else if ((f->files[i].flags & INDEX_GONE) != 0) /* a new file of the same name */
			f->files[i].covered = UINT64_MAX;
	}
	free(l.seen);
	if (l.failed)
		return err_set(err, AVA_ENOMEM, "%s: too many files for the memory there is",
			       l.dir);
	f->dir_ns[which] = changed / 1000000 + SETTLED_MS < now ? changed : 0;
	f->rested += f->dir_ns[which] != 0 ? STORE_FILES : 0;
	return 0;
}

/* S-x.jsonl, then S-x.2.jsonl and so on, asked for by name until one is missing, so that a
 * folder of a hundred thousand runs is not listed. The first may be gone: a file that a person
 * removed is never made again. */
static int index_look_list_run(struct log_index *f, struct ava_error *err)
{
	char base[64], path[FILES_BUF];
	struct stat st;

	snprintf(base, sizeof(base), INDEX_RUNS "/%s.jsonl", f->run);
	for (unsigned part = MAX(f->part, 1u);; part++) {
		files_part_name(base, part, path);
		if (sys->fstatat(f->rootfd, path, &st, 0) != 0) {
			if (errno != ENOENT)
				return err_sys(err, "%s", path);
			if (part == 1)
				continue;
			return 0;
		}
		if (index_file_add(f, path, 0) < 0)
			return err_set(err, AVA_ENOMEM, "no memory to read %s", path);
		f->first_gone = f->first_gone || (f->part == 0 && part > 1);
		f->part = part + 1;
	}
}

/* ---- lines */

/* Lines from *at up to `end` into rows; *torn: bytes behind the last newline. */
static int scan_lines(struct log_index *f, uint32_t file, int fd, uint64_t *at, uint64_t end,
		      uint64_t *torn)
{
	struct loglines l;
	const char *line;
	size_t len;
	int rv;

	*torn = 0;
	loglines_init(&l, fd, *at, end);
	while ((rv = loglines_next(&l, &line, &len)) == 1) {
		if (l.torn) {
			*torn = len;
			break;
		}
		if (!index_row_add(f, file, line, line != NULL ? len - 1 : INDEX_LINE + 1, *at)) {
			rv = AVA_ENOMEM;
			break;
		}
		*at = l.offset;
	}
	loglines_fini(&l);
	return MIN(rv, 0);
}

static int torn_add(struct log_index *f, uint32_t file, uint64_t at, uint32_t len)
{
	struct index_torn *grown = realloc(f->torn, (f->ntorn + 1) * sizeof(*grown));

	if (grown == NULL)
		return AVA_ENOMEM;
	f->torn = grown;
	f->torn[f->ntorn++] = (struct index_torn){file, len, at};
	return 0;
}

static int index_look_open_file(struct log_index *f, const char *path, struct stat *st,
				struct ava_error *err)
{
	/* NONBLOCK: opening a fifo must not wait for its writer. */
	int fd = sys->openat(f->rootfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
	int rv = 0;

	if (fd < 0)
		return err_sys(err, "%s", path);
	if (sys->fstat(fd, st) != 0)
		rv = err_sys(err, "%s", path);
	else if (!files_is_file(st))
		rv = err_set(err, AVA_EIO, "%s: not a regular file", path);
	if (rv != 0)
		files_close(&fd);
	return rv != 0 ? rv : fd;
}

/* A line's beginning, before which no line is behind `after`, near the last such one; or 0. */
static uint64_t index_look_tail(int fd, uint64_t size, uint64_t after)
{
	struct event_view v;
	struct loglines l;
	const char *line;
	size_t len;

	for (uint64_t back = TAIL_BYTES; back < size; back *= 8) {
		uint64_t at = 0;

		loglines_init(&l, fd, size - back, size);
		if (loglines_next(&l, &line, &len) == 1 && loglines_next(&l, &line, &len) == 1 &&
		    !l.torn && line != NULL && event_view(line, len, &v) == 0 && v.lsn <= after)
			at = l.offset - len;
		loglines_fini(&l);
		if (at > 0)
			return at;
	}
	return 0;
}

/* Scan a file behind its covered bytes. */
static int index_look_scan_file(struct log_index *f, uint32_t file, struct ava_error *err)
{
	char path[FILES_BUF];
	struct index_file *own = &f->files[file];
	struct stat st;
	uint64_t at = own->covered, end, torn;
	int fd, rv;

	snprintf(path, sizeof(path), "%s", index_string(f, own->path));
	fd = index_look_open_file(f, path, &st, err);
	if (fd < 0)
		return fd == AVA_ENOENT ? 0 : fd;
	end = (uint64_t)st.st_size;
	if (at == 0 && f->bounds.after > 0)
		at = own->covered = index_look_tail(fd, end, f->bounds.after);
	for (int tries = 0;; tries++) {
		rv = scan_lines(f, file, fd, &at, end, &torn);
		/* A torn line may be one that its writer is just writing. */
		if (rv != 0 || torn == 0 || f->follow || tries == 10)
			break;
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		end += 65536;
	}
	own = &f->files[file];
	f->scanned += at - own->covered;
	own->covered = at;
	own->inode = (uint64_t)st.st_ino;
	own->flags &= ~(unsigned)(INDEX_RESTED | INDEX_GONE);
	if ((int64_t)st.st_mtim.tv_sec * 1000 + SETTLED_MS < clock_wall_ms())
		own->flags |= INDEX_RESTED;
	if (rv == 0 && torn > 0) {
		own->flags &= ~(unsigned)(INDEX_OVER | INDEX_RESTED);
		rv = torn_add(f, file, at, (uint32_t)torn);
	}
	if (rv == AVA_ENOMEM)
		err_set(err, rv, "%s: no memory to read it", path);
	else if (rv != 0)
		err_sys(err, "%s: read", path);
	sys->close(fd);
	return rv;
}

enum { LOOK_ANEW = 1 }; /* the rows of a log tell of lines that are not there any more */

static int look_file(struct log_index *f, uint32_t file, struct ava_error *err)
{
	struct index_file *own = &f->files[file];
	struct stat st;
	uint64_t was = own->covered;

	if (sys->fstatat(f->rootfd, index_string(f, own->path), &st, 0) != 0) {
		if (errno != ENOENT)
			return err_sys(err, "%s", index_string(f, own->path));
		own->flags |= INDEX_GONE;
		return 0;
	}
	if (was > 0 && ((uint64_t)st.st_size < was || (uint64_t)st.st_ino != own->inode)) {
		if (!f->follow)
			return LOOK_ANEW;
		own->covered = (uint64_t)st.st_ino != own->inode ? 0 : (uint64_t)st.st_size;
		own->inode = (uint64_t)st.st_ino;
		return err_set(err, AVA_ECORRUPT,
			       "%s:%llu: the file was cut to %llu bytes while it was read",
			       index_string(f, own->path), (unsigned long long)was,
			       (unsigned long long)st.st_size);
	}
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size == was) {
		if ((own->flags & INDEX_RESTED) == 0 &&
		    (int64_t)st.st_mtim.tv_sec * 1000 + SETTLED_MS < clock_wall_ms()) {
			own->flags |= INDEX_RESTED;
			f->rested++;
		}
		own->inode = (uint64_t)st.st_ino;
		return 0;
	}
	return index_look_scan_file(f, file, err);
}

/* An unreadable log leaves the others as they are. */
static int look_or_leave(struct log_index *f, uint32_t file, struct ava_error *err)
{
	int rv = look_file(f, file, err);
	bool told = (f->files[file].flags & INDEX_UNREAD) != 0;

	f->files[file].flags &= ~(unsigned)INDEX_UNREAD;
	if ((rv != AVA_EIO && rv != AVA_EDENIED) || f->scope == INDEX_OF_RUN)
		return rv;
	f->files[file].flags |= INDEX_UNREAD;
	return told ? 0 : torn_add(f, file, (uint64_t)-rv, UINT32_MAX);
}

/* End mark of the root's last daemon, if it ended in order. 0: it did not, one is at work, or
 * the writer is no daemon. */
static uint64_t quiet_end(int rootfd)
{
	char *text = NULL;
	uint64_t end = 0;
	size_t len;

	if (read_is_clean(rootfd) &&
	    sys_read_file(rootfd, CHECKPOINT_PATH, (size_t)64 << 20, &text, &len, NULL) == 0)
		end = (uint64_t)2 << 32 | crc32c(0, text, len);
	free(text);
	return end;
}

static bool look_all_files(const struct log_index *f, const struct index_file *file, bool quiet)
{
	const char *name = index_string(f, file->path) + sizeof(INDEX_DAYS);

	if (f->scope == INDEX_OF_DAYS &&
	    ((file->flags & INDEX_IS_DAY) == 0 ||
	     strncmp(name, f->bounds.since_day, strlen(f->bounds.since_day)) < 0))
		return false; /* no event is of a later day than its log */
	if ((file->flags & INDEX_GONE) != 0)
		return file->covered == UINT64_MAX;
	return (file->flags & INDEX_OVER) == 0 && (!quiet || (file->flags & INDEX_RESTED) == 0);
}

static int look_all(struct log_index *f, struct ava_error *err)
{
	uint64_t end = f->scope == INDEX_OF_RUN ? 0 : quiet_end(f->rootfd);
	bool quiet = end != 0 && end == f->quiet && !f->follow;
	int rv = 0;

	f->ntorn = 0;
	if (f->scope == INDEX_OF_RUN)
		rv = index_look_list_run(f, err);
	else
		rv = list_dir(f, 0, err);
	if (rv == 0 && f->scope == INDEX_OF_ALL)
		rv = list_dir(f, 1, err);
	for (size_t i = 0; i < f->nfiles && rv == 0; i++) {
		if (!look_all_files(f, &f->files[i], quiet))
			continue;
		rv = look_or_leave(f, (uint32_t)i, err);
		if (rv == 0 && f->nrows >= ROWS_MAX && !f->follow) { /* bounds the memory */
			rv = index_chunk_rows(f, err);
			if (rv == 0 && f->scope == INDEX_OF_ALL)
				index_store(f);
			if (rv == 0 && f->nrows > 0 && f->chunked == f->nrows) {
				f->nrows = f->chunked = 0;
				f->in_memory = true;
			}
		}
	}
	if (rv == 0)
		f->quiet = end;
	return rv;
}

int index_look(struct log_index *f, long file, struct ava_error *err)
{
	int rv = file >= 0 ? look_or_leave(f, (uint32_t)file, err) : look_all(f, err);
	int chunks = index_chunk_rows(f, err);

	return rv != 0 ? rv : chunks;
}

int index_open(struct log_index **out, int rootfd, enum index_scope scope, const char *run,
	       const struct query *want, bool anew, struct ava_error *err)
{
	struct log_index *f = calloc(1, sizeof(*f));
	bool bounded = want != NULL && want->near && scope == INDEX_OF_DAYS &&
		       (want->after > 0 || want->since_ms > DAY_MS);
	uint64_t was;
	int rv;

	*out = NULL;
	if (f == NULL)
		return err_set(err, AVA_ENOMEM, "no memory for the index");
	*f = (struct log_index){.rootfd = rootfd, .rowsfd = -1, .scope = scope, .run = run};
	if (bounded)
		f->bounds.after = want->after;
	if (bounded && want->since_ms > DAY_MS)
		clock_local_date(want->since_ms - DAY_MS, f->bounds.since_day);
	rv = index_init(f, err);
	if (anew)
		index_forget(rootfd);
	if (rv == 0 && !anew && !bounded && scope != INDEX_OF_RUN && !index_load(f))
		rv = index_init(f, err);
	was = f->quiet;
	if (rv == 0)
		rv = look_all(f, err);
	if (rv == LOOK_ANEW) {
		index_forget(rootfd);
		rv = index_init(f, err);
		was = 0;
		if (rv == 0)
			rv = look_all(f, err);
		if (rv == LOOK_ANEW)
			rv = err_set(err, AVA_EIO, "logs change while they are read: try again");
	}
	if (rv == 0 && scope == INDEX_OF_ALL &&
	    (anew || f->scanned >= STORE_BYTES || f->added >= STORE_FILES ||
	     f->rested >= STORE_FILES ||
	     (f->nfiles >= STORE_FILES && f->quiet != 0 && f->quiet != was)))
		index_store(f);
	if (rv == 0)
		rv = index_chunk_rows(f, err);
	if (rv != 0) {
		index_close(f);
		return rv;
	}
	*out = f;
	return 0;
}

static _Atomic bool keeping;

static void *keep_main(void *root)
{
	int rootfd = read_open_root(root, NULL);
	struct log_index *f;

	if (rootfd >= 0 && read_check_format(rootfd, NULL) == 0 &&
	    index_open(&f, rootfd, INDEX_OF_ALL, NULL, NULL, false, NULL) == 0)
		index_close(f);
	if (rootfd >= 0)
		sys->close(rootfd);
	free(root);
	keeping = false;
	return NULL;
}

void index_keep(const char *root)
{
	sigset_t all, old;
	pthread_t thread;
	char *copy;

	if (keeping)
		return;
	copy = strdup(root);
	if (copy == NULL)
		return;
	keeping = true;
	sigfillset(&all); /* signals are for the loop's thread */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, keep_main, copy) == 0) {
		pthread_detach(thread);
	} else {
		free(copy);
		keeping = false;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void index_close(struct log_index *f)
{
	if (f == NULL)
		return;
	index_reset(f);
	free(f);
}
