/* Counting events; count.h.
 *
 * Happy path: the files of the question are cut into pieces, a crew takes one
 * piece after the other, each thread counts into a table of its own, and the
 * tables are added up. No order is needed, so nothing is merged by lsn; only
 * what may stand in two files (query_is_copied) is noted by lsn and counted
 * when all is read, each once. The last event's row is kept at hand: events
 * that follow each other mostly have the same key. Of a file with an index a
 * piece is a chunk; when whole kinds of it are wanted, the index has the sums.
 *
 * What can fail: memory, reading, an expression that runs wild; the first
 * error ends it. Broken lines are told and passed over. */
#include "journal/count.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crew.h"
#include "base/error.h"
#include "base/strmap.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/query.h"
#include "journal/query_build.h"
#include "journal/query_cover.h"
#include "journal/read.h"
#include "journal/read_file.h"
#include "journal/read_piece.h"
#include "journal/roles.h"

#define ROWS_MAX 1000000
#define KEY_MAX  256

/* An event that may stand in two files, counted when all copies are known. */
struct copy {
	uint64_t lsn;
	struct count_row *row;
};

struct counter {
	struct job *job;
	struct query want;
	struct strmap map; /* struct count_row by key */
	struct count_row *last;
	char last_key[KEY_MAX]; /* raw key of `last` */
	size_t last_len;
	struct copy *copies;
	size_t ncopies, cap;
};

struct job {
	pthread_mutex_t lock;
	const struct count_watch *watch;
	struct read_pieces pieces;
	struct query_cover **covers; /* owned; closed at the end */
	size_t ncovers;
	uint64_t done;
	bool copies; /* days and runs are both read */
	enum count_by by;
	struct roles *roles;
	int rootfd, smallfd, rv;
	struct ava_error err;
	struct counter c[CREW_THREADS];
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

static int count_event(struct counter *c, const char *line, const struct event_view *v)
{
	struct count_row *row = find_row(c, line, v);

	if (row == NULL)
		return c->map.count >= ROWS_MAX ? AVA_ETOOBIG : AVA_ENOMEM;
	if (c->job->copies && query_is_copied(v->kind))
		return note_copy(c, v->lsn, row) ? 0 : AVA_ENOMEM;
	row->events++;
	if (v->kind == EVENT_InferEnd)
		add_cost(row, v);
	return 0;
}

/* ---- out of the index */

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
	if ((q->types == 0 || (q->types & UINT64_C(1) << QUERY_INDEX_OTHER) != 0) &&
	    h->counts[QUERY_INDEX_OTHER] > 0)
		return false; /* the last kind and names that are not known: not told apart */
	return (q->since[0] == '\0' || memcmp(h->earliest, q->since, CLOCK_ISO_LEN) >= 0) &&
	       (q->until[0] == '\0' || memcmp(h->latest, q->until, CLOCK_ISO_LEN) < 0);
}

/* The row of a line of the index. NULL: no memory. */
static struct count_row *model_row(struct counter *c, const struct query_index_model *m)
{
	const char *key = "";

	if (c->job->by == COUNT_MODEL)
		return row_of(c, m->name, m->len);
	if (c->job->by == COUNT_TYPE)
		key = event_kind_name((enum event_kind)m->kind);
	return row_of(c, key, strlen(key));
}

static bool is_wanted(const struct counter *c, const struct query_index_model *m)
{
	return m->kind < EVENT_NKINDS &&
	       (c->want.types == 0 || (c->want.types & UINT64_C(1) << m->kind) != 0);
}

static bool is_copied(const struct counter *c, const struct query_index_model *m)
{
	return c->job->copies && (QUERY_INDEX_COPIED & UINT64_C(1) << m->kind) != 0;
}

static int count_models(struct counter *c, const unsigned char *part, size_t len)
{
	struct query_index_model m;
	struct count_row *row;

	for (size_t at = 0; query_index_model_next(part, len, &at, &m);) {
		if (!is_wanted(c, &m) || is_copied(c, &m))
			continue;
		row = model_row(c, &m);
		if (row == NULL)
			return AVA_ENOMEM;
		row->events += m.count;
		add_sums(row, m.sums);
	}
	return 0;
}

/* Those that may stand in two files, each with its lsn. */
static int count_copied(struct counter *c, const unsigned char *part, size_t len,
			const unsigned char *copies, size_t ncopies)
{
	struct query_index_model m;
	struct query_index_copy copy;
	struct count_row *row;
	uint32_t number = 0;

	for (size_t at = 0; query_index_model_next(part, len, &at, &m); number++) {
		if (!is_wanted(c, &m) || !is_copied(c, &m))
			continue;
		row = model_row(c, &m);
		for (size_t i = 0; row != NULL && i < ncopies; i++) {
			query_index_copy_get(copies + i * QUERY_INDEX_COPY_SIZE, &copy);
			if (copy.model == number && !note_copy(c, copy.lsn, row))
				return AVA_ENOMEM;
		}
		if (row == NULL)
			return AVA_ENOMEM;
	}
	return 0;
}

/* 1: counted; 0: it cannot be read, nothing is counted; or a code. */
static int count_index(struct counter *c, const struct read_piece *p)
{
	unsigned char *part = query_cover_part(p->cover, p->head, QUERY_INDEX_MODELS);
	unsigned char *copies = query_cover_part(p->cover, p->head, QUERY_INDEX_COPIES);
	size_t n = query_index_part_size(p->head, QUERY_INDEX_COPIES) / QUERY_INDEX_COPY_SIZE;
	int rv = 1;

	if (part == NULL || copies == NULL) {
		free(part);
		free(copies);
		return 0;
	}
	if (count_models(c, part, p->head->models) != 0 ||
	    count_copied(c, part, p->head->models, copies, n) != 0)
		rv = AVA_ENOMEM;
	free(part);
	free(copies);
	return rv;
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

static int tell_broken(struct ava_error *err, void *user)
{
	struct job *job = ((struct counter *)user)->job;

	pthread_mutex_lock(&job->lock);
	if (job->watch->broken != NULL)
		job->watch->broken(err, job->watch->user);
	pthread_mutex_unlock(&job->lock);
	return 0;
}

static void tell_done(struct job *job, uint64_t bytes)
{
	if (job->watch->progress == NULL)
		return;
	pthread_mutex_lock(&job->lock);
	job->done += bytes;
	job->watch->progress(job->done, job->pieces.total, job->watch->user);
	pthread_mutex_unlock(&job->lock);
}

static int count_line(const struct read_line *line, void *user, struct ava_error *err)
{
	int rv = count_event(user, line->text, &line->view);

	if (rv == 0)
		return 0;
	return err_set(err, rv, "%s",
		       rv == AVA_ETOOBIG ? "too many keys to count" : "no memory to count");
}

static int count_piece(struct counter *c, const struct read_piece *p, struct ava_error *err)
{
	struct read_piece_do tell = {count_line, tell_broken, c};
	int rv = in_index(c, p->head) ? count_index(c, p) : 0;

	if (rv == 0)
		return read_piece(c->job->rootfd, p, &c->want, &tell, err);
	return rv < 0 ? err_set(err, rv, "no memory to count") : 0;
}

static bool work(size_t i, unsigned thread, void *user)
{
	struct job *job = user;
	struct read_piece p = job->pieces.v[i];
	struct query_cover *small = read_piece_small(&p, job->smallfd);
	struct ava_error err;
	int rv = count_piece(&job->c[thread], &p, &err);

	if (rv != 0)
		fail_job(job, rv, &err);
	query_cover_close(small);
	tell_done(job, p.to - p.from);
	return rv == 0;
}

/* ---- the job */

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

static int cut_file(struct job *job, const struct read_part *part, const struct query *want,
		    struct ava_error *err)
{
	struct read_piece small = {
		.path = part->path, .to = part->size, .whole = true, .small = part->chunk};
	const struct query_cover *cover = NULL;
	struct stat st;
	int rv;

	if (part->left_out)
		return 0;
	if (part->size > 0 && part->start == 0) { /* it was looked at just now */
		rv = read_pieces_add(&job->pieces, &small);
	} else {
		if (sys->fstatat(job->rootfd, part->path, &st, 0) != 0)
			return err_sys(err, "%s", part->path);
		if ((uint64_t)st.st_size >= QUERY_COVER_LEAST)
			cover = cover_of(job, part, want);
		rv = read_pieces_cut(&job->pieces, part->path, part->start, (uint64_t)st.st_size,
				     cover, want);
	}
	return rv == 0 ? 0 : err_set(err, rv, "no memory to count");
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
		if (row->events == 0) /* copies that do not agree: one of them counts */
			continue;
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

static int run(struct job *job, struct count *out, struct ava_error *err)
{
	int rv = 0;

	crew_run(job->pieces.n, work, job);
	if (job->rv != 0) {
		if (err != NULL)
			*err = job->err;
		return job->rv;
	}
	for (size_t i = 1; i < CREW_THREADS && rv == 0; i++)
		rv = add_up(&job->c[0], &job->c[i]);
	if (rv == 0) {
		count_copies(&job->c[0]);
		rv = take_rows(out, &job->c[0], job->by);
	}
	return rv == 0 ? 0 : err_set(err, rv, "no memory to count");
}

/* What is to be read, and the question for each thread. */
static int plan(struct job *job, const struct ava_log *log, const struct ava_log_query *q,
		struct ava_error *err)
{
	int64_t now = clock_wall_ms();
	struct read_part part;
	int rv = 0;

	job->rootfd = read_rootfd(log);
	job->smallfd = read_smallfd(log);
	job->copies = q->everything && q->run == NULL;
	for (size_t i = 0; i < CREW_THREADS && rv == 0; i++) {
		rv = read_compile(&job->c[i].want, q, now, err);
		job->c[i].want.after = read_after(log);
	}
	if (rv == 0 && job->by == COUNT_ROLE)
		rv = roles_open(&job->roles, job->rootfd, err);
	for (size_t i = 0; rv == 0 && read_part(log, i, &part); i++)
		rv = cut_file(job, &part, &job->c[0].want, err);
	return rv;
}

static void job_fini(struct job *job)
{
	for (size_t i = 0; i < CREW_THREADS; i++)
		counter_fini(&job->c[i]);
	roles_close(job->roles);
	for (size_t i = 0; i < job->ncovers; i++)
		query_cover_close(job->covers[i]);
	free(job->covers);
	read_pieces_fini(&job->pieces);
}

int count_events(struct count *out, const struct ava_log_query *q, enum count_by by,
		 const struct count_watch *watch, struct ava_error *err)
{
	struct job job = {.lock = PTHREAD_MUTEX_INITIALIZER, .watch = watch, .by = by};
	struct ava_log *log;
	int rv;

	*out = (struct count){0};
	for (size_t i = 0; i < CREW_THREADS; i++) {
		strmap_init(&job.c[i].map);
		job.c[i].job = &job;
		job.c[i].want = QUERY_ALL;
	}
	rv = ava_log_open(&log, q, err);
	if (rv != 0)
		return rv;
	rv = plan(&job, log, q, err);
	if (rv == 0)
		rv = run(&job, out, err);
	job_fini(&job);
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
