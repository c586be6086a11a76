/* A request is read, checked and answered when it is sent; the reply then comes in
 * pieces. Whoever stops a call hears nothing more of it, and it is paid for. */
#include "service.h"

#include <assert.h>
#include <ava.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "account.h"
#include "base/error.h"
#include "base/util.h"
#include "clockwork.h"
#include "net/http_client.h"
#include "reply.h"

struct service_temper service_temper;
void (*service_heard)(const char *body, size_t len);
void (*service_billed)(struct service_bill *b);
void (*service_broken)(struct service_bill *b);

static struct {
	struct convos *convos;
	struct tape tape;
	uint64_t serial;
	size_t requests, nbills, cap_bills;
	struct service_bill *bills;
	char refused[800];
} service;

struct http_client {
	int unused;
};
struct http_pool {
	int unused;
};

struct http_call_impl {
	struct http_call *call; /* NULL: it was stopped */
	struct convo *convo;
	struct reply reply;
	size_t sent, stop_at; /* it breaks off there; SIZE_MAX: it does not */
	unsigned pieces;
	int status, code; /* how the connection ends */
	int64_t gap_ms;
	char request_id[40], type[48], after[16];
	struct service_bill *bill;
	struct sim_due *due;
	bool busy; /* in one of its callbacks */
};

void service_begin(void)
{
	size_t cap = service.cap_bills;
	struct service_bill *bills = service.bills;

	memset(&service, 0, sizeof(service));
	service.bills = bills;
	service.cap_bills = cap;
	service.convos = convos_new();
	tape_init(&service.tape);
}

void service_end(void)
{
	convos_free(service.convos);
	tape_fini(&service.tape);
	service.convos = NULL;
}

const struct service_bill *service_bills(size_t *n)
{
	*n = service.nbills;
	return service.bills;
}

struct service_bill *service_find(const char *request_id)
{
	for (size_t i = 0; i < service.nbills; i++)
		if (strcmp(service.bills[i].request_id, request_id) == 0)
			return &service.bills[i];
	return NULL;
}

size_t service_requests(void)
{
	return service.requests;
}

const char *service_refused(void)
{
	return service.refused;
}

/* ---- the request */

static void read_header(struct ask *a, const char *line)
{
	const struct {
		const char *name;
		char *to;
		size_t size;
	} kept[] = {{"x-api-key:", a->key, sizeof(a->key)},
		    {"anthropic-version:", a->version, sizeof(a->version)},
		    {"content-type:", a->type, sizeof(a->type)}};

	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		size_t n = strlen(kept[i].name);

		if (strncasecmp(line, kept[i].name, n) == 0)
			snprintf(kept[i].to, kept[i].size, "%s", line + n + strspn(line + n, " "));
	}
}

/* What of it is wrong stays for the judge: the runtime may never send it. But that a
 * window is smaller than told it learns from the answer in *v. */
static bool check(struct ask *a, const struct http_call *c, struct convo **x, struct verdict *v)
{
	struct plan base;
	bool good, fits = true;

	snprintf(a->method, sizeof(a->method), "POST");
	snprintf(a->path, sizeof(a->path), "%s", c->path);
	for (unsigned i = 0; i < c->nheaders; i++)
		read_header(a, c->headers[i]);
	a->body_len = c->body.len;
	good = check_headers(a, v) && tape_read(&service.tape, c->body.data, c->body.len) &&
	       ask_read(a, &service.tape, v) && check_anthropic(a, v);
	plan_default(&base);
	base.prefix = !service_temper.edits;
	if (good)
		*x = convo_find(service.convos, a, &base, NULL, v);
	good = good && *x != NULL;
	if (good)
		fits = check_window(a, (int64_t)a->body_len / 4, v);
	if ((!good || (!fits && (*x)->plan.window == 0)) && service.refused[0] == '\0')
		snprintf(service.refused, sizeof(service.refused), "request %zu: %d %s",
			 service.requests, v->status, v->text);
	return good && fits;
}

static struct service_bill *bill(const struct ask *a, struct prompt_tokens t, int64_t output)
{
	struct service_bill *b;

	if (service.nbills == service.cap_bills) {
		service.cap_bills = service.cap_bills * 2 + 64;
		service.bills = realloc(service.bills, service.cap_bills * sizeof(*service.bills));
		assert(service.bills != NULL);
	}
	b = &service.bills[service.nbills++];
	*b = (struct service_bill){
		.input = t.input + t.cache_read + t.cache_write,
		.output = output,
		.cost_microusd = account_cost(a->facts, t, output),
	};
	snprintf(b->request_id, sizeof(b->request_id), "req_01%016" PRIx64, service.serial);
	return b;
}

static void answer(struct http_call_impl *m, struct ask *a)
{
	struct say say = {.ask = a, .convo = m->convo, .serial = ++service.serial};
	struct content content;
	struct service_bill *b;

	m->convo->plan.output_tokens = sim_span(1, MIN(service_temper.heavy, a->max_tokens));
	say.tokens = cache_tokens(service.convos, a, sim.now, sim.now + 1);
	content_make(a, m->convo, NULL, &content);
	say.content = &content;
	reply_render(&m->reply, &say);
	m->convo->sent = m->reply.print;
	m->convo->odd = false;
	content_fini(&content);
	b = bill(a, say.tokens, m->reply.output_tokens);
	if (service_billed != NULL)
		service_billed(b);
	m->status = 200;
	memcpy(m->request_id, b->request_id, sizeof(m->request_id));
	snprintf(m->type, sizeof(m->type), "text/event-stream; charset=utf-8");
	if (sim_maybe(service_temper.cut)) {
		m->stop_at = (size_t)sim_span(0, (int64_t)m->reply.bytes.len - 1);
		m->code = sim_maybe(700) ? AVA_EIO : AVA_ETIMEOUT;
	}
}

static void answer_verdict(struct http_call_impl *m, struct ask *a, const struct verdict *v)
{
	snprintf(m->request_id, sizeof(m->request_id), "req_02%016" PRIx64, ++service.serial);
	verdict_body(a, v, m->request_id, &m->reply.bytes);
	m->status = v->status;
	snprintf(m->type, sizeof(m->type), "application/json");
}

static void refuse(struct http_call_impl *m, struct ask *a)
{
	static const struct {
		int status;
		const char *type;
	} kinds[] = {{429, "rate_limit_error"}, {500, "api_error"}, {529, "overloaded_error"}};
	size_t i = (size_t)sim_span(0, 2);
	struct verdict v = {0};

	verdict_set(&v, kinds[i].status, kinds[i].type, "not now");
	answer_verdict(m, a, &v);
	if (sim_maybe(300))
		snprintf(m->after, sizeof(m->after), "%d", (int)sim_span(1, 30));
	else if (i != 1 && sim_maybe(150)) /* whoever asked is parked */
		snprintf(m->after, sizeof(m->after), "%d", (int)sim_span(121, 9000));
}

/* ---- the reply */

static void broken(const struct http_call_impl *m)
{
	struct service_bill *b = service_find(m->request_id);

	if (b != NULL && service_broken != NULL && !sim.dead)
		service_broken(b);
}

static void impl_free(struct http_call_impl *m)
{
	if (m->convo != NULL)
		m->convo->active--;
	reply_drop(&m->reply);
	free(m);
}

static void over(struct http_call_impl *m)
{
	struct ava_error err = {0};
	struct service_bill *b = service_find(m->request_id);

	err_set(&err, m->code, "the connection ended");
	if (m->code == 0 && b != NULL) {
		b->whole = true;
		m->convo->answered = true;
	}
	if (m->code != 0)
		broken(m);
	if (m->convo != NULL)
		m->convo->active--;
	m->convo = NULL;
	m->busy = true;
	m->call->done(m->call, m->code, &err);
	impl_free(m);
}

static void come(void *user)
{
	struct http_call_impl *m = user;
	size_t len = MIN(m->reply.bytes.len, m->stop_at);
	size_t to = m->pieces > 1 ? m->sent + (len - m->sent) / m->pieces : len;
	size_t from = m->sent;

	m->due = NULL;
	if (!clockwork_touch())
		return;
	m->call->status = m->status;
	m->sent = to;
	m->pieces -= m->pieces > 0;
	if (to > from) {
		m->busy = true;
		(void)m->call->data(m->call, m->reply.bytes.data + from, to - from);
		m->busy = false;
	}
	if (m->call == NULL) { /* the stream was hopeless */
		impl_free(m);
		return;
	}
	if (m->sent == len && m->pieces == 0)
		over(m);
	else
		m->due = sim_at(sim.now + m->gap_ms, come, m);
}

/* ---- net/http_client.h */

int http_client_start(struct http_client *c, struct ava_error *err)
{
	(void)c, (void)err;
	return 0;
}

const char *http_client_ca(void)
{
	return NULL;
}

struct http_client *http_client_new(struct os_loop *l, struct ava_error *err)
{
	(void)l;
	(void)err;
	return calloc(1, sizeof(struct http_client));
}

void http_client_free(struct http_client *c)
{
	free(c);
}

struct http_pool *http_pool_new(struct http_client *c, const struct http_pool_options *o,
				struct ava_error *err)
{
	(void)c;
	(void)o;
	(void)err;
	return calloc(1, sizeof(struct http_pool));
}

void http_pool_free(struct http_pool *p)
{
	free(p);
}

static int64_t draw_wait(void)
{
	return sim_maybe(service_temper.slow) ? sim_span(1, 110000) : sim_span(1, 4000);
}

int http_call_start(struct http_pool *p, struct http_call *c, struct ava_error *err)
{
	struct http_call_impl *m = calloc(1, sizeof(*m));
	struct ask a = {.service = SERVICE_ANTHROPIC};
	struct verdict v = {0};

	(void)p;
	(void)err;
	assert(m != NULL);
	buf_init(&m->reply.bytes, 16u << 20);
	m->call = c;
	m->stop_at = SIZE_MAX;
	m->pieces = (unsigned)sim_span(1, 3);
	m->gap_ms = sim_span(0, 500);
	c->impl = m;
	c->status = 0;
	if (!clockwork_touch()) {
		buf_fini(&c->body);
		return 0; /* it never left: the process is gone */
	}
	service.requests++;
	if (service_heard != NULL)
		service_heard(c->body.data, c->body.len);
	if (!check(&a, c, &m->convo, &v)) {
		answer_verdict(m, &a, &v);
	} else if (sim_maybe(service_temper.refuse)) {
		refuse(m, &a);
	} else {
		answer(m, &a);
	}
	if (m->convo != NULL)
		m->convo->active++;
	buf_fini(&c->body);
	m->due = sim_at(sim.now + draw_wait(), come, m);
	return 0;
}

void http_call_lives(struct http_call *c) {}

void http_call_ends(struct http_call *c, int64_t ms)
{
	(void)c, (void)ms;
}

void http_call_stop(struct http_call *c)
{
	struct http_call_impl *m = c->impl;

	if (m == NULL || m->call != c)
		return;
	m->call = NULL;
	c->impl = NULL;
	broken(m);
	if (m->busy)
		return;
	sim_cancel(m->due);
	impl_free(m);
}

const char *http_call_header(const struct http_call *c, const char *name)
{
	const struct http_call_impl *m = c->impl;

	if (m == NULL || m->status == 0)
		return NULL;
	if (strcmp(name, "request-id") == 0)
		return m->request_id;
	if (strcmp(name, "content-type") == 0)
		return m->type;
	return strcmp(name, "retry-after") == 0 && m->after[0] ? m->after : NULL;
}
