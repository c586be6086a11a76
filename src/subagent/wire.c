/* One client, a pool for each provider that is called, a gate for each model.
 * After every change at a gate its tickets are let go until it says no; it
 * then names a time, and the line's timer asks again. A provider's
 * address may be configured anew while the runtime lives: then its next line
 * gets a new pool, and the old one goes with its last call.
 *
 * An attempt: headers with the key are made, handed over and wiped. Then bytes
 * come: the stream says what was progress (comments and pings are not, or a queue
 * that never moves would hold the call open) and when the reply is hopeless. A reply
 * counts when its end mark arrived, whatever became of the connection after it.
 * Without the mark the connection's failure is told, unless the service had said in
 * words what was wrong. */
#include "subagent/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"
#include "base/id.h"
#include "base/settings.h"
#include "base/util.h"
#include "os/loop.h"
#include "provider/learned.h"
#include "provider/model.h"
#include "provider/told.h"

#define LIMIT_MAX   64
#define TOGETHER_MS 60000 /* runs parked until times so near come back together */

struct wire_service { /* a provider at an address */
	struct list node;
	const struct provider *provider;
	char base_url[PROVIDER_URL_MAX];
	struct http_pool *pool;
	struct gate_circuit circuit;
	unsigned lines;
	bool v1, asked_v1; /* paths begin with /v1, which the address lacks; that was tried */
};

struct wire_line {
	struct list node;
	struct wire_lines *all;
	struct wire_service *service;
	struct call_gate gate;
	struct os_timer *timer;
	bool pumping;
	int64_t park_ms, back_ms; /* wall: parked until; last opened for a trial call */
	char limit[LIMIT_MAX];    /* the limit that the service named */
	char model[sizeof(((struct model *)0)->wire_name)];
};

struct wire_lines {
	struct os_loop *loop;
	struct http_client *client;
	struct list services, lines;
	unsigned nlines;
	uint64_t chance;
};

struct wire_lines *wire_lines_new(struct os_loop *loop)
{
	struct wire_lines *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->loop = loop;
	list_init(&l->services);
	list_init(&l->lines);
	id_random(&l->chance, sizeof(l->chance));
	l->chance |= 1;
	return l;
}

static void service_free(struct wire_service *s)
{
	list_del(&s->node);
	http_pool_free(s->pool);
	free(s);
}

static void line_free(struct wire_line *line)
{
	struct wire_service *s = line->service;

	list_del(&line->node);
	line->all->nlines--;
	gate_fini(&line->gate);
	os_timer_free(line->timer);
	free(line);
	if (--s->lines == 0)
		service_free(s);
}

void wire_lines_free(struct wire_lines *l)
{
	if (!l)
		return;
	while (!list_empty(&l->lines))
		line_free(LIST_FIRST(&l->lines, struct wire_line, node));
	http_client_free(l->client);
	free(l);
}

/* ---- asking the gate */

/* Random bits that spread waits; they need not be hard to guess. */
static uint64_t wire_draw(struct wire_lines *l)
{
	l->chance ^= l->chance << 13;
	l->chance ^= l->chance >> 7;
	l->chance ^= l->chance << 17;
	return l->chance;
}

static void wire_pump(struct wire_line *line)
{
	int64_t now = clock_mono_ms(), again;
	struct gate_ticket *t;

	if (line->pumping)
		return; /* the outer call goes on until none may go */
	line->pumping = true;
	while ((t = gate_next(&line->gate, now, wire_draw(line->all), &again)) != NULL) {
		struct wire_ticket *it = CONTAINER_OF(t, struct wire_ticket, gate);

		it->go(it);
	}
	line->pumping = false;
	if (again == INT64_MAX)
		os_timer_stop(line->timer);
	else
		os_timer_set(line->timer, MAX(again - now, 0));
}

static void pump_due(void *user)
{
	wire_pump(user);
}

/* ---- finding and making */

static struct wire_service *service_get(struct wire_lines *l, const struct provider *p,
					struct ava_error *err)
{
	struct http_pool_options o = {.base_url = p->base_url, .http2 = p->http2};
	struct wire_service *s;

	LIST_EACH (&l->services, n, tmp) {
		s = LIST_ENTRY(n, struct wire_service, node);
		if (s->provider == p && strcmp(s->base_url, p->base_url) == 0)
			return s;
	}
	if (!l->client)
		l->client = http_client_new(l->loop, err);
	s = l->client ? calloc(1, sizeof(*s)) : NULL;
	if (!s) {
		err_set(err, AVA_ENOMEM, "out of memory");
		return NULL;
	}
	s->provider = p;
	memcpy(s->base_url, p->base_url, sizeof(s->base_url));
	s->pool = http_pool_new(l->client, &o, err);
	if (!s->pool) {
		free(s);
		return NULL;
	}
	list_add(&l->services, &s->node);
	return s;
}

/* Room for another line: the one unused for longest goes. */
static bool wire_make_room(struct wire_lines *l)
{
	if (l->nlines < WIRE_LINES_MAX)
		return true;
	LIST_EACH (&l->lines, n, tmp) {
		struct wire_line *line = LIST_ENTRY(n, struct wire_line, node);

		if (!line->pumping &&
		    line->gate.queued + line->gate.follow + line->gate.held == 0) {
			line_free(line);
			return true;
		}
	}
	return false;
}

static struct wire_line *wire_line_new(struct wire_lines *l, const struct model *m,
				       struct ava_error *err)
{
	struct wire_service *s;
	struct wire_line *line;

	if (!wire_make_room(l)) {
		err_set(err, AVA_EBUSY, "%d models are being called at once: wait for one to end",
			WIRE_LINES_MAX);
		return NULL;
	}
	s = service_get(l, m->provider, err);
	line = s ? calloc(1, sizeof(*line)) : NULL;
	if (line)
		line->timer = os_timer_new(l->loop, pump_due, line);
	if (!line || !line->timer) {
		free(line);
		if (s && s->lines == 0)
			service_free(s);
		if (s)
			err_set(err, AVA_ENOMEM, "out of memory");
		return NULL;
	}
	line->all = l;
	line->service = s;
	s->lines++;
	memcpy(line->model, m->wire_name, sizeof(line->model));
	gate_init(&line->gate, &s->circuit);
	list_add(&l->lines, &line->node);
	l->nlines++;
	return line;
}

/* Holds the calls to as many as the server works at: further ones would only wait there unseen. */
static struct wire_line *line_bounded(struct wire_line *line, const struct model *m)
{
	struct learned l = {0};

	if (!m->provider->needs_key)
		(void)learned_find(m->id, m->provider->base_url, &l);
	if (line)
		line->gate.most = l.slots > 0 ? (unsigned)MIN(l.slots, GATE_MAX) : GATE_MAX;
	return line;
}

struct wire_line *wire_line_get(struct wire_lines *l, const struct model *m, struct ava_error *err)
{
	const struct provider *p = m->provider;

	LIST_EACH (&l->lines, n, tmp) {
		struct wire_line *line = LIST_ENTRY(n, struct wire_line, node);

		if (line->service->provider == p && strcmp(line->model, m->wire_name) == 0 &&
		    strcmp(line->service->base_url, p->base_url) == 0) {
			list_del(&line->node); /* the line used last stands last */
			list_add(&l->lines, &line->node);
			return line_bounded(line, m);
		}
	}
	return line_bounded(wire_line_new(l, m, err), m);
}

struct http_pool *wire_line_pool(const struct wire_line *line)
{
	return line->service->pool;
}

const char *wire_line_prefix(const struct wire_line *line)
{
	return line->service->v1 ? "/v1" : "";
}

bool wire_line_mend(struct wire_line *line, const struct wirecall *w)
{
	struct wire_service *s = line->service;

	if (w->prefix && w->prefix[0])
		s->v1 = false;
	else if (!s->asked_v1)
		s->v1 = !provider_versioned(s->provider);
	s->asked_v1 = true;
	return s->v1;
}

/* ---- at the gate */

void wire_line_want(struct wire_line *line, struct wire_ticket *t, uint64_t head)
{
	t->line = line;
	gate_want(&line->gate, &t->gate, head, clock_mono_ms());
	wire_pump(line);
}

bool wire_line_began(struct wire_ticket *t)
{
	struct wire_line *line = t->line;
	/* A call that was sent before the line was parked proves nothing. */
	bool back = line->park_ms > clock_wall_ms() && t->gate.epoch == line->gate.epoch;

	gate_began(&t->gate, clock_mono_ms());
	if (back)
		line->park_ms = 0;
	if (line->gate.queued > 0)
		wire_pump(line);
	return back;
}

void wire_line_end(struct wire_ticket *t, enum reply_class cls, struct retry_plan *plan)
{
	struct wire_line *line = t->line;

	if (!line)
		return;
	t->line = NULL;
	gate_end(&t->gate, cls, plan, clock_mono_ms());
	if (line->service->circuit.open) /* the key is refused: for every model of the provider */
		LIST_EACH (&line->all->lines, n, tmp) {
			struct wire_line *other = LIST_ENTRY(n, struct wire_line, node);

			if (other != line && other->service == line->service &&
			    other->gate.queued > 0)
				wire_pump(other);
		}
	wire_pump(line);
}

void wire_line_leave(struct wire_ticket *t)
{
	struct wire_line *line = t->line;

	if (!line)
		return;
	t->line = NULL;
	gate_leave(&t->gate);
	wire_pump(line);
}

void wire_line_park(struct wire_line *line, int64_t until_ms, const char *limit)
{
	unsigned n = line->gate.queued + line->gate.follow; /* some may queue again in the loop */
	struct gate_ticket *t;

	line->park_ms = until_ms;
	snprintf(line->limit, sizeof(line->limit), "%s", limit);
	gate_back(&line->gate, clock_mono_ms()); /* for calls that may not park so long */
	for (; n > 0 && (t = gate_send_away(&line->gate)) != NULL; n--) {
		struct wire_ticket *it = CONTAINER_OF(t, struct wire_ticket, gate);

		it->go(it);
	}
}

bool wire_line_parked(const struct wire_line *line, int64_t *until_ms, const char **limit)
{
	*until_ms = line->park_ms;
	*limit = line->limit;
	return line->park_ms > clock_wall_ms();
}

void wire_line_back(struct wire_line *line, int64_t until_ms)
{
	int64_t now_ms = clock_wall_ms();

	if (line->back_ms <= now_ms && until_ms <= line->back_ms + TOGETHER_MS)
		return;
	line->back_ms = now_ms;
	gate_back(&line->gate, clock_mono_ms());
}

bool wire_line_closed(const struct wire_line *line)
{
	return line->gate.closed;
}

bool wire_line_refuses(const struct wire_line *line, enum reply_class *why, int64_t *for_ms)
{
	const struct gate_circuit *c = &line->service->circuit;

	*why = c->cls;
	*for_ms = MAX(c->until_ms - clock_mono_ms(), 0);
	return c->open;
}

#define HEADERS_MAX 16  /* most headers of a dialect */
#define FIRST_S     120 /* seconds when net.first_event_timeout is not set */
#define LATE_MOST   10u /* most doublings of a time limit */
#define LONGEST_MS  (7 * INT64_C(86400000))
#define PAST_END_MS 5000 /* ms past a run's end, so that its own end comes first */

/* ---- the end */

static enum reply_class transport_class(int rv, bool began)
{
	switch (rv) {
	case AVA_ETIMEOUT:
		return REPLY_TIMEOUT;
	case AVA_ECONNECT:
		return REPLY_NETWORK;
	case AVA_EIO:
		return began ? REPLY_TRUNCATED : REPLY_NETWORK;
	case AVA_EPROTO:
	case AVA_ETOOBIG:
		return REPLY_PROTOCOL;
	default: /* a certificate that is refused, no memory */
		return REPLY_OTHER;
	}
}

/* Any good status is 200 to a stream. */
static int reply_status(const struct wirecall *w)
{
	return w->http.status / 100 == 2 ? 200 : w->http.status;
}

/* Did the service itself say what is wrong? */
static bool wire_said(enum reply_class cls)
{
	return cls != REPLY_TRUNCATED && cls != REPLY_NETWORK && cls != REPLY_PROTOCOL &&
	       cls != REPLY_OTHER;
}

/* May the service bill the attempt? Yes if a stream began, or broke before it could: the
 * model was at work. A page or an error that came with 200 is no reply. */
static bool billed(const struct wirecall *w, enum reply_class cls)
{
	return w->began ||
	       (reply_status(w) == 200 &&
		(cls == REPLY_TRUNCATED || cls == REPLY_NETWORK || cls == REPLY_TIMEOUT));
}

static void name_request(struct wirecall *w, struct wirecall_end *end)
{
	static const char *const names[] = {"request-id", "x-generation-id", "x-request-id"};
	const char *id = NULL, *copy;

	for (size_t i = 0; i < ARRAY_LEN(names) && (!id || !*id); i++)
		id = http_call_header(&w->http, names[i]);
	if (!id || !*id)
		return;
	snprintf(end->error.request_id, sizeof(end->error.request_id), "%s", id);
	copy = end->turn ? arena_copy(&end->turn->mem, id, strlen(id)) : NULL;
	if (copy)
		end->turn->request_id = copy;
}

/* When the used-up limit comes back, by the headers of several services; of several limits the
 * last. 0: no header says so. */
static int64_t read_resets(struct wirecall *w, struct reply_error *e)
{
	static const struct {
		const char *reset, *left; /* a limit is used up: `left` says "0" or "rejected" */
	} headers[] = {
		{"anthropic-ratelimit-unified-reset", "anthropic-ratelimit-unified-status"},
		{"anthropic-ratelimit-requests-reset", "anthropic-ratelimit-requests-remaining"},
		{"anthropic-ratelimit-tokens-reset", "anthropic-ratelimit-tokens-remaining"},
		{"anthropic-ratelimit-input-tokens-reset",
		 "anthropic-ratelimit-input-tokens-remaining"},
		{"anthropic-ratelimit-output-tokens-reset",
		 "anthropic-ratelimit-output-tokens-remaining"},
		{"x-ratelimit-reset-requests", "x-ratelimit-remaining-requests"},
		{"x-ratelimit-reset-tokens", "x-ratelimit-remaining-tokens"},
		{"x-ratelimit-reset-requests-day", "x-ratelimit-remaining-requests-day"},
		{"x-ratelimit-reset-tokens-day", "x-ratelimit-remaining-tokens-day"},
		{"x-ratelimit-reset", "x-ratelimit-remaining"},
		{"ratelimit-reset", "ratelimit-remaining"},
	};
	const char *claim =
		http_call_header(&w->http, "anthropic-ratelimit-unified-representative-claim");
	int64_t ms = 0;

	for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
		const char *reset = http_call_header(&w->http, headers[i].reset);
		const char *left = http_call_header(&w->http, headers[i].left);

		if (reset && left && (strcmp(left, "0") == 0 || strcmp(left, "rejected") == 0))
			ms = MAX(ms, told_wait(reset, clock_wall_ms()));
	}
	if (claim)
		stream_error_limit(e, claim);
	return ms;
}

/* `rv`, `err`: how the connection ended. */
static void wire_finish(struct wirecall *w, int rv, const struct ava_error *err, bool stop)
{
	struct wirecall_end end = {0};
	struct stream *s = w->stream;
	char kept[4][128]; /* copies: the headers go with the call */
	const struct {
		const char *name, **to;
	} headers[] = {
		{"x-should-retry", &end.failure.should_retry},
		{"retry-after-ms", &end.failure.after_ms},
		{"retry-after", &end.failure.after},
		{"date", &end.failure.date},
	};

	/* A service that is silent after its reason has ended, too. */
	if (!stop && (rv == 0 || (rv == AVA_ETIMEOUT && stream_rest_ms(s) >= 0)))
		stream_body_end(s, w->http.framed ? BODY_WHOLE : BODY_CLOSED);
	end.failure.cls = stream_end(s, reply_status(w), http_call_header(&w->http, "content-type"),
				     &end.turn, &end.error);
	if (end.failure.cls != REPLY_OK && rv < 0 && !wire_said(end.failure.cls)) {
		end.failure.cls = transport_class(rv, w->began);
		format_cut(end.error.text, sizeof(end.error.text), err->text);
	}
	if (end.failure.cls == REPLY_ADDRESS && http_call_header(&w->http, "location"))
		snprintf(end.error.text, sizeof(end.error.text), "it redirects to %.180s",
			 http_call_header(&w->http, "location"));
	end.error.cls = end.failure.cls;
	end.failure.never = end.error.never;
	if (end.error.after[0])
		end.failure.after = end.error.after;
	if (end.failure.cls == REPLY_RATE_LIMIT)
		end.failure.reset_ms = read_resets(w, &end.error);
	end.accepted = billed(w, end.failure.cls);
	end.failure.status = w->http.status;
	name_request(w, &end);
	for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
		const char *value = http_call_header(&w->http, headers[i].name);

		if (!value)
			continue;
		snprintf(kept[i], sizeof(kept[i]), "%s", value);
		*headers[i].to = kept[i];
	}
	w->stream = NULL;
	if (stop)
		http_call_stop(&w->http);
	stream_free(s);
	w->on_done(w, &end);
}

struct http_timers wire_timers(const struct provider *p, const struct settings *s, int64_t left_ms,
			       unsigned late)
{
	struct http_timers t = {
		.connect_ms = s->net_connect_s * 1000,
		.first_ms = (s->net_first_s > 0 ? s->net_first_s : FIRST_S) * 1000,
		.idle_ms = s->net_idle_s * 1000,
		.total_ms = s->net_total_s * 1000,
	};

	late = MIN(late, LATE_MOST);
	t.first_ms <<= late;
	t.idle_ms <<= late;
	if (provider_is_near(p) && s->net_first_s == 0)
		t.first_ms = t.total_ms = MAX(t.total_ms, MIN(left_ms, LONGEST_MS) + PAST_END_MS);
	return t;
}

/* ---- as it comes */

static bool wire_on_data(struct http_call *c, const char *s, size_t n)
{
	struct wirecall *w = c->user;
	int64_t rest_ms = stream_rest_ms(w->stream);
	bool progress = false;
	int rv = stream_feed(w->stream, s, n, &progress);

	/* A reply has begun even if later bytes of `s` end it. */
	if (progress && !w->began && reply_status(w) == 200) {
		w->began = true;
		w->on_began(w);
	}
	if (rv < 0 || stream_rest_ms(w->stream) == 0) {
		wire_finish(w, 0, NULL, true);
		return false;
	}
	/* Some gateways keep the stream open behind its end. */
	if (stream_rest_ms(w->stream) != rest_ms)
		http_call_ends(c, stream_rest_ms(w->stream));
	if (stream_written(w->stream) > 0)
		return progress;
	http_call_lives(c);
	return false;
}

static void wire_on_done(struct http_call *c, int rv, const struct ava_error *err)
{
	wire_finish(c->user, rv, err, false);
}

/* ---- start and stop */

/* The lines in `text` as pointers; newlines become ends. */
static unsigned wire_split(char *text, const char *lines[HEADERS_MAX])
{
	unsigned n = 0;

	for (char *at = text, *nl; at && (nl = strchr(at, '\n')) && n < HEADERS_MAX; at = nl + 1) {
		*nl = 0;
		lines[n++] = at;
	}
	return n;
}

int wirecall_start(struct wirecall *w, struct http_pool *pool, const struct model *m,
		   const char *key, const char *tag, struct buf *body, struct ava_error *err)
{
	const char *lines[HEADERS_MAX];
	struct buf headers;
	char path[64];
	int rv;

	snprintf(path, sizeof(path), "%s%s", w->prefix ? w->prefix : "", m->dialect->path);
	buf_init(&headers, 16384);
	if (!buf_reserve(&headers, 8192)) /* so that no copy of the key is left by growing */
		return err_set(err, AVA_ENOMEM, "out of memory");
	w->model = m;
	w->began = false;
	w->stream = stream_open(m->dialect->stream, m, tag);
	rv = w->stream ? m->dialect->headers(&headers, m, key) : AVA_ENOMEM;
	if (rv == 0) {
		stream_asked(w->stream, (int64_t)body->len, w->max_output);
		stream_tools(w->stream, w->tools, w->ntools);
		if (w->on_text)
			stream_on_text(w->stream, w->on_text, w->text_user);
		w->http = (struct http_call){
			.path = path,
			.headers = lines,
			.nheaders = wire_split(headers.data, lines),
			.body = *body,
			.timers = w->http.timers,
			.data = wire_on_data,
			.done = wire_on_done,
			.user = w,
		};
		rv = http_call_start(pool, &w->http, err);
		w->http.headers = NULL;
		w->http.nheaders = 0;
	} else {
		err_set(err, rv,
			rv == AVA_ENOMEM
				? "out of memory"
				: "the key cannot be sent: it holds characters that no key has");
	}
	/* After a failure bytes behind `len` may hold half-made headers: wipe all. */
	explicit_bzero(headers.data, rv == 0 ? headers.len : headers.cap);
	buf_fini(&headers);
	if (rv == 0) {
		buf_init(body, body->max);
	} else {
		stream_free(w->stream);
		w->stream = NULL;
	}
	return rv;
}

void wirecall_stop(struct wirecall *w, struct usage *cut)
{
	struct reply_error e = {0};
	struct turn *t = NULL;

	if (cut)
		*cut = (struct usage){.cost_microusd = -1, .estimated = true};
	if (!w->stream)
		return;
	http_call_stop(&w->http);
	if (cut && stream_end(w->stream, reply_status(w), NULL, &t, &e) == REPLY_OK)
		*cut = t->usage;
	else if (cut)
		*cut = e.usage;
	turn_free(t);
	stream_free(w->stream);
	w->stream = NULL;
}
