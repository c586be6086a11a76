/* Looking on; watch.h.
 *
 * Happy path: ask, show, listen behind the lsn of what was shown until the
 * first event or a second has passed, and again; at most five times a second.
 * The screen is the terminal's other one, so that what stood there comes back.
 *
 * What can fail: the daemon goes away (it is told on the screen, and its
 * successor asked), signals: they only set a flag that every wait looks at, and
 * whatever they want is done with the terminal as it was before. */
#include "cli/watch.h"

#include <ava.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/term.h"

#define PAUSE_MS  200 /* between two pictures */
#define SCREEN_MS 1000
#define LINES_MS  10000
#define ENTER     "\033[?1049h\033[?25l"
#define LEAVE     "\033[?25h\033[?1049l"

static volatile sig_atomic_t woken, fatal, suspended;

static void on_signal(int number)
{
	if (number == SIGTSTP)
		suspended = 1;
	else if (number != SIGWINCH)
		fatal = number;
	woken = 1;
}

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

static void catch_signals(void (*handler)(int))
{
	struct sigaction sa = {.sa_handler = handler}, before;

	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		if (sigaction(signals[i], NULL, &before) == 0 &&
		    (before.sa_handler != SIG_IGN || signals[i] != SIGHUP)) /* nohup */
			sigaction(signals[i], &sa, NULL);
}

/* ---- the screen */

static struct termios keys;
static bool keys_known;

static void enter(void)
{
	struct termios quiet;

	keys_known = tcgetattr(STDIN_FILENO, &keys) == 0;
	quiet = keys;
	quiet.c_lflag &= ~(tcflag_t)ECHO; /* what is typed must not stand in the picture */
	if (keys_known)
		tcsetattr(STDIN_FILENO, TCSANOW, &quiet);
	fputs(ENTER, stdout);
	fflush(stdout);
}

static void leave(void)
{
	fputs(LEAVE, stdout);
	fflush(stdout);
	if (keys_known)
		tcsetattr(STDIN_FILENO, TCSANOW, &keys);
}

/* Made whole first and written at once: no half picture. */
static void picture(const struct watch *w, const char *problem)
{
	char *bytes = NULL;
	size_t len = 0;
	struct page p = {.f = open_memstream(&bytes, &len),
			 .columns = term_width(stdout) - 1,
			 .rows = term_rows(stdout) - 1,
			 .end = "\033[K\n"};

	if (p.f == NULL)
		return;
	fputs("\033[H", p.f);
	if (problem != NULL)
		page_line(&p, problem);
	else
		w->draw(&p, w->user);
	fputs("\033[J", p.f);
	if (fclose(p.f) == 0)
		fwrite(bytes, 1, len, stdout);
	fflush(stdout);
	free(bytes);
}

/* Ctrl-Z: the shell gets its terminal as it was. */
static void suspend(bool screen)
{
	suspended = 0;
	if (screen)
		leave();
	raise(SIGSTOP);
	if (screen)
		enter();
}

/* ---- news */

/* Until something has happened, it is time for the next picture, or a signal
 * came. 0, or what is wrong with the daemon. */
static int listen(struct client *c, uint64_t lsn, int64_t tick_ms, struct ava_error *err)
{
	nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
	return follow_news(c, lsn, clock_mono_ms() + tick_ms, NULL, NULL, err);
}

/* One round. 0: go on; 1: it has ended. */
static int round_once(const struct watch *w, struct client **c, bool screen, struct ava_error *err)
{
	uint64_t lsn = 0;
	int rv = *c != NULL ? 0 : api_open(true, c, err);

	if (rv == 0) {
		client_set_interrupt(*c, &woken);
		rv = w->load(*c, &lsn, w->user, err);
	}
	if (rv == 0 && screen)
		picture(w, NULL);
	else if (rv == 0)
		w->lines(w->user);
	if (rv == 0 && !screen && fflush(stdout) != 0)
		return 1; /* nobody reads any more */
	if (rv == 0 && w->ended(w->user))
		return 1;
	if (rv == 0)
		rv = listen(*c, lsn, screen ? SCREEN_MS : LINES_MS, err);
	return rv == AVA_ECANCELED ? 0 : rv;
}

static int rounds(const struct watch *w, struct client **c, bool screen, struct ava_error *err)
{
	for (;;) {
		int rv;

		woken = 0;
		if (fatal)
			return 0;
		if (suspended)
			suspend(screen);
		rv = round_once(w, c, screen, err);
		if (rv == 0)
			continue;
		if (rv > 0 || !follow_may_come_back(rv))
			return rv > 0 ? 0 : rv;
		client_close(*c);
		*c = NULL;
		if (screen)
			picture(w, err->text);
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
	}
}

int watch_run(const struct watch *w, struct client **c)
{
	bool screen = !w->plain && term_redraws(stdout);
	struct ava_error err = {0};
	int rv;

	catch_signals(on_signal);
	if (screen)
		enter();
	rv = rounds(w, c, screen, &err);
	if (screen) {
		leave();
		if (rv == 0 && !fatal && *c != NULL) { /* its end stays readable */
			struct page p = {.f = stdout, .columns = term_width(stdout), .end = "\n"};

			w->draw(&p, w->user);
		}
	}
	catch_signals(SIG_DFL);
	if (fatal && fatal != SIGINT)
		raise(fatal);
	return rv == 0 ? CLI_DONE : cli_fail(&err);
}
