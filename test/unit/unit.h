/* What unit tests share over cmocka: its includes in the right order, a
 * directory of the test's own, and allocations that fail on demand. */
#ifndef UNIT_UNIT_H
#define UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A sanitiser is at work: it takes memory of its own, and reads what nobody may. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNIT_SANITIZED 1
#elif defined(__has_feature)
#define UNIT_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define UNIT_SANITIZED 0
#endif

/* The k-th malloc, calloc or realloc from now on (0 is the next) returns
 * NULL, once. Calls inside libc are not counted. */
void fault_alloc(long k);
/* Has it failed by now? */
bool fault_alloc_hit(void);
/* Ends it; true when the failure was delivered. */
bool fault_alloc_end(void);

/* For each k fail the k-th allocation of `body`, until it runs without one
 * failing. `body` must leave nothing behind and stand both outcomes. */
#define FAULT_LOOP(k, body)                                                                        \
	do {                                                                                       \
		bool fault_hit_;                                                                   \
		long k = 0;                                                                        \
		do {                                                                               \
			fault_alloc(k);                                                            \
			body;                                                                      \
			fault_hit_ = fault_alloc_end();                                            \
			k++;                                                                       \
		} while (fault_hit_);                                                              \
		assert_true(k > 1);                                                                \
	} while (0)

/* A fresh directory below $TMPDIR; its path is good until the next call. */
const char *unit_tmpdir(void);
/* Remove it and everything in it. */
void unit_rmdir(const char *dir);

/* Whole file, NUL-terminated, free(); fails the test when it cannot. */
char *unit_read(const char *path, size_t *len);
/* The same below the source tree ("test/golden/…"). */
char *unit_read_src(const char *path, size_t *len);
void unit_write(const char *path, const void *data, size_t len);

#endif
