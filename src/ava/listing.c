/* GET /api/v1/runs: the runs that fit, in order, a page at a time.
 *
 * Happy path: the loop takes the runs at work that fit; where ended ones can fit, too, a thread of
 * the pool adds them from the catalog, which it reads from its end.
 *
 * Each run has a place that never changes while somebody pages, and the cursor is the place of the
 * last run given: so none is given twice or left out, though runs begin and end meanwhile. By start
 * the place is the lsn of the run's spawn, whatever clocks do. By a figure the runs come first that
 * were at work at the first page, for their figures still grow: by start, also once they have ended
 * (the lsn of their end is behind that page); then the others by figure and start.
 *
 * A row tells when to stop: runs of older rows have ended before it, so have begun before it, too.
 * What can fail: a value that is none, memory, a catalog that is no file. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/others.h"
#include "ava/runs.h"
#include "ava/state.h"
#include "ava/verbs.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "journal/query.h"
#include "subagent/run.h"
#include "subagent/supervisor.h"

#define LISTING_IDS 200
#define LISTING_SLACK_MS                                                                           \
	INT64_C(3600000) /* a clock may be put back so far, and rows are found nevertheless */
#define LIVE_BITS  ((1u << AVA_SUCCESS) - 1)
#define ENDED_BITS (((1u << AVA_NSTATUSES) - 1) & ~LIVE_BITS)

static const struct listing_class {
	const char *word;
	uint32_t statuses;
} listing_classes[] = {{"live", LIVE_BITS},
		       {"ended", ENDED_BITS},
		       {"failed", ENDED_BITS & ~(1u << AVA_SUCCESS | 1u << AVA_CANCELLED)},
#define X(name, word) {word, 1u << (name)},
		       AVA_STATUSES(X)
#undef X
};

enum listing_sort { BY_STARTED, BY_COST, BY_TIME, BY_TOKENS, LISTING_SORTS };
static const char *const listing_sorts[] = {"started", "cost", "time", "tokens"};

#define LISTING_TEXTS(X)                                                                           \
	X(status)                                                                                  \
	X(role)                                                                                    \
	X(model)                                                                                   \
	X(user) X(session) X(group) X(tag) X(cwd) X(q) X(since) X(until) X(ids) X(sort) X(before)
struct listing_args {
	bool all, counts;
	int64_t limit, min_cents; /* micro-USD */
#define X(field) const char *field;
	LISTING_TEXTS(X)
#undef X
};

#define LISTING_AT(field) offsetof(struct listing_args, field)
static const struct arg listing_args[] = {
	{"all", ARG_FLAG, LISTING_AT(all)},
	{"counts", ARG_FLAG, LISTING_AT(counts)},
	{"limit", ARG_COUNT, LISTING_AT(limit), 1, 100000},
	{"min_cents", ARG_CENTS, LISTING_AT(min_cents)},
#define X(field) {#field, ARG_TEXT, LISTING_AT(field)},
	LISTING_TEXTS(X)
#undef X
		{NULL},
};

/* The first place is that of a run at work (not by start), then the highest figure, then the
 * newest. */
struct listing_place {
	int at_work;
	int64_t figure;
	uint64_t lsn;
};

struct listed {
	struct listing_place at;
	size_t from, len; /* its status in `live`; len 0: it has ended */
	struct catalog_row row;
};

struct listing {
	struct listing_args args;
	enum listing_sort sort;
	uint32_t statuses; /* a bit each */
	int64_t since_ms, until_ms;
	size_t cwd_len;             /* of args.cwd, without a "/" at its end */
	unsigned ids;               /* how many of args.ids are still to be found */
	uint64_t first;             /* the newest lsn at the first page; 0: by start */
	struct listing_place after; /* of the page before; lsn 0: there is none */
	struct listed **v;          /* owned; the first `limit` and one, or more */
	size_t n, cap, cut_at;
	struct listing_place last; /* a place behind it is too far; lsn 0: none is */
	struct buf live, live_ids; /* statuses; sorted ids (struct run_id) of all runs at work */
	int64_t by_status[AVA_NSTATUSES], total, microusd;
	bool no_memory;
	bool shared;      /* runs of other machines are among them, so the order is by time */
	char others[512]; /* why those are not, or not as they are now; "" */
};

/* ---- the arguments */

/* The next word of a list with commas, cut to fit. */
static bool listing_next(const char **at, char out[40])
{
	size_t len = *at ? strcspn(*at, ",") : 0;

	if (!*at)
		return false;
	snprintf(out, 40, "%.*s", (int)MIN(len, (size_t)39), *at);
	*at = (*at)[len] ? *at + len + 1 : NULL;
	return true;
}

static int listing_take_lists(struct listing *l, struct ava_error *err)
{
	const char *at = l->args.status;
	char word[40];

	l->statuses = at ? 0 : l->args.all || l->args.ids ? LIVE_BITS | ENDED_BITS : LIVE_BITS;
	while (listing_next(&at, word)) {
		size_t i = 0;

		while (i < ARRAY_LEN(listing_classes) && strcmp(listing_classes[i].word, word) != 0)
			i++;
		if (i == ARRAY_LEN(listing_classes))
			return err_set(err, AVA_EINVAL,
				       "status is \"%s\"; it must be of live, ended, failed"
#define X(name, word) ", " word
				       AVA_STATUSES(X),
#undef X
				       word);
		l->statuses |= listing_classes[i].statuses;
	}
	for (at = l->args.ids; listing_next(&at, word); l->ids++)
		if (!id_is_run(word) || l->ids == LISTING_IDS)
			return err_set(err, AVA_EINVAL,
				       "ids has \"%s\"; it must be at most %d ids of runs "
				       "(S-7f3a2b,S-00c0de)",
				       word, LISTING_IDS);
	return 0;
}

static int listing_take(struct listing *l, struct core *c, struct ava_error *err)
{
	const struct listing_args *a = &l->args;
	const char *sort = a->sort ? a->sort : listing_sorts[BY_STARTED];
	struct listing_place *p = &l->after;
	int64_t now = clock_wall_ms();
	size_t len = strlen(sort);
	int end = 0;

	l->cwd_len = a->cwd ? strlen(a->cwd) : 0;
	while (l->cwd_len > 0 && a->cwd[l->cwd_len - 1] == '/')
		l->cwd_len--;
	if (a->cwd && a->cwd[0] != '/')
		return err_set(err, AVA_EINVAL, "cwd is \"%.200s\"; it must be an absolute path",
			       a->cwd);
	if ((a->since && query_time(a->since, now, &l->since_ms, err) != 0) ||
	    (a->until && query_time(a->until, now, &l->until_ms, err) != 0))
		return err->code;
	while (l->sort < LISTING_SORTS && strcmp(listing_sorts[l->sort], sort) != 0)
		l->sort++;
	if (l->sort == LISTING_SORTS)
		return err_set(err, AVA_EINVAL,
			       "sort is \"%.40s\"; it must be started, cost, time or tokens", sort);
	l->first = l->sort == BY_STARTED ? 0 : logbook_shown(&c->book);
	if (a->before && (strncmp(a->before, sort, len) != 0 ||
			  sscanf(a->before + len, ".%" SCNu64 ".%d.%" SCNd64 ".%" SCNu64 "%n",
				 &l->first, &p->at_work, &p->figure, &p->lsn, &end) != 4 ||
			  a->before[len + (size_t)end] != '\0' || p->lsn == 0))
		return err_set(err, AVA_EINVAL,
			       "before is \"%.80s\"; it must be the \"next\" of an answer with the "
			       "same sort",
			       a->before);
	return listing_take_lists(l, err);
}

/* ---- which */

/* Does each word occur? */
static bool listing_says(const char *words, const struct op_status *s)
{
	char text[8192], word[256];

	snprintf(text, sizeof(text), "%.*s\n%s\n%s\n%s\n%s\n%s", CATALOG_TASK_MAX, s->task, s->id,
		 s->trace_id, s->role, s->cwd, s->tags);
	for (size_t len; *(words += strspn(words, " \t\n")); words += len) {
		len = strcspn(words, " \t\n");
		snprintf(word, sizeof(word), "%.*s", (int)MIN(len, sizeof(word) - 1), words);
		if (!strcasestr(text, word))
			return false;
	}
	return true;
}

static bool listing_fits(const struct listing *l, const struct op_status *s)
{
	const struct listing_args *a = &l->args;
	const char *const same[][2] = {{a->role, s->role},
				       {a->model, s->model},
				       {a->user, s->user_id},
				       {a->group, s->group_id},
				       {a->session, s->session_id}};

	for (size_t i = 0; i < ARRAY_LEN(same); i++)
		if (same[i][0] && strcmp(same[i][0], same[i][1]) != 0)
			return false;
	return (l->statuses >> s->status & 1) && s->spawned_ms >= l->since_ms &&
	       s->spawned_ms < l->until_ms &&
	       (a->min_cents <= 0 || s->cost_microusd >= a->min_cents) &&
	       (!a->cwd || (*s->cwd && strncmp(s->cwd, a->cwd, l->cwd_len) == 0 &&
			    strchr("/", s->cwd[l->cwd_len]))) &&
	       (!a->tag || list_has(s->tags, ' ', a->tag)) && (!a->q || listing_says(a->q, s));
}

/* ---- in order */

static int listing_compare(const struct listing_place *a, const struct listing_place *b)
{
	if (a->at_work != b->at_work)
		return b->at_work - a->at_work;
	if (a->figure != b->figure)
		return a->figure > b->figure ? -1 : 1;
	return order_of(b->lsn, a->lsn);
}

static int listing_by_place(const void *a, const void *b)
{
	return listing_compare(&(*(struct listed *const *)a)->at,
			       &(*(struct listed *const *)b)->at);
}

/* Sorts, and drops what is behind the page and one more. */
static void listing_cut(struct listing *l)
{
	size_t most = (size_t)l->args.limit + 1;

	if (l->n > 0)
		qsort(l->v, l->n, sizeof(*l->v), listing_by_place);
	for (; l->n > most; l->n--) {
		catalog_row_fini(&l->v[l->n - 1]->row);
		free(l->v[l->n - 1]);
	}
	if (l->n == most)
		l->last = l->v[most - 1]->at;
	l->cut_at = l->n == most ? 2 * most : most;
}

/* Takes the run when it fits and its place is on the page; `row` (NULL: at work) is *taken*
 * then. */
static void listing_add(struct listing *l, const struct op_status *s, struct listing_place at,
			struct catalog_row *row)
{
	const int64_t figures[] = {l->shared ? s->spawned_ms : 0, s->cost_microusd, s->elapsed_ms,
				   s->tokens};
	struct listed *x;
	struct jw w;

	if (l->args.ids && !list_has(l->args.ids, ',', s->id))
		return;
	l->ids -= l->args.ids != NULL;
	if (!listing_fits(l, s))
		return;
	l->total++;
	l->by_status[s->status]++;
	l->microusd = sum_to_max(l->microusd, MAX(s->cost_microusd, 0));
	at.figure = at.at_work ? 0 : figures[l->sort];
	if ((l->after.lsn && listing_compare(&at, &l->after) <= 0) ||
	    (l->last.lsn && listing_compare(&at, &l->last) > 0))
		return;
	x = calloc(1, sizeof(*x));
	if (!x || !ARRAY_ROOM(l->v, l->cap, l->n + 1)) {
		l->no_memory = true;
		free(x);
		return;
	}
	*x = (struct listed){.at = at, .from = l->live.len};
	l->v[l->n++] = x;
	if (row) {
		x->row = *row;
		row->owned = NULL;
	} else {
		jw_init(&w, &l->live);
		verb_write_status(&w, NULL, s);
		x->len = l->live.len - x->from;
	}
	if (l->n == l->cut_at)
		listing_cut(l);
}

/* ---- runs at work, on the loop: the newest first, so that few statuses are written in vain */

static int listing_by_id(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Runs of other machines, as the newest list has them. Numbers of other machines' lines mean
 * nothing here: a number of their ids takes that place. */
static void listing_others(struct listing *l, struct core *c)
{
	const struct reader_run *run;
	size_t i = 0;

	while (l->shared && (run = reader_next(c->service.reader, &i))) {
		bool at_work = l->first > 0 && (!run->ended || run->stamp > l->first);
		struct listing_place at = {.at_work = at_work,
					   .lsn = MAX(strtoull(run->id + 2, NULL, 16), 1)};
		struct op_status s;
		struct run_id id;

		if (supervisor_find(&c->sup, run->id))
			continue;
		snprintf(id.text, sizeof(id.text), "%s", run->id);
		buf_add(&l->live_ids, &id, sizeof(id));
		ended_row(&run->row, &s);
		others_status(run, &s);
		listing_add(l, &s, at, NULL);
	}
}

static void listing_live(struct listing *l, struct core *c)
{
	for (struct list *at = c->sup.live.prev; at != &c->sup.live; at = at->prev) {
		struct run *r = LIST_ENTRY(at, struct run, node);
		struct listing_place place = {.at_work = l->first > 0,
					      .lsn = MAX(r->rec.log.row, 1)};
		struct op_status s;

		buf_add(&l->live_ids, &r->id, sizeof(r->id));
		if (!r->durable) /* nobody was told of it yet */
			continue;
		supervisor_status(r, &s);
		s.place = cluster_place(c->service.cluster, r->id.text);
		listing_add(l, &s, place, NULL);
	}
	listing_others(l, c);
	if (l->live_ids.len > 0 && buf_check(&l->live_ids) == 0)
		qsort(l->live_ids.data, l->live_ids.len / sizeof(struct run_id),
		      sizeof(struct run_id), listing_by_id);
}

/* ---- ended runs, on a thread of the pool */

static bool listing_row(struct catalog_row *row, void *user)
{
	struct listing *l = user;
	uint64_t spawned = row->spawn_lsn ? row->spawn_lsn : row->lsn;
	struct listing_place at = {.at_work = l->first > 0 && row->lsn > l->first, .lsn = spawned};
	struct op_status s;
	struct run_id id;

	snprintf(id.text, sizeof(id.text), "%s", row->id);
	/* The run was at work when the listing began, or a full disk holds back its last commit. */
	if (row->kind != CATALOG_END ||
	    (l->live_ids.len > 0 && bsearch(&id, l->live_ids.data, l->live_ids.len / sizeof(id),
					    sizeof(id), listing_by_id)))
		return true;
	if (l->sort == BY_STARTED && !l->args.counts && l->last.lsn > 0 &&
	    (l->shared ? l->last.figure > row->ended_ms + LISTING_SLACK_MS
		       : l->last.lsn > row->lsn))
		return false;
	ended_row(row, &s);
	listing_add(l, &s, at, row);
	return !l->no_memory && (!l->args.ids || l->ids > 0);
}

static void listing_write(struct listing *l, struct jw *w)
{
	size_t n = MIN(l->n, (size_t)l->args.limit);
	char next[120] = "";

	jw_object(w, NULL);
	jw_array(w, "runs");
	for (size_t i = 0; i < n; i++) {
		struct listed *x = l->v[i];
		struct op_status s;

		if (x->len > 0) {
			jw_raw(w, NULL, l->live.data + x->from, x->len);
		} else {
			ended_row(&x->row, &s);
			verb_write_status(w, NULL, &s);
		}
	}
	jw_end(w);
	if (l->n > n)
		snprintf(next, sizeof(next), "%s.%" PRIu64 ".%d.%" PRId64 ".%" PRIu64,
			 listing_sorts[l->sort], l->first, l->v[n - 1]->at.at_work,
			 l->v[n - 1]->at.figure, l->v[n - 1]->at.lsn);
	jw_str(w, "next", next);
	if (l->others[0])
		jw_str(w, "others", l->others);
	if (!l->args.counts)
		return;
	jw_object(w, "counts");
	jw_int(w, "total", l->total);
	jw_object(w, "by_status");
	for (size_t i = 0; i < AVA_NSTATUSES; i++)
		if (l->by_status[i] > 0)
			jw_int(w, ava_status_name((enum ava_status)i), l->by_status[i]);
	jw_end(w);
	verb_cost(w, "cost_cents", l->microusd);
	jw_end(w);
}

/* Can ended runs be among them? */
static bool listing_reads(const struct listing *l)
{
	return (l->statuses & ENDED_BITS) && (!l->args.ids || l->ids > 0);
}

static int listing_work(struct verb_work *work, struct ava_error *err)
{
	struct listing *l = work->own;
	int rv = buf_check(&l->live) == 0 && buf_check(&l->live_ids) == 0 ? 0 : AVA_ENOMEM;

	if (rv == 0 && listing_reads(l))
		rv = history_each(work->job.core->root_fd, true, listing_row, l, err);
	if (rv == AVA_ENOMEM || l->no_memory)
		return err_set(err, AVA_ENOMEM, "out of memory: ask for fewer runs");
	if (rv != 0)
		return rv;
	listing_cut(l);
	listing_write(l, &work->answer.w);
	return 0;
}

static void listing_fini(struct verb_work *work)
{
	struct listing *l = work->own;

	while (l->n > 0) {
		catalog_row_fini(&l->v[--l->n]->row);
		free(l->v[l->n]);
	}
	free(l->v);
	buf_fini(&l->live);
	buf_fini(&l->live_ids);
}

/* `others`: why the runs of other machines are not known as they are now; NULL: they are. */
static void listing_begin(struct verb_call *v, const struct ava_error *others)
{
	struct listing l = {.args = {.limit = 100}, .since_ms = INT64_MIN, .until_ms = INT64_MAX};
	struct verb_work w = {.work = listing_work, .fini = listing_fini, .own = &l};
	struct ava_error err = {0};

	if (!verb_args(v, &l.args))
		return;
	if (listing_take(&l, v->core, &err) != 0) {
		verb_fail(v->reply, err.code, &err);
		return;
	}
	l.shared = v->core->service.reader != NULL;
	if (others)
		snprintf(l.others, sizeof(l.others), "%s", others->text);
	l.cut_at = (size_t)l.args.limit + 1;
	buf_init(&l.live, (size_t)1 << 30);
	buf_init(&l.live_ids, (size_t)1 << 30);
	listing_live(&l, v->core);
	if (listing_reads(&l)) {
		verb_work(v, &w, sizeof(l), true);
		return;
	}
	verb_begin(&w.answer, v->reply, 0, NULL);
	if (listing_work(&w, &err) == 0)
		verb_send(&w.answer, 200);
	else
		verb_drop(&w.answer, &err);
	listing_fini(&w);
}

/* A call that waits for what other machines have. */
struct listing_waits {
	struct core *core;
	const struct verb *verb;
	json_t *args;
	struct verb_reply *reply;
};

static void listing_listed(int rv, const struct ava_error *err, void *user)
{
	struct listing_waits *l = user;
	struct verb_call v = {
		.core = l->core, .verb = l->verb, .id = "", .args = l->args, .reply = l->reply};

	arena_init(&v.mem, 1024);
	listing_begin(&v, rv == 0 ? NULL : err);
	arena_fini(&v.mem);
	json_decref(l->args);
	free(l);
}

static void verb_listing(struct verb_call *v)
{
	struct reader *reader = v->core->service.reader;
	struct listing_waits *l = reader ? malloc(sizeof(*l)) : NULL;

	if (!l) {
		listing_begin(v, NULL);
		return;
	}
	*l = (struct listing_waits){.core = v->core,
				    .verb = v->verb,
				    .args = json_incref((json_t *)v->args),
				    .reply = v->reply};
	reader_list(reader, logbook_shown(&v->core->book) + 1, listing_listed, l);
}

const struct verb verbs_about_lists[] = {
	{"GET", "/api/v1/runs", verb_listing, listing_args, false},
	{NULL},
};
