/* Lines edited with libedit (line.h). */
#ifndef CLI_LINE_EDIT_H
#define CLI_LINE_EDIT_H

#include "cli/line.h"

struct line_edit;

int line_edit_open(struct line_edit **l, const struct line_hooks *hooks, struct ava_error *err);
void line_edit_close(struct line_edit *l); /* NULL is fine */
int line_edit_read(struct line_edit *l, const char *prompt, const char **text,
		   struct ava_error *err);

#endif
