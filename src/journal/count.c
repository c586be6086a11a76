/* Counting events; count.h.
 *
 * Happy path: the index's rows have all that is counted; no line is read. Lines are read only
 * for a text search or a kind whose name is unknown. An event that stands in two files (rows of
 * the same lsn, of a kind in INDEX_COPIED) counts once.
 *
 * What can fail: what ava_log_open may, memory, more keys than ROWS_MAX. Broken lines are
 * reported and not counted. Broken rows of the catalog, read for what is known of runs, are
 * skipped: judging the catalog is not a count's business. */
#include "journal/count.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
#define TAGS     8      /* most of a run */
#define SLOT_MS  900000 /* zones differ by quarters of an hour, so a slot lies in one day */

const char *const count_keys[] = {"type",  "agent", "model",   "role", "day",   "week",
				  "month", "tag",   "project", "user", "order", NULL};

/* A run, by its rows of the catalog. */
struct count_run {
	char *id, *role, *model, *cwd, *tags,
		*order; /* all in one piece of memory, behind the struct */
	int64_t ms;     /* -1: it has not ended */
	bool failed;
};

struct counter {
	struct ava_log *log;
	struct log_index *feed;
	const struct count_watch *watch;
	enum count_by by;
	bool copies;             /* days and runs are both read: an event may come twice */
	struct strmap map, runs; /* struct count_row by key; struct count_run by id */
	/* Rows by who, TAGS of each for COUNT_TAG, or by kind; owned; NULL: not asked yet, or no
	 * further one. */
	struct count_row **known;
	char cwd[KEY_MAX], project[KEY_MAX]; /* the folder asked about last, and its project */
	struct count_row *last;              /* row used last, of COUNT_MODEL and of times */
	uint64_t last_key;
	struct copy {
		uint64_t lsn;
		struct count_row *row;
		const struct count_run *run; /* with count_watch.runs; or NULL */
		bool begins;
	} * copied; /* owned; rows of events that may have a copy */
	size_t ncopied, cap;
};

/* ---- runs */

static int count_run_add(struct catalog_row *row, void *user)
{
	struct counter *c = user;
	const char *const texts[] = {row ? row->id : "",    row ? row->role : "",
				     row ? row->model : "", row ? catalog_cwd(row) : "",
				     row ? row->tags : "",  row ? row->order : ""};
	struct count_run *run = row ? strmap_get(&c->runs, row->id) : NULL;
	size_t len = 0;
	char *at;
	int rv;

	if (row == NULL)
		return 0;
	for (size_t i = 0; run == NULL && i < ARRAY_LEN(texts); i++)
		len += strlen(texts[i]) + 1;
	if (run == NULL) {
		run = calloc(1, sizeof(*run) + len);
		if (run == NULL)
			return AVA_ENOMEM;
		at = (char *)(run + 1);
		for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
			(&run->id)[i] = at;
			at = stpcpy(at, texts[i]) + 1;
		}
		run->ms = -1;
		rv = strmap_put(&c->runs, run->id, run);
		if (rv != 0) {
			free(run);
			return rv == AVA_ENOMEM ? rv : 0;
		}
	}
	if (row->kind == CATALOG_END) {
		run->ms = row->totals.duration_ms;
		run->failed = row->status != AVA_SUCCESS && row->status != AVA_CANCELLED;
	}
	return 0;
}

/* Finds the nearest folder above `cwd` that has a .git; without one, as where the folder is gone,
 * `cwd` itself is the project. */
static const char *project_of(struct counter *c, const char *cwd)
{
	char path[KEY_MAX];
	char *slash;

	if (strcmp(c->cwd, cwd) == 0)
		return c->project;
	snprintf(c->cwd, sizeof(c->cwd), "%s", cwd);
	snprintf(c->project, sizeof(c->project), "%s", cwd);
	if (strlen(cwd) + 6 > sizeof(path))
		return c->project;
	snprintf(path, sizeof(path), "%s/", cwd);
	while ((slash = strrchr(path, '/')) != NULL) {
		memcpy(slash, "/.git", 6);
		if (access(path, F_OK) == 0) {
			snprintf(c->project, sizeof(c->project), "%.*s", (int)MAX(slash - path, 1),
				 path);
			break;
		}
		*slash = '\0';
	}
	return c->project;
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

static const struct count_run *run_of(const struct counter *c, uint32_t who)
{
	return strmap_get(&c->runs, index_string(c->feed, c->feed->whos[who].agent));
}

/* A row for each tag, or for the value of the key that was asked for. False: no memory. */
static bool tag_rows(struct counter *c, const char *tags, struct count_row **out)
{
	size_t key = c->watch->tag != NULL ? strlen(c->watch->tag) : 0, n = 0, len;

	for (const char *s = tags; *s != '\0' && n < TAGS; s += len + (s[len] == ' ')) {
		const char *from = s;

		len = strcspn(s, " ");
		if (c->watch->tag != NULL) {
			if (strncmp(s, c->watch->tag, key) != 0 || s[key] != '=')
				continue;
			from = s + key + 1;
		}
		out[n] = count_row(c, from, len - (size_t)(from - s));
		if (out[n++] == NULL)
			return false;
	}
	return n > 0 || (out[0] = count_row(c, "", 0)) != NULL;
}

static struct count_row *who_row(struct counter *c, uint32_t who)
{
	size_t place = (size_t)who * (c->by == COUNT_TAG ? TAGS : 1);
	const struct count_run *run;
	const char *agent, *key = "";

	if (who >= c->feed->nwhos)
		return NULL;
	if (c->known[place] != NULL)
		return c->known[place];
	agent = index_string(c->feed, c->feed->whos[who].agent);
	run = c->by == COUNT_AGENT || c->by == COUNT_USER ? NULL : run_of(c, who);
	if (c->by == COUNT_TAG)
		return tag_rows(c, run != NULL ? run->tags : "", &c->known[place]) ? c->known[place]
										   : NULL;
	if (c->by == COUNT_AGENT)
		key = agent;
	else if (c->by == COUNT_USER)
		key = index_string(c->feed, c->feed->whos[who].user);
	else if (c->by == COUNT_PROJECT)
		key = run != NULL && run->cwd[0] != '\0' ? project_of(c, run->cwd) : "";
	else if (run != NULL)
		key = c->by == COUNT_ORDER ? run->order : run->role;
	else if (c->by == COUNT_ROLE && strcmp(agent, "ava") == 0)
		key = "ava";
	c->known[place] = count_row(c, key, strlen(key));
	return c->known[place];
}

static struct count_row *keyed_row(struct counter *c, uint64_t key)
{
	char day[11], date[11];

	if (c->last != NULL && c->last_key == key)
		return c->last;
	c->last_key = key;
	if (c->by != COUNT_MODEL) {
		clock_local_date((int64_t)key * SLOT_MS, day);
		clock_period(day, (enum clock_period)(c->by - COUNT_DAY), date);
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

static bool is_run_event(uint8_t kind)
{
	return kind == EVENT_SubagentSpawn || kind == EVENT_SubagentComplete;
}

static struct count_row *count_row_of(struct counter *c, const struct columns *k, size_t i)
{
	const struct count_run *run;

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
	case COUNT_TAG:
	case COUNT_PROJECT:
	case COUNT_USER:
	case COUNT_ORDER:
		return who_row(c, k->who[i]);
	case COUNT_MODEL:
		run = c->watch->runs && is_run_event(k->kind[i]) && k->who[i] < c->feed->nwhos
			      ? run_of(c, k->who[i])
			      : NULL;
		return run != NULL ? count_row(c, run->model, strlen(run->model))
				   : keyed_row(c, k->model[i]);
	case COUNT_DAY:
	case COUNT_WEEK:
	case COUNT_MONTH:
		return keyed_row(c, (uint64_t)(k->time[i] / SLOT_MS));
	case COUNT_NKEYS:
		break;
	}
	return NULL;
}

/* ---- chunks */

static bool who_counts(enum count_by by)
{
	return by == COUNT_AGENT || by == COUNT_ROLE || by == COUNT_USER || by == COUNT_TAG ||
	       by == COUNT_PROJECT || by == COUNT_ORDER;
}

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
	if (c->watch->runs || who_counts(c->by))
		sound = (k->who = index_column(f, chunk, INDEX_WHO)) != NULL && sound;
	if (c->by == COUNT_MODEL)
		sound = (k->model = index_column(f, chunk, INDEX_MODEL)) != NULL && sound;
	if (c->watch->parts > 0 || (c->by >= COUNT_DAY && c->by <= COUNT_MONTH))
		sound = (k->time = index_column(f, chunk, INDEX_TIME)) != NULL && sound;
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

/* False: no memory. */
static bool add_part(const struct counter *c, struct count_row *row, int64_t time_ms,
		     const struct index_cost *cost)
{
	const struct count_watch *w = c->watch;
	int64_t span = MAX(w->to_ms - w->from_ms, 1);
	int64_t part = (time_ms - w->from_ms) * (int64_t)w->parts / span;

	if (row->part_microusd == NULL) {
		row->part_microusd = calloc(w->parts, sizeof(uint64_t));
		row->part_tokens = calloc(w->parts, sizeof(uint64_t));
	}
	if (row->part_microusd == NULL || row->part_tokens == NULL)
		return false;
	part = MIN(MAX(part, 0), (int64_t)w->parts - 1);
	row->part_microusd[part] += cost->microusd;
	row->part_tokens[part] += cost->input + cost->output;
	return true;
}

static int count_in(struct counter *c, struct count_row *row, const struct columns *k, size_t i,
		    size_t cost)
{
	unsigned kind = k->kind[i] & 63;

	if (c->copies && (INDEX_COPIED >> kind & 1) != 0) {
		const struct count_run *run =
			c->watch->runs && is_run_event(k->kind[i]) && k->who[i] < c->feed->nwhos
				? run_of(c, k->who[i])
				: NULL;

		if (!ARRAY_ROOM(c->copied, c->cap, c->ncopied + 1))
			return AVA_ENOMEM;
		c->copied[c->ncopied++] =
			(struct copy){k->lsn[i], row, run, kind == EVENT_SubagentSpawn};
		return 0;
	}
	row->events++;
	if (kind == EVENT_InferEnd && cost < k->ncosts) {
		row->calls++;
		row->input_tokens += k->cost[cost].input;
		row->output_tokens += k->cost[cost].output;
		row->cached_tokens += k->cost[cost].cached;
		row->cost_microusd += k->cost[cost].microusd;
		row->uncosted += k->cost[cost].unknown;
		if (c->watch->parts > 0 && !add_part(c, row, k->time[i], &k->cost[cost]))
			return AVA_ENOMEM;
	}
	return 0;
}

static int count_event(struct counter *c, const struct columns *k, size_t i, size_t cost)
{
	struct count_row *row = count_row_of(c, k, i), **more;
	int rv;

	if (row == NULL)
		return c->map.count >= ROWS_MAX ? AVA_ETOOBIG : AVA_ENOMEM;
	rv = count_in(c, row, k, i, cost);
	more = c->by == COUNT_TAG ? &c->known[(size_t)k->who[i] * TAGS] : NULL;
	for (unsigned n = 1; more != NULL && n < TAGS && more[n] != NULL && rv == 0; n++)
		rv = count_in(c, more[n], k, i, cost);
	return rv;
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

	if (x->lsn != y->lsn)
		return order_of(x->lsn, y->lsn);
	return order_of((uint64_t)(uintptr_t)x->row, (uint64_t)(uintptr_t)y->row);
}

/* An event of a run in its row, once. False: no memory. */
static bool count_copied(struct counter *c, const struct copy *at)
{
	struct count_row *row = at->row;
	const struct count_run *run = at->run;

	row->events++;
	if (!c->watch->runs)
		return true;
	row->runs += at->begins;
	if (at->begins || run == NULL || run->ms < 0)
		return true;
	row->failed += run->failed;
	if (c->watch->parts == 0)
		return true;
	if (!ARRAY_ROOM(row->ms, row->ms_cap, row->nms + 1))
		return false;
	row->ms[row->nms++] = (int32_t)MIN(run->ms, INT32_MAX);
	return true;
}

static int most_events(const void *a, const void *b)
{
	const struct count_row *x = a, *y = b;

	if (x->events != y->events)
		return x->events > y->events ? -1 : 1;
	return strcmp(x->key, y->key);
}

static int most_cost(const void *a, const void *b)
{
	const struct count_row *x = a, *y = b;

	if (x->cost_microusd != y->cost_microusd)
		return x->cost_microusd > y->cost_microusd ? -1 : 1;
	return most_events(a, b);
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
	for (size_t i = 0; i < c->ncopied; i++) {
		const struct copy *one = &c->copied[i];

		if ((i == 0 || one->lsn != one[-1].lsn ||
		     (c->by == COUNT_TAG && one->row != one[-1].row)) &&
		    !count_copied(c, one))
			return err_set(err, AVA_ENOMEM, "no memory to count");
	}
	out->rows = calloc(c->map.count + 1, sizeof(*out->rows));
	if (out->rows == NULL)
		return err_set(err, AVA_ENOMEM, "no memory to count");
	while ((row = strmap_next(&c->map, &at)) != NULL) {
		if (row->events == 0) /* its copies did not agree: only one of them counts */
			continue;
		out->rows[out->n++] = *row;
		*row = (struct count_row){0}; /* the result owns its memory now */
	}
	qsort(out->rows, out->n, sizeof(*out->rows),
	      c->by >= COUNT_DAY && c->by <= COUNT_MONTH ? key_order
	      : c->watch->runs                           ? most_cost
							 : most_events);
	return 0;
}

static void count_row_free(struct count_row *row)
{
	free(row->key);
	free(row->ms);
	free(row->part_microusd);
	free(row->part_tokens);
}

static int counter_begin(struct counter *c, struct ava_error *err)
{
	struct count_row *row;
	size_t at = 0;

	while ((row = strmap_next(&c->map, &at)) != NULL) {
		count_row_free(row);
		free(row);
	}
	strmap_fini(&c->map);
	strmap_init(&c->map);
	c->last = NULL;
	c->ncopied = 0;
	free(c->known);
	c->feed = read_index(c->log);
	c->known = calloc(MAX(c->feed->nwhos, 64u) * (c->by == COUNT_TAG ? TAGS : 1),
			  sizeof(struct count_row *));
	return c->known != NULL ? 0 : err_set(err, AVA_ENOMEM, "no memory to count");
}

static void counter_fini(struct counter *c)
{
	struct count_row *row;
	struct count_run *run;
	size_t at = 0;

	while ((row = strmap_next(&c->map, &at)) != NULL) {
		count_row_free(row);
		free(row);
	}
	at = 0;
	while ((run = strmap_next(&c->runs, &at)) != NULL)
		free(run);
	strmap_fini(&c->map);
	strmap_fini(&c->runs);
	free(c->known);
	free(c->copied);
	ava_log_close(c->log);
}

int count_by_name(const char *text, enum count_by *by, const char **tag, struct ava_error *err)
{
	*tag = strncmp(text, "tag:", 4) == 0 && text[4] != '\0' ? text + 4 : NULL;
	for (unsigned i = 0; count_keys[i] != NULL; i++)
		if (strcmp(count_keys[i], *tag != NULL ? "tag" : text) == 0) {
			*by = (enum count_by)(COUNT_TYPE + i);
			return 0;
		}
	return err_set(err, AVA_EINVAL,
		       "\"%.40s\" is nothing to count by: there are type, agent, model, role, day, "
		       "week, month, tag, tag:KEY, project, user and order",
		       text);
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
	strmap_init(&c.runs);
	rv = ava_log_open(&c.log, q, err);
	if (rv == 0)
		rv = counter_begin(&c, err);
	if (rv == 0 && (watch->runs || by == COUNT_ROLE || by == COUNT_TAG || by == COUNT_PROJECT ||
			by == COUNT_ORDER))
		rv = catalog_each(c.feed->rootfd, NULL, watch->runs ? NULL : "\"row\":\"spawn\"",
				  count_run_add, &c, err);
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
		count_row_free(&c->rows[i]);
	free(c->rows);
	*c = (struct count){0};
}

bool count_merge(struct count_row *to, struct count_row *from, size_t parts)
{
	bool room = ARRAY_ROOM(to->ms, to->ms_cap, to->nms + from->nms);

	to->events += from->events;
	to->input_tokens += from->input_tokens;
	to->output_tokens += from->output_tokens;
	to->cost_microusd += from->cost_microusd;
	to->uncosted += from->uncosted;
	to->calls += from->calls;
	to->cached_tokens += from->cached_tokens;
	to->runs += from->runs;
	to->failed += from->failed;
	for (size_t i = 0; room && i < from->nms; i++)
		to->ms[to->nms++] = from->ms[i];
	if (to->part_microusd == NULL) { /* it may have no call of its own */
		to->part_microusd = from->part_microusd;
		to->part_tokens = from->part_tokens;
		from->part_microusd = from->part_tokens = NULL;
	}
	for (size_t i = 0; from->part_microusd != NULL && i < parts; i++) {
		to->part_microusd[i] += from->part_microusd[i];
		to->part_tokens[i] += from->part_tokens[i];
	}
	count_row_free(from);
	*from = (struct count_row){0};
	return room;
}
