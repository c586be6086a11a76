/* The lines of a conversation's file, as they stand there. */
#ifndef SESSION_LINES_H
#define SESSION_LINES_H

#include <stdlib.h>

#include "ava/state.h"
#include "ava/talk.h"
#include "base/sys.h"
#include "codec/jscan.h"

static inline void session_lines(struct core *c, const char *session,
				 void (*each)(const char *line, size_t len, void *user), void *user)
{
	struct session *s = strmap_get(&c->session_by_id, session);
	char *data = NULL;
	const char *line;
	size_t len = 0, at = 0, n;

	if (!s || !s->there ||
	    sys_read_file(c->root_fd, s->path, (size_t)64 << 20, &data, &len, NULL) != 0)
		return;
	while (jsonl_next(data, len, &at, &line, &n) == 1)
		each(line, n, user);
	free(data);
}

#endif
