/* The JSON forms of the HTTP API (doc/api.yaml). Pure. */
#ifndef GATEWAY_ENCODE_H
#define GATEWAY_ENCODE_H

#include "ava/change.h"
#include "ava/groups.h"
#include "ava/ops.h"
#include "ava/sessions.h"
#include "codec/json.h"

void encode_status(struct jw *w, const struct op_status *s);
void encode_proposal(struct jw *w, const struct op_proposal *p);
/* The answer to a confirmation or a rejection. */
void encode_answer(struct jw *w, const struct op_proposal *p);
/* The answer to a spawn. */
struct op_cancelled;
void encode_cancelled(struct jw *w, const struct op_cancelled *one);
void encode_started(struct jw *w, const struct op_status *s);
void encode_session(struct jw *w, const struct op_session *s);
void encode_health(struct jw *w, const struct op_health *h);
int encode_error(struct buf *out, int code, const char *message);
/* HTTP status of a code of ava.h. */
int encode_http_status(int code);

const char *encode_proposal_state(enum proposal_state s);

/* Bodies of requests. An absent one is NULL. */
struct decode_string {
	const char *key;
	size_t max;       /* bytes; above: AVA_ETOOBIG */
	const char **out; /* into `body`; untouched when absent */
};
/* An object of these strings and nothing else; null is not a string. */
int decode_strings(const json_t *body, const struct decode_string *keys, size_t n,
		   struct ava_error *err);

#define DECODE_LIST_MAX 64

/* The body of POST /api/v1/proposals/{id}/confirm. Strings point into `body`. */
#define DECODE_ANSWER_MAX 8192 /* bytes of what a person says */
#define DECODE_BY_MAX     200  /* bytes of who said it */
struct answer_body {
	const char *answer, *by; /* NULL: not given */
	struct change set;
};
int decode_answer(const json_t *body, struct answer_body *out, struct ava_error *err);

/* The body of POST /api/v1/runs/cancel: ids, or all of them. */
#define DECODE_IDS_MAX 10000
struct cancel_body {
	const char **ids; /* the caller frees it; into `body`; NULL: all */
	size_t n;
};
int decode_cancel(const json_t *body, struct cancel_body *out, struct ava_error *err);

/* The body of POST /api/v1/runs. Strings point into `body`. */
struct spawn_body {
	struct op_spawn spawn;
	bool confirmed;
	const char *tools[DECODE_LIST_MAX], *grants[DECODE_LIST_MAX], *ask_before[DECODE_LIST_MAX];
};
/* The body of POST /api/v1/groups. Strings point into `body`. */
struct group_body {
	struct op_group group;
	struct spawn_body *bodies; /* of the runs; the caller frees both */
	struct op_spawn *runs;
	bool confirmed;
};
int decode_group(const json_t *body, struct group_body *out, struct ava_error *err);
void encode_group(struct jw *w, const char *id, const struct op_group_status *s);

int decode_spawn(const json_t *body, struct spawn_body *out, struct ava_error *err);

#endif
