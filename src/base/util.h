/* Small macros every file may need. */
#ifndef BASE_UTIL_H
#define BASE_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ARRAY_LEN(a)                    (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define MIN(a, b)                       ((a) < (b) ? (a) : (b))
#define MAX(a, b)                       ((a) > (b) ? (a) : (b))

/* A file in the program, a row of what script/embed makes; the last has no path. */
struct embedded {
	const char *path, *text;
	size_t len;
};

/* For qsort: below 0 when `a` comes first, above 0 when `b` does. */
static inline int order_of(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Is `word` one of the list, whose words have one `between` between them? */
static inline bool list_has(const char *list, char between, const char *word)
{
	size_t len = strlen(word);

	while (list) {
		if (strncmp(list, word, len) == 0 && (list[len] == between || list[len] == '\0'))
			return true;
		list = strchr(list, between);
		if (list)
			list++;
	}
	return false;
}

/* Saturating sum, for figures from outside. */
static inline int64_t sum_to_max(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* The nearest whole number, halves away from zero; |d| < 2^63. Own code, so that programs that
 * start often need not load libm. */
static inline int64_t round_to_int(double d)
{
	int64_t n = (int64_t)d;
	double rest = d - (double)n;

	return n + (rest >= 0.5) - (rest <= -0.5);
}

#endif
