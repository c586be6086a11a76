/* Facts about a data root; read_root.h.
 *
 * Files are read as they are on disk at that moment; a daemon may be at work. A catalog row that
 * cannot be parsed is skipped: the name may still be in the next one. */
#include "journal/read_root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/settings.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/catalog.h"
#include "journal/files.h"
#include "journal/wal.h"

#define FORMAT_KNOWN 2
#define EDGE_BYTES   (64u << 10) /* of a log, for its last line */

int read_open_root(const char *path, struct ava_error *err)
{
	int fd = sys->openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	if (fd < 0 && errno == ENOENT)
		return err_set(err, AVA_ENOENT,
			       "nothing has been logged yet: there is no data root %s", path);
	return fd >= 0 ? fd : err_sys(err, "data root %s", path);
}

struct find_trace {
	const char *name;
	struct run_id *run;
};

static int match_trace(struct catalog_row *row, void *user)
{
	const struct find_trace *f = user;

	if (!row || strcmp(row->trace_id, f->name) != 0 || !id_is_run(row->id))
		return 0;
	snprintf(f->run->text, sizeof(f->run->text), "%s", row->id);
	return 1;
}

int read_find_trace(int rootfd, const char *name, struct run_id *run, struct ava_error *err)
{
	struct find_trace f = {name, run};
	char key[80];
	int rv;

	if (strlen(name) >= sizeof(((struct trace_name *)0)->text) || strpbrk(name, "\"\\") != NULL)
		return err_set(err, AVA_ENOENT, "there is no run of that name");
	snprintf(key, sizeof(key), "\"traceId\":\"%s\"", name);
	rv = catalog_each(rootfd, NULL, key, match_trace, &f, err);
	if (rv == 0)
		return err_set(err, AVA_ENOENT, "there is no run named \"%s\"", name);
	return MIN(rv, 0);
}

int read_check_format(int rootfd, struct ava_error *err)
{
	char *text = NULL;
	size_t len;
	long number;
	int rv = sys_read_file(rootfd, "FORMAT", 4096, &text, &len, err);

	if (rv == AVA_ENOENT)
		return 0;
	if (rv != 0)
		return err_wrap(err, rv, "FORMAT");
	number = strtol(text + strcspn(text, "0123456789"), NULL, 10);
	free(text);
	if (number <= 0)
		return err_set(err, AVA_ECORRUPT, "the data root's FORMAT file holds no number");
	if (number != FORMAT_KNOWN)
		return err_set(err, AVA_EFORMAT,
			       "the data root has format %ld, this ava knows %d: use the one that "
			       "wrote it",
			       number, FORMAT_KNOWN);
	return 0;
}

bool read_run_ended(int rootfd, const char *run)
{
	static const char word[] = ",\"eventType\":\"SubagentComplete\",";
	char path[80], name[FILES_BUF], *edge = malloc(EDGE_BYTES);
	const char *line;
	struct stat st;
	size_t len = 0;
	bool ended = false;
	int fd = -1;

	snprintf(path, sizeof(path), "logs/subagents/%.40s.jsonl", run);
	for (unsigned part = 1; edge; part++) { /* the newest */
		int next = files_open(rootfd, files_part_name(path, part, name), O_RDONLY);

		if (next < 0)
			break;
		files_close(&fd);
		fd = next;
	}
	if (fd >= 0 && sys->fstat(fd, &st) == 0) {
		len = (size_t)MIN(st.st_size, (off_t)EDGE_BYTES);
		if (sys_read_all(fd, edge, len, st.st_size - (off_t)len) != 0)
			len = 0;
	}
	if (len > 1) {
		line = memrchr(edge, '\n', len - 1);
		line = line ? line + 1 : edge;
		ended = memmem(line, (size_t)(edge + len - line), word, sizeof(word) - 1) != NULL;
	}
	files_close(&fd);
	free(edge);
	return ended;
}

struct followers {
	int rootfd;
	uint64_t seq; /* last segment the checkpoint may have read */
	bool found;
};

/* Has a daemon begun this segment after the checkpoint? */
static void check_segment(const char *name, void *user)
{
	struct followers *f = user;
	unsigned char page[WAL_BEGIN];
	struct wal_segment head;
	char path[300];
	int fd;

	if (snprintf(path, sizeof(path), "wal/%s", name) >= (int)sizeof(path) ||
	    strstr(name, ".seg") == NULL)
		return;
	fd = sys->openat(f->rootfd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
	/* Whether an unreadable segment counts is recovery's decision. */
	if (fd < 0 || sys_read_all(fd, page, sizeof(page), 0) != 0)
		f->found = true;
	else if (wal_segment_get(page, 0, &head) > 0 && head.seq > f->seq)
		f->found = true;
	if (fd >= 0)
		sys->close(fd);
}

bool read_is_clean(int rootfd)
{
	struct followers f = {.rootfd = rootfd};
	struct checkpoint c;
	bool clean;

	if (checkpoint_read(rootfd, &c, NULL) != 0)
		return false;
	clean = c.clean;
	f.seq = c.pos.at > WAL_BEGIN ? c.pos.seq : c.pos.seq - (c.pos.seq > 0);
	checkpoint_fini(&c);
	/* The mark stays until the next daemon's first checkpoint; before that, this daemon
	 * begins a new segment. */
	return clean && sys->list(rootfd, "wal", check_segment, &f) == 0 && !f.found;
}

/* ---- a run's events as a trace: ava_trace_read of ava.h. A line that is no event is reported
 * and left out, as by every reader of logs. */

static bool looks_like_name(const char *s)
{
	size_t len = strlen(s);

	return len > 0 && len < sizeof(((struct trace_name *)0)->text) && s[0] != '-' &&
	       strchr(s, '-') != NULL && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

/* Resolve `name`: "S-7f3a2b", or the name of a trace, looked up in the catalog of the root.
 * AVA_EINVAL: neither; AVA_ENOENT. */
static int run_named(const char *root, const char *name, struct run_id *run, struct ava_error *err)
{
	int fd, rv;

	if (id_is_run(name)) {
		snprintf(run->text, sizeof(run->text), "%s", name);
		return 0;
	}
	if (!looks_like_name(name))
		return err_set(err, AVA_EINVAL,
			       "\"%.60s\" is neither the id of a run (S-7f3a2b) nor the name of a "
			       "trace (brave-otter)",
			       name);
	fd = read_open_root(root, err);
	if (fd < 0)
		return fd;
	rv = read_find_trace(fd, name, run, err);
	close(fd);
	return rv;
}

static int trace_fill(struct ava_trace *t, struct ava_log *log,
		      void (*bad)(const char *sentence, void *user), void *user,
		      struct ava_error *err)
{
	struct ava_log_event e;
	int rv;

	while ((rv = ava_log_next(log, &e, err)) != 0) {
		if (rv == 1)
			rv = ava_trace_append(t, e.line, e.len, err);
		if (rv == AVA_EINVAL)
			rv = err_wrap(err, AVA_ECORRUPT, "%s:%llu", e.file,
				      (unsigned long long)e.offset);
		if (rv == AVA_ECORRUPT && bad != NULL)
			bad(err->text, user);
		else if (rv < 0)
			return rv;
	}
	return 0;
}

int ava_trace_read(struct ava_trace **out, const char *root, const char *run,
		   void (*bad)(const char *sentence, void *user), void *user, struct ava_error *err)
{
	struct ava_error own;
	struct ava_log_query q = {.root = root};
	struct ava_log *log = NULL;
	struct ava_trace *t = NULL;
	struct run_id id;
	char path[4096];
	int rv;

	err = err != NULL ? err : &own;
	*out = NULL;
	rv = root != NULL ? 0 : settings_data_root(path, sizeof(path), err);
	if (rv == 0)
		rv = run_named(root != NULL ? root : path, run, &id, err);
	q.run = id.text;
	if (rv == 0)
		rv = ava_log_open(&log, &q, err);
	if (rv != 0)
		return rv;
	rv = ava_trace_new(&t, "", NULL, err);
	if (rv == 0)
		rv = trace_fill(t, log, bad, user, err);
	ava_log_close(log);
	if (rv != 0) {
		ava_trace_free(t);
		return rv;
	}
	*out = t;
	return 0;
}
