/* The first line is a known secret, the rest is text: nothing known is left,
 * a second pass over plain tokens finds nothing new to hide, and without
 * matches the text is unchanged. */
#include "fuzz.h"

#include "base/buf.h"
#include "codec/redact.h"

static const char mark[] = "[redacted]";

static int check_pass(const struct redact *r, const char *s, size_t len, struct buf *out)
{
	int n;

	buf_init(out, 1024 + 12 * len);
	n = redact_text(r, out, s, len);
	CHECK(n >= 0);
	if (n == 0)
		CHECK(out->len == len && (len == 0 || memcmp(out->data, s, len) == 0));
	else
		CHECK(memmem(out->data, out->len, mark, sizeof(mark) - 1) != NULL);
	return n;
}

FUZZ_TARGET(redact, len)
{
	const uint8_t *end = len > 0 ? memchr(data, '\n', len) : NULL;
	size_t key_len = end != NULL ? (size_t)(end - data) : 0;
	struct redact *r = redact_new();
	struct buf once;
	char key[256];

	CHECK(r != NULL);
	if (key_len < sizeof(key)) {
		if (key_len > 0)
			memcpy(key, data, key_len);
		key[key_len] = '\0';
		CHECK(redact_add(r, key) == 0);
	}
	check_pass(r, (const char *)data, len, &once);
	/* A secret that is a piece of the mark, or that the mark completes, can
	 * stand in the output; any other cannot. */
	if (strpbrk(key, "[]") == NULL && strstr(mark, key) == NULL && key_len < sizeof(key) &&
	    once.len > 0)
		CHECK(!redact_has_known(r, once.data, once.len));
	buf_fini(&once);
	redact_free(r);
}
