/* The machine and people: questions, calls that need a yes, what is said to a
 * run at work. */
#include "agent_rig.h"

#include "agent/ask.h"
#include "agent/position.h"

#define ASK                                                                                        \
	{                                                                                          \
		"ask_person", "{\"question\":\"Which?\",\"choices\":[\"a\",\"b\"],"                \
			      "\"default\":\"a\",\"timeout\":60}"                                  \
	}

static const struct tool *const before[] = {&tool_act};

static void with_yes(struct rig *r)
{
	rig_open(r);
	r->spec.ask_before = before;
	r->spec.nask_before = 1;
	rig_call(r);
}

static void tell(struct rig *r, const char *text, bool yes)
{
	assert_int_equal(agent_on_answer(&r->a, text, yes), 0);
	rig_run(r);
}

/* From the answer on the disk to the slot. */
static void go_on(struct rig *r)
{
	int wants = r->wants;

	rig_saved(r);
	assert_int_equal(r->a.state, AGENT_QUEUED);
	assert_int_equal(r->wants, wants + 1);
	agent_on_slot(&r->a);
	rig_run(r);
}

static void submit_and_close(struct rig *r)
{
	SAY(r, .calls = {SUBMIT});
	assert_end(r, AVA_SUCCESS, "submitted");
	rig_close(r);
}

TEST(question)
{
	struct rig r;

	rig_open(&r);
	rig_call(&r);
	r.now = 31000; /* 30 s are used */
	SAY(&r, .calls = {ASK, LOOK});
	assert_int_equal(r.asks, 0); /* the others first */
	assert_int_equal(r.starts, 1);
	rig_answer(&r, 1, "content");
	assert_int_equal(r.a.state, AGENT_WAITING);
	assert_int_equal(r.drops, 1);
	assert_int_equal(r.asks, 1);
	assert_false(r.approval);
	assert_string_equal(r.question, "Which?");
	assert_string_equal(r.choices, "[\"a\",\"b\"]");
	assert_string_equal(r.fallback, "a");
	assert_int_equal(r.wake, 91000);
	rig_run(&r); /* nothing came */
	assert_int_equal(r.asks, 1);
	r.now = 90999;
	tell(&r, "b", false);
	assert_int_equal(r.ask_ends, 1);
	assert_int_equal(r.asked, ASKED_ANSWERED);
	assert_int_equal(r.wants, 1); /* not before it is on disk */
	rig_saved(&r);
	assert_int_equal(r.wants, 2);
	r.now = 5000000; /* waiting for the slot does not count either */
	agent_on_slot(&r.a);
	rig_run(&r);
	assert_int_equal(r.wake, 5000000 + 600000 - 30000);
	assert_int_equal(r.result_saves, 1);
	assert_string_equal(r.answers[0], "b");
	assert_true(r.good[0]);
	assert_string_equal(r.answers[1], "content");
	submit_and_close(&r);
}

TEST(nobody)
{
	struct rig r;

	rig_open(&r);
	rig_call(&r);
	SAY(&r, .calls = {ASK, {"ask_person", "{\"question\":\"And?\",\"timeout\":5}"}});
	r.now += 60000;
	rig_run(&r);
	assert_int_equal(r.ask_ends, 1);
	assert_int_equal(r.asked, ASKED_EXPIRED);
	assert_int_equal(r.asks, 2); /* the next one, without a slot between */
	assert_int_equal(r.a.state, AGENT_WAITING);
	assert_string_equal(r.question, "And?");
	assert_string_equal(r.choices, "(null)");
	r.now += 5000;
	rig_run(&r);
	assert_int_equal(r.a.state, AGENT_QUEUED);
	rig_saved(&r);
	assert_int_equal(r.wants, 1); /* both must be on disk */
	go_on(&r);
	assert_true(r.good[0]);
	assert_memory_equal(r.answers[0], "a\n(nobody answered", 18);
	assert_false(r.good[1]);
	assert_string_equal(r.classes[1], "timeout");
	submit_and_close(&r);
}

TEST(yes)
{
	struct rig r;

	with_yes(&r);
	SAY(&r, .calls = {ACT, ACT, LOOK});
	assert_true(r.reply_wait); /* as for every tool that is not repeatable */
	rig_saved(&r);
	assert_int_equal(r.starts, 1);
	assert_int_equal(r.started[0], 2);
	rig_answer(&r, 2, "content");
	assert_int_equal(r.asked_call, 0);
	assert_true(r.approval);
	assert_string_equal(r.question, "(null)");
	tell(&r, "yes", true);
	assert_int_equal(r.asked_call, 1); /* leave for one call is none for the next */
	tell(&r, "not this one", false);
	assert_int_equal(r.asked, ASKED_REFUSED);
	assert_int_equal(r.starts, 1);
	rig_saved(&r);
	go_on(&r);
	assert_int_equal(r.starts, 2);
	assert_int_equal(r.started[1], 0);
	rig_answer(&r, 0, "done");
	assert_true(r.good[0]);
	assert_false(r.good[1] || r.began[1]);
	assert_string_equal(r.classes[1], "denied");
	assert_non_null(strstr(r.answers[1], "not this one"));
	/* The same call again needs another yes. */
	SAY(&r, .calls = {ACT});
	rig_saved(&r);
	assert_int_equal(r.asks, 3);
	r.now += 86400000;
	rig_run(&r);
	assert_int_equal(r.asked, ASKED_EXPIRED);
	go_on(&r);
	assert_string_equal(r.classes[0], "timeout");
	assert_int_equal(r.starts, 2);
	submit_and_close(&r);
}

RIG_TEST(cannot_ask)
{
	rig_call(r);
	r->fail_ask = AVA_ENOMEM;
	SAY(r, .calls = {ASK});
	assert_end(r, AVA_ERROR, "internal");
}

/* After a restart: a turn with nothing open but a question gives its slot back. */
RIG_TEST(taken_up_again)
{
	struct say said = {.calls = {LOOK, ASK}};
	struct turn *t = turn_of(&said);

	assert_non_null(t);
	t->calls[0].answered = t->calls[0].success = true;
	t->calls[0].error_class = "";
	t->calls[0].output = "content";
	t->calls[0].output_len = 7;
	r->a.at.used_ms = 1000;
	agent_resume_reply(&r->a, t, 0);
	rig_call(r);
	assert_int_equal(r->a.state, AGENT_WAITING);
	assert_int_equal(r->drops, 1);
	assert_int_equal(r->asks, 1);
	tell(r, "a", false);
	go_on(r);
	assert_int_equal(r->wake, r->now + 599000);
	assert_int_equal(r->result_saves, 1);
	assert_string_equal(r->answers[1], "a");
	SAY(r, .calls = {SUBMIT});
}

/* ---- what is said to a run at work */

RIG_TEST(steered)
{
	rig_call(r);
	agent_on_steer(&r->a);
	/* Its result came before it read what was said: not taken yet. */
	SAY(r, .calls = {SUBMIT, LOOK, SUBMIT});
	assert_int_equal(r->ends, 0);
	rig_answer(r, 1, "content");
	assert_int_equal(r->result_saves, 1);
	assert_string_equal(r->classes[0], "steered");
	assert_string_equal(r->classes[2], "steered");
	assert_int_equal(r->nnotices, 0);
	assert_int_equal(r->a.steers, 0);
	assert_int_equal(r->infers, 2);
	/* A text that would be the end as well, and it is no nudge. */
	agent_on_steer(&r->a);
	agent_on_steer(&r->a);
	SAY(r, .text = "{\"output\":1,\"summary\":\"s\"}");
	assert_int_equal(r->ends, 0);
	assert_int_equal(r->result_saves, 2);
	assert_int_equal(r->nnotices, 0);
	assert_false(r->infer.force_submit);
	SAY(r, .text = "In words.");
	assert_int_equal(r->nnotices, 1); /* the one nudge is still there */
	SAY(r, .text = "{\"output\":1,\"summary\":\"s\"}");
	assert_end(r, AVA_SUCCESS, "final_text");
}

/* Before a limit ends it a person is asked; what the tools of its last reply found
 * is written first. */
static void to_its_limit(struct rig *r)
{
	rig_open(r);
	r->spec.ask_limit = true;
	r->spec.limits.iterations = 1;
	rig_call(r);
	SAY(r, .text = "so far", .calls = {LOOK});
	rig_answer(r, 0, "content");
	assert_int_equal(r->result_saves, 1);
	assert_int_equal(r->a.state, AGENT_WAITING);
	assert_int_equal(r->drops, 1);
	assert_int_equal(r->asks, 1);
	assert_int_equal(r->asked_call, AGENT_ASK_LIMIT);
	assert_int_equal(r->a.over, AGENT_ITERATIONS + 1);
	assert_true(r->approval);
	assert_int_equal(r->ends, 0);
}

TEST(limit_raised)
{
	struct rig r;

	to_its_limit(&r);
	r.now += 1000000; /* that it waits is not its time */
	tell(&r, "yes", true);
	assert_int_equal(r.asked, ASKED_ANSWERED);
	r.spec.limits.iterations = 2; /* the world's part */
	assert_int_equal(r.infers, 1);
	go_on(&r);
	assert_int_equal(r.infers, 2);
	assert_int_equal(r.a.state, AGENT_CALLING);
	assert_int_equal(r.a.at.warned & 1u << AGENT_ITERATIONS, 0);
	submit_and_close(&r);
}

/* The yes was to one more: at the next limit it asks again. */
TEST(limit_again)
{
	struct rig r;

	to_its_limit(&r);
	tell(&r, "yes", true);
	r.spec.limits.iterations = 2;
	r.all_warned = 0; /* of the new limit it is warned anew */
	go_on(&r);
	SAY(&r, .calls = {LOOK});
	rig_answer(&r, 0, "content");
	assert_int_equal(r.warned, 1u << AGENT_ITERATIONS);
	assert_int_equal(r.asks, 2);
	tell(&r, "no", false);
	assert_int_equal(r.asked, ASKED_REFUSED);
	rig_saved(&r);
	assert_end(&r, AVA_ITERATIONS_EXCEEDED, "iterations");
	rig_close(&r);
}

TEST(limit_kept)
{
	struct rig r;

	for (int late = 0; late < 2; late++) {
		to_its_limit(&r);
		if (late) {
			r.now = r.a.ask_until_ms;
			rig_run(&r);
		} else {
			tell(&r, "no", false);
		}
		assert_int_equal(r.asked, late ? ASKED_EXPIRED : ASKED_REFUSED);
		rig_saved(&r);
		assert_end(&r, AVA_ITERATIONS_EXCEEDED, "iterations");
		assert_true(r.end.partial);
		assert_int_equal(r.infers, 1);
		rig_close(&r);
	}
	to_its_limit(&r);
	agent_cancel(&r.a);
	rig_run(&r);
	assert_end(&r, AVA_CANCELLED, "cancelled");
	rig_close(&r);
}

/* A quota that comes back: no slot and no clock until then, and the same call again. */
static void to_its_quota(struct rig *r, bool asks, bool made)
{
	rig_open(r);
	r->spec.ask_quota = asks;
	rig_call(r);
	r->now += 5000;
	agent_on_parked(&r->a, made, "rate_limit", "the limit is used up until 18:40");
	rig_run(r);
	assert_int_equal(r->a.state, AGENT_WAITING);
	assert_int_equal(r->drops, 1);
	assert_int_equal(r->asked_call, AGENT_ASK_QUOTA);
	assert_false(r->approval);
	assert_int_equal(r->a.at.used_ms, 5000);
	assert_int_equal(r->a.at.totals.calls, made ? 1 : 0);
	assert_int_equal(r->a.at.totals.failed_calls, made ? 1 : 0);
	assert_int_equal(r->infers, 1);
}

static void again(struct rig *r)
{
	go_on(r);
	assert_int_equal(r->infers, 2);
	assert_true(r->infer.again);
	assert_int_equal(r->infer.iteration, 1);
	assert_int_equal(r->a.over, 0);
	submit_and_close(r);
}

TEST(quota_comes_back)
{
	struct rig r;

	for (int made = 0; made < 2; made++) {
		to_its_quota(&r, false, made);
		r.now = r.a.ask_until_ms - 1;
		rig_run(&r);
		assert_int_equal(r.ask_ends, 0);
		r.now++;
		rig_run(&r);
		assert_int_equal(r.asked, ASKED_EXPIRED);
		assert_int_equal(r.infers, 1);
		again(&r);
	}
}

TEST(quota_answered)
{
	struct rig r;

	for (int asks = 0; asks < 2; asks++) {
		to_its_quota(&r, asks, true);
		tell(&r, "now", true);
		again(&r);
		to_its_quota(&r, asks, true);
		tell(&r, "stop", false);
		rig_saved(&r);
		assert_end(&r, AVA_ERROR, "model_error");
		assert_string_equal(r.error, "the limit is used up until 18:40");
		rig_close(&r);
		to_its_quota(&r, asks, true);
		agent_cancel(&r.a);
		rig_run(&r);
		assert_end(&r, AVA_CANCELLED, "cancelled");
		rig_close(&r);
	}
}

/* on_quota: ask. It is for a person to say that it waits; nobody does: it ends. */
TEST(quota_asked)
{
	struct rig r;

	to_its_quota(&r, true, true);
	agent_on_wait(&r.a, r.now + 7200000);
	assert_int_equal(r.wake, r.now + 7200000);
	rig_run(&r);
	assert_int_equal(r.ask_ends, 0);
	r.now += 7200000;
	rig_run(&r);
	again(&r);
	to_its_quota(&r, true, true);
	r.now = r.a.ask_until_ms;
	rig_run(&r);
	rig_saved(&r);
	assert_end(&r, AVA_ERROR, "model_error");
	rig_close(&r);
}

/* After a restart it wants no slot. */
RIG_TEST(parked_since_before)
{
	r->a.at.iteration = 1;
	r->a.at.again = true;
	agent_on_parked(&r->a, false, "rate_limit", "used up");
	rig_run(r);
	assert_int_equal(r->a.state, AGENT_WAITING);
	assert_int_equal(r->wants, 0);
	assert_int_equal(r->asks, 1);
	r->now = r->a.ask_until_ms;
	rig_run(r);
	go_on(r);
	assert_int_equal(r->infers, 1);
	SAY(r, .calls = {SUBMIT});
}
