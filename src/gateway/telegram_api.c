/* See telegram_api.h.
 *
 * Happy path: POST /bot<token>/<method> with a JSON object, answered {"ok":true,"result":…}.
 * What can fail: the way to the service (later), and errors of the service, by `description` and
 * status. 400 "message is not modified" is a success. A wrong token is 401 or 404.
 * An answer that is no JSON is a proxy's, whatever its status: later. */
#include "gateway/telegram_api.h"

#include <ava.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/keys.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "os/loop.h"

#define ANSWER_MAX   (8u << 20)
#define TOKEN_MAX    200
#define CONNECT_MS   10000
#define PAUSE_MAX_MS INT64_C(60000)
#define SLOW_MAX_S   INT64_C(3600) /* longest pause, even if the service asks for more */
#define BAD_TOKEN                                                                                  \
	"the token is not good any more: write the bot's new one into the file env and restart "   \
	"the daemon"

struct tg_api {
	struct os_loop *loop;
	struct http_client *client;
	struct http_pool *pool;
	char token[TOKEN_MAX];
};

/* ---- the token */

const char *tg_token(int64_t *bot, struct ava_error *err)
{
	const char *token = keys_get(TG_TOKEN_NAME), *source = keys_source(TG_TOKEN_NAME);
	size_t digits = token ? strspn(token, "0123456789") : 0, len = token ? strlen(token) : 0;

	*err = (struct ava_error){0};
	if (!token)
		return NULL;
	if (strcmp(source, "file") != 0) {
		err_set(err, AVA_EDENIED,
			TG_TOKEN_NAME " stands in the environment, which others can see: unset it "
				      "and write it into the file env beside config.yaml (chmod "
				      "600)");
		return NULL;
	}
	for (size_t i = digits + 1; i < len; i++)
		if (!isalnum((unsigned char)token[i]) && token[i] != '_' && token[i] != '-')
			len = 0;
	if (digits == 0 || digits > 16 || len >= TOKEN_MAX || len < digits + 20 ||
	    token[digits] != ':') {
		err_set(err, AVA_EINVAL,
			TG_TOKEN_NAME " is no token of a bot (digits, a colon, letters): copy it "
				      "again from @BotFather");
		return NULL;
	}
	*bot = strtoll(token, NULL, 10);
	return token;
}

/* ---- answers */

static void telegram_api_say_why(struct tg_answer *out, enum tg_verdict verdict, const char *what,
				 const char *described)
{
	out->verdict = verdict;
	snprintf(out->why, sizeof(out->why), "%s%s%.*s", what, *described ? ": " : "",
		 (int)utf8_prefix(described, strlen(described), 40), described);
}

static const struct telegram_api_meaning {
	int status; /* HTTP status; 0: any other of 400 to 499 */
	enum tg_verdict verdict;
	const char *what;
} meanings[] = {
	{429, TG_SLOW, "Telegram asks to wait"},
	{401, TG_REVOKED, BAD_TOKEN},
	{404, TG_REVOKED, BAD_TOKEN},
	{403, TG_BLOCKED, "the person has blocked the bot"},
	{409, TG_CONFLICT,
	 "another program reads what is said to this bot: stop it, or give ava a bot of its own, "
	 "then run `ava telegram listen`"},
	{0, TG_REFUSED, "Telegram refuses it"},
};

void tg_judge(int status, const char *body, size_t len, json_t **doc, struct tg_answer *out)
{
	const struct telegram_api_meaning *m = meanings;
	const char *told;
	char what[60];
	int64_t after_s;

	*out = (struct tg_answer){.verdict = TG_OK};
	*doc = json_read_others(body, len, NULL);
	told = json_str(*doc, "description");
	after_s = json_get_int(json_object_get(*doc, "parameters"), "retry_after", 0);
	if (status == 200 && json_get_bool(*doc, "ok", false)) {
		out->result = json_object_get(*doc, "result");
	} else if (status == 400 && strstr(told, "message is not modified")) {
		out->result = NULL;
	} else if (!*doc || status < 400 || status >= 500) {
		snprintf(what, sizeof(what), "Telegram answers %d%s", status,
			 *doc ? "" : ", and not in JSON");
		telegram_api_say_why(out, TG_LATER, what, told);
	} else {
		while (m->status != 0 && m->status != status)
			m++;
		telegram_api_say_why(out, m->verdict, m->what,
				     m->verdict == TG_REVOKED ? "" : told);
		if (m->verdict == TG_SLOW)
			out->after_ms = MIN(MAX(after_s, INT64_C(1)), SLOW_MAX_S) * 1000;
	}
}

static void telegram_api_on_done(struct http_call *h, int rv, const struct ava_error *err)
{
	struct tg_call *c = CONTAINER_OF(h, struct tg_call, http);
	struct tg_answer a = {.verdict = TG_LATER};
	json_t *doc = NULL;

	if (rv == 0 && buf_check(&c->answer) == 0)
		tg_judge(h->status, c->answer.data, c->answer.len, &doc, &a);
	else
		snprintf(a.why, sizeof(a.why), "%.190s",
			 rv != 0 ? err->text : "Telegram's answer is too long");
	c->busy = false;
	c->pause_ms = a.verdict == TG_OK
			      ? 0
			      : MIN(MAX(2 * c->pause_ms, INT64_C(0) + TG_PAUSE_MS), PAUSE_MAX_MS);
	c->next_ms = os_now_ms(c->loop) + (a.verdict == TG_SLOW ? a.after_ms : c->pause_ms);
	c->done(c, &a);
	json_decref(doc);
}

/* ---- calls */

struct tg_api *tg_api_new(struct os_loop *loop, const char *url, const char *token,
			  struct ava_error *err)
{
	struct http_pool_options o = {
		.base_url = *url ? url : TG_URL, .connections_max = TG_CHATS_MAX + 1, .once = true};
	struct tg_api *a = calloc(1, sizeof(*a));

	if (!a) {
		err_set(err, AVA_ENOMEM, "out of memory");
		return NULL;
	}
	a->loop = loop;
	snprintf(a->token, sizeof(a->token), "%s", token);
	a->client = http_client_new(loop, err);
	a->pool = a->client ? http_pool_new(a->client, &o, err) : NULL;
	if (a->pool)
		return a;
	tg_api_free(a);
	return NULL;
}

void tg_api_free(struct tg_api *a)
{
	if (!a)
		return;
	http_pool_free(a->pool);
	http_client_free(a->client);
	explicit_bzero(a->token, sizeof(a->token));
	free(a);
}

bool tg_call(struct tg_api *a, struct tg_call *c, const char *method, const struct buf *body,
	     const char *boundary)
{
	char path[TOKEN_MAX + 64], type[128];
	const char *headers[] = {type, "User-Agent: ava/" AVA_VERSION};

	snprintf(path, sizeof(path), "/bot%s/%.40s", a->token, method);
	snprintf(type, sizeof(type), "Content-Type: %s%.60s",
		 boundary[0] ? "multipart/form-data; boundary=" : "application/json", boundary);
	c->loop = a->loop;
	buf_fini(&c->answer);
	buf_init(&c->answer, ANSWER_MAX);
	c->http = (struct http_call){
		.path = path,
		.headers = headers,
		.nheaders = ARRAY_LEN(headers),
		/* The longest call is a poll that the service holds and answers late. */
		.timers = {CONNECT_MS, (TG_POLL_S + 15) * 1000, 20000, (TG_POLL_S + 40) * 1000},
		.answer = &c->answer,
		.done = telegram_api_on_done,
	};
	buf_init(&c->http.body, body->max);
	buf_add(&c->http.body, body->data, body->len);
	c->busy = buf_check(body) == 0 && buf_check(&c->http.body) == 0 &&
		  http_call_start(a->pool, &c->http, NULL) == 0;
	explicit_bzero(path, sizeof(path));
	if (!c->busy) {
		buf_fini(&c->http.body);
		c->next_ms = os_now_ms(a->loop) + TG_PAUSE_MS;
	}
	return c->busy;
}

void tg_call_fini(struct tg_call *c)
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

size_t tg_cut(const char *s, size_t len, size_t units)
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
