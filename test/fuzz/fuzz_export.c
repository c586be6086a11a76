/* A file that says it is an export: laying it out never crashes, makes nothing
 * but what a run has, and leaves nothing behind. */
#include "fuzz.h"

#include <ava.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/id.h"
#include "cli/exportfile.h"

static void check_laid(const struct exportfile *x)
{
	char path[400];
	struct stat st;

	CHECK(id_is_run(x->id));
	snprintf(path, sizeof(path), "%s/seals/public", x->root);
	CHECK(stat(path, &st) == 0);
	snprintf(path, sizeof(path), "%s/runs/%s", x->root, x->id);
	CHECK(stat(path, &st) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	int fd = memfd_create("export", MFD_CLOEXEC);
	struct exportfile x;
	struct stat st;
	char path[40], root[sizeof(x.root)] = "";

	CHECK(fd >= 0 && write(fd, data, len) == (ssize_t)len);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (exportfile_open(&x, path, true, NULL) == 0) {
		check_laid(&x);
		snprintf(root, sizeof(root), "%s", x.root);
	}
	exportfile_close(&x);
	CHECK(root[0] == '\0' || stat(root, &st) != 0);
	close(fd);
	return 0;
}
