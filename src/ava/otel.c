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
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ava/core.h"
#include "ava/delivery.h"
#include "ava/job.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/utf8.h"
#include "event/trace.h"
#include "net/http_client.h"
#include "provider/retry.h"

#define PATH          "/v1/traces"
#define HEADER_MAX    4096
#define ANSWER_MAX    65536 /* bytes of an answer that are read */
#define MESSAGE_CHARS 160

/* ---- the collector: POST /v1/traces, as in the specification of OTLP/HTTP. 200 is a success;
 * spans left out by partialSuccess are reported and not sent again. 429, 502, 503, 504 and a failed
 * or broken connection are tried again, after the time that the answer asks for; any other answer
 * is a refusal. OTEL_EXPORTER_OTLP_HEADERS and otel.endpoint are read as by other programs of
 * OpenTelemetry; no value of a header is ever part of an error. */

struct otel_sender {
	struct http_client *client;
	struct http_pool *pool;
	struct http_timers timers;
	char *headers[OTEL_HEADERS_MAX + 2]; /* owned */
	unsigned nheaders;
	struct http_call call;
	struct buf answer;
	bool busy;
	void (*done)(const struct otel_answer *a, void *user);
	void *user;
};

/* ---- headers and address */

static int hex_of(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
					    : -1;
}

/* Decodes in place; false: a byte that no header value may have. */
static bool otel_decode(char *s)
{
	char *to = s;

	for (; *s != '\0'; s++, to++) {
		*to = *s;
		if (*s == '%' && hex_of(s[1]) >= 0 && hex_of(s[2]) >= 0) {
			*to = (char)(hex_of(s[1]) << 4 | hex_of(s[2]));
			s += 2;
		}
		if ((unsigned char)*to < ' ' || *to == 127)
			return false;
	}
	*to = '\0';
	return true;
}

static bool is_name(const char *s)
{
	for (const char *at = s; *at != '\0'; at++)
		if (!isalnum((unsigned char)*at) && strchr("!#$%&'*+-.^_`|~", *at) == NULL)
			return false;
	return *s != '\0';
}

static char *otel_trim(char *s)
{
	size_t len;

	s += strspn(s, " \t");
	len = strlen(s);
	while (len > 0 && (s[len - 1] == ' ' || s[len - 1] == '\t'))
		s[--len] = '\0';
	return s;
}

static int take_pair(char *pair, unsigned n, int (*each)(const char *header, void *user),
		     void *user, struct ava_error *err)
{
	char header[HEADER_MAX], *value = strchr(pair, '='), *name;

	if (value != NULL)
		*value++ = '\0';
	name = otel_trim(pair);
	if (value == NULL || !is_name(name) || n > OTEL_HEADERS_MAX || !otel_decode(value))
		return err_set(err, AVA_EINVAL,
			       OTEL_HEADERS_NAME ": entry %u is no header: write name=value, "
						 "commas between, at most %d",
			       n, OTEL_HEADERS_MAX);
	if (snprintf(header, sizeof(header), "%s: %s", name, otel_trim(value)) >= HEADER_MAX)
		return err_set(err, AVA_EINVAL, OTEL_HEADERS_NAME ": entry %u is too long", n);
	return each(header, user);
}

int otel_headers(const char *text, int (*each)(const char *header, void *user), void *user,
		 struct ava_error *err)
{
	char *copy = strdup(text != NULL ? text : ""), *save = NULL;
	unsigned n = 0;
	int rv = copy != NULL ? 0 : err_set(err, AVA_ENOMEM, "out of memory");

	for (char *at = copy != NULL ? strtok_r(copy, ",", &save) : NULL; at != NULL && rv == 0;
	     at = strtok_r(NULL, ",", &save))
		if (*otel_trim(at) != '\0')
			rv = take_pair(at, ++n, each, user, err);
	if (copy != NULL)
		explicit_bzero(copy, strlen(text != NULL ? text : ""));
	free(copy);
	return rv;
}

/* Adds the value of "authorization: Basic abc", and the part behind its first word. */
static int otel_add_secret(const char *header, void *user)
{
	static const char *const words[] = {"auth", "key", "token", "secret", "password"};
	const char *value = strstr(header, ": ") + 2, *rest = strchr(value, ' ');
	char name[HEADER_MAX];
	bool secret = false;
	int rv;

	snprintf(name, sizeof(name), "%.*s", (int)(value - header) - 2, header);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		secret |= strcasestr(name, words[i]) != NULL;
	if (!secret)
		return 0;
	rv = redact_add(user, value);
	return rv == 0 && rest != NULL ? redact_add(user, rest + 1) : rv;
}

int otel_secrets(struct redact *r, const char *text)
{
	int rv = otel_headers(text, otel_add_secret, r, NULL);

	return rv == AVA_EINVAL ? 0 : rv;
}

void otel_base(const char *endpoint, char *base, size_t size)
{
	size_t len, path = strlen(PATH);

	snprintf(base, size, "%s", endpoint);
	for (len = strlen(base); len > 0 && base[len - 1] == '/'; len--)
		base[len - 1] = '\0';
	if (len > path && strcmp(base + len - path, PATH) == 0)
		base[len - path] = '\0';
}

/* ---- the meaning of an answer */

/* Adds the collector's message, which is a stranger's text, for people only. */
static void otel_add_message(struct otel_answer *out, const char *text)
{
	size_t used = strlen(out->reason), room = sizeof(out->reason) - used;
	size_t len = text != NULL && utf8_valid(text, strlen(text))
			     ? utf8_prefix(text, strlen(text), MESSAGE_CHARS)
			     : 0;

	if (len + 3 > room)
		len = utf8_prefix(text, len, (room - 3) / 4);
	if (len == 0)
		return;
	snprintf(out->reason + used, room, ": %.*s", (int)len, text);
	for (char *at = out->reason + used; *at != '\0'; at++)
		if ((unsigned char)*at < ' ' || *at == 127)
			*at = ' ';
}

static void judge_taken(const json_t *body, struct otel_answer *out)
{
	const json_t *partial = json_object_get(body, "partialSuccess");
	const json_t *left_out = json_object_get(partial, "rejectedSpans");
	const char *message = json_get_str(partial, "errorMessage");

	out->verdict = OTEL_TAKEN;
	/* 64-bit numbers are strings in the JSON of protocol buffers; some collectors write
	 * numbers. */
	out->rejected = json_is_string(left_out) ? strtoll(json_string_value(left_out), NULL, 10)
						 : (int64_t)json_integer_value(left_out);
	out->rejected = MAX(out->rejected, (int64_t)0);
	if (out->rejected > 0)
		snprintf(out->reason, sizeof(out->reason), "it left out %" PRId64 " spans",
			 out->rejected);
	else if (message != NULL && message[0] != '\0')
		snprintf(out->reason, sizeof(out->reason), "it took all and warns");
	otel_add_message(out, message);
}

void otel_judge(int status, const char *after, const char *date, int64_t wall_ms, const char *body,
		size_t len, struct otel_answer *out)
{
	const struct retry_failure asked = {.after = after, .date = date};
	json_t *json = len > 0 ? json_parse(body, len, NULL) : NULL;

	*out = (struct otel_answer){.verdict = OTEL_REFUSED, .after_ms = -1};
	if (status >= 200 && status < 300) {
		judge_taken(json, out);
	} else {
		snprintf(out->reason, sizeof(out->reason), "it answers %d%s", status,
			 status >= 300 && status < 400 ? ", another address" : "");
		otel_add_message(out, json_get_str(json, "message"));
		if (status == 429 || (status >= 502 && status <= 504)) {
			out->verdict = OTEL_LATER;
			out->after_ms = retry_asked(&asked, wall_ms);
		}
	}
	json_decref(json);
}

/* ---- the call */

static int otel_add_header(const char *header, void *user)
{
	struct otel_sender *s = user;
	char *copy = strdup(header);

	if (copy == NULL)
		return AVA_ENOMEM;
	s->headers[s->nheaders++] = copy;
	return 0;
}

void otel_sender_free(struct otel_sender *s)
{
	if (s == NULL)
		return;
	if (s->busy)
		http_call_stop(&s->call);
	http_pool_free(s->pool);
	http_client_free(s->client);
	for (unsigned i = 0; i < s->nheaders; i++) {
		explicit_bzero(s->headers[i], strlen(s->headers[i]));
		free(s->headers[i]);
	}
	buf_fini(&s->answer);
	free(s);
}

struct otel_sender *otel_sender_new(struct os_loop *loop, const char *endpoint, const char *headers,
				    int64_t timeout_ms, struct ava_error *err)
{
	struct otel_sender *s = calloc(1, sizeof(*s));
	struct http_pool_options o = {.connections_max = 1};
	char base[1024];
	int rv;

	if (s == NULL) {
		err_set(err, AVA_ENOMEM, "out of memory");
		return NULL;
	}
	buf_init(&s->answer, ANSWER_MAX);
	s->timers = (struct http_timers){timeout_ms, timeout_ms, timeout_ms, timeout_ms};
	otel_base(endpoint, base, sizeof(base));
	o.base_url = base;
	rv = otel_add_header("Content-Type: application/json", s);
	if (rv == 0)
		rv = otel_add_header("User-Agent: ava/" AVA_VERSION, s);
	if (rv == 0)
		rv = otel_headers(headers, otel_add_header, s, err);
	if (rv == AVA_ENOMEM)
		err_set(err, rv, "out of memory");
	s->client = rv == 0 ? http_client_new(loop, err) : NULL;
	s->pool = s->client != NULL ? http_pool_new(s->client, &o, err) : NULL;
	if (s->pool != NULL)
		return s;
	otel_sender_free(s);
	return NULL;
}

static bool otel_on_data(struct http_call *c, const char *bytes, size_t n)
{
	struct otel_sender *s = c->user;

	(void)buf_add(&s->answer, bytes, MIN(n, ANSWER_MAX - s->answer.len));
	return false; /* stop: a slow endless answer must not hold the call */
}

static void otel_on_done(struct http_call *c, int rv, const struct ava_error *err)
{
	struct otel_sender *s = c->user;
	struct otel_answer a = {.verdict = OTEL_LATER, .after_ms = -1};

	if (rv == 0)
		otel_judge(c->status, http_call_header(c, "retry-after"),
			   http_call_header(c, "date"), clock_wall_ms(), s->answer.data,
			   s->answer.len, &a);
	else
		snprintf(a.reason, sizeof(a.reason), "%.290s", err->text);
	s->busy = false;
	s->done(&a, s->user);
}

int otel_send(struct otel_sender *s, struct buf *body,
	      void (*done)(const struct otel_answer *a, void *user), void *user,
	      struct ava_error *err)
{
	int rv;

	buf_reset(&s->answer);
	s->done = done;
	s->user = user;
	s->call = (struct http_call){
		.path = PATH,
		.headers = (const char *const *)s->headers,
		.nheaders = s->nheaders,
		.body = *body,
		.timers = s->timers,
		.data = otel_on_data,
		.done = otel_on_done,
		.user = s,
	};
	rv = http_call_start(s->pool, &s->call, err);
	if (rv != 0)
		return rv;
	s->busy = true;
	buf_init(body, body->max);
	return 0;
}

#define LOG_MAX     ((off_t)256 << 20) /* bytes of a run's log that is pushed */
#define BODY_MAX    (16u << 20)        /* bytes of a request's body; collectors take 20 MB */
#define ASKED_MAX   64
#define EVENTS_TURN 200   /* events looked at in one turn of the loop */
#define BUSY_MS     200   /* pause while the pool, the files or memory are lacking */
#define PAUSE_MS    60000 /* pause between two attempts, unless the collector asks for more */
#define LEAST_MS    100
#define ASKED_MS    600000

struct otel {
	struct core *core;
	char endpoint[256];
	struct otel_sender *sender;
	struct op_cursor *cursor; /* NULL: to be opened again */
	struct os_timer *timer;
	char asked[ASKED_MAX][24];
	unsigned nasked;

	/* The trace under way. */
	char run[24];             /* the run that is traced; "": none */
	uint64_t lsn;             /* lsn of the run's end; 0: pushed on request */
	uint64_t upto;            /* the greatest lsn of a finished trace */
	int64_t since_ms;         /* wall: the time of otel.give_up counts from here */
	bool waiting;             /* true until the timer fires */
	unsigned attempts, fails; /* attempts at this trace; failures in a row, of any trace */
	int64_t rejected;         /* spans of the trace that the collector refused */

	/* The next part of the trace, which the job owns while at work. */
	struct job job;
	bool reading;
	struct ava_trace *trace; /* owned; NULL: to be read, or not needed any more */
	size_t at;               /* index of the part's first span */
	struct buf body;
	int part; /* result of otlp_part */
	struct ava_error err;

	uint64_t pushed, given_up, left_out; /* traces in this process; left_out: spans */
	char problem[400];                   /* why the last attempt failed; "": it succeeded */
};

static void otel_next_part(struct otel *o);

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

/* Writes an event into the daily log: a trace was given up, or spans were left out. */
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

/* Frees the trace for a long wait: the part to be sent is kept, and the next one reads the trace
 * again. */
static void forget_trace(struct otel *o)
{
	ava_trace_free(o->trace);
	o->trace = NULL;
}

/* Lower `upto` below each event still missing; a restart may push later traces twice. */
static void stay_before(uint64_t lsn, void *upto)
{
	*(uint64_t *)upto = MIN(*(uint64_t *)upto, lsn - 1);
}

/* `event` NULL: all spans were taken. */
static void otel_finish(struct otel *o, const char *event)
{
	struct delivery *delivery = o->core->delivery;
	uint64_t upto = o->upto = MAX(o->upto, o->lsn);
	struct draft *d;

	if (event != NULL || o->lsn > 0) {
		ops_events_late(o->core, o->cursor, upto, stay_before, &upto);
		delivery->pushed = MAX(delivery->pushed, upto);
		d = delivery_draft(delivery);
		if (d != NULL && event != NULL)
			put_event(o, d, event);
		if (delivery_commit(d, state_written, o->core) != 0)
			state_written(AVA_ENOMEM, o->core);
	}
	forget_trace(o);
	buf_fini(&o->body);
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

static void otel_give_up(struct otel *o, const char *reason)
{
	set_problem(o, reason);
	o->given_up++;
	core_log(o->core, "otel: the trace of %s is given up after %u attempts: %s", o->run,
		 o->attempts, o->problem);
	otel_finish(o, "otel_given_up");
}

static void pushed(struct otel *o)
{
	o->pushed++;
	if (o->rejected > 0)
		core_log(o->core, "otel: %s: %s", o->run, o->problem);
	otel_finish(o, o->rejected > 0 ? "otel_left_out" : NULL);
}

/* ---- sending */

/* Doubles with each failure, with a random part: many daemons may have one collector. */
static int64_t otel_pause_ms(const struct otel *o, int64_t asked)
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
		otel_give_up(o, a->reason);
	} else {
		set_problem(o, a->reason);
		forget_trace(o);
	}
	/* Also before the next trace, or one failure would follow another through the whole
	 * queue. */
	again_in(o, otel_pause_ms(o, a->after_ms));
}

static void otel_reply(const struct otel_answer *a, void *user)
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
		otel_give_up(o, a->reason);
		return;
	}
	o->rejected += a->rejected;
	o->left_out += (uint64_t)a->rejected;
	set_problem(o, a->reason);
	if (o->part == 0) {
		pushed(o);
		return;
	}
	buf_reset(&o->body);
	otel_next_part(o);
}

/* Sends a copy of the body, since another attempt needs it again. */
static void otel_post(struct otel *o)
{
	struct buf copy;

	buf_init(&copy, BODY_MAX);
	o->attempts++;
	if (buf_add(&copy, o->body.data, o->body.len) == 0 &&
	    otel_send(o->sender, &copy, otel_reply, o, NULL) == 0)
		return;
	buf_fini(&copy);
	again_in(o, BUSY_MS);
}

/* ---- reading */

/* Skips lines that are no event, as exports do. */
static void pass_over(const char *sentence, void *user) {}

/* Pool thread. */
static void otel_read_part(struct job *job)
{
	struct otel *o = CONTAINER_OF(job, struct otel, job);
	char path[4400], name[LOGBOOK_PATH];
	struct stat st;

	o->part = 0;
	if (o->trace == NULL) {
		logbook_run_path(o->run, name);
		snprintf(path, sizeof(path), "%s/%s", o->core->root, name);
		if (stat(path, &st) == 0 && st.st_size > LOG_MAX)
			o->part = err_set(&o->err, AVA_ETOOBIG,
					  "its log is larger than %lld MB: use ava trace --export",
					  (long long)(LOG_MAX >> 20));
		else
			o->part = ava_trace_read(&o->trace, o->core->root, o->run, pass_over, NULL,
						 &o->err);
	}
	if (o->part == 0)
		o->part = otlp_part(o->trace, &o->at, &o->body, &o->err);
}

static void part_read(struct job *job)
{
	struct otel *o = CONTAINER_OF(job, struct otel, job);

	o->reading = false;
	if (o->part == 0)
		forget_trace(o);
	if (o->part == AVA_ENOMEM) {
		buf_reset(&o->body);
		again_in(o, BUSY_MS);
	} else if (o->part < 0) {
		otel_give_up(o, o->err.text);
	} else if (o->body.len == 0) { /* the trace has no span */
		pushed(o);
	} else {
		otel_post(o);
	}
}

static void otel_next_part(struct otel *o)
{
	o->job.run = otel_read_part;
	o->job.done = part_read;
	o->reading = job_begin(o->core, &o->job, NULL) == 0;
	if (!o->reading)
		again_in(o, BUSY_MS);
}

/* ---- which run */

static void otel_begin(struct otel *o, const char *run, uint64_t lsn, int64_t since_ms)
{
	snprintf(o->run, sizeof(o->run), "%s", run);
	o->lsn = lsn;
	o->since_ms = MIN(since_ms, clock_wall_ms());
	o->attempts = 0;
	o->rejected = 0;
	o->at = 0;
	buf_init(&o->body, BODY_MAX);
	otel_next_part(o);
}

/* The run of a SubagentComplete; false: another event. */
static bool otel_is_end(const struct op_event *e, char run[24], int64_t *ended_ms)
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

static void otel_wake(void *user)
{
	struct otel *o = user;

	if (o->run[0] == '\0' && !o->waiting)
		again_in(o, 0);
}

/* Begins with the next end that is not finished. */
static void pick_ended(struct otel *o)
{
	struct op_event e;
	char run[24];
	int64_t ended_ms;
	int got = 1;

	if (o->cursor == NULL)
		o->cursor = ops_events_open(o->core, NULL, o->core->delivery->pushed, otel_wake, o,
					    NULL);
	for (unsigned i = 0; o->cursor != NULL && i < EVENTS_TURN; i++) {
		got = ops_events_next(o->cursor, &e);
		if (got == 0)
			return;
		if (got < 0)
			break;
		if (otel_is_end(&e, run, &ended_ms)) {
			otel_begin(o, run, e.lsn, ended_ms);
			return;
		}
	}
	if (got < 0) { /* open the cursor again, behind the last finished end */
		ops_events_close(o->cursor);
		o->cursor = NULL;
	}
	again_in(o, o->cursor == NULL ? BUSY_MS : 0);
}

static void due(void *user)
{
	struct otel *o = user;

	char run[24];

	o->waiting = false;
	if (o->run[0] == '\0' && o->nasked == 0) {
		pick_ended(o);
	} else if (o->run[0] == '\0') {
		memcpy(run, o->asked[0], sizeof(run));
		o->nasked--;
		memmove(o->asked[0], o->asked[1], o->nasked * sizeof(o->asked[0]));
		otel_begin(o, run, 0, INT64_MAX);
	} else if (o->body.len > 0 && o->part >= 0) {
		otel_post(o);
	} else {
		otel_next_part(o);
	}
}

/* ---- for the runtime */

int otel_open(struct core *c, const struct core_options *options, struct ava_error *err)
{
	const char *endpoint = options->otel;
	struct otel *o;

	if (endpoint == NULL || endpoint[0] == '\0')
		return 0;
	o = calloc(1, sizeof(*o));
	if (o == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	o->core = c;
	c->otel = o;
	snprintf(o->endpoint, sizeof(o->endpoint), "%s", endpoint);
	o->timer = os_timer_new(c->loop, due, o);
	if (o->timer == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	o->sender = otel_sender_new(c->loop, endpoint, options->otel_headers,
				    c->settings.otel_timeout_s * 1000, err);
	if (o->sender == NULL)
		return err_wrap(err, err->code, "otel.endpoint");
	if (c->delivery->pushed == 0) { /* the first start: runs from now on */
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
	forget_trace(o);
	buf_fini(&o->body);
	free(o);
}

void otel_health(const struct core *c, struct jw *w)
{
	const struct otel *o = c->otel;

	if (o == NULL)
		return;
	jw_object(w, "otel");
	jw_str(w, "endpoint", o->endpoint);
	jw_int(w, "pushed", (int64_t)o->pushed);
	jw_int(w, "given_up", (int64_t)o->given_up);
	jw_int(w, "left_out_spans", (int64_t)o->left_out);
	jw_str(w, "at_work_on", o->run);
	jw_int(w, "attempts", o->run[0] != '\0' ? o->attempts : 0);
	jw_str(w, "problem", o->problem);
	jw_end(w);
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
	otel_wake(o);
	return 0;
}
