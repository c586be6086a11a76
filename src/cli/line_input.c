/* Waiting at a terminal; line_input.h.
 *
 * Signals are held back but in ppoll, so
 * that none is missed between the look at its flag and the wait. */
#include "cli/line_input.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"

static const int caught[] = {SIGINT, SIGWINCH, SIGTSTP, SIGTERM, SIGHUP};
static volatile sig_atomic_t came[ARRAY_LEN(caught)];
static struct sigaction saved[ARRAY_LEN(caught)];

static void on_signal(int number)
{
	for (size_t i = 0; i < ARRAY_LEN(caught); i++)
		if (caught[i] == number)
			came[i] = 1;
}

void line_input_begin(sigset_t *before)
{
	struct sigaction sa = {.sa_handler = on_signal};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(caught); i++) {
		sigaddset(&set, caught[i]);
		came[i] = 0;
	}
	pthread_sigmask(SIG_BLOCK, &set, before);
	for (size_t i = 0; i < ARRAY_LEN(caught); i++)
		sigaction(caught[i], &sa, &saved[i]);
}

void line_input_end(const sigset_t *before)
{
	for (size_t i = 0; i < ARRAY_LEN(caught); i++)
		sigaction(caught[i], &saved[i], NULL);
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

static bool take(int number)
{
	for (size_t i = 0; i < ARRAY_LEN(caught); i++) {
		if (caught[i] != number || !came[i])
			continue;
		came[i] = 0;
		return true;
	}
	return false;
}

static int64_t until(const struct line_hooks *h, int64_t end, bool quiet)
{
	int64_t next = quiet ? -1 : h->next_ms(h->user);

	if (next < 0 || (end >= 0 && end < next))
		next = end;
	return next;
}

enum line_woken line_input_wait(const struct line_hooks *h, int wait_ms, bool quiet)
{
	int64_t end = wait_ms < 0 ? -1 : clock_mono_ms() + wait_ms;
	sigset_t open;

	pthread_sigmask(SIG_BLOCK, NULL, &open);
	for (size_t i = 0; i < ARRAY_LEN(caught); i++)
		sigdelset(&open, caught[i]);
	for (;;) {
		struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
				      {.fd = quiet ? -1 : h->wake_fd(h->user), .events = POLLIN}};
		int64_t at, left;
		struct timespec ts;

		if (take(SIGTERM) || take(SIGHUP))
			return LINE_WOKEN_END;
		if (take(SIGINT))
			return LINE_WOKEN_INTERRUPT;
		if (take(SIGTSTP))
			return LINE_WOKEN_SUSPEND;
		if (take(SIGWINCH))
			return LINE_WOKEN_RESIZE;
		if (!quiet && h->wants(h->user))
			return LINE_WOKEN_SHOW;
		at = until(h, end, quiet);
		left = at < 0 ? 0 : MAX(at - clock_mono_ms(), 0);
		ts = (struct timespec){left / 1000, left % 1000 * 1000000};
		if (ppoll(p, ARRAY_LEN(p), at < 0 ? NULL : &ts, &open) < 0 && errno != EINTR)
			return LINE_WOKEN_END;
		if (p[0].revents != 0)
			return LINE_WOKEN_INPUT;
		if (end >= 0 && clock_mono_ms() >= end)
			return LINE_WOKEN_TIME;
	}
}
