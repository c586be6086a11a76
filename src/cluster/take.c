/* Whose a run is: the database is asked after a join and after a new connection, and with each beat
 * for runs of machines that are gone. Runs of its own, which a stop left, a machine carries on once
 * the database says that they still are; those of machines whose lease has ended it takes (lay.c).
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/sys.h"
#include "base/util.h"
#include "cluster/cluster.h"
#include "cluster/member.h"
#include "cluster/row.h"
#include "codec/jscan.h"
#include "event/event.h"
#include "journal/read_root.h"
#include "subagent/run.h"

struct take_row take_row_of(const struct pg_result *r, unsigned i)
{
	struct take_row row = {.id = pg_text(r, i, 0, NULL), .group = pg_text(r, i, 7, NULL)};

	(void)pg_int(r, i, 1, &row.mine);
	(void)pg_int(r, i, 2, &row.head);
	row.hash = pg_text(r, i, 3, &row.hash_len);
	(void)pg_int(r, i, 4, &row.state);
	(void)pg_int(r, i, 5, &row.messages);
	(void)pg_int(r, i, 6, &row.moves);
	return row;
}

/* Is that the beginning of the log that is here? Behind a database that went back another machine
 * may have gone on from fewer lines, and come to the same length. */
static bool take_agrees(const struct cluster *c, const struct take_row *row)
{
	char path[LOGBOOK_PATH], *bytes = malloc((size_t)row->head + 1);
	struct run_log log = {0};
	const char *line;
	size_t at = 0, n;
	bool ok = false;
	int fd;

	logbook_run_path(row->id, path);
	fd = sys->openat(c->root_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
	if (fd >= 0) {
		ok = bytes && sys_read_all(fd, bytes, (size_t)row->head, 0) == 0;
		sys->close(fd);
	}
	while (ok && jsonl_next(bytes, (size_t)row->head, &at, &line, &n) == 1)
		run_log_add(&log, 0, line, n + 1);
	free(bytes);
	return row->head == 0 ||
	       (ok && log.bytes == row->head && row->hash_len == sizeof(log.head) &&
		memcmp(log.head, row->hash, sizeof(log.head)) == 0);
}

/* The same of a run that is at work here, of which the hash is mostly known. */
static bool take_still(const struct cluster *c, const struct take_row *row,
		       const struct cluster_run *run)
{
	if (!run->chained || row->head != run->at.bytes || row->hash_len != sizeof(run->at.head))
		return take_agrees(c, row);
	return memcmp(run->at.head, row->hash, sizeof(run->at.head)) == 0;
}

/* How much of the record is on this disk. */
static void take_measure(const struct cluster *c, struct cluster_run *r)
{
	char path[LOGBOOK_PATH];

	logbook_run_path(r->id, path);
	r->log_seen = lay_size(c, path);
	logbook_messages_path(r->id, path);
	r->messages_seen = lay_size(c, path);
}

/* A run that ended here, which the database did not learn: the rest is sent. */
static bool take_unsent(struct cluster *c, const struct take_row *row)
{
	char path[LOGBOOK_PATH];
	struct cluster_run *r;

	logbook_result_path(row->id, path);
	if (lay_size(c, path) == 0 || !take_agrees(c, row))
		return false;
	r = gate_run(c, row->id);
	if (!r) {
		cluster_fence(c, "out of memory");
		return true;
	}
	take_measure(c, r);
	r->relist = true;
	r->moves = row->moves;
	gate_set(r, row->head, row->messages);
	return true;
}

/* Numbers go on behind those of the log. Another machine may have given these, where this one went
 * down between laying the run down and carrying it on. */
static void take_leap(const struct cluster *c, const char *id)
{
	char path[LOGBOOK_PATH], *data = NULL;
	const char *line = NULL, *next;
	size_t len = 0, at = 0, n = 0, more;
	struct event_view v;

	logbook_run_path(id, path);
	if (sys_read_file(c->root_fd, path, 256u << 20, &data, &len, NULL) == 0)
		while (jsonl_next(data, len, &at, &next, &more) == 1) {
			line = next;
			n = more;
		}
	if (line && event_view(line, n, &v) == 0)
		logbook_leap(c->book, v.lsn);
	free(data);
}

/* A run of this machine. */
static void take_ours(struct cluster *c, const struct cluster_held *h, const struct take_row *row)
{
	struct cluster_run *r = gate_run(c, h->id);
	struct catalog_row catalog;

	if (!r || catalog_parse(h->row, strlen(h->row), &catalog, NULL) != 0) {
		cluster_fence(c, "out of memory");
		return;
	}
	take_measure(c, r);
	take_leap(c, h->id);
	r->relist = true; /* a crash may have come between a file and the database */
	r->row = strdup(h->row);
	r->fresh = !h->known;
	r->moves = row->moves;
	gate_set(r, row->head, row->messages);
	if (!r->row || !lay_go_on(c, &catalog))
		cluster_fence(c, "a run of this machine could not be carried on");
	catalog_row_fini(&catalog);
}

/* ---- whose is what */

void take_forgotten(const struct pg_answer *a, void *user) {}

bool cluster_has(const struct cluster *c, const char *run)
{
	const struct cluster_run *r = c ? strmap_get(&c->by_id, run) : NULL;

	return !c || (!strmap_get(&c->look.by_id, run) && (!r || !r->fresh));
}

static void take_claimed(const struct pg_answer *a, void *user)
{
	((struct cluster *)user)->look_due = true;
}

/* The database went back behind the taking of a run that this machine has: it is taken again,
 * unless the one that had it before writes first. */
static void take_claim(struct cluster *c, const struct take_row *row, const struct cluster_run *run)
{
	struct pg_batch *b = pg_batch_new();

	cluster_add_me(b, c,
		       CLUSTER_ME_SQL
		       " update ava_run set node = $1, epoch = $2, moves = $5 from me"
		       " where run = $4 and moves < $5 and head = $6 and head_hash = $7");
	pg_batch_text(b, run->id);
	pg_batch_int(b, run->moves);
	pg_batch_int(b, row->head);
	pg_batch_bytes(b, row->hash, row->hash_len);
	(void)pg_send(c->pg, b, take_claimed, c, NULL);
}

/* The database has lost what it had of a run, and maybe of heads. */
static void take_again(struct cluster *c, struct cluster_run *r)
{
	c->went_back = c->heads_stale = r->relist = true;
}

/* A run that is at work here, or whose end is on its way. */
static void look_at_work(struct cluster *c, const struct take_row *row, struct cluster_run *run)
{
	if (run->given && !row->mine)
		return; /* give.looked decides */
	if ((!row->mine && row->moves >= run->moves) || !take_still(c, row, run)) {
		if (run->done_ms)
			gate_forget(c, run); /* another machine goes on from fewer lines */
		else
			cluster_fence(c, "a run of this machine is another one's now: starting "
					 "again");
		return;
	}
	if (!row->mine) {
		take_claim(c, row, run);
		return;
	}
	if (row->head < run->at.bytes)
		take_again(c, run);
	gate_set(run, row->head, row->messages);
	run->moves = row->moves;
	run->fresh = false;
	run->done_ms = 0;
	if (row->state == CLUSTER_ENDED && run->log_seen == row->head && list_empty(&run->files))
		run->done_ms = cluster_now_ms();
	else if (run->ended)
		run->relist = true; /* its end is told with the last of its files */
}

/* A run that a stop left here. */
static void look_at_held(struct cluster *c, const struct take_row *row, struct cluster_held *h)
{
	char path[LOGBOOK_PATH];

	logbook_run_path(row->id, path);
	if (row->mine && row->state == CLUSTER_POISON)
		lay_problem(path, "the run is held, since it brought down machines: see CLUSTER.md",
			    c);
	/* Files of what is not ours stay as they are: they are what this machine wrote. */
	if (row->mine && row->state == CLUSTER_LIVE && take_agrees(c, row)) {
		h->known = true;
		take_ours(c, h, row);
	} else if (row->mine && row->state == CLUSTER_LIVE) {
		lay_add(c, row, true);
	}
	strmap_del(&c->look.by_id, h->id);
	if (h->known || (row->mine && row->state == CLUSTER_ENDED)) {
		held_drop(h);
	} else {
		list_del(&h->node);
		list_add(&c->look.away, &h->node);
	}
}

/* A run of others. Its end, where it has one here, may have come when they had it already. */
static void look_at_others(struct cluster *c, const struct take_row *row)
{
	char path[LOGBOOK_PATH];

	logbook_run_path(row->id, path);
	if (!read_run_ended(c->root_fd, row->id) ||
	    (row->state == CLUSTER_ENDED && lay_size(c, path) == row->head && take_agrees(c, row)))
		return;
	lay_aside(c, row->id, NULL);
}

static void look_at(struct cluster *c, const struct take_row *row)
{
	struct cluster_held *h = strmap_get(&c->look.by_id, row->id);
	struct cluster_run *run = strmap_get(&c->by_id, row->id);

	/* A person may free it. */
	c->look.holds = c->look.holds || (row->mine && row->state == CLUSTER_POISON);
	if (h)
		look_at_held(c, row, h);
	else if (run && !run->laying)
		look_at_work(c, row, run);
	else if (!run && row->mine && row->state == CLUSTER_LIVE && !take_unsent(c, row)) {
		/* The machine that had it last may claim it first. */
		if (cluster_now_ms() - c->member_ms < c->lease_ms)
			c->look_due = true;
		else
			lay_add(c, row, false);
	} else if (!run && !row->mine) {
		look_at_others(c, row);
	}
}

/* Runs of a group that is on its way here, whose others have ended or are held. */
static void look_at_group(struct cluster *c, const struct take_row *row)
{
	if (!row->group || !*row->group || row->state == CLUSTER_LIVE)
		return;
	if (lay_has_group(c, row->group))
		lay_add(c, row, false);
}

static void look_over(struct cluster *c, const struct pg_result *r,
		      void (*at)(struct cluster *c, const struct take_row *row))
{
	for (unsigned i = 0; i < pg_rows(r) && c->state == CLUSTER_MEMBER; i++) {
		const struct take_row row = take_row_of(r, i);

		at(c, &row);
	}
}

static void looked(const struct pg_answer *a, void *user)
{
	struct cluster *c = user;
	int64_t tick = 0;

	if (a->rv != 0 || c->state != CLUSTER_MEMBER) {
		if (a->rv != 0 && a->rv != AVA_EUNKNOWN && a->rv != AVA_ECANCELED)
			cluster_say(c, "the runs of this machine could not be asked for: %s",
				    a->err->text);
		return;
	}
	if (pg_int(&a->results[2], 0, 0, &tick))
		c->ticket = MAX(c->ticket, (uint64_t)tick % (1ull << CLUSTER_TICK_BITS) + 1);
	LIST_EACH (&c->runs, n, tmp)
		LIST_ENTRY(n, struct cluster_run, node)->named = false;
	for (unsigned i = 0; i < pg_rows(&a->results[1]); i++) {
		struct cluster_run *r = strmap_get(&c->by_id, pg_text(&a->results[1], i, 0, NULL));

		if (r)
			r->named = true;
	}
	/* Runs that the database does not name it has lost, or never got. */
	LIST_EACH (&c->runs, n, tmp) {
		struct cluster_run *r = LIST_ENTRY(n, struct cluster_run, node);

		if (r->laying || r->fresh || r->named)
			continue;
		if (!r->row) { /* that of a run of which the last lines alone were to be sent */
			cluster_fence(
				c, "the database has lost a run of this machine: starting again");
			return;
		}
		r->fresh = true;
		r->done_ms = 0;
		take_again(c, r);
		gate_set(r, 0, 0);
	}
	LIST_EACH (&c->look.over, n, tmp)
		held_drop(LIST_ENTRY(n, struct cluster_held, node));
	c->look.holds = false;
	look_over(c, &a->results[1], look_at);
	look_over(c, &a->results[1], look_at_group);
	LIST_EACH (&c->look.held, n, tmp) {
		if (c->state == CLUSTER_MEMBER)
			take_ours(c, LIST_ENTRY(n, struct cluster_held, node),
				  &(struct take_row){0});
		strmap_del(&c->look.by_id, LIST_ENTRY(n, struct cluster_held, node)->id);
		held_drop(LIST_ENTRY(n, struct cluster_held, node));
	}
	if (c->state == CLUSTER_MEMBER)
		c->give.looked(c, &a->results[1]);
	if (!c->look.grouped) {
		money_restore(c->sup);
		blocked_restored(c->sup, NULL);
		c->look.grouped = true;
	}
	c->settled = c->state == CLUSTER_MEMBER && !c->went_back;
	lay_next(c);
	gate_wake(c);
	if (c->went_back)
		cluster_tend(c);
}

void take_look(struct cluster *c)
{
	struct pg_batch *b = pg_batch_new();
	const char **ids;
	size_t n = 0, most = 0, at_work;

	c->look_due = false;
	c->look.last_ms = cluster_now_ms();
	LIST_EACH (&c->look.held, node, tmp)
		most++;
	LIST_EACH (&c->look.over, node, tmp)
		most++;
	ids = calloc(most + c->by_id.count + 1, sizeof(*ids));
	LIST_EACH (&c->look.held, node, tmp)
		if (ids)
			ids[n++] = LIST_ENTRY(node, struct cluster_held, node)->id;
	LIST_EACH (&c->runs, node, tmp)
		if (ids)
			ids[n++] = LIST_ENTRY(node, struct cluster_run, node)->id;
	at_work = n;
	LIST_EACH (&c->look.over, node, tmp)
		if (ids)
			ids[n++] = LIST_ENTRY(node, struct cluster_held, node)->id;
	pg_batch_add(b, "update ava_run set epoch = $2 where node = $1 and epoch < $2"
			" and (state < 9 or run = any($3))");
	pg_batch_text(b, c->who.node);
	pg_batch_int(b, c->epoch);
	pg_batch_texts(b, ids, at_work);
	pg_batch_add(b,
		     "select r.run, (r.node = $1)::int::bigint, r.head, r.head_hash,"
		     " r.state::bigint, coalesce((select max(k.head) from ava_chunk k"
		     "  where k.stream = r.run and k.kind = 1), 0), r.moves,"
		     " (select grp from ava_spec s where s.run = r.run)"
		     " from ava_run r where (r.node = $1 and r.state < 9) or r.run = any($2)"
		     " or r.run = any(array(select o.run from ava_run q join ava_spec s using (run)"
		     "  join ava_spec o on o.grp = s.grp and o.grp <> ''"
		     "  where q.node = $1 and q.state < 9))");
	pg_batch_text(b, c->who.node);
	pg_batch_texts(b, ids, n);
	pg_batch_add(b, "select max(tick) from ava_chunk where node = $1 and kind = 0");
	pg_batch_text(b, c->who.node);
	if (!ids || pg_send(c->pg, b, looked, c, NULL) != 0)
		cluster_say(c, "the runs of this machine could not be asked for");
	free(ids);
}

/* `line`: of the catalog, that it began with. */
static void take_tell_held(struct cluster *c, const char *line)
{
	struct catalog_row row;
	char sentence[200];

	if (!line || catalog_parse(line, strlen(line), &row, NULL) != 0)
		return;
	snprintf(sentence, sizeof(sentence),
		 "%.24s was taken %d times and brought down each machine, so it is held: `ava "
		 "move %.24s` runs it here, `ava cancel %.24s` ends it",
		 row.id, CLUSTER_TAKES, row.id, row.id);
	if (c->tell.log)
		c->tell.log(sentence, c->tell.user);
	if (c->tell.held)
		c->tell.held(&row, sentence, c->tell.runs_user);
	catalog_row_fini(&row);
}

static void take_polled(const struct pg_answer *a, void *user)
{
	struct cluster *c = user;

	c->look.polling = false;
	if (a->rv != 0 || c->state != CLUSTER_MEMBER)
		return;
	for (unsigned i = 0; i < pg_rows(&a->results[0]); i++) {
		char line[200];

		snprintf(line, sizeof(line), "machine %s is silent: its lease is ended",
			 pg_text(&a->results[0], i, 1, NULL));
		if (c->tell.log)
			c->tell.log(line, c->tell.user);
	}
	for (unsigned i = 0; i < pg_rows(&a->results[1]); i++)
		take_tell_held(c, pg_text(&a->results[1], i, 0, NULL));
	for (unsigned i = 0; a->n > 4 && i < pg_rows(&a->results[4]); i++)
		cluster_place_wanted(c, pg_text(&a->results[4], i, 0, NULL));
	for (unsigned i = 0; i < pg_rows(&a->results[2]); i++) {
		const struct take_row row = take_row_of(&a->results[2], i);

		lay_add(c, &row, false);
	}
	lay_next(c);
}

/* Folders in which runs of machines that are gone wait for one. */
static void take_add_places(struct pg_batch *b, const struct cluster *c)
{
	const char **places = calloc(c->folders.n, sizeof(*places));

	for (unsigned i = 0; places && i < c->folders.n; i++)
		places[i] = c->folders.all[i].place;
	pg_batch_add(b, "select distinct s.place from ava_run r join ava_spec s using (run)"
			" left join ava_node n on n.node = r.node"
			" where r.state = 0 and r.takes < $1 and r.node <> $2 and s.place = any($3)"
			"  and coalesce(n.lease_until, '-infinity') = '-infinity'"
			"  and " TAKE_FOLDER_SQL);
	pg_batch_int(b, CLUSTER_TAKES);
	pg_batch_text(b, c->who.node);
	pg_batch_texts(b, places, places ? c->folders.n : 0);
	free(places);
}

void take_poll(struct cluster *c, bool fence)
{
	int64_t room = c->sup->settings->runs_max - (int64_t)c->sup->nlive;
	struct pg_batch *b;

	if (c->closing || c->look.polling || !c->settled || !list_empty(&c->takings))
		return;
	b = pg_batch_new();
	cluster_add_me(
		b, c,
		CLUSTER_ME_SQL
		" update ava_node n set epoch = n.epoch + 1, lease_until = '-infinity' from me"
		" where n.lease_until < clock_timestamp() - $4 * interval '1 millisecond'"
		"  and n.lease_until > '-infinity' and n.node <> $1 and $5 > 0"
		" returning n.node, n.name");
	pg_batch_int(b, c->lease_ms / 3);
	pg_batch_int(b, fence);
	cluster_add_me(b, c,
		       CLUSTER_ME_SQL
		       " update ava_run r set state = 8 from me where r.state = 0 and r.takes >= $4"
		       "  and r.node in (select node from ava_node where lease_until = '-infinity')"
		       " returning (select convert_from(s.line, 'UTF8') from ava_spec s"
		       "  where s.run = r.run)");
	pg_batch_int(b, CLUSTER_TAKES);
	cluster_add_me(
		b, c,
		CLUSTER_ME_SQL
		" update ava_run r set node = $1, epoch = $2, moves = moves + 1, takes = takes +"
		"  coalesce((select 1 - n.draining::int from ava_node n where n.node = r.node), 0)"
		" from me"
		" where r.run in (with pick as (select q.run, s.grp from ava_run q"
		"   join ava_spec s using (run) left join ava_node n on n.node = q.node"
		"   where q.state = 0 and q.takes < $4 and q.node <> $1"
		"    and coalesce(n.lease_until, '-infinity') = '-infinity' and (" TAKE_FREE_SQL
		"     or (s.place || ' ' || s.tree = any($7) and " TAKE_FOLDER_SQL "))"
		"   order by q.run limit $5)"
		"  select run from pick union select o.run from ava_spec o join pick using (grp)"
		"   where o.grp <> '')"
		"  and r.node <> $1 and r.node not in (select node from ava_node"
		"   where lease_until > '-infinity') and $6 > 0"
		" returning r.run, 1::bigint, r.head, r.head_hash, r.state::bigint, 0::bigint,"
		"  r.moves, (select grp from ava_spec s where s.run = r.run)");
	pg_batch_int(b, CLUSTER_TAKES);
	pg_batch_int(b, MAX(room, 0));
	pg_batch_int(b, fence);
	pg_batch_texts(b, &c->folders.have, c->folders.have != NULL);
	cluster_add_me(b, c,
		       CLUSTER_ME_SQL "," LEND_SETTLE_SQL(
			       "exists (select 1 from me) and not exists (select 1 from ava_node n"
			       " where n.node = l.node and n.lease_until > '-infinity')"));
	if (fence && c->folders.n > 0)
		take_add_places(b, c);
	c->look.polling = pg_send(c->pg, b, take_polled, c, NULL) == 0;
}

void take_close(struct cluster *c)
{
	strmap_fini(&c->look.by_id);
	list_splice(&c->look.held, &c->look.away);
	list_splice(&c->look.held, &c->look.over);
	LIST_EACH (&c->look.held, n, tmp)
		held_drop(LIST_ENTRY(n, struct cluster_held, node));
}
