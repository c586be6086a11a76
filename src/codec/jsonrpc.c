/* JSON-RPC messages.
 *
 * Happy path: parse the object, look at the members that say what it is. What can fail: text that
 * is no JSON or no message: the code that the protocol has for it, and a sentence. */
#include "codec/jsonrpc.h"

#include <ava.h>
#include <string.h>

#include "base/error.h"

/* What is wrong with a value that is to be a message; NULL: it is one. */
static const char *wrong_with(const struct rpc *m)
{
	const json_t *id = json_object_get(m->doc, "id");

	if (!json_is_object(m->doc))
		return "a message is one JSON object";
	if (strcmp(json_str(m->doc, "jsonrpc"), "2.0") != 0)
		return "the member jsonrpc is to be \"2.0\"";
	if (id && !m->id && !(json_is_null(id) && json_object_get(m->doc, "error")))
		return "an id is a string or a whole number";
	if (!m->method && json_object_get(m->doc, "method"))
		return "a method is a string";
	if (m->params && !json_is_object(m->params))
		return "params are an object";
	if (!m->method && !m->result == !m->error)
		return "a message has a method, or a result, or an error";
	if (m->error && !json_is_integer(json_object_get(m->error, "code")))
		return "an error has a code and a message";
	return NULL;
}

/* *Takes* doc. */
static int read_doc(struct rpc *m, json_t *doc, struct ava_error *err)
{
	const char *wrong;
	json_t *id;

	*m = (struct rpc){.doc = doc};
	if (!doc)
		return RPC_PARSE;
	id = json_object_get(m->doc, "id");
	m->id = json_is_string(id) || json_is_integer(id) ? id : NULL;
	m->method = json_get_str(m->doc, "method");
	m->params = json_object_get(m->doc, "params");
	m->params = json_is_null(m->params) ? NULL : m->params; /* some write it for none */
	m->result = m->method ? NULL : json_object_get(m->doc, "result");
	m->error = m->method ? NULL : json_object_get(m->doc, "error");
	wrong = wrong_with(m);
	if (wrong) {
		err_set(err, AVA_EPROTO, "%s", wrong);
		return RPC_INVALID;
	}
	m->kind = !m->method ? RPC_RESPONSE : m->id ? RPC_REQUEST : RPC_NOTICE;
	return 0;
}

int rpc_read(struct rpc *m, const char *text, size_t len, struct ava_error *err)
{
	json_t *doc = json_parse(text, len, err);

	if (doc)
		return read_doc(m, doc, err);
	/* With a character in it that is none it still has an id, and somebody waits. */
	(void)read_doc(m, json_parse_mended(text, len, NULL), NULL);
	m->result = m->error = NULL;
	return RPC_PARSE;
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
