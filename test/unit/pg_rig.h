/* Connections to a PostgreSQL server of the group's own, with what became of them and of their
 * batches. */
#ifndef PG_RIG_H
#define PG_RIG_H

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/util.h"
#include "cluster/pg.h"
#include "os/loop.h"
#include "pg_server.h"

static struct pg_server server; /* of the group; it runs between tests */

struct line {
	struct pg *pg;
	unsigned ups, downs;
	struct ava_error why;
	bool closes; /* the next `down` closes it */
};

/* An answer that came, or will. */
struct got {
	unsigned times, order; /* order: the how-manieth of the test */
	int rv;
	char text[512], sqlstate[8];
	unsigned n, rows;
	int64_t affected, first; /* of the last result; first: its first cell */
	char cell[64];           /* the same as text */
	void (*look)(const struct pg_answer *a);
	struct line *close; /* by the callback */
};

#define BIG 1000000
static unsigned char big[BIG];

static struct os_loop *loop;
static unsigned answered;
static struct pg *open_ones[4]; /* of a test that fails as well */

static inline int pg_rig_first(void **state)
{
	(void)state;
	if (!pg_server_there()) {
		print_message("skipped: no PostgreSQL server is installed (postgresql)\n");
		exit(77);
	}
	for (size_t i = 0; i < BIG; i++)
		big[i] = (unsigned char)(i * 7 + i / 256);
	if (!pg_server_make(&server))
		return -1;
	return pg_server_start(&server, NULL) ? 0 : -1;
}

static inline int pg_rig_last(void **state)
{
	(void)state;
	pg_server_remove(&server);
	return 0;
}

static inline int pg_rig_open(void **state)
{
	(void)state;
	answered = 0;
	loop = os_loop_new(NULL);
	if (server.pid == 0 && !pg_server_start(&server, NULL))
		return -1;
	return loop ? 0 : -1;
}

static inline int pg_rig_close(void **state)
{
	(void)state;
	test_clock_go();
	for (size_t i = 0; i < ARRAY_LEN(open_ones); i++)
		pg_close(open_ones[i]);
	memset(open_ones, 0, sizeof(open_ones));
	os_loop_free(loop);
	return 0;
}

/* Turn the loop until it is so; the time is the machine's, also while the test's clock stands. */
#define TURN_UNTIL(what)                                                                           \
	for (time_t turn_end = time(NULL) + 60; !(what); os_loop_step(loop, 100))                  \
		if (time(NULL) > turn_end)                                                         \
	fail_msg("not within a minute: %s", #what)

static inline void line_close(struct line *l)
{
	for (size_t i = 0; i < ARRAY_LEN(open_ones); i++)
		if (open_ones[i] == l->pg)
			open_ones[i] = NULL;
	pg_close(l->pg);
}

static inline void line_up(void *user)
{
	((struct line *)user)->ups++;
}

static inline void line_down(const struct ava_error *why, void *user)
{
	struct line *l = user;

	l->downs++;
	l->why = *why;
	assert_false(pg_is_up(l->pg));
	assert_false(pg_is_private(l->pg));
	if (l->closes)
		line_close(l);
}

static inline void line_open(struct line *l, const char *url, int64_t timeout_ms)
{
	struct pg_options o = {.url = url,
			       .name = "ava test",
			       .timeout_ms = timeout_ms,
			       .up = line_up,
			       .down = line_down,
			       .user = l};
	struct ava_error err;

	*l = (struct line){0};
	if (pg_open(&l->pg, loop, &o, &err) != 0)
		fail_msg("%s", err.text);
	assert_false(pg_is_up(l->pg));
	for (size_t i = 0; i < ARRAY_LEN(open_ones); i++)
		if (!open_ones[i]) {
			open_ones[i] = l->pg;
			return;
		}
	fail_msg("too many at once");
}

static inline void line_begin(struct line *l)
{
	line_open(l, server.url, 60000);
	TURN_UNTIL(l->ups == 1);
	assert_true(pg_is_up(l->pg));
	assert_int_equal(l->downs, 0);
}

static inline void got_cb(const struct pg_answer *a, void *user)
{
	struct got *g = user;

	g->times++;
	g->order = ++answered;
	g->rv = a->rv;
	snprintf(g->text, sizeof(g->text), "%s", a->err ? a->err->text : "");
	snprintf(g->sqlstate, sizeof(g->sqlstate), "%s", a->sqlstate);
	g->n = a->n;
	assert_int_equal(a->rv == 0, a->err == NULL);
	if (a->n > 0) {
		const struct pg_result *last = &a->results[a->n - 1];
		const char *cell = pg_text(last, 0, 0, NULL);

		g->rows = pg_rows(last);
		g->affected = pg_affected(last);
		pg_int(last, 0, 0, &g->first);
		snprintf(g->cell, sizeof(g->cell), "%s", cell ? cell : "(null)");
	}
	if (g->look)
		g->look(a);
	if (g->close)
		line_close(g->close);
}

static inline void send_it(struct line *l, struct pg_batch *b, struct got *g)
{
	struct ava_error err;

	if (pg_send(l->pg, b, got_cb, g, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(g->times, 0); /* never from pg_send */
}

/* One statement a text, up to NULL. */
static inline struct pg_batch *batch_of(const char *const *sql)
{
	struct pg_batch *b = pg_batch_new();

	for (; *sql; sql++)
		pg_batch_add(b, *sql);
	return b;
}
#define BATCH(...) batch_of((const char *const[]){__VA_ARGS__, NULL})

static inline void ask(struct line *l, struct got *g, const char *sql)
{
	*g = (struct got){0};
	send_it(l, BATCH(sql), g);
	TURN_UNTIL(g->times == 1);
}

static inline int64_t number(struct line *l, const char *sql)
{
	struct got g;

	ask(l, &g, sql);
	assert_string_equal(g.text, "");
	assert_int_equal(g.rows, 1);
	return g.first;
}

static inline void same(const struct pg_result *r, unsigned row, unsigned col, const void *want,
			size_t want_len)
{
	size_t len = 0;
	const char *have = pg_text(r, row, col, &len);

	assert_non_null(have);
	assert_int_equal(len, want_len);
	assert_memory_equal(have, want, len);
	assert_int_equal(have[len], '\0');
}

#endif
