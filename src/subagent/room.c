/* Room in a long conversation. Once all of it is on disk, a pool thread reads it
 * from its newest cut on. Removals are written as amendment lines and a
 * ContextEdit, in the same commit as the InferStart that follows: a request is
 * never sent that the file does not give. After a failure the conversation is as
 * it was, and the call is made with it. */
#include "subagent/run.h"

#include <stdlib.h>

#include "codec/json.h"
#include "provider/context.h"
#include "subagent/record.h"

struct room_job {
	struct os_work work;
	struct run *run;
	struct agent_compact want;
	struct context_edit edit;
	struct repeats *repeats;   /* owned copy, since the next turn may change the run's own */
	size_t from, len;          /* the part of the file that was read */
	struct hash_sha256 prefix; /* hash over the request that the edit leaves */
	bool working, stopped;
	int rv;
	struct ava_error err;
};

static void job_free(struct room_job *j)
{
	struct run *r = j->run;

	if (r->call.room == j)
		r->call.room = NULL;
	context_edit_fini(&j->edit);
	repeat_free(j->repeats);
	free(j);
	r->busy--;
	run_release(r);
}

/* The run's call with the k-th result in messages.jsonl. */
static struct call_ref room_call_name(size_t k, void *run)
{
	const struct run_tools *t = &((const struct run *)run)->tools;
	struct call_ref at = {0};
	int32_t low = 0, high, mid;

	pthread_mutex_lock(&toolrun_calls);
	high = t->calls_at;
	if (high > 0 && k < t->calls_before[high]) {
		while (high - low > 1) {
			mid = low + (high - low) / 2;
			if (t->calls_before[mid] <= k)
				low = mid;
			else
				high = mid;
		}
		at = (struct call_ref){low, (uint32_t)(k - t->calls_before[low]) + 1};
	}
	pthread_mutex_unlock(&toolrun_calls);
	return at;
}

/* ---- on a pool thread */

int room_plan(struct run *r, const struct agent_compact *want, const struct repeats *repeats,
	      const char *file, size_t len, struct context_edit *e, struct hash_sha256 *prefix,
	      struct ava_error *err)
{
	struct context_ask ask = {
		.dialect = r->spec->model->dialect,
		.root_fd = r->rec.outbox.lb->root_fd,
		.want = *want,
		.repeats = repeats,
		.name = room_call_name,
		.user = r,
	};
	int rv = context_edit(e, &ask, file, len, err);

	if (rv == 0 && e->lines.len > 0) {
		hash_sha256_init(prefix);
		hash_sha256_add(prefix, e->request.data, e->request.len);
	}
	return rv;
}

static void room_job_work(struct os_work *w)
{
	struct room_job *j = w->priv;
	struct run *r = j->run;
	char *file = NULL;

	j->from = r->rec.messages_from;
	j->rv = run_messages_read(r, &j->from, &file, &j->len, &j->err);
	if (j->rv == 0)
		j->rv = room_plan(r, &j->want, j->repeats, file, j->len, &j->edit, &j->prefix,
				  &j->err);
	free(file);
}

/* ---- on the loop */

int room_write(struct run *r, const struct agent_compact *want, const struct context_edit *e,
	       const struct hash_sha256 *prefix)
{
	struct draft *d = commit_draft(r);
	struct buf *part = commit_messages(r);
	int64_t *window = &r->spec->agent.window;
	struct jw w;

	if (!part)
		return AVA_ENOMEM;
	buf_add(part, e->lines.data, e->lines.len);
	/* The refused number of tokens becomes the window, unless that is smaller already, for as
	 * long as this model is called. */
	if (want->overflow && (*window <= 0 || *window > want->tokens)) {
		*window = want->tokens;
		spec_line_begin(&w, part, "spec");
		jw_int(&w, "window", *window);
		spec_line_end(&w);
	}
	for (size_t i = 0; i < e->nremoved; i++)
		repeat_removed(r->agent.at.repeats, e->removed[i]);
	record_context_edit(d, r, want, e);
	r->rec.prefix = *prefix;
	r->rec.request_bytes = (int64_t)e->request.len;
	r->rec.checked = 0;
	return buf_check(part) == 0 ? 0 : AVA_ENOMEM;
}

static void room_job_done(struct os_work *w)
{
	struct room_job *j = w->priv;
	struct run *r = j->run;
	struct draft *d;

	if (j->stopped) {
		job_free(j);
		return;
	}
	if (j->rv == 0 && j->edit.lines.len > 0)
		j->rv = room_write(r, &j->want, &j->edit, &j->prefix);
	if (j->rv == 0 && j->edit.cut)
		r->rec.messages_from = j->from + j->len;
	d = j->rv != 0 ? commit_draft(r) : NULL;
	if (d)
		record_error(d, r, "context", j->err.text[0] ? j->err.text : ava_strerror(j->rv));
	agent_on_compacted(&r->agent, j->rv, &j->edit.bytes);
	r->rec.position_due = true;
	run_wake(r);
	job_free(j);
}

/* The outbox is empty: the whole conversation is on disk. */
static void drained(void *user)
{
	struct room_job *j = ((struct run *)user)->call.room;

	j->working = true;
	j->work = (struct os_work){.work = room_job_work,
				   .done = room_job_done,
				   .priv = j,
				   .order = j->run->rec.log.row};
	os_work_start(j->run->sup->loop, &j->work);
}

int room_make(struct agent *a, const struct agent_compact *c)
{
	struct run *r = a->world;
	struct room_job *j = calloc(1, sizeof(*j));

	if (!j || repeat_copy(r->agent.at.repeats, &j->repeats) != 0) {
		free(j);
		return AVA_ENOMEM;
	}
	j->run = r;
	j->want = *c;
	r->call.room = j;
	r->busy++;
	run_activity(r, "Making room in the conversation");
	commit_flush(r, JOURNAL_RIDE, NULL);
	outbox_drain(&r->rec.outbox, drained, r);
	return 0;
}

void room_stop(struct run *r)
{
	struct room_job *j = r->call.room;

	if (!j)
		return;
	r->call.room = NULL;
	j->stopped = true;
	if (j->working)
		return; /* the end of the thread drops the job */
	r->rec.outbox.drained = NULL;
	job_free(j);
}
