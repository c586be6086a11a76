/* The pure half of a question to the logs: times as people write them, types
 * by name, alias and prefix, literals and expressions with smart case, ids,
 * and what counts as broken. doc/QUERY.md's examples are read from there. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/util.h"
#include "journal/query.h"

#define NOW INT64_C(1795248000000) /* 2026-11-21T08:00:00Z, a Saturday */

static void zone(const char *tz)
{
	setenv("TZ", tz, 1);
	tzset();
}

/* As a line writes it, or "" when the text is refused. */
static const char *when(const char *text, int64_t now)
{
	static char iso[CLOCK_ISO_LEN + 1];
	struct ava_error err;
	int64_t ms;

	iso[0] = '\0';
	if (query_time(text, now, &ms, &err) == 0)
		clock_iso(ms, iso);
	else
		assert_non_null(strstr(err.text, "is no time: write"));
	return iso;
}

/* The tables of doc/QUERY.md between a line "```times ZONE NOW" and "```":
 * the text, two blanks or more, the time. */
TEST(times_of_the_page)
{
	size_t len, checked = 0;
	char *doc = unit_read_src("doc/QUERY.md", &len), *save, *line;
	int64_t now = 0;
	bool in = false;

	for (line = strtok_r(doc, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
		char tz[40], iso[40], *gap;

		if (sscanf(line, "```times %39s %39s", tz, iso) == 2) {
			zone(tz);
			now = clock_parse_iso(iso, strlen(iso));
			assert_true(now > 0);
			in = true;
			continue;
		}
		in = in && strcmp(line, "```") != 0;
		gap = in ? strstr(line, "  ") : NULL;
		if (gap == NULL)
			continue;
		*gap = '\0';
		assert_string_equal(when(line, now), gap + 1 + strspn(gap + 1, " "));
		checked++;
	}
	free(doc);
	assert_true(checked >= 25);
	zone("UTC");
}

TEST(times_refused)
{
	static const char *const bad[] = {
		"",
		"-",
		"soon",
		"1",
		"1 fortnight",
		"ago",
		"1h later",
		"-1h ago",
		"2026-02-29",
		"2026-13-01",
		"2026-1-1",
		"2026-11-31",
		"25:00",
		"12:60",
		"2026-11-21T08",
		"@",
		"@12x",
		"1h 30",
		"1969-12-31",
		"99999999999999999999h",
		"today now",
		"2026-11-21T08:00:00+",
		"2026-11-21T08:00:00.Z",
		"9999999999999999w",
		"@9999999999999999999",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_string_equal(when(bad[i], NOW), "");
	/* Before 1970 is before every log; there is nothing after 9999. */
	assert_string_equal(when("100 years ago", NOW), "1970-01-01T00:00:00.000Z");
	assert_string_equal(when("@99999999999999", NOW), "9999-12-31T23:59:59.999Z");
	assert_string_equal(when("+90000y", NOW), "9999-12-31T23:59:59.999Z");
}

#define BIT(kind) (UINT64_C(1) << EVENT_##kind)

TEST(type_names)
{
	static const struct {
		const char *text;
		uint64_t mask; /* 0: refused */
	} cases[] = {
		{"ToolCall", BIT(ToolCall)},
		{"toolcall,ERROR", BIT(ToolCall) | BIT(Error)},
		{"error", BIT(Error)},
		{"err", BIT(Error)},
		{"ErrorOccurred", BIT(Error)},
		{"thinking", BIT(ExtendedThinking)},
		{"tool", BIT(ToolCall) | BIT(ToolResult)},
		{"tools", BIT(ToolCall) | BIT(ToolResult)},
		{"cost", BIT(CostUpdate)},
		{"infer", BIT(InferStart) | BIT(InferEnd)},
		{"spawn",
		 BIT(SpawnProposed) | BIT(SpawnConfirmed) | BIT(SpawnRejected) | BIT(SpawnExpired)},
		{"Fork", BIT(Fork)},
		{"message", BIT(UserMessage) | BIT(AssistantMessage)},
		{"nonsense", 0},
		{"e", 0}, /* too short to mean one thing */
		{"tool,,cost", 0},
		{"ToolCalls", 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ava_error err;
		uint64_t mask = 0;
		int rv = event_types(cases[i].text, &mask, &err);

		assert_int_equal(rv, cases[i].mask != 0 ? 0 : AVA_EINVAL);
		if (rv == 0)
			assert_true(mask == cases[i].mask);
	}
}

static const char line[] =
	"{\"timestamp\":\"2026-11-21T08:00:00.123Z\",\"lsn\":90417,\"seq\":42,\"eventType\":"
	"\"ToolCall\",\"agentId\":\"S-7f3a2b\",\"sessionId\":\"5c3e\",\"traceId\":\"brave-otter\","
	"\"userId\":\"b\\\"en\",\"content\":{\"text\":\"Say \\\"hi\\\" to Z\xc3\xbcrich, 42.5%\"},"
	"\"metadata\":{}}";

static enum query_answer ask_line(const struct ava_log_query *spec, const char *s, size_t len)
{
	struct event_view view;
	struct ava_error err;
	struct query q;
	enum query_answer answer;

	assert_int_equal(query_init(&q, spec, NOW, &err), 0);
	answer = query_line(&q, 0, s, len, &view);
	if (answer == QUERY_YES)
		assert_int_equal(view.lsn, 90417);
	query_fini(&q);
	return answer;
}

static bool ask(const struct ava_log_query *spec)
{
	return ask_line(spec, line, sizeof(line) - 1) == QUERY_YES;
}

#define ASK(...) ask(&(struct ava_log_query){__VA_ARGS__})

TEST(fields)
{
	assert_true(ASK(.types = NULL));
	assert_true(ASK(.types = "tool"));
	assert_false(ASK(.types = "error"));
	assert_true(ASK(.agent = "S-7f3a2b"));
	assert_true(ASK(.agent = "brave-otter"));
	assert_false(ASK(.agent = "S-7f3a2"));
	assert_false(ASK(.agent = "S-7f3a2bc"));
	assert_true(ASK(.user = "b\"en"));
	assert_false(ASK(.user = "ben"));
	assert_true(ASK(.session = "5c3e", .user = "b\"en", .agent = "S-7f3a2b"));
	assert_false(ASK(.session = "5c3"));
	assert_true(ASK(.after = 90416));
	assert_false(ASK(.after = 90417));
	assert_true(ASK(.since = "2026-11-21T08:00:00.123Z"));
	assert_false(ASK(.since = "2026-11-21T08:00:00.124Z"));
	assert_false(ASK(.until = "2026-11-21T08:00:00.123Z"));
	assert_true(ASK(.until = "2026-11-21T08:00:00.124Z"));
	assert_true(ASK(.since = "-1m", .until = "+1m"));
}

/* Any object: that it is no event is seen behind the text. */
static bool fits(const char *object, const char *search)
{
	return ask_line(&(struct ava_log_query){.search = search}, object, strlen(object)) !=
	       QUERY_NO;
}

TEST(text)
{
	assert_true(ASK(.search = "Say"));
	assert_true(ASK(.search = "say"));
	assert_false(ASK(.search = "SAY"));
	assert_true(ASK(.search = "say \"hi\" to"));
	assert_true(ASK(.search = "Z\xc3\xbcrich"));
	assert_true(ASK(.search = "z\xc3\xbcrich"));
	assert_false(ASK(.search = "z\xc3\xbcrick"));
	assert_true(ASK(.search = "42.5%"));
	assert_false(ASK(.search = "4215%"));
	assert_true(ASK(.search = "}"));
	assert_true(ASK(.search = "{", .regex = "x?"));
	/* A key is no value; one that is in a value is. */
	assert_false(ASK(.search = "eventtype"));
	assert_false(ASK(.search = "agentId"));
	assert_true(ASK(.regex = "eventType"));
	assert_true(fits("{\"error\":\"an \\\"error\\\": it\"}", "error"));
	assert_true(fits("{\"errors\":1,\"k\\\"\":{\"a\":\"b\",\"error\":\"error\"}}", "error"));
	assert_false(fits("{\"errors\":1,\"k\\\"error\":{\"a\":\"b\",\"error\":\"\"}}", "error"));
	assert_true(fits("{\"a\":\"x\\\\\",\"b\":[\"q\",\"error\"]}", "error"));
	assert_true(ASK(.regex = "to z.rich, \\d+\\.5%"));
	assert_false(ASK(.regex = "To z.rich"));
	assert_true(ASK(.regex = "\\W\\D\\S"));
	assert_true(ASK(.regex = "tool\\p{Lu}all", .search = "otter"));
	assert_false(ASK(.regex = "otter", .search = "beaver"));
}

/* What an expression cannot match without; "": nothing is known. */
TEST(must)
{
	static const struct {
		const char *regex, *must;
		bool fold;
	} cases[] = {
		{"xylo[a-z]+-[0-9]{4}", "xylo", true},
		{"to Zed", "to Zed", false},
		{"abcd*ef", "abc", true},
		{"ab+cdef", "cdef", true},
		{"abcd{2}efgh{,3}i", "abc", true},
		{"a{2}9876}", "9876", true},
		{"{\"timer\"", "\"timer\"", true},
		{"abcd?", "abc", true},
		{"[abc]defg", "defg", true},
		{"[]abc]dex[^]x]f", "dex", true},
		{"[\\]abc]defg", "defg", true},
		{"[[:alpha:]abc]defg", "", true},
		{"(abcdef)gho", "gho", true},
		{"(abc|def)?gho", "gho", true},
		{"(a\\)b)?gho", "gho", true},
		{"(a\\c)b)?gho", "", true},
		{"(a[)])?gho", "gho", true},
		{"abc|def", "", true},
		{"(?i)abc", "", true},
		{"(?x)a b c", "", true},
		{"(*UTF)abc", "", true},
		{"\\Qab.c\\E", "", true},
		{"\\x41bcd", "", true},
		{"\\dabc\\S\\.defg", "defg", true},
		{"abc.\\.def", "abc", true},
		{"tasked", "", true},
		{"Tasked", "Tasked", false},
		{"a\xc3\xbc*bcd", "bcd", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ava_log_query spec = {.regex = cases[i].regex};
		struct query q;

		assert_int_equal(query_init(&q, &spec, NOW, NULL), 0);
		assert_string_equal(q.text.needle != NULL ? q.text.needle : "", cases[i].must);
		if (q.text.needle != NULL)
			assert_int_equal(q.text.fold, cases[i].fold);
		query_fini(&q);
	}
}

TEST(wrong_questions)
{
	static const struct {
		struct ava_log_query spec;
		const char *says;
	} cases[] = {
		{{.types = "nonsense"}, "there is no event type \"nonsense\""},
		{{.since = "soon"}, "since: \"soon\" is no time"},
		{{.until = "soon"}, "until: \"soon\" is no time"},
		{{.agent = ""}, "agent: from 1 to"},
		{{.regex = "(a"}, "the expression is wrong at byte 2: missing closing parenthesis"},
		{{.regex = "a\xff"}, "the expression is wrong at byte 1"},
	};
	char *long_text = malloc(QUERY_TEXT_MAX + 2);
	struct ava_error err;
	struct query q;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(query_init(&q, &cases[i].spec, NOW, &err), AVA_EINVAL);
		assert_ptr_equal(strstr(err.text, cases[i].says), err.text);
	}
	memset(long_text, 'a', QUERY_TEXT_MAX + 1);
	long_text[QUERY_TEXT_MAX + 1] = '\0';
	assert_int_equal(query_init(&q, &(struct ava_log_query){.search = long_text}, NOW, &err),
			 AVA_EINVAL);
	free(long_text);
}

/* Nested repetition over a line made for it ends, and is told. */
TEST(costly)
{
	char bad[sizeof(line) + 200];
	int n = snprintf(bad, sizeof(bad), "%.*s,\"x\":\"%0150d!\"}}", (int)sizeof(line) - 16, line,
			 0);
	struct ava_log_query spec = {.regex = "(0+)+$"};

	assert_int_equal(ask_line(&spec, bad, (size_t)n), QUERY_COSTLY);
}

/* Every cut of a good line is broken. */
TEST(broken)
{
	static const struct ava_log_query specs[] = {{0}, {.types = "error"}};

	for (size_t cut = 0; cut < sizeof(line) - 1; cut++) {
		char *copy = malloc(cut + 1); /* so that a sanitiser sees reads beyond it */

		memcpy(copy, line, cut);
		for (size_t i = 0; i < ARRAY_LEN(specs); i++)
			assert_int_equal(ask_line(&specs[i], copy, cut), QUERY_BROKEN);
		free(copy);
	}
}

/* The fast search finds what memmem finds, at every place and length. */
TEST(find)
{
	static const char letters[] = "abAB\"{x";
	char *hay = malloc(301);
	unsigned seed = 12345;

	for (int round = 0; round < 20000; round++) {
		char needle[8];
		size_t len = (size_t)round % 301, n = 1 + (size_t)round % 6;
		const char *expected = NULL, *found;
		struct query_text t;
		bool fold = true;

		for (size_t i = 0; i < len; i++) {
			seed = seed * 1103515245 + 12345;
			hay[i] = letters[(seed >> 16) % (sizeof(letters) - 1)];
		}
		for (size_t i = 0; i < n; i++) {
			seed = seed * 1103515245 + 12345;
			needle[i] = "abAx{"[(seed >> 16) % 5];
			fold = fold && needle[i] != 'A';
		}
		needle[n] = '\0';
		assert_int_equal(query_text_init(&t, needle, NULL, NULL), 0);
		for (size_t i = 0; expected == NULL && i + n <= len; i++)
			if (fold ? strncasecmp(hay + i, needle, n) == 0
				 : memcmp(hay + i, needle, n) == 0)
				expected = hay + i;
		found = query_text_find(&t, hay, len);
		assert_ptr_equal(found, expected);
		query_text_fini(&t);
	}
	free(hay);
}

TEST(no_memory)
{
	struct ava_log_query spec = {.search = "z\xc3\xbcrich", .agent = "S-7f3a2b", .since = "1h"};
	struct query q;
	int rv = 0;

	FAULT_LOOP(k, {
		rv = query_init(&q, &spec, NOW, NULL);
		if (rv == 0)
			query_fini(&q);
		else
			assert_int_equal(rv == AVA_ENOMEM || rv == AVA_EINVAL, 1);
	});
	assert_int_equal(rv, 0);
}

static int first(void **state)
{
	zone("UTC");
	return 0;
}

UNIT_GROUP(.first = first);
