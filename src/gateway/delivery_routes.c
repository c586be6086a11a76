/* Routes of delivery (ava/delivery.h): what a client of a conversation has not
 * shown yet, and that it has. doc/DELIVERY.md says when to call them. What can
 * fail: a body of another form, a conversation that is not there, the disk. */
#include <stdlib.h>
#include <string.h>

#include "ava/delivery.h"
#include "base/error.h"
#include "gateway/call.h"
#include "gateway/reply.h"
#include "gateway/routes.h"

/* ---- GET /api/v1/sessions/{id}/unseen */

static void unseen_head(const struct op_unseen *u, void *user)
{
	struct jw *w = user;

	jw_str(w, "session_id", u->session);
	jw_str(w, "channel", u->channel);
	jw_str(w, "summary", u->summary);
	jw_int(w, "lsn", (int64_t)u->lsn);
	jw_array(w, "items");
}

static void unseen_item(const char *json, size_t len, void *user)
{
	jw_raw(user, NULL, json, len);
}

void get_unseen(struct call *c)
{
	const char *channel = c->params.channel[0] ? c->params.channel : "terminal";
	struct ava_error err = {0};
	struct buf b;
	struct jw w;

	call_json(&b, &w);
	jw_object(&w, NULL);
	if (ops_unseen(c->routes->core, c->id, channel, unseen_head, unseen_item, &w, &err) == 0) {
		jw_end(&w);
		jw_end(&w);
		reply_json(c->routes, c->req, 200, &b);
	} else {
		call_refuse(c, &err);
	}
	buf_fini(&b);
}

/* ---- POST /api/v1/sessions/{id}/ack */

static int take_ack(const char *key, const json_t *v, const char **channel, int64_t *lsn,
		    struct ava_error *err)
{
	if (strcmp(key, "channel") == 0) {
		*channel = json_string_value(v);
		return *channel ? 0 : err_set(err, AVA_EINVAL, "channel must be a string");
	}
	if (strcmp(key, "lsn") != 0)
		return err_set(err, AVA_EINVAL,
			       "unknown key %.60s in the request: it takes channel, lsn", key);
	*lsn = json_is_integer(v) ? json_integer_value(v) : -1;
	return *lsn >= 0 ? 0 : err_set(err, AVA_EINVAL, "lsn must be a whole number, 0 or more");
}

static int decode_ack(const json_t *body, const char **channel, int64_t *lsn, struct ava_error *err)
{
	const char *key;
	const json_t *v;

	if (!json_is_object(body))
		return err_set(err, AVA_EINVAL, "the body must be a JSON object");
	json_object_foreach((json_t *)body, key, v)
	{
		if (take_ack(key, v, channel, lsn, err) != 0)
			return err->code;
	}
	if (!*channel || *lsn < 0)
		return err_set(err, AVA_EINVAL, "channel and lsn are needed");
	return 0;
}

static void acked(int rv, unsigned acknowledged, unsigned unseen, const struct ava_error *err,
		  void *user)
{
	struct buf b;
	struct jw w;

	if (rv != 0) {
		kept_error(user, rv, err);
		return;
	}
	call_json(&b, &w);
	jw_object(&w, NULL);
	jw_int(&w, "acknowledged", acknowledged);
	jw_int(&w, "unseen", unseen);
	jw_end(&w);
	kept_reply(user, 200, &b);
	buf_fini(&b);
}

void post_ack(struct call *c)
{
	const char *channel = NULL;
	struct ava_error err = {0};
	int64_t lsn = -1;
	struct kept *k;

	if (decode_ack(c->body, &channel, &lsn, &err) != 0) {
		call_refuse(c, &err);
		return;
	}
	k = kept_new(c->routes, c->req);
	if (!k)
		return;
	ops_ack(c->routes->core, c->id, channel, (uint64_t)lsn, acked, k);
	kept_returned(k);
}
