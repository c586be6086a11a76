/* Messages to the editor, a line of JSON each; acp_send.h.
 *
 * What can fail: memory, and then nothing of the message is written; the editor, which reads no
 * more: a->gone says so, and nothing more is written. */
#include "cli/acp_send.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "codec/jsonrpc.h"
#include "codec/utf8.h"

#define SENT_MAX (ACP_TEXT_MAX * 16)

bool acp_wait(const struct acp *a, struct pollfd *fds, nfds_t n, int64_t until_ms)
{
	int64_t left = MAX(until_ms - clock_mono_ms(), 0);
	struct timespec t = {left / 1000, left % 1000 * 1000000};
	sigset_t all, before;
	int ready = 0;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	if (!*a->stopped)
		ready = ppoll(fds, n, until_ms == INT64_MAX ? NULL : &t, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return ready > 0;
}

/* Writes at most what a pipe takes at once, so that a signal ends the wait for an editor that does
 * not read. */
void acp_send(struct acp *a, json_t *message)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
	struct buf b;
	size_t at = 0;
	ssize_t n;
	bool whole;

	buf_init(&b, SENT_MAX);
	whole = rpc_line(&b, message) == 0;
	while (whole && !a->gone && at < b.len) {
		n = 0;
		if (acp_wait(a, &out, 1, INT64_MAX))
			n = write(STDOUT_FILENO, b.data + at, MIN(b.len - at, (size_t)PIPE_BUF));
		at += (size_t)MAX(n, 0);
		a->gone = (n == 0 && *a->stopped) || (n < 0 && errno != EINTR && errno != EAGAIN);
	}
	buf_fini(&b);
}

json_t *acp_title(const char *text, size_t chars)
{
	size_t n = utf8_prefix(text, strlen(text), chars);
	char line[4 * ACP_ASK_CHARS + sizeof("…")];

	snprintf(line, sizeof(line), "%.*s%s", (int)n, text, text[n] != '\0' ? "…" : "");
	for (char *at = line; (at = strchr(at, '\n')) != NULL;)
		*at = ' ';
	return json_shown(line);
}

static json_t *block(json_t *text)
{
	return json_pack("{s:s,s:o}", "type", "text", "text", text);
}

json_t *acp_block(const char *text)
{
	return block(json_shown(text));
}

/* Two blanks end each line, since editors read Markdown, where a newline alone is a blank. */
json_t *acp_content(const char *text)
{
	json_t *content = NULL;
	struct buf b;
	size_t n;

	buf_init(&b, ACP_TEXT_MAX * 2);
	for (; *text; text += n) {
		n = strcspn(text, "\n");
		buf_add(&b, text, n);
		if (text[n] == '\n') {
			buf_adds(&b, "  \n");
			n++;
		}
	}
	if (b.len > 0 && buf_check(&b) == 0)
		content = json_pack("[{s:s,s:o}]", "type", "content", "content",
				    block(json_shown(b.data)));
	buf_fini(&b);
	return content;
}
