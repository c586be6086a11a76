/* What goes to PostgreSQL and comes back: values, batches, bounds, the ways to it, and what is
 * refused at once. */
#include "pg_rig.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#if __has_include(<postgresql/libpq-fe.h>)
#include <postgresql/libpq-fe.h>
#endif

#include "cluster/libpq.h"

#ifdef LIBPQ_FE_H
_Static_assert((int)LIBPQ_CONNECTION_OK == CONNECTION_OK, "ConnStatusType");
_Static_assert((int)LIBPQ_POLLING_FAILED == PGRES_POLLING_FAILED &&
		       (int)LIBPQ_POLLING_READING == PGRES_POLLING_READING &&
		       (int)LIBPQ_POLLING_WRITING == PGRES_POLLING_WRITING &&
		       (int)LIBPQ_POLLING_OK == PGRES_POLLING_OK,
	       "PostgresPollingStatusType");
_Static_assert((int)LIBPQ_EMPTY_QUERY == PGRES_EMPTY_QUERY &&
		       (int)LIBPQ_COMMAND_OK == PGRES_COMMAND_OK &&
		       (int)LIBPQ_TUPLES_OK == PGRES_TUPLES_OK &&
		       (int)LIBPQ_FATAL_ERROR == PGRES_FATAL_ERROR &&
		       (int)LIBPQ_PIPELINE_SYNC == PGRES_PIPELINE_SYNC &&
		       (int)LIBPQ_PIPELINE_ABORTED == PGRES_PIPELINE_ABORTED,
	       "ExecStatusType");
_Static_assert(sizeof(struct libpq_option) == sizeof(PQconninfoOption) &&
		       offsetof(struct libpq_option, val) == offsetof(PQconninfoOption, val),
	       "PQconninfoOption");
#endif

UNIT_GROUP(.first = pg_rig_first, .last = pg_rig_last, .before = pg_rig_open,
	   .after = pg_rig_close);

/* ---- values */

static const unsigned char odd[] = {0, 1, '\\', '\'', 0xff, 0, 0x80, '\n'};

static void look_single(const struct pg_answer *a)
{
	int64_t n = 17;

	assert_int_equal(a->n, 2);
	assert_int_equal(pg_rows(&a->results[0]), 1);
	same(&a->results[0], 0, 0, "gr\xc3\xbc\xc3\x9f'e", 8);
	assert_true(pg_int(&a->results[0], 0, 1, &n));
	assert_int_equal(n, INT64_MIN + 5);
	same(&a->results[0], 0, 2, odd, sizeof(odd));
	same(&a->results[0], 0, 3, "", 0);
	same(&a->results[0], 0, 4, "", 0);
	assert_null(pg_text(&a->results[0], 0, 5, NULL));
	assert_null(pg_text(&a->results[0], 0, 6, NULL));
	same(&a->results[0], 0, 7, big, BIG);
	/* No such row, no such column, not a number: told apart from a value. */
	n = 17;
	assert_null(pg_text(&a->results[0], 1, 0, NULL));
	assert_null(pg_text(&a->results[0], 0, 8, NULL));
	assert_false(pg_int(&a->results[0], 0, 0, &n));
	assert_false(pg_int(&a->results[0], 0, 5, &n));
	assert_false(pg_int(&a->results[0], 9, 9, &n));
	assert_int_equal(n, 17);

	assert_true(pg_int(&a->results[1], 0, 0, &n));
	assert_int_equal(n, -7);
	assert_true(pg_int(&a->results[1], 0, 1, &n));
	assert_int_equal(n, -300);
	assert_true(pg_int(&a->results[1], 0, 2, &n));
	assert_int_equal(n, 1);
	assert_true(pg_int(&a->results[1], 0, 3, &n));
	assert_int_equal(n, 70000);
	assert_false(pg_int(&a->results[1], 0, 4, &n)); /* numeric */
}

TEST(values)
{
	struct got g = {.look = look_single};
	struct pg_batch *b = pg_batch_new();
	struct line l;

	line_begin(&l);
	pg_batch_add(b, "select $1, $2, $3, $4, $5, $6, $7, $8");
	pg_batch_text(b, "gr\xc3\xbc\xc3\x9f'e");
	pg_batch_int(b, INT64_MIN + 5);
	pg_batch_bytes(b, odd, sizeof(odd));
	pg_batch_text(b, "");
	pg_batch_bytes(b, "", 0);
	pg_batch_text(b, NULL);
	pg_batch_bytes(b, NULL, 0);
	pg_batch_bytes(b, big, BIG);
	pg_batch_add(b,
		     "select -7::smallint, -300::int, $1::bigint = 4, 70000::bigint, 0::numeric");
	pg_batch_int(b, 4);
	send_it(&l, b, &g);
	TURN_UNTIL(g.times == 1);
	assert_string_equal(g.text, "");
	assert_int_equal(number(&l, "select count(*) from pg_stat_activity"
				    " where application_name = 'ava test'"),
			 1);
	line_close(&l);
}

static void look_arrays(const struct pg_answer *a)
{
	const struct pg_result *r = a->results;
	int64_t n;

	assert_int_equal(pg_rows(&r[0]), 3);
	same(&r[0], 0, 0, "a,\"}", 4);
	assert_null(pg_text(&r[0], 1, 0, NULL));
	same(&r[0], 2, 0, "", 0);
	assert_true(pg_int(&r[0], 0, 1, &n));
	assert_int_equal(n, -1);
	assert_true(pg_int(&r[0], 2, 1, &n));
	assert_int_equal(n, INT64_MAX);
	same(&r[0], 0, 2, odd, sizeof(odd));
	same(&r[0], 1, 2, "", 0);
	assert_null(pg_text(&r[0], 2, 2, NULL));

	assert_int_equal(pg_rows(&r[1]), 0); /* of empty arrays */
	assert_int_equal(pg_rows(&r[2]), 1);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(pg_int(&r[2], 0, i, &n)); /* empty, not null */
		assert_int_equal(n, 0);
	}
	assert_true(pg_int(&r[3], 0, 0, &n));
	assert_int_equal(n, 20 * BIG / 20);
}

TEST(arrays)
{
	const char *texts[] = {"a,\"}", NULL, ""};
	const int64_t ints[] = {-1, 0, INT64_MAX};
	const struct pg_bytes bytes[] = {{odd, sizeof(odd)}, {"", 0}, {NULL, 0}};
	struct pg_bytes parts[20];
	struct got g = {.look = look_arrays};
	struct pg_batch *b = pg_batch_new();
	struct line l;

	for (size_t i = 0; i < 20; i++)
		parts[i] = (struct pg_bytes){big + i * (BIG / 20), BIG / 20};
	line_begin(&l);
	pg_batch_add(b, "select * from unnest($1, $2, $3)");
	pg_batch_texts(b, texts, 3);
	pg_batch_ints(b, ints, 3);
	pg_batch_byteses(b, bytes, 3);
	pg_batch_add(b, "select * from unnest($1, $2, $3)");
	pg_batch_texts(b, NULL, 0);
	pg_batch_ints(b, NULL, 0);
	pg_batch_byteses(b, NULL, 0);
	pg_batch_add(b, "select cardinality($1), cardinality($2), cardinality($3)");
	pg_batch_texts(b, NULL, 0);
	pg_batch_ints(b, NULL, 0);
	pg_batch_byteses(b, NULL, 0);
	pg_batch_add(b, "select sum(length(x))::bigint from unnest($1) x");
	pg_batch_byteses(b, parts, 20);
	send_it(&l, b, &g);
	TURN_UNTIL(g.times == 1);
	assert_string_equal(g.text, "");
	assert_int_equal(g.n, 4);
	line_close(&l);
}

/* ---- batches */

TEST(in_order)
{
	struct got slow = {0}, quick = {0}, none = {0};
	struct line l;

	line_begin(&l);
	send_it(&l, BATCH("select 1 from pg_sleep(0.05)", "select 2::bigint"), &slow);
	send_it(&l, BATCH("select 3::bigint"), &quick);
	os_loop_step(loop, 0); /* both are under way */
	send_it(&l, pg_batch_new(), &none);
	TURN_UNTIL(none.times == 1);
	assert_int_equal(slow.order, 1);
	assert_int_equal(slow.n, 2);
	assert_int_equal(slow.first, 2);
	assert_int_equal(quick.order, 2);
	assert_int_equal(quick.first, 3);
	assert_int_equal(none.order, 3);
	assert_int_equal(none.n, 0);
	assert_int_equal(none.rv, 0);
	line_close(&l);
}

TEST(all_or_none)
{
	struct got bad = {0}, good = {0}, g;
	struct line l;

	line_begin(&l);
	ask(&l, &g, "drop table if exists t");
	ask(&l, &g,
	    "create table t (n bigint primary key, of bigint references t (n)"
	    " deferrable initially deferred)");
	send_it(&l, BATCH("insert into t values (1)", "select 1/0", "insert into t values (2)"),
		&bad);
	send_it(&l, BATCH("insert into t values (3), (4)"), &good);
	TURN_UNTIL(good.times == 1);
	assert_int_equal(bad.times, 1);
	assert_int_equal(bad.rv, AVA_EREJECTED);
	assert_string_equal(bad.text, "the database refuses: division by zero");
	assert_string_equal(bad.sqlstate, "22012");
	assert_int_equal(bad.n, 0);
	assert_int_equal(good.rv, 0);
	assert_string_equal(good.sqlstate, "");
	assert_int_equal(good.affected, 2);
	assert_int_equal(number(&l, "select count(*) from t"), 2);
	assert_int_equal(number(&l, "select min(n) from t"), 3);
	/* A text that does not parse, and what fails in the commit alone. */
	ask(&l, &g, "selec 1");
	assert_string_equal(g.sqlstate, "42601");
	ask(&l, &g, "insert into t values (4)");
	assert_int_equal(g.rv, AVA_EEXIST);
	ask(&l, &g, "insert into t values (5, 77)");
	assert_int_equal(g.rv, AVA_EREJECTED);
	assert_string_equal(g.sqlstate, "23503");
	assert_int_equal(number(&l, "select count(*) from t"), 2);
	/* A word of the server that is no error, and a statement that is none. */
	ask(&l, &g, "do $$ begin raise warning 'dropped'; end $$");
	assert_int_equal(g.rv, 0);
	ask(&l, &g, "");
	assert_int_equal(g.rv, 0);
	assert_int_equal(l.downs, 0);
	line_close(&l);
}

TEST(copy_ends_the_connection)
{
	struct got g;
	struct line l;

	line_begin(&l);
	ask(&l, &g, "copy pg_class to stdout");
	assert_int_equal(g.rv, AVA_EUNKNOWN);
	TURN_UNTIL(l.ups == 2);
	assert_int_equal(number(&l, "select 8::bigint"), 8);
	line_close(&l);
}

TEST(bounds)
{
	struct got g = {0};
	struct pg_batch *b = pg_batch_new();
	struct ava_error err;
	struct line l;
	unsigned sent = 0;

	line_open(&l, server.url, 60000);
	pg_batch_add(b, "select 1");
	assert_int_equal(pg_send(l.pg, b, got_cb, &g, &err), AVA_ECONNECT); /* not yet */
	TURN_UNTIL(l.ups == 1);
	b = pg_batch_new();
	pg_batch_add(b, "select 1");
	for (int i = 0; i <= PG_PARAMS_MAX; i++)
		pg_batch_int(b, i);
	assert_int_equal(pg_send(l.pg, b, got_cb, &g, &err), AVA_ETOOBIG);
	b = pg_batch_new();
	for (int i = 0; i < 70; i++) {
		pg_batch_add(b, "select $1");
		pg_batch_bytes(b, big, BIG);
	}
	assert_int_equal(pg_send(l.pg, b, got_cb, &g, &err), AVA_ETOOBIG);
	assert_int_equal(pg_send(l.pg, NULL, got_cb, &g, &err), AVA_ENOMEM);
	while (pg_send(l.pg, BATCH("select 1"), got_cb, &g, &err) == 0)
		sent++;
	assert_int_equal(err.code, AVA_EBUSY);
	assert_int_equal(sent, PG_WAIT_MAX);
	TURN_UNTIL(g.times == sent);
	ask(&l, &g, "select 1");
	assert_int_equal(g.rv, 0);
	assert_int_equal(l.downs, 0);
	line_close(&l);
}

TEST(out_of_memory)
{
	struct pg_options o = {.url = server.url,
			       .name = "ava test",
			       .timeout_ms = 1000,
			       .up = line_up,
			       .down = line_down};
	struct got g = {0};
	struct line l;
	int rv;

	FAULT_LOOP(k, {
		rv = pg_open(&l.pg, loop, &o, NULL);
		if (rv == 0)
			pg_close(l.pg);
		else
			assert_int_equal(rv, AVA_ENOMEM);
		os_loop_step(loop, 0);
	});
	line_begin(&l);
	FAULT_LOOP(k, {
		struct pg_batch *b = BATCH("select $1, $2", "select 3");

		pg_batch_int(b, 4);
		pg_batch_texts(b, (const char *const[]){"a", "b"}, 2);
		rv = pg_send(l.pg, b, got_cb, &g, NULL);
		if (rv != 0)
			assert_int_equal(rv, AVA_ENOMEM);
	});
	TURN_UNTIL(g.times == 1);
	line_close(&l);
}

/* A port that was free a moment ago, as a text. */
static void free_port(char *port, size_t size)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	socklen_t len = sizeof(any);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&any, &len), 0);
	close(fd);
	snprintf(port, size, "%d", ntohs(any.sin_port));
}

static void look_big(const struct pg_answer *a)
{
	same(&a->results[0], 0, 0, big, BIG);
	same(&a->results[1], 0, 0, big, BIG);
}

/* The same over the Unix socket, TCP and TLS, whose records libpq reads in pieces. */
TEST(ways)
{
	static const char *const ways[] = {"host=%s port=%s",
					   "host=127.0.0.1 port=%2$s sslmode=disable",
					   "host=127.0.0.1 port=%2$s sslmode=require"};
	char port[16], to[192], url[256];

	free_port(port, sizeof(port));
	pg_server_stop(&server);
	assert_true(pg_server_certify(&server));
	assert_true(pg_server_start(&server, (const char *const[]){"-h", "127.0.0.1", "-p", port,
								   "-c", "ssl=on", NULL}));
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		struct got g = {.look = look_big};
		struct pg_batch *b = pg_batch_new();
		struct line l;

		snprintf(to, sizeof(to), ways[i], server.dir, port);
		snprintf(url, sizeof(url), "%s user=ava dbname=postgres", to);
		line_open(&l, url, 60000);
		TURN_UNTIL(l.ups + l.downs > 0);
		assert_int_equal(l.downs, 0);
		assert_true(pg_is_private(l.pg));
		assert_int_equal(number(&l, "select count(*) from pg_stat_ssl where ssl"
					    " and pid = pg_backend_pid()"),
				 i == 2);
		for (int k = 0; k < 2; k++) {
			pg_batch_add(b, "select $1");
			pg_batch_bytes(b, big, BIG);
		}
		send_it(&l, b, &g);
		TURN_UNTIL(g.times == 1);
		assert_int_equal(g.rv, 0);
		line_close(&l);
	}
	pg_server_stop(&server); /* pg_rig_open starts it as it was */
}

/* ---- what is refused at once */

static int refusal(const char *url, const char *library, struct ava_error *err)
{
	struct pg_options o = {.url = url,
			       .name = "ava test",
			       .timeout_ms = 1000,
			       .up = line_up,
			       .down = line_down,
			       .library = library};
	struct pg *pg = NULL;
	int rv = pg_open(&pg, loop, &o, err);

	assert_null(pg);
	return rv;
}

TEST(no_library)
{
	struct ava_error err;

	assert_int_equal(refusal(server.url, "libpq-of-nobody.so.5", &err), AVA_ENOENT);
	assert_string_equal(err.text,
			    "a cluster needs the library libpq-of-nobody.so.5: install the"
			    " package libpq5 (postgresql-libs, libpq) of version 14 or"
			    " newer");
	assert_int_equal(refusal(server.url, "libc.so.6", &err), AVA_ENOENT);
	assert_non_null(strstr(err.text, "the library libc.so.6 has no PQ"));
}

TEST(bad_url)
{
	static const char *const urls[] = {
		"host=db password=hunter2 hunter3",
		"postgres://u:hunter2@[::1/x",
		"postgres://u:hunter2@h/x?hunter3",
		"password=\"hunter2\" hunter\"3",
		"password='hunter2",
		"postgres://u:hunter2%zz@h/x",
	};
	struct ava_error err;

	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		assert_int_equal(refusal(urls[i], NULL, &err), AVA_EINVAL);
		print_message("%s\n", err.text);
		assert_non_null(strstr(err.text, "is not understood: write it as postgresql://"));
		assert_null(strstr(err.text, "hunter"));
	}
}
