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
	(void)read_doc(m, json_read_others(text, len, NULL), NULL);
	m->result = m->error = NULL;
	return RPC_PARSE;
}

int rpc_read_mended(struct rpc *m, const char *text, size_t len, struct ava_error *err)
{
	return read_doc(m, json_read_others(text, len, err), err);
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

json_t *rpc_request(int64_t id, const char *method, json_t *params)
{
	return json_pack("{s:s,s:o*,s:s,s:o}", "jsonrpc", "2.0", "id",
			 id != 0 ? json_integer(id) : NULL, "method", method, "params", params);
}

json_t *rpc_result(const json_t *id, json_t *result)
{
	return json_pack("{s:s,s:O,s:o}", "jsonrpc", "2.0", "id", id, "result", result);
}

json_t *rpc_error(const json_t *id, int code, const char *message, json_t *data)
{
	return json_pack("{s:s,s:O?,s:{s:i,s:o,s:o*}}", "jsonrpc", "2.0", "id", id, "error", "code",
			 code, "message", json_shown(message), "data", data);
}

int rpc_line(struct buf *out, json_t *message)
{
	int rv = message ? json_dump(out, message) : AVA_ENOMEM;

	json_decref(message);
	return rv ? rv : buf_addc(out, '\n');
}
