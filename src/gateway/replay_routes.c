/* POST /api/v1/runs/{id}/replay: the run is executed again from its record; the
 * answer says whether and where the two part. Happy path: the body is read, the verb
 * replays it (ava/replays.h), its report goes out. What can fail: the body, no such
 * run, a record that cannot be read. */
#include "ava/replays.h"

#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "gateway/call.h"
#include "gateway/reply.h"
#include "gateway/routes.h"
#include "subagent/replay.h"

static void write_diff(struct jw *w, const struct replay_diff *d)
{
	jw_object(w, NULL);
	jw_int(w, "lsn", (int64_t)d->lsn);
	jw_int(w, "seq", (int64_t)d->seq);
	jw_str(w, "eventType", d->type);
	jw_str(w, "call_id", d->call);
	jw_str(w, "what", d->what);
	if (d->byte >= 0)
		jw_int(w, "byte", d->byte);
	jw_str(w, "recorded", d->recorded);
	jw_str(w, "replayed", d->replayed);
	jw_end(w);
}

static void write_report(struct jw *w, const char *run, const struct replay_report *r)
{
	jw_object(w, NULL);
	jw_str(w, "subagent_id", run);
	jw_bool(w, "identical", r->ndiffs == 0);
	jw_bool(w, "complete", r->complete);
	jw_str(w, "reason", r->reason);
	jw_int(w, "turns", r->turns);
	jw_int(w, "events", (int64_t)r->events);
	jw_int(w, "differences_found", r->ndiffs);
	jw_array(w, "differences");
	for (unsigned i = 0; i < MIN(r->ndiffs, (unsigned)REPLAY_DIFFS_MAX); i++)
		write_diff(w, &r->diffs[i]);
	jw_end(w);
	jw_end(w);
}

static void replayed(int rv, const char *run, const struct replay_report *report,
		     const struct ava_error *err, void *user)
{
	struct buf b;
	struct jw w;

	if (rv != 0) {
		kept_error(user, rv, err);
		return;
	}
	call_json(&b, &w);
	write_report(&w, run, report);
	kept_reply(user, 200, &b);
	buf_fini(&b);
}

static int read_body(const json_t *body, bool *lenient, struct ava_error *err)
{
	const char *key;
	json_t *v;

	if (body != NULL && !json_is_object(body))
		return err_set(err, AVA_EINVAL, "the body must be a JSON object");
	json_object_foreach((json_t *)body, key, v)
	{
		if (strcmp(key, "lenient") != 0)
			return err_set(err, AVA_EINVAL,
				       "unknown key %.60s in the request: it takes lenient", key);
		if (!json_is_boolean(v))
			return err_set(err, AVA_EINVAL, "lenient must be true or false");
		*lenient = json_is_true(v);
	}
	return 0;
}

void post_replay(struct call *c)
{
	struct ava_error err = {0};
	bool lenient = false;
	struct kept *k;

	if (read_body(c->body, &lenient, &err) != 0) {
		call_refuse(c, &err);
		return;
	}
	k = kept_new(c->routes, c->req);
	if (!k)
		return;
	ops_replay(c->routes->core, c->id, lenient, replayed, k);
	kept_returned(k);
}
