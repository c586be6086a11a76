/* A connection to PostgreSQL that goes and comes: servers that die, send us away, are silent, lie.
 */
#include "pg_rig.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

UNIT_GROUP(.first = pg_rig_first, .last = pg_rig_last, .before = pg_rig_open,
	   .after = pg_rig_close);

/* ---- the connection goes */

TEST(server_dies)
{
	struct got under_way = {0}, behind = {0}, waiting = {0}, g;
	struct ava_error err;
	struct line l;

	line_begin(&l);
	ask(&l, &g, "create table if not exists kept (n bigint)");
	send_it(&l, BATCH("insert into kept values (1)", "select pg_sleep(60)"), &under_way);
	send_it(&l, BATCH("select 1"), &behind);
	os_loop_step(loop, 0);
	pg_server_kill(&server);
	send_it(&l, BATCH("select 1"), &waiting);
	TURN_UNTIL(l.downs == 1);
	assert_int_equal(under_way.times, 1);
	assert_int_equal(under_way.rv, AVA_EUNKNOWN);
	assert_int_equal(behind.times, 1);
	assert_int_equal(behind.rv, AVA_EUNKNOWN);
	assert_int_equal(waiting.times, 1);
	assert_int_equal(waiting.rv, AVA_EUNKNOWN);
	assert_string_equal(waiting.sqlstate, "");
	assert_int_equal(behind.order, under_way.order + 1);
	assert_int_equal(waiting.order, behind.order + 1);
	assert_int_equal(l.why.code, AVA_ECONNECT);
	print_message("%s\n", l.why.text);
	assert_string_not_equal(l.why.text, "");
	assert_int_equal(pg_send(l.pg, BATCH("select 1"), got_cb, &g, &err), AVA_ECONNECT);
	TURN_UNTIL(l.downs == 2); /* nobody there */
	assert_true(pg_server_start(&server, NULL));
	TURN_UNTIL(l.ups == 2);
	assert_int_equal(number(&l, "select count(*) from kept"), 0);
	assert_int_equal(under_way.times + behind.times + waiting.times, 3);
	line_close(&l);
}

TEST(sent_away)
{
	struct line l, other;
	struct got g = {0};
	char kill_it[96];
	int64_t pid;

	line_begin(&l);
	line_begin(&other);
	/* Idle, then with a batch under way. */
	for (unsigned i = 1; i <= 2; i++) {
		pid = number(&l, "select pg_backend_pid()");
		snprintf(kill_it, sizeof(kill_it), "select pg_terminate_backend(%d)", (int)pid);
		if (i == 2) {
			send_it(&l, BATCH("select pg_sleep(60)"), &g);
			os_loop_step(loop, 0);
			TURN_UNTIL(number(&other, "select count(*) from pg_stat_activity"
						  " where wait_event = 'PgSleep'") == 1);
		}
		assert_int_equal(number(&other, kill_it), 1);
		TURN_UNTIL(l.ups == i + 1);
		assert_int_equal(l.downs, i);
		assert_int_equal(l.why.code, AVA_ECONNECT);
		assert_string_equal(l.why.text, "the server ended the connection: terminating"
						" connection due to administrator command");
		assert_int_not_equal(number(&l, "select pg_backend_pid()"), pid);
	}
	assert_int_equal(g.times, 1);
	assert_int_equal(g.rv, AVA_EUNKNOWN);
	assert_string_equal(g.text,
			    "the database has not answered, and may have done it: the server ended"
			    " the connection: terminating connection due to administrator command");
	assert_int_equal(other.downs, 0);
	line_close(&l);
	line_close(&other);
}

TEST(patience)
{
	struct got first = {0}, second = {0};
	struct line l;

	line_open(&l, server.url, 5000);
	TURN_UNTIL(l.ups == 1);
	test_clock_stop();
	os_loop_step(loop, 0);
	send_it(&l, BATCH("select pg_sleep(60)"), &first);
	os_loop_step(loop, 0);
	test_clock_skip(3000);
	os_loop_step(loop, 0);
	send_it(&l, BATCH("select 1"), &second);
	test_clock_skip(1999);
	os_loop_step(loop, 0);
	os_loop_step(loop, 0);
	assert_int_equal(l.downs, 0);
	test_clock_skip(1);
	TURN_UNTIL(l.downs == 1);
	assert_int_equal(l.why.code, AVA_ETIMEOUT);
	assert_int_equal(first.rv, AVA_EUNKNOWN);
	assert_int_equal(second.rv, AVA_EUNKNOWN);
	test_clock_skip(200);
	TURN_UNTIL(l.ups == 2);
	/* Answers that came while the loop stood still count, however late it is. */
	first = second = (struct got){0};
	send_it(&l, BATCH("select 1::bigint"), &first);
	os_loop_step(loop, 0);
	usleep(50000);
	test_clock_skip(6000);
	TURN_UNTIL(first.times == 1);
	assert_int_equal(first.rv, 0);
	assert_int_equal(l.downs, 1);
	line_close(&l);
}

TEST(nobody_there)
{
	/* Least time before each attempt after the first. */
	static const int64_t pauses[] = {100, 100, 200, 400, 800, 1600, 3200, 5000, 5000};
	int64_t waited = 0;
	struct line l;

	pg_server_stop(&server);
	test_clock_stop();
	os_loop_step(loop, 0);
	line_open(&l, server.url, 1000000);
	for (unsigned i = 0; i < ARRAY_LEN(pauses); i++) {
		while (l.downs <= i) {
			os_loop_step(loop, 0);
			test_clock_skip(1);
			waited++;
		}
		assert_int_equal(l.why.code, AVA_ECONNECT);
		assert_non_null(strstr(l.why.text, "No such file or directory"));
		assert_null(strstr(l.why.text, "Is the server running")); /* advice */
		assert_true(i == 0 || waited >= pauses[i - 1]);
		waited = 0;
	}
	test_clock_go();
	assert_true(pg_server_start(&server, NULL));
	test_clock_skip(10000);
	TURN_UNTIL(l.ups == 1);
	assert_int_equal(number(&l, "select 5::bigint"), 5);
	/* An answer makes the next pause a short one again. */
	pg_server_stop(&server);
	TURN_UNTIL(l.downs == ARRAY_LEN(pauses) + 1);
	test_clock_stop();
	os_loop_step(loop, 0);
	test_clock_skip(100);
	TURN_UNTIL(l.downs == ARRAY_LEN(pauses) + 2);
	line_close(&l);
}

TEST(no_such_database)
{
	char url[256];
	struct line l;

	snprintf(url, sizeof(url), "host=%s user=ava dbname=nowhere", server.dir);
	line_open(&l, url, 60000);
	TURN_UNTIL(l.downs == 1);
	assert_non_null(strstr(l.why.text, "FATAL: database \"nowhere\" does not exist"));
	assert_null(strchr(l.why.text, '\n'));
	line_close(&l);
}

TEST(closed_anywhere)
{
	struct got g = {0}, later = {0}, never = {0};
	struct line l;

	/* Before it began, at a step, and by callbacks of its own. */
	line_open(&l, server.url, 60000);
	line_close(&l);
	line_open(&l, server.url, 60000);
	os_loop_step(loop, 0);
	line_close(&l);
	os_loop_step(loop, 100);
	assert_int_equal(l.ups + l.downs, 0);
	line_begin(&l);
	g.close = &l;
	send_it(&l, BATCH("select 1"), &g);
	send_it(&l, BATCH("select pg_sleep(60)"), &later);
	TURN_UNTIL(g.times == 1);
	assert_int_equal(g.rv, 0);
	assert_int_equal(later.times, 1);
	assert_int_equal(later.rv, AVA_ECANCELED);
	assert_int_equal(l.downs, 0);
	line_begin(&l);
	send_it(&l, BATCH("select 1"), &never);
	line_close(&l);
	assert_int_equal(never.rv, AVA_ECANCELED);
	line_open(&l, "host=/nowhere", 60000);
	l.closes = true;
	TURN_UNTIL(l.downs == 1);
	pg_close(NULL);
}

/* ---- many ends */

/* Whenever the connection ends, a batch is answered once, and the answer is true. */
TEST(the_truth)
{
	enum { BATCHES = 400 };
	static struct got got[BATCHES];
	unsigned sent = 0, unknown = 0, done = 0;
	struct line l, other;
	struct got g;
	int64_t pid;
	char sql[96];

	memset(got, 0, sizeof(got));
	line_begin(&l);
	line_begin(&other);
	ask(&other, &g, "create table truth (n bigint, half bigint)");
	pid = number(&l, "select pg_backend_pid()");
	for (unsigned ends = 0; sent < BATCHES; ends++) {
		unsigned first = sent;

		for (int i = 0; i < BATCHES / 10; i++, sent++) {
			struct pg_batch *b = pg_batch_new();

			pg_batch_add(b, "insert into truth values ($1, 1)");
			pg_batch_int(b, sent);
			if (sent % 7 == 3)
				pg_batch_add(b, "select 1/0");
			pg_batch_add(b, "insert into truth values ($1, 2)");
			pg_batch_int(b, sent);
			send_it(&l, b, &got[sent]);
		}
		snprintf(sql, sizeof(sql), "select pg_terminate_backend(%d)", (int)pid);
		TURN_UNTIL(got[first + 4 * ends].times > 0);
		ask(&other, &g, sql);
		TURN_UNTIL(l.downs == ends + 1 && pg_is_up(l.pg));
		pid = number(&l, "select pg_backend_pid()");
	}
	/* The end of a backend is the end of its transaction: no row comes later. */
	for (unsigned i = 0; i < BATCHES; i++) {
		int64_t rows;

		TURN_UNTIL(got[i].times > 0);
		assert_int_equal(got[i].times, 1);
		snprintf(sql, sizeof(sql), "select count(*) from truth where n = %u", i);
		rows = number(&other, sql);
		unknown += got[i].rv == AVA_EUNKNOWN;
		done += got[i].rv == 0;
		if (got[i].rv == 0)
			assert_int_equal(rows, 2);
		else if (got[i].rv == AVA_EREJECTED)
			assert_int_equal(rows, 0);
		else
			assert_true(got[i].rv == AVA_EUNKNOWN && (rows == 0 || rows == 2));
	}
	print_message("%u ends, %u done, %u unknown of %u\n", l.downs, done, unknown, BATCHES);
	line_close(&l);
	line_close(&other);
}

/* ---- who is there */

/* A socket at which nobody answers, or a liar. */
struct liar {
	char dir[64];
	int fd, conn;
	struct os_poll *poll, *conn_poll;
	const char *hello, *then; /* said at first, and to what comes after `hello` was said */
	size_t hello_len, then_len;
	bool greeted;
};

static void liar_ready_cb(int events, void *user)
{
	struct liar *liar = user;
	char in[4096];
	ssize_t n = recv(liar->conn, in, sizeof(in), MSG_DONTWAIT);
	const char *out = liar->greeted ? liar->then : liar->hello;
	size_t len = liar->greeted ? liar->then_len : liar->hello_len;

	(void)events;
	if (n > 0 && out && send(liar->conn, out, len, MSG_NOSIGNAL) == (ssize_t)len) {
		liar->greeted = true;
		return;
	}
	os_poll_free(liar->conn_poll);
	liar->conn_poll = NULL;
	close(liar->conn);
	liar->conn = -1;
}

static void liar_accept_cb(int events, void *user)
{
	struct liar *liar = user;
	int fd = accept(liar->fd, NULL, NULL);

	(void)events;
	if (fd < 0 || liar->conn >= 0) {
		close(fd);
		return;
	}
	liar->conn = fd;
	liar->greeted = false;
	liar->conn_poll = os_poll_new(loop, fd, liar_ready_cb, liar);
	os_poll_set(liar->conn_poll, OS_READ);
}

static void liar_begin(struct liar *liar, bool answers)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};

	snprintf(liar->dir, sizeof(liar->dir), "%s", unit_tmpdir());
	assert_true((size_t)snprintf(to.sun_path, sizeof(to.sun_path), "%s/.s.PGSQL.5432",
				     liar->dir) < sizeof(to.sun_path));
	liar->conn = -1;
	liar->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(liar->fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(listen(liar->fd, 8), 0);
	if (answers) {
		liar->poll = os_poll_new(loop, liar->fd, liar_accept_cb, liar);
		os_poll_set(liar->poll, OS_READ);
	}
}

static void liar_end(struct liar *liar)
{
	os_poll_free(liar->poll);
	os_poll_free(liar->conn_poll);
	close(liar->fd);
	if (liar->conn >= 0)
		close(liar->conn);
	unit_rmdir(liar->dir);
}

/* Of two hosts the first takes the connection and says nothing: the next attempt begins with the
 * other. */
TEST(silent_host)
{
	struct liar silent = {0};
	char url[256];
	struct line l;

	liar_begin(&silent, false);
	snprintf(url, sizeof(url), "host=%s,%s user=ava dbname=postgres", silent.dir, server.dir);
	line_open(&l, url, 5000);
	for (int i = 0; i < 10; i++)
		os_loop_step(loop, 5);
	test_clock_skip(5000);
	TURN_UNTIL(l.downs == 1);
	assert_int_equal(l.why.code, AVA_ETIMEOUT);
	assert_int_equal(l.ups, 0);
	TURN_UNTIL(l.ups == 1);
	assert_int_equal(number(&l, "select 6::bigint"), 6);
	line_close(&l);
	liar_end(&silent);
}

#define WELCOME "R\0\0\0\x08\0\0\0\0Z\0\0\0\5I" /* no password is asked, ready */
#define DONE                                                                                       \
	"1\0\0\0\4"                                                                                \
	"2\0\0\0\4"                                                                                \
	"n\0\0\0\4"                                                                                \
	"C\0\0\0\x0dSELECT 1\0"

TEST(lies)
{
#define LIE(hello, then)                                                                           \
	{                                                                                          \
		hello, then, sizeof(hello) - 1, sizeof(then) - 1                                   \
	}
	static const struct {
		const char *hello, *then;
		size_t hello_len, then_len;
	} lies[] = {
		LIE("HTTP/1.1 400 Bad Request\r\n\r\n", ""),
		LIE("E\0\0\0\x10SFATAL\0C57P03\0Mthe database system is starting up\0\0", ""),
		LIE("R\x7f\xff\xff\xff", ""),
		LIE(WELCOME, "HTTP/1.1 400 Bad Request\r\n\r\n"),
		LIE(WELCOME, "Z\0\0\0\5I"),                /* a sync without a result */
		LIE(WELCOME, DONE DONE "Z\0\0\0\5I"),      /* a result too many */
		LIE(WELCOME, "T\xff\xff\xff\xff\xff\xff"), /* a length below zero */
		LIE(WELCOME, "1\0\0\0\4"
			     "2\0\0\0\4"
			     "T\0\0\0\6\0\1Z\0\0\0\5I"), /* cut */
		LIE(WELCOME, "1\0\0\0\4"
			     "2\0\0\0\4"
			     "G\0\0\0\7\0\0\0"),       /* copy in */
		LIE(WELCOME, "E\0\0\0\5\0Z\0\0\0\5I"), /* an error without a word, a sync */
	};

	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		struct liar liar = {.hello = lies[i].hello,
				    .then = lies[i].then,
				    .hello_len = lies[i].hello_len,
				    .then_len = lies[i].then_len};
		struct got g = {0};
		char url[128];
		struct line l;

		liar_begin(&liar, true);
		snprintf(url, sizeof(url), "host=%s user=ava dbname=postgres", liar.dir);
		line_open(&l, url, 60000);
		TURN_UNTIL(l.ups + l.downs == 1);
		assert_int_equal(l.ups, lies[i].then_len > 0);
		if (l.ups == 1) {
			send_it(&l, BATCH("select 1"), &g);
			while (g.times == 0) {
				os_loop_step(loop, 20);
				if (g.times == 0 && liar.conn >= 0 && liar.greeted)
					shutdown(liar.conn, SHUT_WR);
			}
			print_message("%zu: %d %s\n", i, g.rv, g.text);
			assert_int_not_equal(g.rv, 0);
		} else {
			print_message("%zu: %s\n", i, l.why.text);
		}
		line_close(&l);
		liar_end(&liar);
		os_loop_step(loop, 0);
	}
}
