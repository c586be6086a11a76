/* The channel of otel.endpoint: traces of ended runs, by parts, to a collector of OpenTelemetry. A
 * part that waits is kept, and the trace behind it read again. While the collector is away the
 * whole channel rests. What was sent and not yet noted is sent again: ids of spans are hashes, so
 * that a collector sees the same spans.
 *
 * What can fail: the collector in every way; the files of a run (pruned, damaged: given up); memory
 * and the pool (later). */
#include "ava/otel.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ava/delivery.h"
#include "ava/job.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/utf8.h"
#include "net/http_client.h"
#include "provider/retry.h"

#define PATH          "/v1/traces" /* of the address that a person may have written */
#define HEADER_MAX    4096
#define ANSWER_MAX    65536 /* bytes of an answer that are read */
#define MESSAGE_CHARS 160   /* of the collector; a reason has room for it in any script */

/* ---- the collector: POST /v1/traces or another signal's path, as in the specification of
 * OTLP/HTTP. 200 is a success; spans left out by partialSuccess are reported and not sent again.
 * 429, 502, 503, 504 and a failed or broken connection are tried again, after the time that the
 * answer asks for; any other answer is a refusal. OTEL_EXPORTER_OTLP_HEADERS and otel.endpoint are
 * read as by other programs of OpenTelemetry; no value of a header is ever part of an error. */

struct otel_sender {
	struct http_client *client;
	struct http_pool *pool;
	struct http_timers timers;
	char *headers[OTEL_HEADERS_MAX + 2]; /* owned */
	unsigned nheaders;
	struct http_call call;
	struct buf answer;
	void (*done)(const struct otel_answer *a, void *user);
	void *user;
};

/* ---- headers and address */

/* Decodes in place; false: a byte that no header value may have. */
static bool otel_decode(char *s)
{
	char *to = s;

	for (; *s != '\0'; s++, to++) {
		*to = *s;
		if (*s == '%' && isxdigit((unsigned char)s[1]) && isxdigit((unsigned char)s[2])) {
			*to = (char)strtol((char[]){s[1], s[2], '\0'}, NULL, 16);
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
	return *s != '\0' && s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					 "0123456789!#$%&'*+-.^_`|~")] == '\0';
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

static const struct {
	const char *path, *rejected;
} otel_signals[] = {
	[OTLP_TRACES] = {PATH, "rejectedSpans"},
	[OTLP_LOGS] = {"/v1/logs", "rejectedLogRecords"},
	[OTLP_METRICS] = {"/v1/metrics", "rejectedDataPoints"},
};

/* Adds the collector's message, which is a stranger's text, for people only. */
static void otel_add_message(struct otel_answer *out, const char *text)
{
	char *at = out->reason + strlen(out->reason);
	size_t len = text != NULL ? strlen(text) : 0;

	if (len > 0 && utf8_valid(text, len))
		snprintf(at, sizeof(out->reason) - (size_t)(at - out->reason), ": %.*s",
			 (int)utf8_prefix(text, len, MESSAGE_CHARS), text);
	for (; *at != '\0'; at++)
		if ((unsigned char)*at < ' ' || *at == 127)
			*at = ' ';
}

static void judge_taken(const json_t *body, struct otel_answer *out)
{
	const json_t *partial = json_object_get(body, "partialSuccess");
	const json_t *left_out = NULL;
	const char *message = json_get_str(partial, "errorMessage");

	out->end = CHANNEL_TAKEN;
	for (size_t i = 0; i < ARRAY_LEN(otel_signals) && left_out == NULL; i++)
		left_out = json_object_get(partial, otel_signals[i].rejected);
	/* 64-bit numbers are strings in the JSON of protocol buffers; some collectors write
	 * numbers. */
	out->rejected = json_is_string(left_out) ? strtoll(json_string_value(left_out), NULL, 10)
						 : (int64_t)json_integer_value(left_out);
	out->rejected = MAX(out->rejected, (int64_t)0);
	if (out->rejected > 0)
		snprintf(out->reason, sizeof(out->reason), "it left out %" PRId64 " %s",
			 out->rejected,
			 json_object_get(partial, "rejectedSpans") ? "spans" : "of what it got");
	else if (message != NULL && message[0] != '\0')
		snprintf(out->reason, sizeof(out->reason), "it took all and warns");
	otel_add_message(out, message);
}

void otel_judge(int status, const char *after, const char *date, int64_t wall_ms, const char *body,
		size_t len, struct otel_answer *out)
{
	const struct retry_failure asked = {.after = after, .date = date};
	json_t *json = len > 0 ? json_parse(body, len, NULL) : NULL;

	*out = (struct otel_answer){.end = CHANNEL_GIVEN_UP, .after_ms = -1};
	if (status >= 200 && status < 300) {
		judge_taken(json, out);
	} else {
		snprintf(out->reason, sizeof(out->reason), "it answers %d%s", status,
			 status >= 300 && status < 400 ? ", another address" : "");
		otel_add_message(out, json_get_str(json, "message"));
		if (status == 429 || (status >= 502 && status <= 504)) {
			out->end = CHANNEL_LATER;
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

static void otel_on_done(struct http_call *c, int rv, const struct ava_error *err)
{
	struct otel_sender *s = c->user;
	struct otel_answer a = {.end = CHANNEL_LATER, .after_ms = -1};

	if (rv == 0)
		otel_judge(c->status, http_call_header(c, "retry-after"),
			   http_call_header(c, "date"), clock_wall_ms(), s->answer.data,
			   s->answer.len, &a);
	else
		snprintf(a.reason, sizeof(a.reason), "%s", err->text);
	s->done(&a, s->user);
}

int otel_send(struct otel_sender *s, enum otlp_signal signal, struct buf *body,
	      void (*done)(const struct otel_answer *a, void *user), void *user,
	      struct ava_error *err)
{
	int rv;

	buf_reset(&s->answer);
	s->done = done;
	s->user = user;
	s->call = (struct http_call){
		.path = otel_signals[signal].path,
		.headers = (const char *const *)s->headers,
		.nheaders = s->nheaders,
		.body = *body,
		.timers = s->timers,
		.answer = &s->answer,
		.done = otel_on_done,
		.user = s,
	};
	rv = http_call_start(s->pool, &s->call, err);
	if (rv == 0)
		buf_init(body, body->max);
	return rv;
}

/* ---- the channel */

#define LOG_MAX   ((off_t)256 << 20) /* bytes of a run's log that is pushed */
#define BODY_MAX  (16u << 20)        /* of one request; collectors take 20 MB */
#define OTEL      (delivery_bit(DELIVERY_OTEL))
#define ASKED_MAX 64
#define BUSY_MS   200   /* until the pool, the files or memory are tried again */
#define PAUSE_MS  60000 /* between two attempts, unless it asks for more */
#define LEAST_MS  100
#define ASKED_MS  600000

struct otel {
	struct channel ch;
	char endpoint[256];
	struct otel_sender *sender;
	unsigned fails;    /* in a row */
	uint64_t left_out; /* spans, in this process */

	/* the trace under way, also while it waits for another attempt */
	char run[24];            /* "": none */
	uint64_t lsn;            /* of its end; 0: pushed on request */
	enum otlp_signal signal; /* its spans, then, with otel.logs, its records */
	bool logs_told;          /* that they are refused */
	size_t from;             /* span or event with which the part under way begins */

	/* its part: the job's while that is at work */
	struct job job;
	struct ava_trace *trace; /* owned; NULL: to be read, or not needed any more */
	size_t to;
	struct buf body;
	int part; /* result of otlp_part */
	struct ava_error err;
};

/* The trace is over, or waits: of that one the place is kept, and it is read again. Nothing is
 * sent for `rest_ms`. */
static void otel_over(struct otel *o, enum channel_end end, int64_t rest_ms)
{
	ava_trace_free(o->trace);
	o->trace = NULL;
	buf_fini(&o->body);
	if (end != CHANNEL_LATER)
		o->run[0] = '\0';
	o->ch.rest_ms = os_now_ms(o->ch.d->core->loop) + rest_ms;
	channel_done(&o->ch, end);
}

static void set_problem(struct otel *o, const char *reason)
{
	o->ch.reason[0] = '\0';
	channel_add_reason(&o->ch, reason, strlen(reason));
}

static void otel_give_up(struct otel *o, const char *reason, int64_t rest_ms)
{
	set_problem(o, reason);
	if (o->ch.item != NULL)
		core_log(o->ch.d->core, "otel: the trace of %s is given up after %u attempts: %s",
			 o->run, channel_try(&o->ch)->attempts, o->ch.reason);
	otel_over(o, CHANNEL_GIVEN_UP, rest_ms);
}

static void otel_pushed(struct otel *o)
{
	if (o->ch.left_out > 0)
		core_log(o->ch.d->core, "otel: %s: %s", o->run, o->ch.reason);
	otel_over(o, CHANNEL_TAKEN, 0);
}

/* ---- sending */

static void otel_next_part(struct otel *o);

/* The part is sent, or there was nothing to send. */
static void otel_part_over(struct otel *o)
{
	o->from = o->to;
	if (o->part == 0 && o->signal == OTLP_TRACES && o->ch.d->core->settings.otel_logs) {
		o->signal = OTLP_LOGS;
		o->from = 0;
	} else if (o->part == 0) {
		otel_pushed(o);
		return;
	}
	otel_next_part(o);
}

/* Doubles with each failure, with a random part: many daemons may have one collector. */
static int64_t otel_pause_ms(const struct otel *o, int64_t asked)
{
	int64_t ms = channel_pause_ms(o->ch.d->core->settings.otel_retry_s, o->fails, 2, PAUSE_MS);
	uint64_t chance;

	ms = MAX(ms, (int64_t)LEAST_MS);
	id_random(&chance, sizeof(chance));
	ms -= (int64_t)(chance % (uint64_t)(ms / 4 + 1));
	return MIN(MAX(ms, asked), (int64_t)ASKED_MS);
}

/* The whole channel rests, also when the trace is given up for its age, or one failure would follow
 * another through all that wait. */
static void otel_later(struct otel *o, const struct otel_answer *a)
{
	const struct core *c = o->ch.d->core;
	int64_t now = clock_wall_ms(), rest_ms;

	if (o->fails++ == 0)
		core_log(o->ch.d->core, "otel: %s is asked again: %s", o->endpoint, a->reason);
	rest_ms = otel_pause_ms(o, a->after_ms);
	if (o->ch.item != NULL &&
	    now - MIN(o->ch.item->item.wall_ms, now) >= c->settings.otel_give_up_s * 1000) {
		otel_give_up(o, a->reason, rest_ms);
		return;
	}
	set_problem(o, a->reason);
	otel_over(o, CHANNEL_LATER, rest_ms);
}

static void otel_reply(const struct otel_answer *a, void *user)
{
	struct otel *o = user;

	if (a->end == CHANNEL_LATER) {
		otel_later(o, a);
		return;
	}
	if (o->fails > 0)
		core_log(o->ch.d->core, "otel: %s answers again", o->endpoint);
	o->fails = 0;
	if (a->end == CHANNEL_GIVEN_UP && o->signal == OTLP_LOGS) { /* it has the spans */
		if (!o->logs_told)
			core_log(o->ch.d->core, "otel: %s takes no logs: %s (otel.logs)",
				 o->endpoint, a->reason);
		o->logs_told = true;
		set_problem(o, a->reason);
		otel_pushed(o);
		return;
	}
	if (a->end == CHANNEL_GIVEN_UP) {
		otel_give_up(o, a->reason, 0);
		return;
	}
	o->ch.left_out += a->rejected;
	o->left_out += (uint64_t)a->rejected;
	set_problem(o, a->reason);
	otel_part_over(o);
}

/* ---- reading */

/* Skips lines that are no event, as exports do. */
static void pass_over(const char *sentence, void *user)
{
	(void)sentence;
	(void)user;
}

/* Pool thread. */
static void otel_read_part(struct job *job)
{
	struct otel *o = CONTAINER_OF(job, struct otel, job);
	char path[4400], name[LOGBOOK_PATH];
	struct stat st;

	o->part = 0;
	if (o->trace == NULL) {
		logbook_run_path(o->run, name);
		snprintf(path, sizeof(path), "%s/%s", job->core->root, name);
		if (stat(path, &st) == 0 && st.st_size > LOG_MAX)
			o->part = err_set(&o->err, AVA_ETOOBIG,
					  "its log is larger than %lld MB: use ava trace --export",
					  (long long)(LOG_MAX >> 20));
		else
			o->part = ava_trace_read(&o->trace, job->core->root, o->run, pass_over,
						 NULL, &o->err);
	}
	if (o->part == 0)
		o->part = otlp_part(o->trace, o->signal, &o->to, &o->body, &o->err);
	if (o->part == 0 && (o->signal == OTLP_LOGS || !job->core->settings.otel_logs)) {
		/* not needed while the last part is sent */
		ava_trace_free(o->trace);
		o->trace = NULL;
	}
}

static void otel_part_read(struct job *job)
{
	struct otel *o = CONTAINER_OF(job, struct otel, job);

	if (o->part < 0 && o->part != AVA_ENOMEM) {
		otel_give_up(o, o->err.text, 0);
		return;
	}
	if (o->part == 0 && o->body.len == 0) { /* no span, no record */
		otel_part_over(o);
		return;
	}
	if (o->part >= 0 && o->ch.item != NULL)
		channel_try(&o->ch)->attempts++;
	if (o->part < 0 || otel_send(o->sender, o->signal, &o->body, otel_reply, o, NULL) != 0)
		otel_over(o, CHANNEL_LATER, BUSY_MS);
}

static void otel_next_part(struct otel *o)
{
	o->to = o->from;
	buf_init(&o->body, BODY_MAX);
	o->job.run = otel_read_part;
	o->job.done = otel_part_read;
	if (job_begin(o->ch.d->core, &o->job, NULL) != 0)
		otel_over(o, CHANNEL_LATER, BUSY_MS);
}

static void otel_begin(struct channel *ch)
{
	struct otel *o = CONTAINER_OF(ch, struct otel, ch);
	const struct item *it = &ch->item->item;

	if (o->lsn != it->lsn || strcmp(o->run, it->run) != 0) {
		o->from = 0;
		o->signal = OTLP_TRACES;
		o->ch.left_out = 0;
		o->lsn = it->lsn;
		snprintf(o->run, sizeof(o->run), "%s", it->run);
	}
	otel_next_part(o);
}

/* ---- for the runtime */

static void otel_stop(struct channel *ch)
{
	struct otel *o = CONTAINER_OF(ch, struct otel, ch);

	otel_sender_free(o->sender);
	o->sender = NULL;
}

static void otel_free(struct channel *ch)
{
	struct otel *o = CONTAINER_OF(ch, struct otel, ch);

	ava_trace_free(o->trace);
	buf_fini(&o->body);
	free(o);
}

int otel_open(struct core *c, const char *endpoint, const char *headers, struct ava_error *err)
{
	static const struct channel_kind kind = {DELIVERY_OTEL, otel_begin, otel_stop, otel_free};
	struct otel *o;

	if (endpoint == NULL || endpoint[0] == '\0')
		return 0;
	o = calloc(1, sizeof(*o));
	if (o == NULL || channel_init(&o->ch, c->delivery, &kind) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	snprintf(o->endpoint, sizeof(o->endpoint), "%s", endpoint);
	o->sender =
		otel_sender_new(c->loop, endpoint, headers, c->settings.otel_timeout_s * 1000, err);
	if (o->sender == NULL)
		return err_wrap(err, err->code, "otel.endpoint");
	core_log(c, "traces of ended runs are pushed to %s", o->endpoint);
	return 0;
}

static struct otel *otel_of(const struct core *c)
{
	struct channel *ch = c->delivery->channels[OTEL];

	return ch != NULL ? CONTAINER_OF(ch, struct otel, ch) : NULL;
}

void otel_health(const struct core *c, struct jw *w)
{
	const struct otel *o = otel_of(c);
	const struct notice *next;

	if (o == NULL)
		return;
	next = LIST_FIRST(&c->delivery->queues[OTEL], struct notice, in[OTEL]);
	jw_object(w, "otel");
	jw_str(w, "endpoint", o->endpoint);
	jw_int(w, "pushed", (int64_t)o->ch.taken);
	jw_int(w, "given_up", (int64_t)o->ch.given_up);
	jw_int(w, "left_out_spans", (int64_t)o->left_out);
	jw_str(w, "at_work_on", next != NULL ? next->item.run : "");
	jw_int(w, "attempts", next != NULL ? next->tries[OTEL].attempts : 0);
	jw_str(w, "problem", o->ch.reason);
	jw_end(w);
}

/* Adds a notice without lsn, which goes before all others. */
static int otel_ask(struct otel *o, const char *run, struct ava_error *err)
{
	struct notice *it;
	unsigned n = 0;

	LIST_EACH (&o->ch.d->queues[OTEL], at, tmp) {
		it = LIST_ENTRY(at, struct notice, in[OTEL]);
		if (it->item.lsn == 0 && !it->closing && strcmp(it->item.run, run) == 0)
			return 0;
		n += it->item.lsn == 0;
	}
	if (n == ASKED_MAX)
		return err_set(err, AVA_EBUSY, "%d traces wait already: ask again", ASKED_MAX);
	it = calloc(1, sizeof(*it));
	if (it == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	it->item = (struct item){.kind = ITEM_result, .wall_ms = clock_wall_ms()};
	snprintf(it->item.run, sizeof(it->item.run), "%s", run);
	it->open = DELIVERY_OTEL;
	delivery_insert(o->ch.d, it);
	channel_pump(&o->ch);
	return 0;
}

int ops_push(struct core *c, const char *run, struct ava_error *err)
{
	struct otel *o = otel_of(c);
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
	return otel_ask(o, run, err);
}
