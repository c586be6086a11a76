/* What was learned of models: the file and its golden one, what servers answer, and that a model
 * has it. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/buf.h"
#include "codec/json.h"
#include "provider/learned.h"
#include "provider/model.h"
#include "subagent/learn.h"

static char top[200];

static int open_root(const char *text)
{
	int dir, fd;

	snprintf(top, sizeof(top), "%s", unit_tmpdir());
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	if (text == NULL)
		return dir;
	fd = openat(dir, LEARNED_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_int_equal(sys_write_all(fd, text, strlen(text), 0), 0);
	close(fd);
	return dir;
}

static void close_root(int dir)
{
	close(dir);
	unit_rmdir(top);
}

/* Read, and written again to the same bytes. */
TEST(golden)
{
	size_t len, now_len;
	char *text = unit_read_src("test/golden/learned/learned.json", &len), *now;
	int dir = open_root(text);
	struct ava_error err = {0};
	TEST_BUF(words, 4096);

	assert_int_equal(learned_load(dir, &err), 0);
	assert_true(learned_words(1, &words));
	assert_string_equal(words.data,
			    "openai/gpt-5.1 at https://models.example.org/v1: window 131072, "
			    "output at most 4096, by refusal");
	buf_reset(&words);
	assert_false(learned_words(2, &words));
	assert_int_equal(learned_save(dir, &err), 0);
	assert_int_equal(sys_read_file(dir, LEARNED_FILE, 1 << 20, &now, &now_len, &err), 0);
	assert_int_equal(now_len, len);
	assert_memory_equal(now, text, len);
	free(now);
	free(text);
	close_root(dir);
}

/* What is no such file is ignored, with a sentence. */
TEST(damaged)
{
	static const char *const texts[] = {"", "{", "[]", "{\"format\":2,\"models\":{}}",
					    "{\"format\":1,\"models\":[]}"};
	struct ava_error err;
	TEST_BUF(words, 4096);

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		int dir = open_root(texts[i]);

		assert_int_equal(learned_load(dir, &err), AVA_ECORRUPT);
		assert_non_null(strstr(err.text, "is ignored"));
		assert_false(learned_words(0, &words));
		close_root(dir);
	}
}

static void make_model(struct model *m, const char *id)
{
	assert_int_equal(provider_set("local", "http://127.0.0.1:1/v1", "", NULL), 0);
	assert_int_equal(provider_configure(NULL), 0);
	assert_int_equal(model_restore(id, m, NULL), 0);
}

static bool note(const struct model *m, int64_t window, int64_t output_max, const char *from)
{
	struct learned l = {.window = window, .output_max = output_max};

	return learned_note(m->id, m->provider->base_url, &l, from);
}

TEST(model_takes_it)
{
	int dir = open_root(NULL);
	struct learned l;
	struct model m;

	assert_int_equal(learned_load(dir, NULL), 0);
	make_model(&m, "local/x");
	assert_int_equal(m.context, MODEL_LOCAL_CONTEXT);
	assert_false(note(&m, 0, 0, "refusal"));
	assert_true(note(&m, 131072, 0, "server"));
	assert_false(note(&m, 131072, 0, "server"));
	assert_true(note(&m, 0, 2048, "refusal")); /* the window stays */
	make_model(&m, "local/x");
	assert_int_equal(m.context, 131072);
	assert_int_equal(m.max_output, 2048);
	make_model(&m, "local/y");
	assert_int_equal(m.context, MODEL_LOCAL_CONTEXT);
	/* At another address it is another one. */
	assert_int_equal(provider_set("local", "http://127.0.0.1:2/v1", "", NULL), 0);
	assert_int_equal(provider_configure(NULL), 0);
	assert_int_equal(model_restore("local/x", &m, NULL), 0);
	assert_false(learned_find(m.id, m.provider->base_url, &l));
	/* Of a model that a table has the smaller one holds. */
	assert_int_equal(model_restore("openai/gpt-5.1", &m, NULL), 0);
	assert_true(note(&m, INT64_C(10000000), 0, "refusal"));
	assert_int_equal(model_restore("openai/gpt-5.1", &m, NULL), 0);
	assert_true(m.context < 10000000);
	for (int i = 0; i < LEARNED_MAX + 8; i++) { /* full: the oldest goes */
		snprintf(m.id, sizeof(m.id), "local/m%d", i);
		assert_true(note(&m, 5000, 0, "count"));
	}
	assert_true(learned_find(m.id, m.provider->base_url, &l));
	assert_int_equal(l.window, 5000);
	assert_int_equal(provider_set("local", "", "", NULL), 0);
	close_root(dir);
}

/* Counts as the genuine server told them; once a model. */
TEST(counts)
{
	static const struct {
		int64_t bytes, tokens;
		bool called, odd;
	} cases[] = {
		{18602, 5374, false, false}, /* with tools */
		{18602, 1551, false, false}, /* a tokenizer that packs twelve bytes */
		{18602, 771, true, false},   /* it called one, so it saw them */
		{18602, 1, false, false},    /* the server does not count */
		{18602, 771, false, true},   {18602, 771, false, false},
		{18602, 771, true, false},   {18602, 771, false, false},
	};
	int dir = open_root(NULL);
	struct learned l;
	char text[400];

	assert_int_equal(learned_load(dir, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(learned_count("local/x", "u", cases[i].bytes, cases[i].tokens,
					       cases[i].called, text, sizeof(text)),
				 cases[i].odd);
	assert_non_null(strstr(text, "local/x counted 771 tokens of a request of about 4600"));
	assert_true(learned_find("local/x", "u", &l));
	assert_int_equal(l.tools, -1);
	close_root(dir);
}

/* The one model of a local server is the default; of several one has to be named. */
TEST(lists)
{
	struct ava_error err;
	struct model m;
	char names[64];
	const char *url;

	make_model(&m, "local/x");
	url = m.provider->base_url;
	assert_int_equal(learned_names(url, names, sizeof(names)), 0);
	assert_int_equal(model_resolve("claude-haiku", &m, NULL, &err), 0);
	assert_string_equal(m.id, MODEL_UNNAMED);
	learned_list(url, 1, "qwen3:8b");
	assert_int_equal(model_resolve("claude-haiku", &m, NULL, &err), 0);
	assert_string_equal(m.id, "local/qwen3:8b");
	learned_list(url, 2, "llama3.1, qwen3:8b");
	assert_int_equal(model_resolve("claude-haiku", &m, NULL, &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "has 2 models (llama3.1, qwen3:8b): set AVA_LOCAL_MODEL"));
	learned_list(url, 0, "");
	assert_int_equal(provider_set("local", "", "", NULL), 0);
}

/* As servers answer: list, props, ps, show, studio. */
static const struct {
	const char *what, *answers[LEARN_QUESTIONS];
	int64_t window, slots, tools;
} servers[] = {
	{"nothing", {NULL}, 0},
	{"vllm", {"{'data':[{'id':'m','max_model_len':8192},{'id':'n','max_model_len':1}]}"}, 8192},
	{"llama.cpp",
	 {"{'data':[{'id':'file.gguf','meta':{'n_ctx':16384,'n_ctx_train':131072}}]}",
	  "{'default_generation_settings':{'n_ctx':4096},'total_slots':4,"
	  "'chat_template_caps':{'supports_tools':false}}"},
	 4096,
	 4,
	 -1},
	{"llama.cpp, with tools",
	 {NULL, "{'n_ctx':4096,'total_slots':-1,'chat_template_caps':{'supports_tools':true}}"},
	 4096,
	 0,
	 1},
	{"ollama, without tools", {NULL, NULL, NULL, "{'capabilities':['completion']}"}, 0, 0, -1},
	{"ollama, with tools",
	 {NULL, NULL, NULL, "{'capabilities':['completion','tools']}"},
	 0,
	 0,
	 1},
	{"lm studio, with tools",
	 {NULL, NULL, NULL, NULL, "{'data':[{'id':'m','capabilities':['tool_use']}]}"},
	 0,
	 0,
	 1},
	{"llama.cpp, list only", {"{'data':[{'id':'file.gguf','meta':{'n_ctx':16384}}]}"}, 16384},
	{"ollama, loaded",
	 {"{'data':[{'id':'m:latest'}]}", NULL,
	  "{'models':[{'name':'m:latest','context_length':16384}]}",
	  "{'model_info':{'qwen.context_length':40960}}"},
	 16384},
	{"ollama, not loaded",
	 {NULL, NULL, "{'models':[]}", "{'model_info':{'qwen.context_length':40960}}"},
	 4096},
	{"ollama, num_ctx",
	 {NULL, NULL, NULL,
	  "{'parameters':'stop x\\nnum_ctx      8192','model_info':{'q.context_length':40960}}"},
	 8192},
	{"ollama, a small model",
	 {NULL, NULL, NULL, "{'model_info':{'q.context_length':2048}}"},
	 2048},
	{"lm studio, loaded",
	 {"{'data':[{'id':'m'}]}", NULL, NULL, NULL,
	  "{'data':[{'id':'m','max_context_length':32768,'loaded_context_length':4096}]}"},
	 4096},
	{"lm studio",
	 {NULL, NULL, NULL, NULL, "{'data':[{'id':'m','max_context_length':32768}]}"},
	 32768},
	{"another's rows",
	 {"{'data':[{'id':'a','max_model_len':1},{'id':'b','max_model_len':2}]}"},
	 0},
	{"no such answers", {"[]", "7", "{'models':7}", "{'parameters':7}", "{'data':{}}"}, 0},
};

TEST(answers)
{
	for (size_t i = 0; i < ARRAY_LEN(servers); i++) {
		json_t *answers[LEARN_QUESTIONS] = {NULL};
		struct learned is;

		print_message("%s\n", servers[i].what);
		for (size_t k = 0; k < LEARN_QUESTIONS; k++) {
			char *text = servers[i].answers[k] ? strdup(servers[i].answers[k]) : NULL;

			for (char *p = text; p && (p = strchr(p, '\'')) != NULL;)
				*p = '"';
			answers[k] = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
			assert_true(!text || answers[k]);
			free(text);
		}
		is = learn_facts(answers, "m");
		assert_int_equal(is.window, servers[i].window);
		assert_int_equal(is.slots, servers[i].slots);
		assert_int_equal(is.tools, servers[i].tools);
		for (size_t k = 0; k < LEARN_QUESTIONS; k++)
			json_decref(answers[k]);
	}
}
