/* The JSON forms of the HTTP API (doc/api.yaml). Pure. */
#ifndef GATEWAY_ENCODE_H
#define GATEWAY_ENCODE_H

#include "ava/ops.h"
#include "codec/json.h"

void encode_status(struct jw *w, const struct op_status *s);
void encode_proposal(struct jw *w, const struct op_proposal *p);
void encode_health(struct jw *w, const struct op_health *h);
int encode_error(struct buf *out, int code, const char *message);
/* HTTP status of a code of ava.h. */
int encode_http_status(int code);

const char *encode_proposal_state(enum proposal_state s);

/* The body of POST /api/v1/runs. Strings point into `body` and `lists`. */
struct spawn_body {
	struct op_spawn spawn;
	bool confirmed;
	const char *tools[64], *grants[64];
};
int decode_spawn(const json_t *body, struct spawn_body *out, struct ava_error *err);

#endif
