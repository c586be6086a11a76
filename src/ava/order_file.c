/* The file of a standing order, both ways (doc/ORDERS.md, "How it happens once"). It is written
 * whole, in the commit of what changed, and read at the start alone.
 *
 * What can fail: memory, and a file that is damaged; the start tells of that one, and goes on. */
#include "ava/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "codec/json.h"

static const char *const state_names[] = {
	[ORDER_NEW] = "new",   [ORDER_ACTIVE] = "active", [ORDER_PAUSED] = "paused",
	[ORDER_ASKS] = "asks", [ORDER_DONE] = "done",     [ORDER_REMOVED] = "removed",
};

const char *order_state_name(enum order_state s)
{
	return state_names[s];
}

struct standing *order_alloc(void)
{
	struct standing *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	list_init(&o->node);
	list_init(&o->wait.node);
	list_init(&o->deliveries);
	list_init(&o->held);
	return o;
}

/* A copy at *to, which moves on; NULL stays NULL. */
static const char *delivery_copy(char **to, const char *s)
{
	char *copy = *to;

	if (!s)
		return NULL;
	*to = stpcpy(copy, s) + 1;
	return copy;
}

static size_t delivery_bytes(const char *s)
{
	return s ? strlen(s) + 1 : 0;
}

struct order_delivery *order_deliver(struct list *to, const struct order_fire *f)
{
	struct order_delivery *d =
		malloc(sizeof(*d) + delivery_bytes(f->by) + delivery_bytes(f->origin) +
		       delivery_bytes(f->extra) + delivery_bytes(f->request_id));
	char *at = d ? (char *)(d + 1) : NULL;

	if (!d)
		return NULL;
	*d = (struct order_delivery){.number = 1,
				     .fire = {.by = delivery_copy(&at, f->by),
					      .origin = delivery_copy(&at, f->origin),
					      .extra = delivery_copy(&at, f->extra),
					      .request_id = delivery_copy(&at, f->request_id),
					      .delivered = f->delivered}};
	if (!list_empty(to))
		d->number = LIST_ENTRY(to->prev, struct order_delivery, node)->number + 1;
	list_init(&d->node);
	list_add(to, &d->node);
	return d;
}

void order_delivery_free(struct order_delivery *d)
{
	list_del(&d->node);
	free(d);
}

struct order_delivery *order_delivery_of(const struct standing *o, int64_t number)
{
	LIST_EACH (&o->deliveries, node, tmp)
		if (LIST_ENTRY(node, struct order_delivery, node)->number == number)
			return LIST_ENTRY(node, struct order_delivery, node);
	return NULL;
}

static void order_free_deliveries(struct list *all)
{
	while (!list_empty(all))
		order_delivery_free(LIST_FIRST(all, struct order_delivery, node));
}

void order_free(struct standing *o)
{
	if (!o)
		return;
	list_del(&o->node);
	list_del(&o->wait.node);
	order_free_deliveries(&o->deliveries);
	order_free_deliveries(&o->held);
	order_fini(&o->plan);
	free(o->config);
	free(o->config_next);
	free(o->session);
	free(o->user);
	free(o->call);
	free(o);
}

/* A due time, or {"due","by","origin","request","text"}. */
static void order_file_waits(struct jw *w, const struct standing *o, const struct order_waits *is)
{
	const struct order_delivery *d = order_delivery_of(o, is->delivery);

	if (!d) {
		jw_time(w, NULL, is->due_ms);
		return;
	}
	jw_object(w, NULL);
	jw_time(w, "due", is->due_ms);
	jw_str(w, "by", d->fire.by);
	jw_str(w, "origin", d->fire.origin);
	if (d->fire.request_id)
		jw_str(w, "request", d->fire.request_id);
	if (d->fire.extra)
		jw_str(w, "text", d->fire.extra);
	jw_end(w);
}

int order_file_write(struct buf *out, const struct standing *o, const struct order_now *n,
		     const char *config, const char *hash)
{
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_str(&w, "id", o->plan.id);
	jw_str(&w, "state", state_names[n->state]);
	jw_str(&w, "hash", hash);
	jw_str(&w, "session", o->session);
	jw_str(&w, "user", o->user);
	jw_time(&w, "made", o->made_ms);
	jw_time(&w, "last", n->last_ms);
	jw_int(&w, "fired", n->fired);
	jw_str(&w, "run", n->run);
	jw_bool(&w, "settled", n->settled);
	jw_str(&w, "day", n->day);
	jw_fixed(&w, "day_cents", n->day_microusd, 4);
	jw_fixed(&w, "month_cents", n->month_microusd, 4);
	jw_array(&w, "waiting");
	for (unsigned i = 0; i < n->nwaiting; i++)
		order_file_waits(&w, o, &n->waiting[i]);
	jw_end(&w);
	jw_str(&w, "why", n->why);
	jw_str(&w, "told", n->told);
	jw_int(&w, "reasons", n->reasons);
	jw_raw(&w, "config", config, strlen(config));
	jw_end(&w);
	return buf_check(out);
}

static void order_file_copy(char *to, size_t size, const json_t *o, const char *key)
{
	snprintf(to, size, "%s", json_str(o, key));
}

/* Back from it; false: no memory. */
static bool order_file_waiting(struct standing *o, const json_t *v)
{
	struct order_waits *is = &o->now.waiting[o->now.nwaiting++];
	struct order_delivery *d;

	if (!json_is_object(v)) {
		is->due_ms = MAX(json_time(v), 0);
		return true;
	}
	d = order_deliver(&o->deliveries, &(struct order_fire){
						  .by = json_str(v, "by"),
						  .origin = json_str(v, "origin"),
						  .extra = json_get_str(v, "text"),
						  .request_id = json_get_str(v, "request"),
						  .delivered = true,
					  });
	is->due_ms = MAX(json_time(json_object_get(v, "due")), 0);
	is->delivery = d ? d->number : 0;
	return d != NULL;
}

static int order_file_now(const json_t *o, struct standing *to)
{
	struct order_now *n = &to->now;
	const json_t *waiting = json_object_get(o, "waiting"), *v;
	const char *state = json_str(o, "state");
	size_t i;

	n->state = ORDER_NEW;
	for (enum order_state s = ORDER_ACTIVE; s <= ORDER_REMOVED; s++)
		if (strcmp(state, state_names[s]) == 0)
			n->state = s;
	n->last_ms = MAX(json_time(json_object_get(o, "last")), 0);
	n->fired = json_get_int(o, "fired", 0);
	n->settled = json_get_bool(o, "settled", true);
	n->day_microusd = json_get_fixed(o, "day_cents", 4, 0);
	n->month_microusd = json_get_fixed(o, "month_cents", 4, 0);
	n->reasons = (unsigned)json_get_int(o, "reasons", 0);
	order_file_copy(n->run, sizeof(n->run), o, "run");
	order_file_copy(n->day, sizeof(n->day), o, "day");
	order_file_copy(n->why, sizeof(n->why), o, "why");
	order_file_copy(n->told, sizeof(n->told), o, "told");
	json_array_foreach(waiting, i, v)
	{
		if (n->nwaiting < ORDER_ALL && !order_file_waiting(to, v))
			return AVA_ENOMEM;
	}
	return n->state == ORDER_NEW ? AVA_ECORRUPT : 0;
}

int order_file_read(struct standing **out, const char *json, size_t len, struct ava_error *err)
{
	json_t *file = json_parse(json, len, err);
	const json_t *config = json_object_get(file, "config");
	struct standing *o = order_alloc();
	int rv = o ? 0 : AVA_ENOMEM;
	struct buf b;

	buf_init(&b, 8u << 20);
	if (rv == 0)
		rv = file ? order_file_now(file, o) : AVA_ECORRUPT;
	if (rv == 0 && o->now.state != ORDER_REMOVED)
		rv = order_read(json_object_get(config, "order"), &o->plan, err);
	if (rv == 0) {
		order_file_copy(o->hash, sizeof(o->hash), file, "hash");
		o->made_ms = MAX(json_time(json_object_get(file, "made")), 0);
		o->session = strdup(json_str(file, "session"));
		o->user = strdup(json_str(file, "user"));
		rv = json_dump(&b, config);
		o->config = rv == 0 ? buf_take(&b, NULL) : NULL;
		rv = o->config && o->session && o->user ? 0 : AVA_ENOMEM;
	}
	buf_fini(&b);
	json_decref(file);
	if (rv == 0)
		*out = o;
	else
		order_free(o);
	return rv == 0 || (err && err->code) ? rv : err_set(err, rv, "%s", ava_strerror(rv));
}
