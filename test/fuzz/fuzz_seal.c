/* A daily log of anything, Seals among it: taking it apart and verifying a
 * root of which it is the only log never crashes, and what is read fits. */
#include "fuzz.h"

#include <ava.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/jscan.h"
#include "event/event.h"
#include "journal/seal_read.h"

static char root[] = "/dev/shm/ava-fuzz-seal.XXXXXX"; /* each input makes a file anew */
static int rootfd = -1;

static void away(void)
{
	unlinkat(rootfd, "logs/ava/2026-11-21.jsonl", 0);
	unlinkat(rootfd, "logs/ava", AT_REMOVEDIR);
	unlinkat(rootfd, "logs", AT_REMOVEDIR);
	rmdir(root);
}

static void make_root(void)
{
	if (rootfd >= 0)
		return;
	CHECK(mkdtemp(root) != NULL);
	rootfd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(rootfd >= 0 && mkdirat(rootfd, "logs", 0700) == 0 &&
	      mkdirat(rootfd, "logs/ava", 0700) == 0);
	atexit(away);
}

static void take_apart(const char *content, size_t len)
{
	struct seal_item item;
	struct seal s;

	if (seal_parse(&s, content, len, NULL) != 0)
		return;
	CHECK(s.n > 0);
	for (size_t i = 0; seal_item(&s, i, &item) != 0; i++) {
		if (item.path == NULL || item.lines == NULL)
			continue;
		for (size_t k = 0; k < item.nmarks; k++)
			CHECK(seal_mark(&item, k) <= 0xffffff);
	}
	seal_fini(&s);
}

static void finding(const struct ava_finding *f, void *user)
{
	(void)user;
	CHECK(f->path != NULL && f->what != NULL && strchr(f->what, '\n') == NULL);
}

FUZZ_TARGET(seal, len)
{
	struct ava_verify o = {.root = root, .finding = finding, .threads = 1};
	const char *bytes = (const char *)data, *line;
	struct ava_verified report;
	size_t at = 0, n;
	int fd;

	make_root();
	while (jsonl_next(bytes, len, &at, &line, &n) == 1) {
		struct event_view v;

		if (seal_is_line(line, n) && event_view(line, n, &v) == 0)
			take_apart(v.content.s, v.content.len);
	}
	/* Made anew: cutting a file makes some file systems write it out. */
	unlinkat(rootfd, "logs/ava/2026-11-21.jsonl", 0);
	fd = openat(rootfd, "logs/ava/2026-11-21.jsonl", O_WRONLY | O_CREAT | O_EXCL, 0600);
	CHECK(fd >= 0 && write(fd, data, len) == (ssize_t)len);
	close(fd);
	CHECK(ava_log_verify(&o, &report, NULL) == 0);
	CHECK(report.seals == 0 || report.newest.n > 0);
}
