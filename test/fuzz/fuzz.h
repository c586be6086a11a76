/* What every fuzz target shares. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* FUZZ_TARGET(name, len) { ... `data` of `len` bytes ... return 0; }: a program of libFuzzer's with
 * -Dfuzz=true, else one of the targets of replay_main.c. */
#ifdef FUZZING
#define FUZZ_TARGET(name, len)                                                                     \
	int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);                               \
	int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
#else
struct fuzz_target {
	const char *name;
	int (*run)(const uint8_t *data, size_t len);
	struct fuzz_target *next;
};
void fuzz_add(struct fuzz_target *target);
#define FUZZ_TARGET(id, len)                                                                       \
	static int fuzz_##id(const uint8_t *data, size_t len);                                     \
	__attribute__((constructor)) static void fuzz_add_##id(void)                               \
	{                                                                                          \
		static struct fuzz_target target = {#id, fuzz_##id, NULL};                         \
		fuzz_add(&target);                                                                 \
	}                                                                                          \
	static int fuzz_##id(const uint8_t *data, size_t len)
#endif

/* Stays in every build, unlike assert. */
#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);         \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#endif
