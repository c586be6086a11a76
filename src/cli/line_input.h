/* What both kinds of line (line.h) stand on: waiting for a key, for something to
 * show, or for a signal. */
#ifndef CLI_LINE_INPUT_H
#define CLI_LINE_INPUT_H

#include <signal.h>

#include "cli/line.h"

enum line_woken {
	LINE_WOKEN_INPUT,     /* stdin is readable, or at its end */
	LINE_WOKEN_SHOW,      /* `wants` said yes */
	LINE_WOKEN_INTERRUPT, /* Ctrl-C */
	LINE_WOKEN_RESIZE,
	LINE_WOKEN_SUSPEND, /* Ctrl-Z */
	LINE_WOKEN_END,     /* SIGTERM, SIGHUP */
	LINE_WOKEN_TIME,    /* wait_ms is over */
};

/* Signals are caught from line_input_begin to line_input_end, and delivered only
 * while line_input_wait waits: one that comes between two lines is seen at the
 * next, and none finds the terminal as the editor needs it. One line at a time. */
void line_input_begin(sigset_t *before);
void line_input_end(const sigset_t *before);
/* wait_ms -1: as long as it takes. quiet: nothing is shown now. */
enum line_woken line_input_wait(const struct line_hooks *h, int wait_ms, bool quiet);

#endif
