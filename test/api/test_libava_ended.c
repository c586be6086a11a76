/* Going on from ended runs, and checking their records, through libava's public face;
 * the same program embedded and connected ($MODE). */
#include "api/world.h"

#define SUBMIT                                                                                     \
	"{\"tool_calls\":[{\"name\":\"submit_result\",\"args\":{\"output\":null,"                  \
	"\"summary\":\"cut at the last whole record\",\"confidence\":1}}]}\n"
/* The third turn is that of a run that goes on behind the first reply: what it is told
 * then counts as one. */
static const char script[] =
	"{\"tool_calls\":[{\"name\":\"read_file\",\"args\":{\"path\":\"notes.md\"}}]}\n" SUBMIT
		SUBMIT;

static char model[400]; /* says that */

static int set_up(void **state)
{
	int rv = world_begin(state);

	world_script(*state, script, model);
	return rv;
}

/* One that has ended behind so many replies. */
static struct ava_run_id ended(struct world *w, int64_t iterations)
{
	struct ava_spawn s = {.task = "where is the torn tail cut?",
			      .role = "code_reviewer",
			      .cwd = w->work,
			      .model = model,
			      .max_iterations = iterations};
	struct ava_error err;
	struct ava_run_id id;

	WORLD_OK(ava_spawn(w->rt, &s, &id, &err));
	world_wait(w, id.text);
	return id;
}

/* The run that a yes to the proposal starts, when it has ended. */
static struct ava_run_id confirmed(struct world *w, const struct ava_proposal *p)
{
	struct ava_proposal answered;
	struct ava_run_id id;
	char proposal[24];

	assert_int_equal(p->state, AVA_PENDING);
	snprintf(proposal, sizeof(proposal), "%s", p->id);
	assert_int_equal(ava_confirm(w->rt, proposal, "yes", &answered, NULL), 0);
	assert_int_equal(answered.state, AVA_CONFIRMED);
	snprintf(id.text, sizeof(id.text), "%s", answered.run);
	world_wait(w, id.text);
	return id;
}

TEST_OF(resume, struct world *w)
{
	struct ava_resume more = {.max_iterations = 5, .request_id = "again-1"};
	struct ava_run_id one = ended(w, 1), two;
	struct ava_proposal p;
	struct ava_result res;
	struct ava_error err;
	struct ava_run run;
	char proposal[24];

	assert_int_equal(ava_result(w->rt, one.text, &res, NULL), 0);
	assert_int_equal(res.status, AVA_ITERATIONS_EXCEEDED);
	WORLD_OK(ava_resume(w->rt, one.text, &more, &p, &err));
	assert_non_null(strstr(p.message, "Proceed?"));
	assert_non_null(strstr(p.config, one.text));
	snprintf(proposal, sizeof(proposal), "%s", p.id);
	assert_int_equal(ava_resume(w->rt, one.text, &more, &p, &err), 0);
	assert_string_equal(p.id, proposal); /* the same request */
	two = confirmed(w, &p);
	assert_string_not_equal(two.text, one.text);
	assert_int_equal(ava_status(w->rt, two.text, &run, NULL), 0);
	assert_string_equal(run.task, "where is the torn tail cut?");
	assert_string_equal(run.model, model);
	assert_string_equal(run.cwd, w->work);
	assert_int_equal(run.max_iterations, 5);
	assert_int_equal(run.timeout_ms, 300000); /* as it was */
	assert_int_equal(ava_result(w->rt, two.text, &res, NULL), 0);
	assert_int_equal(res.status, AVA_SUCCESS);
	assert_string_equal(res.summary, "cut at the last whole record");
	assert_int_equal(ava_result(w->rt, one.text, &res, NULL), 0);
	assert_int_equal(res.status, AVA_ITERATIONS_EXCEEDED); /* that one ended once */
}

TEST(resume_refused)
{
	struct ava_resume never = {.confirm = "never"}, bad = {.from = 99};
	struct world *w = *state;
	struct ava_run_id one = ended(w, 0), slow;
	struct ava_spawn endless = {.task = "x", .model = w->slow};
	struct ava_proposal p;
	struct ava_error err;
	char id[24];

	assert_int_equal(ava_spawn(w->rt, &endless, &slow, NULL), 0);
	assert_int_equal(ava_resume(w->rt, "S-000000", NULL, &p, &err), AVA_ENOENT);
	assert_int_equal(ava_resume(w->rt, NULL, NULL, &p, &err), AVA_EINVAL);
	assert_int_equal(ava_resume(w->rt, one.text, &bad, &p, &err), AVA_ENOENT);
	bad.from = -1;
	assert_int_equal(ava_resume(w->rt, one.text, &bad, &p, &err), AVA_EINVAL);
	bad = (struct ava_resume){.max_tokens = -1};
	assert_int_equal(ava_resume(w->rt, one.text, &bad, &p, &err), AVA_EINVAL);
	assert_int_equal(ava_resume(w->rt, slow.text, NULL, &p, &err), AVA_EBUSY);
	assert_non_null(strstr(err.text, "goes on by itself"));
	assert_int_equal(ava_cancel(w->rt, slow.text, NULL), 0);
	/* Where nobody has to be asked it runs at once. */
	assert_int_equal(ava_resume(w->rt, one.text, &never, &p, &err), 0);
	assert_int_equal(p.state, AVA_CONFIRMED);
	snprintf(id, sizeof(id), "%s", p.run);
	world_wait(w, id);
}

TEST_OF(fork, struct world *w)
{
	struct ava_resume fork = {.from = 2};
	struct ava_run_id one = ended(w, 0), two;
	struct ava_proposal p;
	struct ava_replay r;
	struct ava_error err;
	struct ava_run run;

	WORLD_OK(ava_resume(w->rt, one.text, &fork, &p, &err));
	two = confirmed(w, &p);
	assert_int_equal(ava_status(w->rt, two.text, &run, NULL), 0);
	assert_int_equal(run.iteration, 1); /* the second call alone */
	assert_int_equal(ava_replay(w->rt, two.text, 0, &r, &err), 0);
	assert_true(r.identical && r.complete);
}

/* By a name that was given while it ran. */
TEST(fork_at_a_checkpoint)
{
	static const char asks[] = "{\"tool_calls\":[{\"name\":\"ask_person\",\"args\":{"
				   "\"question\":\"Which?\"}}]}\n" SUBMIT;
	struct ava_resume fork = {.checkpoint = "before-it"};
	struct world *w = *state;
	struct ava_spawn s = {.task = "x", .model = model};
	struct ava_proposal p;
	struct ava_run_id id;
	struct ava_error err;
	struct ava_run run;

	world_script(w, asks, model);
	assert_int_equal(ava_spawn(w->rt, &s, &id, &err), 0);
	do {
		ava_runtime_process(w->rt, 10, NULL);
		assert_int_equal(ava_status(w->rt, id.text, &run, NULL), 0);
		assert_true(run.status < AVA_SUCCESS);
	} while (run.status != AVA_WAITING || !run.asks[0]);
	WORLD_OK(ava_checkpoint(w->rt, id.text, "before-it", &err));
	assert_int_equal(ava_steer(w->rt, id.text, "this", NULL, &err), 0);
	world_wait(w, id.text);
	WORLD_OK(ava_resume(w->rt, id.text, &fork, &p, &err));
	assert_int_equal(p.state, AVA_PENDING);
	assert_non_null(strstr(p.config, "\"resumedCall\":1"));
	fork.checkpoint = "elsewhere";
	assert_int_equal(ava_resume(w->rt, id.text, &fork, &p, &err), AVA_ENOENT);
}

/* A byte of what the model was told is not what the tool had said. */
static void change_messages(struct world *w, const char *run)
{
	char path[400], *text, *at;
	size_t len;

	snprintf(path, sizeof(path), "%s/runs/%s/messages.jsonl", w->root, run);
	text = unit_read(path, &len);
	at = memmem(text, len, "The torn tail is", 16);
	assert_non_null(at);
	at[4] = 'w';
	unit_write(path, text, len);
	free(text);
}

TEST_OF(replay, struct world *w)
{
	struct ava_resume fork = {.from = 2};
	struct ava_run_id one = ended(w, 0);
	struct ava_proposal p;
	struct ava_replay r;
	struct ava_error err;

	WORLD_OK(ava_replay(w->rt, one.text, 0, &r, &err));
	assert_true(r.identical && r.complete);
	assert_string_equal(r.reason, "");
	assert_int_equal(r.calls, 2);
	assert_true(r.events > 5 && r.found == 0 && r.ndifferences == 0);
	assert_int_equal(ava_replay(w->rt, "S-000000", 0, &r, &err), AVA_ENOENT);
	assert_int_equal(ava_replay(w->rt, "", 0, &r, &err), AVA_EINVAL);
	assert_int_equal(ava_replay(w->rt, "../../etc", 0, &r, &err), AVA_ENOENT);

	change_messages(w, one.text);
	assert_int_equal(ava_replay(w->rt, one.text, 0, &r, &err), 0);
	assert_false(r.identical);
	assert_int_equal(r.ndifferences, 1);
	assert_string_equal(r.differences[0].type, "ToolResult");
	assert_string_equal(r.differences[0].call, "c1.1");
	assert_non_null(strstr(r.differences[0].what, "read_file"));
	assert_true(r.differences[0].lsn > 0 && r.differences[0].seq > 0);
	assert_true(r.differences[0].byte > 0);
	assert_non_null(strstr(r.differences[0].recorded, "The torn"));
	assert_non_null(strstr(r.differences[0].replayed, "The worn"));
	assert_int_equal(ava_replay(w->rt, one.text, 1, &r, &err), 0);
	assert_true(r.found > 1 && r.ndifferences > 1);
	assert_int_equal(ava_resume(w->rt, one.text, &fork, &p, &err), AVA_ECORRUPT);
}

UNIT_GROUP(.before = set_up, .after = world_end);
