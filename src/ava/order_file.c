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

struct order_delivery *order_deliver(struct list *to, json_t *kept)
{
	struct order_delivery *d = kept ? calloc(1, sizeof(*d)) : NULL;

	if (!d) {
		json_decref(kept);
		return NULL;
	}
	*d = (struct order_delivery){.number = 1,
				     .kept = kept,
				     .fire = {.by = json_get_str(kept, "by"),
					      .origin = json_get_str(kept, "origin"),
					      .extra = json_get_str(kept, "text"),
					      .request_id = json_get_str(kept, "request"),
					      .delivered = true}};
	if (!list_empty(to))
		d->number = LIST_ENTRY(to->prev, struct order_delivery, node)->number + 1;
	list_init(&d->node);
	list_add(to, &d->node);
	return d;
}

void order_delivery_free(struct order_delivery *d)
{
	list_del(&d->node);
	json_decref(d->kept);
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
	for (unsigned i = 0; i < n->nwaiting; i++) {
		const struct order_delivery *d = order_delivery_of(o, n->waiting[i].delivery);

		if (!d) {
			jw_time(&w, NULL, n->waiting[i].due_ms);
			continue;
		}
		jw_raw(&w, NULL, "", 0); /* its comma */
		json_dump(out, d->kept);
	}
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

/* A due time, or what is kept of a delivery; false: no memory. */
static bool order_file_waiting(struct standing *o, json_t *v)
{
	struct order_delivery *d =
		json_is_object(v) ? order_deliver(&o->deliveries, json_incref(v)) : NULL;
	int64_t due = json_time(d ? json_object_get(v, "due") : v);

	o->now.waiting[o->now.nwaiting++] = (struct order_waits){MAX(due, 0), d ? d->number : 0};
	return d || !json_is_object(v);
}

static int order_file_now(const json_t *o, struct standing *to)
{
	struct order_now *n = &to->now;
	json_t *waiting = json_object_get(o, "waiting"), *v;
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
