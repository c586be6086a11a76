/* The allocator given to libcurl.
 *
 * A call that waits for its answer would hold 16 KB that libcurl filled with
 * the request: its upload buffer, freed only at the end. Those come from a
 * range of addresses of their own, page by page, so that they can be told
 * from anything else and emptied where they stand. All else is malloc's; what
 * is freed is wiped first, up to a size beyond which it is no header.
 *
 * What can fail: memory. Without the range, or in a process that started
 * libcurl before us, upload buffers are malloc's and keep their pages. */
#include "net/http_memory.h"

#include <ava.h>
#include <curl/curl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCKS   16384 /* 256 MB of addresses; pages come when touched */
#define WARM     32    /* free blocks that keep their pages */
#define WIPE_MAX (64 * 1024)

static struct {
	pthread_mutex_t lock;
	char *base;     /* NULL: no range */
	bool own_alone; /* this libcurl gives each transfer its own buffer */
	unsigned used;  /* blocks ever handed out */
	unsigned nfree;
	uint16_t free[BLOCKS]; /* the last freed is the first taken */
	bool empty[BLOCKS];    /* its owner gave its pages back already */
} range = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool in_range(const void *p)
{
	uintptr_t at = (uintptr_t)p, base = (uintptr_t)range.base;

	return base && at >= base && at - base < (uintptr_t)BLOCKS * HTTP_UPLOAD_BYTES;
}

static void *block_get(void)
{
	unsigned i = BLOCKS;

	pthread_mutex_lock(&range.lock);
	if (range.nfree > 0)
		i = range.free[--range.nfree];
	else if (range.used < BLOCKS)
		i = range.used++;
	pthread_mutex_unlock(&range.lock);
	return i < BLOCKS ? range.base + (size_t)i * HTTP_UPLOAD_BYTES : NULL;
}

static void block_put(void *p)
{
	size_t i = (size_t)((char *)p - range.base) / HTTP_UPLOAD_BYTES;
	bool warm;

	pthread_mutex_lock(&range.lock);
	warm = range.nfree < WARM;
	pthread_mutex_unlock(&range.lock);
	if (!warm && !range.empty[i]) /* before another thread may take it */
		http_memory_empty(p);
	range.empty[i] = false;
	pthread_mutex_lock(&range.lock);
	range.free[range.nfree++] = (uint16_t)i;
	pthread_mutex_unlock(&range.lock);
}

/* ---- what libcurl calls */

static void *mem_malloc(size_t n)
{
	void *p = n == HTTP_UPLOAD_BYTES && range.base ? block_get() : NULL;

	return p ? p : malloc(n);
}

static void mem_free(void *p)
{
	size_t n;

	if (!p)
		return;
	if (in_range(p)) {
		block_put(p);
		return;
	}
	n = malloc_usable_size(p);
	if (n <= WIPE_MAX)
		explicit_bzero(p, n);
	free(p);
}

static void *mem_realloc(void *p, size_t n)
{
	size_t have = p && !in_range(p) ? malloc_usable_size(p) : HTTP_UPLOAD_BYTES;
	void *moved;

	if (!p)
		return mem_malloc(n);
	if (!in_range(p) && (n <= have || have > WIPE_MAX))
		return realloc(p, n);
	moved = malloc(n);
	if (!moved)
		return NULL;
	memcpy(moved, p, have < n ? have : n);
	mem_free(p);
	return moved;
}

static char *mem_strdup(const char *s)
{
	return strdup(s);
}

static void *mem_calloc(size_t n, size_t size)
{
	return calloc(n, size);
}

/* ---- */

int http_memory_start(void)
{
	pthread_mutex_lock(&range.lock);
	if (!range.base) {
		void *base = mmap(NULL, (size_t)BLOCKS * HTTP_UPLOAD_BYTES, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		range.base = base == MAP_FAILED ? NULL : base;
		/* From 8 on a buffer may be shared between transfers. */
		range.own_alone = curl_version_info(CURLVERSION_NOW)->version_num < 0x080000;
	}
	pthread_mutex_unlock(&range.lock);
	return curl_global_init_mem(CURL_GLOBAL_DEFAULT, mem_malloc, mem_free, mem_realloc,
				    mem_strdup, mem_calloc) == CURLE_OK
		       ? 0
		       : AVA_ENOMEM;
}

bool http_memory_is_upload(const void *at)
{
	return range.own_alone && in_range(at);
}

void http_memory_empty(void *at)
{
	size_t i = (size_t)((char *)at - range.base) / HTTP_UPLOAD_BYTES;

	/* Fails only for addresses that are not ours. */
	(void)madvise(range.base + i * HTTP_UPLOAD_BYTES, HTTP_UPLOAD_BYTES, MADV_DONTNEED);
	range.empty[i] = true;
}
