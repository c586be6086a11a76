/* One client, a pool for each provider that is called, a gate for each model.
 * After everything that may let somebody go the gate is asked until it says
 * no; it then names a time, and the line's timer asks again.
 *
 * A provider's address may be configured anew while the runtime lives: then
 * its next line gets a new pool, and the old one goes with its last call. */
#include "subagent/infer_lines.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/util.h"
#include "net/http_client.h"
#include "os/loop.h"
#include "provider/dialect.h"
#include "provider/provider.h"

struct infer_service { /* a provider at an address */
	struct list node;
	const struct provider *provider;
	char base_url[PROVIDER_URL_MAX];
	struct http_pool *pool;
	struct gate_circuit circuit;
	unsigned lines;
};

struct infer_line {
	struct list node;
	struct infer_lines *all;
	struct infer_service *service;
	struct gate gate;
	struct os_timer *timer;
	bool pumping;
	char model[sizeof(((struct model *)0)->wire_name)];
};

struct infer_lines {
	struct os_loop *loop;
	struct http_client *client;
	struct list services, lines;
	unsigned nlines;
	uint64_t chance;
};

struct infer_lines *infer_lines_new(struct os_loop *loop)
{
	struct infer_lines *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->loop = loop;
	list_init(&l->services);
	list_init(&l->lines);
	id_random(&l->chance, sizeof(l->chance));
	l->chance |= 1;
	return l;
}

static void service_free(struct infer_service *s)
{
	list_del(&s->node);
	http_pool_free(s->pool);
	free(s);
}

static void line_free(struct infer_line *line)
{
	struct infer_service *s = line->service;

	list_del(&line->node);
	line->all->nlines--;
	gate_fini(&line->gate);
	os_timer_free(line->timer);
	free(line);
	if (--s->lines == 0)
		service_free(s);
}

void infer_lines_free(struct infer_lines *l)
{
	if (!l)
		return;
	while (!list_empty(&l->lines))
		line_free(LIST_FIRST(&l->lines, struct infer_line, node));
	http_client_free(l->client);
	free(l);
}

/* ---- asking the gate */

/* Where in a spread one falls; nobody gains by guessing it. */
static uint64_t draw(struct infer_lines *l)
{
	l->chance ^= l->chance << 13;
	l->chance ^= l->chance >> 7;
	l->chance ^= l->chance << 17;
	return l->chance;
}

static void pump(struct infer_line *line)
{
	int64_t now = clock_mono_ms(), again;
	struct gate_ticket *t;

	if (line->pumping)
		return; /* whoever does it goes on until nobody may go */
	line->pumping = true;
	while ((t = gate_next(&line->gate, now, draw(line->all), &again)) != NULL) {
		struct infer_ticket *it = CONTAINER_OF(t, struct infer_ticket, gate);

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
	pump(user);
}

/* ---- finding and making */

static struct infer_service *service_get(struct infer_lines *l, const struct provider *p,
					 struct ava_error *err)
{
	struct http_pool_options o = {.base_url = p->base_url, .http2 = p->http2};
	struct infer_service *s;

	LIST_EACH (&l->services, n, tmp) {
		s = LIST_ENTRY(n, struct infer_service, node);
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

static bool line_idle(const struct infer_line *line)
{
	return !line->pumping && line->gate.queued + line->gate.follow + line->gate.held == 0;
}

/* Room for another one: the line nobody used for longest goes. */
static bool make_room(struct infer_lines *l)
{
	if (l->nlines < INFER_LINES_MAX)
		return true;
	LIST_EACH (&l->lines, n, tmp) {
		struct infer_line *line = LIST_ENTRY(n, struct infer_line, node);

		if (line_idle(line)) {
			line_free(line);
			return true;
		}
	}
	return false;
}

static struct infer_line *line_new(struct infer_lines *l, const struct model *m,
				   struct ava_error *err)
{
	struct infer_service *s;
	struct infer_line *line;

	if (!make_room(l)) {
		err_set(err, AVA_EBUSY, "%d models are being called at once: wait for one to end",
			INFER_LINES_MAX);
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

struct infer_line *infer_line_get(struct infer_lines *l, const struct model *m,
				  struct ava_error *err)
{
	const struct provider *p = m->provider;

	LIST_EACH (&l->lines, n, tmp) {
		struct infer_line *line = LIST_ENTRY(n, struct infer_line, node);

		if (line->service->provider == p && strcmp(line->model, m->wire_name) == 0 &&
		    strcmp(line->service->base_url, p->base_url) == 0) {
			list_del(&line->node); /* most lately used last */
			list_add(&l->lines, &line->node);
			return line;
		}
	}
	return line_new(l, m, err);
}

struct http_pool *infer_line_pool(const struct infer_line *line)
{
	return line->service->pool;
}

/* ---- at the gate */

void infer_line_want(struct infer_line *line, struct infer_ticket *t, uint64_t head)
{
	t->line = line;
	gate_want(&line->gate, &t->gate, head, clock_mono_ms());
	pump(line);
}

void infer_line_began(struct infer_ticket *t)
{
	gate_began(&t->gate, clock_mono_ms());
	if (t->line->gate.queued > 0)
		pump(t->line);
}

/* What a call says about the key holds for every model of the provider. */
static void pump_service(struct infer_line *line)
{
	LIST_EACH (&line->all->lines, n, tmp) {
		struct infer_line *other = LIST_ENTRY(n, struct infer_line, node);

		if (other != line && other->service == line->service && other->gate.queued > 0)
			pump(other);
	}
}

void infer_line_end(struct infer_ticket *t, enum reply_class cls, int64_t wait_ms)
{
	struct infer_line *line = t->line;

	if (!line)
		return;
	t->line = NULL;
	gate_end(&t->gate, cls, wait_ms, clock_mono_ms());
	if (line->service->circuit.open)
		pump_service(line);
	pump(line);
}

void infer_line_leave(struct infer_ticket *t)
{
	struct infer_line *line = t->line;

	if (!line)
		return;
	t->line = NULL;
	gate_leave(&t->gate);
	pump(line);
}

bool infer_line_closed(const struct infer_line *line)
{
	return line->gate.closed;
}

bool infer_line_refuses(const struct infer_line *line, enum reply_class *why, int64_t *for_ms)
{
	const struct gate_circuit *c = &line->service->circuit;

	*why = c->cls;
	*for_ms = MAX(c->until_ms - clock_mono_ms(), 0);
	return c->open;
}
