/* cluster/pg.h on a simulated network. A connection is a session of the server and its client. What
 * is on the way belongs to the world: it arrives after the client has died or frozen, too. What
 * comes to a client belongs to that process: it waits while that is frozen. */
#include "pgwire.h"

#include <assert.h>
#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/list.h"
#include "base/util.h"
#include "cluster/pg.h"
#include "clockwork.h"
#include "os/loop.h"
#include "pgmap.h"

#define MEM_MAX ((size_t)256 << 20)

struct pgwire_temper pgwire_temper;

static struct {
	int64_t cut_until, answers_until;
} links[PGWIRE_MACHINES];
static int64_t away_until;
static struct list clients = {&clients, &clients}; /* struct pg that are open */
static uint64_t server; /* number of its start: sessions of an older one have ended */

struct pg_batch {
	struct list node;
	struct arena mem;
	struct pgmap_statement *statements;
	size_t nstatements, cap;
	struct pg_result *results;
	struct pgmap_rows *rows;
	pg_done_fn done;
	void *user;
	int64_t until_ms;
	unsigned refs; /* the client, and what is on the way */
};

struct session {
	struct pg *client; /* NULL: it has closed the connection */
	uint64_t server;
	unsigned machine, refs;
	bool broken; /* a piece was lost: nothing more arrives */
	int64_t last_there, last_back;
	struct list there; /* struct parcel: on the way to the server, in order */
};

enum wire_state { WIRE_RESTING, WIRE_CONNECTING, WIRE_UP, WIRE_CLOSED };

struct pg {
	struct os_loop *loop;
	struct pg_options o;
	struct sim_process *process;
	enum wire_state state;
	unsigned machine, fails;
	struct session *session; /* while UP */
	struct os_timer *timer;
	struct os_task turn;
	struct sim_due *connects;
	struct list waiting, under_way;
	struct list client; /* in `clients` */
};

struct parcel {            /* a batch on its way */
	struct list there; /* in session.there */
	struct session *s;
	struct pg_batch *b;
	bool patient; /* it is sent again until the link is there */
};

void pgwire_begin(void)
{
	memset(links, 0, sizeof(links));
	away_until = 0;
	server = 1;
}

/* ---- batches */

struct pg_batch *pg_batch_new(void)
{
	struct pg_batch *b = calloc(1, sizeof(*b));

	assert(b != NULL);
	list_init(&b->node);
	arena_init(&b->mem, MEM_MAX);
	b->refs = 1;
	return b;
}

void pg_batch_free(struct pg_batch *b)
{
	if (b == NULL || --b->refs > 0)
		return;
	arena_fini(&b->mem);
	free(b->statements);
	free(b);
}

void pg_batch_add(struct pg_batch *b, const char *sql)
{
	if (b->nstatements == b->cap) {
		b->cap = b->cap * 2 + 4;
		b->statements = realloc(b->statements, b->cap * sizeof(*b->statements));
		assert(b->statements != NULL);
	}
	b->statements[b->nstatements++] =
		(struct pgmap_statement){.sql = arena_copy(&b->mem, sql, strlen(sql))};
}

static struct pgmap_value *value_new(struct pg_batch *b)
{
	struct pgmap_statement *s = &b->statements[b->nstatements - 1];

	if (s->params == NULL)
		s->params = arena_get(&b->mem, PG_PARAMS_MAX * sizeof(*s->params));
	assert(s->params != NULL && s->nparams < PG_PARAMS_MAX);
	return &s->params[s->nparams++];
}

static struct pgmap_value *list_new(struct pg_batch *b, size_t n)
{
	struct pgmap_value *v = value_new(b);

	v->nitems = n;
	v->items = arena_get(&b->mem, (n + 1) * sizeof(*v->items));
	assert(v->items != NULL);
	return v->items;
}

static void value_set(struct pg_batch *b, struct pgmap_value *v, const void *data, size_t len)
{
	if (data == NULL)
		return;
	v->s = arena_copy(&b->mem, data, len);
	v->len = len;
	assert(v->s != NULL);
}

void pg_batch_text(struct pg_batch *b, const char *text)
{
	value_set(b, value_new(b), text, text != NULL ? strlen(text) : 0);
}

void pg_batch_int(struct pg_batch *b, int64_t n)
{
	value_new(b)->n = n;
}

void pg_batch_bytes(struct pg_batch *b, const void *data, size_t len)
{
	value_set(b, value_new(b), data, len);
}

void pg_batch_texts(struct pg_batch *b, const char *const *texts, size_t n)
{
	struct pgmap_value *items = list_new(b, n);

	for (size_t i = 0; i < n; i++)
		value_set(b, &items[i], texts[i], strlen(texts[i]));
}

void pg_batch_ints(struct pg_batch *b, const int64_t *ints, size_t n)
{
	struct pgmap_value *items = list_new(b, n);

	for (size_t i = 0; i < n; i++)
		items[i].n = ints[i];
}

void pg_batch_byteses(struct pg_batch *b, const struct pg_bytes *byteses, size_t n)
{
	struct pgmap_value *items = list_new(b, n);

	for (size_t i = 0; i < n; i++)
		value_set(b, &items[i], byteses[i].data, byteses[i].len);
}

/* ---- results */

unsigned pg_rows(const struct pg_result *r)
{
	return ((const struct pgmap_rows *)r->rows)->n;
}

int64_t pg_affected(const struct pg_result *r)
{
	return ((const struct pgmap_rows *)r->rows)->affected;
}

static const struct pgmap_value *cell_of(const struct pg_result *r, unsigned row, unsigned col)
{
	const struct pgmap_rows *rows = r->rows;

	return row < rows->n && col < rows->cols ? &rows->cells[row * rows->cols + col] : NULL;
}

const char *pg_text(const struct pg_result *r, unsigned row, unsigned col, size_t *len)
{
	const struct pgmap_value *v = cell_of(r, row, col);

	if (v == NULL || v->s == NULL)
		return NULL;
	if (len != NULL)
		*len = v->len;
	return v->s;
}

bool pg_int(const struct pg_result *r, unsigned row, unsigned col, int64_t *n)
{
	const struct pgmap_value *v = cell_of(r, row, col);

	if (v == NULL || v->s != NULL || v->null)
		return false;
	*n = v->n;
	return true;
}

/* ---- the network */

static void session_drop(struct session *s)
{
	if (--s->refs == 0)
		free(s);
}

static bool is_away(void)
{
	return away_until > sim.now;
}

static int64_t way_ms(void)
{
	if (sim_maybe(pgwire_temper.slow))
		return sim_span(100, 14000);
	return sim_span(0, pgwire_temper.usual_ms);
}

/* On the way it is the world's. */
static void world_at(int64_t at, void (*run)(void *user), void *user)
{
	struct sim_process *was = sim_enter(NULL);

	(void)sim_at(at, run, user);
	(void)sim_enter(was);
}

static void parcel_end(struct parcel *p)
{
	list_del(&p->there);
	session_drop(p->s);
	pg_batch_free(p->b);
	free(p);
}

static void pg_answer(struct pg *pg, struct pg_batch *b, int rv, const struct ava_error *err)
{
	struct pg_answer a = {.rv = rv, .err = err, .sqlstate = ""};

	if (rv == 0) {
		a.results = b->results;
		a.n = (unsigned)b->nstatements;
		pg->fails = 0;
	}
	list_del(&b->node);
	b->done(&a, b->user);
	pg_batch_free(b);
}

static void pg_patience(struct pg *pg)
{
	struct pg_batch *b = LIST_FIRST(&pg->under_way, struct pg_batch, node);

	if (b != NULL)
		os_timer_set(pg->timer, b->until_ms - os_now_ms(pg->loop));
	else
		os_timer_stop(pg->timer);
}

static void pg_lose(struct pg *pg, int code, const char *why);

static void answered(void *user)
{
	struct parcel *p = user;
	struct pg *pg = p->s->client;

	pg_answer(pg, p->b, 0, NULL);
	if (p->s->client != NULL && pg->state == WIRE_UP)
		pg_patience(pg);
}

static void come_back(void *user)
{
	struct parcel *p = user;
	struct session *s = p->s;
	struct pg *pg = s->client;
	int64_t until = MAX(links[s->machine].cut_until, links[s->machine].answers_until);

	if (pg != NULL && !s->broken && until > sim.now && !p->patient)
		s->broken = true; /* and the client's patience ends it */
	if (pg == NULL || s->broken) {
		parcel_end(p);
	} else if (until > sim.now || pg->process->frozen_until > sim.now) {
		world_at(MAX(until + sim_span(0, 5), pg->process->frozen_until), come_back, p);
	} else if (LIST_FIRST(&pg->under_way, struct pg_batch, node) != p->b) {
		world_at(sim.now + 1, come_back, p); /* an earlier one waited for the link */
	} else {
		sim_within(pg->process, answered, p);
		parcel_end(p);
	}
}

static void ended(void *user)
{
	pg_lose(user, AVA_ECONNECT, "the server ended the connection");
}

/* The server has ended the session, which its client learns. */
static void come_end(void *user)
{
	struct session *s = user;
	struct pg *pg = s->client;

	if (pg != NULL && pg->process->frozen_until > sim.now) {
		world_at(pg->process->frozen_until, come_end, s);
		return;
	}
	if (pg != NULL && pg->state == WIRE_UP)
		sim_within(pg->process, ended, pg);
	session_drop(s);
}

static void commit(struct parcel *p)
{
	struct pg_batch *b = p->b;

	b->rows = arena_get(&b->mem, (b->nstatements + 1) * sizeof(*b->rows));
	b->results = arena_get(&b->mem, (b->nstatements + 1) * sizeof(*b->results));
	assert(b->rows != NULL && b->results != NULL);
	for (size_t i = 0; i < b->nstatements; i++)
		b->results[i].rows = &b->rows[i];
	pgmap_commit(b->statements, b->nstatements, b->rows, &b->mem);
}

static void arrive(void *user)
{
	struct parcel *p = user;
	struct session *s = p->s;
	int64_t until = links[s->machine].cut_until;

	if (until > sim.now && !p->patient)
		s->broken = true;
	if (s->broken || s->server != server) {
		parcel_end(p);
	} else if (until > sim.now) {
		world_at(until + sim_span(0, 5), arrive, p);
	} else if (LIST_FIRST(&s->there, struct parcel, there) != p) {
		world_at(sim.now + 1, arrive, p); /* an earlier one waited for the link */
	} else {
		list_del(&p->there);
		commit(p);
		s->last_back = MAX(s->last_back, sim.now + way_ms());
		world_at(s->last_back, come_back, p);
	}
}

void pgwire_cut(unsigned machine, int64_t until, bool answers)
{
	if (answers)
		links[machine].answers_until = until;
	else
		links[machine].cut_until = until;
}

void pgwire_away(int64_t until)
{
	server++;
	away_until = until;
	LIST_EACH (&clients, n, tmp) {
		struct session *s = LIST_ENTRY(n, struct pg, client)->session;

		if (s == NULL)
			continue;
		s->refs++;
		world_at(sim.now + way_ms(), come_end, s);
	}
}

void pgwire_heal(void)
{
	memset(links, 0, sizeof(links));
	away_until = 0;
}

/* ---- pg.h */

static int64_t pause_ms(const struct pg *pg)
{
	int64_t most = MIN((int64_t)100 << MIN(pg->fails, 7u), 10000);

	return MAX(most / 2 + sim_span(0, most / 2), 100);
}

static void pg_answer_all(struct pg *pg, int rv, const char *why)
{
	struct list *lists[] = {&pg->under_way, &pg->waiting};
	struct pg_batch *b;
	struct ava_error err;

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		while ((b = LIST_FIRST(lists[i], struct pg_batch, node)) != NULL) {
			err_set(&err, rv, "the database has not answered, and may have done it: %s",
				why);
			pg_answer(pg, b, rv, &err);
		}
}

/* What a client that gives up has sent may still arrive. */
static void pg_hang_up(struct pg *pg)
{
	struct session *s = pg->session;

	pg->session = NULL;
	if (s == NULL)
		return;
	s->client = NULL;
	s->broken = s->broken || sim_maybe(500);
	session_drop(s);
}

static void pg_lose(struct pg *pg, int code, const char *why)
{
	struct ava_error err;

	err_set(&err, code, "%s", why);
	pg_hang_up(pg);
	sim_cancel(pg->connects);
	pg->connects = NULL;
	pg->state = WIRE_RESTING;
	os_timer_set(pg->timer, pause_ms(pg));
	pg->fails++;
	pg_answer_all(pg, AVA_EUNKNOWN, why);
	if (pg->state != WIRE_CLOSED)
		pg->o.down(&err, pg->o.user);
}

static void pg_connected(void *user)
{
	struct pg *pg = user;
	int64_t until = MAX(links[pg->machine].cut_until, links[pg->machine].answers_until);

	pg->connects = NULL;
	if (until > sim.now) /* nobody says anything: patience ends it */
		return;
	if (is_away()) {
		pg_lose(pg, AVA_ECONNECT, "connection refused");
		return;
	}
	pg->session = calloc(1, sizeof(*pg->session));
	assert(pg->session != NULL);
	*pg->session =
		(struct session){.client = pg, .server = server, .machine = pg->machine, .refs = 1};
	list_init(&pg->session->there);
	pg->state = WIRE_UP;
	os_timer_stop(pg->timer);
	pg->o.up(pg->o.user);
}

static void pg_timer(void *user)
{
	struct pg *pg = user;
	struct pg_batch *b = LIST_FIRST(&pg->under_way, struct pg_batch, node);

	if (pg->state == WIRE_RESTING) {
		pg->state = WIRE_CONNECTING;
		os_timer_set(pg->timer, pg->o.timeout_ms);
		pg->connects = sim_at(sim.now + 2 * way_ms(), pg_connected, pg);
	} else if (pg->state == WIRE_CONNECTING) {
		pg_lose(pg, AVA_ETIMEOUT, "the database does not answer in time");
	} else if (b != NULL && b->until_ms <= os_now_ms(pg->loop)) {
		pg_lose(pg, AVA_ETIMEOUT, "the database does not answer in time");
	} else {
		pg_patience(pg);
	}
}

static void pg_put(struct pg *pg, struct pg_batch *b)
{
	struct session *s = pg->session;
	struct parcel *p = calloc(1, sizeof(*p));

	assert(p != NULL);
	*p = (struct parcel){.s = s, .b = b, .patient = sim_maybe(500)};
	s->refs++;
	b->refs++;
	list_add(&s->there, &p->there);
	s->last_there = MAX(s->last_there, sim.now + way_ms());
	world_at(s->last_there, arrive, p);
}

static void pg_turned(struct os_task *t)
{
	struct pg *pg = CONTAINER_OF(t, struct pg, turn);
	struct pg_batch *b;

	if (pg->state == WIRE_CLOSED) {
		free(pg);
		return;
	}
	while ((b = LIST_FIRST(&pg->waiting, struct pg_batch, node)) != NULL) {
		list_del(&b->node);
		list_add(&pg->under_way, &b->node);
		if (clockwork_touch())
			pg_put(pg, b);
	}
	if (pg->state == WIRE_UP)
		pg_patience(pg);
}

int pg_open(struct pg **out, struct os_loop *loop, const struct pg_options *o,
	    struct ava_error *err)
{
	struct pg *pg = calloc(1, sizeof(*pg));

	(void)err;
	assert(pg != NULL && strncmp(o->url, "machine=", 8) == 0);
	pg->machine = (unsigned)atoi(o->url + 8);
	pg->o = *o;
	pg->loop = loop;
	pg->process = sim_at_work();
	list_add(&clients, &pg->client);
	list_init(&pg->waiting);
	list_init(&pg->under_way);
	os_task_init(&pg->turn, pg_turned);
	pg->timer = os_timer_new(loop, pg_timer, pg);
	os_timer_set(pg->timer, 0);
	*out = pg;
	return 0;
}

void pg_close(struct pg *pg)
{
	if (pg == NULL || pg->state == WIRE_CLOSED)
		return;
	pg_hang_up(pg);
	sim_cancel(pg->connects);
	pg->state = WIRE_CLOSED;
	list_del(&pg->client);
	os_timer_free(pg->timer);
	pg_answer_all(pg, AVA_ECANCELED, "the connection was closed");
	os_defer(pg->loop, &pg->turn);
}

bool pg_is_up(const struct pg *pg)
{
	return pg->state == WIRE_UP;
}

bool pg_is_private(const struct pg *pg)
{
	return pg->state == WIRE_UP;
}

int pg_send(struct pg *pg, struct pg_batch *b, pg_done_fn done, void *user, struct ava_error *err)
{
	if (pg->state != WIRE_UP) {
		pg_batch_free(b);
		return err_set(err, AVA_ECONNECT, "the database is not connected");
	}
	b->done = done;
	b->user = user;
	b->until_ms = os_now_ms(pg->loop) + pg->o.timeout_ms;
	list_add(&pg->waiting, &b->node);
	os_defer(pg->loop, &pg->turn);
	return 0;
}
