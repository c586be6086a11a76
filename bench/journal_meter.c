/* The clock of one cell; see journal_meter.h.
 *
 * A latency is one increment of a counter, so that measuring costs nothing
 * beside what is measured. Processor time is that of all our threads (or of
 * the server that is measured, from /proc), in ticks of the kernel: rounds of
 * less than a second say little about it. */
#include "journal_meter.h"

#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"

volatile sig_atomic_t bench_stop;

void bench_die(const char *fmt, ...)
{
	int error = errno;
	va_list args;

	fprintf(stderr, "bench_journal: ");
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fprintf(stderr, "%s%s\n", error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
	exit(1);
}

/* ---- processor time */

static int64_t timeval_us(struct timeval t)
{
	return (int64_t)t.tv_sec * 1000000 + t.tv_usec;
}

int64_t bench_cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return timeval_us(u.ru_utime) + timeval_us(u.ru_stime);
}

static int64_t process_cpu_us(pid_t pid)
{
	unsigned long user = 0, system = 0;
	char path[64], text[1024] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	if (fgets(text, sizeof(text), f) == NULL || strrchr(text, ')') == NULL ||
	    sscanf(strrchr(text, ')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
		   &user, &system) != 2)
		user = system = 0;
	fclose(f);
	return (int64_t)(user + system) * 1000000 / sysconf(_SC_CLK_TCK);
}

static int64_t cpu_us(const struct meter *m)
{
	return m->server > 0 ? process_cpu_us(m->server) : bench_cpu_us();
}

/* ---- latencies */

static size_t slot_of(uint64_t us)
{
	unsigned shift;

	if (us < 2 * METER_STEPS)
		return us;
	shift = 63 - (unsigned)__builtin_clzll(us) - 6; /* leaves 64 to 127 */
	return MIN(shift * METER_STEPS + (us >> shift), (uint64_t)METER_SLOTS - 1);
}

/* The middle of a slot. */
static double slot_us(size_t slot)
{
	size_t shift = slot < 2 * METER_STEPS ? 0 : slot / METER_STEPS - 1;
	double low = (double)((slot - shift * METER_STEPS) << shift);

	return shift == 0 ? low : low + (double)((uint64_t)1 << shift) / 2;
}

void meter_start(struct meter *m, pid_t server)
{
	*m = (struct meter){.server = server, .from_us = clock_mono_us()};
	m->cpu_from_us = cpu_us(m);
}

void meter_add(struct meter *m, int64_t latency_us)
{
	m->slots[slot_of((uint64_t)MAX(latency_us, 0))]++;
	m->count++;
}

static double quantile(const struct meter *m, double q)
{
	uint64_t want = (uint64_t)(q * (double)m->count), seen = 0;

	for (size_t i = 0; i < METER_SLOTS; i++) {
		seen += m->slots[i];
		if (seen > want)
			return slot_us(i);
	}
	return 0;
}

struct sample meter_end(struct meter *m)
{
	double count = (double)m->count, us = (double)(clock_mono_us() - m->from_us);

	if (m->count == 0)
		return (struct sample){0};
	return (struct sample){
		.rate = count / us * 1e6,
		.p50_us = quantile(m, 0.5),
		.p99_us = quantile(m, 0.99),
		.cpu_us = (double)(cpu_us(m) - m->cpu_from_us) / count,
	};
}

/* ---- lines and folders */

void bench_line(char line[LINE_BYTES], uint64_t lsn)
{
	static const char head[] = "{\"timestamp\":\"2026-11-21T08:00:00.123Z\",\"lsn\":";
	static const char tail[] =
		",\"seq\":42,\"eventType\":\"ToolCall\",\"agentId\":\"S-7f3a2b\","
		"\"sessionId\":\"1\",\"traceId\":\"brave-otter\",\"userId\":\"ben\","
		"\"content\":{\"callId\":\"c1\",\"name\":\"read_file\",\"args\":\"";
	static const char end[] = "\"},\"metadata\":{\"iteration\":3}}\n";
	size_t at = sizeof(head) - 1;

	memcpy(line, head, at);
	for (size_t i = 12; i-- > 0; lsn /= 10) /* blanks before a number are still JSON */
		line[at + i] = lsn > 0 ? (char)('0' + lsn % 10) : ' ';
	at += 12;
	memcpy(line + at, tail, sizeof(tail) - 1);
	at += sizeof(tail) - 1;
	memset(line + at, 'a', LINE_BYTES - at);
	memcpy(line + LINE_BYTES - (sizeof(end) - 1), end, sizeof(end) - 1);
}

static int remove_cb(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

void bench_remove(const char *dir)
{
	nftw(dir, remove_cb, 16, FTW_DEPTH | FTW_PHYS);
}
