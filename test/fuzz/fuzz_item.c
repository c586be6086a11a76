/* Any line: one Item, whose texts hold no control character, or none. */
#include "fuzz.h"

#include <ava.h>

#include "codec/json.h"
#include "event/item.h"

static void check_text(const char *text)
{
	for (; *text; text++)
		CHECK((unsigned char)*text >= 0x20 || *text == '\n' || *text == '\t');
}

FUZZ_TARGET(item, len)
{
	struct item it;
	struct buf b;
	json_t *o;
	int rv;

	buf_init(&b, 64u << 20);
	rv = item_make(&it, &b, (const char *)data, len, 50, NULL);
	CHECK(rv == 0 || rv == AVA_ENOENT);
	if (rv == 0) {
		o = json_parse(b.data, b.len, NULL);
		CHECK(o != NULL && it.kind < ITEM_NKINDS && it.lsn > 0);
		CHECK(strcmp(json_str(o, "kind"), item_kind_name(it.kind)) == 0);
		check_text(json_str(o, "title"));
		check_text(json_str(o, "text"));
		json_decref(o);
	}
	buf_fini(&b);
}
