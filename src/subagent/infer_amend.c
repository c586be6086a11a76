/* What changes about a run's requests while it works, each change written as
 * an amendment line before the request that follows it: a parameter that the
 * service rejected is left out (once a call), and another model of the same
 * dialect is called where the first stays overloaded (models.fallback).
 *
 * The head of the request belongs to the model, so after a switch its running
 * hash is taken anew, from the file, on a pool thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "codec/json.h"
#include "provider/messages.h"
#include "provider/provider.h"
#include "subagent/infer.h"
#include "subagent/record.h"
#include "subagent/spec.h"
#include "subagent/supervisor.h"
#include "subagent/world.h"

#define MESSAGES_MAX (256u << 20)

static struct buf *messages_part(struct run *r)
{
	struct draft *d = world_draft(r);
	char path[LOGBOOK_PATH];

	run_messages_path(r, path);
	return d ? draft_part(d, DRAFT_MESSAGES, path) : NULL;
}

/* ---- a parameter less */

/* Does the request differ without it? Else the service means something that is
 * not ours to leave out. */
static bool matters(const struct infer_job *j, const struct model *without, const char *name)
{
	const struct model *m = j->run->spec->model;
	bool thinking = j->run->spec->thinking, differs;
	struct buf a, b;

	if (m->dialect->in_lines && m->dialect->in_lines(name) && model_takes(m, name))
		return true;
	buf_init(&a, 1u << 16);
	buf_init(&b, 1u << 16);
	differs = m->dialect->encode_tail(&a, m, thinking, &j->call) == 0 &&
		  m->dialect->encode_tail(&b, without, thinking, &j->call) == 0 &&
		  (a.len != b.len || memcmp(a.data, b.data, a.len) != 0);
	buf_fini(&a);
	buf_fini(&b);
	return differs;
}

/* A field as the service names it (thinking.budget_tokens), else what it is in. */
static bool drop(const struct infer_job *j, const char *field, struct model *without, char name[64])
{
	snprintf(name, 64, "%s", field);
	for (;;) {
		char *cut = strrchr(name, '.');

		*without = *j->run->spec->model;
		if (*name && model_drop(without, name) && matters(j, without, name))
			return true;
		if (!cut)
			return false;
		*cut = 0;
	}
}

bool infer_repair(struct infer_job *j, const char *field)
{
	struct run *r = j->run;
	struct draft *d = world_draft(r);
	struct buf *part;
	struct model without;
	char name[64], text[160];
	struct jw w;

	if (r->call.retry.repaired || !d || !drop(j, field, &without, name))
		return false;
	part = messages_part(r);
	if (!part || spec_set_model(r->spec, &without, NULL) != 0)
		return false;
	jw_init(&w, part);
	jw_object(&w, NULL);
	jw_object(&w, "spec");
	jw_str(&w, "drop", without.drop);
	jw_end(&w);
	jw_end(&w);
	buf_addc(part, '\n');
	r->call.retry.repaired = true;
	snprintf(text, sizeof(text), "%s does not take %s: asking again without it",
		 without.provider->name, name);
	record_activity(d, r, text);
	return true;
}

/* ---- another model */

bool infer_fall_back(struct infer_job *j)
{
	struct run *r = j->run;
	struct draft *d = world_draft(r);
	struct buf *part = messages_part(r);
	struct model m;
	char text[160];

	if (!d || !part || !spec_next_model(r->spec, &r->call.fallbacks, &m))
		return false;
	if (!r->call.first_model)
		r->call.first_model =
			arena_copy(&r->spec->mem, r->spec->model->id, strlen(r->spec->model->id));
	snprintf(text, sizeof(text), "%.60s is overloaded: going on with %.60s", r->spec->model->id,
		 m.id);
	if (spec_switch(r->spec, &m, part) != 0)
		return false;
	r->call.retry = (struct retry){0};
	world_activity(r, text);
	record_activity(d, r, text);
	j->rehash = true;
	j->state = INFER_SAVE;
	r->rec.position_due = true;
	world_flush(r, JOURNAL_RIDE, infer_saved);
	return true;
}

/* ---- the running hash, on a pool thread */

void infer_rehash(struct infer_job *j)
{
	char path[LOGBOOK_PATH];
	struct buf body;
	char *file = NULL;
	size_t len, from = j->run->rec.messages_from;

	buf_init(&body, MESSAGES_MAX);
	run_messages_path(j->run, path);
	j->rv = logbook_read_from(j->run->rec.outbox.lb->root_fd, path, &from, MESSAGES_MAX, &file,
				  &len, &j->err);
	if (j->rv == 0)
		j->rv = messages_request(&body, file, len, NULL, &j->err);
	if (j->rv == 0) {
		hash_sha256_init(&j->prefix);
		hash_sha256_add(&j->prefix, body.data, body.len);
		j->prefix_bytes = (int64_t)body.len;
	}
	free(file);
	buf_fini(&body);
}

void infer_rehashed(struct infer_job *j)
{
	struct run *r = j->run;

	r->rec.prefix = j->prefix;
	r->rec.request_bytes = j->prefix_bytes;
	infer_remote_again(j);
}
