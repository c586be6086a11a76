/* JSON-RPC messages.
 *
 * Happy path: parse the object, look at the members that say what it is. What can fail: text that
 * is no JSON or no message: the code that the protocol has for it, and a sentence. */
#include "codec/jsonrpc.h"

#include <ava.h>
#include <string.h>

#include "base/error.h"

static bool is_id(const json_t *v)
{
	return json_is_string(v) || json_is_integer(v);
}

static int read_response(struct rpc *m, struct ava_error *err)
{
	m->kind = RPC_RESPONSE;
	m->result = json_object_get(m->doc, "result");
	m->error = json_object_get(m->doc, "error");
	if (!m->result == !m->error) {
		err_set(err, AVA_EPROTO, "a message has a method, or a result, or an error");
		return RPC_INVALID;
	}
	if (m->error &&
	    !(json_is_object(m->error) && json_is_integer(json_object_get(m->error, "code")))) {
		err_set(err, AVA_EPROTO, "an error has a code and a message");
		return RPC_INVALID;
	}
	return 0;
}

/* *Takes* doc. */
static int read_doc(struct rpc *m, json_t *doc, struct ava_error *err)
{
	json_t *id;

	*m = (struct rpc){.doc = doc};
	if (!doc)
		return RPC_PARSE;
	if (!json_is_object(m->doc)) {
		err_set(err, AVA_EPROTO, "a message is one JSON object");
		return RPC_INVALID;
	}
	id = json_object_get(m->doc, "id");
	m->id = is_id(id) ? id : NULL;
	m->method = json_get_str(m->doc, "method");
	m->params = json_object_get(m->doc, "params");
	if (strcmp(json_str(m->doc, "jsonrpc"), "2.0") != 0) {
		err_set(err, AVA_EPROTO, "the member jsonrpc is to be \"2.0\"");
		return RPC_INVALID;
	}
	if (id && !m->id && !(json_is_null(id) && json_object_get(m->doc, "error"))) {
		err_set(err, AVA_EPROTO, "an id is a string or a whole number");
		return RPC_INVALID;
	}
	if (!m->method && json_object_get(m->doc, "method")) {
		err_set(err, AVA_EPROTO, "a method is a string");
		return RPC_INVALID;
	}
	if (m->params && !json_is_object(m->params)) {
		err_set(err, AVA_EPROTO, "params are an object");
		return RPC_INVALID;
	}
	if (!m->method)
		return read_response(m, err);
	m->kind = m->id ? RPC_REQUEST : RPC_NOTICE;
	return 0;
}

int rpc_read(struct rpc *m, const char *text, size_t len, struct ava_error *err)
{
	return read_doc(m, json_parse(text, len, err), err);
}

int rpc_read_mended(struct rpc *m, const char *text, size_t len, struct ava_error *err)
{
	return read_doc(m, json_parse_mended(text, len, err), err);
}

void rpc_fini(struct rpc *m)
{
	json_decref(m->doc);
	memset(m, 0, sizeof(*m));
}

bool rpc_same_id(const json_t *a, const json_t *b)
{
	return a && b && json_equal(a, b);
}

void rpc_value(struct jw *w, const char *key, const json_t *v)
{
	struct buf b;

	buf_init(&b, w->out->max);
	if (!v || json_dump(&b, v) != 0)
		jw_null(w, key);
	else
		jw_raw(w, key, b.data, b.len);
	buf_fini(&b);
}

static void begin(struct jw *w)
{
	jw_object(w, NULL);
	jw_str(w, "jsonrpc", "2.0");
}

void rpc_begin_request(struct jw *w, int64_t id, const char *method)
{
	begin(w);
	jw_int(w, "id", id);
	jw_str(w, "method", method);
	jw_object(w, "params");
}

void rpc_begin_notice(struct jw *w, const char *method)
{
	begin(w);
	jw_str(w, "method", method);
	jw_object(w, "params");
}

void rpc_begin_result(struct jw *w, const json_t *id)
{
	begin(w);
	rpc_value(w, "id", id);
	jw_object(w, "result");
}

void rpc_end(struct jw *w)
{
	jw_end(w);
	jw_end(w);
}

void rpc_error(struct jw *w, const json_t *id, int code, const char *message, const json_t *data)
{
	begin(w);
	rpc_value(w, "id", id);
	jw_object(w, "error");
	jw_int(w, "code", code);
	jw_str(w, "message", message);
	if (data)
		rpc_value(w, "data", data);
	rpc_end(w);
}
