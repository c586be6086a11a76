/* Doors that one machine serves for all, such as the one of a messenger, whose service lets one
 * program listen. A row says who does. It is claimed with the beat, where its machine's lease was
 * ended or given back, so that whoever is silent has stopped by its own clock before; and it holds
 * as long as the lease here, which a timer watches. After a failover that row may be an old one:
 * with a new generation a lease's time passes before anything is claimed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cluster/cluster.h"
#include "cluster/member.h"

bool cluster_door_open(const struct cluster *c, const struct cluster_door *d)
{
	return !c || (d->ours && cluster_now_ms() < c->lease_end_ms && !c->leaving && !c->closing &&
		      c->state != CLUSTER_FENCED);
}

void porter_look(struct cluster *c)
{
	LIST_EACH (&c->porter.doors, n, tmp) {
		struct cluster_door *d = LIST_ENTRY(n, struct cluster_door, node);
		bool open = cluster_door_open(c, d);

		if (open != d->told)
			d->changed(d);
		d->told = open;
	}
}

static void porter_late(void *user)
{
	porter_look(user);
}

void porter_leased(struct cluster *c)
{
	os_timer_set(c->porter.end, MAX(c->lease_end_ms - cluster_now_ms(), INT64_C(0)) + 1);
	porter_look(c);
}

void porter_anew(struct cluster *c)
{
	LIST_EACH (&c->porter.doors, n, tmp)
		LIST_ENTRY(n, struct cluster_door, node)->ours = false;
	porter_look(c);
}

/* One row of each second statement: name, ours, machine, what its machine gave. */
static void porter_came(const struct pg_answer *a, void *user)
{
	struct cluster *c = user;

	c->porter.asking = false;
	LIST_EACH (&c->porter.doors, n, tmp) {
		struct cluster_door *d = LIST_ENTRY(n, struct cluster_door, node);

		for (unsigned i = 1; i < a->n; i += 2) {
			const struct pg_result *r = &a->results[i];
			int64_t ours = 0;

			if (pg_rows(r) == 0 || strcmp(d->name, pg_text(r, 0, 0, NULL)) != 0)
				continue;
			(void)pg_int(r, 0, 1, &ours);
			snprintf(d->machine, sizeof(d->machine), "%s", pg_text(r, 0, 2, NULL));
			if (!d->ours)
				d->adopt(d, pg_text(r, 0, 3, NULL));
			d->ours = ours != 0;
		}
	}
	porter_look(c);
}

void porter_claim(struct cluster *c)
{
	static const char sql[] = CLUSTER_ME_SQL
		" insert into ava_door as d (name, node, epoch, given)"
		" select $4, $1, $2, $5 from me"
		" on conflict (name) do update set node = excluded.node, epoch = excluded.epoch,"
		"  given = case when d.node = $1 then excluded.given else d.given end"
		" where (d.node = $1 and (d.epoch <> $2 or d.given <> excluded.given))"
		"  or (d.node <> $1 and not exists (select 1 from ava_node n where n.node = d.node"
		"   and n.epoch = d.epoch and n.lease_until > '-infinity' and not n.draining))";
	struct pg_batch *b;

	if (list_empty(&c->porter.doors) || c->porter.asking || !cluster_has_lease(c) ||
	    c->leaving || cluster_now_ms() < c->porter.not_before_ms)
		return;
	b = pg_batch_new();
	LIST_EACH (&c->porter.doors, n, tmp) {
		struct cluster_door *d = LIST_ENTRY(n, struct cluster_door, node);
		struct buf given;

		buf_init(&given, CLUSTER_DOOR_GIVES);
		d->give(d, &given);
		cluster_add_me(b, c, sql);
		pg_batch_text(b, d->name);
		pg_batch_text(b, buf_check(&given) == 0 && given.data ? given.data : "");
		pg_batch_add(b,
			     "select d.name, (d.node = $2 and d.epoch = $3)::int::bigint,"
			     " coalesce(n.name, ''), d.given from ava_door d left join ava_node n"
			     " using (node) where d.name = $1");
		pg_batch_text(b, d->name);
		pg_batch_text(b, c->who.node);
		pg_batch_int(b, c->epoch);
		buf_fini(&given);
	}
	c->porter.asking = pg_send(c->pg, b, porter_came, c, NULL) == 0;
}

void cluster_door_want(struct cluster *c, struct cluster_door *d)
{
	if (!c)
		return;
	list_del(&d->node);
	list_add(&c->porter.doors, &d->node);
	porter_claim(c);
}

void cluster_door_drop(struct cluster_door *d)
{
	list_del(&d->node);
}

bool porter_open(struct cluster *c)
{
	list_init(&c->porter.doors);
	c->porter.end = os_timer_new(c->loop, porter_late, c);
	return c->porter.end != NULL;
}

void porter_close(struct cluster *c)
{
	os_timer_free(c->porter.end);
}
