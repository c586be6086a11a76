/* The reader of the verbs' arguments, and what an error looks like. Each verb through
 * HTTP is in test_routes.c, and against doc/api.yaml in test_api.c. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <string.h>

#include "ava/verbs.h"
#include "base/util.h"

struct fields {
	const char *text, *said, *from;
	int64_t from_call, count, ms, cents;
	char word[5];
	bool flag;
	int choice;
	const char *const *texts;
	size_t ntexts;
	const json_t *object;
};

#define AT(field) offsetof(struct fields, field)
static const struct arg args[] = {
	{"text", ARG_TEXT, AT(text)},
	{"said", ARG_SAID, AT(said), .most = 5},
	{"from", ARG_TEXT, AT(from)},
	{"from", ARG_COUNT, AT(from_call)},
	{"count", ARG_COUNT, AT(count)},
	{"ms", ARG_MS, AT(ms)},
	{"cents", ARG_CENTS, AT(cents)},
	{"word", ARG_WORD, AT(word), .most = 5},
	{"flag", ARG_FLAG, AT(flag)},
	{"choice", ARG_SWITCH, AT(choice)},
	{"texts", ARG_TEXTS, AT(texts), .at_n = AT(ntexts)},
	{"object", ARG_JSON, AT(object)},
	{NULL},
};

static struct arena mem;
static json_t *body;

static int read_body(const char *text, struct fields *out, struct ava_error *err)
{
	json_decref(body);
	body = json_parse(text, strlen(text), err);
	if (!body)
		fail_msg("%s: %s", text, err->text);
	*out = (struct fields){.count = -9, .ms = -9, .cents = -9, .choice = -9};
	return args_read(args, body, out, &mem, err);
}

TEST(every_kind)
{
	struct ava_error err = {0};
	struct fields f;

	assert_int_equal(read_body("{\"text\":\"a\",\"said\":\"12345\",\"from\":7,\"count\":3,"
				   "\"ms\":1.5,\"cents\":0.25,\"word\":\"1234\",\"flag\":true,"
				   "\"choice\":false,\"texts\":[\"a\",\"b\"],\"object\":{}}",
				   &f, &err),
			 0);
	assert_string_equal(f.text, "a");
	assert_string_equal(f.said, "12345");
	assert_null(f.from);
	assert_int_equal(f.from_call, 7);
	assert_int_equal(f.count, 3);
	assert_int_equal(f.ms, 1500);
	assert_int_equal(f.cents, 2500);
	assert_string_equal(f.word, "1234");
	assert_true(f.flag);
	assert_int_equal(f.choice, -1);
	assert_int_equal(f.ntexts, 2);
	assert_string_equal(f.texts[1], "b");
	assert_true(json_is_object(f.object));
	assert_int_equal(read_body("{\"from\":\"x\"}", &f, &err), 0);
	assert_string_equal(f.from, "x");
}

TEST(null_is_absent)
{
	struct ava_error err = {0};
	struct fields f;

	assert_int_equal(read_body("{\"text\":null,\"from\":null,\"count\":null,\"ms\":null,"
				   "\"cents\":null,\"flag\":null,\"choice\":null,\"texts\":null}",
				   &f, &err),
			 0);
	assert_true(!f.text && !f.from && !f.texts && !f.flag);
	assert_true(f.count == -9 && f.ms == -9 && f.cents == -9 && f.choice == -9);
	assert_int_equal(read_body("{\"texts\":[]}", &f, &err), 0);
	assert_non_null(f.texts); /* none is not the default */
	assert_int_equal(args_read(args, NULL, &f, &mem, &err), 0);
}

TEST(numbers)
{
	static const struct {
		const char *text;
		int64_t ms, cents, count;
	} cases[] = {
		/* below the smallest unit a number keeps its sign */
		{"{\"ms\":1e-9,\"cents\":1e-9}", 1, 1, -9},
		{"{\"ms\":-1e-9,\"cents\":-1e-9}", -1, -1, -9},
		{"{\"ms\":0,\"cents\":0.0,\"count\":0}", 0, 0, 0},
		{"{\"ms\":-5,\"cents\":-1,\"count\":-7}", -5000, -10000, -7},
		{"{\"ms\":0.1,\"cents\":0.29,\"count\":1e3}", 100, 2900, 1000},
		{"{\"count\":8999999999999999}", -9, -9, 8999999999999999},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ava_error err = {0};
		struct fields f;

		assert_int_equal(read_body(cases[i].text, &f, &err), 0);
		assert_true(f.ms == cases[i].ms);
		assert_true(f.cents == cases[i].cents);
		assert_true(f.count == cases[i].count);
	}
}

TEST(refused)
{
	static const struct {
		const char *text, *says;
		int code;
	} cases[] = {
		{"[]", "the body must be a JSON object", AVA_EINVAL},
		{"null", "the body must be a JSON object", AVA_EINVAL},
		{"\"text\"", "the body must be a JSON object", AVA_EINVAL},
		{"{\"Text\":null}",
		 "unknown key Text in the request: it takes text, said, from, count, ms, cents, "
		 "word, flag, choice, texts, object",
		 AVA_EINVAL},
		{"{\"text\":5}", "text must be a string", AVA_EINVAL},
		{"{\"said\":null}", "said must be a string", AVA_EINVAL},
		{"{\"said\":\"123456\"}", "said is over 5 bytes", AVA_ETOOBIG},
		{"{\"word\":\"12345\"}", "word is over 4 bytes", AVA_EINVAL},
		{"{\"from\":true}", "from must be a number", AVA_EINVAL},
		{"{\"count\":1.5}", "count must be a whole number", AVA_EINVAL},
		{"{\"count\":9223372036854775807}", "count is out of range", AVA_EINVAL},
		{"{\"ms\":\"5\"}", "ms must be a number", AVA_EINVAL},
		{"{\"ms\":1e300}", "ms is out of range", AVA_EINVAL},
		{"{\"cents\":-1e300}", "cents is out of range", AVA_EINVAL},
		{"{\"flag\":1}", "flag must be true or false", AVA_EINVAL},
		{"{\"choice\":\"true\"}", "choice must be true or false", AVA_EINVAL},
		{"{\"texts\":{}}", "texts must be a list of at most 100 strings", AVA_EINVAL},
		{"{\"texts\":[\"a\",1]}", "texts must be a list of strings", AVA_EINVAL},
		{"{\"object\":null}", "object must be an object", AVA_EINVAL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ava_error err = {0};
		struct fields f;

		assert_int_equal(read_body(cases[i].text, &f, &err), cases[i].code);
		assert_string_equal(err.text, cases[i].says);
	}
}

TEST(error)
{
	static const struct {
		int code, status;
	} cases[] = {
		{AVA_OK, 200},           {AVA_EINVAL, 400},   {AVA_EDENIED, 403},
		{AVA_ENOENT, 404},       {AVA_EEXIST, 409},   {AVA_EBUSY, 409},
		{AVA_EREJECTED, 410},    {AVA_EEXPIRED, 410}, {AVA_ETOOBIG, 413},
		{AVA_EUNSUPPORTED, 422}, {AVA_EFORMAT, 422},  {AVA_EFULL, 507},
		{AVA_EIO, 503},          {AVA_EUNKNOWN, 503}, {AVA_ECANCELED, 503},
		{AVA_ENOMEM, 500},       {AVA_ECORRUPT, 500}, {12345, 500},
	};
	TEST_BUF(b, 1 << 10);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(verbs_http_status(cases[i].code), cases[i].status);
	assert_int_equal(verbs_error(&b, AVA_ENOENT, "no \"S-1\"\n"), 0);
	assert_string_equal(
		b.data, "{\"error\":{\"code\":\"not_found\",\"message\":\"no \\\"S-1\\\"\\n\"}}");
}

static int first(void **state)
{
	arena_init(&mem, 1 << 20);
	return 0;
}

static int last(void **state)
{
	json_decref(body);
	arena_fini(&mem);
	return 0;
}

UNIT_GROUP(.first = first, .last = last);
