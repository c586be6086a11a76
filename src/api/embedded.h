/* The embedded half of libava: struct backend over the runtime itself. */
#ifndef API_EMBEDDED_H
#define API_EMBEDDED_H

#include <signal.h>

#include "ava/config.h"
#include "client/backend.h"
#include "os/lock.h"

struct core;
struct os_loop;
struct redact;

struct embedded {
	struct backend b;
	struct config config;
	struct lock lock;
	int root_fd;
	struct os_loop *loop;
	struct redact *redact;
	struct core *core;
	char user_id[64];
	void (*log)(const char *line, void *user);
	void *log_user;
};

/* Codes as ava_runtime_new. `o` was checked to have a root. */
int embedded_open(const struct ava_options *o, struct backend **out, struct ava_error *err);

/* ---- for its own files */
static inline struct embedded *embedded_of(struct backend *b)
{
	return (struct embedded *)b; /* its first member */
}
/* One turn of the loop. */
void embedded_step(struct embedded *e, int timeout_ms);

/* embedded_runs.c */
int embedded_propose(struct backend *b, const struct ava_spawn *s, struct answer *out,
		     struct ava_proposal *p, struct ava_error *err);
int embedded_propose_group(struct backend *b, const struct ava_spawn_group *g, struct answer *out,
			   struct ava_proposal *p, struct ava_error *err);
int embedded_resume(struct backend *b, const char *run, const struct ava_resume *r,
		    struct answer *out, struct ava_proposal *p, struct ava_error *err);
int embedded_replay(struct backend *b, const char *run, bool lenient, struct answer *out,
		    struct ava_replay *r, struct ava_error *err);
int embedded_group(struct backend *b, const char *id, struct answer *out, struct ava_group *g,
		   struct ava_error *err);
int embedded_spawn(struct backend *b, const struct ava_spawn *s, struct ava_run_id *id,
		   struct ava_error *err);
int embedded_confirm(struct backend *b, const char *id, const char *words, struct answer *out,
		     struct ava_proposal *p, struct ava_error *err);
int embedded_reject(struct backend *b, const char *id, const char *reason, struct answer *out,
		    struct ava_proposal *p, struct ava_error *err);
int embedded_proposals(struct backend *b, bool all, struct answer *out, struct ava_error *err);
int embedded_status(struct backend *b, const char *run, struct answer *out, struct ava_run *r,
		    struct ava_error *err);
int embedded_runs(struct backend *b, bool all, size_t limit, struct answer *out,
		  struct ava_error *err);
int embedded_result(struct backend *b, const char *run, struct answer *out, const char **json,
		    size_t *len, struct ava_error *err);
int embedded_cancel(struct backend *b, const char *run, struct ava_error *err);
int embedded_steer(struct backend *b, const char *run, const char *request, const char *text,
		   const char *call, struct ava_error *err);
int embedded_checkpoint(struct backend *b, const char *run, const char *name,
			struct ava_error *err);

/* embedded_talk.c */
int embedded_session_new(struct backend *b, const struct ava_session_options *o,
			 struct ava_session_id *id, struct ava_error *err);
int embedded_say(struct backend *b, const char *session, const char *request, const char *text,
		 char entry[24], struct ava_error *err);
int embedded_sessions(struct backend *b, size_t limit, struct answer *out, struct ava_error *err);
int embedded_entries(struct backend *b, const char *session, const char *after, struct answer *out,
		     struct ava_error *err);
int embedded_session_stop(struct backend *b, const char *session, struct ava_error *err);

/* embedded_cursor.c */
int embedded_cursor_open(struct backend *b, const struct ava_events_query *q,
			 struct backend_cursor **cur, struct ava_error *err);
int embedded_cursor_next(struct backend_cursor *cur, struct backend_item *item,
			 struct ava_error *err);
bool embedded_cursor_ended(const struct backend_cursor *cur);
int embedded_cursor_wait(struct backend_cursor *cur, int timeout_ms, struct ava_error *err);
void embedded_cursor_close(struct backend_cursor *cur);

#endif
