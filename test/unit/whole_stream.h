/* Reading a stream of the daemon to its end, in tests; a program follows it (client/follow.h). */
#ifndef WHOLE_STREAM_H
#define WHOLE_STREAM_H

#include "client/client.h"

struct whole_stream {
	int (*on_event)(const struct sse_event *e, void *user);
	void *user;
	int stop; /* what on_event stopped with */
};

static inline int whole_stream_event(const struct sse_event *e, void *user)
{
	struct whole_stream *w = user;

	w->stop = w->on_event(e, w->user);
	return w->stop;
}

/* What on_event returned to stop, 0 at the end in order, or a code. */
static inline int whole_stream(struct client *c, const char *path, const char *last,
			       int (*on_event)(const struct sse_event *e, void *user), void *user,
			       struct ava_error *err)
{
	struct whole_stream w = {.on_event = on_event, .user = user};
	int rv = client_stream_open(c, path, last, whole_stream_event, &w, err);

	while (rv >= 0 && w.stop == 0 && !client_stream_done(c)) {
		rv = client_stream_take(c, err);
		if (rv == 0)
			rv = client_stream_wait(c, -1, err);
	}
	return w.stop != 0 ? w.stop : rv < 0 ? rv : 0;
}

#endif
