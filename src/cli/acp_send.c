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
#include "codec/json.h"
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

/* `m` is *taken*. Not more is written at once than a pipe takes, so that a signal ends the wait for
 * an editor that does not read. */
static void send_message(struct acp *a, json_t *m)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
	struct buf b;
	size_t at = 0;
	ssize_t n;

	buf_init(&b, SENT_MAX);
	if (m != NULL && json_dump(&b, m) == 0)
		buf_addc(&b, '\n');
	while (m != NULL && buf_check(&b) == 0 && !a->gone && at < b.len) {
		n = 0;
		if (acp_wait(a, &out, 1, INT64_MAX))
			n = write(STDOUT_FILENO, b.data + at, MIN(b.len - at, (size_t)PIPE_BUF));
		at += (size_t)MAX(n, 0);
		a->gone = (n == 0 && *a->stopped) || (n < 0 && errno != EINTR && errno != EAGAIN);
	}
	buf_fini(&b);
	json_decref(m);
}

/* Every line of it ends with `nl`. */
static json_t *clean(const char *text, const char *nl)
{
	struct buf b;
	json_t *v = NULL;
	size_t n;

	buf_init(&b, ACP_TEXT_MAX * 2);
	for (; *text; text += n) {
		n = strcspn(text, "\n");
		utf8_terminal(&b, text, n, true);
		if (text[n] == '\n') {
			buf_adds(&b, nl);
			n++;
		}
	}
	if (buf_check(&b) == 0)
		v = json_stringn(b.data != NULL ? b.data : "", b.len);
	buf_fini(&b);
	return v;
}

json_t *acp_text(const char *text)
{
	return clean(text, "\n");
}

void acp_result(struct acp *a, const json_t *id, json_t *members)
{
	send_message(a, json_pack("{s:s,s:O,s:o}", "jsonrpc", "2.0", "id", id, "result", members));
}

void acp_refuse(struct acp *a, const json_t *id, int code, const char *message)
{
	send_message(a, json_pack("{s:s,s:O?,s:{s:i,s:o}}", "jsonrpc", "2.0", "id", id, "error",
				  "code", code, "message", acp_text(message)));
}

void acp_call(struct acp *a, int64_t id, const char *method, json_t *params)
{
	send_message(a, json_pack("{s:s,s:o*,s:s,s:o}", "jsonrpc", "2.0", "id",
				  id > 0 ? json_integer(id) : NULL, "method", method, "params",
				  params));
}

json_t *acp_title(const char *text, size_t chars)
{
	size_t n = utf8_prefix(text, strlen(text), chars);
	char line[4 * ACP_ASK_CHARS + sizeof("…")];

	snprintf(line, sizeof(line), "%.*s%s", (int)n, text, text[n] != '\0' ? "…" : "");
	for (char *at = line; (at = strchr(at, '\n')) != NULL;)
		*at = ' ';
	return acp_text(line);
}

static json_t *block(json_t *text)
{
	return json_pack("{s:s,s:o}", "type", "text", "text", text);
}

json_t *acp_block(const char *text)
{
	return block(acp_text(text));
}

/* In Markdown, which editors take it for, the end of a line alone is a blank. */
json_t *acp_content(const char *text)
{
	return text[0] == '\0' ? NULL
			       : json_pack("[{s:s,s:o}]", "type", "content", "content",
					   block(clean(text, "  \n")));
}
