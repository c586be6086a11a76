/* Bodies of every POST, as a program may send them: read whole or refused with a
 * sentence, within the bounds of the struct that they are read into. */
#include "fuzz.h"

#include <ava.h>

#include "ava/verbs.h"
#include "base/arena.h"
#include "base/error.h"
#include "codec/json.h"

static void check(const struct arg *args, const json_t *body)
{
	union {
		char bytes[1024];
		int64_t align;
	} out = {{0}};
	struct ava_error err = {0};
	struct arena mem;
	int rv;

	arena_init(&mem, 1u << 20);
	rv = args_read(args, body, &out, &mem, &err);
	CHECK(rv == 0 || rv == AVA_EINVAL || rv == AVA_ETOOBIG);
	CHECK((rv != 0) == (err.text[0] != '\0') && strchr(err.text, '\n') == NULL);
	for (const struct arg *a = args; rv == 0 && a && a->name; a++) {
		const json_t *v = json_object_get(body, a->name);
		const char *got;

		if (!json_is_string(v) || (a->kind != ARG_TEXT && a->kind != ARG_SAID))
			continue;
		memcpy(&got, out.bytes + a->at, sizeof(got));
		CHECK(got == json_string_value(v));
		CHECK(a->kind == ARG_TEXT || strlen(got) <= (size_t)a->most);
	}
	arena_fini(&mem);
}

FUZZ_TARGET(spawn, len)
{
	json_t *body = len <= 65536 ? json_parse((const char *)data, len, NULL) : NULL;
	const struct verb *v;

	for (size_t i = 0; body && (v = verbs_row(i)) != NULL; i++)
		if (strcmp(v->method, "POST") == 0)
			check(v->args, body);
	json_decref(body);
}
