/* Whatever a stranger writes, its block is one block, of its URL, and ends where it was ended. */
#include "fuzz.h"

#include "agent/envelope.h"
#include "base/buf.h"

FUZZ_TARGET(envelope, len)
{
	static const char url[] = "https://example.com/a";
	struct envelope e;
	struct buf b;
	size_t at = 0;

	if (len > 65536)
		return;
	buf_init(&b, 1u << 20);
	envelope_begin(&b, ENVELOPE_PAGE, 1, url);
	CHECK(envelope_text(&b, (const char *)data, len) == 0);
	envelope_end(&b, 1, NULL);
	CHECK(envelope_next(b.data, b.len, &at, &e));
	CHECK(e.url_len == strlen(url) && memcmp(e.url, url, e.url_len) == 0);
	CHECK(strcmp(e.text + e.text_len, "[ava:end 1]\n") == 0);
	CHECK(!envelope_next(b.data, b.len, &at, &e));
	(void)envelope_names((const char *)data, len, url);
	buf_fini(&b);
}
