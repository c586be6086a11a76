/* Pruning reaches the database: what it has of ended runs whose files are gone from this machine
 * goes, too, and of old runs whose machine has left the cluster. A pruning that the database did
 * not hear of is made up for by the next one, since the files are asked and not a list.
 *
 * The narrow row in ava_run stays, since a machine that had the run before takes one without a row
 * for a run that the database never got; so does the newest chunk of each machine, since its
 * number is the one that the machine counts on from. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "base/util.h"
#include "cluster/cluster.h"
#include "cluster/member.h"

#define CLEAR_ONCE 20 /* runs a round trip: commits wait behind it */

struct clearing {
	struct cluster *c;
	int64_t older_s;
	char after[64]; /* runs are looked at by the time of their rows */
};

static void clearing_ask(struct clearing *k);

static void clearing_cleared(const struct pg_answer *a, void *user)
{
	struct clearing *k = user;

	if (a->rv == 0 && k->after[0])
		clearing_ask(k);
	else
		free(k);
}

/* Has this machine removed the files of a run that ended here? One that is still compared with the
 * database would be sent again. */
static bool clearing_pruned(const struct clearing *k, const char *run)
{
	char path[LOGBOOK_PATH];
	struct stat st;

	logbook_run_path(run, path);
	return !strmap_get(&k->c->by_id, run) &&
	       sys->fstatat(k->c->root_fd, path, &st, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

/* Rows of run, whether it is of this machine, time. */
static void clearing_asked(const struct pg_answer *a, void *user)
{
	static const char sql[] = CLUSTER_ME_SQL
		", gone as (select r.run from ava_run r, me where r.run = any($4) and r.state = 9"
		"  and (r.node = $1 or not exists (select 1 from ava_node n where n.node = "
		"r.node))),"
		" specs as (delete from ava_spec s using gone where s.run = gone.run),"
		" files as (delete from ava_file f using gone where f.run = gone.run)"
		" delete from ava_chunk k using gone where k.stream = gone.run and not (k.kind = 0"
		"  and k.tick = (select max(q.tick) from ava_chunk q where q.node = k.node"
		"   and q.kind = 0))";
	const struct pg_result *r = a->results;
	struct clearing *k = user;
	const char *ids[CLEAR_ONCE];
	struct pg_batch *b;
	size_t n = 0;

	if (a->rv != 0 || k->c->closing) {
		free(k);
		return;
	}
	for (unsigned i = 0; i < pg_rows(r) && i < CLEAR_ONCE; i++) {
		const char *run = pg_text(r, i, 0, NULL);
		int64_t ours = 0;

		(void)pg_int(r, i, 1, &ours);
		if (!ours || clearing_pruned(k, run))
			ids[n++] = run;
	}
	snprintf(k->after, sizeof(k->after), "%s",
		 pg_rows(r) == CLEAR_ONCE ? pg_text(r, CLEAR_ONCE - 1, 2, NULL) : "");
	b = pg_batch_new();
	cluster_add_me(b, k->c, sql);
	pg_batch_texts(b, ids, n);
	if (pg_send(k->c->pg, b, clearing_cleared, k, NULL) != 0)
		free(k);
}

static void clearing_ask(struct clearing *k)
{
	struct pg_batch *b = pg_batch_new();

	pg_batch_add(b, "select s.run, (r.node = $1)::int::bigint, s.created::text"
			" from ava_spec s join ava_run r on r.run = s.run"
			" where r.state = 9 and s.created > $3::timestamptz"
			" and s.created < now() - make_interval(secs => $2::bigint)"
			" and (r.node = $1"
			"  or not exists (select 1 from ava_node n where n.node = r.node))"
			" and not exists (select 1 from ava_spec g join ava_run q on q.run = g.run"
			"  where g.grp = s.grp and g.grp <> '' and q.state < 9)"
			" order by s.created limit $4");
	pg_batch_text(b, k->c->who.node);
	pg_batch_int(b, k->older_s);
	pg_batch_text(b, k->after);
	pg_batch_int(b, CLEAR_ONCE);
	if (pg_send(k->c->pg, b, clearing_asked, k, NULL) != 0)
		free(k);
}

void cluster_prune(struct cluster *c, int64_t older_s)
{
	struct clearing *k = c && c->state == CLUSTER_MEMBER ? calloc(1, sizeof(*k)) : NULL;

	if (!k)
		return;
	k->c = c;
	k->older_s = older_s;
	snprintf(k->after, sizeof(k->after), "-infinity");
	clearing_ask(k);
}
