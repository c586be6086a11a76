/* Memory ends at the k-th allocation: while the runtime opens, while a run
 * works, and in a stop. An open is refused in one sentence or goes well, and the next one
 * finds everything. A run ends, or is left for the next start: then it holds no
 * slot, says why it cannot be cancelled, and has ended once after a restart. */
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
#include "ava/ops.h"
#include "ava/state.h"
#include "base/error.h"
#include "base/settings.h"
#include "os/loop.h"
#include "provider/model.h"
#include "runs_now.h"

struct world {
	char dir[256], root[300], src[300];
	struct os_loop *loop;
	struct settings settings;
	struct core *core;
	const char *model; /* of all runs; NULL: what they ask for */
};

static int open_core(struct world *w, struct ava_error *err)
{
	struct core_options o = {.loop = w->loop,
				 .root = w->root,
				 .settings = &w->settings,
				 .model = w->model,
				 .segment_bytes = 128 << 10};

	w->core = NULL;
	return core_open(&w->core, &o, err);
}

static void must_open(struct world *w)
{
	struct ava_error err = {0};

	if (open_core(w, &err) != 0)
		fail_msg("core_open: %s", err.text);
}

static int set_up(void **state)
{
	static const char source[] = "int parse_header(const char *s)\n{\n\treturn *s == 'H';\n}\n";
	struct world *w = calloc(1, sizeof(*w));
	char path[400];

	assert_non_null(w);
	snprintf(w->dir, sizeof(w->dir), "%s", unit_tmpdir());
	snprintf(w->root, sizeof(w->root), "%s/data", w->dir);
	snprintf(w->src, sizeof(w->src), "%s/src", w->dir);
	mkdir(w->root, 0700);
	mkdir(w->src, 0700);
	snprintf(path, sizeof(path), "%s/parser.c", w->src);
	unit_write(path, source, strlen(source));
	settings_load(&w->settings, NULL);
	w->settings.disk_free_min_mb = 0;
	w->settings.runs_max = 1;
	w->model = "offline";
	w->loop = os_loop_new(NULL);
	assert_non_null(w->loop);
	must_open(w);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	core_close(w->core);
	os_loop_free(w->loop);
	unit_rmdir(w->dir);
	free(w);
	return 0;
}

/* ---- asking */

struct got {
	int calls, rv;
	char id[32], word[32], text[256];
};

static void status_cb(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	struct got *g = user;

	g->calls++;
	g->rv = rv;
	if (rv == 0) {
		snprintf(g->id, sizeof(g->id), "%s", s->id);
		snprintf(g->word, sizeof(g->word), "%s", ava_status_name(s->status));
	} else {
		snprintf(g->text, sizeof(g->text), "%.250s", err->text);
	}
}

static void until(struct world *w, struct got *g)
{
	for (int i = 0; g->calls == 0 && i < 6000; i++)
		os_loop_step(w->loop, 10);
	assert_int_equal(g->calls, 1);
}

static void ask(struct world *w, struct got *g, const char *model)
{
	struct op_spawn s = {.role = "code_reviewer",
			     .task = "Where is parse_header defined?",
			     .cwd = w->src,
			     .model = model,
			     .origin = "test",
			     .session_id = "s1",
			     .user_id = "tester",
			     .request_id = "",
			     .timeout_ms = AVA_DEFAULT,
			     .max_cost_microusd = AVA_DEFAULT,
			     .max_tokens = AVA_DEFAULT,
			     .max_iterations = AVA_DEFAULT};

	*g = (struct got){0};
	ops_spawn(w->core, &s, status_cb, g);
}

static void word_of(const struct op_status *s, void *user)
{
	struct got *g = user;

	snprintf(g->word, sizeof(g->word), "%s", ava_status_name(s->status));
}

static bool ended(struct world *w, const char *id)
{
	struct ava_error err;
	struct got g = {0};

	int rv = run_now(w->core, id, word_of, &g, &err);

	if (rv == AVA_ENOMEM)
		return false; /* the question met the failure: asked again */
	assert_int_equal(rv, 0);
	return strcmp(g.word, "queued") != 0 && strcmp(g.word, "running") != 0 &&
	       strcmp(g.word, "starting") != 0;
}

/* ---- opening */

TEST(open)
{
	struct world *w = *state;
	struct ava_error err;
	struct got g;
	bool hit = true;
	long k, refused = 0;

	ask(w, &g, NULL);
	until(w, &g);
	assert_int_equal(g.rv, 0);
	for (k = 0; hit; k += unit_step(1 + k / 40)) {
		int rv;

		core_close(w->core);
		err = (struct ava_error){0};
		fault_alloc(k);
		rv = open_core(w, &err);
		hit = fault_alloc_end();
		if (rv == 0)
			continue;
		refused++;
		assert_true(err.text[0] != '\0' && strchr(err.text, '\n') == NULL);
		must_open(w);
	}
	assert_true(k > 50 && refused > 10 / unit_step(1));
	for (int i = 0; !ended(w, g.id) && i < 6000; i++)
		os_loop_step(w->loop, 10);
	assert_true(ended(w, g.id));
}

/* ---- a run */

/* True: the failure was delivered. */
static bool run_without(struct world *w, long k, long *left)
{
	struct got g, other, cancel = {0};
	bool hit;

	ask(w, &g, NULL);
	until(w, &g);
	assert_int_equal(g.rv, 0);
	fault_alloc(k);
	for (int i = 0; i < 400 && !ended(w, g.id); i++)
		os_loop_step(w->loop, 1);
	hit = fault_alloc_end();
	/* Whatever became of it, the only slot is free for another run. */
	ask(w, &other, NULL);
	until(w, &other);
	assert_int_equal(other.rv, 0);
	for (int i = 0; !ended(w, other.id) && i < 6000; i++)
		os_loop_step(w->loop, 10);
	assert_true(ended(w, other.id));
	if (ended(w, g.id))
		return hit;
	++*left;
	ops_cancel(w->core, g.id, NULL, NULL, status_cb, &cancel);
	until(w, &cancel);
	assert_int_equal(cancel.rv, AVA_ENOMEM);
	assert_non_null(strstr(cancel.text, "ends at the next start"));
	assert_int_equal(w->core->sup.slots_used, 0);
	core_close(w->core);
	must_open(w);
	for (int i = 0; !ended(w, g.id) && i < 6000; i++)
		os_loop_step(w->loop, 10);
	assert_true(ended(w, g.id));
	return hit;
}

TEST(run)
{
	struct world *w = *state;
	long k = 0, left = 0;

	while (run_without(w, k, &left))
		k += 1 + k / 6;
	print_message("%ld of the runs were left for the next start\n", left);
	assert_true(k > 100 && left > 0);
}

/* ---- a stop */

/* A service that takes connections and says nothing; nothing of this process
 * allocates for it. */
static int silent_service(char url[64])
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 1000), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	snprintf(url, 64, "http://127.0.0.1:%u", ntohs(at.sin_port));
	return fd;
}

/* Memory ends from a call's start to the end of a stop, or only in the stop:
 * everything is given back, and the next start knows the run. */
TEST(stop)
{
	struct world *w = *state;
	char url[64];
	int fd = silent_service(url);

	core_close(w->core);
	w->model = NULL;
	setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789", 1);
	setenv("ANTHROPIC_BASE_URL", url, 1);
	assert_int_equal(provider_configure(NULL), 0);
	must_open(w);
	for (int late = 0; late < 2; late++) {
		bool hit = true;

		for (long k = 0; hit; k += unit_step(1 + k / 8)) {
			struct got g, cancel = {0};

			ask(w, &g, "anthropic/claude-haiku-4-5");
			until(w, &g);
			assert_int_equal(g.rv, 0);
			for (int i = 0; i < 30 && late; i++)
				os_loop_step(w->loop, 1);
			fault_alloc(k);
			for (int i = 0; i < 30 && !late; i++)
				os_loop_step(w->loop, 1);
			core_close(w->core);
			hit = fault_alloc_end();
			must_open(w);
			ops_cancel(w->core, g.id, NULL, NULL, status_cb,
				   &cancel); /* a queued one */
			until(w, &cancel);
			assert_true(ended(w, g.id));
		}
	}
	close(fd);
}

UNIT_GROUP(.before = set_up, .after = tear_down);
