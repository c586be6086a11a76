/* Groups on the command line. The file is read and checked line by line before
 * the daemon is asked; then its runs are looked at as a group, and the first
 * one that is at work is waited for, so that nothing is asked for in vain.
 *
 * What can fail: a line that is no object (told with its number), the daemon
 * going away (its successor is asked), and any of the runs: the others go on,
 * and what each came to stands in the end. */
#include "cli/parallel.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/sys.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/jscan.h"
#include "codec/json.h"

#define FILE_MAX ((size_t)16 << 20)
#define WAIT_S   2

/* ---- the request */

static int read_all(const char *path, char **data, size_t *len, struct ava_error *err)
{
	struct buf b;
	ssize_t n;

	if (strcmp(path, "-") != 0)
		return sys_read_file(AT_FDCWD, path, FILE_MAX, data, len, err);
	buf_init(&b, FILE_MAX + 65536);
	do {
		char *to = buf_reserve(&b, 65536);

		n = to != NULL ? read(STDIN_FILENO, to, 65536) : -1;
		if (n > 0)
			b.len += (size_t)n;
	} while (n > 0 && b.len <= FILE_MAX);
	*len = b.len;
	*data = n == 0 ? buf_take(&b, NULL) : NULL;
	buf_fini(&b);
	return *data != NULL ? 0 : err_set(err, AVA_EIO, "standard input cannot be read");
}

static bool blank(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (strchr(" \t\r", s[i]) == NULL)
			return false;
	return true;
}

/* One line as it stands, when it is an object. */
static int add_line(struct jw *w, const char *line, size_t len, unsigned number,
		    struct ava_error *err)
{
	json_t *o = json_parse(line, len, err);
	bool object = json_is_object(o);

	if (object)
		jw_raw(w, NULL, line, len);
	json_decref(o);
	if (object)
		return 0;
	return o != NULL ? err_set(err, AVA_EINVAL,
				   "line %u is no object: write {\"task\":\"…\"} in each", number)
			 : err_wrap(err, AVA_EINVAL, "line %u", number);
}

static int add_lines(struct jw *w, const char *data, size_t len, struct ava_error *err)
{
	unsigned number = 0, runs = 0;
	int rv = 0;

	for (size_t at = 0; rv == 0 && at < len; number++) {
		const char *end = memchr(data + at, '\n', len - at);
		size_t n = end != NULL ? (size_t)(end - data) - at : len - at;

		if (!blank(data + at, n)) {
			rv = add_line(w, data + at, n, number + 1, err);
			runs++;
		}
		at += n + 1;
	}
	if (rv == 0 && runs == 0)
		rv = err_set(err, AVA_EINVAL,
			     "there is no task in it: write one object in each line, as "
			     "{\"task\":\"…\",\"role\":\"researcher\"}");
	return rv;
}

int parallel_request(struct buf *out, const struct parallel_options *o, const char *cwd,
		     const char *request_id, struct ava_error *err)
{
	char *data = NULL;
	size_t len = 0;
	struct jw w;
	int rv = read_all(o->file, &data, &len, err);

	if (rv != 0)
		return err_wrap(err, rv == AVA_ENOENT ? AVA_EINVAL : rv, "--parallel");
	buf_init(out, 2 * FILE_MAX);
	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_array(&w, "runs");
	rv = add_lines(&w, data, len, err);
	free(data);
	if (rv != 0)
		return err_wrap(err, rv, "--parallel %.200s", o->file);
	jw_end(&w);
	if (o->cost_microusd != OPT_ABSENT)
		jw_fixed(&w, "max_cost_cents", o->cost_microusd, 4);
	if (o->timeout_ms != OPT_ABSENT)
		jw_fixed(&w, "timeout", o->timeout_ms, 3);
	jw_bool(&w, "chain", o->chain);
	jw_bool(&w, "share", o->share);
	jw_str(&w, "cwd", cwd);
	jw_str(&w, "request_id", request_id);
	jw_str(&w, "origin", "terminal");
	jw_end(&w);
	return buf_check(out) == 0 ? 0 : err_set(err, buf_check(out), "the request is too big");
}

/* ---- following */

struct following {
	const char *group;
	FILE *talk;
	volatile sig_atomic_t *interrupt;
	json_t *results; /* by run id */
	json_t *ended;   /* the group, when all have; owned */
	bool cancelled;
};

static void tell_end(struct following *f, const json_t *run, const json_t *result)
{
	const char *role = json_get_str(run, "role"), *id = json_get_str(run, "subagent_id");

	term_str(f->talk, id);
	fputc(' ', f->talk);
	progress_end(f->talk, role != NULL ? role : "run", result);
	fflush(f->talk);
}

/* The ends that are new; *live is one that has none yet, or NULL. */
static int look(struct following *f, struct client *c, const json_t *group, const char **live,
		struct ava_error *err)
{
	const json_t *runs = json_object_get(group, "runs"), *run;
	size_t i;

	*live = NULL;
	json_array_foreach(runs, i, run)
	{
		const char *id = json_get_str(run, "subagent_id");
		json_t *result = NULL;
		int rv;

		if (id == NULL || json_object_get(f->results, id) != NULL)
			continue;
		rv = api_result(c, id, 0, &result, err);
		if (rv != 0)
			return rv;
		if (result == NULL) {
			*live = *live != NULL ? *live : id;
			continue;
		}
		json_object_set_new(f->results, id, result);
		tell_end(f, run, result);
	}
	return 0;
}

static int cancel_all(struct following *f, struct client *c, const json_t *group,
		      struct ava_error *err)
{
	const json_t *runs = json_object_get(group, "runs"), *run;
	json_t *answer = NULL;
	struct buf body;
	struct jw w;
	size_t i;
	int rv;

	fprintf(f->talk, "\nCancelling %s; Ctrl-C again leaves without waiting.\n", f->group);
	fflush(f->talk);
	buf_init(&body, 1u << 16);
	jw_init(&w, &body);
	jw_object(&w, NULL);
	jw_array(&w, "ids");
	json_array_foreach(runs, i, run) jw_str(&w, NULL, json_get_str(run, "subagent_id"));
	jw_end(&w);
	jw_end(&w);
	rv = buf_check(&body);
	if (rv == 0)
		rv = api_call(c, "/runs/cancel", body.data, &answer, NULL, err);
	json_decref(answer);
	buf_fini(&body);
	f->cancelled = true;
	return rv;
}

/* One look, and a wait for the next end. 1: all have ended. */
static int step(struct client *c, void *user, struct ava_error *err)
{
	struct following *f = user;
	json_t *group = NULL, *result = NULL;
	const char *live;
	int rv = api_get(c, &group, err, "/groups/%s", f->group);

	if (rv == 0)
		rv = look(f, c, group, &live, err);
	if (rv == 0 && live == NULL && strcmp(json_str(group, "status"), "ended") == 0) {
		f->ended = group;
		return 1;
	}
	if (rv == 0 && *f->interrupt && !f->cancelled)
		rv = cancel_all(f, c, group, err);
	if (rv == 0 && live != NULL)
		rv = api_result(c, live, WAIT_S, &result, err);
	json_decref(result); /* the next look tells it */
	json_decref(group);
	return rv;
}

int parallel_follow(struct client **c, const char *group, FILE *talk,
		    volatile sig_atomic_t *interrupt, json_t **out, struct ava_error *err)
{
	struct following f = {
		.group = group, .talk = talk, .interrupt = interrupt, .results = json_object()};
	json_t *run;
	size_t i;
	int rv = f.results != NULL ? api_until(c, step, &f, -1, err)
				   : err_set(err, AVA_ENOMEM, "no memory");

	*out = f.ended;
	json_array_foreach(rv == 0 ? json_object_get(*out, "runs") : NULL, i, run)
	{
		const char *id = json_get_str(run, "subagent_id");

		if (id != NULL)
			json_object_set(run, "result", json_object_get(f.results, id));
	}
	json_decref(f.results);
	return rv;
}

/* ---- the end */

void parallel_show(FILE *f, const json_t *group)
{
	const json_t *runs = json_object_get(group, "runs"), *run;
	size_t i;

	json_array_foreach(runs, i, run)
	{
		const char *id = json_get_str(run, "subagent_id");

		fprintf(f, "\n%zu. ", i + 1);
		term_str(f, id != NULL ? id : "?");
		fputc('\n', f);
		show_result(f, json_object_get(run, "result"));
	}
	fprintf(f, "\n%lld of %lld succeeded, %s together\n",
		(long long)json_get_int(group, "succeeded", 0),
		(long long)json_get_int(group, "size", 0),
		format_money(json_get_fixed(group, "cost_cents", 4, -1)).text);
}

int parallel_exit(const json_t *group)
{
	const json_t *runs = json_object_get(group, "runs"), *run;
	int code = CLI_DONE;
	size_t i;

	json_array_foreach(runs, i, run)
	{
		int one = cli_exit_of_status(json_str(run, "status"));

		if (one == CLI_FAILED || code == CLI_DONE)
			code = one;
	}
	/* The rest of a chain was never started. */
	if (code == CLI_DONE &&
	    json_get_int(group, "succeeded", 0) < json_get_int(group, "size", 0))
		code = CLI_FAILED;
	return code;
}
