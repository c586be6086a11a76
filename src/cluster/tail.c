/* A place is a tick a machine: the number of a flush. One machine has one writer, whose flushes are
 * answered before the next one is sent, so behind a tick that was seen no smaller one appears. Of a
 * run the chained hash is remembered: lines count once they give the one that its row has. Who
 * begins amid a run takes that of its row for the first chunks.
 *
 * A run that moves goes on under another machine; its older lines stay under the first one, and so
 * come once. After a failover that lost commits a machine sends them again, and what was given is
 * passed over; where another one went on from fewer lines, its lines are given, since they are what
 * counts. */
#include "cluster/tail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "base/util.h"
#include "cluster/member.h"
#include "cluster/read.h"
#include "codec/jscan.h"
#include "event/event.h"

#define TAIL_MACHINES 64
#define TAIL_CHUNKS   16 /* of a machine, and what else is of their ticks, in one answer */
#define TAIL_BYTES    (256u << 20)
#define TAIL_NODE     8 /* characters of a machine's id in a place */

struct tail_machine {
	char node[40], name[65]; /* name "": known by the beginning of its id */
	int64_t tick, lines;     /* all before the tick is given, and so many lines of it */
	int64_t fetched;         /* the newest tick in memory; 0: none */
};

struct tail_run {
	struct run_log at; /* up to the newest line in memory */
	unsigned machine;
	bool known, wrong, over; /* the hash is known; the lines do not give that of the run */
	char id[24];
};

struct tail_entry {
	const struct tail_run *run;
	size_t at, len;
	unsigned machine;
	int64_t tick, lines; /* with this one */
};

struct tailing {
	struct reader *r;
	struct os_loop *loop;
	struct os_timer *timer;
	bool asking, begun, closed, failed, more;
	void (*wake)(void *user);
	void *user;
	struct tail_machine machines[TAIL_MACHINES];
	unsigned nmachines;
	struct strmap runs; /* struct tail_run */
	struct buf lines;
	struct tail_entry *entries;
	size_t n, next, cap;
};

/* ---- places */

static bool tail_read_place(struct tailing *t, const char *place)
{
	while (*place) {
		struct tail_machine *m = &t->machines[t->nmachines];
		unsigned long long tick, lines;
		int n = 0;

		if (t->nmachines == TAIL_MACHINES ||
		    sscanf(place, "%8[0-9a-zA-Z-]:%llx.%llu%n", m->node, &tick, &lines, &n) != 3 ||
		    n == 0 || (place[n] && place[n] != ' ') || tick > INT64_MAX ||
		    lines > INT64_MAX)
			return false;
		m->tick = (int64_t)tick;
		m->lines = (int64_t)lines;
		t->nmachines++;
		place += n + (place[n] == ' ');
	}
	return true;
}

void tail_place(const struct tailing *t, struct buf *out)
{
	for (unsigned i = 0; i < t->nmachines; i++)
		buf_addf(out, " %.*s:%llx.%lld", TAIL_NODE, t->machines[i].node,
			 (unsigned long long)t->machines[i].tick, (long long)t->machines[i].lines);
}

/* ---- an answer */

static struct tail_machine *tail_machine(struct tailing *t, const char *node)
{
	for (unsigned i = 0; i < t->nmachines; i++) {
		struct tail_machine *m = &t->machines[i];

		if (strncmp(m->node, node, m->name[0] ? sizeof(m->node) : TAIL_NODE) == 0)
			return m;
	}
	return NULL;
}

/* Is the machine alive, by an answer? */
static bool tail_is_alive(const struct pg_result *rows, const char *node)
{
	int64_t alive = 0;

	for (unsigned i = 0; i < pg_rows(rows); i++)
		if (strncmp(pg_text(rows, i, 0, NULL), node, strlen(node)) == 0)
			(void)pg_int(rows, i, 3, &alive);
	return alive != 0;
}

/* The place of one more: where all are taken that of a machine which is gone, and whose lines were
 * all given. NULL: none. */
static struct tail_machine *tail_room(struct tailing *t, const struct pg_result *rows)
{
	if (t->nmachines < TAIL_MACHINES)
		return &t->machines[t->nmachines++];
	for (unsigned i = 0; i < t->nmachines; i++)
		if (t->machines[i].fetched == 0 && !tail_is_alive(rows, t->machines[i].node))
			return &t->machines[i];
	return NULL;
}

/* Rows: node, name, the tick behind its newest, whether it is alive, epoch. A machine that is new
 * is followed from its first line on. Once places were taken from some, one that was there before
 * may be one of those, and is followed from now on. */
static void tail_machines_came(struct tailing *t, const struct pg_result *rows)
{
	bool full = t->nmachines == TAIL_MACHINES;

	for (unsigned i = 0; i < pg_rows(rows); i++) {
		const char *node = pg_text(rows, i, 0, NULL), *name = pg_text(rows, i, 1, NULL);
		struct tail_machine *m = tail_machine(t, node);
		int64_t alive = 0, epoch = 0;

		(void)pg_int(rows, i, 3, &alive);
		(void)pg_int(rows, i, 4, &epoch);
		if (!m && (alive || t->nmachines < TAIL_MACHINES)) {
			m = tail_room(t, rows);
			if (m)
				*m = (struct tail_machine){0};
			if (m && (!t->begun || (full && epoch > 1)))
				(void)pg_int(rows, i, 2, &m->tick);
		}
		if (!m)
			continue;
		snprintf(m->node, sizeof(m->node), "%s", node);
		snprintf(m->name, sizeof(m->name), "%s", *name ? name : "?");
	}
	t->begun = true;
}

static struct tail_run *tail_run(struct tailing *t, const char *id)
{
	struct tail_run *s = strmap_get(&t->runs, id);

	if (s || strlen(id) >= sizeof(s->id))
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->known = true;
	snprintf(s->id, sizeof(s->id), "%s", id);
	if (strmap_put(&t->runs, s->id, s) == 0)
		return s;
	free(s);
	return NULL;
}

/* The lines of a chunk which `s` lacks, unless they were given: the first `given` of its tick.
 * *lines counts those of the tick. False: no memory. */
static bool tail_add_chunk(struct tailing *t, struct tail_run *s, unsigned machine, int64_t from,
			   struct slice body, int64_t tick, int64_t *lines)
{
	const struct tail_machine *m = &t->machines[machine];
	const char *line;
	size_t at = 0, len;

	while (jsonl_next(body.s, body.len, &at, &line, &len) == 1) {
		struct event_view v;
		struct tail_entry e = {
			.run = s, .machine = machine, .tick = tick, .lines = ++*lines};

		if (event_view(line, len, &v) != 0)
			s->wrong = true;
		if (from + (int64_t)at <= s->at.bytes)
			continue;
		run_log_add(&s->at, v.seq, line, len + 1);
		if (tick == m->tick && *lines <= m->lines)
			continue;
		e.at = t->lines.len;
		e.len = len;
		if (buf_add(&t->lines, line, len) != 0 || !ARRAY_ROOM(t->entries, t->cap, t->n + 1))
			return false;
		t->entries[t->n++] = e;
	}
	return at == body.len;
}

/* One row: node, tick, run, head of the chunk, body, and of the run head, hash and state. */
static bool tail_take(struct tailing *t, const struct pg_result *rows, unsigned i, int64_t *lines)
{
	struct tail_machine *m = tail_machine(t, pg_text(rows, i, 0, NULL));
	struct tail_run *s = tail_run(t, pg_text(rows, i, 2, NULL));
	int64_t tick = 0, head = 0, of_run = -1, state = 0, from;
	const char *hash;
	struct slice body;
	size_t len = 0;

	(void)pg_int(rows, i, 1, &tick);
	(void)pg_int(rows, i, 3, &head);
	body.s = pg_text(rows, i, 4, &body.len);
	(void)pg_int(rows, i, 5, &of_run);
	hash = pg_text(rows, i, 6, &len);
	(void)pg_int(rows, i, 7, &state);
	if (!m || !s || !body.s)
		return false;
	from = head - (int64_t)body.len;
	*lines = tick == m->fetched ? *lines : 0;
	m->fetched = tick;
	if (from > s->at.bytes || (from < s->at.bytes && &t->machines[s->machine] != m)) {
		s->at = (struct run_log){.bytes = from};
		s->known = from == 0;
	}
	s->machine = (unsigned)(m - t->machines);
	if (!tail_add_chunk(t, s, s->machine, from, body, tick, lines))
		return false;
	if (s->at.bytes != of_run || !hash || len != sizeof(s->at.head))
		return true;
	s->wrong |= s->known && memcmp(hash, s->at.head, len) != 0;
	memcpy(s->at.head, hash, len);
	s->known = true;
	s->over = state == CLUSTER_ENDED;
	return true;
}

static void tail_came(const struct pg_answer *a, void *user)
{
	struct tailing *t = user;
	unsigned of_one = 0;
	int64_t lines = 0;

	t->asking = false;
	if (t->closed) {
		tail_close(t);
		return;
	}
	t->more = false;
	for (unsigned i = 0; a->rv == 0 && i < pg_rows(&a->results[1]) && !t->failed; i++) {
		bool same = i > 0 && strcmp(pg_text(&a->results[1], i, 0, NULL),
					    pg_text(&a->results[1], i - 1, 0, NULL)) == 0;

		of_one = same ? of_one + 1 : 1;
		t->more |= of_one >= TAIL_CHUNKS;
		t->failed = !tail_take(t, &a->results[1], i, &lines);
	}
	if (a->rv == 0)
		tail_machines_came(t, &a->results[0]);
	if (t->n > 0 || t->failed)
		t->wake(t->user);
	else
		os_timer_set(t->timer, t->more ? 0 : READER_POLL);
}

/* ---- asking */

/* All that was in memory is given. */
static void tail_settle(struct tailing *t)
{
	struct tail_run *s;
	size_t at = 0;

	for (unsigned i = 0; i < t->nmachines; i++) {
		struct tail_machine *m = &t->machines[i];

		if (m->fetched > 0) {
			m->tick = m->fetched + 1;
			m->lines = 0;
		}
		m->fetched = 0;
	}
	t->n = t->next = 0;
	buf_reset(&t->lines);
	while ((s = strmap_next(&t->runs, &at)))
		if (s->over) {
			strmap_del(&t->runs, s->id);
			free(s);
		}
}

static void tail_ask(void *user)
{
	static const char sql[] =
		"select c.node, k.tick, k.stream, k.head, k.body, r.head, r.head_hash,"
		" r.state::bigint"
		" from unnest($1::text[], $2::bigint[]) c(node, tick)"
		" join ava_chunk k on k.node = c.node and k.kind = 0 and k.tick >= c.tick"
		"  and k.tick <= (select max(q.tick) from (select tick from ava_chunk"
		"   where node = c.node and kind = 0 and tick >= c.tick order by tick limit $3) q)"
		" left join ava_run r on r.run = k.stream order by c.node, k.tick, k.stream";
	struct tailing *t = user;
	struct pg *pg = reader_pg(t->r);
	const char *nodes[TAIL_MACHINES];
	int64_t ticks[TAIL_MACHINES];
	struct pg_batch *b;
	size_t n = 0;

	tail_settle(t);
	for (unsigned i = 0; i < t->nmachines; i++) {
		if (!t->machines[i].name[0])
			continue;
		nodes[n] = t->machines[i].node;
		ticks[n++] = t->machines[i].tick;
	}
	b = pg ? pg_batch_new() : NULL;
	pg_batch_add(b, "select n.node, n.name, coalesce((select max(k.tick) from ava_chunk k"
			" where k.node = n.node and k.kind = 0), 0) + 1,"
			" (n.lease_until > clock_timestamp())::int::bigint, n.epoch"
			" from ava_node n where n.node <> $1");
	pg_batch_text(b, reader_node(t->r));
	pg_batch_add(b, sql);
	pg_batch_texts(b, nodes, n);
	pg_batch_ints(b, ticks, n);
	pg_batch_int(b, TAIL_CHUNKS);
	t->asking = pg && pg_send(pg, b, tail_came, t, NULL) == 0;
	if (!t->asking)
		os_timer_set(t->timer, READER_POLL);
}

int tail_next(struct tailing *t, struct tail_line *out)
{
	if (t->failed)
		return -2;
	while (t->next < t->n) {
		const struct tail_entry *e = &t->entries[t->next++];
		struct tail_machine *m = &t->machines[e->machine];

		m->tick = e->tick;
		m->lines = e->lines;
		*out = (struct tail_line){m->name, t->lines.data + e->at, e->len};
		if (t->next == t->n)
			os_timer_set(t->timer, t->more ? 0 : READER_POLL);
		if (!e->run->wrong)
			return 1;
	}
	return 0;
}

/* ---- life */

int tail_open(struct tailing **out, struct reader *r, struct os_loop *loop, const char *place,
	      void (*wake)(void *user), void *user, struct ava_error *err)
{
	struct tailing *t = calloc(1, sizeof(*t));

	if (t)
		t->timer = os_timer_new(loop, tail_ask, t);
	if (!t || !t->timer) {
		free(t);
		return err_set(err, AVA_ENOMEM, "out of memory");
	}
	t->r = r;
	t->loop = loop;
	t->wake = wake;
	t->user = user;
	strmap_init(&t->runs);
	buf_init(&t->lines, TAIL_BYTES);
	t->begun = *place != '\0';
	if (!tail_read_place(t, place)) {
		tail_close(t);
		return err_set(err, AVA_EINVAL, "the places of other machines are \"%.40s\"",
			       place);
	}
	os_timer_set(t->timer, 0);
	*out = t;
	return 0;
}

void tail_close(struct tailing *t)
{
	struct tail_run *s;
	size_t at = 0;

	if (!t)
		return;
	os_timer_free(t->timer);
	t->timer = NULL;
	t->closed = true;
	if (t->asking) /* tail_came */
		return;
	while ((s = strmap_next(&t->runs, &at)))
		free(s);
	strmap_fini(&t->runs);
	buf_fini(&t->lines);
	free(t->entries);
	free(t);
}
