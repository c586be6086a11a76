/* Chunks of at least 4 KB, or `chunk`, in a list, the newest in front; a request that does
 * not fit the newest gets a chunk of its own size. Nothing is freed before
 * arena_fini, so pointers stay good for the whole turn. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define ARENA_ALIGN 16
#define ARENA_CHUNK 4096

struct arena_chunk {
	struct arena_chunk *next;
	size_t used, cap;
};

/* The aligned offset at which the bytes of a chunk start. */
#define CHUNK_HEAD ((sizeof(struct arena_chunk) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN)

void arena_init(struct arena *a, size_t max)
{
	*a = (struct arena){.max = max};
}

void arena_fini(struct arena *a)
{
	struct arena_chunk *c = a->chunks;

	while (c) {
		struct arena_chunk *next = c->next;

		free(c);
		c = next;
	}
	*a = (struct arena){.max = a->max, .chunk = a->chunk};
}

void *arena_get(struct arena *a, size_t size)
{
	struct arena_chunk *c = a->chunks;
	void *p;

	if (size > a->max - a->used)
		return NULL;
	size = (size + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
	if (!c || c->cap - c->used < size) {
		size_t cap = MAX(size, (a->chunk ? a->chunk : ARENA_CHUNK) - CHUNK_HEAD);

		c = calloc(1, CHUNK_HEAD + cap);
		if (!c)
			return NULL;
		c->cap = cap;
		c->next = a->chunks;
		a->chunks = c;
	}
	p = (char *)c + CHUNK_HEAD + c->used;
	c->used += size;
	a->used = MIN(a->used + size, a->max);
	return p;
}

char *arena_copy(struct arena *a, const char *s, size_t len)
{
	char *p = arena_get(a, len + 1);

	if (p && len)
		memcpy(p, s, len);
	return p;
}

char *arena_fmt(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	char *p = NULL;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n >= 0)
		p = arena_get(a, (size_t)n + 1);
	if (p) {
		va_start(ap, fmt);
		vsnprintf(p, (size_t)n + 1, fmt, ap);
		va_end(ap);
	}
	return p;
}
