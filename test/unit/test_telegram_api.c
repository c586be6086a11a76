/* What answers of the Bot API mean, and where a text is cut into messages. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "codec/utf8.h"
#include "gateway/door_wire.h"

static const struct {
	int status;
	const char *body;
	enum door_verdict verdict;
	int64_t after_ms;
} answers[] = {
	{200, "{\"ok\":true,\"result\":{\"message_id\":7}}", DOOR_OK, 0},
	{200, "<html>sign in to the hotel</html>", DOOR_LATER, 0},
	{200, "{\"ok\":false,\"description\":\"?\"}", DOOR_LATER, 0},
	{400, "{\"ok\":false,\"description\":\"Bad Request: message is not modified: as it is\"}",
	 DOOR_OK, 0},
	{400, "{\"ok\":false,\"description\":\"Bad Request: can't parse entities\"}", DOOR_REFUSED,
	 0},
	{400, "no JSON", DOOR_LATER, 0},
	{401, "{\"ok\":false,\"description\":\"Unauthorized\"}", DOOR_REVOKED, 0},
	{404, "{\"ok\":false,\"description\":\"Not Found\"}", DOOR_REVOKED, 0},
	{403, "{\"ok\":false,\"description\":\"Forbidden: bot was blocked\"}", DOOR_BLOCKED, 0},
	{409, "{\"ok\":false,\"description\":\"Conflict\"}", DOOR_CONFLICT, 0},
	{413, "{\"ok\":false,\"description\":\"Request Entity Too Large\"}", DOOR_REFUSED, 0},
	{429, "{\"ok\":false,\"parameters\":{\"retry_after\":30}}", DOOR_SLOW, 30000},
	{429, "{\"ok\":false}", DOOR_SLOW, 1000},
	{429, "{\"ok\":false,\"parameters\":{\"retry_after\":99999999999}}", DOOR_SLOW, 3600000},
	{429, "{\"ok\":false,\"parameters\":{\"retry_after\":9223372036854775807}}", DOOR_SLOW,
	 3600000},
	{429, "{\"ok\":false,\"parameters\":{\"retry_after\":-5}}", DOOR_SLOW, 1000},
	{429, "slow down", DOOR_LATER, 0},
	{502, "bad gateway", DOOR_LATER, 0},
	/* A proxy on the way, which knows nothing of tokens and people. */
	{401, "<html>sign in</html>", DOOR_LATER, 0},
	{403, "", DOOR_LATER, 0},
	{404, "<html>not found</html>", DOOR_LATER, 0},
	{409, "conflict", DOOR_LATER, 0},
};

TEST(answers)
{
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		struct door_answer a;
		json_t *doc;

		door_wire_telegram.judge(answers[i].status, answers[i].body,
					 strlen(answers[i].body), &doc, &a);
		print_message("%d %s\n", answers[i].status, a.why);
		assert_int_equal(a.verdict, answers[i].verdict);
		assert_int_equal(a.after_ms, answers[i].after_ms);
		assert_int_equal(a.why[0] == '\0', a.verdict == DOOR_OK);
		json_decref(doc);
	}
}

#define FAMILY "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7" /* two, joined: 5 units */
#define FLAG   "\xf0\x9f\x87\xaa\xf0\x9f\x87\xba"             /* two letters: 4 units */
#define WAVE   "\xf0\x9f\x91\x8b\xf0\x9f\x8f\xbd"             /* with a tone: 4 units */

static const struct {
	const char *text;
	size_t units, cut;
} cuts[] = {
	{"", 4, 0},
	{"abcd", 4, 4},
	{"abcdef", 4, 4},
	{"aaaa\n\nbbbb\ncccc", 13, 6},   /* a paragraph */
	{"aaaa\nbbbb\ncccc", 11, 10},    /* a line */
	{"a\n\nbbbbbbbbbbbbbb", 12, 12}, /* not a nearly empty message */
	{"\xc3\xa4\xc3\xb6\xc3\xbc", 2, 4},
	{"a\xf0\x9f\x98\x80\xf0\x9f\x98\x80", 4, 5}, /* no half of a pair */
	{"a" FAMILY FAMILY, 7, 12},
	{"a" FLAG FLAG, 7, 9},
	{"a" WAVE WAVE, 7, 9},
	{"e\xcc\x81"
	 "e\xcc\x81",
	 3, 3}, /* an accent of its own */
};

TEST(cuts)
{
	for (size_t i = 0; i < ARRAY_LEN(cuts); i++) {
		print_message("%s\n", cuts[i].text);
		assert_int_equal(door_cut(cuts[i].text, strlen(cuts[i].text), cuts[i].units),
				 cuts[i].cut);
	}
}

/* UTF-16 code units, as the service counts. */
static size_t units_of(const char *s, size_t len)
{
	size_t units = 0, n;
	uint32_t cp;

	for (size_t at = 0; at < len; at += n ? n : 1) {
		n = utf8_decode(s + at, len - at, &cp);
		units += n == 4 ? 2 : 1;
	}
	return units;
}

/* Whatever it is, parts are never empty, never too long, and are all of it. */
TEST(any_text)
{
	static const char *const pieces[] = {"a",  "\n", "\n\n",     FAMILY,
					     FLAG, WAVE, "\xcc\x81", "\xff"};
	char text[4000];
	uint32_t dice = 1;

	for (int round = 0; round < 300; round++) {
		size_t len = 0, at = 0, n;

		while (len < sizeof(text) - 40) {
			const char *piece = pieces[(dice = dice * 1664525 + 1013904223) >> 29];

			memcpy(text + len, piece, strlen(piece));
			len += strlen(piece);
		}
		for (; at < len; at += n) {
			n = door_cut(text + at, len - at, 50);
			assert_true(n > 0 && n <= len - at);
			assert_true(units_of(text + at, n) <= 50);
		}
	}
}
