/* The standard's rules, each stream cut at every byte into two reads and fed
 * byte by byte: what comes out must not depend on how it came in. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "codec/sse.h"

/* Events as "<event>|<data>|<id>;" and comments as ":" */
struct got {
	struct buf text;
	int stop_at; /* this event's callback returns 7 */
};

static int event_cb(const struct sse_event *e, void *user)
{
	struct got *g = user;

	assert_int_equal(strlen(e->data), e->len);
	buf_addf(&g->text, "%s|%s|%s;", e->event, e->data, e->id);
	return g->stop_at > 0 && --g->stop_at == 0 ? 7 : 0;
}

static void comment_cb(void *user)
{
	buf_addc(&((struct got *)user)->text, ':');
}

static void open_stream(struct sse *s, struct got *g, size_t max)
{
	sse_init(s, max);
	s->on_event = event_cb;
	s->on_comment = comment_cb;
	s->user = g;
	buf_init(&g->text, 10000);
	buf_adds(&g->text, "");
	buf_reserve(&g->text, 1);
	g->text.data[0] = '\0';
	g->stop_at = 0;
}

static const struct {
	const char *name, *in, *out;
} cases[] = {
	{"one", "data: a\n\n", "message|a|;"},
	{"two", "data: a\n\ndata: b\n\n", "message|a|;message|b|;"},
	{"lines are joined", "data: a\ndata: b\ndata:\n\n", "message|a\nb\n|;"},
	{"one space is optional", "data:a\n\ndata:  b\n\n", "message|a|;message| b|;"},
	{"cr lf", "data: a\r\n\r\n", "message|a|;"},
	{"cr", "data: a\r\rdata: b\r\r", "message|a|;message|b|;"},
	{"mixed ends", "data: a\r\ndata: b\n\rdata: c\r\r\n", "message|a\nb|;message|c|;"},
	{"byte order mark",
	 "\xef\xbb\xbf"
	 "data: a\n\n",
	 "message|a|;"},
	{"only the first",
	 "data: a\n\n\xef\xbb\xbf"
	 "data: b\n\n",
	 "message|a|;"},
	{"comment", ": hi\ndata: a\n:\n\n", "::message|a|;"},
	{"names", "event: x\ndata: a\n\ndata: b\n\n", "x|a|;message|b|;"},
	{"the last name counts", "event: x\nevent: y\ndata: a\n\n", "y|a|;"},
	{"id stays", "id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
	 "message|a|7;message|b|7;message|c|;"},
	{"no data, no event", "event: x\nid: 3\n\ndata: a\n\n", "message|a|3;"},
	{"empty data is an event", "data\n\n", "message||;"},
	{"unknown fields", "retry: 10\nfoo: bar\nDATA: x\ndata: a\n\n", "message|a|;"},
	{"not closed", "data: a\n\ndata: b\n", "message|a|;"},
	{"cut in a line", "data: a\n\ndata: b", "message|a|;"},
	{"colon in data", "data: a: b\n\n", "message|a: b|;"},
	{"objects without a blank line", "data: {}\ndata: {\ndata: }\ndata: [D]\n\n",
	 "message|{}|;message|{\n}|;message|[D]|;"},
	{"nor before a name", "event: x\ndata: {}\nevent: y\ndata: {}\n\n", "x|{}|;y|{}|;"},
	{"blank lines alone", "\n\n\r\n\r\r", ""},
};

TEST(rules)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t len = strlen(cases[i].in);

		/* cut == len + 1: byte by byte */
		for (size_t cut = 0; cut <= len + 1; cut++) {
			struct got g;
			struct sse s;

			open_stream(&s, &g, 100);
			if (cut <= len) {
				assert_int_equal(sse_feed(&s, cases[i].in, cut), 0);
				assert_int_equal(sse_feed(&s, cases[i].in + cut, len - cut), 0);
			}
			for (size_t j = 0; cut > len && j < len; j++)
				assert_int_equal(sse_feed(&s, cases[i].in + j, 1), 0);
			if (strcmp(g.text.data, cases[i].out) != 0)
				fail_msg("%s, cut at %zu: %s", cases[i].name, cut, g.text.data);
			buf_fini(&g.text);
			sse_fini(&s);
		}
	}
}

TEST(end_of_the_body)
{
	static const struct {
		const char *in, *out;
	} ends[] = {
		{"data: a\n\ndata: b\n", "message|a|;message|b|;"},
		{"data: a\n\ndata: b", "message|a|;message|b|;"},
		{"data: a\n\n", "message|a|;"},
		{"data: a\n\nda", "message|a|;"},
		{"", ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		struct got g;
		struct sse s;

		open_stream(&s, &g, 100);
		assert_int_equal(sse_feed(&s, ends[i].in, strlen(ends[i].in)), 0);
		assert_int_equal(sse_end(&s), 0);
		assert_string_equal(g.text.data, ends[i].out);
		buf_fini(&g.text);
		sse_fini(&s);
	}
}

TEST(id_with_nul)
{
	static const char in[] = "id: 1\nid: 2\0\ndata: a\n\n";
	struct got g;
	struct sse s;

	open_stream(&s, &g, 100);
	assert_int_equal(sse_feed(&s, in, sizeof(in) - 1), 0);
	assert_string_equal(g.text.data, "message|a|1;");
	buf_fini(&g.text);
	sse_fini(&s);
}

TEST(callback_stops)
{
	static const char in[] = "data: a\n\ndata: b\n\ndata: c\n\n";
	struct got g;
	struct sse s;

	open_stream(&s, &g, 100);
	g.stop_at = 2;
	assert_int_equal(sse_feed(&s, in, sizeof(in) - 1), 7);
	assert_string_equal(g.text.data, "message|a|;message|b|;");
	buf_fini(&g.text);
	sse_fini(&s);
}

/* A line or a frame may take `max` bytes and not one more. */
TEST(bounds)
{
	static const char *const too_big[] = {
		"data: 89012345678\n\n",
		"data: 8901234567890123456789",
		"data:1234\ndata:12345678\n\n",
		"data:1234567890\ndata:1\n\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(too_big); i++) {
		for (size_t step = 1; step < 40; step += 38) {
			struct got g;
			struct sse s;
			int rv = 0;

			open_stream(&s, &g, i < 2 ? 16 : 12 - (i == 3));
			for (size_t at = 0; at < strlen(too_big[i]) && rv == 0; at += step)
				rv = sse_feed(&s, too_big[i] + at,
					      MIN(step, strlen(too_big[i]) - at));
			assert_int_equal(rv, AVA_ETOOBIG);
			assert_string_equal(g.text.data, "");
			buf_fini(&g.text);
			sse_fini(&s);
		}
	}
}

TEST(at_the_bound)
{
	struct got g;
	struct sse s;

	open_stream(&s, &g, 16);
	assert_int_equal(sse_feed(&s, "data: 7890123456\n\n", 18), 0);
	assert_string_equal(g.text.data, "message|7890123456|;");
	buf_fini(&g.text);
	sse_fini(&s);
}

static int ignore_cb(const struct sse_event *e, void *user)
{
	return 0;
}

static void without_memory(long k)
{
	static const char in[] = "event: e\nid: 5\ndata: abc\ndata: def\n\ndata: x";
	struct sse s;
	int rv = 0;

	sse_init(&s, 1000);
	s.on_event = ignore_cb;
	for (size_t i = 0; i < sizeof(in) - 1 && rv == 0; i++)
		rv = sse_feed(&s, in + i, 1);
	assert_true(rv == 0 || rv == AVA_ENOMEM);
	sse_fini(&s);
}

TEST(out_of_memory)
{
	FAULT_LOOP(k, without_memory(k));
}
