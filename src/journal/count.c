/* Counting events; count.h.
 *
 * Happy path: the files of the question are cut into pieces, two threads take
 * one piece after the other and count into a table of their own, and the
 * tables are added up. No order is needed, so nothing is merged by lsn; only
 * spawns and ends, which stand in two files, are noted by lsn and counted
 * when all is read, each once. The last event's row is kept at hand: events
 * that follow each other mostly have the same key. Of a file with an index a
 * piece is a chunk; when whole kinds of it are wanted, its head has the sums.
 *
 * What can fail: memory, reading, an expression that runs wild; the first
 * error ends it. Broken lines are told and passed over. */
#include "journal/count.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/strmap.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/query.h"
#include "journal/query_build.h"
#include "journal/query_cover.h"
#include "journal/read.h"
#include "journal/read_file.h"
#include "journal/roles.h"

#define THREADS  2
#define PIECE    ((uint64_t)4 << 20)
#define ROWS_MAX 1000000
#define KEY_MAX  256

struct piece {
	const char *path;
	uint64_t from, to;               /* lines that begin in there; from > 0: after a newline */
	bool whole;                      /* `from` is where a line begins */
	const struct query_cover *cover; /* NULL: no index */
	const struct query_index_head *head; /* of the chunk that it is; NULL: none */
};

/* A spawn or an end, counted when all copies are known. */
struct copy {
	uint64_t lsn;
	struct count_row *row;
};

struct job {
	pthread_mutex_t lock;
	const struct count_watch *watch;
	struct piece *pieces;
	size_t npieces, cap, next;
	struct query_cover **covers; /* owned; closed at the end */
	size_t ncovers;
	uint64_t done, total;
	bool copies; /* days and runs are both read */
	enum count_by by;
	struct roles *roles;
	int rootfd, rv;
	struct ava_error err;
};

struct counter {
	struct job *job;
	struct query want, copied; /* copied: of what stands in a head, what may be twice */
	struct strmap map;         /* struct count_row by key */
	struct count_row *last;
	char last_key[KEY_MAX]; /* raw key of `last` */
	size_t last_len;
	struct copy *copies;
	size_t ncopies, cap;
	pthread_t thread;
	bool started;
};

/* ---- keys */

static struct count_row *row_of(struct counter *c, const char *key, size_t len)
{
	char text[KEY_MAX];
	struct count_row *row;

	len = MIN(len, sizeof(text) - 1);
	memcpy(text, key, len);
	text[len] = '\0';
	row = strmap_get(&c->map, text);
	if (row != NULL)
		return row;
	if (c->map.count >= ROWS_MAX)
		return NULL;
	row = calloc(1, sizeof(*row));
	if (row == NULL)
		return NULL;
	row->key = strdup(text);
	if (row->key == NULL || strmap_put(&c->map, row->key, row) != 0) {
		free(row->key);
		free(row);
		return NULL;
	}
	return row;
}

/* What the row is found by, before it is made readable: bytes of the line. */
static void raw_key(enum count_by by, const char *line, const struct event_view *v,
		    const char **key, size_t *len)
{
	switch (by) {
	case COUNT_ALL:
		*key = "";
		*len = 0;
		return;
	case COUNT_TYPE:
		*key = v->type.s;
		*len = v->type.len;
		return;
	case COUNT_AGENT:
	case COUNT_ROLE:
		*key = v->agent_id.s;
		*len = v->agent_id.len;
		return;
	case COUNT_MODEL:
		query_model(v, key, len);
		return;
	case COUNT_DAY: /* to the minute: zones differ by parts of an hour */
		*key = line + sizeof("{\"timestamp\":\"") - 1;
		*len = sizeof("2026-11-21T08:00") - 1;
		return;
	}
}

static struct count_row *find_row(struct counter *c, const char *line, const struct event_view *v)
{
	const char *key = "";
	char date[11];
	size_t len = 0;

	raw_key(c->job->by, line, v, &key, &len);
	if (c->last != NULL && c->last_len == len && memcmp(c->last_key, key, len) == 0)
		return c->last;
	c->last_len = MIN(len, sizeof(c->last_key));
	memcpy(c->last_key, key, c->last_len);
	if (c->job->by == COUNT_ROLE) {
		key = roles_find(c->job->roles, key, len);
		len = strlen(key);
	} else if (c->job->by == COUNT_DAY) {
		clock_local_date(v->wall_ms, date);
		key = date;
		len = strlen(date);
	}
	c->last = row_of(c, key, len);
	return c->last;
}

/* ---- what events cost */

static void add_sums(struct count_row *row, const uint64_t sums[4])
{
	row->input_tokens += sums[0];
	row->output_tokens += sums[1];
	row->cost_microusd += sums[2];
	row->uncosted += sums[3];
}

static void add_cost(struct count_row *row, const struct event_view *v)
{
	struct query_cost cost;

	query_cost(v, &cost);
	add_sums(row, cost.sums);
}

static bool note_copy(struct counter *c, uint64_t lsn, struct count_row *row)
{
	size_t cap = c->cap == 0 ? 256 : c->cap * 2;
	struct copy *grown;

	if (c->ncopies == c->cap) {
		grown = realloc(c->copies, cap * sizeof(*grown));
		if (grown == NULL)
			return false;
		c->copies = grown;
		c->cap = cap;
	}
	c->copies[c->ncopies++] = (struct copy){lsn, row};
	return true;
}

static int count_line(struct counter *c, const char *line, const struct event_view *v)
{
	struct count_row *row = find_row(c, line, v);

	if (row == NULL)
		return c->map.count >= ROWS_MAX ? AVA_ETOOBIG : AVA_ENOMEM;
	if (c->job->copies && (v->kind == EVENT_SubagentSpawn || v->kind == EVENT_SubagentComplete))
		return note_copy(c, v->lsn, row) ? 0 : AVA_ENOMEM;
	row->events++;
	if (v->kind == EVENT_InferEnd)
		add_cost(row, v);
	return 0;
}

/* ---- out of the index */

#define COPIED (UINT64_C(1) << EVENT_SubagentSpawn | UINT64_C(1) << EVENT_SubagentComplete)

/* Is every event of the chunk, or of some kinds of it, wanted, and what is
 * counted in its index? */
static bool in_index(const struct counter *c, const struct query_index_head *h)
{
	const struct query *q = &c->want;

	if (h == NULL || h->opaque || h->models == 0 ||
	    (c->job->by != COUNT_ALL && c->job->by != COUNT_TYPE && c->job->by != COUNT_MODEL))
		return false;
	if (q->after != 0 || q->agent.len > 0 || q->session.len > 0 || q->user.len > 0 ||
	    q->text.needle != NULL || q->text.regex != NULL)
		return false;
	if (q->types == 0 && h->counts[QUERY_INDEX_OTHER] > 0)
		return false;
	return (q->since[0] == '\0' || memcmp(h->earliest, q->since, CLOCK_ISO_LEN) >= 0) &&
	       (q->until[0] == '\0' || memcmp(h->latest, q->until, CLOCK_ISO_LEN) < 0);
}

/* Adds one line of the index. *rest: there are events that may stand in two
 * files; they are read. */
static int count_model(struct counter *c, const struct query_index_model *m, bool *rest)
{
	uint64_t bit = UINT64_C(1) << MIN(m->kind, (unsigned)QUERY_INDEX_OTHER);
	const char *key = "";
	size_t len = 0;
	struct count_row *row;

	if (m->kind >= EVENT_NKINDS || (c->want.types != 0 && (c->want.types & bit) == 0))
		return 0;
	if (c->job->copies && (bit & COPIED) != 0) {
		*rest = true;
		return 0;
	}
	if (c->job->by == COUNT_MODEL) {
		key = m->name;
		len = m->len;
	} else if (c->job->by == COUNT_TYPE) {
		key = event_kind_name((enum event_kind)m->kind);
		len = strlen(key);
	}
	row = row_of(c, key, len);
	if (row == NULL)
		return AVA_ENOMEM;
	row->events += m->count;
	add_sums(row, m->sums);
	return 0;
}

/* 1: counted; 0: it cannot be read, nothing is counted; or a code. */
static int count_index(struct counter *c, const struct piece *p, bool *rest)
{
	struct query_index_model m;
	unsigned char *part;
	size_t at = 0;
	int rv = 0;

	if (!query_cover_models(p->cover, p->head, &part))
		return 0;
	while (rv == 0 && query_index_model_next(part, p->head->models, &at, &m))
		rv = count_model(c, &m, rest);
	free(part);
	return rv == 0 ? 1 : rv;
}

/* ---- threads */

static void fail_job(struct job *job, int rv, const struct ava_error *err)
{
	pthread_mutex_lock(&job->lock);
	if (job->rv == 0) {
		job->rv = rv;
		job->err = *err;
	}
	pthread_mutex_unlock(&job->lock);
}

static void tell_broken(struct job *job, const struct ava_error *err)
{
	pthread_mutex_lock(&job->lock);
	if (job->watch->broken != NULL)
		job->watch->broken(err, job->watch->user);
	pthread_mutex_unlock(&job->lock);
}

static bool take_piece(struct job *job, struct piece *p)
{
	bool got;

	pthread_mutex_lock(&job->lock);
	got = job->rv == 0 && job->next < job->npieces;
	if (got) {
		*p = job->pieces[job->next++];
		if (job->next > 1)
			job->done +=
				job->pieces[job->next - 2].to - job->pieces[job->next - 2].from;
		if (job->watch->progress != NULL)
			job->watch->progress(job->done, job->total, job->watch->user);
	}
	pthread_mutex_unlock(&job->lock);
	return got;
}

/* To the first line that begins at `at` or behind it. */
static int seek_line(struct read_file *f, uint64_t at, struct ava_error *err)
{
	read_file_seek(f, at - 1);
	return read_file_skip(f, err);
}

static int count_lines(struct counter *c, const struct piece *p, const struct query *want,
		       struct ava_error *err)
{
	struct read_file f;
	struct read_line line;
	int rv = read_file_open(&f, c->job->rootfd, p->path, false, err);

	if (rv != 0)
		return rv;
	if (p->cover != NULL)
		read_file_share_index(&f, p->cover, want);
	if (p->whole)
		read_file_seek(&f, p->from);
	else
		rv = seek_line(&f, p->from, err);
	while (rv >= 0 && f.offset < p->to) {
		f.stop = p->to;
		rv = read_file_next(&f, want, &line, err);
		if (rv == 0)
			break;
		if (rv == AVA_ECORRUPT) {
			tell_broken(c->job, err);
			rv = 0;
		} else if (rv == 1) {
			rv = count_line(c, line.text, &line.view);
			if (rv != 0)
				err_set(err, rv, "%s",
					rv == AVA_ETOOBIG ? "too many keys to count"
							  : "no memory to count");
		}
	}
	if (rv == 0 && f.end <= p->to && read_file_torn(&f) > 0) {
		err_set(err, AVA_ECORRUPT, "%s:%llu: the last line (%zu bytes) was never finished",
			p->path, (unsigned long long)f.offset, read_file_torn(&f));
		tell_broken(c->job, err);
	}
	read_file_close(&f);
	return rv;
}

static int count_piece(struct counter *c, const struct piece *p, struct ava_error *err)
{
	bool rest = false;
	int rv;

	rv = in_index(c, p->head) ? count_index(c, p, &rest) : 0;
	if (rv == 0)
		return count_lines(c, p, &c->want, err);
	if (rv < 0)
		return err_set(err, rv, "no memory to count");
	return rest ? count_lines(c, p, &c->copied, err) : 0;
}

static void *work(void *user)
{
	struct counter *c = user;
	struct ava_error err;
	struct piece p;

	while (take_piece(c->job, &p)) {
		int rv = count_piece(c, &p, &err);

		if (rv != 0)
			fail_job(c->job, rv, &err);
	}
	return NULL;
}

/* ---- the job */

static int add_piece(struct job *job, const struct piece *p)
{
	size_t cap = job->cap == 0 ? 64 : job->cap * 2;
	struct piece *grown;

	if (job->npieces == job->cap) {
		grown = realloc(job->pieces, cap * sizeof(*grown));
		if (grown == NULL)
			return AVA_ENOMEM;
		job->pieces = grown;
		job->cap = cap;
	}
	job->pieces[job->npieces++] = *p;
	job->total += p->to - p->from;
	return 0;
}

/* The index of a file, kept until the end of the job. NULL: none. */
static const struct query_cover *cover_of(struct job *job, const struct read_part *part,
					  const struct query *want)
{
	bool pays = query_cover_pays(want) || job->by == COUNT_ALL || job->by == COUNT_TYPE ||
		    job->by == COUNT_MODEL;
	struct query_cover **grown, *cover;
	struct read_file f;

	if (read_file_open(&f, job->rootfd, part->path, false, NULL) != 0)
		return NULL;
	cover = query_cover_open(job->rootfd, part->path, f.fd, pays && part->start == 0);
	read_file_close(&f);
	if (cover == NULL)
		return NULL;
	grown = realloc(job->covers, (job->ncovers + 1) * sizeof(*grown));
	if (grown == NULL) {
		query_cover_close(cover);
		return NULL;
	}
	job->covers = grown;
	return job->covers[job->ncovers++] = cover;
}

/* What is covered by its index, from `*at` on: a piece for each chunk that
 * may hold something. */
static int cut_chunks(struct job *job, const struct read_part *part, const struct query *want,
		      uint64_t *at)
{
	const struct query_cover *cover = cover_of(job, part, want);
	const struct query_index_head *h;

	for (size_t i = 0; cover != NULL && (h = query_cover_chunk(cover, i)) != NULL; i++) {
		struct piece p = {part->path, MAX(*at, h->at), h->at + h->bytes, true, cover, NULL};
		bool all;

		if (p.to <= *at)
			continue;
		if (p.from == h->at)
			p.head = h;
		*at = p.to;
		if (query_index_needs(h, want, &all) == 0 && !all)
			continue;
		if (add_piece(job, &p) != 0)
			return AVA_ENOMEM;
	}
	return 0;
}

static int cut_file(struct job *job, const struct read_part *part, const struct query *want,
		    struct ava_error *err)
{
	struct stat st;
	uint64_t at = part->start, size, begin;

	if (part->left_out)
		return 0;
	if (sys->fstatat(job->rootfd, part->path, &st, 0) != 0)
		return err_sys(err, "%s", part->path);
	size = (uint64_t)st.st_size;
	if (size >= QUERY_COVER_LEAST && cut_chunks(job, part, want, &at) != 0)
		return err_set(err, AVA_ENOMEM, "no memory to count");
	begin = at;
	while (at < size) {
		struct piece p = {part->path, at, MIN(at + PIECE, size), at == begin, NULL, NULL};

		if (add_piece(job, &p) != 0)
			return err_set(err, AVA_ENOMEM, "no memory to count");
		at = p.to;
	}
	return 0;
}

static int by_lsn(const void *a, const void *b)
{
	const struct copy *x = a, *y = b;

	return x->lsn < y->lsn ? -1 : x->lsn > y->lsn;
}

/* The second counter's rows and copies into the first. */
static int add_up(struct counter *to, struct counter *from)
{
	struct count_row *row, *sum;
	size_t at = 0;

	while ((row = strmap_next(&from->map, &at)) != NULL) {
		sum = row_of(to, row->key, strlen(row->key));
		if (sum == NULL)
			return AVA_ENOMEM;
		sum->events += row->events;
		sum->input_tokens += row->input_tokens;
		sum->output_tokens += row->output_tokens;
		sum->cost_microusd += row->cost_microusd;
		sum->uncosted += row->uncosted;
	}
	for (size_t i = 0; i < from->ncopies; i++) {
		const char *key = from->copies[i].row->key;

		if (!note_copy(to, from->copies[i].lsn, row_of(to, key, strlen(key))))
			return AVA_ENOMEM;
	}
	return 0;
}

static void count_copies(struct counter *c)
{
	if (c->ncopies > 0)
		qsort(c->copies, c->ncopies, sizeof(*c->copies), by_lsn);
	for (size_t i = 0; i < c->ncopies; i++)
		if (i == 0 || c->copies[i].lsn != c->copies[i - 1].lsn)
			c->copies[i].row->events++;
}

static int by_events(const void *a, const void *b)
{
	const struct count_row *x = a, *y = b;

	if (x->events != y->events)
		return x->events > y->events ? -1 : 1;
	return strcmp(x->key, y->key);
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct count_row *)a)->key, ((const struct count_row *)b)->key);
}

static int take_rows(struct count *out, struct counter *c, enum count_by by)
{
	struct count_row *row;
	size_t at = 0;

	out->rows = calloc(c->map.count + 1, sizeof(*out->rows));
	if (out->rows == NULL)
		return AVA_ENOMEM;
	while ((row = strmap_next(&c->map, &at)) != NULL) {
		out->rows[out->n++] = *row;
		row->key = NULL; /* the result's now */
	}
	qsort(out->rows, out->n, sizeof(*out->rows), by == COUNT_DAY ? by_key : by_events);
	return 0;
}

static void counter_fini(struct counter *c)
{
	struct count_row *row;
	size_t at = 0;

	while ((row = strmap_next(&c->map, &at)) != NULL) {
		free(row->key);
		free(row);
	}
	strmap_fini(&c->map);
	free(c->copies);
	query_fini(&c->want);
}

static int run(struct job *job, struct counter *c, struct count *out, struct ava_error *err)
{
	int rv;

	for (size_t i = 1; i < THREADS && job->npieces > 1; i++)
		c[i].started = pthread_create(&c[i].thread, NULL, work, &c[i]) == 0;
	work(&c[0]);
	for (size_t i = 1; i < THREADS; i++)
		if (c[i].started)
			pthread_join(c[i].thread, NULL);
	if (job->rv != 0) {
		if (err != NULL)
			*err = job->err;
		return job->rv;
	}
	for (size_t i = 1; i < THREADS; i++) {
		rv = add_up(&c[0], &c[i]);
		if (rv != 0)
			return err_set(err, rv, "no memory to count");
	}
	count_copies(&c[0]);
	rv = take_rows(out, &c[0], job->by);
	return rv == 0 ? 0 : err_set(err, rv, "no memory to count");
}

int count_events(struct count *out, const struct ava_log_query *q, enum count_by by,
		 const struct count_watch *watch, struct ava_error *err)
{
	struct job job = {.lock = PTHREAD_MUTEX_INITIALIZER, .watch = watch, .by = by};
	struct counter c[THREADS] = {0};
	struct read_part part;
	int64_t now = clock_wall_ms();
	struct ava_log *log;
	int rv;

	*out = (struct count){0};
	for (size_t i = 0; i < THREADS; i++) {
		strmap_init(&c[i].map);
		c[i].job = &job;
		c[i].want = c[i].copied = QUERY_ALL;
	}
	rv = ava_log_open(&log, q, err);
	if (rv != 0)
		return rv;
	job.rootfd = read_rootfd(log);
	job.copies = q->everything && q->run == NULL;
	for (size_t i = 0; i < THREADS && rv == 0; i++) {
		rv = read_compile(&c[i].want, q, now, err);
		c[i].want.after = read_after(log);
		c[i].copied.types = c[i].want.types != 0 ? c[i].want.types & COPIED : COPIED;
	}
	if (rv == 0 && by == COUNT_ROLE)
		rv = roles_open(&job.roles, job.rootfd, err);
	for (size_t i = 0; rv == 0 && read_part(log, i, &part); i++)
		rv = cut_file(&job, &part, &c[0].want, err);
	if (rv == 0)
		rv = run(&job, c, out, err);
	for (size_t i = 0; i < THREADS; i++)
		counter_fini(&c[i]);
	roles_close(job.roles);
	for (size_t i = 0; i < job.ncovers; i++)
		query_cover_close(job.covers[i]);
	free(job.covers);
	free(job.pieces);
	ava_log_close(log);
	if (rv != 0)
		count_fini(out);
	return rv;
}

void count_fini(struct count *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->rows[i].key);
	free(c->rows);
	*c = (struct count){0};
}
