/* What every fuzz target shares. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* FUZZ_TARGET(name, len) { ... `data` of `len` bytes ... }: a program of libFuzzer's with
 * -Dfuzz=true, else one of the targets of replay_main.c. */
#ifdef FUZZING
#define FUZZ_TARGET(name, len)                                                                     \
	static void fuzz_##name(const uint8_t *data, size_t len);                                  \
	int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);                              \
	int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)                               \
	{                                                                                          \
		fuzz_##name(data, size);                                                           \
		return 0;                                                                          \
	}                                                                                          \
	static void fuzz_##name(const uint8_t *data, size_t len)
#else
struct fuzz_target {
	const char *name;
	void (*run)(const uint8_t *data, size_t len);
	struct fuzz_target *next;
};
void fuzz_add(struct fuzz_target *target);
#define FUZZ_TARGET(id, len)                                                                       \
	static void fuzz_##id(const uint8_t *data, size_t len);                                    \
	__attribute__((constructor)) static void fuzz_add_##id(void)                               \
	{                                                                                          \
		static struct fuzz_target target = {#id, fuzz_##id, NULL};                         \
		fuzz_add(&target);                                                                 \
	}                                                                                          \
	static void fuzz_##id(const uint8_t *data, size_t len)
#endif

/* Stays in every build, unlike assert. */
#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);         \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* Of its own, so that a sanitizer sees its end; free(). */
static inline char *fuzz_copy(const void *bytes, size_t len)
{
	char *copy = malloc(len > 0 ? len : 1);

	CHECK(copy != NULL);
	if (len > 0)
		memcpy(copy, bytes, len);
	return copy;
}

/* The same with a NUL behind it. */
static inline char *fuzz_text(const void *bytes, size_t len)
{
	char *text = malloc(len + 1);

	CHECK(text != NULL);
	if (len > 0)
		memcpy(text, bytes, len);
	text[len] = '\0';
	return text;
}

#endif
