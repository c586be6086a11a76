/* The file of the ended run is read once. Its spec line gives way to the new run's,
 * which has its own limits; messages and replaced results follow as they stand; then
 * a user line says that it goes on. What is made is checked like every request: a
 * conversation that no service would take is refused here, before anybody pays.
 *
 * A fork from an earlier call has the lines that this call was sent; they are found
 * by replaying the run up to there. All of this is done on a pool thread, before the
 * run is spawned (ava/resume.c).
 *
 * What can fail: the file (pruned, damaged), a model that is spoken to in another
 * way, memory. */
#include "subagent/resume.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/prompt.h"
#include "base/error.h"
#include "codec/json.h"
#include "codec/jsonl.h"
#include "provider/messages.h"
#include "subagent/replay.h"
#include "subagent/run.h"

#define FILE_MAX (256u << 20)

static int read_file(int root_fd, const char *run, char **file, size_t *len, struct ava_error *err)
{
	char path[LOGBOOK_PATH];
	int rv;

	logbook_messages_path(run, path);
	rv = logbook_read(root_fd, path, FILE_MAX, file, len, err);
	if (rv == AVA_ENOENT)
		err_set(err, rv, "the messages of run %s are not kept: it cannot be resumed", run);
	return rv;
}

static int parse_spec(const char *file, size_t len, json_t **line, struct ava_error *err)
{
	const char *first;
	size_t at = 0, n;

	*line = jsonl_next(file, len, &at, &first, &n) == 1 ? json_parse(first, n, NULL) : NULL;
	if (json_is_object(json_object_get(*line, "spec")))
		return 0;
	json_decref(*line);
	*line = NULL;
	return err_set(err, AVA_ECORRUPT, "its messages have no readable first line");
}

int resume_spec(int root_fd, const char *run, json_t **line, struct ava_error *err)
{
	char *file = NULL;
	size_t len = 0;
	int rv = read_file(root_fd, run, &file, &len, err);

	if (rv == 0)
		rv = parse_spec(file, len, line, err);
	free(file);
	return rv;
}

/* ---- the messages of the new run */

static bool begins(const char *line, size_t len, const char *with)
{
	size_t n = strlen(with);

	return len > n && memcmp(line, with, n) == 0;
}

static void copy_lines(struct buf *out, const char *file, size_t len)
{
	const char *line;
	size_t at = 0, n;

	while (jsonl_next(file, len, &at, &line, &n) == 1) {
		if (!begins(line, n, "{\"role\":") && !begins(line, n, "{\"replace\":"))
			continue;
		buf_add(out, line, n);
		buf_addc(out, '\n');
	}
}

/* Model and tools are the same: the service has that beginning in its cache, and what
 * it says of limits is put right by the notice. */
static bool same_head(const struct run_spec *s, const json_t *was)
{
	const json_t *tools = json_object_get(was, "tools");
	const char *model = json_get_str(was, "model");
	bool same = model && strcmp(model, s->model->id) == 0 &&
		    json_array_size(tools) == s->agent.ntools &&
		    json_get_bool(was, "thinking", false) == s->thinking;

	for (unsigned i = 0; same && i < s->agent.ntools; i++) {
		const char *name = json_string_value(json_array_get(tools, i));

		same = name && strcmp(name, s->tools[i]->name) == 0;
	}
	return same && json_get_str(was, "head");
}

static int keep_head(const struct run_spec *s, const json_t *line, struct buf *out)
{
	const json_t *was = json_object_get(line, "spec");
	struct jw w;

	if (!same_head(s, was))
		return 0;
	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_object(&w, "spec");
	jw_str(&w, "head", json_get_str(was, "head"));
	jw_end(&w);
	jw_end(&w);
	return buf_addc(out, '\n');
}

static int add_notice(const struct run_spec *s, struct buf *out)
{
	const struct agent_limits *l = &s->agent.limits;
	struct buf text;
	char says[600];
	int rv;

	snprintf(says, sizeof(says),
		 "This run goes on from here with a new budget; it had stopped before. Your limits "
		 "from now on: %" PRId64 " s, $%" PRId64 ".%02" PRId64 ", %" PRId64
		 " tokens in all calls together, %d replies. Do what is left of the task, then "
		 "call submit_result with all of it.",
		 l->time_ms / 1000, l->cost_microusd / 1000000, l->cost_microusd / 10000 % 100,
		 l->tokens, (int)l->iterations);
	buf_init(&text, 4096);
	rv = notice_format(&text, says);
	if (rv == 0)
		rv = s->model->dialect->encode_user(out, text.data, text.len);
	buf_fini(&text);
	return rv == 0 ? buf_addc(out, '\n') : rv;
}

static int count_result(size_t k, const char *text, size_t len, bool is_error, void *user)
{
	unsigned *n = user;

	++*n;
	return 0;
}

/* The request that it makes, as it will be sent: valid, hashed, its results counted. */
static int take_request(const struct dialect *d, struct resumed *r, struct ava_error *err)
{
	struct messages_info info;
	struct buf body;
	int rv;

	buf_init(&body, FILE_MAX);
	rv = messages_request(&body, r->lines.data, r->lines.len, &info, err);
	if (rv == 0)
		rv = d->check(body.data + info.head_len, body.len - info.head_len, err);
	if (rv == 0)
		rv = d->results(body.data + info.head_len, body.len - info.head_len, count_result,
				&r->results, err);
	if (rv == 0) {
		r->request_bytes = (int64_t)body.len;
		hash_sha256_init(&r->prefix);
		hash_sha256_add(&r->prefix, body.data, body.len);
	}
	buf_fini(&body);
	return rv == AVA_EINVAL ? (err ? err->code = AVA_ECORRUPT : AVA_ECORRUPT) : rv;
}

static int same_dialect(const struct run_spec *s, const json_t *line, struct ava_error *err)
{
	const char *was = json_get_str(json_object_get(line, "spec"), "dialect");

	if (was && strcmp(was, s->model->dialect->name) == 0)
		return 0;
	return err_set(err, AVA_EUNSUPPORTED,
		       "run %s spoke with its model in the form \"%.20s\", %s needs \"%s\": resume "
		       "it with a model of the same kind",
		       s->resumed_from, was ? was : "", s->model->id, s->model->dialect->name);
}

static int make_lines(const struct run_spec *s, const char *file, size_t len, struct resumed *r,
		      struct ava_error *err)
{
	json_t *line = NULL;
	int rv = parse_spec(file, len, &line, err);

	if (rv == 0)
		rv = same_dialect(s, line, err);
	if (rv == 0)
		rv = spec_line(s, &r->lines, &r->request_bytes, &r->prefix);
	if (rv == 0) {
		rv = keep_head(s, line, &r->lines);
		copy_lines(&r->lines, file, len);
	}
	if (rv == 0)
		rv = add_notice(s, &r->lines);
	if (rv == 0)
		rv = buf_check(&r->lines);
	json_decref(line);
	return rv;
}

int resume_prepare(int root_fd, const struct run_spec *s, struct resumed **out,
		   struct ava_error *err)
{
	struct resumed *r = calloc(1, sizeof(*r));
	char *file = NULL;
	size_t len = 0;
	int rv = r ? 0 : AVA_ENOMEM;

	if (rv == 0) {
		buf_init(&r->lines, FILE_MAX);
		rv = read_file(root_fd, s->resumed_from, &file, &len, err);
	}
	if (rv == 0 && s->resumed_call > 0)
		rv = replay_seek(root_fd, s->resumed_from, (int)s->resumed_call, &len, err);
	if (rv == 0)
		rv = make_lines(s, file, len, r, err);
	if (rv == 0)
		rv = take_request(s->model->dialect, r, err);
	free(file);
	if (rv == 0) {
		*out = r;
		return 0;
	}
	resumed_free(r);
	return rv == AVA_ENOMEM ? err_set(err, rv, "out of memory") : rv;
}

int resume_messages(struct run *r, struct buf *out, unsigned *results, struct ava_error *err)
{
	struct resumed *from = r->spec->resumed;
	int rv;

	if (!from)
		return err_set(err, AVA_EINVAL, "run %s cannot be resumed in company",
			       r->spec->resumed_from);
	r->rec.request_bytes = from->request_bytes;
	r->rec.prefix = from->prefix;
	*results = from->results;
	rv = buf_add(out, from->lines.data, from->lines.len);
	r->spec->resumed = NULL;
	resumed_free(from);
	return rv;
}
