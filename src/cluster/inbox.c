/* Verbs that travel, and Asks that all machines list; inbox.h.
 *
 * Happy path: who sends a verb puts a row into ava_inbox, where another machine has the run. Each
 * machine looks at the rows without an answer four times a second, in one statement that locks
 * nothing; it does those of its own and writes the answers into the rows, where their senders find
 * them. The run's row says whose a verb is, at each look: after the death of its machine it is the
 * taker's, which does it again if the first one died between doing and answering.
 *
 * A request id that may begin something belongs to the machine that was asked with it first, in the
 * statement that would put a row for another one.
 *
 * What can fail: the connection, after which a row or an answer is sent again (both change nothing
 * the second time); the owner is silent, so that the sender tells its caller and leaves the row for
 * whoever comes. */
#include "cluster/inbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/util.h"
#include "cluster/cluster.h"
#include "cluster/member.h"

#define LIST_MS     1000 /* a list of Asks waits so long */
#define LIST_BYTES  (16 << 20)
#define SENT_MAX    1000        /* answers that a look asks for; the others wait for the next */
#define TEXT_MAX    (16u << 20) /* of an answer: a batch has a bound */
#define CAME_MAX    100         /* verbs of a look */
#define BODY_MAX    (1u << 20)  /* of an Ask: a larger one is shown on its own machine only */
#define BODIES_MAX  32          /* of a round; the others go with the next one */
#define PRUNE_LOOKS 2400        /* between two looks for old rows, at the least */

/* A verb on its way to another machine. */
struct inbox_sent {
	struct list node;
	struct cluster *c;
	bool live, under_way;
	bool kept;  /* the row is there */
	bool comes; /* the run is on its way here */
	int64_t until_ms;
	inbox_fn done; /* NULL: answered */
	void *user;
	char machine[65], id[HASH_HEX_LEN + 1];
	const char *run, *name, *verb, *body, *claim; /* in `texts` */
	char texts[];
};

/* A verb of another machine, from the hook until the row has its answer. */
struct inbox_came {
	struct list node;
	struct cluster *c;
	bool answered, under_way;
	int status, code;
	char *text;
	size_t len;
	char id[HASH_HEX_LEN + 1];
};

struct inbox_listing {
	struct list node;
	struct cluster *c;
	int64_t until_ms;
	inbox_asks_fn done; /* NULL: answered */
	void *user;
};

/* An open Ask of this machine. */
struct inbox_said {
	char id[96], run[24], session[64];
	int64_t version;
	unsigned round; /* in which it was named last */
	bool said;      /* the database has it */
	struct buf body;
};

struct inbox {
	struct os_timer *timer;
	struct inbox_hooks hooks;
	struct list sent, calls, listings;
	bool looking, publishing;
	bool soon; /* somebody waits: the next turn is near */
	bool anew; /* of all Asks all is to be said */
	unsigned looks, round, bodies;
	unsigned asked;     /* verbs that the newest look wanted at most */
	unsigned refused;   /* of the oldest verbs, have to wait: the next look passes them over */
	struct strmap open; /* struct inbox_said */
};

static bool inbox_may(const struct cluster *c)
{
	return c->state == CLUSTER_MEMBER && c->settled && !c->closing && pg_is_up(c->pg);
}

/* ---- verbs that are sent */

static void sent_tell(struct inbox_sent *s, int rv, const struct inbox_answer *a,
		      const struct ava_error *err)
{
	inbox_fn done = s->done;
	void *user = s->user;

	s->done = NULL;
	list_del(&s->node);
	if (!s->under_way)
		free(s);
	done(rv, a, err, user);
}

static void sent_late(struct inbox_sent *s)
{
	struct ava_error err = {0};

	if (s->kept)
		err_set(&err, AVA_EIO,
			"machine %s, which has %s, has not answered: this is kept for a day, and "
			"done once it is back or another machine has the run",
			s->machine, *s->name ? s->name : "this request");
	else if (s->comes)
		err_set(&err, AVA_EIO, "run %s is on its way here: ask again", s->run);
	else if (cluster_ready(s->c, &err) == 0)
		err_set(&err, AVA_EIO, "the database of the cluster does not answer");
	sent_tell(s, AVA_EIO, NULL, &err);
}

static void sent_came(const struct pg_answer *a, void *user)
{
	struct inbox_sent *s = user;
	struct ava_error err;
	const struct pg_result *r = a->rv == 0 ? &a->results[a->n - 1] : NULL;
	const char *machine;
	int64_t mine = 0, known = 0, here = 0;

	s->under_way = false;
	if (!s->done) {
		free(s);
	} else if (a->rv == AVA_EUNKNOWN || a->rv == AVA_ECANCELED) {
		s->kept = false; /* sent again */
	} else if (a->rv != 0) {
		sent_tell(s, err_set(&err, AVA_EIO, "%s", a->err->text), NULL, &err);
	} else if (pg_int(r, 0, 0, &mine) && mine == 1 && pg_int(r, 0, 2, &known) && known > 0) {
		machine = pg_text(r, 0, 1, NULL);
		snprintf(s->machine, sizeof(s->machine), "%s", machine ? machine : "");
		s->kept = machine != NULL;
		(void)pg_int(r, 0, 3, &here);
		s->comes = here > 0 && !supervisor_find(s->c->sup, s->run);
		if (!machine && !s->comes) /* else it is sent again */
			sent_tell(s, AVA_ENOENT, NULL, NULL);
	}
}

/* The row of a request that was answered with an error is one for another try, and one that waits
 * goes to whoever its request id belongs to now. The last column is 0
 * where another machine's claim came at the same time, which this statement cannot see: it is sent
 * again. A claim need not outlive a crash of the server, and so waits for no disk. */
static void sent_send(struct inbox_sent *s)
{
	static const char sql[] = CLUSTER_ME_SQL
		", target as (select r.node from ava_run r left join ava_node n using (node)"
		"   where r.run = $5 and r.node <> $1 and case when $6 = 0"
		"    then r.state = 0 or n.lease_until > clock_timestamp()"
		"    else r.state = 0 and n.lease_until > clock_timestamp() end"
		"  union all select a.node from ava_ask a join ava_node n using (node)"
		"   where $5 = '' and a.id = $7 and a.node <> $1"
		"  union all select q.node from ava_request q where q.id = $10 and q.node <> $1),"
		" claim as (insert into ava_request (id, node) select $10, $1 from me"
		"  where $10 <> '' on conflict (id) do nothing returning id),"
		" put as (insert into ava_inbox (id, run, node, name, verb, body, door)"
		"  select $4, $5, t.node, $7, $8, $9, $1 from me, target t"
		"  on conflict (id) do update set status = null, code = null, answer = null,"
		"   node = excluded.node, body = excluded.body, at = clock_timestamp()"
		"   where ava_inbox.status >= 400 or (ava_inbox.status is null"
		"    and ava_inbox.node <> excluded.node))"
		" select (select count(*) from me), (select coalesce(n.name, 'gone')"
		"  from target t left join ava_node n using (node)), ($10 = ''"
		"  or exists (select 1 from claim)"
		"  or exists (select 1 from ava_request where id = $10))::int,"
		" exists (select 1 from ava_run where run = $5 and node = $1 and state = 0)::int";
	struct pg_batch *b = pg_batch_new();

	if (*s->claim)
		pg_batch_add(b, "select set_config('synchronous_commit', 'off', true)");
	cluster_add_me(b, s->c, sql);
	pg_batch_text(b, s->id);
	pg_batch_text(b, s->run);
	pg_batch_int(b, s->live);
	pg_batch_text(b, s->name);
	pg_batch_text(b, s->verb);
	pg_batch_bytes(b, s->body, strlen(s->body));
	pg_batch_text(b, s->claim);
	s->under_way = pg_send(s->c->pg, b, sent_came, s, NULL) == 0;
}

static const char *sent_text(char **at, const char *text)
{
	char *copy = *at;

	*at = stpcpy(copy, text) + 1;
	return copy;
}

void inbox_send(struct cluster *c, const struct inbox_verb *v, inbox_fn done, void *user)
{
	struct ava_error err = {0};
	const char *claim = v->claim ? v->claim : "";
	size_t size = strlen(v->run) + strlen(v->name) + strlen(v->verb) + strlen(v->body) +
		      strlen(claim) + 5;
	struct inbox_sent *s = NULL;
	char *at;

	if (c->closing)
		err_set(&err, AVA_ECANCELED, "the runtime stops");
	else if (cluster_ready(c, &err) == 0 && !(s = calloc(1, sizeof(*s) + size)))
		err_set(&err, AVA_ENOMEM, "out of memory");
	if (err.code != 0) {
		done(err.code, NULL, &err, user);
		return;
	}
	at = s->texts;
	s->c = c;
	s->done = done;
	s->user = user;
	s->live = v->live;
	s->run = sent_text(&at, v->run);
	s->name = sent_text(&at, v->name);
	s->verb = sent_text(&at, v->verb);
	s->body = sent_text(&at, v->body);
	s->claim = sent_text(&at, claim);
	snprintf(s->id, sizeof(s->id), "%s", v->id ? v->id : id_session().text);
	s->until_ms = cluster_now_ms() + INBOX_WAIT_MS;
	list_add(&c->inbox->sent, &s->node);
	if (inbox_may(c))
		sent_send(s);
	if (!c->inbox->soon)
		os_timer_set(c->inbox->timer, INBOX_MS / 5);
	c->inbox->soon = true;
}

/* ---- verbs that came */

static struct inbox_came *came_find(const struct cluster *c, const char *id)
{
	LIST_EACH (&c->inbox->calls, n, tmp)
		if (strcmp(LIST_ENTRY(n, struct inbox_came, node)->id, id) == 0)
			return LIST_ENTRY(n, struct inbox_came, node);
	return NULL;
}

static void came_free(struct inbox_came *call)
{
	list_del(&call->node);
	free(call->text);
	free(call);
}

static void came_written(const struct pg_answer *a, void *user)
{
	struct inbox_came *call = user;
	int64_t mine = 0;

	call->under_way = false;
	if (a->rv == 0 && pg_int(&a->results[0], 0, 0, &mine) && mine == 1)
		came_free(call);
}

static void came_write(struct inbox_came *call)
{
	static const char sql[] = CLUSTER_ME_SQL
		", told as (update ava_inbox set status = $5, code = $6, answer = $7 from me"
		"  where id = $4 and status is null)"
		" select count(*) from me";
	struct pg_batch *b = pg_batch_new();

	cluster_add_me(b, call->c, sql);
	pg_batch_text(b, call->id);
	pg_batch_int(b, call->status);
	pg_batch_int(b, call->code);
	pg_batch_bytes(b, call->text, call->len);
	call->under_way = pg_send(call->c->pg, b, came_written, call, NULL) == 0;
}

void inbox_answer(struct cluster *c, const char *id, const struct inbox_answer *a)
{
	static const char big[] = "the answer is too big to travel: ask the run's own machine";
	static const struct inbox_answer too_big = {413, AVA_ETOOBIG, big, sizeof(big) - 1};
	struct inbox_came *call = came_find(c, id);

	if (a->len > TEXT_MAX)
		a = &too_big;
	if (!call || call->answered)
		return;
	call->text = malloc(a->len + 1);
	if (!call->text) { /* without an answer the verb comes again */
		came_free(call);
		return;
	}
	memcpy(call->text, a->text, a->len);
	call->len = a->len;
	call->status = a->status;
	call->code = a->code;
	call->answered = true;
	if (inbox_may(c))
		came_write(call);
}

/* Rows of id, run, name, verb, body. False: this one has to wait. */
static bool came_begin(struct cluster *c, const struct pg_result *rows, unsigned i)
{
	struct inbox_verb v = {
		.id = pg_text(rows, i, 0, NULL),
		.run = pg_text(rows, i, 1, NULL),
		.name = pg_text(rows, i, 2, NULL),
		.verb = pg_text(rows, i, 3, NULL),
		.body = pg_text(rows, i, 4, NULL),
	};
	struct inbox_came *call;

	if (strlen(v.id) >= sizeof(call->id))
		return false;
	if (came_find(c, v.id))
		return true;
	call = calloc(1, sizeof(*call));
	if (!call)
		return false;
	call->c = c;
	snprintf(call->id, sizeof(call->id), "%s", v.id);
	list_add(&c->inbox->calls, &call->node);
	if (c->inbox->hooks.call(&v, c->inbox->hooks.user))
		return true;
	came_free(call);
	return false;
}

/* ---- a look at both */

/* One row: id, status, code, answer. */
static void sent_answered(struct cluster *c, const struct pg_result *rows, unsigned i)
{
	const char *id = pg_text(rows, i, 0, NULL);
	struct inbox_answer a = {0};
	int64_t status = 0, code = 0;
	struct list told;

	(void)pg_int(rows, i, 1, &status);
	(void)pg_int(rows, i, 2, &code);
	a.status = (int)status;
	a.code = (int)code;
	a.text = pg_text(rows, i, 3, &a.len);
	/* Who is told may send more. */
	list_init(&told);
	LIST_EACH (&c->inbox->sent, n, tmp) {
		struct inbox_sent *s = LIST_ENTRY(n, struct inbox_sent, node);

		if (!s->kept || strcmp(s->id, id) != 0)
			continue;
		list_del(n);
		list_add(&told, n);
	}
	while (!list_empty(&told))
		sent_tell(LIST_FIRST(&told, struct inbox_sent, node), 0, &a, NULL);
}

static void inbox_fetched(const struct pg_answer *a, void *user)
{
	struct cluster *c = user;

	unsigned rows = a->rv == 0 ? pg_rows(&a->results[0]) : 0;

	c->inbox->looking = false;
	if (rows < c->inbox->asked)
		c->inbox->refused = 0; /* there are no more: from the oldest one on again */
	for (unsigned i = 0; i < rows && inbox_may(c); i++)
		c->inbox->refused += !came_begin(c, &a->results[0], i) && rows == c->inbox->asked;
}

/* Asks for what came for this machine. Verbs for runs that are held wait, at the most for a day:
 * where they fill a look, the next one goes on behind them. */
static void inbox_fetch(struct cluster *c)
{
	const char *ids[CAME_MAX];
	struct pg_batch *b = pg_batch_new();
	size_t n = 0;

	LIST_EACH (&c->inbox->calls, node, tmp)
		if (n < CAME_MAX)
			ids[n++] = LIST_ENTRY(node, struct inbox_came, node)->id;
	pg_batch_add(b, "select i.id, i.run, i.name, i.verb, i.body from ava_inbox i"
			" left join ava_run r on r.run = i.run where i.status is null"
			" and coalesce(r.node, i.node) = $1 and not (i.id = any($2))"
			" order by i.at, i.id limit $3 offset $4");
	pg_batch_text(b, c->who.node);
	pg_batch_texts(b, ids, n);
	c->inbox->asked = (unsigned)(CAME_MAX - n);
	pg_batch_int(b, c->inbox->asked);
	pg_batch_int(b, c->inbox->refused);
	c->inbox->looking = pg_send(c->pg, b, inbox_fetched, c, NULL) == 0;
}

static void inbox_looked(const struct pg_answer *a, void *user)
{
	struct cluster *c = user;

	c->inbox->looking = false;
	if (a->rv != 0 || c->closing)
		return;
	for (unsigned i = 0; a->n > 1 && i < pg_rows(&a->results[1]); i++)
		sent_answered(c, &a->results[1], i);
	if (pg_rows(&a->results[0]) > 0 && inbox_may(c))
		inbox_fetch(c);
}

/* Mostly nothing came for anybody: that costs a third of asking whose it is. */
static void inbox_look(struct cluster *c)
{
	const char *ids[SENT_MAX];
	struct pg_batch *b = pg_batch_new();
	size_t n = 0;

	pg_batch_add(b, "select 1 from ava_inbox where status is null limit 1");
	LIST_EACH (&c->inbox->sent, node, tmp)
		if (n < SENT_MAX && LIST_ENTRY(node, struct inbox_sent, node)->kept)
			ids[n++] = LIST_ENTRY(node, struct inbox_sent, node)->id;
	if (n > 0) {
		pg_batch_add(b, "select id, status::bigint, code::bigint, answer from ava_inbox"
				" where id = any($1) and status is not null");
		pg_batch_texts(b, ids, n);
	}
	c->inbox->looking = pg_send(c->pg, b, inbox_looked, c, NULL) == 0;
}

static void inbox_pruned(const struct pg_answer *a, void *user) {}

static void inbox_prune(struct cluster *c)
{
	struct pg_batch *b = pg_batch_new();

	cluster_add_me(b, c,
		       CLUSTER_ME_SQL
		       " delete from ava_inbox i using me"
		       " where i.at < clock_timestamp() - interval '1 day' or (i.status is not null"
		       "  and i.at < clock_timestamp() - interval '1 hour')");
	cluster_add_me(b, c,
		       CLUSTER_ME_SQL
		       " delete from ava_ask a using me where (a.body is null"
		       "  and a.at < clock_timestamp() - interval '1 day')"
		       " or not exists (select 1 from ava_node n where n.node = a.node)");
	cluster_add_me(b, c, /* now(): clock_timestamp() is no key of an index */
		       CLUSTER_ME_SQL " delete from ava_request q using me"
				      " where q.at < now() - interval '1 day'");
	cluster_add_me(b, c, /* wishes for runs that ended first */
		       CLUSTER_ME_SQL
		       " delete from ava_wish w using me where not exists"
		       "  (select 1 from ava_run r where r.run = w.run and r.state < 9)");
	(void)pg_send(c->pg, b, inbox_pruned, c, NULL);
}

/* ---- Asks of this machine */

static void said_drop(struct inbox *i, struct inbox_said *s)
{
	strmap_del(&i->open, s->id);
	buf_fini(&s->body);
	free(s);
}

struct buf *inbox_open(struct cluster *c, const char *id, const char *run, const char *session,
		       int64_t version)
{
	struct inbox *i = c->inbox;
	struct inbox_said *s = strmap_get(&i->open, id);

	if (!s) {
		s = strlen(id) < sizeof(s->id) ? calloc(1, sizeof(*s)) : NULL;
		if (!s)
			return NULL;
		buf_init(&s->body, BODY_MAX);
		snprintf(s->id, sizeof(s->id), "%s", id);
		snprintf(s->run, sizeof(s->run), "%s", run);
		snprintf(s->session, sizeof(s->session), "%s", session);
		if (strmap_put(&i->open, s->id, s) != 0) {
			free(s);
			return NULL;
		}
	}
	s->said = s->said && s->version == version;
	s->version = version;
	s->round = i->round;
	if (s->said || i->bodies >= BODIES_MAX)
		return NULL;
	i->bodies++;
	buf_fini(&s->body);
	buf_init(&s->body, BODY_MAX);
	return &s->body;
}

static void asks_published(const struct pg_answer *a, void *user)
{
	struct cluster *c = user;
	struct inbox *i = c->inbox;
	struct inbox_said *s;
	int64_t mine = 0;
	size_t at = 0;
	bool ok = a->rv == 0 && pg_int(&a->results[a->n - 1], 0, 0, &mine) && mine == 1;

	i->publishing = false;
	i->anew = i->anew || !ok;
	while (ok && (s = strmap_next(&i->open, &at))) {
		s->said = s->said || s->body.len > 0;
		buf_fini(&s->body);
		buf_init(&s->body, BODY_MAX);
		if (s->round != i->round)
			said_drop(i, s);
	}
}

/* Says what was opened in this round, and what is open no more: in a first round, all that the
 * database has and that is not open. */
static void asks_send(struct cluster *c, bool first)
{
	struct inbox *i = c->inbox;
	size_t most = i->open.count + 1, n = 0, ended = 0, at = 0;
	const char **texts = calloc(4 * most, sizeof(*texts));
	const char **ids = texts, **runs = ids + most, **sessions = runs + most,
		   **gone = sessions + most;
	struct pg_bytes *bodies = calloc(most, sizeof(*bodies));
	struct pg_batch *b = texts && bodies ? pg_batch_new() : NULL;
	const struct inbox_said *s;

	while (b && (s = strmap_next(&i->open, &at))) {
		if ((s->round == i->round) == first)
			gone[ended++] = s->id;
		if (s->round != i->round || s->body.len == 0)
			continue;
		ids[n] = s->id;
		runs[n] = s->run;
		sessions[n] = s->session;
		bodies[n++] = (struct pg_bytes){s->body.data, s->body.len};
	}
	cluster_add_me(b, c,
		       CLUSTER_ME_SQL
		       " insert into ava_ask (id, node, run, session, body)"
		       " select w.id, $1, w.run, w.session, w.body from"
		       "  unnest($4::text[], $5::text[], $6::text[], $7::bytea[])"
		       "  w(id, run, session, body), me"
		       " on conflict (id) do update set node = excluded.node, run = excluded.run,"
		       "  session = excluded.session, body = excluded.body");
	pg_batch_texts(b, ids, n);
	pg_batch_texts(b, runs, n);
	pg_batch_texts(b, sessions, n);
	pg_batch_byteses(b, bodies, n);
	cluster_add_me(
		b, c,
		CLUSTER_ME_SQL
		", gone as (update ava_ask a set body = null, at = clock_timestamp() from me"
		"  where a.node = $1 and a.body is not null and (a.id = any($4)) <> ($5 > 0))"
		" select count(*) from me");
	pg_batch_texts(b, gone, ended);
	pg_batch_int(b, first);
	i->publishing = pg_send(c->pg, b, asks_published, c, NULL) == 0;
	i->anew = first && !i->publishing;
	free(texts);
	free(bodies);
}

/* A look at all that are open, which is cheap; only what is new is written out. */
static void asks_publish(struct cluster *c)
{
	struct inbox *i = c->inbox;
	bool first = i->anew, news = first;
	struct inbox_said *s;
	size_t at = 0;

	while (first && (s = strmap_next(&i->open, &at)))
		s->said = false;
	i->round++;
	i->bodies = 0;
	i->hooks.asks(i->hooks.user);
	at = 0;
	while ((s = strmap_next(&i->open, &at))) {
		if (s->round == i->round && buf_check(&s->body) != 0) {
			buf_fini(&s->body);
			buf_init(&s->body, BODY_MAX);
			s->said = true;
		}
		news = news || s->round != i->round || s->body.len > 0;
	}
	if (news)
		asks_send(c, first);
}

void inbox_anew(struct cluster *c)
{
	c->inbox->anew = true;
}

/* ---- Asks of others */

static void listing_tell(struct inbox_listing *l, int rv, const struct inbox_ask *asks, unsigned n,
			 const struct ava_error *err)
{
	inbox_asks_fn done = l->done;

	l->done = NULL;
	list_del(&l->node);
	done(rv, asks, n, err, l->user);
}

static void asks_came(const struct pg_answer *a, void *user)
{
	struct inbox_listing *l = user;
	const struct pg_result *rows = a->rv == 0 ? &a->results[0] : NULL;
	unsigned n = rows ? pg_rows(rows) : 0;
	struct inbox_ask *asks = calloc(n + 1, sizeof(*asks));
	struct ava_error err;

	for (unsigned i = 0; asks && i < n; i++) {
		asks[i].id = pg_text(rows, i, 0, NULL);
		asks[i].machine = pg_text(rows, i, 1, NULL);
		asks[i].text = pg_text(rows, i, 2, &asks[i].len);
	}
	if (l->done && a->rv != 0)
		listing_tell(l, a->rv, NULL, 0, a->err);
	else if (l->done && !asks)
		listing_tell(l, err_set(&err, AVA_ENOMEM, "out of memory"), NULL, 0, &err);
	else if (l->done)
		listing_tell(l, 0, asks, n, NULL);
	free(asks);
	free(l);
}

void inbox_asks(struct cluster *c, const char *session, inbox_asks_fn done, void *user)
{
	struct inbox_listing *l = inbox_may(c) ? calloc(1, sizeof(*l)) : NULL;
	struct ava_error err = {0};
	struct pg_batch *b;
	int rv;

	if (!l) {
		if (cluster_ready(c, &err) == 0)
			err_set(&err, AVA_EIO, "the database of the cluster does not answer");
		done(err.code, NULL, 0, &err, user);
		return;
	}
	*l = (struct inbox_listing){
		.c = c, .until_ms = cluster_now_ms() + LIST_MS, .done = done, .user = user};
	b = pg_batch_new();
	pg_batch_add(b, "select id, name, body from (select a.id, n.name, a.body, a.at,"
			"  sum(length(a.body)) over (order by a.at, a.id) as bytes"
			"  from ava_ask a join ava_node n using (node) where a.node <> $1"
			"   and a.body is not null and n.lease_until > clock_timestamp()"
			"   and ($2 = '' or a.session = $2)) q"
			" where bytes <= $3 order by at, id");
	pg_batch_text(b, c->who.node);
	pg_batch_text(b, session ? session : "");
	pg_batch_int(b, LIST_BYTES);
	rv = pg_send(c->pg, b, asks_came, l, &err);
	if (rv != 0) {
		free(l);
		done(rv, NULL, 0, &err, user);
		return;
	}
	list_add(&c->inbox->listings, &l->node);
}

/* ---- its turn, four times a second; while somebody waits for an answer more often */

static void inbox_late(struct inbox *i)
{
	int64_t now = cluster_now_ms();
	struct ava_error err;

	LIST_EACH (&i->listings, n, tmp)
		if (now >= LIST_ENTRY(n, struct inbox_listing, node)->until_ms)
			listing_tell(LIST_ENTRY(n, struct inbox_listing, node),
				     err_set(&err, AVA_ETIMEOUT,
					     "the database of the cluster does not answer in time"),
				     NULL, 0, &err);
	/* The oldest stands first; who is told may send more. */
	while (!list_empty(&i->sent) &&
	       now >= LIST_FIRST(&i->sent, struct inbox_sent, node)->until_ms)
		sent_late(LIST_FIRST(&i->sent, struct inbox_sent, node));
}

static void inbox_turn(void *user)
{
	struct cluster *c = user;
	struct inbox *i = c->inbox;

	inbox_late(i);
	i->soon = !list_empty(&i->sent);
	os_timer_set(i->timer, i->soon ? INBOX_MS / 5 : INBOX_MS);
	if (!inbox_may(c) || !i->hooks.call)
		return;
	LIST_EACH (&i->sent, n, tmp) {
		struct inbox_sent *s = LIST_ENTRY(n, struct inbox_sent, node);

		if (!s->kept && !s->under_way)
			sent_send(s);
	}
	LIST_EACH (&i->calls, n, tmp) {
		struct inbox_came *call = LIST_ENTRY(n, struct inbox_came, node);

		if (call->answered && !call->under_way)
			came_write(call);
	}
	if (i->looks++ % PRUNE_LOOKS == 0)
		inbox_prune(c);
	if (!i->looking)
		inbox_look(c);
	if (!i->publishing)
		asks_publish(c);
}

/* ---- life */

void inbox_serve(struct cluster *c, const struct inbox_hooks *hooks)
{
	c->inbox->hooks = *hooks;
}

int inbox_new(struct cluster *c)
{
	struct inbox *i = calloc(1, sizeof(*i));

	if (!i)
		return AVA_ENOMEM;
	list_init(&i->sent);
	list_init(&i->calls);
	list_init(&i->listings);
	strmap_init(&i->open);
	c->inbox = i;
	i->timer = os_timer_new(c->loop, inbox_turn, c);
	if (!i->timer)
		return AVA_ENOMEM;
	os_timer_set(i->timer, INBOX_MS);
	return 0;
}

void inbox_give_up(struct cluster *c)
{
	struct ava_error err;

	if (!c->inbox)
		return;
	err_set(&err, AVA_ECANCELED, "the runtime stops before the other machine has answered");
	while (!list_empty(&c->inbox->sent))
		sent_tell(LIST_FIRST(&c->inbox->sent, struct inbox_sent, node), err.code, NULL,
			  &err);
	while (!list_empty(&c->inbox->listings))
		listing_tell(LIST_FIRST(&c->inbox->listings, struct inbox_listing, node), err.code,
			     NULL, 0, &err);
}

void inbox_free(struct cluster *c)
{
	struct inbox *i = c->inbox;
	struct inbox_said *s;
	size_t at = 0;

	if (!i)
		return;
	inbox_give_up(c);
	LIST_EACH (&i->calls, n, tmp)
		came_free(LIST_ENTRY(n, struct inbox_came, node));
	while ((s = strmap_next(&i->open, &at)))
		said_drop(i, s);
	strmap_fini(&i->open);
	os_timer_free(i->timer);
	free(i);
	c->inbox = NULL;
}
