/* A kept head is found by its raw bytes, which are compared as a whole: a few dozen heads
 * stand for thousands of runs, and comparing 17 KB costs less than scanning one of them. The
 * oldest makes room. */
#include "provider/head.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"

#define HEADS_KEPT 32u
#define HEAD_KEPT  (256u << 10) /* bytes of text; a longer head is made anew each time */

struct kept_head {
	struct hash_sha256 prefix;
	size_t raw, len;
	char bytes[]; /* raw, then the text */
};

static pthread_mutex_t heads_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept_head *heads[HEADS_KEPT];
static unsigned heads_next;

static const struct kept_head *heads_find(struct slice raw)
{
	for (unsigned i = 0; i < HEADS_KEPT; i++)
		if (heads[i] && heads[i]->raw == raw.len &&
		    memcmp(heads[i]->bytes, raw.s, raw.len) == 0)
			return heads[i];
	return NULL;
}

/* No memory for it: the head is not kept. */
static void heads_keep(struct slice raw, const char *text, size_t len,
		       const struct hash_sha256 *prefix)
{
	struct kept_head *h = raw.len <= HEAD_KEPT ? malloc(sizeof(*h) + raw.len + len) : NULL;

	if (!h)
		return;
	*h = (struct kept_head){.prefix = *prefix, .raw = raw.len, .len = len};
	memcpy(h->bytes, raw.s, raw.len);
	memcpy(h->bytes + raw.len, text, len);
	free(heads[heads_next]);
	heads[heads_next] = h;
	heads_next = (heads_next + 1) % HEADS_KEPT;
}

int head_add(struct buf *out, struct slice raw, struct hash_sha256 *prefix)
{
	const struct kept_head *h;
	size_t before = out->len;
	int rv;

	pthread_mutex_lock(&heads_lock);
	h = heads_find(raw);
	rv = h ? buf_add(out, h->bytes + raw.len, h->len) : jscan_text(out, raw);
	if (h) {
		*prefix = h->prefix;
	} else if (rv == 0) {
		hash_sha256_init(prefix);
		hash_sha256_add(prefix, out->data + before, out->len - before);
		heads_keep(raw, out->data + before, out->len - before, prefix);
	}
	pthread_mutex_unlock(&heads_lock);
	return rv;
}
