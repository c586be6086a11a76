/* Lines; line.h. The plain kind is here: the terminal itself lets its line be
 * edited, and nothing is ever written over.
 *
 * What can fail: reading, memory. */
#include "cli/line.h"

#include <ava.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/line_edit.h"
#include "cli/line_input.h"

struct line {
	struct line_hooks hooks;
	struct line_edit *edit; /* NULL: plain */
	struct buf in;          /* read and not yet taken */
	struct buf text;
	sigset_t before; /* signals let through before us */
};

bool line_is_plain(void)
{
	const char *term = getenv("TERM"), *plain = getenv("AVA_PLAIN");

	return term == NULL || term[0] == '\0' || strcmp(term, "dumb") == 0 ||
	       (plain != NULL && plain[0] != '\0' && strcmp(plain, "0") != 0);
}

int line_open(struct line **out, const struct line_hooks *hooks, struct ava_error *err)
{
	struct line *l = calloc(1, sizeof(*l));
	int rv = 0;

	*out = NULL;
	if (l == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	l->hooks = *hooks;
	line_input_begin(&l->before);
	buf_init(&l->in, LINE_TEXT_MAX + 4096);
	buf_init(&l->text, LINE_TEXT_MAX + 4096);
	if (!line_is_plain())
		rv = line_edit_open(&l->edit, hooks, err);
	if (rv != 0) {
		line_close(l);
		return rv;
	}
	*out = l;
	return 0;
}

void line_close(struct line *l)
{
	if (l == NULL)
		return;
	line_edit_close(l->edit);
	line_input_end(&l->before);
	buf_fini(&l->in);
	buf_fini(&l->text);
	free(l);
}

/* Take the first line of what was read. */
static bool take_line(struct line *l)
{
	const char *nl = l->in.len > 0 ? memchr(l->in.data, '\n', l->in.len) : NULL;
	size_t len;

	if (nl == NULL)
		return false;
	len = (size_t)(nl - l->in.data);
	buf_reset(&l->text);
	buf_add(&l->text, l->in.data, len);
	buf_drop(&l->in, len + 1);
	return true;
}

/* 1: bytes came; 0: the end; a code. */
static int read_some(struct line *l, struct ava_error *err)
{
	char data[4096];
	ssize_t n = read(STDIN_FILENO, data, sizeof(data));

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 1 : err_sys(err, "read the terminal");
	if (n == 0)
		return 0;
	if (buf_add(&l->in, data, (size_t)n) != 0)
		return err_set(err, AVA_ETOOBIG, "the line is too long");
	return 1;
}

static void show(struct line *l, const char *prompt, bool interrupted)
{
	putchar('\n'); /* behind the prompt and what was typed */
	if (interrupted)
		l->hooks.interrupt(l->hooks.user);
	else
		l->hooks.show(l->hooks.user);
	fputs(prompt, stdout);
	fflush(stdout);
}

static int read_plain(struct line *l, const char *prompt, struct ava_error *err)
{
	int rv = 1;

	fputs(prompt, stdout);
	fflush(stdout);
	while (rv == 1 && !take_line(l)) {
		switch (line_input_wait(&l->hooks, -1, false)) {
		case LINE_WOKEN_INPUT:
			rv = read_some(l, err);
			break;
		case LINE_WOKEN_SHOW:
			show(l, prompt, false);
			break;
		case LINE_WOKEN_INTERRUPT:
			show(l, prompt, true);
			break;
		case LINE_WOKEN_SUSPEND:
			raise(SIGSTOP);
			break;
		case LINE_WOKEN_END:
			rv = err_set(err, AVA_ECANCELED, "asked to end");
			break;
		case LINE_WOKEN_RESIZE:
		case LINE_WOKEN_TIME:
			break;
		}
	}
	if (rv != 1)
		putchar('\n');
	return rv;
}

int line_read(struct line *l, const char *prompt, const char **text, struct ava_error *err)
{
	int rv;

	if (l->edit != NULL)
		return line_edit_read(l->edit, prompt, text, err);
	rv = read_plain(l, prompt, err);
	*text = l->text.data != NULL ? l->text.data : "";
	return rv;
}
