/* Calls of the HTTP client that do not end well: connections that die, timers,
 * stops in every state and from every callback, caps, what a waiting call
 * costs. */
#include "unit.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "http_rig.h"

/* ---- connections that break under a request */

TEST_OF(reset, struct fixture *f)
{
	struct got g;

	f->reset = true;
	for (size_t size = 1; size < 10000000; size *= 100) {
		got_init(&g, f);
		got_body(&g, size);
		got_run(&g);
		assert_int_equal(g.rv, AVA_EIO);
		got_fini(&g);
	}
}

/* The server resets once it has seen `user` bytes: amid the body. */
static void reset_amid(struct peer_conn *c)
{
	if (c->in.len > 100000)
		peer_reset(c);
}

TEST_OF(reset_amid_upload, struct fixture *f)
{
	struct got g;

	f->peer.bytes = reset_amid;
	got_init(&g, f);
	got_body(&g, 30000000);
	got_run(&g);
	assert_int_equal(g.rv, AVA_EIO);
	got_fini(&g);
}

/* An answer before the request was read: it counts, the rest is not sent. */
static void early_answer(struct peer_conn *c)
{
	if (c->out.len == 0 && !c->closing) {
		peer_sends(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig");
		c->closing = true;
		c->peer->bytes = NULL;
		c->peer->request = rig_answer;
	}
}

TEST_OF(early_answer, struct fixture *f)
{
	struct got g;

	f->peer.bytes = early_answer;
	got_init(&g, f);
	got_body(&g, 30000000);
	got_run(&g);
	/* The server closes with bytes unread: its kernel may send a reset that
	 * overtakes the answer. */
	if (g.rv == 0)
		assert_int_equal(g.call.status, 413);
	else
		assert_int_equal(g.rv, AVA_EIO);
	got_fini(&g);
}

/* The server closed an idle connection: the next call opens another. */
TEST_OF(idle_closed, struct fixture *f)
{
	struct http_pool_stats stats;

	f->hang_up = true;
	for (size_t i = 1; i <= 3; i++) {
		struct got g;

		got_init(&g, f);
		buf_adds(&g.call.body, "{}");
		got_run(&g);
		assert_int_equal(g.rv, 0);
		while (!list_empty(&f->peer.conns))
			os_loop_step(f->loop, 1000);
		assert_int_equal(f->peer.accepted, i);
		got_fini(&g);
	}
	http_pool_stats(f->pool, &stats);
	assert_int_equal(stats.opened, 3);
	assert_int_equal(stats.calls, 0);
}

/* Where a request may have an effect no connection is used twice, so none can die under one and
 * have it sent again. */
TEST_OF(once, struct fixture *f)
{
	rig_pool(f, (struct http_pool_options){.once = true});
	for (size_t i = 1; i <= 3; i++) {
		struct got g;

		got_init(&g, f);
		buf_adds(&g.call.body, "{}");
		got_run(&g);
		assert_int_equal(g.rv, 0);
		assert_int_equal(f->peer.accepted, i);
		got_fini(&g);
	}
}

/* Closed at the moment a request comes on it: the body is gone, so the call
 * fails and says that it may be repeated. */
/* One that was silent for a while and dies under the next request, as when the
 * server gives it up just then: the request is sent again, whole. */
TEST_OF(silent_dies, struct fixture *f)
{
	static const char *const headers[] = {"x-api-key: the key"};
	struct http_pool_stats stats;
	struct got g;

	rig_stop_clock(f);
	got_init(&g, f);
	got_run(&g);
	got_fini(&g);
	test_clock_skip(1000);
	f->reset_once = true;
	got_init(&g, f);
	g.call.headers = headers;
	g.call.nheaders = 1;
	buf_adds(&g.call.body, "{\"a\":1}");
	got_run(&g);
	if (g.rv != 0)
		fail_msg("%s", g.text);
	assert_int_equal(g.heads, 1);
	assert_string_equal(f->body, "{\"a\":1}");
	assert_non_null(strstr(f->head, "x-api-key: the key"));
	assert_int_equal(f->peer.accepted, 2);
	http_pool_stats(f->pool, &stats);
	assert_int_equal(stats.calls, 0);
	got_fini(&g);
}

TEST_OF(reused_dies, struct fixture *f)
{
	struct got g;

	rig_stop_clock(f);
	got_init(&g, f);
	got_run(&g);
	got_fini(&g);
	f->reset = true;
	got_init(&g, f);
	buf_adds(&g.call.body, "{}");
	got_run(&g);
	assert_int_equal(g.rv, AVA_EIO);
	got_fini(&g);
	/* One without a body is repeated by itself, on a new connection. */
	f->reset = false;
	got_init(&g, f);
	g.call.method = "GET";
	got_run(&g);
	assert_int_equal(g.rv, 0);
	got_fini(&g);
}

/* An idle connection is watched on, and one that the server ends wakes the loop once. */
TEST_OF(idle_ends, struct fixture *f)
{
	struct pollfd ready = {os_loop_fd(f->loop), POLLIN, 0};

	for (unsigned round = 1; round <= 3; round++) {
		struct got g;

		got_init(&g, f);
		got_run(&g);
		assert_int_equal(g.rv, 0);
		got_fini(&g);
		peer_close(f->last);
		for (int i = 0; i < 20; i++)
			os_loop_step(f->loop, 0);
		assert_int_equal(poll(&ready, 1, 0), 0);
		assert_int_equal(f->peer.accepted, round);
	}
}

TEST_OF(refused, struct fixture *f)
{
	struct got g;

	peer_stop(&f->peer);
	got_init(&g, f);
	got_run(&g);
	assert_int_equal(g.rv, AVA_ECONNECT);
	assert_non_null(strstr(g.text, "cannot connect to 127.0.0.1"));
	got_fini(&g);
}

/* ---- timers */

/* It has come so far that nothing but the timer, of `ms`, can end it; it does, and not before. */
static void await_timer(struct fixture *f, struct got *g, int64_t ms, const char *text)
{
	test_clock_skip(ms - 1);
	for (int i = 0; i < 20; i++)
		os_loop_step(f->loop, 0);
	assert_int_equal(g->dones, 0);
	test_clock_skip(1);
	for (int i = 0; i < 20; i++)
		os_loop_step(f->loop, 0);
	assert_int_equal(g->dones, 1);
	assert_int_equal(g->rv, AVA_ETIMEOUT);
	if (!strstr(g->text, text))
		fail_msg("%s: %s", text, g->text);
	got_fini(g);
}

static void run_timer(struct fixture *f, struct http_timers timers, bool progress, const char *text)
{
	size_t requests = f->peer.requests;
	size_t body = f->silent ? 0 : strlen(strstr(f->reply, "\r\n\r\n") + 4);
	struct got g;

	got_init(&g, f);
	g.call.timers = timers;
	g.progress = progress;
	got_start(&g);
	rig_wait_requests(f, requests + 1);
	while (!f->silent && (g.heads == 0 || g.body.len < body))
		os_loop_step(f->loop, 1000);
	await_timer(f, &g, 30, text);
}

TEST_OF(timers, struct fixture *f)
{
	struct http_timers first = {.first_ms = 30}, idle = {.idle_ms = 30, .first_ms = 600000},
			   total = {.total_ms = 30};

	rig_stop_clock(f);
	f->silent = true; /* before the headers */
	run_timer(f, first, true, "0.03 s (first timer)");
	run_timer(f, total, true, "(total timer)");
	f->silent = false;
	f->reply = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n"; /* after them */
	run_timer(f, first, true, "(first timer)");
	f->reply = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\ndata"; /* amid the body */
	run_timer(f, idle, true, "(idle timer)");
	run_timer(f, total, true, "(total timer)");
	f->reply = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n: waiting\n\n"; /* no progress */
	run_timer(f, first, false, "(first timer)");
}

/* A part of the answer after so long; it is taken. */
static void drip(struct fixture *f, struct got *g, int64_t after_ms, const char *chunk)
{
	size_t had = g->body.len;

	test_clock_skip(after_ms);
	peer_sends(f->last, chunk);
	while (g->dones == 0 && g->body.len == had)
		os_loop_step(f->loop, 1000);
	assert_int_equal(g->dones, 0);
}

/* Comments keep coming and are no progress. */
TEST_OF(comments_only, struct fixture *f)
{
	struct got g;

	rig_stop_clock(f);
	f->reply = CHUNKED;
	got_init(&g, f);
	g.progress = false;
	g.call.timers.first_ms = 1000;
	got_start(&g);
	rig_wait_requests(f, 1);
	for (int i = 0; i < 9; i++)
		drip(f, &g, 100, "7\r\n: wait\n\r\n");
	await_timer(f, &g, 100, "(first timer)");
	got_init(&g, f); /* but where the caller says so; not behind the first progress */
	g.progress = false;
	g.in_data = LIVES;
	g.call.timers = (struct http_timers){.first_ms = 1000, .idle_ms = 1000};
	got_start(&g);
	rig_wait_requests(f, 2);
	for (int i = 0; i < 9; i++)
		drip(f, &g, 900, "7\r\n: wait\n\r\n");
	g.progress = true;
	drip(f, &g, 900, "7\r\ndata: \n\r\n");
	g.progress = false;
	drip(f, &g, 900, "7\r\n: wait\n\r\n");
	await_timer(f, &g, 100, "(idle timer)");
}

/* Real progress, slower than `first` as a whole, is never cut. */
TEST_OF(progress, struct fixture *f)
{
	struct got g;

	rig_stop_clock(f);
	f->reply = CHUNKED;
	got_init(&g, f);
	g.call.timers = (struct http_timers){.first_ms = 3000, .idle_ms = 3000, .total_ms = 30000};
	got_start(&g);
	rig_wait_requests(f, 1);
	for (int i = 0; i < 10; i++)
		drip(f, &g, 2900, "7\r\ndata: \n\r\n");
	await_timer(f, &g, 1000, "(total timer)");
}

/* A listener whose queue is full: no connection comes about. */
TEST_OF(connect_timer, struct fixture *f)
{
	struct peer full = {.fd = -1};
	struct http_pool *before = f->pool;
	struct got g, fill[8];

	peer_start(&full, f->loop);
	os_poll_set(full.poll, 0);
	assert_int_equal(listen(full.fd, 0), 0);
	f->pool = http_pool_new(f->client, &(struct http_pool_options){.base_url = peer_url(&full)},
				NULL);
	for (size_t i = 0; i < ARRAY_LEN(fill); i++) {
		got_init(&fill[i], f);
		got_start(&fill[i]);
	}
	rig_stop_clock(f);
	got_init(&g, f);
	g.call.timers.connect_ms = 200;
	got_start(&g);
	for (; g.dones == 0; os_loop_step(f->loop, 0)) /* it begins to connect when others have */
		test_clock_skip(100);
	assert_int_equal(g.rv, AVA_ECONNECT);
	assert_non_null(strstr(g.text, "0.2 s (connect timer)"));
	got_fini(&g);
	for (size_t i = 0; i < ARRAY_LEN(fill); i++) {
		http_call_stop(&fill[i].call);
		assert_int_equal(fill[i].dones, 0);
		got_fini(&fill[i]);
	}
	http_pool_free(f->pool);
	f->pool = before;
	peer_stop(&full);
}

/* ---- stops */

static void settle(struct fixture *f)
{
	struct http_pool_stats stats;

	/* What a stop defers is over within a few turns; a callback that came
	 * now would be counted. */
	for (int i = 0; i < 20; i++)
		os_loop_step(f->loop, 1);
	http_pool_stats(f->pool, &stats);
	assert_int_equal(stats.calls, 0);
	assert_int_equal(stats.waiting, 0);
}

TEST_OF(stop_at_once, struct fixture *f)
{
	struct got g;

	got_init(&g, f);
	http_call_stop(&g.call); /* not started: nothing */
	buf_adds(&g.call.body, "{}");
	got_start(&g);
	http_call_stop(&g.call);
	assert_null(g.call.impl);
	http_call_stop(&g.call);
	settle(f);
	assert_int_equal(g.dones, 0);
	assert_int_equal(f->peer.accepted, 0);
	got_fini(&g);
}

/* Between any two turns of the loop, from the start to the end. */
TEST_OF(stop_every_turn, struct fixture *f)
{
	bool over = false;

	f->reply = CHUNKED "5\r\nhello\r\n0\r\n\r\n";
	for (int turns = 0; !over; turns++) {
		struct got g;

		got_init(&g, f);
		got_body(&g, 300000);
		got_start(&g);
		for (int i = 0; i < turns && g.dones == 0; i++)
			os_loop_step(f->loop, 1000);
		over = g.dones > 0;
		http_call_stop(&g.call);
		settle(f);
		assert_int_equal(g.dones, over ? 1 : 0);
		got_fini(&g);
		assert_true(turns < 10000);
	}
}

TEST_OF(stop_closes_stream, struct fixture *f)
{
	struct got g;

	f->reply = CHUNKED "5\r\nhello\r\n";
	got_init(&g, f);
	got_start(&g);
	while (g.body.len == 0)
		os_loop_step(f->loop, 1000);
	http_call_stop(&g.call);
	while (!list_empty(&f->peer.conns)) /* the service sees it and may stop billing */
		os_loop_step(f->loop, 1000);
	assert_int_equal(g.dones, 0);
	got_fini(&g);
}

/* The struct is overwritten after the stop: nothing may touch it. */
TEST_OF(stop_in_callbacks, struct fixture *f)
{
	f->reply = CHUNKED "5\r\nhello\r\n5\r\nhello\r\n0\r\n\r\n";
	for (int where = 0; where < 3; where++) {
		struct got g;

		got_init(&g, f);
		g.in_head = where == 0 ? STOP : NOTHING;
		g.in_data = where == 1 ? STOP : NOTHING;
		g.in_done = where == 2 ? STOP : NOTHING;
		got_start(&g);
		while (where == 0 ? !g.heads : where == 1 ? !g.body.len : !g.dones)
			os_loop_step(f->loop, 1000);
		settle(f);
		assert_int_equal(g.heads, 1);
		assert_int_equal(g.dones, where == 2 ? 1 : 0);
		got_fini(&g);
	}
}

TEST_OF(stop_others, struct fixture *f)
{
	for (int where = 0; where < 3; where++) {
		struct got g[10];

		for (size_t i = 0; i < ARRAY_LEN(g); i++) {
			got_init(&g[i], f);
			g[i].other = &g[i ^ 1]; /* whoever is first stops its neighbour */
			g[i].in_head = where == 0 ? STOP_OTHER : NOTHING;
			g[i].in_data = where == 1 ? STOP_OTHER : NOTHING;
			g[i].in_done = where == 2 ? STOP_OTHER : NOTHING;
			got_start(&g[i]);
		}
		for (size_t i = 0; i < ARRAY_LEN(g); i += 2)
			while (g[i].dones + g[i + 1].dones == 0)
				os_loop_step(f->loop, 1000);
		settle(f);
		for (size_t i = 0; i < ARRAY_LEN(g); i += 2)
			assert_int_equal(g[i].dones + g[i + 1].dones, 1);
		for (size_t i = 0; i < ARRAY_LEN(g); i++)
			got_fini(&g[i]);
	}
}

TEST_OF(restart_in_done, struct fixture *f)
{
	struct got g;

	got_init(&g, f);
	g.in_done = RESTART;
	got_start(&g);
	while (g.dones < 5)
		os_loop_step(f->loop, 1000);
	http_call_stop(&g.call);
	assert_int_equal(f->peer.accepted, 1);
	settle(f);
	got_fini(&g);
}

TEST_OF(free_pool_in_done, struct fixture *f)
{
	for (int broken = 0; broken < 2; broken++) {
		struct got g;

		f->reset = broken;
		got_init(&g, f);
		g.in_done = FREE_POOL;
		got_run(&g);
		assert_int_equal(g.rv, broken ? AVA_EIO : 0);
		got_fini(&g);
		rig_pool(f, (struct http_pool_options){0});
	}
}

/* ---- many */

static struct got *start_many(struct fixture *f, size_t n, size_t body)
{
	struct got *g = calloc(n, sizeof(*g));

	assert_non_null(g);
	for (size_t i = 0; i < n; i++) {
		got_init(&g[i], f);
		got_body(&g[i], body);
		got_start(&g[i]);
	}
	return g;
}

TEST_OF(cap, struct fixture *f)
{
	struct http_pool_stats stats;
	struct got *g;

	rig_pool(f, (struct http_pool_options){.connections_max = 3});
	f->silent = true;
	g = start_many(f, 10, 1);
	rig_wait_requests(f, 3);
	for (int i = 0; i < 20; i++)
		os_loop_step(f->loop, 1);
	assert_int_equal(f->peer.requests, 3); /* the others wait, under no timer but `total` */
	http_pool_stats(f->pool, &stats);
	assert_int_equal(stats.calls, 10);
	assert_int_equal(stats.waiting, 7);
	assert_int_equal(stats.connections, 3);
	f->silent = false;
	/* A call that is stopped makes room, those that wait go in order. */
	http_call_stop(&g[0].call);
	http_call_stop(&g[1].call);
	http_call_stop(&g[2].call);
	for (size_t i = 3; i < 10; i++)
		got_wait(&g[i]);
	assert_int_equal(f->peer.requests, 10);
	for (size_t i = 0; i < 10; i++) {
		assert_int_equal(g[i].dones, i < 3 ? 0 : 1);
		assert_int_equal(g[i].rv, 0);
		got_fini(&g[i]);
	}
	free(g);
}

/* What a call costs while it waits, to the byte the allocator counts: bodies
 * and headers are gone, libcurl's buffers small. 2.9 KB of it is the test's. */
TEST_OF(waiting_memory, struct fixture *f)
{
	size_t n = 1000, before, after;
	struct got *g;

	f->silent = true;
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	g = start_many(f, n, 20000);
	rig_wait_requests(f, n);
	after = mallinfo2().uordblks + mallinfo2().hblkhd;
	/* A peer's connection on the same heap: its struct, its poll. */
	after -= n * (sizeof(struct peer_conn) + 200);
	after -= n * sizeof(struct got);
	if (before > 0) { /* a sanitiser's allocator counts nothing */
		print_message("%zu bytes a waiting call\n", (after - before) / n);
		assert_in_range((after - before) / n, 8000, 14 * 1024);
	}
	for (size_t i = 0; i < n; i++)
		http_call_stop(&g[i].call);
	settle(f);
	free(g);
}

/* A pool without calls lets go of everything, and comes back. */
TEST_OF(idle_pool, struct fixture *f)
{
	struct http_pool_stats stats;
	size_t heap = 0;

	rig_pool(f, (struct http_pool_options){.idle_ms = 30000});
	for (int round = 0; round < 3; round++) {
		struct got *g = start_many(f, 200, 100);

		for (size_t i = 0; i < 200; i++) {
			got_wait(&g[i]);
			assert_int_equal(g[i].rv, 0);
			got_fini(&g[i]);
		}
		free(g);
		test_clock_skip(30000);
		do {
			os_loop_step(f->loop, 1000);
			http_pool_stats(f->pool, &stats);
		} while (stats.connections > 0);
		while (!list_empty(&f->peer.conns))
			os_loop_step(f->loop, 1000);
		if (round == 0)
			heap = mallinfo2().uordblks;
		assert_true(mallinfo2().uordblks < heap + 16 * 1024);
	}
}

/* ---- what is forgotten */

/* A key is nowhere on the heap once it is sent: we search all memory a waiting
 * call could have left it in, by allocating it again. */
TEST_OF(key_is_wiped, struct fixture *f)
{
	static const char *const headers[] = {"authorization: Bearer CANARY-0123456789abcdef"};
	const char *needle = "CANARY-0123456789abcdef";
	char **blocks = calloc(40000, sizeof(*blocks));
	struct got g;

	f->silent = true;
	got_init(&g, f);
	g.call.headers = headers;
	g.call.nheaders = 1;
	buf_adds(&g.call.body, "{}");
	got_start(&g);
	rig_wait_requests(f, 1);
	assert_non_null(strstr(f->head, needle)); /* it arrived */
	memset(f->head, 0, sizeof(f->head));
	for (size_t i = 0; i < 40000; i++) {
		size_t size = 16 + i % 2500;

		blocks[i] = malloc(size);
		assert_non_null(blocks[i]);
		assert_null(memmem(blocks[i], size, needle, 15));
	}
	for (size_t i = 0; i < 40000; i++)
		free(blocks[i]);
	free(blocks);
	http_call_stop(&g.call);
	got_fini(&g);
}

/* A peer that takes no memory: what fails below is the client's alone. */
static void *plain_peer(void *arg)
{
	int lfd = *(int *)arg, fd;
	char in[4096];
	ssize_t n;

	while ((fd = accept(lfd, NULL, NULL)) >= 0) {
		/* A small request comes in one piece, or headers and body apart. */
		while ((n = recv(fd, in, sizeof(in), 0)) > 0)
			if (n >= 2 && memcmp(in + n - 2, "{}", 2) == 0)
				(void)send(fd, OK_REPLY, strlen(OK_REPLY), MSG_NOSIGNAL);
		close(fd);
	}
	return NULL;
}

/* The k-th allocation of the client or of libcurl fails: the call fails to
 * start or ends, with words, and nothing is left behind. false: none failed. */
static bool call_without_memory(struct fixture *f, const char *url, long k)
{
	static const char *const headers[] = {"a: b"};
	struct http_pool *before = f->pool;
	struct got g;
	bool hit;
	int rv;

	f->pool = http_pool_new(f->client, &(struct http_pool_options){.base_url = url}, NULL);
	assert_non_null(f->pool);
	got_init(&g, f);
	g.call.headers = headers;
	g.call.nheaders = 1;
	g.call.data = NULL;
	/* libcurl forgets a connection it had no memory to watch. */
	g.call.timers = (struct http_timers){.connect_ms = 300, .first_ms = 300};
	buf_adds(&g.call.body, "{}");
	fault_alloc(k);
	rv = http_call_start(f->pool, &g.call, NULL);
	while (rv == 0 && g.dones == 0)
		os_loop_step(f->loop, 5); /* a turn that began with a timer waits on */
	hit = fault_alloc_end();
	if (rv != 0) {
		assert_int_equal(rv, AVA_ENOMEM);
		assert_null(g.call.impl);
		assert_string_equal(g.call.body.data, "{}");
		buf_fini(&g.call.body);
	} else if (g.rv != 0) {
		hit |= g.rv == AVA_ETIMEOUT; /* a slow machine: once more */
		assert_true(hit);
		assert_true(strstr(g.text, "memory") || g.rv == AVA_ECONNECT || g.rv == AVA_EIO ||
			    g.rv == AVA_ETIMEOUT);
	}
	got_fini(&g);
	http_pool_free(f->pool);
	f->pool = before;
	return hit;
}

TEST_OF(no_memory, struct fixture *f)
{
	struct peer plain = {.fd = -1};
	pthread_t thread;
	long k = 0;

	peer_start(&plain, f->loop);
	os_poll_free(plain.poll); /* the thread's alone, and blocking */
	plain.poll = NULL;
	assert_int_equal(fcntl(plain.fd, F_SETFL, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, plain_peer, &plain.fd), 0);
	while (call_without_memory(f, peer_url(&plain), k))
		k++;
	assert_true(k > 30);
	shutdown(plain.fd, SHUT_RDWR);
	pthread_join(thread, NULL);
	peer_stop(&plain);
}

UNIT_GROUP(.before = rig_setup, .after = rig_teardown);
