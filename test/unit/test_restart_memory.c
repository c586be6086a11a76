/* What a machine remembers of its run's turns after a start: calls that it repeated,
 * room that was made, that its next reply is the last. */
#include "restart_rig.h"

#define READ_A                                                                                     \
	"{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t%d\","              \
	"\"name\":\"read_file\",\"input\":{\"path\":\"a\"}}]}\n"

/* Call `i` of a model, its reply that reads a file, and what was read; `results`: the
 * line of results stands, too. */
static void reads(struct world *w, const struct left *l, int i, const char *print, bool results)
{
	struct draft *d = draft_new(&w->r.book);
	struct buf *b = draft_part(d, DRAFT_MESSAGES, l->messages);
	char text[300];

	snprintf(text, sizeof(text), "{\"callId\":\"i%d\"}", i);
	add(w, l, EVENT_InferStart, text);
	buf_addf(b, READ_A, i);
	if (results)
		buf_addf(b,
			 "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
			 "\"tool_use_id\":\"t%d\",\"content\":\"what a holds\"}]}\n",
			 i);
	commit(w, d);
	snprintf(text, sizeof(text),
		 "{\"callId\":\"i%d\",\"tokens\":{\"input\":70,\"output\":7},"
		 "\"stopReason\":\"tool_use\"}",
		 i);
	add(w, l, EVENT_InferEnd, text);
	snprintf(text, sizeof(text), "{\"callId\":\"c%d.1\",\"name\":\"read_file\"}", i);
	add(w, l, EVENT_ToolCall, text);
	snprintf(text, sizeof(text),
		 "{\"callId\":\"c%d.1\",\"name\":\"read_file\",\"success\":true,"
		 "\"output\":\"what a holds\"%s%s}",
		 i, print[0] ? ",\"print\":" : "", print);
	add(w, l, EVENT_ToolResult, text);
}

#define PRINT "\"00000000000000ab00000000000000cd\""

static const struct repeat_call *known(const struct run *r, unsigned i)
{
	assert_non_null(r->agent.repeats);
	assert_true(i < r->agent.repeats->n);
	return &r->agent.repeats->calls[i];
}

/* The table of calls is what a process that was not stopped would have. */
static void test_repeated_calls_are_known(void **state)
{
	struct world w;
	struct left l;
	struct run *r;

	init_world(&w);
	l = queued(&w, "");
	reads(&w, &l, 1, PRINT, true);
	reads(&w, &l, 2, PRINT, true);
	close_world(&w);
	restart(&w);
	r = carried(&w, &l);
	assert_int_equal(r->agent.repeats->n, 1);
	assert_int_equal(known(r, 0)->call, 0xab);
	assert_int_equal(known(r, 0)->result, 0xcd);
	assert_int_equal(known(r, 0)->times, 2);
	assert_int_equal(known(r, 0)->at.iteration, 1);
	assert_int_equal(known(r, 0)->last, 2);
	assert_false(r->forgetful);
	reads(&w, &l, 3, PRINT, false); /* nothing followed: it is counted when it does */
	close_world(&w);
	restart(&w);
	r = carried(&w, &l);
	assert_int_equal(known(r, 0)->times, 2);
	assert_true(r->agent.turn->calls[0].answered && r->agent.turn->calls[0].ran);
	fini_world(&w);
}

/* What was taken out of the conversation is not told as "unchanged"; room is not made
 * at once again; a call that no tool answered is no repetition. */
static void test_room_is_known(void **state)
{
	struct world w;
	struct left l;
	struct run *r;

	init_world(&w);
	l = queued(&w, "");
	reads(&w, &l, 1, PRINT, true);
	reads(&w, &l, 2, "\"\"", true);
	add(&w, &l, EVENT_InferStart, "{\"callId\":\"i3\"}");
	add(&w, &l, EVENT_InferEnd,
	    "{\"callId\":\"i3\",\"tokens\":{\"input\":0},\"error\":\"too long\","
	    "\"errorClass\":\"context_overflow\"}");
	close_world(&w);
	restart(&w);
	r = carried(&w, &l);
	assert_true(r->agent.overflowed && r->agent.again); /* first room, then the call */
	assert_string_equal(r->agent.reply_error, "too long");
	assert_int_equal(r->agent.halvings, 0);
	assert_int_equal(r->agent.repeats->n, 1);
	add(&w, &l, EVENT_ContextEdit,
	    "{\"cause\":\"overflow\",\"tokensAfter\":40,\"removed\":[\"c1.1\",\"c9.9\"]}");
	add(&w, &l, EVENT_StateWrite,
	    "{\"key\":\"room\",\"value\":{\"floor\":4321,\"halvings\":1,\"overflowed\":false}}");
	close_world(&w);
	restart(&w);
	r = carried(&w, &l);
	assert_false(r->agent.overflowed);
	assert_int_equal(r->agent.halvings, 1);
	assert_int_equal(r->agent.compact_floor, 4321);
	assert_int_equal(r->agent.measured_input, 40);
	assert_true(known(r, 0)->gone);
	assert_int_equal(known(r, 0)->removed, 1);
	/* A reply: the next one that is too large begins to count anew. */
	add(&w, &l, EVENT_InferStart, "{\"callId\":\"i3.2\"}");
	add(&w, &l, EVENT_InferEnd,
	    "{\"callId\":\"i3.2\",\"tokens\":{\"input\":41},\"stopReason\":\"end_turn\"}");
	close_world(&w);
	restart(&w);
	r = carried(&w, &l);
	assert_int_equal(r->agent.halvings, 0);
	assert_int_equal(r->agent.compact_floor, 4321);
	fini_world(&w);
}

/* The model was told that its next reply is the last. */
static void test_the_last_reply_is_known(void **state)
{
	struct world w;
	struct left l;
	struct run *r;

	init_world(&w);
	l = queued(&w, "");
	reads(&w, &l, 1, PRINT, true);
	add(&w, &l, EVENT_StateWrite, "{\"key\":\"last\",\"value\":\"limit\"}");
	close_world(&w);
	restart(&w);
	r = carried(&w, &l);
	assert_false(r->agent.wrapping);
	assert_int_equal(r->agent.force_submit, r->spec->agent.can_force);
	assert_null(r->agent.turn);
	add(&w, &l, EVENT_StateWrite, "{\"key\":\"last\",\"value\":\"repeated\"}");
	reads(&w, &l, 2, PRINT, false);
	close_world(&w);
	restart(&w);
	r = carried(&w, &l);
	assert_true(r->agent.wrapping); /* that reply ends it, also when it comes again */
	assert_true(r->agent.replayed);
	fini_world(&w);
}

/* Its log has no prints: it begins anew, and says so; what a later process adds is
 * known again. */
static void test_a_log_of_an_earlier_version(void **state)
{
	struct world w;
	struct left l;
	struct run *r;

	init_world(&w);
	l = queued(&w, "");
	reads(&w, &l, 1, "", true);
	reads(&w, &l, 2, PRINT, true);
	close_world(&w);
	restart(&w);
	r = carried(&w, &l);
	assert_true(r->forgetful);
	assert_null(r->agent.repeats);
	add(&w, &l, EVENT_Custom,
	    "{\"customType\":\"carried_on\",\"data\":{\"clockMs\":5,\"whole\":false}}");
	reads(&w, &l, 3, PRINT, true);
	close_world(&w);
	restart(&w);
	r = carried(&w, &l);
	assert_false(r->forgetful);
	assert_int_equal(r->agent.repeats->n, 1);
	assert_int_equal(known(r, 0)->times, 1);
	assert_int_equal(known(r, 0)->at.iteration, 3);
	fini_world(&w);
}

/* A limit that a person raised: the model is told again when it comes near. */
static void test_a_warning_of_a_limit_that_was_raised(void **state)
{
	struct world w;
	struct left l;

	init_world(&w);
	l = queued(&w, "");
	reads(&w, &l, 1, PRINT, true);
	add(&w, &l, EVENT_Limit,
	    "{\"budget\":{\"costCents\":100,\"tokens\":100000,\"iterations\":20},"
	    "\"warned\":[\"cost\",\"tokens\"]}");
	add(&w, &l, EVENT_Limit,
	    "{\"budget\":{\"costCents\":200,\"tokens\":100000,\"iterations\":20}}");
	close_world(&w);
	restart(&w);
	assert_int_equal(carried(&w, &l)->agent.warned, 1u << AGENT_TOKENS);
	fini_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_repeated_calls_are_known),
		cmocka_unit_test(test_room_is_known),
		cmocka_unit_test(test_the_last_reply_is_known),
		cmocka_unit_test(test_a_log_of_an_earlier_version),
		cmocka_unit_test(test_a_warning_of_a_limit_that_was_raised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
