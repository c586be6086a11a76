/* Bump allocator: everything of one turn lives here and is freed in one call.
 * Bounded at init. One thread at a time. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena {
	void *chunks;
	size_t used, max; /* used: bytes handed out; max: most of them */
	size_t chunk;     /* least bytes asked of malloc at once, over 64; 0: 4 KB */
};

void arena_init(struct arena *a, size_t max);
void arena_fini(struct arena *a);
/* `size` zeroed bytes, aligned for any type; NULL: out of memory or over max. */
void *arena_get(struct arena *a, size_t size);
/* NUL-terminated copy; NULL as above. */
char *arena_copy(struct arena *a, const char *s, size_t len);
char *arena_fmt(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
