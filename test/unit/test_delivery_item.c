/* Questions of runs as notices: one event makes them, another settles them. */
#include <stdio.h>
#include <string.h>

#include "unit.h"

#include "ava/delivery.h"
#include "base/util.h"
#include "codec/json.h"

static const char *waiting(char out[700], const char *state)
{
	snprintf(out, 700,
		 "{\"timestamp\":\"2026-11-21T08:00:09.096Z\",\"lsn\":9,\"seq\":1,\"eventType\":"
		 "\"Waiting\",\"agentId\":\"S-7f3a2b\",\"sessionId\":\"x\",\"traceId\":"
		 "\"brave-otter\",\"userId\":\"\",\"content\":{\"subagentId\":\"S-7f3a2b\","
		 "\"callId\":\"c3.1\",\"state\":\"%s\",\"kind\":\"question\",\"question\":"
		 "\"Which\\u001b[2J?\",\"choices\":[\"a\",\"b\"]},\"metadata\":{}}",
		 state);
	return out;
}

/* A question is a notice until it is answered, expires, or its run ends. */
TEST(question)
{
	static const char *const ends[] = {"answered", "refused", "expired", "stopped"};
	char line[700], key[ITEM_KEY];
	struct item *it = NULL;
	json_t *o;

	waiting(line, "asked");
	assert_int_equal(item_from_event(&it, "Waiting", line, strlen(line)), 0);
	assert_string_equal(it->key, "S-7f3a2b:c3.1");
	assert_false(item_answers("Waiting", line, strlen(line), key));
	o = json_parse(it->json, strlen(it->json), NULL);
	assert_string_equal(json_get_str(o, "type"), "Waiting");
	assert_string_equal(json_get_str(o, "run_id"), "S-7f3a2b");
	assert_string_equal(json_get_str(o, "call_id"), "c3.1");
	assert_string_equal(json_get_str(o, "proposal_id"), "");
	assert_string_equal(json_get_str(o, "title"),
			    "S-7f3a2b (brave-otter) asks: Which\\x1b[2J?");
	assert_string_equal(json_get_str(o, "text"), "Which\\x1b[2J?");
	assert_int_equal(json_array_size(json_object_get(o, "choices")), 2);
	json_decref(o);
	item_free(it);
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		waiting(line, ends[i]);
		assert_int_equal(item_from_event(&it, "Waiting", line, strlen(line)), AVA_ENOENT);
		assert_true(item_answers("Waiting", line, strlen(line), key));
		assert_string_equal(key, "S-7f3a2b:c3.1");
	}
}

/* That Ava cannot answer is a notice; that a run has met an error is none. */
TEST(failed)
{
	static const char *const agents[] = {"ava", "S-7f3a2b"};
	struct item *it = NULL;
	char line[700];
	json_t *o;

	for (size_t i = 0; i < ARRAY_LEN(agents); i++) {
		snprintf(line, sizeof(line),
			 "{\"timestamp\":\"2026-11-21T08:00:09.096Z\",\"lsn\":9,\"eventType\":"
			 "\"Error\",\"agentId\":\"%s\",\"sessionId\":\"x\",\"userId\":"
			 "\"telegram:77\",\"content\":{\"class\":\"auth\",\"message\":\"no key\"}}",
			 agents[i]);
		assert_int_equal(item_from_event(&it, "Error", line, strlen(line)),
				 i == 0 ? 0 : AVA_ENOENT);
	}
	o = json_parse(it->json, strlen(it->json), NULL);
	assert_string_equal(json_get_str(o, "title"), "Ava cannot answer: no key");
	json_decref(o);
	item_free(it);
}
