/* Any bytes: what parses is written and parses again to the same value and
 * the same bytes, also for a reader that takes more; as text they are escaped into one line of
 * JSON. */
#include "fuzz.h"

#include "base/error.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "codec/utf8.h"

/* What jansson reads and nothing else, but for depth. */
static void check_same(const char *s, size_t len)
{
	struct ava_error err = {0};
	json_t *ours = json_parse(s, len, &err), *v;

	v = json_loadb(s, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
	CHECK((ours != NULL) == (v != NULL) || strstr(err.text, "nested") != NULL);
	CHECK(ours == NULL || json_equal(ours, v));
	json_decref(ours);
	json_decref(v);
}

static void check_parse(const char *s, size_t len)
{
	struct ava_error err = {0};
	json_t *v = json_parse(s, len, &err), *again;
	struct buf one, two;

	again = json_parse_lenient(s, len, NULL);
	CHECK(v == NULL || json_equal(v, again));
	json_decref(again);
	if (v == NULL) {
		CHECK(err.code != 0 && strncmp(err.text, "line ", 5) == 0);
		CHECK(strchr(err.text, '\n') == NULL);
		return;
	}
	buf_init(&one, 64 + 8 * len);
	buf_init(&two, 64 + 8 * len);
	CHECK(json_dump(&one, v) == 0);
	again = json_parse(one.data, one.len, &err);
	CHECK(again != NULL && json_equal(v, again));
	CHECK(json_dump(&two, again) == 0);
	CHECK(one.len == two.len && memcmp(one.data, two.data, one.len) == 0);
	json_get_fixed(v, "n", 4, 0);
	json_decref(v);
	json_decref(again);
	buf_fini(&one);
	buf_fini(&two);
}

/* What others wrote: all that ava takes is read the same, and what is read can be written. */
static void check_others(const char *s, size_t len)
{
	struct ava_error err = {0};
	json_t *own = json_parse(s, len, NULL), *v = json_read_others(s, len, &err), *again;
	struct buf out;
	size_t brackets = 0;

	for (size_t i = 0; i < len; i++)
		brackets += s[i] == '{' || s[i] == '[';
	CHECK(own == NULL || brackets > JSON_OTHERS_DEPTH || json_equal(own, v));
	/* Who shares a file with those that are stricter knows which lines they have. */
	CHECK(own == NULL || jscan_is_json(s, len));
	CHECK(v != NULL || brackets > JSON_OTHERS_DEPTH || !jscan_is_json(s, len));
	CHECK(v != NULL || (err.code != 0 && strncmp(err.text, "line ", 5) == 0));
	if (v != NULL) {
		buf_init(&out, 64 + 32 * len);
		CHECK(json_dump(&out, v) == 0);
		again = json_parse(out.data, out.len, &err);
		CHECK(again != NULL && json_equal(v, again));
		json_decref(again);
		buf_fini(&out);
	}
	json_decref(own);
	json_decref(v);
}

static void check_escape(const char *s, size_t len)
{
	struct buf out, repaired;
	json_t *v;

	buf_init(&out, 64 + 8 * len);
	buf_init(&repaired, 64 + 8 * len);
	CHECK(json_escape(&out, s, len) == 0 && utf8_repair(&repaired, s, len) == 0);
	for (size_t i = 0; i < out.len; i++)
		CHECK((unsigned char)out.data[i] >= 0x20 && out.data[i] != 0x7f);
	v = json_parse(out.data, out.len, NULL);
	CHECK(v != NULL && json_string_length(v) == repaired.len);
	CHECK(repaired.len == 0 || memcmp(json_string_value(v), repaired.data, repaired.len) == 0);
	json_decref(v);
	buf_fini(&out);
	buf_fini(&repaired);
}

FUZZ_TARGET(json, len)
{
	check_same((const char *)data, len);
	check_parse((const char *)data, len);
	check_others((const char *)data, len);
	check_escape((const char *)data, len);
}
