/* A message of an MCP client while it is answered, and how the mcp_*.c files write answers and call
 * verbs. A call ends with exactly one of the functions that say so, and is freed afterwards. Loop
 * thread only. */
#ifndef GATEWAY_MCP_CALL_H
#define GATEWAY_MCP_CALL_H

#include "ava/ops.h"
#include "ava/verbs.h"
#include "base/hash.h"
#include "base/list.h"
#include "codec/jsonrpc.h"
#include "gateway/mcp_secret.h"
#include "gateway/mcp_tools.h"

struct http_request;
struct http_stream;
struct os_timer;

#define MCP_META  "io.modelcontextprotocol/"
#define MCP_TASKS MCP_META "tasks"

enum mcp_code {
	MCP_HEADER = -32020,     /* the header says otherwise than the message */
	MCP_CAPABILITY = -32021, /* the client did not declare what this needs */
	MCP_VERSION = -32022,
	MCP_NO_RESOURCE = -32002, /* for clients of versions before 2026-07-28 */
};

#define MCP_ANSWER_MAX  (64u << 20) /* bytes */
#define MCP_CLOSED_MAX  256
#define MCP_STREAMS_MAX 64 /* streams with open forms */
#define MCP_STREAMS_OWN 16 /* those of one client */

struct mcp {
	struct core *core;
	unsigned *streams; /* counts open streams of the daemon */
	struct mcp_secret secret;
	struct list open; /* calls that have a stream */
	unsigned nclosed;
	char closed[MCP_CLOSED_MAX]
		   [MCP_SEAL_LEN + 1]; /* a ring: states of forms that were closed */
};

struct mcp_call;

/* A method of the protocol. */
struct mcp_method {
	const char *name;
	bool legacy, modern; /* spoken before 2026-07-28, and since */
	void (*call)(struct mcp_call *c);
	const char *named; /* the param that Mcp-Name repeats; NULL: none */
	bool cached;       /* the client may keep the result, for ttl_ms */
	int ttl_ms;
};

typedef void (*mcp_then_fn)(struct mcp_call *c, json_t *answer, const struct ava_error *err);
typedef void (*mcp_look_fn)(struct mcp_call *c, const struct op_status *s,
			    const struct ava_error *err);

struct mcp_call {
	struct verb_reply reply;
	struct mcp *mcp;
	struct http_request *req;   /* NULL: the peer has gone, or `stream` took over */
	struct http_stream *stream; /* asks the client */
	struct list node;           /* in mcp->open */
	struct os_timer *expiry;    /* ends the open form */
	int64_t asked_id;           /* the id of our open request; 0: none */
	struct rpc m;
	const struct mcp_method *method; /* NULL: none, or an unknown one */
	const struct mcp_tool *tool;
	mcp_then_fn then;   /* takes the verb's answer */
	mcp_look_fn looked; /* or takes the run's status */
	json_t *kept;       /* the previous verb's answer; *owned* */
	char user[64], session[80], proposal[24], run[24];
	char hash[HASH_HEX_LEN + 1]; /* of the quote that the form shows */
	bool waiting;                /* the call waits for a verb's answer */
	bool modern;                 /* the client speaks 2026-07-28 */
	bool far;                    /* the message came by network */
	bool forms, tasks;           /* the client shows forms; the client knows tasks */
};

void mcp_call_free(struct mcp_call *c);
/* A parameter that ava mcp adds to the address; NULL: none, or the message came by network. */
const char *mcp_call_query(const struct mcp_call *c, const char *name);

/* ---- answers: each of these ends the call; JSON that is given is *taken* (NULL: no memory) */

/* The result, as of 2026-07-28 or before; only this client may cache it. */
void mcp_call_answer(struct mcp_call *c, json_t *result);
void mcp_call_refuse(struct mcp_call *c, int code, const char *text, json_t *data);
/* Refuse with an error of ours: no such thing, or not now. */
void mcp_call_fail(struct mcp_call *c, const struct ava_error *err);
/* A tool's result: an object, or a sentence that says why not. */
void mcp_call_tell(struct mcp_call *c, json_t *told);
void mcp_call_tell_error(struct mcp_call *c, const char *text);
/* `v` as a string of JSON; a new reference, NULL: too large, or no memory. */
json_t *mcp_call_text(const json_t *v);
/* A tool's object (*taken*) as its result: the object, and the same as text. */
json_t *mcp_call_told(json_t *told, bool error);

/* ---- verbs: `then` hears the answer, maybe before these return, and owns the call again.
 * `person`: words that a person filled into a form, else a model asks. */

/* `id` stands in the path, "": nothing does; `args` is *taken*, NULL: none. */
void mcp_call_ask(struct mcp_call *c, const char *method, const char *path, const char *id,
		  json_t *args, bool person, mcp_then_fn then);
/* Ask for the status of c->run without its JSON, since polls should be cheap. */
void mcp_call_look(struct mcp_call *c, mcp_look_fn then);

/* ---- streams of events */

/* A client that has a handshake keeps a stream for each form: whether it may have one more. */
bool mcp_stream_has_place(const struct mcp_call *c);
/* The answer is a stream from here on. false: the connection is closed already, and the call is
 * freed. */
bool mcp_stream_begin(struct mcp_call *c);
/* Send a message, *taken*. */
void mcp_stream_write(const struct mcp_call *c, json_t *message);

/* ---- mcp_run.c */

/* Whether a run, by its result or status, is an error or ended without a result. */
bool mcp_run_failed(const json_t *run);
/* A proposal as mcp_then_fn: it is shown in a form, told, or has become a run. */
void mcp_quote_told(struct mcp_call *c, json_t *proposal, const struct ava_error *err);
/* The call comes again, with the state of its form. */
void mcp_quote_returned(struct mcp_call *c, const char *state);
/* A response of a client that was asked on a stream, or its notice that cancels the call and the
 * form with it. Responses to unknown requests are ignored, and a call without a form is answered
 * nevertheless. */
void mcp_quote_heard(struct mcp *m, const struct rpc *r, const char *session);
/* The methods tasks/get, tasks/update and tasks/cancel. */
void mcp_task_get(struct mcp_call *c);
void mcp_task_update(struct mcp_call *c);
void mcp_task_cancel(struct mcp_call *c);

#endif
