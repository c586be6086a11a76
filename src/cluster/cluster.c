/* A member's life: it joins (the database gives it an epoch), renews its lease, ends the leases of
 * machines that are silent, and gives its own back when it stops. All times are the database's but
 * one: how long this machine may still let things count, by its own clock that also runs in
 * suspend, from before the renewal was sent. A machine that lost its lease to another one does not
 * repair anything: it starts itself again, which every crash tests. */
#include "cluster/cluster.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/util.h"
#include "cluster/member.h"
#include "cluster/schema.h"
#include "codec/json.h"

#define SILENT_MS 10000 /* until a batch that nobody answers loses its connection */

/* ---- the file of its identity */

static int identity_read(struct cluster *c, struct ava_error *err)
{
	char *text = NULL;
	size_t len;
	int rv = sys_read_file(c->root_fd, CLUSTER_FILE, 4096, &text, &len, err);
	json_t *o = rv == 0 ? json_parse(text, len, err) : NULL;

	free(text);
	if (rv == AVA_ENOENT) {
		snprintf(c->who.node, sizeof(c->who.node), "%s", id_session().text);
		return 0;
	}
	if (rv == 0 && !o)
		rv = err_wrap(err, AVA_ECORRUPT, "%s", CLUSTER_FILE);
	snprintf(c->who.node, sizeof(c->who.node), "%s", json_str(o, "node"));
	snprintf(c->who.token, sizeof(c->who.token), "%s", json_str(o, "token"));
	snprintf(c->who.id, sizeof(c->who.id), "%s", json_str(o, "cluster"));
	if (rv == 0 && !c->who.node[0])
		rv = err_set(err, AVA_ECORRUPT,
			     "%s names no node: remove it to join as a new machine", CLUSTER_FILE);
	json_decref(o);
	c->who.kept = rv == 0;
	return rv;
}

/* A copy of a data root is another one on its file system, or on another machine. */
static void identity_home(struct cluster *c)
{
	struct stat st = {0};
	char *machine = NULL;
	size_t len = 0;

	(void)sys->fstat(c->root_fd, &st);
	(void)sys_read_file(AT_FDCWD, "/etc/machine-id", 256, &machine, &len, NULL);
	snprintf(c->who.home, sizeof(c->who.home), "%.*s:%llx:%llx",
		 (int)strcspn(machine ? machine : "", "\n"), machine ? machine : "",
		 (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	free(machine);
}

static void identity_kept(int rv, void *user)
{
	struct cluster *c = user;

	c->who.kept = rv == 0;
	if (rv != 0)
		cluster_say(c, "%s could not be written: %s", CLUSTER_FILE, ava_strerror(rv));
	else if (!c->closing)
		gate_wake(c);
}

static void identity_write(struct cluster *c)
{
	struct draft *d = draft_new(c->book);
	struct buf *b = d ? draft_part(d, DRAFT_PUT, CLUSTER_FILE) : NULL;
	struct jw w;

	if (!b) {
		draft_free(d);
		return;
	}
	jw_init(&w, b);
	jw_object(&w, NULL);
	jw_str(&w, "cluster", c->who.id);
	jw_str(&w, "node", c->who.node);
	jw_str(&w, "token", c->who.token);
	jw_end(&w);
	buf_addc(b, '\n');
	(void)draft_commit(d, JOURNAL_NOW, identity_kept, c, NULL);
}

int cluster_check_root(int root_fd, bool url, struct ava_error *err)
{
	struct stat st;

	if (url || sys->fstatat(root_fd, CLUSTER_FILE, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return 0;
	return err_set(
		err, AVA_EINVAL,
		"this data root is a member of a cluster (%s), and AVA_CLUSTER_URL is not set: "
		"others may have its runs. Set it (`ava cluster join`); `ava cluster leave` takes "
		"the root out",
		CLUSTER_FILE);
}

/* ---- the lease */

/* Counts a lease from `sent_ms` on, with room for what is slow on this side. */
static void lease_take(struct cluster *c, int64_t sent_ms)
{
	c->lease_end_ms = sent_ms + c->lease_ms - MIN(2000, c->lease_ms / 4);
	porter_leased(c);
}

struct lease_ask {
	struct cluster *c;
	int64_t sent_ms;
	char token[40];
};

static struct lease_ask *lease_ask_new(struct cluster *c)
{
	struct lease_ask *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->c = c;
	a->sent_ms = cluster_now_ms();
	return a;
}

/* The others may have lost the database as this machine did: they get a lease's time to come back.
 */
static void member_again(struct cluster *c)
{
	c->member_ms = cluster_now_ms();
	inbox_anew(c);
	take_look(c);
	porter_claim(c);
}

/* ---- joining */

/* Tells why this machine is no member, if it is not. */
static bool join_refused(struct cluster *c, const struct pg_answer *a)
{
	const char *id = pg_text(&a->results[0], 0, 0, NULL),
		   *fsync = pg_text(&a->results[0], 0, 2, NULL);
	int64_t schema = 0;

	(void)pg_int(&a->results[0], 0, 1, &schema);
	if (!id || (c->who.id[0] && strcmp(c->who.id, id) != 0))
		cluster_say(c,
			    "the database is of another cluster than %s says: set the old "
			    "AVA_CLUSTER_URL, or remove that file to join as a new machine",
			    CLUSTER_FILE);
	else if (schema != SCHEMA_VERSION)
		cluster_say(c, SCHEMA_OTHER, (long long)schema, SCHEMA_VERSION);
	else if (!fsync || strcmp(fsync, "on") != 0)
		cluster_say(c, SCHEMA_NO_FSYNC);
	else if (pg_rows(&a->results[2]) == 0)
		cluster_say(c,
			    "a machine with the identity of this one is alive: was the data root "
			    "copied? Remove %s in the copy",
			    CLUSTER_FILE);
	else
		return false;
	c->state = CLUSTER_REFUSED;
	return true;
}

static void lease_joined(const struct pg_answer *a, void *user)
{
	struct lease_ask *ask = user;
	struct cluster *c = ask->c;
	int64_t before = c->generation;

	c->beat.under_way = false;
	if (a->rv != 0 && strcmp(a->sqlstate, "42P01") == 0) {
		cluster_say(c, SCHEMA_NO_TABLES);
	} else if (a->rv != 0) {
		if (a->rv != AVA_EUNKNOWN && a->rv != AVA_ECANCELED)
			cluster_say(c, "the cluster could not be joined: %s", a->err->text);
	} else if (c->state != CLUSTER_FENCED && !join_refused(c, a)) {
		(void)pg_int(&a->results[2], 0, 0, &c->epoch);
		(void)pg_int(&a->results[2], 0, 1, &c->generation);
		if (before && before != c->generation) {
			c->porter.not_before_ms = cluster_now_ms() + c->lease_ms;
			folder_again(c);
		}
		snprintf(c->who.id, sizeof(c->who.id), "%s", pg_text(&a->results[0], 0, 0, NULL));
		memcpy(c->who.token, ask->token, sizeof(c->who.token));
		identity_write(c);
		c->state = CLUSTER_MEMBER;
		c->went_back = false;
		c->why[0] = '\0';
		lease_take(c, ask->sent_ms);
		member_again(c);
	}
	free(ask);
}

static void cluster_join(struct cluster *c)
{
	static const char sql[] =
		"insert into ava_node as n (node, epoch, generation, lease_until, token, name,"
		"  version, slots, home, folders)"
		" select $1, 1, generation, clock_timestamp() + $2 * interval '1 millisecond', $3,"
		"  $4, $5, $6, $9, $11 from ava_cluster"
		"  where schema = $10 and current_setting('fsync') = 'on'"
		" on conflict (node) do update set epoch = greatest(n.epoch, $8) + 1,"
		"  generation = excluded.generation, lease_until = excluded.lease_until,"
		"  token = excluded.token, name = excluded.name, version = excluded.version,"
		"  slots = excluded.slots, home = excluded.home, folders = excluded.folders,"
		"  draining = false"
		" where (n.token = $7 and n.home = $9) or n.lease_until < clock_timestamp()"
		" returning epoch, generation";
	struct lease_ask *ask = c->beat.under_way ? NULL : lease_ask_new(c);
	struct pg_batch *b;
	char names[4400];

	c->state = CLUSTER_JOINING;
	c->settled = false;
	porter_anew(c);
	if (!ask)
		return;
	snprintf(ask->token, sizeof(ask->token), "%s", id_session().text);
	b = pg_batch_new();
	pg_batch_add(b, "select id, schema, current_setting('fsync') from ava_cluster");
	pg_batch_add(b, "update ava_cluster set generation = generation + 1"
			" where generation = $1 and $2 > 0");
	pg_batch_int(b, c->generation);
	pg_batch_int(b, c->went_back);
	pg_batch_add(b, sql);
	pg_batch_text(b, c->who.node);
	pg_batch_int(b, c->lease_ms);
	pg_batch_text(b, ask->token);
	pg_batch_text(b, c->who.name);
	pg_batch_text(b, ava_version());
	pg_batch_int(b, c->sup->settings->runs_max);
	pg_batch_text(b, c->who.token);
	pg_batch_int(b, c->epoch);
	pg_batch_text(b, c->who.home);
	pg_batch_int(b, SCHEMA_VERSION);
	folder_names(c, names, sizeof(names));
	pg_batch_text(b, names);
	if (c->epoch == 0) { /* of an earlier process */
		pg_batch_add(b, "with" LEND_SETTLE_SQL("node = $1 and exists (select 1"
						       " from ava_node where token = $2)"));
		pg_batch_text(b, c->who.node);
		pg_batch_text(b, ask->token);
	}
	c->beat.under_way = pg_send(c->pg, b, lease_joined, ask, NULL) == 0;
	if (!c->beat.under_way)
		free(ask);
}

/* ---- renewing */

static void lease_renewed(const struct pg_answer *a, void *user)
{
	struct lease_ask *ask = user;
	struct cluster *c = ask->c;
	bool was = c->state == CLUSTER_MEMBER;
	int64_t epoch = 0;

	c->beat.under_way = false;
	if (a->rv != 0) {
		if (a->rv != AVA_EUNKNOWN && a->rv != AVA_ECANCELED)
			cluster_say(c, "the lease could not be renewed: %s", a->err->text);
	} else if (pg_rows(&a->results[0]) == 0 && pg_int(&a->results[1], 0, 0, &epoch) &&
		   epoch > c->epoch) {
		cluster_fence(c,
			      "another machine ended the lease of this one, and may have its runs: "
			      "starting again");
	} else if (pg_rows(&a->results[0]) == 0) {
		cluster_join(c); /* of the database's new generation */
	} else if (c->state != CLUSTER_FENCED) {
		c->state = CLUSTER_MEMBER;
		lease_take(c, ask->sent_ms);
		c->why[0] = '\0';
		if (was && c->settled && !c->leaving)
			give_wishes(c, &a->results[2]);
		/* Runs were given to this machine, maybe long after that was wanted. */
		if (pg_rows(&a->results[3]) > 0 && list_empty(&c->takings))
			c->look_due = true;
		if (!was)
			member_again(c);
		else if (c->look_due)
			cluster_tend(c);
		gate_wake(c);
	}
	free(ask);
}

static void cluster_renew(struct cluster *c)
{
	static const char sql[] =
		"update ava_node set lease_until = clock_timestamp() + $4 * "
		"interval '1 millisecond', draining = draining and $5 > 0"
		" where node = $1 and epoch = $2 and generation = $3"
		" and generation = (select generation from ava_cluster) returning 1";
	struct lease_ask *ask = c->beat.under_way ? NULL : lease_ask_new(c);
	const char **ids = calloc(c->by_id.count + 1, sizeof(*ids));
	struct pg_batch *b;
	size_t n = 0;

	c->beat.renew_due = false;
	if (!ask || !ids) {
		free(ask);
		free(ids);
		return;
	}
	LIST_EACH (&c->runs, node, tmp)
		if (!LIST_ENTRY(node, struct cluster_run, node)->done_ms)
			ids[n++] = LIST_ENTRY(node, struct cluster_run, node)->id;
	b = pg_batch_new();
	cluster_add_me(b, c, sql);
	pg_batch_int(b, c->lease_ms);
	/* A leave that came to nothing may have set it, where its answer was lost. */
	pg_batch_int(b, c->leaving != NULL);
	pg_batch_add(b, "select epoch from ava_node where node = $1");
	pg_batch_text(b, c->who.node);
	pg_batch_add(b, "select w.run, w.node,"
			" coalesce((n.lease_until > clock_timestamp())::int::bigint, 0),"
			" w.without_copy::int::bigint from ava_wish w join ava_run r using (run)"
			" left join ava_node n on n.node = w.node"
			" where r.node = $1 and r.state < 9 and w.why = ''");
	pg_batch_text(b, c->who.node);
	pg_batch_add(b, "select 1 from ava_run where node = $1 and state = 0"
			" and not (run = any($2)) limit 1");
	pg_batch_text(b, c->who.node);
	pg_batch_texts(b, ids, n);
	free(ids);
	c->beat.under_way = pg_send(c->pg, b, lease_renewed, ask, NULL) == 0;
	if (!c->beat.under_way)
		free(ask);
}

/* ---- the connection */

/* A server that took over may lack the newest commits, the end of a lease among them: a new
 * generation makes all machines join again. Databases that only speak PostgreSQL's wire have no
 * timeline; with them heads alone show it. */
static void timeline_came(const struct pg_answer *a, void *user)
{
	struct cluster *c = user;
	const char *now = a->rv == 0 ? pg_text(&a->results[0], 0, 0, NULL) : NULL;

	if (a->rv == AVA_EUNKNOWN || a->rv == AVA_ECANCELED || c->closing ||
	    c->state == CLUSTER_FENCED)
		return;
	if (now && c->who.timeline[0] && strcmp(now, c->who.timeline) != 0)
		c->went_back = true;
	if (now)
		snprintf(c->who.timeline, sizeof(c->who.timeline), "%s", now);
	if (c->epoch == 0 || c->went_back)
		cluster_join(c);
	else
		cluster_renew(c);
}

static void cluster_up(void *user)
{
	struct cluster *c = user;
	struct pg_batch *b;

	if (c->state == CLUSTER_FENCED || c->closing)
		return;
	if (!pg_is_private(c->pg)) {
		cluster_say(c, SCHEMA_NOT_PRIVATE);
		c->state = CLUSTER_REFUSED;
		return;
	}
	c->state = CLUSTER_JOINING;
	b = pg_batch_new();
	pg_batch_add(
		b, "select system_identifier::text || '.' ||"
		   " substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) from pg_control_system()");
	(void)pg_send(c->pg, b, timeline_came, c, NULL);
}

static void cluster_tended(struct os_task *t)
{
	struct cluster *c = CONTAINER_OF(t, struct cluster, tend);

	if (!pg_is_up(c->pg) || c->closing || c->state != CLUSTER_MEMBER)
		return;
	if (c->went_back)
		cluster_join(c);
	else if (c->beat.renew_due)
		cluster_renew(c);
	/* A look that changed nothing is not repeated at once. */
	if (c->look_due && cluster_now_ms() - c->look.last_ms >= 500)
		take_look(c);
}

static void cluster_down(const struct ava_error *why, void *user)
{
	struct cluster *c = user;

	if (c->state == CLUSTER_FENCED || c->closing)
		return;
	c->state = CLUSTER_AWAY;
	c->settled = c->look.polling = false;
	cluster_say(c, "the database of the cluster is not there, runs wait for it: %s", why->text);
}

static void cluster_beat(void *user)
{
	struct cluster *c = user;

	os_timer_set(c->beat.timer, c->lease_ms / 3);
	if (!pg_is_up(c->pg) || c->state == CLUSTER_FENCED || c->closing)
		return;
	if (!pg_is_private(c->pg))
		return;
	if (c->epoch == 0 || c->state == CLUSTER_REFUSED || c->went_back)
		cluster_join(c);
	else
		cluster_renew(c);
	if (!c->who.kept && c->state == CLUSTER_MEMBER)
		identity_write(c);
	c->look_due = c->look_due || c->look.holds;
	LIST_EACH (&c->runs, n, tmp)
		LIST_ENTRY(n, struct cluster_run, node)->unreadable = false;
	gate_prune(c);
	folder_beat(c);
	if (cluster_has_lease(c) && !c->leaving) {
		take_poll(c, cluster_now_ms() - c->member_ms >= c->lease_ms);
		porter_claim(c);
		gate_wake(c);
	}
	lend_beat(c);
}

/* ---- life */

int cluster_open(struct cluster **out, const struct cluster_options *o, struct ava_error *err)
{
	struct cluster *c = calloc(1, sizeof(*c));
	struct pg_options pg = {.url = o->url,
				.name = "ava",
				.timeout_ms = SILENT_MS,
				.up = cluster_up,
				.down = cluster_down};
	int rv;

	if (!c)
		return err_set(err, AVA_ENOMEM, "out of memory");
	c->loop = o->loop;
	c->sup = o->sup;
	c->book = o->sup->book;
	c->root_fd = c->book->root_fd;
	c->lease_ms = o->lease_ms;
	c->tell.log = o->log;
	c->tell.fenced = o->fenced;
	c->tell.user = o->user;
	c->tell.held = o->held;
	c->tell.came = o->came;
	c->tell.gone = o->gone;
	c->tell.runs_user = o->runs_user;
	list_init(&c->look.held);
	strmap_init(&c->look.by_id);
	list_init(&c->look.away);
	list_init(&c->look.over);
	list_init(&c->takings);
	list_init(&c->give.runs);
	list_init(&c->move.wanted);
	os_task_init(&c->tend, cluster_tended);
	lend_open(c);
	rv = gate_open(c);
	if (rv == 0)
		rv = inbox_new(c);
	if (rv == 0 && !porter_open(c))
		rv = AVA_ENOMEM;
	c->sup->shared = true;
	if (o->name && *o->name)
		snprintf(c->who.name, sizeof(c->who.name), "%s", o->name);
	else if (gethostname(c->who.name, sizeof(c->who.name) - 1) != 0)
		c->who.name[0] = '?';
	pg.user = c;
	identity_home(c);
	c->beat.timer = os_timer_new(c->loop, cluster_beat, c);
	if (rv != 0 || !folder_open(c, o->folders) || !give_open(c) || !move_open(c) ||
	    !c->beat.timer)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	if (rv == 0)
		rv = identity_read(c, err);
	if (rv == 0)
		rv = pg_open(&c->pg, c->loop, &pg, err);
	if (rv != 0) {
		cluster_close(c);
		return rv;
	}
	os_timer_set(c->beat.timer, c->lease_ms / 3);
	*out = c;
	return 0;
}

int cluster_hold(struct cluster *c, const struct catalog_row *row)
{
	int rv = held_add(&c->look.held, row);
	struct cluster_held *h = LIST_ENTRY(c->look.held.prev, struct cluster_held, node);

	return rv == 0 ? strmap_put(&c->look.by_id, h->id, h) : rv;
}

int cluster_ended(struct cluster *c, const struct catalog_row *row)
{
	return held_add(&c->look.over, row);
}

bool cluster_opening(const struct cluster *c)
{
	return c && c->epoch == 0 && !c->why[0] &&
	       (c->state == CLUSTER_AWAY || c->state == CLUSTER_JOINING);
}

const char *cluster_node(const struct cluster *c)
{
	return c->who.node;
}

bool cluster_waits(const struct cluster *c)
{
	return c && c->state == CLUSTER_MEMBER && !c->closing &&
	       (c->flush || c->later.due || !list_empty(&c->gated));
}

static void lease_given(const struct pg_answer *a, void *user)
{
	((struct cluster *)user)->beat.under_way = false;
}

void cluster_quiesce(struct cluster *c)
{
	static const char sql[] = "update ava_node set lease_until = '-infinity', draining = true"
				  " where node = $1 and epoch = $2 and generation = $3";
	int64_t end = cluster_now_ms() + 2000;
	struct lend_told told;
	struct pg_batch *b;

	if (!c)
		return;
	/* The last lines of runs that were stopped are on their way to the disk. */
	while ((!supervisor_written(c->sup) || cluster_waits(c)) && cluster_now_ms() < end) {
		(void)journal_sync(c->book->journal);
		gate_wake(c);
		os_loop_step(c->loop, 0); /* a step with a task in it does not wait */
		os_loop_step(c->loop, 20);
	}
	c->closing = true;
	inbox_give_up(c);
	gate_give_up(c);
	if (c->state != CLUSTER_MEMBER)
		return;
	if (leave_finish(c))
		return;
	b = pg_batch_new();
	LIST_EACH (&c->sup->live, n, tmp) /* their calls have cost what they will */
		money_settle(LIST_ENTRY(n, struct run, node));
	lend_add_used(b, c, &told);
	cluster_add_me(b, c, sql);
	c->beat.under_way = pg_send(c->pg, b, lease_given, c, NULL) == 0;
	while (c->beat.under_way && cluster_now_ms() < end)
		os_loop_step(c->loop, 20);
}

void cluster_close(struct cluster *c)
{
	if (!c)
		return;
	c->closing = true;
	while (c->flush && c->flush_reads)
		os_loop_step(c->loop, 20);
	os_defer_cancel(c->loop, &c->tend);
	pg_close(c->pg);
	os_timer_free(c->beat.timer);
	porter_close(c);
	leave_close(c);
	lend_close(c);
	move_close(c);
	give_close(c);
	folder_close(c);
	take_close(c);
	lay_close(c);
	inbox_free(c);
	gate_close(c);
	free(c);
}

void cluster_write(const struct cluster *c, struct jw *w)
{
	static const char *const states[] = {"away", "joining", "member", "refused", "fenced"};
	unsigned lacking;
	int64_t bytes = cluster_lag(c, &lacking), runs = 0;

	LIST_EACH (&c->runs, n, tmp)
		runs += !LIST_ENTRY(n, struct cluster_run, node)->done_ms;
	jw_str(w, "id", c->who.id);
	jw_str(w, "node", c->who.node);
	jw_str(w, "name", c->who.name);
	jw_str(w, "state", c->leaving ? "leaving" : states[c->state]);
	jw_str(w, "problem", c->why);
	jw_int(w, "epoch", c->epoch);
	jw_int(w, "generation", c->generation);
	jw_fixed(w, "lease_seconds", cluster_has_lease(c) ? c->lease_end_ms - cluster_now_ms() : 0,
		 3);
	jw_int(w, "runs", runs);
	jw_int(w, "runs_taken", (int64_t)c->count.taken);
	jw_int(w, "waiting_runs", lacking);
	jw_int(w, "waiting_bytes", bytes);
	jw_int(w, "flushes", (int64_t)c->count.flushes);
	jw_fixed(w, "flush_seconds", c->count.flush_us / 1000, 3);
	jw_int(w, "sent_bytes", (int64_t)c->count.sent_bytes);
	folder_write(c, w);
}
