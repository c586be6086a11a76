/* What sealing and verifying cost: a daily log of N MB (first argument, 512)
 * of 400-byte events, sealed every 10 s of 150,000 events a second, in the
 * page cache. Prints MB/s and the share of a core that sealing takes. Exit 1: what
 * it wrote does not verify. */
#include <ava.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "event/event.h"
#include "journal/seal.h"

#define EVENTS_A_SEAL 1500000 /* 10 s of 150,000 */
#define EVENT_BYTES   382     /* of one, about */
#define DAY           "logs/ava/2026-11-21.jsonl"

static uint64_t lsn;

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void add_event(struct buf *b, enum event_kind kind, const char *content, size_t len)
{
	struct event_head head = {.kind = kind, .wall_ms = 1795248000000, .agent_id = "ava"};

	head.lsn = head.seq = ++lsn;
	if (event_encode(b, &head, content, len, NULL) != 0)
		abort();
}

static uint64_t add_events(int fd, uint64_t events)
{
	static char content[256] = "{\"text\":\"";
	struct buf b;
	uint64_t bytes = 0;

	memset(content + 9, 'x', 200);
	memcpy(content + 209, "\"}", 2);
	buf_init(&b, 16u << 20);
	for (uint64_t i = 0; i < events; i++) {
		add_event(&b, EVENT_Activity, content, 211);
		if (b.len > 1u << 20 || i + 1 == events) {
			if (write(fd, b.data, b.len) != (ssize_t)b.len)
				abort();
			bytes += b.len;
			buf_reset(&b);
		}
	}
	buf_fini(&b);
	return bytes;
}

static void seal(struct sealer *s, int fd)
{
	char *paths[] = {DAY};
	struct seal_list out = {0};
	struct buf b;

	if (sealer_round(s, paths, 1, NULL, &out, NULL) != 0)
		abort();
	buf_init(&b, 16u << 20);
	for (size_t i = 0; i < out.n; i++)
		add_event(&b, EVENT_Seal, out.contents[i].data, out.contents[i].len);
	if (write(fd, b.data, b.len) != (ssize_t)b.len)
		abort();
	buf_fini(&b);
	seal_list_fini(&out);
	if (sealer_committed(s, DAY, NULL) != 0)
		abort();
}

static void found(const struct ava_finding *f, void *user)
{
	(void)user;
	printf("%s: %s\n", f->path, f->what);
}

static int rm_cb(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

int main(int argc, char **argv)
{
	uint64_t want = (argc > 1 ? strtoull(argv[1], NULL, 10) : 512) << 20, bytes = 0;
	char root[] = "/tmp/ava-bench-seals.XXXXXX";
	struct ava_verify o = {.finding = found};
	struct ava_verified report;
	struct sealer *s;
	double sealing = 0, at, wall;
	unsigned seals = 0;
	uint64_t broken = 0;
	int dir, fd;

	if (!mkdtemp(root) || (dir = open(root, O_RDONLY | O_DIRECTORY)) < 0 ||
	    mkdirat(dir, "logs", 0700) != 0 || mkdirat(dir, "logs/ava", 0700) != 0 ||
	    (fd = openat(dir, DAY, O_WRONLY | O_CREAT | O_APPEND, 0600)) < 0 ||
	    sealer_open(&s, dir, NULL) != 0)
		return 1;
	for (; bytes < want; seals++) {
		uint64_t left = (want - bytes) / EVENT_BYTES + 1;

		bytes += add_events(fd, left < EVENTS_A_SEAL ? left : EVENTS_A_SEAL);
		at = cpu_ms();
		seal(s, fd);
		sealing += cpu_ms() - at;
	}
	printf("sealing: %.0f MB in %u seals, %.0f MB/s, %.2f %% of a core at 150,000 events/s\n",
	       (double)bytes / 1e6, seals, (double)bytes / sealing / 1e3,
	       sealing / seals / 10000 * 100);
	o.root = root;
	for (o.threads = 1; o.threads <= 2; o.threads++) {
		wall = (double)clock_mono_us();
		at = cpu_ms();
		if (ava_log_verify(&o, &report, NULL) != 0)
			return 1;
		wall = (double)clock_mono_us() - wall;
		printf("verify, %u thread: %.0f MB/s, %.0f MB/s of processor time, %" PRIu64
		       " broken\n",
		       o.threads, (double)report.bytes / wall,
		       (double)report.bytes / (cpu_ms() - at) / 1e3, report.broken);
		broken += report.broken;
	}
	sealer_close(s, true);
	close(fd);
	close(dir);
	nftw(root, rm_cb, 16, FTW_DEPTH | FTW_PHYS);
	return broken > 0;
}
