/* Output that must fit a schema: what does not is sent back twice, and never
 * becomes the result. */
#include "agent_rig.h"

#define SCHEMA                                                                                     \
	"{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"]}"

static void open_schema(struct rig *r)
{
	rig_open(r);
	r->spec.output_schema = SCHEMA;
	rig_call(r);
}

#define BAD                                                                                        \
	{                                                                                          \
		"submit_result", "{\"output\":{\"n\":\"x\"},\"summary\":\"bad\",\"confidence\":1}" \
	}
#define NONE                                                                                       \
	{                                                                                          \
		"submit_result", "{\"summary\":\"none\",\"confidence\":1}"                         \
	}

TEST(fits)
{
	struct rig r;

	open_schema(&r);
	SAY(&r, .calls = {SUBMIT});
	assert_end(&r, AVA_SUCCESS, "submitted");
	assert_string_equal(r.output, "{\"n\":1}");
	rig_close(&r);
}

TEST(repaired)
{
	struct rig r;

	open_schema(&r);
	SAY(&r, .calls = {BAD});
	assert_int_equal(r.ends, 0);
	assert_false(r.good[0]);
	assert_string_equal(r.classes[0], "bad_output");
	assert_non_null(strstr(r.answers[0], "output.n must be of type integer, not string"));
	assert_non_null(strstr(r.answers[0], "(1 of 2)"));
	SAY(&r, .calls = {NONE});
	assert_non_null(strstr(r.answers[0], "output is missing"));
	assert_non_null(strstr(r.answers[0], "(2 of 2)"));
	SAY(&r, .calls = {SUBMIT});
	assert_end(&r, AVA_SUCCESS, "submitted");
	assert_false(r.end.partial);
	rig_close(&r);
}

/* After two tries the errors are the outcome; what did not fit is not passed on. */
TEST(not_repaired)
{
	struct rig r;

	open_schema(&r);
	for (int i = 0; i < 3; i++)
		SAY(&r, .calls = {BAD});
	assert_end(&r, AVA_ERROR, "output_schema");
	assert_string_equal(r.output, "(null)");
	assert_string_equal(r.summary, "bad");
	assert_non_null(strstr(r.error, "output.n must be of type integer"));
	assert_true(r.end.partial);
	assert_int_equal(r.infers, 3);
	rig_close(&r);
}

/* Of several in one reply the first that fits is taken. */
TEST(one_of_two)
{
	struct rig r;

	open_schema(&r);
	SAY(&r, .calls = {BAD, SUBMIT});
	assert_end(&r, AVA_SUCCESS, "submitted");
	assert_string_equal(r.output, "{\"n\":1}");
	assert_string_equal(r.classes[0], "bad_output");
	rig_close(&r);
}

TEST(text)
{
	struct rig r;

	open_schema(&r);
	r.a.at.totals.tool_calls = 1;
	SAY(&r, .text = "```json\n{\"output\":{\"n\":null},\"summary\":\"s\"}\n```");
	assert_int_equal(r.ends, 0);
	assert_int_equal(r.nnotices, 1);
	assert_non_null(strstr(r.notices[0], "output.n is required"));
	assert_true(r.infer.force_submit);
	SAY(&r, .text = "```json\n{\"output\":{\"n\":2},\"summary\":\"s\"}\n```");
	assert_end(&r, AVA_SUCCESS, "final_text");
	assert_string_equal(r.output, "{\"n\":2}");
	rig_close(&r);
}

/* JSON within a string, and strings for numbers, are what was asked for. */
TEST(coerced)
{
	struct rig r;

	open_schema(&r);
	SAY(&r, .calls = {{"submit_result",
			   "{\"output\":\"{\\\"n\\\":\\\"3\\\"}\",\"summary\":\"s\"}"}});
	assert_end(&r, AVA_SUCCESS, "submitted");
	assert_string_equal(r.output, "{\"n\":3}");
	rig_close(&r);
}

/* Words without data are no result where data is asked for. */
TEST(words_only)
{
	struct rig r;

	open_schema(&r);
	r.a.at.totals.tool_calls = 1;
	SAY(&r, .text = "It is three.");
	assert_non_null(strstr(r.notices[0], "does not end the run"));
	SAY(&r, .text = "It is three.");
	assert_end(&r, AVA_ERROR, "output_schema");
	assert_string_equal(r.error, "output is missing");
	assert_string_equal(r.summary, "It is three.");
	assert_string_equal(r.output, "(null)");
	rig_close(&r);
}

/* Where no further call is possible it ends at once. */
RIG_TEST(at_the_limit)
{
	r->spec.output_schema = SCHEMA;
	r->spec.limits.iterations = 1;
	rig_call(r);
	SAY(r, .calls = {BAD});
	assert_end(r, AVA_ERROR, "output_schema");
	assert_string_equal(r->output, "(null)");
}
