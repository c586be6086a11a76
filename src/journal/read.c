/* Reading logs without a daemon: ava_log_* of ava.h.
 *
 * Happy path: find the files of the question (one run's with its
 * continuations, Ava's days, or all), look up the first lsn of each, and
 * merge: a file is opened when the merge reaches its first lsn, so that a
 * year of days costs one open file at a time; a heap holds the next wanted
 * line of each open one. "The last N" starts every file at its own last N
 * lines and leaves out what is below the N-th lsn. Following goes on with
 * files that gave all they had; inotify, or looking every 200 ms, says when to
 * look again. Files of runs are closed while nothing is written to them, so
 * that following all of them takes one descriptor.
 *
 * What can fail: broken lines come out as AVA_ECORRUPT with their place, and
 * reading goes on. A file that disappears between listing and opening is an
 * error. Without inotify following is slower, never wrong. */
#include "journal/read.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/strmap.h"
#include "base/settings.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/files.h"
#include "journal/query.h"
#include "journal/read_file.h"
#include "journal/read_scan.h"
#include "journal/read_wave.h"

#define MAX_OPEN      15000 /* descriptors: the usual hard limit is 20,000 */
#define TORN_TRIES    10    /* times 1 ms, for a line that is being written */
#define RESCAN_MS     1000
#define POLL_MS       200
#define PROGRESS_STEP (256 << 10)
#define TORN_MORE     65536 /* bytes that may have followed in that time */

/* ---- the merge */

static bool before(const struct source *a, const struct source *b)
{
	return a->line.view.lsn < b->line.view.lsn;
}

static void heap_push(struct ava_log *log, struct source *s)
{
	size_t i = log->nheap++;

	for (; i > 0 && before(s, log->heap[(i - 1) / 2]); i = (i - 1) / 2)
		log->heap[i] = log->heap[(i - 1) / 2];
	log->heap[i] = s;
}

static struct source *heap_pop(struct ava_log *log)
{
	struct source *top = log->heap[0], *last = log->heap[--log->nheap];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < log->nheap) {
		if (child + 1 < log->nheap && before(log->heap[child + 1], log->heap[child]))
			child++;
		if (!before(log->heap[child], last))
			break;
		log->heap[i] = log->heap[child];
		i = child;
	}
	log->heap[i] = last;
	return top;
}

static int torn(struct source *s, struct ava_error *err)
{
	uint64_t at = s->file.offset;
	size_t n = read_file_torn(&s->file);

	read_file_close(&s->file);
	s->state = SOURCE_CLOSED;
	return err_set(err, AVA_ECORRUPT, "%s:%llu: the last line (%zu bytes) was never finished",
		       s->path, (unsigned long long)at, n);
}

static bool is_run(const struct source *s)
{
	return strncmp(s->path, READ_RUNS "/", sizeof(READ_RUNS)) == 0;
}

/* It gave all there is; more may come. */
static void drain(struct ava_log *log, struct source *s)
{
	s->state = SOURCE_DRAINED;
	s->changed = !log->everything;
	if (!log->follow || !log->everything || !is_run(s))
		return;
	s->start = s->file.offset;
	read_file_close(&s->file);
}

void read_progress_add(struct ava_log *log, uint64_t bytes)
{
	struct progress *p = &log->progress;

	p->done += bytes;
	if (p->done - p->told < PROGRESS_STEP)
		return;
	p->told = p->done;
	p->fn(p->done, p->total, p->user);
}

static void on_block(size_t bytes, void *user)
{
	read_progress_add(user, bytes);
}

/* Open it, if it is not, where it is to go on. */
static int resume(struct ava_log *log, struct source *s, struct ava_error *err)
{
	uint64_t planned = s->start;
	int rv;

	if (s->file.fd >= 0)
		return 0;
	rv = read_file_open(&s->file, log->rootfd, s->path, log->follow, err);
	if (rv != 0)
		return rv;
	if (s->start == 0 && log->want.after > 0)
		s->start = read_file_after(&s->file, log->want.after);
	if (!log->follow)
		read_file_use_index(&s->file, log->rootfd, &log->want, s->start == 0);
	read_file_seek(&s->file, s->start);
	if (log->progress.fn != NULL) {
		read_progress_add(log, s->start - planned);
		s->file.on_block = on_block;
		s->file.user = log;
	}
	read_batches_plan(log, s);
	return 0;
}

static void make_ready(struct ava_log *log, struct source *s)
{
	s->state = SOURCE_READY;
	heap_push(log, s);
}

/* 1: the line is there; 0: there is none; or a code of read_file_next. */
static int next_line(struct ava_log *log, struct source *s, struct ava_error *err)
{
	int rv = s->ahead != NULL ? read_batch_next(log, s, err) : 0;

	if (rv != 0 || s->ahead != NULL)
		return rv;
	s->line_path = s->path;
	return read_file_next(&s->file, &log->want, &s->line, err);
}

/* Its next wanted line into the heap. 0, or a code of next_line. */
static int advance(struct ava_log *log, struct source *s, struct ava_error *err)
{
	for (;;) {
		int rv = next_line(log, s, err);

		if (rv == 1) {
			make_ready(log, s);
			return 0;
		}
		if (rv != 0)
			return rv;
		drain(log, s);
		if (log->follow)
			return 0;
		if (read_file_torn(&s->file) == 0)
			break;
		if (s->torn_tries++ == TORN_TRIES)
			return torn(s, err);
		/* Perhaps its writer is at it: the bytes of one write. */
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		s->file.end += TORN_MORE;
	}
	read_batch_end(log, s);
	read_file_close(&s->file);
	s->state = SOURCE_CLOSED;
	return 0;
}

static void watch(struct ava_log *log, const struct source *s)
{
	char link[40];

	if (log->inotify < 0 || log->run[0] == '\0') /* days: their folder is watched */
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", s->file.fd);
	if (inotify_add_watch(log->inotify, link, IN_MODIFY) < 0)
		errno = 0; /* looked at every RESCAN_MS all the same */
}

/* Open files whose first lsn comes before anything that is ready. Those
 * without an event (first lsn 0) come first, for what may be broken in them. */
static int open_due(struct ava_log *log, struct ava_error *err)
{
	while (log->opened < log->nsrc) {
		struct source *s = log->src[log->opened], *wave = NULL;
		int rv;

		if (log->nheap > 0 && s->first > log->heap[0]->line.view.lsn)
			return 0;
		if (log->nheap >= MAX_OPEN)
			return err_set(err, AVA_ETOOBIG, "more than %d logs overlap in time",
				       MAX_OPEN);
		log->opened++;
		if (s->wave != NULL)
			read_wave_open(log, s, &wave);
		if (wave != NULL)
			make_ready(log, wave);
		if (s->state == SOURCE_CLOSED)
			continue;
		rv = resume(log, s, err);
		if (rv != 0)
			return rv;
		watch(log, s);
		rv = advance(log, s, err);
		if (rv == AVA_ECORRUPT)
			log->given = s; /* goes on with it at the next call */
		if (rv != 0)
			return rv;
	}
	return 0;
}

/* Files that had nothing more: is there something now? */
static int look_again(struct ava_log *log, struct ava_error *err)
{
	for (; log->drained < log->opened; log->drained++) {
		struct source *s = log->src[log->drained];
		int rv;

		if (s->state != SOURCE_DRAINED || !s->changed)
			continue;
		rv = resume(log, s, err);
		if (rv == 0)
			rv = advance(log, s, err);
		if (rv != 0)
			return rv; /* the next call looks here again */
	}
	log->drained = 0;
	return 0;
}

/* The source with the next event, taken out of the heap; NULL: none. */
static int next_source(struct ava_log *log, struct source **out, struct ava_error *err)
{
	struct source *s = log->given;
	int rv;

	*out = NULL;
	log->given = NULL;
	if (s != NULL && s->state != SOURCE_CLOSED) {
		rv = advance(log, s, err);
		if (rv == AVA_ECORRUPT)
			log->given = s;
		if (rv != 0)
			return rv;
	}
	rv = open_due(log, err);
	if (rv == 0 && log->follow && log->nheap == 0)
		rv = look_again(log, err);
	if (rv == 0 && log->nheap > 0)
		log->given = *out = heap_pop(log);
	return rv;
}

static void fill_event(struct ava_log_event *e, const struct source *s)
{
	const struct event_view *v = &s->line.view;

	*e = (struct ava_log_event){
		.lsn = v->lsn,
		.seq = v->seq,
		.time_ms = v->wall_ms,
		.line = s->line.text,
		.len = s->line.len,
		.file = s->line_path,
		.offset = s->line.offset,
	};
	snprintf(e->type, sizeof(e->type), "%.*s", (int)MIN(v->type.len, sizeof(e->type) - 1),
		 v->type.s);
}

/* The rest would look like all there is. */
static int tell_gone(struct ava_log *log, struct ava_error *err)
{
	log->gone = false;
	return err_set(err, AVA_ECORRUPT,
		       READ_RUNS
		       "/%s.jsonl is missing: somebody removed it (what the journal still had"
		       " of it is in lost/)",
		       log->run);
}

/* An event that stands in two files has one lsn. When following, others may
 * come between. Two of another kind with one lsn are two: a damaged log is not
 * to lose any. */
static bool is_copy(struct ava_log *log, const struct event_view *v)
{
	if (!query_is_copied(v->kind))
		return false;
	if (v->lsn == log->copied)
		return true;
	log->copied = v->lsn;
	if (!log->follow)
		return false;
	for (unsigned i = 0; i < READ_COPIES; i++)
		if (log->copies[i] == v->lsn)
			return true;
	log->copies[log->ncopies++ % READ_COPIES] = v->lsn;
	return false;
}

int ava_log_next(struct ava_log *log, struct ava_log_event *event, struct ava_error *err)
{
	if (log->gone)
		return tell_gone(log, err);
	for (;;) {
		struct source *s;
		int rv = next_source(log, &s, err);

		if (rv != 0)
			return rv;
		if (s == NULL)
			return 0;
		if (log->everything && is_copy(log, &s->line.view))
			continue;
		fill_event(event, s);
		return 1;
	}
}

/* ---- the last N */

/* Of the last event of the file, and where it stands. */
static int last_event(struct ava_log *log, const struct source *s, uint64_t *lsn, uint64_t *at,
		      struct ava_error *err)
{
	static const struct query all = QUERY_ALL;
	struct read_file f;
	uint64_t count;
	int rv = read_file_open(&f, log->rootfd, s->path, false, err);

	if (rv != 0)
		return rv;
	rv = read_file_last(&f, &all, 1, 0, &count, lsn, NULL, err);
	*at = f.offset;
	read_file_close(&f);
	return rv;
}

static int by_lsn_down(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* Keep the n greatest, each once. */
static void keep_greatest(struct read_lsns *l, uint64_t n)
{
	size_t kept = 0;

	qsort(l->v, l->n, sizeof(*l->v), by_lsn_down);
	for (size_t i = 0; i < l->n && kept < n; i++)
		if (kept == 0 || l->v[i] != l->v[kept - 1])
			l->v[kept++] = l->v[i];
	l->n = kept;
}

/* Start this file at its last n lines, or leave it out when everything in it
 * is older than the n found so far. */
static int start_last(struct ava_log *log, struct source *s, uint64_t n, struct read_lsns *found,
		      struct ava_error *err)
{
	uint64_t count = 0, first = 0, at = 0, floor_lsn = found->n >= n ? found->v[n - 1] : 0;
	int rv = 0;

	if (s->state == SOURCE_CLOSED)
		return 0;
	if (floor_lsn > 0)
		rv = last_event(log, s, &first, &at, err);
	if (rv != 0)
		return rv;
	if (first < floor_lsn && log->follow) { /* what comes later is wanted */
		s->start = at;
		s->first = first;
		return 0;
	}
	if (first < floor_lsn) {
		s->state = SOURCE_CLOSED;
		return 0;
	}
	rv = read_file_open(&s->file, log->rootfd, s->path, false, err);
	if (rv != 0)
		return rv;
	read_file_use_index(&s->file, log->rootfd, &log->want, true);
	rv = read_file_last(&s->file, &log->want, n, floor_lsn, &count, &first, found, err);
	s->start = s->file.offset;
	read_file_close(&s->file);
	if (rv == 0 && count > 0) {
		s->first = first; /* it is due when its first wanted line is */
		keep_greatest(found, n);
	}
	return rv;
}

/* From the newest file to the oldest. */
static int plan_last(struct ava_log *log, uint64_t n, struct ava_error *err)
{
	struct read_lsns found = {0};
	int rv = 0;

	for (size_t i = log->nsrc; i > 0 && rv == 0; i--)
		rv = start_last(log, log->src[i - 1], n, &found, err);
	if (rv == 0 && found.n >= n)
		log->want.after = MAX(log->want.after, found.v[n - 1] - 1);
	free(found.v);
	qsort(log->src, log->nsrc, sizeof(*log->src), read_scan_by_first);
	return rv;
}

/* ---- open, wait, close */

static int open_root(struct ava_log *log, const char *root, struct ava_error *err)
{
	char path[4096];
	int rv;

	if (root == NULL) {
		rv = settings_data_root(path, sizeof(path), err);
		if (rv != 0)
			return rv;
		root = path;
	}
	log->rootfd = read_open_root(root, err);
	if (log->rootfd < 0)
		return log->rootfd;
	return read_check_format(log->rootfd, err);
}

static bool watch_dir(const struct ava_log *log, const char *dir, int *wd)
{
	char link[64];
	int dirfd = sys->openat(log->rootfd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	*wd = -1;
	if (dirfd < 0)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd);
	*wd = inotify_add_watch(log->inotify, link, IN_CREATE | IN_MOVED_TO | IN_MODIFY);
	sys->close(dirfd);
	return *wd >= 0;
}

static void start_watching(struct ava_log *log)
{
	log->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	log->days_wd = log->runs_wd = -1;
	if (log->inotify < 0 || log->run[0] != '\0')
		return;
	if (watch_dir(log, READ_DAYS, &log->days_wd) &&
	    (!log->everything || watch_dir(log, READ_RUNS, &log->runs_wd)))
		return;
	close(log->inotify); /* no such folder yet: look every 200 ms */
	log->inotify = -1;
}

static int check_query(const struct ava_log_query *q, struct ava_error *err)
{
	if (q->run != NULL && !id_is_run(q->run))
		return err_set(err, AVA_EINVAL, "\"%.40s\" is not a run id (S-7f3a2b)", q->run);
	return 0;
}

/* No file at all. Ava's days may come while we wait, a run's file does not:
 * it begins with the spawn. */
static int nothing(const struct ava_log *log, struct ava_error *err)
{
	if (log->run[0] != '\0')
		return err_set(err, AVA_ENOENT, "there is no log of %s", log->run);
	return log->follow ? 0 : err_set(err, AVA_ENOENT, "nothing has been logged yet");
}

int read_compile(struct query *out, const struct ava_log_query *q, int64_t now_ms,
		 struct ava_error *err)
{
	struct query_spec spec = {
		.types = q->types,
		.agent = q->agent,
		.user = q->user,
		.session = q->session,
		.since = q->since,
		.until = q->until,
		.search = q->search,
		.regex = q->regex,
		.after = q->after,
		.now_ms = now_ms,
	};

	return query_init(out, &spec, err);
}

int read_check(const struct ava_log_query *q, struct ava_error *err)
{
	struct query want;
	int rv = check_query(q, err);

	if (rv != 0)
		return rv;
	rv = read_compile(&want, q, clock_wall_ms(), err);
	query_fini(&want);
	return rv;
}

static int compile(struct ava_log *log, const struct ava_log_query *q, struct ava_error *err)
{
	int64_t now = clock_wall_ms();
	int rv = read_compile(&log->want, q, now, err);

	log->reads_ahead = rv == 0 && !log->follow && q->last == 0 && query_narrows(&log->want);
	return log->reads_ahead ? read_compile(&log->want2, q, now, err) : rv;
}

int ava_log_open(struct ava_log **out, const struct ava_log_query *q, struct ava_error *err)
{
	struct ava_log *log = NULL;
	int rv = check_query(q, err);

	*out = NULL;
	if (rv != 0)
		goto fail;
	log = calloc(1, sizeof(*log));
	if (log == NULL) {
		rv = err_set(err, AVA_ENOMEM, "no memory to read logs");
		goto fail;
	}
	log->rootfd = log->inotify = log->smallfd = -1;
	log->follow = q->follow != 0;
	log->everything = q->everything != 0 && q->run == NULL;
	strmap_init(&log->names);
	snprintf(log->run, sizeof(log->run), "%s", q->run != NULL ? q->run : "");
	rv = compile(log, q, err);
	if (rv == 0)
		rv = open_root(log, q->root, err);
	if (rv == 0)
		rv = read_scan_files(log, err);
	if (rv == 0 && log->nsrc == 0)
		rv = nothing(log, err);
	if (rv == 0 && q->last > 0)
		rv = plan_last(log, q->last, err);
	if (rv != 0)
		goto fail;
	if (log->follow)
		start_watching(log);
	if (log->reads_ahead)
		read_waves_plan(log);
	*out = log;
	return 0;

fail:
	ava_log_close(log);
	return rv;
}

static void mark_all(struct ava_log *log)
{
	struct stat st;

	for (size_t i = 0; i < log->opened; i++) {
		struct source *s = log->src[i];

		if (s->state == SOURCE_DRAINED && !s->changed)
			s->changed =
				sys->fstatat(log->rootfd, s->path, &st, 0) != 0 ||
				(uint64_t)st.st_size !=
					s->file.offset +
						(s->file.fd >= 0 ? read_file_torn(&s->file) : 0);
	}
}

static void mark_one(struct ava_log *log, const struct inotify_event *e)
{
	char path[sizeof(((struct source *)0)->path)];
	struct source *s;

	if (e->len == 0 || (e->wd != log->days_wd && e->wd != log->runs_wd))
		return;
	snprintf(path, sizeof(path), "%s/%s", e->wd == log->days_wd ? READ_DAYS : READ_RUNS,
		 e->name);
	s = strmap_get(&log->names, path);
	if (s != NULL)
		s->changed = true;
}

/* What inotify told. False: it may have told less than happened. */
static bool take_changes(struct ava_log *log)
{
	char bytes[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
	const struct inotify_event *e;
	bool all = true;
	ssize_t n;

	while ((n = read(log->inotify, bytes, sizeof(bytes))) > 0)
		for (char *p = bytes; p < bytes + n; p += sizeof(*e) + e->len) {
			e = (const struct inotify_event *)(void *)p;
			all = all && (e->mask & IN_Q_OVERFLOW) == 0;
			mark_one(log, e);
		}
	return all;
}

int ava_log_wait(struct ava_log *log, int timeout_ms)
{
	int limit = log->inotify >= 0 ? RESCAN_MS : POLL_MS;
	struct pollfd p = {.fd = log->inotify, .events = POLLIN};
	bool signalled;
	int n;

	if (timeout_ms >= 0 && timeout_ms < limit)
		limit = timeout_ms;
	n = poll(&p, log->inotify >= 0 ? 1 : 0, limit);
	signalled = n < 0;
	if (log->everything && (n <= 0 || !take_changes(log)))
		mark_all(log);
	else if (n > 0)
		take_changes(log);
	if (read_scan_files(log, NULL) != 0)
		return 0; /* tried again at the next wait */
	return !signalled && (n > 0 || limit != timeout_ms);
}

int read_rootfd(const struct ava_log *log)
{
	return log->rootfd;
}

int read_smallfd(const struct ava_log *log)
{
	return log->smallfd;
}

uint64_t read_after(const struct ava_log *log)
{
	return log->want.after;
}

bool read_part(const struct ava_log *log, size_t i, struct read_part *out)
{
	if (i >= log->nsrc)
		return false;
	*out = (struct read_part){.path = log->src[i]->path,
				  .start = log->src[i]->start,
				  .left_out = log->src[i]->state == SOURCE_CLOSED,
				  .size = log->src[i]->size,
				  .chunk = log->src[i]->chunk};
	return true;
}

void read_progress(struct ava_log *log, read_progress_fn fn, void *user)
{
	struct stat st;

	log->progress = (struct progress){.fn = fn, .user = user};
	for (size_t i = 0; i < log->nsrc; i++) {
		const struct source *s = log->src[i];
		uint64_t size = s->size;

		if (s->state == SOURCE_CLOSED)
			continue;
		if (size == 0 && sys->fstatat(log->rootfd, s->path, &st, 0) == 0)
			size = (uint64_t)st.st_size;
		if (size > s->start)
			log->progress.total += size - s->start;
	}
}

void ava_log_close(struct ava_log *log)
{
	if (log == NULL)
		return;
	for (size_t i = 0; i < log->nsrc; i++) {
		read_batch_end(log, log->src[i]);
		read_file_close(&log->src[i]->file);
		free(log->src[i]);
	}
	for (size_t i = 0; i < log->nwaves; i++) {
		read_batch_end(log, log->waves[i]);
		free(log->waves[i]->members);
		free(log->waves[i]);
	}
	free(log->waves);
	free(log->src);
	free(log->heap);
	strmap_fini(&log->names);
	query_fini(&log->want);
	query_fini(&log->want2);
	if (log->inotify >= 0)
		close(log->inotify);
	if (log->smallfd >= 0)
		sys->close(log->smallfd);
	if (log->rootfd >= 0)
		sys->close(log->rootfd);
	free(log);
}
