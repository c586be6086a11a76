/* Items of events: a golden conversation with each kind, and what must hold of any line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ava.h>

#include "unit.h"

#include "codec/json.h"
#include "codec/jscan.h"
#include "codec/redact.h"
#include "event/item.h"

#define SECRET "sk-ant-golden-secret-0001"

/* The golden Items, byte for byte; every kind is among them. AVA_GOLDEN=1 prints what they are. */
TEST(golden)
{
	size_t len, at = 0, line_len, want_len, want_at = 0, n = 0;
	char *events = unit_read_src("test/golden/items/events.jsonl", &len);
	char *want = unit_read_src("test/golden/items/items.jsonl", &want_len);
	struct redact *secrets = redact_new();
	unsigned kinds = 0;
	const char *line;
	struct item it;
	TEST_BUF(b, 1u << 20);

	assert_non_null(secrets);
	assert_int_equal(redact_add(secrets, SECRET), 0);
	for (; jsonl_next(events, len, &at, &line, &line_len) == 1; n++) {
		const char *expected;
		size_t expected_len;

		buf_reset(&b);
		if (item_make(&it, &b, line, line_len, ITEM_TEXT_CHARS, secrets) != 0)
			continue;
		kinds |= 1u << it.kind;
		if (getenv("AVA_GOLDEN")) {
			fprintf(stderr, "GOLDEN%.*s\n", (int)b.len, b.data);
			continue;
		}
		assert_int_equal(jsonl_next(want, want_len, &want_at, &expected, &expected_len), 1);
		if (b.len != expected_len || memcmp(b.data, expected, b.len) != 0)
			fail_msg("event %zu is %.*s", n + 1, (int)b.len, b.data);
	}
	assert_int_equal(jsonl_next(want, want_len, &want_at, &line, &line_len), 0);
	assert_int_equal(kinds, (1u << ITEM_NKINDS) - 1);
	redact_free(secrets);
	free(events);
	free(want);
}

/* An Ask is closed by an Item, whatever ended it: who keeps Asks needs no event. */
TEST(asks_close)
{
	size_t len, at = 0, line_len, open = 0, closed = 0;
	char *events = unit_read_src("test/golden/items/events.jsonl", &len);
	const char *line;
	struct item it;
	TEST_BUF(b, 1u << 20);

	while (jsonl_next(events, len, &at, &line, &line_len) == 1) {
		buf_reset(&b);
		if (item_make(&it, &b, line, line_len, 100, NULL) != 0)
			continue;
		if (it.kind == ITEM_proposed || it.kind == ITEM_asked ||
		    (it.kind == ITEM_result && it.ask[0]))
			open++;
		if (it.kind == ITEM_answered || it.kind == ITEM_expired) {
			assert_true(strncmp(it.ask, "P-", 2) == 0 || strchr(it.ask, ':') != NULL);
			closed++;
		}
	}
	assert_int_equal(open, 5);
	assert_int_equal(closed, 11);
	free(events);
}

/* A text is cut at a whole character and says so, with and without memory. */
TEST(cut)
{
	static const char line[] =
		"{\"timestamp\":\"2026-11-21T08:00:00.123Z\",\"lsn\":7,\"seq\":1,\"eventType\":"
		"\"AssistantMessage\",\"agentId\":\"ava\",\"sessionId\":\"x\",\"traceId\":\"\","
		"\"userId\":\"\",\"content\":{\"text\":\"caf\\u00e9s\"},\"metadata\":{}}";
	struct item it;
	json_t *o;
	TEST_BUF(b, 4096);

	assert_int_equal(item_make(&it, &b, line, strlen(line), 4, NULL), 0);
	assert_true(it.by_ava && it.lsn == 7);
	o = json_parse(b.data, b.len, NULL);
	assert_string_equal(json_str(o, "text"), "caf\xc3\xa9");
	assert_true(json_get_bool(o, "cut", false));
	json_decref(o);
	buf_reset(&b);
	assert_int_equal(item_make(&it, &b, line, strlen(line), 5, NULL), 0);
	assert_null(strstr(b.data, "\"cut\""));
	buf_reset(&b);
	assert_int_equal(item_make(&it, &b, "{}", 2, 5, NULL), AVA_ENOENT);
	assert_int_equal(item_make(&it, &b, line, strlen(line) - 9, 5, NULL), AVA_ENOENT);
	assert_int_equal(b.len, 0);
}

/* Without memory an Item is refused with that reason, and is never taken for none. */
TEST(no_memory)
{
	size_t len, at = 0, line_len;
	char *events = unit_read_src("test/golden/items/events.jsonl", &len);
	const char *line;
	struct item it;

	assert_int_equal(jsonl_next(events, len, &at, &line, &line_len), 1);
	FAULT_LOOP(k, {
		struct buf b;
		int rv;

		buf_init(&b, 1u << 20);
		rv = item_make(&it, &b, line, line_len, 100, NULL);
		assert_true(rv == 0 || rv == AVA_ENOMEM);
		buf_fini(&b);
	});
	free(events);
}
