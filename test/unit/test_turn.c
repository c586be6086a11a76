/* A turn: empty when new, everything in one arena. */
#include <string.h>

#include "unit.h"

#include "agent/ask.h"
#include "agent/turn.h"

TEST(new)
{
	struct turn *t = turn_new();

	assert_non_null(t);
	assert_string_equal(t->text, "");
	assert_string_equal(t->thinking, "");
	assert_string_equal(t->request_id, "");
	assert_string_equal(t->wire, "");
	assert_int_equal(t->ncalls, 0);
	assert_int_equal(t->usage.cost_microusd, -1); /* none given, not free */
	assert_int_equal(t->mem.max, TURN_MAX_BYTES);
	t->text = arena_copy(&t->mem, "hello", 5);
	assert_string_equal(t->text, "hello");
	turn_free(t);
	turn_free(NULL);
}

/* As the dialects make one: with room for all calls that there may be. */
static struct turn *big(void)
{
	struct turn *t = turn_new();
	struct turn_call *c;

	t->calls = c = arena_get(&t->mem, TURN_MAX_CALLS * sizeof(*t->calls));
	t->ncalls = 2;
	t->text = arena_copy(&t->mem, "first I ask", 11);
	t->text_len = 11;
	t->thinking = arena_copy(&t->mem, "hm", 2);
	t->wire = arena_copy(&t->mem, "{}", 2);
	t->wire_len = t->thinking_len = 2;
	t->request_id = arena_copy(&t->mem, "req_1", 5);
	t->usage.input = 7;
	t->stop = TURN_STOP_TOOLS;
	memcpy(c[0].id, "c1.1", 5);
	c[0].wire_id = arena_copy(&t->mem, "toolu_1", 7);
	c[0].name = arena_copy(&t->mem, "read_file", 9);
	c[0].args = arena_copy(&t->mem, "{\"path\":\"a\"}", 12);
	c[0].args_len = 12;
	c[0].answered = c[0].success = c[0].recorded = true;
	c[0].error_class = "";
	c[0].output = arena_copy(&t->mem, "\xc3\xa9t\xc3\xa9", 5);
	c[0].output_len = 5;
	c[0].full_bytes = 70000;
	c[0].artifact = arena_copy(&t->mem, "runs/S-1/artifacts/c1.1.txt", 27);
	memcpy(c[1].id, "c1.2", 5);
	c[1].wire_id = arena_copy(&t->mem, "toolu_2", 7);
	c[1].name = arena_copy(&t->mem, "ask_person", 10);
	c[1].args_error = "no object";
	return t;
}

static void check_trimmed(const struct turn *t)
{
	const struct turn_call *c = t->calls;

	assert_int_equal(t->ncalls, 2);
	assert_string_equal(t->text, "first I ask");
	assert_int_equal(t->text_len, 11);
	assert_string_equal(t->thinking, "");
	assert_string_equal(t->wire, "");
	assert_int_equal(t->wire_len + t->thinking_len, 0);
	assert_string_equal(t->request_id, "req_1");
	assert_int_equal(t->usage.input, 7);
	assert_int_equal(t->stop, TURN_STOP_TOOLS);
	assert_string_equal(c[0].id, "c1.1");
	assert_string_equal(c[0].wire_id, "toolu_1");
	assert_string_equal(c[0].name, "read_file");
	assert_string_equal(c[0].args, "{\"path\":\"a\"}");
	assert_true(c[0].answered && c[0].success && c[0].recorded);
	assert_string_equal(c[0].error_class, "");
	assert_string_equal(c[0].output, "\xc3\xa9t\xc3\xa9");
	assert_int_equal(c[0].output_len, 5);
	assert_int_equal(c[0].full_bytes, 70000);
	assert_string_equal(c[0].artifact, "runs/S-1/artifacts/c1.1.txt");
	assert_string_equal(c[1].name, "ask_person");
	assert_null(c[1].args);
	assert_string_equal(c[1].args_error, "no object");
	assert_null(c[1].output);
}

TEST(trim)
{
	struct turn *t = big(), *one = ask_trim(t), *two;

	assert_non_null(one);
	assert_true(t->mem.used > 30000);
	turn_free(t);
	check_trimmed(one);
	assert_true(one->mem.used < 1000);
	assert_non_null(arena_copy(&one->mem, "Yes, drain it.", 14)); /* an answer */
	two = ask_trim(one);
	assert_non_null(two);
	turn_free(one);
	check_trimmed(two);
	turn_free(two);
}

TEST(trim_without_memory)
{
	struct turn *t = big(), *one;

	FAULT_LOOP(k, {
		one = ask_trim(t);
		if (one)
			check_trimmed(one);
		turn_free(one);
	});
	turn_free(t);
}
