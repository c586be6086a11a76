/* A few dozen heads stand for thousands of runs, so they are looked through one by one. A head is
 * kept when it is rendered or read; the oldest makes room. A file is believed for the hash of its
 * bytes, which is its name. */
#include "provider/head.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/sys.h"

#define HEADS_KEPT  64u
#define HEADS_BYTES (16u << 20)
#define HEAD_MAX    (8u << 20)

struct kept_head {
	struct hash_sha256 prefix;
	char name[HASH_HEX_LEN + 1];
	size_t len;
	char text[];
};

static pthread_mutex_t heads_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept_head *heads[HEADS_KEPT];
static size_t heads_bytes;
static unsigned heads_next;

/* By name or, where that is NULL, by its text. */
static const struct kept_head *heads_find(const char *name, const char *text, size_t len)
{
	for (unsigned i = 0; i < HEADS_KEPT; i++) {
		const struct kept_head *h = heads[i];

		if (h && (name ? memcmp(h->name, name, HASH_HEX_LEN) == 0
			       : h->len == len && memcmp(h->text, text, len) == 0))
			return h;
	}
	return NULL;
}

static void heads_drop(struct kept_head **h)
{
	heads_bytes -= *h ? (*h)->len : 0;
	free(*h);
	*h = NULL;
}

static const struct kept_head *heads_put(const char *text, size_t len)
{
	struct kept_head *h = malloc(sizeof(*h) + len);

	if (!h)
		return NULL;
	h->len = len;
	memcpy(h->text, text, len);
	hash_sha256_init(&h->prefix);
	hash_sha256_add(&h->prefix, text, len);
	hash_sha256_with(&h->prefix, "", 0, h->name);
	heads_drop(&heads[heads_next]);
	heads[heads_next] = h;
	heads_bytes += len;
	for (unsigned i = 1; i < HEADS_KEPT && heads_bytes > HEADS_BYTES; i++)
		heads_drop(&heads[(heads_next + i) % HEADS_KEPT]);
	heads_next = (heads_next + 1) % HEADS_KEPT;
	return h;
}

int head_keep(const char *text, size_t len, char name[HASH_HEX_LEN + 1], struct hash_sha256 *prefix)
{
	const struct kept_head *h;

	pthread_mutex_lock(&heads_lock);
	h = heads_find(NULL, text, len);
	if (!h)
		h = heads_put(text, len);
	if (h) {
		memcpy(name, h->name, sizeof(h->name));
		*prefix = h->prefix;
	}
	pthread_mutex_unlock(&heads_lock);
	return h ? 0 : AVA_ENOMEM;
}

/* From its file into memory. */
static int heads_read(int root_fd, struct slice name, struct ava_error *err)
{
	char path[HEAD_PATH], hash[HASH_HEX_LEN + 1];
	struct hash_sha256 prefix;
	char *text = NULL;
	size_t len;
	int rv;

	head_path(name, path);
	if (root_fd < 0)
		return err_set(err, AVA_ENOENT, "%s is not in memory", path);
	rv = sys_read_file(root_fd, path, HEAD_MAX, &text, &len, err);
	if (rv == AVA_ENOENT)
		rv = err_set(err, AVA_ECORRUPT,
			     "%s is missing: each request of the conversation begins with it",
			     path);
	if (rv == 0)
		rv = head_keep(text, len, hash, &prefix);
	if (rv == 0 && memcmp(hash, name.s, HASH_HEX_LEN) != 0)
		rv = err_set(err, AVA_ECORRUPT, "%s is not what was written: its bytes are of %s",
			     path, hash);
	free(text);
	return rv;
}

int head_add(struct buf *out, int root_fd, struct slice name, struct hash_sha256 *prefix,
	     struct ava_error *err)
{
	const struct kept_head *h = NULL;
	int rv = name.len == HASH_HEX_LEN && strspn(name.s, "0123456789abcdef") >= HASH_HEX_LEN
			 ? 0
			 : err_set(err, AVA_ECORRUPT, "a head is named by 64 hexadecimal digits");

	for (int tries = 0; rv == 0 && !h && tries < 2; tries++) {
		if (tries > 0)
			rv = heads_read(root_fd, name, err);
		pthread_mutex_lock(&heads_lock);
		h = rv == 0 ? heads_find(name.s, NULL, 0) : NULL;
		if (h) {
			*prefix = h->prefix;
			rv = buf_add(out, h->text, h->len);
		}
		pthread_mutex_unlock(&heads_lock);
	}
	return rv != 0 || h ? rv : AVA_ENOMEM;
}

void head_path(struct slice name, char path[HEAD_PATH])
{
	snprintf(path, HEAD_PATH, "heads/%.*s", HASH_HEX_LEN, name.s);
}
