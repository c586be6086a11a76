/* JSON-RPC messages.
 *
 * Happy path: parse the object, tell the kind by its members. What can fail: text that is no
 * JSON or no message: the protocol's code for it, and a sentence. */
#include "codec/jsonrpc.h"

#include <ava.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "codec/jscan.h"

#define UNREAD_HEAD ((size_t)64 << 10)
#define UNREAD_TAIL ((size_t)4 << 10)

/* The fault of a value that should be a message; NULL: none. */
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
	double number;
	json_t *id;

	*m = (struct rpc){.doc = doc};
	if (!doc)
		return RPC_PARSE;
	id = json_object_get(m->doc, "id");
	number = json_real_value(id);
	if (json_is_real(id) && number == trunc(number) && fabs(number) < 9007199254740992.0) {
		/* 1.0, as some languages write all their numbers */
		json_object_set_new(m->doc, "id", json_integer((json_int_t)number));
		id = json_object_get(m->doc, "id");
	}
	m->id = json_is_string(id) || (json_is_number(id) && number == trunc(number)) ? id : NULL;
	m->method = json_get_str(m->doc, "method");
	m->params = json_object_get(m->doc, "params");
	m->params = json_is_null(m->params) ? NULL : m->params; /* some write null for none */
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

/* The value of a member of a damaged or shortened message: found in its beginning, or in its end
 * among the last members of an object. */
static json_t *unread_member(const char *text, size_t len, const char *name)
{
	struct slice v = jscan_first(text, MIN(len, UNREAD_HEAD), name);
	const char *end = text + len, *at = len > UNREAD_TAIL ? end - UNREAD_TAIL : text;
	json_t *found = v.len > 0 ? json_read_others(v.s, v.len, NULL) : NULL, *rest;
	char key[20], *members;
	int n = snprintf(key, sizeof(key), "\"%s\"", name);

	for (; !found && (at = memmem(at, (size_t)(end - at), key, (size_t)n)) != NULL; at += n) {
		members = malloc((size_t)(end - at) + 1);
		if (!members)
			break;
		members[0] = '{';
		memcpy(members + 1, at, (size_t)(end - at));
		rest = json_read_others(members, (size_t)(end - at) + 1, NULL);
		found = json_incref(json_object_get(rest, name));
		json_decref(rest);
		free(members);
	}
	return found;
}

void rpc_unread(struct rpc *m, const char *text, size_t len)
{
	json_t *method = unread_member(text, len, "method");
	bool answers = !method && (memmem(text, len, "\"result\"", 8) != NULL ||
				   memmem(text, len, "\"error\"", 7) != NULL);

	(void)read_doc(m,
		       json_pack("{s:s,s:o*,s:o*,s:o*}", "jsonrpc", "2.0", "id",
				 unread_member(text, len, "id"), "method", method, "result",
				 answers ? json_object() : NULL),
		       NULL);
	m->result = NULL;
}

int rpc_read(struct rpc *m, const char *text, size_t len, struct ava_error *err)
{
	json_t *doc = json_read_others(text, len, err);
	const char *begin = !doc && len > 0 ? memchr(text, '{', len) : NULL;

	if (begin && begin > text)
		doc = json_read_others(begin, len - (size_t)(begin - text), err);
	if (doc)
		return read_doc(m, doc, err);
	rpc_unread(m, text ? text : "", len);
	return RPC_PARSE;
}

bool rpc_line_add(struct buf *line, bool too_long, const char *bytes, size_t len)
{
	if (line->len + len >= line->max && line->len > UNREAD_HEAD + UNREAD_TAIL) {
		too_long = true;
		memmove(line->data + UNREAD_HEAD, line->data + line->len - UNREAD_TAIL,
			UNREAD_TAIL);
		line->len = UNREAD_HEAD + UNREAD_TAIL;
	}
	return buf_add(line, bytes, len) != 0 || too_long;
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

int64_t rpc_number(const json_t *id)
{
	const char *text = json_string_value(id);

	return text ? slice_number((struct slice){text, strlen(text)}, 0) : json_integer_value(id);
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
