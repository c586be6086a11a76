/* A record of anything: checking it never crashes and ends, says of what is wrong where it stands,
 * and counts no line that is not there. */
#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include "journal/sealed.h"

FUZZ_TARGET(sealed, len)
{
	int fd = memfd_create("sealed", MFD_CLOEXEC), rv;
	struct ava_error err = {0};
	struct sealed_sum sum;
	size_t lines = 1;

	CHECK(fd >= 0 && (len == 0 || write(fd, data, len) == (ssize_t)len));
	for (size_t i = 0; i < len; i++)
		lines += data[i] == '\n';
	rv = sealed_check(fd, NULL, &sum, &err);
	CHECK(rv == 0 || rv == AVA_ECORRUPT);
	CHECK(sum.line >= 1 && sum.line <= lines + 1);
	CHECK(rv == 0 || (err.text[0] != '\0' && sum.bytes <= len));
	close(fd);
}
