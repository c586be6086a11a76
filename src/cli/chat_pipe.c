/* A conversation over a pipe; chat_pipe.h.
 *
 * A turn is over when its end was seen behind our own message; when frames were
 * missed (the stream was not open yet), because the daemon says that Ava listens
 * and nothing waits, twice with a pause between.
 *
 * What can fail: the input (a line that is too long), the daemon for good. A
 * signal ends the program as any other; what runs goes on. */
#include "cli/chat_pipe.h"

#include <ava.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "cli/chat.h"
#include "cli/chat_commands.h"
#include "cli/chat_show.h"
#include "codec/json.h"

#define LINE_MAX_BYTES ((size_t)1 << 20)
#define LOOK_MS        400 /* between two looks at the conversation */

int chat_pipe_line(char **line, struct ava_error *err)
{
	size_t cap = 0;
	ssize_t n;

	*line = NULL;
	do {
		errno = 0;
		n = getline(line, &cap, stdin);
		if (n > (ssize_t)LINE_MAX_BYTES || n < 0)
			break;
		while (n > 0 && ((*line)[n - 1] == '\n' || (*line)[n - 1] == '\r'))
			(*line)[--n] = '\0';
	} while ((*line)[strspn(*line, " \t")] == '\0');
	if (n > 0 && n <= (ssize_t)LINE_MAX_BYTES)
		return 1;
	free(*line);
	*line = NULL;
	if (n > 0)
		return err_set(err, AVA_ETOOBIG, "a line of the input is over %zu bytes",
			       LINE_MAX_BYTES);
	return errno != 0 ? err_sys(err, "read the input") : 0;
}

/* Show what comes until `at_ms`; true as soon as something came. */
static bool wait_a_moment(struct chat *c, int64_t at_ms)
{
	struct pollfd p = {.fd = feed_fd(c->feed), .events = POLLIN};
	int64_t next = chat_next(c), end = next >= 0 && next < at_ms ? next : at_ms;

	int n = poll(&p, 1, (int)MAX(end - clock_mono_ms(), 0));

	chat_show(c);
	return n != 0;
}

/* What the daemon says: nothing goes on. 1, 0 or a code. */
static int is_quiet(struct chat *c, bool runs_too, struct ava_error *err)
{
	json_t *s = NULL;
	const char *status;
	int rv = chat_session(c, &s, err);

	if (rv == 0) {
		status = json_get_str(s, "status");
		rv = status != NULL && strcmp(status, "idle") == 0 &&
		     json_get_int(s, "waiting", 0) == 0 &&
		     (!runs_too || json_get_int(s, "live_runs", 0) == 0);
	}
	json_decref(s);
	return rv;
}

/* Until Ava has answered; with `runs_too` until nothing is left to wait for. */
static int wait_until_quiet(struct chat *c, bool runs_too, struct ava_error *err)
{
	unsigned quiet = 0;
	int rv;

	while (quiet < 2 && !c->gone) {
		if (c->turns > 0 && !c->busy && !runs_too && c->nheld == 0)
			return 0;
		if (wait_a_moment(c, clock_mono_ms() + LOOK_MS) || c->lost) {
			quiet = 0;
			continue;
		}
		rv = is_quiet(c, runs_too, err);
		if (rv < 0)
			return rv;
		quiet = rv == 1 ? quiet + 1 : 0;
	}
	c->busy = false;
	chat_show(c);
	return 0;
}

static int take_line(struct chat *c, const char *line, bool *leave, struct ava_error *err)
{
	int rv;

	switch (chat_command(c, line)) {
	case CHAT_LEAVES:
		*leave = true;
		return 0;
	case CHAT_DONE:
		fflush(stdout);
		return 0;
	case CHAT_SAYS:
		break;
	}
	rv = chat_say(c, line, err);
	return rv == 0 ? wait_until_quiet(c, false, err) : rv;
}

int chat_pipe(struct chat *c, const char *first, struct ava_error *err)
{
	bool leave = false;
	char *line = NULL;
	int rv = take_line(c, first, &leave, err);

	while (rv == 0 && !leave && !c->gone) {
		int more = chat_pipe_line(&line, err);

		if (more != 1) {
			rv = more;
			break;
		}
		rv = take_line(c, line, &leave, err);
		free(line);
	}
	if (rv == 0 && !leave)
		rv = wait_until_quiet(c, true, err);
	return rv;
}
