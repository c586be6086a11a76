/* Memory ends at the k-th allocation: while the runtime opens, while a run
 * works, and in a stop. An open is refused in one sentence or goes well, and the next one
 * finds everything. A run ends, or is left for the next start: then it holds no
 * slot, says why it cannot be cancelled, and has ended once after a restart. */
#include "core_rig.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "provider/model.h"
#include "runs_now.h"

static int set_up(void **state)
{
	struct world *w = core_world("offline");

	w->settings.runs_max = 1;
	w->segment_bytes = 128 << 10;
	open_core(w);
	*state = w;
	return 0;
}

static struct got begun(struct world *w, const char *model)
{
	struct op_spawn s = ask(w, "Where is parse_header defined?");

	s.model = model;
	return spawn(w, &s);
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

TEST_OF(open, struct world *w)
{
	struct ava_error err;
	struct got g = begun(w, NULL);
	bool hit = true;
	long k, refused = 0;

	for (k = 0; hit; k += unit_step(1 + k / 40)) {
		int rv;

		core_close(w->core);
		err = (struct ava_error){0};
		fault_alloc(k);
		rv = try_open(w, &err);
		hit = fault_alloc_end();
		if (rv == 0)
			continue;
		refused++;
		assert_true(err.text[0] != '\0' && strchr(err.text, '\n') == NULL);
		open_core(w);
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
	struct got g = begun(w, NULL), other, c;
	bool hit;

	fault_alloc(k);
	for (int i = 0; i < 400 && !ended(w, g.id); i++)
		os_loop_step(w->loop, 1);
	hit = fault_alloc_end();
	/* Whatever became of it, the only slot is free for another run. */
	other = begun(w, NULL);
	for (int i = 0; !ended(w, other.id) && i < 6000; i++)
		os_loop_step(w->loop, 10);
	assert_true(ended(w, other.id));
	if (ended(w, g.id))
		return hit;
	++*left;
	c = cancel(w, g.id);
	assert_int_equal(c.rv, AVA_ENOMEM);
	assert_non_null(strstr(c.text, "ends at the next start"));
	assert_int_equal(w->core->sup.slots_used, 0);
	core_close(w->core);
	open_core(w);
	for (int i = 0; !ended(w, g.id) && i < 6000; i++)
		os_loop_step(w->loop, 10);
	assert_true(ended(w, g.id));
	return hit;
}

TEST_OF(run, struct world *w)
{
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
TEST_OF(stop, struct world *w)
{
	char url[64];
	int fd = silent_service(url);

	core_close(w->core);
	w->model = NULL;
	setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789", 1);
	setenv("ANTHROPIC_BASE_URL", url, 1);
	assert_int_equal(provider_configure(NULL), 0);
	open_core(w);
	for (int late = 0; late < 2; late++) {
		bool hit = true;

		for (long k = 0; hit; k += unit_step(1 + k / 8)) {
			struct got g = begun(w, "anthropic/claude-haiku-4-5");

			for (int i = 0; i < 30 && late; i++)
				os_loop_step(w->loop, 1);
			fault_alloc(k);
			for (int i = 0; i < 30 && !late; i++)
				os_loop_step(w->loop, 1);
			core_close(w->core);
			hit = fault_alloc_end();
			open_core(w);
			cancel(w, g.id); /* a queued one */
			assert_true(ended(w, g.id));
		}
	}
	close(fd);
}

UNIT_GROUP(.before = set_up, .after = tear_down);
