/* The two backends of include/ava.h's calls, the runtime itself(api/embedded.c) and a
 * daemon (client/remote.h), share this face: verbs with JSON in and JSON out
 * (doc/api.yaml), and cursors over events. The front (api/) checks arguments, writes and
 * reads the JSON, waits, and calls callbacks; it does not know which of the two it has. */
#ifndef CLIENT_BACKEND_H
#define CLIENT_BACKEND_H

#include <stdbool.h>

#include <ava.h>
#include "base/buf.h"
#include "base/list.h"

struct backend_item { /* borrowed from a cursor until its next call */
	bool is_text; /* text of a conversation, else a line of a log */
	const char *line;
	size_t len;
	struct ava_text text;
};

/* Items that wait for a cursor's reader. */
struct backend_queue {
	struct list items;
	size_t n;
	struct backend_node *given; /* what the reader borrows */
};
/* A copy with its bytes; 0, AVA_ENOMEM. */
int backend_put(struct backend_queue *q, const struct backend_item *what);
/* 1: *item, until the next call; 0: none. */
int backend_take(struct backend_queue *q, struct backend_item *item);
void backend_queue_fini(struct backend_queue *q);

struct backend_cursor { /* first member of the backend's own struct */
	struct backend *backend;
};

struct backend {
	const struct backend_ops *ops;
	bool woken; /* a cursor may have more, which no descriptor tells */
};

/* All return 0 or a negative code with its sentence; err is never NULL. */
struct backend_ops {
	void (*close)(struct backend *b);
	int (*fd)(struct backend *b);
	int (*timeout)(struct backend *b); /* ms, -1: none */
	/* Let things move for at most `timeout_ms` (-1: until something does). */
	int (*step)(struct backend *b, int timeout_ms, struct ava_error *err);

	/* The verb of that row: `path` as in doc/api.yaml, `id` for its {id} (checked; NULL:
	 * it has none), `args` a JSON object. `reply` (empty) gets the JSON, *status the
	 * HTTP status of an answer that is no error. */
	int (*call)(struct backend *b, const char *method, const char *path, const char *id,
		    const char *args, struct buf *reply, int *status, struct ava_error *err);

	int (*cursor_open)(struct backend *b, const struct ava_events_query *q,
			   struct backend_cursor **cur, struct ava_error *err);
	/* 1: *item; 0: none now. After an error it goes on behind the last item. */
	int (*cursor_next)(struct backend_cursor *cur, struct backend_item *item,
			   struct ava_error *err);
	bool (*cursor_ended)(const struct backend_cursor *cur);
	/* 1: cursor_next may give something; 0: `timeout_ms` have passed. */
	int (*cursor_wait)(struct backend_cursor *cur, int timeout_ms, struct ava_error *err);
	void (*cursor_close)(struct backend_cursor *cur);
};

#endif
