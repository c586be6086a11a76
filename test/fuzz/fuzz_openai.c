/* Any bytes as a response in the form of dialect_openai (fuzz_stream.h), and as
 * lines of a conversation: what passes the check can be read to its end and
 * leaves no call open. */
#include "fuzz_stream.h"

#include "provider/wire.h"

static int count(size_t k, const char *text, size_t len, bool is_error, void *user)
{
	size_t *bytes = user;

	CHECK(len == 0 || memchr(text, 0, len) == NULL);
	*bytes += len + k + is_error;
	return 0;
}

static void check_lines(const char *s, size_t len)
{
	struct ava_error err = {0};
	struct turn *t = turn_new();
	int rv = wire_check_chat(s, len, &err), open;
	size_t bytes = 0;

	CHECK(t != NULL && (rv == 0 || rv == AVA_EINVAL));
	CHECK((err.code == 0) == (rv == 0) && strchr(err.text, '\n') == NULL);
	open = wire_open_calls(s, len, t, NULL);
	if (rv == 0) {
		CHECK(open == 0 && t->ncalls == 0);
		CHECK(wire_each_result(s, len, count, &bytes, NULL) == 0);
	}
	turn_free(t);
}

FUZZ_TARGET(openai, len)
{
	if (len > 0 && data[0] == '{' && memchr(data, 0, len) == NULL)
		check_lines((const char *)data, len);
	fuzz_stream(&dialect_openai, (const char *)data, len);
	return 0;
}
