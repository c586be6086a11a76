/* One function a statement, a table of them at the end. They read the state that the statement
 * found and change it at once, as no other one is under way. */
#include "pgmap.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"
#include "clockwork.h"
#include "codec/jscan.h"
#include "pgmap_doing.h"

struct pgmap pgmap;

#define MEM_MAX ((size_t)1 << 30)

void pgmap_begin(void)
{
	pgmap = (struct pgmap){.timeline = 1, .clock = sim_span(0, 1000000000)};
	pgmap.now.generation = 1;
	arena_init(&pgmap.mem, MEM_MAX);
	pgmap.mem.chunk = 64u << 10;
}

void pgmap_end(void)
{
	free(pgmap.now.bodies);
	free(pgmap.old.bodies);
	arena_fini(&pgmap.mem);
}

int64_t pgmap_now_ms(void)
{
	return sim.now + pgmap.clock;
}

/* ---- a standby */

void pgmap_lag(void)
{
	free(pgmap.old.bodies);
	pgmap.old = pgmap.now;
	pgmap.old.cap_bodies = pgmap.now.nbodies;
	pgmap.old.bodies = malloc((pgmap.now.nbodies + 1) * sizeof(*pgmap.old.bodies));
	assert(pgmap.old.bodies != NULL);
	if (pgmap.now.nbodies > 0)
		memcpy(pgmap.old.bodies, pgmap.now.bodies,
		       pgmap.now.nbodies * sizeof(*pgmap.old.bodies));
	pgmap.stale = true;
}

void pgmap_fail_over(void)
{
	pgmap.timeline++;
	pgmap.clock += sim_span(-300, 300);
	if (!pgmap.stale)
		return;
	free(pgmap.now.bodies);
	pgmap.now = pgmap.old;
	pgmap.old = (struct pgmap_state){0};
	pgmap.stale = false;
	pgmap.went_back++;
}

/* ---- rows */

struct pgmap_node *pgmap_node(const char *id)
{
	for (unsigned i = 0; i < pgmap.now.nnodes; i++)
		if (strcmp(pgmap.now.nodes[i].id, id) == 0)
			return &pgmap.now.nodes[i];
	return NULL;
}

struct pgmap_run *pgmap_run(const char *id)
{
	for (unsigned i = 0; i < pgmap.now.nruns; i++)
		if (strcmp(pgmap.now.runs[i].id, id) == 0)
			return &pgmap.now.runs[i];
	return NULL;
}

static int by_head(const void *a, const void *b)
{
	const struct pgmap_body *const *x = a, *const *y = b;

	return ((*x)->head > (*y)->head) - ((*x)->head < (*y)->head);
}

const struct pgmap_body **pgmap_chunks(const char *run, int kind, size_t *n)
{
	const struct pgmap_body **list =
		malloc((pgmap.now.nbodies + 1) * sizeof(struct pgmap_body *));

	assert(list != NULL);
	*n = 0;
	for (size_t i = 0; i < pgmap.now.nbodies; i++)
		if (pgmap.now.bodies[i].kind == kind && strcmp(pgmap.now.bodies[i].run, run) == 0)
			list[(*n)++] = &pgmap.now.bodies[i];
	qsort(list, *n, sizeof(struct pgmap_body *), by_head);
	return list;
}

char *pgmap_bytes(const char *run, int kind, size_t *len)
{
	size_t n;
	const struct pgmap_body **list = pgmap_chunks(run, kind, &n);
	char *bytes;

	*len = 0;
	for (size_t i = 0; i < n; i++)
		*len += list[i]->len;
	bytes = malloc(*len + 1);
	assert(bytes != NULL);
	*len = 0;
	for (size_t i = 0; i < n; i++) {
		memcpy(bytes + *len, list[i]->bytes, list[i]->len);
		*len += list[i]->len;
	}
	free(list);
	return bytes;
}

/* Adds a body, or sets that of the same key anew. */
static void put_body(const struct pgmap_body *b)
{
	struct pgmap_state *s = &pgmap.now;
	struct pgmap_body kept = *b;

	kept.bytes = pgmap_keep(b->bytes, b->len);
	kept.path = b->path != NULL ? pgmap_keep(b->path, strlen(b->path)) : NULL;
	for (size_t i = 0; i < s->nbodies; i++) {
		struct pgmap_body *at = &s->bodies[i];

		if (at->kind != b->kind || at->head != b->head || strcmp(at->run, b->run) != 0 ||
		    (b->path != NULL && strcmp(at->path, b->path) != 0))
			continue;
		if (b->kind == 0 && pgmap.went_back == 0 &&
		    (at->len != b->len || memcmp(at->bytes, b->bytes, b->len) != 0))
			pgmap.wrong("%s: two bodies for head %lld", b->run, (long long)b->head);
		*at = kept;
		return;
	}
	if (s->nbodies == s->cap_bodies) {
		s->cap_bodies = s->cap_bodies * 2 + 256;
		s->bodies = realloc(s->bodies, s->cap_bodies * sizeof(*s->bodies));
		assert(s->bodies != NULL);
	}
	s->bodies[s->nbodies++] = kept;
}

/* ---- what statements are made of */

const struct pgmap_value pgmap_null = {.null = true};

bool pgmap_says(const struct pgmap_doing *d, const char *words)
{
	return strstr(d->sql, words) != NULL;
}

bool pgmap_unless(const struct pgmap_doing *d, const char *words, bool holds)
{
	return holds || !pgmap_says(d, words);
}

const char *pgmap_text(const struct pgmap_doing *d, size_t i)
{
	assert(i >= 1 && i <= d->np && d->p[i - 1].s != NULL);
	return d->p[i - 1].s;
}

int64_t pgmap_int(const struct pgmap_doing *d, size_t i)
{
	assert(i >= 1 && i <= d->np);
	return d->p[i - 1].n;
}

const struct pgmap_value *pgmap_list(const struct pgmap_doing *d, size_t i, size_t n)
{
	assert(i >= 1 && i <= d->np && d->p[i - 1].nitems >= n);
	return d->p[i - 1].items;
}

bool pgmap_is_in(const struct pgmap_value *list, const char *text)
{
	for (size_t i = 0; i < list->nitems; i++)
		if (strcmp(list->items[i].s, text) == 0)
			return true;
	return false;
}

struct pgmap_value *pgmap_row(const struct pgmap_doing *d, unsigned cols)
{
	struct pgmap_rows *r = d->out;
	struct pgmap_value *cells =
		arena_get(d->mem, (size_t)(r->n + 1) * cols * sizeof(*r->cells));

	assert(cells != NULL && (r->n == 0 || r->cols == cols));
	if (r->n > 0)
		memcpy(cells, r->cells, (size_t)r->n * cols * sizeof(*cells));
	r->cells = cells;
	r->cols = cols;
	return &cells[r->n++ * cols];
}

struct pgmap_value pgmap_of_bytes(const struct pgmap_doing *d, const void *bytes, size_t len)
{
	return (struct pgmap_value){.s = arena_copy(d->mem, bytes, len), .len = len};
}

struct pgmap_value pgmap_of_text(const struct pgmap_doing *d, const char *text)
{
	return text != NULL ? pgmap_of_bytes(d, text, strlen(text)) : pgmap_null;
}

struct pgmap_value pgmap_of_int(int64_t n)
{
	return (struct pgmap_value){.n = n};
}

void pgmap_row_of_run(const struct pgmap_doing *d, const struct pgmap_run *r, bool mine,
		      int64_t messages, const char *group)
{
	struct pgmap_value *row = pgmap_row(d, 8);

	row[0] = pgmap_of_text(d, r->id);
	row[1] = pgmap_of_int(mine);
	row[2] = pgmap_of_int(r->head);
	row[3] = pgmap_of_bytes(d, r->hash, r->hash_len);
	row[4] = pgmap_of_int(r->state);
	row[5] = pgmap_of_int(messages);
	row[6] = pgmap_of_int(r->moves);
	row[7] = pgmap_of_text(d, group);
}

const char *pgmap_keep(const void *bytes, size_t len)
{
	const char *kept = arena_copy(&pgmap.mem, bytes, len);

	assert(kept != NULL);
	return kept;
}

bool pgmap_alive(const char *node)
{
	const struct pgmap_node *n = pgmap_node(node);

	return n != NULL && n->lease_until > pgmap_now_ms();
}

struct pgmap_node *pgmap_me(const struct pgmap_doing *d)
{
	struct pgmap_node *n = pgmap_node(pgmap_text(d, 1));

	if (n == NULL ||
	    !pgmap_unless(d, "node = $1 and epoch = $2 and", n->epoch == pgmap_int(d, 2)) ||
	    !pgmap_unless(d, "and generation = $3", n->generation == pgmap_int(d, 3)) ||
	    !pgmap_unless(d, "and generation = (select generation from ava_cluster)",
			  n->generation == pgmap.now.generation) ||
	    !pgmap_unless(d, "and lease_until > clock_timestamp()",
			  n->lease_until > pgmap_now_ms()))
		return NULL;
	return n;
}

/* The machine's own row as it is to be when that is written. */
static struct pgmap_node *own_row(const struct pgmap_doing *d)
{
	struct pgmap_node *n = pgmap_node(pgmap_text(d, 1));

	return n != NULL && pgmap_unless(d, "and epoch = $2", n->epoch == pgmap_int(d, 2)) &&
			       pgmap_unless(d, "and generation = $3",
					    n->generation == pgmap_int(d, 3))
		       ? n
		       : NULL;
}

/* ---- cluster.c */

static void do_who(const struct pgmap_doing *d)
{
	struct pgmap_value *row = pgmap_row(d, 3);

	row[0] = pgmap_of_text(d, "the-cluster");
	row[1] = pgmap_of_int(1);
	row[2] = pgmap_of_text(d, "on");
}

static void do_generation(const struct pgmap_doing *d)
{
	if (pgmap_int(d, 2) > 0 &&
	    pgmap_unless(d, "where generation = $1", pgmap.now.generation == pgmap_int(d, 1)))
		pgmap.now.generation++;
}

static void do_join(const struct pgmap_doing *d)
{
	struct pgmap_node *n = pgmap_node(pgmap_text(d, 1));
	struct pgmap_value *row;

	if (n == NULL) {
		assert(pgmap.now.nnodes < PGMAP_NODES);
		n = &pgmap.now.nodes[pgmap.now.nnodes++];
		*n = (struct pgmap_node){.epoch = 1};
		snprintf(n->id, sizeof(n->id), "%s", pgmap_text(d, 1));
	} else if ((strcmp(n->token, pgmap_text(d, 7)) != 0 ||
		    strcmp(n->home, pgmap_text(d, 9)) != 0) &&
		   (pgmap_unless(d, "or n.lease_until < clock_timestamp()", false) ||
		    n->lease_until >= pgmap_now_ms())) {
		return;
	} else if (strstr(d->sql, "greatest(n.epoch, $8) + 1") != NULL) {
		n->epoch = MAX(n->epoch, pgmap_int(d, 8)) + 1;
	} else {
		n->epoch++;
	}
	n->generation = pgmap.now.generation;
	n->lease_until = pgmap_now_ms() + pgmap_int(d, 2);
	n->draining = false;
	snprintf(n->token, sizeof(n->token), "%s", pgmap_text(d, 3));
	snprintf(n->name, sizeof(n->name), "%s", pgmap_text(d, 4));
	snprintf(n->home, sizeof(n->home), "%s", pgmap_text(d, 9));
	row = pgmap_row(d, 2);
	row[0] = pgmap_of_int(n->epoch);
	row[1] = pgmap_of_int(n->generation);
}

static void do_renew(const struct pgmap_doing *d)
{
	struct pgmap_node *n = own_row(d);

	if (n == NULL || !pgmap_unless(d, "and generation = (select generation from ava_cluster)",
				       n->generation == pgmap.now.generation))
		return;
	n->lease_until = pgmap_now_ms() + pgmap_int(d, 4);
	n->draining = n->draining && pgmap_unless(d, "draining and $5 > 0", pgmap_int(d, 5) > 0);
	pgmap_row(d, 1)[0] = pgmap_of_int(1);
	d->out->affected = 1;
}

static void do_epoch(const struct pgmap_doing *d)
{
	const struct pgmap_node *n = pgmap_node(pgmap_text(d, 1));

	if (n != NULL)
		pgmap_row(d, 1)[0] = pgmap_of_int(n->epoch);
}

static void do_timeline(const struct pgmap_doing *d)
{
	char text[32];

	snprintf(text, sizeof(text), "7000000000000000001.%08X", pgmap.timeline);
	pgmap_row(d, 1)[0] = pgmap_of_text(d, text);
}

static void do_give_back(const struct pgmap_doing *d)
{
	struct pgmap_node *n = own_row(d);

	if (n == NULL)
		return;
	n->lease_until = INT64_MIN;
	n->draining = n->draining || strstr(d->sql, "draining = true") != NULL;
	d->out->affected = 1;
}

/* ---- gate.c */

static void do_fresh(const struct pgmap_doing *d)
{
	const struct pgmap_node *me = pgmap_me(d);
	size_t n = d->p[3].nitems;
	const struct pgmap_value *ids = pgmap_list(d, 4, n), *groups = pgmap_list(d, 5, n),
				 *places = pgmap_list(d, 6, n), *lines = pgmap_list(d, 7, n);

	for (size_t i = 0; me != NULL && i < n; i++) {
		struct pgmap_run *r;

		if (pgmap_run(ids[i].s) != NULL)
			continue;
		assert(pgmap.now.nruns < PGMAP_RUNS);
		r = &pgmap.now.runs[pgmap.now.nruns++];
		*r = (struct pgmap_run){.epoch = pgmap_int(d, 2),
					.place = pgmap_keep(places[i].s, places[i].len),
					.line = pgmap_keep(lines[i].s, lines[i].len),
					.line_len = lines[i].len};
		snprintf(r->id, sizeof(r->id), "%s", ids[i].s);
		snprintf(r->group, sizeof(r->group), "%s", groups[i].s);
		snprintf(r->node, sizeof(r->node), "%s", me->id);
	}
}

/* The lines between two heads lead from the one hash to the other. */
static void check_chain(const struct pgmap_run *r, const char *bytes, size_t len,
			const struct pgmap_value *hash)
{
	unsigned char at[32] = {0};
	size_t from = 0, n;
	const char *line;

	if (r->hash_len == sizeof(at))
		memcpy(at, r->hash, sizeof(at));
	while (jsonl_next(bytes, len, &from, &line, &n) == 1) {
		struct hash_sha256 h;

		hash_sha256_init(&h);
		hash_sha256_add(&h, at, sizeof(at));
		hash_sha256_add(&h, line, n + 1);
		hash_sha256_end(&h, at);
	}
	if (from != len || (len > 0 && (hash->len != sizeof(at) || memcmp(hash->s, at, 32) != 0)))
		pgmap.wrong("%s: the chain does not hold at head %lld", r->id, (long long)r->head);
}

static const struct pgmap_value *chunk_of(const struct pgmap_doing *d, const char *run,
					  int64_t head)
{
	size_t n = d->p[9].nitems;
	const struct pgmap_value *ids = pgmap_list(d, 10, n), *kinds = pgmap_list(d, 11, n),
				 *heads = pgmap_list(d, 12, n);

	for (size_t i = 0; i < n; i++)
		if (kinds[i].n == 0 && heads[i].n == head && strcmp(ids[i].s, run) == 0)
			return &pgmap_list(d, 13, n)[i];
	return NULL;
}

static bool move_head(const struct pgmap_doing *d, size_t i)
{
	size_t n = d->p[3].nitems;
	int64_t prev = pgmap_list(d, 5, n)[i].n, head = pgmap_list(d, 6, n)[i].n,
		state = pgmap_list(d, 8, n)[i].n;
	const struct pgmap_value *hash = &pgmap_list(d, 7, n)[i], *chunk;
	struct pgmap_run *r = pgmap_run(pgmap_list(d, 4, n)[i].s);

	if (r == NULL ||
	    !pgmap_unless(d, "when r.node = $1", strcmp(r->node, pgmap_text(d, 1)) == 0) ||
	    !pgmap_unless(d, "and r.epoch = $2", r->epoch == pgmap_int(d, 2)) ||
	    !pgmap_unless(d, "and r.head = w.prev", r->head == prev))
		return false;
	chunk = chunk_of(d, r->id, head);
	if (r->head != prev || head - prev != (int64_t)(chunk != NULL ? chunk->len : 0))
		pgmap.wrong("%s: from head %lld (it said %lld) to %lld with %zu bytes", r->id,
			    (long long)r->head, (long long)prev, (long long)head,
			    chunk != NULL ? chunk->len : 0);
	else if (chunk != NULL)
		check_chain(r, chunk->s, chunk->len, hash);
	if (r->state == 9 && (head != prev || state != 9))
		pgmap.wrong("%s: it goes on behind its end", r->id);
	r->head = head;
	r->hash_len = MIN(hash->len, sizeof(r->hash));
	memcpy(r->hash, hash->s, r->hash_len);
	r->turn = MAX(r->turn, pgmap_list(d, 18, n)[i].n);
	r->tokens += pgmap_list(d, 19, n)[i].n;
	r->micro += pgmap_list(d, 20, n)[i].n;
	if (r->state != 9 && state == 9)
		r->ended_ms = sim.now;
	if (r->state != 8 || !pgmap_says(d, "case when r.state = 8 then 8"))
		r->state = state;
	if (pgmap_list(d, 9, n)[i].n > 0 && pgmap_says(d, "case when w.calm > 0 then 0"))
		r->takes = 0;
	return true;
}

static void do_flush(const struct pgmap_doing *d)
{
	const struct pgmap_node *me = pgmap_me(d);
	size_t nruns = d->p[3].nitems, nchunks = d->p[9].nitems, nfiles = d->p[13].nitems;
	const struct pgmap_value *runs = pgmap_list(d, 4, nruns);
	int64_t moved = 0;
	struct pgmap_value *row;

	for (size_t i = 0; me != NULL && i < nruns; i++) {
		if (!move_head(d, i))
			continue;
		moved++;
		for (size_t k = 0; k < nchunks; k++) {
			struct pgmap_body b = {.kind = (int)pgmap_list(d, 11, nchunks)[k].n,
					       .head = pgmap_list(d, 12, nchunks)[k].n,
					       .bytes = pgmap_list(d, 13, nchunks)[k].s,
					       .len = pgmap_list(d, 13, nchunks)[k].len,
					       .tick = pgmap_int(d, 17)};

			snprintf(b.run, sizeof(b.run), "%s", runs[i].s);
			snprintf(b.node, sizeof(b.node), "%s", me->id);
			if (strcmp(pgmap_list(d, 10, nchunks)[k].s, b.run) == 0)
				put_body(&b);
		}
	}
	for (size_t i = 0; me != NULL && i < nfiles; i++) {
		struct pgmap_body b = {.kind = 2,
				       .path = pgmap_list(d, 15, nfiles)[i].s,
				       .bytes = pgmap_list(d, 16, nfiles)[i].s,
				       .len = pgmap_list(d, 16, nfiles)[i].len};

		snprintf(b.run, sizeof(b.run), "%s", pgmap_list(d, 14, nfiles)[i].s);
		put_body(&b);
	}
	pgmap.flushes += me != NULL;
	row = pgmap_row(d, 2);
	row[0] = pgmap_of_int(me != NULL);
	row[1] = pgmap_of_int(moved);
}

/* ---- take.c */

static void do_claim(const struct pgmap_doing *d)
{
	struct pgmap_run *r = pgmap_run(pgmap_text(d, 4));

	if (pgmap_me(d) == NULL || r == NULL ||
	    !pgmap_unless(d, "and moves < $5", r->moves < pgmap_int(d, 5)) ||
	    !pgmap_unless(d, "and head = $6", r->head == pgmap_int(d, 6)) ||
	    !pgmap_unless(d, "and head_hash = $7",
			  d->p[6].len == r->hash_len &&
				  memcmp(d->p[6].s, r->hash, r->hash_len) == 0))
		return;
	snprintf(r->node, sizeof(r->node), "%s", pgmap_text(d, 1));
	r->epoch = pgmap_int(d, 2);
	r->moves = pgmap_int(d, 5);
}

static void do_spec(const struct pgmap_doing *d)
{
	const struct pgmap_run *r = pgmap_run(pgmap_text(d, 1));

	if (r != NULL)
		pgmap_row(d, 1)[0] = pgmap_of_bytes(d, r->line, r->line_len);
}

static void do_chunks(const struct pgmap_doing *d)
{
	for (int kind = 0; kind < 2; kind++) {
		size_t n;
		const struct pgmap_body **list = pgmap_chunks(pgmap_text(d, 1), kind, &n);

		for (size_t i = 0; i < n; i++) {
			struct pgmap_value *row = pgmap_row(d, 2);

			row[0] = pgmap_of_int(kind);
			row[1] = pgmap_of_bytes(d, list[i]->bytes, list[i]->len);
		}
		free(list);
	}
}

static void do_files(const struct pgmap_doing *d)
{
	bool heads = strstr(d->sql, "path = any($1)") != NULL;

	for (size_t i = 0; i < pgmap.now.nbodies; i++) {
		const struct pgmap_body *b = &pgmap.now.bodies[i];
		struct pgmap_value *row;

		if (b->kind != 2 || (heads ? b->run[0] != '\0' || !pgmap_is_in(&d->p[0], b->path)
					   : strcmp(b->run, pgmap_text(d, 1)) != 0))
			continue;
		row = pgmap_row(d, 2);
		row[0] = pgmap_of_text(d, b->path);
		row[1] = pgmap_of_bytes(d, b->bytes, b->len);
	}
}

static void do_own_runs(const struct pgmap_doing *d)
{
	for (unsigned i = 0; i < pgmap.now.nruns; i++) {
		struct pgmap_run *r = &pgmap.now.runs[i];

		if (strcmp(r->node, pgmap_text(d, 1)) == 0 &&
		    pgmap_unless(d, "and epoch < $2", r->epoch < pgmap_int(d, 2)) &&
		    (r->state < 9 || pgmap_is_in(&d->p[2], r->id)))
			r->epoch = pgmap_int(d, 2);
	}
}

/* No machine of a world has cluster.folders: each place stays. */
static void do_place(const struct pgmap_doing *d)
{
	for (unsigned i = 0; pgmap_me(d) != NULL && i < pgmap.now.nruns; i++) {
		const struct pgmap_run *r = &pgmap.now.runs[i];

		if (pgmap_is_in(&d->p[3], r->id) && strcmp(r->place, pgmap_text(d, 5)) != 0)
			pgmap.wrong("%s: its place %s became %s", r->id, r->place,
				    pgmap_text(d, 5));
	}
	pgmap_row(d, 1)[0] = pgmap_of_int(pgmap_me(d) != NULL);
}

static int64_t messages_head(const char *run)
{
	int64_t head = 0;

	for (size_t i = 0; i < pgmap.now.nbodies; i++)
		if (pgmap.now.bodies[i].kind == 1 && strcmp(pgmap.now.bodies[i].run, run) == 0)
			head = MAX(head, pgmap.now.bodies[i].head);
	return head;
}

/* Is it a run of a group of which this machine has one that goes on? */
static bool is_with(const struct pgmap_run *r, const char *node)
{
	for (unsigned i = 0; r->group[0] != '\0' && i < pgmap.now.nruns; i++) {
		const struct pgmap_run *o = &pgmap.now.runs[i];

		if (o->state < 9 && strcmp(o->node, node) == 0 && strcmp(o->group, r->group) == 0)
			return true;
	}
	return false;
}

static void do_look(const struct pgmap_doing *d)
{
	const char *node = pgmap_text(d, 1);

	for (unsigned i = 0; i < pgmap.now.nruns; i++) {
		const struct pgmap_run *r = &pgmap.now.runs[i];
		bool mine = strcmp(r->node, node) == 0;

		if ((mine && r->state < 9) || pgmap_is_in(&d->p[1], r->id) ||
		    (pgmap_says(d, "o.grp = s.grp and o.grp <> ''") && is_with(r, node)))
			pgmap_row_of_run(d, r, mine, messages_head(r->id), r->group);
	}
}

static void do_unknown(const struct pgmap_doing *d)
{
	for (unsigned i = 0; i < pgmap.now.nruns && d->out->n == 0; i++) {
		const struct pgmap_run *r = &pgmap.now.runs[i];

		if (r->state == 0 && strcmp(r->node, pgmap_text(d, 1)) == 0 &&
		    !pgmap_is_in(&d->p[1], r->id))
			pgmap_row(d, 1)[0] = pgmap_of_int(1);
	}
}

static void do_tick(const struct pgmap_doing *d)
{
	struct pgmap_value *cell = pgmap_row(d, 1);

	*cell = pgmap_null;
	for (size_t i = 0; i < pgmap.now.nbodies; i++) {
		const struct pgmap_body *b = &pgmap.now.bodies[i];

		if (b->kind == 0 && strcmp(b->node, pgmap_text(d, 1)) == 0 &&
		    (cell->null || b->tick > cell->n))
			*cell = pgmap_of_int(b->tick);
	}
}

static void do_fence(const struct pgmap_doing *d)
{
	for (unsigned i = 0; pgmap_me(d) && pgmap_int(d, 5) > 0 && i < pgmap.now.nnodes; i++) {
		struct pgmap_node *n = &pgmap.now.nodes[i];
		struct pgmap_value *row;

		if (!pgmap_unless(d, "where n.lease_until < clock_timestamp() - $4",
				  n->lease_until < pgmap_now_ms() - pgmap_int(d, 4)) ||
		    n->lease_until == INT64_MIN || strcmp(n->id, pgmap_text(d, 1)) == 0)
			continue;
		n->epoch += strstr(d->sql, "epoch = n.epoch + 1") != NULL;
		n->lease_until = INT64_MIN;
		row = pgmap_row(d, 2);
		row[0] = pgmap_of_text(d, n->id);
		row[1] = pgmap_of_text(d, n->name);
	}
}

/* Its lease was ended, or it has left. */
static bool is_gone(const struct pgmap_doing *d, const char *node)
{
	const struct pgmap_node *n = pgmap_node(node);

	return n != NULL ? n->lease_until == INT64_MIN : pgmap_says(d, "left join ava_node");
}

static void do_poison(const struct pgmap_doing *d)
{
	for (unsigned i = 0; pgmap_me(d) && i < pgmap.now.nruns; i++) {
		struct pgmap_run *r = &pgmap.now.runs[i];

		if (r->state != 0 || r->takes < pgmap_int(d, 4) || !is_gone(d, r->node))
			continue;
		r->state = 8;
		pgmap_row(d, 1)[0] = pgmap_of_bytes(d, r->line, r->line_len);
	}
}

/* TAKE_FREE_SQL */
static bool is_free(const struct pgmap_doing *d, const struct pgmap_run *r)
{
	bool free = pgmap_unless(d, "s.place = 'anywhere'", strcmp(r->place, "anywhere") == 0);

	for (unsigned i = 0; r->group[0] != '\0' && i < pgmap.now.nruns; i++) {
		const struct pgmap_run *o = &pgmap.now.runs[i];

		if (strcmp(o->group, r->group) == 0)
			free = free && pgmap_unless(d, "o.place <> 'anywhere'",
						    strcmp(o->place, "anywhere") == 0);
	}
	return free;
}

static int by_id(const void *a, const void *b)
{
	const struct pgmap_run *const *x = a, *const *y = b;

	return strcmp((*x)->id, (*y)->id);
}

/* The runs of `pick`, and those of their groups. */
static size_t take_pick(const struct pgmap_doing *d, struct pgmap_run *some[PGMAP_RUNS])
{
	size_t n = 0, picked;

	for (unsigned i = 0; i < pgmap.now.nruns; i++) {
		struct pgmap_run *r = &pgmap.now.runs[i];

		if (r->state == 0 && pgmap_unless(d, "q.takes < $4", r->takes < pgmap_int(d, 4)) &&
		    pgmap_unless(d, "q.node <> $1", strcmp(r->node, pgmap_text(d, 1)) != 0) &&
		    pgmap_unless(d, "coalesce(n.lease_until, '-infinity') = '-infinity'",
				 is_gone(d, r->node)) &&
		    is_free(d, r))
			some[n++] = r;
	}
	qsort(some, n, sizeof(*some), by_id);
	picked = MIN(n, (size_t)pgmap_int(d, 5));
	n = picked;
	for (unsigned i = 0; pgmap_says(d, "join pick using (grp)") && i < pgmap.now.nruns; i++) {
		struct pgmap_run *r = &pgmap.now.runs[i];
		bool with = false;

		for (size_t k = 0; k < picked; k++)
			with = with || (some[k] != r && r->group[0] != '\0' &&
					strcmp(some[k]->group, r->group) == 0);
		for (size_t k = 0; k < n; k++)
			with = with && some[k] != r;
		if (with)
			some[n++] = r;
	}
	return n;
}

static void do_take(const struct pgmap_doing *d)
{
	struct pgmap_run *some[PGMAP_RUNS];
	size_t n;

	if (pgmap_me(d) == NULL || !pgmap_unless(d, "and $6 > 0", pgmap_int(d, 6) > 0))
		return;
	n = take_pick(d, some);
	for (size_t i = 0; i < n; i++) {
		struct pgmap_run *r = some[i];
		const struct pgmap_node *was = pgmap_node(r->node);

		if (!pgmap_unless(d, "r.node <> $1", strcmp(r->node, pgmap_text(d, 1)) != 0) ||
		    !pgmap_unless(d, "r.node not in (select node from ava_node",
				  was == NULL || was->lease_until == INT64_MIN))
			continue;
		r->takes += was != NULL && !was->draining;
		r->moves++;
		r->epoch = pgmap_int(d, 2);
		snprintf(r->node, sizeof(r->node), "%s", pgmap_text(d, 1));
		pgmap_row_of_run(d, r, true, 0, r->group);
		pgmap.takes++;
	}
}

/* ---- leave.c */

static void do_drain(const struct pgmap_doing *d)
{
	struct pgmap_node *n = own_row(d);

	if (n == NULL)
		return;
	n->draining = true;
	d->out->affected = 1;
}

static void do_bound(const struct pgmap_doing *d)
{
	for (unsigned i = 0; i < pgmap.now.nruns; i++) {
		const struct pgmap_run *r = &pgmap.now.runs[i];

		if (r->state == 0 && strcmp(r->node, pgmap_text(d, 1)) == 0 && !is_free(d, r) &&
		    d->out->n < pgmap_int(d, 2))
			pgmap_row(d, 1)[0] = pgmap_of_text(d, r->id);
	}
}

static int64_t live_runs(const char *node)
{
	int64_t n = 0;

	for (unsigned i = 0; i < pgmap.now.nruns; i++)
		n += pgmap.now.runs[i].state == 0 && strcmp(pgmap.now.runs[i].node, node) == 0;
	return n;
}

static void do_others(const struct pgmap_doing *d)
{
	struct pgmap_value *row = pgmap_row(d, 2);
	int64_t others = 0;

	for (unsigned i = 0; i < pgmap.now.nnodes; i++) {
		const struct pgmap_node *n = &pgmap.now.nodes[i];

		others += strcmp(n->id, pgmap_text(d, 1)) != 0 && !n->draining &&
			  n->lease_until > pgmap_now_ms();
	}
	row[0] = pgmap_of_int(live_runs(pgmap_text(d, 1)));
	row[1] = pgmap_of_int(others);
}

static void do_delete(const struct pgmap_doing *d)
{
	struct pgmap_node *n = own_row(d);

	if (n == NULL || !pgmap_unless(d, "not exists (select 1 from ava_run where node = $1",
				       live_runs(pgmap_text(d, 1)) == 0))
		return;
	*n = pgmap.now.nodes[--pgmap.now.nnodes];
	d->out->affected = 1;
}

/* ---- all of them */

static const struct pgmap_known pgmap_known[] = {
	{"select id, schema, current_setting('fsync') from ava_cluster", do_who, NULL},
	{"update ava_cluster set generation = generation + 1", do_generation, NULL},
	{"insert into ava_node as n (", do_join, NULL},
	{"update ava_node set lease_until = clock_timestamp() + $4", do_renew, NULL},
	{"select epoch from ava_node where node = $1", do_epoch, NULL},
	{"select system_identifier::text", do_timeline, NULL},
	{"update ava_node set lease_until = '-infinity'", do_give_back, NULL},
	{"with me as (", do_fresh, " runs as (insert into ava_run"},
	{"with me as (", do_flush, " moved as (update ava_run r set head"},
	{"with me as (", do_claim, " update ava_run set node = $1, epoch = $2, moves = $5 from me"},
	{"with me as (", do_take, " update ava_run r set node = $1, epoch = $2, moves = moves + 1"},
	{"select convert_from(line, 'UTF8') from ava_spec where run = $1", do_spec, NULL},
	{"select kind, body from ava_chunk where stream = $1", do_chunks, NULL},
	{"select path, body from ava_file where run = ", do_files, NULL},
	{"update ava_run set epoch = $2 where node = $1", do_own_runs, NULL},
	{"with me as (", do_place, " told as (update ava_spec s set place = $5"},
	{"select r.run, (r.node = $1)::int::bigint, r.head, r.head_hash", do_look, NULL},
	{"select 1 from ava_run where node = $1 and state = 0", do_unknown, NULL},
	{"select max(tick) from ava_chunk where node = $1 and kind = 0", do_tick, NULL},
	{"with me as (", do_fence, " update ava_node n set epoch = n.epoch + 1, lease_until"},
	{"with me as (", do_poison, " update ava_run r set state = 8 from me where r.state = 0"},
	{"update ava_node set draining = true where", do_drain, NULL},
	{"select r.run from ava_run r join ava_spec s using (run)", do_bound, NULL},
	{"select (select count(*) from ava_run where node = $1 and state = 0)", do_others, NULL},
	{"delete from ava_node where node = $1", do_delete, NULL},
};

static const struct pgmap_known *find_known(const char *sql, const struct pgmap_known *list,
					    size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(sql, list[i].begins, strlen(list[i].begins)) == 0 &&
		    (list[i].has == NULL || strstr(sql, list[i].has) != NULL))
			return &list[i];
	return NULL;
}

void pgmap_commit(const struct pgmap_statement *statements, size_t n, struct pgmap_rows *rows,
		  struct arena *mem)
{
	pgmap.commits++;
	for (size_t i = 0; i < n; i++) {
		struct pgmap_doing d = {.sql = statements[i].sql,
					.p = statements[i].params,
					.np = statements[i].nparams,
					.out = &rows[i],
					.mem = mem};
		const struct pgmap_known *k =
			find_known(d.sql, pgmap_known, ARRAY_LEN(pgmap_known));

		if (k == NULL)
			k = find_known(d.sql, pgmap_share_known, pgmap_nshare_known);
		if (k == NULL) {
			pgmap.wrong("test/sim does not know the statement: %.120s", d.sql);
			return;
		}
		k->run(&d);
	}
}
