/* Lines of a conversation that pass a check can be read to their end and leave no call open. */
#ifndef FUZZ_FUZZ_LINES_H
#define FUZZ_FUZZ_LINES_H

#include "fuzz.h"

#include "base/error.h"
#include "provider/wire.h"

static inline int fuzz_count(size_t k, const char *text, size_t len, bool is_error, void *user)
{
	size_t *bytes = user;

	CHECK(len == 0 || memchr(text, 0, len) == NULL);
	*bytes += len + k + is_error;
	return 0;
}

static inline void fuzz_lines(int (*check)(const char *s, size_t len, struct ava_error *err),
			      const char *s, size_t len)
{
	struct ava_error err = {0};
	struct turn *t = turn_new();
	size_t bytes = 0;
	int rv = check(s, len, &err), open;

	CHECK(t != NULL && (rv == 0 || rv == AVA_EINVAL));
	CHECK((err.code == 0) == (rv == 0) && strchr(err.text, '\n') == NULL);
	open = wire_open_calls(s, len, t, NULL);
	if (rv == 0) {
		CHECK(open == 0 && t->ncalls == 0);
		CHECK(wire_each_result(s, len, fuzz_count, &bytes, NULL) == 0);
	}
	turn_free(t);
}

#endif
