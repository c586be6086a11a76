/* Any bytes as lines of a conversation and as messages.jsonl: what passes the
 * check can be read to its end and leaves no call open. */
#include "fuzz.h"

#include <string.h>

#include "base/error.h"
#include "provider/messages.h"
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
	size_t bytes = 0;
	int rv = wire_check(s, len, &err), open;

	CHECK(t != NULL && (rv == 0 || rv == AVA_EINVAL));
	CHECK((err.code == 0) == (rv == 0) && strchr(err.text, '\n') == NULL);
	open = wire_open_calls(s, len, t, NULL);
	if (rv == 0) {
		CHECK(open == 0 && t->ncalls == 0);
		CHECK(wire_each_result(s, len, count, &bytes, NULL) == 0);
	}
	turn_free(t);
}

static void check_file(const char *s, size_t len)
{
	struct messages_info info;
	struct ava_error err = {0};
	struct buf out;
	int rv;

	buf_init(&out, 64 + 4 * len);
	rv = messages_request(&out, s, len, &info, &err);
	if (rv == 0)
		CHECK(info.head_len <= out.len && info.torn <= len);
	else
		CHECK(rv == AVA_ECORRUPT || rv == AVA_EFORMAT || rv == AVA_ETOOBIG);
	buf_fini(&out);
}

FUZZ_TARGET(wire, len)
{
	/* NUL inside is never written by the encoders. */
	if (len > 0 && memchr(data, 0, len) != NULL)
		return 0;
	check_lines((const char *)data, len);
	check_file((const char *)data, len);
	return 0;
}
