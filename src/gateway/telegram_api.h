/* The Bot API of Telegram: one call of a method, what its answer means, and how a text is cut
 * into messages. The token stands in every address, so an address is never part of a sentence.
 * Loop thread only. */
#ifndef GATEWAY_TELEGRAM_API_H
#define GATEWAY_TELEGRAM_API_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/http_client.h"

struct ava_error;
struct os_loop;

#define TG_TOKEN_NAME    "TELEGRAM_BOT_TOKEN"
#define TG_URL           "https://api.telegram.org" /* unless telegram.url is set */
#define TG_TEXT_UNITS    4096                       /* UTF-16 units of a message */
#define TG_CAPTION_UNITS 1024                       /* UTF-16 units of a document's caption */
#define TG_POLL_S        50                         /* the service holds a poll at most so long */
#define TG_PAUSE_MS      1000                       /* the shortest pause before another try */
#define TG_CHATS_MAX     8                          /* each chat has a call of its own */

/* The token of the key file, *borrowed* as keys_get has it, and the id of its bot. NULL: none
 * is there (err->code 0), or why it is not taken: only that file may hold it. */
const char *tg_token(int64_t *bot, struct ava_error *err);

enum tg_verdict {
	TG_OK,
	TG_REFUSED, /* the service will never take this call */
	TG_BLOCKED, /* the person does not want to hear from the bot */
	/* The same again may be taken: */
	TG_LATER,    /* the service was not reached, or is not well */
	TG_SLOW,     /* once `after_ms` have passed */
	TG_CONFLICT, /* another program reads what is said to the bot */
	TG_REVOKED,  /* with another token: this one is not valid any more */
};

struct tg_answer {
	enum tg_verdict verdict;
	int64_t after_ms;
	const json_t *result; /* borrowed until `done` returns; NULL: nothing to read */
	char why[300];        /* one sentence, "" for TG_OK */
};

/* Judge an answer of `status` with these bytes. *doc is a new reference or NULL, and holds
 * `result`. */
void tg_judge(int status, const char *body, size_t len, json_t **doc, struct tg_answer *out);

struct tg_api;
/* `url`: as provider_url_check left it, "": the service's own. NULL with err, as
 * http_pool_new. */
struct tg_api *tg_api_new(struct os_loop *loop, const char *url, const char *token,
			  struct ava_error *err);
void tg_api_free(struct tg_api *a); /* after the last call; NULL is fine */

/* A call of the Bot API, in the caller's memory, zeroed. Each struct makes one call at a time. */
struct tg_call {
	struct http_call http;
	struct buf answer;
	struct os_loop *loop;
	bool busy;
	int64_t next_ms;  /* monotonic: no call is made before; set by the last answer */
	int64_t pause_ms; /* grows while no call is taken */
	/* Once, from the loop, unless stopped; another call may be begun in it. */
	void (*done)(struct tg_call *c, const struct tg_answer *a);
	void *user;
};
/* `body` is *copied*: JSON, or where `boundary` is not "", parts of a form. False: memory ran out,
 * nothing was begun, and it may be tried at next_ms. */
bool tg_call(struct tg_api *a, struct tg_call *c, const char *method, const struct buf *body,
	     const char *boundary);
void tg_call_fini(struct tg_call *c); /* stops a call under way */

/* ---- texts, which are valid UTF-8 */

/* Bytes of the first message of at most `units`: up to the end of a paragraph, else of a line,
 * else of a character with all that belongs to it. */
size_t tg_cut(const char *s, size_t len, size_t units);

#endif
