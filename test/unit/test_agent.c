/* The machine on its way: calls, text, replies that are odd, failures. */
#include "agent_rig.h"

#include "agent/position.h"
#include "agent/prompt.h"

/* ---- the way through */

RIG_TEST(submit)
{
	rig_run(r);
	rig_run(r);
	assert_int_equal(r->wants, 1);
	assert_int_equal(r->infers, 0);
	r->now = 5000;
	agent_on_slot(&r->a);
	rig_run(r);
	assert_int_equal(r->wake, 605000); /* the clock starts with the slot */
	assert_int_equal(r->infers, 1);
	assert_int_equal(r->infer.iteration, 1);
	assert_int_equal(r->infer.max_output, 8192);
	SAY(r, .calls = {LOOK});
	assert_false(r->reply_wait); /* repeatable: rides */
	assert_int_equal(r->a.state, AGENT_TOOLS);
	assert_int_equal(r->starts, 1);
	rig_answer(r, 0, "content");
	assert_int_equal(r->result_saves, 1);
	assert_int_equal(r->infer.iteration, 2);
	SAY(r, .calls = {SUBMIT});
	assert_false(r->reply_wait);
	assert_end(r, AVA_SUCCESS, "submitted");
	assert_string_equal(r->output, "{\"n\":1}");
	assert_string_equal(r->summary, "one");
	assert_string_equal(r->caveats, "[\"few\"]");
	assert_true(r->end.confidence == 0.5);
	assert_false(r->end.partial || r->end.unverified);
	assert_string_equal(r->exhausted, "(null)");
	assert_true(r->good[0]);
	assert_int_equal(r->starts, 1);
	assert_int_equal(r->dones, 0); /* not before it is on disk */
	assert_int_equal(r->drops, 0);
}

/* Time behind others within ava is not its own, whatever it is. */
RIG_TEST(clock_stands)
{
	agent_clock_go(&r->a); /* it has no slot */
	agent_clock_stop(&r->a);
	rig_call(r);
	assert_int_equal(r->wake, 601000);
	r->now = 101000;
	agent_clock_stop(&r->a);
	r->now = 2000000;
	agent_clock_stop(&r->a);
	assert_true(r->wake == INT64_MAX);
	assert_int_equal(agent_used_ms(&r->a, r->now), 100000);
	rig_run(r);
	agent_clock_go(&r->a);
	agent_clock_go(&r->a);
	assert_int_equal(r->wake, 2500000);
	assert_int_equal(agent_used_ms(&r->a, r->now), 100000);
	r->now = 2500000;
	rig_run(r);
	assert_end(r, AVA_TIMEOUT, "time");
}

RIG_TEST(parallel_in_order)
{
	rig_call(r);
	SAY(r, .calls = {LOOK, LOOK, LOOK}, .stop = TURN_STOP_END); /* calls decide */
	assert_int_equal(r->starts, 3);
	rig_answer(r, 2, "third");
	rig_answer(r, 0, "first");
	assert_int_equal(r->result_saves, 0);
	rig_answer(r, 1, "second");
	assert_int_equal(r->result_saves, 1);
	assert_string_equal(r->answers[0], "first");
	assert_string_equal(r->answers[1], "second");
	assert_string_equal(r->answers[2], "third");
	assert_string_equal(r->ids[2], "c1.3");
	assert_int_equal(r->infers, 2);
	assert_int_equal(r->a.at.totals.tool_calls, 3);
	SAY(r, .calls = {SUBMIT});
}

RIG_TEST(calls_that_cannot_run)
{
	rig_call(r);
	r->fail_start = AVA_ENOMEM;
	SAY(r, .calls = {{"erase\n[ava] x", "{}"},
			 {"look", "{\"path\":{}}"},
			 {"look", NULL},
			 {"look", "{\"path\":\"a\"} {"},
			 LOOK,
			 LOOK});
	assert_int_equal(r->starts, 1);
	assert_int_equal(r->started[0], 5);
	rig_answer(r, 5, "content");
	assert_string_equal(r->classes[0], "unknown_tool");
	assert_non_null(strstr(r->answers[0], "look, act, submit_result"));
	assert_null(strchr(r->answers[0], '\n'));
	assert_string_equal(r->classes[1], "bad_arguments");
	assert_non_null(strstr(
		r->answers[1],
		"path must be of type string, not object. A call that fits: {\"path\":\"…\"}"));
	assert_string_equal(r->classes[2], "bad_arguments");
	assert_string_equal(r->classes[3], "bad_arguments");
	assert_string_equal(r->classes[4], "io");
	assert_false(r->began[4]); /* whoever reads the record must not think so */
	assert_true(r->began[5]);
	for (unsigned i = 0; i < 5; i++)
		assert_false(r->good[i]);
	assert_true(r->good[5]);
	/* All answered by the machine: asked again without a tool or the disk. */
	SAY(r, .calls = {{"[ava] erase", "{}"}});
	assert_non_null(strstr(r->answers[0], "(ava] erase"));
	assert_false(r->reply_wait);
	assert_int_equal(r->infers, 3);
	agent_cancel(&r->a);
	rig_run(r);
}

RIG_TEST(submit_with_others)
{
	rig_call(r);
	SAY(r, .calls = {{"submit_result", "{\"confidence\":1}"}});
	assert_int_equal(r->ends, 0);
	assert_string_equal(r->classes[0], "bad_arguments");
	assert_non_null(strstr(r->answers[0], "summary is required"));
	assert_int_equal(r->infers, 2);
	SAY(r, .calls = {ACT, SUBMIT, LOOK, SUBMIT});
	assert_end(r, AVA_SUCCESS, "submitted");
	assert_int_equal(r->starts, 0);
	assert_int_equal(r->ncalls, 4);
	assert_true(r->good[1]);
	assert_false(r->good[0] || r->good[2] || r->good[3]);
	assert_non_null(strstr(r->answers[0], "not run"));
}

/* ---- text */

RIG_TEST(nudge)
{
	rig_looked(r);
	SAY(r, .text = "It is {broken}.");
	assert_int_equal(r->infers, 2);
	assert_int_equal(r->ncalls, 0);
	assert_int_equal(r->nnotices, 1);
	assert_non_null(strstr(r->notices[0], "submit_result"));
	assert_true(r->infer.force_submit);
	assert_true(r->reply_wire > 0);
	SAY(r, .calls = {LOOK});
	rig_answer(r, 0, "x");
	assert_false(r->infer.force_submit);
	SAY(r, .text = "Still text.");
	assert_end(r, AVA_NO_RESULT, "final_text");
	assert_string_equal(r->output, "(null)");
	assert_string_equal(r->summary, "It is {broken}.\n\nStill text.");
	assert_true(r->end.unverified);
	assert_false(r->end.partial);
}

/* Before any call it is told once to look; what it said before it looked is void. */
RIG_TEST(look_first)
{
	rig_call(r);
	SAY(r, .text = "It is surely seven.");
	assert_int_equal(r->nnotices, 1);
	assert_non_null(strstr(r->notices[0], "You have looked at nothing yet"));
	assert_false(r->infer.force_submit);
	assert_false(r->a.at.nudged);
	SAY(r, .calls = {LOOK});
	rig_answer(r, 0, "nine");
	SAY(r, .text = "It is nine.");
	assert_non_null(strstr(r->notices[0], "does not end the run"));
	SAY(r, .text = "I am done.");
	assert_end(r, AVA_NO_RESULT, "final_text");
	assert_string_equal(r->summary, "It is nine.\n\nI am done.");
}

/* Each extra reply is asked for once. */
RIG_TEST(look_never)
{
	rig_call(r);
	SAY(r, .text = "{\"answer\":7}");
	assert_non_null(strstr(r->notices[0], "You have looked at nothing yet"));
	SAY(r, .text = "I am done.");
	assert_non_null(strstr(r->notices[0], "does not end the run"));
	SAY(r, .text = "Really.");
	assert_int_equal(r->infers, 3);
	assert_end(r, AVA_SUCCESS, "final_text"); /* the result stood in the first one */
	assert_string_equal(r->output, "{\"answer\":7}");
	assert_string_equal(r->summary, "I am done.\n\nReally.");
	assert_true(r->end.unverified);
}

/* Who has nothing to look with, or goes on with what another run has read, is not told. */
TEST(look_at_nothing)
{
	for (int i = 0; i < 2; i++) {
		struct rig r;

		rig_open(&r);
		r.spec.tools = i == 0 ? &r.spec.tools[2] : r.spec.tools; /* submit_result */
		r.spec.ntools = i == 0 ? 1 : r.spec.ntools;
		r.spec.resumed = i == 1;
		rig_call(&r);
		SAY(&r, .text = "{\"answer\":7}");
		assert_end(&r, AVA_SUCCESS, "final_text");
		rig_close(&r);
	}
}

#define LONG20  "A sentence of twenty "
#define LONG100 LONG20 LONG20 LONG20 LONG20 LONG20
#define WHOLE   LONG100 LONG100
/* clang-format off */
static const struct {
	const char *name, *first, *second, *kept;
} said_cases[] = {
	{"pointing back", "It is 0.19, as shop.py:5 says.", "The task is done.", "It is 0.19, as shop.py:5 says.\n\nThe task is done."},
	{"a promise before it", "Let me see.", "It is 0.19.", "Let me see.\n\nIt is 0.19."},
	{"the same again", "It is 0.19.", "It is 0.19.", "It is 0.19."},
	{"more of it", "It is 0.19.", "It is 0.19. So says shop.py.", "It is 0.19. So says shop.py."},
	{"less of it", "It is 0.19. So says shop.py.", "It is 0.19.", "It is 0.19. So says shop.py."},
	{"a whole answer behind a short one", "Let me see.", WHOLE, WHOLE},
	{"a short one behind a whole answer", WHOLE, "The answer stands above.", WHOLE},
	{"one whole answer behind another", WHOLE, "In other words: " WHOLE, "In other words: " WHOLE},
};
/* clang-format on */

TEST(said_before)
{
	for (size_t i = 0; i < ARRAY_LEN(said_cases); i++) {
		struct rig r;

		print_message("%s\n", said_cases[i].name);
		rig_open(&r);
		rig_looked(&r);
		SAY(&r, .text = said_cases[i].first);
		SAY(&r, .text = said_cases[i].second);
		assert_end(&r, AVA_NO_RESULT, "final_text");
		assert_string_equal(r.summary, said_cases[i].kept);
		rig_close(&r);
	}
}

/* What stands there is not lost when the reply to the nudge is empty, or never comes. */
RIG_TEST(said_and_silent)
{
	rig_looked(r);
	SAY(r, .text = "It is 0.19.");
	for (int i = 0; i < 3; i++)
		SAY(r, .text = "");
	SAY(r, .thinking = "I have said it.");
	assert_end(r, AVA_NO_RESULT, "final_text");
	assert_string_equal(r->summary, "It is 0.19.");
}

RIG_TEST(said_and_cut)
{
	rig_looked(r);
	SAY(r, .text = "It is 0.19.");
	agent_on_reply(&r->a, AVA_ECONNECT, NULL, "connect", "no route");
	rig_run(r);
	assert_end(r, AVA_ERROR, "model_error");
	assert_string_equal(r->summary, "It is 0.19.");
	assert_true(r->end.partial);
}

RIG_TEST(cut_off)
{
	r->spec.can_force = false;
	rig_looked(r);
	SAY(r, .text = "It is {\"output\": 1, ", .stop = TURN_STOP_LENGTH);
	assert_non_null(strstr(r->notices[0], "cut off"));
	assert_false(r->infer.force_submit);
	SAY(r, .text = "Cut again", .stop = TURN_STOP_LENGTH);
	assert_end(r, AVA_NO_RESULT, "final_text");
}

/* clang-format off */
static const struct {
	const char *name, *text, *output, *summary;
	double confidence;
} final_cases[] = {
	{"fence", "I found it.\n```json\n{\"a\": [1, 2]}\n```\nThat is all.\n", "{\"a\":[1,2]}", "I found it.\nThat is all.", 0},
	{"fence alone", "```JSON\n{\"a\":1}\n```", "{\"a\":1}", "(null)", 0},
	{"envelope", "```json\n{\"output\":{\"k\":true},\"summary\":\"s\",\"confidence\":0.75}\n```", "{\"k\":true}", "s", 0.75},
	{"bare envelope", "Result: {\"summary\":\"s\",\"confidence\":\"80%\",\"caveats\":\"c\"}", "(null)", "s", 0.8},
	{"bare", "Here:\n  {\"a\":1}", "{\"a\":1}", "Here:", 0},
	{"the last fence", "```json\n{\"a\":1}\n```\n```json\n{\"a\":2}\n```", "{\"a\":2}", "```json\n{\"a\":1}\n```", 0},
	{"a fence before a line", "```json\n{\"a\":1}\n```\n{\"b\":1}", "{\"a\":1}", "{\"b\":1}", 0},
	{"fence marks in a string", "```json\n{\"a\":\"```\"}\n```", "{\"a\":\"```\"}", "(null)", 0},
	{"an envelope about a call", "{\"output\":1,\"summary\":\"<look> and {\\\"look\\\":{}}\"}\n<look>", "1", "<look> and {\"look\":{}}", 0},
	{"cut off, yet whole", "{\"output\":\"x\"}", "\"x\"", "(null)", 0},
	{"braces before it", "f() {} {x} {\n```json\n{\"a\":1}\n```", "{\"a\":1}", "f() {} {x} {", 0},
};
/* clang-format on */

TEST(final_json)
{
	for (size_t i = 0; i < ARRAY_LEN(final_cases); i++) {
		struct rig r;

		print_message("%s\n", final_cases[i].name);
		rig_open(&r);
		rig_looked(&r);
		SAY(&r, .text = final_cases[i].text, .stop = TURN_STOP_LENGTH);
		assert_end(&r, AVA_SUCCESS, "final_text");
		assert_string_equal(r.output, final_cases[i].output);
		assert_string_equal(r.summary, final_cases[i].summary);
		assert_true(r.end.confidence == final_cases[i].confidence);
		assert_true(r.end.unverified);
		assert_non_null(strstr(r.caveats, "it is the JSON in the last text"));
		assert_false(r.end.partial);
		rig_close(&r);
	}
}

TEST(no_result_in_text)
{
	static const char *const texts[] = {
		"The file says {\"a\":1} in line 3.",
		"{}",
		"[1,2]",
		"function f() { \"x\" }",
		"std::vector<look> v;",
		"<b>look</b> here",
		"{\"name\":\"look\",\"age\":3} is Mr Look",
		"{\"name\":\"Ada\",\"arguments\":\"none that hold\"}",
		"{\"name\":\"case 1\",\"input\":{\"a\":1},\"expected\":2}",
		"{\"action\":\"raise\",\"params\":{\"by\":5}}",
		"{\"function\":{\"name\":\"f\",\"description\":\"d\",\"parameters\":{}}}",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct rig r;

		print_message("%s\n", texts[i]);
		rig_open(&r);
		rig_looked(&r);
		SAY(&r, .text = texts[i]);
		if (i < 6) { /* the others begin their lines: data */
			assert_int_equal(r.ends, 0);
			assert_true(r.a.at.nudged);
			agent_cancel(&r.a);
			rig_run(&r);
		}
		rig_close(&r);
	}
}

/* A reply that was cut since it repeated itself is asked once more, then taken, and says so. */
RIG_TEST(repeated_words)
{
	rig_looked(r);
	assert_false(r->infer.warmer);
	SAY(r, .text = "It is done.", .stop = TURN_STOP_REPEATED);
	assert_non_null(strstr(r->notices[0], "the same again and again"));
	assert_true(r->infer.warmer);
	SAY(r, .text = "It is done.", .stop = TURN_STOP_REPEATED);
	assert_true(r->a.at.nudged);
	SAY(r, .text = "It is done.", .stop = TURN_STOP_REPEATED);
	assert_int_equal(r->ends, 1);
	assert_string_equal(r->summary, "It is done.\n\n(" REPLY_LOOPED ")");
}

/* A text in the form of a result, where a result was asked for, is one as if submitted. */
RIG_TEST(result_in_form)
{
	static const char form[] = "{\"summary\":\"It is 42.\",\"confidence\":0.5}";

	rig_looked(r);
	SAY(r, .text = "It is 42.");
	assert_true(r->infer.force_submit);
	SAY(r, .text = form);
	assert_end(r, AVA_SUCCESS, "final_text");
	assert_string_equal(r->summary, "It is 42.");
	assert_false(r->end.unverified);
	assert_true(r->end.confidence == 0.5);
}

TEST(call_as_text)
{
	static const char *const texts[] = {
		"{\"name\":\"look\",\"arguments\":{\"path\":\"a\"}}",
		"I will look.\n```json\n{\"tool\":\"look\",\"path\":\"a\"}\n```",
		"{\"tool_calls\":[{\"function\":{\"name\":\"look\",\"arguments\":\"{}\"}}]}",
		/* whatever the name */
		"```json\n{\"name\":\"tax\",\"arguments\":{\"shop\":\"shop.py\"}}```",
		"{\"name\":\"tax\",\"parameters\":{}}",
		"{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"tax\",\"input\":{\"a\":1}}",
		"{\"name\":\"tax\",\"arguments\":\"{\\\"a\\\":1}\"}",
		"{\"function\":{\"name\":\"tax\",\"arguments\":{}}}",
		"{\"tool\":\"tax\",\"args\":{\"a\":1}}",
		("{\"tool_calls\":[{\"type\":\"function\",\"function\":{\"name\":\"tax\","
		 "\"arguments\":\"{}\"}}]}"),
		"[{\"name\":\"tax\",\"arguments\":{}}]",
		"{\"action\":\"tax\",\"action_input\":{\"a\":1}}",
		"{\"look\":{\"path\":\"a\"}}",
		"<tool_call>\n{\"name\": \"look\", \"arguments\": {}}\n</tool_call>",
		"<invoke name=\"look\"><parameter>a</parameter></invoke>",
		"<function=look>",
		"<look>\n<path>a</path>\n</look>",
		"<tool_call>look\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct rig r;

		print_message("%s\n", texts[i]);
		rig_open(&r);
		rig_call(&r);
		SAY(&r, .text = texts[i]);
		assert_int_equal(r.ends, 0);
		assert_int_equal(r.a.at.odd_replies, 1);
		assert_false(r.a.at.nudged);
		assert_non_null(strstr(r.notices[0], "written as text"));
		assert_int_equal(r.starts, 0);
		SAY(&r, .calls = {SUBMIT});
		rig_close(&r);
	}
}

RIG_TEST(empty_replies)
{
	char last[600] = "";

	rig_call(r);
	SAY(r, .text = "");
	SAY(r, .calls = {{"look", "{}"}}); /* in a row: counted anew */
	assert_int_equal(r->a.at.odd_replies, 0);
	for (int i = 0; i < 3; i++) {
		SAY(r, .text = "", .stop = i == 1 ? TURN_STOP_LENGTH : TURN_STOP_END);
		assert_int_equal(r->ends, 0);
		assert_int_equal(r->reply_wire, 0); /* never stored */
		assert_int_equal(r->nnotices, 1);
		assert_string_not_equal(r->notices[0], last); /* the request changes */
		assert_int_equal(strstr(r->notices[0], "cut off") != NULL, i == 1);
		snprintf(last, sizeof(last), "%s", r->notices[0]);
	}
	SAY(r, .text = "");
	assert_end(r, AVA_ERROR, "empty_replies");
	assert_string_equal(r->error_class, "empty_replies");
	assert_int_equal(r->infers, 6);
}

RIG_TEST(thinking_alone)
{
	rig_call(r);
	for (int i = 0; i < 3; i++) {
		SAY(r, .thinking = "It is 42.");
		assert_int_equal(r->ends, 0);
		assert_non_null(strstr(r->notices[0], "thinking alone"));
	}
	SAY(r, .thinking = "It is 42.");
	assert_end(r, AVA_NO_RESULT, "final_text");
	assert_string_equal(r->summary, "It is 42.");
	assert_string_equal(r->caveats, "[\"" NOTICE_THOUGHT "\"]");
	assert_true(r->end.unverified);
	assert_int_equal(r->reply_wire, 0); /* never sent back */
}

/* ---- a call that takes more than one attempt */

RIG_TEST(again)
{
	struct usage cost = {.input = 1000, .output = 100, .cost_microusd = -1, .estimated = true};

	rig_looked(r);
	assert_false(r->infer.again);
	agent_charge(&r->a, &cost);
	assert_int_equal(cost.cost_microusd, 1500);
	agent_on_again(&r->a);
	rig_run(r);
	assert_int_equal(r->infers, 2);
	assert_true(r->infer.again);
	assert_int_equal(r->infer.iteration, 1);
	assert_int_equal(r->a.at.iteration, 1);
	assert_int_equal(r->a.at.measured_input, 0); /* an estimate measures nothing */
	assert_int_equal(r->a.at.totals.calls, 2);
	assert_int_equal(r->a.at.totals.failed_calls, 1);
	assert_int_equal(r->a.at.totals.cost_microusd, 1500);
	SAY(r, .text = "so");
	assert_int_equal(r->infer.iteration, 2);
	assert_true(r->infer.force_submit);
	agent_on_again(&r->a); /* forced as before */
	rig_run(r);
	assert_true(r->infer.force_submit);
	assert_int_equal(r->infer.iteration, 2);
	SAY(r, .calls = {SUBMIT});
	assert_end(r, AVA_SUCCESS, "submitted");
	assert_int_equal(r->a.at.totals.calls, 4);
}

TEST(again_within_limits)
{
	struct usage cost = {.input = 60000, .cost_microusd = -1};
	struct rig r;

	rig_open(&r);
	r.spec.limits.iterations = 1; /* the last call may be made again */
	rig_call(&r);
	agent_on_again(&r.a);
	rig_run(&r);
	assert_int_equal(r.infers, 2);
	agent_charge(&r.a, &cost);
	agent_on_again(&r.a);
	agent_cancel(&r.a);
	rig_run(&r);
	assert_end(&r, AVA_CANCELLED, "cancelled");
	assert_int_equal(r.infer_stops, 0); /* none was under way */
	rig_close(&r);

	rig_open(&r);
	rig_call(&r);
	for (int i = 0; i < 2; i++) { /* half replies cost, too */
		assert_int_equal(r.ends, 0);
		cost.cost_microusd = -1;
		agent_charge(&r.a, &cost);
		agent_on_again(&r.a);
		rig_run(&r);
	}
	assert_end(&r, AVA_TOKENS_EXCEEDED, "tokens");
	assert_int_equal(r.infers, 2);
	rig_close(&r);
}

RIG_TEST(pause)
{
	rig_call(r);
	for (int i = 0; i < 5; i++) {
		SAY(r, .text = i == 0 ? "" : "wait", .stop = TURN_STOP_PAUSE);
		assert_int_equal(r->ends, 0);
		assert_int_equal(r->infers, i + 2);
		assert_int_equal(r->reply_saves, i + 1);
		assert_int_not_equal(r->reply_wire, 0); /* as it is */
		assert_int_equal(r->result_saves, 0);   /* and nothing added */
	}
	SAY(r, .calls = {{"look", "{}"}}, .stop = TURN_STOP_PAUSE); /* calls decide */
	assert_int_equal(r->result_saves, 1);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(r->ends, 0);
		SAY(r, .text = "wait", .stop = TURN_STOP_PAUSE);
	}
	assert_end(r, AVA_ERROR, "model_error");
	assert_string_equal(r->error_class, "pause_turn");
}

/* ---- the model and the world fail */

RIG_TEST(model_error)
{
	rig_call(r);
	agent_on_reply(&r->a, AVA_ECONNECT, NULL, "connect", "no route");
	rig_run(r);
	assert_end(r, AVA_ERROR, "model_error");
	assert_string_equal(r->error, "no route");
	assert_string_equal(r->error_class, "connect");
	assert_int_equal(r->a.at.totals.failed_calls, 1);
	assert_int_equal(r->a.at.totals.calls, 1);
	assert_int_equal(r->infer_stops, 0);
	assert_int_equal(r->reply_saves, 0);
}

/* One whole run; stands any allocation failing. */
static void faulty_run(struct rig *r)
{
	static const struct say script[] = {
		{.calls = {{"none", "{}"}, {"look", "{\"path\":{}}"}, LOOK}},
		{.text = "I think\n{\"x\":1"},
		{.text = "```json\n{\"a\":{\"b\":[1]}}\n```"},
	};

	rig_open(r);
	rig_call(r);
	for (size_t i = 0; i < ARRAY_LEN(script) && r->ends == 0; i++) {
		struct turn *t = turn_of(&script[i]);

		agent_on_reply(&r->a, t != NULL ? 0 : AVA_ENOMEM, t, NULL, NULL);
		rig_run(r);
		if (r->ends == 0 && r->a.state == AGENT_TOOLS)
			rig_answer(r, 2, "x");
	}
	while (r->a.saves > 0)
		rig_saved(r);
	agent_fini(&r->a);
}

TEST(out_of_memory)
{
	struct rig r;

	FAULT_LOOP(k, {
		faulty_run(&r);
		assert_int_equal(r.ends, 1);
		assert_int_equal(r.dones, 1);
	});
	assert_end(&r, AVA_SUCCESS, "final_text");
}

/* An agent without submit_result answers with text (Ava herself). */
RIG_TEST(no_submit_tool)
{
	r->spec.ntools = 2;
	rig_call(r);
	SAY(r, .text = "hello");
	assert_end(r, AVA_SUCCESS, "final_text");
	assert_string_equal(r->summary, "hello");
}

/* ---- the same again and again */

static void look_at(struct rig *r, const char *args, const char *output)
{
	SAY(r, .calls = {{"look", args}});
	rig_answer(r, 0, output);
}

RIG_TEST(repeated_calls)
{
	rig_call(r);
	look_at(r, "{\"path\":\"a\"}", "content");
	assert_string_equal(r->answers[0], "content");
	look_at(r, "{\"path\":\"b\"}", "content"); /* another call */
	assert_string_equal(r->answers[0], "content");
	look_at(r, "{\"path\":\"a\"}", "content");
	assert_string_equal(r->answers[0], "unchanged since c1.1");
	assert_int_equal(r->nnotices, 0);
	look_at(r, "{\"path\":\"a\"}", "content");
	assert_string_equal(r->answers[0], "unchanged since c1.1");
	assert_int_equal(r->nnotices, 1);
	assert_non_null(
		strstr(r->notices[0], "3 times with the same result, which stands at c1.1"));
	assert_false(r->infer.force_submit);
	look_at(r, "{\"path\":\"a\"}", "content");
	assert_non_null(strstr(r->notices[0], "The run ends with your next reply"));
	assert_true(r->infer.force_submit);
	SAY(r, .calls = {SUBMIT});
	assert_end(r, AVA_ERROR, "repeated_calls");
	assert_string_equal(r->summary, "one"); /* what it had is kept */
	assert_true(r->end.partial);
}

/* In the last reply nothing runs any more, whatever it asks for. */
RIG_TEST(repeated_calls_end)
{
	rig_call(r);
	for (int i = 0; i < 4; i++)
		look_at(r, "{\"path\":\"a\"}", "content");
	SAY(r, .text = "Once more.", .calls = {LOOK});
	assert_end(r, AVA_ERROR, "repeated_calls");
	assert_string_equal(r->summary, "Once more.");
	assert_int_equal(r->starts, 4);
	assert_string_equal(r->answers[0], "not run: the run has ended");
}

/* Calls that are refused repeat themselves as others do, and their answers stay: they say what to
 * do. */
RIG_TEST(repeated_refusals)
{
	rig_call(r);
	for (int i = 0; i < 4; i++) {
		char args[16] = {'{', '"', 'a', '"', ':', (char)('0' + i), '}'};

		assert_false(r->infer.force_submit);
		SAY(r, .calls = {{"open_file", args}});
		assert_non_null(strstr(r->answers[0], "there is no tool \"open_file\""));
	}
	assert_non_null(strstr(r->notices[0], "The run ends with your next reply"));
	assert_true(r->infer.force_submit);
	SAY(r, .calls = {SUBMIT});
	assert_end(r, AVA_ERROR, "repeated_calls");
	assert_string_equal(r->error, "the model called open_file, which does not exist, 4 times");
	assert_string_equal(r->summary, "one");
}

RIG_TEST(repeated_misfits)
{
	rig_call(r);
	for (int i = 0; i < 4; i++)
		SAY(r, .calls = {{"look", i % 2 ? NULL : "{}"}, {"look", i % 2 ? "{}" : NULL}});
	SAY(r, .text = "I give up.");
	assert_end(r, AVA_ERROR, "repeated_calls");
	assert_string_equal(
		r->error,
		"the model called look with the same arguments, which do not fit, 4 times");
}

/* Whatever they are: a model that finds no call that can run has four replies. */
RIG_TEST(vain_calls)
{
	static const char *const ways[] = {"{\"a\":1}", "{", "{\"b\":[2]}"};

	rig_call(r);
	for (int i = 0; i < 3; i++)
		SAY(r, .calls = {{i == 1 ? "open" : "look", ways[i]}});
	assert_non_null(strstr(r->notices[0], "None of your calls in 3 replies could run"));
	look_at(r, "{\"path\":\"a\"}", "content");
	SAY(r, .text = "<look>", .stop = TURN_STOP_END);
	for (int i = 0; i < 4; i++)
		SAY(r, .calls = {{i == 3 ? "open" : "look", ways[i % 2]}});
	assert_true(r->infer.force_submit);
	SAY(r, .text = "I give up.");
	assert_end(r, AVA_ERROR, "repeated_calls");
	assert_string_equal(r->error,
			    "none of the calls in 4 replies in a row could run, the last one of "
			    "open: there is no tool \"open\"");
}

/* What fits once it is brought toward the schema runs so; what was left out is told once. */
RIG_TEST(coerced_calls)
{
	rig_call(r);
	SAY(r, .calls = {{"look", "{\"path\":1,\"why\":\"x\"}"}});
	assert_string_equal(r->a.turn->calls[0].args, "{\"path\":\"1\"}");
	rig_answer(r, 0, "content");
	assert_int_equal(r->nnotices, 1);
	assert_non_null(strstr(r->notices[0], "look takes no argument why"));
	SAY(r, .calls = {{"look", "{\"path\":2,\"why\":\"x\"}"}});
	rig_answer(r, 0, "more");
	assert_int_equal(r->nnotices, 0);
	SAY(r, .calls = {{"submit_result", "{\"answer\":\"42\",\"confidence\":\"90%\",\"caveats\":["
					   "{\"text\":\"c\"}],\"n\":1}"}});
	assert_end(r, AVA_SUCCESS, "submitted");
	assert_string_equal(r->summary, "42");
	assert_string_equal(r->output, "{\"n\":1}");
	assert_true(r->end.confidence == 0.9);
}

/* A result without words is sent back once, and never when nobody would read that. */
RIG_TEST(result_without_words)
{
	rig_call(r);
	SAY(r, .calls = {{"submit_result", "{}"}});
	SAY(r, .calls = {{"submit_result", "{\"output\":[1]}"}});
	assert_end(r, AVA_SUCCESS, "submitted");
	assert_string_equal(r->output, "[1]");
}

RIG_TEST(result_beside_the_call)
{
	rig_call(r);
	SAY(r, .text = "It is 42.", .calls = {{"submit_result", "{}"}});
	assert_int_equal(r->ends, 0);
	SAY(r, .text = "It is 42.", .calls = {{"submit_result", "{}"}});
	assert_end(r, AVA_SUCCESS, "submitted");
	assert_string_equal(r->summary, "It is 42.");
}

RIG_TEST(result_at_the_limit)
{
	r->spec.limits.iterations = 1;
	rig_call(r);
	SAY(r, .calls = {{"submit_result", "{\"output\":[1]}"}});
	assert_end(r, AVA_SUCCESS, "submitted");
	assert_string_equal(r->output, "[1]");
}

/* News begins the count anew: another result, or an act that may have changed
 * the world. Calls side by side count once. */
RIG_TEST(not_repeated)
{
	r->spec.limits.iterations = 100; /* not near its end */
	rig_call(r);
	for (int i = 0; i < 6; i++) {
		char changed[8] = {'v', (char)('0' + i)};

		look_at(r, "{\"path\":\"a\"}", i < 3 ? "old" : changed);
		assert_int_equal(r->ends, 0);
	}
	for (int i = 0; i < 6; i++) {
		char done[8] = {'d', (char)('0' + i)};

		look_at(r, "{\"path\":\"t\"}", "passed");
		SAY(r, .calls = {ACT});
		rig_saved(r);
		rig_answer(r, 0, done);
		assert_false(r->infer.force_submit);
	}
	SAY(r, .calls = {{"look", "{\"path\":\"z\"}"},
			 {"look", "{\"path\":\"z\"}"},
			 {"look", "{\"path\":\"z\"}"},
			 {"look", "{\"path\":\"z\"}"}});
	for (unsigned i = 0; i < 4; i++)
		rig_answer(r, i, "z");
	assert_int_equal(r->ends, 0);
	assert_false(r->infer.force_submit);
	assert_int_equal(r->starts, 22);
	agent_cancel(&r->a);
	rig_run(r);
}

/* ---- room in the window */

static void compacted(struct rig *r, int rv, int64_t before, int64_t after)
{
	struct agent_compacted d = {before, after};

	agent_on_compacted(&r->a, rv, &d);
	rig_run(r);
}

RIG_TEST(room_is_made)
{
	r->spec.window = 10000;
	r->spec.max_output = 1000;
	rig_call(r);
	SAY(r, .input = 6900, .calls = {LOOK});
	rig_answer(r, 0, "x");
	assert_int_equal(r->compacts, 0); /* under 80 % with the output kept free */
	assert_int_equal(r->infers, 2);
	SAY(r, .input = 7100, .calls = {ACT});
	rig_saved(r);
	rig_answer(r, 0, "y");
	assert_int_equal(r->compacts, 1);
	assert_int_equal(r->infers, 2); /* not before there is room */
	assert_int_equal(r->compact.target, 4000);
	assert_int_equal(r->compact.most, 7000);
	assert_true(r->compact.tokens >= 7100 && !r->compact.overflow);
	compacted(r, 0, 30000, 15000);
	assert_int_equal(r->infers, 3);
	assert_true(r->a.at.measured_input >= 3550 && r->a.at.measured_input < 3600);
	/* Where nothing can go it is not tried at each call. */
	SAY(r, .input = 7100, .calls = {LOOK});
	rig_answer(r, 0, "w");
	assert_int_equal(r->compacts, 2);
	compacted(r, 0, 30000, 30000);
	SAY(r, .input = 7300, .calls = {LOOK});
	rig_answer(r, 0, "v");
	assert_int_equal(r->compacts, 2);
	SAY(r, .input = 8200, .calls = {LOOK});
	rig_answer(r, 0, "u");
	assert_int_equal(r->compacts, 3);
	agent_cancel(&r->a); /* while it is made */
	rig_run(r);
	assert_int_equal(r->infer_stops, 1);
	r->a.compacting = false;
}

static void refuse(struct rig *r, int64_t window, int64_t prompt)
{
	struct agent_told told = {.window = window, .prompt = prompt, .asked = r->infer.max_output};

	agent_on_refused(&r->a, &told, "context_overflow", "too long, says the service");
	rig_run(r);
}

RIG_TEST(overflow_halves)
{
	r->spec.window = 200000;
	rig_call(r);
	for (int i = 0; i < 3; i++) {
		refuse(r, 0, 0);
		assert_int_equal(r->compacts, i + 1);
		assert_true(r->compact.overflow);
		assert_int_equal(r->compact.target, r->compact.tokens / 2);
		compacted(r, 0, 3000, 2000);
		assert_int_equal(r->infers, i + 2);
		assert_true(r->infer.again);
		assert_int_equal(r->infer.iteration, 1);
	}
	refuse(r, 0, 0);
	assert_int_equal(r->compacts, 3);
	assert_end(r, AVA_ERROR, "model_error");
	assert_string_equal(r->error, "too long, says the service");
	assert_string_equal(r->error_class, "context_overflow");
	assert_int_equal(r->a.at.totals.failed_calls, 4);
}

/* Where nothing can go a quarter of the output is tried, down to the least. */
RIG_TEST(overflow_without_room)
{
	int64_t asked = r->spec.max_output;

	rig_call(r);
	for (; asked > LIMIT_LEAST_ROOM; asked = MAX(asked / 4, LIMIT_LEAST_ROOM)) {
		assert_int_equal(r->infer.max_output, asked);
		refuse(r, 0, 0);
		compacted(r, AVA_ECORRUPT, 0, 0);
	}
	assert_int_equal(r->infer.max_output, LIMIT_LEAST_ROOM);
	refuse(r, 0, 0);
	if (r->a.compacting)
		compacted(r, 0, 3000, 3000);
	assert_end(r, AVA_ERROR, "model_error");
	assert_string_equal(r->error, "too long, says the service");
}

/* Numbers: first less output, and no room is made for that. */
RIG_TEST(overflow_by_numbers)
{
	r->spec.window = 32768;
	rig_call(r);
	r->a.at.new_bytes = 12000;
	refuse(r, 4096, 3145);
	assert_int_equal(r->compacts, 0);
	assert_int_equal(r->infers, 2);
	assert_int_equal(r->infer.max_output, 4096 - 96 - 3145);
	/* That was counted together with what was asked for. */
	refuse(r, 4096, 3145 + r->infer.max_output + 100);
	assert_int_equal(r->compacts, 0);
	assert_true(r->infer.max_output < 4096 - 96 - 3145);
	/* No output is little enough. */
	refuse(r, 3500, 3245);
	assert_int_equal(r->compacts, 1);
	assert_true(r->compact.overflow && r->compact.newest);
	assert_int_equal(r->compact.most, 3500 - 96 - LIMIT_LEAST_ROOM);
	compacted(r, 0, 4000, 4000);
	assert_end(r, AVA_ERROR, "model_error");
}

/* More tokens than the request has bytes: the numbers are of use for the output alone. */
RIG_TEST(overflow_of_no_sense)
{
	rig_looked(r);
	r->a.at.new_bytes = 12000;
	refuse(r, 200000, 197000);
	assert_int_equal(r->infer.max_output, 200000 - 2000 - 197000);
	assert_int_equal(limit_next_input(&r->a), 4000);
	/* By these it would have fitted. */
	refuse(r, 200000, 62466);
	assert_int_equal(r->infer.max_output, LIMIT_LEAST_ROOM);
	assert_int_equal(r->compacts, 0);
	SAY(r, .text = "{\"summary\":\"done\"}");
}

/* A cap of the output alone: lowered to it, else halved. */
RIG_TEST(output_cap)
{
	struct agent_told told = {.cap = true, .output_max = 700};

	rig_looked(r);
	told.asked = r->infer.max_output;
	agent_on_refused(&r->a, &told, "bad_request", "too large");
	rig_run(r);
	assert_int_equal(r->infer.max_output, 700);
	told.output_max = 0;
	told.asked = 700;
	agent_on_refused(&r->a, &told, "bad_request", "too large");
	rig_run(r);
	assert_int_equal(r->infer.max_output, LIMIT_LEAST_ROOM);
	assert_int_equal(r->compacts, 0);
	SAY(r, .text = "{\"summary\":\"done\"}");
}
