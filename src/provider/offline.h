/* The offline model from within: what it sees of a request, and how it makes its
 * reply. Its answer is a function of the request body alone, so everything that it
 * knows of a conversation is here. Strings borrow from the body or its arena. */
#ifndef PROVIDER_OFFLINE_H
#define PROVIDER_OFFLINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/turn.h"
#include "base/buf.h"
#include "codec/json.h"

struct ava_error;
struct dialect_answer;

struct offline_call {
	const char *id, *name;
	const json_t *input;
	const char *result; /* NULL: unanswered; of a repeated call: the earlier result */
	bool is_error;
	unsigned message; /* number of the reply's message: the same for all its calls */
};

struct offline_body {
	json_t *root; /* owned */
	struct arena mem;
	struct offline_call *calls; /* the calls in their order; owned */
	unsigned ncalls;
	unsigned fresh;     /* calls[fresh] is the first one behind `newest` */
	const char *task;   /* the first text of the first user message; "": none */
	const char *newest; /* newest user text that follows no result in its message; "": none */
	unsigned number;    /* number of the model call to answer, from 1 */
	int64_t max_tokens; /* 0: the request does not say */
	bool forced;        /* tool_choice asks for submit_result */
	bool wrap_up;       /* the runtime asked for the result, or a limit is near */
};

/* Read a request. AVA_EINVAL when `body` is not of the Messages form, AVA_ENOMEM. *b is to be freed
 * in any case. */
int offline_body_read(struct offline_body *b, const char *body, size_t len, struct ava_error *err);
void offline_body_fini(struct offline_body *b);
/* The schema of an offered tool's arguments; NULL: it is not offered. */
const json_t *offline_tool(const struct offline_body *b, const char *name);

/* ---- a reply. The first error is kept; after it every function is a no-op. */
struct offline_draft {
	struct turn *turn; /* owned until draft_finish */
	unsigned number;   /* number of the model call, for ids */
	int rv;
	const char *name; /* name of the call in progress */
	struct buf args;
	struct jw w;
};

void draft_start(struct offline_draft *d, unsigned number);
/* Set the text, copied; the last one counts. */
void draft_text(struct offline_draft *d, const char *text);
/* Begin a call; the caller writes its arguments until draft_call_end. */
struct jw *draft_call(struct offline_draft *d, const char *name);
void draft_call_end(struct offline_draft *d);
/* Add a scripted call, copied. `id` NULL: a generated one. `args` NULL: `args_error` says why. */
void draft_add(struct offline_draft *d, const char *id, const char *name, const char *args,
	       size_t len, const char *args_error);
/* Use the wire line as it is instead of text and calls. Copied. */
void draft_wire(struct offline_draft *d, const char *wire, size_t len);
/* Make the draft a turn and free it. *out is the caller's, NULL on error. Usage is estimated from
 * `body_len` and the line. 0, AVA_ENOMEM, AVA_ETOOBIG. */
int draft_finish(struct offline_draft *d, size_t body_len, struct turn **out);

/* ---- the authors of replies. 0 or AVA_ENOMEM; errors of the draft stay in it. */
int offline_find(struct offline_body *b, struct offline_draft *d); /* reply as a subagent */
/* Ava looks for what a question names: first searches, then says what they found. */
int offline_look_up(struct offline_body *b, struct offline_draft *d, const char *question,
		    struct buf *out);
int offline_talk(struct offline_body *b, struct offline_draft *d); /* reply as Ava */

/* Play line b->number of a script; all its lines must be turns. AVA_EINVAL naming the bad line of
 * `file`, or saying that the script has ended; for an error line its code and message. */
int script_play(const char *file, const char *text, size_t len, const struct offline_body *b,
		size_t body_len, struct dialect_answer *out, struct ava_error *err);

#endif
