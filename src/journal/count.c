/* Counting events; count.h.
 *
 * Happy path: the index's rows have all that is counted; no line is read. Lines are read only
 * for a text search or a kind whose name is unknown. An event that stands in two files (rows of
 * the same lsn, of a kind in INDEX_COPIED) counts once.
 *
 * What can fail: what ava_log_open may, memory, more keys than ROWS_MAX. Broken lines are
 * reported and not counted. Broken rows of the catalog, read for roles, are skipped: judging the
 * catalog is not a count's business. */
#include "journal/count.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strmap.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/catalog.h"
#include "journal/files.h"
#include "journal/read.h"

#define ROWS_MAX 1000000
#define KEY_MAX  256
#define ID_MAX   64
#define SLOT_MS  900000 /* zones differ by quarters of an hour, so a slot lies in one day */

struct count_role {
	char id[ID_MAX], name[ID_MAX];
};

struct counter {
	struct ava_log *log;
	struct log_index *feed;
	const struct count_watch *watch;
	enum count_by by;
	bool copies;              /* days and runs are both read: an event may come twice */
	struct strmap map, roles; /* struct count_row by key; struct count_role by id */
	struct count_row **known; /* owned; rows by who or by kind; NULL: not asked yet */
	struct count_row *last;   /* row used last, of COUNT_MODEL and COUNT_DAY */
	uint64_t last_key;
	struct copy {
		uint64_t lsn;
		struct count_row *row;
	} * copied; /* owned; rows of events that may have a copy */
	size_t ncopied, cap;
};

/* ---- roles */

static int role_add(struct catalog_row *row, void *user)
{
	struct counter *c = user;
	struct count_role *role = row ? calloc(1, sizeof(*role)) : NULL;
	int rv;

	if (role == NULL)
		return row ? AVA_ENOMEM : 0;
	snprintf(role->id, sizeof(role->id), "%s", row->id);
	snprintf(role->name, sizeof(role->name), "%s", row->role);
	rv = strmap_put(&c->roles, role->id, role);
	if (rv != 0)
		free(role);
	return rv == AVA_ENOMEM ? rv : 0;
}

/* ---- rows of the answer */

static struct count_row *count_row(struct counter *c, const char *key, size_t len)
{
	char text[KEY_MAX];
	struct count_row *row;

	len = MIN(len, sizeof(text) - 1);
	memcpy(text, key, len);
	text[len] = '\0';
	row = strmap_get(&c->map, text);
	if (row != NULL || c->map.count >= ROWS_MAX)
		return row;
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

/* An unknown kind's name is read from the event's line. */
static struct count_row *other_row(struct counter *c, const char *path, uint64_t offset, size_t len)
{
	struct count_row *row = NULL;
	struct event_view v;
	char *line = malloc(len + 1);
	int fd = files_open(c->feed->rootfd, path, 0);

	if (line != NULL && fd >= 0 && sys_read_all(fd, line, len, (off_t)offset) == 0 &&
	    event_view(line, len, &v) == 0)
		row = count_row(c, v.type.s, v.type.len);
	files_close(&fd);
	free(line);
	return row;
}

static struct count_row *who_row(struct counter *c, uint32_t who)
{
	const struct count_role *role;
	const char *agent;

	if (who >= c->feed->nwhos)
		return NULL;
	if (c->known[who] == NULL) {
		agent = index_string(c->feed, c->feed->whos[who].agent);
		role = c->by == COUNT_ROLE ? strmap_get(&c->roles, agent) : NULL;
		if (role != NULL)
			agent = role->name;
		else if (c->by == COUNT_ROLE)
			agent = strcmp(agent, "ava") == 0 ? "ava" : "";
		c->known[who] = count_row(c, agent, strlen(agent));
	}
	return c->known[who];
}

static struct count_row *keyed_row(struct counter *c, uint64_t key, bool day)
{
	char date[11];

	if (c->last != NULL && c->last_key == key)
		return c->last;
	c->last_key = key;
	if (day) {
		clock_local_date((int64_t)key * SLOT_MS, date);
		c->last = count_row(c, date, strlen(date));
	} else if (key + 2 >= c->feed->nstrings ||
		   key + 2 + index_string_len(c->feed, (uint32_t)key) >= c->feed->nstrings) {
		c->last = count_row(c, "", 0); /* only a damaged index has no such string */
	} else {
		c->last = count_row(c, index_string(c->feed, (uint32_t)key),
				    index_string_len(c->feed, (uint32_t)key));
	}
	return c->last;
}

struct columns { /* columns of a chunk; NULL: the key does not need it */
	const uint8_t *kind;
	const uint32_t *who, *model, *file, *len;
	const int64_t *time;
	const uint64_t *lsn, *offset;
	const struct index_cost *cost;
	size_t ncosts;
};

static struct count_row *count_row_of(struct counter *c, const struct columns *k, size_t i)
{
	switch (c->by) {
	case COUNT_ALL:
		if (c->last == NULL)
			c->last = count_row(c, "", 0);
		return c->last;
	case COUNT_TYPE:
		if (k->kind[i] >= EVENT_NKINDS)
			return other_row(c, index_string(c->feed, c->feed->files[k->file[i]].path),
					 k->offset[i], k->len[i]);
		if (c->known[k->kind[i]] == NULL) {
			const char *name = event_kind_name((enum event_kind)k->kind[i]);

			c->known[k->kind[i]] = count_row(c, name, strlen(name));
		}
		return c->known[k->kind[i]];
	case COUNT_AGENT:
	case COUNT_ROLE:
		return who_row(c, k->who[i]);
	case COUNT_MODEL:
		return keyed_row(c, k->model[i], false);
	case COUNT_DAY:
		return keyed_row(c, (uint64_t)(k->time[i] / SLOT_MS), true);
	}
	return NULL;
}

/* ---- chunks */

static bool load_columns(struct counter *c, size_t chunk, struct columns *k)
{
	struct log_index *f = c->feed;
	bool other = (f->chunks[chunk].kinds & UINT64_C(1) << INDEX_OTHER) != 0;
	bool sound, copies = c->copies;

	*k = (struct columns){0};
	k->kind = index_column(f, chunk, INDEX_KIND);
	if (c->copies && (f->chunks[chunk].kinds & INDEX_COPIED) != 0)
		k->lsn = index_column(f, chunk, INDEX_LSN);
	else
		copies = false;
	k->cost = index_column(f, chunk, INDEX_COST);
	k->ncosts = f->chunks[chunk].ncosts;
	sound = k->kind != NULL && k->cost != NULL && (k->lsn != NULL || !copies);
	if (c->by == COUNT_AGENT || c->by == COUNT_ROLE)
		return (k->who = index_column(f, chunk, INDEX_WHO)) != NULL && sound;
	if (c->by == COUNT_MODEL)
		return (k->model = index_column(f, chunk, INDEX_MODEL)) != NULL && sound;
	if (c->by == COUNT_DAY)
		return (k->time = index_column(f, chunk, INDEX_TIME)) != NULL && sound;
	if (c->by != COUNT_TYPE || !other)
		return sound;
	k->file = index_column(f, chunk, INDEX_FILE);
	k->offset = index_column(f, chunk, INDEX_OFFSET);
	k->len = index_column(f, chunk, INDEX_LEN);
	return k->file != NULL && k->offset != NULL && k->len != NULL && sound;
}

static void count_tell(struct counter *c, const struct ava_error *err)
{
	if (c->watch->broken != NULL)
		c->watch->broken(err, c->watch->user);
}

static int count_event(struct counter *c, const struct columns *k, size_t i, size_t cost)
{
	struct count_row *row = count_row_of(c, k, i);
	unsigned kind = k->kind[i] & 63;

	if (row == NULL)
		return c->map.count >= ROWS_MAX ? AVA_ETOOBIG : AVA_ENOMEM;
	if (c->copies && (INDEX_COPIED >> kind & 1) != 0) {
		if (!ARRAY_ROOM(c->copied, c->cap, c->ncopied + 1))
			return AVA_ENOMEM;
		c->copied[c->ncopied++] = (struct copy){k->lsn[i], row};
		return 0;
	}
	row->events++;
	if (kind == EVENT_InferEnd && cost < k->ncosts) {
		row->input_tokens += k->cost[cost].input;
		row->output_tokens += k->cost[cost].output;
		row->cost_microusd += k->cost[cost].microusd;
		row->uncosted += k->cost[cost].unknown;
	}
	return 0;
}

/* Count rows that are all wanted; broken ones are reported. */
static int count_rows(struct counter *c, size_t chunk, const uint16_t *rows, size_t n,
		      struct ava_error *err)
{
	struct columns k;
	size_t cost = 0, upto = 0;
	int rv = 0;

	if (!load_columns(c, chunk, &k))
		return err_set(err, AVA_ECORRUPT,
			       INDEX_HEAD ": it is damaged, and made anew by the next question");
	for (size_t j = 0; j < n && rv == 0; j++) {
		size_t i = rows[j];

		for (; upto < i; upto++) /* one cost for each InferEnd of the chunk */
			cost += k.kind[upto] == EVENT_InferEnd;
		if (k.kind[i] != INDEX_BROKEN) {
			rv = count_event(c, &k, i, cost);
			continue;
		}
		read_broken(c->log, chunk, i, err);
		count_tell(c, err);
	}
	if (rv == 0)
		return 0;
	return err_set(err, rv, "%s",
		       rv == AVA_ETOOBIG ? "too many keys to count" : "no memory to count");
}

static int count_chunks(struct counter *c, struct ava_error *err)
{
	uint16_t rows[INDEX_CHUNK];
	uint64_t done = 0, total = 0;
	size_t n;
	int rv = 0;

	for (size_t i = 0; i < c->feed->nchunks; i++)
		total += c->feed->chunks[i].bytes;
	for (size_t i = 0; i < c->feed->nchunks && rv == 0; i++) {
		rv = read_select(c->log, i, rows, &n, err);
		if (rv == 0 && n > 0)
			rv = count_rows(c, i, rows, n, err);
		index_release(c->feed, i);
		done += c->feed->chunks[i].bytes;
		if (c->watch->progress != NULL && i % 64 == 63)
			c->watch->progress(done, total, c->watch->user);
	}
	return rv;
}

/* With a text search: count the events that reading gives. */
static int count_lines(struct counter *c, struct ava_error *err)
{
	struct ava_log_event e;
	size_t chunk, row;
	uint16_t rows[1];
	int rv;

	if (c->watch->progress != NULL)
		read_progress(c->log, c->watch->progress, c->watch->user);
	while ((rv = ava_log_next(c->log, &e, err)) != 0) {
		if (rv == AVA_ECORRUPT) {
			count_tell(c, err);
			continue;
		}
		if (rv < 0)
			return rv;
		read_row(c->log, &chunk, &row);
		rows[0] = (uint16_t)row;
		c->feed = read_index(c->log);
		rv = count_rows(c, chunk, rows, 1, err);
		if (rv != 0)
			return rv;
	}
	return 0;
}

/* ---- the answer */

static int copy_order(const void *a, const void *b)
{
	const struct copy *x = a, *y = b;

	return order_of(x->lsn, y->lsn);
}

static int most_events(const void *a, const void *b)
{
	const struct count_row *x = a, *y = b;

	if (x->events != y->events)
		return x->events > y->events ? -1 : 1;
	return strcmp(x->key, y->key);
}

static int key_order(const void *a, const void *b)
{
	return strcmp(((const struct count_row *)a)->key, ((const struct count_row *)b)->key);
}

static int take_rows(struct count *out, struct counter *c, struct ava_error *err)
{
	struct count_row *row;
	size_t at = 0;

	if (c->ncopied > 0)
		qsort(c->copied, c->ncopied, sizeof(*c->copied), copy_order);
	for (size_t i = 0; i < c->ncopied; i++)
		if (i == 0 || c->copied[i].lsn != c->copied[i - 1].lsn)
			c->copied[i].row->events++;
	out->rows = calloc(c->map.count + 1, sizeof(*out->rows));
	if (out->rows == NULL)
		return err_set(err, AVA_ENOMEM, "no memory to count");
	while ((row = strmap_next(&c->map, &at)) != NULL) {
		if (row->events == 0) /* its copies did not agree: only one of them counts */
			continue;
		out->rows[out->n++] = *row;
		row->key = NULL; /* the result owns it now */
	}
	qsort(out->rows, out->n, sizeof(*out->rows), c->by == COUNT_DAY ? key_order : most_events);
	return 0;
}

static int counter_begin(struct counter *c, struct ava_error *err)
{
	struct count_row *row;
	size_t at = 0;

	while ((row = strmap_next(&c->map, &at)) != NULL) {
		free(row->key);
		free(row);
	}
	strmap_fini(&c->map);
	strmap_init(&c->map);
	c->last = NULL;
	c->ncopied = 0;
	free(c->known);
	c->feed = read_index(c->log);
	c->known = calloc(MAX(c->feed->nwhos, 64u), sizeof(struct count_row *));
	return c->known != NULL ? 0 : err_set(err, AVA_ENOMEM, "no memory to count");
}

static void counter_fini(struct counter *c)
{
	struct count_row *row;
	struct count_role *role;
	size_t at = 0;

	while ((row = strmap_next(&c->map, &at)) != NULL) {
		free(row->key);
		free(row);
	}
	at = 0;
	while ((role = strmap_next(&c->roles, &at)) != NULL)
		free(role);
	strmap_fini(&c->map);
	strmap_fini(&c->roles);
	free(c->known);
	free(c->copied);
	ava_log_close(c->log);
}

int count_events(struct count *out, const struct ava_log_query *q, enum count_by by,
		 const struct count_watch *watch, struct ava_error *err)
{
	struct counter c = {
		.by = by, .watch = watch, .copies = q->everything != 0 && q->run == NULL};
	struct ava_error amiss;
	int rv;

	*out = (struct count){0};
	strmap_init(&c.map);
	strmap_init(&c.roles);
	rv = ava_log_open(&c.log, q, err);
	if (rv == 0)
		rv = counter_begin(&c, err);
	if (rv == 0 && by == COUNT_ROLE)
		rv = catalog_each(c.feed->rootfd, NULL, "\"row\":\"spawn\"", role_add, &c, err);
	if (rv == AVA_ENOMEM)
		err_set(err, rv, "no memory to count");
	if (rv == 0 &&
	    (read_query(c.log)->text.needle != NULL || read_query(c.log)->text.regex != NULL)) {
		rv = count_lines(&c, err);
	} else if (rv == 0) {
		rv = count_chunks(&c, err);
		if (rv == AVA_ECORRUPT) { /* the stored feed is damaged: with a new one */
			rv = read_anew(c.log, err);
			rv = rv == 0 ? counter_begin(&c, err) : rv;
			rv = rv == 0 ? count_chunks(&c, err) : rv;
		}
		while (rv == 0 && read_amiss(c.log, &amiss) != 0)
			count_tell(&c, &amiss);
	}
	if (rv == 0)
		rv = take_rows(out, &c, err);
	counter_fini(&c);
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
