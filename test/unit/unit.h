/* What unit tests share over cmocka: its includes in the right order, tests that
 * register themselves, a directory of the test's own, and allocations that fail
 * on demand. One program runs the groups of a folder (unit_main.c). */
#ifndef UNIT_UNIT_H
#define UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "moved_clock.h"

/* TEST(name) { ... }: a test, test_<name>. Its file, test_<group>.c, is its group, in which
 * tests run in the order of their lines, each between the group's .before and .after. */
#define TEST(name) TEST_WITH(name, NULL, NULL)
/* With a set-up and a tear-down of its own. */
#define TEST_WITH(name, set_up, tear_down)                                                         \
	static void test_##name(void **state);                                                     \
	UNIT_ADD(name, name, set_up, tear_down)                                                    \
	static void test_##name(void **state)
/* TEST_OF(name, struct world *w) { ... }: what the group's set-up left in *state. */
#define TEST_OF(name, of)                                                                          \
	static void of_##name(of);                                                                 \
	TEST(name)                                                                                 \
	{                                                                                          \
		of_##name(*state);                                                                 \
	}                                                                                          \
	static void of_##name(of)
/* With a `type` of its own, between open(&it) and close(&it). */
#define TEST_IN(name, type, it, open, close)                                                       \
	static void in_##name(type *it);                                                           \
	TEST(name)                                                                                 \
	{                                                                                          \
		type it;                                                                           \
		open(&it);                                                                         \
		in_##name(&it);                                                                    \
		close(&it);                                                                        \
	}                                                                                          \
	static void in_##name(type *it)

/* No id stands in `text` that a model could take for one of its own: S-7f3a2b, c3.1. */
void no_example_ids(const char *where, const char *text);

/* A buffer of at most `most` bytes, which is freed where it goes out of scope (base/buf.h). */
#define TEST_BUF(name, most) __attribute__((cleanup(buf_fini))) struct buf name = {.max = (most)}

/* Anything of it may be left out: UNIT_GROUP(.before = set_up, .after = tear_down); */
#define UNIT_GROUP(...)                                                                            \
	__attribute__((constructor)) static void unit_group_of_file(void)                          \
	{                                                                                          \
		static struct unit_group group = {.file = __FILE__, __VA_ARGS__};                  \
		unit_add_group(&group);                                                            \
	}                                                                                          \
	struct unit_group /* takes the semicolon */

struct unit_group {
	const char *file;
	CMFixtureFunction first, last;         /* once, around all tests of the group */
	CMFixtureFunction before, after;       /* of tests that have none of their own */
	int (*run)(int (*all)(void));          /* runs the tests by `all`, more than once perhaps */
	int (*program)(int argc, char **argv); /* the program is started with "--...": this */
	struct unit_group *next;
};

struct unit_test {
	const char *file, *name;
	int line;
	CMUnitTestFunction run;
	CMFixtureFunction set_up, tear_down;
	struct unit_test *next;
};

#define UNIT_ADD(id, name, set_up, tear_down)                                                      \
	__attribute__((constructor)) static void add_test_##id(void)                               \
	{                                                                                          \
		static struct unit_test test = {__FILE__, "test_" #name, __LINE__, test_##name,    \
						set_up,   tear_down,     NULL};                    \
		unit_add(&test);                                                                   \
	}
void unit_add(struct unit_test *test);
void unit_add_group(struct unit_group *group);

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

/* How far to go from one of many rounds to the next: `n`, or ten times that where AVA_QUICK is
 * set, as by `./dev check`. */
long unit_step(long n);

/* For each k (unit_step(1) apart) fail the k-th allocation of `body`, until it runs without one
 * failing. `body` must leave nothing behind and stand both outcomes. */
#define FAULT_LOOP(k, body)                                                                        \
	do {                                                                                       \
		bool fault_hit_;                                                                   \
		long k = 0;                                                                        \
		do {                                                                               \
			fault_alloc(k);                                                            \
			body;                                                                      \
			fault_hit_ = fault_alloc_end();                                            \
			k += unit_step(1);                                                         \
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
void unit_append(const char *path, const void *data, size_t len);
/* The folders of `path` below `dir`: all that a '/' ends. */
void unit_mkdirs(const char *dir, const char *path);

#endif
