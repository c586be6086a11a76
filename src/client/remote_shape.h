/* Shapes of the HTTP API (doc/api.yaml) as those of ava.h, and back. Pure. */
#ifndef CLIENT_REMOTE_SHAPE_H
#define CLIENT_REMOTE_SHAPE_H

#include "client/backend.h"
#include "codec/json.h"

void remote_read_run(const json_t *o, struct answer *out, struct ava_run *r);
void remote_read_proposal(const json_t *o, struct answer *out, struct ava_proposal *p);
void remote_read_session(const json_t *o, struct answer *out, struct ava_session *s);
void remote_read_group(const json_t *o, struct answer *out, struct ava_group *g); /* and rows */
/* Rows: struct ava_difference. */
void remote_read_replay(const json_t *o, struct answer *out, struct ava_replay *r);
/* The body of POST /api/v1/runs/{id}/resume. */
int remote_write_resume(struct buf *out, const struct ava_resume *r);
/* The body of POST /api/v1/groups. */
int remote_write_group(struct buf *out, const struct ava_spawn_group *g);
/* The body of POST /api/v1/runs. */
int remote_write_spawn(struct buf *out, const struct ava_spawn *s, bool confirmed);

#endif
