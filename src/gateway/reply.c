/* Answers. Every one is JSON, never stored by a cache and never guessed to be
 * something else by a browser.
 *
 * Happy path of a kept request: kept_new, the verb, kept_returned, and when
 * the verb calls back, kept_reply or kept_error. A verb may call back before
 * it returns. What can fail: memory (the answer is an error then), the peer
 * hangs up first (the verb goes on, its answer is dropped; a wait for a result
 * is given up). */
#include "gateway/reply.h"

#include <ava.h>
#include <stdlib.h>
#include <string.h>

#include "ava/ops.h"
#include "gateway/encode.h"
#include "gateway/routes.h"
#include "net/http_server.h"

#define FIELDS_MAX 4

static void send_json(const struct routes *r, struct http_request *req, int status,
		      const char *body, size_t len, const char *allow)
{
	struct http_field fields[FIELDS_MAX] = {{"Cache-Control", "no-store"},
						{"X-Content-Type-Options", "nosniff"}};
	struct http_answer a = {.status = status,
				.content_type = "application/json",
				.body = body,
				.len = len,
				.fields = fields,
				.nfields = 2};

	if (allow)
		fields[a.nfields++] = (struct http_field){"Allow", allow};
	if (r->stopping)
		fields[a.nfields++] = (struct http_field){"Connection", "close"};
	http_reply_with(req, &a);
}

static void send_error(const struct routes *r, struct http_request *req, int status, int code,
		       const char *text, const char *allow)
{
	static const char none[] =
		"{\"error\":{\"code\":\"no_memory\",\"message\":\"out of memory\"}}";
	struct buf b;

	buf_init(&b, 1u << 16);
	if (encode_error(&b, code, text) == 0)
		send_json(r, req, status, b.data, b.len, allow);
	else
		send_json(r, req, 500, none, sizeof(none) - 1, NULL);
	buf_fini(&b);
}

void reply_error(const struct routes *r, struct http_request *req, int code, const char *text)
{
	send_error(r, req, encode_http_status(code), code,
		   text && *text ? text : ava_strerror(code), NULL);
}

void reply_not_allowed(const struct routes *r, struct http_request *req, const char *allowed)
{
	send_error(r, req, 405, AVA_EINVAL, "this path does not take this method", allowed);
}

void reply_json(const struct routes *r, struct http_request *req, int status, const struct buf *b)
{
	int rv = buf_check(b);

	if (rv == 0)
		send_json(r, req, status, b->data, b->len, NULL);
	else
		reply_error(r, req, rv,
			    rv == AVA_ETOOBIG ? "the answer would be too big: ask for less of it"
					      : "out of memory");
}

/* ---- kept requests */

static void kept_gone(struct http_request *req, void *user)
{
	struct kept *k = user;

	k->req = NULL;
	if (!k->wait)
		return; /* the verb still has it */
	ops_result_cancel(k->wait);
	list_del(&k->node);
	free(k);
}

struct kept *kept_new(struct routes *r, struct http_request *req)
{
	struct kept *k = calloc(1, sizeof(*k));

	if (!k) {
		reply_error(r, req, AVA_ENOMEM, "out of memory");
		return NULL;
	}
	list_init(&k->node);
	k->req = req;
	k->routes = r;
	k->in_call = true;
	return k;
}

void kept_returned(struct kept *k)
{
	k->in_call = false;
	if (k->finished)
		free(k);
	else
		http_on_gone(k->req, kept_gone, k);
}

static void kept_done(struct kept *k)
{
	list_del(&k->node);
	k->req = NULL;
	k->finished = true;
	if (!k->in_call)
		free(k);
}

void kept_reply(struct kept *k, int status, const struct buf *b)
{
	if (k->req)
		reply_json(k->routes, k->req, status, b);
	kept_done(k);
}

void kept_error(struct kept *k, int code, const struct ava_error *err)
{
	if (k->req)
		reply_error(k->routes, k->req, code, err ? err->text : NULL);
	kept_done(k);
}
