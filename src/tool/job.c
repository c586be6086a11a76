/* A tool's life; see job.h.
 *
 * job_start allocates the little that must outlive the call (libuv's request)
 * and hands it to the pool. There `fn` fills c->out. A failure throws away
 * what was written so far, so that the model sees either an answer or one
 * sentence, never half of both. */
#include "tool/job.h"

#include <ava.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/tool.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "os/loop.h"

#define QUOTE_CHARS 80
#define NAME_CHARS  200

struct job_state {
	struct os_work work;
	struct tool_call *call;
	job_fn fn;
};

const char *job_error_class(int code)
{
	switch (code) {
	case AVA_ENOENT:
		return "not_found";
	case AVA_EDENIED:
		return "denied";
	case AVA_ETOOBIG:
		return "too_big";
	case AVA_EINVAL:
	case AVA_EUNSUPPORTED:
		return "bad_arguments";
	case AVA_ECANCELED:
		return "cancelled";
	case AVA_ETIMEOUT:
		return "timeout";
	default:
		return "io";
	}
}

void job_fail(struct tool_call *c, const char *class, const char *sentence)
{
	c->success = false;
	c->error_class = class;
	buf_reset(&c->out);
	/* Without memory even for this the sentence is empty; the class tells. */
	utf8_repair(&c->out, sentence, strlen(sentence));
}

static void job_finish(struct tool_call *c, int rv, const struct ava_error *err)
{
	if (rv == 0)
		rv = buf_check(&c->out);
	c->success = rv == 0;
	c->error_class = "";
	if (rv == AVA_ECANCELED)
		job_fail(c, job_error_class(rv), "cancelled");
	else if (rv != 0)
		job_fail(c, job_error_class(rv),
			 err->text[0] != '\0' ? err->text : ava_strerror(rv));
}

static void job_on_thread(struct os_work *w)
{
	struct job_state *j = w->priv;
	struct tool_call *c = j->call;
	struct ava_error err = {.code = 0};
	int rv = AVA_ECANCELED;

	if (!atomic_load_explicit(&c->stop, memory_order_relaxed))
		rv = j->fn(c, &err);
	job_finish(c, rv, &err);
}

static void job_ended(struct os_work *w)
{
	struct job_state *j = w->priv;
	struct tool_call *c = j->call;

	free(j);
	c->done(c);
}

size_t job_body_max(const struct tool_call *c, size_t spare)
{
	return c->out_bytes - MIN(spare, c->out_bytes / 8);
}

void job_start(struct tool_call *c, job_fn fn)
{
	struct job_state *j = NULL;

	if ((c->tool->flags & TOOL_FILES) && c->env->cwd_fd < 0) {
		job_fail(c, job_error_class(AVA_EDENIED),
			 "this run has no working folder; no file can be read or searched in it");
		c->done(c);
		return;
	}
	j = calloc(1, sizeof(*j));
	if (j == NULL) {
		job_fail(c, job_error_class(AVA_ENOMEM), "out of memory");
		c->done(c);
		return;
	}
	j->call = c;
	j->fn = fn;
	j->work.work = job_on_thread;
	j->work.done = job_ended;
	j->work.priv = j;
	j->work.owner = c->env;
	j->work.order = c->env->order;
	os_work_start_foreign(c->env->loop, &j->work);
}

bool job_now(struct tool_call *c, job_fn fn)
{
	struct ava_error err = {.code = 0};
	int rv;

	if ((c->tool->flags & TOOL_FILES) && c->env->cwd_fd < 0)
		return false; /* job_start says why */
	rv = fn(c, &err);
	if (rv == JOB_LATER)
		return false;
	job_finish(c, rv, &err);
	c->done(c);
	return true;
}

int job_make_work(const struct tool_env *env, char out[PATH_MAX], struct ava_error *err)
{
	char *slash;
	int n;

	if (!env->root)
		return err_set(err, AVA_EUNSUPPORTED, "this run has no folder to work in");
	n = snprintf(out, PATH_MAX, "%s/%s", env->root, env->workspace);
	if ((size_t)n >= PATH_MAX)
		return err_set(err, AVA_ETOOBIG, "the path of the data root is too long");
	for (slash = strchr(out + strlen(env->root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(out, 0700) != 0 && errno != EEXIST)
			return err_sys(err, "make the folder %.300s", out);
		*slash = '/';
	}
	if (mkdir(out, 0700) != 0 && errno != EEXIST)
		return err_sys(err, "make the folder %.300s", out);
	return 0;
}

int job_arg_str(const json_t *args, const char *key, const char **s, struct ava_error *err)
{
	const json_t *v = json_object_get(args, key);

	*s = json_string_value(v);
	if (*s != NULL && strlen(*s) != json_string_length(v))
		return err_set(err, AVA_EINVAL, "%s must not hold a NUL character", key);
	return 0;
}

void job_quote(struct buf *out, const char *s)
{
	size_t len = strlen(s), keep = utf8_prefix(s, len, QUOTE_CHARS);

	json_escape(out, s, keep);
	if (keep < len)
		buf_adds(out, "…");
}

void job_name(struct buf *out, const char *s)
{
	size_t from = out->len;

	utf8_repair(out, s, utf8_prefix(s, strlen(s), NAME_CHARS));
	for (size_t i = from; i < out->len; i++) {
		if ((unsigned char)out->data[i] < 0x20 || out->data[i] == 0x7f)
			out->data[i] = '?';
	}
}
