/* One trace at a time, in the order in which the runs ended:
 *
 *   pick ─► read (pool) ─► part ─► send ─┬─ taken ─► the next part, or `pushed`
 *    ▲                      ▲            ├─ later ─► wait ─► the same part again
 *    │                      └────────────┤           too old ─► `given up`
 *    └───────── delivery.json ◄──────────┴─ refused ─► `given up`
 *
 * The queue is the journal: a cursor over its events, and in delivery.json the lsn of
 * the last end that is done with. Nothing grows while the collector is away, no run
 * waits for it, and a restart goes on where it was. What was sent and not yet noted is
 * sent again: ids of spans are hashes, so that a collector sees the same spans.
 *
 * What can fail: the collector in every way; the files of a run (pruned, damaged:
 * given up); memory and the pool (later). */
#include "ava/otel.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ava/delivery.h"
#include "ava/job.h"
#include "ava/otel_send.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "event/trace.h"
#include "subagent/paths.h"

#define LOG_MAX     ((off_t)256 << 20) /* bytes of a run's log that is pushed */
#define BODY_MAX    (16u << 20)        /* of one request; collectors take 20 MB */
#define ASKED_MAX   64
#define EVENTS_TURN 200   /* looked at in one turn of the loop */
#define BUSY_MS     200   /* until the pool, the files or memory are tried again */
#define PAUSE_MS    60000 /* between two attempts, unless it asks for more */
#define LEAST_MS    100
#define ASKED_MS    600000

struct trace_job {
	struct job job;
	struct otel *otel;
	char root[4096], run[24];
	struct ava_trace *trace; /* owned; NULL: to be read, or not needed any more */
	size_t at;               /* span of the next part */
	struct buf body;
	int rv; /* of otlp_part */
	struct ava_error err;
};

struct otel {
	struct core *core;
	struct otel_sender *sender;
	char endpoint[256];
	struct op_cursor *cursor; /* NULL: to be opened again */
	struct os_timer *timer;
	char asked[ASKED_MAX][24];
	unsigned nasked;

	/* the trace under way */
	char run[24];             /* "": none */
	uint64_t lsn;             /* of its end; 0: it was asked for */
	int64_t since_ms;         /* wall: from when on otel.give_up counts */
	struct trace_job *job;    /* until it is done with */
	bool reading, waiting;    /* on the pool; until the timer */
	unsigned attempts, fails; /* at this trace; in a row, at whatever */
	int64_t rejected;         /* spans of it */

	uint64_t pushed, given_up, left_out; /* in this process; left_out: spans */
	char problem[400];                   /* why the last attempt failed; "": it did not */
	struct buf health;
};

static void next_part(struct otel *o);

static void again_in(struct otel *o, int64_t ms)
{
	o->waiting = true;
	os_timer_set(o->timer, ms);
}

static void state_written(int rv, void *user)
{
	if (rv != 0)
		core_log(user,
			 "otel: what was pushed was not written (%s): a restart may push again",
			 ava_strerror(rv));
}

/* An event of the daily log: what a person must know of a trace. */
static void put_event(struct otel *o, struct draft *d, const char *type)
{
	struct buf b;
	struct jw w;

	buf_init(&b, 64u << 10);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "customType", type);
	jw_object(&w, "data");
	jw_str(&w, "subagentId", o->run);
	jw_str(&w, "endpoint", o->endpoint);
	jw_int(&w, "attempts", o->attempts);
	if (o->rejected > 0)
		jw_int(&w, "rejectedSpans", o->rejected);
	jw_str(&w, "reason", o->problem);
	jw_end(&w);
	jw_end(&w);
	core_event(o->core, d, EVENT_Custom, "", "", &b);
}

/* ---- the end of a trace */

/* A long wait holds the part that is sent; the trace is read again for the next. */
static void forget_trace(struct trace_job *j)
{
	ava_trace_free(j->trace);
	j->trace = NULL;
}

static void free_job(struct trace_job *j)
{
	if (j == NULL)
		return;
	ava_trace_free(j->trace);
	buf_fini(&j->body);
	free(j);
}

/* `event` NULL: it was taken as it is. */
static void finish(struct otel *o, const char *event)
{
	struct delivery *delivery = o->core->delivery;
	struct draft *d;

	if (event != NULL || o->lsn > 0) {
		delivery->pushed = MAX(delivery->pushed, o->lsn);
		d = delivery_draft(delivery);
		if (d != NULL && event != NULL)
			put_event(o, d, event);
		if (delivery_commit(d, state_written, o->core) != 0)
			state_written(AVA_ENOMEM, o->core);
	}
	free_job(o->job);
	o->job = NULL;
	o->run[0] = '\0';
	again_in(o, 0);
}

static void set_problem(struct otel *o, const char *reason)
{
	struct buf b;

	buf_init(&b, 4096);
	if (o->core->redact != NULL &&
	    redact_text(o->core->redact, &b, reason, strlen(reason)) >= 0)
		reason = b.data != NULL ? b.data : "";
	snprintf(o->problem, sizeof(o->problem), "%s", reason);
	buf_fini(&b);
}

static void give_up(struct otel *o, const char *reason)
{
	set_problem(o, reason);
	o->given_up++;
	core_log(o->core, "otel: the trace of %s is given up after %u attempts: %s", o->run,
		 o->attempts, o->problem);
	finish(o, "otel_given_up");
}

static void pushed(struct otel *o)
{
	o->pushed++;
	if (o->rejected > 0)
		core_log(o->core, "otel: %s: %s", o->run, o->problem);
	finish(o, o->rejected > 0 ? "otel_left_out" : NULL);
}

/* ---- sending */

/* Twice as long each time, a part of it by chance: many daemons may have one
 * collector. */
static int64_t pause_ms(const struct otel *o, int64_t asked)
{
	int64_t ms = o->core->settings.otel_retry_s * 1000;
	uint64_t chance;

	for (unsigned i = 1; i < o->fails && ms < PAUSE_MS; i++)
		ms *= 2;
	ms = MIN(MAX(ms, (int64_t)LEAST_MS), (int64_t)PAUSE_MS);
	id_random(&chance, sizeof(chance));
	ms -= (int64_t)(chance % (uint64_t)(ms / 4 + 1));
	return MIN(MAX(ms, asked), (int64_t)ASKED_MS);
}

static void later(struct otel *o, const struct otel_answer *a)
{
	int64_t age = clock_wall_ms() - o->since_ms;

	o->fails++;
	if (o->fails == 1)
		core_log(o->core, "otel: %s is asked again: %s", o->endpoint, a->reason);
	if (age >= o->core->settings.otel_give_up_s * 1000) {
		give_up(o, a->reason);
		/* Else one failure after another would use up all that wait. */
		again_in(o, pause_ms(o, a->after_ms));
		return;
	}
	set_problem(o, a->reason);
	forget_trace(o->job);
	again_in(o, pause_ms(o, a->after_ms));
}

static void answered(const struct otel_answer *a, void *user)
{
	struct otel *o = user;

	if (a->verdict == OTEL_LATER) {
		later(o, a);
		return;
	}
	if (o->fails > 0)
		core_log(o->core, "otel: %s answers again", o->endpoint);
	o->fails = 0;
	if (a->verdict == OTEL_REFUSED) {
		give_up(o, a->reason);
		return;
	}
	o->rejected += a->rejected;
	o->left_out += (uint64_t)a->rejected;
	set_problem(o, a->reason);
	if (o->job->rv == 0) {
		pushed(o);
		return;
	}
	buf_reset(&o->job->body);
	next_part(o);
}

/* The body goes with the request; another attempt needs it again. */
static void send(struct otel *o)
{
	struct ava_error err = {0};
	struct buf copy;

	buf_init(&copy, BODY_MAX);
	o->attempts++;
	if (buf_add(&copy, o->job->body.data, o->job->body.len) == 0 &&
	    otel_send(o->sender, &copy, answered, o, &err) == 0)
		return;
	buf_fini(&copy);
	again_in(o, BUSY_MS);
}

/* ---- reading */

/* A line that is no event is left out, as in every export. */
static void pass_over(const char *sentence, void *user)
{
	(void)sentence;
	(void)user;
}

static void read_part(struct job *job)
{
	struct trace_job *j = CONTAINER_OF(job, struct trace_job, job);
	char path[4400], name[LOGBOOK_PATH];
	struct stat st;

	j->rv = 0;
	if (j->trace == NULL) {
		logbook_run_path(j->run, name);
		snprintf(path, sizeof(path), "%s/%s", j->root, name);
		if (stat(path, &st) == 0 && st.st_size > LOG_MAX)
			j->rv = err_set(&j->err, AVA_ETOOBIG,
					"its log is larger than %lld MB: use ava trace --export",
					(long long)(LOG_MAX >> 20));
		else
			j->rv = ava_trace_read(&j->trace, j->root, j->run, pass_over, NULL,
					       &j->err);
	}
	if (j->rv == 0)
		j->rv = otlp_part(j->trace, &j->at, &j->body, &j->err);
}

static void part_read(struct job *job)
{
	struct trace_job *j = CONTAINER_OF(job, struct trace_job, job);
	struct otel *o = j->otel;

	o->reading = false;
	if (j->rv == 0)
		forget_trace(j);
	if (j->rv == AVA_ENOMEM) {
		buf_reset(&j->body);
		again_in(o, BUSY_MS);
	} else if (j->rv < 0) {
		give_up(o, j->err.text);
	} else if (j->body.len == 0) { /* it has no span */
		pushed(o);
	} else {
		send(o);
	}
}

static void next_part(struct otel *o)
{
	if (job_begin(o->core, &o->job->job, NULL) == 0)
		o->reading = true;
	else
		again_in(o, BUSY_MS);
}

/* ---- which run */

static void begin(struct otel *o, const char *run, uint64_t lsn)
{
	struct trace_job *j = calloc(1, sizeof(*j));

	if (j == NULL)
		return;
	snprintf(o->run, sizeof(o->run), "%s", run);
	o->lsn = lsn;
	o->since_ms = clock_wall_ms();
	o->attempts = 0;
	o->rejected = 0;
	j->job = (struct job){.core = o->core, .run = read_part, .done = part_read};
	j->otel = o;
	snprintf(j->root, sizeof(j->root), "%s", o->core->root);
	snprintf(j->run, sizeof(j->run), "%s", run);
	buf_init(&j->body, BODY_MAX);
	o->job = j;
	next_part(o);
}

/* Of the end of a run; false: it is none. */
static bool is_end(const struct op_event *e, char run[24], int64_t *ended_ms)
{
	struct event_view v;
	json_t *content;
	const char *id;

	if (e->type_len != 16 || memcmp(e->type, "SubagentComplete", 16) != 0 ||
	    event_view(e->line, e->line_len, &v) != 0)
		return false;
	content = json_parse(v.content.s, v.content.len, NULL);
	id = json_get_str(content, "subagentId");
	snprintf(run, 24, "%s", id != NULL && id_is_run(id) ? id : "");
	*ended_ms = v.wall_ms;
	json_decref(content);
	return run[0] != '\0';
}

static void wake(void *user)
{
	struct otel *o = user;

	if (o->run[0] == '\0' && !o->waiting)
		again_in(o, 0);
}

static int open_cursor(struct otel *o)
{
	if (o->cursor == NULL)
		o->cursor =
			ops_events_open(o->core, NULL, o->core->delivery->pushed, wake, o, NULL);
	return o->cursor != NULL ? 0 : AVA_EIO;
}

/* The next end behind those that are done with. 1: it is begun; 0: none now. */
static int pick_ended(struct otel *o)
{
	struct op_event e;
	char run[24];
	int64_t ended_ms;
	int rv = open_cursor(o);

	for (unsigned i = 0; rv == 0 && i < EVENTS_TURN; i++) {
		int got = ops_events_next(o->cursor, &e);

		if (got == 0)
			return 0;
		if (got < 0)
			rv = AVA_EIO;
		else if (is_end(&e, run, &ended_ms)) {
			begin(o, run, e.lsn);
			if (o->run[0] != '\0') {
				o->since_ms = MIN(ended_ms, o->since_ms);
				return 1;
			}
			rv = AVA_ENOMEM;
		}
	}
	if (rv != 0 && o->cursor != NULL) { /* once more, from what is done with */
		ops_events_close(o->cursor);
		o->cursor = NULL;
	}
	again_in(o, rv != 0 ? BUSY_MS : 0);
	return 0;
}

static void pick(struct otel *o)
{
	char run[24];

	if (o->nasked == 0) {
		(void)pick_ended(o);
		return;
	}
	memcpy(run, o->asked[0], sizeof(run));
	begin(o, run, 0);
	if (o->run[0] == '\0') { /* no memory */
		again_in(o, BUSY_MS);
		return;
	}
	o->nasked--;
	memmove(o->asked[0], o->asked[1], o->nasked * sizeof(o->asked[0]));
}

static void due(void *user)
{
	struct otel *o = user;

	o->waiting = false;
	if (o->run[0] == '\0')
		pick(o);
	else if (o->job->body.len > 0 && o->job->rv >= 0)
		send(o);
	else
		next_part(o);
}

/* ---- for the runtime */

int otel_open(struct core *c, const char *endpoint, const char *headers, struct ava_error *err)
{
	struct otel *o;

	if (endpoint == NULL || endpoint[0] == '\0')
		return 0;
	o = calloc(1, sizeof(*o));
	if (o == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	o->core = c;
	c->otel = o;
	buf_init(&o->health, 8192);
	snprintf(o->endpoint, sizeof(o->endpoint), "%s", endpoint);
	o->timer = os_timer_new(c->loop, due, o);
	if (o->timer == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	o->sender =
		otel_sender_new(c->loop, endpoint, headers, c->settings.otel_timeout_s * 1000, err);
	if (o->sender == NULL)
		return err_wrap(err, err->code, "otel.endpoint");
	if (c->delivery->pushed == 0) { /* from now on, and so after a restart too */
		c->delivery->pushed = logbook_shown(&c->book);
		if (delivery_commit(delivery_draft(c->delivery), state_written, c) != 0)
			state_written(AVA_ENOMEM, c);
	}
	core_log(c, "traces of ended runs are pushed to %s", o->endpoint);
	again_in(o, 0);
	return 0;
}

bool otel_idle(const struct core *c)
{
	return c->otel == NULL || (c->otel->run[0] == '\0' && c->otel->nasked == 0);
}

void otel_close(struct core *c)
{
	struct otel *o = c->otel;

	if (o == NULL)
		return;
	c->otel = NULL;
	otel_sender_free(o->sender);
	os_timer_free(o->timer);
	if (o->cursor != NULL)
		ops_events_close(o->cursor);
	assert(!o->reading);
	free_job(o->job);
	buf_fini(&o->health);
	free(o);
}

const char *otel_health(struct core *c)
{
	struct otel *o = c->otel;
	struct jw w;

	if (o == NULL)
		return NULL;
	buf_reset(&o->health);
	jw_init(&w, &o->health);
	jw_object(&w, NULL);
	jw_str(&w, "endpoint", o->endpoint);
	jw_int(&w, "pushed", (int64_t)o->pushed);
	jw_int(&w, "given_up", (int64_t)o->given_up);
	jw_int(&w, "left_out_spans", (int64_t)o->left_out);
	jw_str(&w, "at_work_on", o->run);
	jw_int(&w, "attempts", o->run[0] != '\0' ? o->attempts : 0);
	jw_str(&w, "problem", o->problem);
	jw_end(&w);
	return buf_check(&o->health) == 0 ? o->health.data : NULL;
}

int ops_push(struct core *c, const char *run, struct ava_error *err)
{
	struct otel *o = c->otel;
	int rv;

	if (o == NULL)
		return err_set(err, AVA_EUNSUPPORTED,
			       "no collector is configured: set otel.endpoint in config.yaml, or "
			       "AVA_OTEL_ENDPOINT, and start the daemon anew");
	rv = core_known(c, run, err);
	if (rv != 0)
		return rv;
	if (supervisor_find(&c->sup, run))
		return err_set(err, AVA_EBUSY,
			       "run %s has not ended: its trace is pushed when it has", run);
	for (unsigned i = 0; i < o->nasked; i++)
		if (strcmp(o->asked[i], run) == 0)
			return 0;
	if (o->nasked == ASKED_MAX)
		return err_set(err, AVA_EBUSY, "%d traces wait already: ask again", ASKED_MAX);
	snprintf(o->asked[o->nasked++], sizeof(o->asked[0]), "%s", run);
	wake(o);
	return 0;
}
