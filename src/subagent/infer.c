/* A model call. Intent first: InferStart (with the hash of the exact request)
 * is durable before the request leaves. Then a pool thread reads
 * messages.jsonl, checks the pairing and, for a local dialect, computes the
 * answer; the loop never waits for it and no run holds its conversation.
 *
 * A stopped call leaves its job running until the pool thread is done; the job
 * is then dropped, and the run freed if it has ended meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "codec/redact.h"
#include "provider/messages.h"
#include "subagent/record.h"
#include "subagent/supervisor.h"
#include "subagent/world.h"

#define MESSAGES_MAX (256u << 20)

struct infer_job {
	struct os_work work;
	struct run *run;
	struct agent_infer call;
	bool stopped, running; /* running: a pool thread has it */
	struct dialect_answer answer;
	bool sent; /* the request was built and left */
	int rv;
	struct ava_error err;
};

static void job_free(struct infer_job *j)
{
	turn_free(j->answer.turn);
	free(j);
}

/* Nobody points to the job any more; the run may go too. */
static void job_drop(struct infer_job *j)
{
	struct run *r = j->run;

	if (r->job == j)
		r->job = NULL;
	r->busy--;
	job_free(j);
	world_release(r);
}

/* ---- on the pool thread */

static int build_request(struct infer_job *j, struct buf *body)
{
	const struct dialect *d = j->run->spec->model.dialect;
	char path[LOGBOOK_PATH];
	struct messages_info info;
	char *file = NULL;
	size_t len;
	int rv;

	logbook_messages_path(j->run->id.text, path);
	rv = logbook_read(j->run->outbox.lb->root_fd, path, MESSAGES_MAX, &file, &len, &j->err);
	if (rv == 0)
		rv = messages_request(body, file, len, &info, &j->err);
	free(file);
	if (rv == 0)
		rv = d->check(body->data + info.head_len, body->len - info.head_len, &j->err);
	if (rv == 0 &&
	    d->encode_tail(body, &j->run->spec->model, j->run->spec->thinking, &j->call) != 0)
		rv = err_set(&j->err, AVA_ENOMEM, "out of memory for the request");
	return rv;
}

static void job_work(struct os_work *w)
{
	struct infer_job *j = w->priv;
	const struct model *m = &j->run->spec->model;
	struct buf body;

	buf_init(&body, MESSAGES_MAX);
	j->rv = build_request(j, &body);
	j->sent = j->rv == 0;
	if (j->rv == 0)
		j->rv = m->dialect->answer(body.data, body.len, m->config, &j->answer, &j->err);
	buf_fini(&body);
}

/* ---- on the loop */

static void deliver(struct infer_job *j)
{
	struct run *r = j->run;
	struct turn *t = j->answer.turn;
	const struct redact *redact = r->outbox.lb->redact;

	if (j->rv == 0 && redact && redact_has_known(redact, t->wire, t->wire_len))
		j->rv = err_set(&j->err, AVA_EDENIED,
				"the reply held a known secret and was not stored");
	if (j->rv == 0) {
		j->answer.turn = NULL; /* taken by the machine */
		agent_on_reply(&r->agent, 0, t, NULL, NULL);
	} else {
		struct usage u;
		struct draft *d = world_draft(r);

		infer_estimate(r, &u);
		if (!j->sent || j->rv == AVA_EINVAL)
			u.input = 0; /* it never left */
		r->agent.totals.input += u.input;
		if (d)
			record_infer_failed(d, r, err_word(j->rv), j->err.text, &u);
		agent_on_reply(&r->agent, j->rv, NULL, err_word(j->rv), j->err.text);
	}
	world_wake(r);
	job_drop(j);
}

static void reply_due(void *user)
{
	struct run *r = user;

	if (r->job)
		deliver(r->job);
}

static void job_done(struct os_work *w)
{
	struct infer_job *j = w->priv;

	j->running = false;
	if (j->stopped) {
		job_drop(j);
		return;
	}
	if (j->rv == 0 && j->answer.delay_ms > 0)
		os_timer_set(j->run->reply_timer, j->answer.delay_ms);
	else
		deliver(j);
}

/* The working folder, once for all calls: runs that wait for a slot hold none. */
static int open_folder(struct run *r, struct ava_error *err)
{
	if (!r->spec->cwd[0] || r->env.cwd_fd >= 0)
		return 0;
	r->env.cwd_fd = open(r->spec->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r->env.cwd_fd < 0)
		return err_set(err, errno == EMFILE || errno == ENFILE ? AVA_EBUSY : AVA_ENOENT,
			       "the working folder %s cannot be opened: %s", r->spec->cwd,
			       strerror(errno));
	return 0;
}

/* InferStart is durable: now the request may leave. */
static void job_send(int rv, void *user)
{
	struct run *r = user;
	struct infer_job *j = r->job;

	/* A later call's job waits for its own InferStart. */
	if (!j || j->running || j->stopped)
		return;
	j->rv = open_folder(r, &j->err);
	if (j->rv != 0) {
		deliver(j);
		return;
	}
	j->running = true;
	j->work = (struct os_work){.work = job_work, .done = job_done, .priv = j};
	os_work_start(r->sup->loop, &j->work);
}

static void hex(const unsigned char *in, char out[HASH_HEX_LEN + 1])
{
	for (unsigned i = 0; i < 32; i++)
		snprintf(out + 2 * i, 3, "%02x", in[i]);
}

/* The hashes of the request without building it: the prefix is kept running. */
static int request_hashes(struct run *r, const struct agent_infer *call,
			  char prefix[HASH_HEX_LEN + 1], char request[HASH_HEX_LEN + 1])
{
	struct hash_sha256 h = r->prefix;
	unsigned char digest[32];
	struct buf tail;
	int rv;

	hash_sha256_end(&h, digest);
	hex(digest, prefix);
	h = r->prefix;
	buf_init(&tail, 1u << 16);
	rv = r->spec->model.dialect->encode_tail(&tail, &r->spec->model, r->spec->thinking, call);
	if (rv == 0) {
		hash_sha256_add(&h, tail.data, tail.len);
		hash_sha256_end(&h, digest);
		hex(digest, request);
	}
	buf_fini(&tail);
	return rv;
}

int infer_start(struct agent *a, const struct agent_infer *call)
{
	struct run *r = a->world;
	char prefix[HASH_HEX_LEN + 1], request[HASH_HEX_LEN + 1];
	struct draft *d = world_draft(r);
	struct infer_job *j = calloc(1, sizeof(*j));

	if (!j || !d || request_hashes(r, call, prefix, request) != 0) {
		free(j);
		return AVA_ENOMEM;
	}
	j->run = r;
	j->call = *call;
	r->job = j;
	r->busy++;
	snprintf(r->infer_id, sizeof(r->infer_id), "i%d", call->iteration);
	r->infer_started_ms = clock_mono_ms();
	if (!r->started_wall_ms)
		r->started_wall_ms = clock_wall_ms();
	world_activity(r, "Thinking");
	record_infer_start(d, r, call, prefix, request);
	world_flush(r, JOURNAL_RIDE, job_send);
	return 0;
}

void infer_estimate(const struct run *r, struct usage *u)
{
	*u = (struct usage){.input = r->request_bytes / 4, .cost_microusd = -1, .estimated = true};
}

void infer_stop(struct agent *a)
{
	struct run *r = a->world;
	struct infer_job *j = r->job;

	if (!j)
		return;
	r->job = NULL;
	os_timer_stop(r->reply_timer);
	j->stopped = true;
	if (!j->running)
		job_drop(j);
}

/* Set up with the run; see supervisor.c. */
int infer_init(struct run *r)
{
	r->reply_timer = os_timer_new(r->sup->loop, reply_due, r);
	return r->reply_timer ? 0 : AVA_ENOMEM;
}
