/* The body of POST /runs, and of the smaller ones, as a program may send it:
 * taken whole or refused with a sentence. What was taken is what stands in the
 * JSON, and strings point into it. */
#include "fuzz.h"

#include <ava.h>
#include <jansson.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "gateway/encode.h"

static void same(const json_t *body, const char *key, const char *got)
{
	const json_t *v = json_object_get(body, key);

	CHECK(json_is_string(v) ? got == json_string_value(v) : got == NULL);
}

static void same_list(const json_t *body, const char *key, const char *const *list, size_t n)
{
	const json_t *v = json_object_get(body, key);

	CHECK(n <= DECODE_LIST_MAX);
	CHECK(json_is_array(v) ? n == json_array_size(v) : list == NULL && n == 0);
	for (size_t i = 0; i < n; i++)
		CHECK(list[i] == json_string_value(json_array_get(v, i)));
}

static void same_number(const json_t *body, const char *key, double scale, int64_t got)
{
	const json_t *v = json_object_get(body, key);
	double off = json_is_number(v) ? json_number_value(v) * scale - (double)got : 0;

	CHECK(json_is_number(v) || got == AVA_DEFAULT);
	CHECK(off < 2048 && off > -2048); /* of 2^63, as a double */
}

static void check_spawn(const json_t *body)
{
	struct spawn_body b;
	struct ava_error err = {0};
	const struct op_spawn *s = &b.spawn;
	int rv = decode_spawn(body, &b, &err);

	CHECK(rv == 0 || rv == AVA_EINVAL);
	CHECK((rv != 0) == (err.text[0] != '\0') && strchr(err.text, '\n') == NULL);
	if (rv != 0)
		return;
	same(body, "task", s->task);
	same(body, "role", s->role);
	same(body, "context", s->context);
	same(body, "request_id", s->request_id);
	same_list(body, "tools", s->tools, s->ntools);
	same_list(body, "grants", s->grants, s->ngrants);
	same_number(body, "timeout", 1000, s->timeout_ms);
	same_number(body, "max_cost_cents", 10000, s->max_cost_microusd);
	same_number(body, "max_tokens", 1, s->max_tokens);
	CHECK(b.confirmed == json_is_true(json_object_get(body, "confirmed")));
}

static void check_strings(const json_t *body)
{
	const char *answer = NULL, *by = NULL;
	const struct decode_string keys[] = {{"answer", 16, &answer}, {"by", 4, &by}};
	struct ava_error err = {0};
	int rv = decode_strings(body, keys, ARRAY_LEN(keys), &err);

	CHECK(rv == 0 || rv == AVA_EINVAL || rv == AVA_ETOOBIG);
	if (rv != 0)
		return;
	same(body, "answer", answer);
	same(body, "by", by);
	CHECK(!by || strlen(by) <= 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	json_t *body = len <= 65536 ? json_parse((const char *)data, len, NULL) : NULL;

	if (!body)
		return 0;
	check_spawn(body);
	check_strings(body);
	json_decref(body);
	return 0;
}
