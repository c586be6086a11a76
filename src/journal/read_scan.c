/* Which files a reader of logs has; read_scan.h.
 *
 * Happy path: one run's file with its continuations, Ava's days, or all; of
 * many, the table of small logs says where each begins and which need not be
 * opened, else a look at the first line of each does.
 *
 * What can fail: listing a folder, memory. A file that cannot be read has the
 * lsn 0: it comes first, and opening it then says what is wrong. */
#include "journal/read_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/files.h"

#define MAX_FILES 1000000
#define DAY_MS    INT64_C(86400000)

static int add_source(struct ava_log *log, const char *path)
{
	struct source **grown, *s;
	size_t cap = log->cap;

	if (log->nsrc == cap) {
		cap = cap == 0 ? 8 : cap * 2;
		grown = realloc(log->src, cap * sizeof(*grown));
		if (grown == NULL)
			return AVA_ENOMEM;
		log->src = grown;
		grown = realloc(log->heap, cap * sizeof(*grown));
		if (grown == NULL)
			return AVA_ENOMEM;
		log->heap = grown;
		log->cap = cap;
	}
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return AVA_ENOMEM;
	snprintf(s->path, sizeof(s->path), "%s", path);
	s->file.fd = -1;
	if (strmap_put(&log->names, s->path, s) != 0) {
		free(s);
		return AVA_ENOMEM;
	}
	log->src[log->nsrc++] = s;
	return 0;
}

/* A day's file has no event from after that day: the clock may be set back
 * under it, never forward. Two days more for where the day began. */
static bool too_old(const struct ava_log *log, const char *dir, const char *name)
{
	char iso[CLOCK_ISO_LEN + 1];
	int64_t day;

	if (log->want.since[0] == '\0' || strcmp(dir, READ_DAYS) != 0)
		return false;
	snprintf(iso, sizeof(iso), "%.10sT00:00:00.000Z", name);
	day = clock_parse_iso(iso, CLOCK_ISO_LEN);
	return day >= 0 && day + 3 * DAY_MS < log->want.since_ms;
}

struct scan {
	struct ava_log *log;
	const char *dir;
	int rv;
};

static void scan_name(const char *name, void *user)
{
	struct scan *scan = user;
	char path[sizeof(((struct source *)0)->path)];
	size_t len = strlen(name);
	int n = snprintf(path, sizeof(path), "%s/%s", scan->dir, name);

	if (scan->rv != 0 || len < 7 || strcmp(name + len - 6, ".jsonl") != 0 ||
	    n >= (int)sizeof(path) || too_old(scan->log, scan->dir, name) ||
	    strmap_get(&scan->log->names, path) != NULL)
		return;
	scan->rv = scan->log->nsrc < MAX_FILES ? add_source(scan->log, path) : AVA_ETOOBIG;
}

static int scan_dir(struct ava_log *log, const char *dir, struct ava_error *err)
{
	struct scan scan = {log, dir, 0};

	if (sys->list(log->rootfd, dir, scan_name, &scan) != 0 && errno != ENOENT)
		return err_sys(err, "list %s", dir);
	if (scan.rv != 0)
		return err_set(err, scan.rv, "%s: too many files for the memory there is", dir);
	return 0;
}

/* S-x.jsonl, then S-x.2.jsonl and so on; the next number is asked for until
 * one is missing, so that a folder of a hundred thousand runs is not listed.
 * The first may be gone: a file that a person removed is never made again. */
static int scan_run(struct ava_log *log, struct ava_error *err)
{
	char base[64], path[FILES_BUF];
	struct stat st;

	snprintf(base, sizeof(base), READ_RUNS "/%s.jsonl", log->run);
	for (unsigned part = MAX(log->part, 1u);; part++) {
		files_part_name(base, part, path);
		if (sys->fstatat(log->rootfd, path, &st, 0) != 0) {
			if (errno != ENOENT)
				return err_sys(err, "%s", path);
			if (part == 1)
				continue;
			return 0;
		}
		if (add_source(log, path) != 0)
			return err_set(err, AVA_ENOMEM, "no memory to read %s", path);
		log->gone = log->gone || (log->part == 0 && part > 1);
		log->part = part + 1;
	}
}

int read_scan_by_first(const void *a, const void *b)
{
	const struct source *x = *(struct source *const *)a, *y = *(struct source *const *)b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* Where each begins, and whether anything wanted can be in it. */
static void look_up(struct ava_log *log, size_t from)
{
	struct query_small *small = NULL;
	struct query_small_told told;

	if (!log->follow && log->smallfd < 0 && log->nsrc - from >= QUERY_SMALL_LEAST)
		small = query_small_open(log->rootfd, &log->want, log->everything);
	if (small != NULL) {
		for (size_t i = from; i < log->nsrc; i++)
			query_small_add(small, log->src[i]->path);
		query_small_find(small);
		log->smallfd = query_small_take_file(small);
	}
	for (size_t i = from; i < log->nsrc; i++) {
		struct source *s = log->src[i];

		if (small != NULL) {
			query_small_tell(small, i - from, &told);
			s->first = told.first;
			s->size = told.size;
			s->chunk = told.chunk;
			if (told.left_out)
				s->state = SOURCE_CLOSED;
		}
		if (s->first == 0 && s->state != SOURCE_CLOSED)
			s->first = read_file_first_lsn(log->rootfd, s->path);
	}
	query_small_close(small);
}

int read_scan_files(struct ava_log *log, struct ava_error *err)
{
	size_t before = log->nsrc;
	int rv = 0;

	if (log->run[0] != '\0')
		rv = scan_run(log, err);
	else
		rv = scan_dir(log, READ_DAYS, err);
	if (rv == 0 && log->everything)
		rv = scan_dir(log, READ_RUNS, err);
	if (log->nsrc > before)
		look_up(log, before);
	if (rv == 0 && log->nsrc > before)
		qsort(log->src + log->opened, log->nsrc - log->opened, sizeof(*log->src),
		      read_scan_by_first);
	return rv;
}
