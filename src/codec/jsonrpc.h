/* JSON-RPC 2.0 (jsonrpc.org/specification, without batches), as MCP and ACP speak it: a message is
 * one JSON object, on a line of its own where the transport is a pipe. Pure: bytes in, bytes out.
 */
#ifndef CODEC_JSONRPC_H
#define CODEC_JSONRPC_H

#include "codec/json.h"

enum rpc_code {
	RPC_PARSE = -32700,     /* not JSON */
	RPC_INVALID = -32600,   /* not a message */
	RPC_NO_METHOD = -32601, /* no such method */
	RPC_PARAMS = -32602,    /* wrong parameters */
	RPC_INTERNAL = -32603,
};

enum rpc_kind {
	RPC_REQUEST,  /* method, id, params */
	RPC_NOTICE,   /* method, params; unanswered */
	RPC_RESPONSE, /* id, and either result or error */
};

struct rpc { /* all pointers are borrowed from `doc` */
	json_t *doc;
	enum rpc_kind kind;
	const char *method;
	json_t *id;     /* string or whole number; null: an error that knows none; NULL: a notice */
	json_t *params; /* an object; NULL: none */
	json_t *result, *error;
};

/* Read one message, as json_read_others; text before its bracket is skipped. 0, or RPC_PARSE,
 * RPC_INVALID with err; m->id is set where one could be read, so that the refusal can name it,
 * and for RPC_PARSE m->method and m->kind too: of a broken response the request is known, but
 * not the result. rpc_fini in both cases. */
int rpc_read(struct rpc *m, const char *text, size_t len, struct ava_error *err);
/* Fill *m as rpc_read does for text that is no JSON, or for a line that rpc_line_add calls too
 * long. */
void rpc_unread(struct rpc *m, const char *text, size_t len);
/* Add bytes to a line; returns whether it is longer than `line` may be: then the line's beginning
 * and end are kept, since one of them may hold the id. */
bool rpc_line_add(struct buf *line, bool too_long, const char *bytes, size_t len);
void rpc_fini(struct rpc *m);
bool rpc_same_id(const json_t *a, const json_t *b);
/* The number of our request that an answer's id names: some programs write it as "1". 0: none. */
int64_t rpc_number(const json_t *id);

/* Whole messages, new references. Parts are *taken*, but for the id; a NULL part means that
 * memory ran out, and gives no message either. */
json_t *rpc_request(int64_t id, const char *method, json_t *params); /* id 0: a notice */
json_t *rpc_result(const json_t *id, json_t *result);
/* `id` NULL: null; `data` NULL: none. `message` is passed through json_shown: it may quote
 * received text, cut within a character. */
json_t *rpc_error(const json_t *id, int code, const char *message, json_t *data);
/* Append a message (*taken*) as a line. AVA_ENOMEM, also for NULL; AVA_ETOOBIG. */
int rpc_line(struct buf *out, json_t *message);

#endif
