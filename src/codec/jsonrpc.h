/* JSON-RPC 2.0 (jsonrpc.org/specification, without batches), as MCP and ACP speak it: a message is
 * one JSON object, on a line of its own where the transport is a pipe. Pure: bytes in, bytes out.
 */
#ifndef CODEC_JSONRPC_H
#define CODEC_JSONRPC_H

#include "codec/json.h"

enum rpc_code {
	RPC_PARSE = -32700,     /* no JSON */
	RPC_INVALID = -32600,   /* no message */
	RPC_NO_METHOD = -32601, /* none of that name */
	RPC_PARAMS = -32602,    /* wrong parameters */
	RPC_INTERNAL = -32603,
};

enum rpc_kind {
	RPC_REQUEST,  /* method, id, params */
	RPC_NOTICE,   /* method, params; nobody answers it */
	RPC_RESPONSE, /* id, and either result or error */
};

struct rpc { /* all borrowed of doc */
	json_t *doc;
	enum rpc_kind kind;
	const char *method;
	json_t *id; /* a string or a whole number; null of an error that knows none; NULL: a notice
		     */
	json_t *params; /* an object; NULL: none */
	json_t *result, *error;
};

/* Reads one message, as json_read_others; what stands in front of its bracket is passed over. 0, or
 * RPC_PARSE, RPC_INVALID with err saying why; m->id is set where one could be read, so that the
 * refusal can name it, and for RPC_PARSE m->method and m->kind too: of a response it is known what
 * it answers, and nothing of what it says. rpc_fini in both cases. */
int rpc_read(struct rpc *m, const char *text, size_t len, struct ava_error *err);
/* What rpc_read sets of one that is no JSON, or of a line that rpc_line_add calls too long. */
void rpc_unread(struct rpc *m, const char *text, size_t len);
/* More of a line, and whether it is longer than `line` may be: then its beginning and its end stay,
 * where its id may be. */
bool rpc_line_add(struct buf *line, bool too_long, const char *bytes, size_t len);
void rpc_fini(struct rpc *m);
bool rpc_same_id(const json_t *a, const json_t *b);
/* That of a request of ours in its answer: some write it as "1". 0: it is none. */
int64_t rpc_number(const json_t *id);

/* Whole messages, new references. What they hold is *taken*, but for the id; where it is NULL
 * memory has run out, and there is no message either. */
json_t *rpc_request(int64_t id, const char *method, json_t *params); /* id 0: a notice */
json_t *rpc_result(const json_t *id, json_t *result);
/* `id` NULL: null; `data` NULL: none. `message` is text as json_shown has it: it may quote a part
 * of what came, cut within a character. */
json_t *rpc_error(const json_t *id, int code, const char *message, json_t *data);
/* One (*taken*) as a line at the end of `out`. AVA_ENOMEM, also where it is NULL; AVA_ETOOBIG. */
int rpc_line(struct buf *out, json_t *message);

#endif
