/* Messages of programs that speak MCP and ACP. What is read says what it is, and the same id comes
 * back in an answer; what a server lists becomes tools whose names and schemas can stand in a
 * request, and what a tool gives becomes text. */
#include "fuzz.h"

#include <ava.h>

#include "base/buf.h"
#include "base/error.h"
#include "codec/jsonrpc.h"
#include "codec/utf8.h"
#include "tool/mcp_rows.h"

static int error_line(struct buf *out, const struct rpc *m, json_t *data)
{
	const char *text = m->method ? m->method : "";

	buf_reset(out);
	return rpc_line(out, rpc_error(m->id, RPC_NO_METHOD, text, json_incref(data)));
}

static void answered(const struct rpc *m)
{
	struct ava_error err;
	struct rpc back;
	struct buf b;
	int rv;

	buf_init(&b, 1u << 20);
	rv = error_line(&b, m, m->params);
	/* One level further down they may be nested too deep. */
	CHECK(rv == 0 || (rv == AVA_ETOOBIG && error_line(&b, m, NULL) == 0));
	CHECK(rpc_read(&back, b.data, b.len, &err) == 0);
	CHECK(back.kind == RPC_RESPONSE && back.error);
	CHECK(m->id ? rpc_same_id(m->id, back.id) : !back.id);
	rpc_fini(&back);
	buf_fini(&b);
}

static void listed(const json_t *result)
{
	static const struct tool like = {.flags = TOOL_MCP | TOOL_UNTRUSTED | TOOL_OUT};
	struct mcp_rows rows = {0};
	const json_t *one;
	struct buf b;
	size_t i;

	json_array_foreach(json_object_get(result, "tools"), i, one)
		CHECK(mcp_rows_take(&rows, &like, "s", one));
	mcp_rows_add(&rows);
	for (i = 0; tool_added(i); i++) {
		const struct tool *t = tool_added(i);
		struct ava_error err;
		json_t *schema = json_parse(t->schema, strlen(t->schema), &err);

		CHECK(strncmp(t->name, "mcp__s__", 8) == 0 && strlen(t->name) <= 64);
		CHECK(strspn(t->name + 8,
			     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
		      strlen(t->name + 8));
		CHECK(json_is_object(schema));
		json_decref(schema);
	}
	mcp_rows_free(&rows);
	CHECK(!tool_added(0));
	buf_init(&b, 4096);
	mcp_result_text(&b, result);
	CHECK(utf8_valid(b.data ? b.data : "", b.len));
	buf_fini(&b);
}

FUZZ_TARGET(rpc, len)
{
	struct ava_error err = {0};
	struct rpc m;
	int rv = rpc_read(&m, (const char *)data, len, &err);

	CHECK(rv == 0 || rv == RPC_PARSE || rv == RPC_INVALID);
	if (rv != 0)
		CHECK(err.text[0]);
	else if (m.kind == RPC_RESPONSE && m.result)
		listed(m.result);
	else
		answered(&m);
	rpc_fini(&m);
	rpc_unread(&m, (const char *)data, len);
	CHECK(!m.result && !m.error && (!m.id || json_is_string(m.id) || json_is_number(m.id)));
	rpc_fini(&m);
}
