/* The ready line of a daemon that was started by a client.
 *
 * Happy path: avad writes "ok\n" once it serves; the client reads it and
 * connects. What can fail: avad cannot start and says why, or dies without a
 * word, or takes too long. */
#include "base/ready.h"

#include <ava.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"

void ready_tell(int fd, int code, const char *sentence)
{
	char line[700];
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	int n;

	if (fd < 0)
		return;
	if (code == 0)
		n = snprintf(line, sizeof(line), "ok\n");
	else
		n = snprintf(line, sizeof(line), "%s: %.600s\n", err_word(code), sentence);
	sigaction(SIGPIPE, &ignore, &before); /* no signal when the starter has given up */
	while (write(fd, line, (size_t)n) < 0 && errno == EINTR)
		;
	sigaction(SIGPIPE, &before, NULL);
	close(fd);
}

int ready_wait(int fd, long long deadline_ms, bool (*go_on)(void *user), void *user,
	       struct ava_error *err)
{
	char line[700], *colon;
	size_t len = 0;
	int code;

	while (len < sizeof(line) - 1) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		long long left = MAX(deadline_ms - clock_mono_ms(), 0ll);
		ssize_t n;

		if (go_on && !go_on(user))
			return err_set(err, AVA_ECANCELED, "interrupted");
		n = poll(&p, 1, (int)MIN(left, 100ll));
		/* Data in the pipe is taken, however late. */
		if (n <= 0 && left == 0)
			return err_set(err, AVA_ETIMEOUT, "no answer in time");
		if (n <= 0)
			continue; /* the loop checks the time again */
		n = read(fd, line + len, sizeof(line) - 1 - len);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
		if (memchr(line, '\n', len))
			break;
	}
	line[len] = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (len == 0)
		return err_set(err, AVA_EIO, "it ended without a word");
	if (strcmp(line, "ok") == 0)
		return 0;
	colon = strstr(line, ": ");
	code = colon ? err_code(line, (size_t)(colon - line)) : 0;
	if (code != 0)
		return err_set(err, code, "%s", colon + 2);
	return err_set(err, AVA_EIO, "%s", line);
}
