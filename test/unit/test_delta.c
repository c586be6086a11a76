/* The scanner of hot deltas beside jansson: what it accepts, jansson accepts,
 * and both say the same; what services really send, it accepts. The inputs are
 * generated and damaged from seeds that are printed (AVA_SEED=N: that one only);
 * every event of the recorded streams goes the same way. */
#include "unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/sse.h"
#include "delta_oracle.h"
#include "provider/delta.h"

/* ---- what services send is hot */

static const struct {
	bool chat;
	enum delta_kind kind;
	unsigned index;
	const char *data, *text;
} hot[] = {
	{false, DELTA_TEXT, 0,
	 "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\","
	 "\"text\":"
	 "\"Hi\"}      }",
	 "Hi"},
	{false, DELTA_ARGS, 12,
	 "{\"type\": \"content_block_delta\", \"index\": 12, \"delta\": {\"type\": "
	 "\"input_json_delta\", \"partial_json\": \"{\\\"a\\\": \\u00e9\"}}",
	 "{\"a\": \xc3\xa9"},
	{false, DELTA_THINKING, 1,
	 "{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"thinking_delta\","
	 "\"thinking\":\"\\ud83d\\ude00\"}}",
	 "\xf0\x9f\x98\x80"},
	{false, DELTA_EMPTY, 1,
	 "{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\","
	 "\"partial_json\":\"\"}}",
	 ""},
	{true, DELTA_TEXT, 0,
	 "{\"id\":\"chatcmpl-A\",\"object\":\"chat.completion.chunk\",\"created\":1763700000,"
	 "\"model\":\"m\",\"service_tier\":\"default\",\"system_fingerprint\":null,\"choices\":[{"
	 "\"index\":0,\"delta\":{\"content\":\" pool\"},\"logprobs\":null,\"finish_reason\":null}],"
	 "\"usage\":null,\"obfuscation\":\"aZ\"}",
	 " pool"},
	{true, DELTA_TEXT, 0,
	 "{\"id\":\"gen-1\",\"provider\":\"Quick\",\"model\":\"a/b\",\"object\":"
	 "\"chat.completion.chunk\",\"created\":1763700000,\"choices\":[{\"index\":0,\"delta\":{"
	 "\"role\":\"assistant\",\"content\":\"x\",\"reasoning\":null,\"reasoning_details\":[]},"
	 "\"finish_reason\":null,\"native_finish_reason\":null,\"logprobs\":null}]}",
	 "x"},
	{true, DELTA_ARGS, 2,
	 "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":2,\"function\":{"
	 "\"arguments\":\"{\\\"\"}}]},\"finish_reason\":null}]}",
	 "{\""},
	{true, DELTA_THINKING, 0,
	 "{\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\"}}]}", "hm"},
	{true, DELTA_REASONING, 0,
	 "{\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"hm\",\"content\":\"\"}}]}", "hm"},
	{true, DELTA_EMPTY, 0, "{\"choices\":[{\"index\":0,\"delta\":{}}]}", ""},
};

static void test_hot(void **state)
{
	struct buf b;

	buf_init(&b, 4096);
	for (size_t i = 0; i < ARRAY_LEN(hot); i++) {
		struct delta d;

		print_message("%s\n", hot[i].data);
		oracle_scan(hot[i].chat, hot[i].data, strlen(hot[i].data), &d);
		assert_int_equal(d.kind, hot[i].kind);
		assert_int_equal(d.index, hot[i].index);
		assert_true(oracle_agrees(hot[i].chat, hot[i].data, strlen(hot[i].data)));
		buf_reset(&b);
		assert_int_equal(delta_add(&b, &d), 0);
		assert_string_equal(b.len > 0 ? b.data : "", hot[i].text);
	}
	buf_fini(&b);
}

/* ---- what must be left to jansson */

#define TEXT(t)                                                                                    \
	"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\","        \
	"\"text\":\"" t "\"}}"
#define CHUNK(d) "{\"choices\":[{\"index\":0,\"delta\":{" d "}}]}"

static const struct {
	bool chat;
	const char *data;
} cold[] = {
	{false, ""},
	{false, "{}"},
	{false, TEXT("x") "x"},
	{false, TEXT("\\ud83d")},
	{false, TEXT("\\ude00\\ud83d")},
	{false, TEXT("\\u0000")},
	{false, TEXT("\\x")},
	{false, TEXT("\n")},
	{false, TEXT("\xff")},
	{false, TEXT("\xed\xa0\x80")},
	{false, "{\"type\":\"content_block_delta\",\"index\":-1,\"delta\":{\"type\":\"text_delta\","
		"\"text\":\"x\"}}"},
	{false, "{\"type\":\"content_block_delta\",\"index\":01,\"delta\":{\"type\":\"text_delta\","
		"\"text\":\"x\"}}"},
	{false, "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\","
		"\"text\":\"x\",\"text\":\"y\"}}"},
	{false, "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
		"\"signature_delta\",\"signature\":\"x\"}}"},
	{true, "[DONE]"},
	{true, CHUNK("\"content\":\"a\",\"content\":\"b\"")},
	{true, CHUNK("\"content\":\"a\",\"reasoning\":\"b\"")},
	{true, CHUNK("\"content\":[]")},
	{true, CHUNK("\"refusal\":\"no\"")},
	{true, CHUNK("\"tool_calls\":[{\"index\":0,\"id\":\"a\"}]")},
	{true, CHUNK("\"tool_calls\":[{\"function\":{\"arguments\":\"a\"}}]")},
	{true, CHUNK("\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":{}}}]")},
	{true, CHUNK("\"reasoning_details\":[{}]")},
	{true, "{\"choices\":[]}"},
	{true, "{\"choices\":[{\"index\":1,\"delta\":{}}]}"},
	{true, "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}"},
	{true, "{\"choices\":[{\"index\":0,\"delta\":{}}],\"error\":{}}"},
	{true, "{\"choices\":[{\"index\":0,\"delta\":{}}],\"usage\":{}}"},
	{true, "{\"choices\":[{\"index\":0,\"delta\":{}}],\"created\":1.5}"},
	{true, "{\"choices\":[{\"index\":0,\"delta\":{}}],\"new\":1}"},
	{true, "{\"choices\":[{\"index\":0,\"delta\":{}}]"},
};

static void test_cold(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(cold); i++) {
		struct delta d;

		print_message("%s\n", cold[i].data);
		oracle_scan(cold[i].chat, cold[i].data, strlen(cold[i].data), &d);
		assert_int_equal(d.kind, DELTA_NONE);
	}
}

/* ---- generated */

static unsigned seed;

static unsigned below(unsigned n)
{
	return (unsigned)rand_r(&seed) % n;
}

static void gen_string(struct buf *b)
{
	static const char *const bits[] = {"a",
					   "Z",
					   " ",
					   "0",
					   "\xc3\xa9",
					   "\xf0\x9f\x98\x80",
					   "\\n",
					   "\\\"",
					   "\\\\",
					   "\\/",
					   "\\u00e9",
					   "\\ud83d\\ude00",
					   "\\ud83d",
					   "\\u0000",
					   "\xff",
					   "\x7f",
					   "\t",
					   "\\u2028",
					   "\xe2\x80\xa8",
					   "{",
					   "]",
					   ","};
	/* Mostly good ones, so that the scanner gets to the end. */
	unsigned kinds = below(4) == 0 ? ARRAY_LEN(bits) : 12;

	buf_addc(b, '"');
	for (unsigned n = below(12); n > 0; n--)
		buf_adds(b, bits[below(kinds)]);
	buf_addc(b, '"');
}

static void gen_space(struct buf *b)
{
	if (below(6) == 0)
		buf_adds(b, below(2) ? " " : "\t  ");
}

static void gen_value(struct buf *b)
{
	static const char *const values[] = {"null", "null", "null", "0",  "7",   "1763700000",
					     "[]",   "{}",   "true", "-1", "1.5", "00"};

	if (below(3) == 0)
		gen_string(b);
	else
		buf_adds(b, values[below(ARRAY_LEN(values))]);
}

static void gen_messages(struct buf *b)
{
	static const char *const types[] = {
		"text_delta\",\"text", "input_json_delta\",\"partial_json",
		"thinking_delta\",\"thinking", "signature_delta\",\"signature"};

	const char *type = types[below(ARRAY_LEN(types))];
	size_t comma = strcspn(type, ",");

	buf_addf(b, "{\"type\":\"content_block_delta\",\"index\":%u,", below(20));
	gen_space(b);
	buf_adds(b, "\"delta\":{\"type\":\"");
	buf_add(b, type, comma + 1);
	gen_space(b);
	buf_addf(b, "%s\":", type + comma + 1);
	gen_string(b);
	buf_adds(b, "}");
	gen_space(b);
	buf_adds(b, "}");
}

static void gen_members(struct buf *b, const char *const *names, unsigned n, unsigned most)
{
	for (unsigned k = below(most); k > 0; k--) {
		buf_addf(b, "\"%s\":", names[below(n)]);
		gen_space(b);
		gen_value(b);
		buf_adds(b, ",");
	}
}

static void gen_chunk(struct buf *b)
{
	static const char *const top[] = {"id",    "object", "created",  "model",
					  "usage", "error",  "provider", "new"};
	static const char *const in[] = {
		"role",   "refusal", "reasoning", "reasoning_content", "reasoning_details",
		"content"};
	static const char *const end[] = {"finish_reason", "logprobs", "native_finish_reason"};

	buf_adds(b, "{");
	gen_members(b, top, ARRAY_LEN(top), 4);
	buf_adds(b, "\"choices\":[{\"index\":0,");
	gen_members(b, end, ARRAY_LEN(end), 2);
	buf_adds(b, "\"delta\":{");
	gen_members(b, in, ARRAY_LEN(in), 3);
	if (below(3) == 0) {
		buf_addf(b, "\"tool_calls\":[{\"index\":%u,\"function\":{\"arguments\":", below(9));
		gen_string(b);
		buf_adds(b, "}}]");
	} else {
		buf_adds(b, "\"content\":");
		gen_string(b);
	}
	buf_adds(b, "}}]}");
}

static void insert(struct buf *b, size_t at, const char *s, size_t len)
{
	struct buf rest;

	buf_init(&rest, 65536);
	buf_add(&rest, b->data + at, b->len - at);
	b->len = at;
	buf_add(b, s, len);
	buf_add(b, rest.len > 0 ? rest.data : "", rest.len);
	buf_fini(&rest);
}

/* One change: a byte, the end, a piece gone, twice or of another kind. */
static void damage(struct buf *b)
{
	static const char *const bits[] = {
		"\"", "\\",    "\\u",  "\\ud83d",      "{",       "}", "[", "]", ",", ":", "00",
		"-",  "1e400", "null", "\xef\xbb\xbf", "\xc0\x80"};
	size_t at = below((unsigned)b->len), n = 1 + below(12);
	const char *bit = bits[below(ARRAY_LEN(bits))];
	char piece[12];

	n = n < b->len - at ? n : b->len - at;
	switch (below(6)) {
	case 0:
		b->data[at] = (char)below(256);
		break;
	case 1:
		b->data[at] ^= (char)(1 << below(8));
		break;
	case 2:
		b->len = at;
		break;
	case 3:
		memmove(b->data + at, b->data + at + n, b->len - at - n);
		b->len -= n;
		break;
	case 4:
		memcpy(piece, b->data + at, n);
		insert(b, at, piece, n);
		break;
	default:
		insert(b, at, bit, strlen(bit));
		break;
	}
}

#define SEEDS  4
#define ROUNDS 30000

/* The seed of round `k`; false: there are no more. */
static bool next_seed(unsigned k, unsigned *out)
{
	const char *given = getenv("AVA_SEED");

	*out = given != NULL ? (unsigned)strtoul(given, NULL, 10) : 20251121u + k;
	seed = *out;
	return k < (given != NULL ? 1u : SEEDS);
}

static void generate(bool chat, unsigned start, unsigned accepted[2])
{
	struct delta d;
	struct buf b;

	buf_init(&b, 65536);
	if (chat)
		gen_chunk(&b);
	else
		gen_messages(&b);
	/* Undamaged, both must take the same. */
	if (!oracle_same(chat, b.data, b.len))
		fail_msg("seed %u: %.*s", start, (int)b.len, b.data);
	oracle_scan(chat, b.data, b.len, &d);
	accepted[chat] += d.kind != DELTA_NONE;
	for (unsigned n = below(4); n > 0 && b.len > 0; n--) {
		damage(&b);
		if (!oracle_agrees(chat, b.data, b.len))
			fail_msg("seed %u, damaged: %.*s", start, (int)b.len, b.data);
	}
	buf_fini(&b);
}

static void test_generated(void **state)
{
	unsigned start;

	for (unsigned k = 0; next_seed(k, &start); k++) {
		unsigned accepted[2] = {0, 0};

		for (unsigned i = 0; i < ROUNDS; i++)
			generate(i % 2, start, accepted);
		/* Enough of both answers to mean something. */
		print_message("seed %u: accepted %u of the Messages form, %u chunks\n", start,
			      accepted[0], accepted[1]);
		assert_in_range(accepted[0], ROUNDS / 8, ROUNDS / 2 - 1000);
		assert_in_range(accepted[1], ROUNDS / 50, ROUNDS / 2 - 1000);
	}
}

static void gen_bytes(struct buf *b)
{
	static const char *const bits[] = {"a",
					   "\\n",
					   "\\u00e9",
					   "\\ud83d\\ude00",
					   "\\ud83d",
					   "\\ude00",
					   "\\u0000",
					   "\\uD8",
					   "\\",
					   "\\\\",
					   "\\\"",
					   "\\/",
					   "\\x",
					   "\xc3\xa9",
					   "\xc3",
					   "\xa9",
					   "\xed\xa0\x80",
					   "\xf0\x9f\x98\x80",
					   "\xf4\x90\x80\x80",
					   "\xe0\x80\xaf",
					   "\x1f",
					   "\x7f",
					   "\xef\xbf\xbe"};
	unsigned kinds = below(3) == 0 ? 2 : ARRAY_LEN(bits);

	for (unsigned n = below(6); n > 0; n--) {
		if (below(8) == 0)
			buf_addc(b, (char)below(256));
		else
			buf_adds(b, bits[below(kinds)]);
	}
}

/* Strings alone: taken or not, and their value, exactly as jansson does. */
static void test_strings(void **state)
{
	unsigned start;
	struct buf b;

	buf_init(&b, 65536);
	for (unsigned k = 0; next_seed(k, &start); k++) {
		print_message("seed %u\n", start);
		for (unsigned i = 0; i < ROUNDS; i++) {
			buf_reset(&b);
			gen_bytes(&b);
			if (!oracle_string(b.len > 0 ? b.data : "", b.len))
				fail_msg("seed %u: %.*s", start, (int)b.len, b.data);
		}
	}
	buf_fini(&b);
}

/* ---- recorded */

static int check_event(const struct sse_event *e, void *user)
{
	unsigned *hits = user;
	struct delta d;

	assert_true(oracle_agrees(false, e->data, e->len));
	assert_true(oracle_agrees(true, e->data, e->len));
	for (int chat = 0; chat < 2; chat++) {
		oracle_scan(chat, e->data, e->len, &d);
		*hits += d.kind != DELTA_NONE;
	}
	return 0;
}

static void test_recorded(void **state)
{
	char path[1024];
	unsigned hits = 0;
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/test/golden/streams", getenv("SRCDIR"));
	dir = opendir(path);
	assert_non_null(dir);
	while ((e = readdir(dir)) != NULL) {
		size_t len = strlen(e->d_name);
		struct sse s;
		char *data;

		if (len < 5 || strcmp(e->d_name + len - 4, ".sse") != 0)
			continue;
		snprintf(path, sizeof(path), "test/golden/streams/%s", e->d_name);
		data = unit_read_src(path, &len);
		sse_init(&s, 1u << 20);
		s.on_event = check_event;
		s.user = &hits;
		assert_int_equal(sse_feed(&s, data, len), 0);
		sse_fini(&s);
		free(data);
	}
	closedir(dir);
	assert_true(hits > 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hot),       cmocka_unit_test(test_cold),
		cmocka_unit_test(test_generated), cmocka_unit_test(test_strings),
		cmocka_unit_test(test_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
