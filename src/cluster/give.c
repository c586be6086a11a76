/* A run of this machine goes to another one that a person wants it on (move.c asks for it). It is
 * stopped as by a stop of the daemon, without an end in its log; once all that it wrote is in the
 * database, one statement makes its row the other machine's. What cannot be given, or finds the
 * other machine gone, goes on here from its files. While the database is away nothing happens: an
 * answer that did not come is found in the row at the next look.
 *
 *   STOPS ─► PACKS ─► SENDS ─► ASKS ─► (given)
 *     │        │        │       ├────► LOOKS ─► (given, or goes on here)
 *     └────────┴────────┴───────┴────► (goes on here)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "cluster/member.h"

#define GIVE_LOOK_MS 20

enum giving_state {
	GIVE_STOPS, /* its last commit is on the way to the database, or a thread has the run */
	GIVE_PACKS, /* a thread looks for changes in its copy of the project */
	GIVE_SENDS, /* files that go with it are on the way */
	GIVE_ASKS,  /* the row is being given */
	GIVE_LOOKS, /* no answer came: its row will tell */
};

struct giving {
	struct list node;
	struct cluster *c;
	enum giving_state state;
	uint64_t row; /* lsn of its row of the catalog */
	bool without_copy;
	/* PACKS: */
	struct os_work work;
	const struct run *packs;
	char *patch; /* owned; NULL: it has no copy, or that stays */
	size_t patch_len;
	struct ava_error err;
	char to[40], run[24];
};

static void giving_free(struct giving *g)
{
	list_del(&g->node);
	free(g->patch);
	free(g);
}

/* Takes the wish away, or answers it with a reason. */
static void giving_answer(struct cluster *c, const char *run, const char *to, const char *why)
{
	struct pg_batch *b = pg_batch_new();

	cluster_add_me(b, c,
		       why ? CLUSTER_ME_SQL " update ava_wish set why = $6 from me"
					    " where run = $4 and node = $5"
			   : CLUSTER_ME_SQL " delete from ava_wish using me"
					    " where run = $4 and node = $5");
	pg_batch_text(b, run);
	pg_batch_text(b, to);
	if (why)
		pg_batch_text(b, why);
	(void)pg_send(c->pg, b, take_forgotten, NULL, NULL);
}

/* From its files, as after a crash. `why`: told to who wanted it; NULL: the wish is no more. */
static void giving_back(struct giving *g, const char *why)
{
	struct cluster *c = g->c;
	struct cluster_run *r = strmap_get(&c->by_id, g->run);
	struct catalog_row row;

	giving_answer(c, g->run, g->to, why);
	if (!r || !r->row || catalog_parse(r->row, strlen(r->row), &row, NULL) != 0) {
		cluster_fence(c, "a run of this machine could not be carried on: starting again");
	} else {
		/* The line of a run that was taken has the numbers of its first machine. */
		row.lsn = g->row;
		r->given = false;
		if (!lay_go_on(c, &row))
			cluster_fence(c, "a run of this machine could not be carried on: starting "
					 "again");
		catalog_row_fini(&row);
	}
	giving_free(g);
}

static void giving_done(struct giving *g)
{
	struct cluster *c = g->c;
	struct cluster_run *r = strmap_get(&c->by_id, g->run);
	struct catalog_row row;
	char line[100];

	/* The run gets its end here once this machine leaves. */
	if (r && r->row && catalog_parse(r->row, strlen(r->row), &row, NULL) == 0) {
		row.lsn = g->row;
		if (held_add(&c->look.away, &row) != 0)
			cluster_fence(c, "out of memory");
		catalog_row_fini(&row);
	}
	if (r)
		gate_forget(c, r);
	if (!g->without_copy)
		copying_forget(c->sup, g->run);
	snprintf(line, sizeof(line), "run %s was given to another machine", g->run);
	if (c->tell.log)
		c->tell.log(line, c->tell.user);
	giving_free(g);
}

static void giving_sent(const struct pg_answer *a, void *user)
{
	struct giving *g = user;

	if (g->c->closing)
		return; /* freed with the others; the next start asks whose the run is */
	if (a->rv == AVA_EUNKNOWN || a->rv == AVA_ECANCELED)
		g->state = GIVE_LOOKS;
	else if (a->rv == 0 && pg_affected(&a->results[0]) == 1)
		giving_done(g);
	else
		giving_back(g, NULL); /* the other machine is gone, or the database refused */
}

static void giving_send(struct giving *g)
{
	static const char sql[] =
		CLUSTER_ME_SQL " update ava_run r set node = n.node, epoch = n.epoch, moves = "
			       "r.moves + 1, takes = 0"
			       " from me, ava_node n where r.run = $4 and r.node = $1 and r.epoch "
			       "= $2 and r.head = $6"
			       "  and n.node = $5 and n.lease_until > clock_timestamp()";
	struct cluster_run *r = strmap_get(&g->c->by_id, g->run);
	struct pg_batch *b = pg_batch_new();

	cluster_add_me(b, g->c, sql);
	pg_batch_text(b, g->run);
	pg_batch_text(b, g->to);
	pg_batch_int(b, r->at.bytes);
	r->given = true;
	if (pg_send(g->c->pg, b, giving_sent, g, NULL) == 0)
		g->state = GIVE_ASKS;
}

/* ---- what goes with it */

static void pack_work(struct os_work *w)
{
	struct giving *g = w->priv;

	g->err.code = copying_pack(g->packs, &g->patch, &g->patch_len, &g->err);
}

static void pack_written(int rv, void *user)
{
	struct giving *g = user;
	struct cluster_run *r = strmap_get(&g->c->by_id, g->run);
	char path[LOGBOOK_PATH];

	copying_travel_path(g->run, path);
	if (rv == 0 && r && gate_add_file(r, path))
		g->state = GIVE_SENDS; /* else a stop, which frees it */
	else if (!g->c->closing)
		giving_back(g, "the changes of its copy could not be written");
}

static void pack_done(struct os_work *w)
{
	struct giving *g = w->priv;
	struct run *run = supervisor_find(g->c->sup, g->run);
	char path[LOGBOOK_PATH], why[400];
	struct draft *d;
	struct buf *b;

	run->busy--;
	supervisor_part(run);
	g->packs = NULL;
	if (g->c->closing)
		return; /* give_close frees it */
	if (g->err.code != 0 && g->err.code != AVA_ENOENT) {
		snprintf(why, sizeof(why), "%.300s: `ava move %s --without-copy` leaves it behind",
			 g->err.text, g->run);
		giving_back(g, why);
		return;
	}
	if (!g->patch) {
		g->state = GIVE_SENDS;
		return;
	}
	copying_travel_path(g->run, path);
	d = draft_new(g->c->book);
	b = d ? draft_part(d, DRAFT_PUT, path) : NULL;
	if (b && buf_add(b, g->patch, g->patch_len) == 0 &&
	    draft_commit(d, JOURNAL_NOW, pack_written, g, NULL) == 0)
		return;
	if (!b)
		draft_free(d);
	giving_back(g, "out of memory");
}

/* Nothing of the run is at work. */
static void giving_pack(struct giving *g, struct run *run)
{
	g->row = run->rec.log.row;
	if (!copying_wanted(run) || g->without_copy) {
		supervisor_part(run);
		g->state = GIVE_SENDS;
		return;
	}
	run->busy++;
	g->packs = run;
	g->state = GIVE_PACKS;
	g->work = (struct os_work){.work = pack_work, .done = pack_done, .priv = g};
	os_work_start_foreign(g->c->loop, &g->work);
}

/* ---- its way */

static void giving_step(struct giving *g)
{
	struct cluster *c = g->c;
	struct run *run = supervisor_find(c->sup, g->run);
	struct cluster_run *r = strmap_get(&c->by_id, g->run);

	if (g->state == GIVE_PACKS || g->state > GIVE_SENDS || !c->settled ||
	    !cluster_has_lease(c) || !r || gate_has_more(r) || gate_waits(c, g->run))
		return;
	if (g->state == GIVE_SENDS) {
		giving_send(g);
	} else if (run && run->busy == 0 && outbox_empty(&run->rec.outbox)) {
		giving_pack(g, run);
	}
}

static void give_look(void *user)
{
	struct cluster *c = user;

	LIST_EACH (&c->give.runs, n, tmp)
		giving_step(LIST_ENTRY(n, struct giving, node));
	if (!list_empty(&c->give.runs))
		os_timer_set(c->give.timer, GIVE_LOOK_MS);
}

/* Why a run stays; NULL: it may go. */
static const char *giving_refused(const struct run *run, char text[200])
{
	if (run->agent.ending || run->end.begun)
		snprintf(text, 200, "run %s is about to end", run->id.text);
	else if (run->group)
		snprintf(text, 200, "run %s is one of a group, which stays with its budget",
			 run->id.text);
	else
		return NULL;
	return text;
}

static void giving_begin(struct cluster *c, const char *id, const char *to, bool without_copy)
{
	struct run *run = supervisor_find(c->sup, id);
	const struct cluster_run *r = strmap_get(&c->by_id, id);
	char text[200];
	const char *why = run ? giving_refused(run, text) : NULL;
	struct giving *g;

	LIST_EACH (&c->give.runs, n, tmp)
		if (strcmp(LIST_ENTRY(n, struct giving, node)->run, id) == 0)
			return;
	if (!run || !run->durable || run->end.abandoned || !r || !r->row)
		return; /* the next beat sees the wish again */
	if (why) {
		giving_answer(c, id, to, why);
		return;
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return;
	g->c = c;
	g->without_copy = without_copy;
	snprintf(g->run, sizeof(g->run), "%s", id);
	snprintf(g->to, sizeof(g->to), "%s", to);
	list_add(&c->give.runs, &g->node);
	run_activity(run, "Moves to another machine");
	run_quiesce(run);
	os_timer_set(c->give.timer, GIVE_LOOK_MS);
}

/* Rows: run, who wants it, whether that one is alive, whether its copy may stay. */
void give_wishes(struct cluster *c, const struct pg_result *r)
{
	for (unsigned i = 0; i < pg_rows(r); i++) {
		const char *run = pg_text(r, i, 0, NULL), *to = pg_text(r, i, 1, NULL);
		int64_t alive = 0, without_copy = 0;

		(void)pg_int(r, i, 2, &alive);
		(void)pg_int(r, i, 3, &without_copy);
		if (!alive || (strcmp(to, c->who.node) == 0 && supervisor_find(c->sup, run)))
			giving_answer(c, run, to, NULL);
		else
			giving_begin(c, run, to, without_copy != 0);
	}
}

static void give_looked(struct cluster *c, const struct pg_result *r)
{
	LIST_EACH (&c->give.runs, n, tmp) {
		struct giving *g = LIST_ENTRY(n, struct giving, node);
		int64_t mine = 1; /* lost by the database: as before */

		if (g->state != GIVE_LOOKS)
			continue;
		for (unsigned i = 0; i < pg_rows(r); i++)
			if (strcmp(pg_text(r, i, 0, NULL), g->run) == 0)
				(void)pg_int(r, i, 1, &mine);
		if (mine)
			giving_back(g, NULL);
		else
			giving_done(g);
	}
}

bool give_open(struct cluster *c)
{
	c->give.looked = give_looked;
	c->give.timer = os_timer_new(c->loop, give_look, c);
	return c->give.timer != NULL;
}

void give_close(struct cluster *c)
{
	LIST_EACH (&c->give.runs, n, tmp)
		while (LIST_ENTRY(n, struct giving, node)->packs)
			os_loop_step(c->loop, 20);
	LIST_EACH (&c->give.runs, n, tmp)
		giving_free(LIST_ENTRY(n, struct giving, node));
	os_timer_free(c->give.timer);
}
