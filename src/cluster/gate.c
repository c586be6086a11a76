/* Commits of runs go to the database, and count for who waits once they are there. A flush
 * (flush.h) takes all runs that have something, in one round trip; one is under way at a time. Each
 * run that is sent has a record here: how far its files have come, and how far the database has
 * them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/sys.h"
#include "base/util.h"
#include "cluster/flush.h"
#include "cluster/member.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "event/event.h"

#define LATER_MS 500    /* until lines go that nobody waits for, if nothing takes them along */
#define KEPT_MS  600000 /* that a run is known here behind its end */

/* ---- what there is to send */

struct cluster_run *gate_run(struct cluster *c, const char *id)
{
	struct cluster_run *r = strmap_get(&c->by_id, id);

	if (r)
		return r;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	list_init(&r->files);
	snprintf(r->id, sizeof(r->id), "%s", id);
	if (strmap_put(&c->by_id, r->id, r) != 0) {
		free(r);
		return NULL;
	}
	list_add(&c->runs, &r->node);
	return r;
}

void gate_forget(struct cluster *c, struct cluster_run *r)
{
	strmap_del(&c->by_id, r->id);
	list_del(&r->node);
	LIST_EACH (&r->files, n, tmp)
		free(LIST_ENTRY(n, struct cluster_file, node));
	free(r->row);
	free(r);
}

void gate_set(struct cluster_run *r, int64_t log, int64_t messages)
{
	r->chained = r->chained && r->at.bytes == log;
	r->at.bytes = log;
	r->messages_at = messages;
}

bool gate_has_more(const struct cluster_run *r)
{
	return !r->laying &&
	       (r->relist || r->at.bytes < r->log_seen || r->messages_at < r->messages_seen ||
		r->fresh || !list_empty(&r->files));
}

/* A record that cannot be read is tried again with the next beat. */
static bool gate_sends(const struct cluster_run *r)
{
	return gate_has_more(r) && !r->unreadable;
}

void gate_prune(struct cluster *c)
{
	int64_t now = cluster_now_ms();

	if (c->flush)
		return; /* it points to runs */
	LIST_EACH (&c->runs, n, tmp) {
		struct cluster_run *r = LIST_ENTRY(n, struct cluster_run, node);

		if (r->done_ms && now - r->done_ms > KEPT_MS && !gate_has_more(r))
			gate_forget(c, r);
	}
}

/* The row of the run among the lines of a draft. */
static char *row_of(const struct draft *d, const char *id)
{
	for (unsigned i = 0; i < d->nparts; i++) {
		const struct buf *b = &d->parts[i]->bytes;
		const char *line;
		size_t at = 0, n;

		if (d->parts[i]->kind != DRAFT_CATALOG)
			continue;
		while (jsonl_next(b->data, b->len, &at, &line, &n) == 1) {
			struct catalog_row row;
			bool found = catalog_parse(line, n, &row, NULL) == 0 &&
				     row.kind == CATALOG_SPAWN && strcmp(row.id, id) == 0;

			catalog_row_fini(&row);
			if (found)
				return strndup(line, n);
		}
	}
	return NULL;
}

bool gate_add_file(struct cluster_run *r, const char *path)
{
	struct cluster_file *f;

	LIST_EACH (&r->files, n, tmp)
		if (strcmp(LIST_ENTRY(n, struct cluster_file, node)->path, path) == 0)
			return true;
	f = malloc(sizeof(*f) + strlen(path) + 1);
	if (!f)
		return false;
	memcpy(f->path, path, strlen(path) + 1);
	list_add(&r->files, &f->node);
	return true;
}

/* Counts what a commit added to the record of a run. */
static bool gate_count(struct cluster *c, const struct draft *d, const char *id)
{
	bool fresh = !strmap_get(&c->by_id, id), ok = true;
	struct cluster_run *r = gate_run(c, id);
	char log[LOGBOOK_PATH], messages[LOGBOOK_PATH], folder[LOGBOOK_PATH];

	if (!r)
		return false;
	if (fresh) {
		r->row = row_of(d, id);
		r->fresh = r->chained = true;
		ok = r->row != NULL;
	}
	logbook_run_path(id, log);
	logbook_messages_path(id, messages);
	snprintf(folder, sizeof(folder), "runs/%s/", id);
	for (unsigned i = 0; i < d->nparts; i++) {
		const struct draft_part *p = d->parts[i];

		if (p->kind == DRAFT_RUN && strcmp(p->path, log) == 0)
			r->log_seen += (int64_t)p->bytes.len;
		else if (p->kind == DRAFT_MESSAGES && strcmp(p->path, messages) == 0)
			r->messages_seen += (int64_t)p->bytes.len;
		else if (p->kind == DRAFT_PUT && strncmp(p->path, folder, strlen(folder)) == 0)
			ok = gate_add_file(r, p->path) && ok;
	}
	return ok;
}

/* The run whose lines a part holds: of its log, or of its messages, which a run that waited for
 * others begins with. False: none. */
static bool gate_part_run(const struct draft_part *p, char id[24])
{
	static const char logs[] = "logs/subagents/", runs[] = "runs/";
	char path[LOGBOOK_PATH];

	if (p->kind == DRAFT_RUN && strncmp(p->path, logs, sizeof(logs) - 1) == 0) {
		snprintf(id, 24, "%.*s", (int)strcspn(p->path + sizeof(logs) - 1, "."),
			 p->path + sizeof(logs) - 1);
		return true;
	}
	if (p->kind != DRAFT_MESSAGES || strncmp(p->path, runs, sizeof(runs) - 1) != 0)
		return false;
	snprintf(id, 24, "%.*s", (int)strcspn(p->path + sizeof(runs) - 1, "/"),
		 p->path + sizeof(runs) - 1);
	logbook_messages_path(id, path);
	return strcmp(path, p->path) == 0;
}

/* The next run from part *i on that a draft writes lines of; each comes once. */
static bool gate_next_run(const struct draft *d, unsigned *i, char id[24])
{
	while (*i < d->nparts) {
		bool again = false;
		char other[24];
		unsigned at = (*i)++;

		if (!gate_part_run(d->parts[at], id))
			continue;
		for (unsigned k = 0; k < at; k++)
			again = again ||
				(gate_part_run(d->parts[k], other) && strcmp(other, id) == 0);
		if (!again)
			return true;
	}
	return false;
}

bool gate_waits(const struct cluster *c, const char *run)
{
	char id[24];

	LIST_EACH (&c->gated, n, tmp)
		for (unsigned i = 0; gate_next_run(LIST_ENTRY(n, struct draft, node), &i, id);)
			if (strcmp(id, run) == 0)
				return true;
	return false;
}

/* Callers outside of runs are told that it is not known; runs are carried on by the next
 * start. */
void gate_give_up(struct cluster *c)
{
	struct list some;

	list_init(&some);
	list_splice(&some, &c->gated);
	LIST_EACH (&some, n, tmp) {
		struct draft *d = LIST_ENTRY(n, struct draft, node);

		list_del(n);
		if (d->alone)
			draft_pass(d, AVA_EUNKNOWN);
		else
			list_add(&c->gated, n);
	}
}

/* A call of a conversation has no run's line, but costs money. */
static bool gate_spends(const struct cluster *c, const struct draft *d)
{
	static const char start[] = "\"eventType\":\"InferStart\"";
	bool spends = false;

	for (unsigned i = 0; i < d->nparts && !spends && lend_owes(c); i++)
		spends = d->parts[i]->kind == DRAFT_DAY &&
			 memmem(d->parts[i]->bytes.data, d->parts[i]->bytes.len, start,
				sizeof(start) - 1);
	return spends;
}

static void gate_draft(struct draft *d, void *user)
{
	struct cluster *c = user;
	bool waits = gate_spends(c, d);
	unsigned i = 0;
	char id[24];

	while (gate_next_run(d, &i, id)) {
		const struct cluster_run *r = strmap_get(&c->by_id, id);

		waits = !r || !r->laying;
		/* A machine that cannot remember what it owes may not go on. */
		if (waits && !gate_count(c, d, id))
			cluster_fence(c, "out of memory");
	}
	if (waits && !d->done && !c->later.due) {
		c->later.due = true;
		os_timer_set(c->later.timer, LATER_MS);
	}
	if (!waits || !d->done) {
		draft_pass(d, 0);
		return;
	}
	d->ticket = c->ticket;
	list_add(&c->gated, &d->node);
	if (c->closing)
		gate_give_up(c);
	else
		gate_wake(c);
}

static bool gate_may(void *user)
{
	const struct cluster *c = user;

	return c->settled && cluster_has_lease(c);
}

/* ---- its way */

/* Is all of a run's up to that ticket in the database, or for a conversation what it spends? */
static bool gate_has(const struct cluster *c, const struct draft *d)
{
	const struct cluster_run *r;
	bool runs = false;
	unsigned i = 0;
	char id[24];

	while (gate_next_run(d, &i, id)) {
		runs = true;
		r = strmap_get(&c->by_id, id);
		if (r && r->passed < d->ticket && gate_has_more(r))
			return false;
	}
	return runs || c->lend.passed >= d->ticket || !lend_owes(c);
}

/* Lets count what is in the database. */
static void gate_let(struct cluster *c)
{
	LIST_EACH (&c->gated, n, tmp) {
		struct draft *d = LIST_ENTRY(n, struct draft, node);

		if (!c->settled || !cluster_has_lease(c))
			return;
		if (!gate_has(c, d))
			continue;
		list_del(n);
		draft_pass(d, 0);
	}
}

static void flush_settle(struct flush *f)
{
	struct cluster *c = f->c;

	for (unsigned i = 0; i < f->nruns; i++) {
		const struct flush_run *from = &f->runs[i];
		struct cluster_run *r = from->run;

		if (from->rv != 0)
			continue;
		r->passed = f->ticket;
		r->ended = r->ended || from->ended;
		r->turns += from->turns;
		r->at = from->log;
		r->messages_at = from->messages_to;
		r->chained = true;
		r->fresh = false;
		if ((from->fresh || from->turn == 1) && c->folders.n > 0)
			cluster_place_due(c, r);
	}
	for (size_t i = 0; i < f->nfiles; i++) {
		struct cluster_file *of = f->files[i].of;

		if (!f->files[i].bytes)
			continue;
		if (of) {
			list_del(&of->node);
			free(of);
		} else {
			(void)nameset_add(&c->heads,
					  f->files[i].path + 6); /* no memory: sent again */
		}
	}
	for (unsigned i = 0; i < f->nruns; i++) {
		struct cluster_run *r = f->runs[i].run;

		if (!r->ended || gate_has_more(r))
			continue;
		if (r->row)
			r->done_ms = cluster_now_ms();
		else
			gate_forget(c, r);
	}
	c->count.flushes++;
	c->count.sent_bytes += f->bytes;
	c->count.flush_us += clock_mono_us() - f->sent_us;
}

static void flush_answered(const struct pg_answer *a, void *user)
{
	struct flush *f = user;
	struct cluster *c = f->c;
	int64_t lease = 0, moved = 0, sent = 0;

	c->flush = NULL;
	for (unsigned i = 0; i < f->nruns; i++)
		sent += f->runs[i].rv == 0;
	if (a->rv == 0) {
		(void)pg_int(&a->results[a->n - 1], 0, 0, &lease);
		(void)pg_int(&a->results[a->n - 1], 0, 1, &moved);
	}
	if (a->rv != 0 && a->rv != AVA_EUNKNOWN && a->rv != AVA_ECANCELED) {
		cluster_say(c, "the database took nothing: %s", a->err->text);
	} else if (a->rv == 0 && lease == 0) {
		c->beat.renew_due = true; /* the answer says whether somebody ended the lease */
		cluster_tend(c);
	} else if (a->rv == 0 && moved != sent) {
		c->settled = false; /* a head or an owner is another one */
		c->look_due = true;
		cluster_tend(c);
	} else if (a->rv == 0) {
		flush_settle(f);
		lend_flushed(c, &f->told, f->ticket);
		gate_let(c);
		gate_wake(c);
	}
	flush_free(f);
}

static void flush_read_done(struct os_work *w)
{
	struct flush *f = w->priv;
	struct cluster *c = f->c;
	struct pg_batch *b;
	unsigned n = 0;

	c->flush_reads = false;
	for (unsigned i = 0; i < f->nruns; i++) {
		struct flush_run *r = &f->runs[i];

		n += r->rv == 0;
		r->run->unreadable = r->rv != 0 && r->rv != AVA_EBUSY;
	}
	if (f->err.code != 0)
		cluster_say(c, "%s", f->err.text);
	for (size_t i = 0; i < f->nfiles; i++)
		n += f->files[i].bytes != NULL;
	if ((n > 0 || lend_owes(c)) && c->state == CLUSTER_MEMBER && !c->closing) {
		b = flush_batch(f);
		f->sent_us = clock_mono_us();
		if (b)
			f->rv = pg_send(c->pg, b, flush_answered, f, &f->err);
		if (f->rv == 0)
			return;
		cluster_say(c, "%s", f->err.text);
	}
	c->flush = NULL;
	flush_free(f);
}

const char *gate_place(const struct run *run)
{
	return run->spec->cwd[0] ? "here" : "anywhere";
}

struct gate_walk {
	struct cluster_run *run;
	const char *folder;
	bool ok;
};

static void gate_file_name(const char *name, void *user)
{
	struct gate_walk *walk = user;
	char path[LOGBOOK_PATH + 256];

	snprintf(path, sizeof(path), "%s/%s", walk->folder, name);
	walk->ok = gate_add_file(walk->run, path) && walk->ok;
}

/* Lists what there is of a run's files. Only while no flush points to them. */
static void gate_list_files(struct cluster *c, struct cluster_run *r)
{
	char folder[LOGBOOK_PATH], result[LOGBOOK_PATH];
	struct gate_walk walk = {.run = r, .folder = folder, .ok = true};
	struct stat st;

	r->relist = false;
	snprintf(folder, sizeof(folder), "runs/%s/artifacts", r->id);
	(void)sys->list(c->root_fd, folder, gate_file_name, &walk);
	logbook_result_path(r->id, result);
	if (sys->fstatat(c->root_fd, result, &st, AT_SYMLINK_NOFOLLOW) == 0)
		walk.ok = gate_add_file(r, result) && walk.ok;
	copying_travel_path(r->id, result);
	if (sys->fstatat(c->root_fd, result, &st, AT_SYMLINK_NOFOLLOW) == 0)
		walk.ok = gate_add_file(r, result) && walk.ok;
	if (!walk.ok)
		cluster_fence(c, "out of memory");
}

/* All that there is to send now. NULL: out of memory. */
static struct flush *flush_new(struct cluster *c, unsigned n)
{
	struct flush *f = calloc(1, sizeof(*f));
	bool ok = f && (f->runs = calloc(n + 1, sizeof(*f->runs))) != NULL;

	if (f) {
		f->c = c;
		arena_init(&f->columns, FLUSH_COLUMNS);
	}
	LIST_EACH (&c->runs, node, tmp) {
		struct cluster_run *r = LIST_ENTRY(node, struct cluster_run, node);
		struct flush_run *to = ok && gate_sends(r) ? &f->runs[f->nruns] : NULL;
		const struct run *run;

		if (!to)
			continue;
		/* Both are remembered: an ended run may have to be sent once more. */
		run = supervisor_find(c->sup, r->id);
		if (run && !r->place)
			r->place = gate_place(run);
		if (run && run->group)
			snprintf(r->group, sizeof(r->group), "%s", run->group->id);
		*to = (struct flush_run){.run = r,
					 .log_from = r->at.bytes,
					 .log_to = r->log_seen,
					 .messages_from = r->messages_at,
					 .messages_to = r->messages_seen,
					 .chained = r->chained,
					 .log = r->at,
					 .fresh = r->fresh,
					 .place = r->place ? r->place : "here",
					 .files_from = f->nfiles};
		LIST_EACH (&r->files, file, further)
			ok = ok &&
			     flush_add_file(f, LIST_ENTRY(file, struct cluster_file, node),
					    LIST_ENTRY(file, struct cluster_file, node)->path);
		to->files_to = f->nfiles;
		f->nruns++;
	}
	if (ok)
		return f;
	if (f)
		flush_free(f);
	return NULL;
}

static void gate_pump(struct os_task *t)
{
	struct cluster *c = CONTAINER_OF(t, struct cluster, pump);
	struct flush *f;
	unsigned n = 0;

	if (c->state != CLUSTER_MEMBER || c->flush || !c->settled)
		return;
	if (c->heads_stale)
		nameset_fini(&c->heads);
	c->heads_stale = false;
	LIST_EACH (&c->runs, node, tmp)
		if (LIST_ENTRY(node, struct cluster_run, node)->relist)
			gate_list_files(c, LIST_ENTRY(node, struct cluster_run, node));
	LIST_EACH (&c->runs, node, tmp)
		n += gate_sends(LIST_ENTRY(node, struct cluster_run, node));
	if (n == 0) /* what is left waits for what a conversation spends to be known */
		gate_let(c);
	if (n == 0 && (list_empty(&c->gated) || !lend_owes(c)))
		return;
	f = flush_new(c, n);
	if (!f) {
		cluster_say(c, "out of memory: what runs wrote is sent later");
		return;
	}
	c->later.due = false;
	os_timer_stop(c->later.timer);
	f->ticket = c->ticket++;
	c->flush = f;
	c->flush_reads = true;
	f->work = (struct os_work){.work = flush_work, .done = flush_read_done, .priv = f};
	os_work_start(c->loop, &f->work);
}

void gate_wake(struct cluster *c)
{
	os_defer(c->loop, &c->pump);
}

static void gate_later(void *user)
{
	struct cluster *c = user;

	c->later.due = false;
	gate_wake(c);
}

int gate_open(struct cluster *c)
{
	list_init(&c->runs);
	list_init(&c->gated);
	strmap_init(&c->by_id);
	os_task_init(&c->pump, gate_pump);
	c->ticket = 1;
	c->book->gate = gate_draft;
	c->book->may = gate_may;
	c->book->gate_user = c;
	c->later.timer = os_timer_new(c->loop, gate_later, c);
	return c->later.timer ? 0 : AVA_ENOMEM;
}

void gate_close(struct cluster *c)
{
	c->book->gate = NULL;
	c->book->may = NULL;
	os_defer_cancel(c->loop, &c->pump);
	os_timer_free(c->later.timer);
	LIST_EACH (&c->gated, n, tmp)
		draft_free(LIST_ENTRY(n, struct draft, node));
	list_init(&c->gated);
	LIST_EACH (&c->runs, n, tmp)
		gate_forget(c, LIST_ENTRY(n, struct cluster_run, node));
	strmap_fini(&c->by_id);
	nameset_fini(&c->heads);
}
