/* Whether a machine takes new work, and how it leaves its cluster for good, in two steps. While it
 * serves, the database is asked which of its runs are bound to it; with one of those, or with
 * nobody to take the others, nothing happens. Then the daemon is stopped. In that stop, when its
 * runs do nothing any more, what they wrote is sent, the lease is given back, others take the runs,
 * and the machine's row goes. A run that went away ends in the catalog here, so that no start
 * without the cluster carries it on a second time. A crash in between leaves a member, which its
 * next start is again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "cluster/cluster.h"
#include "cluster/member.h"

#define LOOK_MS 20
#define SENT_MS 5000  /* until the database has all, in a stop */
#define GONE_MS 10000 /* until others have taken the runs */
#define ASK_MS  200
#define NAMED   10 /* runs that a sentence names */

struct leaving {
	struct os_timer *look; /* are runs that were accepted known to the database? */
	cluster_leave_fn done; /* NULL: answered */
	void *user;
	unsigned runs; /* that others are to take */
	bool asking;   /* leave_finish waits for an answer */
	bool gone;     /* the database does not know this machine any more */
};

static void leave_free(struct cluster *c)
{
	if (c->leaving)
		os_timer_free(c->leaving->look);
	free(c->leaving);
	c->leaving = NULL;
	if (!c->closing)
		porter_look(c);
}

static void leave_answer(struct cluster *c, int rv, const struct ava_error *err)
{
	cluster_leave_fn done = c->leaving->done;
	unsigned runs = c->leaving->runs;
	void *user = c->leaving->user;

	c->leaving->done = NULL;
	if (rv != 0)
		leave_free(c);
	done(rv, runs, err, user);
}

int cluster_ready(const struct cluster *c, struct ava_error *err)
{
	if (!c || (cluster_has_lease(c) && !c->leaving))
		return 0;
	if (c->leaving)
		return err_set(err, AVA_EIO,
			       "this machine leaves the cluster: nothing new is taken here");
	return err_set(err, AVA_EIO, "nothing new is taken here: %s",
		       c->why[0] ? c->why : "the database of the cluster does not answer");
}

/* ---- while it serves */

static void leave_drained(const struct pg_answer *a, void *user)
{
	struct cluster *c = user;
	struct ava_error err = {0};

	if (a->rv == AVA_EUNKNOWN)
		porter_anew(c); /* others may have taken the doors of one that leaves */
	if (a->rv != 0)
		err_set(&err, AVA_EIO, "this machine does not leave: %s", a->err->text);
	else if (pg_affected(&a->results[0]) != 1)
		err_set(&err, AVA_EIO, "this machine is no member any more");
	leave_answer(c, err.code, &err);
}

static void leave_drain(struct cluster *c)
{
	struct pg_batch *b = pg_batch_new();
	struct ava_error err;
	int rv;

	cluster_add_me(b, c,
		       "update ava_node set draining = true"
		       " where node = $1 and epoch = $2 and generation = $3");
	rv = pg_send(c->pg, b, leave_drained, c, &err);
	if (rv != 0)
		leave_answer(c, rv, &err);
}

/* Asks for the runs bound to this machine, the number of the others, and somebody to take those. */
static void leave_asked(const struct pg_answer *a, void *user)
{
	struct cluster *c = user;
	struct ava_error err = {0};
	int64_t free_runs = 0, others = 0;
	char ids[NAMED * 24 + 24] = "";
	size_t used = 0;

	if (a->rv != 0) {
		err_set(&err, AVA_EIO, "this machine does not leave: %s", a->err->text);
		leave_answer(c, AVA_EIO, &err);
		return;
	}
	for (unsigned i = 0; i < pg_rows(&a->results[0]); i++)
		used += (size_t)snprintf(ids + used, sizeof(ids) - used, "%s%.23s", i ? ", " : "",
					 i < NAMED ? pg_text(&a->results[0], i, 0, NULL) : "…");
	(void)pg_int(&a->results[1], 0, 0, &free_runs);
	(void)pg_int(&a->results[1], 0, 1, &others);
	c->leaving->runs = (unsigned)free_runs;
	if (used > 0)
		err_set(&err, AVA_EBUSY,
			"runs are bound to this machine: %s; it leaves when they have ended", ids);
	else if (free_runs > 0 && others == 0)
		err_set(&err, AVA_EBUSY,
			"nobody else is there to take %lld run%s of this machine; it leaves when "
			"they have ended",
			(long long)free_runs, free_runs == 1 ? "" : "s");
	if (err.code != 0)
		leave_answer(c, err.code, &err);
	else
		leave_drain(c);
}

static void leave_ask(struct cluster *c)
{
	struct pg_batch *b = pg_batch_new();
	struct ava_error err;
	int rv;

	pg_batch_add(b, "select r.run from ava_run r join ava_spec s using (run)"
			" where r.node = $1 and r.state = 0"
			" and not " TAKE_FREE_SQL " order by r.run limit $2");
	pg_batch_text(b, c->who.node);
	pg_batch_int(b, NAMED + 1);
	pg_batch_add(b, "select (select count(*) from ava_run where node = $1 and state = 0),"
			" (select count(*) from ava_node where node <> $1 and not draining"
			"  and lease_until > clock_timestamp())");
	pg_batch_text(b, c->who.node);
	rv = pg_send(c->pg, b, leave_asked, c, &err);
	if (rv != 0)
		leave_answer(c, rv, &err);
}

/* A run that was accepted a moment ago may not have been sent yet. */
static bool leave_all_known(const struct cluster *c)
{
	if (!list_empty(&c->takings))
		return false;
	LIST_EACH (&c->sup->live, n, tmp) {
		const struct cluster_run *r =
			strmap_get(&c->by_id, LIST_ENTRY(n, struct run, node)->id.text);

		if (!r || r->fresh)
			return false;
	}
	return true;
}

static void leave_look(void *user)
{
	struct cluster *c = user;
	struct ava_error err;

	if (!cluster_has_lease(c) || c->closing)
		leave_answer(c, err_set(&err, AVA_EIO, "the database of the cluster is away"),
			     &err);
	else if (leave_all_known(c))
		leave_ask(c);
	else
		os_timer_set(c->leaving->look, LOOK_MS);
}

int cluster_leave(struct cluster *c, cluster_leave_fn done, void *user, struct ava_error *err)
{
	struct leaving *l;
	int rv = cluster_ready(c, err);

	if (c->leaving)
		return err_set(err, AVA_EBUSY, "this machine leaves the cluster already");
	if (rv != 0)
		return rv;
	l = calloc(1, sizeof(*l));
	if (l)
		l->look = os_timer_new(c->loop, leave_look, c);
	if (!l || !l->look) {
		free(l);
		return err_set(err, AVA_ENOMEM, "out of memory");
	}
	l->done = done;
	l->user = user;
	c->leaving = l;
	porter_look(c);
	os_timer_set(l->look, 0);
	return 0;
}

/* ---- in its stop */

static void leave_heard(const struct pg_answer *a, void *user)
{
	struct cluster *c = user;

	c->leaving->asking = false;
	c->leaving->gone = a->rv == 0 && pg_affected(&a->results[1]) == 1;
}

/* Gives the lease back; the row goes once others have the runs. */
static void leave_send(struct cluster *c)
{
	struct pg_batch *b = pg_batch_new();

	cluster_add_me(b, c,
		       "update ava_node set lease_until = '-infinity'"
		       " where node = $1 and epoch = $2 and generation = $3");
	cluster_add_me(b, c,
		       "delete from ava_node where node = $1 and epoch = $2 and generation = $3"
		       " and not exists (select 1 from ava_run where node = $1 and state = 0)");
	c->leaving->asking = pg_send(c->pg, b, leave_heard, c, NULL) == 0;
}

static void leave_wait(struct cluster *c, int ms)
{
	int64_t until = cluster_now_ms() + ms;

	while (cluster_now_ms() < until)
		os_loop_step(c->loop, (int)(until - cluster_now_ms()));
}

static void leave_row_written(int rv, void *user)
{
	if (rv != 0)
		cluster_say(user, "the end of a run that others have could not be written: %s",
			    ava_strerror(rv));
}

/* `line`: of the catalog, that the run began with; `lsn`: its place in this one, if that of the
 * line is another machine's. */
static bool leave_row(const struct cluster *c, struct draft *d, const char *line,
		      const uint64_t *lsn)
{
	struct catalog_row row;
	char path[LOGBOOK_PATH];
	bool ok = line && catalog_parse(line, strlen(line), &row, NULL) == 0;

	if (!ok)
		return false;
	logbook_run_path(row.id, path);
	row.kind = CATALOG_END;
	row.status = AVA_ERROR; /* as who reads its log, which has no end, tells */
	row.ended_ms = clock_wall_ms();
	row.spawn_lsn = lsn ? *lsn : row.lsn;
	row.bytes = (uint64_t)lay_size(c, path);
	ok = draft_catalog(d, &row, NULL) == 0;
	catalog_row_fini(&row);
	return ok;
}

/* Ends the runs that others have, in this catalog. */
static void leave_rows(struct cluster *c)
{
	struct draft *d = draft_new(c->book);
	bool ok = d != NULL;

	LIST_EACH (&c->runs, n, tmp) {
		const struct cluster_run *r = LIST_ENTRY(n, struct cluster_run, node);
		const struct run *run = supervisor_find(c->sup, r->id);

		const uint64_t lsn = run ? run->rec.log.row : 0;

		if (!r->done_ms)
			ok = ok && leave_row(c, d, r->row, &lsn);
	}
	LIST_EACH (&c->look.away, n, tmp)
		ok = ok && leave_row(c, d, LIST_ENTRY(n, struct cluster_held, node)->row, NULL);
	if (ok && d->nparts > 0)
		(void)draft_commit(d, JOURNAL_NOW, leave_row_written, c, NULL);
	else
		draft_free(d);
}

bool leave_finish(struct cluster *c)
{
	int64_t end = cluster_now_ms() + SENT_MS;
	unsigned runs = 1;

	if (!c->leaving || c->leaving->done)
		return false;
	while (cluster_now_ms() < end && cluster_has_lease(c) && runs > 0) {
		gate_wake(c);
		leave_wait(c, LOOK_MS);
		(void)cluster_lag(c, &runs);
	}
	end = cluster_now_ms() + GONE_MS;
	while (runs == 0 && c->state == CLUSTER_MEMBER && cluster_now_ms() < end) {
		leave_send(c);
		while (c->leaving->asking && cluster_now_ms() < end)
			os_loop_step(c->loop, LOOK_MS);
		if (c->leaving->gone || !pg_is_up(c->pg))
			break;
		leave_wait(c, ASK_MS);
	}
	if (!c->leaving->gone) {
		cluster_say(c,
			    "this machine is still a member: others did not take all of its runs");
		return true;
	}
	leave_rows(c);
	if (c->tell.log)
		c->tell.log("this machine has left the cluster", c->tell.user);
	return true;
}

void leave_close(struct cluster *c)
{
	struct ava_error err;

	if (c->leaving && c->leaving->done)
		leave_answer(c, err_set(&err, AVA_ECANCELED, "the daemon stops"), &err);
	if (c->leaving && c->leaving->gone)
		(void)sys->unlinkat(c->root_fd, CLUSTER_FILE, 0);
	leave_free(c);
}
