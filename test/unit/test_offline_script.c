/* Scripted turns: what is played when, how bad scripts are refused. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "provider/dialect.h"
#include "provider/model.h"
#include "provider/offline.h"
#include "provider/wire.h"

#define TASK "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"go\"}]}"
#define NUDGE                                                                                      \
	"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"your reply was empty\"}]}"

/* Line `number` of `script`, as the answer to a request of that number. */
static int play(const char *script, unsigned number, struct dialect_answer *out,
		struct ava_error *err)
{
	struct offline_body b = {.number = number};

	*out = (struct dialect_answer){0};
	return script_play("/s.jsonl", script, strlen(script), &b, 400, out, err);
}

TEST(turns)
{
	static const char script[] = "# a comment, and a blank line\n\n"
				     "{\"text\":\"Looking.\",\"tool_calls\":[{\"name\":\"read_"
				     "file\",\"args\":{\"path\":\"a\",\"n\":1}},"
				     "{\"name\":\"nonsense\"}],\"delay_ms\":250}\r\n"
				     "{}\n"
				     "{\"text\":\"Done.\",\"thinking\":\"hm\",\"stop_reason\":"
				     "\"max_tokens\",\"usage\":{\"input\":1000,"
				     "\"output\":20,\"cache_read\":900,\"cache_write\":50,\"cost_"
				     "cents\":0.25}}"; /* no \n at the end */
	struct dialect_answer a;
	struct ava_error err;

	assert_int_equal(play(script, 1, &a, &err), 0);
	assert_int_equal(a.delay_ms, 250);
	assert_string_equal(a.turn->text, "Looking.");
	assert_int_equal(a.turn->ncalls, 2);
	assert_string_equal(a.turn->calls[0].wire_id, "toolu_1_1");
	assert_string_equal(a.turn->calls[0].args, "{\"path\":\"a\",\"n\":1}");
	assert_int_equal(a.turn->calls[0].args_len, strlen(a.turn->calls[0].args));
	assert_string_equal(a.turn->calls[1].args, "{}");
	assert_string_equal(a.turn->wire, "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\","
					  "\"text\":\"Looking.\"},{\"type\":"
					  "\"tool_use\",\"id\":\"toolu_1_1\",\"name\":\"read_"
					  "file\",\"input\":{\"path\":\"a\",\"n\":1}},"
					  "{\"type\":\"tool_use\",\"id\":\"toolu_1_2\",\"name\":"
					  "\"nonsense\",\"input\":{}}]}");
	assert_int_equal(a.turn->stop, TURN_STOP_TOOLS);
	assert_true(a.turn->usage.estimated);
	assert_int_equal(a.turn->usage.input, 100);
	turn_free(a.turn);

	assert_int_equal(play(script, 2, &a, &err), 0); /* an empty reply has no line */
	assert_int_equal(a.turn->wire_len, 0);
	assert_int_equal(a.turn->ncalls, 0);
	assert_int_equal(a.turn->stop, TURN_STOP_END);
	turn_free(a.turn);

	assert_int_equal(play(script, 3, &a, &err), 0);
	assert_string_equal(a.turn->thinking, "hm");
	assert_int_equal(a.turn->stop, TURN_STOP_LENGTH);
	assert_false(a.turn->usage.estimated);
	assert_int_equal(a.turn->usage.input, 1000);
	assert_int_equal(a.turn->usage.cache_read, 900);
	assert_int_equal(a.turn->usage.cache_write, 50);
	assert_int_equal(a.turn->usage.cost_microusd, 2500);
	turn_free(a.turn);

	assert_int_equal(play(script, 4, &a, &err), AVA_EINVAL);
	assert_string_equal(err.text,
			    "/s.jsonl has 3 turns and this is call 4: the script has ended");
	assert_null(a.turn);
}

TEST(odd_replies)
{
	static const char script[] =
		"{\"tool_calls\":[{\"name\":\"f\",\"args\":\"{not "
		"json\"},{\"name\":\"f\",\"args\":[1]},"
		"{\"name\":\"f\",\"id\":\"same\"},{\"name\":\"f\",\"id\":\"same\"},"
		"{\"name\":\"f\",\"id\":\"not good\"}]}\n"
		"{\"text\":\"shown\",\"wire\":{ \"role\":\"assistant\", "
		"\"content\":[{\"type\":\"thinking\",\"x\":1.50}]}}\n"
		"{\"error\":{\"class\":\"overloaded\",\"message\":\"try later\"},\"delay_ms\":5}\n"
		"{\"error\":{\"class\":\"authentication\",\"message\":\"bad key\"}}\n";
	struct dialect_answer a;
	struct ava_error err;

	assert_int_equal(play(script, 1, &a, &err), 0);
	assert_null(a.turn->calls[0].args);
	assert_non_null(strstr(a.turn->calls[0].args_error, "no JSON object"));
	assert_null(a.turn->calls[1].args);
	assert_string_equal(a.turn->calls[2].wire_id, "same");
	assert_string_equal(a.turn->calls[3].wire_id, "call_1_4");
	assert_string_equal(a.turn->calls[4].wire_id, "call_1_5");
	assert_non_null(strstr(a.turn->wire, "\"name\":\"f\",\"input\":{}}"));
	turn_free(a.turn);

	assert_int_equal(play(script, 2, &a, &err), 0); /* byte for byte */
	assert_string_equal(
		a.turn->wire,
		"{ \"role\":\"assistant\", \"content\":[{\"type\":\"thinking\",\"x\":1.50}]}");
	turn_free(a.turn);

	assert_int_equal(play(script, 3, &a, &err), AVA_EBUSY);
	assert_string_equal(err.text, "overloaded: try later");
	assert_null(a.turn);
	assert_int_equal(a.delay_ms, 5);
	assert_int_equal(play(script, 4, &a, &err), AVA_EDENIED);
}

static const struct {
	const char *script, *fault;
} bad[] = {
	{"{\"text\":\"a\"}\n{\"text\":\n", "/s.jsonl line 2: not JSON"},
	{"hello\n", "/s.jsonl line 1: not JSON"},
	{"\n\n[1]\n", "/s.jsonl line 3: a turn must be an object"},
	{"{\"txt\":\"a\"}\n", "unknown key \"txt\""},
	{"{\"text\":1}\n", "text and thinking must be strings"},
	{"{\"tool_calls\":{}}\n", "tool_calls must be an array"},
	{"{\"tool_calls\":[{}]}\n", "each of tool_calls needs a name"},
	{"{\"tool_calls\":[{\"name\":\"f\",\"id\":3}]}\n", "the id of a call must be a string"},
	{"{\"delay_ms\":-1}\n", "delay_ms must be"},
	{"{\"delay_ms\":1.5}\n", "delay_ms must be"},
	{"{\"delay_ms\":86400001}\n", "delay_ms must be"},
	{"{\"usage\":3}\n", "usage must be an object"},
	{"{\"wire\":\"x\"}\n", "wire must be the object"},
	{"{\"stop_reason\":\"tired\"}\n", "stop_reason must be end_turn"},
	{"{\"stop_reason\":7}\n", "stop_reason must be end_turn"},
	{"{\"error\":{\"class\":\"odd\",\"message\":\"x\"}}\n", "error needs a class"},
	{"{\"error\":{\"class\":\"io\"}}\n", "error needs a message"},
};

/* A fault in any line shows at the first turn. */
TEST(bad_scripts)
{
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct dialect_answer a;
		struct ava_error err = {0};

		assert_int_equal(play(bad[i].script, 1, &a, &err), AVA_EINVAL);
		print_message("%s\n", err.text);
		assert_non_null(strstr(err.text, bad[i].fault));
		assert_null(a.turn);
	}
}

/* Through the dialect: the request decides which turn is played. */
TEST(from_body)
{
	static const char script[] =
		"{\"tool_calls\":[{\"name\":\"f\"}]}\n{}\n{\"text\":\"third\"}\n";
	const char *dir = unit_tmpdir();
	struct dialect_answer a;
	struct ava_error err = {0};
	char path[400], name[500];
	struct model m;
	struct buf body;

	snprintf(path, sizeof(path), "%s/turns.jsonl", dir);
	unit_write(path, script, strlen(script));
	snprintf(name, sizeof(name), "offline:%s", path);
	assert_int_equal(model_resolve(name, &m, NULL, &err), 0);
	buf_init(&body, 1u << 16);

	buf_adds(&body, "{\"messages\":[" TASK "]}");
	assert_int_equal(m.dialect->answer(body.data, body.len, model_config(&m), &a, &err), 0);
	assert_int_equal(a.turn->ncalls, 1);
	buf_reset(&body);
	/* The reply, its result; then an empty reply, which is not stored, and a nudge. */
	buf_addf(&body, "{\"messages\":[" TASK ",%s,", a.turn->wire);
	turn_free(a.turn);
	buf_adds(&body, "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":"
			"\"toolu_1_1\","
			"\"content\":\"r\"}]}," NUDGE "],\"max_tokens\":10}");
	assert_int_equal(m.dialect->answer(body.data, body.len, model_config(&m), &a, &err), 0);
	assert_string_equal(a.turn->text, "third");
	turn_free(a.turn);
	buf_fini(&body);

	assert_int_equal(unlink(path), 0);
	assert_int_equal(m.dialect->answer("{\"messages\":[]}", 15, model_config(&m), &a, &err),
			 AVA_ENOENT);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(mkfifo(path, 0600), 0); /* must not wait for a writer */
	assert_true(m.dialect->answer("{\"messages\":[]}", 15, model_config(&m), &a, &err) < 0);
	assert_null(a.turn);
	unit_rmdir(dir);
}

TEST(memory)
{
	static const char script[] = "{\"text\":\"t\",\"thinking\":\"h\",\"tool_calls\":[{\"name\":"
				     "\"f\",\"args\":{\"a\":1}}]}\n";

	FAULT_LOOP(k, {
		struct dialect_answer a;
		struct ava_error err;
		int rv = play(script, 1, &a, &err);

		assert_true(rv == 0 || rv == AVA_ENOMEM);
		assert_int_equal(rv == 0, a.turn != NULL);
		turn_free(a.turn);
	});
}
