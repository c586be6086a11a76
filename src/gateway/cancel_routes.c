/* POST /api/v1/runs/cancel: some runs or all of them are stopped, and each is
 * told of with what it was doing. The answer is written while the ends come in;
 * it goes out behind the last one, and nowhere when the peer has hung up. */
#include <stdlib.h>

#include "ava/cancel.h"
#include "base/error.h"
#include "gateway/call.h"
#include "gateway/encode.h"
#include "gateway/reply.h"
#include "gateway/routes.h"

struct many {
	struct kept *kept;
	struct buf body;
	struct jw w;
};

static void one_ended(const struct op_cancelled *one, void *user)
{
	struct many *m = user;

	encode_cancelled(&m->w, one);
}

static void all_ended(int rv, const struct ava_error *err, void *user)
{
	struct many *m = user;

	jw_end(&m->w);
	jw_end(&m->w);
	if (rv == 0)
		kept_reply(m->kept, 200, &m->body);
	else
		kept_error(m->kept, rv, err);
	buf_fini(&m->body);
	free(m);
}

static void cancel_many(struct call *c, const struct cancel_body *b)
{
	struct kept *k = kept_new(c->routes, c->req);
	struct many *m = k ? malloc(sizeof(*m)) : NULL;
	struct ava_error err = {0};

	if (!k)
		return;
	if (m) {
		m->kept = k;
		call_json(&m->body, &m->w);
		jw_object(&m->w, NULL);
		jw_array(&m->w, "runs");
		ops_cancel_many(c->routes->core, b->ids, b->n, one_ended, all_ended, m);
	} else {
		err_set(&err, AVA_ENOMEM, "out of memory");
		kept_error(k, err.code, &err);
	}
	kept_returned(k);
}

void post_cancel_many(struct call *c)
{
	struct ava_error err = {0};
	struct cancel_body b;

	if (decode_cancel(c->body, &b, &err) == 0)
		cancel_many(c, &b);
	else
		call_refuse(c, &err);
	free(b.ids);
}
