/* Any bytes as lines of a conversation and as messages.jsonl: what passes the
 * check can be read to its end and leaves no call open. */
#include "fuzz_lines.h"

#include "provider/head.h"
#include "provider/messages.h"

static void check_file(const char *s, size_t len)
{
	static const char head[] = "{\"messages\":["; /* the one that the seeds name */
	char name[HASH_HEX_LEN + 1];
	struct hash_sha256 prefix;
	struct messages_info info;
	struct ava_error err = {0};
	struct buf out;
	int rv;

	CHECK(head_keep(head, sizeof(head) - 1, name, &prefix) == 0);
	buf_init(&out, 64 + 4 * len);
	rv = messages_request(&out, s, len, -1, &info, &err);
	if (rv == 0)
		CHECK(info.head_len <= out.len && info.torn <= len);
	else
		CHECK(rv == AVA_ECORRUPT || rv == AVA_EFORMAT || rv == AVA_ETOOBIG ||
		      rv == AVA_ENOENT);
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
