/* Any bytes as lines of a conversation and as messages.jsonl: what passes the
 * check can be read to its end and leaves no call open. */
#include "fuzz_lines.h"

#include "provider/messages.h"

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
		return;
	fuzz_lines(wire_check, (const char *)data, len);
	check_file((const char *)data, len);
}
