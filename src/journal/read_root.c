/* What a data root says about itself; read_root.h.
 *
 * All of it is read as it stands on disk at that moment; a daemon may be at
 * work. A row of the catalog that cannot be understood is passed over: the
 * name may still stand in the next one. */
#include "journal/read_root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/settings.h"
#include "base/sys.h"
#include "codec/json.h"
#include "codec/jsonl.h"
#include "journal/catalog.h"
#include "journal/checkpoint.h"
#include "journal/files.h"
#include "journal/wal.h"

#define FORMAT_KNOWN 1
#define CATALOG_MAX  ((size_t)1 << 30)

static int match_row(const char *line, size_t len, const char *key, const char *name,
		     struct run_id *run)
{
	struct catalog_row row;
	int rv = AVA_ENOENT;

	/* The filter is cheap and never wrong the other way: rows are written
	 * in one form, and a trace name needs no escape. */
	if (memmem(line, len, key, strlen(key)) == NULL)
		return AVA_ENOENT;
	if (catalog_parse(line, len, &row, NULL) != 0)
		return AVA_ENOENT;
	if (strcmp(row.trace_id, name) == 0 && id_is_run(row.id)) {
		snprintf(run->text, sizeof(run->text), "%s", row.id);
		rv = 0;
	}
	catalog_row_fini(&row);
	return rv;
}

static int find_in_part(int rootfd, const char *path, const char *key, const char *name,
			struct run_id *run, struct ava_error *err)
{
	char *data = NULL;
	const char *line;
	size_t len, line_len, at = 0;
	int rv = sys_read_file(rootfd, path, CATALOG_MAX, &data, &len, err);

	if (rv != 0)
		return rv;
	rv = AVA_ENOENT;
	while (rv == AVA_ENOENT && jsonl_next(data, len, &at, &line, &line_len) == 1)
		rv = match_row(line, line_len, key, name, run);
	free(data);
	return rv;
}

int read_find_trace(int rootfd, const char *name, struct run_id *run, struct ava_error *err)
{
	char key[80], path[FILES_BUF];
	int rv;

	if (strlen(name) >= sizeof(((struct trace_name *)0)->text) || strpbrk(name, "\"\\") != NULL)
		return err_set(err, AVA_ENOENT, "there is no run of that name");
	snprintf(key, sizeof(key), "\"traceId\":\"%s\"", name);
	for (unsigned part = 1;; part++) {
		struct stat st;

		files_part_name(CATALOG_PATH, part, path);
		if (part > 1 && sys->fstatat(rootfd, path, &st, 0) != 0)
			break;
		rv = find_in_part(rootfd, path, key, name, run, err);
		if (rv != AVA_ENOENT)
			return rv;
	}
	return err_set(err, AVA_ENOENT, "there is no run named \"%s\"", name);
}

static bool looks_like_name(const char *s)
{
	size_t len = strlen(s);

	return len > 0 && len < sizeof(((struct trace_name *)0)->text) && s[0] != '-' &&
	       strchr(s, '-') != NULL && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

int read_find_run(const char *root, const char *name, struct run_id *run, struct ava_error *err)
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
	fd = sys->openat(AT_FDCWD, root, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return err_sys(err, "data root %s", root);
	rv = read_find_trace(fd, name, run, err);
	sys->close(fd);
	return rv;
}

/* ---- ava_trace_read */

#define TRACE_MAX ((size_t)1 << 30)

struct trace { /* what stands behind an ava_trace */
	struct ava_trace t;
	struct run_id run;
	char name[sizeof(((struct trace_name *)0)->text)], parent[24], status[24];
	char *stop_reason; /* owned; NULL: "" */
	struct ava_line *lines;
	size_t cap, bytes;
};

static void copy(char *to, size_t size, const char *from)
{
	if (from != NULL)
		snprintf(to, size, "%s", from);
}

/* The first event says whose it is, the last how it ended; without memory, or
 * where the inside of one is no JSON, that is not known. */
static void take_ends(struct trace *x, const struct ava_log_event *e)
{
	bool end = strcmp(e->type, "SubagentComplete") == 0;
	const json_t *content;
	const char *parent, *reason;
	json_t *event;

	if (x->t.nevents > 0 && !end)
		return;
	event = json_parse(e->line, e->len, NULL);
	content = json_object_get(event, "content");
	if (x->t.nevents == 0) {
		x->t.started_ms = e->time_ms;
		parent = json_get_str(content, "resumedFrom");
		if (parent == NULL || parent[0] == '\0')
			parent = json_get_str(json_object_get(event, "metadata"), "parentAgentId");
		copy(x->name, sizeof(x->name), json_get_str(event, "traceId"));
		copy(x->parent, sizeof(x->parent), parent);
	}
	if (end) {
		x->t.ended_ms = e->time_ms;
		copy(x->status, sizeof(x->status), json_get_str(content, "status"));
		reason = json_get_str(content, "stopReason");
		free(x->stop_reason);
		x->stop_reason = reason != NULL ? strdup(reason) : NULL;
	}
	json_decref(event);
}

static int take_line(struct trace *x, const struct ava_log_event *e, struct ava_error *err)
{
	size_t cap = x->cap == 0 ? 64 : x->cap * 2;
	struct ava_line *line;

	if (x->bytes + e->len > TRACE_MAX)
		return err_set(err, AVA_ETOOBIG, "the trace of %s is too large: use ava_log_open",
			       x->run.text);
	if (x->t.nevents == x->cap) {
		line = realloc(x->lines, cap * sizeof(*line));
		if (line == NULL)
			return err_set(err, AVA_ENOMEM, "out of memory");
		x->lines = line;
		x->cap = cap;
	}
	line = &x->lines[x->t.nevents];
	*line = (struct ava_line){strndup(e->line, e->len), e->len};
	if (line->text == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	x->t.nevents++;
	x->bytes += e->len;
	return 0;
}

static int take_events(struct trace *x, struct ava_log *log, struct ava_error *err)
{
	struct ava_log_event e;
	int rv;

	while ((rv = ava_log_next(log, &e, err)) != 0) {
		if (rv == AVA_ECORRUPT) {
			x->t.broken++;
			continue;
		}
		if (rv == 1) {
			take_ends(x, &e);
			rv = take_line(x, &e, err);
		}
		if (rv != 0)
			return rv;
	}
	return 0;
}

int ava_trace_read(struct ava_trace **out, const char *root, const char *name,
		   struct ava_error *err)
{
	struct trace *x = calloc(1, sizeof(*x));
	struct ava_log_query q = {0};
	struct ava_log *log = NULL;
	char path[4096];
	int rv = 0;

	*out = NULL;
	if (x == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	if (root == NULL) {
		rv = settings_data_root(path, sizeof(path), err);
		root = path;
	}
	if (rv == 0)
		rv = read_find_run(root, name, &x->run, err);
	q.root = root;
	q.run = x->run.text;
	if (rv == 0)
		rv = ava_log_open(&log, &q, err);
	if (rv == 0)
		rv = take_events(x, log, err);
	ava_log_close(log);
	x->t.run = x->run.text;
	x->t.name = x->name;
	x->t.parent = x->parent;
	x->t.status = x->status;
	x->t.stop_reason = x->stop_reason != NULL ? x->stop_reason : "";
	x->t.events = x->lines;
	if (rv == 0)
		*out = &x->t;
	else
		ava_trace_free(&x->t);
	return rv;
}

void ava_trace_free(struct ava_trace *t)
{
	struct trace *x = (struct trace *)t; /* it is the first member */

	if (x == NULL)
		return;
	for (size_t i = 0; i < x->t.nevents; i++)
		free((char *)x->lines[i].text);
	free(x->lines);
	free(x->stop_reason);
	free(x);
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
	if (number > FORMAT_KNOWN)
		return err_set(
			err, AVA_EFORMAT,
			"the data root has format %ld, this ava knows up to %d: use a newer ava",
			number, FORMAT_KNOWN);
	return 0;
}

struct followers {
	int rootfd;
	uint64_t seq; /* the last segment that the checkpoint may have read */
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
	/* One that cannot be read is for recovery to judge. */
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
	/* The mark stays until the next checkpoint of the next daemon; the
	 * first thing that one writes is a segment of its own. */
	return clean && sys->list(rootfd, "wal", check_segment, &f) == 0 && !f.found;
}
