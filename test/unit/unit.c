/* See unit.h. The linker sends every allocation of a test program here
 * (--wrap), so that the code under test needs no hook of its own. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

/* Threads of the code under test allocate too, hence the atomics. */
static bool armed;
static long left;

static bool fails(void)
{
	return __atomic_load_n(&armed, __ATOMIC_ACQUIRE) &&
	       __atomic_fetch_sub(&left, 1, __ATOMIC_ACQ_REL) == 0;
}

void fault_alloc(long k)
{
	__atomic_store_n(&left, k, __ATOMIC_RELEASE);
	__atomic_store_n(&armed, true, __ATOMIC_RELEASE);
}

bool fault_alloc_hit(void)
{
	return __atomic_load_n(&left, __ATOMIC_ACQUIRE) < 0;
}

bool fault_alloc_end(void)
{
	__atomic_store_n(&armed, false, __ATOMIC_RELEASE);
	return fault_alloc_hit();
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

long unit_step(long n)
{
	return getenv("AVA_QUICK") != NULL ? 10 * n : n;
}

const char *unit_tmpdir(void)
{
	static char dir[256];
	const char *base = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%s/ava-unit-XXXXXX", base != NULL ? base : "/tmp");
	assert_non_null(mkdtemp(dir));
	return dir;
}

static int rm_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

void unit_rmdir(const char *dir)
{
	assert_int_equal(nftw(dir, rm_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

char *unit_read(const char *path, size_t *len)
{
	FILE *f = fopen(path, "re");
	struct stat st;
	char *data;

	if (f == NULL)
		fail_msg("cannot open %s", path);
	assert_int_equal(fstat(fileno(f), &st), 0);
	data = malloc((size_t)st.st_size + 1);
	assert_non_null(data);
	assert_int_equal(fread(data, 1, (size_t)st.st_size, f), st.st_size);
	data[st.st_size] = '\0';
	fclose(f);
	if (len != NULL)
		*len = (size_t)st.st_size;
	return data;
}

char *unit_read_src(const char *path, size_t *len)
{
	const char *src = getenv("SRCDIR");
	char full[1024];

	snprintf(full, sizeof(full), "%s/%s", src != NULL ? src : ".", path);
	return unit_read(full, len);
}

static void write_as(const char *path, int flags, const void *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	assert_int_equal(close(fd), 0);
}

void unit_write(const char *path, const void *data, size_t len)
{
	write_as(path, O_TRUNC, data, len);
}

void unit_append(const char *path, const void *data, size_t len)
{
	write_as(path, O_APPEND, data, len);
}

void unit_mkdirs(const char *dir, const char *path)
{
	char full[1024];

	for (const char *at = path; (at = strchr(at, '/')) != NULL; at++) {
		snprintf(full, sizeof(full), "%s/%.*s", dir, (int)(at - path), path);
		assert_true(mkdir(full, 0700) == 0 || errno == EEXIST);
	}
}

/* ---- what goes to models */

void no_example_ids(const char *where, const char *text)
{
	regmatch_t at;
	regex_t ids;

	assert_int_equal(regcomp(&ids, "\\b([A-Z]-[0-9a-f]{6}|c[0-9]+\\.[0-9]+)\\b", REG_EXTENDED),
			 0);
	if (regexec(&ids, text, 1, &at, 0) == 0)
		fail_msg("%s: %.60s", where, text + at.rm_so);
	regfree(&ids);
}
