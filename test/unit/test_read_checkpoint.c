/* A checkpoint as a value, out of a recorded run (test/golden/checkpoint): it ends at
 * its event and with the messages there were then, and is the same behind its JSON.
 * What is unknown, damaged or no checkpoint is refused in a sentence. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"

#define GOLDEN   "test/golden/checkpoint/"
#define LOG      "logs/subagents/S-7f3a2b.jsonl"
#define MESSAGES "runs/S-7f3a2b/messages.jsonl"

struct root {
	char dir[256], log[400], messages[400];
};

static void copy(const char *name, const char *to)
{
	char from[200], *text;
	size_t len;

	snprintf(from, sizeof(from), GOLDEN "%s", name);
	text = unit_read_src(from, &len);
	unit_write(to, text, len);
	free(text);
}

static int setup(void **state)
{
	struct root *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	snprintf(r->dir, sizeof(r->dir), "%s", unit_tmpdir());
	unit_mkdirs(r->dir, LOG);
	unit_mkdirs(r->dir, MESSAGES);
	snprintf(r->log, sizeof(r->log), "%s/" LOG, r->dir);
	snprintf(r->messages, sizeof(r->messages), "%s/" MESSAGES, r->dir);
	copy(LOG, r->log);
	copy(MESSAGES, r->messages);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct root *r = *state;

	unit_rmdir(r->dir);
	free(r);
	return 0;
}

static struct ava_checkpoint *read_it(const struct root *r)
{
	struct ava_checkpoint *c;
	struct ava_error err = {0};

	if (ava_checkpoint_read(&c, r->dir, "S-7f3a2b", "before-answer", &err) != 0)
		fail_msg("%s", err.text);
	return c;
}

static void refused(const struct root *r, const char *run, const char *name, int code,
		    const char *why)
{
	struct ava_checkpoint *c;
	struct ava_error err = {0};

	assert_int_equal(ava_checkpoint_read(&c, r->dir, run, name, &err), code);
	assert_null(c);
	if (strstr(err.text, why) == NULL || strchr(err.text, '\n') != NULL)
		fail_msg("%s", err.text);
}

/* Given in the second turn, while a person was asked. */
TEST(ends_at_its_event)
{
	struct root *r = *state;
	struct ava_checkpoint *c = read_it(r);
	const struct ava_event *e;
	struct ava_trace_info info;
	size_t n, len;
	char *all;

	assert_string_equal(c->name, "before-answer");
	assert_string_equal(c->run, "S-7f3a2b");
	assert_string_equal(c->trace_id, "brave-otter");
	assert_int_equal(c->call, 2);
	ava_trace_info(c->trace, &info);
	assert_string_equal(info.id, "brave-otter");
	assert_string_equal(info.parent, "ava");
	assert_int_equal(info.end_ms, 0);
	assert_int_equal(ava_trace_events(c->trace, NULL, 0, 0, &e, &n, NULL), 0);
	assert_int_equal(n, 19); /* of 29 */
	assert_int_equal(e[18].seq, 19);
	assert_string_equal(e[18].type, "Checkpoint");
	assert_int_equal(e[18].time_ms, c->time_ms);
	all = unit_read(r->messages, &len);
	assert_true(c->state_len < len); /* the answer and the end came later */
	assert_memory_equal(c->state, all, c->state_len);
	assert_int_equal(c->state[c->state_len - 1], '\n');
	assert_null(strstr(c->state, "\"summary\":\"done\""));
	assert_non_null(strstr(all, "\"summary\":\"done\""));
	free(all);
	ava_checkpoint_free(c);
}

TEST(json_round_trip)
{
	struct ava_checkpoint *c = read_it(*state), *back;
	struct ava_error err = {0};
	const char *json, *again;
	size_t len, n, golden_len;
	char *golden = unit_read_src(GOLDEN "checkpoint.json", &golden_len);

	assert_int_equal(ava_checkpoint_json(c, &json, &len, &err), 0);
	assert_int_equal(len + 1, golden_len); /* and its newline */
	assert_memory_equal(json, golden, len);
	if (ava_checkpoint_parse(&back, json, len, &err) != 0)
		fail_msg("%s", err.text);
	assert_string_equal(back->name, c->name);
	assert_string_equal(back->run, c->run);
	assert_string_equal(back->trace_id, c->trace_id);
	assert_int_equal(back->time_ms, c->time_ms);
	assert_int_equal(back->call, c->call);
	assert_int_equal(back->state_len, c->state_len);
	assert_memory_equal(back->state, c->state, c->state_len);
	assert_int_equal(ava_checkpoint_json(back, &again, &n, &err), 0);
	assert_int_equal(n, len);
	assert_memory_equal(again, json, len);
	ava_checkpoint_free(back);
	ava_checkpoint_free(c);
	ava_checkpoint_free(NULL);
	free(golden);
}

TEST_OF(unknown_is_refused, struct root *r)
{
	refused(r, "S-7f3a2b", "nowhere", AVA_ENOENT,
		"trace brave-otter has no checkpoint nowhere: it has before-answer");
	refused(r, "S-7f3a2b", "", AVA_ENOENT, "has no checkpoint");
	refused(r, "S-000000", "before-answer", AVA_ENOENT, "");
	refused(r, "../etc", "before-answer", AVA_EINVAL, "neither the id of a run");
	refused(r, NULL, "before-answer", AVA_EINVAL, "a run and a name");
}

/* Messages in parts, as recovery may leave them: of each the whole lines count. */
TEST(messages_in_parts)
{
	struct root *r = *state;
	struct ava_checkpoint *c = read_it(r), *same;
	size_t len, cut;
	char *all = unit_read(r->messages, &len), second[400], *torn;

	cut = (size_t)(strchr(all, '\n') + 1 - all);
	snprintf(second, sizeof(second), "%s/runs/S-7f3a2b/messages.2.jsonl", r->dir);
	unit_write(second, all + cut, len - cut);
	torn = strdup(all);
	assert_non_null(torn);
	torn[cut] = '{';
	torn[cut + 1] = '"';
	unit_write(r->messages, torn, cut + 2);
	same = read_it(r);
	assert_int_equal(same->state_len, c->state_len);
	assert_memory_equal(same->state, c->state, c->state_len);
	ava_checkpoint_free(same);
	ava_checkpoint_free(c);
	assert_int_equal(remove(second), 0);
	refused(r, "S-7f3a2b", "before-answer", AVA_ECORRUPT, "has 1 of the 5 lines");
	assert_int_equal(remove(r->messages), 0);
	refused(r, "S-7f3a2b", "before-answer", AVA_ENOENT,
		"the messages of S-7f3a2b are not kept");
	free(torn);
	free(all);
}

TEST(damaged_json_is_refused)
{
	static const struct {
		const char *was, *is, *why;
	} cases[] = {
		{"{\"name\"", "[\"name\"", "line 1: "},
		{"\"name\":\"before", "\"nome\":\"before", "a checkpoint has \"name\""},
		{"\"trace\":{", "\"trice\":{", "a checkpoint has \"name\""},
		{"\"before-answer\"", "\"before-a_swer\"", "is not the checkpoint"},
		{"\"traceId\":\"brave", "\"traceId\":\"grave", "its \"traceId\" does not fit"},
		{"\"timestamp\":\"2026", "\"timestamp\":\"2025", "its \"timestamp\" does not"},
		{"find kettle", "find bottle", "its \"stateHash\" does not fit"},
		{"\\n{\\\"role\\\"", "  {\\\"role\\\"",
		 "has 4 lines of messages, its event says 5"},
		{"\"events\":[", "\"evonts\":[", "the trace of a checkpoint: "},
		{"\"eventType\":\"Checkpoint\"", "\"eventType\":\"Checkpaint\"",
		 "does not end with"},
	};
	size_t len;
	char *golden = unit_read_src(GOLDEN "checkpoint.json", &len), *at;
	struct ava_checkpoint *c;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ava_error err = {0};
		char *text = strndup(golden, len);

		at = text != NULL ? strstr(text, cases[i].was) : NULL;
		assert_non_null(at);
		memcpy(at, cases[i].is, strlen(cases[i].is));
		assert_int_equal(ava_checkpoint_parse(&c, text, len, &err), AVA_EINVAL);
		assert_null(c);
		if (strstr(err.text, cases[i].why) == NULL || strchr(err.text, '\n') != NULL)
			fail_msg("%zu: %s", i, err.text);
		free(text);
	}
	for (size_t n = 0; n < len - 2; n += 97) {
		struct ava_error err = {0};

		assert_int_equal(ava_checkpoint_parse(&c, golden, n, &err), AVA_EINVAL);
		assert_true(err.text[0] != '\0' && c == NULL);
	}
	free(golden);
}

UNIT_GROUP(.before = setup, .after = teardown);
