/* Any bytes as a request to the offline model: it answers with a turn whose
 * line is one valid message, or with an error. */
#include "fuzz.h"

#include "base/error.h"
#include "codec/json.h"
#include "provider/dialect.h"

static void check_turn(const struct turn *t)
{
	json_t *v = json_parse(t->wire, t->wire_len, NULL), *args;

	CHECK(v != NULL && json_array_size(json_object_get(v, "content")) > 0);
	CHECK(memchr(t->wire, '\n', t->wire_len) == NULL);
	CHECK(t->ncalls <= TURN_MAX_CALLS && t->usage.estimated);
	for (unsigned i = 0; i < t->ncalls; i++) {
		args = json_parse(t->calls[i].args, t->calls[i].args_len, NULL);
		CHECK(json_is_object(args));
		json_decref(args);
	}
	json_decref(v);
}

FUZZ_TARGET(offline, len)
{
	struct dialect_answer a;
	struct ava_error err = {0};
	int rv = dialect_offline.answer((const char *)data, len, "", &a, &err);

	CHECK(rv == 0 || (rv == AVA_EINVAL && err.code == rv && a.turn == NULL));
	if (rv == 0)
		check_turn(a.turn);
	turn_free(a.turn);
}
