/* Event streams over the real server: everything once and in order, whatever
 * the reader does: from the beginning, behind a cursor, in pieces while the
 * run is writing, too slowly, two hundred at once. */
#include "gateway_rig.h"

#include <malloc.h>

#include "client/client.h"
#include "whole_stream.h"

#define RUNS    "/api/v1/runs"
#define IDS_MAX 20000

/* ---- what should come: the log itself */

struct ids {
	size_t n;
	uint64_t id[IDS_MAX];
};

static void add_id(struct ids *ids, uint64_t id)
{
	assert_true(ids->n < IDS_MAX);
	ids->id[ids->n] = id;
	__atomic_store_n(&ids->n, ids->n + 1, __ATOMIC_SEQ_CST); /* others watch it */
}

static size_t count(const struct ids *ids)
{
	return __atomic_load_n(&ids->n, __ATOMIC_SEQ_CST);
}

/* Of a run, or (NULL) of everything. */
static void log_ids(const char *run, struct ids *ids)
{
	struct ava_log_query q = {.root = rig.root, .run = run, .everything = run == NULL};
	struct ava_log_event e;
	struct ava_log *log;
	int rv;

	ids->n = 0;
	assert_int_equal(ava_log_open(&log, &q, NULL), 0);
	while ((rv = ava_log_next(log, &e, NULL)) == 1)
		add_id(ids, e.lsn);
	assert_int_equal(rv, 0);
	ava_log_close(log);
}

static void assert_ids(const struct ids *got, const struct ids *want, size_t from)
{
	assert_int_equal(got->n, want->n - from);
	assert_memory_equal(got->id, want->id + from, got->n * sizeof(got->id[0]));
}

/* ---- a reader */

struct reader {
	struct ids ids;
	char last[32];
	size_t stop_after; /* events in this call; 0: never */
	size_t count;
	uint64_t until; /* stop at this id; 0: never */
	bool complete;
	bool may_break; /* the stream is broken off at the end of the test */
};

static struct reader reader, other;

static int on_event(const struct sse_event *e, void *user)
{
	struct reader *r = user;
	json_auto_t *v = json_parse(e->data, e->len, NULL);

	assert_non_null(v);
	assert_string_equal(json_get_str(v, "eventType"), e->event);
	assert_int_equal(json_get_int(v, "lsn", 0), strtoll(e->id, NULL, 10));
	add_id(&r->ids, strtoull(e->id, NULL, 10));
	snprintf(r->last, sizeof(r->last), "%s", e->id);
	r->complete = strcmp(e->event, "SubagentComplete") == 0;
	r->count++;
	return r->count == r->stop_after || r->ids.id[r->ids.n - 1] == r->until ? 1 : 0;
}

static int stream(struct client *c, const char *path, const char *last, struct reader *r)
{
	struct ava_error err = {0};
	int rv;

	r->count = 0;
	rv = whole_stream(c, path, last, on_event, r, &err);
	if (rv < 0 && !(r->may_break && rv == AVA_ECONNECT))
		fail_msg("%s: %s", path, err.text);
	return rv;
}

static const char *finished_run(char id[64])
{
	rig_write(
		"quick.jsonl",
		"{\"tool_calls\":[{\"name\":\"read_file\",\"args\":{\"path\":\"main.c\"}}]}\n"
		"{\"tool_calls\":[{\"name\":\"submit_result\",\"args\":{\"summary\":\"ok\"}}]}\n");
	rig_run("quick.jsonl", id);
	json_decref(rig_ask("GET", rig_path(RUNS "/%s/result?wait=30", id), NULL, 200));
	return id;
}

/* ---- one run */

/* Behind the cursor of the query, or of `last`, all of the run comes from number `from` on. */
static void assert_rest(const char *id, const char *query, const char *last, const struct ids *want,
			size_t from)
{
	char path[200];

	snprintf(path, sizeof(path), RUNS "/%s/events%s", id, query);
	reader = (struct reader){0};
	assert_int_equal(stream(rig.client, path, last, &reader), 0);
	assert_ids(&reader.ids, want, from);
}

TEST(resume_everywhere)
{
	static struct ids want;
	char id[64], last[32], query[48];

	finished_run(id);
	log_ids(id, &want);
	assert_true(want.n > 10);
	assert_rest(id, "", NULL, &want, 0);
	assert_true(reader.complete);
	for (size_t i = 0; i < want.n; i++) {
		snprintf(last, sizeof(last), "%llu", (unsigned long long)want.id[i]);
		snprintf(query, sizeof(query), "?after=%s", last);
		assert_rest(id, "", last, &want, i + 1);
		assert_rest(id, query, NULL, &want, i + 1);
	}
	/* Nothing more will ever come: it ends, and does not wait. */
	assert_rest(id, "?after=99999999", NULL, &want, want.n);
	/* A browser that comes again: its header is newer than the address. */
	snprintf(last, sizeof(last), "%llu", (unsigned long long)want.id[want.n - 2]);
	assert_rest(id, "?after=0", last, &want, want.n - 1);
}

static void write_long_script(void)
{
	char *text = malloc(64 * 1024);
	size_t n = 0;

	for (int i = 0; i < 60; i++)
		n += (size_t)sprintf(text + n,
				     "{\"tool_calls\":[{\"name\":\"read_file\",\"args\":"
				     "{\"path\":\"main%d.c\"}}],\"delay_ms\":3}\n",
				     i);
	sprintf(text + n, "{\"tool_calls\":[{\"name\":\"submit_result\",\"args\":"
			  "{\"summary\":\"ok\"}}]}\n");
	rig_write("long.jsonl", text);
	free(text);
}

TEST(resume_while_writing)
{
	static struct ids want;
	char id[64], path[200];

	write_long_script();
	rig_run("long.jsonl", id);
	snprintf(path, sizeof(path), RUNS "/%s/events", id);
	reader = (struct reader){0};
	for (unsigned turn = 0; !reader.complete; turn++) {
		reader.stop_after = 1 + turn % 13;
		stream(rig.client, path, reader.last, &reader);
	}
	log_ids(id, &want);
	assert_true(want.n > 300);
	assert_ids(&reader.ids, &want, 0);
}

/* ---- everything */

TEST(all_events)
{
	static struct ids want;
	char id[64];

	finished_run(id);
	finished_run(id);
	log_ids(NULL, &want);
	reader = (struct reader){.until = want.id[want.n - 1]};
	assert_int_equal(stream(rig.client, "/api/v1/events?after=0", NULL, &reader), 1);
	assert_ids(&reader.ids, &want, 0);
}

static void *read_all(void *arg)
{
	struct client *c;

	assert_int_equal(client_open(rig.root, false, &c, NULL), 0);
	stream(c, arg, NULL, &other);
	client_close(c);
	return NULL;
}

/* Without a cursor: from now on, and the runs that follow interleaved. */
TEST(from_now_on)
{
	static struct ids before, want;
	char a[64], b[64], id[64];
	pthread_t thread;

	write_long_script();
	finished_run(id);
	log_ids(NULL, &before);
	other = (struct reader){.may_break = true};
	pthread_create(&thread, NULL, read_all, (void *)(uintptr_t) "/api/v1/events");
	while (rig_streams() == 0)
		poll(NULL, 0, 1);
	rig_run("long.jsonl", a);
	rig_run("long.jsonl", b);
	json_decref(rig_ask("GET", rig_path(RUNS "/%s/result?wait=60", a), NULL, 200));
	json_decref(rig_ask("GET", rig_path(RUNS "/%s/result?wait=60", b), NULL, 200));
	log_ids(NULL, &want);
	for (int i = 0; i < 6000 && count(&other.ids) < want.n - before.n; i++)
		poll(NULL, 0, 10);
	rig_restart(false); /* ends the reader's stream, see test_stop_breaks_off */
	pthread_join(thread, NULL);
	assert_ids(&other.ids, &want, before.n);
}

/* ---- many bytes: events of Ava's own, written past any run */

struct bulk {
	unsigned events, bytes, done;
};

static void bulk_done(int rv, void *user)
{
	struct bulk *b = user;

	assert_int_equal(rv, 0);
	__atomic_add_fetch(&b->done, 1, __ATOMIC_SEQ_CST);
}

static void bulk_write(void *arg)
{
	struct bulk *b = arg;
	struct draft *d = draft_new(&rig.core->book);
	char *text = malloc(b->bytes + 1);

	memset(text, 'x', b->bytes);
	text[b->bytes] = '\0';
	for (unsigned i = 0; i < b->events; i++) {
		struct buf content;
		struct jw w;

		buf_init(&content, 1 << 20);
		jw_init(&w, &content);
		jw_object(&w, NULL);
		jw_str(&w, "customType", "bulk");
		jw_str(&w, "data", text);
		jw_end(&w);
		core_event(rig.core, d, EVENT_Custom, "", "", &content);
	}
	free(text);
	assert_int_equal(draft_commit(d, JOURNAL_NOW, bulk_done, b, NULL), 0);
}

/* `times` commits of `events` events of `bytes` bytes each, one after another. */
static void write_bulk(unsigned times, unsigned events, unsigned bytes)
{
	struct bulk b = {.events = events, .bytes = bytes};

	for (unsigned i = 0; i < times; i++) {
		rig_call(bulk_write, &b);
		while (__atomic_load_n(&b.done, __ATOMIC_SEQ_CST) <= i)
			poll(NULL, 0, 1);
	}
}

/* ---- a raw stream, read when the test likes */

struct raw {
	int fd;
	struct http_reader http;
	struct sse sse;
	struct reader *reader;
	unsigned comments;
	bool over;
};

static int raw_body(const char *data, size_t len, void *user)
{
	return sse_feed(&((struct raw *)user)->sse, data, len);
}

static int raw_event(const struct sse_event *e, void *user)
{
	return on_event(e, ((struct raw *)user)->reader);
}

static void raw_comment(void *user)
{
	((struct raw *)user)->comments++;
}

static void raw_open(struct raw *r, struct reader *to, const char *path)
{
	*r = (struct raw){.reader = to};
	http_reader_init(&r->http, raw_body, r);
	sse_init(&r->sse, 1 << 24);
	r->sse.on_event = raw_event;
	r->sse.on_comment = raw_comment;
	r->sse.user = r;
	r->fd = raw_connect();
	raw_send(r->fd, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
}

/* What has come; waits for it up to wait_ms. False: the end. */
static bool raw_pump(struct raw *r, int wait_ms)
{
	static char data[256 * 1024];
	struct pollfd p = {.fd = r->fd, .events = POLLIN};
	size_t used;
	ssize_t n;

	if (poll(&p, 1, wait_ms) == 0)
		return true;
	n = recv(r->fd, data, sizeof(data), MSG_DONTWAIT);
	if (n <= 0)
		return false;
	assert_true(http_reader_feed(&r->http, data, (size_t)n, &used, NULL) >= 0);
	r->over = r->http.state == HTTP_READER_DONE;
	return !r->over;
}

static void raw_close(struct raw *r)
{
	close(r->fd);
	sse_fini(&r->sse);
	http_reader_fini(&r->http);
}

static size_t heap_in_use(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* It asks for everything and reads nothing while 40 MB are written: the daemon
 * keeps a short queue for it, and later gives it all from the files. */
TEST(slow_client)
{
	static struct ids want;
	struct raw r;
	size_t before;

	write_bulk(4, 256, 8000); /* the feed's ring is full */
	reader = (struct reader){0};
	raw_open(&r, &reader, "/api/v1/events?after=0");
	while (rig_streams() == 0)
		poll(NULL, 0, 1);
	before = heap_in_use();
	write_bulk(20, 256, 8000);
	if (heap_in_use() > before)
		assert_true(heap_in_use() - before < 8u << 20);
	log_ids(NULL, &want);
	assert_true(want.n > 24 * 256);
	while (reader.ids.n < want.n)
		assert_true(raw_pump(&r, 10000));
	assert_ids(&reader.ids, &want, 0);
	/* And is live again. */
	write_bulk(1, 3, 100);
	while (reader.ids.n < want.n + 3)
		assert_true(raw_pump(&r, 10000));
	raw_close(&r);
}

/* On the loop, in every turn of it: what its thread has worked since the turn before. What other
 * threads and programs take of the machine is no part of that. */
struct turns {
	struct os_task task;
	int64_t at, worst; /* us of its processor time; at 0: not begun */
	bool ends;
};

static int64_t worked_us(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void turn(struct os_task *task)
{
	struct turns *t = CONTAINER_OF(task, struct turns, task);
	int64_t now = worked_us(), took = t->at != 0 ? now - t->at : 0;

	t->at = now;
	t->worst = MAX(t->worst, took);
	if (!t->ends)
		os_post(rig.loop, task);
}

static void turns_begin(void *arg)
{
	struct turns *t = arg;

	os_task_init(&t->task, turn);
	os_post(rig.loop, &t->task);
}

static void turns_end(void *arg)
{
	((struct turns *)arg)->ends = true;
}

/* A client that reads as fast as it can has the loop for a bounded time. */
TEST(fast_client)
{
	static struct turns turns;
	static struct ids want;
	pthread_t thread;

	write_bulk(24, 256, 8000);
	log_ids(NULL, &want);
	other = (struct reader){.until = want.id[want.n - 1]};
	rig_call(turns_begin, &turns);
	pthread_create(&thread, NULL, read_all, (void *)(uintptr_t) "/api/v1/events?after=0");
	pthread_join(thread, NULL);
	rig_call(turns_end, &turns);
	rig_call(turns_end, &turns); /* behind its last turn */
	assert_int_equal(count(&other.ids), want.n);
	print_message("the longest turn of the loop: %d us\n", (int)turns.worst);
	assert_in_range(turns.worst, 1, 50000);
}

#define MANY 200

TEST(two_hundred_at_once)
{
	static struct reader readers[MANY];
	static struct raw raws[MANY];
	static struct ids want;
	unsigned over = 0;
	char id[64], path[200];

	write_long_script();
	rig_run("long.jsonl", id);
	snprintf(path, sizeof(path), RUNS "/%s/events", id);
	for (int i = 0; i < MANY; i++) {
		readers[i] = (struct reader){0};
		raw_open(&raws[i], &readers[i], path);
	}
	for (int64_t end = clock_mono_ms() + 60000; over < MANY;) {
		over = 0;
		for (int i = 0; i < MANY; i++) {
			if (!raws[i].over && !raw_pump(&raws[i], 0))
				assert_true(raws[i].over);
			over += raws[i].over;
		}
		assert_true(clock_mono_ms() < end);
	}
	log_ids(id, &want);
	for (int i = 0; i < MANY; i++) {
		assert_ids(&readers[i].ids, &want, 0);
		raw_close(&raws[i]);
	}
	rig_wait_connections(1);
	assert_int_equal(rig_streams(), 0);
}

/* Peers that never read: little is kept for each, the files of many runs are not kept open for
 * them, and others are answered. */
TEST(two_hundred_unread)
{
	static struct raw raws[MANY];
	const int many = UNIT_SANITIZED ? MANY / 10 : MANY; /* whose own memory is no figure */
	size_t before, held = 0;
	char id[64];

	for (int i = 0; i < 30; i++)
		finished_run(id);
	write_bulk(4, 256, 1000);
	before = heap_in_use();
	for (int i = 0; i < many; i++)
		raw_open(&raws[i], &reader, "/api/v1/events?after=0");
	for (int i = 0; i < many; i++) {
		struct pollfd p = {.fd = raws[i].fd, .events = POLLIN};

		assert_int_equal(poll(&p, 1, 60000), 1);
	}
	for (int i = 0; i < 50; i++) {
		json_decref(rig_ask("GET", "/api/v1/health", NULL, 200));
		poll(NULL, 0, 10);
		held = MAX(held, heap_in_use());
	}
	print_message("%zu kB for %d of them\n", (held - before) >> 10, many);
	assert_true(UNIT_SANITIZED || held < before + (100u << 20));
	for (int i = 0; i < many; i++)
		raw_close(&raws[i]);
	rig_wait_connections(1);
}

/* ---- quiet, gone, stopped */

TEST(heartbeat)
{
	struct raw r;
	char id[64], path[200];

	rig_run("slow.jsonl", id);
	snprintf(path, sizeof(path), RUNS "/%s/events", id);
	reader = (struct reader){0};
	raw_open(&r, &reader, path);
	while (r.comments < 3)
		assert_true(raw_pump(&r, 5000));
	raw_close(&r);
	rig_wait_connections(1);
	assert_int_equal(rig_streams(), 0);
}

/* The end of the daemon is not the end of the run: the stream breaks off
 * inside its body, so that the client comes again. */
TEST(stop_breaks_off)
{
	struct raw r;
	char id[64], path[200];

	rig_run("slow.jsonl", id);
	snprintf(path, sizeof(path), RUNS "/%s/events", id);
	reader = (struct reader){0};
	raw_open(&r, &reader, path);
	while (reader.ids.n < 2)
		assert_true(raw_pump(&r, 5000));
	rig_stop();
	while (raw_pump(&r, 5000))
		;
	assert_false(r.over);
	raw_close(&r);
	rig_start();
	/* The next daemon carries it on, until it is told to stop; the rest follows the last id. */
	json_decref(rig_ask("POST", rig_path(RUNS "/%s/cancel", id), NULL, 200));
	assert_int_equal(stream(rig.client, path, reader.last, &reader), 0);
	assert_true(reader.complete);
	for (size_t i = 1; i < reader.ids.n; i++)
		assert_true(reader.ids.id[i] > reader.ids.id[i - 1]);
}

UNIT_GROUP(.before = rig_set_up, .after = rig_tear_down);
