/* Notices of a terminal; front.h. A terminal that is asked to (CSI ? 1004 h) sends CSI I and CSI O
 * as it comes to the front and leaves it. These are keys: where ava does not read what is typed,
 * they would lie there for the next program, so nothing is asked there, and only terminals that
 * themselves hold back the notices of a window in front get one.
 *
 * Nothing can fail: a terminal that does not know the notice passes over it. */
#include "cli/front.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cli/term.h"

#define TEXT_MAX 160 /* bytes */

static enum { FRONT_UNKNOWN, FRONT_YES, FRONT_NO } front;

/* Terminals by what TERM begins with, and how a notice begins for them. */
static const struct front_form {
	const char *term, *begin;
	bool holds; /* it shows none while its window is in front */
} forms[] = {
	{"xterm-kitty", "99;o=unfocused;ava: ", true},
	{"foot", "777;notify;ava;", true},
	{"rxvt-unicode", "777;notify;ava;", false},
	{"", "9;ava: ", false},
};

void front_watch(bool on)
{
	if (term_extras(stdout))
		fputs(on ? "\033[?1004h" : "\033[?1004l", stdout);
}

void front_seen(bool in_front)
{
	front = in_front ? FRONT_YES : FRONT_NO;
}

static bool begins(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

void front_tell(FILE *f, const char *fmt, ...)
{
	const char *term = getenv("TERM");
	const struct front_form *form = forms;
	char text[TEXT_MAX];
	bool within;
	va_list ap;

	if (!term_extras(f))
		return;
	within = getenv("TMUX") != NULL && (begins(term, "tmux") || begins(term, "screen"));
	while (!begins(term, form->term))
		form++;
	if (front == FRONT_YES || (front == FRONT_UNKNOWN && !form->holds))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (char *c = text; *c != '\0'; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	/* tmux drops a notice that is not for the terminal around it by name, and that one, too,
	 * unless its person allows it (allow-passthrough). */
	fprintf(f, within ? "\033Ptmux;\033\033]%s%s\033\033\\\033\\" : "\033]%s%s\033\\",
		form->begin, text);
	fflush(f);
}
