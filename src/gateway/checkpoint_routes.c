/* POST /api/v1/runs/{id}/push: its trace to the collector, now; the answer does not
 * wait for it. POST /api/v1/runs/{id}/checkpoint: a name for where a run is. Happy path: the
 * body is read, the verb writes the event, and the answer goes out when that is on
 * disk. What can fail: the body, and what the verb refuses. */
#include <stdio.h>

#include "ava/checkpoints.h"
#include "ava/otel.h"
#include "base/util.h"
#include "gateway/call.h"
#include "gateway/encode.h"
#include "gateway/reply.h"
#include "gateway/routes.h"

#define NAME_BYTES 256 /* of the body; the verb says how long a name can be */

static void named(int rv, const struct op_checkpoint *k, const struct ava_error *err, void *user)
{
	char call[16];
	struct buf b;
	struct jw w;

	if (rv != 0) {
		kept_error(user, rv, err);
		return;
	}
	snprintf(call, sizeof(call), "i%d", k->call);
	call_json(&b, &w);
	jw_object(&w, NULL);
	jw_str(&w, "subagent_id", k->run);
	jw_str(&w, "name", k->name);
	jw_str(&w, "call_id", call);
	jw_int(&w, "from", k->call);
	jw_end(&w);
	kept_reply(user, k->repeated ? 200 : 201, &b);
	buf_fini(&b);
}

void post_checkpoint(struct call *c)
{
	const char *name = NULL, *by = NULL;
	const struct decode_string keys[] = {{"name", NAME_BYTES, &name},
					     {"by", DECODE_BY_MAX, &by}};
	struct ava_error err = {0};
	struct kept *k;

	if (decode_strings(c->body, keys, ARRAY_LEN(keys), &err) != 0) {
		call_refuse(c, &err);
		return;
	}
	if (!call_may_begin(c))
		return;
	k = kept_new(c->routes, c->req);
	if (!k)
		return;
	ops_checkpoint(c->routes->core, c->id, name, by ? by : call_login(c->req), named, k);
	kept_returned(k);
}

void post_push(struct call *c)
{
	struct ava_error err = {0};
	struct buf b;
	struct jw w;

	if (decode_strings(c->body, NULL, 0, &err) != 0 ||
	    ops_push(c->routes->core, c->id, &err) != 0) {
		call_refuse(c, &err);
		return;
	}
	call_json(&b, &w);
	jw_object(&w, NULL);
	jw_str(&w, "subagent_id", c->id);
	jw_str(&w, "outcome", "queued");
	jw_end(&w);
	reply_json(c->routes, c->req, 202, &b);
	buf_fini(&b);
}
