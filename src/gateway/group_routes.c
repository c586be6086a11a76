/* Groups of runs: one proposal for all of them, and what became of them. A
 * request that says "confirmed" is a proposal that nobody is asked about: it
 * and its yes are one commit. */
#include <stdlib.h>

#include "base/error.h"
#include "base/id.h"
#include "gateway/call.h"
#include "gateway/encode.h"
#include "gateway/reply.h"
#include "gateway/routes.h"

void post_group(struct call *c)
{
	struct ava_error err = {0};
	struct session_id session = id_session();
	struct group_body body;
	struct kept *k = NULL;

	if (decode_group(c->body, &body, &err) != 0)
		call_refuse(c, &err);
	else if (call_may_begin(c))
		k = kept_new(c->routes, c->req);
	if (k) {
		if (!body.group.session_id || !*body.group.session_id)
			body.group.session_id = session.text;
		if (body.confirmed)
			body.group.confirm = "never";
		body.group.user_id = call_login(c->req);
		ops_propose_group(c->routes->core, &body.group, call_proposed, k);
		kept_returned(k);
	}
	free(body.bodies);
	free(body.runs);
}

static void one_run(const struct op_status *s, void *user)
{
	encode_status(user, s);
}

void get_group(struct call *c)
{
	struct op_group_status status;
	struct ava_error err = {0};
	struct buf b;
	struct jw w;

	call_json(&b, &w);
	jw_object(&w, NULL);
	jw_array(&w, "runs");
	if (ops_group(c->routes->core, c->id, &status, one_run, &w, &err) != 0) {
		call_refuse(c, &err);
	} else {
		jw_end(&w);
		encode_group(&w, c->id, &status);
		jw_end(&w);
		reply_json(c->routes, c->req, 200, &b);
	}
	buf_fini(&b);
}
