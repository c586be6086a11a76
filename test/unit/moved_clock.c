/* See moved_clock.h. Where the hands are is memory that forked processes share; under
 * AVA_TEST_CLOCK it is the target of that symbolic link, which changes as a whole: "WALL MONO
 * STANDS", milliseconds by which the wall clock and the monotonic one are ahead, and 1 when they
 * stand. */
#include "moved_clock.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define OURS     __attribute__((visibility("default"))) /* libraries find it before libc's */
#define MS       INT64_C(1000000)
#define SECOND   INT64_C(1000000000)
#define SLICE    (10 * MS) /* of the machine's time, in which a wait does not look at the clock */
#define MASK_LEN 8         /* the kernel's sigset_t */

enum { WALL, MONO };

struct hands {
	int64_t ahead[2]; /* ns */
	int64_t stood[2]; /* what the machine's clocks showed when it stopped; 0: it goes */
};

static struct hands unmoved, *hands = &unmoved;
static const char *link_name;
static int64_t begun[2]; /* with a link: where it stands before it is moved */

static int64_t ns_of(const struct timespec *ts)
{
	return (int64_t)ts->tv_sec * SECOND + ts->tv_nsec;
}

static struct timespec ts_of(int64_t ns)
{
	return (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
}

static int64_t machine(int which)
{
	struct timespec ts;

	syscall(SYS_clock_gettime, which == MONO ? CLOCK_MONOTONIC : CLOCK_REALTIME, &ts);
	return ns_of(&ts);
}

__attribute__((constructor)) static void begin(void)
{
	void *at = mmap(NULL, sizeof(*hands), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);

	if (at != MAP_FAILED)
		hands = at;
	if (!getenv("AVA_TEST_CLOCK"))
		return;
	link_name = strdup(getenv("AVA_TEST_CLOCK"));
	begun[WALL] = machine(WALL);
	begun[MONO] = machine(MONO);
	if (strcmp(program_invocation_short_name, "avad") == 0)
		unsetenv("LD_PRELOAD"); /* what it starts is in a sandbox that has no such file */
}

static int64_t now(int which)
{
	int64_t stood = __atomic_load_n(&hands->stood[which], __ATOMIC_ACQUIRE), told[2] = {0};
	char text[64] = "";
	int kept = errno, stands = 0;

	if (link_name && readlink(link_name, text, sizeof(text) - 1) > 0)
		sscanf(text, "%ld %ld %d", &told[WALL], &told[MONO], &stands);
	errno = kept;
	return (stands  ? begun[which]
		: stood ? stood
			: machine(which)) +
	       told[which] * MS + __atomic_load_n(&hands->ahead[which], __ATOMIC_ACQUIRE);
}

void test_clock_stop(void)
{
	for (int i = WALL; i <= MONO; i++)
		if (hands->stood[i] == 0)
			__atomic_store_n(&hands->stood[i], machine(i), __ATOMIC_RELEASE);
}

void test_clock_skip(int64_t ms)
{
	for (int i = WALL; i <= MONO; i++)
		__atomic_fetch_add(&hands->ahead[i], ms * MS, __ATOMIC_ACQ_REL);
}

void test_clock_go(void)
{
	for (int i = WALL; i <= MONO; i++)
		if (hands->stood[i] != 0) {
			__atomic_fetch_add(&hands->ahead[i], hands->stood[i] - machine(i),
					   __ATOMIC_ACQ_REL);
			__atomic_store_n(&hands->stood[i], 0, __ATOMIC_RELEASE);
		}
}

/* ---- what stands in front of libc */

OURS int clock_gettime(clockid_t which, struct timespec *ts)
{
	switch (which) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
		*ts = ts_of(now(WALL));
		return 0;
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_COARSE:
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_BOOTTIME:
		*ts = ts_of(now(MONO));
		return 0;
	default: /* what a process or a thread has used */
		return (int)syscall(SYS_clock_gettime, which, ts);
	}
}

/* Of the time until `end` what may be waited before the clock is looked at again. */
static int64_t slice(int64_t end, int which)
{
	int64_t left = end - now(which);

	return left < 0 ? 0 : left < SLICE ? left : SLICE;
}

OURS int epoll_pwait(int fd, struct epoll_event *ev, int n, int timeout, const sigset_t *mask)
{
	int64_t end = now(MONO) + timeout * MS;
	int ms, rv;

	do {
		ms = timeout <= 0 ? timeout : (int)((slice(end, MONO) + MS - 1) / MS);
		rv = (int)syscall(SYS_epoll_pwait, fd, ev, n, ms, mask, MASK_LEN);
	} while (rv == 0 && timeout > 0 && now(MONO) < end);
	return rv;
}

OURS int epoll_wait(int fd, struct epoll_event *ev, int n, int timeout)
{
	return epoll_pwait(fd, ev, n, timeout, NULL);
}

OURS int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	int64_t end = timeout ? now(MONO) + ns_of(timeout) : 0;
	struct timespec part;
	int rv;

	do {
		part = ts_of(slice(end, MONO));
		rv = (int)syscall(SYS_ppoll, fds, n, timeout ? &part : NULL, mask, MASK_LEN);
	} while (rv == 0 && now(MONO) < end);
	return rv;
}

OURS int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	struct timespec ts = ts_of(timeout * MS);

	return ppoll(fds, n, timeout < 0 ? NULL : &ts, NULL);
}

OURS int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				const struct timespec *at)
{
	int which = at->tv_sec < 1000000000 ? MONO : WALL, rv; /* no machine is up for 30 years */
	struct timespec part;

	do {
		part = ts_of(machine(MONO) + slice(ns_of(at), which));
		rv = pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &part);
	} while (rv == ETIMEDOUT && now(which) < ns_of(at));
	return rv;
}
