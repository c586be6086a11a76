/* POST /api/v1/runs/{id}/steer: what a person says to a run, or answers to what
 * it asks. Happy path: the body is read, the verb keeps it, and the answer goes
 * out when it is on disk. What can fail: the body, and what the verb refuses. */
#include "ava/steer.h"

#include "base/error.h"
#include "base/util.h"
#include "gateway/call.h"
#include "gateway/encode.h"
#include "gateway/reply.h"
#include "gateway/routes.h"

static void steered(int rv, const struct op_steered *s, const struct ava_error *err, void *user)
{
	struct buf b;
	struct jw w;

	if (rv != 0) {
		kept_error(user, rv, err);
		return;
	}
	call_json(&b, &w);
	jw_object(&w, NULL);
	jw_str(&w, "subagent_id", s->run);
	jw_str(&w, "outcome", s->outcome);
	if (s->steer_id[0])
		jw_str(&w, "steer_id", s->steer_id);
	if (s->call_id[0])
		jw_str(&w, "call_id", s->call_id);
	jw_end(&w);
	kept_reply(user, 200, &b);
	buf_fini(&b);
}

void post_steer(struct call *c)
{
	struct op_steer s = {.run = c->id};
	const struct decode_string keys[] = {{"text", DECODE_ANSWER_MAX, &s.text},
					     {"call_id", DECODE_BY_MAX, &s.call_id},
					     {"by", DECODE_BY_MAX, &s.by},
					     {"request_id", DECODE_BY_MAX, &s.request_id}};
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
	if (!s.by)
		s.by = call_login(c->req);
	ops_steer(c->routes->core, &s, steered, k);
	kept_returned(k);
}
