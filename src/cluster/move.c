/* A run comes to another machine because a person wants it. Whoever wants it looks at the run's row
 * again and again until the run is at work here or cannot come: a run whose machine is gone, or
 * that is held, it takes by itself; of a machine that is alive it asks with a row of ava_wish,
 * which that one sees with its beat. That one stops the run as a stop of the daemon would, sends
 * what it wrote, puts the changes of its copy of the project among its files, and gives the row
 * away in one statement. So a run is always of one machine, the one that its row names, and goes on
 * there after a crash of either: here, a run that was asked for and not given goes on from its
 * files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/id.h"
#include "base/util.h"
#include "cluster/cluster.h"
#include "cluster/member.h"
#include "codec/json.h"
#include "subagent/spec.h"

#define MOVE_LOOK_MS 50
#define MOVE_ASK_MS  500
#define MOVE_MS      20000 /* until a caller is told what the run waits for */

/* A run that is wanted here. */
struct moving {
	struct list node;
	struct cluster *c;
	cluster_move_fn done; /* NULL: nobody waits for the answer any more */
	void *user;
	struct cluster_move how;
	bool asking; /* an answer of the database is on the way */
	int64_t asked_ms, until_ms;
	char waits[160];  /* what it waits for */
	char machine[65]; /* of its newest row */
	bool own;         /* it is a run of this machine */
	int64_t moves, epoch;
	char run[24];
};

static void moving_free(struct moving *m)
{
	list_del(&m->node);
	free(m);
}

static void moving_end(struct moving *m, const struct ava_error *err)
{
	if (m->done)
		m->done(err ? err->code : 0, err, m->user);
	moving_free(m);
}

/* ---- taking what nobody has at work */

static void moving_claimed(const struct pg_answer *a, void *user)
{
	struct moving *m = user;
	struct cluster *c = m->c;
	struct take_row row;

	m->asking = false;
	if (a->rv != 0 || pg_rows(&a->results[0]) == 0 || c->closing)
		return; /* the next look tells why */
	row = take_row_of(&a->results[0], 0);
	lay_add(c, &row, m->own);
	lay_next(c);
}

static void moving_claim(struct moving *m)
{
	static const char sql[] = CLUSTER_ME_SQL
		", gone as (delete from ava_wish using me where run = $4)"
		" update ava_run r set node = $1, epoch = $2, takes = 0, state = 0,"
		"  moves = moves + (r.node <> $1)::int from me"
		" where r.run = $4 and r.moves = $5 and r.epoch = $6 and (r.state = 8 or"
		"  (r.state = 0 and not exists (select 1 from ava_node n where n.node = r.node"
		"    and n.lease_until > '-infinity')))"
		" returning r.run, 1::bigint, r.head, r.head_hash, r.state::bigint, 0::bigint,"
		"  r.moves, ''";
	struct pg_batch *b = pg_batch_new();

	cluster_add_me(b, m->c, sql);
	pg_batch_text(b, m->run);
	pg_batch_int(b, m->moves);
	pg_batch_int(b, m->epoch);
	m->asking = pg_send(m->c->pg, b, moving_claimed, m, NULL) == 0;
}

static void moving_wished(const struct pg_answer *a, void *user)
{
	((struct moving *)user)->asking = false;
}

static void moving_wish(struct moving *m)
{
	struct pg_batch *b = pg_batch_new();

	cluster_add_me(
		b, m->c,
		CLUSTER_ME_SQL
		" insert into ava_wish (run, node, without_copy) select $4, $1, $5 > 0 from me"
		" on conflict (run) do update set node = excluded.node,"
		"  without_copy = excluded.without_copy, why = ''");
	pg_batch_text(b, m->run);
	pg_batch_int(b, m->how.without_copy);
	m->asking = pg_send(m->c->pg, b, moving_wished, m, NULL) == 0;
}

/* The machine that has the run gave a reason: it is told once. */
static void moving_unwish(struct cluster *c, const char *run)
{
	struct pg_batch *b = pg_batch_new();

	pg_batch_add(b, "delete from ava_wish where run = $1 and node = $2");
	pg_batch_text(b, run);
	pg_batch_text(b, c->who.node);
	(void)pg_send(c->pg, b, take_forgotten, NULL, NULL);
}

/* May a run with that beginning go on here? `there`: its machine is alive, and packs its copy. */
static int moving_check(const struct moving *m, const char *line, const char *messages, bool there,
			struct ava_error *err)
{
	struct catalog_row row = {0};
	json_t *spec = NULL;
	const json_t *grant;
	const char *cwd;
	struct stat st;
	bool rw = false;
	size_t i;
	int rv = catalog_parse(line, strlen(line), &row, err);

	if (rv == 0)
		rv = spec_first_line(messages, strlen(messages), &spec, err);
	cwd = json_str(spec, "cwd");
	json_array_foreach(json_object_get(spec, "grants"), i, grant) rw =
		rw || (json_is_string(grant) && strcmp(json_string_value(grant), "rw") == 0);
	if (rv == 0 && row.group_id[0] && !m->own)
		rv = err_set(err, AVA_EUNSUPPORTED,
			     "run %s is one of group %s on machine %s: the runs of a group go on "
			     "elsewhere together, and by themselves",
			     m->run, row.group_id, m->machine);
	else if (rv == 0 && cwd[0] && (stat(cwd, &st) != 0 || !S_ISDIR(st.st_mode)))
		rv = err_set(err, AVA_ENOENT,
			     "run %s works in %.300s, and there is no such folder here: make it, "
			     "with the same files, and move the run again",
			     m->run, cwd);
	else if (rv == 0 && cwd[0] && rw && !there && !m->own && !m->how.without_copy)
		rv = err_set(
			err, AVA_EUNSUPPORTED,
			"what run %s has changed is in its copy of the project, on machine %s, "
			"which is gone: `ava move %s --without-copy` goes on without it",
			m->run, m->machine, m->run);
	json_decref(spec);
	catalog_row_fini(&row);
	return rv;
}

/* ---- looking */

enum { MINE, STATE, MACHINE, ALIVE, GONE, MOVES, EPOCH, LINE, MESSAGES, WHY };

/* The run as its row has it: ends the moving, or does the next step. */
static void moving_came(const struct pg_answer *a, void *user)
{
	struct moving *m = user;
	const struct pg_result *r = a->results;
	int64_t mine = 0, state = 0, alive = 0, gone = 0;
	struct ava_error err = {0};
	const char *machine, *line, *messages, *why;

	m->asking = false;
	if (a->rv != 0 || m->c->closing)
		return; /* asked again */
	if (pg_rows(r) == 0) {
		err_set(&err, AVA_ENOENT, "there is no run %s (ava ps -a lists them)", m->run);
		moving_end(m, &err);
		return;
	}
	(void)pg_int(r, 0, MINE, &mine);
	(void)pg_int(r, 0, STATE, &state);
	(void)pg_int(r, 0, ALIVE, &alive);
	(void)pg_int(r, 0, GONE, &gone);
	(void)pg_int(r, 0, MOVES, &m->moves);
	(void)pg_int(r, 0, EPOCH, &m->epoch);
	machine = pg_text(r, 0, MACHINE, NULL);
	line = pg_text(r, 0, LINE, NULL);
	messages = pg_text(r, 0, MESSAGES, NULL);
	why = pg_text(r, 0, WHY, NULL);
	snprintf(m->machine, sizeof(m->machine), "%s", machine ? machine : "");
	m->own = mine != 0;
	if (state == CLUSTER_ENDED) {
		err_set(&err, AVA_EEXIST, "run %s has ended", m->run);
		moving_unwish(m->c, m->run);
	} else if (mine && state == CLUSTER_LIVE) {
		m->c->look_due = true; /* it was given to this machine, or is on its way here */
		cluster_tend(m->c);
		snprintf(m->waits, sizeof(m->waits), "it is on its way here");
	} else if (why && why[0]) {
		err_set(&err, AVA_EUNSUPPORTED, "%s", why);
		moving_unwish(m->c, m->run);
	} else if (m->how.ends && alive && state == CLUSTER_LIVE) {
		err_set(&err, AVA_EUNSUPPORTED,
			"run %s is one of machine %s: this is done there only", m->run, m->machine);
	} else if (!m->how.ends && line && messages &&
		   moving_check(m, line, messages, alive && state == CLUSTER_LIVE, &err) != 0) {
		moving_unwish(m->c, m->run);
	} else if (gone || state == CLUSTER_POISON) {
		moving_claim(m);
	} else if (alive) {
		snprintf(m->waits, sizeof(m->waits), "machine %s has to let it go", m->machine);
		moving_wish(m);
	} else {
		snprintf(m->waits, sizeof(m->waits),
			 "machine %s is silent, and its lease has to end", m->machine);
	}
	if (err.code != 0)
		moving_end(m, &err);
}

static void moving_ask(struct moving *m)
{
	static const char sql[] =
		"select (r.node = $2)::int::bigint, r.state::bigint, coalesce(n.name, 'gone'),"
		" coalesce((n.lease_until > clock_timestamp())::int::bigint, 0),"
		" coalesce((n.lease_until = '-infinity')::int::bigint, 1), r.moves, r.epoch,"
		" (select convert_from(s.line, 'UTF8') from ava_spec s where s.run = r.run),"
		" (select convert_from(k.body, 'UTF8') from ava_chunk k where k.stream = r.run"
		"   and k.kind = 1 order by k.head limit 1),"
		" (select w.why from ava_wish w where w.run = r.run and w.node = $2)"
		" from ava_run r left join ava_node n using (node) where r.run = $1";
	struct pg_batch *b = pg_batch_new();

	m->asked_ms = cluster_now_ms();
	pg_batch_add(b, sql);
	pg_batch_text(b, m->run);
	pg_batch_text(b, m->c->who.node);
	m->asking = pg_send(m->c->pg, b, moving_came, m, NULL) == 0;
}

static void moving_look(struct moving *m)
{
	const struct run *run = supervisor_find(m->c->sup, m->run);
	int64_t now = cluster_now_ms();
	struct ava_error err = {0};

	if (m->asking)
		return;
	if (run && !run->end.abandoned) {
		moving_unwish(m->c, m->run);
		moving_end(m, NULL);
	} else if (now >= m->until_ms) {
		err_set(&err, AVA_ETIMEOUT, "run %s is not here yet: %s", m->run,
			cluster_has_lease(m->c) ? m->waits : m->c->why);
		moving_end(m, &err);
	} else if (now - m->asked_ms >= MOVE_ASK_MS && m->c->settled && cluster_has_lease(m->c)) {
		moving_ask(m);
	}
}

int cluster_move(struct cluster *c, const char *run, struct cluster_move how, cluster_move_fn done,
		 void *user, struct ava_error *err)
{
	struct moving *m;
	int rv = cluster_ready(c, err);

	if (rv != 0)
		return rv;
	if (!c || !id_is_run(run) || strlen(run) >= sizeof(m->run))
		return err_set(err, AVA_ENOENT, "there is no run %.40s on another machine", run);
	m = calloc(1, sizeof(*m));
	if (!m)
		return err_set(err, AVA_ENOMEM, "out of memory");
	m->c = c;
	m->done = done;
	m->user = user;
	m->how = how;
	m->until_ms = cluster_now_ms() + MOVE_MS;
	snprintf(m->run, sizeof(m->run), "%s", run);
	snprintf(m->waits, sizeof(m->waits), "the database has not answered yet");
	list_add(&c->move.wanted, &m->node);
	os_timer_set(c->move.timer, 0);
	return 0;
}

void cluster_move_drop(struct cluster *c, const void *user)
{
	LIST_EACH (&c->move.wanted, n, tmp)
		if (LIST_ENTRY(n, struct moving, node)->user == user)
			LIST_ENTRY(n, struct moving, node)->done = NULL;
}

/* A run that comes to be ended must do nothing first. */
static void move_taken(struct cluster *c, const char *run)
{
	LIST_EACH (&c->move.wanted, n, tmp) {
		struct moving *m = LIST_ENTRY(n, struct moving, node);

		if (m->done && strcmp(m->run, run) == 0)
			m->done(0, NULL, m->user);
		if (strcmp(m->run, run) == 0)
			m->done = NULL; /* the next look ends it */
	}
}

static void move_look(void *user)
{
	struct cluster *c = user;

	LIST_EACH (&c->move.wanted, n, tmp)
		moving_look(LIST_ENTRY(n, struct moving, node));
	if (!list_empty(&c->move.wanted))
		os_timer_set(c->move.timer, MOVE_LOOK_MS);
}

/* ---- life */

bool move_open(struct cluster *c)
{
	c->move.taken = move_taken;
	c->move.timer = os_timer_new(c->loop, move_look, c);
	return c->move.timer != NULL;
}

void move_close(struct cluster *c)
{
	struct ava_error err = {0};

	err_set(&err, AVA_ECANCELED, "the daemon stops");
	LIST_EACH (&c->move.wanted, n, tmp)
		moving_end(LIST_ENTRY(n, struct moving, node), &err);
	os_timer_free(c->move.timer);
}
