/* Asking a service for its models; see probe.h.
 *
 * Happy path: one GET, {"data":[{"id":…},…]} comes back. What can fail: no
 * connection, a refused key, an answer of something else; each ends as a
 * sentence that says what to do. The key stands in a header only, in memory
 * that is wiped. */
#include "gateway/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"

#define BODY_MAX (8u << 20)

static void on_head(struct http_call *c, int status)
{
	struct probe *p = c->user;
	const char *date = http_call_header(c, "date");

	snprintf(p->date, sizeof(p->date), "%s", date ? date : "");
	p->date_wall_ms = clock_wall_ms();
}

static bool on_data(struct http_call *c, const char *s, size_t n)
{
	struct probe *p = c->user;

	buf_add(&p->body, s, n);
	return true;
}

static void on_done(struct http_call *c, int rv, const struct ava_error *err)
{
	struct probe *p = c->user;

	p->rv = rv;
	if (rv != 0)
		p->err = *err;
	p->ended_ms = clock_mono_ms();
}

static void set_up(struct probe *p, const struct probe_options *o)
{
	*p = (struct probe){.rv = AVA_EBUSY, .started_ms = clock_mono_ms()};
	buf_init(&p->body, BODY_MAX);
	p->call.path = o->path;
	p->call.method = "GET";
	p->call.timers = (struct http_timers){
		.connect_ms = o->connect_ms, .first_ms = o->total_ms, .total_ms = o->total_ms};
	p->call.head = on_head;
	p->call.data = on_data;
	p->call.done = on_done;
	p->call.user = p;
}

void probe_start(struct probe *p, struct http_client *c, const struct probe_options *o)
{
	struct http_pool_options pool = {
		.base_url = o->base_url, .connections_max = 1, .http2 = o->http2};
	const char *headers[] = {"anthropic-version: 2023-06-01", NULL};
	size_t size = o->key ? strlen(o->key) + 32 : 0;
	char *auth = NULL;
	int rv = 0;

	set_up(p, o);
	p->pool = http_pool_new(c, &pool, &p->err);
	if (!p->pool)
		rv = p->err.code;
	if (o->key && rv == 0) {
		auth = malloc(size);
		if (!auth)
			rv = err_set(&p->err, AVA_ENOMEM, "out of memory");
		else
			snprintf(auth, size, "%s%s",
				 o->anthropic ? "x-api-key: " : "Authorization: Bearer ", o->key);
	}
	headers[1] = auth;
	p->call.headers = o->anthropic ? headers : headers + 1;
	p->call.nheaders = (o->anthropic ? 1 : 0) + (auth ? 1 : 0);
	if (rv == 0)
		rv = http_call_start(p->pool, &p->call, &p->err);
	if (rv != 0)
		p->rv = rv;
	if (auth)
		explicit_bzero(auth, size);
	free(auth);
	p->call.headers = NULL; /* were copied */
	p->call.nheaders = 0;
}

bool probe_over(const struct probe *p)
{
	return p->rv != AVA_EBUSY;
}

static int refused(struct probe *p)
{
	int status = p->call.status;

	if (status == 401 || status == 403)
		return err_set(&p->err, AVA_EDENIED, "it refuses the key (%d)", status);
	if (status == 404)
		return err_set(&p->err, AVA_ENOENT,
			       "it has no list of models there (404): is the address right?");
	return err_set(&p->err, AVA_EPROTO, "it answers with the status %d", status);
}

/* {"data":[{"id"}]} of all services. */
static int read_list(struct probe *p)
{
	json_t *all = json_parse(p->body.data ? p->body.data : "", p->body.len, NULL);
	json_t *data = json_object_get(all, "data"), *row;
	size_t i;
	int rv = 0;

	if (json_is_array(data))
		p->models = json_array();
	if (!p->models)
		rv = err_set(&p->err, AVA_EPROTO,
			     "its answer is no list of models: is the address right?");
	json_array_foreach(data, i, row)
	{
		const char *id = json_get_str(row, "id");

		if (rv == 0 && id && json_array_append_new(p->models, json_string(id)) != 0)
			rv = err_set(&p->err, AVA_ENOMEM, "out of memory");
	}
	json_decref(all);
	return rv;
}

int probe_read(struct probe *p)
{
	if (p->rv == 0 && p->call.status != 200)
		p->rv = refused(p);
	if (p->rv == 0 && buf_check(&p->body) != 0)
		p->rv = err_set(&p->err, AVA_ETOOBIG, "its answer is larger than %u MB",
				BODY_MAX >> 20);
	if (p->rv == 0 && !p->models)
		p->rv = read_list(p);
	return p->rv;
}

bool probe_has(const struct probe *p, const char *id)
{
	size_t i, len = strlen(id);
	json_t *row;

	json_array_foreach(p->models, i, row)
	{
		const char *s = json_string_value(row);

		if (strncmp(s, id, len) != 0)
			continue;
		if (s[len] == '\0' || strcmp(s + len, ":latest") == 0 ||
		    (s[len] == '-' && strspn(s + len + 1, "0123456789-") == strlen(s + len + 1)))
			return true;
	}
	return false;
}

void probe_fini(struct probe *p)
{
	http_call_stop(&p->call);
	http_pool_free(p->pool);
	buf_fini(&p->body);
	json_decref(p->models);
}
