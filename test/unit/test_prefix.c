/* What two runs of a role and a model share of their first requests: everything up to the
 * first message. Whatever differs (context, schema, task) stands there, so a provider's
 * prompt cache has the rest. Prints how much that is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "agent/prompt.h"
#include "agent/tool.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/settings.h"
#include "base/util.h"
#include "provider/learned.h"
#include "provider/messages.h"
#include "provider/model.h"
#include "subagent/rolebook.h"
#include "subagent/spec.h"

static const char *const tasks[] = {
	"Find where the pool of connections is drained, and whether a client that waits can be "
	"forgotten there. Name the lines.",
	"Review the parser of the configuration file for what happens with empty files.",
};

/* The request of a run's first call, without its tail. */
static void request_of(const char *role, const char *model, unsigned which, struct buf *out)
{
	struct op_spawn s = {.task = tasks[which],
			     .context = which ? "It is new." : "",
			     .role = role,
			     .model = model,
			     .cwd = "/",
			     .timeout_ms = which ? 77000 : AVA_DEFAULT,
			     .max_cost_microusd = AVA_DEFAULT,
			     .max_tokens = AVA_DEFAULT,
			     .max_iterations = which ? 9 : AVA_DEFAULT};
	struct ava_error err = {0};
	struct hash_sha256 hash;
	struct settings set;
	struct run_spec *r;
	TEST_BUF(lines, 1 << 20);
	int64_t bytes;

	settings_defaults(&set);
	if (spec_build(&r, &s, &set, NULL, NULL, &err) != 0)
		fail_msg("%s %s: %s", role, model, err.text);
	buf_init(out, 1 << 20);
	assert_int_equal(spec_messages(r, &lines, &bytes, &hash), 0);
	assert_int_equal(messages_request(out, lines.data, lines.len, -1, NULL, &err), 0);
	assert_int_equal(out->len, bytes);
	no_example_ids(role, out->data);
	/* A tool is described once, in the form of its dialect. */
	for (unsigned i = 0; i < r->agent.ntools && !r->brief; i++) {
		char start[40];
		const char *at;

		snprintf(start, sizeof(start), "%s", r->tools[i]->description);
		at = strstr(out->data, start);
		assert_non_null(at);
		assert_null(strstr(at + 1, start));
	}
	spec_free(r);
}

/* The least that is left for the task in the smallest window that people run: of 4,096 tokens,
 * 1,500 for what is said before it. A token of these has 3.7 bytes. */
#define SMALL_BYTES 5700

/* Where the window is small, tools and the runtime's text are short, and what is needed later is
 * not there yet. */
TEST(small_window)
{
	static const char url[] = "http://127.0.0.1:9/v1";
	static const char *const later[] = {"read_result", "ask_person", "memory_search"};
	struct book_list l;

	setenv("AVA_LOCAL_BASE_URL", url, 1);
	assert_int_equal(provider_configure(NULL), 0);
	(void)learned_note("local/small", url, &(struct learned){.window = 8192}, "server");
	(void)learned_note("local/enough", url, &(struct learned){.window = 16384}, "server");
	assert_int_equal(book_list(&book_of_roles, "", &l), 0);
	for (size_t i = 0; i < l.n; i++) {
		const char *role = l.items[i].role->name;
		struct buf small, whole;

		if (l.items[i].why || role_usable(l.items[i].role, true, NULL) != 0)
			continue;
		request_of(role, "local/small", 0, &small);
		request_of(role, "local/enough", 0, &whole);
		print_message("%-13s %zu bytes, in a small window %zu\n", role, whole.len,
			      small.len);
		assert_true(small.len < SMALL_BYTES);
		for (size_t k = 0; k < ARRAY_LEN(later); k++) {
			assert_null(strstr(small.data, later[k]));
			assert_non_null(strstr(whole.data, later[k]));
		}
		assert_non_null(strstr(small.data, "never instructions"));
		assert_non_null(strstr(small.data, "\"name\":\"submit_result\""));
		buf_fini(&small);
		buf_fini(&whole);
	}
	book_list_free(&l);
	unsetenv("AVA_LOCAL_BASE_URL");
	assert_int_equal(provider_configure(NULL), 0);
}

static void check_role(const char *role, const char *model)
{
	struct buf a, b;
	size_t n = 0;

	request_of(role, model, 0, &a);
	request_of(role, model, 1, &b);
	while (n < a.len && n < b.len && a.data[n] == b.data[n])
		n++;
	print_message("%-13s %-28s %5zu of %5zu bytes shared, %.1f %%\n", role, model, n, a.len,
		      100.0 * (double)n / (double)a.len);
	assert_memory_equal(a.data + n, "Your Task", 9); /* it has no context */
	assert_memory_equal(b.data + n, "Context", 7);
	assert_true((double)n > 0.9 * (double)a.len);
	buf_fini(&a);
	buf_fini(&b);
}

TEST(shared)
{
	static const char *const models[] = {"offline:/dev/null", "anthropic/claude-haiku-4-5",
					     "openai/gpt-5.6-luna"};
	struct book_list l;

	setenv("ANTHROPIC_API_KEY", "x", 1);
	setenv("OPENAI_API_KEY", "x", 1);
	assert_int_equal(book_list(&book_of_roles, "", &l), 0);
	for (size_t i = 0; i < l.n; i++)
		for (size_t k = 0; k < ARRAY_LEN(models); k++)
			if (!l.items[i].why && role_usable(l.items[i].role, true, NULL) == 0)
				check_role(l.items[i].role->name, models[k]);
	book_list_free(&l);
}

/* The mark that makes Anthropic cache stands at the end of what is shared: its order is
 * tools, system, messages. */
TEST(mark)
{
	static const char mark[] = ",\"cache_control\":{\"type\":\"ephemeral\"}}]";
	struct buf a;
	const char *at;

	setenv("ANTHROPIC_API_KEY", "x", 1);
	request_of("researcher", "anthropic/claude-haiku-4-5", 0, &a);
	at = strstr(a.data, mark);
	assert_non_null(at);
	assert_memory_equal(at + sizeof(mark) - 1, ",\"tools\":", 9);
	assert_null(strstr(at + 1, mark));
	buf_fini(&a);
}
