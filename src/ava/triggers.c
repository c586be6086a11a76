/* Triggers: names under which programs elsewhere start a standing order (doc/TRIGGERS.md).
 *
 * Happy path: a person gives a trigger to an order, and gets its token, and the secret of its
 * signatures, once. A delivery brings the token, and a signature where one was asked for; its body
 * goes as a stranger's text into the run that the order starts (ava/orders.h). The id of the
 * delivery is the request id of the run, so that one delivery starts one run, also across crashes.
 *
 * triggers.json has all of it, and is read for each call: nothing of it is kept in memory. What can
 * fail: the token or signature is wrong, which an unknown name is answered as well; the order does
 * not start a run now, and says why; the disk. */
#include <nettle/memops.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ava/orders.h"
#include "ava/verbs.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/sys.h"
#include "codec/json.h"
#include "journal/files.h"

#define TRIGGERS_FILE    "triggers.json"
#define TRIGGERS_MAX     200
#define TRIGGER_BODY_MAX ((int64_t)256 << 10)
#define FILE_MAX         (1u << 20)
#define NAME_MAX_LEN     40
#define TOKEN_BYTES      20
#define SECRET_LEAST     8
#define SECRET_MOST      200
#define HEADER_MAX       400
#define SLACK_LATE_S     300

/* A delivery; absent fields are "". */
struct trigger_delivery {
	const char *token, *authorization, *body;
	const char *github, *github_id, *github_event;
	const char *slack, *slack_time;
	const char *plain, *key;
};

/* ---- the file: {"NAME":{"order","token" (SHA-256),"signed","secret","made"}} */

static json_t *triggers_read(const struct core *c, struct ava_error *err)
{
	char *text = NULL;
	json_t *doc;
	size_t len = 0;
	int rv = sys_read_file(c->root_fd, TRIGGERS_FILE, FILE_MAX, &text, &len, err);

	if (rv != 0 && rv != AVA_ENOENT)
		return NULL;
	doc = rv == 0 ? json_parse(text, len, err) : json_object();
	free(text);
	if (json_is_object(doc))
		return doc;
	json_decref(doc);
	err_set(err, AVA_ECORRUPT,
		TRIGGERS_FILE " is damaged: remove it, and add the triggers anew");
	return NULL;
}

static int triggers_write(const struct core *c, const json_t *doc, struct ava_error *err)
{
	char *text = json_dumps(doc, JSON_INDENT(1));
	int rv = text ? 0 : err_set(err, AVA_ENOMEM, "out of memory");

	if (rv == 0 && files_replace(c->root_fd, TRIGGERS_FILE, text, strlen(text), true) != 0)
		rv = err_sys(err, "write " TRIGGERS_FILE);
	free(text);
	return rv;
}

bool triggers_any(const struct core *c)
{
	json_t *doc = triggers_read(c, NULL);
	bool any = json_object_size(doc) > 0;

	json_decref(doc);
	return any;
}

/* ---- is it allowed? */

static bool token_fits(const json_t *row, const struct trigger_delivery *d)
{
	const char *token = d->token[0] ? d->token : d->authorization;
	unsigned char given[32], own[32] = {0};
	bool known = hash_from_hex(json_str(row, "token"), own);

	if (!d->token[0])
		token = strncasecmp(token, "Bearer ", 7) == 0 ? token + 7 : "";
	hash_sha256(token, strlen(token), given);
	return memeql_sec(given, own, sizeof(own)) && known;
}

int trigger_signed(const char *how, const char *secret, const struct trigger_signature *s,
		   int64_t now_ms, struct ava_error *err)
{
	bool slack = strcmp(how, "slack") == 0;
	const char *prefix = slack ? "v0=" : "sha256=";
	unsigned char given[32], own[32];
	char head[HEADER_MAX + 8] = "";
	int64_t time = strtoll(s->time, NULL, 10);

	if (strncmp(s->value, prefix, strlen(prefix)) != 0 ||
	    !hash_from_hex(s->value + strlen(prefix), given))
		return err_set(err, AVA_EDENIED,
			       "the signature is missing, or has not the form %s…", prefix);
	if (slack)
		snprintf(head, sizeof(head), "v0:%s:", s->time);
	hash_hmac(secret, strlen(secret), head, s->body, s->len, own);
	if (!memeql_sec(given, own, sizeof(own)))
		return err_set(err, AVA_EDENIED,
			       "the signature is wrong: is the secret the trigger's?");
	if (slack && (time < now_ms / 1000 - SLACK_LATE_S || time > now_ms / 1000 + SLACK_LATE_S))
		return err_set(err, AVA_EDENIED,
			       "the delivery is over 5 minutes old, or a clock is wrong");
	return 0;
}

static int delivery_allowed(const json_t *row, const struct trigger_delivery *d,
			    struct ava_error *err)
{
	const char *how = json_str(row, "signed");
	struct trigger_signature s = {
		.time = d->slack_time, .body = d->body, .len = strlen(d->body)};

	if (!token_fits(row, d))
		return err_set(err, AVA_EDENIED, "there is no trigger of this name and token");
	if (how[0] == '\0')
		return 0;
	s.value = strcmp(how, "github") == 0  ? d->github
		  : strcmp(how, "slack") == 0 ? d->slack
					      : d->plain;
	return trigger_signed(how, json_str(row, "secret"), &s, clock_wall_ms(), err);
}

/* ---- a delivery */

/* The request id of its run: the same for the same delivery; "": it has no id of its own. */
static void delivery_id(const char *name, const json_t *row, const struct trigger_delivery *d,
			const json_t *body, char out[HASH_HEX_LEN + 12])
{
	const char *how = json_str(row, "signed"), *id = d->key;
	char whole[HEADER_MAX + NAME_MAX_LEN + 2], hex[HASH_HEX_LEN + 1];

	if (strcmp(how, "github") == 0)
		id = d->github_id;
	else if (strcmp(how, "slack") == 0)
		id = json_str(body, "event_id")[0] ? json_str(body, "event_id") : d->slack;
	out[0] = '\0';
	if (id[0] == '\0')
		return;
	snprintf(whole, sizeof(whole), "%s %s", name, id);
	hash_sha256_hex(whole, strlen(whole), hex);
	snprintf(out, HASH_HEX_LEN + 12, "trigger:%s", hex);
}

/* Services try an address before they use it. true: answered. */
static bool delivery_is_trial(const json_t *row, const struct trigger_delivery *d,
			      const json_t *body, struct verb_reply *reply)
{
	const char *how = json_str(row, "signed"), *challenge = json_str(body, "challenge");
	bool ping = strcmp(how, "github") == 0 && strcmp(d->github_event, "ping") == 0;
	bool slack = strcmp(how, "slack") == 0 &&
		     strcmp(json_str(body, "type"), "url_verification") == 0;
	struct verb_answer a;

	if ((!ping && !slack) || !verb_begin(&a, reply, 0, NULL))
		return ping || slack;
	jw_object(&a.w, NULL);
	if (slack)
		jw_str(&a.w, "challenge", challenge);
	else
		jw_bool(&a.w, "pong", true);
	verb_send(&a, 200);
	return true;
}

static void delivery_fire(struct verb_call *v, const json_t *row, const struct trigger_delivery *d,
			  const json_t *body)
{
	char id[HASH_HEX_LEN + 12], by[2 * NAME_MAX_LEN + 32];
	struct order_fire f = {.by = by,
			       .origin = "trigger",
			       .extra = d->body[0] ? d->body : NULL,
			       .delivered = true};
	struct ava_error err = {0};
	const struct standing *o = orders_find(v->core, json_str(row, "order"), &err);
	size_t event;

	delivery_id(v->id, row, d, body, id);
	f.request_id = id[0] ? id : NULL;
	if (!o) {
		verb_fail(v->reply, err.code, &err);
		return;
	}
	event = strspn(d->github_event, "abcdefghijklmnopqrstuvwxyz_"); /* no signature covers it */
	snprintf(by, sizeof(by), "trigger %.40s%s%.*s", v->id, event > 0 ? ", event " : "",
		 (int)MIN(event, (size_t)NAME_MAX_LEN), d->github_event);
	orders_fire(v->core, o->plan.id, &f, verb_order_started, v->reply);
}

#define AT(field) offsetof(struct trigger_delivery, field)
/* Fields of HTTP's head by their names, but for the token of the query, and the body. */
static const struct arg delivery_args[] = {
	{"token", ARG_SAID, AT(token), .most = HEADER_MAX},
	{"body", ARG_SAID, AT(body), .most = TRIGGER_BODY_MAX},
	{"Authorization", ARG_SAID, AT(authorization), .most = HEADER_MAX},
	{"X-Hub-Signature-256", ARG_SAID, AT(github), .most = HEADER_MAX},
	{"X-GitHub-Delivery", ARG_SAID, AT(github_id), .most = HEADER_MAX},
	{"X-GitHub-Event", ARG_SAID, AT(github_event), .most = HEADER_MAX},
	{"X-Slack-Signature", ARG_SAID, AT(slack), .most = HEADER_MAX},
	{"X-Slack-Request-Timestamp", ARG_SAID, AT(slack_time), .most = HEADER_MAX},
	{"X-Signature", ARG_SAID, AT(plain), .most = HEADER_MAX},
	{"Idempotency-Key", ARG_SAID, AT(key), .most = HEADER_MAX},
	{NULL},
};
#undef AT

static void verb_trigger(struct verb_call *v)
{
	struct trigger_delivery d = {"", "", "", "", "", "", "", "", "", ""};
	struct ava_error err = {0};
	json_t *doc, *body = NULL;
	const json_t *row;
	int rv;

	if (!verb_args(v, &d))
		return;
	doc = triggers_read(v->core, &err);
	row = json_object_get(doc, v->id);
	rv = doc ? delivery_allowed(row, &d, &err) : err.code;
	if (rv == 0 && strcmp(json_str(row, "signed"), "slack") == 0)
		body = json_parse(d.body, strlen(d.body),
				  NULL); /* NULL: a form, as commands send */
	if (rv != 0)
		verb_fail(v->reply, rv, &err);
	else if (!delivery_is_trial(row, &d, body, v->reply))
		delivery_fire(v, row, &d, body);
	json_decref(body);
	json_decref(doc);
}

/* ---- for its person */

static void verb_triggers(struct verb_call *v)
{
	struct ava_error err = {0};
	json_t *doc = triggers_read(v->core, &err), *row;
	const struct standing *o;
	struct verb_answer a;
	const char *name;

	if (!verb_args(v, NULL) || !verb_begin(&a, v->reply, doc ? 0 : err.code, &err))
		goto out;
	jw_object(&a.w, NULL);
	jw_str(&a.w, "url", v->core->service.web_url);
	jw_array(&a.w, "triggers");
	json_object_foreach(doc, name, row)
	{
		jw_object(&a.w, NULL);
		jw_str(&a.w, "name", name);
		jw_str(&a.w, "order_id", json_str(row, "order"));
		o = orders_find(v->core, json_str(row, "order"), NULL);
		jw_str(&a.w, "state", o ? order_state_name(o->now.state) : "removed");
		jw_str(&a.w, "signed", json_str(row, "signed"));
		verb_time(&a.w, "made_at", json_get_int(row, "made", 0));
		jw_end(&a.w);
	}
	verb_send(&a, 200);
out:
	json_decref(doc);
}

struct trigger_new {
	const char *name, *order, *how, *secret;
};

static int trigger_check(const struct core *c, const json_t *doc, const struct trigger_new *n,
			 struct ava_error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t len = strlen(n->secret);

	if (n->name[0] == '\0' || strlen(n->name) > NAME_MAX_LEN ||
	    n->name[strspn(n->name, allowed)] != '\0')
		return err_set(
			err, AVA_EINVAL,
			"a trigger's name is 1 to %d of a to z, 0 to 9, \".\", \"_\" and \"-\"",
			NAME_MAX_LEN);
	if (json_object_get(doc, n->name))
		return err_set(err, AVA_EEXIST, "there is a trigger %s: remove it first", n->name);
	if (json_object_size(doc) >= TRIGGERS_MAX)
		return err_set(err, AVA_EBUSY, "there are %d triggers: remove some", TRIGGERS_MAX);
	if (n->how[0] && !list_has("github slack plain", ' ', n->how))
		return err_set(err, AVA_EINVAL, "signed is github, slack or plain, not \"%.40s\"",
			       n->how);
	if (strcmp(n->how, "slack") == 0 && len == 0)
		return err_set(err, AVA_EINVAL,
			       "Slack makes the secret: give that of the app (Basic Information, "
			       "Signing Secret)");
	if (len > 0 && (!n->how[0] || len < SECRET_LEAST || len > SECRET_MOST))
		return err_set(err, AVA_EINVAL, "a secret has %d to %d bytes, and goes with signed",
			       SECRET_LEAST, SECRET_MOST);
	return orders_find((struct core *)c, n->order, err) ? 0 : err->code;
}

static void trigger_random(char out[2 * TOKEN_BYTES + 1])
{
	unsigned char raw[TOKEN_BYTES];

	id_random(raw, sizeof(raw));
	hash_hex(raw, sizeof(raw), out);
}

static int trigger_keep(struct core *c, json_t *doc, const struct trigger_new *n, const char *token,
			struct ava_error *err)
{
	char hash[HASH_HEX_LEN + 1];
	json_t *row;

	hash_sha256_hex(token, strlen(token), hash);
	row = json_pack("{s:s,s:s,s:s,s:s,s:I}", "order", n->order, "token", hash, "signed", n->how,
			"secret", n->secret, "made", (json_int_t)clock_wall_ms());
	if (!row || json_object_set_new(doc, n->name, row) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	return triggers_write(c, doc, err);
}

static const struct arg new_args[] = {
	{"name", ARG_SAID, offsetof(struct trigger_new, name), .most = 200},
	{"order_id", ARG_SAID, offsetof(struct trigger_new, order), .most = 40},
	{"signed", ARG_SAID, offsetof(struct trigger_new, how), .most = 40},
	{"secret", ARG_SAID, offsetof(struct trigger_new, secret), .most = 4096},
	{NULL},
};

static void verb_trigger_new(struct verb_call *v)
{
	struct trigger_new n = {"", "", "", ""};
	char token[2 * TOKEN_BYTES + 1], secret[2 * TOKEN_BYTES + 1];
	struct core_service *s = core_service(v->core);
	struct ava_error err = {0};
	struct verb_answer a;
	json_t *doc = NULL;
	bool made;
	int rv;

	if (!verb_by_person(v, "triggers") || !verb_args(v, &n))
		return;
	doc = triggers_read(v->core, &err);
	rv = doc ? trigger_check(v->core, doc, &n, &err) : err.code;
	made = n.how[0] && !n.secret[0];
	trigger_random(token);
	trigger_random(secret);
	n.secret = made ? secret : n.secret;
	if (rv == 0)
		rv = trigger_keep(v->core, doc, &n, token, &err);
	json_decref(doc);
	if (rv == 0)
		core_log(v->core, "trigger %s starts %s from now on", n.name, n.order);
	if (rv == 0 && s->triggers && s->triggers(s->web, &err) != 0)
		core_log(v->core, "the port for triggers is not open: %s", err.text);
	if (!verb_begin(&a, v->reply, rv, &err))
		return;
	jw_object(&a.w, NULL);
	jw_str(&a.w, "name", n.name);
	jw_str(&a.w, "order_id", n.order);
	jw_str(&a.w, "url", s->web_url);
	jw_str(&a.w, "token", token);
	if (made)
		jw_str(&a.w, "secret", secret);
	verb_send(&a, 201);
}

static void verb_trigger_rm(struct verb_call *v)
{
	struct ava_error err = {0};
	struct verb_answer a;
	json_t *doc;
	int rv;

	if (!verb_by_person(v, "triggers") || !verb_args(v, NULL))
		return;
	doc = triggers_read(v->core, &err);
	rv = doc ? 0 : err.code;
	if (rv == 0 && json_object_del(doc, v->id) != 0)
		rv = err_set(&err, AVA_ENOENT, "there is no trigger %.40s (ava trigger list)",
			     v->id);
	if (rv == 0)
		rv = triggers_write(v->core, doc, &err);
	json_decref(doc);
	if (rv == 0)
		core_log(v->core, "trigger %s is removed", v->id);
	if (!verb_begin(&a, v->reply, rv, &err))
		return;
	jw_object(&a.w, NULL);
	jw_str(&a.w, "name", v->id);
	verb_send(&a, 200);
}

const struct verb verbs_about_triggers[] = {
	{"GET", "/api/v1/triggers", verb_triggers, NULL, false},
	{"POST", "/api/v1/triggers", verb_trigger_new, new_args, false},
	{"POST", "/api/v1/triggers/{id}", verb_trigger, delivery_args, false, .raw = true},
	{"POST", "/api/v1/triggers/{id}/rm", verb_trigger_rm, NULL, false},
	{NULL},
};
