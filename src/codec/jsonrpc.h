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

/* Reads one message. 0, or RPC_PARSE, RPC_INVALID with err saying why; m->id is set where one could
 * be read, so that the refusal can name it, and for RPC_PARSE m->kind too: of a response it is
 * known what it answers, and nothing of what it says. rpc_fini in both cases. */
int rpc_read(struct rpc *m, const char *text, size_t len, struct ava_error *err);
/* The same, of a program that may write what is no character: json_parse_mended. */
int rpc_read_mended(struct rpc *m, const char *text, size_t len, struct ava_error *err);
void rpc_fini(struct rpc *m);
bool rpc_same_id(const json_t *a, const json_t *b);

/* Each begins a message in `w`; what follows are members of "params" (rpc_begin_request,
 * rpc_begin_notice) or of "result", and rpc_end closes it. `id` may be NULL: null. */
void rpc_begin_request(struct jw *w, int64_t id, const char *method);
void rpc_begin_notice(struct jw *w, const char *method);
void rpc_begin_result(struct jw *w, const json_t *id);
void rpc_end(struct jw *w);
/* A whole error; `data` NULL: none. */
void rpc_error(struct jw *w, const json_t *id, int code, const char *message, const json_t *data);
/* A JSON value as a member. */
void rpc_value(struct jw *w, const char *key, const json_t *v);

#endif
