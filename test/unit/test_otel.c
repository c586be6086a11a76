/* Traces that are pushed, inside the runtime: memory ends at the k-th allocation while
 * it opens and while a trace is read and sent, and nothing is lost or stands still;
 * what can be asked for. Everything else: test/cli/test_otel.sh. */
#include "unit.h"

#include <arpa/inet.h>
#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ava/core.h"
#include "ava/delivery.h"
#include "ava/ops.h"
#include "ava/otel.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/error.h"
#include "codec/json.h"
#include "os/loop.h"
#include "runs_now.h"

struct world {
	char dir[256], root[300], url[64];
	struct os_loop *loop;
	struct settings settings;
	struct core *core;
	int fd; /* of a port at which nobody listens */
};

static int open_core(struct world *w, bool pushes, struct ava_error *err)
{
	struct core_options o = {.loop = w->loop,
				 .root = w->root,
				 .settings = &w->settings,
				 .model = "offline",
				 .otel = pushes ? w->url : NULL,
				 .otel_headers = "x-api-key=sesame",
				 .segment_bytes = 128 << 10};

	w->core = NULL;
	return core_open(&w->core, &o, err);
}

static void must_open(struct world *w, bool pushes)
{
	struct ava_error err = {0};

	if (open_core(w, pushes, &err) != 0)
		fail_msg("core_open: %s", err.text);
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t len = sizeof(at);

	assert_non_null(w);
	snprintf(w->dir, sizeof(w->dir), "%s", unit_tmpdir());
	snprintf(w->root, sizeof(w->root), "%s/data", w->dir);
	mkdir(w->root, 0700);
	w->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(w->fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(w->fd, (struct sockaddr *)&at, &len), 0);
	snprintf(w->url, sizeof(w->url), "http://127.0.0.1:%u", ntohs(at.sin_port));
	settings_load(&w->settings, NULL);
	w->settings.disk_free_min_mb = 0;
	w->settings.disk_ballast_mb = 0;
	w->settings.otel_retry_s = 0;
	w->settings.otel_give_up_s = 0; /* at the first attempt that fails */
	w->loop = os_loop_new(NULL);
	assert_non_null(w->loop);
	must_open(w, true);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	core_close(w->core);
	os_loop_free(w->loop);
	close(w->fd);
	unit_rmdir(w->dir);
	free(w);
	return 0;
}

static void spawned(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	assert_int_equal(rv, 0);
	snprintf(user, 24, "%s", s->id);
}

static void word_of(const struct op_status *s, void *user)
{
	*(bool *)user = s->status >= AVA_SUCCESS;
}

static const struct op_spawn saying = {.role = "researcher",
				       .task = "Say what there is.",
				       .origin = "test",
				       .session_id = "s1",
				       .user_id = "tester",
				       .timeout_ms = AVA_DEFAULT,
				       .max_cost_microusd = AVA_DEFAULT,
				       .max_tokens = AVA_DEFAULT,
				       .max_iterations = AVA_DEFAULT};

static void run_one(struct world *w, char id[24])
{
	bool ended = false;

	id[0] = '\0';
	ops_spawn(w->core, &saying, spawned, id);
	for (int i = 0; !ended && i < 6000; i++) {
		os_loop_step(w->loop, 10);
		if (id[0])
			assert_int_equal(run_now(w->core, id, word_of, &ended, NULL), 0);
	}
	assert_true(ended);
}

static int64_t health_of(struct world *w, const char *key)
{
	TEST_BUF(b, 65536);
	struct jw jw;
	json_t *o = NULL;
	int64_t n;

	jw_init(&jw, &b);
	jw_object(&jw, NULL);
	otel_health(w->core, &jw);
	jw_end(&jw);
	if (buf_check(&b) == 0)
		o = json_parse(b.data, b.len, NULL);
	n = json_get_int(json_object_get(o, "otel"), key, -1);
	json_decref(o);
	return n;
}

static void wait_given_up(struct world *w, int64_t n)
{
	for (int i = 0; i < 6000 && (health_of(w, "given_up") < n || !delivery_idle(w->core)); i++)
		os_loop_step(w->loop, 10);
	assert_int_equal(health_of(w, "given_up"), n);
}

TEST_OF(asked_for, struct world *w)
{
	struct ava_error err = {0};
	char id[24];

	run_one(w, id);
	wait_given_up(w, 1);
	assert_int_equal(ops_push(w->core, "S-000000", &err), AVA_ENOENT);
	assert_int_equal(ops_push(w->core, id, &err), 0);
	assert_false(delivery_idle(w->core));
	assert_int_equal(ops_push(w->core, id, &err), 0); /* once */
	wait_given_up(w, 2);
	assert_true(delivery_idle(w->core));

	core_close(w->core); /* what was given up is not pushed again */
	must_open(w, true);
	for (int i = 0; i < 50; i++)
		os_loop_step(w->loop, 10);
	assert_int_equal(health_of(w, "given_up"), 0);

	core_close(w->core);
	must_open(w, false);
	assert_int_equal(health_of(w, "pushed"), -1);
	assert_int_equal(ops_push(w->core, id, &err), AVA_EUNSUPPORTED);
}

TEST_OF(open, struct world *w)
{
	bool hit = true;
	long refused = 0;

	for (long k = 0; hit; k += unit_step(1 + k / 20)) {
		struct ava_error err = {0};
		int rv;

		core_close(w->core);
		fault_alloc(k);
		rv = open_core(w, true, &err);
		hit = fault_alloc_end();
		if (rv == 0)
			continue;
		refused++;
		assert_true(err.text[0] != '\0');
		must_open(w, true);
	}
	assert_true(refused > 10 / unit_step(1));
}

/* Wherever memory ends before the request is on its way, the trace is tried, and the next one
 * too. Not while it is: libcurl 7.88 without memory for a socket divides by zero. */
TEST_OF(push, struct world *w)
{
	bool hit = true;
	int64_t n = 1;
	char id[24];
	long k;

	run_one(w, id);
	wait_given_up(w, n);
	for (k = 0; hit; k += unit_step(1 + k / 12)) {
		int rv;

		fault_alloc(k);
		rv = ops_push(w->core, id, NULL);
		for (int i = 0; i < 200 && health_of(w, "attempts") < 1; i++)
			os_loop_step(w->loop, 1);
		hit = fault_alloc_end();
		assert_true(rv == 0 || rv == AVA_ENOMEM);
		n += rv == 0;
		wait_given_up(w, n);
	}
	assert_true(k > 20);
	assert_int_equal(health_of(w, "pushed"), 0);
}

/* ---- what stands on disk */

/* An older day's log: ends of runs that left no files. */
static void put_ends(struct world *w, int from, int to)
{
	char path[500], now[CLOCK_ISO_LEN + 1];
	struct buf b;

	clock_iso(clock_wall_ms(), now);
	buf_init(&b, 1 << 20);
	for (int lsn = from; lsn <= to; lsn++)
		buf_addf(&b,
			 "{\"timestamp\":\"%s\",\"lsn\":%d,\"seq\":%d,\"eventType\":"
			 "\"SubagentComplete\",\"agentId\":\"S-%06x\",\"sessionId\":\"\","
			 "\"traceId\":\"\",\"userId\":\"\",\"content\":{\"subagentId\":"
			 "\"S-%06x\",\"status\":\"success\"},\"metadata\":{}}\n",
			 now, lsn, lsn, (unsigned)lsn, (unsigned)lsn);
	snprintf(path, sizeof(path), "%s/logs/ava/2026-11-20.jsonl", w->root);
	unit_write(path, b.data, b.len);
	buf_fini(&b);
}

/* Opens with ends from 90008 to 90014 and that delivery.json and waits until `n` traces, whose runs
 * have no files, are given up. */
static void open_state(struct world *w, const char *text, size_t len, int64_t n)
{
	char path[400];

	core_close(w->core);
	put_ends(w, 90008, 90014);
	snprintf(path, sizeof(path), "%s/delivery.json", w->root);
	unit_write(path, text, len);
	must_open(w, true);
	for (int i = 0; i < 50; i++)
		os_loop_step(w->loop, 10);
	wait_given_up(w, n);
}

/* doc/DELIVERY.md shows the file: the ends that it names for this channel are pushed, and those
 * with a greater lsn. An endpoint that is new gets nothing of before. */
TEST_OF(golden, struct world *w)
{
	static const char before[] =
		"{\"version\":2,\"lsn\":90009,\"pushed\":90008,\"open\":{},\"late\":\"\"}\n";
	size_t len;
	char *text = unit_read_src("test/golden/delivery/delivery.json", &len);

	open_state(w, text, len, 3); /* 90012, 90013, 90014 */
	open_state(w, before, sizeof(before) - 1, 0);
	free(text);
}

/* Ends that wait beyond the bound are given up, oldest first. */
TEST_OF(bound, struct world *w)
{
	struct delivery *d = w->core->delivery;
	struct channel *ch = d->channels[delivery_bit(DELIVERY_OTEL)];
	char id[24], path[400], *log;
	size_t len;

	ch->rest_ms = os_now_ms(w->loop) + 3600000;
	journal_lsn(w->core->journal, 6000); /* what follows is newer */
	for (unsigned i = 1; i <= DELIVERY_OTEL_MAX; i++) {
		struct notice *it = calloc(1, sizeof(*it));

		assert_non_null(it);
		it->item.lsn = i;
		it->open = DELIVERY_OTEL;
		snprintf(it->item.run, sizeof(it->item.run), "S-%06x", i);
		delivery_insert(d, it);
	}
	run_one(w, id);
	for (int i = 0; health_of(w, "given_up") < 1 && i < 6000; i++)
		os_loop_step(w->loop, 10);
	assert_int_equal(health_of(w, "given_up"), 1);
	assert_int_equal(d->open[delivery_bit(DELIVERY_OTEL)], DELIVERY_OTEL_MAX);
	journal_sync(w->core->journal);
	snprintf(path, sizeof(path), "%s/logs/ava/%s.jsonl", w->root, w->core->book.day);
	log = unit_read(path, &len);
	assert_non_null(strstr(log, "\"delivery.gave_up\",\"data\":{\"channel\":\"otel\",\"lsn\":1,"
				    "\"subagentId\":\"S-000001\",\"attempts\":0,"));
	free(log);
}

UNIT_GROUP(.before = set_up, .after = tear_down);
