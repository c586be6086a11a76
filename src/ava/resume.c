/* A request to resume names a run and, if at all, what is to change. The other options are read
 * from the first line of that run's messages, which were confirmed then. The new run is quoted and
 * confirmed like any other, since it spends more.
 *
 * The loop only checks and builds: finding the place of a fork, which replays the record, and
 * making the first messages are two jobs (ava/job.h), however long the record is. A request
 * repeated meanwhile, with one request id, is done once.
 *
 * What can fail: there is no such run, it is at work, its messages are gone. */

#include <stdlib.h>
#include <string.h>

#include "ava/job.h"
#include "ava/state.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/id.h"
#include "codec/json.h"
#include "subagent/replay.h"
#include "subagent/resume.h"
#include "subagent/rights.h"

#define REQUEST_BYTES (8u << 20)

static bool resume_listed(const char *const *list, size_t n, const char *name)
{
	while (n-- > 0)
		if (strcmp(list[n], name) == 0)
			return true;
	return false;
}

/* A resumed run has the rights of the run before, or fewer: more needs a run of its own. */
static int check_within(const struct op_spawn *s, const struct op_spawn *was, struct ava_error *err)
{
	for (size_t i = 0; s->tools && i < s->ntools; i++)
		if (!resume_listed(was->tools, was->ntools, s->tools[i]))
			return err_set(err, AVA_EDENIED,
				       "%s had no tool %.60s, so a run that goes on from it has "
				       "none: begin a new run",
				       s->resume, s->tools[i]);
	for (size_t i = 0; s->grants && i < s->ngrants; i++)
		if (!resume_listed(was->grants, was->ngrants, s->grants[i]) &&
		    strcmp(s->grants[i], GRANT_ALL_THREE) != 0)
			return err_set(err, AVA_EDENIED,
				       "%s was not granted %.60s, so a run that goes on from it is "
				       "not: begin a new run",
				       s->resume, s->grants[i]);
	if (s->cwd && *s->cwd && strcmp(s->cwd, was->cwd) != 0)
		return err_set(err, AVA_EDENIED,
			       "%s works in %.300s, and a run that goes on from it nowhere else: "
			       "begin a new run",
			       s->resume, *was->cwd ? was->cwd : "no folder");
	return 0;
}

/* A yes to all three rights counts for one run and must be said again. */
static int drop_all_three(struct op_spawn *was, struct arena *mem)
{
	const char **kept = arena_get(mem, (was->ngrants + 1) * sizeof(*kept));
	size_t n = 0;

	for (size_t i = 0; kept && i < was->ngrants; i++)
		if (strcmp(was->grants[i], GRANT_ALL_THREE) != 0)
			kept[n++] = was->grants[i];
	was->grants = kept;
	was->ngrants = n;
	return kept ? 0 : AVA_ENOMEM;
}

/* Fills what the request leaves out from the `config` of the ended run, which owns the strings;
 * `mem` owns the lists. */
#define FILL_TEXT(f)   s->f = s->f && *s->f ? s->f : was.f;
#define FILL_MS(f)     s->f = s->f == AVA_DEFAULT ? was.f : s->f;
#define FILL_CENTS(f)  FILL_MS(f)
#define FILL_COUNT(f)  FILL_MS(f)
#define FILL_ROUNDS(f) FILL_MS(f)
#define FILL_JSON(f)   s->f = s->f ? s->f : was.f;
#define FILL_SWITCH(f) s->f = s->f ? s->f : was.f;
#define FILL_TEXTS(f)                                                                              \
	s->n##f = s->f ? s->n##f : was.n##f;                                                       \
	FILL_JSON(f)
#define FILL(kind, field, key, ...) FILL_##kind(field)
static int resume_fill(struct op_spawn *s, const json_t *config, struct arena *mem,
		       struct ava_error *err)
{
	struct op_spawn was;
	int rv = spec_request(config, &was, mem);

	if (rv == 0)
		rv = drop_all_three(&was, mem);
	if (rv != 0)
		return err_set(err, rv, "out of memory");
	rv = check_within(s, &was, err);
	if (rv != 0)
		return rv;
	s->given |= rights_read(json_object_get(config, "rights")) & RIGHTS_SEEN;
	s->given |= was.given & TOOL_OUT;
	/* A run of unknown price was limited by its tokens, so its limit of money does not count; a
	 * preset has limits of its own. */
	if ((s->preset && *s->preset) ||
	    !json_is_integer(json_object_get(json_object_get(config, "price"), "input")))
		was.max_cost_microusd = AVA_DEFAULT;
	if (s->preset && *s->preset)
		was.max_tokens = AVA_DEFAULT;
	was.preset = NULL; /* `was` has the preset's limits already */
	s->definitions = was.definitions;
	s->guide = was.guide;
	s->order = NULL; /* a person goes on from one run, not from its order */
	SPAWN_OPTIONS(FILL)
	return 0;
}

static int resume_check(struct core *c, const struct op_spawn *s, struct ava_error *err)
{
	int rv = core_known(c, s->resume, err);

	if (rv != 0)
		return rv == AVA_EINVAL
			       ? err_set(err, AVA_ENOENT, "there is no run %.40s", s->resume)
			       : rv;
	if (supervisor_find(&c->sup, s->resume))
		return err_set(err, AVA_EBUSY,
			       "run %s has not ended: it goes on by itself; steer or cancel it, "
			       "or wait for its end",
			       s->resume);
	return 0;
}

/* ---- the request, which outlives the call */

struct resuming {
	struct list node; /* in core.resumings, or in `more` of another */
	struct list more; /* the same request again, each a struct resuming */
	struct job job;
	struct core *core;
	struct arena mem; /* memory of the strings in `s` */
	struct op_spawn s;
	json_t *schema; /* owned */
	json_t *config; /* the ended run's config; owned */
	struct run_spec *spec;
	bool lent; /* `spec` belongs to the proposal */
	resume_fn ready;
	void *user;
	int rv;
	struct ava_error err;
};

static bool copy_text(struct arena *mem, const char **text)
{
	if (*text)
		*text = arena_copy(mem, *text, strlen(*text));
	return *text != NULL;
}

static bool resume_copy_list(struct arena *mem, const char *const **list, size_t n)
{
	const char **copy;

	if (!*list)
		return true;
	copy = arena_get(mem, (n + 1) * sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++) {
		copy[i] = (*list)[i];
		if (!copy_text(mem, &copy[i]))
			return false;
	}
	*list = copy;
	return copy != NULL;
}

#define COPY_TEXT(f) ok = ok && (!to->f || copy_text(mem, &to->f));
#define COPY_MS(f)
#define COPY_CENTS(f)
#define COPY_COUNT(f)
#define COPY_ROUNDS(f)
#define COPY_SWITCH(f)
#define COPY_JSON(f)
#define COPY_TEXTS(f)               ok = ok && resume_copy_list(mem, &to->f, to->n##f);
#define COPY(kind, field, key, ...) COPY_##kind(field)
static int copy_request(struct resuming *r, const struct op_spawn *s)
{
	struct op_spawn *to = &r->s;
	struct arena *mem = &r->mem;
	bool ok = true;

	*to = *s;
	SPAWN_OPTIONS(COPY)
	COPY_TEXT(session_id)
	COPY_TEXT(request_id)
	COPY_TEXT(user_id)
	COPY_TEXT(origin)
	COPY_TEXT(confirm)
	COPY_TEXT(resume)
	COPY_TEXT(resume_at)
	if (s->output_schema)
		to->output_schema = r->schema = json_incref((json_t *)s->output_schema);
	return ok ? 0 : AVA_ENOMEM;
}

static void resuming_free(struct resuming *r)
{
	if (!r)
		return;
	list_del(&r->node);
	if (!r->lent)
		spec_free(r->spec);
	json_decref(r->config);
	json_decref(r->schema);
	arena_fini(&r->mem);
	free(r);
}

static struct resuming *resuming_new(struct core *c, resume_fn ready, void *user)
{
	struct resuming *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	list_init(&r->node);
	list_init(&r->more);
	arena_init(&r->mem, REQUEST_BYTES);
	r->core = c;
	r->ready = ready;
	r->user = user;
	return r;
}

/* Answers, and then lets repeated requests ask again, which find the answer of the first. */
static void resume_tell(struct resuming *r, int rv, const struct ava_error *err)
{
	struct run_spec *spec = r->spec;
	struct list more;

	list_init(&more);
	list_splice(&more, &r->more);
	list_del(&r->node);
	r->spec = NULL;
	if (rv != 0 && !r->lent) {
		spec_free(spec);
		spec = NULL;
	}
	r->ready(rv, spec, &r->s, err, r->user);
	resuming_free(r);
	LIST_EACH (&more, at, tmp) {
		r = LIST_ENTRY(at, struct resuming, node);
		r->ready(0, NULL, &r->s, NULL, r->user);
		resuming_free(r);
	}
}

/* ---- second job: what the run begins with */

static void resume_read(struct job *j)
{
	struct resuming *r = CONTAINER_OF(j, struct resuming, job);

	struct run_spec *s = r->spec;
	size_t upto = SIZE_MAX;

	if (s->resumed_call > 0)
		r->rv = replay_seek(r->core->root_fd, s->resumed_from, (int)s->resumed_call, &upto,
				    &r->err);
	if (r->rv == 0)
		r->rv = resume_prepare(r->core->root_fd, s, upto, &s->resumed, &r->err);
}

static void resume_prepared(struct job *j)
{
	struct resuming *r = CONTAINER_OF(j, struct resuming, job);

	resume_tell(r, r->rv, &r->err);
}

static int begin_prepare(struct resuming *r, struct ava_error *err)
{
	r->job.run = resume_read;
	r->job.done = resume_prepared;
	return job_begin(r->core, &r->job, err);
}

int resume_again(struct core *c, struct run_spec *spec, resume_fn ready, void *user,
		 struct ava_error *err)
{
	struct resuming *r = resuming_new(c, ready, user);
	int rv = r ? 0 : err_set(err, AVA_ENOMEM, "out of memory");

	if (rv == 0) {
		r->spec = spec;
		r->lent = true;
		rv = begin_prepare(r, err);
	}
	if (rv != 0)
		resuming_free(r);
	return rv;
}

/* ---- first job: the place of the fork, and the config that was confirmed */

static void resume_look(struct job *j)
{
	struct resuming *r = CONTAINER_OF(j, struct resuming, job);
	struct op_spawn *s = &r->s;
	size_t at;
	int call;

	/* A checkpoint's name stands for the call that a fork from it begins with. */
	if (s->resume_at)
		r->rv = run_checkpoint_find(r->core->root_fd, s->resume, s->resume_at, &call,
					    &r->err);
	if (s->resume_at && r->rv == 0)
		s->resume_call = call;
	if (r->rv == 0 && s->resume_call > 0 && s->resume_call <= INT32_MAX)
		r->rv = replay_seek(r->core->root_fd, s->resume, (int)s->resume_call, &at, &r->err);
	if (r->rv == 0)
		r->rv = resume_spec(r->core->root_fd, s->resume, &r->config, &r->err);
}

static void resume_looked(struct job *j)
{
	struct resuming *r = CONTAINER_OF(j, struct resuming, job);
	struct core *c = r->core;
	struct op_spawn s = r->s;
	int rv = r->rv;

	if (rv == 0)
		rv = resume_fill(&s, r->config, &r->mem, &r->err);
	if (rv == 0)
		rv = spec_build(&r->spec, &s, &c->settings, c->model, c->redact, &r->err);
	if (rv == 0)
		rv = begin_prepare(r, &r->err);
	if (rv != 0)
		resume_tell(r, rv, &r->err);
}

/* The resuming of the same request; NULL: none. */
static struct resuming *resume_find_going(struct core *c, const char *request_id)
{
	if (!request_id || !*request_id)
		return NULL;
	LIST_EACH (&c->resumings, at, tmp) {
		struct resuming *r = LIST_ENTRY(at, struct resuming, node);

		if (r->s.request_id && strcmp(r->s.request_id, request_id) == 0)
			return r;
	}
	return NULL;
}

void resume_begin(struct core *c, const struct op_spawn *s, resume_fn ready, void *user)
{
	struct resuming *r = resuming_new(c, ready, user), *going;
	struct ava_error err = {0};
	int rv = r ? copy_request(r, s) : AVA_ENOMEM;

	if (rv != 0) {
		resuming_free(r);
		err_set(&err, rv, "out of memory");
		ready(rv, NULL, s, &err, user);
		return;
	}
	going = resume_find_going(c, s->request_id);
	if (going) {
		list_add(&going->more, &r->node);
		return;
	}
	rv = resume_check(c, &r->s, &err);
	if (rv == 0) {
		list_add(&c->resumings, &r->node);
		r->job.run = resume_look;
		r->job.done = resume_looked;
		rv = job_begin(c, &r->job, &err);
	}
	if (rv != 0)
		resume_tell(r, rv, &err);
}
