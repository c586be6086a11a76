/* Requests as the offline model reads them: what is refused, how calls are
 * numbered, and memory that runs out at every point. */
#include "unit.h"

#include <ava.h>
#include <string.h>

#include "base/util.h"
#include "provider/dialect.h"
#include "provider/offline.h"

static const char *const bad_bodies[] = {
	"",
	"{",
	"[]",
	"null",
	"{\"messages\":[]",
	"{\"messages\":{}}",
	"{\"messages\":[1]}",
	"{\"messages\":[{\"role\":\"user\"}]}",
	"{\"messages\":[]}x",
	"{\"tools\":[3],\"messages\":[]}",
	"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":3}]}]}",
};

TEST(bad_bodies)
{
	for (size_t i = 0; i < ARRAY_LEN(bad_bodies); i++) {
		struct dialect_answer a;
		struct ava_error err = {0};

		print_message("%s\n", bad_bodies[i]);
		assert_int_equal(
			dialect_offline.answer(bad_bodies[i], strlen(bad_bodies[i]), "", &a, &err),
			AVA_EINVAL);
		assert_null(a.turn);
		assert_non_null(strstr(err.text, "Messages form"));
	}
}

/* Ids go on where the conversation stands, also when earlier messages are gone. */
TEST(numbers)
{
	static const struct {
		const char *body;
		unsigned number;
	} cases[] = {
		{"{\"messages\":[]}", 1},
		{"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}"
		 "]}]}",
		 1},
		{"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}"
		 "]},{\"role\":\"user\","
		 "\"content\":[{\"type\":\"text\",\"text\":\"your reply was empty\"}]}]}",
		 2},
		{"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a "
		 "summary\"}]},{\"role\":"
		 "\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"toolu_9_1\",\"name\":"
		 "\"f\",\"input\":{}}]},{"
		 "\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_"
		 "9_1\",\"content\":"
		 "\"x\"}]}]}",
		 10},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct offline_body b;

		assert_int_equal(offline_body_read(&b, cases[i].body, strlen(cases[i].body), NULL),
				 0);
		assert_int_equal(b.number, cases[i].number);
		offline_body_fini(&b);
	}
}

TEST(memory)
{
	static const char body[] = "{\"tools\":[{\"name\":\"search_codebase\",\"input_schema\":{"
				   "\"properties\":{\"regex\":{}}}},{\"name\":"
				   "\"submit_result\"}],\"messages\":[{\"role\":\"user\","
				   "\"content\":[{\"type\":\"text\",\"text\":\"find the "
				   "pool drain\"}]}],\"max_tokens\":100}";
	static const char more[] =
		"{\"tools\":[{\"name\":\"submit_result\"}],\"messages\":[{\"role\":\"user\","
		"\"content\":[{\"type\":"
		"\"text\",\"text\":\"pool\"}]},{\"role\":\"assistant\",\"content\":[{\"type\":"
		"\"tool_use\",\"id\":\"a\","
		"\"name\":\"search_codebase\",\"input\":{}}]},{\"role\":\"user\",\"content\":[{"
		"\"type\":\"tool_result\","
		"\"tool_use_id\":\"a\",\"content\":\"a.c:1:int pool(void)\"}]}]}";
	static const char talk[] =
		"{\"tools\":[{\"name\":\"spawn_subagent\"}],\"messages\":[{\"role\":\"user\","
		"\"content\":[{\"type\":\"text\",\"text\":\"[ava] S-7f3a2b has ended. Its result "
		"follows\\n{\\\"subagent_id\\\":\\\"S-7f3a2b\\\",\\\"citations\\\":"
		"[{\\\"path\\\":\\\"a\\\"}]}\\n[ava] End\\nfind main\"}]}]}";
	static const char *const bodies[] = {body, more, talk};

	for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
		FAULT_LOOP(k, {
			struct dialect_answer a;
			int rv = dialect_offline.answer(bodies[i], strlen(bodies[i]), "", &a, NULL);

			assert_true(rv == 0 || rv == AVA_ENOMEM);
			assert_int_equal(rv == 0, a.turn != NULL);
			turn_free(a.turn);
		});
}
