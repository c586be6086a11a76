/* See door_call.h.
 *
 * What can fail: the way to the service (later), and what the wire's `judge` finds in the answer.
 * Each call has a connection of its own, so that none is made twice by itself. */
#include "gateway/door_call.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/keys.h"
#include "base/util.h"
#include "codec/utf8.h"
#include "os/loop.h"

#define ANSWER_MAX   (8u << 20)
#define CONNECT_MS   10000
#define PAUSE_MAX_MS INT64_C(60000)
#define SLOW_MAX_MS  INT64_C(3600000) /* at the most, even if the service asks for more */

struct door_line {
	struct os_loop *loop;
	struct http_client *client;
	struct http_pool *pool;
	const char *title;
	door_judge_fn judge;
	char prefix[256], header[512];
};

const char *door_secret(const char *name, struct ava_error *err)
{
	const char *secret = keys_get(name);

	*err = (struct ava_error){0};
	if (!secret || strcmp(keys_source(name), "file") == 0)
		return secret;
	err_set(err, AVA_EDENIED,
		"%s stands in the environment, which others can see: unset it and write it into "
		"the file env beside config.yaml (chmod 600)",
		name);
	return NULL;
}

/* ---- answers */

void door_answer_why(struct door_answer *out, enum door_verdict verdict, const char *what,
		     const char *described)
{
	out->verdict = verdict;
	snprintf(out->why, sizeof(out->why), "%s%s%.*s", what, *described ? ": " : "",
		 (int)utf8_prefix(described, strlen(described), 40), described);
}

void door_answer_slow(struct door_answer *out, int64_t after_ms)
{
	out->after_ms = MIN(MAX(after_ms, INT64_C(1000)), SLOW_MAX_MS);
}

static void call_on_done(struct http_call *h, int rv, const struct ava_error *err)
{
	struct door_call *c = CONTAINER_OF(h, struct door_call, http);
	struct door_answer a = {.verdict = DOOR_LATER};
	json_t *doc = NULL;

	if (rv == 0 && buf_check(&c->answer) == 0)
		c->line->judge(h->status, c->answer.data, c->answer.len, &doc, &a);
	else if (rv != 0)
		snprintf(a.why, sizeof(a.why), "%.190s", err->text);
	else
		snprintf(a.why, sizeof(a.why), "%s's answer is too long", c->line->title);
	c->busy = false;
	c->pause_ms = a.verdict == DOOR_OK
			      ? 0
			      : MIN(MAX(2 * c->pause_ms, INT64_C(0) + DOOR_PAUSE_MS), PAUSE_MAX_MS);
	c->next_ms = os_now_ms(c->line->loop) + (a.verdict == DOOR_SLOW ? a.after_ms : c->pause_ms);
	c->done(c, &a);
	json_decref(doc);
}

/* ---- calls */

struct door_line *door_line_new(struct os_loop *loop, const struct door_access *access,
				const char *title, door_judge_fn judge, struct ava_error *err)
{
	struct http_pool_options o = {
		.base_url = access->url, .connections_max = DOOR_CHATS_MAX + 2, .once = true};
	struct door_line *a = calloc(1, sizeof(*a));

	if (!a) {
		err_set(err, AVA_ENOMEM, "out of memory");
		return NULL;
	}
	a->loop = loop;
	a->title = title;
	a->judge = judge;
	snprintf(a->prefix, sizeof(a->prefix), "%s", access->prefix);
	snprintf(a->header, sizeof(a->header), "%s", access->header);
	a->client = http_client_new(loop, err);
	a->pool = a->client ? http_pool_new(a->client, &o, err) : NULL;
	if (a->pool)
		return a;
	door_line_free(a);
	return NULL;
}

void door_line_free(struct door_line *a)
{
	if (!a)
		return;
	http_pool_free(a->pool);
	http_client_free(a->client);
	explicit_bzero(a, sizeof(*a));
	free(a);
}

bool door_call(struct door_line *a, struct door_call *c, const struct door_request *r)
{
	char path[sizeof(r->path) + sizeof(a->prefix)], type[128];
	const char *headers[] = {type, "User-Agent: ava/" AVA_VERSION, a->header};

	snprintf(path, sizeof(path), "%s%s", a->prefix, r->path);
	snprintf(type, sizeof(type), "Content-Type: %s", r->type[0] ? r->type : "application/json");
	c->line = a;
	buf_fini(&c->answer);
	buf_init(&c->answer, ANSWER_MAX);
	c->http = (struct http_call){
		.path = path,
		.method = r->method,
		.headers = headers,
		.nheaders = ARRAY_LEN(headers) - !a->header[0],
		/* The longest call is a poll that the service holds and answers late. */
		.timers = {CONNECT_MS, (DOOR_POLL_S + 15) * 1000, 20000, (DOOR_POLL_S + 40) * 1000},
		.answer = &c->answer,
		.done = call_on_done,
	};
	buf_init(&c->http.body, r->body.max);
	buf_add(&c->http.body, r->body.data, r->body.len);
	c->busy = buf_check(&r->body) == 0 && buf_check(&c->http.body) == 0 &&
		  http_call_start(a->pool, &c->http, NULL) == 0;
	explicit_bzero(path, sizeof(path));
	if (!c->busy) {
		buf_fini(&c->http.body);
		c->next_ms = os_now_ms(a->loop) + DOOR_PAUSE_MS;
	}
	return c->busy;
}

void door_call_fini(struct door_call *c)
{
	if (c->busy)
		http_call_stop(&c->http);
	c->busy = false;
	buf_fini(&c->answer);
}

/* ---- texts */

static bool is_flag(uint32_t cp)
{
	return cp >= 0x1f1e6 && cp <= 0x1f1ff;
}

/* Marks, joiners, variants and tones of skin belong to the character before. */
static bool joins(uint32_t cp)
{
	return (cp >= 0x300 && cp <= 0x36f) || cp == 0x200d || cp == 0x20e3 ||
	       (cp >= 0x20d0 && cp <= 0x20f0) || (cp >= 0xfe00 && cp <= 0xfe0f) ||
	       (cp >= 0x1f3fb && cp <= 0x1f3ff) || (cp >= 0xe0020 && cp <= 0xe01ef);
}

size_t door_cut(const char *s, size_t len, size_t units)
{
	size_t at = 0, used = 0, whole = 0, line = 0, paragraph = 0, flags = 0, n;
	uint32_t cp, before = 0;

	for (; at < len; at += n) {
		n = utf8_decode(s + at, len - at, &cp);
		n = n ? n : 1;
		if (at > 0 && !joins(cp) && before != 0x200d && !(is_flag(cp) && flags % 2 == 1))
			whole = at;
		if (before == '\n')
			line = at;
		if (before == '\n' && at > 1 && s[at - 2] == '\n')
			paragraph = at;
		used += n == 4 ? 2 : 1;
		if (used > units)
			break;
		flags = is_flag(cp) ? flags + 1 : 0;
		before = cp;
	}
	if (at >= len)
		return len;
	/* A message that is nearly empty is worse than one that ends amid a paragraph. */
	if (paragraph > at / 3)
		return paragraph;
	if (line > at / 4)
		return line;
	return whole > 0 ? whole : at;
}
