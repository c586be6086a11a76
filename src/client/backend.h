/* What stands behind the calls of include/ava.h: one table of operations, of
 * which there are two, the runtime itself (api/embedded.h) and a daemon
 * (client/remote.h). The front (api/) checks arguments, waits, and calls
 * callbacks; it does not know which of the two it has. */
#ifndef CLIENT_BACKEND_H
#define CLIENT_BACKEND_H

#include <stdbool.h>

#include <ava.h>
#include "base/arena.h"
#include "base/buf.h"

/* What a call gives back: strings and rows that live until the next call on
 * the runtime. Growing fails silently; answer_check tells. */
struct answer {
	struct arena mem;
	struct buf rows; /* structs of one kind, one behind the other */
	bool failed;
};
void answer_init(struct answer *a);
void answer_fini(struct answer *a);
void answer_reset(struct answer *a);
/* NUL-terminated copies, never NULL; `s` NULL: "". */
const char *answer_str(struct answer *a, const char *s);
const char *answer_strn(struct answer *a, const char *s, size_t len);
void answer_row(struct answer *a, const void *row, size_t size);
int answer_check(const struct answer *a, struct ava_error *err); /* 0, AVA_ENOMEM */

struct backend_item { /* of a cursor; borrowed until its next call */
	bool is_text; /* text of a conversation, else a line of a log */
	const char *line;
	size_t len;
	struct ava_text text;
};

struct backend_cursor { /* the first member of what it really is */
	struct backend *backend;
};

struct backend {
	const struct backend_ops *ops;
	bool woken; /* a cursor may have more, which no descriptor tells */
};

/* Ids are checked and not empty. `out` was emptied before. All return 0 or a
 * negative code with its sentence; err is never NULL. */
struct backend_ops {
	void (*close)(struct backend *b);
	int (*fd)(struct backend *b);
	int (*timeout)(struct backend *b); /* ms, -1: none */
	/* Let things move for at most `timeout_ms` (-1: until something does). */
	int (*step)(struct backend *b, int timeout_ms, struct ava_error *err);

	int (*propose)(struct backend *b, const struct ava_spawn *s, struct answer *out,
		       struct ava_proposal *p, struct ava_error *err);
	int (*propose_group)(struct backend *b, const struct ava_spawn_group *g, struct answer *out,
			     struct ava_proposal *p, struct ava_error *err);
	/* Rows: struct ava_run; the front puts them into *g. */
	int (*group)(struct backend *b, const char *id, struct answer *out, struct ava_group *g,
		     struct ava_error *err);
	int (*resume)(struct backend *b, const char *run, const struct ava_resume *r,
		      struct answer *out, struct ava_proposal *p, struct ava_error *err);
	/* Rows: struct ava_difference; the front puts them into *r. */
	int (*replay)(struct backend *b, const char *run, bool lenient, struct answer *out,
		      struct ava_replay *r, struct ava_error *err);
	int (*spawn)(struct backend *b, const struct ava_spawn *s, struct ava_run_id *id,
		     struct ava_error *err);
	int (*confirm)(struct backend *b, const char *id, const char *words, struct answer *out,
		       struct ava_proposal *p, struct ava_error *err);
	int (*reject)(struct backend *b, const char *id, const char *reason, struct answer *out,
		      struct ava_proposal *p, struct ava_error *err);
	/* Rows: struct ava_proposal. */
	int (*proposals)(struct backend *b, bool all, struct answer *out, struct ava_error *err);

	int (*status)(struct backend *b, const char *run, struct answer *out, struct ava_run *r,
		      struct ava_error *err);
	/* Rows: struct ava_run. */
	int (*runs)(struct backend *b, bool all, size_t limit, struct answer *out,
		    struct ava_error *err);
	/* AVA_ETIMEOUT: it has not ended. */
	int (*result)(struct backend *b, const char *run, struct answer *out, const char **json,
		      size_t *len, struct ava_error *err);
	int (*cancel)(struct backend *b, const char *run, struct ava_error *err);
	/* `request` and `call` may be NULL. */
	int (*steer)(struct backend *b, const char *run, const char *request, const char *text,
		     const char *call, struct ava_error *err);

	int (*checkpoint)(struct backend *b, const char *run, const char *name,
			  struct ava_error *err);

	int (*session_new)(struct backend *b, const struct ava_session_options *o,
			   struct ava_session_id *id, struct ava_error *err);
	/* `request` NULL: none was given. */
	int (*say)(struct backend *b, const char *session, const char *request, const char *text,
		   char entry[24], struct ava_error *err);
	/* Rows: struct ava_session. */
	int (*sessions)(struct backend *b, size_t limit, struct answer *out, struct ava_error *err);
	/* Rows: struct ava_line. */
	int (*entries)(struct backend *b, const char *session, const char *after,
		       struct answer *out, struct ava_error *err);
	int (*session_stop)(struct backend *b, const char *session, struct ava_error *err);

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
