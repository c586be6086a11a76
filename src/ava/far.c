/* What goes to other machines of the cluster and comes from them, for the verbs. A verb that is for
 * a run or an Ask of another machine (struct verb, `where`) travels there and is called as it was
 * called here: the same arguments, in the name of the same caller. What waits for a person is
 * listed for all machines.
 *
 * What can fail: a machine that dies between doing a verb and saying so leaves it to the next one,
 * so that it is done twice. A verb that is not the same for that has a request id, which is made
 * where its caller gave none. */
#include "ava/far.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/ask.h"
#include "ava/core.h"
#include "ava/others.h"
#include "ava/patches.h"
#include "ava/runs.h"
#include "ava/state.h"
#include "ava/talk.h"
#include "ava/verbs.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/util.h"
#include "cluster/cluster.h"
#include "cluster/inbox.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "journal/read_root.h"

#define BODY_MAX (16u << 20) /* bytes of a verb that travels */

/* ---- verbs that come */

/* Calls a verb as it was called on another machine. */
static void far_do(struct core *c, const struct verb *verb, const char *id, const char *body,
		   struct verb_reply *reply)
{
	struct ava_error err = {0};
	json_t *o = json_parse(body, strlen(body), &err);
	const struct caller caller = {.user = json_get_str(o, "user"),
				      .channel = json_str(o, "channel"),
				      .trust = CALLER_OWNER,
				      .seen = (unsigned)json_get_int(o, "seen", 0),
				      .model = json_get_bool(o, "model", false),
				      .far = true};

	if (o)
		verbs_call(c, verb, &caller, id, json_object_get(o, "args"), reply);
	else
		verb_fail(reply, err.code, &err);
	json_decref(o);
}

struct far_came {
	struct verb_reply reply;
	struct core *core;
	char id[HASH_HEX_LEN + 1];
};

static void far_answer(struct verb_reply *reply, int status, const struct buf *json,
		       const struct ava_error *err)
{
	struct far_came *came = CONTAINER_OF(reply, struct far_came, reply);
	struct inbox_answer a = {.status = status,
				 .code = json ? 0 : err->code,
				 .text = json ? json->data : err->text,
				 .len = json ? json->len : strlen(err->text)};

	if (came->core->service.cluster)
		inbox_answer(came->core->service.cluster, came->id, &a);
	free(came);
}

static bool far_call(const struct inbox_verb *v, void *user)
{
	struct core *c = user;
	char method[8] = "";
	const char *path = strchr(v->verb, ' ');
	const struct verb *verb;
	struct far_came *came;
	struct ava_error err;

	if (*v->run && !supervisor_find(&c->sup, v->run) && !read_run_ended(c->root_fd, v->run))
		return false;
	came = calloc(1, sizeof(*came));
	if (!came)
		return false;
	came->reply.done = far_answer;
	came->core = c;
	snprintf(came->id, sizeof(came->id), "%s", v->id);
	snprintf(method, sizeof(method), "%.*s", (int)strcspn(v->verb, " "), v->verb);
	verb = path ? verbs_named(method, path + 1) : NULL;
	if (verb && verb->where != VERB_HERE) {
		far_do(c, verb, v->name, v->body, &came->reply);
	} else {
		err_set(&err, AVA_EUNSUPPORTED, "this machine does not know %.80s", v->verb);
		verb_fail(&came->reply, err.code, &err);
	}
	return true;
}

/* ---- verbs that go */

struct far_sent {
	struct core *core;
	const struct verb *verb;
	struct verb_reply *reply;
	struct buf body;
	char name[64];
};

static void far_sent_answered(int rv, const struct inbox_answer *a, const struct ava_error *err,
			      void *user)
{
	struct far_sent *s = user;
	struct ava_error there;
	struct verb_answer to;

	if (rv == AVA_ENOENT) {
		far_do(s->core, s->verb, s->name, s->body.data, s->reply);
	} else if (rv == 0 && a->code != 0) {
		err_set(&there, a->code, "%.*s", (int)a->len, a->text);
		verb_fail(s->reply, there.code, &there);
	} else if (verb_begin(&to, s->reply, rv, err)) {
		buf_add(&to.b, a->text, a->len);
		verb_send(&to, a->status);
	}
	buf_fini(&s->body);
	free(s);
}

/* Whose memory asked that, now or before. */
static bool far_memory_asked(const struct core *c, const char *id)
{
	LIST_EACH (&c->talks, n, tmp) {
		const struct talk *t = LIST_ENTRY(n, struct talk, node);

		if (strcmp(t->answered, id) == 0 || (t->ask && strcmp(t->ask->id, id) == 0))
			return true;
	}
	return false;
}

/* May it be for another machine? Fills in the run or request id which says for what one. */
static bool far_have(struct core *c, enum verb_where where, const char *id, const json_t *args,
		     char run[24], const char **claim)
{
	const char *of = where == VERB_NEW ? json_str(args, "resume") : id;

	run[0] = '\0';
	if (where == VERB_HERE)
		return false;
	if (where == VERB_AT_ASK && *id == 'P')
		return !nameset_has(&c->proposal_names, id);
	if (where == VERB_AT_ASK && *id == 'M')
		return !far_memory_asked(c, id);
	if (where == VERB_NEW && !others_may(c, of)) {
		*claim = json_str(args, "request_id");
		return **claim && !core_request(c, *claim) &&
		       core_check_request(c, *claim, NULL) == 0;
	}
	snprintf(run, 24, "%.*s", (int)strcspn(of, ":"), of);
	return others_may(c, run) && !(where == VERB_AT_ASK && patches_named(c, id));
}

/* Keys are taken out before it stands in the database, as the verb itself would before it writes.
 */
static void far_write(struct core *c, struct buf *out, const struct verb *verb,
		      const struct caller *caller, const json_t *args, const char *request)
{
	json_t *said = args ? json_copy((json_t *)args) : NULL;
	struct buf text, clean;
	struct jw w;

	for (const struct arg *a = verb->args; said && a && a->name; a++)
		if (strcmp(a->name, "request_id") == 0 && !json_object_get(said, a->name))
			json_object_set_new(said, a->name, json_string(request));
	buf_init(&text, BODY_MAX);
	buf_init(&clean, BODY_MAX);
	jw_init(&w, out);
	jw_object(&w, NULL);
	if (caller->user)
		jw_str(&w, "user", caller->user);
	jw_str(&w, "channel", caller->channel);
	jw_int(&w, "seen", caller->seen);
	jw_bool(&w, "model", caller->model);
	if (said && json_dump(&text, said) == 0 &&
	    redact_json(c->redact, &clean, text.data, text.len) >= 0)
		jw_raw(&w, "args", clean.data, clean.len);
	else if (args)
		out->failed = true;
	jw_end(&w);
	buf_fini(&clean);
	buf_fini(&text);
	json_decref(said);
}

static bool far_send(struct core *c, const struct verb *verb, const struct caller *caller,
		     const char *id, const json_t *args, struct verb_reply *reply)
{
	const char *request = json_str(args, "request_id");
	const char *claim = "";
	struct inbox_verb v;
	struct session_id fresh = id_session();
	char run[24], row[HASH_HEX_LEN + 1], words[128];
	struct hash_sha256 h;
	struct far_sent *s;

	if (!c->service.cluster || caller->far || !far_have(c, verb->where, id, args, run, &claim))
		return false;
	s = calloc(1, sizeof(*s));
	if (!s) {
		verb_fail(reply, AVA_ENOMEM, NULL);
		return true;
	}
	s->core = c;
	s->verb = verb;
	s->reply = reply;
	snprintf(s->name, sizeof(s->name), "%s", id);
	snprintf(words, sizeof(words), "%s %s", verb->method, verb->path);
	buf_init(&s->body, BODY_MAX);
	far_write(c, &s->body, verb, caller, args, fresh.text);
	hash_sha256_init(&h);
	hash_sha256_add(&h, words, strlen(words) + 1);
	hash_sha256_add(&h, id, strlen(id) + 1);
	hash_sha256_with(&h, request, strlen(request), row);
	v = (struct inbox_verb){.id = *request ? row : fresh.text,
				.run = run,
				.claim = claim,
				.name = s->name,
				.verb = words,
				.body = s->body.data,
				.live = verb->where == VERB_AT_LIVE};
	if (buf_check(&s->body) == 0) {
		reply->give_up = NULL;
		inbox_send(c->service.cluster, &v, far_sent_answered, s);
		return true;
	}
	verb_fail(reply, buf_check(&s->body), NULL);
	buf_fini(&s->body);
	free(s);
	return true;
}

/* ---- what waits for a person */

static void far_show_ask(const struct ask *a, void *user)
{
	struct core *c = user;
	char run[24] = "";
	struct buf *b;
	struct jw w;

	if (a->id[0] == 'S')
		snprintf(run, sizeof(run), "%.*s", (int)strcspn(a->id, ":"), a->id);
	b = inbox_open(c->service.cluster, a->id, run, a->session, a->until_ms);
	if (!b)
		return;
	jw_init(&w, b);
	ask_write(&w, NULL, a);
}

static void far_show_asks(void *user)
{
	ask_each(user, NULL, far_show_ask, user);
}

struct far_listing {
	struct core *core;
	struct verb_answer a;
};

static void far_asks_came(int rv, const struct inbox_ask *asks, unsigned n,
			  const struct ava_error *err, void *user)
{
	struct far_listing *l = user;
	struct ask mine;

	for (unsigned i = 0; i < n; i++) {
		json_t *one = json_parse(asks[i].text, asks[i].len, NULL);
		struct buf b;

		buf_init(&b, 1u << 22);
		if (one && !ask_find(l->core, asks[i].id, &mine) &&
		    json_object_set_new(one, "machine", json_string(asks[i].machine)) == 0 &&
		    json_dump(&b, one) == 0)
			jw_raw(&l->a.w, NULL, b.data, b.len);
		buf_fini(&b);
		json_decref(one);
	}
	jw_end(&l->a.w);
	jw_bool(&l->a.w, "shared", true);
	if (rv != 0)
		jw_str(&l->a.w, "others", err->text);
	verb_send(&l->a, 200);
	free(l);
}

static void far_send_asks(struct core *c, const char *session, struct verb_answer *a)
{
	struct far_listing *l = c->service.cluster ? malloc(sizeof(*l)) : NULL;

	if (!l) {
		verb_send(a, 200);
		return;
	}
	l->core = c;
	l->a = *a;
	l->a.w.out = &l->a.b;
	inbox_asks(c->service.cluster, session, far_asks_came, l);
}

static void far_one_ask(const struct ask *a, void *user)
{
	ask_write(user, NULL, a);
}

static const struct arg far_asks_args[] = {{"session", ARG_TEXT, 0}, {NULL}};

static void verb_asks(struct verb_call *v)
{
	const char *session = NULL;
	struct verb_answer a;

	if (!verb_begin_args(&a, v, &session))
		return;
	jw_object(&a.w, NULL);
	jw_array(&a.w, "asks");
	ask_each(v->core, session, far_one_ask, &a.w);
	far_send_asks(v->core, session, &a);
}

const struct verb verbs_about_far[] = {
	{"GET", "/api/v1/asks", verb_asks, far_asks_args, false},
	{NULL},
};

/* ---- life */

/* The end of a run waits for the database, so that few of the newest are not there. */
#define ENDS_LOOKED 1000

struct far_ends {
	struct cluster *cluster;
	unsigned n;
};

static bool far_ended(struct catalog_row *row, void *user)
{
	struct far_ends *e = user;

	return e->n++ < ENDS_LOOKED && cluster_ended(e->cluster, row) == 0;
}

static void far_came_run(const struct catalog_row *row, void *core)
{
	(void)core_remember(core, row->request_id, row->started_ms, "", row->id, row->trace_id);
}

int far_open(struct core *c, const struct core_options *o, struct ava_error *err)
{
	const struct cluster_options cluster = {.loop = c->loop,
						.sup = &c->sup,
						.url = o->cluster,
						.name = o->cluster_name,
						.folders = o->cluster_folders,
						.lease_ms = c->settings.cluster_lease_s * 1000,
						.log = o->log,
						.fenced = o->fenced,
						.user = o->log_user,
						.held = others_held,
						.came = far_came_run,
						.gone = seals_go,
						.runs_user = c};
	bool wanted = o->cluster && *o->cluster;
	const char *read = o->cluster_read && *o->cluster_read ? o->cluster_read : o->cluster;
	struct far_ends ends = {0};
	int rv = cluster_check_root(c->root_fd, wanted, err);

	if (rv != 0 || !wanted)
		return rv;
	rv = cluster_open(&c->service.cluster, &cluster, err);
	if (rv != 0)
		return rv;
	ends.cluster = c->service.cluster;
	(void)history_each(c->root_fd, true, far_ended, &ends, NULL); /* a catalog that is none */
	inbox_serve(c->service.cluster,
		    &(struct inbox_hooks){.call = far_call, .asks = far_show_asks, .user = c});
	c->service.send = far_send;
	return reader_open(&c->service.reader,
			   &(struct reader_options){.loop = c->loop,
						    .url = read,
						    .node = cluster_node(c->service.cluster),
						    .root_fd = c->root_fd},
			   err);
}

void far_close(struct core *c)
{
	reader_close(c->service.reader);
	cluster_close(c->service.cluster);
	/* Verbs for other machines are still being answered, which nobody hears. */
	c->service.reader = NULL;
	c->service.cluster = NULL;
}
