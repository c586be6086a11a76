/* libava without memory: each allocation of a whole use of it fails once, and
 * what comes back is an error or the right answer. Linked from the archives, so
 * that allocations can be made to fail; embedded and connected ($MODE). */
#include "api/world.h"

static struct world *w; /* its runtime keeps the daemon, or is what is tried */
static char run[24], session[48];

static void count(const struct ava_event *e, void *user)
{
	++*(unsigned *)user;
}

/* Only these two: what is known to exist is never said not to. */
static bool fine(int rv, const struct ava_error *err)
{
	if (rv >= 0 || rv == AVA_ENOMEM)
		return true;
	print_error("%d: %s\n", rv, err->text);
	return false;
}

static void lists(struct ava_runtime *rt)
{
	const struct ava_proposal *proposals;
	const struct ava_session *sessions;
	const struct ava_line *lines;
	const struct ava_run *runs;
	struct ava_error err;
	size_t n;

	assert_true(fine(ava_runs(rt, 1, 0, &runs, &n, &err), &err));
	assert_true(fine(ava_proposals(rt, 1, &proposals, &n, &err), &err));
	assert_true(fine(ava_sessions(rt, 0, &sessions, &n, &err), &err));
	assert_true(fine(ava_session_entries(rt, session, NULL, &lines, &n, &err), &err));
}

static void one_run(struct ava_runtime *rt)
{
	const char *runs[] = {run};
	struct ava_result result;
	struct ava_error err;
	struct ava_run r;
	int rv;

	rv = ava_status(rt, run, &r, &err);
	assert_true(fine(rv, &err));
	if (rv == 0)
		assert_string_equal(r.id, run);
	rv = ava_result(rt, run, &result, &err);
	assert_true(fine(rv, &err));
	if (rv == 0)
		assert_int_equal(result.status, AVA_SUCCESS);
	assert_true(fine(ava_wait(rt, runs, 1, AVA_WAIT_ALL, 60000, NULL, &err), &err));
	assert_true(fine(ava_is_done(rt, run, &err), &err));
}

/* A log that could not be opened for want of memory is asked for again. */
static bool again(int rv, const struct ava_error *err)
{
	return rv == AVA_EIO || fine(rv, err);
}

static void events(struct ava_runtime *rt)
{
	const struct ava_callbacks callbacks = {.event = count};
	struct ava_events_query q = {.run = run};
	struct ava_events *e = NULL;
	struct ava_watch *watch = NULL;
	struct ava_line item;
	struct ava_event ev;
	struct ava_error err;
	unsigned n = 0;
	int rv;

	assert_true(fine(ava_events_open(rt, &q, &e, &err), &err));
	for (int i = 0; e && i < 5; i++)
		if (ava_events_wait(e, 0, &err) == 1) {
			rv = ava_events_next(e, &ev, &err);
			assert_true(again(rv, &err));
			if (rv == 1)
				assert_true(fine(ava_item(rt, &ev, &item, &err), &err));
		}
	ava_events_close(e);
	assert_true(fine(ava_watch(rt, &q, &callbacks, &n, &watch, &err), &err));
	assert_true(again(ava_runtime_process(rt, 0, &err), &err));
	ava_unwatch(watch);
}

static void use(void)
{
	struct ava_options o = {.root = w->root, .no_start = 1};
	struct ava_runtime *rt = w->rt;
	struct ava_error err;

	if (!w->embedded && ava_runtime_connect(&rt, &o, &err) != 0) {
		assert_int_equal(err.code, AVA_ENOMEM);
		return;
	}
	one_run(rt);
	lists(rt);
	events(rt);
	if (!w->embedded)
		ava_runtime_free(rt);
}

TEST(use)
{
	struct ava_spawn s = {.task = "where is the torn tail?", .role = "code_reviewer"};
	struct ava_run_id id;
	struct ava_session_id sid;

	w = *state;
	s.cwd = w->work;
	assert_int_equal(ava_spawn(w->rt, &s, &id, NULL), 0);
	snprintf(run, sizeof(run), "%s", id.text);
	world_wait(w, run);
	assert_int_equal(ava_session_new(w->rt, NULL, &sid, NULL), 0);
	snprintf(session, sizeof(session), "%s", sid.text);
	FAULT_LOOP(k, use());
}

UNIT_GROUP(.before = world_begin, .after = world_end);
