/* Runs a fuzz target over its seeds without libFuzzer, so that every build
 * tests them: each file as it is, cut at every byte, and with every byte
 * changed. Arguments are the target and its folder of seeds. A target that finds something
 * aborts; no seeds at all is a failure too. */
#include "fuzz.h"

#include <dirent.h>

#define SEED_MAX 65536
#define CUT_MAX  4096 /* of a longer seed only the whole is run */

static size_t runs;
static struct fuzz_target *targets, *at_work;

void fuzz_add(struct fuzz_target *target)
{
	target->next = targets;
	targets = target;
}

/* In memory of exactly its size, so that a sanitizer sees its end. */
static void run(const uint8_t *data, size_t len)
{
	uint8_t *copy = (uint8_t *)fuzz_copy(data, len);

	at_work->run(copy, len);
	free(copy);
	runs++;
}

static void run_variants(uint8_t *data, size_t len)
{
	static const uint8_t change[] = {0x01, 0x20, 0x80, 0xff};

	size_t step = getenv("AVA_QUICK") ? 10 : 1; /* of bytes: ./dev check */

	run(data, len);
	for (size_t i = 0; i < len && len <= CUT_MAX; i += step) {
		run(data, i);
		for (size_t j = 0; j < sizeof(change); j++) {
			data[i] ^= change[j];
			run(data, len);
			data[i] ^= change[j];
		}
	}
}

static void run_file(const char *path)
{
	static uint8_t data[SEED_MAX];
	FILE *f = fopen(path, "re");
	size_t len;

	CHECK(f != NULL);
	len = fread(data, 1, sizeof(data), f);
	CHECK(ferror(f) == 0);
	fclose(f);
	run_variants(data, len);
}

static size_t run_folder(const char *path)
{
	struct dirent *e;
	char file[4096];
	size_t n = 0;
	DIR *dir = opendir(path);

	if (dir == NULL) {
		perror(path);
		return 0;
	}
	while ((e = readdir(dir)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		run_file(file);
		n++;
	}
	closedir(dir);
	return n;
}

int main(int argc, char **argv)
{
	size_t seeds;

	for (at_work = targets; argc == 3 && at_work; at_work = at_work->next)
		if (strcmp(at_work->name, argv[1]) == 0)
			break;
	if (!at_work) {
		fprintf(stderr, "usage: fuzz_replay TARGET FOLDER\n");
		return 2;
	}
	seeds = run_folder(argv[2]);
	printf("%s 1 - %zu seeds, %zu inputs\n", seeds > 0 ? "ok" : "not ok", seeds, runs);
	return seeds > 0 ? 0 : 1;
}
