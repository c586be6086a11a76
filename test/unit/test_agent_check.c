/* A result that is proved before it counts: the machine between a submission and its end. */
#include "agent_rig.h"

#include "agent/position.h"

#define FAILED "exit 1, 0.3 s\nFAILED: three is not five"

static void check_open(struct rig *r, const char *check, int rounds)
{
	r->spec.check = check;
	r->spec.check_rounds = rounds;
	rig_call(r);
	SAY(r, .calls = {LOOK});
	rig_answer(r, 0, "content");
}

RIG_TEST(passes)
{
	check_open(r, "make test", 2);
	SAY(r, .calls = {SUBMIT});
	assert_int_equal(r->checks, 1);
	assert_int_equal(r->ends, 0);
	assert_int_equal(r->drops, 0); /* its time and its slot are the run's */
	rig_checked(r, CHECK_PASSED, "exit 0, 0.1 s");
	assert_end(r, AVA_SUCCESS, "submitted");
	assert_string_equal(r->summary, "one");
	assert_string_equal(r->output, "{\"n\":1}");
	assert_true(r->good[0]);
	assert_int_equal(r->tools_stops, 0);
}

RIG_TEST(passes_at_round_two)
{
	check_open(r, "make test", 2);
	SAY(r, .calls = {ACT, SUBMIT});
	assert_int_equal(r->starts, 1); /* the first turn's: none beside a result */
	rig_checked(r, CHECK_FAILED, FAILED);
	assert_int_equal(r->ends, 0);
	assert_string_equal(r->classes[1], "check");
	assert_string_equal(r->answers[1],
			    "not accepted: the check of the result did not pass (1 of 3): make "
			    "test\n" FAILED "\nMend what it found and call submit_result again.");
	assert_string_equal(r->classes[0], "cancelled");
	assert_non_null(strstr(r->answers[0], "beside submit_result"));
	SAY(r, .calls = {ACT});
	rig_saved(r);
	rig_answer(r, 0, "done");
	SAY(r, .calls = {{"submit_result", "{\"summary\":\"two\",\"confidence\":1}"}});
	assert_int_equal(r->checks, 2);
	rig_checked(r, CHECK_PASSED, "exit 0, 0.1 s");
	assert_end(r, AVA_SUCCESS, "submitted");
	assert_string_equal(r->summary, "two");
}

RIG_TEST(never_passes)
{
	check_open(r, "make test", 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(r->ends, 0);
		SAY(r, .calls = {SUBMIT});
		rig_checked(r, CHECK_FAILED, FAILED);
	}
	assert_end(r, AVA_UNPROVEN, "check");
	assert_string_equal(r->error, "its check did not pass: exit 1, 0.3 s");
	assert_string_equal(r->error_class, "(null)");
	assert_string_equal(r->summary, "one"); /* kept, as what it is */
	assert_string_equal(r->output, "{\"n\":1}");
	assert_string_equal(r->caveats, "[\"few\"]");
	assert_false(r->end.partial);
	assert_false(r->good[0]);
}

RIG_TEST(no_rounds_and_unable)
{
	check_open(r, "make test", 2);
	SAY(r, .calls = {SUBMIT});
	rig_checked(r, CHECK_UNABLE, "no command can be run here");
	assert_end(r, AVA_UNPROVEN, "check");
	assert_string_equal(r->error, "its check could not be run: no command can be run here");
}

/* A result in a text is checked as well; what it says comes as a notice. */
RIG_TEST(of_a_text)
{
	check_open(r, "make test", 1);
	SAY(r, .text = "{\"summary\":\"said\",\"output\":[1]}");
	assert_int_equal(r->checks, 1);
	rig_checked(r, CHECK_FAILED, FAILED);
	assert_int_equal(r->nnotices, 1);
	assert_non_null(
		strstr(r->notices[0], "its check did not pass (1 of 2): make test: exit 1"));
	assert_non_null(strstr(r->notices[0], "three is not five"));
	SAY(r, .text = "{\"summary\":\"again\",\"output\":[2]}");
	rig_checked(r, CHECK_PASSED, "exit 0, 0.1 s");
	assert_end(r, AVA_SUCCESS, "final_text");
	assert_string_equal(r->summary, "again");
	assert_true(r->end.unverified);
}

/* A run that only talks behind a failed check hands in what it had. */
RIG_TEST(words_behind_it)
{
	check_open(r, "make test", 2);
	SAY(r, .calls = {SUBMIT});
	rig_checked(r, CHECK_FAILED, FAILED);
	SAY(r, .text = "I give up.");
	assert_int_equal(r->ends, 0);
	SAY(r, .text = "I have given up.");
	assert_end(r, AVA_UNPROVEN, "final_text");
	assert_string_equal(r->summary, "one");
	assert_string_equal(r->output, "{\"n\":1}");
	assert_string_equal(r->error, "its check did not pass");
}

/* A limit that comes behind a failed check, or while it runs, ends the run as ever, with the
 * result that it had. */
RIG_TEST(limits)
{
	r->spec.limits.iterations = 2;
	check_open(r, "make test", 2);
	SAY(r, .calls = {SUBMIT});
	assert_int_equal(r->checks, 1); /* it is paid for with time alone */
	rig_checked(r, CHECK_FAILED, FAILED);
	assert_end(r, AVA_ITERATIONS_EXCEEDED, "iterations");
	assert_string_equal(r->summary, "one");
	assert_true(r->end.partial);
	assert_string_equal(r->classes[0], "check");
}

RIG_TEST(time_while_it_runs)
{
	check_open(r, "make test", 2);
	SAY(r, .calls = {SUBMIT});
	r->now = r->wake;
	rig_run(r);
	assert_end(r, AVA_TIMEOUT, "time");
	assert_int_equal(r->tools_stops, 1);
	assert_string_equal(r->summary, "one");
	assert_string_equal(r->answers[0],
			    "stopped: the run has reached its time limit; it may have had effects");
}

RIG_TEST(cancel_while_it_runs)
{
	check_open(r, "make test", 2);
	SAY(r, .calls = {SUBMIT});
	agent_cancel(&r->a);
	rig_run(r);
	assert_end(r, AVA_CANCELLED, "cancelled");
	assert_int_equal(r->tools_stops, 1);
	assert_string_equal(r->summary, "one");
}

/* A message that comes while it runs is read before the run ends. */
RIG_TEST(steered_while_it_runs)
{
	check_open(r, "make test", 2);
	SAY(r, .calls = {SUBMIT});
	agent_on_steer(&r->a);
	rig_checked(r, CHECK_PASSED, "exit 0, 0.1 s");
	assert_int_equal(r->ends, 0);
	assert_string_equal(r->classes[0], "steered");
	SAY(r, .calls = {SUBMIT});
	assert_int_equal(r->checks, 2); /* what it did since is not proved */
	rig_checked(r, CHECK_PASSED, "exit 0, 0.1 s");
	assert_end(r, AVA_SUCCESS, "submitted");
}

/* At a limit that a person may raise the model hears of the check once they did. */
RIG_TEST(limit_asks)
{
	r->spec.ask_limit = true;
	r->spec.limits.iterations = 2;
	check_open(r, "make test", 2);
	SAY(r, .calls = {SUBMIT});
	rig_checked(r, CHECK_FAILED, FAILED);
	assert_int_equal(r->ends, 0);
	assert_int_equal(r->asks, 1);
	assert_int_equal(agent_on_answer(&r->a, "no", false), 0);
	rig_run(r);
	while (r->ends == 0 && r->a.saves > 0)
		rig_saved(r);
	assert_end(r, AVA_ITERATIONS_EXCEEDED, "iterations");
	assert_string_equal(r->summary, "one"); /* from its position: the turn is gone */
}

/* ---- a stop of the runtime at each step: the same end */

static struct turn *submission(void)
{
	return turn_of(&(struct say){.calls = {SUBMIT}});
}

/* Go on as a new process does: the position of the last call, then the reply, if it was written. */
static void check_revive(struct rig *r, bool replied)
{
	struct agent_position at;
	struct agent old = r->a;
	char *said = NULL;

	agent_position_of(&old, r->now, &at);
	if (at.said != NULL && !replied)
		said = strdup(at.said);
	at.repeats = NULL;
	at.said = said;
	at.totals.calls -= replied; /* agent_resume_reply counts nothing of the call itself */
	agent_fini(&old);
	agent_init(&r->a, &io, &r->spec, r, 3000);
	at.totals.calls += replied;
	agent_restore(&r->a, &at, "");
	if (replied)
		agent_resume_reply(&r->a, submission(), 10);
	r->drops = r->wants;
	rig_run(r);
	agent_on_slot(&r->a);
	rig_run(r);
}

RIG_TEST(stopped_before_and_while_it_runs)
{
	check_open(r, "make test", 0);
	/* its reply is on disk, the check has begun: it begins once more */
	SAY(r, .calls = {SUBMIT});
	assert_int_equal(r->checks, 1);
	check_revive(r, true);
	assert_int_equal(r->checks, 2);
	/* … and again, whatever it said before nobody wrote that down */
	check_revive(r, true);
	assert_int_equal(r->checks, 3);
	assert_int_equal(r->ends, 0);
	rig_checked(r, CHECK_FAILED, FAILED);
	assert_end(r, AVA_UNPROVEN, "check");
	assert_string_equal(r->summary, "one");
}

RIG_TEST(stopped_between_rounds)
{
	check_open(r, "make test", 1);
	SAY(r, .calls = {SUBMIT});
	rig_checked(r, CHECK_FAILED, FAILED);
	assert_int_equal(r->a.at.checks, 1);
	r->a.asked = false; /* the call that was under way is made again */
	r->a.at.iteration--;
	check_revive(r, false);
	assert_int_equal(r->a.at.checks, 1);
	SAY(r, .calls = {SUBMIT});
	rig_checked(r, CHECK_FAILED, FAILED);
	assert_end(r, AVA_UNPROVEN, "check"); /* the round before counts */
	assert_string_equal(r->summary, "one");
}

/* A result whose form is wrong is no matter of the check. */
RIG_TEST(schema_first)
{
	r->spec.output_schema = "{\"type\":\"array\",\"minItems\":3}";
	check_open(r, "make test", 2);
	SAY(r, .calls = {SUBMIT});
	assert_int_equal(r->checks, 0);
	assert_string_equal(r->classes[0], "bad_output");
	SAY(r, .calls = {{"submit_result", "{\"summary\":\"s\",\"output\":[1,2,3]}"}});
	assert_int_equal(r->checks, 1);
	rig_checked(r, CHECK_PASSED, "exit 0, 0.1 s");
	assert_end(r, AVA_SUCCESS, "submitted");
	assert_string_equal(r->output, "[1,2,3]");
}
