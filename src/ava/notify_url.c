/* The channel of notify.url: a POST for each notice, in a form that its receiver knows.
 *
 *   json   the Item as notify.exec gets it, X-Ava-Id: its lsn, by which a double is known
 *   ntfy   the words, with the title in the header Title
 *   slack  {"text": title and words}, as Slack and what imitates it take it
 *
 * With AVA_NOTIFY_SECRET in the file env, X-Ava-Signature has sha256=HMAC of the body. Attempts
 * are on disk before the call, as those of the command are (channel.c): after a crash one more call
 * is made, with the same id. What can fail: the call. Silence, 408, 429 and 5xx are asked again,
 * not before a Retry-After; every other answer than 2xx gives the notice up at once, since it would
 * be the same again. Redirects are not followed: they may lead to somebody else. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/delivery.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "net/http_client.h"
#include "provider/retry.h"

#define TITLE_CHARS 200
#define TEXT_CHARS  1000
#define HEADERS     4
#define HEADER_MAX  1024
#define ANSWER_MAX  4096
#define URL_MAX     256

struct notify_url {
	struct channel ch;
	struct http_client *client;
	struct http_pool *pool;
	struct http_call call;
	struct buf answer;
	char *secret;                      /* wiped; NULL: none */
	char base[URL_MAX], path[URL_MAX]; /* of the address: to its host, and from there on */
	char format[8], headers[HEADERS][HEADER_MAX];
};

/* ---- the body */

/* The body, and in `title` a header for it ("" none). */
static int url_body(const struct notify_url *u, struct buf *b, char title[HEADER_MAX])
{
	json_t *item = json_parse(u->ch.item->json, strlen(u->ch.item->json), NULL);
	const char *head = json_str(item, "title"), *text = json_str(item, "text");
	size_t nhead = utf8_prefix(head, strlen(head), TITLE_CHARS);
	size_t ntext = utf8_prefix(text, strlen(text), TEXT_CHARS);
	struct buf words;
	struct jw w;
	int rv;

	title[0] = '\0';
	buf_init(&words, 65536);
	if (strcmp(u->format, "slack") == 0) {
		notify_add_escaped(&words, head, nhead);
		buf_adds(&words, ntext > 0 ? "\n" : "");
		notify_add_escaped(&words, text, ntext);
		jw_init(&w, b);
		jw_object(&w, NULL);
		jw_strn(&w, "text", words.data ? words.data : "", words.len);
		jw_end(&w);
	} else if (strcmp(u->format, "ntfy") == 0) {
		snprintf(title, HEADER_MAX, "Title: %.*s", (int)nhead, head);
		for (char *at = title; *at; at++)
			if ((unsigned char)*at < ' ' || *at == 127)
				*at = ' ';
		buf_add(b, ntext > 0 ? text : head, ntext > 0 ? ntext : nhead);
	} else {
		buf_addf(b, "{\"version\":1,\"channel\":\"url\",\"attempt\":%u,%s",
			 u->ch.item->tries[delivery_bit(DELIVERY_URL)].attempts,
			 u->ch.item->json + 1);
	}
	rv = item ? buf_check(b) : AVA_ENOMEM;
	rv = rv == 0 ? buf_check(&words) : rv;
	buf_fini(&words);
	json_decref(item);
	return rv;
}

/* ---- the call */

static void url_done(struct http_call *call, int rv, const struct ava_error *err)
{
	struct notify_url *u = call->user;
	struct retry_failure asked = {.after = http_call_header(call, "retry-after"),
				      .date = http_call_header(call, "date")};
	int status = rv == 0 || rv == AVA_ETOOBIG ? call->status : 0;
	bool again = status == 0 || status == 408 || status == 429 || status >= 500;

	u->ch.reason[0] = '\0';
	if (status >= 200 && status < 300) {
		channel_done(&u->ch, CHANNEL_TAKEN);
		return;
	}
	if (status == 0)
		channel_add_reason(&u->ch, err->text, strlen(err->text));
	else
		snprintf(u->ch.reason, sizeof(u->ch.reason), "it answers %d%s", status,
			 status >= 300 && status < 400 ? ", another address" : "");
	if (status >= 400 && u->answer.len > 0)
		channel_add_reason(&u->ch, u->answer.data, u->answer.len);
	notify_failed(&u->ch, "notify.url",
		      again && status > 0 ? retry_asked(&asked, clock_wall_ms()) : -1, !again);
}

static void url_send(struct channel *ch)
{
	struct notify_url *u = CONTAINER_OF(ch, struct notify_url, ch);
	int64_t ms = ch->d->core->settings.notify_timeout_s * 1000;
	const char *headers[HEADERS];
	unsigned char sum[32];
	char hex[HASH_HEX_LEN + 1];
	struct ava_error err = {0};
	unsigned n = 2;
	struct buf body;
	int rv;

	buf_init(&body, 1u << 19);
	rv = url_body(u, &body, u->headers[2]);
	snprintf(u->headers[0], HEADER_MAX, "Content-Type: %s",
		 strcmp(u->format, "ntfy") == 0 ? "text/plain; charset=utf-8" : "application/json");
	snprintf(u->headers[1], HEADER_MAX, "X-Ava-Id: %llu",
		 (unsigned long long)ch->item->item.lsn);
	n += u->headers[2][0] != '\0';
	if (rv == 0 && u->secret) {
		hash_hmac(u->secret, strlen(u->secret), "", body.data, body.len, sum);
		hash_hex(sum, sizeof(sum), hex);
		snprintf(u->headers[n++], HEADER_MAX, "X-Ava-Signature: sha256=%s", hex);
	}
	for (unsigned i = 0; i < n; i++)
		headers[i] = u->headers[i];
	buf_reset(&u->answer);
	u->call = (struct http_call){
		.path = u->path,
		.headers = headers,
		.nheaders = n,
		.body = body,
		.timers = {ms, ms, ms, ms},
		.answer = &u->answer,
		.done = url_done,
		.user = u,
	};
	rv = rv == 0 ? http_call_start(u->pool, &u->call, &err)
		     : err_set(&err, rv, "out of memory");
	if (rv == 0)
		return;
	buf_fini(&body);
	snprintf(ch->reason, sizeof(ch->reason), "%s", err.text);
	notify_failed(ch, "notify.url", -1, false);
}

/* ---- life */

static void url_stop(struct channel *ch)
{
	struct notify_url *u = CONTAINER_OF(ch, struct notify_url, ch);

	http_call_stop(&u->call);
	http_pool_free(u->pool);
	http_client_free(u->client);
	u->pool = NULL;
	u->client = NULL;
}

static void url_free(struct channel *ch)
{
	struct notify_url *u = CONTAINER_OF(ch, struct notify_url, ch);

	if (u->secret)
		explicit_bzero(u->secret, strlen(u->secret));
	free(u->secret);
	buf_fini(&u->answer);
	free(u);
}

int notify_url_open(struct core *c, const char *url, const char *format, const char *secret,
		    struct ava_error *err)
{
	static const struct channel_kind kind = {DELIVERY_URL, url_send, url_stop, url_free};
	struct http_pool_options o = {.connections_max = 1, .once = true};
	struct notify_url *u;
	const char *host;
	size_t n;

	if (!url || !*url)
		return 0;
	host = strstr(url, "://");
	host = host ? host + 3 : url;
	n = (size_t)(host - url) + strcspn(host, "/?");
	u = calloc(1, sizeof(*u));
	if (!u || channel_init(&u->ch, c->delivery, &kind) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	buf_init(&u->answer, ANSWER_MAX);
	u->ch.attempts_max = (unsigned)c->settings.notify_attempts;
	snprintf(u->format, sizeof(u->format), "%s", format ? format : "");
	u->secret = secret && *secret ? strdup(secret) : NULL;
	if (secret && *secret && !u->secret)
		return err_set(err, AVA_ENOMEM, "out of memory");
	snprintf(u->base, sizeof(u->base), "%.*s", (int)n, url);
	snprintf(u->path, sizeof(u->path), "%s%s", url[n] == '/' ? "" : "/", url + n);
	o.base_url = u->base;
	u->client = http_client_new(c->loop, err);
	u->pool = u->client ? http_pool_new(u->client, &o, err) : NULL;
	return u->pool ? 0 : err_wrap(err, err->code, "notify.url");
}
