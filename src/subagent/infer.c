/* A model call. Intent first: InferStart (with the hash of the exact request)
 * is durable before the request leaves. Then a pool thread reads
 * messages.jsonl, checks the pairing and builds the request, or for a local
 * dialect computes the answer; the loop never waits for it and no run holds
 * its conversation.
 *
 * A stopped call leaves its job running until the pool thread is done; the job
 * is then dropped, and the run freed if it has ended meanwhile. */
#include "subagent/infer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "codec/redact.h"
#include "provider/messages.h"
#include "provider/provider.h"
#include "subagent/infer_money.h"
#include "subagent/record.h"
#include "subagent/room.h"
#include "subagent/supervisor.h"
#include "subagent/world.h"

#define MESSAGES_MAX (256u << 20)
#define AT_ONCE_MAX  (64u << 10)

void infer_drop(struct infer_job *j)
{
	struct run *r = j->run;

	if (r->call.job == j)
		r->call.job = NULL;
	r->busy--;
	infer_line_leave(&j->ticket);
	turn_free(j->answer.turn);
	buf_fini(&j->body);
	free(j);
	world_release(r);
}

/* ---- the request, on a pool thread or at once */

static int build(struct infer_job *j, const char *file, size_t len)
{
	const struct model *m = j->run->spec->model;
	const struct dialect *d = m->dialect;
	struct buf *body = &j->body;
	struct messages_info info;
	int rv;

	/* About as long as the file; a body that grows would be copied again and again. */
	rv = buf_reserve(body, len + 1024) ? messages_request(body, file, len, &info, &j->err)
					   : err_set(&j->err, AVA_ENOMEM, "out of memory");
	if (rv == 0)
		rv = d->check(body->data + info.head_len, body->len - info.head_len, &j->err);
	if (rv == 0 && ((d->mark_cache && d->mark_cache(body, info.head_len, m) != 0) ||
			d->encode_tail(body, m, j->run->spec->thinking, &j->call) != 0))
		rv = err_set(&j->err, AVA_ENOMEM, "out of memory for the request");
	return rv;
}

static void job_work(struct os_work *w)
{
	struct infer_job *j = w->priv;
	const struct model *m = j->run->spec->model;
	char path[LOGBOOK_PATH], *file = NULL;
	size_t len, from = j->run->rec.messages_from;

	if (j->rehash) {
		infer_rehash(j);
		return;
	}
	run_messages_path(j->run, path);
	j->rv = logbook_read_from(j->run->rec.outbox.lb->root_fd, path, &from, MESSAGES_MAX, &file,
				  &len, &j->err);
	if (j->rv == 0)
		j->rv = build(j, file, len);
	free(file);
	j->sent = j->rv == 0;
	if (j->rv != 0 || !m->dialect->answer)
		return;
	j->rv = m->dialect->answer(j->body.data, j->body.len, model_config(m), &j->answer, &j->err);
	buf_fini(&j->body);
}

/* A short conversation that was just written is in memory: the loop reads it
 * for less than waking a thread costs. false: it is not, or it has parts. */
static bool build_at_once(struct infer_job *j)
{
	char path[LOGBOOK_PATH], text[AT_ONCE_MAX];
	ssize_t len;

	if (j->rehash || j->run->spec->model->dialect->answer ||
	    j->run->rec.request_bytes > AT_ONCE_MAX / 2)
		return false;
	run_messages_path(j->run, path);
	len = logbook_read_cached(j->run->rec.outbox.lb->root_fd, path, text, sizeof(text));
	if (len < 0)
		return false;
	j->rv = build(j, text, (size_t)len);
	j->sent = j->rv == 0;
	return true;
}

/* ---- the outcome, on the loop */

/* Counted once, by the service's own id: a proxy may answer twice with one
 * reply. There are servers that give every reply the same id, so what it used
 * belongs to the name. */
bool infer_seen(struct run *r, const char *id, const struct usage *u)
{
	uint64_t print = 14695981039346656037u;
	unsigned n = MIN(r->call.nseen, (unsigned)ARRAY_LEN(r->call.seen));

	if (!*id)
		return false;
	for (; *id; id++)
		print = (print ^ (unsigned char)*id) * 1099511628211u;
	print = (print ^ (uint64_t)u->input) * 1099511628211u;
	print = (print ^ (uint64_t)u->output) * 1099511628211u;
	for (unsigned i = 0; i < n; i++)
		if (r->call.seen[i] == print)
			return true;
	r->call.seen[r->call.nseen++ % ARRAY_LEN(r->call.seen)] = print;
	return false;
}

void infer_reply(struct infer_job *j, struct turn *t)
{
	struct run *r = j->run;
	const struct redact *redact = r->rec.outbox.lb->redact;

	if (infer_seen(r, t->request_id, &t->usage))
		t->usage = (struct usage){.cost_microusd = 0};
	if (redact && redact_has_known(redact, t->wire, t->wire_len)) {
		r->call.cut = t->usage; /* paid for all the same */
		turn_free(t);
		infer_fail(j, AVA_EDENIED, "denied",
			   "the reply held a known secret and was not stored");
		return;
	}
	agent_on_reply(&r->agent, 0, t, NULL, NULL);
	world_wake(r);
	infer_drop(j);
}

void infer_fail(struct infer_job *j, int rv, const char *word, const char *sentence)
{
	struct ava_error text; /* `sentence` may stand in j->err */

	snprintf(text.text, sizeof(text.text), "%s", sentence);
	j->state = INFER_FAILED;
	j->rv = rv;
	snprintf(j->word, sizeof(j->word), "%s", word);
	snprintf(j->err.text, sizeof(j->err.text), "%s", text.text);
	os_timer_set(j->run->call.timer, 0);
}

/* The last attempt's InferEnd, where it has none yet. */
static void close_attempt(struct infer_job *j)
{
	struct run *r = j->run;
	struct usage u;
	struct record_failure f = {
		.error_class = j->word,
		.sentence = j->err.text,
		.usage = &u,
		.retry_ms = -1,
	};
	struct draft *d;

	if (!r->call.id[0])
		return;
	infer_estimate(r, &u);
	if (!j->sent || j->rv == AVA_EINVAL)
		u = (struct usage){.cost_microusd = 0, .estimated = true}; /* it never left */
	d = world_draft(r);
	agent_charge(&r->agent, &u);
	infer_money_settle(r);
	if (d)
		record_infer_failed(d, r, &f);
}

static void failed(struct infer_job *j)
{
	struct run *r = j->run;

	close_attempt(j);
	agent_on_reply(&r->agent, j->rv, NULL, j->word, j->err.text);
	world_wake(r);
	infer_drop(j);
}

static void deliver(struct infer_job *j)
{
	struct turn *t = j->answer.turn;

	j->answer.turn = NULL;
	infer_reply(j, t);
}

static int ask_money(struct infer_job *j);

/* The wait that another process had begun is over. */
static void held(struct infer_job *j)
{
	int rv = ask_money(j);

	if (rv != 0)
		infer_fail(j, rv, err_word(rv), ava_strerror(rv));
}

static void reply_due(void *user)
{
	struct infer_job *j = ((struct run *)user)->call.job;

	if (j && j->state == INFER_GATE)
		infer_remote_waited(j);
	else if (j && j->state == INFER_HELD)
		held(j);
	else if (j && j->state == INFER_DELAY)
		deliver(j);
	else if (j && j->state == INFER_PARKED)
		infer_remote_again(j);
	else if (j && j->state == INFER_FAILED)
		failed(j);
}

static void built(struct infer_job *j)
{
	if (j->rv != 0) {
		/* A conversation or script that is gone is no folder that is gone. */
		infer_fail(j, j->rv == AVA_ENOENT ? AVA_EIO : j->rv, err_word(j->rv), j->err.text);
	} else if (j->rehash) {
		infer_rehashed(j);
	} else if (!j->answer.turn) {
		infer_remote_send(j);
	} else if (j->answer.delay_ms > 0) {
		j->state = INFER_DELAY;
		os_timer_set(j->run->call.timer, j->answer.delay_ms);
	} else {
		deliver(j);
	}
}

static void job_done(struct os_work *w)
{
	struct infer_job *j = w->priv;

	if (j->stopped)
		infer_drop(j);
	else
		built(j);
}

/* ---- start */

int infer_open_folder(struct run *r, struct ava_error *err)
{
	if (!r->spec->cwd[0] || r->tools.env.cwd_fd >= 0)
		return 0;
	r->tools.env.cwd_fd = open(r->spec->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r->tools.env.cwd_fd < 0)
		return err_set(err, errno == EMFILE || errno == ENFILE ? AVA_EBUSY : AVA_ENOENT,
			       "the working folder %s cannot be opened any more (%s): start from "
			       "one that is there",
			       r->spec->cwd, strerror(errno));
	return 0;
}

/* InferStart is durable: now the request may leave. */
void infer_saved(int rv, void *user)
{
	struct run *r = user;
	struct infer_job *j = r->call.job;

	/* A later call's job waits for its own InferStart. */
	if (!j || j->state != INFER_SAVE)
		return;
	rv = infer_open_folder(r, &j->err);
	if (rv != 0) {
		infer_fail(j, rv, rv == AVA_ENOENT ? "folder_gone" : err_word(rv), j->err.text);
		return;
	}
	j->state = INFER_WORK;
	r->call.unsent =
		!r->spec->model->dialect->answer; /* a local model is at work from here on */
	if (build_at_once(j)) {
		built(j);
		return;
	}
	j->work = (struct os_work){.work = job_work, .done = job_done, .priv = j};
	os_work_start(r->sup->loop, &j->work);
}

static void hex(const unsigned char *in, char out[HASH_HEX_LEN + 1])
{
	for (unsigned i = 0; i < 32; i++) {
		out[2 * i] = "0123456789abcdef"[in[i] >> 4];
		out[2 * i + 1] = "0123456789abcdef"[in[i] & 15];
	}
	out[HASH_HEX_LEN] = 0;
}

/* The hashes of the request without building it: the prefix is kept running. */
static int request_hashes(struct run *r, const struct agent_infer *call,
			  char prefix[HASH_HEX_LEN + 1], char request[HASH_HEX_LEN + 1])
{
	const struct model *m = r->spec->model;
	struct hash_sha256 h = r->rec.prefix;
	unsigned char digest[32];
	struct buf tail;
	int rv;

	hash_sha256_end(&h, digest);
	hex(digest, prefix);
	h = r->rec.prefix;
	buf_init(&tail, 1u << 16);
	rv = m->dialect->encode_tail(&tail, m, r->spec->thinking, call);
	if (rv == 0) {
		hash_sha256_add(&h, tail.data, tail.len);
		hash_sha256_end(&h, digest);
		hex(digest, request);
	}
	buf_fini(&tail);
	return rv;
}

int infer_begin(struct infer_job *j)
{
	struct run *r = j->run;
	char prefix[HASH_HEX_LEN + 1], request[HASH_HEX_LEN + 1];
	struct draft *d = world_draft(r);

	if (!d || request_hashes(r, &j->call, prefix, request) != 0)
		return AVA_ENOMEM;
	j->state = INFER_SAVE;
	r->call.unsent = true;
	if (++r->call.attempts > 1)
		snprintf(r->call.id, sizeof(r->call.id), "i%d.%u", j->call.iteration,
			 r->call.attempts);
	else
		snprintf(r->call.id, sizeof(r->call.id), "i%d", j->call.iteration);
	r->call.started_ms = clock_mono_ms();
	if (!r->started_wall_ms)
		r->started_wall_ms = clock_wall_ms();
	world_activity(r, "Thinking");
	record_infer_start(d, r, &j->call, prefix, request);
	r->rec.position_due = true;
	world_flush(r, JOURNAL_RIDE, infer_saved);
	return 0;
}

int infer_go(struct infer_job *j)
{
	j->state = INFER_GATE;
	return j->run->spec->model->dialect->answer ? infer_begin(j) : infer_remote_start(j);
}

/* Until others have settled; the results of the last turn do not wait with it. */
static void wait_for_money(struct run *r)
{
	world_flush(r, JOURNAL_RIDE, NULL);
	world_activity(r, r->call.hold.short_of == BUDGET_GROUP ? "Waiting for its group's budget"
								: "Waiting for the day's budget");
}

static void hold(struct infer_job *j)
{
	struct run *r = j->run;
	int64_t ms = r->call.held_until_ms - clock_mono_ms();
	char text[160];

	j->state = INFER_HELD;
	os_timer_set(r->call.timer, MAX(ms, 0));
	world_flush(r, JOURNAL_RIDE, NULL);
	snprintf(text, sizeof(text), "Waiting %" PRId64 " s for %.80s", (ms + 999) / 1000,
		 r->spec->model->dialect->answer ? r->spec->model->id
						 : r->spec->model->provider->name);
	world_activity(r, text);
}

static int ask_money(struct infer_job *j)
{
	int rv = infer_money_ask(j);

	if (rv == BUDGET_WAITS) {
		wait_for_money(j->run);
		return 0;
	}
	return rv == 0 ? infer_go(j) : rv;
}

int infer_start(struct agent *a, const struct agent_infer *call)
{
	struct run *r = a->world;
	struct infer_job *j;
	int rv;

	if (!r->call.timer)
		r->call.timer = os_timer_new(r->sup->loop, reply_due, r);
	j = r->call.timer ? calloc(1, sizeof(*j)) : NULL;
	if (!j)
		return AVA_ENOMEM;
	j->run = r;
	j->call = *call;
	buf_init(&j->body, MESSAGES_MAX);
	r->call.job = j;
	r->busy++;
	if (r->rec.unnoted) /* `cut` is of the call before */
		(void)world_draft(r);
	r->call.cut = (struct usage){.cost_microusd = -1};
	if (!call->again) {
		r->call.retry = (struct retry){0};
		r->call.attempts = 0;
	}
	if (call->again && r->call.held_until_ms > clock_mono_ms()) {
		hold(j);
		return 0;
	}
	rv = ask_money(j);
	if (rv != 0) {
		r->call.job = NULL;
		r->busy--;
		free(j);
	}
	return rv;
}

/* ---- stop */

void infer_estimate(const struct run *r, struct usage *u)
{
	*u = r->call.cut;
	u->estimated = true;
	if (r->call.unsent)
		*u = (struct usage){.cost_microusd = 0, .estimated = true};
	else if (u->input == 0)
		u->input = r->rec.request_bytes / 4;
}

bool infer_has_failed(const struct run *r)
{
	return r->call.job && r->call.job->rehash;
}

void infer_stop(struct agent *a)
{
	struct run *r = a->world;
	struct infer_job *j = r->call.job;

	room_stop(r);
	if (!j)
		return;
	r->call.job = NULL;
	r->call.stopped = true;
	infer_money_stop(r);
	os_timer_stop(r->call.timer);
	j->stopped = true;
	infer_remote_stop(j);
	if (j->state != INFER_WORK)
		infer_drop(j);
}

void infer_interrupted(struct run *r)
{
	bool open = r->call.id[0] && !r->agent.ending && !r->rec.unnoted;
	struct draft *d = open ? world_draft(r) : NULL;
	struct record_failure f = {
		.error_class = "interrupted",
		.sentence = "the runtime stopped",
		.retry_ms = -1,
	};
	struct usage u;

	if (!d)
		return;
	infer_estimate(r, &u);
	agent_charge(&r->agent, &u);
	f.usage = &u;
	record_infer_failed(d, r, &f);
	world_flush(r, JOURNAL_RIDE, NULL);
}

void infer_wait_long(struct run *r)
{
	if (r->call.job)
		return;
	os_timer_free(r->call.timer);
	r->call.timer = NULL;
}
