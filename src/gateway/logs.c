/* Questions to the logs over HTTP; logs.h.
 *
 * Happy path: the query arguments are copied, a thread of the pool opens the
 * files and writes the answer's JSON, the loop sends it. A question may have
 * to read gigabytes, so few are asked at a time, and the loop never reads.
 * Lines go out as they stand in the files: an event is JSON.
 *
 * What can fail: an argument that is wrong (400), no such run (404), too many
 * questions at once (503, to be asked again). Broken lines do not fail it:
 * they are named in the answer. */
#include "gateway/logs.h"

#include <ava.h>
#include <stdlib.h>
#include <string.h>

#include "ava/ops.h"
#include "ava/state.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "gateway/reply.h"
#include "gateway/routes.h"
#include "net/http_server.h"
#include "os/loop.h"

#define ANSWER_MAX ((size_t)16 << 20) /* events stop before this */
#define BROKEN_MAX 100                /* named; the rest is counted */
#define VALUE_MAX  4096

enum {
	ARG_RUN,
	ARG_TYPE,
	ARG_SINCE,
	ARG_UNTIL,
	ARG_AGENT,
	ARG_USER,
	ARG_SESSION,
	ARG_SEARCH,
	ARG_REGEX,
	ARG_AFTER,
	ARG_LIMIT,
	ARGS
};

static const char *const names[ARGS] = {"run",     "type",   "since", "until", "agent", "user",
					"session", "search", "regex", "after", "limit"};

struct job {
	struct os_work work;
	struct routes *routes;
	struct kept *kept;
	char *args[ARGS]; /* owned copies; NULL: not given */
	char *root;       /* owned */
	uint64_t after, limit;
	struct buf body; /* the answer */
	int rv;
	struct ava_error err;
};

static void job_free(struct job *j)
{
	for (size_t i = 0; i < ARGS; i++)
		free(j->args[i]);
	free(j->root);
	buf_fini(&j->body);
	free(j);
}

/* ---- arguments */

static int take_arg(const char *name, const char *value, void *user)
{
	struct job *j = user;
	size_t i = 0;

	while (i < ARGS && strcmp(names[i], name) != 0)
		i++;
	if (i == ARGS)
		return err_set(&j->err, AVA_EINVAL,
			       "unknown argument %.60s: this path takes run, type, since, until, "
			       "agent, user, session, search, regex, after, limit",
			       name);
	if (j->args[i] != NULL)
		return err_set(&j->err, AVA_EINVAL, "%s is given twice", name);
	if (strlen(value) > VALUE_MAX)
		return err_set(&j->err, AVA_EINVAL, "%s has more than %d bytes", name, VALUE_MAX);
	j->args[i] = strdup(value);
	return j->args[i] != NULL ? 0 : err_set(&j->err, AVA_ENOMEM, "out of memory");
}

static int number(struct job *j, int arg, uint64_t least, uint64_t most, uint64_t *out)
{
	const char *s = j->args[arg];
	uint64_t n = 0;

	if (s == NULL)
		return 0;
	for (; *s >= '0' && *s <= '9' && n <= (INT64_MAX - 9) / 10; s++)
		n = n * 10 + (uint64_t)(*s - '0');
	if (*s != '\0' || s == j->args[arg] || n < least || n > most)
		return err_set(&j->err, AVA_EINVAL,
			       "%s is \"%.40s\"; it must be a whole number from %llu to %llu",
			       names[arg], j->args[arg], (unsigned long long)least,
			       (unsigned long long)most);
	*out = n;
	return 0;
}

static int read_args(struct job *j, struct http_request *req)
{
	int rv = http_query_each(req, take_arg, j);

	if (rv == 0)
		rv = number(j, ARG_AFTER, 0, INT64_MAX - 1, &j->after);
	j->limit = 100;
	if (rv == 0)
		rv = number(j, ARG_LIMIT, 1, LOGS_LIMIT_MAX, &j->limit);
	return rv;
}

/* ---- on a thread of the pool */

struct answer {
	struct job *job;
	struct jw w;
	char *broken[BROKEN_MAX]; /* owned */
	uint64_t nbroken, events, last;
	bool more;
};

static void note_broken(struct answer *a, const struct ava_error *err)
{
	if (a->nbroken < BROKEN_MAX)
		a->broken[a->nbroken] = strdup(err->text); /* NULL: counted all the same */
	a->nbroken++;
}

static int write_events(struct answer *a, struct ava_log *log)
{
	struct job *j = a->job;
	struct ava_log_event e;
	int rv;

	if (log == NULL) /* nothing has been logged yet */
		return 0;
	while ((rv = ava_log_next(log, &e, &j->err)) != 0) {
		if (rv == AVA_ECORRUPT) {
			note_broken(a, &j->err);
			continue;
		}
		if (rv < 0)
			return rv;
		a->more = a->events == j->limit ||
			  (a->events > 0 && j->body.len + e.len > ANSWER_MAX);
		if (a->more)
			return 0;
		jw_raw(&a->w, NULL, e.line, e.len);
		a->events++;
		a->last = e.lsn;
	}
	return 0;
}

static int write_answer(struct answer *a, struct ava_log *log)
{
	struct buf *b = &a->job->body;
	int rv;

	jw_init(&a->w, b);
	jw_object(&a->w, NULL);
	jw_array(&a->w, "events");
	rv = write_events(a, log);
	if (rv != 0)
		return rv;
	jw_end(&a->w);
	jw_int(&a->w, "next", (int64_t)(a->events > 0 ? a->last : a->job->after));
	jw_bool(&a->w, "more", a->more);
	jw_int(&a->w, "brokenLines", (int64_t)a->nbroken);
	jw_array(&a->w, "broken");
	for (uint64_t i = 0; i < MIN(a->nbroken, (uint64_t)BROKEN_MAX); i++)
		jw_str(&a->w, NULL, a->broken[i]);
	jw_end(&a->w);
	jw_end(&a->w);
	rv = buf_check(b);
	return rv == 0 ? 0 : err_set(&a->job->err, rv, "the answer would be too big: ask for less");
}

static void ask(struct os_work *w)
{
	struct job *j = w->priv;
	struct answer a = {.job = j};
	struct ava_log_query q = {
		.root = j->root,
		.run = j->args[ARG_RUN],
		.everything = j->args[ARG_RUN] == NULL,
		.types = j->args[ARG_TYPE],
		.since = j->args[ARG_SINCE],
		.until = j->args[ARG_UNTIL],
		.agent = j->args[ARG_AGENT],
		.user = j->args[ARG_USER],
		.session = j->args[ARG_SESSION],
		.search = j->args[ARG_SEARCH],
		.regex = j->args[ARG_REGEX],
		.after = j->after,
		.last = j->args[ARG_AFTER] == NULL ? j->limit : 0,
	};
	struct ava_log *log;

	j->rv = ava_log_open(&log, &q, &j->err);
	if (j->rv == 0 || (j->rv == AVA_ENOENT && q.run == NULL))
		j->rv = write_answer(&a, log);
	ava_log_close(log);
	for (size_t i = 0; i < BROKEN_MAX; i++)
		free(a.broken[i]);
}

/* ---- on the loop */

static void answered(struct os_work *w)
{
	struct job *j = w->priv;

	j->routes->log_jobs--;
	if (j->rv == 0)
		kept_reply(j->kept, 200, &j->body);
	else
		kept_error(j->kept, j->rv, &j->err);
	job_free(j);
}

void logs_start(struct routes *r, struct http_request *req)
{
	struct job *j = calloc(1, sizeof(*j));
	struct op_health h;
	int rv;

	if (j == NULL) {
		reply_error(r, req, AVA_ENOMEM, NULL);
		return;
	}
	buf_init(&j->body, 2 * ANSWER_MAX + ((size_t)64 << 20));
	ops_health(r->core, &h);
	j->root = strdup(h.root);
	rv = j->root == NULL ? AVA_ENOMEM : read_args(j, req);
	if (rv == 0 && r->log_jobs >= LOGS_JOBS)
		rv = err_set(&j->err, AVA_EBUSY, "%d questions are being answered: ask again",
			     LOGS_JOBS);
	if (rv != 0) {
		reply_error(r, req, rv, j->err.text);
		job_free(j);
		return;
	}
	j->kept = kept_new(r, req);
	if (j->kept == NULL) { /* answered */
		job_free(j);
		return;
	}
	r->log_jobs++;
	j->routes = r;
	j->work = (struct os_work){.work = ask, .done = answered, .priv = j};
	os_work_start(r->core->loop, &j->work);
	kept_returned(j->kept);
}
