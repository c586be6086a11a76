/* A request on its way through its route; shared by the files that hold routes
 * (routes.c: runs, proposals, events; talk_routes.c: conversations). */
#ifndef GATEWAY_CALL_H
#define GATEWAY_CALL_H

#include <stdbool.h>

#include "codec/json.h"
#include "gateway/params.h"

struct http_request;
struct routes;
struct ava_error;

#define REPLY_MAX (64u << 20)

struct call {
	struct routes *routes;
	struct http_request *req;
	const char *id; /* the {id} of the path; "" when none */
	json_t *body;   /* NULL: none was sent */
	struct params params;
	bool head; /* HEAD: as GET, without the body */
};

void call_refuse(struct call *c, const struct ava_error *err);
/* New work is refused when it could not be kept; false: it was. */
bool call_may_begin(struct call *c);
/* Login of who asks; good until the next call. */
const char *call_login(const struct http_request *req);
/* A buffer for an answer and a writer into it. */
void call_json(struct buf *b, struct jw *w);
/* Answers a kept request (`user`) with the proposal. */
struct op_proposal;
void call_proposed(int rv, const struct op_proposal *p, const struct ava_error *err, void *user);

/* ---- group_routes.c */
void post_group(struct call *c);
void get_group(struct call *c);

/* ---- cancel_routes.c */
void post_cancel_many(struct call *c);

/* ---- checkpoint_routes.c */
void post_checkpoint(struct call *c);
void post_push(struct call *c);

/* ---- replay_routes.c */
void post_replay(struct call *c);

/* ---- steer_routes.c */
void post_steer(struct call *c);

/* ---- talk_routes.c */
void post_session(struct call *c);
void get_sessions(struct call *c);
void get_session(struct call *c);
void get_messages(struct call *c);
void post_message(struct call *c);
void post_stop(struct call *c);

/* ---- delivery_routes.c */
void get_unseen(struct call *c);
void post_ack(struct call *c);

#endif
