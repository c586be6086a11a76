/* The bot of Telegram: input is an answer of its service, which is judged, and as a text it is cut
 * into messages, each of valid characters and no longer than the service takes. */
#include "fuzz.h"

#include "base/util.h"
#include "codec/utf8.h"
#include "gateway/door_wire.h"

static size_t units(const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) /* a character of four bytes takes two */
		n += ((unsigned char)s[i] & 0xc0) != 0x80 ? 1 + ((unsigned char)s[i] >= 0xf0) : 0;
	return n;
}

FUZZ_TARGET(telegram, len)
{
	static const int statuses[] = {200, 400, 401, 403, 409, 429, 502};
	const char *s = (const char *)data;
	struct door_answer answer;
	json_t *doc;

	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		door_wire_telegram.judge(statuses[i], s, len, &doc, &answer);
		CHECK((answer.verdict == DOOR_OK) == !answer.why[0]);
		CHECK(utf8_valid(answer.why, strlen(answer.why)));
		CHECK(answer.after_ms >= 0);
		json_decref(doc);
	}
	if (!utf8_valid(s, len))
		return;
	for (size_t most = 16; most <= 256; most *= 4)
		for (size_t at = 0, n; at < len; at += n) {
			n = door_cut(s + at, len - at, most);
			CHECK(n > 0 && n <= len - at);
			CHECK(utf8_valid(s + at, n));
			CHECK(units(s + at, n) <= most);
		}
}
