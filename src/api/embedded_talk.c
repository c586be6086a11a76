/* Conversations of an embedded runtime: verbs of ava/sessions.h, turned into
 * calls that wait as those of embedded_runs.c do. What can fail: ids that do
 * not exist, models and folders that cannot be had, the disk. */
#include <stdio.h>
#include <string.h>

#include "api/embedded.h"
#include "ava/sessions.h"
#include "base/error.h"

struct pending {
	char *to;
	size_t size;
	struct ava_error *err;
	bool done;
	int rv;
};

static int finish(struct embedded *e, struct pending *p)
{
	while (!p->done)
		embedded_step(e, -1);
	return p->rv;
}

static void answered(struct pending *p, int rv, const char *id, const struct ava_error *err)
{
	p->done = true;
	p->rv = rv;
	if (rv != 0)
		err_set(p->err, rv, "%s", err && err->text[0] ? err->text : ava_strerror(rv));
	else
		snprintf(p->to, p->size, "%s", id);
}

static void session_done(int rv, const struct op_session *s, const struct ava_error *err,
			 void *user)
{
	answered(user, rv, rv == 0 ? s->id : NULL, err);
}

int embedded_session_new(struct backend *b, const struct ava_session_options *o,
			 struct ava_session_id *id, struct ava_error *err)
{
	struct embedded *e = embedded_of(b);
	struct pending p = {.to = id->text, .size = sizeof(id->text), .err = err};
	struct op_session_new n = {.cwd = o->cwd, .model = o->model, .user_id = e->user_id};

	ops_session_new(e->core, &n, session_done, &p);
	return finish(e, &p);
}

static void said_done(int rv, const char *entry, const struct ava_error *err, void *user)
{
	answered(user, rv, entry, err);
}

int embedded_say(struct backend *b, const char *session, const char *request, const char *text,
		 char entry[24], struct ava_error *err)
{
	struct embedded *e = embedded_of(b);
	struct pending p = {.to = entry, .size = 24, .err = err};
	struct op_say say = {.text = text, .user_id = e->user_id, .request_id = request};

	ops_say(e->core, session, &say, said_done, &p);
	return finish(e, &p);
}

static void add_session(const struct op_session *s, void *user)
{
	struct answer *out = user;
	struct ava_session row = {
		.id = answer_str(out, s->id),
		.title = answer_str(out, s->title),
		.cwd = answer_str(out, s->cwd),
		.user = answer_str(out, s->user_id),
		.model = answer_str(out, s->model),
		.created_ms = s->created_ms,
		.updated_ms = s->updated_ms,
		.tokens = s->tokens,
		.cost_microusd = s->cost_microusd,
		.live_runs = s->live_runs,
		.waiting = s->waiting,
		.busy = s->busy,
	};

	answer_row(out, &row, sizeof(row));
}

int embedded_sessions(struct backend *b, size_t limit, struct answer *out, struct ava_error *err)
{
	int rv = ops_sessions(embedded_of(b)->core, limit, add_session, out);

	return rv >= 0 ? 0 : err_set(err, rv, "%s", ava_strerror(rv));
}

static void add_line(const char *line, size_t len, void *user)
{
	struct ava_line row = {.text = answer_strn(user, line, len), .len = len};

	answer_row(user, &row, sizeof(row));
}

int embedded_entries(struct backend *b, const char *session, const char *after, struct answer *out,
		     struct ava_error *err)
{
	return ops_session_entries(embedded_of(b)->core, session, after, add_line, out, err);
}

int embedded_session_stop(struct backend *b, const char *session, struct ava_error *err)
{
	return ops_session_stop(embedded_of(b)->core, session, err);
}
