/* A call of a messenger's service over HTTP, what its answer means, and how a text is cut into
 * messages. A secret may stand in every address, so an address is never part of a sentence.
 * Loop thread only. */
#ifndef GATEWAY_DOOR_CALL_H
#define GATEWAY_DOOR_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/http_client.h"

struct ava_error;
struct os_loop;

#define DOOR_POLL_S    50   /* a service holds a poll at most so long */
#define DOOR_PAUSE_MS  1000 /* the shortest pause before another try */
#define DOOR_CHATS_MAX 8    /* each chat has a call of its own */
#define DOOR_ID_MAX    256  /* bytes of a service's id, with its NUL */

enum door_verdict {
	DOOR_OK,
	DOOR_REFUSED, /* never will be taken */
	DOOR_BLOCKED, /* the person does not want to hear from us */
	/* The same again may be taken: */
	DOOR_LATER,    /* the service was not reached, or is not well */
	DOOR_SLOW,     /* after `after_ms` */
	DOOR_CONFLICT, /* another program reads what is said to us */
	DOOR_REVOKED,  /* the secret is not valid any more: with another one */
};

struct door_answer {
	enum door_verdict verdict;
	int64_t after_ms;
	const json_t *result; /* borrowed until `done` returns; NULL: nothing to read */
	char why[300];        /* one sentence, "" for DOOR_OK */
};
/* "<what>: <described>", cut; the second may be "". */
void door_answer_why(struct door_answer *out, enum door_verdict verdict, const char *what,
		     const char *described);
/* DOOR_SLOW, for as long as the service says, within bounds. */
void door_answer_slow(struct door_answer *out, int64_t after_ms);

/* How to come to a service, and as whom. */
struct door_access {
	char url[512];             /* of the service */
	char prefix[256];          /* of each path; may hold a secret */
	char header[512];          /* "Authorization: …"; "": none */
	char account[DOOR_ID_MAX]; /* whose messages these are; "": the service tells */
};
/* The secret with this name of the key file, *borrowed* as keys_get has it. NULL: none is there
 * (err->code 0), or AVA_EDENIED: only that file may hold it. */
const char *door_secret(const char *name, struct ava_error *err);

struct door_line; /* to a service */
/* Judge an answer of `status` with these bytes. *doc is a new reference or NULL, and holds
 * `result`. */
typedef void (*door_judge_fn)(int status, const char *body, size_t len, json_t **doc,
			      struct door_answer *out);
/* `title` names the service in sentences; *borrowed*. NULL with err, as http_pool_new. */
struct door_line *door_line_new(struct os_loop *loop, const struct door_access *access,
				const char *title, door_judge_fn judge, struct ava_error *err);
void door_line_free(struct door_line *a); /* after the last call; NULL is fine */

struct door_request {
	const char *method; /* NULL: POST */
	char path[1400];    /* behind the prefix */
	char type[100];     /* "": JSON */
	struct buf body;
};

/* A call, in the caller's memory, zeroed. Each struct makes one call at a time. */
struct door_call {
	struct http_call http;
	struct buf answer;
	const struct door_line *line;
	bool busy;
	int64_t next_ms;  /* monotonic: no call before, by the last answer */
	int64_t pause_ms; /* grows while no call is taken */
	/* Once, from the loop, unless stopped; another call may be begun in it. */
	void (*done)(struct door_call *c, const struct door_answer *a);
	void *user;
};
/* `r` is *copied*. False: memory ran out, nothing was begun, and it may be tried at next_ms. */
bool door_call(struct door_line *a, struct door_call *c, const struct door_request *r);
void door_call_fini(struct door_call *c); /* stops a call under way */

/* ---- texts, which are valid UTF-8 */

/* Bytes of the first message of at most `units` of UTF-16: up to the end of a paragraph, else of a
 * line, else of a character with all that belongs to it. */
size_t door_cut(const char *s, size_t len, size_t units);

#endif
