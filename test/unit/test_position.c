/* The position of a machine: its JSON is the one of doc/JOURNAL.md, and a machine
 * that is restored from it is the same one, member by member. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/position.h"
#include "agent/tool.h"
#include "agent/turn.h"
#include "base/buf.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/redact.h"

static json_t *golden(void)
{
	static const char begin[] = "\n{\"key\":\"position\",";
	size_t len;
	char *doc = unit_read_src("doc/JOURNAL.md", &len), *at, *end;
	json_t *o;

	at = strstr(doc, begin);
	assert_non_null(at);
	end = strstr(at, "\n```");
	assert_non_null(end);
	o = json_parse(at, (size_t)(end - at), NULL);
	assert_non_null(o);
	free(doc);
	return o;
}

static void written_without(const struct agent_position *p, const struct redact *keys,
			    struct buf *out)
{
	struct jw w;

	buf_init(out, 1u << 20);
	jw_init(&w, out);
	jw_object(&w, NULL);
	agent_position_write(p, "too long", keys, &w);
	jw_end(&w);
	assert_int_equal(buf_addc(out, 0), 0);
}

static void written(const struct agent_position *p, struct buf *out)
{
	written_without(p, NULL, out);
}

static void written_whole(const struct agent_position *p, struct buf *out)
{
	struct agent_position whole = *p;

	whole.delta = 0;
	written(&whole, out);
}

TEST(the_documented_position)
{
	json_t *o = golden(), *value = json_object_get(o, "value"), *again;
	struct agent_position p = AGENT_POSITION_NONE;
	struct buf b;

	assert_int_equal(agent_position_read(&p, value), 0);
	assert_int_equal(p.iteration, 4);
	assert_true(p.wrapping && p.again && p.overflowed);
	assert_string_equal(agent_position_sentence(value), "too long");
	assert_string_equal(p.said, "The rate is 0.19.");
	assert_int_equal(p.repeats->n, 2);
	assert_int_equal(p.repeats->calls[0].at.n, 1);
	assert_int_equal(p.repeats->calls[0].last, 2);
	assert_true(p.repeats->calls[1].gone && !p.repeats->calls[1].fetched);
	assert_int_equal(p.repeats->calls[1].times, 3);
	written(&p, &b);
	again = json_parse(b.data, b.len - 1, NULL);
	json_object_del(value, "run");
	assert_true(json_equal(value, again));
	json_decref(again);
	agent_position_fini(&p);
	buf_fini(&b);
	json_decref(o);
}

/* Every byte of the state that has no pointer: what a field forgets shows here. */
TEST(a_restored_machine_is_the_same)
{
	static const struct agent_io io = {0};
	static const struct agent_spec spec = {0};
	struct agent_position p = AGENT_POSITION_NONE, q = AGENT_POSITION_NONE;
	struct agent a, b;
	struct buf first, second;
	json_t *o = golden();

	assert_int_equal(agent_position_read(&p, json_object_get(o, "value")), 0);
	agent_init(&a, &io, &spec, NULL, 0);
	agent_restore(&a, &p, "too long");
	assert_null(p.repeats);
	assert_null(p.said);
	agent_position_of(&a, 0, &p);
	written(&p, &first);
	json_decref(o);
	o = json_parse(first.data, first.len - 1, NULL);
	assert_int_equal(agent_position_read(&q, o), 0);
	agent_init(&b, &io, &spec, NULL, 0);
	agent_restore(&b, &q, "too long");
	agent_position_of(&b, 0, &q);
	written(&q, &second);
	assert_string_equal(first.data, second.data);
	assert_int_equal(a.at.repeats->n, b.at.repeats->n);
	assert_memory_equal(a.at.repeats->calls, b.at.repeats->calls,
			    a.at.repeats->n * sizeof(*a.at.repeats->calls));
	assert_string_equal(a.at.said, b.at.said);
	agent_position_fini(&b.at);
	b.at.repeats = a.at.repeats;
	b.at.said = a.at.said;
	assert_memory_equal(&a, &b, sizeof(a));
	agent_fini(&a);
	buf_fini(&first);
	buf_fini(&second);
	json_decref(o);
}

/* What a model said may hold a key, and the log is for ever: an answer that is longer than most is
 * cut. */
TEST(what_was_said_is_clean_and_bounded)
{
	struct agent_position p = {0};
	char said[40001] = "use sk-ant-"
			   "api03-AbCd_ef-0123456789 for it";
	struct redact *keys = redact_new();
	struct buf b;

	p.said = said;
	written_without(&p, keys, &b);
	redact_free(keys);
	assert_string_equal(b.data, "{\"said\":\"use [redacted] for it\"}");
	buf_fini(&b);
	memset(said, 'x', sizeof(said) - 1);
	written(&p, &b);
	assert_int_equal(b.len - 1, strlen("{\"said\":\"…\"}") + 32000);
	buf_fini(&b);
}

static uint32_t position_random(uint32_t *state) /* xorshift32 */
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* One turn of a long run: some calls, new ones and old ones, with old results and new ones. */
static void one_turn(struct agent_position *p, uint32_t *rnd)
{
	static const struct tool reads = {.name = "read_file", .flags = TOOL_REPEATABLE};
	static const struct tool writes = {.name = "write_file"};
	const struct turn_call *worst;
	struct turn_call calls[4] = {0};
	char args[4][24], outputs[4][16];
	struct repeat_note how;
	struct turn *t = turn_new();

	p->iteration++;
	t->calls = calls;
	t->ncalls = position_random(rnd) % 5;
	for (unsigned i = 0; i < t->ncalls; i++) {
		struct turn_call *c = &calls[i];

		snprintf(args[i], sizeof(args[i]), "{\"path\":\"%u\"}", position_random(rnd) % 700);
		snprintf(outputs[i], sizeof(outputs[i]), "%u", position_random(rnd) % 2);
		snprintf(c->id, sizeof(c->id), "c%d.%u", (int)p->iteration, i + 1);
		c->tool = position_random(rnd) % 8 > 0 ? &reads : &writes;
		c->name = c->tool->name;
		c->args = args[i];
		c->output = outputs[i];
		c->output_len = strlen(outputs[i]);
		c->ran = c->success = true;
		c->error_class = "";
	}
	assert_int_equal(repeat_turn(&p->repeats, t, &worst, &how), 0);
	t->calls = NULL;
	t->ncalls = 0;
	turn_free(t);
	for (unsigned i = position_random(rnd) % 40; i < 3; i++) {
		uint32_t k = 1 + position_random(rnd) % (uint32_t)p->iteration;

		repeat_removed(p->repeats, (struct call_ref){(int32_t)k, 1});
	}
	if (position_random(rnd) % 20 == 0) {
		free(p->said);
		p->said = position_random(rnd) % 2 ? strdup("It is so.") : NULL;
		p->said_due = true;
	}
}

/* The position at the end of whatever was read is the live one, byte for byte, at each turn of a
 * run that is longer than its table of calls; a delta has the bytes of its own turn alone. */
TEST(deltas_add_up)
{
	for (uint32_t seed = 1; seed <= 8; seed++) {
		struct agent_position live = {0}, read = AGENT_POSITION_NONE;
		uint32_t rnd = seed;
		size_t most = 0;

		for (int i = 0; i < 600; i++) {
			struct buf delta, a, b;
			json_t *o;

			one_turn(&live, &rnd);
			live.delta = position_random(&rnd) % 50 == 0 || i == 0 ? 0 : live.delta + 1;
			written(&live, &delta);
			live.said_due = false;
			o = json_parse(delta.data, delta.len - 1, NULL);
			assert_int_equal(agent_position_read(&read, o), 0);
			written_whole(&live, &a);
			written_whole(&read, &b);
			assert_string_equal(a.data, b.data);
			assert_int_equal(read.delta, live.delta);
			if (live.delta > 0)
				most = MAX(most, delta.len);
			json_decref(o);
			buf_fini(&delta);
			buf_fini(&a);
			buf_fini(&b);
		}
		assert_int_equal(live.repeats->n, REPEAT_CALLS);
		assert_in_range(most, 100, 700);
		agent_position_fini(&live);
		agent_position_fini(&read);
	}
}

TEST(a_delta_needs_the_position_before)
{
	static const char *const bases[] = {NULL, "{\"iteration\":1}",
					    "{\"delta\":1,\"iteration\":2}"};
	struct agent_position p = AGENT_POSITION_NONE;
	json_t *second = json_parse("{\"delta\":2,\"iteration\":3}", 25, NULL);

	for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
		json_t *o = bases[i] ? json_parse(bases[i], strlen(bases[i]), NULL) : NULL;

		if (o != NULL)
			assert_int_equal(agent_position_read(&p, o), 0);
		assert_int_equal(agent_position_read(&p, second), i == 2 ? 0 : AVA_ENOENT);
		json_decref(o);
	}
	assert_int_equal(agent_position_read(&p, second), AVA_ENOENT); /* twice */
	json_decref(second);
	agent_position_fini(&p);
}

TEST(positions_that_are_none)
{
	static const char *const cases[] = {
		"{\"iteration\":-1}",
		"{\"iteration\":4294967296}",
		"{\"oddReplies\":256}",
		"{\"nudged\":2}",
		"{\"repeats\":{\"calls\":[7]}}",
		"{\"repeats\":{\"calls\":[\"00\"]}}",
		"{\"repeats\":{\"calls\":[\"000000000000000a000000000000000b 1.1 0 2\"]}}",
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *o = json_parse(cases[i], strlen(cases[i]), NULL);
		struct agent_position p = AGENT_POSITION_NONE;

		assert_non_null(o);
		assert_int_equal(agent_position_read(&p, o), AVA_ECORRUPT);
		agent_position_fini(&p);
	}
}
